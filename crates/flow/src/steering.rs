//! Predicts the receive queue that the device chooses for a flow: rules, then a context or the device's own table.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_kfmt::nl::unhex;
use ringwise_model::words::plural;
use ringwise_model::{Action, Fact, Nic, Rss, Rule, Unread};
use serde::Serialize;

use crate::hash::{Fields, Transform, Unpredictable, input};
use crate::rules::{RuleMatch, rule_match};
use crate::toeplitz::{Toeplitz, is_symmetric};
use crate::tuple::{TCP, Tuple};
use crate::undecided::{KeySource, MatchDependsOn, Undecided, as_text_or_null, beside};

/// Drivers that fill their key from `net.core.netdev_rss_key` and do not report it themselves (Linux 6.12).
const HOST_KEY: &[&str] = &["igb", "igc"];
/// What such devices compute with the key that ethtool shows is not the definition's hash (Linux 5.8 and newer begin
/// with 0xffffffff on ena).
const OTHER_TOEPLITZ: &[&str] = &["ena"];
/// Drivers that steer TCP flows to the queue that sent their replies, unless the feature `ntuple` is on (Intel's ATR).
const ATR: &[&str] = &["ixgbe", "txgbe"];
/// The same, but a private flag switches it off. It is on by default.
const ATR_BY_FLAG: &[&str] = &["i40e"];
const ATR_FLAG: &str = "flow-director-atr";
/// Kernel name of the feature that flow steering rules need (`ethtool -k`: `ntuple-filters`).
pub const NTUPLE: &str = "rx-ntuple-filter";

/// What decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueDecision {
    /// A flow steering rule matches.
    Rule,
    /// The hash selects an entry of the indirection table.
    Table,
    /// There is one queue, or every entry of the table names the same.
    OnlyOne,
    /// The caller named the queue.
    Asked,
    /// A rule discards the packets, or sends them to a virtual function.
    Dropped,
    /// A value that the decision needs is unknown; `why_not` names it.
    NotDecidable,
}

/// Which receive queue a flow reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueuePrediction {
    /// What decided.
    pub by: QueueDecision,
    /// Receive queue. `None`: dropped, or not decidable.
    pub queue: Option<u32>,
    /// Where the queue is not known: the ones it can be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub may_be: Vec<u32>,
    /// `tcp4`, `ip6`
    pub flow_type: &'static str,
    /// In JSON a text: `addresses + ports`. `None`: the fields are unknown, or do not matter.
    #[serde(serialize_with = "as_text_or_null")]
    pub fields: Option<Fields>,
    /// Hash of the packet, 32 bits. `None`: it cannot be computed, or is not needed.
    pub hash: Option<u32>,
    /// Where the hash key was read; in JSON a text. `None`: no key is needed or known.
    #[serde(serialize_with = "as_text_or_null")]
    pub key_from: Option<KeySource>,
    /// Index into the indirection table.
    pub entry: Option<usize>,
    /// Entries of the table; 0 where no table decides.
    pub entries: usize,
    /// RSS context that a rule selects. `None`: the device's own.
    pub context: Option<u32>,
    /// Location of the rule.
    pub rule: Option<u32>,
    /// Why there is no queue, or no hash.
    #[serde(flatten, serialize_with = "beside")]
    pub why_not: Option<Undecided>,
    /// What the answer assumes, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Rules could not be read; one of them may send the flow elsewhere.
    #[serde(skip)]
    pub rules_unread: bool,
}

/// A table with its key.
#[derive(Debug, Clone)]
struct IndirectionTable {
    table: Vec<u32>,
    /// The hash function, or why the hash is unknown.
    hash: Result<Toeplitz, Undecided>,
    key_from: Option<KeySource>,
    only: Option<u32>,
}

/// The bytes of a hash key and where they were read, or why the hash is unknown.
type Key = Result<(Vec<u8>, KeySource), Undecided>;

impl IndirectionTable {
    fn new(table: &[u32], key: Key) -> Self {
        Self {
            only: table.first().copied().filter(|q| table.iter().all(|t| t == q)),
            table: table.to_vec(),
            key_from: key.as_ref().ok().map(|k| k.1),
            hash: key.map(|(k, _)| Toeplitz::new(&k)),
        }
    }
}

/// What one device does, prepared for many flows.
#[derive(Debug, Clone)]
pub struct Steering {
    driver: String,
    queues: Option<u32>,
    /// The device's own table, or why it is unknown.
    own: Result<IndirectionTable, Undecided>,
    contexts: BTreeMap<u32, IndirectionTable>,
    contexts_known: bool,
    fields: BTreeMap<String, String>,
    transform: Transform,
    symmetric_key: bool,
    rules: Vec<(u32, Rule)>,
    /// Why rules could not be read. `None`: they were read, there are none, or ntuple is off.
    rules_unread: Option<Unread>,
    /// Why the queue of TCP flows is unknown, although the table is known.
    steers_itself: Option<Undecided>,
    /// Assumptions made where neither kernel nor driver reports a value.
    assumed: Vec<String>,
    asked: Option<u32>,
}

impl Steering {
    /// `host_key`: `net.core.netdev_rss_key` in hex, colons or not.
    pub fn new(nic: &Nic, host_key: &Fact<String>) -> Self {
        let driver = nic.driver.known().map_or("the driver (name unknown)", String::as_str).to_string();
        let queues = receive_queues(nic);
        let ntuple = nic.features.known().and_then(|f| f.get(NTUPLE)).map(|f| f.on);
        let (rules, rules_unread) = match &nic.rules {
            // The device ignores its rules while ntuple is off.
            _ if ntuple == Some(false) => (Vec::new(), None),
            Fact::Known(r) => (r.rules.iter().map(|(at, r)| (*at, r.clone())).collect(), None),
            Fact::Absent => (Vec::new(), None),
            Fact::Unknown(u) => (Vec::new(), Some(u.clone())),
        };
        let mut s = Self {
            steers_itself: steers_itself(nic, &driver, queues, ntuple),
            driver,
            queues,
            own: Err(Undecided::NoRss),
            contexts: BTreeMap::new(),
            contexts_known: true,
            fields: BTreeMap::new(),
            transform: Transform::None,
            symmetric_key: false,
            rules,
            rules_unread,
            assumed: Vec::new(),
            asked: None,
        };
        match &nic.rss {
            Fact::Known(rss) => s.read(rss, host_key),
            Fact::Absent => {}
            Fact::Unknown(unread) => s.own = Err(Undecided::TableUnread { unread: unread.clone() }),
        }
        s
    }

    fn read(&mut self, rss: &Rss, host_key: &Fact<String>) {
        self.fields = rss.fields.clone();
        let reported = self.key_of_device(rss, host_key);
        self.symmetric_key = reported.as_ref().is_ok_and(|(k, _)| is_symmetric(k));
        let transform = self.transform_of(rss);
        self.transform = transform.clone().unwrap_or_default();
        let key = self.function_of(rss).and_then(|()| transform.map(|_| ())).and(reported);
        if rss.table.is_empty() {
            self.own = Err(Undecided::NoTable);
        } else {
            self.own = Ok(IndirectionTable::new(&rss.table, key.clone()));
        }
        for (id, context) in rss.contexts.known().into_iter().flatten() {
            let key = match (&context.key, &key) {
                // A context with its own key still needs a hash function and a transform that are known.
                (Some(own), Ok(_)) => parse_key(own, KeySource::Context),
                (_, key) => key.clone(),
            };
            self.contexts.insert(*id, IndirectionTable::new(&context.table, key));
        }
        self.contexts_known = !matches!(rss.contexts, Fact::Unknown(_));
    }

    fn key_of_device(&self, rss: &Rss, host_key: &Fact<String>) -> Key {
        match &rss.key {
            Fact::Known(key) => match parse_key(key, KeySource::Device)? {
                (bytes, _) if bytes.is_empty() => Err(Undecided::KeyEmpty),
                key => Ok(key),
            },
            Fact::Unknown(unread) => Err(Undecided::KeyUnread { unread: unread.clone() }),
            Fact::Absent => self.key_of_host(host_key),
        }
    }

    fn transform_of(&mut self, rss: &Rss) -> Result<Transform, Undecided> {
        match &rss.symmetric {
            Fact::Known(name) => {
                Transform::parse(name).ok_or_else(|| Undecided::UnknownTransform { transform: name.clone() })
            }
            Fact::Absent => Ok(Transform::None),
            // Recordings made before ringwise read transforms do not contain them.
            Fact::Unknown(unread) => {
                self.assumed.push(format!("whether the hash is symmetric is unknown ({unread}); assumed: it is not"));
                Ok(Transform::None)
            }
        }
    }

    /// Ok: the device computes the Toeplitz hash.
    fn function_of(&mut self, rss: &Rss) -> Result<(), Undecided> {
        let driver = self.driver.clone();
        match &rss.function {
            _ if OTHER_TOEPLITZ.contains(&driver.as_str()) => Err(Undecided::NonstandardHash { driver }),
            Fact::Known(function) if function == "toeplitz" => Ok(()),
            Fact::Known(function) => Err(Undecided::UndocumentedHash { driver, function: function.clone() }),
            Fact::Absent => {
                self.assumed.push("the driver does not report its hash function; assumed: toeplitz".into());
                Ok(())
            }
            Fact::Unknown(unread) => Err(Undecided::HashFunctionUnread { unread: unread.clone() }),
        }
    }

    fn key_of_host(&self, host_key: &Fact<String>) -> Key {
        let driver = self.driver.clone();
        if !HOST_KEY.contains(&driver.as_str()) {
            return Err(Undecided::KeyNotReported { driver });
        }
        match host_key {
            Fact::Known(key) => match parse_key(key, KeySource::Host)? {
                // The kernel creates the key when the first driver requests it.
                (bytes, _) if bytes.iter().all(|b| *b == 0) => Err(Undecided::HostKeyNotSet),
                key => Ok(key),
            },
            Fact::Absent => Err(Undecided::HostKeyAbsent { driver }),
            Fact::Unknown(unread) => Err(Undecided::HostKeyUnread { driver, unread: unread.clone() }),
        }
    }

    /// Assumes that every packet arrives on this queue, whatever the device would choose.
    pub fn by_queue(self, queue: Option<u32>) -> Self {
        Self { asked: queue, ..self }
    }

    /// `None`: their number is not known.
    pub fn queues(&self) -> Option<u32> {
        self.queues
    }

    /// All queues that are known; none where their number is not.
    fn all_queues(&self) -> Vec<u32> {
        (0..self.queues.unwrap_or(0)).collect()
    }

    /// The assumptions behind the predictions, where neither kernel nor driver reports a value.
    pub fn assumed(&self) -> &[String] {
        &self.assumed
    }

    /// What the device does with the fields before it hashes them.
    pub fn transform(&self) -> Transform {
        self.transform
    }

    /// Whether both directions of every flow have the same hash, for any reason.
    pub fn is_symmetric(&self) -> bool {
        self.transform != Transform::None || self.symmetric_key
    }

    /// The device's own table; empty: none known.
    pub fn table(&self) -> &[u32] {
        self.own.as_ref().map_or(&[], |o| &o.table)
    }

    /// Whether the entry of the device's own table can be computed: table, key and function are known.
    pub fn hashes(&self) -> bool {
        self.own.as_ref().is_ok_and(|own| !own.table.is_empty() && own.hash.is_ok())
    }

    /// Entry of the device's own table, for flows that no rule takes.
    pub fn bucket(&self, t: &Tuple) -> Option<usize> {
        let own = self.own.as_ref().ok()?;
        let hash = self.hash_of(own, t).ok()?;
        Some(entry(hash, own.table.len()))
    }

    /// Whether a rule may match this flow.
    pub fn is_ruled(&self, t: &Tuple) -> bool {
        self.rules.iter().any(|(_, r)| rule_match(r, t) != RuleMatch::No)
    }

    /// The queue alone.
    pub fn queue(&self, t: &Tuple) -> Option<u32> {
        if self.asked.is_some() {
            return self.asked;
        }
        if self.rules.is_empty() && self.rules_unread.is_none() && self.steers_itself.is_none() {
            let own = self.own.as_ref().ok()?;
            return own.only.or_else(|| Some(own.table[self.bucket(t)?]));
        }
        self.answer(t).queue
    }

    /// The hashed fields, with an assumption where the driver does not report them.
    fn fields_of(&self, t: &Tuple) -> Result<(Fields, Option<&'static str>), Undecided> {
        let flow_type = t.flow_type();
        // No field of a protocol: its packets are hashed as those of any other protocol, by the fields of IP.
        let (flow_type, note) = match self.fields.get(flow_type).map(String::as_str) {
            Some("") if !flow_type.starts_with("ip") => {
                let ip = if t.is_v6() { "ip6" } else { "ip4" };
                (ip, Some("the driver reports no hash fields for this protocol; assumed: those of other IP packets"))
            }
            _ => (flow_type, None),
        };
        let name = flow_type.to_string();
        match self.fields.get(flow_type).map(String::as_str) {
            Some("") => Err(Undecided::NoFieldHashed { flow_type: name }),
            Some(letters) => match Fields::parse(letters) {
                Ok(f) => Ok((f, note)),
                Err(Unpredictable::Includes(property)) => {
                    Err(Undecided::HashedPropertyUnknown { flow_type: name, property })
                }
                Err(Unpredictable::Discarded) => Err(Undecided::FlowTypeDiscarded { flow_type: name }),
            },
            None if flow_type.starts_with("ip") => {
                let note = "the driver does not report the hash fields of such packets; assumed: the addresses";
                Ok((Fields::ADDRESSES, Some(note)))
            }
            None => Err(Undecided::FieldsNotReported { flow_type: name }),
        }
    }

    fn hash_of(&self, s: &IndirectionTable, t: &Tuple) -> Result<u32, Undecided> {
        let toeplitz = s.hash.as_ref().map_err(Clone::clone)?;
        let (fields, _) = self.fields_of(t)?;
        Ok(toeplitz.hash(input(t, fields, self.transform).bytes()))
    }

    /// The queue of `t`, with everything that led to it.
    pub fn answer(&self, t: &Tuple) -> QueuePrediction {
        let a = self.by_device(t);
        match self.asked {
            None => a,
            // The hash depends only on the packet and stays valid; the decision does not.
            Some(_) => QueuePrediction {
                by: QueueDecision::Asked,
                queue: self.asked,
                may_be: Vec::new(),
                entry: None,
                context: None,
                rule: None,
                why_not: a.why_not.filter(|_| a.hash.is_none()),
                notes: Vec::new(),
                ..a
            },
        }
    }

    fn by_device(&self, t: &Tuple) -> QueuePrediction {
        let mut a = QueuePrediction {
            rules_unread: false,
            by: QueueDecision::NotDecidable,
            queue: None,
            may_be: Vec::new(),
            flow_type: t.flow_type(),
            fields: None,
            hash: None,
            key_from: None,
            entry: None,
            entries: 0,
            context: None,
            rule: None,
            why_not: None,
            notes: Vec::new(),
        };
        if self.queues == Some(1) && self.rules.is_empty() {
            (a.by, a.queue) = (QueueDecision::OnlyOne, Some(0));
            return a;
        }
        let mut might = Vec::new();
        for (at, rule) in &self.rules {
            match rule_match(rule, t) {
                RuleMatch::No => {}
                RuleMatch::DependsOn(what) => might.push((*at, rule, what)),
                RuleMatch::Yes if might.is_empty() => {
                    a.rule = Some(*at);
                    self.by_rule(rule, t, &mut a);
                    let more = self.rules.iter().filter(|(o, r)| o > at && rule_match(r, t) != RuleMatch::No).count();
                    if more > 0 {
                        a.notes.push(format!(
                            "{} also {} this flow; assumed: the lowest location wins, as on most devices",
                            plural(more, "other rule"),
                            if more == 1 { "matches" } else { "match" }
                        ));
                    }
                    return a;
                }
                RuleMatch::Yes => {
                    might.push((*at, rule, MatchDependsOn::EarlierRule));
                    break;
                }
            }
        }
        self.by_table(self.own.as_ref().map_err(Clone::clone), 0, t, &mut a);
        if let Some((at, _, depends_on)) = might.first() {
            let mut queues: BTreeSet<u32> = a.queue.into_iter().chain(a.may_be.iter().copied()).collect();
            queues.extend(might.iter().flat_map(|(_, r, _)| self.targets(r)));
            a.why_not = Some(Undecided::RuleMayMatch { rule: *at, depends_on: *depends_on });
            (a.by, a.queue, a.may_be) = (QueueDecision::NotDecidable, None, queues.into_iter().collect());
            return a;
        }
        if let Some(why) = &self.rules_unread {
            a.rules_unread = true;
            a.notes.push(format!("steering rules could not be read ({why}); one of them may match"));
        }
        if let (Some(why), TCP, false) = (&self.steers_itself, t.protocol, t.fragment)
            && let Some(q) = a.queue.filter(|_| a.by != QueueDecision::OnlyOne)
        {
            a.notes.push(format!("until the host replies, the table applies: queue {q}"));
            a.queue = None;
            a.by = QueueDecision::NotDecidable;
            a.may_be = self.all_queues();
            a.why_not = Some(why.clone());
        }
        a
    }

    fn targets(&self, r: &Rule) -> Vec<u32> {
        match (r.action, r.context) {
            (Action::Queue(q), Some(c)) => {
                self.contexts.get(&c).map_or_else(Vec::new, |s| s.table.iter().map(|e| e + q).collect())
            }
            (Action::Queue(q), None) => vec![q],
            _ => Vec::new(),
        }
    }

    fn by_rule(&self, rule: &Rule, t: &Tuple, a: &mut QueuePrediction) {
        a.by = QueueDecision::Rule;
        match (rule.action, rule.context) {
            (Action::Drop, _) => a.by = QueueDecision::Dropped,
            (Action::Queue(q), None) => a.queue = Some(q),
            (Action::Queue(offset), Some(c)) => {
                a.context = Some(c);
                match self.contexts.get(&c) {
                    Some(s) => self.by_table(Ok(s), offset, t, a),
                    None => {
                        a.by = QueueDecision::NotDecidable;
                        a.may_be = self.all_queues();
                        a.why_not = Some(match self.contexts_known {
                            true => Undecided::ContextMissing { context: c },
                            false => Undecided::ContextUnread { context: c },
                        });
                    }
                }
            }
            (Action::Wake, _) => {
                a.by = QueueDecision::NotDecidable;
                a.why_not = Some(Undecided::WakeRule);
            }
            (Action::Vf { vf, queue }, _) => {
                a.by = QueueDecision::Dropped;
                a.notes.push(format!(
                    "the rule sends the flow to queue {queue} of virtual function {vf}, not to this interface"
                ));
            }
        }
    }

    fn by_table(
        &self,
        spreader: Result<&IndirectionTable, Undecided>,
        offset: u32,
        t: &Tuple,
        a: &mut QueuePrediction,
    ) {
        let s = match spreader {
            Ok(s) => s,
            Err(why) => {
                a.by = QueueDecision::NotDecidable;
                a.may_be = self.all_queues();
                a.why_not = Some(why);
                return;
            }
        };
        a.entries = s.table.len();
        a.key_from = s.key_from;
        let ruled = a.rule.is_some();
        match self.fields_of(t) {
            Ok((f, note)) => {
                a.fields = Some(f);
                a.notes.extend(note.map(str::to_string));
            }
            Err(_) => a.fields = None,
        }
        match self.hash_of(s, t) {
            Ok(hash) => {
                let at = entry(hash, s.table.len());
                (a.hash, a.entry) = (Some(hash), Some(at));
                a.notes.extend(self.assumed.iter().cloned());
                a.queue = Some(s.table[at] + offset);
                a.by = if ruled { QueueDecision::Rule } else { QueueDecision::Table };
                if !s.table.len().is_power_of_two() {
                    a.notes.push(format!(
                        "{} table entries are not a power of two; assumed: hash modulo entries",
                        s.table.len()
                    ));
                }
            }
            Err(why) => {
                a.why_not = Some(why);
                match s.only {
                    Some(q) => {
                        a.queue = Some(q + offset);
                        a.by = if ruled { QueueDecision::Rule } else { QueueDecision::OnlyOne };
                    }
                    None => {
                        a.by = QueueDecision::NotDecidable;
                        let all: BTreeSet<u32> = s.table.iter().map(|q| q + offset).collect();
                        a.may_be = all.into_iter().collect();
                        a.notes.push("all packets of this direction go to one of them, always the same one".into());
                    }
                }
            }
        }
    }
}

fn entry(hash: u32, entries: usize) -> usize {
    if entries.is_power_of_two() { hash as usize & (entries - 1) } else { hash as usize % entries.max(1) }
}

/// Receive queues in use; `None`: not known. The driver's count goes first even where fewer directories are listed, because
/// predictions are also made for queues that a channel change would add.
pub fn receive_queues(nic: &Nic) -> Option<u32> {
    let told = nic.channels.known().map(|c| c.rx_queues()).filter(|n| *n > 0);
    told.or(Some(nic.rx_queues.len() as u32).filter(|n| *n > 0))
}

fn parse_key(hex: &str, of: KeySource) -> Key {
    match unhex(hex) {
        Ok(bytes) => Ok((bytes, of)),
        Err(e) => Err(Undecided::KeyMalformed { of, error: e.to_string() }),
    }
}

fn steers_itself(nic: &Nic, driver: &str, queues: Option<u32>, ntuple: Option<bool>) -> Option<Undecided> {
    if queues == Some(1) {
        return None;
    }
    let (name, flag) = (driver.to_string(), ATR_FLAG.to_string());
    if let (true, Fact::Unknown(unread)) = (ATR_BY_FLAG.contains(&driver), &nic.private_flags) {
        return Some(Undecided::AtrUnread { driver: name, flag, unread: unread.clone() });
    }
    let flag = nic.private_flags.known().and_then(|f| f.get(ATR_FLAG)).copied();
    let on = flag == Some(true) || (ATR.contains(&driver) && ntuple != Some(true));
    on.then_some(Undecided::AtrOn { driver: name })
}

/// The table names several queues, yet nearly all interrupts came from one: perhaps the device ignores it.
pub fn ignored_table_warning(nic: &Nic) -> Option<String> {
    let table = &nic.rss.known()?.table;
    let named: BTreeSet<u32> = table.iter().copied().collect();
    if named.len() < 2 {
        return None;
    }
    let counts: Vec<(u32, u64)> = named
        .iter()
        .map(|q| Some((*q, *nic.vector_of(ringwise_model::Dir::Rx, *q)?.count.known()?)))
        .collect::<Option<_>>()?;
    let all: u64 = counts.iter().map(|c| c.1).sum();
    let (queue, most) = counts.iter().max_by_key(|c| c.1).copied()?;
    // Fewer say nothing; of many, one queue alone is chance only with very few flows. Opening costs each queue some.
    let others = (named.len() as u64 - 1) * OPENING;
    (all >= ENOUGH && all - most <= all / 100 + others).then(|| {
        format!(
            "the table spreads over {} queues, but {most} of {all} interrupts since boot came from queue {queue}: either the \
             device received very few flows, or it ignores its table",
            named.len()
        )
    })
}

const ENOUGH: u64 = 200;
/// vmxnet3 has up to two.
const OPENING: u64 = 3;

//! Follows the load once a second: reports which indirection table, or which CPU for an interrupt, would be better, and requests the
//! write where the user configured it.
//!
//! ```text
//!   /proc/stat, NAPI threads ─► is a CPU of the queues busy? ─► all counters ─► Adapter ─► count packets by entry ─► Finding, LoadWrite
//! ```
//!
//! As long as no CPU is busy, only `/proc/stat` and the times of NAPI threads are read: below that load nothing can be suspect.

mod count;
mod facts;
mod finding;
mod headers;
mod sample;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ringwise_adapt::buckets::{CountMethod, EntryEvidence};
use ringwise_adapt::limits::OneAtATime;
use ringwise_adapt::moves::{InterruptMove, Moves, RpsMove, TableMove};
use ringwise_adapt::{Adapter, AdapterAction, Forbidden, Mask, Permitted, RestReason, Settled, Signals};
use ringwise_discover::flow_path::host_key;
use ringwise_discover::{Options, device, snapshot, table_now};
use ringwise_kfmt::cpumask;
use ringwise_knob::{Address, VectorName, path};
use ringwise_model::CpuId;
use ringwise_observe::{Counters, Layout, Rates, Sampler};
use ringwise_sys::{Host, Result};

use crate::compared::{LoadLayout, PermittedCpus};
use crate::move_reason::{Actuator, MoveReason};

use count::{Counting, CountingAll};
use facts::{Facts, facts};
use headers::HeaderSampling;
use sample::{Reading, followed, may_be_suspect, packets_by_cpu, sample, served};

pub use finding::{EntryMove, FollowFinding, GroupsChanged, InterruptMoved, LoadFinding, MaskChanged};
pub(crate) use sample::OUT_OF_ORDER;

/// How often the load is read.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// So long after the last busy second all counters are read.
const STAYS: Duration = Duration::from_secs(15);
/// How long facts that forbid to write the table are used, and the wait after they could not be read.
const FACTS_LAST: Duration = Duration::from_secs(30);
/// NAPI threads, and where they run, change without a notification: while a CPU is busy, the layout is read again after this.
const LAYOUT_LASTS: Duration = Duration::from_secs(60);
/// For each device of a discovery.
const DEADLINE: Duration = Duration::from_secs(2);

/// One interface.
#[derive(Debug, Default)]
struct Followed {
    adapter: Adapter,
    /// Read when the load is suspect, and forgotten when it is even again or the device has changed.
    facts: Option<Facts>,
    /// When they were read, or when that failed.
    facts_at: Duration,
    counting: Option<Counting>,
    counts: Option<EntryEvidence>,
    /// Reading the facts or counting failed, and was reported.
    mute: bool,
    /// What the last finding is about.
    about: Subject,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Subject {
    /// The table, or the load.
    #[default]
    Table,
    /// A CPU that would be better for an interrupt, or another RPS mask.
    BetterElsewhere,
    /// An interrupt that was moved, or an RPS mask that was changed.
    ChangedElsewhere,
}

impl Subject {
    /// Whether the last finding, about this, is still the one that matters: interrupts and masks are looked at only when nothing can be
    /// done about the table.
    fn outlasts(self, action: &AdapterAction) -> bool {
        match action {
            AdapterAction::Rest(RestReason::NoInterruptMoves | RestReason::MaskStays) => self != Self::Table,
            AdapterAction::Suspect { .. } | AdapterAction::CountEntries { .. } => self == Self::BetterElsewhere,
            _ => false,
        }
    }
}

/// The RPS mask of the only receive queue, as it was read.
struct ReadMask {
    queue: u32,
    cpus: BTreeSet<u32>,
    /// `None`: facts about the device were not read yet.
    helpers: Option<BTreeSet<u32>>,
}

impl ReadMask {
    fn known(&self) -> Mask<'_> {
        Mask { queue: self.queue, cpus: &self.cpus, helpers: self.helpers.as_ref() }
    }
}

/// The load of all interfaces.
#[derive(Default)]
pub(crate) struct Follow {
    /// `None`: it is read before the next second.
    layout: Option<Layout>,
    /// When it was read.
    layout_at: Duration,
    /// Reads all counters, while a CPU is busy.
    sampler: Option<Sampler>,
    before: Option<Counters>,
    busy_at: Option<Duration>,
    followed: BTreeMap<String, Followed>,
    /// One interface at a time makes a step.
    turn: OneAtATime,
    next: Duration,
}

/// What a second brought.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub findings: Vec<(String, FollowFinding)>,
    pub notes: Vec<String>,
    pub writes: Vec<LoadWrite>,
}

/// What an adapter wants to be written. The answer is [`Follow::settled`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoadWrite {
    pub dev: String,
    pub change: LoadChange,
    pub why: WriteReason,
    /// As it is counted.
    pub actuator: Actuator,
    pub reason: MoveReason,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LoadChange {
    /// Receive queue of each entry of the table, now and afterwards.
    Table { from: Vec<u32>, to: Vec<u32> },
    /// An interrupt gets another CPU.
    Interrupt(InterruptMove),
    /// The RPS mask of the only receive queue changes.
    Rps(RpsMove),
}

/// What the service decides about interfaces.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    /// Interfaces for which nothing is found.
    pub left_alone: &'a BTreeSet<String>,
    /// Whether the table and the interrupts of this interface may be written.
    pub acts: &'a dyn Fn(&str) -> bool,
    /// Why the table of this interface must not be written. `None`: nothing is known against it.
    pub no_table: &'a dyn Fn(&str) -> Option<Forbidden>,
    /// CPUs that may serve the queues of each interface.
    pub permitted: &'a PermittedCpus,
    pub machine: &'a LoadLayout,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WriteReason {
    /// A step; loads of the busiest CPU, and what is reported once it is written.
    Better { before_percent: u32, predicted_percent: u32, finding: FollowFinding },
    /// The last step did not help as predicted.
    Restore { finding: FollowFinding },
}

impl Follow {
    /// Interfaces, queues or interrupts may have changed. Without a notification (`heard`), what is being counted is counted to its
    /// end first: a change of the table is noticed in any case.
    pub(crate) fn changed(&mut self, heard: bool) {
        if !heard && self.followed.values().any(|f| f.counting.is_some() || f.counts.is_some()) {
            return;
        }
        (self.layout, self.sampler, self.before) = (None, None, None);
        for f in self.followed.values_mut() {
            (f.facts, f.counting, f.counts) = (None, None, None);
        }
    }

    /// How long until the next second. `None`: nothing can be balanced on this host.
    pub(crate) fn wait(&self, now: Duration) -> Option<Duration> {
        let idle = self.layout.as_ref().is_some_and(|l| followed(l).next().is_none());
        (!idle).then(|| self.next.saturating_sub(now))
    }

    /// Reads nothing in this second.
    pub(crate) fn skip(&mut self, now: Duration) -> News {
        self.next = now + EVERY;
        self.before = None;
        News::default()
    }

    /// What the adapters have moved, by interface.
    pub(crate) fn moved(&self) -> BTreeMap<String, BTreeSet<Address>> {
        let of = |(dev, f): (&String, &Followed)| {
            let table = f.adapter.has_moved_entries().then(|| Address::RssTable { dev: dev.clone() });
            let interrupt = |q| Address::IrqCpus { dev: dev.clone(), of: VectorName::Rx(q) };
            let mask = f.adapter.changed_mask().map(|queue| Address::RpsCpus { dev: dev.clone(), queue });
            let mut all: BTreeSet<Address> = table.into_iter().chain(mask).collect();
            all.extend(f.adapter.moved_interrupts().map(interrupt));
            (!all.is_empty()).then(|| (dev.clone(), all))
        };
        self.followed.iter().filter_map(of).collect()
    }

    /// Whether a change of the groups of this interface may be written: no other interface has a step under way.
    pub(crate) fn take_turn(&mut self, dev: &str, now: Duration) -> bool {
        self.turn.acquire(dev, now)
    }

    /// It was judged, or not written.
    pub(crate) fn end_turn(&mut self, dev: &str) {
        self.turn.release(dev);
    }

    /// What is in effect on these interfaces is a new base.
    pub(crate) fn begin_again(&mut self, dev: &str) {
        if let Some(f) = self.followed.get_mut(dev) {
            f.adapter.resume();
            (f.facts, f.counting, f.counts) = (None, None, None);
        }
    }

    /// The same, but an interface whose moves have ended for a time, or until a person resumes them, stays so.
    pub(crate) fn new_base(&mut self, dev: &str) {
        if let Some(f) = self.followed.get_mut(dev) {
            f.adapter.new_base();
            (f.facts, f.counting, f.counts) = (None, None, None);
        }
    }

    /// A write took the link of this interface down. What is in effect is the base.
    pub(crate) fn link_went_down(&mut self, dev: &str, now: Duration) {
        if let Some(f) = self.followed.get_mut(dev) {
            f.adapter.link_went_down(now);
            (f.facts, f.counting, f.counts) = (None, None, None);
        }
    }

    /// What became of a write.
    pub(crate) fn settled(&mut self, host: &dyn Host, write: &LoadWrite, settled: Settled) {
        let Some(f) = self.followed.get_mut(&write.dev) else { return };
        f.adapter.settled(host.since_boot(), settled);
        match &write.change {
            _ if settled != Settled::Written => {}
            LoadChange::Table { to, .. } => f.facts.iter_mut().for_each(|facts| facts.table = Some(to.clone())),
            // Read again: the queue has another CPU.
            LoadChange::Rps(_) => (f.facts, f.about) = (None, Subject::ChangedElsewhere),
            LoadChange::Interrupt(_) => (self.layout, f.about) = (None, Subject::ChangedElsewhere),
        }
    }

    /// The states of the adapters, for the next service.
    pub(crate) fn states(&self) -> BTreeMap<&String, &Adapter> {
        self.followed.iter().map(|(dev, f)| (dev, &f.adapter)).collect()
    }

    /// Continues what another service has left.
    pub(crate) fn take_over(&mut self, host: &Arc<dyn Host>, states: BTreeMap<String, Adapter>) {
        let layout = layout(host);
        for (dev, mut adapter) in states {
            let table = table_now(host.as_ref(), &dev, 0);
            let cpus = layout.as_ref().and_then(|l| l.links.get(&dev)).map(served).unwrap_or_default();
            let cpu_of = |queue: u32| cpus.get(&queue).copied().flatten().map(|c| c.0);
            let mask_of = |queue: u32| mask_now(host.as_ref(), &dev, queue);
            adapter.handed_over(host.since_boot(), table.as_deref(), &cpu_of, &mask_of);
            self.followed.insert(dev, Followed { adapter, ..Followed::default() });
        }
    }

    /// Reads the load, and passes it on.
    pub(crate) fn second(&mut self, host: &Arc<dyn Host>, rules: Rules<'_>) -> News {
        let mut news = News::default();
        let now = host.since_boot();
        self.next = now + EVERY;
        let Some(layout) = self.present_layout(host, now) else { return news };
        if followed(&layout).next().is_some() {
            self.followed.retain(|dev, _| layout.links.contains_key(dev));
            if let Some(rates) = self.rates(host.as_ref(), &layout, rules.machine, now) {
                self.pass_on(host, &layout, &rates, rules, &mut news);
            }
        }
        self.layout = Some(layout);
        news
    }

    /// The layout. It is read again if it is not known, or is too old while a CPU is busy.
    fn present_layout(&mut self, host: &Arc<dyn Host>, now: Duration) -> Option<Layout> {
        let known = self.layout.take();
        let lasts = self.sampler.is_none() || now < self.layout_at + LAYOUT_LASTS;
        if known.is_some() && lasts {
            return known;
        }
        self.layout_at = now;
        let read = layout(host);
        if read.is_some() && known.is_some() && read != known {
            self.changed(true);
        }
        read.or(known)
    }

    /// Passes these rates to the adapter of each interface, and collects its findings.
    pub(crate) fn pass_on(
        &mut self,
        host: &Arc<dyn Host>,
        layout: &Layout,
        rates: &Rates,
        rules: Rules<'_>,
        news: &mut News,
    ) {
        let packets = packets_by_cpu(layout, rates);
        for (dev, wiring) in followed(layout).filter(|(dev, _)| !rules.left_alone.contains(*dev)) {
            let one = self.followed.entry(dev.clone()).or_default();
            let turn = (rules.acts)(dev).then_some(&mut self.turn);
            let (packets, permitted) = (packets.as_ref(), rules.permitted.get(dev));
            let no_table = (rules.no_table)(dev);
            let read = Reading { dev, wiring, rates, packets, permitted, machine: rules.machine, no_table };
            one.second(host, &read, turn, news);
        }
    }

    /// The rates of the last second: those of all counters if a CPU is busy, otherwise those of the CPUs.
    fn rates(&mut self, host: &dyn Host, layout: &Layout, machine: &LoadLayout, now: Duration) -> Option<Rates> {
        let counters = match &mut self.sampler {
            Some(sampler) => sampler.read(host),
            None => ringwise_observe::cpu_times(host, layout),
        };
        let before = self.before.replace(counters);
        let rates = Rates::between(layout, before.as_ref()?, self.before.as_ref()?)?;
        if may_be_suspect(layout, &rates, machine) {
            self.busy_at = Some(now);
        }
        match self.busy_at.is_some_and(|at| now < at + STAYS) {
            true if self.sampler.is_none() => self.sampler = Some(Sampler::new(host, layout, false)),
            false => self.sampler = None,
            true => {}
        }
        Some(rates)
    }
}

/// `None`: the host does not answer at present.
pub(crate) fn layout(host: &Arc<dyn Host>) -> Option<Layout> {
    snapshot(host, &Options::layout(&[])).ok().map(|s| Layout::of(&s, &[]))
}

/// The CPUs of the RPS mask of this queue. `None`: unknown.
pub(crate) fn mask_now(host: &dyn Host, dev: &str, queue: u32) -> Option<BTreeSet<u32>> {
    let text = host.read_text(&path::of_rx(dev, queue, "rps_cpus")).ok()?;
    Some(cpumask::parse(&text).ok()?.iter().map(|c| c.0).collect())
}

impl Followed {
    /// The RPS mask, as the adapter has to know it. `None`: it is unknown, or must not be changed.
    fn mask(&self, host: &dyn Host, read: &Reading<'_>) -> Option<ReadMask> {
        let served = served(read.wiring);
        let rule = read.machine.masks.get(read.dev);
        let helpers = rule.filter(|r| served.get(&r.queue) == Some(&Some(CpuId(r.cpu)))).map(|r| r.helpers.clone());
        if let Some(queue) = self.adapter.changed_mask() {
            // Another mask is a manual change, whether or not a CPU is busy.
            let cpus = mask_now(host, read.dev, queue)?;
            return Some(ReadMask { queue, cpus, helpers: Some(helpers.unwrap_or_default()) });
        }
        let rule = rule.filter(|_| helpers.is_some())?;
        let (queue, cpus) = (rule.queue, rule.applied.clone());
        match &self.facts {
            None => Some(ReadMask { queue, cpus, helpers: None }),
            Some(facts) => (facts.mask.as_ref() == Some(&cpus)).then_some(ReadMask { queue, cpus, helpers }),
        }
    }

    /// `turn`: the table and the interrupts of this interface may be written.
    fn second(&mut self, host: &Arc<dyn Host>, read: &Reading<'_>, turn: Option<&mut OneAtATime>, news: &mut News) {
        let (now, dev) = (host.since_boot(), read.dev);
        // What forbids to write the table may end without a notification.
        let forbids = self.facts.as_ref().is_some_and(|f| !f.forbidden.is_empty());
        if forbids && now >= self.facts_at + FACTS_LAST {
            self.facts = None;
        }
        if let Some(table) = self.facts.as_ref().and_then(|f| f.table.as_ref())
            && table_now(host.as_ref(), dev, 0).is_some_and(|t| t != *table)
        {
            (self.facts, self.counting, self.counts) = (None, None, None);
        }
        // After a move another table is a manual change, whether or not the load is suspect.
        let moved = self.adapter.has_moved_entries().then(|| table_now(host.as_ref(), dev, 0)).flatten();
        let outside = moved.filter(|t| Some(t.as_slice()) != self.adapter.table());
        let s = sample(read, self.facts.as_ref(), now);
        let counts = self.counts.take();
        let mask = self.mask(host.as_ref(), read);
        let action = self.adapter.step(
            now,
            &Signals {
                sample: Some(&s),
                table: outside.as_deref().or_else(|| self.facts.as_ref().and_then(|f| f.table.as_deref())),
                forbidden: self.facts.as_ref().map_or(&[], |f| &f.forbidden),
                counts: counts.as_ref(),
                permitted: match (&self.facts, read.permitted) {
                    (None, _) => Permitted::NotRead,
                    (Some(_), None) => Permitted::Unknown,
                    (Some(_), Some(cpus)) => Permitted::Cpus(cpus),
                },
                rps: mask.as_ref().map(ReadMask::known),
            },
        );
        // A restoration is written in any case: the step is in effect because it was requested before.
        let may = match &action {
            AdapterAction::Propose(_) => turn.is_some_and(|t| t.acquire(dev, now)),
            AdapterAction::Restore { .. } => true,
            AdapterAction::Rest(RestReason::Judging { .. } | RestReason::WritePending) => false,
            _ => {
                turn.into_iter().for_each(|t| t.release(dev));
                false
            }
        };
        if let Some(write) = self.write(dev, &action).filter(|_| may) {
            self.counting = None;
            news.writes.push(write);
            return;
        }
        let packets_per_s = s.queues.iter().filter_map(|q| q.packets).sum();
        self.follow_up(host, read, packets_per_s, &action, news);
        if let Some(finding) = finding_of(&action).filter(|_| !self.about.outlasts(&action)) {
            self.about = finding.subject();
            news.findings.push((dev.to_string(), finding));
        }
    }

    fn write(&self, dev: &str, action: &AdapterAction) -> Option<LoadWrite> {
        let (moves, why, reason) = match action {
            AdapterAction::Propose(p) => {
                let finding = FollowFinding::moved(p);
                let (before_percent, predicted_percent) = finding.percent()?;
                let why = WriteReason::Better { before_percent, predicted_percent, finding };
                (&p.moves, why, MoveReason::of_step(&p.moves))
            }
            AdapterAction::Restore { moves, why } => {
                (moves, WriteReason::Restore { finding: FollowFinding::taken_back(moves, *why) }, (*why).into())
            }
            _ => return None,
        };
        let change = match moves {
            Moves::Table(list) => {
                let from = self.adapter.table()?.to_vec();
                let mut to = from.clone();
                for TableMove { entry, to: queue, .. } in list {
                    *to.get_mut(*entry)? = *queue;
                }
                LoadChange::Table { from, to }
            }
            Moves::Interrupt(m) => LoadChange::Interrupt(m.clone()),
            Moves::Rps(m) => LoadChange::Rps(m.clone()),
        };
        Some(LoadWrite { dev: dev.into(), change, why, actuator: Actuator::of(moves), reason })
    }

    fn follow_up(
        &mut self,
        host: &Arc<dyn Host>,
        read: &Reading<'_>,
        packets_per_s: u64,
        action: &AdapterAction,
        news: &mut News,
    ) {
        let (now, dev) = (host.since_boot(), read.dev);
        match action {
            AdapterAction::Rest(RestReason::TableUnknown | RestReason::CpusNotRead) if self.facts.is_none() => {
                self.read_facts(host, read, now, news);
            }
            AdapterAction::Rest(
                RestReason::Even
                | RestReason::TooFewSamples { .. }
                | RestReason::NoInterruptMoves
                | RestReason::MaskStays,
            ) => {
                (self.facts, self.counting) = (None, None);
            }
            AdapterAction::CountEntries { method, until, .. } => {
                self.count(host, dev, (*method, packets_per_s), now, *until, news);
            }
            AdapterAction::Propose(_) => self.adapter.settled(now, Settled::NotWritten),
            _ => self.counting = None,
        }
    }

    fn read_facts(&mut self, host: &Arc<dyn Host>, read: &Reading<'_>, now: Duration, news: &mut News) {
        if self.mute && now < self.facts_at + FACTS_LAST {
            return;
        }
        self.facts_at = now;
        match device(host, read.dev, DEADLINE) {
            Ok(nic) => self.facts = Some(facts(&nic, &host_key(host.as_ref()), read.no_table)),
            Err(_) if self.mute => {}
            Err(e) => {
                self.mute = true;
                news.notes.push(e.to_string());
            }
        }
    }

    /// `how`: the method, and the packets per second that arrive.
    fn count(
        &mut self,
        host: &Arc<dyn Host>,
        dev: &str,
        how: (CountMethod, u64),
        now: Duration,
        until: Duration,
        news: &mut News,
    ) {
        let (method, packets_per_s) = how;
        let done = match self.counting.take().filter(|c| c.method() == method) {
            Some(counting) if now >= until => counting.finish(host.as_ref()).map(|counts| {
                (self.counts, self.mute) = (Some(counts), false);
            }),
            Some(counting) => {
                self.counting = Some(counting);
                Ok(())
            }
            None if self.counts.as_ref().is_some_and(|c| c.method == method) || now >= until => Ok(()),
            None => self.start(host.as_ref(), dev, method, packets_per_s).map(|counting| self.counting = counting),
        };
        match done {
            Ok(()) => {}
            Err(_) if self.mute => {}
            Err(e) => {
                self.mute = true;
                news.notes.push(e.to_string());
            }
        }
    }
}

impl Followed {
    /// `None`: it is unknown how the device hashes.
    fn start(&self, host: &dyn Host, dev: &str, method: CountMethod, packets_per_s: u64) -> Result<Option<Counting>> {
        let facts = self.facts.as_ref();
        match method {
            CountMethod::Filter => {
                let table = facts.and_then(|f| f.table.as_deref()).unwrap_or_default();
                CountingAll::start(host, dev, table).map(|all| Some(Counting::All(all)))
            }
            CountMethod::SampledHeaders => {
                let steering = facts.and_then(|f| f.steering.as_ref()).filter(|s| s.hashes());
                let start = |s| HeaderSampling::start(host, dev, s, packets_per_s).map(Counting::Sampled);
                steering.map(start).transpose()
            }
        }
    }
}

/// `None`: nothing that a person has to know.
fn finding_of(action: &AdapterAction) -> Option<FollowFinding> {
    match action {
        AdapterAction::Rest(RestReason::Even | RestReason::NoInterruptMoves | RestReason::MaskStays) => {
            Some(FollowFinding::Even)
        }
        AdapterAction::CountEntries { why, .. } => Some(FollowFinding::uneven(*why, None)),
        AdapterAction::Suspect { why, waiting } => match waiting {
            ringwise_adapt::StepWait::NotWritten { .. } => None,
            waiting => Some(FollowFinding::uneven(*why, Some(waiting.to_string()))),
        },
        AdapterAction::Propose(p) => Some(FollowFinding::would_move(p)),
        AdapterAction::Named { elephant } => Some(FollowFinding::elephant(elephant)),
        AdapterAction::Off { why, .. } => Some(FollowFinding::Off { why: why.to_string() }),
        _ => None,
    }
}

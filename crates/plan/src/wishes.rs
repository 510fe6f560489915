//! Converts the user's configuration into settings, checked against the snapshot.
//!
//! ```text
//!   wishes ─► channels (before the queues are counted) ─► settings by address ─► plan, overriding the goal
//!                                         └─ errors: all are reported together, and there is no plan
//! ```
//! Later entries override earlier ones at the same address; members that they leave open keep the earlier value.

mod configure;
mod device;
mod host;
mod steer;

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::{Address, Setting, SideEffect};
use ringwise_model::natural::compare as natural;
use ringwise_model::order::Order;
use ringwise_model::{ConfiguredBy, Fact, Intent, Knob, Snapshot, Wish};

use crate::dev::{Dev, named};
use crate::words::list;
use crate::{AfterChange, InvalidSetting, Mistake, NotPossible, Obstacle, Refusal, SkippedInterface};

pub(crate) use configure::{configure, propose, source};

pub(crate) const RULE: &str = "W01";

/// One configured setting.
pub(crate) struct ConfiguredSetting {
    pub setting: Setting,
    /// Where it is configured, in order; the last place takes precedence.
    pub by: Vec<ConfiguredBy>,
    /// Its side effect, or the reason why another configured setting implies it.
    pub with: Option<SideEffect>,
    /// Alternatives if the driver accepts only a part of it.
    instead: Vec<Setting>,
    /// For an interrupt: the queues for which it is configured.
    queues: BTreeSet<u32>,
}

/// All configured settings of one host.
#[derive(Default)]
pub(crate) struct ConfiguredSettings {
    pub by: BTreeMap<Address, ConfiguredSetting>,
    pub wrong: Vec<InvalidSetting>,
    pub refused: Vec<NotPossible>,
    /// Entries that `refused` contains already: address, setting and reason.
    noted: BTreeSet<(Option<Address>, String, String)>,
    pub warnings: Vec<String>,
    /// Channel counts by device: the setting, and where it is configured.
    channels: BTreeMap<String, (Setting, Vec<ConfiguredBy>)>,
    /// Counts after a change that needs the user's permission: receive, transmit.
    later: BTreeMap<String, (u32, u32)>,
}

/// One configuration entry while it is checked.
pub(super) struct WishContext<'a, 'n> {
    pub s: &'a Snapshot,
    /// `None`: a setting of the host.
    pub dev: Option<&'a Dev<'n>>,
    pub wish: &'a Wish,
    pub strict: bool,
    pub laid: &'a mut ConfiguredSettings,
}

impl WishContext<'_, '_> {
    /// Records an error in the configuration.
    pub(crate) fn wrong(&mut self, what: impl Into<String>, mistake: Mistake) {
        let of = self.wish.dev.as_ref().map_or_else(String::new, |d| format!("{d} "));
        self.laid.wrong.push(InvalidSetting {
            said: self.wish.by.to_string(),
            what: format!("{of}{}", what.into()),
            mistake,
        });
    }

    /// Records a setting that the device or kernel does not have.
    pub(crate) fn cannot(&mut self, address: Address, why: Obstacle) {
        let what = address.to_string();
        self.cannot_any(Some(address), what, why);
    }

    pub(crate) fn cannot_any(&mut self, address: Option<Address>, what: String, why: Obstacle) {
        let wish = self.wish;
        self.cannot_of(address, what, why, &wish.by);
    }

    /// `by`: where this part of the entry was configured.
    pub(crate) fn cannot_of(&mut self, address: Option<Address>, what: String, why: Obstacle, by: &ConfiguredBy) {
        if self.strict {
            let said = by.to_string();
            self.laid.wrong.push(InvalidSetting { said, what, mistake: Mistake::Strict { obstacle: Box::new(why) } });
            return;
        }
        let entry = NotPossible {
            address,
            what,
            why: why.configured(std::slice::from_ref(by)),
            needed: true,
            blocked_by: None,
            settings: 1,
        };
        if self.laid.noted.insert((entry.address.clone(), entry.what.clone(), entry.why.to_string())) {
            self.laid.refused.push(entry);
        }
    }

    /// The current value. If it is missing, the reason is recorded.
    pub(crate) fn have<'f, T>(&mut self, fact: &'f Fact<T>, address: Address, absent: Obstacle) -> Option<&'f T> {
        match fact {
            Fact::Known(v) => return Some(v),
            Fact::Absent => self.cannot(address, absent),
            Fact::Unknown(u) => self.cannot(address, Obstacle::not_readable(u)),
        }
        None
    }

    pub(crate) fn configure(&mut self, setting: Setting) {
        self.lay_for(setting, None);
    }

    /// Adds the setting for one of several queues that may share an interrupt.
    pub(crate) fn lay_for(&mut self, setting: Setting, queue: Option<u32>) {
        let Some(address) = setting.address() else { return };
        let Some(old) = self.laid.by.get_mut(&address) else {
            let by = self.wish.places();
            let queues = queue.into_iter().collect::<BTreeSet<_>>();
            self.laid.by.insert(address, ConfiguredSetting { setting, by, with: None, instead: Vec::new(), queues });
            return;
        };
        let other = queue.filter(|q| !old.queues.contains(q) && old.setting != setting);
        if other.is_some() {
            let mistake = Mistake::SharedInterrupt {
                queues: old.queues.iter().copied().collect(),
                setting: old.setting.clone(),
                by: old.by.clone(),
            };
            let what = format!("interrupt CPU {}", setting.value_text());
            self.wrong(what, mistake);
            return;
        }
        old.setting = merged(&old.setting, setting);
        old.queues.extend(queue);
        for by in self.wish.places() {
            if !old.by.contains(&by) {
                old.by.push(by);
            }
        }
    }

    /// The selected queues, of those that exist after the plan. `what` names the direction.
    pub(crate) fn queues(&mut self, named: Option<&Vec<u32>>, dir: ringwise_model::Dir, what: &str) -> Vec<u32> {
        let Some(d) = self.dev else { return Vec::new() };
        let Some(there) = (if dir == ringwise_model::Dir::Rx { Some(d.rx) } else { d.tx }) else {
            let why = Obstacle::QueueCountUnknown { direction: dir.to_string() };
            self.cannot_any(None, format!("{} {what}", d.name()), why);
            return Vec::new();
        };
        let Some(named) = named else { return (0..there).collect() };
        let later = self.laid.later.get(d.name()).map_or(0, |l| if dir == ringwise_model::Dir::Rx { l.0 } else { l.1 });
        let (good, beyond): (Vec<u32>, Vec<u32>) = named.iter().partition(|q| **q < there);
        let (then, never): (Vec<u32>, Vec<u32>) = beyond.into_iter().partition(|q| *q < later);
        if !then.is_empty() {
            let name = format!("{} {what} of queues {}", d.name(), list(&then));
            self.cannot_any(None, name, Obstacle::AfterChannelChange { whose: AfterChange::Named });
        }
        if !never.is_empty() {
            let s = if never.len() == 1 { "" } else { "s" };
            let mistake = Mistake::NoSuchQueue { direction: dir, queues: there };
            self.wrong(format!("{what} of queue{s} {}", list(&never)), mistake);
        }
        good
    }

    /// Whether all CPUs of the set are online; records an error if not.
    pub(crate) fn online(&mut self, cpus: &ringwise_model::CpuSet, what: &str) -> bool {
        let online = &self.s.topology.online;
        let off = cpus.difference(online);
        if !off.is_empty() {
            let mistake = Mistake::OfflineCpus { offline: off.clone(), of: Some(cpus.clone()), online: online.clone() };
            self.wrong(what, mistake);
        }
        off.is_empty()
    }

    pub(crate) fn name(&self) -> String {
        self.wish.dev.clone().unwrap_or_default()
    }
}

/// The later setting; members that it leaves open come from the earlier one.
fn merged(old: &Setting, new: Setting) -> Setting {
    use Setting as S;
    let mut new = new;
    match (old, &mut new) {
        (S::Channels { rx, tx, combined, .. }, S::Channels { rx: r, tx: t, combined: c, .. }) => {
            (*r, *t, *c) = (r.or(*rx), t.or(*tx), c.or(*combined));
        }
        (S::Rings { values, .. }, S::Rings { values: later, .. }) => *later = later.or(values),
        (S::Pause { autoneg, rx, tx, .. }, S::Pause { autoneg: a, rx: r, tx: t, .. }) => {
            (*a, *r, *t) = (a.or(*autoneg), r.or(*rx), t.or(*tx));
        }
        (S::Coalesce { params, .. }, S::Coalesce { params: p, .. })
        | (S::QueueCoalesce { params, .. }, S::QueueCoalesce { params: p, .. }) => {
            for (k, v) in params {
                p.entry(k.clone()).or_insert(*v);
            }
        }
        (S::RssHash { function, key, symmetric, .. }, S::RssHash { function: f, key: k, symmetric: x, .. }) => {
            *f = f.take().or_else(|| function.clone());
            *k = k.take().or_else(|| key.clone());
            *x = x.take().or_else(|| symmetric.clone());
        }
        (S::NapiDevice { values: o, .. }, S::NapiDevice { values: n, .. })
        | (S::Napi { values: o, .. }, S::Napi { values: n, .. }) => {
            n.defer_hard_irqs = n.defer_hard_irqs.or(o.defer_hard_irqs);
            n.gro_flush_timeout_ns = n.gro_flush_timeout_ns.or(o.gro_flush_timeout_ns);
            n.irq_suspend_timeout_ns = n.irq_suspend_timeout_ns.or(o.irq_suspend_timeout_ns);
            n.threaded = n.threaded.or(o.threaded);
        }
        _ => {}
    }
    new
}

impl ConfiguredSettings {
    /// An error anywhere in the configuration prevents the plan.
    pub(crate) fn refuse(&mut self) -> Result<(), Refusal> {
        match std::mem::take(&mut self.wrong) {
            wrong if wrong.is_empty() => Ok(()),
            wrong => Err(Refusal::WrongWishes { wrong }),
        }
    }

    /// The configured channel counts; runs before the queues are counted.
    pub(crate) fn channels(s: &Snapshot, devs: &[Dev], intent: &Intent) -> Self {
        let mut laid = Self::default();
        for wish in intent.wishes.iter().filter(|w| matches!(w.knob, Knob::Channels { .. })) {
            let dev = wish.dev.as_deref().and_then(|n| named(devs, n));
            if dev.is_none() {
                continue;
            }
            device::channels(&mut WishContext { s, dev, wish, strict: intent.strict, laid: &mut laid });
        }
        for (address, one) in std::mem::take(&mut laid.by) {
            if let Some(dev) = address.dev() {
                laid.channels.insert(dev.to_string(), (one.setting, one.by));
            }
        }
        laid
    }

    /// The setting, and where it is configured.
    pub(crate) fn channels_of(&self, dev: &str) -> Option<&(Setting, Vec<ConfiguredBy>)> {
        self.channels.get(dev)
    }

    /// Records the queues that a channel change would leave, which needs the user's permission.
    pub(crate) fn will_have(&mut self, dev: &str, rx: u32, tx: u32) {
        self.later.insert(dev.to_string(), (rx, tx));
    }

    /// All other settings; runs after the queues are counted.
    pub(crate) fn settings(&mut self, s: &Snapshot, devs: &[Dev], left_alone: &[SkippedInterface], intent: &Intent) {
        let mut wishes: Vec<&Wish> = intent.wishes.iter().collect();
        // Rules name contexts, and use locations that no other rule names.
        wishes.order_by_key(|w| match &w.knob {
            Knob::FlowRule { location: None, .. } => 2,
            Knob::FlowRule { .. } => 1,
            _ => 0,
        });
        let mut not_planned: BTreeMap<&str, &Obstacle> = BTreeMap::new();
        for l in left_alone {
            not_planned.entry(&l.dev).or_insert(&l.why);
        }
        for wish in wishes {
            let dev = match whose(s, devs, &not_planned, intent, wish) {
                Whose::Host => None,
                Whose::Planned(d) => Some(d),
                Whose::NotSelected => continue,
                Whose::Skipped(why) => {
                    let what = format!("{} settings", wish.dev.as_deref().unwrap_or_default());
                    let mut cx = WishContext { s, dev: None, wish, strict: intent.strict, laid: self };
                    cx.cannot_any(None, what, Obstacle::LeftAlone { obstacle: Box::new(why) });
                    continue;
                }
                Whose::UnknownInterface => {
                    let mut names: Vec<&str> = devs.iter().map(Dev::name).collect();
                    names.order_by(|a, b| natural(a, b));
                    let mut cx = WishContext { s, dev: None, wish, strict: intent.strict, laid: self };
                    let have = names.into_iter().map(str::to_string).collect();
                    cx.wrong(what(&wish.knob), Mistake::NoInterface { have });
                    continue;
                }
                Whose::NoName => {
                    let mut cx = WishContext { s, dev: None, wish, strict: intent.strict, laid: self };
                    cx.wrong(what(&wish.knob), Mistake::NoInterfaceNamed);
                    continue;
                }
            };
            let cx = &mut WishContext { s, dev, wish, strict: intent.strict, laid: self };
            match &wish.knob {
                Knob::Channels { .. } => {}
                Knob::Feature { .. } | Knob::Pause { .. } | Knob::Rings { .. } | Knob::LongestRings { .. } => {
                    device::plain(cx)
                }
                Knob::Coalesce { queues, params } => device::coalesce(cx, queues.as_ref(), params),
                Knob::Napi { queues, values } => device::napi(cx, queues.as_ref(), values),
                Knob::RssTable { .. } | Knob::RssHash { .. } | Knob::RssFields { .. } => steer::rss(cx),
                Knob::FlowRule { location, rule } => steer::rule(cx, *location, rule),
                Knob::IrqCpus { queues, cpus } => steer::irq(cx, queues.as_ref(), cpus),
                Knob::XpsCpus { .. } | Knob::XpsRxqs { .. } | Knob::RpsCpus { .. } | Knob::RpsFlowCnt { .. } => {
                    steer::queues(cx);
                }
                Knob::RfsEntries { .. } | Knob::Sysctl { .. } | Knob::CpuLatency { .. } => host::host(cx),
            }
        }
        configure::together(s, devs, intent, self);
    }
}

enum Whose<'d, 'n> {
    Host,
    Planned(&'d Dev<'n>),
    /// Configured for an interface that the command line does not name.
    NotSelected,
    Skipped(Obstacle),
    UnknownInterface,
    NoName,
}

/// `not_planned`: why interfaces of this host are skipped.
fn whose<'d, 'n>(
    s: &Snapshot,
    devs: &'d [Dev<'n>],
    not_planned: &BTreeMap<&str, &Obstacle>,
    intent: &Intent,
    wish: &Wish,
) -> Whose<'d, 'n> {
    if matches!(wish.knob, Knob::RfsEntries { .. } | Knob::Sysctl { .. } | Knob::CpuLatency { .. }) {
        return Whose::Host;
    }
    let Some(name) = &wish.dev else { return Whose::NoName };
    if let Some(d) = named(devs, name) {
        return Whose::Planned(d);
    }
    if s.nic(name).is_none() {
        return Whose::UnknownInterface;
    }
    if !intent.devs.is_empty() {
        return Whose::NotSelected;
    }
    Whose::Skipped(not_planned.get(name.as_str()).map_or(Obstacle::NoQueues, |why| (*why).clone()))
}

/// Text of the knob for people.
fn what(k: &Knob) -> String {
    match k {
        Knob::Feature { name, .. } => name.clone(),
        Knob::Pause { .. } => "pause frames".into(),
        Knob::Channels { .. } => "channels".into(),
        Knob::Rings { .. } | Knob::LongestRings { .. } => "rings".into(),
        Knob::Coalesce { .. } => "moderation".into(),
        Knob::RssTable { context: None, .. } => "RSS table".into(),
        Knob::RssTable { context: Some(c), .. } => format!("RSS context {c}"),
        Knob::RssHash { .. } => "RSS hash".into(),
        Knob::RssFields { flow, .. } => format!("RSS fields {flow}"),
        Knob::FlowRule { .. } => "flow rule".into(),
        Knob::Napi { .. } => "NAPI".into(),
        Knob::IrqCpus { .. } => "interrupt CPU".into(),
        Knob::XpsCpus { .. } => "XPS CPUs".into(),
        Knob::XpsRxqs { .. } => "XPS rx queues".into(),
        Knob::RpsCpus { .. } => "RPS CPUs".into(),
        Knob::RpsFlowCnt { .. } | Knob::RfsEntries { .. } => "RFS entries".into(),
        Knob::Sysctl { name, .. } => name.clone(),
        Knob::CpuLatency { .. } => "resume latency".into(),
    }
}

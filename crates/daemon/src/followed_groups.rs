//! Interfaces whose groups of queues follow the traffic: what was counted, changed, and is judged soon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ringwise_adapt::groups::{Counted, GroupChange, Groups, Suggested};
use ringwise_knob::Address;
use ringwise_model::{Dir, Intent, TrafficSample};
use ringwise_observe::{Counters, Layout, Rates, Sampler};
use ringwise_sys::Host;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::follow::OUT_OF_ORDER;

/// The interfaces whose groups follow the traffic: those of goal `mixed`.
#[derive(Default)]
pub(crate) struct FollowedGroups {
    pub interfaces: BTreeMap<String, Followed>,
}

/// One interface.
#[derive(Default)]
pub(crate) struct Followed {
    /// What was requested for it. `None`: another process began, and its state is continued.
    intent: Option<Intent>,
    /// `None`: which groups were requested is not planned yet.
    pub state: Option<Groups>,
    /// Settings that changes of the groups have written and that are not as requested.
    moved: BTreeSet<Address>,
    pub layout: Option<Layout>,
    pub before: Option<Counters>,
    /// The sample of the last plan, and what it suggested.
    pub last: Option<(TrafficSample, Suggested)>,
    pub judging: Option<Judging>,
    /// When the counters are read next.
    pub due: Duration,
}

/// A change that was written and is judged soon.
pub(crate) struct Judging {
    pub change: GroupChange,
    pub written: Vec<Change>,
    pub bulk: Vec<u32>,
    pub before: Counted,
}

/// What the next service continues.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LeftGroups {
    state: Groups,
    moved: BTreeSet<Address>,
}

impl FollowedGroups {
    /// How long until counters are read. `None`: no interface has such groups.
    pub(crate) fn wait(&self, now: Duration) -> Option<Duration> {
        self.interfaces.values().map(|f| f.due.saturating_sub(now)).min()
    }

    /// What changes of groups have written, by interface.
    pub(crate) fn moved(&self) -> impl Iterator<Item = (&String, &BTreeSet<Address>)> {
        self.interfaces.iter().filter(|(_, f)| !f.moved.is_empty()).map(|(dev, f)| (dev, &f.moved))
    }

    /// Queues or interrupts may have changed.
    pub(crate) fn changed(&mut self) {
        self.interfaces.values_mut().for_each(Followed::read_again);
    }

    /// What was requested is in effect on this interface.
    pub(crate) fn begin_again(&mut self, dev: &str) {
        if let Some(f) = self.interfaces.get_mut(dev) {
            f.state.iter_mut().for_each(Groups::begin_again);
            f.moved.clear();
            (f.judging, f.last) = (None, None);
            f.read_again();
        }
    }

    /// The link of this interface went down, or its device was set up again.
    pub(crate) fn interrupted(&mut self, dev: &str, now: Duration) {
        self.interfaces.get_mut(dev).and_then(|f| f.state.as_mut()).into_iter().for_each(|s| s.interrupted(now));
    }

    /// For the next service.
    pub(crate) fn left(&self) -> BTreeMap<String, LeftGroups> {
        let of = |f: &Followed| Some(LeftGroups { state: f.state.clone()?, moved: f.moved.clone() });
        self.interfaces.iter().filter_map(|(dev, f)| Some((dev.clone(), of(f)?))).collect()
    }

    /// Continues what another service has left.
    pub(crate) fn take_over(&mut self, left: BTreeMap<String, LeftGroups>) {
        let of = |l: LeftGroups| Followed { state: Some(l.state), moved: l.moved, ..Followed::default() };
        self.interfaces.extend(left.into_iter().map(|(dev, l)| (dev, of(l))));
    }

    /// The interfaces of goal `mixed`, with what is requested for each.
    pub(crate) fn request(&mut self, wanted: BTreeMap<String, Intent>) {
        self.interfaces.retain(|dev, _| wanted.contains_key(dev));
        for (dev, intent) in wanted {
            let f = self.interfaces.entry(dev).or_default();
            if f.intent.as_ref().is_some_and(|i| *i != intent) {
                *f = Followed::default();
            }
            f.intent = Some(intent);
        }
    }
}

impl Followed {
    pub(crate) fn read_again(&mut self) {
        (self.layout, self.before) = (None, None);
    }

    /// What happened since the last reading. `None`: this is the first one.
    pub(crate) fn count(&mut self, host: &Arc<dyn Host>, dev: &str) -> Option<Rates> {
        if self.layout.is_none() {
            (self.layout, self.before) = (layout(host, dev), None);
        }
        let layout = self.layout.as_ref()?;
        let counters = Sampler::new(host.as_ref(), layout, false).read(host.as_ref());
        let before = self.before.replace(counters)?;
        Rates::between(layout, &before, self.before.as_ref()?)
    }
}

/// `None`: the host does not answer at present.
pub(crate) fn layout(host: &Arc<dyn Host>, dev: &str) -> Option<Layout> {
    let devs = [dev.to_string()];
    let s = ringwise_discover::snapshot(host, &ringwise_discover::Options::layout(&devs)).ok()?;
    Some(Layout::of(&s, &devs))
}

impl Followed {
    pub(crate) fn wrote(&mut self, changes: &[Change]) {
        for c in changes {
            match c.to == c.base {
                true => _ = self.moved.remove(&c.address),
                false => _ = self.moved.insert(c.address.clone()),
            }
        }
    }
}

/// What decides whether a change stays.
pub(crate) fn counted_of(rates: &Rates, dev: &str, bulk: &[u32]) -> Counted {
    let Some(link) = rates.links.get(dev) else { return Counted::default() };
    let per_s = |n: u64| n as f64 / rates.seconds;
    let queues = || link.queues.iter().filter(|q| q.dir == Dir::Rx && bulk.contains(&q.queue));
    let packets: Option<u64> = queues().map(|q| q.packets).sum();
    let interrupts: Option<u64> = queues().map(|q| q.interrupts).sum();
    let interrupts_per_packet =
        packets.filter(|n| *n > 0).zip(interrupts).map(|(packets, interrupts)| interrupts as f64 / packets as f64);
    Counted {
        drops_per_s: link.drops.total().map(per_s),
        out_of_order_per_s: rates.traffic.get(OUT_OF_ORDER).copied().map(per_s),
        interrupts_per_packet,
    }
}

//! Interfaces whose groups of queues follow the traffic: what was counted, changed, and is judged soon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ringwise_adapt::groups::{Counted, EVERY, GroupChange, GroupChoice, Groups, SuggestedGroups};
use ringwise_adapt::judge::RestoreReason;
use ringwise_knob::Address;
use ringwise_model::{Dir, Intent, TrafficSample};
use ringwise_observe::{Counters, Layout, Rates, Sampler};
use ringwise_sys::Host;
use serde::{Deserialize, Serialize};

use crate::follow::OUT_OF_ORDER;
use crate::setting_move::SettingMove;

/// The longest wait after a sample for which nothing could be planned.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// The interfaces whose groups follow the traffic: those of goal `mixed`.
#[derive(Default)]
pub(crate) struct FollowedGroups {
    pub interfaces: BTreeMap<String, Followed>,
}

/// One interface.
#[derive(Default)]
pub(crate) struct Followed {
    /// What was requested for it. `None`: its goal is not `mixed` at present, or it is away.
    pub intent: Option<Intent>,
    /// `None`: which groups were requested is not planned yet.
    pub state: Option<Groups>,
    /// The groups that were requested have to be planned again.
    pub stale: bool,
    /// Receive queues, when they were planned.
    pub queues: usize,
    /// Settings that changes of the groups have written and that are not as requested.
    moved: BTreeSet<Address>,
    layout: Option<Layout>,
    /// The layout has to be read again.
    old_layout: bool,
    pub before: Option<Counters>,
    /// The sample of the last plan, and what it suggested.
    pub last: Option<(TrafficSample, SuggestedGroups)>,
    pub judging: Option<Judging>,
    /// A change that has to be restored, and why: another run held the lock.
    pub restoring: Option<(Judging, RestoreReason)>,
    /// When the counters are read next.
    pub due: Duration,
    /// The wait after a sample for which nothing could be planned.
    wait: Duration,
    /// Why not, as last reported.
    pub noted: Option<String>,
}

/// A change that was written and is judged soon.
#[derive(Clone)]
pub(crate) struct Judging {
    pub change: GroupChange,
    pub written: Vec<SettingMove>,
    pub bulk: Vec<u32>,
    pub before: Counted,
    /// Readings that could not be compared with the one before.
    pub misses: u32,
}

/// What the next service continues.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LeftGroups {
    intent: Option<Intent>,
    state: Groups,
    queues: usize,
    moved: BTreeSet<Address>,
}

impl FollowedGroups {
    /// How long until counters are read. `None`: no interface has such groups.
    pub(crate) fn wait(&self, now: Duration) -> Option<Duration> {
        self.interfaces.values().filter(|f| f.intent.is_some()).map(|f| f.due.saturating_sub(now)).min()
    }

    /// Interfaces whose counters are read now.
    pub(crate) fn due(&self, now: Duration) -> Vec<String> {
        let due = self.interfaces.iter().filter(|(_, f)| f.intent.is_some() && f.due <= now);
        due.map(|(dev, _)| dev.clone()).collect()
    }

    /// What changes of groups have written, by interface.
    pub(crate) fn moved(&self) -> impl Iterator<Item = (&String, &BTreeSet<Address>)> {
        self.interfaces.iter().filter(|(_, f)| !f.moved.is_empty()).map(|(dev, f)| (dev, &f.moved))
    }

    /// The groups that changes have brought into effect.
    pub(crate) fn changed_choices(&self) -> BTreeMap<String, GroupChoice> {
        let of = |f: &Followed| f.state.as_ref().filter(|s| s.has_changed()).map(Groups::present);
        self.interfaces.iter().filter_map(|(dev, f)| Some((dev.clone(), of(f)?))).collect()
    }

    /// Queues or interrupts may have changed. What is judged in some seconds is counted to its end.
    pub(crate) fn changed(&mut self) {
        self.interfaces.values_mut().filter(|f| f.judging.is_none()).for_each(Followed::read_again);
    }

    /// What was requested is in effect on this interface.
    pub(crate) fn begin_again(&mut self, dev: &str) {
        if let Some(f) = self.interfaces.get_mut(dev) {
            f.moved.clear();
            (f.judging, f.restoring) = (None, None);
            f.plan_again();
            f.read_again();
        }
    }

    /// A write took the link of this interface down.
    pub(crate) fn link_went_down(&mut self, dev: &str, now: Duration) {
        self.interfaces.get_mut(dev).and_then(|f| f.state.as_mut()).into_iter().for_each(|s| s.link_went_down(now));
    }

    /// For the next service.
    pub(crate) fn left(&self) -> BTreeMap<String, LeftGroups> {
        let of = |f: &Followed| {
            Some(LeftGroups {
                intent: f.intent.clone(),
                state: f.state.clone()?,
                queues: f.queues,
                moved: f.moved.clone(),
            })
        };
        self.interfaces.iter().filter_map(|(dev, f)| Some((dev.clone(), of(f)?))).collect()
    }

    /// Continues what another service has left.
    pub(crate) fn take_over(&mut self, left: BTreeMap<String, LeftGroups>) {
        let of = |l: LeftGroups| Followed {
            intent: l.intent,
            state: Some(l.state),
            queues: l.queues,
            moved: l.moved,
            ..Followed::default()
        };
        self.interfaces.extend(left.into_iter().map(|(dev, l)| (dev, of(l))));
    }

    /// The interfaces of goal `mixed`, with what is requested for each. Waits stay, also of an interface that is away for a while.
    pub(crate) fn request(&mut self, wanted: BTreeMap<String, Intent>) {
        for (dev, f) in &mut self.interfaces {
            if !wanted.contains_key(dev) {
                f.intent = None;
            }
        }
        self.interfaces.retain(|_, f| f.intent.is_some() || f.state.is_some());
        for (dev, mut intent) in wanted {
            // It is not handed over, and nothing here depends on it.
            intent.given = None;
            let f = self.interfaces.entry(dev).or_default();
            if f.intent.as_ref() != Some(&intent) {
                f.plan_again();
                f.intent = Some(intent);
            }
        }
    }
}

impl Followed {
    fn plan_again(&mut self) {
        (self.stale, self.last, self.wait) = (true, None, Duration::ZERO);
    }

    /// Its queues or interrupts may be others now.
    pub(crate) fn read_again(&mut self) {
        self.old_layout = true;
    }

    /// The next reading is compared with this moment.
    pub(crate) fn count_from_now(&mut self, host: &Arc<dyn Host>, dev: &str) {
        (self.old_layout, self.before) = (true, None);
        self.count(host, dev);
    }

    /// The interface has another number of queues than when its groups were planned.
    pub(crate) fn has_queues(&mut self, queues: usize) {
        if self.queues != queues {
            self.queues = queues;
            self.plan_again();
        }
    }

    /// The last sample could be planned for.
    pub(crate) fn planned(&mut self) {
        self.wait = Duration::ZERO;
    }

    /// Nothing could be planned for the last sample: the next one is later each time.
    pub(crate) fn wait_longer(&mut self, now: Duration) {
        self.wait = (self.wait * 2).clamp(EVERY, LONGEST_WAIT);
        self.due = now + self.wait;
    }

    /// What happened since the last reading. `None`: this is the first one.
    pub(crate) fn count(&mut self, host: &Arc<dyn Host>, dev: &str) -> Option<Rates> {
        if self.layout.is_none() || self.old_layout {
            let now = layout(host, dev);
            // Most notifications are about something else: what was counted until now still counts.
            if now != self.layout {
                self.before = None;
            }
            (self.layout, self.old_layout) = (now, false);
        }
        let layout = self.layout.as_ref()?;
        let counters = Sampler::new(host.as_ref(), layout, false).read(host.as_ref());
        let before = self.before.replace(counters)?;
        Rates::between(layout, &before, self.before.as_ref()?)
    }

    pub(crate) fn wrote(&mut self, changes: &[SettingMove]) {
        for c in changes {
            match c.to == c.base {
                true => _ = self.moved.remove(&c.address),
                false => _ = self.moved.insert(c.address.clone()),
            }
        }
    }
}

/// `None`: the host does not answer at present.
fn layout(host: &Arc<dyn Host>, dev: &str) -> Option<Layout> {
    let devs = [dev.to_string()];
    let s = ringwise_discover::snapshot(host, &ringwise_discover::Options::layout(&devs)).ok()?;
    Some(Layout::of(&s, &devs))
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

//! Groups of queues while the traffic changes: how many queues the latency group has, and which policy the bulk queues get.
//!
//! ```text
//!   every 30 s: sample ─► what a plan would choose now ─► twice the same direction? limits ─► GroupChange ─► write ─► judge
//! ```
//!
//! The policy has two thresholds, because policy `cpu` itself lowers the load: at the one at which it began it would end again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::judge::{RestoreReason, more_drops, more_out_of_order};

/// Length of a sample.
pub const EVERY: Duration = Duration::from_secs(30);
/// From this mean busy share of the CPUs of the bulk queues on, they get policy `cpu` (the threshold of a plan with `--sample`).
pub const BUSY_PERCENT: u32 = 50;
/// Below this share they get policy `bulk` again.
pub const IDLE_PERCENT: u32 = 30;
/// Shortest time from one change to the next.
const APART: Duration = Duration::from_secs(120);
/// The time between changes doubles with each one that was restored, and with each one that goes back, up to this.
const LONGEST_APART: Duration = Duration::from_secs(3600);
/// A change back to the choice before it within this time, or twice the time between changes, goes to and fro.
const RETURN: Duration = Duration::from_secs(30 * 60);
/// The first time without changes after one that took the link down; each further one is twice as long.
const FIRST_OFF: Duration = Duration::from_secs(3600);
const LONGEST_OFF: Duration = Duration::from_secs(8 * 3600);
/// Policy `cpu` has to lower the interrupts per packet at least to this part.
const FEWER_INTERRUPTS: f64 = 0.9;

/// The policy of the bulk queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupPolicy {
    /// `bulk`, for CPUs with time left.
    Bulk,
    /// `cpu`, for busy CPUs.
    Cpu,
}

impl GroupPolicy {
    /// The name in a configuration and in a plan.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Cpu => "cpu",
        }
    }
}

/// Sizes and policy of the groups of one interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupChoice {
    /// Queues of the latency group.
    pub latency_queues: u32,
    /// Policy of the bulk group.
    pub policy: GroupPolicy,
}

/// What a plan would choose by the last sample. `None`: the sample does not tell, or the user configured it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SuggestedGroups {
    /// Queues of the latency group.
    pub latency_queues: Option<u32>,
    /// Mean busy share of the CPUs of the bulk queues.
    pub busy_percent: Option<u32>,
}

/// A better choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupChange {
    /// What is in effect.
    pub from: GroupChoice,
    /// What would be better.
    pub to: GroupChoice,
}

/// The groups of one interface. Another process of the same boot can continue this state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Groups {
    /// In effect.
    present: GroupChoice,
    /// As requested: from before the first change.
    base: GroupChoice,
    /// What the last sample suggested.
    last: Option<GroupChoice>,
    /// The choice before the last change, and when that was.
    before: Option<(GroupChoice, Duration)>,
    apart: Duration,
    /// The end of the last change, restored or not.
    last_change: Option<Duration>,
    /// The last change went back to the groups before it.
    returned: bool,
    /// No change before this, because one has taken the link down.
    off_until: Option<Duration>,
    /// How often that has happened.
    offs: u32,
}

impl Groups {
    /// These groups are in effect, as requested.
    pub fn new(base: GroupChoice) -> Self {
        Self {
            present: base,
            base,
            last: None,
            before: None,
            apart: APART,
            last_change: None,
            returned: false,
            off_until: None,
            offs: 0,
        }
    }

    /// What is in effect.
    pub fn present(&self) -> GroupChoice {
        self.present
    }

    /// Whether a change of this process is in effect.
    pub fn has_changed(&self) -> bool {
        self.present != self.base
    }

    /// The next sample. `Some`: this would be better.
    pub fn step(&mut self, now: Duration, suggested: SuggestedGroups) -> Option<GroupChange> {
        let from = self.present;
        let policy = match (from.policy, suggested.busy_percent) {
            (GroupPolicy::Bulk, Some(busy)) if busy >= BUSY_PERCENT => GroupPolicy::Cpu,
            (GroupPolicy::Cpu, Some(busy)) if busy < IDLE_PERCENT => GroupPolicy::Bulk,
            (policy, _) => policy,
        };
        let latency_queues = suggested.latency_queues.unwrap_or(from.latency_queues);
        let found = GroupChoice { latency_queues, policy };
        let earlier = self.last.replace(found)?;
        let to = GroupChoice {
            latency_queues: both_ways(from.latency_queues, earlier.latency_queues, latency_queues),
            policy: if earlier.policy == policy { policy } else { from.policy },
        };
        (to != from && self.waits_until(now).is_none()).then_some(GroupChange { from, to })
    }

    /// It was written.
    pub fn written(&mut self, now: Duration, change: GroupChange) {
        let back = |(before, at): (GroupChoice, Duration)| before == change.to && now < at + RETURN.max(self.apart * 2);
        self.returned = self.before.is_some_and(back);
        if self.returned {
            self.apart = self.longer();
        }
        self.before = Some((change.from, now));
        (self.present, self.last, self.last_change) = (change.to, None, Some(now));
    }

    /// It was judged, and stays: unless it went back, the next one waits half as long.
    pub fn kept(&mut self) {
        if !self.returned {
            self.apart = (self.apart / 2).max(APART);
        }
    }

    /// It was written, and then restored: the next one waits twice as long.
    pub fn restored(&mut self, now: Duration, change: GroupChange) {
        self.present = change.from;
        // It did not stay, so the next one does not go back to it.
        self.before = None;
        self.delay(now);
    }

    /// It was not possible, or not written: the next one waits twice as long.
    pub fn delay(&mut self, now: Duration) {
        self.apart = self.longer();
        (self.last, self.last_change) = (None, Some(now));
    }

    /// A change took the link down: the next one is long after it.
    pub fn link_went_down(&mut self, now: Duration) {
        self.off_until = Some(now + FIRST_OFF.saturating_mul(1 << self.offs.min(10)).min(LONGEST_OFF));
        self.offs += 1;
    }

    /// These groups are in effect now, as requested. The waits stay.
    pub fn begin_again(&mut self, base: GroupChoice) {
        (self.base, self.present, self.last, self.before) = (base, base, None, None);
    }

    /// Whether the last sample suggested what is in effect.
    pub fn suits(&self) -> bool {
        self.last == Some(self.present)
    }

    /// When the next change may be made. `None`: at any time.
    fn waits_until(&self, now: Duration) -> Option<Duration> {
        self.last_change.map(|at| at + self.apart).max(self.off_until).filter(|until| now < *until)
    }

    fn longer(&self) -> Duration {
        (self.apart * 2).min(LONGEST_APART)
    }
}

/// The nearer of two numbers if both are on the same side of the present one; otherwise the present one.
fn both_ways(present: u32, a: u32, b: u32) -> u32 {
    if a > present && b > present {
        a.min(b)
    } else if a < present && b < present {
        a.max(b)
    } else {
        present
    }
}

/// What was counted before and after a change. `None`: unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Dropped packets per second.
    pub drops_per_s: Option<f64>,
    /// TCP segments out of order per second, of the whole host.
    pub out_of_order_per_s: Option<f64>,
    /// Interrupts of the bulk queues, per packet that they received.
    pub interrupts_per_packet: Option<f64>,
}

/// Judges a change by the counters before and after it. A policy has to do what it is for: with `cpu`, the bulk queues interrupt less often.
///
/// What was counted before and is unknown now, because the queues receive nothing, shows no gain.
///
/// Errors: why it is restored.
pub fn judge(change: GroupChange, before: &Counted, after: &Counted) -> Result<(), RestoreReason> {
    if let Some(why) = more_drops(before.drops_per_s, after.drops_per_s) {
        return Err(why);
    }
    if let Some(why) = more_out_of_order(before.out_of_order_per_s, after.out_of_order_per_s) {
        return Err(why);
    }
    let lost = |before: Option<f64>, after: Option<f64>| before.is_some() && after.is_none();
    if lost(before.drops_per_s, after.drops_per_s) || lost(before.interrupts_per_packet, after.interrupts_per_packet) {
        return Err(RestoreReason::NotMeasured);
    }
    let to_cpu = change.from.policy != change.to.policy && change.to.policy == GroupPolicy::Cpu;
    if let (true, Some(b), Some(a)) = (to_cpu, before.interrupts_per_packet, after.interrupts_per_packet)
        && a > b * FEWER_INTERRUPTS
    {
        return Err(RestoreReason::AsManyInterrupts { before: b, after: a });
    }
    Ok(())
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;

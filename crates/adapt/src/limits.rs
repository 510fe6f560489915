//! Stage 3: how often and how much may move. What moved is remembered, and limits what may move next.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Shortest time from one step to the next.
pub const APART: Duration = Duration::from_secs(10);
/// The time between steps doubles with each step that was restored, up to this.
const LONGEST_APART: Duration = Duration::from_secs(3600);
const HOUR: Duration = Duration::from_secs(3600);
/// After so many entries within an hour, the traffic changes faster than steps can follow. Then steps are [`SLOW_APART`]
/// apart: entries do not return within [`RETURN`], and the hour's entries last for the hour.
const QUICK_ENTRIES: usize = 24;
const SLOW_APART: Duration = Duration::from_secs(190);
/// Entries of a step that may move after that, or within an hour after a step was restored.
const SMALL_STEP: usize = 2;
/// A second step that is restored within an hour switches the interface off.
const RESTORED_STEPS: usize = 2;
/// Entries that may move in an hour, restored ones included.
pub const HOURLY_ENTRIES: usize = 60;
/// An entry that moved keeps its queue for this long.
const REST: Duration = Duration::from_secs(60);
/// An entry that returns to its queue within this time moves to and fro.
pub const RETURN: Duration = Duration::from_secs(180);
/// Such an entry keeps its queue for this long.
const FROZEN: Duration = Duration::from_secs(30 * 60);
/// So many entries that move to and fro switch the interface off.
const FROZEN_ENTRIES: usize = 2;
/// The first time that the interface is off; each further one is twice as long.
const FIRST_OFF: Duration = FROZEN;
const LONGEST_OFF: Duration = Duration::from_secs(8 * 3600);
/// After this long without trouble, the interface counts as new.
const FORGET: Duration = Duration::from_secs(24 * 3600);
/// A step whose interface was not released for this long is over: its adapter is gone.
const TURN: Duration = Duration::from_secs(60);

/// Which limit a step would break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitReached {
    /// The last step was too short a time ago.
    Apart {
        /// When the next one may be made, since boot.
        until: Duration,
    },
    /// The entries of this hour have moved.
    HourlyEntries {
        /// When the next one may move, since boot.
        until: Duration,
    },
}

/// What moved from one place to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryShift {
    /// Index of an entry of the table; of an interrupt, its first receive queue; of a mask, its receive queue.
    pub entry: usize,
    /// The queue, or CPU, that it leaves, or a number for its old mask.
    pub from: u32,
    /// Its new queue, or CPU, or a number for its new mask.
    pub to: u32,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Moved {
    at: Duration,
    entry: usize,
    from: u32,
    to: u32,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Frozen {
    until: Duration,
    /// The entry moved to and fro by proposals; otherwise its step was restored.
    to_and_fro: bool,
}

/// What moved, and what must rest because of it: entries of the table, or interrupts. Times are since boot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Limits {
    moved: VecDeque<Moved>,
    frozen: BTreeMap<usize, Frozen>,
    /// When steps were restored.
    restored: VecDeque<Duration>,
    last_step: Option<Duration>,
    apart: Duration,
    offs: u32,
    last_off: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            moved: VecDeque::new(),
            frozen: BTreeMap::new(),
            restored: VecDeque::new(),
            last_step: None,
            apart: APART,
            offs: 0,
            last_off: None,
        }
    }
}

impl Limits {
    /// Entries that a step may move now. Room for restoring them is kept, so that a restored step does not break the
    /// limit of the hour either.
    pub fn may_step(&self, now: Duration) -> Result<usize, LimitReached> {
        let recent = || self.moved.iter().filter(|m| m.at + HOUR > now);
        let moved = recent().count();
        self.is_apart(now)?;
        // Traffic that changes faster than steps can follow gets small ones.
        let restored = self.restored.iter().any(|at| *at + HOUR > now);
        let most = if restored || moved >= QUICK_ENTRIES { SMALL_STEP } else { usize::MAX };
        match (HOURLY_ENTRIES.saturating_sub(moved) / 2).min(most) {
            0 => Err(LimitReached::HourlyEntries { until: recent().next().map_or(now, |m| m.at + HOUR) }),
            n => Ok(n),
        }
    }

    /// Whether the last step is long enough ago.
    pub fn is_apart(&self, now: Duration) -> Result<(), LimitReached> {
        let until = self.last_step.map(|l| l + self.apart(now)).filter(|until| now < *until);
        until.map_or(Ok(()), |until| Err(LimitReached::Apart { until }))
    }

    /// The time from one step to the next.
    fn apart(&self, now: Duration) -> Duration {
        let moved = self.moved.iter().filter(|m| m.at + HOUR > now).count();
        if moved < QUICK_ENTRIES { self.apart } else { self.apart.max(SLOW_APART) }
    }

    /// Whether the entry must keep its queue.
    pub fn rests(&self, entry: usize, now: Duration) -> bool {
        self.frozen(entry, now) || self.moved.iter().any(|m| m.entry == entry && now < m.at + REST)
    }

    /// Whether the entry must keep its queue for long.
    pub fn frozen(&self, entry: usize, now: Duration) -> bool {
        self.frozen.get(&entry).is_some_and(|f| now < f.until)
    }

    /// A step was written. `Some`: entries move to and fro, so the interface is off until then.
    pub fn stepped(&mut self, moves: &[EntryShift], now: Duration) -> Option<Duration> {
        self.forget(now);
        for m in moves {
            let earlier = self.moved.iter().rev().find(|e| e.entry == m.entry);
            if earlier.is_some_and(|e| e.from == m.to && now <= e.at + RETURN) {
                self.frozen.insert(m.entry, Frozen { until: now + FROZEN, to_and_fro: true });
            }
        }
        self.remember(moves, now);
        self.last_step = Some(now);
        let frozen = self.frozen.values().filter(|f| f.to_and_fro).count();
        (frozen >= FROZEN_ENTRIES).then(|| self.off(now))
    }

    /// A step was restored: its entries keep their queues for long, and the next step waits twice as long.
    /// `Some`: it is the second one within an hour, so the interface is off until then.
    pub fn restored(&mut self, moves: &[EntryShift], now: Duration) -> Option<Duration> {
        self.forget(now);
        self.restored.push_back(now);
        self.delay(now);
        for m in moves {
            self.frozen.entry(m.entry).or_insert(Frozen { until: now + FROZEN, to_and_fro: false });
        }
        self.remember(moves, now);
        (self.restored.len() >= RESTORED_STEPS).then(|| {
            self.restored.clear();
            self.off(now)
        })
    }

    /// A step was not possible: the next one waits twice as long.
    pub fn delay(&mut self, now: Duration) {
        self.last_step = Some(now);
        self.apart = (self.apart(now) * 2).min(LONGEST_APART);
    }

    /// A step has kept its promise: the next one waits half as long, but not less than usual.
    pub fn kept(&mut self) {
        self.apart = (self.apart / 2).max(APART);
    }

    /// Begins a time without steps, and returns its end. Each one is twice as long as the last.
    pub fn off(&mut self, now: Duration) -> Duration {
        if self.last_off.is_some_and(|l| now > l + FORGET) {
            self.offs = 0;
        }
        let time = FIRST_OFF.saturating_mul(1 << self.offs.min(10)).min(LONGEST_OFF);
        self.offs += 1;
        self.last_off = Some(now + time);
        now + time
    }

    /// Whether a step was written that is remembered.
    pub fn has_moved(&self) -> bool {
        !self.moved.is_empty()
    }

    fn remember(&mut self, moves: &[EntryShift], now: Duration) {
        self.moved.extend(moves.iter().map(|m| Moved { at: now, entry: m.entry, from: m.from, to: m.to }));
    }

    fn forget(&mut self, now: Duration) {
        self.moved.retain(|m| m.at + HOUR > now);
        self.frozen.retain(|_, f| f.until > now);
        self.restored.retain(|at| *at + HOUR > now);
    }
}

/// Lets one interface at a time make a step, so that the effects of two steps are not mistaken for each other.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct OneAtATime {
    holder: Option<(String, Duration)>,
}

impl OneAtATime {
    /// Whether this interface may write. If so, the others wait until it is released, or for a minute.
    pub fn acquire(&mut self, interface: &str, now: Duration) -> bool {
        let free = self.holder.as_ref().is_none_or(|(name, since)| name == interface || now >= *since + TURN);
        if free {
            self.holder = Some((interface.into(), now));
        }
        free
    }

    /// The step of this interface was judged, or is not made.
    pub fn release(&mut self, interface: &str) {
        self.holder.take_if(|(name, _)| name == interface);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn moved(entry: usize, from: u32, to: u32) -> EntryShift {
        EntryShift { entry, from, to }
    }

    #[test]
    fn steps_are_apart_and_longer_after_each_restored_one() {
        let mut l = Limits::default();
        assert_eq!(l.may_step(s(0)), Ok(30));
        l.stepped(&[moved(1, 0, 1)], s(100));
        assert_eq!(l.may_step(s(109)), Err(LimitReached::Apart { until: s(110) }));
        assert_eq!(l.may_step(s(110)), Ok(29));
        l.restored(&[moved(1, 1, 0)], s(105));
        assert_eq!(l.may_step(s(124)), Err(LimitReached::Apart { until: s(125) }));
        l.delay(s(130));
        assert_eq!(l.may_step(s(169)), Err(LimitReached::Apart { until: s(170) }));
        (0..20).for_each(|_| l.delay(s(200)));
        assert_eq!(l.may_step(s(200)), Err(LimitReached::Apart { until: s(3800) }));
        l.kept();
        assert_eq!(l.may_step(s(210)), Err(LimitReached::Apart { until: s(2000) }));
        (0..20).for_each(|_| l.kept());
        assert!(l.may_step(s(210)).is_ok());
    }

    #[test]
    fn sixty_entries_an_hour_even_if_the_last_step_is_restored() {
        let mut l = Limits::default();
        let (mut moves, mut after_a_minute) = (0, 0);
        for now in 0..3600 {
            if let Ok(most) = l.may_step(s(now)) {
                let step: Vec<_> = (0..most.min(4)).map(|i| moved(1000 + moves + i, 0, 1)).collect();
                assert!(moves + 2 * step.len() <= 60);
                moves += step.len();
                l.stepped(&step, s(now));
            }
            after_a_minute = if now == 60 { moves } else { after_a_minute };
        }
        assert_eq!(after_a_minute, 24, "six steps without a wait");
        assert!((50..=60).contains(&moves), "{moves}");
        let mut l = Limits::default();
        let step: Vec<_> = (0..58).map(|entry| moved(entry, 0, 1)).collect();
        l.stepped(&step, s(0));
        assert_eq!(l.may_step(s(1000)), Ok(1), "and one to restore it");
        l.stepped(&[moved(99, 0, 1)], s(1000));
        assert_eq!(l.may_step(s(3599)), Err(LimitReached::HourlyEntries { until: s(3600) }));
        assert_eq!(l.may_step(s(3600)), Ok(29), "the first step is an hour ago");
    }

    #[test]
    fn a_moved_entry_rests() {
        let mut l = Limits::default();
        l.stepped(&[moved(7, 0, 1)], s(100));
        assert!(l.rests(7, s(159)) && !l.rests(7, s(160)) && !l.rests(8, s(100)));
    }

    #[test]
    fn to_and_fro_freezes_the_entry_and_two_switch_off() {
        let mut l = Limits::default();
        l.stepped(&[moved(7, 0, 1), moved(8, 0, 1), moved(9, 0, 1)], s(0));
        assert_eq!(l.stepped(&[moved(7, 1, 2)], s(100)), None, "another queue");
        assert!(!l.rests(7, s(160)));
        assert_eq!(l.stepped(&[moved(8, 1, 0)], s(180)), None);
        assert!(l.rests(8, s(180 + 1799)) && !l.rests(8, s(180 + 1800)));
        assert_eq!(l.stepped(&[moved(9, 1, 0)], s(181)), None, "more than three minutes");
        assert_eq!(l.stepped(&[moved(7, 2, 1)], s(270)), Some(s(270 + 1800)));
        // The next time it is off for an hour, and after a long quiet time for half an hour again.
        assert_eq!(l.off(s(3000)), s(3000 + 3600));
        assert_eq!(l.off(s(200_000)), s(200_000 + 1800));
    }

    #[test]
    fn restored_entries_are_frozen_but_do_not_switch_off() {
        let mut l = Limits::default();
        let step = [moved(1, 0, 1), moved(2, 0, 1), moved(3, 0, 1)];
        l.stepped(&step, s(0));
        l.restored(&step.map(|m| moved(m.entry, m.to, m.from)), s(5));
        assert!((1..=3).all(|e| l.rests(e, s(1804)) && !l.rests(e, s(1805))));
        assert_eq!(l.stepped(&[moved(9, 0, 1)], s(60)), None);
        assert_eq!(l.may_step(s(100)), Ok(2), "small steps for an hour");
    }

    #[test]
    fn a_second_restored_step_within_an_hour_switches_off() {
        let mut l = Limits::default();
        assert_eq!(l.restored(&[moved(1, 1, 0)], s(0)), None);
        assert_eq!(l.restored(&[moved(2, 1, 0)], s(3600)), None, "an hour later");
        assert_eq!(l.restored(&[moved(3, 1, 0)], s(4000)), Some(s(4000 + 1800)));
        assert_eq!(l.restored(&[moved(4, 1, 0)], s(6000)), None, "counted anew");
        assert_eq!(l.restored(&[moved(5, 1, 0)], s(6500)), Some(s(6500 + 3600)), "twice as long");
    }

    #[test]
    fn one_interface_at_a_time() {
        let mut one = OneAtATime::default();
        assert!(one.acquire("eth0", s(0)) && one.acquire("eth0", s(5)));
        assert!(!one.acquire("eth1", s(64)));
        one.release("eth1");
        assert!(!one.acquire("eth1", s(64)));
        one.release("eth0");
        assert!(one.acquire("eth1", s(64)));
        assert!(one.acquire("eth0", s(124)), "eth1 has not released it for a minute");
    }
}

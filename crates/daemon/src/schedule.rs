//! When to look at the host: shortly after the last notification, and at fixed intervals for changes without a notification.

use std::time::Duration;

/// How long it must be quiet before the service looks at the host: a driver that is bound sends many notifications.
pub const SETTLE: Duration = Duration::from_secs(2);
/// How long it must be quiet before the host is read for that look. Reading and planning take time, in particular on large hosts;
/// what was prepared is used only if nothing was heard since.
pub const PREPARE: Duration = Duration::from_secs(1);
/// Notifications that never end delay a look by at most this.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Shortest time from one transaction of the service to the next.
pub const APART: Duration = Duration::from_secs(10);
/// How often settings are compared whose changes come without a notification.
pub const COMPARE: Duration = Duration::from_secs(10);

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Something was heard: read the host and plan, but do not write yet.
    Prepare,
    /// Something was heard: discover the host.
    Look,
    /// Compare settings whose changes come without a notification.
    Compare,
    /// Nothing for this long, unless something is heard.
    Wait(Duration),
}

/// Times on a monotonic clock.
#[derive(Debug, Clone, Default)]
pub struct Schedule {
    /// The first and the last notification since the last look.
    heard: Option<(Duration, Duration)>,
    /// The host was read since the last notification.
    prepared: bool,
    compared: Duration,
    /// End of the last transaction of the service.
    wrote: Option<Duration>,
}

impl Schedule {
    /// Something was heard.
    pub fn heard(&mut self, now: Duration) {
        let first = self.heard.map_or(now, |(first, _)| first);
        self.heard = Some((first, now));
        self.prepared = false;
    }

    /// The host was read for the next look.
    pub fn prepared(&mut self) {
        self.prepared = true;
    }

    /// The host was discovered, or compared.
    pub fn looked(&mut self, now: Duration) {
        self.heard = None;
        self.compared = now;
    }

    /// A transaction of the service has ended.
    pub fn wrote(&mut self, now: Duration) {
        self.wrote = Some(now);
    }

    /// Whether another transaction may begin.
    pub fn may_write(&self, now: Duration) -> bool {
        self.wrote.is_none_or(|w| now >= w + APART)
    }

    /// What to do now.
    pub fn due(&self, now: Duration) -> Due {
        let compare = self.compared + COMPARE;
        let look = self.heard.map(|(first, last)| {
            let settled = (last + SETTLE).min(first + PATIENCE);
            settled.max(self.wrote.map_or(Duration::ZERO, |w| w + APART))
        });
        match look {
            Some(at) if at <= now => Due::Look,
            Some(at) if !self.prepared && at <= now + (SETTLE - PREPARE) => Due::Prepare,
            Some(at) if !self.prepared => Due::Wait(at - (SETTLE - PREPARE) - now),
            // A comparison in the middle of a reset would see half of it.
            Some(at) => Due::Wait(at - now),
            None if compare <= now => Due::Compare,
            None => Due::Wait(compare - now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn a_storm_is_one_look() {
        let mut schedule = Schedule::default();
        schedule.looked(s(100));
        schedule.heard(s(101));
        assert_eq!(schedule.due(s(101)), Due::Wait(s(1)));
        schedule.heard(s(102));
        assert_eq!(schedule.due(s(103)), Due::Prepare);
        schedule.prepared();
        assert_eq!(schedule.due(s(103)), Due::Wait(s(1)));
        assert_eq!(schedule.due(s(104)), Due::Look);
        schedule.looked(s(104));
        assert_eq!(schedule.due(s(104)), Due::Wait(COMPARE));
    }

    #[test]
    fn what_was_prepared_before_a_notification_is_prepared_again() {
        let mut schedule = Schedule::default();
        schedule.looked(s(100));
        schedule.heard(s(101));
        schedule.prepared();
        schedule.heard(s(102));
        assert_eq!(schedule.due(s(102)), Due::Wait(s(1)));
        assert_eq!(schedule.due(s(103)), Due::Prepare);
        // Preparing took longer than the settle time: the look follows at once.
        assert_eq!(schedule.due(s(105)), Due::Look);
    }

    #[test]
    fn notifications_without_end_delay_it_only_so_long() {
        let mut schedule = Schedule::default();
        schedule.looked(s(100));
        for n in 100..110 {
            schedule.heard(s(n));
            assert!(!matches!(schedule.due(s(n)), Due::Look), "{n}");
        }
        assert_eq!(schedule.due(s(110)), Due::Look);
    }

    #[test]
    fn transactions_are_apart() {
        let mut schedule = Schedule::default();
        schedule.looked(s(100));
        schedule.wrote(s(100));
        schedule.heard(s(101));
        assert!(!schedule.may_write(s(109)) && schedule.may_write(s(110)));
        assert_eq!(schedule.due(s(105)), Due::Wait(s(4)));
        assert_eq!(schedule.due(s(109)), Due::Prepare);
        assert_eq!(schedule.due(s(110)), Due::Look);
    }

    #[test]
    fn changes_without_a_notification_are_compared_at_intervals() {
        let mut schedule = Schedule::default();
        schedule.looked(s(100));
        assert_eq!(schedule.due(s(104)), Due::Wait(s(6)));
        assert_eq!(schedule.due(s(110)), Due::Compare);
    }
}

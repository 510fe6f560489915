//! Interfaces that the service pauses: a person requested it, another program moves settings back, or a transaction failed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The first pause; each further one is twice as long.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3600);
/// A program that moves something back this often is paused.
const TWICE: u32 = 2;
/// After this long without trouble, an interface counts as new.
const FORGET: Duration = Duration::from_secs(2 * 3600);

/// An interface that is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfacePause {
    /// Its name.
    pub interface: String,
    /// Until when, in seconds since 1970. `None`: until `resume`.
    pub until_unix: Option<u64>,
    /// Why.
    pub why: PauseReason,
}

/// Why an interface is paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// `ringwise daemon pause`.
    Command,
    /// A competing program moved settings back twice.
    Competing {
        /// Its name.
        program: String,
    },
    /// A transaction failed.
    Failed {
        /// What went wrong.
        why: String,
    },
}

#[derive(Debug, Clone)]
struct Trouble {
    times: u32,
    last: Duration,
    pauses: u32,
    until: Option<(Duration, u64, PauseReason)>,
}

/// Pauses of interfaces, on a monotonic clock. The pause of the whole host is not in it.
#[derive(Debug, Clone, Default)]
pub struct Pauses {
    by_command: BTreeSet<String>,
    trouble: BTreeMap<String, Trouble>,
}

/// The present moment on two clocks.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Monotonic, since boot.
    pub since_boot: Duration,
    /// Seconds since 1970.
    pub unix: u64,
}

impl Pauses {
    /// The pauses that users requested before a restart.
    pub fn requested<'a>(list: impl Iterator<Item = &'a InterfacePause>) -> Self {
        let told = list.filter(|p| p.why == PauseReason::Command).map(|p| p.interface.clone());
        Self { by_command: told.collect(), trouble: BTreeMap::new() }
    }

    /// `ringwise daemon pause DEV`
    pub fn pause(&mut self, interface: &str) {
        self.by_command.insert(interface.into());
    }

    /// `ringwise daemon resume DEV`: also ends a pause that the service chose itself.
    pub fn resume(&mut self, interface: &str) {
        self.by_command.remove(interface);
        self.trouble.remove(interface);
    }

    /// Ends every pause.
    pub fn resume_all(&mut self) {
        *self = Self::default();
    }

    /// A competing program moved settings back. Returns whether a pause begins.
    pub fn moved_back(&mut self, interface: &str, program: &str, now: Moment) -> bool {
        let t = self.of(interface, now);
        t.times += 1;
        if t.times < TWICE {
            return false;
        }
        t.begin(PauseReason::Competing { program: program.into() }, now);
        true
    }

    /// A transaction failed: trying again at once would fail again.
    pub fn failed(&mut self, interface: &str, why: &str, now: Moment) {
        self.of(interface, now).begin(PauseReason::Failed { why: why.into() }, now);
    }

    fn of(&mut self, interface: &str, now: Moment) -> &mut Trouble {
        let new = Trouble { times: 0, last: now.since_boot, pauses: 0, until: None };
        let t = self.trouble.entry(interface.into()).or_insert_with(|| new.clone());
        if now.since_boot.saturating_sub(t.last) > FORGET {
            *t = new;
        }
        t.last = now.since_boot;
        t
    }

    /// Ends pauses that are over. Returns whether there was one.
    pub fn expire(&mut self, now: Moment) -> bool {
        let over = |t: &&mut Trouble| t.until.as_ref().is_some_and(|(end, ..)| *end <= now.since_boot);
        self.trouble.values_mut().filter(over).map(|t| t.until = None).count() > 0
    }

    /// Names of the paused interfaces.
    pub fn names(&self) -> BTreeSet<String> {
        let own = self.trouble.iter().filter(|(_, t)| t.until.is_some()).map(|(name, _)| name);
        self.by_command.iter().chain(own).cloned().collect()
    }

    /// For others to read.
    pub fn list(&self) -> Vec<InterfacePause> {
        let told = self.by_command.iter().map(|interface| InterfacePause {
            interface: interface.clone(),
            until_unix: None,
            why: PauseReason::Command,
        });
        let own = self.trouble.iter().filter_map(|(interface, t)| {
            let (_, unix, why) = t.until.clone()?;
            Some(InterfacePause { interface: interface.clone(), until_unix: Some(unix), why })
        });
        told.chain(own).collect()
    }
}

impl Trouble {
    fn begin(&mut self, why: PauseReason, now: Moment) {
        let pause = FIRST.saturating_mul(1 << self.pauses.min(10)).min(LONGEST);
        self.pauses += 1;
        self.times = 0;
        self.until = Some((now.since_boot + pause, now.unix + pause.as_secs(), why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Moment {
        Moment { since_boot: Duration::from_secs(s), unix: 1000 + s }
    }

    #[test]
    fn a_program_that_moves_back_twice_is_left_longer_each_time() {
        let mut p = Pauses::default();
        assert!(!p.moved_back("eth0", "irqbalance", at(0)) && p.names().is_empty());
        assert!(p.moved_back("eth0", "irqbalance", at(20)));
        let until = |p: &Pauses| p.list().iter().filter_map(|x| x.until_unix).collect::<Vec<_>>();
        assert_eq!(until(&p), [1080]);
        assert_eq!(p.list()[0].why, PauseReason::Competing { program: "irqbalance".into() });
        p.expire(at(79));
        assert_eq!(p.names().len(), 1);
        p.expire(at(80));
        assert!(p.names().is_empty());
        assert!(!p.moved_back("eth0", "irqbalance", at(90)) && p.moved_back("eth0", "irqbalance", at(100)));
        assert_eq!(until(&p), [1220], "twice as long");
        for n in 0..20u64 {
            p.failed("eth0", "EIO", at(101 + n));
        }
        assert_eq!(until(&p), [1120 + 3600]);
        // After a long time without trouble it begins anew.
        p.expire(at(100_000));
        p.failed("eth0", "EIO", at(100_000));
        assert_eq!(until(&p), [101_060]);
    }

    #[test]
    fn people_pause_and_resume() {
        let mut p = Pauses::default();
        p.pause("eth0");
        p.failed("eth1", "EIO", at(0));
        p.expire(at(10_000_000));
        assert_eq!(
            p.list(),
            [InterfacePause { interface: "eth0".into(), until_unix: None, why: PauseReason::Command }]
        );
        p.resume("eth0");
        assert!(p.names().is_empty());
        p.pause("eth0");
        p.resume_all();
        assert!(p.list().is_empty());
    }
}

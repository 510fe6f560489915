//! Time on the simulated host: it passes when a program sleeps, and clocks jump when a test requests it.

use std::time::Duration;

use ringwise_sys::Clock;

use super::{Sim, State};

/// Seconds since 1970 at boot.
const BOOT: u64 = 1_790_000_000;

/// Events that change the clocks of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockJump {
    /// The wall clock is set forward or back by this many seconds. In a virtual machine that was paused only this
    /// happens.
    Wall(i64),
    /// The machine is suspended: time since boot and the wall clock go on, and no program runs or has slept meanwhile.
    Suspend(Duration),
}

impl Sim {
    /// Makes the clocks jump `after` from now; the jump happens while a program sleeps.
    pub fn jump(&self, after: Duration, jump: ClockJump) {
        let mut s = self.lock();
        let at = s.now + after;
        s.jumps.push((at, jump));
        s.jumps.sort_by_key(|j| j.0);
    }
}

impl State {
    /// Advances the time for programs by this much; everything that is due meanwhile happens.
    fn pass(&mut self, time: Duration) {
        let mut left = time;
        while let Some((at, jump)) = self.jumps.first().copied().filter(|(at, _)| *at <= self.now + left) {
            self.jumps.remove(0);
            left = left.saturating_sub(at.saturating_sub(self.now));
            self.now = self.now.max(at);
            match jump {
                ClockJump::Wall(seconds) => self.wall += seconds,
                ClockJump::Suspend(time) => self.now += time,
            }
        }
        self.now += left;
    }
}

impl Clock for Sim {
    fn since_boot(&self) -> Duration {
        self.alive().now
    }

    fn unix_time(&self) -> u64 {
        let s = self.alive();
        (BOOT + s.now.as_secs()).saturating_add_signed(s.wall)
    }

    /// Advances the clock of the simulation without waiting.
    fn sleep(&self, time: Duration) {
        let mut s = self.alive();
        let before = s.now;
        s.pass(time);
        // A link may be back.
        let now = s.now;
        if s.nics.iter().any(|n| n.bond.is_some()) {
            s.stale_all();
        }
        for e in s.extra.iter_mut().filter(|e| e.link_at > before && e.link_at <= now) {
            e.tree = None;
        }
        let in_use = s.in_use.clone();
        drop(s);
        in_use.iter().for_each(|dev| self.traffic(dev));
    }
}

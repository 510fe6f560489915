//! Faults that tests inject.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::{MutexGuard, Once};

use ringwise_model::errno::{EOPNOTSUPP, ETIMEDOUT};
use ringwise_sys::{Error, Result};

use super::{Sim, State};

/// The write that a fault strikes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// The k-th write from the last [`Sim::forget_writes`], counted from 0.
    Write(usize),
    /// Writes whose `write PATH` or request text contains this.
    Matching(String),
    /// Every write.
    Every,
}

/// How often a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// The first time that the write is met; later ones succeed.
    Once,
    /// From then on: for [`At::Write`] every write from the k-th.
    Always,
}

/// A fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimulatedFault {
    /// The kernel answers with this errno and changes nothing.
    Fail {
        /// Writes that fail.
        at: At,
        /// Number as on Linux, `22` for EINVAL.
        errno: i32,
        /// Whether an attempt to repeat the write succeeds.
        times: Times,
    },
    /// The kernel accepts the write silently, without effect.
    Ignore {
        /// Writes that have no effect.
        at: At,
    },
    /// The device is gone from the moment of this write.
    Vanish {
        /// The write that finds the device gone.
        at: At,
        /// Interface name; it need not be the one that is written to.
        dev: String,
    },
    /// The call does not come back until [`Sim::clear_faults`]; nothing happens.
    Hang {
        /// Writes that hang.
        at: At,
    },
    /// SIGKILL before the write takes effect.
    KillBefore {
        /// The last write that is tried.
        at: At,
    },
    /// SIGKILL after the write took effect.
    KillAfter {
        /// The last write that is done.
        at: At,
    },
}

/// The panic payload of a simulated kill. No code between here and the test may handle it.
#[derive(Debug)]
pub struct Killed;

/// Runs something that may be killed. Returns whether it was.
pub fn killed(f: impl FnOnce()) -> bool {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let shown = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.payload().is::<Killed>() {
                shown(info);
            }
        }));
    });
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(()) => false,
        Err(e) if e.is::<Killed>() => true,
        Err(e) => std::panic::resume_unwind(e),
    }
}

impl At {
    fn strikes(&self, what: &str, number: usize, onwards: bool) -> bool {
        match self {
            At::Write(k) => number == *k || (onwards && number > *k),
            At::Matching(text) => what.contains(text.as_str()),
            At::Every => true,
        }
    }
}

impl Sim {
    /// The state. If the process was killed, this does not return.
    pub(super) fn alive(&self) -> MutexGuard<'_, State> {
        let s = self.lock();
        if s.dead {
            drop(s);
            panic_any(Killed);
        }
        s
    }

    /// Whether a fault makes this request always fail with EOPNOTSUPP.
    pub(super) fn lacks_the_call(&self, what: &str) -> bool {
        let lacks = |f: &SimulatedFault| matches!(f, SimulatedFault::Fail { at: At::Matching(text), errno: EOPNOTSUPP, times: Times::Always } if what.contains(text.as_str()));
        self.lock().faults.iter().any(lacks)
    }

    pub(super) fn faulted(
        &self,
        what: &str,
        data: Option<&str>,
        act: impl FnOnce(&mut State) -> Result<()>,
    ) -> Result<()> {
        let mut s = self.alive();
        if s.outside {
            return act(&mut s);
        }
        let number = s.writes;
        s.writes += 1;
        let mut fail = None;
        let mut ignore = false;
        let mut hang = false;
        let mut kill = (false, false);
        let mut vanish = Vec::new();
        let mut spent = Vec::new();
        for (i, f) in s.faults.iter().enumerate() {
            match f {
                SimulatedFault::Fail { at, errno, times } if at.strikes(what, number, *times == Times::Always) => {
                    fail = Some(*errno);
                    if *times == Times::Once {
                        spent.push(i);
                    }
                }
                SimulatedFault::Ignore { at } if at.strikes(what, number, false) => ignore = true,
                SimulatedFault::Vanish { at, dev } if at.strikes(what, number, false) => vanish.push(dev.clone()),
                SimulatedFault::Hang { at } if at.strikes(what, number, false) => hang = true,
                SimulatedFault::KillBefore { at } if at.strikes(what, number, false) => kill.0 = true,
                SimulatedFault::KillAfter { at } if at.strikes(what, number, false) => kill.1 = true,
                _ => {}
            }
        }
        for i in spent.into_iter().rev() {
            s.faults.remove(i);
        }
        let end = |mut s: MutexGuard<'_, State>| -> ! {
            s.dead = true;
            drop(s);
            panic_any(Killed)
        };
        if kill.0 {
            end(s);
        }
        vanish.iter().for_each(|d| s.unplug(d));
        if hang {
            s.release = false;
            s.log.push(format!("{what} hangs"));
            while !s.release {
                s = self.released.wait(s).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
            return Err(Error::errno(what, ETIMEDOUT));
        }
        let result = match fail {
            Some(e) => Err(Error::errno(what, e)),
            None if ignore => Ok(()),
            None => act(&mut s),
        };
        let shown = data.map(|d| format!(" <- {}", d.trim_end())).unwrap_or_default();
        let how = result.as_ref().err().map(|e| format!(": {}", e.reason())).unwrap_or_default();
        s.log.push(format!("{what}{shown}{how}"));
        if kill.1 {
            end(s);
        }
        result
    }
}

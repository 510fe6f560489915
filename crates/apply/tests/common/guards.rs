//! Guards without a process: the messages that they get, and what they would do next.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringwise_apply::guard::guard;
use ringwise_apply::{Armed, Error, GuardError, Guardian, Job, Lost, OpenLock, Outcome, Policy, SignOfLife, Store};
use ringwise_sys::Clock;
use ringwise_testkit::sim::Sim;

use super::{Dir, State as _, host, policy};

/// The state of a guard in this process.
#[derive(Default)]
pub(crate) struct State {
    pub lock: Option<OpenLock<OwnedFd>>,
    pub armed: u32,
    /// How often it has read the journal.
    pub begun: u32,
    pub gone: bool,
    /// It has taken over. Its applier learns that at its next check; with `unheard` only at the end.
    pub took_over: bool,
    pub unheard: bool,
    /// When the applier gave signs of life, by the clock of this host.
    pub signs: Vec<Duration>,
    pub clock: Option<Arc<Sim>>,
    /// The applier is killed when it reports that it is done.
    pub kills_at_done: Option<Arc<Sim>>,
    /// The arguments of `done`.
    pub done: Vec<bool>,
}

#[derive(Clone, Default)]
pub(crate) struct Here {
    pub state: Arc<Mutex<State>>,
    pub refuses: bool,
    /// It dies as soon as it learns that a trial begins.
    pub dies_on_trial: bool,
}

impl std::fmt::Debug for Here {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Here").finish_non_exhaustive()
    }
}

struct End(Here);

impl Guardian for Here {
    fn arm(&self, job: &Job) -> Result<Box<dyn Armed>, GuardError> {
        if self.refuses {
            return Err(GuardError::Other("fork: EAGAIN (Resource temporarily unavailable)".into()));
        }
        let mut s = self.state.lock().unwrap();
        s.lock = Some(job.lock.try_clone().unwrap());
        s.armed += 1;
        Ok(Box::new(End(self.clone())))
    }

    fn arm_for_tables(&self, _: &std::path::Path) -> Result<Box<dyn Armed>, GuardError> {
        Err(GuardError::Other("these tests have no service".into()))
    }
}

impl Armed for End {
    fn is_there(&mut self) -> bool {
        let s = self.0.state.lock().unwrap();
        !s.gone && (!s.took_over || s.unheard)
    }

    fn begun(&mut self) -> Result<(), GuardError> {
        let mut s = self.0.state.lock().unwrap();
        s.begun += 1;
        if s.gone { Err(GuardError::Gone) } else { Ok(()) }
    }

    fn done(&mut self, on_trial: bool) -> Result<(), GuardError> {
        let mut s = self.0.state.lock().unwrap();
        s.done.push(on_trial);
        if let Some(sim) = s.kills_at_done.take() {
            drop(s);
            sim.kill();
        }
        if s.took_over {
            return Err(GuardError::TakenOver);
        }
        if !on_trial {
            s.lock = None;
        }
        if on_trial && self.0.dies_on_trial {
            s.lock = None;
            return Err(GuardError::Gone);
        }
        Ok(())
    }

    fn sign_of_life(&self) -> Option<SignOfLife> {
        let clock = self.0.state.lock().unwrap().clock.clone()?;
        let here = self.0.clone();
        Some(Arc::new(move || {
            let now = clock.since_boot();
            here.state.lock().unwrap().signs.push(now);
        }))
    }

    fn lost(&mut self) -> Lost {
        if self.0.state.lock().unwrap().took_over { Lost::TookOver } else { Lost::Died }
    }
}

impl Here {
    pub(crate) fn policy(&self) -> Policy {
        Policy { guard: Some(Arc::new(self.clone())), ..policy() }
    }

    /// The applier is dead or done: what the guard does, with the lock that it holds.
    pub(crate) fn acts(&self, sim: &Arc<Sim>, store: &Store) -> Result<Option<Outcome>, Error> {
        self.acts_on(1, sim, store)
    }

    /// The same of this transaction.
    pub(crate) fn acts_on(&self, id: u64, sim: &Arc<Sim>, store: &Store) -> Result<Option<Outcome>, Error> {
        let lock = self.state.lock().unwrap().lock.take();
        guard(&host(sim), store, id, Some(lock.expect("the lock")), None, &policy(), &mut |_| {})
    }

    /// The same, but the guard was started again without the lock.
    pub(crate) fn started_again(sim: &Arc<Sim>, dir: &Dir) -> Result<Option<Outcome>, Error> {
        guard(&host(sim), &dir.store(), 1, None, None, &policy(), &mut |_| {})
    }
}

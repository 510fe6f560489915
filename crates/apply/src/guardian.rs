//! The interface between the applying process and its guard.

use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use crate::guard_error::GuardError;
use crate::store::OpenLock;
use crate::takeover::{Halt, Lost, SignOfLife};

/// The guard of tables has no transaction of its own.
pub const FOR_TABLES: u64 = 0;

/// Starts guards.
pub trait Guardian: Debug + Send + Sync {
    /// Starts a guard, which is armed when this returns.
    ///
    /// Errors: why no guard could be started.
    fn arm(&self, job: &Job) -> Result<Box<dyn Armed>, GuardError>;
    /// Starts a guard that restores RSS tables when this process ends ([`crate::guard::guard_tables`]). The caller holds the lock.
    /// `dir`: the state directory.
    ///
    /// Errors: why no guard could be started.
    fn arm_for_tables(&self, dir: &Path) -> Result<Box<dyn Armed>, GuardError>;
    /// Does what does not need the lock and takes time, so that [`arm`](Self::arm) is quicker soon after, for the transaction with
    /// this number. What fails here is reported by `arm`. `dir`: the state directory.
    fn prepare(&self, _dir: &Path, _transaction: u64) {}
    /// The transaction does not take place: undoes what [`prepare`](Self::prepare) did.
    fn release(&self) {}
}

/// What a guard needs to know.
#[derive(Debug)]
pub struct Job<'a> {
    /// The state directory with the journal.
    pub dir: &'a Path,
    /// The lock, which the guard shares.
    pub lock: OpenLock<BorrowedFd<'a>>,
    /// Number of the transaction, whose journal the guard reads.
    pub transaction: u64,
}

/// The applier's connection to its guard. If it is dropped without [`done`](Armed::done), the guard treats the applier as
/// dead.
pub trait Armed {
    /// Whether the guard is alive and has not taken over.
    fn is_there(&mut self) -> bool;
    /// The journal's header is on disk. When this returns, the guard has read it, and the first write may follow.
    fn begun(&mut self) -> Result<(), GuardError>;
    /// The transaction's end is on disk. `on_trial`: the guard stays. Otherwise this waits for the guard to exit, for a limited
    /// time.
    fn done(&mut self, on_trial: bool) -> Result<(), GuardError>;
    /// A sentence about the guard for the user, if there is one.
    fn note(&self) -> Option<String> {
        None
    }
    /// The function to call after every action. `None`: the guard needs no signs of life.
    fn sign_of_life(&self) -> Option<SignOfLife> {
        None
    }
    /// Why the guard is gone or does not answer.
    fn lost(&mut self) -> Lost {
        Lost::Died
    }
}

/// The guard's view of the applier.
pub trait WatchedApplier {
    /// Waits at most this long for something new.
    fn look(&mut self, wait: Duration) -> ApplierState;
    /// Acknowledges to the applier what was seen.
    fn answer(&mut self);
    /// The applier's PID, and what keeps it from giving a sign of life.
    fn halted(&self) -> (Option<u32>, Halt);
    /// Notifies the applier that the guard has taken over.
    fn take_over(&mut self);
}

/// What the guard sees of the applier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplierState {
    /// Nothing new.
    Quiet,
    /// It gave a sign of life.
    Alive,
    /// The journal has its header.
    Begun,
    /// The transaction has an end on disk.
    Done {
        /// It waits for its confirmation, so the guard stays.
        on_trial: bool,
    },
    /// The applier died; the text describes how the guard noticed it.
    Died(String),
}

/// A guard that was started. It is released if the transaction does not take place.
pub(crate) struct ReleasedGuard(pub Option<Box<dyn Armed>>);

impl ReleasedGuard {
    pub(crate) fn keep(mut self) -> Option<Box<dyn Armed>> {
        self.0.take()
    }
}

impl Drop for ReleasedGuard {
    fn drop(&mut self) {
        // After a panic the guard notices the end of the process by itself.
        if let Some(guard) = self.0.as_mut().filter(|_| !std::thread::panicking()) {
            let _ = guard.done(false); // nothing was changed, so there is no setting to restore
        }
    }
}

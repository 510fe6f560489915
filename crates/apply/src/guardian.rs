//! What the applier and its guard know of each other.

use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use crate::store::OpenLock;
use crate::takeover::{Halt, Lost, SignOfLife};

/// Starts guards.
pub trait Guardian: Debug + Send + Sync {
    /// Starts a guard, which is armed when this returns.
    ///
    /// Errors: why no guard could be started.
    fn arm(&self, job: &Job) -> Result<Box<dyn Armed>, String>;
}

/// What a guard has to know.
#[derive(Debug)]
pub struct Job<'a> {
    /// The state directory with the journal.
    pub dir: &'a Path,
    /// The lock, to be shared.
    pub lock: OpenLock<BorrowedFd<'a>>,
    pub transaction: u64,
}

/// The applier's end of a guard. Dropped without a word it means death.
pub trait Armed {
    fn is_there(&mut self) -> bool;
    /// The journal has its header on disk. When this returns the guard has it in memory, and the first write may come.
    fn begun(&mut self) -> Result<(), String>;
    /// The transaction has an end on disk. `on_trial`: the guard stays; else it is waited for, within bounds.
    fn done(&mut self, on_trial: bool) -> Result<(), String>;
    /// What is worth saying about it.
    fn note(&self) -> Option<String> {
        None
    }
    /// What to call whenever something is done. None: it needs no signs of life.
    fn sign_of_life(&self) -> Option<SignOfLife> {
        None
    }
    /// Why it is not there, or does not answer.
    fn lost(&mut self) -> Lost {
        Lost::Died
    }
}

/// The guard's view of the applier.
pub trait Watched {
    /// Waits at most this long for something new.
    fn look(&mut self, wait: Duration) -> Seen;
    /// Tells the applier that what was seen is taken note of.
    fn answer(&mut self);
    /// Its process, and what keeps that from giving a sign of life.
    fn halted(&self) -> (Option<u32>, Halt);
    /// Tells the applier that nothing it does counts any more.
    fn take_over(&mut self);
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Nothing new.
    Quiet,
    /// It gave a sign of life.
    Alive,
    /// The journal has its header.
    Begun,
    Done {
        on_trial: bool,
    },
    /// And how that is known.
    Died(String),
}

/// A guard that is let go when nothing comes of the transaction.
pub(crate) struct Sent(pub Option<Box<dyn Armed>>);

impl Sent {
    pub(crate) fn keep(mut self) -> Option<Box<dyn Armed>> {
        self.0.take()
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        // In a panic it is left to notice the death by itself.
        if let Some(guard) = self.0.as_mut().filter(|_| !std::thread::panicking()) {
            let _ = guard.done(false); // there is nothing that it could miss
        }
    }
}

//! A guard that is started before its transaction begins, because starting a process takes time.
//!
//! It connects, and waits for the lock. If the transaction does not take place, or gets another number, the connection is closed,
//! and the guard ends without a trace.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::guard_error::GuardError;
use crate::guard_start::{GuardSocket, accept, first_has_ended, is_ours};

/// The guard of the next transaction, if it was started.
#[derive(Debug, Clone, Default)]
pub struct GuardAhead(Arc<Mutex<Option<StartedAhead>>>);

impl GuardAhead {
    /// Whether a guard waits for its transaction.
    pub fn is_started(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn is_for(&self, dir: &Path, transaction: u64) -> bool {
        let started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        started.as_ref().is_some_and(|s| s.dir == dir && s.transaction == transaction)
    }

    pub(crate) fn set(&self, started: Option<StartedAhead>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = started;
    }

    pub(crate) fn take(&self) -> Option<StartedAhead> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A guard that has yet to get the lock. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct StartedAhead {
    /// The state directory.
    pub dir: PathBuf,
    pub transaction: u64,
    pub door: GuardSocket,
    /// systemd-run, or the first process of the guard.
    pub starter: Option<Child>,
    pub by_systemd: bool,
    pub program: PathBuf,
}

impl StartedAhead {
    /// Waits for it to connect.
    pub(crate) fn accept(&mut self, end: Instant) -> Result<UnixStream, GuardError> {
        match self.starter.take() {
            Some(mut run) if self.by_systemd => accept(&self.door.listener, &is_ours, Some(&mut run), end),
            first => {
                first.map_or(Ok(()), |first| first_has_ended(first, &self.program))?;
                accept(&self.door.listener, &is_ours, None, end)
            }
        }
    }
}

impl Drop for StartedAhead {
    fn drop(&mut self) {
        if let Some(mut starter) = self.starter.take() {
            let _ = starter.kill(); // in general it has ended already
            let _ = starter.wait();
        }
    }
}

//! The guard as a process: it is started outside everything that may die with the applier (`guard_start`), and talks to it (`guard_link`).
//!
//! ```text
//!   applier: listens at a file for its own user ── a program to start (`guard_place`) ── systemd-run, else own session and
//!            control group ──► guard
//!            ◄─────────────────────────────── connects ────────────────────────────────────────────
//!            ── "lock" with the open files of the lock ──►  holds a process descriptor of the applier
//!            ◄─────────────────────────────── "armed" ──────
//!            ── "begun" ──► "ok"                    it has read the journal's header
//!            ── "alive", at most one a second ──►
//!            ◄── "taken"                            it heard nothing for too long, and puts back
//!            ── "done" or "trial" ──► "ok"                  or the end of the stream: dead
//! ```

use std::fmt;
use std::io::Write;
use std::os::fd::BorrowedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ringwise_sys::guardian;

use crate::guard_ahead::{GuardAhead, StartedAhead};
use crate::guard_error::{GuardError, UnusableFiles};
use crate::guard_link::{LOCK, Lines, Linked, TABLES};
use crate::guard_place::{Place, Search, TestedProgram, test_installed};
use crate::guard_start::{
    EACH, GuardSocket, SLOW, Unit, accept, first_has_ended, guard_args, has_systemd, is_ours, start_by_ourselves,
    start_by_systemd,
};
use crate::guardian::FOR_TABLES;
use crate::{Armed, Guardian, Job, Policy};

/// Starts `ringwise __guard`.
#[derive(Debug, Clone)]
pub struct Process {
    /// The program, which is run from where it is installed or from a copy.
    pub program: PathBuf,
    /// Start the guard only from a copy, wherever the program is installed.
    pub copies_only: bool,
    /// Where to copy the program if no copy in the state directory can be used.
    pub run: PathBuf,
    /// Deadline for the guard to be armed, and for each of its answers.
    pub bound: Duration,
    /// How long this process may give no sign of life, see [`crate::Policy::silence`].
    pub silence: Duration,
    /// What this process knows about the installed program.
    pub tested: TestedProgram,
    /// The guard that was started for the next transaction.
    pub ahead: GuardAhead,
}

impl Default for Process {
    fn default() -> Self {
        let slow = std::env::var(SLOW).ok().and_then(|t| t.parse().ok()).map_or(Duration::ZERO, Duration::from_millis);
        // A host without free CPU time takes seconds to start a program, and is the one that needs tuning.
        let bound = Duration::from_secs(60).max(slow * 2);
        let silence = Policy::default().silence + slow;
        Self {
            program: "/proc/self/exe".into(),
            copies_only: false,
            run: "/run/ringwise".into(),
            bound,
            silence,
            tested: TestedProgram::default(),
            ahead: GuardAhead::default(),
        }
    }
}

impl Guardian for Process {
    fn arm(&self, job: &Job) -> Result<Box<dyn Armed>, GuardError> {
        let (unit, silence) = (Unit::of(job.transaction), self.silence_args());
        self.start(job.dir, job.transaction, &unit, &silence, Some(job))
    }

    fn arm_for_tables(&self, dir: &Path) -> Result<Box<dyn Armed>, GuardError> {
        let unit = Unit {
            name: format!("ringwise-balance-{}", std::process::id()),
            description: "ringwise: restores RSS tables when the service ends".into(),
        };
        self.start(dir, FOR_TABLES, &unit, &[], None)
    }

    fn prepare(&self, dir: &Path, transaction: u64) {
        let Ok(dir) = dir.canonicalize() else { return };
        if self.copies_only || self.ahead.is_for(&dir, transaction) {
            return;
        }
        self.release();
        if let Ok(program) = test_installed(&self.program, &self.tested, Instant::now() + self.bound) {
            self.ahead.set(self.start_ahead(program, dir, transaction).ok());
        }
    }

    fn release(&self) {
        drop(self.ahead.take());
    }
}

impl Process {
    fn silence_args(&self) -> [String; 2] {
        ["--silence-ms".into(), self.silence.as_millis().to_string()]
    }

    /// Starts a guard that waits for the lock.
    fn start_ahead(&self, program: PathBuf, dir: PathBuf, transaction: u64) -> Result<StartedAhead, GuardError> {
        let door = GuardSocket::ahead(&dir).map_err(GuardError::Socket)?;
        let args = guard_args(transaction, &door, &dir, &self.silence_args());
        let by_systemd = has_systemd(&dir);
        let starter = if by_systemd {
            start_by_systemd(&program, &args, &Unit::ahead_of(transaction), true)?
        } else {
            start_by_ourselves(&program, &args)?
        };
        Ok(StartedAhead { dir, transaction, door, starter: Some(starter), by_systemd, program })
    }

    /// Hands the lock to the guard that was started ahead, if there is one for this transaction. `None`: a guard has to be started.
    fn armed_ahead(&self, dir: &Path, job: &Job) -> Option<Box<dyn Armed>> {
        let mut started = self.ahead.take().filter(|s| s.dir == dir && s.transaction == job.transaction)?;
        // If it does not answer, this leaves time for another one.
        let end = Instant::now() + self.bound / 4;
        let stream = started.accept(end).and_then(|stream| self.greet(stream, Some(job), end)).ok()?;
        Some(Box::new(Linked { lines: Lines::new(stream), bound: self.bound, note: None, taken: false }))
    }

    /// `more`: further arguments; `job`: with the lock that the guard takes over.
    fn start(
        &self,
        dir: &Path,
        transaction: u64,
        unit: &Unit,
        more: &[String],
        job: Option<&Job>,
    ) -> Result<Box<dyn Armed>, GuardError> {
        let dir = dir.canonicalize().map_err(|error| GuardError::Directory { path: dir.into(), error })?;
        let search = || Search {
            program: &self.program,
            copies_only: self.copies_only,
            dir: &dir,
            run: &self.run,
            transaction,
            end: Instant::now() + self.bound,
            tested: &self.tested,
        };
        let start = || self.start_from(&search().find()?, &dir, transaction, unit, more, job);
        if let Some(armed) = job.and_then(|job| self.armed_ahead(&dir, job)) {
            search().clean();
            return Ok(armed);
        }
        let known = self.tested.is_set();
        let mut started = start();
        if let Err(e) = &started {
            self.tested.forget();
            // The installed program passed its test some time ago and may be unusable since: test it again, or find another. A
            // guard that connected did run.
            if known && !matches!(e, GuardError::Mute(_)) {
                started = start();
            }
        }
        if started.is_err() {
            search().clean();
        }
        started
    }

    fn start_from(
        &self,
        place: &Place,
        dir: &Path,
        transaction: u64,
        unit: &Unit,
        more: &[String],
        job: Option<&Job>,
    ) -> Result<Box<dyn Armed>, GuardError> {
        // A host on which the search took most of the time needs as much again to start the guard.
        let end = Instant::now() + self.bound;
        // After the search, because the search removes the files of guards that were killed.
        let door = GuardSocket::open(dir, transaction).map_err(GuardError::Socket)?;
        let args = guard_args(transaction, &door, dir, more);
        let (found, note) = self.launch(place, &args, &door.listener, dir, unit, end);
        let armed = found.and_then(|stream| self.greet(stream, job, end));
        let (stream, note) = match (armed, note) {
            (Ok(stream), note) => (stream, note.map(|n| n.to_string())),
            (Err(error), Some(Note::WithoutSystemd(systemd))) => {
                return Err(GuardError::BothWays { error: Box::new(error), systemd: Box::new(systemd) });
            }
            (Err(error), _) => return Err(error),
        };
        let lines = Lines::new(stream);
        Ok(Box::new(Linked { lines, bound: self.bound, note, taken: false }))
    }
}

impl Process {
    /// Starts the guard with systemd if that is the first process and sees the same state directory; otherwise ringwise starts it
    /// itself. Returns a note where the user should know about it.
    fn launch<'p>(
        &self,
        place: &'p Place,
        args: &[String],
        listener: &UnixListener,
        dir: &Path,
        unit: &Unit,
        end: Instant,
    ) -> (Result<UnixStream, GuardError>, Option<Note<'p>>) {
        let mut note = None;
        if has_systemd(dir) {
            // If systemd does not answer, this leaves time for the other way.
            let half = Instant::now() + end.saturating_duration_since(Instant::now()) / 2;
            let me = std::process::id().to_string();
            let run = start_by_systemd(&place.path(&me), args, unit, place.only_once().is_none());
            match run.and_then(|mut run| accept(listener, &is_ours, Some(&mut run), half)) {
                Ok(stream) => return (Ok(stream), place.only_once().map(Note::FromMemory)),
                Err(e) => note = Some(Note::WithoutSystemd(e)),
            }
        }
        let program = place.path("self");
        let started = start_by_ourselves(&program, args).and_then(|first| first_has_ended(first, &program));
        (started.and_then(|()| accept(listener, &is_ours, None, end)), note)
    }

    /// `job`: with the lock of the transaction, which the guard takes over.
    fn greet(&self, stream: UnixStream, job: Option<&Job>, end: Instant) -> Result<UnixStream, GuardError> {
        let talk = || -> Result<(), GuardError> {
            let left = end.saturating_duration_since(Instant::now()).max(EACH);
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(left))?;
            stream.set_write_timeout(Some(left))?;
            match job {
                Some(job) => {
                    let both: Vec<BorrowedFd> = [Some(job.lock.file), job.lock.socket].into_iter().flatten().collect();
                    guardian::send_fds(&stream, LOCK, &both)?;
                }
                None => (&stream).write_all(TABLES)?,
            }
            Lines::new(stream.try_clone()?).expect("armed")
        };
        talk().map_err(|e| GuardError::Mute(Box::new(e)))?;
        Ok(stream)
    }
}

/// What the user should know about how the guard was started.
enum Note<'p> {
    /// The guard runs from memory and cannot be started again. Holds why no file could be used.
    FromMemory(&'p UnusableFiles),
    /// systemd should have started it, but failed.
    WithoutSystemd(GuardError),
}

impl fmt::Display for Note<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FromMemory(why) => {
                write!(f, "the guard runs from memory, so it cannot be restarted if it is killed: {why}")
            }
            Self::WithoutSystemd(e) => write!(f, "the guard runs without systemd: {e}"),
        }
    }
}

#[cfg(test)]
#[path = "guard_process_tests.rs"]
mod tests;

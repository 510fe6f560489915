//! The connection between the applier and its guard, and the messages on it.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ringwise_sys::{guardian, local, proc};

use crate::guard_error::GuardError;
use crate::guardian::{ApplierState, WatchedApplier};
use crate::{Armed, Halt, Lost, OpenLock, SignOfLife};

/// First message: with the lock of a transaction, or without a lock.
pub(crate) const LOCK: &[u8] = b"lock\n";
pub(crate) const TABLES: &[u8] = b"tables\n";
/// Interval between two signs of life.
const SIGN: Duration = Duration::from_secs(1);
/// How long to wait for a guard that has taken over and restores the settings, channels and links included.
const PATIENCE: Duration = Duration::from_secs(120);

/// Messages of the other end, one a line.
pub(crate) struct Lines {
    stream: Arc<UnixStream>,
    rest: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream: Arc::new(stream), rest: Vec::new() }
    }

    /// The next message, if a whole line has arrived.
    fn word(&mut self) -> Option<String> {
        let end = self.rest.iter().position(|b| *b == b'\n')?;
        let line: Vec<u8> = self.rest.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).trim_end().to_string())
    }

    /// Waits for more, within the stream's timeout. `false`: the stream has ended.
    fn more(&mut self) -> io::Result<bool> {
        let mut text = [0; 64];
        let n = (&*self.stream).read(&mut text)?;
        self.rest.extend_from_slice(&text[..n]);
        Ok(n > 0)
    }

    fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            match self.word() {
                None if !self.more()? => return Ok(None),
                None => {}
                word => return Ok(word),
            }
        }
    }

    pub(crate) fn expect(&mut self, expected: &'static str) -> Result<(), GuardError> {
        match self.next()? {
            Some(found) if found == expected => Ok(()),
            Some(found) => Err(GuardError::OtherWord { found, expected }),
            None => Err(GuardError::Gone),
        }
    }
}

/// The applier's end.
pub(crate) struct Linked {
    pub(crate) lines: Lines,
    pub(crate) bound: Duration,
    pub(crate) note: Option<String>,
    /// The guard has sent that it takes over.
    pub(crate) taken: bool,
}

impl Linked {
    fn say(&mut self, word: &str) -> Result<(), GuardError> {
        self.lines.stream.set_read_timeout(Some(self.bound))?;
        (&*self.lines.stream).write_all(format!("{word}\n").as_bytes())?;
        match self.lines.next()? {
            Some(found) if found == "ok" => Ok(()),
            Some(found) if found == "taken" => {
                self.taken = true;
                Err(GuardError::TakenOver)
            }
            Some(found) => Err(GuardError::OtherWord { found, expected: "ok" }),
            None => Err(GuardError::Gone),
        }
    }
}

impl Armed for Linked {
    fn is_there(&mut self) -> bool {
        // The guard sends nothing while it waits, so anything to read means that it ended.
        let quiet = || guardian::readable(&[self.lines.stream.as_fd()], Duration::ZERO).is_ok_and(|r| !r[0]);
        !self.taken && self.lines.rest.is_empty() && quiet()
    }

    fn begun(&mut self) -> Result<(), GuardError> {
        self.say("begun")
    }

    fn done(&mut self, on_trial: bool) -> Result<(), GuardError> {
        self.say(if on_trial { "trial" } else { "done" })?;
        // The guard holds the lock until it has exited.
        if !on_trial && self.lines.more()? {
            return Err(GuardError::NotEnded);
        }
        Ok(())
    }

    fn note(&self) -> Option<String> {
        self.note.clone()
    }

    fn sign_of_life(&self) -> Option<SignOfLife> {
        let (stream, last) = (Arc::downgrade(&self.lines.stream), Mutex::new(None::<Instant>));
        Some(Arc::new(move || {
            // If another thread is sending, one sign of life is enough.
            let Ok(mut last) = last.try_lock() else { return };
            if last.is_none_or(|t| t.elapsed() >= SIGN)
                && let Some(stream) = stream.upgrade()
            {
                *last = Some(Instant::now());
                let _ = (&*stream).write_all(b"alive\n"); // whether the guard is still there is checked elsewhere
            }
        }))
    }

    fn lost(&mut self) -> Lost {
        let _ = self.lines.stream.set_read_timeout(Some(self.bound)); // if this fails, the read below waits until the guard ends
        while !self.taken
            && let Ok(Some(word)) = self.lines.next()
        {
            self.taken = word == "taken";
        }
        if !self.taken {
            return Lost::Died;
        }
        // The guard ends when it has restored the settings.
        let _ = self.lines.stream.set_read_timeout(Some(PATIENCE));
        while let Ok(true) = self.lines.more() {}
        Lost::TookOver
    }
}

/// The guard's end.
pub struct GuardLink {
    lines: Lines,
    pid: Option<u32>,
    process: Option<OwnedFd>,
}

impl GuardLink {
    /// Reports to the applier and takes the lock from it. Without a lock: the guard is for tables. `None`: the applier needs no
    /// guard any more, and has changed nothing.
    ///
    /// Errors: the applier is gone, or the peer is not the applier.
    pub fn connect(name: &str, bound: Duration) -> io::Result<Option<(Self, Option<OpenLock<OwnedFd>>)>> {
        let stream = local::connect(name, Some(bound))?;
        stream.set_read_timeout(Some(bound))?;
        stream.set_write_timeout(Some(bound))?;
        let peer = guardian::peer(&stream)?;
        if peer.uid != proc::euid() {
            return Err(io::Error::other(format!("the process at the other end belongs to user {}", peer.uid)));
        }
        let mut text = [0; 64];
        // The applier waits for an answer to this message before it writes anything.
        let (n, fds) = match guardian::recv_fds(&stream, &mut text) {
            Ok((0, _)) => return Ok(None),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionReset) => {
                return Ok(None);
            }
            other => other?,
        };
        let mut fds = fds.into_iter();
        let lock = match (fds.next(), fds.next(), fds.next()) {
            (Some(file), socket, None) if &text[..n] == LOCK => Some(OpenLock { file, socket }),
            (None, None, None) if &text[..n] == TABLES => None,
            _ => return Err(io::Error::other(format!("the lock was not handed over (received {n} bytes)"))),
        };
        // Without a pidfd, or in another PID namespace, the end of the stream shows that the process has ended.
        let process = peer.pid.and_then(|p| guardian::pidfd(p).ok());
        Ok(Some((Self { lines: Lines::new(stream), pid: peer.pid, process }, lock)))
    }

    /// From now on all settings are restored if the applier dies.
    pub fn armed(&mut self) -> io::Result<()> {
        self.say("armed")
    }

    fn say(&self, word: &str) -> io::Result<()> {
        (&*self.lines.stream).write_all(format!("{word}\n").as_bytes())
    }

    /// What the applier's next message means, if a whole line has arrived.
    fn heard(&mut self) -> Option<ApplierState> {
        Some(match self.lines.word()?.as_str() {
            "alive" => ApplierState::Alive,
            "begun" => ApplierState::Begun,
            "done" => ApplierState::Done { on_trial: false },
            "trial" => ApplierState::Done { on_trial: true },
            _ => self.died(),
        })
    }

    fn died(&self) -> ApplierState {
        let who = self.pid.map(|p| format!(" ({p})")).unwrap_or_default();
        ApplierState::Died(format!("the process that applied it{who} died"))
    }
}

impl WatchedApplier for GuardLink {
    fn look(&mut self, wait: Duration) -> ApplierState {
        if let Some(seen) = self.heard() {
            return seen;
        }
        let fds: Vec<_> =
            [Some(self.lines.stream.as_fd()), self.process.as_ref().map(AsFd::as_fd)].into_iter().flatten().collect();
        let ready = match guardian::readable(&fds, wait) {
            Ok(r) => r,
            Err(_) => return self.died(),
        };
        // Read its messages first: it may have ended since it sent them.
        if ready[0] {
            return match self.lines.more() {
                Ok(true) => self.heard().unwrap_or(ApplierState::Quiet),
                _ => self.died(),
            };
        }
        // One of its threads may hang in the kernel, and keep the process and its open files for that long.
        let ended = ready.get(1) == Some(&true) || self.pid.is_some_and(guardian::ended);
        if ended { self.died() } else { ApplierState::Quiet }
    }

    fn answer(&mut self) {
        let _ = self.say("ok"); // an applier that does not wait for it is gone, which the next look shows
    }

    fn halted(&self) -> (Option<u32>, Halt) {
        let halt = match self.pid.map(guardian::state) {
            Some(Ok(Some('T' | 't'))) => Halt::Stopped,
            Some(Ok(Some('D'))) => Halt::InKernel,
            _ => Halt::Silent,
        };
        (self.pid, halt)
    }

    fn take_over(&mut self) {
        let _ = self.say("taken"); // an applier that does not read it sees the connection close
    }
}

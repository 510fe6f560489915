//! The guard as a process: how it is started outside everything that may die with the applier, and the protocol between the two.
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
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ringwise_sys::{guardian, local, proc, trust};

use crate::guard_error::{GuardError, UnusableFiles};
use crate::guard_place::{Place, Search, Tested, copy_path, spawn, test_installed};
use crate::guardian::{ApplierState, FOR_TABLES, Watched};
use crate::{Armed, Guardian, Halt, Job, Lost, OpenLock, Policy, SignOfLife};

/// systemd-run is the only external program that is started, and it is optional.
const SYSTEMD_RUN: [&str; 2] = ["/usr/bin/systemd-run", "/bin/systemd-run"];
/// Extends the deadlines of device calls on slow machines, and those of the guard.
const SLOW: &str = "RINGWISE_DEVICE_DEADLINE_MS";
const EACH: Duration = Duration::from_millis(10);
/// First message: with the lock of a transaction, or without a lock.
const LOCK: &[u8] = b"lock\n";
const TABLES: &[u8] = b"tables\n";
/// Interval between two signs of life.
const SIGN: Duration = Duration::from_secs(1);
/// How long to wait for a guard that has taken over and restores the settings, channels and links included.
const PATIENCE: Duration = Duration::from_secs(120);

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
    pub tested: Tested,
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
            tested: Tested::default(),
        }
    }
}

/// The socket at which the guard connects. It is a file in the state directory, to which no other user can connect: abstract
/// names are listed in /proc/net/unix, so any user could fill the queue of such a socket.
struct Door {
    listener: UnixListener,
    name: String,
}

impl Door {
    fn open(dir: &Path, transaction: u64) -> io::Result<Self> {
        let file = format!("{}.sock", copy_path(dir, transaction).display());
        let (listener, name) = match local::listen(&file) {
            Ok(listener) => (listener, file),
            // The disk is full, or the file system has no sockets: fall back to an abstract name and refuse connections of other
            // users.
            Err(_) => {
                let name = format!("@ringwise-guard-{:032x}", u128::from_ne_bytes(trust::random()?));
                (local::listen(&name)?, name)
            }
        };
        let door = Self { listener, name };
        door.listener.set_nonblocking(true)?;
        Ok(door)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if !self.name.starts_with('@') {
            let _ = fs::remove_file(&self.name); // the next run removes it
        }
    }
}

impl Guardian for Process {
    fn arm(&self, job: &Job) -> Result<Box<dyn Armed>, GuardError> {
        let unit = Unit {
            name: format!("ringwise-trial-{}", job.transaction),
            description: format!("ringwise: guard of transaction {}", job.transaction),
        };
        let silence = ["--silence-ms".into(), self.silence.as_millis().to_string()];
        self.start(job.dir, job.transaction, &unit, &silence, Some(job))
    }

    fn arm_for_tables(&self, dir: &Path) -> Result<Box<dyn Armed>, GuardError> {
        let unit = Unit {
            name: format!("ringwise-balance-{}", std::process::id()),
            description: "ringwise: restores RSS tables when the service ends".into(),
        };
        self.start(dir, FOR_TABLES, &unit, &[], None)
    }

    fn prepare(&self) {
        if !self.copies_only {
            test_installed(&self.program, &self.tested, Instant::now() + self.bound);
        }
    }
}

impl Process {
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
        let door = Door::open(dir, transaction).map_err(GuardError::Socket)?;
        let mut args: Vec<String> = vec!["__guard".into(), "--transaction".into(), transaction.to_string()];
        args.extend(["--socket".into(), door.name.clone()]);
        args.extend(["--state-dir".into(), dir.display().to_string()]);
        args.extend_from_slice(more);
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

/// A transient unit of systemd.
struct Unit {
    name: String,
    description: String,
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
        if Path::new("/run/systemd/system").is_dir() && guardian::shared_with_init(dir) {
            // If systemd does not answer, this leaves time for the other way.
            let half = Instant::now() + end.saturating_duration_since(Instant::now()) / 2;
            let me = std::process::id().to_string();
            let run = by_systemd(&place.path(&me), args, unit, place.only_once().is_none());
            match run.and_then(|mut run| accept(listener, &is_ours, Some(&mut run), half)) {
                Ok(stream) => return (Ok(stream), place.only_once().map(Note::FromMemory)),
                Err(e) => note = Some(Note::WithoutSystemd(e)),
            }
        }
        let started = by_ourselves(&place.path("self"), args);
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

fn by_systemd(program: &Path, args: &[String], unit: &Unit, again: bool) -> Result<Child, GuardError> {
    let run = SYSTEMD_RUN.iter().find(|p| Path::new(p).exists()).ok_or(GuardError::NoSystemdRun)?;
    let mut c = Command::new(run);
    c.args(["--quiet", "--collect", "--no-ask-password"]);
    c.arg(format!("--unit={}", unit.name)).arg(format!("--description={}", unit.description));
    // When systemd stops the service, the guard ends at once: a shutdown loses the settings anyway and need not wait.
    let mut properties = vec!["OOMScoreAdjust=-1000", "KillSignal=SIGKILL"];
    if again {
        // 203: systemd cannot execute the program, now or later.
        properties.extend(["Restart=on-failure", "RestartSec=1", "RestartPreventExitStatus=203"]);
    }
    c.args(properties.iter().map(|p| format!("--property={p}")));
    if let Ok(slow) = std::env::var(SLOW) {
        c.arg(format!("--setenv={SLOW}={slow}"));
    }
    c.arg("--").arg(program).args(args);
    c.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    c.spawn().map_err(|error| GuardError::NotStarted { program: run.into(), error })
}

/// The first process leaves session, terminal and open files behind, starts the second process, and exits.
fn by_ourselves(program: &Path, args: &[String]) -> Result<(), GuardError> {
    let mut c = Command::new(program);
    c.args(args).arg("--detach").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let out = spawn(&mut c).and_then(Child::wait_with_output);
    let out = out.map_err(|error| GuardError::NotStarted { program: program.into(), error })?;
    if out.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&out.stderr).trim().to_string();
    Err(GuardError::Ended { status: out.status, words })
}

/// Any user may find an abstract name; only a process of our own user is the guard.
fn is_ours(stream: &UnixStream) -> bool {
    guardian::peer(stream).is_ok_and(|p| p.uid == proc::euid())
}

/// Waits for the guard to connect. `starter`: the program that starts the guard; if it fails, the waiting ends.
fn accept(
    listener: &UnixListener,
    ours: &dyn Fn(&UnixStream) -> bool,
    mut starter: Option<&mut Child>,
    end: Instant,
) -> Result<UnixStream, GuardError> {
    let begin = Instant::now();
    let mut failed = None;
    let mut strangers = 0u64;
    loop {
        let idle = match listener.accept() {
            Ok((s, _)) if ours(&s) => {
                if let Some(c) = starter {
                    // systemd-run only waits for systemd to report the job, which adds nothing.
                    let _ = c.kill();
                    let _ = c.wait();
                }
                return Ok(s);
            }
            // Accept the next connection at once: the guard may be queued behind many others.
            Ok(_) => {
                strangers += 1;
                false
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => true,
            // The peer closed the connection before it was accepted.
            Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => false,
            Err(e) => return Err(GuardError::Accept(e)),
        };
        if let Some(f) = failed {
            return Err(f);
        }
        if let Some(c) = starter.as_deref_mut()
            && let Ok(Some(status)) = c.try_wait()
            && !status.success()
        {
            let mut text = String::new();
            if let Some(mut err) = c.stderr.take() {
                let _ = err.read_to_string(&mut text); // its status alone is enough
            }
            failed = Some(GuardError::SystemdRun { status, words: text.trim().into() });
        }
        if Instant::now() >= end {
            if let Some(c) = starter {
                let _ = c.kill();
                let _ = c.wait();
            }
            return Err(GuardError::NoReport { after: begin.elapsed(), others: strangers });
        }
        if idle {
            let _ = guardian::readable(&[listener.as_fd()], EACH); // accept reports the error
        }
    }
}

/// Messages of the other end, one a line.
struct Lines {
    stream: Arc<UnixStream>,
    rest: Vec<u8>,
}

impl Lines {
    fn new(stream: UnixStream) -> Self {
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

    fn expect(&mut self, expected: &'static str) -> Result<(), GuardError> {
        match self.next()? {
            Some(found) if found == expected => Ok(()),
            Some(found) => Err(GuardError::OtherWord { found, expected }),
            None => Err(GuardError::Gone),
        }
    }
}

/// The applier's end.
struct Linked {
    lines: Lines,
    bound: Duration,
    note: Option<String>,
    /// The guard has sent that it takes over.
    taken: bool,
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
pub struct Link {
    lines: Lines,
    pid: Option<u32>,
    process: Option<OwnedFd>,
}

impl Link {
    /// Reports to the applier and takes the lock from it. Without a lock: the guard is for tables.
    ///
    /// Errors: the applier is gone, or the peer is not the applier.
    pub fn connect(name: &str, bound: Duration) -> io::Result<(Self, Option<OpenLock<OwnedFd>>)> {
        let stream = local::connect(name, Some(bound))?;
        stream.set_read_timeout(Some(bound))?;
        stream.set_write_timeout(Some(bound))?;
        let peer = guardian::peer(&stream)?;
        if peer.uid != proc::euid() {
            return Err(io::Error::other(format!("the process at the other end belongs to user {}", peer.uid)));
        }
        let mut text = [0; 64];
        let (n, fds) = guardian::recv_fds(&stream, &mut text)?;
        let mut fds = fds.into_iter();
        let lock = match (fds.next(), fds.next(), fds.next()) {
            (Some(file), socket, None) if &text[..n] == LOCK => Some(OpenLock { file, socket }),
            (None, None, None) if &text[..n] == TABLES => None,
            _ => return Err(io::Error::other(format!("the lock was not handed over (received {n} bytes)"))),
        };
        // Without a pidfd, or in another PID namespace, the end of the stream shows that the process has ended.
        let process = peer.pid.and_then(|p| guardian::pidfd(p).ok());
        Ok((Self { lines: Lines::new(stream), pid: peer.pid, process }, lock))
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

impl Watched for Link {
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

#[cfg(test)]
#[path = "guard_process_tests.rs"]
mod tests;

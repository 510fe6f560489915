//! The guard as a process: how it is started outside of everything that may die with the applier, and what
//! the two say to each other.
//!
//! ```text
//!   applier: listens at a file for its own user ── copy of the program ── systemd-run, else own session and control group ──► guard
//!            ◄─────────────────────────────── connects ────────────────────────────────────────────
//!            ── "lock" with the open files of the lock ──►  holds a process descriptor of the applier
//!            ◄─────────────────────────────── "armed" ──────
//!            ── "begun" ──► "ok"                    it has read the journal's header
//!            ── "done" or "trial" ──► "ok"                  or the end of the stream: dead
//! ```

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ringwise_sys::{guardian, local, proc, trust};

use crate::guard::{Seen, Watched};
use crate::{Armed, Guardian, Job, OpenLock};

/// The one external program, and an optional one.
const SYSTEMD_RUN: [&str; 2] = ["/usr/bin/systemd-run", "/bin/systemd-run"];
/// Overrides the bounds of a device on slow machines, also those of the guard.
const SLOW: &str = "RINGWISE_DEVICE_DEADLINE_MS";
const EACH: Duration = Duration::from_millis(10);

/// Starts `ringwise __guard`.
#[derive(Debug, Clone)]
pub struct Process {
    /// The program; a copy of it is run.
    pub program: PathBuf,
    /// Within which the guard must be armed, and within which it must answer.
    pub bound: Duration,
}

impl Default for Process {
    fn default() -> Self {
        let slow = std::env::var(SLOW).ok().and_then(|t| t.parse().ok()).map_or(Duration::ZERO, Duration::from_millis);
        Self { program: "/proc/self/exe".into(), bound: Duration::from_secs(10).max(slow * 2) }
    }
}

/// Where the program lies that is run.
enum Copy {
    File(PathBuf),
    /// Without a name, where no file can be made or run.
    Memory(File),
}

fn copy_path(dir: &Path, transaction: u64) -> PathBuf {
    dir.join(format!("guard-{transaction:04}"))
}

impl Copy {
    fn make(program: &Path, dir: &Path, transaction: u64) -> Result<Self, String> {
        let path = copy_path(dir, transaction);
        let in_file = || -> io::Result<()> {
            if guardian::no_exec(dir)? {
                return Err(io::Error::other("it is mounted noexec"));
            }
            let mut from = File::open(program)?;
            let mut to = File::create_new(&path)?;
            to.set_permissions(fs::Permissions::from_mode(0o700))?;
            io::copy(&mut from, &mut to).map(|_| ())
        };
        let in_memory = || -> io::Result<File> {
            let mut to = guardian::memory_file("ringwise-guard")?;
            io::copy(&mut File::open(program)?, &mut to)?;
            Ok(to)
        };
        let Err(why) = in_file() else { return Ok(Self::File(path)) };
        let _ = fs::remove_file(&path); // half of it, or nothing
        in_memory()
            .map(Self::Memory)
            .map_err(|e| format!("no copy of the program in {} ({why}) and none in memory ({e})", dir.display()))
    }

    fn path(&self, process: &str) -> PathBuf {
        match self {
            Self::File(p) => p.clone(),
            Self::Memory(f) => format!("/proc/{process}/fd/{}", f.as_raw_fd()).into(),
        }
    }
}

/// Copies and sockets of guards that were killed. Under the lock no other one is at work.
fn clean(dir: &Path) {
    let names = fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    for path in names.filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("guard-"))) {
        let _ = fs::remove_file(path); // one that stays is tried again the next time
    }
}

/// Where the guard reports. A file of the state directory, which no other user can connect to: an abstract name stands in
/// /proc/net/unix, and whoever knows it can fill its queue.
struct Door {
    listener: UnixListener,
    name: String,
}

impl Door {
    fn open(dir: &Path, transaction: u64) -> io::Result<Self> {
        let file = format!("{}.sock", copy_path(dir, transaction).display());
        let (listener, name) = match local::listen(&file) {
            Ok(listener) => (listener, file),
            // A full disk, a file system without sockets: strangers are turned away one by one then.
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
            let _ = fs::remove_file(&self.name); // the next run takes it away
        }
    }
}

impl Guardian for Process {
    fn arm(&self, job: &Job) -> Result<Box<dyn Armed>, String> {
        let end = Instant::now() + self.bound;
        let dir = job.dir.canonicalize().map_err(|e| format!("{}: {e}", job.dir.display()))?;
        clean(&dir);
        let door = Door::open(&dir, job.transaction).map_err(|e| format!("no socket: {e}"))?;
        let copy = Copy::make(&self.program, &dir, job.transaction)?;
        let id = job.transaction.to_string();
        let mut args: Vec<String> = vec!["__guard".into(), "--transaction".into(), id];
        args.extend(["--socket".into(), door.name.clone()]);
        args.extend(["--state-dir".into(), dir.display().to_string()]);
        let (found, note) = self.launch(&copy, &args, &door.listener, &dir, job.transaction, end);
        let armed = found.and_then(|stream| self.greet(stream, job, end));
        if armed.is_err() {
            let _ = fs::remove_file(copy_path(&dir, job.transaction));
        }
        let stream = armed.map_err(|e| match &note {
            Some(n) => format!("{e} ({n})"),
            None => e,
        })?;
        Ok(Box::new(Linked { stream, bound: self.bound, note }))
    }
}

impl Process {
    /// By systemd where that is the first process and sees the state directory that we see; else by ourselves. With it why not by systemd.
    fn launch(
        &self,
        copy: &Copy,
        args: &[String],
        listener: &UnixListener,
        dir: &Path,
        transaction: u64,
        end: Instant,
    ) -> (Result<UnixStream, String>, Option<String>) {
        let mut note = None;
        if Path::new("/run/systemd/system").is_dir() && guardian::shared_with_init(dir) {
            let half = Instant::now() + end.saturating_duration_since(Instant::now()) / 2;
            let me = std::process::id().to_string();
            match by_systemd(&copy.path(&me), args, transaction)
                .and_then(|mut run| accept(listener, &is_ours, Some(&mut run), half))
            {
                Ok(stream) => return (Ok(stream), None),
                Err(e) => note = Some(format!("the guard runs without systemd: {e}")),
            }
        }
        let started = by_ourselves(&copy.path("self"), args);
        (started.and_then(|()| accept(listener, &is_ours, None, end)), note)
    }

    fn greet(&self, stream: UnixStream, job: &Job, end: Instant) -> Result<UnixStream, String> {
        let talk = || -> io::Result<()> {
            let left = end.saturating_duration_since(Instant::now()).max(EACH);
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(left))?;
            stream.set_write_timeout(Some(left))?;
            let both: Vec<BorrowedFd> = [Some(job.lock.file), job.lock.socket].into_iter().flatten().collect();
            guardian::send_fds(&stream, b"lock\n", &both)?;
            expect(&stream, "armed")
        };
        talk().map_err(|e| format!("it was started and does not answer: {e}"))?;
        Ok(stream)
    }
}

fn by_systemd(program: &Path, args: &[String], transaction: u64) -> Result<Child, String> {
    let run = SYSTEMD_RUN.iter().find(|p| Path::new(p).exists()).ok_or("there is no systemd-run")?;
    let mut c = Command::new(run);
    c.args(["--quiet", "--collect", "--no-ask-password"]);
    c.arg(format!("--unit=ringwise-trial-{transaction}"));
    c.arg(format!("--description=ringwise: puts transaction {transaction} back if nobody keeps it"));
    // Asked to stop it ends at once: whoever shuts down loses the settings anyway and need not wait for it.
    let properties = ["Restart=on-failure", "RestartSec=1", "OOMScoreAdjust=-1000", "KillSignal=SIGKILL"];
    c.args(properties.iter().map(|p| format!("--property={p}")));
    if let Ok(slow) = std::env::var(SLOW) {
        c.arg(format!("--setenv={SLOW}={slow}"));
    }
    c.arg("--").arg(program).args(args);
    c.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    c.spawn().map_err(|e| format!("{run}: {e}"))
}

/// A first process that leaves session, terminal and open files behind and starts the second, and is gone.
fn by_ourselves(program: &Path, args: &[String]) -> Result<(), String> {
    let mut c = Command::new(program);
    c.args(args).arg("--detach").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // A child that another thread starts at this moment may still hold the copy open for writing.
    let mut tries = 0;
    let child = loop {
        match c.spawn() {
            Err(e) if e.kind() == io::ErrorKind::ExecutableFileBusy && tries < 40 => tries += 1,
            other => break other,
        }
        std::thread::sleep(EACH);
    };
    let out = child.and_then(Child::wait_with_output).map_err(|e| format!("{}: {e}", program.display()))?;
    if out.status.success() {
        return Ok(());
    }
    Err(format!("it ended with {}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim()))
}

/// Any user may find an abstract name; only our own is the guard.
fn is_ours(stream: &UnixStream) -> bool {
    guardian::peer(stream).is_ok_and(|p| p.uid == proc::euid())
}

/// Waits for the guard to connect. `starter`: whose failure ends the waiting.
fn accept(
    listener: &UnixListener,
    ours: &dyn Fn(&UnixStream) -> bool,
    mut starter: Option<&mut Child>,
    end: Instant,
) -> Result<UnixStream, String> {
    let mut failed = None;
    let mut strangers = 0u64;
    loop {
        let idle = match listener.accept() {
            Ok((s, _)) if ours(&s) => {
                if let Some(c) = starter {
                    // It only waits for its job to be reported; nobody is waiting for that here.
                    let _ = c.kill();
                    let _ = c.wait();
                }
                return Ok(s);
            }
            // At once the next: behind many of them the guard may be waiting.
            Ok(_) => {
                strangers += 1;
                false
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => true,
            // It went away again before it was its turn.
            Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => false,
            Err(e) => return Err(format!("accept: {e}")),
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
                let _ = err.read_to_string(&mut text); // its status alone says enough
            }
            failed = Some(format!("systemd-run ended with {status}: {}", text.trim()));
        }
        if Instant::now() >= end {
            if let Some(c) = starter {
                let _ = c.kill();
                let _ = c.wait();
            }
            let others =
                if strangers > 0 { format!(", and {strangers} connections of other users") } else { String::new() };
            return Err(format!("it did not report within the time for it{others}"));
        }
        if idle {
            let _ = guardian::readable(&[listener.as_fd()], EACH); // accept tells what is wrong
        }
    }
}

/// One word and a newline, and nothing after it.
fn expect(mut stream: &UnixStream, word: &str) -> io::Result<()> {
    let mut text = [0; 64];
    let n = stream.read(&mut text)?;
    match String::from_utf8_lossy(&text[..n]).trim_end() {
        w if w == word => Ok(()),
        "" => Err(io::Error::other("it is gone")),
        w => Err(io::Error::other(format!("it says \"{w}\" instead of \"{word}\""))),
    }
}

/// The applier's end.
struct Linked {
    stream: UnixStream,
    bound: Duration,
    note: Option<String>,
}

impl Armed for Linked {
    fn is_there(&mut self) -> bool {
        // It says nothing while it waits: anything to read is its end.
        guardian::readable(&[self.stream.as_fd()], Duration::ZERO).is_ok_and(|r| !r[0])
    }

    fn begun(&mut self) -> Result<(), String> {
        let mut talk = || -> io::Result<()> {
            self.stream.set_read_timeout(Some(self.bound))?;
            self.stream.write_all(b"begun\n")?;
            expect(&self.stream, "ok")
        };
        talk().map_err(|e| e.to_string())
    }

    fn done(&mut self, on_trial: bool) -> Result<(), String> {
        let mut talk = || -> io::Result<()> {
            self.stream.set_read_timeout(Some(self.bound))?;
            self.stream.write_all(if on_trial { b"trial\n" } else { b"done\n" })?;
            expect(&self.stream, "ok")?;
            // Until it is gone it holds the lock.
            if !on_trial && self.stream.read(&mut [0; 8])? != 0 {
                return Err(io::Error::other("it goes on talking"));
            }
            Ok(())
        };
        talk().map_err(|e| e.to_string())
    }

    fn note(&self) -> Option<String> {
        self.note.clone()
    }
}

/// The guard's end.
pub struct Link {
    stream: UnixStream,
    pid: Option<u32>,
    process: Option<OwnedFd>,
}

impl Link {
    /// Reports to the applier and takes the lock from it.
    ///
    /// Errors: it is not there any more, or not who it should be.
    pub fn connect(name: &str, bound: Duration) -> io::Result<(Self, OpenLock<OwnedFd>)> {
        let stream = local::connect(name, Some(bound))?;
        stream.set_read_timeout(Some(bound))?;
        stream.set_write_timeout(Some(bound))?;
        let peer = guardian::peer(&stream)?;
        if peer.uid != proc::euid() {
            return Err(io::Error::other(format!("the other end is of user {}", peer.uid)));
        }
        let mut text = [0; 64];
        let (n, fds) = guardian::recv_fds(&stream, &mut text)?;
        let mut fds = fds.into_iter();
        let lock = match (fds.next(), fds.next(), fds.next()) {
            (Some(file), socket, None) if &text[..n] == b"lock\n" => OpenLock { file, socket },
            _ => return Err(io::Error::other(format!("no lock was handed over ({n} bytes)"))),
        };
        // Without it, or in another namespace, the end of the stream says the same.
        let process = peer.pid.and_then(|p| guardian::pidfd(p).ok());
        Ok((Self { stream, pid: peer.pid, process }, lock))
    }

    /// From now on everything is put back if the applier dies.
    pub fn armed(&mut self) -> io::Result<()> {
        self.stream.write_all(b"armed\n")
    }

    fn died(&self) -> Seen {
        let who = self.pid.map(|p| format!(" ({p})")).unwrap_or_default();
        Seen::Died(format!("the process that applied it{who} died"))
    }
}

impl Watched for Link {
    fn look(&mut self, wait: Duration) -> Seen {
        let fds: Vec<_> =
            [Some(self.stream.as_fd()), self.process.as_ref().map(AsFd::as_fd)].into_iter().flatten().collect();
        let ready = match guardian::readable(&fds, wait) {
            Ok(r) => r,
            Err(_) => return self.died(),
        };
        // First what it has said: it may have ended since.
        if ready[0] {
            let mut text = [0; 64];
            return match self.stream.read(&mut text).map(|n| &text[..n]) {
                Ok(b"begun\n") => Seen::Begun,
                Ok(b"done\n") => Seen::Done { on_trial: false },
                Ok(b"trial\n") => Seen::Done { on_trial: true },
                _ => self.died(),
            };
        }
        // One of its threads may hang in the kernel, and keep the process and its files for as long.
        let ended = ready.get(1) == Some(&true) || self.pid.is_some_and(guardian::ended);
        if ended { self.died() } else { Seen::Working }
    }

    fn answer(&mut self) {
        let _ = self.stream.write_all(b"ok\n"); // whoever does not wait for it is gone, which is seen next
    }
}

/// Takes the copy away that this guard runs from.
pub fn remove_copy(dir: &Path, transaction: u64) {
    let _ = fs::remove_file(copy_path(dir, transaction)); // the next run takes it away
}

#[cfg(test)]
#[path = "guard_process_tests.rs"]
mod tests;

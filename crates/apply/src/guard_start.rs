//! Starting the guard's process, and waiting until it connects.

use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ringwise_sys::{guardian, local, proc, trust};

use crate::guard_error::GuardError;
use crate::guard_place::{copy_path, spawn};

/// systemd-run is the only external program that is started, and it is optional.
const SYSTEMD_RUN: [&str; 2] = ["/usr/bin/systemd-run", "/bin/systemd-run"];
/// Extends the deadlines of device calls on slow machines, and those of the guard.
pub(crate) const SLOW: &str = "RINGWISE_DEVICE_DEADLINE_MS";
pub(crate) const EACH: Duration = Duration::from_millis(10);

/// The socket at which the guard connects. It is a file in the state directory, to which no other user can connect: abstract
/// names are listed in /proc/net/unix, so any user could fill the queue of such a socket.
#[derive(Debug)]
pub(crate) struct GuardSocket {
    pub(crate) listener: UnixListener,
    pub(crate) name: String,
}

impl GuardSocket {
    pub(crate) fn open(dir: &Path, transaction: u64) -> io::Result<Self> {
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
        Self::new(listener, name)
    }

    /// The socket of a guard that is started ahead, without the lock: other runs do not remove it. Only the service starts guards
    /// ahead.
    pub(crate) fn ahead(dir: &Path) -> io::Result<Self> {
        let file = dir.join("ahead.sock").display().to_string();
        let _ = fs::remove_file(&file); // of a process that was killed
        Self::new(local::listen(&file)?, file)
    }

    fn new(listener: UnixListener, name: String) -> io::Result<Self> {
        let door = Self { listener, name };
        door.listener.set_nonblocking(true)?;
        Ok(door)
    }
}

impl Drop for GuardSocket {
    fn drop(&mut self) {
        if !self.name.starts_with('@') {
            let _ = fs::remove_file(&self.name); // the next run removes it
        }
    }
}

pub(crate) fn guard_args(transaction: u64, door: &GuardSocket, dir: &Path, more: &[String]) -> Vec<String> {
    let mut args: Vec<String> = vec!["__guard".into(), "--transaction".into(), transaction.to_string()];
    args.extend(["--socket".into(), door.name.clone()]);
    args.extend(["--state-dir".into(), dir.display().to_string()]);
    args.extend_from_slice(more);
    args
}

/// A transient unit of systemd.
pub(crate) struct Unit {
    pub(crate) name: String,
    pub(crate) description: String,
}

impl Unit {
    pub(crate) fn of(transaction: u64) -> Self {
        Self {
            name: format!("ringwise-trial-{transaction}"),
            description: format!("ringwise: guard of transaction {transaction}"),
        }
    }

    /// Another process may get the number, and start its guard.
    pub(crate) fn ahead_of(transaction: u64) -> Self {
        let Self { name, description } = Self::of(transaction);
        Self { name: format!("{name}-ahead"), description }
    }
}

/// Whether systemd is the first process and sees the same state directory.
pub(crate) fn has_systemd(dir: &Path) -> bool {
    Path::new("/run/systemd/system").is_dir() && guardian::shared_with_init(dir)
}

pub(crate) fn start_by_systemd(program: &Path, args: &[String], unit: &Unit, again: bool) -> Result<Child, GuardError> {
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
pub(crate) fn start_by_ourselves(program: &Path, args: &[String]) -> Result<Child, GuardError> {
    let mut c = Command::new(program);
    c.args(args).arg("--detach").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    spawn(&mut c).map_err(|error| GuardError::NotStarted { program: program.into(), error })
}

/// Waits for the first process, which ends at once.
pub(crate) fn first_has_ended(first: Child, program: &Path) -> Result<(), GuardError> {
    let out = first.wait_with_output().map_err(|error| GuardError::NotStarted { program: program.into(), error })?;
    if out.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&out.stderr).trim().to_string();
    Err(GuardError::Ended { status: out.status, words })
}

/// Any user may find an abstract name; only a process of our own user is the guard.
pub(crate) fn is_ours(stream: &UnixStream) -> bool {
    guardian::peer(stream).is_ok_and(|p| p.uid == proc::euid())
}

/// Waits for the guard to connect. `starter`: the program that starts the guard; if it fails, the waiting ends.
pub(crate) fn accept(
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

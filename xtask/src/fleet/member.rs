//! A guest of the fleet, and commands in it that need no network.

use crate::boot::{Ended, Guest, Mode};
use crate::host::Host;
use crate::kernel::Kernel;
use crate::scenario::Scenario;
use anyhow::{Context, Result, bail};
use std::cell::Cell;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a command in a guest may take: the guest itself ends it after 300 s.
const COMMAND: Duration = Duration::from_secs(400);

/// The exit status of a command in the guest, and both of its outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandOutput {
    pub status: i32,
    pub text: String,
}

/// The host file of a member with its own name, and a port of this machine that is free now.
pub(super) fn host(template: &Host, name: &str) -> Result<Host> {
    // QEMU opens it again, so it must be closed here.
    let ssh_port = TcpListener::bind("127.0.0.1:0").context("a free port")?.local_addr()?.port();
    Ok(Host { name: format!("fleet-{name}"), ssh_port, ..template.clone() })
}

/// A guest that runs, seen from the controller.
pub(super) struct Member<'a> {
    pub name: &'static str,
    pub guest: Guest<'a>,
    has_ended: AtomicBool,
}

/// The number of the next command. Only the thread of the plays sends commands.
pub(super) struct Counter(Cell<u32>);

impl Counter {
    pub(super) fn new() -> Counter {
        Counter(Cell::new(0))
    }

    fn next(&self) -> u32 {
        self.0.set(self.0.get() + 1);
        self.0.get()
    }
}

impl<'a> Member<'a> {
    pub(super) fn prepare(name: &'static str, host: &'a Host, kernel: &'a Kernel) -> Result<Member<'a>> {
        Ok(Member { name, guest: Guest::prepare(host, kernel, false)?, has_ended: AtomicBool::new(false) })
    }

    fn dir(&self) -> PathBuf {
        self.guest.share().join("fleet")
    }

    /// Fills its share directory: the program, the scenario, and the key with which the controller logs in.
    pub(super) fn fill(&self, ringwise: &Path, scenario: &Scenario, key: &Path) -> Result<()> {
        self.guest.fill(ringwise, Mode::Scenarios, &[scenario])?;
        fs::create_dir_all(self.dir())?;
        fs::copy(key, self.dir().join("key.pub"))?;
        Ok(())
    }

    /// Runs the guest to its end.
    pub(super) fn boot(&self, limit: Duration) -> Result<Ended> {
        let ended = self.guest.run(Mode::Scenarios, limit);
        self.has_ended.store(true, Ordering::Relaxed);
        ended
    }

    /// Asks the guest to end.
    pub(super) fn end(&self) {
        let _ = fs::write(self.dir().join("end"), ""); // a guest that does not see it is ended at its limit
    }

    pub(super) fn is_ready(&self) -> bool {
        self.dir().join("ready").exists()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Executes a script as root in the guest.
    ///
    /// # Errors
    /// The guest has ended or does not answer in time.
    pub(super) fn run(&self, counter: &Counter, script: &str) -> Result<CommandOutput> {
        let name = self.dir().join(format!("{:04}", counter.next()));
        let new = name.with_extension("part");
        fs::write(&new, script)?;
        fs::rename(&new, name.with_extension("command"))?;
        let end = Instant::now() + COMMAND;
        loop {
            if let Ok(status) = fs::read_to_string(name.with_extension("status")) {
                let text = fs::read(name.with_extension("out"))?;
                let status = status.trim().parse().with_context(|| format!("the status {status:?}"))?;
                return Ok(CommandOutput { status, text: String::from_utf8_lossy(&text).into_owned() });
            }
            if self.has_ended() {
                bail!("{}: the guest has ended", self.name);
            }
            if Instant::now() > end {
                bail!("{}: no answer in {} s to {script:?}", self.name, COMMAND.as_secs());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

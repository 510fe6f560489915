//! An applier that hangs without dying: how its guard notices, and how both agree on who goes on.
//!
//! ```text
//!   applier ── a sign of life with its calls to the host, at most one a second ──► guard
//!      │ stopped, or hangs in the kernel                                           │ none for `Policy::silence`
//!      │                                              journal: "taken over" ◄──────┤ unless it has an end already
//!      ├─ goes on ── before each setting: is the guard there? ◄─── "taken" ────────┤
//!      └─ no: waits for the guard, puts back what it did meanwhile                 └─► puts back, leaves
//! ```
//!
//! Between its question and its write the applier may be stopped, and do that one write when it goes on. It then asks again,
//! and puts everything back itself; the lock is its own until it ends, so that nobody else has built on the host
//! meanwhile. An end that it still writes as kept does not count behind the mark.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringwise_sys::{Around, Host, Request, Result};

use crate::cx::Cx;
use crate::journal::Read;
use crate::record::Record;
use crate::trial::note;
use crate::trial_file::{Stage, decide};
use crate::{Failure, Store};

/// Tells the guard that its applier is alive. Cheap: most calls send nothing.
pub type SignOfLife = Arc<dyn Fn() + Send + Sync>;

/// What became of a guard that is not there for its applier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Its process has ended.
    Died,
    /// It took the applier for hung, and has put everything back by now, as far as can be waited for.
    TookOver,
}

/// What a process does that gives no sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// By a signal or a debugger.
    Stopped,
    /// It waits in the kernel, where no signal reaches it.
    InKernel,
    /// Neither, or it cannot be told.
    Silent,
}

/// `the process that applied it (1234) has been stopped for 30 s`
pub(crate) fn halted(pid: Option<u32>, halt: Halt, silent: Duration) -> String {
    let pid = pid.map(|p| format!(" ({p})")).unwrap_or_default();
    let what = match halt {
        Halt::Stopped => "has been stopped",
        Halt::InKernel => "has been waiting in the kernel",
        Halt::Silent => "has given no sign of life",
    };
    format!("the process that applied it{pid} {what} for {} s", silent.as_secs())
}

/// From now on the transaction is put back, whatever the applier still says in its journal. Where that cannot be written
/// it is put back all the same.
pub(crate) fn take_over(cx: &Cx, store: &Store, read: Option<&Read>, why: &str) {
    let Some(read) = read else { return };
    let dir = read.path.parent().unwrap_or(Path::new("."));
    // A trial that it was about to begin.
    let _ = decide(store, dir, read.id, Stage::Expired);
    let unix_time = cx.host.unix_time();
    let _ = note(store, &read.path, &Record::TakenOver { why: why.into(), unix_time });
}

/// Why the guard put back.
pub(crate) fn taken(why: &str) -> Failure {
    Failure::new(why, "its guard put everything back; that process holds the lock until it goes on or is killed")
}

/// Why the applier puts back.
pub(crate) fn took_over() -> Failure {
    Failure::new("the guard has taken over", "this process gave no sign of life for too long")
}

/// A host that gives a sign of life with each call. Everything that a run does and waits for is such a call, each within its
/// deadline; a process that is stopped makes none.
pub(crate) struct Living {
    pub host: Arc<dyn Host>,
    pub sign: SignOfLife,
}

impl Living {
    fn alive(&self) -> &dyn Host {
        (self.sign)();
        self.host.as_ref()
    }
}

impl Around for Living {
    fn inside(&self) -> &dyn Host {
        self.alive()
    }
}

impl Host for Living {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.alive().read(path)
    }

    fn write(&self, path: &str, data: &[u8]) -> Result<()> {
        self.alive().write(path, data)
    }

    fn list(&self, path: &str) -> Result<Vec<String>> {
        self.alive().list(path)
    }

    fn readlink(&self, path: &str) -> Result<String> {
        self.alive().readlink(path)
    }

    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        self.alive().kernel(request)
    }

    fn is_recorded(&self) -> bool {
        self.host.is_recorded()
    }
}

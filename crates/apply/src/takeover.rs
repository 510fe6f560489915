//! An applier that hangs without dying: how its guard notices, and how the two agree which of them continues.
//!
//! ```text
//!   applier ── a sign of life with its calls to the host, at most one a second ──► guard
//!      │ stopped, or hangs in the kernel                                           │ none for `Policy::silence`
//!      │                                              journal: "taken over" ◄──────┤ unless it has an end already
//!      ├─ goes on ── before each setting: is the guard there? ◄─── "taken" ────────┤
//!      └─ no: waits for the guard, puts back what it did meanwhile                 └─► puts back, leaves
//! ```
//!
//! The applier may be stopped between its check for the guard and its write, and do that one write when it continues. It then
//! checks again, finds that the guard took over, and restores all settings itself. The applier shares the lock until it ends, so
//! no other run has changed the host meanwhile. If the applier still writes to the journal that the transaction was kept, that
//! record does not count after the record of the takeover.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringwise_sys::{CountEntries, Host, HostWrapper, Request, Result, SampleHeaders};

use crate::host_access::HostAccess;
use crate::journal::Read;
use crate::record::Record;
use crate::trial::note;
use crate::trial_file::{Stage, decide};
use crate::{Failure, Store};

/// Shows the guard that its applier is alive. It is cheap: most calls send nothing.
pub type SignOfLife = Arc<dyn Fn() + Send + Sync>;

/// Why a guard is not available to its applier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Its process has ended.
    Died,
    /// The guard found that the applier was hung, and has restored all settings by now, as far as the applier can wait for it.
    TookOver,
}

/// Why a process gives no sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// It was stopped by a signal or a debugger.
    Stopped,
    /// It waits in the kernel, where no signal reaches it.
    InKernel,
    /// Neither, or not known.
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

/// Records that the transaction is being restored, whatever the applier still writes to its journal. The settings are restored
/// even if this cannot be recorded.
pub(crate) fn take_over(cx: &HostAccess, store: &Store, read: Option<&Read>, why: &str) {
    let Some(read) = read else { return };
    let dir = read.path.parent().unwrap_or(Path::new("."));
    // Ends the trial that the applier may have been about to begin.
    let _ = decide(store, dir, read.id, Stage::Expired);
    let unix_time = cx.host.unix_time();
    let _ = note(store, &read.path, &Record::TakenOver { why: why.into(), unix_time });
}

/// Why the guard restored the settings.
pub(crate) fn taken(why: &str) -> Failure {
    Failure::new(why, "its guard restored everything; that process holds the lock until it continues or is killed")
}

/// Why the applier restores the settings.
pub(crate) fn took_over() -> Failure {
    Failure::new("the guard has taken over", "this process gave no sign of life for too long")
}

/// A host that gives a sign of life with each call. Everything that a run does or waits for is such a call, each with its own
/// deadline. A stopped process makes no calls.
pub(crate) struct SignalingHost {
    pub host: Arc<dyn Host>,
    pub sign: SignOfLife,
}

impl SignalingHost {
    fn alive(&self) -> &dyn Host {
        (self.sign)();
        self.host.as_ref()
    }
}

impl HostWrapper for SignalingHost {
    fn inside(&self) -> &dyn Host {
        self.alive()
    }
}

impl Host for SignalingHost {
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

    fn count_entries(&self, dev: &str, table: &[u32]) -> Result<Box<dyn CountEntries>> {
        self.alive().count_entries(dev, table)
    }

    fn sample_headers(&self, dev: &str, queues: u32, one_in: u32) -> Result<Box<dyn SampleHeaders>> {
        self.alive().sample_headers(dev, queues, one_in)
    }

    fn is_recorded(&self) -> bool {
        self.host.is_recorded()
    }
}

//! The state that the service publishes: `daemon.json` beside `status.json`, which every user may read.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ringwise_apply::{ProcessId, Store};
use ringwise_knob::ManualChange;
use ringwise_model::JsonFault;
use ringwise_sys::trust::{self, ReplacementFile};
use ringwise_sys::{Host, io_text};
use serde::{Deserialize, Serialize};

use crate::follow::LoadFinding;
use crate::losses::SettingLoss;
use crate::move_reason::{Actuator, MoveCount, MoveReason};
use crate::pauses::InterfacePause;

const FILE: &str = "daemon.json";
/// Name and version of the document.
pub(crate) const SCHEMA: &str = "ringwise.daemon";
pub(crate) const VERSION: u32 = 1;
/// A longer file is refused: it is read by every `ringwise` of every user.
const LONGEST: u64 = 1 << 20;
/// How many of the last actions are kept.
pub(crate) const ACTIONS: usize = 20;

/// The service, as it was when it last did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceState {
    /// `ringwise.daemon`.
    pub schema: String,
    /// Version of the document.
    pub version: u32,
    /// Its process.
    pub process: ProcessId,
    /// The boot that it runs in; `None`: unknown.
    pub boot_id: Option<String>,
    /// When it started, in seconds since 1970.
    pub since_unix: u64,
    /// The configuration file that it applies. `None`: it keeps what `apply` has set.
    pub config: Option<String>,
    /// How many settings are in effect.
    pub keeps: usize,
    /// A user paused the service for the whole host.
    pub paused: bool,
    /// Interfaces that the service does not tune at present, with the reason.
    pub pauses: Vec<InterfacePause>,
    /// Manual changes. They stay.
    pub manual: Vec<ManualChange>,
    /// The last actions, newest last.
    pub actions: Vec<ServiceAction>,
    /// Totals since it started.
    pub totals: ServiceTotals,
    /// Why it cannot do its work at present.
    pub problem: Option<String>,
    /// Notifications that this kernel does not send to it; changes are found by the comparison.
    pub deaf: Vec<String>,
    /// Interfaces whose load is uneven, with the last finding.
    #[serde(default)]
    pub loads: Vec<LoadFinding>,
    /// Changes because of the load since it started.
    #[serde(default)]
    pub moves: Vec<MoveCount>,
    /// Interfaces whose RSS table is not written because of load, because a write took the link down.
    #[serde(default)]
    pub no_table_writes: Vec<String>,
}

/// A transaction of the service, or one that was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceAction {
    /// Seconds since 1970.
    pub unix_time: u64,
    /// Its number; `None`: it was refused before anything was written.
    pub transaction: Option<u64>,
    /// Why.
    pub cause: ActionCause,
    /// The interfaces.
    pub interfaces: Vec<String>,
    /// Number of settings that were written.
    pub settings: usize,
    /// How it ended.
    pub ending: ActionEnding,
    /// Why it was not kept, or what of it was refused.
    pub why: Option<String>,
}

/// Why the service acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionCause {
    /// The configuration was applied: at the start, or because it was loaded again.
    Configuration,
    /// A driver or the kernel set up the device or its queues again.
    Reset,
    /// CPUs went online or offline, or other CPUs are isolated.
    Cpus,
    /// irqbalance was started again.
    Irqbalance,
    /// The interface appeared.
    Appeared,
    /// A program whose flows are steered to a group has started, or listens on another port.
    Programs,
    /// The load was uneven.
    Load,
    /// A change because of the load is taken back.
    LoadRestored,
}

impl ActionCause {
    pub(crate) fn of(loss: SettingLoss) -> Self {
        match loss {
            SettingLoss::CpuGone => Self::Cpus,
            SettingLoss::Ban => Self::Irqbalance,
            _ => Self::Reset,
        }
    }

    /// As a clause.
    pub fn text(self) -> &'static str {
        match self {
            Self::Configuration => "the configuration was loaded",
            Self::Reset => "the driver or the kernel had reset settings",
            Self::Cpus => "CPUs went online or offline, or were isolated",
            Self::Irqbalance => "irqbalance was restarted",
            Self::Appeared => "an interface appeared",
            Self::Programs => "a program was started, or listens on another port",
            Self::Load => "the load was uneven",
            Self::LoadRestored => "a change because of the load was taken back",
        }
    }
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionEnding {
    /// The settings are in effect.
    Kept,
    /// It failed, and the host is as before.
    Restored,
    /// It failed, and not everything could be restored.
    Incomplete,
    /// It was refused before anything was written.
    Refused,
}

/// Totals since the service started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceTotals {
    /// Transactions that were kept.
    pub kept: u64,
    /// Transactions that failed or were refused.
    pub failed: u64,
    /// Settings that were written.
    pub settings: u64,
    /// Manual changes that were found.
    pub manual: u64,
    /// Indirection tables that would have been better.
    #[serde(default)]
    pub better_tables: u64,
    /// Entries of indirection tables that were moved because of the load.
    #[serde(default)]
    pub moved_entries: u64,
    /// Moves of entries that were taken back.
    #[serde(default)]
    pub taken_back: u64,
    /// Interrupts that another CPU would have served better.
    #[serde(default)]
    pub better_interrupts: u64,
    /// Interrupts that were moved because of the load.
    #[serde(default)]
    pub moved_interrupts: u64,
    /// Moves of interrupts that were taken back.
    #[serde(default)]
    pub interrupts_taken_back: u64,
    /// RPS masks that would have been better.
    #[serde(default)]
    pub better_masks: u64,
    /// RPS masks that were changed because of the load.
    #[serde(default)]
    pub changed_masks: u64,
    /// Changes of RPS masks that were taken back.
    #[serde(default)]
    pub masks_taken_back: u64,
    /// Groups of queues that would have suited the traffic better.
    #[serde(default)]
    pub better_groups: u64,
    /// Groups of queues that were changed because of the traffic.
    #[serde(default)]
    pub changed_groups: u64,
    /// Changes of groups that were taken back.
    #[serde(default)]
    pub groups_taken_back: u64,
    /// How often notifications were lost.
    pub overflows: u64,
    /// Notifications that can matter, by source.
    #[serde(default)]
    pub heard: Notifications,
}

/// Numbers of notifications that can matter, by source. Several may come in one datagram of the kernel, which counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notifications {
    /// rtnetlink: interfaces of this network namespace.
    pub links: u64,
    /// The ethtool group `monitor`.
    pub ethtool: u64,
    /// The netdev group `mgmt` (since Linux 6.6).
    pub netdev: u64,
    /// uevents: devices, drivers and CPUs.
    pub uevents: u64,
    /// Files of other programs, such as those of a kubelet.
    pub files: u64,
}

fn path(store: &Store) -> PathBuf {
    store.run_dir().join(FILE)
}

impl ServiceState {
    /// Counts a change because of the load.
    pub(crate) fn count_move(&mut self, interface: &str, actuator: Actuator, reason: MoveReason) {
        let same = |m: &&mut MoveCount| (m.interface.as_str(), m.actuator, m.reason) == (interface, actuator, reason);
        match self.moves.iter_mut().find(same) {
            Some(m) => m.count += 1,
            None => self.moves.push(MoveCount { interface: interface.into(), actuator, reason, count: 1 }),
        }
    }

    /// Writes the file. Every user may read it; it has no command line and no reason.
    ///
    /// Errors: the directory cannot be written, or others can write to it.
    pub(crate) fn publish(&self, store: &Store) -> io::Result<()> {
        let path = path(store);
        let dir = path.parent().unwrap_or(Path::new("/"));
        make_dir(dir)?;
        let mut new = ReplacementFile::create(&path, 0o644)?;
        // Independent of the umask.
        new.file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
        new.file.write_all(serde_json::to_string_pretty(self)?.as_bytes())?;
        new.place()
    }

    /// The service that runs now. `None`: none runs.
    ///
    /// Errors: the file exists but cannot be read.
    pub fn running(store: &Store, host: &dyn Host) -> Result<Option<Self>, String> {
        Ok(Self::last(store)?.filter(|s| !s.process.is_gone(host)))
    }

    /// What the last service of this boot or an earlier one has written.
    pub(crate) fn last(store: &Store) -> Result<Option<Self>, String> {
        let path = path(store);
        let wrong = |why: String| format!("{}: {why}", path.display());
        let file = match File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|e| wrong(io_text(&e)))?,
        };
        if path.parent().is_some_and(|dir| trust::others_write(dir).is_some()) {
            return Err(wrong("other users can write to its directory".into()));
        }
        let mut text = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut text).map_err(|e| wrong(io_text(&e)))?;
        if text.len() as u64 > LONGEST {
            return Err(wrong(format!("longer than {LONGEST} bytes")));
        }
        let state: Self = serde_json::from_slice(&text).map_err(|e| wrong(JsonFault::from(e).to_string()))?;
        match (state.schema.as_str(), state.version) {
            (SCHEMA, VERSION) => Ok(Some(state)),
            (schema, version) => Err(wrong(format!("expected {SCHEMA} {VERSION}, found {schema:?} {version}"))),
        }
    }
}

/// The directory that every user may read and only root may write to.
pub(crate) fn make_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(dir)?;
    match trust::others_write(dir) {
        Some(why) => Err(io::Error::other(why)),
        None => Ok(()),
    }
}

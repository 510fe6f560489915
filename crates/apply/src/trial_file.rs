//! The files of a trial, which are beside its journal.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringwise_model::errno::ESRCH;
use ringwise_sys::Host;
use serde::{Deserialize, Serialize};

use crate::Store;
use crate::checksum::Sum;
use crate::state_file;

/// Content of `trial-NNNN.json`, and of its record in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trial {
    pub ms: u64,
    /// Time since boot, including suspend. This clock decides.
    pub until_boot_ms: u64,
    /// The same on the clock as it was when the trial began.
    pub until_unix: u64,
    pub boot_id: Option<String>,
    pub who: String,
    /// The trial also ends when this process ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tied: Option<ProcessId>,
}

/// A process. The start time distinguishes it from a later process with the same PID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`, ticks since boot.
    pub started: u64,
}

impl ProcessId {
    /// This process; `None` if `/proc` cannot be read.
    pub fn me(host: &dyn Host) -> Option<Self> {
        let pid = std::process::id();
        Some(Self { pid, started: alive_since(host, pid)? })
    }

    /// A process of the machine that this one runs on.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, started: alive_since(&ringwise_sys::Real::new().ok()?, pid)? })
    }

    /// Only a process that is known to be gone counts as gone.
    pub fn is_gone(&self, host: &dyn Host) -> bool {
        match host.read_text(&format!("/proc/{}/stat", self.pid)) {
            Ok(text) => started(&text).is_some_and(|(state, at)| at != self.started || state == "Z" || state == "X"),
            Err(e) => e.is_absent() || e.errno == Some(ESRCH),
        }
    }
}

fn alive_since(host: &dyn Host, pid: u32) -> Option<u64> {
    started(&host.read_text(&format!("/proc/{pid}/stat")).ok()?).map(|(_, at)| at)
}

/// State and start time from `/proc/PID/stat`. The process name before them may contain any character.
fn started(stat: &str) -> Option<(&str, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

impl Trial {
    pub(crate) fn left(&self, since_boot: Duration) -> Duration {
        Duration::from_millis(self.until_boot_ms).saturating_sub(since_boot)
    }
}

/// What became of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialResult {
    /// It is neither confirmed nor undone.
    Pending,
    /// It is kept.
    Confirmed {
        /// `None`: only the file records the confirmation; the journal could not be written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// It was restored, or is being restored.
    Undone {
        /// Who undid it.
        by: UndoneBy,
        /// The reason, for `history`.
        why: String,
    },
}

/// Who undid a trial. In files a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum UndoneBy {
    /// The trial was not confirmed in time.
    Timer,
    /// The guard, for a reason that it found itself.
    Guard,
    /// A person, a health command, or another command of ringwise.
    Other(String),
}

impl UndoneBy {
    /// Whether ringwise decided it by itself, so that its reason is no text of a person or another program.
    pub(crate) fn is_automatic(&self) -> bool {
        matches!(self, Self::Timer | Self::Guard)
    }
}

impl From<String> for UndoneBy {
    fn from(word: String) -> Self {
        match word.as_str() {
            "timer" => Self::Timer,
            "guard" => Self::Guard,
            _ => Self::Other(word),
        }
    }
}

impl From<UndoneBy> for String {
    fn from(by: UndoneBy) -> Self {
        match by {
            UndoneBy::Timer => "timer".into(),
            UndoneBy::Guard => "guard".into(),
            UndoneBy::Other(who) => who,
        }
    }
}

impl std::fmt::Display for UndoneBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from(self.clone()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Trial,
    Confirmed,
    Expired,
}

pub(crate) fn file(dir: &Path, id: u64, stage: Stage) -> PathBuf {
    let name = match stage {
        Stage::Trial => "trial",
        Stage::Confirmed => "confirmed",
        Stage::Expired => "expired",
    };
    dir.join(format!("{name}-{id:04}.json"))
}

/// Confirms the trial or lets it expire. `false`: it had ended already.
pub(crate) fn decide(store: &Store, dir: &Path, id: u64, to: Stage) -> io::Result<bool> {
    let to = file(dir, id, to);
    store.before_write(&to)?;
    match fs::rename(file(dir, id, Stage::Trial), &to) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// The files beside a journal. They must be read before the journal, in this order: a decision that is made meanwhile is then
/// found in one or the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    pub trial: Option<(Trial, Sum)>,
    pub confirmed: bool,
    pub expired: bool,
}

impl Files {
    pub(crate) fn read(journal: &Path, id: u64) -> Self {
        let dir = journal.parent().unwrap_or(Path::new("."));
        let trial = file(dir, id, Stage::Trial);
        let there = |p: &Path| fs::symlink_metadata(p).is_ok();
        let (confirmed, expired) = (file(dir, id, Stage::Confirmed), file(dir, id, Stage::Expired));
        let (is_confirmed, is_expired) = (there(&confirmed), there(&expired));
        // The journal has the same record, so a torn or damaged file is not needed.
        let one = [trial, confirmed, expired].iter().find_map(|p| state_file::read_with_sum(p));
        Self { trial: one, confirmed: is_confirmed, expired: is_expired }
    }

    /// Removes the files once the journal has the same records.
    pub(crate) fn clear(dir: &Path, id: u64) {
        for stage in [Stage::Trial, Stage::Confirmed, Stage::Expired] {
            // A file that stays is read together with the journal, and adds nothing.
            let _ = fs::remove_file(file(dir, id, stage));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_identified_by_its_start() {
        let tail: String = (4..22).map(|n| format!(" {n}")).collect();
        let stat = format!("7 (a) b) c) S{tail} 4711 0\n");
        assert_eq!(started(&stat), Some(("S", 4711)));
        assert_eq!(started("7 (a"), None);
    }

    #[test]
    fn this_process_is_there_and_an_earlier_one_is_not() {
        let host = ringwise_sys::Real::new().unwrap();
        let me = ProcessId::me(&host).unwrap();
        assert!(!me.is_gone(&host));
        assert!(ProcessId { started: me.started + 1, ..me.clone() }.is_gone(&host));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let at = alive_since(&host, child.id()).unwrap();
        let other = ProcessId { pid: child.id(), started: at };
        assert!(!other.is_gone(&host));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(other.is_gone(&host));
    }
}

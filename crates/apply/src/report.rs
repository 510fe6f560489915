//! What `history` and `verify` answer.

use std::path::PathBuf;

use ringwise_knob::{Match, Setting};
use ringwise_model::Fact;
use serde::{Deserialize, Serialize};

use crate::Outcome;

/// What a transaction was for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Apply,
    /// To the state before this transaction; 0: as first found since boot.
    Rollback {
        before: u64,
    },
    /// Newer than this program.
    #[serde(other)]
    Other,
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Kept,
    PutBack,
    PutBackIncomplete,
    /// Killed half-way in this boot: `ringwise recover`.
    Unfinished,
    /// Under way now, by this process where it could be told.
    Running {
        pid: Option<u32>,
    },
    /// Cut short, and nothing is left of it that could be put back.
    Closed {
        why: String,
    },
}

/// One line of `history`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub id: u64,
    pub kind: Kind,
    pub title: String,
    pub who: String,
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Seconds since 1970.
    pub unix_time: u64,
    /// Whether it belongs to the running boot of this machine; others are only of interest.
    pub this_boot: bool,
    /// Names of its devices at that time.
    pub devices: Vec<String>,
    pub steps: usize,
    pub ending: Ending,
    /// The rollback that undid it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<u64>,
    /// None while unfinished or closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Commands that undo it by hand (interrupt numbers as of its start).
    pub undo: Vec<String>,
    pub path: PathBuf,
}

/// A setting that we applied in this boot and that no later transaction or rollback took back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The last transaction that wanted it.
    pub transaction: u64,
    pub want: Setting,
    pub now: Fact<Setting>,
    pub how: Match,
}

/// A run that goes on now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// From the lock file.
    pub pid: Option<u32>,
}

/// Whether the host is still as applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    pub schema: String,
    pub version: u32,
    /// In the order in which they are written. Empty: nothing is in force.
    pub settings: Vec<Standing>,
    /// A transaction of this boot that was cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<u64>,
    /// A transaction is under way; what it has done so far is not in `settings`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Holder>,
}

impl Verify {
    pub fn holding(&self) -> usize {
        self.settings.iter().filter(|s| s.how.holds()).count()
    }

    /// Settings that are not as applied.
    pub fn drifted(&self) -> impl Iterator<Item = &Standing> {
        self.settings.iter().filter(|s| !s.how.holds())
    }

    pub fn pending(&self) -> impl Iterator<Item = &Standing> {
        self.settings.iter().filter(|s| s.how == Match::Pending)
    }

    /// 0 as applied (or nothing in force) · 3 drift, or a transaction that was cut short.
    pub fn exit_status(&self) -> u8 {
        if self.unfinished.is_some() || self.drifted().next().is_some() { 3 } else { 0 }
    }
}

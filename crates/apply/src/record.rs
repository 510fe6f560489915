//! The lines of a journal.

use ringwise_knob::{Setting, Step};
use ringwise_model::{DevId, Requested, Snapshot, Title};
use ringwise_observe::Stuck;
use serde::{Deserialize, Serialize};

use crate::trial_file::Trial;
use crate::{Failure, Kind, Outcome, Request};

/// Of the file: every line with a checksum. A journal of another one is not replayed, but for [`BEFORE_SUMS`].
pub(crate) const FORMAT: u32 = 2;
/// As version 0.1 wrote it, without checksums.
pub(crate) const BEFORE_SUMS: u32 = 1;

/// What was to be done, by whom and where, and the host before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub format: u32,
    pub tool: String,
    pub transaction: u64,
    pub kind: Kind,
    pub machine_id: Option<String>,
    pub boot_id: Option<String>,
    pub kernel: Option<String>,
    pub unix_time: u64,
    #[serde(flatten)]
    pub title: Title,
    pub reason: Option<String>,
    pub who: String,
    /// For people.
    pub command: String,
    /// The same word by word. Empty: written by a version that kept only the line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// What `apply` was run for. `None`: another command, or a version that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<Requested>,
    pub devices: Vec<DevId>,
    pub steps: Vec<Step>,
    /// Wanted too, and found so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub already: Vec<Setting>,
    /// Every setting that is touched or may be disturbed, as found.
    pub start: Vec<Setting>,
    /// How long the guard goes on looking for queues that stand still.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub watch_ms: u64,
    /// Queues that stood still, for which the guard rolls back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck: Vec<Stuck>,
    /// Queues that stood still before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck_before: Vec<Stuck>,
    /// The same as commands for people. Interrupt numbers as of the start.
    pub undo: Vec<String>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Header {
    /// Who and where; no devices and nothing of the start yet.
    pub(crate) fn of(transaction: u64, kind: Kind, request: &Request, now: &Snapshot, unix_time: u64) -> Self {
        Self {
            format: FORMAT,
            tool: env!("CARGO_PKG_VERSION").into(),
            transaction,
            kind,
            machine_id: now.host.machine_id.known().cloned(),
            boot_id: now.host.boot_id.known().cloned(),
            kernel: now.host.kernel.known().cloned(),
            unix_time,
            title: request.title.clone(),
            reason: request.reason.clone(),
            who: request.who.clone(),
            command: request.command(),
            argv: request.argv.clone(),
            requested: request.requested.clone(),
            devices: Vec::new(),
            steps: request.steps.clone(),
            already: Vec::new(),
            start: Vec::new(),
            watch_ms: 0,
            stuck: request.stuck.clone(),
            stuck_before: Vec::new(),
            undo: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum Record {
    Begin(Box<Header>),
    Step {
        setting: Setting,
    },
    Done {
        setting: Setting,
        now: Setting,
    },
    /// Refused, ignored or failed.
    NotDone {
        setting: Setting,
        failure: Option<Failure>,
    },
    /// Some steps were refused; these are the steps from here on. What is restored for them stands in the
    /// header and in `start`, which is on disk before the first of them is written.
    Replanned {
        steps: Vec<Step>,
        already: Vec<Setting>,
        /// As in the header: what these steps touch or may disturb beyond that, as found before the first write.
        start: Vec<Setting>,
        undo: Vec<String>,
    },
    PutBack {
        why: String,
    },
    /// The end. `after`: the settings of `start` and of the steps as they were left.
    End {
        outcome: Box<Outcome>,
        after: Vec<Setting>,
    },
    /// It is kept only if it is confirmed in time.
    Trial(Trial),
    Confirmed {
        by: String,
        unix_time: u64,
    },
    /// It was not, and is put back from here on.
    TrialOver {
        by: String,
        why: String,
        unix_time: u64,
    },
    /// The guard puts back although the process that applied it is there: it gave no sign of life. Nothing that this process
    /// says later keeps the transaction.
    TakenOver {
        why: String,
        unix_time: u64,
    },
    /// Nothing of it can be put back any more.
    Closed {
        why: String,
        unix_time: u64,
    },
    /// Written by a newer version.
    #[serde(other)]
    Unknown,
}

//! The records in the lines of a journal.

use ringwise_knob::{Setting, Step};
use ringwise_model::{DevId, Requested, Snapshot, Title};
use ringwise_observe::Stuck;
use serde::{Deserialize, Serialize};

use crate::trial_file::Trial;
use crate::{Failure, Outcome, Request, TransactionKind};

/// Format of the file: every line has a checksum. Journals in other formats are not restored, except [`BEFORE_SUMS`].
pub(crate) const FORMAT: u32 = 2;
/// Format of version 0.1, without checksums.
pub(crate) const BEFORE_SUMS: u32 = 1;

/// What was requested, by whom and where, and the state of the host before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub format: u32,
    pub tool: String,
    pub transaction: u64,
    pub kind: TransactionKind,
    pub machine_id: Option<String>,
    pub boot_id: Option<String>,
    pub kernel: Option<String>,
    pub unix_time: u64,
    #[serde(flatten)]
    pub title: Title,
    pub reason: Option<String>,
    pub who: String,
    /// For people to read.
    pub command: String,
    /// The same word by word. Empty: written by a version that kept only the line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// What `apply` was run for. `None`: another command, or a version that did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<Requested>,
    /// Of a transaction that follows the load: its settings from before the first move.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::one_or_many")]
    pub base: Vec<Setting>,
    pub devices: Vec<DevId>,
    pub steps: Vec<Step>,
    /// Settings that were requested too, and had their value already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub already: Vec<Setting>,
    /// Every setting that is changed or may be disturbed, with the value that was found.
    pub start: Vec<Setting>,
    /// How long the guard continues to watch for stuck queues.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub watch_ms: u64,
    /// Stuck queues, because of which the guard rolls back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck: Vec<Stuck>,
    /// Queues that were stuck before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck_before: Vec<Stuck>,
    /// The commands that restore `start`, for people. Interrupt numbers are those at the start.
    pub undo: Vec<String>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Header {
    /// A header with who and where; without devices and without the settings at the start.
    pub(crate) fn of(
        transaction: u64,
        kind: TransactionKind,
        request: &Request,
        now: &Snapshot,
        unix_time: u64,
    ) -> Self {
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
            base: request.base.clone(),
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
    /// The step was refused, ignored or failed.
    NotDone {
        setting: Setting,
        failure: Option<Failure>,
    },
    /// Some steps were refused; these are the steps from here on. What has to be restored for them is in the header and in
    /// `start`, which is on disk before the first of them is written.
    Replanned {
        steps: Vec<Step>,
        already: Vec<Setting>,
        /// Settings that these steps change or may disturb beyond those in the header, as found before the first write.
        start: Vec<Setting>,
        undo: Vec<String>,
    },
    PutBack {
        why: String,
    },
    /// The end. `after`: the settings of `start` and of the steps, with the values that they were left with.
    End {
        outcome: Box<Outcome>,
        after: Vec<Setting>,
    },
    /// The transaction is kept only if it is confirmed in time.
    Trial(Trial),
    Confirmed {
        by: String,
        unix_time: u64,
    },
    /// The trial was not confirmed; the settings are restored from here on.
    TrialOver {
        by: String,
        why: String,
        unix_time: u64,
    },
    /// The guard restores the settings although the applier's process exists, because that gave no sign of life. No later record
    /// of that process keeps the transaction.
    TakenOver {
        why: String,
        unix_time: u64,
    },
    /// Nothing of the transaction can be restored any more.
    Closed {
        why: String,
        unix_time: u64,
    },
    /// Written by a newer version.
    #[serde(other)]
    Unknown,
}

//! What is requested, and the limits of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringwise_knob::{Address, ManualChange, Setting, Step};
use ringwise_model::{DevId, Requested, Title, shell};
use ringwise_observe::Stuck;
use serde::{Deserialize, Serialize};

use crate::{Guardian, NotPutBack, Planner};

/// One transaction: the steps in the order in which they are to be written, and who requested them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The devices that the steps name, as they were when the steps were made. If a device was renamed since, the steps follow
    /// it; if a device does not exist any more, the request is refused.
    pub devices: Vec<DevId>,
    /// In the order in which they are written.
    pub steps: Vec<Step>,
    /// What it is for.
    #[serde(flatten)]
    pub title: Title,
    /// `--reason`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `root (sudo: anna)`.
    pub who: String,
    /// The command line, word by word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// What `apply` was run for. `None`: another command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<Requested>,
    /// For steps that follow the load: their settings from before the first move, which are restored when the service ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::one_or_many")]
    pub base: Vec<Setting>,
    /// Settings of the plan that have their value already. They belong to the transaction like the steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub already: Vec<Setting>,
    /// Settings besides the steps on which a reviewed plan relies: the request is refused if they differ from these values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relies_on: Vec<Setting>,
    /// What the steps skip because CPUs are offline; for the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<NotPutBack>,
    /// What is requested but cannot be set: a rollback to queues that do not exist, a setting that the driver does not have. The
    /// outcome repeats it and exits with status 3.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<Address>,
    /// Manual changes that the steps keep; for the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<ManualChange>,
    /// Transmit queues that were stuck after an earlier transaction, which the guard therefore rolls back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck: Vec<Stuck>,
}

impl Request {
    /// The same steps, for the purpose, user and command line of the other request.
    #[must_use]
    pub fn by(self, other: &Self) -> Self {
        let Self { title, reason, who, argv, .. } = other.clone();
        Self { title, reason, who, argv, ..self }
    }

    /// The command line as it can be copied into a shell.
    pub fn command(&self) -> String {
        shell::join(&self.argv)
    }
}

/// Limits and options of a run.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Apply even if it interrupts the connection of the user; only together with `trial`.
    pub force: bool,
    /// Overwrite manual changes (rollback).
    pub take_over: bool,
    /// Set from a signal handler. At the next step boundary all settings are restored.
    pub stop: Arc<AtomicBool>,
    /// A kernel write that takes longer counts as failed. If it takes effect later, the verification finds that.
    pub deadline: Duration,
    /// How long a link that was up may stay down after a change of channels or rings.
    pub link_wait: Duration,
    /// How long a bond may take to use a member again whose link is up again.
    pub bond_wait: Duration,
    /// Attempts of a write that the kernel answers with EBUSY, EAGAIN or EINTR; at least one.
    pub tries: std::num::NonZeroU32,
    /// Wait before the second attempt; doubles each time.
    pub retry_wait: Duration,
    /// Starts the guard that restores all settings if this process dies. `None` only in tests, which run without a guard.
    pub guard: Option<Arc<dyn Guardian>>,
    /// For a guard: how long the applying process may give no sign of life before the guard takes over. It must be longer than
    /// the longest single wait of that process, which is `deadline` for a call.
    pub silence: Duration,
    /// The transaction is kept only if it is confirmed within this time from the end of the verification.
    pub trial: Option<Duration>,
    /// Maximum time for which transmit queues are watched for stuck ones after the steps; one second if nothing is suspicious.
    /// Zero: no watch.
    pub watch: Duration,
    /// Makes a new plan when a step of a goal is refused. `None`: refused steps are not replaced.
    pub planner: Option<Arc<dyn Planner>>,
    /// The caller has just read the host and knows that a step differs from it: the lock is taken before the host is read.
    /// Otherwise the host is read first, and if every step matches already, nothing is written, not even a lock file.
    pub differs: bool,
    /// Record `already` even if every step has its value; the caller has just read the host.
    pub record: bool,
    /// A setting that changes during the transaction, but not by it, stays as it is, unless the transaction is put back; it is not
    /// an error. No effect on settings whose earlier value the caller does not know, and if a step may change further settings
    /// itself: the layout of queues does not, restarts of the device and bans in irqbalance do.
    pub keep_concurrent_changes: bool,
    /// The trial also ends when this process ends, as `bench` needs it.
    pub tied: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            force: false,
            take_over: false,
            stop: Arc::new(AtomicBool::new(false)),
            deadline: Duration::from_secs(10),
            link_wait: Duration::from_secs(15),
            bond_wait: Duration::from_secs(45),
            tries: std::num::NonZeroU32::new(5).expect("5 is not 0"),
            retry_wait: Duration::from_millis(50),
            guard: None,
            silence: Duration::from_secs(30),
            trial: None,
            watch: Duration::ZERO,
            planner: None,
            differs: false,
            record: false,
            keep_concurrent_changes: false,
            tied: false,
        }
    }
}

impl Policy {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

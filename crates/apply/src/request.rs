//! What is asked for, and within which bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringwise_knob::{Address, Hand, Setting, Step};
use ringwise_model::{DevId, Requested, Title, shell};
use ringwise_observe::Stuck;
use serde::{Deserialize, Serialize};

use crate::{Guardian, NotPutBack, Planner};

/// One transaction: the steps in the order in which they are to be done, and who wants them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The devices that the steps name, as they were when the steps were made. A device that has
    /// another name now is followed; one that is not there is a refusal.
    pub devices: Vec<DevId>,
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
    /// Settings of the plan that hold already. They are wanted from now on, like the steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub already: Vec<Setting>,
    /// Settings besides the steps that must be as given here, or it is refused: a reviewed plan counts on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relies_on: Vec<Setting>,
    /// What the steps leave out because CPUs are offline; for the account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<NotPutBack>,
    /// What a rollback cannot restore, because the queues are not there; for the account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<Address>,
    /// What somebody else has set and the steps leave alone; for the account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Hand>,
    /// Queues that stood still after an earlier transaction, for which the guard rolls it back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stuck: Vec<Stuck>,
}

impl Request {
    /// The command line as it can be copied into a shell.
    pub fn command(&self) -> String {
        shell::join(&self.argv)
    }
}

/// Bounds of a run.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Interrupt the way in all the same; only together with `trial`.
    pub force: bool,
    /// Overwrite what somebody else has changed since (rollback).
    pub take_over: bool,
    /// Set from a signal handler: at the next step boundary everything is put back.
    pub stop: Arc<AtomicBool>,
    /// One kernel write that takes longer has failed; what it does later is found by the verification.
    pub deadline: Duration,
    /// How long a link that was up may stay down after a change of channels or rings.
    pub link_wait: Duration,
    /// How long a bond may take to use a member again whose link is back.
    pub bond_wait: Duration,
    /// Tries of a write that the kernel answers with EBUSY, EAGAIN or EINTR; at least one.
    pub tries: std::num::NonZeroU32,
    /// Wait before the second try; doubles each time.
    pub retry_wait: Duration,
    /// Who puts everything back if this process dies. None where that is seen to otherwise (tests).
    pub guard: Option<Arc<dyn Guardian>>,
    /// For a guard: how long the process that applies may give no sign of life before the guard takes over. Longer than
    /// any single wait of it, which is `deadline` for a call.
    pub silence: Duration,
    /// It is kept only if it is confirmed within this time from the end of the verification.
    pub trial: Option<Duration>,
    /// After the steps, how long transmit queues are watched for one that stands still; at most, and a second where
    /// nothing is suspicious. Zero: not at all.
    pub watch: Duration,
    /// Who plans again when a step of a goal is refused. None: nothing takes the place of refused steps.
    pub planner: Option<Arc<dyn Planner>>,
    /// The caller has just read the host and knows that a step differs from it: the lock is taken before the host is read.
    /// Else the host is read first, and where every step holds already nothing is written, not even a lock file.
    pub differs: bool,
    /// The trial also ends with this process: what only `bench` wants goes with it.
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
            tied: false,
        }
    }
}

impl Policy {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

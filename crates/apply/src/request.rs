//! What is asked for, and within which bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringwise_knob::Step;
use ringwise_model::DevId;
use serde::{Deserialize, Serialize};

/// One transaction: the steps in the order in which they are to be done, and who wants them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The devices that the steps name, as they were when the steps were made. A device that has
    /// another name now is followed; one that is not there is a refusal.
    pub devices: Vec<DevId>,
    pub steps: Vec<Step>,
    /// What it is for in a few words: the goal, `rollback of 13`.
    pub title: String,
    /// `--reason`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `root (sudo: anna)`.
    pub who: String,
    /// The command line.
    pub command: String,
}

/// Bounds of a run.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Overwrite what somebody else has changed since (rollback).
    pub take_over: bool,
    /// Set from a signal handler: at the next step boundary everything is put back.
    pub stop: Arc<AtomicBool>,
    /// One kernel write that takes longer has failed; what it does later is found by the verification.
    pub deadline: Duration,
    /// How long a link that was up may stay down after a change of channels or rings.
    pub link_wait: Duration,
    /// Tries of a write that the kernel answers with EBUSY, EAGAIN or EINTR; at least one.
    pub tries: std::num::NonZeroU32,
    /// Wait before the second try; doubles each time.
    pub retry_wait: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            take_over: false,
            stop: Arc::new(AtomicBool::new(false)),
            deadline: Duration::from_secs(10),
            link_wait: Duration::from_secs(15),
            tries: std::num::NonZeroU32::new(5).expect("5 is not 0"),
            retry_wait: Duration::from_millis(50),
        }
    }
}

impl Policy {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

//! A planned change with its reason.

use ringwise_model::Fact;
use serde::{Deserialize, Serialize};

use crate::{Reason, Setting};

/// What to do when the kernel refuses a step for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfRefused {
    /// Later steps build on it: put everything back.
    PutBack,
    /// Later steps build on it: plan again. Where nobody can, put everything back.
    Replan,
    /// Note it, remember it, go on. Plan again if somebody can.
    Skip,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub setting: Setting,
    /// What was found. Absent: created by an earlier step (a queue that does not exist yet).
    pub from: Fact<Setting>,
    /// Rule id, e.g. `A03`, `Q05`, `R0.09`.
    pub rule: String,
    pub reason: Reason,
    /// Where the rule comes from, e.g. `kernel documentation, networking/scaling`.
    pub source: String,
    pub interrupts_traffic: bool,
    pub if_refused: IfRefused,
    /// What comes nearest, tried in order where the setting is refused or not kept; the first that is kept takes
    /// its place. Where none is, `if_refused` holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instead: Vec<Setting>,
}

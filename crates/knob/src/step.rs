//! A planned change with its reason.

use ringwise_model::Fact;
use serde::{Deserialize, Serialize};

use crate::{Reason, Setting};

/// What to do when the kernel refuses a step permanently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfRefused {
    /// Later steps depend on it: roll everything back.
    PutBack,
    /// Later steps depend on it: plan again. If planning again is not possible, roll everything back.
    Replan,
    /// Report it, remember it and continue. Plan again if possible.
    Skip,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The setting that the step writes.
    pub setting: Setting,
    /// The value that was found. Absent: an earlier step creates it (a queue that does not exist yet).
    pub from: Fact<Setting>,
    /// Id of the rule, e.g. `A03`, `Q05`, `R0.09`.
    pub rule: String,
    /// Why the plan has this step.
    pub reason: Reason,
    /// The source of the rule, e.g. `kernel documentation, networking/scaling`.
    pub source: String,
    /// Whether the write takes the link down or loses packets for a moment.
    pub interrupts_traffic: bool,
    /// What to do when the kernel refuses the step permanently.
    pub if_refused: IfRefused,
    /// Alternatives, tried in order if the setting is refused or not kept; the first one that is kept replaces it. If
    /// none is kept, `if_refused` applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instead: Vec<Setting>,
}

//! How much a finding matters, and how certain it is.

use serde::{Deserialize, Serialize};

/// How much a finding matters; ordered from the least to the most severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; needs no action.
    Info,
    /// Costs performance, or may do so.
    Warning,
    /// Packets are lost, or something does not work at all.
    Error,
}

impl Severity {
    /// All severities, the most severe first.
    pub const ALL: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Info];

    /// The name in documents and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }
}

/// How certain a finding is if everything could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The problem exists and matters.
    Sure,
    /// The problem exists; whether it matters depends on the load.
    Likely,
}

//! How much a finding matters, and how sure it is.

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

/// How sure a finding is when everything could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// It is so.
    Sure,
    /// It is so, and that it matters depends on the load.
    Likely,
}

//! A program or systemd unit whose flows could not be looked up.

use ringwise_model::{ConfiguredBy, FlowsUnknown};
use ringwise_plan::{NotPossible, Obstacle};

/// A flow that no rule steers to its group, because its addresses and ports are not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsteeredFlow {
    pub(crate) dev: String,
    pub(crate) group: String,
    /// `unit "nginx.service"`
    pub(crate) who: String,
    pub(crate) why: FlowsUnknown,
    pub(crate) by: ConfiguredBy,
}

impl UnsteeredFlow {
    /// The note for the plan, which is made without this flow.
    pub(crate) fn not_possible(&self) -> NotPossible {
        NotPossible {
            address: None,
            what: format!("{} group {}: flows of {}", self.dev, self.group, self.who),
            why: Obstacle::Configured {
                obstacle: Box::new(Obstacle::FlowsNotFound { why: self.why.clone() }),
                by: vec![self.by.clone()],
            },
            needed: true,
            blocked_by: None,
            settings: 1,
        }
    }
}

impl std::fmt::Display for UnsteeredFlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: group {}: {}: {}", self.by, self.group, self.who, self.why)
    }
}

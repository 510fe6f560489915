//! A population: flows that `explain` answers for together.

use ringwise_flow::{CountedFlow, Tuple};

/// Flows, where they come from, and what was skipped.
#[derive(Debug, Default)]
pub(super) struct Population {
    pub from: String,
    pub flows: Vec<CountedFlow>,
    /// Notes with counts, as text.
    pub notes: Vec<String>,
    /// Each flow counts as one packet, because the source has no packet counts.
    pub uncounted: bool,
    /// Flows with the queue on which their packets were seen.
    pub seen: Vec<(Tuple, u32)>,
}

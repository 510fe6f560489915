//! Flows that `explain` answers for together.

use ringwise_flow::{Counted, Tuple};

/// Flows with where they come from and what was left out.
#[derive(Debug, Default)]
pub(super) struct Population {
    pub from: String,
    pub flows: Vec<Counted>,
    /// In words, with counts.
    pub notes: Vec<String>,
    /// One packet stands for each flow: nobody counted.
    pub uncounted: bool,
    /// Queues that packets were seen to come by.
    pub seen: Vec<(Tuple, u32)>,
}

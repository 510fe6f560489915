//! What a plan lays down, beside what is there.

use ringwise_knob::{Match, Setting};
use ringwise_model::Fact;

/// A setting as it is, and as it is wanted.
pub(crate) struct Wanted {
    pub setting: Setting,
    pub live: Fact<Setting>,
    pub matched: Match,
    /// An earlier step of the plan may create or reset it: it is written in any case.
    pub anew: bool,
    /// The goal is not fully met without it.
    pub needed: bool,
}

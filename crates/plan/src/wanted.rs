//! A setting that a plan requests, with its current value.

use ringwise_knob::{Match, Setting};
use ringwise_model::Fact;

/// The current and the requested value of a setting.
pub(crate) struct RequestedSetting {
    pub setting: Setting,
    pub live: Fact<Setting>,
    pub matched: Match,
    /// An earlier step of the plan may create or reset the setting: it is written in any case.
    pub anew: bool,
    /// Whether the goal is incomplete without it.
    pub needed: bool,
}

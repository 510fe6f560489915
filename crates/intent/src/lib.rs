//! What is requested of a host: flags, which override the configuration file, the settings in effect, and manual
//! changes; combined into the plan that `apply`, `plan`, `check` and `persist` use.
//!
//! ```text
//!   IntentFlags + file ─► Wanted ─(host)─► Intent ─┐
//!   manual changes, what devices refuse ───────────┼─► Planning ─► Plan, and again when a step is refused
//!   snapshot ──────────────────────────────────────┘       └─► plan file ─► PlanFile: applied exactly or refused
//!   journals ─► in_effect, Standing: what was applied here, as a configuration or for another plan
//! ```
//!
//! Files are read and written here: the configuration and plan files. Notes for the user are returned.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod error;
mod flows;
mod goals;
mod in_effect;
mod manual_changes;
mod missing;
mod plan_file;
mod planning;
mod program_cpus;
mod replan;
mod request;
mod standing;
mod wanted;

pub use error::{Class, Error, PlanMismatch, Result};
pub use flows::look_up;
pub use goals::{implied, role};
pub use in_effect::in_effect;
pub use manual_changes::{ManualChangePolicy, interfaces_without_settings, manual_changes_for_plan};
pub use missing::UnsteeredFlow;
pub use plan_file::{PlanFile, load as load_plan, write as write_plan};
pub use planning::{Planning, PlanningHost};
pub use program_cpus::compare_programs;
pub use replan::{unchanged_settings, without_names};
pub use request::request;
pub use ringwise_plan::xps_masks;
pub use standing::{
    Applied, AppliedPart, AppliedParts, AppliedRecord, FILE as STANDING_FILE, command_again, join_goals,
    plan as plan_in_effect,
};
pub use wanted::{Wanted, load as load_config, members, names, of_flags, read};

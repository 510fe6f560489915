//! The service: it learns of changes, and writes again what a reset has lost.
//!
//! ```text
//!   notifications ─► Evidence ─┐
//!   every 10 s ────────────────┼─► Schedule ─► look: discover ─► todo ─► plan again? ─► act: a transaction of apply
//!   journals ──────────────────┘                                │
//!   people: apply, rollback, pause (control) ───────────────────┘ they decide; manual changes stay
//! ```
//!
//! [`schedule`], [`evidence`], [`losses`], [`keep`] and [`pauses`] are pure: they take values and a clock. The rest is the wiring:
//! the loop (`run`), what it knows (`service`), one look (`look`), what is read before it (`prepare`), the cheap comparison
//! (`unchanged`), what was requested (`requests`), what may follow the load because of it (`permitted`), where programs of groups
//! listen (`programs`), links that a write takes down (`link_watch`, `link_losses`), groups that follow the traffic (`groups`, `followed_groups`, `group_plan`), new plans (`replan`), transactions (`act`), the socket (`control`), and what is published (`state`).
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod act;
mod compared;
#[cfg(test)]
mod competing_tests;
mod control;
mod event;
pub mod evidence;
mod follow;
mod followed_groups;
mod group_plan;
mod groups;
#[cfg(test)]
mod interrupt_tests;
pub mod keep;
mod link_losses;
mod link_watch;
mod load;
#[cfg(test)]
mod load_rig;
#[cfg(test)]
mod load_tests;
mod load_write;
mod look;
pub mod losses;
mod move_reason;
pub mod pauses;
mod permitted;
mod prepare;
#[cfg(test)]
mod prepare_tests;
mod programs;
#[cfg(test)]
mod programs_tests;
mod replan;
mod requests;
#[cfg(test)]
mod rps_tests;
mod run;
pub mod schedule;
mod service;
#[cfg(test)]
mod service_tests;
mod setting_move;
mod state;
pub mod unchanged;

#[cfg(test)]
mod tests;

pub use control::{ControlReply, ControlRequest, send_request};
pub use event::Event;
pub use follow::{EntryMove, FollowFinding, GroupsChanged, InterruptMoved, LoadFinding, MaskChanged};
pub use move_reason::{Actuator, MoveCount, MoveReason};
pub use run::run;
pub use service::ServiceSetup;
pub use state::{ActionCause, ActionEnding, Notifications, ServiceAction, ServiceState, ServiceTotals};

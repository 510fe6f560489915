//! The audit: rules over a snapshot, the plan made for it and what was counted, in; findings out.
//!
//! ```text
//!   Snapshot, Extra ─┐
//!   Plan ────────────┼─► rules (data and one small function each) ─► findings ─► folded under their cause
//!   Traffic ─────────┘                                              unread, not evaluated, did not apply
//! ```
//! What the plan would change is a finding with the plan's own reason: there is one judgement. Unknown is never fine:
//! what could not be read is a state of its own. Pure: no file, no clock.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod accept;
pub mod capability;
mod cx;
mod first;
mod fix;
mod fold;
pub mod formats;
pub mod found;
mod judge;
mod laid;
mod needs;
mod page;
mod planned;
mod remedy;
mod report;
mod role;
mod rule;
mod rules;
mod say;
mod severity;
mod traffic;
mod wording;

pub use cx::{Cx, GoalFrom, Input};
pub use judge::judge;
pub use page::{explain, index_page, left_out_page, markdown};
pub use report::{Accepted, Finding, Report, SCHEMA, Unopened, Unreadable, VERSION};
pub use role::{Role, RoleGuess, guess as guess_role, tcp_in_use};
pub use rule::{Judge, Rule};
pub use rules::{LEFT_OUT, LeftOut, find, nearest, rules};
pub use severity::{Confidence, Severity};
pub use traffic::{CpuTraffic, LinkTraffic, QueueTraffic, Traffic};

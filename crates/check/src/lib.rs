//! The audit. Its input is a snapshot, the plan made for it and the traffic counted between two samples; its output is
//! findings.
//!
//! ```text
//!   Snapshot, Extra ─┐
//!   Plan ────────────┼─► rules (data and one small function each) ─► findings ─► folded under their cause
//!   Traffic ─────────┘                                              unread, not evaluated, did not apply
//! ```
//! Each step of the plan becomes a finding with the reason of the step, so plan and audit never disagree. A rule whose
//! input could not be read is reported as unread and does not count as passed. This crate reads no file and no clock.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod accept;
pub mod capability;
mod causes;
mod configured_settings;
mod finding_sink;
mod fix;
pub mod fleet;
pub mod formats;
pub mod found;
mod judge;
mod main_problem;
mod needs;
mod page;
mod planned;
mod remedy;
mod report;
mod role;
mod rule;
mod rule_context;
mod rules;
mod severity;
mod traffic;
mod wording;

pub use judge::judge;
pub use page::{explain, index_page, left_out_page, markdown};
pub use report::{Accepted, Finding, MainProblem, Report, RuleCounts, SCHEMA, Unreadable, UnreadableCapture, VERSION};
pub use role::{Role, RoleGuess, guess as guess_role, tcp_in_use};
pub use rule::{Rule, RuleCheck};
pub use rule_context::{AuditInput, GoalOrigin, RuleContext};
pub use rules::{UNJUDGED_RULES, UnjudgedRule, find, nearest, rules};
pub use severity::{Confidence, Severity};
pub use traffic::{CpuTraffic, HostTraffic, LinkTraffic, QueueTraffic};

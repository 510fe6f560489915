//! Exports a plan for hosts where ringwise does not run: as a shell script with its undo ([`script`]), and as a unified
//! diff for code review ([`diff`]).
//!
//! Both are made from the plan and the snapshot alone.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod diff;
pub mod script;
pub mod summary;

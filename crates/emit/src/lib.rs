//! A plan for those who do not run ringwise on the host: a shell script with its undo ([`script`]), and a unified diff for code
//! review ([`diff`]).
//!
//! Both are made from the plan and the snapshot alone.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod diff;
pub mod script;
pub mod summary;

//! Renders the pages of the commands. The input is a snapshot, a plan, findings, an outcome or a history; the output is
//! text, JSON or a picture.
//!
//! A module is a page, named after its command, or a part that several pages share (bands of equal settings, the matrix
//! of queues and CPUs, columns of CPUs). A [`ringwise_text::Style`] holds the width of the page, its colours and its
//! time zone. This crate reads no file and no terminal, and it decides nothing: it only formats values that other
//! crates computed.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bands;
pub mod check;
mod columns;
pub mod compare;
pub mod competing;
pub mod control;
mod doubled_cores;
pub mod explain;
mod facts;
pub mod fleet;
pub mod fleet_config;
pub mod fleet_html;
pub mod fleet_json;
mod gains;
mod groups;
mod interrupts;
pub mod json;
pub mod knob_values;
pub mod learned;
pub mod manual_changes;
mod matrix;
mod misplaced;
mod moderation;
pub mod outcome;
mod pending;
pub mod plan;
mod plan_index;
mod program_cpus;
pub mod report;
mod rules;
mod service;
pub mod show;
mod skipped;
pub mod status;
mod steering;
pub mod svg;
pub mod table;
pub mod topics;
mod verdict;
pub mod verify_history;
mod virtual_functions;
mod without_interface;

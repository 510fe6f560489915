//! Parses the configuration file (TOML), binds it to the interfaces of one host as an
//! [`Intent`](ringwise_model::Intent), and prints a configuration as TOML again.
//!
//! ```text
//!   text ─► check (keys, types, ranges: spec) ─► decode ─► Config ─► bind (names, drivers, MACs of a host) ─► Intent
//!             └────────── all faults at once, each with its line ──┘        print ◄── Config
//! ```
//!
//! This crate does no I/O: the caller passes the text and the interfaces, so an invalid file is refused before the host is read.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bind;
mod check;
mod conflict;
mod contradict;
mod decode;
pub mod export;
mod fault;
mod host_group;
pub mod import;
mod init;
mod layers;
mod matches;
mod merge;
mod print;
pub mod schema;
mod set;
pub mod spec;
mod value;
mod words;

pub use bind::{Applicable, Bound, LowerInterfaces, applicable, bind, is_chosen, joined, lower_interfaces};
pub use check::expected_text as what;
pub use contradict::contradictions;
pub use fault::{Fault, Faults};
pub use host_group::{CountRange, HostMatch, HostMatcher};
pub use init::init;
pub use matches::UndecidedGroup;
pub use print::{print, print_entry, print_host_keys, print_knobs};
pub use set::{parse_set, parse_set_of};
pub use value::{BUILT_IN_POLICIES, Config, HostGroup, HostPart, InterfaceEntry, Matcher};
pub use words::glob_matches;

/// Name of the JSON document that is the schema of the file.
pub const SCHEMA: &str = "ringwise.config";
/// `version` in the file. Keys may be added within it; what a version means does not change.
pub const VERSION: u32 = 1;

/// Parses `text`, which was read from `file`. The error lists every fault.
pub fn parse(file: &str, text: &str) -> Result<Config, Faults> {
    decode::document(file, text, decode::Origin::File)
}

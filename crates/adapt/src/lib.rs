//! Decides which entries of an indirection table, and which interrupts, to move so that the CPUs that serve the queues of an interface
//! share the load; and which CPUs are in the RPS mask of an interface with one queue.
//!
//! ```text
//!   every second: Sample ─► LoadWindow: suspect? ─► count entries ─► EntryEvidence: agrees with the table?
//!                                                                          │
//!     kept or restored ◄─ judge, 5 s later ◄─ write ◄─ limits ◄─ propose: worth it? (flow::balance_within)
//!                                                        ◄─ interrupts: otherwise, does a queue share its CPU?
//!                                                        ◄─ rps: otherwise, can other CPUs help the only queue?
//! ```
//!
//! The crate is pure: an [`Adapter`] gets what was read and a clock value, and returns an [`AdapterAction`]. The caller reads,
//! counts and writes. It reads the table again before each write, and lets one interface at a time make a step
//! ([`limits::OneAtATime`]). Unknown values are never taken for zero. An interrupt moves only if no table entry can ([`interrupts`]), and an RPS mask changes only if
//! no interrupt can move ([`rps`]).
//! The groups of queues of an interface follow the traffic separately ([`groups`]): a sample shows it, not the load of one second.
//! The crate does not name flows or change anything that interrupts traffic.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod action;
mod adapter;
pub mod buckets;
pub mod groups;
pub mod interrupts;
pub mod judge;
pub mod limits;
pub mod load;
pub mod moves;
pub mod propose;
mod receiver;
pub mod rps;
mod text;

pub use action::{AdapterAction, Forbidden, OffReason, RestReason, Settled, StepWait};
pub use adapter::{Adapter, COUNT, Mask, Permitted, Signals};

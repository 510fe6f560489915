//! For tests only: described machines, and a simulated host that behaves like a kernel.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod closed_loop;
pub mod counting;
pub mod dir;
pub mod golden;
pub mod hosts;
pub mod lane;
pub mod machines;
pub mod project;
pub mod sim;
pub mod skip;
pub mod topo;
pub mod tree;

pub use skip::{fetched, skipped};

//! Counters at two moments and what happened between them.
//!
//! [`sample()`] reads; [`Delta::between`] is pure. `ringwise verify --for 5s` is made of both: later
//! interrupts of a queue are counted on the planned CPU and on no other.
#![forbid(unsafe_code)]

mod delta;
mod sample;

pub use delta::{Counted, Delta, IrqDelta, SoftnetDelta};
pub use sample::{Error, Sample, Softnet, sample};

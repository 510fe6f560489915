//! Decides which entries of an indirection table to move so that the queues of an interface share the load.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod buckets;
pub mod limits;
pub mod load;
pub mod propose;

//! Recordings of counters, as `watch --record` and `apply --measure` write them and `watch --replay`, `report` and `export --replay`
//! read them.
//!
//! A recording is a text file of lines: who recorded and when ([`Entry::Begin`]), the layout that the samples after it have
//! ([`Entry::Layout`]), and samples ([`Entry::Sample`]). Each is appended by one write and ends with a full stop, so that one that
//! broke off is recognized and skipped. [`Recorder`] appends, [`Replay`] reads from the beginning, [`Tape`] at any sample.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod error;
mod events;
pub mod measured;
mod record;
mod tape;

pub use error::{Error, Result};
pub use events::{Event, events};
pub use record::{Entry, Recorder, Replay};
pub use tape::Tape;

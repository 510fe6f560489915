//! Recordings of counters. `watch --record` and `apply --measure` write them.
//! `watch --replay`, `report` and `export --replay` read them.
//!
//! A recording is a text file of lines: who recorded and when ([`RecordingLine::Begin`]), the layout of the samples after it
//! ([`RecordingLine::Layout`]), and samples ([`RecordingLine::Sample`]). Each line is appended by one write and ends with a full stop,
//! so that readers recognize and skip an incomplete line. [`Recorder`] appends, [`Replay`] reads from the beginning,
//! [`Tape`] reads from any sample.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod error;
mod events;
pub mod measured;
mod record;
mod tape;

pub use error::{Error, Result};
pub use events::{Event, events};
pub use record::{Recorder, RecordingLine, Replay};
pub use tape::Tape;

//! Shared parts of all output for people: the style of a page, labels of values, times, and commands to copy.
//!
//! A [`Style`] holds the width of a page, and whether to use colours, only ASCII characters, and times in UTC. The
//! program makes it once from the arguments and the terminal; nothing in this crate reads either.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod label;
pub mod propose;
mod recorded_by;
mod style;
pub mod unread;
pub mod visible;
pub mod when;

pub use label::{
    confidence, far_queues, host_line, host_name, is_down, is_listed, kind_name, link, mask, no_answer, numbers,
    queues, sentence, set, source, user, vector_label, word,
};
pub use propose::RecordingName;
pub use recorded_by::RecordedBy;
pub use ringwise_model::words::{hang, len, one_line, pad, plural, right, thousands, visible};
pub use style::{Mark, Style, Tint};

//! What everything that prints for people shares: the style of a page, labels of values, times, and commands to copy.
//!
//! A [`Style`] says how wide a page is, and whether it has colours, ASCII characters only and times in UTC. It is made once, where
//! the arguments and the terminal are known; nothing here asks for either.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod label;
pub mod propose;
mod style;
pub mod unread;
pub mod visible;
pub mod when;

pub use label::{
    confidence, directories, far_queues, host_line, host_name, is_down, is_listed, kind_name, link, mask, no_answer,
    numbers, queues, sentence, set, source, user, vector_label, word,
};
pub use propose::Recording;
pub use ringwise_model::words::{hang, len, one_line, pad, plural, right, thousands, visible};
pub use style::{Mark, Style, Tint};

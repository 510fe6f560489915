//! The pages of the commands: a snapshot, a plan, findings, an outcome or a history in; text, JSON or a picture out.
//!
//! One module is one page, named after its command; the rest are parts that pages share (bands of equal settings, the matrix of
//! queues and CPUs, columns of CPUs). How wide a page is, its colours and its times come with a [`ringwise_text::Style`]. Nothing here reads
//! a file or asks the terminal, and nothing decides: values that were decided elsewhere are put into words.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bands;
pub mod check;
mod columns;
mod compare;
pub mod control;
pub mod explain;
mod facts;
mod groups;
pub mod hands;
pub mod json;
pub mod learned;
mod matrix;
mod moderation;
pub mod outcome;
pub mod plan;
mod plan_index;
pub mod report;
pub mod rivals;
mod rules;
pub mod show;
pub mod standing;
pub mod status;
mod steering;
pub mod svg;
pub mod table;

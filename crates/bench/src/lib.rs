//! Measurement: load, order of trials, statistics, results and their presentation.
//!
//! ```text
//!   Plan (states × points × pairs) ─► switch a state (experiment) ─► Side: load and answer ─► Trial ─► Comparison ─► text, HTML, SVG
//! ```
//!
//! Pure parts work on values: [`result`] (what is written, as JSON lines), the statistics and the figures. A
//! [`side::Side`] is one end of a test, in this process or behind a stream of lines. The caller switches the states of
//! the host under test.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bound;
pub mod compare;
pub mod delay;
pub mod design;
mod engine;
pub mod error;
pub mod figure;
pub mod file;
pub mod forward;
pub mod halving;
mod hello;
mod hist;
pub mod html;
pub mod limits;
pub mod load;
pub mod local;
mod pktgen;
mod programs;
pub mod rate;
pub mod remote;
pub mod result;
pub mod rng;
mod score;
mod secret;
pub mod serve;
mod session;
pub mod side;
pub mod stats;
pub mod summary;
pub mod table;
pub mod text;
mod wire;
pub mod words;

//! The sessions of `ringwise bench`: they apply the states of the host under test one after the other, run a load in
//! each state, and compare the results.
//!
//! ```text
//!   Prepared states ─► Switch (apply: one transaction on trial each) ─┐
//!   Workload (Messages, Forward) ─► Sides (bench) + Meter (observe) ──┴─► Experiment ─► Finished
//! ```
//!
//! The caller reads the command line, plans the states, asks the user, and prints each [`Event`]. Load, order of trials
//! and statistics are those of `ringwise_bench`. Each result is written to a file as soon as it is measured.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod axes;
mod context;
mod environment;
mod error;
mod forward;
mod messages;
mod meter;
mod search;
mod session;
mod sides;
mod states;

pub use context::{Event, Measurement, TrialContext, Workload};
pub use environment::{caveat, environment, ports};
pub use error::{AddressFault, Class, Error, Result};
pub use forward::{Forward, ForwardSpec, Recipe, SOURCES};
pub use messages::{Level, LoadDriver, Messages, MessagesSpec, MessagesWorkload};
pub use meter::MeterReading;
pub use search::{Candidate, SearchSpace, candidates, metric};
pub use session::{Experiment, Finished, ResultsFile};
pub use sides::{Sides, address};
pub use states::{Prepared, Switch};

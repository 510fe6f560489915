//! Changing a host as one transaction, and undoing it.
//!
//! ```text
//!   Request ─► lock ─► unfinished journal? ─► discover ─► same devices? live == from? ─► journal, fsync
//!                                                                                          │
//!      ┌───────────────────────────────────────────────────────────────────────────────────┘
//!      ▼
//!   step: differs? ─► write ─► read back        after a step that renumbers: wait for the link, discover again
//!      │
//!      ├─ all done ─► discover ─► everything as asked? side effects put right ─► keep      ─┐
//!      └─ failed, stopped ─► discover ─► diff(live, start) forward ─► discover ─► put back ─┴─► Outcome
//! ```
//!
//! Putting back is not the steps in reverse: it is the same machine run forward towards the start
//! (DESIGN section 2). It does not decide what is good for a host; it gets steps and does them.
//! It does not guard against a lost control path; the caller asks for that before it calls here.
#![forbid(unsafe_code)]

mod channels;
mod coalesce;
mod cx;
mod error;
mod event;
mod irq;
mod journal;
mod ledger;
mod names;
mod outcome;
mod past;
mod put;
mod put_back;
mod report;
mod request;
mod rfs;
mod rings;
mod rps;
mod rss;
mod run;
mod store;
mod tx;
mod undo;
mod xps;

pub use error::{Error, Moved, Refusal};
pub use event::{Event, Phase};
pub use outcome::{Adjusted, Failure, Ignored, NotPutBack, Outcome, Refused, Verdict};
pub use past::{history, verify, verify_in};
pub use report::{Ending, Entry, Holder, Kind, Standing, Verify};
pub use request::{Policy, Request};
pub use run::run;
pub use store::{Hook, Store};
pub use undo::{recover, rollback};

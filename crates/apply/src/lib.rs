//! Changing a host as one transaction, and undoing it.
//!
//! ```text
//!   Request ─► lock ─► unfinished journal? ─► discover ─► same devices? live == from? ─► journal, fsync
//!                                                                                          │
//!      ┌───────────────────────────────────────────────────────────────────────────────────┘
//!      ▼
//!   step: differs? ─► write ─► read back        after a step that renumbers: wait for the link, discover again
//!      │
//!      ├─ all done ─► discover ─► as requested? side effects restored ─────────► keep, or on trial ─┐
//!      └─ failed, stopped ─► discover ─► diff(live, start) forward ─► discover ─► put back ──────────┴─► Outcome
//! ```
//!
//! While a transaction changes the host, a guard process stands by outside this process ([`guard`]). Restoring does not replay
//! the steps in reverse: the same machine runs forward, towards the values at the start (DESIGN section 2). This crate does not
//! decide what is good for a host; it gets steps and applies them. For every caller it refuses steps that would interrupt the
//! connection of the user or take down the last member of a bond.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod adopt;
mod anew;
mod bond;
mod channels;
mod coalesce;
mod control;
mod cx;
mod end;
mod error;
mod event;
mod fallback;
mod families;
mod features;
mod forward;
pub mod guard;
mod guard_error;
mod guard_place;
mod guard_process;
mod guardian;
mod irq;
mod journal;
mod journals;
mod kept;
mod ledger;
mod lives;
mod made;
mod names;
mod napi;
mod newer;
mod outcome;
mod past;
mod pause;
mod preflight;
mod published;
mod put;
mod put_back;
mod record;
mod replan;
mod report;
mod request;
mod rings;
mod rivals;
mod rss;
mod rules;
mod run;
mod seen;
mod start;
mod state_file;
mod store;
mod sum;
mod support;
mod takeover;
mod trial;
mod trial_file;
mod tx;
mod undo;
mod unfinished;
mod watch;

pub use adopt::{adopt, adoptable};
pub use anew::set_up_anew;
pub use error::{Error, Moved, Refusal};
pub use event::{Event, Phase};
pub use families::families;
pub use guard_error::{FileFault, GuardError, UnusableFiles};
pub use guard_place::remove_copy;
pub use guard_process::{Link, Process};
pub use guardian::{Armed, Guardian, Job};
pub use journals::Journals;
pub use outcome::{Adjusted, Failure, Ignored, Instead, NotPutBack, Outcome, Refused, Verdict};
pub use past::{history, replaces_another, verify, verify_in};
pub use replan::{NewPlan, NoPlan, Planner};
pub use report::{Ending, Entry, Holder, Kind, Newer, Standing, Verify};
pub use request::{Policy, Request};
pub use run::{run, still_fits};
pub use seen::{Happened, happened, note_seen};
pub use store::{Hook, OpenLock, Store};
pub use takeover::{Halt, Lost, SignOfLife};
pub use trial::{Confirmed, NotNoted, OnTrial, Pending, confirm, pending, undo_now};
pub use trial_file::Fate;
pub use undo::{WouldUndo, recover, rollback, would_undo};

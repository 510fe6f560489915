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
mod balance;
mod bond;
mod channels;
mod checksum;
mod coalesce;
mod committed;
mod control;
mod cpu_timers;
mod drift_log;
mod error;
mod event;
mod fallback;
mod families;
mod features;
mod finish;
mod forward;
mod free_vectors;
mod group_settings;
pub mod guard;
mod guard_ahead;
mod guard_error;
mod guard_link;
mod guard_place;
mod guard_process;
mod guard_start;
mod guardian;
mod history;
mod host_access;
mod irq;
mod irqbalance;
mod journal;
mod journals;
mod ledger;
mod names;
mod napi;
mod newer;
mod one_or_many;
mod outcome;
mod pause;
mod preflight;
mod prune;
mod published;
mod record;
mod reinitialize;
mod replan;
mod report;
mod request;
mod restore;
mod rings;
mod rss;
mod rules;
mod run;
mod start;
mod state_file;
mod store;
mod support;
mod table_guard;
mod takeover;
mod trial;
mod trial_file;
mod tx;
mod undo;
mod unfinished;
mod watch;
mod write_setting;

pub use adopt::{adopt, adoptable};
pub use balance::{BalancedSetting, balance_step, may_be_moved, restore_balanced};
pub use drift_log::{DriftCause, drift_cause, note_seen};
pub use error::{ChangedSetting, Error, Refusal};
pub use event::{Event, Phase};
pub use families::{families, parts};
pub use guard_ahead::GuardAhead;
pub use guard_error::{FileFault, GuardError, UnusableFiles};
pub use guard_link::GuardLink;
pub use guard_place::{TestedProgram, remove_copy};
pub use guard_process::Process;
pub use guardian::{Armed, Guardian, Job};
pub use history::{history, replaces_another, verify, verify_in};
pub use journals::{Files as JournalFiles, Journals};
pub use outcome::{Adjusted, Failure, Ignored, Instead, NotPutBack, Outcome, Refused, RunResult};
pub use prune::prune_service;
pub use reinitialize::reinitialized;
pub use replan::{NewPlan, NoPlan, Planner};
pub use report::{Attention, Ending, HistoryEntry, Holder, Newer, SERVICE, SettingInEffect, TransactionKind, Verify};
pub use request::{Policy, Request};
pub use run::{run, still_fits};
pub use store::{Hook, LockWaitHook, OpenLock, Store};
pub use table_guard::{arm_for_tables, hand_over, take_tables};
pub use takeover::{Halt, Lost, SignOfLife};
pub use trial::{Confirmed, OnTrial, Pending, UnrecordedConfirmation, confirm, pending, undo_now};
pub use trial_file::{ProcessId, TrialResult, UndoneBy};
pub use undo::{WouldUndo, recover, rollback, would_undo};

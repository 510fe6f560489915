//! Kernel settings, and what is known about them without access to a host. A [`Setting`] is one kernel setting with its
//! address and value. For each setting the crate knows the order of writing, the settings that a write resets, when two
//! values count as equal, whether a write interrupts traffic, what an errno means, and the command that writes the
//! setting without ringwise.
//!
//! ```text
//!   Snapshot ── live() ──► settings now ──┐
//!                                         ├─ diff ─► changes in the order in which they must be written
//!   plan / journal ─► settings requested ┘
//! ```
//!
//! One file per family, with the same name in `discover`, `knob`, `plan` and `apply`.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod address;
pub mod channels;
pub mod coalesce;
mod declare;
mod diff;
mod family;
pub mod features;
pub mod host;
pub mod irq;
pub mod irqbalance;
pub mod learned;
mod mask;
pub mod napi;
pub mod offline;
mod order;
pub mod overlap;
pub mod partial;
pub mod path;
pub mod pause;
mod project;
mod provenance;
mod react;
pub mod reason;
pub mod rfs;
pub mod rings;
pub mod rps;
pub mod rss;
pub mod rules;
mod setting;
mod step;
pub mod xps;

pub use address::{
    VectorName, alike, driver_restarts_for_ntuple, driver_restarts_for_rss, restarts_for_ntuple, restarts_for_rss,
};
pub use declare::{Address, Setting};
pub use diff::{Change, Match, SettingMap, collateral, compare, diff, live, live_of_device};
pub(crate) use family::Descriptor;
pub use family::Family;
pub use learned::Learned;
pub use order::order;
pub use project::{NotProjected, project};
pub(crate) use project::{known, nic, rx_queue, tx_queue};
pub use provenance::{ChangeWindow, CreatedObject, FOR_GROUPS, FOR_SHARES, ManualChange, Origin, goes_with_layout};
pub use react::{Reaction, react};
pub use reason::{BanLossCause, MoveCause, Reason, ReplacedValue, ResetBy, SideEffect, configured_in};
pub(crate) use setting::set_text;
pub use step::{IfRefused, Step};

//! Applying settings at every boot: the units and the udev rule that `ringwise persist` writes and removes, and the mark by
//! which a boot that did not survive its tuning is recognized. Either the units apply once, or the service applies and keeps.
//!
//! ```text
//!   persist ─► Installation: check ─► write ─► enabled            persist --remove ─► remove
//!   apply --boot ─► BootRun: mark "applying" ─► writes ─┬─► five minutes, or an orderly shutdown: mark "lived"
//!                                                       └─► the next boot finds "applying" of another boot: "skipped"
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod boot_run;
mod conflicts;
mod error;
mod installation;
mod mark;
mod mode;
mod paths;
mod place;
mod units;

pub use boot_run::{BootRun, wait_for_link};
pub use conflicts::conflicts;
pub use error::{Class, Error, Next, Result};
pub use installation::{Installation, next_boot, remove};
pub use mark::{forget, is_boot_unproven, mark_boot_good};
pub use mode::{BootMode, service_is_enabled};
pub use place::config_refused;
pub use units::Units;

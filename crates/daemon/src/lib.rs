//! The service: it learns of changes, and writes again what a reset has lost.
//!
//! ```text
//!   notifications ─► Evidence ─┐
//!   every 10 s ────────────────┼─► Schedule ─► discover ─► todo ─► a transaction of apply
//!   journals ──────────────────┘
//! ```
//!
//! [`schedule`], [`evidence`], [`losses`] and [`keep`] are pure: they take values and a clock.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod evidence;
pub mod keep;
pub mod losses;
pub mod schedule;

#[cfg(test)]
mod tests;

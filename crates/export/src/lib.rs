//! Counters and applied settings as metrics: the text formats of Prometheus and OpenMetrics, and a small HTTP server.
//!
//! ```text
//!   Counters + Layout ─► counters() ─┐
//!   what verify finds ─► standing() ─┤
//!   the service       ─► service()  ─┤
//!   what check finds  ─► findings() ─┼─► Page ─► render(limit) ─► text ─► serve() or a file
//!   the exporter      ─► own()      ─┘      Keeper: totals that never go backwards
//! ```
//!
//! [`table`] is the list of all metrics; `docs/metrics.md` is compared with it. Only `http` does I/O.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod fill;
mod http;
mod keep;
mod page;
mod state;
pub mod table;

pub use fill::counters;
pub use http::{Bounds, PageResult, serve};
pub use keep::Keeper;
pub use page::{Form, Page, Value};
pub use state::{
    ExporterFacts, Findings, LastTransaction, Service, VerifyCounts, exporter, findings, service, verify_counts,
};

//! Predicts the queue and CPU of a flow (rules, hash, indirection table, interrupt, RPS, RFS), and how evenly a
//! population of flows spreads over the queues. The crate does no I/O. An answer lists the facts that are unknown.
//!
//! ```text
//!   Tuple ─► Steering (rules, context, fields, key, table) ─► queue ─► chain: interrupt, CPU, RPS, RFS, node ─► transmit
//!   many flows ─► population: per queue, CPU, node ─► balance: entries to move, flows too heavy to share
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod balance;
pub mod chain;
pub mod hash;
pub mod lines;
pub mod population;
pub mod rfs_paths;
pub mod rules;
pub mod send;
pub mod stack;
pub mod steering;
pub mod synthetic;
pub mod toeplitz;
pub mod tuple;
pub mod udp_ports;
pub mod undecided;

pub use hash::{Fields, Transform};
pub use population::{CountedFlow, Spread};
pub use steering::{QueueDecision, QueuePrediction, Steering};
pub use toeplitz::Toeplitz;
pub use tuple::{BadFlow, FlowSpec, Tuple};
pub use udp_ports::{UdpPorts, UdpPortsCount, UdpPortsGain};
pub use undecided::Undecided;

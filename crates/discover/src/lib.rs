//! Reads the current state of the host: `sys` + `kfmt` → [`ringwise_model::Snapshot`]. The crate only reads; it
//! makes no decisions.
//!
//! Every file and request is optional: a value that could not be read is recorded as unknown, with the reason.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bond;
mod channels;
mod coalesce;
pub mod competing_programs;
mod control;
mod cpus;
mod device;
mod error;
mod ethtool;
mod extra;
mod features;
pub mod flow_path;
pub mod foreign_files;
mod free_vectors;
mod host;
mod informational;
mod irq;
mod kubelet;
mod links;
mod napi;
pub mod natural;
mod neighbours;
mod nics;
mod numa;
mod parts;
mod pause;
mod pool;
mod queues;
mod quiet;
mod read;
mod reread;
mod rfs;
mod rings;
mod rps;
mod rss;
mod rules;
mod shapers;
mod snapshot;
pub mod sockets;
pub mod sos;
mod timers;
mod traffic_class;
mod users;
mod userspace_drivers;
mod virt;
mod virtual_functions;
mod without_interface;
mod xdp;
mod xps;

pub use bond::bond;
pub use coalesce::queue_struct;
pub use competing_programs::{competing_programs, forget_others};
pub use control::control;
pub use cpus::{online_now, topology};
pub use error::Error;
pub use extra::extra;
pub use free_vectors::free_vectors;
pub use host::{host, host_without_rivals};
pub use irq::{effective, raised};
pub use kubelet::{IRQ_DEFAULT, STATE as KUBELET_STATE};
pub use napi::is_thread;
pub use nics::carrier;
pub use parts::Parts;
pub use quiet::{left_out, passive};
pub use reread::read_address;
pub use rss::table_now;
pub use snapshot::{Options, device, snapshot};
pub use timers::timers;

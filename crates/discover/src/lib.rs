//! Reads the current state of the host: `sys` + `kfmt` → [`ringwise_model::Snapshot`]. The crate only reads; it
//! makes no decisions.
//!
//! Every file and request is optional: a value that could not be read is recorded as unknown, with the reason.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bond;
mod channels;
mod coalesce;
mod control;
mod cpus;
mod device;
mod error;
mod ethtool;
mod extra;
mod features;
mod held;
mod host;
mod irq;
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
pub mod rivals;
mod rps;
mod rss;
mod rules;
mod shown;
mod snapshot;
pub mod sockets;
pub mod sos;
mod timers;
mod users;
mod virt;
pub mod way;
mod xps;

pub use bond::bond;
pub use coalesce::queue_struct;
pub use control::control;
pub use cpus::{online_now, topology};
pub use error::Error;
pub use extra::extra;
pub use host::{host, host_without_rivals};
pub use irq::{effective, raised};
pub use napi::is_thread;
pub use nics::carrier;
pub use parts::Parts;
pub use quiet::{left_out, passive};
pub use reread::read_address;
pub use rivals::{forget_others, rivals};
pub use rss::table_now;
pub use snapshot::{Options, device, snapshot};
pub use timers::timers;

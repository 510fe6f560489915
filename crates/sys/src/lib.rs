//! The only crate with `unsafe`, libc, files and sockets. The trait [`Host`] is its interface to the other crates; the real
//! machine ([`Real`]) and a recorded one ([`Captured`]) implement it. It passes text and bytes and knows no types of `model`;
//! `kfmt` parses them into such types.
#![warn(missing_docs)]

mod bpf;
mod call;
mod capture;
mod captured_packet;
pub mod connections;
mod deadline;
mod device_call;
pub mod entry_counter;
mod entry_counts;
pub mod guardian;
pub mod hold;
mod host;
pub mod host_lock;
mod ifindex;
mod isolation;
mod klog;
pub mod load;
pub mod local;
pub mod log;
mod many;
pub mod memory;
pub mod monitor;
mod packet_socket;
pub mod packets;
pub mod proc;
pub mod pty;
pub mod reading;
mod real;
mod redact;
pub mod routes;
pub mod service;
pub mod store;
pub mod terminal;
pub mod trust;

pub use capture::{
    CaptureRecorder, Captured, Info, RecordedAnswer, RecordedRefusal, RecordedReply, Recording, Redacted, RequestKey,
    captures, directories_of_captures, has_capture_name,
};
pub use deadline::{read_with_deadline, with_deadline};
pub use device_call::{DeviceCall, alone_with_deadline};
pub use entry_counts::{EntryCount, EntryCounts};
pub use host::{
    Clock, CountEntries, Error, Host, HostWrapper, IoctlCmd, Request, Result, SampleHeaders, errno_text, io_text,
};
pub use ifindex::ifindex;
pub use isolation::{Isolation, leave_isolated};
pub use klog::kernel_log;
pub use real::{Real, io_error, irqbalance_answered};
pub use redact::{Flag, FlagValue, Grammar, Knowledge};

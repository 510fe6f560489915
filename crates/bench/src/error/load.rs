//! What is wrong with a load, and why the built-in generator failed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use ringwise_model::words::plural;

use crate::error::{SystemError, ThreadError};

/// Why an address is not the address of a single host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotOneHost {
    /// The wildcard of its family.
    #[error("{0} stands for every address; name a single one")]
    EveryAddress(IpAddr),
    /// A multicast group.
    #[error("{0} is a multicast group; name one host")]
    Multicast(IpAddr),
    /// The limited broadcast address.
    #[error("{0} is broadcast; name one host")]
    Broadcast(Ipv4Addr),
}

/// Why a request for a load is refused, with the allowed bounds.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidLoad {
    /// The load would be too long, or would not begin.
    #[error(
        "{time:?} measured after {warmup:?} of warm-up: expected above 0 and up to one hour, and up to one hour of warm-up"
    )]
    Time {
        /// Requested measured time.
        time: Duration,
        /// Requested warm-up.
        warmup: Duration,
    },
    /// The load has no group.
    #[error("a load without a group sends nothing: expected at least one group")]
    NoGroup,
    /// Threads of one group, or of one end that answers.
    #[error("{found} threads: expected 1 to {most}")]
    Threads {
        /// Requested number.
        found: u32,
        /// The highest number that is allowed.
        most: u32,
    },
    /// Threads of all groups together.
    #[error("{found} threads: expected at most {most} in all")]
    ThreadsInAll {
        /// Requested number.
        found: u64,
        /// The highest number that is allowed.
        most: u32,
    },
    /// Flows of all groups together.
    #[error("{found} flows: expected at most {most} in all")]
    FlowsInAll {
        /// Requested number.
        found: u64,
        /// The highest number that is allowed.
        most: u32,
    },
    /// The payload size of one message.
    #[error("{found} bytes over {protocol}: expected {least} to {most}")]
    Size {
        /// Requested size.
        found: u32,
        /// `UDP` or `TCP`.
        protocol: &'static str,
        /// The lowest number that the protocol allows.
        least: u32,
        /// The highest number that the protocol allows.
        most: u32,
    },
    /// Requests of a burst.
    #[error("{found} requests in flight per flow: expected 1 to {most}")]
    Burst {
        /// Requested number.
        found: u32,
        /// The highest number that is allowed.
        most: u32,
    },
    /// Zipf's exponent.
    #[error("skew {found}: expected 0 (all flows alike) to {most}")]
    Skew {
        /// Requested exponent.
        found: f64,
        /// The highest exponent that is allowed.
        most: f64,
    },
    /// Messages a second.
    #[error(
        "a rate of {0} per second: expected above 0 and up to 1,000,000,000, or no rate to send as fast as possible"
    )]
    Rate(f64),
    /// No address to send to.
    #[error("no address to send to")]
    NoTarget,
    /// An address that reaches more than one host.
    #[error("cannot send to {to}: {why}")]
    Target {
        /// Requested address.
        to: SocketAddr,
        /// What it is instead.
        why: NotOneHost,
    },
    /// Port 0.
    #[error("cannot send to {0}: it has no port")]
    NoPort(SocketAddr),
}

/// Why a load, or what answers or counts it, failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LoadError {
    /// Refused before anything was opened.
    #[error(transparent)]
    Invalid(#[from] InvalidLoad),
    /// The end that answers was not given an address.
    #[error("no address to listen on: name that of the interface under test")]
    NoBindAddress,
    /// The end that answers was given an address that is not that of one host.
    #[error("not listening on {ip}: {why}")]
    BindAddress {
        /// Requested address.
        ip: IpAddr,
        /// What it is instead.
        why: NotOneHost,
    },
    /// A socket of the end that answers.
    #[error("cannot listen on {ip}: {error}")]
    Listen {
        /// Where it should listen.
        ip: IpAddr,
        /// The kernel's error.
        error: SystemError,
    },
    /// A limit, a CPU, a timer or a buffer that the kernel refused.
    #[error(transparent)]
    Sys(#[from] ringwise_sys::Error),
    /// A thread that could not be started or ended early.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// A load thread panicked.
    #[error("a load thread panicked")]
    ThreadPanicked,
    /// A socket of a flow.
    #[error("cannot connect to {to}: {error}")]
    Connect {
        /// Where the flow goes.
        to: SocketAddr,
        /// The kernel's error.
        error: SystemError,
    },
    /// The same, because every source port is in use.
    #[error("cannot connect to {to}: {error}: no source port is left (net.ipv4.ip_local_port_range)")]
    NoSourcePort {
        /// Where the flow goes.
        to: SocketAddr,
        /// The kernel's error.
        error: SystemError,
    },
    /// A flow of a thread could not be opened.
    #[error("flow {number} of the {of} flows of this thread: {error}")]
    Flow {
        /// Counted from 1.
        number: usize,
        /// Flows of the thread.
        of: usize,
        /// Why it could not be opened.
        error: Box<LoadError>,
    },
    /// A call on an open socket.
    #[error("{call}: {error}")]
    Call {
        /// `send`, `sendmmsg`, `receive`.
        call: &'static str,
        /// The kernel's error.
        error: SystemError,
    },
    /// Calls failed, and none succeeded.
    #[error("nothing got through: {first} ({})", plural(*.errors as usize, "time"))]
    NothingThrough {
        /// The first call that failed.
        first: Box<LoadError>,
        /// How many failed.
        errors: u64,
    },
    /// Stopped by [`crate::side::Request::Stop`].
    #[error("stopped before its time was over")]
    Stopped,
}

//! What is wrong with a request to the kernel's packet generator, and how it failed.

use std::net::IpAddr;
use std::time::Duration;

use crate::error::{HostError, SystemError};

/// What is wrong with one port of a request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PortFault {
    /// The destination of the frames.
    #[error("{0:?} is not a unicast MAC address; expected that of the receiving port, for example 52:54:00:00:00:01")]
    Mac(String),
    /// Length of the frames in bytes.
    #[error("frames of {found} bytes; expected {least} to {most}, without FCS")]
    FrameSize {
        /// Requested length.
        found: u32,
        /// The shortest frame.
        least: u32,
        /// The longest frame.
        most: u32,
    },
    /// Packets a second.
    #[error("{0} packets/s; expected 1 to 1e9")]
    Rate(f64),
    /// How often each frame is sent.
    #[error("each frame sent {found} times; expected 1 to {most}")]
    Copies {
        /// Requested number.
        found: u32,
        /// The highest number.
        most: u32,
    },
    /// Addresses that are not IPv4.
    #[error("{what} {first} to {last}: expected IPv4 addresses")]
    NotIpv4 {
        /// `sources` or `destinations`.
        what: &'static str,
        /// First address of the range.
        first: IpAddr,
        /// Last address of the range.
        last: IpAddr,
    },
    /// A range of addresses whose first one is above its last one.
    #[error("{what} {first} to {last}: the first is above the last")]
    AddressesBackwards {
        /// `sources` or `destinations`.
        what: &'static str,
        /// First address of the range.
        first: IpAddr,
        /// Last address of the range.
        last: IpAddr,
    },
    /// A range that contains multicast addresses.
    #[error("{what} {first} to {last}: expected unicast addresses")]
    NotUnicast {
        /// `sources` or `destinations`.
        what: &'static str,
        /// First address of the range.
        first: IpAddr,
        /// Last address of the range.
        last: IpAddr,
    },
    /// A range of UDP ports whose first one is above its last one.
    #[error("source ports {0} to {1}: the first is above the last")]
    PortsBackwards(u16, u16),
}

/// Why the kernel's packet generator did not send.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PktgenError {
    /// A request without a port.
    #[error("pktgen: no port to send from")]
    NoPort,
    /// The measured time is 0, or the run is too long.
    #[error("pktgen: {warmup:?} of warm-up and {time:?} measured; expected up to {} s in all, and a measured time above 0", .most.as_secs())]
    Time {
        /// Requested warm-up.
        warmup: Duration,
        /// Requested measured time.
        time: Duration,
        /// The longest time of both together.
        most: Duration,
    },
    /// A text that cannot be the name of an interface.
    #[error("pktgen: {0:?} is not the name of an interface")]
    NotAName(String),
    /// An interface that two ports name.
    #[error("pktgen: {0} is named twice")]
    NamedTwice(String),
    /// A port that cannot be set up.
    #[error("pktgen: {dev}: {fault}")]
    Port {
        /// Interface that should send.
        dev: String,
        /// What is wrong with it.
        fault: PortFault,
    },

    /// The module is not loaded.
    #[error(
        "there is no /proc/net/pktgen: load the kernel's generator with `modprobe pktgen` (CONFIG_NET_PKTGEN); the \
         network namespace may exist before or be created later"
    )]
    NotLoaded,
    /// Its directory cannot be read.
    #[error("/proc/net/pktgen: {0}")]
    Directory(SystemError),
    /// One of its files cannot be read.
    #[error("/proc/net/pktgen/{file}: {error}")]
    Read {
        /// Name of the file.
        file: String,
        /// The kernel's error.
        error: SystemError,
    },
    /// The write of a command failed.
    #[error(
        "/proc/net/pktgen/{file}: {command:?}: {error}{}{}",
        .result.as_ref().map_or(String::new(), |r| format!("; pktgen reports: {r}")),
        hint(command, error)
    )]
    Write {
        /// Name of the file.
        file: String,
        /// What was written.
        command: String,
        /// The kernel's error.
        error: SystemError,
        /// What pktgen reports of it, if that is of this command.
        result: Option<String>,
    },
    /// The write succeeded, and pktgen reports that the command did not.
    #[error("/proc/net/pktgen/{file}: {command:?}: pktgen reports: {result}")]
    Refused {
        /// Name of the file.
        file: String,
        /// What was written.
        command: String,
        /// What pktgen reports.
        result: String,
    },

    /// Another program uses pktgen in this network namespace.
    #[error(
        "pktgen already sends from {dev} ({thread}) for another program; `echo stop >/proc/net/pktgen/pgctrl` stops it"
    )]
    InUse {
        /// The interface that sends.
        dev: String,
        /// The kernel thread that sends.
        thread: String,
    },
    /// A thread does not release an interface.
    #[error("pktgen did not release {dev} within {} s", .within.as_secs())]
    NotReleased {
        /// The interface.
        dev: String,
        /// How long ringwise waited.
        within: Duration,
    },
    /// No kernel thread of pktgen for a CPU.
    #[error("pktgen has no thread for CPU {cpu}: it is offline, or came online later; existing threads: {}", .threads.join(", "))]
    NoThread {
        /// The CPU that should send.
        cpu: u32,
        /// The kernel threads that exist.
        threads: Vec<String>,
    },
    /// The thread that writes `start` panicked.
    #[error("the thread that starts pktgen has ended")]
    StarterEnded,
    /// The file of a port reports no run.
    #[error("pktgen did not run: {}", .result.as_deref().unwrap_or("no result"))]
    NoRun {
        /// What pktgen reports instead.
        result: Option<String>,
    },
    /// A port stopped early.
    #[error("{dev}: pktgen stopped by itself: check its link; pktgen reports: {result}")]
    EndedByItself {
        /// The interface.
        dev: String,
        /// What pktgen reports.
        result: String,
    },
    /// A port does not start.
    #[error("{dev}: pktgen did not start within {} s", .within.as_secs())]
    NotBegun {
        /// The interface.
        dev: String,
        /// How long ringwise waited.
        within: Duration,
    },
    /// Stopped by [`crate::side::Request::Stop`].
    #[error("stopped before anything was sent")]
    Stopped,
    /// Counters of an interface.
    #[error(transparent)]
    Count(#[from] HostError),
}

/// The likely cause, if the kernel's message does not name it.
fn hint(command: &str, error: &SystemError) -> &'static str {
    let SystemError::Errno(errno) = error else { return "" };
    // The kernel's own ENOTSUPP, 524, has no name outside it.
    match (command.split(' ').next(), errno) {
        (Some("clone_skb"), 524 | 95 | 22) => " (this interface cannot send one frame several times)",
        (Some("add_device"), 19 | 22) => " (is the interface in this network namespace, and up?)",
        _ => "",
    }
}

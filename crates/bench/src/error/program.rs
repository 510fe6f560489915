//! What netperf and iperf3 cannot do, and how they failed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitStatus;
use std::time::Duration;

use ringwise_model::JsonFault;

use crate::error::{InvalidLoad, NotOneHost, SystemError};

/// How a child ended, with the beginning of what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildEnd {
    /// Its exit status, or why the kernel did not report one.
    pub status: Result<ExitStatus, SystemError>,
    /// The beginning of its standard error, otherwise of its output; empty if it printed nothing.
    pub words: String,
}

impl fmt::Display for ChildEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.status {
            Ok(status) => status.fmt(f)?,
            Err(e) => e.fmt(f)?,
        }
        if self.words.is_empty() { Ok(()) } else { write!(f, ": {}", self.words) }
    }
}

/// Why another program did not generate or answer a load.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// A program that is not supported.
    #[error("{0} is not supported: expected netperf, netserver or iperf3")]
    Unknown(String),
    /// It is not installed.
    #[error("{name} is not in PATH: {}; the built-in load needs no other program", installation(name))]
    Missing {
        /// The program.
        name: String,
    },
    /// The kernel did not start it.
    #[error("{name}: {error}")]
    NotStarted {
        /// The program.
        name: String,
        /// The kernel's error.
        error: SystemError,
    },
    /// The load itself is refused.
    #[error(transparent)]
    Invalid(#[from] InvalidLoad),
    /// Both programs accept only whole seconds.
    #[error("{program} accepts only whole seconds, not {warmup:?} and {time:?}")]
    PartOfSecond {
        /// The program.
        program: String,
        /// Requested warm-up.
        warmup: Duration,
        /// Requested measured time.
        time: Duration,
    },

    /// The server was given an address that is not that of one host.
    #[error("not listening on {ip}: {why}")]
    BindAddress {
        /// Requested address.
        ip: IpAddr,
        /// What it is instead.
        why: NotOneHost,
    },
    /// The port of the server is taken.
    #[error("{name}: another program already listens on port {port} (EADDRINUSE)")]
    PortTaken {
        /// The program.
        name: String,
        /// The port of its control connection.
        port: u16,
    },
    /// The server ended before it listened.
    #[error("{name} ended: {end}")]
    Ended {
        /// The program.
        name: String,
        /// How it ended.
        end: ChildEnd,
    },
    /// The server runs but does not listen.
    #[error("{name} does not listen on {at} after {within:?}: {end}")]
    NotListening {
        /// The program.
        name: String,
        /// The address where it should listen.
        at: SocketAddr,
        /// How long ringwise waited.
        within: Duration,
        /// What it printed until it was ended.
        end: Box<ChildEnd>,
    },
    /// The server had ended before it was stopped.
    #[error("{name} had already exited: {end}")]
    EndedByItself {
        /// The program.
        name: String,
        /// How it ended.
        end: ChildEnd,
    },

    /// Stopped by [`crate::side::Request::Stop`].
    #[error("stopped before its time was over")]
    Stopped,
    /// A client still runs after its time.
    #[error("{name} was still running {slack:?} after its time: {}", list(ends))]
    Late {
        /// The program.
        name: String,
        /// How long ringwise waited after the end of its time.
        slack: Duration,
        /// What each client printed until it was ended.
        ends: Vec<ChildEnd>,
    },
    /// A client ended with an error.
    #[error("{name}: {end}")]
    Failed {
        /// The program.
        name: &'static str,
        /// How it ended.
        end: ChildEnd,
    },

    /// netperf cannot send at intended times.
    #[error("netperf cannot send at a fixed rate: use the built-in load")]
    NetperfRate,
    /// netperf has one socket per process.
    #[error("netperf supports one flow per thread: for more flows or a skew use the built-in load")]
    NetperfFlows,
    /// The output of netperf's UDP stream is not supported.
    #[error("UDP one way is not supported with netperf: use iperf3 or the built-in load")]
    NetperfUdpOneWay,
    /// A line that netperf should have printed.
    #[error("netperf reported no {selector}: {output:?}")]
    NoSelector {
        /// Name of the output selector.
        selector: String,
        /// Beginning of what it printed instead.
        output: String,
    },
    /// A value that should be a number.
    #[error("netperf: {selector}={found} is not a number")]
    NotANumber {
        /// Name of the output selector.
        selector: String,
        /// Its value.
        found: String,
    },
    /// A latency that netperf reports as negative.
    #[error("netperf: {selector}={found}: it was not measured (netperf 2.6 or newer is needed)")]
    NotMeasured {
        /// Name of the output selector.
        selector: String,
        /// Its value, in microseconds.
        found: f64,
    },
    /// A rate in another unit than the requested one.
    #[error("netperf reports its rate in {found}, not in {expected}")]
    Unit {
        /// The unit that it reports.
        found: String,
        /// The requested unit.
        expected: &'static str,
    },

    /// iperf3 serves one test at a time.
    #[error("iperf3 -s serves one test at a time: use one group, or the built-in load")]
    Iperf3OneGroup,
    /// iperf3 has no requests and responses.
    #[error("iperf3 supports only streams: requests and responses need netperf or the built-in load")]
    Iperf3StreamsOnly,
    /// iperf3 serves one client at a time.
    #[error("iperf3 -s serves one client at a time: use one thread with several flows, or the built-in load")]
    Iperf3OneClient,
    /// iperf3's parallel streams.
    #[error("iperf3 supports up to {most} equal flows: use the built-in load for others")]
    Iperf3Flows {
        /// The highest number that it accepts.
        most: u32,
    },
    /// No client was started, so there is no report.
    #[error("iperf3 was not started")]
    Iperf3NotRun,
    /// The error that iperf3 writes into its report.
    #[error("iperf3: {0}")]
    Iperf3Reported(String),
    /// A report that is not JSON of the expected shape.
    #[error("cannot parse the report of iperf3: {error}: {start:?}")]
    Iperf3Report {
        /// What the JSON parser found.
        error: JsonFault,
        /// Beginning of the report.
        start: String,
    },
    /// A member that the report should have.
    #[error("iperf3's report has no end.{0}")]
    Iperf3NoMember(&'static str),
    /// Counts of datagrams that the report should have.
    #[error("iperf3's report has no packets in end.sum")]
    Iperf3NoPackets,
    /// The error of a report, with what the program printed beside it.
    #[error("{error}; iperf3 printed: {words}")]
    WithWords {
        /// What is wrong with the report.
        error: Box<ProgramError>,
        /// The program's standard error.
        words: String,
    },
}

fn installation(name: &str) -> &'static str {
    if name == "iperf3" { "apt install iperf3" } else { "apt install netperf (Debian: in non-free)" }
}

fn list(ends: &[ChildEnd]) -> String {
    ends.iter().map(ChildEnd::to_string).collect::<Vec<_>>().join("; ")
}

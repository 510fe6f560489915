//! Everything that can go wrong with a request.

use std::fmt;

use ringwise_kfmt::ParseError;

use crate::error::{LoadError, PktgenError, ProgramError, ThreadError};

/// Why the interfaces of this host could not be listed or counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The kernel refused the request.
    #[error(transparent)]
    Sys(#[from] ringwise_sys::Error),
    /// The kernel's reply is not of the expected form.
    #[error(transparent)]
    Format(#[from] ParseError),
    /// The reply of the kernel is empty.
    #[error("{dev}: the kernel did not answer RTM_GETLINK")]
    NoAnswer {
        /// The requested interface.
        dev: String,
    },
    /// The reply of the kernel lacks a counter.
    #[error("{dev} does not report {counter}")]
    NoCounter {
        /// The requested interface.
        dev: String,
        /// The counter's name in `rtnl_link_stats64`.
        counter: &'static str,
    },
}

/// What an end is doing when it refuses another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// The built-in load is answered or counted.
    Answering,
    /// netserver or iperf3 serves.
    Serving,
    /// Packets are sent.
    Loading,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answering => "a task that answers or counts is running",
            Self::Serving => "netserver or iperf3 is running",
            Self::Loading => "a load is running",
        })
    }
}

/// Why an end of a test failed a request. The other process receives it as a text.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The built-in generator.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// netperf or iperf3.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The kernel's packet generator.
    #[error(transparent)]
    Pktgen(#[from] PktgenError),
    /// The interfaces of that host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A thread for the request.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// Only one request at a time is possible.
    #[error("{0} on this host: stop it first")]
    Busy(Activity),
    /// A proof of a secret without a challenge.
    #[error("received a proof without a challenge")]
    UnexpectedProof,
}

//! What was read from a host and what it answered, including errors. In memory; `write` and `load` handle the files.

use std::collections::BTreeMap;
use std::time::Duration;

use ringwise_model::Cause;
use serde::{Deserialize, Serialize};

use crate::host::{Error, Request};

/// A refusal as recorded: errno and message. Both `None`: no reason was given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordedRefusal {
    /// Number as on Linux (`errno(3)`). `None`: the kernel gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// The kernel's extended acknowledgement, or the reason given by ringwise if there is no errno.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// There was no answer within the deadline.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

impl RecordedRefusal {
    pub(crate) fn into_error(self, what: String) -> Error {
        let cause = if self.late { Cause::Late } else { Cause::Other };
        Error { what, data: None, errno: self.errno, words: self.words, cause }
    }
}

impl From<&Error> for RecordedRefusal {
    fn from(e: &Error) -> Self {
        Self { errno: e.errno, words: e.words.clone(), late: e.is_late() }
    }
}

/// What the recorded host answered: the content, or why it is missing.
pub type RecordedAnswer<T> = std::result::Result<T, RecordedRefusal>;

/// A kernel request as a key: all of its fields except the name, which only explains the number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey {
    /// `links`, `addrs`, `route`, `default-routes`, `sessions`, `qdiscs`, `ethtool-get`, `ethtool-dump`, `netdev`, `net-shaper`, `ioctl`,
    /// `irqbalance`.
    pub kind: String,
    /// Interface name; for `route` the destination address; else empty.
    pub dev: String,
    /// Number of the netlink or ioctl command; 0 for requests without one.
    pub cmd: u32,
    /// Struct of an ioctl as it was sent, or the text of a message to irqbalance; else empty.
    pub payload: Vec<u8>,
}

impl RequestKey {
    /// `None` for requests that write, and for counters: they are never recorded.
    pub fn of(request: &Request) -> Option<Self> {
        let key = |kind: &str, dev: &str, cmd: u32, payload: &[u8]| {
            Some(Self { kind: kind.into(), dev: dev.into(), cmd, payload: payload.to_vec() })
        };
        match request {
            Request::Links => key("links", "", 0, &[]),
            Request::Addrs => key("addrs", "", 0, &[]),
            // As text, so that redaction finds it.
            Request::Route { to } => key("route", &to.to_string(), 0, &[]),
            Request::DefaultRoutes => key("default-routes", "", 0, &[]),
            Request::Sessions => key("sessions", "", 0, &[]),
            Request::EthtoolGet { cmd, dev, .. } => key("ethtool-get", dev, u32::from(*cmd), &[]),
            Request::EthtoolDump { cmd, dev, .. } => key("ethtool-dump", dev, u32::from(*cmd), &[]),
            Request::NetdevDump { cmd, dev, .. } => key("netdev", dev, u32::from(*cmd), &[]),
            Request::NetShaperDump { dev } => key("net-shaper", dev, 1, &[]),
            // Which qdiscs there are is a setting; their counters are included in the reply.
            Request::Qdiscs => key("qdiscs", "", 0, &[]),
            _ if request.writes() => None,
            Request::Irqbalance { command, .. } => key("irqbalance", "", 0, command.as_bytes()),
            Request::Ioctl { cmd, dev, payload } => key("ioctl", dev, *cmd as u32, payload),
            // Counters are momentary, and a capture holds settings.
            Request::EthtoolStats { .. }
            | Request::Link { .. }
            | Request::StatNames { .. }
            | Request::StatValues { .. } => None,
            Request::EthtoolSet { .. }
            | Request::NetdevSet { .. }
            | Request::ThreadCpus { .. }
            | Request::Sleep { .. }
            | Request::Place { .. }
            | Request::DaemonReload => None,
        }
    }
}

/// The answer to a kernel request, with the request's name for people to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedReply {
    /// First word of the request as [`Request`] prints it: `channels-get`.
    pub name: String,
    /// One `Vec` per message of the reply, as [`Host::kernel`](crate::Host::kernel) returns them.
    pub answer: RecordedAnswer<Vec<Vec<u8>>>,
}

/// One kind of identifier that was replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redacted {
    /// `mac`, `ipv4`, `ipv6`, `host name`, `alias`, `serial`, `uuid`, `command line`, …
    pub kind: String,
    /// Number of different identifiers of this kind.
    pub distinct: usize,
    /// Number of places where one was replaced.
    pub places: usize,
}

/// Where and when a recording was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Info {
    /// Version of ringwise that made it; `None` for trees of other programs.
    pub tool: Option<String>,
    /// Wall clock at its end, seconds since 1970; 0 if unknown.
    pub unix_time: u64,
    /// Time since boot at its end, including suspend; zero if unknown.
    pub since_boot: Duration,
    /// Effective user ID of the recorder: unless it is 0, some answers are only refusals.
    pub euid: Option<u32>,
    /// `uname -r`.
    pub kernel: Option<String>,
    /// The note in a hand-made capture.
    pub note: Option<String>,
    /// What redaction replaced or removed, by kind; empty: the recording is not redacted, or nothing was found.
    pub redacted: Vec<Redacted>,
}

/// Everything that was read from one host, including failed attempts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recording {
    /// Written to `manifest.json`; not part of what [`Recording::len`] counts.
    pub info: Info,
    /// Absolute path as requested → content.
    pub files: BTreeMap<String, RecordedAnswer<Vec<u8>>>,
    /// Path → names, sorted.
    pub dirs: BTreeMap<String, RecordedAnswer<Vec<String>>>,
    /// Path → target, not resolved.
    pub links: BTreeMap<String, RecordedAnswer<String>>,
    /// Requests that only read; counters are not among them (see [`RequestKey::of`]).
    pub kernel: BTreeMap<RequestKey, RecordedReply>,
}

impl Recording {
    /// Number of different items that were read.
    pub fn len(&self) -> usize {
        self.files.len() + self.dirs.len() + self.links.len() + self.kernel.len()
    }

    /// Whether nothing was read; failed attempts count as read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(bytes.len() * 2);
    for b in bytes {
        out.push(DIGITS[usize::from(b >> 4)] as char);
        out.push(DIGITS[usize::from(b & 15)] as char);
    }
    out
}

pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
    let text = text.as_bytes();
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.chunks_exact(2).map(|p| Some(digit(p[0])? << 4 | digit(p[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_both_ways() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&to_hex(&all)), Some(all));
        assert_eq!(from_hex("0"), None);
        assert_eq!(from_hex("0g"), None);
        assert_eq!(from_hex("é"), None);
    }
}

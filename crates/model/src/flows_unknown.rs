//! Why the flows of a program or a systemd unit are unknown.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{ReasonFields, Unread};

/// In JSON `why` (the text) beside `code` and `facts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", remote = "Self")]
pub enum FlowsUnknown {
    /// The host is a recording, which has no processes.
    NotRecorded,
    /// The program or unit listens, but only on loopback: its packets never arrive over a wire.
    LoopbackOnly,
    /// No process belongs to the program or unit.
    NotRunning {
        /// Processes of the host.
        processes: u32,
    },
    /// All its processes are in another network namespace.
    OtherNamespace {
        /// The PID of one of them.
        process: u32,
    },
    /// It runs, but none of its sockets waits for packets.
    NoPort {
        /// The PID of one of its processes.
        process: u32,
    },
    /// The open files of its processes could not be read.
    OpenFilesUnread {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// The list of processes or of sockets could not be read.
    NotReadable {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// Written by another version of ringwise: kept as it was read.
    #[serde(skip)]
    Other(ReasonFields),
}

crate::serde_as_coded!(FlowsUnknown);

impl fmt::Display for FlowsUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRecorded => f.write_str("the recording does not contain where it listened"),
            Self::LoopbackOnly => f.write_str("it listens on loopback only"),
            Self::NotRunning { processes } => {
                write!(f, "not running (not among {processes} processes); start it first, or name its ports")
            }
            Self::OtherNamespace { process } => write!(
                f,
                "runs in another network namespace (process {process}), so its addresses on this host are unknown; name \
                 the fields of its flows as they arrive at this host"
            ),
            Self::NoPort { process } => {
                write!(f, "runs (process {process}), but listens on no TCP or UDP port; name the fields of its flows")
            }
            Self::OpenFilesUnread { unread: Unread { what, why, .. } } => {
                write!(f, "its open files cannot be read ({what}: {why}); run as root, or name its ports")
            }
            Self::NotReadable { unread: Unread { what, why, .. } } => {
                write!(f, "{what} cannot be read: {why}; name its ports instead")
            }
            Self::Other(kept) => f.write_str(&kept.why),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn in_documents() {
        let why = FlowsUnknown::NotRunning { processes: 12 };
        let text = "not running (not among 12 processes); start it first, or name its ports";
        let json = json!({ "why": text, "code": "not_running", "facts": { "processes": 12 } });
        assert_eq!(serde_json::to_value(&why).unwrap(), json);
        assert_eq!(serde_json::from_value::<FlowsUnknown>(json).unwrap(), why);
        let unread = FlowsUnknown::NotReadable { unread: Unread::new("/proc/net/tcp", Some(13), "not permitted") };
        let json = serde_json::to_value(&unread).unwrap();
        assert_eq!(json["facts"]["unread"]["errno"], json!(13));
        assert_eq!(serde_json::from_value::<FlowsUnknown>(json).unwrap(), unread);
        for other in
            [json!({ "why": "it sleeps" }), json!({ "why": "it sleeps", "code": "asleep", "facts": { "s": 3 } })]
        {
            let kept: FlowsUnknown = serde_json::from_value(other.clone()).unwrap();
            assert!(matches!(kept, FlowsUnknown::Other(_)), "{kept:?}");
            assert_eq!((kept.to_string().as_str(), serde_json::to_value(&kept).unwrap()), ("it sleeps", other));
        }
    }
}

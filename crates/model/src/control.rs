//! The network connections that a user, or the host itself, must not lose.

use serde::{Deserialize, Serialize};

use crate::{Fact, Unread};

/// One path that must not be interrupted: why it matters, and its way from the interface of the route down to the
/// hardware.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlPath {
    /// Why it must not be interrupted.
    pub reason: ControlReason,
    /// The interface through which the route leaves. `None`: unknown; `members` contains the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out: Option<String>,
    /// `out` and the interfaces between it and the hardware, top first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<String>,
    /// Devices with queues at its end. For a bridge, all ports, because only traffic shows which of them is used.
    /// Unknown: the path could not be followed, so it may be any device.
    pub members: Fact<Vec<String>>,
}

/// Why a path must not be interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlReason {
    /// An ssh session. `own`: this program was started from it. Otherwise it is a session of a server on this host,
    /// because the user's own session could not be determined.
    Ssh {
        /// Address of the client.
        peer: String,
        /// This program was started from the session.
        own: bool,
    },
    /// The default route. Without a gateway, the interface itself is the route.
    DefaultRoute {
        /// Address of the next hop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gateway: Option<String>,
    },
    /// A mount (`point`), or for iSCSI a session with disks on another host.
    NetworkMount {
        /// Where it is mounted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        point: Option<String>,
        /// `nfs4`, `cifs`, `iscsi`.
        kind: String,
        /// Name or address, as the mount table or the session shows it.
        server: String,
    },
    /// One of these could not be determined, so there may be one.
    Unread {
        /// Which one.
        what: String,
    },
    /// Written by a newer version.
    #[serde(untagged)]
    Other(serde_json::Value),
}

impl ControlPath {
    /// Whether traffic of this path goes through the device; `Err`: it may.
    pub fn over(&self, dev: &str) -> Result<bool, &Unread> {
        match &self.members {
            Fact::Known(m) => Ok(m.iter().any(|n| n == dev)),
            Fact::Absent => Ok(false),
            Fact::Unknown(u) => Err(u),
        }
    }

    /// The interface from which on the path could not be followed, and why: it may go through any device.
    pub fn may_be_over_any(&self) -> Option<(&str, &Unread)> {
        Some((self.out.as_deref()?, self.members.unread()?))
    }

    /// `your ssh session`, `the default route`, `/srv (nfs4)`.
    pub fn what(&self) -> String {
        match &self.reason {
            ControlReason::Ssh { own: true, .. } => "your ssh session".into(),
            ControlReason::Ssh { .. } => "an ssh session".into(),
            ControlReason::DefaultRoute { .. } => "the default route".into(),
            ControlReason::NetworkMount { point: Some(p), kind, .. } => format!("{p} ({kind})"),
            ControlReason::NetworkMount { kind, .. } => format!("{kind} disks"),
            ControlReason::Unread { what } => what.clone(),
            ControlReason::Other(v) => v.to_string(),
        }
    }

    fn peer(&self) -> Option<&str> {
        match &self.reason {
            ControlReason::Ssh { peer, .. } => Some(peer),
            ControlReason::DefaultRoute { gateway } => gateway.as_deref(),
            ControlReason::NetworkMount { server, .. } => Some(server),
            ControlReason::Unread { .. } | ControlReason::Other(_) => None,
        }
    }

    /// `192.0.2.10 over eth0.100 -> bond0 -> eth1 eth2`; `over ppp0: it is unknown where its packets go`
    pub fn way(&self) -> String {
        let mut parts = self.via.clone();
        let mut more = String::new();
        match &self.members {
            Fact::Known(m) if m.is_empty() => parts.push("no hardware".into()),
            // The interface of the route is the hardware.
            Fact::Known(m) if parts.len() == 1 && parts == *m => {}
            Fact::Known(m) => parts.push(m.join(" ")),
            Fact::Absent => {}
            Fact::Unknown(u) if parts.is_empty() => parts.push(format!("unknown ({})", u.why)),
            Fact::Unknown(u) => more = format!(": {}", u.why),
        }
        let over = parts.join(" -> ") + &more;
        match self.peer() {
            Some(peer) => format!("{peer} over {over}"),
            None if self.out.is_some() => format!("over {over}"),
            None => over,
        }
    }
}

impl std::fmt::Display for ControlPath {
    /// `your ssh session (192.0.2.10 over eth0.100 -> bond0 -> eth1 eth2)`; `possibly ssh sessions (needs root)`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.reason, &self.members) {
            (ControlReason::Unread { what }, Fact::Unknown(u)) => write!(f, "possibly {what} ({})", u.why),
            _ => write!(f, "{} ({})", self.what(), self.way()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_words() {
        let mut p = ControlPath {
            reason: ControlReason::Ssh { peer: "192.0.2.10".into(), own: true },
            out: Some("bond0.100".into()),
            via: vec!["bond0.100".into(), "bond0".into()],
            members: Fact::Known(vec!["eth1".into(), "eth2".into()]),
        };
        assert_eq!(p.to_string(), "your ssh session (192.0.2.10 over bond0.100 -> bond0 -> eth1 eth2)");
        assert_eq!((p.over("eth2"), p.over("eth3")), (Ok(true), Ok(false)));
        p.reason = ControlReason::DefaultRoute { gateway: None };
        (p.via, p.members) = (vec!["eth0".into()], Fact::Known(vec!["eth0".into()]));
        assert_eq!(p.to_string(), "the default route (over eth0)");
        assert_eq!(p.may_be_over_any(), None);
        p.out = Some("ppp0".into());
        (p.via, p.members) = (vec!["ppp0".into()], Fact::unknown("ppp0", "it is unknown where its packets go"));
        assert_eq!(p.to_string(), "the default route (over ppp0: it is unknown where its packets go)");
        let of = p.may_be_over_any().map(|(dev, u)| (dev, u.why.as_str()));
        assert_eq!(of, Some(("ppp0", "it is unknown where its packets go")));
        p.reason = ControlReason::Unread { what: "ssh sessions".into() };
        (p.out, p.via, p.members) = (None, vec![], Fact::unknown("ssh sessions", "needs root"));
        assert_eq!(p.to_string(), "possibly ssh sessions (needs root)");
        assert!(p.over("eth0").is_err(), "it may be any");
        assert_eq!(p.may_be_over_any(), None, "not even an interface is known");
    }
}

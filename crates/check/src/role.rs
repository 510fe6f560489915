//! Guesses the purpose of a host from its interfaces and sockets.

use ringwise_model::words::plural;
use ringwise_model::{Fact, Goal, Nic, NicKind, Snapshot};
use serde::{Deserialize, Serialize};

/// The likely purpose of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It forwards packets between interfaces.
    Forward,
    /// Many connections end at it.
    Server,
    /// Neither is evident.
    NotEvident,
}

/// A guess, and the facts behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleGuess {
    /// The guess.
    pub role: Role,
    /// The facts as text: `ip_forward=1, 2 interfaces up, 2114 VLANs`.
    pub reason: String,
}

/// A host with at least this many TCP sockets counts as a server.
const MANY: u64 = 100;

/// `tcp_sockets` is the result of [`tcp_in_use`]; `None`: unknown.
pub fn guess(s: &Snapshot, tcp_sockets: Option<u64>) -> RoleGuess {
    let (up, unknown) = links(s);
    let vlans = s.bystanders.count.get("vlan").copied().unwrap_or(0);
    let bridges = s.bystanders.count.get("bridge").copied().unwrap_or(0) > 0 || bridged(s) > 0;
    let mut words = Vec::new();
    match &s.host.forwarding {
        Fact::Known(true) => words.push("ip_forward=1".to_string()),
        Fact::Known(false) => words.push("ip_forward=0".to_string()),
        Fact::Absent => {}
        Fact::Unknown(_) => words.push("forwarding unknown".to_string()),
    }
    words.push(match (up, unknown) {
        (0, 1) => "1 interface of unknown kind or link".into(),
        (0, n) if n > 0 => format!("{n} interfaces of unknown kind or link"),
        (_, 0) => plural(up, "interface") + " up",
        (_, n) => format!("{} up and {n} of unknown kind or link", plural(up, "interface")),
    });
    if vlans > 0 {
        words.push(if vlans == 1 { "1 VLAN".into() } else { format!("{vlans} VLANs") });
    }
    if let Some(n) = tcp_sockets {
        words.push(if n == 1 { "1 TCP socket".into() } else { format!("{n} TCP sockets") });
    }
    // Container hosts enable forwarding too, so a router needs a second interface or VLAN.
    let forwards = s.host.forwarding == Fact::Known(true) && (up > 1 || vlans > 1);
    let role = match () {
        () if forwards || bridged(s) > 1 => Role::Forward,
        () if tcp_sockets.is_some_and(|n| n >= MANY) => Role::Server,
        () => Role::NotEvident,
    };
    if bridges && role == Role::Forward {
        words.push("a bridge".into());
    }
    RoleGuess { role, reason: words.join(", ") }
}

/// Hardware interfaces that have a link, and interfaces for which this is unknown.
fn links(s: &Snapshot) -> (usize, usize) {
    let (mut up, mut unknown) = (0, 0);
    let maybe = |n: &&Nic| (n.has_own_queues() || n.queues_unread().is_some()) && !n.driver.is_absent();
    for n in s.nics.iter().filter(maybe) {
        let link_unknown = n.link.carrier.unread().is_some() && n.link.operstate.unread().is_some();
        match (&n.kind, n.link_is_up()) {
            (NicKind::Software { .. } | NicKind::Loopback, _) => {}
            (NicKind::Unknown, true) => unknown += 1,
            (_, true) => up += 1,
            (_, false) => unknown += usize::from(link_unknown),
        }
    }
    (up, unknown)
}

/// Interfaces with queues of their own that are ports of a bridge.
fn bridged(s: &Snapshot) -> usize {
    let by_index = s.by_index();
    let bridge = |i| {
        let master = by_index.get(&i);
        master.is_some_and(|m| matches!(&m.kind, NicKind::Software { kind } if kind == "bridge"))
    };
    s.tunable().filter(|n| n.link_is_up() && n.master.is_some_and(bridge)).count()
}

/// From `/proc/net/sockstat`: `TCP: inuse 5 orphan 0 …`
pub fn tcp_in_use(sockstat: &str) -> Option<u64> {
    let line = sockstat.lines().find_map(|l| l.strip_prefix("TCP:"))?;
    line.split_ascii_whitespace().skip_while(|w| *w != "inuse").nth(1)?.parse().ok()
}

impl RoleGuess {
    /// The goal that suits such a host. `None`: its role is not evident.
    pub fn goal(&self) -> Option<Goal> {
        match self.role {
            Role::Forward => Some(Goal::Forward),
            Role::Server => Some(Goal::Rpc),
            Role::NotEvident => None,
        }
    }

    /// The text of the report's first line.
    pub fn words(&self) -> String {
        match self.role {
            Role::Forward => format!("looks like a router ({})", self.reason),
            Role::Server => format!("looks like a server ({})", self.reason),
            Role::NotEvident => format!("role not evident ({})", self.reason),
        }
    }
}

//! Ids of things on the host. Newtypes, so that a CPU is never taken for an interrupt.

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<u32> for $name {
            fn from(n: u32) -> Self {
                Self(n)
            }
        }
    };
}

id!(
    /// A logical CPU as the kernel numbers it. Numbers may be sparse.
    CpuId
);
id!(
    /// A NUMA node.
    NodeId
);
id!(
    /// A Linux interrupt number. Not stable over a channel change: never stored in a plan.
    IrqId
);
id!(
    /// Index of a network interface in its network namespace.
    IfIndex
);

/// A network interface: its name for people, and other properties by which a renamed or replaced interface is noticed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DevId {
    /// Name at the time of reading (`eth0`).
    pub name: String,
    /// Unknown in captures of other programs that contain no `ifindex` file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ifindex: Option<IfIndex>,
    /// `0000:03:00.0`; for virtio the PCI function above it. `None`: a software device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_address: Option<String>,
    /// In lower case, with colons. `None`: the driver does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permanent_mac: Option<String>,
}

impl DevId {
    /// Whether `self` (from a plan or journal) and `other` (found now) are the same device.
    /// Bus address and permanent MAC must not contradict; the interface index breaks the tie for
    /// devices that have neither.
    pub fn same_device(&self, other: &DevId) -> bool {
        let agree = |a: &Option<String>, b: &Option<String>| match (a, b) {
            (Some(a), Some(b)) => Some(a == b),
            _ => None,
        };
        let bus = agree(&self.bus_address, &other.bus_address);
        let mac = agree(&self.permanent_mac, &other.permanent_mac);
        match (bus, mac) {
            (Some(false), _) | (_, Some(false)) => false,
            (Some(true), _) | (_, Some(true)) => true,
            (None, None) => self.name == other.name && self.ifindex == other.ifindex,
        }
    }
}

/// Direction of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dir {
    /// Receiving.
    Rx,
    /// Transmitting.
    Tx,
}

impl std::fmt::Display for Dir {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Dir::Rx => "rx",
            Dir::Tx => "tx",
        })
    }
}

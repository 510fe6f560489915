//! What only `check` reads besides the snapshot: small files as text, and a few things that need a parser.

use std::collections::BTreeMap;

use crate::{CpuId, Fact, IfIndex};

/// What `check` needs and a snapshot does not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckOnlyFacts {
    /// Small files by path, without trailing white space. Of `/proc/cpuinfo` only the flags of the first CPU, of
    /// `/proc/modules` only the names, of `/proc/meminfo` only the line `MemTotal`.
    pub text: BTreeMap<String, Fact<String>>,
    /// Files of `/sys/devices/system/cpu/vulnerabilities`.
    pub vulnerabilities: BTreeMap<String, String>,
    /// Queueing disciplines by interface. `None`: not read.
    pub qdiscs: Option<Fact<BTreeMap<IfIndex, Qdiscs>>>,
    /// Packet sockets (`/proc/net/packet`).
    pub packet_sockets: Option<Fact<Vec<PacketSocket>>>,
    /// Interrupt vectors that each online CPU has left. `None`: not read. Absent: the kernel does not show them.
    pub free_vectors: Option<Fact<BTreeMap<CpuId, u32>>>,
    /// By name of the interface.
    pub devs: BTreeMap<String, DevExtra>,
}

/// What is read for one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DevExtra {
    /// From the PCI configuration space. Absent: not a PCI Express device.
    pub pci: Option<Fact<PciControl>>,
    /// Absent: the driver does not support it.
    pub eee: Option<Fact<Eee>>,
    /// Headers and data of TCP go to separate buffers. Absent: the driver does not report it.
    pub tcp_data_split: Option<Fact<bool>>,
}

/// Queueing disciplines of one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Qdiscs {
    /// `mq`, `noqueue`, `fq_codel`, `htb`, …
    pub root: String,
    /// Those directly below it, by kind.
    pub leaves: BTreeMap<String, u32>,
}

/// A packet socket (`AF_PACKET`), as tcpdump and DHCP clients open it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketSocket {
    /// Ethernet protocol; 3: all.
    pub protocol: u16,
    /// 0: every interface.
    pub ifindex: u32,
}

/// From the PCI Express capability; sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PciControl {
    /// Largest packet payload in use (Device Control, `MaxPayloadSize`).
    pub max_payload: u32,
    /// Largest payload that the device supports (Device Capabilities).
    pub max_payload_capable: u32,
    /// Largest read request of the device (Device Control, `MaxReadReqSize`).
    pub max_read_request: u32,
    /// Active state power management is on for the link.
    pub aspm: bool,
}

/// Energy Efficient Ethernet (`ETHTOOL_MSG_EEE_GET`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Eee {
    /// Enabled at this end.
    pub enabled: bool,
    /// In use: both ends support it.
    pub active: bool,
}

impl CheckOnlyFacts {
    /// A small file; unknown if it was not read.
    pub fn file(&self, path: &str) -> Fact<String> {
        self.text.get(path).cloned().unwrap_or_else(|| Fact::not_requested(path))
    }

    /// A small file that contains one number; unknown if it contains something else.
    pub fn number(&self, path: &str) -> Fact<u64> {
        let bad = |t: &str| Fact::unknown(path, format!("\"{t}\" is not a number"));
        self.file(path).and_then(|t| t.trim().parse().map_or_else(|_| bad(&t), Fact::Known))
    }
}

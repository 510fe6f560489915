//! One network interface, with everything that was read about it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    Bond, Cause, Confidence, CpuSet, DevId, Dir, Fact, IfIndex, NodeId, Rings, RxQueue, Subject, TxQueue, Unread,
    Vector,
};

/// One network interface with its queues, interrupts and settings, as they were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nic {
    /// Name, index and addresses.
    pub dev: DevId,
    /// What kind of device it is.
    pub kind: NicKind,
    /// Name of the kernel driver.
    pub driver: Fact<String>,
    /// Node of the device. Unknown if the firmware reports -1, which is not node 0.
    pub node: Fact<NodeId>,
    /// CPUs local to the device (`local_cpulist`).
    pub local_cpus: Fact<CpuSet>,
    /// State and speed.
    pub link: Link,
    /// Other names: `ifalias`, then alternative names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Interfaces below this one (of a VLAN, bond, bridge, macvlan).
    pub lower: Vec<IfIndex>,
    /// The bond, bridge or team of which this interface is a member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<IfIndex>,
    /// Of a bond: its mode and members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bond: Option<Bond>,
    /// From `channels-get`. Absent: the driver does not support the request.
    pub channels: Fact<Channels>,
    /// From `queues/rx-*`, in numeric order.
    pub rx_queues: Vec<RxQueue>,
    /// From `queues/tx-*`, in numeric order.
    pub tx_queues: Vec<TxQueue>,
    /// Every vector of the device, queues first in queue order.
    pub vectors: Vec<Vector>,
    /// From `rss-get`. Absent: the driver does not support the request.
    pub rss: Fact<Rss>,
    /// From `rings-get`. Absent: the driver does not support the request.
    pub rings: Fact<Rings>,
    /// From `coalesce-get`. Absent: the driver does not support the request.
    pub coalesce: Fact<Coalesce>,
    /// From `pause-get`. Absent: the driver does not support the request.
    pub pause: Fact<Pause>,
    /// By the kernel's names. Absent: the device reports none.
    #[serde(default = "not_requested", skip_serializing_if = "not_read")]
    pub features: Fact<BTreeMap<String, crate::Feature>>,
    /// `ethtool --show-priv-flags`; only shown.
    #[serde(default = "not_requested", skip_serializing_if = "not_read")]
    pub private_flags: Fact<BTreeMap<String, bool>>,
    /// Version of the firmware in the driver's format; only shown. Absent: not reported.
    #[serde(default = "not_requested", skip_serializing_if = "not_read")]
    pub firmware: Fact<String>,
    /// The device's PCI Express link; only shown. Absent: not a PCI Express device.
    #[serde(default = "not_requested", skip_serializing_if = "not_read")]
    pub pcie: Fact<Pcie>,
    /// Virtual functions of the device. Absent: it is no physical function of SR-IOV.
    #[serde(default = "not_requested", skip_serializing_if = "not_read")]
    pub virtual_functions: Fact<crate::VirtualFunctions>,
    /// Interrupt moderation of each queue that answered. Absent: the driver has it only for the whole device.
    #[serde(default = "not_requested", skip_serializing_if = "not_read")]
    pub queue_coalesce: Fact<BTreeMap<u32, Coalesce>>,
    /// Flow steering rules. Absent: the driver has none.
    #[serde(default = "not_requested", skip_serializing_if = "not_read")]
    pub rules: Fact<crate::Rules>,
    /// Instances from `napi-get`, values of the whole device from sysfs.
    #[serde(default = "not_requested", skip_serializing_if = "not_read")]
    pub napi: Fact<crate::Napi>,
    /// Rate limits inside the NIC. Absent: the driver supports none.
    #[serde(default = "not_requested", skip_serializing_if = "not_read")]
    pub shapers: Fact<crate::Shapers>,
    /// Traffic classes of the transmit queues. Absent: the queueing discipline has none.
    #[serde(default = "not_requested", skip_serializing_if = "not_read")]
    pub classes: Fact<crate::TrafficClasses>,
    /// What the driver passes to XDP programs; only shown. Absent: the kernel cannot pass such values.
    #[serde(default = "not_requested", skip_serializing_if = "not_read")]
    pub xdp_metadata: Fact<XdpMetadata>,
    /// Users of the queues besides the network stack. Absent: there are none.
    pub users: Fact<Vec<User>>,
    /// `ADDRESS/PREFIX` of IPv4 and IPv6.
    pub addresses: Fact<Vec<String>>,
    /// Everything about this device that could not be read.
    pub unread: Vec<Unread>,
}

/// What a driver passes to XDP programs beside the packet. Each value is one kernel function that the driver implements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdpMetadata {
    /// The device's hash of the packet: `bpf_xdp_metadata_rx_hash`.
    pub hash: bool,
    /// The device's time of arrival: `bpf_xdp_metadata_rx_timestamp`.
    pub timestamp: bool,
    /// The VLAN tag that the device removed: `bpf_xdp_metadata_rx_vlan_tag` (since 6.8).
    pub vlan_tag: bool,
}

/// The kind of device behind an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NicKind {
    /// A PCI or platform function with its own driver.
    Physical,
    /// SR-IOV virtual function.
    Vf,
    /// `virtio_net`, on the PCI bus or another.
    Virtio,
    /// Other paravirtual devices, without known interrupts of their own (hv_netvsc, xen-netfront).
    Paravirtual,
    /// vlan, bond, bridge, veth, tun, macvlan, dummy, …: no queues of their own to tune.
    Software {
        /// `IFLA_INFO_KIND` or `DEVTYPE`; `other` if neither exists.
        kind: String,
    },
    /// `lo`.
    Loopback,
    /// The device could not be read.
    Unknown,
}

/// The link of an interface, from rtnetlink and `/sys/class/net/DEV`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// `operstate`: `up`, `down`, `unknown`, …
    pub operstate: Fact<String>,
    /// The link is detected.
    pub carrier: Fact<bool>,
    /// Mb/s (10^6 bit/s). Absent while down or for devices without a speed.
    pub speed_mbps: Fact<u32>,
    /// `full`, `half` or `unknown`.
    pub duplex: Fact<String>,
    /// In bytes.
    pub mtu: Fact<u32>,
}

/// Channel counts, present and maximum. `None`: the driver does not report this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channels {
    /// Channels that only receive.
    pub rx: Option<Count>,
    /// Channels that only transmit.
    pub tx: Option<Count>,
    /// Channels that receive and transmit.
    pub combined: Option<Count>,
    /// Channels without traffic (link events and the like).
    pub other: Option<Count>,
}

/// A number with a limit set by the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// The present value.
    pub now: u32,
    /// The largest value that the driver accepts.
    pub max: u32,
}

impl Channels {
    /// Receive queues that exist with these counts.
    pub fn rx_queues(&self) -> u32 {
        self.combined.map_or(0, |c| c.now) + self.rx.map_or(0, |c| c.now)
    }

    /// Transmit queues that exist with these counts.
    pub fn tx_queues(&self) -> u32 {
        self.combined.map_or(0, |c| c.now) + self.tx.map_or(0, |c| c.now)
    }
}

/// Interrupt moderation of the device: every parameter that the driver reports, by its netlink name (`rx-usecs`,
/// `rx-max-frames`, `use-adaptive-rx` as 0/1, …). The reply shows which parameters the driver supports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Coalesce(pub BTreeMap<String, u32>);

/// Pause frames (`pause-get`). `None`: not reported by the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Negotiated with the link partner.
    pub autoneg: Option<bool>,
    /// Pause frames of the link partner are obeyed.
    pub rx: Option<bool>,
    /// Pause frames are sent.
    pub tx: Option<bool>,
}

/// The PCI Express link of a device, present and maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pcie {
    /// As negotiated (`current_link_speed`, `current_link_width`).
    pub now: PcieLink,
    /// The maximum of the device (`max_link_speed`, `max_link_width`).
    pub max: PcieLink,
}

/// Speed and width of a PCI Express link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PcieLink {
    /// Megatransfers per second of one lane: 8000 for 8 GT/s. `None`: the kernel does not know.
    pub mtps: Option<u32>,
    /// Number of lanes.
    pub lanes: u32,
}

/// Receive-side scaling of context 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rss {
    /// Queue of each table entry. Empty: the device has no table.
    pub table: Vec<u32>,
    /// `toeplitz`, `xor`, `crc32`, or the bit's number.
    pub function: Fact<String>,
    /// Hash key, bytes in hex without separators.
    pub key: Fact<String>,
    /// Fields hashed by flow type in ethtool's letters: `udp4` → `sd`.
    pub fields: BTreeMap<String, String>,
    /// Input transform: `none`, `symmetric-xor`, `symmetric-or-xor`. Absent: the driver or kernel has none.
    #[serde(default = "not_requested", skip_serializing_if = "not_read")]
    pub symmetric: Fact<String>,
    /// Further contexts by number. Absent: the driver does not support them.
    #[serde(default = "not_requested", skip_serializing_if = "not_read")]
    pub contexts: Fact<BTreeMap<u32, RssContext>>,
}

/// An RSS context besides the device's own. Flow rules steer packets to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RssContext {
    /// Receive queue of each entry.
    pub table: Vec<u32>,
    /// `None`: the context has no key of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The value of parts that were not read.
pub fn not_requested<T>() -> Fact<T> {
    Fact::not_requested(KNOB)
}

const KNOB: &str = "knob";

fn not_read<T>(f: &Fact<T>) -> bool {
    matches!(f, Fact::Unknown(u) if u.cause == Cause::NotAsked && u.what == KNOB)
}

/// A user of the device's queues besides the network stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum User {
    /// An XDP program; `mode` is `driver`, `generic` or `offload`.
    Xdp {
        /// `driver`, `generic` or `offload`.
        mode: String,
        /// `None`: the kernel does not report it.
        program_id: Option<u32>,
    },
    /// An AF_XDP socket on this queue.
    AfXdp {
        /// Number of the queue.
        queue: u32,
    },
    /// An RDMA device on the same function, by its name.
    Rdma {
        /// `mlx5_0`.
        device: String,
    },
    /// A user-space driver (DPDK) holds the function.
    Userspace {
        /// `vfio-pci`, `uio_pci_generic`.
        driver: String,
    },
    /// A datapath of Open vSwitch.
    Ovs,
    /// A DMA buffer (devmem TCP) is bound to this receive queue, since Linux 6.12.
    Dmabuf {
        /// Number of the queue.
        queue: u32,
        /// Id of the binding.
        id: u32,
    },
    /// io_uring receives from this queue into memory of its program (zero copy), since Linux 6.15.
    IoUring {
        /// Number of the queue.
        queue: u32,
    },
    /// The receive queue is leased to a queue of a virtual interface, since Linux 7.1.
    Lease {
        /// Number of the queue.
        queue: u32,
        /// Index of the virtual interface in its network namespace.
        ifindex: IfIndex,
        /// Number of the queue of the virtual interface.
        leased_as: u32,
        /// Id of that network namespace as seen from ours. `None`: the same one.
        netns: Option<i32>,
    },
}

impl User {
    /// The queue that it holds. While it does, the kernel refuses to remove the queue (7.1: net/ethtool/channels.c,
    /// `ethnl_set_channels`, with `netdev_queue_busy`; before only AF_XDP sockets there, and memory in
    /// net/ethtool/common.c, `ethtool_check_max_channel`). `None`: it uses the device, not one queue.
    pub fn queue(&self) -> Option<u32> {
        match self {
            Self::AfXdp { queue } | Self::Dmabuf { queue, .. } | Self::IoUring { queue } => Some(*queue),
            Self::Lease { queue, .. } => Some(*queue),
            Self::Xdp { .. } | Self::Rdma { .. } | Self::Userspace { .. } | Self::Ovs => None,
        }
    }

    /// Whether the payload of the queue's packets is in memory that the kernel does not read. For both users,
    /// `__skb_fill_netmem_desc` (include/linux/skbuff.h, 6.12) marks such a buffer as unreadable, and `tcp_recvmsg_locked`
    /// (net/ipv4/tcp.c) answers EFAULT to a recv() without MSG_SOCK_DEVMEM. io_uring answers EFAULT to a socket whose
    /// data is in the memory of another program (io_uring/zcrx.c, `io_zcrx_recv_frag`, 6.15).
    pub fn hides_data(&self) -> bool {
        matches!(self, Self::Dmabuf { .. } | Self::IoUring { .. })
    }
}

impl Nic {
    /// Name of the interface.
    pub fn name(&self) -> &str {
        &self.dev.name
    }

    /// Users that hold single queues. Empty if none is known.
    pub fn queue_users(&self) -> impl Iterator<Item = &User> {
        self.users.known().into_iter().flatten().filter(|u| u.queue().is_some())
    }

    /// Vectors that serve queues.
    pub fn queue_vectors(&self) -> impl Iterator<Item = &Vector> {
        self.vectors.iter().filter(|v| v.is_queue())
    }

    /// The vector of a queue.
    pub fn vector_of(&self, dir: Dir, queue: u32) -> Option<&Vector> {
        self.vectors.iter().find(|v| match dir {
            Dir::Rx => v.rx().contains(&queue),
            Dir::Tx => v.tx().contains(&queue),
        })
    }

    /// Whether it has queues and, as far as ringwise can see, hardware (or a hypervisor) behind them.
    pub fn has_own_queues(&self) -> bool {
        !matches!(self.kind, NicKind::Software { .. } | NicKind::Loopback) && !self.rx_queues.is_empty()
    }

    /// Queues of one direction that are in use: as many as the driver reports, and no more than there are directories. `None`:
    /// neither number is known; every device has at least one queue of each direction.
    pub fn queues_in_use(&self, dir: Dir) -> Option<u32> {
        let reported = self.channels.known().map(|c| if dir == Dir::Rx { c.rx_queues() } else { c.tx_queues() });
        let (rx, tx) = (self.rx_queues.len() as u32, self.tx_queues.len() as u32);
        let listed = match dir {
            Dir::Rx if self.lists_each_rx_queue_twice() => tx,
            Dir::Rx => rx,
            Dir::Tx => tx,
        };
        match (reported.filter(|n| *n > 0), Some(listed).filter(|n| *n > 0)) {
            (Some(reported), Some(listed)) => Some(reported.min(listed)),
            (reported, listed) => reported.or(listed),
        }
    }

    /// mlx5 of Linux 5.3 to 6.0 has a second receive directory for each queue, for AF_XDP. Only the first half has interrupts.
    pub fn lists_each_rx_queue_twice(&self) -> bool {
        let (rx, tx) = (self.rx_queues.len(), self.tx_queues.len());
        let sure = self.queue_vectors().filter(|v| v.confidence != Confidence::None);
        let served: BTreeSet<u32> = sure.flat_map(Vector::rx).copied().collect();
        tx > 0 && rx == 2 * tx && served == (0..tx as u32).collect()
    }

    /// Why the queues are unknown. `None`: they were read; a device may have none.
    pub fn queues_unread(&self) -> Option<&Unread> {
        if !self.rx_queues.is_empty() || !self.tx_queues.is_empty() {
            return None;
        }
        self.unread.iter().find(|u| matches!(u.subject, Some(Subject::Queues | Subject::Device)))
    }

    /// Whether it is known to have a link now.
    pub fn link_is_up(&self) -> bool {
        self.link.carrier.known() == Some(&true) || self.link.operstate.known().is_some_and(|s| s == "up")
    }
}

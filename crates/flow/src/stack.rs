//! From a receive queue to the CPU that does the work: interrupt, RPS, RFS.

use ringwise_model::{CpuId, CpuSet, Dir, Fact, IrqId, Nic, NodeId, Snapshot, Unread, Vector};
use serde::Serialize;

use crate::steering::QueuePrediction;
use crate::tuple::has_ports;
use crate::undecided::{CpuUndecided, RfsOff, RpsUnknown, StackHashUnknown, as_text, beside};

/// Drivers that hand the device's hash to the stack as one over ports, so that RPS uses it (Linux 6.12); others
/// hand over none, or one that the kernel takes for addresses only and replaces by its own, whose key is secret.
const HASH_OF_PORTS: &[&str] = &[
    "bnxt_en",
    "ena",
    "i40e",
    "iavf",
    "ice",
    "idpf",
    "ixgbe",
    "ixgbevf",
    "mana",
    "mlx5_core",
    "mqnic",
    "qede",
    "sfc",
    "virtio_net",
];
/// Kernel name of the feature that hands the device's hash to the stack (`ethtool -k`: `receive-hashing`).
pub const RXHASH: &str = "rx-hashing";
/// Drivers with accelerated RFS (`ndo_rx_flow_steer`, Linux 6.12).
const ACCELERATED: &[&str] =
    &["bnxt_en", "enic", "hns3", "ice", "mlx4_en", "mlx5_core", "qede", "sfc", "sfc-falcon", "sfc-siena", "mqnic"];

/// How far a CPU is from its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeDistance {
    /// On the device's own NUMA node.
    Near,
    /// On another NUMA node.
    OtherNode,
    /// The node of the CPU or of the device is unknown.
    Unknown,
}

/// A CPU, seen from a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CpuPlacement {
    /// Number of the CPU.
    pub cpu: CpuId,
    /// NUMA node of the CPU. `None`: unknown.
    pub node: Option<NodeId>,
    /// `core_id`, unique within its package. `None`: unknown.
    pub core: Option<u32>,
    /// How far it is from the device, as the firmware reports it.
    pub reach: NodeDistance,
    /// In SLIT units, 10 is local. `None`: unknown.
    pub distance: Option<u32>,
}

/// What happens to packets behind a receive queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReceivePath {
    /// Number of the receive queue.
    pub queue: u32,
    /// Interrupt of the queue. `None`: unknown.
    pub irq: Option<IrqId>,
    /// Which CPUs the interrupt may go to, and where it goes.
    pub asked: Option<CpuSet>,
    /// CPU that gets the interrupt. `None`: see `why_not`.
    pub cpu: Option<CpuPlacement>,
    /// Where the interrupt is now, while it is pinned to `cpu` and has not moved there yet. `None`: it is not pending.
    pub pending_on: Option<CpuSet>,
    /// Why `cpu` is unknown.
    #[serde(flatten, serialize_with = "beside")]
    pub why_not: Option<CpuUndecided>,
    /// Whether another CPU does the protocol work.
    pub rps: Rps,
    /// Whether the CPU of the reading program does it.
    pub rfs: Rfs,
}

impl ReceivePath {
    /// Where protocol work runs, as far as that is known without a socket.
    pub fn works_on(&self) -> Option<CpuId> {
        match &self.rps {
            Rps::Off => self.cpu.as_ref().map(|p| p.cpu),
            Rps::On { chosen, .. } => *chosen,
            Rps::Unknown { .. } => None,
        }
    }
}

/// Receive packet steering, the mask `rps_cpus` of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Rps {
    /// The mask is empty or has no CPU online: the CPU of the interrupt does the work.
    Off,
    /// A CPU of the mask does the work, chosen by the hash.
    On {
        /// CPUs of the mask that are online.
        cpus: CpuSet,
        /// None: it is one of them, and always the same; why it is not known.
        chosen: Option<CpuId>,
        /// Why `chosen` is unknown.
        #[serde(flatten, serialize_with = "beside")]
        why_not: Option<StackHashUnknown>,
    },
    /// The mask is unknown.
    Unknown {
        /// What could not be read, with the kernel's error.
        #[serde(serialize_with = "as_text")]
        why: RpsUnknown,
    },
}

/// Receive flow steering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Rfs {
    /// One of the two tables has no entries, or the kernel has no RFS.
    Off {
        /// Which of them.
        #[serde(serialize_with = "as_text")]
        why: RfsOff,
    },
    /// Entries of the host's table (who reads where) and of the queue's (where packets went last).
    On {
        /// Entries of `net.core.rps_sock_flow_entries`.
        entries: u32,
        /// Entries of the queue's `rps_flow_cnt`.
        queue_entries: u32,
        /// The driver can steer the flow in the device (`ndo_rx_flow_steer`), with `ntuple` on.
        accelerated: bool,
    },
    /// A table could not be read.
    Unknown {
        /// What could not be read, with the kernel's error.
        #[serde(serialize_with = "as_text")]
        why: Unread,
    },
}

/// RFS's two tables and the rule that keeps packets in order.
pub fn rfs_words(entries: u32, queue_entries: u32) -> String {
    format!(
        "the host's table ({entries} entries) stores for each hash the CPU that last read from or wrote to the socket; \
         the queue's table ({queue_entries} entries) stores the CPU that last received the packets. A flow moves to its \
         reader's CPU only when the old CPU has processed the packets that were queued for it (or is offline), so that \
         no packet overtakes another"
    )
}

/// Whether the driver is one of those that can steer a flow in the device (`ndo_rx_flow_steer`).
pub(crate) fn supports_accelerated_rfs(nic: &Nic) -> bool {
    nic.driver.known().is_some_and(|d| ACCELERATED.contains(&d.as_str()))
}

/// Node, core and distance of `cpu`, seen from `nic`.
pub fn cpu_placement(s: &Snapshot, nic: &Nic, cpu: CpuId) -> CpuPlacement {
    let node = s.topology.node_of(cpu);
    let device = nic.node.known().copied();
    let reach = match (node, device) {
        (Some(a), Some(b)) if a == b => NodeDistance::Near,
        (Some(_), Some(_)) => NodeDistance::OtherNode,
        _ => NodeDistance::Unknown,
    };
    let distance = device.zip(node).and_then(|(d, n)| s.topology.distance(d, n));
    let core = s.topology.cpu(cpu).and_then(|c| c.core.known()).copied();
    CpuPlacement { cpu, node, core, reach, distance }
}

/// The CPUs where the interrupt is now, if it is pinned to a CPU to which it has not moved yet. `None`: it is not pending, or that
/// is unknown.
pub(crate) fn pending_on(v: &Vector) -> Option<CpuSet> {
    let now = v.effective.known().filter(|e| !e.is_empty())?;
    (v.taken_by()? != now).then(|| now.clone())
}

/// What happens to packets that `a` sends to receive queue `queue`.
pub fn landing(s: &Snapshot, nic: &Nic, queue: u32, a: &QueuePrediction) -> ReceivePath {
    let vector = nic.vector_of(Dir::Rx, queue);
    let (cpu, why_not) = match vector.map(|v| (v.taken_by(), &v.effective, &v.asked)) {
        None => (None, Some(CpuUndecided::NoInterrupt)),
        Some((Some(e), _, asked)) => match (e.first(), e.len()) {
            (Some(c), 1) => (Some(c), None),
            (None, _) => (None, Some(CpuUndecided::NotFiredYet)),
            _ => (None, asked.known().map(|m| CpuUndecided::OneOf { cpus: m.clone() })),
        },
        Some((None, Fact::Absent, Fact::Known(m))) if m.len() == 1 => (m.first(), None),
        Some((None, Fact::Unknown(u), _)) => (None, Some(CpuUndecided::EffectiveUnread { unread: u.clone() })),
        Some((None, _, _)) => (None, Some(CpuUndecided::EffectiveNotReported)),
    };
    ReceivePath {
        queue,
        irq: vector.map(|v| v.irq),
        asked: vector.and_then(|v| v.asked.known().cloned()),
        cpu: cpu.map(|c| cpu_placement(s, nic, c)),
        pending_on: vector.and_then(pending_on),
        why_not,
        rps: rps(s, nic, queue, a),
        rfs: rfs(s, nic, queue),
    }
}

fn feature(nic: &Nic, name: &str) -> Option<bool> {
    nic.features.known().and_then(|f| f.get(name)).map(|f| f.on)
}

/// The kernel multiplies the 32-bit hash by the number of CPUs in the mask and takes the upper word: entry of
/// the mask's online CPUs in ascending order (`get_rps_cpu`).
fn rps(s: &Snapshot, nic: &Nic, queue: u32, a: &QueuePrediction) -> Rps {
    let Some(q) = nic.rx_queues.iter().find(|q| q.id == queue) else {
        return Rps::Unknown { why: RpsUnknown::NoSuchQueue };
    };
    let mask = match &q.rps_cpus {
        Fact::Known(m) if m.is_empty() => return Rps::Off,
        Fact::Absent => return Rps::Off,
        Fact::Known(m) => m.intersection(&s.topology.online),
        Fact::Unknown(u) => return Rps::Unknown { why: RpsUnknown::Unread(u.clone()) },
    };
    if mask.is_empty() {
        return Rps::Off;
    }
    if mask.len() == 1 {
        return Rps::On { chosen: mask.first(), cpus: mask, why_not: None };
    }
    let (chosen, why_not) = match stack_hash(nic, a) {
        Ok(hash) => (mask.iter().nth(((u64::from(hash) * mask.len() as u64) >> 32) as usize), None),
        Err(why) => (None, Some(why)),
    };
    Rps::On { cpus: mask, chosen, why_not }
}

/// The hash that RPS uses; known only where it is the device's own.
pub fn stack_hash(nic: &Nic, a: &QueuePrediction) -> Result<u32, StackHashUnknown> {
    let driver = nic.driver.known().map_or("", String::as_str);
    if feature(nic, RXHASH) == Some(false) {
        return Err(StackHashUnknown::HashingOff);
    }
    if !HASH_OF_PORTS.contains(&driver) {
        return Err(StackHashUnknown::NotPassed { driver: driver.to_string() });
    }
    if a.flow_type.starts_with("ip") || !a.fields.is_some_and(|f| f.has_ports()) {
        return Err(StackHashUnknown::AddressesOnly);
    }
    a.hash.ok_or(StackHashUnknown::DeviceHashUnknown)
}

fn rfs(s: &Snapshot, nic: &Nic, queue: u32) -> Rfs {
    let own = nic.rx_queues.iter().find(|q| q.id == queue).map(|q| &q.rps_flow_cnt);
    match (&s.host.rps_sock_flow_entries, own) {
        (Fact::Known(0), _) => Rfs::Off { why: RfsOff::HostTableEmpty },
        (Fact::Absent, _) => Rfs::Off { why: RfsOff::NotInKernel },
        (Fact::Known(_), Some(Fact::Known(0) | Fact::Absent) | None) => Rfs::Off { why: RfsOff::QueueTableEmpty },
        (Fact::Known(entries), Some(Fact::Known(n))) => {
            let driver = nic.driver.known().map_or("", String::as_str);
            let accelerated = ACCELERATED.contains(&driver) && feature(nic, crate::steering::NTUPLE) == Some(true);
            Rfs::On { entries: *entries, queue_entries: *n, accelerated }
        }
        (Fact::Unknown(u), _) | (_, Some(Fact::Unknown(u))) => Rfs::Unknown { why: u.clone() },
    }
}

/// Of a protocol with ports, in one piece: what sockets and the stack tell apart.
pub fn has_socket(t: &crate::Tuple) -> bool {
    has_ports(t.protocol) && t.ports.is_some()
}

//! The host around the device.

use std::fmt;

use ringwise_model::words::plural;
use ringwise_model::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};

use super::words::{bytes, count, gts};

/// Speeds of PCI Express in MT/s a lane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum HostFound {
    /// The device uses fewer PCI Express lanes than it has.
    FewLanes {
        /// Lanes in use.
        lanes: u32,
        /// Lanes that the device has.
        most: u32,
    },
    /// The lanes run slower than the device can.
    SlowLanes {
        /// The present speed.
        mtps: u32,
        /// The highest speed of the device.
        most_mtps: u32,
    },
    /// PCI Express carries less than the ports of the card together.
    LinkTooNarrow {
        /// The present speed.
        mtps: u32,
        /// Lanes in use.
        lanes: u32,
        /// What they carry after encoding and protocol overhead, in one direction.
        carries_mbps: u64,
        /// Ports of the card that have a link.
        ports: u32,
        /// Sum of their link speeds.
        needs_mbps: u64,
    },
    /// The payload of a PCI Express packet is smaller than the device allows.
    SmallPayload {
        /// MaxPayload in use.
        bytes: u32,
        /// MaxPayload that the device can do.
        most: u32,
    },
    /// Read requests of the device are small for the speed of its link.
    SmallReadRequests {
        /// MaxReadReq in use.
        bytes: u32,
        /// Speed of the link.
        mbps: u32,
    },
    /// The PCI Express link may enter power-saving states (ASPM). `None`: unknown.
    LinkMaySleep {
        /// The policy of ASPM.
        policy: Option<String>,
    },
    /// CPUs with queue interrupts have a frequency governor other than `performance`.
    Governor {
        /// Name of the governor.
        governor: String,
        /// The CPUs.
        cpus: CpuSet,
    },
    /// The IOMMU domain of the device is strict, so each unmapping waits for a flush.
    StrictIommu,
    /// The kernel copies packets through its bounce buffer (swiotlb).
    BounceBuffer {
        /// Slots in use (`io_tlb_used`).
        slots: u64,
    },
    /// Automatic NUMA balancing is on, and the goal is latency.
    NumaBalancing {
        /// `kernel.numa_balancing`.
        value: u64,
    },
    /// A host with several nodes does not report the node of the device.
    NodeUnknown,
    /// CPU buffers are cleared at each return to user space, and hardware threads stay vulnerable.
    BuffersCleared {
        /// Files in `/sys/devices/system/cpu/vulnerabilities`.
        vulnerabilities: Vec<String>,
    },
    /// Packet sockets receive every packet of one interface, or of all interfaces.
    PacketSockets {
        /// How many such sockets are open.
        sockets: u32,
        /// They receive the packets of all interfaces. `false`: of the interface of the finding.
        all_interfaces: bool,
    },
    /// The NMI watchdog runs on a host with isolated CPUs.
    NmiWatchdog {
        /// The isolated CPUs.
        isolated: CpuSet,
    },
    /// The hypervisor takes time from a CPU that handles queue interrupts.
    StolenTime {
        /// The CPU.
        cpu: CpuId,
        /// Share of its time that is stolen.
        percent: f64,
    },
    /// The kernel uses a slow clock although a faster one is available.
    SlowClock {
        /// The clock in use.
        clock: String,
        /// A faster clock that is available.
        faster: String,
    },
    /// Little memory is kept free for allocations in interrupts.
    LittleFreeMemory {
        /// `vm.min_free_kbytes`, in bytes.
        free_bytes: u64,
        /// Memory of the host, in bytes.
        of_bytes: u64,
    },
    /// An XDP program runs in generic mode, after the socket buffer was allocated.
    GenericXdp,
    /// The CPU, or the hypervisor, lacks flags for fast copies of memory.
    CpuFlagsMissing {
        /// Names as in `/proc/cpuinfo`.
        flags: Vec<String>,
    },
}

impl fmt::Display for HostFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FewLanes { lanes, most } => write!(f, "{lanes} of {most} lanes"),
            Self::SlowLanes { mtps, most_mtps } => write!(f, "{} of {} a lane", gts(*mtps), gts(*most_mtps)),
            Self::LinkTooNarrow { mtps, lanes, carries_mbps, ports, needs_mbps } => write!(
                f,
                "{} x{lanes} carries about {} Mb/s, the {} of the card need {}",
                gts(*mtps),
                count(*carries_mbps),
                plural(*ports as usize, "port"),
                count(*needs_mbps)
            ),
            Self::SmallPayload { bytes, most } => write!(f, "MaxPayload {bytes} bytes, the device can do {most}"),
            Self::SmallReadRequests { bytes, mbps } => write!(f, "MaxReadReq {bytes} bytes at {mbps} Mb/s"),
            Self::LinkMaySleep { policy } => {
                write!(f, "the link may sleep (policy {})", policy.as_deref().unwrap_or("unknown"))
            }
            Self::Governor { governor, cpus } => {
                write!(f, "governor {governor} on CPUs {cpus}, which take queue interrupts")
            }
            Self::StrictIommu => f.write_str("strict IOMMU domain: every unmapping waits for the hardware"),
            Self::BounceBuffer { slots } => write!(f, "{} slots of the bounce buffer are in use", count(*slots)),
            Self::NumaBalancing { value } => write!(f, "kernel.numa_balancing is {value}"),
            Self::NodeUnknown => {
                f.write_str("its node is not known (numa_node), and nothing else says which CPUs are near")
            }
            Self::BuffersCleared { vulnerabilities } => write!(
                f,
                "{}: buffers are cleared at each return to a program, threads of a core are exposed all the same",
                vulnerabilities.join(" ")
            ),
            Self::PacketSockets { sockets, all_interfaces } => {
                let take = if *sockets == 1 { "takes" } else { "take" };
                let of = if *all_interfaces { " of every interface" } else { "" };
                write!(f, "{} {take} every packet{of}", plural(*sockets as usize, "packet socket"))
            }
            Self::NmiWatchdog { isolated } => write!(f, "kernel.nmi_watchdog is 1, CPUs {isolated} are isolated"),
            Self::StolenTime { cpu, percent } => {
                write!(f, "{percent:.0} % of CPU {cpu}'s time is stolen, and it takes queue interrupts")
            }
            Self::SlowClock { clock, faster } => write!(f, "the clock is {clock}, {faster} is there"),
            Self::LittleFreeMemory { free_bytes, of_bytes } => {
                write!(f, "vm.min_free_kbytes is {} of {}", bytes(*free_bytes), bytes(*of_bytes))
            }
            Self::GenericXdp => f.write_str("an XDP program runs in generic mode"),
            Self::CpuFlagsMissing { flags } => match flags.as_slice() {
                [one] => write!(f, "the CPU flag {one} is not there"),
                all => write!(f, "the CPU flags {} are not there", all.join(" ")),
            },
        }
    }
}

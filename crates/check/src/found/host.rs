//! Findings about the host: PCI Express, power, memory, CPUs.

use std::fmt;

use ringwise_model::words::plural;
use ringwise_model::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};

use super::words::{self, bytes, count, gts};

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
    /// The lanes run slower than the device supports.
    SlowLanes {
        /// The present speed.
        mtps: u32,
        /// The highest speed of the device.
        most_mtps: u32,
    },
    /// PCI Express carries less than all ports of the card together can send.
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
        /// MaxPayload that the device supports.
        most: u32,
    },
    /// Read requests of the device are small for the speed of its link.
    SmallReadRequests {
        /// MaxReadReq in use.
        bytes: u32,
        /// Speed of the link.
        mbps: u32,
    },
    /// The PCI Express link may enter power-saving states (ASPM).
    LinkMaySleep {
        /// The policy of ASPM. `None`: unknown.
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
            Self::FewLanes { lanes, most } => write!(f, "the link uses {lanes} of {most} PCI Express lanes"),
            Self::SlowLanes { mtps, most_mtps } => {
                write!(f, "PCI Express lanes run at {}, but the device supports {}", gts(*mtps), gts(*most_mtps))
            }
            Self::LinkTooNarrow { mtps, lanes, carries_mbps, ports, needs_mbps } => write!(
                f,
                "{} x{lanes} carries about {} Mb/s, but the card's {} {} {} Mb/s",
                gts(*mtps),
                count(*carries_mbps),
                plural(*ports as usize, "port"),
                if *ports == 1 { "needs" } else { "need" },
                count(*needs_mbps)
            ),
            Self::SmallPayload { bytes, most } => {
                write!(f, "MaxPayload is {bytes} bytes, but the device supports {most}")
            }
            Self::SmallReadRequests { bytes, mbps } => {
                write!(f, "MaxReadReq is {bytes} bytes on a link of {mbps} Mb/s")
            }
            Self::LinkMaySleep { policy } => {
                write!(f, "the PCI Express link may sleep (ASPM policy {})", policy.as_deref().unwrap_or("unknown"))
            }
            Self::Governor { governor, cpus } => {
                let handle = if cpus.len() == 1 { "handles" } else { "handle" };
                write!(f, "governor {governor} on {}, which {handle} queue interrupts", words::cpus(cpus))
            }
            Self::StrictIommu => f.write_str("strict IOMMU domain: every unmapping waits for the hardware"),
            Self::BounceBuffer { slots } => write!(f, "{} bounce buffer slots (swiotlb) are in use", count(*slots)),
            Self::NumaBalancing { value } => write!(f, "kernel.numa_balancing is {value}"),
            Self::NodeUnknown => f.write_str("the node of the device (numa_node) and its local CPUs are unknown"),
            Self::BuffersCleared { vulnerabilities } => write!(
                f,
                "{}: CPU buffers are cleared at each return to user space, but SMT stays vulnerable",
                vulnerabilities.join(" ")
            ),
            Self::PacketSockets { sockets, all_interfaces } => {
                let receive = if *sockets == 1 { "receives" } else { "receive" };
                let of = if *all_interfaces { " of every interface" } else { "" };
                write!(f, "{} {receive} every packet{of}", plural(*sockets as usize, "packet socket"))
            }
            Self::NmiWatchdog { isolated } => {
                write!(f, "kernel.nmi_watchdog is 1 on a host with isolated {}", words::cpus(isolated))
            }
            Self::StolenTime { cpu, percent } => {
                write!(f, "{percent:.0} % steal time on CPU {cpu}, which handles queue interrupts")
            }
            Self::SlowClock { clock, faster } => {
                write!(f, "the clock source is {clock}, although {faster} is available")
            }
            Self::LittleFreeMemory { free_bytes, of_bytes } => {
                write!(f, "the memory reserve (vm.min_free_kbytes) is {} of {}", bytes(*free_bytes), bytes(*of_bytes))
            }
            Self::GenericXdp => f.write_str("an XDP program runs in generic mode"),
            Self::CpuFlagsMissing { flags } => match flags.as_slice() {
                [one] => write!(f, "the CPU flag for fast copies is missing ({one})"),
                all => write!(f, "the CPU flags for fast copies are missing ({})", all.join(" ")),
            },
        }
    }
}

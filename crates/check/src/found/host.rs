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
    FewLanes {
        lanes: u32,
        most: u32,
    },
    SlowLanes {
        mtps: u32,
        most_mtps: u32,
    },
    LinkTooNarrow {
        mtps: u32,
        lanes: u32,
        carries_mbps: u64,
        ports: u32,
        needs_mbps: u64,
    },
    SmallPayload {
        bytes: u32,
        most: u32,
    },
    SmallReadRequests {
        bytes: u32,
        mbps: u32,
    },
    /// `None`: unknown.
    LinkMaySleep {
        policy: Option<String>,
    },
    Governor {
        governor: String,
        cpus: CpuSet,
    },
    StrictIommu,
    BounceBuffer {
        slots: u64,
    },
    NumaBalancing {
        value: u64,
    },
    NodeUnknown,
    /// Names of the kernel's list.
    BuffersCleared {
        vulnerabilities: Vec<String>,
    },
    /// Packet sockets that take every packet of the interface, or of all of them.
    PacketSockets {
        sockets: u32,
        all_interfaces: bool,
    },
    NmiWatchdog {
        isolated: CpuSet,
    },
    StolenTime {
        cpu: CpuId,
        percent: f64,
    },
    SlowClock {
        clock: String,
        faster: String,
    },
    LittleFreeMemory {
        free_bytes: u64,
        of_bytes: u64,
    },
    GenericXdp,
    CpuFlagsMissing {
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

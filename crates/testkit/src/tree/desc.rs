//! The description of a hand-written host, as in `host.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A hand-written host: `host.toml` in TOML, for [`Tree::build`](super::Tree::build).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// `hand-written`: no such machine was measured.
    pub origin: String,
    /// What the host is for, and where its shape comes from.
    pub about: String,
    /// As in `/proc/sys/kernel/hostname`.
    pub hostname: String,
    /// As in `/proc/sys/kernel/osrelease`.
    pub kernel: String,
    #[serde(default)]
    pub(crate) arch: Arch,
    /// DMI.
    #[serde(default)]
    pub vendor: Option<String>,
    /// DMI as well: `product_name` below `/sys/class/dmi/id`.
    #[serde(default)]
    pub product: Option<String>,
    /// The CPU flag of guests.
    #[serde(default)]
    pub guest: bool,
    /// Follows `BOOT_IMAGE=… ro` in `/proc/cmdline`.
    #[serde(default)]
    pub cmdline: String,
    /// Interrupt remapping: `IR-` before the chip names of x86.
    #[serde(default)]
    pub remapping: bool,
    /// Running programs by name.
    #[serde(default)]
    pub processes: Vec<String>,
    /// Path under `/proc/sys` → value.
    #[serde(default)]
    pub sysctl: BTreeMap<String, String>,
    pub(crate) cpu: Cpu,
    #[serde(default)]
    pub(crate) nic: Vec<Nic>,
    #[serde(default)]
    pub(crate) software: Vec<Software>,
    /// Vectors of other devices, which serve no queue.
    #[serde(default)]
    pub(crate) other: Vec<Other>,
    /// Path prefixes (a part may be `*`) that are missing in the archive.
    #[serde(default)]
    pub missing: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Arch {
    #[default]
    X86_64,
    Aarch64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cpu {
    pub packages: u32,
    /// Cores per package.
    pub cores: u32,
    /// Threads per core.
    pub threads: u32,
    #[serde(default)]
    pub numbering: Numbering,
    /// Cores that share an L3. None: no cache directories, as in many guests.
    #[serde(default)]
    pub l3_cores: Option<u32>,
    /// 0: a kernel without NUMA.
    #[serde(default = "one")]
    pub nodes_per_package: u32,
    /// Between nodes of the same package, and of different ones.
    #[serde(default = "near")]
    pub near_distance: u32,
    #[serde(default = "far")]
    pub far_distance: u32,
    /// CPU lists.
    #[serde(default)]
    pub isolated: String,
    #[serde(default)]
    pub nohz_full: String,
    #[serde(default)]
    pub offline: String,
    /// Possible CPUs; none: the present ones.
    #[serde(default)]
    pub possible: Option<u32>,
    /// Model name in `/proc/cpuinfo`.
    #[serde(default)]
    pub model: String,
}

/// How the kernel numbered the threads (p = package, c = core in it, t = thread).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Numbering {
    /// All first threads package by package, then all second threads.
    #[default]
    SiblingsLast,
    /// Threads of a core next to each other.
    SiblingsAdjacent,
    /// Packages alternate: even numbers on the first of two, odd ones on the second.
    PackagesInTurns,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nic {
    pub name: String,
    pub driver: String,
    pub bus: Bus,
    /// PCI `0000:41:00.0` (for virtio the function above it), VMBus GUID.
    pub address: String,
    /// Bridge above a PCI function, `0000:40:01.1`.
    #[serde(default)]
    pub bridge: Option<String>,
    /// As `numa_node` prints it.
    pub node: i32,
    /// PCI vendor and device.
    #[serde(default)]
    pub id: Option<(u16, u16)>,
    #[serde(default = "yes")]
    pub up: bool,
    /// Mb/s; -1 where the driver does not know; none: the file cannot be read.
    #[serde(default)]
    pub speed: Option<i64>,
    #[serde(default = "mtu")]
    pub mtu: u32,
    pub mac: String,
    /// Queue directories in sysfs.
    pub rx: u32,
    pub tx: u32,
    #[serde(default)]
    pub xps: Xps,
    /// CPU list of every receive queue's RPS mask.
    #[serde(default)]
    pub rps: String,
    #[serde(default)]
    pub rps_flow_cnt: u32,
    /// Number of the first vector.
    #[serde(default)]
    pub first_irq: u32,
    #[serde(default)]
    pub vectors: Vec<Vectors>,
    /// PCI address of the physical function.
    #[serde(default)]
    pub physfn: Option<String>,
    /// The device above it: bond, bridge, or the netvsc of a VF.
    #[serde(default)]
    pub master: Option<String>,
    /// The interface was moved to another network namespace: the directory that contained it is empty.
    #[serde(default)]
    pub other_namespace: bool,
    /// RDMA device of the same function.
    #[serde(default)]
    pub rdma: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bus {
    Pci,
    Virtio,
    Vmbus,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Xps {
    #[default]
    None,
    /// Queue q for the q-th CPU.
    Each,
    /// CPUs in as many neighbouring groups as there are queues (virtio_net).
    Groups,
    /// The files cannot be read: one queue only.
    Absent,
}

/// Neighbouring vectors of one kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vectors {
    /// `{n}` counts from `from`; `{first}` and `{last}` are the rings of a vector that has several (`rings`).
    /// Empty: no driver requests it.
    pub name: String,
    #[serde(default = "one")]
    pub count: u32,
    #[serde(default)]
    pub from: u32,
    /// Rings per vector, for `{first}` and `{last}`.
    #[serde(default = "one")]
    pub rings: u32,
    #[serde(default)]
    pub asked: RequestedAffinity,
    /// The CPUs that they run on in turn; empty: the first CPU of the requested affinity.
    #[serde(default)]
    pub lands: String,
    /// Roughly how often each interrupt has occurred.
    #[serde(default)]
    pub count_each: u64,
    /// The driver gives a hint.
    #[serde(default)]
    pub hint: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RequestedAffinity {
    /// Every CPU.
    #[default]
    All,
    /// Those of the device's node.
    Node,
    /// One each, near CPUs in order, then the others.
    Each,
    /// This list.
    Cpus(String),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Software {
    pub name: String,
    /// `bond`, `vlan`, `bridge`, `veth`, `tun`, `dummy`.
    pub kind: String,
    #[serde(default)]
    pub lower: Vec<String>,
    /// More of the same: the name is followed by a number.
    #[serde(default = "one")]
    pub count: u32,
    #[serde(default = "one")]
    pub queues: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Other {
    /// `{n}` counts from 0.
    pub name: String,
    pub address: String,
    pub first_irq: u32,
    pub count: u32,
}

impl Host {
    /// Reads TOML. Errors: a syntax error, a member that is unknown, missing or of another type, or another `origin`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let host: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        if host.origin != "hand-written" {
            return Err(format!("origin is {:?}; expected \"hand-written\"", host.origin));
        }
        Ok(host)
    }

    /// Index of an interface; lo is 1.
    pub fn ifindex(&self, name: &str) -> Option<u32> {
        self.names().position(|n| n == name).map(|i| i as u32 + 2)
    }

    /// Every interface but lo, NICs first.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.nic.iter().map(|n| n.name.clone()).chain(self.software.iter().flat_map(Software::names))
    }

    /// `major.minor` of the kernel is this or newer.
    pub fn since(&self, major: u32, minor: u32) -> bool {
        let mut parts = self.kernel.split(|c: char| !c.is_ascii_digit()).map(|p| p.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (major, minor)
    }
}

impl Software {
    pub(crate) fn names(&self) -> Vec<String> {
        if self.count == 1 {
            vec![self.name.clone()]
        } else {
            (0..self.count).map(|i| format!("{}{i}", self.name)).collect()
        }
    }
}

fn one() -> u32 {
    1
}
fn near() -> u32 {
    12
}
fn far() -> u32 {
    21
}
fn mtu() -> u32 {
    1500
}
fn yes() -> bool {
    true
}

//! Network functions of the PCI bus: those that have no interface in this network namespace, and virtual functions.

use serde::{Deserialize, Serialize};

use crate::{CpuId, CpuSet, Fact, IrqId, Role};

/// A network function that a user-space driver holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserspaceFunction {
    /// `0000:05:00.0`
    pub bus_address: String,
    /// `vfio-pci`, `igb_uio`, …
    pub driver: String,
}

/// A network function that a driver of the kernel serves. Its interrupts run on CPUs of this host, like those of interfaces
/// here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionWithoutInterface {
    /// `0000:05:00.0`
    pub bus_address: String,
    /// `igb`; `virtio_net` for a virtio device.
    pub driver: String,
    /// Whether its interface is in another network namespace. Otherwise the driver registered none.
    pub in_other_namespace: bool,
    /// Known and empty: it has none.
    pub vectors: Fact<Vec<FunctionVector>>,
}

/// An interrupt of such a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionVector {
    /// Number in `/proc/interrupts`.
    pub irq: IrqId,
    /// Names that the driver gave it. Empty: the driver has not requested it.
    pub names: Vec<String>,
    /// What it serves, by its names alone.
    pub role: Role,
    /// The CPUs that take it.
    pub cpus: Fact<CpuSet>,
}

impl FunctionVector {
    /// Whether packets may arrive by it: it serves queues, or no source shows what it serves.
    pub fn may_carry_traffic(&self) -> bool {
        match self.role {
            Role::Queues { .. } => true,
            Role::Unknown => !self.names.is_empty(),
            Role::Control | Role::Idle => false,
        }
    }
}

impl FunctionWithoutInterface {
    /// The interrupts by which packets may arrive.
    pub fn traffic_vectors(&self) -> impl Iterator<Item = &FunctionVector> {
        self.vectors.known().into_iter().flatten().filter(|v| v.may_carry_traffic())
    }

    /// The CPU of each of these interrupts, without those that may run on several CPUs or whose CPU is unknown.
    pub fn loaded_cpus(&self) -> impl Iterator<Item = CpuId> {
        self.traffic_vectors().filter_map(|v| v.cpus.known().filter(|c| c.len() == 1).and_then(CpuSet::first))
    }
}

/// The virtual functions of a physical function (SR-IOV). They share its link and the resources of the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualFunctions {
    /// How many the device can have: `sriov_totalvfs`.
    pub max: Fact<u32>,
    /// Those that exist, by number.
    pub list: Vec<VirtualFunction>,
}

/// One virtual function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualFunction {
    /// N of `virtfnN`; `ip link` calls it `vf N`.
    pub number: u32,
    /// `0000:05:10.0`
    pub bus_address: String,
    /// Who uses it. Absent: no driver is bound to it.
    pub holder: Fact<FunctionHolder>,
}

/// Who uses a function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionHolder {
    /// An interface of this network namespace, or several.
    Interfaces {
        /// Their names.
        names: Vec<String>,
    },
    /// An interface of another network namespace.
    OtherNamespace {
        /// `iavf`
        driver: String,
    },
    /// A virtual machine or a program.
    UserSpace {
        /// `vfio-pci`
        driver: String,
    },
    /// A driver of the kernel that registered no interface.
    Driver {
        /// `mlx5_core`
        driver: String,
    },
}

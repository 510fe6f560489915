//! NAPI settings: of the device (sysfs) and of each queue (netdev netlink, kernels since 6.13).

use serde::{Deserialize, Serialize};

use crate::Fact;

/// `None`: this kernel has no such knob here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NapiValues {
    pub defer_hard_irqs: Option<u32>,
    pub gro_flush_timeout_ns: Option<u64>,
    pub irq_suspend_timeout_ns: Option<u64>,
    /// 0 off, 1 a kernel thread polls, 2 it polls busily.
    pub threaded: Option<u32>,
}

/// One NAPI instance, by the queues it serves; its id changes with every restart of the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NapiInstance {
    pub id: u32,
    pub rx: Vec<u32>,
    pub tx: Vec<u32>,
    /// Of this instance alone. Absent: this kernel sets them by device only.
    pub values: Fact<NapiValues>,
    /// Its thread, where it is threaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<NapiThread>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NapiThread {
    pub pid: u32,
    /// CPUs it may run on.
    pub cpus: Fact<crate::CpuSet>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Napi {
    /// From `/sys/class/net/DEV`.
    pub device: NapiValues,
    /// In order of their first queue; empty where the driver links none to its queues.
    pub instances: Vec<NapiInstance>,
}

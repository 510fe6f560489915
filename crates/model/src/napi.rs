//! NAPI settings: of the device (sysfs) and of each queue (netdev netlink, kernels since 6.13).

use serde::{Deserialize, Serialize};

use crate::Fact;

/// `None`: this kernel does not have the setting here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NapiValues {
    /// Empty polls before the interrupt is enabled again (`napi_defer_hard_irqs`).
    pub defer_hard_irqs: Option<u32>,
    /// Nanoseconds until held packets are flushed, or the device is polled again.
    pub gro_flush_timeout_ns: Option<u64>,
    /// Nanoseconds without interrupts while a program polls busily. Since 6.13.
    pub irq_suspend_timeout_ns: Option<u64>,
    /// 0: off, 1: a kernel thread polls, 2: a kernel thread busy-polls.
    pub threaded: Option<u32>,
}

/// One NAPI instance, identified by the queues that it serves. Its ID changes with every restart of the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NapiInstance {
    /// NAPI id (`NETDEV_A_NAPI_ID`), unique on the host.
    pub id: u32,
    /// Receive queues it serves, ascending.
    pub rx: Vec<u32>,
    /// Transmit queues it serves, ascending.
    pub tx: Vec<u32>,
    /// Values of this instance. Absent: this kernel sets them only for the whole device.
    pub values: Fact<NapiValues>,
    /// Its thread, if NAPI is threaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<NapiThread>,
}

/// The kernel thread of a NAPI instance (`napi/DEV-ID`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NapiThread {
    /// Process id of the thread.
    pub pid: u32,
    /// CPUs it may run on.
    pub cpus: Fact<crate::CpuSet>,
}

/// Polling parameters of a device and of its instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Napi {
    /// From `/sys/class/net/DEV`.
    pub device: NapiValues,
    /// In order of their first queue; empty if the driver does not link instances to queues.
    pub instances: Vec<NapiInstance>,
}

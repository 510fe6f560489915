//! The table of all files behind settings, used for reading, writing, scripts and messages.

use ringwise_model::{CpuId, IrqId};

/// Directory of all network interfaces.
pub const NET: &str = "/sys/class/net";
/// sysctl `net.core.rps_sock_flow_entries`.
pub const RFS_ENTRIES: &str = "/proc/sys/net/core/rps_sock_flow_entries";
/// Bus addresses of the devices that ringwise's policy script for irqbalance handles, one per line.
pub const IRQBALANCE_DEVICES: &str = "/run/ringwise/irqbalance-devices";

/// Interrupt vectors of each CPU: x86, and kernels with CONFIG_GENERIC_IRQ_DEBUGFS (kernel/irq/irqdomain.c,
/// `debugfs_add_domain_dir`).
pub const FREE_VECTORS: &str = "/sys/kernel/debug/irq/domains/VECTOR";

/// Files of NAPI values below the interface's directory, in the order in which they are written.
pub const NAPI: [&str; 3] = ["napi_defer_hard_irqs", "gro_flush_timeout", "threaded"];

/// A file of the interface itself.
pub fn of_device(dev: &str, file: &str) -> String {
    format!("{NET}/{dev}/{file}")
}

/// A file of a receive queue.
pub fn of_rx(dev: &str, queue: u32, file: &str) -> String {
    format!("{NET}/{dev}/queues/rx-{queue}/{file}")
}

/// A file of a transmit queue.
pub fn of_tx(dev: &str, queue: u32, file: &str) -> String {
    format!("{NET}/{dev}/queues/tx-{queue}/{file}")
}

/// A file of an interrupt: `smp_affinity_list`, `effective_affinity_list`, `node`.
pub fn of_irq(irq: IrqId, file: &str) -> String {
    format!("/proc/irq/{irq}/{file}")
}

/// The requested affinity of an interrupt. The list form does not depend on the width of mask groups.
pub fn affinity(irq: IrqId) -> String {
    of_irq(irq, "smp_affinity_list")
}

/// A file of a task: `comm`, `status`.
pub fn of_task(pid: u32, file: &str) -> String {
    format!("/proc/{pid}/{file}")
}

/// The file of a sysctl. `None` if `name` is not a valid name of a sysctl.
pub fn sysctl(name: &str) -> Option<String> {
    let good =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    name.split('.').all(good).then(|| format!("/proc/sys/{}", name.replace('.', "/")))
}

/// Maximum wake-up latency of a CPU.
pub fn cpu_latency(cpu: CpuId) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Address;

    #[test]
    fn names_give_only_files_below_proc_sys() {
        assert_eq!(sysctl("net.core.netdev_budget").unwrap(), "/proc/sys/net/core/netdev_budget");
        for bad in ["", ".", "net..core", "net/core", "net.core.../x", "net.core.a b", "net.core.\n"] {
            assert_eq!(sysctl(bad), None, "{bad}");
        }
    }

    #[test]
    fn each_file_is_the_kernels() {
        let xps = Address::XpsCpus { dev: "eth0".into(), queue: 3 };
        assert_eq!(xps.file().unwrap(), "/sys/class/net/eth0/queues/tx-3/xps_cpus");
        let rps = Address::RpsFlowCnt { dev: "eth0".into(), queue: 3 };
        assert_eq!(rps.file().unwrap(), "/sys/class/net/eth0/queues/rx-3/rps_flow_cnt");
        assert_eq!(affinity(IrqId(30)), "/proc/irq/30/smp_affinity_list");
        let latency = Address::CpuLatency { cpu: CpuId(2) };
        assert_eq!(latency.file().unwrap(), "/sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us");
    }
}

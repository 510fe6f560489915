//! Settings that name offline CPUs: the part that the kernel accepts now, and the CPUs that the rest needs.

use ringwise_model::{CpuSet, Snapshot};

use crate::{Match, Setting, compare};

/// The setting as the kernel accepts it while only the CPUs in `online` are online. `None`: the kernel does not accept
/// it.
///
/// An interrupt or thread needs at least one online CPU, and then keeps the whole mask (kernel/irq/proc.c,
/// `write_irq_affinity`). The kernel silently drops offline CPUs from masks of RPS and XPS (net/core/net-sysfs.c,
/// `netdev_rx_queue_set_rps_mask`; net/core/dev.c, `__netif_set_xps_queue`).
pub fn accepted(setting: &Setting, online: &CpuSet) -> Option<Setting> {
    let mut out = setting.clone();
    match &mut out {
        Setting::IrqCpus { cpus, .. } | Setting::NapiThread { cpus, .. }
            if !cpus.is_empty() && !cpus.intersects(online) =>
        {
            return None;
        }
        Setting::XpsCpus { cpus, .. } | Setting::RpsCpus { cpus, .. } => *cpus = cpus.intersection(online),
        // Nothing is discovered about offline CPUs.
        Setting::CpuLatency { cpu, .. } if !online.contains(*cpu) => return None,
        _ => {}
    }
    Some(out)
}

/// The offline CPUs without which the host cannot reach this setting. Empty: the host has the setting or can reach it.
pub fn missing(setting: &Setting, s: &Snapshot) -> CpuSet {
    let online = &s.topology.online;
    if matches!(compare(setting, s), Match::Same | Match::Pending)
        || accepted(setting, online).as_ref() == Some(setting)
    {
        return CpuSet::new();
    }
    match setting {
        Setting::IrqCpus { cpus, .. }
        | Setting::NapiThread { cpus, .. }
        | Setting::XpsCpus { cpus, .. }
        | Setting::RpsCpus { cpus, .. } => cpus.difference(online),
        Setting::CpuLatency { cpu, .. } => CpuSet::one(*cpu),
        _ => CpuSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VectorName;
    use ringwise_model::CpuId;

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    #[test]
    fn values_that_the_kernel_accepts_while_cpus_are_offline() {
        let online = set("0-2");
        let dev = || "eth0".to_string();
        let irq = |c: &str| Setting::IrqCpus { dev: dev(), of: VectorName::Rx(0), cpus: set(c), on: None };
        let xps = |c: &str| Setting::XpsCpus { dev: dev(), queue: 0, cpus: set(c) };
        let rps = |c: &str| Setting::RpsCpus { dev: dev(), queue: 0, cpus: set(c) };
        let latency = |c: u32| Setting::CpuLatency { cpu: CpuId(c), value: "0".into() };
        assert_eq!(accepted(&irq("3"), &online), None);
        assert_eq!(accepted(&irq("2-3"), &online), Some(irq("2-3")), "the mask is kept whole");
        assert_eq!(accepted(&xps("2-3"), &online), Some(xps("2")));
        assert_eq!(accepted(&rps("3"), &online), Some(rps("")));
        assert_eq!(accepted(&rps(""), &online), Some(rps("")));
        assert_eq!((accepted(&latency(3), &online), accepted(&latency(2), &online)), (None, Some(latency(2))));
        assert_eq!(accepted(&Setting::RfsEntries { entries: 8 }, &online), Some(Setting::RfsEntries { entries: 8 }));
    }
}

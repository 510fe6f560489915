//! Settings that name CPUs which are offline: what the kernel takes of them now, and which CPUs the rest waits for.

use ringwise_model::{CpuSet, Snapshot};

use crate::{Match, Setting, compare};

/// The setting as the kernel takes it while only these CPUs are online. None: not at all.
///
/// An interrupt or thread must have one CPU that is online, and keeps the whole mask then (kernel/irq/proc.c,
/// `write_irq_affinity`). Of masks of RPS and XPS offline CPUs are dropped without a word (net/core/net-sysfs.c,
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
        // Of CPUs that are offline nothing is discovered.
        Setting::CpuLatency { cpu, .. } if !online.contains(*cpu) => return None,
        _ => {}
    }
    Some(out)
}

/// The offline CPUs without which the host cannot be brought to this setting. Empty: it is so, or can be.
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
    use crate::Of;
    use ringwise_model::CpuId;

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    #[test]
    fn what_the_kernel_takes_while_cpus_are_offline() {
        let online = set("0-2");
        let dev = || "eth0".to_string();
        let irq = |c: &str| Setting::IrqCpus { dev: dev(), of: Of::Rx(0), cpus: set(c), on: None };
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

//! The capabilities of this kernel and its devices. They are probed if possible, and otherwise derived from the kernel
//! version.

use ringwise_model::{CheckOnlyFacts, Dir, Fact, Nic, Snapshot};
use serde::Serialize;

/// Whether this kernel or device has a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CapabilityState {
    /// The capability exists.
    Yes,
    /// The capability is missing.
    No,
    /// It could not be read.
    Unknown,
}

/// A capability of kernel or devices that ringwise uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// The name in reports.
    pub feature: &'static str,
    /// The kernel version that introduced it.
    pub since: &'static str,
    /// How it was probed.
    pub probe: &'static str,
    /// The result of the probe.
    pub here: CapabilityState,
    /// Interfaces that have it, if it belongs to interfaces.
    pub devs: Vec<String>,
}

impl CapabilityState {
    /// `yes`, `no` or `unknown`, for tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }
}

/// How a capability is probed.
enum CapabilityProbe {
    /// A file or value of the host.
    Host(fn(&Snapshot, &CheckOnlyFacts) -> CapabilityState),
    /// Each interface with queues of its own.
    Device(fn(&Nic) -> CapabilityState),
    /// The kernel version, because the capability leaves no trace that can be read.
    Since(u32, u32),
}
use CapabilityProbe::{Device, Host, Since};

const VERSION: &str = "kernel version";

fn of<T>(f: &Fact<T>, yes: impl FnOnce(&T) -> bool) -> CapabilityState {
    match f {
        Fact::Known(v) if yes(v) => CapabilityState::Yes,
        Fact::Known(_) | Fact::Absent => CapabilityState::No,
        Fact::Unknown(_) => CapabilityState::Unknown,
    }
}

fn any(list: impl Iterator<Item = CapabilityState>) -> CapabilityState {
    list.fold(CapabilityState::No, |a, b| match (a, b) {
        (CapabilityState::Yes, _) | (_, CapabilityState::Yes) => CapabilityState::Yes,
        (CapabilityState::Unknown, _) | (_, CapabilityState::Unknown) => CapabilityState::Unknown,
        _ => CapabilityState::No,
    })
}

fn sysctl(s: &Snapshot, name: &str) -> CapabilityState {
    s.host.sysctls.get(name).map_or(CapabilityState::Unknown, |f| of(f, |_| true))
}

/// Compares kernel versions. Some distributions backport features to older kernels without changing the version; on
/// those an older version means "unknown", because "no" would be a guess.
fn since(s: &Snapshot, from: (u32, u32)) -> CapabilityState {
    let Some(text) = s.host.kernel.known() else { return CapabilityState::Unknown };
    let Some(now) = crate::rule_context::version(text) else { return CapabilityState::Unknown };
    let patched = [".el", "uek", "-default"].iter().any(|w| text.contains(w));
    match () {
        () if now >= from => CapabilityState::Yes,
        () if patched => CapabilityState::Unknown,
        () => CapabilityState::No,
    }
}

/// Whether a driver supports the transform shows only when it is set, so known drivers are listed.
fn symmetric(n: &Nic) -> CapabilityState {
    match n.rss.known().map(|r| &r.symmetric) {
        Some(Fact::Known(x)) if x != "none" => CapabilityState::Yes,
        Some(Fact::Known(_)) if n.driver.known().is_some_and(|d| crate::rules::SYMMETRIC.contains(&d.as_str())) => {
            CapabilityState::Yes
        }
        Some(Fact::Absent) => CapabilityState::No,
        _ => CapabilityState::Unknown,
    }
}

fn first_rx<T>(n: &Nic, f: impl Fn(&ringwise_model::RxQueue) -> &Fact<T>) -> CapabilityState {
    any(n.rx_queues.iter().take(1).map(|q| of(f(q), |_| true)))
}

fn first_tx<T>(n: &Nic, f: impl Fn(&ringwise_model::TxQueue) -> &Fact<T>) -> CapabilityState {
    any(n.tx_queues.iter().take(1).map(|q| of(f(q), |_| true)))
}

fn feature(
    n: &Nic,
    yes: impl Fn(&std::collections::BTreeMap<String, ringwise_model::Feature>) -> bool,
) -> CapabilityState {
    of(&n.features, |f| yes(f))
}

/// Feature, kernel version, description of the probe, probe. The oldest feature comes first.
const TABLE: &[(&str, &str, &str, CapabilityProbe)] = &[
    (
        "connection tracking",
        "2.4",
        "nf_conntrack_count",
        Host(|_, x| of(&x.file("/proc/sys/net/netfilter/nf_conntrack_count"), |_| true)),
    ),
    (
        "adaptive moderation (DIM)",
        "2.6",
        "use-adaptive-rx in COALESCE_GET; in a common library since 4.16",
        Device(|n| of(&n.coalesce, |c| c.0.contains_key("use-adaptive-rx"))),
    ),
    ("RPS, RFS", "2.6.35", "queues/rx-0/rps_cpus, rps_flow_cnt", Device(|n| first_rx(n, |q| &q.rps_cpus))),
    ("XPS", "2.6.38", "queues/tx-0/xps_cpus", Device(|n| first_tx(n, |q| &q.xps_cpus))),
    (
        "flow rules, accelerated RFS",
        "2.6.39",
        "rx-ntuple-filter can be changed",
        Device(|n| feature(n, |f| f.get("rx-ntuple-filter").is_some_and(|f| !f.fixed))),
    ),
    (
        "channel counts can be set",
        "3.0",
        "CHANNELS_GET",
        Device(|n| of(&n.channels, |c| [c.combined, c.rx, c.tx].into_iter().flatten().any(|c| c.max > 1))),
    ),
    ("RSS table", "3.0", "ETHTOOL_GRSSH", Device(|n| of(&n.rss, |r| !r.table.is_empty()))),
    (
        "uncached copy of sent data",
        "3.0",
        "feature tx-nocache-copy; on by default until 3.13",
        Device(|n| feature(n, |f| f.contains_key("tx-nocache-copy"))),
    ),
    (
        "wake-up latency limit per CPU",
        "3.2",
        "power/pm_qos_resume_latency_us",
        Host(|s, _| any(s.host.cpu_latency.values().take(1).map(|f| of(f, |_| true)))),
    ),
    ("byte queue limits", "3.3", "queues/tx-0/byte_queue_limits", Device(|n| first_tx(n, |q| &q.bql))),
    ("IPv4 without a route cache", "3.6", VERSION, Since(3, 6)),
    ("flow limit", "3.11", "net.core.flow_limit_cpu_bitmap", Host(|s, _| sysctl(s, "net.core.flow_limit_cpu_bitmap"))),
    ("busy polling", "3.11", "net.core.busy_read", Host(|s, _| sysctl(s, "net.core.busy_read"))),
    ("several packets per doorbell", "3.18", "kernel version (xmit_more)", Since(3, 18)),
    ("memory caches of NAPI", "3.19", VERSION, Since(3, 19)),
    ("fast IPv4 route tree", "4.0", "kernel version; tables local and main joined in 4.1", Since(4, 0)),
    (
        "rate limit per queue",
        "4.1",
        "queues/tx-0/tx_maxrate",
        Host(|s, x| {
            any(s
                .tunable()
                .map(|n| of(&x.file(&format!("/sys/class/net/{}/queues/tx-0/tx_maxrate", n.name())), |_| true)))
        }),
    ),
    ("moderation per queue", "4.6", "ETHTOOL_PERQUEUE", Device(|n| of(&n.queue_coalesce, |_| true))),
    (
        "time limit of softirq",
        "4.12",
        "net.core.netdev_budget_usecs",
        Host(|s, _| sysctl(s, "net.core.netdev_budget_usecs")),
    ),
    (
        "XDP to another CPU (cpumap)",
        "4.15",
        "kernel version, because probing would create a map; programs in it since 5.9",
        Since(4, 15),
    ),
    ("RSS contexts, rules to them", "4.17", "RSS_GET dump", Device(|n| of(&n.rss, |r| r.contexts.is_known()))),
    ("XPS by receive queue", "4.18", "queues/tx-0/xps_rxqs", Device(|n| first_tx(n, |q| &q.xps_rxqs))),
    ("isolcpus=managed_irq", "5.6", VERSION, Since(5, 6)),
    (
        "interrupt deferral",
        "5.8",
        "napi_defer_hard_irqs",
        Device(|n| of(&n.napi, |v| v.device.defer_hard_irqs.is_some())),
    ),
    ("RPS excludes isolated CPUs", "5.9", "kernel version; the kernel removes them from written masks", Since(5, 9)),
    ("preferred busy polling", "5.11", "kernel version (SO_PREFER_BUSY_POLL)", Since(5, 11)),
    (
        "threaded NAPI per device",
        "5.12",
        "/sys/class/net/DEV/threaded",
        Device(|n| of(&n.napi, |v| v.device.threaded.is_some())),
    ),
    ("IOMMU type shows lazy domains", "5.15", VERSION, Since(5, 15)),
    ("queues for half of the cores", "5.18", "kernel version; default of drivers that use it (bnxt)", Since(5, 18)),
    ("RSS over netlink: read", "6.2", "RSS_GET", Device(|n| of(&n.rss, |r| r.symmetric.is_known()))),
    (
        "RPS mask of new interfaces",
        "6.3",
        "net.core.rps_default_mask",
        Host(|s, _| of(&s.host.rps_default_mask, |_| true)),
    ),
    (
        "device's hash for XDP",
        "6.3",
        "dev-get: xdp-rx-metadata-features, since 6.7",
        Device(|n| of(&n.xdp_metadata, |m| m.hash)),
    ),
    (
        "queues linked to NAPI and IRQ",
        "6.8",
        "queue-get and napi-get of the netdev family",
        Device(|n| of(&n.napi, |v| !v.instances.is_empty())),
    ),
    ("fields grouped by cache line", "6.8", "kernel version (net_device, tcp_sock)", Since(6, 8)),
    (
        "symmetric hash",
        "6.8",
        "RSS_GET: input transform, or driver; otherwise unknown until set. symmetric-or-xor since 6.15",
        Device(symmetric),
    ),
    ("counters of queues (qstats)", "6.9", VERSION, Since(6, 9)),
    ("backlog in threads", "6.10", "kernel version (thread_backlog_napi)", Since(6, 10)),
    ("RSS contexts kept by the core", "6.11", VERSION, Since(6, 11)),
    (
        "moderation profiles",
        "6.12",
        "rx-profile in COALESCE_GET",
        Device(|n| of(&n.coalesce, |c| c.0.keys().any(|k| k.starts_with("rx-profile")))),
    ),
    (
        "settings per NAPI instance",
        "6.13",
        "napi-get: defer-hard-irqs",
        Device(|n| of(&n.napi, |v| v.instances.iter().any(|i| i.values.is_known()))),
    ),
    (
        "interrupt suspension",
        "6.13",
        "napi-get: irq-suspend-timeout",
        Device(|n| {
            of(&n.napi, |v| {
                v.instances.iter().any(|i| i.values.known().is_some_and(|v| v.irq_suspend_timeout_ns.is_some()))
            })
        }),
    ),
    (
        "affinity kept over down and up",
        "6.15",
        "kernel version; only drivers that use it (ice, idpf; iavf since 6.17)",
        Since(6, 15),
    ),
    ("RSS over netlink: set", "6.17", VERSION, Since(6, 17)),
    (
        "threaded NAPI per instance",
        "6.17",
        "napi-get: threaded",
        Device(|n| of(&n.napi, |v| v.instances.iter().any(|i| i.values.known().is_some_and(|v| v.threaded.is_some())))),
    ),
    ("skbs freed on their node", "6.18", VERSION, Since(6, 18)),
    ("busy-polling NAPI threads", "6.19", "kernel version (threaded=busy-poll)", Since(6, 19)),
    (
        "four table entries per queue",
        "advice",
        "RSS table, channels: four entries leave about 16 % unevenness",
        Device(|n| match n.queues_in_use(Dir::Rx) {
            Some(queues) => of(&n.rss, |r| r.table.len() >= 4 * queues as usize),
            None => CapabilityState::Unknown,
        }),
    ),
];

/// All capabilities, the oldest first.
pub fn table(s: &Snapshot, extra: &CheckOnlyFacts) -> Vec<Capability> {
    let nics: Vec<&Nic> = s.tunable().collect();
    let row = |(feature, since_when, probe, how): &(&'static str, &'static str, &'static str, CapabilityProbe)| {
        let (here, devs) = match how {
            Host(judge) => (judge(s, extra), Vec::new()),
            Since(a, b) => (since(s, (*a, *b)), Vec::new()),
            Device(judge) => {
                let each: Vec<(&Nic, CapabilityState)> = nics.iter().map(|n| (*n, judge(n))).collect();
                let devs = each
                    .iter()
                    .filter(|(_, h)| *h == CapabilityState::Yes)
                    .map(|(n, _)| n.name().to_string())
                    .collect();
                (if each.is_empty() { CapabilityState::Unknown } else { any(each.iter().map(|(_, h)| *h)) }, devs)
            }
        };
        Capability { feature, since: since_when, probe, here, devs }
    };
    TABLE.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use ringwise_model::XdpMetadata;
    use ringwise_testkit::machines::{NicSpec, host};
    use ringwise_testkit::topo::CpuSpec;

    use super::*;

    #[test]
    fn the_hash_for_xdp_is_that_of_the_driver() {
        let here = |metadata: &[Fact<XdpMetadata>]| {
            let nics = (0..metadata.len()).map(|i| NicSpec::new(&format!("eth{i}"), "igb", None, 2, 2));
            let mut s = host("xdp", CpuSpec::flat(2, 1), nics.collect()).snapshot();
            for (n, m) in s.nics.iter_mut().zip(metadata) {
                n.xdp_metadata = m.clone();
            }
            let rows = table(&s, &CheckOnlyFacts::default());
            let row = rows.into_iter().find(|r| r.feature == "device's hash for XDP").unwrap();
            (row.here, row.devs.len())
        };
        let with = |hash| Fact::Known(XdpMetadata { hash, timestamp: true, vlan_tag: false });
        assert_eq!(here(&[with(false), with(true)]), (CapabilityState::Yes, 1));
        assert_eq!(here(&[with(false)]), (CapabilityState::No, 0));
        assert_eq!(here(&[Fact::Absent]), (CapabilityState::No, 0));
        // A recording of an earlier version, or a kernel before 6.7.
        assert_eq!(here(&[with(false), ringwise_model::not_requested()]), (CapabilityState::Unknown, 0));
    }

    #[test]
    fn sorted_by_version_and_short() {
        let age = |s: &str| s.split('.').map(|p| p.parse().unwrap_or(99)).collect::<Vec<u32>>();
        assert!(TABLE.windows(2).all(|w| age(w[0].1) <= age(w[1].1)), "not sorted by version");
        assert!(TABLE.iter().all(|r| r.0.chars().count() <= 30 && !r.2.is_empty()));
    }
}

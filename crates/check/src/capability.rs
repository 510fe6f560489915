//! What kernel and devices here can do: probed, never taken from the version alone.

use ringwise_model::{Extra, Fact, Nic, Snapshot};
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Here {
    Yes,
    No,
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capability {
    pub feature: &'static str,
    /// Kernel version.
    pub since: &'static str,
    /// How it was probed.
    pub probe: &'static str,
    pub here: Here,
    /// Interfaces that have it, where it is theirs.
    pub devs: Vec<String>,
}

impl Here {
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }
}

type Probe = fn(&Nic) -> Here;

fn of<T>(f: &Fact<T>, yes: impl FnOnce(&T) -> bool) -> Here {
    match f {
        Fact::Known(v) if yes(v) => Here::Yes,
        Fact::Known(_) | Fact::Absent => Here::No,
        Fact::Unknown(_) => Here::Unknown,
    }
}

fn any(list: impl Iterator<Item = Here>) -> Here {
    list.fold(Here::No, |a, b| match (a, b) {
        (Here::Yes, _) | (_, Here::Yes) => Here::Yes,
        (Here::Unknown, _) | (_, Here::Unknown) => Here::Unknown,
        _ => Here::No,
    })
}

/// Of devices: feature, since, probe in words, probe.
const DEVICE: &[(&str, &str, &str, Probe)] = &[
    ("RPS, RFS", "2.6.35", "queues/rx-0/rps_cpus, rps_flow_cnt", |n| {
        any(n.rx_queues.iter().take(1).map(|q| of(&q.rps_cpus, |_| true)))
    }),
    ("XPS", "2.6.38", "queues/tx-0/xps_cpus", |n| any(n.tx_queues.iter().take(1).map(|q| of(&q.xps_cpus, |_| true)))),
    ("flow rules, accelerated RFS", "2.6.39", "feature rx-ntuple-filter can be switched", |n| {
        of(&n.features, |f| f.get("rx-ntuple-filter").is_some_and(|f| !f.fixed))
    }),
    ("byte queue limits", "3.3", "queues/tx-0/byte_queue_limits", |n| {
        any(n.tx_queues.iter().take(1).map(|q| of(&q.bql, |_| true)))
    }),
    ("channel counts can be set", "3.0", "CHANNELS_GET", |n| {
        of(&n.channels, |c| [c.combined, c.rx, c.tx].into_iter().flatten().any(|c| c.max > 1))
    }),
    ("RSS table", "3.0", "ETHTOOL_GRSSH", |n| of(&n.rss, |r| !r.table.is_empty())),
    ("moderation of each queue", "4.6", "ETHTOOL_PERQUEUE", |n| of(&n.queue_coalesce, |_| true)),
    ("adaptive moderation", "2.6", "use-adaptive-rx in COALESCE_GET", |n| {
        of(&n.coalesce, |c| c.0.contains_key("use-adaptive-rx"))
    }),
    ("XPS by receive queue", "4.18", "queues/tx-0/xps_rxqs", |n| {
        any(n.tx_queues.iter().take(1).map(|q| of(&q.xps_rxqs, |_| true)))
    }),
    ("interrupt deferral", "5.8", "napi_defer_hard_irqs", |n| of(&n.napi, |v| v.device.defer_hard_irqs.is_some())),
    ("threaded NAPI of a device", "5.12", "/sys/class/net/DEV/threaded", |n| {
        of(&n.napi, |v| v.device.threaded.is_some())
    }),
    ("queues linked to NAPI and interrupts", "6.8", "queue-get and napi-get of the netdev family", |n| {
        of(&n.napi, |v| !v.instances.is_empty())
    }),
    ("symmetric hash", "6.8", "RSS_GET: input transform", |n| of(&n.rss, |r| r.symmetric.is_known())),
    ("RSS contexts", "4.17", "RSS_GET dump", |n| of(&n.rss, |r| r.contexts.is_known())),
    ("settings of each NAPI instance", "6.13", "napi-get: defer-hard-irqs", |n| {
        of(&n.napi, |v| v.instances.iter().any(|i| i.values.is_known()))
    }),
    ("interrupt suspension", "6.13", "napi-get: irq-suspend-timeout", |n| {
        of(&n.napi, |v| {
            v.instances.iter().any(|i| i.values.known().is_some_and(|v| v.irq_suspend_timeout_ns.is_some()))
        })
    }),
    ("threaded NAPI of an instance", "6.17", "napi-get: threaded", |n| {
        of(&n.napi, |v| v.instances.iter().any(|i| i.values.known().is_some_and(|v| v.threaded.is_some())))
    }),
];

/// In the order of their age, those of the host first.
pub fn table(s: &Snapshot, extra: &Extra) -> Vec<Capability> {
    let mut out = Vec::new();
    let sysctl = |name: &str| s.host.sysctls.get(name).map_or(Here::Unknown, |f| of(f, |_| true));
    let host = [
        ("flow limit", "3.11", "net.core.flow_limit_cpu_bitmap", sysctl("net.core.flow_limit_cpu_bitmap")),
        ("busy polling", "3.11", "net.core.busy_read", sysctl("net.core.busy_read")),
        ("time limit of softirq", "4.12", "net.core.netdev_budget_usecs", sysctl("net.core.netdev_budget_usecs")),
        ("RPS mask of new queues", "6.3", "net.core.rps_default_mask", of(&s.host.rps_default_mask, |_| true)),
        (
            "wake-up limit by CPU",
            "3.x",
            "power/pm_qos_resume_latency_us",
            any(s.host.cpu_latency.values().take(1).map(|f| of(f, |_| true))),
        ),
        (
            "connection tracking",
            "2.4",
            "nf_conntrack_count",
            of(&extra.file("/proc/sys/net/netfilter/nf_conntrack_count"), |_| true),
        ),
    ];
    for (feature, since, probe, here) in host {
        out.push(Capability { feature, since, probe, here, devs: Vec::new() });
    }
    let nics: Vec<&Nic> = s.tunable().collect();
    for (feature, since, probe, judge) in DEVICE {
        let each: Vec<(&Nic, Here)> = nics.iter().map(|n| (*n, judge(n))).collect();
        let devs = each.iter().filter(|(_, h)| *h == Here::Yes).map(|(n, _)| n.name().to_string()).collect();
        let here = if each.is_empty() { Here::Unknown } else { any(each.iter().map(|(_, h)| *h)) };
        out.push(Capability { feature, since, probe, here, devs });
    }
    out
}

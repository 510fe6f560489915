//! Rules about interrupt moderation, rings, offloads and pause frames.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{Coalesce, Goal, Knob, Nic, User, Wish};

use crate::finding_sink::FindingSink;
use crate::fix::PlanArguments;
use crate::found::ModerationFound;
use crate::needs::RequiredFact;
use crate::planned;
use crate::rule::Rule;
use crate::rule_context::RuleContext;
use crate::severity::{Confidence, Severity};

const NAPI: &str = "kernel documentation, networking/napi";
const ARTICLE: &str = "Improve network performance by setting per-queue interrupt moderation in Linux (Intel)";
const LIMITS: &str = "Pushing the Limits of Kernel Networking (Duyck, 2015)";
const XDP: &str = "The eXpress Data Path (CoNEXT 2018), public measurements";

fn params<'a>(n: &'a Nic, say: &mut FindingSink) -> Option<&'a BTreeMap<String, u32>> {
    say.get(&n.coalesce).map(|c| &c.0)
}

/// Whether the user configured moderation for single queues.
fn grouped(cx: &RuleContext, n: &Nic) -> bool {
    let single = |w: &&Wish| matches!(&w.knob, Knob::Coalesce { queues: Some(_), .. });
    cx.wishes.of(n.name()).iter().any(single) || cx.goal_of(n) == Goal::Mixed || cx.grouped.contains(n.name())
}

fn feature_off<'a>(n: &'a Nic, names: &[&'a str], say: &mut FindingSink) -> Option<Vec<&'a str>> {
    let all = say.get(&n.features)?;
    let off = |name: &&str| all.get(*name).is_some_and(|f| !f.on && !f.wanted && !f.fixed);
    Some(names.iter().copied().filter(off).collect())
}

fn set_features(n: &Nic, names: &[&str], on: bool) -> PlanArguments {
    PlanArguments::all(names.iter().map(|name| PlanArguments::feature(n.name(), name, on)))
}

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "M01",
        title: "interrupt moderation does not suit the goal",
        reads: "coalesce",
        needs: &[RequiredFact::Moderation],
        guard: "the goal has a moderation policy (rpc, stream, latency)",
        condition: "the plan has other values",
        confirm: "ethtool -c DEV",
        ours: Some("--goal GOAL"),
        also: &["R1.05", "R1.06"],
        judge: |cx, say| planned::judge("M01", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "M02",
        title: "configured interval is overridden",
        reads: "coalesce, configured settings",
        guard: "a fixed interval is configured, but adaptive moderation is not",
        condition: "adaptive moderation is on",
        confirm: "ethtool -c DEV (Adaptive RX, rx-usecs)",
        severity: Severity::Info,
        why: "With adaptive moderation, the driver chooses the interval and ignores the configured one.",
        source: "kernel documentation, networking/net_dim",
        ours: Some("--set DEV.coalesce.use-adaptive-rx=false"),
        under: &["R4.02"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let configured = |key: &str| {
                    let has = |w: &&Wish| matches!(&w.knob, Knob::Coalesce { params, .. } if params.contains_key(key));
                    cx.wishes.of(n.name()).iter().any(has)
                };
                if !configured("rx-usecs") || configured("use-adaptive-rx") {
                    return None;
                }
                if params(n, say)?.get("use-adaptive-rx").is_some_and(|v| *v != 0) {
                    say.found(ModerationFound::AdaptiveOverwrites)
                        .fix(cx, PlanArguments::set(n.name(), "coalesce.use-adaptive-rx", false));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M03",
        title: "queues have different moderation",
        reads: "coalesce of each queue",
        guard: "moderation is not configured for single queues on purpose (groups, configuration)",
        condition: "the queues have different intervals",
        confirm: "ethtool --per-queue DEV --show-coalesce",
        severity: Severity::Info,
        why: "The values are left over from groups or an experiment. Flows wait longer on some queues than on others, depending on their hash.",
        source: ARTICLE,
        by_hand: &["ethtool -Q DEV queue_mask MASK --coalesce rx-usecs N, or ethtool -C DEV for all"],
        under: &["M01", "R4.04"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                if grouped(cx, n) {
                    return None;
                }
                let all = say.get(&n.queue_coalesce)?;
                let used = cx.rx_queues(n);
                let by = |key: &str| {
                    let mut v: Vec<u32> = all
                        .iter()
                        .filter(|(q, _)| **q < used)
                        .filter_map(|(_, c): (_, &Coalesce)| c.0.get(key).copied())
                        .collect();
                    v.sort();
                    v.dedup();
                    v
                };
                // With adaptive moderation these are the values that the driver has chosen for each queue.
                if n.coalesce.known().is_some_and(|c| c.0.get("use-adaptive-rx").is_some_and(|v| *v != 0)) {
                    return None;
                }
                let rx = by("rx-usecs");
                if rx.len() > 1 {
                    say.found(ModerationFound::QueuesDiffer { rx_usecs: rx });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M04",
        title: "an interrupt for every frame",
        reads: "coalesce",
        guard: "the goal is not latency",
        condition: "rx-max-frames is 1 while an interval is set",
        confirm: "ethtool -c DEV (rx-frames, rx-usecs)",
        severity: Severity::Info,
        why: "One frame triggers an interrupt, so the interval has no effect.",
        source: "ethtool(8)",
        ours: Some("--set DEV.coalesce.rx-max-frames=0"),
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let c = params(n, say)?;
                let frames = *c.get("rx-max-frames")?;
                if cx.goal_of(n) == Goal::Latency {
                    return None;
                }
                if frames == 1 && c.get("rx-usecs").is_some_and(|u| *u > 0) {
                    say.found(ModerationFound::InterruptAFrame { rx_usecs: c["rx-usecs"] })
                        .fix(cx, PlanArguments::set(n.name(), "coalesce.rx-max-frames", 0));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M05",
        title: "interrupt deferral is half configured",
        reads: "napi_defer_hard_irqs, gro_flush_timeout of the device",
        guard: "the kernel has both settings, and they are known",
        condition: "one of the two is 0 and the other is not",
        confirm: "cat /sys/class/net/DEV/napi_defer_hard_irqs /sys/class/net/DEV/gro_flush_timeout",
        why: "Deferral needs both values: how many polls may find no packets, and the time until the next poll.",
        source: NAPI,
        ours: Some("--set DEV.napi.defer_hard_irqs=0 --set DEV.napi.gro_flush_timeout_ns=0"),
        by_hand: &[
            "or set both: echo 100 > /sys/class/net/DEV/napi_defer_hard_irqs; echo 20000 > /sys/class/net/DEV/gro_flush_timeout",
        ],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let v = say.get(&n.napi)?.device;
                let (defer, flush) = (v.defer_hard_irqs?, v.gro_flush_timeout_ns?);
                if defer > 0 && flush == 0 {
                    say.found(ModerationFound::DeferralWithoutTime { defer_hard_irqs: defer })
                        .fix(cx, PlanArguments::set(n.name(), "napi.defer_hard_irqs", 0));
                }
                // Without deferral the time only delays the flush of GRO, which some users set on purpose.
                if defer == 0 && flush > 0 {
                    say.found(ModerationFound::TimeWithoutDeferral { gro_flush_timeout_ns: flush })
                        .severity(Severity::Info)
                        .fix(cx, PlanArguments::set(n.name(), "napi.gro_flush_timeout_ns", 0));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M06",
        title: "interrupt suspension without deferral",
        reads: "irq-suspend-timeout, defer-hard-irqs, gro-flush-timeout of each NAPI instance",
        guard: "the kernel has irq-suspend-timeout",
        condition: "irq-suspend-timeout is set, and one of the other two is 0",
        confirm: "the netdev netlink family: napi-get (ynl --family netdev --dump napi-get)",
        why: "Suspension ends in deferral. Without deferral, interrupts return at once, as if suspension were not configured.",
        source: "Suspend IRQs during application busy periods (cover letter, merged in 6.13)",
        by_hand: &["also set defer-hard-irqs 100 and gro-flush-timeout 20000 (ns) with napi-set"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let napi = say.get(&n.napi)?;
                let alone: Vec<u32> = napi
                    .instances
                    .iter()
                    .filter(|i| {
                        i.values.known().is_some_and(|v| {
                            v.irq_suspend_timeout_ns.is_some_and(|t| t > 0)
                                && (v.defer_hard_irqs == Some(0) || v.gro_flush_timeout_ns == Some(0))
                        })
                    })
                    .flat_map(|i| i.rx.clone())
                    .collect();
                napi.instances.iter().find(|i| i.values.is_known())?;
                if !alone.is_empty() {
                    say.found(ModerationFound::SuspensionWithoutDeferral { queues: alone });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M08",
        title: "receive ring too small for the bursts",
        reads: "rings, rx_missed_errors, /proc/stat",
        guard: "the ring can be longer",
        condition: "packets are lost in the NIC while no CPU is above 80 %",
        confirm: "ethtool -g DEV; ip -s -s link show DEV (missed); mpstat -P ALL 1",
        why: "The CPUs keep up on average, so bursts overflow the ring.",
        source: "kernel documentation, networking/statistics",
        rates: true,
        ours: Some("--set DEV.rings.rx=N --allow-disruption"),
        by_hand: &[
            "use the smallest length that does not overflow: the buffers of a long ring do not fit into the cache",
        ],
        judge: |cx, say| {
            cx.each_rate(say, |n, l, t, say| {
                let missed = l.counts.get("rx_missed_errors")?;
                let ring = say.get(&n.rings)?.rx?;
                let busy = t.busiest().is_some_and(|(_, top, _)| top > 80.0);
                if *missed > 0 && ring.now < ring.max && !busy {
                    let want = (ring.now * 2).min(ring.max);
                    let (lost_per_second, ring, most) = (t.per_second(*missed), ring.now, ring.max);
                    say.found(ModerationFound::RingTooSmall { lost_per_second, ring, most })
                        .fix(cx, PlanArguments::set(n.name(), "rings.rx", want).disruptive());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M09",
        title: "receive rings larger than the cache",
        reads: "rings, channels, MTU, size of an L3 cache",
        guard: "the goal is forward or latency, and the NIC loses no packets",
        condition: "the buffers of the rings that share a cache are larger than the cache",
        confirm: "ethtool -g DEV; lscpu -C (size of the L3 cache)",
        severity: Severity::Info,
        why: "A buffer leaves the cache before it is used again, so each packet is fetched from memory.",
        source: XDP,
        rates: true,
        confidence: Confidence::Likely,
        ours: Some("--set DEV.rings.rx=N --allow-disruption"),
        also: &["R1.20"],
        more: "Measured by others with XDP routing on six cores, in million packets per second: 30.4 with rings of 256 descriptors, 25.9 with 512, 22.9 with 1024.",
        judge: |cx, say| {
            let cpu = cx.s.topology.online.first()?;
            let size = say.take(cx.i.extra.file(&format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3/size")))?;
            let l3 = size.strip_suffix('K').and_then(|n| n.parse::<u64>().ok())? << 10;
            cx.each_rate(say, |n, l, _, say| {
                if !matches!(cx.goal_of(n), Goal::Forward | Goal::Latency) || l.count("rx_missed_errors") > 0 {
                    return None;
                }
                let ring = say.get(&n.rings)?.rx?.now;
                let mtu = *say.get(&n.link.mtu)?;
                // Two buffers of up to half a page each; jumbo frames use whole pages.
                let buffer = if mtu <= 1500 { 2048 } else { u64::from(mtu).next_multiple_of(4096) };
                let domains = cx.near(n).iter().map(|c| cx.s.topology.l3_of(c)).collect::<BTreeSet<_>>().len().max(1);
                let queues = (cx.rx_queues(n) as u64).div_ceil(domains as u64);
                let need = queues * u64::from(ring) * buffer;
                if need > l3 && ring > 256 {
                    let room = u32::try_from(l3 / (queues * buffer)).unwrap_or(u32::MAX).max(256);
                    let fits = (1 << room.ilog2()).min(ring / 2).max(256);
                    say.found(ModerationFound::RingsLargerThanCache {
                        queues,
                        ring,
                        buffers_bytes: need,
                        cache_bytes: l3,
                    })
                    .fix(cx, PlanArguments::set(n.name(), "rings.rx", fits).disruptive());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M10",
        title: "GRO is off",
        reads: "feature rx-gro",
        guard: "no XDP program is attached",
        condition: "the feature is off",
        confirm: "ethtool -k DEV | grep generic-receive-offload",
        severity: Severity::Info,
        ours: Some("--set DEV.features.gro=true"),
        by_hand: &["GRO may be off on purpose, to see every packet or for the highest packet rate"],
        judge: |cx, say| {
            planned::judge("M10", cx, say);
            cx.each(say, |n, say| {
                let generic = |u: &User| matches!(u, User::Xdp { .. });
                if n.users.known().is_some_and(|u| u.iter().any(generic)) {
                    return None;
                }
                let off = feature_off(n, &["rx-gro"], say)?;
                if !off.is_empty() && !say.has_finding() {
                    say.found(ModerationFound::GroOff)
                        .severity(if cx.forwards() { Severity::Info } else { Severity::Warning })
                        .fix(cx, set_features(n, &["gro"], true));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M11",
        title: "LRO on a host that forwards",
        reads: "features rx-lro, rx-gro-hw; ip_forward, bridge ports",
        guard: "the host forwards or the goal is forward",
        condition: "LRO is on",
        confirm: "ethtool -k DEV | grep large-receive-offload",
        severity: Severity::Error,
        other_severity: "info if the host does not forward, and the goal is forward",
        ours: Some("--set DEV.features.lro=false --allow-disruption"),
        judge: |cx, say| {
            cx.each(say, |n, say| {
                if !cx.forwards_or_requested(n) {
                    return None;
                }
                let f = say.get(&n.features)?.get("rx-lro")?;
                if f.on && !f.fixed {
                    // Nothing is dropped before the host forwards.
                    say.found(ModerationFound::LroOn)
                        .severity(if cx.forwards() { Severity::Error } else { Severity::Info })
                        .fix(cx, PlanArguments::feature(n.name(), "lro", false).disruptive());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M14",
        title: "offloads are off",
        reads: "features for segmentation, checksums and scatter-gather",
        guard: "the features of the interface are known",
        condition: "an offload that the device supports was turned off",
        confirm: "ethtool -k DEV",
        severity: Severity::Info,
        ours: Some("--set DEV.features.NAME=true"),
        judge: |cx, say| {
            planned::judge("M14", cx, say);
            cx.each(say, |n, say| {
                let names = [
                    "tx-tcp-segmentation",
                    "tx-tcp6-segmentation",
                    "tx-generic-segmentation",
                    "rx-checksum",
                    "tx-checksum-ip-generic",
                    "tx-checksum-ipv4",
                    "tx-scatter-gather",
                ];
                let off = feature_off(n, &names, say)?;
                if !off.is_empty() && !say.has_finding() {
                    say.found(ModerationFound::OffloadsOff { features: off.iter().map(|n| n.to_string()).collect() })
                        .fix(cx, set_features(n, &off, true).disruptive());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M21",
        title: "sent data bypasses the cache",
        reads: "feature tx-nocache-copy",
        guard: "the device has this feature",
        condition: "the feature is on",
        confirm: "ethtool -k DEV | grep tx-nocache-copy",
        why: "The kernel copies sent data past the cache, so the device fetches it from memory instead of from the cache. This was the default from kernel 3.0 to 3.13.",
        source: LIMITS,
        ours: Some("--set DEV.features.tx-nocache-copy=false"),
        also: &["R1.15"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let f = cx.feature(n, "tx-nocache-copy", say)?;
                if f.on {
                    say.found(ModerationFound::NoCacheCopy)
                        .fix(cx, PlanArguments::feature(n.name(), "tx-nocache-copy", false));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M22",
        title: "headers and data are split",
        reads: "tcp-data-split of the rings",
        guard: "the driver reports whether it splits headers and data",
        condition: "the split is on",
        confirm: "ethtool -g DEV (TCP data split)",
        severity: Severity::Info,
        why: "Every packet takes two buffers. Only programs and devices that receive data without a copy need this.",
        source: "kernel documentation, networking/ethtool-netlink: rings",
        by_hand: &["ethtool -G DEV tcp-data-split off, unless a program receives data without a copy"],
        confidence: Confidence::Likely,
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let split = *say.get(cx.i.extra.devs.get(n.name())?.tcp_data_split.as_ref()?)?;
                if split {
                    say.found(ModerationFound::DataSplit);
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "R1.07",
        title: "pause frames are on",
        reads: "pause",
        guard: "the host forwards or the goal is forward, and the device has no RDMA user",
        condition: "receiving or sending pause frames is on",
        confirm: "ethtool -a DEV",
        severity: Severity::Info,
        more: "Costs (Duyck, 2015): packets wait in more buffers, so latency grows; one slow CPU stops the whole link, and fast queues lose packets while they wait for it. Without pause frames, some devices drop packets per queue, only where the queue is slow.",
        ours: Some("--goal forward --allow-disruption"),
        under: &["D16"],
        judge: |cx, say| {
            planned::judge("R1.07", cx, say);
            let judged = cx.each(say, |n, say| {
                if !cx.forwards_or_requested(n) {
                    return None;
                }
                if n.users.known().is_some_and(|u| u.iter().any(|u| matches!(u, User::Rdma { .. }))) {
                    return None;
                }
                if cx.wishes.of(n.name()).iter().any(|w| matches!(w.knob, Knob::Pause { .. })) {
                    return None;
                }
                let p = say.get(&n.pause)?;
                let on = |b: Option<bool>| b == Some(true);
                if (on(p.rx) || on(p.tx)) && !say.has_finding() {
                    say.found(ModerationFound::PauseFramesOn { rx: on(p.rx), tx: on(p.tx) })
                        .fix(cx, PlanArguments::goal(Goal::Forward).disruptive());
                }
                Some(())
            });
            judged.or((!say.findings.is_empty()).then_some(()))
        },
        ..Rule::BASE
    },
    Rule {
        id: "R4.02",
        title: "adaptive moderation overrides fixed values",
        reads: "coalesce",
        needs: &[RequiredFact::Moderation],
        guard: "groups of queues are configured",
        condition: "the plan turns adaptive moderation off",
        confirm: "ethtool -c DEV (Adaptive RX)",
        ours: Some(""),
        judge: |cx, say| planned::judge("R4.02", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "R4.04",
        title: "moderation of a queue group differs from its policy",
        reads: "coalesce of queues, NAPI",
        guard: "groups of queues are configured",
        condition: "the plan has other values",
        confirm: "ethtool --per-queue DEV --show-coalesce",
        ours: Some(""),
        judge: |cx, say| planned::judge("R4.04", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "R4.05",
        title: "RSS table does not suit the queue groups",
        reads: "RSS table and contexts",
        needs: &[RequiredFact::RssTable],
        guard: "groups of queues are configured",
        condition: "the plan has another table",
        confirm: "ethtool -x DEV",
        ours: Some(""),
        judge: |cx, say| planned::judge("R4.05", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "R4.06",
        title: "flow rules do not suit the queue groups",
        reads: "flow rules",
        needs: &[RequiredFact::FlowRules],
        guard: "groups of queues are configured",
        condition: "the plan adds or removes rules",
        confirm: "ethtool -n DEV",
        ours: Some(""),
        judge: |cx, say| planned::judge("R4.06", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "W01",
        title: "setting differs from the configuration",
        reads: "the configuration file and the settings that it names",
        guard: "a configuration file, or settings on the command line",
        condition: "a setting has another value than configured",
        confirm: "ringwise plan shows the present and the configured value",
        ours: Some(""),
        judge: |cx, say| planned::judge("W01", cx, say),
        ..Rule::BASE
    },
];

//! Rules about the software path: queueing disciplines, backlogs, byte queue limits, busy polling.

use std::collections::BTreeMap;

use ringwise_model::{CpuCounter, Goal, RateUnit, Shapers};

use crate::fix::PlanArguments;
use crate::found::SoftFound;
use crate::rule::Rule;
use crate::severity::{Confidence, Severity};

const SYSCTL: &str = "kernel documentation, admin-guide/sysctl/net";

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "M07",
        title: "busy polling is on for all sockets",
        reads: "net.core.busy_read, net.core.busy_poll",
        guard: "the goal is not latency",
        condition: "one of them is not 0",
        confirm: "sysctl net.core.busy_read net.core.busy_poll",
        why: "Each read or poll of a socket that has no data keeps a CPU busy for up to this many microseconds. A program can request busy polling for single sockets instead (SO_BUSY_POLL; since 5.11 also SO_PREFER_BUSY_POLL).",
        source: SYSCTL,
        ours: Some("--set 'host.sysctl.\"net.core.busy_read\"=0' --set 'host.sysctl.\"net.core.busy_poll\"=0'"),
        judge: |cx, say| {
            if cx.goal() == Goal::Latency {
                return None;
            }
            let (mut values, mut sets) = (Vec::new(), Vec::new());
            for name in ["net.core.busy_read", "net.core.busy_poll"] {
                let v = say.take(cx.sysctl(name))?;
                if v != "0" {
                    values.push((name.to_string(), v));
                    sets.push(PlanArguments::sysctl(name, 0));
                }
            }
            if !values.is_empty() {
                say.found(SoftFound::BusyPolling { values }).fix(cx, PlanArguments::all(sets));
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "M15",
        title: "long unmanaged transmit queue",
        reads: "tx_queue_len, queueing disciplines",
        guard: "txqueuelen and the queueing discipline of the interface are known",
        condition: "txqueuelen is above 10,000 packets, with pfifo or pfifo_fast",
        confirm: "ip link show DEV (qlen); tc qdisc show dev DEV",
        severity: Severity::Info,
        why: "Packets wait in a queue without a limit on their waiting time. Byte queue limits, fq and fq_codel have made long queues unnecessary.",
        source: "tc-fq_codel(8)",
        by_hand: &[
            "ip link set DEV txqueuelen 1000; tc qdisc replace dev DEV root mq, with fq as the discipline of each queue",
        ],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let len = say.take(cx.i.extra.number(&format!("/sys/class/net/{}/tx_queue_len", n.name())))?;
                let q = cx.qdisc(n, say)?;
                let fifo = |k: &str| k.starts_with("pfifo");
                if len > 10_000 && (fifo(&q.root) || q.leaves.keys().any(|k| fifo(k))) {
                    let discipline = q.leaves.keys().next().unwrap_or(&q.root).clone();
                    say.found(SoftFound::LongQueue { packets: len, discipline });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M16",
        title: "one queueing discipline for all queues",
        reads: "root queueing discipline, transmit queues",
        guard: "more than one transmit queue",
        condition: "the root is one discipline for all transmit queues",
        confirm: "tc qdisc show dev DEV",
        why: "Every packet takes the one lock of that discipline, whatever transmit queue it uses.",
        source: "kernel documentation, networking/multiqueue",
        by_hand: &["tc qdisc replace dev DEV root mq"],
        also: &["R1.14"],
        more: "mq gives each transmit queue its own discipline. Since 3.18, packets go to the device in bulk with one doorbell (xmit_more), through the bulk dequeue of the discipline and byte queue limits: fewer writes to the device, less locking per packet, fewer interrupts. With it pktgen sends 60-byte frames at the full rate of 10 Gbit/s (Duyck, 2015).",
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let tx = say.take(cx.tx_queues(n)).filter(|tx| *tx > 1)?;
                let q = cx.qdisc(n, say)?;
                let single = ["pfifo_fast", "pfifo", "bfifo", "fq", "fq_codel", "sfq", "codel", "fq_pie", "pie"];
                if single.contains(&q.root.as_str()) {
                    say.found(SoftFound::OneDiscipline { discipline: q.root.clone(), queues: tx });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M17",
        title: "shaper on a fast link",
        reads: "root queueing discipline, speed",
        guard: "more than one transmit queue, and 10 Gbit/s or more",
        condition: "the root is htb, hfsc, tbf, cake, prio, drr or cbq",
        confirm: "tc qdisc show dev DEV; ethtool DEV (Speed)",
        why: "Such a tree has one lock for all queues: the whole link sends no more than one CPU can schedule.",
        source: "tc-htb(8)",
        by_hand: &["split the tree over the queues, or use departure times instead of a shaper (fq with EDT)"],
        confidence: Confidence::Likely,
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let speed = *n.link.speed_mbps.known()?;
                if speed < 10_000 {
                    return None;
                }
                let tx = say.take(cx.tx_queues(n)).filter(|tx| *tx > 1)?;
                let q = cx.qdisc(n, say)?;
                if ["htb", "hfsc", "tbf", "cake", "prio", "drr", "cbq"].contains(&q.root.as_str()) {
                    say.found(SoftFound::Shaper { discipline: q.root.clone(), queues: tx, mbps: speed });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M18",
        title: "byte queue limits are too low",
        reads: "byte_queue_limits",
        guard: "the driver has byte queue limits",
        condition: "limit_max is below two frames of the MTU",
        confirm: "cat /sys/class/net/DEV/queues/tx-*/byte_queue_limits/limit_max",
        why: "The limit grows automatically up to limit_max. Below a few frames, the queue runs empty between completions.",
        source: "kernel documentation, ABI sysfs-class-net-queues",
        by_hand: &["echo 1879048192 > /sys/class/net/DEV/queues/tx-N/byte_queue_limits/limit_max"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let mtu = u64::from(*n.link.mtu.known().unwrap_or(&1500));
                let mut any = false;
                let mut low = Vec::new();
                for q in cx.tx_queues_used(n) {
                    let Some(b) = say.get(&q.bql) else { continue };
                    any = true;
                    if b.limit_max_bytes < 2 * mtu {
                        low.push(q.id);
                    }
                }
                if !any {
                    return None;
                }
                if !low.is_empty() {
                    say.found(SoftFound::ByteLimitsLow { queues: low });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "M19",
        title: "short backlog for RPS",
        reads: "netdev_max_backlog, rps_cpus, softnet_stat",
        guard: "RPS is set",
        condition: "a CPU gets more than 100,000 packets per second by RPS, and the backlog holds at most 1,000 packets",
        confirm: "sysctl net.core.netdev_max_backlog; columns 1 and 10 of /proc/net/softnet_stat (hexadecimal)",
        severity: Severity::Info,
        why: "At 100,000 packets per second, 1,000 packets arrive within ten milliseconds; the kernel drops packets that do not fit into the backlog.",
        source: SYSCTL,
        rates: true,
        ours: Some("--set 'host.sysctl.\"net.core.netdev_max_backlog\"=4000'"),
        under: &["D01"],
        judge: |cx, say| {
            let t = cx.traffic(say)?;
            let limit = say.take(cx.sysctl("net.core.netdev_max_backlog"))?.parse::<u64>().ok()?;
            // `received_rps` counts wake-ups of this CPU by RPS, not packets. The CPU counts the packets when it
            // processes them.
            let busy = t.cpus.iter().find(|(_, c)| {
                c.counts.get(CpuCounter::SoftnetRps).is_some_and(|n| n > 0)
                    && c.counts.get(CpuCounter::SoftnetProcessed).is_some_and(|n| t.per_second(n) > 100_000.0)
            });
            if let (Some((cpu, _)), true) = (busy, limit <= 1000) {
                say.found(SoftFound::ShortBacklog { cpu: *cpu, places: limit })
                    .fix(cx, PlanArguments::sysctl("net.core.netdev_max_backlog", 4000));
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "M20",
        title: "time stamps before RPS",
        reads: "netdev_tstamp_prequeue, rps_cpus",
        guard: "RPS is set",
        condition: "packet sockets are open, which may request time stamps, and stamps are taken before RPS",
        confirm: "sysctl net.core.netdev_tstamp_prequeue; ss -0p",
        confidence: Confidence::Likely,
        severity: Severity::Info,
        why: "As soon as one socket requests time stamps, the CPU that handles the interrupts reads the clock for every packet, including packets that it sends to other CPUs.",
        source: SYSCTL,
        by_hand: &["sysctl net.core.netdev_tstamp_prequeue=0; the stamps become less exact"],
        under: &["Q05"],
        judge: |cx, say| {
            let rps =
                cx.nics.iter().any(|n| n.rx_queues.iter().any(|q| q.rps_cpus.known().is_some_and(|c| !c.is_empty())));
            if !rps {
                return None;
            }
            let on = say.take(cx.i.extra.number("/proc/sys/net/core/netdev_tstamp_prequeue"))?;
            let sockets = say.get(cx.i.extra.packet_sockets.as_ref()?)?;
            if on == 1 && !sockets.is_empty() {
                say.found(SoftFound::StampsBeforeRps { packet_sockets: sockets.len() as u32 });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "M23",
        title: "the NIC limits single transmit queues",
        reads: "net-shaper get, speed",
        guard: "Linux 6.13 or later, and a driver with net-shaper limits",
        condition: "a transmit queue in use has a largest rate below the speed of the link, or one in packets/s",
        confirm: "ynl --family net-shaper --dump get --json '{\"ifindex\": N}'",
        severity: Severity::Info,
        why: "Flows that the kernel sends through such a queue share its rate, however idle CPUs and link are. XPS and the hash choose the queue without regard to its limit, so equal flows get unequal rates.",
        source: "kernel documentation, netlink/specs/net-shaper",
        by_hand: &[
            "ynl --family net-shaper --do delete --json '{\"ifindex\": N, \"handle\": {\"scope\": \"queue\", \"id\": Q}}'",
        ],
        more: "ynl is tools/net/ynl of the kernel's source; N is the index of the interface (ip link). The limits of groups of queues and of the whole interface are in ringwise show DEV, line limits.",
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let shapers = say.get(&n.shapers).filter(|s| **s != Shapers::NotInKernel)?;
                let mbps = n.link.speed_mbps.known().copied();
                let mut limited: BTreeMap<(u64, RateUnit), Vec<u32>> = BTreeMap::new();
                for q in cx.tx_queues_used(n) {
                    let Some((rate, unit)) = shapers.max_of_queue(q.id) else { continue };
                    if mbps.is_none_or(|mbps| unit.is_below(rate, mbps) != Some(false)) {
                        limited.entry((rate, unit)).or_default().push(q.id);
                    }
                }
                for ((rate, unit), queues) in limited {
                    say.found(SoftFound::QueuesLimited { queues, rate, unit, mbps });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
];

//! Queues in software: disciplines, backlogs, byte limits, busy polling.

use ringwise_model::{CpuCounter, Goal};

use crate::fix::Fix;
use crate::found::SoftFound;
use crate::rule::Rule;
use crate::severity::{Confidence, Severity};

const SYSCTL: &str = "kernel documentation, admin-guide/sysctl/net";

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "M07",
        title: "every socket polls busily",
        reads: "net.core.busy_read, net.core.busy_poll",
        guard: "no goal for latency",
        condition: "one of them is not 0",
        why: "Each read and poll spins that long on a CPU, for all programs. Since 5.11 SO_PREFER_BUSY_POLL asks for it by socket.",
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
                    sets.push(Fix::sysctl(name, 0));
                }
            }
            if !values.is_empty() {
                say.found(SoftFound::BusyPolling { values }).fix(cx, Fix::all(sets));
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "M15",
        title: "a long queue without a discipline",
        reads: "tx_queue_len, queueing disciplines",
        condition: "more than 10,000 packets with pfifo or pfifo_fast",
        severity: Severity::Info,
        why: "Packets wait in a queue that nothing bounds in time. Byte queue limits and fq or fq_codel made long queues needless.",
        source: "tc-fq_codel(8)",
        by_hand: &["ip link set DEV txqueuelen 1000; tc qdisc replace dev DEV root mq with fq below"],
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
        condition: "the root is a single one that knows no queues",
        why: "Every packet takes the one lock of that discipline, whatever queue it goes to.",
        source: "kernel documentation, networking/multiqueue",
        by_hand: &["tc qdisc replace dev DEV root mq"],
        also: &["R1.14"],
        more: "mq gives each transmit queue a discipline of its own. Since 3.18 packets go to the device in bulk with one doorbell (xmit_more), by way of the discipline's bulk dequeue and byte queue limits: fewer writes to the device, less locking a packet, fewer interrupts. With it pktgen sends 60-byte frames at the full rate of 10 Gbit/s (Duyck, 2015).",
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
        title: "a shaper over a fast link",
        reads: "root queueing discipline, speed",
        guard: "more than one transmit queue, 10 Gbit/s or more",
        condition: "the root is htb, hfsc, tbf, cake, prio or drr",
        why: "Such a tree has one lock for all queues: it bounds the whole link to what one CPU can sort.",
        source: "tc-htb(8)",
        by_hand: &["split the tree over the queues, or set times of departure (fq with EDT)"],
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
        title: "byte queue limits are pinned low",
        reads: "byte_queue_limits",
        guard: "the driver has byte queue limits",
        condition: "limit_max is below two large frames",
        why: "The limit grows by itself up to limit_max; below a few frames the queue runs dry between completions.",
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
        condition: "a CPU gets more than 100,000 packets a second by RPS and the backlog has at most 1,000 places",
        severity: Severity::Info,
        why: "A burst of that many packets comes within ten milliseconds; what does not fit is dropped.",
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
                    .fix(cx, Fix::sysctl("net.core.netdev_max_backlog", 4000));
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "M20",
        title: "time stamps on the interrupt's CPU",
        reads: "netdev_tstamp_prequeue, rps_cpus",
        guard: "RPS is set",
        condition: "there are packet sockets, which may want time stamps, and they are taken before RPS",
        confidence: Confidence::Likely,
        severity: Severity::Info,
        why: "As soon as one socket wants time stamps, the CPU that takes the interrupts reads the clock for every packet, also for those it hands on.",
        source: SYSCTL,
        by_hand: &["sysctl net.core.netdev_tstamp_prequeue=0, at the price of less exact stamps"],
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
];

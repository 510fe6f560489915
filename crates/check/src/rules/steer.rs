//! Rules about steering in software: RPS, RFS, XPS.

use ringwise_model::{CpuSet, Dir, Goal, Nic};

use crate::finding_sink::{FindingSink, SteeringKind};
use crate::fix::PlanArguments;
use crate::found::SteerFound;
use crate::needs::RequiredFact;
use crate::planned;
use crate::role::tcp_in_use;
use crate::rule::Rule;
use crate::rule_context::RuleContext;
use crate::severity::{Confidence, Severity};

const SCALING: &str = "kernel documentation, networking/scaling";
const ENA: &str = "ENA Linux driver best practices (Amazon)";

/// Queues whose RPS mask contains CPUs that `wrong` selects, and these CPUs.
fn rps(cx: &RuleContext, n: &Nic, wrong: impl Fn(&CpuSet, ringwise_model::CpuId) -> CpuSet) -> (Vec<u32>, CpuSet) {
    let (mut list, mut all) = (Vec::new(), CpuSet::new());
    for q in &n.rx_queues {
        let (Some(mask), Some(at)) = (q.rps_cpus.known(), cx.irq_cpu(n, Dir::Rx, q.id)) else { continue };
        let bad = if mask.is_empty() { CpuSet::new() } else { wrong(mask, at) };
        if !bad.is_empty() {
            list.push(q.id);
            all = all.union(&bad);
        }
    }
    (list, all)
}

/// Lowers findings to `Info` at interfaces for which `holds` is true.
fn lower(cx: &RuleContext, say: &mut FindingSink, holds: impl Fn(&Nic) -> bool) {
    for f in &mut say.findings {
        if f.dev.as_deref().and_then(|d| cx.s.nic(d)).is_some_and(&holds) {
            f.severity = Severity::Info;
        }
    }
}

/// `Some` if RPS is on for a queue. `None`: it is off on all queues, or unknown.
fn has_rps(n: &Nic) -> Option<()> {
    n.rx_queues.iter().any(|q| q.rps_cpus.known().is_some_and(|c| !c.is_empty())).then_some(())
}

/// Flow table entries of the queues that the device uses. The extra queues of AF_XDP do not count.
fn flow_counts(cx: &RuleContext, n: &Nic, say: &mut FindingSink) -> Option<Vec<u32>> {
    let used = cx.rx_queues(n) as usize;
    n.rx_queues.iter().take(used).map(|q| say.get(&q.rps_flow_cnt).copied()).collect()
}

/// The largest power of two that is not above `n`.
fn power(n: u32) -> u32 {
    if n == 0 { 0 } else { 1 << n.ilog2() }
}

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "Q04",
        title: "one receive queue",
        reads: "channels, rps_cpus, topology",
        needs: &[RequiredFact::Rps, RequiredFact::Channels],
        guard: "one receive queue, and its node has more than one core for queues",
        condition: "RPS is not set to the CPUs of the other cores that share an L3 cache with the interrupt's CPU, or else of its node",
        confirm: "ethtool -l DEV; cat /sys/class/net/DEV/queues/rx-0/rps_cpus",
        ours: Some(""),
        also: &["R2.01"],
        more: "Published with the code (2010): e1000e on 8 cores reached 90,000 transactions per second at 33 % CPU, with RPS 239,000 at 60 %; forcedeth on 16 cores reached 103,000 at 15 %, with RPS 285,000 at 49 %.",
        under: &["A01", "A03", "A04", "A15", "R0.09"],
        judge: |cx, say| {
            planned::judge("Q04", cx, say)?;
            // RPS fits the present CPU of the interrupt. The plan changes it only because it moves the interrupt.
            lower(cx, say, |n| {
                let set = |q: &ringwise_model::RxQueue| q.rps_cpus.known().is_some_and(|c| !c.is_empty());
                let own = |at, mask: &CpuSet| cx.s.topology.siblings_of(at).intersection(mask);
                let home = |at| move |c: ringwise_model::CpuId| cx.s.topology.node_of(c) != cx.s.topology.node_of(at);
                let (wrong, _) =
                    rps(cx, n, |mask, at| own(at, mask).union(&mask.iter().filter(|c| home(at)(*c)).collect()));
                n.rx_queues.first().is_some_and(set) && wrong.is_empty()
            });
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q05",
        title: "RPS on top of RSS",
        reads: "rps_cpus of all queues, channels",
        needs: &[RequiredFact::Rps, RequiredFact::Channels],
        guard: "more than one receive queue, and no interface for PPPoE or a tunnel may run over the device",
        condition: "RPS is set, although the queues are already spread over the local CPUs",
        confirm: "cat /sys/class/net/DEV/queues/rx-*/rps_cpus; ethtool -l DEV",
        ours: Some(""),
        by_hand: &[
            "keep RPS if the device passes on PPPoE or tunnels that end elsewhere: put rps_cpus into the configuration file, otherwise plan removes it (ringwise help pppoe)",
        ],
        judge: |cx, say| planned::judge("Q05", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "Q06",
        title: "RPS sends packets back to a busy CPU",
        reads: "rps_cpus, the CPU of the interrupt, packets",
        guard: "RPS is set",
        condition: "the mask contains the interrupt's own CPU, which is more than half busy",
        confirm: "cat /sys/class/net/DEV/queues/rx-*/rps_cpus; mpstat -P ALL 1",
        severity: Severity::Info,
        why: "At high packet rates, the mask should not contain the CPU that handles the interrupts: packets that the CPU sends to itself still wait in its backlog.",
        source: SCALING,
        rates: true,
        by_hand: &["remove the interrupt's CPU from rps_cpus"],
        under: &["Q05", "Q07"],
        judge: |cx, say| {
            cx.each_rate(say, |n, _, t, say| {
                has_rps(n)?;
                let (list, cpus) = rps(cx, n, |mask, at| {
                    let hot = t.cpus.get(&at).and_then(|c| c.busy()).is_some_and(|b| b > 50.0);
                    if hot && mask.contains(at) && mask.len() > 1 { CpuSet::one(at) } else { CpuSet::new() }
                });
                if !list.is_empty() {
                    say.found(SteerFound::RpsToOwnCpu { queues: list, cpus });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q07",
        title: "RPS to another node",
        reads: "rps_cpus, L3 and node of the interrupt's CPU",
        needs: &[RequiredFact::Rps],
        guard: "RPS is set, and the host has more than one node",
        condition: "the mask contains CPUs of another node than that of the interrupt's CPU",
        confirm: "compare rps_cpus with the node of the interrupt's CPU (lscpu -e)",
        ours: Some(""),
        by_hand: &[
            "ringwise plan --set DEV.rps_cpus=LIST, with CPUs of the NIC's node, without the core of the interrupt",
        ],
        under: &["Q05"],
        judge: |cx, say| {
            planned::judge("Q07", cx, say);
            cx.each(say, |n, say| {
                has_rps(n)?;
                if cx.nodes() < 2 {
                    return None;
                }
                let (list, cpus) = rps(cx, n, |mask, at| {
                    let home = cx.s.topology.node_of(at);
                    let away = |c: &ringwise_model::CpuId| home.is_some() && cx.s.topology.node_of(*c) != home;
                    mask.iter().filter(away).collect()
                });
                if !list.is_empty() && !say.has_finding() {
                    say.found(SteerFound::RpsToOtherNode { queues: list, cpus }).fix_planned(cx, SteeringKind::RpsCpus);
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q08",
        title: "RPS to the other thread of the core",
        reads: "rps_cpus, thread_siblings_list",
        guard: "RPS is set, and the cores have several threads",
        condition: "the mask contains the other thread of the interrupt's core, and more than two CPUs are local",
        confirm: "compare rps_cpus with thread_siblings_list of the interrupt's CPU",
        why: "The other thread shares the core that handles the interrupts: the packet costs a transfer between CPUs and gains no second core.",
        source: ENA,
        ours: Some(""),
        by_hand: &[
            "ringwise plan --set DEV.rps_cpus=LIST, with CPUs of the NIC's node, without the core of the interrupt",
        ],
        under: &["Q05", "Q07", "Q04"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                has_rps(n)?;
                let (list, cpus) = rps(cx, n, |mask, at| {
                    let mut other = cx.s.topology.siblings_of(at);
                    other.remove(at);
                    other.intersection(mask)
                });
                // With one queue on a single near core there is no other near CPU for RPS.
                if !list.is_empty() && cx.near(n).len() > 2 {
                    say.found(SteerFound::RpsToSibling { queues: list, cpus }).fix_planned(cx, SteeringKind::RpsCpus);
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q09",
        title: "RFS table sizes do not match",
        reads: "rps_sock_flow_entries, rps_flow_cnt of the queues in use",
        needs: &[RequiredFact::Rfs],
        guard: "RFS is on, or the goal of the check switches it on (rpc, stream)",
        condition: "rps_flow_cnt of a queue is not the largest power of two up to the entries of the host divided by the queues of the interface (rps_sock_flow_entries, or what the goal sets it to); info if it is larger, which only costs memory",
        confirm: "sysctl net.core.rps_sock_flow_entries; cat /sys/class/net/DEV/queues/rx-*/rps_flow_cnt",
        ours: Some(""),
        by_hand: &[
            "with goals balanced and mixed, which keep the host's table, add --set DEV.rps_flow_cnt=N (goals rpc and stream set both tables)",
        ],
        judge: |cx, say| {
            planned::judge("Q09", cx, say);
            let entries = *say.get(&cx.s.host.rps_sock_flow_entries)?;
            if entries == 0 {
                return None;
            }
            cx.each(say, |n, say| {
                let all = flow_counts(cx, n, say)?;
                if all.is_empty() || all.iter().all(|c| *c == 0) {
                    return None;
                }
                let want = power(entries / all.len() as u32).max(1);
                if all.iter().any(|c| *c != want) && !say.has_finding() {
                    let flows: u64 = all.iter().map(|c| u64::from(*c)).sum();
                    let queues = all.len() as u32;
                    let short = all.iter().any(|c| *c < want);
                    say.found(SteerFound::RfsShares { queues, flows, entries, share: want })
                        .severity(if short { Severity::Warning } else { Severity::Info })
                        .fix(cx, PlanArguments::set(n.name(), "rps_flow_cnt", want));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q10",
        title: "RFS is half configured",
        reads: "rps_sock_flow_entries, rps_flow_cnt",
        guard: "the size of the RFS socket table is known, and so are the entries of the queues of at least one interface",
        condition: "one of the two is 0 and the other is not",
        confirm: "sysctl net.core.rps_sock_flow_entries; cat /sys/class/net/DEV/queues/rx-*/rps_flow_cnt",
        why: "RFS needs the table of the host and those of the queues. If one of them has no entries, RFS is off, and the kernel does not report it.",
        source: SCALING,
        ours: Some("--set host.rfs_entries=0, or --set DEV.rps_flow_cnt=0"),
        by_hand: &["to use RFS, set both: ringwise plan --goal rpc"],
        under: &["R2.03"],
        judge: |cx, say| {
            let entries = *say.get(&cx.s.host.rps_sock_flow_entries)?;
            let mut on = Vec::new();
            let mut any = false;
            for n in &cx.nics {
                say.at(n.name());
                let Some(all) = flow_counts(cx, n, say) else { continue };
                any = true;
                if all.iter().any(|c| *c > 0) {
                    on.push(*n);
                }
            }
            say.of_host();
            if !any {
                return None;
            }
            if entries > 0 && on.is_empty() && cx.i.devs.is_empty() {
                say.found(SteerFound::RfsTableAlone { entries }).fix(cx, PlanArguments::host("rfs_entries", 0));
            }
            if entries == 0 {
                for n in on {
                    say.at(n.name());
                    // Some goals set the table of the host.
                    let fix = match cx.planned.contains_key("R2.03") {
                        true => PlanArguments::planned(),
                        false => PlanArguments::set(n.name(), "rps_flow_cnt", 0),
                    };
                    say.found(SteerFound::RfsQueuesAlone).fix(cx, fix);
                }
            }
            say.of_host();
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q11",
        title: "RFS without local sockets",
        reads: "rps_sock_flow_entries, rps_flow_cnt, ip_forward",
        needs: &[RequiredFact::Rfs],
        guard: "the host forwards, or the goal does not use RFS",
        condition: "RFS is on",
        confirm: "sysctl net.core.rps_sock_flow_entries net.ipv4.ip_forward",
        severity: Severity::Info,
        ours: Some("--goal forward"),
        judge: |cx, say| {
            planned::judge("Q11", cx, say);
            if !cx.forwards() || !say.findings.is_empty() {
                return (!say.findings.is_empty()).then_some(());
            }
            let entries = *say.get(&cx.s.host.rps_sock_flow_entries)?;
            let on = cx.nics.iter().any(|n| n.rx_queues.iter().any(|q| q.rps_flow_cnt.known().is_some_and(|c| *c > 0)));
            if entries > 0 && on && cx.goal() == Goal::Balanced {
                say.found(SteerFound::RfsOnRouter { entries }).fix(cx, PlanArguments::goal(Goal::Forward));
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q12",
        title: "RFS table is small",
        reads: "rps_sock_flow_entries, /proc/net/sockstat",
        guard: "RFS is on",
        condition: "the table has fewer entries than twice the TCP sockets in use",
        confirm: "sysctl net.core.rps_sock_flow_entries; ss -s",
        severity: Severity::Info,
        why: "Connections that share an entry overwrite each other's CPU.",
        source: SCALING,
        ours: Some("--set host.rfs_entries=N --set DEV.rps_flow_cnt=N"),
        judge: |cx, say| {
            let entries = *say.get(&cx.s.host.rps_sock_flow_entries)?;
            if entries == 0 {
                return None;
            }
            let sockets = tcp_in_use(&say.take(cx.i.extra.file("/proc/net/sockstat"))?)?;
            if u64::from(entries) < 2 * sockets {
                let want = (2 * sockets).next_power_of_two().min(1 << 29);
                // The table of each queue is a share of the host's table.
                let mut sets = vec![PlanArguments::host("rfs_entries", want)];
                for n in &cx.nics {
                    let each: Vec<u32> = n.rx_queues.iter().filter_map(|q| q.rps_flow_cnt.known().copied()).collect();
                    let used = cx.rx_queues(n);
                    if used > 0 && each.iter().any(|c| *c > 0) {
                        sets.push(PlanArguments::set(n.name(), "rps_flow_cnt", power(want as u32 / used).max(1)));
                    }
                }
                say.found(SteerFound::RfsTableSmall { entries, sockets }).fix(cx, PlanArguments::all(sets));
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q13",
        title: "accelerated RFS is off",
        reads: "rps_sock_flow_entries, rps_flow_cnt, feature rx-ntuple-filter, driver",
        guard: "RFS is on, and the driver is known to steer flows itself",
        condition: "ntuple is off and can be turned on; info with the goal stream, which does not change it",
        confirm: "ethtool -k DEV | grep ntuple; sysctl net.core.rps_sock_flow_entries",
        why: "With RFS alone, the kernel moves a packet to the CPU of its program. If the driver steers the flow, the packet arrives on that CPU.",
        source: SCALING,
        ours: Some("--set DEV.features.ntuple=true"),
        also: &["R2.06"],
        under: &["R2.04"],
        judge: |cx, say| {
            let entries = *say.get(&cx.s.host.rps_sock_flow_entries)?;
            if entries == 0 {
                return None;
            }
            cx.each(say, |n, say| {
                let drivers =
                    ["bnxt_en", "enic", "hns3", "ice", "mlx4_en", "mlx4_core", "mlx5_core", "qede", "sfc", "mqnic"];
                if !drivers.contains(&cx.driver(n)) || cx.rx_queues(n) < 2 {
                    return None;
                }
                let on = flow_counts(cx, n, say)?.iter().any(|c| *c > 0);
                let f = cx.feature(n, "rx-ntuple-filter", say)?;
                if on && !f.on && !f.fixed {
                    // The goal `stream` uses RFS and changes no setting of the device.
                    let known = cx.goal_of(n) == Goal::Stream;
                    say.found(SteerFound::AcceleratedRfsOff { driver: cx.driver(n).to_string() })
                        .severity(if known { Severity::Info } else { Severity::Warning })
                        .fix(cx, PlanArguments::ntuple(n));
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q14",
        title: "no XPS",
        other_severity: "info if the host forwards or the goal is forward: without XPS a forwarded packet is sent through the queue with the number of its receive queue (skb_tx_hash in net/core/dev.c), and only packets of the host's own programs use the hash",
        reads: "xps_cpus, xps_rxqs",
        needs: &[RequiredFact::Xps],
        guard: "more than one transmit queue and more than one CPU",
        condition: "no transmit queue has CPUs",
        confirm: "cat /sys/class/net/DEV/queues/tx-*/xps_cpus",
        ours: Some(""),
        also: &["R1.03", "R1.13", "R2.07"],
        more: "Published with the code: bnx2x on 16 cores reached 996,000 transactions per second, with XPS 1,234,000, both with all CPUs busy. XPS saves the lock of a queue that two CPUs share, and completions on another CPU. Other costs of sending (2015, 2.6 GHz): local_irq_save and restore take tens of nanoseconds; rmb and wmb empty the pipeline (drivers use the lighter dma_rmb and dma_wmb since 3.19); the doorbell of the device (MMIO) takes hundreds of nanoseconds, which a profile shows as time in the lock of the queueing discipline or in unlocking the transmit queue.",
        judge: |cx, say| planned::judge("Q14", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "Q15",
        title: "XPS does not match the interrupts",
        reads: "xps_cpus, CPUs of the interrupts, topology",
        needs: &[RequiredFact::Interrupts, RequiredFact::Xps],
        guard: "the plan covers the interface, and its XPS masks and the CPUs of its interrupts are known",
        condition: "the plan has other CPUs for the queue, because its interrupt goes to another CPU",
        confirm: "compare xps_cpus of tx-N with effective_affinity_list of the queue's interrupt",
        ours: Some(""),
        under: &["A01", "A03", "A04", "A09", "A15", "R0.09"],
        judge: |cx, say| {
            planned::judge("Q15", cx, say)?;
            // XPS fits the present CPUs of the interrupts. The plan changes it only because it moves the interrupts.
            lower(cx, say, |n| {
                let sends = |q: &ringwise_model::TxQueue| match (cx.irq_cpu(n, Dir::Tx, q.id), q.xps_cpus.known()) {
                    (Some(at), Some(cpus)) => cpus.contains(at),
                    _ => false,
                };
                // If no queues are listed, nothing shows that XPS fits.
                !n.tx_queues.is_empty() && cx.tx_queues_used(n).all(sends)
            });
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q16",
        title: "CPU without a transmit queue",
        reads: "xps_cpus of all queues, cpu/online",
        needs: &[RequiredFact::Xps],
        guard: "XPS is set on at least one queue",
        other_severity: "info if the host forwards or the goal is forward: a CPU without a mask sends a forwarded packet through the queue with the number of its receive queue (skb_tx_hash in net/core/dev.c), and uses the hash for packets of the host's own programs only",
        condition: "an online CPU is in no mask, or the plan has another mask",
        confirm: "cat /sys/class/net/DEV/queues/tx-*/xps_cpus; cat /sys/devices/system/cpu/online",
        ours: Some(""),
        under: &["Q15", "Q14", "A09"],
        judge: |cx, say| {
            planned::judge("Q16", cx, say);
            let online = &cx.s.topology.online;
            cx.each(say, |n, say| {
                let masks: Option<Vec<&CpuSet>> = cx.tx_queues_used(n).map(|q| q.xps_cpus.known()).collect();
                let masks = masks.filter(|m| m.len() > 1 && m.iter().any(|c| !c.is_empty()))?;
                if n.tx_queues.iter().any(|q| q.xps_rxqs.known().is_some_and(|r| !r.is_empty())) {
                    return None;
                }
                let covered = masks.iter().fold(CpuSet::new(), |all, m| all.union(m));
                let hole = online.difference(&covered);
                if !hole.is_empty() && !say.has_finding() {
                    let found = say.found(SteerFound::CpusWithoutXps { cpus: hole });
                    // A forwarded packet is sent through the queue with the number of its receive queue (skb_tx_hash).
                    match cx.forwards_or_requested(n) {
                        true => found.severity(Severity::Info).fix(cx, PlanArguments::planned()),
                        false => found.fix(cx, PlanArguments::planned()),
                    };
                }
                Some(())
            });
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q17",
        title: "one queue sends almost everything",
        reads: "bytes by transmit queue",
        guard: "more than one transmit queue, and more than 10,000 packets per second sent",
        condition: "one queue sends more than 90 % of the bytes",
        confirm: "ringwise watch --queues; tc -s qdisc show dev DEV",
        why: "One queue means one lock and one CPU for completions. For a single program on one CPU this is normal.",
        source: SCALING,
        rates: true,
        confidence: Confidence::Likely,
        severity: Severity::Info,
        by_hand: &["for XPS see Q14 to Q16; a single sending program is not a fault"],
        under: &["Q14", "Q15", "Q16"],
        judge: |cx, say| {
            cx.each_rate(say, |_, l, t, say| {
                let bytes: Vec<(u32, u64)> = l.of(Dir::Tx).filter_map(|q| Some((q.queue, q.bytes?))).collect();
                let sum: u64 = bytes.iter().map(|b| b.1).sum();
                if bytes.len() < 2 || t.per_second(l.tx_packets?) < 10_000.0 || sum == 0 {
                    return None;
                }
                let top = bytes.iter().max_by_key(|b| b.1)?;
                if top.1 * 10 > sum * 9 {
                    let (queue, of, percent) = (top.0, bytes.len() as u32, top.1 * 100 / sum);
                    say.found(SteerFound::OneTransmitQueue { queue, of, percent });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q31",
        title: "new interfaces get RPS",
        reads: "net.core.rps_default_mask",
        guard: "an interface has more than one receive queue",
        condition: "the mask is not empty",
        confirm: "sysctl net.core.rps_default_mask",
        severity: Severity::Info,
        why: "Interfaces that appear later start with this RPS mask, including those that spread flows over queues themselves.",
        source: "kernel documentation, admin-guide/sysctl/net",
        ours: Some("--set 'host.sysctl.\"net.core.rps_default_mask\"=0'"),
        judge: |cx, say| {
            let mask = say.get(&cx.s.host.rps_default_mask)?;
            if !cx.nics.iter().any(|n| cx.rx_queues(n) > 1) {
                return None;
            }
            if !mask.is_empty() {
                say.found(SteerFound::RpsForNewQueues { mask: mask.clone() })
                    .fix(cx, PlanArguments::sysctl("net.core.rps_default_mask", 0));
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "Q32",
        title: "flow limit is off",
        reads: "flow_limit_cpu_bitmap, rps_cpus, softnet_stat",
        guard: "RPS is set",
        condition: "packets are dropped at full backlogs, and the flow limit is off on every CPU",
        confirm: "sysctl net.core.flow_limit_cpu_bitmap",
        severity: Severity::Info,
        why: "One flow can fill the backlog of its CPU, so that packets of all other flows are dropped; the limit drops packets of that flow first.",
        source: SCALING,
        rates: true,
        by_hand: &["echo MASK > /proc/sys/net/core/flow_limit_cpu_bitmap, with the same MASK as in rps_cpus"],
        under: &["D01"],
        judge: |cx, say| {
            let t = cx.traffic(say)?;
            if !cx.nics.iter().any(|n| has_rps(n).is_some()) {
                return None;
            }
            let bitmap = say.take(cx.sysctl("net.core.flow_limit_cpu_bitmap"))?;
            let empty = bitmap.chars().all(|c| c == '0' || c == ',');
            if empty && !t.cpus_of(ringwise_model::CpuCounter::SoftnetDropped).is_empty() {
                say.found(SteerFound::NoFlowLimit);
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "R2.03",
        title: "RFS tables do not suit the goal",
        reads: "rps_sock_flow_entries, rps_flow_cnt",
        needs: &[RequiredFact::Rfs],
        guard: "the goal uses RFS",
        condition: "the plan has other table sizes",
        confirm: "sysctl net.core.rps_sock_flow_entries; cat /sys/class/net/DEV/queues/rx-*/rps_flow_cnt",
        ours: Some("--goal GOAL"),
        more: "Published with the code: 104,000 transactions per second at 30 % CPU without steering, 290,000 at 63 % with the best RPS, 303,000 at 61 % with RFS. A second test, of requests and responses: 103,000 per second at 48 % CPU without steering, 174,000 at 73 % with RPS, 223,000 at 73 % with RFS. Its round-trip latency in us (50th, 90th and 99th percentile, deviation): 757, 900, 3185, 4472 without steering; 415, 993, 2468, 492 with RPS; 379, 651, 1382, 316 with RFS.",
        judge: |cx, say| planned::judge("R2.03", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "R2.04",
        title: "accelerated RFS is off, although the goal uses it",
        reads: "feature rx-ntuple-filter, driver",
        guard: "the goal uses RFS",
        condition: "the plan turns ntuple on",
        confirm: "ethtool -k DEV | grep ntuple",
        ours: Some("--goal GOAL"),
        judge: |cx, say| planned::judge("R2.04", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "R3.17",
        title: "RPS costs an inter-processor interrupt",
        reads: "rps_cpus",
        needs: &[RequiredFact::Rps],
        guard: "the goal is latency",
        condition: "RPS is set",
        confirm: "cat /sys/class/net/DEV/queues/rx-*/rps_cpus",
        ours: Some("--goal latency"),
        judge: |cx, say| planned::judge("R3.17", cx, say),
        ..Rule::BASE
    },
];

//! Interrupts, and the CPUs that handle them.

use std::collections::BTreeMap;

use ringwise_model::{CpuId, CpuSet, Dir, Fact, Goal, Movable, Role as Serves};

use crate::fix::Fix;
use crate::found::{IrqFound, Misdelivered};
use crate::needs::Needs;
use crate::planned;
use crate::rule::Rule;
use crate::say::Family;
use crate::severity::{Confidence, Severity};

const SCALING: &str = "kernel documentation, networking/scaling";
const LIMITS: &str = "Pushing the Limits of Kernel Networking (Duyck, 2015)";
const IRQ: &str = "kernel documentation, core-api/irq/irq-affinity";

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "A01",
        title: "queues share a CPU",
        reads: "effective_affinity_list of the queue interrupts",
        needs: &[Needs::Interrupts],
        guard: "more than one queue and more than one CPU",
        condition: "nine tenths of a device's queue interrupts go to one CPU, or more of them than a CPU must take",
        ours: Some(""),
        judge: |cx, say| planned::judge("A01", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "A02",
        title: "interrupt may wander",
        reads: "smp_affinity_list of the queue interrupts",
        needs: &[Needs::Interrupts],
        condition: "more than one CPU is allowed, or it is not known where it goes",
        ours: Some(""),
        under: &["A01", "A03"],
        judge: |cx, say| planned::judge("A02", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "A03",
        title: "interrupt away from the device",
        reads: "numa_node, effective_affinity_list, node distances",
        needs: &[Needs::Interrupts, Needs::Node],
        guard: "more than one node, and the device's is known",
        condition: "the CPU is on another node while a near one is free; an error above distance 20",
        ours: Some(""),
        more: "The near caches hold the packet already (DDIO, of Xeon E5 and later, writes there without a way over memory, and only on the device's socket); a far CPU fetches every line through the link between sockets.",
        also: &["R1.02"],
        judge: |cx, say| planned::judge("A03", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "A04",
        title: "two queues on one physical core",
        reads: "effective_affinity_list, thread_siblings_list",
        needs: &[Needs::Interrupts],
        condition: "two queue interrupts on threads of one core while a near core has none",
        ours: Some(""),
        judge: |cx, say| planned::judge("A04", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "A06",
        title: "irqbalance moves what was laid down",
        reads: "irqbalance's process, command line and socket; smp_affinity_list",
        needs: &[Needs::Interrupts],
        guard: "irqbalance runs",
        condition: "interrupts that go to one CPU each are not banned in it, or would not be after its restart",
        why: "Every ten seconds it moves interrupts that it was not told to leave alone, and it does not know that two of them belong to one pair.",
        source: "irqbalance(1), API and --policyscript",
        ours: Some(""),
        judge: |cx, say| planned::judge("A06", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "A07",
        title: "nobody spreads the interrupts",
        reads: "processes, smp_affinity_list, effective_affinity_list",
        guard: "more than one queue",
        condition: "no irqbalance, every queue interrupt may go anywhere, and all of them go to one CPU",
        why: "Without irqbalance and without a layout the kernel or the interrupt controller chooses, and knows nothing of queues: here it chose one CPU for all.",
        source: IRQ,
        ours: Some(""),
        under: &["A01", "A02", "A03"],
        judge: |cx, say| {
            let rivals = say.get(&cx.s.host.rivals)?;
            if rivals.iter().any(|r| r == "irqbalance") || cx.s.topology.online.len() < 2 {
                return None;
            }
            cx.each(say, |n, say| {
                let vs: Vec<_> = n.queue_vectors().collect();
                if vs.len() < 2 {
                    return None;
                }
                let wide = vs.iter().all(|v| v.asked.known().is_some_and(|a| a.len() > 1));
                let mut at: Vec<CpuId> = vs.iter().filter_map(|v| cx.at(v)).collect();
                let all = at.len() == vs.len();
                at.dedup();
                if wide && all && at.len() == 1 {
                    say.found(IrqFound::AllOnOneCpu { interrupts: vs.len() as u32, cpu: at[0] })
                        .fix(cx, Fix::planned());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A08",
        title: "isolated CPU disturbed",
        reads: "isolcpus, nohz_full, isolated cgroup partitions, masks of interrupts and RPS",
        guard: "CPUs are isolated",
        condition: "a queue interrupt or RPS goes there",
        severity: Severity::Error,
        ours: Some(""),
        judge: |cx, say| {
            let isolated = cx.s.topology.isolated_all();
            if isolated.is_empty() || cx.i.intent.cpus.as_ref().is_some_and(|c| c.intersects(&isolated)) {
                return None;
            }
            planned::judge("A08", cx, say);
            cx.each(say, |n, say| {
                let rps: Vec<u32> = n
                    .rx_queues
                    .iter()
                    .filter(|q| q.rps_cpus.known().is_some_and(|c| c.intersects(&isolated)))
                    .map(|q| q.id)
                    .collect();
                if !rps.is_empty() {
                    say.found(IrqFound::RpsReachesIsolated { queues: rps, isolated: isolated.clone() })
                        .fix_planned(cx, Family::RpsCpus);
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A09",
        title: "mask names an offline CPU",
        reads: "cpu/online, rps_cpus, xps_cpus, smp_affinity_list",
        condition: "a mask names a CPU that is not online",
        why: "Work for that CPU goes elsewhere: RPS leaves such packets where they came, XPS falls back to the hash, an interrupt is moved to another CPU. An interrupt mask cannot be written so, but a CPU may go offline later.",
        source: "kernel documentation, core-api/cpu_hotplug",
        ours: Some("--set DEV.xps_cpus.N=\"CPUS\""),
        judge: |cx, say| {
            let online = &cx.s.topology.online;
            cx.each(say, |n, say| {
                let off = |c: &Fact<CpuSet>| c.known().map(|c| c.difference(online)).filter(|d| !d.is_empty());
                let mut seen: BTreeMap<(&str, CpuSet), (Vec<u32>, CpuSet)> = BTreeMap::new();
                for q in &n.rx_queues {
                    if let Some(d) = off(&q.rps_cpus) {
                        let e = seen.entry(("rps_cpus", d)).or_default();
                        e.0.push(q.id);
                        e.1 = q.rps_cpus.known().map(|c| c.intersection(online)).unwrap_or_default();
                    }
                }
                for q in &n.tx_queues {
                    if let Some(d) = off(&q.xps_cpus) {
                        let e = seen.entry(("xps_cpus", d)).or_default();
                        e.0.push(q.id);
                        e.1 = q.xps_cpus.known().map(|c| c.intersection(online)).unwrap_or_default();
                    }
                }
                for v in n.queue_vectors() {
                    // A mask with several CPUs may well include offline ones.
                    if let Some(d) =
                        v.asked.known().filter(|a| a.len() == 1).map(|a| a.difference(online)).filter(|d| !d.is_empty())
                    {
                        seen.entry(("irq_cpus", d)).or_default().0.extend(v.rx().iter().chain(v.tx()));
                    }
                }
                for ((knob, cpus), (mut q, rest)) in seen {
                    q.sort();
                    q.dedup();
                    let sets = q.iter().map(|q| Fix::set(n.name(), format!("{knob}.{q}"), &rest));
                    let fix = Fix::all(sets);
                    let f = say.found(IrqFound::OfflineCpu { of: knob.to_string(), queues: q, cpus });
                    match knob {
                        "irq_cpus" => f.fix(cx, Fix::planned()),
                        // `--set` cannot express an empty mask: only the plan can clear it.
                        "rps_cpus" => f.fix_planned(cx, Family::RpsCpus),
                        _ if rest.is_empty() => f.fix_planned(cx, Family::XpsCpus),
                        _ => f.fix(cx, fix),
                    };
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A10",
        title: "interrupt goes elsewhere than asked",
        reads: "smp_affinity_list, effective_affinity_list",
        condition: "the CPU where it goes is not among those asked for",
        why: "The move is pending (on x86 it happens with the next interrupt), or the CPU had no vector left when it was tried.",
        source: IRQ,
        by_hand: &["send traffic over the queue and look again; dmesg tells of vectors that ran out (ENOSPC)"],
        confidence: Confidence::Likely,
        severity: Severity::Info,
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let mut off = Vec::new();
                for v in n.queue_vectors() {
                    let (Some(asked), Some(eff)) = (v.asked.known(), v.effective.known()) else { continue };
                    if !eff.is_empty() && !eff.intersects(asked) {
                        let (asked, goes_to) = (asked.clone(), eff.clone());
                        off.push(Misdelivered { name: v.names.first().cloned(), asked, goes_to });
                    }
                }
                if !off.is_empty() {
                    say.found(IrqFound::Elsewhere { interrupts: off });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A11",
        title: "the driver's own layout is not used",
        reads: "affinity_hint, smp_affinity_list",
        guard: "no irqbalance",
        condition: "the driver hints at single CPUs, and every mask is wide",
        severity: Severity::Info,
        why: "The driver proposes CPUs for each interrupt, and the masks do not follow: some drivers only publish the proposal, and whoever widened the masks since took no notice of it.",
        source: IRQ,
        ours: Some(""),
        under: &["A01", "A02", "A03", "A07"],
        judge: |cx, say| {
            if say.get(&cx.s.host.rivals)?.iter().any(|r| r == "irqbalance") {
                return None;
            }
            let online = cx.s.topology.online.len();
            cx.each(say, |n, say| {
                let vs: Vec<_> = n.queue_vectors().collect();
                let hinted =
                    vs.iter().filter(|v| v.hint.known().is_some_and(|h| !h.is_empty() && h.len() < online)).count();
                if hinted == 0 {
                    return None;
                }
                if online > 1 && vs.iter().all(|v| v.asked.known().is_some_and(|a| a.len() > 1)) {
                    say.found(IrqFound::HintsUnused { interrupts: hinted as u32 }).fix(cx, Fix::planned());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A12",
        title: "interrupts come unevenly",
        reads: "interrupts by vector",
        guard: "more than 1,000 interrupts a second in all",
        condition: "one vector has more than three times the mean of those that are active",
        why: "One queue does most of the work: a few large flows, or a table that does not spread.",
        source: SCALING,
        rates: true,
        by_hand: &["ringwise watch --queues shows which; see the findings about RSS"],
        under: &["Q20", "Q19", "Q18", "Q23"],
        judge: |cx, say| {
            cx.each_rate(say, |_, l, t, say| {
                let mut by: BTreeMap<_, u64> = BTreeMap::new();
                for q in &l.queues {
                    if let (Some(irq), Some(n)) = (q.irq, q.interrupts) {
                        by.insert(irq, n);
                    }
                }
                let active: Vec<u64> = by.values().copied().filter(|n| t.per_second(*n) > 10.0).collect();
                let sum: u64 = active.iter().sum();
                if active.len() < 2 || t.per_second(sum) < 1000.0 {
                    return None;
                }
                let mean = sum as f64 / active.len() as f64;
                let max = active.iter().max().map_or(0.0, |m| *m as f64);
                if max > 3.0 * mean {
                    say.found(IrqFound::OneVectorBusy { vectors: active.len() as u32, times: max / mean });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A13",
        title: "too many interrupts",
        reads: "interrupts and packets by queue",
        condition: "more than 100,000 interrupts a second on a CPU, or one a packet above 50,000 packets a second",
        why: "Each interrupt costs a context switch and a wake-up; moderation joins them.",
        source: LIMITS,
        rates: true,
        more: "Drivers' own intervals are often chosen for benchmarks and not for the load at hand (Duyck, 2015): try them on yours.",
        by_hand: &["ethtool -C DEV adaptive-rx on, or a longer rx-usecs"],
        judge: |cx, say| {
            let t = cx.traffic(say)?;
            for (c, cpu) in &t.cpus {
                let rate = t.per_second(cpu.interrupts);
                if rate > 100_000.0 {
                    say.found(IrqFound::ManyInterrupts { cpu: *c, per_second: rate });
                }
            }
            cx.each_rate(say, |n, l, t, say| {
                if cx.goal_of(n) == Goal::Latency {
                    return None;
                }
                let irqs: u64 = l.of(Dir::Rx).filter_map(|q| q.interrupts).sum();
                let pps = t.per_second(l.rx_packets? + l.tx_packets.unwrap_or(0));
                if pps > 50_000.0 && t.per_second(irqs) >= pps {
                    say.found(IrqFound::InterruptAPacket { per_second: t.per_second(irqs), packets_per_second: pps });
                }
                Some(())
            });
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "A14",
        title: "too few interrupts",
        reads: "packets an interrupt, ring sizes",
        condition: "a queue has more packets an interrupt than half of its ring",
        why: "What arrives between two interrupts must fit into the ring; a little more and it overruns.",
        source: LIMITS,
        rates: true,
        more: "Too few interrupts cost three times (Duyck, 2015): the ring overruns, every packet waits, and where NAPI shares a CPU with the program a whole burst meets the socket's buffer before the program has read any of it.",
        by_hand: &["a shorter rx-usecs (ethtool -C DEV rx-usecs N), or a longer ring"],
        under: &["D15", "D04"],
        judge: |cx, say| {
            cx.each_rate(say, |n, l, t, say| {
                let ring = say.get(&n.rings)?.rx?.now;
                let seen: Vec<(u32, f64)> = l
                    .of(Dir::Rx)
                    // A queue that is polled all the time raises no interrupts. Moderation is not the reason.
                    .filter(|q| q.interrupts.is_some_and(|i| t.per_second(i) >= 50.0))
                    .filter_map(|q| Some((q.queue, q.packets_per_interrupt?)))
                    .filter(|(_, p)| *p > f64::from(ring) / 2.0)
                    .collect();
                if let Some((q, p)) = seen.first() {
                    say.found(IrqFound::LongBatches { packets: *p, queue: *q, ring });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A15",
        title: "interfaces pile up on the same CPUs",
        reads: "effective_affinity_list of all interfaces",
        needs: &[Needs::Interrupts],
        guard: "more than one interface",
        condition: "a CPU takes more queues of all interfaces than a near one must, and the plan has a less loaded one",
        ours: Some(""),
        judge: |cx, say| planned::judge("A15", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "A16",
        title: "changed since it was applied",
        reads: "the record of transactions, and everything that it holds",
        guard: "something applied by ringwise is in force",
        condition: "a setting differs from what was applied",
        why: "Defaults come back after a driver reload, a channel change, a program that tunes too, or by somebody's hand.",
        source: "ringwise verify",
        ours: Some("--take-over"),
        by_hand: &["what moved and when: ringwise verify; keep it: ringwise adopt DEV"],
        under: &[
            "A01", "A02", "A03", "A04", "A06", "A08", "A09", "A15", "Q04", "Q05", "Q07", "Q09", "Q10", "Q11", "Q14",
            "Q15", "Q16", "Q19", "Q20", "Q27", "Q28", "M01", "M03", "M05", "M08", "M10", "M11", "M14", "R0.09",
            "R0.12", "R0.13", "R1.07", "R2.03", "R4.02", "R4.04", "R4.05", "R4.06", "H07", "W01", "Q18",
        ],
        judge: |cx, say| {
            let drift = cx.i.drift.as_ref()?;
            let mut by: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
            for (dev, what) in drift {
                if cx.is_asked(dev.as_deref()) {
                    by.entry(dev.as_deref()).or_default().push(what);
                }
            }
            for (dev, list) in by {
                match dev {
                    Some(d) => say.at(d),
                    None => say.of_host(),
                }
                let settings = list.into_iter().map(str::to_string).collect();
                say.found(IrqFound::Drift { settings }).fix(cx, Fix::take_over());
            }
            say.of_host();
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "A17",
        title: "interrupts that nobody can move",
        reads: "mode bits of smp_affinity",
        condition: "the kernel manages them",
        severity: Severity::Info,
        why: "The driver left the placement to the kernel, which spreads them over all CPUs and keeps it so.",
        source: "kernel parameters: isolcpus=managed_irq",
        by_hand: &["to keep them off CPUs: boot with isolcpus=managed_irq,LIST (kernel 5.6 and later)"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let fixed: Vec<&str> = n
                    .queue_vectors()
                    .filter(|v| matches!(v.movable, Movable::No(_)))
                    .filter_map(|v| v.names.first().map(String::as_str))
                    .collect();
                if !fixed.is_empty() {
                    let of = n.queue_vectors().count() as u32;
                    say.found(IrqFound::Immovable { interrupts: fixed.len() as u32, of });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A18",
        title: "queue without an interrupt",
        reads: "channels, queues, netdev-genl, msi_irqs, /proc/interrupts",
        guard: "the interface has interrupts of queues, and it can be read how many queues are in use",
        condition: "a queue in use has none that is known",
        severity: Severity::Info,
        why: "It shares an interrupt under a name that says nothing, or is only there for AF_XDP. It is left out of the layout.",
        source: "kernel documentation, networking/napi",
        by_hand: &["ringwise show DEV tells which, and how the others were found"],
        confidence: Confidence::Likely,
        judge: |cx, say| {
            cx.each(say, |n, say| {
                n.queue_vectors().next()?;
                // Without the number of channels, the extra queues of AF_XDP in sysfs would be taken for queues of the
                // NIC.
                if n.channels.unread().is_some() {
                    return say.get(&n.channels).map(|_| ());
                }
                let lost: Vec<u32> = (0..cx.rx_queues(n)).filter(|q| n.vector_of(Dir::Rx, *q).is_none()).collect();
                if !lost.is_empty() {
                    let unknown = n.vectors.iter().filter(|v| v.role == Serves::Unknown).count();
                    say.found(IrqFound::NoInterruptKnown { queues: lost, unknown: unknown as u32 });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A19",
        title: "NAPI threads without a CPU",
        reads: "threaded, the CPUs of its threads",
        guard: "threaded NAPI",
        condition: "a thread may run on all CPUs",
        why: "The scheduler moves the work of the queue from core to core; kept on the CPU of its interrupt it finds its data in the cache.",
        source: "kernel documentation, networking/napi",
        ours: Some(""),
        under: &["R0.13"],
        judge: |cx, say| {
            let online = &cx.s.topology.online;
            cx.each(say, |n, say| {
                let napi = n.napi.known()?;
                let threads: Vec<_> = napi.instances.iter().filter(|i| i.thread.is_some()).collect();
                if threads.is_empty() || online.len() < 2 {
                    return None;
                }
                let loose: Vec<u32> = threads
                    .iter()
                    .filter(|i| i.thread.as_ref().and_then(|t| t.cpus.known()).is_some_and(|c| online.is_subset(c)))
                    .flat_map(|i| i.rx.clone())
                    .collect();
                if !loose.is_empty() {
                    say.found(IrqFound::ThreadsAnywhere { queues: loose }).fix(cx, Fix::planned());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A20",
        title: "a pair on two cores",
        reads: "names and CPUs of receive and transmit interrupts, ip_forward",
        guard: "a host that forwards; receive and transmit queues with interrupts of their own",
        condition: "the two of a pair go to different cores",
        why: "What is received on one core is sent on another: for forwarding the two belong together.",
        source: "Multi-queue network interfaces with SMP on Linux (Greenhost)",
        ours: Some(""),
        under: &["A01", "A03", "A04", "A02", "R0.09", "R0.12"],
        judge: |cx, say| {
            if !cx.forwards() {
                return None;
            }
            cx.each(say, |n, say| {
                let pairs = cx.rx_queues(n).min(say.take(cx.tx_queues(n))?);
                if (0..pairs).all(|q| n.vector_of(Dir::Rx, q).is_none_or(|v| v.tx().contains(&q))) {
                    return None;
                }
                let split: Vec<u32> = (0..pairs)
                    .filter(|q| match (cx.irq_cpu(n, Dir::Rx, *q), cx.irq_cpu(n, Dir::Tx, *q)) {
                        (Some(a), Some(b)) => a != b && !cx.s.topology.siblings_of(a).contains(b),
                        _ => false,
                    })
                    .collect();
                if !split.is_empty() {
                    say.found(IrqFound::PairsApart { queues: split }).fix(cx, Fix::planned());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "R0.09",
        title: "a CPU that the goal does not use for this queue",
        reads: "smp_affinity_list",
        needs: &[Needs::Interrupts],
        condition: "the goal, an option or the order of the queues of a forwarding host requires another CPU",
        severity: Severity::Info,
        ours: Some(""),
        judge: |cx, say| planned::judge("R0.09", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "R0.12",
        title: "a pair on one CPU",
        reads: "smp_affinity_list",
        needs: &[Needs::Interrupts],
        condition: "the plan lays the pair on a CPU of its own",
        severity: Severity::Info,
        ours: Some(""),
        judge: |cx, say| planned::judge("R0.12", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "R0.13",
        title: "NAPI thread away from its queue",
        reads: "the CPUs of NAPI threads",
        guard: "threaded NAPI",
        condition: "the plan has another CPU for the thread",
        ours: Some(""),
        under: &["A01", "A02", "A03", "A04"],
        judge: |cx, say| planned::judge("R0.13", cx, say),
        ..Rule::BASE
    },
];

//! Rules about interrupts and the CPUs that handle them.

use std::collections::BTreeMap;

use ringwise_model::{CpuId, CpuSet, Dir, Fact, Goal, Movable, Role as Serves};

use crate::finding_sink::SteeringKind;
use crate::fix::PlanArguments;
use crate::found::IrqFound;
use crate::needs::RequiredFact;
use crate::planned;
use crate::rule::Rule;
use crate::severity::{Confidence, Severity};

const SCALING: &str = "kernel documentation, networking/scaling";
const LIMITS: &str = "Pushing the Limits of Kernel Networking (Duyck, 2015)";
const IRQ: &str = "kernel documentation, core-api/irq/irq-affinity";

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "A01",
        title: "queues share a CPU",
        reads: "smp_affinity_list and effective_affinity_list of the queue interrupts",
        needs: &[RequiredFact::Interrupts],
        guard: "the device has more than one queue, and the host more than one CPU",
        condition: "one CPU handles nine tenths of the device's queue interrupts, or more of them than an even distribution needs; an interrupt that is set to one CPU and has not moved there yet (pending) counts on that CPU",
        confirm: "cat /proc/irq/N/effective_affinity_list for the device's interrupts; ringwise show DEV lists queues with their CPUs",
        ours: Some(""),
        judge: |cx, say| planned::judge("A01", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "A02",
        title: "interrupt is not pinned",
        other_severity: "info if every interrupt is on the planned CPU at the moment",
        reads: "smp_affinity_list of the queue interrupts",
        needs: &[RequiredFact::Interrupts],
        guard: "the plan covers the interface, and its interrupts are matched to queues and can be moved",
        condition: "the interrupt may go to more than one CPU, or its CPU is unknown",
        confirm: "cat /proc/irq/N/smp_affinity_list shows more than one CPU",
        more: "With goal forward, queues with the same number belong on the same CPU on every port, so that one CPU receives and sends a flow; the finding names interrupts that are elsewhere (ringwise help forward).",
        ours: Some(""),
        under: &["A01", "A03"],
        judge: |cx, say| planned::judge("A02", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "A03",
        title: "interrupt on a remote node",
        other_severity: "error if the distance between the nodes is above 20 (another CPU socket) and a local CPU has no queue of the interface; info, without a fix, with goal forward if every local CPU has one and the plan carries less traffic by its model",
        reads: "numa_node, effective_affinity_list, node distances",
        needs: &[RequiredFact::Interrupts, RequiredFact::Node],
        guard: "the host has more than one node, and the node of the device is known",
        condition: "the CPU of the interrupt is on another node, and the plan uses a local one",
        confirm: "cat /sys/class/net/DEV/device/numa_node, and compare with the node of the CPU in /proc/irq/N/effective_affinity_list (lscpu -e)",
        ours: Some(""),
        more: "The local caches already hold the packet: with DDIO (Xeon E5 and later) the device writes to the cache of its own socket without a detour through memory. A remote CPU fetches every line over the link between the sockets.",
        also: &["R1.02"],
        judge: |cx, say| planned::judge("A03", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "A04",
        title: "two queues on one physical core",
        reads: "effective_affinity_list, thread_siblings_list",
        needs: &[RequiredFact::Interrupts],
        guard: "the plan covers the interface, its interrupts are matched to queues and can be moved, and cores have several hardware threads",
        condition: "two queue interrupts go to threads of one core, although a core of the node has none; with goal forward also a core of another node at a distance of at most 12",
        confirm: "compare the CPUs in effective_affinity_list with /sys/devices/system/cpu/cpuN/topology/thread_siblings_list",
        ours: Some(""),
        judge: |cx, say| planned::judge("A04", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "A06",
        title: "irqbalance moves pinned interrupts",
        reads: "irqbalance's process, command line and socket; smp_affinity_list",
        needs: &[RequiredFact::Interrupts],
        guard: "irqbalance runs",
        condition: "interrupts that are pinned to one CPU are not banned in irqbalance, or their ban is lost when it restarts",
        confirm: "pgrep -a irqbalance shows its options (--banirq, --policyscript); its socket answers the command setup with the banned interrupts",
        ours: Some(""),
        judge: |cx, say| planned::judge("A06", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "A07",
        title: "no program spreads the interrupts",
        reads: "processes, smp_affinity_list, effective_affinity_list",
        guard: "more than one queue; irqbalance does not run",
        condition: "every queue interrupt may go to several CPUs, and all of them go to one CPU",
        confirm: "pgrep irqbalance prints nothing; /proc/interrupts counts the device's interrupts on one CPU only",
        why: "Without irqbalance and without pinning, the kernel or the interrupt controller chooses the CPU and does not know about queues. Here it chose one CPU for all interrupts.",
        source: IRQ,
        ours: Some(""),
        under: &["A01", "A02", "A03"],
        judge: |cx, say| {
            let programs = say.get(&cx.s.host.rivals)?;
            if programs.iter().any(|r| r == "irqbalance") || cx.s.topology.online.len() < 2 {
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
                        .fix(cx, PlanArguments::planned());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A08",
        title: "isolated CPU disturbed",
        reads: "isolcpus, nohz_full, isolated cgroup partitions, CPUs that a kubelet or container runtime keeps free, masks of interrupts and RPS",
        guard: "CPUs are isolated",
        condition: "a queue interrupt or RPS uses an isolated CPU",
        confirm: "compare /sys/devices/system/cpu/isolated and nohz_full with effective_affinity_list and rps_cpus",
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
                        .fix_planned(cx, SteeringKind::RpsCpus);
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
        guard: "the CPUs of the mask are known; a mask that could not be read is skipped",
        condition: "a mask names an offline CPU",
        confirm: "compare /sys/devices/system/cpu/online with rps_cpus, xps_cpus and smp_affinity_list",
        why: "Work for that CPU goes elsewhere: RPS leaves the packets on the CPU that received them, XPS falls back to the hash, an interrupt moves to another CPU. The kernel refuses such an interrupt mask, but a CPU can go offline later.",
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
                    // A mask with several CPUs may include offline ones without harm.
                    if let Some(d) =
                        v.asked.known().filter(|a| a.len() == 1).map(|a| a.difference(online)).filter(|d| !d.is_empty())
                    {
                        seen.entry(("irq_cpus", d)).or_default().0.extend(v.rx().iter().chain(v.tx()));
                    }
                }
                for ((knob, cpus), (mut q, rest)) in seen {
                    q.sort();
                    q.dedup();
                    let sets = q.iter().map(|q| PlanArguments::set(n.name(), format!("{knob}.{q}"), &rest));
                    let fix = PlanArguments::all(sets);
                    let f = say.found(IrqFound::OfflineCpu { of: knob.to_string(), queues: q, cpus });
                    match knob {
                        "irq_cpus" => f.fix(cx, PlanArguments::planned()),
                        // `--set` cannot express an empty mask: only the plan can clear it.
                        "rps_cpus" => f.fix_planned(cx, SteeringKind::RpsCpus),
                        _ if rest.is_empty() => f.fix_planned(cx, SteeringKind::XpsCpus),
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
        title: "interrupt is not on the configured CPU",
        reads: "smp_affinity_list, effective_affinity_list, /sys/kernel/debug/irq/domains/VECTOR (column avl)",
        guard: "the configured CPUs of the interrupt and the CPU that handles it are known",
        condition: "the CPU that handles the interrupt is not one of the configured CPUs",
        confirm: "compare smp_affinity_list and effective_affinity_list of the interrupt in /proc/irq/N",
        why: "The move is pending (on x86 without interrupt remapping it happens with the next interrupt), or the CPU had no free vector when the kernel tried to move the interrupt.",
        source: IRQ,
        by_hand: &[
            "if the CPU has free vectors: send traffic through the queue and check again; if their number is unknown, dmesg reports when vectors run out (ENOSPC, vector space exhaustion)",
            "if vectors run out, choose another CPU, or let devices request fewer: ethtool -L DEV combined N; on ice since Linux 6.15 also devlink dev param set pci/ADDRESS name msix_vec_per_pf_max value N cmode driverinit, then devlink dev reload pci/ADDRESS, which interrupts traffic (drivers/net/ethernet/intel/ice/devlink/devlink.c: ice_devlink_msix_max_pf_validate, ice_set_min_max_msix)",
            "io_eq_size and event_eq_size of mlx5 do not help: they are lengths of event queues, 64 to 4096 entries, not numbers of vectors (drivers/net/ethernet/mellanox/mlx5/core/devlink.c: mlx5_devlink_eq_depth_validate)",
        ],
        more: "With interrupt remapping the kernel moves an interrupt at the write, unless an earlier move is not complete. On x86, a kernel with CONFIG_GENERIC_IRQ_DEBUGFS shows root how many vectors each CPU has left (kernel/irq/matrix.c: irq_matrix_debug_show). Without this file, and on other architectures, the two causes cannot be distinguished. Vectors of managed interrupts are reserved and not in this number.",
        confidence: Confidence::Likely,
        severity: Severity::Info,
        other_severity: "warning if the configured CPUs have no free vector",
        judge: super::irq_elsewhere::judge,
        ..Rule::BASE
    },
    Rule {
        id: "A11",
        title: "the driver's affinity hints are not used",
        reads: "affinity_hint, smp_affinity_list",
        guard: "irqbalance does not run",
        condition: "the driver proposes CPUs for its interrupts, and every interrupt may go to several CPUs",
        confirm: "compare affinity_hint and smp_affinity_list of the interrupts in /proc/irq/N",
        severity: Severity::Info,
        why: "The driver proposes CPUs for each interrupt, but the masks do not follow the proposal: some drivers only publish it, or a program has widened the masks since.",
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
                    say.found(IrqFound::HintsUnused { interrupts: hinted as u32 }).fix(cx, PlanArguments::planned());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A12",
        title: "interrupt rates are uneven",
        reads: "interrupts by vector",
        guard: "more than 1,000 interrupts per second in total",
        condition: "one vector has more than three times the mean of the active vectors",
        confirm: "ringwise watch --queues; watch -d cat /proc/interrupts",
        why: "One queue does most of the work: a few large flows, or an RSS table that does not spread the flows.",
        source: SCALING,
        rates: true,
        by_hand: &["ringwise watch --queues shows the queue; see the findings about RSS"],
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
        guard: "the interrupts are in both samples; the second case needs packets of the interface in both samples and another goal than latency",
        condition: "more than 100,000 interrupts per second on a CPU, or at least one interrupt per packet above 50,000 packets per second",
        confirm: "ringwise watch --queues; vmstat 1 (column in)",
        why: "Each interrupt stops the running program, and costs the switch to the handler and back. Interrupt moderation combines several interrupts into one.",
        source: LIMITS,
        rates: true,
        more: "Drivers often choose their default intervals for benchmarks and not for your load (Duyck, 2015): measure with your traffic.",
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
        reads: "packets per interrupt, ring sizes",
        guard: "the size of the ring is known, and the queue raises at least 50 interrupts per second",
        condition: "a queue gets more packets per interrupt than half of its ring holds",
        confirm: "ringwise watch --queues (packets per interrupt); ethtool -g DEV shows the ring size",
        why: "The packets that arrive between two interrupts must fit into the ring; with a few more it overflows.",
        source: LIMITS,
        rates: true,
        more: "Too few interrupts have three costs (Duyck, 2015): the ring overflows, every packet waits, and if NAPI shares a CPU with the program, a whole burst reaches the socket buffer before the program has read any of it.",
        by_hand: &["use a shorter rx-usecs (ethtool -C DEV rx-usecs N), or a longer ring"],
        under: &["D15", "D04"],
        judge: |cx, say| {
            cx.each_rate(say, |n, l, t, say| {
                let ring = say.get(&n.rings)?.rx?.now;
                let seen: Vec<(u32, f64)> = l
                    .of(Dir::Rx)
                    // A queue that is polled all the time raises no interrupts, so moderation is not the reason for the
                    // rate.
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
        title: "interfaces crowd the same CPUs",
        other_severity: "info if the interface received fewer than 1,000 packets per second",
        reads: "effective_affinity_list of all interfaces",
        needs: &[RequiredFact::Interrupts],
        guard: "more than one interface",
        condition: "a CPU handles more queues, counted over all interfaces, than an even distribution over local CPUs needs, and the plan has a CPU with fewer queues",
        confirm: "ringwise show lists the CPUs of all interfaces' queues",
        ours: Some(""),
        judge: |cx, say| planned::judge("A15", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "A16",
        title: "settings changed since apply",
        reads: "the journal of transactions, and every setting in it",
        guard: "a transaction of ringwise is active",
        condition: "a setting differs from what was applied",
        confirm: "ringwise verify lists each setting with its applied and its present value",
        why: "Settings return to their defaults after a driver reload or a channel change, or a competing program or a manual change overwrites them.",
        source: "ringwise verify",
        ours: Some("--take-over"),
        of_applied: true,
        by_hand: &["ringwise verify shows what changed and when; ringwise adopt DEV keeps the new values"],
        under: &[
            "A01", "A02", "A03", "A04", "A06", "A08", "A09", "A15", "Q04", "Q05", "Q07", "Q09", "Q10", "Q11", "Q14",
            "Q15", "Q16", "Q19", "Q20", "Q27", "Q28", "M01", "M03", "M05", "M08", "M10", "M11", "M14", "R0.09",
            "R0.12", "R0.13", "R1.07", "R2.03", "R4.02", "R4.04", "R4.05", "R4.06", "H07", "W01", "Q18",
        ],
        judge: |cx, say| {
            let drift = cx.i.drift.as_ref()?;
            let mut by: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
            for (dev, what) in drift {
                if cx.is_selected(dev.as_deref()) {
                    by.entry(dev.as_deref()).or_default().push(what);
                }
            }
            for (dev, list) in by {
                match dev {
                    Some(d) => say.at(d),
                    None => say.of_host(),
                }
                let settings = list.into_iter().map(str::to_string).collect();
                say.found(IrqFound::Drift { settings }).fix(cx, PlanArguments::take_over());
            }
            say.of_host();
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "A17",
        title: "interrupts that cannot be moved",
        reads: "mode bits of smp_affinity",
        guard: "the interface has interrupts that are matched to queues",
        condition: "the kernel manages the interrupts and rejects changes of their CPUs",
        confirm: "writing to /proc/irq/N/smp_affinity fails with EIO",
        severity: Severity::Info,
        why: "The driver leaves the placement to the kernel, which spreads the interrupts over all CPUs and does not let programs move them.",
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
        guard: "queue interrupts of the interface are known, and so is the number of queues in use",
        condition: "no interrupt is known for a queue in use",
        confirm: "ringwise show DEV; names of the interrupts in /proc/interrupts",
        severity: Severity::Info,
        why: "The queue shares an interrupt whose name does not show its purpose, or exists only for AF_XDP. The plan skips it.",
        source: "kernel documentation, networking/napi",
        by_hand: &["ringwise show DEV lists the queues, and how their interrupts were found"],
        confidence: Confidence::Likely,
        judge: |cx, say| {
            cx.each(say, |n, say| {
                n.queue_vectors().next()?;
                // Without the number of channels, the extra queues of AF_XDP in sysfs cannot be distinguished from
                // queues of the NIC.
                if n.channels.unread().is_some() {
                    return say.get(&n.channels).map(|_| ());
                }
                let unmatched: Vec<u32> = (0..cx.rx_queues(n)).filter(|q| n.vector_of(Dir::Rx, *q).is_none()).collect();
                if !unmatched.is_empty() {
                    let unknown = n.vectors.iter().filter(|v| v.role == Serves::Unknown).count();
                    say.found(IrqFound::NoInterruptKnown { queues: unmatched, unknown: unknown as u32 });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A19",
        title: "NAPI threads are not pinned",
        reads: "threaded, the CPUs of its threads",
        guard: "threaded NAPI is on",
        condition: "a NAPI thread may run on all CPUs",
        confirm: "taskset -pc of the threads that ps -e lists as napi/DEV-N",
        why: "The scheduler moves the work of the queue from core to core. A thread that is pinned to the CPU of the queue's interrupt finds its data in the cache.",
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
                    say.found(IrqFound::ThreadsAnywhere { queues: loose }).fix(cx, PlanArguments::planned());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "A20",
        title: "queue pair on two cores",
        reads: "names and CPUs of receive and transmit interrupts, ip_forward",
        guard: "the host forwards, and receive and transmit queues have separate interrupts",
        condition: "the receive and the transmit interrupt of a pair go to different cores",
        confirm: "compare effective_affinity_list of the receive and the transmit interrupt; ringwise show DEV",
        why: "Packets that one core receives are sent on another core. For forwarding, both belong on the same core.",
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
                    say.found(IrqFound::PairsApart { queues: split }).fix(cx, PlanArguments::planned());
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "R0.09",
        title: "the goal prefers another CPU for an interrupt",
        reads: "smp_affinity_list",
        needs: &[RequiredFact::Interrupts],
        guard: "the plan covers the interface, and its interrupts are matched to queues and can be moved",
        condition: "the present CPU is no fault, but the plan uses another one: the goal or an option excludes the present one, its L3 cache serves more queues, \
                    the plan gives it to another interface, or queues with the same number of all ports share a CPU",
        confirm: "ringwise plan --goal GOAL shows the CPU and the reason",
        severity: Severity::Info,
        ours: Some(""),
        judge: |cx, say| planned::judge("R0.09", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "R0.12",
        title: "queue pair gets its own CPU",
        reads: "smp_affinity_list",
        needs: &[RequiredFact::Interrupts],
        guard: "the plan covers the interface, and its interrupts are matched to queues and can be moved",
        condition: "the plan gives the queue pair a CPU of its own",
        confirm: "ringwise show DEV",
        severity: Severity::Info,
        ours: Some(""),
        judge: |cx, say| planned::judge("R0.12", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "R0.13",
        title: "NAPI thread is not on the CPU of its queue",
        reads: "the CPUs of NAPI threads",
        guard: "threaded NAPI is on",
        condition: "the plan has another CPU for the thread",
        confirm: "taskset -pc of the threads that ps -e lists as napi/DEV-N",
        ours: Some(""),
        under: &["A01", "A02", "A03", "A04"],
        judge: |cx, say| planned::judge("R0.13", cx, say),
        ..Rule::BASE
    },
];

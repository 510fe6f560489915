//! Rules about threads of programs, the CPUs of interrupts and the nodes of interfaces. They need two samples of the running host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ringwise_model::{BusyThread, Cause, CpuId, CpuSet, Fact, Goal, Node, NodeId, PermittedPlaces, shell};

use crate::finding_sink::FindingSink;
use crate::found::{ProgramFound, RemoteMemory, RemoteThread, ThreadAt};
use crate::rule::Rule;
use crate::rule_context::RuleContext;
use crate::severity::{Confidence, Severity};
use crate::traffic::HostTraffic;

const NUMA: &str = "NUMA, Multi-Queue NICs and CPU Affinity";

/// Interrupts or packets of a queue per second from which its CPU counts: below, they do not disturb a program.
const PER_SECOND: f64 = 100.0;

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "A05",
        title: "program on the other hardware thread of an interrupt's core",
        reads: "/proc/PID/stat, /proc/PID/task/TID/stat of busy processes, interrupts and packets by queue, thread_siblings_list",
        guard: "cores have several hardware threads, and queues have at least 100 interrupts or packets per second",
        condition: "a thread of a program used at least 20 % of a CPU and was on the same one in both samples, the other hardware thread of its core handles queue interrupts, and a core of the node handles none and is not kept free for other work",
        confirm: "ps -eLo pid,tid,psr,pcpu,comm --sort=-pcpu (column PSR); /sys/devices/system/cpu/cpuN/topology/thread_siblings_list",
        severity: Severity::Info,
        other_severity: "warning with goal latency",
        confidence: Confidence::Likely,
        why: "The hardware threads of a core share its units and caches. While one of them handles packets, a program on the other one is slower, and the packets are handled more slowly.",
        source: NUMA,
        rates: true,
        more: "At high packet rates the two starve each other, and packets may be lost. The rule finds nothing where every core of the node handles interrupts, because there is no better place. Captures contain no threads.",
        by_hand: &["taskset -pc CPUS TID, or CPUAffinity= in the unit of the program"],
        judge: |cx, say| {
            let (t, threads) = samples(cx, say)?;
            if let Fact::Unknown(u) = &cx.s.topology.nodes {
                say.unread(u);
                return None;
            }
            let busy = interrupt_cpus(cx, t);
            let topology = &cx.s.topology;
            if busy.iter().all(|c| topology.siblings_of(c).len() < 2) {
                return None;
            }
            let (isolated, siblings) = (topology.isolated_all(), topology.beside(&busy));
            let beside = |th: &BusyThread| {
                let cpu = stays(th).filter(|c| siblings.contains(*c) && !isolated.contains(*c))?;
                let other = topology.siblings_of(cpu).intersection(&busy).first()?;
                (!free(cx, &busy, topology.node_of(cpu)).is_empty()).then(|| at(th, cpu, other))
            };
            let found: Vec<ThreadAt> = threads.iter().filter_map(beside).collect();
            if let Some((cpu, tid)) = found.first().map(|t| (t.cpu, t.tid)) {
                let severity = if cx.goal() == Goal::Latency { Severity::Warning } else { Severity::Info };
                let free = free(cx, &busy, topology.node_of(cpu));
                let command = format!("taskset -pc {free} {tid}");
                say.found(ProgramFound::BesideInterrupts { threads: found, free })
                    .severity(severity)
                    .manual_command(command);
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "H14",
        title: "program on a remote node",
        reads: "/proc/PID/stat, /proc/PID/task/TID/stat and /proc/PID/fd of busy processes, /proc/net/tcp, tcp6, udp and udp6, addresses and nodes of interfaces",
        guard: "the host has several nodes, and an interface with a known node receives or sends at least 100 packets per second",
        condition: "a thread of a program used at least 20 % of a CPU and was on the same node in both samples, its process has connections over such interfaces, and all of these are on other nodes",
        confirm: "ps -eLo pid,tid,psr,pcpu,comm --sort=-pcpu (column PSR); ss -tunp (local address); /sys/class/net/DEV/device/numa_node",
        severity: Severity::Info,
        other_severity: "warning with goal latency",
        confidence: Confidence::Likely,
        why: "The driver puts packets into memory of the interface's node. A program on another node reads them over the link between the nodes, which takes longer and has less bandwidth.",
        source: NUMA,
        rates: true,
        more: "A process belongs to an interface by the local addresses of its connections, also through a bond or VLAN. Only sockets with a peer are judged: listening sockets and unconnected UDP sockets are not. Captures contain no threads.",
        by_hand: &["taskset -pc CPUS TID, or CPUAffinity= and NUMAPolicy= in the unit of the program"],
        judge: |cx, say| {
            let (t, threads) = samples(cx, say)?;
            if say.get(&cx.s.topology.nodes)?.len() < 2 {
                return None;
            }
            let connections = say.get(&t.connections)?;
            let isolated = cx.s.topology.isolated_all();
            // The user has chosen these CPUs for it.
            let placed = |th: &&BusyThread| th.cpus.iter().any(|c| isolated.contains(*c));
            let found: Vec<RemoteThread> =
                threads.iter().filter(|th| !placed(th)).filter_map(|th| remote(cx, t, connections, th)).collect();
            if let Some((tid, node)) = found.first().map(|t| (t.tid, t.dev_node)) {
                let kept = cx.i.intent.reserve.union(&cx.i.intent.exclude_cpus);
                let free = free(cx, &interrupt_cpus(cx, t), Some(node));
                let kept = kept.union(&isolated);
                let all = || cx.s.topology.node(node).map_or_else(CpuSet::new, |n| n.cpus.difference(&kept));
                let local = if free.is_empty() { all() } else { free };
                let severity = if cx.goal() == Goal::Latency { Severity::Warning } else { Severity::Info };
                let command = format!("taskset -pc {local} {tid}");
                let found =
                    say.found(ProgramFound::OnRemoteNode { threads: found, local: local.clone() }).severity(severity);
                if !local.is_empty() {
                    found.manual_command(command);
                }
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "H21",
        title: "real-time thread on a CPU of interrupts",
        reads: "/proc/PID/stat, /proc/PID/task/TID/stat of busy processes, interrupts and packets by queue",
        guard: "queues have at least 100 interrupts or packets per second",
        condition: "a thread of a program with policy SCHED_FIFO, SCHED_RR or SCHED_DEADLINE used at least 20 % of a CPU, and was in both samples on the same one, which handles queue interrupts",
        confirm: "ps -eLo pid,tid,psr,cls,pcpu,comm --sort=-pcpu (columns PSR and CLS: FF, RR or DLN)",
        severity: Severity::Error,
        confidence: Confidence::Likely,
        why: "ksoftirqd and threaded NAPI have a normal policy. While a real-time thread is busy, they do not run on its CPU, and the packets of its queues wait or are lost.",
        source: "kernel documentation, scheduler/sched-rt-group; sched(7)",
        rates: true,
        more: "Captures contain no threads.",
        by_hand: &["taskset -pc CPUS TID"],
        judge: |cx, say| {
            let (t, threads) = samples(cx, say)?;
            let busy = interrupt_cpus(cx, t);
            if busy.is_empty() {
                return None;
            }
            let there = |th: &&BusyThread| th.real_time && stays(th).is_some_and(|c| busy.contains(c));
            let found: Vec<ThreadAt> = threads.iter().filter(there).map(|th| at(th, th.cpus[1], th.cpus[1])).collect();
            if !found.is_empty() {
                let cpus: CpuSet = found.iter().map(|t| t.cpu).collect();
                let excluded = cx.i.intent.exclude_cpus.union(&cpus).to_string();
                let words = ["ringwise", "plan"].map(str::to_string).into_iter().chain(cx.arguments());
                let command = shell::join(words.chain(["--exclude-cpus".to_string(), excluded]));
                say.found(ProgramFound::RealTimeOnInterruptCpu { threads: found }).manual_command(command);
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "H27",
        title: "memory of a program on a remote node",
        reads: "/proc/PID/stat, /proc/PID/task/TID/stat, /proc/PID/task/TID/status (Cpus_allowed_list, Mems_allowed_list) and /proc/PID/fd of busy processes, /proc/net/tcp, tcp6, udp and udp6, addresses and nodes of interfaces, meminfo of nodes",
        guard: "the host has several nodes, the kernel has cpusets, and an interface with a known node receives or sends at least 100 packets per second",
        condition: "a thread of a program used at least 20 % of a CPU, its process has connections over such interfaces, and its cpuset permits no memory of the nodes whose CPUs it may use, or none of those nodes of the interfaces whose CPUs it may use; nodes without memory do not count",
        confirm: "grep allowed_list /proc/PID/task/TID/status; numastat -p PID shows where the memory is; /sys/class/net/DEV/device/numa_node",
        severity: Severity::Info,
        other_severity: "warning with goal latency",
        confidence: Confidence::Likely,
        why: "The program and the kernel copy every packet into or out of memory on another node, over the link between the nodes, even if the program runs on the right CPUs.",
        source: NUMA,
        rates: true,
        more: "Mems_allowed_list is the limit of the cpuset (kernel/cgroup/cpuset.c: cpuset_task_status_allowed). A memory policy that the program has for itself (NUMAPolicy=, numactl, set_mempolicy) can only choose among these nodes, and is not in it. Only /proc/PID/numa_maps shows policies and the nodes of pages, and check does not read it: the kernel walks all page tables of the process for it while it holds the lock of its address space (fs/proc/task_mmu.c: show_numa_map), which delays a large program. Without a policy, memory comes from the node of the CPU that uses it first, if the cpuset permits this node.",
        by_hand: &[
            "AllowedMemoryNodes= in the unit of the program, or cpuset.mems of its control group, with the nodes that the finding names as excluded; then NUMAPolicy= and NUMAMask= as in the drop-in that ringwise plan prints",
            "Since Linux 5.15, a change of cpuset.mems also moves the memory of running programs (kernel documentation, admin-guide/cgroup-v2); with cgroup v1 or an earlier kernel, restart the program",
        ],
        judge: |cx, say| {
            let (t, threads) = samples(cx, say)?;
            let nodes = say.get(&cx.s.topology.nodes)?;
            if nodes.len() < 2 {
                return None;
            }
            let connections = say.get(&t.connections)?;
            let mut found = Vec::new();
            for th in threads {
                let Some(devs) = used(cx, t, connections, th).filter(|d| !d.is_empty()) else { continue };
                let Some(permitted) = say.get(&th.permitted) else { continue };
                found.extend(remote_memory(cx, say, nodes, (th, permitted), devs));
            }
            if !found.is_empty() {
                let severity = if cx.goal() == Goal::Latency { Severity::Warning } else { Severity::Info };
                say.found(ProgramFound::MemoryOnRemoteNode { threads: found }).severity(severity);
            }
            Some(())
        },
        ..Rule::BASE
    },
];

/// The thread, if all interfaces with traffic that the connections of its process use are on other nodes.
fn remote(
    cx: &RuleContext,
    t: &HostTraffic,
    connections: &BTreeMap<u32, BTreeSet<IpAddr>>,
    th: &BusyThread,
) -> Option<RemoteThread> {
    let [first, last] = th.cpus.map(|c| cx.s.topology.node_of(c));
    let node = last.filter(|_| first == last)?;
    let used = used(cx, t, connections, th)?;
    if used.iter().any(|(_, dev_node)| *dev_node == node) {
        return None;
    }
    let (dev, dev_node) = used.into_iter().next()?;
    let (name, cpu, percent) = (th.name.clone(), th.cpus[1], th.percent);
    Some(RemoteThread { name, pid: th.pid, tid: th.tid, cpu, node, percent, dev, dev_node })
}

/// Interfaces with traffic that the connections of the thread's process use, with their nodes. `None`: some of its traffic may
/// use another one, because an interface is not known, or its traffic or node is unknown.
fn used(
    cx: &RuleContext,
    t: &HostTraffic,
    connections: &BTreeMap<u32, BTreeSet<IpAddr>>,
    th: &BusyThread,
) -> Option<Vec<(String, NodeId)>> {
    let mut used = Vec::new();
    for address in connections.get(&th.pid)? {
        let nics = cx.s.interfaces_with(*address);
        if nics.is_empty() {
            return None;
        }
        for n in nics {
            let packets = t.links.get(n.name()).and_then(|l| Some(l.rx_packets? + l.tx_packets?))?;
            if t.per_second(packets) >= PER_SECOND {
                used.push((n.name().to_string(), *n.node.known()?));
            }
        }
    }
    Some(used)
}

/// The thread, if its cpuset permits no memory of any node whose CPUs it may use, or of any interface's node.
fn remote_memory(
    cx: &RuleContext,
    say: &mut FindingSink,
    nodes: &BTreeMap<NodeId, Node>,
    (th, permitted): (&BusyThread, &PermittedPlaces),
    devs: Vec<(String, NodeId)>,
) -> Option<RemoteMemory> {
    let memory_nodes: BTreeSet<NodeId> =
        permitted.memory_nodes.iter().copied().filter(|n| nodes.contains_key(n)).collect();
    // Those of the list that the cpuset excludes, if it excludes all that have memory.
    let mut excluded = |all: BTreeSet<NodeId>| -> Option<BTreeSet<NodeId>> {
        if !all.is_disjoint(&memory_nodes) {
            return None;
        }
        let mut out = BTreeSet::new();
        for node in all {
            if say.get(&nodes.get(&node)?.memory)?.total_bytes > 0 {
                out.insert(node);
            }
        }
        (!out.is_empty()).then_some(out)
    };
    let own: BTreeSet<NodeId> = permitted.cpus.iter().filter_map(|c| cx.s.topology.node_of(c)).collect();
    // A program that has CPUs and memory of another node than the interface's is the case of H14.
    let near: BTreeSet<NodeId> = devs.iter().map(|(_, n)| *n).filter(|n| own.contains(n)).collect();
    let of_cpus = excluded(own);
    let of_devs = if of_cpus.is_none() { excluded(near) } else { None };
    let by_cpus = of_cpus.is_some();
    let excluded = of_cpus.or(of_devs)?;
    let devs = devs.into_iter().map(|(dev, _)| dev).collect();
    let (name, cpu, percent) = (th.name.clone(), th.cpus[1], th.percent);
    Some(RemoteMemory { name, pid: th.pid, tid: th.tid, cpu, percent, memory_nodes, excluded, by_cpus, devs })
}

fn samples<'a>(cx: &RuleContext<'a>, say: &mut FindingSink) -> Option<(&'a HostTraffic, &'a [BusyThread])> {
    let t = cx.traffic(say)?;
    // The exporter compares counters only.
    if matches!(&t.threads, Fact::Unknown(u) if u.cause == Cause::NotAsked) {
        say.needs_samples();
        return None;
    }
    Some((t, say.get(&t.threads)?))
}

/// CPUs that handle queues with traffic. While packets are polled, few interrupts are raised.
fn interrupt_cpus(cx: &RuleContext, t: &HostTraffic) -> CpuSet {
    let mut out = CpuSet::new();
    for (dev, link) in &t.links {
        for q in &link.queues {
            let active = [q.interrupts, q.packets].into_iter().flatten().any(|n| t.per_second(n) >= PER_SECOND);
            let pinned = || cx.irq_cpu(cx.s.nic(dev)?, q.dir, q.queue);
            if let Some(cpu) = q.cpu.or_else(pinned).filter(|_| active) {
                out.insert(cpu);
            }
        }
    }
    out
}

/// CPUs of this node on cores that handle no queue interrupt of an interface with a link, whether or not it has traffic. CPUs that are
/// kept free for other work are none of them.
fn free(cx: &RuleContext, busy: &CpuSet, node: Option<NodeId>) -> CpuSet {
    let vectors = cx.s.nics.iter().filter(|n| n.link_is_up()).flat_map(|n| n.queue_vectors());
    let taken = vectors.filter_map(|v| v.taken_by()).fold(busy.clone(), |all, c| all.union(c));
    let kept = cx.i.intent.reserve.union(&cx.i.intent.exclude_cpus);
    cx.s.topology.without_interrupts(&taken, node).difference(&kept)
}

/// The CPU of a thread that was on the same CPU in both samples.
fn stays(t: &BusyThread) -> Option<CpuId> {
    Some(t.cpus[1]).filter(|c| *c == t.cpus[0])
}

fn at(t: &BusyThread, cpu: CpuId, interrupts_on: CpuId) -> ThreadAt {
    ThreadAt { name: t.name.clone(), pid: t.pid, tid: t.tid, cpu, percent: t.percent, interrupts_on }
}

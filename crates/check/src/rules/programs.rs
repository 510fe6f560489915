//! Rules about threads of programs and the CPUs of interrupts. Both need two samples of the running host.

use ringwise_model::{BusyThread, CpuId, CpuSet, Goal};

use crate::finding_sink::FindingSink;
use crate::found::{ProgramFound, ThreadAt};
use crate::rule::Rule;
use crate::rule_context::RuleContext;
use crate::severity::{Confidence, Severity};
use crate::traffic::Traffic;

const NUMA: &str = "NUMA, Multi-Queue NICs and CPU Affinity";

/// Interrupts of queues per second from which a CPU counts: below, they do not disturb a program.
const INTERRUPTS_PER_SECOND: f64 = 100.0;

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "A05",
        title: "program on the other thread of an interrupt's core",
        reads: "/proc/PID/stat, /proc/PID/task/TID/stat of busy processes, interrupts by queue, thread_siblings_list",
        guard: "cores have several threads, queues raise at least 100 interrupts per second, and a core of the node handles none",
        condition: "a thread of a program used at least 20 % of a CPU, and its core also handles queue interrupts on its other thread",
        confirm: "ps -eLo pid,tid,psr,pcpu,comm --sort=-pcpu (column PSR); /sys/devices/system/cpu/cpuN/topology/thread_siblings_list",
        severity: Severity::Info,
        other_severity: "warning with goal latency",
        why: "Both threads of a core share its units and caches. While one of them handles packets, the program on the other one is slower, and the packets are too.",
        source: NUMA,
        rates: true,
        confidence: Confidence::Likely,
        more: "At high packet rates the two starve each other, and packets may be lost. The rule finds nothing where every core handles interrupts, because there is no better place.",
        by_hand: &["taskset -pc CPUS TID, or CPUAffinity= in the unit of the program"],
        judge: |cx, say| {
            let (t, threads) = samples(cx, say)?;
            let busy = interrupt_cpus(t);
            let all: CpuSet = cx.s.nics.iter().flat_map(|n| n.queue_vectors()).filter_map(|v| cx.at(v)).collect();
            let topology = &cx.s.topology;
            if busy.is_empty() || busy.iter().all(|c| topology.siblings_of(c).len() < 2) {
                return None;
            }
            let other = |c: CpuId| topology.siblings_of(c).intersection(&busy).iter().find(|b| *b != c);
            let beside = |th: &BusyThread| {
                let cpu = stays(th).filter(|c| !busy.contains(*c))?;
                Some(at(th, cpu, other(cpu)?))
            };
            let found: Vec<ThreadAt> = threads.iter().filter_map(beside).collect();
            let nodes: Vec<_> = found.iter().map(|t| topology.node_of(t.cpu)).collect();
            let usable = topology.online.difference(&topology.isolated_all());
            let is_free = |c: &CpuId| topology.siblings_of(*c).intersection(&all).is_empty() && !all.contains(*c);
            let free: CpuSet = usable.iter().filter(|c| nodes.contains(&topology.node_of(*c)) && is_free(c)).collect();
            if free.is_empty() {
                return None;
            }
            if let Some(first) = found.first().map(|t| t.tid) {
                let severity = if cx.goal() == Goal::Latency { Severity::Warning } else { Severity::Info };
                let command = format!("taskset -pc {free} {first}");
                say.found(ProgramFound::BesideInterrupts { threads: found, free }).severity(severity).by_hand(command);
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "H21",
        title: "real-time thread on a CPU of interrupts",
        reads: "/proc/PID/stat, /proc/PID/task/TID/stat of busy processes, interrupts by queue",
        guard: "queues raise at least 100 interrupts per second",
        condition: "a thread of a program with policy SCHED_FIFO, SCHED_RR or SCHED_DEADLINE used at least 20 % of a CPU that handles queue interrupts",
        confirm: "ps -eLo pid,tid,psr,cls,pcpu,comm --sort=-pcpu (columns PSR and CLS: FF, RR or DLN)",
        severity: Severity::Error,
        why: "ksoftirqd and threaded NAPI have a normal policy. While a real-time thread is busy, they do not run on its CPU, and the packets of its queues wait or are lost.",
        source: "kernel documentation, scheduler/sched-rt-group; sched(7)",
        rates: true,
        by_hand: &["taskset -pc CPUS TID moves the thread; ringwise plan --exclude-cpus CPUS moves the interrupts"],
        judge: |cx, say| {
            let (t, threads) = samples(cx, say)?;
            let busy = interrupt_cpus(t);
            if busy.is_empty() {
                return None;
            }
            let there = |th: &&BusyThread| th.real_time && stays(th).is_some_and(|c| busy.contains(c));
            let found: Vec<ThreadAt> = threads.iter().filter(there).map(|th| at(th, th.cpus[1], th.cpus[1])).collect();
            if !found.is_empty() {
                let cpus: CpuSet = found.iter().map(|t| t.cpu).collect();
                let command = format!("ringwise plan --exclude-cpus {cpus}");
                say.found(ProgramFound::RealTimeOnInterruptCpu { threads: found }).by_hand(command);
            }
            Some(())
        },
        ..Rule::BASE
    },
];

/// Captures contain samples of counters, but not of threads.
fn samples<'a>(cx: &RuleContext<'a>, say: &mut FindingSink) -> Option<(&'a Traffic, &'a [BusyThread])> {
    let t = cx.traffic(say)?;
    if t.threads.is_none() {
        say.needs_samples();
    }
    Some((t, t.threads.as_deref()?))
}

/// CPUs that handled the interrupts of queues with traffic.
fn interrupt_cpus(t: &Traffic) -> CpuSet {
    let queues = t.links.values().flat_map(|l| &l.queues);
    let busy = queues.filter(|q| q.interrupts.is_some_and(|n| t.per_second(n) >= INTERRUPTS_PER_SECOND));
    busy.filter_map(|q| q.cpu).collect()
}

/// The CPU of a thread that was on the same CPU in both samples.
fn stays(t: &BusyThread) -> Option<CpuId> {
    Some(t.cpus[1]).filter(|c| *c == t.cpus[0])
}

fn at(t: &BusyThread, cpu: CpuId, interrupts_on: CpuId) -> ThreadAt {
    ThreadAt { name: t.name.clone(), pid: t.pid, tid: t.tid, cpu, percent: t.percent, interrupts_on }
}

//! Rates for the rules.

use ringwise_check::{CpuTraffic, HostTraffic, LinkTraffic, QueueTraffic};
use ringwise_discover::Options;
use ringwise_discover::flow_path::connected_addresses;
use ringwise_model::{BusyThread, Cause, Fact, Snapshot, Unread};
use ringwise_observe::{Layout, LinkRates, ProcessTimes, Rates, Sampler};
use ringwise_sys::Host;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::args::Common;
use crate::cmd::{progress, sample};

/// Names the times of threads, where they were not read.
const THREADS: &str = "/proc/PID/task/TID/stat";
/// The same for the sockets of their processes.
const SOCKETS: &str = "/proc/PID/fd";

/// Takes two samples of this host. `None`: the host was away for a part of the time, for example suspended.
pub(super) fn live(host: &dyn Host, s: &Snapshot, time: Duration, common: &Common) -> Option<HostTraffic> {
    let layout = Layout::of(s, &[]);
    let mut sampler = Sampler::new(host, &layout, true);
    let first = sampler.read(host);
    let processes = ProcessTimes::read(host);
    let mut threads = Err(Unread::not_requested(THREADS));
    let halfway = || threads = processes.and_then(|p| p.busy_threads(host));
    progress::wait_and(host, time, "counting packets, interrupts and losses", common, halfway);
    let second = sampler.read(host);
    let mut threads = threads.and_then(|t| t.busy(host)).map_or_else(Fact::Unknown, Fact::Known);
    // Rules compare nodes only.
    let one_node = s.topology.nodes.known().is_some_and(|nodes| nodes.len() < 2);
    if let (false, Fact::Known(threads)) = (one_node, &mut threads) {
        ringwise_observe::read_permitted(host, threads);
    }
    let pids: BTreeSet<u32> = threads.known().into_iter().flatten().map(|t| t.pid).collect();
    let connections = match one_node {
        true => Fact::Unknown(Unread::not_requested(SOCKETS)),
        false => connected_addresses(host, &pids).map_or_else(Fact::Unknown, Fact::Known),
    };
    Rates::between(&layout, &first, &second).map(|r| HostTraffic { connections, ..of(&r, threads) })
}

/// The samples in a capture.
pub(super) fn recorded(host: &dyn Host) -> Option<HostTraffic> {
    let threads = Fact::Unknown(Unread::new(THREADS, None, "not in this capture").because(Cause::NotRecorded));
    let connections = Fact::Unknown(Unread::new(SOCKETS, None, "not in this capture").because(Cause::NotRecorded));
    sample::recorded(host).map(|r| HostTraffic { connections, ..of(&r, threads) })
}

/// What rules read in addition to what plans read.
pub(super) fn options(devs: &[String]) -> Options {
    Options { parts: ringwise_discover::Parts::ALL, follow: devs.to_vec(), ..Options::all() }
}

fn link(l: &LinkRates) -> LinkTraffic {
    let queue = |q: &ringwise_observe::QueueRates| QueueTraffic {
        dir: q.dir,
        queue: q.queue,
        packets: q.packets,
        bytes: q.bytes,
        irq: q.irq,
        interrupts: q.interrupts,
        packets_per_interrupt: q.packets_per_interrupt,
        cpu: q.cpu,
        timeouts: q.timeouts,
    };
    LinkTraffic {
        rx_packets: l.rx.packets,
        tx_packets: l.tx.packets,
        line_percent: [l.rx.line_percent, l.tx.line_percent].into_iter().flatten().reduce(f64::max),
        counts: l.counts.clone(),
        alloc_fail: l.drops.no_buffer,
        queues: l.queues.iter().map(queue).collect(),
        pools: l.queues.iter().filter_map(|q| Some((q.queue, q.pool?))).collect::<BTreeMap<_, _>>(),
        rx_max_over_mean: l.rx_balance.map(|b| b.max_over_mean),
    }
}

/// Rates alone: the exporter compares counters that it reads anyway.
pub(super) fn without_threads(r: &Rates) -> HostTraffic {
    of(r, Fact::not_requested(THREADS))
}

fn of(r: &Rates, threads: Fact<Vec<BusyThread>>) -> HostTraffic {
    let cpu = |c: &ringwise_observe::CpuRates| CpuTraffic {
        softirq: c.softirq_percent,
        irq: c.irq_percent,
        steal: c.steal_percent,
        ksoftirqd: c.ksoftirqd_percent,
        interrupts: c.interrupts,
        counts: c.counts.clone(),
    };
    let mut protocols = r.traffic.clone();
    protocols.extend(r.socket_drops.clone());
    HostTraffic {
        seconds: r.seconds,
        links: r.links.iter().map(|(k, l)| (k.clone(), link(l))).collect::<BTreeMap<_, _>>(),
        cpus: r.cpus.iter().map(|(k, c)| (*k, cpu(c))).collect::<BTreeMap<_, _>>(),
        protocols,
        threads,
        connections: Fact::not_requested(SOCKETS),
    }
}

//! The traffic between two readings, as a plan takes it to choose groups of queues. Pure.

use ringwise_model::{CpuId, Dir, SampledCpu, SampledInterface, SampledQueue, TrafficSample};

use crate::{CpuRates, LinkRates, QueueRates, Rates};

/// What was counted on these interfaces, and on all CPUs.
pub fn traffic(rates: &Rates, devs: &[String]) -> TrafficSample {
    let permille = |percent: f64| (percent * 10.0).round().max(0.0) as u32;
    let cpu = |(cpu, c): (&CpuId, &CpuRates)| SampledCpu {
        cpu: *cpu,
        busy_permille: c.idle_percent.map(|idle| permille(100.0 - idle)),
        interrupt_permille: c.irq_percent.zip(c.softirq_percent).map(|(irq, softirq)| permille(irq + softirq)),
    };
    TrafficSample {
        duration_ms: (rates.seconds * 1000.0).round() as u64,
        cpus: rates.cpus.iter().map(cpu).collect(),
        interfaces: devs.iter().filter_map(|d| Some(interface(d, rates.links.get(d)?))).collect(),
    }
}

fn interface(dev: &str, l: &LinkRates) -> SampledInterface {
    let both = |rx: Option<u64>, tx: Option<u64>| Some(rx?.saturating_add(tx?));
    let queue = |q: &QueueRates| SampledQueue {
        queue: q.queue,
        packets: q.packets,
        bytes: q.bytes,
        interrupts: q.interrupts,
        cpu: q.cpu,
    };
    SampledInterface {
        dev: dev.to_string(),
        frames: both(l.rx.packets, l.tx.packets),
        bytes: both(l.rx.bytes, l.tx.bytes),
        queues: l.queues.iter().filter(|q| q.dir == Dir::Rx).map(queue).collect(),
    }
}

//! `--sample`: counts the traffic and the CPU time of this host, or takes the counters of a recording.

use std::time::Duration;

use ringwise_model::{
    Dir, Goal, Intent, NotSampled, Sample, SampledCpu, SampledInterface, SampledQueue, Snapshot, TrafficSample,
};
use ringwise_observe::{Counters, CpuRates, Layout, LinkRates, Rates, Sampler};
use ringwise_sys::Host;

use super::capture::SAMPLES;
use super::progress;
use crate::args::Common;
use crate::source::Source;

/// Counts for this time. A recording has its own two moments, so the time is not used for it.
pub(super) fn take(source: &Source, s: &Snapshot, requested: &Intent, time: Duration, common: &Common) -> Sample {
    let devs = mixed(s, requested);
    if devs.is_empty() {
        return Sample::NotTaken(NotSampled::NoMixedGoal);
    }
    let host = source.host.as_ref();
    let rates = match (source.recorded, source.passive) {
        (true, _) => recorded(host).ok_or(NotSampled::NotRecorded),
        (false, true) => Err(NotSampled::Passive),
        (false, false) => live(host, &Layout::of(s, &devs), time, common).ok_or(NotSampled::NoTimePassed),
    };
    match rates {
        Ok(rates) => Sample::Taken(of(&rates, &devs)),
        Err(why) => Sample::NotTaken(why),
    }
}

/// Interfaces whose groups the sample is for.
fn mixed(s: &Snapshot, requested: &Intent) -> Vec<String> {
    let named = |dev: &str| requested.devs.is_empty() || requested.devs.iter().any(|d| d == dev);
    let wanted = |dev: &&str| named(dev) && requested.goal_of(dev) == Goal::Mixed;
    s.nics.iter().filter(|n| n.has_own_queues()).map(|n| n.name()).filter(wanted).map(str::to_string).collect()
}

fn live(host: &dyn Host, layout: &Layout, time: Duration, common: &Common) -> Option<Rates> {
    let mut sampler = Sampler::new(host, layout, false);
    let first = sampler.read(host);
    progress::wait(host, time, "counting traffic and CPU time", common);
    Rates::between(layout, &first, &sampler.read(host))
}

/// The two moments in a capture. `None`: it has none.
pub(super) fn recorded(host: &dyn Host) -> Option<Rates> {
    let text = host.read_text(SAMPLES).ok()?;
    let mut lines = text.lines();
    let layout = Layout::from_line(lines.next()?)?;
    let (first, second) = (Counters::from_line(lines.next()?)?, Counters::from_line(lines.next()?)?);
    Rates::between(&layout, &first, &second)
}

fn of(rates: &Rates, devs: &[String]) -> TrafficSample {
    let permille = |percent: f64| (percent * 10.0).round().max(0.0) as u32;
    let cpu = |(cpu, c): (&ringwise_model::CpuId, &CpuRates)| SampledCpu {
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
    let queue = |q: &ringwise_observe::QueueRates| SampledQueue {
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

#[cfg(test)]
#[path = "sample_tests.rs"]
mod on_a_host;

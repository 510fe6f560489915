//! What the host under test did between two moments: counters of `observe` as [`HostSide`].

use std::sync::Arc;

use ringwise_bench::delay::{self, DelayProbe};
use ringwise_bench::forward;
use ringwise_bench::result::{CpuUse, HostSide, Limit, QueueUse};
use ringwise_discover::Options;
use ringwise_model::{Counter as _, CpuCounter, CpuId, CpuSet, Dir, Snapshot};
use ringwise_observe::{
    Bottleneck, BottleneckPlace, Counters, CpuSample, Layout, LinkRates, LiveCounters, Rates, increase,
};
use ringwise_sys::Host;
use ringwise_sys::load::Cycles;

use crate::error::{Error, Result};

/// A CPU that is busier than this, in per cent, is the limit.
const FULL_PERCENT: f64 = 97.0;
/// A link with more load than this, in per cent of line rate, is the limit.
const LINE_PERCENT: f64 = 97.0;

pub(crate) struct Meter<'a> {
    counting: LiveCounters<'a>,
    first: Counters,
    /// One counter for each CPU, or the reason why it is missing.
    cycles: ringwise_sys::Result<Vec<Cycles>>,
    cycles_first: Option<u64>,
    /// CPUs on which an ordinary thread measures how late it runs.
    cpus: CpuSet,
    /// Runs from `begin` to `end`.
    probe: Option<std::result::Result<DelayProbe, delay::Error>>,
}

/// What was measured from `begin` to `end`.
#[derive(Debug)]
pub struct MeterReading {
    /// Time between both readings.
    pub seconds: f64,
    /// The form that results store.
    pub side: HostSide,
    /// The counters that `side` is computed from.
    pub rates: Rates,
}

impl<'a> Meter<'a> {
    /// Reads the present queues and vectors; each switch of a state needs a new meter.
    pub(crate) fn new(host: &'a Arc<dyn Host>, devs: &[String], cpus: &CpuSet) -> Result<Self> {
        let layout = look(host, devs)?;
        let again = move |there: &[String]| look(host, there).ok();
        let counting = LiveCounters::new(host.as_ref(), devs, layout, false, again);
        let online = host.read_text("/sys/devices/system/cpu/online").unwrap_or_default();
        let online: CpuSet = online.trim().parse().unwrap_or_default();
        let cycles = online.iter().map(|c| Cycles::open(c.0)).collect();
        Ok(Self { counting, first: Counters::default(), cycles, cycles_first: None, cpus: cpus.clone(), probe: None })
    }

    pub(crate) fn begin(&mut self) {
        let cpus: Vec<u32> = self.cpus.iter().map(|c| c.0).collect();
        self.probe = Some(DelayProbe::start(&cpus));
        self.first = self.counting.read();
        self.cycles_first = self.cycles();
    }

    /// Cycles of all CPUs since the counters were opened.
    fn cycles(&mut self) -> Option<u64> {
        self.cycles.as_mut().ok()?.iter_mut().map(|c| c.read().ok()).sum()
    }

    /// Errors: the counters cannot be compared with those of the beginning.
    pub(crate) fn end(&mut self) -> Result<MeterReading> {
        let last = self.counting.read();
        let probe = self.probe.take();
        let rates = Rates::between(self.counting.layout(), &self.first, &last).ok_or(Error::ClockStandsStill)?;
        let mut side = side(&rates, &self.first, &last);
        let cycles = self.cycles().zip(self.cycles_first).map(|(b, a)| b.saturating_sub(a));
        // Packets cover the same time as the cycles.
        let packets = side.received_per_s.zip(side.transmitted_per_s).map(|(a, b)| a.max(b) * rates.seconds);
        side.cycles_per_packet = cycles.zip(packets.filter(|n| *n > 0.0)).map(|(c, n)| c as f64 / n);
        match probe {
            Some(Ok(p)) => delays(&mut side, &p.stop()),
            Some(Err(e)) => drop(side.unknown.insert("delay".into(), e.to_string())),
            None => drop(side.unknown.insert("delay".into(), "not begun".into())),
        }
        if let Err(e) = &self.cycles {
            side.unknown.insert("cycles".into(), e.to_string());
        }
        Ok(MeterReading { seconds: rates.seconds, side, rates })
    }
}

/// Interfaces, queues, vectors and nodes as they are.
fn look(host: &Arc<dyn Host>, devs: &[String]) -> Result<Layout> {
    let options = Options::layout(devs);
    Ok(Layout::of(&ringwise_discover::snapshot(host, &options)?, devs))
}

/// CPUs that are not isolated.
pub(crate) fn ordinary(s: &Snapshot) -> CpuSet {
    let isolated = s.topology.isolated_all();
    s.topology.online.iter().filter(|c| !isolated.contains(*c)).collect()
}

fn delays(side: &mut HostSide, list: &[(u32, f64, f64)]) {
    for c in &mut side.cpus {
        if let Some((_, p99, max)) = list.iter().find(|(cpu, ..)| *cpu == c.cpu) {
            (c.delay_p99_us, c.delay_max_us) = (Some(*p99), Some(*max));
        }
    }
}

/// Computes the result from two readings.
fn side(r: &Rates, first: &Counters, last: &Counters) -> HostSide {
    let mut out = HostSide { cpus: cpus(first, last), ..HostSide::default() };
    let sum = |f: fn(&LinkRates) -> Option<u64>| -> Option<u64> {
        // One unknown value makes the sum unknown.
        r.links.values().map(f).sum()
    };
    let (rx, tx) = (sum(|l| l.rx.packets), sum(|l| l.tx.packets));
    out.received_per_s = rx.map(|n| n as f64 / r.seconds);
    out.transmitted_per_s = tx.map(|n| n as f64 / r.seconds);
    let interrupts: u64 = r.cpus.values().map(|c| c.interrupts).sum();
    out.interrupts_per_s = Some(interrupts as f64 / r.seconds);
    // Sent packets cost time too; a forwarded packet counts once.
    let packets = rx.zip(tx).map(|(a, b)| a.max(b)).filter(|n| *n > 0);
    out.interrupts_per_packet = packets.map(|n| interrupts as f64 / n as f64);
    let busy: f64 = out.cpus.iter().map(|c| c.busy_percent).sum::<f64>() / 100.0;
    out.cpu_ns_per_packet = packets.filter(|_| !out.cpus.is_empty()).map(|n| busy * r.seconds * 1e9 / n as f64);
    let line = r.links.values().flat_map(|l| [l.rx.line_percent, l.tx.line_percent]).flatten();
    out.line_rate_percent = line.fold(None, |m: Option<f64>, p| Some(m.map_or(p, |m| m.max(p))));
    out.budget_ns_per_packet =
        r.links.values().filter_map(budget_ns).fold(None, |m: Option<f64>, b| Some(m.map_or(b, |m| m.min(b))));
    for l in &Bottleneck::of(r).lost {
        *out.lost.entry(place(&l.place)).or_default() += l.packets;
    }
    for (name, l) in &r.links {
        for q in l.queues.iter().filter(|q| q.dir == Dir::Rx) {
            if let Some(packets) = q.packets {
                out.queues.push(QueueUse { dev: name.clone(), queue: q.queue, packets });
            }
        }
    }
    let balance = r.links.values().filter_map(|l| l.rx_balance).map(|b| b.max_over_mean);
    out.queue_max_over_mean = balance.fold(None, |m: Option<f64>, b| Some(m.map_or(b, |m| m.max(b))));
    out
}

/// Time between two frames at line rate, for the mean frame size of the busier direction.
fn budget_ns(l: &LinkRates) -> Option<f64> {
    let busier = if l.rx.pps >= l.tx.pps { &l.rx } else { &l.tx };
    let (speed, bytes) = (l.speed_mbps.filter(|s| *s > 0)?, busier.avg_bytes?);
    forward::budget_ns(u64::from(speed), bytes.round() as u32)
}

fn place(p: &BottleneckPlace) -> String {
    match p {
        BottleneckPlace::Ring(dev, Some(q)) => format!("{dev} ring (most: queue {q})"),
        BottleneckPlace::Ring(dev, None) => format!("{dev} ring"),
        BottleneckPlace::Stack(dev) => format!("{dev} driver or stack"),
        BottleneckPlace::Tx(dev) => format!("{dev} transmit"),
        BottleneckPlace::Qdisc(dev) => format!("{dev} qdisc"),
        BottleneckPlace::NoBuffer(dev) => format!("{dev} no buffer"),
        BottleneckPlace::Backlog(cpu) => format!("backlog of CPU {cpu}"),
        BottleneckPlace::FlowLimit(cpu) => format!("flow limit of CPU {cpu}"),
        BottleneckPlace::Socket(name) => format!("socket {name}"),
    }
}

/// Ticks of `/proc/stat` as shares of all ticks. `user` already contains `guest`.
fn cpus(first: &Counters, last: &Counters) -> Vec<CpuUse> {
    let one = |(cpu, after): (&CpuId, &CpuSample)| {
        let (before, after) = (&first.cpus.get(cpu)?.counts, &after.counts);
        let ticks = |c: CpuCounter| Some(increase(c.kind(), before.get(c)?, after.get(c)?)? as f64);
        let some = |c| ticks(c).unwrap_or(0.0);
        let (user, nice, system) = (ticks(CpuCounter::User)?, some(CpuCounter::Nice), ticks(CpuCounter::System)?);
        let (irq, soft, steal) = (some(CpuCounter::Irq), some(CpuCounter::Softirq), some(CpuCounter::Steal));
        let idle = ticks(CpuCounter::Idle)? + some(CpuCounter::Iowait);
        let all = user + nice + system + irq + soft + steal + idle;
        if all <= 0.0 {
            return None;
        }
        let percent = |n: f64| 100.0 * n / all;
        Some(CpuUse {
            cpu: cpu.0,
            busy_percent: percent(all - idle - steal),
            user_percent: percent(user + nice),
            system_percent: percent(system),
            softirq_percent: percent(soft),
            irq_percent: percent(irq),
            ..CpuUse::default()
        })
    };
    last.cpus.iter().filter_map(one).collect()
}

/// What limited the result, as far as this host can tell. `offered`: whether all of the offered load was processed.
/// None: the load was not limited to a rate.
pub(crate) fn limit(m: &MeterReading, offered: Option<bool>, generator_percent: Option<f64>) -> Limit {
    if offered == Some(true) {
        return Limit::Offered;
    }
    let by_line = |l: &LinkRates| {
        let all = [l.rx.line_percent, l.tx.line_percent, l.rx.line_packets_percent, l.tx.line_packets_percent];
        all.into_iter().flatten().any(|p| p >= LINE_PERCENT)
    };
    if let Some((name, _)) = m.rates.links.iter().find(|(_, l)| by_line(l)) {
        return Limit::Link(name.clone());
    }
    let full: Vec<u32> = m.side.cpus.iter().filter(|c| c.busy_percent >= FULL_PERCENT).map(|c| c.cpu).collect();
    if !full.is_empty() {
        return Limit::Cpu(full);
    }
    match generator_percent {
        Some(p) if p >= 90.0 => Limit::Generator(format!("its busiest thread used {p:.0} % of a CPU")),
        _ => Limit::Unknown,
    }
}

//! Workloads of messages between two ends: rr, burst, mixed, stream, and one receiver by place.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ringwise_bench::load::arrived;
use ringwise_bench::result::{Limit, LoadResult, Point};
use ringwise_bench::side::{Answer, Group, Load, Pattern, Program, Protocol, Reply, Request, Side, Sink, Taken};
use ringwise_model::{CpuId, Snapshot};

use super::meter::{self, Measured};
use super::session::{Cx, Got, Workload};
use super::sides::{self, PATIENCE, Sides, failed, unexpected};
use crate::args::{DriveArg, DriverArg, Level, ProtocolArg, RunArgs};
use crate::exit::{Fail, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Rr,
    Burst,
    Mixed,
    Stream,
    Receive,
}

/// Latency messages of mixed are not longer.
const LATENCY_BYTES: u32 = 1024;

pub(super) struct Messages<'a> {
    kind: Kind,
    a: &'a RunArgs,
    sides: Sides,
    address: IpAddr,
    /// Physical cores here: what a load level counts in.
    cores: u32,
    cpus_here: Vec<u32>,
    cpus_peer: Vec<u32>,
    /// Of [`Kind::Receive`], found by a look at the traffic.
    places: Vec<(String, u32)>,
}

impl<'a> Messages<'a> {
    pub(super) fn new(kind: Kind, a: &'a RunArgs, sides: Sides, address: IpAddr, s: &Snapshot) -> Result<Self> {
        let allowed = super::meter::ordinary(s).to_string();
        let mut one = BTreeMap::new();
        for c in s.topology.cpus.values() {
            *one.entry(s.topology.siblings_of(c.id).iter().next()).or_insert(0_u32) += 1;
        }
        let cpus_peer = sides::cpus(a.load.peer_cpus.as_ref(), &sides.hello.cpus);
        let out = Self {
            kind,
            a,
            address,
            cores: u32::try_from(one.len()).unwrap_or(1).max(1),
            cpus_here: sides::cpus(a.load.cpus.as_ref(), &allowed),
            cpus_peer,
            sides,
            places: Vec::new(),
        };
        if out.cpus_here.is_empty() || out.cpus_peer.is_empty() {
            let (who, flag) =
                if out.cpus_here.is_empty() { ("this host", "--cpus") } else { (out.sides.peer.name(), "--peer-cpus") };
            return Err(Fail::error(format!("{who} does not say which CPUs it has")).next(format!("{flag} LIST")));
        }
        out.sound()?;
        Ok(out)
    }

    fn sound(&self) -> Result<()> {
        let l = &self.a.load;
        let udp = self.protocol() == Protocol::Udp;
        if let Some(n) = self.sizes().iter().find(|n| udp && !(16..=65_507).contains(*n)) {
            return Err(Fail::usage(format!("{n} bytes do not go into a datagram (right would be 16 to 65507)")));
        }
        if l.drive == DriveArg::Here && self.a.peer.peer_address.is_none() {
            return Err(Fail::usage("--drive here loads the peer: --peer-address says where"));
        }
        if self.kind == Kind::Receive && (l.drive == DriveArg::Here || l.driver != DriverArg::BuiltIn) {
            return Err(Fail::usage("receive has its receiver here, and the built-in generator at the peer"));
        }
        if l.driver == DriverArg::Iperf3 && self.kind != Kind::Stream {
            return Err(Fail::usage("iperf3 knows streams only; rr, burst and mixed: built-in or netperf"));
        }
        if l.driver == DriverArg::Netperf && self.kind == Kind::Stream {
            return Err(Fail::usage("netperf is driven for rr, burst and mixed; stream: built-in or iperf3"));
        }
        if l.driver != DriverArg::BuiltIn && !l.rate.is_empty() {
            return Err(Fail::usage("--rate is the built-in generator's; netperf and iperf3 send when one is done"));
        }
        for m in &l.mix {
            mix(m, 2)?;
        }
        Ok(())
    }

    fn protocol(&self) -> Protocol {
        match self.a.load.protocol {
            Some(ProtocolArg::Tcp) => Protocol::Tcp,
            Some(ProtocolArg::Udp) => Protocol::Udp,
            // One flow without a window shows what a receiver can take.
            None if self.kind == Kind::Receive => Protocol::Udp,
            None => Protocol::Tcp,
        }
    }

    fn sizes(&self) -> Vec<u32> {
        let l = &self.a.load;
        if !l.size.is_empty() {
            return l.size.clone();
        }
        match self.kind {
            Kind::Rr => vec![64, 128, 256, 512, 1024],
            Kind::Burst | Kind::Mixed => vec![64, 256, 1024, 4096, 16_384, 65_536],
            Kind::Stream => vec![16_384],
            Kind::Receive => vec![32],
        }
    }

    /// Threads and the level's name.
    fn threads(&self) -> Vec<(u32, Option<&'static str>)> {
        let l = &self.a.load;
        if self.kind == Kind::Receive {
            return vec![(1, None)];
        }
        if !l.threads.is_empty() {
            return l.threads.iter().map(|n| (*n, None)).collect();
        }
        let level = |v: &Level| {
            let n = (f64::from(self.cores) * v.factor()).round().max(1.0) as u32;
            (n.max(if self.kind == Kind::Mixed { 2 } else { 1 }), Some(v.name()))
        };
        if l.level.is_empty() { vec![level(&Level::Medium)] } else { l.level.iter().map(level).collect() }
    }

    fn groups(&self, p: &Point, to: &[SocketAddr]) -> Result<Vec<Group>> {
        let size_bytes = p.size_bytes.unwrap_or(64);
        let threads = p.threads.unwrap_or(1);
        let cpus = match self.a.load.drive {
            DriveArg::Peer => &self.cpus_peer,
            DriveArg::Here => &self.cpus_here,
        };
        let group = |name: &str, pattern: Pattern, size_bytes: u32, from: u32, n: u32| Group {
            name: name.into(),
            protocol: self.protocol(),
            pattern,
            size_bytes,
            threads: n,
            // Thread i is where the answering thread i is, as netperf -T has it.
            cpus: (from..from + n).map(|i| cpus[i as usize % cpus.len()]).collect(),
            to: (from..from + n).map(|i| to[i as usize % to.len()]).collect(),
            flows: p.flows.unwrap_or(n).max(n),
            skew: p.skew.unwrap_or(0.0),
            per_s: p.offered_per_s,
        };
        Ok(match self.kind {
            Kind::Rr => vec![group("", Pattern::Rr, size_bytes, 0, threads)],
            Kind::Burst => vec![group("", Pattern::Burst(self.a.load.burst), size_bytes, 0, threads)],
            Kind::Stream | Kind::Receive => vec![group("", Pattern::Send, size_bytes, 0, threads)],
            Kind::Mixed => {
                let (latency, bulk) = mix(p.mix.as_deref().unwrap_or("1/2:1/2"), threads)?;
                let mut out = Vec::new();
                if latency > 0 {
                    out.push(group("latency", Pattern::Rr, size_bytes.min(LATENCY_BYTES), 0, latency));
                }
                if bulk > 0 {
                    out.push(group("throughput", Pattern::Burst(self.a.load.burst), size_bytes, latency, bulk));
                }
                out
            }
        })
    }

    /// Where the receiver is, found with a short load: the CPU that took most of the packets, and others by how far
    /// they are from it. What is not here is left out, with a word.
    pub(super) fn find_places(&mut self, cx: &Cx, s: &Snapshot) -> Result<()> {
        let probe = Point { size_bytes: self.sizes().first().copied(), threads: Some(1), ..Point::default() };
        let got = self.once(&probe, None, false, [Duration::from_millis(500), Duration::from_secs(1)], cx)?;
        let took = |c: &&ringwise_bench::result::CpuUse| c.softirq_percent + c.irq_percent;
        let busiest = got.measured.side.cpus.iter().max_by(|a, b| took(a).total_cmp(&took(b)));
        let by_queue = got.measured.rates.links.values().flat_map(|l| &l.queues);
        let by_queue = by_queue.filter(|q| q.cpu.is_some()).max_by_key(|q| q.packets.unwrap_or(0));
        let by_queue = by_queue.filter(|q| q.packets.unwrap_or(0) > 100).and_then(|q| q.cpu);
        let Some(cpu) = by_queue.or_else(|| busiest.map(|c| CpuId(c.cpu))) else {
            return Err(Fail::error("which CPU takes the packets could not be found"));
        };
        self.places = places(cpu, s);
        Ok(())
    }

    /// Loads and counts. `cpu`: of the receiver, where its place is the point. `delayed`: by `--delay-us`.
    fn once(&mut self, p: &Point, cpu: Option<u32>, delayed: bool, times: [Duration; 2], cx: &Cx) -> Result<Counted> {
        let done = self.loaded(p, cpu, delayed, times, cx);
        // Whatever came of it, nobody goes on answering, or loading.
        if done.is_err() {
            self.sides.stop();
        }
        done
    }

    fn loaded(&mut self, p: &Point, cpu: Option<u32>, delayed: bool, times: [Duration; 2], cx: &Cx) -> Result<Counted> {
        let [warmup, time] = times;
        let here_loads = self.a.load.drive == DriveArg::Here;
        let (request, program) = self.answering(p, cpu, delayed)?;
        let to = {
            let (answering, _) = self.sides.pair(here_loads);
            match answering.ask(request, PATIENCE).map_err(failed)? {
                Reply::Listening { at } if !at.is_empty() => at,
                other => return Err(unexpected(answering, &other)),
            }
        };
        let load = Load { groups: self.groups(p, &to)?, warmup, time, seed: cx.seed };
        let request = match program {
            Some((program, port)) => Request::Program(Program::Run { program: program.into(), port, load }),
            None => Request::Load(load),
        };
        let mut meter = cx.meter()?;
        self.sides.pair(here_loads).1.start(request).map_err(failed)?;
        cx.wait(warmup)?;
        meter.begin();
        cx.wait(time)?;
        let measured = meter.end()?;
        let (_, loading) = self.sides.pair(here_loads);
        let loads = match loading.finish(PATIENCE + time).map_err(failed)? {
            Reply::Loaded(l) => l,
            other => return Err(unexpected(loading, &other)),
        };
        let (answering, _) = self.sides.pair(here_loads);
        let taken = match answering.ask(Request::Stop, PATIENCE).map_err(failed)? {
            Reply::Stopped { taken } => taken,
            other => return Err(unexpected(answering, &other)),
        };
        Ok(Counted { loads, taken, measured })
    }

    /// What the answering end is asked, and the program of the other with its port.
    fn answering(&self, p: &Point, cpu: Option<u32>, delayed: bool) -> Result<(Request, Option<(&'static str, u16)>)> {
        let here_loads = self.a.load.drive == DriveArg::Here;
        let cpus = match (cpu, here_loads) {
            (Some(c), _) => vec![c],
            (None, false) => self.cpus_here.clone(),
            (None, true) => self.cpus_peer.clone(),
        };
        let bind = if here_loads { self.a.peer.peer_address } else { Some(self.address) };
        let program = match self.a.load.driver {
            DriverArg::BuiltIn => None,
            DriverArg::Netperf => Some(("netperf", "netserver", 12_865)),
            DriverArg::Iperf3 => Some(("iperf3", "iperf3", 5201)),
        };
        if let (Some((client, server, port)), Some(bind)) = (program, bind) {
            let serve = Program::Serve { program: server.into(), bind, port };
            return Ok((Request::Program(serve), Some((client, port))));
        }
        let (protocol, threads) = (self.protocol(), p.threads.unwrap_or(1));
        let delay_us = if delayed { self.a.load.delay_us } else { 0 };
        let request = match self.kind {
            Kind::Stream | Kind::Receive => Request::Sink(Sink { protocol, bind, threads, cpus }),
            _ => Request::Answer(Answer { protocol, bind, threads, cpus, delay_us }),
        };
        Ok((request, None))
    }
}

/// One load with what both ends saw.
struct Counted {
    loads: Vec<LoadResult>,
    taken: Vec<Taken>,
    measured: Measured,
}

/// `1/2:1/2`, `2/3:1/3`, `1:0`: latency to throughput threads of `threads`.
fn mix(text: &str, threads: u32) -> Result<(u32, u32)> {
    let part = |t: &str| -> Option<f64> {
        match t.split_once('/') {
            Some((a, b)) => Some(a.parse::<f64>().ok()? / b.parse::<f64>().ok()?),
            None => t.parse().ok(),
        }
    };
    let sound = |p: &f64| p.is_finite() && *p >= 0.0;
    let parts = text.split_once(':').and_then(|(a, b)| Some((part(a).filter(sound)?, part(b).filter(sound)?)));
    let Some((latency, bulk)) = parts.filter(|(a, b)| a + b > 0.0) else {
        let why = format!("\"{text}\" is no mix of latency and throughput threads (right would be e.g. 2/3:1/3)");
        return Err(Fail::usage(why));
    };
    let mut n = (f64::from(threads) * latency / (latency + bulk)).round() as u32;
    // A part that is asked for has a thread.
    if latency > 0.0 {
        n = n.max(1);
    }
    if bulk > 0.0 {
        n = n.min(threads.saturating_sub(1));
    }
    Ok((n, threads - n))
}

/// CPUs by how far they are from one; each kind once, the first CPU of it.
fn places(cpu: CpuId, s: &Snapshot) -> Vec<(String, u32)> {
    let t = &s.topology;
    let mut out: Vec<(String, u32)> = vec![("same-cpu".into(), cpu.0)];
    let (siblings, l3, node) = (t.siblings_of(cpu), t.l3_of(cpu), t.node_of(cpu));
    for other in t.online.iter().filter(|c| *c != cpu) {
        let place = if siblings.contains(other) {
            "sibling"
        } else if l3.contains(other) {
            "same-l3"
        } else if node.is_some() && t.node_of(other) == node {
            "same-node"
        } else if node.is_some() {
            "other-node"
        } else {
            "other-cpu"
        };
        if !out.iter().any(|(p, _)| p == place) {
            out.push((place.into(), other.0));
        }
    }
    out
}

impl Workload for Messages<'_> {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Rr => "rr",
            Kind::Burst => "burst",
            Kind::Mixed => "mixed",
            Kind::Stream => "stream",
            Kind::Receive => "receive",
        }
    }

    fn driver(&self) -> &'static str {
        match self.a.load.driver {
            DriverArg::BuiltIn => "built-in",
            DriverArg::Netperf => "netperf",
            DriverArg::Iperf3 => "iperf3",
        }
    }

    fn peer(&self) -> Option<String> {
        Some(self.sides.peer.name().to_string())
    }

    fn peer_facts(&self) -> BTreeMap<String, String> {
        self.sides.facts()
    }

    fn points(&self) -> Vec<Point> {
        let l = &self.a.load;
        let some = |list: &[f64]| -> Vec<Option<f64>> {
            if list.is_empty() { vec![None] } else { list.iter().copied().map(Some).collect() }
        };
        let flows: Vec<Option<u32>> =
            if l.flows.is_empty() { vec![None] } else { l.flows.iter().copied().map(Some).collect() };
        let mixes: Vec<Option<String>> = match (self.kind, l.mix.is_empty()) {
            (Kind::Mixed, true) => ["1/2:1/2", "2/3:1/3", "1/3:2/3", "1:0", "0:1"].map(|m| Some(m.to_string())).into(),
            (Kind::Mixed, false) => l.mix.iter().cloned().map(Some).collect(),
            _ => vec![None],
        };
        let places: Vec<Option<String>> = match self.kind {
            Kind::Receive => self.places.iter().map(|(p, _)| Some(p.clone())).collect(),
            _ => vec![None],
        };
        let mut out = Vec::new();
        for (threads, level) in self.threads() {
            for size in self.sizes() {
                for mix in &mixes {
                    for flows in &flows {
                        for skew in some(&l.skew) {
                            for offered_per_s in some(&l.rate) {
                                for place in &places {
                                    out.push(Point {
                                        size_bytes: Some(size),
                                        threads: Some(threads),
                                        level: level.map(str::to_string),
                                        mix: mix.clone(),
                                        flows: *flows,
                                        skew,
                                        offered_per_s,
                                        place: place.clone(),
                                        ..Point::default()
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
        out
    }

    fn trial(&mut self, p: &Point, state: &str, cx: &Cx) -> Result<Got> {
        let cpu = p.place.as_ref().and_then(|p| self.places.iter().find(|(n, _)| n == p)).map(|(_, cpu)| *cpu);
        let d = &self.a.design;
        let delayed = self.a.load.delay_in.as_deref().is_none_or(|n| n == state);
        let Counted { mut loads, taken, measured } = self.once(p, cpu, delayed, [d.warm, d.trial], cx)?;
        let mut doubts = Vec::new();
        if matches!(self.kind, Kind::Stream | Kind::Receive) && self.a.load.driver == DriverArg::BuiltIn {
            loads.iter_mut().for_each(|l| arrived(l, d.trial, &taken));
        }
        for l in &loads {
            let who = if l.group.is_empty() { String::new() } else { format!("{}: ", l.group) };
            if let Some(o) = l.offered_per_s.filter(|o| l.sent_per_s < 0.98 * o) {
                doubts.push(format!("{who}only {:.0} of {o:.0} a second were sent", l.sent_per_s));
            }
            if l.done_per_s == 0.0 && l.bits_per_s == 0.0 {
                doubts.push(format!("{who}nothing got through"));
            }
        }
        let busiest = loads.iter().filter_map(|l| l.busiest_thread_percent).reduce(f64::max);
        let offered = (!loads.is_empty() && loads.iter().all(|l| l.offered_per_s.is_some()))
            .then(|| loads.iter().all(|l| l.offered_per_s.is_some_and(|o| l.done_per_s >= 0.98 * o)));
        let limit: Limit = meter::limit(&measured, offered, busiest);
        Ok(Got { loads, measured, limit, doubts })
    }

    fn end(&mut self) {
        self.sides.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes() {
        for (text, threads, want) in [
            ("1/2:1/2", 8, (4, 4)),
            ("2/3:1/3", 9, (6, 3)),
            ("1/3:2/3", 2, (1, 1)),
            ("1:0", 4, (4, 0)),
            ("0:1", 4, (0, 4)),
            ("9:1", 2, (1, 1)),
        ] {
            assert_eq!(mix(text, threads).unwrap(), want, "{text} of {threads}");
        }
        for bad in ["", "1", "1:", "a:b", "0:0", "-1:2", "1/0:1"] {
            assert!(mix(bad, 4).is_err(), "{bad}");
        }
    }
}

//! Workloads that exchange messages between two ends: rr, burst, mixed, stream, and one receiver at different CPUs.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ringwise_bench::load::arrived;
use ringwise_bench::result::{Limit, LoadResult, PLACES, Point};
use ringwise_bench::side::{
    ExternalProgram, LoadGroup, LoadGroups, Pattern, Protocol, Reply, Request, Responder, Side, Sink, Taken,
};
use ringwise_model::{CpuId, CpuSet, Snapshot};

use crate::axes::cross;
use crate::context::{Measurement, TrialContext, Workload};
use crate::error::{Error, Result};
use crate::meter::{self, MeterReading};
use crate::sides::{PATIENCE, Sides, cpus, unexpected};

/// What the messages do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessagesWorkload {
    /// Request and response, one at a time for each connection.
    Rr,
    /// Several requests in flight for each connection.
    Burst,
    /// Threads of [`MessagesWorkload::Rr`] beside threads of [`MessagesWorkload::Burst`].
    Mixed,
    /// Messages in one direction.
    Stream,
    /// One receiver, placed on different CPUs.
    Receive,
}

/// What generates the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadDriver {
    /// The threads of `ringwise_bench::load`.
    BuiltIn,
    /// netperf here and netserver there, or the other way round.
    Netperf,
    /// iperf3 at both ends.
    Iperf3,
}

/// Number of load threads, in proportion to the physical cores of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// One thread for every four cores.
    Light,
    /// A thread for each core.
    Medium,
    /// Two threads for each core.
    Heavy,
}

impl Level {
    /// Threads per core.
    fn factor(self) -> f64 {
        match self {
            Self::Light => 0.25,
            Self::Medium => 1.0,
            Self::Heavy => 2.0,
        }
    }

    /// Threads on a host with this many physical cores. A mix needs one for each of its two groups.
    fn threads(self, cores: u32, kind: MessagesWorkload) -> u32 {
        let least = if kind == MessagesWorkload::Mixed { 2 } else { 1 };
        ((f64::from(cores) * self.factor()).round() as u32).max(least)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Medium => "medium",
            Self::Heavy => "heavy",
        }
    }
}

/// Upper limit for the latency messages of mixed.
const LATENCY_BYTES: u32 = 1024;

/// A load of messages. Lists are axes of the session; an empty one is the default of the kind.
#[derive(Debug, Clone)]
pub struct MessagesSpec {
    /// What the messages do.
    pub kind: MessagesWorkload,
    /// Payload bytes.
    pub sizes: Vec<u32>,
    /// Load threads, of all groups together.
    pub threads: Vec<u32>,
    /// Load levels; used if `threads` is empty.
    pub levels: Vec<Level>,
    /// `1/2:1/2`: latency to throughput threads.
    pub mixes: Vec<String>,
    /// Connections of all threads together. Empty: one per thread.
    pub flows: Vec<u32>,
    /// Zipf's exponents.
    pub skews: Vec<f64>,
    /// Offered messages a second, of all threads together.
    pub rates: Vec<f64>,
    /// None: the default of the kind.
    pub protocol: Option<Protocol>,
    /// Requests in flight for each connection of burst and mixed.
    pub burst: u32,
    /// CPUs of the load threads. None: all that may be used.
    pub cpus_here: Option<CpuSet>,
    /// The same at the peer.
    pub cpus_peer: Option<CpuSet>,
    /// What generates the load.
    pub driver: LoadDriver,
    /// This host generates the load, and the peer answers.
    pub here_loads: bool,
    /// Where the load goes.
    pub address: IpAddr,
    /// Where it goes if this host loads.
    pub peer_address: Option<IpAddr>,
    /// The answering end waits this many microseconds: a known delay that proves the harness.
    pub delay_us: u32,
    /// The delay applies in this state only. None: in all states.
    pub delay_in: Option<String>,
}

impl MessagesSpec {
    /// Transport of the load: the requested one, or the default of the kind.
    pub fn protocol(&self) -> Protocol {
        // Without flow control, one flow shows what a receiver can process.
        self.protocol.unwrap_or(if self.kind == MessagesWorkload::Receive { Protocol::Udp } else { Protocol::Tcp })
    }

    /// Payload bytes.
    pub fn sizes(&self) -> Vec<u32> {
        if !self.sizes.is_empty() {
            return self.sizes.clone();
        }
        match self.kind {
            MessagesWorkload::Rr => vec![64, 128, 256, 512, 1024],
            MessagesWorkload::Burst | MessagesWorkload::Mixed => vec![64, 256, 1024, 4096, 16_384, 65_536],
            MessagesWorkload::Stream => vec![16_384],
            MessagesWorkload::Receive => vec![32],
        }
    }

    /// Shares of latency and throughput threads. Empty: the kind has no mix.
    fn mixes(&self) -> Vec<String> {
        match (self.kind, self.mixes.is_empty()) {
            (MessagesWorkload::Mixed, true) => {
                ["1/2:1/2", "2/3:1/3", "1/3:2/3", "1:0", "0:1"].map(String::from).to_vec()
            }
            (MessagesWorkload::Mixed, false) => self.mixes.clone(),
            _ => Vec::new(),
        }
    }
}

/// Messages between two ends: rr, burst, mixed, stream, and one receiver by place.
pub struct Messages {
    spec: MessagesSpec,
    sides: Sides,
    /// Physical cores of this host; load levels are relative to them.
    cores: u32,
    cpus_here: Vec<u32>,
    cpus_peer: Vec<u32>,
    /// For [`MessagesWorkload::Receive`]: CPUs that were found by watching the traffic.
    places: Vec<(String, u32)>,
    /// Each of them is a state, so that they are compared with each other; otherwise each is a point of every state.
    places_are_states: bool,
}

impl Messages {
    /// Errors: a mix is not valid, CPUs are unknown.
    pub fn new(spec: MessagesSpec, sides: Sides, s: &Snapshot) -> Result<Self> {
        let allowed = meter::ordinary(s).to_string();
        let mut one = BTreeMap::new();
        for c in s.topology.cpus.values() {
            *one.entry(s.topology.siblings_of(c.id).iter().next()).or_insert(0_u32) += 1;
        }
        let cpus_here = cpus(spec.cpus_here.as_ref(), &allowed);
        let cpus_peer = cpus(spec.cpus_peer.as_ref(), &sides.hello.cpus);
        if cpus_here.is_empty() {
            return Err(Error::CpusUnknown { who: "this host".into(), here: true });
        }
        if cpus_peer.is_empty() {
            return Err(Error::CpusUnknown { who: sides.peer.name().into(), here: false });
        }
        for m in &spec.mixes {
            mix(m, 2)?;
        }
        let cores = u32::try_from(one.len()).unwrap_or(1).max(1);
        Ok(Self { spec, cores, cpus_here, cpus_peer, sides, places: Vec::new(), places_are_states: false })
    }

    /// The numbers of threads, each with the name of its level.
    fn threads(&self) -> Vec<(u32, Option<&'static str>)> {
        let l = &self.spec;
        if l.kind == MessagesWorkload::Receive {
            return vec![(1, None)];
        }
        if !l.threads.is_empty() {
            return l.threads.iter().map(|n| (*n, None)).collect();
        }
        let level = |v: &Level| (v.threads(self.cores, l.kind), Some(v.name()));
        if l.levels.is_empty() { vec![level(&Level::Medium)] } else { l.levels.iter().map(level).collect() }
    }

    fn groups(&self, p: &Point, to: &[SocketAddr]) -> Result<Vec<LoadGroup>> {
        let size_bytes = p.size_bytes.unwrap_or(64);
        let threads = p.threads.unwrap_or(1);
        let cpus = if self.spec.here_loads { &self.cpus_here } else { &self.cpus_peer };
        let group = |name: &str, pattern: Pattern, size_bytes: u32, from: u32, n: u32| LoadGroup {
            name: name.into(),
            protocol: self.spec.protocol(),
            pattern,
            size_bytes,
            threads: n,
            // Thread i runs on the same CPU as answering thread i, as with netperf -T.
            cpus: (from..from + n).map(|i| cpus[i as usize % cpus.len()]).collect(),
            to: (from..from + n).map(|i| to[i as usize % to.len()]).collect(),
            flows: p.flows.unwrap_or(n).max(n),
            skew: p.skew.unwrap_or(0.0),
            per_s: p.offered_per_s,
        };
        Ok(match self.spec.kind {
            MessagesWorkload::Rr => vec![group("", Pattern::Rr, size_bytes, 0, threads)],
            MessagesWorkload::Burst => vec![group("", Pattern::Burst(self.spec.burst), size_bytes, 0, threads)],
            MessagesWorkload::Stream | MessagesWorkload::Receive => {
                vec![group("", Pattern::Send, size_bytes, 0, threads)]
            }
            MessagesWorkload::Mixed => {
                let [latency, bulk] = mixed(p.mix.as_deref().unwrap_or("1/2:1/2"), threads, size_bytes)?;
                let mut out = Vec::new();
                if latency.threads > 0 {
                    out.push(group("latency", Pattern::Rr, latency.size_bytes, 0, latency.threads));
                }
                if bulk.threads > 0 {
                    let pattern = Pattern::Burst(self.spec.burst);
                    out.push(group("throughput", pattern, bulk.size_bytes, latency.threads, bulk.threads));
                }
                out
            }
        })
    }

    /// Finds the CPUs for the receiver with a short load: the CPU that took most of the packets, and one CPU for each
    /// distance from it. A distance that this host does not have is skipped and reported.
    ///
    /// Errors: the load fails, or no CPU processes packets.
    pub fn find_places(&mut self, cx: &TrialContext, s: &Snapshot) -> Result<()> {
        let probe = Point { size_bytes: self.spec.sizes().first().copied(), threads: Some(1), ..Point::default() };
        let got = self.once(&probe, None, false, [Duration::from_millis(500), Duration::from_secs(1)], cx)?;
        let took = |c: &&ringwise_bench::result::CpuUse| c.softirq_percent + c.irq_percent;
        let busiest = got.measured.side.cpus.iter().max_by(|a, b| took(a).total_cmp(&took(b)));
        let by_queue = got.measured.rates.links.values().flat_map(|l| &l.queues);
        let by_queue = by_queue.filter(|q| q.cpu.is_some()).max_by_key(|q| q.packets.unwrap_or(0));
        let by_queue = by_queue.filter(|q| q.packets.unwrap_or(0) > 100).and_then(|q| q.cpu);
        let Some(cpu) = by_queue.or_else(|| busiest.map(|c| CpuId(c.cpu))) else {
            return Err(Error::ReceiverNotFound);
        };
        self.places = places(cpu, s);
        Ok(())
    }

    /// Makes each place a state. Returns their names and CPUs, the CPU of the queue first.
    pub fn compare_places(&mut self) -> &[(String, u32)] {
        self.places_are_states = true;
        &self.places
    }

    /// Runs the load and counts. `cpu`: the receiver's CPU, if that is what the point varies. `delayed`: `--delay-us`
    /// applies.
    fn once(
        &mut self,
        p: &Point,
        cpu: Option<u32>,
        delayed: bool,
        times: [Duration; 2],
        cx: &TrialContext,
    ) -> Result<LoadCounts> {
        let done = self.loaded(p, cpu, delayed, times, cx);
        // After an error both ends must stop answering and loading.
        if done.is_err() {
            self.sides.stop();
        }
        done
    }

    fn loaded(
        &mut self,
        p: &Point,
        cpu: Option<u32>,
        delayed: bool,
        times: [Duration; 2],
        cx: &TrialContext,
    ) -> Result<LoadCounts> {
        let [warmup, time] = times;
        let here_loads = self.spec.here_loads;
        let (request, program) = self.answering(p, cpu, delayed)?;
        let to = {
            let (answering, _) = self.sides.pair(here_loads);
            match answering.ask(request, PATIENCE)? {
                Reply::Listening { at } if !at.is_empty() => at,
                other => return Err(unexpected(answering, other)),
            }
        };
        let load = LoadGroups { groups: self.groups(p, &to)?, warmup, time, seed: cx.seed };
        let request = match program {
            Some((program, port)) => Request::Program(ExternalProgram::Run { program: program.into(), port, load }),
            None => Request::Load(load),
        };
        let mut meter = cx.meter()?;
        self.sides.pair(here_loads).1.start(request)?;
        cx.wait(warmup)?;
        meter.begin();
        cx.wait(time)?;
        let measured = meter.end()?;
        let (_, loading) = self.sides.pair(here_loads);
        let loads = match loading.finish(PATIENCE + time)? {
            Reply::Loaded(l) => l,
            other => return Err(unexpected(loading, other)),
        };
        let (answering, _) = self.sides.pair(here_loads);
        let taken = match answering.ask(Request::Stop, PATIENCE)? {
            Reply::Stopped { taken } => taken,
            other => return Err(unexpected(answering, other)),
        };
        Ok(LoadCounts { loads, taken, measured })
    }

    /// The request for the answering end, and the program of the other end with its port.
    fn answering(&self, p: &Point, cpu: Option<u32>, delayed: bool) -> Result<(Request, Option<(&'static str, u16)>)> {
        let here_loads = self.spec.here_loads;
        let cpus = match (cpu, here_loads) {
            (Some(c), _) => vec![c],
            (None, false) => self.cpus_here.clone(),
            (None, true) => self.cpus_peer.clone(),
        };
        let bind = if here_loads { self.spec.peer_address } else { Some(self.spec.address) };
        let program = match self.spec.driver {
            LoadDriver::BuiltIn => None,
            LoadDriver::Netperf => Some(("netperf", "netserver", 12_865)),
            LoadDriver::Iperf3 => Some(("iperf3", "iperf3", 5201)),
        };
        if let (Some((client, server, port)), Some(bind)) = (program, bind) {
            let serve = ExternalProgram::Serve { program: server.into(), bind, port };
            return Ok((Request::Program(serve), Some((client, port))));
        }
        let (protocol, threads) = (self.spec.protocol(), p.threads.unwrap_or(1));
        let delay_us = if delayed { self.spec.delay_us } else { 0 };
        let request = match self.spec.kind {
            MessagesWorkload::Stream | MessagesWorkload::Receive => {
                Request::Sink(Sink { protocol, bind, threads, cpus })
            }
            _ => Request::Answer(Responder { protocol, bind, threads, cpus, delay_us }),
        };
        Ok((request, None))
    }
}

/// One load and what both ends counted.
struct LoadCounts {
    loads: Vec<LoadResult>,
    taken: Vec<Taken>,
    measured: MeterReading,
}

/// The threads of one group of a mix, and the size of their messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MixPart {
    threads: u32,
    size_bytes: u32,
}

/// The latency and the throughput threads of a mix. Both have the same size, but messages of the first have at most 1 KB.
fn mixed(text: &str, threads: u32, size_bytes: u32) -> Result<[MixPart; 2]> {
    let (latency, bulk) = mix(text, threads)?;
    let latency = MixPart { threads: latency, size_bytes: size_bytes.min(LATENCY_BYTES) };
    Ok([latency, MixPart { threads: bulk, size_bytes }])
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
        return Err(Error::Mix(text.into()));
    };
    let mut n = (f64::from(threads) * latency / (latency + bulk)).round() as u32;
    // A part with a share has at least one thread.
    if latency > 0.0 {
        n = n.max(1);
    }
    if bulk > 0.0 {
        n = n.min(threads.saturating_sub(1));
    }
    Ok((n, threads - n))
}

/// CPUs by their distance from one CPU: the first CPU of each distance.
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
    // The nearest first.
    out.sort_by_key(|(name, _)| PLACES.iter().position(|p| p == name));
    out
}

/// The CPU of the receiver: that of the state if the places are states, otherwise that of the point. `None`: any.
fn receiver_cpu(places: &[(String, u32)], are_states: bool, state: &str, p: &Point) -> Option<u32> {
    let place = if are_states { Some(state) } else { p.place.as_deref() };
    places.iter().find(|(name, _)| Some(name.as_str()) == place).map(|(_, cpu)| *cpu)
}

impl Workload for Messages {
    fn name(&self) -> &'static str {
        match self.spec.kind {
            MessagesWorkload::Rr => "rr",
            MessagesWorkload::Burst => "burst",
            MessagesWorkload::Mixed => "mixed",
            MessagesWorkload::Stream => "stream",
            MessagesWorkload::Receive => "receive",
        }
    }

    fn driver(&self) -> &'static str {
        match self.spec.driver {
            LoadDriver::BuiltIn => "built-in",
            LoadDriver::Netperf => "netperf",
            LoadDriver::Iperf3 => "iperf3",
        }
    }

    fn peer(&self) -> Option<String> {
        Some(self.sides.peer.name().to_string())
    }

    fn peer_facts(&self) -> BTreeMap<String, String> {
        self.sides.facts()
    }

    fn points(&self) -> Vec<Point> {
        let l = &self.spec;
        let points = cross(vec![Point::default()], &self.threads(), |p, (n, level)| {
            p.threads = Some(*n);
            p.level = level.map(str::to_string);
        });
        let points = cross(points, &l.sizes(), |p, n| p.size_bytes = Some(*n));
        let points = cross(points, &l.mixes(), |p, mix| p.mix = Some(mix.clone()));
        let points = cross(points, &l.flows, |p, n| p.flows = Some(*n));
        let points = cross(points, &l.skews, |p, skew| p.skew = Some(*skew));
        let points = cross(points, &l.rates, |p, rate| p.offered_per_s = Some(*rate));
        if l.kind != MessagesWorkload::Receive {
            return points;
        }
        match (self.places.is_empty(), self.places_are_states) {
            // Without a known CPU there is no point to measure.
            (true, _) => Vec::new(),
            (false, true) => points,
            (false, false) => cross(points, &self.places, |p, (place, _)| p.place = Some(place.clone())),
        }
    }

    fn trial(&mut self, p: &Point, state: &str, cx: &TrialContext) -> Result<Measurement> {
        let cpu = receiver_cpu(&self.places, self.places_are_states, state, p);
        let delayed = self.spec.delay_in.as_deref().is_none_or(|n| n == state);
        let LoadCounts { mut loads, taken, measured } = self.once(p, cpu, delayed, [cx.warmup, cx.time], cx)?;
        let mut doubts = Vec::new();
        if matches!(self.spec.kind, MessagesWorkload::Stream | MessagesWorkload::Receive)
            && self.spec.driver == LoadDriver::BuiltIn
        {
            loads.iter_mut().for_each(|l| arrived(l, cx.time, &taken));
        }
        for l in &loads {
            let who = if l.group.is_empty() { String::new() } else { format!("{}: ", l.group) };
            if let Some(o) = l.offered_per_s.filter(|o| l.sent_per_s < 0.98 * o) {
                doubts.push(format!("{who}only {:.0} of {o:.0} messages/s were sent", l.sent_per_s));
            }
            if l.done_per_s == 0.0 && l.bits_per_s == 0.0 {
                doubts.push(format!("{who}nothing arrived"));
            }
        }
        let busiest = loads.iter().filter_map(|l| l.busiest_thread_percent).reduce(f64::max);
        let offered = (!loads.is_empty() && loads.iter().all(|l| l.offered_per_s.is_some()))
            .then(|| loads.iter().all(|l| l.offered_per_s.is_some_and(|o| l.done_per_s >= 0.98 * o)));
        let limit: Limit = meter::limit(&measured, offered, busiest);
        Ok(Measurement { loads, measured, limit, doubts })
    }

    fn end(&mut self) {
        self.sides.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_state_or_a_point() {
        use ringwise_testkit::topo::CpuSpec;
        // Two nodes of four cores with two threads; the queue is on the second node.
        let s = ringwise_testkit::machines::host("h", CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) }, Vec::new())
            .snapshot();
        let at = places(CpuId(8), &s);
        let names: Vec<&str> = at.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["same-cpu", "sibling", "same-l3", "other-node"]);
        let point = |place: Option<&str>| Point { place: place.map(String::from), ..Point::default() };
        let of = |are_states, state, place| receiver_cpu(&at, are_states, state, &point(place));
        assert_eq!((of(true, "same-cpu", None), of(true, "other-node", None)), (Some(8), Some(0)));
        assert_eq!((of(false, "before", Some("same-cpu")), of(false, "before", None)), (Some(8), None));
    }

    #[test]
    fn levels_by_cores() {
        let of = |cores, kind| [Level::Light, Level::Medium, Level::Heavy].map(|l| l.threads(cores, kind));
        // The article has 48 cores and 96 threads under heavy load.
        assert_eq!(of(48, MessagesWorkload::Rr), [12, 48, 96]);
        assert_eq!(
            (of(6, MessagesWorkload::Burst), of(1, MessagesWorkload::Rr), of(2, MessagesWorkload::Mixed)),
            ([2, 6, 12], [1, 1, 2], [2, 2, 4])
        );
    }

    #[test]
    fn latency_messages_of_a_mix_have_at_most_a_kilobyte() {
        let part = |threads, size_bytes| MixPart { threads, size_bytes };
        for (size, latency) in [(64, 64), (1024, 1024), (4096, 1024), (65_536, 1024)] {
            for (text, l, b) in
                [("1/2:1/2", 24, 24), ("2/3:1/3", 32, 16), ("1/3:2/3", 16, 32), ("1:0", 48, 0), ("0:1", 0, 48)]
            {
                assert_eq!(mixed(text, 48, size).unwrap(), [part(l, latency), part(b, size)], "{text} of {size}");
            }
        }
    }

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

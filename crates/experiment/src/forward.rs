//! `ringwise bench forward`: packets through this host, from the peer's ports to the peer's sink.

use std::collections::BTreeMap;
use std::time::Duration;

use ringwise_bench::compare;
use ringwise_bench::design::order;
use ringwise_bench::forward::{self as recipe, Addresses, PacketSource, flow, frame_of_payload, spans};
use ringwise_bench::rate::RateSearch;
use ringwise_bench::result::{Limit, LoadResult, Point, Port, Rate, Trial};
use ringwise_bench::side::{DevCount, Pktgen, Reply, Request, Side};
use ringwise_knob::{Match, irq};
use ringwise_model::{CpuSet, Nic, Snapshot, Vector};
use ringwise_sys::routes::Routes;
use ringwise_sys::{Host, hold};

use crate::axes::cross;
use crate::context::{Event, Measurement, TrialContext, Workload};
use crate::error::{Error, Result};
use crate::meter::MeterReading;
use crate::session::{Experiment, Finished};
use crate::sides::{PATIENCE, Sides, unexpected};

/// Number of sources that the recipe uses in turn. Most devices have room for as many rules.
pub const SOURCES: u32 = 64;
/// Number of source ports between two addresses: enough that flows by chance are even over the queues.
const SOURCE_PORTS: u32 = 512;
/// Precision of the search, relative to the interval between a rate with loss and a rate without.
const PRECISION: f64 = 0.02;
const MOST_TRIALS: u32 = 24;
/// The loss in per cent that is accepted for the partial drop rate (RFC 2544).
const PARTIAL_PERCENT: f64 = 0.5;

/// Rates by which interrupts are moved before a trial, one after the other until all have moved.
const SETTLING_PER_S: [f64; 4] = [1_000.0, 100.0, 30.0, 30.0];

/// How packets are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipe {
    /// Random sources and destinations.
    Random,
    /// Sources in turn, each frame sent four times, CPUs kept awake.
    Turn,
    /// One source and one destination, source ports in turn.
    Ports,
}

/// The size of the frames at this point, without FCS.
fn frame_of(p: &Point) -> u32 {
    match (p.frame_bytes, p.size_bytes) {
        (Some(frame), _) => recipe::padded(frame),
        (None, payload) => frame_of_payload(payload.unwrap_or(0)),
    }
}

/// Packets through this host. Lists of numbers are axes of the session.
#[derive(Debug, Clone)]
pub struct ForwardSpec {
    /// Ports of this host that receive packets.
    pub into: Vec<String>,
    /// The port of this host that sends the packets on.
    pub out: String,
    /// The peer's ports that send, one for each of `into`.
    pub generators: Vec<String>,
    /// The peer's port that receives the forwarded packets.
    pub sink: String,
    /// How packets are made.
    pub recipe: Recipe,
    /// Their sources and destinations.
    pub addresses: Addresses,
    /// Payload bytes of UDP.
    pub sizes: Vec<u32>,
    /// Frame bytes without FCS, if `sizes` is empty. Both empty: those of the article.
    pub frames: Vec<u32>,
    /// Number of sources or source ports used in turn. Empty, or a recipe with random sources: the recipe's own number.
    pub flows: Vec<u32>,
    /// Offered packets a second. Empty: as many as possible.
    pub rates: Vec<f64>,
    /// How many ports of `into` are loaded at once.
    pub interfaces: Vec<u32>,
    /// Number of routes that are added during the measurement.
    pub routes: Vec<u32>,
    /// Search the highest rate, up to the largest of `rates`.
    pub find_rate: bool,
    /// CPUs that generate. None: all CPUs of the peer, the last ones first, because a layout begins at the first CPU.
    pub cpus_peer: Option<CpuSet>,
    /// The peer is a network namespace of this host, so both share the CPUs.
    pub same_host: bool,
}

/// Packets of the peer, forwarded by this host, counted at the peer.
pub struct Forward {
    spec: ForwardSpec,
    sides: Sides,
    from: Vec<PacketSource>,
    ports: Vec<Port>,
    routes: Option<Routes>,
    /// The state of the last trial. Before a trial in another state, its interrupts are moved.
    state: String,
    /// `/dev/cpu_dma_latency`, held open as the recipe requires.
    _awake: Option<hold::CpuLatency>,
}

impl Forward {
    /// Errors: CPUs of the peer are unknown, a port here has no MAC address, CPUs cannot be kept awake.
    pub fn new(spec: ForwardSpec, sides: Sides, s: &Snapshot, host: &dyn Host) -> Result<Self> {
        let there: CpuSet = sides.hello.cpus.parse().unwrap_or_default();
        let cpus: Vec<u32> = match &spec.cpus_peer {
            Some(l) => l.iter().map(|c| c.0).collect(),
            None => there.iter().map(|c| c.0).collect::<Vec<_>>().into_iter().rev().collect(),
        };
        if cpus.is_empty() {
            return Err(Error::CpusUnknown { who: sides.peer.name().into(), here: false });
        }
        let mut from = Vec::new();
        for (i, (generator, port)) in spec.generators.iter().zip(&spec.into).enumerate() {
            let to_mac = host.read_text(&format!("/sys/class/net/{port}/address"))?.trim().to_string();
            from.push(PacketSource { dev: generator.clone(), cpu: cpus[i % cpus.len()], to_mac });
        }
        let awake = match spec.recipe {
            Recipe::Turn => Some(hold::cpu_latency(0).map_err(Error::CpuLatency)?),
            Recipe::Random | Recipe::Ports => None,
        };
        let out = s.nic(&spec.out);
        let ports = vec![Port {
            name: spec.out.clone(),
            driver: out.and_then(|n| n.driver.known().cloned()).unwrap_or_default(),
            speed_mbit_per_s: out.and_then(|n| n.link.speed_mbps.known()).map(|m| u64::from(*m)),
        }];
        Ok(Self { spec, sides, from, ports, routes: None, state: String::new(), _awake: awake })
    }

    /// All ports of this host that are counted.
    pub fn devs(&self) -> Vec<String> {
        self.spec.into.iter().chain([&self.spec.out]).cloned().collect()
    }

    fn load(&self, p: &Point, per_s: Option<f64>, cx: &TrialContext) -> Pktgen {
        let n = p.interfaces.unwrap_or(u32::MAX) as usize;
        let from = &self.from[..self.from.len().min(n)];
        let (frame, time) = (frame_of(p), cx.time);
        let mut out = match self.spec.recipe {
            Recipe::Random => recipe::greenhost(from, frame, per_s, time, self.spec.addresses),
            Recipe::Turn => {
                let sources = p.flows.unwrap_or(SOURCES);
                recipe::redhat(from, frame, sources, per_s, time, self.spec.addresses)
            }
            Recipe::Ports => {
                let flows = p.flows.unwrap_or(SOURCE_PORTS);
                recipe::two_addresses(from, frame, flows, per_s, time, self.spec.addresses)
            }
        };
        out.warmup = cx.warmup;
        out.count = from.iter().map(|f| f.dev.clone()).chain([self.spec.sink.clone()]).collect();
        out
    }

    fn sent(&mut self, load: Pktgen, patience: Duration) -> Result<(Vec<LoadResult>, [Vec<DevCount>; 4])> {
        match self.sides.peer.ask(Request::Pktgen(load), patience)? {
            Reply::Generated { loads, counts } => Ok((loads, counts)),
            other => Err(unexpected(&self.sides.peer, other)),
        }
    }

    /// An interrupt goes to its new CPU when it is raised the next time; a queue that is never empty raises none, and stays with
    /// the CPU that polls it. So this sends slowly, and waits until everything is processed. If some have not moved, it sends
    /// still more slowly. Returns a doubt if some do not move at all.
    fn settle(&mut self, load: &Pktgen, state: &str, cx: &TrialContext) -> Result<Option<String>> {
        if self.state == state {
            return Ok(None);
        }
        let mut left = 0;
        for per_s in SETTLING_PER_S {
            let thin = recipe::settle(load, per_s);
            let patience = PATIENCE + thin.time;
            self.sent(thin, patience)?;
            self.drain(cx)?;
            left = self.not_moved(cx)?;
            if left == 0 {
                break;
            }
        }
        self.state = state.to_string();
        Ok((left > 0).then(|| match left {
            1 => "an interrupt had not moved to the CPU of its mask when the load began".into(),
            n => format!("{n} interrupts had not moved to the CPUs of their masks when the load began"),
        }))
    }

    /// Waits until the ports receive almost nothing any more, for 5 s at most: the queues of an overloaded CPU are still full.
    fn drain(&self, cx: &TrialContext) -> Result<()> {
        let received = || -> Option<u64> {
            let one = |dev: &String| -> Option<u64> {
                cx.host.read_text(&format!("/sys/class/net/{dev}/statistics/rx_packets")).ok()?.trim().parse().ok()
            };
            self.spec.into.iter().map(one).sum()
        };
        let mut last = received();
        for _ in 0..20 {
            cx.wait(Duration::from_millis(250))?;
            let now = received();
            match (last, now) {
                (Some(last), Some(now)) if now.saturating_sub(last) >= 20 => {}
                _ => break,
            }
            last = now;
        }
        Ok(())
    }

    /// Interrupts of queues under load that are on another CPU than their mask has.
    fn not_moved(&self, cx: &TrialContext) -> Result<usize> {
        let now = ringwise_discover::snapshot(&cx.host, &ringwise_discover::Options::layout(&cx.devs))?;
        let is_used = |n: &Nic, v: &Vector| match n.name() == self.spec.out {
            true => !v.tx().is_empty(),
            false => !v.rx().is_empty(),
        };
        let is_elsewhere = |v: &Vector| v.asked.known().is_some_and(|m| irq::compare_vector(v, m) == Match::Pending);
        let all = now.nics.iter().flat_map(|n| n.queue_vectors().map(move |v| (n, v)));
        Ok(all.filter(|(n, v)| is_used(n, v) && is_elsewhere(v)).count())
    }

    /// Sends at this rate and returns the result.
    fn once(&mut self, p: &Point, per_s: Option<f64>, state: &str, cx: &TrialContext) -> Result<Measurement> {
        self.routes(p)?;
        let load = self.load(p, per_s, cx);
        let mut doubts: Vec<String> = self.settle(&load, state, cx)?.into_iter().collect();
        let frame = load.ports.first().map_or(0, |p| p.frame_bytes);
        let (warmup, time, counted) = (load.warmup, load.time, load.count.clone());
        let mut meter = cx.meter()?;
        self.sides.peer.start(Request::Pktgen(load))?;
        cx.wait(warmup)?;
        meter.begin();
        cx.wait(time)?;
        let mut measured = meter.end()?;
        let (loads, counts) = match self.sides.peer.finish(PATIENCE + time)? {
            Reply::Generated { loads, counts } => (loads, counts),
            other => return Err(unexpected(&self.sides.peer, other)),
        };
        let [before, warm, end, last] = &counts;
        let senders: Vec<String> = counted.iter().filter(|d| **d != self.spec.sink).cloned().collect();
        let sink = [self.spec.sink.clone()];
        let both = |a: &[DevCount], b: &[DevCount]| -> Result<recipe::ForwardedPackets> {
            let (sent, arrived) = (spans(&senders, a, b)?, spans(&sink, a, b)?);
            Ok(flow(&sent, &[], &[], Some(&arrived)))
        };
        // Rates are measured over the window. Losses are measured over the whole run, because no packet is in flight at
        // its ends.
        let (whole, window) = (both(before, last)?, both(warm, end)?);
        if whole.sent > 0 && whole.arrived == Some(0) {
            return Err(self.nothing_arrived(cx));
        }
        let seconds = match (warm.first(), end.first()) {
            (Some(a), Some(b)) if b.at_ns > a.at_ns => (b.at_ns - a.at_ns) as f64 / 1e9,
            _ => time.as_secs_f64(),
        };
        let mut l = window.load(&loads, frame, seconds);
        l.lost_percent = whole.lost_percent();
        if let Some(o) = per_s.filter(|o| l.sent_per_s < 0.98 * o) {
            doubts.push(format!("the generator sent {:.0} of {o:.0} packets/s", l.sent_per_s));
        }
        self.host_side(&mut measured, &l, frame);
        let generator: Vec<_> = match self.spec.same_host {
            true => measured.side.cpus.iter().filter(|c| self.from.iter().any(|f| f.cpu == c.cpu)).cloned().collect(),
            false => Vec::new(),
        };
        let limit = recipe::limit(&l, &measured.side, &self.ports, &generator);
        Ok(Measurement { loads: vec![l], measured, limit, doubts })
    }

    /// Adds the rates of received and forwarded packets, and where packets were lost.
    fn host_side(&self, m: &mut MeterReading, l: &LoadResult, frame: u32) {
        let link = |dev: &str| m.rates.links.get(dev);
        let received: Option<u64> = self.spec.into.iter().map(|d| link(d)?.rx.packets).sum();
        let forwarded = link(&self.spec.out).and_then(|l| l.tx.packets);
        let per_s = |n: Option<u64>| n.map(|n| n as f64 / m.seconds);
        let (received_per_s, forwarded_per_s) = (per_s(received), per_s(forwarded));
        m.side.received_per_s = received_per_s;
        m.side.transmitted_per_s = forwarded_per_s;
        let lost = |from: Option<f64>, to: Option<f64>| -> Option<u64> {
            let n = (from? - to?) * m.seconds;
            // A difference of up to 0.1 % may be packets in flight at the ends of the window.
            (n > 0.001 * from? * m.seconds).then_some(n as u64)
        };
        let places = [
            ("wire or ring before this host", lost(Some(l.sent_per_s), received_per_s)),
            ("between the ports", lost(received_per_s, forwarded_per_s)),
            ("wire or ring after this host", lost(forwarded_per_s, Some(l.done_per_s))),
        ];
        for (place, n) in places {
            if let Some(n) = n {
                m.side.lost.insert(place.into(), n);
            }
        }
        match self.ports.first().and_then(|p| p.speed_mbit_per_s).filter(|s| *s > 0) {
            Some(speed) => {
                let line = recipe::line_rate_per_s(speed, frame);
                m.side.line_rate_percent = forwarded_per_s.map(|r| 100.0 * r / line);
                m.side.budget_ns_per_packet = recipe::budget_ns(speed, frame);
            }
            None => {
                m.side.line_rate_percent = None;
                m.side.unknown.insert("line rate".into(), format!("{} does not report its speed", self.spec.out));
            }
        }
        if let (Some(ns), Some(n)) = (m.side.cpu_ns_per_packet, forwarded.filter(|n| *n > 0)) {
            // Per forwarded packet, not per received packet.
            let packets = received.unwrap_or(n).max(n);
            m.side.cpu_ns_per_packet = Some(ns * packets as f64 / n as f64);
            m.side.cycles_per_packet = m.side.cycles_per_packet.map(|c| c * packets as f64 / n as f64);
        }
    }

    fn nothing_arrived(&self, cx: &TrialContext) -> Error {
        let mut hints = Vec::new();
        for dev in self.spec.into.iter().map(String::as_str).chain(["all"]) {
            let path = format!("/proc/sys/net/ipv4/conf/{dev}/rp_filter");
            if cx.host.read_text(&path).is_ok_and(|t| t.trim() == "1") {
                hints.push(format!("rp_filter of {dev} is 1: sources that are not routed back are dropped"));
            }
        }
        hints.push(format!(
            "the route to {}/24 by {} and a neighbour behind it (ip route, ip neighbour)",
            self.spec.addresses.destinations, self.spec.out
        ));
        hints.push("the order of --in and --gen".into());
        Error::NothingArrived { sink: self.spec.sink.clone(), look_at: hints }
    }

    fn routes(&mut self, p: &Point) -> Result<()> {
        let wanted = p.routes.unwrap_or(0);
        if self.routes.as_ref().map_or(0, Routes::count) != wanted {
            self.routes = None;
            if wanted > 0 {
                self.routes = Some(Routes::add(wanted)?);
            }
        }
        Ok(())
    }
}

impl Forward {
    /// The highest rate that is tried: `--rate`, or the sum of the line rates of the incoming ports.
    fn top(&self, p: &Point) -> f64 {
        let n = p.interfaces.map_or(self.from.len(), |n| self.from.len().min(n as usize)) as f64;
        let frame = frame_of(p);
        let speed = self.ports.first().and_then(|p| p.speed_mbit_per_s).filter(|s| *s > 0).unwrap_or(10_000);
        let asked = self.spec.rates.iter().copied().fold(None, |m: Option<f64>, r| Some(m.map_or(r, |m| m.max(r))));
        asked.unwrap_or_else(|| n * recipe::line_rate_per_s(speed, frame))
    }
}

impl Workload for Forward {
    fn name(&self) -> &'static str {
        "forward"
    }

    fn driver(&self) -> &'static str {
        "pktgen"
    }

    fn peer(&self) -> Option<String> {
        Some(self.sides.peer.name().to_string())
    }

    fn peer_facts(&self) -> BTreeMap<String, String> {
        self.sides.facts()
    }

    fn points(&self) -> Vec<Point> {
        let l = &self.spec;
        let frames = match (l.sizes.is_empty(), l.frames.is_empty()) {
            (true, true) => recipe::GREENHOST_FRAMES.to_vec(),
            _ => l.frames.clone(),
        };
        let points = cross(vec![Point::default()], &l.sizes, |p, n| p.size_bytes = Some(*n));
        let points = cross(points, &frames, |p, n| p.frame_bytes = Some(*n));
        let points = cross(points, &l.interfaces, |p, n| p.interfaces = Some(*n));
        let points = cross(points, &l.routes, |p, n| p.routes = Some(*n));
        let points = cross(points, &l.flows, |p, n| p.flows = Some(*n));
        // The rates of a search are not points of the session.
        let rates = if l.find_rate { &[] } else { l.rates.as_slice() };
        cross(points, rates, |p, rate| p.offered_per_s = Some(*rate))
    }

    fn trial(&mut self, p: &Point, state: &str, cx: &TrialContext) -> Result<Measurement> {
        self.once(p, p.offered_per_s, state, cx)
    }

    fn end(&mut self) {
        self.routes = None;
        self.sides.stop();
    }
}

impl Experiment<'_> {
    /// The highest rates in every block, state and point, in the order of trials.
    ///
    /// Errors: as [`Experiment::run`].
    pub fn find_rates(mut self, load: &mut Forward) -> Result<Finished> {
        let mut trials = Vec::new();
        let mut rates = Vec::new();
        let broken = self.rates(load, &mut trials, &mut rates).err();
        load.end();
        // The offered rates are not points of the session.
        let comparisons = compare::rates(&self.session, &rates);
        self.finish(trials, rates, comparisons, broken)
    }

    fn rates(&mut self, load: &mut Forward, trials: &mut Vec<Trial>, rates: &mut Vec<Rate>) -> Result<()> {
        let points = load.points();
        let d = self.session.design.clone();
        for slot in order(self.session.states.len(), points.len(), d.blocks, 0, d.seed) {
            let (point, state) = (&points[slot.point], self.state(&slot));
            let top = load.top(point);
            let mut search = RateSearch::new(top / 1000.0, top, &[0.0, PARTIAL_PERCENT], PRECISION, MOST_TRIALS);
            let mut tried = 0;
            while let Some(per_s) = search.ask() {
                self.go(slot.state, self.one() * MOST_TRIALS.saturating_sub(tried).max(1))?;
                tried += 1;
                let at_s = self.begin.elapsed().as_secs_f64();
                let got = load.once(point, Some(per_s), &state, &self.cx)?;
                self.switch.holds()?;
                self.cx.links()?;
                let (sent, lost_percent) =
                    got.loads.first().map_or((0.0, 100.0), |l| (l.sent_per_s, l.lost_percent.unwrap_or(100.0)));
                (self.tell)(&Event::Rate { slot: &slot, state: &state, point, per_s, lost_percent });
                search.record_result(sent, lost_percent);
                let point = Point { offered_per_s: Some(per_s), ..point.clone() };
                trials.push(self.keep(point, &slot, at_s, got)?);
            }
            for loss_percent in [0.0, PARTIAL_PERCENT] {
                let f = search.result(loss_percent);
                let limit = match f.limit {
                    Limit::Unknown => trials.last().map(|t| t.limit.clone()).unwrap_or_default(),
                    known => known,
                };
                let rate = Rate {
                    point: point.clone(),
                    state: state.clone(),
                    block: slot.block,
                    loss_percent,
                    found_per_s: f.found_per_s,
                    above_per_s: f.above_per_s,
                    trials: f.trials,
                    limit,
                };
                self.keep_rate(&rate)?;
                rates.push(rate);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_sent_as_named_and_a_payload_with_its_headers() {
        let of = |frame_bytes, size_bytes| frame_of(&Point { frame_bytes, size_bytes, ..Point::default() });
        assert_eq!([1000, 100, 60, 50, 20].map(|n| of(Some(n), None)), [1000, 100, 60, 60, 60]);
        assert_eq!([1000, 100, 18, 1].map(|n| of(None, Some(n))), [1042, 142, 60, 60]);
    }
}

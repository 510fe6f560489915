//! `ringwise bench forward`: packets through this host, from the peer's ports to the peer's sink.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use ringwise_bench::design::order;
use ringwise_bench::file::Results;
use ringwise_bench::forward::{self as recipe, Addresses, From, flow, frame_of_payload, spans};
use ringwise_bench::rate::RateSearch;
use ringwise_bench::result::{Limit, Line, LoadResult, Point, Port, Rate, Trial};
use ringwise_bench::side::{DevCount, Pktgen, Reply, Request, Side};
use ringwise_bench::{compare, words};
use ringwise_discover::{Options, Parts};
use ringwise_model::{CpuSet, Fact, Snapshot};
use ringwise_sys::hold;
use ringwise_sys::routes::Routes;

use super::session::{self, Cx, Got, Ready, Workload};
use super::sides::{self, PATIENCE, Sides, failed, unexpected};
use super::{ended, states};
use crate::args::{Common, Recipe, RunArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;
use crate::source::{self, Source};

/// Sources of the recipe in turn: as many as a device has room for rules, mostly.
const SOURCES: u32 = 64;
/// Of what is left of the interval between a rate that is lost at and one that is not.
const PRECISION: f64 = 0.02;
const MOST_TRIALS: u32 = 24;
/// What RFC 2544's partial drop rate is called with here.
const PARTIAL_PERCENT: f64 = 0.5;

pub(super) struct Forward<'a> {
    a: &'a RunArgs,
    sides: Sides,
    from: Vec<From>,
    into: Vec<String>,
    out: String,
    sink: String,
    addresses: Addresses,
    ports: Vec<Port>,
    routes: Option<Routes>,
    /// Where the last trial was: another state has its interrupts moved first.
    state: String,
    /// `/dev/cpu_dma_latency`, held as the recipe has it.
    _awake: Option<hold::CpuLatency>,
}

pub(super) fn run(a: &RunArgs, common: &Common) -> Result<Status> {
    let source = source::live()?;
    let s = source.snapshot(&Options { parts: Parts::ALL, ..Options::all() }, common)?;
    let (mut list, swept) = states::wanted(&a.states)?;
    let mut load = Forward::open(a, &s, &source)?;
    if a.forward.lead {
        load.lead(&mut list, &s)?;
    }
    let ready = session::ready(a, load.devs(), &source, common, &load, &list, swept)?;
    if !a.forward.find_rate {
        return ended(a, common, session::run(ready, &mut load));
    }
    ended(a, common, find_rates(ready, &mut load))
}

impl<'a> Forward<'a> {
    pub(super) fn open(a: &'a RunArgs, s: &Snapshot, source: &Source) -> Result<Self> {
        Self::new(a, s, |dev| {
            let path = format!("/sys/class/net/{dev}/address");
            source.host.read_text(&path).map(|t| t.trim().to_string()).map_err(|e| Fail::error(e.to_string()))
        })
    }

    /// Every port here that is counted.
    pub(super) fn devs(&self) -> Vec<String> {
        self.into.iter().chain([&self.out]).cloned().collect()
    }

    fn new(a: &'a RunArgs, s: &Snapshot, mac: impl Fn(&str) -> Result<String>) -> Result<Self> {
        let f = &a.forward;
        let sound = !f.into.is_empty() && f.generators.len() == f.into.len();
        let (Some(out), Some(sink), true) = (&f.out, &f.sink, sound) else {
            return Err(Fail::usage(
                "forward needs --in DEV,DEV and --out DEV here, and at the peer --gen DEV,DEV (one for each of --in) and --sink DEV",
            ));
        };
        if f.into.contains(out) {
            return Err(Fail::usage(format!(
                "{out} is in --in and --out: packets that go back where they came from are not forwarded"
            )));
        }
        if s.host.forwarding == Fact::Known(false) {
            return Err(Fail::error("this host does not forward: net.ipv4.ip_forward is 0")
                .next("sysctl -w net.ipv4.ip_forward=1"));
        }
        let sides = sides::open(&a.peer)?;
        let there: CpuSet = sides.hello.cpus.parse().unwrap_or_default();
        // The last CPUs: a layout begins at the first.
        let cpus: Vec<u32> = match &a.load.peer_cpus {
            Some(l) => l.iter().map(|c| c.0).collect(),
            None => there.iter().map(|c| c.0).collect::<Vec<_>>().into_iter().rev().collect(),
        };
        if cpus.is_empty() {
            return Err(
                Fail::error(format!("{} does not say which CPUs it has", sides.peer.name())).next("--peer-cpus LIST")
            );
        }
        let mut from = Vec::new();
        for (i, (generator, port)) in f.generators.iter().zip(&f.into).enumerate() {
            from.push(From { dev: generator.clone(), cpu: cpus[i % cpus.len()], to_mac: mac(port)? });
        }
        let net = |text: &Option<String>, default: Ipv4Addr, bits: u32, flag: &str| -> Result<Ipv4Addr> {
            let Some(text) = text else { return Ok(default) };
            let (addr, len) = text.split_once('/').unwrap_or((text, ""));
            let addr: Option<Ipv4Addr> = addr.parse().ok();
            let right = addr.filter(|_| len.is_empty() || len == bits.to_string());
            right.ok_or_else(|| {
                Fail::usage(format!(
                    "{flag} \"{text}\" is no network of {bits} bits (right would be e.g. {default}/{bits})"
                ))
            })
        };
        let default = Addresses::default();
        let addresses = Addresses {
            sources: net(&f.sources, default.sources, 8, "--sources")?,
            destinations: net(&f.destinations, default.destinations, 24, "--destinations")?,
        };
        let awake = match f.recipe {
            Recipe::Turn => {
                Some(hold::cpu_latency(0).map_err(|e| Fail::error(format!("{e}: the recipe keeps CPUs awake")))?)
            }
            Recipe::Random => None,
        };
        let speed = s.nic(out).and_then(|n| n.link.speed_mbps.known()).map(|m| u64::from(*m));
        let driver = s.nic(out).and_then(|n| n.driver.known().cloned()).unwrap_or_default();
        let ports = vec![Port { name: out.clone(), driver, speed_mbit_per_s: speed }];
        Ok(Self {
            a,
            sides,
            from,
            into: f.into.clone(),
            out: out.clone(),
            sink: sink.clone(),
            addresses,
            ports,
            routes: None,
            state: String::new(),
            _awake: awake,
        })
    }

    fn load(&self, p: &Point, per_s: Option<f64>) -> Pktgen {
        let n = p.interfaces.unwrap_or(u32::MAX) as usize;
        let from = &self.from[..self.from.len().min(n)];
        let (frame, time) = (frame_of_payload(p.size_bytes.unwrap_or(20)), self.a.design.trial);
        let mut out = match self.a.forward.recipe {
            Recipe::Random => recipe::greenhost(from, frame, per_s, time, self.addresses),
            Recipe::Turn => {
                let sources = p.flows.unwrap_or(SOURCES);
                recipe::redhat(from, frame, sources, per_s, time, self.addresses)
            }
        };
        out.warmup = self.a.design.warm;
        out.count = from.iter().map(|f| f.dev.clone()).chain([self.sink.clone()]).collect();
        out
    }

    fn sent(&mut self, load: Pktgen, patience: Duration) -> Result<(Vec<LoadResult>, [Vec<DevCount>; 4])> {
        match self.sides.peer.ask(Request::Pktgen(load), patience).map_err(failed)? {
            Reply::Generated { loads, counts } => Ok((loads, counts)),
            other => Err(unexpected(&self.sides.peer, &other)),
        }
    }

    /// An interrupt goes to its new CPU when it is raised the next time; a queue that is never empty raises none.
    fn settle(&mut self, load: &Pktgen, state: &str) -> Result<()> {
        if self.state == state {
            return Ok(());
        }
        let thin = recipe::settle(load);
        let patience = PATIENCE + thin.time;
        self.sent(thin, patience)?;
        self.state = state.to_string();
        Ok(())
    }

    /// Sends at this rate, and what became of it.
    fn once(&mut self, p: &Point, per_s: Option<f64>, state: &str, cx: &Cx) -> Result<Got> {
        self.routes(p)?;
        let load = self.load(p, per_s);
        self.settle(&load, state)?;
        let frame = load.ports.first().map_or(0, |p| p.frame_bytes);
        let (warmup, time, counted) = (load.warmup, load.time, load.count.clone());
        let mut meter = cx.meter()?;
        self.sides.peer.start(Request::Pktgen(load)).map_err(failed)?;
        cx.wait(warmup)?;
        meter.begin();
        cx.wait(time)?;
        let mut measured = meter.end()?;
        let (loads, counts) = match self.sides.peer.finish(PATIENCE + time).map_err(failed)? {
            Reply::Generated { loads, counts } => (loads, counts),
            other => return Err(unexpected(&self.sides.peer, &other)),
        };
        let [before, warm, end, last] = &counts;
        let senders: Vec<String> = counted.iter().filter(|d| **d != self.sink).cloned().collect();
        let sink = [self.sink.clone()];
        let both = |a: &[DevCount], b: &[DevCount]| -> Result<recipe::Flow> {
            let far = Fail::error;
            let (sent, arrived) = (spans(&senders, a, b).map_err(far)?, spans(&sink, a, b).map_err(far)?);
            Ok(flow(&sent, &[], &[], Some(&arrived)))
        };
        // Rates are those of the window, losses those of the whole run: nothing is on its way at its ends.
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
        let mut doubts = Vec::new();
        if let Some(o) = per_s.filter(|o| l.sent_per_s < 0.98 * o) {
            doubts.push(format!("the generator sent {:.0} of {o:.0} packets/s", l.sent_per_s));
        }
        self.host_side(&mut measured, &l, frame);
        let generator: Vec<_> = match self.a.peer.netns.is_some() {
            true => measured.side.cpus.iter().filter(|c| self.from.iter().any(|f| f.cpu == c.cpu)).cloned().collect(),
            false => Vec::new(),
        };
        let limit = recipe::limit(&l, &measured.side, &self.ports, &generator);
        Ok(Got { loads: vec![l], measured, limit, doubts })
    }

    /// Line rate of the port out, and what was lost between the ports of this host.
    fn host_side(&self, m: &mut super::meter::Measured, l: &LoadResult, frame: u32) {
        let link = |dev: &str| m.rates.links.get(dev);
        let received: Option<u64> = self.into.iter().map(|d| link(d)?.rx.packets).sum();
        let forwarded = link(&self.out).and_then(|l| l.tx.packets);
        let per_s = |n: Option<u64>| n.map(|n| n as f64 / m.seconds);
        let (received_per_s, forwarded_per_s) = (per_s(received), per_s(forwarded));
        m.side.received_per_s = received_per_s;
        m.side.transmitted_per_s = forwarded_per_s;
        let lost = |from: Option<f64>, to: Option<f64>| -> Option<u64> {
            let n = (from? - to?) * m.seconds;
            // Both ends of the window have packets on their way.
            (n > 0.001 * from? * m.seconds).then_some(n as u64)
        };
        let places = [
            ("wire or ring in", lost(Some(l.sent_per_s), received_per_s)),
            ("between the ports", lost(received_per_s, forwarded_per_s)),
            ("wire or ring behind", lost(forwarded_per_s, Some(l.done_per_s))),
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
                m.side.unknown.insert("line rate".into(), format!("{} does not say its speed", self.out));
            }
        }
        if let (Some(ns), Some(n)) = (m.side.cpu_ns_per_packet, forwarded.filter(|n| *n > 0)) {
            // For each packet that was forwarded, not received.
            let packets = received.unwrap_or(n).max(n);
            m.side.cpu_ns_per_packet = Some(ns * packets as f64 / n as f64);
            m.side.cycles_per_packet = m.side.cycles_per_packet.map(|c| c * packets as f64 / n as f64);
        }
    }

    fn nothing_arrived(&self, cx: &Cx) -> Fail {
        let mut hints = Vec::new();
        for dev in self.into.iter().map(String::as_str).chain(["all"]) {
            let path = format!("/proc/sys/net/ipv4/conf/{dev}/rp_filter");
            if cx.source.host.read_text(&path).is_ok_and(|t| t.trim() == "1") {
                hints.push(format!("rp_filter of {dev} is 1: sources that are not routed back are dropped"));
            }
        }
        hints.push(format!(
            "the route to {}/24 by {} and a neighbour behind it (ip route, ip neighbour)",
            self.addresses.destinations, self.out
        ));
        hints.push("the order of --in and --gen".into());
        Fail::error(format!(
            "nothing that was sent arrived at {} of the peer. Look at: {}",
            self.sink,
            hints.join("; ")
        ))
    }

    fn routes(&mut self, p: &Point) -> Result<()> {
        let wanted = p.routes.unwrap_or(0);
        if self.routes.as_ref().map_or(0, Routes::count) != wanted {
            self.routes = None;
            if wanted > 0 {
                self.routes = Some(Routes::add(wanted).map_err(|e| Fail::error(e.to_string()))?);
            }
        }
        Ok(())
    }
}

impl Forward<'_> {
    /// Rules that force each source to its queue, among the flags of every state: round and round over the queues that the
    /// state has.
    fn lead(&self, list: &mut [states::Wanted], s: &Snapshot) -> Result<()> {
        if self.a.forward.recipe != Recipe::Turn {
            return Err(Fail::usage("--lead is for --recipe turn: random sources are too many for rules"));
        }
        let sources = self.a.load.flows.iter().copied().max().unwrap_or(SOURCES);
        for w in list {
            let mut flags = w.flags.take().unwrap_or_default();
            for dev in &self.into {
                let now = s.nic(dev).and_then(|n| n.channels.known()).map(|c| c.rx_queues()).filter(|n| *n > 0);
                let now = now.ok_or_else(|| Fail::error(format!("{dev} does not say how many queues it has")))?;
                let queues = w.value.filter(|_| flags.contains("--queues")).map_or(now, |v| v as u32);
                let rules: Vec<String> = recipe::redhat_rules(sources, queues, self.addresses)
                    .iter()
                    .map(|r| format!("\"{}\"", r.trim_start_matches("flow-type ")))
                    .collect();
                flags.push_str(&format!(" --set '{dev}.rule=[{}]'", rules.join(",")));
            }
            w.flags = Some(flags.trim().to_string());
        }
        Ok(())
    }

    /// The highest rate that is tried: `--rate`, else what the ports in carry together.
    fn top(&self, p: &Point) -> f64 {
        let n = p.interfaces.map_or(self.from.len(), |n| self.from.len().min(n as usize)) as f64;
        let frame = frame_of_payload(p.size_bytes.unwrap_or(20));
        let speed = self.ports.first().and_then(|p| p.speed_mbit_per_s).filter(|s| *s > 0).unwrap_or(10_000);
        let asked = self.a.load.rate.iter().copied().fold(None, |m: Option<f64>, r| Some(m.map_or(r, |m| m.max(r))));
        asked.unwrap_or_else(|| n * recipe::line_rate_per_s(speed, frame))
    }
}

impl Workload for Forward<'_> {
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
        let (l, f) = (&self.a.load, &self.a.forward);
        let sizes = if l.size.is_empty() { recipe::GREENHOST_SIZES.to_vec() } else { l.size.clone() };
        let some = |list: &[u32]| -> Vec<Option<u32>> {
            if list.is_empty() { vec![None] } else { list.iter().copied().map(Some).collect() }
        };
        // The rates of a search are not its points.
        let rates =
            if f.find_rate || l.rate.is_empty() { vec![None] } else { l.rate.iter().copied().map(Some).collect() };
        let mut out = Vec::new();
        for size in sizes {
            for interfaces in some(&f.interfaces) {
                for routes in some(&f.routes) {
                    for flows in some(&l.flows) {
                        for offered_per_s in &rates {
                            out.push(Point {
                                size_bytes: Some(size),
                                interfaces,
                                routes,
                                flows,
                                offered_per_s: *offered_per_s,
                                ..Point::default()
                            });
                        }
                    }
                }
            }
        }
        out
    }

    fn trial(&mut self, p: &Point, state: &str, cx: &Cx) -> Result<Got> {
        self.once(p, p.offered_per_s, state, cx)
    }

    fn end(&mut self) {
        self.routes = None;
        self.sides.stop();
    }
}

/// The highest rates in every block, state and point, in the order of trials.
fn find_rates(mut r: Ready, load: &mut Forward) -> Result<(Results, Status)> {
    let mut trials = Vec::new();
    let mut rates = Vec::new();
    let broken = searched(&mut r, load, &mut trials, &mut rates).err();
    load.end();
    // The offered rates are none of the points.
    let comparisons = compare::rates(&r.session, &rates);
    session::finish(r, trials, rates, comparisons, broken)
}

fn searched(r: &mut Ready, load: &mut Forward, trials: &mut Vec<Trial>, rates: &mut Vec<Rate>) -> Result<()> {
    let points = load.points();
    let d = r.session.design.clone();
    let one = Duration::from_secs_f64(d.warmup_s + d.trial_s) + session::AROUND;
    for slot in order(r.session.states.len(), points.len(), d.blocks, 0, d.seed) {
        let (point, state) = (&points[slot.point], r.session.states[slot.state].name.clone());
        let top = load.top(point);
        let mut search = RateSearch::new(top / 1000.0, top, &[0.0, PARTIAL_PERCENT], PRECISION, MOST_TRIALS);
        let mut tried = 0;
        while let Some(per_s) = search.ask() {
            r.switch.go(slot.state, one * MOST_TRIALS.saturating_sub(tried).max(1))?;
            tried += 1;
            let at_s = r.begin.elapsed().as_secs_f64();
            let got = load.once(point, Some(per_s), &state, &r.cx)?;
            r.switch.holds()?;
            session::links(&r.cx)?;
            let (sent, lost) =
                got.loads.first().map_or((0.0, 100.0), |l| (l.sent_per_s, l.lost_percent.unwrap_or(100.0)));
            let text = format!(
                "  block {}: {state} {}: {per_s:.0} packets/s, {lost:.2} % lost",
                slot.block + 1,
                words::point(point, point)
            );
            out::later(r.cx.common.quiet, text);
            search.saw(sent, lost);
            let mut point = point.clone();
            point.offered_per_s = Some(per_s);
            let trial = session::trial(point, &state, &slot, at_s, got, &r.switch.doubts);
            r.results.add(&Line::Trial(Box::new(trial.clone())))?;
            trials.push(trial);
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
            r.results.add(&Line::Rate(Box::new(rate.clone())))?;
            rates.push(rate);
        }
    }
    Ok(())
}

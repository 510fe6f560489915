//! Forwarding: the sent packets, the capacity of a wire, and where packets were lost. The functions only compute
//! results from counters.
//!
//! There are three recipes. Greenhost's: two incoming ports, one outgoing, random sources in a /8, random destinations in
//! a /24, frames of 1000 to 20 bytes. Red Hat's (2015): sources in turn, each frame four times, a rule for each source
//! that selects its queue, and `/dev/cpu_dma_latency` held during the test ([`ringwise_sys::hold`]). And UDP between two
//! addresses on many source ports.
//!
//! Sizes are those of a frame without FCS, as pktgen counts. Greenhost's own numbers are in these: 1000, 500, 250 and
//! 100 of them at one gigabit are 122.1, 238.5, 456.2 and 1008.1 kpps, and 122.2, 238.8, 456.8 and 1010 were measured;
//! as IP packets or UDP payload they would be 1 to 26 % fewer. 50 and 20 are padded to 60, and 1.49 Mpps is what a
//! gigabit carries.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use ringwise_model::words::plural;

use crate::result::{BitRateLayer, CpuUse, HostSide, Limit, LoadResult, Port, Unit};
use crate::side::{DevCount, Pktgen, PktgenPort};

/// The shortest frame without FCS on Ethernet; shorter ones are padded to this size.
pub const FRAME_MIN_BYTES: u32 = 60;
pub(crate) const FCS_BYTES: u32 = 4;
/// Preamble, start delimiter and the gap between frames.
pub const GAP_BYTES: u32 = 20;
/// Ethernet, IPv4 and UDP without their payload, and without FCS.
const HEADER_BYTES: u32 = 14 + 20 + 8;
/// Greenhost's frame sizes as the article prints them, in its order.
pub const GREENHOST_SIZES: [u32; 6] = [1000, 500, 250, 100, 50, 20];
/// The different frames that are sent for them: 50 and 20 are both sent with 60 bytes.
pub const GREENHOST_FRAMES: [u32; 5] = [1000, 500, 250, 100, FRAME_MIN_BYTES];
/// How often each frame is sent in [`redhat`].
const COPIES: u32 = 4;
const FIRST_SOURCE_PORT: u16 = 1024;

// ------------------------------------------------------------------ capacity of a wire

/// The size of the frame (without FCS) with this many bytes of UDP payload.
pub fn frame_of_payload(payload_bytes: u32) -> u32 {
    padded(payload_bytes.saturating_add(HEADER_BYTES))
}

/// The size that is sent for a frame of this size (without FCS): at least 60 bytes.
pub fn padded(frame_bytes: u32) -> u32 {
    frame_bytes.max(FRAME_MIN_BYTES)
}

/// The bytes that a frame (without FCS) occupies on the wire, with FCS, preamble and gap.
pub fn wire_bytes(frame_bytes: u32) -> u32 {
    padded(frame_bytes).saturating_add(FCS_BYTES + GAP_BYTES)
}

/// The number of frames of this size (without FCS) that the wire carries per second.
pub fn line_rate_per_s(speed_mbit_per_s: u64, frame_bytes: u32) -> f64 {
    speed_mbit_per_s as f64 * 1e6 / (8.0 * f64::from(wire_bytes(frame_bytes)))
}

/// Nanoseconds between two frames of this size (without FCS) at line rate; `None` without a speed.
pub fn budget_ns(speed_mbit_per_s: u64, frame_bytes: u32) -> Option<f64> {
    (speed_mbit_per_s > 0).then(|| 1e9 / line_rate_per_s(speed_mbit_per_s, frame_bytes))
}

// ------------------------------------------------------------------ sending

/// The source of a stream, and the port that receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketSource {
    /// Interface of the generator's host.
    pub dev: String,
    /// The CPU of `kpktgend_N`.
    pub cpu: u32,
    /// MAC address of the router's port at the other end of the wire.
    pub to_mac: String,
}

/// The addresses of a recipe. Both are networks whose remaining bits vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// A /8.
    pub sources: Ipv4Addr,
    /// A /24.
    pub destinations: Ipv4Addr,
}

impl Default for Addresses {
    /// Private sources, and destinations in the network that is reserved for benchmarks (RFC 2544).
    fn default() -> Addresses {
        Addresses { sources: Ipv4Addr::new(10, 0, 0, 0), destinations: Ipv4Addr::new(198, 18, 0, 0) }
    }
}

fn network(a: Ipv4Addr, bits: u32) -> (IpAddr, IpAddr) {
    let host = u32::MAX.checked_shr(bits).unwrap_or(0);
    let first = u32::from(a) & !host;
    (IpAddr::V4(first.into()), IpAddr::V4((first | host).into()))
}

/// Greenhost's load. `offered_per_s`: of all ports together, in equal parts; `None`: as fast as possible.
pub fn greenhost(
    from: &[PacketSource],
    frame_bytes: u32,
    offered_per_s: Option<f64>,
    time: Duration,
    at: Addresses,
) -> Pktgen {
    let each = offered_per_s.map(|r| r / from.len().max(1) as f64);
    let ports = from.iter().map(|f| PktgenPort {
        dev: f.dev.clone(),
        cpu: f.cpu,
        to_mac: f.to_mac.clone(),
        frame_bytes: padded(frame_bytes),
        per_s: each,
        sources: network(at.sources, 8),
        random_sources: true,
        destinations: network(at.destinations, 24),
        random_destinations: true,
        copies: 1,
        source_ports: (FIRST_SOURCE_PORT, FIRST_SOURCE_PORT),
    });
    Pktgen { ports: ports.collect(), time, ..Pktgen::default() }
}

/// Red Hat's load: this number of sources in turn, each frame four times, to one destination.
pub fn redhat(
    from: &[PacketSource],
    frame_bytes: u32,
    sources: u32,
    offered_per_s: Option<f64>,
    time: Duration,
    at: Addresses,
) -> Pktgen {
    let mut p = greenhost(from, frame_bytes, offered_per_s, time, at);
    for port in &mut p.ports {
        port.sources = (source(at, 0).into(), source(at, sources.max(1) - 1).into());
        port.random_sources = false;
        let to = IpAddr::V4((u32::from(at.destinations) & !255 | 1).into());
        port.destinations = (to, to);
        port.random_destinations = false;
        port.copies = COPIES;
    }
    p
}

/// UDP between two addresses for each port of the generator, on this number of source ports in turn: flows that a device which hashes
/// UDP by addresses alone cannot tell apart.
pub fn two_addresses(
    from: &[PacketSource],
    frame_bytes: u32,
    flows: u32,
    offered_per_s: Option<f64>,
    time: Duration,
    at: Addresses,
) -> Pktgen {
    let mut p = redhat(from, frame_bytes, 1, offered_per_s, time, at);
    for port in &mut p.ports {
        let more = u16::try_from(flows.max(1) - 1).unwrap_or(u16::MAX);
        port.source_ports = (FIRST_SOURCE_PORT, FIRST_SOURCE_PORT.saturating_add(more));
        port.copies = 1;
    }
    p
}

fn source(at: Addresses, i: u32) -> Ipv4Addr {
    (u32::from(at.sources) & 0xff00_0000 | (i + 1) & 0x00ff_ffff).into()
}

/// The rules, in the syntax of ethtool, that select the queue of each source of [`redhat`], in turn over `queues`.
pub fn redhat_rules(sources: u32, queues: u32, at: Addresses) -> Vec<String> {
    let rule = |i| format!("flow-type udp4 src-ip {} action {}", source(at, i), i % queues.max(1));
    (0..sources.max(1)).map(rule).collect()
}

/// The same load at a low rate and for a short time. It is sent after interrupts were moved and before the load itself.
///
/// An interrupt moves when it is raised the next time, and a queue that is never empty raises none: with a full load at
/// once the queues would stay on their old CPUs for the whole trial. Random sources reach every queue; 1,000 packets a
/// second (`per_s`) and half a second are enough for each of 64 queues to raise some. A load from one address, which may
/// reach one queue only, is sent from random addresses of its /8.
pub fn settle(load: &Pktgen, per_s: f64) -> Pktgen {
    let mut p = load.clone();
    p.warmup = Duration::ZERO;
    p.time = Duration::from_millis(500);
    for port in &mut p.ports {
        port.per_s = Some(port.per_s.map_or(per_s, |r| r.clamp(1.0, per_s)));
        port.copies = 1;
        if let (IpAddr::V4(first), last) = port.sources
            && last == first
        {
            port.sources = network(first, 8);
            port.random_sources = true;
        }
    }
    p
}

// ------------------------------------------------------------------ results

/// Counters of one port before and after the trial, each with the clock of its own host.
#[derive(Debug, Clone, PartialEq)]
pub struct PortCounters {
    /// Read before the first packet of the trial.
    pub before: DevCount,
    /// Read after the last packet has arrived.
    pub after: DevCount,
}

impl PortCounters {
    fn rx(&self) -> u64 {
        self.after.rx_packets.saturating_sub(self.before.rx_packets)
    }

    fn tx(&self) -> u64 {
        self.after.tx_packets.saturating_sub(self.before.tx_packets)
    }

    fn dropped(&self) -> u64 {
        self.after.rx_dropped.saturating_sub(self.before.rx_dropped)
    }
}

/// A moment at which counters are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterMoment {
    /// Before the first packet of the trial.
    Before,
    /// After the last packet has arrived.
    After,
}

impl fmt::Display for CounterMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "before",
            Self::After => "after",
        })
    }
}

/// Why the counters of a port are not a [`PortCounters`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountsError {
    /// A reading without the port.
    #[error("{dev}: no counters {moment} the trial")]
    Missing {
        /// The port.
        dev: String,
        /// Which reading.
        moment: CounterMoment,
    },
    /// The second reading is lower than the first one.
    #[error("{dev}: its counters went backwards: was it reset during the trial?")]
    Backwards {
        /// The port.
        dev: String,
    },
}

/// Pairs the counters of two readings by the port's name.
///
/// Errors: a port that only one reading has, or whose counters went backwards.
pub fn spans(devs: &[String], before: &[DevCount], after: &[DevCount]) -> Result<Vec<PortCounters>, CountsError> {
    let find = |list: &[DevCount], dev: &str, moment: CounterMoment| {
        let found = list.iter().find(|c| c.dev == dev).cloned();
        found.ok_or_else(|| CountsError::Missing { dev: dev.into(), moment })
    };
    let one = |dev: &String| {
        let s = PortCounters {
            before: find(before, dev, CounterMoment::Before)?,
            after: find(after, dev, CounterMoment::After)?,
        };
        let (b, a) = (&s.before, &s.after);
        if a.rx_packets < b.rx_packets || a.tx_packets < b.tx_packets {
            return Err(CountsError::Backwards { dev: dev.clone() });
        }
        Ok(s)
    };
    devs.iter().map(one).collect()
}

/// The packets that passed each place in one trial. The trial begins before the first packet is sent and ends after the
/// last one has arrived, so the sums belong together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForwardedPackets {
    /// Packets that left the generator's ports.
    pub sent: u64,
    /// Packets that the router's incoming ports received.
    pub received: u64,
    /// Packets that left the router's outgoing ports.
    pub forwarded: u64,
    /// Packets that arrived at the sink. `None`: the sink is not counted.
    pub arrived: Option<u64>,
    /// Lost packets by place.
    pub lost: BTreeMap<String, u64>,
    /// Inconsistencies, one text each.
    pub doubts: Vec<String>,
}

/// `sent`, `input`, `output` and `sink`: the generator's ports, the router's incoming and outgoing ports, and the
/// sink's ports.
///
/// Losses are reported for each incoming port if the same number of ports send, in the same order.
pub fn flow(
    sent: &[PortCounters],
    input: &[PortCounters],
    output: &[PortCounters],
    sink: Option<&[PortCounters]>,
) -> ForwardedPackets {
    let mut f = ForwardedPackets {
        sent: sent.iter().map(PortCounters::tx).sum(),
        received: input.iter().map(PortCounters::rx).sum(),
        forwarded: output.iter().map(PortCounters::tx).sum(),
        arrived: sink.map(|s| s.iter().map(PortCounters::rx).sum()),
        ..ForwardedPackets::default()
    };
    let mut step = |place: String, from: u64, to: u64| {
        if from > to {
            *f.lost.entry(place).or_default() += from - to;
        } else if to > from {
            f.doubts.push(format!(
                "{place}: {} more than were sent to it: other traffic",
                plural((to - from) as usize, "packet")
            ));
        }
    };
    if sent.len() == input.len() {
        for (s, i) in sent.iter().zip(input) {
            step(format!("{} wire or ring", i.after.dev), s.tx(), i.rx());
        }
    } else {
        step(format!("{} wire or ring", names(input)), f.sent, f.received);
    }
    step("router".into(), f.received, f.forwarded);
    if let (Some(sink), Some(arrived)) = (sink, f.arrived) {
        step(format!("{} wire or ring", names(sink)), f.forwarded, arrived);
    }
    for i in input.iter().filter(|i| i.dropped() > 0) {
        f.doubts.push(format!("{}: {} of the lost packets are in its own rx_dropped", i.after.dev, i.dropped()));
    }
    f
}

fn names(spans: &[PortCounters]) -> String {
    spans.iter().map(|s| s.after.dev.as_str()).collect::<Vec<_>>().join("+")
}

impl ForwardedPackets {
    /// Packets that arrived at the sink, or that left the router if the sink is not counted.
    fn through(&self) -> u64 {
        self.arrived.unwrap_or(self.forwarded)
    }

    /// `None` if nothing was sent.
    pub fn lost_percent(&self) -> Option<f64> {
        (self.sent > 0).then(|| 100.0 * self.sent.saturating_sub(self.through()) as f64 / self.sent as f64)
    }

    /// One result of the whole test. `seconds`: the time of sending by the generator's clock; `loads`: the generator's
    /// results.
    pub fn load(&self, loads: &[LoadResult], frame_bytes: u32, seconds: f64) -> LoadResult {
        let per_s = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        let trouble: Vec<&str> = loads.iter().filter_map(|l| l.trouble.as_deref()).collect();
        let offered: Vec<f64> = loads.iter().filter_map(|l| l.offered_per_s).collect();
        let busiest = loads
            .iter()
            .filter_map(|l| l.busiest_thread_percent)
            .fold(None, |m: Option<f64>, b| Some(m.map_or(b, |m| m.max(b))));
        LoadResult {
            group: String::new(),
            unit: Unit::Packets,
            threads: loads.iter().map(|l| l.threads).sum(),
            offered_per_s: (!offered.is_empty() && offered.len() == loads.len()).then(|| offered.iter().sum()),
            sent_per_s: per_s(self.sent),
            done_per_s: per_s(self.through()),
            lost_percent: self.lost_percent(),
            bits_per_s: per_s(self.through()) * 8.0 * f64::from(padded(frame_bytes) + FCS_BYTES),
            counted: BitRateLayer::Frame,
            latency: None,
            busiest_thread_percent: busiest,
            generator_cpu_percent: None,
            trouble: (!trouble.is_empty()).then(|| trouble.join("; ")),
        }
    }

    /// Adds rates, losses and the line rate of the outgoing ports to the other values of the host under test.
    pub fn host(&self, side: &mut HostSide, output: &[Port], frame_bytes: u32, seconds: f64) {
        if seconds > 0.0 {
            side.received_per_s = Some(self.received as f64 / seconds);
            side.transmitted_per_s = Some(self.forwarded as f64 / seconds);
        }
        side.lost.extend(self.lost.clone());
        let speeds: Vec<u64> = output.iter().filter_map(|p| p.speed_mbit_per_s).filter(|s| *s > 0).collect();
        if speeds.is_empty() || speeds.len() != output.len() {
            side.unknown.insert("line rate".into(), "an outgoing port does not report its speed".into());
            return;
        }
        let line: f64 = speeds.iter().map(|s| line_rate_per_s(*s, frame_bytes)).sum();
        side.line_rate_percent = side.transmitted_per_s.map(|r| 100.0 * r / line);
        side.budget_ns_per_packet = Some(1e9 / line);
    }
}

/// A port that is closer to its line rate than this is the limit.
const LINK_PERCENT: f64 = 98.0;
/// If less than this share of the offered load was sent, the generator is the limit.
const OFFERED_PERCENT: f64 = 98.0;
/// Loss below this is ignored when the limit is determined.
pub(crate) const LOSS_PERCENT: f64 = 0.1;
/// A CPU that is busier than this is the limit.
const BUSY_PERCENT: f64 = 97.0;

/// What limited the number of forwarded packets. `load` and `side`: from [`ForwardedPackets::load`] and [`ForwardedPackets::host`].
pub fn limit(load: &LoadResult, side: &HostSide, output: &[Port], generator: &[CpuUse]) -> Limit {
    let lost = load.lost_percent.unwrap_or(0.0);
    if side.line_rate_percent.is_some_and(|p| p >= LINK_PERCENT) {
        return Limit::Link(output.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join("+"));
    }
    if let Some(offered) = load.offered_per_s.filter(|o| load.sent_per_s < o * OFFERED_PERCENT / 100.0) {
        return Limit::Generator(format!("sent {:.0} of {offered:.0} packets/s", load.sent_per_s));
    }
    // Packets that wait in long queues are not lost yet.
    let is_late = load.done_per_s < load.sent_per_s * OFFERED_PERCENT / 100.0;
    if lost <= LOSS_PERCENT && !is_late {
        return match load.offered_per_s {
            Some(_) => Limit::Offered,
            None => Limit::Generator(format!(
                "sent {:.0} packets/s, as fast as it could, and none was lost",
                load.sent_per_s
            )),
        };
    }
    let busy = side.cpus.iter().filter(|c| c.busy_percent >= BUSY_PERCENT);
    // If generator and router are one host, a CPU that only sends does not limit the router.
    let cpus: Vec<u32> = busy.map(|c| c.cpu).filter(|c| generator.iter().all(|g| g.cpu != *c)).collect();
    if cpus.is_empty() { Limit::Unknown } else { Limit::Cpu(cpus) }
}

#[cfg(test)]
#[path = "forward_tests.rs"]
mod tests;

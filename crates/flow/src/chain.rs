//! The path of one direction of a flow through the host, and how the two directions relate.

use ringwise_model::{CpuId, Dir, Nic, Snapshot};
use serde::Serialize;

use crate::send::{Sender, TransmitDecision, TransmitPath, sending};
use crate::stack::{NodeDistance, ReceivePath, Rfs, Rps, landing};
use crate::steering::{QueueDecision, QueuePrediction, Steering, ignored_table_warning};
use crate::tuple::{TCP, Tuple, UDP};

/// `Socket::kind` of a socket with a peer.
const CONNECTION: &str = "connection";
/// A connected UDP socket holds a route, so `netdev_pick_tx` (net/core/dev.c) stores the queue in it, and nothing sets `ooo_okay`.
const KEPT: &str = "a connected UDP socket keeps the queue of its first packet until its route changes (since Linux 6.19 at most for net.core.txq_reselection_ms)";

const TCP_MOVES: &str = "TCP changes the queue only while no packet is in flight, and what an ACK lets it send leaves from the CPU that received the ACK";

/// Arrival at a device and its receive queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Arrival {
    /// Name of the interface.
    pub dev: String,
    /// NUMA node of the device. `None`: unknown.
    pub node: Option<u32>,
    /// Which queue the device chooses, and why.
    pub steering: QueuePrediction,
    /// Interrupt and CPU behind the queue. `None`: the queue is unknown.
    pub landing: Option<ReceivePath>,
    /// Why the device may not follow the table that it reports. `None`: no reason to doubt.
    pub doubt: Option<String>,
}

/// The socket that receives or sends the packets, if the host does not forward them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Socket {
    /// `connection` or `listening`
    pub kind: &'static str,
    /// Name of the process. `None`: no process of the socket was found.
    pub program: Option<String>,
    /// Process id; `None` as above.
    pub pid: Option<u32>,
    /// The CPU that its main thread ran on last.
    pub last_cpu: Option<CpuId>,
}

/// Departure through a device and its transmit queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Departure {
    /// Name of the interface.
    pub dev: String,
    /// NUMA node of the device. `None`: unknown.
    pub node: Option<u32>,
    /// Transmit queue, and the CPU of its completions.
    pub sending: TransmitPath,
}

/// The path of one direction of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Direction {
    /// The flow; its source is the sender in this direction.
    pub flow: Tuple,
    /// `None`: this host sends the packets itself.
    pub arrival: Option<Arrival>,
    /// Where the kernel sends the packets.
    pub route: Route,
    /// The packets end at this host.
    pub local: bool,
    /// Socket that receives or sends them. `None`: none was found, or the packets are forwarded.
    pub socket: Option<Socket>,
    /// `None`: the packets end here, or the interface out is unknown.
    pub departure: Option<Departure>,
}

/// Where the kernel sends a packet. In JSON it is a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Route {
    /// The destination is an address of this host.
    #[default]
    ToThisHost,
    /// The interface out, and the interfaces below it: `eth2.101 -> eth2`.
    Dev(String),
    /// The route is unknown, with the reason.
    Unknown(String),
}

impl std::fmt::Display for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ToThisHost => f.write_str("to this host"),
            Self::Dev(way) => write!(f, "dev {way}"),
            Self::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}

impl Serialize for Route {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// What happens to packets behind the receive queue.
#[derive(Debug, Clone, Default)]
pub struct FlowRoute<'a> {
    /// Where the kernel sends the packets.
    pub route: Route,
    /// The packets end at this host.
    pub local: bool,
    /// Interface with queues by which they leave. `None`: none, or unknown.
    pub out: Option<&'a Nic>,
    /// Socket that receives or sends them. `None`: none was found.
    pub socket: Option<Socket>,
}

/// Queue, interrupt and CPU for packets of `t` that `nic` receives.
pub fn arrival(s: &Snapshot, nic: &Nic, steering: &Steering, t: &Tuple) -> Arrival {
    let a = steering.answer(t);
    let landing = a.queue.map(|q| landing(s, nic, q, &a));
    Arrival {
        dev: nic.dev.name.clone(),
        node: nic.node.known().map(|n| n.0),
        doubt: ignored_table_warning(nic)
            .filter(|_| matches!(a.by, QueueDecision::Table | QueueDecision::NotDecidable) && a.rule.is_none()),
        steering: a,
        landing,
    }
}

/// The path of received packets. The CPU that receives a forwarded packet also sends it.
pub fn incoming(s: &Snapshot, nic: &Nic, steering: &Steering, t: &Tuple, way: FlowRoute) -> Direction {
    let arrival = arrival(s, nic, steering, t);
    let cpu = arrival.landing.as_ref().and_then(ReceivePath::works_on);
    // A driver of one queue may not record it (`skb_record_rx_queue`); then the packet's hash decides.
    let rx = arrival.steering.queue.filter(|_| nic.queues_in_use(Dir::Rx).is_some_and(|n| n > 1));
    let departure = way.out.filter(|_| !way.local).map(|out| departure(s, out, cpu, Sender::Forwarded { rx }));
    Direction { flow: *t, arrival: Some(arrival), route: way.route, local: way.local, socket: way.socket, departure }
}

/// The path of packets that this host sends itself, from the CPU that its program runs on. `answers` is the path of the packets
/// that its socket receives.
pub fn outgoing(s: &Snapshot, t: &Tuple, way: FlowRoute, answers: &Direction) -> Direction {
    let cpu = way.socket.as_ref().and_then(|k| k.last_cpu);
    let kind = way.socket.as_ref().map(|k| k.kind);
    let queue = answers.arrival.as_ref().and_then(|a| a.steering.queue);
    let sender = match (kind, t.protocol) {
        (_, TCP) | (Some(CONNECTION), _) => Sender::Connection { rx: queue },
        (Some(_), UDP) => Sender::Unconnected,
        _ => Sender::Connection { rx: None },
    };
    let mut departure = way.out.map(|out| departure(s, out, cpu, sender));
    if (kind, t.protocol) == (Some(CONNECTION), UDP)
        && let Some(x) = departure.as_mut().filter(|x| x.sending.decision != TransmitDecision::OnlyQueue)
    {
        x.sending.notes.push(KEPT.into());
    }
    if t.protocol == TCP
        && let Some(x) = departure.as_mut().filter(|x| x.sending.decision == TransmitDecision::XpsCpus)
    {
        x.sending.notes.push(TCP_MOVES.into());
    }
    Direction { flow: *t, arrival: None, route: way.route, local: false, socket: way.socket, departure }
}

fn departure(s: &Snapshot, out: &Nic, cpu: Option<CpuId>, sender: Sender) -> Departure {
    Departure { dev: out.dev.name.clone(), node: out.node.known().map(|n| n.0), sending: sending(s, out, cpu, sender) }
}

/// What a CPU does for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuWork {
    /// It takes the interrupt of the receive queue.
    Interrupt,
    /// RPS gives it the packet.
    Rps,
    /// It runs the network stack.
    Stack,
    /// It runs the program.
    Program,
    /// It takes the interrupt that reports sent packets.
    Completion,
}

impl std::fmt::Display for CpuWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "interrupt",
            Self::Rps => "RPS",
            Self::Stack => "stack",
            Self::Program => "program",
            Self::Completion => "completion",
        })
    }
}

/// A CPU, and what it does.
pub type PathStage = (CpuId, CpuWork);

/// The CPUs of the path in the order in which packets reach them, with what runs there.
pub fn path_stages(d: &Direction) -> Vec<PathStage> {
    let mut out = Vec::new();
    if let Some(l) = d.arrival.as_ref().and_then(|a| a.landing.as_ref()) {
        out.extend(l.cpu.as_ref().map(|p| (p.cpu, CpuWork::Interrupt)));
        if let Rps::On { chosen: Some(c), .. } = &l.rps {
            out.push((*c, CpuWork::Rps));
        }
    }
    out.extend(d.socket.as_ref().and_then(|k| k.last_cpu).map(|c| (c, CpuWork::Program)));
    out.extend(d.departure.as_ref().and_then(|x| x.sending.cpu.as_ref()).map(|p| (p.cpu, CpuWork::Completion)));
    out
}

/// The places where a packet changes its node or L3 cache, as text.
pub fn crossings(s: &Snapshot, all: &[Direction]) -> Vec<String> {
    let mut out = Vec::new();
    for d in all {
        let from = d.arrival.as_ref();
        if let Some(p) = from.and_then(|a| a.landing.as_ref()).and_then(|l| l.cpu.as_ref())
            && p.reach == NodeDistance::OtherNode
        {
            let dev = from.map_or("", |a| a.dev.as_str());
            out.push(format!("{}: {dev} interrupts CPU {} on remote node {}", d.flow, p.cpu, number(p.node)));
        }
        for w in path_stages(d).windows(2) {
            let ((a, what_a), (b, what_b)) = (w[0], w[1]);
            if a == b {
                continue;
            }
            let (na, nb) = (s.topology.node_of(a), s.topology.node_of(b));
            let kind = if na.is_some() && nb.is_some() && na != nb {
                format!("node {} to node {}", number(na), number(nb))
            } else if !s.topology.l3_of(a).contains(b) {
                "between two L3 caches".to_string()
            } else {
                continue;
            };
            out.push(format!("{}: {what_a} on CPU {a}, {what_b} on CPU {b}: {kind}", d.flow));
        }
    }
    out
}

fn number(n: Option<ringwise_model::NodeId>) -> String {
    n.map_or_else(|| "unknown".into(), |n| n.to_string())
}

/// Whether one CPU processes both directions of a connection, as text.
pub fn direction_summary(s: &Snapshot, all: &[Direction], steerings: &[&Steering]) -> Option<String> {
    let [a, b] = all else { return None };
    let works = |d: &Direction| d.arrival.as_ref()?.landing.as_ref()?.works_on();
    let (x, y) = (works(a)?, works(b)?);
    if x == y {
        return Some(format!("CPU {x} processes both directions."));
    }
    let mut text =
        format!("CPU {x} and CPU {y} process one direction each: the connection's state moves between their caches.");
    if s.topology.node_of(x) != s.topology.node_of(y) {
        text.push_str(" The two CPUs are on different nodes.");
    }
    let devs: Vec<&str> = all.iter().filter_map(|d| d.arrival.as_ref()).map(|a| a.dev.as_str()).collect();
    if steerings.iter().all(|s| s.is_symmetric()) {
        text.push_str(" The hash is already symmetric, but tables or interrupts differ.");
    } else if devs.windows(2).all(|w| w[0] == w[1]) {
        text.push_str(" With a symmetric hash both would use the same queue.");
    } else {
        text.push_str(
            " With a symmetric hash, the same key and the same table on both devices, both would use the same queue number.",
        );
    }
    Some(text)
}

/// Facts that cannot be known on this host, or that could not be read.
pub fn unknowns(d: &Direction) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(a) = &d.arrival {
        match (&a.steering.why_not, a.steering.queue) {
            (Some(why), None) => out.push(format!("{}: the queue: {why}", a.dev)),
            (Some(why), Some(_)) => out.push(format!("{}: the hash: {why}", a.dev)),
            _ => {}
        }
        if let Some(l) = &a.landing {
            out.extend(l.why_not.iter().map(|w| format!("{} queue {}: the CPU: {w}", a.dev, l.queue)));
            match &l.rps {
                Rps::On { why_not: Some(w), .. } => {
                    out.push(format!("{} queue {}: the CPU that RPS chooses: {w}", a.dev, l.queue))
                }
                Rps::Unknown { why } => out.push(format!("{} queue {}: RPS: {why}", a.dev, l.queue)),
                _ => {}
            }
            if let (Rfs::On { .. }, true, None) = (&l.rfs, d.local, &d.socket) {
                out.push(format!(
                    "{} queue {}: RFS may move it to its reader's CPU, but no socket for this flow was found",
                    a.dev, l.queue
                ));
            }
            if let Rfs::Unknown { why } = &l.rfs {
                out.push(format!("{} queue {}: RFS: {why}", a.dev, l.queue));
            }
        }
    }
    out
}

//! Many flows at once: what each queue, CPU and node gets, and how uneven that is.

use std::collections::{BTreeMap, HashMap};

use ringwise_model::{CpuId, Dir, Nic, Snapshot};
use serde::Serialize;

use crate::stack::landing;
use crate::steering::Steering;
use crate::tuple::Tuple;
use crate::undecided::{Undecided, as_text_or_null};

/// One flow with what was seen of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CountedFlow {
    /// The flow, in the direction of its packets.
    pub tuple: Tuple,
    /// Packets seen.
    pub packets: u64,
    /// Bytes seen.
    pub bytes: u64,
}

/// What falls to one queue, CPU or node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FlowShare {
    /// Number of flows.
    pub flows: u64,
    /// Packets of these flows.
    pub packets: u64,
    /// Bytes of these flows.
    pub bytes: u64,
}

impl FlowShare {
    fn add(&mut self, c: &CountedFlow) {
        self.flows += 1;
        self.packets += c.packets;
        self.bytes += c.bytes;
    }
}

/// What decides how uneven it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Evenness {
    /// Packets of the fullest queue over the mean of all queues; 1.0 is even.
    pub max_to_mean: f64,
    /// Standard deviation by mean.
    pub variation: f64,
    /// No table brings `max_to_mean` below this: the heaviest flow stays whole.
    pub floor: f64,
}

/// Where a population lands on one device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// Name of the interface.
    pub dev: String,
    /// Every receive queue in use, also those that get nothing.
    pub queues: BTreeMap<u32, FlowShare>,
    /// By the CPU that does the work, RPS included, as far as it is known.
    pub cpus: BTreeMap<u32, FlowShare>,
    /// By the NUMA node of that CPU.
    pub nodes: BTreeMap<u32, FlowShare>,
    /// Every flow, decided or not.
    pub total: FlowShare,
    /// Flows whose queue is unknown.
    pub undecided: FlowShare,
    /// Of the first of them.
    #[serde(serialize_with = "as_text_or_null")]
    pub undecided_why: Option<Undecided>,
    /// Packets over queues; none without packets.
    pub evenness: Option<Evenness>,
    /// Queues that get at least one flow.
    pub queues_used: usize,
    /// The heaviest first.
    pub heaviest: Vec<HeavyFlow>,
    /// Queues on which two or more flows lie that are each heavier than half of a queue's mean.
    pub collisions: Vec<u32>,
}

/// A flow that is among the heaviest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HeavyFlow {
    /// The flow with its counts.
    #[serde(flatten)]
    pub flow: CountedFlow,
    /// Receive queue. `None`: unknown.
    pub queue: Option<u32>,
}

/// Same flows become one; the order is that of the tuples, so that answers do not depend on the file's.
pub fn merged(all: Vec<CountedFlow>) -> Vec<CountedFlow> {
    let mut by: HashMap<Tuple, (u64, u64)> = HashMap::new();
    for c in all {
        let e = by.entry(c.tuple).or_default();
        *e = (e.0.saturating_add(c.packets), e.1.saturating_add(c.bytes));
    }
    let mut out: Vec<CountedFlow> =
        by.into_iter().map(|(tuple, (packets, bytes))| CountedFlow { tuple, packets, bytes }).collect();
    in_order(&mut out);
    out
}

/// By their tuples.
pub fn in_order(flows: &mut [CountedFlow]) {
    flows.sort_unstable_by_key(|c| c.tuple);
}

/// Places from the heaviest down; of the same weight the first goes first.
pub fn heaviest_first(weights: impl Iterator<Item = (usize, u64)>) -> Vec<usize> {
    let mut all: Vec<(u64, usize)> = weights.map(|(at, w)| (u64::MAX - w, at)).collect();
    all.sort_unstable();
    all.into_iter().map(|(_, at)| at).collect()
}

const SHOWN: usize = 10;

/// Spreads `flows` over the queues, CPUs and nodes of `nic`.
pub fn spread(s: &Snapshot, nic: &Nic, steering: &Steering, flows: &[CountedFlow]) -> Spread {
    let mut out = Spread {
        dev: nic.dev.name.clone(),
        queues: (0..steering.queues().unwrap_or(0)).map(|q| (q, FlowShare::default())).collect(),
        cpus: BTreeMap::new(),
        nodes: BTreeMap::new(),
        total: FlowShare::default(),
        undecided: FlowShare::default(),
        undecided_why: None,
        evenness: None,
        queues_used: 0,
        heaviest: Vec::new(),
        collisions: Vec::new(),
    };
    let mut placed: Vec<HeavyFlow> = Vec::with_capacity(flows.len());
    for flow in flows {
        let queue = steering.queue(&flow.tuple);
        out.total.add(flow);
        match queue {
            Some(q) => out.queues.entry(q).or_default().add(flow),
            None => {
                out.undecided.add(flow);
                if out.undecided_why.is_none() {
                    out.undecided_why = steering.answer(&flow.tuple).why_not;
                }
            }
        }
        placed.push(HeavyFlow { flow: *flow, queue });
    }
    if nic.rx_queues.iter().any(|q| q.rps_cpus.known().is_some_and(|m| !m.is_empty())) {
        // RPS deals out the flows of one queue.
        for h in &placed {
            let Some(q) = h.queue else { continue };
            let landing = landing(s, nic, q, &steering.answer(&h.flow.tuple));
            let one = FlowShare { flows: 1, packets: h.flow.packets, bytes: h.flow.bytes };
            on(s, &mut out, landing.works_on(), &one);
        }
    } else {
        let each: Vec<(u32, FlowShare)> = out.queues.iter().map(|(q, l)| (*q, *l)).collect();
        for (q, load) in each {
            let cpu = nic.vector_of(Dir::Rx, q).and_then(ringwise_model::Vector::taken_by).filter(|e| e.len() == 1);
            on(s, &mut out, cpu.and_then(|e| e.first()), &load);
        }
    }
    out.queues_used = out.queues.values().filter(|l| l.packets > 0).count();
    let loads: Vec<u64> = out.queues.values().map(|l| l.packets).collect();
    let biggest = placed.iter().filter(|h| h.queue.is_some()).map(|h| h.flow.packets).max().unwrap_or(0);
    out.evenness = evenness(&loads, biggest);
    let mean = loads.iter().sum::<u64>() as f64 / loads.len().max(1) as f64;
    let heavy = placed.iter().filter(|h| h.flow.packets as f64 > mean / 2.0);
    let mut heavy: Vec<u32> = heavy.filter_map(|h| h.queue).collect();
    heavy.sort_unstable();
    out.collisions = heavy.chunk_by(|a, b| a == b).filter(|c| c.len() > 1).map(|c| c[0]).collect();
    let order = heaviest_first(placed.iter().map(|h| h.flow.packets).enumerate());
    out.heaviest = order.into_iter().take(SHOWN).map(|at| placed[at]).collect();
    out
}

/// Work that is done on a CPU, and on its node.
fn on(s: &Snapshot, out: &mut Spread, cpu: Option<CpuId>, load: &FlowShare) {
    let Some(cpu) = cpu else { return };
    let sum = |into: &mut FlowShare| {
        into.flows += load.flows;
        into.packets += load.packets;
        into.bytes += load.bytes;
    };
    sum(out.cpus.entry(cpu.0).or_default());
    if let Some(n) = s.topology.node_of(cpu) {
        sum(out.nodes.entry(n.0).or_default());
    }
}

/// None: no queues, or no packets.
pub fn evenness(loads: &[u64], heaviest_flow: u64) -> Option<Evenness> {
    let total: u64 = loads.iter().sum();
    if total == 0 {
        return None;
    }
    let n = loads.len() as f64;
    let mean = total as f64 / n;
    let variance = loads.iter().map(|l| (*l as f64 - mean).powi(2)).sum::<f64>() / n;
    let max = loads.iter().copied().max().unwrap_or(0) as f64;
    Some(Evenness {
        max_to_mean: max / mean,
        variation: variance.sqrt() / mean,
        floor: (heaviest_flow as f64 / mean).max(1.0),
    })
}

/// Connections whose two directions this device would put into different queues, of all whose queues are known.
pub fn split_connections(steering: &Steering, flows: &[CountedFlow]) -> (u64, u64) {
    let mut known = 0;
    let mut parted = 0;
    for f in flows {
        if let (Some(a), Some(b)) = (steering.queue(&f.tuple), steering.queue(&f.tuple.reversed())) {
            known += 1;
            parted += u64::from(a != b);
        }
    }
    (parted, known)
}

//! The layout of the article on per-queue moderation: one queue per CPU on two nodes. A third of the queues, or the part
//! that a sample gives, is for latency, on the first threads of the first cores of both nodes; the rest is for bulk. The article
//! misprints the list of CPUs of node 1; ringwise uses the topology.

use std::collections::BTreeMap;

use ringwise_model::{FarNode, Goal, Intent, Smt};

use crate::dev::Dev;
use crate::machine::{Machine, Near, Zone};
use crate::place::Placements;
use crate::{Group, GroupSizes, Obstacle, Refusal, groups};

pub(crate) use crate::policies::{BULK, LATENCY};

pub(crate) fn place(
    m: &Machine,
    devs: &mut [Dev],
    usable: &[bool],
    intent: &Intent,
    places: &Placements,
    sizes: &mut BTreeMap<String, GroupSizes>,
) -> Result<Vec<Group>, Refusal> {
    let no = |why: Obstacle| Refusal::GoalNotPossible { goal: intent.goal, why: Box::new(why) };
    if intent.far_node != Some(FarNode::Ok) || intent.smt != Some(Smt::All) {
        return Err(no(Obstacle::PairNeedsPlaces));
    }
    let mut groups = Vec::new();
    for d in devs {
        let zone = &places[&d.zone()].zone;
        if !matches!(d.near, Near::Node(_)) {
            return Err(no(Obstacle::PairNodeUnknown { dev: d.name().to_string() }));
        }
        if d.units.iter().any(|u| u.fixed.is_some()) {
            return Err(no(Obstacle::PairImmovable { dev: d.name().to_string() }));
        }
        let nodes = nodes_by_distance(m, zone, usable);
        if nodes.len() < 2 {
            return Err(no(Obstacle::PairNeedsNodes));
        }
        let n = d.pairs();
        let halves = [n.div_ceil(2), n / 2];
        let sampled = intent.sample.as_ref().filter(|_| d.goal == Goal::Mixed);
        let sampled = sampled.map(|s| groups::of_halves(d, n as u32, intent.latency_queues.is_some(), s));
        let by_traffic = sampled.as_ref().and_then(GroupSizes::latency_queues);
        sizes.extend(sampled.map(|s| (d.name().to_string(), s)));
        let latency = intent.latency_queues.or(by_traffic).unwrap_or_else(|| groups::latency_share(n as u32)) as usize;
        if latency == 0 || latency >= n {
            return Err(no(Obstacle::PairLatencyQueues {
                dev: d.name().to_string(),
                latency: latency as u32,
                queues: n as u32,
            }));
        }
        let latency_halves = [latency.div_ceil(2), latency / 2];
        let (mut lat, mut bulk) = (Vec::new(), Vec::new());
        for ((half, want), (_, _, cpus)) in halves.iter().zip(latency_halves).zip(&nodes) {
            if cpus.len() < *half {
                return Err(no(Obstacle::PairNeedsCpus {
                    dev: d.name().to_string(),
                    half: *half as u32,
                    queues: n as u32,
                    cpus: cpus.len() as u32,
                }));
            }
            let ranked = first_threads_first(m, cpus, usable);
            lat.extend(ranked.iter().take(want));
            bulk.extend(ranked.iter().take(*half).skip(want));
        }
        groups.extend(lay_out(m, d, &lat, &bulk));
    }
    Ok(groups)
}

/// Usable CPUs of each node by distance: the device's own node, then the nearest other one.
fn nodes_by_distance(m: &Machine, zone: &Zone, usable: &[bool]) -> Vec<(bool, u32, Vec<usize>)> {
    let of_node = |cpus: &Vec<usize>| {
        let cpus: Vec<usize> = cpus.iter().copied().filter(|c| usable[*c]).collect();
        cpus.first().map(|c| (!zone.home[*c], zone.distance[*c], cpus.clone()))
    };
    let mut nodes: Vec<_> = m.by_node.values().filter_map(of_node).collect();
    nodes.sort();
    nodes
}

/// The first usable thread of each core, then the second.
fn first_threads_first(m: &Machine, cpus: &[usize], usable: &[bool]) -> Vec<usize> {
    let thread = |c: &usize| m.cores[m.core[*c]].iter().filter(|t| usable[**t]).position(|t| t == c).unwrap_or(0);
    let mut ranked: Vec<(usize, usize)> = cpus.iter().map(|c| (thread(c), *c)).collect();
    ranked.sort();
    ranked.into_iter().map(|(_, c)| c).collect()
}

/// Assigns each queue a CPU, in the order of the CPUs, and returns the two groups.
fn lay_out(m: &Machine, d: &mut Dev, latency: &[usize], bulk: &[usize]) -> [Group; 2] {
    let mut all: Vec<usize> = latency.iter().chain(bulk).copied().collect();
    all.sort();
    for (q, cpu) in all.iter().enumerate() {
        d.cpu[q] = Some(*cpu);
    }
    [(LATENCY, latency), (BULK, bulk)].map(|(name, cpus)| {
        let mut queues: Vec<u32> = cpus.iter().filter_map(|c| all.binary_search(c).ok()).map(|q| q as u32).collect();
        queues.sort();
        Group {
            dev: d.name().to_string(),
            name: name.to_string(),
            cpus: m.set(cpus.iter().copied()),
            queues,
            ..Group::default()
        }
    })
}

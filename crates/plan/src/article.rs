//! The layout of the article on per-queue moderation: one queue a CPU on two nodes, a third of the
//! queues for latency on the first threads of the first cores of both nodes, the rest for bulk.
//! Its list of CPUs of node 1 is misprinted there; the topology decides here.

use ringwise_model::words::plural;
use ringwise_model::{FarNode, Intent, Smt};

use crate::dev::Dev;
use crate::machine::{Machine, Near};
use crate::place::Places;
use crate::{Group, Refusal, groups};

pub(crate) const LATENCY: &str = "latency";
pub(crate) const BULK: &str = "bulk";

pub(crate) fn place(
    m: &Machine,
    devs: &mut [Dev],
    usable: &[bool],
    intent: &Intent,
    places: &Places,
) -> Result<Vec<Group>, Refusal> {
    let no = |why: String| Refusal::GoalNotPossible { goal: intent.goal, why };
    if intent.far_node != Some(FarNode::Ok) || intent.smt != Some(Smt::All) {
        return Err(no("--pair-as-article needs --far-node ok --smt all".into()));
    }
    let mut groups = Vec::new();
    for d in devs {
        let zone = &places[&d.zone()].zone;
        if !matches!(d.near, Near::Node(_)) {
            return Err(no(format!(
                "--pair-as-article needs a device whose node is known; that of {} is not",
                d.name()
            )));
        }
        if d.units.iter().any(|u| u.fixed.is_some()) {
            return Err(no(format!(
                "--pair-as-article needs interrupts that can be moved; not all of {} can",
                d.name()
            )));
        }
        // The nodes by distance: the device's own, then the nearest other one.
        let mut nodes: Vec<(bool, u32, Vec<usize>)> = m
            .by_node
            .values()
            .map(|cpus| {
                let cpus: Vec<usize> = cpus.iter().copied().filter(|c| usable[*c]).collect();
                cpus.first().map_or((true, u32::MAX, Vec::new()), |c| (!zone.home[*c], zone.distance[*c], cpus.clone()))
            })
            .filter(|(_, _, cpus)| !cpus.is_empty())
            .collect();
        nodes.sort();
        if nodes.len() < 2 {
            return Err(no("--pair-as-article needs two nodes with usable CPUs".into()));
        }
        let n = d.pairs();
        let halves = [n.div_ceil(2), n / 2];
        let latency = intent.latency_queues.unwrap_or_else(|| groups::latency_share(n as u32)) as usize;
        if latency == 0 || latency >= n {
            return Err(no(format!(
                "--pair-as-article with {}: {} has {}, so 1 to {}",
                plural(latency, "latency queue"),
                d.name(),
                plural(n, "queue"),
                n.saturating_sub(1)
            )));
        }
        let latency_halves = [latency.div_ceil(2), latency / 2];
        let (mut lat, mut bulk) = (Vec::new(), Vec::new());
        for ((half, want), (_, _, cpus)) in halves.iter().zip(latency_halves).zip(&nodes) {
            if cpus.len() < *half {
                return Err(no(format!(
                    "--pair-as-article gives every queue its own CPU: {} of {}'s {n} queues would go to a node with {}",
                    half,
                    d.name(),
                    plural(cpus.len(), "usable CPU")
                )));
            }
            let mut ranked: Vec<(usize, usize)> = cpus
                .iter()
                .map(|c| (m.cores[m.core[*c]].iter().filter(|t| usable[**t]).position(|t| t == c).unwrap_or(0), *c))
                .collect();
            ranked.sort();
            lat.extend(ranked.iter().take(want).map(|r| r.1));
            bulk.extend(ranked.iter().take(*half).skip(want).map(|r| r.1));
        }
        let mut all: Vec<usize> = lat.iter().chain(&bulk).copied().collect();
        all.sort();
        for (q, cpu) in all.iter().enumerate() {
            d.cpu[q] = Some(*cpu);
        }
        for (name, cpus) in [(LATENCY, &lat), (BULK, &bulk)] {
            let mut queues: Vec<u32> =
                cpus.iter().filter_map(|c| all.binary_search(c).ok()).map(|q| q as u32).collect();
            queues.sort();
            groups.push(Group {
                dev: d.name().to_string(),
                name: name.to_string(),
                cpus: m.set(cpus.iter().copied()),
                queues,
                ..Group::default()
            });
        }
    }
    Ok(groups)
}

//! CPUs for the programs behind the queues. A proposal in words that systemd and cgroups take; nothing is moved.
//!
//! Request and answer are quickest on the CPU of the interrupt, as long as it has headroom; a stream does better on
//! another core of the same cache, or the program and its interrupts take each other's time.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{CpuSet, Flow, Gather, Goal, NodeId};

use crate::Program;
use crate::dev::Dev;
use crate::groups::Team;
use crate::machine::Machine;

/// How a program and its queues stand to each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Requests,
    Streams,
}

pub(crate) fn plan(m: &Machine, devs: &[Dev], teams: &[Vec<Team>], usable: &[bool]) -> Vec<Program> {
    let busy: BTreeSet<usize> = devs.iter().flat_map(|d| d.cpu.iter().flatten()).map(|c| m.core[*c]).into_set();
    let mut out = Vec::new();
    for (d, teams) in devs.iter().zip(teams) {
        let all: Vec<u32> = (0..d.pairs() as u32).collect();
        if teams.is_empty() {
            let kind = match d.goal {
                Goal::Rpc | Goal::Latency => Kind::Requests,
                Goal::Stream => Kind::Streams,
                Goal::Balanced | Goal::Forward | Goal::Mixed => continue,
            };
            out.extend(one(m, d, None, &all, kind, &busy, usable));
        }
        for t in teams {
            let kind = if t.urgent { Kind::Requests } else { Kind::Streams };
            out.extend(one(m, d, Some(t), &t.queues, kind, &busy, usable));
        }
    }
    out
}

fn one(
    m: &Machine,
    d: &Dev,
    team: Option<&Team>,
    queues: &[u32],
    kind: Kind,
    busy: &BTreeSet<usize>,
    usable: &[bool],
) -> Option<Program> {
    let own: BTreeSet<usize> = queues.iter().filter_map(|q| d.cpu.get(*q as usize).copied().flatten()).into_set();
    let l3s: BTreeSet<usize> = own.iter().map(|c| m.l3[*c]).into_set();
    let idle = |c: &usize| usable[*c] && !busy.contains(&m.core[*c]);
    let beside: Vec<usize> = (0..m.cpus.len()).filter(|c| l3s.contains(&m.l3[*c])).filter(idle).collect();
    let (cpus, why) = match kind {
        Kind::Requests => {
            // The second threads of cores that carry one queue are the program's.
            let threads = own.iter().flat_map(|c| &m.cores[m.core[*c]]).copied();
            let spare = threads.filter(|c| usable[*c] && (own.contains(c) || team.is_none()));
            (m.set(spare), "the CPUs of its interrupts: request and answer stay in one cache while there is headroom")
        }
        Kind::Streams if !beside.is_empty() => (
            m.set(beside),
            "other physical cores of the same L3: the program and its interrupts do not take each other's time",
        ),
        Kind::Streams => (
            m.set(own.iter().copied()),
            "every core of this cache carries a queue; on the CPUs of its own queues the program stays in one cache with them",
        ),
    };
    if cpus.is_empty() {
        return None;
    }
    let names = team.map_or_else(Vec::new, |t| {
        let name = |f: &Flow| match f {
            Flow::Unit(n) => Some(n.clone()),
            Flow::Program(_) | Flow::Match { .. } => None,
        };
        t.flows.iter().filter_map(name).collect()
    });
    Some(Program {
        dev: d.name().to_string(),
        group: team.map(|t| t.name.clone()),
        names,
        drop_in: drop_in(m, &cpus),
        cpuset: format!("echo {cpus} > /sys/fs/cgroup/GROUP/cpuset.cpus"),
        why: why.to_string(),
        cpus,
    })
}

fn drop_in(m: &Machine, cpus: &CpuSet) -> String {
    let mut out = format!("[Service]\nCPUAffinity={cpus}\n");
    let nodes: BTreeMap<NodeId, ()> =
        cpus.iter().filter_map(|c| m.at(c)).filter_map(|c| m.node[c]).map(|n| (n, ())).into_map();
    let mut all = nodes.keys();
    match (all.next(), all.next()) {
        _ if !m.has_nodes() => {}
        // Memory of the node, others' where it is full.
        (Some(n), None) => out.push_str(&format!("NUMAPolicy=preferred\nNUMAMask={n}\n")),
        (Some(_), Some(_)) => out.push_str("NUMAPolicy=local\n"),
        _ => {}
    }
    out
}

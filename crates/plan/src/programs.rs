//! CPUs for the programs that use the queues. This is a proposal in the syntax of systemd and cgroups; ringwise moves no
//! program.
//!
//! A request is answered fastest on the CPU of the interrupt, as long as that CPU has headroom. A stream is faster on
//! another core with the same cache, because program and interrupts would otherwise compete for CPU time. Nothing is placed
//! on the other hardware thread of an interrupt's core, as long as the node has a core without interrupts: that is what
//! rule A05 of `check` reports.

use std::collections::BTreeSet;

use ringwise_model::{CpuSet, Flow, Goal, Intent, Nic, NodeId, Snapshot, Topology};

use crate::ProgramPlacement;
use crate::dev::Dev;
use crate::goal;
use crate::groups::QueueGroup;
use crate::machine::{Machine, Near};
use crate::messages::Messages;

/// How a program shares CPUs with its queues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Requests,
    Streams,
}

/// Proposals. Devices and groups without one are noted in `advice`.
pub(crate) fn plan(
    s: &Snapshot,
    m: &Machine,
    devs: &[Dev],
    teams: &[Vec<QueueGroup>],
    usable: &[bool],
    intent: &Intent,
    advice: &mut Messages,
) -> Vec<ProgramPlacement> {
    let interrupts = interrupts(s, m, devs);
    let mut out = Vec::new();
    let mut add = |d: &Dev, team: Option<&QueueGroup>, found| match found {
        Found::Proposal(p) => out.push(*p),
        Found::NoFreeCore => {
            let text = if intent.reserve.is_empty() && intent.exclude_cpus.is_empty() {
                "every usable physical core near its queues has a queue: let its programs use all CPUs, or keep cores for \
                 them (--reserve CPUS)"
            } else {
                "every usable physical core near its queues has a queue, except those that are kept free of queues: let its \
                 programs use all CPUs, or only these cores"
            };
            match team {
                Some(t) => advice.detailed(d.name(), format!("group {}", t.name), text),
                None => advice.about(d.name(), text),
            }
        }
        Found::Nothing => {}
    };
    for (d, teams) in devs.iter().zip(teams) {
        let all: Vec<u32> = (0..d.pairs() as u32).collect();
        if teams.is_empty() {
            let kind = match d.goal {
                Goal::Rpc | Goal::Latency => Kind::Requests,
                Goal::Stream => Kind::Streams,
                Goal::Balanced | Goal::Forward | Goal::Mixed => continue,
            };
            add(d, None, one(m, d, None, &all, kind, &interrupts, usable));
        }
        for t in teams {
            let kind = if t.urgent { Kind::Requests } else { Kind::Streams };
            add(d, Some(t), one(m, d, Some(t), &t.queues, kind, &interrupts, usable));
        }
    }
    note_isolated(m, &out, advice);
    out
}

/// A warning if whole cores were probably meant to be reserved: other threads of the reserved CPUs take interrupts of this plan.
pub(crate) fn half_reserved(m: &Machine, devs: &[Dev], intent: &Intent) -> Option<String> {
    let planned = m.set(devs.iter().flat_map(|d| d.cpu.iter().flatten()).copied());
    let beside = m.topo.beside(&intent.reserve);
    let taken = beside.intersection(&planned);
    (!taken.is_empty()).then(|| {
        let (cpu, take) = if taken.len() == 1 { ("CPU", "takes") } else { ("CPUs", "take") };
        let share = format!(
            "the reserved CPUs share cores with {cpu} {taken}, which {take} interrupts: a program there and the interrupts slow each \
             other down."
        );
        [share, whole_cores(m.topo, intent).advice()].concat()
    })
}

/// What to reserve instead of CPUs that share cores with others.
#[derive(Debug, PartialEq)]
enum WholeCores {
    /// The reserved CPUs with the other threads of their cores.
    All(CpuSet),
    /// These would leave no CPU for queues. The CPUs of the cores that are reserved completely.
    Complete(CpuSet),
    /// The same, and no core is reserved completely.
    None,
}

impl WholeCores {
    fn advice(&self) -> String {
        match self {
            Self::All(cpus) => format!(" To reserve whole cores: --reserve {cpus}"),
            Self::Complete(cpus) => {
                format!(
                    " All of these cores would leave no CPU for queues; those that are reserved whole: --reserve {cpus}"
                )
            }
            Self::None => String::new(),
        }
    }
}

fn whole_cores(topo: &Topology, intent: &Intent) -> WholeCores {
    let beside = topo.beside(&intent.reserve);
    let whole = intent.reserve.union(&beside);
    if !goal::usable(topo, &Intent { reserve: whole.clone(), ..intent.clone() }).cpus.is_empty() {
        return WholeCores::All(whole);
    }
    let complete = intent.reserve.difference(&topo.beside(&beside));
    if complete.is_empty() { WholeCores::None } else { WholeCores::Complete(complete) }
}

/// CPUs that handle queue interrupts after the plan. Interfaces outside the plan keep theirs, which count while they have a link.
fn interrupts(s: &Snapshot, m: &Machine, devs: &[Dev]) -> CpuSet {
    let planned = m.set(devs.iter().flat_map(|d| d.cpu.iter().flatten()).copied());
    let others = interrupts_of_others(s, |name| devs.iter().any(|d| d.name() == name));
    others.fold(planned, |all, (_, cpus)| all.union(&cpus))
}

/// Interfaces with a link that are not part of the plan, with the CPUs that take the interrupts of their queues.
pub fn interrupts_of_others(s: &Snapshot, is_planned: impl Fn(&str) -> bool) -> impl Iterator<Item = (&str, CpuSet)> {
    let taken = |n: &Nic| n.queue_vectors().filter_map(|v| v.taken_by()).fold(CpuSet::new(), |all, c| all.union(c));
    let others = s.nics.iter().filter(move |n| n.link_is_up() && !is_planned(n.name()));
    others.map(move |n| (n.name(), taken(n)))
}

/// Interfaces with a link that are not part of the plan, with the CPUs among which the interrupts of their queues may move.
pub fn affinity_of_others(s: &Snapshot, is_planned: impl Fn(&str) -> bool) -> impl Iterator<Item = (&str, CpuSet)> {
    let asked = |n: &Nic| n.queue_vectors().filter_map(|v| v.asked.known()).fold(CpuSet::new(), |all, c| all.union(c));
    let others = s.nics.iter().filter(move |n| n.link_is_up() && !is_planned(n.name()));
    others.map(move |n| (n.name(), asked(n).intersection(&s.topology.online)))
}

/// Whoever isolated CPUs for a program expects it there. Only the user knows.
fn note_isolated(m: &Machine, proposals: &[ProgramPlacement], advice: &mut Messages) {
    let isolated = m.topo.isolated_all().intersection(&m.topo.online);
    if isolated.is_empty() || proposals.is_empty() {
        return;
    }
    let proposed = |p: &ProgramPlacement| {
        p.cpus.intersects(&isolated) || p.node_cpus.as_ref().is_some_and(|c| c.intersects(&isolated))
    };
    let are = if isolated.len() == 1 { format!("CPU {isolated} is") } else { format!("CPUs {isolated} are") };
    let which = match proposals.iter().any(proposed) {
        true => "and among",
        false => "and not among",
    };
    advice.push(format!(
        "{are} isolated, {which} the recommended CPUs. A program that you have reserved isolated CPUs for must pin each of \
         its threads to one of them: the scheduler does not spread threads over isolated CPUs."
    ));
}

enum Found {
    Proposal(Box<ProgramPlacement>),
    /// Streams need a core without queues, and none is free.
    NoFreeCore,
    Nothing,
}

fn one(
    m: &Machine,
    d: &Dev,
    team: Option<&QueueGroup>,
    queues: &[u32],
    kind: Kind,
    interrupts: &CpuSet,
    usable: &[bool],
) -> Found {
    let own: BTreeSet<usize> = queues.iter().filter_map(|q| d.cpu.get(*q as usize).copied().flatten()).collect();
    if own.is_empty() {
        return Found::Nothing;
    }
    let l3s: BTreeSet<usize> = own.iter().map(|c| m.l3[*c]).collect();
    // Otherwise the groups of CPUs in `m.l3` are nodes or packages.
    let l3s_known = own.iter().all(|c| m.topo.cpu(m.cpus[*c]).is_some_and(|c| c.l3.is_known()));
    // Which of several nodes is the device's is unknown.
    let nodeless = d.near == Near::All && m.has_nodes();
    let mut nodes: BTreeSet<Option<NodeId>> = own.iter().map(|c| m.node[*c]).collect();
    // Interrupts may be on other nodes of the socket too.
    if let Near::Node(home) = d.near
        && nodes.contains(&Some(home))
    {
        nodes = BTreeSet::from([Some(home)]);
    }
    // On the other thread of an interrupt's core a program slows the interrupts down (article 003).
    let beside = m.topo.beside(interrupts);
    let idle = |c: &usize| usable[*c] && !interrupts.contains(m.cpus[*c]) && !beside.contains(m.cpus[*c]);
    let on_node = |c: usize| nodeless || nodes.contains(&m.node[c]);
    let all = |near: &dyn Fn(usize) -> bool| m.set((0..m.cpus.len()).filter(|c| near(*c)).filter(idle));
    let (cpus, why) = match kind {
        Kind::Requests => (
            m.set(own.iter().copied().filter(|c| usable[*c])),
            if l3s_known && l3s.len() == 1 {
                "the CPUs of its interrupts: request and answer stay in one cache as long as the CPUs have headroom"
            } else if own.iter().map(|c| m.node[*c]).collect::<BTreeSet<_>>().len() == 1 {
                if l3s_known {
                    "the CPUs of its interrupts, in several L3 caches: request and answer stay in one cache if the program \
                     runs on the CPU that takes the interrupt"
                } else {
                    "the CPUs of its interrupts: request and answer stay in one cache if the program runs on the CPU that \
                     takes the interrupt"
                }
            } else {
                "the CPUs of its interrupts, on several nodes: request and answer stay in one cache if the program runs on \
                 the CPU that takes the interrupt"
            },
        ),
        Kind::Streams => match (all(&|c| l3s.contains(&m.l3[c])), all(&|c| on_node(c))) {
            (same_l3, _) if !same_l3.is_empty() => (
                same_l3,
                "other physical cores with the same L3 cache: the program and its interrupts do not compete for CPU time",
            ),
            (_, same_node) if !same_node.is_empty() => (
                same_node,
                if nodeless {
                    "physical cores without a queue: the program and its interrupts do not compete for CPU time"
                } else {
                    "the node's physical cores without a queue: the program and its interrupts do not compete for CPU time"
                },
            ),
            _ => return Found::NoFreeCore,
        },
    };
    // No proposal if it would contain every CPU: that is the scheduler's default.
    if cpus.is_empty() || cpus == m.topo.online {
        return Found::Nothing;
    }
    let names = team.map_or_else(Vec::new, |t| {
        let name = |f: &Flow| match f {
            Flow::Unit(n) => Some(n.clone()),
            Flow::Program(_) | Flow::Match { .. } => None,
        };
        t.flows.iter().filter_map(name).collect()
    });
    let node = (0..m.cpus.len()).filter(|c| usable[*c] && on_node(*c));
    // CPUs that the user keeps for something else are no alternative.
    let free = |node| (0..m.cpus.len()).any(|c| m.node[c] == node && idle(&c));
    let is_beside = |c: &usize| beside.contains(m.cpus[*c]) && free(m.node[*c]);
    let (siblings, others): (Vec<usize>, Vec<usize>) = node.partition(is_beside);
    let (node_cpus, beside_interrupts) = match kind {
        Kind::Requests if others.is_empty() => (m.set(siblings), CpuSet::new()),
        Kind::Requests => (m.set(others), m.set(siblings)),
        Kind::Streams => (m.set(others.into_iter().filter(idle)), CpuSet::new()),
    };
    // A list of every CPU would limit nothing.
    let node_cpus = Some(node_cpus).filter(|all| !all.is_empty() && !nodeless && *all != m.topo.online);
    let is_remote = matches!(d.near, Near::Node(home) if cpus.iter().all(|c| m.topo.node_of(c) != Some(home)));
    let remote = if is_remote { "; all of them are on other nodes than the interface" } else { "" };
    let beside_interrupts = if node_cpus.is_some() { beside_interrupts } else { CpuSet::new() };
    Found::Proposal(Box::new(ProgramPlacement {
        dev: d.name().to_string(),
        group: team.map(|t| t.name.clone()),
        names,
        drop_in: drop_in(m, &cpus, nodeless),
        cpuset: format!("echo {cpus} > /sys/fs/cgroup/GROUP/cpuset.cpus"),
        why: format!("{why}{remote}"),
        node_drop_in: node_cpus.as_ref().map(|all| drop_in(m, all, false)),
        node_cpus,
        beside_interrupts,
        cpus,
    }))
}

/// `nodeless`: the node of the device is unknown, so none is named.
fn drop_in(m: &Machine, cpus: &CpuSet, nodeless: bool) -> String {
    let node = |c| m.at(c).and_then(|c| m.node[c]);
    drop_in_of(cpus, cpus.iter().filter_map(node).collect(), m.has_nodes(), nodeless)
}

/// A drop-in for a program on these CPUs, which are not those of an interface.
pub fn program_drop_in(t: &Topology, cpus: &CpuSet) -> String {
    let has_nodes = t.nodes.known().is_some_and(|all| all.len() > 1);
    drop_in_of(cpus, cpus.iter().filter_map(|c| t.node_of(c)).collect(), has_nodes, false)
}

fn drop_in_of(cpus: &CpuSet, nodes: BTreeSet<NodeId>, has_nodes: bool, nodeless: bool) -> String {
    let mut out = format!("[Service]\nCPUAffinity={cpus}\n");
    let mut all = nodes.iter();
    match (all.next(), all.next()) {
        _ if !has_nodes => {}
        // Memory of the node, or of other nodes when it is full.
        (Some(n), None) if !nodeless => out.push_str(&format!("NUMAPolicy=preferred\nNUMAMask={n}\n")),
        (Some(_), _) => out.push_str("NUMAPolicy=local\n"),
        _ => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use ringwise_testkit::machines::{self, NicSpec};
    use ringwise_testkit::topo::CpuSpec;

    use super::*;

    #[test]
    fn whole_cores_are_only_proposed_if_they_leave_cpus_for_queues() {
        let s = machines::host("w", CpuSpec::flat(4, 2), vec![NicSpec::new("eth1", "igb", Some(0), 8, 8)]).snapshot();
        let t = &s.topology;
        let firsts: CpuSet = t.online.iter().filter(|c| t.siblings_of(*c).first() == Some(*c)).collect();
        assert_eq!((t.online.len(), firsts.len()), (8, 4));
        let last = t.siblings_of(firsts.iter().last().unwrap());
        let of = |reserve: &CpuSet| whole_cores(t, &Intent { reserve: reserve.clone(), ..Intent::default() });
        assert_eq!(of(&CpuSet::one(last.first().unwrap())), WholeCores::All(last.clone()));
        assert_eq!(of(&firsts.union(&last)), WholeCores::Complete(last.clone()));
        assert_eq!(of(&firsts), WholeCores::None);
        assert_eq!(WholeCores::All(last.clone()).advice(), format!(" To reserve whole cores: --reserve {last}"));
        assert!(WholeCores::Complete(last.clone()).advice().ends_with(&format!(": --reserve {last}")));
        assert_eq!(WholeCores::None.advice(), "");
    }
}

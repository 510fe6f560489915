//! Whether programs may use only the CPUs that a plan proposes for them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ringwise_model::{CpuSet, Flow, GroupWish, NodeId, Snapshot, Unread};
use serde::Serialize;

use crate::ProgramPlacement;

/// A process that waits for packets from a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListeningProgram {
    /// Name of the process.
    pub name: String,
    /// Process ID.
    pub pid: u32,
    /// CPUs that it may use.
    pub allowed: CpuSet,
    /// Its sockets.
    pub sockets: Vec<ListeningSocket>,
}

/// A socket that waits for packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListeningSocket {
    /// Local address; unspecified: any address of the host.
    pub address: IpAddr,
    /// The packets that it waits for, as flow types and fields of rules.
    pub matches: Vec<(String, BTreeMap<String, String>)>,
}

/// Interface, or group of its queues, for whose programs a plan proposes CPUs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ProposedFor {
    /// Interface whose packets the program receives.
    pub dev: String,
    /// Name of the group. `None`: all queues of the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// A listening program, the CPUs that it may use, and those that the plan proposes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgramCpus {
    /// Name of the processes.
    pub name: String,
    /// Processes of this name with the same CPUs and the same proposal.
    pub pids: Vec<u32>,
    /// What it listens on.
    pub proposed_for: Vec<ProposedFor>,
    /// CPUs that it may use.
    pub allowed: CpuSet,
    /// Proposed for a program with few threads that is not busy, or for every program of a group.
    pub proposed: CpuSet,
    /// Proposed for a program with many threads or processes, or a busy one. `None`: the same, or no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed_for_many: Option<CpuSet>,
    /// It may use only CPUs of one of the two proposals.
    pub as_proposed: bool,
}

/// What was found about the programs of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProgramReport {
    /// Listening programs for which CPUs are proposed.
    pub list: Vec<ProgramCpus>,
    /// Why a program, or the sockets, could not be examined: the first of several reasons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<Unread>,
    /// Why some interfaces have no plan, and therefore no proposal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unplanned: Vec<String>,
}

/// Compares the listening programs with the proposals for the interfaces that they listen on. `groups` have the flows of
/// their programs and units. A program without a proposal has no entry: it listens on other interfaces, or on interfaces of several
/// nodes, or no flow of a group is one of its ports. The same holds for one that may use other CPUs, if those with many threads have
/// no limit.
pub fn program_cpus(
    s: &Snapshot,
    proposals: &[ProgramPlacement],
    groups: &[GroupWish],
    listening: &[ListeningProgram],
) -> Vec<ProgramCpus> {
    let mut out: Vec<ProgramCpus> = Vec::new();
    for l in listening {
        let mine: Vec<&ProgramPlacement> = proposals.iter().filter(|p| is_for(s, p, groups, l)).collect();
        let Some((proposed, many)) = together(s, &mine) else { continue };
        let is_within = |cpus: &CpuSet| l.allowed.is_subset(cpus);
        let proposed_for_many = match many {
            ForMany::Same => None,
            ForMany::These(cpus) => Some(cpus),
            // It may be one with many threads.
            ForMany::NoLimit if !is_within(&proposed) => continue,
            ForMany::NoLimit => None,
        };
        let new = ProgramCpus {
            name: l.name.clone(),
            pids: vec![l.pid],
            proposed_for: mine.iter().map(|p| ProposedFor { dev: p.dev.clone(), group: p.group.clone() }).collect(),
            allowed: l.allowed.clone(),
            as_proposed: is_within(&proposed) || proposed_for_many.as_ref().is_some_and(is_within),
            proposed,
            proposed_for_many,
        };
        let same = |o: &&mut ProgramCpus| ProgramCpus { pids: new.pids.clone(), ..(**o).clone() } == new;
        match out.iter_mut().find(same) {
            Some(o) => o.pids.push(l.pid),
            None => out.push(new),
        }
    }
    out
}

fn is_for(s: &Snapshot, p: &ProgramPlacement, groups: &[GroupWish], l: &ListeningProgram) -> bool {
    let on_dev = |socket: &&ListeningSocket| {
        let a = socket.address;
        a.is_unspecified() || s.interfaces_with(a).iter().any(|n| n.name() == p.dev)
    };
    let mut sockets = l.sockets.iter().filter(on_dev);
    let Some(group) = &p.group else { return sockets.next().is_some() };
    let flows: Vec<&Flow> =
        groups.iter().filter(|g| g.dev == p.dev && g.name == *group).flat_map(|g| &g.flows).collect();
    sockets.flat_map(|socket| &socket.matches).any(|m| flows.iter().any(|f| has_port(f, m)))
}

/// Whether the packets of a flow are for this port.
fn has_port(flow: &Flow, (kind, socket): &(String, BTreeMap<String, String>)) -> bool {
    let Flow::Match { flow, fields } = flow else { return false };
    let same_address = match (fields.get("dst-ip"), socket.get("dst-ip")) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    flow == kind && same_address && fields.get("dst-port").is_some_and(|p| socket.get("dst-port") == Some(p))
}

/// The proposal for a program with many threads or processes, or a busy one.
enum ForMany {
    /// That for other programs.
    Same,
    These(CpuSet),
    NoLimit,
}

/// The proposals for a program that uses several interfaces: those of one node together; of different nodes there is no limit.
fn together(s: &Snapshot, all: &[&ProgramPlacement]) -> Option<(CpuSet, ForMany)> {
    let t = &s.topology;
    let nodes = |p: &&ProgramPlacement| -> BTreeSet<Option<NodeId>> { p.cpus.iter().map(|c| t.node_of(c)).collect() };
    let first = nodes(all.first()?);
    if all.iter().any(|p| nodes(p) != first) {
        return None;
    }
    let few = all.iter().fold(CpuSet::new(), |sum, p| sum.union(&p.cpus));
    // Every program of a group has the same proposal.
    let of = |p: &&ProgramPlacement| if p.group.is_some() { Some(p.cpus.clone()) } else { p.node_cpus.clone() };
    let many = all.iter().map(of).collect::<Option<Vec<CpuSet>>>();
    let many = many.map(|all| all.iter().fold(CpuSet::new(), |sum, c| sum.union(c)));
    let many = match many {
        None => ForMany::NoLimit,
        Some(m) if m == few => ForMany::Same,
        Some(m) => ForMany::These(m),
    };
    (few != t.online).then_some((few, many))
}

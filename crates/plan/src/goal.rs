//! What each goal means for the settings planned here (DESIGN section 3).

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{CpuSet, FarNode, Goal, Intent, Smt};

/// What each device may have at most and is asked for, so that members get the same number.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    /// Physical cores near it; of members the fewest.
    pub cores: u32,
    /// Their threads that may carry queues; of members the fewest.
    pub cpus: u32,
    /// Queues there are; of members the fewest.
    pub now: u32,
    /// Queues there can be; of members the fewest.
    pub max: u32,
}

/// Flow table of the host for request/response servers: kernel documentation, networking/scaling.
const RFS_RPC: u32 = 32_768;
/// For few long flows: 32 KB, stays in a core's own cache.
const RFS_STREAM: u32 = 8_192;

/// Receive flow steering as a goal has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rfs {
    Keep,
    Off,
    /// Entries of the host's table; a larger one that is there is kept if `at_least`.
    On {
        entries: u32,
        at_least: bool,
    },
}

/// How many queues a goal wants, from the physical cores of the device's node and their threads.
pub(crate) fn queues(goal: Goal, near: Share) -> u32 {
    let Share { now, cores, cpus, .. } = near;
    match goal {
        // Nothing that interrupts traffic, ever; groups are made of the queues that are there.
        Goal::Balanced | Goal::Mixed => now,
        Goal::Rpc => now.min(cores.max(1)),
        // Both threads of a core together carry more than one alone (lab: 830-threads).
        Goal::Forward => cpus.max(1),
        Goal::Stream => cores.max(1),
        // The load is not known here: half of the cores, the rest stays free for programs.
        Goal::Latency => now.min(for_queues(cores)),
    }
}

/// Of a node's physical cores those that carry queues with goal latency. With fewer than four, the half would be one CPU
/// that takes every packet.
pub(crate) fn for_queues(cores: u32) -> u32 {
    if cores < 4 { cores.max(1) } else { cores / 2 }
}

pub(crate) fn rfs(goal: Goal) -> Rfs {
    match goal {
        Goal::Balanced | Goal::Mixed => Rfs::Keep,
        Goal::Forward | Goal::Latency => Rfs::Off,
        Goal::Rpc => Rfs::On { entries: RFS_RPC, at_least: true },
        Goal::Stream => Rfs::On { entries: RFS_STREAM, at_least: false },
    }
}

/// Whether a device with one receive queue gets help from other CPUs.
pub(crate) fn rps_for_one_queue(goal: Goal) -> bool {
    goal != Goal::Latency
}

/// The same layout on every port near the same node: a flow that leaves by queue i of another port
/// stays on its CPU.
pub(crate) fn ports_alike(goal: Goal) -> bool {
    goal == Goal::Forward
}

/// Whether an idle core of a node close by goes before a second thread of the device's own node.
pub(crate) fn near_is_wide(goal: Goal) -> bool {
    goal == Goal::Forward
}

/// What a goal lays down, written out. A member that the goals of single interfaces have otherwise stays open: said
/// of the host, it would be said of these too.
pub fn in_full(intent: &Intent) -> Intent {
    let mut full = resolve(intent);
    let others = Resolved::new(intent, intent.dev_goals.values().copied());
    full.smt = full.smt.filter(|_| others.all().all(|o| o.smt == full.smt));
    full.far_node = full.far_node.filter(|_| others.all().all(|o| o.far_node == full.far_node));
    full
}

/// The intent with every open member as the goal has it; lists sorted, so that their order changes nothing.
pub(crate) fn resolve(intent: &Intent) -> Intent {
    let mut i = intent.clone();
    i.devs.sort_by(|a, b| ringwise_model::natural::compare(a, b));
    i.devs.dedup();
    let article = i.pair_as_article;
    i.smt.get_or_insert(match i.goal {
        _ if article => Smt::All,
        Goal::Balanced | Goal::Forward | Goal::Mixed => Smt::All,
        // The second thread is the program's, or nobody's.
        Goal::Rpc | Goal::Stream | Goal::Latency => Smt::OnePerCore,
    });
    i.far_node.get_or_insert(if article { FarNode::Ok } else { FarNode::Last });
    i
}

/// The resolved intents of interfaces, by their goal: an intent may name thousands of them, and is the same for all that
/// have one goal.
pub(crate) struct Resolved(BTreeMap<Goal, Intent>);

impl Resolved {
    /// `user` is as it was said.
    pub(crate) fn new(user: &Intent, goals: impl Iterator<Item = Goal>) -> Self {
        let of = |goal| (goal, resolve(&Intent { goal, ..user.clone() }));
        Self(goals.collect::<BTreeSet<_>>().into_iter().map(of).collect::<BTreeMap<_, _>>())
    }

    /// Of a goal that was among those of `new`.
    pub(crate) fn of(&self, goal: Goal) -> &Intent {
        &self.0[&goal]
    }

    fn all(&self) -> impl Iterator<Item = &Intent> {
        self.0.values()
    }
}

/// Whether far CPUs come into play as soon as every near one has a queue: two policies on one CPU would undo
/// each other.
pub(crate) fn far_when_full(goal: Goal) -> bool {
    goal == Goal::Mixed
}

/// CPUs that may carry queues, with what was taken out.
pub(crate) struct Usable {
    pub cpus: CpuSet,
    pub isolated: CpuSet,
    pub kept_free: CpuSet,
}

pub(crate) fn usable(topo: &ringwise_model::Topology, intent: &Intent) -> Usable {
    let isolated = topo.isolated_all().intersection(&topo.online);
    let kept_free = intent.reserve.union(&intent.exclude_cpus);
    let from = match &intent.cpus {
        Some(named) => named.intersection(&topo.online),
        None => topo.online.difference(&isolated),
    };
    Usable { cpus: from.difference(&kept_free), isolated, kept_free }
}

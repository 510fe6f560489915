//! The meaning of each goal for the settings planned here (DESIGN section 3).

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::order::Order;
use ringwise_model::{CpuSet, FarNode, Goal, Intent, Smt};

/// The limits and the request for one device, adjusted so that members of a bond get the same number of queues.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    /// Physical cores near the device, or the CPUs that the options permit ([`counts_permitted`]); the minimum over all
    /// members.
    pub cores: u32,
    /// Usable threads near the device; the minimum over all members.
    pub cpus: u32,
    /// Current queues; the minimum over all members.
    pub now: u32,
    /// Largest possible number of queues; the minimum over all members.
    pub max: u32,
}

/// Flow table of the host for request/response servers: kernel documentation, networking/scaling.
const RFS_RPC: u32 = 32_768;
/// For few long flows: 32 KB, which fit into a core's own cache.
const RFS_STREAM: u32 = 8_192;

/// Receive flow steering for a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rfs {
    Keep,
    Off,
    /// Entries of the host's table; with `at_least`, a larger current table is kept.
    On {
        entries: u32,
        at_least: bool,
    },
}

/// The number of queues for a goal, from the physical cores of the device's node and their threads.
pub(crate) fn queues(goal: Goal, near: Share) -> u32 {
    let Share { now, cores, cpus, .. } = near;
    match goal {
        // These goals never interrupt traffic; groups use the current queues.
        Goal::Balanced | Goal::Mixed => now,
        Goal::Rpc => now.min(cores.max(1)),
        // Both threads of a core together process more than one alone (lab: 830-threads).
        Goal::Forward => cpus.max(1),
        Goal::Stream => cores.max(1),
        // The load is unknown here: half of the cores handle queues, the rest stays free for programs.
        Goal::Latency => now.min(for_queues(cores)),
    }
}

/// Whether goal rpc counts the CPUs that the user's options permit (`--smt all`, `--far-node ok`), not the physical cores of
/// the device's node. `intent`: with the goal's defaults, which permit neither.
pub(crate) fn counts_permitted(intent: &Intent) -> bool {
    intent.goal == Goal::Rpc && (intent.smt == Some(Smt::All) || intent.far_node == Some(FarNode::Ok))
}

/// The number of a node's physical cores that handle queues with goal latency. With fewer than four cores, half of them
/// would be one CPU that handles every packet.
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

/// Whether other CPUs help a device with one receive queue.
pub(crate) fn rps_for_one_queue(goal: Goal) -> bool {
    goal != Goal::Latency
}

/// Whether all ports near the same node get the same layout: a flow that leaves by queue i of another port stays on its
/// CPU.
pub fn ports_alike(goal: Goal) -> bool {
    goal == Goal::Forward
}

/// Whether a CPU sends through all transmit queues whose interrupts it handles. A CPU that forwards what several receive queues get would
/// otherwise fill the ring of one transmit queue before it cleans it: NAPI handles up to 64 packets of each queue in turn. Goals for
/// programs leave these queues to CPUs that would have none of their own.
pub(crate) fn sends_through_own_queues(goal: Goal) -> bool {
    matches!(goal, Goal::Forward | Goal::Balanced)
}

/// Whether an idle core of a nearby node takes precedence over a second thread of the device's own node.
pub(crate) fn near_is_wide(goal: Goal) -> bool {
    goal == Goal::Forward
}

/// The intent with the goal's defaults written out. A member stays open if the goals of single interfaces have other
/// defaults: a value for the host would also override those.
pub fn in_full(intent: &Intent) -> Intent {
    let mut full = resolve(intent);
    let others = Resolved::new(intent, intent.dev_goals.values().copied());
    full.smt = full.smt.filter(|_| others.all().all(|o| o.smt == full.smt));
    full.far_node = full.far_node.filter(|_| others.all().all(|o| o.far_node == full.far_node));
    full
}

/// Threads of a core that take interrupts.
fn default_smt(goal: Goal) -> Smt {
    match goal {
        Goal::Balanced | Goal::Forward | Goal::Mixed => Smt::All,
        // The second thread is for the program, or stays idle.
        Goal::Rpc | Goal::Stream | Goal::Latency => Smt::OnePerCore,
    }
}

/// Whether queues of an interface with this goal use one thread of each core. `intent`: of the host.
pub(crate) fn takes_one_thread(intent: &Intent, goal: Goal) -> bool {
    intent.smt.unwrap_or_else(|| default_smt(goal)) == Smt::OnePerCore
}

/// The intent with the goal's defaults for all open members. Lists are sorted, so that their order has no effect.
pub(crate) fn resolve(intent: &Intent) -> Intent {
    let mut i = intent.clone();
    i.devs.order_by(|a, b| ringwise_model::natural::compare(a, b));
    i.devs.dedup();
    let article = i.pair_as_article;
    i.smt.get_or_insert(if article { Smt::All } else { default_smt(i.goal) });
    i.far_node.get_or_insert(if article { FarNode::Ok } else { FarNode::Last });
    i
}

/// Resolved intents by goal: an intent may name thousands of interfaces, and is the same for all interfaces with the same
/// goal.
pub(crate) struct Resolved(BTreeMap<Goal, Intent>);

impl Resolved {
    /// `user` is the intent as the user wrote it.
    pub(crate) fn new(user: &Intent, goals: impl Iterator<Item = Goal>) -> Self {
        let of = |goal| (goal, resolve(&Intent { goal, ..user.clone() }));
        Self(goals.collect::<BTreeSet<_>>().into_iter().map(of).collect::<BTreeMap<_, _>>())
    }

    /// The goal must be one of those passed to `new`.
    pub(crate) fn of(&self, goal: Goal) -> &Intent {
        &self.0[&goal]
    }

    fn all(&self) -> impl Iterator<Item = &Intent> {
        self.0.values()
    }
}

/// Whether remote CPUs are used as soon as every local CPU has a queue: two policies on one CPU would cancel each other.
pub(crate) fn far_when_full(goal: Goal) -> bool {
    goal == Goal::Mixed
}

/// CPUs that may handle queues, and those that were excluded.
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

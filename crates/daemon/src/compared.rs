//! What a look works with: the host as read, compared with what was applied, and new plans.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_apply::{BalancedSetting, Verify};
use ringwise_discover::sockets::Listener;
use ringwise_model::{Flow, Goal, Snapshot};

use crate::replan::Replanned;

/// CPUs that may serve the queues of each interface. Those of interfaces that are not in it are unknown.
pub(crate) type PermittedCpus = BTreeMap<String, BTreeSet<u32>>;

/// What the load depends on besides the counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadLayout {
    /// The first thread of the core of each online CPU. CPUs whose core is unknown are missing.
    pub core: BTreeMap<u32, u32>,
    /// RPS masks that may be changed, by interface.
    pub masks: BTreeMap<String, MaskRule>,
    /// Interfaces whose XPS masks follow the interrupts: all of them are as applied, and the configuration requests no others. With the goal
    /// by which the plan chose them.
    pub xps: BTreeMap<String, Goal>,
}

/// The RPS mask of the only receive queue of an interface.
#[derive(Debug, Clone)]
pub(crate) struct MaskRule {
    pub queue: u32,
    /// The CPU that serves the queue; `helpers` are for this one.
    pub cpu: u32,
    /// The CPUs that the plan would put into the mask.
    pub helpers: BTreeSet<u32>,
    /// The CPUs that were applied. Any other mask is a manual change.
    pub applied: BTreeSet<u32>,
}

/// The host, compared.
pub(crate) struct Compared {
    pub now: Snapshot,
    pub in_effect: Verify,
    pub base: Verify,
    pub anew: BTreeSet<String>,
    pub balanced: Vec<BalancedSetting>,
    /// Interfaces whose last transaction by a person is a rollback: nothing is wanted for them.
    pub undone: BTreeSet<String>,
}

/// What was read since the last notification.
pub(crate) struct Prepared {
    pub seen: Compared,
    pub ahead: Ahead,
}

/// What follows from it.
pub(crate) struct Ahead {
    /// Interfaces that what was requested covers, and that have no setting in effect.
    pub appeared: BTreeSet<String>,
    /// `None`: no interface needs a new plan.
    pub planned: Option<Planned>,
    /// Something will probably be written.
    pub writes: bool,
}

/// A new plan.
pub(crate) struct Planned {
    /// The interfaces that it is for.
    pub interfaces: BTreeSet<String>,
    pub result: Result<Replanned, String>,
}

/// A flow of a group that names a program or unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedFlow {
    pub dev: String,
    pub flow: Flow,
    /// Where it listened when it last did. `None`: it has not listened since the service started.
    pub last: Option<Vec<Listener>>,
    /// What could not be read, as reported.
    pub unread: Option<String>,
}

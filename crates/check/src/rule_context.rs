//! The input of the audit, and the context that all rules share.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{
    Cause, CheckOnlyFacts, CpuId, CpuSet, Dir, Fact, Feature, Goal, Intent, Nic, Snapshot, TxQueue, Unread, Vector,
    shell,
};
use ringwise_plan::Plan;

use crate::configured_settings::WishesByDevice;
use crate::finding_sink::{FindingSink, SteeringKind};
use crate::fix::PlanArguments;
use crate::role::{self, Role, RoleGuess};
use crate::traffic::{HostTraffic, LinkTraffic};

/// Where the goal comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoalOrigin {
    /// An option on the command line.
    Requested,
    /// `--goal auto`: the role of the host.
    Auto,
    /// The active transaction.
    ActiveTransaction,
    /// The configuration file.
    Config,
    /// The default: no option, no transaction and no file names a goal.
    Default,
}

impl GoalOrigin {
    /// How texts name the origin of the goal.
    pub fn words(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            // The first line of the page shows the role.
            Self::Auto => "chosen by auto",
            Self::ActiveTransaction => "active transaction",
            Self::Config => "configuration file",
            Self::Default => "default",
        }
    }
}

/// The input of the audit.
pub struct AuditInput<'a> {
    /// The host and its interfaces.
    pub snapshot: &'a Snapshot,
    /// Files and replies that only `check` reads.
    pub extra: &'a CheckOnlyFacts,
    /// The plan for `intent`; `Err`: why no plan could be made.
    pub plan: Result<&'a Plan, String>,
    /// Goal, interfaces and configured settings that the host is compared with.
    pub intent: &'a Intent,
    /// Where the goal in `intent` comes from.
    pub goal_from: GoalOrigin,
    /// `None`: there are no two samples.
    pub traffic: Option<&'a HostTraffic>,
    /// Settings that differ from what was applied, each with its device and a text. `None`: unknown, for example for a
    /// recording.
    pub drift: Option<Vec<(Option<String>, String)>>,
    /// Only these interfaces; empty: all.
    pub devs: &'a [String],
}

/// `6.12.48-amd64` as (6, 12).
pub(crate) fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(|p| p.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// The input, with derived facts that many rules need.
pub struct RuleContext<'a> {
    /// The input.
    pub i: &'a AuditInput<'a>,
    /// Short for `i.snapshot`.
    pub s: &'a Snapshot,
    /// What the host seems to be for.
    pub role: RoleGuess,
    /// Interfaces that are judged: those with queues of their own and a link.
    pub nics: Vec<&'a Nic>,
    /// Steps of the plan, by rule.
    pub(crate) planned: BTreeMap<&'a str, Vec<&'a ringwise_knob::Step>>,
    /// Families of settings and the interfaces for which the plan has a step.
    pub(crate) planned_at: BTreeSet<(SteeringKind, String)>,
    /// Settings that the user configured, by interface.
    pub(crate) wishes: WishesByDevice<'a>,
    /// Interfaces for which the user configured groups of queues.
    pub(crate) grouped: BTreeSet<&'a str>,
    /// Interfaces for which the plan has groups of queues.
    pub(crate) planned_groups: BTreeSet<&'a str>,
    /// Only these interfaces are judged; `None`: all.
    only: Option<BTreeSet<&'a str>>,
}

impl<'a> RuleContext<'a> {
    /// Prepares facts that many rules need: the guessed role, the interfaces, and the plan by rule and by interface.
    pub fn new(i: &'a AuditInput<'a>) -> Self {
        let only = (!i.devs.is_empty()).then(|| i.devs.iter().map(String::as_str).collect::<BTreeSet<_>>());
        let named = |n: &&Nic| only.as_ref().is_none_or(|o| o.contains(n.name()));
        let nics = i.snapshot.tunable().filter(|n| n.link_is_up()).filter(named).collect();
        let sockets = i.extra.file("/proc/net/sockstat").known().and_then(|t| role::tcp_in_use(t));
        let mut planned: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        let mut planned_at = BTreeSet::new();
        for step in i.plan.iter().flat_map(|p| &p.steps) {
            planned.entry(step.rule.as_str()).or_default().push(step);
            if let Some(a) = step.setting.address()
                && let (Some(family), Some(dev)) = (SteeringKind::of(&a), a.dev())
            {
                planned_at.insert((family, dev.to_string()));
            }
        }
        Self {
            i,
            s: i.snapshot,
            role: role::guess(i.snapshot, sockets),
            nics,
            planned,
            planned_at,
            wishes: WishesByDevice::new(i.intent),
            grouped: i.intent.groups.iter().map(|g| g.dev.as_str()).collect::<BTreeSet<_>>(),
            planned_groups: i.plan.iter().flat_map(|p| &p.groups).map(|g| g.dev.as_str()).collect::<BTreeSet<_>>(),
            only,
        }
    }

    /// How much traffic the plan carries by its model, as a part of the traffic now, if queues leave remote CPUs to share local
    /// ones. `None`: no less, or there is no such move.
    pub(crate) fn plan_shares_for_locality(&self) -> Option<f64> {
        self.i.plan.as_ref().ok()?.shared_for_locality
    }

    /// Whether this interface is to be judged; for `None`, whether the host is.
    pub(crate) fn is_selected(&self, dev: Option<&str>) -> bool {
        match (&self.only, dev) {
            (Some(only), Some(d)) => only.contains(d),
            _ => true,
        }
    }

    /// Whether the guessed role of the host is [`Role::Forward`].
    pub fn forwards(&self) -> bool {
        self.role.role == Role::Forward
    }

    /// Whether the host forwards, or the interface is to be tuned for it: a router may be tuned before it forwards.
    pub(crate) fn forwards_or_requested(&self, n: &Nic) -> bool {
        self.forwards() || self.goal_of(n) == Goal::Forward
    }

    /// The goal of the host.
    pub fn goal(&self) -> Goal {
        self.i.intent.goal
    }

    /// The goal of this interface, or the host's if the interface has none of its own.
    pub fn goal_of(&self, n: &Nic) -> Goal {
        self.i.intent.goal_of(n.name())
    }

    /// Judges each interface. `None`: the rule applied to no interface.
    pub(crate) fn each(
        &self,
        say: &mut FindingSink,
        mut judge: impl FnMut(&'a Nic, &mut FindingSink) -> Option<()>,
    ) -> Option<()> {
        let mut any = None;
        for n in &self.nics {
            say.at(n.name());
            any = judge(n, say).or(any);
        }
        say.of_host();
        any
    }

    /// Judges each interface with its traffic. Without two samples the rule is not evaluated.
    pub(crate) fn each_rate(
        &self,
        say: &mut FindingSink,
        mut judge: impl FnMut(&'a Nic, &'a LinkTraffic, &'a HostTraffic, &mut FindingSink) -> Option<()>,
    ) -> Option<()> {
        let t = self.traffic(say)?;
        self.each(say, |n, say| judge(n, t.links.get(n.name())?, t, say))
    }

    pub(crate) fn traffic(&self, say: &mut FindingSink) -> Option<&'a HostTraffic> {
        if self.i.traffic.is_none() {
            say.needs_samples();
        }
        self.i.traffic
    }

    /// An offload feature by the kernel's name. `None`: the device does not have it, or the features are unknown, which
    /// is noted as unread.
    pub fn feature(&self, n: &'a Nic, name: &str, say: &mut FindingSink) -> Option<&'a Feature> {
        say.get(&n.features)?.get(name)
    }

    /// The number of receive queues that the driver uses. Interfaces without receive queues are not judged.
    pub fn rx_queues(&self, n: &Nic) -> u32 {
        n.queues_in_use(Dir::Rx).unwrap_or(0)
    }

    /// The number of transmit queues that the driver uses.
    pub fn tx_queues(&self, n: &Nic) -> Fact<u32> {
        let unknown =
            || Fact::unknown(format!("transmit queues of {}", n.name()), "the kernel neither lists nor counts them");
        n.queues_in_use(Dir::Tx).map_or_else(unknown, Fact::Known)
    }

    /// The transmit queues in the snapshot that the driver uses.
    pub(crate) fn tx_queues_used(&self, n: &'a Nic) -> impl Iterator<Item = &'a TxQueue> {
        let used = self.tx_queues(n).known().map_or(0, |n| *n as usize);
        n.tx_queues.iter().take(used)
    }

    /// The one CPU that handles a vector. `None`: several are possible, or it is not known.
    pub fn at(&self, v: &Vector) -> Option<CpuId> {
        v.taken_by().filter(|c| c.len() == 1).and_then(CpuSet::first)
    }

    /// The CPU that handles the interrupt of a queue; `None`: several are possible, or it is not known.
    pub fn irq_cpu(&self, n: &Nic, dir: Dir, queue: u32) -> Option<CpuId> {
        n.vector_of(dir, queue).and_then(|v| self.at(v))
    }

    /// Physical cores of these CPUs.
    pub fn cores(&self, cpus: &CpuSet) -> usize {
        let first = |c: CpuId| self.s.topology.siblings_of(c).intersection(cpus).first();
        cpus.iter().filter(|c| first(*c) == Some(*c)).count()
    }

    /// CPUs of the device's node; all CPUs if the node is unknown.
    pub fn near(&self, n: &Nic) -> CpuSet {
        let online = &self.s.topology.online;
        let node = n.node.known().and_then(|id| self.s.topology.node(*id));
        match (node, n.local_cpus.known()) {
            (Some(node), _) => node.cpus.intersection(online),
            (None, Some(c)) if !c.is_empty() => c.intersection(online),
            _ => online.clone(),
        }
    }

    /// The near CPUs that interrupts may use: without the isolated ones.
    pub fn usable_near(&self, n: &Nic) -> CpuSet {
        self.near(n).difference(&self.s.topology.isolated_all())
    }

    /// The number of nodes with CPUs; 1 if nodes are unknown.
    pub fn nodes(&self) -> usize {
        let with_cpus = |n: &&ringwise_model::Node| !n.cpus.is_empty();
        self.s.topology.nodes.known().map_or(1, |n| n.values().filter(with_cpus).count())
    }

    /// `6.12.48-amd64` as (6, 12).
    pub fn kernel(&self) -> Option<(u32, u32)> {
        version(self.s.host.kernel.known()?)
    }

    /// The command `ringwise plan …` that adds `fix` to what the user requested.
    pub fn command(&self, fix: &PlanArguments) -> String {
        let words = fix.words(self.router_goal().or(self.chosen_goal()), self.i.devs);
        shell::join(["ringwise", "plan"].map(str::to_string).into_iter().chain(words))
    }

    /// The arguments of this check: the named interfaces, and the goal.
    pub fn arguments(&self) -> Vec<String> {
        PlanArguments::planned().words(self.chosen_goal(), self.i.devs)
    }

    /// The goal of a router, if the host looks like one and nothing names a goal. Its plan places the queues as well, so it fixes
    /// the same findings.
    pub(crate) fn router_goal(&self) -> Option<Goal> {
        let open = self.i.goal_from == GoalOrigin::Default && self.role.role == Role::Forward;
        self.role.goal().filter(|g| open && *g != self.goal())
    }

    /// The goal that the user chose, unless it is the default.
    fn chosen_goal(&self) -> Option<Goal> {
        let chosen =
            matches!(self.i.goal_from, GoalOrigin::ActiveTransaction | GoalOrigin::Requested | GoalOrigin::Auto);
        Some(self.goal()).filter(|g| chosen && *g != Goal::Balanced)
    }

    /// A sysctl by its name with dots, as text; unknown if it was not read.
    pub fn sysctl(&self, name: &str) -> Fact<String> {
        self.s.host.sysctls.get(name).cloned().unwrap_or_else(|| {
            Fact::Unknown(Unread::new(name, None, "not in this capture").because(Cause::NotRecorded))
        })
    }

    /// Queueing disciplines of an interface. `None`: not read, or the kernel lists none.
    pub fn qdisc(&self, n: &Nic, say: &mut FindingSink) -> Option<&'a ringwise_model::Qdiscs> {
        say.get(self.i.extra.qdiscs.as_ref()?)?.get(&n.dev.ifindex?)
    }

    /// Name of the driver; empty if it is unknown.
    pub fn driver(&self, n: &'a Nic) -> &'a str {
        n.driver.known().map_or("", String::as_str)
    }
}

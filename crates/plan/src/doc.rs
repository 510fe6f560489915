//! The plan as a document: proposed changes, their reasons, and what was skipped.

use std::collections::BTreeMap;

use ringwise_knob::{Address, ManualChange, Reason, Setting, Step};
use ringwise_model::{ControlPath, CpuId, CpuSet, DevId, Fact, Intent, NodeId, Snapshot};
use serde::{Deserialize, Serialize};

use crate::Obstacle;
use crate::sampled_groups::{SampledGroups, SampledPlacement};

/// Name of the JSON document.
pub const SCHEMA: &str = "ringwise.plan";
/// Additions keep the version; removing or changing a member increments it.
pub const VERSION: u32 = 2;

/// A plan for one host. It depends neither on the order of devices nor on the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`SCHEMA`] when written by ringwise; a reader refuses any other value.
    pub schema: String,
    /// [`VERSION`] of the ringwise that wrote it.
    pub version: u32,
    /// Compared with the host before a saved plan is applied.
    pub host: PlanHost,
    /// The intent, with defaults of the goal for all members that were not set.
    pub intent: Intent,
    /// Identity of every device named in `steps` or `target`, by name in natural order.
    pub devices: Vec<DevId>,
    /// Devices that were planned, by name in natural order.
    pub considered: Vec<String>,
    /// Devices with queues of their own that were not planned, or only in part, and why.
    pub left_alone: Vec<SkippedInterface>,
    /// Interfaces without queues of their own, counted by kind.
    pub bystanders: BTreeMap<String, u32>,
    /// What would be written, in writing order.
    pub steps: Vec<Step>,
    /// Number of settings of `target` that are in effect already; `already + steps.len() == target.len()`.
    pub already: usize,
    /// All settings that the plan requests, in writing order, changed or not.
    pub target: Vec<Setting>,
    /// The CPU of each queue's interrupt after the plan.
    pub layout: Vec<DevLayout>,
    /// Settings that the goal proposes but that need the user's permission.
    pub left_out: Vec<ProposedChange>,
    /// Settings that are not possible here, learned refusals included.
    pub refused: Vec<NotPossible>,
    /// Warnings that the user should read before applying, one text each.
    pub warnings: Vec<String>,
    /// Numbers that can be checked after applying.
    pub expected: Vec<Expected>,
    /// Where queues leave remote CPUs and then share local ones: how much traffic the plan carries by its model, as a part of
    /// the traffic now. The model does not count what remote memory costs, so only a measurement shows which layout is
    /// faster. `None`: the plan has no such moves, or carries no less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_for_locality: Option<f64>,
    /// Groups of queues (`mixed`, configured groups, `--pair-as-article`); else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// With `--sample`: what the sample decided about the groups, by interface of goal `mixed`; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sampled: Vec<SampledGroups>,
    /// With `--sample`: what the sample decided about the CPUs of queues outside groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled_placement: Option<SampledPlacement>,
    /// The best CPUs for programs, by device and group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ProgramPlacement>,
    /// Facts that the plan cannot know, and what to do about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
    /// Control paths that must not be interrupted: the ssh session, the default route, network mounts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control: Vec<ControlPath>,
    /// Steps that interrupt a control path, or may do so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<ControlPathCut>,
    /// Interfaces whose traffic the steps interrupt, in the order of the steps: one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Physical cores that carry two or more queues of one device, by device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubled_cores: Vec<DoubledCore>,
    /// Steps that undo manual changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_hand: Vec<ManualChange>,
    /// Settings that stay although the goal proposes another value: adopted ones and manual changes that are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptChange>,
}

/// A manual change that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptChange {
    /// The current value on the host, its origin and the time of the change.
    pub hand: ManualChange,
    /// The value that the goal proposes.
    pub wanted: Setting,
}

/// Which host, kernel and boot the plan was made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanHost {
    /// Host name (`/proc/sys/kernel/hostname`).
    pub name: Fact<String>,
    /// Kernel release as `uname -r` prints it (`/proc/sys/kernel/osrelease`).
    pub kernel: Fact<String>,
    /// A new UUID at each boot (`/proc/sys/kernel/random/boot_id`); interrupt numbers hold for one boot only.
    pub boot_id: Fact<String>,
    /// The same across boots, 32 hexadecimal digits (machine-id(5)).
    pub machine_id: Fact<String>,
}

/// A device that is not planned, or only in part, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedInterface {
    /// Interface name, or the bus address of a device that a user-space driver holds.
    pub dev: String,
    /// In JSON `why`, a text, with `code` and `facts` beside it.
    #[serde(flatten)]
    pub why: Obstacle,
}

/// The queues of one device and their CPUs after the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevLayout {
    /// Interface name.
    pub dev: String,
    /// `None`: unknown.
    pub node: Option<NodeId>,
    /// In ascending order from 0, one entry for each pair of a receive and a transmit queue.
    pub queues: Vec<Placed>,
}

/// The CPU of the interrupt of one queue pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Number as the kernel counts the device's queues, from 0.
    pub queue: u32,
    /// `None`: not placed, because the interrupt cannot be moved or is unknown, and its CPU is unknown.
    pub cpu: Option<CpuId>,
    /// Whether the CPU is on a remote node: another socket, or a distance above 12 from the device's node. `None`: one of
    /// the two nodes is unknown.
    pub far: Option<bool>,
    /// Another queue of the same device sits on the same physical core.
    pub shares_core: bool,
}

/// A setting that the goal proposes and that the user has to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedChange {
    /// The value that the goal would write.
    pub setting: Setting,
    /// What is there now, for `channels 8 -> 4`.
    pub from: Fact<Setting>,
    /// Code of the rule behind it, as [`explain_rule`](crate::explain_rule) expects it.
    pub rule: String,
    /// Why the goal would write it; a plain text in plans of version 1.
    #[serde(alias = "why")]
    pub reason: Reason,
    /// The command line that includes it.
    pub command: String,
    /// Expected outage in words: `link down about 3 s`.
    pub outage: String,
}

impl ProposedChange {
    /// Whether the user configured it, on the command line or in a file.
    pub fn is_user_configured(&self) -> bool {
        matches!(self.reason, Reason::Configured { .. } | Reason::QueuesRequested { .. })
    }
}

/// Something that cannot be set here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotPossible {
    /// `None` if there is no address, e.g. for an interrupt whose queue is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// For people: `eth1 interrupt CPU rx-3`.
    pub what: String,
    /// The answer of the kernel or driver, or what is missing. In JSON `why`, a text, with `code` and `facts` beside it.
    #[serde(flatten)]
    pub why: Obstacle,
    /// Whether the goal is incomplete without it.
    pub needed: bool,
    /// The setting that prevents it: a flow rule to a queue that would be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<Address>,
    /// Number of settings that `what` names: settings with the same obstacle share an entry.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub settings: usize,
}

fn one() -> usize {
    1
}

fn is_one(n: &usize) -> bool {
    *n == 1
}

impl NotPossible {
    /// Whether a value that could not be read is the reason, of this setting or of one that it depends on.
    pub fn is_unread(&self) -> bool {
        self.why.is_unread()
    }

    /// Whether the goal is incomplete without it, as far as the plan knows: a value that another user or a better recording can read
    /// may be as planned already. What groups need is not set if it is unknown whether the driver can do it.
    pub fn leaves_goal_incomplete(&self) -> bool {
        let for_groups = matches!(self.why, Obstacle::FlowRulesUnread { .. } | Obstacle::QueueModerationUnread { .. });
        self.needed && (for_groups || !self.is_unread())
    }

    /// Whether the user configured it: on the command line or in a file, as a setting or as a number of queues.
    pub fn is_user_configured(&self) -> bool {
        let queues = self.needed && matches!(self.address, Some(Address::Channels { .. }));
        queues || matches!(self.why, Obstacle::Configured { .. })
    }

    /// Whether it may become possible during the boot without the user: a configured program has not started yet, or an
    /// interface has no link yet.
    pub fn is_expected_at_boot(&self) -> bool {
        let Obstacle::Configured { obstacle, .. } = &self.why else { return false };
        match &**obstacle {
            Obstacle::FlowsNotFound { .. } => true,
            Obstacle::LeftAlone { obstacle } => matches!(**obstacle, Obstacle::LinkDown),
            _ => false,
        }
    }
}

/// One checkable number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// `None`: the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<String>,
    /// A sentence with both numbers in it.
    pub text: String,
    /// `None`: not known (no interrupt came yet, or not readable).
    pub before: Option<f64>,
    /// Computed from the plan. `None`: it cannot be computed, and the plan omits the number.
    pub after: Option<f64>,
    /// `percent of queues`, `interrupts`, `queues`, `CPUs`, `microseconds`; lower is better for each of them.
    pub unit: String,
    /// If the number grows, also from an unknown one: the benefit in exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worth: Option<String>,
}

/// A step that interrupts a control path: `apply` needs the user's permission and a trial for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlPathCut {
    /// Of a step in [`Plan::steps`].
    pub address: Address,
    /// The control paths: `your ssh session (192.0.2.10 over eth0)`. Those of `unknown` come last: `possibly ssh sessions (…)`.
    pub ways: Vec<String>,
    /// Control paths for which it is unknown whether the host has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<UnknownPath>,
}

impl ControlPathCut {
    /// The control paths of `ways` that the host has.
    pub fn known(&self) -> &[String] {
        &self.ways[..self.ways.len().saturating_sub(self.unknown.len())]
    }
}

/// Control paths of one kind that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnknownPath {
    /// `ssh sessions`
    pub what: String,
    /// Why it is unknown whether there are any.
    pub why: String,
}

/// What the steps that interrupt traffic do to the link of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// Interface name.
    pub dev: String,
    /// The effect of one step, with its duration if the driver's is known: `link down about 3 s`.
    pub effect: String,
    /// Number of steps that have this effect.
    pub steps: u32,
}

/// Queues with the same moderation policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Interface name.
    pub dev: String,
    /// As the user configured it, or `latency` and `bulk`; unique within the device.
    pub name: String,
    /// CPUs that handle the interrupts of its queues.
    pub cpus: CpuSet,
    /// Queue numbers in ascending order.
    pub queues: Vec<u32>,
    /// Name of a moderation policy ([`policies`](crate::policies)). `None`: moderation stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// How its queues are moderated, in words: `rx-usecs 5 tx-usecs 10 on each queue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moderation: Option<String>,
    /// Entries of the device's RSS table that point to the group. `None`: the table is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u32>,
    /// RSS context of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// Number of flow rules that steer to the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<u32>,
}

/// Proposed CPUs for the programs of a device or group; ringwise moves no program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramPlacement {
    /// Interface whose packets the programs receive or send.
    pub dev: String,
    /// Name of a [`Group`] of the device. `None`: all its queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Configured systemd units; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Where a program with few threads should run that is not busy; online CPUs only.
    pub cpus: CpuSet,
    /// Where a program with many processes or threads should run, or a busy one: the usable CPUs of the node except
    /// `beside_interrupts`, which may be the same as `cpus`. `None`: every CPU of the host, or the node is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_cpus: Option<CpuSet>,
    /// CPUs of the node that `node_cpus` leaves out, because each is the other hardware thread of the core of an interrupt, and
    /// the node has cores without interrupts.
    #[serde(default, skip_serializing_if = "CpuSet::is_empty")]
    pub beside_interrupts: CpuSet,
    /// Reason for these CPUs, one sentence.
    pub why: String,
    /// For `/etc/systemd/system/UNIT.service.d/cpus.conf`.
    pub drop_in: String,
    /// The same with `node_cpus`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_drop_in: Option<String>,
    /// The same for a control group.
    pub cpuset: String,
}

/// A physical core with more than one queue of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoubledCore {
    /// Interface name.
    pub dev: String,
    /// Threads of the core.
    pub core: CpuSet,
    /// Two or more queue numbers in ascending order.
    pub queues: Vec<u32>,
    /// The group that all these queues belong to: they compete for the core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl Plan {
    /// Whether any step interrupts traffic.
    pub fn interrupts_traffic(&self) -> bool {
        self.steps.iter().any(|s| s.interrupts_traffic)
    }

    /// Steps on this device; `None` for those of the host.
    pub fn steps_of<'a>(&'a self, dev: Option<&'a str>) -> impl Iterator<Item = &'a Step> {
        self.steps.iter().filter(move |s| !matches!(s.setting, Setting::Other(_)) && s.setting.dev() == dev)
    }
}

impl PlanHost {
    /// Copies each fact from the snapshot, unknown ones with their reason.
    pub fn of(s: &Snapshot) -> Self {
        Self {
            name: s.host.name.clone(),
            kernel: s.host.kernel.clone(),
            boot_id: s.host.boot_id.clone(),
            machine_id: s.host.machine_id.clone(),
        }
    }
}

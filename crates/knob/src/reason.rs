//! The reason of a plan step, as a code with facts. [`std::fmt::Display`] gives the text of a plan; findings of `ringwise
//! check` have their own text (check/wording.rs).

mod facts;
mod move_cause;
mod text;

pub use facts::{BanLossCause, ReplacedValue, ResetBy, SideEffect};
pub use move_cause::MoveCause;
pub use text::configured_in;

use std::collections::BTreeMap;

use ringwise_model::{ConfiguredBy, CpuId, CpuSet, Goal, NodeId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The reason of a plan step. In JSON `code`, `facts` and `text`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", remote = "Self")]
pub enum Reason {
    // Interrupts
    /// The queue does not exist yet.
    NewQueue,
    /// The CPU that handles the interrupt is unknown.
    CpuUnknown,
    /// The interrupt is on an isolated CPU.
    IsolatedCpu {
        /// CPU in question.
        cpu: CpuId,
    },
    /// The interrupt may be delivered to any of several CPUs. `arrived`: it is on the planned CPU by chance.
    FreeToMove {
        /// CPUs that the interrupt may be delivered to.
        among: CpuSet,
        /// Whether the interrupt is on the planned CPU by chance.
        arrived: bool,
        /// Why the planned CPU is another than the present one. `None`: it is the same, or an earlier version planned it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        moved: Option<MoveCause>,
    },
    /// The interrupt may move among several CPUs, and the planned one is that of its queue number on all ports of the node.
    PinAsOnOtherPorts {
        /// CPUs that the interrupt may be delivered to.
        among: CpuSet,
    },
    /// Its CPU is on another node than the interface.
    FarNode {
        /// Interface.
        dev: String,
        /// Node of the CPU. `None`: unknown.
        node: Option<NodeId>,
    },
    /// At least 90 % of the interrupts of the interface's queues.
    MostOnOneCpu {
        /// Interface.
        dev: String,
        /// CPU in question.
        cpu: CpuId,
        /// Number of queues.
        queues: u32,
        /// Number of all queues of the interface.
        of: u32,
        /// Those of `queues` whose interrupts are set to the CPU, but still delivered elsewhere. `None`: none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pending: Option<u32>,
    },
    /// Several queues of the interface share one CPU.
    QueuesShareCpu {
        /// Interface.
        dev: String,
        /// CPU in question.
        cpu: CpuId,
        /// Number of queues.
        queues: u32,
        /// As for `MostOnOneCpu`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pending: Option<u32>,
    },
    /// Its core has another queue, and a core of the same node has none.
    QueuesShareCore,
    /// Its CPU has more queues of all interfaces than the planned CPU.
    CrowdedCpu,
    /// The CPU is excluded from queue interrupts.
    ExcludedCpu {
        /// CPU in question.
        cpu: CpuId,
    },
    /// The goal uses fewer cores for queues.
    CoreNotUsed {
        /// Goal of the plan.
        goal: Goal,
        /// CPU in question.
        cpu: CpuId,
    },
    /// The CPU is the second hardware thread of a core, and the plan uses one thread of each core.
    SecondThread {
        /// Goal of the plan.
        goal: Goal,
        /// CPU in question.
        cpu: CpuId,
    },
    /// The other hardware thread of its core is excluded from queue interrupts.
    PartOfCore {
        /// CPU in question.
        cpu: CpuId,
    },
    /// The CPU belongs to a slower core than the planned one.
    SlowerCore {
        /// CPU in question.
        cpu: CpuId,
        /// CPU that the plan proposes.
        planned: CpuId,
    },
    /// The node of the CPU is more distant than that of the planned one.
    DistantNode {
        /// CPU in question.
        cpu: CpuId,
        /// CPU that the plan proposes.
        planned: CpuId,
    },
    /// The CPU belongs to another queue group.
    CpuOfOtherGroup {
        /// CPU in question.
        cpu: CpuId,
    },
    /// The plan gives the CPU to another queue of the same group.
    CpuOfOtherQueue {
        /// CPU in question.
        cpu: CpuId,
        /// Queue that gets it.
        queue: u32,
    },
    /// The plan gives the CPU to another interface, and another CPU has room for this queue.
    CpuForInterface {
        /// CPU in question.
        cpu: CpuId,
        /// Interface that gets the CPU.
        other: String,
    },
    /// Queues with the same number on several ports share one CPU.
    SameNumberOneCpu,
    /// Its L3 cache serves more queues of the interface than a free cache nearby.
    CrowdedCache {
        /// Interface.
        dev: String,
    },
    /// The plan gives the CPU to another interface, and no local CPU is left for this queue.
    CpuOfOtherInterface {
        /// Interface that gets the CPU.
        other: String,
        /// Node of the planned CPU, which is not that of the interface. `None`: unknown.
        node: Option<NodeId>,
    },
    /// The user permits remote CPUs, and the planned one is remote.
    RemoteRequested,
    /// The CPUs of the queues that stay are chosen for the new number of queues.
    PlacedForCount {
        /// New number of queues.
        queues: u32,
    },
    /// The planned CPU is less loaded.
    LessLoaded {
        /// CPU that the plan proposes.
        planned: CpuId,
    },
    /// A sample of the traffic chose the CPUs by the packets that each queue received.
    BusyInSample {
        /// CPU that the plan proposes.
        planned: CpuId,
    },
    /// Queues of the same number of several interfaces get different CPUs.
    QueuesOfOneNumber,
    // RPS
    /// The interface has one receive queue.
    OneQueue {
        /// CPU in question.
        cpu: Option<CpuId>,
        /// CPUs that RPS spreads packets over.
        helpers: CpuSet,
    },
    /// The goal does not use RPS.
    RpsNotForGoal,
    /// No other CPU of the node could help with RPS.
    NoHelper,
    /// The queues already cover the cores.
    QueuesCoverCores {
        /// Number of queues.
        queues: u32,
        /// Number of cores.
        cores: u32,
    },
    /// The device already spreads packets over its queues.
    DeviceSpreads {
        /// Number of queues.
        queues: u32,
    },
    // RFS
    /// RFS has no benefit for the goal.
    RfsNoGain,
    /// RFS for many connections.
    RfsManyConnections {
        /// Number of entries.
        entries: u32,
    },
    /// RFS for few long flows.
    RfsLongFlows {
        /// Number of entries.
        entries: u32,
    },
    /// RFS is off.
    RfsOff,
    /// The queue's share of the flow table of the host.
    RfsShare {
        /// Number of entries.
        entries: u32,
        /// Number of queues.
        queues: u32,
    },
    /// The driver supports accelerated RFS.
    AcceleratedRfs {
        /// Driver of the interface.
        driver: String,
    },
    // XPS
    /// There are more queues than CPUs.
    QueueWithoutCpu {
        /// Number of queues.
        queues: u32,
        /// Number of CPUs.
        cpus: u32,
    },
    /// The queue gets no CPU: that of its interrupt sends through a queue with configured XPS CPUs.
    ConfiguredForItsCpu,
    /// XPS is off.
    NoXps {
        /// Number of queues.
        queues: u32,
    },
    /// The queue is the nearest to these CPUs.
    NearestQueue,
    /// The CPUs that handle the interrupts of some queues are unknown.
    NearestKnownQueue,
    // NAPI
    /// The NAPI thread runs where the interrupt of its queue is handled.
    ThreadWithInterrupt,
    // irqbalance
    /// A restart of irqbalance forgets the ban.
    RestartForgetsBan,
    /// irqbalance may move the interrupts.
    IrqbalanceMoves {
        /// Interval of irqbalance in seconds. `None`: unknown.
        interval_s: Option<u32>,
        /// Why a restart of irqbalance forgets the ban. `None`: it does not.
        forgets: Option<BanLossCause>,
    },
    /// The interrupt was on the planned CPU when it was planned, and irqbalance does not ban it yet.
    UntilBanned,
    // The number of queues
    /// The number of queues was requested.
    QueuesRequested {
        /// Number of queues.
        queues: u32,
        /// Current number of queues.
        now: u32,
    },
    /// The goal uses as few queues as possible.
    FewestQueues {
        /// Number of cores.
        cores: u32,
    },
    /// The interface is the only member that carries traffic of the bond.
    OnlyMember {
        /// Interface.
        dev: String,
        /// Bond that the interface belongs to.
        bond: String,
    },
    /// One queue per CPU.
    OneQueueACpu {
        /// Current number of queues.
        now: u32,
        /// Number of CPUs.
        cpus: u32,
    },
    /// One queue per core.
    OneQueueACore {
        /// Current number of queues.
        now: u32,
        /// Number of cores.
        cores: u32,
    },
    /// One queue per CPU that `--smt all` or `--far-node ok` permits.
    OneQueueAPermittedCpu {
        /// Current number of queues.
        now: u32,
        /// Number of permitted CPUs.
        cpus: u32,
    },
    // Other settings of a goal, beside queues and CPUs
    /// LRO breaks forwarding.
    LroBreaksForwarding,
    /// GRO merges packets.
    GroJoins,
    /// TSO splits large packets in the device.
    TsoCuts,
    /// Pause frames stop the whole link.
    PauseStopsLink,
    /// CPUs wake up slowly from deep sleep states.
    DeepSleep {
        /// Wake-up latency in microseconds.
        usecs: u32,
    },
    /// A policy sets the moderation of the whole interface.
    Policy {
        /// Name of the policy.
        policy: String,
        /// When the policy is useful.
        when: String,
        /// Values that were replaced, because the driver refuses the ones of the policy.
        moved: Vec<ReplacedValue>,
        /// Whether adaptive moderation is switched off.
        adaptive_off: bool,
    },
    /// `own_mode`: fixed values that select the driver's own adaptive mode.
    Adaptive {
        /// Parameters whose values select the driver's own adaptive mode.
        own_mode: BTreeMap<String, u32>,
    },
    /// Each queue gets a share of the RSS table that matches the capacity of its CPU.
    TableByCapacity,
    // Groups of queues
    /// The policy of a queue group.
    GroupPolicy {
        /// Name of the policy.
        policy: String,
        /// Name of the queue group.
        group: String,
        /// When the policy is useful.
        when: String,
        /// How busy the CPUs of the group were in the sample from which the plan chose the policy. `None`: it was not
        /// chosen from a sample.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        busy_percent: Option<u32>,
    },
    /// The policy of a group, set through NAPI instances.
    GroupPolicyByNapi {
        /// Name of the policy.
        policy: String,
        /// Name of the queue group.
        group: String,
        /// As in `GroupPolicy`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        busy_percent: Option<u32>,
    },
    /// The policy of one group, set for the whole interface. `deferred`: NAPI defers interrupts for the groups that
    /// tolerate latency.
    GroupPolicyForAll {
        /// Name of the policy.
        policy: String,
        /// Whether NAPI defers interrupts for the groups that tolerate latency.
        deferred: bool,
        /// Values that were replaced, because the driver refuses the ones of the policy.
        moved: Vec<ReplacedValue>,
        /// As in `GroupPolicy`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        busy_percent: Option<u32>,
    },
    /// Adaptive moderation must be switched off first.
    AdaptiveOffFirst,
    /// The RSS table of a queue group.
    TableOfGroup {
        /// Name of the queue group.
        group: String,
    },
    /// Another rule matches a flow of the group.
    OtherRuleForFlow,
    /// A flow of a queue group.
    FlowOfGroup {
        /// Name of the queue group.
        group: String,
    },
    /// Flow rules need the feature.
    RulesNeedFeature,
    /// Shares of the RSS table for queue groups.
    SharesOfGroups,
    /// Other flows stay off the queues that get their flows by rules.
    RuleQueuesKeptFree,
    /// No flow is named for a group, so every queue takes part.
    NoFlowsNamed,
    /// No queue group uses the flow any more.
    FlowNotLed {
        /// Number of the transaction.
        transaction: u64,
    },
    /// No queue group needs the object any more.
    NotNeededByGroup {
        /// Number of the transaction.
        transaction: u64,
    },
    /// Restores the table from before the shares.
    TableBeforeShares {
        /// Number of the transaction.
        transaction: u64,
    },
    // The user
    /// Configured in files or on the command line; the last entry takes precedence.
    Configured {
        /// Where it is configured.
        by: Vec<ConfiguredBy>,
        /// A side effect, or the reason why another configured setting implies this one.
        with: Option<SideEffect>,
    },
    /// Belongs to a queue group that is configured there.
    OfConfiguredGroup {
        /// The underlying reason.
        reason: Box<Reason>,
        /// Where it is configured.
        by: ConfiguredBy,
    },
    /// Adopted by the user.
    Adopted,
    /// The load is uneven, and other entries would spread it better. Shares of the time of the busiest CPU.
    UnevenLoad {
        /// As measured.
        before_percent: u32,
        /// As predicted with the step.
        predicted_percent: u32,
    },
    /// A queue shares its CPU with other queues or with programs, and another CPU is less busy. Shares of the time of the busier of both
    /// CPUs.
    InterruptOnBusyCpu {
        /// The CPU that served the queue.
        cpu: u32,
        /// As measured, programs included.
        before_percent: u32,
        /// As predicted with the step.
        predicted_percent: u32,
    },
    /// A CPU that processes the packets of the only receive queue is busy, and others are less busy. Shares of the time of the busiest of
    /// these CPUs.
    MaskWithBusyCpu {
        /// The busy CPU.
        cpu: u32,
        /// As measured, programs included.
        before_percent: u32,
        /// As predicted with the step.
        predicted_percent: u32,
    },
    /// The interrupt of a queue moves because of the load, and the CPUs near it transmit through its queue.
    XpsFollowsInterrupt {
        /// The new CPU of the interrupt.
        cpu: u32,
    },
    /// The groups of queues follow the traffic.
    GroupsFollowTraffic {
        /// Queues of the latency group from now on.
        latency_queues: u32,
        /// Policy of the bulk group from now on.
        policy: String,
    },
    /// The last move because of the load did not help as predicted.
    MoveTakenBack,
    /// The service no longer follows the load of the interface, so it restores the value from before.
    BeforeUnevenLoad {
        /// Number of the transaction with the first move.
        transaction: u64,
    },
    /// It was applied before and lost since.
    AppliedBefore {
        /// Number of that transaction.
        transaction: u64,
    },
    // Transactions
    /// The setting is as planned, but an earlier step of the plan may reset it.
    Reset {
        /// The earlier step that may reset the setting.
        by: ResetBy,
        /// The underlying reason.
        reason: Box<Reason>,
    },
    /// The transaction had to skip the setting while a CPU was offline.
    CpuWasOffline {
        /// Number of the transaction.
        transaction: u64,
    },
    /// `None`: as first seen since boot.
    Undone {
        /// Number of the transaction. `None`: as first seen since boot.
        transaction: Option<u64>,
    },
    /// As recorded by an earlier version of ringwise.
    #[serde(skip)]
    Text(String),
    /// Written by a later version of ringwise.
    #[serde(skip)]
    Other(Value),
}

impl Reason {
    /// Whether the reason is a configured setting.
    pub fn is_configured(&self) -> bool {
        matches!(self, Self::Configured { .. })
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let value = match self {
            Self::Text(text) => {
                Value::Object([("text".to_string(), Value::String(text.clone()))].into_iter().collect())
            }
            Self::Other(value) => value.clone(),
            known => {
                let mut all = Map::new();
                match Self::serialize(known, serde_json::value::Serializer).map_err(serde::ser::Error::custom)? {
                    Value::Object(named) => {
                        for (code, facts) in named {
                            all.extend([("code".to_string(), Value::String(code)), ("facts".to_string(), facts)]);
                        }
                    }
                    code => _ = all.insert("code".to_string(), code),
                }
                all.insert("text".to_string(), Value::String(self.to_string()));
                Value::Object(all)
            }
        };
        value.serialize(s)
    }
}

/// Also reads the plain text of earlier versions, and keeps what a later version wrote.
impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(d)?;
        let all = match value {
            Value::String(text) => return Ok(Self::Text(text)),
            Value::Object(all) => all,
            other => {
                return Err(serde::de::Error::custom(format!("a reason must be a text or an object, not {other}")));
            }
        };
        let named = match (all.get("code"), all.get("facts")) {
            (Some(Value::String(code)), Some(facts)) => {
                Value::Object([(code.clone(), facts.clone())].into_iter().collect())
            }
            (Some(code), _) => code.clone(),
            (None, _) => {
                return Ok(match all.get("text") {
                    Some(Value::String(text)) => Self::Text(text.clone()),
                    _ => Self::Other(Value::Object(all)),
                });
            }
        };
        Ok(Self::deserialize(named).unwrap_or(Self::Other(Value::Object(all))))
    }
}

#[cfg(test)]
mod tests;

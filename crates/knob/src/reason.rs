//! Why a plan has a step, as data: a code with its facts. [`std::fmt::Display`] is the text that people read in a plan;
//! findings of `ringwise check` have a wording of their own (check/wording.rs).

mod text;

pub use text::configured_in;

use std::collections::BTreeMap;

use ringwise_model::{ConfiguredBy, CpuId, CpuSet, Goal, NodeId};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Why a plan has a step. In JSON `code`, `facts` and `text`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", remote = "Self")]
pub enum Reason {
    // Interrupts
    /// The queue does not exist yet.
    NewQueue,
    CpuUnknown,
    IsolatedCpu {
        cpu: CpuId,
    },
    /// The interrupt may be delivered to any of several CPUs. `arrived`: it is on the planned one by chance.
    FreeToMove {
        among: CpuSet,
        arrived: bool,
    },
    /// Its CPU is on another node than the interface.
    FarNode {
        dev: String,
        node: Option<NodeId>,
    },
    /// Nine in ten interrupts of the interface's queues or more.
    MostOnOneCpu {
        dev: String,
        cpu: CpuId,
        queues: u32,
        of: u32,
    },
    QueuesShareCpu {
        dev: String,
        cpu: CpuId,
        queues: u32,
    },
    /// Its core has another queue, and a near core has none.
    QueuesShareCore,
    /// Its CPU has more queues of all interfaces than the planned one.
    CrowdedCpu,
    ExcludedCpu {
        cpu: CpuId,
    },
    /// The goal uses fewer cores for queues.
    CoreNotUsed {
        goal: Goal,
        cpu: CpuId,
    },
    SecondThread {
        goal: Goal,
        cpu: CpuId,
    },
    /// The other hardware thread of its core is excluded from queue interrupts.
    PartOfCore {
        cpu: CpuId,
    },
    SlowerCore {
        cpu: CpuId,
        planned: CpuId,
    },
    DistantNode {
        cpu: CpuId,
        planned: CpuId,
    },
    CpuOfOtherGroup {
        cpu: CpuId,
    },
    /// Queues of several ports with one number have one CPU.
    SameNumberOneCpu,
    CrowdedCache {
        dev: String,
    },
    LessLoaded {
        planned: CpuId,
    },
    // RPS
    /// The interface has one receive queue.
    OneQueue {
        cpu: Option<CpuId>,
        helpers: CpuSet,
    },
    RpsNotForGoal,
    NoHelper,
    QueuesCoverCores {
        queues: u32,
        cores: u32,
    },
    DeviceSpreads {
        queues: u32,
    },
    // RFS
    RfsNoGain,
    RfsManyConnections {
        entries: u32,
    },
    RfsLongFlows {
        entries: u32,
    },
    RfsOff,
    RfsShare {
        entries: u32,
        queues: u32,
    },
    AcceleratedRfs {
        driver: String,
    },
    // XPS
    QueueWithoutCpu {
        queues: u32,
        cpus: u32,
    },
    NoXps {
        queues: u32,
    },
    NearestQueue,
    /// Of some queues it is not known where their interrupts are delivered.
    NearestKnownQueue,
    // NAPI
    ThreadWithInterrupt,
    // irqbalance
    RestartForgetsBan,
    IrqbalanceMoves {
        interval_s: Option<u32>,
        forgets: Option<Forgets>,
    },
    /// Right when it was planned, and irqbalance has not been told yet.
    UntilBanned,
    // The number of queues
    QueuesRequested {
        queues: u32,
        now: u32,
    },
    FewestQueues {
        cores: u32,
    },
    /// The interface is the only member that carries the bond.
    OnlyMember {
        dev: String,
        bond: String,
    },
    OneQueueACpu {
        now: u32,
        cpus: u32,
    },
    OneQueueACore {
        now: u32,
        cores: u32,
    },
    // What a goal configures beside queues and CPUs
    LroBreaksForwarding,
    GroJoins,
    TsoCuts,
    PauseStopsLink,
    DeepSleep {
        usecs: u32,
    },
    /// The moderation of a policy for the whole interface.
    Policy {
        policy: String,
        when: String,
        moved: Vec<Nearest>,
        adaptive_off: bool,
    },
    /// `own_mode`: fixed values that are the driver's own adaptive mode.
    Adaptive {
        own_mode: BTreeMap<String, u32>,
    },
    /// Each queue gets the part of the RSS table that its CPU carries.
    TableByCapacity,
    // Groups of queues
    GroupPolicy {
        policy: String,
        group: String,
        when: String,
    },
    /// The policy of a group, by the settings of NAPI instances.
    GroupPolicyByNapi {
        policy: String,
        group: String,
    },
    /// The policy of one group for the interface. `deferred`: NAPI defers for the groups that can wait.
    GroupPolicyForAll {
        policy: String,
        deferred: bool,
        moved: Vec<Nearest>,
    },
    AdaptiveOffFirst,
    TableOfGroup {
        group: String,
    },
    OtherRuleForFlow,
    FlowOfGroup {
        group: String,
    },
    RulesNeedFeature,
    SharesOfGroups,
    RuleQueuesKeptFree,
    NoFlowsNamed,
    FlowNotLed {
        transaction: u64,
    },
    NotNeededByGroup {
        transaction: u64,
    },
    TableBeforeShares {
        transaction: u64,
    },
    // A person
    /// Configured in a file or on the command line, the last place with precedence.
    Configured {
        by: Vec<ConfiguredBy>,
        with: Option<With>,
    },
    /// Of a group that is configured there.
    OfConfiguredGroup {
        reason: Box<Reason>,
        by: ConfiguredBy,
    },
    Adopted,
    // Transactions
    /// It is as planned, and an earlier step of the plan may reset it.
    Reset {
        by: ResetBy,
        reason: Box<Reason>,
    },
    /// The transaction had to leave it as it was while a CPU was offline.
    CpuWasOffline {
        transaction: u64,
    },
    /// `None`: as first found since boot.
    Undone {
        transaction: Option<u64>,
    },
    /// As an earlier version recorded it.
    #[serde(skip)]
    Text(String),
    /// From a later version.
    #[serde(skip)]
    Other(Value),
}

/// Why a restart of irqbalance forgets a ban.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forgets {
    /// Its unit cannot be extended.
    UnitFixed,
    /// systemd did not start it.
    NotByUnit,
}

/// A value of a policy that the driver is known not to take, and the nearest that it takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nearest {
    /// `rx-usecs`
    pub name: String,
    pub wanted: u32,
    pub takes: u32,
}

/// What a configured setting brings with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum With {
    AdaptiveOff,
    RulesMayGo,
    RulesNeedIt,
}

/// The earlier step that may reset a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetBy {
    Channels,
    Rings,
    /// Moderation of the whole interface.
    Coalesce,
}

impl Reason {
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
            other => return Err(serde::de::Error::custom(format!("a reason is a text or an object, not {other}"))),
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
mod tests {
    use super::*;

    fn back(r: &Reason) -> Reason {
        serde_json::from_value(serde_json::to_value(r).unwrap()).unwrap()
    }

    #[test]
    fn a_code_its_facts_and_a_text() {
        let among: CpuSet = "0-7".parse().unwrap();
        let r = Reason::FreeToMove { among: among.clone(), arrived: true };
        let json = serde_json::json!({
            "code": "free_to_move", "facts": { "among": "0-7", "arrived": true },
            "text": "it may wander over CPUs 0-7; it is held on one",
        });
        assert_eq!(serde_json::to_value(&r).unwrap(), json);
        let json = serde_json::json!({ "code": "rfs_off", "text": "RFS is off for this goal" });
        assert_eq!(serde_json::to_value(&Reason::RfsOff).unwrap(), json);
        let by = ConfiguredBy::File { path: "/etc/a.toml".into(), line: 3 };
        let group = Box::new(Reason::TableOfGroup { group: "web".into() });
        let all = [
            r.clone(),
            Reason::RfsOff,
            Reason::Reset { by: ResetBy::Rings, reason: Box::new(r) },
            Reason::Configured { by: vec![by.clone()], with: Some(With::AdaptiveOff) },
            Reason::OfConfiguredGroup { reason: group, by },
            Reason::Adaptive { own_mode: [("rx-usecs".to_string(), 3)].into() },
            Reason::IrqbalanceMoves { interval_s: None, forgets: Some(Forgets::NotByUnit) },
            Reason::FarNode { dev: "eth1".into(), node: None },
            Reason::OneQueue { cpu: Some(CpuId(0)), helpers: among },
            Reason::Undone { transaction: None },
        ];
        all.iter().for_each(|r| assert_eq!(back(r), *r));
    }

    #[test]
    fn texts_of_earlier_versions_and_codes_of_later_ones_are_kept() {
        let old: Reason = serde_json::from_str("\"its CPU is on node 1, away from eth1\"").unwrap();
        assert_eq!(old, Reason::Text("its CPU is on node 1, away from eth1".into()));
        assert_eq!(back(&old), old);
        for later in [
            serde_json::json!({ "code": "a_later_one", "facts": { "x": 1 }, "text": "because" }),
            serde_json::json!({ "code": "far_node", "facts": { "distance": 21 }, "text": "because" }),
        ] {
            let r: Reason = serde_json::from_value(later.clone()).unwrap();
            assert_eq!((r.to_string().as_str(), serde_json::to_value(&r).unwrap()), ("because", later));
        }
        assert!(serde_json::from_str::<Reason>("3").is_err());
    }

    /// Facts come from files, too: what does not fit together is no panic.
    #[test]
    fn numbers_that_do_not_fit_are_told() {
        let one = |r: Reason| r.to_string();
        assert_eq!(
            one(Reason::OneQueueACpu { now: 8, cpus: 6 }),
            "one queue a CPU: 8 queues for the 6 CPUs of its node; each costs interrupts"
        );
        assert_eq!(
            one(Reason::OneQueueACpu { now: 1, cpus: 6 }),
            "one queue a CPU: 1 queue leaves 5 of the 6 CPUs of its node idle"
        );
        assert_eq!(
            one(Reason::OneQueueACore { now: 0, cores: 0 }),
            "one queue a physical core: 0 queues leave 0 of the 0 cores of its node idle"
        );
        assert_eq!(one(Reason::QueuesRequested { queues: 1, now: 4 }), "1 queue was asked for, there are 4");
    }
}

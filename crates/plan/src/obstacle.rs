//! Why a setting is not possible, why an interface is skipped, and why a goal is not possible, as a code with facts.
//! [`std::fmt::Display`] gives the text for people.

mod text;

use ringwise_knob::Setting;
use ringwise_knob::learned::LearnedWrite;
use ringwise_model::{ConfiguredBy, FlowsUnknown, Immovable, ReasonFields, Rule, Unread, User};
use serde::{Deserialize, Serialize};

/// In JSON `why` (the text) beside `code` and `facts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", remote = "Self")]
pub enum Obstacle {
    // Interfaces that are not planned
    /// The user named other interfaces.
    NotNamed,
    /// A software device: its queues are those of the interfaces below it.
    Software {
        /// `bridge`, `vlan`.
        kind: String,
    },
    /// The loopback interface.
    Loopback,
    /// The interface has no queues of its own.
    NoQueues,
    /// sysfs lists no receive queue of the interface.
    NoQueuesRead,
    /// No kernel driver is bound to the device.
    NoDriver,
    /// The kind of the interface and its interrupts are unknown.
    KindUnknown,
    /// A user-space driver such as vfio-pci holds the device.
    UserspaceDriver {
        /// Name of the driver: `vfio-pci`.
        driver: String,
    },
    /// The interface of this network function is in another network namespace.
    OtherNamespace {
        /// Name of the driver: `igb`.
        driver: String,
    },
    /// The driver of this network function registered no interface.
    NoInterface {
        /// Name of the driver: `mlx5_core`.
        driver: String,
    },
    /// The link is down, and the user did not name the interface.
    LinkDown,
    /// The driver requests interrupts for the queues only when the link is up.
    LinkDownNoInterrupts,
    /// The interface is stacked on others, which can be planned.
    LiesOn {
        /// The underlying obstacle.
        obstacle: Box<Obstacle>,
        /// Names of the lower interfaces.
        below: Vec<String>,
    },
    /// Only the channels of the interface are skipped: a program or a device uses the queues.
    ChannelsInUse {
        /// Who uses them.
        by: Vec<User>,
    },
    /// The user configured a setting for an interface that is skipped.
    LeftAlone {
        /// The underlying obstacle.
        obstacle: Box<Obstacle>,
    },
    // What was read, and what was learned
    /// The value could not be read, so a rollback could not restore it. It stays unchanged.
    NotReadable {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// The value could not be read, and the goal does not need it: it stays unchanged.
    NotReadableStays {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// The kernel has no such setting for this address.
    NotThere,
    /// A write on this kernel was refused or ignored before (`learned.json`).
    Learned {
        /// The result of the write.
        what: LearnedWrite,
    },
    /// Another setting is written instead.
    Instead {
        /// The underlying obstacle.
        obstacle: Box<Obstacle>,
        /// What is written.
        instead: Setting,
    },
    /// The user configured it.
    Configured {
        /// The underlying obstacle.
        obstacle: Box<Obstacle>,
        /// Where it is configured; the last place takes precedence.
        by: Vec<ConfiguredBy>,
    },
    /// Flow rules need the feature `rx-ntuple-filter`, and the driver restarts the device for it, which is not permitted.
    RulesNeedRestart,
    /// Queues exist only after a channel change that was skipped.
    AfterChannelChange {
        /// Whose queues.
        whose: AfterChange,
    },
    // Interrupts
    /// The interrupt cannot be moved.
    Immovable {
        /// In JSON a text, with a code beside it.
        #[serde(flatten)]
        why: Immovable,
    },
    /// `/proc/irq/N/smp_affinity_list` does not exist.
    NoAffinityFile,
    /// It is unknown which interrupts serve the queues.
    InterruptsUnknown,
    /// The CPUs that handle the interrupts of the queues are unknown.
    InterruptCpusUnknown,
    // Channels
    /// The queues are used by a program or a device.
    InUse {
        /// Who uses them.
        by: Vec<User>,
    },
    /// The RSS table would have entries for queues that it does not serve now and that programs hold.
    TableReachesUser {
        /// The users of these queues.
        by: Vec<User>,
    },
    /// The driver has no channel count that can be set.
    NoChannelCount,
    /// Like [`Obstacle::NoChannelCount`], with the number of queues of the interface.
    NoChannelCountHas {
        /// Number of queues of the interface.
        queues: u32,
    },
    /// The channel counts could not be read.
    ChannelCountsUnread {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// The driver has no channels of this kind.
    NoChannels {
        /// `rx`, `tx` or `combined`.
        kind: String,
    },
    /// A flow rule that is not configured steers to a queue that would be removed.
    RuleNeedsQueue {
        /// Interface name.
        dev: String,
        /// Location of the rule in the table of the device.
        location: u32,
        /// The rule.
        rule: Rule,
        /// Number of queues that would be left.
        queues: u32,
        /// Number of further rules with this obstacle.
        more: u32,
    },
    /// All members of a bond share one layout, and one member stays unchanged.
    BondKeepsLayout {
        /// Name of the bond.
        bond: String,
        /// The member that stays unchanged.
        dev: String,
        /// Number of queues of that member.
        queues: u32,
    },
    // Rings, features, pause frames
    /// The driver does not support setting ring sizes.
    NoRingSizes,
    /// The memory of the device's node is unknown, and so is the largest safe ring.
    NoNodeMemory {
        /// What could not be read. `None`: the kernel reports no memory of the node.
        why: Option<Unread>,
    },
    /// The driver does not report this ring, or this parameter of its rings.
    NoRing {
        /// `rx` or `tx`, or the key of the parameter.
        kind: String,
    },
    /// The driver does not support setting pause frames.
    NoPauseFrames,
    /// RDMA may need the pause frames, which stay on.
    PauseFramesForRdma {
        /// Name of the RDMA device.
        device: String,
    },
    /// The device reports no features.
    NoFeatures,
    /// The device does not have the feature.
    NoSuchFeature,
    /// The driver does not allow changing the feature.
    FeatureFixed {
        /// The fixed state of the feature.
        on: bool,
    },
    /// The feature is requested already, but another feature that it depends on is off.
    FeatureDepends,
    // Moderation, NAPI
    /// The goal sets moderation, but the driver has none that can be set.
    NoModerationSet,
    /// The user configured moderation, but the driver has none.
    NoModeration,
    /// The driver has no adaptive moderation.
    NoAdaptive,
    /// The driver moderates only the whole interface, not single queues.
    ModeratesAsWhole,
    /// One interrupt serves receive and transmit, and `rx-usecs` is its interval.
    OneInterval,
    /// The user configured a parameter that the driver does not have.
    NotAmongParameters {
        /// Parameters that the driver has.
        has: Vec<String>,
    },
    /// The driver does not have the parameter that a policy sets.
    NoParameter {
        /// Name of the policy.
        policy: String,
    },
    /// The driver does not have the parameter for single queues.
    NoParameterOfQueue {
        /// Name of the policy.
        policy: String,
    },
    /// It could not be read whether the driver moderates single queues.
    QueueModerationUnread {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// Single queues cannot be moderated, and the moderation of the interface is configured in addition to the groups.
    ModerationConfigured,
    /// Neither driver nor kernel moderates single queues: the policy of one group applies to all.
    OnePolicyForAll {
        /// Name of the policy.
        policy: String,
    },
    /// The driver does not moderate, and the kernel does not defer interrupts.
    NoModerationNoDeferral,
    /// The kernel has no NAPI settings.
    NoNapi,
    /// The kernel does not have these NAPI settings for the interface.
    NoNapiOfDevice {
        /// Names of the settings.
        missing: Vec<String>,
    },
    /// The kernel does not have these settings for single NAPI instances.
    NoNapiOfInstance {
        /// Names of the settings.
        missing: Vec<String>,
    },
    /// Kernel or driver has no settings for single NAPI instances (Linux 6.13).
    NoNapiInstances,
    /// The kernel has no `pm_qos_resume_latency_us`.
    NoResumeLatency,
    // RSS, flow rules
    /// The device has no RSS.
    NoRss,
    /// The device has RSS, but no table.
    NoRssTable,
    /// The hash function of the device cannot be set.
    NoHashFunction,
    /// The hash key of the device cannot be set.
    NoHashKey,
    /// The kernel has no input transforms (Linux 6.8).
    NoSymmetric,
    /// The hashed fields could not be read.
    HashFieldsUnread,
    /// The driver has no RSS contexts.
    NoContexts,
    /// The driver has no RSS contexts: each rule of the group steers to one queue.
    NoContextForGroup,
    /// The driver does not support flow rules.
    NoFlowRules,
    /// The driver does not support flow rules, so no flow can be steered to a group.
    NoFlowRulesForGroup,
    /// It could not be read whether the driver supports flow rules.
    FlowRulesUnread {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// All rule locations of the device are in use.
    FlowRulesFull,
    /// The device has no RSS table: the driver distributes other flows.
    NoTableForGroups,
    /// The RSS table could not be read: other flows may reach every queue.
    TableUnread {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// The flows of a program or unit are unknown.
    FlowsNotFound {
        /// In JSON a text, with a code and its facts beside it.
        #[serde(flatten)]
        why: FlowsUnknown,
    },
    // RPS, XPS, the host
    /// The kernel is built without RPS.
    NoRps,
    /// The interface has one transmit queue, and therefore no XPS.
    OneTransmitQueue,
    /// The number of queues of one direction is unknown.
    QueueCountUnknown {
        /// `rx`, `tx` or `transmit`.
        direction: String,
    },
    /// sysfs has no `xps_cpus` for the interface.
    NoXpsFile,
    /// The traffic classes of the transmit queues could not be read.
    ClassesUnread {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// The traffic classes need more transmit queues than the plan leaves.
    ClassesNeedQueues {
        /// Transmit queues that the classes need.
        need: u32,
        /// Transmit queues after the plan.
        queues: u32,
    },
    /// The CPUs that handle the interrupts of the queues of one traffic class are unknown.
    ClassInterruptCpusUnknown {
        /// Number of the class.
        class: u32,
    },
    /// The kernel does not have this sysctl.
    NoSysctl,
    /// The kernel does not have this file.
    NoFile,
    // The layout of the article
    /// `--pair-as-article` needs `--far-node ok --smt all`.
    PairNeedsPlaces,
    /// `--pair-as-article` needs the node of the interface.
    PairNodeUnknown {
        /// Interface name.
        dev: String,
    },
    /// `--pair-as-article` needs interrupts that can be moved.
    PairImmovable {
        /// Interface name.
        dev: String,
    },
    /// `--pair-as-article` needs two nodes with usable CPUs.
    PairNeedsNodes,
    /// `--pair-as-article` needs at least one queue for latency and one for the rest.
    PairLatencyQueues {
        /// Interface name.
        dev: String,
        /// Queues for latency that were requested.
        latency: u32,
        /// Number of queues of the interface.
        queues: u32,
    },
    /// `--pair-as-article` needs a CPU for each queue.
    PairNeedsCpus {
        /// Interface name.
        dev: String,
        /// Number of queues for one node.
        half: u32,
        /// Number of queues of the interface.
        queues: u32,
        /// Usable CPUs of that node.
        cpus: u32,
    },
    /// Written by another version of ringwise; kept as it was read.
    #[serde(skip)]
    Other(ReasonFields),
}

/// The queues that exist only after a channel change that was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterChange {
    /// The queues of the table.
    Table,
    /// The named queues.
    Named,
}

ringwise_model::serde_as_coded!(Obstacle);

impl Obstacle {
    pub(crate) fn not_readable(u: &Unread) -> Self {
        Self::NotReadable { unread: u.clone() }
    }

    /// Whether a value that could not be read is the reason.
    pub fn is_unread(&self) -> bool {
        match self {
            Self::NotReadable { .. }
            | Self::NotReadableStays { .. }
            | Self::ChannelCountsUnread { .. }
            | Self::QueueModerationUnread { .. }
            | Self::FlowRulesUnread { .. }
            | Self::TableUnread { .. }
            | Self::HashFieldsUnread
            | Self::QueueCountUnknown { .. }
            | Self::InterruptsUnknown
            | Self::InterruptCpusUnknown
            | Self::NoQueuesRead
            | Self::KindUnknown => true,
            Self::LiesOn { obstacle, .. }
            | Self::LeftAlone { obstacle }
            | Self::Instead { obstacle, .. }
            | Self::Configured { obstacle, .. } => obstacle.is_unread(),
            _ => false,
        }
    }

    pub(crate) fn configured(self, by: &[ConfiguredBy]) -> Self {
        Self::Configured { obstacle: Box::new(self), by: by.to_vec() }
    }

    pub(crate) fn instead(self, instead: &Setting) -> Self {
        Self::Instead { obstacle: Box::new(self), instead: instead.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Refusal, SkippedInterface};

    #[test]
    fn a_code_its_facts_and_a_text() {
        let down = SkippedInterface { dev: "eth1".into(), why: Obstacle::LinkDown };
        let json = json!({ "dev": "eth1", "why": "link down", "code": "link_down" });
        assert_eq!(serde_json::to_value(&down).unwrap(), json);
        assert_eq!(serde_json::from_value::<SkippedInterface>(json).unwrap(), down);
        let by = vec![ConfiguredBy::File { path: "/etc/a.toml".into(), line: 3 }];
        let why = Obstacle::ChannelsInUse { by: vec![User::Ovs, User::AfXdp { queue: 2 }] };
        let of = |why: Obstacle| SkippedInterface { dev: "eth1".into(), why };
        let unread = Unread::new("channels-get eth1", Some(1), "not permitted");
        for l in [
            of(why.clone()),
            of(Obstacle::not_readable(&unread)),
            of(Obstacle::OneInterval.configured(&by)),
            of(why.instead(&Setting::RfsEntries { entries: 8 })),
        ] {
            let json = serde_json::to_value(&l).unwrap();
            assert!(json["code"].is_string() && json["why"] == l.why.to_string(), "{json}");
            assert_eq!(serde_json::from_value::<SkippedInterface>(json).unwrap(), l);
        }
        let refusal =
            Refusal::NotTunable { dev: "br0".into(), why: Box::new(Obstacle::Software { kind: "bridge".into() }) };
        let json = serde_json::to_value(&refusal).unwrap();
        assert_eq!((&json["kind"], &json["facts"]["kind"]), (&json!("not_tunable"), &json!("bridge")));
        assert_eq!(serde_json::from_value::<Refusal>(json).unwrap(), refusal);
    }

    #[test]
    fn texts_of_earlier_versions_and_codes_of_later_ones_are_kept() {
        let old = json!({ "dev": "eth1", "why": "the moon is full" });
        let l: SkippedInterface = serde_json::from_value(old.clone()).unwrap();
        let kept = ReasonFields { why: "the moon is full".into(), code: None, facts: None };
        assert_eq!((&l.why, serde_json::to_value(&l).unwrap()), (&Obstacle::Other(kept), old));
        for later in [
            json!({ "dev": "eth1", "why": "because", "code": "a_later_one", "facts": { "x": 1 } }),
            json!({ "dev": "eth1", "why": "because", "code": "software", "facts": { "sort": "bridge" } }),
            json!({ "dev": "eth1", "why": "because", "code": "a_later_one" }),
        ] {
            let l: SkippedInterface = serde_json::from_value(later.clone()).unwrap();
            assert_eq!((l.why.to_string().as_str(), serde_json::to_value(&l).unwrap()), ("because", later));
        }
    }

    #[test]
    fn reasons_inside_of_facts_are_values_too() {
        let of = |why: Obstacle| SkippedInterface { dev: "eth1".into(), why };
        let managed = of(Obstacle::Immovable { why: Immovable::Managed });
        let json = serde_json::to_value(&managed).unwrap();
        assert_eq!((&json["code"], &json["facts"]["code"]), (&json!("immovable"), &json!("managed")));
        assert_eq!(json["why"], json["facts"]["why"]);
        assert_eq!(serde_json::from_value::<SkippedInterface>(json).unwrap(), managed);
        let flows = of(Obstacle::FlowsNotFound { why: FlowsUnknown::NoPort { process: 7 } });
        let json = serde_json::to_value(&flows).unwrap();
        assert_eq!(json["facts"]["facts"], json!({ "process": 7 }));
        assert_eq!(serde_json::from_value::<SkippedInterface>(json).unwrap(), flows);
        for code in ["immovable", "flows_not_found"] {
            let old = json!({ "dev": "eth1", "why": "glued", "code": code, "facts": { "why": "glued" } });
            let l: SkippedInterface = serde_json::from_value(old.clone()).unwrap();
            assert!(matches!(l.why, Obstacle::Immovable { .. } | Obstacle::FlowsNotFound { .. }), "{:?}", l.why);
            assert_eq!(serde_json::to_value(&l).unwrap(), old);
        }
    }
}

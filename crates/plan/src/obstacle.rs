//! Why something cannot be set here, why an interface is left alone, and why a goal is not possible, as data: a code
//! with its facts. [`std::fmt::Display`] is the text that people read.

mod text;

use ringwise_knob::Setting;
use ringwise_knob::learned::What;
use ringwise_model::{Coded, ConfiguredBy, FlowsUnknown, Immovable, Rule, Unread, User};
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
    /// No driver of the kernel is bound to the device.
    NoDriver,
    /// Neither the kind of the interface nor its interrupts are known.
    KindUnknown,
    /// A user-space driver such as vfio-pci holds the device.
    UserspaceDriver {
        /// Its name: `vfio-pci`.
        driver: String,
    },
    /// The link is down, and the user did not name the interface.
    LinkDown,
    /// The driver requests interrupts for the queues only when the link is up.
    LinkDownNoInterrupts,
    /// The interface lies on others, which can be planned.
    LiesOn {
        /// What it is about.
        obstacle: Box<Obstacle>,
        /// Names of the interfaces below.
        below: Vec<String>,
    },
    /// Only the channels of the interface are left alone: a program or a device uses the queues.
    ChannelsInUse {
        /// Who uses them.
        by: Vec<User>,
    },
    /// What the user configured is for an interface that is left alone.
    LeftAlone {
        /// What it is about.
        obstacle: Box<Obstacle>,
    },
    // What was read, and what was learned
    /// The value could not be read, so it could not be put back.
    NotReadable {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// The value could not be read, and the goal does not need it: it stays as it is.
    NotReadableStays {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// The kernel has no such setting for this address.
    NotThere,
    /// A write on this kernel was refused or ignored before (`learned.json`).
    Learned {
        /// What came of the write.
        what: What,
    },
    /// Something else is written in its place.
    Instead {
        /// What it is about.
        obstacle: Box<Obstacle>,
        /// What is written.
        instead: Setting,
    },
    /// The user configured it.
    Configured {
        /// What it is about.
        obstacle: Box<Obstacle>,
        /// Where, the last place with precedence.
        by: Vec<ConfiguredBy>,
    },
    /// Queues exist only after a channel change that was left out.
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
    /// Which interrupts serve the queues is not known.
    InterruptsUnknown,
    /// The CPUs that the interrupts of the queues go to are not known.
    InterruptCpusUnknown,
    // Channels
    /// The queues are used by a program or a device.
    InUse {
        /// Who uses them.
        by: Vec<User>,
    },
    /// The driver has no channel count that can be set.
    NoChannelCount,
    /// The same, with the number of queues that the interface has.
    NoChannelCountHas {
        /// How many the interface has.
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
    /// A flow rule that nobody configured leads to a queue that would be removed.
    RuleNeedsQueue {
        /// Interface name.
        dev: String,
        /// Place of the rule in the table of the device.
        location: u32,
        /// The rule.
        rule: Rule,
        /// How many would be left.
        queues: u32,
        /// Further rules like it.
        more: u32,
    },
    /// All members of a bond keep one layout, and one of them stays as it is.
    BondKeepsLayout {
        /// Name of the bond.
        bond: String,
        /// The member that stays as it is.
        dev: String,
        /// How many that member has.
        queues: u32,
    },
    // Rings, features, pause frames
    /// The driver has no ring sizes.
    NoRingSizes,
    /// The driver does not report this ring, or this parameter of its rings.
    NoRing {
        /// `rx` or `tx`, or the key of the parameter.
        kind: String,
    },
    /// The driver has no pause frames to set.
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
    /// The driver does not let the feature change.
    FeatureFixed {
        /// As it stays.
        on: bool,
    },
    /// The feature is requested already, and is off because another one is.
    FeatureDepends,
    // Moderation, NAPI
    /// The goal sets moderation, and the driver has none that can be set.
    NoModerationSet,
    /// The user configured moderation, and the driver has none.
    NoModeration,
    /// The driver has no adaptive moderation.
    NoAdaptive,
    /// The driver moderates the interface, not single queues.
    ModeratesAsWhole,
    /// One interrupt serves receive and transmit, and `rx-usecs` is its interval.
    OneInterval,
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
    /// Whether the driver moderates single queues could not be read.
    QueueModerationUnread {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// No single queue can be moderated, and the moderation of the interface is configured beside the groups.
    ModerationConfigured,
    /// Neither driver nor kernel moderates single queues: the policy of one group holds for all.
    OnePolicyForAll {
        /// Name of the policy.
        policy: String,
    },
    /// Neither the driver moderates nor the kernel defers.
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
    /// Kernel or driver has no settings of single NAPI instances (Linux 6.13).
    NoNapiInstances,
    /// The kernel has no `pm_qos_resume_latency_us`.
    NoResumeLatency,
    // RSS, flow rules
    /// The device has no RSS.
    NoRss,
    /// The device has RSS and no table.
    NoRssTable,
    /// The device has no hash function to set.
    NoHashFunction,
    /// The device has no hash key to set.
    NoHashKey,
    /// The kernel has no input transforms (Linux 6.8).
    NoSymmetric,
    /// Which fields are hashed could not be read.
    HashFieldsUnread,
    /// The driver has no RSS contexts.
    NoContexts,
    /// The driver has no RSS contexts: each rule of the group leads to one queue.
    NoContextForGroup,
    /// The driver takes no flow rules.
    NoFlowRules,
    /// The driver takes no flow rules, so no flow reaches a group on purpose.
    NoFlowRulesForGroup,
    /// Whether the driver takes flow rules could not be read.
    FlowRulesUnread {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// All places of the device hold rules.
    FlowRulesFull,
    /// The device has no RSS table: the driver decides where other flows go.
    NoTableForGroups,
    /// The RSS table could not be read: other flows may reach every queue.
    TableUnread {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// The flows of a program or unit are not known.
    FlowsNotFound {
        /// In JSON a text, with a code and its facts beside it.
        #[serde(flatten)]
        why: FlowsUnknown,
    },
    // RPS, XPS, the host
    /// The kernel is built without RPS.
    NoRps,
    /// The interface has one transmit queue, and so no XPS.
    OneTransmitQueue,
    /// The number of queues of one direction is unknown.
    QueueCountUnknown {
        /// `rx`, `tx` or `transmit`.
        direction: String,
    },
    /// sysfs has no `xps_cpus` for the interface.
    NoXpsFile,
    /// The kernel has no such sysctl.
    NoSysctl,
    /// The kernel has no such file.
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
        /// How many the interface has.
        queues: u32,
    },
    /// `--pair-as-article` needs a CPU for each queue.
    PairNeedsCpus {
        /// Interface name.
        dev: String,
        /// Queues that would go to one node.
        half: u32,
        /// How many the interface has.
        queues: u32,
        /// Usable CPUs of that node.
        cpus: u32,
    },
    /// Written by another version of ringwise: kept as it was read.
    #[serde(skip)]
    Other(Coded),
}

/// Whose queues exist only after a channel change that was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterChange {
    /// Those of the table.
    Table,
    /// The ones that are named.
    Named,
}

ringwise_model::serde_as_coded!(Obstacle);

impl Obstacle {
    pub(crate) fn not_readable(u: &Unread) -> Self {
        Self::NotReadable { unread: u.clone() }
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
    use crate::{LeftAlone, Refusal};

    #[test]
    fn a_code_its_facts_and_a_text() {
        let down = LeftAlone { dev: "eth1".into(), why: Obstacle::LinkDown };
        let json = json!({ "dev": "eth1", "why": "link down", "code": "link_down" });
        assert_eq!(serde_json::to_value(&down).unwrap(), json);
        assert_eq!(serde_json::from_value::<LeftAlone>(json).unwrap(), down);
        let by = vec![ConfiguredBy::File { path: "/etc/a.toml".into(), line: 3 }];
        let why = Obstacle::ChannelsInUse { by: vec![User::Ovs, User::AfXdp { queue: 2 }] };
        let of = |why: Obstacle| LeftAlone { dev: "eth1".into(), why };
        let unread = Unread::new("channels-get eth1", Some(1), "not permitted");
        for l in [
            of(why.clone()),
            of(Obstacle::not_readable(&unread)),
            of(Obstacle::OneInterval.configured(&by)),
            of(why.instead(&Setting::RfsEntries { entries: 8 })),
        ] {
            let json = serde_json::to_value(&l).unwrap();
            assert!(json["code"].is_string() && json["why"] == l.why.to_string(), "{json}");
            assert_eq!(serde_json::from_value::<LeftAlone>(json).unwrap(), l);
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
        let l: LeftAlone = serde_json::from_value(old.clone()).unwrap();
        let kept = Coded { why: "the moon is full".into(), code: None, facts: None };
        assert_eq!((&l.why, serde_json::to_value(&l).unwrap()), (&Obstacle::Other(kept), old));
        for later in [
            json!({ "dev": "eth1", "why": "because", "code": "a_later_one", "facts": { "x": 1 } }),
            json!({ "dev": "eth1", "why": "because", "code": "software", "facts": { "sort": "bridge" } }),
            json!({ "dev": "eth1", "why": "because", "code": "a_later_one" }),
        ] {
            let l: LeftAlone = serde_json::from_value(later.clone()).unwrap();
            assert_eq!((l.why.to_string().as_str(), serde_json::to_value(&l).unwrap()), ("because", later));
        }
    }

    #[test]
    fn reasons_inside_of_facts_are_values_too() {
        let of = |why: Obstacle| LeftAlone { dev: "eth1".into(), why };
        let managed = of(Obstacle::Immovable { why: Immovable::Managed });
        let json = serde_json::to_value(&managed).unwrap();
        assert_eq!((&json["code"], &json["facts"]["code"]), (&json!("immovable"), &json!("managed")));
        assert_eq!(json["why"], json["facts"]["why"]);
        assert_eq!(serde_json::from_value::<LeftAlone>(json).unwrap(), managed);
        let flows = of(Obstacle::FlowsNotFound { why: FlowsUnknown::NoPort { process: 7 } });
        let json = serde_json::to_value(&flows).unwrap();
        assert_eq!(json["facts"]["facts"], json!({ "process": 7 }));
        assert_eq!(serde_json::from_value::<LeftAlone>(json).unwrap(), flows);
        for code in ["immovable", "flows_not_found"] {
            let old = json!({ "dev": "eth1", "why": "glued", "code": code, "facts": { "why": "glued" } });
            let l: LeftAlone = serde_json::from_value(old.clone()).unwrap();
            assert!(matches!(l.why, Obstacle::Immovable { .. } | Obstacle::FlowsNotFound { .. }), "{:?}", l.why);
            assert_eq!(serde_json::to_value(&l).unwrap(), old);
        }
    }
}

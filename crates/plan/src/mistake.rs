//! Why something that the user configured cannot be, as data: a code with its facts. The text of each has two parts:
//! what was found, and what is expected instead.

mod text;

use ringwise_knob::Setting;
use ringwise_knob::rss::TableError;
use ringwise_model::{Coded, ConfiguredBy, CpuSet, Dir};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::Obstacle;

/// In JSON `found` and `right` (the texts) beside `code` and `facts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", remote = "Self")]
pub enum Mistake {
    /// It cannot be set here, and the user wants an error then (`--strict`).
    Strict {
        /// Why it cannot be set.
        obstacle: Box<Obstacle>,
    },
    // Interfaces and CPUs
    /// There is no interface of this name.
    NoInterface {
        /// Those that can be planned.
        have: Vec<String>,
    },
    /// The setting belongs to an interface, and none is named.
    NoInterfaceNamed,
    /// CPUs that are not online are named.
    OfflineCpus {
        /// Those that are not online.
        offline: CpuSet,
        /// All that are named. `None`: the text names those that are offline only.
        of: Option<CpuSet>,
        /// All CPUs of the host that are online.
        online: CpuSet,
    },
    /// A list of CPUs for interrupts is empty.
    NoCpus,
    /// The list of CPUs for a group is empty.
    NoCpusOfGroup {
        /// All CPUs of the host that are online.
        online: CpuSet,
    },
    // Queues
    /// Queues are named that the interface does not have.
    NoSuchQueue {
        /// Which queues.
        direction: Dir,
        /// How many the interface has.
        queues: u32,
    },
    /// Another queue shares the interrupt, and is configured for other CPUs.
    SharedInterrupt {
        /// The queues that were configured before.
        queues: Vec<u32>,
        /// Where their interrupt is to go.
        setting: Setting,
        /// Where that was configured.
        by: Vec<ConfiguredBy>,
    },
    /// More channels than the driver has.
    TooManyChannels {
        /// Most that the driver has.
        most: u32,
    },
    /// No queue of a direction would be left.
    NoQueueLeft {
        /// How many receive queues. `None`: their number is unknown.
        receive: Option<u32>,
        /// How many transmit queues. `None`: their number is unknown.
        transmit: Option<u32>,
    },
    // Rings, features, moderation, NAPI
    /// The driver does not have rings of this size.
    RingSize {
        /// Descriptors now.
        now: u32,
        /// Most descriptors. `None`: the driver reports no maximum.
        most: Option<u32>,
    },
    /// The driver does not have this value of a ring parameter that is no number of descriptors.
    RingNumber {
        /// The value now.
        now: u32,
        /// The smallest value.
        least: u32,
        /// The largest value. `None`: the driver reports no maximum.
        most: Option<u32>,
    },
    /// The device has no feature of this name.
    NoSuchFeature {
        /// Names that are like it, or that can be changed.
        like: Vec<String>,
    },
    /// The driver does not let the feature change.
    FeatureFixed {
        /// As it stays.
        on: bool,
        /// Interface name.
        dev: String,
    },
    /// The driver does not have the parameter.
    NoParameter {
        /// Those that it has.
        has: Vec<String>,
    },
    /// The parameter is 0 or 1.
    Switch,
    /// The parameter is 0, 1 or 2.
    ThreadSwitch,
    /// The parameter is one of the device, and single queues are named.
    OfDeviceOnly,
    /// Adaptive moderation, which is configured too, overwrites the value.
    AdaptiveOverwrites {
        /// Name of the switch: `use-adaptive-rx`.
        switch: String,
    },
    /// The driver refuses the interval: one interrupt serves receive and transmit.
    OneInterval {
        /// Its name.
        driver: String,
    },
    /// The driver refuses the value.
    DriverRefuses {
        /// Its name.
        driver: String,
        /// Values that it takes, as documented.
        takes: String,
        /// The nearest of them.
        nearest: u32,
    },
    // RSS and flow rules
    /// The device hashes no such flow type.
    NoFlowType {
        /// Those that it hashes.
        have: Vec<String>,
    },
    /// A letter stands for no field.
    NoField {
        /// As configured.
        letter: char,
    },
    /// The table cannot be made.
    Table {
        /// Why.
        error: TableError,
        /// Entries of the device's table.
        entries: usize,
        /// Receive queues of the interface.
        queues: u32,
    },
    /// The hash key is not in hex.
    KeyNotHex {
        /// Bytes of the device's key.
        bytes: usize,
    },
    /// The hash key has another length.
    KeyLength {
        /// Bytes that were configured.
        has: usize,
        /// Bytes of the device's key.
        bytes: usize,
    },
    /// The kernel has no such transform.
    NoTransform {
        /// Those that there are.
        have: Vec<String>,
    },
    /// The rule leads to an RSS context that does not exist.
    NoContext {
        /// As configured.
        context: u32,
    },
    /// The driver chooses the places of rules, and one is configured.
    DriverChoosesPlaces,
    /// The device has no such place for a rule.
    NoSuchPlace {
        /// Places of the device.
        places: u32,
    },
    /// No place is left for the rule.
    PlacesFull {
        /// Places of the device.
        places: u32,
    },
    /// The feature is off, and flow rules need it.
    RulesNeedFeature {
        /// Where the rules were configured.
        by: Vec<ConfiguredBy>,
    },
    /// A flow table has more entries than the kernel allows.
    TooManyEntries {
        /// Most that it allows.
        most: u32,
    },
    // The host
    /// ringwise does not set this sysctl.
    NoSysctl {
        /// Those that it sets here.
        have: Vec<String>,
    },
    /// No resume latency.
    NotALatency,
    // Groups
    /// The layout of the article makes the groups itself.
    BesideArticle,
    /// Two groups have one name.
    SameName,
    /// The number of latency queues is configured twice, differently.
    OtherNumber {
        /// The other number.
        number: u32,
    },
    /// There is no policy of this name.
    NoPolicy {
        /// Those that there are.
        have: Vec<String>,
    },
    /// Another group has the queue.
    InOtherGroup {
        /// Its name.
        group: String,
    },
    /// Queues of one interrupt are in several groups.
    InterruptOfSeveralGroups {
        /// The queues of the interrupt.
        queues: Vec<u32>,
    },
    /// The group cannot have so many queues.
    GroupSize {
        /// Queues of the interface.
        queues: u32,
        /// Most that the group can have.
        room: u32,
    },
    /// Written by another version of ringwise: kept as it was read.
    #[serde(skip)]
    Other(MistakeParts),
}

/// The members of a mistake in documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MistakeParts {
    /// What was configured or what the host has instead, as a text for people.
    pub found: String,
    /// What is expected, or what to do.
    pub right: String,
    /// `None`: written by a version that knew texts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `None`: the code has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Value>,
}

impl Serialize for Mistake {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if let Self::Other(kept) = self {
            return kept.serialize(s);
        }
        let named = Self::serialize(self, serde_json::value::Serializer).map_err(serde::ser::Error::custom)?;
        let Coded { code, facts, .. } = Coded::new(String::new(), named);
        MistakeParts { found: self.found(), right: self.right(), code, facts }.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Mistake {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let parts = MistakeParts::deserialize(d)?;
        let coded = Coded { why: String::new(), code: parts.code.clone(), facts: parts.facts.clone() };
        let known = coded.named().and_then(|named| Self::deserialize(named).ok());
        Ok(known.unwrap_or(Self::Other(parts)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::WrongWish;

    fn of(mistake: Mistake) -> WrongWish {
        WrongWish { said: "--set".into(), what: "eth1 rings rx 9".into(), mistake }
    }

    #[test]
    fn a_code_its_facts_and_both_texts() {
        let wrong = of(Mistake::RingSize { now: 512, most: Some(4096) });
        let json = json!({
            "said": "--set", "what": "eth1 rings rx 9", "found": "the driver has 512 now and at most 4096",
            "right": "1 to 4096 descriptors", "code": "ring_size", "facts": { "now": 512, "most": 4096 },
        });
        assert_eq!(serde_json::to_value(&wrong).unwrap(), json);
        assert_eq!(serde_json::from_value::<WrongWish>(json).unwrap(), wrong);
        for mistake in [
            Mistake::Switch,
            Mistake::RingNumber { now: 64, least: 0, most: None },
            Mistake::Strict { obstacle: Box::new(Obstacle::NoRing { kind: "rx".into() }) },
            Mistake::Table { error: TableError::TooHeavy { sum: 9, size: 8 }, entries: 8, queues: 2 },
            Mistake::NoField { letter: 'x' },
        ] {
            let json = serde_json::to_value(of(mistake.clone())).unwrap();
            assert!(json["code"].is_string(), "{json}");
            assert_eq!(serde_json::from_value::<WrongWish>(json).unwrap(), of(mistake));
        }
    }

    #[test]
    fn what_other_versions_wrote_is_kept() {
        let old = json!({ "said": "--set", "what": "eth1 x", "found": "a", "right": "b" });
        let later =
            json!({ "said": "--set", "what": "eth1 x", "found": "a", "right": "b", "code": "c", "facts": { "x": 1 } });
        for other in [old, later] {
            let w: WrongWish = serde_json::from_value(other.clone()).unwrap();
            assert_eq!((w.mistake.found().as_str(), w.mistake.right().as_str()), ("a", "b"));
            assert_eq!(serde_json::to_value(&w).unwrap(), other);
        }
    }
}

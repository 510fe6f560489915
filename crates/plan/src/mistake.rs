//! Why a configured setting is invalid, as a code with facts. The text of each mistake has two parts: what was found, and
//! what is expected.

mod text;

use ringwise_knob::Setting;
use ringwise_knob::rss::TableError;
use ringwise_model::{ConfiguredBy, CpuSet, Dir, ReasonFields};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::Obstacle;

/// In JSON `found` and `right` (the texts) beside `code` and `facts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", remote = "Self")]
pub enum Mistake {
    /// The setting is not possible here, and the user requested an error in this case (`--strict`).
    Strict {
        /// Why it cannot be set.
        obstacle: Box<Obstacle>,
    },
    // Interfaces and CPUs
    /// There is no interface of this name.
    NoInterface {
        /// Interfaces that can be planned.
        have: Vec<String>,
    },
    /// The setting belongs to an interface, and none is named.
    NoInterfaceNamed,
    /// The configuration names CPUs that are offline.
    OfflineCpus {
        /// The offline CPUs.
        offline: CpuSet,
        /// All CPUs that the configuration names. `None`: the text names only the offline ones.
        of: Option<CpuSet>,
        /// All online CPUs of the host.
        online: CpuSet,
    },
    /// A list of CPUs for interrupts is empty.
    NoCpus,
    /// The list of CPUs for a group is empty.
    NoCpusOfGroup {
        /// All online CPUs of the host.
        online: CpuSet,
    },
    // Queues
    /// The configuration names queues that the interface does not have.
    NoSuchQueue {
        /// Direction of the queues.
        direction: Dir,
        /// How many the interface has.
        queues: u32,
    },
    /// Another queue shares the interrupt, and is configured for other CPUs.
    SharedInterrupt {
        /// The queues that were configured earlier.
        queues: Vec<u32>,
        /// The affinity that was configured for their interrupt.
        setting: Setting,
        /// Where that was configured.
        by: Vec<ConfiguredBy>,
    },
    /// More channels than the driver has.
    TooManyChannels {
        /// The driver's maximum.
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
    /// The driver does not support rings of this size.
    RingSize {
        /// Descriptors now.
        now: u32,
        /// Most descriptors. `None`: the driver reports no maximum.
        most: Option<u32>,
    },
    /// The driver does not support this value of a ring parameter that is not a number of descriptors.
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
        /// Similar names, or names of features that can be changed.
        like: Vec<String>,
    },
    /// The parameter is 0 or 1.
    Switch,
    /// The parameter is 0, 1 or 2.
    ThreadSwitch,
    /// The parameter exists only for the device, and the configuration names single queues.
    OfDeviceOnly,
    /// Adaptive moderation is also configured and overwrites the value.
    AdaptiveOverwrites {
        /// Name of the switch: `use-adaptive-rx`.
        switch: String,
    },
    /// The driver refuses the interval: one interrupt serves receive and transmit.
    OneInterval {
        /// Name of the driver.
        driver: String,
    },
    /// The driver refuses the value.
    DriverRefuses {
        /// Name of the driver.
        driver: String,
        /// Values that the driver accepts, as documented.
        takes: String,
        /// The nearest accepted value.
        nearest: u32,
    },
    // RSS and flow rules
    /// The device does not hash this flow type.
    NoFlowType {
        /// Flow types that the device hashes.
        have: Vec<String>,
    },
    /// The letter is not a hash field.
    NoField {
        /// As configured.
        letter: char,
    },
    /// The table is not possible.
    Table {
        /// The reason.
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
        /// Length of the configured key in bytes.
        has: usize,
        /// Bytes of the device's key.
        bytes: usize,
    },
    /// The kernel does not support this transform.
    NoTransform {
        /// Supported transforms.
        have: Vec<String>,
    },
    /// The rule steers to an RSS context that does not exist.
    NoContext {
        /// As configured.
        context: u32,
    },
    /// The driver chooses the locations of rules, but a location is configured.
    DriverChoosesPlaces,
    /// The device does not have this rule location.
    NoSuchPlace {
        /// Number of locations of the device.
        places: u32,
    },
    /// The rule table is full.
    PlacesFull {
        /// Number of locations of the device.
        places: u32,
    },
    /// The feature is off, and flow rules need it.
    RulesNeedFeature {
        /// Where the rules were configured.
        by: Vec<ConfiguredBy>,
    },
    /// A flow table has more entries than the kernel allows.
    TooManyEntries {
        /// The kernel's maximum.
        most: u32,
    },
    // The host
    /// ringwise does not set this sysctl.
    NoSysctl {
        /// sysctls that ringwise sets here.
        have: Vec<String>,
    },
    /// The value is not a valid resume latency.
    NotALatency,
    // Groups
    /// The layout of the article creates all groups itself.
    BesideArticle,
    /// Two groups have the same name.
    SameName,
    /// The number of latency queues is configured twice with different values.
    OtherNumber {
        /// The other number.
        number: u32,
    },
    /// There is no policy of this name.
    NoPolicy {
        /// Available policies.
        have: Vec<String>,
    },
    /// The queue belongs to another group.
    InOtherGroup {
        /// Name of that group.
        group: String,
    },
    /// Queues that share an interrupt belong to several groups.
    InterruptOfSeveralGroups {
        /// The queues of the interrupt.
        queues: Vec<u32>,
    },
    /// The group cannot have this number of queues.
    GroupSize {
        /// Queues of the interface.
        queues: u32,
        /// Maximum for the group.
        room: u32,
    },
    /// Written by another version of ringwise; kept as it was read.
    #[serde(skip)]
    Other(MistakeParts),
}

/// The members of a mistake in documents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MistakeParts {
    /// What was configured, or the host's actual state, as a text for people.
    pub found: String,
    /// What is expected, or what to do.
    pub right: String,
    /// `None`: written by a version of ringwise that recorded only texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `None`: the code has no facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Value>,
}

impl Serialize for Mistake {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if let Self::Other(kept) = self {
            return kept.serialize(s);
        }
        let named = Self::serialize(self, serde_json::value::Serializer).map_err(serde::ser::Error::custom)?;
        let ReasonFields { code, facts, .. } = ReasonFields::new(String::new(), named);
        MistakeParts { found: self.found(), right: self.right(), code, facts }.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Mistake {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let parts = MistakeParts::deserialize(d)?;
        let coded = ReasonFields { why: String::new(), code: parts.code.clone(), facts: parts.facts.clone() };
        let known = coded.named().and_then(|named| Self::deserialize(named).ok());
        Ok(known.unwrap_or(Self::Other(parts)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::InvalidSetting;

    fn of(mistake: Mistake) -> InvalidSetting {
        InvalidSetting { said: "--set".into(), what: "eth1 rings rx 9".into(), mistake }
    }

    #[test]
    fn a_code_its_facts_and_both_texts() {
        let wrong = of(Mistake::RingSize { now: 512, most: Some(4096) });
        let json = json!({
            "said": "--set", "what": "eth1 rings rx 9", "found": "the current value is 512, and the driver supports at most 4096",
            "right": "expected 1 to 4096 descriptors", "code": "ring_size", "facts": { "now": 512, "most": 4096 },
        });
        assert_eq!(serde_json::to_value(&wrong).unwrap(), json);
        assert_eq!(serde_json::from_value::<InvalidSetting>(json).unwrap(), wrong);
        for mistake in [
            Mistake::Switch,
            Mistake::RingNumber { now: 64, least: 0, most: None },
            Mistake::Strict { obstacle: Box::new(Obstacle::NoRing { kind: "rx".into() }) },
            Mistake::Table { error: TableError::TooHeavy { sum: 9, size: 8 }, entries: 8, queues: 2 },
            Mistake::NoField { letter: 'x' },
        ] {
            let json = serde_json::to_value(of(mistake.clone())).unwrap();
            assert!(json["code"].is_string(), "{json}");
            assert_eq!(serde_json::from_value::<InvalidSetting>(json).unwrap(), of(mistake));
        }
    }

    #[test]
    fn data_of_other_versions_is_kept() {
        let old = json!({ "said": "--set", "what": "eth1 x", "found": "a", "right": "b" });
        let later =
            json!({ "said": "--set", "what": "eth1 x", "found": "a", "right": "b", "code": "c", "facts": { "x": 1 } });
        for other in [old, later] {
            let w: InvalidSetting = serde_json::from_value(other.clone()).unwrap();
            assert_eq!((w.mistake.found().as_str(), w.mistake.right().as_str()), ("a", "b"));
            assert_eq!(serde_json::to_value(&w).unwrap(), other);
        }
    }
}

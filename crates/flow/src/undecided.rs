//! Why the queue, the hash or the CPU of a flow is unknown, as values. Their texts are made here and nowhere else.

use std::fmt;

use ringwise_model::{CpuSet, ReasonFields, Unread};
use serde::Serialize;
use serde::ser::{Error, SerializeMap, Serializer};

/// Property of a packet that a flow does not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketProperty {
    /// The 802.1Q tag.
    VlanTag,
    /// The priority in the 802.1Q tag.
    VlanPriority,
    /// Type of service, or IPv6 traffic class.
    TypeOfService,
    /// Bytes of the payload of IP.
    Payload,
    /// Source or destination MAC address.
    MacAddresses,
    /// Protocol number, where the device hashes it.
    Protocol,
    /// Identifier of a GTP tunnel.
    TunnelId,
    /// IPv6 flow label.
    FlowLabel,
    /// A property that this version of ringwise does not know.
    Other,
}

impl fmt::Display for PacketProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::VlanTag => "the VLAN tag",
            Self::VlanPriority => "the priority in the VLAN tag",
            Self::TypeOfService => "the type of service",
            Self::Payload => "the bytes after the IP header",
            Self::MacAddresses => "the MAC addresses",
            Self::Protocol => "the protocol number",
            Self::TunnelId => "the tunnel ID (GTP)",
            Self::FlowLabel => "the IPv6 flow label",
            Self::Other => "a field that this version of ringwise does not know",
        })
    }
}

/// What decides whether a rule matches, beside the flow itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchDependsOn {
    /// A property of each packet.
    Packet(PacketProperty),
    /// The rule has a flow type that this version of ringwise does not know.
    UnknownFlowType,
    /// A field of the rule cannot be parsed.
    UnreadableField,
    /// Devices differ in whether such a rule matches IP fragments.
    Fragments,
    /// A rule at a lower location, which may match as well.
    EarlierRule,
}

impl fmt::Display for MatchDependsOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet(property) => property.fmt(f),
            Self::UnknownFlowType => f.write_str("a flow type that this version of ringwise does not know"),
            Self::UnreadableField => f.write_str("a field that cannot be read"),
            Self::Fragments => f.write_str("whether the device applies such rules to IP fragments"),
            Self::EarlierRule => f.write_str("the rule before it"),
        }
    }
}

/// Why the receive queue or the hash of a flow is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Undecided {
    /// The driver reports an empty hash key.
    KeyEmpty,
    /// The hash key is not a list of hexadecimal bytes.
    KeyMalformed {
        /// Where the key was read.
        of: KeySource,
        /// The error of the parser.
        error: String,
    },
    /// The hash key could not be read.
    KeyUnread {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// The driver does not report its hash key.
    KeyNotReported {
        /// Name of the driver.
        driver: String,
    },
    /// The driver uses the key of the host, which the kernel has not generated yet.
    HostKeyNotSet,
    /// The driver does not report its key, and the kernel has no `net.core.netdev_rss_key`.
    HostKeyAbsent {
        /// Name of the driver.
        driver: String,
    },
    /// The driver does not report its key, and that of the host could not be read.
    HostKeyUnread {
        /// Name of the driver.
        driver: String,
        /// What could not be read, and why.
        unread: Unread,
    },
    /// The transform of the hash input is not one that this version of ringwise knows.
    UnknownTransform {
        /// ethtool's name of the transform.
        transform: String,
    },
    /// The device computes something else than the Toeplitz hash of the reported key.
    NonstandardHash {
        /// Name of the driver.
        driver: String,
    },
    /// How the device computes its hash function is not documented.
    UndocumentedHash {
        /// Name of the driver.
        driver: String,
        /// `xor`, `crc32`.
        function: String,
    },
    /// The hash function could not be read.
    HashFunctionUnread {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// The driver reports no indirection table.
    NoTable,
    /// The driver does not report receive-side scaling.
    NoRss,
    /// The indirection table could not be read.
    TableUnread {
        /// What could not be read, and why.
        unread: Unread,
    },
    /// The device hashes no field of such packets.
    NoFieldHashed {
        /// `tcp4`
        flow_type: String,
    },
    /// The device hashes a property that a flow does not contain.
    HashedPropertyUnknown {
        /// `tcp4`
        flow_type: String,
        /// The property.
        property: PacketProperty,
    },
    /// The device discards packets of this type.
    FlowTypeDiscarded {
        /// `tcp4`
        flow_type: String,
    },
    /// The driver does not report which fields of such packets it hashes.
    FieldsNotReported {
        /// `tcp4`
        flow_type: String,
    },
    /// A flow steering rule may match.
    RuleMayMatch {
        /// Location of the rule.
        rule: u32,
        /// What decides whether it matches.
        depends_on: MatchDependsOn,
    },
    /// A flow steering rule sends the flow to an RSS context that does not exist.
    ContextMissing {
        /// Number of the RSS context.
        context: u32,
    },
    /// A flow steering rule sends the flow to an RSS context that could not be read.
    ContextUnread {
        /// Number of the RSS context.
        context: u32,
    },
    /// The rule wakes up the machine; it selects no queue.
    WakeRule,
    /// The driver steers TCP flows to the queue of their last sampled reply.
    AtrOn {
        /// Name of the driver.
        driver: String,
    },
    /// The driver may do so; its private flag could not be read.
    AtrUnread {
        /// Name of the driver.
        driver: String,
        /// The private flag.
        flag: String,
        /// What could not be read, and why.
        unread: Unread,
    },
}

/// Where a hash key was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// The key of the device.
    Device,
    /// The key of an RSS context.
    Context,
    /// `net.core.netdev_rss_key`.
    Host,
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Device => "the device's",
            Self::Context => "the context's",
            Self::Host => "the host's (net.core.netdev_rss_key)",
        })
    }
}

impl Undecided {
    /// The value that could not be read, if that is the reason.
    pub fn unread(&self) -> Option<&Unread> {
        match self {
            Self::KeyUnread { unread }
            | Self::HostKeyUnread { unread, .. }
            | Self::HashFunctionUnread { unread }
            | Self::TableUnread { unread }
            | Self::AtrUnread { unread, .. } => Some(unread),
            _ => None,
        }
    }
}

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyEmpty => f.write_str("the driver reports an empty hash key"),
            Self::KeyMalformed { of, error } => match of {
                KeySource::Device => write!(f, "the hash key that the driver reports cannot be parsed: {error}"),
                KeySource::Context => write!(f, "the hash key of the RSS context cannot be parsed: {error}"),
                KeySource::Host => write!(f, "net.core.netdev_rss_key cannot be parsed: {error}"),
            },
            Self::KeyUnread { unread } => write!(f, "the hash key is unknown ({unread})"),
            Self::KeyNotReported { driver } => write!(f, "{driver} does not report its hash key"),
            Self::HostKeyNotSet => {
                f.write_str("the hash key is net.core.netdev_rss_key, which the kernel has not generated yet")
            }
            Self::HostKeyAbsent { driver } => {
                write!(f, "{driver} does not report its hash key, and this kernel has no net.core.netdev_rss_key")
            }
            Self::HostKeyUnread { driver, unread } => {
                write!(
                    f,
                    "{driver} does not report its hash key, and net.core.netdev_rss_key could not be read ({unread})"
                )
            }
            Self::UnknownTransform { transform } => {
                write!(f, "this version of ringwise does not know the hash transform {transform}")
            }
            Self::NonstandardHash { driver } => write!(
                f,
                "{driver} uses a non-standard initial value for the hash, and its device reads the key backwards: \
                 the result has not been verified"
            ),
            Self::UndocumentedHash { driver, function } => {
                write!(f, "the hash function is {function}, and how {driver} computes it is not documented")
            }
            Self::HashFunctionUnread { unread } => write!(f, "the hash function is unknown ({unread})"),
            Self::NoTable => f.write_str("the driver reports no indirection table"),
            Self::NoRss => f.write_str("the driver does not report receive-side scaling (RSS)"),
            Self::TableUnread { unread } => write!(f, "the indirection table is unknown ({unread})"),
            Self::NoFieldHashed { flow_type } => write!(f, "the device hashes no field of {flow_type} packets"),
            Self::HashedPropertyUnknown { flow_type, property } => {
                write!(f, "the hash of {flow_type} includes {property}, which is unknown for a flow")
            }
            Self::FlowTypeDiscarded { flow_type } => write!(f, "the device discards {flow_type} packets"),
            Self::FieldsNotReported { flow_type } => {
                write!(f, "the driver does not report which fields of {flow_type} it hashes")
            }
            Self::RuleMayMatch { rule, depends_on } => write!(f, "rule {rule} may match, depending on {depends_on}"),
            Self::ContextMissing { context } => {
                write!(f, "the rule sends the flow to RSS context {context}, which does not exist")
            }
            Self::ContextUnread { context } => {
                write!(f, "the rule sends the flow to RSS context {context}, which could not be read")
            }
            Self::WakeRule => f.write_str("the rule wakes up the machine and selects no queue"),
            Self::AtrOn { driver } => write!(
                f,
                "{driver} steers TCP itself (ATR): packets arrive at the queue that sent the last sampled reply of the \
                 connection"
            ),
            Self::AtrUnread { driver, flag, unread } => {
                write!(f, "{driver} steers TCP itself if its private flag {flag} is on, which is unknown ({unread})")
            }
        }
    }
}

/// Why the CPU of a queue's interrupt is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuUndecided {
    /// No interrupt could be matched to the queue.
    NoInterrupt,
    /// The kernel chooses the CPU when the interrupt fires for the first time.
    NotFiredYet,
    /// The interrupt may go to several CPUs.
    OneOf {
        /// The CPUs.
        cpus: CpuSet,
    },
    /// The kernel does not report the effective affinity.
    EffectiveNotReported,
    /// The effective affinity could not be read.
    EffectiveUnread {
        /// What could not be read, and why.
        unread: Unread,
    },
}

impl fmt::Display for CpuUndecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInterrupt => f.write_str("no interrupt could be matched to this queue"),
            Self::NotFiredYet => {
                f.write_str("its interrupt has not fired yet; the kernel chooses the CPU when it does")
            }
            Self::OneOf { cpus } => write!(f, "the interrupt goes to one of CPUs {cpus}"),
            Self::EffectiveNotReported => f.write_str("this kernel does not report the effective CPU"),
            Self::EffectiveUnread { unread } => unread.fmt(f),
        }
    }
}

/// Why the CPU that RPS chooses is unknown: the kernel uses its own hash, whose key is secret, or the device's hash
/// is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StackHashUnknown {
    /// The feature `rx-hashing` is off.
    HashingOff,
    /// The driver passes no hash to the kernel that the kernel uses.
    NotPassed {
        /// Name of the driver.
        driver: String,
    },
    /// The device's hash covers addresses only.
    AddressesOnly,
    /// The device's hash is unknown.
    DeviceHashUnknown,
}

impl fmt::Display for StackHashUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OWN: &str = "the kernel uses its own hash, whose key is secret";
        match self {
            Self::HashingOff => write!(f, "receive-hashing is off: {OWN}"),
            Self::NotPassed { driver } => write!(f, "{driver} passes no hash that the kernel uses: {OWN}"),
            Self::AddressesOnly => write!(f, "the device's hash covers addresses only: {OWN}"),
            Self::DeviceHashUnknown => f.write_str("the device's hash is unknown"),
        }
    }
}

/// Why RFS does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RfsOff {
    /// `net.core.rps_sock_flow_entries` is 0.
    HostTableEmpty,
    /// The kernel was built without RFS.
    NotInKernel,
    /// `rps_flow_cnt` of the queue is 0, or the queue has no such file.
    QueueTableEmpty,
}

impl fmt::Display for RfsOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HostTableEmpty => "net.core.rps_sock_flow_entries is 0",
            Self::NotInKernel => "not supported by this kernel",
            Self::QueueTableEmpty => "rps_flow_cnt of the queue is 0",
        })
    }
}

/// Why RPS of a queue is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RpsUnknown {
    /// The kernel lists no receive queue of this number.
    NoSuchQueue,
    /// The mask could not be read.
    Unread(Unread),
}

impl fmt::Display for RpsUnknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchQueue => f.write_str("the kernel lists no such queue"),
            Self::Unread(unread) => unread.fmt(f),
        }
    }
}

/// Serializes a value as its text.
pub(crate) fn as_text<T: fmt::Display, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(value)
}

/// The same, null for `None`.
pub(crate) fn as_text_or_null<T: fmt::Display, S: Serializer>(value: &Option<T>, s: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => s.collect_str(value),
        None => s.serialize_none(),
    }
}

/// Writes `why_not` (the text, or null), and, if there is one, `why_not_code` and `why_not_facts`. For a field with
/// `#[serde(flatten)]`.
pub(crate) fn beside<T, S>(why: &Option<T>, s: S) -> Result<S::Ok, S::Error>
where
    T: fmt::Display + Serialize,
    S: Serializer,
{
    let mut map = s.serialize_map(None)?;
    let Some(why) = why else {
        map.serialize_entry("why_not", &None::<&str>)?;
        return map.end();
    };
    let coded = ReasonFields::new(why.to_string(), serde_json::to_value(why).map_err(Error::custom)?);
    map.serialize_entry("why_not", &coded.why)?;
    map.serialize_entry("why_not_code", &coded.code)?;
    if let Some(facts) = &coded.facts {
        map.serialize_entry("why_not_facts", facts)?;
    }
    map.end()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    struct Document {
        queue: u32,
        #[serde(flatten, serialize_with = "beside")]
        why_not: Option<Undecided>,
    }

    #[test]
    fn a_reason_has_a_code_and_its_facts() {
        let document = |why_not| serde_json::to_value(Document { queue: 1, why_not }).unwrap();
        assert_eq!(document(None), json!({ "queue": 1, "why_not": null }));
        let empty =
            json!({ "queue": 1, "why_not": "the driver reports an empty hash key", "why_not_code": "key_empty" });
        assert_eq!(document(Some(Undecided::KeyEmpty)), empty);
        let depends_on = MatchDependsOn::Packet(PacketProperty::VlanTag);
        let rule = json!({
            "queue": 1, "why_not": "rule 3 may match, depending on the VLAN tag", "why_not_code": "rule_may_match",
            "why_not_facts": { "rule": 3, "depends_on": { "packet": "vlan_tag" } }
        });
        assert_eq!(document(Some(Undecided::RuleMayMatch { rule: 3, depends_on })), rule);
    }
}

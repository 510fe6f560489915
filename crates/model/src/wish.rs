//! Settings that a user configures beside the goal, in the user's terms. The planner converts them to settings of the
//! host that was read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ConfiguredBy, CpuId, CpuSet, NapiValues, RingValues, Rule};

/// One configured setting. It overrides the value of the goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// `None`: it is a setting of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<String>,
    /// Which setting, and its value.
    #[serde(flatten)]
    pub knob: Knob,
    /// Where it was configured.
    #[serde(default, alias = "said", skip_serializing_if = "ConfiguredBy::is_unknown")]
    pub by: ConfiguredBy,
    /// Parameters of moderation or rings that were configured at another place than `by`, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params_by: BTreeMap<String, ConfiguredBy>,
}

impl Wish {
    /// Where this parameter was configured.
    pub fn by_of(&self, param: &str) -> &ConfiguredBy {
        self.params_by.get(param).unwrap_or(&self.by)
    }

    /// All places where it was configured, each once.
    pub fn places(&self) -> Vec<ConfiguredBy> {
        let mut out: Vec<ConfiguredBy> = Vec::new();
        for by in self.params_by.values().chain([&self.by]) {
            if !out.contains(by) {
                out.push(by.clone());
            }
        }
        out
    }
}

/// A knob and the requested value. Members that are `None` stay unchanged; queues `None` means all queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "snake_case")]
pub enum Knob {
    /// The kernel's name or ethtool's short one (`ntuple`, `gro`, `lro`).
    Feature {
        /// `rx-gro-hw`, `gro`.
        name: String,
        /// Switched on.
        on: bool,
    },
    /// Pause frames (`ethtool -A`).
    Pause {
        /// Negotiate with the other end.
        autoneg: Option<bool>,
        /// Obey pause frames of the other end.
        rx: Option<bool>,
        /// Send pause frames.
        tx: Option<bool>,
    },
    /// Channel counts (`ethtool -L`).
    Channels {
        /// Channels that only receive.
        rx: Option<u32>,
        /// Channels that only transmit.
        tx: Option<u32>,
        /// Channels that receive and transmit.
        combined: Option<u32>,
    },
    /// Ring parameters (`ethtool -G`).
    Rings {
        /// The requested ring parameters.
        #[serde(flatten, serialize_with = "RingValues::as_wish")]
        values: RingValues,
    },
    /// Rings as long as the device and the memory of its node allow (`rings.rx = "max"`).
    LongestRings {
        /// Receive rings.
        rx: bool,
        /// Transmit rings.
        tx: bool,
    },
    /// Parameters by their netlink names (`rx-usecs`, `use-adaptive-rx`). With queues: parameters of each of these
    /// queues.
    Coalesce {
        /// `None`: the device as a whole.
        queues: Option<Vec<u32>>,
        /// Microseconds, frames, or 0 and 1 for switches.
        params: BTreeMap<String, u32>,
    },
    /// Indirection table (`ethtool -X`).
    RssTable {
        /// RSS context. `None`: the device's own.
        context: Option<u32>,
        /// What the table should contain.
        table: Table,
    },
    /// Hash function and key of the device's own context (`ethtool -X`).
    RssHash {
        /// `toeplitz`, `xor`, `crc32`.
        function: Option<String>,
        /// Hexadecimal bytes with colons.
        key: Option<String>,
        /// `none`, `symmetric-xor`, `symmetric-or-xor`.
        symmetric: Option<String>,
    },
    /// The fields that are hashed for one flow type (`ethtool -N DEV rx-flow-hash`).
    RssFields {
        /// `udp4`.
        flow: String,
        /// ethtool's letters: `sdfn`.
        fields: String,
    },
    /// A rule for received flows. Location `None`: the next free one.
    FlowRule {
        /// Place in the device's table.
        location: Option<u32>,
        /// What it matches, and its action.
        rule: Rule,
    },
    /// NAPI parameters. With queues: of the instances that serve these receive queues; otherwise of the device.
    Napi {
        /// Receive queues.
        queues: Option<Vec<u32>>,
        /// The value of each parameter.
        values: NapiValues,
    },
    /// CPUs that the interrupts of queues may go to (`smp_affinity_list`).
    IrqCpus {
        /// Queues by number, receive and transmit queue alike.
        queues: Option<Vec<u32>>,
        /// At least one, each online; the interrupt of every queue may go to all of them.
        cpus: CpuSet,
    },
    /// CPUs that transmit through a queue (`xps_cpus`).
    XpsCpus {
        /// Transmit queues.
        queues: Option<Vec<u32>>,
        /// Empty: no CPU.
        cpus: CpuSet,
    },
    /// Receive queues whose packets are transmitted through a transmit queue (`xps_rxqs`).
    XpsRxqs {
        /// Transmit queues.
        queues: Option<Vec<u32>>,
        /// Empty: none.
        rxqs: Vec<u32>,
    },
    /// CPUs for receive packet steering (`rps_cpus`).
    RpsCpus {
        /// Receive queues.
        queues: Option<Vec<u32>>,
        /// Empty: off.
        cpus: CpuSet,
    },
    /// Flow table of receive flow steering, by queue (`rps_flow_cnt`).
    RpsFlowCnt {
        /// Receive queues.
        queues: Option<Vec<u32>>,
        /// The kernel rounds up to a power of two; 0: off.
        entries: u32,
    },
    /// Size of the host's flow table for receive flow steering (`net.core.rps_sock_flow_entries`).
    RfsEntries {
        /// The kernel rounds up to a power of two; 0: off.
        entries: u32,
    },
    /// A value below `/proc/sys`.
    Sysctl {
        /// `net.core.netdev_budget`.
        name: String,
        /// As the file reads it.
        value: String,
    },
    /// Microseconds as the file accepts them: `0` means no limit, `n/a` means no wake-up latency at all.
    CpuLatency {
        /// The CPUs.
        cpus: Vec<CpuId>,
        /// What each of their files (`power/pm_qos_resume_latency_us`) should contain.
        value: String,
    },
}

/// An RSS table in ethtool's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// The driver's own table, which then counts as not set by a user.
    Default,
    /// Entries spread evenly over `queues` queues (`equal`).
    Equal {
        /// Number of queues.
        queues: u32,
        /// First queue.
        start: u32,
    },
    /// Entries in proportion to weights (`weight`).
    Weight {
        /// Weight of each queue, from `start` on.
        weights: Vec<u32>,
        /// First queue.
        start: u32,
    },
    /// Queue of each entry.
    Explicit(Vec<u32>),
}

/// A set of queues with a policy, CPUs, a share of the table and the flows that belong to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupWish {
    /// Name of the group, unique on its interface.
    pub name: String,
    /// Name of the interface.
    pub dev: String,
    /// Name of a built-in policy or of one in the configuration.
    pub policy: String,
    /// Which queues belong to it.
    pub queues: GroupQueues,
    /// CPUs of its queues. `None`: the goal chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuSet>,
    /// Share of the device's table, relative to the other groups; 0: only what rules steer here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// An RSS context of its own instead of a share of the table.
    #[serde(default)]
    pub context: bool,
    /// Flows that are steered to it.
    #[serde(default)]
    pub flows: Vec<Flow>,
    /// Where it was configured.
    #[serde(default, alias = "said", skip_serializing_if = "ConfiguredBy::is_unknown")]
    pub by: ConfiguredBy,
}

/// Queues of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupQueues {
    /// This many; ringwise chooses which.
    Count(u32),
    /// These receive queues.
    These(Vec<u32>),
    /// The goal divides the queues.
    Auto,
}

/// Flows of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// Flow type and fields, without an action.
    Match {
        /// Flow type in ethtool's syntax: `tcp4`.
        flow: String,
        /// `dst-port` → `443`, as in [`Rule::fields`].
        fields: BTreeMap<String, String>,
    },
    /// Ports on which the processes of this name listen now.
    Program(String),
    /// The same for a systemd unit.
    Unit(String),
}

/// How queues of a group are moderated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Name of the policy.
    pub name: String,
    /// By their netlink names.
    pub params: BTreeMap<String, u32>,
    /// Used instead if the driver cannot moderate single queues but the kernel can defer by NAPI instance.
    #[serde(default)]
    pub napi: NapiValues,
    /// When to use the policy: a sentence.
    pub when: String,
}

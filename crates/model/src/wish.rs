//! What a user lays down beside the goal, in his words; the planner makes settings of it against what was read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ConfiguredBy, CpuId, CpuSet, NapiValues, Rule};

/// One thing laid down. It goes before what the goal would have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// None: of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<String>,
    #[serde(flatten)]
    pub knob: Knob,
    /// Where it was configured.
    #[serde(default, alias = "said", skip_serializing_if = "ConfiguredBy::is_unknown")]
    pub by: ConfiguredBy,
}

/// A knob and the value wanted. Members that are `None` are left as they are; queues `None` are all queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wish", rename_all = "snake_case")]
pub enum Knob {
    /// By the kernel's name or ethtool's short one (`ntuple`, `gro`, `lro`).
    Feature {
        name: String,
        on: bool,
    },
    Pause {
        autoneg: Option<bool>,
        rx: Option<bool>,
        tx: Option<bool>,
    },
    Channels {
        rx: Option<u32>,
        tx: Option<u32>,
        combined: Option<u32>,
    },
    Rings {
        rx: Option<u32>,
        tx: Option<u32>,
    },
    /// Parameters by their netlink names (`rx-usecs`, `use-adaptive-rx`). With queues: of each of these.
    Coalesce {
        queues: Option<Vec<u32>>,
        params: BTreeMap<String, u32>,
    },
    RssTable {
        context: Option<u32>,
        table: Table,
    },
    RssHash {
        function: Option<String>,
        key: Option<String>,
        symmetric: Option<String>,
    },
    RssFields {
        flow: String,
        fields: String,
    },
    /// Location none: the next free one.
    FlowRule {
        location: Option<u32>,
        rule: Rule,
    },
    /// With queues: of the instances that serve these receive queues, else of the device.
    Napi {
        queues: Option<Vec<u32>>,
        values: NapiValues,
    },
    IrqCpus {
        queues: Option<Vec<u32>>,
        cpus: CpuSet,
    },
    XpsCpus {
        queues: Option<Vec<u32>>,
        cpus: CpuSet,
    },
    XpsRxqs {
        queues: Option<Vec<u32>>,
        rxqs: Vec<u32>,
    },
    RpsCpus {
        queues: Option<Vec<u32>>,
        cpus: CpuSet,
    },
    RpsFlowCnt {
        queues: Option<Vec<u32>>,
        entries: u32,
    },
    RfsEntries {
        entries: u32,
    },
    Sysctl {
        name: String,
        value: String,
    },
    /// Microseconds as the file takes them: `0` no limit, `n/a` no waiting at all.
    CpuLatency {
        cpus: Vec<CpuId>,
        value: String,
    },
}

/// An RSS table in ethtool's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// The driver's own; it counts as not set by a user then.
    Default,
    Equal {
        queues: u32,
        start: u32,
    },
    Weight {
        weights: Vec<u32>,
        start: u32,
    },
    /// Queue of each entry.
    Explicit(Vec<u32>),
}

/// A set of queues with a policy, CPUs, a share of the table and the flows that belong to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupWish {
    pub name: String,
    pub dev: String,
    /// Name of a built-in or own policy.
    pub policy: String,
    pub queues: GroupQueues,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuSet>,
    /// Part of the device's table, relative to the other groups'; 0: only what rules send here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// An RSS context of its own instead of a part of the table.
    #[serde(default)]
    pub context: bool,
    #[serde(default)]
    pub flows: Vec<Flow>,
    /// Where it was configured.
    #[serde(default, alias = "said", skip_serializing_if = "ConfiguredBy::is_unknown")]
    pub by: ConfiguredBy,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupQueues {
    Count(u32),
    These(Vec<u32>),
    /// As the goal divides them.
    Auto,
}

/// Flows of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flow {
    /// Flow type and fields, without an action.
    Match { flow: String, fields: BTreeMap<String, String> },
    /// Ports on which the processes of this name listen now.
    Program(String),
    /// The same for a systemd unit.
    Unit(String),
}

/// How queues of a group are moderated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub name: String,
    /// By their netlink names.
    pub params: BTreeMap<String, u32>,
    /// Instead, where the driver has no moderation of single queues but the kernel defers by NAPI instance.
    #[serde(default)]
    pub napi: NapiValues,
    /// When it is right: a sentence.
    pub when: String,
}

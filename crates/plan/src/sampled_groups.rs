//! What a sample of the traffic decided about groups of queues, as a part of the plan.

use ringwise_model::NotSampled;
use serde::{Deserialize, Serialize};

/// From this mean busy share of the CPUs of the bulk queues on, they get policy `cpu`; below it, policy `bulk`. A rule of
/// thumb: the article names the policies for lightly and for heavily loaded systems, without a number.
pub const BUSY_PERCENT: u32 = 50;

/// The size that small frames are assumed to have: a message of 64 bytes, the smallest of the article, with its headers.
pub const SMALL_FRAME_BYTES: u32 = 128;

/// With fewer frames, received and sent, the sample shows no traffic: a session of ssh has some dozens per second.
pub const FEWEST_FRAMES_PER_S: u64 = 100;

/// What a sample decided about the groups of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledGroups {
    /// Interface name.
    pub dev: String,
    /// Time between the readings. `None`: there is no sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Sizes of the groups.
    pub sizes: GroupSizes,
    /// Policy of the bulk group.
    pub policy: BulkPolicy,
}

/// What a sample decided about the CPUs of queues outside groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampledPlacement {
    /// Time between the readings. `None`: there is no sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// What was decided.
    #[serde(flatten)]
    pub choice: PlacementChoice,
}

/// How CPUs were assigned to queues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "choice", rename_all = "snake_case")]
pub enum PlacementChoice {
    /// By the packets that each queue received.
    Load {
        /// Packets that all queues received.
        packets: u64,
        /// Queues with another CPU than without the sample.
        queues: u32,
        /// How many times as much of this traffic the layout carries before a core is full (modelled).
        times: f64,
    },
    /// As without a sample: no other layout is better by a tenth.
    AsGood {
        /// Packets that all queues received.
        packets: u64,
    },
    /// As without a sample.
    Kept {
        /// Why the sample does not decide.
        why: GroupsUndecided,
    },
}

/// How the queues were divided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", rename_all = "snake_case")]
pub enum GroupSizes {
    /// By the share of small frames.
    Traffic {
        /// Frames received and sent.
        frames: u64,
        /// Mean size of these frames.
        mean_frame_bytes: u32,
        /// Share of the frames that are small, if every frame is either small or as long as the MTU allows.
        small_percent: u32,
        /// Queues of the latency group.
        latency_queues: u32,
        /// Queues of both groups.
        of_queues: u32,
    },
    /// By the share of the packets that flow rules steered to the queues of a group.
    Steered {
        /// Packets that all receive queues received.
        packets: u64,
        /// Share of the latency group.
        latency_percent: u32,
        /// Queues of the latency group.
        latency_queues: u32,
        /// Queues of both groups.
        of_queues: u32,
    },
    /// As without a sample.
    Kept {
        /// Why the sample does not decide.
        why: GroupsUndecided,
    },
}

impl GroupSizes {
    /// Queues of the latency group, where the sample decided.
    pub fn latency_queues(&self) -> Option<u32> {
        match self {
            Self::Traffic { latency_queues, .. } | Self::Steered { latency_queues, .. } => Some(*latency_queues),
            Self::Kept { .. } => None,
        }
    }
}

/// How the policy of the bulk group was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", rename_all = "snake_case")]
pub enum BulkPolicy {
    /// By the load of its CPUs.
    Load {
        /// Name of the policy.
        policy: String,
        /// Mean busy share of the CPUs of the group.
        busy_percent: u32,
        /// [`BUSY_PERCENT`] of the ringwise that made the plan.
        threshold_percent: u32,
    },
    /// As without a sample.
    Kept {
        /// Why the sample does not decide.
        why: GroupsUndecided,
    },
}

/// Why a sample does not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum GroupsUndecided {
    /// There is no sample.
    NotSampled {
        /// Why it was not taken.
        why: NotSampled,
    },
    /// The sample does not contain the interface, or one of its counters was reset.
    NotCounted,
    /// There were fewer frames than [`FEWEST_FRAMES_PER_S`].
    NoTraffic {
        /// Frames received and sent.
        frames: u64,
    },
    /// The size of full frames is unknown.
    MtuUnknown,
    /// The user configured the size or the policy.
    Configured,
    /// Flows are configured for a group, and the rules of the device do not steer them, and nothing else, to queues of
    /// their own: counters of queues do not tell which packets belong to them.
    FlowsNotSteered,
    /// The busy time of a CPU of the bulk group, or the CPU that served one of its queues, is unknown.
    LoadUnknown,
    /// The device has no own groups for latency and bulk.
    NotDivided,
    /// The plan changes the queues of all interfaces, or their RSS tables are configured: the counters do not tell the later load.
    QueuesChange,
    /// A later version knows the reason.
    #[serde(other)]
    Unknown,
}

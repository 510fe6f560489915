//! What the user wants, before the host is read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{CpuSet, GroupWish, Policy, Sample, Wish, nearest};

/// The configuration file that is read without being named, if it exists.
pub const DEFAULT_CONFIG: &str = "/etc/ringwise/ringwise.toml";

/// DESIGN section 3.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// The default: the present queues, on cores near the device, without a step that interrupts traffic.
    #[default]
    Balanced,
    /// Routers and firewalls: packets leave through the queue of the CPU that received them.
    Forward,
    /// Many small requests and replies.
    Rpc,
    /// Few flows with much data.
    Stream,
    /// Short and even delays, at the price of CPU time.
    Latency,
    /// One group of queues for latency, one for the rest.
    Mixed,
}

impl Goal {
    /// In the order of help and messages.
    pub const ALL: [Goal; 6] = [Goal::Balanced, Goal::Forward, Goal::Rpc, Goal::Stream, Goal::Latency, Goal::Mixed];

    /// The name on the command line, in files and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::Forward => "forward",
            Self::Rpc => "rpc",
            Self::Stream => "stream",
            Self::Latency => "latency",
            Self::Mixed => "mixed",
        }
    }
}

impl Intent {
    /// The goal of one interface.
    pub fn goal_of(&self, dev: &str) -> Goal {
        self.dev_goals.get(dev).copied().unwrap_or(self.goal)
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Goal {
    type Err = UnknownGoal;

    fn from_str(s: &str) -> Result<Self, UnknownGoal> {
        let exact = Self::ALL.into_iter().find(|g| g.name() == s);
        exact.ok_or_else(|| UnknownGoal { found: s.to_string(), meant: Self::meant(s), auto: false })
    }
}

/// Words for what a host does, and the goal for it. They are not accepted in place of the goal's name, only suggested.
const USES: [(Goal, &[&str]); 6] = [
    (Goal::Balanced, &["default", "general", "normal", "mixed-use", "desktop", "workstation"]),
    (
        Goal::Forward,
        &[
            "router",
            "routing",
            "route",
            "firewall",
            "gateway",
            "bridge",
            "switch",
            "nat",
            "vpn",
            "load-balancer",
            "kubernetes",
        ],
    ),
    (
        Goal::Rpc,
        &[
            "database",
            "db",
            "postgres",
            "postgresql",
            "mysql",
            "redis",
            "memcached",
            "cache",
            "web",
            "webserver",
            "http",
            "nginx",
            "dns",
            "server",
            "request",
            "requests",
            "api",
            "transactions",
        ],
    ),
    (
        Goal::Stream,
        &[
            "throughput",
            "bandwidth",
            "bulk",
            "backup",
            "storage",
            "nfs",
            "iscsi",
            "download",
            "upload",
            "video",
            "iperf",
        ],
    ),
    (
        Goal::Latency,
        &["low-latency", "lowlatency", "realtime", "real-time", "trading", "voip", "jitter", "game", "gaming"],
    ),
    (Goal::Mixed, &["mix", "both", "latency-and-throughput"]),
];

impl Goal {
    /// The goal that a word probably means: one of a similar name, or the one for this use of a host.
    pub fn meant(word: &str) -> Option<Self> {
        let named = |name: &str| Self::ALL.into_iter().find(|g| g.name() == name);
        let uses = || USES.iter().flat_map(|(goal, words)| words.iter().map(|w| (*goal, *w)));
        let used = |name: &str| uses().find(|(_, w)| *w == name).map(|(goal, _)| goal);
        let lower = word.to_lowercase();
        used(&lower)
            .or_else(|| nearest(word, Self::ALL.iter().map(|g| g.name())).and_then(named))
            .or_else(|| nearest(word, uses().map(|(_, w)| w)).and_then(used))
    }
}

/// A word that is not the name of a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownGoal {
    /// The word.
    pub found: String,
    /// The goal that was probably meant.
    pub meant: Option<Goal>,
    /// `auto` is accepted as well.
    pub auto: bool,
}

impl std::fmt::Display for UnknownGoal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\" is not a goal", self.found)?;
        if let Some(goal) = self.meant {
            write!(f, "; did you mean {goal}?")?;
        }
        let names = Goal::ALL.map(Goal::name);
        let (first, last) = match self.auto {
            true => (names.join(", "), "auto"),
            false => (names[..names.len() - 1].join(", "), names[names.len() - 1]),
        };
        let lead = if self.meant.is_some() { " Goals are" } else { "; expected" };
        write!(f, "{lead} {first} {} {last}", if self.meant.is_some() { "and" } else { "or" })
    }
}

impl std::error::Error for UnknownGoal {}

/// Which hardware threads may carry queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Smt {
    /// At most one queue a physical core.
    OnePerCore,
    /// Siblings too, after every core has one.
    All,
}

impl Smt {
    /// As in `--smt`.
    pub fn name(self) -> &'static str {
        match self {
            Self::OnePerCore => "one-per-core",
            Self::All => "all",
        }
    }
}

impl FarNode {
    /// As in `--far-node`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Last => "last",
            Self::Ok => "ok",
        }
    }
}

/// CPUs of nodes away from the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FarNode {
    /// They get no queues.
    Never,
    /// Only when no local CPU is left, with a warning.
    Last,
    /// Like local CPUs.
    Ok,
}

/// A goal and the settings that the user configured beside it. `None`: the goal decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Goal of every interface that has none in `dev_goals`.
    pub goal: Goal,
    /// Interfaces to consider. Empty: those with a driver, queues of their own and a link.
    #[serde(default)]
    pub devs: Vec<String>,
    /// Use only these CPUs, including isolated ones among them, because the user named them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuSet>,
    /// Kept free of queues for other work (also taken out of `cpus`).
    #[serde(default)]
    pub reserve: CpuSet,
    /// Further CPUs without queues, in addition to `reserve`: a file and the command line may each set one of them.
    #[serde(default)]
    pub exclude_cpus: CpuSet,
    /// Queues of each device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<u32>,
    /// Which threads of a core get queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smt: Option<Smt>,
    /// Whether CPUs of remote nodes get queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_node: Option<FarNode>,
    /// Steps that interrupt traffic may be part of the plan.
    #[serde(default)]
    pub allow_disruption: bool,
    /// The layout of the article on per-queue moderation: half of the queues on the far node, latency
    /// queues on the first threads and bulk queues on the rest.
    #[serde(default)]
    pub pair_as_article: bool,
    /// The configuration file of the intent. `None`: it comes from flags only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The flags as they were given, for commands that request the same and more. `None`: the intent is not that of a command.
    #[serde(skip)]
    pub given: Option<Box<crate::IntentFlags>>,
    /// The host groups of the configuration file that apply to this host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_groups: Vec<String>,
    /// Queues of the latency group (`mixed`). `None`: a third.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_queues: Option<u32>,
    /// Policy of the bulk group that goal `mixed` makes. `None`: `bulk`, or the one that a sample suggests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bulk_policy: Option<String>,
    /// Goals of single interfaces, where they differ from `goal`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dev_goals: BTreeMap<String, Goal>,
    /// Settings that were configured singly; they override the goal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wishes: Vec<Wish>,
    /// Settings that the device or kernel does not support are errors, instead of notes in the plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// Groups of queues, in the order in which they were configured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupWish>,
    /// The user's own policies; one with the name of a built-in policy overrides it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<Policy>,
    /// What `--sample` counted, for the groups of `mixed`. `None`: not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
}

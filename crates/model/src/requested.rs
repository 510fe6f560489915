//! What a command line requests of the planner, and the resulting intent.

use serde::{Deserialize, Serialize};

use crate::intent::UnknownGoal;
use crate::{ConfiguredBy, CpuSet, FarNode, Goal, Intent, Smt};

/// A goal, or the one that fits the role of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum GoalChoice {
    /// `auto`: the goal that fits the role of the host.
    Auto,
    /// This goal.
    Of(Goal),
}

impl From<Goal> for GoalChoice {
    fn from(goal: Goal) -> Self {
        Self::Of(goal)
    }
}

impl std::str::FromStr for GoalChoice {
    type Err = UnknownGoal;

    fn from_str(s: &str) -> Result<Self, UnknownGoal> {
        match s {
            "auto" => Ok(Self::Auto),
            _ => s.parse().map(Self::Of).map_err(|e| UnknownGoal { auto: true, ..e }),
        }
    }
}

impl std::fmt::Display for GoalChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Of(goal) => goal.fmt(f),
        }
    }
}

impl TryFrom<String> for GoalChoice {
    type Error = UnknownGoal;

    fn try_from(text: String) -> Result<Self, UnknownGoal> {
        text.parse()
    }
}

impl From<GoalChoice> for String {
    fn from(goal: GoalChoice) -> Self {
        goal.to_string()
    }
}

/// Interfaces and flags of `ringwise plan` and `ringwise apply` that state an intent, before the configuration file is
/// merged into it. `None` and empty: not given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IntentFlags {
    /// Interfaces, as named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devs: Vec<String>,
    /// `--goal`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<GoalChoice>,
    /// `none`: no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// `DEV.KEY=VALUE`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// `--override-config`
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub override_config: bool,
    /// `--cpus`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuSet>,
    /// `--reserve`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<CpuSet>,
    /// `--exclude-cpus`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude_cpus: Option<CpuSet>,
    /// `--queues`: queues of a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<u32>,
    /// `--smt`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt: Option<Smt>,
    /// `--far-node`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub far_node: Option<FarNode>,
    /// `--allow-disruption`
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_disruption: bool,
    /// `--pair-as-article`
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pair_as_article: bool,
    /// `--latency-queues`: queues of the latency group of `mixed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_queues: Option<u32>,
    /// `--strict`
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
    /// `--sample`, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_ms: Option<u64>,
}

impl IntentFlags {
    /// The words of a command line behind `ringwise plan` or `ringwise apply`, not quoted.
    pub fn words(&self) -> Vec<String> {
        let mut out = self.devs.clone();
        let mut flag = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                out.extend([name.to_string(), value]);
            }
        };
        flag("--goal", self.goal.map(|g| g.to_string()));
        flag("--config", self.config.clone());
        self.set.iter().for_each(|s| flag("--set", Some(s.clone())));
        let cpus = [("--cpus", &self.cpus), ("--reserve", &self.reserve), ("--exclude-cpus", &self.exclude_cpus)];
        cpus.into_iter().for_each(|(name, cpus)| flag(name, cpus.as_ref().map(CpuSet::to_string)));
        flag("--queues", self.queues.map(|n| n.to_string()));
        flag("--smt", self.smt.map(|s| s.name().to_string()));
        flag("--far-node", self.far_node.map(|f| f.name().to_string()));
        flag("--latency-queues", self.latency_queues.map(|n| n.to_string()));
        flag("--sample", self.sample_ms.map(time));
        let switches = [
            ("--override-config", self.override_config),
            ("--allow-disruption", self.allow_disruption),
            ("--pair-as-article", self.pair_as_article),
            ("--strict", self.strict),
        ];
        out.extend(switches.into_iter().filter(|(_, on)| *on).map(|(name, _)| name.to_string()));
        out
    }
}

/// A time as options accept it: `5s`, `1500ms`.
fn time(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{ms}ms") }
}

/// What `ringwise apply` was run for, as transactions keep it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requested {
    /// `None`: a reviewed plan was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<IntentFlags>,
    /// Includes the configuration file as it was merged then.
    pub intent: Intent,
}

impl Requested {
    /// Whether both have the same goals for the host and its interfaces.
    pub fn has_goals_of(&self, other: &Self) -> bool {
        let (a, b) = (&self.intent, &other.intent);
        a.goal == b.goal && a.dev_goals == b.dev_goals
    }

    /// Without text that a person typed: files, names of groups and policies, flags.
    pub fn without_typed_text(self) -> Self {
        let mut intent = Intent { config: None, groups: Vec::new(), policies: Vec::new(), ..self.intent };
        for w in &mut intent.wishes {
            w.by = ConfiguredBy::default();
            w.params_by.clear();
        }
        Self { flags: None, intent }
    }
}

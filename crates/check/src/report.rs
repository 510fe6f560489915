//! The result of an audit.

use ringwise_knob::Reason;
use ringwise_model::{Cause, Goal};
use serde::{Deserialize, Serialize};

use crate::found::FindingDetails;
use crate::role::RoleGuess;
use crate::severity::Severity;

/// Name of the JSON document.
pub const SCHEMA: &str = "ringwise.check";
/// Stays the same when a member is added; is raised when a member is removed or changed.
pub const VERSION: u32 = 1;

/// The audit of one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`] of the program that wrote it.
    pub version: u32,
    /// `None`: the host's name is not known.
    pub host: Option<String>,
    /// The capture it was read from. `None`: the host itself was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Release of the kernel; `None`: not known.
    pub kernel: Option<String>,
    /// The likely purpose of the host, and why.
    pub role: RoleGuess,
    /// The goal that the plan was made for.
    pub goal: String,
    /// Where the goal comes from, as text.
    pub goal_from: String,
    /// Whether it is the default, because no option, transaction or file names a goal.
    #[serde(skip)]
    pub goal_by_default: bool,
    /// The problem that limits this host most, in one or two sentences. `None`: no problem was found.
    pub first: Option<String>,
    /// The parts of `first`.
    #[serde(skip)]
    pub main_problem: Option<MainProblem>,
    /// What the plan would do about the findings, for a main problem among those that are left.
    #[serde(skip)]
    pub(crate) planned_fix: PlannedFix,
    /// The arguments of this check, for commands that repeat it.
    #[serde(skip)]
    pub arguments: Vec<String>,
    /// Worst first; consequences are in `also` of their cause.
    pub findings: Vec<Finding>,
    /// Accepted ones, with the reason.
    pub accepted: Vec<Accepted>,
    /// Rules that could not be judged, or not on every interface.
    pub unreadable: Vec<Unreadable>,
    /// Rules that need two samples, if there are none.
    pub not_evaluated: Vec<String>,
    /// Rules that did not apply here.
    pub not_applied: Vec<String>,
    /// Number of rules.
    pub rules: usize,
    /// Time between the two samples. `None`: there are no two samples.
    pub seconds: Option<f64>,
    /// Steps of the plan that the findings are based on. `None`: no plan could be made; the reason is in `no_plan`.
    pub changes: Option<usize>,
    /// Why no plan could be made; `None`: there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_plan: Option<String>,
}

/// What one rule found on one interface or on the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Id of the rule.
    pub rule: String,
    /// Severity on this host; it may differ from that of the rule.
    pub severity: Severity,
    /// Title of the rule.
    pub title: String,
    /// The interface; `None`: the finding is about the host.
    pub dev: Option<String>,
    /// One line, with the numbers found.
    pub text: String,
    /// `text` and `evidence` as data. `None`: the finding is about what the plan would change; see `reasons`.
    #[serde(flatten)]
    pub found: Option<FindingDetails>,
    /// The facts behind `text`, one line each.
    pub evidence: Vec<String>,
    /// The reasons of the plan's steps, each once. Empty where `found` is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// Why it matters.
    pub why: String,
    /// Documentation that the rule is based on.
    pub source: String,
    /// The `ringwise plan` command that removes the finding. `None`: ringwise has none.
    pub remedy: Option<String>,
    /// What `remedy` adds to the plan of the check.
    #[serde(skip)]
    pub(crate) remedy_adds: RemedyAddition,
    /// Plain commands without ringwise, or other advice.
    pub by_hand: Vec<String>,
    /// Rules whose findings follow from this one.
    pub also: Vec<String>,
    /// The findings that follow from this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<Finding>,
}

/// What a remedy adds to the plan of the check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum RemedyAddition {
    /// Nothing: that plan removes the finding.
    #[default]
    Nothing,
    /// Other options, such as a `--set`.
    Options,
    /// The permission to interrupt traffic, perhaps with other options.
    Disruption,
}

/// A finding that the user has accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    /// The finding as it would be reported.
    pub finding: Finding,
    /// The reason in the baseline.
    pub reason: String,
    /// `2027-03-01`: the last day; from the next day on the finding is reported again.
    pub until: String,
}

/// A rule that could not be judged in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Id of the rule.
    pub rule: String,
    /// The interface; `None`: the host.
    pub dev: Option<String>,
    /// What could not be read: a file, a request or a counter.
    pub what: String,
    /// The permission or kernel that is needed, or why there is no answer.
    pub why: String,
    /// The same for programs.
    #[serde(skip)]
    pub cause: Cause,
}

/// A capture, one of several, that could not be read. It is not judged and never counts as fine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadableCapture {
    /// The file, as the user named it.
    pub file: String,
    /// What went wrong.
    pub why: String,
}

impl Report {
    /// The host name, unless it is "(none)", which the kernel reports until a name is set.
    pub(crate) fn own_name(&self) -> Option<&str> {
        self.host.as_deref().filter(|h| *h != "(none)")
    }

    /// The label of this report among `all`: the host name, with the file added where several hosts have the same name.
    pub fn name_among(&self, all: &[Report]) -> String {
        let alike = || all.iter().filter(|o| o.host == self.host).count() > 1;
        match (self.own_name(), &self.file) {
            (Some(h), Some(f)) if alike() => format!("{h} ({f})"),
            (Some(h), _) => h.to_string(),
            (None, Some(f)) => f.clone(),
            (None, None) => "host".into(),
        }
    }

    /// Findings of this severity, without consequences.
    pub fn count(&self, s: Severity) -> usize {
        self.findings.iter().filter(|f| f.severity == s).count()
    }

    /// Sorts reports by errors, then warnings, then other findings: the worst first.
    pub fn severity_order(&self) -> impl Ord + use<> {
        std::cmp::Reverse(Severity::ALL.map(|s| self.count(s)))
    }

    /// How many rules there are, and what became of them. Each rule counts once.
    pub fn rule_counts(&self) -> RuleCounts {
        let mut unreadable: Vec<&str> = self.unreadable.iter().map(|u| u.rule.as_str()).collect();
        unreadable.sort();
        unreadable.dedup();
        unreadable.retain(|id| !self.not_evaluated.iter().any(|n| n == id));
        let (unreadable, need_samples, not_applied) =
            (unreadable.len(), self.not_evaluated.len(), self.not_applied.len());
        let checked = self.rules.saturating_sub(unreadable + need_samples + not_applied);
        RuleCounts { checked, not_applied, need_samples, unreadable }
    }

    /// The worst severity. `None`: no findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|f| f.severity).max()
    }

    /// Ids of all rules with findings, those of consequences included.
    pub fn ids(&self) -> Vec<&str> {
        let mut ids: Vec<&str> = self
            .findings
            .iter()
            .flat_map(|f| std::iter::once(f).chain(&f.consequences))
            .map(|f| f.rule.as_str())
            .collect();
        ids.sort();
        ids.dedup();
        ids
    }
}

/// The rules of an audit by result; the counts add up to [`Report::rules`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleCounts {
    /// Judged on every interface that they are about.
    pub checked: usize,
    /// About something that this host does not have.
    pub not_applied: usize,
    /// Compare counters of two moments, and there is one sample.
    pub need_samples: usize,
    /// Need a value that could not be read, on one interface at least.
    pub unreadable: usize,
}

/// What the plan would do about the findings.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PlannedFix {
    /// Rules whose findings the plan fixes.
    pub rules: std::collections::BTreeSet<String>,
    /// Its changes to the interfaces of the check.
    pub changes: usize,
    /// The goal that the command names, if the plan of this check has another one.
    pub goal: Option<Goal>,
    /// By its model, how many times as much traffic the host then carries, where queues share CPUs to be on their own node.
    pub traffic_times: Option<f64>,
    /// The command that shows it.
    pub command: String,
}

/// The main problem of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct MainProblem {
    /// The rule that found it.
    pub rule: String,
    /// What is wrong, and what the command changes; it ends with a colon if there is a command.
    pub text: String,
    /// The `ringwise plan` that fixes it.
    pub command: Option<String>,
}

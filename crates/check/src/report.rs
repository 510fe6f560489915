//! What came out.

use ringwise_knob::Reason;
use serde::{Deserialize, Serialize};

use crate::found::Found;
use crate::{RoleGuess, Severity};

/// Name of the JSON document.
pub const SCHEMA: &str = "ringwise.check";
/// Additive changes keep it; a removed or changed member raises it.
pub const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub schema: String,
    pub version: u32,
    /// `None`: the host's name is not known.
    pub host: Option<String>,
    /// The capture it was read from. `None`: the host itself was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub kernel: Option<String>,
    pub role: RoleGuess,
    /// The goal that the plan behind it was made for, and where that comes from.
    pub goal: String,
    pub goal_from: String,
    /// What limits this host first, in one or two sentences. `None`: nothing does.
    pub first: Option<String>,
    /// Whether `first` ends with a `ringwise plan` to type.
    #[serde(skip)]
    pub first_has_command: bool,
    /// Worst first; consequences are in `also` of their cause.
    pub findings: Vec<Finding>,
    /// Accepted ones, with the reason.
    pub accepted: Vec<Accepted>,
    pub unreadable: Vec<Unreadable>,
    /// Rules that need two samples, of which there are none.
    pub not_evaluated: Vec<String>,
    /// Rules that did not apply here.
    pub not_applied: Vec<String>,
    /// Rules in all.
    pub rules: usize,
    /// Between the samples. `None`: there are none.
    pub seconds: Option<f64>,
    /// Steps of the plan that stands behind the findings. `None`: no plan could be made, `no_plan` says why.
    pub changes: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_plan: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    pub rule: String,
    pub severity: Severity,
    pub title: String,
    /// `None`: of the host.
    pub dev: Option<String>,
    /// One line, with the numbers found.
    pub text: String,
    /// The same as data, where a rule looks for itself. `None`: what the plan would change, whose reasons are `reasons`.
    #[serde(flatten)]
    pub found: Option<Found>,
    /// What was found, one each.
    pub evidence: Vec<String>,
    /// Why the plan would change it, each reason once; empty where the rule looks for itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    pub why: String,
    pub source: String,
    /// The `ringwise plan` that mends it. `None`: ringwise cannot.
    pub remedy: Option<String>,
    /// Plain commands, or what else to do.
    pub by_hand: Vec<String>,
    /// Rules that found what follows from this.
    pub also: Vec<String>,
    /// What follows from this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    pub finding: Finding,
    pub reason: String,
    /// `2027-03-01`: a finding again from the day after.
    pub until: String,
}

/// A rule that could not be judged in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unreadable {
    pub rule: String,
    pub dev: Option<String>,
    pub what: String,
    /// The permission or kernel that is needed, or why there is no answer.
    pub why: String,
}

/// One of several captures that could not be read: it is not judged, and never counted as fine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unopened {
    pub file: String,
    pub why: String,
}

impl Report {
    /// The host's name, where it was given one: the kernel says "(none)" until then.
    fn own_name(&self) -> Option<&str> {
        self.host.as_deref().filter(|h| *h != "(none)")
    }

    /// What to call it among `all`: the host, with its file where others are called the same.
    pub fn name_among(&self, all: &[Report]) -> String {
        let alike = || all.iter().filter(|o| o.host == self.host).count() > 1;
        match (self.own_name(), &self.file) {
            (Some(h), Some(f)) if alike() => format!("{h} ({f})"),
            (Some(h), _) => h.to_string(),
            (None, Some(f)) => f.clone(),
            (None, None) => "host".into(),
        }
    }

    pub fn count(&self, s: Severity) -> usize {
        self.findings.iter().filter(|f| f.severity == s).count()
    }

    /// The worst severity. `None`: no findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|f| f.severity).max()
    }

    /// Ids of all rules that found something, those of consequences too.
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

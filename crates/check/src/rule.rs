//! A rule is data and one small function.

use crate::cx::Cx;
use crate::needs::Needs;
use crate::report::Finding;
use crate::say::Say;
use crate::severity::{Confidence, Severity};

/// `None`: the rule did not apply here.
pub type Judge = fn(&Cx, &mut Say) -> Option<()>;

/// A rule of the audit, with its documentation.
pub struct Rule {
    /// Short id that commands, baselines and documents use: `D01`, `R0.15`.
    pub id: &'static str,
    /// What it is about, in a few words.
    pub title: &'static str,
    /// Files, requests and counters.
    pub reads: &'static str,
    /// What of it the plan needs for this rule: unread, the rule is not judged there.
    pub needs: &'static [Needs],
    /// Where it applies; empty: everywhere. Features are probed, never taken from a version alone.
    pub guard: &'static str,
    /// When it is a finding.
    pub condition: &'static str,
    /// The usual one; some rules raise or lower it by what they find.
    pub severity: Severity,
    /// Why it matters; empty: as the rule of the plan with the same id explains it.
    pub why: &'static str,
    /// Documentation; empty: that of the rule of the plan with the same id.
    pub source: &'static str,
    /// Arguments of `ringwise plan` that remove the finding; `None`: ringwise has none. Words in capitals are filled in.
    pub ours: Option<&'static str>,
    /// Plain commands, or what else to do. What must not be touched is only explained.
    pub by_hand: &'static [&'static str],
    /// How sure its findings are.
    pub confidence: Confidence,
    /// Needs two samples.
    pub rates: bool,
    /// Rules of which this one is a consequence on the same interface.
    pub under: &'static [&'static str],
    /// Further ids that lead to this page.
    pub also: &'static [&'static str],
    /// Costs, milestones and whatever else an expert wants to know.
    pub more: &'static str,
    /// Judges the host and reports what it finds.
    pub judge: Judge,
}

impl Rule {
    /// Everything that most rules leave as it is.
    pub const BASE: Rule = Rule {
        id: "",
        title: "",
        reads: "",
        needs: &[],
        guard: "",
        condition: "",
        severity: Severity::Warning,
        why: "",
        source: "",
        ours: None,
        by_hand: &[],
        confidence: Confidence::Sure,
        rates: false,
        under: &[],
        also: &[],
        more: "",
        judge: |_, _| None,
    };

    /// A finding of this rule without what was found. Commands still name the interface `DEV`.
    pub(crate) fn finding(&self) -> Finding {
        Finding {
            rule: self.id.into(),
            severity: self.severity,
            title: self.title.into(),
            dev: None,
            text: String::new(),
            found: None,
            evidence: Vec::new(),
            reasons: Vec::new(),
            why: self.why().into(),
            source: self.source().into(),
            remedy: None,
            by_hand: self.by_hand.iter().map(|c| c.to_string()).collect(),
            also: Vec::new(),
            consequences: Vec::new(),
        }
    }

    /// Why the rule matters: its own text, otherwise that of the plan's rule with the same id.
    pub fn why(&self) -> &'static str {
        match ringwise_plan::explain_rule(self.id) {
            Some(t) if self.why.is_empty() => t.why,
            _ => self.why,
        }
    }

    /// Documentation that the rule is based on: its own, otherwise that of the plan's rule with the same id.
    pub fn source(&self) -> &'static str {
        match ringwise_plan::explain_rule(self.id) {
            Some(t) if self.source.is_empty() => t.source,
            _ => self.source,
        }
    }
}

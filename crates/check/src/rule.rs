//! The type of a rule: its documentation as data, and one small function that judges the host.

use crate::finding_sink::FindingSink;
use crate::needs::RequiredFact;
use crate::report::{Finding, RemedyAddition};
use crate::rule_context::RuleContext;
use crate::severity::{Confidence, Severity};

/// The function of a rule. `None`: the rule does not apply to this host.
pub type RuleCheck = fn(&RuleContext, &mut FindingSink) -> Option<()>;

/// A rule of the audit, with its documentation.
pub struct Rule {
    /// Short id that commands, baselines and documents use: `D01`, `R0.15`.
    pub id: &'static str,
    /// The subject, in a few words.
    pub title: &'static str,
    /// Files, requests and counters that the rule reads.
    pub reads: &'static str,
    /// Facts that the plan needs for this rule. If one could not be read, the rule is not judged.
    pub needs: &'static [RequiredFact],
    /// Precondition of the rule: what must be known, and what must hold, before the condition is judged. Every rule has one.
    /// Features are probed, never derived from a kernel version alone.
    pub guard: &'static str,
    /// The condition for a finding.
    pub condition: &'static str,
    /// How to confirm a finding without ringwise, or with another view of ringwise; empty: look at `reads`.
    pub confirm: &'static str,
    /// The usual severity; some rules raise or lower it depending on what they find.
    pub severity: Severity,
    /// The severity in other cases, as text: `error above node distance 20`. Empty: always the same.
    pub other_severity: &'static str,
    /// Why it matters; empty: the text of the plan's rule with the same id.
    pub why: &'static str,
    /// Documentation; empty: that of the plan's rule with the same id.
    pub source: &'static str,
    /// Arguments of `ringwise plan` that remove the finding; `None`: ringwise cannot remove it. Words in capitals are
    /// placeholders.
    pub ours: Option<&'static str>,
    /// Whether the rule is about what was applied, so that its fix takes the applied goal, not that of the check.
    pub of_applied: bool,
    /// Plain commands without ringwise, or other advice. Rules about settings that ringwise must not change only
    /// explain them.
    pub by_hand: &'static [&'static str],
    /// How certain its findings are.
    pub confidence: Confidence,
    /// Whether the rule needs two samples.
    pub rates: bool,
    /// Rules whose findings can cause this one on the same interface.
    pub under: &'static [&'static str],
    /// Further ids that open this page.
    pub also: &'static [&'static str],
    /// Measurements, history and other details for experts.
    pub more: &'static str,
    /// Judges the host and reports what it finds.
    pub judge: RuleCheck,
}

impl Rule {
    /// The defaults of most rules.
    pub const BASE: Rule = Rule {
        id: "",
        title: "",
        reads: "",
        needs: &[],
        guard: "",
        condition: "",
        confirm: "",
        severity: Severity::Warning,
        other_severity: "",
        why: "",
        source: "",
        ours: None,
        of_applied: false,
        by_hand: &[],
        confidence: Confidence::Sure,
        rates: false,
        under: &[],
        also: &[],
        more: "",
        judge: |_, _| None,
    };

    /// An empty finding of this rule. Its commands still name the interface `DEV`.
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
            remedy_adds: RemedyAddition::default(),
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

//! Adds the remedy to a finding. This is not part of `finding_sink.rs`, because it needs the whole context of the
//! rules.

use crate::finding_sink::{FindingDraft, SteeringKind};
use crate::fix::PlanArguments;
use crate::rule_context::RuleContext;
use crate::severity::Severity;

impl FindingDraft<'_> {
    /// Adds the plan that removes the finding, unless it would contradict what the user configured.
    pub fn fix(self, cx: &RuleContext, fix: PlanArguments) -> Self {
        if let Some(by) = cx.wishes.against(&fix) {
            self.0.severity = Severity::Info;
            return self.evidence(format!("configured ({by}), so ringwise proposes no change"));
        }
        let fix = fix.beyond(cx.i.plan.as_ref().ok().copied());
        self.0.remedy_adds = fix.adds();
        self.0.remedy = Some(cx.command(&fix));
        self
    }

    /// Adds the unchanged plan as the remedy, if it has a step of this kind at the interface.
    pub fn fix_planned(self, cx: &RuleContext, family: SteeringKind) -> Self {
        let planned = self.0.dev.as_ref().is_some_and(|d| cx.planned_at.contains(&(family, d.clone())));
        if planned { self.fix(cx, PlanArguments::planned()) } else { self }
    }
}

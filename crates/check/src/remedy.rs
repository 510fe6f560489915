//! Adds the remedy to a finding. This is not part of `say.rs`, because it needs the whole context of the rules.

use crate::cx::Cx;
use crate::fix::Fix;
use crate::say::{Draft, Family};
use crate::severity::Severity;

impl Draft<'_> {
    /// Adds the plan that removes the finding, unless it would contradict what the user configured.
    pub fn fix(self, cx: &Cx, fix: Fix) -> Self {
        if let Some(by) = cx.wishes.against(&fix) {
            self.0.severity = Severity::Info;
            return self.evidence(format!("configured ({by}), so ringwise proposes no change"));
        }
        self.0.remedy = Some(cx.command(&fix));
        self
    }

    /// Adds the unchanged plan as the remedy, if it has a step of this kind at the interface.
    pub fn fix_planned(self, cx: &Cx, family: Family) -> Self {
        let planned = self.0.dev.as_ref().is_some_and(|d| cx.planned_at.contains(&(family, d.clone())));
        if planned { self.fix(cx, Fix::planned()) } else { self }
    }
}

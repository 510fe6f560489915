//! Runs all rules and collects their findings in a report.

use crate::finding_sink::FindingSink;
use crate::report::{PlannedFix, Report, SCHEMA, VERSION};
use crate::rule_context::{AuditInput, GoalOrigin, RuleContext};
use crate::rules::rules;
use crate::{causes, main_problem};

/// Judges the host. Findings are sorted: worst first, then what was measured, then by priority, rule and interface.
pub fn judge(i: &AuditInput) -> Report {
    let cx = RuleContext::new(i);
    let mut r = Report {
        schema: SCHEMA.into(),
        version: VERSION,
        host: i.snapshot.host.name.known().cloned(),
        file: None,
        kernel: i.snapshot.host.kernel.known().cloned(),
        role: cx.role.clone(),
        goal: cx.goal().to_string(),
        goal_from: i.goal_from.words().into(),
        goal_by_default: i.goal_from == GoalOrigin::Default,
        first: None,
        main_problem: None,
        planned_fix: PlannedFix::default(),
        arguments: Vec::new(),
        findings: Vec::new(),
        accepted: Vec::new(),
        unreadable: Vec::new(),
        not_evaluated: Vec::new(),
        not_applied: Vec::new(),
        rules: rules().count(),
        seconds: i.traffic.map(|t| t.seconds),
        changes: i.plan.as_ref().ok().map(|p| p.steps.len()),
        no_plan: i.plan.as_ref().err().cloned(),
    };
    for rule in rules() {
        let mut say = FindingSink::new(rule.finding(), rule.needs);
        let applied = (rule.judge)(&cx, &mut say);
        if say.no_samples {
            r.not_evaluated.push(rule.id.into());
        } else if applied.is_none() && say.findings.is_empty() && say.unread.is_empty() {
            r.not_applied.push(rule.id.into());
        }
        r.findings.append(&mut say.findings);
        r.unreadable.append(&mut say.unread);
    }
    // Plan and drift cover the whole host, even if only some interfaces are to be judged.
    r.findings.retain(|f| cx.is_selected(f.dev.as_deref()));
    r.findings = causes::fold(std::mem::take(&mut r.findings));
    r.planned_fix = main_problem::planned_fix(&cx);
    r.name_main_problem();
    r.arguments = cx.arguments();
    r
}

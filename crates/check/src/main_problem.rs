//! The report's first sentence: the problem that limits this host most.

use crate::fix::PlanArguments;
use crate::report::{Finding, MainProblem, PlannedFix, Report};
use crate::rule_context::RuleContext;
use crate::severity::Severity;

/// Rules by priority: losses that no setting of this host can prevent, other losses, resources at their limit, bad
/// placement.
const ORDER: &[&str] = &[
    "D12", "D04", "D01", "D10", "D09", "D15", "H01", "H02", "H03", "F02", "Q28", "M11", "A01", "A03", "A08", "A04",
    "A02", "Q20", "Q04", "Q14",
];

/// The place of a rule's findings among those of the same severity.
pub(crate) fn rank(rule: &str) -> usize {
    ORDER.iter().position(|o| *o == rule).unwrap_or(ORDER.len())
}

/// What the plan of this check would do.
pub(crate) fn planned_fix(cx: &RuleContext) -> PlannedFix {
    let is_asked = |s: &&ringwise_knob::Step| cx.is_asked(s.setting.address().as_ref().and_then(|a| a.dev()));
    PlannedFix {
        rules: cx.planned.keys().map(ToString::to_string).collect(),
        changes: cx.i.plan.as_ref().map_or(0, |p| p.steps.iter().filter(is_asked).count()),
        goal: cx.router_goal(),
        traffic_times: cx.plan_shares_for_locality(),
        command: cx.command(&PlanArguments::planned()),
    }
}

impl Report {
    /// Names the main problem among the present findings, which are sorted, worst first.
    pub(crate) fn name_main_problem(&mut self) {
        self.main_problem = find(&self.planned_fix, &self.findings);
        let text = |p: &MainProblem| p.command.iter().fold(p.text.clone(), |text, c| format!("{text} {c}"));
        self.first = self.main_problem.as_ref().map(text);
    }
}

fn find(fix: &PlannedFix, findings: &[Finding]) -> Option<MainProblem> {
    let bad = || findings.iter().filter(|f| f.severity > Severity::Info);
    let top = bad().next()?;
    let of = |f: &Finding| match &f.dev {
        Some(d) => format!("{d}: {}", f.text),
        None => f.text.clone(),
    };
    let mut out = format!("{}.", of(top).trim_end_matches('.'));
    // A CPU at its limit explains the loss.
    if let Some(wall) = bad().find(|f| f.rule == "D15" && f.rule != top.rule) {
        out += &format!(" {}.", of(wall).trim_end_matches('.'));
    }
    let changes = fix.changes;
    let planned = findings.iter().any(|f| f.remedy.is_some() && fix.rules.contains(&f.rule));
    let command = if planned && changes > 0 {
        let n = if changes == 1 { "1 change".into() } else { format!("{changes} changes") };
        let others = |f: &Finding| f.remedy.is_some() && !std::ptr::eq(f, top) && fix.rules.contains(&f.rule);
        let fixed = if findings.iter().any(others) { "this and other findings" } else { "this" };
        out += &match (fix.goal, fix.traffic_times) {
            // The number of changes is that of another goal.
            (Some(goal), _) => format!(" Goal {goal}, for a router, would fix {fixed}:"),
            (None, None) => format!(" {n} would fix {fixed}:"),
            (None, Some(part)) => format!(
                " {n} would fix {fixed}, but by the plan's model the host then carries {part:.1} times as \
                 much traffic. Measure before you keep it (ringwise bench forward --help):"
            ),
        };
        Some(fix.command.clone())
    } else {
        top.remedy.clone().inspect(|_| out += " Fix:")
    };
    Some(MainProblem { rule: top.rule.clone(), text: out, command })
}

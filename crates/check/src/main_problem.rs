//! The report's first sentence: the problem that limits this host most.

use crate::fix::PlanArguments;
use crate::report::{Finding, MainProblem, PlannedFix, RemedyAddition, Report};
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
    let is_selected = |s: &&ringwise_knob::Step| cx.is_selected(s.setting.address().as_ref().and_then(|a| a.dev()));
    PlannedFix {
        rules: cx.planned.keys().map(ToString::to_string).collect(),
        changes: cx.i.plan.as_ref().map_or(0, |p| p.steps.iter().filter(is_selected).count()),
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
    let is_planned =
        |f: &Finding| f.remedy.is_some() && f.remedy_adds == RemedyAddition::Nothing && fix.rules.contains(&f.rule);
    let others = findings.iter().any(|f| is_planned(f) && !std::ptr::eq(f, top));
    let (this, command) = match (&top.remedy, top.remedy_adds) {
        (Some(_), RemedyAddition::Nothing) => (true, Some(&fix.command)),
        (Some(own), _) => (false, Some(own)),
        (None, _) => (false, Some(&fix.command).filter(|_| others)),
    };
    let interrupts = top.remedy.is_some() && top.remedy_adds == RemedyAddition::Disruption;
    if fix.changes > 0 && (others || is_planned(top)) {
        let fixed = match (this, others) {
            (true, true) => "this and other findings",
            (true, false) => "this",
            (false, _) => "other findings",
        };
        out += &match (fix.goal, fix.changes) {
            // The number of changes is that of another goal.
            (Some(goal), _) => format!(" Goal {goal}, for a router, would fix {fixed}"),
            (None, 1) => format!(" 1 change would fix {fixed}"),
            (None, n) => format!(" {n} changes would fix {fixed}"),
        };
        if let (None, Some(part)) = (fix.goal, fix.traffic_times) {
            out += &format!(
                ", but by the plan's model the host then carries {part:.1} times as much traffic. Measure before you keep it \
                 (ringwise bench forward --help)"
            );
        }
        out += match (this, command, interrupts) {
            (false, Some(_), true) => "; the fix of this one interrupts traffic:",
            (false, Some(_), false) if top.remedy.is_some() => "; the fix of this one:",
            _ => ":",
        };
    } else if command.is_some() {
        out += if interrupts { " Fix, which interrupts traffic:" } else { " Fix:" };
    }
    Some(MainProblem { rule: top.rule.clone(), text: out, command: command.cloned() })
}

#[cfg(test)]
mod tests {
    use ringwise_model::Goal;

    use super::*;
    use crate::rules;

    fn finding(rule: &str, remedy: Option<(&str, RemedyAddition)>) -> Finding {
        let template = rules::find(rule).unwrap().finding();
        Finding {
            severity: Severity::Error,
            dev: Some("eth2".into()),
            text: format!("{rule} is true"),
            remedy: remedy.map(|(command, _)| command.to_string()),
            remedy_adds: remedy.map(|(_, adds)| adds).unwrap_or_default(),
            ..template
        }
    }

    fn first(goal: Option<Goal>, findings: &[Finding]) -> String {
        let command = "ringwise plan".to_string();
        let fix = PlannedFix { rules: ["A02".into()].into(), changes: 5, goal, traffic_times: None, command };
        let p = find(&fix, findings).unwrap();
        [p.text.split_once("is true.").unwrap().1, p.command.as_deref().unwrap_or("")].join(" ").trim().to_string()
    }

    /// What the plan skips without permission is not fixed by the plan.
    #[test]
    fn the_command_fixes_what_the_sentence_names() {
        use RemedyAddition::{Disruption, Nothing, Options};
        let lro = |adds| finding("M11", Some(("ringwise plan OWN", adds)));
        let placed = || finding("A02", Some(("ringwise plan", Nothing)));
        assert_eq!(first(None, &[placed()]), "5 changes would fix this: ringwise plan");
        assert_eq!(first(None, &[placed(), placed()]), "5 changes would fix this and other findings: ringwise plan");
        assert_eq!(
            first(Some(Goal::Forward), &[lro(Disruption), placed()]),
            "Goal forward, for a router, would fix other findings; the fix of this one interrupts traffic: ringwise plan OWN"
        );
        assert_eq!(first(None, &[lro(Disruption)]), "Fix, which interrupts traffic: ringwise plan OWN");
        assert_eq!(
            first(None, &[lro(Options), placed()]),
            "5 changes would fix other findings; the fix of this one: ringwise plan OWN"
        );
        assert_eq!(first(None, &[lro(Options)]), "Fix: ringwise plan OWN");
        assert_eq!(first(None, &[finding("D01", None), placed()]), "5 changes would fix other findings: ringwise plan");
        assert_eq!(first(None, &[finding("D01", None)]), "");
    }
}

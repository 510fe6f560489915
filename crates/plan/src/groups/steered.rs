//! Which receive queues carry the configured flows of a group, and nothing else, before the plan.

use std::collections::BTreeSet;

use ringwise_model::{Action, Flow, Nic, Rule};

/// The queues to which the rules of the device steer these flows. `None`: a flow has no rule yet, what a rule does is
/// unknown, or other packets reach these queues too.
pub(super) fn alone(nic: &Nic, flows: &[Flow]) -> Option<BTreeSet<u32>> {
    let (rules, table) = (&nic.rules.known()?.rules, &nic.rss.known()?.table);
    let is_of = |rule: &Rule| {
        flows.iter().any(|f| matches!(f, Flow::Match { flow, fields } if *flow == rule.flow && *fields == rule.fields))
    };
    let (mine, others): (Vec<&Rule>, Vec<&Rule>) = rules.values().partition(|r| is_of(r));
    for f in flows {
        // The flows of a program or unit were looked up, and follow its name.
        if let Flow::Match { flow, fields } = f {
            mine.iter().find(|r| r.flow == *flow && r.fields == *fields)?;
        }
    }
    let targets = |all: &[&Rule]| -> Option<BTreeSet<u32>> {
        let each: Option<Vec<BTreeSet<u32>>> = all.iter().map(|r| target(nic, r)).collect();
        Some(each?.into_iter().flatten().collect())
    };
    let (mine, others) = (targets(&mine)?, targets(&others)?);
    let only = mine.is_disjoint(&others) && !table.iter().any(|q| mine.contains(q));
    (only && !mine.is_empty() && !table.is_empty()).then_some(mine)
}

/// The receive queues of this device to which the rule sends packets.
fn target(nic: &Nic, rule: &Rule) -> Option<BTreeSet<u32>> {
    match (rule.action, rule.context) {
        (Action::Queue(queue), None) => Some(BTreeSet::from([queue])),
        (Action::Queue(added), Some(context)) => {
            let contexts = nic.rss.known()?.contexts.known()?;
            Some(contexts.get(&context)?.table.iter().map(|q| q + added).collect())
        }
        (Action::Drop | Action::Wake | Action::Vf { .. }, _) => Some(BTreeSet::new()),
    }
}

//! Plans again in the middle of `apply`, when a step of the goal was refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringwise_apply::{NewPlan, NoPlan, Planner};
use ringwise_discover::Options;
use ringwise_knob::{CreatedObject, IfRefused, Learned, Setting, Step};
use ringwise_model::Intent;
use ringwise_plan::{ManualChanges, Plan};
use ringwise_sys::Host;

/// Plans for the intent of the first plan, on the same host. Manual changes are those that were known then; later
/// differences are the work of this run.
#[derive(Debug)]
pub(crate) struct Replanner {
    pub(crate) options: Options,
    pub(crate) intent: Intent,
    pub(crate) hands: ManualChanges,
    pub(crate) learned: Vec<Learned>,
    /// See [`without_names`].
    pub(crate) at_boot: bool,
}

/// At boot no user can choose another value. A setting that the user configured and that is refused is skipped, and the
/// rest is applied.
pub fn without_names(steps: &mut [Step]) {
    let named = steps.iter_mut().filter(|s| s.if_refused == IfRefused::PutBack);
    named.for_each(|s| s.if_refused = IfRefused::Replan);
}

impl Planner for Replanner {
    fn plan_again(&self, host: &Arc<dyn Host>, learned: &[Learned], made: &[CreatedObject]) -> Result<NewPlan, NoPlan> {
        let now = ringwise_discover::snapshot(host, &self.options).map_err(NoPlan::Discover)?;
        let known: Vec<Learned> = self.learned.iter().chain(learned).cloned().collect();
        let mut hands = self.hands.clone();
        hands.made.retain(|m| made.iter().all(|new| new.address() != m.address()));
        hands.made.extend_from_slice(made);
        let mut plan =
            ringwise_plan::plan_around(&now, &self.intent, &known, &hands).map_err(|r| NoPlan::Planner(Box::new(r)))?;
        if self.at_boot {
            without_names(&mut plan.steps);
        }
        let unmet = plan.refused.iter().filter(|r| r.needed).filter_map(|r| r.address.clone()).collect();
        Ok(NewPlan { already: unchanged_settings(&plan), unmet, steps: plan.steps })
    }
}

/// Settings of a plan that have their value already, without those that the user or another program set and that stay.
pub fn unchanged_settings(plan: &Plan) -> Vec<Setting> {
    let written = plan.steps.iter().map(|s| &s.setting);
    let others = written.chain(plan.kept.iter().map(|k| &k.hand.setting));
    // A setting has one value in a plan, or it stays.
    let others: BTreeMap<_, Vec<&Setting>> = others.fold(BTreeMap::new(), |mut by, s| {
        by.entry(s.address()).or_default().push(s);
        by
    });
    let ours = |t: &&Setting| !others.get(&t.address()).is_some_and(|list| list.contains(t));
    plan.target.iter().filter(ours).cloned().collect()
}

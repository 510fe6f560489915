//! Plan, apply, check and verify agree: after a goal was applied the plan is empty, every setting is in effect, and
//! check finds nothing that the goal caused.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::lay::{Lay, policy};
use crate::hosts;
use ringwise_apply::{NewPlan, NoPlan, Planner, Policy, RunResult};
use ringwise_check::{AuditInput, GoalOrigin, Severity, judge};
use ringwise_discover::Options;
use ringwise_knob::{CreatedObject, Learned};
use ringwise_model::{CheckOnlyFacts, Goal, Intent, Snapshot};
use ringwise_plan::{ManualChanges, Plan, Refusal, plan_around};
use ringwise_sys::Host;
use ringwise_testkit::lane::everything;

/// Plans again when a driver refuses a setting, as the program does.
#[derive(Debug)]
struct Again(Intent);

impl Planner for Again {
    fn plan_again(&self, host: &Arc<dyn Host>, learned: &[Learned], made: &[CreatedObject]) -> Result<NewPlan, NoPlan> {
        let now = ringwise_discover::snapshot(host, &Options::all()).map_err(NoPlan::Discover)?;
        let hands = ManualChanges { made: made.to_vec(), ..ManualChanges::default() };
        let plan = plan_around(&now, &self.0, learned, &hands).map_err(|r| NoPlan::Planner(Box::new(r)))?;
        let holds = |t: &&ringwise_knob::Setting| !plan.steps.iter().any(|s| s.setting == **t);
        let already = plan.target.iter().filter(holds).cloned().collect();
        let unmet = plan.refused.iter().filter(|r| r.needed).filter_map(|r| r.address.clone()).collect();
        Ok(NewPlan { already, unmet, steps: plan.steps })
    }
}

/// Rule and interface of each error and warning.
fn found(s: &Snapshot, p: &Plan, goal_from: GoalOrigin) -> BTreeSet<(String, Option<String>)> {
    let input = AuditInput {
        snapshot: s,
        extra: &CheckOnlyFacts::default(),
        plan: Ok(p),
        intent: &p.intent,
        goal_from,
        traffic: None,
        drift: Some(Vec::new()),
        devs: &[],
    };
    let serious = judge(&input).findings.into_iter().filter(|f| f.severity >= Severity::Warning);
    serious.map(|f| (f.rule, f.dev)).collect::<BTreeSet<_>>()
}

fn agree(host: &str, s: &Snapshot, goal: Goal, allow_disruption: bool) {
    let intent = Intent { goal, allow_disruption, ..Intent::default() };
    let what = format!("{host}, goal {goal}, allow_disruption {allow_disruption}");
    let lay = Lay::on(s);
    let p = match lay.try_plan(&intent) {
        Ok(p) => p,
        Err(Refusal::NothingTunable { .. }) if host == "packed-by-others" => return,
        Err(e) => panic!("{what}: {e}"),
    };
    let before = found(&lay.look(), &p, GoalOrigin::Requested);
    let planner: Option<Arc<dyn Planner>> = Some(Arc::new(Again(intent.clone())));
    let out = lay.run_with(&p, &Policy { planner, ..policy() });
    assert!(matches!(out.verdict, RunResult::Applied | RunResult::NothingToDo), "{what}: {out:#?}");
    s.nics.iter().for_each(|n| lay.sim.traffic(n.name()));
    let now = lay.look();
    let v = ringwise_apply::verify_in(&now, &lay.store()).unwrap();
    let moved: Vec<_> = v.settings.iter().filter(|s| !s.how.holds()).map(|s| s.want.address()).collect();
    assert!(moved.is_empty(), "{what}: {moved:?}");
    let again = lay.plan_knowing(&intent, &lay.store().learned().unwrap());
    assert!(again.steps.is_empty(), "{what}: {:#?}", again.steps);
    let made: Vec<_> = found(&now, &again, GoalOrigin::ActiveTransaction).difference(&before).cloned().collect();
    assert!(made.is_empty(), "{what}: found only after it: {made:?}");
    let far: Vec<u32> = match goal {
        Goal::Mixed => {
            let latency = |q: &&ringwise_plan::Placed| {
                again.groups.iter().any(|g| g.name == "latency" && g.queues.contains(&q.queue))
            };
            let layout = |l: &ringwise_plan::DevLayout| -> Vec<u32> {
                let (fast, rest): (Vec<_>, Vec<_>) = l.queues.iter().partition(latency);
                let near_is_left = rest.iter().any(|q| q.far == Some(false));
                fast.iter().filter(|q| near_is_left && q.far == Some(true)).map(|q| q.queue).collect()
            };
            again.layout.iter().flat_map(layout).collect()
        }
        _ => Vec::new(),
    };
    assert!(far.is_empty(), "{what}: latency queues {far:?} on a far node, and others near");
}

#[test]
fn after_a_goal_nothing_is_left_to_find() {
    let quick = ["article48", "interleaved", "lab-isolated-6.12", "lab-small2-6.12", "netvsc", "virtio-iavf"];
    for (host, s) in hosts::all().filter(|(name, _)| everything() || quick.contains(name)) {
        for goal in Goal::ALL {
            agree(host, &s, goal, true);
            if everything() {
                agree(host, &s, goal, false);
            }
        }
    }
}

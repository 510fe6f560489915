//! A refused step: the planner of the program plans the rest again within the same transaction.

use std::sync::{Arc, Mutex};

use crate::common::guards::Here;
use crate::common::*;
use ringwise_apply::{Event, NewPlan, NoPlan, Outcome, Planner, Policy, Request, RunResult};
use ringwise_discover::Options;
use ringwise_knob::{Address, CreatedObject, Family, IfRefused, Learned, Setting, VectorName, compare};
use ringwise_model::errno::{EIO, EOPNOTSUPP};
use ringwise_model::{ConfiguredBy, Flow, Goal, GroupQueues, GroupWish, Intent};
use ringwise_plan::{ManualChanges, Plan};
use ringwise_sys::Host;
use ringwise_testkit::sim::{At, Sim, SimulatedFault, Times, build, killed};

/// The planner that `ringwise apply` uses.
struct Again {
    sim: Arc<Sim>,
    intent: Intent,
    plans: Mutex<Vec<Plan>>,
}

impl std::fmt::Debug for Again {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Again").field("intent", &self.intent).finish_non_exhaustive()
    }
}

impl Again {
    fn new(sim: &Arc<Sim>, intent: Intent) -> Arc<Self> {
        Arc::new(Self { sim: sim.clone(), intent, plans: Mutex::default() })
    }

    fn plan(&self, learned: &[Learned]) -> Plan {
        let now = ringwise_discover::snapshot(&host(&self.sim), &Options::all()).unwrap();
        ringwise_plan::plan(&now, &self.intent, learned).unwrap()
    }

    fn first(&self) -> Request {
        let plan = self.plan(&[]);
        let already = already(&plan);
        Request { devices: plan.devices, steps: plan.steps, already, who: "root".into(), ..Request::default() }
    }
}

fn already(plan: &Plan) -> Vec<Setting> {
    plan.target.iter().filter(|t| !plan.steps.iter().any(|s| s.setting == **t)).cloned().collect()
}

impl Planner for Again {
    fn plan_again(&self, _: &Arc<dyn Host>, learned: &[Learned], made: &[CreatedObject]) -> Result<NewPlan, NoPlan> {
        let hands = ManualChanges { made: made.to_vec(), ..ManualChanges::default() };
        let now = ringwise_discover::snapshot(&host(&self.sim), &Options::all()).unwrap();
        let plan = ringwise_plan::plan_around(&now, &self.intent, learned, &hands).unwrap();
        self.plans.lock().unwrap().push(plan.clone());
        let unmet = plan.refused.iter().filter(|r| r.needed).filter_map(|r| r.address.clone()).collect();
        Ok(NewPlan { already: already(&plan), unmet, steps: plan.steps })
    }
}

fn policy_with(planner: &Arc<Again>) -> Policy {
    Policy { planner: Some(planner.clone()), ..policy() }
}

fn balanced() -> Intent {
    Intent::default()
}

/// Eight queues of one NIC, as a driver sets them up; interrupts of the last four cannot be moved.
fn half() -> Arc<Sim> {
    let sim = Arc::new(Sim::new(&build::host(8, 1).mqnic("mq0", 0, 8).done()));
    let vectors: Vec<_> = look(&sim).nic("mq0").unwrap().queue_vectors().map(|v| v.irq).collect();
    sim.outside(|h| {
        for irq in &vectors {
            h.write(&format!("/proc/irq/{irq}/smp_affinity_list"), b"0\n").unwrap();
        }
    });
    for irq in &vectors[4..] {
        let at = At::Matching(format!("/proc/irq/{irq}/smp_affinity_list"));
        sim.fault(SimulatedFault::Fail { at, errno: EIO, times: Times::Always });
    }
    sim
}

fn go(sim: &Arc<Sim>, dir: &Dir, again: &Arc<Again>, events: &mut Vec<Event>) -> Outcome {
    let mut note = |e: &Event| events.push(e.clone());
    ringwise_apply::run(&host(sim), &again.first(), &dir.store(), &policy_with(again), &mut note).unwrap()
}

#[test]
fn what_builds_on_a_refused_interrupt_is_planned_again() {
    let (sim, dir) = (half(), Dir::new());
    let again = Again::new(&sim, balanced());
    let first = again.first();
    let mut events = Vec::new();
    let out = go(&sim, &dir, &again, &mut events);
    let stuck: Vec<Address> = (4..8).map(|q| Address::IrqCpus { dev: "mq0".into(), of: VectorName::Rx(q) }).collect();
    assert_eq!((out.verdict, out.exit_status(), out.refused.len()), (RunResult::Applied, 3, 4), "{out:#?}");
    assert_eq!(out.unmet, stuck);
    assert!(out.refused.iter().all(|r| r.failure.errno == Some(EIO)));
    // All four in one new plan, and XPS follows the interrupts to their present CPUs.
    assert_eq!(again.plans.lock().unwrap().len(), 1);
    assert_eq!(events.iter().filter(|e| matches!(e, Event::Replanned { .. })).count(), 1);
    let last = again.plans.lock().unwrap().last().cloned().unwrap();
    let on = |q: u32| last.layout[0].queues.iter().find(|p| p.queue == q).and_then(|p| p.cpu);
    assert!((4..8).all(|q| on(q) == Some(ringwise_model::CpuId(0))), "{:?}", last.layout);
    let now = look(&sim);
    let xps = first.steps.iter().map(|s| &s.setting).filter(|s| s.address().unwrap().family() == Family::Xps);
    assert!(xps.clone().any(|s| !compare(s, &now).holds()), "{xps:?}");
    assert!(last.target.iter().all(|s| compare(s, &now).holds()));
    // The new plan is what is requested from now on: no setting differs, and nothing is left to do.
    let verify = ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap();
    assert_eq!((verify.exit_status(), verify.drifted().count()), (0, 0));
    assert!(verify.settings.iter().all(|s| !stuck.contains(&s.want.address().unwrap())));
    assert!(again.plan(&dir.store().learned().unwrap()).steps.is_empty());
}

#[test]
fn undone_it_is_as_before_the_first_plan() {
    let (sim, dir) = (half(), Dir::new());
    let before = look(&sim);
    assert_eq!(go(&sim, &dir, &Again::new(&sim, balanced()), &mut Vec::new()).exit_status(), 3);
    assert!(!differing(&before, &look(&sim)).is_empty());
    sim.clear_faults();
    let out = rollback(&sim, &dir, 1, &policy()).unwrap();
    assert_eq!((out.verdict, out.exit_status()), (RunResult::Applied, 0), "{out:#?}");
    assert_eq!(differing(&before, &look(&sim)), [""; 0]);
}

#[test]
fn a_driver_without_channels_costs_the_goal_nothing() {
    let sim = Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 2).igb("eth1", 0, 2).done()));
    let at = At::Matching("channels-set eth1".into());
    sim.fault(SimulatedFault::Fail { at, errno: EOPNOTSUPP, times: Times::Always });
    let dir = Dir::new();
    let intent = Intent { goal: Goal::Forward, allow_disruption: true, ..balanced() };
    let again = Again::new(&sim, intent);
    let first = again.first();
    let asked = |dev: &str| {
        let of = |s: &&ringwise_knob::Step| s.setting.address() == Some(Address::Channels { dev: dev.into() });
        first.steps.iter().find(of).map(|s| s.setting.clone())
    };
    let (eth0, eth1) = (asked("eth0").expect("more queues"), asked("eth1").expect("more queues"));
    let out = go(&sim, &dir, &again, &mut Vec::new());
    assert_eq!((out.verdict, out.exit_status()), (RunResult::Applied, 0), "{out:#?}");
    assert_eq!(out.refused.iter().map(|r| &r.asked).collect::<Vec<_>>(), [&eth1]);
    // The kernel was asked before anything was changed, so no write was refused.
    assert!(!sim.log().iter().any(|w| w.contains("channels-set eth1")), "{:?}", sim.log());
    let now = look(&sim);
    assert!(compare(&eth0, &now).holds() && !compare(&eth1, &now).holds());
    // The two queues that eth1 has are still placed.
    let placed = out.applied.iter().filter(|s| s.address().is_some_and(|a| a.dev() == Some("eth1")));
    assert!(placed.filter(|s| s.address().unwrap().family() == Family::Irq).count() > 0, "{:?}", out.applied);
    assert!(again.plan(&dir.store().learned().unwrap()).steps.is_empty());
}

#[test]
fn what_the_user_named_is_not_replaced_by_another_plan() {
    let sim = Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 2).igb("eth1", 0, 2).done()));
    let at = At::Matching("channels-set eth1".into());
    sim.fault(SimulatedFault::Fail { at, errno: EOPNOTSUPP, times: Times::Always });
    let (dir, before) = (Dir::new(), look(&sim));
    let again = Again::new(&sim, Intent { queues: Some(4), allow_disruption: true, ..balanced() });
    let out = go(&sim, &dir, &again, &mut Vec::new());
    assert_eq!((out.verdict, out.exit_status()), (RunResult::PutBack, 4), "{out:#?}");
    assert_eq!(out.failed.as_ref().and_then(|f| f.errno), Some(EOPNOTSUPP));
    assert_eq!(dir.store().learned().unwrap().len(), 1, "a driver without such a call has it at no time");
    assert!(again.plans.lock().unwrap().is_empty());
    assert_eq!(differing(&before, &look(&sim)), [""; 0]);
    // The link of eth0, whose channels would have been set first, never went down.
    assert_eq!(sim.log(), [""; 0]);
}

/// Always proposes what is refused, whatever was learned.
#[derive(Debug)]
struct Stubborn(Request, Mutex<u32>);

impl Planner for Stubborn {
    fn plan_again(&self, _: &Arc<dyn Host>, _: &[Learned], _: &[CreatedObject]) -> Result<NewPlan, NoPlan> {
        *self.1.lock().unwrap() += 1;
        Ok(NewPlan { steps: self.0.steps.clone(), ..NewPlan::default() })
    }
}

#[test]
fn a_planner_that_does_not_learn_is_called_a_bounded_number_of_times() {
    for (how, verdict) in [(IfRefused::Skip, RunResult::Applied), (IfRefused::Replan, RunResult::PutBack)] {
        let (sim, dir) = (half(), Dir::new());
        let request = request_if(&look(&sim), &[irq("mq0", 5, "5")], how);
        let planner = Arc::new(Stubborn(request.clone(), Mutex::default()));
        let policy = Policy { planner: Some(planner.clone()), ..policy() };
        let out = ringwise_apply::run(&host(&sim), &request, &dir.store(), &policy, &mut |_| {}).unwrap();
        assert_eq!(out.verdict, verdict);
        assert!((1..=8).contains(&*planner.1.lock().unwrap()));
    }
}

#[test]
fn the_guard_knows_the_way_back_from_the_new_plan() {
    let (sim, dir, guard) = (half(), Dir::new(), Here::default());
    let again = Again::new(&sim, balanced());
    let policy = Policy { planner: Some(again.clone()), ..guard.policy() };
    let out = ringwise_apply::run(&host(&sim), &again.first(), &dir.store(), &policy, &mut |_| {}).unwrap();
    assert_eq!(out.exit_status(), 3);
    assert_eq!(guard.state.lock().unwrap().begun, 2, "once for each plan");
}

#[test]
fn killed_at_every_write_it_is_recovered() {
    let writes = {
        let (sim, dir) = (half(), Dir::new());
        go(&sim, &dir, &Again::new(&sim, balanced()), &mut Vec::new());
        sim.writes()
    };
    assert!(writes > 12, "{writes}");
    for k in 0..writes {
        let (sim, dir) = (half(), Dir::new());
        let before = look(&sim);
        let again = Again::new(&sim, balanced());
        let request = again.first();
        sim.fault(SimulatedFault::KillAfter { at: At::Write(k) });
        let (store, policy) = (mortal(&dir, &sim), policy_with(&again));
        assert!(killed(|| _ = ringwise_apply::run(&host(&sim), &request, &store, &policy, &mut |_| {})), "write {k}");
        sim.clear_faults();
        let out = recover(&sim, &dir).unwrap();
        assert_eq!(out.verdict, RunResult::Recovered, "write {k}: {out:#?}");
        assert_eq!(differing(&before, &look(&sim)), [""; 0], "write {k}");
    }
}

/// What the first plan created for a group is removed by the plan without its flow rules, not by the next run.
#[test]
fn the_share_of_a_group_that_gets_no_flows_is_taken_back_in_the_same_run() {
    let sim = Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 2).done()));
    let at = At::Matching("ETHTOOL_SRXCLSRLINS".into());
    sim.fault(SimulatedFault::Fail { at, errno: EOPNOTSUPP, times: Times::Always });
    let (dir, before) = (Dir::new(), look(&sim));
    let wish = GroupWish {
        name: "latency".into(),
        dev: "eth0".into(),
        policy: "latency".into(),
        queues: GroupQueues::Count(1),
        cpus: None,
        weight: None,
        context: false,
        flows: vec![Flow::Match { flow: "udp4".into(), fields: [("dst-port".to_string(), "9".to_string())].into() }],
        by: ConfiguredBy::File { path: "mixed.toml".into(), line: 3 },
    };
    let again = Again::new(&sim, Intent { goal: Goal::Mixed, groups: vec![wish], ..balanced() });
    let table = Address::RssTable { dev: "eth0".into() };
    let rss = |s: &ringwise_model::Snapshot| ringwise_knob::live(s, &table).known().cloned().unwrap();
    let share = again.first().steps.iter().map(|s| s.setting.clone()).find(|s| s.address() == Some(table.clone()));
    assert_ne!(share.expect("queue 0 leaves the table"), rss(&before));
    let out = go(&sim, &dir, &again, &mut Vec::new());
    assert_eq!(out.verdict, RunResult::Applied, "{out:#?}");
    assert_eq!(out.refused.len(), 1, "{:#?}", out.refused);
    assert_eq!(rss(&look(&sim)), rss(&before));
    // A second run removes nothing.
    let now = look(&sim);
    let made = ringwise_apply::verify(&host(&sim), &dir.store(), &policy()).unwrap().made;
    let hands = ManualChanges { made, ..ManualChanges::default() };
    let learned = dir.store().learned().unwrap();
    let next = ringwise_plan::plan_around(&now, &again.intent, &learned, &hands).unwrap();
    assert!(next.steps.is_empty(), "{:#?}", next.steps);
}

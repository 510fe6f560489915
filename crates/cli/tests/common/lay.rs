//! Applies plans to a simulated host and its records, one after the other.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringwise_apply::{Event, Outcome, Policy, Request, Store};
use ringwise_discover::Options;
use ringwise_knob::{Address, IfRefused, Learned, compare, live_of_device};
use ringwise_model::{Intent, Requested, Snapshot};
use ringwise_plan::{ManualChanges, Plan, plan_around};
use ringwise_sys::Host;
use ringwise_testkit::dir::Dir;
use ringwise_testkit::sim::{Killed, Sim, killed};

pub(crate) struct Lay {
    pub sim: Arc<Sim>,
    dir: Dir,
}

pub(crate) fn policy() -> Policy {
    Policy { deadline: Duration::from_secs(60), ..Policy::default() }
}

impl Lay {
    pub(crate) fn on(s: &Snapshot) -> Self {
        Self { sim: Arc::new(Sim::new(s)), dir: Dir::new() }
    }

    fn host(&self) -> Arc<dyn Host> {
        self.sim.clone()
    }

    pub(crate) fn look(&self) -> Snapshot {
        // A machine that runs builds at the same time may be slow.
        let options = Options { deadline: Duration::from_secs(60), ..Options::all() };
        ringwise_discover::snapshot(&self.host(), &options).unwrap()
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(Some(&self.dir.0)).with_socket_name(format!("ringwise-test{}", self.dir.0.display()))
    }

    /// A store whose process dies with the host: nothing is written after that.
    fn mortal(&self) -> Store {
        let sim = self.sim.clone();
        self.store().with_hook(Arc::new(move |_: &Path| {
            if sim.is_dead() {
                std::panic::panic_any(Killed);
            }
            Ok(())
        }))
    }

    pub(crate) fn try_plan(&self, i: &Intent) -> Result<Plan, ringwise_plan::Refusal> {
        let s = self.look();
        let v = ringwise_apply::verify_in(&s, &self.store()).unwrap();
        plan_around(
            &s,
            i,
            &[],
            &ManualChanges { keep: Vec::new(), mark: v.manual_changes(), made: v.made, ..ManualChanges::default() },
        )
    }

    pub(crate) fn plan(&self, i: &Intent) -> Plan {
        self.try_plan(i).unwrap()
    }

    /// Includes what drivers were found to refuse.
    pub(crate) fn plan_knowing(&self, i: &Intent, learned: &[Learned]) -> Plan {
        let s = self.look();
        let v = ringwise_apply::verify_in(&s, &self.store()).unwrap();
        plan_around(
            &s,
            i,
            learned,
            &ManualChanges { keep: Vec::new(), mark: v.manual_changes(), made: v.made, ..ManualChanges::default() },
        )
        .unwrap()
    }

    fn request(p: &Plan, all_or_nothing: bool) -> Request {
        let mut steps = p.steps.clone();
        if all_or_nothing {
            steps.iter_mut().for_each(|s| s.if_refused = IfRefused::PutBack);
        }
        let already = p.target.iter().filter(|t| !p.steps.iter().any(|s| s.setting == **t)).cloned().collect();
        Request {
            devices: p.devices.clone(),
            steps,
            already,
            title: ringwise_model::Title::Goal { goal: p.intent.goal },
            who: "root".into(),
            argv: vec!["ringwise".into(), "apply".into()],
            requested: Some(Requested { flags: None, intent: p.intent.clone() }),
            ..Request::default()
        }
    }

    pub(crate) fn run(&self, p: &Plan, all_or_nothing: bool) -> Outcome {
        let request = Self::request(p, all_or_nothing);
        ringwise_apply::run(&self.host(), &request, &self.store(), &policy(), &mut |_: &Event| {}).unwrap()
    }

    pub(crate) fn run_with(&self, p: &Plan, policy: &Policy) -> Outcome {
        let request = Self::request(p, false);
        ringwise_apply::run(&self.host(), &request, &self.store(), policy, &mut |_: &Event| {}).unwrap()
    }

    pub(crate) fn apply(&self, i: &Intent) -> Outcome {
        self.run(&self.plan(i), false)
    }

    /// True: the process was killed during the run.
    pub(crate) fn dies(&self, p: &Plan) -> bool {
        let request = Self::request(p, true);
        killed(|| _ = ringwise_apply::run(&self.host(), &request, &self.mortal(), &policy(), &mut |_: &Event| {}))
    }

    pub(crate) fn recover(&self) -> Outcome {
        ringwise_apply::recover(&self.host(), &self.store(), &policy(), &mut |_| {}).unwrap()
    }

    pub(crate) fn rollback(&self, id: u64) -> Outcome {
        let r = Request {
            who: "root".into(),
            argv: vec!["ringwise".into(), "rollback".into(), id.to_string()],
            ..Request::default()
        };
        ringwise_apply::rollback(&self.host(), &self.store(), id, &r, &policy(), &mut |_| {}).unwrap()
    }
}

/// Settings of `before` that are not in effect now, and objects that did not exist then, including rules and contexts.
pub(crate) fn differing(before: &Snapshot, now: &Snapshot) -> Vec<String> {
    let had = live_of_device(before, "eth0");
    let more: Vec<Address> = live_of_device(now, "eth0").into_keys().filter(|a| !had.contains_key(a)).collect();
    let differs = had.into_values().filter(|s| !compare(s, now).holds());
    let differs = differs.map(|s| format!("{} was {}", s.address().unwrap(), s.value_text()));
    differs.chain(more.into_iter().map(|a| format!("{a} was not there"))).collect()
}

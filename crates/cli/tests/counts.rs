//! One transaction on a simulated host: `plan`, `apply`, `history` and `status` report the same counts.

use std::sync::Arc;
use std::time::Duration;

use ringwise_apply::{Outcome, Policy, Request, Store};
use ringwise_discover::Options;
use ringwise_model::{Intent, Snapshot};
use ringwise_render::outcome::{self, ValuesBefore};
use ringwise_render::status::{self, HostStatus, StatusOptions};
use ringwise_render::verify_history;
use ringwise_sys::Host;
use ringwise_testkit::dir::Dir;
use ringwise_testkit::sim::{Sim, build};
use ringwise_text::Style;

struct Case {
    dir: Dir,
    host: Arc<dyn Host>,
    policy: Policy,
}

impl Case {
    fn new() -> Self {
        let sim = Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 4).igb("eth1", 0, 4).done()));
        let policy = Policy { deadline: Duration::from_secs(5), ..Policy::default() };
        Self { dir: Dir::new(), host: sim, policy }
    }

    fn store(&self) -> Store {
        Store::open(Some(&self.dir.0)).with_socket_name(format!("ringwise-test{}", self.dir.0.display()))
    }

    fn look(&self) -> Snapshot {
        ringwise_discover::snapshot(&self.host, &Options::all()).unwrap()
    }

    /// Printed lines of the run, and its outcome.
    fn apply(&self, request: &Request) -> (Vec<String>, Outcome) {
        let style = Style::plain(None);
        let mut lines = Vec::new();
        let mut print = |e: &ringwise_apply::Event| lines.extend(outcome::event(e, &ValuesBefore::new(), "", &style));
        let out = ringwise_apply::run(&self.host, request, &self.store(), &self.policy, &mut print).unwrap();
        (lines, out)
    }

    fn status(&self) -> String {
        let s = self.look();
        let list = ringwise_apply::history(&self.store(), &s.host).unwrap();
        let st = HostStatus {
            verify: Some(ringwise_apply::verify_in(&s, &self.store()).unwrap()),
            last: verify_history::last_in_effect(&list).cloned(),
            rolled_back: verify_history::last_rollback(&list).cloned(),
            ..HostStatus::default()
        };
        status::page(&s, &st, StatusOptions::default(), &Style::plain(None))
    }

    fn history(&self) -> String {
        let list = ringwise_apply::history(&self.store(), &self.look().host).unwrap();
        verify_history::history(&list, false, &Style::plain(None))
    }
}

fn line<'t>(text: &'t str, begin: &str) -> &'t str {
    text.lines().map(str::trim_start).find(|l| l.starts_with(begin)).unwrap_or_else(|| panic!("no {begin:?} in {text}"))
}

#[test]
fn one_transaction_has_one_number_of_changes() {
    let c = Case::new();
    let s = c.look();
    let plan = ringwise_plan::plan(&s, &Intent::default(), &[]).unwrap();
    let n = plan.steps.len();
    assert!(n > 4, "{n}");
    let summary = ringwise_emit::summary::summary(&plan);
    assert!(summary.starts_with(&format!("{n} changes on ")), "{summary}");
    let steps: Vec<_> = plan.steps.iter().map(|s| s.setting.clone()).collect();
    let already: Vec<_> = plan.target.iter().filter(|t| !steps.contains(t)).cloned().collect();
    let so = already.len();
    let (devices, steps) = (plan.devices.clone(), plan.steps.clone());
    let request = Request {
        devices,
        steps,
        already,
        title: ringwise_model::Title::Goal { goal: ringwise_model::Goal::Balanced },
        who: "root".into(),
        ..Request::default()
    };
    let (lines, out) = c.apply(&request);
    assert!(lines.iter().any(|l| l.ends_with(&format!("transaction 1 begins: {n} changes"))), "{lines:#?}");
    let summary = outcome::summary(&out, outcome::Run::Apply, &Style::plain(None));
    assert!(summary.contains(&format!(": {n} changes, all read back")), "{summary}");
    assert!(line(&c.history(), "1 ").contains(&format!("goal balanced, {n} changes")), "{}", c.history());
    let status = c.status();
    let all = line(&status, "now");
    let want = match so {
        0 => format!("all {n} settings as applied"),
        _ => format!("all {} settings as applied ({n} changes, the others had these values before)", n + so),
    };
    assert!(all.ends_with(&want), "{all:?} is not {want:?}");
}

/// After a rollback nothing is in effect, and no page contradicts this.
#[test]
fn after_a_rollback_nothing_is_in_force() {
    let c = Case::new();
    let s = c.look();
    let plan = ringwise_plan::plan(&s, &Intent::default(), &[]).unwrap();
    let (devices, steps) = (plan.devices.clone(), plan.steps);
    let request = Request {
        devices,
        steps,
        title: ringwise_model::Title::Goal { goal: ringwise_model::Goal::Balanced },
        who: "root".into(),
        ..Request::default()
    };
    c.apply(&request);
    assert!(line(&c.history(), "1 ").ends_with("in effect"), "{}", c.history());
    let back = Request { who: "root".into(), ..Request::default() };
    let out = ringwise_apply::rollback(&c.host, &c.store(), 0, &back, &c.policy, &mut |_| {}).unwrap();
    assert_eq!(out.transaction, Some(2));
    let history = c.history();
    assert!(!history.contains("in effect"), "{history}");
    assert!(line(&history, "2 ").ends_with("done") && line(&history, "1 ").ends_with("undone by 2"), "{history}");
    let status = c.status();
    let applied = line(&status, "applied");
    assert!(applied.ends_with("nothing (transaction 2: rollback to the initial state)"), "{status}");
}

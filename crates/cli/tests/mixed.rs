//! Goal mixed from the plan through the transaction: groups, contexts, rules and per-queue moderation, and back.

use std::process::Command;

use crate::common::lay::{Lay, differing};
use crate::common::schema::check;
use crate::common::{golden, newest_schema, root};
use ringwise_apply::{Outcome, RunResult};
use ringwise_knob::{Address, Setting, compare};
use ringwise_model::errno::{EIO, ENOSPC, EOPNOTSUPP};
use ringwise_model::{
    ConfiguredBy, Flow, Goal, GroupQueues, GroupWish, Intent, Knob, NotSampled, Snapshot, Table, Wish,
};
use ringwise_plan::{BulkPolicy, GroupSizes, GroupsUndecided, Plan, SampledGroups};
use ringwise_render::plan as page;
use ringwise_testkit::lane::everything;
use ringwise_testkit::sim::{At, SimulatedFault, Times, build};
use ringwise_text::Style;

/// A NIC with eight queues that supports all knobs.
fn sim() -> Snapshot {
    build::host(8, 2).kernel("6.18.15").mqnic("eth0", 0, 8).linked().done()
}

fn intent() -> Intent {
    let port = |n: u32| Flow::Match { flow: "tcp4".into(), fields: [("dst-port".to_string(), n.to_string())].into() };
    let latency = GroupWish {
        name: "latency".into(),
        dev: "eth0".into(),
        policy: "latency".into(),
        queues: GroupQueues::Count(2),
        cpus: None,
        weight: None,
        context: false,
        flows: vec![port(443), port(53)],
        by: ConfiguredBy::File { path: "ringwise.toml".into(), line: 9 },
    };
    Intent { goal: Goal::Mixed, groups: vec![latency], ..Intent::default() }
}

#[test]
fn all_of_it_and_the_second_plan_is_empty() {
    let lay = Lay::on(&sim());
    let p = lay.plan(&intent());
    let has = |f: fn(&Address) -> bool| p.steps.iter().filter_map(|s| s.setting.address()).filter(f).count();
    assert_eq!(has(|a| matches!(a, Address::QueueCoalesce { .. })), 8);
    assert_eq!(has(|a| matches!(a, Address::RssContext { .. })), 1);
    assert_eq!(has(|a| matches!(a, Address::FlowRule { .. })), 2);
    assert_eq!(has(|a| matches!(a, Address::RssTable { .. })), 1);
    let out = lay.run(&p, false);
    assert_eq!((out.verdict, out.refused.len(), out.failed.is_none()), (RunResult::Applied, 0, true), "{out:#?}");
    lay.sim.traffic("eth0");
    let again = lay.plan(&intent());
    assert!(again.steps.is_empty(), "{:#?}", again.steps);
    assert_eq!(again.groups, p.groups);
}

/// igb has moderation for the whole device only, refuses 5 us, and any `tx-usecs` if one interrupt serves both directions.
#[test]
fn on_igb_the_policy_is_what_it_takes() {
    for (kernel, usecs) in [("6.12.48", 62), ("6.18.15", 10)] {
        let lay = Lay::on(&build::host(8, 2).kernel(kernel).igb("eth0", 0, 8).linked().done());
        let mixed = Intent { goal: Goal::Mixed, ..Intent::default() };
        let out = lay.apply(&mixed);
        assert_eq!((out.verdict, out.refused.len(), out.instead.len()), (RunResult::Applied, 0, 0), "{out:#?}");
        assert_eq!(lay.look().nics[0].coalesce.known().unwrap().0["rx-usecs"], usecs);
        let again = lay.plan(&mixed);
        assert!(again.steps.is_empty(), "{:#?}", again.steps);
    }
}

/// Values beside a refused value are applied, and reported.
#[test]
fn on_igb_a_refused_wish_takes_nothing_with_it() {
    let lay = Lay::on(&build::host(8, 2).kernel("6.12.48").igb("eth0", 0, 8).linked().done());
    let params = [("rx-usecs".to_string(), 62), ("tx-usecs".to_string(), 20)].into();
    let wish = Wish {
        dev: Some("eth0".into()),
        knob: Knob::Coalesce { queues: None, params },
        by: ConfiguredBy::Flag { name: "--set".into() },
        params_by: Default::default(),
    };
    let out = lay.apply(&Intent { wishes: vec![wish], ..Intent::default() });
    assert_eq!((out.verdict, out.instead.len()), (RunResult::Applied, 1), "{out:#?}");
    assert_eq!(out.instead[0].failure.errno, Some(22));
    assert_eq!(lay.look().nics[0].coalesce.known().unwrap().0["rx-usecs"], 62);
}

/// By ioctl (6.12) and by netlink: contexts 1 and 2 do not exist, neither before nor after.
#[test]
fn a_context_has_the_requested_number() {
    for kernel in ["6.12.48", "6.18.15"] {
        let lay = Lay::on(&build::host(8, 2).kernel(kernel).mqnic("eth0", 0, 8).linked().done());
        let knob = Knob::RssTable { context: Some(3), table: Table::Equal { queues: 2, start: 6 } };
        let wish = Wish {
            dev: Some("eth0".into()),
            knob,
            by: ConfiguredBy::Flag { name: "--set".into() },
            params_by: Default::default(),
        };
        let i = Intent { wishes: vec![wish], ..Intent::default() };
        assert_eq!(lay.apply(&i).verdict, RunResult::Applied, "{kernel}");
        let now = lay.look();
        let contexts = now.nics[0].rss.known().unwrap().contexts.known().unwrap();
        assert_eq!(contexts.keys().collect::<Vec<_>>(), [&3], "{kernel}");
        assert!(lay.plan(&i).steps.is_empty(), "{kernel}");
    }
}

/// How many writes the whole plan needs.
fn writes() -> (Plan, usize) {
    let first = Lay::on(&sim());
    let p = first.plan(&intent());
    assert_eq!(first.run(&p, true).verdict, RunResult::Applied);
    let writes = first.sim.writes();
    assert!(writes > 20, "{writes}");
    (p, writes)
}

/// All settings are in effect except refused or replaced ones; only those are planned again, and the next apply sets them.
fn all_but_that(lay: &Lay, p: &Plan, out: &Outcome, what: &str) {
    lay.sim.traffic("eth0");
    let refused = out.refused.iter().map(|r| &r.asked).chain(out.instead.iter().map(|i| &i.asked));
    let lost: Vec<Address> = refused.filter_map(Setting::address).collect();
    let now = lay.look();
    for t in &p.target {
        let may = t.address().is_some_and(|a| lost.contains(&a));
        assert!(may || compare(t, &now).holds(), "{what}: {t:?}");
    }
    for i in &out.instead {
        assert!(compare(&i.kept, &now).holds(), "{what}: {:?}", i.kept);
    }
    let again = lay.plan(&intent());
    let planned: Vec<Address> = again.steps.iter().filter_map(|s| s.setting.address()).collect();
    assert!(!planned.is_empty() && planned.iter().all(|a| lost.contains(a)), "{what}: {planned:?}, lost {lost:?}");
    let second = lay.run(&again, false);
    assert_eq!((second.verdict, second.refused.len(), second.instead.len()), (RunResult::Applied, 0, 0), "{what}");
    lay.sim.traffic("eth0");
    assert!(lay.plan(&intent()).steps.is_empty(), "{what}");
}

#[test]
fn a_failure_at_every_write_puts_everything_back() {
    let (p, writes) = writes();
    for k in 0..writes {
        // As planned, where single steps may be refused, and all or nothing: in `make test` with each error in turn.
        let strictly = [EIO, ENOSPC, EOPNOTSUPP];
        let tried: Vec<_> = if everything() { strictly.to_vec() } else { vec![strictly[k % 3]] };
        for (errno, strict) in [(EIO, false)].into_iter().chain(tried.into_iter().map(|e| (e, true))) {
            let lay = Lay::on(&sim());
            let before = lay.look();
            lay.sim.fault(SimulatedFault::Fail { at: At::Write(k), errno, times: Times::Once });
            let out = lay.run(&p, strict);
            let what = format!("errno {errno} at write {k}: {:?}", out.failed);
            match out.verdict {
                // An alternative setting was used, or the step may be refused (an interrupt that cannot move).
                RunResult::Applied if !out.instead.is_empty() || (!strict && !out.refused.is_empty()) => {
                    all_but_that(&lay, &p, &out, &what);
                }
                RunResult::Applied => {
                    lay.sim.traffic("eth0");
                    assert!(lay.plan(&intent()).steps.is_empty(), "{what}");
                }
                RunResult::PutBack => assert_eq!(differing(&before, &lay.look()), Vec::<String>::new(), "{what}"),
                other => panic!("{what}: {other:?} {:?}", out.put_back_incomplete),
            }
        }
    }
}

#[test]
fn killed_at_every_write_it_is_recovered() {
    let (p, writes) = writes();
    for k in 0..writes {
        for at in [SimulatedFault::KillBefore { at: At::Write(k) }, SimulatedFault::KillAfter { at: At::Write(k) }] {
            let lay = Lay::on(&sim());
            let before = lay.look();
            let what = format!("{at:?}");
            lay.sim.fault(at);
            assert!(lay.dies(&p), "{what}");
            lay.sim.clear_faults();
            assert_eq!(lay.recover().verdict, RunResult::Recovered, "{what}");
            assert_eq!(differing(&before, &lay.look()), Vec::<String>::new(), "{what}");
        }
    }
}

fn at_80_columns(name: &str, host: &Snapshot, i: &Intent) {
    let lay = Lay::on(host);
    let (s, p) = (lay.look(), lay.plan(i));
    let out = page::text(
        &p,
        Some(&s),
        &page::PlanPageOptions { again: "--goal mixed".into(), ..page::PlanPageOptions::default() },
        &Style::plain(Some(80)),
    );
    for l in out.lines() {
        assert!(l.chars().count() <= 80, "{l}");
    }
    golden(name, &out);
    let wrong = check(&newest_schema("ringwise.plan"), &serde_json::to_value(&p).unwrap());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn for_people_with_flows() {
    at_80_columns("plan-mixed-80.txt", &sim(), &intent());
}

#[test]
fn for_people_with_48_queues_and_no_flows() {
    let host = build::host(48, 2).kernel("6.12.48").mqnic("eth0", 0, 48).done();
    at_80_columns("plan-mixed-48-80.txt", &host, &Intent { goal: Goal::Mixed, ..Intent::default() });
}

/// A recording without counters of two moments: the plan is as without the option, and reports it.
#[test]
fn a_recording_cannot_be_sampled() {
    let run = |more: &[&str]| {
        let file = root().join("fixtures/hosts/article48/tree.tar.gz").display().to_string();
        let mut args = vec!["plan", "-j", "--goal", "mixed", "--from", &file];
        args.extend(more);
        let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(&args).output().unwrap();
        assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
        serde_json::from_slice::<Plan>(&o.stdout).unwrap()
    };
    let (without, with) = (run(&[]), run(&["--sample", "2s"]));
    assert_eq!((&with.target, &with.groups), (&without.target, &without.groups));
    let why = GroupsUndecided::NotSampled { why: NotSampled::NotRecorded };
    let undecided = |s: &SampledGroups| s.sizes == GroupSizes::Kept { why } && s.policy == BulkPolicy::Kept { why };
    assert!(!with.sampled.is_empty() && with.sampled.iter().all(undecided), "{:?}", with.sampled);
    let said = |p: &Plan| p.warnings.iter().any(|w| w.contains("cannot be sampled"));
    assert!(said(&with) && !said(&without) && without.sampled.is_empty(), "{:?}", with.warnings);
}

/// An option that only plans have.
#[test]
fn a_sample_is_refused_where_it_has_no_meaning() {
    let refused = |args: &[&str]| {
        let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).output().unwrap();
        assert_eq!(o.status.code(), Some(2), "{args:?}");
        String::from_utf8(o.stderr).unwrap()
    };
    assert!(refused(&["persist", "--goal", "mixed", "--sample", "5s", "-n"]).contains("no boot samples"));
    assert!(refused(&["plan", "--sample", "10ms"]).contains("expected 1s to 24h; found 10ms"));
    assert!(refused(&["plan", "--sample", "--print-config"]).contains("--sample"));
}

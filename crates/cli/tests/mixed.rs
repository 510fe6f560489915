//! Goal mixed from the plan through the transaction: groups, contexts, rules and per-queue moderation, and back.

mod common;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use common::golden;
use common::schema::check;
use ringwise_apply::{Event, Outcome, Policy, Request, Store, Verdict};
use ringwise_cli::render::plan as page;
use ringwise_cli::style::Style;
use ringwise_discover::Options;
use ringwise_knob::{Address, IfRefused, compare, live_of_device};
use ringwise_model::{Flow, Goal, GroupQueues, GroupWish, Intent, Snapshot};
use ringwise_plan::{Plan, plan};
use ringwise_sys::Host;
use ringwise_testkit::sim::{At, Fault, Sim, Times, build};

/// Eight queues of a card that has all the knobs.
fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(8, 2).kernel("6.18.15").mqnic("eth0", 0, 8).linked().done()))
}

fn host(sim: &Arc<Sim>) -> Arc<dyn Host> {
    sim.clone()
}

fn look(sim: &Arc<Sim>) -> Snapshot {
    ringwise_discover::snapshot(&host(sim), &Options::all()).unwrap()
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
        said: "ringwise.toml line 9".into(),
    };
    Intent { goal: Goal::Mixed, groups: vec![latency], ..Intent::default() }
}

fn made(sim: &Arc<Sim>) -> Plan {
    plan(&look(sim), &intent(), &[]).unwrap()
}

/// Memory where there is some: what is tested is the order of writes, not the disk.
fn base() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        static N: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let n = N.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let dir = base().join(format!("ringwise-mixed-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(sim: &Arc<Sim>, p: &Plan, all_or_nothing: bool) -> Outcome {
    let mut steps = p.steps.clone();
    if all_or_nothing {
        steps.iter_mut().for_each(|s| s.if_refused = IfRefused::PutBack);
    }
    let request = Request {
        devices: p.devices.clone(),
        steps,
        title: "mixed".into(),
        who: "root".into(),
        command: "ringwise apply --goal mixed".into(),
        ..Request::default()
    };
    let dir = Dir::new();
    let policy = Policy { deadline: Duration::from_secs(5), ..Policy::default() };
    ringwise_apply::run(&host(sim), &request, &Store::open(Some(&dir.0)), &policy, &mut |_: &Event| {}).unwrap()
}

/// Settings of `before` that do not hold now.
fn differing(before: &Snapshot, now: &Snapshot) -> Vec<String> {
    let all = live_of_device(before, "eth0").into_values();
    all.filter(|s| !compare(s, now).holds())
        .map(|s| format!("{} was {}", s.address().unwrap(), s.value_text()))
        .collect()
}

/// Rules and contexts that were not there before.
fn left_behind(before: &Snapshot, now: &Snapshot) -> Vec<Address> {
    let had = live_of_device(before, "eth0");
    live_of_device(now, "eth0").into_keys().filter(|a| !had.contains_key(a)).collect()
}

#[test]
fn all_of_it_and_the_second_plan_is_empty() {
    let sim = sim();
    let p = made(&sim);
    let has = |f: fn(&Address) -> bool| p.steps.iter().filter_map(|s| s.setting.address()).filter(f).count();
    assert_eq!(has(|a| matches!(a, Address::QueueCoalesce { .. })), 8);
    assert_eq!(has(|a| matches!(a, Address::RssContext { .. })), 1);
    assert_eq!(has(|a| matches!(a, Address::FlowRule { .. })), 2);
    assert_eq!(has(|a| matches!(a, Address::RssTable { .. })), 1);
    let out = run(&sim, &p, false);
    assert_eq!((out.verdict, out.refused.len(), out.failed.is_none()), (Verdict::Applied, 0, true), "{out:#?}");
    sim.traffic("eth0");
    let again = made(&sim);
    assert!(again.steps.is_empty(), "{:#?}", again.steps);
    assert_eq!(again.groups, p.groups);
}

#[test]
fn a_failure_at_every_write_puts_everything_back() {
    let first = sim();
    let p = made(&first);
    assert_eq!(run(&first, &p, true).verdict, Verdict::Applied);
    let writes = first.writes();
    assert!(writes > 20, "{writes}");
    for k in 0..writes {
        for errno in [28, 95] {
            let sim = sim();
            let before = look(&sim);
            sim.fault(Fault::Fail { at: At::Write(k), errno, times: Times::Once });
            let out = run(&sim, &p, true);
            let now = look(&sim);
            let what = format!("errno {errno} at write {k}: {:?}", out.failed);
            match out.verdict {
                // A setting that another one stands by for.
                Verdict::Applied => assert!(!out.instead.is_empty() || out.failed.is_none(), "{what}"),
                Verdict::PutBack => {
                    assert_eq!(differing(&before, &now), Vec::<String>::new(), "{what}");
                    assert_eq!(left_behind(&before, &now), Vec::<Address>::new(), "{what}");
                }
                other => panic!("{what}: {other:?} {:?}", out.put_back_incomplete),
            }
        }
    }
}

fn at_80_columns(name: &str, sim: &Arc<Sim>, i: &Intent) {
    let s = look(sim);
    let p = plan(&s, i, &[]).unwrap();
    let out = page::text(&p, Some(&s), "--goal mixed", false, false, &Style::plain(Some(80)));
    for l in out.lines() {
        assert!(l.chars().count() <= 80, "{l}");
    }
    golden(name, &out);
    let schema = std::fs::read(common::root().join("schemas/ringwise.plan.v1.json")).unwrap();
    let wrong = check(&serde_json::from_slice(&schema).unwrap(), &serde_json::to_value(&p).unwrap());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn for_people_with_flows() {
    at_80_columns("plan-mixed-80.txt", &sim(), &intent());
}

#[test]
fn for_people_with_48_queues_and_no_flows() {
    let sim = Arc::new(Sim::new(&build::host(48, 2).kernel("6.12.48").mqnic("eth0", 0, 48).done()));
    at_80_columns("plan-mixed-48-80.txt", &sim, &Intent { goal: Goal::Mixed, ..Intent::default() });
}

//! Recorded lab hosts, tuned for each goal, have no error and no warning except those listed here.

use std::path::{Path, PathBuf};

use ringwise_check::found::SteerFound;
use ringwise_check::{Finding, GoalOrigin, Report, Severity};
use ringwise_model::*;

use crate::world::World;

fn hosts() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    let mut all: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().flatten().map(|e| e.path()).collect();
    all.retain(|p| p.join("snapshot.json").exists());
    all.sort();
    all
}

/// A captured host; the files that only `check` reads are those of a tuned host.
fn world(host: &Path, goal: Goal) -> World {
    let mut w = World::tuned();
    w.s = serde_json::from_slice(&std::fs::read(host.join("snapshot.json")).unwrap()).unwrap();
    w.t = None;
    w.intent.goal = goal;
    w.from = GoalOrigin::ActiveTransaction;
    w
}

/// Findings that remain after apply: without `--allow-disruption` ringwise does not change the number of queues.
const EXPECTED: &[(&str, &str, &[&str])] = &[
    // 8 queues, and one of 8 CPUs is offline.
    ("lab-isolated-6.12", "mq0", &["Q02", "Q03"]),
    // A test left incomplete RFS settings there. Their origin is unknown, so they are reported and kept.
    ("lab-router16-newest", "", &["Q10"]),
];

fn unexpected(host: &str, r: &Report) -> Vec<String> {
    let bad = r.findings.iter().filter(|f| f.severity > Severity::Info);
    let is_expected = |f: &&ringwise_check::Finding| {
        EXPECTED.iter().any(|(h, d, rules)| {
            *h == host && (d.is_empty() || f.dev.as_deref() == Some(d)) && rules.contains(&f.rule.as_str())
        })
    };
    let of = |f: &ringwise_check::Finding| {
        let under: Vec<String> = f.consequences.iter().map(|c| format!("{} {}", c.rule, c.text)).collect();
        format!("{host} {} {} {} {under:?}", f.rule, f.dev.as_deref().unwrap_or("host"), f.text)
    };
    bad.filter(|f| !is_expected(f)).map(of).collect()
}

#[test]
fn tuned_hosts_have_no_findings() {
    let mut wrong = Vec::new();
    let all = hosts();
    assert!(all.len() > 10);
    for h in &all {
        let name = h.file_name().unwrap().to_string_lossy().into_owned();
        for goal in [Goal::Balanced, Goal::Forward, Goal::Rpc, Goal::Stream, Goal::Latency] {
            let mut w = world(h, goal);
            w.apply();
            wrong.extend(unexpected(&name, &w.judge()).into_iter().map(|t| format!("{goal}: {t}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Interfaces that are planned one by one may share CPUs. Only this is reported.
#[test]
fn tuned_one_interface_after_the_other_only_crowded_cpus_are_reported() {
    let mut wrong = Vec::new();
    for h in hosts() {
        let name = h.file_name().unwrap().to_string_lossy().into_owned();
        let mut w = world(&h, Goal::Balanced);
        let devs: Vec<String> = w.s.tunable().filter(|n| n.link_is_up()).map(|n| n.name().to_string()).collect();
        for d in devs {
            w.intent.devs = vec![d];
            w.apply();
        }
        w.intent.devs.clear();
        let found = unexpected(&name, &w.judge());
        wrong.extend(found.into_iter().filter(|t| t.split(' ').nth(1) != Some("A15")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Eight queues on four CPUs, two on each: no placement is better, so their order does not matter.
#[test]
fn queues_that_must_share_are_no_finding() {
    let h = hosts().into_iter().find(|h| h.ends_with("lab-interleaved-6.12")).unwrap();
    let r = world(&h, Goal::Balanced).judge();
    let of =
        |rule: &str| r.findings.iter().filter(|f| f.rule == rule).filter_map(|f| f.dev.clone()).collect::<Vec<_>>();
    assert_eq!(of("A01"), Vec::<String>::new());
    assert!(of("Q14").contains(&"eth1".to_string()), "{:?}", r.ids());
}

/// A configured CPU takes effect with the next interrupt, and RPS fits the CPU where the interrupt will be.
#[test]
fn a_pending_interrupt_move_counts_as_done() {
    let mut w = World::tuned();
    w.rps("1-3");
    let far = |r: &Report| r.ids().contains(&"Q07");
    assert!(!far(&w.judge()));
    for v in &mut w.nic().vectors {
        v.effective = Fact::Known("9".parse().unwrap());
    }
    assert!(!far(&w.judge()), "all of them are asked to be on the first node");
    for v in &mut w.nic().vectors {
        v.asked = v.effective.clone();
    }
    assert!(far(&w.judge()));
}

/// The order that `docs/check.md` describes: by severity, and what was measured before what follows from settings. What needs
/// no action is never shown as the cause of a fault.
#[test]
fn findings_with_consequences_come_first() {
    let mut seen = 0;
    for h in hosts() {
        for goal in [Goal::Balanced, Goal::Forward, Goal::Rpc, Goal::Stream, Goal::Latency] {
            let r = world(&h, goal).judge();
            let rates = |f: &Finding| ringwise_check::find(&f.rule).unwrap().rates;
            let key = |f: &Finding| (std::cmp::Reverse(f.severity), !rates(f));
            assert!(r.findings.is_sorted_by_key(key), "{} {goal}", h.display());
            // R0.09 is about a CPU that is no fault.
            for f in r.findings.iter().filter(|f| f.rule == "R0.09") {
                assert_eq!(f.severity, Severity::Info, "{} {goal}: {}", h.display(), f.text);
                seen += 1;
            }
        }
    }
    assert!(seen > 0);
}

/// A forwarded packet from a CPU without a mask is sent through the queue with the number of its receive queue.
#[test]
fn cpus_without_a_mask_matter_less_on_a_router() {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts/lab-router16-newest");
    let severities = |goal| {
        let r = world(&host, goal).judge();
        let all: Vec<Finding> =
            r.findings.iter().flat_map(|f| std::iter::once(f).chain(&f.consequences)).cloned().collect();
        let of = |f: &&Finding| f.found == Some(SteerFound::CpusWithoutXps { cpus: "2-15".parse().unwrap() }.into());
        all.iter().filter(of).map(|f| (f.rule.clone(), f.dev.clone(), f.severity)).collect::<Vec<_>>()
    };
    let of = |severity| ["eth0", "eth2"].map(|dev| ("Q16".to_string(), Some(dev.to_string()), severity)).to_vec();
    assert_eq!(severities(Goal::Forward), of(Severity::Info));
    assert_eq!(severities(Goal::Rpc), of(Severity::Warning));
}

//! Flow steering rules on the simulated host: written, replaced, restored, and removed when there are fewer queues.

use std::sync::Arc;

use crate::common::*;
use ringwise_apply::{Outcome, RunResult};
use ringwise_kfmt::rule::parse_rule;
use ringwise_knob::{IfRefused, Setting, compare, rules};
use ringwise_model::{Fact, Rule, Rules, Snapshot};
use ringwise_testkit::sim::{At, Sim, SimulatedFault, Times, build};

fn words(text: &str) -> Rule {
    parse_rule(text).unwrap().0
}

fn at(location: u32, text: &str) -> Setting {
    Setting::FlowRule { dev: "eth0".into(), location, rule: (!text.is_empty()).then(|| words(text)) }
}

fn ntuple(on: bool) -> Setting {
    Setting::Ntuple { dev: "eth0".into(), on }
}

/// The test NIC with four queues.
fn nic() -> Snapshot {
    build::host(4, 1).mqnic("eth0", 0, 4).done()
}

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&nic()))
}

/// The test NIC with the feature on and these rules.
fn with(rules: &[&str]) -> Arc<Sim> {
    let mut s = nic();
    if let Fact::Known(all) = &mut s.nics[0].features
        && let Some(f) = all.get_mut("rx-ntuple-filter")
    {
        (f.on, f.wanted) = (true, true);
    }
    let sim = Arc::new(Sim::new(&s));
    rules.iter().for_each(|r| sim.ethtool_n("eth0", r).unwrap());
    sim
}

fn there(sim: &Arc<Sim>) -> Vec<String> {
    let nic = sim.nic("eth0").unwrap();
    nic.rules.known().unwrap().rules.iter().map(|(at, r)| format!("{at}: {}", rules::text(r))).collect()
}

fn applied(sim: &Arc<Sim>, dir: &Dir, wanted: &[Setting]) -> Outcome {
    let out = apply(sim, dir, wanted).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    wanted.iter().for_each(|s| assert!(compare(s, &look(sim)).holds(), "{s:?}"));
    out
}

fn rolled_back(sim: &Arc<Sim>, dir: &Dir, before: &Snapshot) {
    let out = rollback(sim, dir, 1, &policy()).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    assert_eq!(differing(before, &look(sim)), Vec::<String>::new());
}

#[test]
fn added_with_the_feature_and_taken_away_again() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    let wanted = [at(0, "tcp4 dst-port 443 action 2"), at(1, "udp4 dst-ip 10.0.0.0/8 action -1"), ntuple(true)];
    applied(&sim, &dir, &wanted);
    assert_eq!(there(&sim), ["0: tcp4 dst-port 443 action 2", "1: udp4 dst-ip 10.0.0.0 m 0.255.255.255 action -1"]);
    assert_eq!(
        sim.log(),
        ["features-set eth0", "ETHTOOL_SRXCLSRLINS eth0", "ETHTOOL_SRXCLSRLINS eth0"],
        "the feature first"
    );
    let again = apply(&sim, &dir, &wanted).unwrap();
    assert_eq!((again.verdict, again.already_so.len()), (RunResult::NothingToDo, 0));
    rolled_back(&sim, &dir, &before);
    assert!(there(&sim).is_empty());
    assert_eq!(sim.log()[3..], ["ETHTOOL_SRXCLSRLDEL eth0", "ETHTOOL_SRXCLSRLDEL eth0", "features-set eth0"]);
}

#[test]
fn a_rule_that_is_there_is_replaced_and_comes_back() {
    let (sim, dir) = (with(&["tcp4 dst-port 80 action 1 loc 5"]), Dir::new());
    let before = look(&sim);
    let request = request(&before, &[at(5, "tcp4 dst-port 443 action 3")]);
    assert_eq!(request.steps[0].from, Fact::Known(at(5, "tcp4 dst-port 80 action 1")));
    assert_eq!(run(&sim, &dir, &request).unwrap().verdict, RunResult::Applied);
    assert_eq!(there(&sim), ["5: tcp4 dst-port 443 action 3"]);
    rolled_back(&sim, &dir, &before);
    assert_eq!(there(&sim), ["5: tcp4 dst-port 80 action 1"]);
}

#[test]
fn rules_make_way_for_fewer_queues() {
    let (sim, dir) = (with(&["tcp4 dst-port 80 action 3 loc 0", "udp4 dst-port 53 action 2 loc 1"]), Dir::new());
    let before = look(&sim);
    let wanted =
        [channels("eth0", 2), at(0, "tcp4 dst-port 80 action 1"), at(1, ""), at(2, "tcp4 dst-port 22 action 0")];
    applied(&sim, &dir, &wanted);
    let order =
        ["ETHTOOL_SRXCLSRLINS eth0", "ETHTOOL_SRXCLSRLDEL eth0", "channels-set eth0", "ETHTOOL_SRXCLSRLINS eth0"];
    assert_eq!(sim.log()[..4], order);
    assert_eq!(there(&sim), ["0: tcp4 dst-port 80 action 1", "2: tcp4 dst-port 22 action 0"]);
    rolled_back(&sim, &dir, &before);
    assert_eq!(there(&sim), ["0: tcp4 dst-port 80 action 3", "1: udp4 dst-port 53 action 2"]);
}

#[test]
fn a_rule_that_the_request_does_not_mention_keeps_its_queue() {
    let (sim, dir) = (with(&["tcp4 dst-port 80 action 3 loc 0"]), Dir::new());
    let before = look(&sim);
    let out = apply(&sim, &dir, &[channels("eth0", 2), xps("eth0", 0, "1")]).unwrap();
    assert_eq!(out.verdict, RunResult::PutBack);
    let words = out.failed.unwrap().words;
    assert!(words.contains("too low for existing ntuple filter settings"), "{words}");
    assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new());
}

fn choosing() -> Arc<Sim> {
    let mut s = nic();
    s.nics[0].rules = Fact::Known(Rules { capacity: 64, chooses_location: true, ..Rules::default() });
    if let Fact::Known(all) = &mut s.nics[0].features {
        all.remove("rx-ntuple-filter");
    }
    let sim = Arc::new(Sim::new(&s));
    sim.ethtool_n("eth0", "tcp4 dst-port 80 action 1").unwrap();
    sim
}

#[test]
fn where_the_driver_chooses_the_place() {
    let (sim, dir) = (choosing(), Dir::new());
    let before = look(&sim);
    let (old, new) = (words("tcp4 dst-port 80 action 1"), words("udp4 dst-port 53 action 2"));
    let wanted = [
        Setting::FlowRule { dev: "eth0".into(), location: rules::by_content(&new), rule: Some(new.clone()) },
        Setting::FlowRule { dev: "eth0".into(), location: rules::by_content(&old), rule: None },
    ];
    applied(&sim, &dir, &wanted);
    // The old rule was deleted first, but the driver chooses the location.
    assert_eq!(there(&sim), ["63: udp4 dst-port 53 action 2"]);
    rolled_back(&sim, &dir, &before);
    assert_eq!(there(&sim), ["63: tcp4 dst-port 80 action 1"], "the same rule, wherever it is");
}

#[test]
fn what_the_device_does_not_take() {
    let cases = [
        (at(0, "tcp4 dst-port 80 action 4"), 22, "a queue or context does not exist"),
        (at(0, "tcp4 dst-port 80 context 7"), 22, "a queue or context does not exist"),
        (at(64, "tcp4 dst-port 80 action 1"), 28, "the location is beyond the table"),
        (at(0, "tcp6 user-def 0x100000000 action 1"), 95, "does not support rules for this flow type or field"),
    ];
    for (setting, errno, meaning) in cases {
        let (sim, dir) = (with(&["tcp4 dst-port 22 action 0 loc 9"]), Dir::new());
        let before = look(&sim);
        let out =
            apply(&sim, &dir, &[xps("eth0", 0, "1"), at(3, "tcp4 dst-port 443 action 1"), setting.clone()]).unwrap();
        assert_eq!(out.verdict, RunResult::PutBack, "{setting:?}");
        let failed = out.failed.unwrap();
        assert_eq!(failed.errno, Some(errno), "{failed:?}");
        assert!(failed.meaning.contains(meaning), "{failed:?}");
        assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new(), "no partial state");
    }
    // The feature is off, and no step turns it on.
    let (sim, dir) = (sim(), Dir::new());
    let out = apply(&sim, &dir, &[at(0, "tcp4 dst-port 80 action 1")]).unwrap();
    assert!(out.failed.unwrap().meaning.contains("only while ntuple is on"));
}

#[test]
fn rules_that_go_with_the_feature_come_back_with_it() {
    let (sim, dir) = (with(&["tcp4 dst-port 80 action 3 loc 0", "udp4 dst-port 53 action 2 loc 1"]), Dir::new());
    let before = look(&sim);
    applied(&sim, &dir, &[ntuple(false)]);
    assert!(there(&sim).is_empty(), "the request removes them, so they are not restored");
    rolled_back(&sim, &dir, &before);
    assert_eq!(there(&sim).len(), 2);
}

#[test]
fn an_error_at_every_write_puts_everything_back() {
    let make = || with(&["tcp4 dst-port 80 action 3 loc 0", "udp4 dst-port 53 action 2 loc 1"]);
    let wanted = [
        channels("eth0", 2),
        at(0, "tcp4 dst-port 80 action 1"),
        at(1, ""),
        at(2, "tcp4 dst-port 22 action 0"),
        at(3, "udp4 src-port 9 action -1"),
        table("eth0", &[0, 1, 1], 128),
    ];
    let (sim, dir) = (make(), Dir::new());
    applied(&sim, &dir, &wanted);
    let writes = sim.writes();
    assert!(writes >= 6, "{writes}");
    for k in 0..writes {
        for errno in [5, 22, 28, 95] {
            let (sim, dir) = (make(), Dir::new());
            let before = look(&sim);
            let request = request_if(&before, &wanted, IfRefused::PutBack);
            sim.fault(SimulatedFault::Fail { at: At::Write(k), errno, times: Times::Once });
            let out = run(&sim, &dir, &request).unwrap();
            match out.verdict {
                RunResult::Applied => {
                    wanted.iter().for_each(|s| assert!(compare(s, &look(&sim)).holds(), "{k} {errno}"))
                }
                RunResult::PutBack => {
                    assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new(), "errno {errno} at write {k}");
                }
                other => panic!("{other:?} for errno {errno} at write {k}"),
            }
        }
    }
}

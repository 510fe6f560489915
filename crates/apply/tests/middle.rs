//! A device that is renamed or unplugged during a transaction.

use std::sync::Arc;

use crate::common::*;
use ringwise_apply::{Event, RunResult};
use ringwise_knob::Setting;
use ringwise_testkit::sim::{Sim, build};

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(8, 2).igb("eth0", 0, 8).igb("eth1", 1, 8).done()))
}

fn wanted() -> Vec<Setting> {
    vec![channels("eth0", 4), channels("eth1", 4), irq("eth0", 0, "2"), xps("eth1", 1, "3"), rps("eth0", 0, "1")]
}

/// Runs it, and calls `happens` once while waiting for the link of `dev`.
fn with(sim: &Arc<Sim>, dir: &Dir, dev: &str, mut happens: impl FnMut()) -> (ringwise_apply::Outcome, Vec<String>) {
    let request = request(&look(sim), &wanted());
    let (mut done, mut waited) = (false, Vec::new());
    let out = ringwise_apply::run(&host(sim), &request, &dir.store(), &policy(), &mut |e| {
        let Event::LinkWait { dev: d } = e else { return };
        waited.push(d.clone());
        if d == dev && !done {
            done = true;
            happens();
        }
    });
    assert!(done, "{dev} was waited for");
    (out.unwrap(), waited)
}

#[test]
fn renamed_while_it_is_waited_for() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    let (out, waited) = with(&sim, &dir, "eth0", || sim.rename("eth0", "wan0"));
    assert_eq!(out.verdict, RunResult::Applied, "{out:?}");
    assert!(out.notes.contains(&"eth0 was renamed to wan0".to_string()), "{:?}", out.notes);
    assert!(waited.contains(&"wan0".to_string()), "its link is waited for under the new name: {waited:?}");
    assert_eq!(sim.nic("wan0").unwrap().rx_queues.len(), 4);
    assert_eq!((out.verified, out.verified_of > 0), (out.verified_of, true));
    sim.rename("wan0", "eth0");
    assert_eq!(rollback(&sim, &dir, 0, &policy()).unwrap().verdict, RunResult::Applied);
    assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new());
}

#[test]
fn pulled_while_it_is_waited_for() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    // The first device is done, the second one is in progress.
    let (out, _) = with(&sim, &dir, "eth1", || sim.unplug("eth1"));
    assert_eq!((out.verdict, out.exit_status()), (RunResult::PutBackIncomplete, 5), "{out:?}");
    // Exactly the values of eth1, with names and reasons; nothing of eth0.
    assert!(!out.put_back_incomplete.is_empty());
    for n in &out.put_back_incomplete {
        assert_eq!((n.address.dev(), n.why.as_str()), (Some("eth1"), "the device went away"), "{n:?}");
    }
    let named = |s: &Setting| out.put_back_incomplete.iter().any(|n| n.was == *s);
    assert!(named(&channels("eth1", 8)), "{:?}", out.put_back_incomplete);
    let left: Vec<String> = differing(&before, &look(&sim)).into_iter().filter(|d| d.starts_with("eth0")).collect();
    assert_eq!(left, Vec::<String>::new());
}

//! Whether the refusal of an earlier write also holds for another value.

use ringwise_knob::learned::LearnedWrite;
use ringwise_knob::{Learned, Setting};
use ringwise_model::{Action, DevId, Rule};

fn of_queue(usecs: u32) -> Setting {
    Setting::QueueCoalesce { dev: "eth1".into(), queue: 0, params: [("rx-usecs".to_string(), usecs)].into() }
}

/// A record that eth1 did not accept 20 microseconds on queue 0.
fn learned(what: LearnedWrite) -> Learned {
    about(of_queue(20), what)
}

fn about(asked: Setting, what: LearnedWrite) -> Learned {
    Learned {
        device: DevId { name: "eth1".into(), ifindex: None, bus_address: None, permanent_mac: None },
        driver: Some("igb".into()),
        kernel: "6.12".into(),
        address: asked.address().expect("known"),
        asked,
        what,
        unix_time: 1,
    }
}

/// The driver supports moderation of queues but refused or rounded this value: another value is tried.
#[test]
fn another_value_is_tried_after_a_refused_one() {
    let invalid = LearnedWrite::Refused { errno: 22, words: "Invalid argument".into() };
    let rounded = LearnedWrite::Ignored { got: of_queue(24) };
    for what in [invalid, rounded] {
        let l = learned(what);
        let applies = |usecs| l.applies(&l.device, Some("igb"), "6.12", &of_queue(usecs));
        assert_eq!((applies(20), applies(50)), (true, false), "{:?}", l.what);
        assert!(!l.what.is_not_supported());
    }
}

#[test]
fn an_unsupported_call_is_not_tried_again() {
    let l = learned(LearnedWrite::Refused { errno: 95, words: "Operation not supported".into() });
    assert!(l.what.is_not_supported() && l.applies(&l.device, Some("igb"), "6.12", &of_queue(50)));
}

/// A rule may be at any location: each refused kind of rule is remembered once.
#[test]
fn refused_rules_of_different_kinds_are_remembered_side_by_side() {
    let refused = |location, flow: &str, port: &str| {
        let fields = [("dst-port".to_string(), port.to_string())].into();
        let rule = Rule { flow: flow.into(), fields, action: Action::Queue(1), context: None };
        let words = "Operation not supported".into();
        about(
            Setting::FlowRule { dev: "eth1".into(), location, rule: Some(rule) },
            LearnedWrite::Refused { errno: 95, words },
        )
    };
    let tcp = refused(3, "tcp4", "80");
    assert!(!refused(3, "udp4", "80").replaces(&tcp), "another kind in the same place");
    assert!(refused(5, "tcp4", "81").replaces(&tcp), "the same kind in another place");
    // Other settings keep one refusal each.
    let xps = |cpus: &str| {
        let asked = Setting::XpsCpus { dev: "eth1".into(), queue: 0, cpus: cpus.parse().expect("a list") };
        about(asked, LearnedWrite::Refused { errno: 22, words: "Invalid argument".into() })
    };
    assert!(xps("1").replaces(&xps("2")));
}

//! The lines in the system log for constructed events.

use std::time::Duration;

use crate::common::set;
use ringwise_apply::{Event, Failure, Phase};
use ringwise_cli::logbook::{Line, event};
use ringwise_knob::{Match, Setting};
use ringwise_sys::log::Priority;

fn xps(cpus: &str) -> Setting {
    Setting::XpsCpus { dev: "eth1".into(), queue: 3, cpus: set(cpus) }
}

fn line(e: &Event) -> Line {
    event(e, "root (sudo: anna)", Some("CHG-4711")).expect("a line")
}

fn field<'l>(l: &'l Line, name: &str) -> Option<&'l str> {
    l.fields.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_str())
}

#[test]
fn the_first_line_names_who_and_why() {
    let l = line(&Event::Begun { transaction: 13, steps: 2 });
    assert_eq!(l.message, "begins: 2 changes by root (sudo: anna) (CHG-4711)");
    assert_eq!(field(&l, "RINGWISE_WHO"), Some("root (sudo: anna)"));
    assert_eq!(field(&l, "RINGWISE_REASON"), Some("CHG-4711"));
    assert_eq!(field(&l, "RINGWISE_OUTCOME"), Some("begun"));
}

#[test]
fn a_write_has_device_setting_and_value() {
    let done = |phase, how| Event::Done { phase, setting: xps("0-3"), now: xps("0-1"), how, took: Duration::ZERO };
    let l = line(&done(Phase::Apply, Match::Same));
    assert_eq!(l.message, format!("{} = 0-3", xps("0-3").address().unwrap()));
    assert_eq!(field(&l, "RINGWISE_DEVICE"), Some("eth1"));
    assert_eq!(field(&l, "RINGWISE_SETTING"), Some(xps("0").address().unwrap().to_string().as_str()));
    assert_eq!(field(&l, "RINGWISE_VALUE"), Some("0-3"));
    assert_eq!(field(&l, "RINGWISE_OUTCOME"), Some("written"));
    assert_eq!(l.priority, Priority::Info);
    let l = line(&done(Phase::PutBack, Match::Differs));
    assert!(l.message.starts_with("restored: ") && l.message.ends_with("reads back as 0-1"), "{}", l.message);
    assert_eq!((field(&l, "RINGWISE_OUTCOME"), l.priority), (Some("put_back"), Priority::Notice));
}

#[test]
fn a_failure_keeps_the_kernels_word() {
    let failure = Failure {
        setting: Some(xps("0-3")),
        errno: Some(28),
        words: "ENOSPC (No space left on device)".into(),
        meaning: "no vector is left".into(),
        path: None,
        data: None,
        late: false,
    };
    let l = line(&Event::Failed { phase: Phase::Apply, failure });
    assert!(l.message.contains("ENOSPC (No space left on device): no vector is left"), "{}", l.message);
    assert_eq!((field(&l, "RINGWISE_ERRNO"), l.priority), (Some("28"), Priority::Error));
    // An event before a write has no line.
    assert_eq!(event(&Event::Writing { phase: Phase::Apply, setting: xps("0") }, "", None), None);
}

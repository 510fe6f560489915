//! Length of receive buffers and header split, through a transaction and back.

use std::sync::Arc;

use crate::common::*;
use ringwise_apply::RunResult;
use ringwise_knob::{Setting, compare};
use ringwise_model::RingValues;
use ringwise_testkit::sim::{Sim, build};

fn sim() -> Arc<Sim> {
    Arc::new(Sim::new(&build::host(8, 2).igb("eth0", 0, 4).mqnic("eth1", 0, 4).splits_headers("eth1").done()))
}

fn rings(dev: &str, values: RingValues) -> Setting {
    Setting::Rings { dev: dev.into(), values }
}

fn now(sim: &Arc<Sim>, dev: &str) -> RingValues {
    look(sim).nic(dev).unwrap().rings.known().unwrap().now()
}

#[test]
fn written_read_back_and_rolled_back() {
    let (sim, dir) = (sim(), Dir::new());
    let before = now(&sim, "eth1");
    assert_eq!((before.rx_buf_len, before.tcp_data_split, before.hds_thresh), (Some(2048), Some(false), Some(0)));
    let values = RingValues {
        rx_buf_len: Some(4096),
        tcp_data_split: Some(true),
        hds_thresh: Some(256),
        ..RingValues::default()
    };
    let wanted = [rings("eth1", values)];
    let out = apply(&sim, &dir, &wanted).unwrap();
    assert_eq!((out.verdict, out.applied.len()), (RunResult::Applied, 1), "{out:?}");
    assert_eq!(now(&sim, "eth1"), values.or(&before), "sizes stay as they were");
    assert!(compare(&wanted[0], &look(&sim)).holds());
    assert_eq!(apply(&sim, &dir, &wanted).unwrap().verdict, RunResult::NothingToDo);
    let back = rollback(&sim, &dir, 1, &policy()).unwrap();
    assert!(back.put_back_incomplete.is_empty(), "{back:?}");
    assert_eq!(now(&sim, "eth1"), before);
    assert!(!compare(&wanted[0], &look(&sim)).holds());
}

/// net/ethtool/rings.c, `ethnl_set_rings`: what a message does not name keeps its value.
#[test]
fn a_change_of_sizes_keeps_the_other_parameters() {
    let (sim, dir) = (sim(), Dir::new());
    let before = now(&sim, "eth1");
    assert_eq!((before.cqe_size, before.tx_push, before.tx_push_buf_len), (Some(64), Some(true), Some(96)));
    let sizes = RingValues::sizes(Some(1024), None);
    assert_eq!(apply(&sim, &dir, &[rings("eth1", sizes)]).unwrap().verdict, RunResult::Applied);
    assert_eq!(now(&sim, "eth1"), sizes.or(&before));
    // A rollback restores a parameter that changed since, although the transaction never named it.
    let off = Some(false);
    let other = RingValues { cqe_size: Some(128), tx_push: off, tx_push_buf_len: Some(128), ..RingValues::default() };
    assert_eq!(apply(&sim, &dir, &[rings("eth1", other)]).unwrap().verdict, RunResult::Applied);
    let found = now(&sim, "eth1");
    assert_eq!((found.cqe_size, found.tx_push, found.rx), (Some(128), None, Some(1024)), "off is not reported");
    assert_eq!(apply(&sim, &dir, &[rings("eth1", other)]).unwrap().verdict, RunResult::NothingToDo);
    assert!(rollback(&sim, &dir, 0, &policy()).unwrap().put_back_incomplete.is_empty());
    assert_eq!(now(&sim, "eth1"), before);
}

/// A larger number is a mistake in the request: the kernel refuses it, and all settings are restored.
#[test]
fn more_than_the_driver_accepts_is_put_back() {
    let (sim, dir) = (sim(), Dir::new());
    let (size, split) = (now(&sim, "eth0"), now(&sim, "eth1"));
    let wanted = [
        rings("eth0", RingValues::sizes(Some(512), None)),
        rings("eth1", RingValues { hds_thresh: Some(5000), ..RingValues::default() }),
    ];
    let out = apply(&sim, &dir, &wanted).unwrap();
    assert_eq!(out.verdict, RunResult::PutBack, "{out:?}");
    assert_eq!((now(&sim, "eth0"), now(&sim, "eth1")), (size, split));
}

/// A parameter that the driver does not report is absent, not 0 or off, and does not count as set.
#[test]
fn what_a_driver_does_not_report_is_absent() {
    let (sim, dir) = (sim(), Dir::new());
    let found = now(&sim, "eth0");
    assert_eq!(found, RingValues::sizes(Some(256), Some(256)));
    let wanted = [rings("eth0", RingValues { tcp_data_split: Some(false), ..RingValues::default() })];
    assert!(!compare(&wanted[0], &look(&sim)).holds());
    let out = apply(&sim, &dir, &wanted).unwrap();
    assert!(out.applied.is_empty(), "{out:?}");
    assert_eq!(now(&sim, "eth0"), found);
}

//! How often the whole host is read. Each time costs as much as `show`, so a transaction reads no more often than it needs.

use crate::common::*;
use ringwise_apply::{Policy, RunResult, balance_step, restore_balanced};
use ringwise_knob::{Reason, Setting};
use ringwise_model::Title;
use ringwise_sys::{Host, HostWrapper, Request, Result};
use ringwise_testkit::sim::{Sim, build};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Counts discoveries, by a directory that only discovery lists, and all calls.
struct Counting {
    sim: Arc<Sim>,
    discoveries: AtomicUsize,
    calls: AtomicUsize,
    requests: Mutex<Vec<String>>,
}

impl Counting {
    fn new(sim: &Arc<Sim>) -> Arc<Self> {
        let (discoveries, calls) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { sim: sim.clone(), discoveries, calls, requests: Mutex::new(Vec::new()) })
    }

    fn call(&self) -> &Sim {
        self.calls.fetch_add(1, Ordering::Relaxed);
        &self.sim
    }
}

impl HostWrapper for Counting {
    fn inside(&self) -> &dyn Host {
        self.sim.as_ref()
    }
}

impl Host for Counting {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.call().read(path)
    }
    fn write(&self, path: &str, data: &[u8]) -> Result<()> {
        self.call().write(path, data)
    }
    fn list(&self, path: &str) -> Result<Vec<String>> {
        if path == "/sys/devices/system/node" {
            self.discoveries.fetch_add(1, Ordering::Relaxed);
        }
        self.call().list(path)
    }
    fn readlink(&self, path: &str) -> Result<String> {
        self.call().readlink(path)
    }
    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        self.requests.lock().unwrap().push(request.to_string());
        self.call().kernel(request)
    }
}

/// Discoveries during `apply` and the `rollback` after it.
fn discoveries(wanted: &Setting, policy: &Policy) -> (usize, usize) {
    let sim = Arc::new(Sim::new(&build::host(8, 2).igb("eth0", 0, 8).mqnic("eth1", 1, 4).done()));
    let dir = Dir::new();
    let counting = Counting::new(&sim);
    let host: Arc<dyn Host> = counting.clone();
    let took = |what: &str| {
        let calls = counting.calls.swap(0, Ordering::Relaxed);
        let discoveries = counting.discoveries.swap(0, Ordering::Relaxed);
        println!("{wanted:?} {what}: {discoveries} discoveries, {calls} calls");
        discoveries
    };
    let request = request(&look(&sim), std::slice::from_ref(wanted));
    let out = ringwise_apply::run(&host, &request, &dir.store(), policy, &mut |_| {}).unwrap();
    assert_eq!(out.verdict, RunResult::Applied);
    let forward = took("apply");
    let r = ringwise_apply::Request { who: "root".into(), ..Default::default() };
    let out = ringwise_apply::rollback(&host, &dir.store(), 1, &r, policy, &mut |_| {}).unwrap();
    assert_eq!(out.verdict, RunResult::Applied);
    (forward, took("rollback"))
}

/// Under the lock, and to verify.
#[test]
fn a_write_of_one_file_takes_two() {
    let policy = Policy { differs: true, ..policy() };
    assert_eq!(discoveries(&xps("eth0", 0, "2"), &policy), (2, 2));
}

/// A step that renumbers queues: also for its read-back, and after its link is back.
#[test]
fn a_change_of_channels_takes_three() {
    let policy = Policy { differs: true, ..policy() };
    assert_eq!(discoveries(&channels("eth0", 4), &policy), (3, 3));
}

/// If it is unknown whether there is something to do, the host is read before the lock is taken.
#[test]
fn without_knowing_there_is_one_more() {
    assert_eq!(discoveries(&xps("eth0", 0, "2"), &policy()), (3, 2));
}

/// Before the table is restored, only what that needs is read; the whole host is read afterwards, to verify.
#[test]
fn the_base_of_a_table_is_restored_before_the_whole_host_is_read() {
    let sim = Arc::new(Sim::new(&build::host(8, 2).igb("eth0", 0, 8).mqnic("eth1", 1, 4).done()));
    let dir = Dir::new();
    let table = |sim: &Arc<Sim>| look(sim).nic("eth0").unwrap().rss.known().unwrap().table.clone();
    let setting = |table: &[u32]| Setting::RssTable { dev: "eth0".into(), table: table.to_vec() };
    let base = table(&sim);
    let mut moved = base.clone();
    moved[0] = 7;
    let reason = Reason::UnevenLoad { before_percent: 90, predicted_percent: 70 };
    let request = ringwise_apply::Request {
        title: Title::Balance { dev: "eth0".into() },
        base: vec![setting(&base)],
        steps: vec![balance_step(setting(&moved), setting(&base), reason)],
        ..Default::default()
    };
    ringwise_apply::run(&host(&sim), &request, &dir.store(), &policy(), &mut |_| {}).unwrap();
    assert_eq!(table(&sim), moved);

    let counting = Counting::new(&sim);
    let watched: Arc<dyn Host> = counting.clone();
    let by = ringwise_apply::Request { who: "guard".into(), ..Default::default() };
    let out = restore_balanced(&watched, &dir.store(), None, &by, &policy()).unwrap().unwrap();
    assert_eq!((out.verdict, table(&sim)), (RunResult::Applied, base));
    let requests = counting.requests.lock().unwrap();
    let write = requests.iter().position(|r| r.starts_with("rss-set") || r.starts_with("ETHTOOL_SRSSH"));
    let (before, after) = requests.split_at(write.expect("a write of the table"));
    let others = ["rings", "coalesce", "pause", "features", "ETHTOOL_GRXCLSR"];
    let of_others = |list: &[String]| list.iter().filter(|r| others.iter().any(|o| r.contains(o))).count();
    assert_eq!(of_others(before), 0, "{before:?}");
    assert!(of_others(after) > 0, "{after:?}");
    assert_eq!(counting.discoveries.load(Ordering::Relaxed), 2);
}

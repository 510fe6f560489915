//! How often the whole host is read. Each time costs as much as `show`, so a transaction reads no more often than it needs.

use crate::common::*;
use ringwise_apply::{Policy, Verdict};
use ringwise_knob::Setting;
use ringwise_sys::{Around, Host, Request, Result};
use ringwise_testkit::sim::{Sim, build};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts discoveries, by a directory that only discovery lists, and all calls.
struct Counting {
    sim: Arc<Sim>,
    discoveries: AtomicUsize,
    calls: AtomicUsize,
}

impl Counting {
    fn call(&self) -> &Sim {
        self.calls.fetch_add(1, Ordering::Relaxed);
        &self.sim
    }
}

impl Around for Counting {
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
        self.call().kernel(request)
    }
}

/// Discoveries during `apply` and the `rollback` after it.
fn discoveries(wanted: &Setting, policy: &Policy) -> (usize, usize) {
    let sim = Arc::new(Sim::new(&build::host(8, 2).igb("eth0", 0, 8).mqnic("eth1", 1, 4).done()));
    let dir = Dir::new();
    let counting =
        Arc::new(Counting { sim: sim.clone(), discoveries: AtomicUsize::new(0), calls: AtomicUsize::new(0) });
    let host: Arc<dyn Host> = counting.clone();
    let took = |what: &str| {
        let calls = counting.calls.swap(0, Ordering::Relaxed);
        let discoveries = counting.discoveries.swap(0, Ordering::Relaxed);
        println!("{wanted:?} {what}: {discoveries} discoveries, {calls} calls");
        discoveries
    };
    let request = request(&look(&sim), std::slice::from_ref(wanted));
    let out = ringwise_apply::run(&host, &request, &dir.store(), policy, &mut |_| {}).unwrap();
    assert_eq!(out.verdict, Verdict::Applied);
    let forward = took("apply");
    let r = ringwise_apply::Request { who: "root".into(), ..Default::default() };
    let out = ringwise_apply::rollback(&host, &dir.store(), 1, &r, policy, &mut |_| {}).unwrap();
    assert_eq!(out.verdict, Verdict::Applied);
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

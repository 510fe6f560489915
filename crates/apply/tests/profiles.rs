//! Moderation settings that only a device has, not a queue: CQE mode, and the profiles of adaptive moderation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::*;
use ringwise_apply::RunResult;
use ringwise_kfmt::ethtool_ioctl::perqueue;
use ringwise_kfmt::ethtool_nl::coalesce::PARAMETERS;
use ringwise_knob::{IfRefused, Setting, VectorName, coalesce};
use ringwise_model::Fact;
use ringwise_sys::{Clock, Host, Result};
use ringwise_testkit::sim::{Quirk, Sim, build};

fn device(list: &[(&str, u32)]) -> Setting {
    let params = list.iter().map(|(k, v)| (k.to_string(), *v)).collect();
    Setting::Coalesce { dev: "eth0".into(), params }
}

/// The test NIC as the newest kernel reports it.
fn sim() -> Arc<Sim> {
    let mut s = build::host(8, 1).kernel("7.3.4").mqnic("eth0", 0, 4).done();
    let Fact::Known(c) = &mut s.nics[0].coalesce else { panic!() };
    c.0.extend([("use-cqe-mode-rx".to_string(), 0), ("rx-cqe-frames".to_string(), 4)]);
    for (step, usec) in [1, 8, 64, 128, 256].into_iter().enumerate() {
        c.0.insert(format!("rx-profile.{step}.usec"), usec);
        c.0.insert(format!("rx-profile.{step}.pkts"), 256);
    }
    Arc::new(Sim::new(&s))
}

fn now(sim: &Sim) -> BTreeMap<String, u32> {
    sim.nic("eth0").unwrap().coalesce.known().unwrap().0.clone()
}

#[test]
fn written_read_back_and_put_back() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    assert!(!before.nics[0].queue_coalesce.known().unwrap()[&0].0.contains_key("use-cqe-mode-rx"));
    let want = [device(&[
        ("use-cqe-mode-rx", 1),
        ("rx-cqe-frames", 8),
        ("rx-profile.1.usec", 9),
        ("rx-profile.4.pkts", 12_000),
        ("rx-usecs", 20),
    ])];
    let out = apply(&sim, &dir, &want).unwrap();
    assert_eq!((out.verdict, out.side_effects.len()), (RunResult::Applied, 0), "{out:#?}");
    let got = now(&sim);
    let of = |k: &str| got[k];
    assert_eq!((of("use-cqe-mode-rx"), of("rx-cqe-frames"), of("rx-usecs")), (1, 8, 20));
    assert_eq!((of("rx-profile.0.usec"), of("rx-profile.1.usec"), of("rx-profile.4.pkts")), (1, 9, 12_000));
    assert_eq!(apply(&sim, &dir, &want).unwrap().verdict, RunResult::NothingToDo);
    assert_eq!(rollback(&sim, &dir, 1, &policy()).unwrap().verdict, RunResult::Applied);
    assert_eq!(look(&sim), before);
}

#[test]
fn a_driver_that_ignores_cqe_mode_is_found_out() {
    let (sim, dir) = (sim(), Dir::new());
    sim.quirk("eth0", Quirk::IgnoresModeration);
    let request = request_if(&look(&sim), &[device(&[("use-cqe-mode-rx", 1)])], IfRefused::Skip);
    let out = run(&sim, &dir, &request).unwrap();
    assert_eq!((out.verdict, out.ignored.len()), (RunResult::Applied, 1), "{out:#?}");
}

#[test]
fn a_field_that_the_driver_has_not_is_refused_with_the_kernels_words() {
    let (sim, dir) = (sim(), Dir::new());
    let before = look(&sim);
    let out = apply(&sim, &dir, &[device(&[("rx-profile.0.comps", 1)])]).unwrap();
    let all = format!("{out:#?}");
    assert!(all.contains("the specified irq_moder param not supported"), "{all}");
    assert_eq!(look(&sim), before);
}

/// The plan refuses for queues exactly those settings that the kernel's struct does not have.
#[test]
fn the_plan_and_the_struct_of_queues_agree() {
    for (_, name, _) in PARAMETERS {
        assert_ne!(coalesce::of_device_only(name), perqueue::is_parameter(name), "{name}");
    }
    assert!(coalesce::of_device_only("rx-profile.0.usec") && !perqueue::is_parameter("rx-profile.0.usec"));
}

/// Counts kernel requests by kind.
struct Counted(Arc<Sim>, Mutex<BTreeMap<String, usize>>);

impl Clock for Counted {
    fn since_boot(&self) -> Duration {
        self.0.since_boot()
    }
    fn unix_time(&self) -> u64 {
        self.0.unix_time()
    }
    fn sleep(&self, time: Duration) {
        self.0.sleep(time);
    }
}

impl Host for Counted {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.0.read(path)
    }
    fn write(&self, path: &str, data: &[u8]) -> Result<()> {
        self.0.write(path, data)
    }
    fn list(&self, path: &str) -> Result<Vec<String>> {
        self.0.list(path)
    }
    fn readlink(&self, path: &str) -> Result<String> {
        self.0.readlink(path)
    }
    fn kernel(&self, request: &ringwise_sys::Request) -> Result<Vec<Vec<u8>>> {
        *self.1.lock().unwrap().entry(request.to_string()).or_default() += 1;
        self.0.kernel(request)
    }
}

/// Reading queries all queues at once; writing reads and sets each queue separately, and reads it back.
#[test]
fn calls_for_64_queues() {
    let sim = Arc::new(Sim::new(&build::host(64, 1).mqnic("eth0", 0, 64).done()));
    let counted = Arc::new(Counted(sim.clone(), Mutex::default()));
    let host: Arc<dyn Host> = counted.clone();
    let calls = || std::mem::take(&mut *counted.1.lock().unwrap());
    let now = ringwise_discover::snapshot(&host, &ringwise_discover::Options::all()).unwrap();
    assert_eq!(now.nic("eth0").unwrap().queue_coalesce.known().unwrap().len(), 64);
    assert_eq!(calls()["ETHTOOL_PERQUEUE eth0"], 1);
    let params: BTreeMap<String, u32> = [("rx-usecs".to_string(), 5)].into();
    let of = |queue| Setting::QueueCoalesce { dev: "eth0".into(), queue, params: params.clone() };
    let request = request(&now, &(0..64).map(of).collect::<Vec<_>>());
    let dir = Dir::new();
    let out = ringwise_apply::run(&host, &request, &dir.store(), &policy(), &mut |_| {}).unwrap();
    assert_eq!((out.verdict, out.applied.len()), (RunResult::Applied, 64));
    let calls = calls();
    assert_eq!(calls["ETHTOOL_PERQUEUE set eth0"], 64, "{calls:?}");
    assert!(calls["ETHTOOL_PERQUEUE eth0"] <= 2 * 64 + 4, "{calls:?}");
}

/// A thread that one transaction creates and a later one moves has no original CPUs: it ends. lab: 690-napi
#[test]
fn threads_that_were_moved_end_with_the_rollback() {
    for kernel in ["6.12.48", "7.3.4"] {
        let sim = Arc::new(Sim::new(&build::host(8, 1).kernel(kernel).mqnic("eth0", 0, 4).linked().done()));
        let (dir, before) = (Dir::new(), look(&sim));
        let values = ringwise_model::NapiValues { threaded: Some(1), ..Default::default() };
        let thread = |list: &str| Setting::NapiThread { dev: "eth0".into(), of: VectorName::Rx(1), cpus: cpus(list) };
        let made = [Setting::NapiDevice { dev: "eth0".into(), values }, thread("3")];
        assert_eq!(apply(&sim, &dir, &made).unwrap().verdict, RunResult::Applied, "{kernel}");
        assert_eq!(apply(&sim, &dir, &[thread("5")]).unwrap().verdict, RunResult::Applied, "{kernel}");
        let out = rollback(&sim, &dir, 0, &policy()).unwrap();
        assert_eq!(out.verdict, RunResult::Applied, "{kernel}: {:?}", out.failed);
        assert_eq!(look(&sim), before, "{kernel}");
    }
}

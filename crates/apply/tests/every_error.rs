//! An error at every write, with every errno: the host is restored, or the report lists exactly what is not.

use std::sync::Arc;

use crate::common::*;
use ringwise_apply::{Outcome, Policy, RunResult};
use ringwise_knob::{IfRefused, Setting, compare};
use ringwise_model::Snapshot;
use ringwise_testkit::sim::{At, Sim, SimulatedFault, Times, build};

const ERRNOS: [i32; 9] = [1, 5, 12, 16, 19, 22, 28, 75, 95];
/// EIO like any other, EBUSY is retried, EOPNOTSUPP is learned.
const SPECIAL: [i32; 3] = [5, 16, 95];

/// Which errors a write gets. In `make test` each write gets those that are treated differently, and one of the others in
/// rotation; `make test-all` (RINGWISE_TESTS=all) gives each write all of them.
fn errnos(write: usize) -> Vec<i32> {
    if ringwise_testkit::lane::everything() {
        return ERRNOS.to_vec();
    }
    let others: Vec<i32> = ERRNOS.into_iter().filter(|e| !SPECIAL.contains(e)).collect();
    SPECIAL.into_iter().chain([others[write % others.len()]]).collect()
}

fn igb() -> Arc<Sim> {
    let sim = Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 6).mqnic("eth1", 0, 2).done()));
    set_everything_manually(&sim, "eth0", 6);
    sim
}

/// RSS, XPS, RPS and affinity were set outside ringwise before.
fn set_everything_manually(sim: &Arc<Sim>, dev: &str, queues: u32) {
    let table: Vec<u32> = (0..128).map(|i| if i % 3 == 0 { 1 } else { 0 }).collect();
    sim.ethtool_x(dev, &table).unwrap();
    let now = look(sim);
    sim.outside(|h| {
        for q in 0..queues {
            let dir = format!("/sys/class/net/{dev}/queues");
            h.write(&format!("{dir}/tx-{q}/xps_cpus"), format!("{:x}", 1 << (q % 4)).as_bytes()).unwrap();
            h.write(&format!("{dir}/rx-{q}/rps_cpus"), b"6").unwrap();
            h.write(&format!("{dir}/rx-{q}/rps_flow_cnt"), b"256").unwrap();
        }
        for (n, v) in now.nic(dev).unwrap().queue_vectors().enumerate() {
            let cpu = (n + 1) % 4;
            h.write(&format!("/proc/irq/{}/smp_affinity_list", v.irq), format!("{cpu}\n").as_bytes()).unwrap();
        }
    });
    sim.traffic(dev);
}

/// Fewer channels, another table, and every per-queue file setting of the remaining queues.
fn shrink(queues: u32) -> Vec<Setting> {
    let mut all = vec![channels("eth0", queues), table("eth0", &(0..queues).collect::<Vec<_>>(), 128)];
    for q in 0..queues {
        let cpu = (q % 4).to_string();
        all.extend([irq("eth0", q, &cpu), irq_tx("eth0", q, &cpu), xps("eth0", q, &cpu), rps("eth0", q, "")]);
        all.push(flow_cnt("eth0", q, 1024));
    }
    all.extend([rfs(4096), irq("eth1", 0, "2"), xps("eth1", 0, "2")]);
    all
}

/// The host is as before, or the outcome lists exactly the settings that are not.
fn as_before_or_named(before: &Snapshot, now: &Snapshot, out: &Outcome, what: &str) {
    let mut differ = differing(before, now);
    let mut named: Vec<String> = out
        .put_back_incomplete
        .iter()
        .map(|n| {
            assert!(!n.why.is_empty(), "{what}: {n:?}");
            format!("{} was {}", n.address, n.was.value_text())
        })
        .collect();
    differ.sort();
    named.sort();
    assert_eq!(differ, named, "{what}");
    let status = if differ.is_empty() { 4 } else { 5 };
    assert_eq!(out.exit_status(), status, "{what}");
    assert_eq!(out.verified + named.len(), out.verified_of, "{what}");
}

fn at_every_write(make: impl Fn() -> Arc<Sim>, wanted: &[Setting], times: Times) -> usize {
    let (sim, dir) = (make(), Dir::new());
    let out = apply(&sim, &dir, wanted).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    let writes = sim.writes();
    let (mut tries, mut put_back) = (0, 0);
    for k in 0..writes {
        for errno in errnos(k) {
            tries += 1;
            let (sim, dir) = (make(), Dir::new());
            let before = look(&sim);
            let request = request_if(&before, wanted, IfRefused::PutBack);
            sim.fault(SimulatedFault::Fail { at: At::Write(k), errno, times });
            let out = run(&sim, &dir, &request).unwrap();
            let what = format!("errno {errno} at write {k} {times:?}");
            let now = look(&sim);
            match out.verdict {
                // A single EBUSY is retried successfully; and a refused restore of a side effect is no reason to roll everything
                // back.
                RunResult::Applied => {
                    for s in wanted {
                        assert!(compare(s, &now).holds(), "{what}: {s:?}");
                    }
                }
                RunResult::PutBack | RunResult::PutBackIncomplete => {
                    put_back += 1;
                    let failure = out.failed.as_ref().unwrap();
                    assert_eq!(failure.errno, Some(errno), "{what}: {failure:?}");
                    as_before_or_named(&before, &now, &out, &what);
                    if times == Times::Once {
                        assert_eq!(out.verdict, RunResult::PutBack, "{what}: {:?}", out.put_back_incomplete);
                    }
                }
                other => panic!("{what}: {other:?}"),
            }
        }
    }
    // All are restored except single EBUSYs, and refusals on which nothing depends.
    assert!(put_back >= tries - 2 * writes, "only {put_back} of {tries} were put back");
    writes
}

#[test]
fn once_on_igb_with_fewer_channels() {
    let writes = at_every_write(igb, &shrink(4), Times::Once);
    assert!(writes > 20, "{writes}");
}

#[test]
fn for_ever_on_igb_with_fewer_channels() {
    at_every_write(igb, &shrink(4), Times::Always);
}

#[test]
fn once_on_virtio_which_rewrites() {
    let make = || {
        let sim = Arc::new(Sim::new(&build::host(4, 1).virtio("eth0", 0, 4).mqnic("eth1", 0, 2).done()));
        set_everything_manually(&sim, "eth0", 4);
        sim
    };
    at_every_write(make, &shrink(2), Times::Once);
}

#[test]
fn once_on_vmxnet3_with_other_rings() {
    let make = || {
        let sim = Arc::new(Sim::new(&build::host(4, 1).vmxnet3("eth0", 0, 2).mqnic("eth1", 0, 2).done()));
        set_everything_manually(&sim, "eth0", 2);
        sim
    };
    let rings = Setting::Rings { dev: "eth0".into(), values: ringwise_model::RingValues::sizes(Some(512), None) };
    let wanted = vec![rings, irq("eth0", 0, "2"), irq("eth0", 1, "3"), xps("eth0", 0, "2"), rps("eth0", 0, "")];
    at_every_write(make, &wanted, Times::Once);
}

#[test]
fn more_channels_with_a_table_over_all_of_them_and_back() {
    let make = || {
        let sim = Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done()));
        set_everything_manually(&sim, "eth0", 4);
        sim
    };
    let mut wanted = vec![channels("eth0", 6), table("eth0", &[0, 1, 2, 3, 4, 5], 128)];
    wanted.extend((0..6).flat_map(|q| [irq("eth0", q, &(q % 4).to_string()), xps("eth0", q, &(q % 4).to_string())]));
    at_every_write(make, &wanted, Times::Once);
}

/// lab: "apply 4 -> 8", "igb: both as before"
#[test]
fn one_interrupt_for_both_directions_has_no_time_for_transmission() {
    let (sim, dir) = (Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done())), Dir::new());
    let usecs = |sim: &Arc<Sim>| {
        let nic = sim.nic("eth0").unwrap();
        let c = nic.coalesce.known().unwrap();
        (c.0["rx-usecs"], c.0["tx-usecs"])
    };
    let params = [("rx-usecs".to_string(), 20), ("tx-usecs".to_string(), 122)].into();
    apply(&sim, &dir, &[Setting::Coalesce { dev: "eth0".into(), params }]).unwrap();
    let before = look(&sim);
    let out = apply(&sim, &dir, &[channels("eth0", 6)]).unwrap();
    assert_eq!((out.verdict, usecs(&sim)), (RunResult::Applied, (20, 0)), "{:?}", out.failed);
    let back = rollback(&sim, &dir, 2, &Policy::default()).unwrap();
    assert_eq!((back.exit_status(), usecs(&sim)), (0, (20, 122)), "{back:#?}");
    assert!(differing(&before, &look(&sim)).is_empty());
}

#[test]
fn what_cannot_be_put_back_is_named_with_the_command() {
    let (sim, dir) = (igb(), Dir::new());
    let before = look(&sim);
    let wanted = [xps("eth0", 0, "3"), rps("eth0", 0, ""), rps("eth0", 1, "")];
    sim.fault(SimulatedFault::Fail { at: At::Matching("rx-1/rps_cpus".into()), errno: 22, times: Times::Always });
    // XPS was written, and cannot be restored.
    sim.fault(SimulatedFault::Fail { at: At::Write(3), errno: 28, times: Times::Always });
    let out = run(&sim, &dir, &request(&before, &wanted)).unwrap();
    assert_eq!(out.exit_status(), 5);
    as_before_or_named(&before, &look(&sim), &out, "barred");
    let left = &out.put_back_incomplete[0];
    assert_eq!(left.command.as_deref(), Some("echo 1 > /sys/class/net/eth0/queues/tx-0/xps_cpus"));
    assert!(left.why.contains("ENOSPC"), "{}", left.why);
    // `recover` restores it later.
    sim.clear_faults();
    let out = recover(&sim, &dir).unwrap();
    assert_eq!((out.verdict, out.exit_status()), (RunResult::Recovered, 0));
    assert!(differing(&before, &look(&sim)).is_empty());
}

#[test]
fn a_device_that_vanishes_in_the_middle() {
    let writes = {
        let (sim, dir) = (igb(), Dir::new());
        apply(&sim, &dir, &shrink(4)).unwrap();
        sim.writes()
    };
    for k in 0..writes {
        let (sim, dir) = (igb(), Dir::new());
        let before = look(&sim);
        sim.fault(SimulatedFault::Vanish { at: At::Write(k), dev: "eth0".into() });
        let out = run(&sim, &dir, &request(&before, &shrink(4))).unwrap();
        assert_eq!(out.exit_status(), 5, "write {k}");
        let now = look(&sim);
        assert!(
            out.put_back_incomplete.iter().all(|n| n.address.dev() == Some("eth0")),
            "{:?}",
            out.put_back_incomplete
        );
        assert!(out.put_back_incomplete.iter().all(|n| n.why == "the device went away"));
        let others: Vec<String> = differing(&before, &now).into_iter().filter(|d| !d.starts_with("eth0 ")).collect();
        assert!(others.is_empty(), "{others:?}");
    }
}

#[test]
fn a_call_that_hangs_is_late_and_the_rest_is_put_back() {
    let (sim, dir) = (igb(), Dir::new());
    let before = look(&sim);
    let request = request(&before, &[rps("eth1", 0, "1"), rps("eth1", 1, "1"), rfs(1024)]);
    sim.fault(SimulatedFault::Hang { at: At::Matching("rx-1/rps_cpus".into()) });
    let policy = ringwise_apply::Policy { deadline: std::time::Duration::from_millis(1500), ..policy() };
    // The simulated call holds no lock while it hangs; the host's other files can be read.
    let out = ringwise_apply::run(&host(&sim), &request, &dir.store(), &policy, &mut |_| {}).unwrap();
    let failure = out.failed.as_ref().unwrap();
    assert_eq!((failure.errno, failure.words.as_str()), (None, "no answer within 1.5 s"));
    assert!(failure.late && out.notes.iter().any(|n| n.contains("may still take effect")), "{out:?}");
    assert_eq!(out.exit_status(), 4);
    assert!(differing(&before, &look(&sim)).is_empty());
    sim.clear_faults();
}

/// The error names the CPU without a free vector, as the kernel's table shows it, or reports that there is no table.
#[test]
fn an_error_about_exhausted_vectors_has_the_numbers() {
    let (sim, dir) = (igb(), Dir::new());
    let now = look(&sim);
    let to = if compare(&irq("eth1", 0, "3"), &now).holds() { "2" } else { "3" };
    let failed = |sim: &Arc<Sim>| apply(sim, &dir, &[irq("eth1", 0, to)]).unwrap().failed.unwrap();
    let fault = SimulatedFault::Fail { at: At::Matching("smp_affinity_list".into()), errno: 28, times: Times::Once };
    sim.fault(fault);
    let meaning = failed(&sim).meaning;
    let none = "this kernel does not show how many are left (/sys/kernel/debug/irq/domains/VECTOR does not exist)";
    assert!(meaning.starts_with("no interrupt vector is left on that CPU") && meaning.ends_with(none), "{meaning}");
    sim.clear_faults();
    sim.fill_cpus(cpus(to));
    let meaning = failed(&sim).meaning;
    let numbers = format!("; CPU {to} has none left, the other online CPUs have 180 left each");
    assert!(meaning.ends_with(&numbers), "{meaning}");
}

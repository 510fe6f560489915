//! What is read and started while the host settles.

use std::path::Path;
use std::sync::{Arc, Mutex};

use ringwise_apply::{Armed, GuardError, Guardian, Job};
use ringwise_kfmt::notification::InterfaceNotification;
use ringwise_model::Goal;

use crate::service::Service;
use crate::service_tests::{Rig, heard, later};

/// The driver resets eth1, and the host settles.
fn prepare_after_reset(rig: &Rig, service: &mut Service) {
    rig.reset("eth1");
    heard(service, InterfaceNotification::Link, "eth1");
    service.prepare();
}

#[test]
fn what_was_prepared_is_written_by_the_look() {
    let rig = Rig::applied(Goal::Forward);
    rig.serve(|service| {
        rig.reset("eth1");
        rig.sim.ethtool_l("eth0", 4).unwrap();
        rig.sim.sleep_past_link();
        heard(service, InterfaceNotification::Link, "eth1");
        heard(service, InterfaceNotification::Channels, "eth0");
        service.prepare();
        let prepared = service.prepared.as_ref().unwrap();
        let planned = prepared.ahead.planned.as_ref().unwrap();
        assert!(planned.interfaces.iter().eq(["eth0"]) && planned.result.is_ok());
        assert_eq!((rig.journals(), rig.holds(), service.state.totals.kept), (1, false, 0), "nothing is written yet");
        service.look(true);
        assert_eq!((rig.journals(), service.state.totals.kept), (2, 1), "{:?}", service.state);
        assert!(service.prepared.is_none());
    });
}

#[test]
fn a_change_between_reading_and_writing_is_not_overwritten() {
    let rig = Rig::applied(Goal::Forward);
    rig.serve(|service| {
        prepare_after_reset(&rig, service);
        let irq = rig.now().nic("eth1").unwrap().queue_vectors().next().unwrap().irq;
        let affinity = format!("/proc/irq/{irq}/smp_affinity_list");
        rig.sim.outside(|h| h.write(&affinity, b"7\n").unwrap());
        service.look(true);
        let is_now = || {
            let now = rig.now();
            let vector = now.nic("eth1").unwrap().queue_vectors().find(|v| v.irq == irq).unwrap();
            vector.asked.known().unwrap().to_string()
        };
        assert_eq!(is_now(), "7", "{:?}", service.state);
        later(service);
        service.look(false);
        assert_eq!((is_now().as_str(), service.state.manual.len()), ("7", 1), "{:?}", service.state);
    });
}

#[test]
fn the_next_comparison_finds_what_changed_after_the_host_was_read() {
    let rig = Rig::applied(Goal::Forward);
    rig.serve(|service| {
        // The link changes, and nothing is lost.
        heard(service, InterfaceNotification::Link, "eth1");
        service.prepare();
        let irq = rig.now().nic("eth0").unwrap().queue_vectors().next().unwrap().irq;
        rig.sim.outside(|h| h.write(&format!("/proc/irq/{irq}/smp_affinity_list"), b"7\n").unwrap());
        service.look(true);
        assert_eq!((rig.journals(), service.state.manual.len()), (1, 0), "{:?}", service.state);
        service.look(false);
        assert_eq!(service.state.manual.len(), 1, "{:?}", service.state);
    });
}

#[test]
fn a_transaction_of_a_person_replaces_what_was_prepared() {
    let rig = Rig::applied(Goal::Forward);
    rig.serve(|service| {
        prepare_after_reset(&rig, service);
        assert!(service.prepared.is_some());
        rig.apply(Goal::Balanced);
        service.look(true);
        assert!(rig.holds());
        assert_eq!((rig.journals(), service.state.totals.kept), (2, 0), "{:?}", service.state);
    });
}

/// Notes what is requested of it, and starts nothing.
#[derive(Debug, Default)]
struct NotedGuards(Mutex<Vec<String>>);

struct NoProcess;

impl Guardian for NotedGuards {
    fn arm(&self, job: &Job) -> Result<Box<dyn Armed>, GuardError> {
        self.0.lock().unwrap().push(format!("arm {}", job.transaction));
        Ok(Box::new(NoProcess))
    }

    fn arm_for_tables(&self, _: &Path) -> Result<Box<dyn Armed>, GuardError> {
        Ok(Box::new(NoProcess))
    }

    fn prepare(&self, _: &Path, transaction: u64) {
        self.0.lock().unwrap().push(format!("prepare {transaction}"));
    }

    fn release(&self) {
        self.0.lock().unwrap().push("release".into());
    }
}

impl Armed for NoProcess {
    fn is_there(&mut self) -> bool {
        true
    }

    fn begun(&mut self) -> Result<(), GuardError> {
        Ok(())
    }

    fn done(&mut self, _: bool) -> Result<(), GuardError> {
        Ok(())
    }
}

#[test]
fn the_guard_starts_while_the_host_settles() {
    let mut rig = Rig::applied(Goal::Forward);
    let guards = Arc::new(NotedGuards::default());
    rig.setup.guard = Some(guards.clone());
    let noted = || std::mem::take(&mut *guards.0.lock().unwrap());
    rig.serve(|service| {
        assert_eq!(noted(), ["release"]);
        // Nothing was lost: no guard is needed.
        heard(service, InterfaceNotification::Link, "eth1");
        service.prepare();
        service.look(true);
        assert_eq!(noted(), ["release"]);
        prepare_after_reset(&rig, service);
        assert_eq!(noted(), ["prepare 2"]);
        service.look(true);
        assert_eq!(noted(), ["arm 2", "release"]);
    });
}

//! The service on a simulated host, look by look. The lab has the same on real kernels (366-daemon.sh).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ringwise_apply::{Policy, ProcessId, Request, RunResult, Store};
use ringwise_discover::Options;
use ringwise_intent::{ManualChangePolicy, Planning, PlanningHost};
use ringwise_kfmt::notification::{InterfaceChange, InterfaceNotification, Uevent};
use ringwise_model::{CpuId, Goal, Intent, IntentFlags, Requested, Snapshot, Title};
use ringwise_sys::proc::install_signal_flag;
use ringwise_sys::{Clock, Host};
use ringwise_testkit::dir::Dir;
use ringwise_testkit::sim::{At, Sim, SimulatedFault, build};

use crate::control::{ControlReply, ControlRequest};
use crate::event::Event;
use crate::service::{Service, ServiceSetup};
use crate::state::{ActionCause, ActionEnding, ServiceState};

pub(crate) struct Rig {
    pub(crate) sim: Arc<Sim>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) setup: ServiceSetup,
    _dir: Dir,
}

impl Rig {
    /// Two interfaces with eight queues each, on which a person has applied a goal.
    pub(crate) fn applied(goal: Goal) -> Self {
        let sim = Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).igb("eth1", 0, 8).done()));
        Self::of(sim, goal)
    }

    pub(crate) fn of(sim: Arc<Sim>, goal: Goal) -> Self {
        let rig = Self::untouched(sim);
        rig.apply(goal);
        rig
    }

    /// Two interfaces, of which a person has applied a goal to one.
    pub(crate) fn applied_to(dev: &str, goal: Goal) -> Self {
        let sim = Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).igb("eth1", 0, 8).done()));
        let rig = Self::untouched(sim);
        rig.apply_intent(Intent { goal, devs: vec![dev.into()], ..Intent::default() });
        rig
    }

    fn untouched(sim: Arc<Sim>) -> Self {
        let dir = Dir::new();
        let host: Arc<dyn Host> = sim.clone();
        let store = Store::open(Some(&dir.0)).with_socket_name(format!("ringwise-daemon{}", dir.0.display()));
        let setup =
            ServiceSetup { store, config: Some("none".into()), guard: None, follow: false, act_on_load: Vec::new() };
        Self { sim, host, setup, _dir: dir }
    }

    pub(crate) fn now(&self) -> Snapshot {
        ringwise_discover::snapshot(&self.host, &Options::all()).unwrap()
    }

    pub(crate) fn apply(&self, goal: Goal) {
        self.apply_intent(Intent { goal, ..Intent::default() });
    }

    fn apply_intent(&self, intent: Intent) {
        let (snapshot, goal) = (self.now(), intent.goal);
        let host = PlanningHost {
            options: Options::all(),
            snapshot,
            learned: Vec::new(),
            hands: Vec::new(),
            made: Vec::new(),
            late: BTreeSet::new(),
        };
        let planning = Planning::new(self.host.as_ref(), host, intent, true, false).unwrap();
        let plan = planning.plan(ManualChangePolicy::Over).unwrap();
        let flags = IntentFlags { goal: Some(goal.into()), ..IntentFlags::default() };
        let requested = Requested { flags: Some(flags), intent: planning.requested.clone() };
        let by =
            Request { title: Title::Goal { goal }, who: "root".into(), argv: vec!["x".into()], ..Request::default() };
        let request = ringwise_intent::request(&plan, requested, false).by(&by);
        let o = ringwise_apply::run(&self.host, &request, &self.setup.store, &Policy::default(), &mut |_| {}).unwrap();
        assert_eq!(o.verdict, RunResult::Applied);
    }

    /// Runs `f` with a service that has looked once and found nothing to do.
    pub(crate) fn serve(&self, f: impl FnOnce(&mut Service)) -> Vec<Event> {
        let mut events = Vec::new();
        let mut log = |e: &Event| {
            if !matches!(e, Event::Step(_)) {
                events.push(e.clone());
            }
        };
        let process = ProcessId { pid: std::process::id(), started: 1 };
        let mut service = Service::new(&self.host, &self.setup, process, install_signal_flag().unwrap(), &mut log);
        service.load();
        service.take_over_tables();
        service.look(true);
        assert_eq!((service.state.totals.kept, service.state.problem.clone()), (0, None));
        f(&mut service);
        drop(service);
        events
    }

    pub(crate) fn holds(&self) -> bool {
        let v = ringwise_apply::verify_in(&self.now(), &self.setup.store).unwrap();
        !v.settings.is_empty() && v.drifted().next().is_none()
    }

    pub(crate) fn journals(&self) -> usize {
        ringwise_apply::history(&self.setup.store, &self.now().host).unwrap().len()
    }

    /// The driver requests its vectors again.
    pub(crate) fn reset(&self, dev: &str) {
        let now = self.now();
        self.sim.outside(|h| {
            for v in now.nic(dev).unwrap().queue_vectors() {
                h.write(&format!("/proc/irq/{}/smp_affinity_list", v.irq), b"0-7\n").unwrap();
            }
        });
    }
}

pub(crate) fn heard(service: &mut Service, change: InterfaceNotification, dev: &str) {
    assert!(service.evidence.interface(&InterfaceChange { change, ifindex: None, name: Some(dev.into()) }));
}

/// As if the time between two transactions had passed.
pub(crate) fn later(service: &mut Service) {
    service.schedule.wrote(Duration::ZERO);
}

#[test]
fn a_reset_is_corrected_in_a_transaction_of_its_own() {
    let rig = Rig::applied(Goal::Forward);
    assert!(rig.holds());
    rig.serve(|service| {
        rig.reset("eth1");
        heard(service, InterfaceNotification::Link, "eth1");
        service.look(true);
        assert!(rig.holds(), "{:?}", service.state);
        let action = service.state.actions.last().unwrap();
        assert_eq!((action.cause, action.ending), (ActionCause::Reset, ActionEnding::Kept));
        assert_eq!((action.interfaces.clone(), action.transaction), (vec!["eth1".into()], Some(2)));
        service.look(true);
        assert_eq!((rig.journals(), service.state.totals.kept), (2, 1), "and then there is nothing to do");
        // Too early for another transaction: it comes with a later look, with the same evidence.
        rig.reset("eth0");
        heard(service, InterfaceNotification::Link, "eth0");
        service.look(true);
        assert!(!rig.holds());
        later(service);
        service.look(true);
        assert!(rig.holds());
        assert_eq!(rig.journals(), 3);
    });
    // A rollback by a person undoes the service's transactions with the own one.
    let undo = ringwise_apply::would_undo(&rig.now(), &rig.setup.store, 1).unwrap();
    assert!(!undo.steps.is_empty());
    let base = ringwise_apply::Journals::read(&rig.setup.store).unwrap().without_service();
    assert_eq!(base.history(&rig.now().host).len(), 1);
}

#[test]
fn a_manual_change_stays_and_is_reported_once() {
    let rig = Rig::applied(Goal::Forward);
    let change = || {
        let irq = rig.now().nic("eth0").unwrap().queue_vectors().next().unwrap().irq;
        rig.sim.outside(|h| h.write(&format!("/proc/irq/{irq}/smp_affinity_list"), b"0-7\n").unwrap());
    };
    let reported = |events: &[Event]| events.iter().filter(|e| matches!(e, Event::Manual(_))).count();
    let events = rig.serve(|service| {
        change();
        service.look(false);
        service.look(false);
        assert_eq!((rig.journals(), service.state.manual.len()), (1, 1));
        // The default value after a link change looks like a reset; but it was a manual change before.
        heard(service, InterfaceNotification::Link, "eth0");
        service.look(true);
        assert_eq!(rig.journals(), 1);
    });
    assert_eq!(reported(&events), 1);
    // Nor is it reported again after a restart of the service.
    assert_eq!(reported(&rig.serve(|service| assert_eq!(service.state.manual.len(), 1))), 0);
}

#[test]
fn another_number_of_queues_is_kept_and_configured() {
    let rig = Rig::applied(Goal::Forward);
    rig.serve(|service| {
        rig.sim.ethtool_l("eth0", 4).unwrap();
        rig.sim.sleep_past_link();
        heard(service, InterfaceNotification::Channels, "eth0");
        service.look(true);
        let nic = rig.now().nic("eth0").unwrap().clone();
        assert_eq!(nic.rx_queues.len(), 4);
        let spread = |v: &&ringwise_model::Vector| v.asked.known().is_some_and(|c| c.len() != 1);
        assert_eq!(nic.queue_vectors().filter(spread).count(), 0, "{:?}", service.state);
        assert_eq!(service.state.totals.kept, 1);
        later(service);
        service.look(true);
        assert_eq!(service.state.totals.kept, 1, "and then there is nothing to do: {:?}", service.state);
        rig.sim.ethtool_l("eth0", 8).unwrap();
        rig.sim.sleep_past_link();
        heard(service, InterfaceNotification::Channels, "eth0");
        later(service);
        service.look(true);
        assert!(rig.holds(), "{:?}", service.state);
    });
}

/// As igb does when virtual functions are made and removed: nothing is heard.
#[test]
fn queues_that_come_back_without_a_notification_are_configured_again() {
    let rig = Rig::applied(Goal::Forward);
    rig.serve(|service| {
        for queues in [2, 8] {
            rig.sim.ethtool_l("eth0", queues).unwrap();
            rig.sim.sleep_past_link();
            later(service);
            service.look(false);
        }
        assert!(rig.holds(), "{:?}", service.state);
        assert_eq!(service.state.totals.manual, 0, "{:?}", service.state);
    });
}

#[test]
fn the_table_is_weighted_for_another_number_of_queues() {
    let sim = Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 8).done()));
    let rig = Rig::of(sim, Goal::Forward);
    rig.serve(|service| {
        rig.sim.ethtool_l("eth0", 6).unwrap();
        rig.sim.sleep_past_link();
        heard(service, InterfaceNotification::Channels, "eth0");
        service.look(true);
        let nic = rig.now().nic("eth0").unwrap().clone();
        let table = &nic.rss.known().unwrap().table;
        let mut entries = [0; 4];
        for q in table {
            let vector = nic.vector_of(ringwise_model::Dir::Rx, *q).unwrap();
            let cpu = vector.asked.known().unwrap().iter().next().unwrap();
            entries[cpu.0 as usize] += 1;
        }
        assert_eq!(nic.rx_queues.len(), 6, "two of the four CPUs have two queues");
        assert_eq!(entries, [table.len() / 4; 4], "each CPU gets a quarter: {table:?}");
    });
}

#[test]
fn queues_leave_a_cpu_and_come_home() {
    let rig = Rig::applied(Goal::Forward);
    let on = |cpu: u32| {
        let now = rig.now();
        let has = |v: &&ringwise_model::Vector| v.asked.known().is_some_and(|c| c.iter().eq([CpuId(cpu)]));
        now.nics.iter().flat_map(|n| n.queue_vectors().filter(has).collect::<Vec<_>>()).count()
    };
    let (before, as_applied) = (on(3), rig.now());
    assert!(before > 0);
    rig.serve(|service| {
        rig.sim.cpu_offline(CpuId(3));
        service.evidence.uevent(&Uevent::Cpu { cpu: 3, online: false });
        service.look(true);
        assert_eq!(service.state.actions.last().map(|a| a.cause), Some(ActionCause::Cpus), "{:?}", service.state);
        assert_eq!(on(3), 0);
        rig.sim.cpu_online(CpuId(3));
        service.evidence.uevent(&Uevent::Cpu { cpu: 3, online: true });
        later(service);
        service.look(true);
        assert_eq!(on(3), before);
        assert!(rig.holds(), "{:?}", service.state);
        let table = |now: &Snapshot| now.nic("eth0").unwrap().rss.known().unwrap().table.clone();
        assert_eq!(table(&rig.now()), table(&as_applied), "weights for seven CPUs are not needed any more");
    });
}

/// The transaction that moves queues away from an offline CPU fails, and restores the masks that the kernel gave. When the pause
/// ends the CPU is online again, and no event reports that it was offline.
#[test]
fn what_the_kernel_moved_comes_home_after_a_failed_transaction() {
    let rig = Rig::applied(Goal::Forward);
    let on_cpu_3 = || {
        let has = |v: &&ringwise_model::Vector| v.asked.known().is_some_and(|c| c.iter().eq([CpuId(3)]));
        rig.now().nic("eth0").unwrap().queue_vectors().filter(has).count()
    };
    let before = on_cpu_3();
    assert!(before > 0);
    rig.serve(|service| {
        rig.sim.cpu_offline(CpuId(3));
        service.evidence.uevent(&Uevent::Cpu { cpu: 3, online: false });
        rig.sim.forget_writes();
        rig.sim.fault(SimulatedFault::Vanish { at: At::Write(3), dev: "eth1".into() });
        service.look(true);
        let last = service.state.actions.last().map(|a| a.ending);
        assert!(last.is_some_and(|e| e != ActionEnding::Kept), "{:?}", service.state.actions);
        assert_eq!(service.pauses.names().into_iter().collect::<Vec<_>>(), ["eth0", "eth1"]);
        rig.sim.cpu_online(CpuId(3));
        service.evidence.uevent(&Uevent::Cpu { cpu: 3, online: true });
        // Paused, and what was heard is forgotten.
        later(service);
        service.look(true);
        assert_eq!((on_cpu_3(), service.state.manual.len()), (0, 0), "{:?}", service.state.manual);
        rig.sim.sleep(Duration::from_secs(61));
        service.look(false);
        assert_eq!(on_cpu_3(), before, "{:?}", service.state);
        assert!(service.state.manual.is_empty(), "{:?}", service.state.manual);
    });
}

/// The driver is loaded again while the table has weights for seven CPUs, and the CPU comes back before the service looks.
#[test]
fn weights_that_a_reset_has_removed_are_not_expected_any_more() {
    let rig = Rig::applied(Goal::Forward);
    let table = || rig.now().nic("eth0").unwrap().rss.known().unwrap().table.clone();
    let even = table();
    rig.serve(|service| {
        for heard_of_it in [true, false] {
            let journals = rig.journals();
            rig.sim.cpu_offline(CpuId(3));
            service.evidence.uevent(&Uevent::Cpu { cpu: 3, online: false });
            later(service);
            service.look(true);
            assert_ne!(table(), even, "{:?}", service.state);
            rig.sim.ethtool_x("eth0", &even).unwrap();
            if heard_of_it {
                heard(service, InterfaceNotification::Link, "eth0");
            }
            rig.sim.cpu_online(CpuId(3));
            service.evidence.uevent(&Uevent::Cpu { cpu: 3, online: true });
            later(service);
            service.look(true);
            later(service);
            service.look(true);
            assert_eq!(table(), even);
            assert!(rig.holds(), "{:?}", service.state);
            assert_eq!((service.state.totals.manual, service.state.manual.len()), (0, 0), "{:?}", service.state);
            assert_eq!(rig.journals(), journals + 2, "one for the way there and one for the way back");
        }
    });
}

#[test]
fn people_decide() {
    let rig = Rig::applied(Goal::Forward);
    rig.serve(|service| {
        service.state.paused = true;
        rig.reset("eth0");
        heard(service, InterfaceNotification::Link, "eth0");
        service.look(true);
        assert_eq!(rig.journals(), 1, "paused");
        service.state.paused = false;
        rig.apply(Goal::Balanced);
        let now = rig.journals();
        service.evidence.lost();
        service.look(true);
        assert_eq!(rig.journals(), now, "the result of a person's apply is the base");
        let undone = Request { title: Title::Rollback { of: 0 }, who: "root".into(), ..Request::default() };
        ringwise_apply::rollback(&rig.host, &rig.setup.store, 0, &undone, &Policy::default(), &mut |_| {}).unwrap();
        let now = rig.journals();
        for _ in 0..3 {
            service.evidence.lost();
            later(service);
            service.look(true);
        }
        assert_eq!(rig.journals(), now, "after a rollback nothing is wanted");
    });
}

#[test]
fn an_adopted_value_is_kept() {
    let rig = Rig::applied(Goal::Forward);
    let affinity = || {
        let irq = rig.now().nic("eth0").unwrap().queue_vectors().next().unwrap().irq;
        format!("/proc/irq/{irq}/smp_affinity_list")
    };
    let is = |cpus: &str| rig.host.read(&affinity()).is_ok_and(|b| b.trim_ascii() == cpus.as_bytes());
    rig.serve(|service| {
        assert!(!is("5"));
        rig.sim.outside(|h| h.write(&affinity(), b"5\n").unwrap());
        service.look(false);
        assert_eq!(service.state.manual.len(), 1);
        let (store, by) = (&rig.setup.store, Request { who: "root".into(), ..Request::default() });
        let o = ringwise_apply::adopt(&rig.host, store, &[], &by, &Policy::default(), &mut |_| {}).unwrap();
        assert_eq!(o.verdict, RunResult::Applied);
        service.look(false);
        assert!(service.state.manual.is_empty(), "it is the base now");
        rig.reset("eth0");
        heard(service, InterfaceNotification::Link, "eth0");
        service.look(true);
        assert!(is("5") && rig.holds(), "{:?}", service.state);
    });
}

#[test]
fn at_the_end_everything_is_restored_on_request() {
    let rig = Rig::applied(Goal::Forward);
    let first = |service: &mut Service| {
        rig.reset("eth1");
        heard(service, InterfaceNotification::Link, "eth1");
        service.look(true);
        assert!(rig.holds());
        let answer = service.restore().unwrap();
        assert_eq!(answer, ControlReply { error: None, transaction: Some(3), status: Some(0) });
    };
    rig.serve(first);
    let now = rig.now();
    let affinity = |n: &ringwise_model::Nic| n.queue_vectors().all(|v| v.asked.known().is_some_and(|c| c.len() == 8));
    assert!(now.nics.iter().filter(|n| n.has_own_queues()).all(affinity), "as before the first transaction");
    let last = ringwise_apply::history(&rig.setup.store, &now.host).unwrap().pop().unwrap();
    assert_eq!((last.who.as_str(), last.title), (ringwise_apply::SERVICE, Title::Rollback { of: 0 }));
}

#[test]
fn a_host_that_does_not_change_is_read_but_not_compared() {
    let rig = Rig::applied(Goal::Forward);
    rig.serve(|service| {
        service.look(false);
        assert!(service.seen.is_some());
        let read = service.to_read.as_mut().unwrap().read(&rig.host);
        assert!(service.is_unchanged(read.as_ref()), "{:?} {read:?}", service.seen);
        service.look(false);
        rig.reset("eth0");
        service.look(false);
        assert_eq!(service.state.manual.len(), 8, "without a notification they are manual changes");
    });
}

#[test]
fn what_is_published_is_read_back() {
    let rig = Rig::applied(Goal::Forward);
    rig.serve(|service| {
        service.pauses.pause("eth1");
        service.publish_state();
        let read = ServiceState::last(&rig.setup.store).unwrap().unwrap();
        assert_eq!(read, service.state);
        assert_eq!((read.pauses.len(), read.schema.as_str()), (1, "ringwise.daemon"));
    });
}

/// Nothing had to be written at the start, so there is no transaction to keep.
#[test]
fn what_the_configuration_covers_is_kept_although_nothing_was_written_for_it() {
    let mut rig = Rig::applied(Goal::Forward);
    let dir = Dir::new();
    rig.setup.store = Store::open(Some(&dir.0)).with_socket_name(format!("ringwise-daemon{}", dir.0.display()));
    let file = dir.0.join("ringwise.toml");
    std::fs::write(&file, "version = 1\n[host]\ngoal = \"forward\"\n").unwrap();
    rig.setup.config = Some(file);
    rig.serve(|service| {
        assert_eq!((rig.journals(), service.kept()), (0, 0));
        rig.reset("eth0");
        heard(service, InterfaceNotification::Link, "eth0");
        later(service);
        service.look(true);
        assert_eq!((rig.journals(), service.state.problem.clone()), (1, None));
        service.look(true);
        assert!(rig.holds() && service.kept() > 0);
        assert_eq!(rig.journals(), 1);
    });
}

/// A file with a fault is a problem until it is loaded again, not only until the next look.
#[test]
fn a_fault_of_the_configuration_stays_reported() {
    let mut rig = Rig::applied(Goal::Forward);
    let file = rig._dir.0.join("ringwise.toml");
    std::fs::write(&file, "version = 1\n[host]\ngaol = \"rpc\"\n").unwrap();
    rig.setup.config = Some(file.clone());
    let mut log = |_: &Event| {};
    let process = ProcessId { pid: std::process::id(), started: 1 };
    let mut service = Service::new(&rig.host, &rig.setup, process, install_signal_flag().unwrap(), &mut log);
    service.load();
    for full in [true, false, false] {
        service.look(full);
        assert!(service.state.problem.as_ref().is_some_and(|p| p.contains("gaol")), "{:?}", service.state.problem);
    }
    std::fs::write(&file, "version = 1\n[host]\ngoal = \"balanced\"\n").unwrap();
    service.reload();
    assert_eq!(service.state.problem, None);
    let last = service.state.actions.last().map(|a| (a.cause, a.ending));
    assert_eq!(last, Some((ActionCause::Configuration, ActionEnding::Kept)), "{:?}", service.state);
}

/// The configuration is applied like `apply --yes`: with `allow_disruption` it interrupts traffic, at the start and on a reload. The
/// control path is protected, and nothing else of the file is set then.
#[test]
fn the_configuration_may_interrupt_traffic_but_not_the_control_path() {
    let mut rig = Rig::applied(Goal::Balanced);
    let dir = Dir::new();
    rig.setup.store = Store::open(Some(&dir.0)).with_socket_name(format!("ringwise-daemon{}", dir.0.display()));
    let file = dir.0.join("ringwise.toml");
    let configure = |queues: u32, allowed: bool| {
        let text = format!("version = 1\n[host]\nqueues = {queues}\nallow_disruption = {allowed}\n");
        std::fs::write(&file, text).unwrap();
    };
    let queues = |rig: &Rig| {
        let now = rig.now();
        ["eth0", "eth1"].map(|d| now.nic(d).unwrap().channels.known().unwrap().combined.unwrap().now)
    };
    rig.setup.config = Some(file.clone());
    configure(4, true);
    let mut log = Vec::new();
    let mut hear = |e: &Event| log.push(e.to_string());
    let process = ProcessId { pid: std::process::id(), started: 1 };
    let mut service = Service::new(&rig.host, &rig.setup, process, install_signal_flag().unwrap(), &mut hear);
    service.load();
    service.look(true);
    assert_eq!(queues(&rig), [4, 4], "{:?}", service.state);

    configure(6, false);
    later(&mut service);
    service.reload();
    assert_eq!(queues(&rig), [4, 4], "{:?}", service.state);

    rig.sim.ssh_from("192.0.2.9", "eth0");
    let text = "version = 1\n[host]\ngoal = \"forward\"\nqueues = 2\nallow_disruption = true\n";
    std::fs::write(&file, text).unwrap();
    later(&mut service);
    service.reload();
    assert_eq!(queues(&rig), [4, 4], "{:?}", service.state);
    let last = service.state.actions.last().unwrap();
    assert_eq!((last.cause, last.ending), (ActionCause::Configuration, ActionEnding::Kept), "the rest is applied");
    assert_eq!((service.pauses.names().len(), service.state.problem.clone()), (0, None));

    // `stop --restore` has the status of `ringwise rollback 0`.
    let (answer, ends) = service.answer(&ControlRequest::Stop { restore: true });
    assert_eq!((answer.exit_status(), ends), (6, false), "{answer:?}");
    assert_eq!(queues(&rig), [4, 4]);
    drop(service);
    assert!(log.iter().any(|t| t.contains("would interrupt your ssh session")), "{log:?}");
}

//! The service moves interrupts on a simulated host: loads are given, transactions are real.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringwise_apply::{Policy, Request, restore_balanced};
use ringwise_kfmt::notification::{InterfaceNotification, Uevent};
use ringwise_model::{CpuId, CpuSet, Dir, Goal};
use ringwise_observe::{CpuRates, LinkRates, QueueRates, Rates};
use ringwise_sys::Clock;
use ringwise_testkit::sim::{Sim, build};

use crate::event::Event;
use crate::follow::tests::of_queue;
use crate::follow::{FollowFinding, layout};
use crate::load_rig::{balanced, hands_over, second};
use crate::service::Service;
use crate::service_tests::{Rig, heard, later};
use crate::state::ActionCause;

const DEV: &str = "eth0";
/// The queue whose CPU a program takes.
const QUEUE: u32 = 1;

/// Four queues, each with a CPU of its own, and four CPUs without one.
fn rig() -> Rig {
    let sim = Arc::new(Sim::new(&build::host(8, 1).igb(DEV, 0, 4).done()));
    let mut rig = Rig::of(sim, Goal::Forward);
    (rig.setup.follow, rig.setup.act_on_load) = (true, vec![DEV.into()]);
    rig
}

fn cpu_of(rig: &Rig, queue: u32) -> u32 {
    cpus(rig)[queue as usize]
}

fn cpus(rig: &Rig) -> Vec<u32> {
    let nic = ringwise_discover::device(&rig.host, DEV, Duration::from_secs(20)).unwrap();
    let cpu = |q| nic.vector_of(Dir::Rx, q).unwrap().taken_by().unwrap().first().unwrap().0;
    (0..4).map(cpu).collect()
}

fn xps(rig: &Rig) -> Vec<CpuSet> {
    let nic = ringwise_discover::device(&rig.host, DEV, Duration::from_secs(20)).unwrap();
    nic.tx_queues.iter().map(|q| q.xps_cpus.known().unwrap().clone()).collect()
}

/// A second in which each queue takes a quarter of its CPU, and a program the rest of the time of one CPU.
fn rates(of_queues: &[u32], program: u32) -> Rates {
    let queue = |id: u32| QueueRates { packets: Some(1000), drops: Some(0), ..of_queue(id) };
    let link = LinkRates { queues: (0..4).map(queue).collect(), ..LinkRates::default() };
    let cpu = |id: u32| {
        let packets = 25.0 * of_queues.iter().filter(|c| **c == id).count() as f64;
        let rates = CpuRates {
            softirq_percent: Some(packets),
            irq_percent: Some(0.0),
            napi_threads_percent: Some(0.0),
            idle_percent: Some(if id == program { 0.0 } else { 98.0 - packets }),
            ..CpuRates::default()
        };
        (CpuId(id), rates)
    };
    let links = BTreeMap::from([(DEV.to_string(), link)]);
    Rates { seconds: 1.0, cpus: (0..8).map(cpu).collect(), links, ..Rates::default() }
}

/// Where the program runs.
#[derive(Clone, Copy)]
enum ProgramCpu {
    On(u32),
    /// On the CPU of the queue, wherever that is.
    Follows,
}

fn seconds(rig: &Rig, service: &mut Service, program: ProgramCpu, n: u32) {
    for _ in 0..n {
        rig.sim.sleep(Duration::from_secs(1));
        let layout = layout(&rig.host).unwrap();
        let of_queues = cpus(rig);
        let program = match program {
            ProgramCpu::On(cpu) => cpu,
            ProgramCpu::Follows => of_queues[QUEUE as usize],
        };
        second(rig, service, &layout, &rates(&of_queues, program));
    }
}

fn affinity(rig: &Rig, queue: u32, cpu: u32) {
    let irq = rig.now().nic(DEV).unwrap().vector_of(Dir::Rx, queue).unwrap().irq;
    let path = format!("/proc/irq/{irq}/smp_affinity_list");
    rig.sim.outside(|h| h.write(&path, format!("{cpu}\n").as_bytes()).unwrap());
}

#[test]
fn a_queue_moves_away_from_a_program_and_the_base_comes_back() {
    let rig = rig();
    let first = cpus(&rig);
    let program = ProgramCpu::On(first[QUEUE as usize]);
    let in_effect = || ringwise_apply::verify_in(&rig.now(), &rig.setup.store).unwrap().settings.len();
    let before = in_effect();
    let events = rig.serve(|service| {
        seconds(&rig, service, program, 30);
        let now = cpus(&rig);
        assert!(!first.contains(&now[QUEUE as usize]), "{now:?}: {:?}", service.state);
        assert_eq!((now[0], now[2], now[3]), (first[0], first[2], first[3]));
        assert_eq!((service.state.totals.moved_interrupts, service.state.totals.interrupts_taken_back), (1, 0));
        assert!(rig.holds(), "what the service moved is in effect");
        assert_eq!(balanced(&rig), 1, "its transmit queue has an interrupt of its own, which stays, so XPS stays");
        // Looks without an event leave it alone.
        service.look(false);
        later(service);
        service.look(true);
        assert_eq!(cpus(&rig), now, "{:?}", service.state.actions);
        assert!(service.state.manual.is_empty());
    });
    let moved =
        |f: &FollowFinding| matches!(f, FollowFinding::MovedInterrupt { interrupt, .. } if interrupt.queues == [QUEUE]);
    assert!(events.iter().any(|e| matches!(e, Event::Load(l) if moved(&l.finding))), "{events:?}");
    // As the guard does it when the service is gone.
    let by = Request { who: "guard".into(), ..Request::default() };
    restore_balanced(&rig.host, &rig.setup.store, None, &by, &Policy::default()).unwrap();
    assert_eq!((cpus(&rig), balanced(&rig), in_effect()), (first, 0, before));
    assert!(rig.holds());
}

/// Receive and transmit queues share an interrupt.
fn combined() -> Rig {
    let sim = Arc::new(Sim::new(&build::host(8, 1).vmxnet3(DEV, 0, 4).done()));
    let mut rig = Rig::of(sim, Goal::Forward);
    (rig.setup.follow, rig.setup.act_on_load) = (true, vec![DEV.into()]);
    rig
}

#[test]
fn xps_follows_an_interrupt_and_returns_with_it() {
    let rig = combined();
    let (first, masks) = (cpus(&rig), xps(&rig));
    assert!(masks.iter().all(|m| !m.is_empty()), "{masks:?}");
    rig.serve(|service| {
        seconds(&rig, service, ProgramCpu::On(first[QUEUE as usize]), 30);
        let (now, moved) = (cpus(&rig), xps(&rig));
        assert_ne!(now, first, "{:?}", service.state);
        // Each CPU with a queue of its own sends through it.
        assert!((0..4).all(|q| moved[q].contains(CpuId(now[q]))), "{now:?}: {moved:?}");
        let changed = masks.iter().zip(&moved).filter(|(a, b)| a != b).count();
        assert!(changed > 0);
        assert_eq!(balanced(&rig), 1 + changed);
        assert!(rig.holds());
        service.look(false);
        later(service);
        service.look(true);
        assert_eq!(xps(&rig), moved, "{:?}", service.state.actions);
    });
    let by = Request { who: "guard".into(), ..Request::default() };
    restore_balanced(&rig.host, &rig.setup.store, None, &by, &Policy::default()).unwrap();
    assert_eq!((cpus(&rig), xps(&rig), balanced(&rig)), (first, masks, 0));
}

#[test]
fn xps_masks_of_a_user_do_not_follow() {
    let rig = combined();
    let first = cpus(&rig);
    rig.serve(|service| {
        let path = format!("/sys/class/net/{DEV}/queues/tx-3/xps_cpus");
        rig.sim.outside(|h| h.write(&path, b"1").unwrap());
        service.look(false);
        let masks = xps(&rig);
        seconds(&rig, service, ProgramCpu::On(first[QUEUE as usize]), 30);
        assert_ne!(cpus(&rig), first);
        assert_eq!((xps(&rig), balanced(&rig)), (masks, 1));
    });
}

#[test]
fn a_move_that_does_not_help_is_taken_back() {
    let rig = rig();
    let first = cpus(&rig);
    rig.serve(|service| {
        for _ in 0..30 {
            seconds(&rig, service, ProgramCpu::Follows, 1);
            if cpus(&rig) != first {
                break;
            }
        }
        assert_ne!(cpus(&rig), first, "{:?}", service.state);
        seconds(&rig, service, ProgramCpu::Follows, 8);
        assert_eq!(cpus(&rig), first, "{:?}", service.state.actions);
        assert_eq!(service.state.totals.interrupts_taken_back, 1);
        assert_eq!(service.state.actions.last().unwrap().cause, ActionCause::LoadRestored);
        assert_eq!(balanced(&rig), 0);
        service.look(false);
        assert!(rig.holds());
    });
}

#[test]
fn nothing_is_written_without_the_request_of_a_user_or_permitted_cpus() {
    for acts in [false, true] {
        let mut rig = rig();
        if !acts {
            rig.setup.act_on_load = vec!["eth1".into()];
        }
        let (first, journals) = (cpus(&rig), rig.journals());
        let events = rig.serve(|service| {
            if acts {
                assert!(service.permitted.contains_key(DEV));
                service.permitted.clear();
            }
            seconds(&rig, service, ProgramCpu::On(first[QUEUE as usize]), 60);
            assert_eq!((cpus(&rig), rig.journals()), (first.clone(), journals));
            assert_eq!(service.state.totals.better_interrupts > 0, !acts, "{:?}", service.state);
            let would =
                |f: &FollowFinding| matches!(f, FollowFinding::WouldMoveInterrupt { interrupt, .. } if interrupt.queues == [QUEUE]);
            let proposed = service.state.loads.iter().any(|l| would(&l.finding));
            assert_eq!(proposed, !acts, "{:?}", service.state.loads);
        });
        let lines = events.iter().filter(|e| matches!(e, Event::Load(_))).count();
        assert_eq!(lines, usize::from(!acts), "it is reported once, although it is found again: {events:?}");
    }
}

#[test]
fn an_interrupt_that_a_user_moves_stays() {
    let rig = rig();
    let first = cpus(&rig);
    let program = ProgramCpu::On(first[QUEUE as usize]);
    rig.serve(|service| {
        seconds(&rig, service, program, 30);
        assert_ne!(cpus(&rig), first);
        affinity(&rig, QUEUE, first[QUEUE as usize]);
        let mine = cpus(&rig);
        seconds(&rig, service, program, 20);
        let off = service.state.loads.iter().any(|l| matches!(l.finding, FollowFinding::Off { .. }));
        assert!(off, "{:?}", service.state.loads);
        service.look(false);
        assert_eq!(cpus(&rig), mine);
        assert_eq!(service.state.manual.len(), 1, "{:?}", service.state);
        restore_balanced(&rig.host, &rig.setup.store, None, &Request::default(), &Policy::default()).unwrap();
        assert_eq!(cpus(&rig), mine, "nothing restores over it");
    });
}

#[test]
fn events_end_the_moves_before_the_layout_is_corrected() {
    let rig = rig();
    let first = cpus(&rig);
    let program = ProgramCpu::On(first[QUEUE as usize]);
    rig.serve(|service| {
        seconds(&rig, service, program, 30);
        assert_ne!(cpus(&rig), first);
        heard(service, InterfaceNotification::Link, DEV);
        later(service);
        service.look(true);
        assert_eq!((cpus(&rig), balanced(&rig)), (first.clone(), 0), "{:?}", service.state.actions);
        // The CPU to which the queue has moved goes offline: the kernel moves the interrupt.
        seconds(&rig, service, program, 75);
        let moved = cpu_of(&rig, QUEUE);
        assert_ne!(moved, first[QUEUE as usize], "{:?}", service.state);
        rig.sim.cpu_offline(CpuId(moved));
        service.evidence.uevent(&Uevent::Cpu { cpu: moved, online: false });
        later(service);
        service.look(true);
        later(service);
        service.look(true);
        assert!(rig.holds(), "{:?}", service.state);
        assert_eq!(cpus(&rig), first);
        assert!(service.state.manual.is_empty(), "{:?}", service.state.manual);
    });
}

#[test]
fn a_persons_transaction_is_the_new_base() {
    let rig = rig();
    let first = cpus(&rig);
    rig.serve(|service| {
        seconds(&rig, service, ProgramCpu::On(first[QUEUE as usize]), 30);
        assert_ne!(cpus(&rig), first);
        rig.apply(Goal::Forward);
        let applied = cpus(&rig);
        service.look(false);
        assert_eq!((cpus(&rig), balanced(&rig)), (applied, 0));
        assert!(service.follow.as_ref().unwrap().moved().is_empty());
        assert!(rig.holds());
    });
}

#[test]
fn a_restart_hands_over_and_an_end_without_a_successor_does_not() {
    let rig = rig();
    let busy = cpus(&rig)[QUEUE as usize];
    hands_over(&rig, DEV, cpus, |service| seconds(&rig, service, ProgramCpu::On(busy), 30));
}

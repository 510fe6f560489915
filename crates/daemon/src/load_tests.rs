//! The service writes tables on a simulated host: loads are given, packets are counted by the simulation, transactions are real.

use std::collections::BTreeMap;
use std::time::Duration;

use ringwise_apply::{Policy, Request, restore_balanced};
use ringwise_kfmt::notification::{InterfaceNotification, Uevent};
use ringwise_knob::learned::LearnedWrite;
use ringwise_model::{CpuId, Goal, Title};
use ringwise_observe::CpuRates;
use ringwise_sys::Clock;
use ringwise_testkit::sim::{ArrivalQueue, ArrivingPackets, At, Quirk, SimulatedFault};

use crate::control::ControlRequest;
use crate::event::Event;
use crate::follow::tests::rates;
use crate::follow::{FollowFinding, layout};
use crate::link_watch::carrier_downs;
use crate::load_rig::{balanced, hands_over, second};
use crate::move_reason::{Actuator, MoveCount, MoveReason};
use crate::schedule::Due;
use crate::service::Service;
use crate::service_tests::{Rig, heard, later};
use crate::state::ActionCause;

const DEV: &str = "eth0";

fn rig() -> Rig {
    let mut rig = Rig::applied(Goal::Forward);
    (rig.setup.follow, rig.setup.act_on_load) = (true, vec!["eth0".into()]);
    rig
}

fn table(rig: &Rig) -> Vec<u32> {
    rig.now().nic(DEV).unwrap().rss.known().unwrap().table.clone()
}

/// Packets that a hash value has in a second: those of queue 0 of the first table are the heavy ones.
fn packets(first: &[u32], hash: u32) -> u64 {
    if first[hash as usize % first.len()] == 0 { 90 } else { 20 }
}

/// Seconds in which loads follow the packets that each queue gets. `helps`: moving them helps, so the loads follow the table.
fn seconds(rig: &Rig, service: &mut Service, first: &[u32], n: u32, helps: bool) {
    let layout = layout(&rig.host).unwrap();
    for _ in 0..n {
        rig.sim.sleep(Duration::from_secs(1));
        let now = table(rig);
        let mut by_queue = [0u64; 8];
        for hash in 1..=256u32 {
            let packets = packets(first, hash);
            by_queue[if helps { &now } else { first }[hash as usize % now.len()] as usize] += packets;
            rig.sim.receive(
                DEV,
                ArrivingPackets {
                    hash,
                    queue: ArrivalQueue::ByTable,
                    packets,
                    bytes: packets * 100,
                    segments: packets,
                },
            );
        }
        let nic = rig.now().nic(DEV).unwrap().clone();
        let cpus: BTreeMap<CpuId, CpuRates> = (0..8u32)
            .map(|q| {
                let vector = nic.vector_of(ringwise_model::Dir::Rx, q).unwrap();
                let cpu = vector.asked.known().unwrap().first().unwrap();
                // Queue 0 has 2,880 packets at first, which are 90 %.
                let busy = by_queue[q as usize] as f64 / 32.0;
                (
                    cpu,
                    CpuRates {
                        softirq_percent: Some(busy),
                        irq_percent: Some(0.0),
                        napi_threads_percent: Some(0.0),
                        ..CpuRates::default()
                    },
                )
            })
            .collect();
        second(rig, service, &layout, &rates(DEV, cpus));
    }
}

/// What is read ahead of a look must not hide a transaction of a person from the next second of the load.
#[test]
fn nothing_is_read_ahead_while_entries_are_moved() {
    let rig = rig();
    let first = table(&rig);
    rig.serve(|service| {
        seconds(&rig, service, &first, 60, true);
        assert_eq!(balanced(&rig), 1);
        assert!(service.compare().unwrap().is_some() && service.knows_all_journals());
        rig.apply(Goal::Balanced);
        service.prepare();
        assert!(service.prepared.is_none(), "something was prepared");
        assert!(!service.knows_all_journals(), "the journals were read");
    });
}

#[test]
fn an_uneven_load_is_spread_in_small_steps_and_the_base_comes_back() {
    let rig = rig();
    let first = table(&rig);
    let in_effect = || ringwise_apply::verify_in(&rig.now(), &rig.setup.store).unwrap().settings.len();
    let before = in_effect();
    rig.serve(|service| {
        seconds(&rig, service, &first, 60, true);
        let now = table(&rig);
        let moved = now.iter().zip(&first).filter(|(a, b)| a != b).count();
        assert!((1..=24).contains(&moved), "{moved}: {:?}", service.state.loads);
        assert_eq!(service.state.totals.moved_entries as usize, moved, "{:?}", service.state);
        let steps = service.state.actions.iter().filter(|a| a.cause == ActionCause::Load).count();
        assert!(steps >= 2, "small steps: {:?}", service.state.actions);
        assert!(rig.holds(), "what the service moved is in effect");
        assert_eq!(balanced(&rig), 1);
        // Looks without an event leave it alone.
        service.look(false);
        later(service);
        service.look(true);
        assert_eq!(table(&rig), now, "{:?}", service.state.actions);
        assert!(service.state.manual.is_empty());
    });
    // As the guard does it when the service is gone.
    let by = Request { who: "guard".into(), ..Request::default() };
    restore_balanced(&rig.host, &rig.setup.store, None, &by, &Policy::default()).unwrap();
    assert_eq!((table(&rig), balanced(&rig)), (first, 0));
    assert!(rig.holds());
    assert_eq!(in_effect(), before, "no user requested the base, so it is not in effect as a setting");
}

#[test]
fn a_step_that_does_not_help_is_taken_back() {
    let rig = rig();
    let first = table(&rig);
    rig.serve(|service| {
        seconds(&rig, service, &first, 11, false);
        assert_ne!(table(&rig), first, "{:?}", service.state.loads);
        seconds(&rig, service, &first, 10, false);
        assert_eq!(table(&rig), first, "{:?}", service.state.actions);
        assert_eq!(service.state.totals.taken_back, 1);
        let last = service.state.actions.last().unwrap();
        assert_eq!(last.cause, ActionCause::LoadRestored);
        assert_eq!(balanced(&rig), 0, "the table is the base");
        // A second one within an hour ends the moves for long, also after a look at the host.
        for _ in 0..120 {
            if service.state.totals.taken_back < 2 {
                seconds(&rig, service, &first, 1, false);
            }
        }
        assert_eq!(service.state.totals.taken_back, 2, "{:?}", service.state.actions);
        service.look(false);
        seconds(&rig, service, &first, 2, false);
        let off = |f: &FollowFinding| matches!(f, FollowFinding::Off { .. });
        assert!(service.state.loads.iter().any(|l| off(&l.finding)), "{:?}", service.state.loads);
    });
}

#[test]
fn without_the_request_of_a_user_nothing_is_written() {
    let mut rig = rig();
    rig.setup.act_on_load = vec!["eth1".into()];
    let first = table(&rig);
    let journals = rig.journals();
    rig.serve(|service| {
        seconds(&rig, service, &first, 30, true);
        assert_eq!((table(&rig), rig.journals()), (first.clone(), journals));
        assert!(service.state.totals.better_tables > 0);
    });
}

/// A pause leaves what was moved as it is; when it ends, the base is restored, and the service begins again.
#[test]
fn a_pause_keeps_what_was_moved_until_it_ends() {
    let rig = rig();
    let first = table(&rig);
    rig.serve(|service| {
        seconds(&rig, service, &first, 20, true);
        let moved = table(&rig);
        assert_ne!(moved, first);
        service.answer(&ControlRequest::Pause { interface: Some(DEV.into()) });
        seconds(&rig, service, &first, 20, false);
        later(service);
        service.look(true);
        assert_eq!((table(&rig), balanced(&rig)), (moved, 1), "{:?}", service.state.actions);
        service.answer(&ControlRequest::Resume { interface: Some(DEV.into()) });
        later(service);
        service.look(true);
        assert_eq!((table(&rig), balanced(&rig)), (first.clone(), 0), "{:?}", service.state.actions);
        seconds(&rig, service, &first, 40, true);
        assert_ne!(table(&rig), first, "{:?}", service.state.loads);
    });
}

/// Without a plan for the interface it is unknown which CPUs its interrupts may use, but its table may follow the load.
#[test]
fn an_interface_of_which_nothing_was_requested_gets_another_table_only() {
    let mut rig = Rig::applied_to("eth1", Goal::Forward);
    (rig.setup.follow, rig.setup.act_on_load) = (true, vec![DEV.into()]);
    for (q, v) in rig.now().nic(DEV).unwrap().queue_vectors().enumerate() {
        let file = format!("/proc/irq/{}/smp_affinity_list", v.irq);
        rig.sim.outside(|h| h.write(&file, format!("{q}\n").as_bytes()).map(drop).unwrap());
    }
    let first = table(&rig);
    rig.serve(|service| {
        assert!(!service.permitted.contains_key(DEV) && service.permitted.contains_key("eth1"));
        seconds(&rig, service, &first, 30, true);
        assert_ne!(table(&rig), first, "{:?}", service.state.loads);
        assert_eq!(service.state.totals.moved_interrupts, 0);
    });
}

#[test]
fn a_table_that_a_user_writes_stays() {
    let rig = rig();
    let first = table(&rig);
    rig.serve(|service| {
        seconds(&rig, service, &first, 15, true);
        assert_ne!(table(&rig), first);
        let mine: Vec<u32> = (0..first.len() as u32).map(|i| i % 3).collect();
        rig.sim.ethtool_x(DEV, &mine).unwrap();
        seconds(&rig, service, &first, 2, true);
        let off = service.state.loads.iter().any(|l| matches!(l.finding, FollowFinding::Off { .. }));
        assert!(off, "within two seconds: {:?}", service.state.loads);
        seconds(&rig, service, &first, 60, true);
        service.look(false);
        assert_eq!(table(&rig), mine);
        assert_eq!(service.state.manual.len(), 1, "reported as a manual change");
        assert_eq!(balanced(&rig), 1);
        let by = Request::default();
        restore_balanced(&rig.host, &rig.setup.store, None, &by, &Policy::default()).unwrap();
        assert_eq!(table(&rig), mine, "nothing restores over it");
        // `ringwise daemon resume eth0`: it is the base of the next moves.
        service.follow_again(DEV);
        seconds(&rig, service, &first, 40, true);
        assert_ne!(table(&rig), mine, "{:?}", service.state.loads);
        assert!(rig.holds());
        restore_balanced(&rig.host, &rig.setup.store, None, &by, &Policy::default()).unwrap();
        assert_eq!((table(&rig), balanced(&rig)), (mine, 0));
    });
}

#[test]
fn a_persons_transaction_is_the_new_base() {
    let rig = rig();
    let first = table(&rig);
    let events = rig.serve(|service| {
        seconds(&rig, service, &first, 15, true);
        assert_ne!(table(&rig), first);
        let applied: Vec<u32> = (0..first.len() as u32).map(|i| i % 4).collect();
        let setting = |t: &[u32]| ringwise_knob::Setting::RssTable { dev: DEV.into(), table: t.to_vec() };
        let step =
            ringwise_apply::balance_step(setting(&applied), setting(&table(&rig)), ringwise_knob::Reason::Adopted);
        let request = Request {
            title: Title::Goal { goal: Goal::Forward },
            who: "root".into(),
            steps: vec![step],
            ..Request::default()
        };
        ringwise_apply::run(&rig.host, &request, &rig.setup.store, &Policy::default(), &mut |_| {}).unwrap();
        service.look(false);
        assert_eq!((table(&rig), balanced(&rig)), (applied.clone(), 0));
        assert!(service.follow.as_ref().unwrap().moved().is_empty());
        // A rollback by a person: from then on nothing is written.
        seconds(&rig, service, &first, 40, true);
        let undone = Request { title: Title::Rollback { of: 0 }, who: "root".into(), ..Request::default() };
        ringwise_apply::rollback(&rig.host, &rig.setup.store, 0, &undone, &Policy::default(), &mut |_| {}).unwrap();
        let restored = table(&rig);
        service.look(false);
        let journals = rig.journals();
        seconds(&rig, service, &first, 60, true);
        assert_eq!((table(&rig), rig.journals()), (restored, journals));
    });
    let observed = events.iter().filter(|e| matches!(e, Event::OnlyObserved { .. }));
    assert_eq!(observed.count(), 1, "{events:?}");
}

#[test]
fn events_end_the_moves_before_the_layout_is_corrected() {
    let rig = rig();
    let first = table(&rig);
    rig.serve(|service| {
        seconds(&rig, service, &first, 15, true);
        assert_ne!(table(&rig), first);
        // Some seconds after a write, the driver requests its interrupts again, and keeps the table.
        rig.sim.sleep(Duration::from_secs(6));
        rig.reset(DEV);
        heard(service, InterfaceNotification::Link, DEV);
        later(service);
        service.look(true);
        assert_eq!(table(&rig), first, "{:?}", service.state.actions);
        assert!(rig.holds());
        // A CPU goes offline while entries are moved: the layout for seven CPUs is made from the base.
        seconds(&rig, service, &first, 60, true);
        assert_ne!(table(&rig), first, "{:?}", service.state.loads);
        rig.sim.cpu_offline(CpuId(3));
        service.evidence.uevent(&Uevent::Cpu { cpu: 3, online: false });
        later(service);
        service.look(true);
        assert!(rig.holds(), "{:?}", service.state);
        rig.sim.cpu_online(CpuId(3));
        service.evidence.uevent(&Uevent::Cpu { cpu: 3, online: true });
        later(service);
        service.look(true);
        assert_eq!(table(&rig), first, "{:?}", service.state.actions);
        assert!(rig.holds() && service.state.manual.is_empty());
        // The driver is loaded again: its table is the even one.
        seconds(&rig, service, &first, 60, true);
        assert_ne!(table(&rig), first);
        rig.sim.sleep(Duration::from_secs(6));
        rig.sim.ethtool_x(DEV, &first).unwrap();
        heard(service, InterfaceNotification::Link, DEV);
        later(service);
        service.look(true);
        assert_eq!((table(&rig), balanced(&rig)), (first.clone(), 0), "{:?}", service.state);
        assert!(rig.holds() && service.state.manual.is_empty(), "{:?}", service.state.manual);
    });
}

/// The service runs for `n` seconds, and looks at the host as soon as something is heard. Returns when the table was written.
fn follow(rig: &Rig, service: &mut Service, first: &[u32], n: u32) -> Vec<Duration> {
    let mut writes = Vec::new();
    for _ in 0..n {
        let before = table(rig);
        seconds(rig, service, first, 1, true);
        if service.schedule.due(rig.sim.since_boot()) == Due::Look {
            later(service);
            service.look(true);
        }
        if table(rig) != before {
            writes.push(rig.sim.since_boot());
        }
    }
    writes
}

/// As on a NIC whose driver sets up the device again when its table is written. The link needs longer to come back than the service waits.
#[test]
fn a_table_that_takes_the_link_down_is_not_written_again() {
    let rig = rig();
    let first = table(&rig);
    rig.sim.quirk(DEV, Quirk::TableTakesLinkDown);
    let downs = || carrier_downs(rig.host.as_ref(), DEV);
    let events = rig.serve(|service| {
        let writes = follow(&rig, service, &first, 40);
        assert_eq!(writes.len(), 2, "the step, and the base: {:?}", service.state.actions);
        assert_eq!((table(&rig), balanced(&rig), downs()), (first.clone(), 0, Some(2)));
        assert!(writes[1] - writes[0] <= Duration::from_secs(5), "soon: {writes:?}");
        assert_eq!(service.state.no_table_writes, [DEV]);
        let off = service
            .state
            .loads
            .iter()
            .any(|l| matches!(&l.finding, FollowFinding::Off { why } if why.contains("link")));
        assert!(off, "{:?}", service.state.loads);
        rig.sim.sleep(Duration::from_secs(1800));
        assert_eq!(follow(&rig, service, &first, 40), [], "half an hour later it does not try again either");
        assert!(service.state.moves.contains(&count(Actuator::Table, MoveReason::UnevenLoad, 1)));
        assert!(service.state.moves.contains(&count(Actuator::Table, MoveReason::LinkWentDown, 1)));
        assert_eq!(service.state.moves.len(), 2, "{:?}", service.state.moves);
        assert!(service.pauses.list().is_empty(), "{:?}", service.pauses.list());
    });
    let logged = events.iter().filter(|e| matches!(e, Event::TableTookLinkDown { interface } if interface == DEV));
    assert_eq!(logged.count(), 1, "{events:?}");
    // Another service knows it.
    let what = rig.setup.store.learned().unwrap().into_iter().map(|l| (l.device.name, l.what)).collect::<Vec<_>>();
    assert_eq!(what, [(DEV.to_string(), LearnedWrite::LinkWentDown { times: 1 })]);
    rig.serve(|service| {
        assert_eq!(service.state.no_table_writes, [DEV]);
        assert_eq!(follow(&rig, service, &first, 40), []);
    });
    // Until a person has it forgotten.
    rig.setup.store.forget(&[]).unwrap();
    rig.serve(|service| assert_eq!(follow(&rig, service, &first, 20).len(), 2));
}

fn count(actuator: Actuator, reason: MoveReason, count: u64) -> MoveCount {
    MoveCount { interface: DEV.into(), actuator, reason, count }
}

#[test]
fn no_table_is_written_while_it_is_unknown_which_writes_take_a_link_down() {
    let rig = rig();
    let first = table(&rig);
    let file = rig.setup.store.dirs()[0].join("learned.json");
    std::fs::write(&file, "{").unwrap();
    let events = rig.serve(|service| {
        assert_eq!(follow(&rig, service, &first, 40), []);
        assert!(service.state.no_table_writes.is_empty(), "no write is known to take the link down");
        std::fs::remove_file(&file).unwrap();
        service.look(false);
        assert_ne!(follow(&rig, service, &first, 60), [], "{:?}", service.state.loads);
    });
    let noted = |e: &&Event| matches!(e, Event::Note(text) if text.contains("which writes take a link down"));
    assert_eq!(events.iter().filter(noted).count(), 1, "{events:?}");
}

/// The base is written once, even if that fails, and once more when the interface is removed from `act_on_load`.
#[test]
fn a_base_that_cannot_be_restored_is_not_tried_again_where_it_takes_the_link_down() {
    let mut rig = rig();
    rig.setup.act_on_load.clear();
    let first = table(&rig);
    rig.sim.quirk(DEV, Quirk::TableTakesLinkDown);
    rig.serve(|service| {
        service.act_on_load = vec![DEV.into()];
        while table(&rig) == first {
            seconds(&rig, service, &first, 1, true);
        }
        // The driver does not accept the base.
        rig.sim.fault(SimulatedFault::Ignore { at: At::Every });
        follow(&rig, service, &first, 10);
        let tries =
            |service: &Service| service.state.actions.iter().filter(|a| a.cause == ActionCause::LoadRestored).count();
        assert_eq!(tries(service), 1, "{:?}", service.state.actions);
        let looks = |service: &mut Service| {
            for _ in 0..30 {
                rig.sim.sleep(Duration::from_secs(60));
                later(service);
                service.look(true);
            }
        };
        looks(service);
        assert_eq!(tries(service), 1, "{:?}", service.state.actions);
        service.act_on_load.clear();
        looks(service);
        assert_eq!(tries(service), 2, "{:?}", service.state.actions);
    });
}

#[test]
fn link_messages_without_a_loss_do_not_end_the_moves() {
    let rig = rig();
    let first = table(&rig);
    rig.serve(|service| {
        while table(&rig) == first {
            seconds(&rig, service, &first, 1, true);
        }
        // Another MTU: the driver may have set up its table again, so the base comes back.
        heard(service, InterfaceNotification::Link, DEV);
        later(service);
        service.look(true);
        assert_eq!(table(&rig), first);
        seconds(&rig, service, &first, 60, true);
        assert_ne!(table(&rig), first, "{:?}", service.state.loads);
        // A cable that is unplugged long after a write.
        rig.sim.sleep(Duration::from_secs(6));
        service.check_links();
        rig.sim.cable(DEV, false);
        heard(service, InterfaceNotification::Link, DEV);
        later(service);
        service.look(true);
        assert!(service.state.no_table_writes.is_empty(), "{:?}", service.state);
        assert!(rig.setup.store.learned().unwrap().is_empty());
        let off = |f: &FollowFinding| matches!(f, FollowFinding::Off { .. });
        assert!(!service.state.loads.iter().any(|l| off(&l.finding)), "{:?}", service.state.loads);
    });
}

#[test]
fn a_restart_hands_over_and_an_end_without_a_successor_does_not() {
    let rig = rig();
    let first = table(&rig);
    hands_over(&rig, DEV, table, |service| seconds(&rig, service, &first, 15, true));
    assert!(rig.sim.since_boot() > Duration::ZERO);
}

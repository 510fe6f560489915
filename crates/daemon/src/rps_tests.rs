//! The service changes RPS masks on a simulated host: loads are given, transactions are real.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ringwise_apply::{Policy, Request, restore_balanced};
use ringwise_model::{CpuCounter, CpuId, Goal};
use ringwise_observe::{CpuRates, LinkRates, QueueRates, Rates};
use ringwise_sys::Clock;
use ringwise_testkit::sim::{Sim, build};

use crate::event::Event;
use crate::follow::tests::of_queue;
use crate::follow::{FollowFinding, layout, mask_now};
use crate::load_rig::{balanced, hands_over, second};
use crate::service::Service;
use crate::service_tests::{Rig, heard, later};
use crate::state::ActionCause;

const DEV: &str = "eth0";

/// One queue; the plan puts other CPUs into its RPS mask.
fn rig() -> Rig {
    let sim = Arc::new(Sim::new(&build::host(8, 1).igb(DEV, 0, 1).done()));
    let mut rig = Rig::of(sim, Goal::Forward);
    (rig.setup.follow, rig.setup.act_on_load) = (true, vec![DEV.into()]);
    rig
}

fn mask(rig: &Rig) -> BTreeSet<u32> {
    mask_now(rig.host.as_ref(), DEV, 0).unwrap()
}

fn write(rig: &Rig, text: &str) {
    let path = format!("/sys/class/net/{DEV}/queues/rx-0/rps_cpus");
    rig.sim.outside(|h| h.write(&path, text.as_bytes()).unwrap());
}

fn served(rig: &Rig) -> u32 {
    let layout = layout(&rig.host).unwrap();
    layout.links[DEV].goes_to.values().find_map(|cpus| cpus.first()).unwrap().0
}

/// Packets that take this time of one CPU, in percent. The CPU of the queue keeps a tenth of them if RPS is on.
fn rates(rig: &Rig, work: f64, program: Option<u32>, backlog_drops: u64) -> Rates {
    let queue = QueueRates { packets: Some(1000), drops: Some(0), ..of_queue(0) };
    let link = LinkRates { queues: vec![queue], ..LinkRates::default() };
    let (mask, served) = (mask(rig), served(rig));
    let cpu = |id: u32| {
        let own = if id == served { work * if mask.is_empty() { 1.0 } else { 0.1 } } else { 0.0 };
        let helps = if mask.contains(&id) { work * 0.9 / mask.len() as f64 } else { 0.0 };
        let drops = if mask.contains(&id) { backlog_drops } else { 0 };
        let rates = CpuRates {
            softirq_percent: Some(own + helps),
            irq_percent: Some(0.0),
            napi_threads_percent: Some(0.0),
            idle_percent: Some(if Some(id) == program { 0.0 } else { 98.0 - own - helps }),
            counts: [(CpuCounter::SoftnetDropped, drops)].into_iter().collect(),
            ..CpuRates::default()
        };
        (CpuId(id), rates)
    };
    let links = BTreeMap::from([(DEV.to_string(), link)]);
    Rates { seconds: 1.0, cpus: (0..8).map(cpu).collect(), links, ..Rates::default() }
}

#[derive(Clone, Copy)]
struct Load {
    work: f64,
    program: Option<u32>,
    backlog_drops: u64,
}

fn seconds(rig: &Rig, service: &mut Service, load: Load, n: u32) {
    for _ in 0..n {
        rig.sim.sleep(Duration::from_secs(1));
        let layout = layout(&rig.host).unwrap();
        let rates = rates(rig, load.work, load.program, load.backlog_drops);
        second(rig, service, &layout, &rates);
    }
}

/// A program takes the rest of this CPU.
fn beside(program: u32) -> Load {
    Load { work: 90.0, program: Some(program), backlog_drops: 0 }
}

const BUSY: Load = Load { work: 90.0, program: None, backlog_drops: 0 };

#[test]
fn a_cpu_with_a_program_leaves_the_mask_and_the_base_comes_back() {
    let rig = rig();
    let first = mask(&rig);
    let busy = *first.last().unwrap();
    let events = rig.serve(|service| {
        seconds(&rig, service, beside(busy), 30);
        let mut less = first.clone();
        less.remove(&busy);
        assert_eq!(mask(&rig), less, "{:?}", service.state);
        assert_eq!((service.state.totals.changed_masks, service.state.totals.masks_taken_back), (1, 0));
        assert!(rig.holds(), "what the service changed is in effect");
        assert_eq!(balanced(&rig), 1);
        // Looks without an event leave it alone.
        service.look(false);
        later(service);
        service.look(true);
        assert_eq!(mask(&rig), less, "{:?}", service.state.actions);
        assert!(service.state.manual.is_empty());
    });
    let changed = |f: &FollowFinding| matches!(f, FollowFinding::ChangedMask { mask, .. } if mask.busy_cpu == busy);
    assert!(events.iter().any(|e| matches!(e, Event::Load(l) if changed(&l.finding))), "{events:?}");
    // As the guard does it when the service is gone.
    let by = Request { who: "guard".into(), ..Request::default() };
    restore_balanced(&rig.host, &rig.setup.store, None, &by, &Policy::default()).unwrap();
    assert_eq!((mask(&rig), balanced(&rig)), (first, 0));
    assert!(rig.holds());
}

#[test]
fn lost_packets_of_full_backlogs_take_it_back() {
    let rig = rig();
    let first = mask(&rig);
    let busy = *first.last().unwrap();
    rig.serve(|service| {
        for _ in 0..30 {
            seconds(&rig, service, beside(busy), 1);
            if mask(&rig) != first {
                break;
            }
        }
        assert_ne!(mask(&rig), first, "{:?}", service.state);
        seconds(&rig, service, Load { backlog_drops: 100, ..beside(busy) }, 8);
        assert_eq!(mask(&rig), first, "{:?}", service.state.actions);
        assert_eq!(service.state.totals.masks_taken_back, 1);
        assert_eq!(service.state.actions.last().unwrap().cause, ActionCause::LoadRestored);
        assert_eq!(balanced(&rig), 0);
    });
}

#[test]
fn nothing_is_written_without_the_request_of_a_user_or_helpers() {
    for acts in [false, true] {
        let mut rig = rig();
        if !acts {
            rig.setup.act_on_load = vec!["eth1".into()];
        }
        let (first, journals) = (mask(&rig), rig.journals());
        let events = rig.serve(|service| {
            if acts {
                assert!(service.machine.masks.contains_key(DEV));
                service.machine.masks.clear();
            }
            seconds(&rig, service, beside(*first.last().unwrap()), 60);
            assert_eq!((mask(&rig), rig.journals()), (first.clone(), journals));
            assert_eq!(service.state.totals.better_masks > 0, !acts, "{:?}", service.state);
            let would = |f: &FollowFinding| matches!(f, FollowFinding::WouldChangeMask { mask, .. } if mask.queue == 0);
            let proposed = service.state.loads.iter().any(|l| would(&l.finding));
            assert_eq!(proposed, !acts, "{:?}", service.state.loads);
        });
        let lines = events.iter().filter(|e| matches!(e, Event::Load(_))).count();
        assert_eq!(lines, usize::from(!acts), "it is reported once, although it is found again: {events:?}");
    }
}

#[test]
fn a_mask_of_a_user_stays() {
    // Before the service has changed it: another mask than the applied one.
    let rig = rig();
    let busy = *mask(&rig).last().unwrap();
    rig.serve(|service| {
        write(&rig, "4");
        service.look(false);
        let journals = rig.journals();
        seconds(&rig, service, Load { work: 200.0, ..beside(2) }, 60);
        assert_eq!((mask(&rig), rig.journals()), ([2].into(), journals), "{:?}", service.state);
        // RPS was switched off by a user.
        write(&rig, "0");
        service.look(false);
        seconds(&rig, service, BUSY, 60);
        assert_eq!((mask(&rig), rig.journals()), ([].into(), journals), "{:?}", service.state);
    });
    // After it.
    let rig = self::rig();
    rig.serve(|service| {
        seconds(&rig, service, beside(busy), 30);
        assert_eq!(service.state.totals.changed_masks, 1);
        write(&rig, "4");
        seconds(&rig, service, beside(2), 20);
        let off = service.state.loads.iter().any(|l| matches!(l.finding, FollowFinding::Off { .. }));
        assert!(off, "{:?}", service.state.loads);
        service.look(false);
        restore_balanced(&rig.host, &rig.setup.store, None, &Request::default(), &Policy::default()).unwrap();
        assert_eq!(mask(&rig), [2].into(), "nothing restores over it");
    });
}

/// A user switches RPS off, and adopts that.
fn adopt_off(rig: &Rig) {
    write(rig, "0");
    let request = Request::default();
    let adopted =
        ringwise_apply::adopt(&rig.host, &rig.setup.store, &[DEV.into()], &request, &Policy::default(), &mut |_| {});
    adopted.unwrap();
}

#[test]
fn rps_is_switched_on_where_it_was_adopted_as_off() {
    let rig = rig();
    adopt_off(&rig);
    rig.serve(|service| {
        seconds(&rig, service, BUSY, 30);
        assert!(mask(&rig).len() > 1 && !mask(&rig).contains(&served(&rig)), "{:?}", service.state);
        assert_eq!((service.state.totals.changed_masks, service.state.totals.masks_taken_back), (1, 0));
        // The link goes down: the base comes back.
        heard(service, ringwise_kfmt::notification::InterfaceNotification::Link, DEV);
        later(service);
        service.look(true);
        assert_eq!((mask(&rig), balanced(&rig)), ([].into(), 0), "{:?}", service.state.actions);
    });
}

#[test]
fn a_restart_hands_over_and_an_end_without_a_successor_does_not() {
    let rig = rig();
    let busy = *mask(&rig).last().unwrap();
    hands_over(&rig, DEV, mask, |service| seconds(&rig, service, beside(busy), 30));
}

/// Otherwise the guard of the earlier service would restore what this one moves.
#[test]
fn what_is_left_is_taken_even_if_a_user_has_replaced_it() {
    let rig = rig();
    let busy = *mask(&rig).last().unwrap();
    rig.serve(|service| {
        seconds(&rig, service, beside(busy), 30);
        assert_eq!(balanced(&rig), 1);
        let state = serde_json::to_value(service.follow.as_ref().unwrap().states()).unwrap();
        ringwise_apply::hand_over(&rig.setup.store, rig.host.as_ref(), state).unwrap();
    });
    adopt_off(&rig);
    assert_eq!(balanced(&rig), 0);
    rig.serve(|_| {
        let left = ringwise_apply::take_tables(&rig.setup.store, rig.host.as_ref());
        assert!(left.is_none(), "its guard would wait for a service that takes it");
    });
}

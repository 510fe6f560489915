//! Groups follow the traffic on a simulated host: counters are given, plans and transactions are real.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringwise_adapt::groups::{GroupChange, GroupChoice, GroupPolicy, Groups};
use ringwise_apply::{Policy, Request, restore_balanced};
use ringwise_knob::Setting;
use ringwise_model::{Coalesce, CpuId, Goal, Intent};
use ringwise_observe::{CpuRates, DirectionRates, Drops, LinkRates, QueueRates, Rates};
use ringwise_sys::Clock;
use ringwise_testkit::sim::{ArrivalQueue, ArrivingPackets, Sim, build};

use super::EVERY;
use crate::event::Event;
use crate::follow::FollowFinding;
use crate::follow::tests::of_queue;
use crate::followed_groups::FollowedGroups;
use crate::load_rig::{balanced, hands_over, second};
use crate::service::Service;
use crate::service_tests::{Rig, later};
use crate::state::ActionCause;

const DEV: &str = "mq0";

/// Eight queues with moderation of their own; the plan gives two of them to the latency group.
fn rig() -> Rig {
    let sim = Arc::new(Sim::new(&build::host(8, 1).mqnic(DEV, 0, 8).done()));
    let mut rig = Rig::of(sim, Goal::Mixed);
    (rig.setup.follow, rig.setup.act_on_load) = (true, vec![DEV.into()]);
    rig
}

/// Traffic of 30 s.
#[derive(Clone, Copy)]
struct Traffic {
    frame_bytes: u64,
    busy_percent: f64,
    packets_per_interrupt: u64,
    drops: u64,
}

/// A quarter of the frames is short, so the groups suit it as they are.
const USUAL: Traffic = Traffic { frame_bytes: 1160, busy_percent: 10.0, packets_per_interrupt: 4, drops: 0 };
const SHORT: Traffic = Traffic { frame_bytes: 200, ..USUAL };
const BUSY: Traffic = Traffic { busy_percent: 80.0, ..USUAL };

fn rates(rig: &Rig, t: Traffic) -> Rates {
    let now = rig.now();
    let nic = now.nic(DEV).unwrap();
    let packets = 100_000;
    let queue = |q: u32| {
        let vector = nic.vector_of(ringwise_model::Dir::Rx, q).unwrap();
        let cpu = vector.asked.known().unwrap().first();
        let interrupts = Some(packets / t.packets_per_interrupt);
        QueueRates { packets: Some(packets), interrupts, cpu, ..of_queue(q) }
    };
    let flow = |packets: u64| DirectionRates {
        packets: Some(packets),
        bytes: Some(packets * t.frame_bytes),
        ..DirectionRates::default()
    };
    let drops = Drops { nic: Some(t.drops), stack: Some(0), tx: Some(0), ..Drops::default() };
    let link = LinkRates {
        queues: (0..8).map(queue).collect(),
        rx: flow(8 * packets),
        tx: flow(8 * packets),
        drops,
        ..LinkRates::default()
    };
    let cpu = |id: u32| {
        let rates = CpuRates {
            idle_percent: Some(100.0 - t.busy_percent),
            softirq_percent: Some(t.busy_percent * 0.9),
            irq_percent: Some(t.busy_percent * 0.1),
            ..CpuRates::default()
        };
        (CpuId(id), rates)
    };
    let links = BTreeMap::from([(DEV.to_string(), link)]);
    Rates { seconds: 30.0, cpus: (0..8).map(cpu).collect(), links, ..Rates::default() }
}

/// Samples of this traffic.
fn samples(rig: &Rig, service: &mut Service, t: Traffic, n: u32) {
    for _ in 0..n {
        rig.sim.sleep(EVERY);
        let rates = rates(rig, t);
        service.groups_of(DEV, Some(rates));
    }
}

/// Seconds in which the CPU of queue 0 has much more packets than the others.
fn uneven(rig: &Rig, service: &mut Service, n: u32) {
    let layout = crate::follow::layout(&rig.host).unwrap();
    for _ in 0..n {
        rig.sim.sleep(Duration::from_secs(1));
        let table = rig.now().nic(DEV).unwrap().rss.known().unwrap().table.clone();
        let mut by_queue = [0u64; 8];
        for hash in 1..=256u32 {
            let at = hash as usize % table.len();
            let packets = if at.is_multiple_of(8) { 90 } else { 20 };
            by_queue[table[at] as usize] += packets;
            let (bytes, segments) = (packets * 100, packets);
            rig.sim.receive(DEV, ArrivingPackets { hash, queue: ArrivalQueue::ByTable, packets, bytes, segments });
        }
        let nic = rig.now().nic(DEV).unwrap().clone();
        let cpu = |q: u32| {
            let vector = nic.vector_of(ringwise_model::Dir::Rx, q).unwrap();
            let rates = CpuRates {
                softirq_percent: Some(by_queue[q as usize] as f64 / 32.0),
                irq_percent: Some(0.0),
                napi_threads_percent: Some(0.0),
                ..CpuRates::default()
            };
            (vector.asked.known().unwrap().first().unwrap(), rates)
        };
        second(rig, service, &layout, &crate::follow::tests::rates(DEV, (0..8).map(cpu).collect()));
    }
}

/// The microseconds after which the receive side of each queue interrupts.
fn moderation(rig: &Rig) -> Vec<Option<u64>> {
    let now = rig.now();
    let all = now.nic(DEV).unwrap().queue_coalesce.known().unwrap();
    let usecs = |c: &Coalesce| c.0.get("rx-usecs").copied().map(u64::from);
    all.values().map(usecs).collect()
}

/// How many such findings were logged.
fn found(events: &[Event], is: impl Fn(&FollowFinding) -> bool) -> usize {
    events.iter().filter(|e| matches!(e, Event::Load(load) if is(&load.finding))).count()
}

/// As the guard does it when the service is gone.
fn restore(rig: &Rig) {
    let by = Request { who: "guard".into(), ..Request::default() };
    restore_balanced(&rig.host, &rig.setup.store, None, &by, &Policy::default()).unwrap();
}

fn of_latency(rig: &Rig) -> usize {
    moderation(rig).iter().filter(|usecs| **usecs == Some(5)).count()
}

#[test]
fn short_frames_get_more_latency_queues_and_the_base_comes_back() {
    let rig = rig();
    let first = moderation(&rig);
    assert_eq!(of_latency(&rig), 2, "{first:?}");
    let events = rig.serve(|service| {
        samples(&rig, service, SHORT, 1);
        assert_eq!(moderation(&rig), first, "one sample changes nothing");
        samples(&rig, service, SHORT, 1);
        let more = moderation(&rig);
        assert!(of_latency(&rig) > 2, "{more:?} {:?}", service.state);
        assert_eq!((service.state.totals.changed_groups, service.state.totals.groups_taken_back), (1, 0));
        assert!(rig.holds(), "what the service changed is in effect");
        assert!(balanced(&rig) > 0);
        // It is judged, and stays. Looks without an event leave it alone.
        samples(&rig, service, SHORT, 3);
        service.look(false);
        later(service);
        service.look(true);
        assert_eq!((moderation(&rig), service.state.totals.changed_groups), (more, 1), "{:?}", service.state);
        assert!(service.state.manual.is_empty());
    });
    assert_eq!(found(&events, |f| matches!(f, FollowFinding::Regrouped { .. })), 1, "{events:?}");
    restore(&rig);
    assert_eq!((moderation(&rig), balanced(&rig)), (first, 0));
    assert!(rig.holds());
}

#[test]
fn busy_cpus_get_policy_cpu_if_it_saves_interrupts() {
    let rig = rig();
    let first = moderation(&rig);
    rig.serve(|service| {
        samples(&rig, service, BUSY, 2);
        let now = moderation(&rig);
        assert_eq!(now.iter().filter(|u| **u == Some(125)).count(), 6, "{now:?} {:?}", service.state);
        samples(&rig, service, Traffic { packets_per_interrupt: 12, ..BUSY }, 4);
        assert_eq!((moderation(&rig), service.state.totals.groups_taken_back), (now, 0));
        // The load falls: not at once, because the policy itself lowers it.
        samples(&rig, service, Traffic { busy_percent: 40.0, packets_per_interrupt: 12, ..USUAL }, 10);
        assert_eq!(service.state.totals.changed_groups, 1);
        samples(&rig, service, USUAL, 10);
        assert_eq!((moderation(&rig), service.state.totals.changed_groups), (first.clone(), 2), "{:?}", service.state);
        assert_eq!(balanced(&rig), 0, "these are the groups that were requested");
    });
}

#[test]
fn a_policy_that_saves_no_interrupts_is_taken_back() {
    let rig = rig();
    let first = moderation(&rig);
    rig.serve(|service| {
        samples(&rig, service, BUSY, 3);
        assert_eq!(moderation(&rig), first, "{:?}", service.state);
        assert_eq!((service.state.totals.changed_groups, service.state.totals.groups_taken_back), (1, 1));
        let last = service.state.actions.last().unwrap();
        assert_eq!(last.cause, ActionCause::LoadRestored);
        // It is not tried again for a while.
        samples(&rig, service, BUSY, 6);
        assert_eq!(service.state.totals.changed_groups, 1);
    });
    assert!(rig.holds() && balanced(&rig) == 0);
}

#[test]
fn more_drops_take_it_back() {
    let rig = rig();
    let first = moderation(&rig);
    rig.serve(|service| {
        samples(&rig, service, SHORT, 2);
        assert_ne!(moderation(&rig), first);
        samples(&rig, service, Traffic { drops: 9000, ..SHORT }, 1);
        assert_eq!(moderation(&rig), first, "{:?}", service.state);
        let load = &service.state.loads.last().unwrap().finding;
        assert!(matches!(load, FollowFinding::GroupsTakenBack { .. }), "{load:?}");
    });
}

#[test]
fn without_the_request_of_the_user_it_only_reports() {
    let mut rig = rig();
    rig.setup.act_on_load.clear();
    let first = moderation(&rig);
    let events = rig.serve(|service| {
        samples(&rig, service, SHORT, 10);
        assert_eq!((moderation(&rig), service.state.totals.better_groups), (first.clone(), 1));
        let load = &service.state.loads.last().unwrap().finding;
        assert!(matches!(load, FollowFinding::WouldRegroup { why_not: None, .. }), "{load:?}");
        samples(&rig, service, USUAL, 1);
        assert!(service.state.loads.is_empty(), "{:?}", service.state.loads);
    });
    assert_eq!(rig.journals(), 1);
    let would =
        |f: &FollowFinding| matches!(f, FollowFinding::WouldRegroup { groups, .. } if groups.from_latency_queues == 2);
    assert_eq!(found(&events, would), 1, "{events:?}");
}

#[test]
fn other_goals_have_no_such_groups() {
    let sim = Arc::new(Sim::new(&build::host(8, 1).mqnic(DEV, 0, 8).done()));
    let mut rig = Rig::of(sim, Goal::Forward);
    (rig.setup.follow, rig.setup.act_on_load) = (true, vec![DEV.into()]);
    rig.serve(|service| {
        assert_eq!(service.groups.wait(Duration::ZERO), None);
        samples(&rig, service, SHORT, 5);
    });
    assert_eq!(rig.journals(), 1);
}

#[test]
fn a_restart_hands_over() {
    let rig = rig();
    hands_over(&rig, DEV, moderation, |service| samples(&rig, service, BUSY, 2));
}

/// The flags of a request are not handed over.
#[test]
fn the_same_request_is_the_same_after_a_restart() {
    let request = || {
        let given = Some(Box::new(ringwise_model::IntentFlags::default()));
        BTreeMap::from([(DEV.to_string(), Intent { goal: Goal::Mixed, given, ..Intent::default() })])
    };
    let mut first = FollowedGroups::default();
    first.request(request());
    let base = GroupChoice { latency_queues: 2, policy: GroupPolicy::Bulk };
    let f = first.interfaces.get_mut(DEV).unwrap();
    (f.state, f.stale) = (Some(Groups::new(base)), false);
    let left = serde_json::from_str(&serde_json::to_string(&first.left()).unwrap()).unwrap();
    let mut next = FollowedGroups::default();
    next.take_over(left);
    next.request(request());
    assert!(!next.interfaces[DEV].stale);
    let other = Intent { goal: Goal::Mixed, latency_queues: Some(3), ..Intent::default() };
    next.request(BTreeMap::from([(DEV.to_string(), other)]));
    assert!(next.interfaces[DEV].stale);
}

#[test]
fn what_a_person_applies_is_the_new_base() {
    let rig = rig();
    rig.serve(|service| {
        samples(&rig, service, SHORT, 2);
        assert!(of_latency(&rig) > 2);
        rig.apply(Goal::Mixed);
        service.look(false);
        assert_eq!(balanced(&rig), 0, "{:?}", service.state);
        assert_eq!(of_latency(&rig), 2);
        samples(&rig, service, USUAL, 4);
        assert_eq!((of_latency(&rig), rig.journals()), (2, 3));
    });
    assert!(rig.holds());
}

#[test]
fn a_reset_restores_the_groups_that_were_requested() {
    let rig = rig();
    rig.serve(|service| {
        samples(&rig, service, SHORT, 2);
        assert!(of_latency(&rig) > 2);
        rig.sim.cable(DEV, false);
        rig.sim.cable(DEV, true);
        service.check_links();
        later(service);
        service.look(true);
        assert_eq!((of_latency(&rig), balanced(&rig)), (2, 0), "{:?}", service.state);
        // The change is the likely cause: it is not made again for an hour.
        samples(&rig, service, SHORT, 100);
        assert_eq!(service.state.totals.changed_groups, 1);
        samples(&rig, service, SHORT, 30);
        assert_eq!(service.state.totals.changed_groups, 2);
    });
    assert!(rig.holds());
}

/// A device whose table follows the load: single moves and groups take turns, and neither keeps the other from its change.
#[test]
fn single_moves_are_restored_before_groups_change() {
    let rig = rig();
    let first = moderation(&rig);
    rig.serve(|service| {
        let table: Vec<u32> = rig.now().nic(DEV).unwrap().rss.known().unwrap().table.clone();
        uneven(&rig, service, 25);
        let now = rig.now().nic(DEV).unwrap().rss.known().unwrap().table.clone();
        assert_ne!(now, table, "{:?}", service.state.loads);
        samples(&rig, service, SHORT, 2);
        assert_ne!(moderation(&rig), first, "{:?}", service.state);
        assert_eq!(service.state.totals.changed_groups, 1);
        let left: Vec<u32> = rig.now().nic(DEV).unwrap().rss.known().unwrap().table.clone();
        assert_eq!(left, table);
        samples(&rig, service, SHORT, 1);
        uneven(&rig, service, 25);
        assert_ne!(rig.now().nic(DEV).unwrap().rss.known().unwrap().table, table, "entries move again");
        assert!(rig.holds());
    });
}

/// Notifications after a change must not keep it from being judged.
#[test]
fn a_change_that_cannot_be_judged_is_taken_back() {
    let rig = rig();
    let first = moderation(&rig);
    rig.serve(|service| {
        samples(&rig, service, SHORT, 2);
        assert_ne!(moderation(&rig), first);
        service.look(true);
        assert!(service.groups.interfaces[DEV].judging.is_some(), "a look does not end it");
        (0..2).for_each(|_| service.groups_of(DEV, None));
        assert_ne!(moderation(&rig), first);
        service.groups_of(DEV, None);
        assert_eq!(moderation(&rig), first, "{:?}", service.state);
        assert_eq!(service.state.totals.groups_taken_back, 1);
    });
}

#[test]
fn a_change_that_does_harm_is_restored_as_soon_as_the_lock_is_free() {
    let rig = rig();
    let first = moderation(&rig);
    rig.serve(|service| {
        samples(&rig, service, SHORT, 2);
        // As another run holds it.
        let lock = std::fs::File::open(rig.setup.store.dirs()[0].join("lock")).unwrap();
        lock.lock().unwrap();
        samples(&rig, service, Traffic { drops: 9000, ..SHORT }, 1);
        assert_ne!(moderation(&rig), first);
        drop(lock);
        samples(&rig, service, SHORT, 1);
        assert_eq!(moderation(&rig), first, "{:?}", service.state);
        assert_eq!(service.state.totals.groups_taken_back, 1);
        assert!(matches!(service.state.loads.last().unwrap().finding, FollowFinding::GroupsTakenBack { .. }));
    });
    assert!(rig.holds() && balanced(&rig) == 0);
}

/// A plan names only some of the parameters that a queue reports. The base is what a person has applied, not the change before.
#[test]
fn the_base_is_that_of_the_first_change() {
    let rig = rig();
    let first = moderation(&rig);
    let few = Traffic { frame_bytes: 800, ..SHORT };
    rig.serve(|service| {
        samples(&rig, service, SHORT, 3);
        let most = of_latency(&rig);
        // Fewer again, but more than at first.
        samples(&rig, service, few, 7);
        assert!((3..most).contains(&of_latency(&rig)), "{:?}", service.state);
        assert_eq!(service.state.totals.changed_groups, 2);
        let (now, state) = (moderation(&rig), service.state.clone());
        restore(&rig);
        assert_eq!((moderation(&rig), balanced(&rig)), (first.clone(), 0), "{now:?} {state:?}");
        service.look(false);
        assert_eq!(balanced(&rig), 0);
    });
    assert!(rig.holds());
}

/// One apply for two interfaces: a number that suits one of them may be impossible on the other.
#[test]
fn the_groups_of_one_interface_are_its_own() {
    let sim = Arc::new(Sim::new(&build::host(8, 1).mqnic(DEV, 0, 8).mqnic("mq1", 0, 4).done()));
    let mut rig = Rig::of(sim, Goal::Mixed);
    (rig.setup.follow, rig.setup.act_on_load) = (true, vec!["*".into()]);
    let other = |rig: &Rig| rig.now().nic("mq1").unwrap().queue_coalesce.known().unwrap().clone();
    let first = other(&rig);
    rig.serve(|service| {
        samples(&rig, service, SHORT, 2);
        assert!(of_latency(&rig) > 4, "{:?}", service.state);
        assert_eq!(other(&rig), first);
    });
    assert!(rig.holds());
}

#[test]
fn a_load_that_rises_slowly_is_noticed() {
    let rig = rig();
    rig.serve(|service| {
        for percent in (10..=90).step_by(4) {
            let t = Traffic { busy_percent: f64::from(percent), packets_per_interrupt: 12, ..USUAL };
            samples(&rig, service, t, 1);
        }
        assert!(service.state.totals.changed_groups > 0, "{:?}", service.state);
    });
}

/// Load and groups are reported side by side.
#[test]
fn findings_about_load_and_groups_do_not_replace_each_other() {
    let mut rig = rig();
    rig.setup.act_on_load.clear();
    let events = rig.serve(|service| {
        for _ in 0..4 {
            uneven(&rig, service, 15);
            let rates = rates(&rig, SHORT);
            service.groups_of(DEV, Some(rates));
        }
        assert_eq!(service.state.totals.better_groups, 1);
        assert_eq!(service.state.loads.len(), 2, "{:?}", service.state.loads);
    });
    assert_eq!(found(&events, |f| matches!(f, FollowFinding::WouldRegroup { .. })), 1, "{events:?}");
}

/// The service may write what these changes consist of, and nothing that interrupts traffic.
#[test]
fn the_settings_of_groups_may_be_written() {
    let rig = rig();
    rig.serve(|service| {
        let from = service.requested_groups(DEV).unwrap().unwrap();
        let to = GroupChoice { latency_queues: 5, ..from };
        let change = GroupChange { from, to };
        let planned = service.changes_of_groups(DEV, change).unwrap().unwrap().unwrap();
        assert!(planned.changes.iter().any(|c| matches!(c.to, Setting::QueueCoalesce { .. })), "{:?}", planned.changes);
        assert_eq!(planned.bulk.len(), 3);
    });
}

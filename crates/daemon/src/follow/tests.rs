//! One interface on a simulated host: its loads are given, its packets are counted by the simulation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringwise_model::{CpuId, CpuSet, Dir, Fact};
use ringwise_observe::{CpuRates, Layout, LinkRates, QueueRates, Rates};
use ringwise_sys::{Clock, Host};
use ringwise_testkit::sim::{ArrivalQueue, ArrivingPackets, Sim, build};

use super::sample::{Reading, followed, served};
use super::{FollowFinding, Followed, News};
use crate::compared::LoadLayout;

const DEV: &str = "eth0";

struct Rig {
    sim: Arc<Sim>,
    host: Arc<dyn Host>,
    layout: Layout,
    followed: Followed,
}

impl Rig {
    /// Eight queues, each with a CPU of its own.
    fn new() -> Self {
        let sim = Arc::new(Sim::new(&build::host(8, 1).igb(DEV, 0, 8).done()));
        let host: Arc<dyn Host> = sim.clone();
        let now = ringwise_discover::snapshot(&host, &ringwise_discover::Options::all()).unwrap();
        for (cpu, v) in now.nic(DEV).unwrap().queue_vectors().enumerate() {
            sim.outside(|h| {
                h.write(&format!("/proc/irq/{}/smp_affinity_list", v.irq), format!("{cpu}\n").as_bytes()).unwrap();
            });
        }
        let layout = super::layout(&host).unwrap();
        Self { sim, host, layout, followed: Followed::default() }
    }

    /// The CPU of queue 0.
    fn busy_cpu(&self) -> u32 {
        served(&self.layout.links[DEV])[&0].unwrap().0
    }

    /// Seconds in which the CPU of queue 0 is busy for 90 %, the others for 20 %; packets of many flows arrive, those of queue 0
    /// more often.
    fn seconds(&mut self, n: u32, queue: ArrivalQueue) -> News {
        let busy_cpu = self.busy_cpu();
        let table = ringwise_discover::table_now(self.host.as_ref(), DEV, 0).unwrap();
        let (_, wiring) = followed(&self.layout).next().expect("an interface with eight CPUs");
        let mut all = News::default();
        for _ in 0..n {
            self.sim.sleep(Duration::from_secs(1));
            for hash in 1..=256u32 {
                let packets = if table[hash as usize % table.len()] != 0 { 20 } else { 90 };
                self.sim
                    .receive(DEV, ArrivingPackets { hash, queue, packets, bytes: packets * 100, segments: packets });
            }
            let rates = uneven(DEV, busy_cpu);
            let machine = &LoadLayout::default();
            let read =
                Reading { dev: DEV, wiring, rates: &rates, packets: None, permitted: None, machine, no_table: None };
            self.followed.second(&self.host, &read, None, &mut all);
        }
        all
    }

    fn write(&self, path: &str, text: &str) {
        self.sim.outside(|h| h.write(path, text.as_bytes()).unwrap());
    }
}

/// The CPU of queue 0 is busy for 90 % of a second, seven others for 20 %.
pub(crate) fn uneven(dev: &str, busy_cpu: u32) -> Rates {
    let cpu = |id: u32| {
        let busy = if id == busy_cpu { 90.0 } else { 20.0 };
        (
            CpuId(id),
            CpuRates {
                softirq_percent: Some(busy),
                irq_percent: Some(0.0),
                napi_threads_percent: Some(0.0),
                ..CpuRates::default()
            },
        )
    };
    rates(dev, (0..8).map(cpu).collect())
}

/// One second with these loads of CPUs.
pub(crate) fn rates(dev: &str, cpus: BTreeMap<CpuId, CpuRates>) -> Rates {
    let queue =
        |id: u32| QueueRates { packets: Some(if id == 0 { 2880 } else { 640 }), drops: Some(0), ..of_queue(id) };
    let link = LinkRates { queues: (0..8).map(queue).collect(), ..LinkRates::default() };
    Rates { seconds: 1.0, cpus, links: [(dev.to_string(), link)].into(), ..Rates::default() }
}

/// A queue of which nothing is known.
pub(crate) fn of_queue(queue: u32) -> QueueRates {
    QueueRates {
        dir: Dir::Rx,
        queue,
        packets: None,
        bytes: None,
        drops: None,
        alloc_fail: None,
        share_percent: None,
        irq: None,
        interrupts: None,
        packets_per_interrupt: None,
        cpu: None,
        cpus: CpuSet::new(),
        node: None,
        mark: None,
        bql_limit: None,
        bql_inflight: None,
        timeouts: None,
        qdisc_drops: None,
        pool: None,
    }
}

fn moves(news: &News) -> Vec<&FollowFinding> {
    news.findings.iter().map(|(_, f)| f).filter(|f| matches!(f, FollowFinding::WouldMove { .. })).collect()
}

#[test]
fn an_uneven_load_leads_to_a_better_table() {
    let mut rig = Rig::new();
    let calm = rig.seconds(5, ArrivalQueue::ByTable);
    assert!(
        calm.findings.iter().all(|(_, f)| *f == FollowFinding::Even),
        "five seconds are too few: {:?}",
        calm.findings
    );
    let news = rig.seconds(12, ArrivalQueue::ByTable);
    let uneven = news.findings.iter().find(|(_, f)| *f != FollowFinding::Even);
    let Some((_, FollowFinding::Uneven { cpu, busy_percent: Some(90), .. })) = uneven else { panic!("{uneven:?}") };
    assert_eq!(*cpu, rig.busy_cpu());
    let found = moves(&news);
    let Some(FollowFinding::WouldMove { moves, before_percent, predicted_percent }) = found.first() else {
        panic!("no better table: {:?} {:?}", news.findings, news.notes)
    };
    assert!(!moves.is_empty() && moves.len() <= 4 && moves.iter().all(|m| m.from == 0 && m.to != 0), "{moves:?}");
    assert!(*before_percent == 90 && predicted_percent < before_percent);
    let table = ringwise_discover::table_now(rig.host.as_ref(), DEV, 0).unwrap();
    assert!(moves.iter().all(|m| table[m.entry as usize] == 0), "nothing was written");
    let text = found[0].to_string();
    assert!(text.contains("busiest CPU") && text.contains("instead of 90 %"), "{text}");
}

#[test]
fn no_table_is_proposed_if_packets_do_not_arrive_as_the_table_predicts() {
    let mut rig = Rig::new();
    let news = rig.seconds(60, ArrivalQueue::Fixed(0));
    assert!(moves(&news).is_empty(), "{:?}", news.findings);
    let said = news.findings.iter().any(|(_, f)| matches!(f, FollowFinding::Uneven { why_not: Some(_), .. }));
    assert!(said, "{:?}", news.findings);
}

#[test]
fn no_table_is_proposed_beside_rps() {
    let mut rig = Rig::new();
    rig.write(&format!("/sys/class/net/{DEV}/queues/rx-0/rps_cpus"), "f");
    let news = rig.seconds(60, ArrivalQueue::ByTable);
    assert!(moves(&news).is_empty());
    let why =
        |f: &FollowFinding| matches!(f, FollowFinding::Uneven { why_not: Some(why), .. } if why == "RPS is configured");
    assert!(news.findings.iter().any(|(_, f)| why(f)), "{:?}", news.findings);
    // Nothing reports that RPS is off again.
    rig.write(&format!("/sys/class/net/{DEV}/queues/rx-0/rps_cpus"), "0");
    assert!(!moves(&rig.seconds(60, ArrivalQueue::ByTable)).is_empty());
}

#[test]
fn a_refused_count_is_reported_once() {
    let mut rig = Rig::new();
    rig.sim.refuse_counting(Some(ringwise_model::errno::EPERM));
    let news = rig.seconds(120, ArrivalQueue::ByTable);
    assert!(moves(&news).is_empty());
    assert_eq!(news.notes.len(), 1, "{:?}", news.notes);
    assert!(news.notes[0].contains("EPERM"), "{:?}", news.notes);
}

#[test]
fn queues_that_may_have_several_cpus_are_not_followed() {
    let mut rig = Rig::new();
    let wiring = rig.layout.links.get_mut(DEV).unwrap();
    let all: BTreeMap<_, _> = wiring.goes_to.keys().map(|i| (*i, [CpuId(1)].into_iter().collect())).collect();
    wiring.goes_to = all;
    assert!(followed(&rig.layout).next().is_some(), "they share a CPU: an interrupt may move");
    rig.layout.links.get_mut(DEV).unwrap().goes_to.clear();
    assert!(followed(&rig.layout).next().is_none(), "unknown is not one");
}

#[test]
fn an_interrupt_that_has_not_moved_yet_counts_for_its_new_cpu() {
    let rig = Rig::new();
    let vector = || {
        let s = ringwise_discover::snapshot(&rig.host, &ringwise_discover::Options::all()).unwrap();
        s.nic(DEV).unwrap().vector_of(Dir::Rx, 2).unwrap().clone()
    };
    let before = vector();
    rig.sim.outside(|h| h.write(&format!("/proc/irq/{}/smp_affinity_list", before.irq), b"5\n").unwrap());
    let (after, new) = (vector(), CpuSet::from_iter([CpuId(5)]));
    assert_eq!((&after.asked, &after.effective), (&Fact::Known(new.clone()), &before.effective));
    assert_ne!(after.effective.known(), Some(&new), "it moves with the next interrupt");
    assert_eq!(served(&super::layout(&rig.host).unwrap().links[DEV])[&2], Some(CpuId(5)));
}

use std::collections::BTreeMap;

use ringwise_model::CpuSet;

use super::*;
use crate::rates::{DirectionRates, Drops};

fn queue(dir: Dir, queue: u32, cpu: u32, packets: u64, drops: u64) -> QueueRates {
    QueueRates {
        dir,
        queue,
        packets: Some(packets),
        bytes: None,
        drops: Some(drops),
        alloc_fail: None,
        share_percent: Some(50.0),
        irq: Some(IrqId(30 + queue)),
        interrupts: Some(packets / 10),
        packets_per_interrupt: None,
        cpu: Some(CpuId(cpu)),
        cpus: CpuSet::new(),
        node: Some(NodeId(cpu / 2)),
        mark: None,
        bql_limit: None,
        bql_inflight: None,
        timeouts: None,
        qdisc_drops: None,
        pool: None,
    }
}

fn cpu(softirq: f64, counts: &[(CpuCounter, u64)]) -> CpuRates {
    CpuRates {
        softirq_percent: Some(softirq),
        irq_percent: Some(1.0),
        napi_threads_percent: Some(0.0),
        counts: counts.iter().copied().collect(),
        ..CpuRates::default()
    }
}

fn rates(drops: Drops, queues: Vec<QueueRates>, cpus: Vec<CpuRates>) -> Rates {
    let link = LinkRates { node: Some(NodeId(0)), drops, queues, ..LinkRates::default() };
    Rates {
        seconds: 1.0,
        links: BTreeMap::from([("eth1".to_string(), link)]),
        cpus: (0..).map(CpuId).zip(cpus).collect(),
        ..Rates::default()
    }
}

#[test]
fn the_ring_and_the_full_cpu_behind_it() {
    let queues = vec![queue(Dir::Rx, 0, 2, 900, 0), queue(Dir::Rx, 1, 3, 90_000, 41), queue(Dir::Tx, 1, 3, 7, 0)];
    let cpus = vec![cpu(0.0, &[]), cpu(0.0, &[]), cpu(20.0, &[]), cpu(95.0, &[(CpuCounter::SoftnetSqueezed, 4)])];
    let b = Bottleneck::of(&rates(Drops { nic: Some(41), ..Drops::default() }, queues, cpus));
    assert_eq!(b.lost, [PacketLoss { place: BottleneckPlace::Ring("eth1".into(), Some(1)), packets: 41 }]);
    let busy = b.busiest.unwrap();
    assert_eq!((busy.cpu, busy.load, busy.squeezed, busy.steered), (CpuId(3), CpuLoadLevel::Full, 4, false));
    let hot = busy.queue.unwrap();
    assert_eq!((hot.dir, hot.queue, hot.irq, hot.far), (Dir::Rx, 1, Some(IrqId(31)), true));
    assert_eq!((hot.others, hot.share_percent), (0, Some(50.0)));
}

#[test]
fn several_queues_on_one_cpu() {
    let queues = vec![queue(Dir::Rx, 0, 1, 900, 0), queue(Dir::Rx, 1, 1, 950, 0), queue(Dir::Tx, 1, 1, 7, 0)];
    let b = Bottleneck::of(&rates(Drops::default(), queues, vec![cpu(0.0, &[]), cpu(99.0, &[])]));
    let hot = b.busiest.unwrap().queue.unwrap();
    assert_eq!((hot.dir, hot.queue, hot.others, hot.share_percent), (Dir::Rx, 1, 1, Some(100.0)));
}

#[test]
fn a_full_backlog_is_reported_once() {
    let cpus = vec![cpu(3.0, &[]), cpu(70.0, &[(CpuCounter::SoftnetDropped, 12), (CpuCounter::SoftnetRps, 99)])];
    let drops = Drops { nic: Some(0), stack: Some(12), ..Drops::default() };
    let b = Bottleneck::of(&rates(drops, vec![queue(Dir::Rx, 0, 0, 500, 0)], cpus.clone()));
    assert_eq!(b.lost, [PacketLoss { place: BottleneckPlace::Backlog(CpuId(1)), packets: 12 }]);
    let busy = b.busiest.unwrap();
    assert_eq!((busy.cpu, busy.load, busy.steered, busy.queue), (CpuId(1), CpuLoadLevel::High, true, None));
    // The stack lost more than the backlog, so both are listed.
    let more = Bottleneck::of(&rates(Drops { stack: Some(13), ..drops }, Vec::new(), cpus));
    assert_eq!(more.lost.len(), 2);
    assert_eq!(more.lost[0], PacketLoss { place: BottleneckPlace::Stack("eth1".into()), packets: 13 });
}

#[test]
fn quiet_and_unknown() {
    let b = Bottleneck::of(&rates(Drops::default(), vec![queue(Dir::Rx, 0, 0, 0, 0)], vec![cpu(0.0, &[])]));
    assert!(b.lost.is_empty() && b.full.is_empty());
    assert_eq!((b.busiest.as_ref().unwrap().load, &b.busiest.unwrap().queue), (CpuLoadLevel::Fine, &None));
    let mut r = rates(Drops::default(), Vec::new(), vec![CpuRates::default()]);
    r.links.get_mut("eth1").unwrap().tx =
        DirectionRates { line_percent: Some(96.0), line_packets_percent: Some(20.0), ..DirectionRates::default() };
    let b = Bottleneck::of(&r);
    assert_eq!(b.busiest, None);
    assert_eq!(b.full, [FullLink { link: "eth1".into(), dir: Dir::Tx, percent: 96.0, by_packets: false }]);
}

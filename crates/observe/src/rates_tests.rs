use proptest::prelude::*;
use ringwise_model::{CpuSet, Dir, QueueCounter, QueueCounts};

use super::*;
use crate::counters::{INTERRUPTS, kind_of};
use crate::layout::NapiThread;
use crate::queues::QueueMark;
use ringwise_model::CounterKind::{Bits32, Bits64, Estimate, Gauge};

fn counts(list: &[(&str, u64)]) -> Counts {
    list.iter().map(|(k, v)| (k.to_string(), *v)).collect()
}

fn link(packets: u64, bytes: u64, queues: &[u64]) -> LinkCounters {
    let queue = |(i, n): (u32, &u64)| (i, [(QueueCounter::Packets, *n), (QueueCounter::Bytes, n * 60)].into());
    LinkCounters {
        ifindex: 2,
        counts: counts(&[
            ("rx_packets", packets),
            ("rx_bytes", bytes),
            ("tx_packets", 0),
            ("tx_bytes", 0),
            ("rx_missed_errors", 5),
            ("rx_dropped", 0),
            ("tx_dropped", 0),
        ]),
        source: Source::Qstats,
        rx: (0..).zip(queues).map(queue).collect(),
        tx: BTreeMap::new(),
    }
}

fn cpu(list: &[(CpuCounter, u64)]) -> CpuSample {
    CpuSample { counts: list.iter().copied().collect(), ..CpuSample::default() }
}

fn at(us: u64, links: &[(&str, LinkCounters)]) -> Counters {
    Counters {
        at_us: us,
        links: links.iter().map(|(n, l)| (n.to_string(), l.clone())).collect(),
        cpus: [(CpuId(0), cpu(&[(CpuCounter::SoftnetProcessed, 9)])), (CpuId(1), CpuSample::default())].into(),
        ..Counters::default()
    }
}

fn layout() -> Layout {
    let wiring = Wiring {
        driver: Some("igb".into()),
        speed_mbps: Some(1000),
        rx: [(0, Some(IrqId(30))), (1, Some(IrqId(31)))].into(),
        tx: [(0, Some(IrqId(30))), (1, Some(IrqId(31)))].into(),
        goes_to: [(IrqId(31), "1".parse::<CpuSet>().unwrap())].into(),
        ..Wiring::default()
    };
    Layout {
        links: [("eth1".to_string(), wiring)].into(),
        nodes: [(CpuId(0), NodeId(0)), (CpuId(1), NodeId(1))].into(),
    }
}

#[test]
fn line_rate_by_bits_and_by_packets() {
    // A gigabit link full of the shortest frames: 1,488,095 of 60 bytes each second.
    let f = super::flow(Some(2_976_190), Some(2_976_190 * 60), 2.0, Some(1000));
    assert_eq!((f.pps, f.avg_bytes), (Some(1_488_095.0), Some(60.0)));
    assert!((f.line_percent.unwrap() - 100.0).abs() < 0.01, "{f:?}");
    assert!((f.line_packets_percent.unwrap() - 100.0).abs() < 0.01, "{f:?}");
    // A gigabit link full of the longest frames: 81,274 of 1514 bytes.
    let f = super::flow(Some(81_274), Some(81_274 * 1514), 1.0, Some(1000));
    assert!((f.line_percent.unwrap() - 100.0).abs() < 0.01, "{f:?}");
    assert!((f.line_packets_percent.unwrap() - 5.46).abs() < 0.01, "{f:?}");
    let f = super::flow(Some(0), Some(0), 1.0, None);
    assert_eq!((f.pps, f.mbps, f.avg_bytes, f.line_percent), (Some(0.0), Some(0.0), None, None));
}

#[test]
fn queues_with_their_vectors() {
    let mut a = at(1_000_000, &[("eth1", link(0, 0, &[10, 20]))]);
    let mut b = at(3_000_000, &[("eth1", link(1000, 60_000, &[910, 120]))]);
    a.irqs = [(IrqId(30), [(CpuId(0), 5)].into()), (IrqId(31), BTreeMap::new())].into();
    b.irqs = [(IrqId(30), [(CpuId(0), 90), (CpuId(1), 5)].into()), (IrqId(31), BTreeMap::new())].into();
    let r = Rates::between(&layout(), &a, &b).unwrap();
    let l = &r.links["eth1"];
    assert_eq!(
        (r.seconds, l.rx.packets, l.rx.pps, l.drops.nic, l.drops.total()),
        (2.0, Some(1000), Some(500.0), Some(0), Some(0))
    );
    let q = &l.queues[0];
    assert_eq!(
        (q.dir, q.queue, q.packets, q.share_percent, q.mark),
        (Dir::Rx, 0, Some(900), Some(90.0), Some(QueueMark::Hot))
    );
    assert_eq!(
        (q.interrupts, q.cpu, q.cpus.to_string(), q.node),
        (Some(90), Some(CpuId(0)), "0-1".into(), Some(NodeId(0)))
    );
    assert_eq!(q.packets_per_interrupt, None, "the transmit queue of the vector is not reported");
    let idle = &l.queues[1];
    assert_eq!((idle.interrupts, idle.cpu, idle.node), (Some(0), Some(CpuId(1)), Some(NodeId(1))));
    let even = l.rx_balance.unwrap();
    assert_eq!((even.max_over_mean, even.variation, even.hot), (1.8, 0.8, Some(0)));
    assert_eq!((r.cpus[&CpuId(0)].interrupts, r.cpus[&CpuId(1)].interrupts), (85, 5));
    // The counters are known in both directions.
    for (c, n) in [(&mut a, 0), (&mut b, 45)] {
        c.links.get_mut("eth1").unwrap().tx.insert(0, QueueCounts::from([(QueueCounter::Packets, n)]));
    }
    let r = Rates::between(&layout(), &a, &b).unwrap();
    assert_eq!(r.links["eth1"].queues[0].packets_per_interrupt, Some(10.5));
}

#[test]
fn what_comes_and_goes_is_named_and_not_counted() {
    let a = at(0, &[("eth1", link(500, 1, &[1, 2])), ("eth2", link(9, 9, &[]))]);
    let b = at(1_000_000, &[("eth1", link(600, 1, &[5, 2, 7_000_000])), ("eth3", link(1 << 40, 9, &[]))]);
    let r = Rates::between(&layout(), &a, &b).unwrap();
    assert_eq!((r.gone.as_slice(), r.came.as_slice()), (&["eth2".to_string()][..], &["eth3".to_string()][..]));
    let q = &r.links["eth1"].queues[2];
    assert_eq!((q.queue, q.packets, q.mark), (2, None, Some(QueueMark::Came)));
    let back =
        Rates::between(&layout(), &at(0, &[("eth1", link(0, 0, &[1, 2, 3]))]), &at(1, &[("eth1", link(0, 0, &[1]))]));
    let back = back.unwrap();
    assert_eq!(back.links["eth1"].queues[2].mark, Some(QueueMark::Gone));
    // The device was unplugged and plugged in again, so it has another index.
    let other = LinkCounters { ifindex: 9, ..link(1 << 40, 0, &[]) };
    let r = Rates::between(&layout(), &a, &at(1, &[("eth1", other)])).unwrap();
    assert!(r.links.is_empty() && r.came == ["eth1"], "{r:?}");
    assert_eq!(Rates::between(&layout(), &b, &a), None, "another boot");
}

#[test]
fn a_reset_is_a_mark() {
    let a = at(0, &[("eth1", link(5000, 300_000, &[4000, 1000]))]);
    let b = at(1_000_000, &[("eth1", link(3, 180, &[3, 1200]))]);
    let l = &Rates::between(&layout(), &a, &b).unwrap().links["eth1"];
    assert_eq!((l.rx.packets, l.rx.pps, l.rx.line_percent), (None, None, None));
    assert_eq!(l.reset, ["rx_bytes", "rx_packets"]);
    assert_eq!((l.queues[0].packets, l.queues[0].mark, l.queues[1].packets), (None, Some(QueueMark::Reset), Some(200)));
    // Another source began to count at another time.
    let mut other = b.clone();
    other.links.get_mut("eth1").unwrap().source = Source::Ethtool;
    let l = &Rates::between(&layout(), &a, &other).unwrap().links["eth1"];
    assert_eq!((l.queues[1].packets, l.queues[1].mark), (None, None));
}

#[test]
fn vectors_that_were_freed_and_cpus_that_left() {
    let with = |us, irq: &[(u32, u64)], cpus: &[u32]| Counters {
        irqs: [(IrqId(30), irq.iter().map(|(c, n)| (CpuId(*c), *n)).collect())].into(),
        cpus: cpus.iter().map(|c| (CpuId(*c), CpuSample::default())).collect(),
        ..at(us, &[("eth1", link(0, 0, &[0]))])
    };
    let took = |a: &Counters, b: &Counters| {
        let r = Rates::between(&layout(), a, b).unwrap();
        (r.links["eth1"].queues[0].interrupts, r.cpus_gone, r.cpus_came)
    };
    let a = with(0, &[(0, 100), (1, 50)], &[0, 1]);
    assert_eq!(took(&a, &with(1, &[(0, 7)], &[0, 1])).0, None, "the number was reused");
    let (n, gone, came) = took(&a, &with(1, &[(0, 101)], &[0]));
    assert_eq!((n, gone, came), (Some(1), vec![CpuId(1)], vec![]));
    assert_eq!(took(&with(0, &[(0, 101)], &[0]), &with(1, &[(0, 200)], &[0, 1])).2, [CpuId(1)]);
    let wrap = with(0, &[(0, u64::from(u32::MAX))], &[0]);
    assert_eq!(took(&wrap, &with(1, &[(0, 4)], &[0])).0, Some(5));
}

#[test]
fn time_of_a_cpu() {
    let ticks = |softirq: u64, idle: u64, iowait: u64| {
        cpu(&[
            (CpuCounter::User, 10),
            (CpuCounter::Nice, 0),
            (CpuCounter::System, 0),
            (CpuCounter::Idle, idle),
            (CpuCounter::Iowait, iowait),
            (CpuCounter::Irq, 0),
            (CpuCounter::Softirq, softirq),
            (CpuCounter::Steal, 0),
            (CpuCounter::KsoftirqdNs, softirq * 5_000_000),
            (CpuCounter::SoftnetBacklog, softirq),
        ])
    };
    let c = super::cpu(&ticks(0, 0, 9), &ticks(30, 70, 5), 1.0);
    assert_eq!(
        (c.softirq_percent, c.idle_percent, c.irq_percent, c.backlog),
        (Some(30.0), Some(70.0), Some(0.0), Some(30))
    );
    assert_eq!((c.ksoftirqd_percent, c.reset.as_slice()), (Some(15.0), &[][..]));
    assert_eq!(super::cpu(&ticks(0, 1, 1), &ticks(0, 1, 1), 1.0).softirq_percent, None, "no tick passed");
    assert_eq!(super::cpu(&CpuSample::default(), &CpuSample::default(), 1.0), CpuRates::default());
}

#[test]
fn silence_is_neither_going_nor_coming() {
    let with = |us, links: &[(&str, LinkCounters)], silent: &[&str]| Counters {
        silent: silent.iter().map(|s| s.to_string()).collect(),
        ..at(us, links)
    };
    let a = with(0, &[("eth1", link(500, 1, &[1]))], &[]);
    let b = with(1_000_000, &[], &["eth1"]);
    let c = with(2_000_000, &[("eth1", link(900, 1, &[1]))], &[]);
    let d = with(3_000_000, &[("eth1", link(950, 1, &[1]))], &[]);
    let rates = |x, y| Rates::between(&layout(), x, y).unwrap();
    for (r, silent) in [(rates(&a, &b), 1), (rates(&b, &c), 0)] {
        assert!(r.links.is_empty() && r.gone.is_empty() && r.came.is_empty(), "{r:?}");
        assert_eq!(r.silent.len(), silent);
    }
    assert_eq!(rates(&c, &d).links["eth1"].rx.packets, Some(50));
}

#[test]
fn napi_threads_are_work_of_their_cpu() {
    let mut l = layout();
    let wiring = l.links.get_mut("eth1").unwrap();
    // Queue 1 and 2 share a thread; that of queue 3 may run anywhere.
    let on = |pid, cpu| NapiThread { pid, cpu };
    let (zero, one) = (Some(CpuId(0)), Some(CpuId(1)));
    wiring.threads = Some([(0, on(10, zero)), (1, on(11, one)), (2, on(11, one)), (3, on(12, None))].into());
    let times = |us: u64, ns: [u64; 3], softirq: u64| Counters {
        threads_ns: (10..).zip(ns).collect(),
        cpus: (0..3)
            .map(|c| {
                let zero = ringwise_kfmt::procstat::COLUMNS.map(|c| (c, 0));
                let mut sample = cpu(&zero);
                sample.counts.set(CpuCounter::Softirq, softirq);
                sample.counts.set(CpuCounter::Idle, softirq * 9);
                (CpuId(c), sample)
            })
            .collect(),
        ..at(us, &[])
    };
    let (first, mut second) = (times(0, [0; 3], 0), times(1_000_000, [400_000_000, 700_000_000, 900_000_000], 10));
    let busy = |l: &Layout, second: &Counters| {
        let r = Rates::between(l, &first, second).unwrap();
        r.cpus.values().map(|c| (c.napi_threads_percent, c.busy_percent())).collect::<Vec<_>>()
    };
    // Ten ticks are a tenth of the second.
    let some = |threads: f64| (Some(threads), Some(threads + 10.0));
    assert_eq!(busy(&l, &second), [some(40.0), some(70.0), some(0.0)]);
    let queue = |r: &Rates| r.links["eth1"].queues.iter().map(|q| q.cpu.map(|c| c.0)).collect::<Vec<_>>();
    let with_link = |c: &Counters| Counters { links: [("eth1".to_string(), link(0, 0, &[0, 0]))].into(), ..c.clone() };
    let r = Rates::between(&l, &with_link(&first), &with_link(&second)).unwrap();
    assert_eq!(queue(&r)[..2], [Some(0), Some(1)], "a queue is on the CPU of its thread");
    second.threads_ns.remove(&11);
    assert_eq!(busy(&l, &second), [some(40.0), (None, Some(10.0)), some(0.0)], "its time is unknown");
    l.links.get_mut("eth1").unwrap().threads = None;
    assert_eq!(busy(&l, &second), [(None, Some(10.0)); 3]);
}

#[test]
fn idle_states_in_their_order() {
    let states =
        |a: u64, b: u64| CpuSample { idle_us: vec![("0POLL".into(), a), ("1C1".into(), b)], ..CpuSample::default() };
    let c = super::cpu(&states(0, 0), &states(100_000, 1_500_000), 2.0);
    assert_eq!(c.idle_states, [("POLL".to_string(), 5.0), ("C1".to_string(), 75.0)]);
    let c = super::cpu(&states(7, 7), &states(8, 3), 2.0);
    assert_eq!((c.idle_states.len(), c.reset), (1, vec!["idle_us:1C1".to_string()]));
}

#[test]
fn sockets_by_name() {
    let with = |us, n| Counters { host: counts(&[("Udp:RcvbufErrors", n), ("TcpExt:ListenDrops", 4)]), ..at(us, &[]) };
    let r = Rates::between(&layout(), &with(0, 3), &with(1, 10)).unwrap();
    assert_eq!(r.socket_drops, counts(&[("Udp:RcvbufErrors", 7)]));
}

#[test]
fn a_gauge_is_no_counter_and_an_estimate_never_goes_backwards() {
    assert_eq!((increase(Gauge, 3, 5), increase(Estimate, 5, 3), increase(Estimate, 3, 5)), (None, Some(0), Some(2)));
}

proptest! {
    #[test]
    fn forwards_is_exact(a in any::<u64>(), n in any::<u64>()) {
        if let Some(b) = a.checked_add(n) {
            prop_assert_eq!(increase(Bits64, a, b), Some(n));
        }
    }

    #[test]
    fn a_wrap_is_no_reset(near in 0..1u64 << 29, n in 0..1u64 << 29) {
        let a32 = u64::from(u32::MAX) - near;
        for kind in [CpuCounter::SoftnetProcessed.kind(), kind_of("qdisc_drops"), kind_of("carrier_changes"), INTERRUPTS] {
            prop_assert_eq!(increase(kind, a32, (a32 + n) & 0xffff_ffff), Some(n));
        }
        let a64 = u64::MAX - near;
        prop_assert_eq!(increase(kind_of("rx_bytes"), a64, a64.wrapping_add(n)), Some(n));
    }

    /// After any reset the increase is unknown, or less than half of the counter's range.
    #[test]
    fn no_spikes(a in any::<u64>(), b in any::<u64>()) {
        if b < a {
            prop_assert!(increase(Bits64, a, b).is_none_or(|n| n < 1 << 63));
            prop_assert!(increase(Bits32, a & 0xffff_ffff, b & 0xffff_ffff).is_none_or(|n| n < 1 << 31 || b & 0xffff_ffff >= a & 0xffff_ffff));
            if a < 3 << 62 {
                prop_assert_eq!(increase(Bits64, a, b), None);
            }
        }
    }

    /// Shares add up, the balance is between even and one queue for all, and at most one queue is hot.
    #[test]
    fn shares(n in proptest::collection::vec(0u64..1_000_000, 1..40)) {
        let zero = vec![0; n.len()];
        let r = Rates::between(&Layout::default(), &at(0, &[("x", link(0, 0, &zero))]), &at(1, &[("x", link(0, 0, &n))])).unwrap();
        let l = &r.links["x"];
        let sum: u64 = n.iter().sum();
        prop_assert_eq!(l.queues.iter().filter_map(|q| q.packets).sum::<u64>(), sum);
        match l.rx_balance {
            None => prop_assert_eq!(sum, 0),
            Some(b) => {
                let all: f64 = l.queues.iter().filter_map(|q| q.share_percent).sum();
                prop_assert!((all - 100.0).abs() < 1e-6);
                prop_assert!(b.max_over_mean >= 1.0 - 1e-9 && b.max_over_mean <= n.len() as f64 + 1e-9);
                prop_assert!(b.variation >= 0.0 && b.variation <= (n.len() as f64).sqrt());
                prop_assert_eq!(l.queues.iter().filter(|q| q.mark == Some(QueueMark::Hot)).count(), usize::from(b.hot.is_some()));
            }
        }
    }
}

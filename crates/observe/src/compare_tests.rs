use super::*;
use crate::{Counters, Counts, CpuSample, Layout, LinkCounters, Source, Wiring};
use ringwise_model::{CpuCounts, IrqId, QueueCounter, QueueCounts};

fn counts(list: &[(&str, u64)]) -> Counts {
    list.iter().map(|(k, v)| (k.to_string(), *v)).collect()
}

fn layout() -> Layout {
    let wiring = Wiring {
        rx: [(0, Some(IrqId(30))), (1, Some(IrqId(31)))].into(),
        tx: [(0, Some(IrqId(30))), (1, Some(IrqId(31)))].into(),
        ..Wiring::default()
    };
    Layout { links: [("eth1".to_string(), wiring)].into(), ..Layout::default() }
}

/// The sample of second `n`: `rx` packets per second arrive, and `first` of them at the first queue.
fn sample(n: u64, rx: u64, first: u64, lost: u64) -> Counters {
    let queue = |p: u64| -> QueueCounts { [(QueueCounter::Packets, p), (QueueCounter::Bytes, 60 * p)].into() };
    let link = LinkCounters {
        ifindex: 2,
        counts: counts(&[
            ("rx_packets", rx * n),
            ("rx_bytes", 60 * rx * n),
            ("tx_packets", 0),
            ("tx_bytes", 0),
            ("rx_missed_errors", lost * n),
            ("rx_dropped", 0),
            ("tx_dropped", 0),
        ]),
        source: Source::Ethtool,
        rx: [(0, queue(first * n)), (1, queue((rx - first) * n))].into(),
        tx: [(0, queue(0)), (1, queue(0))].into(),
    };
    let cpu = |soft: u64| {
        let mut counts: CpuCounts = ringwise_kfmt::procstat::COLUMNS.map(|c| (c, 0)).into();
        counts.set(CpuCounter::Softirq, soft * n);
        counts.set(CpuCounter::Idle, (100 - soft) * n);
        CpuSample { counts, ..CpuSample::default() }
    };
    Counters {
        at_us: n * 1_000_000,
        links: [("eth1".to_string(), link)].into(),
        cpus: [(CpuId(0), cpu(90)), (CpuId(1), cpu(10))].into(),
        irqs: [(IrqId(30), [(CpuId(0), 10 * n)].into()), (IrqId(31), [(CpuId(1), 10 * n)].into())].into(),
        ..Counters::default()
    }
}

fn rates(from: Counters, to: Counters) -> Rates {
    Rates::between(&layout(), &from, &to).unwrap()
}

fn of<'a>(c: &'a WindowComparison, key: &str) -> &'a ComparedFigure {
    c.links["eth1"].iter().find(|f| f.key == key).unwrap()
}

#[test]
fn numbers_side_by_side() {
    let before = rates(sample(1, 1000, 900, 40), sample(11, 1000, 900, 40));
    let after = rates(sample(20, 1100, 550, 0), sample(30, 1100, 550, 0));
    let c = WindowComparison::of(&before, Some(&after));
    let both = |key| (of(&c, key).before, of(&c, key).after);
    assert_eq!(both("rx_packets_per_second"), (Some(1000.0), Some(1100.0)));
    assert_eq!(both("dropped_nic_per_second"), (Some(40.0), Some(0.0)));
    assert_eq!(both("rx_max_over_mean"), (Some(1.8), Some(1.0)));
    assert_eq!(both("tx_max_over_mean"), (None, None));
    assert_eq!(both("interrupts_per_second"), (Some(20.0), Some(20.0)));
    assert_eq!(both("packets_per_interrupt"), (Some(50.0), Some(55.0)));
    assert_eq!(both("busiest_cpu_percent"), (Some(90.0), Some(90.0)));
    assert_eq!(both("cpus_with_interrupts"), (Some(2.0), Some(2.0)));
    assert_eq!(of(&c, "rx_packets_per_second").change_percent(), Some(10.0));
    assert_eq!(of(&c, "tx_packets_per_second").change_percent(), None, "nothing before");
    assert!(!c.loads_differ() && c.notes.is_empty(), "{:?}", c.notes);
    assert_eq!(c.host[1].before, Some(50.0));
    let more = rates(sample(20, 1500, 550, 0), sample(30, 1500, 550, 0));
    assert!(WindowComparison::of(&before, Some(&more)).loads_differ());
}

#[test]
fn what_is_not_known_stays_so() {
    let before = rates(sample(1, 1000, 900, 40), sample(11, 1000, 900, 40));
    let alone = WindowComparison::of(&before, None);
    assert!(alone.links["eth1"].iter().all(|f| f.after.is_none()));
    assert!(!alone.loads_differ());
    let mut last = sample(30, 10, 5, 0);
    last.links.get_mut("eth1").unwrap().counts.insert("rx_packets".into(), 3);
    let reset = WindowComparison::of(&before, Some(&rates(sample(20, 1100, 550, 0), last)));
    assert_eq!(of(&reset, "rx_packets_per_second").after, None);
    assert!(
        reset.notes.iter().any(|n| n.contains("reset in the \"after\" window") && n.contains("rx_packets")),
        "{:?}",
        reset.notes
    );
    let mut gone = sample(30, 1100, 550, 0);
    gone.links.clear();
    let gone = WindowComparison::of(&before, Some(&rates(sample(20, 1100, 550, 0), gone)));
    assert!(gone.notes.contains(&"eth1 disappeared in the \"after\" window".to_string()), "{:?}", gone.notes);
}

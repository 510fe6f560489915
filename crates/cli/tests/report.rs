//! `ringwise report` on made-up windows: text, JSON by its schema, and one file for a browser.

use crate::common::schema::check;
use crate::common::*;
use ringwise_model::{Counter, CounterValues, CpuId, IrqId};
use ringwise_observe::{Counters, Counts, CpuSample, Layout, LinkCounters, Rates, Source, WindowComparison, Wiring};
use ringwise_render::report::{Span, TransactionReport, html, json, text};
use ringwise_text::Style;
use serde_json::Value;

fn counts(list: &[(&str, u64)]) -> Counts {
    list.iter().map(|(k, v)| (k.to_string(), *v)).collect()
}

/// Of a queue or a CPU.
fn typed<C: Counter, const N: usize>(list: &[(&str, u64)]) -> CounterValues<C, N> {
    list.iter().map(|(name, n)| (C::from_name(name).unwrap(), *n)).collect()
}

fn layout() -> Layout {
    let wired = || (0..4).map(|q| (q, Some(IrqId(30 + q)))).collect();
    let wiring = Wiring { driver: Some("igb".into()), rx: wired(), tx: wired(), ..Wiring::default() };
    Layout { links: [("eth1".to_string(), wiring)].into(), ..Layout::default() }
}

/// Counters in second `n`: `rx` packets a second arrive, and `part` is the share of each queue in thousandths.
fn sample(n: u64, rx: u64, part: [u64; 4], lost: u64, on: [u32; 4]) -> Counters {
    let queue = |p: u64| typed(&[("packets", p), ("bytes", 60 * p)]);
    let soft = |c: u32| on.iter().zip(part).filter(|(o, _)| **o == c).map(|(_, p)| p / 11).sum::<u64>();
    let cpu = |c: u32| {
        let rest = ["user", "nice", "system", "iowait", "irq", "steal"].map(|k| (k, 0));
        let net = [("softnet_dropped", 0), ("softnet_squeezed", n * soft(c) / 10)];
        let ticks = [("softirq", soft(c) * n), ("idle", (100 - soft(c)) * n)];
        CpuSample { counts: typed(&[&rest[..], &ticks, &net[..]].concat()), ..CpuSample::default() }
    };
    let link = LinkCounters {
        ifindex: 2,
        counts: counts(&[
            ("rx_packets", rx * n),
            ("rx_bytes", 60 * rx * n),
            ("tx_packets", 1200 * n),
            ("tx_bytes", 72_000 * n),
            ("rx_missed_errors", lost * n),
            ("rx_dropped", 0),
            ("tx_dropped", 0),
        ]),
        source: Source::Ethtool,
        rx: (0..).zip(part.map(|p| queue(rx * n / 1000 * p))).collect(),
        tx: (0..4).map(|q| (q, queue(300 * n))).collect(),
    };
    Counters {
        at_us: n * 1_000_000,
        unix_time: 1_795_183_000 + n,
        links: [("eth1".to_string(), link)].into(),
        cpus: (0..4).map(|c| (CpuId(c), cpu(c))).collect(),
        irqs: (0..4).map(|i| (IrqId(30 + i), [(CpuId(on[i as usize]), 9000 * n)].into())).collect(),
        host: counts(&[("Udp:RcvbufErrors", 0)]),
        unread: Vec::new(),
        ..Counters::default()
    }
}

fn report(after: bool) -> TransactionReport {
    let rates = |a, b| Rates::between(&layout(), &a, &b).unwrap();
    let bad = |n| sample(n, 771_000, [700, 100, 100, 100], 41_180, [0, 0, 0, 0]);
    let good = |n| sample(n, 812_000, [250, 250, 250, 250], 0, [0, 1, 2, 3]);
    let (before, second) = (rates(bad(100), bad(400)), rates(good(410), good(710)));
    let comparison = WindowComparison::of(&before, after.then_some(&second));
    TransactionReport {
        host: "edge3".into(),
        transaction: 14,
        title: "goal forward".into(),
        reason: Some("CHG-4711 <night>".into()),
        unix_time: 1_795_183_405,
        state: "kept",
        before: Span { from_unix: 1_795_183_100, seconds: before.seconds },
        after: after.then_some(Span { from_unix: 1_795_183_410, seconds: second.seconds }),
        until_now: false,
        notes: if after { Vec::new() } else { vec!["there is no window after".into()] },
        comparison,
    }
}

#[test]
fn text_of_80_columns_and_json() {
    let style = Style { utc: true, ..Style::plain(Some(80)) };
    let page = text(&report(true), &style);
    assert!(page.lines().all(|l| l.chars().count() <= 80), "{page}");
    assert!(page.contains("observed, not proven") && page.contains("Undo: ringwise rollback 14"), "{page}");
    golden("report.txt", &page);
    let half = text(&report(false), &style);
    assert!(half.contains("after   not measured") && half.contains("there is no window after"), "{half}");
    let schema = std::fs::read(root().join("schemas/ringwise.report.v1.json")).unwrap();
    let schema: Value = serde_json::from_slice(&schema).unwrap();
    for after in [true, false] {
        let wrong = check(&schema, &json(&report(after)));
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
    let doc = json(&report(true));
    let nic = &doc["interfaces"]["eth1"]["dropped_nic_per_second"];
    assert_eq!((nic["before"].as_f64(), nic["after"].as_f64()), (Some(41_180.0), Some(0.0)));
    assert_eq!(doc["cpus"]["busiest_cpu_percent"]["before"].as_f64(), Some(90.0));
}

/// Tags are closed in their order, nothing is loaded, and names cannot become markup.
#[test]
fn a_page_of_its_own() {
    let mut r = report(true);
    r.notes.push("<script>alert(1)</script>".into());
    let page = html(&r, &Style { utc: true, ..Style::plain(None) });
    for no in ["<script", "http:", "https:", "src=", "url(", "@import", "<link"] {
        assert!(!page.contains(no), "{no}");
    }
    assert!(page.contains("CHG-4711 &lt;night&gt;") && page.contains("observed, not proven"), "{page}");
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1) {
        let inner = tag.split('>').next().unwrap();
        let name = inner.split([' ', '/']).find(|w| !w.is_empty()).unwrap_or_default();
        match () {
            () if inner.starts_with('/') => assert_eq!(open.pop(), Some(name), "{inner}"),
            () if inner.starts_with('!') || inner.ends_with('/') || name == "meta" => {}
            () => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

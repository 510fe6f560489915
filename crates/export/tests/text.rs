//! A strict parser accepts the text, and totals never decrease.

mod parse;

use std::collections::BTreeMap;

use parse::{Kind, parse};
use ringwise_export::{
    ExporterFacts, Findings, Form, Keeper, LastTransaction, Page, Service, Value, VerifyCounts, counters, exporter,
    findings, service, table, verify_counts,
};
use ringwise_model::{CpuCounter, CpuId, IrqId, NodeId, QueueCounter, QueueCounts};
use ringwise_observe::{Counters, Counts, CpuSample, Layout, LinkCounters, Source, Wiring};

fn counts(list: &[(&str, u64)]) -> Counts {
    list.iter().map(|(k, v)| (k.to_string(), *v)).collect()
}

/// `devs` interfaces with two queues each, on vectors 30 and on, and two CPUs on two nodes.
fn layout(devs: u32) -> Layout {
    let wiring = |d: u32| Wiring {
        driver: Some("igb".into()),
        node: Some(NodeId(0)),
        speed_mbps: Some(1000),
        rx: (0..2).map(|q| (q, Some(IrqId(30 + 2 * d + q)))).collect(),
        tx: (0..2).map(|q| (q, Some(IrqId(30 + 2 * d + q)))).collect(),
        goes_to: [(IrqId(30 + 2 * d), "0".parse().unwrap()), (IrqId(31 + 2 * d), "0-1".parse().unwrap())].into(),
        threads: None,
    };
    Layout {
        links: (0..devs).map(|d| (format!("eth{d}"), wiring(d))).collect(),
        nodes: [(CpuId(0), NodeId(0)), (CpuId(1), NodeId(1))].into(),
    }
}

fn sample(devs: u32, n: u64) -> Counters {
    let queue = |n: u64| -> QueueCounts {
        let bytes = (QueueCounter::Bytes, 60 * n);
        [(QueueCounter::Packets, n), bytes, (QueueCounter::Drops, 1), (QueueCounter::BqlLimit, 5)].into()
    };
    let link = |d: u32| LinkCounters {
        ifindex: 2 + d,
        counts: counts(&[("rx_packets", 1000 * n), ("tx_packets", n), ("rx_missed_errors", n), ("carrier_changes", 2)]),
        source: Source::Ethtool,
        rx: [(0, queue(900 * n)), (1, queue(100 * n))].into(),
        tx: [(0, queue(n)), (1, queue(0))].into(),
    };
    let ticks = [(CpuCounter::Softirq, 95 * n), (CpuCounter::Irq, 0), (CpuCounter::Idle, 5 * n)];
    let rest = [(CpuCounter::SoftnetProcessed, n), (CpuCounter::KsoftirqdNs, n)];
    let cpu = CpuSample { counts: ticks.into_iter().chain(rest).collect(), ..CpuSample::default() };
    let irqs = (0..2 * devs).map(|i| (IrqId(30 + i), [(CpuId(i % 2), 10 * n)].into()));
    Counters {
        at_us: n * 1_000_000,
        unix_time: 1_795_183_320 + n,
        links: (0..devs).map(|d| (format!("eth{d}"), link(d))).collect(),
        cpus: [(CpuId(0), cpu.clone()), (CpuId(1), cpu)].into(),
        irqs: irqs.collect(),
        host: counts(&[("Udp:RcvbufErrors", 7 * n)]),
        unread: Vec::new(),
        ..Counters::default()
    }
}

fn what_is_applied() -> VerifyCounts {
    VerifyCounts {
        unix_time: 9,
        readable: true,
        settings: [(String::new(), [1, 0, 0]), ("eth0".into(), [4, 2, 1])].into(),
        unfinished: false,
        trial_until_unix: Some(99),
        last: Some(LastTransaction { transaction: 14, kind: "apply".into(), verdict: "kept".into(), unix_time: 5 }),
    }
}

fn what_is_found() -> Findings {
    Findings {
        unix_time: 8,
        by_severity: [("error", 0), ("warning", 3), ("info", 1)],
        unread_rules: 2,
        skipped_rules: 0,
    }
}

fn what_the_service_does() -> Service {
    Service {
        start_unix: 7,
        problem: true,
        pauses: [("command", 0), ("competing", 2), ("failed", 0)],
        keeps: 41,
        transactions: [5, 1],
        written: 53,
        moves: vec![("eth0".into(), "table", "uneven_load", 4), ("eth1".into(), "interrupt", "programs", 1)],
        no_table_writes: vec!["eth1".into()],
        last_unix: Some(8),
        ..Service::default()
    }
}

fn page(keep: &mut Keeper, layout: &Layout, c: &Counters) -> Page {
    let mut p = Page::default();
    keep.begin();
    counters(&mut p, keep, layout, c);
    verify_counts(&mut p, &what_is_applied());
    findings(&mut p, &what_is_found());
    service(&mut p, Some(&what_the_service_does()));
    exporter(&mut p, &ExporterFacts { version: "0.1.0", lasts: true, limit: 10_000, ..ExporterFacts::default() }, keep);
    p
}

fn text(keep: &mut Keeper, layout: &Layout, c: &Counters) -> String {
    page(keep, layout, c).render(Form::Prometheus, 10_000)
}

#[test]
fn both_forms_are_read_and_say_the_same() {
    let plain = page(&mut Keeper::new(10), &layout(2), &sample(2, 3)).render(Form::Prometheus, 10_000);
    let open = page(&mut Keeper::new(10), &layout(2), &sample(2, 3)).render(Form::OpenMetrics, 10_000);
    let (plain, open) = (parse(&plain, false).unwrap(), parse(&open, true).unwrap());
    assert_eq!(plain.series, open.series);
    let at = |k: &str| plain.series.get(k).map(String::as_str);
    assert_eq!(at(r#"ringwise_device_packets_total{device="eth1",direction="rx"}"#), Some("3000"));
    assert_eq!(at(r#"ringwise_queue_packets_total{device="eth0",queue="0",direction="rx"}"#), Some("2700"));
    assert_eq!(at(r#"ringwise_device_drops_total{device="eth0",direction="rx",place="nic"}"#), Some("3"));
    assert_eq!(at(r#"ringwise_device_speed_bytes_per_second{device="eth0"}"#), Some("125000000"));
    let irq = r#"ringwise_queue_interrupts_total{device="eth0",queue="1",direction="rxtx",cpu="1",node="1"}"#;
    assert_eq!(at(irq), Some("30"));
    assert_eq!(at(r#"ringwise_queue_info{device="eth0",queue="0",direction="tx",cpu="0",node="0"}"#), Some("1"));
    assert_eq!(at(r#"ringwise_queue_info{device="eth0",queue="1",direction="tx"}"#), Some("1"), "two CPUs: no label");
    assert_eq!(at(r#"ringwise_cpu_seconds_total{cpu="0",node="0",mode="softirq"}"#), Some("2.85"));
    assert_eq!(at(r#"ringwise_settings{device="eth0",state="drifted"}"#), Some("2"));
    assert_eq!(at(r#"ringwise_settings{state="holds"}"#), Some("1"));
    assert_eq!(at(r#"ringwise_last_apply_info{transaction="14",kind="apply",verdict="kept"}"#), Some("1"));
    assert_eq!(at(r#"ringwise_findings{severity="warning"}"#), Some("3"));
    assert_eq!(at(r#"ringwise_findings{severity="error"}"#), Some("0"), "none is a number too");
    assert_eq!(at("ringwise_check_rules_unread"), Some("2"));
    assert_eq!((at("ringwise_service_running"), at("ringwise_service_problem")), (Some("1"), Some("1")));
    assert_eq!(at(r#"ringwise_service_pauses{reason="competing"}"#), Some("2"));
    assert_eq!(at(r#"ringwise_service_pauses{reason="command"}"#), Some("0"));
    assert_eq!(at(r#"ringwise_service_transactions_total{verdict="failed"}"#), Some("1"));
    let moves = r#"ringwise_service_moves_total{device="eth0",actuator="table",reason="uneven_load"}"#;
    assert_eq!(at(moves), Some("4"));
    let ended = r#"ringwise_service_table_moves_ended{device="eth1",reason="link_went_down"}"#;
    assert_eq!(at(ended), Some("1"));
    assert_eq!(at("ringwise_service_last_action_timestamp_seconds"), Some("8"));
    assert_eq!(at("ringwise_check_timestamp_seconds"), Some("8"));
    assert_eq!(at(r#"ringwise_resets_seen_total{device="eth0"}"#), Some("0"));
    assert_eq!(plain.kinds["ringwise_device_packets_total"], Kind::Counter);
    // Labels are those of the table, in its order.
    for key in plain.series.keys() {
        let name = key.split('{').next().unwrap();
        let family = table::ALL.iter().find(|f| f.name == name).unwrap();
        let labels = parse::labels_of(key);
        let mut places =
            labels.iter().map(|l| family.labels.iter().position(|f| f == l).unwrap_or_else(|| panic!("{key}")));
        assert!(places.clone().zip(places.by_ref().skip(1)).all(|(a, b)| a < b), "{key}");
    }
}

#[test]
fn a_device_that_does_not_answer_is_named_and_its_counters_are_omitted() {
    let mut c = sample(2, 3);
    c.links.remove("eth1");
    c.silent = vec!["eth1".into()];
    let text = text(&mut Keeper::new(10), &layout(2), &c);
    let got = parse(&text, false).unwrap();
    let at = |k: &str| got.series.get(k).map(String::as_str);
    assert_eq!(at(r#"ringwise_device_answers{device="eth0"}"#), Some("1"));
    assert_eq!(at(r#"ringwise_device_answers{device="eth1"}"#), Some("0"));
    assert_eq!(at(r#"ringwise_device_packets_total{device="eth1",direction="rx"}"#), None);
}

#[test]
fn unknown_values_are_omitted() {
    let mut p = Page::default();
    verify_counts(&mut p, &VerifyCounts::default());
    let own_page = ExporterFacts { version: "0.1.0", limit: 500, ..ExporterFacts::default() };
    exporter(&mut p, &own_page, &Keeper::new(10));
    let text = p.render(Form::Prometheus, 10_000);
    let got = parse(&text, false).unwrap();
    assert_eq!(got.series["ringwise_state_readable"], "0");
    for absent in ["findings", "settings", "last_apply", "verify", "resets", "trial", "device", "start_time"] {
        assert!(!got.series.keys().any(|k| k.contains(absent)), "{absent}: {text}");
    }
}

#[test]
fn a_service_that_does_not_run_has_one_series() {
    let mut p = Page::default();
    service(&mut p, None);
    let got = parse(&p.render(Form::Prometheus, 10_000), false).unwrap();
    let series: Vec<(&str, &str)> = got.series.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(series, [("ringwise_service_running", "0")]);
}

#[test]
fn labels_are_escaped() {
    let mut p = Page::default();
    p.add(&table::BUILD, &[("version", "a\"b\\c\nd")], Value::Int(1));
    let text = p.render(Form::Prometheus, 1000);
    assert!(text.contains(r#"{version="a\"b\\c\nd"} 1"#), "{text}");
    let got = parse(&text, false).unwrap();
    assert_eq!(parse::value_of(got.series.keys().next().unwrap(), "version"), Some("a\"b\\c\nd".to_string()));
}

#[test]
fn the_parser_finds_what_is_wrong() {
    let good = "# HELP a_total x.\n# TYPE a_total counter\na_total{x=\"1\"} 5\n";
    parse(good, false).unwrap();
    for (bad, open) in [
        ("a_total 5\n", false),
        ("# TYPE a_total counter\na_total 5\n", false),
        ("# HELP a_total x.\n# TYPE a_total counter\na_total{x=\"1} 5\n", false),
        ("# HELP a_total x.\n# TYPE a_total counter\na_total{x=\"\\q\"} 5\n", false),
        ("# HELP a_total x.\n# TYPE a_total counter\na_total -1\n", false),
        ("# HELP a_total x.\n# TYPE a_total counter\na_total 1\na_total 1\n", false),
        ("# HELP a_total x.\n# TYPE a_total counter\na_total 1", false),
        ("# HELP a x.\n# TYPE a counter\na 1\n", false),
        ("# HELP a x.\n# TYPE a gauge\na 1\n# HELP b x.\n# TYPE b gauge\nb 1\na{x=\"2\"} 1\n", false),
        ("# HELP a x.\n# TYPE a gauge\na 1\n", true),
        ("# HELP a x.\n# TYPE a gauge\n# UNIT a seconds\na 1\n# EOF\n", true),
        ("# HELP a_total x.\n# TYPE a_total counter\na_total 5\n# EOF\n", true),
    ] {
        assert!(parse(bad, open).is_err(), "{bad}");
    }
}

/// Counter values by series.
fn totals(text: &str) -> BTreeMap<String, f64> {
    let got = parse(text, false).unwrap();
    let counter = |k: &String| k.split('{').next().is_some_and(|n| got.kinds[n] == Kind::Counter);
    got.series.iter().filter(|(k, _)| counter(k)).map(|(k, v)| (k.clone(), v.parse().unwrap())).collect()
}

#[test]
fn totals_grow_over_resets_and_devices_that_go_and_come() {
    let mut keep = Keeper::new(10_000);
    let whole = layout(2);
    let mut reset = sample(2, 1);
    reset.at_us = 5_000_000;
    let mut gone = sample(2, 6);
    gone.links.remove("eth1");
    // The vectors of a removed device disappear as well.
    gone.irqs.retain(|i, _| i.0 < 32);
    let mut back = sample(2, 1);
    for l in back.links.values_mut() {
        l.ifindex += 10;
    }
    let mut last: BTreeMap<String, f64> = BTreeMap::new();
    let steps = [sample(2, 3), sample(2, 4), reset, gone, back, sample(2, 1), sample(2, 9)];
    for (i, c) in steps.iter().enumerate() {
        let text = text(&mut keep, &whole, c);
        assert_eq!(text.contains("device_packets_total{device=\"eth1\""), i != 3, "step {i}");
        for (k, v) in totals(&text) {
            let before = last.get(&k).copied().unwrap_or(0.0);
            assert!(v >= before, "step {i}: {k} went from {before} to {v}");
            last.insert(k, v);
        }
    }
    let at = |k: &str| last[k];
    // 4000, the reset 1000, (eth0: +5000,) another device +1000, another one +1000, +8000
    assert_eq!(at(r#"ringwise_device_packets_total{device="eth1",direction="rx"}"#), 15_000.0);
    assert_eq!(at(r#"ringwise_device_packets_total{device="eth0",direction="rx"}"#), 20_000.0);
    assert_eq!(at(r#"ringwise_resets_seen_total{device="eth1"}"#), 1.0);
}

#[test]
fn never_more_series_than_allowed_and_missing_ones_are_reported() {
    let (layout, c) = (layout(40), sample(40, 3));
    let all = parse(&text(&mut Keeper::new(9), &layout, &c), false).unwrap().series.len();
    assert!(all > 1000, "{all}");
    for limit in [200, 333, 500, 1000] {
        let text = page(&mut Keeper::new(9), &layout, &c).render(Form::Prometheus, limit);
        let got = parse(&text, false).unwrap();
        assert!(got.series.len() <= limit, "{limit}: {}", got.series.len());
        let told: f64 = got
            .series
            .iter()
            .filter(|(k, _)| k.contains("series_left_out"))
            .map(|(_, v)| v.parse::<f64>().unwrap())
            .sum();
        let lines = got.series.keys().filter(|k| k.contains("series_left_out")).count();
        assert_eq!(told as usize, all - (got.series.len() - lines), "{limit}");
        // Each device that is present in a metric is complete.
        for d in 0..40 {
            let of = format!("ringwise_queue_packets_total{{device=\"eth{d}\"");
            let n = got.series.keys().filter(|k| k.starts_with(&of)).count();
            assert!(n == 0 || n == 4, "{limit}: eth{d} has {n} of 4");
        }
        assert!(got.series.contains_key(r#"ringwise_settings{device="eth0",state="drifted"}"#), "{limit}");
    }
}

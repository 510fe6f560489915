//! `ringwise watch` on recordings: lines, page and JSON of known counters.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use crate::common::schema::check;
use crate::common::*;
use ringwise_model::{Counter, CounterValues, CpuCounter, CpuId, IrqId, NodeId};
use ringwise_observe::{Counters, Counts, CpuSample, Layout, LinkCounters, Source, Wiring};
use serde_json::{Value, json};

fn counts(list: &[(&str, u64)]) -> Counts {
    list.iter().map(|(k, v)| (k.to_string(), *v)).collect()
}

/// Of a queue or a CPU.
fn typed<C: Counter, const N: usize>(list: &[(&str, u64)]) -> CounterValues<C, N> {
    list.iter().map(|(name, n)| (C::from_name(name).unwrap(), *n)).collect()
}

fn layout() -> Layout {
    let wiring = |node, irqs: [u32; 2]| Wiring {
        driver: Some("igb".into()),
        node: Some(NodeId(node)),
        speed_mbps: Some(1000),
        rx: (0..).zip(irqs.map(|i| Some(IrqId(i)))).collect(),
        tx: (0..).zip(irqs.map(|i| Some(IrqId(i)))).collect(),
        goes_to: BTreeMap::new(),
        threads: Some(BTreeMap::new()),
    };
    Layout {
        links: [("eth1".to_string(), wiring(0, [30, 31])), ("eth2".to_string(), wiring(1, [40, 41]))].into(),
        nodes: (0..4).map(|c| (CpuId(c), NodeId(c / 2))).collect(),
    }
}

/// Second `n` of a router: eth1 receives on queue 0 and a little on queue 1, eth2 sends it on.
fn sample(n: u64) -> Counters {
    let queue = |packets: u64, drops: u64| typed(&[("packets", packets), ("bytes", packets * 60), ("drops", drops)]);
    let link = |index, rx: u64, tx: u64, lost: u64, queues: [[u64; 2]; 2]| LinkCounters {
        ifindex: index,
        counts: counts(&[
            ("rx_packets", rx),
            ("rx_bytes", rx * 60),
            ("tx_packets", tx),
            ("tx_bytes", tx * 60),
            ("rx_missed_errors", lost),
            ("rx_dropped", 0),
            ("tx_dropped", 0),
            ("qdisc_drops", n / 2),
            ("carrier_changes", 2),
        ]),
        source: Source::Ethtool,
        rx: (0..).zip(queues[0].map(|q| queue(q, lost / 2))).collect(),
        tx: (0..).zip(queues[1].map(|q| queue(q, 0))).collect(),
    };
    let cpu = |c: u64| {
        let soft = if c == 0 { 95 * n } else { 0 };
        let ticks = [("idle", 100 * n - soft), ("softirq", soft)];
        let rest = ["user", "nice", "system", "iowait", "irq", "steal"].map(|k| (k, 0));
        let net = [
            ("softnet_processed", if c == 0 { 771_000 * n } else { 0 }),
            ("softnet_dropped", if c == 0 { 12 * n } else { 0 }),
            ("softnet_squeezed", c),
            ("softnet_rps", 0),
            ("softnet_flow_limit", if c == 2 { 3 * n } else { 0 }),
            ("softnet_backlog", 3 - c.min(3)),
            ("ksoftirqd_ns", if c == 0 { 400_000_000 * n } else { 0 }),
        ];
        CpuSample { counts: typed(&[&ticks[..], &rest[..], &net[..]].concat()), ..CpuSample::default() }
    };
    let took = |irq, cpu, count: u64| (IrqId(irq), BTreeMap::from([(CpuId(cpu), count)]));
    Counters {
        at_us: 100_000_000 + n * 1_000_000,
        unix_time: 1_795_183_320 + n,
        links: [
            (
                "eth1".to_string(),
                link(2, 771_000 * n, 1200 * n, 41_180 * n, [[700_000 * n, 71_000 * n], [1200 * n, 0]]),
            ),
            ("eth2".to_string(), link(3, 1300 * n, 770_000 * n, 0, [[1300 * n, 0], [385_000 * n, 385_000 * n]])),
        ]
        .into(),
        cpus: (0..4).map(|c| (CpuId(c), cpu(u64::from(c)))).collect(),
        irqs: [took(30, 0, 9120 * n), took(31, 0, 1000 * n), took(40, 2, 50 * n), took(41, 3, 40 * n)].into(),
        host: counts(&[("Udp:RcvbufErrors", 7 * n)]),
        ..Counters::default()
    }
}

/// A recording of these lines, in a file of its own.
fn recording(name: &str, entries: &[String]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ringwise-watch-{}-{name}", std::process::id()));
    let begin = "begin 1 1 edge3".to_string();
    let lines = std::iter::once(&begin).chain(entries).map(|l| format!("{l} .\n"));
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    path
}

fn run(path: &PathBuf, args: &[&str]) -> (Option<i32>, String, String) {
    let mut c = Command::new(env!("CARGO_BIN_EXE_ringwise"));
    let o = c.args(["watch", "--utc", "--replay"]).arg(path).args(args).output().unwrap();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (o.status.code(), text(&o.stdout), text(&o.stderr))
}

fn of(c: Counters) -> String {
    c.to_line()
}

#[test]
fn lines_page_and_json() {
    let path = recording("all", &[layout().to_line(), of(sample(1)), of(sample(2)), of(sample(3))]);
    for (name, args) in [
        ("watch-plain.txt", &["--plain"][..]),
        ("watch-queues.txt", &["--queues", "--count", "1"]),
        ("watch-once.txt", &["--once"]),
    ] {
        let (status, text, err) = run(&path, args);
        assert_eq!((status, err.as_str()), (Some(0), ""), "{name}");
        let wide: Vec<&str> = text.lines().filter(|l| l.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{name}: {wide:#?}");
        golden(name, &text);
    }
    let schema = std::fs::read(root().join("schemas/ringwise.watch.v1.json")).unwrap();
    let schema: Value = serde_json::from_slice(&schema).unwrap();
    let (_, text, _) = run(&path, &["-j"]);
    assert_eq!(text.lines().count(), 2);
    for line in text.lines() {
        let doc: Value = serde_json::from_str(line).unwrap();
        let wrong = check(&schema, &doc);
        assert!(wrong.is_empty(), "{wrong:#?}");
        let eth1 = &doc["links"]["eth1"];
        assert_eq!((&eth1["rx"]["packets"], &eth1["drops"]["nic"]), (&json!(771_000), &json!(41_180)));
        assert_eq!((&eth1["queues"][0]["mark"], &eth1["queues"][0]["cpu"]), (&json!("hot"), &json!(0)));
        assert_eq!(doc["socket_drops"], json!({"Udp:RcvbufErrors": 7}));
        let drops = |cpu: &str| {
            let counts = &doc["cpus"][cpu]["counts"];
            (counts["softnet_dropped"].clone(), counts["softnet_flow_limit"].clone())
        };
        assert_eq!(drops("0"), (json!(12), json!(0)));
        assert_eq!(drops("2"), (json!(0), json!(3)));
    }
    let (_, text, _) = run(&path, &["-j", "--seek", "1s"]);
    assert_eq!(text.lines().count(), 1);
    std::fs::remove_file(&path).unwrap();
}

/// Older kernels print fewer columns of softnet_stat: what they do not count is unknown, not 0.
#[test]
fn a_flow_limit_that_the_kernel_does_not_count_is_unknown() {
    let old = |n| {
        let mut c = sample(n);
        for cpu in c.cpus.values_mut() {
            cpu.counts = cpu.counts.iter().filter(|(counter, _)| *counter != CpuCounter::SoftnetFlowLimit).collect();
        }
        of(c)
    };
    let path = recording("older", &[layout().to_line(), old(1), old(2)]);
    let (_, page, _) = run(&path, &["--once"]);
    let row = |cpu: &str| -> Vec<String> {
        let rows = page.lines().skip_while(|l| !l.starts_with("CPU node"));
        let row = rows.map(|l| l.split_whitespace().map(str::to_string).collect::<Vec<_>>()).find(|r| r[0] == cpu);
        row.unwrap_or_else(|| panic!("{page}"))
    };
    let column = row("CPU").iter().position(|title| title == "flim").unwrap();
    assert_eq!((row("0")[column].as_str(), row("0")[column - 3].as_str()), ("-", "12"));
    assert!(!page.contains("flow limit"), "{page}");
    let (_, json, _) = run(&path, &["-j"]);
    let doc: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert!(doc["cpus"]["0"]["counts"].get("softnet_flow_limit").is_none(), "{doc}");
}

#[test]
fn marks_instead_of_numbers() {
    let mut reset = sample(2);
    let eth1 = reset.links.get_mut("eth1").unwrap();
    eth1.counts = counts(&[("rx_packets", 5), ("rx_bytes", 300), ("tx_packets", 0), ("tx_bytes", 0)]);
    eth1.rx = [(0, typed(&[("packets", 5)]))].into();
    let mut gone = sample(3);
    gone.links.remove("eth2");
    gone.cpus.remove(&CpuId(3));
    let path = recording("marks", &[layout().to_line(), of(sample(1)), of(reset), of(gone), of(sample(4))]);
    let (_, text, _) = run(&path, &["--plain"]);
    golden("watch-marks.txt", &text);
    let schema = std::fs::read(root().join("schemas/ringwise.watch.v1.json")).unwrap();
    let (_, text, _) = run(&path, &["-j"]);
    for line in text.lines() {
        let wrong = check(&serde_json::from_slice(&schema).unwrap(), &serde_json::from_str(line).unwrap());
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn two_recordings_in_one_file_are_not_compared() {
    let again = "begin 1 2 edge3".to_string();
    let path = recording("two", &[layout().to_line(), of(sample(1)), again, of(sample(9))]);
    let (status, text, err) = run(&path, &["-j"]);
    assert_eq!(status, Some(1));
    assert!(text.starts_with("{\"schema\":\"ringwise.error\"") && text.lines().count() == 1, "{text}");
    assert!(err.contains("no two consecutive samples"), "{err}");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(run(&path, &[]).0, Some(1), "no such file");
}

#[test]
fn flows_against_their_schema() {
    use ringwise_flow::UdpPortsGain;
    use ringwise_kfmt::packet::{Flow, frame_of};
    use ringwise_kfmt::traffic_class::TrafficClass;
    use ringwise_observe::{AvailableRemedies, FlowRules};
    use ringwise_tui::lines::{Shape, flows};
    let (from, to) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
    let mut i = flows::Interval { dev: "eth1".into(), seconds: 1.0, one_in: 1, ..flows::Interval::default() };
    i.means = Some(AvailableRemedies {
        dev: "eth1".into(),
        cpus: "0-3".parse().unwrap(),
        udp_fields: [("udp4", "sd".to_string())].into(),
        flow_rules: FlowRules::Off,
        ..AvailableRemedies::default()
    });
    i.udp_ports = Some(UdpPortsGain {
        flow_types: vec!["udp4"],
        udp_percent: 90.5,
        now_queue: 1,
        now_percent: 90.0,
        with_ports_queue: 0,
        with_ports_percent: 20.0,
    });
    for (queue, flow) in [
        (Some(0), Flow::Ip { protocol: 50, from, to, ports: None }),
        (Some(0), Flow::Ip { protocol: 6, from, to, ports: Some((1, 2)) }),
        (Some(0), Flow::Ip { protocol: 1, from, to, ports: None }),
        (None, Flow::Other(0x0806)),
    ] {
        i.flows.add(queue, &frame_of(&flow), 1, 60);
    }
    let schema: Value =
        serde_json::from_slice(&std::fs::read(root().join("schemas/ringwise.flows.v1.json")).unwrap()).unwrap();
    let style = ringwise_text::Style::plain(None);
    let doc: Value = serde_json::from_str(&flows::text(Shape::Json, &i, 5, &style)).unwrap();
    let wrong = check(&schema, &doc);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((doc["queues"].as_array().unwrap().len(), &doc["queues"][1]["looked_at"]), (2, &json!(3)));
    assert_eq!(doc["classes"][1]["remedies"][0]["remedy"], "flow_rules");
    let classes: Vec<&str> = TrafficClass::ALL.iter().map(|c| c.code()).collect();
    assert_eq!(schema["$defs"]["class"]["enum"], json!(classes));
}

#[test]
fn per_flow_listens_on_one_interface() {
    for (args, status, words) in [
        (&["watch", "--per-flow"][..], 2, "one interface"),
        (&["watch", "--per-flow", "no-such-dev"], 1, "there is no interface \"no-such-dev\""),
        (&["watch", "--top", "3"], 2, "--per-flow"),
    ] {
        let o = Command::new(env!("CARGO_BIN_EXE_ringwise")).args(args).output().unwrap();
        let err = String::from_utf8_lossy(&o.stderr);
        assert_eq!(o.status.code(), Some(status), "{err}");
        assert!(err.contains(words), "{err}");
    }
}

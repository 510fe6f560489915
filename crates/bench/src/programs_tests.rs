//! iperf3's reports are of 3.12 over loopback (without their intervals). netperf's output is written after its manual:
//! netperf itself was not available.

use super::*;
use crate::result::Unit;
use crate::side::{Pattern, Protocol};

fn group(protocol: Protocol, pattern: Pattern) -> LoadGroup {
    let to = vec!["127.0.0.1:5333".parse().unwrap()];
    LoadGroup { protocol, pattern, size_bytes: 1000, threads: 1, flows: 2, to, ..LoadGroup::default() }
}

#[test]
fn reports_of_iperf3() {
    let tcp = group(Protocol::Tcp, Pattern::Send);
    let r = iperf3::result(&tcp, include_str!("../fixtures/iperf3-3.12-tcp.json")).unwrap();
    assert_eq!((r.unit, r.latency.is_none(), r.lost_percent), (Unit::Bytes, true, None));
    assert!((r.bits_per_s - 14_451_918_292.36).abs() < 1.0, "{r:?}");
    assert!((r.sent_per_s * 8000.0 - 14_120_779_107.8).abs() < 1.0, "{r:?}");
    assert_eq!(r.trouble.as_deref(), Some("20 segments were retransmitted"));
    assert!(r.generator_cpu_percent.is_some_and(|c| (c - 20.98).abs() < 0.01) && r.busiest_thread_percent.is_none());
    let udp = group(Protocol::Udp, Pattern::Send);
    let r = iperf3::result(&udp, include_str!("../fixtures/iperf3-3.12-udp.json")).unwrap();
    assert_eq!((r.unit, r.lost_percent), (Unit::Packets, Some(0.0)));
    assert!((r.sent_per_s - 10_000.0 / 2.000_025).abs() < 1e-6 && r.sent_per_s == r.done_per_s, "{r:?}");
    let why = iperf3::result(&tcp, include_str!("../fixtures/iperf3-3.12-refused.json")).unwrap_err().to_string();
    assert_eq!(why, "iperf3: unable to connect to server: Connection refused");
    assert!(iperf3::result(&udp, "{\"end\":{}}").unwrap_err().to_string().contains("no end.sum"));
    assert!(iperf3::result(&udp, "iperf3: oops").unwrap_err().to_string().contains("cannot parse"));
}

const RR: &str = "THROUGHPUT=20000.00\nTHROUGHPUT_UNITS=Trans/s\nELAPSED_TIME=10.00\nMEAN_LATENCY=49.5\n\
STDDEV_LATENCY=3\nP50_LATENCY=48\nP90_LATENCY=53\nP99_LATENCY=61\nMAX_LATENCY=900\nLOCAL_CPU_UTIL=12.5\nREMOTE_CPU_UTIL=-1\n";

#[test]
fn selectors_of_netperf() {
    let a = netperf::parse(RR, Pattern::Rr).unwrap();
    assert_eq!((a.per_s, a.latency, a.cpu_percent), (20_000.0, Some([49.5, 3.0, 48.0, 53.0, 61.0, 900.0]), Some(12.5)));
    let slow = RR.replace("20000.00", "10000").replace("=49.5", "=99").replace("=48", "=90").replace("=900", "=700");
    let b = netperf::parse(&slow, Pattern::Rr).unwrap();
    let g = LoadGroup { threads: 2, ..group(Protocol::Tcp, Pattern::Rr) };
    let r = netperf::result(&g, &[a, b]);
    let l = r.latency.unwrap();
    // 200,000 of 49.5 and 100,000 of 99: mean 66, deviation sqrt(9 + (2 * 16.5^2 + 33^2) / 3).
    assert_eq!((r.done_per_s, r.bits_per_s, l.count), (30_000.0, 30_000.0 * 16_000.0, 300_000));
    assert!((l.mean_us - 66.0).abs() < 1e-9 && (l.deviation_us - 553.5_f64.sqrt()).abs() < 1e-9, "{l:?}");
    assert_eq!((l.max_us, l.p50_us.round()), (900.0, 62.0));
    assert!(r.trouble.unwrap().contains("2 netperf processes"));
    let bits = RR.replace("Trans/s", "10^6bits/s");
    assert_eq!(netperf::parse(&bits, Pattern::Send).unwrap().per_s, 2e10);
    for (text, words) in [
        (bits.as_str(), "10^6bits/s, not in Trans/s"),
        (&RR.replace("P99_", "P98_"), "no P99_LATENCY"),
        (&RR.replace("=61", "=-1"), "not measured"),
        (&RR.replace("=20000.00", "=fast"), "not a number"),
        ("establish control: are you sure there is a netserver", "no THROUGHPUT_UNITS"),
    ] {
        let why = netperf::parse(text, Pattern::Rr).unwrap_err().to_string();
        assert!(why.contains(words), "{why}");
    }
}

fn load(g: LoadGroup) -> LoadGroups {
    LoadGroups { groups: vec![g], time: Duration::from_secs(1), ..LoadGroups::default() }
}

#[test]
fn unsupported_options_are_reported() {
    let stop = AtomicBool::new(false);
    for (program, g, words) in [
        ("iperf3", group(Protocol::Tcp, Pattern::Rr), "only streams"),
        ("iperf3", LoadGroup { threads: 2, ..group(Protocol::Tcp, Pattern::Send) }, "one client at a time"),
        ("netperf", group(Protocol::Tcp, Pattern::Rr), "one flow per thread"),
        ("netperf", LoadGroup { per_s: Some(5.0), ..group(Protocol::Tcp, Pattern::Rr) }, "a fixed rate"),
        ("netperf", LoadGroup { flows: 1, ..group(Protocol::Udp, Pattern::Send) }, "UDP one way"),
        ("nc", group(Protocol::Tcp, Pattern::Rr), "not supported"),
    ] {
        let why = run(program, 5333, &load(g), &stop).unwrap_err().to_string();
        assert!(why.contains(words), "{why}");
    }
    let part = LoadGroups { time: Duration::from_millis(1500), ..load(group(Protocol::Tcp, Pattern::Send)) };
    assert!(run("iperf3", 5333, &part, &stop).unwrap_err().to_string().contains("whole seconds"));
    assert!(serve("iperf3", "0.0.0.0".parse().unwrap(), 5333).err().unwrap().to_string().contains("every address"));
}

#[test]
fn children_end_with_words_or_by_us() {
    let missing = Running::start("no-such-program", &[]).err().unwrap().to_string();
    assert!(missing.contains("not in PATH") && missing.contains("built-in"), "{missing}");
    let sh = |script: &str| ["-c".to_string(), script.to_string()].to_vec();
    let all =
        together("sh", &[sh("echo a; echo b >&2; exit 3"), sh("echo c")], SLACK, &AtomicBool::new(false)).unwrap();
    assert_eq!((all[0].good(), all[0].output.as_str(), all[0].errors.as_str()), (false, "a\n", "b"));
    assert_eq!((end(&all[0]).to_string(), all[1].good()), ("exit status: 3: b".into(), true));
    // The processes that it has started end with it.
    let why = together("sh", &[sh("sleep 1000 & sleep 1000")], SLACK, &AtomicBool::new(true)).unwrap_err();
    assert!(matches!(why, ProgramError::Stopped), "{why}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let why = serve("iperf3", "127.0.0.1".parse().unwrap(), port).err().unwrap().to_string();
    assert!(why.contains("EADDRINUSE"), "{why}");
}

/// If it is not installed, the message names the package.
#[test]
fn iperf3_itself() {
    let bind: IpAddr = "127.0.0.1".parse().unwrap();
    let port = std::net::TcpListener::bind((bind, 0)).unwrap().local_addr().unwrap().port();
    let server = match serve("iperf3", bind, port) {
        Ok(s) => s,
        Err(why) => {
            assert!(!ringwise_sys::load::in_path("iperf3") && why.to_string().contains("apt install iperf3"), "{why}");
            return;
        }
    };
    let g = LoadGroup { flows: 2, per_s: Some(1000.0), to: vec![server.at()], ..group(Protocol::Udp, Pattern::Send) };
    let r = run("iperf3", port, &load(g), &AtomicBool::new(false)).unwrap().remove(0);
    assert!(r.sent_per_s > 0.0 && r.lost_percent.is_some() && r.bits_per_s > 0.0, "{r:?}");
    server.stop().unwrap();
    assert!(!is_listening(port));
}

use super::*;

/// Linux 6.12, after 4.7 s of 5,000 packets/s.
const FAR0: &str = "\
Params: count 0  min_pkt_size: 60  max_pkt_size: 60
     frags: 0  delay: 200000  clone_skb: 0  ifname: far0
     flows: 0 flowlen: 0
     queue_map_min: 0  queue_map_max: 0
     dst_min: 198.18.0.0  dst_max: 198.18.1.0
     src_min: 10.0.0.0  src_max: 11.0.0.0
     src_mac: 52:54:00:00:00:04 dst_mac: 52:54:00:00:00:01
     udp_src_min: 1024  udp_src_max: 1024  udp_dst_min: 9  udp_dst_max: 9
     src_mac_count: 0  dst_mac_count: 0
     Flags: IPSRC_RND  IPDST_RND  SHARED  
Current:
     pkts-sofar: 23624  errors: 0
     started: 179733314us  stopped: 184460471us idle: 24542us
     seq_num: 23625  cur_dst_mac_offset: 0  cur_src_mac_offset: 0
     cur_saddr: 10.25.65.188  cur_daddr: 198.18.0.147
     cur_udp_dst: 9  cur_udp_src: 1024
     cur_queue_map: 0
     flows: 0
Result: OK: 4727157(c4702615+d24542) usec, 23624 (60byte,0frags)
  4997pps 2Mb/sec (2398560bps) errors: 0
";

/// The same kernel, of a thread with two devices.
const THREAD: &str = "Running: \nStopped: far1 far0 \nResult: OK: add_device=far1\n";

fn port() -> PktgenPort {
    let ip = |s: &str| s.parse::<IpAddr>().unwrap();
    PktgenPort {
        dev: "far0".into(),
        cpu: 7,
        to_mac: "52:54:00:00:00:01".into(),
        frame_bytes: 60,
        per_s: Some(5_000.0),
        sources: (ip("10.0.0.0"), ip("10.255.255.255")),
        random_sources: true,
        destinations: (ip("198.18.0.0"), ip("198.18.0.255")),
        random_destinations: true,
        copies: 1,
        source_ports: (1024, 1024),
    }
}

#[test]
fn a_run_is_read_from_its_file() {
    let p = progress(FAR0).unwrap();
    assert_eq!(p, Progress { sent: 23_624, errors: 0, at_us: 184_460_471, idle_us: 24_542 });
    let later = |seconds: u64, sent: u64, idle_us: u64| Progress {
        sent: p.sent + sent,
        at_us: p.at_us + seconds * 1_000_000,
        idle_us: p.idle_us + idle_us,
        ..p
    };
    // Two ports of one thread: the thread was busy when neither port waited.
    let ports = [port(), PktgenPort { dev: "far1".into(), per_s: None, ..port() }];
    let l = loads(&ports, &[p, p], &[later(2, 9_900, 100), later(2, 10_000, 999_900)]);
    assert_eq!((l[0].group.as_str(), l[1].group.as_str()), ("far0", "far1"));
    assert_eq!((l[0].sent_per_s, l[1].sent_per_s, l[0].lost_percent), (4_950.0, 5_000.0, None));
    assert_eq!((l[0].bits_per_s, l[0].counted), (4_950.0 * 512.0, BitRateLayer::Frame));
    assert_eq!((l[0].offered_per_s, l[1].offered_per_s), (Some(5_000.0), None));
    assert_eq!((l[0].busiest_thread_percent, l[1].busiest_thread_percent), (Some(50.0), Some(50.0)));
    // Ports of different threads have separate results; a single port has no name.
    let apart = [port(), PktgenPort { cpu: 6, ..ports[1].clone() }];
    let l = loads(&apart, &[p, p], &[later(2, 9_900, 100_000), later(2, 10_000, 1_000_000)]);
    assert_eq!((l[0].busiest_thread_percent, l[1].busiest_thread_percent), (Some(95.0), Some(50.0)));
    let refused = Progress { errors: 3, ..later(2, 9_900, 100) };
    let l = loads(&ports[..1], &[p], &[refused]);
    assert_eq!(l[0].trouble.as_deref(), Some("3 frames were refused by far0 or its queue"));
    let l = loads(&ports[..1], &[p], &[p]);
    assert_eq!(l[0].trouble, None);
    assert_eq!((l[0].group.as_str(), l[0].sent_per_s, l[0].busiest_thread_percent), ("", 0.0, None));
}

#[test]
fn an_invalid_run_is_refused_with_its_reason() {
    // Before its first run.
    let idle = FAR0.replace("179733314us", "0us").replace("184460471us", "0us");
    let idle = format!("{}Result: OK: clone_skb=4\n", idle.split("Result:").next().unwrap());
    assert_eq!(progress(&idle).unwrap_err().to_string(), "pktgen did not run: OK: clone_skb=4");
    assert_eq!(progress("").unwrap_err().to_string(), "pktgen did not run: no result");
    let unknown = "Result: Flag -:NONSENSE:- unknown\nAvailable flags, (prepend ! to un-set flag):\nIPV6, IPSRC_RND\n";
    assert!(result_of(unknown).unwrap().starts_with("Flag -:NONSENSE:- unknown Available flags"));
    assert!(result_of(FAR0).unwrap().ends_with("4997pps 2Mb/sec (2398560bps) errors: 0"));
}

#[test]
fn devices_of_a_thread() {
    assert_eq!(devices(THREAD), (vec![], vec!["far1".to_string(), "far0".to_string()]));
    assert_eq!(devices("Running: eth5 \nStopped: \nResult: NA\n"), (vec!["eth5".to_string()], vec![]));
}

#[test]
fn random_ranges_reach_their_last_address() {
    let w = words(&port(), 7).unwrap();
    for word in ["count 7", "pkt_size 60", "dst_mac 52:54:00:00:00:01", "src_min 10.0.0.0", "src_max 11.0.0.0"] {
        assert!(w.iter().any(|x| x == word), "{word}: {w:?}");
    }
    for word in ["dst_max 198.18.1.0", "flag IPSRC_RND", "flag IPDST_RND", "ratep 5000", "udp_src_max 1024"] {
        assert!(w.iter().any(|x| x == word), "{word}: {w:?}");
    }
    // The rate is kept, because `delay` is written before it.
    let at = |word: &str| w.iter().position(|x| x == word);
    assert!(at("delay 0") < at("ratep 5000"));
    assert!(w.iter().all(|x| !x.starts_with("clone_skb")));
}

#[test]
fn addresses_in_turn_reach_their_last_one_as_they_are() {
    let ip = |s: &str| s.parse::<IpAddr>().unwrap();
    let p = PktgenPort {
        sources: (ip("10.0.0.1"), ip("10.0.0.6")),
        random_sources: false,
        random_destinations: false,
        copies: 4,
        per_s: None,
        source_ports: (1024, 1033),
        ..port()
    };
    let w = words(&p, 7).unwrap();
    for word in ["src_max 10.0.0.6", "dst_max 198.18.0.255", "clone_skb 4", "udp_src_max 1034"] {
        assert!(w.iter().any(|x| x == word), "{word}: {w:?}");
    }
    assert!(w.iter().all(|x| !x.starts_with("flag") && !x.starts_with("ratep")), "{w:?}");
}

#[test]
fn a_run_that_is_not_stopped_still_ends() {
    assert_eq!(bound(&port(), Duration::from_secs(2), None), 20_000);
    let free = PktgenPort { per_s: None, ..port() };
    assert_eq!(bound(&free, Duration::from_secs(1), Some(1_000)), 4_464_286);
    // More than the wire carries is not sent either.
    let more = PktgenPort { per_s: Some(1e9), ..port() };
    assert_eq!(bound(&more, Duration::from_secs(1), Some(1_000)), 4_464_286);
    assert!(bound(&free, Duration::from_secs(1), None) < u64::from(u32::MAX));
}

#[test]
fn bad_requests_are_refused_before_anything_is_touched() {
    let of = |ports, time| Pktgen { ports, time, ..Pktgen::default() };
    let told = |p: PktgenPort| check(&of(vec![p], Duration::from_secs(1))).unwrap_err().to_string();
    let ip = |s: &str| s.parse::<IpAddr>().unwrap();
    for mac in
        ["", "01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "52:54:00:00:00", "52:54:00:00:00:+1"]
    {
        let e = told(PktgenPort { to_mac: mac.into(), ..port() });
        assert!(e.contains("is not a unicast MAC address"), "{mac}: {e}");
    }
    assert!(told(PktgenPort { frame_bytes: 59, ..port() }).contains("expected 60 to"));
    assert!(told(PktgenPort { dev: "../x".into(), ..port() }).contains("not the name of an interface"));
    assert!(told(PktgenPort { dev: "a b".into(), ..port() }).contains("not the name of an interface"));
    assert!(told(PktgenPort { per_s: Some(0.0), ..port() }).contains("packets/s"));
    assert!(told(PktgenPort { per_s: Some(f64::NAN), ..port() }).contains("packets/s"));
    assert!(told(PktgenPort { copies: 0, ..port() }).contains("each frame sent 0 times"));
    assert!(told(PktgenPort { sources: (ip("10.0.0.2"), ip("10.0.0.1")), ..port() }).contains("is above the last"));
    assert!(told(PktgenPort { sources: (ip("::1"), ip("::2")), ..port() }).contains("expected IPv4"));
    assert!(
        told(PktgenPort { destinations: (ip("224.0.0.1"), ip("224.0.0.9")), ..port() }).contains("expected unicast")
    );
    assert!(told(PktgenPort { source_ports: (5, 4), ..port() }).contains("is above the last"));
    let of = |ports, time| check(&of(ports, time)).map_err(|e| e.to_string());
    assert!(of(vec![], Duration::from_secs(1)).unwrap_err().contains("no port"));
    assert!(of(vec![port()], Duration::ZERO).unwrap_err().contains("warm-up"));
    assert!(of(vec![port()], Duration::from_secs(4_000)).unwrap_err().contains("warm-up"));
    assert!(of(vec![port(), port()], Duration::from_secs(1)).unwrap_err().contains("twice"));
    of(vec![port()], Duration::from_secs(1)).unwrap();
}

#[test]
fn it_ends_when_nothing_more_arrives() {
    let looks = std::cell::Cell::new(0);
    let ends = |packets: &dyn Fn(u64) -> u64| {
        looks.set(0);
        let count = |devs: &[String]| -> Result<Vec<DevCount>, HostError> {
            looks.set(looks.get() + 1);
            let rx_packets = packets(looks.get());
            Ok(devs.iter().map(|d| DevCount { dev: d.clone(), rx_packets, ..DevCount::default() }).collect())
        };
        let last = quiet(&["far2".into()], &count).unwrap();
        (last[0].rx_packets, looks.get())
    };
    // A slow router empties its rings.
    assert_eq!(ends(&|look| look.min(6) * 50), (300, 7));
    // A packet of other traffic now and then.
    assert_eq!(ends(&|look| 100 + look), (102, 2));
    let gone = HostError::NoAnswer { dev: "far2".into() };
    assert_eq!(quiet(&[], &|_| Err(gone.clone())), Err(gone.clone()));
}

/// Ordinary files instead of pktgen's: checks what is written there, and that a leftover device is found.
#[test]
fn runs_of_other_programs_are_not_touched() {
    let dir = std::env::temp_dir().join(format!("ringwise-pktgen-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let at = Files { dir: dir.clone() };
    fs::write(dir.join("pgctrl"), "").unwrap();
    fs::write(dir.join("kpktgend_0"), "Running: eth5 \nStopped: \nResult: OK: add_device=eth5\n").unwrap();
    at.clear().unwrap();
    fs::write(dir.join("eth5"), FAR0).unwrap();
    let e = at.clear().unwrap_err().to_string();
    assert!(e.starts_with("pktgen already sends from eth5 (kpktgend_0)"), "{e}");
    let none = Pktgen { ports: vec![PktgenPort { cpu: 3, ..port() }], ..Pktgen::default() };
    let e = at.send(&none, &AtomicBool::new(false), &|_| Ok(Vec::new())).unwrap_err().to_string();
    assert!(e.starts_with("pktgen has no thread for CPU 3") && e.ends_with("existing threads: kpktgend_0"), "{e}");
    fs::remove_dir_all(&dir).unwrap();
    assert!(at.ready().unwrap_err().to_string().contains("modprobe pktgen"));
}

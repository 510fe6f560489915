use super::*;

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b} within {tolerance}");
}

/// The table has frames with FCS, the code without.
#[test]
fn line_rates_are_those_of_the_table() {
    let table: [(u64, [f64; 6], f64); 7] = [
        (1, [1.488, 0.845, 0.453, 0.235, 0.120, 0.081], 672.0),
        (10, [14.881, 8.446, 4.529, 2.350, 1.197, 0.813], 67.2),
        (25, [37.202, 21.115, 11.322, 5.874, 2.993, 2.032], 26.9),
        (40, [59.524, 33.784, 18.116, 9.398, 4.789, 3.251], 16.8),
        (100, [148.810, 84.459, 45.290, 23.496, 11.973, 8.127], 6.72),
        (200, [297.619, 168.919, 90.580, 46.992, 23.946, 16.255], 3.36),
        (400, [595.238, 337.838, 181.159, 93.985, 47.893, 32.510], 1.68),
    ];
    for (gbit, row, ns) in table {
        for (with_fcs, mpps) in [64, 128, 256, 512, 1024, 1518].into_iter().zip(row) {
            close(line_rate_per_s(gbit * 1000, with_fcs - FCS_BYTES) / 1e6, mpps, 0.0005);
        }
        close(budget_ns(gbit * 1000, 60).unwrap(), ns, 0.05);
    }
    assert_eq!(budget_ns(0, 60), None);
}

/// What Greenhost measured at one gigabit is the wire's own rate, within two parts in a thousand, if its sizes are
/// those of frames without FCS; and the two smallest are one frame.
#[test]
fn greenhosts_rates_are_those_of_the_wire() {
    // Mbit/s as they are printed; the last two are packets alone.
    let measured = [976e6 / 8000.0, 955.2e6 / 4000.0, 913.6e6 / 2000.0, 808e6 / 800.0, 1.49e6, 1.49e6];
    for (size, theirs) in GREENHOST_SIZES.into_iter().zip(measured) {
        let line = line_rate_per_s(1000, size);
        close(theirs / line, 1.0, 0.0025);
    }
    assert_eq!(wire_bytes(50), wire_bytes(20));
    close(line_rate_per_s(1000, 20), 1_488_095.2, 0.1);
    // As payload of UDP the sizes would not be padded, and a gigabit could not carry 1.49 Mpps of 50 bytes.
    assert_eq!((frame_of_payload(20), frame_of_payload(50), frame_of_payload(0)), (62, 92, 60));
    assert!(line_rate_per_s(1000, frame_of_payload(50)) < 1.1e6);
    // 50 B x 1.49 Mpps is not the 690 Mbit/s that were printed.
    close(50.0 * 8.0 * 1.49, 596.0, 0.01);
}

fn ports() -> Vec<PacketSource> {
    let from = |n: u32| PacketSource { dev: format!("far{n}"), cpu: 7, to_mac: format!("52:54:00:00:00:0{}", n + 1) };
    vec![from(0), from(1)]
}

#[test]
fn greenhost_is_two_ports_with_random_networks() {
    let p = greenhost(&ports(), 20, Some(16_000.0), Duration::from_secs(2), Addresses::default());
    crate::pktgen::check(&p).unwrap();
    assert_eq!(p.ports.len(), 2);
    let port = &p.ports[1];
    assert_eq!((port.frame_bytes, port.per_s, port.copies), (60, Some(8_000.0), 1));
    let ip = |s: &str| s.parse::<IpAddr>().unwrap();
    assert_eq!(port.sources, (ip("10.0.0.0"), ip("10.255.255.255")));
    assert_eq!(port.destinations, (ip("198.18.0.0"), ip("198.18.0.255")));
    assert!(port.random_sources && port.random_destinations);
}

#[test]
fn redhat_steps_through_sources_that_its_rules_know() {
    let at = Addresses::default();
    let p = redhat(&ports(), 60, 6, None, Duration::from_secs(2), at);
    crate::pktgen::check(&p).unwrap();
    let port = &p.ports[0];
    let ip = |s: &str| s.parse::<IpAddr>().unwrap();
    assert_eq!(port.sources, (ip("10.0.0.1"), ip("10.0.0.6")));
    assert_eq!(port.destinations, (ip("198.18.0.1"), ip("198.18.0.1")));
    assert_eq!((port.copies, port.random_sources, port.per_s), (4, false, None));
    let rules = redhat_rules(6, 4, at);
    assert_eq!(rules[0], "flow-type udp4 src-ip 10.0.0.1 action 0");
    assert_eq!(rules[5], "flow-type udp4 src-ip 10.0.0.6 action 1");
}

#[test]
fn two_addresses_differ_in_source_ports_only() {
    let at = Addresses::default();
    let p = two_addresses(&ports(), 60, 512, Some(5_000.0), Duration::from_secs(2), at);
    crate::pktgen::check(&p).unwrap();
    let port = &p.ports[0];
    let ip = |s: &str| s.parse::<IpAddr>().unwrap();
    assert_eq!(port.sources, (ip("10.0.0.1"), ip("10.0.0.1")));
    assert_eq!(port.destinations, (ip("198.18.0.1"), ip("198.18.0.1")));
    assert_eq!((port.source_ports, port.copies), ((1024, 1535), 1));
    // More flows than there are source ports.
    let all = two_addresses(&ports(), 60, 100_000, None, Duration::from_secs(2), at);
    assert_eq!(all.ports[0].source_ports, (1024, u16::MAX));
    // One queue would get all of it, so interrupts of the others are moved with other sources.
    let thin = settle(&p, 1_000.0);
    assert_eq!((thin.ports[0].sources, thin.ports[0].random_sources), ((ip("10.0.0.0"), ip("10.255.255.255")), true));
}

#[test]
fn to_settle_is_thin_and_as_wide() {
    let load = redhat(&ports(), 500, 6, Some(100_000.0), Duration::from_secs(30), Addresses::default());
    let p = settle(&load, 1_000.0);
    assert_eq!((p.time, p.ports[0].per_s, p.ports[0].copies), (Duration::from_millis(500), Some(1_000.0), 1));
    assert_eq!(p.ports[0].sources, load.ports[0].sources);
    let slow = settle(&greenhost(&ports(), 60, Some(40.0), Duration::from_secs(2), Addresses::default()), 1_000.0);
    assert_eq!(slow.ports[0].per_s, Some(20.0));
}

fn span(dev: &str, rx: u64, tx: u64) -> PortCounters {
    let c = |rx, tx, at_ns| DevCount { dev: dev.into(), at_ns, rx_packets: rx, tx_packets: tx, ..DevCount::default() };
    PortCounters { before: c(1_000, 2_000, 5_000_000_000), after: c(1_000 + rx, 2_000 + tx, 7_000_000_000) }
}

fn lossy() -> ForwardedPackets {
    flow(
        &[span("far0", 0, 16_000), span("far1", 0, 16_000)],
        &[span("eth0", 9_000, 0), span("eth1", 10_000, 0)],
        &[span("eth2", 3, 18_500)],
        Some(&[span("far2", 18_400, 0)]),
    )
}

#[test]
fn each_place_has_its_loss_and_they_add_up() {
    let f = lossy();
    assert_eq!((f.sent, f.received, f.forwarded, f.arrived), (32_000, 19_000, 18_500, Some(18_400)));
    let lost: Vec<(&str, u64)> = f.lost.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    assert_eq!(
        lost,
        [("eth0 wire or ring", 7_000), ("eth1 wire or ring", 6_000), ("far2 wire or ring", 100), ("router", 500)]
    );
    assert_eq!(f.lost.values().sum::<u64>(), f.sent - f.arrived.unwrap());
    close(f.lost_percent().unwrap(), 42.5, 1e-9);
    assert!(f.doubts.is_empty());
    // Without counters of the sink, the packets that left the router count as arrived.
    let open = flow(&[span("far0", 0, 100)], &[span("eth0", 100, 0), span("eth1", 0, 0)], &[span("eth2", 0, 90)], None);
    close(open.lost_percent().unwrap(), 10.0, 1e-9);
    assert_eq!(open.lost.get("router"), Some(&10));
    assert_eq!(flow(&[], &[], &[], None).lost_percent(), None);
}

#[test]
fn more_than_was_sent_is_a_doubt_and_no_negative_loss() {
    let f = flow(&[span("far0", 0, 100)], &[span("eth0", 103, 0)], &[span("eth2", 0, 103)], None);
    assert!(f.lost.is_empty());
    assert_eq!(f.doubts, ["eth0 wire or ring: 3 packets more than were sent to it: other traffic"]);
    assert_eq!(f.lost_percent(), Some(0.0));
    let mut dropping = span("eth0", 90, 0);
    dropping.after.rx_dropped = 4;
    let f = flow(&[span("far0", 0, 100)], &[dropping], &[span("eth2", 0, 90)], None);
    assert_eq!(f.doubts, ["eth0: 4 of the lost packets are in its own rx_dropped"]);
}

#[test]
fn counters_are_paired_by_name_and_may_not_run_backwards() {
    let s = span("eth0", 5, 6);
    let devs = ["eth0".to_string()];
    assert_eq!(
        spans(&devs, std::slice::from_ref(&s.before), std::slice::from_ref(&s.after)).unwrap(),
        std::slice::from_ref(&s)
    );
    let e = spans(&devs, std::slice::from_ref(&s.after), std::slice::from_ref(&s.before)).unwrap_err().to_string();
    assert!(e.starts_with("eth0: its counters went backwards"), "{e}");
    assert_eq!(spans(&devs, &[], &[]).unwrap_err().to_string(), "eth0: no counters before the trial");
}

fn out(speed: Option<u64>) -> Vec<Port> {
    vec![Port { name: "eth2".into(), driver: "igb".into(), speed_mbit_per_s: speed }]
}

fn load(offered: Option<f64>) -> LoadResult {
    LoadResult { offered_per_s: offered, threads: 1, ..LoadResult::default() }
}

#[test]
fn rates_are_of_the_time_of_sending() {
    let f = lossy();
    let bad = LoadResult { trouble: Some("3 frames were refused".into()), ..load(Some(8_000.0)) };
    let each = [load(Some(8_000.0)), bad];
    let l = f.load(&each, 60, 2.0);
    assert_eq!(l.trouble.as_deref(), Some("3 frames were refused"));
    assert_eq!((l.offered_per_s, l.sent_per_s, l.done_per_s), (Some(16_000.0), 16_000.0, 9_200.0));
    close(l.bits_per_s, 9_200.0 * 512.0, 1e-6);
    let mut side = HostSide::default();
    f.host(&mut side, &out(Some(1_000)), 60, 2.0);
    assert_eq!((side.received_per_s, side.transmitted_per_s), (Some(9_500.0), Some(9_250.0)));
    close(side.line_rate_percent.unwrap(), 100.0 * 9_250.0 / 1_488_095.2, 1e-4);
    close(side.budget_ns_per_packet.unwrap(), 672.0, 1e-9);
    let mut side = HostSide::default();
    f.host(&mut side, &out(None), 60, 2.0);
    assert_eq!(side.line_rate_percent, None);
    assert!(side.unknown.contains_key("line rate"));
}

#[test]
fn the_limit_is_named() {
    let cpus = |busy: &[f64]| -> Vec<CpuUse> {
        let one = |(i, b): (usize, &f64)| CpuUse { cpu: i as u32, busy_percent: *b, ..CpuUse::default() };
        busy.iter().enumerate().map(one).collect()
    };
    let side =
        |line: f64, busy: &[f64]| HostSide { line_rate_percent: Some(line), cpus: cpus(busy), ..HostSide::default() };
    let l = |offered, sent, lost| LoadResult {
        offered_per_s: offered,
        sent_per_s: sent,
        done_per_s: sent * (1.0 - lost / 100.0),
        lost_percent: Some(lost),
        ..load(None)
    };
    let o = out(Some(1_000));
    assert_eq!(limit(&l(Some(2e6), 1.6e6, 8.0), &side(100.1, &[100.0]), &o, &[]), Limit::Link("eth2".into()));
    assert_eq!(
        limit(&l(Some(2e6), 1.5e6, 0.0), &side(50.0, &[100.0]), &o, &[]),
        Limit::Generator("sent 1500000 of 2000000 packets/s".into())
    );
    assert_eq!(limit(&l(Some(1e4), 1e4, 0.0), &side(1.0, &[100.0]), &o, &[]), Limit::Offered);
    let late = LoadResult { done_per_s: 6e3, ..l(Some(1e4), 1e4, 0.0) };
    assert_eq!(limit(&late, &side(1.0, &[100.0, 5.0]), &o, &[]), Limit::Cpu(vec![0]), "the rest is in queues");
    assert!(matches!(limit(&l(None, 1e4, 0.0), &side(1.0, &[100.0]), &o, &[]), Limit::Generator(_)));
    assert_eq!(limit(&l(Some(1e4), 1e4, 20.0), &side(1.0, &[100.0, 5.0, 98.0]), &o, &[]), Limit::Cpu(vec![0, 2]));
    let sender = CpuUse { cpu: 2, ..CpuUse::default() };
    let both = side(1.0, &[10.0, 5.0, 98.0]);
    assert_eq!(limit(&l(Some(1e4), 1e4, 20.0), &both, &o, &[sender]), Limit::Unknown);
}

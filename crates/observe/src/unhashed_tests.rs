//! Classes by queue, and what helps on interfaces with different means.

use super::*;
use ringwise_kfmt::packet::{Flow, frame_of};

fn frame(protocol: u8, to_port: Option<u16>) -> Vec<u8> {
    let (from, to) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
    frame_of(&Flow::Ip { protocol, from, to, ports: to_port.map(|p| (40_000, p)) })
}

/// A PPPoE session with IPv4 inside.
fn pppoe() -> Vec<u8> {
    let mut f = frame_of(&Flow::Other(0x8864));
    f.extend([0x11, 0, 0, 7, 0, 86, 0, 0x21, 0x45]);
    f
}

fn add(f: &mut Flows, queue: Option<u32>, frame: &[u8], n: u64) {
    for _ in 0..n {
        f.add(queue, frame, 1, 100);
    }
}

#[test]
fn classes_are_counted_by_queue() {
    let mut f = Flows::default();
    assert_eq!(f.limited_percent(), None);
    add(&mut f, Some(0), &pppoe(), 30);
    add(&mut f, Some(0), &frame(17, Some(53)), 10);
    add(&mut f, Some(1), &frame(50, None), 4);
    add(&mut f, Some(3), &frame(50, None), 6);
    add(&mut f, None, &frame(17, Some(4789)), 50);
    let total = |class, packets, busiest, on_busiest| ClassTotal {
        class,
        count: ClassCount { packets, bytes: packets * 100 },
        busiest,
        on_busiest,
    };
    assert_eq!(
        f.classes(),
        [
            total(TrafficClass::Ports, 10, Some(0), 10),
            total(TrafficClass::Vxlan, 50, None, 50),
            total(TrafficClass::Esp, 10, Some(3), 6),
            total(TrafficClass::PppoeIpv4, 30, Some(0), 30),
        ]
    );
    assert_eq!(f.queues[&Some(0)].classes[&TrafficClass::PppoeIpv4], ClassCount { packets: 30, bytes: 3000 });
    // VXLAN is spread by its source port.
    assert_eq!(f.limited_percent(), Some(40.0));
    assert!(f.is_much_limited());
    // Broken frames may be of any class.
    add(&mut f, Some(0), &[1], 100);
    assert_eq!(f.limited_percent(), Some(20.0));
    let mut idle = Flows::default();
    add(&mut idle, Some(0), &frame_of(&Flow::Other(0x0806)), 19);
    assert!(!idle.is_much_limited());
    add(&mut idle, Some(0), &frame_of(&Flow::Other(0x0806)), 1);
    assert!(idle.is_much_limited());
}

/// A tag that packet sockets still see is the second one.
#[test]
fn frames_are_as_packet_sockets_see_them() {
    let mut f = Flows::default();
    let plain = frame(17, Some(53));
    let inner = [&plain[..12], &[0x81, 0, 0, 7], &plain[12..]].concat();
    add(&mut f, Some(0), &inner, 1);
    assert_eq!(f.classes()[0].class, TrafficClass::QinQ);
}

fn means() -> AvailableRemedies {
    let tunnel = |dev: &str, kind, rps, threaded| Tunnel { dev: dev.into(), kind, rps, threaded };
    AvailableRemedies {
        dev: "eth1".into(),
        driver: None,
        cpus: CpuSet::range(0, 3),
        interrupt_cores: [(0, CpuSet::range(0, 1)), (2, CpuSet::range(0, 3))].into(),
        rps: [(0, CpuSet::default()), (1, CpuSet::range(2, 3))].into(),
        udp_fields: [("udp4", "sd".to_string()), ("udp6", "sdfn".to_string())].into(),
        flow_rules: FlowRules::Off,
        symmetric: None,
        tunnels: vec![
            tunnel("ppp0", TunnelKind::Ppp, Some(false), Some(false)),
            tunnel("wg0", TunnelKind::Wireguard, None, Some(false)),
        ],
    }
}

#[test]
fn remedies_fit_the_class_and_the_interface() {
    let m = means();
    let others = CpuSet::range(2, 3);
    assert_eq!(
        remedies(TrafficClass::PppoeIpv4, Some(0), &m),
        [
            Remedy::Rps { queue: 0, cpus: others.clone(), in_effect: false },
            Remedy::RpsAbove { dev: "ppp0".into(), cpus: others, in_effect: false },
        ]
    );
    // One core alone, or an interrupt that is delivered to an unknown CPU.
    for queue in [2, 3] {
        let m = AvailableRemedies { rps: [(queue, CpuSet::default())].into(), ..m.clone() };
        let rps = Remedy::Rps { queue, cpus: CpuSet::range(0, 3), in_effect: false };
        assert_eq!(remedies(TrafficClass::QinQ, Some(queue), &m), [rps]);
    }
    assert_eq!(
        remedies(TrafficClass::QinQ, Some(1), &m),
        [Remedy::Rps { queue: 1, cpus: CpuSet::range(2, 3), in_effect: true }]
    );
    assert_eq!(remedies(TrafficClass::QinQ, None, &m), [], "RPS needs a queue");
    assert_eq!(remedies(TrafficClass::Esp, Some(0), &m), [Remedy::FlowRules { by: RuleKey::Spi, in_effect: false }]);
    assert_eq!(
        remedies(TrafficClass::Wireguard, Some(0), &m),
        [
            Remedy::ThreadedNapi { dev: "wg0".into(), in_effect: false },
            Remedy::HashUdpPorts { flow_types: vec!["udp4"] },
            Remedy::FlowRules { by: RuleKey::PeerPort, in_effect: false },
        ]
    );
    assert_eq!(remedies(TrafficClass::Vxlan, Some(0), &m), [Remedy::HashUdpPorts { flow_types: vec!["udp4"] }]);
    for class in [TrafficClass::Fragment, TrafficClass::Mpls, TrafficClass::Arp, TrafficClass::Ports] {
        assert_eq!(remedies(class, Some(0), &m), [], "{class:?}");
    }
    let none = AvailableRemedies { flow_rules: FlowRules::Unsupported, udp_fields: BTreeMap::new(), ..m };
    assert_eq!(remedies(TrafficClass::Esp, Some(0), &none), []);
    assert_eq!(remedies(TrafficClass::Gtp, Some(0), &none), []);
    // Nothing is proposed on the basis of what was not read.
    for class in TrafficClass::ALL {
        assert_eq!(remedies(class, Some(0), &AvailableRemedies::default()), [], "{class:?}");
    }
}

#[test]
fn kinds_of_software_interfaces() {
    assert_eq!(TunnelKind::of(Some("ppp"), Some(512)), Some(TunnelKind::Ppp));
    assert_eq!(TunnelKind::of(Some("wireguard"), Some(65534)), Some(TunnelKind::Wireguard));
    assert_eq!(TunnelKind::of(None, Some(778)), Some(TunnelKind::Gre));
    assert_eq!(TunnelKind::of(None, Some(776)), Some(TunnelKind::IpInIp));
    assert_eq!(TunnelKind::of(Some("vlan"), Some(1)), None);
    assert_eq!(TunnelKind::of(None, None), None);
}

#[test]
fn means_of_an_interface() {
    use ringwise_testkit::machines::{self, NicSpec};
    use ringwise_testkit::topo::CpuSpec;
    let nics = vec![NicSpec::new("eth0", "igb", Some(0), 4, 8)];
    let mut s = machines::host("h", CpuSpec::flat(8, 1), nics).snapshot();
    s.topology.isolated = Fact::Known(CpuSet::range(6, 7));
    let feature =
        |on, fixed| Fact::Known([(NTUPLE.to_string(), ringwise_model::Feature { on, wanted: on, fixed })].into());
    let of = |s: &Snapshot| AvailableRemedies::of(s, &s.nics[0], Vec::new());
    s.nics[0].local_cpus = Fact::Known(CpuSet::range(4, 11));
    for (features, expected) in [
        (feature(true, false), FlowRules::On),
        (feature(false, false), FlowRules::Off),
        (feature(false, true), FlowRules::Unsupported),
        (Fact::Known(BTreeMap::new()), FlowRules::Unsupported),
        (Fact::Absent, FlowRules::Unsupported),
        (Fact::not_requested("features"), FlowRules::Unknown),
    ] {
        s.nics[0].features = features;
        assert_eq!(of(&s).flow_rules, expected);
    }
    s.nics[0].rx_queues[0].rps_cpus = Fact::Known(CpuSet::range(1, 2));
    let m = of(&s);
    assert_eq!((m.dev.as_str(), m.cpus, &m.rps[&0]), ("eth0", CpuSet::range(4, 5), &CpuSet::range(1, 2)));
    s.nics[0].local_cpus = Fact::Absent;
    assert_eq!(of(&s).cpus, CpuSet::range(0, 5));
}

//! The block at 80 columns, and its numbers in JSON.

use std::collections::BTreeMap;

use super::*;
use crate::lines::Shape;
use crate::lines::flows;
use ringwise_kfmt::packet::{Flow, frame_of};
use ringwise_model::CpuSet;
use ringwise_observe::{Tunnel, TunnelKind};
use ringwise_text::Style;

fn udp(port: u16) -> Vec<u8> {
    let (from, to) = ("10.9.0.1".parse().unwrap(), "10.1.1.1".parse().unwrap());
    frame_of(&Flow::Ip { protocol: 17, from, to, ports: Some((1024, port)) })
}

fn of_protocol(protocol: u8) -> Vec<u8> {
    let (from, to) = ("10.9.0.1".parse().unwrap(), "10.1.1.1".parse().unwrap());
    frame_of(&Flow::Ip { protocol, from, to, ports: None })
}

fn pppoe() -> Vec<u8> {
    [&frame_of(&Flow::Other(0x8864))[..], &[0x11, 0, 0, 7, 0, 86, 0, 0x21, 0x45]].concat()
}

fn tunnel(dev: &str, kind: TunnelKind, rps: bool, threaded: bool) -> Tunnel {
    Tunnel { dev: dev.into(), kind, rps: Some(rps), threaded: Some(threaded) }
}

/// 1000 packets.
fn interval() -> Interval {
    let mut i = Interval { dev: "eth1".into(), seconds: 1.0, one_in: 1, ..Interval::default() };
    // A tag that packet sockets still see is the second one.
    let tagged = [&udp(53)[..12], &[0x81, 0, 0, 7], &udp(53)[12..]].concat();
    for (queue, frame, n) in [
        (Some(0), pppoe(), 310),
        (Some(1), tagged, 90),
        (Some(2), of_protocol(50), 76),
        (Some(5), of_protocol(50), 44),
        (Some(3), udp(51820), 100),
        (Some(3), udp(4789), 50),
        (Some(4), frame_of(&Flow::Other(0x8847)), 20),
        (Some(4), frame_of(&Flow::Other(0x0806)), 2),
        (Some(6), udp(53), 308),
    ] {
        for _ in 0..n {
            i.flows.add(queue, &frame, 1, 100);
        }
    }
    i.means = Some(AvailableRemedies {
        dev: "eth1".into(),
        driver: Some("ice".into()),
        cpus: CpuSet::range(0, 3),
        interrupt_cores: (0..4).map(|q| (q, CpuSet::range(q, q))).collect(),
        rps: [(0, CpuSet::default()), (1, CpuSet::range(2, 3))].into(),
        udp_fields: [("udp4", "sd".to_string()), ("udp6", "sd".to_string())].into(),
        flow_rules: FlowRules::Off,
        symmetric: Some("none".into()),
        tunnels: vec![tunnel("ppp0", TunnelKind::Ppp, false, false), tunnel("wg0", TunnelKind::Wireguard, false, true)],
    });
    i.udp_ports = Some(UdpPortsGain {
        flow_types: vec!["udp4"],
        udp_percent: 45.8,
        now_queue: 6,
        now_percent: 45.8,
        with_ports_queue: 0,
        with_ports_percent: 31.0,
    });
    i
}

const BLOCK: &str = "\
# not spread by flow: 64.2 % of the sample (ringwise help unhashed)
#  share  traffic                     most devices hash  mostly on queue
#   5.0%  VXLAN                       ports per flow     3 (100.0%)
#         hash the ports of UDP:
#           ringwise plan --goal GOAL --set eth1.rss.fields.udp4=sdfn --set eth1.rss.fields.udp6=sdfn
#  10.0%  WireGuard (port 51820)      ports per peer     3 (100.0%)
#         threaded NAPI of wg0 is on
#         RPS on wg0: echo f >/sys/class/net/wg0/queues/rx-0/rps_cpus
#         hash the ports of UDP:
#           ringwise plan --goal GOAL --set eth1.rss.fields.udp4=sdfn --set eth1.rss.fields.udp6=sdfn
#         flow rules by peer's address, port, if the driver accepts them:
#           ethtool -N eth1 flow-type udp4 src-ip PEER src-port PORT action Q
#         they need the feature ntuple:
#           ringwise plan --goal GOAL --set eth1.features.ntuple=true
#  12.0%  ESP                         addresses          2 (63.3%)
#         flow rules by SPI, if the driver accepts them:
#           ethtool -N eth1 flow-type esp4 spi SPI action Q
#         they need the feature ntuple:
#           ringwise plan --goal GOAL --set eth1.features.ntuple=true
#  31.0%  PPPoE with IPv4             nothing            0 (100.0%)
#         RPS on queue 0, by the flow inside:
#           ringwise plan --goal GOAL --set eth1.rps_cpus.0=1-3
#         RPS on ppp0: echo e >/sys/class/net/ppp0/queues/rx-0/rps_cpus
#   9.0%  IP in two VLAN tags (QinQ)  nothing            1 (100.0%)
#         RPS of queue 1 spreads it over CPUs 2-3
#   2.0%  MPLS                        nothing            4 (100.0%)
#         no setting of eth1 spreads it
# eth1: hash fields udp4 sd udp6 sd; flow rules off; symmetric hash none
# udp4 hashed by addresses only: queue 6 gets 45.8 % of the sampled packets.
# With the ports hashed, the busiest queue would get 31.0 %:
#   ringwise plan --goal GOAL --set eth1.rss.fields.udp4=sdfn
";

#[test]
fn the_block() {
    let block = text(&interval());
    assert_eq!(block, BLOCK);
    for line in block.lines() {
        assert!(line.chars().count() <= COLUMNS || line.contains("ringwise plan --goal GOAL --set"), "{line}");
    }
    // It comes after the flows and before the line about the sample.
    let all = flows::text(Shape::Lines, &interval(), 1, &Style::plain(None));
    assert!(all.contains(&format!("{BLOCK}# eth1 1,000 packets sampled")), "{all}");
}

#[test]
fn a_sample_rule_matches_what_distinguishes_the_packets() {
    let means = AvailableRemedies { dev: "eth1".into(), ..AvailableRemedies::default() };
    for (class, matches) in [
        (TrafficClass::Ah, "ah4 spi SPI"),
        (TrafficClass::Gre, "ip4 src-ip PEER l4proto 47"),
        (TrafficClass::IpInIp, "ip4 src-ip PEER l4proto 4"),
        (TrafficClass::Gtp, "udp4 src-ip PEER src-port PORT"),
    ] {
        assert_eq!(rule(&means, class), format!("ethtool -N eth1 flow-type {matches} action Q"));
    }
}

#[test]
fn little_of_it_is_not_worth_a_line() {
    let mut i = Interval { dev: "eth1".into(), seconds: 1.0, one_in: 1, ..Interval::default() };
    assert_eq!(text(&i), "", "no packets");
    for n in 0..2000 {
        i.flows.add(Some(0), &if n < 19 { pppoe() } else { udp(53) }, 1, 100);
    }
    assert_eq!(text(&i), "");
    for _ in 0..3 {
        i.flows.add(Some(0), &pppoe(), 1, 100);
    }
    let block = text(&i);
    assert!(block.contains("not spread by flow: 1.1 %") && block.contains("could not be read"), "{block}");
    assert!(!block.contains("RPS"), "{block}");
}

#[test]
fn settings_that_help_already_are_not_proposed() {
    let mut i = interval();
    let m = i.means.as_mut().unwrap();
    m.udp_fields = BTreeMap::from([("udp4", "sdfn".to_string())]);
    m.flow_rules = FlowRules::On;
    m.rps.insert(0, CpuSet::range(4, 5));
    i.udp_ports = None;
    let block = text(&i);
    for words in [
        "RPS of queue 0 spreads it over CPUs 4-5",
        "spread, because the ports of UDP are hashed",
        "accepts them:\n#           ethtool -N eth1 flow-type esp4 spi SPI action Q\n#  31",
        "hash fields udp4 sdfn; flow rules on",
    ] {
        assert!(block.contains(words), "{words}: {block}");
    }
    assert!(!block.contains("ringwise plan"), "{block}");
    // A driver that restarts the device for it, and one that is not known.
    let means = i.means.as_mut().unwrap();
    (means.flow_rules, means.driver) = (FlowRules::Off, None);
    assert!(text(&i).contains("eth1.features.ntuple=true --allow-disruption"), "{}", text(&i));
    let means = i.means.as_mut().unwrap();
    (means.udp_fields, means.driver) = ([("udp4", "sd".to_string())].into(), Some("bnxt_en".into()));
    assert!(text(&i).contains("eth1.rss.fields.udp4=sdfn --allow-disruption"), "{}", text(&i));
    // Unknown is not the same as impossible.
    i.means = Some(AvailableRemedies { dev: "eth1".into(), ..AvailableRemedies::default() });
    let block = text(&i);
    for words in
        ["RPS would spread it", "spread if the ports of UDP are hashed", "hash fields unknown; flow rules unknown"]
    {
        assert!(block.contains(words), "{words}: {block}");
    }
}

#[test]
fn the_same_in_json() {
    let i = interval();
    let doc: serde_json::Value = serde_json::from_str(&flows::text(Shape::Json, &i, 5, &Style::plain(None))).unwrap();
    assert_eq!(doc["limited_percent"], 64.2);
    let classes = doc["classes"].as_array().unwrap();
    let class = |name: &str| classes.iter().find(|c| c["class"] == name).unwrap();
    let sum: u64 = classes.iter().map(|c| c["looked_at"].as_u64().unwrap()).sum();
    assert_eq!((sum, &doc["looked_at"]), (1000, &1000.into()));
    let of_queue = |q: usize| doc["queues"][q]["classes"].as_array().unwrap();
    assert_eq!((of_queue(4).len(), &of_queue(4)[0]["class"]), (2, &"mpls".into()));
    let esp = class("esp");
    assert_eq!((&esp["looked_at"], &esp["bytes"], &esp["busiest_queue"]), (&120.into(), &12_000.into(), &2.into()));
    assert_eq!(esp["on_busiest_queue"], 76);
    let pppoe = &class("pppoe_ipv4")["remedies"];
    assert_eq!(pppoe[0]["command"], "ringwise plan --goal GOAL --set eth1.rps_cpus.0=1-3");
    assert_eq!((&pppoe[1]["remedy"], &pppoe[1]["dev"]), (&"rps_above".into(), &"ppp0".into()));
    let qinq = &class("qinq")["remedies"][0];
    assert_eq!((&qinq["in_effect"], &qinq["command"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(class("ports")["remedies"].as_array().unwrap().len(), 0);
    assert_eq!(doc["interface"]["flow_rules"], "off");
    assert_eq!((&doc["udp_ports"]["now_percent"], &doc["udp_ports"]["flow_types"][0]), (&45.8.into(), &"udp4".into()));
}

//! The gain of hashing the ports of UDP, against what `spread` computes for the same flows.

use ringwise_flow::population::spread;
use ringwise_flow::synthetic::Synthetic;
use ringwise_flow::{CountedFlow, Steering, UdpPorts, UdpPortsCount};
use ringwise_model::*;

use crate::steering::host;

/// 300 flows of UDP between two hosts, of different weights.
fn flows() -> Vec<CountedFlow> {
    let words = "count=300,zipf=0.6,packets=20000,src=10.0.0.1/32,dst=192.0.2.1/32,proto=udp";
    Synthetic::parse(words).unwrap().flows()
}

fn rss(s: &mut Snapshot) -> &mut Rss {
    match &mut s.nics[0].rss {
        Fact::Known(r) => r,
        _ => panic!("there is one"),
    }
}

/// Counts the flows as they arrive on an interface like that of `s`.
fn counted(ports: &UdpPorts, s: &Snapshot, flows: &[CountedFlow]) -> UdpPortsCount {
    let now = Steering::new(&s.nics[0], &Fact::Absent);
    let mut count = UdpPortsCount::default();
    for f in flows {
        ports.add(&mut count, Some(&f.tuple), now.queue(&f.tuple), f.packets);
    }
    count
}

#[test]
fn the_gain_is_that_of_explain() {
    let s = host("ice");
    let ports = UdpPorts::new(&s.nics[0], &Fact::Absent).unwrap();
    let mut all = flows();
    all.extend(Synthetic::parse("count=200,packets=5000,proto=tcp").unwrap().flows());
    let gain = ports.gain(&counted(&ports, &s, &all)).unwrap();
    let shares = |s: &Snapshot| {
        let sp = spread(s, &s.nics[0], &Steering::new(&s.nics[0], &Fact::Absent), &all);
        let (queue, load) = sp.queues.iter().max_by_key(|(_, l)| l.packets).unwrap();
        (*queue, load.packets as f64 * 100.0 / sp.total.packets as f64)
    };
    assert_eq!((gain.now_queue, gain.now_percent), shares(&s));
    let mut with = s.clone();
    rss(&mut with).fields.insert("udp4".into(), "sdfn".into());
    assert_eq!((gain.with_ports_queue, gain.with_ports_percent), shares(&with));
    let packets = |flows: &[CountedFlow]| flows.iter().map(|f| f.packets).sum::<u64>() as f64;
    assert_eq!(gain.flow_types, ["udp4"]);
    assert_eq!(gain.udp_percent, packets(&flows()) * 100.0 / packets(&all));
    assert!(gain.now_percent > 80.0 && gain.with_ports_percent < 30.0, "{gain:?}");
}

#[test]
fn packets_of_other_protocols_stay_where_they_arrived() {
    let s = host("ice");
    let ports = UdpPorts::new(&s.nics[0], &Fact::Absent).unwrap();
    let mut count = counted(&ports, &s, &flows());
    // PPPoE has no tuple that the device hashes.
    ports.add(&mut count, None, Some(5), 1_000_000);
    assert_eq!(ports.gain(&count), None, "queue 5 stays the busiest");
    let mut count = counted(&ports, &s, &flows());
    ports.add(&mut count, None, Some(5), 5_000);
    let gain = ports.gain(&count).unwrap();
    assert_eq!(gain.now_percent, gain.udp_percent);
    // Without a queue they count nowhere, and a few do not matter.
    ports.add(&mut count, None, None, 100);
    assert_eq!(ports.gain(&count), Some(gain));
    ports.add(&mut count, None, None, 1000);
    assert_eq!(ports.gain(&count), None);
}

#[test]
fn nothing_is_predicted_without_grounds() {
    let s = host("ice");
    let new = |s: &Snapshot| UdpPorts::new(&s.nics[0], &Fact::Absent);
    let mut hashed = s.clone();
    rss(&mut hashed).fields.insert("udp4".into(), "sdfn".into());
    assert!(new(&hashed).is_none(), "udp6 is hashed by other fields");
    // Queues are predicted, but the packets arrive elsewhere.
    let ports = new(&s).unwrap();
    let mut count = UdpPortsCount::default();
    for f in flows() {
        let queue = Steering::new(&s.nics[0], &Fact::Absent).queue(&f.tuple).map(|q| (q + 1) % 8);
        ports.add(&mut count, Some(&f.tuple), queue, f.packets);
    }
    assert_eq!(ports.gain(&count), None);
    // Too few packets.
    assert_eq!(
        ports.gain(&counted(
            &ports,
            &s,
            &flows()[..1].iter().map(|f| CountedFlow { packets: 99, ..*f }).collect::<Vec<_>>()
        )),
        None
    );
    let unknown = Fact::not_requested("the hash");
    for change in [0, 1, 2] {
        let mut s = host("ice");
        let r = rss(&mut s);
        match change {
            0 => r.key = unknown.clone(),
            1 => r.function = unknown.clone(),
            _ => r.function = Fact::Known("xor".into()),
        }
        let ports = new(&s).unwrap();
        assert_eq!(ports.gain(&counted(&ports, &s, &flows())), None, "change {change}");
    }
    let mut s = host("ena");
    s.nics[0].driver = Fact::Known("ena".into());
    let ports = new(&s).unwrap();
    assert_eq!(ports.gain(&counted(&ports, &s, &flows())), None, "ena computes another hash");
    // An assumed function counts only if packets arrive as predicted.
    let mut s = host("ice");
    rss(&mut s).function = Fact::Absent;
    let ports = new(&s).unwrap();
    assert!(ports.gain(&counted(&ports, &s, &flows())).is_some());
    let mut unreported = UdpPortsCount::default();
    flows().iter().for_each(|f| ports.add(&mut unreported, Some(&f.tuple), None, f.packets));
    assert_eq!(ports.gain(&unreported), None);
}

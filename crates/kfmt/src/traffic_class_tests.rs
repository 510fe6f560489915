//! A frame of each class, byte by byte as it is on the wire.

use super::*;
use crate::packet::{ENOUGH, Flow, frame_of};

const MACS: [u8; 12] = [0x52, 0x54, 0, 0, 0, 1, 0x52, 0x54, 0, 0, 0, 2];

/// Both addresses, then these bytes.
fn frame(rest: &[&[u8]]) -> Vec<u8> {
    [&MACS[..], &rest.concat()].concat()
}

/// An IPv4 header of 20 bytes: 10.0.0.1 to 10.0.0.2. `pieces`: flags and offset of the fragment.
fn four(protocol: u8, pieces: u16) -> Vec<u8> {
    let [a, b] = pieces.to_be_bytes();
    vec![0x45, 0, 0, 84, 0x12, 0x34, a, b, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]
}

/// An IPv6 header: fd00::1 to fd00::2.
fn six(next: u8) -> Vec<u8> {
    let mut b = vec![0x60, 0, 0, 0, 0, 40, next, 64];
    b.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    b.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    b
}

fn udp(from: u16, to: u16) -> Vec<u8> {
    [&from.to_be_bytes()[..], &to.to_be_bytes(), &[0, 64, 0, 0]].concat()
}

const IP4: [u8; 2] = [8, 0];
const IP6: [u8; 2] = [0x86, 0xdd];

fn ip4_udp(from: u16, to: u16) -> Vec<u8> {
    frame(&[&IP4, &four(17, 0), &udp(from, to)])
}

fn wire(frame: &[u8]) -> TrafficClass {
    class(frame, Tags::AsOnWire)
}

#[test]
fn ports_and_udp_tunnels() {
    let tcp = [0x01, 0xbb, 0xc0, 0x01, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0];
    assert_eq!(wire(&frame(&[&IP4, &four(6, 0), &tcp])), TrafficClass::Ports);
    assert_eq!(wire(&frame(&[&IP6, &six(6), &tcp])), TrafficClass::Ports);
    for (from, to, expected) in [
        (40_000, 53, TrafficClass::Ports),
        (40_000, 4789, TrafficClass::Vxlan),
        (40_000, 8472, TrafficClass::Vxlan),
        // The source port is derived from the inner flow, so only the destination identifies these.
        (4789, 40_000, TrafficClass::Ports),
        (40_000, 6081, TrafficClass::Geneve),
        (40_000, 6080, TrafficClass::Gue),
        (40_000, 51820, TrafficClass::Wireguard),
        (51820, 40_000, TrafficClass::Wireguard),
        (4500, 4500, TrafficClass::EspInUdp),
        (2152, 2152, TrafficClass::Gtp),
        (1701, 1701, TrafficClass::L2tp),
    ] {
        assert_eq!(wire(&ip4_udp(from, to)), expected, "{from} > {to}");
    }
}

#[test]
fn addresses_alone() {
    let later = frame(&[&IP4, &four(17, 185), &[0; 64]]);
    let first = frame(&[&IP4, &four(17, 0x2000), &udp(40_000, 53)]);
    assert_eq!((wire(&later), wire(&first)), (TrafficClass::Fragment, TrafficClass::Fragment));
    // Fragment header of IPv6: next header, reserved, offset and flag, identification.
    let six_fragment = frame(&[&IP6, &six(44), &[17, 0, 0x05, 0xa8, 0, 0, 0, 9], &[0; 32]]);
    assert_eq!(wire(&six_fragment), TrafficClass::Fragment);
    // SPI and sequence number.
    let esp = [0xc0, 0, 0, 1, 0, 0, 0, 7];
    assert_eq!(wire(&frame(&[&IP4, &four(50, 0), &esp])), TrafficClass::Esp);
    assert_eq!(wire(&frame(&[&IP6, &six(50), &esp])), TrafficClass::Esp);
    assert_eq!(wire(&frame(&[&IP4, &four(51, 0), &[6, 4, 0, 0]])), TrafficClass::Ah);
    // GRE without options, IPv4 inside.
    assert_eq!(wire(&frame(&[&IP4, &four(47, 0), &[0, 0, 8, 0], &four(6, 0)])), TrafficClass::Gre);
    assert_eq!(wire(&frame(&[&IP4, &four(4, 0), &four(17, 0), &udp(1, 2)])), TrafficClass::IpInIp);
    assert_eq!(wire(&frame(&[&IP4, &four(41, 0), &six(17), &udp(1, 2)])), TrafficClass::IpInIp);
    assert_eq!(wire(&frame(&[&IP6, &six(41), &six(17), &udp(1, 2)])), TrafficClass::IpInIp);
    assert_eq!(wire(&frame(&[&IP4, &four(1, 0), &[8, 0, 0, 0]])), TrafficClass::OtherIp);
    // Destination options of 8 bytes before UDP.
    let options = frame(&[&IP6, &six(60), &[17, 0, 1, 4, 0, 0, 0, 0], &udp(1, 2)]);
    assert_eq!(wire(&options), TrafficClass::Ipv6Extensions);
}

/// A PPPoE session header with this protocol of PPP.
fn pppoe(protocol: u16) -> Vec<u8> {
    [&[0x88, 0x64, 0x11, 0, 0, 7, 0, 86][..], &protocol.to_be_bytes()].concat()
}

#[test]
fn frames_without_a_hash() {
    let discovery = frame(&[&[0x88, 0x63, 0x11, 0x09, 0, 0, 0, 4, 1, 1, 0, 0]]);
    assert_eq!(wire(&discovery), TrafficClass::PppoeControl);
    assert_eq!(wire(&frame(&[&pppoe(0x0021), &four(6, 0)])), TrafficClass::PppoeIpv4);
    assert_eq!(wire(&frame(&[&pppoe(0x0057), &six(6)])), TrafficClass::PppoeIpv6);
    assert_eq!(wire(&frame(&[&pppoe(0xc021), &[9, 1, 0, 8]])), TrafficClass::PppoeControl);
    // Label 16, bottom of the stack, TTL 64.
    assert_eq!(wire(&frame(&[&[0x88, 0x47, 0, 1, 1, 64], &four(17, 0)])), TrafficClass::Mpls);
    assert_eq!(wire(&frame(&[&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]])), TrafficClass::Arp);
    // LLDP, and a spanning tree frame with a length.
    assert_eq!(wire(&frame(&[&[0x88, 0xcc, 2, 7, 4]])), TrafficClass::OtherEtherType);
    assert_eq!(wire(&frame(&[&[0, 38, 0x42, 0x42, 3]])), TrafficClass::OtherEtherType);
}

#[test]
fn tags_on_the_wire_and_in_packet_sockets() {
    let inner = [&IP4[..], &four(17, 0), &udp(40_000, 53)].concat();
    let once = frame(&[&[0x81, 0, 0, 100], &inner]);
    let twice = frame(&[&[0x88, 0xa8, 0, 100, 0x81, 0, 0, 7], &inner]);
    let old = frame(&[&[0x91, 0, 0, 100], &inner]);
    assert_eq!((wire(&once), wire(&twice)), (TrafficClass::Ports, TrafficClass::QinQ));
    // What packet sockets see of the same frames.
    let moved = |f: &[u8]| class(f, Tags::OutermostMoved);
    assert_eq!(moved(&frame(&[&inner])), TrafficClass::Ports);
    assert_eq!(moved(&once), TrafficClass::QinQ);
    assert_eq!(moved(&old), TrafficClass::Ports, "the kernel does not move 0x9100");
    // PPPoE in two tags is hashed as little as PPPoE in none.
    let both = frame(&[&[0x88, 0xa8, 0, 100, 0x81, 0, 0, 7], &pppoe(0x0021), &four(6, 0)]);
    assert_eq!(wire(&both), TrafficClass::PppoeIpv4);
    let five = frame(&[&[0x81, 0, 0, 1].repeat(5), &inner]);
    assert_eq!(wire(&five), TrafficClass::Unreadable);
}

#[test]
fn broken_and_truncated_frames() {
    for frame in [
        vec![],
        MACS.to_vec(),
        frame(&[&IP4]),
        frame(&[&IP4, &six(17)]),
        frame(&[&IP4, &four(17, 0)]),
        frame(&[&IP4, &[0x44; 20]]),
        frame(&[&pppoe(0)[..7]]),
    ] {
        assert_eq!(wire(&frame), TrafficClass::Unreadable, "{frame:?}");
    }
    let whole = frame(&[&[0x88, 0xa8, 0, 100, 0x81, 0, 0, 7], &IP6, &six(60), &[17, 0, 1, 4, 0, 0, 0, 0], &udp(1, 2)]);
    assert!(whole.len() <= ENOUGH);
    for n in 0..whole.len() - 4 {
        assert!(matches!(wire(&whole[..n]), TrafficClass::Unreadable), "{n} bytes");
    }
}

/// The class and the flow of a frame never contradict each other.
#[test]
fn agrees_with_the_flow() {
    let flow = Flow::Ip { protocol: 6, from: "::1".parse().unwrap(), to: "::2".parse().unwrap(), ports: Some((1, 2)) };
    assert_eq!(wire(&frame_of(&flow)), TrafficClass::Ports);
    assert_eq!(wire(&frame_of(&Flow::Other(0x0806))), TrafficClass::Arp);
}

#[test]
fn every_class_is_listed_once() {
    let mut codes: Vec<&str> = TrafficClass::ALL.iter().map(|c| c.code()).collect();
    assert!(TrafficClass::ALL.is_sorted());
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), TrafficClass::ALL.len());
    for c in TrafficClass::ALL {
        assert!(c.is_limited() || !c.is_spread_by_rps(), "{c:?}: RPS is proposed only where the device cannot");
    }
}

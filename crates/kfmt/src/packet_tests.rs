//! Frames, complete and truncated, and the flows in them.

use super::*;

fn ip(protocol: u8, from: &str, to: &str, ports: Option<(u16, u16)>) -> Flow {
    Flow::Ip { protocol, from: from.parse().unwrap(), to: to.parse().unwrap(), ports }
}

#[test]
fn go_round() {
    for f in [
        ip(17, "10.0.0.1", "192.0.2.7", Some((1024, 53))),
        ip(6, "2001:db8::1", "fe80::2", Some((443, 65535))),
        ip(1, "10.0.0.1", "10.0.0.2", None),
        ip(58, "::1", "::1", None),
        Flow::Other(0x0806),
    ] {
        assert_eq!(flow(&frame_of(&f)), Some(f));
    }
}

#[test]
fn segments() {
    assert_eq!(put_together(&[0; 10], 60), (1, 60));
    let mut tcp = [0, 1, 66, 0, 0, 0, 0, 0, 0, 0];
    tcp[4..6].copy_from_slice(&1448u16.to_ne_bytes());
    assert_eq!(put_together(&tcp, 66 + 3 * 1448), (3, 3 * 1514));
    assert_eq!(put_together(&tcp, 66 + 1449), (2, 66 * 2 + 1449));
    assert_eq!(put_together(&tcp, 5), (1, 5));
}

/// `frame` with these bytes inserted before byte `at`.
fn with(frame: &[u8], at: usize, more: &[u8]) -> Vec<u8> {
    [&frame[..at], more, &frame[at..]].concat()
}

#[test]
fn tags_options_and_extension_headers() {
    let udp = ip(17, "10.0.0.1", "10.0.0.2", Some((5, 6)));
    let plain = frame_of(&udp);
    let tagged = with(&plain, 12, &[0x81, 0, 0, 5]);
    assert_eq!(flow(&tagged), Some(udp));
    let twice = with(&tagged, 12, &[0x88, 0xa8, 0, 7]);
    assert_eq!(flow(&twice), Some(udp));
    let four = with(&twice, 12, &[0x91, 0, 0, 7, 0x91, 0, 0, 7]);
    assert_eq!(flow(&four), Some(udp));
    assert_eq!(flow(&with(&four, 12, &[0x91, 0, 0, 7])), None, "five tags");
    let mut options = with(&plain, 34, &[1; 8]);
    options[14] = 0x47;
    assert_eq!(flow(&options), Some(udp));
    let six = ip(17, "::1", "::2", Some((5, 6)));
    // Hop-by-hop of 8, then a first fragment.
    let mut long = with(&frame_of(&six), 54, &[44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 1, 9, 9, 9, 9]);
    long[20] = 0;
    assert_eq!(flow(&long), Some(six));
    long[65] = 9;
    assert_eq!(flow(&long), Some(ip(17, "::1", "::2", None)), "a later fragment");
}

#[test]
fn what_is_cut_off_is_not_made_up() {
    let udp = frame_of(&ip(17, "10.0.0.1", "10.0.0.2", Some((5, 6))));
    assert_eq!(flow(&udp[..37]), Some(ip(17, "10.0.0.1", "10.0.0.2", None)));
    for end in 0..34 {
        assert_eq!(flow(&udp[..end]), None, "{end}");
    }
    let mut later = udp.clone();
    later[21] = 1;
    assert_eq!(flow(&later), Some(ip(17, "10.0.0.1", "10.0.0.2", None)));
    let mut short = udp;
    short[14] = 0x44;
    assert_eq!(flow(&short), None, "a header of 16 bytes");
}

fn frame(kind: u16, rest: &[u8]) -> Vec<u8> {
    [&[0u8; 12][..], &kind.to_be_bytes(), rest].concat()
}

fn ip4(protocol: u8, flags: u16, rest: &[u8]) -> Vec<u8> {
    let f = flags.to_be_bytes();
    let head = [0x45, 0, 0, 0, 0, 0, f[0], f[1], 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&head[..], rest].concat()
}

fn ip6(next: u8, rest: &[u8]) -> Vec<u8> {
    let mut head = vec![0x60, 0, 0, 0, 0, 0, next, 64];
    head.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
    head.extend("2001:db8::2".parse::<Ipv6Addr>().unwrap().octets());
    head.extend(rest);
    head
}

const PORTS: [u8; 8] = [0, 80, 1, 0, 0, 0, 0, 0];

#[test]
fn plain_tagged_cooked_raw() {
    let p = ip4(6, 0x4000, &PORTS);
    let s = parse_frame(1, &frame(0x0800, &p)).unwrap();
    assert_eq!((s.protocol, s.ports, s.fragment, s.vlan), (6, Some((80, 256)), false, None));
    let tagged = [&[0x20, 5, 0x81, 0, 0, 9, 0x08, 0][..], &p].concat();
    assert_eq!(parse_frame(1, &frame(0x88a8, &tagged)).unwrap().vlan, Some(5));
    let cooked = [&[0u8; 14][..], &[8, 0], &p].concat();
    assert_eq!(parse_frame(113, &cooked).unwrap().ports, Some((80, 256)));
    let cooked2 = [&[8, 0][..], &[0; 18], &p].concat();
    assert_eq!(parse_frame(276, &cooked2).unwrap().ports, Some((80, 256)));
    assert_eq!(parse_frame(101, &p).unwrap().ports, Some((80, 256)));
    assert_eq!(parse_frame(0, &[&[2, 0, 0, 0][..], &p].concat()).unwrap().ports, Some((80, 256)));
}

#[test]
fn pieces_headers_tunnels() {
    for (flags, ports) in [(0x2000, Some((80, 256))), (0x00b9, None)] {
        let s = parse_frame(101, &ip4(17, flags, &PORTS)).unwrap();
        assert_eq!((s.fragment, s.ports), (true, ports));
    }
    let options = [&[44u8, 0, 0, 0, 0, 0, 0, 0][..], &[17, 0, 0, 0, 0, 0, 0, 1], &PORTS].concat();
    let s = parse_frame(101, &ip6(0, &options)).unwrap();
    assert_eq!(
        (s.protocol, s.fragment, s.extended, s.ports),
        (17, false, true, Some((80, 256))),
        "an atomic fragment is whole"
    );
    let piece = [&[17u8, 0, 5, 0xc8, 0, 0, 0, 1][..], &PORTS].concat();
    let s = parse_frame(101, &ip6(44, &piece)).unwrap();
    assert_eq!((s.protocol, s.fragment, s.extended, s.ports), (17, true, false, None));
    assert_eq!(parse_frame(101, &ip4(47, 0, &[])).unwrap().tunnel, Some("GRE"));
    let vxlan = [0x12, 0x34, 0x12, 0xb5, 0, 0, 0, 0];
    assert_eq!(parse_frame(101, &ip4(17, 0, &vxlan)).unwrap().tunnel, Some("VXLAN"));
}

#[test]
fn protocols_that_networks_carry_have_a_name() {
    let names: Vec<Option<&str>> =
        [1, 2, 4, 6, 17, 41, 47, 50, 51, 58, 89, 112, 132, 136, 253].map(protocol_name).into();
    let words = "icmp igmp ipip tcp udp ipv6 gre esp ah icmpv6 ospf vrrp sctp udplite";
    let want: Vec<Option<&str>> = words.split(' ').map(Some).chain([None]).collect();
    assert_eq!(names, want);
}

#[test]
fn a_frame_without_a_flow_has_a_reason() {
    assert_eq!(parse_frame(1, &frame(0x0806, &[0; 28])), Err(NoFlow::NotIp(0x0806)));
    assert_eq!(parse_frame(127, &[0; 60]), Err(NoFlow::Link(127)));
    assert_eq!(parse_frame(1, &[0; 13]), Err(NoFlow::Short));
    let cut = parse_frame(101, &ip4(6, 0, &[0, 80])).unwrap();
    assert_eq!((cut.ports, cut.short), (None, true));
    let cut = parse_frame(101, &ip6(0, &[6])).unwrap();
    assert_eq!((cut.protocol, cut.ports, cut.short), (0, None, true));
    assert_eq!(
        parse_frame(1, &frame(0x86dd, &ip4(6, 0, &PORTS))),
        Err(NoFlow::Malformed),
        "IPv4 with the EtherType of IPv6"
    );
    assert_eq!(parse_frame(101, &[0x41; 40]), Err(NoFlow::Malformed));
    assert_eq!(parse_frame(101, &[0x50; 40]), Err(NoFlow::Malformed));
    let endless = [0u8, 0, 0, 0, 0, 0, 0, 0].repeat(20);
    assert_eq!(parse_frame(101, &ip6(0, &endless)), Err(NoFlow::Malformed));
    for n in [NoFlow::Link(9), NoFlow::NotIp(0x8847), NoFlow::NotIp(0x8864), NoFlow::NotIp(3), NoFlow::Short] {
        assert!(!n.to_string().is_empty());
    }
}

#[test]
fn frames_that_are_not_ip_are_named_by_their_type() {
    assert_eq!(NoFlow::NotIp(0x88cc).to_string(), "not IP (frame type 0x88cc)");
    assert_eq!(NoFlow::NotIp(0x0600).to_string(), "not IP (frame type 0x0600)");
    assert_eq!(NoFlow::NotIp(0x05ff).to_string(), "not IP (802.3 frames)");
}

//! Which flow a frame belongs to, by its first bytes: Ethernet, VLAN tags, IPv4, IPv6, ports.
//!
//! Nothing is followed into tunnels. A fragment behind the first has no ports, and neither has what was cut off.

use std::net::IpAddr;

/// Bytes that are enough for everything that is looked at: two VLAN tags, IPv4 with all its options or IPv6 with a few
/// extension headers, ports.
pub const ENOUGH: usize = 128;

/// What packets of one flow have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    Ip {
        protocol: u8,
        from: IpAddr,
        to: IpAddr,
        /// Of TCP, UDP, UDP-Lite, SCTP and DCCP.
        ports: Option<(u16, u16)>,
    },
    /// Neither IPv4 nor IPv6: the EtherType, or below 1536 the length of an 802.3 frame.
    Other(u16),
}

/// Tags that are passed over.
const TAGS: usize = 2;
/// Extension headers of IPv6 that are passed over.
const EXTENSIONS: usize = 6;

/// `None`: too short to be a frame, or its IP header is broken or cut off.
pub fn flow(frame: &[u8]) -> Option<Flow> {
    let mut rest = frame.get(12..)?;
    for _ in 0..=TAGS {
        let (kind, after) = (be(rest, 0)?, rest.get(2..)?);
        match kind {
            0x8100 | 0x88a8 | 0x9100 => rest = after.get(2..)?,
            0x0800 => return v4(after),
            0x86dd => return v6(after),
            other => return Some(Flow::Other(other)),
        }
    }
    None
}

/// Headers in front of what a frame carries that was put together from several: Ethernet, IPv4, TCP with timestamps.
const HEADERS: u64 = 66;

/// Packets and bytes on the wire of a frame of this length, as far as its `virtio_net_hdr` tells whether the kernel or
/// the NIC has put it together from several: right to a packet or so.
pub fn put_together(vnet: &[u8; 10], length: u64) -> (u64, u64) {
    // flags 0, gso_type 1, hdr_len 2, gso_size 4.
    let size = u64::from(u16::from_ne_bytes([vnet[4], vnet[5]]));
    if vnet[1] == 0 || size == 0 {
        return (1, length);
    }
    let packets = length.saturating_sub(HEADERS).div_ceil(size).max(1);
    (packets, length + (packets - 1) * HEADERS)
}

/// What a protocol number is called, where it has ports or is frequent.
pub fn protocol_name(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "icmp",
        2 => "igmp",
        4 => "ipip",
        6 => "tcp",
        17 => "udp",
        33 => "dccp",
        41 => "ipv6",
        47 => "gre",
        50 => "esp",
        51 => "ah",
        58 => "icmpv6",
        89 => "ospf",
        112 => "vrrp",
        132 => "sctp",
        136 => "udplite",
        _ => return None,
    })
}

fn be(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn v4(ip: &[u8]) -> Option<Flow> {
    let first = *ip.first()?;
    let header = usize::from(first & 0xf) * 4;
    if first >> 4 != 4 || header < 20 {
        return None;
    }
    let address = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(ip.get(at..at + 4)?).ok()?));
    let (from, to) = (address(12)?, address(16)?);
    let protocol = ip[9];
    let later_fragment = be(ip, 6)? & 0x1fff != 0;
    let ports = if later_fragment { None } else { ports(protocol, ip.get(header..).unwrap_or_default()) };
    Some(Flow::Ip { protocol, from, to, ports })
}

fn v6(ip: &[u8]) -> Option<Flow> {
    if *ip.first()? >> 4 != 6 {
        return None;
    }
    let address = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(ip.get(at..at + 16)?).ok()?));
    let (from, to) = (address(8)?, address(24)?);
    let (mut protocol, mut rest) = (ip[6], ip.get(40..)?);
    for _ in 0..EXTENSIONS {
        // Hop-by-hop, routing, destination options, mobility: length in units of 8 bytes after the first; a fragment
        // has 8, an authentication header counts in units of 4.
        let length = match (protocol, rest.get(1)) {
            (0 | 43 | 60 | 135, Some(n)) => (usize::from(*n) + 1) * 8,
            (44, Some(_)) => 8,
            (51, Some(n)) => (usize::from(*n) + 2) * 4,
            _ => break,
        };
        if protocol == 44 && be(rest, 2).is_none_or(|n| n & 0xfff8 != 0) {
            return Some(Flow::Ip { protocol: rest[0], from, to, ports: None });
        }
        protocol = rest[0];
        rest = rest.get(length..).unwrap_or_default();
    }
    Some(Flow::Ip { protocol, from, to, ports: ports(protocol, rest) })
}

fn ports(protocol: u8, rest: &[u8]) -> Option<(u16, u16)> {
    matches!(protocol, 6 | 17 | 33 | 132 | 136).then_some(())?;
    Some((be(rest, 0)?, be(rest, 2)?))
}

/// A frame of this flow, for tests: with ports, without options.
pub fn frame_of(flow: &Flow) -> Vec<u8> {
    let mut out = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let Flow::Ip { protocol, from, to, ports } = flow else {
        let Flow::Other(kind) = flow else { return out };
        out.extend(kind.to_be_bytes());
        return out;
    };
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            out.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, *protocol, 0, 0]);
            out.extend(from.octets());
            out.extend(to.octets());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            out.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, *protocol, 64]);
            out.extend(from.octets());
            out.extend(to.octets());
        }
        _ => return out,
    }
    if let Some((from, to)) = ports {
        out.extend(from.to_be_bytes());
        out.extend(to.to_be_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
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

    /// `frame` with these bytes put in before byte `at`.
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
        assert_eq!(flow(&with(&twice, 12, &[0x91, 0, 0, 7])), None, "three tags");
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
}

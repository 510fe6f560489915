//! Determines the flow of a frame from its first bytes: tags, IPv4, IPv6 with its extension headers, ports.
//!
//! Tunnels are not followed, because most devices hash the outermost flow. Missing bytes are not guessed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Enough bytes for everything that is examined: two VLAN tags, IPv4 with all its options or IPv6 with a few extension
/// headers, ports.
pub const ENOUGH: usize = 128;
/// Most VLAN tags that the parser skips; deeper stacks are not used in practice.
const MOST_TAGS: usize = 4;
/// Maximum number of IPv6 extension headers that the parser skips.
const MOST_HEADERS: usize = 12;

/// What the packets of one flow have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flow {
    /// An IPv4 or IPv6 flow in one direction.
    Ip {
        /// IANA protocol number, after IPv6 extension headers.
        protocol: u8,
        /// Source address.
        from: IpAddr,
        /// Destination address.
        to: IpAddr,
        /// For TCP, UDP, UDP-Lite, SCTP and DCCP.
        ports: Option<(u16, u16)>,
    },
    /// Neither IPv4 nor IPv6: the EtherType, or below 1536 the length of an 802.3 frame.
    Other(u16),
}

/// The outermost flow of a packet, and everything else that determines how it is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedPacket {
    /// Source address of the outermost IP header.
    pub src: IpAddr,
    /// Destination address of the outermost IP header.
    pub dst: IpAddr,
    /// IANA protocol number, after IPv6 extension headers.
    pub protocol: u8,
    /// For TCP, UDP, UDP-Lite, SCTP and DCCP. Only the first fragment of a packet has ports.
    pub ports: Option<(u16, u16)>,
    /// The packet is a fragment.
    pub fragment: bool,
    /// VLAN id of the outermost tag. `None`: not tagged.
    pub vlan: Option<u16>,
    /// The packet contains another one with addresses of its own, which most devices do not hash.
    pub tunnel: Option<&'static str>,
    /// IPv6 extension headers precede the ports. Devices differ in whether they skip them.
    pub extended: bool,
    /// The bytes end before the ports.
    pub short: bool,
}

/// Why a frame has no flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NoFlow {
    /// `LINKTYPE_*` that this version does not know.
    Link(u32),
    /// Not IP: the type of the frame.
    NotIp(u16),
    /// The captured bytes end before the addresses or ports.
    Short,
    /// A header that contradicts itself.
    Malformed,
}

impl std::fmt::Display for NoFlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Link(n) => write!(f, "link type {n} is not known (known: Ethernet, raw IP, Linux cooked, null)"),
            Self::NotIp(0x0806) => write!(f, "ARP"),
            Self::NotIp(0x8847 | 0x8848) => write!(f, "MPLS: how such frames are hashed depends on the device"),
            Self::NotIp(0x8863 | 0x8864) => write!(f, "PPPoE: most devices do not hash such frames"),
            Self::NotIp(t) if *t < 0x600 => write!(f, "not IP (802.3 frames)"),
            Self::NotIp(t) => write!(f, "not IP (frame type {t:#06x})"),
            Self::Short => write!(f, "captured without the addresses and ports"),
            Self::Malformed => write!(f, "malformed headers"),
        }
    }
}

/// Parses an Ethernet frame. `None`: too short to be one, or its IP header is broken or truncated.
pub fn flow(frame: &[u8]) -> Option<Flow> {
    match parse_frame(1, frame) {
        Ok(s) => Some(Flow::Ip { protocol: s.protocol, from: s.src, to: s.dst, ports: s.ports }),
        Err(NoFlow::NotIp(kind)) => Some(Flow::Other(kind)),
        Err(_) => None,
    }
}

fn half(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(b.get(at..at + 2)?.try_into().ok()?))
}

/// `link`: `LINKTYPE_*` of the capture.
pub fn parse_frame(link: u32, b: &[u8]) -> Result<ParsedPacket, NoFlow> {
    let after = |n: usize| b.get(n..).ok_or(NoFlow::Short);
    match link {
        1 => ethernet(half(b, 12).ok_or(NoFlow::Short)?, after(14)?),
        // Linux cooked, versions 1 and 2.
        113 => ethernet(half(b, 14).ok_or(NoFlow::Short)?, after(16)?),
        276 => ethernet(half(b, 0).ok_or(NoFlow::Short)?, after(20)?),
        12 | 14 | 101 | 228 | 229 => ip(b, None, None),
        // The address family of the machine that made the capture: 2, or 24, 28, 30 for IPv6.
        0 | 108 => ip(after(4)?, None, None),
        other => Err(NoFlow::Link(other)),
    }
}

fn ethernet(mut kind: u16, mut b: &[u8]) -> Result<ParsedPacket, NoFlow> {
    let mut vlan = None;
    for _ in 0..=MOST_TAGS {
        match kind {
            0x8100 | 0x88a8 | 0x9100 => {
                let tag = half(b, 0).ok_or(NoFlow::Short)?;
                vlan.get_or_insert(tag & 0x0fff);
                kind = half(b, 2).ok_or(NoFlow::Short)?;
                b = b.get(4..).ok_or(NoFlow::Short)?;
            }
            0x0800 => return ip(b, vlan, Some(4)),
            0x86dd => return ip(b, vlan, Some(6)),
            other => return Err(NoFlow::NotIp(other)),
        }
    }
    Err(NoFlow::Malformed)
}

/// `version`: as in the frame.
fn ip(b: &[u8], vlan: Option<u16>, version: Option<u8>) -> Result<ParsedPacket, NoFlow> {
    let first = b.first().ok_or(NoFlow::Short)? >> 4;
    match first {
        _ if version.is_some_and(|v| v != first) => Err(NoFlow::Malformed),
        4 => four(b, vlan),
        6 => six(b, vlan),
        _ => Err(NoFlow::Malformed),
    }
}

fn four(b: &[u8], vlan: Option<u16>) -> Result<ParsedPacket, NoFlow> {
    let head = b.get(..20).ok_or(NoFlow::Short)?;
    let len = usize::from(head[0] & 0x0f) * 4;
    if len < 20 {
        return Err(NoFlow::Malformed);
    }
    let address = |at: usize| -> IpAddr { Ipv4Addr::new(b[at], b[at + 1], b[at + 2], b[at + 3]).into() };
    // 0x2000: more fragments follow; 0x1fff: the position of this fragment.
    let pieces = half(b, 6).unwrap_or(0);
    let s = bare(address(12), address(16), head[9], vlan);
    let s = ParsedPacket { fragment: pieces & 0x3fff != 0, ..s };
    if pieces & 0x1fff != 0 {
        return Ok(s);
    }
    Ok(ports(s, b.get(len..).unwrap_or_default()))
}

fn bare(src: IpAddr, dst: IpAddr, protocol: u8, vlan: Option<u16>) -> ParsedPacket {
    ParsedPacket { src, dst, protocol, ports: None, fragment: false, vlan, tunnel: None, extended: false, short: false }
}

fn six(b: &[u8], vlan: Option<u16>) -> Result<ParsedPacket, NoFlow> {
    let head = b.get(..40).ok_or(NoFlow::Short)?;
    let address =
        |at: usize| -> IpAddr { Ipv6Addr::from(<[u8; 16]>::try_from(&head[at..at + 16]).unwrap_or_default()).into() };
    let mut s = bare(address(8), address(24), head[6], vlan);
    let mut rest = &b[40..];
    for _ in 0..MOST_HEADERS {
        // Hop-by-hop, routing, destination options, mobility: in units of 8 bytes after the first.
        let size = match (s.protocol, rest.get(1), half(rest, 2)) {
            (0 | 43 | 60 | 135, Some(n), _) => usize::from(*n) * 8 + 8,
            (44, _, Some(pieces)) => {
                s.fragment |= pieces & 0xfff9 != 0;
                if pieces & 0xfff8 != 0 {
                    // Not the first fragment: no more headers.
                    s.protocol = rest[0];
                    return Ok(s);
                }
                8
            }
            (0 | 43 | 44 | 60 | 135, ..) => return Ok(ParsedPacket { short: true, ..s }),
            _ => return Ok(ports(s, rest)),
        };
        s.extended |= s.protocol != 44;
        s.protocol = rest[0];
        rest = rest.get(size..).unwrap_or_default();
    }
    Err(NoFlow::Malformed)
}

fn ports(mut s: ParsedPacket, b: &[u8]) -> ParsedPacket {
    s.tunnel = match s.protocol {
        4 => Some("IP in IP"),
        41 => Some("IPv6 in IP"),
        47 => Some("GRE"),
        _ => None,
    };
    if !matches!(s.protocol, 6 | 17 | 33 | 132 | 136) {
        return s;
    }
    let (Some(src), Some(dst)) = (half(b, 0), half(b, 2)) else { return ParsedPacket { short: true, ..s } };
    s.ports = Some((src, dst));
    if s.protocol == 17 {
        s.tunnel = match dst {
            4789 | 8472 => Some("VXLAN"),
            6081 => Some("Geneve"),
            2152 => Some("GTP"),
            _ => None,
        };
    }
    s
}

/// Headers before the data of a frame that was merged from several: Ethernet, IPv4, TCP with timestamps.
const HEADERS: u64 = 66;

/// Packets and bytes on the wire for a frame of this length, as far as its `virtio_net_hdr` shows whether the kernel or
/// the NIC has merged it from several. Accurate to about one packet.
pub fn put_together(vnet: &[u8; 10], length: u64) -> (u64, u64) {
    // flags 0, gso_type 1, hdr_len 2, gso_size 4.
    let size = u64::from(u16::from_ne_bytes([vnet[4], vnet[5]]));
    if vnet[1] == 0 || size == 0 {
        return (1, length);
    }
    let packets = length.saturating_sub(HEADERS).div_ceil(size).max(1);
    (packets, length + (packets - 1) * HEADERS)
}

/// The name of a protocol number, if the protocol has ports or is frequent.
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
#[path = "packet_tests.rs"]
mod tests;

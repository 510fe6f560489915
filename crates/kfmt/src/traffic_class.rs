//! Determines how far a usual device can spread the packets of a frame's kind over its receive queues. Pure.
//!
//! Devices differ: a class describes what most of them hash with the default settings of their drivers. What one
//! interface hashes is in its snapshot (`Rss::fields`) and in the queues on which its packets arrive.

use crate::packet::{self, NoFlow, ParsedPacket};

/// EtherTypes of VLAN tags: IEEE 802.1Q, 802.1ad, and the one that devices used before 802.1ad.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Most tags that are skipped, as in [`packet`].
const MOST_TAGS: usize = 4;

/// Whether the frame still has all its VLAN tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tags {
    /// As on the wire, as in most captures.
    AsOnWire,
    /// The kernel moved the outermost tag out of the frame, as it does before packet sockets see it
    /// (`net/core/dev.c`, `__netif_receive_skb_core`). So a tag that is left in the frame is a second one. The tag
    /// 0x9100 is not moved.
    OutermostMoved,
}

/// A kind of traffic, by what most devices can hash of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrafficClass {
    /// Whole packets of a protocol with ports that carry no known tunnel.
    Ports,
    /// VXLAN: UDP to port 4789 or 8472.
    Vxlan,
    /// Geneve: UDP to port 6081.
    Geneve,
    /// GUE (generic UDP encapsulation): UDP to port 6080.
    Gue,
    /// UDP from or to port 51820, the usual port of WireGuard. Other ports are not recognized.
    Wireguard,
    /// ESP in UDP (NAT traversal): UDP from or to port 4500.
    EspInUdp,
    /// GTP-U: UDP from or to port 2152.
    Gtp,
    /// L2TP: UDP from or to port 1701.
    L2tp,
    /// Fragments, the first ones included.
    Fragment,
    /// ESP.
    Esp,
    /// AH.
    Ah,
    /// GRE, NVGRE and ERSPAN included.
    Gre,
    /// IPv4 or IPv6 in IPv4 or IPv6.
    IpInIp,
    /// IPv6 with extension headers before the ports. Devices differ in whether they skip them.
    Ipv6Extensions,
    /// Other protocols of IP, which have no ports: ICMP, IGMP, OSPF, …
    OtherIp,
    /// PPPoE session with IPv4 inside.
    PppoeIpv4,
    /// PPPoE session with IPv6 inside.
    PppoeIpv6,
    /// PPPoE discovery, and session packets that carry no IP (LCP and the like).
    PppoeControl,
    /// IP in two VLAN tags or more.
    QinQ,
    /// MPLS.
    Mpls,
    /// ARP.
    Arp,
    /// Frames of other EtherTypes, and 802.3 frames with a length.
    OtherEtherType,
    /// Headers that are broken or cut off.
    Unreadable,
}

/// What most devices can hash of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HashedBy {
    /// Addresses and ports of each flow, as far as the hash fields include the ports.
    Ports,
    /// Outer addresses and ports. The sender derives the outer source port from the inner flow (RFC 7348, section 5;
    /// RFC 8926, section 3.3), so the inner flows are spread if the ports of UDP are hashed.
    EntropyPorts,
    /// Outer addresses and ports, which are the same for all packets of a peer: one queue for each peer.
    PeerPorts,
    /// Addresses alone: one queue for each pair of addresses.
    Addresses,
    /// Nothing: all such packets arrive on one queue, usually queue 0. Some devices do hash some of it.
    Nothing,
}

impl HashedBy {
    /// Name in JSON.
    pub fn code(self) -> &'static str {
        match self {
            Self::Ports => "ports",
            Self::EntropyPorts => "entropy_ports",
            Self::PeerPorts => "peer_ports",
            Self::Addresses => "addresses",
            Self::Nothing => "nothing",
        }
    }
}

impl TrafficClass {
    /// All classes, in the order in which they are listed.
    pub const ALL: [Self; 23] = [
        Self::Ports,
        Self::Vxlan,
        Self::Geneve,
        Self::Gue,
        Self::Wireguard,
        Self::EspInUdp,
        Self::Gtp,
        Self::L2tp,
        Self::Fragment,
        Self::Esp,
        Self::Ah,
        Self::Gre,
        Self::IpInIp,
        Self::Ipv6Extensions,
        Self::OtherIp,
        Self::PppoeIpv4,
        Self::PppoeIpv6,
        Self::PppoeControl,
        Self::QinQ,
        Self::Mpls,
        Self::Arp,
        Self::OtherEtherType,
        Self::Unreadable,
    ];

    /// What most devices hash of it.
    pub fn hashed_by(self) -> HashedBy {
        match self {
            Self::Ports => HashedBy::Ports,
            Self::Vxlan | Self::Geneve | Self::Gue => HashedBy::EntropyPorts,
            Self::Wireguard | Self::EspInUdp | Self::Gtp | Self::L2tp => HashedBy::PeerPorts,
            Self::Fragment | Self::Esp | Self::Ah | Self::Gre | Self::IpInIp | Self::Ipv6Extensions | Self::OtherIp => {
                HashedBy::Addresses
            }
            Self::PppoeIpv4
            | Self::PppoeIpv6
            | Self::PppoeControl
            | Self::QinQ
            | Self::Mpls
            | Self::Arp
            | Self::OtherEtherType
            | Self::Unreadable => HashedBy::Nothing,
        }
    }

    /// Whether many flows of this class may share one queue even if all ports are hashed. Not of frames that could not be
    /// read, which may be anything.
    pub fn is_limited(self) -> bool {
        self != Self::Unreadable
            && matches!(self.hashed_by(), HashedBy::PeerPorts | HashedBy::Addresses | HashedBy::Nothing)
    }

    /// Whether the kernel's own hash, which RPS uses, covers the flow inside where most devices do not hash it
    /// (`net/core/flow_dissector.c`: PPPoE sessions, two VLAN tags, GRE, IP in IP, extension headers of IPv6). It
    /// looks into neither MPLS nor ESP nor UDP, and hashes fragments by their addresses.
    pub fn is_spread_by_rps(self) -> bool {
        matches!(self, Self::PppoeIpv4 | Self::PppoeIpv6 | Self::QinQ | Self::Gre | Self::IpInIp | Self::Ipv6Extensions)
    }

    /// Name in JSON.
    pub fn code(self) -> &'static str {
        match self {
            Self::Ports => "ports",
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
            Self::Gue => "gue",
            Self::Wireguard => "wireguard",
            Self::EspInUdp => "esp_in_udp",
            Self::Gtp => "gtp",
            Self::L2tp => "l2tp",
            Self::Fragment => "fragment",
            Self::Esp => "esp",
            Self::Ah => "ah",
            Self::Gre => "gre",
            Self::IpInIp => "ip_in_ip",
            Self::Ipv6Extensions => "ipv6_extensions",
            Self::OtherIp => "other_ip",
            Self::PppoeIpv4 => "pppoe_ipv4",
            Self::PppoeIpv6 => "pppoe_ipv6",
            Self::PppoeControl => "pppoe_control",
            Self::QinQ => "qinq",
            Self::Mpls => "mpls",
            Self::Arp => "arp",
            Self::OtherEtherType => "other_ethertype",
            Self::Unreadable => "unreadable",
        }
    }
}

/// The class of an Ethernet frame that begins with these bytes; [`packet::ENOUGH`] of them suffice.
pub fn class(frame: &[u8], tags: Tags) -> TrafficClass {
    classify(frame, tags).unwrap_or(TrafficClass::Unreadable)
}

fn half(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(b.get(at..at + 2)?.try_into().ok()?))
}

/// `None`: broken or cut off.
fn classify(frame: &[u8], tags: Tags) -> Option<TrafficClass> {
    let (mut kind, mut rest) = (half(frame, 12)?, frame.get(14..)?);
    let mut in_frame = 0;
    let mut moved = false;
    while TAGS.contains(&kind) {
        moved |= in_frame == 0 && tags == Tags::OutermostMoved && kind != 0x9100;
        in_frame += 1;
        if in_frame > MOST_TAGS {
            return None;
        }
        (kind, rest) = (half(rest, 2)?, rest.get(4..)?);
    }
    let tagged_twice = in_frame + usize::from(moved) > 1;
    match kind {
        0x0800 | 0x86dd if tagged_twice => ip(kind, rest).map(|_| TrafficClass::QinQ),
        0x0800 | 0x86dd => ip(kind, rest),
        0x8863 => Some(TrafficClass::PppoeControl),
        // Version and type, code, session, length; then the protocol of PPP (RFC 2516, section 4).
        0x8864 => Some(match half(rest, 6)? {
            0x0021 => TrafficClass::PppoeIpv4,
            0x0057 => TrafficClass::PppoeIpv6,
            _ => TrafficClass::PppoeControl,
        }),
        0x8847 | 0x8848 => Some(TrafficClass::Mpls),
        0x0806 => Some(TrafficClass::Arp),
        _ => Some(TrafficClass::OtherEtherType),
    }
}

/// `LINKTYPE_RAW`: the bytes begin with an IP header.
const RAW_IP: u32 = 101;

fn ip(kind: u16, b: &[u8]) -> Option<TrafficClass> {
    let version = if kind == 0x0800 { 4 } else { 6 };
    if b.first()? >> 4 != version {
        return None;
    }
    match packet::parse_frame(RAW_IP, b) {
        Ok(p) => of_packet(&p),
        Err(NoFlow::Link(_) | NoFlow::NotIp(_) | NoFlow::Short | NoFlow::Malformed) => None,
    }
}

fn of_packet(p: &ParsedPacket) -> Option<TrafficClass> {
    if p.fragment {
        return Some(TrafficClass::Fragment);
    }
    if p.short {
        return None;
    }
    Some(match (p.protocol, p.ports) {
        (17, Some((_, 4789 | 8472))) => TrafficClass::Vxlan,
        (17, Some((_, 6081))) => TrafficClass::Geneve,
        (17, Some((_, 6080))) => TrafficClass::Gue,
        (17, Some((51820, _) | (_, 51820))) => TrafficClass::Wireguard,
        (17, Some((4500, _) | (_, 4500))) => TrafficClass::EspInUdp,
        (17, Some((2152, _) | (_, 2152))) => TrafficClass::Gtp,
        (17, Some((1701, _) | (_, 1701))) => TrafficClass::L2tp,
        (50, _) => TrafficClass::Esp,
        (51, _) => TrafficClass::Ah,
        (47, _) => TrafficClass::Gre,
        (4 | 41, _) => TrafficClass::IpInIp,
        (_, Some(_)) if p.extended => TrafficClass::Ipv6Extensions,
        (_, Some(_)) => TrafficClass::Ports,
        _ => TrafficClass::OtherIp,
    })
}

#[cfg(test)]
#[path = "traffic_class_tests.rs"]
mod tests;

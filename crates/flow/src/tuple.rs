//! One direction of a flow, as its packets carry it, and the notation for it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use ringwise_kfmt::packet::{Flow, ParsedPacket};
use serde::{Serialize, Serializer};

/// Protocol number of IANA.
pub const TCP: u8 = 6;
/// Protocol number of IANA.
pub const UDP: u8 = 17;
/// Protocol number of IANA.
pub const SCTP: u8 = 132;

/// Names of `/etc/protocols` in common use; other protocols are numbers.
const NAMES: [(&str, u8); 12] = [
    ("tcp", TCP),
    ("udp", UDP),
    ("sctp", SCTP),
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("ipv6", 41),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("vrrp", 112),
];

/// A flow in one direction. Both addresses are of the same family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tuple {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Protocol number of IANA.
    pub protocol: u8,
    /// Source and destination port. `None`: the protocol has no ports, or the packet does not carry them.
    pub ports: Option<(u16, u16)>,
    /// The packet is a fragment. Only the first fragment carries ports, so devices hash no ports of fragments.
    pub fragment: bool,
    /// The outermost VLAN tag. `None`: untagged, or the tag was removed earlier.
    pub vlan: Option<u16>,
}

impl Tuple {
    /// The tuple of a flow as sampled headers show it. `None`: not IP.
    pub fn of_flow(flow: &Flow) -> Option<Self> {
        let Flow::Ip { protocol, from, to, ports } = *flow else { return None };
        let ports = ports.filter(|_| has_ports(protocol));
        // For protocols with ports, only fragments have none.
        let fragment = has_ports(protocol) && ports.is_none();
        Some(Self { src: from, dst: to, protocol, ports, fragment, vlan: None })
    }

    /// The tuple as the device sees it: fragments by their addresses only, also the first one, which has ports.
    pub fn of_packet(s: &ParsedPacket) -> Self {
        let ports = s.ports.filter(|_| !s.fragment && has_ports(s.protocol));
        Self { src: s.src, dst: s.dst, protocol: s.protocol, ports, fragment: s.fragment, vlan: s.vlan }
    }

    /// Whether the addresses are of IPv6.
    pub fn is_v6(&self) -> bool {
        self.src.is_ipv6()
    }

    /// The other direction.
    pub fn reversed(&self) -> Self {
        Self { src: self.dst, dst: self.src, ports: self.ports.map(|(s, d)| (d, s)), ..*self }
    }

    /// ethtool's name of the flow type: `tcp4`, `udp6`, `ah4`; `ip4` and `ip6` for what is hashed as addresses only.
    pub fn flow_type(&self) -> &'static str {
        let (four, six) = match (self.protocol, self.fragment) {
            (TCP, false) if self.ports.is_some() => ("tcp4", "tcp6"),
            (UDP, false) if self.ports.is_some() => ("udp4", "udp6"),
            (SCTP, false) if self.ports.is_some() => ("sctp4", "sctp6"),
            _ => ("ip4", "ip6"),
        };
        if self.is_v6() { six } else { four }
    }
}

/// The name of the protocol, such as `tcp`, or its number if it has no name here.
pub fn protocol_name(number: u8) -> String {
    NAMES.iter().find(|n| n.1 == number).map_or_else(|| number.to_string(), |n| n.0.to_string())
}

pub(crate) fn protocol_number(name: &str) -> Option<u8> {
    let found = NAMES.iter().find(|n| n.0.eq_ignore_ascii_case(name)).map(|n| n.1);
    found.or_else(|| name.parse().ok())
}

/// Whether packets of the protocol begin with two ports.
pub fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | SCTP)
}

fn end(f: &mut fmt::Formatter<'_>, a: IpAddr, port: Option<u16>) -> fmt::Result {
    match (a, port) {
        (IpAddr::V6(a), Some(p)) => write!(f, "[{a}]:{p}"),
        (IpAddr::V4(a), Some(p)) => write!(f, "{a}:{p}"),
        (a, None) => write!(f, "{a}"),
    }
}

impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        end(f, self.src, self.ports.map(|p| p.0))?;
        write!(f, "-")?;
        end(f, self.dst, self.ports.map(|p| p.1))?;
        write!(f, "/{}", protocol_name(self.protocol))?;
        if self.fragment { write!(f, "/frag") } else { Ok(()) }
    }
}

impl Serialize for Tuple {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// A flow as the user writes it. A missing port means all ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSpec {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Protocol number of IANA.
    pub protocol: u8,
    /// `None`: any port.
    pub src_port: Option<u16>,
    /// `None`: any port.
    pub dst_port: Option<u16>,
    /// The packets are fragments, which carry no ports, so no ports are hashed.
    pub fragment: bool,
}

/// An error in the text of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadFlow {
    /// The wrong text, at most 60 characters, without control characters.
    pub found: String,
    /// A description of correct text.
    pub expected: String,
}

impl BadFlow {
    /// An error about `found`; an empty text counts as "nothing".
    pub fn new(found: &str, expected: impl Into<String>) -> Self {
        let mut found: String = found.chars().take(60).map(|c| if c.is_control() { '?' } else { c }).collect();
        if found.is_empty() {
            found = "nothing".into();
        }
        Self { found, expected: expected.into() }
    }
}

impl fmt::Display for BadFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow: found \"{}\", expected {}", self.found, self.expected)
    }
}

impl std::error::Error for BadFlow {}

const SHAPE: &str = "SOURCE:PORT-DESTINATION:PORT/PROTOCOL, e.g. 10.0.0.1:1234-10.0.0.2:80/tcp or \
                     [2001:db8::1]:1234-[2001:db8::2]:80/udp";

impl FlowSpec {
    /// The exact flow. `None`: a port is missing.
    pub fn exact(&self) -> Option<Tuple> {
        let ports = match (self.src_port, self.dst_port) {
            _ if !has_ports(self.protocol) || self.fragment => None,
            (Some(s), Some(d)) => Some((s, d)),
            _ => return None,
        };
        Some(self.with(ports))
    }

    fn with(&self, ports: Option<(u16, u16)>) -> Tuple {
        Tuple { src: self.src, dst: self.dst, protocol: self.protocol, ports, fragment: self.fragment, vlan: None }
    }

    /// All flows if one port is missing. If both are missing, an even sample of 65,536 flows.
    pub fn all(&self) -> Vec<Tuple> {
        if let Some(one) = self.exact() {
            return vec![one];
        }
        let each = 0..=u16::MAX;
        match (self.src_port, self.dst_port) {
            (Some(s), _) => each.map(|d| self.with(Some((s, d)))).collect(),
            (_, Some(d)) => each.map(|s| self.with(Some((s, d)))).collect(),
            // An odd factor yields every port once.
            _ => each.map(|s| self.with(Some((s, s.wrapping_mul(40_503).wrapping_add(11))))).collect(),
        }
    }
}

impl FromStr for FlowSpec {
    type Err = BadFlow;

    fn from_str(text: &str) -> Result<Self, BadFlow> {
        let text = text.trim();
        let (ends, rest) = text.split_once('/').ok_or_else(|| {
            let lacks_only_that = text.split_once('-').is_some_and(|(a, b)| side(a).is_ok() && side(b).is_ok());
            let expected =
                if lacks_only_that { format!("the protocol behind it, e.g. {text}/tcp") } else { SHAPE.into() };
            BadFlow::new(text, expected)
        })?;
        let (name, more) = rest.split_once('/').map_or((rest, None), |(n, m)| (n, Some(m)));
        let protocol = protocol_number(name)
            .ok_or_else(|| BadFlow::new(name, "a protocol: tcp, udp, sctp, icmp, esp, ... or its number"))?;
        let fragment = match more {
            None => false,
            Some("frag") => true,
            Some(other) => return Err(BadFlow::new(other, "nothing, or frag for fragments")),
        };
        let (a, b) = ends.split_once('-').ok_or_else(|| BadFlow::new(ends, SHAPE))?;
        let ((src, src_port), (dst, dst_port)) = (side(a)?, side(b)?);
        if src.is_ipv6() != dst.is_ipv6() {
            return Err(BadFlow::new(ends, "two addresses of one family (both IPv4 or both IPv6)"));
        }
        if (src_port.is_some() || dst_port.is_some()) && !has_ports(protocol) {
            return Err(BadFlow::new(ends, format!("no ports, because {} has none", protocol_name(protocol))));
        }
        Ok(Self { src, dst, protocol, src_port, dst_port, fragment })
    }
}

/// `10.0.0.1`, `10.0.0.1:80`, `10.0.0.1:*`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`
pub(crate) fn side(text: &str) -> Result<(IpAddr, Option<u16>), BadFlow> {
    let bad = || BadFlow::new(text, "an address, or ADDRESS:PORT (an IPv6 address with a port in [brackets])");
    let port = |p: &str| match p {
        "*" => Ok(None),
        p => p.parse::<u16>().map(Some).map_err(|_| BadFlow::new(p, "a port from 0 to 65535, or *")),
    };
    if let Some(inner) = text.strip_prefix('[') {
        let (address, rest) = inner.split_once(']').ok_or_else(bad)?;
        let address: Ipv6Addr = address.parse().map_err(|_| bad())?;
        return match rest.strip_prefix(':') {
            None if rest.is_empty() => Ok((plain(address), None)),
            None => Err(bad()),
            Some(p) => Ok((plain(address), port(p)?)),
        };
    }
    match text.split_once(':') {
        None => Ok((text.parse::<IpAddr>().map_err(|_| bad())?, None)),
        Some((_, rest)) if rest.contains(':') => Ok((plain(text.parse().map_err(|_| bad())?), None)),
        Some((address, p)) => {
            let address: std::net::Ipv4Addr = address.parse().map_err(|_| bad())?;
            Ok((IpAddr::V4(address), port(p)?))
        }
    }
}

/// Converts `::ffff:10.0.0.1`, which is IPv4 on the wire.
fn plain(a: Ipv6Addr) -> IpAddr {
    a.to_ipv4_mapped().map_or(IpAddr::V6(a), IpAddr::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_flows_can_be_parsed() {
        for text in [
            "10.0.0.1:1234-10.0.0.2:80/tcp",
            "[2001:db8::1]:1-[2001:db8::2]:65535/udp",
            "10.0.0.1-10.0.0.2/icmp",
            "2001:db8::1-2001:db8::2/esp",
            "10.0.0.1-10.0.0.2/udp/frag",
            "10.0.0.1-10.0.0.2/99",
        ] {
            let t = text.parse::<FlowSpec>().unwrap().exact().unwrap();
            assert_eq!(t.to_string(), text);
            assert_eq!(t.reversed().reversed(), t);
        }
    }

    #[test]
    fn the_answer_goes_from_the_destination_port_to_the_source_port() {
        for (text, answer) in [
            ("10.0.0.1:1234-10.0.0.2:80/tcp", "10.0.0.2:80-10.0.0.1:1234/tcp"),
            ("10.0.0.1-10.0.0.2/icmp", "10.0.0.2-10.0.0.1/icmp"),
        ] {
            let t = text.parse::<FlowSpec>().unwrap().exact().unwrap();
            assert_eq!(t.reversed().to_string(), answer);
        }
    }

    #[test]
    fn missing_ports() {
        let one: FlowSpec = "10.0.0.1-10.0.0.2:80/tcp".parse().unwrap();
        assert_eq!((one.exact(), one.all().len()), (None, 65_536));
        let both: FlowSpec = "10.0.0.1:*-10.0.0.2/udp".parse().unwrap();
        let distinct: std::collections::HashSet<_> = both.all().iter().map(|t| t.ports.unwrap().1).collect();
        assert_eq!(distinct.len(), 65_536);
    }

    #[test]
    fn errors_name_the_mistake() {
        for (text, word) in [
            ("", "nothing"),
            ("10.0.0.1", "PROTOCOL"),
            ("10.0.0.1-10.0.0.2", "10.0.0.1-10.0.0.2/tcp"),
            ("10.0.0.1:1/tcp", "SOURCE:PORT"),
            ("10.0.0.1:1-10.0.0.2:2/tpc", "protocol"),
            ("10.0.0.1:1-10.0.0.2:65536/tcp", "65535"),
            ("10.0.0.300:1-10.0.0.2:2/tcp", "address"),
            ("10.0.0.1:1-[2001:db8::2]:2/tcp", "one family"),
            ("10.0.0.1:1-10.0.0.2:2/icmp", "no ports"),
            ("[2001:db8::1:1-[2001:db8::2]:2/tcp", "address"),
            ("[2001:db8::1]x-[2001:db8::2]:2/tcp", "address"),
            ("10.0.0.1:1-10.0.0.2:2/tcp/frog", "frag"),
        ] {
            let e = text.parse::<FlowSpec>().unwrap_err().to_string();
            assert!(e.contains(word), "{text}: {e}");
        }
    }
}

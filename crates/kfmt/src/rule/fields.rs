//! The fields of each flow type, and their offsets in `struct ethtool_rx_flow_spec` (linux/ethtool.h).

/// How a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Mac,
    Ip4,
    Ip6,
    /// A number of this many bytes, decimal.
    Number(usize),
    /// The same, hexadecimal.
    Hex(usize),
}

impl Kind {
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Mac => 6,
            Self::Ip4 => 4,
            Self::Ip6 => 16,
            Self::Number(n) | Self::Hex(n) => n,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub name: &'static str,
    pub kind: Kind,
    /// Offset of the value; its mask is [`TO_MASK`] bytes later.
    pub at: usize,
}

/// Distance from a value to its mask: the same for `h_u` (4) and `m_u` (76) as for `h_ext` (56) and `m_ext` (128).
pub(super) const TO_MASK: usize = 72;

pub(super) struct Flow {
    pub name: &'static str,
    /// `TCP_V4_FLOW` …
    pub number: u32,
    fields: &'static [Field],
}

const fn f(name: &'static str, kind: Kind, at: usize) -> Field {
    Field { name, kind, at }
}

/// `struct ethtool_tcpip4_spec`: ip4src 0, ip4dst 4, psrc 8, pdst 10, tos 12.
const PORTS4: &[Field] = &[
    f("src-ip", Kind::Ip4, 4),
    f("dst-ip", Kind::Ip4, 8),
    f("tos", Kind::Number(1), 16),
    f("src-port", Kind::Number(2), 12),
    f("dst-port", Kind::Number(2), 14),
];
/// `struct ethtool_ah_espip4_spec`: ip4src 0, ip4dst 4, spi 8, tos 12.
const SPI4: &[Field] = &[
    f("src-ip", Kind::Ip4, 4),
    f("dst-ip", Kind::Ip4, 8),
    f("tos", Kind::Number(1), 16),
    f("spi", Kind::Number(4), 12),
];
/// `struct ethtool_usrip4_spec`: ip4src 0, ip4dst 4, l4_4_bytes 8, tos 12, ip_ver 13, proto 14.
const IP4: &[Field] = &[
    f("src-ip", Kind::Ip4, 4),
    f("dst-ip", Kind::Ip4, 8),
    f("tos", Kind::Number(1), 16),
    f("l4proto", Kind::Number(1), 18),
    f("l4data", Kind::Hex(4), 12),
    f("spi", Kind::Number(4), 12),
    f("src-port", Kind::Number(2), 12),
    f("dst-port", Kind::Number(2), 14),
];
/// `struct ethtool_tcpip6_spec`: ip6src 0, ip6dst 16, psrc 32, pdst 34, tclass 36.
const PORTS6: &[Field] = &[
    f("src-ip", Kind::Ip6, 4),
    f("dst-ip", Kind::Ip6, 20),
    f("tclass", Kind::Number(1), 40),
    f("src-port", Kind::Number(2), 36),
    f("dst-port", Kind::Number(2), 38),
];
/// `struct ethtool_ah_espip6_spec`: ip6src 0, ip6dst 16, spi 32, tclass 36.
const SPI6: &[Field] = &[
    f("src-ip", Kind::Ip6, 4),
    f("dst-ip", Kind::Ip6, 20),
    f("tclass", Kind::Number(1), 40),
    f("spi", Kind::Number(4), 36),
];
/// `struct ethtool_usrip6_spec`: ip6src 0, ip6dst 16, l4_4_bytes 32, tclass 36, l4_proto 37.
const IP6: &[Field] = &[
    f("src-ip", Kind::Ip6, 4),
    f("dst-ip", Kind::Ip6, 20),
    f("tclass", Kind::Number(1), 40),
    f("l4proto", Kind::Number(1), 41),
    f("l4data", Kind::Hex(4), 36),
    f("spi", Kind::Number(4), 36),
    f("src-port", Kind::Number(2), 36),
    f("dst-port", Kind::Number(2), 38),
];
/// `struct ethhdr`: h_dest 0, h_source 6, h_proto 12.
const ETHER: &[Field] = &[f("src", Kind::Mac, 10), f("dst", Kind::Mac, 4), f("proto", Kind::Hex(2), 16)];

/// `struct ethtool_flow_ext`: h_dest 2, vlan_etype 8, vlan_tci 10, data 12.
pub(super) const DST_MAC: Field = f("dst-mac", Kind::Mac, 58);
pub(super) const EXT: [Field; 3] =
    [f("vlan-etype", Kind::Hex(2), 64), f("vlan", Kind::Number(2), 66), f("user-def", Kind::Hex(8), 68)];

pub(super) const ETHER_FLOW: u32 = 0x12;
pub(super) const IP_USER_FLOW: u32 = 0x0d;
pub(super) const IPV6_USER_FLOW: u32 = 0x0e;

const fn flow_of(name: &'static str, number: u32, fields: &'static [Field]) -> Flow {
    Flow { name, number, fields }
}

/// Flow types of ethtool(8).
pub(super) static FLOWS: [Flow; 13] = [
    flow_of("ether", ETHER_FLOW, ETHER),
    flow_of("ip4", IP_USER_FLOW, IP4),
    flow_of("tcp4", 0x01, PORTS4),
    flow_of("udp4", 0x02, PORTS4),
    flow_of("sctp4", 0x03, PORTS4),
    flow_of("ah4", 0x09, SPI4),
    flow_of("esp4", 0x0a, SPI4),
    flow_of("ip6", IPV6_USER_FLOW, IP6),
    flow_of("tcp6", 0x05, PORTS6),
    flow_of("udp6", 0x06, PORTS6),
    flow_of("sctp6", 0x07, PORTS6),
    flow_of("ah6", 0x0b, SPI6),
    flow_of("esp6", 0x0c, SPI6),
];

impl Flow {
    /// The fields of the type, then those of every type.
    pub(super) fn fields(&self) -> impl Iterator<Item = &'static Field> {
        let mac = (self.number != ETHER_FLOW).then_some(&DST_MAC);
        self.fields.iter().chain(&EXT).chain(mac)
    }

    pub(super) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields().find(|f| f.name == name)
    }

    pub(super) fn has_ports_and_protocol(&self) -> bool {
        matches!(self.number, IP_USER_FLOW | IPV6_USER_FLOW)
    }
}

pub(super) fn flow(name: &str) -> Option<&'static Flow> {
    // The short form that some programs use.
    let name = match name {
        "tcp" | "udp" | "sctp" => return flow(&format!("{name}4")),
        "eth" => "ether",
        n => n,
    };
    FLOWS.iter().find(|f| f.name == name)
}

/// `ether, ip4, tcp4, …`
pub fn flow_names() -> String {
    flows().join(", ")
}

pub(super) fn flows() -> Vec<&'static str> {
    FLOWS.iter().map(|f| f.name).collect()
}

pub(super) fn flow_by_number(number: u32) -> Option<&'static Flow> {
    FLOWS.iter().find(|f| f.number == number)
}

/// The field for a word of the user.
pub(super) fn canonical(flow: &Flow, word: &str) -> Option<&'static str> {
    let word = match (flow.number, word) {
        (ETHER_FLOW, "src-mac") => "src",
        (ETHER_FLOW, "dst-mac") => "dst",
        (_, "dscp") => return ["tos", "tclass"].into_iter().find(|n| flow.field(n).is_some()),
        (_, w) => w,
    };
    flow.field(word).map(|f| f.name)
}

/// Names of the fields of a flow type; empty for a type without a name here.
pub fn names(name: &str) -> Vec<&'static str> {
    flow(name).map(|f| f.fields().map(|f| f.name).collect()).unwrap_or_default()
}

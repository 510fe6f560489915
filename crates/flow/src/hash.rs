//! What of a packet goes into the hash: fields by flow type, and transforms that make both directions alike.

use std::net::IpAddr;

use serde::Serialize;

use crate::toeplitz::LONGEST;
use crate::tuple::Tuple;
use crate::undecided::PacketProperty;

/// Fields that a prediction can be made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fields {
    /// Source address (ethtool's letter `s`).
    pub src_ip: bool,
    /// Destination address (`d`).
    pub dst_ip: bool,
    /// Source port, the first two bytes behind the IP header (`f`).
    pub src_port: bool,
    /// Destination port, the next two bytes (`n`).
    pub dst_port: bool,
}

/// A letter with which the hash cannot be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpredictable {
    /// The hash includes a property that a flow does not contain.
    Includes(PacketProperty),
    /// The device discards packets of this flow type.
    Discarded,
}

impl Fields {
    /// Both addresses, no ports.
    pub const ADDRESSES: Self = Self { src_ip: true, dst_ip: true, src_port: false, dst_port: false };

    /// From ethtool's letters.
    pub fn parse(letters: &str) -> Result<Self, Unpredictable> {
        let mut f = Self::default();
        for l in letters.chars() {
            match l {
                's' => f.src_ip = true,
                'd' => f.dst_ip = true,
                'f' => f.src_port = true,
                'n' => f.dst_port = true,
                'm' => return Err(Unpredictable::Includes(PacketProperty::MacAddresses)),
                'v' => return Err(Unpredictable::Includes(PacketProperty::VlanTag)),
                't' => return Err(Unpredictable::Includes(PacketProperty::Protocol)),
                'e' => return Err(Unpredictable::Includes(PacketProperty::TunnelId)),
                'l' => return Err(Unpredictable::Includes(PacketProperty::FlowLabel)),
                'r' => return Err(Unpredictable::Discarded),
                _ => return Err(Unpredictable::Includes(PacketProperty::Other)),
            }
        }
        Ok(f)
    }

    /// Whether at least one port is hashed.
    pub fn has_ports(self) -> bool {
        self.src_port || self.dst_port
    }

    /// The fields for people: `addresses + ports`.
    pub fn words(self) -> String {
        let addresses = match (self.src_ip, self.dst_ip) {
            (true, true) => "addresses",
            (true, false) => "source address",
            (false, true) => "destination address",
            (false, false) => "",
        };
        let ports = match (self.src_port, self.dst_port) {
            (true, true) => "ports",
            (true, false) => "source port",
            (false, true) => "destination port",
            (false, false) => "",
        };
        match (addresses, ports) {
            ("", "") => "nothing".into(),
            (a, "") => format!("{a} only"),
            ("", p) => format!("{p} only"),
            (a, p) => format!("{a} + {p}"),
        }
    }
}

impl std::fmt::Display for Fields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words())
    }
}

/// ethtool's `xfrm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transform {
    /// Fields are hashed as they are.
    #[default]
    None,
    /// Source and destination are replaced by their XOR (`RXH_XFRM_SYM_XOR`).
    SymmetricXor,
    /// Source and destination are replaced by their OR and their XOR (`RXH_XFRM_SYM_OR_XOR`).
    SymmetricOrXor,
}

impl Transform {
    /// The transform of a name that `ethtool --json -x` and a snapshot use. `None`: not one of them.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Self::None),
            "symmetric-xor" => Some(Self::SymmetricXor),
            "symmetric-or-xor" => Some(Self::SymmetricOrXor),
            _ => None,
        }
    }
}

/// Bytes of the hash input.
#[derive(Debug, Clone, Copy)]
pub struct Input {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Input {
    /// Addresses before ports, each in network byte order.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn put(&mut self, more: &[u8]) {
        self.bytes[self.len..self.len + more.len()].copy_from_slice(more);
        self.len += more.len();
    }
}

/// First and second half as the transform leaves them.
fn pair<const N: usize>(t: Transform, a: [u8; N], b: [u8; N]) -> ([u8; N], [u8; N]) {
    let xor: [u8; N] = std::array::from_fn(|i| a[i] ^ b[i]);
    match t {
        Transform::None => (a, b),
        Transform::SymmetricXor => (xor, xor),
        Transform::SymmetricOrXor => (std::array::from_fn(|i| a[i] | b[i]), xor),
    }
}

/// Ports that the packet does not carry are not part of it, whatever the fields say.
pub fn input(t: &Tuple, fields: Fields, transform: Transform) -> Input {
    let mut out = Input { bytes: [0; LONGEST], len: 0 };
    let mut addresses = |a: &[u8], b: &[u8]| {
        if fields.src_ip {
            out.put(a);
        }
        if fields.dst_ip {
            out.put(b);
        }
    };
    match (t.src, t.dst) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let (a, b) = pair(transform, a.octets(), b.octets());
            addresses(&a, &b);
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let (a, b) = pair(transform, a.octets(), b.octets());
            addresses(&a, &b);
        }
        // Never made: both ends are of one family.
        _ => {}
    }
    if let (Some((s, d)), false) = (t.ports, t.fragment) {
        let (s, d) = pair(transform, s.to_be_bytes(), d.to_be_bytes());
        if fields.src_port {
            out.put(&s);
        }
        if fields.dst_port {
            out.put(&d);
        }
    }
    out
}

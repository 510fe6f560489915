//! `struct ethtool_rx_flow_spec`: flow_type 0, h_u 4 (52 bytes), h_ext 56 (20 bytes), m_u 76, m_ext 128, ring_cookie
//! 152 (64 bits), location 160; 168 bytes. Addresses and numbers are in network order. Set bits of a mask are compared
//! (in ethtool's syntax they are ignored).

use std::collections::BTreeMap;

use ringwise_model::{Action, Rule};

use super::fields::{self, DST_MAC, EXT, Field, IP_USER_FLOW, TO_MASK};
use super::{RuleError, value};
use crate::{ParseError, nl};

/// `sizeof(struct ethtool_rx_flow_spec)`.
pub const SPEC_SIZE: usize = 168;
const MATCH: std::ops::Range<usize> = 4..148;
const COOKIE: usize = 152;
const LOCATION: usize = 160;
/// `ip_ver` of ip4, which must be `ETH_RX_NFC_IP4`.
const IP_VER: usize = 17;
const ETH_RX_NFC_IP4: u8 = 1;

const FLOW_EXT: u32 = 0x8000_0000;
const FLOW_MAC_EXT: u32 = 0x4000_0000;
const FLOW_RSS: u32 = 0x2000_0000;
const RX_CLS_FLOW_DISC: u64 = u64::MAX;
const RX_CLS_FLOW_WAKE: u64 = u64::MAX - 1;
const VF_SHIFT: u32 = 32;

/// The field of a rule that cannot be written in words: everything that it matches, in hex, so that it can be compared
/// and restored.
pub const RAW: &str = "raw";

/// The struct, and the context beside it in `struct ethtool_rxnfc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSpec {
    /// `struct ethtool_rx_flow_spec` as it is in memory.
    pub bytes: [u8; SPEC_SIZE],
    /// Set if the flow type has FLOW_RSS.
    pub context: Option<u32>,
}

/// `type-0x13`: flow type with its flags, for a rule that cannot be written in words.
pub(super) fn raw_type(name: &str) -> Option<u32> {
    u32::from_str_radix(name.strip_prefix("type-0x")?, 16).ok()
}

impl FlowSpec {
    /// From an answer: `context` is the value beside the struct.
    pub fn from_bytes(bytes: &[u8], context: u32) -> Result<Self, ParseError> {
        let all: [u8; SPEC_SIZE] = match bytes.get(..SPEC_SIZE).and_then(|b| b.try_into().ok()) {
            Some(b) => b,
            None => {
                let found = format!("{} bytes", bytes.len());
                return Err(ParseError::new("ethtool_rx_flow_spec", found, "168 bytes"));
            }
        };
        let spec = Self { bytes: all, context: None };
        let context = (spec.flow_type() & FLOW_RSS != 0).then_some(context);
        Ok(Self { context, ..spec })
    }

    /// `*_FLOW` number with the flags `FLOW_EXT`, `FLOW_MAC_EXT` and `FLOW_RSS`.
    pub fn flow_type(&self) -> u32 {
        u32::from_ne_bytes([self.bytes[0], self.bytes[1], self.bytes[2], self.bytes[3]])
    }

    /// Location in the device's table; `RX_CLS_LOC_ANY` in a rule whose location the driver chooses.
    pub fn location(&self) -> u32 {
        let b = &self.bytes[LOCATION..LOCATION + 4];
        u32::from_ne_bytes([b[0], b[1], b[2], b[3]])
    }

    fn cookie(&self) -> u64 {
        self.bytes[COOKIE..COOKIE + 8].try_into().map(u64::from_ne_bytes).unwrap_or_default()
    }

    fn part(&self, at: usize, len: usize) -> &[u8] {
        &self.bytes[at..at + len]
    }

    fn value(&self, f: &Field) -> &[u8] {
        self.part(f.at, f.kind.bytes())
    }

    fn counts(&self, f: &Field) -> &[u8] {
        self.part(f.at + TO_MASK, f.kind.bytes())
    }

    /// Converts a rule for the kernel.
    pub fn of(rule: &Rule, location: u32) -> Result<Self, RuleError> {
        let mut spec = Self { bytes: [0; SPEC_SIZE], context: rule.context };
        let mut flow_type = match (fields::flow(&rule.flow), raw_type(&rule.flow)) {
            (Some(flow), _) => spec.fill(flow, &rule.fields)?,
            (None, Some(number)) => spec.fill_raw(number, &rule.fields)?,
            (None, None) => return Err(RuleError::unknown_type(&rule.flow)),
        };
        if rule.context.is_some() {
            flow_type |= FLOW_RSS;
        }
        let cookie = match rule.action {
            Action::Drop => RX_CLS_FLOW_DISC,
            Action::Wake => RX_CLS_FLOW_WAKE,
            Action::Queue(q) => u64::from(q),
            // 0 means the device itself.
            Action::Vf { vf, .. } if vf > 254 => {
                return Err(RuleError::new("vf", vf.to_string(), "the number of a virtual function, 0 to 254"));
            }
            Action::Vf { vf, queue } => (u64::from(vf) + 1) << VF_SHIFT | u64::from(queue),
        };
        spec.bytes[..4].copy_from_slice(&flow_type.to_ne_bytes());
        spec.bytes[COOKIE..COOKIE + 8].copy_from_slice(&cookie.to_ne_bytes());
        spec.bytes[LOCATION..LOCATION + 4].copy_from_slice(&location.to_ne_bytes());
        Ok(spec)
    }

    fn fill(&mut self, flow: &fields::Flow, given: &BTreeMap<String, String>) -> Result<u32, RuleError> {
        let mut flow_type = flow.number;
        for (name, text) in given {
            let field = fields::canonical(flow, name).and_then(|n| flow.field(n));
            let Some(field) = field else {
                return Err(RuleError::unknown_field(name, flow.name, &fields::names(flow.name)));
            };
            let (bits, counts) = match name.as_str() {
                "dscp" => value::parse(field, &value::dscp(text)?)?,
                _ => value::parse(field, text)?,
            };
            if self.counts(field).iter().any(|b| *b != 0) {
                return Err(RuleError::new(name, text, "only one of the fields that share this position"));
            }
            let (at, len) = (field.at, field.kind.bytes());
            self.bytes[at..at + len].copy_from_slice(&bits);
            self.bytes[at + TO_MASK..at + TO_MASK + len].copy_from_slice(&counts);
        }
        let counted = |s: &Self, f: &Field| s.counts(f).iter().any(|b| *b != 0);
        if EXT.iter().any(|f| counted(self, f)) {
            flow_type |= FLOW_EXT;
        }
        if counted(self, &DST_MAC) {
            flow_type |= FLOW_MAC_EXT;
        }
        if flow.number == IP_USER_FLOW {
            self.bytes[IP_VER] = ETH_RX_NFC_IP4;
        }
        Ok(flow_type)
    }

    fn fill_raw(&mut self, flow_type: u32, given: &BTreeMap<String, String>) -> Result<u32, RuleError> {
        let expected = "288 hexadecimal digits, as a device reported them";
        let text = given.get(RAW).filter(|_| given.len() == 1);
        let text = text.ok_or_else(|| RuleError::new(RAW, "", expected))?;
        let bytes = nl::unhex(text).ok().filter(|b| b.len() == MATCH.len());
        let bytes = bytes.ok_or_else(|| RuleError::new(RAW, text, expected))?;
        self.bytes[MATCH].copy_from_slice(&bytes);
        Ok(flow_type & !FLOW_RSS)
    }

    /// Converts to words. A rule that cannot be expressed completely is returned as raw bytes.
    pub fn rule(&self) -> Rule {
        let plain = self.flow_type() & !(FLOW_EXT | FLOW_MAC_EXT | FLOW_RSS);
        let action = match self.cookie() {
            RX_CLS_FLOW_DISC => Action::Drop,
            RX_CLS_FLOW_WAKE => Action::Wake,
            c => match (c >> VF_SHIFT) as u8 {
                0 => Action::Queue(c as u32),
                vf => Action::Vf { vf: u32::from(vf) - 1, queue: c as u32 },
            },
        };
        let rule = |flow: String, fields| Rule { flow, fields, action, context: self.context };
        if let Some(flow) = fields::flow_by_number(plain) {
            let out = rule(flow.name.to_string(), self.fields(flow));
            if Self::of(&out, 0).is_ok_and(|again| again.matches_as(self)) {
                return out;
            }
        }
        let hex = nl::hex(&self.bytes[MATCH]);
        rule(format!("type-{:#x}", self.flow_type() & !FLOW_RSS), BTreeMap::from([(RAW.to_string(), hex)]))
    }

    fn fields(&self, flow: &fields::Flow) -> BTreeMap<String, String> {
        let ty = self.flow_type();
        let l4 = self.l4_names(flow);
        let there = |f: &&Field| match f.name {
            "dst-mac" => ty & FLOW_MAC_EXT != 0,
            "vlan-etype" | "vlan" | "user-def" => ty & FLOW_EXT != 0,
            "l4data" | "spi" | "src-port" | "dst-port" if flow.has_ports_and_protocol() => l4.contains(&f.name),
            _ => true,
        };
        let all = flow.fields().filter(there);
        all.filter_map(|f| Some((f.name.to_string(), value::text(f, self.value(f), self.counts(f))?)))
            .collect::<BTreeMap<_, _>>()
    }

    /// The names of the four bytes after the addresses of ip4 and ip6, by the protocol.
    fn l4_names(&self, flow: &fields::Flow) -> &'static [&'static str] {
        let Some(proto) = flow.field("l4proto").filter(|f| self.counts(f) == [0xff]) else { return &["l4data"] };
        match self.value(proto)[0] {
            6 | 17 | 132 => &["src-port", "dst-port"],
            50 | 51 => &["spi"],
            _ => &["l4data"],
        }
    }

    /// Whether every compared bit is the same.
    fn matches_as(&self, other: &Self) -> bool {
        let there = |s: &Self, at: usize| {
            let ext = s.flow_type();
            match at {
                4..56 => true,
                58..64 => ext & FLOW_MAC_EXT != 0,
                64..76 => ext & FLOW_EXT != 0,
                _ => false,
            }
        };
        (4..76).filter(|at| *at != IP_VER || self.flow_type() & 0xff != IP_USER_FLOW).all(|at| {
            let of = |s: &Self| {
                let counts = if there(s, at) { s.bytes[at + TO_MASK] } else { 0 };
                (counts, s.bytes[at] & counts)
            };
            of(self) == of(other)
        })
    }
}

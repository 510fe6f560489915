//! Flow steering rules: `struct ethtool_rxnfc` with cmd 0, flow_type 4, data 8 (64 bits), fs 16 (168 bytes),
//! rule_cnt or rss_context 184, rule_locs from 188; 192 bytes without locations.

use super::{RXNFC_SIZE, set_word, short, word};
use crate::ParseError;
use crate::rule::{FlowSpec, LOC_SPECIAL, SPEC_SIZE};

/// Numbers in linux/ethtool.h.
pub(crate) mod cmd {
    pub(crate) const GRXCLSRLCNT: u32 = 0x2e;
    pub(crate) const GRXCLSRULE: u32 = 0x2f;
    pub(crate) const GRXCLSRLALL: u32 = 0x30;
    pub(crate) const SRXCLSRLDEL: u32 = 0x31;
    pub(crate) const SRXCLSRLINS: u32 = 0x32;
}

/// `RX_CLS_LOC_ANY`: the driver chooses the location.
pub const LOC_ANY: u32 = 0xffff_ffff;

const DATA: usize = 8;
const SPEC: usize = 16;
const SPEC_LOCATION: usize = SPEC + 160;
const COUNT: usize = 184;
const LOCATIONS: usize = 188;
const WHAT: &str = "ethtool_rxnfc";
/// Maximum number of locations that are requested at once, or accepted.
const MAX_LOCATIONS: u32 = 1 << 16;

/// The answer to ETHTOOL_GRXCLSRLCNT.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowRuleCount {
    /// Rules that are installed now (`rule_cnt`).
    pub rules: u32,
    /// Number of locations; 0: not reported.
    pub capacity: u32,
    /// The driver can choose the location of a new rule (`RX_CLS_LOC_SPECIAL`).
    pub chooses_location: bool,
}

fn head(cmd: u32) -> Vec<u8> {
    let mut b = vec![0; RXNFC_SIZE];
    set_word(&mut b, 0, cmd);
    b
}

fn checked(reply: &[u8]) -> Result<&[u8], ParseError> {
    if reply.len() < RXNFC_SIZE { Err(short(WHAT, reply, "192 bytes or more")) } else { Ok(reply) }
}

fn data(reply: &[u8]) -> u64 {
    reply[DATA..DATA + 8].try_into().map(u64::from_ne_bytes).unwrap_or_default()
}

fn set_data(b: &mut [u8], capacity: u32, chooses: bool) {
    let data = u64::from(capacity | if chooses { LOC_SPECIAL } else { 0 });
    b[DATA..DATA + 8].copy_from_slice(&data.to_ne_bytes());
}

/// Payload of an `ETHTOOL_GRXCLSRLCNT`: a `struct ethtool_rxnfc` without locations.
pub fn count_request() -> Vec<u8> {
    head(cmd::GRXCLSRLCNT)
}

/// Decodes the answer to [`count_request`]. A reply that is too short is an error.
pub fn count(reply: &[u8]) -> Result<FlowRuleCount, ParseError> {
    let reply = checked(reply)?;
    let data = data(reply) as u32;
    Ok(FlowRuleCount {
        rules: word(reply, COUNT).unwrap_or(0),
        capacity: data & !LOC_SPECIAL,
        chooses_location: data & LOC_SPECIAL != 0,
    })
}

/// The struct after the call, for simulated hosts.
pub fn count_reply(c: &FlowRuleCount) -> Vec<u8> {
    let mut b = head(cmd::GRXCLSRLCNT);
    set_data(&mut b, c.capacity, c.chooses_location);
    set_word(&mut b, COUNT, c.rules);
    b
}

/// An ETHTOOL_GRXCLSRLALL with space for this many locations. The kernel returns EMSGSIZE if there are more.
pub fn all_request(room: u32) -> Vec<u8> {
    let room = room.min(MAX_LOCATIONS);
    let mut b = head(cmd::GRXCLSRLALL);
    set_word(&mut b, COUNT, room);
    b.resize(RXNFC_SIZE.max(LOCATIONS + room as usize * 4), 0);
    b
}

/// Space in an [`all_request`] (for simulated hosts).
pub fn all_room(request: &[u8]) -> Result<u32, ParseError> {
    Ok(word(checked(request)?, COUNT).unwrap_or(0))
}

/// Locations in the driver's order.
pub fn all(reply: &[u8]) -> Result<Vec<u32>, ParseError> {
    let n = word(checked(reply)?, COUNT).unwrap_or(0).min(MAX_LOCATIONS + 1) as usize;
    match reply.get(LOCATIONS..LOCATIONS + n * 4) {
        Some(b) => Ok(b.as_chunks::<4>().0.iter().map(|&w| u32::from_ne_bytes(w)).collect()),
        None => Err(short(WHAT, reply, "the locations that rule_cnt announces")),
    }
}

/// For simulated hosts; the buffer is as large as that of the request.
pub fn all_reply(request: &[u8], capacity: u32, locations: &[u32]) -> Vec<u8> {
    let mut b = request.to_vec();
    b.resize(RXNFC_SIZE.max(LOCATIONS + locations.len() * 4).max(b.len()), 0);
    set_data(&mut b, capacity, false);
    set_word(&mut b, COUNT, locations.len() as u32);
    for (i, l) in locations.iter().enumerate() {
        set_word(&mut b, LOCATIONS + i * 4, *l);
    }
    b
}

/// ETHTOOL_GRXCLSRULE.
pub fn rule_request(location: u32) -> Vec<u8> {
    at(cmd::GRXCLSRULE, location)
}

/// ETHTOOL_SRXCLSRLDEL.
pub fn delete(location: u32) -> Vec<u8> {
    at(cmd::SRXCLSRLDEL, location)
}

fn at(cmd: u32, location: u32) -> Vec<u8> {
    let mut b = head(cmd);
    set_word(&mut b, SPEC_LOCATION, location);
    b
}

/// Location in a request, or in the kernel's answer to an insertion.
pub fn location(bytes: &[u8]) -> Result<u32, ParseError> {
    Ok(word(checked(bytes)?, SPEC_LOCATION).unwrap_or(0))
}

/// The rule in the answer to [`rule_request`], or in an [`insert`] (for simulated hosts).
pub fn rule(bytes: &[u8]) -> Result<FlowSpec, ParseError> {
    let bytes = checked(bytes)?;
    FlowSpec::from_bytes(&bytes[SPEC..SPEC + SPEC_SIZE], word(bytes, COUNT).unwrap_or(0))
}

fn with(cmd: u32, spec: &FlowSpec) -> Vec<u8> {
    let mut b = head(cmd);
    b[SPEC..SPEC + SPEC_SIZE].copy_from_slice(&spec.bytes);
    set_word(&mut b, COUNT, spec.context.unwrap_or(0));
    b
}

/// The struct after an ETHTOOL_GRXCLSRULE, for simulated hosts.
pub fn rule_reply(spec: &FlowSpec) -> Vec<u8> {
    with(cmd::GRXCLSRULE, spec)
}

/// ETHTOOL_SRXCLSRLINS.
pub fn insert(spec: &FlowSpec) -> Vec<u8> {
    with(cmd::SRXCLSRLINS, spec)
}

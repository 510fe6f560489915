//! Redacts replies of ethtool and of the `netdev` family (`linux/ethtool_netlink.h`, `linux/netdev.h`), and structs of the ioctl
//! (`linux/ethtool.h`). Whatever is not known to be harmless is removed, and so is a reply whose kind is not listed here.

use super::names::Pseudonyms;
use super::raw::{is_scalar, number, put, put_text, split};
use super::strings::{Strings, TextKind};
use super::text;

/// Attribute with index, name and flags of the device, in every ethtool reply.
const HEADER: u16 = 1;
const DEV_INDEX: u16 = 1;
const DEV_NAME: u16 = 2;
const NESTED: u16 = 0x8000;

/// What the attributes of a reply can be.
enum Form {
    /// Numbers, including nested ones.
    Numbers,
    /// Numbers, and names of features that the kernel and the driver define.
    Bits,
    /// Numbers, the table and the key.
    Rss,
}

/// By command number; with the last known attribute.
fn form(command: u32) -> Option<(Form, u16)> {
    Some(match command {
        11 => (Form::Bits, 5),     // features
        13 => (Form::Bits, 2),     // private flags
        15 => (Form::Numbers, 18), // rings
        17 => (Form::Numbers, 9),  // channels
        19 => (Form::Numbers, 33), // coalesce
        21 => (Form::Numbers, 6),  // pause
        23 => (Form::Bits, 7),     // EEE
        38 => (Form::Rss, 8),
        _ => return None,
    })
}

/// One message of an ethtool reply; `None`: the command is not known.
pub(super) fn ethtool(command: u32, message: &[u8], names: &mut Pseudonyms, strings: &Strings) -> Option<Vec<u8>> {
    const TABLE: u16 = 4;
    const KEY: u16 = 5;
    let (form, last) = form(command)?;
    let mut out = Vec::new();
    for (kind, value) in split(message) {
        match (number(kind), &form) {
            (HEADER, _) => put(&mut out, kind, &header(value, names, strings)),
            (TABLE | KEY, Form::Rss) => put(&mut out, kind, value),
            (n, _) if n > last => names.count("left out"),
            (_, Form::Bits) => put_bits(&mut out, kind, value, names, strings),
            (..) => put_number(&mut out, kind, value, names),
        }
    }
    Some(out)
}

fn header(value: &[u8], names: &mut Pseudonyms, strings: &Strings) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, value) in split(value) {
        match number(kind) {
            DEV_NAME => put_text(&mut out, kind, value, names, strings),
            DEV_INDEX if is_scalar(value) => put(&mut out, kind, value),
            _ => names.count("left out"),
        }
    }
    out
}

/// A number, or nested numbers.
fn put_number(out: &mut Vec<u8>, kind: u16, value: &[u8], names: &mut Pseudonyms) {
    if kind & NESTED != 0 {
        let mut nest = Vec::new();
        for (kind, value) in split(value) {
            put_number(&mut nest, kind, value, names);
        }
        put(out, kind, &nest);
    } else if is_scalar(value) {
        put(out, kind, value);
    } else {
        names.count("left out");
    }
}

/// Bit sets: numbers, masks, and names within the nests of single bits.
fn put_bits(out: &mut Vec<u8>, kind: u16, value: &[u8], names: &mut Pseudonyms, strings: &Strings) {
    const SIZE: u16 = 2;
    const BITS: u16 = 3;
    const MASKS: [u16; 2] = [4, 5];
    if kind & NESTED == 0 {
        return put_number(out, kind, value, names);
    }
    let mut set = Vec::new();
    for (kind, value) in split(value) {
        match number(kind) {
            BITS => {
                let mut bits = Vec::new();
                for (kind, value) in split(value) {
                    let mut bit = Vec::new();
                    for (kind, value) in split(value) {
                        match number(kind) {
                            2 => put_text(&mut bit, kind, value, names, strings),
                            _ => put_number(&mut bit, kind, value, names),
                        }
                    }
                    put(&mut bits, kind, &bit);
                }
                put(&mut set, kind, &bits);
            }
            n if MASKS.contains(&n) && value.len() <= 32 => put(&mut set, kind, value),
            SIZE | 1 => put_number(&mut set, kind, value, names),
            _ => names.count("left out"),
        }
    }
    put(out, kind, &set);
}

/// One message of the `netdev` family: devices (1), queues (10) and NAPI instances (11); all attributes are numbers.
pub(super) fn netdev(command: u32, message: &[u8], names: &mut Pseudonyms) -> Option<Vec<u8>> {
    if !matches!(command, 1 | 10 | 11) {
        return None;
    }
    let mut out = Vec::new();
    for (kind, value) in split(message) {
        if value.is_empty() || number(kind) <= 16 && is_scalar(value) {
            put(&mut out, kind, value);
        } else {
            put_number(&mut out, kind | NESTED, value, names);
        }
    }
    Some(out)
}

/// One message of the `net-shaper` family: two nests of numbers, and numbers.
pub(super) fn net_shaper(message: &[u8], names: &mut Pseudonyms) -> Vec<u8> {
    const NESTS: [u16; 2] = [1, 9];
    let mut out = Vec::new();
    for (kind, value) in split(message) {
        let nest = NESTS.contains(&number(kind));
        if nest {
            put_number(&mut out, kind | NESTED, value, names);
        } else if number(kind) <= 8 && is_scalar(value) {
            put(&mut out, kind, value);
        } else {
            names.count("left out");
        }
    }
    out
}

/// Command numbers of the ioctl (`ETHTOOL_G…`).
mod command {
    pub(super) const DRVINFO: u32 = 0x03;
    pub(super) const RXFH_FIELDS: u32 = 0x29;
    pub(super) const RULE_COUNT: u32 = 0x2e;
    pub(super) const RULE: u32 = 0x2f;
    pub(super) const RULES: u32 = 0x30;
    pub(super) const RSS: u32 = 0x46;
    pub(super) const PER_QUEUE: u32 = 0x4b;
}

/// `struct ethtool_rxnfc`: the rule is in bytes 16 to 184.
const RULE: std::ops::Range<usize> = 16..184;

/// The struct of an ioctl, with unchanged length.
pub(super) fn ioctl(number: u32, reply: &[u8], names: &mut Pseudonyms, strings: &Strings) -> Option<Vec<u8>> {
    let mut out = reply.to_vec();
    match number {
        command::DRVINFO => drvinfo(&mut out, names, strings),
        // Numbers: the table and the key of RSS, moderation of queues.
        command::RSS | command::PER_QUEUE => {}
        command::RXFH_FIELDS => out.iter_mut().skip(RULE.start).for_each(|b| *b = 0),
        command::RULE_COUNT | command::RULES => {
            let end = RULE.end.min(out.len());
            out.get_mut(RULE.start..end)?.fill(0);
        }
        command::RULE => rule(out.get_mut(RULE)?, names),
        _ => return None,
    }
    Some(out)
}

/// `struct ethtool_drvinfo`: four texts of 32 bytes from offset 4, that of the expansion ROM at 132, 12 reserved bytes, numbers.
fn drvinfo(out: &mut [u8], names: &mut Pseudonyms, strings: &Strings) {
    for (i, from) in [4, 36, 68, 100, 132].into_iter().enumerate() {
        let Some(field) = out.get_mut(from..from + 32) else { return };
        // Driver, version, firmware, bus address, ROM.
        let care = if i == 3 { TextKind::Tables } else { TextKind::Versions };
        let text = text::text(super::raw::text_of(field).as_bytes(), names, strings, care);
        field.fill(0);
        let length = text.len().min(31);
        field[..length].copy_from_slice(&text[..length]);
    }
    if let Some(reserved) = out.get_mut(164..176) {
        reserved.fill(0);
    }
}

/// Addresses of a flow type: offset and length of each within `struct ethtool_rx_flow_spec`.
fn addresses(flow_type: u32) -> Option<&'static [(usize, usize)]> {
    Some(match flow_type {
        0x12 => &[(4, 6), (10, 6)],
        // TCP, UDP, SCTP, AH, ESP and any over IPv4: source and destination.
        0x01..=0x03 | 0x09 | 0x0a | 0x0d => &[(4, 4), (8, 4)],
        0x05..=0x07 | 0x0b | 0x0c | 0x0e => &[(4, 16), (20, 16)],
        _ => return None,
    })
}

/// `struct ethtool_rx_flow_spec`: the type at 0, values from 4 to 56, the extension from 56 to 76, and masks 72 bytes after the
/// values.
fn rule(spec: &mut [u8], names: &mut Pseudonyms) {
    const TO_MASK: usize = 72;
    const VALUE: std::ops::Range<usize> = 4..76;
    const EXTENSION_MAC: (usize, usize) = (58, 6);
    const USER_DATA: (usize, usize) = (68, 8);
    const FLAGS: u32 = 0xe000_0000;
    let flow = u32::from_ne_bytes([spec[0], spec[1], spec[2], spec[3]]) & !FLAGS;
    let Some(known) = addresses(flow) else {
        // It is not known where its addresses are, so all of it is replaced. Different rules stay different.
        let masked: Vec<u8> = VALUE.map(|i| spec[i] & spec[i + TO_MASK]).collect();
        if masked.iter().any(|b| *b != 0) {
            let name = names.string("flow rule", &crate::capture::to_hex(&masked));
            let n: u32 = name.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0);
            spec[VALUE].fill(0);
            spec[VALUE.start..VALUE.start + 4].copy_from_slice(&n.to_be_bytes());
        }
        return;
    };
    for (from, length) in known.iter().copied().chain([EXTENSION_MAC, USER_DATA]) {
        let mask = spec[from + TO_MASK..from + TO_MASK + length].to_vec();
        let name = names.masked(&spec[from..from + length], &mask);
        spec[from..from + length].copy_from_slice(&name);
    }
}

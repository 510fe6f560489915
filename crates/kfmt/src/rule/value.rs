//! One field: text with an optional mask ⇄ the bytes and the bits of them that are compared.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::RuleError;
use super::fields::{Field, Kind};

/// Decimal, or hexadecimal with `0x`. A leading 0 is refused, because it means octal in ethtool.
pub(super) fn number(text: &str) -> Option<u64> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return (!hex.starts_with('+')).then(|| u64::from_str_radix(hex, 16).ok()).flatten();
    }
    let plain = text == "0" || !text.starts_with(['0', '+']);
    if plain { text.parse().ok() } else { None }
}

fn mac(text: &str) -> Option<Vec<u8>> {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let byte = |p: &&str| ((1..=2).contains(&p.len()) && !p.starts_with('+')).then(|| u8::from_str_radix(p, 16).ok());
    let bytes: Vec<u8> = parts.iter().filter_map(|p| byte(p).flatten()).collect();
    (parts.len() == 6 && bytes.len() == 6).then_some(bytes)
}

fn bytes(kind: Kind, text: &str) -> Option<Vec<u8>> {
    match kind {
        Kind::Mac => mac(text),
        Kind::Ip4 => text.parse::<Ipv4Addr>().ok().map(|a| a.octets().to_vec()),
        Kind::Ip6 => text.parse::<Ipv6Addr>().ok().map(|a| a.octets().to_vec()),
        Kind::Number(n) | Kind::Hex(n) => {
            let v = number(text)?;
            (n == 8 || v >> (8 * n) == 0).then(|| v.to_be_bytes()[8 - n..].to_vec())
        }
    }
}

fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Mac => "an Ethernet address such as 02:00:00:00:00:01",
        Kind::Ip4 => "an IPv4 address such as 10.0.0.1",
        Kind::Ip6 => "an IPv6 address such as 2001:db8::1",
        Kind::Number(1) | Kind::Hex(1) => "a number from 0 to 255 (decimal, or 0x…)",
        Kind::Number(2) | Kind::Hex(2) => "a number from 0 to 65535 (decimal, or 0x…)",
        Kind::Number(4) | Kind::Hex(4) => "a 32-bit number (decimal, or 0x…)",
        Kind::Number(_) | Kind::Hex(_) => "a 64-bit number (decimal, or 0x…)",
    }
}

fn expected_mask(kind: Kind) -> &'static str {
    match kind {
        Kind::Mac => "a mask such as 00:00:00:ff:ff:ff; set bits are ignored",
        Kind::Ip4 => "a mask such as 0.0.0.255; set bits are ignored",
        Kind::Ip6 => "a mask such as ::ffff; set bits are ignored",
        Kind::Number(_) | Kind::Hex(_) => "a mask of the field's width, such as 0xff; set bits are ignored",
    }
}

/// The compared bits: the first `length` of an address.
fn prefix(bytes: usize, length: usize) -> Vec<u8> {
    (0..bytes).map(|i| !(0xffu16 >> length.saturating_sub(i * 8).min(8)) as u8).collect()
}

/// The value and its compared bits, from `V`, `V m M` or, for addresses, `V/24`.
pub(super) fn parse(field: &Field, text: &str) -> Result<(Vec<u8>, Vec<u8>), RuleError> {
    let wrong = |found: &str, expected: &str| RuleError::new(field.name, found, expected);
    let (kind, n) = (field.kind, field.kind.bytes());
    let (value, mask) = match text.split_once(" m ") {
        Some((v, m)) => (v, Some(m)),
        None => (text, None),
    };
    let (value, length) = match value.split_once('/') {
        Some((v, l)) if matches!(kind, Kind::Ip4 | Kind::Ip6) => {
            let length = number(l).filter(|l| *l <= 8 * n as u64);
            let length = length.ok_or_else(|| wrong(l, "a prefix length of the address"))?;
            (v, Some(length as usize))
        }
        _ => (value, None),
    };
    let bits = bytes(kind, value).ok_or_else(|| wrong(value, expected(kind)))?;
    let counts = match (mask, length) {
        (None, None) => vec![0xff; n],
        (None, Some(l)) => prefix(n, l),
        (Some(m), None) => {
            let ignored = bytes(kind, m).ok_or_else(|| wrong(m, expected_mask(kind)))?;
            ignored.iter().map(|b| !b).collect()
        }
        (Some(_), Some(_)) => return Err(wrong(text, "a prefix length or a mask, not both")),
    };
    Ok((bits.iter().zip(&counts).map(|(b, c)| b & c).collect(), counts))
}

fn show(kind: Kind, b: &[u8]) -> String {
    let mut wide = [0; 8];
    match kind {
        Kind::Mac => b.iter().map(|x| format!("{x:02x}")).collect::<Vec<_>>().join(":"),
        Kind::Ip4 => <[u8; 4]>::try_from(b).map(|a| Ipv4Addr::from(a).to_string()).unwrap_or_default(),
        Kind::Ip6 => <[u8; 16]>::try_from(b).map(|a| Ipv6Addr::from(a).to_string()).unwrap_or_default(),
        Kind::Number(n) | Kind::Hex(n) => {
            wide[8 - n..].copy_from_slice(b);
            let v = u64::from_be_bytes(wide);
            if let Kind::Hex(_) = kind { format!("{v:#0w$x}", w = 2 * n + 2) } else { v.to_string() }
        }
    }
}

/// The text of a value. `None`: no bit is compared.
pub(super) fn text(field: &Field, value: &[u8], counts: &[u8]) -> Option<String> {
    if counts.iter().all(|b| *b == 0) {
        return None;
    }
    let value: Vec<u8> = value.iter().zip(counts).map(|(v, c)| v & c).collect();
    let mut out = show(field.kind, &value);
    if counts.iter().any(|b| *b != 0xff) {
        let ignored: Vec<u8> = counts.iter().map(|b| !b).collect();
        let kind = match field.kind {
            Kind::Number(n) => Kind::Hex(n),
            other => other,
        };
        out += &format!(" m {}", show(kind, &ignored));
    }
    Some(out)
}

/// `tos` or `tclass` of a code point: its upper six bits; the two bits of ECN are ignored.
pub(super) fn dscp(text: &str) -> Result<String, RuleError> {
    match number(text).filter(|n| *n < 64) {
        Some(n) => Ok(format!("{} m 0x03", n << 2)),
        None => Err(RuleError::new("dscp", text, "a code point from 0 to 63")),
    }
}

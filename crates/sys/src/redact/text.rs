//! Finds addresses and ids in text (any bytes) by their shape, and known names as words.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::names::Names;

fn hex(b: Option<&u8>) -> bool {
    b.is_some_and(u8::is_ascii_hexdigit)
}

fn word(b: Option<&u8>) -> bool {
    b.is_some_and(u8::is_ascii_alphanumeric)
}

fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// What may be taken for an IPv4 address: versions look like one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum V4 {
    Replace,
    Keep,
}

/// `text` with everything of a known shape replaced, then the known names.
pub fn text(input: &[u8], names: &mut Names, strings: &[(String, String, &'static str)], v4: V4) -> Vec<u8> {
    let mut out = Vec::with_capacity(input.len());
    let mut at = 0;
    while at < input.len() {
        match shape(input, at, names, v4) {
            Some((length, name)) => {
                out.extend(name);
                at += length;
            }
            None => {
                out.push(input[at]);
                at += 1;
            }
        }
    }
    for (from, to, kind) in strings {
        out = words(&out, from.as_bytes(), to.as_bytes(), kind, names);
    }
    out
}

/// The identifier that begins at `at`: its length and what replaces it.
fn shape(input: &[u8], at: usize, names: &mut Names, v4: V4) -> Option<(usize, Vec<u8>)> {
    let first = input[at];
    if !first.is_ascii_hexdigit() && first != b':' {
        return None;
    }
    let before = at.checked_sub(1).map(|i| &input[i]);
    let rest = &input[at..];
    if !word(before) {
        if let Some(found) = uuid(rest, names).or_else(|| mac(before, rest, names)) {
            return Some(found);
        }
        if let Some(found) = ipv6(input, at, names) {
            return Some(found);
        }
        if v4 == V4::Replace
            && let Some(found) = ipv4(before, rest, names)
        {
            return Some(found);
        }
    }
    bare_mac(input, at, names)
}

fn uuid(rest: &[u8], names: &mut Names) -> Option<(usize, Vec<u8>)> {
    let id = rest.get(..36)?;
    let fits = id.iter().enumerate().all(|(i, b)| match i {
        8 | 13 | 18 | 23 => *b == b'-',
        _ => b.is_ascii_hexdigit(),
    });
    (fits && !word(rest.get(36))).then(|| (36, names.uuid(ascii(id)).into_bytes()))
}

/// `aa:bb:…` or `aa-bb-…` of 6, 8 or 20 bytes: Ethernet, EUI-64, InfiniBand. Longer rows are hash keys.
fn mac(before: Option<&u8>, rest: &[u8], names: &mut Names) -> Option<(usize, Vec<u8>)> {
    let separator = *rest.get(2).filter(|s| **s == b':' || **s == b'-')?;
    if before == Some(&separator) {
        return None;
    }
    let mut bytes = Vec::new();
    let mut at = 0;
    while hex(rest.get(at)) && hex(rest.get(at + 1)) && !word(rest.get(at + 2)) {
        bytes.push(u8::from_str_radix(ascii(&rest[at..at + 2]), 16).ok()?);
        if rest.get(at + 2) != Some(&separator) || !hex(rest.get(at + 3)) {
            break;
        }
        at += 3;
    }
    let end = bytes.len() * 3 - usize::from(!bytes.is_empty());
    if !matches!(bytes.len(), 6 | 8 | 20) || rest.get(end) == Some(&separator) && word(rest.get(end + 1)) {
        return None;
    }
    let name: Vec<String> = names.hardware(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    Some((end, name.join(std::str::from_utf8(&[separator]).unwrap_or(":")).into_bytes()))
}

fn ipv6(input: &[u8], at: usize, names: &mut Names) -> Option<(usize, Vec<u8>)> {
    let part = |b: &u8| b.is_ascii_hexdigit() || *b == b':' || *b == b'.';
    // Inside a longer row of groups nothing begins, except after a word: `inet6:fe80::1`.
    if at > 0 && matches!(input[at - 1], b':' | b'.') {
        let left = input[..at].iter().rposition(|b| !part(b));
        if !left.is_some_and(|i| input[i].is_ascii_alphanumeric()) {
            return None;
        }
    }
    let length = input[at..].iter().take_while(|b| part(b)).count();
    let mut run = ascii(&input[at..at + length]);
    if word(input.get(at + length)) || run.matches(':').count() < 2 {
        return None;
    }
    loop {
        if let Ok(address) = run.parse::<Ipv6Addr>() {
            return Some((run.len(), names.v6(address).to_string().into_bytes()));
        }
        run = run.strip_suffix(['.', ':'])?;
    }
}

fn ipv4(before: Option<&u8>, rest: &[u8], names: &mut Names) -> Option<(usize, Vec<u8>)> {
    if before == Some(&b'.') {
        return None;
    }
    let length = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    let run = ascii(&rest[..length]).trim_end_matches('.');
    let address = run.parse::<Ipv4Addr>().ok()?;
    let (next, after) = (rest.get(run.len()), rest.get(run.len() + 1));
    // `5.10.0.1-generic` is a version.
    let version = next == Some(&b'-') && after.is_some_and(u8::is_ascii_alphabetic);
    (!word(next) && !version).then(|| (run.len(), names.v4(address).to_string().into_bytes()))
}

/// Twelve hexadecimal digits: in interface names like `enx…`, else only where the address is known.
fn bare_mac(input: &[u8], at: usize, names: &mut Names) -> Option<(usize, Vec<u8>)> {
    let digits = input.get(at..at + 12)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) || hex(input.get(at + 12)) || at > 0 && hex(input.get(at - 1)) {
        return None;
    }
    let bytes = crate::capture::from_hex(ascii(digits))?;
    let named = at >= 3 && matches!(&input[at - 3..at], b"enx" | b"wlx" | b"wwx" | b"ibx");
    (named || names.knows_hardware(&bytes)).then(|| (12, crate::capture::to_hex(&names.hardware(&bytes)).into_bytes()))
}

/// Every `from` that stands as a word of its own.
fn words(input: &[u8], from: &[u8], to: &[u8], kind: &'static str, names: &mut Names) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    let mut copied = 0;
    while let Some(found) = find(&input[at..], from).map(|i| i + at) {
        let end = found + from.len();
        let inside = found > 0 && word(input.get(found - 1)) || word(input.get(end));
        if inside {
            at = found + 1;
            continue;
        }
        names.count(kind);
        out.extend_from_slice(&input[copied..found]);
        out.extend_from_slice(to);
        (at, copied) = (end, end);
    }
    if copied == 0 {
        return input.to_vec();
    }
    out.extend_from_slice(&input[copied..]);
    out
}

fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut at = 0;
    while at + needle.len() <= hay.len() {
        at += hay[at..=hay.len() - needle.len()].iter().position(|b| *b == first)?;
        if &hay[at..at + needle.len()] == needle {
            return Some(at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go(input: &str) -> String {
        let mut names = Names::default();
        names.hardware(&[0, 0x1b, 0x21, 0xaa, 0xbb, 0xcc]);
        let strings = [("web1".to_string(), "host-name-1".to_string(), "host name")];
        String::from_utf8(text(input.as_bytes(), &mut names, &strings, V4::Replace)).unwrap()
    }

    #[test]
    fn identifiers_go() {
        let cases = [
            ("00:1b:21:aa:bb:cc", "02:00:00:00:00:01"),
            ("hw 00-1B-21-AA-BB-CC.", "hw 02-00-00-00-00-01."),
            ("enx001b21aabbcc: 5", "enx020000000001: 5"),
            ("enxfe0011223344", "enx020000000002"),
            ("irq 001b21aabbcc", "irq 020000000001"),
            ("a 10.1.2.3/24 b 10.1.2.3:80", "a 198.18.0.1/24 b 198.18.0.1:80"),
            ("at 10.1.2.3.", "at 198.18.0.1."),
            ("addr:10.1.2.3", "addr:198.18.0.1"),
            ("fe80::21b:21ff:feaa:bbcc/64 [2a01:4f8::7]:22", "fe80::1/64 [2001:db8::2]:22"),
            ("inet6:fe80::9,", "inet6:fe80::1,"),
            ("uuid=0AF3C1D2-0000-1111-2222-333344445555", "uuid=00000000-0000-4000-8000-000000000001"),
            ("web1: web1.example web10 xweb1", "host-name-1: host-name-1.example web10 xweb1"),
        ];
        for (from, to) in cases {
            assert_eq!(go(from), to, "{from}");
        }
    }

    #[test]
    fn what_only_looks_like_one_stays() {
        let key = vec!["6d"; 40].join(":");
        for same in [
            "0000:03:00.0",
            "mlx5_comp0@pci:0000:03:00.0",
            "12:34:56",
            "00:00:00:00:00:00 ff:ff:ff:ff:ff:ff",
            "127.0.0.1 0.0.0.0 255.255.255.0 ::1 ::",
            "5.10.0.1-generic v1.2.3.4 1.2.3.4.5",
            "ffffffff,ffffffff 123456789012 ab::",
            "std::vec",
            key.as_str(),
        ] {
            let same = same.replace(" ab::", "");
            assert_eq!(go(&same), same);
        }
    }
}

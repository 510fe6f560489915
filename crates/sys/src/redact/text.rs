//! Finds addresses and ids in text (any bytes) by their shape, private values by their labels, and known names as
//! words.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::labels;
use super::names::Pseudonyms;
use super::strings::{Strings, TextKind, word};

fn hex(b: Option<&u8>) -> bool {
    b.is_some_and(u8::is_ascii_hexdigit)
}

fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Kept(Vec<u8>),
    /// The replacement of something private.
    Name(Vec<u8>),
}

/// `text` with everything private replaced.
pub(super) fn text(input: &[u8], names: &mut Pseudonyms, strings: &Strings, care: TextKind) -> Vec<u8> {
    let mut out = Vec::with_capacity(input.len());
    for piece in pieces(input, names, strings, care) {
        match piece {
            Piece::Kept(bytes) | Piece::Name(bytes) => out.extend(bytes),
        }
    }
    out
}

/// The same, as parts that show what was replaced.
pub(super) fn pieces(input: &[u8], names: &mut Pseudonyms, strings: &Strings, care: TextKind) -> Vec<Piece> {
    let by_label = split(vec![Piece::Kept(input.to_vec())], |bytes, at, done| {
        let l = labels::at(bytes, done, at, care)?;
        Some((l.from, l.to, names.hidden(l.kind, &bytes[l.from..l.to]).into_bytes()))
    });
    let by_shape = split(by_label, |bytes, at, _| {
        let (length, name) = shape(bytes, at, names, care)?;
        Some((at, at + length, name))
    });
    if strings.is_empty() {
        return by_shape;
    }
    split(by_shape, |bytes, at, _| {
        let (from, to, kind) = strings.at(bytes, at, care)?;
        names.count(kind);
        Some((at, at + from.len(), to.as_bytes().to_vec()))
    })
}

/// Replaces what `find` returns (first byte, end, replacement) in the kept parts. `find` gets the position and the end of the
/// last replacement.
fn split(all: Vec<Piece>, mut find: impl FnMut(&[u8], usize, usize) -> Option<(usize, usize, Vec<u8>)>) -> Vec<Piece> {
    let mut out = Vec::new();
    for piece in all {
        let Piece::Kept(bytes) = piece else {
            out.push(piece);
            continue;
        };
        let (mut at, mut done) = (0, 0);
        while at < bytes.len() {
            let Some((from, to, name)) = find(&bytes, at, done) else {
                at += 1;
                continue;
            };
            if from > done {
                out.push(Piece::Kept(bytes[done..from].to_vec()));
            }
            out.push(Piece::Name(name));
            (at, done) = (to, to);
        }
        if done == 0 {
            out.push(Piece::Kept(bytes));
        } else if done < bytes.len() {
            out.push(Piece::Kept(bytes[done..].to_vec()));
        }
    }
    out
}

/// The identifier that begins at `at`: its length and its replacement.
fn shape(input: &[u8], at: usize, names: &mut Pseudonyms, care: TextKind) -> Option<(usize, Vec<u8>)> {
    let first = input[at];
    if !first.is_ascii_hexdigit() && first != b':' {
        return if care == TextKind::Prose { opaque(input, at, names) } else { None };
    }
    let before = at.checked_sub(1).map(|i| &input[i]);
    let rest = &input[at..];
    // An address may also begin after a letter that is not one of its digits: `from10.1.2.3`.
    let glued = word(before);
    let prose = care == TextKind::Prose;
    if !glued && let Some(found) = uuid(rest, names) {
        return Some(found);
    }
    if let Some(found) = mac(before, rest, names, false) {
        return Some(found);
    }
    // Letters before it may be hexadecimal digits as well: `via2001:db8::1`.
    let whole_group = rest.get(4) == Some(&b':') && rest[..4].iter().all(u8::is_ascii_hexdigit);
    if (!glued || prose && (!hex(before) || whole_group))
        && let Some(found) = ipv6(input, at, names, prose)
    {
        return Some(found);
    }
    if prose && let Some(found) = mac(before, rest, names, true) {
        return Some(found);
    }
    if let Some(found) = guid(before, rest, names) {
        return Some(found);
    }
    if care != TextKind::Versions
        && (!glued || prose && !before.is_some_and(u8::is_ascii_digit))
        && let Some(found) = ipv4(before, rest, names, prose)
    {
        return Some(found);
    }
    bare_mac(input, at, names, prose).or_else(|| if prose { opaque(input, at, names) } else { None })
}

fn uuid(rest: &[u8], names: &mut Pseudonyms) -> Option<(usize, Vec<u8>)> {
    let id = rest.get(..36)?;
    let fits = id.iter().enumerate().all(|(i, b)| match i {
        8 | 13 | 18 | 23 => *b == b'-',
        _ => b.is_ascii_hexdigit(),
    });
    (fits && !word(rest.get(36))).then(|| (36, names.uuid(ascii(id)).into_bytes()))
}

/// Longest row of octets that counts as an address; longer ones are hash keys.
const LONGEST_ROW: usize = 32;

/// `aa:bb:…` or `aa-bb-…` of six bytes or more: Ethernet, EUI-64, InfiniBand, the frame header in netfilter's log. `glued`: also
/// if a letter or a digit follows.
fn mac(before: Option<&u8>, rest: &[u8], names: &mut Pseudonyms, glued: bool) -> Option<(usize, Vec<u8>)> {
    let separator = *rest.get(2).filter(|s| **s == b':' || **s == b'-')?;
    if before == Some(&separator) || hex(before) && !glued {
        return None;
    }
    let mut bytes = Vec::new();
    let mut at = 0;
    while hex(rest.get(at)) && hex(rest.get(at + 1)) {
        bytes.push(u8::from_str_radix(ascii(&rest[at..at + 2]), 16).ok()?);
        if rest.get(at + 2) != Some(&separator) || !hex(rest.get(at + 3)) {
            break;
        }
        at += 3;
    }
    let mut end = bytes.len() * 3 - usize::from(!bytes.is_empty());
    if rest.get(end) == Some(&separator) && word(rest.get(end + 1)) && bytes.len() >= 6 && !glued {
        return None;
    }
    if word(rest.get(end)) && !glued {
        return None;
    }
    // `…:ff00:` is a group of an IPv6 address; without letters after it the row ends before it.
    if hex(rest.get(end)) && bytes.len() > 6 {
        bytes.pop();
        end -= 3;
    }
    if !(6..=LONGEST_ROW).contains(&bytes.len()) {
        return None;
    }
    let name = match bytes.len() {
        // Destination, source and type, as netfilter logs the header.
        14 => [names.hardware(&bytes[..6]), names.hardware(&bytes[6..12]), bytes[12..].to_vec()].concat(),
        _ => names.hardware(&bytes),
    };
    let name: Vec<String> = name.iter().map(|b| format!("{b:02x}")).collect();
    Some((end, name.join(std::str::from_utf8(&[separator]).unwrap_or(":")).into_bytes()))
}

/// `0011:2233:4455:6677` of InfiniBand, and `0011.2233.4455` of switches.
fn guid(before: Option<&u8>, rest: &[u8], names: &mut Pseudonyms) -> Option<(usize, Vec<u8>)> {
    let separator = *rest.get(4).filter(|s| **s == b':' || **s == b'.')?;
    if word(before) || before == Some(&separator) {
        return None;
    }
    let length = rest.iter().take_while(|b| b.is_ascii_hexdigit() || **b == separator).count();
    let run = ascii(&rest[..length]).trim_end_matches(separator as char);
    let groups: Vec<&str> = run.split(separator as char).collect();
    let count = if separator == b':' { 4 } else { 3 };
    let digits = groups.concat();
    let letters = digits.bytes().any(|b| b.is_ascii_alphabetic()) || separator == b':';
    if groups.len() != count || groups.iter().any(|g| g.len() != 4) || !letters || word(rest.get(run.len())) {
        return None;
    }
    let name = crate::capture::to_hex(&names.hardware(&crate::capture::from_hex(&digits)?));
    let groups: Vec<&str> = (0..count).map(|i| &name[i * 4..i * 4 + 4]).collect();
    Some((run.len(), groups.join(&(separator as char).to_string()).into_bytes()))
}

fn ipv6(input: &[u8], at: usize, names: &mut Pseudonyms, prose: bool) -> Option<(usize, Vec<u8>)> {
    let part = |b: &u8| b.is_ascii_hexdigit() || *b == b':' || *b == b'.';
    // Nothing begins inside a longer row of groups, except after a word: `inet6:fe80::1`.
    if at > 0 && matches!(input[at - 1], b':' | b'.') {
        let left = input[..at].iter().rposition(|b| !part(b));
        if !left.is_some_and(|i| input[i].is_ascii_alphanumeric()) {
            return None;
        }
    }
    let length = input[at..].iter().take_while(|b| part(b)).count();
    let mut run = ascii(&input[at..at + length]);
    if word(input.get(at + length)) && !prose || run.matches(':').count() < 2 {
        return None;
    }
    loop {
        if let Ok(address) = run.parse::<Ipv6Addr>() {
            return Some((run.len(), names.v6(address).to_string().into_bytes()));
        }
        run = match run.strip_suffix(['.', ':']) {
            Some(shorter) => shorter,
            // Digits of a following word: in `fe80::1eth0` one e too many is replaced, which does not matter.
            None if prose && word(input.get(at + length)) && run.len() > 3 => &run[..run.len() - 1],
            None => return None,
        }
    }
}

fn ipv4(before: Option<&u8>, rest: &[u8], names: &mut Pseudonyms, prose: bool) -> Option<(usize, Vec<u8>)> {
    if before == Some(&b'.') {
        return None;
    }
    let length = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    let run = ascii(&rest[..length]).trim_end_matches('.');
    let address = run.parse::<Ipv4Addr>().ok()?;
    let (next, after) = (rest.get(run.len()), rest.get(run.len() + 1));
    // `5.10.0.1-generic` is a version.
    let version = next == Some(&b'-') && after.is_some_and(u8::is_ascii_alphabetic);
    (prose || !word(next) && !version).then(|| (run.len(), names.v4(address).to_string().into_bytes()))
}

/// Twelve hexadecimal digits: in interface names like `enx…` and in prose, otherwise only if the address is known.
fn bare_mac(input: &[u8], at: usize, names: &mut Pseudonyms, prose: bool) -> Option<(usize, Vec<u8>)> {
    let digits = input.get(at..at + 12)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) || hex(input.get(at + 12)) || at > 0 && hex(input.get(at - 1)) {
        return None;
    }
    let bytes = crate::capture::from_hex(ascii(digits))?;
    let mixed = digits.iter().any(u8::is_ascii_digit) && digits.iter().any(u8::is_ascii_alphabetic);
    let named = at >= 3 && matches!(&input[at - 3..at], b"enx" | b"wlx" | b"wwx" | b"ibx") || prose && mixed;
    (named || names.knows_hardware(&bytes)).then(|| (12, crate::capture::to_hex(&names.hardware(&bytes)).into_bytes()))
}

/// In prose: sixteen hexadecimal digits or more, and long words of mixed letters and digits, as in keys.
fn opaque(input: &[u8], at: usize, names: &mut Pseudonyms) -> Option<(usize, Vec<u8>)> {
    let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'_' | b'-' | b'=');
    if !input[at].is_ascii_alphanumeric() || at > 0 && part(&input[at - 1]) {
        return None;
    }
    let run = &input[at..at + input[at..].iter().take_while(|b| part(b)).count()];
    let has = |f: fn(&u8) -> bool| run.iter().any(f);
    let hexadecimal = run.len() >= 16 && run.iter().all(u8::is_ascii_hexdigit);
    let mixed =
        run.len() >= 24 && has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    (hexadecimal || mixed).then(|| (run.len(), names.hidden("id", run).into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prose(input: &str) -> String {
        let mut names = Pseudonyms::default();
        String::from_utf8(text(input.as_bytes(), &mut names, &Strings::new(Vec::new()), TextKind::Prose)).unwrap()
    }

    #[test]
    fn in_prose_also_where_they_are_glued_to_words() {
        for (from, to) in [
            ("from10.1.2.3port", "from198.18.0.1port"),
            ("v4=10.1.2.3,", "v4=198.18.0.1,"),
            ("addr00:1b:21:aa:bb:cceth", "addr02:00:00:00:00:01eth"),
            ("via2001:db8:7::1on", "via2001:db8::1on"),
            ("hw 001b21aabbcc, 001b.21aa.bbcc", "hw 020000000001, 0200.0000.0001"),
            ("id 4f5e6d7c8b9a0f1e2d3c4b5a", "id id-1"),
            ("AKIAiosfodnn7EXAMPLEkey0", "id-1"),
        ] {
            assert_eq!(prose(from), to, "{from}");
        }
    }

    #[test]
    fn rows_of_octets() {
        for (from, to) in [
            // Destination and source, as netfilter logs them: each has the same pseudonym as elsewhere.
            (
                "MAC=00:1b:21:aa:bb:cc:3c:ec:ef:12:34:56:08:00 00:1b:21:aa:bb:cc",
                "MAC=02:00:00:00:00:01:02:00:00:00:00:02:08:00 02:00:00:00:00:01",
            ),
            ("a 0011:2233:4455:6677 b", "a 0200:0000:0000:0002 b"),
            ("port00:1b:21:aa:bb:cc", "port02:00:00:00:00:01"),
            ("45:00:00:30:12:34:00:00:40:2f:aa", "02:00:00:00:00:00:00:00:00:00:02"),
        ] {
            assert_eq!(go(from), to, "{from}");
        }
    }

    fn go(input: &str) -> String {
        let mut names = Pseudonyms::default();
        names.hardware(&[0, 0x1b, 0x21, 0xaa, 0xbb, 0xcc]);
        let strings = Strings::new(vec![("web1".to_string(), "host-name-1".to_string(), "host name")]);
        String::from_utf8(text(input.as_bytes(), &mut names, &strings, TextKind::Tables)).unwrap()
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
            ("ff02::1:ffaa:bbcc ff02::1", "ff02::1:ff00:1 ff02::1"),
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

//! Redacts lines of the kernel's log with an allow-list: lines that begin with an interface of the host or its driver, and a few
//! other forms about them, are kept. In these lines the driver's own words stay; anything that may come from a variable is
//! replaced.

use super::names::Pseudonyms;
use super::strings::{Strings, TextKind};
use super::text::{Piece, pieces};

/// Forms that begin with neither: literal words, `{dev}` for an interface, `{driver}` for a driver, `{n}` for a number, `{bus}`
/// for a bus address. What follows them on the line is treated like any other text of the kernel.
const FORMS: [&str; 14] = [
    "NETDEV WATCHDOG: {dev} ({driver}): transmit queue {n} timed out",
    "IPv6: ADDRCONF(NETDEV_UP): {dev}: link is not ready",
    "IPv6: ADDRCONF(NETDEV_CHANGE): {dev}: link becomes ready",
    "8021q: adding VLAN 0 to HW filter on device {dev}",
    "device {dev} entered promiscuous mode",
    "device {dev} left promiscuous mode",
    "irq {n}: nobody cared",
    "irq {n}: Affinity broken due to vector space exhaustion.",
    "Disabling IRQ #{n}",
    "genirq: Flags mismatch irq {n}.",
    "pcieport {bus}: AER:",
    "pcieport {bus}: DPC:",
    "DMAR: [DMA Read] Request device [{bus}]",
    "DMAR: [DMA Write] Request device [{bus}]",
];

/// Replaces a word that may come from a variable.
const GONE: &str = "*";
/// Maximum length of a word of letters that counts as one of the kernel's own.
const LONGEST: usize = 24;

/// `<6>[   12.345678] [ T1] message` → the text before the message, and the message. Accepts only lines of the kernel itself,
/// because programs may write to its log as well.
fn split(line: &str) -> Option<(&str, &str)> {
    let (level, rest) = line.strip_prefix('<')?.split_once('>')?;
    // Facility and severity: LOG_KERN is 0.
    level.parse::<u32>().ok().filter(|l| *l < 8)?;
    let mut message = rest.trim_start();
    // The time, and with CONFIG_PRINTK_CALLER the thread or the CPU.
    for _ in 0..2 {
        let Some((stamp, after)) = message.strip_prefix('[').and_then(|m| m.split_once(']')) else { break };
        let stamp = stamp.trim();
        let digits = stamp.strip_prefix(['T', 'C']).unwrap_or(stamp);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            break;
        }
        message = after.trim_start();
    }
    Some((&line[..line.len() - message.len()], message))
}

fn is_bus_address(word: &str) -> bool {
    let hex = |t: &str, n: usize| t.len() == n && t.bytes().all(|b| b.is_ascii_hexdigit());
    let parts: Vec<&str> = word.split(':').collect();
    let function = |t: &str| t.split_once('.').is_some_and(|(d, f)| hex(d, 2) && hex(f, 1));
    match parts[..] {
        [domain, bus, last] => domain.len() >= 4 && hex(domain, domain.len()) && hex(bus, 2) && function(last),
        [bus, last] => hex(bus, 2) && function(last),
        _ => false,
    }
}

/// Names with which lines may begin.
pub(super) struct Subjects<'a> {
    /// Interfaces and drivers.
    pub all: &'a [String],
}

impl Subjects<'_> {
    fn knows(&self, word: &str) -> bool {
        self.all.iter().any(|s| s == word)
    }

    /// Length of the form with which a message begins.
    fn form(&self, message: &str) -> Option<usize> {
        FORMS.iter().find_map(|f| self.fits(f, message))
    }

    fn fits(&self, form: &str, message: &str) -> Option<usize> {
        let (mut form, mut rest) = (form, message);
        loop {
            let Some((literal, after)) = form.split_once('{') else {
                return rest.strip_prefix(form).map(|r| message.len() - r.len());
            };
            let (hole, next) = after.split_once('}')?;
            rest = rest.strip_prefix(literal)?;
            let part = |c: char| {
                c.is_ascii_alphanumeric() || "_-.".contains(c) || hole == "bus" && c == ':' || hole == "dev" && c == '@'
            };
            // A dot or a colon may also follow it.
            let word = rest[..rest.find(|c| !part(c)).unwrap_or(rest.len())].trim_end_matches(['.', ':']);
            let fits = match hole {
                "n" => !word.is_empty() && word.len() <= 6 && word.bytes().all(|b| b.is_ascii_digit()),
                "bus" => is_bus_address(word),
                _ => self.knows(word),
            };
            if !fits {
                return None;
            }
            (form, rest) = (next, &rest[word.len()..]);
        }
    }

    /// Whether the message begins with an interface or a driver, and is not a line of a firewall's log rule.
    fn begins(&self, message: &str) -> bool {
        let first = message.split([' ', ':', '(']).next().unwrap_or_default();
        let behind = message[first.len()..].chars().next();
        self.knows(first) && matches!(behind, Some(' ' | ':' | '('))
    }

    fn keeps(&self, message: &str) -> bool {
        let of_a_firewall = message.contains("IN=") && message.contains("OUT=");
        !of_a_firewall && (self.begins(message) || self.form(message).is_some())
    }
}

/// The lines that are kept, with everything variable replaced, and the number of the others.
pub(super) fn kernel_lines(
    log: &str,
    subjects: &Subjects,
    names: &mut Pseudonyms,
    strings: &Strings,
) -> (String, usize) {
    let (mut out, mut left_out) = (String::new(), 0);
    for line in log.lines().filter(|l| !l.trim().is_empty()) {
        match split(line).filter(|(_, message)| subjects.keeps(message)) {
            Some((stamp, message)) => {
                out.push_str(stamp);
                out.push_str(&clean(message, subjects, names, strings));
                out.push('\n');
            }
            None => left_out += 1,
        }
    }
    for _ in 0..left_out {
        names.count("kernel line");
    }
    (out, left_out)
}

fn clean(message: &str, subjects: &Subjects, names: &mut Pseudonyms, strings: &Strings) -> String {
    let mut out = String::new();
    let mut gone = 0;
    let mut renamed = false;
    for piece in pieces(message.as_bytes(), names, strings, TextKind::Prose) {
        let bytes = match piece {
            Piece::Name(name) => {
                out.push_str(&String::from_utf8_lossy(&name));
                continue;
            }
            Piece::Kept(bytes) => bytes,
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let blank = rest.len() - rest.trim_start().len();
            out.push_str(&rest[..blank]);
            rest = &rest[blank..];
            let word = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
            rest = &rest[word.len()..];
            // `eth1: renamed from …`: a name that the interface does not have any more identifies nothing here.
            let token = if renamed && !subjects.knows(word) && !word.is_empty() {
                gone += 1;
                GONE.to_string()
            } else {
                token(word, subjects, &mut gone)
            };
            renamed = word == "from" && out.trim_end().ends_with("renamed");
            out.push_str(&token);
        }
    }
    for _ in 0..gone {
        names.count("kernel word");
    }
    out
}

/// A word between blanks: its parts, each kept or replaced, with the separators between them.
fn token(word: &str, subjects: &Subjects, gone: &mut usize) -> String {
    let trimmed = word.trim_matches(|c: char| c.is_ascii_punctuation());
    if subjects.knows(trimmed) || is_bus_address(trimmed) {
        return word.to_string();
    }
    // A path, or a name with a host: none of it is the driver's own text.
    let slashes = trimmed.matches('/').count();
    let halves = trimmed.split('/').all(|h| h.len() <= 8 && !h.contains('.'));
    if slashes > 1 || slashes == 1 && !halves || word.starts_with('/') && word.len() > 1 || trimmed.contains('@') {
        *gone += 1;
        return GONE.to_string();
    }
    let mut out = String::new();
    let mut rest = word;
    while !rest.is_empty() {
        let inner = |c: char| !c.is_ascii_punctuation() || matches!(c, '_' | '-' | '.');
        let end = rest.find(|c| !inner(c)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        if !part.is_empty() {
            let core = part.trim_matches(['.', '-', '_']);
            if core.is_empty() || subjects.knows(core) || is_word(core) || is_number(core) {
                out.push_str(part);
            } else {
                *gone += 1;
                out.push_str(GONE);
            }
        }
        let sign = after.chars().next().map_or(0, char::len_utf8);
        out.push_str(&after[..sign]);
        rest = &after[sign..];
    }
    out
}

/// Whether these are letters, or names of functions and registers as drivers print them: `tx_timeout`, `rx3`, `re-initialising`.
fn is_word(text: &str) -> bool {
    text.len() <= LONGEST
        && text.split(['_', '-']).all(|p| {
            let letters = p.len() - p.trim_end_matches(|c: char| c.is_ascii_digit()).len();
            let (head, digits) = (&p[..p.len() - letters], letters);
            head.bytes().all(|b| b.is_ascii_alphabetic()) && (digits == 0 || digits <= 3 && head.len() <= 6)
        })
}

/// `1000`, `0x1f`, `10.5`, `1000Mbps`, `3s`, `5.0GT`.
fn is_number(text: &str) -> bool {
    if let Some(hex) = text.strip_prefix("0x") {
        return !hex.is_empty() && hex.len() <= 8 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    number && digits.len() <= 8 && unit.len() <= 5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go(log: &str) -> (String, usize) {
        let all = ["eth1", "igb", "mlx5_core", "bond0"].map(str::to_string);
        let mut names = Pseudonyms::default();
        let strings = Strings::new(vec![("web1-berlin".to_string(), "host-name-1".to_string(), "host name")]);
        kernel_lines(log, &Subjects { all: &all }, &mut names, &strings)
    }

    #[test]
    fn lines_of_drivers_and_interfaces_stay() {
        for same in [
            "<6>[    1.234567] igb 0000:03:00.0 eth1: igb: eth1 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: RX/TX",
            "<3>[   10.000001] [   T12] mlx5_core 0000:82:00.1: Tx timeout on queue 3, SQ 0x1f, cons_idx=0x3, 250ms",
            "<4>[   11.000001] NETDEV WATCHDOG: eth1 (igb): transmit queue 3 timed out 5000 ms",
            "<6>[   12.000001] bond0: (slave eth1): link status definitely up, 10000 Mbps full duplex",
            "<6>[   13.000001] IPv6: ADDRCONF(NETDEV_CHANGE): eth1: link becomes ready",
            "<3>[   14.000001] irq 30: nobody cared (try booting with the \"irqpoll\" option)",
            "<6>[   15.000001] igb 0000:03:00.0: 63.012 Gb/s available PCIe bandwidth, limited by 8.0 GT/s x8 link",
            "<4>[   16.000001] pcieport 0000:00:01.0: AER: Corrected error message received from 0000:03:00.0",
        ] {
            assert_eq!(go(same), (format!("{same}\n"), 0));
        }
    }

    #[test]
    fn other_lines_are_counted() {
        for gone in [
            "<6>[    1.0] usb 1-1: SerialNumber: 4C530001230",
            "<4>[    1.0] eth1 drop IN=eth1 OUT= MAC=3c:ec:ef:12:34:56:00:1b:21:aa:bb:cc:08:00 SRC=10.1.2.3 DST=10.1.2.4",
            "<4>[    1.0] IN=eth1 OUT=eth2 MAC= SRC=10.1.2.3",
            "<30>[    1.0] eth1: a program wrote this",
            "<6>[    1.0] eth10: link is up",
            "<6>[    1.0] pci 0000:00:01.0: [8086:1521] type 00 class 0x020000",
            "<6>[    1.0] audit: type=1400 comm=\"secret\"",
            "no prefix eth1: x",
        ] {
            assert_eq!(go(gone), (String::new(), 1), "{gone}");
        }
        assert_eq!(go("\n<6>[ 1.0] x y\n<6>[ 1.0] eth1: up\n<6>[ 1.0] z\n"), ("<6>[ 1.0] eth1: up\n".into(), 2));
    }

    #[test]
    fn what_a_variable_has_put_there_goes() {
        for (message, want) in [
            ("igb 0000:03:00.0: MAC: 3c:ec:ef:12:34:56", "igb 0000:03:00.0: MAC: 02:00:00:00:00:01"),
            ("eth1: hwaddr3c:ec:ef:12:34:56eth", "eth1: hwaddr02:00:00:00:00:01eth"),
            ("eth1: peer10.1.2.3port and x2001:db8:1::7", "eth1: peer198.18.0.1port and x2001:db8::1"),
            ("igb: board serial XY12345-01, part 4C530001230", "igb: board serial serial-1, part *"),
            ("igb: password=hunter2 key='a b'", "igb: password=secret-1 key='secret-2'"),
            ("igb: loading /lib/firmware/acme/x.bin failed", "igb: loading * failed"),
            ("eth1: renamed from acmebank", "eth1: renamed from *"),
            ("eth1: of web1-berlin.corp.example", "eth1: of host-name-1*"),
            ("eth1: of db7.corp.example", "eth1: of *"),
            ("eth1: from anna@mail.example", "eth1: from email-address-1"),
        ] {
            assert_eq!(go(&format!("<6>[ 1.0] {message}\n")).0, format!("<6>[ 1.0] {want}\n"), "{message}");
        }
    }
}

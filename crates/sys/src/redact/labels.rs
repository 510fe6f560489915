//! Finds values that are private because of the text beside them: `password=…`, `https://user:…@host/…`, `//host/share`,
//! `name@host.example`, `iqn.…`, `Serial Number: …`.

use super::strings::TextKind;

/// Part of a text that is replaced by a pseudonym of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    pub from: usize,
    pub to: usize,
    pub kind: &'static str,
}

/// Suffixes of keys (letters and digits only) whose values are private after `=` and after `:`.
const ENDS: [&str; 21] = [
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "accesskeyid",
    "secretkey",
    "privatekey",
    "sharedkey",
    "authkey",
    "psk",
    "credential",
    "credentials",
    "authorization",
    "cookie",
    "serial",
    "serialnumber",
    "serialno",
];

/// Last words of keys whose values are private only after `=`: the value in `key: 5` is usually a plain number.
const WORDS: [&str; 12] =
    ["pass", "pwd", "pw", "key", "auth", "user", "username", "login", "email", "account", "sn", "session"];

/// Words after which the rest of the line is private.
const TO_THE_END: [&str; 4] = ["password", "passphrase", "authorization", "cookie"];

const TARGETS: [&[u8]; 4] = [b"iqn.", b"nqn.", b"eui.", b"naa."];

/// The first label that begins at `at`, or whose mark (`=`, `:`, `@`) is at `at`. It does not begin before `done`.
pub(super) fn at(input: &[u8], done: usize, at: usize, care: TextKind) -> Option<Label> {
    let found = match input[at] {
        b'=' => labelled(input, done, at),
        b':' if input[at..].starts_with(b"://") => url(input, done, at),
        b':' => labelled(input, done, at).or_else(|| export(input, done, at, care)),
        b'@' => email(input, done, at),
        b'/' | b'\\' if care == TextKind::Prose => share(input, at).or_else(|| path(input, at)),
        b'i' | b'n' | b'e' | b'I' | b'N' | b'E' => target(input, at),
        b's' | b'S' | b'p' | b'P' | b't' | b'T' if care == TextKind::Prose => named(input, at),
        _ => None,
    };
    found.filter(|l| l.from >= done && l.to > l.from)
}

fn ends_word(b: u8) -> bool {
    b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b',' | b';' | b'&' | b')' | b']' | b'}' | b'>' | b'<')
}

fn end(input: &[u8], from: usize, ends: impl Fn(u8) -> bool) -> usize {
    input[from..].iter().position(|b| ends(*b) || *b == 0).map_or(input.len(), |n| from + n)
}

fn begins(input: &[u8], at: usize) -> bool {
    at == 0 || !input[at - 1].is_ascii_alphanumeric() && !matches!(input[at - 1], b'_' | b'.' | b'-' | b'/' | b'\\')
}

/// `key=value`, `key: value`, with or without quotes and blanks.
fn labelled(input: &[u8], done: usize, mark: usize) -> Option<Label> {
    let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/');
    let mut last = mark;
    while last > done && matches!(input[last - 1], b' ' | b'\t' | b'"' | b'\'') {
        last -= 1;
    }
    let first = input[done..last].iter().rposition(|b| !part(b)).map_or(done, |n| done + n + 1);
    let key = String::from_utf8_lossy(&input[first..last]).to_lowercase();
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    // `Serial Number:` has its first word before the blank.
    let before = String::from_utf8_lossy(&input[done.max(first.saturating_sub(8))..first]).to_lowercase();
    let by_two = before.trim_end().ends_with("serial") && matches!(plain.as_str(), "number" | "no" | "num" | "nr");
    let word = key.rsplit(['_', '-', '.', '/']).next().unwrap_or_default();
    let known = by_two
        || ENDS.iter().any(|e| plain.ends_with(e))
        || key == "s/n"
        || input[mark] == b'=' && (WORDS.contains(&word) || plain.ends_with("username"));
    if !known {
        return None;
    }
    let mut from = mark + 1;
    while input.get(from).is_some_and(|b| matches!(b, b' ' | b'\t' | b'=')) {
        from += 1;
    }
    let quote = input.get(from).copied().filter(|b| matches!(b, b'"' | b'\''));
    let to = match quote {
        Some(q) => {
            from += 1;
            end(input, from, |b| b == q || b == b'\n')
        }
        None if input[mark] == b':' && TO_THE_END.iter().any(|w| plain.ends_with(w)) => {
            end(input, from, |b| b == b'\n')
        }
        None => end(input, from, ends_word),
    };
    let kind = if by_two || plain.ends_with("serial") || plain.starts_with("serial") || matches!(word, "sn" | "n") {
        "serial"
    } else {
        "secret"
    };
    Some(Label { from, to, kind })
}

/// Everything after `scheme://`: names of users and hosts, paths, tokens.
fn url(input: &[u8], done: usize, colon: usize) -> Option<Label> {
    let letter = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
    let is_scheme = colon > done && letter(&input[colon - 1]);
    let from = colon + 3;
    let to = end(input, from, |b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'>' | b'<'));
    (is_scheme && input.get(from).is_some_and(|b| !b.is_ascii_whitespace())).then_some(Label { from, to, kind: "url" })
}

/// Suffixes of unit names: `getty@tty1.service` is not a mail address.
const UNITS: [&str; 12] =
    ["service", "socket", "mount", "automount", "timer", "target", "slice", "scope", "path", "device", "swap", "conf"];

/// `anna@mail.example`: a name, and a host with a dot in it.
fn email(input: &[u8], done: usize, mark: usize) -> Option<Label> {
    let local = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'%' | b'+' | b'-');
    let first = input[done..mark].iter().rposition(|b| !local(b)).map_or(done, |n| done + n + 1);
    let host = |b: u8| !(b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'));
    let to = end(input, mark + 1, host);
    let name = &input[mark + 1..to];
    let dotted = name.iter().position(|b| *b == b'.').is_some_and(|n| n > 0 && n + 1 < name.len());
    let last = String::from_utf8_lossy(name).trim_end_matches('.').rsplit('.').next().map(str::to_lowercase);
    let unit = last.is_some_and(|l| UNITS.contains(&l.as_str()));
    (first < mark && dotted && !unit && name.iter().any(u8::is_ascii_alphabetic)).then_some(Label {
        from: first,
        to,
        kind: "email address",
    })
}

/// `//host/share`, `\\host\share`.
fn share(input: &[u8], at: usize) -> Option<Label> {
    let mark = input[at];
    let is_two = input.get(at + 1) == Some(&mark) && input.get(at + 2).is_some_and(u8::is_ascii_alphanumeric);
    if !is_two || at > 0 && !matches!(input[at - 1], b' ' | b'\t' | b'\n' | b'"' | b'\'' | b'=' | b'(' | b'[' | b',') {
        return None;
    }
    let to = end(input, at + 2, ends_word);
    input[at + 2..to].contains(&mark).then_some(Label { from: at + 2, to, kind: "network mount" })
}

/// `filer:/vol/home`.
fn export(input: &[u8], done: usize, colon: usize, care: TextKind) -> Option<Label> {
    let name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    let first = input[done..colon].iter().rposition(|b| !name(b)).map_or(done, |n| done + n + 1);
    let path = input.get(colon + 1) == Some(&b'/') && input.get(colon + 2).is_some_and(u8::is_ascii_alphanumeric);
    let to = end(input, colon, ends_word);
    (care == TextKind::Prose && path && first < colon).then_some(Label { from: first, to, kind: "network mount" })
}

/// Directories that a package or the kernel creates; a user chose the names elsewhere.
const COMMON_PATHS: [&[u8]; 12] = [
    b"/proc/",
    b"/sys/",
    b"/dev/",
    b"/etc/",
    b"/run/ringwise/",
    b"/run/systemd/",
    b"/var/lib/ringwise/",
    b"/usr/",
    b"/bin/",
    b"/sbin/",
    b"/lib/",
    b"/lib64/",
];

/// `/home/anna/state`.
fn path(input: &[u8], at: usize) -> Option<Label> {
    let absolute = input[at] == b'/' && begins(input, at) && input.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
    let to = end(input, at, |b| ends_word(b) || b == b':');
    let several = input[at + 1..to].contains(&b'/');
    let common =
        COMMON_PATHS.iter().any(|p| input[at..].starts_with(p)) || input[at..to].starts_with(b"/var/lib/ringwise");
    (absolute && several && !common).then_some(Label { from: at + 1, to, kind: "path" })
}

/// Names of iSCSI and NVMe targets, and of ports of a SAN.
fn target(input: &[u8], at: usize) -> Option<Label> {
    let head = input.get(at..at + 4)?.to_ascii_lowercase();
    let known = TARGETS.contains(&head.as_slice()) && begins(input, at);
    let digit = input.get(at + 4).is_some_and(u8::is_ascii_hexdigit);
    (known && digit).then(|| Label { from: at, to: end(input, at, ends_word), kind: "target" })
}

/// `serial number X1`, `password hunter2`: the word alone, then a value that is long or has a digit.
fn named(input: &[u8], at: usize) -> Option<Label> {
    if !begins(input, at) {
        return None;
    }
    let to = end(input, at, |b| !b.is_ascii_alphabetic());
    let word = String::from_utf8_lossy(&input[at..to]).to_lowercase();
    let kind = match word.as_str() {
        "serial" => "serial",
        "password" | "passphrase" | "passwd" | "token" | "secret" => "secret",
        _ => return None,
    };
    let mut from = to;
    loop {
        let blank = input[from..].iter().take_while(|b| matches!(b, b' ' | b'\t' | b'#' | b'.')).count();
        if blank == 0 {
            return None;
        }
        from += blank;
        let to = end(input, from, ends_word);
        let value = &input[from..to];
        let lower = value.to_ascii_lowercase();
        if kind == "serial" && [&b"number"[..], b"no", b"no.", b"num", b"nr", b"nr."].contains(&lower.as_slice()) {
            from = to;
            continue;
        }
        let telling = value.iter().any(u8::is_ascii_digit) && !value.ends_with(b":") && !value.contains(&b'=');
        return telling.then_some(Label { from, to, kind });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, care: TextKind) -> Vec<(String, &'static str)> {
        let input = text.as_bytes();
        let (mut out, mut done, mut at) = (Vec::new(), 0, 0);
        while at < input.len() {
            match super::at(input, done, at, care) {
                Some(l) => {
                    out.push((text[l.from..l.to].to_string(), l.kind));
                    (done, at) = (l.to, l.to);
                }
                None => at += 1,
            }
        }
        out
    }

    #[test]
    fn values_by_their_labels() {
        for (text, want, kind) in [
            ("db_password=hunter2 x", "hunter2", "secret"),
            ("password: correct horse battery", "correct horse battery", "secret"),
            ("\"apiKey\": \"ab cd\", x", "ab cd", "secret"),
            ("X-Auth-Token: 7f3a9", "7f3a9", "secret"),
            ("user = anna", "anna", "secret"),
            ("Serial Number: SN-17, x", "SN-17", "serial"),
            ("S/N: 0042", "0042", "serial"),
            ("see https://anna:pw@git.example/x?y=1 now", "anna:pw@git.example/x?y=1", "url"),
            ("to anna.b@mail.example;", "anna.b@mail.example", "email address"),
            ("iqn.2001-04.com.example:disk1,x", "iqn.2001-04.com.example:disk1", "target"),
        ] {
            assert_eq!(found(text, TextKind::Tables), [(want.to_string(), kind)], "{text}");
        }
        for (text, want, kind) in [
            ("mount //nas7/home$ failed", "nas7/home$", "network mount"),
            ("mount filer7:/vol/a failed", "filer7:/vol/a", "network mount"),
            (r"at \\nas7\home", r"nas7\home", "network mount"),
            ("serial number X17-2 found", "X17-2", "serial"),
            ("serial no. 4711", "4711", "serial"),
            ("password hunter2", "hunter2", "secret"),
            ("state in /home/anna/rw: x", "home/anna/rw", "path"),
        ] {
            assert_eq!(found(text, TextKind::Prose), [(want.to_string(), kind)], "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_one_stays() {
        for text in [
            "key: 5",
            "mlx5_comp0@pci:0000:03:00.0",
            "rx-usecs=3 queues=4",
            "/proc/irq/30/smp_affinity_list",
            "/etc/systemd/network/10-nic.link (RX/TX)",
            "serial port 3 is not a number",
            "the token is wrong",
            "std::vec",
            "getty@tty1.service",
        ] {
            let left = found(text, TextKind::Prose);
            assert!(left.is_empty() || text.starts_with("serial port"), "{text}: {left:?}");
        }
    }
}

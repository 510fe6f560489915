//! The output of `ethtool`, as in support bundles. There are two formats: since ethtool 5.9 that of netlink, which
//! prints `n/a` for what the driver does not have; before that of the ioctl, which prints 0 and `off` for it.

use std::collections::BTreeMap;

use ringwise_model::nic::Pause;
use ringwise_model::{Channels, Coalesce, Count, Feature, RingKind, RingPart, Rings};

use crate::ParseError;
use crate::ethtool_ioctl::Drvinfo;
use crate::ethtool_nl::coalesce::is_parameter;

/// `key: value` without the blanks around both.
fn pair(line: &str) -> Option<(&str, &str)> {
    line.split_once(':').map(|(k, v)| (k.trim(), v.trim()))
}

/// The errno of an error message that was printed instead of an answer. `None`: not a known error. Single lines of an
/// answer may look like errors too, so this is only for a text that is not an answer.
pub fn refused(text: &str) -> Option<i32> {
    const WORDS: [(&str, i32); 5] = [
        ("Operation not supported", 95),
        ("Operation not permitted", 1),
        ("Permission denied", 13),
        ("No such device", 19),
        ("Invalid argument", 22),
    ];
    // perror() breaks the line in the older format: "Cannot get …\n: Operation not supported".
    let refusal = |l: &&str| ["netlink error:", "Cannot get", ": "].iter().any(|p| l.starts_with(p));
    text.lines().filter(refusal).find_map(|l| WORDS.iter().find(|(w, _)| l.trim_end().ends_with(w))).map(|(_, e)| *e)
}

/// The two halves of `ethtool -l` and `-g`: present value and maximum by name. The driver does not have what is 0 of 0.
fn counts(what: &'static str, text: &str) -> Result<BTreeMap<String, Count>, ParseError> {
    let mut maximum: BTreeMap<&str, Option<u32>> = BTreeMap::new();
    let mut now: BTreeMap<&str, Option<u32>> = BTreeMap::new();
    let mut half = 0;
    for (i, line) in text.lines().enumerate() {
        match line.trim() {
            "Pre-set maximums:" => half = 1,
            "Current hardware settings:" => half = 2,
            _ => {
                let Some((key, value)) = pair(line).filter(|_| half > 0) else { continue };
                // Other values are words: on, off, n/a.
                let number = value.parse().ok();
                if number.is_none() && value != "n/a" && !value.bytes().all(|b| b.is_ascii_lowercase()) {
                    return Err(ParseError::at(what, i + 1, line, "a number, a word or n/a"));
                }
                if half == 1 { &mut maximum } else { &mut now }.insert(key, number);
            }
        }
    }
    // Truncated output is not an answer.
    if maximum.is_empty() || maximum.keys().any(|k| !now.contains_key(k)) {
        return Err(ParseError::new(what, text, "maximums and as many current settings"));
    }
    let both = |(key, max): (&str, Option<u32>)| {
        let max = max.filter(|m| *m > 0)?;
        Some((key.to_string(), Count { now: now.get(key).copied().flatten()?, max }))
    };
    Ok(maximum.into_iter().filter_map(both).collect::<BTreeMap<_, _>>())
}

/// `ethtool -l DEV`
pub fn channels(text: &str) -> Result<Channels, ParseError> {
    let c = counts("ethtool -l", text)?;
    let of = |name: &str| c.get(name).copied();
    Ok(Channels { rx: of("RX"), tx: of("TX"), combined: of("Combined"), other: of("Other") })
}

/// `ethtool -g DEV`, with `TCP data split` if it is printed.
pub fn rings(text: &str) -> Result<(Rings, Option<bool>), ParseError> {
    let c = counts("ethtool -g", text)?;
    let split = text.lines().filter_map(pair).filter(|(k, _)| *k == "TCP data split").find_map(|(_, v)| on(v));
    let mut out = Rings::default();
    for part in RingPart::ALL {
        let alone = || text.lines().filter_map(pair).filter(|(k, _)| *k == part.printed).find_map(|(_, v)| number(v));
        let found = match part.kind {
            RingKind::Size => c.get(part.printed).copied(),
            RingKind::Mode => alone().filter(|on| *on != 0).map(|now| Count { now, max: 0 }),
            _ => c.get(part.printed).copied().or_else(|| alone().map(|now| Count { now, max: 0 })),
        };
        part.store(&mut out, found);
    }
    Ok((out, split))
}

/// A number, or a switch as 0 and 1.
fn number(word: &str) -> Option<u32> {
    word.parse().ok().or_else(|| on(word).map(u32::from))
}

fn on(word: &str) -> Option<bool> {
    match word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// `ethtool -a DEV`
pub fn pause(text: &str) -> Result<Pause, ParseError> {
    let of = |name: &str| text.lines().filter_map(pair).find(|(k, _)| *k == name).and_then(|(_, v)| on(v));
    match (of("Autonegotiate"), of("RX"), of("TX")) {
        (autoneg, Some(rx), Some(tx)) => Ok(Pause { autoneg, rx: Some(rx), tx: Some(tx) }),
        _ => Err(ParseError::new("ethtool -a", text, "RX and TX, on or off")),
    }
}

/// The kernel's name of a parameter.
fn parameter(name: &str) -> Option<String> {
    let name = match name {
        "sample-interval" => "rate-sample-interval".to_string(),
        other => match other.split_once("-frame").map(|(dir, rest)| (dir, rest.strip_prefix('s').unwrap_or(rest))) {
            Some((dir @ ("rx" | "tx"), rest)) => format!("{dir}-max-frames{rest}"),
            _ => other.to_string(),
        },
    };
    // The others are printed in another format.
    (is_parameter(&name) && !name.contains('.') && !name.starts_with("use-")).then_some(name)
}

/// `ethtool -c DEV`. The ioctl format does not distinguish 0 from a parameter that the driver does not have, so zeros
/// are omitted.
pub fn coalesce(text: &str) -> Result<Coalesce, ParseError> {
    let told = text.lines().filter_map(pair).any(|(_, v)| v == "n/a" || v.starts_with("n/a "));
    let mut out = Coalesce::default();
    // The last parameter that every version prints. If it is missing, the output is truncated.
    let mut whole = false;
    let mut put = |name: &str, value: u32| {
        if told || value != 0 {
            out.0.insert(name.to_string(), value);
        }
    };
    for (i, line) in text.lines().enumerate() {
        let Some((key, value)) = pair(line) else { continue };
        whole |= parameter(key).is_some_and(|p| p == "tx-max-frames-high");
        let both = match key {
            "Adaptive RX" => Some(["use-adaptive-rx", "use-adaptive-tx"]),
            "CQE mode RX" => Some(["use-cqe-mode-rx", "use-cqe-mode-tx"]),
            _ => None,
        };
        if let Some(names) = both {
            // Adaptive RX: off  TX: n/a
            let (rx, tx) = value.split_once("TX:").unwrap_or((value, ""));
            for (name, word) in names.iter().zip([rx, tx]) {
                if let Some(b) = on(word.trim()) {
                    put(name, u32::from(b));
                }
            }
        } else if let Some(name) = parameter(key) {
            match value.parse::<u32>() {
                Ok(n) => put(&name, n),
                Err(_) if value == "n/a" => {}
                Err(_) => return Err(ParseError::at("ethtool -c", i + 1, line, "a number or n/a")),
            }
        }
    }
    if whole { Ok(out) } else { Err(ParseError::new("ethtool -c", text, "coalescing parameters to the last")) }
}

/// Features that have an older name in `ethtool -k`.
const OLD_NAMES: [(&str, &str); 9] = [
    ("rx-checksumming", "rx-checksum"),
    ("udp-fragmentation-offload", "tx-udp-fragmentation"),
    ("generic-segmentation-offload", "tx-generic-segmentation"),
    ("generic-receive-offload", "rx-gro"),
    ("large-receive-offload", "rx-lro"),
    ("rx-vlan-offload", "rx-vlan-hw-parse"),
    ("tx-vlan-offload", "tx-vlan-hw-insert"),
    ("ntuple-filters", "rx-ntuple-filter"),
    ("receive-hashing", "rx-hashing"),
];
/// Lines for several features, which follow them.
const GROUPS: [&str; 3] = ["tx-checksumming", "scatter-gather", "tcp-segmentation-offload"];

/// `ethtool -k DEV`, by the kernel's names.
pub fn features(text: &str) -> Result<BTreeMap<String, Feature>, ParseError> {
    let mut out = BTreeMap::new();
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.ends_with(':') && !l.trim().is_empty()) {
        let bad = || ParseError::at("ethtool -k", i + 1, line, "a feature that is on or off");
        let Some((name, value)) = pair(line) else { continue };
        let (word, mark) = value.split_once(' ').unwrap_or((value, ""));
        let (Some(on), false) = (on(word), GROUPS.contains(&name)) else {
            if GROUPS.contains(&name) || name.starts_with("Cannot get") {
                continue;
            }
            return Err(bad());
        };
        let (fixed, wanted) = match mark.trim() {
            "" => (false, on),
            "[fixed]" => (true, on),
            "[requested on]" => (false, true),
            "[requested off]" => (false, false),
            _ => return Err(bad()),
        };
        let name = OLD_NAMES.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new);
        out.insert(name.to_string(), Feature { on, wanted, fixed });
    }
    if out.is_empty() { Err(ParseError::new("ethtool -k", text, "features")) } else { Ok(out) }
}

/// `ethtool --show-priv-flags DEV`
pub fn private_flags(text: &str) -> Result<BTreeMap<String, bool>, ParseError> {
    let mut lines = text.lines();
    if !lines.next().is_some_and(|l| l.starts_with("Private flags for ")) {
        return Err(ParseError::new("ethtool --show-priv-flags", text, "private flags"));
    }
    Ok(lines.filter_map(pair).filter_map(|(k, v)| Some((k.to_string(), on(v)?))).collect::<BTreeMap<_, _>>())
}

/// `ethtool -i DEV`
pub fn drvinfo(text: &str) -> Result<Drvinfo, ParseError> {
    let of = |name: &str| text.lines().filter_map(pair).find(|(k, _)| *k == name).map_or("", |(_, v)| v).to_string();
    let whole = text.lines().any(|l| l.starts_with("bus-info:"));
    let d = Drvinfo {
        driver: of("driver"),
        version: of("version"),
        fw_version: of("firmware-version"),
        bus_info: of("bus-info"),
    };
    if d.driver.is_empty() || !whole {
        return Err(ParseError::new("ethtool -i", text, "driver to bus-info"));
    }
    Ok(d)
}

/// `ethtool -P DEV`. `None`: not printed, or not set.
pub fn permanent_mac(text: &str) -> Option<String> {
    let mac = text.lines().find_map(|l| l.strip_prefix("Permanent address:"))?.trim().to_lowercase();
    let fine = mac.split(':').count() == 6 && mac.split(':').all(|p| p.len() == 2 && u8::from_str_radix(p, 16).is_ok());
    (fine && mac != "00:00:00:00:00:00").then_some(mac)
}

/// `ethtool --show-eee DEV`: whether it is in use, and whether it is on. For a device without EEE, the output is an
/// error: see [`refused`].
pub fn eee(text: &str) -> Result<(bool, bool), ParseError> {
    let status = text.lines().filter_map(pair).find(|(k, _)| *k == "EEE status").map(|(_, v)| v);
    match status {
        Some("enabled - active") => Ok((true, true)),
        Some("enabled - inactive") => Ok((false, true)),
        Some("disabled") => Ok((false, false)),
        _ => Err(ParseError::new("ethtool --show-eee", text, "EEE status: enabled or disabled")),
    }
}

/// What `ethtool DEV` prints about the link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkText {
    /// Mb/s. `None`: not printed. `Some(None)`: the driver does not know it.
    pub speed_mbps: Option<Option<u32>>,
    /// `full`, `half` or `unknown`.
    pub duplex: Option<&'static str>,
    /// `Link detected`. `None`: the line is missing.
    pub carrier: Option<bool>,
}

/// `ethtool DEV`
pub fn link(text: &str) -> LinkText {
    let of = |name: &str| text.lines().filter_map(pair).find(|(k, _)| *k == name).map(|(_, v)| v);
    LinkText {
        speed_mbps: of("Speed").and_then(|v| match v.strip_suffix("Mb/s") {
            Some(n) => n.parse().ok().map(Some),
            None => v.starts_with("Unknown").then_some(None),
        }),
        duplex: of("Duplex").and_then(|v| match v {
            "Full" => Some("full"),
            "Half" => Some("half"),
            v => v.starts_with("Unknown").then_some("unknown"),
        }),
        carrier: of("Link detected").and_then(|v| match v.split_whitespace().next()? {
            "yes" => Some(true),
            "no" => Some(false),
            _ => None,
        }),
    }
}

#[cfg(test)]
#[path = "ethtool_text_tests.rs"]
mod tests;

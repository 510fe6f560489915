//! `.link` files of systemd-udevd (systemd.link(5)).

use ringwise_model::order::Order;
use ringwise_model::{ConfiguredBy, Nic, Snapshot};

use super::words::{Group, number, part, switch};
use super::{ForeignFile, Imported, ImportedValue, devices};
use crate::export::{FEATURE_WORDS, link as exported};
use crate::spec;
use crate::words::glob_matches;

/// One of them is in every file of this kind.
const SECTIONS: [&str; 2] = ["Match", "Link"];

/// Reads all files that systemd-udevd would read, in any order: of an interface, the first file by name that matches is
/// used, and no other.
pub fn link(files: &[ForeignFile], s: &Snapshot, out: &mut Imported) {
    let mut files: Vec<&ForeignFile> = files.iter().collect();
    files.order_by_key(|f| name(f).to_string());
    let parsed: Vec<_> = files.into_iter().map(|f| (f, f.settings(out))).collect();
    for (file, all) in &parsed {
        if let Some(first) = all.first().filter(|_| !all.iter().any(|s| SECTIONS.contains(&s.section.as_str()))) {
            let why = "it has no section [Match] or [Link]; expected a .link file (systemd.link(5))";
            out.refuse(&file.at(first.line), why);
        }
    }
    let mut used = vec![false; parsed.len()];
    let mut unclear: Vec<(usize, String)> = Vec::new();
    for n in devices::all(s) {
        for (i, (file, all)) in parsed.iter().enumerate() {
            let criteria: Vec<_> = all.iter().filter(|s| s.section == "Match").collect();
            match criteria.iter().map(|c| matches(&c.key, &c.value, n)).fold(Some(!criteria.is_empty()), both) {
                Some(false) => continue,
                Some(true) => {
                    used[i] = true;
                    for c in all.iter().filter(|s| s.section == "Link") {
                        setting(&c.key, &c.value, n, &file.at(c.line), out);
                    }
                }
                // Which of the following files applies depends on this one.
                None => unclear.push((i, n.name().to_string())),
            }
            break;
        }
    }
    for (i, (file, all)) in parsed.iter().enumerate() {
        for c in all.iter().filter(|s| s.section == "Link" && tunes(&s.key)) {
            let (by, what) = (file.at(c.line), format!("{}={}", c.key, c.value));
            let of = unclear.iter().find(|(at, _)| *at == i);
            match of {
                Some((_, dev)) => out.leave(&by, what, format!("whether [Match] selects {dev} cannot be decided here")),
                None if used[i] => {}
                None => out.leave(&by, what, "the file applies to no interface of this host"),
            }
        }
    }
}

fn name(f: &ForeignFile) -> &str {
    f.path.rsplit('/').next().unwrap_or(&f.path)
}

fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// `None`: this cannot be decided with what is known about the interface.
fn matches(key: &str, value: &str, n: &Nic) -> Option<bool> {
    let (not, value) = match value.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, value),
    };
    let any = |f: &dyn Fn(&str) -> bool| Some(value.split_whitespace().any(f) != not);
    match key {
        // The kernel's name for the interface is unknown after it was renamed.
        "OriginalName" if value == "*" => Some(!not),
        "OriginalName" => {
            let renamed = !n.name().starts_with("eth") && value.starts_with("eth");
            if renamed { None } else { any(&|p| glob_matches(p, n.name())) }
        }
        "MACAddress" | "PermanentMACAddress" => {
            let mac = n.dev.permanent_mac.as_deref()?;
            let digits = |t: &str| t.chars().filter(char::is_ascii_hexdigit).collect::<String>().to_ascii_lowercase();
            any(&|m| digits(m) == digits(mac))
        }
        "Driver" => {
            let driver = n.driver.known()?;
            any(&|p| glob_matches(p, driver))
        }
        "Path" => {
            let path = format!("pci-{}", n.dev.bus_address.as_deref()?);
            any(&|p| glob_matches(p, &path) || glob_matches(p, &format!("{path}-")))
        }
        "Type" => any(&|p| glob_matches(p, "ether")),
        _ => None,
    }
}

/// Keys that configure something that ringwise configures too. Names and addresses are not listed.
fn tunes(key: &str) -> bool {
    !matches!(
        key,
        "Description"
            | "Alias"
            | "MACAddressPolicy"
            | "MACAddress"
            | "NamePolicy"
            | "Name"
            | "AlternativeNamesPolicy"
            | "AlternativeName"
    )
}

fn setting(key: &str, value: &str, n: &Nic, by: &ConfiguredBy, out: &mut Imported) {
    // An empty value removes an earlier one.
    if !tunes(key) || value.is_empty() {
        return;
    }
    match read(key, value, n) {
        Ok(part) => out.add(Some(n.name()), part, by),
        Err(why) => out.leave(by, format!("{key}={value}"), why),
    }
}

fn read(key: &str, value: &str, n: &Nic) -> Result<ImportedValue, String> {
    let counted = |group: Group, word: &str, max: Option<u32>| match value {
        "max" => part(group, word, &max.ok_or("the maximum of the device is unknown")?.to_string()),
        v => part(group, word, v),
    };
    let ring = |f: fn(&ringwise_model::Rings) -> Option<ringwise_model::Count>| Some(f(n.rings.known()?)?.max);
    let channel = |f: fn(&ringwise_model::Channels) -> Option<ringwise_model::Count>| Some(f(n.channels.known()?)?.max);
    match key {
        "RxChannels" => counted(Group::Channels, "rx", channel(|c| c.rx)),
        "TxChannels" => counted(Group::Channels, "tx", channel(|c| c.tx)),
        "CombinedChannels" => counted(Group::Channels, "combined", channel(|c| c.combined)),
        "RxBufferSize" => counted(Group::Ring, "rx", ring(|r| r.rx)),
        "TxBufferSize" => counted(Group::Ring, "tx", ring(|r| r.tx)),
        "RxFlowControl" => part(Group::Pause, "rx", value),
        "TxFlowControl" => part(Group::Pause, "tx", value),
        "AutoNegotiationFlowControl" => part(Group::Pause, "autoneg", value),
        "TransmitChecksumOffload" => Ok(ImportedValue::Feature("tx".into(), switch(value)?)),
        _ => {
            if let Some(k) = spec::COALESCE.keys.iter().find(|k| exported::parameter(k.name) == Some(key)) {
                return match () {
                    () if key.starts_with("Use") => {
                        Ok(ImportedValue::Coalesce(k.name.into(), u32::from(switch(value)?)))
                    }
                    () if key.ends_with("Sec") => Ok(ImportedValue::Coalesce(k.name.into(), usecs(value)?)),
                    () => Ok(ImportedValue::Coalesce(k.name.into(), number(value)?)),
                };
            }
            let names = FEATURE_WORDS.iter().map(|(.., kernel)| *kernel).chain(MORE_FEATURES);
            match names.into_iter().find(|f| exported::feature(f) == Some(key)) {
                Some(f) => Ok(ImportedValue::Feature(f.to_string(), switch(value)?)),
                None => Err("ringwise has no such setting".into()),
            }
        }
    }
}

/// Features of `.link` files that have no short name in ethtool.
const MORE_FEATURES: [&str; 5] =
    ["rx-gro-hw", "tx-tcp-segmentation", "tx-tcp6-segmentation", "rx-vlan-filter", "tx-vlan-stag-hw-insert"];

/// A time span of systemd.time(7) in microseconds: `50us`, `1ms 500us`; a number without a unit is in seconds.
fn usecs(value: &str) -> Result<u32, String> {
    let bad = || "the value is not a time that ringwise reads".to_string();
    let mut total = 0u64;
    let mut rest = value.trim();
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let n: u64 = rest[..end].parse().map_err(|_| bad())?;
        rest = rest[end..].trim_start();
        let end = rest.find(|c: char| c.is_ascii_digit() || c == ' ').unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "us" | "usec" | "µs" | "μs" => 1,
            "ms" | "msec" => 1000,
            "" | "s" | "sec" | "second" | "seconds" => 1_000_000,
            _ => return Err(bad()),
        };
        rest = rest[end..].trim_start();
        total = n.checked_mul(unit).and_then(|n| total.checked_add(n)).ok_or_else(bad)?;
    }
    u32::try_from(total).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_systemd() {
        let read = |t: &str| usecs(t).ok();
        assert_eq!(read("50us"), Some(50));
        assert_eq!(read("1ms 500us"), Some(1500));
        assert_eq!(read("1ms500us"), Some(1500));
        assert_eq!(read("2"), Some(2_000_000));
        for bad in ["", "us", "1 fortnight", "5000", "99999999999999999999", "-1us", "1.5ms"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    /// Every key that the export writes is read again as the same setting.
    #[test]
    fn reads_what_the_export_writes() {
        for k in spec::COALESCE.keys.iter().filter_map(|k| Some((k.name, exported::parameter(k.name)?))) {
            let s = ringwise_testkit::machines::ten()[0].snapshot();
            let value = if k.1.starts_with("Use") {
                "true"
            } else if k.1.ends_with("Sec") {
                "1us"
            } else {
                "1"
            };
            assert_eq!(read(k.1, value, &s.nics[0]), Ok(ImportedValue::Coalesce(k.0.into(), 1)), "{}", k.1);
        }
        for key in [
            "GenericReceiveOffload",
            "GenericReceiveOffloadHardware",
            "LargeReceiveOffload",
            "GenericSegmentationOffload",
            "TCPSegmentationOffload",
            "TCP6SegmentationOffload",
            "ReceiveChecksumOffload",
            "NTupleFilter",
            "ReceiveVLANCTAGHardwareAcceleration",
            "TransmitVLANCTAGHardwareAcceleration",
            "ReceiveVLANCTAGFilter",
            "TransmitVLANSTAGHardwareAcceleration",
        ] {
            let s = ringwise_testkit::machines::ten()[0].snapshot();
            assert!(matches!(read(key, "false", &s.nics[0]), Ok(ImportedValue::Feature(_, false))), "{key}");
        }
    }
}

//! A plan as a POSIX shell script with its undo: for hosts where ringwise is not to run.
//!
//! It needs sh, cat and echo, and ethtool where channels change. Interrupts are resolved when it
//! runs, by the name of their action among the vectors of the device.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use ringwise_knob::{Of, Setting, SettingMap, collateral, irq, rfs, rings, rss};
use ringwise_model::{CpuId, CpuSet, Dir, Nic, Snapshot};
use ringwise_plan::Plan;

use super::text::mask;

/// The script, or why there cannot be one.
pub fn text(plan: &Plan, s: &Snapshot) -> Result<String, String> {
    let mut found = SettingMap::new();
    for st in &plan.steps {
        if let (Some(a), Some(f)) = (st.setting.address(), st.from.known()) {
            found.insert(a, f.clone());
        }
    }
    let addresses: Vec<_> = plan.steps.iter().filter_map(|st| st.setting.address()).collect();
    let restarted: BTreeSet<String> =
        addresses.iter().filter(|a| a.interrupts_traffic()).filter_map(|a| a.dev().map(str::to_string)).collect();
    let mut before = collateral(s, &addresses);
    before.extend(found.clone());
    let mut out = String::from("#!/bin/sh\n");
    let _ = writeln!(
        out,
        "# Made by ringwise {} for {}, kernel {}: {}",
        env!("CARGO_PKG_VERSION"),
        word(&super::plan::name(plan)),
        word(&super::text::word(&plan.host.kernel, String::clone)),
        super::plan::summary(plan)
    );
    out.push_str("# Run as root: apply does it, undo puts back what was found when this was made.\n");
    out.push_str("# Status: 0 done, 1 nothing changed, 4 failed and put back, 5 failed and not put back, 6 refused.\n");
    out.push_str("set -u\nLC_ALL=C\nexport LC_ALL\n\n");
    list(&mut out, "devices", plan.devices.iter().map(|d| Ok(device_check(&d.name, d.bus_address.as_deref()))))?;
    out.push_str("# What is wanted.\n");
    list(&mut out, "planned", plan.steps.iter().map(|st| line(s, &st.setting, &restarted)))?;
    out.push_str("# What was found there.\n");
    list(&mut out, "found", found.values().map(|v| line(s, v, &restarted)))?;
    out.push_str("# The same with all that it may disturb, for the way back.\n");
    let before = before.iter().map(|(a, v)| match line(s, v, &restarted) {
        // Only beside what the plan changes: said, because it may be lost.
        Err(_) if !found.contains_key(a) && by_ringwise_alone(v) => Ok(format!("# not put back by a script: {a}")),
        other => other,
    });
    list(&mut out, "before", before)?;
    out.push_str(include_str!("script.sh"));
    Ok(out)
}

fn list(out: &mut String, name: &str, lines: impl Iterator<Item = Result<String, String>>) -> Result<(), String> {
    let _ = writeln!(out, "{name}() {{");
    // A function must not be empty.
    out.push_str("  :\n");
    for l in lines {
        let _ = writeln!(out, "  {}", l?);
    }
    out.push_str("}\n\n");
    Ok(())
}

/// Text in a comment: one line.
fn word(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// One word for the shell.
fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@,+=".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.into() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The device is where it was: below its bus address, for virtio one step deeper.
fn device_check(dev: &str, bus: Option<&str>) -> String {
    let places = match bus {
        Some(b) => format!("/sys/bus/*/devices/{b}/net/{dev} /sys/bus/*/devices/{b}/virtio*/net/{dev}"),
        None => format!("/sys/class/net/{dev}"),
    };
    format!("same_device {} {}", quote(dev), quote(&places))
}

fn queue_file(dev: &str, queue: &str, file: &str, kind: &str, value: &str) -> String {
    let path = format!("/sys/class/net/{dev}/queues/{queue}/{file}");
    format!("value {} {} {kind} {}", quote(&format!("{dev} {queue} {file}")), quote(&path), quote(value))
}

fn line(s: &Snapshot, setting: &Setting, restarted: &BTreeSet<String>) -> Result<String, String> {
    Ok(match setting {
        Setting::IrqCpus { dev, of, cpus } => {
            let names = names(action(s, dev, *of)?, *of, restarted.contains(dev));
            format!("irq_cpus {} {} {}", quote(dev), quote(&names), quote(&cpus.to_string()))
        }
        Setting::XpsCpus { dev, queue, cpus } => {
            queue_file(dev, &format!("tx-{queue}"), "xps_cpus", "mask", &mask(cpus))
        }
        Setting::XpsRxqs { dev, queue, rxqs } => {
            let set: CpuSet = rxqs.iter().map(|q| CpuId(*q)).collect();
            queue_file(dev, &format!("tx-{queue}"), "xps_rxqs", "mask", &mask(&set))
        }
        Setting::RpsCpus { dev, queue, cpus } => {
            queue_file(dev, &format!("rx-{queue}"), "rps_cpus", "mask", &mask(cpus))
        }
        Setting::RpsFlowCnt { dev, queue, entries } => {
            queue_file(dev, &format!("rx-{queue}"), "rps_flow_cnt", "number", &rfs::kept(*entries).to_string())
        }
        Setting::RfsEntries { entries } => {
            format!("value 'RFS socket table' /proc/sys/net/core/rps_sock_flow_entries number {}", rfs::kept(*entries))
        }
        Setting::Channels { dev, rx, tx, combined } => {
            let has = [("RX", "rx", rx), ("TX", "tx", tx), ("Combined", "combined", combined)];
            let all: Vec<_> = has.iter().filter_map(|(k, w, n)| n.map(|n| (k, w, n))).collect();
            // ethtool prints n/a for counts that a driver does not have.
            let expect: Vec<String> = all.iter().filter(|(.., n)| *n > 0).map(|(k, _, n)| format!("{k}:{n}")).collect();
            // A zero is told only beside nothing else: drivers refuse counts that they do not have.
            let some = all.iter().any(|(.., n)| *n > 0);
            let words: Vec<String> =
                all.iter().filter(|(.., n)| *n > 0 || !some).map(|(_, w, n)| format!("{w} {n}")).collect();
            by_ethtool(dev, "-l", "-L", &expect.join(" "), &words.join(" "))
        }
        Setting::Rings { dev, rx, tx } => {
            let expect: Vec<String> =
                [("RX", rx), ("TX", tx)].iter().filter_map(|(k, n)| n.map(|n| format!("{k}:{n}"))).collect();
            by_ethtool(dev, "-g", "-G", &expect.join(" "), &rings::text(*rx, *tx))
        }
        Setting::Coalesce { dev, params } => coalesce(dev, params),
        Setting::RssTable { dev, table } => {
            let command = rss::command(dev, table);
            match command.strip_prefix(&format!("ethtool -X {dev} ")) {
                Some(words) => {
                    let expect: String = table.iter().map(|q| format!("{q},")).collect();
                    by_ethtool(dev, "-x", "-X", &format!("table:{expect}"), words)
                }
                None => {
                    return Err(format!(
                        "{dev}: its RSS table cannot be written with ethtool, so it could not be put back"
                    ));
                }
            }
        }
        Setting::IrqbalanceRestart { dev, .. } | Setting::IrqbalanceBan { dev, .. } => {
            format!("by_hand {}", quote(dev))
        }
        _ if by_ringwise_alone(setting) => {
            let what = setting.address().map(|a| a.to_string()).unwrap_or_default();
            return Err(format!("{what}: a script cannot write it and put it back; use ringwise apply"));
        }
        Setting::Other(v) => return Err(format!("a setting of a newer version: {v}")),
        other => return Err(format!("{}: not known to the script", other.value_text())),
    })
}

/// Settings whose writing and looking at again takes more than a file or ethtool's plain words.
fn by_ringwise_alone(setting: &Setting) -> bool {
    matches!(
        setting,
        Setting::Feature { .. }
            | Setting::Ntuple { .. }
            | Setting::Pause { .. }
            | Setting::QueueCoalesce { .. }
            | Setting::RssHash { .. }
            | Setting::RssFields { .. }
            | Setting::RssContext { .. }
            | Setting::FlowRule { .. }
            | Setting::NapiDevice { .. }
            | Setting::Napi { .. }
            | Setting::NapiThread { .. }
            | Setting::Sysctl { .. }
            | Setting::CpuLatency { .. }
    )
}

fn by_ethtool(dev: &str, ask: &str, tell: &str, expect: &str, words: &str) -> String {
    format!("by_ethtool {} {ask} {tell} {} {words}", quote(dev), quote(expect))
}

/// Counts and times only: ethtool prints flags two a line and in words.
fn coalesce(dev: &str, params: &BTreeMap<String, u32>) -> String {
    let names: Vec<(String, u32)> = params
        .iter()
        .filter(|(k, _)| !k.starts_with("use-") && (k.ends_with("-usecs") || k.ends_with("-max-frames")))
        .map(|(k, v)| (k.replace("-max-frames", "-frames"), *v))
        .collect();
    if names.is_empty() {
        return format!(": {} has no moderation to put back", quote(dev));
    }
    let expect: Vec<String> = names.iter().map(|(k, v)| format!("{k}:{v}")).collect();
    let words: Vec<String> = names.iter().map(|(k, v)| format!("{k} {v}")).collect();
    by_ethtool(dev, "-c", "-C", &expect.join(" "), &words.join(" "))
}

/// The name by which the vector is found when the script runs.
fn action(s: &Snapshot, dev: &str, of: Of) -> Result<String, String> {
    let nic = s.nic(dev).ok_or_else(|| format!("{dev} is not in what was read"))?;
    let name = match irq::vector(nic, of) {
        Some(v) => v
            .names
            .first()
            .cloned()
            .ok_or_else(|| format!("{dev} {of}: its interrupt has no name (is the link down?)"))?,
        None => {
            by_pattern(nic, of).ok_or_else(|| format!("{dev} {of}: no way to tell how its interrupt will be named"))?
        }
    };
    if nic.vectors.iter().filter(|v| v.names.contains(&name)).count() > 1 {
        return Err(format!("{dev}: more than one of its interrupts is named {name}; use ringwise apply"));
    }
    if name.contains(|c: char| c == ',' || c.is_whitespace()) {
        return Err(format!("{dev}: the interrupt name {name:?} cannot be looked up by a script"));
    }
    Ok(name)
}

/// The name and, where the script changes the channels, what the same queue is called when the driver
/// pairs the directions or parts them (igb, ixgbe, i40e).
fn names(name: String, of: Of, restarted: bool) -> String {
    let single = if matches!(of, Of::Tx(_)) { "-tx-" } else { "-rx-" };
    let other = match () {
        () if name.contains("-TxRx-") => name.replace("-TxRx-", single),
        () if name.contains(single) => name.replace(single, "-TxRx-"),
        () => return name,
    };
    if restarted { format!("{name} {other}") } else { name }
}

/// For a queue that a step before will make: a name of the same kind with the number replaced.
fn by_pattern(nic: &Nic, of: Of) -> Option<String> {
    let (dir, queue) = match of {
        Of::Rx(q) => (Dir::Rx, q),
        Of::Tx(q) => (Dir::Tx, q),
        Of::Control(_) => return None,
    };
    nic.queue_vectors().find_map(|v| {
        let have = *if dir == Dir::Rx { v.rx().first() } else { v.tx().first() }?;
        let name = v.names.first()?;
        let number = have.to_string();
        let at = name.rfind(&number)?;
        let (head, tail) = (&name[..at], &name[at + number.len()..]);
        let whole = !head.ends_with(|c: char| c.is_ascii_digit()) && !tail.starts_with(|c: char| c.is_ascii_digit());
        whole.then(|| format!("{head}{queue}{tail}"))
    })
}

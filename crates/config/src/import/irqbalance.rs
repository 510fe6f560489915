//! `/etc/default/irqbalance` (Debian), `/etc/sysconfig/irqbalance` (Fedora), and the arguments of the running irqbalance.
//!
//! irqbalance(1): `IRQBALANCE_BANNED_CPUS` (a mask) takes precedence over `IRQBALANCE_BANNED_CPULIST` (a list), as in
//! `setup_banned_cpus` of cputree.c, 1.9.

use ringwise_kfmt::{cpulist, cpumask};
use ringwise_model::{ConfiguredBy, CpuSet, Snapshot};

use super::{ForeignFile, Imported, ImportedValue};

/// Variables whose value is a list of arguments: of upstream's unit, of Debian's, of older Fedora's.
const ARGUMENTS: [&str; 3] = ["IRQBALANCE_ARGS", "OPTIONS", "IRQBALANCE_OPTIONS"];

/// CPUs that irqbalance does not use.
const BANNED: [&str; 2] = ["IRQBALANCE_BANNED_CPUS", "IRQBALANCE_BANNED_CPULIST"];

/// Whether and how irqbalance is started.
const STARTED: [&str; 4] = ["IRQBALANCE_ONESHOT", "ONESHOT", "ENABLED", "IRQBALANCE_DEBUG"];

/// Reads one environment file.
pub fn irqbalance(file: &ForeignFile, s: &Snapshot, out: &mut Imported) {
    if file.is_too_large(out) {
        return;
    }
    // As for a shell and for systemd, the last assignment counts.
    let mut mask: Option<(CpuSet, ConfiguredBy)> = None;
    let mut list: Option<(CpuSet, ConfiguredBy)> = None;
    let (mut known, mut unknown) = (false, None);
    for (i, line) in file.text.lines().enumerate() {
        let (line, by) = (line.trim(), file.at(i + 1));
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else { continue };
        let (key, value) = (key.trim(), unquoted(value));
        if BANNED.contains(&key) || ARGUMENTS.contains(&key) || STARTED.contains(&key) {
            known = true;
        } else {
            unknown.get_or_insert(i + 1);
        }
        if value.is_empty() {
            match key {
                "IRQBALANCE_BANNED_CPUS" => mask = None,
                "IRQBALANCE_BANNED_CPULIST" => list = None,
                _ => {}
            }
            continue;
        }
        match key {
            "IRQBALANCE_BANNED_CPUS" => match cpumask::parse(value) {
                Ok(cpus) => mask = Some((cpus, by)),
                Err(e) => out.leave(&by, line, e.to_string()),
            },
            "IRQBALANCE_BANNED_CPULIST" => match cpulist::parse(value) {
                Ok(cpus) => list = Some((cpus, by)),
                Err(e) => out.leave(&by, line, e.to_string()),
            },
            k if ARGUMENTS.contains(&k) => {
                let words: Vec<&str> = value.split_whitespace().collect();
                arguments(&words, &by, s, out);
            }
            k if STARTED.contains(&k) => out.leave(&by, line, STAYS),
            _ => out.leave(&by, line, "not known as a setting of irqbalance"),
        }
    }
    if let (false, Some(line)) = (known, unknown) {
        let why = "it has no variable of irqbalance; expected a file like /etc/default/irqbalance (IRQBALANCE_BANNED_CPULIST=…)";
        out.refuse(&file.at(line), why);
    }
    if let (Some((_, by)), Some((cpus, _))) = (&list, &mask) {
        let why = format!("IRQBALANCE_BANNED_CPUS takes precedence: CPUs {cpus}");
        out.leave(by, "IRQBALANCE_BANNED_CPULIST", why);
    }
    if let Some((cpus, by)) = mask.or(list) {
        exclude(&cpus, &by, s, out);
    }
}

const STAYS: &str = "it concerns other interrupts too, and stays in the configuration of irqbalance";

/// CPUs that irqbalance does not use get no queues. CPUs that do not exist are listed.
pub(super) fn exclude(cpus: &CpuSet, by: &ConfiguredBy, s: &Snapshot, out: &mut Imported) {
    let there = s.topology.possible.known().unwrap_or(&s.topology.online);
    let missing = cpus.difference(there);
    if !missing.is_empty() {
        out.leave(by, format!("CPUs {missing}"), "this host has no such CPUs");
    }
    let cpus = cpus.intersection(there);
    if s.topology.online.is_subset(&cpus) {
        return out.leave(by, format!("CPUs {cpus}"), "no CPU would be left for queues");
    }
    if !cpus.is_empty() {
        out.add(None, ImportedValue::ExcludeCpus(cpus), by);
    }
}

/// Arguments in a file, or of the process that runs now.
pub(super) fn arguments(words: &[&str], by: &ConfiguredBy, s: &Snapshot, out: &mut Imported) {
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or(word);
        let takes_value = ["--banirq", "-i", "--banmod", "-m", "--policyscript", "-l"].contains(&name);
        let value = match word.split_once('=') {
            Some((_, v)) => Some(v),
            None if takes_value => words.next(),
            None => None,
        };
        let shown = match value {
            Some(v) if !word.contains('=') => format!("{word} {v}"),
            _ => word.to_string(),
        };
        match name {
            "--banirq" | "-i" => out.leave(by, shown, banned_interrupt(value, s)),
            "--foreground" | "-f" => {}
            _ => out.leave(by, shown, STAYS),
        }
    }
}

fn banned_interrupt(number: Option<&str>, s: &Snapshot) -> String {
    let Some(number) = number.and_then(|n| n.parse::<u32>().ok()) else { return "not an interrupt number".into() };
    let vectors = s.nics.iter().flat_map(|n| n.queue_vectors().map(move |v| (n, v)));
    match vectors.into_iter().find(|(_, v)| v.irq.0 == number) {
        Some((n, _)) => format!(
            "a queue of {}: not needed, because ringwise makes irqbalance skip the interrupts that it pins",
            n.name()
        ),
        None => STAYS.into(),
    }
}

/// The running irqbalance, whose arguments override its file.
pub(super) fn running(s: &Snapshot, out: &mut Imported) {
    let Some(args) = s.host.irqbalance.known().and_then(|i| i.args.known()) else { return };
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    arguments(&words, &ConfiguredBy::InEffect, s, out);
}

fn unquoted(value: &str) -> &str {
    let value = value.trim();
    let inner = |q: char| value.strip_prefix(q).and_then(|v| v.split(q).next());
    inner('"').or(inner('\'')).unwrap_or_else(|| value.split(" #").next().unwrap_or(value).trim())
}

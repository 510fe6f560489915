//! What `capture --redact` and `support` know about a host and about command lines of ringwise, and the summary they print.

use clap::{Arg, ArgAction, Command};
use ringwise_model::Snapshot;
use ringwise_sys::{Flag, FlagValue, Grammar, Knowledge, Redacted};

use ringwise_text::{plural, thousands};

/// Options of plans whose values are numbers, lists of CPUs, settings, or one of a few keywords.
const PLAIN: [&str; 13] = [
    "goal",
    "cpus",
    "reserve",
    "exclude_cpus",
    "queues",
    "latency_queues",
    "smt",
    "far_node",
    "set",
    "confirm",
    "watch",
    "measure",
    "sample",
];

/// Kinds of private data that are removed without a replacement.
const REMOVED: [&str; 9] = [
    "left out",
    "kernel line",
    "kernel word",
    "value",
    "reason",
    "title",
    "mount option",
    "command line",
    "process arguments",
];
const KERNEL_LINE: &str = "kernel line";

/// `texts` are private wherever they occur.
pub(super) fn knowledge(s: &Snapshot, texts: Vec<(&'static str, String)>) -> Knowledge {
    let mut drivers: Vec<String> = s.nics.iter().filter_map(|n| n.driver.known().cloned()).collect();
    drivers.dedup();
    Knowledge { texts, drivers, grammar: grammar() }
}

/// All commands and flags, from the table of the argument parser.
fn grammar() -> Grammar {
    let mut out = Grammar { program: "ringwise".into(), ..Grammar::default() };
    let mut all = crate::args::command();
    all.build();
    add(&all, &mut out);
    out
}

fn add(command: &Command, out: &mut Grammar) {
    for arg in command.get_arguments() {
        let long = arg.get_long().map(|l| format!("--{l}"));
        let short = arg.get_short().map(|s| format!("-{s}"));
        for name in long.into_iter().chain(short) {
            if !out.flags.iter().any(|f| f.name == name) {
                out.flags.push(Flag { name, value: value(arg) });
            }
        }
    }
    for sub in command.get_subcommands() {
        out.commands.push(sub.get_name().to_string());
        add(sub, out);
    }
}

fn value(arg: &Arg) -> FlagValue {
    match arg.get_action() {
        ArgAction::Set | ArgAction::Append if PLAIN.contains(&arg.get_id().as_str()) => FlagValue::Plain,
        ArgAction::Set | ArgAction::Append => FlagValue::Private,
        _ => FlagValue::Nothing,
    }
}

pub(super) fn kernel_lines_left_out(redacted: &[Redacted]) -> usize {
    redacted.iter().filter(|r| r.kind == KERNEL_LINE).map(|r| r.places).sum()
}

/// What was replaced, removed and kept.
pub(super) fn summary(redacted: &[Redacted]) -> String {
    let mut out = String::new();
    let (removed, replaced): (Vec<_>, Vec<_>) = redacted.iter().partition(|r| REMOVED.contains(&r.kind.as_str()));
    for r in &replaced {
        let (n, places) = (thousands(r.distinct as u64), plural(r.places, "place"));
        out.push_str(&format!("replaced  {}: {n} in {places}\n", r.kind));
    }
    for r in removed {
        out.push_str(&format!("removed   {}: {}\n", r.kind, plural(r.places, "place")));
    }
    if replaced.is_empty() {
        out.push_str("replaced  nothing\n");
    }
    out.push_str(
        "Not replaced: interface names, drivers, models, versions, CPU and PCI layout, RSS keys, names of modules,\n\
         tuned profiles and configuration files. docs/capture.md lists what is removed.\n",
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_by_the_table() {
        let g = grammar();
        let of = |name: &str| g.flags.iter().find(|f| f.name == name).map(|f| f.value);
        for name in ["--reason", "--health", "--config", "--plan", "--state-dir", "--secret-file", "--title"] {
            assert_eq!(of(name), Some(FlagValue::Private), "{name}");
        }
        for name in ["--goal", "--cpus", "--exclude-cpus", "--set", "--confirm", "--latency-queues", "--far-node"] {
            assert_eq!(of(name), Some(FlagValue::Plain), "{name}");
        }
        for name in ["--yes", "-y", "-n", "--allow-disruption", "-v"] {
            assert_eq!(of(name), Some(FlagValue::Nothing), "{name}");
        }
        assert!(g.commands.iter().any(|c| c == "apply") && g.commands.iter().any(|c| c == "bench"));
    }
}

#[cfg(test)]
mod secrets;

//! Tests of the table of commands: help, examples and groups of options.

use super::*;

#[test]
fn the_table_is_valid() {
    command().debug_assert();
}

#[test]
fn every_visible_command_is_in_one_group() {
    let cmd = Cli::command();
    for c in cmd.get_subcommands().filter(|c| !c.is_hide_set()) {
        let n = GROUPS.iter().flat_map(|(_, names)| names.iter()).filter(|n| **n == c.get_name()).count();
        assert_eq!(n, 1, "{}", c.get_name());
    }
    for name in GROUPS.iter().flat_map(|(_, names)| names.iter()) {
        assert!(cmd.find_subcommand(name).is_some(), "{name}");
    }
}

/// Every visible command with its name as typed, subcommands included.
fn all(c: &clap::Command, name: &str, out: &mut Vec<(String, clap::Command)>) {
    for sub in c.get_subcommands().filter(|c| !c.is_hide_set()) {
        let name = format!("{name} {}", sub.get_name());
        all(sub, &name, out);
        out.push((name, sub.clone()));
    }
}

fn built() -> Vec<(String, clap::Command)> {
    let (mut root, mut out) = (command(), Vec::new());
    root.build();
    all(&root, "ringwise", &mut out);
    out
}

#[test]
fn every_command_has_examples_that_can_be_parsed() {
    for (name, command_) in built() {
        let text = command_.get_after_long_help().map(|t| t.to_string()).unwrap_or_default();
        assert!(text.starts_with("Examples:\n") && text.contains("\n\nExit status:\n"), "{name}");
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let examples = text.replace("\\\n      ", "");
        for line in examples.lines().filter_map(|l| l.strip_prefix("  ringwise ")) {
            // A remark follows after three spaces, and a redirection is for the shell.
            let line = line.split("   ").next().unwrap_or_default().split(" > ").next().unwrap_or_default();
            let words = ringwise_model::shell::split(&format!("ringwise {line}")).unwrap();
            let parsed = command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "ringwise {line}: {}", parsed.unwrap_err());
        }
    }
}

#[test]
fn every_option_is_in_a_group() {
    for (name, c) in built() {
        for a in c.get_arguments().filter(|a| !a.is_positional() && !a.is_hide_set()) {
            assert!(a.get_help_heading().is_some(), "{name} --{}", a.get_long().unwrap_or_default());
            assert!(a.get_help().is_some(), "{name} --{}", a.get_long().unwrap_or_default());
        }
    }
}

#[test]
fn every_help_fits_80_columns() {
    for (name, mut c) in built() {
        // The lines that clap wraps. A usage line may be longer.
        let help = c.render_long_help().to_string();
        let wide = help.lines().filter(|l| !l.starts_with("Usage:")).find(|l| l.chars().count() > 80);
        assert_eq!(wide, None, "{name}");
    }
}

#[test]
fn help_fits_one_screen_of_80_columns() {
    let help = command().render_help().to_string();
    assert!(help.lines().count() <= 31, "{} lines", help.lines().count());
    for l in help.lines() {
        assert!(l.chars().count() <= 80, "{l}");
    }
}

/// The help of a workload shows what it uses; the options of the other workloads are still accepted.
#[test]
fn the_help_of_a_workload_shows_its_options() {
    let help = |name: &str| {
        let found = built().into_iter().find(|(n, _)| n == &format!("ringwise bench {name}"));
        found.unwrap().1.render_long_help().to_string()
    };
    let shows = |name: &str, option: &str| help(name).contains(&format!(" --{option} "));
    for (name, size) in
        [("rr", "64 to 1k"), ("burst", "64 to 64k"), ("mixed", "64 to 64k"), ("stream", "16k"), ("receive", "32")]
    {
        assert!(help(name).contains(&format!("[default: {size}]")), "{name}");
        for option in ["in", "out", "gen", "sink", "frame", "recipe", "find-rate", "routes"] {
            assert!(!shows(name, option), "{name} --{option}");
        }
        let mixed = ["mix", "weight"].map(|option| shows(name, option));
        assert_eq!((mixed, shows(name, "flows")), ([name == "mixed"; 2], true), "{name}");
        assert_eq!(shows(name, "burst"), matches!(name, "burst" | "mixed"), "{name}");
        assert_eq!(["threads", "driver"].map(|option| shows(name, option)), [name != "receive"; 2], "{name}");
    }
    for (option, used) in
        [("in", true), ("flows", true), ("rate", true), ("threads", false), ("driver", false), ("mix", false)]
    {
        assert_eq!(shows("forward", option), used, "{option}");
    }
    assert!(help("forward").contains("Usage: ringwise bench forward [OPTIONS]\n"), "it is about --in and --out");
    assert!(shows("search", "threads") && shows("search", "in") && !shows("search", "mix"));
    let line = "ringwise bench receive eth0 --ssh peer1 --threads 2 --mix 1:0 --find-rate --driver built-in";
    assert!(parse(line.split(' ')).is_ok());
    let line = "ringwise bench forward eth0 --in eth0 --out eth1 --gen a --sink b --ssh peer1 --threads 2 --skew 1";
    assert!(parse(line.split(' ')).is_ok());
}

/// `persist` writes the file, so what the options mean for a plan is wrong there.
#[test]
fn the_help_of_persist_is_about_the_file_of_every_boot() {
    let found = built().into_iter().find(|(n, _)| n == "ringwise persist");
    let help = found.unwrap().1.render_long_help().to_string();
    assert!(help.contains("The configuration file of every boot") && !help.contains("options override it"), "{help}");
    for option in ["override-config", "print-config", "take-over", "sample"] {
        assert!(!help.contains(&format!("--{option}")), "{option}: {help}");
    }
    assert!(parse("ringwise persist --goal rpc --override-config".split(' ')).is_ok());
}

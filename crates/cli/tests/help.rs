//! `ringwise help`: every subject has a topic, each page fits, and topics of settings show the values of a host.

use std::process::{Command, Output};

use ringwise_knob::Family;
use ringwise_model::Goal;

use crate::common::fixtures;

fn run(args: &[&str]) -> Output {
    let mut c = Command::new(env!("CARGO_BIN_EXE_ringwise"));
    c.args(args).env("LANG", "C.UTF-8").env_remove("LC_ALL").env_remove("COLUMNS").output().unwrap()
}

/// Standard output of a command that succeeds.
fn page(args: &[&str]) -> String {
    let o = run(args);
    assert_eq!(o.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    String::from_utf8(o.stdout).unwrap()
}

fn router16() -> String {
    let (_, file) = fixtures().into_iter().find(|(n, _)| n == "lab-router16-6.12").unwrap();
    file.display().to_string()
}

fn fits(what: &str, text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{what}: {line}");
    }
}

/// The names of the list, in the order of its sections: those of commands come first.
fn listed() -> Vec<(String, Vec<String>)> {
    let mut out: Vec<(String, Vec<String>)> = Vec::new();
    let page = page(&["help", "--topics"]);
    // The last section has no topics.
    for line in page.lines().skip(2).take_while(|l| *l != "DOCUMENTS") {
        match line.strip_prefix("  ") {
            // A line of its own begins in the third column; the text of a long one goes on far to the right.
            Some(entry) if !entry.starts_with(' ') => {
                let name: String = entry.chars().take(16).collect();
                out.last_mut().unwrap().1.push(name.trim_end().to_string());
            }
            Some(_) => {}
            None if line.is_empty() => {}
            None => out.push((line.to_string(), Vec::new())),
        }
    }
    out
}

#[test]
fn the_list_is_grouped_and_fits() {
    let text = page(&["help", "--topics"]);
    fits("--topics", &text);
    assert!(text.ends_with("/usr/share/doc/ringwise/docs\n"), "{text}");
    assert_eq!(text, page(&["help", "Topics"]));
    let sections = listed();
    let names: Vec<&str> = sections.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(
        names,
        [
            "COMMANDS",
            "SETTINGS",
            "GOALS",
            "CPUS AND NODES",
            "WORDS OF THE OUTPUT",
            "COLUMNS AND LINES OF THE OUTPUT",
            "EXIT STATUS",
            "RULES OF CHECK",
        ]
    );
    assert!(sections.iter().all(|(_, topics)| topics.len() >= 2), "{sections:?}");
    let places = ["remote", "local"].map(|word| (3, word));
    let words = ["8/8", "pending", "queues on cpu", "trial", "guard", "drift", "manual"].map(|word| (4, word));
    for (section, word) in places.into_iter().chain(words) {
        assert!(sections[section].1.iter().any(|n| n == word), "{word}");
    }
}

#[test]
fn every_listed_topic_has_a_short_page_with_the_values_of_a_setting() {
    let from = router16();
    for (section, names) in listed() {
        for name in names {
            let words: Vec<&str> = name.split(' ').collect();
            let text = page(&[["help", "--from", from.as_str()].as_slice(), words.as_slice()].concat());
            if section == "COMMANDS" {
                assert_eq!(text, page(&[name.as_str(), "--help"]), "{name}");
                continue;
            }
            fits(&name, &text);
            if section == "RULES OF CHECK" {
                continue;
            }
            let (about, values) = text.split_once("\nIn this recording\n").unwrap_or((&text, ""));
            assert!(about.lines().count() <= 25 && values.lines().count() <= 6, "{text}");
            assert!(section != "SETTINGS" || !values.is_empty(), "{text}");
        }
    }
}

#[test]
fn families_and_goals_have_a_topic() {
    let names = Family::ALL.iter().map(|f| f.title()).chain(Goal::ALL.iter().map(|g| g.name()));
    for name in names {
        fits(name, &page(&["help", name, "--from", &router16()]));
    }
}

#[test]
fn rules_are_listed_and_explained() {
    let list = page(&["help", "rules"]);
    fits("rules", &list);
    for r in ringwise_check::rules() {
        let line = list.lines().find(|l| l.split(' ').next() == Some(r.id)).unwrap();
        assert!(line.contains(r.severity.name()), "{line}");
        let text = page(&["help", r.id]);
        assert_eq!(text, page(&["check", "--explain", r.id]), "{}", r.id);
        fits(r.id, &text);
    }
    assert_eq!(page(&["help", "a3"]), page(&["help", "A03"]));
}

#[test]
fn commands_take_precedence_over_topics() {
    for words in [vec!["apply"], vec!["bench", "rr"], vec!["confirm"], vec!["help"]] {
        let asked = [["help"].as_slice(), words.as_slice()].concat();
        assert_eq!(page(&asked), page(&[words.as_slice(), ["--help"].as_slice()].concat()), "{words:?}");
    }
    let bare = page(&["help"]);
    assert_eq!(bare, format!("{}Topics: ringwise help --topics\n", page(&["--help"])));
}

#[test]
fn the_page_of_rfs_explains_when_a_flow_moves() {
    let page = page(&["help", "rfs"]).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "It has one table for the host",
        "one for each receive queue",
        "A flow moves only when none of its packets is queued",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn other_names_open_the_same_page() {
    let from = router16();
    for (names, topic) in [
        (["RPS", "rps_cpus", "receive-packet-steering"], "rps"),
        (["far", "!", "far node"], "remote"),
        (["coalesce", "rx-usecs", "DIM"], "moderation"),
        (["4/63", "4+4/8+8", "7/?"], "8/8"),
        (["On Trial", "on-trial", "on_trial"], "trial"),
        (["affinity", "irq_cpus", "interrupt CPU"], "irq"),
        (["router", "Forward", "firewall"], "forward"),
    ] {
        let shown = page(&["help", topic, "--from", &from]);
        for name in names {
            assert_eq!(page(&["help", name, "--from", &from]), shown, "{name}");
        }
    }
    assert_eq!(page(&["help", "on", "trial"]), page(&["help", "trial"]));
    assert_eq!(page(&["help", "exit", "status"]), page(&["help", "exit-status"]));
}

#[test]
fn an_unknown_topic_names_the_nearest_ones() {
    for (typed, near) in [("rpz", "rps"), ("chanels", "channels"), ("R009", "R0.09"), ("ballanced", "balanced")] {
        let o = run(&["help", typed]);
        let err = String::from_utf8_lossy(&o.stderr);
        assert_eq!((o.status.code(), o.stdout.len()), (Some(2), 0), "{err}");
        let first = err.lines().next().unwrap();
        let nearest = first.split_once("; the nearest are ").or_else(|| first.split_once("; did you mean "));
        let nearest: Vec<&str> = nearest.unwrap().1.trim_end_matches('?').split(", ").collect();
        assert!(nearest.len() <= 3 && nearest.contains(&near), "{err}");
        assert!(err.contains("ringwise help --topics"), "{err}");
    }
    let o = run(&["help", "nosuch"]);
    let err = String::from_utf8_lossy(&o.stderr);
    assert_eq!(err, "error: there is no help topic \"nosuch\"\nTry: ringwise help --topics\n", "nothing is like it");
}

#[test]
fn a_setting_shows_the_values_of_the_host() {
    let text = page(&["help", "rps", "--from", &router16()]);
    let (_, values) = text.split_once("\nIn this recording\n").unwrap();
    // All queues of seven interfaces have the same value; the eighth has one queue.
    assert!(values.contains("eth0 ") && values.contains("and ") && values.contains("off"), "{text}");
    assert!(values.lines().any(|l| l.starts_with("  eth3 ")), "{text}");
    assert_eq!(text, page(&["--from", &router16(), "help", "rps"]));
    // mq3 has two of its four queues on the other node.
    let text = page(&["help", "far", "--from", &router16()]);
    assert!(text.lines().any(|l| l.contains("mq3") && l.contains("node 1: 2 of 4")), "{text}");
    // A topic of a word reads no host.
    assert!(!page(&["help", "guard"]).contains("On this host"));
    assert!(page(&["help", "isolated"]).contains("On this host"));
    let o = run(&["help", "rps", "--from", "/nonexistent/host.tar.gz"]);
    assert_eq!(o.status.code(), Some(1), "{}", String::from_utf8_lossy(&o.stderr));
    assert_eq!(run(&["help", "rps", "-j"]).status.code(), Some(2));
}

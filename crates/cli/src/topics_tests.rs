//! The topics of `ringwise help` against commands, keys, rules and documents.

use std::collections::BTreeSet;

use ringwise_config::spec;
use ringwise_knob::Family;
use ringwise_model::Goal;

use ringwise_render::topics::{all, find, normal};

#[test]
fn every_setting_goal_and_key_has_a_topic() {
    let missing = |name: &&str| find(name).is_none();
    let families = Family::ALL.iter().map(|f| f.title());
    let goals = Goal::ALL.iter().map(|g| g.name());
    let keys = [&spec::HOST, &spec::INTERFACE].into_iter().flat_map(|s| s.keys).map(|k| k.name);
    let missing: Vec<&str> = families.chain(goals).chain(keys).filter(missing).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_name_opens_one_topic() {
    let mut seen = BTreeSet::new();
    for name in all().flat_map(|t| t.names) {
        assert!(seen.insert(normal(name)), "{name}");
        assert!(ringwise_check::find(name).is_none(), "{name} is a rule");
    }
}

#[test]
fn names_as_they_are_typed() {
    let first = |name| find(name).map(|t| t.names[0]);
    for (typed, topic) in [
        ("RPS", "rps"),
        ("rps_cpus", "rps"),
        ("8/8", "8/8"),
        ("4+4/8+8", "8/8"),
        ("7/?", "8/8"),
        ("On  Trial", "trial"),
        ("far-node", "remote"),
        ("!", "remote"),
        ("-", "matrix"),
        ("Exit-Status", "exit status"),
        ("3", "exit 3"),
        ("migrate", "migration"),
        ("monitoring", "monitoring"),
        ("dsl", "unhashed"),
        ("mlx5", "drivers"),
        ("udp", "rss"),
        ("UDP4", "rss"),
        ("crash", "guard"),
        ("upgrade", "service"),
    ] {
        assert_eq!(first(typed), Some(topic), "{typed}");
    }
    assert_eq!((first(""), first("rp"), first("a/b")), (None, None, None));
}

#[test]
fn a_line_of_the_list_fits() {
    for t in all() {
        assert!(t.names[0].chars().count() <= 16 && t.title.chars().count() <= 60, "{}: {}", t.names[0], t.title);
        assert!(t.parts.iter().all(|p| p.split_once('|').is_some_and(|(l, _)| (1..=8).contains(&l.len()))));
    }
}

/// Documents exist, rules have a page, other topics can be opened.
#[test]
fn references_lead_to_a_page() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, part) in all().flat_map(|t| t.parts.iter().map(|p| (t.names[0], *p))) {
        for word in part.split([' ', '|', ';', ',', ':']) {
            if word.starts_with("docs/") {
                assert!(root.join(word.trim_end_matches('.')).exists(), "{name}: {word}");
            }
            let is_rule =
                word.starts_with(|c: char| c.is_ascii_uppercase()) && word.ends_with(|c: char| c.is_ascii_digit());
            if is_rule && part.starts_with("See|") {
                assert!(ringwise_check::find(word).is_some(), "{name}: {word}");
            }
        }
        let topics = part.split([';', '|']).filter_map(|p| p.trim().strip_prefix("ringwise help "));
        for topic in topics.flat_map(|list| list.split(", ")).filter(|t| !t.ends_with("...")) {
            assert!(find(topic).is_some(), "{name}: {topic}");
        }
    }
}

/// Commands that set something are valid, for a host that is not read.
#[test]
fn commands_are_valid() {
    use clap::FromArgMatches;
    let mut tried = 0;
    for part in all().flat_map(|t| t.parts) {
        let commands = part.split([';', '|']).flat_map(|p| p.split(", or ")).map(str::trim);
        for line in commands.filter(|c| c.starts_with("ringwise plan ") && c.contains("--set ")) {
            // A reader puts the goal of the host there.
            let line = line.split(". ").next().unwrap_or(line).replace("--goal GOAL", "--goal rpc");
            let words = ringwise_model::shell::split(&line).unwrap();
            let matches = crate::args::command().try_get_matches_from(words).unwrap();
            let Some(crate::args::Cmd::Plan(a)) = crate::args::Cli::from_arg_matches(&matches).unwrap().command else {
                panic!("{line}")
            };
            assert!(ringwise_intent::read(&a.intent.flags(&a.devs), None, true).is_ok(), "{line}");
            tried += 1;
        }
    }
    assert!(tried >= 15, "only {tried} commands were found");
}

/// Words that a table of a document explains: `code` in its first column, or the words before a comma.
fn first_column(document: &str, heading: &str) -> Vec<String> {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document);
    let text = std::fs::read_to_string(file).unwrap();
    let rows = text.lines().skip_while(|l| *l != heading).skip(2).take_while(|l| l.starts_with('|'));
    let cells = rows.map(|l| l.trim_start_matches('|').split('|').next().unwrap().trim());
    cells.flat_map(|c| c.split(", ")).map(|w| w.trim_matches('`').to_string()).collect()
}

/// Headings of tables and of lines of the pages.
const HEADINGS: &[&str] = &[
    "INTERFACE",
    "DRIVER",
    "NODE",
    "LINK",
    "QUEUES",
    "IRQ CPUS",
    "REMARK",
    "IRQ",
    "SERVES",
    "AFFINITY",
    "EFFECTIVE",
    "COUNT",
    "MAP",
    "MOVABLE",
    "NAME",
    "per CPU",
    "RSS",
    "RPS",
    "RFS",
    "XPS",
    "moderation",
    "rings",
    "pause",
    "features",
    "carries",
    "in use by",
    "IRQ map",
    "not movable",
    "not read",
    "unmapped",
    "empty or 0",
    "applied",
    "now",
    "boot",
    "pending",
    "service",
    "paused",
    "problem",
    "unheard",
    "action",
    "competing",
    "on",
    "then",
    "near",
    "far",
    "hot",
    "reset",
    "bql",
    "stuck",
    "drop/s",
    "irq/s",
    "pkt/s",
    "idle",
    "NIC",
    "stack",
    "qdisc",
    "no buf",
    "pause rx/tx",
    "resets",
    "counted by",
    "Better",
    "Costs",
    "control",
    "frames",
    "rx interrupt CPU",
    "tx interrupt CPU",
    "heavy",
    "floor",
    "Zipf",
    "wake-up",
    "governor",
    "preference",
    "turbo",
    "PCIe",
    "PCIe ASPM",
];

#[test]
fn every_word_of_the_glossary_and_every_column_has_a_page() {
    let glossary = first_column("glossary.md", "| word | meaning |");
    let watch = first_column("watch.md", "| column | content |");
    assert!(glossary.len() > 45 && watch.len() > 15, "{} {}", glossary.len(), watch.len());
    let command = |name: &str| crate::args::command().find_subcommand(name).is_some();
    let words = glossary.iter().chain(&watch).map(String::as_str).chain(HEADINGS.iter().copied());
    let missing: Vec<&str> = words.filter(|w| find(w).is_none() && !command(w)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_part_of_the_page_of_a_rule_has_a_topic() {
    let mut parts = BTreeSet::new();
    for r in ringwise_check::rules() {
        let page = ringwise_check::explain(r.id, 100).unwrap();
        let named = page.lines().skip(1).filter(|l| l.starts_with(|c: char| c.is_ascii_uppercase()));
        parts.extend(named.map(|l| l.chars().take(18).collect::<String>().trim_end().to_string()));
    }
    assert!(parts.contains("Confidence") && parts.contains("Other ids"), "{parts:?}");
    let missing: Vec<&String> = parts.iter().filter(|p| find(p).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

//! The blocks of the documents that the lab runs: `lab/documented.sh` holds them, and this keeps it equal to the documents.

use std::fmt::Write as _;

use clap::Parser;
use ringwise_cli::args::Cli;

use super::{Class, Documented, Kind, commands};
use crate::common::root;
use crate::docs::{blocks, documents};
use ringwise_model::shell::quote;

const HEAD: &str = "# The documented commands that change a host or need a live one, block by block.
# A scenario of that name sources it. Made from the documents by RINGWISE_BLESS=1 cargo test -p ringwise --test all documented.
";

/// What must be true before a block: file, its first command, and a line of shell.
const BEFORE: &[(&str, &str, &str)] = &[
    ("docs/apply.md", "ringwise apply --measure 5m", "ringwise apply --goal rpc --yes"),
    ("docs/capture.md", "ringwise capture host.tar.gz --redact", "rm host.tar.gz"),
    ("docs/exit-status.md", "ringwise check --explain A99", "rm host.tar.gz"),
    ("docs/helm.md", "ringwise persist --yes", "ringwise apply --yes"),
    ("docs/tour.md", "ringwise verify --for 5s", "ringwise apply --yes"),
    ("docs/daemon.md", "ringwise learned --forget eth1", "service_runs"),
    ("docs/daemon.md", "ringwise persist --daemon --follow off", "service_runs"),
    ("docs/daemon.md", "ringwise persist --remove", "service_runs"),
    ("docs/recipes/kubernetes.md", "ringwise history", "three_transactions"),
];

/// Commands with a value that the guest does not have or that takes minutes: the part, and what replaces it.
const ADAPTED: &[(&str, &str, &str)] = &[
    ("ringwise apply --measure 5m", "5m", "5s"),
    ("ringwise apply mq1", "mq1", "eth1"),
    ("ringwise plan eth2 --goal mixed --latency-queues 4", "queues 4", "queues 2"),
    ("ringwise apply --exclude-cpus 4-7 --confirm 60s", "4-7", "2-3"),
    ("ringwise plan --exclude-cpus 4-7", "4-7", "2-3"),
];

/// Ports of the guest's other end, and what else a page leaves to the reader or has more of than the guest: ports, queues,
/// CPUs.
const NAMES: &[(&str, &str)] = &[
    ("--gen GENERATOR_NIC", "--gen far0"),
    ("--sink SINK_NIC", "--sink far1"),
    ("--gen eth1,eth2", "--gen far1,far2"),
    ("--gen eth1", "--gen far1"),
    ("--out eth3", "--out eth0"),
    ("--sink eth3", "--sink far0"),
    ("--latency-queues 4", "--latency-queues 2"),
    ("rps_cpus=0-7", "rps_cpus=0-3"),
    // igb accepts 10 and more.
    ("rx-usecs=5'", "rx-usecs=10'"),
];

/// Trials of minutes become seconds: the commands are tested, and nothing is concluded from what they measure.
const SHORT: &[(&str, &str)] =
    &[("--pairs", "1"), ("--calibrate", "0"), ("--trial", "300ms"), ("--warm", "100ms"), ("--budget", "4m")];

/// Required changes are found only with some blocks.
const SHORT_DETECT: &[(&str, &str)] =
    &[("--pairs", "12"), ("--calibrate", "4"), ("--trial", "300ms"), ("--warm", "100ms"), ("--detect", "99")];

/// Statuses that are right for the command on a live host.
fn statuses(c: &Documented) -> &'static str {
    match c.verb()[..] {
        ["check"] => "0|3",
        // Nothing was learned there.
        ["learned"] if c.has("--forget") => "1",
        [] | ["status"] if c.text.starts_with("ringwise") => "0|3",
        _ => "0",
    }
}

/// How the scenario runs it: `serve` and `keep_on` do not end by themselves, and `trial` waits for a confirmation.
fn how(c: &Documented) -> String {
    match c.verb()[..] {
        ["apply"] if c.has("--confirm") => "trial".into(),
        ["bench", "serve"] => "serve".into(),
        ["export"] if !c.has("--textfile") => "serve".into(),
        ["export"] if c.has("--interval") => "keep_on".into(),
        ["watch"] if !c.has("--once") => "keep_on".into(),
        // igb has no such rules: the state is refused, with the reason, and everything is restored.
        _ if c.has("--lead") => "run 4".into(),
        _ => format!("run '{}'", statuses(c)),
    }
}

/// The last block of TOML before a line of the document.
fn toml_before(file: &str, line: usize) -> Option<String> {
    let (_, text) = documents().into_iter().find(|(f, _)| f.ends_with(file))?;
    let all = blocks(&text);
    let toml = all.iter().rfind(|b| b.info == "toml" && b.first < line)?;
    Some(toml.lines.join("\n"))
}

/// The blocks with a command of that class, as functions of the scenario.
fn script(all: &[Documented], class: Class) -> String {
    let mut out = HEAD.to_string();
    let mut blocks: Vec<&[Documented]> = all.chunk_by(|a, b| (&a.file, a.block) == (&b.file, b.block)).collect();
    // The other ends of all measurements are started first.
    blocks.sort_by_key(|b| !b.iter().any(|c| c.verb() == ["bench", "serve"]));
    for block in blocks {
        if !block.iter().any(|c| c.class() == class) {
            continue;
        }
        let first = &block[0];
        writeln!(out, "\nblock {}", quote(&first.place())).unwrap();
        if block.iter().any(|c| c.has("check") && c.has("/etc/ringwise/ringwise.toml")) {
            let toml = toml_before(&first.file, first.line).unwrap_or_else(|| panic!("{}: no file", first.place()));
            writeln!(out, "mkdir -p /etc/ringwise\ncat >/etc/ringwise/ringwise.toml <<'END'\n{toml}\nEND").unwrap();
        }
        for (_, _, line) in BEFORE.iter().filter(|(f, c, _)| *f == first.file && *c == first.text) {
            writeln!(out, "before '{line}'").unwrap();
        }
        // Examples show what fails, too.
        let other = |c: &&Documented| c.class() != class && c.kind == Kind::Example;
        for c in block.iter().filter(|c| c.class() != Class::Exception && !other(c)) {
            writeln!(out, "{} {}", how(c), quote(&adapted(c))).unwrap();
        }
    }
    out.push_str("\nblock end\n");
    out
}

/// The command with values that the guest has.
fn adapted(c: &Documented) -> String {
    let mut text = c.text.clone();
    for (_, from, to) in ADAPTED.iter().filter(|(t, _, _)| *t == c.text) {
        text = text.replace(from, to);
    }
    if c.class() != Class::Peer || c.verb() == ["bench", "serve"] {
        return text;
    }
    for (from, to) in NAMES {
        text = text.replace(from, to);
    }
    if c.has("--peer") && !c.has("--secret-file") && !c.has("127.0.0.1:4710") {
        text += " --secret-file secret.txt";
    }
    if c.has("forward") && !c.has("--size") {
        text += " --frame 500";
    }
    if c.has("search") {
        text += " --among moderation";
    }
    for (option, value) in if c.has("--detect") { SHORT_DETECT } else { SHORT } {
        match c.words.iter().position(|w| w == option) {
            Some(at) => text = text.replace(&format!("{option} {}", c.words[at + 1]), &format!("{option} {value}")),
            // The time limit of `search` includes these.
            None if c.has("search") && *option != "--trial" => {}
            None if *option == "--budget" => {}
            None => write!(text, " {option} {value}").unwrap(),
        }
    }
    text
}

#[test]
fn the_lab_runs_what_the_documents_have() {
    let all = commands();
    for (file, first, _) in BEFORE {
        assert!(all.iter().any(|c| c.file == *file && c.text == *first), "{file}: no block begins with {first}");
    }
    for (text, from, _) in ADAPTED {
        assert!(all.iter().any(|c| c.text == *text), "{text} is in no document any more");
        assert!(text.contains(from), "{text} has no {from}");
    }
    let mut changed = 0;
    // A replaced value must not break what was documented.
    for c in all.iter().filter(|c| matches!(c.class(), Class::Lab | Class::Peer)) {
        let argv = ["ringwise".to_string()].into_iter().chain(super::arguments(&adapted(c)).unwrap_or_default());
        let parsed = Cli::try_parse_from(argv);
        changed += usize::from(adapted(c) != c.text);
        assert!(parsed.is_ok(), "{}: {}: {:?}", c.place(), adapted(c), parsed.err());
    }
    println!("{changed} commands of the lab have values that fit the guest, or short trials");
    for (file, class) in [("documented.sh", Class::Lab), ("documented-bench.sh", Class::Peer)] {
        let text = script(&all, class);
        let runs = |l: &&str| ["run ", "trial ", "serve ", "keep_on "].iter().any(|w| l.starts_with(w));
        println!("lab/{file}: {} documented commands", text.lines().filter(runs).count());
        ringwise_testkit::golden::compare(&root().join("lab").join(file), &text);
    }
}

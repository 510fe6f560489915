//! Every command in the documents is run: the read-only ones here against a recorded host, those that change a host or
//! need a live one in the lab. A command that is in neither class fails the test.

mod lab;
mod recorded;

use std::collections::BTreeMap;

use ringwise_model::shell;

use crate::common::root;
use crate::docs::{blocks, documents};

/// Where and how a command is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// The document shows its output, which is compared (`docs::output_is_what_the_document_shows`).
    Shown,
    /// Here, against a recorded host.
    Recorded,
    /// In a guest of the lab (`lab/documented.sh`).
    Lab,
    /// A measurement against another host.
    Peer,
    /// Nowhere, see `EXCEPTIONS`.
    Exception,
}

/// A command of a document.
pub(crate) struct Documented {
    /// The document, relative to the repository, and the line.
    file: String,
    line: usize,
    /// What a reader types. A script is one command.
    text: String,
    /// The arguments of ringwise.
    pub words: Vec<String>,
    /// Number of its block in the document: commands of a block are run one after the other in one directory.
    block: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A line of a block of shell commands.
    Line,
    /// A line behind a prompt, above its output on a recorded host.
    Fixture,
    /// A line behind a prompt in a block of text: its output is an example, with what goes to standard error.
    Example,
    Script,
}

impl Documented {
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// The subcommand, with that of `config` and `bench`.
    fn verb(&self) -> Vec<&str> {
        let verb: Vec<&str> = self.words.iter().map(String::as_str).take_while(|w| !w.starts_with('-')).collect();
        let known = verb.first().map_or(0, |v| if matches!(*v, "config" | "bench" | "daemon") { 2 } else { 1 });
        verb.into_iter().take(known).collect()
    }

    fn has(&self, word: &str) -> bool {
        self.words.iter().any(|w| w == word)
    }

    fn class(&self) -> Class {
        if EXCEPTIONS.iter().any(|(text, _)| self.text == *text) {
            return Class::Exception;
        }
        match self.kind {
            Kind::Fixture => return Class::Shown,
            // The example shows its progress on a terminal.
            Kind::Example if self.has("capture") => return Class::Lab,
            Kind::Example => return Class::Shown,
            Kind::Line | Kind::Script => {}
        }
        // Paths of the system, samples of traffic, and findings that are accepted on this host.
        let live = ["--for", "--sample", "--accept"].iter().any(|w| self.has(w)) || self.text.contains(" /etc/");
        match self.verb()[..] {
            [] if SYSTEMD.iter().any(|p| self.text.starts_with(p)) => Class::Lab,
            _ if self.has("--help") => Class::Recorded,
            _ if live => Class::Lab,
            [] | ["status" | "show" | "check" | "plan" | "explain" | "help"] | ["config", _] => Class::Recorded,
            ["bench", "report"] => Class::Recorded,
            ["bench", _] => Class::Peer,
            ["watch"] if self.has("--replay") => Class::Recorded,
            _ => Class::Lab,
        }
    }
}

/// Programs of systemd, whose commands about the service are run too.
const SYSTEMD: [&str; 2] = ["systemctl ", "journalctl "];

/// Commands that are not run, each with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[(
    "ringwise bench rr eth1 --peer 192.0.2.7:4710 --driver netperf --size 64 --state 'tuned=--goal rpc'",
    "the guests have no netperf",
)];

/// The arguments of the first ringwise on a command line. `None`: the line has no ringwise.
fn arguments(line: &str) -> Option<Vec<String>> {
    let ends = |w: &String| matches!(w.as_str(), "|" | ">" | "&&" | "||" | ";" | "2>");
    let words = shell::split(line).unwrap_or_else(|| panic!("{line}: a quote has no end"));
    let start = (0..words.len()).find(|n| words[*n] == "ringwise" && (*n == 0 || ends(&words[n - 1])))?;
    let end = words[start..].iter().position(ends).map_or(words.len(), |n| start + n);
    Some(words[start + 1..end].to_vec())
}

/// Indented blocks as Markdown has them: number of the first line, and its lines. Lists are indented too, but none of
/// their lines begins with the name of the program.
fn indented(text: &str) -> Vec<(usize, Vec<&str>)> {
    let mut out: Vec<(usize, Vec<&str>)> = Vec::new();
    let (mut fenced, mut inside) = (false, false);
    for (at, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        match line.strip_prefix("    ").filter(|_| !fenced) {
            Some(l) if inside => out.last_mut().unwrap().1.push(l),
            Some(l) => out.push((at + 1, vec![l])),
            None => {}
        }
        inside = !fenced && line.starts_with("    ");
    }
    out
}

/// Every command of ringwise or about its service in a block of a document, in order.
pub(crate) fn commands() -> Vec<Documented> {
    let mut out: Vec<Documented> = Vec::new();
    for (path, text) in documents() {
        let file = path.strip_prefix(root().canonicalize().unwrap()).unwrap().display().to_string();
        let mut found: BTreeMap<usize, (Vec<&str>, Kind)> = BTreeMap::new();
        for block in blocks(&text) {
            let kind = match block.info.split_whitespace().next() {
                Some("sh") => Kind::Line,
                Some("console") if block.info.contains("fixture=") => Kind::Fixture,
                Some("console") => panic!("{file}:{}: which host is shown?", block.first),
                _ => Kind::Example,
            };
            found.insert(block.first, (block.lines, kind));
        }
        found.extend(indented(&text).into_iter().map(|(first, lines)| (first, (lines, Kind::Line))));
        for (block, (first, (lines, kind))) in found.into_iter().enumerate() {
            let new = |line: usize, text: &str, words: Vec<String>, kind: Kind| Documented {
                file: file.clone(),
                line,
                text: text.to_string(),
                words,
                block,
                kind,
            };
            if lines.first().is_some_and(|l| l.starts_with("#!/bin/sh")) {
                out.push(new(first, &lines.join("\n"), Vec::new(), Kind::Script));
                continue;
            }
            let mut rows = lines.iter().enumerate();
            while let Some((n, row)) = rows.next() {
                let row = if kind == Kind::Line { Some(row.trim()) } else { row.strip_prefix("$ ") };
                let Some(row) = row.filter(|r| r.contains("ringwise")) else { continue };
                let mut whole = row.trim_start_matches("sudo ").to_string();
                while whole.ends_with('\\') {
                    whole.pop();
                    whole += rows.next().expect("a line follows").1.trim_start();
                }
                // A quote without an end is part of another program's script.
                if !whole.starts_with("ringwise") && shell::split(&whole).is_none() {
                    continue;
                }
                let systemd = SYSTEMD.iter().any(|p| whole.starts_with(p));
                let Some(words) = arguments(&whole).or(systemd.then(Vec::new)) else { continue };
                out.push(new(first + n, uncommented(&whole), words, kind));
            }
        }
    }
    out
}

/// The line without the comment at its end.
fn uncommented(line: &str) -> &str {
    let whole = shell::split(line);
    let cut = line.match_indices(" #").map(|(at, _)| line[..at].trim_end()).find(|l| shell::split(l) == whole);
    cut.unwrap_or(line).trim_end()
}

#[test]
fn comments_are_removed() {
    assert_eq!(uncommented("ringwise plan   # why"), "ringwise plan");
    assert_eq!(uncommented("ringwise plan --reason 'a # b' # why"), "ringwise plan --reason 'a # b'");
    assert_eq!(uncommented("ringwise plan"), "ringwise plan");
    assert_eq!(arguments("a | ringwise explain - eth0 | b").unwrap(), ["explain", "-", "eth0"]);
    assert_eq!(arguments("systemctl start ringwise-daemon.service"), None);
}

/// The counts are printed with `--nocapture`.
#[test]
fn every_command_is_run_somewhere() {
    let all = commands();
    let mut counts: BTreeMap<Class, usize> = BTreeMap::new();
    for c in &all {
        *counts.entry(c.class()).or_default() += 1;
    }
    println!("{} documented commands: {counts:?}", all.len());
    for (text, why) in EXCEPTIONS {
        assert!(all.iter().any(|c| c.text == *text), "{text} ({why}) is in no document: remove the exception");
    }
    assert!(all.len() > 200, "only {} commands were found", all.len());
}

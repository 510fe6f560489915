//! Every command in the documents is run: the read-only ones here against a recorded host, those that change a host or
//! need a live one in the lab. A command that is in neither class fails the test.

mod recorded;

use std::collections::BTreeMap;

use ringwise_model::shell;

use crate::common::root;
use crate::docs::{blocks, documents};

/// Where and how a command is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// Its output stands in the document and is compared (`docs::output_is_what_the_document_shows`).
    Shown,
    /// Here, against a recorded host.
    Recorded,
    /// In a guest of the lab (`lab/documented.sh`).
    Lab,
    /// Nowhere, see `EXCEPTIONS`.
    Exception,
}

/// A command as it stands in a document.
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
    shown: bool,
    script: bool,
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
        if self.shown {
            return Class::Shown;
        }
        if EXCEPTIONS.iter().any(|(text, _)| self.text == *text) {
            return Class::Exception;
        }
        // Paths of the system, samples of traffic, and findings that are accepted on this host.
        let live = ["--for", "--sample", "--accept"].iter().any(|w| self.has(w)) || self.text.contains(" /etc/");
        match self.verb()[..] {
            _ if self.has("--help") => Class::Recorded,
            _ if live => Class::Lab,
            [] | ["status" | "show" | "check" | "plan" | "explain" | "help"] | ["config", _] => Class::Recorded,
            ["bench", "report"] => Class::Recorded,
            ["watch"] if self.has("--replay") => Class::Recorded,
            _ => Class::Lab,
        }
    }
}

/// Commands that are not run, each with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// The arguments of the first ringwise on a command line. `None`: there is none.
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

/// Every command of ringwise in a block of a document, in order.
pub(crate) fn commands() -> Vec<Documented> {
    let mut out: Vec<Documented> = Vec::new();
    for (path, text) in documents() {
        let file = path.strip_prefix(root().canonicalize().unwrap()).unwrap().display().to_string();
        let mut found: BTreeMap<usize, (Vec<&str>, bool, bool)> = BTreeMap::new();
        for block in blocks(&text) {
            let kind = block.info.split_whitespace().next().unwrap_or_default();
            if matches!(kind, "sh" | "console") {
                found.insert(block.first, (block.lines, kind == "console", block.info.contains("fixture=")));
            }
        }
        found.extend(indented(&text).into_iter().map(|(first, lines)| (first, (lines, false, false))));
        for (block, (first, (lines, prompt, shown))) in found.into_iter().enumerate() {
            if lines.first().is_some_and(|l| l.starts_with("#!/bin/sh")) {
                let (text, words) = (lines.join("\n"), Vec::new());
                out.push(Documented { file: file.clone(), line: first, text, words, block, shown, script: true });
                continue;
            }
            let mut rows = lines.iter().enumerate();
            while let Some((n, row)) = rows.next() {
                let Some(row) = (if prompt { row.strip_prefix("$ ") } else { Some(row.trim()) }) else { continue };
                let mut whole = row.trim_start_matches("sudo ").to_string();
                while whole.ends_with('\\') {
                    whole.pop();
                    whole += rows.next().expect("a line follows").1.trim_start();
                }
                // A quote without an end is text of another program.
                if !whole.contains("ringwise") || shell::split(&whole).is_none() {
                    continue;
                }
                let Some(words) = arguments(&whole) else { continue };
                let text = uncommented(&whole).to_string();
                out.push(Documented { file: file.clone(), line: first + n, text, words, block, shown, script: false });
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

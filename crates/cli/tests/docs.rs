//! The documents of the repository: their commands parse, those with a fixture print what the document shows, and links
//! lead somewhere. `RINGWISE_BLESS=1` writes the present output into the documents.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::documented::commands;
use clap::Parser;
use ringwise_cli::args::Cli;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All documents for readers, with their texts. Recorded and generated texts below `fixtures` and `target` are none.
pub(crate) fn documents() -> BTreeMap<PathBuf, String> {
    let mut out = BTreeMap::new();
    let mut folders = vec![root().join("docs"), root().join("lab")];
    let top = fs::read_dir(root()).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<PathBuf> = top.filter(|p| p.is_file()).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    for file in files.into_iter().filter(|f| f.extension().is_some_and(|e| e == "md")) {
        let text = fs::read_to_string(&file).unwrap();
        out.insert(file, text);
    }
    assert!(out.len() > 100, "{} documents", out.len());
    out
}

/// A fenced block: number of its first line, counted from 1, its info string and its lines.
pub(crate) struct Block<'a> {
    pub first: usize,
    pub info: &'a str,
    pub lines: Vec<&'a str>,
}

pub(crate) fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut out: Vec<Block> = Vec::new();
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(_) if open => open = false,
            Some(info) => {
                open = true;
                out.push(Block { first: at + 2, info: info.trim(), lines: Vec::new() });
            }
            None if open => out.last_mut().unwrap().lines.push(line),
            None => {}
        }
    }
    assert!(!open, "a fenced block has no end");
    out
}

/// The words of a command of ringwise, without its name. `None`: another program, a comment, or a line with parts that a
/// reader has to fill in (`NAME`, `…`).
fn command(line: &str) -> Option<Vec<String>> {
    let line = line.trim().trim_start_matches("$ ").trim_start_matches("sudo ");
    if !(line == "ringwise" || line.starts_with("ringwise ")) {
        return None;
    }
    // What a shell would see as the end of the command. A `|` inside quotes stays.
    let words = ringwise_model::shell::split(line).unwrap_or_else(|| panic!("{line}: a quote has no end"));
    let end =
        words.iter().position(|w| matches!(w.as_str(), "|" | ">" | "&&" | "||" | ";" | "2>")).unwrap_or(words.len());
    Some(words[1..end].to_vec())
}

pub(crate) fn at(file: &Path, line: usize) -> String {
    format!("{}:{line}", file.strip_prefix(root()).unwrap().display())
}

#[test]
fn commands_parse() {
    let (mut tried, mut wrong) = (0, Vec::new());
    for c in commands() {
        tried += 1;
        let argv = ["ringwise".to_string()].into_iter().chain(c.words.clone());
        if let Err(e) = Cli::try_parse_from(argv) {
            use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
            if !matches!(e.kind(), DisplayHelp | DisplayVersion) {
                wrong.push(format!("{}: {e}", c.place()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried >= 200, "only {tried} commands were found");
}

/// The commands of ringwise between backquotes in a line of prose, with values in place of words that a reader fills in.
fn spans(line: &str) -> impl Iterator<Item = Vec<String>> {
    let spans = line.split('`').skip(1).step_by(2).filter(|s| !s.contains('…') && !s.contains("..."));
    let filled = |w: String| match w.as_str() {
        "COMMAND" => "show".into(),
        "DEV" | "IFACE" => "eth0".into(),
        "GOAL" => "rpc".into(),
        "ID" | "N" => "1".into(),
        "RULE" => "A02".into(),
        "LIST" => "0-1".into(),
        "DATE" => "2027-01-31".into(),
        "FORMAT" => "link".into(),
        _ => w,
    };
    spans.filter_map(command).map(move |words| words.into_iter().map(filled).collect())
}

/// Commands in prose exist, with the options that are named. A span may name an option without its value, and a command
/// without what it requires. The list of changes names commands of earlier versions.
#[test]
fn commands_in_prose_parse() {
    use clap::error::ErrorKind as E;
    let (mut tried, mut wrong) = (0, Vec::new());
    for (file, text) in documents().into_iter().filter(|(f, _)| !f.ends_with("CHANGELOG.md")) {
        let mut fenced = false;
        for (n, line) in text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            for words in spans(line).filter(|_| !fenced) {
                tried += 1;
                let ends_with_option = words.last().is_some_and(|w| w.starts_with("--"));
                let Err(e) = Cli::try_parse_from(["ringwise".to_string()].into_iter().chain(words)) else { continue };
                let is_name = match e.kind() {
                    E::DisplayHelp | E::DisplayVersion | E::MissingRequiredArgument | E::MissingSubcommand => true,
                    E::DisplayHelpOnMissingArgumentOrSubcommand => true,
                    E::InvalidValue => ends_with_option,
                    _ => false,
                };
                if !is_name {
                    wrong.push(format!("{}: {line}\n{e}", at(&file, n + 1)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried >= 200, "only {tried} commands were found");
}

/// What the document shows below a command. A line `…` stands for any number of lines.
fn agrees(shown: &[&str], printed: &str) -> bool {
    let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    let mut shown: Vec<&str> = shown.iter().map(|l| l.trim_end()).collect();
    while shown.last().is_some_and(|l| l.is_empty()) {
        shown.pop();
    }
    fn rest(shown: &[&str], printed: &[&str]) -> bool {
        match shown.split_first() {
            None => printed.is_empty(),
            Some((&"…", after)) => (0..=printed.len()).any(|n| rest(after, &printed[n..])),
            Some((line, after)) => printed.split_first().is_some_and(|(p, more)| p == line && rest(after, more)),
        }
    }
    rest(&shown, &printed)
}

#[test]
fn output_is_what_the_document_shows() {
    let hosts = root().join("fixtures/hosts");
    let (mut tried, mut wrong) = (0, Vec::new());
    for (file, text) in documents() {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        let mut changed = false;
        // From the end, so that the numbers of earlier lines stay right.
        for block in blocks(&text).iter().rev() {
            let Some(fixture) = block.info.strip_prefix("console fixture=") else { continue };
            assert!(hosts.join(fixture).is_dir(), "{}: no fixture {fixture}", at(&file, block.first - 1));
            let starts: Vec<usize> = (0..block.lines.len()).filter(|n| block.lines[*n].starts_with("$ ")).collect();
            for (i, start) in starts.iter().enumerate().rev() {
                let place = at(&file, block.first + start);
                let words =
                    command(block.lines[*start]).unwrap_or_else(|| panic!("{place}: not a command of ringwise"));
                assert!(words.iter().any(|w| w.contains(fixture)), "{place}: the command does not read {fixture}");
                tried += 1;
                let mut c = Command::new(env!("CARGO_BIN_EXE_ringwise"));
                c.args(&words)
                    .current_dir(root())
                    .env("NO_COLOR", "1")
                    .env("RINGWISE_COLUMNS", "80")
                    .env("LC_ALL", "C.UTF-8");
                let out = c.output().unwrap();
                assert!(matches!(out.status.code(), Some(0 | 3)), "{place}: {out:?}");
                let printed = String::from_utf8(out.stdout).unwrap();
                let end = starts.get(i + 1).copied().unwrap_or(block.lines.len());
                let shown = &block.lines[start + 1..end];
                // A command without output below it only has to work.
                if shown.iter().all(|l| l.trim().is_empty()) || agrees(shown, &printed) {
                    continue;
                }
                // A document that shows the beginning shows as many lines of it again.
                let cut = shown.iter().position(|l| *l == "…");
                if ringwise_testkit::golden::blessing() && cut.is_none_or(|at| at + 1 == shown.len()) {
                    let from = block.first + start;
                    let new = printed.trim_end().lines().map(|l| l.trim_end().to_string());
                    let new = new.take(cut.unwrap_or(usize::MAX)).chain(cut.map(|_| "…".to_string()));
                    lines.splice(from..from + shown.len(), new.collect::<Vec<_>>());
                    changed = true;
                } else {
                    wrong.push(format!("{place}: now printed:\n{printed}"));
                }
            }
        }
        if changed {
            fs::write(&file, lines.join("\n") + "\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "RINGWISE_BLESS=1 writes what is printed now\n{}", wrong.join("\n"));
    assert!(tried >= 8, "only {tried} commands with a fixture were found");
}

/// Anchors of the headings, as the renderers of repositories make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let mut open = false;
    for line in text.lines() {
        open ^= line.trim_start().starts_with("```");
        if open || !line.starts_with('#') {
            continue;
        }
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        out.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
    }
    out
}

/// Targets of `[text](target)` outside of code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        open ^= line.trim_start().starts_with("```");
        if open || line.starts_with("    ") {
            continue;
        }
        // Every second part is code.
        for part in line.split('`').step_by(2) {
            for (start, _) in part.match_indices("](") {
                if let Some(end) = part[start + 2..].find(')') {
                    out.push((at + 1, part[start + 2..start + 2 + end].to_string()));
                }
            }
        }
    }
    out
}

#[test]
fn links_lead_somewhere() {
    let all = documents();
    let (mut tried, mut wrong) = (0, Vec::new());
    for (file, text) in &all {
        for (line, link) in links(text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            tried += 1;
            let (path, anchor) = link.split_once('#').map_or((link.as_str(), None), |(p, a)| (p, Some(a)));
            let target = if path.is_empty() { file.clone() } else { file.parent().unwrap().join(path) };
            let Ok(target) = target.canonicalize() else {
                wrong.push(format!("{}: {link} does not exist", at(file, line)));
                continue;
            };
            if let Some(anchor) = anchor
                && !all.get(&target).is_some_and(|t| anchors(t).contains(anchor))
            {
                wrong.push(format!("{}: {link}: no such heading", at(file, line)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried >= 150, "only {tried} links were found");
}

/// Every page of `docs` is in the table of contents of the site, and every entry exists.
#[test]
fn the_site_lists_every_page() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let text = fs::read_to_string(&summary).unwrap();
    let listed: BTreeSet<PathBuf> =
        links(&text).into_iter().filter_map(|(_, link)| docs.join(link).canonicalize().ok()).collect();
    let missing: Vec<String> = documents()
        .into_keys()
        .filter(|f| f.starts_with(&docs) && *f != summary && !listed.contains(f))
        .map(|f| at(&f, 1))
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {}", missing.join(" "));
}

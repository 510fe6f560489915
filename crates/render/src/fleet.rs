//! The pages of `check` and `plan` about many hosts.

use std::collections::BTreeMap;
use std::path::Path;

use ringwise_check::Severity;
use ringwise_check::fleet::{HostSummary, shared};
use ringwise_plan::fleet::{PlanGroup, PlannedHost};
use ringwise_text::{RecordingName, Style, Tint};
use ringwise_text::{hang, len, plural, thousands, visible};

use crate::table::plain;

/// Lines of a list on a terminal, without `--all`.
pub(crate) const HOSTS: usize = 20;
pub(crate) const OTHERS: usize = 10;
/// Rules in the line of a host, and interfaces in that of a group, on a terminal.
const RULES: usize = 3;
const DEVICES: usize = 8;
/// Columns for the name of a host on a terminal.
const HOST_WIDTH: usize = 20;

/// A capture that could not be used. It never counts as fine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCapture {
    /// The file, as the user named it.
    pub file: String,
    /// What was found. It names the file if the capture could not be opened.
    pub why: String,
    /// What a file must be to be opened. `None`: it could be opened, and what it contains cannot be used.
    pub expected: Option<&'static str>,
}

/// How much of a list is shown.
pub(crate) struct Limit {
    all: bool,
}

impl Limit {
    /// Without a terminal, lists are whole.
    pub(crate) fn new(all: bool, style: &Style) -> Self {
        Self { all: all || style.width.is_none() }
    }

    pub(crate) fn of(&self, most: usize, n: usize) -> usize {
        // A line "and 1 more" would take as much room as the entry itself.
        if self.all || n <= most + 1 { n } else { most }
    }

    pub(crate) fn more(&self, shown: usize, n: usize) -> String {
        if shown == n { String::new() } else { format!("  and {} more (--all)\n", thousands((n - shown) as u64)) }
    }
}

/// The page of `check` about several captures. `hosts`: the worst first. `all`: no list is shortened. `goal`: the one that was
/// requested, for the command that repeats the check of one host.
pub fn checked(
    hosts: &[HostSummary],
    failed: &[FailedCapture],
    all: bool,
    goal: Option<&str>,
    style: &Style,
) -> String {
    let limit = Limit::new(all, style);
    let mut out = hang("", &checked_summary(hosts, failed), style.width);
    out += &failures("NOT READ", failed, &limit, style);
    let shown = limit.of(HOSTS, hosts.len());
    if let Some(list) = hosts.get(..shown).filter(|l| !l.is_empty()) {
        out.push('\n');
        out += &table(list, style);
        out += &limit.more(shown, hosts.len());
    }
    out += &same_findings(hosts, &limit, style);
    if let Some(first) = hosts.first() {
        let command = goal.map_or_else(|| "ringwise check".into(), |g| format!("ringwise check --goal {g}"));
        out += &format!("\nNext: {}\n", reads(&command, &first.file));
    }
    out
}

/// The command for one of the captures. A name of a file may come from the hosts as well.
pub(crate) fn reads(command: &str, file: &str) -> String {
    visible(&RecordingName::of(Some(Path::new(file))).reads(command)).into_owned()
}

/// `3 hosts: 1 with errors, 2 with warnings only; 1 capture could not be used`
pub(crate) fn checked_summary(hosts: &[HostSummary], failed: &[FailedCapture]) -> String {
    let errors = hosts.iter().filter(|h| h.errors > 0).count();
    let warnings = hosts.iter().filter(|h| h.errors == 0 && h.warnings > 0).count();
    let counts = [
        (errors, "with errors"),
        (warnings, "with warnings only"),
        (hosts.len() - errors - warnings, "without errors and warnings"),
    ];
    let counts = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", thousands(*n as u64)));
    summary(hosts.len(), &counts.collect::<Vec<_>>(), failed)
}

pub(crate) fn summary(hosts: usize, counts: &[String], failed: &[FailedCapture]) -> String {
    let mut text = plural(hosts, "host");
    if !counts.is_empty() {
        text += &format!(": {}", counts.join(", "));
    }
    if !failed.is_empty() {
        text += &format!("; {} could not be used", plural(failed.len(), "capture"));
    }
    text
}

/// The captures that could not be used, and why.
pub(crate) fn failures(title: &str, failed: &[FailedCapture], limit: &Limit, style: &Style) -> String {
    if failed.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{}\n", style.paint(Tint::Red, title));
    let shown = limit.of(OTHERS, failed.len());
    for f in failed.iter().take(shown) {
        let why = f.why.lines().map(visible).collect::<Vec<_>>().join("; ");
        let text = match f.expected {
            Some(_) => why,
            None => format!("{}: {why}", visible(&f.file)),
        };
        out += &entry(&text, style);
    }
    out += &limit.more(shown, failed.len());
    if let Some(expected) = failed.iter().find_map(|f| f.expected) {
        out += &hang("  Expected: ", expected, style.width);
    }
    out
}

/// An entry of a list. Further lines are indented more, so that each entry begins at the same column.
pub(crate) fn entry(text: &str, style: &Style) -> String {
    let lines = hang("  ", text, style.width.map(|w| w.saturating_sub(2)));
    lines.trim_end().replace('\n', "\n  ") + "\n"
}

/// One line for each host.
fn table(hosts: &[HostSummary], style: &Style) -> String {
    let files: Vec<&str> = hosts.iter().map(|h| h.file.as_str()).collect();
    let mut rows = vec![["HOST", "ERRORS", "WARNINGS", "RULES"].map(String::from).to_vec()];
    for h in hosts {
        let host = host_cell(h.host.as_deref(), style);
        let (errors, warnings) = (thousands(h.errors as u64), thousands(h.warnings as u64));
        rows.push(vec![host, errors, warnings, rules(h, style)]);
    }
    with_files(&plain(&rows, &[1, 2]), &files, style)
}

/// The name of a host in a table.
pub(crate) fn host_cell(host: Option<&str>, style: &Style) -> String {
    let host = host.map_or("-".into(), |n| visible(n).into_owned());
    if style.width.is_some() { cut_end(&host, HOST_WIDTH, style) } else { host }
}

/// A table, which has a heading, with the files of its rows as the last column.
pub(crate) fn with_files(text: &str, files: &[&str], style: &Style) -> String {
    let below = style.width.map_or_else(String::new, |_| common_directory(files));
    let width = text.lines().map(len).max().unwrap_or(0);
    let last = |f: &str| f.rsplit_once('/').map(|(_, name)| name.to_string());
    let mut shared: BTreeMap<String, usize> = BTreeMap::new();
    files.iter().filter_map(|f| last(f)).for_each(|name| *shared.entry(name).or_default() += 1);
    let files = std::iter::once("FILE".to_string())
        .chain(files.iter().map(|f| visible(f.strip_prefix(&below).unwrap_or(f)).into_owned()));
    let mut out = String::new();
    if !below.is_empty() {
        out += &hang("files in ", &visible(&below), style.width);
    }
    for (line, file) in text.lines().zip(files) {
        let room = style.width.map(|w| w.saturating_sub(width + 2));
        let file = room.map_or(file.clone(), |r| {
            // A name that several files have, such as capture.tar.gz, distinguishes less than their directories.
            let name = last(&file).filter(|name| len(&file) > r && shared.get(name).is_some_and(|n| *n > 1));
            let short = name.and_then(|name| Some(format!("{}{}", file.strip_suffix(&name)?, dots(style))));
            cut_begin(short.as_ref().unwrap_or(&file), r, style)
        });
        out += &format!("{}\n", format!("{}  {file}", ringwise_text::pad(line, width)).trim_end());
    }
    out
}

/// The first rules with errors or warnings; all of them without a terminal.
pub(crate) fn rules(h: &HostSummary, style: &Style) -> String {
    // As in lists, one more rule takes the room of its number.
    let n = if style.width.is_some() && h.worst.len() > RULES + 1 { RULES } else { usize::MAX };
    let mut words: Vec<String> = h.worst.iter().take(n).cloned().collect();
    if h.worst.len() > n {
        words.push(format!("+{}", h.worst.len() - n));
    }
    if !h.planned {
        words.push("no plan".into());
    }
    if words.is_empty() { "-".into() } else { words.join(" ") }
}

/// The directory that all files have in common, with its slash; empty: none.
fn common_directory(files: &[&str]) -> String {
    let Some((first, rest)) = files.split_first() else { return String::new() };
    let mut end = first.rfind('/').map_or(0, |at| at + 1);
    for file in rest {
        while end > 0 && !file.starts_with(first.get(..end).unwrap_or_default()) {
            end = first.get(..end - 1).and_then(|f| f.rfind('/')).map_or(0, |at| at + 1);
        }
    }
    if rest.is_empty() { String::new() } else { first.get(..end).unwrap_or_default().to_string() }
}

fn dots(style: &Style) -> &'static str {
    if style.ascii { "..." } else { "…" }
}

fn cut_end(text: &str, width: usize, style: &Style) -> String {
    if len(text) <= width {
        return text.to_string();
    }
    text.chars().take(width.saturating_sub(len(dots(style)))).collect::<String>() + dots(style)
}

/// The end of a path distinguishes it, so its beginning is cut.
fn cut_begin(text: &str, width: usize, style: &Style) -> String {
    let n = len(text);
    if n <= width {
        return text.to_string();
    }
    let keep = width.saturating_sub(len(dots(style)));
    dots(style).to_string() + &text.chars().skip(n - keep).collect::<String>()
}

fn same_findings(hosts: &[HostSummary], limit: &Limit, style: &Style) -> String {
    let same = shared(hosts);
    if same.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{}\n", style.paint(Tint::Bold, "The same findings on many hosts:"));
    let shown = limit.of(OTHERS, same.len());
    let of = thousands(hosts.len() as u64);
    let rows: Vec<Vec<String>> = same
        .iter()
        .take(shown)
        .map(|s| {
            let count = format!("{} of {of}", thousands(s.hosts as u64));
            let rule = ringwise_check::find(&s.rule);
            let severity = if s.worse_than_info { "" } else { Severity::Info.name() };
            vec![s.rule.clone(), count, rule.map_or("", |r| r.title).to_string(), severity.to_string()]
        })
        .collect();
    out.extend(plain(&rows, &[1]).lines().map(|l| format!("  {l}\n")));
    out += &limit.more(shown, same.len());
    out
}

/// The page of `plan` about several captures. `again`: the command that plans one of them, without its file. `all`: no list
/// is shortened. With `-v` the hosts of each group are listed.
pub fn planned(groups: &[PlanGroup], failed: &[FailedCapture], again: &str, all: bool, style: &Style) -> String {
    let limit = Limit::new(all, style);
    let hosts: usize = groups.iter().map(PlanGroup::hosts).sum();
    let mut out = hang("", &planned_summary(groups, failed), style.width);
    out += &failures("NOT PLANNED", failed, &limit, style);
    let shown = limit.of(OTHERS, groups.len());
    for g in groups.iter().take(shown) {
        out.push('\n');
        out += &group(g, hosts, again, style);
    }
    if shown < groups.len() {
        out += &format!("\n{}", limit.more(shown, groups.len()).trim_start());
    }
    out
}

/// `400 hosts: 12 different plans, nothing to do on 20`
pub(crate) fn planned_summary(groups: &[PlanGroup], failed: &[FailedCapture]) -> String {
    let plans = groups.iter().filter(|g| g.example.steps > 0).count();
    let idle: usize = groups.iter().filter(|g| g.example.steps == 0).map(PlanGroup::hosts).sum();
    let mut counts = Vec::new();
    if plans > 0 {
        counts.push(plural(plans, "different plan"));
    }
    if idle > 0 {
        counts.push(format!("nothing to do on {}", thousands(idle as u64)));
    }
    summary(groups.iter().map(PlanGroup::hosts).sum(), &counts, failed)
}

fn group(g: &PlanGroup, of: usize, again: &str, style: &Style) -> String {
    let e = &g.example;
    let (title, what) = (title(g, of), what(e));
    // Painted last, so that the colours do not count as width.
    let mut out =
        hang("", &format!("{title}{what}"), style.width).replacen(&title, &style.paint(Tint::Bold, &title), 1);
    let host = e.host.as_deref().map_or_else(String::new, |h| format!(" {}", visible(h)));
    out += &entry(&format!("example{host}: {}", devices(e, style)), style);
    // A command is never folded, so that it can be copied.
    out += &format!("  {}\n", reads(again, &e.file));
    if style.verbose > 0 && !g.others.is_empty() {
        let files: Vec<_> = g.others.iter().map(|f| visible(f)).collect();
        out += &hang("  and ", &files.join(" "), style.width);
    }
    out
}

/// `213 of 400 hosts share this plan`
pub(crate) fn title(g: &PlanGroup, of: usize) -> String {
    let all = thousands(of as u64);
    match (g.example.steps, g.hosts()) {
        (0, n) => format!("nothing to do on {} of {all} hosts", thousands(n as u64)),
        (_, 1) => format!("1 of {all} hosts has this plan"),
        (_, n) => format!("{} of {all} hosts share this plan", thousands(n as u64)),
    }
}

/// `: goal rpc, 24 steps, interrupts traffic`
pub(crate) fn what(e: &PlannedHost) -> String {
    let mut what = format!(": goal {}", e.goal);
    if e.steps > 0 {
        what += &format!(", {}", plural(e.steps, "change"));
    }
    if e.interrupts_traffic {
        what += ", interrupts traffic";
    }
    if e.not_planned > 0 {
        what += &format!(", {} not planned", plural(e.not_planned, "requested setting"));
    }
    what
}

/// `eth0 eth1 (igb), mq0 (mqnic)`
pub(crate) fn devices(h: &PlannedHost, style: &Style) -> String {
    let n = if style.width.is_some() { DEVICES } else { usize::MAX };
    let mut by_driver: Vec<(&str, Vec<&str>)> = Vec::new();
    for (dev, driver) in h.devices.iter().take(n) {
        match by_driver.iter_mut().find(|(d, _)| d == driver) {
            Some((_, devs)) => devs.push(dev),
            None => by_driver.push((driver, vec![dev])),
        }
    }
    let mut parts: Vec<String> = Vec::new();
    for (driver, devs) in by_driver {
        let driver = if driver.is_empty() { "driver unknown" } else { driver };
        parts.push(visible(&format!("{} ({driver})", devs.join(" "))).into_owned());
    }
    if h.devices.len() > n {
        parts.push(format!("and {} more", h.devices.len() - n));
    }
    if parts.is_empty() { "no interface".into() } else { parts.join(", ") }
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;

//! The pages of `check` for people.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_check::capability::{Capability, CapabilityState};
use ringwise_check::{Finding, Report, Role, RoleGuess, Severity};
use ringwise_model::{Goal, Snapshot, shell};

use ringwise_text::{Style, Tint};
use ringwise_text::{one_line, pad, plural};

/// If more values than this could not be read for the same reason, the page shows their number instead of a list.
const MANY: usize = 3;

fn wrap(text: &str, indent: usize, style: &Style) -> String {
    let text = one_line(text);
    // Without a terminal each record is one line.
    let Some(width) = style.width else { return text.into_owned() };
    let mut out = String::new();
    let mut at = indent;
    for (i, word) in text.split(' ').enumerate() {
        // A list that is longer than a line is broken behind a comma.
        let long = word.chars().count() > width.saturating_sub(indent);
        let parts: Vec<&str> = if long { word.split_inclusive(',').collect() } else { vec![word] };
        for (k, part) in parts.into_iter().enumerate() {
            let n = part.chars().count();
            let gap = usize::from(i > 0 && k == 0);
            // Nothing is gained by breaking before the first word.
            if at + gap + n > width && (i > 0 || long) {
                out.push_str(&format!("\n{}", " ".repeat(indent)));
                at = indent;
            } else if gap > 0 {
                out.push(' ');
                at += 1;
            }
            out.push_str(part);
            at += n;
        }
    }
    out
}

/// The page of one host. `until`: the day to propose for `--accept`.
pub fn report(r: &Report, until: &str, style: &Style) -> String {
    let host = style.recording.host(r.host.as_deref());
    let mut out = String::new();
    if r.findings.is_empty() && r.accepted.is_empty() {
        out += &wrap(&format!("{host}: no findings ({}).", counts(r)), 2, style);
        out.push('\n');
        out += &could_not(r, style);
        return out;
    }
    out += &wrap(&format!("{host}  {}", r.role.words()), 0, style);
    let hint = goal_hint(&r.role, &r.goal, r.goal_by_default);
    out += &format!("\n{}\n", wrap(&format!("goal {} ({}){hint}", r.goal, r.goal_from), 0, style));
    if let Some(p) = &r.main_problem {
        out += &format!("{}\n", wrap(&format!("First: {} {}", p.rule, p.text), 0, style));
        out.extend(p.command.iter().map(|c| format!("  {}\n", style.recording.reads(c))));
    }
    if let Some(why) = &r.no_plan {
        out += &wrap(
            &format!("No plan can be made, so the layout was not checked: {}", why.lines().next().unwrap_or_default()),
            0,
            style,
        );
        out.push('\n');
    }
    out.push('\n');
    out += &groups(&r.findings, style);
    if !r.accepted.is_empty() {
        out += "ACCEPTED\n";
        for a in &r.accepted {
            let dev = a.finding.dev.as_deref().unwrap_or("host");
            let text = format!("{} (until {}: {})", a.finding.text, a.until, a.reason);
            let indent = 10 + dev.chars().count();
            out += &format!("  {:<5} {dev}  {}\n", a.finding.rule, wrap(&text, indent, style));
        }
    }
    out += &could_not(r, style);
    out.push('\n');
    out += &summary(r, style);
    let fixes = fixes(&r.findings);
    for f in &fixes {
        let likewise = match f.devs.as_slice() {
            [] => String::new(),
            devs => format!(", and the same for {}", devs.join(" ")),
        };
        out += &wrap(&format!("Findings of {} are fixed by this{likewise}:", few_or_number(&f.ids, style)), 2, style);
        // A command is never folded, so that it can be copied.
        out += &format!("\n  {}\n", style.recording.reads(&f.command));
    }
    if !r.not_evaluated.is_empty() {
        let mut ids: Vec<&str> = r.not_evaluated.iter().map(String::as_str).collect();
        ids.sort();
        let text = format!("Not evaluated, needs two samples (capture --for 5s): {}", rules(&ids, style));
        out += &wrap(&text, 2, style);
        out.push('\n');
    }
    if style.verbose == 0 && !(fixes.is_empty() && r.not_evaluated.is_empty() && r.unreadable.is_empty()) {
        let again = shell::join(r.arguments.iter().cloned());
        let again = if again.is_empty() { again } else { format!("{again} ") };
        out += &format!("List these rules:\n  {}\n", style.recording.reads(format!("ringwise check {again}-v")));
    }
    if let Some(f) = r.findings.first() {
        out += &format!("Explain it: ringwise check --explain {}\n", f.rule);
        // The interfaces on which the rule was found: without a name, it would be accepted on all of them.
        let devs: Option<Vec<String>> = r.findings.iter().filter(|o| o.rule == f.rule).map(|o| o.dev.clone()).collect();
        let of = devs.map_or_else(String::new, |mut devs| {
            // They are in the order of severity, so one may be there twice.
            let mut known = BTreeSet::new();
            devs.retain(|d| known.insert(d.clone()));
            format!("{} ", shell::join(devs))
        });
        let accept = format!("ringwise check {of}--accept {} --reason \"...\" --until {until}", f.rule);
        let accept = match style.recording.is_one() {
            true => style.recording.reads(accept) + " --baseline FILE",
            false => accept,
        };
        out += &format!("Accept one:\n  {accept}\n");
    }
    out
}

/// Which goal may fit better. Without a chosen goal the default may be wrong, and so may be what the rules expect.
fn goal_hint(role: &RoleGuess, goal: &str, by_default: bool) -> String {
    match role.role {
        Role::Forward | Role::Server => {}
        Role::NotEvident if goal == Goal::default().to_string() => {
            return "; if it routes packets: --goal forward; if it answers requests (database, web): --goal rpc; if it moves \
                    much data (backup): --goal stream"
                .into();
        }
        Role::NotEvident => return String::new(),
    };
    let better = role.goal().filter(|g| by_default && g.to_string() != goal);
    better.map(for_role).unwrap_or_default()
}

/// The goal that fits the role of a host, as the end of a line: `; for a router: --goal forward`.
pub(crate) fn for_role(goal: Goal) -> String {
    let host = if goal == Goal::Forward { "router" } else { "server" };
    format!("; for a {host}: --goal {goal}")
}

/// The number of rules; with `-v` their ids.
fn rules<T: AsRef<str>>(ids: &[T], style: &Style) -> String {
    match style.verbose {
        0 => plural(ids.len(), "rule"),
        _ => ids.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" "),
    }
}

/// The ids of up to three rules as part of a sentence: `A02, Q14 and Q18`. Of more than three the number; with `-v` their
/// ids.
fn few_or_number<T: AsRef<str>>(ids: &[T], style: &Style) -> String {
    match ids {
        [one] => one.as_ref().to_string(),
        [one, two] => format!("{} and {}", one.as_ref(), two.as_ref()),
        [one, two, three] => format!("{}, {} and {}", one.as_ref(), two.as_ref(), three.as_ref()),
        _ => rules(ids, style),
    }
}

/// `141 rules: 60 checked, 30 do not apply, 30 need two samples, 21 not readable`. Each rule is in one count.
fn counts(r: &Report) -> String {
    let n = r.rule_counts();
    let one_or_more = |n: usize, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
    let mut out = format!("{}: {} checked", plural(r.rules, "rule"), n.checked);
    for (n, one, more) in [
        (n.not_applied, "does not apply", "do not apply"),
        (n.need_samples, "needs two samples", "need two samples"),
        (n.unreadable, "not readable", "not readable"),
    ] {
        if n > 0 {
            out += &format!(", {}", one_or_more(n, one, more));
        }
    }
    out
}

fn summary(r: &Report, style: &Style) -> String {
    let n = |s: Severity| r.count(s);
    let samples = match r.seconds {
        Some(s) => format!("; 2 samples in {s:.1} s"),
        None => String::new(),
    };
    // Interfaces with the same finding share a line, but not the count.
    let shown: BTreeSet<_> = r.findings.iter().map(|f| (&f.rule, &f.text, &f.also, f.severity)).collect();
    let each = if shown.len() < r.findings.len() { " (each interface counts)" } else { "" };
    let text = format!(
        "{}, {}, {} info{each}; {}{samples}.",
        plural(n(Severity::Error), "error"),
        plural(n(Severity::Warning), "warning"),
        n(Severity::Info),
        counts(r)
    );
    wrap(&text, 0, style) + "\n"
}

/// Findings by severity, one line each. Several interfaces with the same text share a line.
fn groups(findings: &[Finding], style: &Style) -> String {
    let mut out = String::new();
    let width = findings.iter().map(|f| f.dev.as_deref().unwrap_or("host").len()).max().unwrap_or(4);
    for s in Severity::ALL {
        let mine: Vec<&Finding> = findings.iter().filter(|f| f.severity == s).collect();
        if mine.is_empty() {
            continue;
        }
        let tint = match s {
            Severity::Error => Tint::Red,
            Severity::Warning => Tint::Yellow,
            Severity::Info => Tint::Bold,
        };
        out += &style.paint(tint, &s.name().to_uppercase());
        out.push('\n');
        // A host may have thousands of findings, so those with the same text are looked up by their text.
        let mut lines: Vec<(&Finding, Vec<&Finding>)> = Vec::new();
        let mut places: BTreeMap<(&str, &str, &[String]), usize> = BTreeMap::new();
        for f in mine {
            let at = *places.entry((&f.rule, &f.text, &f.also)).or_insert(lines.len());
            match lines.get_mut(at) {
                Some((_, more)) => more.push(f),
                None => lines.push((f, Vec::new())),
            }
        }
        for (f, more) in lines {
            let mut text = f.text.clone();
            if !f.also.is_empty() {
                let hint = if style.verbose > 0 { "" } else { ", see -v" };
                text += &format!(" (and {}{hint})", f.also.join(" "));
            }
            if !more.is_empty() {
                let names: Vec<&str> = more.iter().map(|o| o.dev.as_deref().unwrap_or("host")).collect();
                text += &format!(" (also on {})", names.join(" "));
            }
            let dev = pad(f.dev.as_deref().unwrap_or("host"), width);
            out += &format!("  {:<5} {dev}  {}\n", f.rule, wrap(&text, 10 + width, style));
            if style.verbose > 0 {
                let indent = 10 + width;
                let consequences = f.consequences.iter().map(|c| format!("{}: {}", c.rule, c.text));
                for line in f.evidence.iter().cloned().chain(consequences) {
                    out += &format!("{}{}\n", " ".repeat(indent), wrap(&line, indent, style));
                }
            }
        }
    }
    out
}

/// A proposed command.
struct Fix {
    command: String,
    /// Other interfaces that need the same with their own name.
    devs: Vec<String>,
    named: BTreeSet<String>,
    /// The rules whose findings it removes.
    ids: Vec<String>,
}

/// The proposed commands. Commands that differ only in the interface share an entry. Every remedy is a `ringwise plan`,
/// which also works for a recording.
fn fixes(findings: &[Finding]) -> Vec<Fix> {
    let mut all: Vec<Fix> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    // A finding of the host and one of an interface may have the same command, if the check is about that interface.
    let mut equal: BTreeMap<&str, usize> = BTreeMap::new();
    for f in findings.iter().flat_map(|f| std::iter::once(f).chain(&f.consequences)) {
        let Some(c) = &f.remedy else { continue };
        let dev = f.dev.clone().unwrap_or_default();
        let alike = match dev.is_empty() {
            true => c.clone(),
            false => c.split(' ').map(|w| generic(w, &dev)).collect::<Vec<_>>().join(" "),
        };
        let known = equal.get(c.as_str()).copied().unwrap_or(all.len());
        let at = *places.entry(alike).or_insert(known);
        equal.entry(c).or_insert(at);
        match all.get_mut(at) {
            Some(o) => {
                if o.command != *c && o.named.insert(dev.clone()) {
                    o.devs.push(dev);
                }
                if !o.ids.contains(&f.rule) {
                    o.ids.push(f.rule.clone());
                }
            }
            None => {
                let (devs, named) = (Vec::new(), BTreeSet::new());
                all.push(Fix { command: c.clone(), devs, named, ids: vec![f.rule.clone()] });
            }
        }
    }
    all
}

/// `eth1.rings.rx=512` as `DEV.rings.rx=512`.
fn generic(word: &str, dev: &str) -> String {
    match word.strip_prefix(dev) {
        Some(rest) if rest.is_empty() || rest.starts_with('.') => format!("DEV{rest}"),
        _ => word.to_string(),
    }
}

fn could_not(r: &Report, style: &Style) -> String {
    // A rule that needs two samples is counted there, as in the summary, so that each rule is in one count.
    let samples: BTreeSet<&str> = r.not_evaluated.iter().map(String::as_str).collect();
    let mut by: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for u in r.unreadable.iter().filter(|u| !samples.contains(u.rule.as_str())) {
        let rules = by.entry(&u.why).or_default().entry(&u.what).or_default();
        if !rules.contains(&u.rule.as_str()) {
            rules.push(&u.rule);
        }
    }
    if by.is_empty() {
        return String::new();
    }
    let mut out = "COULD NOT READ (not counted as passed)\n".to_string();
    for (why, whats) in by {
        if whats.len() > MANY && style.verbose == 0 {
            let mut ids: Vec<&str> = whats.values().flatten().copied().collect();
            ids.sort();
            ids.dedup();
            let text = format!("{} for {}: {why}", plural(whats.len(), "value"), rules(&ids, style));
            out += &format!("  {}\n", wrap(&text, 2, style));
            continue;
        }
        for (what, ids) in whats {
            out += &format!("  {}\n", wrap(&format!("{what}: {why} ({})", rules(&ids, style)), 2, style));
        }
    }
    out
}

/// `--capabilities`
pub fn capabilities(s: &Snapshot, table: &[Capability], style: &Style) -> String {
    let mut out = ringwise_text::host_line(s, style.width);
    out.push('\n');
    let width = table.iter().map(|c| c.feature.len()).max().unwrap_or(7);
    out += &format!("{}  SINCE   HERE     PROBED BY\n", pad("FEATURE", width));
    let all = s.tunable().count();
    for c in table {
        let devs = match c.devs.len() {
            0 => String::new(),
            _ if c.here != CapabilityState::Yes => String::new(),
            n if n == all && n > 2 => format!(" (all {n} interfaces)"),
            _ => format!(" ({})", c.devs.join(" ")),
        };
        let probe = wrap(&format!("{}{devs}", c.probe), width + 19, style);
        out += &format!("{}  {:<6}  {:<7}  {probe}\n", pad(c.feature, width), c.since, c.here.word());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_suggests_a_goal_unless_one_was_chosen() {
        let guess = |role| RoleGuess { role, reason: String::new() };
        let hint = |role, goal: Goal, by_default| goal_hint(&guess(role), &goal.to_string(), by_default);
        let by_default = |role| hint(role, Goal::Balanced, true);
        assert_eq!(by_default(Role::Forward), "; for a router: --goal forward");
        assert_eq!(by_default(Role::Server), "; for a server: --goal rpc");
        assert!(by_default(Role::NotEvident).starts_with("; if it routes packets: --goal forward; "));
        assert_eq!(hint(Role::Forward, Goal::Balanced, false), "");
        assert_eq!(hint(Role::Forward, Goal::Forward, true), "");
        assert_eq!(hint(Role::NotEvident, Goal::Rpc, false), "");
    }
}

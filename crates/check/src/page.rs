//! The full page of a rule. `check --explain ID` and `docs/rules/ID.md` are made from the same data.

use crate::rule::Rule;
use crate::rules::{LEFT_OUT, find, rules, same};
use crate::severity::Confidence;

/// Title and text of each part. Each entry of a list is a line with a dash.
fn parts(r: &Rule) -> Vec<(&'static str, String)> {
    let mut out = vec![("Reads", r.reads.to_string())];
    if r.rates {
        out.push((
            "Needs",
            "two samples (--for): it is about rates; not evaluated on a capture without samples".into(),
        ));
    }
    if !r.guard.is_empty() {
        out.push(("Only where", r.guard.into()));
    }
    out.push(("Found when", r.condition.into()));
    out.push(("Why", r.why().into()));
    if !r.more.is_empty() {
        out.push(("Costs and history", r.more.into()));
    }
    out.push(("Source", r.source().into()));
    match r.ours {
        Some("") => out.push(("Mended by", "ringwise plan".into())),
        Some(a) => out.push(("Mended by", format!("ringwise plan {a}"))),
        None => out.push(("Mended by", "nothing that ringwise sets".into())),
    }
    if !r.by_hand.is_empty() {
        out.push(("By hand", r.by_hand.iter().map(|c| format!("- {c}")).collect::<Vec<_>>().join("\n")));
    }
    let sure = match r.confidence {
        Confidence::Sure => "it is so when it is found",
        Confidence::Likely => "it is so; whether it matters depends on the load",
    };
    out.push(("Confidence", sure.into()));
    if !r.under.is_empty() {
        out.push(("Stands under", format!("{}, where one of them is found too", r.under.join(" "))));
    }
    if !r.also.is_empty() {
        out.push(("Also asked for as", r.also.join(" ")));
    }
    out
}

/// The page for a terminal. `None`: no rule has this id.
pub fn explain(id: &str, width: usize) -> Option<String> {
    let Some(r) = find(id) else {
        let l = LEFT_OUT.iter().find(|l| same(l.id, id))?;
        return Some(format!("{}  {}\nNot judged: {}\n", l.id, l.title, wrap(l.why, width.saturating_sub(12), 12)));
    };
    let mut out = format!("{}  {}  ({})\n\n", r.id, r.title, r.severity.name());
    for (name, text) in parts(r) {
        let lines: Vec<String> = text.lines().map(|l| wrap(l, width.saturating_sub(20).max(30), 20)).collect();
        out += &format!("{name:<18}  {}\n", lines.join(&format!("\n{}", " ".repeat(20))));
    }
    Some(out)
}

/// Wraps text at `width`; every line but the first is indented.
fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut at = 0;
    for word in text.split(' ') {
        let n = word.chars().count();
        if at > 0 && at + 1 + n > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            at = 0;
        } else if at > 0 {
            out.push(' ');
            at += 1;
        }
        out.push_str(word);
        at += n;
    }
    out
}

/// `docs/rules/ID.md`
pub fn markdown(r: &Rule) -> String {
    let mut out = format!("# {}: {}\n\nSeverity: {}\n", r.id, r.title, r.severity.name());
    for (name, text) in parts(r) {
        out += &format!("\n**{name}.** {}{text}\n", if text.starts_with("- ") { "\n\n" } else { "" });
    }
    out
}

/// `docs/rules.md`
pub fn index_page() -> String {
    let mut out = format!(
        "# Rules of `ringwise check`\n\n{} rules, a page each; the same text as `ringwise check --explain ID`. What is not judged, and why: \
         [rules-left-out.md](rules-left-out.md). Two samples: the rule is about rates.\n\n\
         | rule | about | severity | two samples | mended by |\n|---|---|---|---|---|\n",
        rules().count()
    );
    let mut all: Vec<&Rule> = rules().collect();
    all.sort_by_key(|r| r.id);
    for r in all {
        let by = if r.ours.is_some() { "`ringwise plan`" } else { "by hand" };
        let rates = if r.rates { "yes" } else { "" };
        out += &format!("| [{0}](rules/{0}.md) | {1} | {2} | {rates} | {by} |\n", r.id, r.title, r.severity.name());
    }
    out
}

/// `docs/rules-left-out.md`
pub fn left_out_page() -> String {
    let mut out = "# Rules that are not judged\n\nOf the catalogue of 136 rules; each with the reason.\n\n| rule | about | why not |\n|---|---|---|\n".to_string();
    for l in LEFT_OUT {
        out += &format!("| {} | {} | {} |\n", l.id, l.title, l.why);
    }
    out
}

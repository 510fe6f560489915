//! The report of `ringwise report`: it compares two windows, as text, HTML and JSON. The traffic also changes for other
//! reasons, and the text states that.

mod html;

use ringwise_observe::{ComparedFigure, WindowComparison};
use serde_json::{Map, Value, json};

use ringwise_text::when;
use ringwise_text::{Style, Tint};
use ringwise_text::{hang, pad, right, thousands};

pub use html::html;

/// One window.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Beginning, in seconds since 1970.
    pub from_unix: u64,
    /// Length.
    pub seconds: f64,
}

/// What was measured before and after a transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct TransactionReport {
    /// Name of the host.
    pub host: String,
    /// Number of the transaction.
    pub transaction: u64,
    /// The purpose of the transaction.
    pub title: String,
    /// The reason that the user gave with `--reason`.
    pub reason: Option<String>,
    /// When the transaction began, in seconds since 1970.
    pub unix_time: u64,
    /// State of the transaction: kept, on trial, rolled back.
    pub state: &'static str,
    /// The window before the transaction.
    pub before: Span,
    /// The window after it; `None`: not measured.
    pub after: Option<Span>,
    /// The second window has no end yet; it is evaluated until now.
    pub until_now: bool,
    /// The figures of both windows.
    pub comparison: WindowComparison,
    /// Limits of the comparison, one text each.
    pub notes: Vec<String>,
}

/// Name of the document.
pub const SCHEMA: &str = "ringwise.report";

/// Part of every report, whatever the numbers are.
pub(crate) const CLAIM: &str = "observed, not proven";
pub(crate) const WHY: &str = "The traffic was not the same before and after, and other conditions may have changed: these numbers \
show what was observed, not what the transaction caused.";

/// A number for people: whole if it is large, with two decimal places if it is small.
pub(crate) fn number(n: Option<f64>) -> String {
    match n {
        None => "unknown".into(),
        Some(n) if n.abs() >= 100.0 || n == 0.0 => {
            let whole = thousands(n.abs().round() as u64);
            if n < 0.0 { format!("-{whole}") } else { whole }
        }
        Some(n) if n.abs() < 0.005 => format!("{n:.5}"),
        Some(n) => format!("{n:.2}"),
    }
}

/// `+5.3 %`; `new` if the first value is 0; empty if the change is not known.
pub(crate) fn change(f: &ComparedFigure) -> String {
    match (f.before, f.after, f.change_percent()) {
        (_, _, Some(p)) => format!("{p:+.1} %"),
        (Some(_), Some(0.0), None) => "=".into(),
        (Some(_), Some(_), None) => "from 0".into(),
        _ => String::new(),
    }
}

/// The change of the load, which readers must know to judge the other figures.
pub(crate) fn load(c: &WindowComparison) -> String {
    let Some(f) = &c.load else { return "not known".into() };
    let Some(after) = f.after else { return format!("{} {} before", number(f.before), f.what) };
    let mut text = format!("{} before, {} after: {}", number(f.before), number(Some(after)), f.what);
    let change = change(f);
    if !change.is_empty() {
        text += &format!(" ({change})");
    }
    if c.loads_differ() {
        text += "; the different load alone may explain the rest";
    }
    text
}

fn span(word: &str, s: &Span, style: &Style) -> String {
    format!("{word:<7} {}, {:.1} s", when::second(s.from_unix, style.utc), s.seconds)
}

/// The report for people.
pub fn text(r: &TransactionReport, style: &Style) -> String {
    let width = style.width;
    let mut head = format!(
        "{}: transaction {} ({}, {}), {}",
        r.host,
        r.transaction,
        r.title,
        when::minute(r.unix_time, style.utc),
        r.state
    );
    if let Some(reason) = &r.reason {
        head += &format!("; {reason}");
    }
    let mut out = hang("", &head, width);
    out += &format!("claim   {CLAIM}\n{}\n", span("before", &r.before, style));
    match &r.after {
        Some(s) => {
            let now = if r.until_now { ", until now" } else { "" };
            out += &format!("{}{now}\n", span("after", s, style));
        }
        None => out.push_str("after   not measured\n"),
    }
    let load = load(&r.comparison);
    out += &hang("load    ", &load, width);
    let host = ("host".to_string(), &r.comparison.host);
    let links = r.comparison.links.iter().map(|(n, f)| (n.clone(), f));
    for (name, figures) in links.chain(std::iter::once(host)) {
        let known: Vec<&ComparedFigure> = figures.iter().filter(|f| f.before.or(f.after).is_some()).collect();
        let unknown: Vec<&str> = figures.iter().filter(|f| f.before.or(f.after).is_none()).map(|f| f.what).collect();
        out +=
            &format!("\n{} {} {} {}\n", pad(&name, 37), right("before", 13), right("after", 13), right("change", 12));
        for f in known {
            let line = format!(
                "  {} {} {} {}",
                pad(f.what, 35),
                right(&number(f.before), 13),
                right(&after(r, f), 13),
                right(&change(f), 12)
            );
            let worse = f.key.starts_with("dropped") && f.after.unwrap_or(0.0) > f.before.unwrap_or(0.0);
            let line = line.trim_end();
            out += &if worse { style.paint(Tint::Red, line) } else { line.to_string() };
            out.push('\n');
        }
        if !unknown.is_empty() {
            out += &hang("  ", &format!("  unknown in both: {}", unknown.join(", ")), width);
        }
    }
    out.push('\n');
    for n in &r.notes {
        out += &hang("  ", &format!("- {n}"), width);
    }
    out += &hang("", WHY, width);
    out += &format!("Undo: ringwise rollback {}\n", r.transaction);
    out
}

/// The cell of the second window.
pub(crate) fn after(r: &TransactionReport, f: &ComparedFigure) -> String {
    if r.after.is_none() { "-".into() } else { number(f.after) }
}

fn figures(list: &[ComparedFigure]) -> Value {
    let one = |f: &ComparedFigure| {
        let change = f.change_percent();
        (f.key.to_string(), json!({ "before": f.before, "after": f.after, "change_percent": change }))
    };
    Value::Object(list.iter().map(one).collect::<Map<_, _>>())
}

/// The report as `ringwise.report`.
pub fn json(r: &TransactionReport) -> Value {
    let span = |s: &Span| json!({ "from_unix_time": s.from_unix, "seconds": s.seconds });
    let links: Map<String, Value> = r.comparison.links.iter().map(|(n, f)| (n.clone(), figures(f))).collect();
    json!({
        "schema": SCHEMA,
        "version": 1,
        "claim": CLAIM,
        "host": r.host,
        "transaction": r.transaction,
        "title": r.title,
        "reason": r.reason,
        "unix_time": r.unix_time,
        "state": r.state,
        "before": span(&r.before),
        "after": r.after.as_ref().map(span),
        "until_now": r.until_now,
        "load": r.comparison.load.as_ref().map(|f| json!({
            "rx_packets_per_second": { "before": f.before, "after": f.after, "change_percent": f.change_percent() }
        })),
        "loads_differ": r.comparison.loads_differ(),
        "interfaces": links,
        "cpus": figures(&r.comparison.host),
        "notes": r.notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        for (n, want) in [(1_234_567.8, "1,234,568"), (99.5, "99.50"), (0.0, "0"), (0.001, "0.00100"), (-250.0, "-250")]
        {
            assert_eq!(number(Some(n)), want);
        }
        assert_eq!(number(None), "unknown");
        let f = |before, after| change(&ComparedFigure { key: "", what: "", before, after });
        assert_eq!(f(Some(10.0), Some(15.0)), "+50.0 %");
        assert_eq!((f(Some(0.0), Some(1.0)), f(Some(0.0), Some(0.0))), ("from 0".into(), "=".into()));
        assert_eq!(f(None, Some(1.0)), "");
    }
}

//! The report as a single HTML file that loads nothing from elsewhere.

use std::fmt::Write;

use ringwise_model::words::xml;
use ringwise_observe::ComparedFigure;
use ringwise_text::{Style, when};

use super::{CLAIM, TransactionReport, WHY, after, change, load, number, span};

const CSS: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#1b1f24;background:#fff}\
h1{font-size:1.35em}h2{font-size:1.1em;margin:1.6em 0 .4em}table{border-collapse:collapse;width:100%}\
th,td{padding:.25em .6em;text-align:right;border-bottom:1px solid #d8dee4}th:first-child,td:first-child{text-align:left}\
td{font-variant-numeric:tabular-nums}.bar{width:9em}svg{display:block}.claim{border-left:4px solid #b26a00;padding:.3em .8em;background:#fff6e5}\
@media (prefers-color-scheme:dark){body{background:#14171a;color:#e3e6e9}th,td{border-color:#363c42}.claim{background:#33270f}}";

/// Two bars with the same scale, if both numbers are known.
fn bars(f: &ComparedFigure) -> String {
    let (Some(b), Some(a)) = (f.before, f.after) else { return String::new() };
    let most = b.max(a);
    if most <= 0.0 {
        return String::new();
    }
    let width = |n: f64| (n.max(0.0) * 120.0 / most).round();
    format!(
        "<svg width=\"120\" height=\"14\" role=\"img\" aria-label=\"before and after\">\
         <rect width=\"{}\" height=\"6\" fill=\"#8a949e\"/><rect y=\"8\" width=\"{}\" height=\"6\" fill=\"#1f6feb\"/></svg>",
        width(b),
        width(a)
    )
}

/// The report as a page of HTML.
pub fn html(r: &TransactionReport, style: &Style) -> String {
    let title = format!("{}: transaction {}", r.host, r.transaction);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title>\n<style>{CSS}</style>\n</head>\n<body>\n\
         <h1>{0}, {1} ({2})</h1>\n",
        xml(&title),
        xml(&r.title),
        xml(&when::full(r.unix_time, style.utc)),
    );
    let reason = r.reason.as_ref().map(|t| format!(" Reason: {}.", xml(t))).unwrap_or_default();
    let _ = writeln!(out, "<p>It is {}.{reason}</p>", r.state);
    let _ = writeln!(out, "<p class=\"claim\"><strong>{CLAIM}.</strong> {WHY}</p>");
    let now = if r.until_now { ", until now" } else { "" };
    let second = r.after.as_ref().map_or_else(|| "after   not measured".into(), |s| span("after", s, style) + now);
    for line in [span("before", &r.before, style), second, format!("load    {}", load(&r.comparison))] {
        let _ = writeln!(out, "<p>{}</p>", xml(&line));
    }
    let host = ("host", &r.comparison.host);
    for (name, figures) in r.comparison.links.iter().map(|(n, f)| (n.as_str(), f)).chain(std::iter::once(host)) {
        let _ = writeln!(
            out,
            "<h2>{}</h2>\n<table>\n<tr><th></th><th>before</th><th>after</th><th>change</th><th class=\"bar\"></th></tr>",
            xml(name)
        );
        for f in figures {
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"bar\">{}</td></tr>",
                xml(f.what),
                number(f.before),
                after(r, f),
                change(f),
                bars(f)
            );
        }
        out.push_str("</table>\n");
    }
    if !r.notes.is_empty() {
        out.push_str("<ul>\n");
        for n in &r.notes {
            let _ = writeln!(out, "<li>{}</li>", xml(n));
        }
        out.push_str("</ul>\n");
    }
    let _ = writeln!(out, "<p><code>ringwise rollback {}</code> undoes it.</p>\n</body>\n</html>", r.transaction);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_name_becomes_markup() {
        assert_eq!(xml("<a b=\"&\">"), "&lt;a b=&quot;&amp;&quot;&gt;");
    }
}

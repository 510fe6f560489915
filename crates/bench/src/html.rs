//! A session as one file for a browser, which loads nothing and contains no scripts.

use std::collections::BTreeMap;

use ringwise_model::words::{plural, xml};

use crate::figure::{Figure, figures};
use crate::file::Results;
use crate::result::Verdict;
use crate::table::{self, TextTable};
use crate::words;

const CSS: &str = "\
:root{color-scheme:light}*{box-sizing:border-box}\
body{font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;color:#1d2433;background:#fff;margin:0;padding:1.6em max(1.5em,2.5vw) 4em}\
h1{font-size:1.55em;line-height:1.25;margin:.6em 0 .2em}h2{font-size:1.15em;margin:2.4em 0 .5em;padding-bottom:.25em;border-bottom:1px solid #c9d0da}\
p{margin:.4em 0;max-width:62em}.sub{color:#556070}\
.caveat{background:#fff4dc;border-left:5px solid #b58400;padding:.45em .9em;font-weight:600;max-width:none;margin:0}\
.note{background:#fdece3;border-left:5px solid #d55e00;padding:.35em .9em}\
ul.v{list-style:none;padding:0;margin:.6em 0;columns:2 40em;column-gap:2em}ul.v li{break-inside:avoid;padding:.22em 0 .22em .8em;margin:.2em 0;border-left:5px solid #aab2bf}\
ul.v li.better{border-color:#117733}ul.v li.worse{border-color:#b3122a}ul.v b{font-weight:650}\
.better .v,span.better{color:#117733;font-weight:600}.worse .v,span.worse{color:#b3122a;font-weight:600}\
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,560px),1fr));gap:1.4em 1.6em;align-items:start}\
figure{margin:0;border:1px solid #e3e7ed;padding:.6em .6em .4em;break-inside:avoid}figure.wide{grid-column:1/-1}@media(max-width:60em){.figures{grid-template-columns:1fr}}\
figure svg{display:block;width:100%;max-width:900px;height:auto}figure.wide svg{max-width:1300px}figcaption{color:#556070;font-size:.86em;padding:.2em .5em}\
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.88em}\
th,td{padding:.28em .7em;text-align:right;border-bottom:1px solid #e3e7ed;white-space:nowrap;font-variant-numeric:tabular-nums}\
th{color:#556070;font-weight:600;border-bottom:1px solid #aab2bf;vertical-align:bottom}th.w,td.w{text-align:left}td.long{white-space:normal;min-width:16em}\
tr.first td{border-top:1px solid #aab2bf}dl{display:grid;grid-template-columns:max-content 1fr;gap:.15em 1.2em;margin:.5em 0}\
dt{color:#556070}dd{margin:0;overflow-wrap:anywhere}\
@media print{body{font-size:10pt;padding:0;max-width:none}.scroll{overflow:visible}table{font-size:7pt}th,td{padding:.15em .4em;white-space:normal}\
.figures{grid-template-columns:1fr 1fr;gap:.6em}h2{break-after:avoid}tr{break-inside:avoid}}";

/// `started`: the beginning of the session as text.
pub fn html(r: &Results, started: &str) -> String {
    let s = &r.session;
    let title = s.title.clone().unwrap_or_else(|| format!("{}: {}", s.workload, words::compared(r)));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width\"/>\n<title>{}</title>\n<style>{CSS}</style>\n</head>\n<body>\n",
        xml(&title)
    );
    if let Some(c) = &s.caveat {
        out.push_str(&format!("<p class=\"caveat\">{}: these numbers are valid only for that.</p>\n", xml(c)));
    }
    out.push_str(&format!("<h1>{}</h1>\n", xml(&title)));
    let peer = s.peer.as_ref().map_or("this host alone".into(), |p| format!("peer {p}"));
    let common = words::common(r);
    let common = if common.is_empty() { common } else { format!("; {common}") };
    let what = format!(
        "{} ({}), {}, on {}; {peer}{common}. Began {started}; ringwise {}.",
        s.workload,
        s.driver,
        words::compared(r),
        words::ports(r),
        s.ringwise
    );
    out.push_str(&format!("<p class=\"sub\">{}</p>\n", xml(&what)));
    for n in words::notes(r) {
        out.push_str(&format!("<p class=\"note\">{}</p>\n", xml(&n)));
    }
    verdicts(&mut out, r);
    list(&mut out, "States", &s.states.iter().map(|s| (s.name.as_str(), s.what.as_str())).collect::<Vec<_>>());
    pictures(&mut out, &figures(r));
    if !r.trials.is_empty() {
        show(&mut out, &table::measures(r, false));
        show(&mut out, &table::costs(r));
    }
    for t in [table::rates(r, false), table::scores(r), table::lost(r), table::comparisons(r)].into_iter().flatten() {
        show(&mut out, &t);
    }
    let doubts = table::doubts(r);
    if !doubts.is_empty() {
        out.push_str("<h2>Doubts and unknown values</h2>\n<ul>\n");
        doubts.iter().for_each(|d| out.push_str(&format!("<li>{}</li>\n", xml(d))));
        out.push_str("</ul>\n");
    }
    out.push_str(&format!("<h2>Design</h2>\n<p>{}.</p>\n", xml(&words::design(r))));
    if let Some(end) = &r.end {
        let restored =
            if end.restored { "restored to its state at the start" } else { "NOT restored to its state at the start" };
        out.push_str(&format!("<p>It took {:.0} s; the host was {restored}.</p>\n", end.seconds));
    }
    let e = &s.environment;
    let mut all: Vec<(&str, &str)> = vec![("hash", &e.hash)];
    all.extend(e.capture.as_ref().map(|c| ("capture", c.as_str())));
    all.extend(pairs(&e.facts));
    list(&mut out, "Environment", &all);
    list(&mut out, "The peer", &pairs(&e.peer));
    out.push_str("<p class=\"sub\">These results are valid for this environment: results of different environments cannot be compared.</p>\n");
    out.push_str("</body>\n</html>\n");
    out
}

fn pairs(map: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    map.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect()
}

fn verdicts(out: &mut String, r: &Results) {
    if r.comparisons.is_empty() {
        return;
    }
    let n = plural(r.comparisons.len(), "comparison");
    out.push_str(&format!("<h2>Verdicts</h2>\n<p><b>{n}: {}.</b></p>\n<ul class=\"v\">\n", xml(&words::tally(r))));
    for line in words::verdicts(r) {
        let parts: Vec<String> = line
            .parts
            .iter()
            .map(|(v, text)| match class(*v).filter(|_| !line.one) {
                Some(class) => format!("<span class=\"{class}\">{}</span>", xml(text)),
                None => xml(text),
            })
            .collect();
        let of_line = line.verdict().and_then(class).map_or(String::new(), |c| format!(" class=\"{c}\""));
        let head = if line.one { " class=\"v\"" } else { "" };
        out.push_str(&format!("<li{of_line}><b{head}>{}:</b> {}</li>\n", xml(&line.head), parts.join(", ")));
    }
    out.push_str("</ul>\n");
    if let Some(d) = words::detectable(r) {
        out.push_str(&format!(
            "<p class=\"sub\">Smallest change that would be found in 80 of 100 sessions: {}.</p>\n",
            xml(&d)
        ));
    }
}

/// The class of a verdict that has a colour.
fn class(v: Verdict) -> Option<&'static str> {
    match v {
        Verdict::Better => Some("better"),
        Verdict::Worse => Some("worse"),
        Verdict::Equivalent | Verdict::Inconclusive => None,
    }
}

fn list(out: &mut String, title: &str, all: &[(&str, &str)]) {
    if all.is_empty() {
        return;
    }
    out.push_str(&format!("<h2>{title}</h2>\n<dl>\n"));
    all.iter().for_each(|(k, v)| out.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", xml(k), xml(v))));
    out.push_str("</dl>\n");
}

fn pictures(out: &mut String, all: &[Figure]) {
    if all.is_empty() {
        return;
    }
    out.push_str("<h2>Figures</h2>\n<div class=\"figures\">\n");
    for f in all {
        out.push_str(&format!(
            "<figure id=\"{}\"{}>\n{}<figcaption>{}</figcaption>\n</figure>\n",
            f.name,
            if f.wide { " class=\"wide\"" } else { "" },
            f.svg,
            xml(&f.caption)
        ));
    }
    out.push_str("</div>\n");
}

fn show(out: &mut String, t: &TextTable) {
    let is_words = |i: usize| i < t.words || (t.last_words && i + 1 == t.head.len());
    if t.head.len() == t.words {
        return;
    }
    out.push_str(&format!("<h2>{}</h2>\n<div class=\"scroll\"><table>\n<tr>", xml(&t.title)));
    for (i, h) in t.head.iter().enumerate() {
        out.push_str(&format!("<th{}>{}</th>", if is_words(i) { " class=\"w\"" } else { "" }, xml(h)));
    }
    out.push_str("</tr>\n");
    let mut last = "";
    // The verdict is the last of the leading columns of text.
    let verdict = |i: usize| !t.verdicts.is_empty() && i + 1 == t.words;
    for (k, row) in t.rows.iter().enumerate() {
        // The point is shown once above its states; a line separates it from the next one.
        let first = t.head[0] == "point" && row[0] != last && !last.is_empty();
        last = if t.head[0] == "point" { &row[0] } else { "" };
        let classes = [first.then_some("first"), t.verdicts.get(k).and_then(|v| class(*v))];
        let classes: Vec<&str> = classes.into_iter().flatten().collect();
        out.push_str(&match classes.as_slice() {
            [] => "<tr>".to_string(),
            all => format!("<tr class=\"{}\">", all.join(" ")),
        });
        for (i, cell) in row.iter().enumerate() {
            let class = match (is_words(i), cell.chars().count() > 44) {
                (true, _) if verdict(i) => " class=\"w v\"",
                (true, true) => " class=\"w long\"",
                (true, false) => " class=\"w\"",
                _ => "",
            };
            out.push_str(&format!("<td{class}>{}</td>", xml(cell)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str(&format!("</table></div>\n<p class=\"sub\">{}</p>\n", xml(&t.note)));
}

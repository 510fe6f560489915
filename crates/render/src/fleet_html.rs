//! The pages of `check` and `plan` about several captures as one file for a browser, which loads nothing and contains no
//! scripts.

use ringwise_check::fleet::{HostSummary, shared};
use ringwise_model::words::xml;
use ringwise_plan::fleet::PlanGroup;
use ringwise_text::{Style, plural, thousands, visible};

use crate::fleet::{self, FailedCapture};

const CSS: &str = "\
:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:0;padding:1.5em max(1.5em,2.5vw) 4em}\
h1{font-size:1.4em;line-height:1.25}h2{font-size:1.1em;margin:2em 0 .4em}.scroll{overflow-x:auto}\
table{border-collapse:collapse;font-size:.9em}th,td{padding:.25em .8em;text-align:left;border-bottom:1px solid #8886}\
.n{text-align:right;font-variant-numeric:tabular-nums}.error{border-left:5px solid #b3122a;padding-left:.8em}\
code{overflow-wrap:anywhere}section{margin:1.5em 0}";

/// The page of `check`. `hosts`: the worst first.
pub fn checked(hosts: &[HostSummary], failed: &[FailedCapture]) -> String {
    let mut out = begin("ringwise check", &fleet::checked_summary(hosts, failed));
    out += &failures(failed);
    let style = Style::plain(None);
    let rows = hosts.iter().map(|h| {
        let name = h.host.as_deref().unwrap_or("-");
        let numbers = [h.errors, h.warnings, h.infos].map(|n| number(n as u64));
        let cells = [cell(name), numbers.concat(), cell(&fleet::rules(h, &style)), cell(&h.file)];
        cells.concat()
    });
    let titles = [("Host", ""), ("Errors", "n"), ("Warnings", "n"), ("Info", "n"), ("Rules", ""), ("File", "")];
    out += &table("Hosts, worst first", &titles, rows);
    let rows = shared(hosts).into_iter().map(|s| {
        let title = ringwise_check::find(&s.rule).map_or("", |r| r.title);
        [cell(&s.rule), number(s.hosts as u64), cell(title)].concat()
    });
    out += &table("The same findings on many hosts", &[("Rule", ""), ("Hosts", "n"), ("Title", "")], rows);
    out + END
}

/// The page of `plan`. `again`: the command that plans one of the captures, without its file.
pub fn planned(groups: &[PlanGroup], failed: &[FailedCapture], again: &str) -> String {
    let mut out = begin("ringwise plan", &fleet::planned_summary(groups, failed));
    out += &failures(failed);
    let hosts: usize = groups.iter().map(PlanGroup::hosts).sum();
    let style = Style::plain(None);
    if hosts == 1 {
        out += "<p>This page compares several captures. Of one host, the command below prints the plan.</p>\n";
    }
    for g in groups {
        let e = &g.example;
        let name = e.host.as_ref().map_or_else(String::new, |h| format!(" {h}"));
        out += &format!("<section>\n<h2>{}{}</h2>\n", text(&fleet::title(g, hosts)), text(&fleet::what(e)));
        out += &format!("<p>Example{}: {}</p>\n", text(&name), text(&fleet::devices(e, &style)));
        out += &format!("<p><code>{}</code></p>\n", text(&fleet::reads(again, &e.file)));
        if !g.others.is_empty() {
            let n = plural(g.others.len(), "other host");
            let files: String = g.others.iter().map(|f| format!("<li><code>{}</code></li>\n", text(f))).collect();
            out += &format!("<details><summary>{n}</summary>\n<ul>\n{files}</ul>\n</details>\n");
        }
        out += "</section>\n";
    }
    out + END
}

const END: &str = "</body>\n</html>\n";

fn begin(title: &str, summary: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width\"/>\n<title>{title}</title>\n<style>{CSS}</style>\n</head>\n\
         <body>\n<h1>{title}</h1>\n<p>{}</p>\n",
        text(summary)
    )
}

/// Names come from captures: nothing in them may act on a browser, or on the terminal that shows the file.
fn text(words: &str) -> String {
    xml(&visible(words))
}

fn cell(words: &str) -> String {
    format!("<td>{}</td>", text(words))
}

fn number(n: u64) -> String {
    format!("<td class=\"n\">{}</td>", thousands(n))
}

fn failures(failed: &[FailedCapture]) -> String {
    if failed.is_empty() {
        return String::new();
    }
    let mut out = "<section class=\"error\">\n<h2>Captures that could not be used</h2>\n<ul>\n".to_string();
    for f in failed {
        out += &format!("<li><code>{}</code>: {}</li>\n", text(&f.file), text(&f.why));
    }
    out += "</ul>\n";
    if let Some(expected) = failed.iter().find_map(|f| f.expected) {
        out += &format!("<p>Expected: {}</p>\n", text(expected));
    }
    out + "</section>\n"
}

/// A table, unless it has no rows. `titles`: with the class of the column.
fn table(title: &str, titles: &[(&str, &str)], rows: impl Iterator<Item = String>) -> String {
    let rows: String = rows.map(|r| format!("<tr>{r}</tr>\n")).collect();
    if rows.is_empty() {
        return rows;
    }
    let head: String = titles.iter().map(|(t, class)| format!("<th class=\"{class}\">{t}</th>")).collect();
    format!("<h2>{title}</h2>\n<div class=\"scroll\"><table>\n<tr>{head}</tr>\n{rows}</table></div>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringwise_model::Goal;
    use ringwise_plan::fleet::PlannedHost;

    const BAD: &str = "<script>\u{1b}[2J&\"'";

    #[test]
    fn names_of_captures_are_escaped() {
        let host = HostSummary {
            file: BAD.into(),
            host: Some(BAD.into()),
            errors: 1,
            warnings: 0,
            infos: 0,
            planned: true,
            worst: vec!["A03".into()],
            rules: vec!["A03".into()],
        };
        let failed = [FailedCapture { file: BAD.into(), why: BAD.into(), expected: Some("a capture") }];
        let example = PlannedHost {
            file: BAD.into(),
            host: Some(BAD.into()),
            devices: vec![(BAD.into(), BAD.into())],
            goal: Goal::Rpc,
            steps: 2,
            interrupts_traffic: false,
            not_planned: 0,
        };
        let group = PlanGroup { example, others: vec![BAD.into()] };
        let pages = [checked(&[host.clone(), host], &failed), planned(&[group], &failed, "ringwise plan")];
        for page in pages {
            assert!(!page.contains("<script") && !page.contains('\u{1b}'), "{page}");
            assert!(page.contains("&lt;script&gt;") && page.ends_with(END), "{page}");
        }
    }

    #[test]
    fn tables_have_a_row_for_each_host_and_shared_rule() {
        let host = |file: &str| HostSummary {
            file: file.into(),
            host: None,
            errors: 0,
            warnings: 1,
            infos: 0,
            planned: true,
            worst: vec!["Q14".into()],
            rules: vec!["Q14".into()],
        };
        let page = checked(&[host("a"), host("b")], &[]);
        // Two heads, two hosts, one rule.
        assert_eq!(page.matches("<tr>").count(), 5, "{page}");
        assert!(page.contains("<p>2 hosts: 2 with warnings only</p>"), "{page}");
        assert!(page.contains("<td>Q14</td><td class=\"n\">2</td><td>no XPS</td>"), "{page}");
        assert!(!checked(&[], &[]).contains("<table>"));
    }
}

//! Shows a session on a terminal.

use ringwise_model::words::{hang, plain, plural};

use crate::file::Results;
use crate::result::Verdict;
use crate::{bound, summary, table, words};

/// The kind of a piece of a line, for the caller that colours it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A proved change for the better.
    Better,
    /// A proved change for the worse.
    Worse,
    /// A caution.
    Caution,
    /// A heading.
    Bold,
    /// Less important than the rest.
    Dim,
}

/// The capabilities of the output.
pub struct TextStyle<'a> {
    /// Width in columns; `None`: nothing is folded, one record per line.
    pub width: Option<usize>,
    /// The output shows only ASCII; other characters are replaced by similar ones.
    pub ascii: bool,
    /// Colours a whole piece of a line.
    pub paint: &'a dyn Fn(Tone, &str) -> String,
}

impl TextStyle<'_> {
    /// Removes control characters, because names and doubts come from outside.
    fn plain(&self, text: &str) -> String {
        let text: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        if self.ascii { ascii(&text) } else { text }
    }

    /// Characters are replaced before folding, so that folded lines do not grow afterwards.
    fn hang(&self, head: &str, text: &str) -> String {
        hang(&self.plain(head), &self.plain(text), self.width)
    }
}

fn painted(look: &TextStyle, tone: Tone, lines: &str) -> String {
    lines.lines().map(|l| format!("{}\n", (look.paint)(tone, l))).collect()
}

/// Verdicts, table, limits, detectable changes, and notes.
pub fn text(r: &Results, look: &TextStyle) -> String {
    let w = look.width;
    let s = &r.session;
    let mut out = String::new();
    if let Some(c) = &s.caveat {
        out.push_str(&painted(
            look,
            Tone::Caution,
            &look.hang("", &format!("{c}: these numbers are valid only for that")),
        ));
    }
    let title = s.title.as_ref().map(|t| format!("{t}: ")).unwrap_or_default();
    let head = format!("{title}{}, {} ({})", s.workload, words::compared(r), s.driver);
    out.push_str(&painted(look, Tone::Bold, &look.hang("", &head)));
    let peer = s.peer.as_ref().map_or("this host alone".into(), |p| format!("peer {p}"));
    let common = words::common(r);
    let common = if common.is_empty() { common } else { format!("; {common}") };
    out.push_str(&look.hang("on      ", &format!("{}; {peer}{common}", words::ports(r))));
    let names = s.states.iter().map(|s| s.name.chars().count()).max().unwrap_or(0).max(6);
    for state in &s.states {
        out.push_str(&look.hang(&format!("{:names$}  ", state.name), &state.what));
    }
    out.push('\n');
    if !r.comparisons.is_empty() {
        let n = plural(r.comparisons.len(), "comparison");
        out.push_str(&painted(look, Tone::Bold, &look.hang("", &format!("{n}: {}", words::tally(r)))));
        for line in words::verdicts(r) {
            let lines = look.hang("  ", &format!("{}: {}", line.head, line.text()));
            let tone = match line.verdict() {
                Some(Verdict::Better) => Some(Tone::Better),
                Some(Verdict::Worse) => Some(Tone::Worse),
                _ => None,
            };
            out.push_str(&tone.map_or(lines.clone(), |t| painted(look, t, &lines)));
        }
        if let Some(d) = words::detectable(r) {
            out.push_str(&look.hang("  ", &format!("smallest change that would be found in 80 of 100 sessions: {d}")));
        }
        out.push('\n');
    }
    if !r.trials.is_empty() {
        let t = table::measures(r, w.is_some());
        out.push_str(&folded(&t, w, look));
        out.push_str(&painted(look, Tone::Dim, &look.hang("", &t.note)));
        out.push('\n');
        if w.is_some() {
            out.push_str("limited by\n");
            let varies = summary::varying(&summary::points(r));
            let mut last = Vec::new();
            for row in summary::rows(r) {
                let p = words::point(row.point, &varies);
                let at = if p.is_empty() { String::new() } else { format!("{p}, ") };
                last.push((format!("{at}{}", row.state), row.limits()));
            }
            let same = last.iter().all(|l| l.1 == last[0].1);
            if same {
                last.truncate(1);
                last.iter_mut().for_each(|l| l.0 = "everywhere".into());
            }
            for (at, by) in last {
                out.push_str(&look.hang(&format!("  {at}: "), &by));
            }
            for b in bound::bounds(r) {
                let at = words::point(&b.rest, &varies);
                let at = if at.is_empty() { b.state.clone() } else { format!("{at}, {}", b.state) };
                out.push_str(&look.hang(&format!("  {at}, by size: "), &b.text()));
            }
            out.push('\n');
        }
    }
    for t in [table::rates(r, w.is_some()), table::scores(r), table::lost(r)].into_iter().flatten() {
        out.push_str(&format!("{}\n", (look.paint)(Tone::Bold, &t.title)));
        out.push_str(&folded(&t, w, look));
        out.push_str(&painted(look, Tone::Dim, &look.hang("", &t.note)));
        out.push('\n');
    }
    for d in table::doubts(r) {
        out.push_str(&look.hang("doubt   ", &d));
    }
    for n in words::notes(r) {
        out.push_str(&painted(look, Tone::Caution, &look.hang("note    ", &n)));
    }
    out.push_str(&look.hang("design  ", &words::design(r)));
    out.push_str(&look.hang("host    ", &format!("environment {}", s.environment.hash)));
    out
}

/// On a terminal the point is above its states. If the table is still too wide, each row becomes several lines.
fn folded(t: &table::TextTable, width: Option<usize>, look: &TextStyle) -> String {
    let line = |cells: &Vec<String>| cells.iter().map(|c| look.plain(c)).collect();
    let whole: Vec<Vec<String>> = std::iter::once(&t.head).chain(&t.rows).map(line).collect();
    let numbers: Vec<usize> = (t.words..t.head.len()).collect();
    let text = plain(&whole, &numbers);
    let Some(width) = width else { return text };
    let fits = |text: &str| text.lines().all(|l| l.chars().count() <= width);
    let mut out = String::new();
    if fits(&text) || t.head.first().is_none_or(|h| h != "point") {
        for (i, line) in text.lines().enumerate() {
            out.push_str(&if i == 0 { (look.paint)(Tone::Dim, line) } else { line.into() });
            out.push('\n');
        }
        return out;
    }
    let inner: Vec<Vec<String>> = whole
        .iter()
        .map(|r| r[1..].iter().cloned().enumerate().map(|(i, c)| if i == 0 { format!("  {c}") } else { c }).collect())
        .collect();
    let numbers: Vec<usize> = numbers.iter().map(|n| n - 1).collect();
    let text = plain(&inner, &numbers);
    if !fits(&text) {
        for row in &t.rows {
            let cells = t.head.iter().zip(row).skip(t.words);
            let cells: Vec<String> = cells.map(|(h, c)| format!("{h} {c}")).collect();
            out.push_str(&look.hang(&format!("  {}: ", row[..t.words].join(", ")), &cells.join(", ")));
        }
        return out;
    }
    let mut lines = text.lines();
    out.push_str(&format!("{}\n", (look.paint)(Tone::Dim, lines.next().unwrap_or_default())));
    let mut last = "";
    for (row, line) in t.rows.iter().zip(lines) {
        if row[0] != last {
            out.push_str(&format!("{}\n", look.plain(&row[0])));
            last = &row[0];
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

fn ascii(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '…' => out.push_str(".."),
            '±' => out.push_str("+-"),
            '→' => out.push_str("->"),
            '−' => out.push('-'),
            '·' => out.push('*'),
            c if c.is_ascii() => out.push(c),
            _ => out.push('?'),
        }
    }
    out
}

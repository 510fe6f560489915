//! A strict parser of both text formats. It refuses everything that violates their specifications or the
//! conventions of ringwise.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Info,
}

#[derive(Debug, Default)]
pub(crate) struct Text {
    /// By name of the samples.
    pub kinds: BTreeMap<String, Kind>,
    /// `name{labels}` and the value as written.
    pub series: BTreeMap<String, String>,
}

pub(crate) fn parse(text: &str, open: bool) -> Result<Text, String> {
    let body = text.strip_suffix('\n').ok_or("the last line does not end")?;
    let body = if open { body.strip_suffix("# EOF").ok_or("no EOF")? } else { body };
    let mut out = Text::default();
    let mut seen = BTreeSet::new();
    // Name of the family, its kind, whether it has a HELP.
    let mut now: Option<(String, Option<Kind>)> = None;
    for line in body.lines() {
        let bad = |why: &str| Err(format!("{why}: {line}"));
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').ok_or("no help")?;
            if help.is_empty() || !seen.insert(name.to_string()) {
                return bad("a family twice, or without words");
            }
            now = Some((name.to_string(), None));
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let Some((name, kind @ None)) = &mut now else { return bad("TYPE without HELP, or twice") };
            let Some((of, word)) = rest.split_once(' ') else { return bad("no type") };
            if of != name {
                return bad("another name");
            }
            *kind = Some(match word {
                "counter" if open != name.ends_with("_total") => Kind::Counter,
                "gauge" if !open && name.ends_with("_info") => Kind::Info,
                "info" if open && !name.ends_with("_info") => Kind::Info,
                "gauge" if !name.ends_with("_total") => Kind::Gauge,
                _ => return bad("a type that its name does not bear"),
            });
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let Some((name, unit)) = rest.split_once(' ') else { return bad("no unit") };
            let fits = now.as_ref().is_some_and(|n| n.0 == name) && name.ends_with(&format!("_{unit}"));
            if !open || !fits {
                return bad("a unit that is not in the name");
            }
        } else {
            let (key, value) = sample(line)?;
            let name = key.split('{').next().unwrap_or_default().to_string();
            let Some((family, Some(kind))) = &now else { return bad("no HELP and TYPE before it") };
            let want = match (open, kind) {
                (true, Kind::Counter) => format!("{family}_total"),
                (true, Kind::Info) => format!("{family}_info"),
                _ => family.clone(),
            };
            if name != want {
                return bad("among those of another family");
            }
            let n: f64 = value.parse().map_err(|_| format!("no number: {line}"))?;
            if !n.is_finite() || (*kind != Kind::Gauge && n < 0.0) || (*kind == Kind::Info && n != 1.0) {
                return bad("not a value for it");
            }
            out.kinds.insert(name, *kind);
            if out.series.insert(key, value).is_some() {
                return bad("a series twice");
            }
        }
    }
    Ok(out)
}

/// Splits `name{a="b"} 5` into the key as written, and the value.
fn sample(line: &str) -> Result<(String, String), String> {
    let bad = |why: &str| format!("{why}: {line}");
    let word = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let end = line.find(['{', ' ']).ok_or_else(|| bad("no value"))?;
    if !word(&line[..end]) {
        return Err(bad("no name"));
    }
    let mut at = end;
    if line[at..].starts_with('{') {
        let mut names = BTreeSet::new();
        loop {
            let eq = line[at + 1..].find("=\"").ok_or_else(|| bad("no label"))? + at + 1;
            let name = &line[at + 1..eq];
            if !word(name) || name.starts_with("__") || !names.insert(name) {
                return Err(bad("a label's name"));
            }
            let mut escaped = false;
            let mut close = None;
            for (i, c) in line[eq + 2..].char_indices() {
                match (escaped, c) {
                    (true, '\\' | '"' | 'n') => escaped = false,
                    (true, _) => return Err(bad("an escape that there is not")),
                    (false, '\\') => escaped = true,
                    (false, '"') => {
                        close = Some(eq + 2 + i);
                        break;
                    }
                    _ => {}
                }
            }
            let close = close.ok_or_else(|| bad("a label without end"))?;
            if close == eq + 2 {
                return Err(bad("an empty label"));
            }
            at = close + 1;
            match line[at..].chars().next() {
                Some(',') => {}
                Some('}') => break,
                _ => return Err(bad("after a label")),
            }
        }
        at += 1;
    }
    let value = line[at..].strip_prefix(' ').ok_or_else(|| bad("no value"))?;
    if value.contains(' ') {
        return Err(bad("more than a value"));
    }
    Ok((line[..at].to_string(), value.to_string()))
}

/// Names of the labels of a key, in order. Values in these tests contain no commas except in lists of queues.
pub(crate) fn labels_of(key: &str) -> Vec<&str> {
    let inner = key.split_once('{').map_or("", |(_, l)| l.trim_end_matches('}'));
    inner.split("=\"").map(|p| p.rsplit(['"', ',']).next().unwrap_or_default()).filter(|n| !n.is_empty()).collect()
}

/// The value of a label, unescaped.
pub(crate) fn value_of(key: &str, label: &str) -> Option<String> {
    let (_, rest) = key.split_once(&format!("{label}=\""))?;
    let mut out = String::new();
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some(out),
            '\\' => out.push(match chars.next()? {
                'n' => '\n',
                c => c,
            }),
            c => out.push(c),
        }
    }
    None
}

//! A results file: JSON lines, one [`Line`] each. Text to values and back; nothing is opened here.

use ringwise_model::words::plural;
use serde::Deserialize;

use crate::result::{Comparison, End, Line, Rate, SCHEMA, Session, Trial, VERSION};

/// What a file holds, and what about it is to be said.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The first line of the file.
    pub session: Session,
    /// In the order in which they were made, calibration included.
    pub trials: Vec<Trial>,
    /// Empty where the session was cut short before they were made.
    pub comparisons: Vec<Comparison>,
    /// Results of rate searches; empty: nothing was searched.
    pub rates: Vec<Rate>,
    /// None: the session was cut short, or still runs.
    pub end: Option<End>,
    /// What a reader must know about the file itself.
    pub notes: Vec<String>,
}

/// What is looked at before anything else: newer files have other members and other kinds.
#[derive(Deserialize)]
struct Head {
    kind: String,
    #[serde(default)]
    schema: Option<String>,
    #[serde(default)]
    version: Option<u32>,
}

const KINDS: [&str; 5] = ["session", "trial", "comparison", "rate", "end"];

/// One line, with its newline.
///
/// Errors: serde's.
pub fn write(line: &Line) -> Result<String, String> {
    let mut text = serde_json::to_string(line).map_err(|e| format!("a line of the results: {e}"))?;
    text.push('\n');
    Ok(text)
}

/// `name` is for messages. Members that are not known are left out, kinds that are not known with a note.
///
/// Errors: the line that is no result, with its number; a schema or version that is not ours; a state that the session
/// does not name.
pub fn read(name: &str, text: &str) -> Result<Results, String> {
    let mut out: Option<Results> = None;
    let mut notes = Vec::new();
    let mut unknown: Vec<(String, usize, u32)> = Vec::new();
    let mut rest = text;
    let mut n = 0;
    while !rest.is_empty() {
        n += 1;
        let (line, whole) = match rest.split_once('\n') {
            Some((line, after)) => {
                rest = after;
                (line, true)
            }
            None => (std::mem::take(&mut rest), false),
        };
        if line.trim().is_empty() {
            continue;
        }
        let head: Head = match serde_json::from_str(line) {
            Ok(h) => h,
            // A writer ends each line with a newline: without one, it was stopped in the middle.
            Err(_) if !whole && out.is_some() => {
                notes.push(format!("line {n} is torn: the last one was not written to its end"));
                continue;
            }
            Err(e) => return Err(format!("{name}:{n}: no line of results: {e}")),
        };
        if head.kind == "session" {
            let schema = head.schema.as_deref().unwrap_or("none");
            if schema != SCHEMA {
                return Err(format!("{name}:{n}: schema {schema}: {SCHEMA} is wanted"));
            }
            match head.version {
                Some(VERSION) => {}
                Some(v) => {
                    return Err(format!("{name}:{n}: version {v} of {SCHEMA}: this ringwise reads version {VERSION}"));
                }
                None => return Err(format!("{name}:{n}: {SCHEMA} without a version: {VERSION} is wanted")),
            }
            if out.is_some() {
                return Err(format!("{name}:{n}: a second session begins: one file holds one"));
            }
        } else if out.is_none() {
            return Err(format!("{name}:{n}: begins with {:?}: a file of results begins with its session", head.kind));
        }
        if !KINDS.contains(&head.kind.as_str()) {
            match unknown.iter_mut().find(|u| u.0 == head.kind) {
                Some(u) => u.2 += 1,
                None => unknown.push((head.kind, n, 1)),
            }
            continue;
        }
        let line: Line = serde_json::from_str(line).map_err(|e| format!("{name}:{n}: {}: {e}", head.kind))?;
        take(&mut out, line, n).map_err(|e| format!("{name}:{n}: {e}"))?;
    }
    let Some(mut out) = out else { return Err(format!("{name}: empty: no session was written")) };
    for (kind, line, count) in unknown {
        notes.push(format!("{count} of kind {kind:?} (from line {line}) left out: not known to this ringwise"));
    }
    if out.end.is_none() {
        notes.push({
            let n = out.trials.len();
            let are = if n == 1 { "is" } else { "are" };
            format!("no end: the session was cut short or still runs ({} {are} here)", plural(n, "trial"))
        });
    }
    out.notes.append(&mut notes);
    Ok(out)
}

fn take(out: &mut Option<Results>, line: Line, n: usize) -> Result<(), String> {
    let Some(r) = out else {
        if let Line::Session(s) = line {
            for (i, state) in s.states.iter().enumerate() {
                if s.states[..i].iter().any(|o| o.name == state.name) {
                    return Err(format!("two states named {:?}", state.name));
                }
            }
            *out = Some(Results {
                session: *s,
                trials: vec![],
                comparisons: vec![],
                rates: vec![],
                end: None,
                notes: vec![],
            });
        }
        return Ok(());
    };
    let known = |state: &str| match r.session.states.iter().any(|s| s.name == state) {
        true => Ok(()),
        false => Err(format!("state {state:?} is none of the session's")),
    };
    if r.end.is_some() {
        r.notes.push(format!("line {n} stands after the end of the session"));
    }
    match line {
        Line::Session(_) => {}
        Line::Trial(t) => {
            known(&t.state)?;
            r.trials.push(*t);
        }
        Line::Comparison(c) => {
            known(&c.base)?;
            known(&c.with)?;
            r.comparisons.push(*c);
        }
        Line::Rate(x) => {
            known(&x.state)?;
            r.rates.push(*x);
        }
        Line::End(e) => r.end = Some(e),
    }
    Ok(())
}

//! The format of results files: JSON lines, one [`ResultLine`] each. This module converts text to values and back,
//! without opening files.

use ringwise_model::JsonFault;
use ringwise_model::words::plural;
use serde::Deserialize;

use crate::result::{Comparison, End, Rate, ResultLine, SCHEMA, Session, Trial, VERSION};

/// The contents of a file, and notes about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The first line of the file.
    pub session: Session,
    /// The trials in the order in which they were made, including calibration.
    pub trials: Vec<Trial>,
    /// Empty if the session was interrupted before the comparisons.
    pub comparisons: Vec<Comparison>,
    /// Results of rate searches; empty: nothing was searched.
    pub rates: Vec<Rate>,
    /// `None`: the session was interrupted, or is still running.
    pub end: Option<End>,
    /// Notes about the file itself.
    pub notes: Vec<String>,
}

/// The part of a line that is read first, because newer files may have other members and kinds.
#[derive(Deserialize)]
struct Head {
    kind: String,
    #[serde(default)]
    schema: Option<String>,
    #[serde(default)]
    version: Option<u32>,
}

/// What is wrong with a text that should be a file of results.
#[derive(Debug, thiserror::Error)]
pub enum ResultsFileFault {
    /// A line that is not JSON, or has no kind.
    #[error("not a line of results: {0}")]
    NotALine(JsonFault),
    /// A line of a known kind without the members of its kind.
    #[error("{kind}: {error}")]
    Members {
        /// The kind of the line.
        kind: String,
        /// What the JSON parser found.
        error: JsonFault,
    },
    /// The session names another schema than [`SCHEMA`], or none.
    #[error("schema {}: expected {SCHEMA}", .0.as_deref().unwrap_or("none"))]
    Schema(Option<String>),
    /// The session names another version than [`VERSION`].
    #[error("version {0} of {SCHEMA}: this ringwise reads version {VERSION}")]
    Version(u32),
    /// The session names no version.
    #[error("{SCHEMA} without a version: expected {VERSION}")]
    NoVersion,
    /// Another line comes before the session.
    #[error("begins with {0:?}: expected the session as the first line")]
    NoSession(String),
    /// There is a session already.
    #[error("a second session begins: expected one session per file")]
    SecondSession,
    /// Two states of the session have one name.
    #[error("two states named {0:?}")]
    SameState(String),
    /// A state that the session does not name.
    #[error("state {0:?} is not a state of the session")]
    UnknownState(String),
    /// There is no line at all.
    #[error("empty: no session was written")]
    Empty,
}

/// Why a text cannot be read as results.
#[derive(Debug, thiserror::Error)]
#[error("{name}{}: {fault}", .line.map(|n| format!(":{n}")).unwrap_or_default())]
pub struct ReadError {
    /// Name of the file, as the caller gave it.
    pub name: String,
    /// Line number from 1; `None`: the text as a whole.
    pub line: Option<usize>,
    /// What is wrong there.
    pub fault: ResultsFileFault,
}

/// A line that cannot be written as JSON.
#[derive(Debug, thiserror::Error)]
#[error("cannot write a line of the results: {0}")]
pub struct WriteError(serde_json::Error);

const KINDS: [&str; 5] = ["session", "trial", "comparison", "rate", "end"];

/// One line with its newline.
///
/// Errors: those of serde.
pub fn write(line: &ResultLine) -> Result<String, WriteError> {
    let mut text = serde_json::to_string(line).map_err(WriteError)?;
    text.push('\n');
    Ok(text)
}

/// `name` is for messages. Unknown members are ignored; lines of an unknown kind are skipped with a note.
///
/// Errors: a line that is not a result, with its number; another schema or version; a state that the session
/// does not name.
pub fn read(name: &str, text: &str) -> Result<Results, ReadError> {
    let fail = |line: Option<usize>, fault: ResultsFileFault| ReadError { name: name.into(), line, fault };
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
            // A writer ends each line with a newline. Without it, the writer was stopped in the middle of the line.
            Err(_) if !whole && out.is_some() => {
                notes.push(format!("line {n} is incomplete: the last line was not written to its end"));
                continue;
            }
            Err(e) => return Err(fail(Some(n), ResultsFileFault::NotALine(e.into()))),
        };
        if head.kind == "session" {
            readable(head.schema, head.version).map_err(|fault| fail(Some(n), fault))?;
            if out.is_some() {
                return Err(fail(Some(n), ResultsFileFault::SecondSession));
            }
        } else if out.is_none() {
            return Err(fail(Some(n), ResultsFileFault::NoSession(head.kind)));
        }
        if !KINDS.contains(&head.kind.as_str()) {
            match unknown.iter_mut().find(|u| u.0 == head.kind) {
                Some(u) => u.2 += 1,
                None => unknown.push((head.kind, n, 1)),
            }
            continue;
        }
        let line: ResultLine = match serde_json::from_str(line) {
            Ok(line) => line,
            Err(error) => {
                return Err(fail(Some(n), ResultsFileFault::Members { kind: head.kind, error: error.into() }));
            }
        };
        take(&mut out, line, n).map_err(|fault| fail(Some(n), fault))?;
    }
    let Some(mut out) = out else { return Err(fail(None, ResultsFileFault::Empty)) };
    for (kind, line, count) in unknown {
        notes.push(format!("{count} of kind {kind:?} (from line {line}) skipped: unknown to this version of ringwise"));
    }
    if out.end.is_none() {
        notes.push({
            let n = out.trials.len();
            let are = if n == 1 { "is" } else { "are" };
            format!("no end: the session was interrupted or is still running ({} {are} here)", plural(n, "trial"))
        });
    }
    out.notes.append(&mut notes);
    Ok(out)
}

/// Whether a session is of the schema and version that this program reads.
fn readable(schema: Option<String>, version: Option<u32>) -> Result<(), ResultsFileFault> {
    if schema.as_deref() != Some(SCHEMA) {
        return Err(ResultsFileFault::Schema(schema));
    }
    match version {
        Some(VERSION) => Ok(()),
        Some(v) => Err(ResultsFileFault::Version(v)),
        None => Err(ResultsFileFault::NoVersion),
    }
}

fn take(out: &mut Option<Results>, line: ResultLine, n: usize) -> Result<(), ResultsFileFault> {
    let Some(r) = out else {
        if let ResultLine::Session(s) = line {
            for (i, state) in s.states.iter().enumerate() {
                if s.states[..i].iter().any(|o| o.name == state.name) {
                    return Err(ResultsFileFault::SameState(state.name.clone()));
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
        false => Err(ResultsFileFault::UnknownState(state.into())),
    };
    if r.end.is_some() {
        r.notes.push(format!("line {n} follows the end of the session"));
    }
    match line {
        ResultLine::Session(_) => {}
        ResultLine::Trial(t) => {
            known(&t.state)?;
            r.trials.push(*t);
        }
        ResultLine::Comparison(c) => {
            known(&c.base)?;
            known(&c.with)?;
            r.comparisons.push(*c);
        }
        ResultLine::Rate(x) => {
            known(&x.state)?;
            r.rates.push(*x);
        }
        ResultLine::End(e) => r.end = Some(e),
    }
    Ok(())
}

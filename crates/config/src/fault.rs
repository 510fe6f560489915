//! What is wrong with a file: where, what was found, what would be right.

use std::fmt;
use std::ops::Range;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Bytes of the text.
    pub at: Range<usize>,
    pub found: String,
    pub right: Option<String>,
}

/// All of it, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    pub file: String,
    pub text: String,
    pub all: Vec<Fault>,
}

/// More than this many are counted, not printed: a wrong file is often wrong everywhere.
const SHOWN: usize = 40;
/// Characters of a line that are shown.
const WIDE: usize = 160;

impl Faults {
    pub(crate) fn new(file: &str, text: &str, mut all: Vec<Fault>) -> Self {
        all.sort_by(|a, b| (a.at.start, a.at.end, &a.found).cmp(&(b.at.start, b.at.end, &b.found)));
        all.dedup();
        Self { file: file.to_string(), text: text.to_string(), all }
    }
}

/// Line and column, from 1.
pub(crate) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..floor(text, at)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in self.all.iter().take(SHOWN) {
            let (line, column) = place(&self.text, fault.at.start);
            writeln!(f, "{}:{line}:{column}: {}", self.file, fault.found)?;
            let whole = self.text.lines().nth(line - 1).unwrap_or_default();
            let shown: String = whole.chars().take(WIDE).map(|c| if c.is_control() { ' ' } else { c }).collect();
            let number = line.to_string();
            let margin = " ".repeat(number.len());
            writeln!(f, "  {number} | {}", shown.trim_end())?;
            if column <= WIDE {
                let end = floor(&self.text, fault.at.end).max(floor(&self.text, fault.at.start));
                let marked = self.text.get(floor(&self.text, fault.at.start)..end).unwrap_or_default();
                let marked = marked.lines().next().unwrap_or_default().chars().count();
                let room = shown.chars().count().saturating_sub(column - 1).max(1);
                let marks = "^".repeat(marked.clamp(1, room));
                writeln!(f, "  {margin} | {}{marks}", " ".repeat(column - 1))?;
            }
            if let Some(right) = &fault.right {
                writeln!(f, "  {margin} = right would be {right}")?;
            }
        }
        if self.all.len() > SHOWN {
            writeln!(f, "and {} more", self.all.len() - SHOWN)?;
        }
        let n = self.all.len();
        write!(f, "{}: {n} fault{}; nothing was read from the host", self.file, if n == 1 { "" } else { "s" })
    }
}

impl std::error::Error for Faults {}

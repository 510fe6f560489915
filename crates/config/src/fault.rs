//! Errors in a file: where, what was found, what is expected.
use ringwise_model::order::Order;
use std::fmt;
use std::ops::Range;

/// One error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Bytes of the text.
    pub at: Range<usize>,
    /// Related places, such as the other half of a contradiction.
    pub with: Vec<Range<usize>>,
    /// What is wrong, with what was written.
    pub found: String,
    /// What is expected. `None`: `found` is enough.
    pub right: Option<String>,
}

/// All errors, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    /// Name of the file in messages, which is not opened, or the argument of the command line.
    pub file: String,
    /// The whole text, for the lines that messages show.
    pub text: String,
    /// The text was made from an argument of the command line, so messages show no lines of it.
    pub is_argument: bool,
    /// At least one error.
    pub all: Vec<Fault>,
}

/// Further errors are counted, not printed: a wrong file is often wrong everywhere.
const SHOWN: usize = 40;
/// The width in columns, which every terminal has.
const WIDE: usize = 80;
/// Marks where a line was cut.
const CUT: &str = "...";

impl Faults {
    /// Line and column of each error, from 1, in the order of `all`.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        self.all.iter().map(|f| place(&self.text, f.at.start))
    }

    pub(crate) fn new(file: &str, text: &str, mut all: Vec<Fault>) -> Self {
        all.order_by(|a, b| (a.at.start, a.at.end, &a.found).cmp(&(b.at.start, b.at.end, &b.found)));
        all.dedup();
        Self { file: file.to_string(), text: text.to_string(), is_argument: false, all }
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

/// The part of a line that fits into `room` columns and includes `column`, and the position of `column` in it.
fn window(line: &str, column: usize, room: usize) -> (String, usize) {
    let all: Vec<char> = line.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = |from: usize, to: usize| all.get(from..to).unwrap_or_default().iter().collect::<String>();
    if all.len() <= room {
        return (text(0, all.len()), column);
    }
    let inner = room - 2 * CUT.len();
    let from = if column < inner * 2 / 3 { 0 } else { (column - inner / 3).min(all.len().saturating_sub(inner)) };
    let to = (from + inner).min(all.len());
    let (head, tail) = (if from > 0 { CUT } else { "" }, if to < all.len() { CUT } else { "" });
    (format!("{head}{}{tail}", text(from, to)), column - from + head.len())
}

/// Wraps at blanks.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match out.last_mut() {
            Some(l) if l.chars().count() + 1 + word.chars().count() <= room => {
                l.push(' ');
                l.push_str(word);
            }
            _ => out.push(word.to_string()),
        }
    }
    out
}

impl Faults {
    /// The line of a place, with marks below the part in question.
    fn excerpt(&self, f: &mut fmt::Formatter<'_>, at: &Range<usize>, digits: usize) -> fmt::Result {
        let (line, column) = place(&self.text, at.start);
        let whole = self.text.lines().nth(line - 1).unwrap_or_default();
        let end = floor(&self.text, at.end).max(floor(&self.text, at.start));
        let marked = self.text.get(floor(&self.text, at.start)..end).unwrap_or_default();
        let marked = marked.lines().next().unwrap_or_default().chars().count();
        let (shown, column) = window(whole, column - 1, WIDE - digits - 5);
        writeln!(f, "  {line:>digits$} | {shown}")?;
        let marks = "^".repeat(marked.clamp(1, shown.chars().count().saturating_sub(column).max(1)));
        writeln!(f, "  {} | {}{marks}", " ".repeat(digits), " ".repeat(column))
    }
}

impl Faults {
    /// A fault in a file: its position, the line, and what is expected.
    fn in_file(&self, f: &mut fmt::Formatter<'_>, fault: &Fault) -> fmt::Result {
        let (line, column) = place(&self.text, fault.at.start);
        writeln!(f, "{}:{line}:{column}: {}", self.file, fault.found)?;
        let last = fault.with.iter().map(|w| place(&self.text, w.start).0).fold(line, usize::max);
        let digits = last.to_string().len();
        self.excerpt(f, &fault.at, digits)?;
        fault.with.iter().try_for_each(|w| self.excerpt(f, w, digits))?;
        let margin = " ".repeat(digits);
        fault.right.iter().try_for_each(|right| expected(f, &format!("  {margin} = "), right))
    }
}

/// What is expected instead, wrapped behind the head of its first line.
fn expected(f: &mut fmt::Formatter<'_>, head: &str, right: &str) -> fmt::Result {
    let mut head = head.to_string();
    for l in wrapped(&format!("expected {right}"), WIDE - head.len()) {
        writeln!(f, "{head}{l}")?;
        head = " ".repeat(head.len());
    }
    Ok(())
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in self.all.iter().take(SHOWN) {
            if self.is_argument {
                writeln!(f, "{}: {}", self.file, fault.found)?;
                fault.right.iter().try_for_each(|right| expected(f, "  ", right))?;
            } else {
                self.in_file(f, fault)?;
            }
        }
        if self.all.len() > SHOWN {
            writeln!(f, "and {} more", self.all.len() - SHOWN)?;
        }
        if self.is_argument {
            return f.write_str("Nothing was read from the host");
        }
        let n = self.all.len();
        write!(f, "{}: {n} error{}; nothing was read from the host", self.file, if n == 1 { "" } else { "s" })
    }
}

impl std::error::Error for Faults {}

//! The error of all parsers: text or bytes do not have the expected form.

use std::fmt;

/// Bytes or text that do not have the expected form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Kind of file or message: `cpumask`, `/proc/interrupts`, `channels reply`.
    pub what: &'static str,
    /// Line, counted from 1, of files with lines.
    pub line: Option<usize>,
    /// What was found, shortened and with escaped control characters.
    pub found: String,
    /// What is expected.
    pub expected: &'static str,
}

/// Longest excerpt of an invalid text, in characters.
const EXCERPT: usize = 48;

impl ParseError {
    /// An error without a line number. Of `found`, at most 48 characters are kept.
    pub fn new(what: &'static str, found: impl AsRef<[u8]>, expected: &'static str) -> Self {
        Self { what, line: None, found: excerpt(found.as_ref()), expected }
    }

    /// The same, at a line counted from 1.
    pub fn at(what: &'static str, line: usize, found: impl AsRef<[u8]>, expected: &'static str) -> Self {
        Self { line: Some(line), ..Self::new(what, found, expected) }
    }
}

fn excerpt(bytes: &[u8]) -> String {
    // A character has at most four bytes: enough for the excerpt and one more character.
    let head = &bytes[..bytes.len().min(EXCERPT * 4 + 4)];
    let text = String::from_utf8_lossy(head);
    let mut out = String::new();
    for (i, c) in text.chars().enumerate() {
        if i == EXCERPT {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)?;
        if let Some(n) = self.line {
            write!(f, ", line {n}")?;
        }
        write!(f, ": found \"{}\", expected {}", self.found, self.expected)
    }
}

impl std::error::Error for ParseError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_what_where_found_and_expected() {
        let e = ParseError::at("softnet_stat", 3, "zz\0\n", "hexadecimal words");
        assert_eq!(e.to_string(), "softnet_stat, line 3: found \"zz\\u{0}\\n\", expected hexadecimal words");
        let e = ParseError::new("cpumask", "f".repeat(10_000), "groups");
        assert_eq!(e.found.chars().count(), EXCERPT + 1);
    }
}

//! Makes control characters visible, so that a terminal does not act on them. Names of hosts, interfaces, drivers and
//! processes, paths, and data of a peer come from outside and may contain any character. Newlines in names must be
//! replaced before the name becomes part of a text: here they cannot be distinguished from those of ringwise.

use std::borrow::Cow;
use std::fmt::Write as _;

/// All sequences that ringwise sends to a terminal: red, yellow, green, dim, bold, and reset.
pub(crate) const SEQUENCES: [&str; 6] = ["\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[2m", "\x1b[1m", "\x1b[0m"];

/// Text for people: control characters are written as `\x1b`, except tab, newline and, with `color`, the sequences of
/// [`crate::Style::paint`].
pub fn text(text: &str, color: bool) -> Cow<'_, str> {
    written_out(text, color, |c| format!("\\x{:02x}", u32::from(c)))
}

/// A JSON text, in which such characters only occur inside strings.
pub fn json(text: &str) -> Cow<'_, str> {
    written_out(text, false, |c| format!("\\u{:04x}", u32::from(c)))
}

fn written_out(text: &str, color: bool, how: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(n) = our_color(rest).filter(|_| color) {
            out.push_str(&rest[..n]);
            rest = &rest[n..];
            continue;
        }
        if acts(c) {
            let _ = write!(out, "{}", how(c)); // into a string
        } else {
            out.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(out)
}

/// Whether a terminal acts on the character. Tab and newline are allowed in a text, but not in a name
/// ([`ringwise_model::words::visible`]).
fn acts(c: char) -> bool {
    !matches!(c, '\n' | '\t') && ringwise_model::words::acts(c)
}

/// Length of the colour sequence of ringwise at the beginning of the text.
fn our_color(text: &str) -> Option<usize> {
    SEQUENCES.iter().find(|s| text.starts_with(**s)).map(|s| s.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_written_out() {
        let of = |t: &str| text(t, false).into_owned();
        assert_eq!(of("eth0\tup\n"), "eth0\tup\n");
        assert_eq!(of("a\x1b[2Jb\x1b]0;t\x07\r\u{9b}31m\x7f"), "a\\x1b[2Jb\\x1b]0;t\\x07\\x0d\\x9b31m\\x7f");
        assert_eq!(of("abc\u{202e}dcba"), "abc\\x202edcba");
        assert_eq!(of("Zürich · 3"), "Zürich · 3");
        assert_eq!(of("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
    }

    #[test]
    fn only_our_own_colours_pass_where_there_are_colours() {
        let of = |t: &str| text(t, true).into_owned();
        let style = crate::Style { color: true, ..crate::Style::plain(None) };
        let painted = style.paint(crate::Tint::Yellow, "slow");
        assert_eq!(of(&painted), painted);
        assert_eq!(of("\x1b[31;8mhidden\x1b[2K"), "\\x1b[31;8mhidden\\x1b[2K");
    }

    #[test]
    fn json_stays_json() {
        let doc = serde_json::json!({ "name": "a\u{9b}2J\x1b\u{202e}\x7f" });
        let text = serde_json::to_string(&doc).unwrap();
        let safe = json(&text);
        assert!(!safe.chars().any(acts), "{safe:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), doc);
    }
}

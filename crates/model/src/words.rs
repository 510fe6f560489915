//! Numbers, columns and line breaks, for everything that prints for people.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Characters on which a terminal acts: control characters (tab and newline among them), line separators, and
/// characters that change the direction of writing.
pub fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes a name that others choose (of a host, a process, a unit, a file) for a text: characters that could begin a
/// new line or control the terminal are written as `\x0a`.
pub fn visible(name: &str) -> Cow<'_, str> {
    written_out(name, acts)
}

/// A paragraph or a cell: one line, whatever names it contains. Colours are kept.
pub fn one_line(text: &str) -> Cow<'_, str> {
    written_out(text, |c| matches!(c, '\t'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}'))
}

fn written_out(text: &str, which: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&which) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if which(c) {
            let _ = write!(out, "\\x{:02x}", u32::from(c)); // into a string
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// With commas between thousands.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// An error with its causes.
pub fn with_causes(e: &dyn std::error::Error) -> String {
    let mut text = e.to_string();
    let mut cause = e.source();
    while let Some(c) = cause {
        text.push_str(&format!(": {c}"));
        cause = c.source();
    }
    text
}

/// `1 queue`, `8 queues`.
pub fn plural(n: usize, one: &str) -> String {
    let number = thousands(n as u64);
    match (one, one.strip_suffix("ry")) {
        _ if n == 1 => format!("{number} {one}"),
        (_, Some(stem)) => format!("{number} {stem}ries"),
        ("switch", _) => format!("{number} {one}es"),
        _ => format!("{number} {one}s"),
    }
}

/// Escapes text for XML and HTML, also in attributes. Characters that XML does not allow are replaced, because names
/// come from the kernel, which accepts nearly any byte.
pub fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The word with its article: `a vlan`, `an ifb`.
pub fn article(word: &str) -> String {
    let an = word.starts_with(|c: char| "aeiou".contains(c.to_ascii_lowercase()));
    format!("{} {word}", if an { "an" } else { "a" })
}

/// Width in columns; every printed character is one column wide.
pub fn len(s: &str) -> usize {
    s.chars().count()
}

/// Left-aligned in `width` columns.
pub fn pad(s: &str, width: usize) -> String {
    let s = one_line(s);
    format!("{s}{}", " ".repeat(width.saturating_sub(len(&s))))
}

/// Right-aligned in `width` columns.
pub fn right(s: &str, width: usize) -> String {
    let s = one_line(s);
    format!("{}{s}", " ".repeat(width.saturating_sub(len(&s))))
}

/// Prints `text` after `head`, wrapped between words, with further lines indented to the width of the head. A word
/// longer than a line stays whole, because names cannot be broken; only a list of numbers, such as a CPU list, is broken
/// after its commas.
pub fn hang(head: &str, text: &str, width: Option<usize>) -> String {
    let (head, text) = (&*one_line(head), &*one_line(text));
    let indent = len(head);
    let Some(width) = width else {
        return format!("{head}{text}").trim_end().to_string() + "\n";
    };
    let mut out = String::new();
    let mut line = head.to_string();
    let mut fresh = true;
    let columns = width.saturating_sub(indent);
    let parts = |word| match len(word) > columns && is_number_list(word) {
        true => at_commas(word, columns),
        false => vec![word],
    };
    for word in text.split(' ').filter(|w| !w.is_empty()).flat_map(parts) {
        if !fresh && len(&line) + 1 + len(word) > width {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(indent);
            fresh = true;
        }
        if !fresh {
            line.push(' ');
        }
        line.push_str(word);
        fresh = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}

/// Whether a word without blanks is a list of numbers, perhaps with a mark of the sentence behind it: `0,2,4-7:`.
fn is_number_list(word: &str) -> bool {
    word.contains(',')
        && word.trim_end_matches([':', ';', ')']).chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '-'))
}

/// The parts of a list, which end with a comma and fit into so many columns.
fn at_commas(list: &str, columns: usize) -> Vec<&str> {
    let (mut out, mut begin, mut end) = (Vec::new(), 0, 0);
    for item in list.split_inclusive(',') {
        if end > begin && end - begin + item.len() > columns {
            out.push(&list[begin..end]);
            begin = end;
        }
        end += item.len();
    }
    out.push(&list[begin..]);
    out
}

/// Columns, two blanks apart and as wide as their widest cell. The columns in `numbers` are right-aligned.
pub fn plain(rows: &[Vec<String>], numbers: &[usize]) -> String {
    let rows: Vec<Vec<Cow<str>>> = rows.iter().map(|r| r.iter().map(|c| one_line(c)).collect()).collect();
    let n = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width: Vec<usize> =
        (0..n).map(|i| rows.iter().filter_map(|r| r.get(i)).map(|c| len(c)).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for r in &rows {
        let cells: Vec<String> = r
            .iter()
            .enumerate()
            .map(|(i, c)| if numbers.contains(&i) { right(c, width[i]) } else { pad(c, width[i]) })
            .collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lists_of_numbers_are_broken() {
        assert_eq!(hang("on ", "0,2,4-7,9: x", Some(9)), "on 0,2,\n   4-7,9:\n   x\n");
        assert_eq!(hang("on ", "CPUs 0,2,4-7,9", Some(9)), "on CPUs\n   0,2,\n   4-7,9\n");
        assert_eq!(hang("on ", "eth0,eth1", Some(9)), "on eth0,eth1\n");
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(2114), "2,114");
        assert_eq!(thousands(41_180_123), "41,180,123");
        assert_eq!(thousands(999), "999");
        assert_eq!([plural(1, "queue"), plural(0, "queue")], ["1 queue", "0 queues"]);
        assert_eq!([plural(2, "entry"), plural(2, "switch"), plural(2, "key")], ["2 entries", "2 switches", "2 keys"]);
        assert_eq!(["ifb", "vlan", "ipvlan"].map(article), ["an ifb", "a vlan", "an ipvlan"]);
    }

    #[test]
    fn a_name_begins_no_line() {
        let name = "x\nOK: all is well";
        assert_eq!(visible(name), "x\\x0aOK: all is well");
        assert_eq!(visible("a\tb\r\x1b[2J\u{85}\u{2028}\u{202e}"), "a\\x09b\\x0d\\x1b[2J\\x85\\x2028\\x202e");
        assert!(matches!(visible("Zürich · 3"), Cow::Borrowed(_)));
        assert_eq!(one_line("\x1b[31mred\x1b[0m\n"), "\x1b[31mred\x1b[0m\\x0a");
        for width in [None, Some(40)] {
            assert_eq!(hang("socket  ", name, width), "socket  x\\x0aOK: all is well\n");
        }
        // As wide as it is then.
        let table = plain(&[vec![name.into(), "1".into()], vec!["eth0".into(), "2".into()]], &[]);
        assert_eq!(table, "x\\x0aOK: all is well  1\neth0                  2\n");
        assert_eq!(pad("a\nb", 8), "a\\x0ab  ");
    }

    #[test]
    fn hangs_between_words_and_keeps_long_ones() {
        assert_eq!(hang("a   ", "bb cc dd", Some(9)), "a   bb cc\n    dd\n");
        assert_eq!(hang("a ", "0123456789 x", Some(5)), "a 0123456789\n  x\n");
        assert_eq!(hang("a ", "b c d e f", None), "a b c d e f\n");
    }
}

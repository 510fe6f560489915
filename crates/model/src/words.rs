//! Numbers, columns and line breaks, as everything that prints for people writes them.

/// Thousands commas, for people.
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

/// `1 queue`, `8 queues`.
pub fn plural(n: usize, one: &str) -> String {
    let s = match one {
        "switch" => "es",
        _ => "s",
    };
    format!("{} {one}{}", thousands(n as u64), if n == 1 { "" } else { s })
}

/// Width in columns; everything we print is one column a character.
pub fn len(s: &str) -> usize {
    s.chars().count()
}

/// Left-aligned in `width` columns.
pub fn pad(s: &str, width: usize) -> String {
    format!("{s}{}", " ".repeat(width.saturating_sub(len(s))))
}

/// Right-aligned in `width` columns.
pub fn right(s: &str, width: usize) -> String {
    format!("{}{s}", " ".repeat(width.saturating_sub(len(s))))
}

/// `text` behind `head`, broken between words, further lines indented to the head's width.
/// A word longer than a line stays whole.
pub fn hang(head: &str, text: &str, width: Option<usize>) -> String {
    let indent = len(head);
    let Some(width) = width else {
        return format!("{head}{text}").trim_end().to_string() + "\n";
    };
    let mut out = String::new();
    let mut line = head.to_string();
    let mut fresh = true;
    for word in text.split(' ').filter(|w| !w.is_empty()) {
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

/// Columns two blanks apart, as wide as their widest cell; those named in `numbers` right-aligned.
pub fn plain(rows: &[Vec<String>], numbers: &[usize]) -> String {
    let n = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width: Vec<usize> =
        (0..n).map(|i| rows.iter().filter_map(|r| r.get(i)).map(|c| len(c)).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for r in rows {
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
    fn numbers_for_people() {
        assert_eq!(thousands(2114), "2,114");
        assert_eq!(thousands(41_180_123), "41,180,123");
        assert_eq!(thousands(999), "999");
        assert_eq!(plural(1, "queue"), "1 queue");
    }

    #[test]
    fn hangs_between_words_and_keeps_long_ones() {
        assert_eq!(hang("a   ", "bb cc dd", Some(9)), "a   bb cc\n    dd\n");
        assert_eq!(hang("a ", "0123456789 x", Some(5)), "a 0123456789\n  x\n");
        assert_eq!(hang("a ", "b c d e f", None), "a b c d e f\n");
    }
}

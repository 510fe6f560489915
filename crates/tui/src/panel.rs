//! Common parts of all panels: a heading, the visible part of a long list, and wrapped text.

use super::table::Cell;
use super::view::{Panel, View};
use ringwise_text::Tint;

/// The line above a panel. The panel that receives keys is marked.
pub(super) fn heading(v: &View, panel: Panel, words: &str) -> Cell {
    let c = v.choice(panel);
    let mark = if v.focus == panel { '>' } else { ' ' };
    let sorts = super::view::SORTS[panel as usize];
    let mut text = format!("{mark}{words}");
    if c.sort > 0 {
        text += &format!("  sorted by {}", sorts[c.sort]);
    }
    if c.backwards {
        text += "  reversed";
    }
    if !c.filter.is_empty() {
        text += &format!("  filter: {}", c.filter);
    }
    Cell::new(text, Some(Tint::Bold))
}

/// The first visible row, the number of visible rows, and a text if some rows are not visible.
pub(super) fn window(from: usize, all: usize, room: usize) -> (usize, usize, String) {
    let n = all.min(room);
    let from = from.min(all - n);
    let words = match n {
        n if n == all => String::new(),
        0 => format!("  0 of {all} rows fit"),
        _ => format!("  {}-{} of {all}", from + 1, from + n),
    };
    (from, n, words)
}

/// Breaks text between words into at most `lines` lines. A text that is cut ends with `...`.
pub(super) fn wrapped(text: &str, width: usize, lines: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let with = line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && with > width {
            out.push(std::mem::take(&mut line));
            line.push_str("     ");
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    out.push(line);
    if out.len() > lines {
        out.truncate(lines);
        if let Some(l) = out.last_mut() {
            while l.chars().count() + 4 > width && l.contains(' ') {
                l.truncate(l.rfind(' ').unwrap_or(0));
            }
            l.push_str(" ...");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_of_a_list() {
        assert_eq!(window(0, 8, 8), (0, 8, String::new()));
        assert_eq!(window(99, 64, 8), (56, 8, "  57-64 of 64".into()));
        assert_eq!(window(0, 3, 0).2, "  0 of 3 rows fit");
    }

    #[test]
    fn lines_that_are_wrapped() {
        assert_eq!(wrapped("LOST  a b", 80, 2), ["LOST  a b"]);
        assert_eq!(wrapped("one two three", 9, 2), ["one two", "      three"]);
        assert_eq!(wrapped("aaa bbb ccc ddd", 9, 1), ["aaa ..."]);
    }
}

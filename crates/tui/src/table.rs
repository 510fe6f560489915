//! Columns of text in a buffer. Values are never cut: columns that do not fit are left out, starting with the last.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

use ringwise_text::Tint;

/// Writes text to a buffer, with or without colour.
pub(super) struct Pen<'a> {
    pub buf: &'a mut Buffer,
    pub color: bool,
    pub ascii: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pub text: String,
    pub tint: Option<Tint>,
}

impl Cell {
    pub(super) fn new(text: impl Into<String>, tint: Option<Tint>) -> Self {
        Self { text: text.into(), tint }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, tint: None }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self { text: text.into(), tint: None }
    }
}

pub(super) struct Column {
    pub title: &'static str,
    /// The smallest width, so that the column does not move with every value.
    pub width: usize,
    pub left: bool,
}

pub(super) const fn right(title: &'static str, width: usize) -> Column {
    Column { title, width, left: false }
}

pub(super) const fn left(title: &'static str, width: usize) -> Column {
    Column { title, width, left: true }
}

impl Pen<'_> {
    pub(super) fn style(&self, tint: Option<Tint>) -> Style {
        let s = Style::new();
        match (tint, self.color) {
            (None, _) => s,
            (Some(Tint::Red), true) => s.fg(Color::Red).add_modifier(Modifier::BOLD),
            (Some(Tint::Yellow), true) => s.fg(Color::Yellow),
            (Some(Tint::Green), true) => s.fg(Color::Green),
            (Some(Tint::Yellow | Tint::Green), false) => s,
            (Some(Tint::Dim), _) => s.add_modifier(Modifier::DIM),
            (Some(Tint::Bold | Tint::Red), _) => s.add_modifier(Modifier::BOLD),
        }
    }

    /// Text in one line, cut at the end of the area.
    pub(super) fn put(&mut self, area: Rect, line: u16, from: u16, text: &str, tint: Option<Tint>) {
        if line >= area.height || from >= area.width || !self.buf.area().contains((area.x, area.y + line).into()) {
            return;
        }
        let style = self.style(tint);
        // Names from outside may contain any character.
        let text: String = text.chars().map(|c| self.seen(c)).collect();
        self.buf.set_stringn(area.x + from, area.y + line, text, usize::from(area.width - from), style);
    }

    fn seen(&self, c: char) -> char {
        match c {
            c if c.is_control() => '?',
            c if self.ascii && !c.is_ascii() => '?',
            c => c,
        }
    }

    /// Makes a title line stand out, even without colour.
    pub(super) fn bar(&mut self, area: Rect, line: u16) {
        if line < area.height {
            let row = Rect { y: area.y + line, height: 1, ..area }.intersection(*self.buf.area());
            self.buf.set_style(row, Style::new().add_modifier(Modifier::REVERSED));
        }
    }

    /// The widths of the columns that fit.
    pub(super) fn fit(columns: &[Column], rows: &[Vec<Cell>], room: u16) -> Vec<usize> {
        let (mut widths, mut used) = (Vec::new(), 0);
        for (i, c) in columns.iter().enumerate() {
            let cells = rows.iter().filter_map(|r| r.get(i)).map(|c| c.text.chars().count());
            let width = cells.max().unwrap_or(0).max(c.width).max(c.title.chars().count());
            let with = used + width + usize::from(i > 0);
            if with > usize::from(room) {
                break;
            }
            used = with;
            widths.push(width);
        }
        widths
    }

    /// A heading and as many of its rows as fit.
    pub(super) fn table(&mut self, area: Rect, columns: &[Column], widths: &[usize], rows: &[Vec<Cell>]) {
        let mut x = 0;
        for (i, (c, width)) in columns.iter().zip(widths).enumerate() {
            let heading = Cell::new(c.title, Some(Tint::Bold));
            let all = std::iter::once(&heading).chain(rows.iter().map(|r| &r[i]));
            for (line, cell) in (0..area.height).zip(all) {
                let n = cell.text.chars().count();
                let from = if c.left { 0 } else { width.saturating_sub(n) };
                self.put(area, line, (x + from) as u16, &cell.text, cell.tint);
            }
            x += width + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_drop_from_the_right_and_values_stay_whole() {
        let columns = [left("if", 4), right("pps", 6), right("more", 4)];
        let rows = vec![vec!["eth1".into(), "14,880,952".into(), "1".into()]];
        assert_eq!(Pen::fit(&columns, &rows, 20), [4, 10, 4]);
        assert_eq!(Pen::fit(&columns, &rows, 19), [4, 10]);
        assert_eq!(Pen::fit(&columns, &rows, 14), [4]);
        let area = Rect::new(0, 0, 19, 3);
        let mut buf = Buffer::empty(area);
        let mut pen = Pen { buf: &mut buf, color: false, ascii: false };
        pen.table(area, &columns, &[4, 10], &rows);
        let text: String = buf.content().iter().map(ratatui_core::buffer::Cell::symbol).collect();
        assert_eq!(text.trim_end(), "if          pps    eth1 14,880,952");
    }

    #[test]
    fn nothing_outside_and_nothing_unseen() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 4, 1));
        let mut pen = Pen { buf: &mut buf, color: true, ascii: true };
        let far = Rect::new(0, 0, 90, 9);
        pen.put(far, 5, 0, "x", None);
        pen.put(Rect::new(0, 0, 4, 1), 0, 0, "a\x1bé█", Some(Tint::Red));
        assert_eq!(buf.content().iter().map(|c| c.symbol()).collect::<String>(), "a???");
    }
}

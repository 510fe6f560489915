//! Writes cells to a terminal: only those that changed, with sequences that old terminals also support.

use std::io::{Error, Write, stdout};

use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};
use ringwise_sys::proc;

/// Standard output.
#[derive(Default)]
pub(crate) struct Screen {
    out: Vec<u8>,
}

impl Screen {
    fn style(&mut self, style: (Color, Modifier)) {
        self.out.extend_from_slice(b"\x1b[0");
        for (m, code) in [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2"), (Modifier::REVERSED, ";7")] {
            if style.1.contains(m) {
                self.out.extend_from_slice(code.as_bytes());
            }
        }
        let colour = match style.0 {
            Color::Red => ";31",
            Color::Green => ";32",
            Color::Yellow => ";33",
            _ => "",
        };
        self.out.extend_from_slice(colour.as_bytes());
        self.out.push(b'm');
    }
}

impl Backend for Screen {
    type Error = Error;

    fn draw<'a, I: Iterator<Item = (u16, u16, &'a Cell)>>(&mut self, content: I) -> Result<(), Error> {
        let (mut next, mut style) = (None, None);
        for (x, y, cell) in content {
            if next != Some((x, y)) {
                let _ = write!(self.out, "\x1b[{};{}H", y + 1, x + 1);
            }
            let wanted = (cell.fg, cell.modifier);
            if style != Some(wanted) {
                self.style(wanted);
                style = Some(wanted);
            }
            self.out.extend_from_slice(cell.symbol().as_bytes());
            // Every character that is drawn is one column wide.
            next = Some((x + 1, y));
        }
        if style.is_some() {
            self.out.extend_from_slice(b"\x1b[0m");
        }
        Ok(())
    }

    /// The cursor is hidden already while the full screen is shown.
    fn hide_cursor(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn show_cursor(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> Result<Position, Error> {
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, _: P) -> Result<(), Error> {
        Ok(())
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.out.extend_from_slice(b"\x1b[0m\x1b[2J");
        Ok(())
    }

    fn clear_region(&mut self, _: ClearType) -> Result<(), Error> {
        self.clear()
    }

    fn size(&self) -> Result<Size, Error> {
        let (w, h) = proc::terminal_size(&stdout()).unwrap_or((80, 24));
        Ok(Size::new(w.clamp(1, 1000), if h == 0 { 24 } else { h.min(1000) }))
    }

    fn window_size(&mut self) -> Result<WindowSize, Error> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::new(0, 0) })
    }

    fn flush(&mut self) -> Result<(), Error> {
        let mut to = stdout().lock();
        let done = to.write_all(&self.out).and_then(|()| to.flush());
        self.out.clear();
        done
    }
}

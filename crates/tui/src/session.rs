//! The terminal while the full screen is shown: draws the view, and reads keys.

use std::collections::VecDeque;
use std::time::Duration;

use ratatui_core::terminal::Terminal;
use ringwise_sys::terminal::{self, TerminalEvent};
use ringwise_sys::{Host, proc};

use super::backend::Screen;
use super::draw::draw;
use super::keys::{Key, Keys, LoopAction};
use super::view::View;

/// The bytes of a sequence arrive within this time after its escape byte.
const SEQUENCE: Duration = Duration::from_millis(50);

/// Why the full screen ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The terminal could not be switched to full-screen mode.
    #[error("{0}")]
    Terminal(ringwise_sys::Error),
    /// The screen could not be written.
    #[error("standard output: {0}")]
    Output(#[from] std::io::Error),
    /// The recording could not be read.
    #[error("{0}")]
    Recording(#[from] ringwise_recording::Error),
}

/// [`std::result::Result`] with the [`Error`] of the full screen.
pub type Result<T> = std::result::Result<T, Error>;

/// Whether standard input and output are a terminal that can show the full screen.
pub fn possible() -> bool {
    let dumb = std::env::var("TERM").is_ok_and(|t| t == "dumb");
    proc::is_tty(&std::io::stdin()) && proc::is_tty(&std::io::stdout()) && !dumb
}

/// The terminal in full-screen mode. It is restored when this value is dropped, and by the panic hook.
pub struct ScreenSession {
    screen: Terminal<Screen>,
    keys: Keys,
    /// Keys that were pressed and are not handled yet.
    pressed: VecDeque<Key>,
    terminal: terminal::Terminal,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    /// The time is up.
    Time,
    /// A key that the view cannot handle itself.
    Act(LoopAction),
    /// A signal that must end the program.
    End(i32),
}

impl ScreenSession {
    /// Switches the terminal to full-screen mode.
    pub fn begin() -> Result<Self> {
        let terminal = terminal::enter().map_err(Error::Terminal)?;
        let screen = Terminal::new(Screen::default())?;
        Ok(Self { screen, keys: Keys::default(), pressed: VecDeque::new(), terminal })
    }

    /// Draws the view at the present size of the terminal. Only cells that differ from the last time are written.
    pub fn draw(&mut self, view: &View) -> Result<()> {
        self.screen.draw(|f| draw(view, f.area(), f.buffer_mut()))?;
        Ok(())
    }

    /// Draws the view and handles keys for this time. Of `host`, only the clock is used.
    pub fn wait(&mut self, view: &mut View, host: &dyn Host, time: Duration) -> Result<WaitEnd> {
        let until = host.since_boot() + time;
        loop {
            while let Some(key) = self.pressed.pop_front() {
                if cfg!(debug_assertions) && key == Key::Char('!') && std::env::var_os("RINGWISE_PANIC").is_some() {
                    panic!("requested by RINGWISE_PANIC");
                }
                match view.key(key) {
                    LoopAction::Nothing => {}
                    LoopAction::Redraw => self.screen.clear()?,
                    act => return Ok(WaitEnd::Act(act)),
                }
            }
            self.draw(view)?;
            let left = until.saturating_sub(host.since_boot());
            let left = if self.keys.waits() { left.min(SEQUENCE) } else { left };
            let keys = match self.terminal.wait(left) {
                TerminalEvent::Keys(bytes) => self.keys.read(&bytes, false),
                TerminalEvent::Time if self.keys.waits() => self.keys.read(&[], true),
                TerminalEvent::Time if host.since_boot() >= until => return Ok(WaitEnd::Time),
                TerminalEvent::Time => continue,
                TerminalEvent::Redraw => {
                    self.screen.clear()?;
                    continue;
                }
                TerminalEvent::End(signal) => return Ok(WaitEnd::End(signal)),
                TerminalEvent::Gone => return Ok(WaitEnd::Act(LoopAction::Quit)),
            };
            self.pressed.extend(keys);
        }
    }

    /// Restores the terminal and ends the process with this signal, as if the signal were not handled.
    pub fn end_by(self, signal: i32) {
        drop(self);
        terminal::end_by(signal);
    }
}

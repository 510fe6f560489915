//! stdout is for the answer, stderr for everything else. A reader that closes the pipe (`| head`) is not an error.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ringwise_sys::proc;
use ringwise_text::visible;

use crate::error_document;
use crate::exit::{Fail, Result};

/// Whether the colours of [`ringwise_text::Style::paint`] are let through to the terminal.
static COLOR: AtomicBool = AtomicBool::new(false);

/// Lets the colours of [`ringwise_text::Style::paint`] through from now on.
pub(crate) fn with_color() {
    COLOR.store(true, Ordering::Relaxed);
}

/// Replaces characters that a terminal acts on by visible ones, except the colours of ringwise.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    visible::text(text, COLOR.load(Ordering::Relaxed))
}

/// Messages to the thread that writes for [`later`].
enum Line {
    Text(String),
    Reached(SyncSender<()>),
}

static LINES: OnceLock<Option<Mutex<Sender<Line>>>> = OnceLock::new();

fn lines() -> &'static Option<Mutex<Sender<Line>>> {
    LINES.get_or_init(|| {
        let (send, lines) = channel();
        let write = move || {
            while let Ok(line) = lines.recv() {
                match line {
                    Line::Text(t) => write_error(&t),
                    Line::Reached(r) => drop(r.send(())),
                }
            }
        };
        std::thread::Builder::new().name("lines".into()).spawn(write).ok().map(|_| Mutex::new(send))
    })
}

/// Prints progress of something that must not wait for a terminal: a write to a terminal behind an interrupted network
/// blocks.
pub fn later(quiet: bool, text: String) {
    if quiet {
        return;
    }
    if let Some(sender) = lines() {
        // The thread lives as long as the process.
        let _ = sender.lock().unwrap_or_else(PoisonError::into_inner).send(Line::Text(text));
    }
}

/// Waits, for a limited time, until everything sent is written, so that the order of lines is kept.
fn caught_up() {
    if let Some(Some(sender)) = LINES.get() {
        let (send, reached) = sync_channel(1);
        let sent = sender.lock().unwrap_or_else(PoisonError::into_inner).send(Line::Reached(send));
        if sent.is_ok() {
            let _ = reached.recv_timeout(Duration::from_secs(2));
        }
    }
}

fn write_error(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = writeln!(err, "{}", safe(text));
}

/// Prints a question and leaves the cursor after it.
pub fn prompt(text: &str) {
    caught_up();
    let mut err = std::io::stderr().lock();
    let _ = write!(err, "{} ", safe(text)).and_then(|()| err.flush());
}

/// Writes the answer, for people.
pub fn answer(text: &str) -> Result<()> {
    whole(&safe(text))
}

/// Writes a script or a file unchanged; on a terminal, control characters are replaced.
pub fn file(text: &str) -> Result<()> {
    if proc::is_tty(&std::io::stdout()) { answer(text) } else { whole(text) }
}

/// Whether something was written to stdout.
static ANSWERED: AtomicBool = AtomicBool::new(false);

fn whole(text: &str) -> Result<()> {
    caught_up();
    ANSWERED.store(true, Ordering::Relaxed);
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Fail::io("standard output", &e)),
        _ => Ok(()),
    }
}

/// Writes a JSON document and a newline.
pub fn json<T: serde::Serialize>(doc: &T) -> Result<()> {
    let mut text = serde_json::to_string_pretty(doc).map_err(|e| Fail::error(format!("cannot write JSON: {e}")))?;
    text.push('\n');
    whole(&visible::json(&text))
}

/// Writes a line that is JSON text.
pub fn json_line(line: &str) -> Result<()> {
    whole(&format!("{}\n", visible::json(line)))
}

/// Writes the document of an error, unless stdout has an answer already: a program reads one document. It is one line, as
/// the samples of `watch -j` are.
pub(crate) fn error_document(fail: &Fail) {
    if ANSWERED.load(Ordering::Relaxed) {
        return;
    }
    if let Ok(line) = serde_json::to_string(&error_document::document(fail)) {
        // The message is on stderr already, and a reader may have closed the pipe.
        let _ = json_line(&line);
    }
}

/// Prints progress, questions and warnings. Errors of writing to stderr are ignored.
pub fn note(quiet: bool, text: &str) {
    if !quiet {
        caught_up();
        write_error(text);
    }
}

/// A line on the terminal behind stderr that is replaced while something progresses, and erased at the end.
pub(crate) struct Progress {
    /// Columns of the shown text.
    width: usize,
}

impl Progress {
    /// `None`: nothing is shown, because stderr is not a terminal or `-q` is given.
    pub(crate) fn new(quiet: bool) -> Option<Self> {
        (!quiet && proc::is_tty(&std::io::stderr())).then_some(Self { width: 0 })
    }

    /// Replaces the line.
    pub(crate) fn show(&mut self, text: &str) {
        caught_up();
        let text = safe(text);
        let (before, width) = (self.width, text.chars().count());
        let mut err = std::io::stderr().lock();
        // Spaces erase the rest of a longer line on every terminal.
        let _ = write!(err, "\r{text}{:rest$}", "", rest = before.saturating_sub(width)).and_then(|()| err.flush());
        self.width = width;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.width > 0 {
            let mut err = std::io::stderr().lock();
            let _ = write!(err, "\r{:width$}\r", "", width = self.width).and_then(|()| err.flush());
        }
    }
}

/// Prints an error and the next command, also with `-q`.
pub(crate) fn fail(fail: &Fail) {
    let err = std::io::stderr();
    let columns = |(columns, _)| Some(usize::from(columns)).filter(|c| *c >= 40);
    let width = proc::is_tty(&err).then(|| proc::terminal_size(&err).and_then(columns).unwrap_or(80));
    error(&fail.text(width));
}

/// Prints an error, also with `-q`.
pub fn error(text: &str) {
    note(false, text);
}

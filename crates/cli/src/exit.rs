//! Exit statuses, and errors that carry one.

use std::process::ExitCode;
use std::{fmt, io};

pub use ringwise_sys::io_text as io_reason;
use ringwise_text::hang;

use crate::error_details::{Details, FaultPlace};

/// Exit statuses of the program, with the same meaning in every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Status {
    /// Success, or nothing to do.
    Ok = 0,
    /// An error; nothing was changed.
    Error = 1,
    /// The command line is wrong.
    Usage = 2,
    /// Something needs attention: changed settings, an unfinished transaction, refused settings, findings of `check`, or a
    /// non-empty plan with `plan --exit-code`.
    Findings = 3,
    /// The command failed, and everything was put back.
    PutBack = 4,
    /// The command failed, and not everything could be put back.
    NotPutBack = 5,
    /// The command was refused before anything was changed.
    Refused = 6,
}

impl Status {
    /// The status that a transaction, or the service about one, has as a number.
    pub(crate) fn of_transaction(number: u8) -> Self {
        match number {
            0 => Self::Ok,
            1 => Self::Error,
            3 => Self::Findings,
            4 => Self::PutBack,
            6 => Self::Refused,
            // What is not known counts as the worst.
            _ => Self::NotPutBack,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(s: Status) -> Self {
        ExitCode::from(s as u8)
    }
}

/// An error for people: what happened, and the next command where there is one.
#[derive(Debug)]
pub struct Fail {
    /// The status that the program exits with.
    pub status: Status,
    /// What happened and why, without `error: ` in front.
    pub message: String,
    /// The next command, ready to copy.
    pub next: Option<String>,
    /// What a program decides by: the document `ringwise.error` has it.
    pub details: Box<Details>,
}

/// [`std::result::Result`] with an error for people.
pub type Result<T> = std::result::Result<T, Fail>;

impl Fail {
    /// An error without a next command.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), next: None, details: Box::default() }
    }

    /// An error with status 1.
    pub fn error(message: impl Into<String>) -> Self {
        Self::new(Status::Error, message)
    }

    /// A wrong command line, with status 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Status::Usage, message)
    }

    /// A refusal before anything was changed, with status 6.
    pub fn refused(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Status::Refused, message).code(code)
    }

    /// An error of the operating system about `what`, such as a file, with status 1.
    pub fn io(what: impl fmt::Display, e: &io::Error) -> Self {
        Self::error(format!("{what}: {}", io_reason(e))).code("io").errno(e.raw_os_error())
    }

    /// Sets the code by which programs recognize this error.
    pub fn code(mut self, code: &'static str) -> Self {
        self.details.code = Some(code.into());
        self
    }

    /// Sets code and facts from an error that carries its code in the field `tag`.
    pub(crate) fn tagged(mut self, tag: &str, error: &impl serde::Serialize) -> Self {
        self.details.tagged(tag, error);
        self
    }

    /// Names the errno, where the kernel or the system gave one.
    pub(crate) fn errno(mut self, errno: Option<i32>) -> Self {
        self.details.errno = errno;
        self
    }

    /// Names the file that the error is about.
    pub(crate) fn file(mut self, file: impl AsRef<std::path::Path>) -> Self {
        self.details.file = Some(file.as_ref().to_path_buf());
        self
    }

    /// Names the places in the file.
    pub(crate) fn places(mut self, places: Vec<FaultPlace>) -> Self {
        self.details.places = places;
        self
    }

    /// Names the settings that the error is about.
    pub(crate) fn settings(mut self, settings: Vec<ringwise_knob::Address>) -> Self {
        self.details.settings = settings;
        self
    }

    /// Adds the command that the user can run next.
    pub fn next(mut self, command: impl Into<String>) -> Self {
        self.next = Some(command.into());
        self
    }
}

impl Fail {
    /// The text. With a width, a long message is broken between words; the next command stays whole, to be copied.
    pub(crate) fn text(&self, width: Option<usize>) -> String {
        // Lists, and lines of a file with a mark below them, are indented; they stay as they are.
        let is_laid_out = self.message.lines().any(|l| l.starts_with(' '));
        let Some(width) = width.filter(|_| !is_laid_out) else { return self.to_string() };
        let next = self.next.as_ref().map_or_else(String::new, |n| format!("\nTry: {n}"));
        let lines = self.message.lines().enumerate();
        let folded: String = lines.map(|(n, l)| hang(if n == 0 { "error: " } else { "" }, l, Some(width))).collect();
        folded.trim_end().to_string() + &next
    }
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if let Some(n) = &self.next {
            write!(f, "\nTry: {n}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fail {}

impl From<ringwise_recording::Error> for Fail {
    fn from(e: ringwise_recording::Error) -> Self {
        match e {
            ringwise_recording::Error::Io { path, source } => Self::io(path.display(), &source).file(path),
            ringwise_recording::Error::NotARecording { .. } => {
                Self::error(e.to_string()).next("ringwise watch --record FILE")
            }
            other => Self::error(other.to_string()),
        }
    }
}

impl From<ringwise_sys::Error> for Fail {
    fn from(e: ringwise_sys::Error) -> Self {
        Self::error(e.to_string()).code("io").errno(e.errno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_broken_on_a_terminal() {
        let fail = Fail::usage("one two three four five six seven").next("ringwise plan --goal forward --queues 4");
        let text = "error: one two three four\n       five six seven\nTry: ringwise plan --goal forward --queues 4";
        assert_eq!(fail.text(Some(26)), text);
        assert_eq!(fail.text(None), fail.to_string());
        // What has lines of its own keeps them.
        let lines = Fail::error("a.toml:1:1: unknown key\n  1 | ring.rx = 3, and more\n    | ^^^^");
        assert_eq!(lines.text(Some(20)), lines.to_string());
    }

    #[test]
    fn an_error_names_the_file_the_errno_and_the_next_command() {
        let e = io::Error::from_raw_os_error(2);
        let fail = Fail::io("rr.jsonl", &e).next("ringwise bench rr");
        assert_eq!(fail.to_string(), "error: rr.jsonl: ENOENT (No such file or directory)\nTry: ringwise bench rr");
        assert_eq!(io_reason(&io::Error::other("not a tar archive")), "not a tar archive");
    }
}

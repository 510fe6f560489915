//! Exit statuses, and errors that carry one.

use std::fmt;
use std::process::ExitCode;

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
    /// What happened and why, without `ringwise: ` in front.
    pub message: String,
    /// The next command, ready to copy.
    pub next: Option<String>,
}

/// [`std::result::Result`] with an error for people.
pub type Result<T> = std::result::Result<T, Fail>;

impl Fail {
    /// An error without a next command.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), next: None }
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
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(Status::Refused, message)
    }

    /// Adds the command that the user can run next.
    pub fn next(mut self, command: impl Into<String>) -> Self {
        self.next = Some(command.into());
        self
    }
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ringwise: {}", self.message)?;
        if let Some(n) = &self.next {
            write!(f, "\nTry: {n}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fail {}

impl From<ringwise_recording::Error> for Fail {
    fn from(e: ringwise_recording::Error) -> Self {
        Self::error(e.to_string())
    }
}

//! Errors of every part of the crate: a call that the kernel refused, a thread that could not be started.

use std::io;

use ringwise_sys::errno_text;

/// A failed system call. The attempted action is part of the enclosing error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SystemError {
    /// The kernel's errno.
    #[error("{}", errno_text(*.0))]
    Errno(i32),
    /// The error has no errno: a stream that ended early, a name that is no address.
    #[error("{0}")]
    Other(String),
}

impl From<io::Error> for SystemError {
    fn from(e: io::Error) -> Self {
        Self::from(&e)
    }
}

impl From<&io::Error> for SystemError {
    fn from(e: &io::Error) -> Self {
        e.raw_os_error().map_or_else(|| Self::Other(e.to_string()), Self::Errno)
    }
}

/// A thread that could not be started or ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThreadError {
    /// The kernel refused to start it.
    #[error("cannot start a thread: {0}")]
    NotStarted(SystemError),
    /// It ended without a report that it is ready.
    #[error("a {thread} ended before it was ready")]
    EndedEarly {
        /// What it is for: `load thread`, or only `thread`.
        thread: &'static str,
    },
}

impl ThreadError {
    /// The error of [`std::thread::Builder::spawn`].
    pub(crate) fn not_started(e: io::Error) -> Self {
        Self::NotStarted(e.into())
    }
}

//! What every part of the crate may meet: a call that the kernel refused, a thread that is not there.

use std::io;

use ringwise_sys::errno_text;

/// A call of the operating system that failed. Without what was tried: that is part of the error around it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SystemError {
    /// The kernel's errno.
    #[error("{}", errno_text(*.0))]
    Errno(i32),
    /// No errno came from the kernel: a stream that broke off, a name that is no address.
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

/// A thread that should work and does not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThreadError {
    /// The kernel started none.
    #[error("start a thread: {0}")]
    NotStarted(SystemError),
    /// It ended without a report that it is ready.
    #[error("a {thread} ended before it began")]
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

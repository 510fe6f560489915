//! Why there is no guard, or why the guard does not answer any more.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use ringwise_sys::io_text;

/// Why a file cannot be the program of the guard.
#[derive(Debug)]
pub enum FileFault {
    /// It cannot be copied there.
    Copy(io::Error),
    /// A directory on its path, or the file, cannot be examined.
    Unread {
        /// What was examined.
        path: PathBuf,
        /// The kernel's answer.
        error: io::Error,
    },
    /// An upgrade has removed or replaced it.
    Replaced {
        /// Why its path cannot be examined any more; `None` if another file is there now.
        error: Option<io::Error>,
    },
    /// Other users could replace the file; the text names the path and its owner.
    OthersWrite(String),
    /// Its file system may be unmounted while the guard waits.
    NotPermanent(PathBuf),
    /// The kernel refuses to execute it.
    NotExecutable {
        /// Whether its file system is mounted with `noexec`.
        noexec: bool,
        /// The kernel's answer.
        error: io::Error,
    },
    /// A test run of the file failed.
    TestFailed(ExitStatus),
    /// A test run of the file did not end in time.
    TestTooLong(Duration),
    /// The exit status of the test run could not be read.
    TestLost(io::Error),
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy(e) => f.write_str(&io_text(e)),
            Self::Unread { path, error } => write!(f, "{}: {}", path.display(), io_text(error)),
            Self::Replaced { error: Some(e) } => {
                write!(f, "it was replaced or removed since it was started ({})", io_text(e))
            }
            Self::Replaced { error: None } => f.write_str("it was replaced since it was started"),
            Self::OthersWrite(why) => f.write_str(why),
            Self::NotPermanent(path) => {
                write!(f, "{} is neither on the file system of / nor on that of /usr", path.display())
            }
            Self::NotExecutable { noexec, error } => {
                let option = if *noexec { ", which is mounted noexec" } else { "" };
                write!(f, "cannot be executed there{option}: {}", io_text(error))
            }
            Self::TestFailed(status) => write!(f, "a test run ended with {status}"),
            Self::TestTooLong(time) => {
                write!(f, "a test run did not end within {} s", time.as_secs_f32())
            }
            Self::TestLost(e) => write!(f, "the result of a test run cannot be read: {}", io_text(e)),
        }
    }
}

impl std::error::Error for FileFault {}

/// Files that were tried as the guard's program, in this order, and what is wrong with each.
#[derive(Debug)]
pub struct UnusableFiles(pub Vec<(PathBuf, FileFault)>);

impl fmt::Display for UnusableFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (path, fault)) in self.0.iter().enumerate() {
            write!(f, "{}{}: {fault}", if i > 0 { "; " } else { "" }, path.display())?;
        }
        Ok(())
    }
}

/// Why a guard was not armed, or does not answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum GuardError {
    /// The path of the state directory cannot be resolved.
    Directory {
        /// As it was given.
        path: PathBuf,
        /// The kernel's answer.
        error: io::Error,
    },
    /// No copy of its program can be executed.
    NoProgram {
        /// Each file that was tried.
        files: UnusableFiles,
        /// Why it cannot be executed from memory either.
        memory: io::Error,
    },
    /// The socket to which the guard connects cannot be created.
    Socket(io::Error),
    /// The host runs systemd, but systemd-run is not installed.
    NoSystemdRun,
    /// A program could not be started: the guard itself, or systemd-run.
    NotStarted {
        /// What was to be executed.
        program: PathBuf,
        /// The kernel's answer.
        error: io::Error,
    },
    /// The guard's first process ended without starting the second.
    Ended {
        /// Exit status of the first process.
        status: ExitStatus,
        /// What it wrote to standard error.
        words: String,
    },
    /// systemd started no service.
    SystemdRun {
        /// Exit status of systemd-run.
        status: ExitStatus,
        /// What it wrote to standard error.
        words: String,
    },
    /// accept(2) failed.
    Accept(io::Error),
    /// The guard did not connect.
    NoReport {
        /// How long ringwise waited.
        after: Duration,
        /// Connections of other users in that time; they are closed.
        others: u64,
    },
    /// systemd failed to start the guard, and then ringwise failed as well.
    BothWays {
        /// The failure of the guard that ringwise started.
        error: Box<GuardError>,
        /// The failure of the guard that systemd should have started.
        systemd: Box<GuardError>,
    },
    /// The guard connected, but did not answer.
    Mute(Box<GuardError>),
    /// The stream to the guard failed.
    Stream(io::Error),
    /// The guard sent an unexpected message.
    OtherWord {
        /// As it was received.
        found: String,
        /// The message that was expected.
        expected: &'static str,
    },
    /// The guard sent another message where it should have ended.
    NotEnded,
    /// The guard has closed its end of the stream.
    Gone,
    /// The guard is restoring the settings already.
    TakenOver,
    /// An error of an implementation of the guard outside this crate, as text.
    Other(String),
}

impl fmt::Display for GuardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { path, error } => write!(f, "{}: {}", path.display(), io_text(error)),
            Self::NoProgram { files, memory } => {
                let memory = io_text(memory);
                write!(f, "its program can be executed neither from a file ({files}) nor from memory ({memory})")
            }
            Self::Socket(e) => write!(f, "its socket cannot be created: {}", io_text(e)),
            Self::NoSystemdRun => f.write_str("systemd-run was not found"),
            Self::NotStarted { program, error } => write!(f, "{}: {}", program.display(), io_text(error)),
            Self::Ended { status, words } => write!(f, "it ended with {status}: {words}"),
            Self::SystemdRun { status, words } => write!(f, "systemd-run ended with {status}: {words}"),
            Self::Accept(e) => write!(f, "its connection could not be accepted: {}", io_text(e)),
            Self::NoReport { after, others } => {
                write!(f, "it did not report within {:.0} s", after.as_secs_f64())?;
                if *others > 0 { write!(f, " (connections of other users: {others})") } else { Ok(()) }
            }
            Self::BothWays { error, systemd } => write!(f, "{error} (systemd could not start it either: {systemd})"),
            Self::Mute(e) => write!(f, "it was started but does not answer: {e}"),
            Self::Stream(e) => f.write_str(&io_text(e)),
            Self::OtherWord { found, expected } => write!(f, "it sent \"{found}\" (expected \"{expected}\")"),
            Self::NotEnded => f.write_str("it sent another message instead of ending"),
            Self::Gone => f.write_str("it is gone"),
            Self::TakenOver => f.write_str("it has taken over the transaction"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

impl std::error::Error for GuardError {}

impl From<io::Error> for GuardError {
    fn from(e: io::Error) -> Self {
        Self::Stream(e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_that_failed_is_in_the_text() {
        let systemd = Box::new(GuardError::NoSystemdRun);
        let error = Box::new(GuardError::NoReport { after: Duration::from_secs(2), others: 3 });
        assert_eq!(
            GuardError::BothWays { error, systemd }.to_string(),
            "it did not report within 2 s (connections of other users: 3) (systemd could not start it either: \
             systemd-run was not found)"
        );
        let noexec = FileFault::NotExecutable { noexec: true, error: io::Error::from_raw_os_error(13) };
        let files = UnusableFiles(vec![
            ("/a".into(), noexec),
            ("/b".into(), FileFault::TestTooLong(Duration::from_millis(1500))),
        ]);
        assert_eq!(
            files.to_string(),
            "/a: cannot be executed there, which is mounted noexec: EACCES (Permission denied); /b: a test run \
             did not end within 1.5 s"
        );
    }
}

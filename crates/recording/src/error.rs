//! Why a recording cannot be read or written.

use std::path::{Path, PathBuf};

/// Why a recording cannot be read or written. Each variant carries the path of the recording.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The recording.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The first line that can be read is not the beginning of a recording.
    #[error("{} is not a recording of ringwise watch --record", path.display())]
    NotARecording {
        /// The file that was to be read.
        path: PathBuf,
    },
    /// The file that was to be appended to has other contents.
    #[error("{} is not a recording of ringwise watch, so nothing was appended to it", path.display())]
    NotAppended {
        /// The file; it stays as it was.
        path: PathBuf,
    },
    /// A later version of ringwise wrote the file, in a format that this one does not know.
    #[error("{} was recorded by a later version of ringwise (format {format})", path.display())]
    Later {
        /// The recording.
        path: PathBuf,
        /// Its format, from its `begin` line.
        format: u32,
    },
    /// The window before the change is missing or was broken off ([`measured::read`](crate::measured::read)).
    #[error("{} does not contain the measurement before the change", path.display())]
    NoWindow {
        /// The recording.
        path: PathBuf,
    },
    /// No two samples of the same recording follow each other, so there is no interval to show.
    #[error("the recording contains no two consecutive samples")]
    NoInterval,
}

/// [`std::result::Result`] with the [`Error`] of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error with this path, for `map_err`.
    pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> Self {
        |source| Self::Io { path: path.to_path_buf(), source }
    }
}

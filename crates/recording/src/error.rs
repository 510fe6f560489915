//! Why a recording cannot be read or written.

use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened, read or written.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: is no recording of ringwise watch (--record)", path.display())]
    NotARecording { path: PathBuf },
    /// It was to be appended to.
    #[error("{}: is no recording of ringwise watch; nothing is appended to it", path.display())]
    NotAppended { path: PathBuf },
    #[error("{}: was recorded by a later version (format {format})", path.display())]
    Later { path: PathBuf, format: u32 },
    #[error("{} holds no window before", path.display())]
    NoWindow { path: PathBuf },
    #[error("the recording holds no two samples one after the other")]
    NoInterval,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// For `map_err`.
    pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> Self {
        |source| Self::Io { path: path.to_path_buf(), source }
    }
}

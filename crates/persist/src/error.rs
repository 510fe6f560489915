//! Why nothing is kept over a reboot, or nothing is applied at this boot.

use ringwise_model::errno::EROFS;
use std::io;
use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

/// What an error means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Failed,
    /// Before anything was written.
    Refused,
    /// An earlier boot needs attention.
    Skipped,
}

/// What helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next<'a> {
    /// Install this program where it can be started at boot.
    Install(&'a Path),
    /// Use a configuration below `/etc`.
    MoveConfig,
    /// Let only root write this file or directory.
    Own(&'a Path),
    MoveAway(&'a Path),
    Unmask(&'a Path),
    /// Write the files while the image of the system is made.
    Image,
    /// Let the init of this host run the program.
    OwnInit {
        program: &'a Path,
        config: &'a Path,
    },
    /// Read what that boot did, then allow another try.
    ReadHistory,
}

/// The text is complete: errno and the kernel's words are part of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}: {error}", .path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{}: {error}", .path.display())]
    MarkDamaged { path: PathBuf, error: serde_json::Error },
    #[error("{} is of a newer version", .0.display())]
    MarkNewer(PathBuf),
    #[error("{0}")]
    Mark(serde_json::Error),
    #[error("{0}")]
    Sys(#[from] ringwise_sys::Error),
    #[error("the next boot could not know that this one applied: {0}")]
    NoMark(Box<Error>),
    #[error(
        "skipped: an earlier boot ended within five minutes of tuning and was not shut down in order; nothing was touched"
    )]
    EarlierBootDied,
    /// The mark does not allow an application. `error`: why it cannot be read or written.
    #[error("skipped: {0}; nothing was touched")]
    MarkUnreadable(Box<Error>),
    #[error("another ringwise apply --boot holds {} ({holder}); gave up after {seconds} s, nothing was touched", .path.display())]
    Locked { path: PathBuf, holder: String, seconds: u64 },

    #[error("systemd does not run here: nothing would start the units of ringwise persist")]
    NoSystemd { program: PathBuf, config: PathBuf },
    #[error("this program is {}, and {why}: a boot could not start it", .program.display())]
    ProgramAbsent { program: PathBuf, why: String },
    #[error("{why}: whoever can change this program would be root at the next boot")]
    ProgramOfOthers { program: PathBuf, why: String },
    #[error("the configuration is {}, and {why}: a boot could not read it", .config.display())]
    ConfigAbsent { config: PathBuf, why: String },
    #[error("{why}: whoever can change {what} {} decides what root does at boot", .path.display())]
    OfOthers { what: &'static str, path: PathBuf, why: String },
    #[error("{} is there, and ringwise persist did not write it", .0.display())]
    Foreign(PathBuf),
    #[error("{} is there, and is no link", .0.display())]
    NoLink(PathBuf),
    #[error("{} leads to {}, which is not ours", .link.display(), .to.display())]
    LinkElsewhere { link: PathBuf, to: PathBuf },
    #[error("{} is no file, perhaps a masked unit; nothing was written", .0.display())]
    Masked(PathBuf),
    /// `stays`: files that could not be restored.
    #[error("{error}{}; nothing was changed", .stays.concat())]
    NotWritten { error: ringwise_sys::Error, stays: Vec<String> },
}

impl Error {
    pub fn class(&self) -> Class {
        match self {
            Self::EarlierBootDied | Self::MarkUnreadable(_) => Class::Skipped,
            Self::NoMark(_)
            | Self::Locked { .. }
            | Self::NoSystemd { .. }
            | Self::ProgramAbsent { .. }
            | Self::ProgramOfOthers { .. }
            | Self::ConfigAbsent { .. }
            | Self::OfOthers { .. }
            | Self::Foreign(_)
            | Self::NoLink(_)
            | Self::LinkElsewhere { .. } => Class::Refused,
            _ => Class::Failed,
        }
    }

    /// What helps, where that is known.
    pub fn next(&self) -> Option<Next<'_>> {
        Some(match self {
            Self::EarlierBootDied | Self::MarkUnreadable(_) => Next::ReadHistory,
            Self::NoSystemd { program, config } => Next::OwnInit { program, config },
            Self::ProgramAbsent { program, .. } | Self::ProgramOfOthers { program, .. } => Next::Install(program),
            Self::ConfigAbsent { .. } => Next::MoveConfig,
            Self::OfOthers { path, .. } => Next::Own(path),
            Self::Foreign(path) => Next::MoveAway(path),
            Self::Masked(path) => Next::Unmask(path),
            Self::NotWritten { error, .. } if error.errno == Some(EROFS) => Next::Image,
            _ => return None,
        })
    }
}

/// For `map_err`: a file and what the kernel answered.
pub(crate) fn file(path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let path = path.to_path_buf();
    move |error| Error::File { path: path.clone(), error }
}

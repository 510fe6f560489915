//! Why settings cannot be applied at every boot, or are not applied at this boot.

use std::io;
use std::path::{Path, PathBuf};

use ringwise_model::JsonFault;
use ringwise_model::errno::EROFS;
use ringwise_sys::io_text;

/// [`std::result::Result`] with the [`Error`] of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What an error means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A file cannot be read or written, or the host does not answer.
    Failed,
    /// Refused before anything was written.
    Refused,
    /// An earlier boot needs attention.
    Skipped,
}

/// What the user can do about an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next<'a> {
    /// Install this program where it can be started at boot.
    Install(&'a Path),
    /// Use a configuration below `/etc`.
    MoveConfig,
    /// Let only root write this file or directory.
    Own(&'a Path),
    /// Move this file away: `persist` would overwrite it and did not write it.
    MoveAway(&'a Path),
    /// Unmask this unit.
    Unmask(&'a Path),
    /// Write the files while the image of the system is made.
    Image,
    /// Let the init of this host run the program.
    OwnInit {
        /// The program, as its absolute path.
        program: &'a Path,
        /// The configuration that it is to apply.
        config: &'a Path,
    },
    /// Read what that boot did, then allow another try.
    ReadHistory,
}

/// Why settings cannot be kept or applied. The text is complete: errno and the kernel's words are part of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read, written or removed.
    #[error("{}: {}", .path.display(), io_text(.error))]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The mark of an earlier boot is not valid JSON.
    #[error("{} is damaged: {error}", .path.display())]
    MarkDamaged {
        /// The mark, `boot.json` in the state directory.
        path: PathBuf,
        /// What is wrong with it.
        error: JsonFault,
    },
    /// A later version of ringwise wrote the mark in this file.
    #[error("{} was written by a newer version of ringwise", .0.display())]
    MarkNewer(PathBuf),
    /// The mark could not be turned into JSON.
    #[error("{0}")]
    Mark(serde_json::Error),
    /// A request to the system failed.
    #[error("{0}")]
    Sys(#[from] ringwise_sys::Error),
    /// The mark cannot be read or written. Without it a boot that dies would be repeated, so nothing is applied.
    #[error("cannot record that this boot applies the configuration, which the next boot must know: {0}")]
    NoMark(Box<Error>),
    #[error(
        "skipped: an earlier boot ended within five minutes of tuning, without an orderly shutdown; nothing was touched"
    )]
    /// An earlier boot applied and did not survive it: neither five minutes nor an orderly shutdown were recorded.
    EarlierBootDied,
    /// The mark does not allow an application. `error`: why it cannot be read or written.
    #[error("skipped: {0}; nothing was touched")]
    MarkUnreadable(Box<Error>),
    /// Another `apply --boot` runs and did not end in time.
    #[error("another ringwise apply --boot holds {} ({holder}); gave up after {seconds} s, nothing was touched", .path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// What the other process noted about itself, its command line for example.
        holder: String,
        /// How long this process waited.
        seconds: u64,
    },

    /// The running init is not systemd.
    #[error("systemd does not run on this host, so the units of ringwise persist would never be started")]
    NoSystemd {
        /// The program that should be started at boot.
        program: PathBuf,
        /// The configuration that it should apply.
        config: PathBuf,
    },
    /// The program is in a place that is empty or not mounted early at boot.
    #[error("this program is {}, and {why}: it could not be started at boot", .program.display())]
    ProgramAbsent {
        /// The program, as its absolute path.
        program: PathBuf,
        /// Which place this is, and why nothing is there.
        why: String,
    },
    /// Other users than root can change the program.
    #[error("{why}: users who can change this program would run code as root at the next boot")]
    ProgramOfOthers {
        /// The program, as its absolute path.
        program: PathBuf,
        /// Which file or directory can be changed, and by whom.
        why: String,
    },
    /// The configuration is in a place that is empty or not mounted early at boot.
    #[error("the configuration is {}, and {why}: it could not be read at boot", .config.display())]
    ConfigAbsent {
        /// The configuration file.
        config: PathBuf,
        /// Which place this is, and why nothing is there.
        why: String,
    },
    /// Other users than root can change the configuration or the state directory.
    #[error("{why}: users who can change {what} {} would control what root does at boot", .path.display())]
    OfOthers {
        /// Which of the two, as a noun with its article.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Which file or directory can be changed, and by whom.
        why: String,
    },
    /// A file of this name exists, and `persist` did not write it.
    #[error("{} exists, but was not written by ringwise persist", .0.display())]
    Foreign(PathBuf),
    /// A file is where the link that enables the service belongs.
    #[error("{} exists, but is not a symbolic link", .0.display())]
    NoLink(PathBuf),
    /// The link that enables the service points to another file.
    #[error("{} links to {}, which is not the unit of ringwise persist", .link.display(), .to.display())]
    LinkElsewhere {
        /// The link.
        link: PathBuf,
        /// Where it points to.
        to: PathBuf,
    },
    /// Something other than a regular file is at the place of a unit; a masked unit is a link to `/dev/null`.
    #[error("{} is not a regular file, perhaps a masked unit; nothing was written", .0.display())]
    Masked(PathBuf),
    /// `stays`: files that could not be restored.
    #[error("{error}; {}", left_behind(.stays))]
    NotWritten {
        /// The write that failed.
        error: ringwise_sys::Error,
        /// One text each.
        stays: Vec<String>,
    },
}

impl Error {
    /// How the caller treats the error, for example which exit status it has.
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

    /// Stable name of the error, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::File { .. } | Self::Mark(_) | Self::Sys(_) | Self::NotWritten { .. } => "io",
            Self::MarkDamaged { .. } => "mark_damaged",
            Self::MarkNewer(_) => "mark_newer",
            Self::NoMark(_) => "mark_unwritable",
            Self::MarkUnreadable(_) => "mark_unreadable",
            Self::EarlierBootDied => "earlier_boot_died",
            Self::Locked { .. } => "locked",
            Self::NoSystemd { .. } => "no_systemd",
            Self::ProgramAbsent { .. } => "program_not_at_boot",
            Self::ProgramOfOthers { .. } => "program_of_others",
            Self::ConfigAbsent { .. } => "config_not_at_boot",
            Self::OfOthers { .. } => "file_of_others",
            Self::Foreign(_) | Self::NoLink(_) | Self::LinkElsewhere { .. } => "file_exists",
            Self::Masked(_) => "unit_masked",
        }
    }

    /// The file that the error is about.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. }
            | Self::MarkDamaged { path, .. }
            | Self::MarkNewer(path)
            | Self::Locked { path, .. }
            | Self::OfOthers { path, .. }
            | Self::Foreign(path)
            | Self::NoLink(path)
            | Self::Masked(path) => Some(path),
            Self::LinkElsewhere { link, .. } => Some(link),
            Self::ProgramAbsent { program, .. } | Self::ProgramOfOthers { program, .. } => Some(program),
            Self::ConfigAbsent { config, .. } => Some(config),
            Self::NoMark(e) | Self::MarkUnreadable(e) => e.file(),
            _ => None,
        }
    }

    /// The errno of the kernel, where there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::File { error, .. } => error.raw_os_error(),
            Self::Sys(e) | Self::NotWritten { error: e, .. } => e.errno,
            Self::NoMark(e) | Self::MarkUnreadable(e) => e.errno(),
            _ => None,
        }
    }

    /// What the user can do, where that is known.
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

/// What a failed installation leaves behind.
fn left_behind(stays: &[String]) -> String {
    if stays.is_empty() { "nothing was changed".into() } else { stays.join("; ") }
}

/// For `map_err`: names the file of an I/O error.
pub(crate) fn file(path: &Path) -> impl Fn(io::Error) -> Error + use<> {
    let path = path.to_path_buf();
    move |error| Error::File { path: path.clone(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_stay_are_named_instead_of_nothing() {
        let failed = |stays: Vec<String>| {
            let error = ringwise_sys::Error::other("write /x", "no room");
            Error::NotWritten { error, stays }.to_string()
        };
        assert!(failed(Vec::new()).ends_with("; nothing was changed"));
        let stays = "/y could not be restored (no room)";
        assert!(failed(vec![stays.into()]).ends_with(&format!("; {stays}")));
    }
}

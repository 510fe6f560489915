//! What is wrong with what is wanted.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use ringwise_model::Goal;

pub type Result<T> = std::result::Result<T, Error>;

/// What an error means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The command line is wrong.
    Usage,
    Failed,
    /// A reviewed plan does not fit this host now.
    Refused,
}

/// Lists are lines for the user, one fault each.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("--goal auto works with plan, apply, check and persist only; name the goal here")]
    AutoGoal,
    /// Faults of `--set`.
    #[error("{}", .0.join("\n"))]
    Set(Vec<String>),
    #[error("--goal {goal} contradicts {}, which says {}", .path.display(), .others.join(", "))]
    OtherGoal { goal: Goal, path: PathBuf, others: Vec<String> },
    /// What flags and file lay down contradicts itself.
    #[error("{}", .0.join("\n"))]
    Contradictions(Vec<String>),
    #[error("{}: {}", .path.display(), kernel_words(.error))]
    Config { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Faults(#[from] ringwise_config::Faults),
    /// Entries that are ambiguous on this host, or name nothing.
    #[error("{}", .0.join("\n"))]
    Unbound(Vec<String>),
    /// Programs and units that the configuration names for their flows, and that do not listen.
    #[error("{}", .0.join("\n"))]
    FlowsUnknown(Vec<String>),
    #[error("{0}")]
    Plan(ringwise_plan::Refusal),

    #[error("cannot write JSON: {0}")]
    Json(serde_json::Error),
    #[error("{0}")]
    Sys(#[from] ringwise_sys::Error),
    #[error("{}: {error}", .path.display())]
    PlanUnreadable { path: PathBuf, error: io::Error },
    #[error("{0}")]
    NotAPlan(String),
    #[error("{} {why}", .path.display())]
    PlanRefused { path: PathBuf, why: Misfit },
    /// Seconds since 1970.
    #[error("{} expired at {end} s since 1970; now it is {now}", .path.display())]
    PlanExpired { path: PathBuf, end: u64, now: u64 },
}

/// Why a reviewed plan is not for this host as it is now. The text follows the name of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Its digest is not that of its content.
    #[error(
        "was edited after it was written; what is applied must be what ringwise has planned (change the flags of ringwise \
         plan instead)"
    )]
    Edited,
    /// Names of the hosts with their machine ids.
    #[error("was made for another machine: {was}, this one is {is}")]
    OtherMachine { was: String, is: String },
    /// Boot ids. `host`: `None` where its name is unknown.
    #[error(
        "was made for another boot of {}: {was}, now it is {is}; what it found is gone",
        .host.as_deref().unwrap_or("a host of unknown name")
    )]
    OtherBoot { host: Option<String>, was: String, is: String },
    #[error("does not name the boot it was made for: its host was read without a boot id")]
    BootNotRecorded,
    /// `id`: why the boot id of this host is unknown.
    #[error("cannot be checked against this boot: its id is {id}")]
    BootUnknown { id: String },
}

impl Error {
    pub fn class(&self) -> Class {
        match self {
            Self::AutoGoal | Self::Set(_) | Self::OtherGoal { .. } | Self::Contradictions(_) => Class::Usage,
            Self::PlanRefused { .. } | Self::PlanExpired { .. } => Class::Refused,
            _ => Class::Failed,
        }
    }
}

fn kernel_words(e: &io::Error) -> String {
    match e.raw_os_error() {
        Some(errno) => ringwise_sys::errno_text(errno),
        None if e.kind() == ErrorKind::InvalidData => "it is no text in UTF-8".into(),
        None => e.to_string(),
    }
}

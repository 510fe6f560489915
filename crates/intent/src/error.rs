//! Why what is requested, or a plan file, cannot be used.

use std::io;
use std::path::{Path, PathBuf};

use ringwise_model::Goal;
use ringwise_sys::io_text;

use crate::missing::UnsteeredFlow;

/// [`std::result::Result`] with the [`Error`] of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What an error means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The command line is wrong.
    Usage,
    /// A file, the host or the configuration cannot be read or used.
    Failed,
    /// A reviewed plan does not fit this host now.
    Refused,
}

/// Why what is requested cannot be used. Lists of texts have one fault each; together they are the message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `--goal auto` was given to a command that needs the goal itself.
    #[error("--goal auto works only with plan, apply, check and persist: name the goal")]
    AutoGoal,
    /// Faults of `--set`.
    #[error("{}", .0.join("\n"))]
    Set(Vec<String>),
    /// `--goal` names another goal than the configuration file.
    #[error("--goal {goal} contradicts {}, which has {}", .path.display(), .others.join(", "))]
    OtherGoal {
        /// The goal of `--goal`.
        goal: Goal,
        /// The configuration file.
        path: PathBuf,
        /// The goals in the file, one text for each place.
        others: Vec<String>,
    },
    /// Flags and file contradict each other.
    #[error("{}", .0.join("\n"))]
    Contradictions(Vec<String>),
    /// The configuration file cannot be read.
    #[error("{}: {}", .path.display(), io_text(.error))]
    Config {
        /// The configuration file.
        path: PathBuf,
        /// The system's reason; `InvalidData`: the file is not UTF-8.
        error: io::Error,
    },
    /// The faults of the configuration file, each with its line.
    #[error(transparent)]
    Faults(#[from] ringwise_config::Faults),
    /// Entries that are ambiguous on this host, or match nothing.
    #[error("{}", .0.join("\n"))]
    Unbound(Vec<String>),
    /// Programs and units that the configuration names for their flows, and that do not listen.
    #[error("{}", lines(.0))]
    FlowsUnknown(Vec<UnsteeredFlow>),
    /// The goal cannot be planned on this host.
    #[error("{0}")]
    Plan(ringwise_plan::Refusal),

    /// A plan could not be turned into JSON.
    #[error("cannot write JSON: {0}")]
    Json(serde_json::Error),
    /// The host could not be read, or a file not be written.
    #[error("{0}")]
    Sys(#[from] ringwise_sys::Error),
    /// A plan file cannot be read.
    #[error("{}: {}", .path.display(), io_text(.error))]
    PlanUnreadable {
        /// The plan file.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// The file is not a plan that this version can read. The text names the file and the reason.
    #[error("{0}")]
    NotAPlan(String),
    /// The plan was made for another host or boot, or was edited.
    #[error("{} {why}", .path.display())]
    PlanRefused {
        /// The plan file.
        path: PathBuf,
        /// Why it is refused.
        why: PlanMismatch,
    },
    /// Seconds since 1970.
    #[error("{} expired at {end} s since 1970; now it is {now}", .path.display())]
    PlanExpired {
        /// The plan file.
        path: PathBuf,
        /// When it expired.
        end: u64,
        /// The time of the check.
        now: u64,
    },
}

/// Why a reviewed plan is not for this host as it is now. The text follows the name of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanMismatch {
    /// The digest in the file does not match its content.
    #[error(
        "was edited after it was written; only unchanged plans are applied (to change the plan, run ringwise plan with \
         other options)"
    )]
    Edited,
    /// Names of the hosts with their machine ids.
    #[error("was made for another machine: {was}; this machine is {is}")]
    OtherMachine {
        /// The host the plan was made for.
        was: String,
        /// This host.
        is: String,
    },
    /// Boot ids. `host`: `None` where its name is unknown.
    #[error(
        "was made for another boot of {}: {was}; this boot is {is}, so the values that the plan found are gone",
        .host.as_deref().unwrap_or("a host of unknown name")
    )]
    OtherBoot {
        /// Name of the host.
        host: Option<String>,
        /// The boot the plan was made for.
        was: String,
        /// The current boot.
        is: String,
    },
    /// The plan has no boot id, so it is not known whether its findings are still true.
    #[error("does not name the boot that it was made for, because the boot id of the host could not be read")]
    BootNotRecorded,
    /// `id`: why the boot id of this host is unknown.
    #[error("cannot be checked against this boot: the boot id is {id}")]
    BootUnknown {
        /// `absent`, or `unknown:` followed by the reason.
        id: String,
    },
}

impl Error {
    /// How the caller treats the error, for example which exit status it has.
    pub fn class(&self) -> Class {
        match self {
            Self::AutoGoal | Self::Set(_) | Self::OtherGoal { .. } | Self::Contradictions(_) => Class::Usage,
            Self::PlanRefused { .. } | Self::PlanExpired { .. } => Class::Refused,
            _ => Class::Failed,
        }
    }

    /// One text for each fault.
    pub fn faults(&self) -> Vec<String> {
        match self {
            Self::Contradictions(list) | Self::Unbound(list) => list.clone(),
            Self::FlowsUnknown(list) => list.iter().map(ToString::to_string).collect(),
            Self::Plan(ringwise_plan::Refusal::WrongWishes { wrong }) => {
                wrong.iter().map(ToString::to_string).collect()
            }
            other => vec![other.to_string()],
        }
    }

    /// The same without what differs between hosts on which the same is wrong.
    pub fn faults_without_host(&self) -> Vec<String> {
        match self {
            Self::Plan(refusal @ ringwise_plan::Refusal::UnknownDevice { .. }) => vec![refusal.without_host()],
            _ => self.faults(),
        }
    }

    /// Stable name of the error, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::AutoGoal => "auto_goal",
            Self::Set(_) => "set_invalid",
            Self::OtherGoal { .. } => "other_goal",
            Self::Contradictions(_) => "contradiction",
            Self::Config { .. } => "config_unreadable",
            Self::Faults(_) => "config_invalid",
            Self::Unbound(_) => "config_unbound",
            Self::FlowsUnknown(_) => "flows_unknown",
            Self::Plan(refusal) => refusal.kind(),
            Self::Json(_) => "error",
            Self::Sys(_) => "io",
            Self::PlanUnreadable { .. } => "plan_unreadable",
            Self::NotAPlan(_) => "not_a_plan",
            Self::PlanRefused { why, .. } => match why {
                PlanMismatch::Edited => "plan_edited",
                PlanMismatch::OtherMachine { .. } => "plan_other_machine",
                PlanMismatch::OtherBoot { .. } | PlanMismatch::BootNotRecorded | PlanMismatch::BootUnknown { .. } => {
                    "plan_other_boot"
                }
            },
            Self::PlanExpired { .. } => "plan_expired",
        }
    }

    /// The file that the error is about.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::OtherGoal { path, .. }
            | Self::Config { path, .. }
            | Self::PlanUnreadable { path, .. }
            | Self::PlanRefused { path, .. }
            | Self::PlanExpired { path, .. } => Some(path),
            Self::Faults(faults) => Some(Path::new(&faults.file)),
            _ => None,
        }
    }

    /// The errno of the kernel, where there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Config { error, .. } | Self::PlanUnreadable { error, .. } => error.raw_os_error(),
            Self::Sys(e) => e.errno,
            _ => None,
        }
    }
}

fn lines(all: &[UnsteeredFlow]) -> String {
    all.iter().map(UnsteeredFlow::to_string).collect::<Vec<_>>().join("\n")
}

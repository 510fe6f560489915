//! Options of `ringwise check`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ringwise_check::Severity;

use ringwise_model::GoalChoice;

/// Formats of `check`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum CheckOutput {
    #[default]
    Text,
    Json,
    /// SARIF 2.1.0, one run for each host
    Sarif,
    /// JUnit XML, one suite for each host
    Junit,
    /// A page for a browser about captures (--from)
    Html,
}

/// The lowest severity for which `check` exits with status 3.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum FailOn {
    #[default]
    Error,
    Warning,
    Info,
    Never,
}

/// Arguments of `check`.
#[derive(Debug, Clone, Default, Args)]
pub struct CheckArgs {
    /// Interfaces [default: those with queues of their own and a link]
    #[arg(value_name = "DEV")]
    pub devs: Vec<String>,
    /// Check captures, sos reports or trees of proc/ and sys/ instead of this host. Several, or a directory of captures, are
    /// compared, and the exit status is 1 if one of them cannot be read
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Input")]
    pub from: Vec<PathBuf>,
    /// Read only files in /proc and /sys, and none that takes the network lock or interrupts other CPUs
    #[arg(long, conflicts_with = "from", help_heading = "Input")]
    pub passive: bool,
    /// Time between the two samples that rules about rates need
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, default_value = "1s", conflicts_with = "from", help_heading = "Input")]
    pub r#for: Duration,
    /// Check against this goal; auto chooses by the role of the host [default: the applied one, else that of the configuration file, else balanced]
    #[arg(long, value_name = "GOAL", help_heading = "Judgement")]
    pub goal: Option<GoalChoice>,
    /// Only print the full page of this rule, or of several
    #[arg(long, value_name = "ID", num_args = 1.., conflicts_with_all = ["capabilities", "accept"], help_heading = "Output")]
    pub explain: Vec<String>,
    /// Only list what the kernel and the interfaces of this host support
    #[arg(long, conflicts_with = "accept", help_heading = "Output")]
    pub capabilities: bool,
    /// Exit with status 3 for findings of this severity and above
    #[arg(long, value_name = "SEVERITY", value_enum, default_value_t, help_heading = "Judgement")]
    pub fail_on: FailOn,
    /// File of accepted findings; none: no file [default: /etc/ringwise/accepted.json if it exists]
    #[arg(long, value_name = "FILE", help_heading = "Accepted findings")]
    pub baseline: Option<PathBuf>,
    /// Accept findings of this rule on DEV, or everywhere: record it in the file of --baseline
    #[arg(long, value_name = "ID", requires_all = ["reason", "until"], help_heading = "Accepted findings")]
    pub accept: Option<String>,
    /// Reason for accepting it
    #[arg(long, value_name = "TEXT", requires = "accept", help_heading = "Accepted findings")]
    pub reason: Option<String>,
    /// Last day of the acceptance, e.g. 2027-03-01
    #[arg(long, value_name = "DAY", requires = "accept", help_heading = "Accepted findings")]
    pub until: Option<String>,
    /// With several captures: list every host and every shared finding
    #[arg(long, help_heading = "Output")]
    pub all: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub output: CheckOutput,
}

impl FailOn {
    /// `None`: findings never change the exit status.
    pub fn severity(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warning => Some(Severity::Warning),
            Self::Info => Some(Severity::Info),
            Self::Never => None,
        }
    }
}

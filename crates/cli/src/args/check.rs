//! Flags of `ringwise check`.

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
    /// SARIF 2.1.0, a run a host
    Sarif,
    /// JUnit XML, a suite a host
    Junit,
}

/// The severity from which on `check` exits with status 3.
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
    /// Interfaces; none: those with queues of their own and a link
    #[arg(value_name = "DEV")]
    pub devs: Vec<String>,
    /// Captures, sos reports or trees of proc/ and sys/, instead of this host; several are compared, and the status is
    /// 1 when one of them cannot be read
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub from: Vec<PathBuf>,
    /// Read files of proc and sys only, and none that takes the network lock or interrupts other CPUs
    #[arg(long, conflicts_with = "from")]
    pub passive: bool,
    /// Between the two samples that rules about rates need
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, default_value = "1s", conflicts_with = "from")]
    pub r#for: Duration,
    /// What the host is for [default: as applied, else as the configuration file says, else balanced]; auto chooses by the host's role
    #[arg(long, value_name = "GOAL")]
    pub goal: Option<GoalChoice>,
    /// The full page of a rule, and nothing else
    #[arg(long, value_name = "ID", conflicts_with_all = ["capabilities", "accept"])]
    pub explain: Option<String>,
    /// What kernel and interfaces here can do, and nothing else
    #[arg(long, conflicts_with = "accept")]
    pub capabilities: bool,
    /// Status 3 from this severity upwards
    #[arg(long, value_name = "SEVERITY", value_enum, default_value_t)]
    pub fail_on: FailOn,
    /// Findings that were accepted [default: /etc/ringwise/accepted.json where there is one; none: no file]
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write into that file that findings of this rule are known (on DEV, or wherever)
    #[arg(long, value_name = "ID", requires_all = ["reason", "until"])]
    pub accept: Option<String>,
    /// Why it is accepted
    #[arg(long, value_name = "TEXT", requires = "accept")]
    pub reason: Option<String>,
    /// Last day on which it is (2027-03-01)
    #[arg(long, value_name = "DAY", requires = "accept")]
    pub until: Option<String>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: CheckOutput,
}

impl FailOn {
    /// `None`: whatever is found.
    pub fn severity(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warning => Some(Severity::Warning),
            Self::Info => Some(Severity::Info),
            Self::Never => None,
        }
    }
}

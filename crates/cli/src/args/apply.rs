//! Options of `apply`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Common, IntentArgs, Output, Write};

/// Formats of `apply`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum ApplyOutput {
    #[default]
    Text,
    Json,
    /// With -n: unified diff of "path = value" lines
    Diff,
}

impl From<Output> for ApplyOutput {
    fn from(output: Output) -> Self {
        match output {
            Output::Text => Self::Text,
            Output::Json => Self::Json,
        }
    }
}

/// Arguments of `apply`.
#[derive(Debug, Clone, Default, Args)]
pub struct ApplyArgs {
    /// Interfaces [default: those with a driver, queues of their own and a link], or one FILE of plan --out, which is
    /// applied exactly or refused
    #[arg(value_name = "DEV|FILE", conflicts_with = "plan")]
    pub devs: Vec<String>,
    /// What is requested: a goal, its options and single settings.
    #[command(flatten)]
    pub intent: IntentArgs,
    /// Apply this file of plan --out, like FILE
    #[arg(long, value_name = "FILE", conflicts_with_all =
        ["goal", "cpus", "reserve", "exclude_cpus", "queues", "smt", "far_node", "allow_disruption", "pair_as_article", "latency_queues", "strict", "take_over",
         "sample", "config", "set", "override_config"], help_heading = "Request")]
    pub plan: Option<PathBuf>,
    /// Allow changes that interrupt the control path (ssh session, default route, network mounts); needs --confirm
    #[arg(long, help_heading = "Safety")]
    pub force: bool,
    /// Record this reason in the history
    #[arg(long, value_name = "TEXT", help_heading = "Record")]
    pub reason: Option<String>,
    /// Put everything back unless ringwise confirm runs within TIME (60s, 5m) after the verification, even if this
    /// session ends. The time runs on while the host is suspended, and setting the clock does not change it
    #[arg(long, value_name = "TIME", value_parser = super::duration, help_heading = "Safety")]
    pub confirm: Option<std::time::Duration>,
    /// Run CMD (sh -c) after applying: exit status 0 confirms, any other restores everything. Implies --confirm 60s
    /// unless --confirm is given
    #[arg(long, value_name = "CMD", help_heading = "Safety")]
    pub health: Option<String>,
    /// Watch the transmit queues for up to TIME, and restore everything if one stalls; the guard process then watches
    /// for three times as long. 0: do not watch
    #[arg(long, value_name = "TIME", value_parser = super::duration_or_none, default_value = "4s", help_heading = "Safety")]
    pub watch: std::time::Duration,
    /// Count for TIME before the transaction, and again after it (on trial: after ringwise confirm); ringwise report
    /// shows the difference
    #[arg(long, value_name = "TIME", value_parser = super::duration, conflicts_with_all = ["boot", "dry_run"], help_heading = "Record")]
    pub measure: Option<std::time::Duration>,
    /// Apply as ringwise.service does: one run at a time, and not if an earlier boot died soon after it
    #[arg(long, hide = true, requires = "yes", conflicts_with_all = ["plan", "confirm", "health", "dry_run", "sample"])]
    pub boot: bool,
    /// Wait for the link of this interface before applying
    #[arg(long, hide = true, value_name = "DEV", requires = "boot")]
    pub late: Option<String>,
    /// `--yes` and `--dry-run`.
    #[command(flatten)]
    pub write: Write,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub output: ApplyOutput,
}

impl ApplyArgs {
    /// Whether JSON is requested, by `--output json` or by `--json`.
    pub fn json(&self, common: &Common) -> bool {
        common.json || self.output == ApplyOutput::Json
    }
}

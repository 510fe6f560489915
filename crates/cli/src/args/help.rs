//! Options of `ringwise help`.

use clap::Args;

use super::SourceArgs;

/// Arguments of `help`.
#[derive(Debug, Clone, Default, Args)]
pub struct HelpArgs {
    /// A command, a setting, a goal, a word of the output, an exit status or a rule
    #[arg(value_name = "TOPIC")]
    pub topic: Vec<String>,
    /// List all topics
    #[arg(long, conflicts_with = "topic", help_heading = "Output")]
    pub topics: bool,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: SourceArgs,
}

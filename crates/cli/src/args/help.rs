//! Options of `ringwise help`.

use clap::Args;

use super::From;

/// Examples, exit statuses, and what reading the present values disturbs.
pub(crate) const AFTER: &str = "\
Examples:
  ringwise help rps            a setting: meaning, how to set it, values
  ringwise help far            a word of the output
  ringwise help forward        a goal
  ringwise help A03            a rule of ringwise check
  ringwise help rules          all rules
  ringwise help apply          the same as ringwise apply --help
  ringwise help --topics       all topics

Exit status:
  0  shown
  1  the file of --from cannot be read; 2 wrong command line, or no such topic

What it disturbs:
  Only the topic of a setting reads the host: what status reads, and the files
  or requests of that setting. With --passive it sends no request.";

/// Arguments of `help`.
#[derive(Debug, Clone, Default, Args)]
pub struct HelpArgs {
    /// A command, a setting, a goal, a word of the output, an exit status or a rule
    #[arg(value_name = "TOPIC")]
    pub topic: Vec<String>,
    /// List all topics
    #[arg(long, conflicts_with = "topic")]
    pub topics: bool,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: From,
}

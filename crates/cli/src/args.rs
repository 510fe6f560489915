//! The one table of commands and flags; help, man pages and completions come from it.

mod bench;
mod check;
mod duration;
mod explain;
mod export;
mod files;
mod help;
mod intent;
#[cfg(test)]
mod printed;
mod value;
mod watch;

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use ringwise_model::CpuSet;

use crate::disturbs;
pub use bench::{
    Among, BenchArgs, BenchCmd, BenchReportArgs, DriveArg, DriverArg, Level, PeerArgs, ProtocolArg, Recipe, RunArgs,
    SearchArgs, SearchFor, ServeArgs, StateArgs,
};
pub use check::{CheckArgs, CheckOutput, FailOn};
pub(crate) use duration::{duration, duration_or_none};
pub use explain::ExplainArgs;
pub use export::{ExportArgs, ReportArgs};
pub use files::{
    CaptureArgs, ConfigArgs, ConfigCmd, ConfigExport, ConfigFile, ConfigInit, ConfigShow, ExportAs, PersistArgs,
    SupportArgs,
};
pub use help::HelpArgs;
pub use intent::{FarNodeArg, IntentArgs, SmtArg};
pub(crate) use value::InvalidValue;
pub use watch::WatchArgs;

/// Tunes multi-queue network interfaces and proves that it helped
#[derive(Debug, Parser)]
#[command(name = "ringwise", version, disable_help_subcommand = true, max_term_width = 100)]
pub struct Cli {
    /// Flags that are valid with every command.
    #[command(flatten)]
    pub common: Common,
    /// Flags of `status`, which runs where no command is given.
    #[command(flatten)]
    pub status: StatusArgs,
    /// `None`: `status`.
    #[command(subcommand)]
    pub command: Option<Cmd>,
}

/// Flags that hold everywhere.
#[derive(Debug, Clone, Default, Args)]
pub struct Common {
    /// JSON on stdout, one document (short for -o json)
    #[arg(short, long, global = true, display_order = 900)]
    pub json: bool,
    /// Nothing on stderr but errors
    #[arg(short, long, global = true, display_order = 901)]
    pub quiet: bool,
    /// More: paths, interrupt numbers, masks; -vv for still more
    #[arg(short, long, global = true, action = clap::ArgAction::Count, display_order = 902)]
    pub verbose: u8,
    /// Colour: auto (on a terminal; NO_COLOR and TERM=dumb switch it off), always, never
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t, display_order = 903)]
    pub color: When,
    /// Marks in ASCII (automatic where the locale is not UTF-8)
    #[arg(long, global = true, display_order = 904)]
    pub ascii: bool,
    /// Times in UTC instead of local time
    #[arg(long, global = true, display_order = 905)]
    pub utc: bool,
    /// Where the record of transactions lies [default: /var/lib/ringwise]
    #[arg(long, global = true, value_name = "DIR", display_order = 906)]
    pub state_dir: Option<PathBuf>,
}

/// When colours are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum When {
    #[default]
    Auto,
    Always,
    Never,
}

/// Reading commands: the live host, or a recording of one.
#[derive(Debug, Clone, Default, Args)]
pub struct From {
    /// Read a capture, a sos report, or a directory or archive with proc/ and sys/ trees instead of this host
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Read files of proc and sys only, and none that takes the network lock or interrupts other CPUs
    #[arg(long, conflicts_with = "from")]
    pub passive: bool,
}

/// Formats of commands that print a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum Output {
    #[default]
    Text,
    Json,
}

/// `--output`, for commands with a page and one JSON document.
#[derive(Debug, Clone, Default, Args)]
pub struct Format {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: Output,
}

/// Formats of `plan`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum PlanOutput {
    #[default]
    Text,
    Json,
    /// A shell script with its undo
    Sh,
    /// Unified diff of "path = value" lines
    Diff,
}

/// All commands. The hidden ones begin with two underscores.
#[derive(Debug, Subcommand)]
pub enum Cmd {
    /// What was applied, what moved since, a line an interface
    #[command(after_long_help = disturbs::STATUS)]
    Status(StatusArgs),
    /// Where queues, interrupts and CPUs meet, as a matrix
    #[command(after_long_help = disturbs::SHOW)]
    Show(ShowArgs),
    /// What costs packets or latency here, why, and what mends it
    #[command(after_long_help = disturbs::CHECK)]
    Check(CheckArgs),
    /// Where a flow goes, or how uneven many would be
    #[command(after_long_help = disturbs::EXPLAIN)]
    Explain(ExplainArgs),
    /// What would change and why; changes nothing
    #[command(after_long_help = disturbs::PLAN)]
    Plan(PlanArgs),
    /// Do it: all of it, or put everything back
    Apply(ApplyArgs),
    /// Keep what is on trial (apply --confirm), from any session
    #[command(
        after_long_help = "Status: 0 kept, also when somebody confirmed it before; 4 too late, it is put back; 6 nothing is on trial."
    )]
    Confirm(ConfirmArgs),
    /// Does the host still match what was applied?
    #[command(after_long_help = disturbs::VERIFY)]
    Verify(VerifyArgs),
    /// Packets, losses, interrupts and CPUs, interval by interval
    #[command(after_long_help = disturbs::WATCH)]
    Watch(WatchArgs),
    /// The same for Prometheus, by HTTP or as a file
    #[command(after_long_help = disturbs::EXPORT)]
    Export(ExportArgs),
    /// Put back to before transaction ID (0: as first found)
    Rollback(RollbackArgs),
    /// Keep what somebody else has set: it is the intent now
    Adopt(AdoptArgs),
    /// Apply a configuration at every boot
    #[command(after_long_help = disturbs::PERSIST)]
    Persist(PersistArgs),
    /// The transactions of this boot and before
    History(HistoryArgs),
    /// What devices refused or ignored, and plans go round
    Learned(LearnedArgs),
    /// Counters before and after a transaction (apply --measure)
    #[command(after_long_help = disturbs::REPORT)]
    Report(ReportArgs),
    /// Finish what a killed or failed run left behind
    Recover(RecoverArgs),
    /// Load, measure, compare states; leaves the host as found
    #[command(after_long_help = disturbs::BENCH)]
    Bench(BenchArgs),
    /// Keep CPUs from sleeping deeply while a command runs
    #[command(
        after_long_help = "Status: that of CMD, 128 and the signal's number where a signal ended it; 125 hold itself failed and CMD was not started, 126 CMD cannot be run, 127 CMD was not found. Signals are passed on to CMD."
    )]
    Hold(HoldArgs),
    /// Record this host into a file for --from
    #[command(after_long_help = disturbs::CAPTURE)]
    Capture(CaptureArgs),
    /// Check, show, begin or export a configuration file
    Config(ConfigArgs),
    /// Pack what a developer needs to see, redacted, and list it
    #[command(after_long_help = disturbs::SUPPORT)]
    Support(SupportArgs),
    #[expect(missing_docs, reason = "clap would print the comment in completions and the man page")]
    #[command(name = "__man", hide = true)]
    Man {
        /// Directory to write the man pages to
        dir: PathBuf,
    },
    #[expect(missing_docs, reason = "clap would print the comment in completions and the man page")]
    #[command(name = "__guard", hide = true)]
    Guard(GuardArgs),
    #[expect(missing_docs, reason = "clap would print the comment in completions and the man page")]
    #[command(name = "__completions", hide = true)]
    Completions { shell: clap_complete::Shell },
    /// Explain a command, setting, goal, rule or word (--topics)
    #[command(after_long_help = help::AFTER)]
    Help(HelpArgs),
}

/// Arguments of `status`.
#[derive(Debug, Clone, Default, Args)]
pub struct StatusArgs {
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: From,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
    /// List software interfaces one by one too
    #[arg(long)]
    pub all: bool,
}

/// Arguments of `show`.
#[derive(Debug, Clone, Default, Args)]
pub struct ShowArgs {
    /// Interfaces; several are compared. None: one line each
    #[arg(value_name = "DEV")]
    pub devs: Vec<String>,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: From,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
    /// List software interfaces one by one too
    #[arg(long)]
    pub all: bool,
    /// Hex masks as well as CPU lists
    #[arg(long)]
    pub raw: bool,
    /// Draw DEV into an SVG file instead (- is stdout): queues, interrupts, CPUs and the lines between
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "raw", "all"])]
    pub svg: Option<PathBuf>,
}

/// Arguments of `plan`.
#[derive(Debug, Clone, Default, Args)]
pub struct PlanArgs {
    /// Interfaces; none: those with a driver, queues of their own and a link
    #[arg(value_name = "DEV")]
    pub devs: Vec<String>,
    /// What is requested: a goal, its options and single settings.
    #[command(flatten)]
    pub intent: IntentArgs,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: From,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: PlanOutput,
    /// Write the plan (JSON) to FILE, for apply FILE
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How long that file may be applied (90m, 24h, 7d, never) [default: 24h]
    #[arg(long, value_name = "TIME", value_parser = crate::cmd::expiry, requires = "out")]
    pub expires: Option<crate::cmd::Expiry>,
    /// One line a setting instead of bands
    #[arg(long)]
    pub full: bool,
    /// Status 3 when there is something to do
    #[arg(long)]
    pub exit_code: bool,
}

/// Flags of commands that write.
#[derive(Debug, Clone, Default, Args)]
pub struct Write {
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Only say what would be done
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// Arguments of `apply`.
#[derive(Debug, Clone, Default, Args)]
pub struct ApplyArgs {
    /// Interfaces (none: those with a driver, queues of their own and a link), or one FILE of plan --out: it is
    /// applied exactly, or refused
    #[arg(value_name = "DEV|FILE", conflicts_with = "plan")]
    pub devs: Vec<String>,
    /// What is requested: a goal, its options and single settings.
    #[command(flatten)]
    pub intent: IntentArgs,
    /// The same as FILE
    #[arg(long, value_name = "FILE", conflicts_with_all =
        ["goal", "cpus", "reserve", "exclude_cpus", "queues", "smt", "far_node", "allow_disruption", "pair_as_article", "latency_queues", "strict", "take_over",
         "config", "set", "override_config"])]
    pub plan: Option<PathBuf>,
    /// Interrupt the control path (ssh session, default route, network mounts) all the same; only with --confirm
    #[arg(long)]
    pub force: bool,
    /// Kept in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Put everything back unless ringwise confirm comes within this time (60s, 5m) of the end of the
    /// verification, whatever becomes of this session. Suspend counts, setting the clock does not
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration)]
    pub confirm: Option<std::time::Duration>,
    /// Run CMD (sh -c) when it is applied: status 0 confirms, anything else puts everything back; with
    /// --confirm 60s unless given
    #[arg(long, value_name = "CMD")]
    pub health: Option<String>,
    /// Watch transmit queues for up to this long, and put everything back if one stands still; the guard goes on for three
    /// times as long. 0: do not watch
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration_or_none, default_value = "4s")]
    pub watch: std::time::Duration,
    /// Count for this long before the transaction, and again after it (after ringwise confirm, where it is on
    /// trial): ringwise report tells the difference
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, conflicts_with_all = ["boot", "dry_run"])]
    pub measure: Option<std::time::Duration>,
    /// As ringwise.service does it: one at a time, and not at all if an earlier boot did not outlive it
    #[arg(long, hide = true, requires = "yes", conflicts_with_all = ["plan", "confirm", "health", "dry_run"])]
    pub boot: bool,
    /// Wait for the link of this interface first
    #[arg(long, hide = true, value_name = "DEV", requires = "boot")]
    pub late: Option<String>,
    /// `--yes` and `--dry-run`.
    #[command(flatten)]
    pub write: Write,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// Arguments of `confirm`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfirmArgs {
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// Of the process that `apply` starts beside itself.
#[derive(Debug, Clone, Default, Args)]
pub struct GuardArgs {
    #[expect(missing_docs, reason = "clap would print the comment in completions")]
    #[arg(long)]
    pub transaction: u64,
    /// Where its applier listens
    #[arg(long)]
    pub socket: Option<String>,
    /// For how long its applier may give no sign of life
    #[arg(long)]
    pub silence_ms: Option<u64>,
    /// Only start it outside of this session
    #[arg(long)]
    pub detach: bool,
    /// It was started so
    #[arg(long)]
    pub detached: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Clone, Default, Args)]
pub struct VerifyArgs {
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: From,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
    /// Also count interrupts for this long (5s, 500ms, 1m): each queue on its CPU and on no other
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, conflicts_with = "from")]
    pub r#for: Option<std::time::Duration>,
}

/// Arguments of `rollback`.
#[derive(Debug, Clone, Default, Args)]
pub struct RollbackArgs {
    /// Transaction from ringwise history; 0 is the host as first found since boot. Without it the last ones are shown
    #[arg(value_name = "ID")]
    pub id: Option<u64>,
    /// Overwrite what somebody else has changed since
    #[arg(long)]
    pub take_over: bool,
    /// Interrupt the control path (ssh session, default route, network mounts) all the same; only with --confirm
    #[arg(long)]
    pub force: bool,
    /// Undo the rollback unless ringwise confirm comes within this time (60s, 5m) of the end of the verification
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration)]
    pub confirm: Option<std::time::Duration>,
    /// Run CMD (sh -c) when it is done: status 0 confirms, anything else undoes it; with --confirm 60s unless
    /// given
    #[arg(long, value_name = "CMD")]
    pub health: Option<String>,
    /// Kept in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// `--yes` and `--dry-run`.
    #[command(flatten)]
    pub write: Write,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// Arguments of `adopt`.
#[derive(Debug, Clone, Default, Args)]
pub struct AdoptArgs {
    /// Interfaces whose settings are to stay as somebody has set them
    #[arg(value_name = "DEV", required_unless_present = "all", conflicts_with = "all")]
    pub devs: Vec<String>,
    /// Those of every interface and of the host
    #[arg(long)]
    pub all: bool,
    /// Kept in the history
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// `--yes` and `--dry-run`.
    #[command(flatten)]
    pub write: Write,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// Arguments of `history`.
#[derive(Debug, Clone, Default, Args)]
pub struct HistoryArgs {
    /// Everything that is kept about this transaction
    #[arg(value_name = "ID")]
    pub id: Option<u64>,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// Arguments of `learned`.
#[derive(Debug, Clone, Default, Args)]
pub struct LearnedArgs {
    /// Only of these interfaces (named as they were then)
    #[arg(value_name = "DEV")]
    pub devs: Vec<String>,
    /// Forget it: the next plan tries these settings again
    #[arg(long)]
    pub forget: bool,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// Arguments of `recover`.
#[derive(Debug, Clone, Default, Args)]
pub struct RecoverArgs {
    /// `--yes` and `--dry-run`.
    #[command(flatten)]
    pub write: Write,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// Arguments of `hold`.
#[derive(Debug, Clone, Default, Args)]
pub struct HoldArgs {
    /// No CPU takes longer than this to wake up, microseconds (/dev/cpu_dma_latency); 0: CPUs do not sleep, they
    /// poll
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u32).range(..=2_147_483_647))]
    pub cpu_latency: u32,
    /// The command and its arguments, after --
    #[arg(value_name = "CMD", required = true, last = true)]
    pub command: Vec<std::ffi::OsString>,
}

fn cpus(text: &str) -> Result<CpuSet, InvalidValue> {
    let set: CpuSet = text.parse().map_err(InvalidValue::CpuList)?;
    if set.is_empty() { Err(InvalidValue::NoCpu) } else { Ok(set) }
}

impl Format {
    /// Whether JSON is requested, by `--output json` or by `--json`.
    pub fn json(&self, common: &Common) -> bool {
        common.json || self.output == Output::Json
    }
}

/// Commands by what a person wants; each visible command stands in exactly one group.
pub const GROUPS: [(&str, &[&str]); 4] = [
    ("Look", &["status", "show", "check", "watch", "explain", "export", "help"]),
    ("Change", &["plan", "apply", "confirm", "rollback", "adopt", "persist", "recover", "hold"]),
    ("Prove", &["verify", "history", "learned", "report", "bench"]),
    ("Files", &["capture", "config", "support"]),
];

/// The command with its grouped first help screen.
pub fn command() -> clap::Command {
    let cmd = Cli::command();
    let mut text = String::new();
    for (group, names) in GROUPS {
        for (i, name) in names.iter().enumerate() {
            let about =
                cmd.find_subcommand(name).and_then(|c| c.get_about()).map(|s| s.to_string()).unwrap_or_default();
            text.push_str(&format!("  {:<7} {name:<9} {about}\n", if i == 0 { group } else { "" }));
        }
    }
    let template = format!(
        "{{about}}
Usage: ringwise [COMMAND] [FLAGS]      without a command: status
{text}
Everywhere: -j (JSON), -q (errors only), -v (paths, interrupt numbers), -h, -V,
  --color auto|always|never, --ascii, --utc, --state-dir DIR. Reading ones:
  --from FILE (a capture, sos report, proc/ and sys/). Writing ones: -y, -n.
Exit status: 0 fine or nothing to do, 1 error, 2 usage, 3 needs attention,
  4 failed and put back, 5 not fully put back, 6 refused. More: man ringwise
"
    );
    cmd.help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_visible_command_stands_in_one_group() {
        let cmd = Cli::command();
        for c in cmd.get_subcommands().filter(|c| !c.is_hide_set()) {
            let n = GROUPS.iter().flat_map(|(_, names)| names.iter()).filter(|n| **n == c.get_name()).count();
            assert_eq!(n, 1, "{}", c.get_name());
        }
        for name in GROUPS.iter().flat_map(|(_, names)| names.iter()) {
            assert!(cmd.find_subcommand(name).is_some(), "{name}");
        }
    }

    #[test]
    fn help_fits_one_screen_of_80_columns() {
        let help = command().render_help().to_string();
        assert!(help.lines().count() <= 31, "{} lines", help.lines().count());
        for l in help.lines() {
            assert!(l.chars().count() <= 80, "{l}");
        }
    }
}

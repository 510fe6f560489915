//! The table of commands and options. Help, man pages and completions are made from it.

mod apply;
mod bench;
mod check;
mod daemon;
mod duration;
mod explain;
mod export;
mod files;
mod help;
mod intent;
#[cfg(test)]
mod printed;
#[cfg(test)]
mod tests;
pub(crate) mod usage_error;
mod value;
mod watch;
mod workload_help;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub use apply::{ApplyArgs, ApplyOutput};
pub use bench::{
    BenchArgs, BenchCmd, BenchReportArgs, DriveArg, DriverArg, Level, PeerArgs, ProtocolArg, Recipe, RunArgs,
    SearchArgs, SearchFor, SearchSpaceArg, ServeArgs, StateArgs,
};
pub use check::{CheckArgs, CheckOutput, FailOn};
pub use daemon::{DaemonArgs, DaemonCmd, FollowArg};
pub(crate) use duration::{duration, duration_or_none};
pub use explain::ExplainArgs;
pub use export::{ExportArgs, ReportArgs};
pub use files::{
    CaptureArgs, ConfigArgs, ConfigCheck, ConfigCmd, ConfigExport, ConfigFile, ConfigImport, ConfigInit, ConfigShow,
    ExportAs, PersistArgs, SupportArgs,
};
pub use help::HelpArgs;
pub use intent::{FarNodeArg, IntentArgs, SmtArg};
pub(crate) use value::InvalidValue;
use value::{at_least, between};
pub use watch::WatchArgs;

/// Tunes multi-queue network interfaces, and measures whether it helped
#[derive(Debug, Parser)]
#[command(name = "ringwise", version, disable_help_subcommand = true, disable_help_flag = true, max_term_width = 80)]
pub struct Cli {
    /// Options that are valid with every command.
    #[command(flatten)]
    pub common: Common,
    /// Options of `status`, which runs if no command is given.
    #[command(flatten)]
    pub status: StatusArgs,
    /// `None`: run `status`.
    #[command(subcommand)]
    pub command: Option<Cmd>,
}

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Common options")]
pub struct Common {
    /// Print one JSON document on stdout (short for -o json)
    #[arg(short, long, global = true, display_order = 900)]
    pub json: bool,
    /// Print no notes, warnings or progress on stderr, only errors; pages on stdout stay
    #[arg(short, long, global = true, display_order = 901)]
    pub quiet: bool,
    /// Show more: paths, interrupt numbers, masks; -vv shows still more
    #[arg(short, long, global = true, action = clap::ArgAction::Count, display_order = 902)]
    pub verbose: u8,
    /// Use colours: auto (on a terminal; NO_COLOR and TERM=dumb switch them off), always, never
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t, display_order = 903)]
    pub color: ColourWhen,
    /// Use ASCII marks (automatic if the locale is not UTF-8)
    #[arg(long, global = true, display_order = 904)]
    pub ascii: bool,
    /// Show times in UTC instead of local time
    #[arg(long, global = true, display_order = 905)]
    pub utc: bool,
    /// Keep the record of transactions in DIR [default: /var/lib/ringwise]
    #[arg(long, global = true, value_name = "DIR", display_order = 906)]
    pub state_dir: Option<PathBuf>,
    /// Print help; -h prints the options alone
    #[arg(short, long, global = true, action = clap::ArgAction::Help, display_order = 907)]
    pub help: Option<bool>,
}

/// When colours are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum ColourWhen {
    #[default]
    Auto,
    Always,
    Never,
}

/// What reading commands read: the live host, or a recording of one.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Input")]
pub struct SourceArgs {
    /// Read a capture, a sos report, or a directory or archive with proc/ and sys/ trees instead of this host
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Read only files in /proc and /sys, and none that takes the network lock or interrupts other CPUs
    #[arg(long, conflicts_with = "from")]
    pub passive: bool,
}

/// What `plan` reads: the live host, or recordings.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Input")]
pub struct SeveralSourcesArgs {
    /// Read a capture, a sos report, or a directory or archive with proc/ and sys/ trees instead of this host. Several, or
    /// a directory of captures: hosts with the same plan are grouped, and the exit status is 1 if one of them cannot be
    /// planned
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub from: Vec<PathBuf>,
    /// Read only files in /proc and /sys, and none that takes the network lock or interrupts other CPUs
    #[arg(long, conflicts_with = "from")]
    pub passive: bool,
}

/// Formats of commands that print a page or one JSON document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum Output {
    #[default]
    Text,
    Json,
}

/// `--output`, for commands that print a page or one JSON document.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
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
    /// A shell script that can also undo its changes
    Sh,
    /// Unified diff of "path = value" lines
    Diff,
    /// A page for a browser about captures (--from)
    Html,
}

/// All commands. Names of hidden commands begin with two underscores.
#[derive(Debug, Subcommand)]
pub enum Cmd {
    /// Show what is applied and whether anything needs attention
    Status(StatusArgs),
    /// Show which CPUs serve which queues, as a matrix
    Show(ShowArgs),
    /// Find what costs packets or latency, with cause and fix
    Check(CheckArgs),
    /// Show the path of a flow, or how evenly flows spread
    Explain(ExplainArgs),
    /// Show what apply would change, and why
    Plan(PlanArgs),
    /// Tune interfaces; if a step fails, restore everything
    Apply(ApplyArgs),
    /// Keep changes that are on trial, from any session
    Confirm(ConfirmArgs),
    /// Compare the host with what was applied
    Verify(VerifyArgs),
    /// Show packets, losses, interrupts and CPUs over time
    Watch(WatchArgs),
    /// Export counters for Prometheus, by HTTP or as a file
    Export(ExportArgs),
    /// Restore the state before transaction ID (0: first found)
    Rollback(RollbackArgs),
    /// Keep manual changes: they count as applied from then on
    Adopt(AdoptArgs),
    /// Apply a configuration at every boot
    Persist(PersistArgs),
    /// Keep the layout: a service that corrects it after resets
    Daemon(DaemonArgs),
    /// List the transactions of this boot and earlier ones
    History(HistoryArgs),
    /// List what devices refused or ignored; plans avoid it
    Learned(LearnedArgs),
    /// Compare the counters before and after apply --measure
    Report(ReportArgs),
    /// Restore what a killed or failed run left changed
    Recover(RecoverArgs),
    /// Measure and compare states under load; restores the host
    Bench(BenchArgs),
    /// Keep CPUs from sleeping deeply while a command runs
    Hold(HoldArgs),
    /// Record this host into a file for --from
    Capture(CaptureArgs),
    /// Check, show, create or export a configuration file
    Config(ConfigArgs),
    /// Pack a redacted archive for a bug report, and list it
    Support(SupportArgs),
    #[expect(missing_docs, reason = "clap would print the comment in completions and the man page")]
    #[command(name = "__man", hide = true)]
    Man {
        /// Directory to write the man pages to
        dir: PathBuf,
    },
    #[expect(missing_docs, reason = "clap would print the comment in completions and the man page")]
    #[command(name = "__units", hide = true)]
    Units {
        /// Root of the package's files
        dir: PathBuf,
    },
    #[expect(missing_docs, reason = "clap would print the comment in completions and the man page")]
    #[command(name = "__in-effect", hide = true)]
    InEffect,
    #[expect(missing_docs, reason = "clap would print the comment in completions and the man page")]
    #[command(name = "__guard", hide = true)]
    Guard(GuardArgs),
    #[expect(missing_docs, reason = "clap would print the comment in completions and the man page")]
    #[command(name = "__completions", hide = true)]
    Completions { shell: clap_complete::Shell },
    /// Explain a command, setting, goal, rule or word (--topics)
    Help(HelpArgs),
}

/// Arguments of `status`.
#[derive(Debug, Clone, Default, Args)]
pub struct StatusArgs {
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: SourceArgs,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
    /// List software interfaces one by one as well
    #[arg(long, help_heading = "Output")]
    pub all: bool,
}

/// Arguments of `show`.
#[derive(Debug, Clone, Default, Args)]
pub struct ShowArgs {
    /// Interfaces; several are compared [default: one line for each interface]
    #[arg(value_name = "DEV")]
    pub devs: Vec<String>,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: SourceArgs,
    /// Compare with an earlier capture: which CPU served each queue then and now, and which lines of the page differ
    #[arg(long, value_name = "FILE", conflicts_with_all = ["svg", "all"], help_heading = "Input")]
    pub compare: Option<PathBuf>,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
    /// List software interfaces one by one as well
    #[arg(long, help_heading = "Output")]
    pub all: bool,
    /// Show hex masks as well as CPU lists
    #[arg(long, help_heading = "Output")]
    pub raw: bool,
    /// Draw queues, interrupts and CPUs of DEV into an SVG file instead (-: stdout)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "raw", "all"], help_heading = "Output")]
    pub svg: Option<PathBuf>,
}

/// Arguments of `plan`.
#[derive(Debug, Clone, Default, Args)]
pub struct PlanArgs {
    /// Interfaces [default: those with a driver, queues of their own and a link]
    #[arg(value_name = "DEV")]
    pub devs: Vec<String>,
    /// What is requested: a goal, its options and single settings.
    #[command(flatten)]
    pub intent: IntentArgs,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: SeveralSourcesArgs,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub output: PlanOutput,
    /// Write the plan (JSON) to FILE, for apply FILE
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Let the file of --out expire after TIME (90m, 24h, 7d, never) [default: 24h]
    #[arg(long, value_name = "TIME", value_parser = crate::cmd::expiry, requires = "out", help_heading = "Output")]
    pub expires: Option<crate::cmd::Expiry>,
    /// Show one line for each setting instead of groups of settings
    #[arg(long, help_heading = "Output")]
    pub full: bool,
    /// With several captures: list every group and every capture that could not be planned
    #[arg(long, help_heading = "Output")]
    pub all: bool,
    /// Exit with status 3 if there is something to do, or a requested setting is not planned
    #[arg(long, help_heading = "Output")]
    pub exit_code: bool,
}

/// Options of commands that change the host.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Run")]
pub struct Write {
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
    /// Only show what would be done
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// Arguments of `confirm`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfirmArgs {
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// Arguments of the guard process, which `apply` starts.
#[derive(Debug, Clone, Default, Args)]
pub struct GuardArgs {
    #[expect(missing_docs, reason = "clap would print the comment in completions")]
    #[arg(long, value_parser = at_least::<u64>(0))]
    pub transaction: u64,
    /// Socket on which the applying process listens
    #[arg(long)]
    pub socket: Option<String>,
    /// Take over after the applying process has been silent for this long
    #[arg(long, value_parser = at_least::<u64>(0))]
    pub silence_ms: Option<u64>,
    /// Start the guard outside of this session, and exit
    #[arg(long)]
    pub detach: bool,
    /// Set if the guard was started outside of the session
    #[arg(long)]
    pub detached: bool,
}

/// Arguments of `verify`.
#[derive(Debug, Clone, Default, Args)]
pub struct VerifyArgs {
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: SourceArgs,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
    /// Also count interrupts for TIME (5s, 500ms, 1m): each queue must interrupt its CPU and no other
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, conflicts_with = "from", help_heading = "Input")]
    pub r#for: Option<std::time::Duration>,
}

/// Arguments of `rollback`.
#[derive(Debug, Clone, Default, Args)]
pub struct RollbackArgs {
    /// Number of the transaction (ringwise history); 0: the host as first found since boot [default: show the last transactions]
    #[arg(value_name = "ID", value_parser = at_least::<u64>(0))]
    pub id: Option<u64>,
    /// Overwrite manual changes that were made since
    #[arg(long, help_heading = "Safety")]
    pub take_over: bool,
    /// Allow changes that interrupt the control path (ssh session, default route, network mounts); needs --confirm
    #[arg(long, help_heading = "Safety")]
    pub force: bool,
    /// Undo the rollback unless ringwise confirm runs within TIME (60s, 5m) after the verification
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, help_heading = "Safety")]
    pub confirm: Option<std::time::Duration>,
    /// Run CMD (sh -c) after the rollback: exit status 0 confirms, any other undoes it. Implies --confirm 60s unless
    /// --confirm is given
    #[arg(long, value_name = "CMD", help_heading = "Safety")]
    pub health: Option<String>,
    /// Record this reason in the history
    #[arg(long, value_name = "TEXT", help_heading = "Record")]
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
    /// Interfaces whose manual changes are to stay
    #[arg(value_name = "DEV", required_unless_present = "all", conflicts_with = "all")]
    pub devs: Vec<String>,
    /// Adopt the manual changes of every interface and of the host
    #[arg(long, help_heading = "Request")]
    pub all: bool,
    /// Record this reason in the history
    #[arg(long, value_name = "TEXT", help_heading = "Record")]
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
    /// Show everything that is recorded about this transaction
    #[arg(value_name = "ID", value_parser = at_least::<u64>(0))]
    pub id: Option<u64>,
    /// One line for each transaction of the service, too
    #[arg(long, help_heading = "Output")]
    pub all: bool,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// Arguments of `learned`.
#[derive(Debug, Clone, Default, Args)]
pub struct LearnedArgs {
    /// Interfaces to list, by the names that they had then [default: all]
    #[arg(value_name = "DEV")]
    pub devs: Vec<String>,
    /// Forget the listed entries: the next plan tries these settings again
    #[arg(long, help_heading = "Record")]
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
    /// Let no CPU take longer than this to wake up, in microseconds (/dev/cpu_dma_latency); 0: CPUs poll instead of
    /// sleeping
    #[arg(long, value_name = "US", value_parser = between::<u32>(0, 2_147_483_647), help_heading = "Request")]
    pub cpu_latency: u32,
    /// Command and its arguments, after --
    #[arg(value_name = "CMD", required = true, last = true)]
    pub command: Vec<OsString>,
}

impl Format {
    /// Whether JSON is requested, by `--output json` or by `--json`.
    pub fn json(&self, common: &Common) -> bool {
        common.json || self.output == Output::Json
    }
}

/// Commands by purpose; each visible command is in exactly one group.
pub const GROUPS: [(&str, &[&str]); 4] = [
    ("Look", &["status", "show", "check", "watch", "explain", "export", "help"]),
    ("Change", &["plan", "apply", "confirm", "rollback", "adopt", "persist", "daemon", "recover", "hold"]),
    ("Prove", &["verify", "history", "learned", "report", "bench"]),
    ("Files", &["capture", "config", "support"]),
];

/// The command-line parser with the grouped first help screen.
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
Usage: ringwise [COMMAND] [OPTIONS]   without a command: status; version: -V
{text}Options of all commands: -j (JSON), -q (no notes), -v (more), -h, --color WHEN,
  --ascii, --utc, --state-dir DIR. To read a recording: --from FILE, --replay.
  Of apply, rollback, adopt, persist, recover, bench: -n (show), -y (yes).
Exit status: 0 fine or nothing to do, 1 error, 2 usage, 3 needs attention,
  4 failed and restored, 5 not fully restored, 6 refused. More: help --topics
"
    );
    with_pages(
        cmd.help_template(template)
            .mut_subcommand("persist", persist_options)
            .mut_subcommand("bench", workload_help::of_each),
        "",
    )
}

/// `persist` shares its options with `plan`. Some of them have another meaning there, or none.
fn persist_options(command: clap::Command) -> clap::Command {
    const HELP: &str = "Tune for balanced, forward, rpc, stream, latency or mixed; auto chooses by the role of the \
        host (router: forward, server: rpc) [default: that of the configuration file; without a file, the goal of the \
        last apply]";
    const CONFIG: &str = "The configuration file of every boot: used as it is if it exists, otherwise written \
        [default: /etc/ringwise/ringwise.toml]";
    let command = command.mut_arg("goal", |arg| arg.help(HELP)).mut_arg("config", |arg| arg.help(CONFIG));
    let no_effect = ["sample", "override_config", "take_over", "print_config"];
    no_effect.into_iter().fold(command, |command, name| command.mut_arg(name, |arg| arg.hide(true)))
}

/// Adds examples and exit statuses to every command. A value that begins with a minus is an error of the value, which is
/// clearer than an unknown option.
fn with_pages(command: clap::Command, name: &str) -> clap::Command {
    let command = match crate::disturbs::of(name) {
        Some(page) => command.after_long_help(page.after_help()),
        None => command,
    };
    let numbers = |arg: clap::Arg| match arg.is_positional() || !arg.get_action().takes_values() {
        true => arg,
        false => arg.allow_negative_numbers(true),
    };
    command.mut_args(numbers).mut_subcommands(|sub| {
        let below = format!("{name} {}", sub.get_name());
        with_pages(sub, below.trim_start())
    })
}

/// Reads a command line. The first word is the name of the program.
pub fn parse<T: Into<OsString> + Clone>(words: impl IntoIterator<Item = T>) -> Result<Cli, clap::Error> {
    command().try_get_matches_from(words).and_then(|m| Cli::from_arg_matches(&m))
}

//! Options of commands about files: the configuration, what is applied at boot, recordings.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use ringwise_model::GoalChoice;

use super::{FollowArg, Format, IntentArgs, SourceArgs, Write};

/// Arguments of `persist`.
#[derive(Debug, Clone, Default, Args)]
pub struct PersistArgs {
    /// The requested settings, which are written to the configuration file.
    #[command(flatten)]
    pub intent: IntentArgs,
    /// Enable the service (ringwise-daemon.service), which applies at boot and keeps the settings, instead of units that
    /// apply once
    #[arg(long, help_heading = "Files")]
    pub daemon: bool,
    /// Whether the service reads the load of receive queues; off: its unit has no capabilities for that
    #[arg(long, value_name = "MODE", value_enum, default_value_t, requires = "daemon", help_heading = "Files")]
    pub follow: FollowArg,
    /// Stop applying at boot, and remove the files; the configuration file, the settings in effect and a service that
    /// runs stay
    #[arg(long, conflicts_with_all = ["goal", "config", "set", "daemon"], help_heading = "Files")]
    pub remove: bool,
    /// Write below DIR instead of /, to prepare an image
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub root: Option<PathBuf>,
    /// Record that this boot outlived the tuning
    #[arg(long, hide = true)]
    pub lived: bool,
    /// `--yes` and `--dry-run`.
    #[command(flatten)]
    pub write: Write,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// Arguments of `config`.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// The action.
    #[command(subcommand)]
    pub what: ConfigCmd,
}

/// Commands of `config`.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCmd {
    /// Report every fault of the file, without reading the host; with --from, on which captured hosts the file fits
    Check(ConfigCheck),
    /// Show the settings that the file requests on this host
    Show(ConfigShow),
    /// Print a commented file made from this host, to start with
    Init(ConfigInit),
    /// Write a file from the settings in effect and from the configuration of other programs (irqbalance, .link files,
    /// tuned, …)
    Import(ConfigImport),
    /// Translate the file for another program, and list what that cannot express
    Export(ConfigExport),
    /// Print the JSON schema of the file
    Schema,
}

/// The configuration file of `config check`, `config show` and `config export`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigFile {
    /// Configuration file [default: /etc/ringwise/ringwise.toml]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Arguments of `config check`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigCheck {
    /// The configuration file.
    #[command(flatten)]
    pub file: ConfigFile,
    /// Also compare the file with captures, sos reports, or directories or archives with proc/ and sys/ trees; a directory of
    /// captures stands for the captures in it. Column NOT SET counts settings of the file that are not set on the host, also those
    /// that would interrupt traffic; plan --config lists them, and what only the goal proposes
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Input")]
    pub from: Vec<PathBuf>,
    /// With --from: list every host and every reason
    #[arg(long, requires = "from", help_heading = "Output")]
    pub all: bool,
}

/// Arguments of `config show`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigShow {
    /// The configuration file.
    #[command(flatten)]
    pub file: ConfigFile,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: SourceArgs,
}

/// Arguments of `config init`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigInit {
    /// Write this goal into the file: balanced, forward, rpc, stream, latency or mixed; auto chooses by the role of the host
    /// [default: balanced]
    #[arg(long, value_name = "GOAL", help_heading = "Request")]
    pub goal: Option<GoalChoice>,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: SourceArgs,
}

/// Arguments of `config import`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigImport {
    /// Write this goal into the file: balanced, forward, rpc, stream, latency or mixed; auto chooses by the role of the host.
    /// Interrupts and XPS masks are imported where this goal would change them [default: balanced]
    #[arg(long, value_name = "GOAL", help_heading = "Request")]
    pub goal: Option<GoalChoice>,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: SourceArgs,
    /// Read this file of irqbalance instead of /etc/default/irqbalance and /etc/sysconfig/irqbalance
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Input")]
    pub irqbalance: Vec<PathBuf>,
    /// Read these .link files instead of those that systemd-udevd reads
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Input")]
    pub link: Vec<PathBuf>,
    /// Read these profiles of tuned, the later ones overriding the earlier ones, instead of the active profile
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Input")]
    pub tuned: Vec<PathBuf>,
    /// Read this options file of Seastar's perftune.py instead of /etc/scylla.d/perftune.yaml
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Input")]
    pub perftune: Vec<PathBuf>,
    /// Read these connection files of NetworkManager instead of those in its directories
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Input")]
    pub network_manager: Vec<PathBuf>,
    /// Read these states of nmstate instead of those in /etc/nmstate
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Input")]
    pub nmstate: Vec<PathBuf>,
    /// Write to FILE, which must not exist, instead of standard output
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Replace the file of --out if it exists
    #[arg(long, requires = "out", help_heading = "Output")]
    pub overwrite: bool,
}

/// Arguments of `config export`.
#[derive(Debug, Clone, Args)]
pub struct ConfigExport {
    /// The configuration file.
    #[command(flatten)]
    pub file: ConfigFile,
    /// Format: systemd .link files, nmstate YAML, a tuned profile, or udev rules
    #[arg(long = "as", value_name = "FORMAT", value_enum, help_heading = "Output")]
    pub format: ExportAs,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: SourceArgs,
}

/// Formats of `config export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum ExportAs {
    Link,
    Nmstate,
    Tuned,
    Udev,
}

/// Arguments of `capture`.
#[derive(Debug, Clone, Default, Args)]
pub struct CaptureArgs {
    /// File to write, which must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replace addresses, names, serial numbers and ids consistently, and remove passwords, reasons and values of
    /// command lines
    #[arg(long, help_heading = "Output")]
    pub redact: bool,
    /// Read only files in /proc and /sys, and none that takes the network lock or interrupts other CPUs
    #[arg(long, help_heading = "Input")]
    pub passive: bool,
    /// Also count packets, interrupts and losses for TIME (5s), for the rules of check that need rates
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, conflicts_with = "passive", help_heading = "Input")]
    pub r#for: Option<std::time::Duration>,
}

/// Arguments of `support`.
#[derive(Debug, Clone, Default, Args)]
pub struct SupportArgs {
    /// File to write, which must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Only list what the archive would contain
    #[arg(short = 'n', long, help_heading = "Run")]
    pub dry_run: bool,
    /// Read only files in /proc and /sys, and none that takes the network lock or interrupts other CPUs
    #[arg(long, help_heading = "Input")]
    pub passive: bool,
}

//! Commands about files: the configuration, what is kept over a reboot, recordings.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{From, IntentArgs, Write};

/// Arguments of `persist`.
#[derive(Debug, Clone, Default, Args)]
pub struct PersistArgs {
    /// What is requested; it is written to the configuration file.
    #[command(flatten)]
    pub intent: IntentArgs,
    /// Take it away again; the configuration file stays
    #[arg(long, conflicts_with_all = ["goal", "config", "set"])]
    pub remove: bool,
    /// Write below DIR instead of /, for an image
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// This boot outlived it
    #[arg(long, hide = true)]
    pub lived: bool,
    /// `--yes` and `--dry-run`.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `config`.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// What to do with the file.
    #[command(subcommand)]
    pub what: ConfigCmd,
}

/// Commands of `config`.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigCmd {
    /// Everything that is wrong with it; the host is not looked at
    Check(ConfigFile),
    /// What it means on this host
    Show(ConfigShow),
    /// A commented file from this host, to begin with
    Init(ConfigInit),
    /// What it says as another program's configuration, and what that cannot say
    Export(ConfigExport),
    /// The JSON schema of the file
    Schema,
}

/// The configuration file of `config check`, `config show` and `config export`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigFile {
    /// [default: /etc/ringwise/ringwise.toml]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Arguments of `config show`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigShow {
    /// The configuration file.
    #[command(flatten)]
    pub file: ConfigFile,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: From,
}

/// Arguments of `config init`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigInit {
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: From,
}

/// Arguments of `config export`.
#[derive(Debug, Clone, Args)]
pub struct ConfigExport {
    /// The configuration file.
    #[command(flatten)]
    pub file: ConfigFile,
    /// systemd .link files, nmstate YAML, a tuned profile, udev rules
    #[arg(long = "as", value_name = "FORMAT", value_enum)]
    pub format: ExportAs,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: From,
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
    /// File to write; it must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Replace addresses, names, serial numbers and ids consistently, and remove passwords, reasons and values of command
    /// lines
    #[arg(long)]
    pub redact: bool,
    /// Read files of proc and sys only, and none that takes the network lock or interrupts other CPUs
    #[arg(long)]
    pub passive: bool,
    /// Count packets, interrupts and losses for this long as well (5s), for the rules of check about rates
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, conflicts_with = "passive")]
    pub r#for: Option<std::time::Duration>,
}

/// Arguments of `support`.
#[derive(Debug, Clone, Default, Args)]
pub struct SupportArgs {
    /// File to write; it must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Only list what would go in
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Read files of proc and sys only, and none that takes the network lock or interrupts other CPUs
    #[arg(long)]
    pub passive: bool,
}

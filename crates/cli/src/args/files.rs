//! Commands about files: the configuration, what is kept over a reboot, recordings.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{From, IntentArgs, Write};

#[derive(Debug, Clone, Default, Args)]
pub struct PersistArgs {
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
    #[command(flatten)]
    pub write: Write,
}

#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub what: ConfigCmd,
}

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

#[derive(Debug, Clone, Default, Args)]
pub struct ConfigFile {
    /// [default: /etc/ringwise/ringwise.toml]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Args)]
pub struct ConfigShow {
    #[command(flatten)]
    pub file: ConfigFile,
    #[command(flatten)]
    pub from: From,
}

#[derive(Debug, Clone, Default, Args)]
pub struct ConfigInit {
    #[command(flatten)]
    pub from: From,
}

#[derive(Debug, Clone, Args)]
pub struct ConfigExport {
    #[command(flatten)]
    pub file: ConfigFile,
    /// systemd .link files, nmstate YAML, a tuned profile, udev rules
    #[arg(long = "as", value_name = "FORMAT", value_enum)]
    pub format: ExportAs,
    #[command(flatten)]
    pub from: From,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportAs {
    Link,
    Nmstate,
    Tuned,
    Udev,
}

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

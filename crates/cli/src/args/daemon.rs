//! Arguments of `daemon`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `daemon`.
#[derive(Debug, Clone, Default, Args)]
pub struct DaemonArgs {
    /// Apply this configuration file once in a boot, unless a person has applied or rolled back something in this boot; none:
    /// only keep what was applied [default: /etc/ringwise/ringwise.toml, if it exists]
    #[arg(long, value_name = "FILE", help_heading = "Request")]
    pub config: Option<PathBuf>,
    /// Whether to read the load of receive queues
    #[arg(long, value_name = "MODE", value_enum, default_value_t, help_heading = "Request")]
    pub follow: FollowArg,
    /// Change the RSS table, the CPUs of interrupts with XPS, the RPS mask of a single queue and the groups of queues of this
    /// interface (name or pattern) as the load requires, in addition to those of act_on_load in the file; repeat the option
    /// for several
    #[arg(long, value_name = "DEV", value_parser = NonEmptyStringValueParser::new(), help_heading = "Request")]
    pub act: Vec<String>,
    /// What to ask of the service that runs.
    #[command(subcommand)]
    pub command: Option<DaemonCmd>,
}

/// What the service does about the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum FollowArg {
    /// Read it, and report what would be better; act only on interfaces of act_on_load in the file, or of --act
    #[default]
    Observe,
    /// Do not read it, and do not act because of it
    Off,
}

/// Requests to the service that runs.
#[derive(Debug, Clone, Subcommand)]
pub enum DaemonCmd {
    /// Let the service change nothing on an interface, or on the whole host; what is in effect stays
    Pause {
        /// The interface [default: the whole host]
        #[arg(value_name = "DEV")]
        dev: Option<String>,
    },
    /// End pauses, also those that the service chose itself
    Resume {
        /// The interface [default: everything]
        #[arg(value_name = "DEV")]
        dev: Option<String>,
    },
    /// End the service; settings stay in effect
    Stop {
        /// Restore every setting as first found since boot
        #[arg(long, help_heading = "Request")]
        restore: bool,
    },
}

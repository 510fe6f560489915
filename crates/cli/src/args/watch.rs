//! Options of `ringwise watch`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::value::{at_least, between};
use super::{Format, InvalidValue};

/// Arguments of `watch`.
#[derive(Debug, Clone, Args)]
pub struct WatchArgs {
    /// Interfaces [default: those with queues of their own]
    #[arg(value_name = "DEV")]
    pub devs: Vec<String>,
    /// Print one line per interface and interval (automatic if standard output is not a terminal)
    #[arg(long, help_heading = "Output")]
    pub plain: bool,
    /// Print one line per queue
    #[arg(long, help_heading = "Output")]
    pub queues: bool,
    /// Print one page with interfaces, queues and CPUs after one interval, and exit
    #[arg(long, conflicts_with_all = ["plain", "queues"], help_heading = "Output")]
    pub once: bool,
    /// Show the heaviest flows of each receive queue of one interface, from sampled packet headers; needs CAP_NET_RAW
    #[arg(long, conflicts_with_all = ["queues", "record", "replay"], help_heading = "Flows")]
    pub per_flow: bool,
    /// Number of flows to show per queue
    #[arg(long, value_name = "N", requires = "per_flow", default_value_t = 5, value_parser = at_least::<usize>(0), help_heading = "Flows")]
    pub top: usize,
    /// Look at one packet in N [default: as many as cost little]
    #[arg(long, value_name = "N", requires = "per_flow", value_parser = between::<u32>(1, 1 << 20), help_heading = "Flows")]
    pub sample: Option<u32>,
    /// Time between samples (500ms, 1s, 1m)
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, default_value = "1s", help_heading = "Sampling")]
    pub interval: Duration,
    /// Exit after N intervals
    #[arg(long, value_name = "N", value_parser = at_least::<u64>(1), help_heading = "Sampling")]
    pub count: Option<u64>,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
    /// Append the samples to FILE
    #[arg(long, value_name = "FILE", conflicts_with = "replay", help_heading = "Recording")]
    pub record: Option<PathBuf>,
    /// Show the recording in FILE instead of this host
    #[arg(long, value_name = "FILE", help_heading = "Recording")]
    pub replay: Option<PathBuf>,
    /// Start this long after the first sample of the recording
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, requires = "replay", help_heading = "Recording")]
    pub seek: Option<Duration>,
    /// Replay N times as fast as recorded, on the full screen (0.5, 10)
    #[arg(long, value_name = "N", value_parser = speed, requires = "replay", help_heading = "Recording")]
    pub speed: Option<f64>,
}

fn speed(text: &str) -> Result<f64, InvalidValue> {
    let n = text.parse::<f64>().ok().filter(|n| (1.0 / 64.0..=1024.0).contains(n));
    n.ok_or_else(|| InvalidValue::form(text, "a number from 0.015625 to 1024"))
}

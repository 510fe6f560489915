//! Options of `ringwise export` and `ringwise report`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::value::{at_least, socket_address};
use super::{Format, InvalidValue};

/// Arguments of `export`.
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// Interfaces [default: those with queues of their own]
    #[arg(value_name = "DEV")]
    pub devs: Vec<String>,
    /// Serve http://ADDR/metrics without authentication; port 0: any free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9787", value_parser = socket_address, help_heading = "Output")]
    pub listen: SocketAddr,
    /// Write DIR/ringwise.prom atomically (textfile collector of node_exporter) and exit, instead of serving
    #[arg(long, value_name = "DIR", conflicts_with = "listen", help_heading = "Output")]
    pub textfile: Option<PathBuf>,
    /// With --textfile: keep running, and write the file again every TIME (5s, 1m)
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, requires = "textfile", help_heading = "Output")]
    pub interval: Option<Duration>,
    /// Export a recording of ringwise watch --record instead of this host, one sample per page
    #[arg(long, value_name = "FILE", conflicts_with = "devs", help_heading = "Input")]
    pub replay: Option<PathBuf>,
    /// Limit of series per page; ringwise_series_left_out counts the omitted ones
    #[arg(long, value_name = "N", value_parser = at_least::<u32>(200), default_value_t = 10_000, help_heading = "Cost")]
    pub max_series: u32,
    /// Compare the host with what was applied again after TIME (30s, 5m)
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, default_value = "1m", help_heading = "Cost")]
    pub verify_every: Duration,
    /// Check the host again after TIME (5m, 1h); never: export no findings
    #[arg(long, value_name = "TIME", value_parser = every, default_value = "5m", help_heading = "Cost")]
    pub check_every: Duration,
}

/// Zero: never.
fn every(text: &str) -> Result<Duration, InvalidValue> {
    if text == "never" { Ok(Duration::ZERO) } else { crate::args::duration(text) }
}

/// Arguments of `report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Transaction that was applied with --measure; ringwise history lists transactions
    #[arg(long, value_name = "ID", value_parser = at_least::<u64>(0), help_heading = "Input")]
    pub since: u64,
    /// Write an HTML page in one file instead (-: stdout)
    #[arg(long, value_name = "FILE", conflicts_with = "output", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

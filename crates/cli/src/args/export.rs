//! Flags of `ringwise export` and `ringwise report`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Format, InvalidValue};

/// Arguments of `export`.
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// Interfaces; none: those with queues of their own
    #[arg(value_name = "DEV")]
    pub devs: Vec<String>,
    /// Serve http://ADDR/metrics to whoever can connect; port 0: any that is free
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9787")]
    pub listen: SocketAddr,
    /// Write DIR/ringwise.prom instead, whole or not at all (node_exporter's textfile collector), and end
    #[arg(long, value_name = "DIR", conflicts_with = "listen")]
    pub textfile: Option<PathBuf>,
    /// With --textfile: write it again and again (5s, 1m)
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, requires = "textfile")]
    pub interval: Option<Duration>,
    /// Tell what a recording of ringwise watch --record holds, a sample a page, instead of this host
    #[arg(long, value_name = "FILE", conflicts_with = "devs")]
    pub replay: Option<PathBuf>,
    /// Series of one page; what is left out is told by ringwise_series_left_out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(200..), default_value_t = 10_000)]
    pub max_series: u32,
    /// How old the comparison with what was applied may be (30s, 5m)
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, default_value = "1m")]
    pub verify_every: Duration,
    /// How old the findings of ringwise check may be (5m, 1h); never: they are left out
    #[arg(long, value_name = "TIME", value_parser = every, default_value = "5m")]
    pub check_every: Duration,
}

/// Zero: never.
fn every(text: &str) -> Result<Duration, InvalidValue> {
    if text == "never" { Ok(Duration::ZERO) } else { crate::args::duration(text) }
}

/// Arguments of `report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Transaction that was applied with --measure; ringwise history lists them
    #[arg(long, value_name = "ID")]
    pub since: u64,
    /// Write a page for browsers, in one file, instead (- is stdout)
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub html: Option<PathBuf>,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

//! Options of `ringwise explain`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::value::{at_least, between};
use super::{Format, InvalidValue, SourceArgs};

/// Arguments of `explain`.
#[derive(Debug, Clone, Default, Args)]
pub struct ExplainArgs {
    /// One flow, and the interface that receives it [default: by the routes]. A flow is
    /// SOURCE:PORT-DESTINATION:PORT/PROTOCOL, e.g. 10.0.0.1:1234-10.0.0.2:80/tcp. Without :PORT, or with :*, it stands for every
    /// port; /frag behind it for fragments. - reads from stdin: flows, or lines of ss, conntrack -L or watch --per-flow -j
    #[arg(value_name = "FLOW|DEV")]
    pub words: Vec<String>,
    /// Explain the flows of a pcap or pcapng file
    #[arg(long, value_name = "FILE", group = "many", help_heading = "Flows")]
    pub pcap: Option<PathBuf>,
    /// Explain the connections of this host (sock_diag), weighted by the packets that TCP has received
    #[arg(long, group = "many", help_heading = "Flows")]
    pub sockets: bool,
    /// Explain the flows of connection tracking (/proc/net/nf_conntrack), with packets where it counts them
    #[arg(long, group = "many", help_heading = "Flows")]
    pub conntrack: bool,
    /// Explain the heaviest flows that arrive now, as watch --per-flow shows them, and whether each arrives on the
    /// predicted queue
    #[arg(long, group = "many", value_name = "TIME", num_args = 0..=1, default_missing_value = "10s", value_parser = crate::args::duration, conflicts_with = "from", help_heading = "Flows")]
    pub per_flow: Option<Duration>,
    /// Generate flows: count=10000,zipf=1.0 and, separated by commas, packets=N src=10.0.0.0/8 dst=192.0.2.1
    /// sport=1024-65535 dport=443 proto=udp seed=1
    #[arg(long, value_name = "WORDS", group = "many", help_heading = "Flows")]
    pub synthetic: Option<String>,
    /// Answer as if this were set: rss.table="equal 4", rss.key=HEX, rss.fields.udp4=sdfn, channels.combined=4 and so
    /// on, as in --set without the interface, or a FILE of plan --out; repeatable
    #[arg(long, value_name = "KEY=VALUE|FILE", help_heading = "Assumptions")]
    pub what_if: Vec<String>,
    /// Assume that the packets carry this outermost VLAN tag, which rules may match
    #[arg(long, value_name = "ID", value_parser = between::<u16>(0, 4094), help_heading = "Assumptions")]
    pub vlan: Option<u16>,
    /// Assume that the flow arrives on this receive queue, whatever the device would choose, and show what follows
    #[arg(long, value_name = "QUEUE", value_parser = at_least::<u32>(0), conflicts_with_all = ["many", "balance", "observe"], help_heading = "Assumptions")]
    pub if_queue: Option<u32>,
    /// Propose the fewest table entries to move until the fullest queue has at most RATIO times the mean
    #[arg(long, value_name = "RATIO", num_args = 0..=1, default_missing_value = "1.05", value_parser = ratio, help_heading = "Analysis")]
    pub balance: Option<f64>,
    /// Print one line for each flow: flow, queue, interrupt, CPU, node
    #[arg(long, conflicts_with_all = ["balance", "svg", "observe"], help_heading = "Output")]
    pub plain: bool,
    /// Observe for TIME (e.g. 10s) where packets are really processed, and show it beside the prediction
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, conflicts_with_all = ["from", "many", "balance"], help_heading = "Analysis")]
    pub observe: Option<Duration>,
    /// Also draw the path of the flow into an SVG file (-: only the drawing, on stdout), with --observe, the counts below its stations
    #[arg(long, value_name = "FILE", conflicts_with = "many", help_heading = "Output")]
    pub svg: Option<PathBuf>,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: SourceArgs,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

fn ratio(text: &str) -> Result<f64, InvalidValue> {
    let r = text.parse().ok().filter(|r: &f64| (1.0..=100.0).contains(r));
    r.ok_or_else(|| InvalidValue::form(text, "a ratio of the fullest queue to the mean, e.g. 1.05"))
}

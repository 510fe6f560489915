//! Flags of `ringwise explain`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{Format, From, InvalidValue};

/// Arguments of `explain`.
#[derive(Debug, Clone, Default, Args)]
pub struct ExplainArgs {
    /// One flow, SOURCE:PORT-DESTINATION:PORT/PROTOCOL as 10.0.0.1:1234-10.0.0.2:80/tcp (a port left open: all of
    /// them; /frag behind it: pieces of packets), or - for flows, lines of ss, conntrack -L or watch --per-flow -j on
    /// stdin; then the interface it comes in by [default: as routes have it]
    #[arg(value_name = "FLOW|DEV")]
    pub words: Vec<String>,
    /// Flows of a pcap or pcapng file
    #[arg(long, value_name = "FILE", group = "many")]
    pub pcap: Option<PathBuf>,
    /// Flows of this host's connections (sock_diag), with the packets that TCP has received
    #[arg(long, group = "many")]
    pub sockets: bool,
    /// Flows that connection tracking knows (/proc/net/nf_conntrack), with its packets where it counts them
    #[arg(long, group = "many")]
    pub conntrack: bool,
    /// The heaviest flows that come in now, as watch --per-flow sees them; also whether each comes by the queue that
    /// is predicted
    #[arg(long, group = "many", value_name = "TIME", num_args = 0..=1, default_missing_value = "10s", value_parser = crate::args::duration, conflicts_with = "from")]
    pub per_flow: Option<Duration>,
    /// Made-up flows: count=10000,zipf=1.0 and, with commas between them, packets=N src=10.0.0.0/8 dst=192.0.2.1
    /// sport=1024-65535 dport=443 proto=udp seed=1
    #[arg(long, value_name = "WORDS", group = "many")]
    pub synthetic: Option<String>,
    /// As if this were set: rss.table="equal 4", rss.key=HEX, rss.fields.udp4=sdfn, channels.combined=4 and so on,
    /// as in --set without the interface, or a FILE of plan --out; repeatable
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    pub what_if: Vec<String>,
    /// The packets carry this VLAN tag (the outermost), which rules may ask for
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(0..4095))]
    pub vlan: Option<u16>,
    /// As if the flow came by this receive queue, whatever the device would do: what lies behind it
    #[arg(long, value_name = "QUEUE", conflicts_with_all = ["many", "balance", "observe"])]
    pub if_queue: Option<u32>,
    /// The fewest entries of the table to move until the fullest queue has at most RATIO of the mean
    #[arg(long, value_name = "RATIO", num_args = 0..=1, default_missing_value = "1.05", value_parser = ratio)]
    pub balance: Option<f64>,
    /// One line a flow: flow, queue, interrupt, CPU, node
    #[arg(long, conflicts_with_all = ["balance", "svg", "observe"])]
    pub plain: bool,
    /// Look for this long (10s) where packets are really taken, beside the prediction
    #[arg(long, value_name = "TIME", value_parser = crate::args::duration, conflicts_with_all = ["from", "many", "balance", "svg"])]
    pub observe: Option<Duration>,
    /// Draw the way of the flow into an SVG file as well (- is stdout, instead)
    #[arg(long, value_name = "FILE", conflicts_with = "many")]
    pub svg: Option<PathBuf>,
    /// `--from` and `--passive`.
    #[command(flatten)]
    pub from: From,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

fn ratio(text: &str) -> Result<f64, InvalidValue> {
    let r = text.parse().ok().filter(|r: &f64| (1.0..=100.0).contains(r));
    r.ok_or_else(|| InvalidValue::form(text, "ratio of the fullest queue to the mean (right would be e.g. 1.05)"))
}

//! Flags of `ringwise bench`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use ringwise_bench::limits::Net;
use ringwise_model::CpuSet;

use super::{Format, InvalidValue, Write};

/// Arguments of `bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// Which load, report or server.
    #[command(subcommand)]
    pub what: BenchCmd,
}

/// Commands of `bench`.
#[derive(Debug, Clone, Subcommand)]
pub enum BenchCmd {
    /// Request and response, one at a time: latency
    Rr(Box<RunArgs>),
    /// Several requests on the way for each connection: throughput in both directions
    Burst(Box<RunArgs>),
    /// Both at once, a group of threads each
    Mixed(Box<RunArgs>),
    /// Datagrams or streams one way
    Stream(Box<RunArgs>),
    /// One receiver on the queue's own CPU, its sibling, its cache, its node, another node
    Receive(Box<RunArgs>),
    /// Packets through this host
    Forward(Box<RunArgs>),
    /// Find queues, rings, moderation and placement for a workload, within a time
    Search(Box<SearchArgs>),
    /// Be the other end: answer, load and count for the host that asks
    Serve(ServeArgs),
    /// Tables, figures and verdicts of what was measured
    Report(BenchReportArgs),
}

/// Transport protocols of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum ProtocolArg {
    #[default]
    Tcp,
    Udp,
}

/// Programs that can make the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum DriverArg {
    #[default]
    BuiltIn,
    Netperf,
    Iperf3,
}

/// Which end makes the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DriveArg {
    /// The peer loads, this host answers
    #[default]
    Peer,
    /// This host loads, the peer answers
    Here,
}

/// Address patterns of the load of `forward`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Recipe {
    /// Random sources over a /8 and destinations over a /24
    #[default]
    Random,
    /// Sources in turn, each frame four times, CPUs kept awake; the rules that lead them to queues are a state's
    Turn,
}

/// Arguments of a load.
#[derive(Debug, Clone, Default, Args)]
pub struct RunArgs {
    /// Interfaces under test; the first has the address that is loaded
    #[arg(value_name = "DEV")]
    pub devs: Vec<String>,
    /// The states that are compared.
    #[command(flatten)]
    pub states: StateArgs,
    /// The other end.
    #[command(flatten)]
    pub peer: PeerArgs,
    /// The load.
    #[command(flatten)]
    pub load: LoadArgs,
    /// The load of `forward`.
    #[command(flatten)]
    pub forward: ForwardArgs,
    /// Number, length and order of trials.
    #[command(flatten)]
    pub design: DesignArgs,
    /// Where results are written.
    #[command(flatten)]
    pub keep: KeepArgs,
    /// Interrupt the control path (ssh session, default route, network mounts) all the same; each state is on trial
    #[arg(long, help_heading = "Run")]
    pub force: bool,
    /// `--yes` and `--dry-run`.
    #[command(flatten, next_help_heading = "Run")]
    pub write: Write,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// What is compared. The host as found comes first and is what the others are compared with.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "States")]
pub struct StateArgs {
    /// A state and the flags of plan that make it, from the host as found: 'bulk=--set eth0.coalesce.rx-usecs=62',
    /// 'tuned=--goal forward --allow-disruption', 'file=--config x.toml'; repeatable
    #[arg(long = "state", value_name = "NAME=FLAGS")]
    pub states: Vec<String>,
    /// The first state is this one instead of the host as found
    #[arg(long, value_name = "NAME=FLAGS")]
    pub base: Option<String>,
    /// A state for each value of a key of --set: eth0.coalesce.rx-usecs=0,10,50; or queues=1,2,4
    #[arg(long, value_name = "KEY=VALUES")]
    pub sweep: Option<String>,
    /// A state for each goal
    #[arg(long, value_name = "GOALS", value_delimiter = ',')]
    pub goals: Vec<ringwise_model::Goal>,
}

/// The other end of the load, and how it is reached.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Peer")]
pub struct PeerArgs {
    /// ringwise bench serve on the other host: ADDRESS:PORT of the control connection
    #[arg(long, value_name = "ADDR:PORT", group = "other_end")]
    pub peer: Option<String>,
    /// Start it there by ssh; ringwise must be in its PATH
    #[arg(long, value_name = "HOST", group = "other_end")]
    pub ssh: Option<String>,
    /// The other end is a network namespace of this host (as ip netns has it); over a veth it is not a NIC that is measured
    #[arg(long, value_name = "NAME", group = "other_end")]
    pub netns: Option<String>,
    /// File with the words that serve --secret-file wants
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Our address on the test network [default: the first of DEV]
    #[arg(long, value_name = "ADDR")]
    pub address: Option<IpAddr>,
    /// Its address on the test network, with --drive here
    #[arg(long, value_name = "ADDR")]
    pub peer_address: Option<IpAddr>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Payload bytes (64,256,1k,64k) [default: rr 64 to 1k, burst and mixed 64 to 64k, forward 1000,500,250,100,50,20]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = bytes)]
    pub size: Vec<u32>,
    /// Load threads; several: an axis
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with = "level", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Vec<u32>,
    /// light, medium, heavy: a quarter, one, two threads for each core here [default: medium]
    #[arg(long, value_name = "LEVELS", value_delimiter = ',')]
    pub level: Vec<Level>,
    /// Latency threads to throughput threads: 1/2:1/2,2/3:1/3,1/3:2/3,1:0,0:1 [default: all of these]
    #[arg(long, value_name = "MIXES", value_delimiter = ',')]
    pub mix: Vec<String>,
    /// Connections, or source ports; several: an axis
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub flows: Vec<u32>,
    /// Zipf's exponent over the flows; several: an axis
    #[arg(long, value_name = "S", value_delimiter = ',', value_parser = skew)]
    pub skew: Vec<f64>,
    /// Offered a second, all threads together, at intended times (k and M are understood); without it the next one
    /// goes when one is done; several: an axis
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = rate)]
    pub rate: Vec<f64>,
    #[arg(long, value_name = "WHICH", value_enum)]
    pub protocol: Option<ProtocolArg>,
    /// Requests on the way for each connection of burst and mixed
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=1024))]
    pub burst: u32,
    /// CPUs of the threads here [default: all that ringwise may use]
    #[arg(long, value_name = "LIST", value_parser = super::cpus)]
    pub cpus: Option<CpuSet>,
    /// CPUs of the threads at the peer [default: all of it]
    #[arg(long, value_name = "LIST", value_parser = super::cpus)]
    pub peer_cpus: Option<CpuSet>,
    /// Who loads; netperf and iperf3 where they are installed at both ends
    #[arg(long, value_name = "PROGRAM", value_enum, default_value_t)]
    pub driver: DriverArg,
    #[arg(long, value_name = "WHO", value_enum, default_value_t)]
    pub drive: DriveArg,
    /// Weight of latency in the score of mixed
    #[arg(long, value_name = "W", default_value_t = 0.5, value_parser = weight)]
    pub weight: f64,
    /// The answering end waits so long: to prove the harness on a known delay
    #[arg(long, value_name = "US", default_value_t = 0, hide = true)]
    pub delay_us: u32,
    /// Only in this state, by its name
    #[arg(long, value_name = "NAME", hide = true)]
    pub delay_in: Option<String>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Forward")]
pub struct ForwardArgs {
    /// Ports here by which packets come in
    #[arg(long = "in", value_name = "DEVS", value_delimiter = ',')]
    pub into: Vec<String>,
    /// Port here by which they go out
    #[arg(long, value_name = "DEV")]
    pub out: Option<String>,
    /// The peer's ports, one for each of --in, in the same order
    #[arg(long = "gen", value_name = "DEVS", value_delimiter = ',')]
    pub generators: Vec<String>,
    /// The peer's port that is reached by --out
    #[arg(long, value_name = "DEV")]
    pub sink: Option<String>,
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    pub recipe: Recipe,
    /// With --recipe turn: rules lead the sources to the queues in turn, in every state; the first one has goal balanced then
    #[arg(long)]
    pub lead: bool,
    /// Source addresses [default: 10.0.0.0/8]
    #[arg(long, value_name = "NET")]
    pub sources: Option<String>,
    /// Destination addresses, routed to --out by the host under test
    #[arg(long, value_name = "NET")]
    pub destinations: Option<String>,
    /// Search the highest rate without loss and the highest with 0.5 %, in each state
    #[arg(long)]
    pub find_rate: bool,
    /// In ports that are loaded at once; several: an axis
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=64))]
    pub interfaces: Vec<u32>,
    /// Routes that are added to the main table while it is measured (unreachable ones of 198.19.0.0/16); several: an axis
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub routes: Vec<u32>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Design")]
pub struct DesignArgs {
    /// Blocks: in each, every state is measured once at every point, in random order
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub pairs: u32,
    /// Blocks before them, of the first state against itself
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub calibrate: u32,
    /// Measured each time
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = crate::args::duration)]
    pub trial: Duration,
    /// Loaded before that and not counted
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = crate::args::duration)]
    pub warm: Duration,
    /// Closer than this counts as equivalent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent)]
    pub within: f64,
    /// A change of this size must be found 80 times of 100: refused where the pairs cannot, by the calibration
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub detect: Option<f64>,
    /// Of the order and of the resampling [default: from the clock]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Results")]
pub struct KeepArgs {
    /// Results as JSON lines, as they come [default: bench/DATE.jsonl in the state directory]
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// The report with figures, one file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The capture of this host that belongs to the results [default: beside them, .capture.tar; none: no capture]
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// For the reader of the report
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

/// Arguments of `bench search`.
#[derive(Debug, Clone, Default, Args)]
pub struct SearchArgs {
    /// For which workload: rr, burst or stream
    #[arg(long, value_name = "WORKLOAD", value_enum, default_value_t)]
    pub workload: SearchFor,
    /// What is searched [default: all]
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub among: Vec<Among>,
    /// All of it, the last comparison included
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = crate::args::duration)]
    pub budget: Duration,
    /// Also what interrupts traffic: queues and rings
    #[arg(long)]
    pub allow_disruption: bool,
    /// Write the configuration that was found to a file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// The load with which candidates are compared.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Workloads of `bench search`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum SearchFor {
    #[default]
    Rr,
    Burst,
    Stream,
    Forward,
}

/// What `bench search` may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Among {
    /// Goals
    Placement,
    /// Microseconds between interrupts
    Moderation,
    /// Their number
    Queues,
    /// Their size
    Rings,
}

/// How much load there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum Level {
    Light,
    Medium,
    Heavy,
}

/// Arguments of `bench serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// Listen here for the control connection; never on all addresses. With port 0 the kernel chooses one, and the
    /// address is printed on stdout
    #[arg(long, value_name = "ADDR:PORT", required_unless_present = "stdio")]
    pub listen: Option<SocketAddr>,
    /// The control connection is stdin and stdout (what --ssh starts)
    #[arg(long, conflicts_with = "listen")]
    pub stdio: bool,
    /// Work in this network namespace
    #[arg(long, value_name = "NAME")]
    pub netns: Option<String>,
    /// Only for those who know the words in this file; needed for every address that other hosts reach
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// This address or network may be loaded too, besides the one that the control connection comes from
    #[arg(long, value_name = "ADDR[/LEN]", value_parser = Net::parse, conflicts_with = "stdio")]
    pub allow_target: Vec<Net>,
    /// The kernel's packet generator may send on this interface
    #[arg(long, value_name = "DEV", conflicts_with = "stdio")]
    pub allow_pktgen: Vec<String>,
}

/// Arguments of `bench report`.
#[derive(Debug, Clone, Default, Args)]
pub struct BenchReportArgs {
    /// Results; several are compared as far as they were measured under the same conditions
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// One file with tables and figures
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Each figure as a file
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Weight of latency in the score [default: as it was measured with]
    #[arg(long, value_name = "W", value_parser = weight)]
    pub weight: Option<f64>,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// `64`, `1k`, `64k`.
fn bytes(text: &str) -> Result<u32, InvalidValue> {
    let bad = || InvalidValue::form(text, "size between 1 and 1M bytes (right would be e.g. 64 or 1k)");
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(d) => (d, 1024),
        None => match text.strip_suffix('M') {
            Some(d) => (d, 1 << 20),
            None => (text, 1),
        },
    };
    let n: u32 = digits.parse().map_err(|_| bad())?;
    n.checked_mul(factor).filter(|n| (1..=1 << 20).contains(n)).ok_or_else(bad)
}

/// `20000`, `20k`, `1.5M`.
fn rate(text: &str) -> Result<f64, InvalidValue> {
    let (digits, factor) = match text.strip_suffix('k') {
        Some(d) => (d, 1e3),
        None => match text.strip_suffix('M') {
            Some(d) => (d, 1e6),
            None => (text, 1.0),
        },
    };
    let n = digits.parse::<f64>().ok().map(|n| n * factor).filter(|n| (1.0..=1e9).contains(n));
    n.ok_or_else(|| InvalidValue::form(text, "rate between 1 and 1000M a second (right would be e.g. 20k)"))
}

fn skew(text: &str) -> Result<f64, InvalidValue> {
    let s = text.parse().ok().filter(|s: &f64| (0.0..=3.0).contains(s));
    s.ok_or_else(|| InvalidValue::form(text, "exponent between 0 and 3"))
}

fn weight(text: &str) -> Result<f64, InvalidValue> {
    let w = text.parse().ok().filter(|w: &f64| (0.0..=1.0).contains(w));
    w.ok_or_else(|| InvalidValue::form(text, "weight between 0 (throughput alone) and 1 (latency alone)"))
}

fn percent(text: &str) -> Result<f64, InvalidValue> {
    let p = text.trim_end_matches('%').parse().ok().filter(|p: &f64| (0.01..=100.0).contains(p));
    p.ok_or_else(|| InvalidValue::form(text, "percentage between 0.01 and 100"))
}

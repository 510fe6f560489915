//! Options of `ringwise bench`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use ringwise_bench::limits::Net;
use ringwise_model::CpuSet;

use super::value::{address, at_least, between, cpus, socket_address};
use super::{Format, InvalidValue, Write};

/// Arguments of `bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// The load, report or server.
    #[command(subcommand)]
    pub what: BenchCmd,
}

/// Commands of `bench`.
#[derive(Debug, Clone, Subcommand)]
pub enum BenchCmd {
    /// Send requests one at a time and measure latency
    Rr(Box<RunArgs>),
    /// Keep several requests in flight per connection and measure throughput in both directions
    Burst(Box<RunArgs>),
    /// Run rr and burst at once, each with threads of its own
    Mixed(Box<RunArgs>),
    /// Send datagrams or streams in one direction
    Stream(Box<RunArgs>),
    /// Compare CPUs for the receiver: that of the queue, the other thread of its core, others of its cache, its node, a remote
    /// node
    Receive(Box<RunArgs>),
    /// Forward packets through this host
    Forward(Box<RunArgs>),
    /// Find queue count, rings, moderation and placement for a workload, within a time limit
    Search(Box<SearchArgs>),
    /// Be the other end: answer, load and count for the host under test
    Serve(ServeArgs),
    /// Print tables, figures and verdicts of earlier measurements
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

/// Programs that can generate the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "clap would print the comment of a variant in the help")]
pub enum DriverArg {
    #[default]
    BuiltIn,
    Netperf,
    Iperf3,
}

/// The end that generates the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum DriveArg {
    /// The peer generates the load, this host answers
    #[default]
    Peer,
    /// This host generates the load, the peer answers
    Here,
}

/// Address patterns of the load of `forward`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Recipe {
    /// Random sources over a /8 and destinations over a /24
    #[default]
    Random,
    /// Sources in turn, each frame four times, CPUs kept awake; a state provides the rules that steer them to queues
    Turn,
    /// UDP from one address to one other, source ports in turn (512, or --flows): what a NIC that hashes UDP by addresses puts into one
    /// queue
    Ports,
}

/// Arguments of a load.
#[derive(Debug, Clone, Default, Args)]
pub struct RunArgs {
    /// Interfaces under test; the load goes to the address of the first one
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
    /// Allow states that interrupt the control path (ssh session, default route, network mounts); each state is on trial
    #[arg(long, help_heading = "Run")]
    pub force: bool,
    /// `--yes` and `--dry-run`.
    #[command(flatten, next_help_heading = "Run")]
    pub write: Write,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// The states to compare. The first is the host as found; the others are compared with it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "States")]
pub struct StateArgs {
    /// Compare this state, made from the host as found by options of plan: 'bulk=--set eth0.coalesce.rx-usecs=62',
    /// 'tuned=--goal forward --allow-disruption', 'file=--config x.toml'; or for what a plan file requests:
    /// 'sampled=edge.plan'; repeatable
    #[arg(long = "state", value_name = "NAME=FLAGS")]
    pub states: Vec<String>,
    /// Use this state as the first one, instead of the host as found
    #[arg(long, value_name = "NAME=FLAGS")]
    pub base: Option<String>,
    /// Compare a state for each value of a key of --set: eth0.coalesce.rx-usecs=0,10,50; or queues=1,2,4
    #[arg(long, value_name = "KEY=VALUES")]
    pub sweep: Option<String>,
    /// Compare a state for each goal
    #[arg(long, value_name = "GOALS", value_delimiter = ',')]
    pub goals: Vec<ringwise_model::Goal>,
}

/// The other end of the load, and how it is reached.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Peer")]
pub struct PeerArgs {
    /// Connect to ringwise bench serve on the other host, at this control address
    #[arg(long, value_name = "ADDR:PORT", group = "other_end")]
    pub peer: Option<String>,
    /// Start ringwise bench serve on HOST through ssh; ringwise must be in the PATH there
    #[arg(long, value_name = "HOST", group = "other_end")]
    pub ssh: Option<String>,
    /// Use a network namespace of this host (ip netns) as the other end; over a veth pair this does not measure a NIC
    #[arg(long, value_name = "NAME", group = "other_end")]
    pub netns: Option<String>,
    /// Read the secret of serve --secret-file from FILE
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Address of this host on the test network [default: the first one of DEV]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub address: Option<IpAddr>,
    /// Address of the peer on the test network, for --drive here
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub peer_address: Option<IpAddr>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Payload sizes in bytes (64,256,1k,64k) [default: rr 64 to 1k, burst and mixed 64 to 64k]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', value_parser = bytes)]
    pub size: Vec<u32>,
    /// Number of load threads; with several values, each is measured
    #[arg(long, value_name = "N", value_delimiter = ',', conflicts_with = "level", value_parser = between::<u32>(1, 1024))]
    pub threads: Vec<u32>,
    /// Load level: light, medium, heavy use a quarter, one, two threads per core of this host [default: medium]
    #[arg(long, value_name = "LEVELS", value_delimiter = ',')]
    pub level: Vec<Level>,
    /// Ratio of latency threads to throughput threads: 1/2:1/2,2/3:1/3,1/3:2/3,1:0,0:1 [default: all of these]
    #[arg(long, value_name = "MIXES", value_delimiter = ',')]
    pub mix: Vec<String>,
    /// Number of connections, or of source ports; with several values, each is measured
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = between::<u32>(1, 100_000))]
    pub flows: Vec<u32>,
    /// Zipf exponent of the flows; with several values, each is measured
    #[arg(long, value_name = "S", value_delimiter = ',', value_parser = skew)]
    pub skew: Vec<f64>,
    /// Offer N requests or packets a second in total, at fixed times (20k, 1.5M); without it each one is sent when the
    /// previous one is done; with several values, each is measured
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = rate)]
    pub rate: Vec<f64>,
    /// Transport protocol of the load
    #[arg(long, value_name = "WHICH", value_enum)]
    pub protocol: Option<ProtocolArg>,
    /// Keep N requests in flight per connection, with burst and mixed
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = between::<u32>(2, 1024))]
    pub burst: u32,
    /// Run the threads of this host on these CPUs [default: all that ringwise may use]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<CpuSet>,
    /// Run the threads of the peer on these CPUs [default: all of them]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub peer_cpus: Option<CpuSet>,
    /// Generate the load with PROGRAM; netperf and iperf3 must be installed at both ends
    #[arg(long, value_name = "PROGRAM", value_enum, default_value_t)]
    pub driver: DriverArg,
    /// Which end generates the load
    #[arg(long, value_name = "WHO", value_enum, default_value_t)]
    pub drive: DriveArg,
    /// Weight of latency in the score of mixed, 0 to 1
    #[arg(long, value_name = "W", default_value_t = 0.5, value_parser = weight)]
    pub weight: f64,
    /// Delay each answer by this long, to test the harness with a known delay
    #[arg(long, value_name = "US", default_value_t = 0, hide = true, value_parser = at_least::<u32>(0))]
    pub delay_us: u32,
    /// Apply --delay-us in this state only
    #[arg(long, value_name = "NAME", hide = true)]
    pub delay_in: Option<String>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Forward")]
pub struct ForwardArgs {
    /// Ports of this host that receive the packets
    #[arg(long = "in", value_name = "DEVS", value_delimiter = ',')]
    pub into: Vec<String>,
    /// Port of this host that sends them on
    #[arg(long, value_name = "DEV")]
    pub out: Option<String>,
    /// Ports of the peer, one for each of --in, in the same order
    #[arg(long = "gen", value_name = "DEVS", value_delimiter = ',')]
    pub generators: Vec<String>,
    /// Port of the peer that --out reaches
    #[arg(long, value_name = "DEV")]
    pub sink: Option<String>,
    /// Frame sizes in bytes without FCS, as pktgen counts them; pktgen sends at least 60 [default: 1000,500,250,100,60]
    #[arg(long = "frame", value_name = "SIZES", value_delimiter = ',', conflicts_with = "size", value_parser = between::<u32>(1, 9600))]
    pub frames: Vec<u32>,
    /// Address pattern of the load
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    pub recipe: Recipe,
    /// With --recipe turn: give every state rules that steer the sources to the queues in turn; the first state then has goal balanced
    #[arg(long)]
    pub lead: bool,
    /// Source addresses [default: 10.0.0.0/8]
    #[arg(long, value_name = "NET")]
    pub sources: Option<String>,
    /// Destination addresses, routed to --out by the host under test
    #[arg(long, value_name = "NET")]
    pub destinations: Option<String>,
    /// Find the highest rate without loss, and the highest with 0.5 % loss, in each state
    #[arg(long)]
    pub find_rate: bool,
    /// Load N of the ports of --in at once; with several values, each is measured
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = between::<u32>(1, 64))]
    pub interfaces: Vec<u32>,
    /// Add N routes to the main table while measuring (unreachable ones in 198.19.0.0/16); with several values, each is measured
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = between::<u32>(0, 65_536))]
    pub routes: Vec<u32>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Design")]
pub struct DesignArgs {
    /// Number of blocks. A block measures every state once with each combination of sizes, flows, threads and so on, in
    /// random order
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = between::<u32>(1, 1000))]
    pub pairs: u32,
    /// Number of calibration blocks, which come first and compare the first state with itself
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = between::<u32>(0, 100))]
    pub calibrate: u32,
    /// Measure for TIME in each trial
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = crate::args::duration)]
    pub trial: Duration,
    /// Load for TIME before each trial without counting
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = crate::args::duration)]
    pub warm: Duration,
    /// Treat smaller differences as equivalent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent)]
    pub within: f64,
    /// Require a change of this size to be found in 80 of 100 cases; refuse if the calibration shows that --pairs is too low
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub detect: Option<f64>,
    /// Seed of the order and of the resampling [default: from the clock]
    #[arg(long, value_name = "N", value_parser = at_least::<u64>(0))]
    pub seed: Option<u64>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Results")]
pub struct KeepArgs {
    /// Write results to FILE as JSON lines, as they come [default: bench/DATE.jsonl in the state directory]
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// Write the report with figures to one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a capture of this host to FILE; none: no capture [default: beside the results, as .capture.tar]
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Title of the report
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

/// Arguments of `bench search`.
#[derive(Debug, Clone, Default, Args)]
pub struct SearchArgs {
    /// Workload to optimize for
    #[arg(long, value_name = "WORKLOAD", value_enum, default_value_t, help_heading = "Search")]
    pub workload: SearchFor,
    /// What to vary [default: all]
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',', help_heading = "Search")]
    pub among: Vec<SearchSpaceArg>,
    /// Time limit of the whole search, including the last comparison
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = crate::args::duration, help_heading = "Search")]
    pub budget: Duration,
    /// Also vary what interrupts traffic: queues and rings
    #[arg(long, help_heading = "Search")]
    pub allow_disruption: bool,
    /// Write the configuration that was found to FILE
    #[arg(long, value_name = "FILE", help_heading = "Results")]
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
pub enum SearchSpaceArg {
    /// Goals
    Placement,
    /// Microseconds between interrupts
    Moderation,
    /// Number of queues
    Queues,
    /// Ring sizes
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
    /// Listen for the control connection on this address; 0.0.0.0 and :: are refused. With port 0 the
    /// kernel chooses the port, and the address is printed on stdout
    #[arg(long, value_name = "ADDR:PORT", required_unless_present = "stdio", value_parser = socket_address, help_heading = "Connection")]
    pub listen: Option<SocketAddr>,
    /// Use stdin and stdout as the control connection (--ssh starts it this way)
    #[arg(long, conflicts_with = "listen", help_heading = "Connection")]
    pub stdio: bool,
    /// Run in this network namespace
    #[arg(long, value_name = "NAME", help_heading = "Connection")]
    pub netns: Option<String>,
    /// Accept only hosts that know the secret in FILE; required if other hosts can reach the address
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    pub secret_file: Option<PathBuf>,
    /// Also allow load to this address or network, besides the source address of the control connection
    #[arg(long, value_name = "ADDR[/LEN]", value_parser = Net::parse, conflicts_with = "stdio", help_heading = "Access")]
    pub allow_target: Vec<Net>,
    /// Allow the kernel's packet generator to send on this interface
    #[arg(long, value_name = "DEV", conflicts_with = "stdio", help_heading = "Access")]
    pub allow_pktgen: Vec<String>,
}

/// Arguments of `bench report`.
#[derive(Debug, Clone, Default, Args)]
pub struct BenchReportArgs {
    /// Files of results; several are compared if they were measured under the same conditions
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Write tables and figures to one HTML file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Write each figure to a file in DIR; of several files, figures with a line for each
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub svg: Option<PathBuf>,
    /// Weight of latency in the score, 0 to 1 [default: the one of the measurement]
    #[arg(long, value_name = "W", value_parser = weight, help_heading = "Output")]
    pub weight: Option<f64>,
    /// `--output`.
    #[command(flatten)]
    pub format: Format,
}

/// `64`, `1k`, `64k`.
fn bytes(text: &str) -> Result<u32, InvalidValue> {
    let bad = || InvalidValue::form(text, "a size between 1 and 1M bytes, e.g. 64 or 1k");
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
    n.ok_or_else(|| InvalidValue::form(text, "a rate between 1 and 1000M a second, e.g. 20k"))
}

fn skew(text: &str) -> Result<f64, InvalidValue> {
    let s = text.parse().ok().filter(|s: &f64| (0.0..=3.0).contains(s));
    s.ok_or_else(|| InvalidValue::form(text, "a Zipf exponent between 0 and 3"))
}

fn weight(text: &str) -> Result<f64, InvalidValue> {
    let w = text.parse().ok().filter(|w: &f64| (0.0..=1.0).contains(w));
    w.ok_or_else(|| InvalidValue::form(text, "a weight between 0 (throughput alone) and 1 (latency alone)"))
}

fn percent(text: &str) -> Result<f64, InvalidValue> {
    let p = text.trim_end_matches('%').parse().ok().filter(|p: &f64| (0.01..=100.0).contains(p));
    p.ok_or_else(|| InvalidValue::form(text, "a percentage between 0.01 and 100"))
}

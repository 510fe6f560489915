//! What a session writes: JSON lines, one [`ResultLine`] each, the session first and its end last.
//!
//! A file without an [`End`] belongs to an interrupted session. Readers ignore members that they do not know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `schema` of the first line of every results file.
pub const SCHEMA: &str = "ringwise.bench";
/// Additive changes keep it; a removed or changed member raises it.
pub const VERSION: u32 = 1;

/// One line of a results file; `kind` names the variant in snake case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ResultLine {
    /// The first line, once.
    Session(Box<Session>),
    /// Written as soon as the trial is over.
    Trial(Box<Trial>),
    /// Computed from the trials after the last one.
    Comparison(Box<Comparison>),
    /// One result of a rate search.
    Rate(Box<Rate>),
    /// The last line, once.
    End(End),
}

/// The conditions of all measurements in the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`VERSION`] of the ringwise that wrote it.
    pub version: u32,
    /// The version of ringwise.
    pub ringwise: String,
    /// Seconds since 1970.
    pub started_unix: u64,
    /// A note of the user for the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `rr`, `burst`, `mixed`, `stream`, `forward`, `receive`, ...
    pub workload: String,
    /// `built-in`, `netperf`, `iperf3`, `pktgen`.
    pub driver: String,
    /// Interfaces under test, in the order in which the user named them.
    pub ports: Vec<Port>,
    /// The port is not a NIC, or an emulated one. Every presentation of the results begins with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
    /// The other end; none: this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The first state is the one that the others are compared with.
    pub states: Vec<State>,
    /// The key that states with a value differ in: `queues`, `eth0.coalesce.rx_usecs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swept: Option<String>,
    /// Order and number of trials, and what counts as a difference.
    pub design: Design,
    /// Hardware and software at the start of the session.
    pub environment: Environment,
}

/// An interface under test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Interface name.
    pub name: String,
    /// Name of the kernel module; `no driver` where the interface has none, or it is unknown.
    pub driver: String,
    /// Link speed in Mbit/s; none: the driver does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbit_per_s: Option<u64>,
}

/// Settings of the host under test that are measured together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Short, unique in the session: `before`, `bulk`.
    pub name: String,
    /// `as found`, `--goal forward`, `--set eth0.coalesce.rx_usecs=62`.
    pub what: String,
    /// The value on the axis of [`Session::swept`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Where the receiver runs in this state, one of [`PLACES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// How many trials are made, how long each is, and when a difference counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Seed of the order of trials and of every resampling.
    pub seed: u64,
    /// Blocks; in each, every state is measured once at every point.
    pub blocks: u32,
    /// Blocks before them in which the first state is measured against itself.
    pub calibration_blocks: u32,
    /// Seconds of load before each trial, which are not counted.
    pub warmup_s: f64,
    /// Seconds of load that are counted.
    pub trial_s: f64,
    /// A difference below this counts as equivalent.
    pub equivalent_percent: f64,
    /// 0.05 means that intervals have a confidence of 95 %.
    pub alpha: f64,
    /// Weight of latency in the score; none: one half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

/// Facts of the host under test and its peer that may affect the numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Digest of all facts except those that the states change.
    pub hash: String,
    /// `kernel`, `cpu`, `eth0 driver`, ... with their values as text.
    pub facts: BTreeMap<String, String>,
    /// The same facts about the other end; empty: it is this host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub peer: BTreeMap<String, String>,
    /// The capture that was made at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<String>,
}

/// The position of a trial on the axes of a sweep. Members that are none are not axes of this session.
#[derive(Debug, Clone, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Point {
    /// Payload of a message (rr, burst, mixed, stream) or of UDP in a packet (forward, receive).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u32>,
    /// Frame without FCS (forward), as pktgen counts it; shorter ones are sent with 60 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_bytes: Option<u32>,
    /// Load threads, all groups together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// `light`, `medium`, `heavy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Latency to throughput threads: `1/2:1/2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<String>,
    /// Queues of each interface under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<u32>,
    /// Interfaces under test that carry load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<u32>,
    /// Routes that were added to the main table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<u32>,
    /// Flows (source ports) of the load, all groups together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// Exponent of Zipf's law over the flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<f64>,
    /// One of [`PLACES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Offered rate; none: as much as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_per_s: Option<f64>,
}

impl Point {
    /// The payload, or the frame if the session names frames, in bytes.
    pub fn bytes(&self) -> Option<u32> {
        self.size_bytes.or(self.frame_bytes)
    }

    /// The other members.
    pub fn without_size(&self) -> Self {
        Self { size_bytes: None, frame_bytes: None, ..self.clone() }
    }
}

/// Places of a receiver, seen from the interrupt of its queue, the nearest first.
pub const PLACES: [&str; 6] = ["same-cpu", "sibling", "same-l3", "same-node", "other-node", "other-cpu"];

/// What a trial is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The first state is compared with itself.
    Calibration,
    /// Every state is compared with the first one.
    #[default]
    Measure,
}

/// One state at one point for one period of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Where on the axes of the sweep it was made.
    pub point: Point,
    /// Name of a [`State`] of the session.
    pub state: String,
    /// Only trials of [`Phase::Measure`] are compared between states.
    pub phase: Phase,
    /// From 0 in each phase; trials of one block are pairs.
    pub block: u32,
    /// Place within the block, from 0.
    pub order: u32,
    /// Seconds since the session began.
    pub at_s: f64,
    /// Without the warm-up.
    pub seconds: f64,
    /// One for each group of the load.
    pub loads: Vec<LoadResult>,
    /// Counted on the host under test during the trial, without the warm-up.
    pub host: HostSide,
    /// Why the rate was not higher.
    pub limit: Limit,
    /// Why the result of this trial may be misleading; the trial is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

/// What one group of load threads did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// `latency`, `throughput`; empty where there is only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Unit of `offered_per_s`, `sent_per_s` and `done_per_s`.
    pub unit: Unit,
    /// Load threads of the group.
    pub threads: u32,
    /// Intended rate of an open-loop load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_per_s: Option<f64>,
    /// Rate that was sent.
    pub sent_per_s: f64,
    /// Completed transactions, or packets that arrived.
    pub done_per_s: f64,
    /// None: the sender cannot know what was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_percent: Option<f64>,
    /// Both directions of a transaction; `counted` names the bytes that are included.
    pub bits_per_s: f64,
    /// The bytes that `bits_per_s` counts.
    pub counted: BitRateLayer,
    /// None: the load is one way, or there is no sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// CPU time of the busiest load thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread_percent: Option<f64>,
    /// CPU use of the load's host: `usr`, `sys`, ...; `None` if that host did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_cpu_percent: Option<f64>,
    /// Further notes: calls that failed (with the first errno), requests that were sent late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// What a rate counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A request and its response.
    #[default]
    Transactions,
    /// Messages in one direction.
    Packets,
    /// The result has only `bits_per_s`.
    Bytes,
}

/// Which bytes a rate in bit/s counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BitRateLayer {
    /// What the program sent and received: of TCP the stream, of UDP the datagrams.
    #[default]
    Payload,
    /// With the headers of IP and UDP or TCP.
    Ip,
    /// With Ethernet header and FCS.
    Frame,
    /// Frame, preamble and gap: what a line rate counts.
    Wire,
}

/// Microseconds, from the intended time of sending where `open_loop`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Requests were sent at intended times, whether the previous one was answered or not, so waiting for a late answer
    /// counts.
    pub open_loop: bool,
    /// Number of samples, without the warm-up.
    pub count: u64,
    /// Mean; exact if the load itself measured it.
    pub mean_us: f64,
    /// Standard deviation of the samples.
    pub deviation_us: f64,
    /// Median; of the built-in load within 0.4 %.
    pub p50_us: f64,
    /// As exact as the median.
    pub p90_us: f64,
    /// As exact as the median.
    pub p99_us: f64,
    /// None: too few samples (below 1,000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_us: Option<f64>,
    /// The worst sample of all.
    pub max_us: f64,
}

/// What the host under test did during the trial. None: unknown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSide {
    /// Online CPUs in ascending order.
    pub cpus: Vec<CpuUse>,
    /// Packets of all interfaces under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_per_s: Option<f64>,
    /// Packets of all interfaces under test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transmitted_per_s: Option<f64>,
    /// Interrupts of the queues under test, on all CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts_per_s: Option<f64>,
    /// Interrupts of the queues per packet, received or transmitted, whichever is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts_per_packet: Option<f64>,
    /// CPU time that was not idle, all CPUs together, per packet, received or transmitted, whichever is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns_per_packet: Option<f64>,
    /// Cycles of all CPUs (perf_event_open(2)) per packet, received or transmitted, whichever is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles_per_packet: Option<f64>,
    /// Time between packets of this size at line rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_ns_per_packet: Option<f64>,
    /// Use of the port that is nearest to its line rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_rate_percent: Option<f64>,
    /// By place: `eth0 ring`, `softnet`, `socket`, `qdisc`, ...
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lost: BTreeMap<String, u64>,
    /// Received packets by queue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueUse>,
    /// Packets of the fullest receive queue by the mean of its device, of the worst device; 1: all alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_max_over_mean: Option<f64>,
    /// Values that could not be read, and why: `cycles`: `ENOENT ...`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown: BTreeMap<String, String>,
}

/// One CPU of the host under test, in per cent of the time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// Number as in `/proc/stat`.
    pub cpu: u32,
    /// Everything but idle, waiting for I/O and stolen by the hypervisor.
    pub busy_percent: f64,
    /// Programs, nice ones included.
    pub user_percent: f64,
    /// System calls and kernel threads.
    pub system_percent: f64,
    /// Deferred work of interrupts: most of the network stack.
    pub softirq_percent: f64,
    /// Interrupt handlers.
    pub irq_percent: f64,
    /// How late an ordinary thread ran that wakes up every ten milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_p99_us: Option<f64>,
    /// The worst delay of the same thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_max_us: Option<f64>,
}

/// Load of one receive queue in a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueUse {
    /// Interface name.
    pub dev: String,
    /// Number as the kernel counts the device's receive queues, from 0.
    pub queue: u32,
    /// Received in the trial, without the warm-up.
    pub packets: u64,
}

/// What limited the result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// With the port.
    Link(String),
    /// The CPUs without idle time.
    Cpu(Vec<u32>),
    /// The load generator, and the evidence.
    Generator(String),
    /// The whole offered load was processed, so no limit was reached.
    Offered,
    /// The limit is unknown.
    #[default]
    Unknown,
}

/// A compared metric. Times are in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Transactions or packets done a second (of the throughput group where there are two).
    Rate,
    /// The highest offered rate without loss, of [`Rate`] lines.
    RateWithoutLoss,
    /// The highest with half a per cent.
    RateHalfPercent,
    /// Packets that did not arrive, in per cent of those sent.
    Loss,
    /// [`Latency::mean_us`].
    LatencyMean,
    /// [`Latency::p50_us`].
    LatencyP50,
    /// [`Latency::p90_us`].
    LatencyP90,
    /// [`Latency::p99_us`].
    LatencyP99,
    /// [`Latency::p999_us`].
    LatencyP999,
    /// Busy time of all CPUs together, per cent of one.
    Cpu,
    /// [`HostSide::cpu_ns_per_packet`], nanoseconds.
    CpuNsPerPacket,
    /// [`HostSide::interrupts_per_packet`].
    InterruptsPerPacket,
    /// The worst CPU's p99 of [`CpuUse::delay_p99_us`].
    Delay,
}

/// What the pairs show about one metric of a state against the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A significant change in the direction that the metric prefers.
    Better,
    /// A significant change in the other direction.
    Worse,
    /// Within the bounds that were given, by two one-sided tests.
    Equivalent,
    /// Neither a difference nor equivalence was shown; the notes name what is missing.
    Inconclusive,
}

/// One state against the first one, at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Where on the axes of the sweep both were measured.
    pub point: Point,
    /// The value that was compared.
    pub metric: Metric,
    /// Name of the first state of the session.
    pub base: String,
    /// Name of the state that is compared with it.
    pub with: String,
    /// Pairs that both have the value.
    pub pairs: u32,
    /// Mean of the pairs, in the unit of the metric.
    pub base_mean: f64,
    /// Mean of the pairs, in the unit of the metric.
    pub with_mean: f64,
    /// Mean of the paired differences in per cent of `base_mean`; none where that is 0.
    pub change_percent: Option<f64>,
    /// Of `change_percent`, bootstrap, at the confidence of the design.
    pub low_percent: Option<f64>,
    /// Upper end of the same interval.
    pub high_percent: Option<f64>,
    /// Two-sided, of no difference.
    pub p: Option<f64>,
    /// After Holm's correction over everything that was compared, half of alpha for the workload's primary metrics.
    pub p_corrected: Option<f64>,
    /// The smallest true change that this number of pairs with this noise finds in 80 of 100 cases.
    pub detectable_percent: Option<f64>,
    /// Standard deviation of the paired differences, in per cent of `base_mean`.
    pub noise_percent: Option<f64>,
    /// The same value for the first state against itself.
    pub calibration_noise_percent: Option<f64>,
    /// The bound of [`Design::equivalent_percent`] that the verdict was reached with.
    pub equivalent_percent: f64,
    /// Follows `p_corrected` and the interval; see [`Verdict`].
    pub verdict: Verdict,
    /// Why it is inconclusive, or what to doubt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The highest offered rate with no more than that loss.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Where on the axes of the sweep the rate was searched.
    pub point: Point,
    /// Name of a [`State`] of the session.
    pub state: String,
    /// From 0; searches of one block are pairs.
    pub block: u32,
    /// 0: zero loss.
    pub loss_percent: f64,
    /// `None`: not even the lowest rate that was tried passed.
    pub found_per_s: Option<f64>,
    /// The lowest rate that lost more; `None`: the generator's own limit was reached first.
    pub above_per_s: Option<f64>,
    /// Number of trials of the whole search, which all its losses share.
    pub trials: u32,
    /// What kept the rate from being higher.
    pub limit: Limit,
}

/// How the session ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The host has the same settings as at the start.
    pub restored: bool,
    /// Why it was stopped, or which settings differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Duration of the session.
    pub seconds: f64,
}

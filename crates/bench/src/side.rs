//! One end of a test: what it can be asked, and what it answers. In this process or, by the same words as JSON lines,
//! behind TCP, `ssh` or a child in a network namespace.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::result::LoadResult;

/// Of the words below. Two ends with different numbers do not work together.
pub const PROTOCOL: u32 = 2;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// The first one, always. `nonce`: from whoever knows a secret (see `secret`).
    Hello {
        protocol: u32,
        ringwise: String,
        #[serde(default)]
        nonce: Option<String>,
    },
    /// The answer to a [`Reply::Challenge`].
    Prove { proof: String },
    /// Answers transactions until [`Request::Stop`].
    Answer(Answer),
    /// Takes datagrams, or a stream, and counts them until [`Request::Stop`].
    Sink(Sink),
    /// Sends for the time it says; the reply comes when it is over.
    Load(Load),
    /// The kernel's packet generator; the reply comes when it is over.
    Pktgen(Pktgen),
    /// What interfaces have counted so far.
    Count { devs: Vec<String> },
    /// Another program, for the time it says.
    Program(Program),
    /// Ends what answers, counts or sends, and says what it saw.
    Stop,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Hello(Hello),
    /// A secret is needed here, and `proof` shows that it is known here.
    Challenge {
        nonce: String,
        proof: String,
    },
    /// One address a thread.
    Listening {
        at: Vec<SocketAddr>,
    },
    Loaded(Vec<LoadResult>),
    Counted(Vec<DevCount>),
    /// What the generator says, and counts of [`Pktgen::count`] before it, after the warm-up, at its end and when all has arrived.
    Generated {
        loads: Vec<LoadResult>,
        counts: [Vec<DevCount>; 4],
    },
    Stopped {
        taken: Vec<Taken>,
    },
    /// `errno` and the kernel's words, or what is missing and how it can be had.
    Failed {
        why: String,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub ringwise: String,
    pub host: String,
    pub kernel: String,
    /// Online, as a list.
    pub cpus: String,
    /// `netperf`, `iperf3`, `pktgen`: what is to be had there.
    pub drivers: Vec<String>,
    /// Interfaces with their MAC and addresses.
    pub interfaces: Vec<(String, String, Vec<IpAddr>)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    #[default]
    Udp,
    Tcp,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub protocol: Protocol,
    /// Never a wildcard: only where the test runs.
    pub bind: Option<IpAddr>,
    pub threads: u32,
    /// A thread each, round and round; empty: wherever the scheduler likes.
    pub cpus: Vec<u32>,
    /// Waits so long before it answers: a known delay, to prove the harness on.
    #[serde(default)]
    pub delay_us: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sink {
    pub protocol: Protocol,
    pub bind: Option<IpAddr>,
    pub threads: u32,
    pub cpus: Vec<u32>,
}

/// Groups that run at the same time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    pub groups: Vec<Group>,
    /// Sent, and not counted.
    pub warmup: Duration,
    pub time: Duration,
    pub seed: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// `latency`, `throughput`, or empty.
    pub name: String,
    pub protocol: Protocol,
    pub pattern: Pattern,
    /// Payload bytes of a request, a datagram, or a write.
    pub size_bytes: u32,
    pub threads: u32,
    /// A thread each, round and round; empty: wherever the scheduler likes.
    pub cpus: Vec<u32>,
    /// Thread i sends to entry i modulo their number.
    pub to: Vec<SocketAddr>,
    /// Sockets (source ports) of all threads together, at least one each.
    pub flows: u32,
    /// Zipf's exponent over the flows; 0: all alike.
    pub skew: f64,
    /// All threads together, at intended times; none: the next one as soon as one is done.
    pub per_s: Option<f64>,
}

/// How many are on the way holds without a rate; with one, requests are sent at their times, answered or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Request and response, one at a time for each flow.
    #[default]
    Rr,
    /// So many requests on the way for each flow.
    Burst(u32),
    /// One way; what arrives is counted by a [`Sink`].
    Send,
}

/// `pktgen` on one or more ports, bounded in packets and time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pktgen {
    pub ports: Vec<PktgenPort>,
    pub warmup: Duration,
    /// After the warm-up.
    pub time: Duration,
    /// Interfaces whose counts are wanted: the senders and where it arrives.
    #[serde(default)]
    pub count: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PktgenPort {
    pub dev: String,
    /// The kernel thread that sends, `kpktgend_N`.
    pub cpu: u32,
    pub to_mac: String,
    /// Of the frame without FCS, as pktgen counts.
    pub frame_bytes: u32,
    /// None: as fast as it can.
    pub per_s: Option<f64>,
    pub sources: (IpAddr, IpAddr),
    pub random_sources: bool,
    pub destinations: (IpAddr, IpAddr),
    pub random_destinations: bool,
    /// Each frame so many times before the next one; 1: never the same one twice.
    pub copies: u32,
    pub source_ports: (u16, u16),
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DevCount {
    pub dev: String,
    /// Clock of that host, to make a rate of two.
    pub at_ns: u64,
    pub rx_packets: u64,
    pub rx_bytes: u64,
    pub tx_packets: u64,
    pub tx_bytes: u64,
    pub rx_dropped: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// `netserver` or `iperf3 -s`, until [`Request::Stop`].
    Serve { program: String, bind: IpAddr, port: u16 },
    /// `netperf` or `iperf3 -c`: threads of one group each, with the load's warm-up and time.
    Run { program: String, port: u16, load: Load },
}

/// What one thread of [`Answer`] or [`Sink`] has seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    pub cpu: Option<u32>,
    /// Without the warm-up of our own generator, where it sends datagrams. Over TCP messages answered, or reads of what is
    /// only counted.
    pub packets: u64,
    /// Of payload, in what `packets` counts.
    pub bytes: u64,
    /// Lost at the socket, where the kernel says so.
    pub dropped: Option<u64>,
    /// CPU time of the thread.
    pub cpu_ns: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The other end said so.
    #[error("{side}: {why}")]
    Refused { side: String, why: String },
    #[error("{side}: the control connection is gone: {why}")]
    Lost { side: String, why: String },
    #[error("{side}: no answer within {seconds} s")]
    Late { side: String, seconds: u64 },
    #[error("{side} speaks protocol {theirs} (ringwise {version}), this one {PROTOCOL}: use one version at both ends")]
    Versions { side: String, theirs: u32, version: String },
}

/// One end of a test. At most one request runs; [`Request::Stop`] and [`Request::Count`] may come while one answers or counts.
pub trait Side {
    /// For messages: `this host`, `10.0.0.2:4710`.
    fn name(&self) -> &str;

    /// Sends a request and does not wait.
    ///
    /// Errors: the stream is gone.
    fn start(&mut self, request: Request) -> Result<(), Error>;

    /// The reply to the request that was started.
    ///
    /// Errors: none within `bound`, a refusal, the stream is gone.
    fn finish(&mut self, bound: Duration) -> Result<Reply, Error>;

    fn ask(&mut self, request: Request, bound: Duration) -> Result<Reply, Error> {
        self.start(request)?;
        self.finish(bound)
    }
}

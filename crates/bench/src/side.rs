//! One end of a test: its requests and replies. It is in this process or, with the same messages as JSON lines, behind
//! TCP, `ssh` or a child in a network namespace.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ringwise_model::JsonFault;
use ringwise_model::words::visible;
use serde::{Deserialize, Serialize};

use crate::error::{RequestError, SystemError};
use crate::result::LoadResult;

/// Version of these messages. Two ends with different versions do not work together.
pub const PROTOCOL: u32 = 2;

/// A request to one end. In JSON the variant's name is in snake case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Always the first request. `nonce`: from an end that knows a secret (see `secret`).
    Hello {
        /// [`PROTOCOL`] of the end that asks.
        protocol: u32,
        /// Version of ringwise at the end that asks.
        ringwise: String,
        /// 256 random bits as hexadecimal digits; none: that end knows no secret.
        #[serde(default)]
        nonce: Option<String>,
    },
    /// The answer to a [`Reply::Challenge`].
    Prove {
        /// HMAC-SHA-256 as hexadecimal digits.
        proof: String,
    },
    /// Answers transactions until [`Request::Stop`].
    Answer(Responder),
    /// Receives datagrams, or a stream, and counts them until [`Request::Stop`].
    Sink(Sink),
    /// Sends for the given time; the reply comes at the end.
    Load(LoadGroups),
    /// Runs the kernel's packet generator; the reply comes at the end.
    Pktgen(Pktgen),
    /// Reads the counters of interfaces.
    Count {
        /// Interface names; an unknown one fails the request.
        devs: Vec<String>,
    },
    /// Runs another program for the given time.
    Program(ExternalProgram),
    /// Stops answering, counting or sending; the reply contains the counts.
    Stop,
}

/// The answer to one request; [`Reply::Failed`] may answer any.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The connection may be used from now on.
    Hello(Hello),
    /// A secret is needed here, and `proof` shows that it is known here.
    Challenge {
        /// 256 random bits as hexadecimal digits.
        nonce: String,
        /// HMAC-SHA-256 as hexadecimal digits.
        proof: String,
    },
    /// One address per thread.
    Listening {
        /// In the order of the threads.
        at: Vec<SocketAddr>,
    },
    /// One result for each group, in their order.
    Loaded(Vec<LoadResult>),
    /// One entry for each interface, in the order of the request.
    Counted(Vec<DevCount>),
    /// The results of the generator, and counts of [`Pktgen::count`] before it, after the warm-up, at its end and when
    /// all packets have arrived.
    Generated {
        /// One result for each port.
        loads: Vec<LoadResult>,
        /// Four readings, each with one entry for each interface.
        counts: [Vec<DevCount>; 4],
    },
    /// The running task has ended.
    Stopped {
        /// One entry for each thread; empty where nothing answered or counted.
        taken: Vec<Taken>,
    },
    /// `errno` and the kernel's message, or what is missing and how to get it.
    Failed {
        /// One line for people.
        why: String,
    },
}

/// One end, as it describes itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] there.
    pub protocol: u32,
    /// Version of ringwise there.
    pub ringwise: String,
    /// Host name there.
    pub host: String,
    /// Kernel release as `uname -r` prints it.
    pub kernel: String,
    /// Online CPUs, as a list.
    pub cpus: String,
    /// `netperf`, `iperf3`, `pktgen`: the generators that are available there.
    pub drivers: Vec<String>,
    /// Interfaces with their MAC and addresses.
    pub interfaces: Vec<(String, String, Vec<IpAddr>)>,
}

/// Transport of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// One datagram is one message.
    #[default]
    Udp,
    /// Messages of fixed length in a stream.
    Tcp,
}

/// Threads that answer each request with a response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Responder {
    /// Transport of the requests and their answers.
    pub protocol: Protocol,
    /// Never a wildcard, so that it only listens where the test runs.
    pub bind: Option<IpAddr>,
    /// At least 1, each with a socket of its own.
    pub threads: u32,
    /// One CPU per thread, in turn; empty: the scheduler decides.
    pub cpus: Vec<u32>,
    /// Delay before each answer: a known delay that proves the harness.
    #[serde(default)]
    pub delay_us: u32,
}

/// Threads that receive and never answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sink {
    /// Transport of what is received.
    pub protocol: Protocol,
    /// Never a wildcard, so that it only listens where the test runs.
    pub bind: Option<IpAddr>,
    /// At least 1, each with a socket of its own.
    pub threads: u32,
    /// One CPU per thread, in turn; empty: the scheduler decides.
    pub cpus: Vec<u32>,
}

/// Groups that run at the same time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadGroups {
    /// At least one.
    pub groups: Vec<LoadGroup>,
    /// Time in which messages are sent and not counted.
    pub warmup: Duration,
    /// Measured time after the warm-up.
    pub time: Duration,
    /// Seed of the random choice of flows.
    pub seed: u64,
}

/// A group of equal load threads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadGroup {
    /// `latency`, `throughput`, or empty.
    pub name: String,
    /// Transport of all flows of the group.
    pub protocol: Protocol,
    /// What is sent, and whether an answer is awaited.
    pub pattern: Pattern,
    /// Payload bytes of a request, a datagram, or a write.
    pub size_bytes: u32,
    /// At least 1.
    pub threads: u32,
    /// One CPU per thread, in turn; empty: the scheduler decides.
    pub cpus: Vec<u32>,
    /// Thread i sends to entry i modulo the number of entries.
    pub to: Vec<SocketAddr>,
    /// Sockets (source ports) of all threads together, at least one each.
    pub flows: u32,
    /// Zipf's exponent over the flows; 0: all alike.
    pub skew: f64,
    /// Rate of all threads together, at intended times; none: each request follows the previous answer.
    pub per_s: Option<f64>,
}

/// The number of requests in flight applies without a rate; with a rate, requests are sent at their times, answered or
/// not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Request and response, one at a time for each flow.
    #[default]
    Rr,
    /// This many requests in flight for each flow.
    Burst(u32),
    /// One direction; a [`Sink`] counts what arrives.
    Send,
}

/// `pktgen` on one or more ports, bounded in packets and time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pktgen {
    /// At least one; each is a `pktgen` thread of its own.
    pub ports: Vec<PktgenPort>,
    /// Time in which packets are sent and not counted.
    pub warmup: Duration,
    /// Measured time after the warm-up.
    pub time: Duration,
    /// Interfaces to count: the senders and the receiver.
    #[serde(default)]
    pub count: Vec<String>,
}

/// What one thread of pktgen sends by one port (Documentation/networking/pktgen.rst).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PktgenPort {
    /// Interface that sends.
    pub dev: String,
    /// The kernel thread that sends, `kpktgend_N`.
    pub cpu: u32,
    /// Destination of all frames, `02:00:00:00:00:01`; unicast only.
    pub to_mac: String,
    /// Length of the frame without FCS, as pktgen counts.
    pub frame_bytes: u32,
    /// None: as fast as it can.
    pub per_s: Option<f64>,
    /// First and last source address, both included.
    pub sources: (IpAddr, IpAddr),
    /// Drawn at random for each frame; else in turn.
    pub random_sources: bool,
    /// First and last destination address, both included.
    pub destinations: (IpAddr, IpAddr),
    /// Drawn at random for each frame; else in turn.
    pub random_destinations: bool,
    /// How often each frame is sent before the next one; 1: every frame is different.
    pub copies: u32,
    /// First and last UDP source port, both included.
    pub source_ports: (u16, u16),
}

/// Counters of one interface since it was created (`rtnl_link_stats64` of RTM_GETLINK), read at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DevCount {
    /// Interface name.
    pub dev: String,
    /// Clock of that host, to compute rates.
    pub at_ns: u64,
    /// Packets that the host received.
    pub rx_packets: u64,
    /// Bytes of them; whether the FCS counts depends on the driver.
    pub rx_bytes: u64,
    /// Packets that the driver sent.
    pub tx_packets: u64,
    /// Bytes of them; whether the FCS counts depends on the driver.
    pub tx_bytes: u64,
    /// Packets that were received and not processed, for lack of memory or of a protocol.
    pub rx_dropped: u64,
}

/// Another program that answers or sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExternalProgram {
    /// `netserver` or `iperf3 -s`, until [`Request::Stop`].
    Serve {
        /// `netserver` or `iperf3`.
        program: String,
        /// Never a wildcard: an address of one host.
        bind: IpAddr,
        /// Of the control connection; netperf's data uses others.
        port: u16,
    },
    /// `netperf` or `iperf3 -c`: threads of one group each, with the load's warm-up and time.
    Run {
        /// `netperf` or `iperf3`.
        program: String,
        /// Where the server of the other end listens.
        port: u16,
        /// iperf3 takes exactly one group.
        load: LoadGroups,
    },
}

/// What one thread of [`Responder`] or [`Sink`] counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// The CPU that the thread is pinned to; none: it is not pinned.
    pub cpu: Option<u32>,
    /// Datagrams without the warm-up of the built-in generator. Over TCP, messages that were answered, or reads of data
    /// that is only counted.
    pub packets: u64,
    /// Payload bytes of the same packets.
    pub bytes: u64,
    /// Packets lost at the socket, if the kernel reports it.
    pub dropped: Option<u64>,
    /// CPU time of the thread.
    pub cpu_ns: u64,
}

/// Why an end refused or failed a request.
#[derive(Debug, thiserror::Error)]
pub enum RequestRefusal {
    /// The error text of another process, of [`Reply::Failed`]. Control characters in it are escaped, because the other
    /// process chooses it.
    #[error("{}", visible(.0))]
    Peer(String),
    /// The error of this process.
    #[error(transparent)]
    Here(Box<RequestError>),
    /// The other end knows another secret.
    #[error("the secret is wrong")]
    WrongSecret,
    /// The other end should know the secret but does not prove it.
    #[error("it does not require the secret, so its identity cannot be verified")]
    NoSecret,
}

/// Why the control connection failed.
#[derive(Debug, thiserror::Error)]
pub enum LostReason {
    /// A call on the connection failed.
    #[error("{0}")]
    System(SystemError),
    /// The child was not started.
    #[error("cannot start it: {0}")]
    NotStarted(SystemError),
    /// The child has no standard streams.
    #[error("it has no standard streams")]
    NoStreams,
    /// No random bits for a proof are available.
    #[error("/dev/urandom: {0}")]
    NoRandom(SystemError),
    /// The other end closed it.
    #[error("it was closed at the other end")]
    Closed,
    /// This end closed it.
    #[error("it was closed here")]
    ClosedHere,
    /// The thread that reads has ended.
    #[error("the thread that reads replies has ended")]
    Gone,
    /// A line that is not a reply.
    #[error("{} in: {}", visible(&.error.to_string()), visible(line))]
    NotAReply {
        /// What the JSON parser found.
        error: JsonFault,
        /// Beginning of the line.
        line: String,
    },
    /// The reply to a hello that is not one.
    #[error("it answered a hello with {0:?}")]
    NotAHello(Box<Reply>),
    /// The other end reports that it listens at an address that is neither its own nor the requested one.
    #[error("it listens on {0}, which was not requested")]
    ForeignAddress(SocketAddr),
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// That end refused, or failed at it.
    #[error("{side}: {why}")]
    Refused {
        /// [`Side::name`] of that end.
        side: String,
        /// Its reason.
        why: RequestRefusal,
    },
    /// The process or the connection ended, or it sent something that is not a reply.
    #[error("{side}: the control connection is gone: {why}{}", stderr_text(stderr))]
    Lost {
        /// [`Side::name`] of the other end.
        side: String,
        /// What happened.
        why: LostReason,
        /// What a child wrote to its standard error; empty: nothing, or it is not a child.
        stderr: String,
    },
    /// No reply within the time limit of the caller; it may still arrive.
    #[error("{side}: no answer within {seconds} s")]
    Late {
        /// [`Side::name`] of the other end.
        side: String,
        /// The bound, in whole seconds.
        seconds: u64,
    },
    /// The other end uses another protocol than [`PROTOCOL`].
    #[error(
        "{side} uses protocol {theirs} (ringwise {version}), this end {PROTOCOL}: use the same version of ringwise at both ends"
    )]
    Versions {
        /// [`Side::name`] of the other end.
        side: String,
        /// The protocol's number there.
        theirs: u32,
        /// Version of ringwise there.
        version: String,
    },
}

/// Several lines are allowed, but none of them may look like a line of this protocol.
fn stderr_text(stderr: &str) -> String {
    let lines: Vec<_> = stderr.trim().lines().map(visible).collect();
    if lines.is_empty() { String::new() } else { format!("; its error output: {}", lines.join("\n    ")) }
}

/// One end of a test. At most one request runs; [`Request::Stop`] and [`Request::Count`] may come while one answers or
/// counts.
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

    /// [`Side::start`] and [`Side::finish`] at once, with the errors of both.
    fn ask(&mut self, request: Request, bound: Duration) -> Result<Reply, Error> {
        self.start(request)?;
        self.finish(bound)
    }
}

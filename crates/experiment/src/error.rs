//! What can go wrong in a session, and how it leaves the host.

use std::io;
use std::path::PathBuf;

use ringwise_apply::{Failure, NotPutBack};
use ringwise_bench::file::WriteError;
use ringwise_bench::forward::CountsError;
use ringwise_bench::halving::TooShort;
use ringwise_bench::side::{self, Reply};
use ringwise_model::Unread;
use ringwise_model::words::with_causes;

/// [`std::result::Result`] with the [`Error`] of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What an error means for the session and for the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The caller named something that does not exist.
    Usage,
    /// The measurement is not possible. States that were applied are restored at the end of the session.
    Failed,
    /// `apply` refused before it wrote anything.
    Refused,
    /// A state was applied and restored, or the session was stopped.
    PutBack,
    /// The host is not as it was found.
    NotPutBack,
}

/// Why an interface has no address that the peer can send to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressFault {
    /// The snapshot has no such interface.
    #[error("does not exist")]
    NoDevice,
    /// Its addresses could not be read.
    #[error("has addresses that could not be read: {}", .0.why)]
    Unread(Unread),
    /// It has none, or only link-local ones.
    #[error("has no address that the peer can send to")]
    NoAddress,
}

/// Why a session failed. The text is complete: causes, errno and the words of the kernel or of the other end are part
/// of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// SIGINT or SIGTERM.
    #[error("stopped by a signal")]
    Stopped,
    /// The file of the results exists.
    #[error("{} already exists; results are never overwritten", .0.display())]
    ResultsExist(PathBuf),
    /// The file of the results cannot be written.
    #[error("{}: {error}", .path.display())]
    Results {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// A result that cannot be written as JSON.
    #[error(transparent)]
    Line(#[from] WriteError),
    /// The host under test cannot be read.
    #[error("{}", with_causes(.0))]
    Discover(#[from] ringwise_discover::Error),
    /// A file or a request of the host under test.
    #[error("{0}")]
    Sys(#[from] ringwise_sys::Error),
    /// An interface under test is down before anything is measured.
    #[error("{dev} has no link")]
    NoLink {
        /// The interface.
        dev: String,
    },
    /// An interface under test went down.
    #[error("{dev} lost its link during the measurement")]
    LinkLost {
        /// The interface.
        dev: String,
    },
    /// The link of an interface under test cannot be read any more.
    #[error("{dev} no longer exists, or is down: {error}")]
    LinkGone {
        /// The interface.
        dev: String,
        /// The kernel's error.
        error: ringwise_sys::Error,
    },
    /// Something failed while the link was down. The lost link is reported first, because it is the likely cause.
    #[error("{link}; {error}")]
    WithoutLink {
        /// What happened to the link.
        link: Box<Error>,
        /// What went wrong then.
        error: Box<Error>,
    },
    /// Two readings of the counters have the same time.
    #[error("the clock of this host does not advance: no rate can be computed")]
    ClockStandsStill,
    /// `--detect` was given without calibration blocks.
    #[error("--detect needs --calibrate 2 or more: without it the noise is unknown")]
    NoiseUnknown,
    /// The change that `--detect` requests is too small to be found with this noise.
    #[error(
        "a change of {wanted} % in {metric} would not be found: repeated trials of the first state vary by {noise:.1} %, so \
         {pairs} pairs of trials find {}", .can.map_or("no change of any size".to_string(), |c| format!("changes of {c:.1} % or more"))
    )]
    NotDetectable {
        /// The requested change in per cent.
        wanted: f64,
        /// The metric that should change.
        metric: &'static str,
        /// Spread of the calibration in per cent.
        noise: f64,
        /// Pairs of trials in the session.
        pairs: u32,
        /// The smallest change in per cent that these pairs can find. None: they cannot find any.
        can: Option<f64>,
        /// Pairs that would find it.
        need: u64,
    },

    /// An end refused or failed, or the peer is lost.
    #[error(transparent)]
    Side(#[from] side::Error),
    /// The reply does not match the request.
    #[error("{side}: the reply does not match the request: {reply:?}")]
    Unexpected {
        /// The end that replied.
        side: String,
        /// What it replied.
        reply: Box<Reply>,
    },
    /// The path of this program cannot be found. The program is started again in a network namespace.
    #[error("cannot find the path of the running ringwise program: {0}")]
    NoProgram(io::Error),
    /// A host name that ssh would read as an option.
    #[error("\"{0}\" is not a host name for ssh")]
    NotAHost(String),
    /// The interface under test has no address that the peer can send to.
    #[error("{dev} {why}")]
    NoAddress {
        /// The interface.
        dev: String,
        /// Why it has none.
        why: AddressFault,
    },
    /// Load threads cannot be placed.
    #[error("the CPUs of {who} are unknown")]
    CpusUnknown {
        /// The end.
        who: String,
        /// It is the host under test, else the other end.
        here: bool,
    },
    /// No CPU took packets while a load ran.
    #[error("could not find the CPU that processes the packets")]
    ReceiverNotFound,
    /// The value of `--mix` is not valid.
    #[error("\"{0}\" is not a mix of latency and throughput threads (expected for example 2/3:1/3)")]
    Mix(String),

    /// `/dev/cpu_dma_latency` cannot be held.
    #[error("{0}: the recipe must keep CPUs awake")]
    CpuLatency(ringwise_sys::Error),
    /// Two readings of the counters of the peer's ports cannot be compared.
    #[error(transparent)]
    Counts(#[from] CountsError),
    /// Packets were sent, and the sink received none.
    #[error("no packet arrived at {sink} of the peer. Check: {}", .look_at.join("; "))]
    NothingArrived {
        /// The peer's interface.
        sink: String,
        /// Likely causes, for people.
        look_at: Vec<String>,
    },

    /// Every candidate of a search was ruled out before it began.
    #[error("no candidate is left")]
    NoCandidate,
    /// The budget of a search is too short for its smallest design.
    #[error("{error}; one trial takes {seconds:.1} s here")]
    TooShort {
        /// Trials that fit, and trials that are needed.
        error: TooShort,
        /// Seconds that one trial takes.
        seconds: f64,
    },
    /// The budget of a search was used up before a candidate was proved better.
    #[error("the time limit was reached before a candidate was proven better")]
    TimeOver,

    /// A transaction was refused or could not be written.
    #[error("{}{}", .state.as_ref().map(|s| format!("state {s}: ")).unwrap_or_default(), with_causes(.error))]
    Apply {
        /// The state that was being applied. None: the host was being restored.
        state: Option<String>,
        /// What `apply` reports.
        error: ringwise_apply::Error,
    },
    /// A state failed while it was applied.
    #[error("state {state} could not be applied, and the previous settings were restored: {}", failure_text(failure.as_deref()))]
    NotApplied {
        /// The state.
        state: String,
        /// The write that failed. None: `apply` reports none.
        failure: Option<Box<Failure>>,
        /// False: only in part.
        put_back: bool,
    },
    /// The transaction of a state ended during the trial, so the result may belong to another state.
    #[error("transaction {0} ended while its state was measured (its trial expired, or another program ended it)")]
    TrialEnded(u64),
    /// The guard did not finish within its time.
    #[error("transaction {0} is still being rolled back")]
    StillPuttingBack(u64),
    /// The guard finished and left settings that are not as they were.
    #[error("transaction {transaction} could not be rolled back completely: {}", list(left))]
    PutBackIncomplete {
        /// Its number.
        transaction: u64,
        /// Settings that are not as they were, of this state and of earlier ones.
        left: Vec<NotPutBack>,
    },
}

fn failure_text(failure: Option<&Failure>) -> String {
    failure.map(|f| format!("{}: {}", f.meaning, f.words)).unwrap_or_default()
}

/// A setting that is not as it was, and why.
pub(crate) fn left_text(n: &NotPutBack) -> String {
    format!("{}: {}", n.was.value_text(), n.why)
}

fn list(left: &[NotPutBack]) -> String {
    left.iter().map(left_text).collect::<Vec<_>>().join("; ")
}

impl From<ringwise_apply::Error> for Error {
    fn from(error: ringwise_apply::Error) -> Self {
        Self::Apply { state: None, error }
    }
}

impl Error {
    /// What it means for the session and for the host.
    pub fn class(&self) -> Class {
        match self {
            Self::NotAHost(_) | Self::Mix(_) => Class::Usage,
            Self::WithoutLink { error, .. } => error.class(),
            Self::Apply { error, .. } if error.exit_status() == 6 => Class::Refused,
            Self::Stopped | Self::TrialEnded(_) | Self::NotApplied { put_back: true, .. } => Class::PutBack,
            Self::StillPuttingBack(_) | Self::PutBackIncomplete { .. } | Self::NotApplied { .. } => Class::NotPutBack,
            _ => Class::Failed,
        }
    }
}

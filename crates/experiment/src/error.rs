//! What can go wrong in a session, and how the host is left by it.

use std::io;
use std::path::PathBuf;

use ringwise_bench::halving::TooShort;
use ringwise_bench::side;
use ringwise_model::words::with_causes;

pub type Result<T> = std::result::Result<T, Error>;

/// What an error means for the session and for the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The caller asked for something that does not exist.
    Usage,
    /// It cannot be measured. States that were applied are restored at the end of the session.
    Failed,
    /// `apply` refused before it wrote anything.
    Refused,
    /// A state was applied and restored, or the session was stopped.
    PutBack,
    /// The host is not as it was found.
    NotPutBack,
}

/// The text is complete: causes, errno and the words of the kernel or of the other end are part of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("stopped by a signal")]
    Stopped,
    #[error("{} is there already; results are never written over", .0.display())]
    ResultsExist(PathBuf),
    #[error("{}: {error}", .path.display())]
    Results { path: PathBuf, error: io::Error },
    #[error("{0}")]
    Line(String),
    #[error("{}", with_causes(.0))]
    Discover(#[from] ringwise_discover::Error),
    #[error("{0}")]
    Sys(#[from] ringwise_sys::Error),
    #[error("{dev} has no link")]
    NoLink { dev: String },
    #[error("{dev} has lost its link while it was measured")]
    LinkLost { dev: String },
    #[error("{dev} is not there any more, or is down: {error}")]
    LinkGone { dev: String, error: ringwise_sys::Error },
    /// Of what went wrong without a link the link is the first cause.
    #[error("{link}; {error}")]
    WithoutLink { link: Box<Error>, error: Box<Error> },
    #[error("the clock of this host stands still: nothing can be counted")]
    ClockStandsStill,
    #[error("--detect needs --calibrate 2 or more: without it the noise is not known")]
    NoiseUnknown,
    /// `need`: pairs that would find it.
    #[error(
        "a change of {wanted} % in {metric} would not be found: the first state measured against itself varies by {noise:.1} %, and \
         {pairs} pairs find {}", .can.map_or("none at all".to_string(), |c| format!("{c:.1} % at best"))
    )]
    NotDetectable { wanted: f64, metric: &'static str, noise: f64, pairs: u32, can: Option<f64>, need: u64 },

    #[error(transparent)]
    Side(#[from] side::Error),
    #[error("{side}: {why}")]
    SideFailed { side: String, why: String },
    #[error("{side}: an answer that does not belong to the question: {reply}")]
    Unexpected { side: String, reply: String },
    #[error("this program cannot be found: {0}")]
    NoProgram(io::Error),
    #[error("\"{0}\" is no host for ssh")]
    NotAHost(String),
    #[error("{dev} {why}")]
    NoAddress { dev: String, why: String },
    /// `here`: of the host under test, else of the other end.
    #[error("{who} does not say which CPUs it has")]
    CpusUnknown { who: String, here: bool },
    #[error("which CPU takes the packets could not be found")]
    ReceiverNotFound,
    #[error("\"{0}\" is no mix of latency and throughput threads (right would be e.g. 2/3:1/3)")]
    Mix(String),

    #[error("{0}: the recipe keeps CPUs awake")]
    CpuLatency(ringwise_sys::Error),
    #[error("{0}")]
    Counts(String),
    #[error("nothing that was sent arrived at {sink} of the peer. Look at: {}", .look_at.join("; "))]
    NothingArrived { sink: String, look_at: Vec<String> },

    #[error("there is no candidate")]
    NoCandidate,
    #[error("{error}; one takes {seconds:.1} s here")]
    TooShort { error: TooShort, seconds: f64 },
    #[error("the time was over before one was proved better")]
    TimeOver,

    /// `state`: while it was applied. None: while the host was restored.
    #[error("{}{}", .state.as_ref().map(|s| format!("state {s}: ")).unwrap_or_default(), with_causes(.error))]
    Apply { state: Option<String>, error: ringwise_apply::Error },
    /// `put_back` false: only in part.
    #[error("state {state} could not be applied and was put back: {why}")]
    NotApplied { state: String, why: String, put_back: bool },
    #[error("transaction {0} was ended while its state was measured (by the clock, or by somebody)")]
    TrialEnded(u64),
    #[error("transaction {0} is still being put back")]
    StillPuttingBack(u64),
    #[error("transaction {transaction} could not be put back whole: {}", .left.join("; "))]
    PutBackIncomplete { transaction: u64, left: Vec<String> },
}

impl From<ringwise_apply::Error> for Error {
    fn from(error: ringwise_apply::Error) -> Self {
        Self::Apply { state: None, error }
    }
}

impl Error {
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

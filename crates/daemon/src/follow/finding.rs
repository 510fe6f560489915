//! What the load of an interface suggests, as it is published.

use std::fmt;

use ringwise_adapt::load::SuspectReason;
use ringwise_adapt::propose::{Elephant, Proposal};
use serde::{Deserialize, Serialize};

/// The last finding about the load of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadFinding {
    /// The interface.
    pub interface: String,
    /// Seconds since 1970.
    pub unix_time: u64,
    /// What was found.
    pub finding: Finding,
}

/// What was found. Loads are shares of the time of a CPU, in percent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The load is uneven, and no better table was found yet.
    Uneven {
        /// The CPU that is busiest with packets.
        cpu: u32,
        /// Its load, if the load is the reason; `None`: its queue drops packets.
        busy_percent: Option<u32>,
        /// The mean load of the CPUs of the interface.
        mean_percent: Option<u32>,
        /// Why no table is proposed; `None`: packets are being counted.
        why_not: Option<String>,
    },
    /// Another table would be better.
    WouldMove {
        /// The entries, in the order of the table.
        moves: Vec<EntryMove>,
        /// The load of the busiest CPU.
        before_percent: u32,
        /// Its load, or that of another CPU, afterwards.
        predicted_percent: u32,
    },
    /// One entry has more than any CPU can balance.
    Elephant {
        /// The entry.
        entry: u32,
        /// Its receive queue.
        queue: u32,
        /// Its load.
        percent: u32,
    },
    /// The service has moved entries of the table.
    Moved {
        /// The entries, in the order of the table.
        moves: Vec<EntryMove>,
        /// The load of the busiest CPU before.
        before_percent: u32,
        /// Its load, or that of another CPU, as predicted.
        predicted_percent: u32,
    },
    /// The service has taken its last move back.
    TakenBack {
        /// Why.
        why: String,
    },
    /// The service moves nothing on this interface at present.
    Off {
        /// Why.
        why: String,
    },
    /// The load is even again.
    Even,
}

/// An entry that would get another queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryMove {
    /// Index into the table.
    pub entry: u32,
    /// Its receive queue.
    pub from: u32,
    /// The receive queue that would be better.
    pub to: u32,
}

fn step(p: &Proposal) -> (Vec<EntryMove>, u32, u32) {
    let most = |loads: &std::collections::BTreeMap<u32, f64>| whole(loads.values().copied().fold(0.0, f64::max));
    let mut moves: Vec<EntryMove> =
        p.moves.iter().map(|m| EntryMove { entry: m.entry as u32, from: m.from, to: m.to }).collect();
    moves.sort_unstable_by_key(|m| m.entry);
    (moves, most(&p.before.loads), most(&p.predicted.loads))
}

fn list(moves: &[EntryMove]) -> String {
    let one = |m: &EntryMove| format!("{} from queue {} to {}", m.entry, m.from, m.to);
    moves.iter().map(one).collect::<Vec<_>>().join(", entry ")
}

/// Tables and loads are small numbers.
fn whole(percent: f64) -> u32 {
    percent.round().clamp(0.0, 100_000.0) as u32
}

impl Finding {
    /// Of a load that is suspect.
    pub(crate) fn uneven(why: SuspectReason, why_not: Option<String>) -> Self {
        match why {
            SuspectReason::UnevenCpus { cpu, busy_percent, mean_percent, .. } => Self::Uneven {
                cpu,
                busy_percent: Some(whole(busy_percent)),
                mean_percent: Some(whole(mean_percent)),
                why_not,
            },
            SuspectReason::DropsOnHotQueue { cpu, .. } => {
                Self::Uneven { cpu, busy_percent: None, mean_percent: None, why_not }
            }
        }
    }

    pub(crate) fn would_move(p: &Proposal) -> Self {
        let (moves, before_percent, predicted_percent) = step(p);
        Self::WouldMove { moves, before_percent, predicted_percent }
    }

    pub(crate) fn moved(p: &Proposal) -> Self {
        let (moves, before_percent, predicted_percent) = step(p);
        Self::Moved { moves, before_percent, predicted_percent }
    }

    /// Loads before and as predicted, of a step.
    pub(crate) fn percent(&self) -> Option<(u32, u32)> {
        match self {
            Self::WouldMove { before_percent, predicted_percent, .. }
            | Self::Moved { before_percent, predicted_percent, .. } => Some((*before_percent, *predicted_percent)),
            _ => None,
        }
    }

    pub(crate) fn elephant(e: &Elephant) -> Self {
        Self::Elephant { entry: e.entry as u32, queue: e.queue, percent: whole(e.points) }
    }

    /// Whether it is worth a line in the log after the other one.
    pub(crate) fn is_news_after(&self, earlier: Option<&Self>) -> bool {
        match (self, earlier) {
            (Self::Uneven { cpu, why_not, .. }, Some(Self::Uneven { cpu: before, why_not: earlier, .. })) => {
                cpu != before || why_not.is_some() != earlier.is_some()
            }
            // It was counted again, and a better table was found before.
            (
                Self::Uneven { why_not: None, .. },
                Some(Self::WouldMove { .. } | Self::Moved { .. } | Self::Elephant { .. }),
            ) => false,
            (Self::Moved { .. } | Self::TakenBack { .. }, _) => true,
            (Self::Even, None) => false,
            // Only loads differ a little.
            (Self::WouldMove { moves, .. }, Some(Self::WouldMove { moves: earlier, .. })) => moves != earlier,
            (Self::Elephant { entry, .. }, Some(Self::Elephant { entry: earlier, .. })) => entry != earlier,
            (now, earlier) => Some(now) != earlier,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uneven { cpu, busy_percent, mean_percent, why_not } => {
                match (busy_percent, mean_percent) {
                    (Some(busy), Some(mean)) => {
                        write!(
                            f,
                            "uneven load: CPU {cpu} spends {busy} % of its time on packets, the mean is {mean} %"
                        )?;
                    }
                    _ => write!(f, "uneven load: a receive queue on CPU {cpu} drops packets")?,
                }
                match why_not {
                    Some(why) => write!(f, "; no better table: {why}"),
                    None => Ok(()),
                }
            }
            Self::WouldMove { moves, before_percent, predicted_percent } => write!(
                f,
                "another RSS table would be better: busiest CPU {predicted_percent} % instead of {before_percent} % \
                 (predicted) with entry {}",
                list(moves)
            ),
            Self::Moved { moves, before_percent, predicted_percent } => write!(
                f,
                "changed the RSS table: busiest CPU {predicted_percent} % instead of {before_percent} % (predicted) with \
                 entry {}",
                list(moves)
            ),
            Self::TakenBack { why } => write!(f, "restored the entries of the last change of the RSS table: {why}"),
            Self::Off { why } => write!(f, "the RSS table is not changed at present: {why}"),
            Self::Elephant { entry, queue, percent } => write!(
                f,
                "entry {entry} of the RSS table (queue {queue}) takes {percent} % of a CPU, and no table can split it; a \
                 flow rule or RFS may help"
            ),
            Self::Even => f.write_str("the load is even again"),
        }
    }
}

//! What the load of an interface suggests, as it is published.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ringwise_adapt::groups::GroupChange;
use ringwise_adapt::judge::RestoreReason;
use ringwise_adapt::load::SuspectReason;
use ringwise_adapt::moves::{Crowded, InterruptMove, Moves, RpsMove, TableMove};
use ringwise_adapt::propose::{Elephant, Proposal};
use ringwise_model::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};

use super::Subject;

/// The last finding about the load of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadFinding {
    /// The interface.
    pub interface: String,
    /// Seconds since 1970.
    pub unix_time: u64,
    /// What was found.
    pub finding: FollowFinding,
}

/// What was found. Loads are shares of the time of a CPU, in percent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FollowFinding {
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
    /// Another CPU would serve the interrupt of a queue better.
    WouldMoveInterrupt {
        /// The interrupt.
        interrupt: InterruptMoved,
        /// How busy the CPU is that serves it, programs included.
        before_percent: u32,
        /// How busy the busier of both CPUs would be; if programs are the reason, the new one.
        predicted_percent: u32,
    },
    /// The service has moved the interrupt of a queue.
    MovedInterrupt {
        /// The interrupt.
        interrupt: InterruptMoved,
        /// How busy the CPU was that served it, programs included.
        before_percent: u32,
        /// How busy the busier of both CPUs is, as predicted; if programs are the reason, the new one.
        predicted_percent: u32,
    },
    /// The service has taken its last move of an interrupt back.
    InterruptTakenBack {
        /// Why.
        why: String,
    },
    /// Another RPS mask of the only receive queue would be better.
    WouldChangeMask {
        /// The mask.
        mask: MaskChanged,
        /// How busy the busiest CPU is that processes packets, programs included.
        before_percent: u32,
        /// How busy the busiest of them would be.
        predicted_percent: u32,
    },
    /// The service has changed the RPS mask of the only receive queue.
    ChangedMask {
        /// The mask.
        mask: MaskChanged,
        /// How busy the busiest CPU was that processed packets, programs included.
        before_percent: u32,
        /// How busy the busiest of them is, as predicted.
        predicted_percent: u32,
    },
    /// The service has restored the RPS mask from before its last change.
    MaskTakenBack {
        /// Why.
        why: String,
    },
    /// Other sizes of the groups of queues, or another policy, would suit the traffic.
    WouldRegroup {
        /// The groups.
        groups: GroupsChanged,
        /// Why the service does not change them although it was requested. `None`: it only reports.
        why_not: Option<String>,
    },
    /// The service has changed the groups of queues.
    Regrouped {
        /// The groups.
        groups: GroupsChanged,
    },
    /// The service has restored the groups from before its last change.
    GroupsTakenBack {
        /// Why.
        why: String,
    },
    /// The service moves nothing on this interface at present.
    Off {
        /// Why.
        why: String,
    },
    /// The groups of queues suit the traffic again.
    GroupsSuit,
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

/// An interrupt that gets, or would get, another CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptMoved {
    /// The receive queues that it serves.
    pub queues: Vec<u32>,
    /// Its CPU.
    pub from_cpu: u32,
    /// The other CPU.
    pub to_cpu: u32,
    /// The time that programs take of its CPU, if they are the reason. `None`: other queues are.
    pub programs_percent: Option<u32>,
}

impl InterruptMoved {
    fn of(m: &InterruptMove) -> Self {
        let programs_percent = match m.why {
            Crowded::Programs { percent } => Some(whole(percent)),
            Crowded::Queues => None,
        };
        Self { queues: m.queues.clone(), from_cpu: m.from, to_cpu: m.to, programs_percent }
    }
}

impl fmt::Display for InterruptMoved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.queues.len() == 1 { "" } else { "s" };
        let queues = self.queues.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "the interrupt of receive queue{s} {queues} from CPU {} to {}", self.from_cpu, self.to_cpu)
    }
}

/// An RPS mask that changes, or would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskChanged {
    /// The receive queue.
    pub queue: u32,
    /// CPUs of the mask before, ascending. Empty: RPS is off.
    pub from_cpus: Vec<u32>,
    /// CPUs of the mask afterwards, ascending.
    pub to_cpus: Vec<u32>,
    /// The CPU that is too busy.
    pub busy_cpu: u32,
}

impl MaskChanged {
    fn of(m: &RpsMove) -> Self {
        let list = |cpus: &BTreeSet<u32>| cpus.iter().copied().collect();
        Self { queue: m.queue, from_cpus: list(&m.from), to_cpus: list(&m.to), busy_cpu: m.cpu }
    }
}

impl fmt::Display for MaskChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = |cpus: &[u32]| cpus.iter().map(|c| CpuId(*c)).collect::<CpuSet>();
        let from = match self.from_cpus.is_empty() {
            true => "off".to_string(),
            false => format!("CPUs {}", set(&self.from_cpus)),
        };
        write!(f, "the RPS mask of receive queue {} from {from} to CPUs {}", self.queue, set(&self.to_cpus))
    }
}

/// Groups of queues that change, or would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupsChanged {
    /// Queues of the latency group before.
    pub from_latency_queues: u32,
    /// Queues of the latency group afterwards.
    pub to_latency_queues: u32,
    /// All receive queues of the interface.
    pub of_queues: u32,
    /// Policy of the bulk queues before.
    pub from_policy: String,
    /// Policy of the bulk queues afterwards.
    pub to_policy: String,
    /// Mean busy share of the CPUs of the bulk queues in the sample. `None`: unknown.
    pub busy_percent: Option<u32>,
}

impl GroupsChanged {
    pub(crate) fn of(change: GroupChange, of_queues: u32, busy_percent: Option<u32>) -> Self {
        Self {
            from_latency_queues: change.from.latency_queues,
            to_latency_queues: change.to.latency_queues,
            of_queues,
            from_policy: change.from.policy.name().into(),
            to_policy: change.to.policy.name().into(),
            busy_percent,
        }
    }

    /// Whether both are the same change; the load differs a little each time.
    fn is_same(&self, other: &Self) -> bool {
        Self { busy_percent: None, ..self.clone() } == Self { busy_percent: None, ..other.clone() }
    }
}

impl fmt::Display for GroupsChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.from_latency_queues != self.to_latency_queues;
        if sizes {
            let Self { from_latency_queues: from, to_latency_queues: to, of_queues, .. } = self;
            write!(f, "{to} of {of_queues} queues for latency instead of {from}")?;
        }
        if self.from_policy != self.to_policy {
            let comma = if sizes { ", and " } else { "" };
            write!(f, "{comma}policy {} for the bulk queues instead of {}", self.to_policy, self.from_policy)?;
            if let Some(busy) = self.busy_percent {
                write!(f, ", whose CPUs are busy for {busy} % of their time")?;
            }
        }
        Ok(())
    }
}

/// What another mask changes.
struct MaskGain<'a> {
    mask: &'a MaskChanged,
    before_percent: u32,
    predicted_percent: u32,
}

impl fmt::Display for MaskGain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mask, before_percent, predicted_percent } = self;
        write!(
            f,
            "{mask}: CPU {} is busy for {before_percent} % of its time; the busiest CPU with packets will be busy for \
             {predicted_percent} % (predicted)",
            mask.busy_cpu
        )
    }
}

fn table_step(p: &Proposal, list: &[TableMove]) -> (Vec<EntryMove>, u32, u32) {
    let mut moves: Vec<EntryMove> =
        list.iter().map(|m| EntryMove { entry: m.entry as u32, from: m.from, to: m.to }).collect();
    moves.sort_unstable_by_key(|m| m.entry);
    (moves, most(&p.before.loads), most(&p.predicted.loads))
}

fn most(loads: &BTreeMap<u32, f64>) -> u32 {
    whole(loads.values().copied().fold(0.0, f64::max))
}

/// What the move of an interrupt changes.
struct Gain<'a> {
    interrupt: &'a InterruptMoved,
    before_percent: u32,
    predicted_percent: u32,
}

impl fmt::Display for Gain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interrupt: InterruptMoved { from_cpu, to_cpu, .. }, before_percent, predicted_percent } = self;
        match self.interrupt.programs_percent {
            Some(programs) => write!(
                f,
                "CPU {from_cpu} is busy for {before_percent} % of its time, {programs} % with programs; CPU {to_cpu} will be busy for \
                 {predicted_percent} % (predicted)"
            ),
            None => write!(
                f,
                "CPU {from_cpu} serves several queues and is busy for {before_percent} % of its time; the busier of both \
                 CPUs will be busy for {predicted_percent} % (predicted)"
            ),
        }
    }
}

fn list(moves: &[EntryMove]) -> String {
    let one = |m: &EntryMove| format!("{} from queue {} to {}", m.entry, m.from, m.to);
    moves.iter().map(one).collect::<Vec<_>>().join(", entry ")
}

/// Tables and loads are small numbers.
fn whole(percent: f64) -> u32 {
    percent.round().clamp(0.0, 100_000.0) as u32
}

impl FollowFinding {
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
        match &p.moves {
            Moves::Table(list) => {
                let (moves, before_percent, predicted_percent) = table_step(p, list);
                Self::WouldMove { moves, before_percent, predicted_percent }
            }
            Moves::Interrupt(m) => {
                let (before_percent, predicted_percent) = (most(&p.before.loads), most(&p.predicted.loads));
                Self::WouldMoveInterrupt { interrupt: InterruptMoved::of(m), before_percent, predicted_percent }
            }
            Moves::Rps(m) => {
                let (before_percent, predicted_percent) = (most(&p.before.loads), most(&p.predicted.loads));
                Self::WouldChangeMask { mask: MaskChanged::of(m), before_percent, predicted_percent }
            }
        }
    }

    pub(crate) fn moved(p: &Proposal) -> Self {
        match Self::would_move(p) {
            Self::WouldMove { moves, before_percent, predicted_percent } => {
                Self::Moved { moves, before_percent, predicted_percent }
            }
            Self::WouldMoveInterrupt { interrupt, before_percent, predicted_percent } => {
                Self::MovedInterrupt { interrupt, before_percent, predicted_percent }
            }
            Self::WouldChangeMask { mask, before_percent, predicted_percent } => {
                Self::ChangedMask { mask, before_percent, predicted_percent }
            }
            other => other,
        }
    }

    /// Of a step that is taken back.
    pub(crate) fn taken_back(moves: &Moves, why: RestoreReason) -> Self {
        let why = why.to_string();
        match moves {
            Moves::Table(_) => Self::TakenBack { why },
            Moves::Interrupt(_) => Self::InterruptTakenBack { why },
            Moves::Rps(_) => Self::MaskTakenBack { why },
        }
    }

    /// Loads before and as predicted, of a step.
    pub(crate) fn percent(&self) -> Option<(u32, u32)> {
        match self {
            Self::WouldMove { before_percent, predicted_percent, .. }
            | Self::Moved { before_percent, predicted_percent, .. }
            | Self::WouldMoveInterrupt { before_percent, predicted_percent, .. }
            | Self::MovedInterrupt { before_percent, predicted_percent, .. }
            | Self::WouldChangeMask { before_percent, predicted_percent, .. }
            | Self::ChangedMask { before_percent, predicted_percent, .. } => {
                Some((*before_percent, *predicted_percent))
            }
            _ => None,
        }
    }

    pub(crate) fn elephant(e: &Elephant) -> Self {
        Self::Elephant { entry: e.entry as u32, queue: e.queue, percent: whole(e.points) }
    }

    /// Whether it is about groups of queues: their load may be even.
    pub fn is_about_groups(&self) -> bool {
        matches!(
            self,
            Self::WouldRegroup { .. } | Self::Regrouped { .. } | Self::GroupsTakenBack { .. } | Self::GroupsSuit
        )
    }

    pub(super) fn subject(&self) -> Subject {
        match self {
            Self::WouldMoveInterrupt { .. } | Self::WouldChangeMask { .. } => Subject::BetterElsewhere,
            Self::MovedInterrupt { .. }
            | Self::InterruptTakenBack { .. }
            | Self::ChangedMask { .. }
            | Self::MaskTakenBack { .. } => Subject::ChangedElsewhere,
            _ => Subject::Table,
        }
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
                Some(
                    Self::WouldMove { .. }
                    | Self::Moved { .. }
                    | Self::WouldMoveInterrupt { .. }
                    | Self::MovedInterrupt { .. }
                    | Self::WouldChangeMask { .. }
                    | Self::ChangedMask { .. }
                    | Self::Elephant { .. },
                ),
            ) => false,
            (
                Self::Moved { .. }
                | Self::TakenBack { .. }
                | Self::MovedInterrupt { .. }
                | Self::InterruptTakenBack { .. }
                | Self::ChangedMask { .. }
                | Self::MaskTakenBack { .. }
                | Self::Regrouped { .. }
                | Self::GroupsTakenBack { .. },
                _,
            ) => true,
            (Self::Even | Self::GroupsSuit, None) => false,
            (Self::GroupsSuit, Some(earlier)) => matches!(earlier, Self::WouldRegroup { .. }),
            // Only loads differ a little.
            (Self::WouldMove { moves, .. }, Some(Self::WouldMove { moves: earlier, .. })) => moves != earlier,
            (Self::WouldMoveInterrupt { interrupt, .. }, Some(Self::WouldMoveInterrupt { interrupt: earlier, .. })) => {
                interrupt != earlier
            }
            (Self::WouldChangeMask { mask, .. }, Some(Self::WouldChangeMask { mask: earlier, .. })) => mask != earlier,
            (Self::WouldRegroup { groups, why_not }, Some(Self::WouldRegroup { groups: earlier, why_not: before })) => {
                !groups.is_same(earlier) || why_not != before
            }
            (Self::Elephant { entry, .. }, Some(Self::Elephant { entry: earlier, .. })) => entry != earlier,
            (now, earlier) => Some(now) != earlier,
        }
    }
}

impl fmt::Display for FollowFinding {
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
            Self::WouldMoveInterrupt { interrupt, before_percent, predicted_percent } => {
                let gain = Gain { interrupt, before_percent: *before_percent, predicted_percent: *predicted_percent };
                write!(f, "it would be better to move {interrupt}: {gain}")
            }
            Self::MovedInterrupt { interrupt, before_percent, predicted_percent } => {
                let gain = Gain { interrupt, before_percent: *before_percent, predicted_percent: *predicted_percent };
                write!(f, "moved {interrupt}: {gain}")
            }
            Self::InterruptTakenBack { why } => write!(f, "moved the last interrupt back to its CPU: {why}"),
            Self::WouldChangeMask { mask, before_percent, predicted_percent } => {
                let gain = MaskGain { mask, before_percent: *before_percent, predicted_percent: *predicted_percent };
                write!(f, "it would be better to change {gain}")
            }
            Self::ChangedMask { mask, before_percent, predicted_percent } => {
                let gain = MaskGain { mask, before_percent: *before_percent, predicted_percent: *predicted_percent };
                write!(f, "changed {gain}")
            }
            Self::MaskTakenBack { why } => write!(f, "restored the RPS mask from before the last change: {why}"),
            Self::WouldRegroup { groups, why_not } => {
                write!(f, "other groups of queues would suit the traffic: {groups}")?;
                match why_not {
                    Some(why) => write!(f, "; not changed: {why}"),
                    None => Ok(()),
                }
            }
            Self::Regrouped { groups } => write!(f, "changed the groups of queues: {groups}"),
            Self::GroupsTakenBack { why } => {
                write!(f, "restored the groups of queues from before the last change: {why}")
            }
            Self::Off { why } => write!(f, "nothing is moved at present: {why}"),
            Self::Elephant { entry, queue, percent } => write!(
                f,
                "entry {entry} of the RSS table (queue {queue}) takes {percent} % of a CPU, and no table can split it; a \
                 flow rule or RFS may help: see the flow with ringwise watch --per-flow, and ringwise help rfs"
            ),
            Self::GroupsSuit => f.write_str("the groups of queues suit the traffic again"),
            Self::Even => f.write_str("the load is even again"),
        }
    }
}

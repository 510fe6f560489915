//! What the service changed because of the load, and why, as it is counted. The set of reasons is fixed, so that each is a label of a metric.

use std::collections::BTreeSet;

use ringwise_adapt::groups::GroupChange;
use ringwise_adapt::judge::RestoreReason;
use ringwise_adapt::moves::{BusyFor, Crowded, Moves};
use ringwise_knob::{Address, Setting};
use serde::{Deserialize, Serialize};

/// What was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actuator {
    /// Entries of the RSS table.
    Table,
    /// The CPU of an interrupt, with XPS.
    Interrupt,
    /// The RPS mask of a single queue.
    Rps,
    /// The groups of queues.
    Groups,
}

impl Actuator {
    /// As a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Interrupt => "interrupt",
            Self::Rps => "rps",
            Self::Groups => "groups",
        }
    }

    pub(crate) fn of(moves: &Moves) -> Self {
        match moves {
            Moves::Table(_) => Self::Table,
            Moves::Interrupt(_) => Self::Interrupt,
            Moves::Rps(_) => Self::Rps,
        }
    }

    /// Of settings that were restored together. `groups`: the groups of their interface were changed.
    pub(crate) fn of_settings(settings: &[Setting], groups: bool) -> BTreeSet<Self> {
        let of = |s: &Setting| match s.address()? {
            _ if groups => Some(Self::Groups),
            Address::RssTable { .. } => Some(Self::Table),
            Address::IrqCpus { .. } => Some(Self::Interrupt),
            Address::RpsCpus { .. } => Some(Self::Rps),
            // It follows the interrupt.
            Address::XpsCpus { .. } => None,
            _ => Some(Self::Groups),
        };
        settings.iter().filter_map(of).collect()
    }
}

/// Why it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveReason {
    /// The load of the CPUs was uneven.
    UnevenLoad,
    /// A CPU served several queues.
    SharedCpu,
    /// A CPU was busy with programs.
    Programs,
    /// The CPU of a single queue was busy with packets.
    Packets,
    /// A CPU of the RPS mask was busy.
    BusyMaskCpu,
    /// Other sizes of the groups suit the traffic.
    Traffic,
    /// The CPUs of the bulk queues were busy, or had become idle.
    BulkLoad,
    /// Restored: it gained less than half of what was predicted.
    TooLittleGain,
    /// Restored: more packets were dropped.
    Drops,
    /// Restored: twice as many segments arrived out of order.
    OutOfOrder,
    /// Restored: the bulk queues interrupted as often as before.
    AsManyInterrupts,
    /// Restored: the effect could not be measured.
    NotMeasured,
    /// Restored: a write took the link down.
    LinkWentDown,
    /// Restored: the link, the driver, the queues or other settings of the interface changed.
    InterfaceChanged,
    /// Restored: CPUs went online or offline, or were isolated.
    CpusChanged,
    /// Restored: the service must not change the interface any more, or nothing of it continues what was changed.
    NotContinued,
    /// Restored: something else of the interface changes instead.
    Replaced,
}

impl MoveReason {
    /// As a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnevenLoad => "uneven_load",
            Self::SharedCpu => "shared_cpu",
            Self::Programs => "programs",
            Self::Packets => "packets",
            Self::BusyMaskCpu => "busy_mask_cpu",
            Self::Traffic => "traffic",
            Self::BulkLoad => "bulk_load",
            Self::TooLittleGain => "too_little_gain",
            Self::Drops => "drops",
            Self::OutOfOrder => "out_of_order",
            Self::AsManyInterrupts => "as_many_interrupts",
            Self::NotMeasured => "not_measured",
            Self::LinkWentDown => "link_went_down",
            Self::InterfaceChanged => "interface_changed",
            Self::CpusChanged => "cpus_changed",
            Self::NotContinued => "not_continued",
            Self::Replaced => "replaced",
        }
    }

    /// Of a step.
    pub(crate) fn of_step(moves: &Moves) -> Self {
        match moves {
            Moves::Table(_) => Self::UnevenLoad,
            Moves::Interrupt(m) => match m.why {
                Crowded::Queues => Self::SharedCpu,
                Crowded::Programs { .. } => Self::Programs,
            },
            Moves::Rps(m) => match m.why {
                BusyFor::Queue => Self::Packets,
                BusyFor::Mask => Self::BusyMaskCpu,
            },
        }
    }

    /// Of a change of groups.
    pub(crate) fn of_groups(change: GroupChange) -> Self {
        match change.from.latency_queues == change.to.latency_queues {
            true => Self::BulkLoad,
            false => Self::Traffic,
        }
    }
}

impl From<RestoreReason> for MoveReason {
    fn from(why: RestoreReason) -> Self {
        match why {
            RestoreReason::TooLittle { .. } => Self::TooLittleGain,
            RestoreReason::Drops { .. } => Self::Drops,
            RestoreReason::OutOfOrder { .. } => Self::OutOfOrder,
            RestoreReason::AsManyInterrupts { .. } => Self::AsManyInterrupts,
            RestoreReason::NotMeasured => Self::NotMeasured,
        }
    }
}

/// How often it was changed for this reason since the service started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveCount {
    /// The interface.
    pub interface: String,
    /// What was changed.
    pub actuator: Actuator,
    /// Why.
    pub reason: MoveReason,
    /// Number of changes; one step may move several entries.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Actuator, MoveReason};

    const ACTUATORS: [Actuator; 4] = [Actuator::Table, Actuator::Interrupt, Actuator::Rps, Actuator::Groups];
    const REASONS: [MoveReason; 17] = [
        MoveReason::UnevenLoad,
        MoveReason::SharedCpu,
        MoveReason::Programs,
        MoveReason::Packets,
        MoveReason::BusyMaskCpu,
        MoveReason::Traffic,
        MoveReason::BulkLoad,
        MoveReason::TooLittleGain,
        MoveReason::Drops,
        MoveReason::OutOfOrder,
        MoveReason::AsManyInterrupts,
        MoveReason::NotMeasured,
        MoveReason::LinkWentDown,
        MoveReason::InterfaceChanged,
        MoveReason::CpusChanged,
        MoveReason::NotContinued,
        MoveReason::Replaced,
    ];

    #[test]
    fn labels_are_the_names_in_the_published_state() {
        let of = |value: serde_json::Value| value.as_str().unwrap().to_string();
        for a in ACTUATORS {
            assert_eq!(of(serde_json::to_value(a).unwrap()), a.name());
        }
        for r in REASONS {
            assert_eq!(of(serde_json::to_value(r).unwrap()), r.name());
        }
        let names: BTreeSet<&str> = REASONS.iter().map(|r| r.name()).collect();
        assert_eq!(names.len(), REASONS.len());
    }
}

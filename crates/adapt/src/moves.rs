//! What a step moves.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::limits::EntryShift;

/// What a step moves. In JSON the entries are a list, and an interrupt and a mask are objects with different keys, so states of earlier
/// versions can be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Moves {
    /// Entries of the indirection table.
    Table(Vec<TableMove>),
    /// The interrupt of one or more receive queues.
    Interrupt(InterruptMove),
    /// The RPS mask of a device with one receive queue.
    Rps(RpsMove),
}

/// Why no interrupt moves, or no mask changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoStep {
    /// Loads are known in too few samples.
    TooFewTimes {
        /// In so many.
        known: u32,
    },
    /// No CPU that processes the packets of the queues is far above the mean.
    Even,
    /// No step within the limits is worth it, or what the packets of the queues take is unknown.
    NotWorthIt,
}

/// An entry of the table that gets another queue.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TableMove {
    /// Index into the table.
    pub entry: usize,
    /// Its queue: if the table has another one when it is written, another program has changed it.
    pub from: u32,
    /// Its new queue.
    pub to: u32,
    /// Packets that it received while they were counted.
    pub packets: u64,
    /// The load that moves with it, in points of a CPU.
    pub points: f64,
}

/// An interrupt that gets another CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterruptMove {
    /// The receive queues that it serves.
    pub queues: Vec<u32>,
    /// Its CPU: if another one serves the queues when it is written, another program has changed it.
    pub from: u32,
    /// Its new CPU.
    pub to: u32,
    /// The load that moves with it, in points of a CPU.
    pub points: f64,
    /// Why it moves.
    pub why: Crowded,
}

/// An RPS mask that changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpsMove {
    /// The receive queue.
    pub queue: u32,
    /// The CPUs of its mask: if it has others when it is written, another program has changed it. Empty: RPS is off.
    pub from: BTreeSet<u32>,
    /// The CPUs of its new mask.
    pub to: BTreeSet<u32>,
    /// The CPU that is too busy.
    pub cpu: u32,
    /// Why it changes.
    pub why: BusyFor,
}

/// What a CPU that is too busy does for a device with one receive queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BusyFor {
    /// It serves the queue, and RPS is off.
    Queue,
    /// It is in the mask.
    Mask,
}

impl RpsMove {
    /// The CPUs that process packets before (`true`) or after the step.
    pub(crate) fn processing(&self, before: bool) -> BTreeSet<u32> {
        let mask = if before { &self.from } else { &self.to };
        match self.why {
            // The CPU of the queue keeps a part of the work.
            BusyFor::Queue => mask.iter().copied().chain([self.cpu]).collect(),
            BusyFor::Mask => mask.clone(),
        }
    }
}

/// Two masks have the same value only by chance (FNV-1a).
fn fingerprint(mask: &BTreeSet<u32>) -> u32 {
    mask.iter()
        .flat_map(|cpu| cpu.to_le_bytes())
        .fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// What a queue shares its CPU with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Crowded {
    /// With other queues.
    Queues,
    /// With programs, which take at least as much time as the packets.
    Programs {
        /// Time of the CPU that is not spent on packets, in percent.
        percent: f64,
    },
}

impl Moves {
    /// The moves that restore what was before.
    #[must_use]
    pub fn back(&self) -> Self {
        match self {
            Self::Table(list) => Self::Table(list.iter().map(|m| TableMove { from: m.to, to: m.from, ..*m }).collect()),
            Self::Interrupt(m) => Self::Interrupt(InterruptMove { from: m.to, to: m.from, ..m.clone() }),
            Self::Rps(m) => Self::Rps(RpsMove { from: m.to.clone(), to: m.from.clone(), ..m.clone() }),
        }
    }

    /// Entries with their queues, queues with their CPUs, or a queue with its masks.
    pub fn shifts(&self) -> Vec<EntryShift> {
        match self {
            Self::Table(list) => list.iter().map(|m| EntryShift { entry: m.entry, from: m.from, to: m.to }).collect(),
            Self::Interrupt(m) => {
                // The limits count interrupts, not queues.
                let first = m.queues.first().map(|q| EntryShift { entry: *q as usize, from: m.from, to: m.to });
                first.into_iter().collect()
            }
            Self::Rps(m) => {
                vec![EntryShift { entry: m.queue as usize, from: fingerprint(&m.from), to: fingerprint(&m.to) }]
            }
        }
    }

    /// Entries of the table that move.
    pub fn entries(&self) -> &[TableMove] {
        match self {
            Self::Table(list) => list,
            Self::Interrupt(_) | Self::Rps(_) => &[],
        }
    }

    /// The interrupt that moves.
    pub fn interrupt(&self) -> Option<&InterruptMove> {
        match self {
            Self::Table(_) | Self::Rps(_) => None,
            Self::Interrupt(m) => Some(m),
        }
    }

    /// The mask that changes.
    pub fn rps(&self) -> Option<&RpsMove> {
        match self {
            Self::Table(_) | Self::Interrupt(_) => None,
            Self::Rps(m) => Some(m),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_earlier_versions_can_be_read() {
        let text = r#"[{"entry":3,"from":0,"to":1,"packets":9,"points":1.5}]"#;
        let entry = TableMove { entry: 3, from: 0, to: 1, packets: 9, points: 1.5 };
        let table = Moves::Table(vec![entry]);
        assert_eq!(serde_json::from_str::<Moves>(text).unwrap(), table);
        assert_eq!(serde_json::to_string(&table).unwrap(), text);
        let programs = Crowded::Programs { percent: 80.0 };
        let one = InterruptMove { queues: vec![2, 6], from: 1, to: 5, points: 20.0, why: programs };
        let one = Moves::Interrupt(one);
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Moves>(&text).unwrap(), one);
        assert_eq!(one.shifts(), [EntryShift { entry: 2, from: 1, to: 5 }]);
        assert_eq!(one.back().back(), one);
        let mask = |cpus: &[u32]| cpus.iter().copied().collect();
        let m = RpsMove { queue: 0, from: mask(&[]), to: mask(&[2, 3]), cpu: 0, why: BusyFor::Queue };
        let m = Moves::Rps(m);
        let text = serde_json::to_string(&m).unwrap();
        assert_eq!(serde_json::from_str::<Moves>(&text).unwrap(), m);
        assert_eq!(m.back().back(), m);
        let (there, back) = (m.shifts()[0], m.back().shifts()[0]);
        assert_eq!((there.from, there.to), (back.to, back.from));
        assert_ne!(there.from, there.to, "the limits distinguish both masks");
    }
}

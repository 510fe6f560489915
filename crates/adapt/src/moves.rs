//! What a step moves.

use serde::{Deserialize, Serialize};

use crate::limits::Shift;

/// What a step moves. In JSON the entries are a list and an interrupt is an object, so states of earlier versions can be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Moves {
    /// Entries of the indirection table.
    Table(Vec<TableMove>),
    /// The interrupt of one or more receive queues.
    Interrupt(InterruptMove),
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
        }
    }

    /// Entries with their queues, or queues with their CPUs.
    pub fn shifts(&self) -> Vec<Shift> {
        match self {
            Self::Table(list) => list.iter().map(|m| Shift { entry: m.entry, from: m.from, to: m.to }).collect(),
            Self::Interrupt(m) => {
                // The limits count interrupts, not queues.
                let first = m.queues.first().map(|q| Shift { entry: *q as usize, from: m.from, to: m.to });
                first.into_iter().collect()
            }
        }
    }

    /// Entries of the table that move.
    pub fn entries(&self) -> &[TableMove] {
        match self {
            Self::Table(list) => list,
            Self::Interrupt(_) => &[],
        }
    }

    /// The interrupt that moves.
    pub fn interrupt(&self) -> Option<&InterruptMove> {
        match self {
            Self::Table(_) => None,
            Self::Interrupt(m) => Some(m),
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
        assert_eq!(one.shifts(), [Shift { entry: 2, from: 1, to: 5 }]);
        assert_eq!(one.back().back(), one);
    }
}

//! Stage 1: what each entry of the indirection table received, and whether these counts can be trusted.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Shortest count that is used.
pub const SHORTEST: Duration = Duration::from_millis(1900);
/// Fewer packets than this say little about the entries.
const FEWEST_PACKETS: u64 = 1000;
/// Share of the packets whose queue must be that of the table, in percent.
const AGREEMENT_PERCENT: f64 = 99.0;

/// How the packets are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountMethod {
    /// A socket filter reads the hash of every packet.
    Filter,
    /// The hash is computed from sampled headers.
    SampledHeaders,
}

/// What one entry received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReceivedByEntry {
    /// Packets, as the stack saw them: merged packets count once.
    pub packets: u64,
    /// Segments, as they were on the wire. `None`: not counted.
    pub segments: Option<u64>,
    /// Bytes.
    pub bytes: u64,
    /// Packets that came by another queue than that of the table.
    pub elsewhere: u64,
}

impl ReceivedByEntry {
    /// What the CPU's work is proportional to: segments, or packets if segments are not counted.
    pub fn work(&self) -> u64 {
        self.segments.unwrap_or(self.packets)
    }
}

/// The counts of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryEvidence {
    /// How they were counted.
    pub method: CountMethod,
    /// How long.
    pub duration: Duration,
    /// By table entry.
    pub entries: Vec<ReceivedByEntry>,
    /// Packets without a hash.
    pub unhashed: u64,
    /// Packets with a hash whose queue is unknown.
    pub unknown_queue: u64,
}

/// Why counts are not used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unusable {
    /// There are no counts.
    NotCounted,
    /// The count was too short.
    TooShort {
        /// How long it was.
        duration: Duration,
    },
    /// Too few packets.
    TooFewPackets {
        /// How many.
        packets: u64,
    },
    /// The counts belong to a table of another size.
    OtherTable {
        /// Entries that were counted.
        counted: usize,
        /// Entries of the table.
        entries: usize,
    },
    /// Segments are counted for some entries only.
    SegmentsIncomplete,
    /// Too many packets without a hash.
    Unhashed {
        /// Their share, in percent.
        percent: f64,
    },
    /// Too many packets came by another queue than that of the table: RPS, rules or RFS.
    Elsewhere {
        /// Their share, in percent.
        percent: f64,
    },
    /// The queue of too many packets is unknown.
    UnknownQueue {
        /// Their share, in percent.
        percent: f64,
    },
}

/// Counts that were checked against a table.
#[derive(Debug, Clone, Copy)]
pub struct CheckedEvidence<'a> {
    /// By table entry.
    pub entries: &'a [ReceivedByEntry],
    /// Packets of all entries.
    pub packets: u64,
}

impl EntryEvidence {
    /// Checks the counts against the table: in 99 % of the packets the queue must be `table[entry]`. The reason names
    /// what most of the other packets have in common.
    pub fn check(&self, table: &[u32]) -> Result<CheckedEvidence<'_>, Unusable> {
        if self.entries.len() != table.len() {
            return Err(Unusable::OtherTable { counted: self.entries.len(), entries: table.len() });
        }
        if self.duration < SHORTEST {
            return Err(Unusable::TooShort { duration: self.duration });
        }
        let packets: u64 = self.entries.iter().map(|e| e.packets).sum();
        // A packet whose queue is unknown is counted for its entry, one without a hash is not.
        let all = packets + self.unhashed;
        if all < FEWEST_PACKETS {
            return Err(Unusable::TooFewPackets { packets: all });
        }
        let counted = self.entries.iter().filter(|e| e.segments.is_some()).count();
        if counted != 0 && counted != self.entries.len() {
            return Err(Unusable::SegmentsIncomplete);
        }
        let elsewhere: u64 = self.entries.iter().map(|e| e.elsewhere).sum();
        let percent = |n: u64| n as f64 * 100.0 / all as f64;
        let wrong = elsewhere + self.unhashed + self.unknown_queue;
        if percent(all.saturating_sub(wrong)) < AGREEMENT_PERCENT {
            let most = elsewhere.max(self.unhashed).max(self.unknown_queue);
            return Err(match most {
                n if n == elsewhere => Unusable::Elsewhere { percent: percent(n) },
                n if n == self.unhashed => Unusable::Unhashed { percent: percent(n) },
                n => Unusable::UnknownQueue { percent: percent(n) },
            });
        }
        Ok(CheckedEvidence { entries: &self.entries, packets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence() -> EntryEvidence {
        let entry = ReceivedByEntry { packets: 2500, segments: Some(5000), bytes: 250_000, elsewhere: 0 };
        EntryEvidence {
            method: CountMethod::Filter,
            duration: Duration::from_secs(3),
            entries: vec![entry; 4],
            unhashed: 0,
            unknown_queue: 0,
        }
    }

    const TABLE: [u32; 4] = [0, 1, 0, 1];

    #[test]
    fn counts_that_agree_with_the_table_are_used() {
        let mut e = evidence();
        assert_eq!(e.check(&TABLE).unwrap().packets, 10_000);
        (e.entries[2].elsewhere, e.unknown_queue) = (60, 40);
        assert!(e.check(&TABLE).is_ok(), "99 % agree");
        e.unknown_queue = 41;
        assert_eq!(e.check(&TABLE).unwrap_err(), Unusable::Elsewhere { percent: 0.6 });
    }

    #[test]
    fn the_reason_is_what_most_packets_have_in_common() {
        let mut e = evidence();
        e.entries[0].elsewhere = 20;
        e.unhashed = 2500;
        assert_eq!(e.check(&TABLE).unwrap_err(), Unusable::Unhashed { percent: 20.0 });
        (e.unhashed, e.unknown_queue) = (0, 500);
        assert_eq!(e.check(&TABLE).unwrap_err(), Unusable::UnknownQueue { percent: 5.0 });
    }

    #[test]
    fn short_small_and_foreign_counts_are_refused() {
        let e = EntryEvidence { duration: Duration::from_secs(1), ..evidence() };
        assert_eq!(e.check(&TABLE).unwrap_err(), Unusable::TooShort { duration: Duration::from_secs(1) });
        assert_eq!(evidence().check(&[0, 1]).unwrap_err(), Unusable::OtherTable { counted: 4, entries: 2 });
        let mut few = evidence();
        few.entries.iter_mut().for_each(|e| e.packets = 100);
        assert_eq!(few.check(&TABLE).unwrap_err(), Unusable::TooFewPackets { packets: 400 });
    }

    #[test]
    fn segments_count_for_all_entries_or_none() {
        let mut e = evidence();
        assert_eq!(e.entries[0].work(), 5000);
        e.entries[0].segments = None;
        assert_eq!(e.check(&TABLE).unwrap_err(), Unusable::SegmentsIncomplete);
        e.entries.iter_mut().for_each(|e| e.segments = None);
        assert_eq!(e.check(&TABLE).unwrap().entries[0].work(), 2500);
    }
}

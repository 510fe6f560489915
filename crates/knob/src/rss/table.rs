//! Computes the entries of a table that is given with ethtool's arguments, before anything is written.

use std::collections::BTreeMap;
use std::fmt;

use ringwise_model::wish::Table;
use serde::{Deserialize, Serialize};

/// Why a table is not possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableError {
    /// The device has no table.
    NoTable,
    /// `equal 0`, an explicit list without entries, no weights at all.
    Empty,
    /// All weights are 0.
    NoWeight,
    /// Every weight of 1 needs an entry.
    TooHeavy {
        /// Sum of the weights.
        sum: u64,
        /// Size of the table.
        size: usize,
    },
    /// A weight for a queue that does not exist.
    TooManyWeights {
        /// Number of weights.
        weights: usize,
        /// First queue.
        start: u32,
        /// Number of queues of the device.
        queues: u32,
    },
    /// An entry names a queue that does not exist.
    NoSuchQueue {
        /// Queue that does not exist.
        queue: u64,
        /// Number of queues of the device.
        queues: u32,
    },
    /// An explicit list has another number of entries than the table.
    WrongSize {
        /// Number of entries of the list.
        entries: usize,
        /// Size of the table.
        size: usize,
    },
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTable => write!(f, "the device has no RSS table"),
            Self::Empty => write!(f, "an RSS table needs at least one queue"),
            Self::NoWeight => write!(f, "the weights sum to zero: at least one must not be 0"),
            Self::TooHeavy { sum, size } => {
                write!(f, "the weights sum to {sum}, but the table has only {size} entries")
            }
            Self::TooManyWeights { weights, start: 0, queues } => {
                write!(f, "{weights} weights, but {}", there_are(*queues))
            }
            Self::TooManyWeights { weights, start, queues } => {
                write!(f, "{weights} weights from queue {start} on, but {}", there_are(*queues))
            }
            Self::NoSuchQueue { queue, queues } => {
                write!(f, "queue {queue} does not exist: {}", there_are(*queues))
            }
            Self::WrongSize { entries, size } => {
                write!(f, "{entries} entries, but the device's table has exactly {size}")
            }
        }
    }
}

impl std::error::Error for TableError {}

fn there_are(queues: u32) -> String {
    match queues {
        0 => "the device has no receive queues".into(),
        1 => "there is only queue 0".into(),
        n => format!("there are only queues 0-{}", n - 1),
    }
}

/// The queue of each of `size` entries on a device with `queues` receive queues, exactly as ethtool and the kernel
/// compute it. `default` is the kernel's default: round robin over all queues.
pub fn simulate(words: &Table, size: usize, queues: u32) -> Result<Vec<u32>, TableError> {
    if size == 0 {
        return Err(TableError::NoTable);
    }
    match words {
        Table::Default if queues == 0 => Err(TableError::Empty),
        Table::Default => Ok(default(size, queues)),
        Table::Equal { queues: 0, .. } => Err(TableError::Empty),
        Table::Equal { queues: n, start } => {
            // A table that is shorter than the number of queues does not reach the last queues.
            let used = u64::from(*n).min(size as u64);
            exists(u64::from(*start) + used - 1, queues)?;
            Ok(default(size, *n).into_iter().map(|q| start + q).collect())
        }
        Table::Weight { weights, start } => by_weights(weights, *start, size, queues),
        Table::Explicit(table) if table.is_empty() => Err(TableError::Empty),
        Table::Explicit(table) => {
            if let Some(q) = table.iter().find(|q| **q >= queues) {
                exists(u64::from(*q), queues)?;
            }
            if table.len() != size {
                return Err(TableError::WrongSize { entries: table.len(), size });
            }
            Ok(table.clone())
        }
    }
}

fn exists(queue: u64, queues: u32) -> Result<(), TableError> {
    if queue < u64::from(queues) { Ok(()) } else { Err(TableError::NoSuchQueue { queue, queues }) }
}

fn by_weights(weights: &[u32], start: u32, size: usize, queues: u32) -> Result<Vec<u32>, TableError> {
    let sum: u64 = weights.iter().map(|w| u64::from(*w)).sum();
    let Some(last) = weights.iter().rposition(|w| *w > 0) else {
        return Err(if weights.is_empty() { TableError::Empty } else { TableError::NoWeight });
    };
    // Queues with weight 0 after the last one with a weight get no entries and need not exist.
    if start as u64 + last as u64 >= u64::from(queues) {
        return Err(TableError::TooManyWeights { weights: last + 1, start, queues });
    }
    if sum > size as u64 {
        return Err(TableError::TooHeavy { sum, size });
    }
    Ok(by_weight(weights, size).into_iter().map(|q| start + q).collect())
}

/// The kernel's default (`ethtool_rxfh_indir_default`). A driver may set up another initial table.
pub fn default(size: usize, queues: u32) -> Vec<u32> {
    (0..size).map(|i| (i % queues.max(1) as usize) as u32).collect()
}

/// Whether every queue has entries, and the numbers of entries differ by at most one.
pub fn is_even(table: &[u32], queues: u32) -> bool {
    let mut count: BTreeMap<u32, usize> = BTreeMap::new();
    table.iter().for_each(|q| *count.entry(*q).or_default() += 1);
    let (low, high) = (count.values().min().copied().unwrap_or(0), count.values().max().copied().unwrap_or(0));
    count.len() as u32 == queues && high - low <= 1
}

/// The table after queues were removed: entries of removed queues are distributed among the first `queues` queues; other
/// entries stay.
pub fn moved(table: &[u32], queues: u32) -> Vec<u32> {
    table.iter().map(|q| q % queues.max(1)).collect()
}

/// ethtool's weight rule: entry i goes to the first queue j with i < size * cumulative(j) / sum.
pub fn by_weight(weights: &[u32], size: usize) -> Vec<u32> {
    let sum: u64 = weights.iter().map(|w| u64::from(*w)).sum();
    if sum == 0 {
        return Vec::new();
    }
    let mut table = Vec::with_capacity(size);
    let (mut j, mut cumulative) = (0usize, u64::from(weights[0]));
    for i in 0..size as u64 {
        while i >= size as u64 * cumulative / sum && j + 1 < weights.len() {
            j += 1;
            cumulative += u64::from(weights[j]);
        }
        table.push(j as u32);
    }
    table
}

/// When the number of queues changes, igb and igc rebuild the table in blocks, whatever it contained (Linux 6.12). Other
/// drivers keep a table that was configured if it still fits; otherwise they distribute the entries as before.
pub(crate) fn after_channels(driver: &str, now: &[u32], before: u32, queues: u32) -> Vec<u32> {
    let size = now.len() as u32;
    let blocks = |queues: u32| -> Vec<u32> {
        (0..size).map(|e| (u64::from(e) * u64::from(queues) / u64::from(size)) as u32).collect()
    };
    let one_by_one = |queues: u32| simulate(&Table::Default, now.len(), queues).unwrap_or_default();
    let in_blocks = matches!(driver, "igb" | "igc") || (before > 1 && now == blocks(before));
    if before == queues {
        now.to_vec()
    } else if in_blocks {
        blocks(queues)
    } else if now != one_by_one(before) && now.iter().all(|q| *q < queues) {
        now.to_vec()
    } else {
        one_by_one(queues)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(table: &[u32], queues: u32) -> Vec<usize> {
        (0..queues).map(|q| table.iter().filter(|x| **x == q).count()).collect()
    }

    fn weight(weights: &[u32], start: u32) -> Table {
        Table::Weight { weights: weights.to_vec(), start }
    }

    fn equal(queues: u32, start: u32) -> Table {
        Table::Equal { queues, start }
    }

    #[test]
    fn weights_as_ethtool_does_them() {
        let t = simulate(&weight(&[3, 1], 0), 32, 8).unwrap();
        assert_eq!(t, [vec![0; 24], vec![1; 8]].concat());
        let t = simulate(&weight(&[1, 2], 0), 32, 2).unwrap();
        assert_eq!(t, [vec![0; 10], vec![1; 22]].concat());
        let t = simulate(&weight(&[1; 6], 0), 128, 6).unwrap();
        assert_eq!(counts(&t, 6), [21, 21, 22, 21, 21, 22]);
        let t = simulate(&weight(&[0, 1, 0, 3], 2), 8, 6).unwrap();
        assert_eq!(t, [3, 3, 5, 5, 5, 5, 5, 5]);
        // Weights of 0 for queues that do not exist.
        assert_eq!(simulate(&weight(&[1, 1, 0, 0], 0), 4, 2).unwrap(), [0, 0, 1, 1]);
    }

    #[test]
    fn round_robin() {
        assert_eq!(simulate(&equal(3, 0), 8, 8).unwrap(), [0, 1, 2, 0, 1, 2, 0, 1]);
        assert_eq!(simulate(&equal(2, 6), 4, 8).unwrap(), [6, 7, 6, 7]);
        assert_eq!(simulate(&Table::Default, 5, 4).unwrap(), [0, 1, 2, 3, 0]);
        assert_eq!(simulate(&Table::Explicit(vec![1, 0, 0, 1]), 4, 2).unwrap(), [1, 0, 0, 1]);
    }

    #[test]
    fn entries_of_removed_queues_are_redistributed() {
        assert_eq!(moved(&[0, 1, 2, 3, 4, 5, 6, 7], 6), [0, 1, 2, 3, 4, 5, 0, 1]);
        assert_eq!(moved(&[6, 7, 6, 7], 4), [2, 3, 2, 3]);
    }

    #[test]
    fn impossible_tables_are_refused() {
        let e = |words: &Table, size, queues| simulate(words, size, queues).unwrap_err();
        assert_eq!(e(&Table::Default, 0, 4), TableError::NoTable);
        assert_eq!(e(&Table::Default, 128, 0), TableError::Empty);
        assert_eq!(e(&equal(0, 0), 128, 4), TableError::Empty);
        assert_eq!(e(&equal(5, 0), 128, 4), TableError::NoSuchQueue { queue: 4, queues: 4 });
        assert_eq!(e(&equal(2, 3), 128, 4), TableError::NoSuchQueue { queue: 4, queues: 4 });
        assert_eq!(e(&equal(1, u32::MAX), 128, 4), TableError::NoSuchQueue { queue: u64::from(u32::MAX), queues: 4 });
        assert_eq!(e(&weight(&[], 0), 128, 4), TableError::Empty);
        assert_eq!(e(&weight(&[0, 0], 0), 128, 4), TableError::NoWeight);
        assert_eq!(e(&weight(&[1; 5], 0), 128, 4), TableError::TooManyWeights { weights: 5, start: 0, queues: 4 });
        assert_eq!(e(&weight(&[1, 1], 3), 128, 4), TableError::TooManyWeights { weights: 2, start: 3, queues: 4 });
        assert_eq!(e(&weight(&[100, 100], 0), 128, 4), TableError::TooHeavy { sum: 200, size: 128 });
        assert_eq!(e(&Table::Explicit(vec![]), 128, 4), TableError::Empty);
        assert_eq!(e(&Table::Explicit(vec![0; 64]), 128, 4), TableError::WrongSize { entries: 64, size: 128 });
        assert_eq!(e(&Table::Explicit(vec![0, 9]), 2, 4), TableError::NoSuchQueue { queue: 9, queues: 4 });
    }

    #[test]
    fn words_of_the_errors() {
        let say = |e: TableError| e.to_string();
        assert_eq!(
            say(TableError::NoSuchQueue { queue: 9, queues: 4 }),
            "queue 9 does not exist: there are only queues 0-3"
        );
        assert_eq!(
            say(TableError::TooManyWeights { weights: 2, start: 3, queues: 4 }),
            "2 weights from queue 3 on, but there are only queues 0-3"
        );
        assert_eq!(say(TableError::NoWeight), "the weights sum to zero: at least one must not be 0");
    }

    #[test]
    fn every_weight_gets_an_entry_and_no_queue_of_weight_zero_does() {
        for size in [4usize, 32, 128, 500] {
            for seed in 0u32..200 {
                let weights: Vec<u32> = (0..4).map(|i| (seed.wrapping_mul(2_654_435_761) >> (i * 7)) % 4).collect();
                let Ok(t) = simulate(&weight(&weights, 0), size, 4) else { continue };
                assert_eq!(t.len(), size);
                for (q, w) in weights.iter().enumerate() {
                    assert_eq!(*w > 0, t.contains(&(q as u32)), "{weights:?} on {size}");
                }
            }
        }
    }

    #[test]
    fn tables_after_a_change_of_channels() {
        assert_eq!(after_channels("ice", &[0, 0, 1, 1, 2, 2, 3, 3], 4, 2), [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(after_channels("ice", &[0, 1, 2, 3, 0, 1, 2, 3], 4, 2), [0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(
            after_channels("ice", &[0, 0, 0, 1, 1, 1, 1, 1], 4, 2),
            [0, 0, 0, 1, 1, 1, 1, 1],
            "configured by the user, and it fits"
        );
        assert_eq!(after_channels("ice", &[3, 0, 0, 1], 4, 2), [0, 1, 0, 1]);
        assert_eq!(after_channels("igb", &[0, 1, 2, 3], 4, 2), [0, 0, 1, 1], "as 760-explain.sh sees it");
        assert_eq!(after_channels("igb", &[1, 0, 2, 3], 4, 4), [1, 0, 2, 3]);
        assert!(after_channels("ice", &[], 4, 2).is_empty());
    }
}

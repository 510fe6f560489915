//! The list of one device: which position has which counter of which queue.

use ringwise_model::{Dir, QueueCounter, QueueCounts};

use super::{names, places, table};

/// Learned from a list of names once, then used to read values. It is valid until the device has another list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatLayout {
    /// Counters in the list.
    length: usize,
    /// By direction and number.
    queues: Vec<QueuePlaces>,
    allowances: Vec<(usize, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct QueuePlaces {
    dir: Dir,
    queue: u32,
    /// Several positions of one counter are added up.
    at: Vec<(usize, QueueCounter)>,
}

impl StatLayout {
    /// `strings`: the answer to ETHTOOL_GSTRINGS, 32 bytes for each name.
    pub fn learn(driver: &str, strings: &[u8]) -> Self {
        let names = names(strings);
        let mut all = places(driver, &names);
        all.sort_by_key(|p| (p.dir == Dir::Tx, p.queue, p.at));
        let mut queues: Vec<QueuePlaces> = Vec::new();
        for p in all {
            match queues.last_mut().filter(|q| (q.dir, q.queue) == (p.dir, p.queue)) {
                Some(q) => q.at.push((p.at, p.counter)),
                None => queues.push(QueuePlaces { dir: p.dir, queue: p.queue, at: vec![(p.at, p.counter)] }),
            }
        }
        let (drivers, end) = table::ALLOWANCES;
        let length = names.len();
        let listed = names.into_iter().enumerate().filter(|(_, n)| drivers.contains(&driver) && n.ends_with(end));
        Self { length, queues, allowances: listed.collect() }
    }

    /// Whether any name belongs to a queue.
    pub fn counts_queues(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Whether any name belongs to an allowance.
    pub fn counts_allowances(&self) -> bool {
        !self.allowances.is_empty()
    }

    /// Whether these values (ETHTOOL_GSTATS, 8 bytes each) belong to a list of this length.
    pub fn fits(&self, values: &[u8]) -> bool {
        values.as_chunks::<8>().0.len() == self.length
    }

    /// The counters of each queue, receiving first, by number.
    pub fn queues<'v>(&'v self, values: &'v [u8]) -> impl Iterator<Item = (Dir, u32, QueueCounts)> + 'v {
        self.queues.iter().map(|q| {
            let mut counts = QueueCounts::default();
            for (at, counter) in &q.at {
                if let Some(n) = value(values, *at) {
                    counts.add(*counter, n);
                }
            }
            (q.dir, q.queue, counts)
        })
    }

    /// How often the provider of a virtual machine held packets back (`bw_in_allowance_exceeded`), by the driver's names.
    pub fn allowances<'v>(&'v self, values: &'v [u8]) -> impl Iterator<Item = (&'v str, u64)> + 'v {
        self.allowances.iter().filter_map(|(at, name)| Some((name.as_str(), value(values, *at)?)))
    }
}

fn value(values: &[u8], at: usize) -> Option<u64> {
    values.as_chunks::<8>().0.get(at).map(|n| u64::from_ne_bytes(*n))
}

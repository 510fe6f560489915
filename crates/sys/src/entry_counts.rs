//! What was counted for each entry of an RSS table. Pure.

/// What was counted for one entry, or for packets without a hash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EntryCount {
    /// Packets as the network stack sees them: frames that GRO or the NIC has merged are one.
    pub packets: u64,
    /// Bytes of these packets with their Ethernet headers; merged frames have one header together.
    pub bytes: u64,
    /// Frames that were merged into these packets. Equals `packets` if [`CountEntries::counts_segments`](crate::CountEntries::counts_segments) is false.
    pub segments: u64,
    /// Packets, included in `packets`, that came from another queue than the one in the table. Always 0 for packets without a
    /// hash.
    pub other_queue: u64,
    /// Packets, included in `packets`, whose queue the driver does not report.
    pub unknown_queue: u64,
}

impl EntryCount {
    /// Each number of both, combined by `f`.
    pub(crate) fn with(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            packets: f(self.packets, other.packets),
            bytes: f(self.bytes, other.bytes),
            segments: f(self.segments, other.segments),
            other_queue: f(self.other_queue, other.other_queue),
            unknown_queue: f(self.unknown_queue, other.unknown_queue),
        }
    }
}

/// Counts of all CPUs together, since the counter was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryCounts {
    /// By number of the entry, as many as the table has.
    pub entries: Vec<EntryCount>,
    /// Packets without a hash, which belong to no entry: the NIC does not hash their protocol, or the feature
    /// `receive-hashing` is off.
    pub unhashed: EntryCount,
}

impl EntryCounts {
    /// Sum of all entries and of packets without a hash.
    pub fn total(&self) -> EntryCount {
        self.entries.iter().fold(self.unhashed, |sum, e| sum.with(*e, u64::wrapping_add))
    }

    /// What was counted since an earlier reading of the same counter.
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = |now: &EntryCount, before: &EntryCount| now.with(*before, u64::wrapping_sub);
        Self {
            entries: self.entries.iter().zip(&earlier.entries).map(|(n, e)| difference(n, e)).collect(),
            unhashed: difference(&self.unhashed, &earlier.unhashed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_and_a_sum() {
        let count = |n| EntryCount { packets: n, bytes: 60 * n, segments: 2 * n, other_queue: n / 2, unknown_queue: 1 };
        let before = EntryCounts { entries: vec![count(4), count(0)], unhashed: count(2) };
        let now = EntryCounts { entries: vec![count(10), count(6)], unhashed: count(3) };
        let between = now.since(&before);
        assert_eq!(between.entries[0], EntryCount { unknown_queue: 0, ..count(6) });
        assert_eq!((between.total().packets, between.total().bytes, between.unhashed.packets), (13, 780, 1));
        assert_eq!((now.total().packets, now.total().unknown_queue), (19, 3));
    }
}

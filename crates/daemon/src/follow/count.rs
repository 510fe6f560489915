//! Counts packets by table entry while an adapter asks for it: all of them by the hash that the driver reports, or sampled ones by
//! the hash of their headers.

use std::time::Duration;

use ringwise_adapt::buckets::{CountMethod, EntryEvidence, ReceivedByEntry};
use ringwise_sys::{CountEntries, EntryCounts, Host, Result};

use super::headers::HeaderSampling;

/// A count that is running.
#[derive(Debug)]
pub(crate) enum Counting {
    All(CountingAll),
    Sampled(HeaderSampling),
}

impl Counting {
    pub(super) fn method(&self) -> CountMethod {
        match self {
            Self::All(_) => CountMethod::Filter,
            Self::Sampled(_) => CountMethod::SampledHeaders,
        }
    }

    /// What was counted so far.
    pub(super) fn finish(self, host: &dyn Host) -> Result<EntryEvidence> {
        match self {
            Self::All(all) => all.finish(host),
            Self::Sampled(sampled) => sampled.finish(),
        }
    }
}

/// All packets.
#[derive(Debug)]
pub(crate) struct CountingAll {
    counter: Box<dyn CountEntries>,
    first: EntryCounts,
    since: Duration,
}

impl CountingAll {
    /// Errors: see [`Host::count_entries`].
    pub(super) fn start(host: &dyn Host, dev: &str, table: &[u32]) -> Result<Self> {
        let mut counter = host.count_entries(dev, table)?;
        let first = counter.read()?;
        Ok(Self { counter, first, since: host.since_boot() })
    }

    fn finish(mut self, host: &dyn Host) -> Result<EntryEvidence> {
        let segments = self.counter.counts_segments();
        let counts = self.counter.read()?.since(&self.first);
        let duration = host.since_boot().saturating_sub(self.since);
        let unknown_queue = counts.entries.iter().map(|e| e.unknown_queue).sum();
        let entry = |e: &ringwise_sys::EntryCount| ReceivedByEntry {
            packets: e.packets,
            segments: segments.then_some(e.segments),
            bytes: e.bytes,
            elsewhere: e.other_queue,
        };
        Ok(EntryEvidence {
            method: CountMethod::Filter,
            duration,
            entries: counts.entries.iter().map(entry).collect(),
            unhashed: counts.unhashed.packets,
            unknown_queue,
        })
    }
}

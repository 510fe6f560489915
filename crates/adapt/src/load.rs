//! Stage 0: is the load of the queues uneven? Decides from samples of one second.
//!
//! CPU time is noisy: a kernel that counts ticks at 250 Hz is wrong by 3 points in one second at half load. So one sample
//! decides nothing; [`LoadWindow`] looks at the last ten.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Samples that the decision looks at.
pub const WINDOW: usize = 10;
/// A sample that is older than this does not describe the present load.
const OLDEST: Duration = Duration::from_secs(15);
/// In this many samples of the window the busiest CPU is hot before the load is suspect.
pub(crate) const HOT_SAMPLES: usize = 6;
/// The busiest CPU is hot from this load on, in percent.
pub(crate) const HOT_PERCENT: f64 = 65.0;
/// The busiest CPU is hot if it is this far above the mean, in points.
pub(crate) const HOT_POINTS: f64 = 15.0;
/// In this many samples of the window a hot queue drops packets before the load is suspect.
pub(crate) const DROP_SAMPLES: usize = 3;
/// A queue that drops is hot if its CPU has at least this load, in percent.
pub(crate) const DROP_PERCENT: f64 = 50.0;
/// The load is even again when the busiest CPU is less than this above the mean, in points.
pub(crate) const EVEN_POINTS: f64 = 7.0;
/// Samples whose means decide that the load is even again.
const ENOUGH: usize = 5;

/// Why a queue is not balanced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exclusion {
    /// A program polls the queue; it chooses the CPU.
    BusyPolled,
    /// An AF_XDP socket receives from the queue.
    AfXdp,
    /// The queue is leased to a virtual interface.
    Leased,
    /// The queue receives into memory of a program or of a device.
    Memory,
}

/// What one receive queue did in one second. `None`: unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueSample {
    /// The CPU that serves the queue.
    pub cpu: Option<u32>,
    /// Received packets.
    pub packets: Option<u64>,
    /// Packets that were dropped because the ring was full.
    pub drops: Option<u64>,
    /// `Some`: the queue is not balanced.
    pub excluded: Option<Exclusion>,
    /// Number of the interrupt that decides its CPU, if it can be moved. `None`: it cannot, or a NAPI thread polls the queue, or this is
    /// unknown.
    #[serde(default)]
    pub interrupt: Option<u32>,
}

/// What one CPU did in one second. `None`: unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuLoadSample {
    /// Time in softirq and NAPI threads, in percent of the second.
    pub busy_percent: Option<f64>,
    /// All time in which it is not idle, programs included, in percent of the second.
    #[serde(default)]
    pub total_percent: Option<f64>,
    /// Packets of the queues of other interfaces that it serves.
    #[serde(default)]
    pub other_packets: Option<u64>,
    /// Its NUMA node.
    pub node: Option<u32>,
    /// The first thread of its core. `None`: unknown.
    #[serde(default)]
    pub core: Option<u32>,
    /// All time in which the busiest other thread of its core is not idle, in percent of the second. `None`: the core has no other thread,
    /// or this is unknown.
    #[serde(default)]
    pub sibling_percent: Option<f64>,
    /// Packets that were dropped because its backlog was full.
    #[serde(default)]
    pub backlog_drops: Option<u64>,
}

/// One second of one interface.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadSample {
    /// End of the second, since boot.
    pub at: Duration,
    /// By receive queue.
    pub queues: Vec<QueueSample>,
    /// By CPU; at least those that serve a queue, and those that may, once they are known.
    pub cpus: BTreeMap<u32, CpuLoadSample>,
    /// TCP segments of the whole host that arrived out of order (`TcpExt TCPOFOQueue`). `None`: unknown.
    pub out_of_order: Option<u64>,
    /// Packets of all queues for which the NIC had no free descriptor (`rx_missed_errors`). `None`: unknown.
    #[serde(default)]
    pub nic_drops: Option<u64>,
    /// Packets that the driver or the stack dropped, full backlogs included (`rx_dropped`). `None`: unknown.
    #[serde(default)]
    pub stack_drops: Option<u64>,
}

impl LoadSample {
    /// Queues that are balanced, with their numbers.
    pub fn balanced(&self) -> impl Iterator<Item = (u32, &QueueSample)> {
        (0u32..).zip(&self.queues).filter(|(_, q)| q.excluded.is_none())
    }

    /// The load of each CPU that serves a balanced queue, in percent. `None`: one of them is unknown, or there are fewer
    /// than two.
    pub fn cpu_loads(&self) -> Option<BTreeMap<u32, f64>> {
        let load = |(_, q): (u32, &QueueSample)| {
            let cpu = q.cpu?;
            Some((cpu, self.cpus.get(&cpu)?.busy_percent.filter(|p| p.is_finite())?))
        };
        let loads: BTreeMap<u32, f64> = self.balanced().map(load).collect::<Option<_>>()?;
        (loads.len() > 1).then_some(loads)
    }

    /// Dropped packets of all queues. `None`: a queue's drops are unknown.
    pub fn drops(&self) -> Option<u64> {
        self.queues.iter().map(|q| q.drops).sum()
    }

    /// Received packets of all queues. `None`: a queue's packets are unknown.
    pub fn packets(&self) -> Option<u64> {
        self.queues.iter().map(|q| q.packets).sum()
    }
}

/// The busiest CPU, its load, and the mean of all, in percent. `None`: no CPUs.
pub fn busiest(loads: &BTreeMap<u32, f64>) -> Option<(u32, f64, f64)> {
    let (cpu, load) = loads.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
    Some((*cpu, *load, loads.values().sum::<f64>() / loads.len() as f64))
}

/// Why the load may be uneven.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuspectReason {
    /// The busiest CPU was far above the mean.
    UnevenCpus {
        /// The busiest CPU of the last of these samples.
        cpu: u32,
        /// Its load, in percent.
        busy_percent: f64,
        /// The mean load of the CPUs that serve queues, in percent.
        mean_percent: f64,
        /// Samples of the window in which a CPU was that busy.
        samples: u32,
    },
    /// A queue dropped packets while its CPU was busy.
    DropsOnHotQueue {
        /// The receive queue.
        queue: u32,
        /// The CPU that serves it.
        cpu: u32,
        /// Samples of the window in which it dropped packets.
        samples: u32,
    },
}

/// What the window shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LoadState {
    /// Too few samples in which all loads are known.
    Unknown {
        /// Samples with known loads.
        known: u32,
    },
    /// The load is even, or too low to matter.
    Even,
    /// The load may be uneven: count the packets of the table entries.
    Suspect(SuspectReason),
}

/// A sample, and what is computed from it once.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Held {
    sample: LoadSample,
    /// The busiest CPU, its load and the mean. `None`: a load is unknown.
    busiest: Option<(u32, f64, f64)>,
}

impl Held {
    fn is_hot(&self) -> bool {
        self.busiest.is_some_and(|(_, load, mean)| load >= HOT_PERCENT && load - mean >= HOT_POINTS)
    }
}

/// The last samples, and whether the load is suspect.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LoadWindow {
    samples: VecDeque<Held>,
    suspect: Option<SuspectReason>,
}

impl LoadWindow {
    /// Adds a sample, and returns what the window shows with it.
    pub fn push(&mut self, sample: LoadSample) -> LoadState {
        let now = sample.at;
        let busiest = sample.cpu_loads().as_ref().and_then(busiest);
        self.samples.push_back(Held { sample, busiest });
        while self.samples.len() > WINDOW || self.samples.front().is_some_and(|s| s.sample.at + OLDEST < now) {
            self.samples.pop_front();
        }
        if let Some(reason) = self.hot_cpus().or_else(|| self.dropping_queue()) {
            self.suspect = Some(reason);
        } else if self.suspect.is_some() && self.is_even() {
            self.suspect = None;
        }
        let known = self.samples.iter().filter(|s| s.busiest.is_some()).count();
        match self.suspect {
            Some(reason) => LoadState::Suspect(reason),
            None if known >= ENOUGH => LoadState::Even,
            None => LoadState::Unknown { known: known as u32 },
        }
    }

    /// Forgets the samples, because the table has changed. A suspect load stays suspect until new samples show that it
    /// is even.
    pub fn clear(&mut self) {
        self.samples.clear();
    }

    /// The newest sample.
    pub fn last(&self) -> Option<&LoadSample> {
        self.samples.back().map(|s| &s.sample)
    }

    /// Samples that ended after `since`, the newest `most` of them, oldest first.
    pub fn since(&self, since: Duration, most: usize) -> Vec<&LoadSample> {
        let newer = || self.samples.iter().map(|s| &s.sample).filter(|s| s.at > since);
        newer().skip(newer().count().saturating_sub(most)).collect()
    }

    fn hot_cpus(&self) -> Option<SuspectReason> {
        let hot = || self.samples.iter().filter(|s| s.is_hot());
        let samples = hot().count();
        let (cpu, busy_percent, mean_percent) = hot().next_back()?.busiest?;
        let reason = SuspectReason::UnevenCpus { cpu, busy_percent, mean_percent, samples: samples as u32 };
        (samples >= HOT_SAMPLES).then_some(reason)
    }

    fn dropping_queue(&self) -> Option<SuspectReason> {
        let mut times: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for Held { sample, busiest } in &self.samples {
            let Some((_, _, mean)) = busiest else { continue };
            for (queue, q) in sample.balanced().filter(|(_, q)| q.drops != Some(0)) {
                let load = q.cpu.and_then(|c| sample.cpus.get(&c)?.busy_percent);
                // With every CPU at its limit no queue is hotter than another.
                let hot = load.is_some_and(|l| l >= DROP_PERCENT && l - mean >= EVEN_POINTS);
                if let (true, Some(cpu), Some(1..)) = (hot, q.cpu, q.drops) {
                    *times.entry((queue, cpu)).or_default() += 1;
                }
            }
        }
        let ((queue, cpu), samples) = times.into_iter().max_by_key(|(_, n)| *n)?;
        let reason = SuspectReason::DropsOnHotQueue { queue, cpu, samples: samples as u32 };
        (samples >= DROP_SAMPLES).then_some(reason)
    }

    /// The mean of each CPU is compared, because the largest of several noisy loads is above the mean in every sample.
    fn is_even(&self) -> bool {
        mean_loads(self.samples.iter().map(|s| &s.sample), ENOUGH)
            .as_ref()
            .and_then(busiest)
            .is_some_and(|(_, load, mean)| load - mean < EVEN_POINTS)
    }
}

/// The mean load of each CPU over the samples in which all are known, in percent. `None`: fewer than `enough` of these,
/// or a queue changed its CPU in between.
pub fn mean_loads<'a>(samples: impl Iterator<Item = &'a LoadSample>, enough: usize) -> Option<BTreeMap<u32, f64>> {
    let known: Vec<BTreeMap<u32, f64>> = samples.filter_map(LoadSample::cpu_loads).collect();
    let first = known.first().filter(|_| known.len() >= enough)?;
    let mean = |cpu: &u32| {
        let sum: f64 = known.iter().map(|loads| loads.get(cpu)).sum::<Option<f64>>()?;
        Some((*cpu, sum / known.len() as f64))
    };
    known.iter().all(|l| l.len() == first.len()).then(|| first.keys().map(mean).collect())?
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;

//! Finds transmit queues that are stuck: bytes are in flight and none is completed, or the kernel's watchdog fired.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{CpuId, IrqId, QueueCounter, QueueCounts};
use serde::{Deserialize, Serialize};

use crate::counters::Counters;
use crate::layout::{Layout, Wiring};

/// A queue that completed nothing for this long is stuck.
pub const STUCK_MS: u64 = 3000;

/// The time between two observations counts up to this value, which a device may take to answer. During the rest the host may
/// have been suspended, when no queue sends.
const LOOK_US: u64 = 2_000_000;

/// How a transmit queue is stuck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum StallKind {
    /// Bytes were in flight all the time, and none was completed.
    NothingCompleted {
        /// For how long no progress was seen, in milliseconds.
        ms: u64,
        /// Bytes in flight at the last observation.
        bytes: u64,
    },
    /// The kernel's watchdog found the queue stuck this many times (`tx_timeout`).
    TimedOut {
        /// Increase of the watchdog's counter since the first observation; at least 1.
        times: u64,
    },
}

/// A transmit queue that does not send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    /// Name of the interface.
    pub dev: String,
    /// Number of the transmit queue.
    pub queue: u32,
    /// How this was noticed.
    #[serde(flatten)]
    pub how: StallKind,
}

/// Observes the same queues repeatedly.
#[derive(Debug, Default)]
pub struct StallDetector {
    queues: BTreeMap<(String, u32), Queue>,
    /// By device: pause frames received so far.
    paused: BTreeMap<String, u64>,
}

#[derive(Debug, Clone, Default)]
struct Queue {
    last: QueueReading,
    timeouts_at_first: Option<u64>,
    /// For how long there was no progress, if there was none at the last observation.
    still_us: Option<u64>,
    observed: bool,
}

/// One observation of one queue.
#[derive(Debug, Clone, Default)]
struct QueueReading {
    at_us: u64,
    inflight: Option<u64>,
    packets: Option<u64>,
    timeouts: Option<u64>,
    /// Interrupts of its vector, on all CPUs.
    interrupts: Option<u64>,
}

impl StallDetector {
    /// A new observer, before its first observation.
    pub fn new() -> Self {
        Self::default()
    }

    /// `has_carrier`: devices with a carrier. A queue may wait while there is no carrier, or when pause frames arrived.
    pub fn observe(&mut self, layout: &Layout, now: &Counters, has_carrier: &BTreeSet<String>) {
        for (dev, link) in &now.links {
            let Some(wiring) = layout.links.get(dev) else { continue };
            let pauses = link.counts.get("rx_pause").copied().unwrap_or(0);
            let was_paused = self.paused.insert(dev.clone(), pauses).is_some_and(|before| pauses != before);
            let may_wait = was_paused || !has_carrier.contains(dev);
            for (id, counts) in &link.tx {
                let seen = QueueReading::of(*id, counts, wiring, now);
                let queue = self.queues.entry((dev.clone(), *id)).or_default();
                queue.observe(seen, may_wait);
            }
        }
    }

    /// Queues that are stuck now, in the order of devices and queues.
    pub fn stuck(&self) -> Vec<Stuck> {
        let one = |((dev, id), q): (&(String, u32), &Queue)| {
            let times = q.last.timeouts.zip(q.timeouts_at_first).map_or(0, |(now, first)| now.saturating_sub(first));
            let ms = q.still_ms();
            let how = if ms >= STUCK_MS {
                StallKind::NothingCompleted { ms, bytes: q.last.inflight.unwrap_or(0) }
            } else if times > 0 {
                StallKind::TimedOut { times }
            } else {
                return None;
            };
            Some(Stuck { dev: dev.clone(), queue: *id, how })
        };
        self.queues.iter().filter_map(one).collect()
    }

    /// Whether some queue had bytes in flight at the last observation.
    pub fn in_flight(&self) -> bool {
        self.queues.values().any(|q| q.last.inflight.is_some_and(|n| n > 0))
    }

    /// Whether some queue had bytes in flight and no progress at the last observation; it may be stuck soon.
    pub fn suspects(&self) -> bool {
        self.queues.values().any(|q| q.still_us.is_some())
    }

    /// Queues that cannot be observed: they have no byte queue limits, or neither packets nor interrupts are counted.
    pub fn not_observed(&self) -> Vec<(String, u32)> {
        self.queues.iter().filter(|(_, q)| !q.observed).map(|(at, _)| at.clone()).collect()
    }
}

impl QueueReading {
    fn of(id: u32, counts: &QueueCounts, wiring: &Wiring, now: &Counters) -> Self {
        let sum = |irq: IrqId| now.irqs.get(&irq).map(|by_cpu: &BTreeMap<CpuId, u64>| by_cpu.values().sum());
        Self {
            at_us: now.at_us,
            // Drivers without byte queue limits have the files as well, with a limit of 0.
            inflight: counts
                .get(QueueCounter::BqlInflight)
                .filter(|n| *n > 0 || counts.get(QueueCounter::BqlLimit).is_some_and(|l| l > 0)),
            packets: counts.get(QueueCounter::Packets),
            timeouts: counts.get(QueueCounter::Timeouts),
            interrupts: wiring.tx.get(&id).copied().flatten().and_then(sum),
        }
    }

    /// Bytes are in flight, and the counter of packets, or else of interrupts, has not changed.
    fn no_progress_since(&self, before: &Self) -> bool {
        let same = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a == b);
        let bytes = self.inflight.zip(before.inflight).is_some_and(|(now, then)| then > 0 && now >= then);
        let told = same(self.packets, before.packets).or_else(|| same(self.interrupts, before.interrupts));
        bytes && told == Some(true)
    }
}

impl Queue {
    fn observe(&mut self, seen: QueueReading, may_wait: bool) {
        self.timeouts_at_first = self.timeouts_at_first.or(seen.timeouts);
        self.observed |= seen.inflight.is_some() && (seen.packets.is_some() || seen.interrupts.is_some());
        if may_wait {
            self.still_us = None;
            // While a queue may wait, a time-out does not mean that it is stuck.
            self.timeouts_at_first = seen.timeouts;
        } else if seen.no_progress_since(&self.last) {
            let gap = seen.at_us.saturating_sub(self.last.at_us).min(LOOK_US);
            self.still_us = Some(self.still_us.unwrap_or(0) + gap);
        } else {
            self.still_us = None;
        }
        self.last = seen;
    }

    fn still_ms(&self) -> u64 {
        self.still_us.unwrap_or(0) / 1000
    }
}

#[cfg(test)]
mod tests {
    use ringwise_model::Counter;

    use super::*;
    use crate::counters::LinkCounters;

    fn layout() -> Layout {
        let wiring = Wiring { tx: [(0, Some(IrqId(30)))].into(), ..Wiring::default() };
        Layout { links: [("eth0".to_string(), wiring)].into(), ..Layout::default() }
    }

    /// Counters at this time in milliseconds: those of tx-0, `irq` for its vector and `rx_pause` for the device.
    fn at(ms: u64, list: &[(&str, u64)]) -> Counters {
        let of = |name: &str| list.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
        let queue = list.iter().filter_map(|(n, v)| Some((QueueCounter::from_name(n)?, *v)));
        let link = LinkCounters {
            counts: of("rx_pause").map(|n| ("rx_pause".to_string(), n)).into_iter().collect(),
            tx: [(0, queue.collect())].into(),
            ..LinkCounters::default()
        };
        Counters {
            at_us: ms * 1000,
            links: [("eth0".to_string(), link)].into(),
            irqs: of("irq").map(|n| (IrqId(30), [(CpuId(1), n)].into())).into_iter().collect(),
            ..Counters::default()
        }
    }

    fn after(readings: &[Counters], carrier: bool) -> StallDetector {
        let (mut s, up) = (StallDetector::new(), if carrier { [String::from("eth0")].into() } else { BTreeSet::new() });
        readings.iter().for_each(|c| s.observe(&layout(), c, &up));
        s
    }

    fn still(extra: &[(&str, u64)]) -> Vec<Counters> {
        let list: Vec<_> =
            [("bql_inflight", 3028), ("bql_limit", 9000)].into_iter().chain(extra.iter().copied()).collect();
        [0, 1000, 2000, 3000].map(|ms| at(ms, &list)).into()
    }

    #[test]
    fn bytes_in_flight_and_nothing_completed_for_three_seconds() {
        let s = after(&still(&[("irq", 7)]), true);
        let how = StallKind::NothingCompleted { ms: 3000, bytes: 3028 };
        assert_eq!(s.stuck(), [Stuck { dev: "eth0".into(), queue: 0, how }]);
        let s = after(&still(&[("irq", 7)])[..3], true);
        assert_eq!((s.stuck(), s.suspects()), (Vec::new(), true));
    }

    #[test]
    fn a_suspend_between_two_readings_is_no_stall() {
        let list = [("bql_inflight", 3028), ("bql_limit", 9000), ("irq", 7)];
        let readings = [0, 200, 3_600_000, 3_600_200, 3_600_400].map(|ms| at(ms, &list));
        let s = after(&readings, true);
        assert_eq!((s.stuck(), s.suspects()), (Vec::new(), true));
    }

    #[test]
    fn progress_of_any_kind_is_no_stall() {
        let moving: [&dyn Fn(u64) -> Vec<(&'static str, u64)>; 3] = [
            // The limit is reached all the time, and packets are sent.
            &|n| vec![("bql_inflight", 9000), ("bql_limit", 9000), ("packets", n * 80), ("irq", 7)],
            // Packets are not counted, but interrupts are.
            &|n| vec![("bql_inflight", 9000), ("bql_limit", 9000), ("irq", 7 + n)],
            &|n| vec![("bql_inflight", 9000 - n), ("bql_limit", 9000), ("irq", 7)],
        ];
        for list in moving {
            let readings: Vec<_> = (0..6).map(|n| at(n * 1000, &list(n))).collect();
            let s = after(&readings, true);
            assert_eq!((s.stuck(), s.not_observed()), (Vec::new(), Vec::new()));
        }
        // Interrupts, perhaps for receiving, are no progress where packets are counted.
        let readings: Vec<_> = (0..4)
            .map(|n| at(n * 1000, &[("bql_inflight", 60), ("bql_limit", 9), ("packets", 5), ("irq", n)]))
            .collect();
        assert_eq!(after(&readings, true).stuck().len(), 1);
    }

    #[test]
    fn without_a_carrier_or_under_pause_frames_it_may_wait() {
        assert_eq!(after(&still(&[("irq", 7)]), false).stuck(), []);
        let readings: Vec<_> = (0..5)
            .map(|n| {
                at(n * 1000, &[("bql_inflight", 60), ("bql_limit", 90), ("irq", 7), ("rx_pause", n), ("timeouts", n)])
            })
            .collect();
        assert_eq!(after(&readings, true).stuck(), []);
    }

    #[test]
    fn the_watchdog_counts_from_the_first_observation() {
        let readings = |times: [u64; 2]| times.map(|t| at(t * 1000, &[("timeouts", 4 + t), ("bql_inflight", 0)]));
        assert_eq!(after(&readings([0, 0]), true).stuck(), []);
        let s = after(&readings([0, 2]), true);
        assert_eq!(s.stuck()[0].how, StallKind::TimedOut { times: 2 });
    }

    #[test]
    fn what_cannot_be_seen_is_not_called_healthy() {
        let name = vec![("eth0".to_string(), 0)];
        // A driver without byte queue limits, and one with limits but without counters.
        let none: Vec<_> =
            (0..5).map(|n| at(n * 1000, &[("bql_inflight", 0), ("bql_limit", 0), ("packets", n)])).collect();
        assert_eq!((after(&none, true).stuck(), after(&none, true).not_observed()), (Vec::new(), name.clone()));
        assert_eq!((after(&still(&[]), true).stuck(), after(&still(&[]), true).not_observed()), (Vec::new(), name));
    }
}

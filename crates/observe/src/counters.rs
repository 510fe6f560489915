//! The counters of one moment, as values. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringwise_model::{Counter, CounterKind, CounterValues, CpuCounts, CpuId, IrqId, QueueCounts, Unread};

/// Counters of an interface or of the host, by the names that kernel and driver give them. An absent name was not
/// reported.
pub type Counts = BTreeMap<String, u64>;

/// All counters at one moment. They count since boot, or since the device was created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Microseconds since boot, including suspend, just before the reading.
    pub at_us: u64,
    /// Seconds since 1970.
    pub unix_time: u64,
    /// By name of the interface. One that did not answer is in `silent` instead.
    pub links: BTreeMap<String, LinkCounters>,
    /// Interfaces that are watched and did not answer.
    pub silent: Vec<String>,
    /// Online CPUs.
    pub cpus: BTreeMap<CpuId, CpuSample>,
    /// Interrupts by vector and CPU. A CPU that is not listed handled none.
    pub irqs: BTreeMap<IrqId, BTreeMap<CpuId, u64>>,
    /// Time on a CPU of each NAPI thread, by process id, in nanoseconds.
    pub threads_ns: BTreeMap<u32, u64>,
    /// Packets that sockets of the host lost (`Udp:RcvbufErrors`), and other counters of the host.
    pub host: Counts,
    /// What could not be read, with the reason.
    pub unread: Vec<Unread>,
}

/// One CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuSample {
    /// Times, softnet columns and backlog of the CPU; a counter that the kernel does not have is absent.
    pub counts: CpuCounts,
    /// Microseconds in each of its idle states. The names begin with the number of the state (`2C6`), so they go from
    /// shallow to deep. Empty where they are not read.
    pub idle_us: Vec<(Arc<str>, u64)>,
}

/// One interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Index of the interface. A device that was created again has another one, and its counters start at 0.
    pub ifindex: u32,
    /// `rtnl_link_stats64`, `carrier_changes`, `rx_pause`, `tx_pause`, `tx_pause_storms`, `qdisc_drops`, and what the driver ena calls
    /// `..._allowance_exceeded`.
    pub counts: Counts,
    /// Where the counters of the queues come from.
    pub source: Source,
    /// By number of the receive queue.
    pub rx: BTreeMap<u32, QueueCounts>,
    /// By number of the transmit queue.
    pub tx: BTreeMap<u32, QueueCounts>,
}

/// Where the counters of queues come from, in the order in which the sources are tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Source {
    /// `qstats-get` of the netdev family.
    Qstats,
    /// `ethtool -S`, by the names of the driver.
    Ethtool,
    /// The interface has one queue: its own counters.
    Device,
    /// Neither kernel nor driver has counters of queues.
    #[default]
    Nothing,
}

impl Source {
    /// How reports name the source.
    pub fn text(self) -> &'static str {
        match self {
            Self::Qstats => "qstats",
            Self::Ethtool => "ethtool -S",
            Self::Device => "its own counters",
            Self::Nothing => "no counters",
        }
    }
}

/// How a counter of an interface or of the host behaves, by its name.
pub fn kind_of(name: &str) -> CounterKind {
    match name {
        "carrier_changes" | "qdisc_drops" => CounterKind::Bits32,
        _ => CounterKind::Bits64,
    }
}

/// How counters of interrupts behave.
pub const INTERRUPTS: CounterKind = CounterKind::Bits32;

/// Increase of a counter between two samples. Wraps and resets are only recognized here.
///
/// `None`: the counter went backwards or is a gauge, so the increase is not known. A wrap goes from the uppermost
/// quarter of the counter's range into the lowest; any other step back is a reset. An estimate that steps back has not
/// grown.
pub fn increase(kind: CounterKind, before: u64, after: u64) -> Option<u64> {
    match kind {
        CounterKind::Gauge => None,
        CounterKind::Estimate => Some(after.saturating_sub(before)),
        CounterKind::Bits64 => {
            let wrapped = before >= 3 << 62 && after < 1 << 62;
            after.checked_sub(before).or_else(|| wrapped.then(|| after.wrapping_sub(before)))
        }
        CounterKind::Bits32 => {
            let wrapped = before <= u64::from(u32::MAX) && before >= 3 << 30 && after < 1 << 30;
            after.checked_sub(before).or_else(|| wrapped.then(|| after + (1 << 32) - before))
        }
    }
}

/// Increases of all counters that are in both samples, without gauges, and the counters that went backwards.
pub(crate) fn grown<C: Counter, const N: usize>(
    before: &CounterValues<C, N>,
    after: &CounterValues<C, N>,
) -> (CounterValues<C, N>, Vec<C>) {
    let (mut out, mut reset) = (CounterValues::default(), Vec::new());
    for (counter, a) in after.iter().filter(|(c, _)| c.kind() != CounterKind::Gauge) {
        let Some(b) = before.get(counter) else { continue };
        match increase(counter.kind(), b, a) {
            Some(n) => out.set(counter, n),
            None => reset.push(counter),
        }
    }
    (out, reset)
}

/// The same for counters by name.
pub(crate) fn grown_by_name(before: &Counts, after: &Counts) -> (Counts, Vec<String>) {
    let (mut out, mut reset) = (Counts::new(), Vec::new());
    for (name, a) in after {
        let Some(b) = before.get(name) else { continue };
        match increase(kind_of(name), *b, *a) {
            Some(n) => drop(out.insert(name.clone(), n)),
            None => reset.push(name.clone()),
        }
    }
    (out, reset)
}

//! Counters of one moment, as values. Pure.

use std::collections::BTreeMap;

use ringwise_model::{CpuId, IrqId, Unread};

/// Counters by the kernel's names. A name that is not there was not told.
pub type Counts = BTreeMap<String, u64>;

/// Everything that was counted since boot (or since a device was made), at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Microseconds since boot, suspend included, just before the reading.
    pub at_us: u64,
    /// Seconds since 1970.
    pub unix_time: u64,
    pub links: BTreeMap<String, Link>,
    /// Interfaces that are watched and did not answer.
    pub silent: Vec<String>,
    /// Online CPUs: ticks of `/proc/stat` by column, `softnet_*`, `ksoftirqd_ns`, `idle_us:STATE`.
    pub cpus: BTreeMap<CpuId, Counts>,
    /// Interrupts by vector and CPU. A CPU that is not there took none.
    pub irqs: BTreeMap<IrqId, BTreeMap<CpuId, u64>>,
    /// Of the host: what sockets lost (`Udp:RcvbufErrors`).
    pub host: Counts,
    /// What could not be read, with the reason.
    pub unread: Vec<Unread>,
}

/// One interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    pub ifindex: u32,
    /// `rtnl_link_stats64`, `carrier_changes`, `rx_pause`, `tx_pause`, `qdisc_drops`.
    pub counts: Counts,
    /// Where those of the queues come from.
    pub source: Source,
    pub rx: BTreeMap<u32, Counts>,
    pub tx: BTreeMap<u32, Counts>,
}

/// Who told the counters of queues, in the order in which they are asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Source {
    /// `qstats-get` of the netdev family.
    Qstats,
    /// `ethtool -S`, by the names of the driver.
    Ethtool,
    /// The interface has one queue: its own counters.
    Device,
    /// Nobody.
    #[default]
    Nothing,
}

impl Source {
    pub fn text(self) -> &'static str {
        match self {
            Self::Qstats => "qstats",
            Self::Ethtool => "ethtool -S",
            Self::Device => "its own counters",
            Self::Nothing => "nobody",
        }
    }
}

/// Values that go up and down among the [`Counts`].
pub(crate) const GAUGES: [&str; 3] = ["softnet_backlog", "bql_inflight", "bql_limit"];

/// Counters that the kernel keeps in 32 bits, besides those of interrupts.
fn is_32_bits(name: &str) -> bool {
    name.starts_with("softnet_") || matches!(name, "carrier_changes" | "qdisc_drops")
}

/// Increase of the counter of this name; `None`: it went backwards, and what was counted is not known.
pub fn more(name: &str, before: u64, after: u64) -> Option<u64> {
    if is_32_bits(name) { more_32(before, after) } else { more_64(before, after) }
}

/// Over the wrap, where one is near: from the uppermost quarter into the lowest. Anything else that goes backwards
/// was reset.
fn more_64(before: u64, after: u64) -> Option<u64> {
    let wrapped = before >= 3 << 62 && after < 1 << 62;
    after.checked_sub(before).or_else(|| wrapped.then(|| after.wrapping_sub(before)))
}

/// The same for a counter of 32 bits. Interrupt counts are such.
pub fn more_32(before: u64, after: u64) -> Option<u64> {
    let wrapped = before <= u64::from(u32::MAX) && before >= 3 << 30 && after < 1 << 30;
    after.checked_sub(before).or_else(|| wrapped.then(|| after + (1 << 32) - before))
}

/// Increase of every counter that is in both; names of those that went backwards. Gauges are left out.
pub(crate) fn grown(before: &Counts, after: &Counts) -> (Counts, Vec<String>) {
    let (mut out, mut reset) = (Counts::new(), Vec::new());
    for (name, a) in after {
        let Some(b) = before.get(name).filter(|_| !GAUGES.contains(&name.as_str())) else { continue };
        match more(name, *b, *a) {
            Some(n) => drop(out.insert(name.clone(), n)),
            None => reset.push(name.clone()),
        }
    }
    (out, reset)
}

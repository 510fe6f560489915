//! The counters of queues and of CPUs: one enum each, and arrays that are indexed by it.
//!
//! The names that drivers and kernel files use are mapped to the enum once, where they are read. The names here are
//! part of recordings and JSON, and never change.

use std::fmt;
use std::marker::PhantomData;

/// How successive values of a counter relate to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterKind {
    /// Only grows, in 64 bits.
    Bits64,
    /// Only grows, in 32 bits.
    Bits32,
    /// Grows, but the kernel estimates it, and it may step back a little (fs/proc/stat.c).
    Estimate,
    /// A present value, which goes up and down.
    Gauge,
}

/// An enum of counters. Its variants are in the order of their names.
pub trait Counter: Copy + PartialEq + fmt::Debug + 'static {
    /// Every counter, at its index.
    const ALL: &'static [Self];

    /// The index of the counter, below the number of counters.
    fn place(self) -> usize;

    /// The name in recordings and JSON.
    fn name(self) -> &'static str;

    /// How its values relate to each other.
    fn kind(self) -> CounterKind;

    /// `None`: no counter has this name; a later version may know it.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.binary_search_by(|c| c.name().cmp(name)).ok().map(|at| Self::ALL[at])
    }
}

/// A value for each of the `N` counters of type `C`, known or unknown. An unknown value is never 0.
#[derive(Clone, PartialEq, Eq)]
pub struct CounterValues<C, const N: usize> {
    /// Bit `n`: the counter with index `n` is known.
    told: u32,
    /// 0 where the counter is unknown.
    numbers: [u64; N],
    of: PhantomData<C>,
}

impl<C, const N: usize> Default for CounterValues<C, N> {
    fn default() -> Self {
        const { assert!(N <= 32, "a bit for each counter") }
        Self { told: 0, numbers: [0; N], of: PhantomData }
    }
}

impl<C: Counter, const N: usize> CounterValues<C, N> {
    /// `None`: unknown.
    pub fn get(&self, counter: C) -> Option<u64> {
        let at = counter.place();
        (self.told & 1 << at != 0).then(|| self.numbers[at])
    }

    /// Sets the value, and overwrites an earlier one.
    pub fn set(&mut self, counter: C, n: u64) {
        let at = counter.place();
        self.told |= 1 << at;
        self.numbers[at] = n;
    }

    /// Adds to a counter that its driver reports in several parts. Wraps at 64 bits like the parts.
    pub fn add(&mut self, counter: C, n: u64) {
        let at = counter.place();
        self.told |= 1 << at;
        self.numbers[at] = self.numbers[at].wrapping_add(n);
    }

    /// Makes the counter unknown.
    pub fn remove(&mut self, counter: C) {
        let at = counter.place();
        self.told &= !(1 << at);
        self.numbers[at] = 0;
    }

    /// The known counters, by name.
    pub fn iter(&self) -> impl Iterator<Item = (C, u64)> + '_ {
        let mut left = self.told;
        std::iter::from_fn(move || {
            let at = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            Some((*C::ALL.get(at)?, *self.numbers.get(at)?))
        })
    }

    /// Whether no counter is known.
    pub fn is_empty(&self) -> bool {
        self.told == 0
    }
}

impl<C: Counter, const N: usize> FromIterator<(C, u64)> for CounterValues<C, N> {
    fn from_iter<T: IntoIterator<Item = (C, u64)>>(all: T) -> Self {
        let mut out = Self::default();
        for (counter, n) in all {
            out.set(counter, n);
        }
        out
    }
}

impl<C: Counter, const N: usize, const M: usize> From<[(C, u64); M]> for CounterValues<C, N> {
    fn from(all: [(C, u64); M]) -> Self {
        all.into_iter().collect()
    }
}

impl<C: Counter, const N: usize> fmt::Debug for CounterValues<C, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(c, n)| (c.name(), n))).finish()
    }
}

macro_rules! counters {
    ($(#[$about:meta])* $counter:ident, $values:ident { $($(#[$doc:meta])* $id:ident = $name:literal $kind:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $counter { $($(#[$doc])* $id,)* }

        impl Counter for $counter {
            const ALL: &'static [Self] = &[$(Self::$id,)*];

            fn place(self) -> usize {
                self as usize
            }

            fn name(self) -> &'static str {
                match self { $(Self::$id => $name,)* }
            }

            fn kind(self) -> CounterKind {
                match self { $(Self::$id => CounterKind::$kind,)* }
            }
        }

        /// A value for each of these counters, known or unknown.
        pub type $values = CounterValues<$counter, { $counter::ALL.len() }>;
    };
}

counters! {
    /// Counters of one queue in one direction.
    QueueCounter, QueueCounts {
        /// No memory for a new buffer.
        AllocFail = "alloc_fail" Bits64,
        /// Bytes that were given to the device and are not completed.
        BqlInflight = "bql_inflight" Gauge,
        /// The byte queue limit.
        BqlLimit = "bql_limit" Gauge,
        /// Bytes of these packets, as the driver counts them.
        Bytes = "bytes" Bits64,
        /// Packets that arrived and were lost, as the driver counts them.
        Drops = "drops" Bits64,
        /// `tx-hw-drop-errors` of qstats: the packet was malformed.
        HwDropErrors = "hw_drop_errors" Bits64,
        /// `rx-hw-drop-overruns` of qstats: no free descriptor.
        HwDropOverruns = "hw_drop_overruns" Bits64,
        /// `rx-hw-drop-ratelimits`, `tx-hw-drop-ratelimits` of qstats: the device limits the rate.
        HwDropRatelimits = "hw_drop_ratelimits" Bits64,
        /// `rx-hw-drops`, `tx-hw-drops` of qstats.
        HwDrops = "hw_drops" Bits64,
        /// `rx-hw-gro-packets` of qstats: packets that the device merged.
        HwGroPackets = "hw_gro_packets" Bits64,
        /// `tx-hw-gso-packets` of qstats: packets that the device cut into segments.
        HwGsoPackets = "hw_gso_packets" Bits64,
        /// Packets that the queue received or sent.
        Packets = "packets" Bits64,
        /// Pages that the page pool of the queue gave from its cache.
        PoolFast = "pool_fast" Bits64,
        /// Pages that were not recycled because another reference to them was left, or because they are of the emergency
        /// reserve (`pfmemalloc`).
        PoolRefcnt = "pool_refcnt" Bits64,
        /// Pages that the pool gave when it refilled its cache from its ring, one for each refill.
        PoolRefill = "pool_refill" Bits64,
        /// Pages that were not recycled because the ring of the pool was full.
        PoolRingFull = "pool_ring_full" Bits64,
        /// How often the pool went to the page allocator, each time for up to 64 pages.
        PoolSlow = "pool_slow" Bits64,
        /// What the queueing discipline of the transmit queue dropped.
        QdiscDrops = "qdisc_drops" Bits32,
        /// How often the driver stopped the transmit queue because it was full.
        Stop = "stop" Bits64,
        /// How often the watchdog found the transmit queue stuck.
        Timeouts = "timeouts" Bits64,
        /// How often the driver started the transmit queue again.
        Wake = "wake" Bits64,
    }
}

counters! {
    /// Counters of one CPU: ticks of `/proc/stat`, `/proc/net/softnet_stat`, the time of its ksoftirqd.
    CpuCounter, CpuCounts {
        /// Ticks without work.
        Idle = "idle" Estimate,
        /// Ticks without work while a task waited for a disk.
        Iowait = "iowait" Estimate,
        /// Ticks in interrupts.
        Irq = "irq" Bits64,
        /// Nanoseconds in which the ksoftirqd of the CPU ran.
        KsoftirqdNs = "ksoftirqd_ns" Bits64,
        /// Ticks in programs of low priority.
        Nice = "nice" Bits64,
        /// Ticks in softirqs.
        Softirq = "softirq" Bits64,
        /// Packets in the backlog now.
        SoftnetBacklog = "softnet_backlog" Gauge,
        /// Packets dropped because the backlog was full.
        SoftnetDropped = "softnet_dropped" Bits32,
        /// Packets dropped by the flow limit of the backlog.
        SoftnetFlowLimit = "softnet_flow_limit" Bits32,
        /// Packets taken from the backlog and by NAPI.
        SoftnetProcessed = "softnet_processed" Bits32,
        /// Wake-ups received from other CPUs for RPS.
        SoftnetRps = "softnet_rps" Bits32,
        /// Rounds that ended with work left, because budget or time was used up.
        SoftnetSqueezed = "softnet_squeezed" Bits32,
        /// Ticks that the hypervisor gave to other virtual machines.
        Steal = "steal" Bits64,
        /// Ticks in the kernel.
        System = "system" Bits64,
        /// Ticks in programs.
        User = "user" Bits64,
    }
}

impl QueueCounter {
    /// Lost packets of a queue: the first of these counters that its driver has; a narrower counter is part of the
    /// wider one.
    pub const LOST: [Self; 3] = [Self::Drops, Self::HwDrops, Self::HwDropOverruns];
}

impl CpuCounter {
    /// The counters of `/proc/net/softnet_stat` that only grow.
    pub const SOFTNET: [Self; 5] =
        [Self::SoftnetDropped, Self::SoftnetFlowLimit, Self::SoftnetProcessed, Self::SoftnetRps, Self::SoftnetSqueezed];
}

/// Pages that a slow allocation requests at once: `PP_ALLOC_CACHE_REFILL` in include/net/page_pool/types.h.
const REFILL: f64 = 64.0;

/// What a page pool did in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolUse {
    /// Pages given from its cache or its ring.
    pub fast: u64,
    /// How often it went to the page allocator, each time for up to 64 pages (`__page_pool_alloc_netmems_slow`, which
    /// asks for PP_ALLOC_CACHE_REFILL). One of them is counted here, the others as fast when the driver takes them.
    /// Pools of pages of a higher order, and memory of programs, are not counted here.
    pub slow: u64,
    /// Pages not recycled because the ring of the pool was full (`page_pool_put_unrefed_netmem`). XDP returns up to 16
    /// pages at once; if the ring is full before the last of them, they count as one (`page_pool_recycle_ring_bulk`).
    pub ring_full: u64,
    /// Pages not recycled because another reference to them was left, or because they are of the emergency reserve
    /// (`__page_pool_put_page`, `released_refcnt`).
    pub in_use: u64,
}

impl PoolUse {
    /// From the increases of a queue's counters. `None`: its pool has no counters.
    pub fn of(counts: &QueueCounts) -> Option<Self> {
        let of = |c| counts.get(c);
        Some(Self {
            fast: of(QueueCounter::PoolFast)?.saturating_add(of(QueueCounter::PoolRefill).unwrap_or_default()),
            slow: of(QueueCounter::PoolSlow)?,
            ring_full: of(QueueCounter::PoolRingFull).unwrap_or_default(),
            in_use: of(QueueCounter::PoolRefcnt).unwrap_or_default(),
        })
    }

    /// Pages that were not recycled: the page allocator must replace them.
    pub fn lost(&self) -> u64 {
        self.ring_full.saturating_add(self.in_use)
    }

    /// Their share of the pages that the driver took, in per cent. `None`: it took none.
    pub fn lost_percent(&self) -> Option<f64> {
        let taken = self.fast.saturating_add(self.slow);
        (taken > 0).then(|| self.lost() as f64 / taken as f64 * 100.0)
    }

    /// The largest share of the pages that can come from the page allocator, in per cent: a slow allocation gets up to
    /// 64 pages, and fewer when memory is short. `None`: the driver took no page.
    pub fn slow_percent(&self) -> Option<f64> {
        let taken = self.fast.saturating_add(self.slow);
        (taken > 0).then(|| (self.slow as f64 * REFILL / taken as f64 * 100.0).min(100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_name<C: Counter>() {
        assert!(C::ALL.is_sorted_by(|a, b| a.name() < b.name()), "{:?}", C::ALL);
        for (at, c) in C::ALL.iter().enumerate() {
            assert_eq!((c.place(), C::from_name(c.name())), (at, Some(*c)));
        }
        assert!(C::from_name("").is_none() && C::from_name("rx_packets").is_none());
    }

    #[test]
    fn places_follow_the_names() {
        by_name::<QueueCounter>();
        by_name::<CpuCounter>();
    }

    #[test]
    fn an_unknown_count_is_not_0() {
        let mut c = QueueCounts::from([(QueueCounter::Packets, 0), (QueueCounter::Wake, 7)]);
        assert_eq!((c.get(QueueCounter::Packets), c.get(QueueCounter::Bytes)), (Some(0), None));
        assert_ne!(c, QueueCounts::from([(QueueCounter::Wake, 7)]));
        c.remove(QueueCounter::Wake);
        assert_eq!(c, QueueCounts::from([(QueueCounter::Packets, 0)]));
        c.remove(QueueCounter::Packets);
        assert!(c.is_empty() && c == QueueCounts::default());
    }

    #[test]
    fn parts_add_up() {
        let mut c = QueueCounts::default();
        c.add(QueueCounter::Packets, u64::MAX);
        c.add(QueueCounter::Packets, 5);
        assert_eq!(c.iter().collect::<Vec<_>>(), [(QueueCounter::Packets, 4)]);
        assert_eq!(format!("{c:?}"), r#"{"packets": 4}"#);
    }
}

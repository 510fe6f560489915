//! Selects the parts of a host to read. A skipped part is unknown, with that reason.

use ringwise_model::Fact;

/// Parts that are expensive to read, or that only some commands need. Interfaces, links, drivers, nodes, channel
/// counts, interrupts and the CPUs to which they are delivered are always read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Packages, dies, cores, caches and capacity of every CPU. Without it, only nodes and siblings.
    pub cores: bool,
    /// The requested CPUs of each interrupt.
    pub asked: bool,
    /// Hint, node and count of each interrupt: `/proc/interrupts`, which is large and visits the counters of
    /// every CPU.
    pub counts: bool,
    /// RPS, RFS, XPS and byte limits of every queue.
    pub steering: bool,
    /// Receive-side scaling: table, key, hash function and contexts.
    pub rss: bool,
    /// Sizes of the rings, and their maxima.
    pub rings: bool,
    /// Moderation of the whole device.
    pub coalesce: bool,
    /// Pause frames.
    pub pause: bool,
    /// Features and private flags.
    pub features: bool,
    /// Moderation of each queue: one call a queue.
    pub queue_coalesce: bool,
    /// Flow steering rules: one call a rule.
    pub rules: bool,
    /// NAPI settings of the device (sysfs) and of its instances (netdev generic netlink).
    pub napi: bool,
    /// sysctls and the wake-up time of CPUs.
    pub host: bool,
    /// What only `show` uses: firmware, PCIe links, governor and energy preference.
    pub shown: bool,
    /// What drivers pass to XDP programs, for `show` and the table of capabilities.
    pub xdp_metadata: bool,
}

impl Parts {
    /// Every part: the slowest way to read a host.
    pub const ALL: Self = Self {
        cores: true,
        asked: true,
        counts: true,
        steering: true,
        rss: true,
        rings: true,
        coalesce: true,
        pause: true,
        features: true,
        queue_coalesce: true,
        rules: true,
        napi: true,
        host: true,
        shown: true,
        xdp_metadata: true,
    };

    /// Only what is always read.
    pub const LEAST: Self = Self {
        cores: false,
        asked: false,
        counts: false,
        steering: false,
        rss: false,
        rings: false,
        coalesce: false,
        pause: false,
        features: false,
        queue_coalesce: false,
        rules: false,
        napi: false,
        host: false,
        shown: false,
        xdp_metadata: false,
    };
}

/// Reads the part, or skips it.
pub(crate) fn part<T>(wanted: bool, what: &str, read: impl FnOnce() -> Fact<T>) -> Fact<T> {
    if wanted { read() } else { Fact::not_requested(what) }
}

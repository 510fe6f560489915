//! The sample of `watch --per-flow` that is printed.

use ringwise_flow::UdpPortsGain;
use ringwise_observe::{AvailableRemedies, Flows};

/// The sample of one interval.
#[derive(Debug, Clone, Default)]
pub struct Interval {
    /// Name of the interface.
    pub dev: String,
    /// Length of the interval.
    pub seconds: f64,
    /// End of the interval, in seconds since 1970.
    pub unix_time: u64,
    /// On average one of this many frames was sampled, chosen at random.
    pub one_in: u32,
    /// The sampled packets, by queue and flow. The counts are not scaled.
    pub flows: Flows,
    /// Frames of the sample that were lost because the buffer was full.
    pub lost: u64,
    /// CPU time that sampling cost in the interval.
    pub cpu_ms: f64,
    /// What the interface has against traffic that it cannot spread. `None`: its settings could not be read.
    pub means: Option<AvailableRemedies>,
    /// What hashing the ports of UDP would change. `None`: nothing, or it cannot be predicted.
    pub udp_ports: Option<UdpPortsGain>,
}

impl Interval {
    /// Estimated packets per second from a number of sampled packets.
    pub(super) fn a_second(&self, packets: u64) -> f64 {
        packets as f64 * f64::from(self.one_in) / self.seconds
    }
}

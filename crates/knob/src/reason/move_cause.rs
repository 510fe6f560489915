//! Why the planned CPU of an interrupt is another than the present one.

use serde::{Deserialize, Serialize};

/// Why an interrupt that may be delivered to several CPUs is pinned to another CPU than the present one. It names no CPU, so
/// that the page shows it once for all queues of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MoveCause {
    /// The present CPU is excluded from queue interrupts: reserved, excluded or not among the permitted CPUs.
    ExcludedCpu,
    /// The goal uses fewer cores for queues.
    CoreNotUsed,
    /// The present CPU is a second hardware thread, and the plan uses one thread of each core.
    SecondThread,
    /// The other hardware thread of the present core is excluded from queue interrupts.
    PartOfCore,
    /// The present CPU belongs to a slower core.
    SlowerCore,
    /// The node of the present CPU is more distant.
    DistantNode,
    /// The present CPU belongs to another queue group.
    CpuOfOtherGroup,
    /// The present CPU gets a queue of another interface, and no local CPU is left.
    CpuOfOtherInterface,
    /// The L3 cache of the present CPU serves more queues.
    CrowdedCache,
    /// The user permits remote CPUs, and the planned one is remote.
    RemoteRequested,
    /// A transmit interrupt gets the CPU of the receive interrupt of its queue.
    BothDirections,
    /// A sample of the traffic chose the CPUs by the packets that each queue received.
    BusyInSample,
    /// Queues of the same number of several interfaces get different CPUs.
    QueuesOfOneNumber,
    /// The queues are spread evenly over the cores.
    SpreadEvenly,
}

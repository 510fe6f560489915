//! The driver of a simulated device, and the faults that a test can switch on.

use ringwise_model::Nic;

/// How a device behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedDriver {
    /// Intel 82576, as QEMU emulates it.
    Igb,
    /// virtio_net: a change of channels resets affinities and XPS.
    Virtio,
    /// VMware's paravirtual device: it answers EOPNOTSUPP to a change of channels.
    Vmxnet3,
    /// The lab's own test NIC.
    Mqnic,
    /// One queue, no channels.
    E1000e,
    /// Keeps its settings if possible; for devices that the lab does not have.
    Other,
}

impl SimulatedDriver {
    pub(crate) fn of(nic: &Nic) -> Self {
        match nic.driver.known().map(String::as_str) {
            Some("igb") => Self::Igb,
            Some("virtio_net") => Self::Virtio,
            Some("vmxnet3") => Self::Vmxnet3,
            Some("mqnic") => Self::Mqnic,
            Some("e1000e") => Self::E1000e,
            _ => Self::Other,
        }
    }
}

/// Faults that a test can switch on in the test NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quirk {
    /// A change of channels loses affinity, table, moderation and rings. lab: "quirk 64: -L loses affinity"
    Resets,
    /// Microseconds in steps of 8. lab: "quirk 8: microseconds are rounded"
    Rounds,
    /// Moderation is accepted but not applied. lab: "quirk 1: accepted and not done"
    IgnoresModeration,
    /// A write of an RSS table sets up the device again: the link is away for eight seconds. lab: "the link went down and up twice"
    TableTakesLinkDown,
    /// Moderation of odd queues is refused. lab: "quirk 16: odd queues refuse"
    OddQueues,
}

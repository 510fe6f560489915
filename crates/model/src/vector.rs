//! Interrupt vectors of a device and what each serves.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{CpuSet, Fact, IrqId, NodeId, ReasonFields};

/// One interrupt vector of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vector {
    /// Number in `/proc/interrupts`; it may change when the device restarts.
    pub irq: IrqId,
    /// Action names from `/proc/interrupts` or `/sys/kernel/irq/N/actions`; empty while the link is down.
    pub names: Vec<String>,
    /// What it serves.
    pub role: Role,
    /// How certain `role` is.
    pub confidence: Confidence,
    /// Where `role` is from.
    pub source: MapSource,
    /// NAPI instance of the vector, if netdev genl reports it. Changes with every restart of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub napi: Option<u32>,
    /// The requested affinity, `smp_affinity_list`.
    pub asked: Fact<CpuSet>,
    /// `effective_affinity_list`: where the interrupt is delivered. On x86 without interrupt remapping it changes with the next
    /// interrupt.
    pub effective: Fact<CpuSet>,
    /// `affinity_hint` of the driver. Empty: the driver gives none.
    pub hint: Fact<CpuSet>,
    /// NUMA node that the kernel chose for the interrupt (`/proc/irq/N/node`).
    pub node: Fact<NodeId>,
    /// Whether its affinity can be written.
    pub movable: Movable,
    /// Interrupts since boot over all CPUs, at the time of the snapshot.
    pub count: Fact<u64>,
}

/// What a vector serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// These queues of the device. Either list may be empty, not both.
    Queues {
        /// Receive queues, ascending.
        rx: Vec<u32>,
        /// Transmit queues, ascending.
        tx: Vec<u32>,
    },
    /// Link changes, mailbox, events: named by the driver, never a queue.
    Control,
    /// No driver requests it now (spare vectors, device down).
    Idle,
    /// It belongs to the device, but no source shows what it serves.
    Unknown,
}

impl Role {
    /// One vector for receive and transmit queues.
    pub fn is_pair(&self) -> bool {
        matches!(self, Role::Queues { rx, tx } if !rx.is_empty() && !tx.is_empty())
    }
}

/// How certain it is what a vector serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// No source connects it to a queue.
    None,
    /// A pattern that more than one driver uses, or without the MSI list of the device.
    Likely,
    /// The kernel's own link, or MSI list and the driver's own name pattern agree.
    Sure,
}

/// The source for what a vector serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MapSource {
    /// `queue-get` and `napi-get` of the netdev generic netlink family.
    NetdevGenl,
    /// `device/msi_irqs` and the name pattern of the driver.
    MsiAndName,
    /// Only the name in `/proc/interrupts`.
    Name,
    /// No source names it.
    Nothing,
}

/// Whether the affinity of a vector can be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Movable {
    /// A write is expected to succeed.
    Yes,
    /// A write fails.
    No(Immovable),
    /// Only an attempt shows it.
    UnknownUntilTried,
}

/// Why the affinity of a vector cannot be written. In JSON `why` (the text) beside `code`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", remote = "Self")]
pub enum Immovable {
    /// The kernel spreads the interrupt itself (`IRQD_AFFINITY_MANAGED`).
    Managed,
    /// The kernel has no affinity file for it.
    NoAffinityFile,
    /// Written by another version of ringwise: kept as it was read.
    #[serde(skip)]
    Other(ReasonFields),
}

crate::serde_as_coded!(Immovable);

impl fmt::Display for Immovable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Managed => "managed by the kernel (IRQD_AFFINITY_MANAGED)",
            Self::NoAffinityFile => "the kernel has no affinity file for it",
            Self::Other(kept) => &kept.why,
        })
    }
}

impl Vector {
    /// Receive queues this vector serves.
    pub fn rx(&self) -> &[u32] {
        match &self.role {
            Role::Queues { rx, .. } => rx,
            _ => &[],
        }
    }

    /// Transmit queues this vector serves.
    pub fn tx(&self) -> &[u32] {
        match &self.role {
            Role::Queues { tx, .. } => tx,
            _ => &[],
        }
    }

    /// The CPUs that take the interrupt. If it is pinned to a CPU where it has not arrived yet, this CPU, because the
    /// kernel moves the interrupt when the device raises it the next time. `None`: not known.
    pub fn taken_by(&self) -> Option<&CpuSet> {
        match (self.asked.known(), self.effective.known()) {
            (Some(asked), Some(now)) if asked.len() == 1 && !now.intersects(asked) => Some(asked),
            (_, now) => now,
        }
    }

    /// Whether it serves at least one queue.
    pub fn is_queue(&self) -> bool {
        matches!(self.role, Role::Queues { .. })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn why_it_cannot_be_moved_in_documents() {
        let managed = Movable::No(Immovable::Managed);
        let json = json!({ "no": { "why": "managed by the kernel (IRQD_AFFINITY_MANAGED)", "code": "managed" } });
        assert_eq!(serde_json::to_value(&managed).unwrap(), json);
        assert_eq!(serde_json::from_value::<Movable>(json).unwrap(), managed);
        for other in [json!({ "no": { "why": "glued" } }), json!({ "no": { "why": "glued", "code": "glue" } })] {
            let kept: Movable = serde_json::from_value(other.clone()).unwrap();
            let Movable::No(why @ Immovable::Other(_)) = &kept else { panic!("{kept:?}") };
            assert_eq!((why.to_string().as_str(), serde_json::to_value(&kept).unwrap()), ("glued", other));
        }
    }
}

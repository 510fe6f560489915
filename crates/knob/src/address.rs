//! Which setting, without its value.

use std::mem::discriminant;

use serde::{Deserialize, Serialize};

use crate::{Address, Family};

/// A vector of a device, named by what it serves; interrupt numbers change behind our back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// The vector of this receive queue (and of whatever else shares it).
    Rx(u32),
    /// The vector of this transmit queue.
    Tx(u32),
    /// The n-th vector of the device that serves no queue, in MSI order.
    Control(u32),
}

impl std::fmt::Display for Of {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Of::Rx(q) => write!(f, "rx-{q}"),
            Of::Tx(q) => write!(f, "tx-{q}"),
            Of::Control(n) => write!(f, "control-{n}"),
        }
    }
}

/// Of a range of an ordered map, what is of the same kind and device as its first address: settings of one kind stand
/// together, by device and queue.
pub fn alike<'a, V: 'a>(
    range: impl Iterator<Item = (&'a Address, V)>,
    first: &Address,
) -> impl Iterator<Item = (&'a Address, V)> {
    range.take_while(move |(a, _)| discriminant(*a) == discriminant(first) && a.dev() == first.dev())
}

impl Address {
    /// Families of the same device that writing this one may reset or renumber. What really happens
    /// differs by driver (lab: igb loses affinity and RSS, virtio_net rewrites affinity and XPS,
    /// vmxnet3 loses RSS on a ring change), so the worst case is assumed and looked at afterwards.
    pub fn invalidates(&self) -> &'static [Family] {
        self.family().descriptor().invalidates(self)
    }

    /// Whether writing it takes the link down or loses packets for a moment.
    pub fn interrupts_traffic(&self) -> bool {
        self.family().descriptor().interrupts_traffic(self)
    }

    /// The one file that holds the setting. `None`: it is set by a request, it has several files, or its file has a
    /// number of the moment in its name ([`crate::path::affinity`]).
    pub fn file(&self) -> Option<String> {
        self.family().descriptor().file(self)
    }
}

impl std::fmt::Display for Address {
    /// `eth1 interrupt CPU rx-3`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.family().descriptor().label(self))
    }
}

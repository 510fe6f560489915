//! Addresses of settings: which setting, without its value.

use std::mem::discriminant;

use ringwise_model::{Nic, Snapshot};
use serde::{Deserialize, Serialize};

use crate::{Address, Family};

/// A vector of a device, named by the queue that it serves, because interrupt numbers may change at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorName {
    /// The vector of this receive queue (and of whatever else shares it).
    Rx(u32),
    /// The vector of this transmit queue.
    Tx(u32),
    /// The n-th vector of the device that serves no queue, in MSI order.
    Control(u32),
}

impl std::fmt::Display for VectorName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            VectorName::Rx(q) => write!(f, "rx-{q}"),
            VectorName::Tx(q) => write!(f, "tx-{q}"),
            VectorName::Control(n) => write!(f, "control-{n}"),
        }
    }
}

/// The entries at the start of `range` that have the same kind and device as `first`. In an ordered map such settings are
/// next to each other, sorted by device and queue.
pub fn alike<'a, V: 'a>(
    range: impl Iterator<Item = (&'a Address, V)>,
    first: &Address,
) -> impl Iterator<Item = (&'a Address, V)> {
    range.take_while(move |(a, _)| discriminant(*a) == discriminant(first) && a.dev() == first.dev())
}

/// Drivers that stop and start the device when its RSS table, hash or hash fields are written, and drop flow rules then
/// (`bnxt_set_rxfh` and `bnxt_srxfh` in drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c).
const RESTART_FOR_RSS: [&str; 1] = ["bnxt_en"];

/// Whether the driver stops and starts the device when its RSS table is written.
pub fn restarts_for_rss(nic: &Nic) -> bool {
    driver_restarts_for_rss(nic.driver.known().map(String::as_str))
}

/// The same of a driver by its name; `None` if that is unknown.
pub fn driver_restarts_for_rss(driver: Option<&str>) -> bool {
    driver.is_some_and(|d| RESTART_FOR_RSS.contains(&d))
}

/// Drivers that switch the feature `rx-ntuple-filter` without a restart of the device: their `ndo_set_features` at most
/// deletes or programs rules, and enic has none (read in copies of their source, of several versions; mqnic is the lab's
/// test NIC). Others reset the device (igb, igc, ixgbe, i40e, txgbe, bnxt_en) or were not examined.
const NTUPLE_WITHOUT_RESTART: [&str; 19] = [
    "atlantic",
    "cxgb4",
    "enic",
    "gve",
    "hns3",
    "ice",
    "macb",
    "mlx4_core",
    "mlx4_en",
    "mlx5_core",
    "mqnic",
    "qede",
    "rvu_nicpf",
    "rvu_nicvf",
    "sfc",
    "sfc-falcon",
    "sfc-siena",
    "sfc_falcon",
    "sfc_siena",
];

/// Whether the driver stops and starts the device, or may do so, when `rx-ntuple-filter` is switched.
pub fn restarts_for_ntuple(nic: &Nic) -> bool {
    driver_restarts_for_ntuple(nic.driver.known().map(String::as_str))
}

/// The same of a driver by its name; `None` if that is unknown.
pub fn driver_restarts_for_ntuple(driver: Option<&str>) -> bool {
    !driver.is_some_and(|d| NTUPLE_WITHOUT_RESTART.contains(&d))
}

impl Address {
    /// Families of the same device that a write to this setting may reset or renumber. The effect differs by driver (lab:
    /// igb loses affinity and RSS, virtio_net rewrites affinity and XPS, vmxnet3 loses RSS on a ring change) and by kernel
    /// (ice and idpf since 6.15, iavf since 6.17 keep affinity: net/core/dev.c, `napi_restore_config`), so ringwise assumes the
    /// worst case and checks afterwards.
    pub fn invalidates(&self) -> &'static [Family] {
        self.family().descriptor().invalidates(self)
    }

    /// The same on this device: switching `rx-ntuple-filter` is a restart on some.
    pub fn invalidates_of(&self, nic: Option<&Nic>) -> &'static [Family] {
        match self {
            Self::Ntuple { .. } if nic.is_some_and(restarts_for_ntuple) => {
                &[Family::Rules, Family::Rivals, Family::Coalesce, Family::Rss, Family::Irq, Family::Xps, Family::Napi]
            }
            _ => self.invalidates(),
        }
    }

    /// Whether a write takes the link down or loses packets for a moment, on every device.
    pub fn interrupts_traffic(&self) -> bool {
        self.family().descriptor().interrupts_traffic(self)
    }

    /// The same on this device. `None`: it is not there.
    pub fn interrupts_traffic_of(&self, nic: Option<&Nic>) -> bool {
        let hash = matches!(self, Self::RssTable { .. } | Self::RssHash { .. } | Self::RssFields { .. });
        let ntuple = matches!(self, Self::Ntuple { .. });
        self.interrupts_traffic()
            || hash && nic.is_some_and(restarts_for_rss)
            || ntuple && nic.is_some_and(restarts_for_ntuple)
    }

    /// The same on this host.
    pub fn interrupts_traffic_on(&self, now: &Snapshot) -> bool {
        self.interrupts_traffic_of(self.dev().and_then(|d| now.nic(d)))
    }

    /// The one file that holds the setting. `None` if the setting is written by a request, has several files, or has a
    /// file whose name contains a number that can change ([`crate::path::affinity`]).
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

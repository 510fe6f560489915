//! Which setting, without its value.

use serde::{Deserialize, Serialize};

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

/// The address of one kernel setting. Devices by name; the plan and the journal carry their identity.
/// The order of the variants is the order in which settings are written (DESIGN section 2).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// irqbalance leaves the device alone when it is started again.
    IrqbalanceRestart {
        dev: String,
    },
    /// irqbalance leaves interrupts of the device alone.
    IrqbalanceBan {
        dev: String,
    },
    Channels {
        dev: String,
    },
    Rings {
        dev: String,
    },
    Coalesce {
        dev: String,
    },
    RssTable {
        dev: String,
    },
    IrqCpus {
        dev: String,
        of: Of,
    },
    XpsCpus {
        dev: String,
        queue: u32,
    },
    XpsRxqs {
        dev: String,
        queue: u32,
    },
    RpsCpus {
        dev: String,
        queue: u32,
    },
    RpsFlowCnt {
        dev: String,
        queue: u32,
    },
    /// sysctl `net.core.rps_sock_flow_entries`.
    RfsEntries,
}

/// A family of settings; one file of this name in each room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    Rivals,
    Channels,
    Rings,
    Coalesce,
    Rss,
    Irq,
    Xps,
    Rps,
    Rfs,
}

impl Family {
    /// For people: `interrupt CPU`, `XPS CPUs`, …
    pub fn title(self) -> &'static str {
        match self {
            Self::Rivals => "irqbalance",
            Self::Channels => "channels",
            Self::Rings => "rings",
            Self::Coalesce => "moderation",
            Self::Rss => "RSS table",
            Self::Irq => "interrupt CPU",
            Self::Xps => "XPS CPUs",
            Self::Rps => "RPS CPUs",
            Self::Rfs => "RFS entries",
        }
    }
}

impl Address {
    pub fn family(&self) -> Family {
        match self {
            Self::IrqbalanceRestart { .. } | Self::IrqbalanceBan { .. } => Family::Rivals,
            Self::Channels { .. } => Family::Channels,
            Self::Rings { .. } => Family::Rings,
            Self::Coalesce { .. } => Family::Coalesce,
            Self::RssTable { .. } => Family::Rss,
            Self::IrqCpus { .. } => Family::Irq,
            Self::XpsCpus { .. } | Self::XpsRxqs { .. } => Family::Xps,
            Self::RpsCpus { .. } => Family::Rps,
            Self::RpsFlowCnt { .. } | Self::RfsEntries => Family::Rfs,
        }
    }

    /// The device, `None` for settings of the host.
    pub fn dev(&self) -> Option<&str> {
        match self {
            Self::IrqbalanceRestart { dev }
            | Self::IrqbalanceBan { dev }
            | Self::Channels { dev }
            | Self::Rings { dev }
            | Self::Coalesce { dev }
            | Self::RssTable { dev }
            | Self::IrqCpus { dev, .. }
            | Self::XpsCpus { dev, .. }
            | Self::XpsRxqs { dev, .. }
            | Self::RpsCpus { dev, .. }
            | Self::RpsFlowCnt { dev, .. } => Some(dev),
            Self::RfsEntries => None,
        }
    }

    /// The same setting on a device that has another name now.
    pub fn renamed(&self, name: &str) -> Self {
        let mut a = self.clone();
        match &mut a {
            Self::IrqbalanceRestart { dev }
            | Self::IrqbalanceBan { dev }
            | Self::Channels { dev }
            | Self::Rings { dev }
            | Self::Coalesce { dev }
            | Self::RssTable { dev }
            | Self::IrqCpus { dev, .. }
            | Self::XpsCpus { dev, .. }
            | Self::XpsRxqs { dev, .. }
            | Self::RpsCpus { dev, .. }
            | Self::RpsFlowCnt { dev, .. } => *dev = name.to_string(),
            Self::RfsEntries => {}
        }
        a
    }

    /// Families of the same device that writing this one may reset or renumber. What really happens
    /// differs by driver (lab: igb loses affinity and RSS, virtio_net rewrites affinity and XPS,
    /// vmxnet3 loses RSS on a ring change), so the worst case is assumed and looked at afterwards.
    pub fn invalidates(&self) -> &'static [Family] {
        match self {
            Self::Channels { .. } => {
                // New interrupts are not those that irqbalance was told of.
                &[
                    Family::Rivals,
                    Family::Rings,
                    Family::Coalesce,
                    Family::Rss,
                    Family::Irq,
                    Family::Xps,
                    Family::Rps,
                    Family::Rfs,
                ]
            }
            Self::Rings { .. } => &[Family::Rivals, Family::Coalesce, Family::Rss, Family::Irq, Family::Xps],
            _ => &[],
        }
    }

    /// Whether writing it takes the link down or loses packets for a moment.
    pub fn interrupts_traffic(&self) -> bool {
        matches!(self, Self::Channels { .. } | Self::Rings { .. })
    }
}

impl std::fmt::Display for Address {
    /// `eth1 interrupt CPU rx-3`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::IrqbalanceRestart { dev } => write!(f, "{dev} irqbalance after its restart"),
            Self::IrqbalanceBan { dev } => write!(f, "{dev} irqbalance"),
            Self::Channels { dev } => write!(f, "{dev} channels"),
            Self::Rings { dev } => write!(f, "{dev} rings"),
            Self::Coalesce { dev } => write!(f, "{dev} moderation"),
            Self::RssTable { dev } => write!(f, "{dev} RSS table"),
            Self::IrqCpus { dev, of } => write!(f, "{dev} interrupt CPU {of}"),
            Self::XpsCpus { dev, queue } => write!(f, "{dev} tx-{queue} xps_cpus"),
            Self::XpsRxqs { dev, queue } => write!(f, "{dev} tx-{queue} xps_rxqs"),
            Self::RpsCpus { dev, queue } => write!(f, "{dev} rx-{queue} rps_cpus"),
            Self::RpsFlowCnt { dev, queue } => write!(f, "{dev} rx-{queue} rps_flow_cnt"),
            Self::RfsEntries => f.write_str("net.core.rps_sock_flow_entries"),
        }
    }
}

//! Which setting, without its value.

use std::mem::discriminant;

use ringwise_model::CpuId;
use serde::{Deserialize, Serialize};

use crate::features;

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

/// The one list of what is a setting of a device, and what one of the host; for addresses and for settings, whose
/// variants have the same names (and more, which the caller names).
macro_rules! of_device {
    ($it:expr, $dev:ident => $device:expr, [$($more:pat)?] => $host:expr) => {
        match $it {
            Self::IrqbalanceRestart { $dev, .. }
            | Self::IrqbalanceBan { $dev, .. }
            | Self::Feature { $dev, .. }
            | Self::Channels { $dev, .. }
            | Self::Rings { $dev, .. }
            | Self::Pause { $dev, .. }
            | Self::Coalesce { $dev, .. }
            | Self::QueueCoalesce { $dev, .. }
            | Self::RssHash { $dev, .. }
            | Self::RssFields { $dev, .. }
            | Self::RssTable { $dev, .. }
            | Self::RssContext { $dev, .. }
            | Self::Ntuple { $dev, .. }
            | Self::FlowRule { $dev, .. }
            | Self::IrqCpus { $dev, .. }
            | Self::XpsCpus { $dev, .. }
            | Self::XpsRxqs { $dev, .. }
            | Self::RpsCpus { $dev, .. }
            | Self::RpsFlowCnt { $dev, .. }
            | Self::NapiDevice { $dev, .. }
            | Self::Napi { $dev, .. }
            | Self::NapiThread { $dev, .. } => $device,
            Self::RfsEntries { .. } | Self::Sysctl { .. } | Self::CpuLatency { .. } $(| $more)? => $host,
        }
    };
}
pub(crate) use of_device;

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
    /// A feature that drops no rules when it goes off.
    Feature {
        dev: String,
        name: String,
    },
    Channels {
        dev: String,
    },
    Rings {
        dev: String,
    },
    Pause {
        dev: String,
    },
    Coalesce {
        dev: String,
    },
    QueueCoalesce {
        dev: String,
        queue: u32,
    },
    /// Function, key and input transform.
    RssHash {
        dev: String,
    },
    RssFields {
        dev: String,
        flow: String,
    },
    RssTable {
        dev: String,
    },
    RssContext {
        dev: String,
        context: u32,
    },
    /// The feature that rules and accelerated RFS need.
    Ntuple {
        dev: String,
    },
    FlowRule {
        dev: String,
        location: u32,
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
    /// NAPI values that hold for all queues of the device.
    NapiDevice {
        dev: String,
    },
    /// NAPI values of the instance that serves this queue.
    Napi {
        dev: String,
        of: Of,
    },
    /// CPUs of the thread that polls for this queue.
    NapiThread {
        dev: String,
        of: Of,
    },
    /// By its name, `net.core.netdev_budget`.
    Sysctl {
        name: String,
    },
    /// Longest wake-up time of a CPU.
    CpuLatency {
        cpu: CpuId,
    },
}

/// Of a range of an ordered map, what is of the same kind and device as its first address: settings of one kind stand
/// together, by device and queue.
pub fn alike<'a, V: 'a>(
    range: impl Iterator<Item = (&'a Address, V)>,
    first: &Address,
) -> impl Iterator<Item = (&'a Address, V)> {
    range.take_while(move |(a, _)| discriminant(*a) == discriminant(first) && a.dev() == first.dev())
}

/// A family of settings; one file of this name in each room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    Rivals,
    Features,
    Channels,
    Rings,
    Pause,
    Coalesce,
    Rss,
    Rules,
    Irq,
    Xps,
    Rps,
    Rfs,
    Napi,
    Host,
}

impl Family {
    /// For people: `interrupt CPU`, `XPS CPUs`, …
    pub fn title(self) -> &'static str {
        match self {
            Self::Rivals => "irqbalance",
            Self::Features => "features",
            Self::Channels => "channels",
            Self::Rings => "rings",
            Self::Pause => "pause frames",
            Self::Coalesce => "moderation",
            Self::Rss => "RSS",
            Self::Rules => "flow rules",
            Self::Irq => "interrupt CPU",
            Self::Xps => "XPS CPUs",
            Self::Rps => "RPS CPUs",
            Self::Rfs => "RFS entries",
            Self::Napi => "NAPI",
            Self::Host => "host",
        }
    }
}

impl Address {
    pub fn family(&self) -> Family {
        match self {
            Self::IrqbalanceRestart { .. } | Self::IrqbalanceBan { .. } => Family::Rivals,
            Self::Channels { .. } => Family::Channels,
            Self::Rings { .. } => Family::Rings,
            Self::Feature { .. } => Family::Features,
            Self::Pause { .. } => Family::Pause,
            Self::Coalesce { .. } | Self::QueueCoalesce { .. } => Family::Coalesce,
            Self::RssHash { .. } | Self::RssFields { .. } | Self::RssTable { .. } | Self::RssContext { .. } => {
                Family::Rss
            }
            Self::Ntuple { .. } | Self::FlowRule { .. } => Family::Rules,
            Self::IrqCpus { .. } => Family::Irq,
            Self::XpsCpus { .. } | Self::XpsRxqs { .. } => Family::Xps,
            Self::RpsCpus { .. } => Family::Rps,
            Self::RpsFlowCnt { .. } | Self::RfsEntries => Family::Rfs,
            Self::NapiDevice { .. } | Self::Napi { .. } | Self::NapiThread { .. } => Family::Napi,
            Self::Sysctl { .. } | Self::CpuLatency { .. } => Family::Host,
        }
    }

    /// The device, `None` for settings of the host.
    pub fn dev(&self) -> Option<&str> {
        of_device!(self, dev => Some(dev), [] => None)
    }

    /// The same setting on a device that has another name now.
    pub fn renamed(&self, name: &str) -> Self {
        let mut a = self.clone();
        of_device!(&mut a, dev => *dev = name.to_string(), [] => {});
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
                    Family::Rules,
                    Family::Irq,
                    Family::Xps,
                    Family::Rps,
                    Family::Rfs,
                    Family::Napi,
                ]
            }
            // What depends on it goes with it; a driver that restarts the device may lose what a ring change loses.
            Self::Feature { name, .. } if features::is_software(name) => &[Family::Features],
            Self::Feature { .. } => {
                &[Family::Features, Family::Coalesce, Family::Rss, Family::Irq, Family::Xps, Family::Napi]
            }
            Self::Rings { .. } => {
                &[Family::Rivals, Family::Coalesce, Family::Rss, Family::Irq, Family::Xps, Family::Napi]
            }
            // What is set for the device is set for each queue.
            Self::Coalesce { .. } => &[Family::Coalesce],
            // So too for NAPI; a thread that is made anew may run anywhere.
            Self::NapiDevice { .. } | Self::Napi { .. } => &[Family::Napi],
            // Many drivers drop all rules when it goes off.
            Self::Ntuple { .. } => &[Family::Rules],
            _ => &[],
        }
    }

    /// Whether writing it takes the link down or loses packets for a moment.
    pub fn interrupts_traffic(&self) -> bool {
        match self {
            Self::Channels { .. } | Self::Rings { .. } | Self::Pause { .. } => true,
            Self::Feature { name, .. } => !features::is_software(name),
            _ => false,
        }
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
            Self::Feature { dev, name } => write!(f, "{dev} {name}"),
            Self::Pause { dev } => write!(f, "{dev} pause frames"),
            Self::QueueCoalesce { dev, queue } => write!(f, "{dev} moderation queue {queue}"),
            Self::RssHash { dev } => write!(f, "{dev} RSS hash"),
            Self::RssFields { dev, flow } => write!(f, "{dev} RSS fields {flow}"),
            Self::RssTable { dev } => write!(f, "{dev} RSS table"),
            Self::RssContext { dev, context } => write!(f, "{dev} RSS context {context}"),
            Self::Ntuple { dev } => write!(f, "{dev} rx-ntuple-filter"),
            Self::FlowRule { dev, location } => write!(f, "{dev} flow rule {}", crate::rules::location_text(*location)),
            Self::IrqCpus { dev, of } => write!(f, "{dev} interrupt CPU {of}"),
            Self::XpsCpus { dev, queue } => write!(f, "{dev} tx-{queue} xps_cpus"),
            Self::XpsRxqs { dev, queue } => write!(f, "{dev} tx-{queue} xps_rxqs"),
            Self::RpsCpus { dev, queue } => write!(f, "{dev} rx-{queue} rps_cpus"),
            Self::RpsFlowCnt { dev, queue } => write!(f, "{dev} rx-{queue} rps_flow_cnt"),
            Self::RfsEntries => f.write_str("net.core.rps_sock_flow_entries"),
            Self::NapiDevice { dev } => write!(f, "{dev} NAPI"),
            Self::Napi { dev, of } => write!(f, "{dev} NAPI {of}"),
            Self::NapiThread { dev, of } => write!(f, "{dev} NAPI thread CPU {of}"),
            Self::Sysctl { name } => f.write_str(name),
            Self::CpuLatency { cpu } => write!(f, "CPU {cpu} resume latency"),
        }
    }
}

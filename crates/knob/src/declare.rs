//! The one list of settings. [`Address`] and [`Setting`], with what follows from their shape, are made from it; what a
//! setting means stands in the file of its family (see [`crate::Descriptor`]).

use std::collections::BTreeMap;

use ringwise_model::{CpuId, CpuSet, NapiValues, RingValues, Rule};
use serde::{Deserialize, Serialize};

use crate::{Family, Of, rivals};

/// What a part of an address means.
macro_rules! about_key {
    (dev) => {
        "Name of the interface."
    };
    (queue) => {
        "Number of the queue."
    };
    (name) => {
        "The kernel's name of it."
    };
    (flow) => {
        "Flow type in ethtool's words: `udp4`."
    };
    (context) => {
        "Number of the context."
    };
    (location) => {
        "Place in the device's table, or a number that stands for what the rule matches (see [`crate::rules`])."
    };
    (of) => {
        "The queue that the vector or NAPI instance serves."
    };
    (cpu) => {
        "The CPU."
    };
}

/// The part of an address that is named `dev`, which is the first where there is one. Each name is given twice, because
/// a macro can compare a name but not use it then.
macro_rules! device {
    (@ dev $found:ident) => {
        Some($found)
    };
    (@ $other:ident $unused:ident) => {
        None
    };
    () => {
        None
    };
    ($first:ident $($rest:ident)*) => {
        device!(@ $first $first)
    };
}

/// Each entry: `Name(Family) at { what its address consists of } has { its value }`. A setting of which the host has
/// only one has no `at`.
macro_rules! settings {
    ($(
        $(#[doc = $about:literal])*
        $name:ident($family:ident)
        $(at { $($key:ident: $key_type:ty),* })?
        has { $($(#[$attribute:meta])* $value:ident: $value_type:ty,)* }
    )*) => {
        /// The address of one kernel setting. Devices by name; the plan and the journal carry their identity.
        /// The order of the variants is the order in which settings are written.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Address {
            $(
                $(#[doc = $about])*
                $name $({ $(#[doc = about_key!($key)] $key: $key_type,)* })?,
            )*
        }

        /// One kernel setting, address and value together, so that they cannot disagree.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "knob", rename_all = "snake_case")]
        pub enum Setting {
            $(
                $(#[doc = $about])*
                $name {
                    $($(#[doc = about_key!($key)] $key: $key_type,)*)?
                    $($(#[$attribute])* $value: $value_type,)*
                },
            )*
            /// Written by a newer version; kept, never applied.
            #[serde(untagged)]
            Other(serde_json::Value),
        }

        #[allow(unused_variables, reason = "of the parts of an address, only the name of the device is used")]
        impl Address {
            /// The family whose file knows all about it.
            pub fn family(&self) -> Family {
                match self {
                    $(Self::$name { .. } => Family::$family,)*
                }
            }

            /// The device, `None` for settings of the host.
            pub fn dev(&self) -> Option<&str> {
                let dev: Option<&String> = match self {
                    $(Self::$name { $($($key,)*)? } => device!($($($key)*)?),)*
                };
                dev.map(String::as_str)
            }

            /// The same setting on a device that has another name now.
            pub fn renamed(&self, name: &str) -> Self {
                let mut out = self.clone();
                let dev: Option<&mut String> = match &mut out {
                    $(Self::$name { $($($key,)*)? } => device!($($($key)*)?),)*
                };
                if let Some(dev) = dev {
                    *dev = name.to_string();
                }
                out
            }
        }

        #[allow(unused_variables, reason = "of the parts of an address, only the name of the device is used")]
        impl Setting {
            /// Names of the variants, in the order in which settings are written.
            pub const KINDS: &[&str] = &[$(stringify!($name)),*];

            /// Name of the variant. `None` only for [`Setting::Other`].
            pub fn kind(&self) -> Option<&'static str> {
                match self {
                    $(Self::$name { .. } => Some(stringify!($name)),)*
                    Self::Other(_) => None,
                }
            }

            /// `None` only for [`Setting::Other`].
            pub fn family(&self) -> Option<Family> {
                match self {
                    $(Self::$name { .. } => Some(Family::$family),)*
                    Self::Other(_) => None,
                }
            }

            /// `None` only for [`Setting::Other`].
            pub fn address(&self) -> Option<Address> {
                match self {
                    $(
                        Self::$name { $($($key,)*)? .. } => {
                            Some(Address::$name { $($($key: ToOwned::to_owned($key),)*)? })
                        }
                    )*
                    Self::Other(_) => None,
                }
            }

            /// The device, `None` for settings of the host.
            pub fn dev(&self) -> Option<&str> {
                let dev: Option<&String> = match self {
                    $(Self::$name { $($($key,)*)? .. } => device!($($($key)*)?),)*
                    Self::Other(_) => None,
                };
                dev.map(String::as_str)
            }

            /// The same setting for a device that has another name now.
            pub fn renamed(&self, name: &str) -> Self {
                let mut out = self.clone();
                let dev: Option<&mut String> = match &mut out {
                    $(Self::$name { $($($key,)*)? .. } => device!($($($key)*)?),)*
                    Self::Other(_) => None,
                };
                if let Some(dev) = dev {
                    *dev = name.to_string();
                }
                out
            }
        }
    };
}

settings! {
    /// When irqbalance is started again, by systemd, it leaves all interrupts of the device alone.
    IrqbalanceRestart(Rivals) at { dev: String } has {
        /// It leaves them alone.
        left: bool,
    }

    /// Interrupts of the device that irqbalance leaves alone now.
    IrqbalanceBan(Rivals) at { dev: String } has {
        /// Which ones.
        left: rivals::Left,
    }

    /// A feature that drops no rules when it is switched off; not `rx-ntuple-filter`, which is [`Setting::Ntuple`].
    Feature(Features) at { dev: String, name: String } has {
        /// Switched on.
        on: bool,
    }

    /// Channel counts. `None`: a count that the driver does not have, or that is left as it is.
    Channels(Channels) at { dev: String } has {
        /// Channels that only receive.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rx: Option<u32>,
        /// Channels that only transmit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tx: Option<u32>,
        /// Channels that receive and transmit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        combined: Option<u32>,
    }

    /// Ring parameters.
    Rings(Rings) at { dev: String } has {
        /// Those that are `None` are left as they are.
        #[serde(flatten)]
        values: RingValues,
    }

    /// Pause frames. `None`: left as it is.
    Pause(Pause) at { dev: String } has {
        /// Negotiated with the other end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        autoneg: Option<bool>,
        /// Pause frames of the other end are obeyed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rx: Option<bool>,
        /// Pause frames are sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tx: Option<bool>,
    }

    /// Interrupt moderation of the device.
    Coalesce(Coalesce) at { dev: String } has {
        /// Parameters by their netlink names; those that are not named are left as they are.
        params: BTreeMap<String, u32>,
    }

    /// As [`Setting::Coalesce`], of one queue.
    QueueCoalesce(Coalesce) at { dev: String, queue: u32 } has {
        /// Parameters by their netlink names; those that are not named are left as they are.
        params: BTreeMap<String, u32>,
    }

    /// Function, key and input transform of the RSS hash. `None`: left as it is.
    RssHash(Rss) at { dev: String } has {
        /// `toeplitz`, `xor`, `crc32`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        /// Bytes in hex without separators.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// `none`, `symmetric-xor`, `symmetric-or-xor`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        symmetric: Option<String>,
    }

    /// Fields that are hashed of a flow type.
    RssFields(Rss) at { dev: String, flow: String } has {
        /// In ethtool's letters: `sdfn`.
        fields: String,
    }

    /// Indirection table of the device.
    RssTable(Rss) at { dev: String } has {
        /// Queue of each entry; the length is the device's table size.
        table: Vec<u32>,
    }

    /// A further RSS context.
    RssContext(Rss) at { dev: String, context: u32 } has {
        /// Queue of each entry. `None`: there is no such context.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table: Option<Vec<u32>>,
        /// Bytes in hex without separators.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    }

    /// The feature that rules and accelerated RFS need.
    Ntuple(Rules) at { dev: String } has {
        /// Switched on.
        on: bool,
    }

    /// A flow steering rule.
    FlowRule(Rules) at { dev: String, location: u32 } has {
        /// `None`: nothing at this location.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<Rule>,
    }

    /// CPUs that an interrupt may go to.
    IrqCpus(Irq) at { dev: String, of: Of } has {
        /// At least one.
        cpus: CpuSet,
        /// The CPU of the set that served it when this value was found. Only in values from before: a mask that is
        /// widened moves nothing, so this CPU is written first. No part of the comparison.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<CpuId>,
    }

    /// CPUs that send by a transmit queue.
    XpsCpus(Xps) at { dev: String, queue: u32 } has {
        /// Empty: none.
        cpus: CpuSet,
    }

    /// Receive queues whose flows are sent by a transmit queue.
    XpsRxqs(Xps) at { dev: String, queue: u32 } has {
        /// Empty: none.
        rxqs: Vec<u32>,
    }

    /// CPUs that receive packet steering of a queue chooses from.
    RpsCpus(Rps) at { dev: String, queue: u32 } has {
        /// Empty: off.
        cpus: CpuSet,
    }

    /// Flow table of receive flow steering of a queue.
    RpsFlowCnt(Rfs) at { dev: String, queue: u32 } has {
        /// The kernel rounds up to a power of two.
        entries: u32,
    }

    /// Flow table of receive flow steering of the host, sysctl `net.core.rps_sock_flow_entries`.
    RfsEntries(Rfs) has {
        /// The kernel rounds up to a power of two. 0: RFS off.
        entries: u32,
    }

    /// NAPI values that hold for all queues of the device.
    NapiDevice(Napi) at { dev: String } has {
        /// Those that are `None` are left as they are.
        values: NapiValues,
    }

    /// NAPI values of the instance that serves this queue.
    Napi(Napi) at { dev: String, of: Of } has {
        /// Those that are `None` are left as they are.
        values: NapiValues,
    }

    /// CPUs of the thread that polls for this queue.
    NapiThread(Napi) at { dev: String, of: Of } has {
        /// At least one.
        cpus: CpuSet,
    }

    /// A sysctl by its name, `net.core.netdev_budget`.
    Sysctl(Host) at { name: String } has {
        /// As the file has it.
        value: String,
    }

    /// Longest wake-up time of a CPU.
    CpuLatency(Host) at { cpu: CpuId } has {
        /// As the file has it: microseconds, `0` for no limit, `n/a` for no waiting at all.
        value: String,
    }
}

//! The list of all settings. A macro generates [`Address`] and [`Setting`], and everything that follows from their shape,
//! from this list. The file of each family defines what its settings mean (see [`crate::Descriptor`]).

use std::collections::BTreeMap;

use ringwise_model::{CpuId, CpuSet, NapiValues, RingValues, Rule};
use serde::{Deserialize, Serialize};

use crate::{Family, VectorName, irqbalance};

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
        "Flow type by ethtool's name: `udp4`."
    };
    (context) => {
        "Number of the context."
    };
    (location) => {
        "Location in the rule table of the device, or a number computed from the content of the rule (see [`crate::rules`])."
    };
    (of) => {
        "The queue that the vector or NAPI instance serves."
    };
    (cpu) => {
        "The CPU."
    };
}

/// The field `dev` of an address, which is always the first field. Each name is passed twice, because a macro that has
/// matched a name literally cannot use it as an identifier.
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

/// Each entry: `Name(Family) at { fields of its address } has { fields of its value }`. A setting that exists once per
/// host has no `at`.
macro_rules! settings {
    ($(
        $(#[doc = $about:literal])*
        $name:ident($family:ident)
        $(at { $($key:ident: $key_type:ty),* })?
        has { $($(#[$attribute:meta])* $value:ident: $value_type:ty,)* }
    )*) => {
        /// The address of one kernel setting. It names the device; the plan and the journal also store the device's
        /// identity. The order of the variants is the order in which settings are written.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Address {
            $(
                $(#[doc = $about])*
                $name $({ $(#[doc = about_key!($key)] $key: $key_type,)* })?,
            )*
        }

        /// One kernel setting. It contains both address and value, so that they cannot disagree.
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
            /// Written by a newer version of ringwise; kept, but never applied.
            #[serde(untagged)]
            Other(serde_json::Value),
        }

        #[allow(unused_variables, reason = "of the parts of an address, only the name of the device is used")]
        impl Address {
            /// The family that the setting belongs to.
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

            /// The same setting after the device was renamed to `name`.
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

            /// The same setting after the device was renamed to `name`.
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
    /// Whether irqbalance ignores all interrupts of the device after systemd restarts it.
    IrqbalanceRestart(Rivals) at { dev: String } has {
        /// irqbalance ignores them.
        left: bool,
    }

    /// Interrupts of the device that irqbalance ignores now.
    IrqbalanceBan(Rivals) at { dev: String } has {
        /// The ignored interrupts.
        left: irqbalance::BannedInterrupts,
    }

    /// A feature that drops no rules when it is switched off. `rx-ntuple-filter` is [`Setting::Ntuple`].
    Feature(Features) at { dev: String, name: String } has {
        /// Whether it is on.
        on: bool,
    }

    /// Channel counts. `None`: the driver does not have this count, or it stays unchanged.
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
        /// Values that are `None` stay unchanged.
        #[serde(flatten)]
        values: RingValues,
    }

    /// Pause frames. `None`: stays unchanged.
    Pause(Pause) at { dev: String } has {
        /// Whether pause is negotiated with the link partner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        autoneg: Option<bool>,
        /// Whether the device obeys pause frames that it receives.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rx: Option<bool>,
        /// Whether the device sends pause frames.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tx: Option<bool>,
    }

    /// Interrupt moderation of the device.
    Coalesce(Coalesce) at { dev: String } has {
        /// Parameters by their netlink names; other parameters stay unchanged.
        params: BTreeMap<String, u32>,
    }

    /// Like [`Setting::Coalesce`], for one queue.
    QueueCoalesce(Coalesce) at { dev: String, queue: u32 } has {
        /// Parameters by their netlink names; other parameters stay unchanged.
        params: BTreeMap<String, u32>,
    }

    /// Function, key and input transform of the RSS hash. `None`: stays unchanged.
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

    /// Fields of a flow type that the RSS hash includes.
    RssFields(Rss) at { dev: String, flow: String } has {
        /// In ethtool's letters: `sdfn`.
        fields: String,
    }

    /// Indirection table of the device.
    RssTable(Rss) at { dev: String } has {
        /// Queue of each entry; the length is the device's table size.
        table: Vec<u32>,
    }

    /// An additional RSS context.
    RssContext(Rss) at { dev: String, context: u32 } has {
        /// Queue of each entry. `None`: the context does not exist.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table: Option<Vec<u32>>,
        /// Bytes in hex without separators.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    }

    /// The feature that rules and accelerated RFS need.
    Ntuple(Rules) at { dev: String } has {
        /// Whether it is on.
        on: bool,
    }

    /// A flow steering rule.
    FlowRule(Rules) at { dev: String, location: u32 } has {
        /// `None`: there is no rule at this location.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<Rule>,
    }

    /// CPUs that an interrupt may be delivered to.
    IrqCpus(Irq) at { dev: String, of: VectorName } has {
        /// At least one.
        cpus: CpuSet,
        /// The CPU of the set that handled the interrupt when this value was read. Present only in previous values: a
        /// wider mask does not move the interrupt, so a restore writes this CPU first. Comparisons ignore it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<CpuId>,
    }

    /// CPUs that send through a transmit queue.
    XpsCpus(Xps) at { dev: String, queue: u32 } has {
        /// Empty: none.
        cpus: CpuSet,
    }

    /// Receive queues whose flows are sent through a transmit queue.
    XpsRxqs(Xps) at { dev: String, queue: u32 } has {
        /// Empty: none.
        rxqs: Vec<u32>,
    }

    /// CPUs that receive packet steering may choose for a queue.
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

    /// NAPI values that apply to all queues of the device.
    NapiDevice(Napi) at { dev: String } has {
        /// Values that are `None` stay unchanged.
        values: NapiValues,
    }

    /// NAPI values of the instance that serves this queue.
    Napi(Napi) at { dev: String, of: VectorName } has {
        /// Values that are `None` stay unchanged.
        values: NapiValues,
    }

    /// CPUs of the NAPI thread that polls this queue.
    NapiThread(Napi) at { dev: String, of: VectorName } has {
        /// At least one.
        cpus: CpuSet,
    }

    /// A sysctl by its name, `net.core.netdev_budget`.
    Sysctl(Host) at { name: String } has {
        /// As in the file.
        value: String,
    }

    /// Maximum wake-up latency of a CPU.
    CpuLatency(Host) at { cpu: CpuId } has {
        /// As in the file: microseconds, `0` for no limit, `n/a` for no latency at all.
        value: String,
    }
}

//! A setting with its value.

use std::collections::BTreeMap;

use ringwise_model::{CpuId, CpuSet, NapiValues, Rule, Snapshot};
use serde::{Deserialize, Serialize};

use crate::address::of_device;
use crate::{
    Address, Of, channels, coalesce, features, host, irq, napi, pause, rfs, rings, rivals, rps, rss, rules, xps,
};

/// One kernel setting, address and value together, so that they cannot disagree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "knob", rename_all = "snake_case")]
pub enum Setting {
    /// When irqbalance is started again, by systemd, it leaves all interrupts of the device alone.
    IrqbalanceRestart {
        dev: String,
        left: bool,
    },
    /// Interrupts of the device that irqbalance leaves alone now.
    IrqbalanceBan {
        dev: String,
        left: rivals::Left,
    },
    /// `None`: a count the driver does not have, or that is left as it is.
    Channels {
        dev: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rx: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tx: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        combined: Option<u32>,
    },
    /// Descriptors.
    Rings {
        dev: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rx: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tx: Option<u32>,
    },
    /// Parameters by their netlink names; those not named are left as they are.
    Coalesce {
        dev: String,
        params: BTreeMap<String, u32>,
    },
    /// By the kernel's name; not `rx-ntuple-filter`, which is [`Setting::Ntuple`].
    Feature {
        dev: String,
        name: String,
        on: bool,
    },
    /// `None`: left as it is.
    Pause {
        dev: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        autoneg: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rx: Option<bool>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tx: Option<bool>,
    },
    /// As [`Setting::Coalesce`], of one queue.
    QueueCoalesce {
        dev: String,
        queue: u32,
        params: BTreeMap<String, u32>,
    },
    /// `None`: left as it is. Key: bytes in hex without separators.
    RssHash {
        dev: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        function: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        symmetric: Option<String>,
    },
    /// In ethtool's letters: `sdfn`.
    RssFields {
        dev: String,
        flow: String,
        fields: String,
    },
    /// `table` is none: there is no such context.
    RssContext {
        dev: String,
        context: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table: Option<Vec<u32>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    Ntuple {
        dev: String,
        on: bool,
    },
    /// None: nothing at this location.
    FlowRule {
        dev: String,
        location: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<Rule>,
    },
    NapiDevice {
        dev: String,
        values: NapiValues,
    },
    Napi {
        dev: String,
        of: Of,
        values: NapiValues,
    },
    NapiThread {
        dev: String,
        of: Of,
        cpus: CpuSet,
    },
    Sysctl {
        name: String,
        value: String,
    },
    /// As the file has it: microseconds, `0` for no limit, `n/a` for no waiting at all.
    CpuLatency {
        cpu: CpuId,
        value: String,
    },
    /// Queue of each entry; the length is the device's table size.
    RssTable {
        dev: String,
        table: Vec<u32>,
    },
    IrqCpus {
        dev: String,
        of: Of,
        cpus: CpuSet,
        /// The CPU of the set that served it when this value was found. Only in values from before: a mask that is
        /// widened moves nothing, so this CPU is written first. No part of the comparison.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        on: Option<CpuId>,
    },
    XpsCpus {
        dev: String,
        queue: u32,
        cpus: CpuSet,
    },
    XpsRxqs {
        dev: String,
        queue: u32,
        rxqs: Vec<u32>,
    },
    RpsCpus {
        dev: String,
        queue: u32,
        cpus: CpuSet,
    },
    /// Entries; the kernel rounds up to a power of two.
    RpsFlowCnt {
        dev: String,
        queue: u32,
        entries: u32,
    },
    /// Entries; the kernel rounds up to a power of two. 0: RFS off.
    RfsEntries {
        entries: u32,
    },
    /// Written by a newer version; kept, never applied.
    #[serde(untagged)]
    Other(serde_json::Value),
}

impl Setting {
    /// `None` only for [`Setting::Other`].
    pub fn address(&self) -> Option<Address> {
        Some(match self {
            Self::IrqbalanceRestart { dev, .. } => Address::IrqbalanceRestart { dev: dev.clone() },
            Self::IrqbalanceBan { dev, .. } => Address::IrqbalanceBan { dev: dev.clone() },
            Self::Channels { dev, .. } => Address::Channels { dev: dev.clone() },
            Self::Rings { dev, .. } => Address::Rings { dev: dev.clone() },
            Self::Coalesce { dev, .. } => Address::Coalesce { dev: dev.clone() },
            Self::RssTable { dev, .. } => Address::RssTable { dev: dev.clone() },
            Self::IrqCpus { dev, of, .. } => Address::IrqCpus { dev: dev.clone(), of: *of },
            Self::XpsCpus { dev, queue, .. } => Address::XpsCpus { dev: dev.clone(), queue: *queue },
            Self::XpsRxqs { dev, queue, .. } => Address::XpsRxqs { dev: dev.clone(), queue: *queue },
            Self::RpsCpus { dev, queue, .. } => Address::RpsCpus { dev: dev.clone(), queue: *queue },
            Self::RpsFlowCnt { dev, queue, .. } => Address::RpsFlowCnt { dev: dev.clone(), queue: *queue },
            Self::RfsEntries { .. } => Address::RfsEntries,
            Self::Feature { dev, name, .. } => Address::Feature { dev: dev.clone(), name: name.clone() },
            Self::Pause { dev, .. } => Address::Pause { dev: dev.clone() },
            Self::QueueCoalesce { dev, queue, .. } => Address::QueueCoalesce { dev: dev.clone(), queue: *queue },
            Self::RssHash { dev, .. } => Address::RssHash { dev: dev.clone() },
            Self::RssFields { dev, flow, .. } => Address::RssFields { dev: dev.clone(), flow: flow.clone() },
            Self::RssContext { dev, context, .. } => Address::RssContext { dev: dev.clone(), context: *context },
            Self::Ntuple { dev, .. } => Address::Ntuple { dev: dev.clone() },
            Self::FlowRule { dev, location, .. } => Address::FlowRule { dev: dev.clone(), location: *location },
            Self::NapiDevice { dev, .. } => Address::NapiDevice { dev: dev.clone() },
            Self::Napi { dev, of, .. } => Address::Napi { dev: dev.clone(), of: *of },
            Self::NapiThread { dev, of, .. } => Address::NapiThread { dev: dev.clone(), of: *of },
            Self::Sysctl { name, .. } => Address::Sysctl { name: name.clone() },
            Self::CpuLatency { cpu, .. } => Address::CpuLatency { cpu: *cpu },
            Self::Other(_) => return None,
        })
    }

    /// Says that something which can be made and deleted is not there.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::RssContext { table: None, .. } | Self::FlowRule { rule: None, .. })
    }

    /// The device, `None` for settings of the host.
    pub fn dev(&self) -> Option<&str> {
        of_device!(self, dev => Some(dev), [Self::Other(_)] => None)
    }

    /// The same setting for a device that has another name now.
    pub fn renamed(&self, name: &str) -> Self {
        let mut s = self.clone();
        of_device!(&mut s, dev => *dev = name.to_string(), [Self::Other(_)] => {});
        s
    }

    /// The value alone, for people: `0-3`, `none`, `combined 8`, `32768`.
    pub fn value_text(&self) -> String {
        let set = |c: &CpuSet| if c.is_empty() { "none".to_string() } else { c.to_string() };
        match self {
            Self::IrqbalanceRestart { left, .. } => rivals::text_restart(*left),
            Self::IrqbalanceBan { left, .. } => rivals::text(left),
            Self::Channels { rx, tx, combined, .. } => channels::text(*rx, *tx, *combined),
            Self::Rings { rx, tx, .. } => rings::text(*rx, *tx),
            Self::Coalesce { params, .. } | Self::QueueCoalesce { params, .. } => coalesce::text(params),
            Self::Feature { on, .. } | Self::Ntuple { on, .. } => features::text(*on),
            Self::Pause { autoneg, rx, tx, .. } => pause::text(*autoneg, *rx, *tx),
            Self::RssHash { function, key, symmetric, .. } => {
                rss::hash_text(function.as_deref(), key.as_deref(), symmetric.as_deref())
            }
            Self::RssFields { fields, .. } => fields.clone(),
            Self::RssContext { table, .. } => table.as_ref().map_or_else(|| "none".into(), |t| rss::text(t)),
            Self::FlowRule { rule, .. } => rule.as_ref().map_or_else(|| "none".into(), rules::text),
            Self::NapiDevice { values, .. } | Self::Napi { values, .. } => napi::text(values),
            Self::NapiThread { cpus, .. } => set(cpus),
            Self::Sysctl { value, .. } | Self::CpuLatency { value, .. } => value.clone(),
            Self::RssTable { table, .. } => rss::text(table),
            Self::IrqCpus { cpus, .. } | Self::XpsCpus { cpus, .. } | Self::RpsCpus { cpus, .. } => set(cpus),
            Self::XpsRxqs { rxqs, .. } => {
                let s: CpuSet = rxqs.iter().map(|q| ringwise_model::CpuId(*q)).collect();
                set(&s)
            }
            Self::RpsFlowCnt { entries, .. } | Self::RfsEntries { entries } => entries.to_string(),
            Self::Other(v) => v.to_string(),
        }
    }

    /// A plain command that writes this setting by hand, as of this snapshot (interrupt numbers!).
    /// `None` where the snapshot no longer holds what it names.
    pub fn command(&self, now: &Snapshot) -> Option<String> {
        match self {
            Self::IrqbalanceRestart { dev, left } => rivals::command_restart(now, dev, *left),
            Self::IrqbalanceBan { dev, left } => rivals::command(now, dev, left),
            Self::Channels { dev, rx, tx, combined } => Some(channels::command(dev, *rx, *tx, *combined)),
            Self::Rings { dev, rx, tx } => Some(rings::command(dev, *rx, *tx)),
            Self::Coalesce { dev, params } => Some(coalesce::command(dev, params)),
            Self::RssTable { dev, table } => Some(rss::command(dev, table)),
            Self::Feature { dev, name, on } => Some(features::command(dev, name, *on)),
            Self::Pause { dev, autoneg, rx, tx } => Some(pause::command(dev, *autoneg, *rx, *tx)),
            Self::QueueCoalesce { dev, queue, params } => Some(coalesce::queue_command(dev, *queue, params)),
            Self::RssHash { dev, function, key, symmetric } => {
                Some(rss::hash_command(dev, function.as_deref(), key.as_deref(), symmetric.as_deref()))
            }
            Self::RssFields { dev, flow, fields } => Some(rss::fields_command(dev, flow, fields)),
            Self::RssContext { dev, context, table, .. } => {
                Some(rss::context_command(now.nic(dev), dev, *context, table.as_deref()))
            }

            Self::Ntuple { dev, on } => Some(features::command(dev, "rx-ntuple-filter", *on)),
            Self::FlowRule { dev, location, rule } => rules::command(now.nic(dev), dev, *location, rule.as_ref()),
            Self::NapiDevice { dev, values } => Some(napi::device_command(dev, values)),
            Self::Napi { dev, of, values } => napi::command(now, dev, *of, values),
            Self::NapiThread { dev, of, cpus } => napi::thread_command(now, dev, *of, cpus),
            Self::Sysctl { name, value } => Some(host::sysctl_command(name, value)),
            Self::CpuLatency { cpu, value } => Some(host::latency_command(*cpu, value)),
            Self::IrqCpus { dev, of, cpus, .. } => irq::command(now, dev, *of, cpus),
            Self::XpsCpus { dev, queue, cpus } => Some(xps::command(dev, *queue, cpus)),
            Self::XpsRxqs { dev, queue, rxqs } => Some(xps::command_rxqs(dev, *queue, rxqs)),
            Self::RpsCpus { dev, queue, cpus } => Some(rps::command(dev, *queue, cpus)),
            Self::RpsFlowCnt { dev, queue, entries } => Some(rfs::command(dev, *queue, *entries)),
            Self::RfsEntries { entries } => Some(rfs::command_entries(*entries)),
            Self::Other(_) => None,
        }
    }
}

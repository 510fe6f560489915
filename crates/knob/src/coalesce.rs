//! Interrupt moderation of the device (`ethtool -C`). Known here so that a channel change can be put back whole.

use std::collections::BTreeMap;

use ringwise_model::{Coalesce, Fact, Nic};

use crate::{Match, Setting};

pub fn live(nic: &Nic) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.coalesce.as_ref().map(|c: &Coalesce| Setting::Coalesce { dev, params: c.0.clone() })
}

/// Parameters that were not asked for do not count; one that the driver no longer reports differs.
pub fn compare(want: &BTreeMap<String, u32>, got: &BTreeMap<String, u32>) -> Match {
    if want.iter().all(|(k, v)| got.get(k) == Some(v)) { Match::Same } else { Match::Differs }
}

pub fn text(params: &BTreeMap<String, u32>) -> String {
    let s: Vec<String> = params.iter().map(|(k, v)| format!("{k} {v}")).collect();
    s.join(" ")
}

/// ethtool's own words for the netlink names (`use-adaptive-rx 1` is `adaptive-rx on`, `rx-max-frames` is `rx-frames`).
pub fn command(dev: &str, params: &BTreeMap<String, u32>) -> String {
    let words = params.iter().map(|(k, v)| {
        let k2 = k.replace("-max-frames", "-frames");
        match k2.strip_prefix("use-") {
            Some(flag) => format!("{} {}", flag, if *v == 0 { "off" } else { "on" }),
            None => format!("{k2} {v}"),
        }
    });
    format!("ethtool -C {dev} {}", words.collect::<Vec<_>>().join(" "))
}

/// Of one queue. Absent: the queue has none of its own.
pub fn live_queue(nic: &Nic, queue: u32) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.queue_coalesce.as_ref().and_then(|all| match all.get(&queue) {
        Some(c) => Fact::Known(Setting::QueueCoalesce { dev, queue, params: c.0.clone() }),
        None => Fact::Absent,
    })
}

pub fn queue_addresses(nic: &Nic) -> Vec<crate::Address> {
    let queues = nic.queue_coalesce.known().into_iter().flat_map(|all| all.keys());
    queues.map(|q| crate::Address::QueueCoalesce { dev: nic.dev.name.clone(), queue: *q }).collect()
}

pub fn queue_command(dev: &str, queue: u32, params: &BTreeMap<String, u32>) -> String {
    let mask = crate::setting::mask(&std::iter::once(ringwise_model::CpuId(queue)).collect());
    let words = command(dev, params);
    let words = words.strip_prefix(&format!("ethtool -C {dev} ")).unwrap_or_default().to_string();
    format!("ethtool --per-queue {dev} queue_mask 0x{} --coalesce {words}", mask.replace(',', ""))
}

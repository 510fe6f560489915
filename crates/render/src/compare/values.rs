//! The values behind the lines of a comparison, in the form that the snapshot gives them.
//!
//! Each value contains at least what its line of `show` is made from, so two lines that differ have values that differ.

use ringwise_knob::features::NTUPLE;
use ringwise_model::{Fact, Feature, Host, Nic};
use serde_json::{Value, json};

/// What depends on the queues: unknown for the same reason as the queues.
fn of_queues(n: &Nic, value: Value) -> Value {
    match n.queues_unread() {
        Some(why) => json!({ "unknown": why }),
        None => json!({ "known": value }),
    }
}

pub(super) fn link(n: &Nic) -> Value {
    let l = &n.link;
    json!({ "operstate": l.operstate, "carrier": l.carrier, "speed_mbps": l.speed_mbps, "duplex": l.duplex })
}

pub(super) fn queues(n: &Nic) -> Value {
    of_queues(n, json!({ "rx": n.rx_queues.len(), "tx": n.tx_queues.len() }))
}

/// Without interrupt numbers, which differ from boot to boot.
pub(super) fn layout(n: &Nic) -> Value {
    n.queue_vectors().map(|v| json!({ "rx": v.rx(), "tx": v.tx(), "effective": v.effective })).collect()
}

pub(super) fn rps(n: &Nic) -> Value {
    of_queues(n, n.rx_queues.iter().map(|q| json!({ "id": q.id, "rps_cpus": q.rps_cpus })).collect())
}

pub(super) fn rfs(n: &Nic, host: &Host) -> Value {
    let queues = n.rx_queues.iter().map(|q| json!({ "id": q.id, "rps_flow_cnt": q.rps_flow_cnt })).collect();
    json!({ "rps_sock_flow_entries": host.rps_sock_flow_entries, "rx_queues": of_queues(n, queues) })
}

pub(super) fn xps(n: &Nic) -> Value {
    let one = |q: &ringwise_model::TxQueue| json!({ "id": q.id, "xps_cpus": q.xps_cpus, "xps_rxqs": q.xps_rxqs });
    of_queues(n, n.tx_queues.iter().map(one).collect())
}

/// With the values of the device: `show` has a line for those of the queues only if they differ from the device's.
pub(super) fn moderation(n: &Nic) -> Value {
    json!({ "coalesce": n.coalesce, "queue_coalesce": n.queue_coalesce })
}

pub(super) fn flow_rules(n: &Nic) -> Value {
    let ntuple: Fact<Feature> = match &n.features {
        Fact::Known(all) => all.get(NTUPLE).map_or(Fact::Absent, |f| Fact::Known(*f)),
        Fact::Absent => Fact::Absent,
        Fact::Unknown(why) => Fact::Unknown(why.clone()),
    };
    json!({ "rules": n.rules, "ntuple": ntuple })
}

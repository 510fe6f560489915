//! The values behind the lines of a comparison, in the form that the snapshot gives them.
//!
//! Each value contains at least what its line of `show` is made from, so two lines that differ have values that differ.

use ringwise_knob::features::NTUPLE;
use ringwise_model::{CpuSet, Fact, Feature, Host, Nic};
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

/// A line, and how its value is unknown or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    Link,
    QueueCpus,
    Rps,
    Rfs,
    Xps,
    QueueModeration,
    FlowRules,
    /// One value.
    Plain(&'static str),
}

impl LineKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::QueueCpus => "queue on CPU",
            Self::Rps => "RPS",
            Self::Rfs => "RFS",
            Self::Xps => "XPS",
            Self::QueueModeration => "moderation of queues",
            Self::FlowRules => "flow rules",
            Self::Plain(name) => name,
        }
    }
}

/// Whether the value of this line is unknown. `wholly`: on every queue; otherwise one queue or one part is enough.
pub(super) fn is_unknown(kind: LineKind, value: &Value, wholly: bool) -> bool {
    let unknown = |v: &Value| v.get("unknown").is_some();
    let of_list = |list: &Value, member: &str| {
        let (is_unknown, all) = (|q: &Value| unknown(&q[member]), list.as_array().map_or(&[][..], Vec::as_slice));
        if wholly { !all.is_empty() && all.iter().all(is_unknown) } else { all.iter().any(is_unknown) }
    };
    let of_queues = |v: &Value, member: &str| unknown(v) || v.get("known").is_some_and(|q| of_list(q, member));
    match kind {
        // The state of a link without a known speed is `down`, `up` or unknown.
        LineKind::Link => unknown(&value["carrier"]) && unknown(&value["operstate"]) && unknown(&value["speed_mbps"]),
        LineKind::QueueCpus => value.as_array().is_none_or(Vec::is_empty) || of_list(value, "effective"),
        LineKind::Rps => of_queues(value, "rps_cpus"),
        LineKind::Rfs => {
            let (host, queues) = (&value["rps_sock_flow_entries"], of_queues(&value["rx_queues"], "rps_flow_cnt"));
            if wholly { unknown(host) && queues } else { unknown(host) || queues }
        }
        LineKind::Xps => of_queues(value, "xps_cpus"),
        LineKind::QueueModeration => unknown(&value["queue_coalesce"]),
        LineKind::FlowRules => unknown(&value["rules"]),
        _ => unknown(value),
    }
}

/// Whether this line is about a setting that is off on every queue of the device.
pub(super) fn is_off(kind: LineKind, n: &Nic) -> bool {
    let empty = |f: &Fact<CpuSet>| f.known().is_some_and(CpuSet::is_empty);
    match kind {
        LineKind::Rps => !n.rx_queues.is_empty() && n.rx_queues.iter().all(|q| empty(&q.rps_cpus)),
        LineKind::Xps => {
            let is_set = |q: &ringwise_model::TxQueue| q.xps_rxqs.known().is_some_and(|r| !r.is_empty());
            !n.tx_queues.is_empty() && n.tx_queues.iter().all(|q| empty(&q.xps_cpus) && !is_set(q))
        }
        _ => false,
    }
}

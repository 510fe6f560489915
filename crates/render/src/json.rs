//! JSON documents for programs: `schema` and `version` come first, numbers are raw, and nothing is formatted for
//! terminals.

use ringwise_model::{Dir, Nic, Snapshot, Vector};
use serde::Serialize;
use serde_json::{Value, json};

use ringwise_text::is_listed;

/// A value, preceded by the name and version of its document.
#[derive(Serialize)]
pub struct Document<'a, T: Serialize> {
    /// Name of the document, as in its schema file.
    pub schema: &'a str,
    /// Version of the document, as in its schema file.
    pub version: u32,
    /// Its members are on the same level as `schema` and `version`.
    #[serde(flatten)]
    pub body: T,
}

/// The unchanged snapshot, and `interfaces`: the way of packets for each queue. `devs`: only these; empty: all.
pub fn snapshot(s: &Snapshot, devs: &[String]) -> Value {
    let interfaces: Vec<Value> = s
        .nics
        .iter()
        .filter(|n| if devs.is_empty() { has_queues(n) } else { devs.iter().any(|d| d == n.name()) })
        .map(interface)
        .collect();
    json!({
        "schema": ringwise_model::snapshot::SCHEMA,
        "version": ringwise_model::snapshot::VERSION,
        "interfaces": interfaces,
        "host": s.host,
        "topology": s.topology,
        "nics": s.nics,
        "bystanders": s.bystanders,
        "unread": s.unread,
    })
}

/// Whether the interface has queues of its own, or queues that could not be read.
fn has_queues(n: &Nic) -> bool {
    n.has_own_queues() || is_listed(n) && n.queues_unread().is_some()
}

fn interface(n: &Nic) -> Value {
    let mut ids: Vec<u32> = n.rx_queues.iter().map(|q| q.id).chain(n.tx_queues.iter().map(|q| q.id)).collect();
    ids.sort();
    ids.dedup();
    let queues: Vec<Value> =
        ids.into_iter()
            .map(|id| {
                let rx = n.rx_queues.iter().find(|q| q.id == id).map(|q| {
                json!({"irq": irq(n.vector_of(Dir::Rx, id)), "rps_cpus": q.rps_cpus, "rps_flow_cnt": q.rps_flow_cnt})
            });
                let tx = n.tx_queues.iter().find(|q| q.id == id).map(
                    |q| json!({"irq": irq(n.vector_of(Dir::Tx, id)), "xps_cpus": q.xps_cpus, "xps_rxqs": q.xps_rxqs}),
                );
                json!({"queue": id, "rx": rx, "tx": tx})
            })
            .collect();
    let mut doc = json!({"name": n.name(), "driver": n.driver, "node": n.node, "queues": queues});
    // In version 1 the queues are a list even if they are unknown.
    if let Some(why) = n.queues_unread() {
        doc["queues_unread"] = json!(why);
    }
    doc
}

/// The vector of a queue; `null`: its interrupt is not known.
fn irq(v: Option<&Vector>) -> Value {
    v.map_or(Value::Null, |v| {
        json!({
            "number": v.irq, "asked": v.asked, "effective": v.effective,
            "confidence": v.confidence, "source": v.source, "movable": v.movable,
        })
    })
}

//! From a CPU (and the receive queue of forwarded packets) to the transmit queue and the CPU of its completions.

use ringwise_model::{Cause, CpuId, CpuSet, Dir, IrqId, Nic, Snapshot};
use serde::Serialize;

use crate::stack::{CpuPlacement, cpu_placement, pending_on};

/// Who sends a packet, and the receive queue that the choice of the transmit queue depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// The host forwards it. The driver recorded the receive queue in the packet.
    Forwarded {
        /// `None`: unknown.
        rx: Option<u32>,
    },
    /// A connected socket of this host, in which the kernel keeps the receive queue (`sk_rx_queue_get`).
    Connection {
        /// Queue on which its packets arrive. `None`: unknown.
        rx: Option<u32>,
    },
    /// A UDP socket of this host that is not connected. The kernel keeps no receive queue in it (`sk_mark_napi_id_once`).
    Unconnected,
}

/// What selects the transmit queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TransmitDecision {
    /// The device has one transmit queue.
    OnlyQueue,
    /// XPS by the receive queue of the socket (`xps_rxqs`).
    XpsRxqs,
    /// XPS by the CPU that sends (`xps_cpus`).
    XpsCpus,
    /// The number of the receive queue that the driver recorded.
    ReceiveQueue,
    /// The hash of the packet.
    PacketHash,
    /// The traffic class of the packet's priority, with another queue in each.
    TrafficClass,
    /// Unknown, because something that the decision depends on is unknown.
    Unknown,
}

/// How a packet leaves a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransmitPath {
    /// The queue, if only one is possible.
    pub queue: Option<u32>,
    /// The possible transmit queues; empty if `queue` is known.
    pub may_be: Vec<u32>,
    /// What selects the queue.
    pub decision: TransmitDecision,
    /// The same as text: `XPS of CPU 4`, `XPS of receive queue 2`, `the number of its receive queue`.
    pub by: String,
    /// Why the queue cannot be predicted, as text. `None`: it can.
    pub why_not: Option<String>,
    /// Interrupt of the queue's completions. `None`: unknown, or several queues are possible.
    pub irq: Option<IrqId>,
    /// CPU that handles this interrupt.
    pub cpu: Option<CpuPlacement>,
    /// Where the interrupt is now, while it is pinned to `cpu` and has not moved there yet. `None`: it is not pending.
    pub pending_on: Option<CpuSet>,
    /// Byte queue limit of the queue and its bytes in flight, as text. `None`: unknown.
    pub bql: Option<String>,
    /// What makes the prediction uncertain, one sentence each.
    pub notes: Vec<String>,
}

/// Drivers that may choose the transmit queue themselves, for traffic classes or their own rings (Linux 6.12,
/// `ndo_select_queue`; `i40e_lan_select_queue` with DCB, `ena_select_queue` for forwarded packets in kernels before 6.9).
const CHOOSES: &[&str] =
    &["bnx2x", "ena", "fm10k", "hns", "i40e", "ixgbe", "mlx4_en", "mlx5_core", "qede", "hv_netvsc", "ice"];
/// Names of the driver that always goes by the hash of the packet (`xennet_select_queue` in drivers/net/xen-netfront.c).
const HASHES: &[&str] = &["vif", "xen-netfront"];

/// Selects the transmit queue as `netdev_pick_tx` does (net/core/dev.c): `get_xps_queue`, otherwise `skb_tx_hash`.
///
/// - XPS by receive queue uses the queue of the socket. A forwarded packet has no socket, so `xps_rxqs` does not apply to it.
/// - If XPS maps to several queues, or `skb_tx_hash` finds no recorded receive queue, `skb_get_hash` decides. It cannot be
///   predicted: `__flow_hash_from_keys` (net/core/flow_dissector.c) has a random key, and the hash of a connected socket
///   (`sk_txhash`) is a random number.
pub fn sending(s: &Snapshot, nic: &Nic, cpu: Option<CpuId>, sender: Sender) -> TransmitPath {
    let queues: Vec<u32> = {
        let counted = nic.channels.known().map(|c| c.tx_queues()).filter(|n| *n > 0);
        let n = counted.unwrap_or(u32::MAX);
        nic.tx_queues.iter().map(|q| q.id).filter(|q| *q < n).collect()
    };
    let mut notes = Vec::new();
    let driver = nic.driver.known().map_or("", String::as_str);
    if CHOOSES.contains(&driver) && queues.len() > 1 {
        notes.push(format!("{driver} may choose another queue (traffic classes, XDP rings)"));
    }
    let Choice { decision, by, queues: may_be, why_not } = match queues.len() {
        2.. if HASHES.contains(&driver) => Choice {
            decision: TransmitDecision::PacketHash,
            by: "the packet's hash (the driver uses no XPS)".into(),
            queues,
            why_not: Some(random_hash(sender)),
        },
        _ => choose(nic, &queues, cpu, sender),
    };
    let queue = (may_be.len() == 1).then(|| may_be[0]);
    let vector = queue.and_then(|q| nic.vector_of(Dir::Tx, q));
    let done_on = vector.and_then(ringwise_model::Vector::taken_by).filter(|e| e.len() == 1).and_then(|e| e.first());
    let bql = queue
        .and_then(|q| nic.tx_queues.iter().find(|t| t.id == q))
        .and_then(|t| t.bql.known())
        .map(|b| format!("{} bytes may wait in the ring ({} now)", b.limit_bytes, b.inflight_bytes));
    TransmitPath {
        queue,
        may_be: if queue.is_some() { Vec::new() } else { may_be },
        decision,
        by,
        why_not: why_not.filter(|_| queue.is_none()),
        irq: vector.map(|v| v.irq),
        cpu: done_on.map(|c| cpu_placement(s, nic, c)),
        pending_on: vector.and_then(pending_on),
        bql,
        notes,
    }
}

/// Queues that are possible, and what selects one of them.
struct Choice {
    decision: TransmitDecision,
    by: String,
    queues: Vec<u32>,
    /// If `queues` has several.
    why_not: Option<String>,
}

/// Why the packet's hash cannot be predicted.
fn random_hash(sender: Sender) -> String {
    match sender {
        Sender::Forwarded { .. } => "the kernel chooses by the packet's hash: it is the device's, or its key is random",
        Sender::Connection { .. } | Sender::Unconnected => {
            "the kernel chooses by the packet's hash, which is random or has a random key"
        }
    }
    .into()
}

/// The choice in each traffic class, because the priority of the packet is unknown.
fn choose(nic: &Nic, queues: &[u32], cpu: Option<CpuId>, sender: Sender) -> Choice {
    let unread = nic.classes.unread().filter(|u| u.cause != Cause::NotAsked);
    if let (Some(why), [_, _, ..]) = (unread, queues) {
        return Choice {
            decision: TransmitDecision::Unknown,
            by: format!("unknown, because the traffic classes could not be read ({why})"),
            queues: queues.to_vec(),
            why_not: Some("the traffic classes could not be read".into()),
        };
    }
    let ranges = nic.classes.known().map_or(&[][..], |c| &c.queues);
    let mut all: Vec<Choice> = ranges
        .iter()
        .map(|r| {
            // `skb_tx_hash` uses all queues if a class has none.
            let of_class: Vec<u32> = queues.iter().copied().filter(|q| r.contains(*q)).collect();
            in_class(nic, if of_class.is_empty() { queues } else { &of_class }, cpu, sender)
        })
        .collect();
    match all.len() {
        0 => in_class(nic, queues, cpu, sender),
        1 => all.remove(0),
        n => {
            let mut may_be: Vec<u32> = all.iter().flat_map(|c| c.queues.iter().copied()).collect();
            may_be.sort();
            may_be.dedup();
            Choice {
                decision: TransmitDecision::TrafficClass,
                by: format!("the traffic class of its priority, then {}", all.remove(0).by),
                queues: may_be,
                why_not: Some(format!("the priority of the packet selects one of {n} traffic classes")),
            }
        }
    }
}

fn in_class(nic: &Nic, queues: &[u32], cpu: Option<CpuId>, sender: Sender) -> Choice {
    let unknown = |by: String, why: String| Choice {
        decision: TransmitDecision::Unknown,
        by,
        queues: queues.to_vec(),
        why_not: Some(why),
    };
    let one_of =
        |decision, by: String, queues: Vec<u32>| Choice { decision, by, queues, why_not: Some(random_hash(sender)) };
    match queues {
        [] => {
            let why = "its transmit queues are unknown";
            return unknown(why.into(), why.into());
        }
        [one] => return one_of(TransmitDecision::OnlyQueue, "the only queue".into(), vec![*one]),
        _ => {}
    }
    let in_use = || nic.tx_queues.iter().filter(|t| queues.contains(&t.id));
    let of = |want: &dyn Fn(&ringwise_model::TxQueue) -> bool| -> Vec<u32> {
        in_use().filter(|t| want(t)).map(|t| t.id).collect()
    };
    let unread = |why: &ringwise_model::Unread| {
        unknown(format!("unknown, because XPS could not be read ({why})"), "XPS could not be read".into())
    };
    if let Sender::Connection { rx } = sender {
        if let Some(why) = in_use().find_map(|t| t.xps_rxqs.unread()) {
            return unread(why);
        }
        match rx {
            Some(rx) => {
                let by_rx = of(&|t| t.xps_rxqs.known().is_some_and(|r| r.contains(&rx)));
                if !by_rx.is_empty() {
                    return one_of(TransmitDecision::XpsRxqs, format!("XPS of receive queue {rx}"), by_rx);
                }
            }
            None if in_use().any(|t| t.xps_rxqs.known().is_some_and(|r| !r.is_empty())) => {
                let why = "the receive queue of its socket is unknown";
                return unknown(format!("XPS of a receive queue, but {why}"), why.into());
            }
            None => {}
        }
    }
    if let Some(why) = in_use().find_map(|t| t.xps_cpus.unread()) {
        return unread(why);
    }
    let set = in_use().any(|t| t.xps_cpus.known().is_some_and(|c| !c.is_empty()));
    match cpu {
        None if set => return unknown("XPS, but the CPU is unknown".into(), "the CPU that sends is unknown".into()),
        Some(c) => {
            let by_cpu = of(&|t| t.xps_cpus.known().is_some_and(|m| m.contains(c)));
            if !by_cpu.is_empty() {
                return one_of(TransmitDecision::XpsCpus, format!("XPS of CPU {c}"), by_cpu);
            }
        }
        None => {}
    }
    let none = if set { "XPS maps this CPU to no queue" } else { "XPS is not set" };
    match sender {
        Sender::Forwarded { rx: Some(rx) } => {
            // `skb_tx_hash` subtracts the first queue of the class, if the number is not smaller, before it divides.
            let rx = rx.checked_sub(queues[0]).unwrap_or(rx);
            let at = rx as usize % queues.len();
            let by = format!("the number of its receive queue ({none})");
            one_of(TransmitDecision::ReceiveQueue, by, vec![queues[at]])
        }
        Sender::Forwarded { rx: None } => unknown(
            format!("the number of its receive queue ({none})"),
            "its receive queue is unknown, or its driver may not record it".into(),
        ),
        Sender::Connection { .. } | Sender::Unconnected => {
            one_of(TransmitDecision::PacketHash, format!("the packet's hash ({none})"), queues.to_vec())
        }
    }
}

#[cfg(test)]
mod tests {
    use ringwise_model::{Channels, Count, CpuSet, Fact, QueueRange, TrafficClasses, Unread};
    use ringwise_testkit::machines::{self, NicSpec};
    use ringwise_testkit::topo::CpuSpec;

    use super::*;

    const HERE: Sender = Sender::Unconnected;

    fn igb() -> Snapshot {
        let nic = NicSpec::new("eth0", "igb", Some(0), 4, 4);
        let mut s = machines::host("one", CpuSpec::flat(8, 1), vec![nic]).snapshot();
        for q in &mut s.nics[0].tx_queues {
            (q.xps_cpus, q.xps_rxqs) = (Fact::Known(CpuSet::new()), Fact::Known(Vec::new()));
        }
        s
    }

    #[test]
    fn each_class_of_senders() {
        use TransmitDecision as D;
        let mut s = igb();
        let ask = |s: &Snapshot, cpu: Option<u32>, sender| {
            let x = sending(s, &s.nics[0], cpu.map(CpuId), sender);
            assert_eq!(x.why_not.is_some(), x.queue.is_none());
            (x.decision, x.queue, x.may_be)
        };
        let (forwarded, connection) = (|rx| Sender::Forwarded { rx }, |rx| Sender::Connection { rx });
        let all = vec![0, 1, 2, 3];
        // Without XPS: the recorded receive queue modulo the queues, or the hash.
        assert_eq!(ask(&s, Some(0), forwarded(Some(3))), (D::ReceiveQueue, Some(3), vec![]));
        assert_eq!(ask(&s, Some(0), forwarded(Some(6))), (D::ReceiveQueue, Some(2), vec![]));
        assert_eq!(ask(&s, Some(0), forwarded(None)), (D::Unknown, None, all.clone()));
        assert_eq!(ask(&s, Some(0), connection(Some(3))), (D::PacketHash, None, all.clone()));
        assert_eq!(ask(&s, None, HERE), (D::PacketHash, None, all.clone()));
        // XPS by CPU: one queue, several, and a CPU without a queue.
        s.nics[0].tx_queues[1].xps_cpus = Fact::Known("0-2".parse().unwrap());
        s.nics[0].tx_queues[2].xps_cpus = Fact::Known("2-3".parse().unwrap());
        for sender in [forwarded(Some(3)), connection(Some(3)), HERE] {
            assert_eq!(ask(&s, Some(0), sender), (D::XpsCpus, Some(1), vec![]));
            assert_eq!(ask(&s, Some(2), sender), (D::XpsCpus, None, vec![1, 2]));
            assert_eq!(ask(&s, None, sender), (D::Unknown, None, all.clone()));
        }
        assert_eq!(ask(&s, Some(7), forwarded(Some(7))), (D::ReceiveQueue, Some(3), vec![]));
        assert_eq!(ask(&s, Some(7), HERE), (D::PacketHash, None, all.clone()));
        // XPS by receive queue goes by the socket's queue: it needs a connected socket, and forwarded packets have none.
        s.nics[0].tx_queues[0].xps_rxqs = Fact::Known(vec![3]);
        assert_eq!(ask(&s, Some(0), connection(Some(3))), (D::XpsRxqs, Some(0), vec![]));
        assert_eq!(ask(&s, Some(0), connection(Some(2))), (D::XpsCpus, Some(1), vec![]));
        assert_eq!(ask(&s, Some(0), connection(None)), (D::Unknown, None, all.clone()));
        assert_eq!(ask(&s, Some(0), forwarded(Some(3))), (D::XpsCpus, Some(1), vec![]));
        assert_eq!(ask(&s, Some(0), HERE), (D::XpsCpus, Some(1), vec![]));
        // xen-netfront uses no XPS.
        let mut xen = s.clone();
        xen.nics[0].driver = Fact::Known("vif".into());
        assert_eq!(ask(&xen, Some(0), forwarded(Some(3))), (D::PacketHash, None, all.clone()));
        // What could not be read decides nothing.
        s.nics[0].tx_queues[2].xps_rxqs = Fact::not_requested("xps_rxqs");
        assert_eq!(ask(&s, Some(0), connection(Some(3))), (D::Unknown, None, all.clone()));
        s.nics[0].tx_queues[2].xps_cpus = Fact::not_requested("xps_cpus");
        assert_eq!(ask(&s, Some(0), forwarded(Some(3))), (D::Unknown, None, all));
    }

    #[test]
    fn classes_of_priorities() {
        use TransmitDecision as D;
        let mut s = igb();
        let mut ask = |ranges: &[(u32, u32)], rx| {
            let queues = ranges.iter().map(|(first, count)| QueueRange { first: *first, count: *count }).collect();
            s.nics[0].classes = Fact::Known(TrafficClasses { of_priority: vec![0; 16], queues });
            let x = sending(&s, &s.nics[0], Some(CpuId(0)), Sender::Forwarded { rx: Some(rx) });
            (x.decision, x.queue, x.may_be)
        };
        // One class: the receive queue less the first queue of the class, modulo its queues.
        assert_eq!(ask(&[(1, 3)], 0), (D::ReceiveQueue, Some(1), vec![]));
        assert_eq!(ask(&[(1, 3)], 3), (D::ReceiveQueue, Some(3), vec![]));
        assert_eq!(ask(&[(1, 3)], 5), (D::ReceiveQueue, Some(2), vec![]));
        assert_eq!(ask(&[(0, 2), (2, 2)], 3), (D::TrafficClass, None, vec![1, 3]));
        // A class without a queue.
        assert_eq!(ask(&[(0, 0)], 3), (D::ReceiveQueue, Some(3), vec![]));
        s.nics[0].classes = Fact::Unknown(Unread::new("qdisc-get (dump)", Some(1), "not permitted"));
        let x = sending(&s, &s.nics[0], Some(CpuId(0)), HERE);
        assert_eq!((x.decision, x.queue), (D::Unknown, None));
        s.nics[0].classes = ringwise_model::not_requested();
        let x = sending(&s, &s.nics[0], Some(CpuId(0)), HERE);
        assert_eq!(x.decision, D::PacketHash);
    }

    #[test]
    fn no_queue_is_predicted_if_none_is_listed() {
        let nic = NicSpec::new("eth0", "ice", Some(0), 2, 0);
        let mut s = machines::host("one", CpuSpec::flat(2, 1), vec![nic]).snapshot();
        assert_eq!(crate::steering::receive_queues(&s.nics[0]), Some(2));
        s.nics[0].tx_queues.clear();
        s.nics[0].rx_queues.clear();
        let x = sending(&s, &s.nics[0], None, HERE);
        assert_eq!((x.queue, x.by.as_str()), (None, "its transmit queues are unknown"));
        // With an unknown number of queues, no single queue may be predicted.
        assert_eq!(crate::steering::receive_queues(&s.nics[0]), None);
        let host_key = Fact::not_requested("net.core.netdev_rss_key");
        let steering = crate::steering::Steering::new(&s.nics[0], &host_key);
        assert_eq!(steering.queues(), None);
    }

    #[test]
    fn only_queues_in_use_are_predicted() {
        let nic = NicSpec::new("eth0", "igb", Some(0), 4, 4);
        let mut s = machines::host("one", CpuSpec::flat(4, 1), vec![nic]).snapshot();
        s.nics[0].tx_queues.iter_mut().for_each(|q| q.xps_cpus = Fact::Known(CpuSet::new()));
        let count = |now| Some(Count { now, max: 8 });
        let mut may_be = |combined, tx| {
            s.nics[0].channels = Fact::Known(Channels { combined, tx, rx: None, other: None });
            sending(&s, &s.nics[0], None, HERE).may_be
        };
        assert_eq!(may_be(count(2), None), [0, 1]);
        assert_eq!(may_be(count(2), count(1)), [0, 1, 2]);
        // Without a count, the listed queues are those in use.
        assert_eq!(may_be(None, None), [0, 1, 2, 3]);
        assert_eq!(may_be(None, count(0)), [0, 1, 2, 3]);
    }
}

//! From a CPU (and the receive queue of forwarded packets) to the transmit queue and the CPU of its completions.

use ringwise_model::{CpuId, Dir, Fact, IrqId, Nic, Snapshot};
use serde::Serialize;

use crate::stack::{CpuPlacement, cpu_placement};

/// How a packet leaves a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransmitPath {
    /// The queue, if only one is possible.
    pub queue: Option<u32>,
    /// The possible transmit queues; empty if `queue` is known.
    pub may_be: Vec<u32>,
    /// What selects the queue: `XPS of CPU 4`, `XPS of receive queue 2`, `the number of its receive queue`.
    pub by: String,
    /// Interrupt of the queue's completions. `None`: unknown, or several queues are possible.
    pub irq: Option<IrqId>,
    /// CPU that handles this interrupt.
    pub cpu: Option<CpuPlacement>,
    /// Byte queue limit of the queue and its bytes in flight, as text. `None`: unknown.
    pub bql: Option<String>,
    /// What makes the prediction uncertain, one sentence each.
    pub notes: Vec<String>,
}

/// Drivers that may choose the transmit queue themselves, for traffic classes or their own rings (Linux 6.12,
/// `ndo_select_queue`).
const CHOOSES: &[&str] = &["bnx2x", "fm10k", "hns", "ixgbe", "mlx4_en", "mlx5_core", "qede", "hv_netvsc", "ice"];

/// Selects the transmit queue as `__netdev_pick_tx` does: XPS by receive queue, then XPS by CPU, otherwise
/// `skb_tx_hash`. `rx` is the receive queue that the kernel recorded for a forwarded packet.
pub fn sending(s: &Snapshot, nic: &Nic, cpu: Option<CpuId>, rx: Option<u32>) -> TransmitPath {
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
    let (by, may_be) = choose(nic, &queues, cpu, rx);
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
        by,
        irq: vector.map(|v| v.irq),
        cpu: done_on.map(|c| cpu_placement(s, nic, c)),
        bql,
        notes,
    }
}

fn choose(nic: &Nic, queues: &[u32], cpu: Option<CpuId>, rx: Option<u32>) -> (String, Vec<u32>) {
    match queues {
        [] => return ("its transmit queues are unknown".into(), Vec::new()),
        [one] => return ("the only queue".into(), vec![*one]),
        _ => {}
    }
    let of = |want: &dyn Fn(&ringwise_model::TxQueue) -> bool| -> Vec<u32> {
        nic.tx_queues.iter().filter(|t| queues.contains(&t.id) && want(t)).map(|t| t.id).collect()
    };
    if let Some(rx) = rx {
        let by_rx = of(&|t| t.xps_rxqs.known().is_some_and(|r| r.contains(&rx)));
        if !by_rx.is_empty() {
            return (format!("XPS of receive queue {rx}"), by_rx);
        }
    }
    let unread = nic.tx_queues.iter().find_map(|t| match &t.xps_cpus {
        Fact::Unknown(u) => Some(u.to_string()),
        _ => None,
    });
    if let Some(why) = unread {
        return (format!("unknown, because XPS could not be read ({why})"), queues.to_vec());
    }
    let set = nic.tx_queues.iter().any(|t| t.xps_cpus.known().is_some_and(|c| !c.is_empty()));
    match cpu {
        None if set => return ("XPS, but the CPU is unknown".into(), queues.to_vec()),
        Some(c) => {
            let by_cpu = of(&|t| t.xps_cpus.known().is_some_and(|m| m.contains(c)));
            if !by_cpu.is_empty() {
                return (format!("XPS of CPU {c}"), by_cpu);
            }
        }
        None => {}
    }
    let none = if set { "XPS maps this CPU to no queue" } else { "XPS is not set" };
    match rx {
        // skb_tx_hash takes the recorded queue modulo the number of queues.
        Some(rx) => {
            let at = rx as usize % queues.len();
            (format!("the number of its receive queue ({none})"), vec![queues[at]])
        }
        None => (format!("the kernel's own hash ({none})"), queues.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use ringwise_model::{Channels, Count, CpuSet};
    use ringwise_testkit::machines::{self, NicSpec};
    use ringwise_testkit::topo::CpuSpec;

    use super::*;

    #[test]
    fn no_queue_is_predicted_if_none_is_listed() {
        let nic = NicSpec::new("eth0", "ice", Some(0), 2, 0);
        let mut s = machines::host("one", CpuSpec::flat(2, 1), vec![nic]).snapshot();
        assert_eq!(crate::steering::receive_queues(&s.nics[0]), Some(2));
        s.nics[0].tx_queues.clear();
        s.nics[0].rx_queues.clear();
        let x = sending(&s, &s.nics[0], None, None);
        assert_eq!((x.queue, x.by.as_str()), (None, "its transmit queues are unknown"));
        // With an unknown number of queues, no single queue may be predicted.
        assert_eq!(crate::steering::receive_queues(&s.nics[0]), None);
        let host_key = Fact::not_asked("net.core.netdev_rss_key");
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
            sending(&s, &s.nics[0], None, None).may_be
        };
        assert_eq!(may_be(count(2), None), [0, 1]);
        assert_eq!(may_be(count(2), count(1)), [0, 1, 2]);
        // Without a count, the listed queues are those in use.
        assert_eq!(may_be(None, None), [0, 1, 2, 3]);
        assert_eq!(may_be(None, count(0)), [0, 1, 2, 3]);
    }
}

//! The heaviest flows of each queue, from sampled headers, in bounded memory. Pure.
//!
//! Space-saving (Metwally, Agrawal, El Abbadi 2005): a new flow takes the entry of the smallest one and inherits its
//! count, which is remembered as the possible excess. Every flow with more than one in [`HELD`] of the packets of its
//! queue has an entry.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};

use ringwise_kfmt::packet::{self, Flow};
use ringwise_kfmt::traffic_class::{self, Tags, TrafficClass};
use ringwise_model::fnv::Fnv;

/// Flows of one queue that have an entry.
pub const HELD: usize = 64;
/// Queues that are counted separately. Packets of further queues count as those of an unknown queue.
const QUEUES: usize = 1024;

/// One flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopFlow {
    /// Addresses, protocol and ports as in the header of the frame.
    pub flow: Flow,
    /// Sampled packets; the true number is not larger.
    pub packets: u64,
    /// How many of `packets` may belong to flows that had this entry before.
    pub over: u64,
    /// Bytes of its packets since it got this entry.
    pub bytes: u64,
}

/// Sampled packets of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassCount {
    /// Sampled packets.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
}

/// Flows of one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueFlows {
    /// All sampled packets.
    pub packets: u64,
    /// Bytes of all these packets together.
    pub bytes: u64,
    /// Frames whose headers are broken or cut off; they are in the sums.
    pub unreadable: u64,
    /// Packets and bytes by class; at most [`TrafficClass::ALL`] entries.
    pub classes: BTreeMap<TrafficClass, ClassCount>,
    held: Vec<(u64, TopFlow)>,
}

/// Flows of all queues of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flows {
    /// By queue; `None`: the driver does not report the queue.
    pub queues: BTreeMap<Option<u32>, QueueFlows>,
}

impl Flows {
    /// Adds a frame that begins with `head` and represents `packets` packets with `bytes` bytes together. The frame is as
    /// packet sockets see it: the kernel has moved the outermost VLAN tag out of it.
    pub fn add(&mut self, queue: Option<u32>, head: &[u8], packets: u64, bytes: u64) {
        let known = self.queues.contains_key(&queue) || self.queues.len() < QUEUES;
        let queue = if known { queue } else { None };
        let q = self.queues.entry(queue).or_default();
        let c = q.classes.entry(traffic_class::class(head, Tags::OutermostMoved)).or_default();
        c.packets += packets;
        c.bytes += bytes;
        q.add(packet::flow(head), packets, bytes);
    }

    /// Packets of all queues together, those of an unknown queue included.
    pub fn packets(&self) -> u64 {
        self.queues.values().map(|q| q.packets).sum()
    }
}

impl QueueFlows {
    fn add(&mut self, flow: Option<Flow>, packets: u64, bytes: u64) {
        self.packets += packets;
        self.bytes += bytes;
        let Some(flow) = flow else {
            self.unreadable += packets;
            return;
        };
        let hash = hash(&flow);
        if let Some((_, h)) = self.held.iter_mut().find(|(k, h)| *k == hash && h.flow == flow) {
            h.packets += packets;
            h.bytes += bytes;
            return;
        }
        let new = TopFlow { flow, packets, over: 0, bytes };
        if self.held.len() < HELD {
            self.held.push((hash, new));
        } else if let Some(place) = self.held.iter_mut().min_by_key(|(_, h)| h.packets) {
            let over = place.1.packets;
            *place = (hash, TopFlow { packets: packets + over, over, ..new });
        }
    }

    /// The heaviest flows, by packets that certainly belong to them.
    pub fn top(&self, n: usize) -> Vec<TopFlow> {
        let mut all: Vec<TopFlow> = self.held.iter().map(|(_, h)| *h).collect();
        all.sort_by(|a, b| {
            (b.packets - b.over, b.packets).cmp(&(a.packets - a.over, a.packets)).then(a.flow.cmp(&b.flow))
        });
        all.truncate(n);
        all
    }
}

/// A hash, to avoid comparing whole flows.
fn hash(flow: &Flow) -> u64 {
    let mut h = Fnv::default();
    flow.hash(&mut h);
    h.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ringwise_kfmt::packet::frame_of;

    fn udp(n: u16) -> Flow {
        let (from, to) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        Flow::Ip { protocol: 17, from, to, ports: Some((n, 53)) }
    }

    #[test]
    fn few_flows_are_counted_exactly() {
        let mut f = Flows::default();
        for (queue, port, n) in [(Some(1), 5, 200), (Some(1), 6, 53), (Some(3), 5, 7), (None, 9, 1)] {
            for _ in 0..n {
                f.add(queue, &frame_of(&udp(port)), 1, 60);
            }
        }
        f.add(Some(3), &[1, 2, 3], 1, 60);
        let top = f.queues[&Some(1)].top(10);
        assert_eq!((top[0].flow, top[0].packets, top[0].over, top[0].bytes), (udp(5), 200, 0, 12_000));
        assert_eq!((top[1].flow, top[1].packets, top.len()), (udp(6), 53, 2));
        assert_eq!((f.queues[&Some(3)].packets, f.queues[&Some(3)].unreadable), (8, 1));
        assert_eq!((f.packets(), f.queues[&None].packets), (262, 1));
        assert_eq!(f.queues[&Some(1)].top(1).len(), 1);
    }

    proptest! {
        /// Memory is bounded, no heavy flow is missing, no count is too small, and none is too large by more than
        /// `over`.
        #[test]
        fn no_elephant_is_lost(mice in proptest::collection::vec(0u16..2000, 0..4000), elephant in 100usize..400) {
            let mut order: Vec<u16> = mice.clone();
            for i in 0..elephant {
                order.insert(i * 7 % (order.len() + 1), 60_000);
            }
            let mut q = QueueFlows::default();
            let mut real: BTreeMap<u16, u64> = BTreeMap::new();
            for port in &order {
                q.add(Some(udp(*port)), 1, 60);
                *real.entry(*port).or_default() += 1;
            }
            let held = q.top(usize::MAX);
            prop_assert!(held.len() <= HELD && q.packets == order.len() as u64);
            for h in &held {
                let Flow::Ip { ports: Some((port, _)), .. } = h.flow else { panic!() };
                prop_assert!(h.packets >= real[&port] && h.packets - h.over <= real[&port], "{h:?} {}", real[&port]);
                prop_assert!(h.over <= q.packets / HELD as u64);
            }
            for (port, n) in real {
                if n > q.packets / HELD as u64 {
                    prop_assert!(held.iter().any(|h| h.flow == udp(port)), "{port}: {n} of {}", q.packets);
                }
            }
        }
    }
}

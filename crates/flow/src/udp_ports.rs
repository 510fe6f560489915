//! What hashing the ports of UDP would change for the packets of a sample, on an interface that hashes only their
//! addresses. Each packet is counted when it is sampled, so the answer is exact for the sample and needs no flow table.

use std::collections::BTreeMap;

use ringwise_model::{Fact, Nic, Rss};
use serde::Serialize;

use crate::steering::Steering;
use crate::tuple::{Tuple, UDP};

/// Fewer sampled packets of UDP support no statement.
const ENOUGH: u64 = 100;
/// Share of the packets of UDP that must have arrived on the predicted queue, in percent.
const AGREES_PERCENT: u64 = 95;

/// The interface with and without the ports in the hash.
#[derive(Debug, Clone)]
pub struct UdpPorts {
    now: Steering,
    with: Steering,
    flow_types: Vec<&'static str>,
}

/// Sampled packets by the queue of each case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UdpPortsCount {
    now: BTreeMap<u32, u64>,
    with: BTreeMap<u32, u64>,
    /// Whole packets of UDP of the flow types that are hashed by addresses.
    udp: u64,
    /// Of these: the driver reported the queue.
    reported: u64,
    /// Of these: on the predicted queue.
    agreed: u64,
    /// Of these: the queue cannot be predicted.
    undecided: u64,
    /// Other packets whose queue is neither reported nor predictable.
    unplaced: u64,
}

/// The busiest queue with and without the ports in the hash.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UdpPortsGain {
    /// `udp4`, `udp6`: flow types that are hashed by addresses only.
    pub flow_types: Vec<&'static str>,
    /// Share of the sampled packets that are whole UDP packets of these types, in percent.
    pub udp_percent: f64,
    /// The busiest queue with the present fields.
    pub now_queue: u32,
    /// Share of the sampled packets on it, in percent.
    pub now_percent: f64,
    /// The busiest queue if the ports were hashed.
    pub with_ports_queue: u32,
    /// Share of the sampled packets on it, in percent.
    pub with_ports_percent: f64,
}

impl UdpPorts {
    /// `host_key`: as for [`Steering::new`]. `None`: no flow type of UDP is hashed by addresses only, there is one queue, or
    /// the hash fields are unknown.
    pub fn new(nic: &Nic, host_key: &Fact<String>) -> Option<Self> {
        let rss = nic.rss.known()?;
        let flow_types: Vec<&'static str> = ["udp4", "udp6"].into_iter().filter(|k| by_addresses(rss, k)).collect();
        let now = Steering::new(nic, host_key);
        if flow_types.is_empty() || now.queues().is_none_or(|n| n < 2) {
            return None;
        }
        let mut with = nic.clone();
        let mut fields = rss.clone();
        fields.fields.extend(flow_types.iter().map(|k| (k.to_string(), "sdfn".to_string())));
        with.rss = Fact::Known(fields);
        Some(Self { now, with: Steering::new(&with, host_key), flow_types })
    }

    /// Counts packets. `tuple`: their flow, if the device hashes it; `queue`: where they arrived, if the driver reports it.
    pub fn add(&self, count: &mut UdpPortsCount, tuple: Option<&Tuple>, queue: Option<u32>, packets: u64) {
        let udp = tuple.filter(|t| t.protocol == UDP && self.flow_types.contains(&t.flow_type()));
        let (now, with) = match udp {
            // The ports of UDP do not change where other packets arrive.
            None => {
                let at = queue.or_else(|| self.now.queue(tuple?));
                (at, at)
            }
            Some(t) => {
                let now = self.now.queue(t);
                count.udp += packets;
                if let (Some(queue), Some(now)) = (queue, now) {
                    count.reported += packets;
                    count.agreed += if queue == now { packets } else { 0 };
                }
                (now, self.with.queue(t))
            }
        };
        match now.zip(with) {
            Some((now, with)) => {
                *count.now.entry(now).or_default() += packets;
                *count.with.entry(with).or_default() += packets;
            }
            None if udp.is_some() => count.undecided += packets,
            None => count.unplaced += packets,
        }
    }

    /// The gain. `None`: too few packets; a queue cannot be predicted, because the key, the table or the hash function is
    /// unknown; the packets did not arrive where they were predicted; or the busiest queue would not be better off.
    pub fn gain(&self, count: &UdpPortsCount) -> Option<UdpPortsGain> {
        let all: u64 = count.now.values().sum();
        // What the driver does not report is assumed, and only the arrivals can confirm an assumption.
        let confirmed = match count.reported {
            0 => self.now.assumed().is_empty(),
            n => count.agreed * 100 >= n * AGREES_PERCENT,
        };
        let placed = count.unplaced * 100 <= all;
        if count.udp < ENOUGH || count.undecided > 0 || !placed || !confirmed {
            return None;
        }
        let busiest =
            |by: &BTreeMap<u32, u64>| by.iter().max_by_key(|(q, n)| (**n, u32::MAX - **q)).map(|(q, n)| (*q, *n));
        let (now, with) = (busiest(&count.now)?, busiest(&count.with)?);
        let percent = |n: u64| n as f64 * 100.0 / all as f64;
        // As in the advice of `explain`: less than 5 % is not worth a change.
        (with.1 as f64 <= now.1 as f64 * 0.95).then(|| UdpPortsGain {
            flow_types: self.flow_types.clone(),
            udp_percent: percent(count.udp),
            now_queue: now.0,
            now_percent: percent(now.1),
            with_ports_queue: with.0,
            with_ports_percent: percent(with.1),
        })
    }
}

fn by_addresses(rss: &Rss, flow_type: &str) -> bool {
    rss.fields.get(flow_type).is_some_and(|letters| letters == "sd")
}

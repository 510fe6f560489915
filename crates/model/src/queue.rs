//! Receive and transmit queues as the kernel shows them under `/sys/class/net/DEV/queues`.

use serde::{Deserialize, Serialize};

use crate::{CpuSet, Fact};

/// One receive queue, from `/sys/class/net/DEV/queues/rx-N`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RxQueue {
    /// N, from 0.
    pub id: u32,
    /// RPS mask. Empty: RPS is off for this queue.
    pub rps_cpus: Fact<CpuSet>,
    /// RFS flow table size of this queue, entries. 0: off.
    pub rps_flow_cnt: Fact<u32>,
}

/// One transmit queue, from `/sys/class/net/DEV/queues/tx-N`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TxQueue {
    /// N, from 0.
    pub id: u32,
    /// Empty: no CPU is mapped to this queue. Absent: a device with one transmit queue.
    pub xps_cpus: Fact<CpuSet>,
    /// Receive queues mapped to this transmit queue. Empty: none.
    pub xps_rxqs: Fact<Vec<u32>>,
    /// Absent: the kernel has no such directory (`byte_queue_limits`).
    pub bql: Fact<Bql>,
}

/// Byte queue limits, all in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bql {
    /// Present limit, which the kernel adapts.
    pub limit_bytes: u64,
    /// Smallest limit that the kernel chooses.
    pub limit_min_bytes: u64,
    /// Largest limit that the kernel chooses.
    pub limit_max_bytes: u64,
    /// Handed to the device and not completed yet.
    pub inflight_bytes: u64,
}

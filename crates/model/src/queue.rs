//! Receive and transmit queues as the kernel shows them under `/sys/class/net/DEV/queues`.

use serde::{Deserialize, Serialize};

use crate::{CpuSet, Fact};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RxQueue {
    pub id: u32,
    /// RPS mask. Empty: RPS is off for this queue.
    pub rps_cpus: Fact<CpuSet>,
    /// RFS flow table size of this queue, entries. 0: off.
    pub rps_flow_cnt: Fact<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TxQueue {
    pub id: u32,
    /// Empty: no CPU is mapped to this queue. Absent: a device with one transmit queue.
    pub xps_cpus: Fact<CpuSet>,
    /// Receive queues mapped to this transmit queue. Empty: none.
    pub xps_rxqs: Fact<Vec<u32>>,
    pub bql: Fact<Bql>,
}

/// Byte queue limits, all in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bql {
    pub limit_bytes: u64,
    pub limit_min_bytes: u64,
    pub limit_max_bytes: u64,
    pub inflight_bytes: u64,
}

//! Threads of programs that use much of a CPU.

use std::collections::BTreeSet;

use crate::{CpuId, CpuSet, Fact, NodeId};

/// A thread of a program that used much of a CPU in an interval. Threads of the kernel are not programs.
#[derive(Debug, Clone, PartialEq)]
pub struct BusyThread {
    /// Its name (`/proc/PID/task/TID/comm`), as its program has chosen it.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// The CPU that it was on at the beginning and at the end of the interval.
    pub cpus: [CpuId; 2],
    /// Its part of the interval on a CPU, in per cent.
    pub percent: f64,
    /// Its policy is `SCHED_FIFO`, `SCHED_RR` or `SCHED_DEADLINE`.
    pub real_time: bool,
    /// Where it may be. Absent: it has ended, or the kernel has no cpusets. Read only on hosts with several nodes.
    pub permitted: Fact<PermittedPlaces>,
}

/// CPUs and memory nodes that a thread may use (`/proc/PID/task/TID/status`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermittedPlaces {
    /// Its affinity within its cpuset.
    pub cpus: CpuSet,
    /// Memory nodes of its cpuset (`cpuset.mems`). May contain nodes that the host does not have. A memory policy of the
    /// program itself is not in it.
    pub memory_nodes: BTreeSet<NodeId>,
}

//! Threads of programs that use much of a CPU.

use crate::CpuId;

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
}

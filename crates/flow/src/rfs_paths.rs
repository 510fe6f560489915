//! The CPUs that handle a received flow of a program: without RFS, with it, and with accelerated RFS.

use ringwise_model::{CpuId, Dir, Nic, Snapshot};

use crate::chain::{CpuWork, Direction, PathStage};
use crate::stack::{Rfs, Rps, supports_accelerated_rfs};

/// How received packets reach the CPU of their program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RfsUse {
    /// The stack runs on the CPU of the interrupt, or on the one that RPS chose.
    Without,
    /// The stack runs on the program's CPU.
    With,
    /// The device delivers to the queue of the program's CPU.
    Accelerated,
}

impl RfsUse {
    /// In the order of pages.
    pub const ALL: [Self; 3] = [Self::Without, Self::With, Self::Accelerated];
}

impl std::fmt::Display for RfsUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Without => "without RFS",
            Self::With => "with RFS",
            Self::Accelerated => "with accelerated RFS",
        })
    }
}

/// The path of one use of RFS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RfsPath {
    /// Which use.
    pub rfs: RfsUse,
    /// The receive queue.
    pub queue: u32,
    /// The CPUs in the order in which packets reach them.
    pub stations: Vec<PathStage>,
    /// The host is configured in this way.
    pub present: bool,
}

/// The paths of a received flow whose program and interrupt are known; otherwise none. Accelerated RFS needs a driver that supports it, a
/// queue whose interrupt goes to the program's CPU, and more than one queue.
pub fn rfs_paths(s: &Snapshot, d: &Direction) -> Vec<RfsPath> {
    let landing = d.arrival.as_ref().and_then(|a| Some((a, a.landing.as_ref()?)));
    let program = d.socket.as_ref().and_then(|k| k.last_cpu).filter(|_| d.local);
    let (Some((arrival, landing)), Some(program)) = (landing, program) else { return Vec::new() };
    let Some(interrupt) = landing.cpu.as_ref().map(|p| p.cpu) else { return Vec::new() };
    let stack = match &landing.rps {
        Rps::Off => interrupt,
        Rps::On { chosen: Some(cpu), .. } => *cpu,
        // The CPU of the stack is unknown.
        Rps::On { chosen: None, .. } | Rps::Unknown { .. } => return Vec::new(),
    };
    let there = s.nic(&arrival.dev).filter(|n| supports_accelerated_rfs(n)).and_then(|n| queue_on(n, program));
    let present = match &landing.rfs {
        Rfs::Off { .. } => Some(RfsUse::Without),
        Rfs::On { accelerated: true, .. } if there.is_some() => Some(RfsUse::Accelerated),
        Rfs::On { .. } => Some(RfsUse::With),
        Rfs::Unknown { .. } => None,
    };
    let path = |rfs: RfsUse| {
        let (queue, interrupt, stack) = match rfs {
            RfsUse::Without => (landing.queue, interrupt, stack),
            RfsUse::With => (landing.queue, interrupt, program),
            RfsUse::Accelerated => (there?, program, program),
        };
        let stations = vec![(interrupt, CpuWork::Interrupt), (stack, CpuWork::Stack), (program, CpuWork::Program)];
        Some(RfsPath { rfs, queue, stations, present: present == Some(rfs) })
    };
    RfsUse::ALL.into_iter().filter_map(path).collect()
}

/// The receive queue whose interrupt goes to this CPU alone.
fn queue_on(nic: &Nic, cpu: CpuId) -> Option<u32> {
    let mut queues = nic.rx_queues.iter().map(|q| q.id).filter(|_| nic.rx_queues.len() > 1);
    let goes_to = |q: &u32| nic.vector_of(Dir::Rx, *q).and_then(|v| v.effective.known());
    queues.find(|q| goes_to(q).is_some_and(|cpus| cpus.len() == 1 && cpus.contains(cpu)))
}

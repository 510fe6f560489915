//! Findings about threads of programs and the CPUs of interrupts.

use std::collections::BTreeSet;
use std::fmt;

use ringwise_model::words::visible;
use ringwise_model::{CpuId, CpuSet, NodeId};
use serde::{Deserialize, Serialize};

use super::words::cpus;

/// What the rules about programs found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", content = "facts", rename_all = "snake_case")]
pub enum ProgramFound {
    /// Busy threads run on the other hardware thread of a core that handles queue interrupts.
    BesideInterrupts {
        /// The threads, the busiest one first.
        threads: Vec<ThreadAt>,
        /// CPUs of the first thread's node on cores that handle no queue interrupt.
        free: CpuSet,
    },
    /// Busy real-time threads run on CPUs that handle queue interrupts.
    RealTimeOnInterruptCpu {
        /// The threads, the busiest one first.
        threads: Vec<ThreadAt>,
    },
    /// Busy threads run on another node than every interface that their connections use.
    OnRemoteNode {
        /// The threads, the busiest one first.
        threads: Vec<RemoteThread>,
        /// CPUs of the node of the first thread's interface, if possible on cores that handle no queue interrupt.
        local: CpuSet,
    },
    /// The cpusets of busy threads exclude the memory of the nodes where they run, or where their packets are.
    MemoryOnRemoteNode {
        /// The threads, the busiest one first.
        threads: Vec<RemoteMemory>,
    },
}

/// A busy thread whose cpuset excludes the memory of the nodes of its CPUs, or of the interfaces that its process uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoteMemory {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// The CPU that it ran on.
    pub cpu: CpuId,
    /// Its part of the time on a CPU, in per cent.
    pub percent: f64,
    /// Nodes of the host whose memory its cpuset permits.
    pub memory_nodes: BTreeSet<NodeId>,
    /// Nodes with memory that its cpuset excludes.
    pub excluded: BTreeSet<NodeId>,
    /// The excluded nodes are those of all CPUs that it may use; otherwise those of the interfaces.
    pub by_cpus: bool,
    /// The interfaces that the connections of its process use.
    pub devs: BTreeSet<String>,
}

impl RemoteMemory {
    /// `node 0 of its CPUs`, `nodes 0, 1 of eth1`
    fn excluded(&self) -> String {
        let whose = if self.by_cpus { "its CPUs".to_string() } else { joined(&self.devs) };
        format!("{} of {whose}", nodes(&self.excluded))
    }
}

/// `node 0`, `nodes 0, 1`
fn nodes(all: &BTreeSet<NodeId>) -> String {
    format!("{} {}", if all.len() == 1 { "node" } else { "nodes" }, joined(all))
}

fn joined<T: fmt::Display>(all: &BTreeSet<T>) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for RemoteMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, tid, cpu, percent, memory_nodes, devs, .. } = self;
        let name = visible(&self.name);
        write!(f, "{name} (process {pid}, thread {tid}) used {percent:.0} % of CPU {cpu}; ")?;
        match memory_nodes.is_empty() {
            true => write!(f, "its cpuset permits no memory of an online node")?,
            false => write!(f, "its cpuset permits memory of {} only", nodes(memory_nodes))?,
        }
        write!(f, ", not of {}; its process has connections over {}", self.excluded(), joined(devs))
    }
}

/// A busy thread on another node than the interface that the connections of its process use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoteThread {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// The CPU that it ran on.
    pub cpu: CpuId,
    /// The node of this CPU.
    pub node: NodeId,
    /// Its part of the time on a CPU, in per cent.
    pub percent: f64,
    /// The interface.
    pub dev: String,
    /// The node of the interface.
    pub dev_node: NodeId,
}

impl fmt::Display for RemoteThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, tid, cpu, node, percent, dev, dev_node, .. } = self;
        let name = visible(&self.name);
        write!(
            f,
            "{name} (process {pid}, thread {tid}) used {percent:.0} % of CPU {cpu} on node {node}; its process has \
             connections over {dev} on node {dev_node}"
        )
    }
}

/// A busy thread of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadAt {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Its own number.
    pub tid: u32,
    /// The CPU that it ran on.
    pub cpu: CpuId,
    /// Its part of the time on this CPU, in per cent.
    pub percent: f64,
    /// The CPU of the same core that handles queue interrupts; that of the thread itself if it runs there.
    pub interrupts_on: CpuId,
}

impl fmt::Display for ThreadAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, tid, cpu, percent, interrupts_on, .. } = self;
        let name = visible(&self.name);
        write!(
            f,
            "{name} (process {pid}, thread {tid}) used {percent:.0} % of CPU {cpu}; interrupts: CPU {interrupts_on}"
        )
    }
}

impl ProgramFound {
    /// Name, CPU and share of the time of each thread.
    fn threads(&self) -> Vec<(&str, CpuId, f64)> {
        match self {
            Self::BesideInterrupts { threads, .. } | Self::RealTimeOnInterruptCpu { threads } => {
                threads.iter().map(|t| (t.name.as_str(), t.cpu, t.percent)).collect()
            }
            Self::OnRemoteNode { threads, .. } => threads.iter().map(|t| (t.name.as_str(), t.cpu, t.percent)).collect(),
            Self::MemoryOnRemoteNode { threads } => {
                threads.iter().map(|t| (t.name.as_str(), t.cpu, t.percent)).collect()
            }
        }
    }

    pub(super) fn evidence(&self) -> Vec<String> {
        match self {
            Self::BesideInterrupts { threads, .. } | Self::RealTimeOnInterruptCpu { threads } => {
                threads.iter().map(ThreadAt::to_string).collect()
            }
            Self::OnRemoteNode { threads, .. } => threads.iter().map(RemoteThread::to_string).collect(),
            Self::MemoryOnRemoteNode { threads } => threads.iter().map(RemoteMemory::to_string).collect(),
        }
    }
}

/// `nginx on CPU 4`, `3 threads (nginx and others) on CPUs 4-6`
fn who(threads: &[(&str, CpuId, f64)]) -> String {
    let on: CpuSet = threads.iter().map(|(_, cpu, _)| *cpu).collect();
    let name = threads.first().map_or("", |(name, ..)| name);
    let first = visible(name);
    let others = if threads.iter().all(|t| t.0 == name) { "" } else { " and others" };
    match threads.len() {
        1 => format!("{first} on {}", cpus(&on)),
        n => format!("{n} threads ({first}{others}) on {}", cpus(&on)),
    }
}

impl fmt::Display for ProgramFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads = self.threads();
        let busy = threads.iter().map(|t| t.2).fold(0.0, f64::max);
        let (who, one) = (who(&threads), threads.len() == 1);
        match self {
            Self::BesideInterrupts { .. } => {
                let other =
                    if one { "hardware thread of its core handles" } else { "hardware threads of their cores handle" };
                write!(f, "{who}, up to {busy:.0} % busy; the other {other} queue interrupts")
            }
            Self::RealTimeOnInterruptCpu { .. } => {
                let also = if one { "CPU also handles" } else { "CPUs also handle" };
                write!(f, "real-time: {who}, up to {busy:.0} % busy; the {also} queue interrupts")
            }
            Self::OnRemoteNode { threads, .. } => {
                let devs: BTreeSet<&str> = threads.iter().map(|t| t.dev.as_str()).collect();
                let devs: Vec<&str> = devs.into_iter().collect();
                let (devs, is) = (devs.join(", "), if devs.len() == 1 { "is" } else { "are" });
                write!(f, "{who}, up to {busy:.0} % busy; the connections use {devs}, which {is} on another node")
            }
            Self::MemoryOnRemoteNode { threads } => {
                let excluded: BTreeSet<String> = threads.iter().map(RemoteMemory::excluded).collect();
                let cpuset = if one { "its cpuset excludes" } else { "their cpusets exclude" };
                write!(f, "{who}, up to {busy:.0} % busy; {cpuset} memory of {}", joined(&excluded))
            }
        }
    }
}

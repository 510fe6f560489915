//! What the picture shows, in one sentence: where the queues of a device are handled, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::order::Order;
use ringwise_model::{CpuId, CpuSet, Nic, NodeId, Topology};

use crate::columns::Ranks;
use ringwise_text::{is_down, plural};

/// Where the queues of a device are handled. The two interrupts of a queue count once.
#[derive(Debug, Default)]
pub(super) struct QueuePlacement {
    queues: usize,
    /// Queues whose CPU is unknown or offline.
    unknown: usize,
    down: bool,
    /// Queues that are handled on another node than the device's, and these nodes.
    remote: usize,
    remote_nodes: BTreeSet<NodeId>,
    /// The node of the device, if the host has several.
    node: Option<NodeId>,
    /// Queues by CPU.
    load: BTreeMap<CpuId, usize>,
    /// CPUs and cores with at least two queues more than another that could have them.
    crowded: BTreeSet<CpuId>,
    crowded_cores: BTreeSet<usize>,
    /// CPUs and cores of the device's node that handle none of its queues.
    free_cpus: usize,
    free_cores: usize,
    /// Queues by core.
    core_load: BTreeMap<usize, usize>,
}

impl QueuePlacement {
    pub(super) fn of(t: &Topology, n: &Nic) -> Self {
        let mut v = QueuePlacement { down: is_down(n), ..Self::default() };
        let node = n.node.known().copied();
        v.node = node.filter(|_| t.nodes.known().is_some_and(|all| all.len() > 1));
        let (mut queues, mut unknown, mut remote) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut at: BTreeSet<(CpuId, u32)> = BTreeSet::new();
        for vector in n.queue_vectors() {
            let Some(queue) = vector.rx().first().or(vector.tx().first()).copied() else { continue };
            queues.insert(queue);
            let cpus = vector.effective.known().filter(|e| !e.is_empty() && e.difference(&t.online).is_empty());
            let Some(cpus) = cpus else {
                unknown.insert(queue);
                continue;
            };
            for m in cpus.iter().filter_map(|c| t.node_of(c)).filter(|m| node.is_some_and(|n| n != *m)) {
                remote.insert(queue);
                v.remote_nodes.insert(m);
            }
            if let Some(c) = cpus.first().filter(|_| cpus.len() == 1) {
                at.insert((c, queue));
            }
        }
        (v.queues, v.unknown, v.remote) = (queues.len(), unknown.len(), remote.len());
        for (cpu, _) in &at {
            *v.load.entry(*cpu).or_default() += 1;
        }
        v.compare(t, n);
        v
    }

    /// Compares the CPUs and cores that could handle queues of the device.
    fn compare(&mut self, t: &Topology, n: &Nic) {
        let local = |c: &CpuId| n.node.known().is_none_or(|n| t.node_of(*c).is_none_or(|m| m == *n));
        let isolated = t.isolated_all();
        let could: CpuSet = t.online.difference(&isolated).iter().filter(local).collect();
        let least = could.iter().map(|c| self.load.get(&c).copied().unwrap_or(0)).min().unwrap_or(0);
        self.free_cpus = could.iter().filter(|c| !self.load.contains_key(c)).count();
        self.crowded = self.load.iter().filter(|(_, k)| **k > least + 1).map(|(c, _)| *c).collect();
        let ranks = Ranks::of(t);
        for (cpu, k) in &self.load {
            if let Some(core) = ranks.core(*cpu) {
                *self.core_load.entry(core).or_default() += k;
            }
        }
        let cores: BTreeSet<usize> = could.iter().filter_map(|c| ranks.core(c)).collect();
        let least = cores.iter().map(|c| self.core_load.get(c).copied().unwrap_or(0)).min().unwrap_or(0);
        self.crowded_cores = self.core_load.iter().filter(|(_, k)| **k > least + 1).map(|(c, _)| *c).collect();
        self.free_cores = cores.iter().filter(|c| !self.core_load.contains_key(c)).count();
    }

    /// Whether the CPU has at least two queues more than another one that could have them.
    pub(super) fn crowded(&self, cpu: CpuId) -> bool {
        self.crowded.contains(&cpu)
    }

    /// The same for a core, if none of its CPUs is marked already.
    pub(super) fn crowded_core(&self, core: usize) -> bool {
        self.crowded.is_empty() && self.crowded_cores.contains(&core)
    }

    pub(super) fn any_crowded(&self) -> bool {
        !self.crowded.is_empty() || !self.crowded_cores.is_empty()
    }

    /// Whether something could be better. `None`: that is not known.
    pub(super) fn fine(&self) -> Option<bool> {
        match () {
            () if self.remote > 0 || self.any_crowded() => Some(false),
            () if self.unknown > 0 || self.queues == 0 => None,
            () => Some(true),
        }
    }

    /// One sentence without a full stop.
    pub(super) fn text(&self) -> String {
        let mut parts = Vec::new();
        let all = plural(self.queues, "queue");
        let of = |k: usize| match self.queues {
            n if k < n => format!("{k} of {all}"),
            1 => "the queue".to_string(),
            2 => "both queues".to_string(),
            _ => format!("all {all}"),
        };
        if self.queues == 0 {
            return if self.down {
                "the link is down".into()
            } else {
                "the interrupts of the queues are unknown".into()
            };
        }
        if self.remote > 0 {
            let nodes: Vec<String> = self.remote_nodes.iter().map(|n| n.0.to_string()).collect();
            let word = if nodes.len() == 1 { "node" } else { "nodes" };
            parts.push(format!("{} on remote {word} {}", of(self.remote), nodes.join(",")));
        }
        let mut crowded: Vec<(CpuId, usize)> =
            self.load.iter().filter(|(c, _)| self.crowded(**c)).map(|(c, k)| (*c, *k)).collect();
        crowded.order_by_key(|(c, k)| (std::cmp::Reverse(*k), *c));
        if let [(cpu, k), rest @ ..] = crowded.as_slice() {
            parts.push(match rest {
                [] => format!("{} on CPU {cpu}", of(*k)),
                [(other, n)] => format!("{} on CPU {cpu}, {n} on CPU {other}", of(*k)),
                _ => {
                    let each = range(crowded.iter().map(|(_, k)| *k));
                    let free = match self.free_cpus {
                        0 => "others fewer".to_string(),
                        n => format!("{} none", plural(n, "local CPU")),
                    };
                    format!("{} CPUs handle {each} queues each, {free}", crowded.len())
                }
            });
        } else if !self.crowded_cores.is_empty() {
            let each = range(self.crowded_cores.iter().filter_map(|c| self.core_load.get(c).copied()));
            let cores = match self.crowded_cores.len() {
                1 => format!("1 core handles {each} queues"),
                n => format!("{n} cores handle {each} queues each"),
            };
            parts.push(match self.free_cores {
                0 => format!("{cores}, others fewer"),
                k => format!("{cores}, {} none", plural(k, "core")),
            });
        }
        if self.unknown > 0 {
            let why = if self.down { " (the link is down)" } else { "" };
            parts.push(format!("the CPU of {} is unknown{why}", of(self.unknown)));
        }
        if parts.is_empty() {
            parts.push(self.good(&all));
        }
        parts.join("; ")
    }

    fn good(&self, all: &str) -> String {
        let local = self.node.map_or(String::new(), |n| format!(" of local node {}", n.0));
        match self.load.len() {
            0 => format!("{all} on several CPUs{local} each"),
            1 => format!("{all} on one CPU{local}"),
            cpus => {
                let each = range(self.load.values().copied());
                format!("{all} on {cpus} CPUs{local}, {each} on each")
            }
        }
    }
}

/// `1`, `3 or 4`, or `3 to 7`.
fn range(all: impl Iterator<Item = usize>) -> String {
    let all: BTreeSet<usize> = all.collect();
    match (all.first(), all.last()) {
        (Some(a), Some(b)) if a == b => a.to_string(),
        (Some(a), Some(b)) if b - a == 1 => format!("{a} or {b}"),
        (Some(a), Some(b)) => format!("{a} to {b}"),
        _ => "0".into(),
    }
}

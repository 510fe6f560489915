//! The layout afterwards, and what it changes in numbers.

use std::collections::BTreeMap;

use ringwise_model::Confidence;

use crate::dev::Dev;
use crate::machine::{Machine, Near};
use crate::{DevLayout, DoubledCore, Expected, Placed};

/// `None` where the device's node or the CPU's is not known. Counted by node, also where the plan takes nodes
/// close by for near: what crosses to another node is said.
fn far(m: &Machine, d: &Dev, cpu: usize) -> Option<bool> {
    let at = m.node[cpu]?;
    match &d.near {
        Near::Node(n) => Some(*n != at),
        _ => None,
    }
}

/// CPUs of the queue pairs of a device, unknown ones among them.
type Cpus = Vec<Option<usize>>;

fn after(d: &Dev) -> Cpus {
    d.cpu.clone()
}

fn before(m: &Machine, d: &Dev) -> Cpus {
    (0..d.pairs_now()).map(|q| d.pair_now(m, q)).collect()
}

fn per_core(m: &Machine, cpus: &Cpus) -> BTreeMap<usize, Vec<u32>> {
    let mut out: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (q, c) in cpus.iter().enumerate() {
        if let Some(c) = c {
            out.entry(m.core[*c]).or_default().push(q as u32);
        }
    }
    out
}

pub(crate) fn layout(m: &Machine, d: &Dev) -> DevLayout {
    let node = d.nic.node.known().copied();
    let cores = per_core(m, &d.cpu);
    let queues = d.cpu.iter().enumerate().map(|(q, c)| Placed {
        queue: q as u32,
        cpu: c.map(|c| m.cpus[c]),
        far: c.and_then(|c| far(m, d, c)),
        shares_core: c.is_some_and(|c| cores[&m.core[c]].len() > 1),
    });
    DevLayout { dev: d.name().to_string(), node, queues: queues.collect() }
}

pub(crate) fn doubled(m: &Machine, d: &Dev) -> Vec<DoubledCore> {
    let cores = per_core(m, &d.cpu);
    let more = cores.into_iter().filter(|(_, q)| q.len() > 1);
    more.map(|(core, queues)| DoubledCore {
        dev: d.name().to_string(),
        core: m.set(m.cores[core].iter().copied()),
        queues,
        group: None,
    })
    .collect()
}

/// `None` where one queue's CPU is not known.
fn busiest_percent(cpus: &Cpus) -> Option<f64> {
    let mut per: BTreeMap<usize, u32> = BTreeMap::new();
    for c in cpus {
        *per.entry((*c)?).or_default() += 1;
    }
    Some(f64::from(*per.values().max()?) * 100.0 / cpus.len() as f64)
}

/// Queues on the core that has most of them.
fn fullest_core(m: &Machine, cpus: &Cpus) -> Option<f64> {
    if cpus.iter().any(Option::is_none) {
        return None;
    }
    per_core(m, cpus).values().map(Vec::len).max().map(|n| n as f64)
}

/// Queue vectors on far nodes: how many of how many; `None` where one is not known.
fn off_node(m: &Machine, d: &Dev, then: bool) -> Option<(u32, u32)> {
    let cpus: Cpus = if then && d.channels.is_some() {
        d.cpu.clone()
    } else {
        let vectors = d.nic.queue_vectors().filter(|v| v.confidence != Confidence::None);
        let place = |v: &ringwise_model::Vector| {
            let q = v.rx().first().or(v.tx().first()).copied()?;
            if then { d.cpu.get(q as usize).copied().flatten() } else { Dev::now(m, v) }
        };
        vectors.map(place).collect()
    };
    let mut off = 0;
    for c in &cpus {
        off += u32::from(far(m, d, (*c)?)?);
    }
    Some((off, cpus.len() as u32))
}

pub(crate) fn expected(m: &Machine, devs: &[Dev]) -> Vec<Expected> {
    let mut out = Vec::new();
    for d in devs {
        let dev = d.name();
        let (b, a) = (before(m, d), after(d));
        if a.len() > 1 || b.len() > 1 {
            push(&mut out, Some(dev), busiest_percent(&b), busiest_percent(&a), "percent of queues", |b, a| match b {
                Some(b) => format!("busiest CPU takes {a:.0} % of {dev}'s queues instead of {b:.0} %"),
                None => format!("busiest CPU takes {a:.0} % of {dev}'s queues; how many it takes now is unknown"),
            });
            push(&mut out, Some(dev), fullest_core(m, &b), fullest_core(m, &a), "queues", |b, a| match b {
                Some(b) => format!("most queues of {dev} on one physical core: {a:.0} instead of {b:.0}"),
                None => format!("most queues of {dev} on one physical core: {a:.0}; now unknown"),
            });
        }
        if d.tx.is_some_and(|tx| tx > 1) {
            let none = d
                .nic
                .tx_queues
                .iter()
                .map(|t| t.xps_cpus.known())
                .try_fold(ringwise_model::CpuSet::new(), |all, one| one.map(|one| all.union(one)));
            let b = none.map(|c| m.topo.online.difference(&c).len() as f64);
            let a = if d.cpu.iter().all(Option::is_none) { b } else { Some(0.0) };
            push(&mut out, Some(dev), b, a, "CPUs", |b, a| match b {
                Some(b) => format!("CPUs without a transmit queue of {dev} laid down: {a:.0} instead of {b:.0}"),
                None => format!("CPUs without a transmit queue of {dev} laid down: {a:.0}; now unknown"),
            });
        }
    }
    // One line for all devices whose node is known: an interrupt on another node crosses the link between sockets.
    if m.has_nodes() {
        let sum = |then: bool| -> Option<(u32, u32)> {
            let with_node =
                devs.iter().filter(|d| matches!(d.near, Near::Node(_)) && d.nic.queue_vectors().next().is_some());
            with_node.map(|d| off_node(m, d, then)).try_fold((0, 0), |s, one| one.map(|o| (s.0 + o.0, s.1 + o.1)))
        };
        if let Some((a, of)) = sum(true)
            && of > 0
        {
            let b = sum(false).map(|b| f64::from(b.0));
            push(&mut out, None, b, Some(f64::from(a)), "interrupts", |b, a| match b {
                Some(b) => format!("interrupts off their device's node: {a:.0} of {of} instead of {b:.0}"),
                None => format!("interrupts off their device's node: {a:.0} of {of}; now unknown"),
            });
        }
    }
    out
}

/// Leaves out what stays as it is and what cannot be told.
fn push(
    out: &mut Vec<Expected>,
    dev: Option<&str>,
    before: Option<f64>,
    after: Option<f64>,
    unit: &str,
    text: impl FnOnce(Option<f64>, f64) -> String,
) {
    let Some(a) = after else { return };
    if before != after {
        out.push(Expected {
            dev: dev.map(str::to_string),
            text: text(before, a),
            before,
            after,
            unit: unit.to_string(),
        });
    }
}

/// How queue interrupts lie on the host, to compare layouts whoever made them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Score {
    /// Queue pairs whose CPU is known.
    pub queues: u32,
    /// … and those whose is not.
    pub unknown: u32,
    /// On another node than the device's.
    pub far: u32,
    /// On a CPU that takes another queue of the same device.
    pub stacked: u32,
    /// On another thread of a core that takes a queue of the same device.
    pub smt_shared: u32,
}

/// Scores the layout that a snapshot shows (effective CPUs).
pub fn score(s: &ringwise_model::Snapshot) -> Score {
    let m = Machine::new(&s.topology);
    let mut out = Score::default();
    for nic in s.tunable().filter(|n| n.link_is_up()) {
        let d = Dev::new(&m, nic, ringwise_model::Goal::Balanced);
        let cpus = before(&m, &d);
        let cores = per_core(&m, &cpus);
        for (q, c) in cpus.iter().enumerate() {
            let Some(c) = *c else {
                out.unknown += 1;
                continue;
            };
            out.queues += 1;
            out.far += u32::from(far(&m, &d, c) == Some(true));
            let mates = &cores[&m.core[c]];
            let same = mates.iter().any(|o| *o as usize != q && cpus[*o as usize] == Some(c));
            out.stacked += u32::from(same);
            out.smt_shared += u32::from(!same && mates.len() > 1);
        }
    }
    out
}

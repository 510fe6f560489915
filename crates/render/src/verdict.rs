//! The first line of `status`: whether anything is wrong, from what the page reads anyway.

use std::collections::BTreeSet;

use ringwise_apply::Verify;
use ringwise_knob::Address;
use ringwise_model::{CpuSet, Nic, Snapshot};
use ringwise_text::{Style, Tint, far_queues, hang, is_down, is_listed, no_answer, plural};

use super::table;

/// The interface whose interrupts are worst placed, or that does not answer.
pub(super) struct Worst<'a> {
    pub nic: &'a Nic,
    /// `2 queues on the far node`
    what: String,
    /// Other interfaces with a problem.
    others: usize,
}

/// The worst interface of the host. Interfaces whose interrupts ringwise has placed are as requested and do not count.
pub(super) fn worst<'a>(s: &'a Snapshot, v: Option<&Verify>) -> Option<Worst<'a>> {
    let placed: BTreeSet<&str> = v
        .into_iter()
        .flat_map(|v| &v.settings)
        .filter(|st| matches!(st.want.address(), Some(Address::IrqCpus { .. })))
        .filter_map(|st| st.want.dev())
        .collect();
    let mut bad: Vec<(usize, &Nic, String)> = s
        .nics
        .iter()
        .filter(|n| is_listed(n) && n.has_own_queues() && !placed.contains(n.name()))
        .filter_map(|n| trouble(s, n).map(|(weight, what)| (weight, n, what)))
        .collect();
    // The sort is stable: of equally bad interfaces the first one is named.
    bad.sort_by_key(|(weight, ..)| std::cmp::Reverse(*weight));
    let others = bad.len().saturating_sub(1);
    bad.into_iter().next().map(|(_, nic, what)| Worst { nic, what, others })
}

/// What is wrong with an interface, and how many queues it concerns.
fn trouble(s: &Snapshot, n: &Nic) -> Option<(usize, String)> {
    if let Some(why) = no_answer(n) {
        return Some((usize::MAX, why.to_string()));
    }
    if is_down(n) {
        return None;
    }
    let far = far_queues(s, n).unwrap_or(0);
    let stacked = table::stacked(n).filter(|(_, k)| *k > fair_share(s, n));
    let mut parts = Vec::new();
    if let Some((cpu, k)) = stacked {
        parts.push(format!("{k} queues on CPU {cpu}"));
    }
    if far > 0 {
        parts.push(format!("{} on a remote node", plural(far, "queue")));
    }
    let isolated = isolated_queues(s, n);
    if isolated > 0 {
        parts.push(format!("{} on isolated CPUs", plural(isolated, "queue")));
    }
    let weight = stacked.map_or(0, |(_, k)| k) + far + isolated;
    (weight > 0).then(|| (weight, parts.join(", ")))
}

/// Number of queue interrupts that are delivered to an isolated CPU.
fn isolated_queues(s: &Snapshot, n: &Nic) -> usize {
    let isolated = s.topology.isolated_all();
    let on = |v: &&ringwise_model::Vector| v.effective.known().is_some_and(|e| !e.intersection(&isolated).is_empty());
    n.queue_vectors().filter(on).count()
}

/// Queues per CPU if the queues are spread evenly over the CPUs of the device's node.
fn fair_share(s: &Snapshot, n: &Nic) -> usize {
    let t = &s.topology;
    let usable = t.online.difference(&t.isolated_all());
    let node = n.node.known().and_then(|k| t.nodes.known()?.get(k)).map(|k| k.cpus.intersection(&usable));
    let cpus = node.filter(|c| !c.is_empty()).unwrap_or(usable);
    let queues = n.rx_queues.len().max(n.tx_queues.len());
    queues.div_ceil(CpuSet::len(&cpus).max(1))
}

/// `Needs attention: ...`, `Could be better: ...` or `Interrupts of 3 interfaces: ...`. `problem`: what needs the user, if
/// anything does.
pub(super) fn line(problem: Option<&str>, worst: Option<&Worst>, s: &Snapshot, style: &Style) -> String {
    let (tint, text) = match (problem, worst) {
        (Some(p), _) => (Tint::Red, format!("Needs attention: {p}")),
        (None, Some(w)) => {
            let name = w.nic.name();
            let what = match no_answer(w.nic) {
                Some(why) => format!("{name}: {why}"),
                None => format!("{name} has {}", w.what),
            };
            let more = if w.others > 0 { format!("; {}", plural(w.others, "more interface")) } else { String::new() };
            (Tint::Yellow, format!("Could be better: {what}{more}"))
        }
        (None, None) => match s.nics.iter().filter(|n| is_listed(n) && n.has_own_queues()).count() {
            0 => return String::new(),
            n => {
                let text = "none on a remote or isolated CPU; ringwise check looks at the rest";
                (Tint::Bold, format!("Interrupts of {}: {text}", plural(n, "interface")))
            }
        },
    };
    format!("{}\n", style.paint(tint, hang("", &text, style.width).trim_end()))
}

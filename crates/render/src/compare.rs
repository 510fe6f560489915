//! Compares several devices: the CPU of each queue, and all differences.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{CpuSet, Nic, NodeId, Snapshot};

use super::steering;
use ringwise_text::Style;
use ringwise_text::{hang, link, numbers, vector_label, word};

fn queues(n: &Nic) -> String {
    match n.queues_unread() {
        Some(_) => "unknown".into(),
        None => format!("{}/{}", n.rx_queues.len(), n.tx_queues.len()),
    }
}

pub(crate) fn render(s: &Snapshot, nics: &[&Nic], style: &Style) -> String {
    let names: Vec<&str> = nics.iter().map(|n| n.name()).collect();
    let mut out = format!("Compared: {}\n\n", names.join(" "));
    out.push_str(&by_cpu(nics));
    out.push('\n');
    let facts: Vec<(&str, Vec<String>)> = vec![
        ("driver", each(nics, |n| word(&n.driver, String::clone))),
        ("node", each(nics, |n| word(&n.node, |k: &NodeId| k.to_string()))),
        ("link", each(nics, link)),
        ("queues", each(nics, queues)),
        ("queue on CPU", each(nics, layout)),
        ("RSS", each(nics, |n| steering::rss(&n.rss))),
        ("RPS", each(nics, |n| steering::rps(n, style))),
        ("RFS", each(nics, |n| steering::rfs(n, &s.host))),
        ("XPS", each(nics, |n| steering::xps(n, style))),
        ("moderation", each(nics, |n| steering::moderation(&n.coalesce))),
        ("rings", each(nics, steering::rings)),
        ("pause", each(nics, steering::pause)),
    ];
    let (same, differ): (Vec<_>, Vec<_>) = facts.into_iter().partition(|(_, v)| v.iter().all(|x| *x == v[0]));
    if !same.is_empty() {
        let list: Vec<&str> = same.iter().map(|(k, _)| *k).collect();
        out.push_str(&hang("same     ", &list.join(", "), style.width));
    }
    if differ.is_empty() {
        out.push_str("differs  nothing\n");
    }
    for (name, values) in differ {
        out.push_str(&format!("differs  {name}\n"));
        let w = names.iter().map(|n| n.len()).max().unwrap_or(0);
        for (n, v) in names.iter().zip(values) {
            out.push_str(&hang(&format!("         {n:w$}  "), &v, style.width));
        }
    }
    out
}

fn each(nics: &[&Nic], f: impl Fn(&Nic) -> String) -> Vec<String> {
    nics.iter().map(|n| f(n)).collect()
}

/// The placement of queues as text, `queue on CPU` in queue order, to find devices with the same placement.
fn layout(n: &Nic) -> String {
    let parts: Vec<String> = n
        .queue_vectors()
        .map(|v| {
            format!(
                "{}:{}",
                vector_label(v),
                v.effective.known().filter(|e| !e.is_empty()).map_or("unknown".into(), CpuSet::to_string)
            )
        })
        .collect();
    if parts.is_empty() { "unknown".into() } else { parts.join(" ") }
}

fn by_cpu(nics: &[&Nic]) -> String {
    let mut cpus: BTreeSet<u32> = BTreeSet::new();
    let mut at: Vec<BTreeMap<u32, Vec<u32>>> = Vec::new();
    for n in nics {
        let mut m: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for v in n.queue_vectors() {
            let queues = if v.rx().is_empty() { v.tx() } else { v.rx() };
            for c in v.effective.known().into_iter().flat_map(CpuSet::iter) {
                m.entry(c.0).or_default().extend(queues);
                cpus.insert(c.0);
            }
        }
        at.push(m);
    }
    let mut rows = vec![
        [vec!["CPU".to_string()], nics.iter().map(|n| n.name().to_string()).collect(), vec!["ALL".into()]].concat(),
    ];
    for c in cpus {
        let cells: Vec<String> = at
            .iter()
            .map(|m| m.get(&c).map_or("-".into(), |q| format!("queue {}", numbers(q.iter().copied()))))
            .collect();
        let total: usize = at.iter().map(|m| m.get(&c).map_or(0, Vec::len)).sum();
        rows.push([vec![c.to_string()], cells, vec![total.to_string()]].concat());
    }
    if rows.len() == 1 {
        return "The CPU of no queue is known.\n".into();
    }
    super::table::plain(&rows, &[0, rows[0].len() - 1])
}

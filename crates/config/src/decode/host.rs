//! `[host]`

use ringwise_model::{CpuSet, FarNode, Goal, Knob, Smt};

use super::{Ctx, Keys, list, wish};
use crate::check;
use crate::value::HostPart;
use crate::words;

pub(crate) fn part(k: Keys<'_, '_>, cx: &mut Ctx<'_>) -> HostPart {
    let cpus = |name| k.get(name).and_then(|v| check::cpus_of(v.get_ref()).ok());
    let mut h = HostPart {
        goal: k.text("goal").and_then(|g| g.parse::<Goal>().ok()),
        interfaces: list(k.get("interfaces")).filter_map(|v| v.get_ref().as_str().map(str::to_string)).collect(),
        cpus: cpus("cpus"),
        reserve: cpus("reserve"),
        exclude_cpus: cpus("exclude_cpus"),
        queues: k.u32("queues"),
        smt: k.text("smt").and_then(|s| match s.as_str() {
            "one-per-core" => Some(Smt::OnePerCore),
            "all" => Some(Smt::All),
            _ => None,
        }),
        far_node: k.text("far_node").and_then(|s| match s.as_str() {
            "never" => Some(FarNode::Never),
            "last" => Some(FarNode::Last),
            "ok" => Some(FarNode::Ok),
            _ => None,
        }),
        allow_disruption: k.bool("allow_disruption"),
        pair_as_article: k.bool("pair_as_article"),
        latency_queues: k.u32("latency_queues"),
        strict: k.bool("strict"),
        wishes: Vec::new(),
    };
    if let (Some(entries), Some(at)) = (k.u32("rfs_entries"), k.at("rfs_entries")) {
        h.wishes.push(wish(Knob::RfsEntries { entries }, &at, cx));
    }
    for (name, at, v) in k.free("sysctl") {
        let value = v.get_ref().as_str().map(str::to_string).or_else(|| check::int(v.get_ref()).map(|n| n.to_string()));
        let Some(value) = value else { continue };
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
        let inside = !name.split(['.', '/']).any(str::is_empty);
        if !plain || !inside || !name.contains(['.', '/']) {
            cx.fault(at, format!("\"{name}\" is no sysctl"), "as \"net.core.netdev_budget\", in quotes");
            continue;
        }
        if value.is_empty() || value.chars().any(char::is_control) {
            cx.fault(v.span(), format!("\"{name}\" cannot be set to this text"), "the words of one line");
            continue;
        }
        let dotted = name.replace('/', ".");
        if h.wishes.iter().any(|w| matches!(&w.knob, Knob::Sysctl { name, .. } if name.replace('/', ".") == dotted)) {
            cx.fault(at, format!("\"{name}\" is said twice"), "one of them");
            continue;
        }
        h.wishes.push(wish(Knob::Sysctl { name: name.to_string(), value }, &at, cx));
    }
    let mut seen = CpuSet::new();
    for (name, at, v) in k.free("cpu_latency") {
        let value = v.get_ref().as_str().map(str::to_string).or_else(|| check::int(v.get_ref()).map(|n| n.to_string()));
        if let (Ok(cpus), Some(value)) = (words::cpus(name), value) {
            let both = cpus.intersection(&seen);
            if !both.is_empty() {
                cx.fault(at, format!("cpu_latency of CPUs {both} is said twice"), "one of them");
                continue;
            }
            seen = seen.union(&cpus);
            let cpus = cpus.iter().collect();
            h.wishes.push(wish(Knob::CpuLatency { cpus, value }, &at, cx));
        }
    }
    contradictions(&h, k, cx);
    h
}

fn contradictions(h: &HostPart, k: Keys<'_, '_>, cx: &mut Ctx<'_>) {
    let empty = CpuSet::new();
    let free = h.reserve.as_ref().unwrap_or(&empty).union(h.exclude_cpus.as_ref().unwrap_or(&empty));
    if let (Some(cpus), Some(at)) = (&h.cpus, k.at("cpus"))
        && cpus.is_subset(&free)
    {
        cx.fault(at, format!("all of cpus {cpus} are kept free by reserve or exclude_cpus"), "CPUs that are not");
    }
    let named = h.wishes.iter().any(|w| matches!(&w.knob, Knob::Sysctl { name, .. } if is_rfs(name)));
    let entries = h.wishes.iter().any(|w| matches!(w.knob, Knob::RfsEntries { .. }));
    if let Some(at) = k.at("rfs_entries").filter(|_| named && entries) {
        cx.fault(at, "the flow table's size is said twice: here and in sysctl", "one of them");
    }
    if let (Some(true), Some(goal), Some(at)) = (h.pair_as_article, h.goal, k.at("pair_as_article"))
        && !matches!(goal, Goal::Balanced | Goal::Mixed)
    {
        cx.fault(
            at,
            format!("pair_as_article lays queues as an article has them, goal {goal} otherwise"),
            "one of them",
        );
    }
}

pub(crate) fn is_rfs(name: &str) -> bool {
    name.replace('/', ".") == "net.core.rps_sock_flow_entries"
}

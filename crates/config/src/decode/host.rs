//! `[host]`

use std::ops::Range;

use ringwise_kfmt::sysctl;
use ringwise_model::{CpuSet, FarNode, Goal, Knob, Smt};

use super::{DecodeContext, TableKeys, list, wish};
use crate::check;
use crate::value::HostPart;
use crate::words;

pub(crate) fn part(k: TableKeys<'_, '_>, cx: &mut DecodeContext<'_>) -> HostPart {
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
        act_on_load: list(k.get("act_on_load")).filter_map(|v| v.get_ref().as_str().map(str::to_string)).collect(),
        wishes: Vec::new(),
    };
    if let (Some(entries), Some(at)) = (k.u32("rfs_entries"), k.at("rfs_entries")) {
        h.wishes.push(wish(Knob::RfsEntries { entries }, &at, cx));
    }
    let mut seen: Vec<(String, Range<usize>)> = Vec::new();
    for (name, at, v) in k.free("sysctl") {
        let value = v.get_ref().as_str().map(str::to_string).or_else(|| check::int(v.get_ref()).map(|n| n.to_string()));
        let Some(value) = value else { continue };
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'));
        let inside = !name.split(['.', '/']).any(str::is_empty);
        if !plain || !inside || !name.contains(['.', '/']) {
            cx.fault(
                at,
                format!("\"{name}\" is not a sysctl name"),
                "a name such as \"net.core.netdev_budget\", in quotes",
            );
            continue;
        }
        let dotted = name.replace('/', ".");
        let Some(takes) = sysctl::kind_of(&dotted) else {
            unknown(&dotted, &value, at, k, cx);
            continue;
        };
        if !takes.good(&value) {
            let plain = !value.is_empty() && !value.chars().any(char::is_control);
            let found = if plain { value.as_str() } else { "this text" };
            cx.fault(v.span(), format!("{name} cannot be set to {found}"), takes.right());
            continue;
        }
        if let Some((_, first)) = seen.iter().find(|(n, _)| *n == dotted) {
            cx.fault_with(at, vec![first.clone()], format!("\"{name}\" is set twice"), "only one of them");
            continue;
        }
        seen.push((dotted.clone(), at.clone()));
        h.wishes.push(wish(Knob::Sysctl { name: dotted, value }, &at, cx));
    }
    let mut seen: Vec<(CpuSet, Range<usize>)> = Vec::new();
    for (name, at, v) in k.free("cpu_latency") {
        let value = v.get_ref().as_str().map(str::to_string).or_else(|| check::int(v.get_ref()).map(|n| n.to_string()));
        if let (Ok(cpus), Some(value)) = (words::cpus(name), value) {
            if let Some((both, first)) =
                seen.iter().map(|(s, first)| (cpus.intersection(s), first)).find(|(both, _)| !both.is_empty())
            {
                let found = format!("cpu_latency of CPUs {both} is set twice");
                cx.fault_with(at, vec![first.clone()], found, "only one of them");
                continue;
            }
            seen.push((cpus.clone(), at.clone()));
            let cpus = cpus.iter().collect();
            h.wishes.push(wish(Knob::CpuLatency { cpus, value }, &at, cx));
        }
    }
    h
}

/// Reports a name that ringwise does not set.
fn unknown(name: &str, value: &str, at: Range<usize>, k: TableKeys<'_, '_>, cx: &mut DecodeContext<'_>) {
    if name == sysctl::RPS_SOCK_FLOW_ENTRIES {
        return match k.at("rfs_entries") {
            Some(key) => {
                let found = "the flow table's size is set twice: in rfs_entries and in sysctl";
                cx.fault_with(at, vec![key], found, "only rfs_entries");
            }
            None => cx.fault(at, format!("{name} has its own key"), format!("rfs_entries = {value}")),
        };
    }
    let known = || sysctl::ALL.iter().map(|(n, _)| *n);
    let right = format!("one of {}", known().collect::<Vec<_>>().join(", "));
    cx.fault(at, format!("ringwise does not set {name}"), right);
}

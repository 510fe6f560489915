//! A configuration as text: `parse(print(x))` is `x`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ringwise_model::{CpuSet, FarNode, Flow, GroupQueues, GroupWish, Knob, NapiValues, Policy, Smt, Table};

use crate::host_group::CountRange;
use crate::set::quote;
use crate::spec::LONGEST;
use crate::value::{Config, HostGroup, HostPart, InterfaceEntry};
use crate::words::{flow_text, list_text, rule_text, table_text};

/// Prints the configuration as a file.
pub fn print(c: &Config) -> String {
    let mut out = String::from("version = 1\n");
    host(&c.host, "", &mut out);
    for p in &c.policies {
        policy(p, &mut out);
    }
    for e in &c.entries {
        entry(e, "", &mut out);
    }
    for g in &c.host_groups {
        host_group(g, &mut out);
    }
    out
}

fn host_group(g: &HostGroup, out: &mut String) {
    let below = format!("host_group.{}.", g.name);
    *out += &format!("\n[host_group.{}]\n", g.name);
    let list = |key: &str, all: &[String]| {
        let texts: Vec<String> = all.iter().map(|t| quote(t)).collect();
        (!texts.is_empty()).then(|| format!("{key} = [{}]", texts.join(", ")))
    };
    let count = |key: &str, range: Option<CountRange>| {
        let range = range?;
        let plain = range.least == range.most;
        Some(if plain { format!("{key} = {range}") } else { format!("{key} = {}", quote(&range.to_string())) })
    };
    let m = &g.matcher;
    let parts = [
        list("name", &m.names),
        list("driver", &m.drivers),
        count("cpu_count", m.cpu_count),
        count("node_count", m.node_count),
    ];
    inline(out, "match", &parts.into_iter().flatten().collect::<Vec<_>>());
    host(&g.host, &below, out);
    g.entries.iter().for_each(|e| entry(e, &below, out));
}

/// The settings of an interface, without its match. Flow rules and groups have tables of their own.
pub fn print_knobs(e: &InterfaceEntry) -> String {
    let mut out = String::new();
    knobs(e, &mut out);
    out
}

/// One `[[interface]]`.
pub fn print_entry(e: &InterfaceEntry) -> String {
    let mut out = String::new();
    entry(e, "", &mut out);
    out
}

fn line(out: &mut String, key: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "{key} = {value}");
}

/// The keys of `[host]`, one in each line, without the heading.
pub fn print_host_keys(h: &HostPart) -> String {
    let mut out = String::new();
    host_keys(h, &mut out);
    out
}

/// `below`: the table that contains this one, with a dot at its end; empty: the top level.
fn host(h: &HostPart, below: &str, out: &mut String) {
    if *h == HostPart::default() {
        return;
    }
    *out += &format!("\n[{below}host]\n");
    host_keys(h, out);
}

fn host_keys(h: &HostPart, out: &mut String) {
    let list = |c: &CpuSet| quote(&c.to_string());
    if let Some(g) = h.goal {
        line(out, "goal", quote(g.name()));
    }
    for (key, names) in [("interfaces", &h.interfaces), ("act_on_load", &h.act_on_load)] {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|n| quote(n)).collect();
            line(out, key, format!("[{}]", names.join(", ")));
        }
    }
    for (key, cpus) in [("cpus", &h.cpus), ("reserve", &h.reserve), ("exclude_cpus", &h.exclude_cpus)] {
        if let Some(c) = cpus {
            line(out, key, list(c));
        }
    }
    if let Some(n) = h.queues {
        line(out, "queues", n);
    }
    if let Some(s) = h.smt {
        line(out, "smt", quote(if s == Smt::All { "all" } else { "one-per-core" }));
    }
    if let Some(f) = h.far_node {
        let word = match f {
            FarNode::Never => "never",
            FarNode::Last => "last",
            FarNode::Ok => "ok",
        };
        line(out, "far_node", quote(word));
    }
    if let Some(n) = h.latency_queues {
        line(out, "latency_queues", n);
    }
    let switches =
        [("allow_disruption", h.allow_disruption), ("pair_as_article", h.pair_as_article), ("strict", h.strict)];
    for (key, on) in switches {
        if let Some(on) = on {
            line(out, key, on);
        }
    }
    let (mut sysctl, mut latency) = (Vec::new(), Vec::new());
    for w in &h.wishes {
        match &w.knob {
            Knob::RfsEntries { entries } => line(out, "rfs_entries", entries),
            Knob::Sysctl { name, value } => sysctl.push(format!("{} = {}", quote(name), quote(value))),
            Knob::CpuLatency { cpus, value } => {
                let cpus: CpuSet = cpus.iter().copied().collect();
                let value = if value.parse::<u32>().is_ok() { value.clone() } else { quote(value) };
                latency.push(format!("{} = {value}", quote(&cpus.to_string())));
            }
            _ => {}
        }
    }
    inline(out, "sysctl", &sysctl);
    inline(out, "cpu_latency", &latency);
}

/// `key = { a = 1, b = 2 }`, or nothing.
fn inline(out: &mut String, key: &str, parts: &[String]) {
    if !parts.is_empty() {
        line(out, key, table(parts));
    }
}

fn table(parts: &[String]) -> String {
    format!("{{ {} }}", parts.join(", "))
}

fn policy(p: &Policy, out: &mut String) {
    *out += "\n[[policy]]\n";
    line(out, "name", quote(&p.name));
    inline(out, "coalesce", &parameters(&p.params));
    inline(out, "napi", &napi(&p.napi));
    if !p.when.is_empty() {
        line(out, "when", quote(&p.when));
    }
}

/// The steps of a profile form one list; steps without values are printed as empty tables.
fn parameters(all: &BTreeMap<String, u32>) -> Vec<String> {
    let mut out: Vec<String> = all.iter().filter(|(k, _)| !k.contains('.')).map(|(k, v)| parameter(k, *v)).collect();
    for profile in ["rx-profile", "tx-profile"] {
        let step = |i: usize| -> Vec<String> {
            let fields = crate::spec::PROFILE_STEP.keys.iter();
            let of = |f: &str| all.get(&format!("{profile}.{i}.{f}"));
            fields.filter_map(|f| Some(format!("{} = {}", f.name, of(f.name)?))).collect()
        };
        let steps: Vec<Vec<String>> = (0..crate::spec::PROFILE_STEPS).map(step).collect();
        let Some(last) = steps.iter().rposition(|s| !s.is_empty()) else { continue };
        let steps: Vec<String> =
            steps[..=last].iter().map(|s| if s.is_empty() { "{}".into() } else { table(s) }).collect();
        out.push(format!("{profile} = [{}]", steps.join(", ")));
    }
    out
}

fn parameter(name: &str, value: u32) -> String {
    match name.starts_with("use-") && value < 2 {
        true => format!("{name} = {}", value == 1),
        false => format!("{name} = {value}"),
    }
}

fn napi(v: &NapiValues) -> Vec<String> {
    let mut out = Vec::new();
    let mut add = |k: &str, v: Option<u64>| out.extend(v.map(|v| format!("{k} = {v}")));
    add("defer_hard_irqs", v.defer_hard_irqs.map(u64::from));
    add("gro_flush_timeout_ns", v.gro_flush_timeout_ns);
    add("irq_suspend_timeout_ns", v.irq_suspend_timeout_ns);
    add("threaded", v.threaded.map(u64::from));
    out
}

fn entry(e: &InterfaceEntry, below: &str, out: &mut String) {
    *out += &format!("\n[[{below}interface]]\n");
    let m = &e.matcher;
    let parts = [("name", &m.name), ("driver", &m.driver), ("bus", &m.bus), ("mac", &m.mac), ("label", &m.label)];
    let parts: Vec<String> = parts.iter().filter_map(|(k, v)| Some(format!("{k} = {}", quote(v.as_ref()?)))).collect();
    line(out, "match", table(&parts));
    if let Some(g) = e.goal {
        line(out, "goal", quote(g.name()));
    }
    knobs(e, out);
    for w in &e.wishes {
        if let Knob::FlowRule { location, rule } = &w.knob {
            *out += &format!("\n[[{below}interface.rule]]\n");
            line(out, "flow", quote(&rule_text(rule)));
            if let Some(l) = location {
                line(out, "location", l);
            }
        }
    }
    e.groups.iter().for_each(|g| group(g, below, out));
}

fn rss_table(t: &Table) -> String {
    match t {
        Table::Explicit(entries) => format!("[{}]", entries.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        words => quote(&table_text(words)),
    }
}

fn with(queues: &Option<Vec<u32>>, mut parts: Vec<String>) -> String {
    if let Some(q) = queues {
        parts.insert(0, format!("queues = {}", quote(&list_text(q))));
    }
    table(&parts)
}

/// Knobs for all queues or for some: `all` is the value alone, the others go into a table.
#[derive(Default)]
struct ByQueue {
    all: Option<String>,
    some: Vec<String>,
}

impl ByQueue {
    fn add(&mut self, queues: &Option<Vec<u32>>, value: String) {
        match queues {
            None => self.all = Some(value),
            Some(q) => self.some.push(format!("{} = {value}", quote(&list_text(q)))),
        }
    }

    fn print(&self, key: &str, out: &mut String) {
        match &self.all {
            Some(v) => line(out, key, v),
            None => inline(out, key, &self.some),
        }
    }
}

fn knobs(e: &InterfaceEntry, out: &mut String) {
    let (mut features, mut rss, mut contexts, mut fields) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut coalesce, mut napis) = (Vec::new(), Vec::new());
    let mut rings: Vec<String> = Vec::new();
    let mut by: [(&str, ByQueue); 5] =
        ["irq_cpus", "xps_cpus", "xps_rxqs", "rps_cpus", "rps_flow_cnt"].map(|k| (k, ByQueue::default()));
    let switch = |k: &str, v: &Option<bool>| v.map(|v| format!("{k} = {v}"));
    let number = |k: &str, v: &Option<u32>| v.map(|v| format!("{k} = {v}"));
    for w in &e.wishes {
        match &w.knob {
            Knob::Feature { name, on } => features.push(format!("{} = {on}", quote(name))),
            Knob::Pause { autoneg, rx, tx } => {
                let parts = [switch("autoneg", autoneg), switch("rx", rx), switch("tx", tx)];
                inline(out, "pause", &parts.into_iter().flatten().collect::<Vec<_>>());
            }
            Knob::Channels { rx: None, tx: None, combined: Some(n) } if *n > 0 => line(out, "channels", n),
            Knob::Channels { rx, tx, combined } => {
                let parts = [number("combined", combined), number("rx", rx), number("tx", tx)];
                inline(out, "channels", &parts.into_iter().flatten().collect::<Vec<_>>());
            }
            Knob::Rings { values } => {
                rings.extend(values.iter().map(|(part, n)| format!("{} = {}", part.key, part.toml(n))));
            }
            Knob::LongestRings { rx, tx } => {
                let ends = [("rx", *rx), ("tx", *tx)].into_iter().filter(|(_, longest)| *longest);
                rings.extend(ends.map(|(key, _)| format!("{key} = {}", quote(LONGEST))));
            }
            Knob::Coalesce { queues, params } => {
                coalesce.push(with(queues, parameters(params)));
            }
            Knob::RssTable { context: None, table } => rss.push(format!("table = {}", rss_table(table))),
            Knob::RssTable { context: Some(c), table } => contexts.push(format!("{c} = {}", rss_table(table))),
            Knob::RssHash { function, key, symmetric } => {
                for (k, v) in [("function", function), ("key", key), ("symmetric", symmetric)] {
                    rss.extend(v.as_ref().map(|v| format!("{k} = {}", quote(v))));
                }
            }
            Knob::RssFields { flow, fields: f } => fields.push(format!("{} = {}", quote(flow), quote(f))),
            Knob::Napi { queues, values } => napis.push(with(queues, napi(values))),
            Knob::IrqCpus { queues, cpus } => by[0].1.add(queues, quote(&cpus.to_string())),
            Knob::XpsCpus { queues, cpus } => by[1].1.add(queues, quote(&cpus.to_string())),
            Knob::XpsRxqs { queues, rxqs } => by[2].1.add(queues, quote(&list_text(rxqs))),
            Knob::RpsCpus { queues, cpus } => by[3].1.add(queues, quote(&cpus.to_string())),
            Knob::RpsFlowCnt { queues, entries } => by[4].1.add(queues, entries.to_string()),
            Knob::FlowRule { .. } | Knob::RfsEntries { .. } | Knob::Sysctl { .. } | Knob::CpuLatency { .. } => {}
        }
    }
    inline(out, "rings", &rings);
    inline(out, "features", &features);
    several(out, "coalesce", &coalesce);
    rss.extend((!contexts.is_empty()).then(|| format!("context = {}", table(&contexts))));
    rss.extend((!fields.is_empty()).then(|| format!("fields = {}", table(&fields))));
    inline(out, "rss", &rss);
    several(out, "napi", &napis);
    by.iter().for_each(|(key, b)| b.print(key, out));
}

/// One table, or a list of them.
fn several(out: &mut String, key: &str, all: &[String]) {
    match all {
        [] => {}
        [one] => line(out, key, one),
        all => line(out, key, format!("[\n    {},\n]", all.join(",\n    "))),
    }
}

fn group(g: &GroupWish, below: &str, out: &mut String) {
    *out += &format!("\n[[{below}interface.group]]\n");
    line(out, "name", quote(&g.name));
    line(out, "policy", quote(&g.policy));
    match &g.queues {
        GroupQueues::Auto => line(out, "queues", quote("auto")),
        GroupQueues::Count(n) => line(out, "queues", n),
        GroupQueues::These(q) => line(out, "queues", quote(&list_text(q))),
    }
    if let Some(c) = &g.cpus {
        line(out, "cpus", quote(&c.to_string()));
    }
    if let Some(w) = g.weight {
        line(out, "weight", w);
    }
    if g.context {
        line(out, "context", true);
    }
    let flows = g.flows.iter().map(|f| match f {
        Flow::Match { flow, fields } => quote(&flow_text(flow, fields)),
        Flow::Program(p) => format!("{{ program = {} }}", quote(p)),
        Flow::Unit(u) => format!("{{ unit = {} }}", quote(u)),
    });
    let flows: Vec<String> = flows.collect();
    if !flows.is_empty() {
        line(out, "flows", format!("[{}]", flows.join(", ")));
    }
}

//! `[host_group.NAME]`

use std::collections::BTreeMap;
use std::ops::Range;

use super::{DecodeContext, TableKeys, host, interface, list};
use crate::host_group::{CountRange, HostMatcher};
use crate::spec;
use crate::value::{Config, HostGroup, HostPart};

/// A group, with its tables for the search of contradictions.
pub(crate) struct DecodedGroup<'a, 'i> {
    pub group: HostGroup,
    pub host: Option<TableKeys<'a, 'i>>,
    pub interfaces: Vec<TableKeys<'a, 'i>>,
}

/// `at`: the name of the group.
pub(crate) fn decode<'a, 'i>(
    name: &str,
    at: Range<usize>,
    k: TableKeys<'a, 'i>,
    config: &Config,
    cx: &mut DecodeContext<'_>,
) -> DecodedGroup<'a, 'i> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(plain) {
        cx.fault(at.clone(), "not a name of a host group", "letters, digits, - and _");
    }
    let matcher = match (k.table("match", &spec::HOST_MATCH), k.at("match")) {
        (Some(m), Some(at)) => matcher(m, at, cx),
        _ => HostMatcher::default(),
    };
    let host_table = k.table("host", &spec::HOST);
    let mut own = Config { policies: config.policies.clone(), ..Config::default() };
    let mut host_keys = BTreeMap::new();
    if let Some(h) = host_table {
        own.host = host::part(h, cx);
        host_keys.extend(h.iter().filter_map(|(key, ..)| Some((key.to_string(), cx.place(&h.at(key)?)))));
    }
    let mut interfaces = Vec::new();
    for v in list(k.get("interface")) {
        if let Some(t) = v.get_ref().as_table() {
            let k = TableKeys::new(t, &spec::INTERFACE);
            let entry = interface::entry(k, v.span(), &own, &interfaces, cx);
            own.entries.push(entry);
            interfaces.push(k);
        }
    }
    if own.host == HostPart::default() && own.entries.is_empty() {
        let right = format!("keys in [host_group.{name}.host], or a [[host_group.{name}.interface]]");
        cx.fault(at.clone(), format!("host group {name} sets no value"), right);
    }
    let by = cx.place(&k.at("match").unwrap_or(at));
    let group = HostGroup { name: name.into(), matcher, host: own.host, entries: own.entries, by, host_keys };
    DecodedGroup { group, host: host_table, interfaces }
}

/// One string, or a list of them.
fn texts(k: TableKeys<'_, '_>, key: &str) -> Vec<String> {
    match k.text(key) {
        Some(one) => vec![one],
        None => list(k.get(key)).filter_map(|v| v.get_ref().as_str().map(str::to_string)).collect(),
    }
}

fn matcher(k: TableKeys<'_, '_>, at: Range<usize>, cx: &mut DecodeContext<'_>) -> HostMatcher {
    let count = |key| {
        let text = k.text(key).or_else(|| k.u32(key).map(|n| n.to_string()));
        text.and_then(|t| CountRange::parse(&t))
    };
    let m = HostMatcher {
        names: texts(k, "name"),
        drivers: texts(k, "driver"),
        cpu_count: count("cpu_count"),
        node_count: count("node_count"),
    };
    let keys = ["name", "driver", "cpu_count", "node_count"];
    if keys.iter().all(|key| k.get(key).is_none()) {
        cx.fault(at, "match has no criteria, so every host would match", "name = \"*\", or the top level of the file");
        return m;
    }
    for (key, all) in [("name", &m.names), ("driver", &m.drivers)] {
        let Some(at) = k.at(key) else { continue };
        if all.is_empty() || all.iter().any(String::is_empty) {
            cx.fault(at.clone(), format!("an empty {key} matches no host"), format!("at least one {key}"));
        }
        if let Some(p) = all.iter().find(|p| p.contains(['[', ']', '{', '}'])) {
            cx.fault(at, format!("\"{p}\" has brackets, which no {key} has"), "a pattern with * and ? only");
        }
    }
    for p in m.drivers.iter().filter(|d| crate::words::is_glob(d)) {
        let at = k.at("driver").unwrap_or_default();
        cx.fault(at, format!("driver \"{p}\" is a pattern"), "the names of drivers");
    }
    m
}

//! `[[interface]]`: its match, its knobs.

use std::ops::Range;

use ringwise_model::Goal;

use super::{DecodeContext, TableKeys, group, knobs};
use crate::spec;
use crate::value::{Config, InterfaceEntry, Matcher};

/// `before`: the tables of the earlier entries.
pub(crate) fn entry(
    k: TableKeys<'_, '_>,
    at: Range<usize>,
    config: &Config,
    before: &[TableKeys<'_, '_>],
    cx: &mut DecodeContext<'_>,
) -> InterfaceEntry {
    let matcher = match (k.table("match", &spec::MATCH), k.at("match")) {
        (Some(m), Some(at)) => matcher(m, at, cx),
        _ => Matcher::default(),
    };
    let mut wishes = knobs::wishes(k, cx);
    knobs::rules(k, &mut wishes, cx);
    let groups = group::groups(k, config, cx);
    let e = InterfaceEntry {
        matcher,
        goal: k.text("goal").and_then(|g| g.parse::<Goal>().ok()),
        wishes,
        groups,
        by: cx.place(&k.at("match").unwrap_or(at)),
    };
    if let Some(at) = k.at("match")
        && let Some(i) = config.entries.iter().position(|o| o.matcher == e.matcher && o.matcher != Matcher::default())
    {
        let with = before.get(i).and_then(|k| k.at("match")).into_iter().collect();
        cx.fault_with(at, with, format!("two entries for {}", e.matcher), "one entry with the keys of both");
    }
    e
}

fn matcher(k: TableKeys<'_, '_>, at: Range<usize>, cx: &mut DecodeContext<'_>) -> Matcher {
    let m = Matcher {
        name: k.text("name"),
        driver: k.text("driver"),
        bus: k.text("bus").map(|b| b.to_lowercase()),
        mac: k.text("mac").map(|m| m.to_lowercase()),
        label: k.text("label"),
    };
    let parts = [&m.name, &m.driver, &m.bus, &m.mac, &m.label];
    if parts.iter().all(|p| p.is_none()) {
        cx.fault(at, "match has no criteria, so every interface would match", "name = \"*\" for every interface");
    } else if parts.iter().any(|p| p.as_ref().is_some_and(String::is_empty)) {
        cx.fault(at, "an empty string in match matches no interface", "the name, driver, address or label");
    }
    let long = m.name.as_ref().is_some_and(|n| !crate::words::is_glob(n) && n.len() > 15);
    if let (true, Some(at)) = (long, k.at("name")) {
        cx.fault(at, "an interface name has at most 15 characters", "the key label, for an alternative name");
    }
    let short = m.bus.as_ref().is_some_and(|b| b.len() == 7 && b.matches(':').count() == 1 && b.contains('.'));
    if let (true, Some(at), Some(bus)) = (short, k.at("bus"), &m.bus) {
        cx.fault(at, format!("\"{bus}\" lacks the PCI domain"), format!("the form of the kernel: \"0000:{bus}\""));
    }
    m
}

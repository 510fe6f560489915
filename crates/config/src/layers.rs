//! Host groups that apply to the same host: settings that two of them configure differently.
//!
//! Groups have no order, so such a setting has no right value. Two settings differ if the result of merging them depends
//! on which of them is merged last.

use std::collections::BTreeMap;

use ringwise_model::{ConfiguredBy, GroupWish, Knob, Nic, Wish};

use crate::contradict::overlap;
use crate::matches::matching;
use crate::merge;
use crate::value::{HostGroup, HostPart, InterfaceEntry};

/// Adds a text to `wrong` for each setting that two groups configure differently on this host.
pub(crate) fn conflicts(groups: &[&HostGroup], nics: &[Nic], wrong: &mut Vec<String>) {
    for (i, a) in groups.iter().enumerate() {
        for b in groups.iter().skip(i + 1) {
            // By text, with the interfaces: one entry usually matches several.
            let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for (key, at, other) in of_hosts(a, b) {
                found.entry(text(a, b, &key, &at, &other)).or_default();
            }
            for (nic, x, y) in shared(a, b, nics) {
                for (key, at, other) in of_entries(x, y) {
                    found.entry(text(a, b, &key, &at, &other)).or_default().push(nic.name());
                }
            }
            wrong.extend(found.into_iter().map(|(text, devs)| match devs.is_empty() {
                true => format!("{text}; {RIGHT}"),
                false => format!("{text} for {}; {RIGHT}", devs.join(" and ")),
            }));
        }
    }
}

const RIGHT: &str = "expected the same value, or groups that do not match the same host";

fn text(a: &HostGroup, b: &HostGroup, key: &str, at: &ConfiguredBy, other: &ConfiguredBy) -> String {
    format!("{at} (host group {}) and {other} (host group {}) set {key} differently", a.name, b.name)
}

/// The key, and where both groups set it.
type Difference = (String, ConfiguredBy, ConfiguredBy);

fn of_hosts(a: &HostGroup, b: &HostGroup) -> Vec<Difference> {
    let HostPart { goal, interfaces, cpus, reserve, exclude_cpus, queues, smt, far_node, .. } = &a.host;
    let HostPart { allow_disruption, pair_as_article, latency_queues, strict, act_on_load, wishes, .. } = &a.host;
    let o = &b.host;
    let differ = [
        ("goal", *goal != o.goal),
        ("interfaces", *interfaces != o.interfaces),
        ("cpus", *cpus != o.cpus),
        ("reserve", *reserve != o.reserve),
        ("exclude_cpus", *exclude_cpus != o.exclude_cpus),
        ("queues", *queues != o.queues),
        ("smt", *smt != o.smt),
        ("far_node", *far_node != o.far_node),
        ("allow_disruption", *allow_disruption != o.allow_disruption),
        ("pair_as_article", *pair_as_article != o.pair_as_article),
        ("latency_queues", *latency_queues != o.latency_queues),
        ("strict", *strict != o.strict),
        ("act_on_load", *act_on_load != o.act_on_load),
    ];
    // Only what both groups set has two places.
    let both = |key: &str| Some((key.to_string(), a.host_keys.get(key)?.clone(), b.host_keys.get(key)?.clone()));
    let mut out: Vec<Difference> = differ.iter().filter(|(_, is)| *is).filter_map(|(key, _)| both(key)).collect();
    out.extend(of_wishes(wishes, &o.wishes));
    out
}

/// Pairs of entries of both groups that match the same interface.
fn shared<'a>(
    a: &'a HostGroup,
    b: &'a HostGroup,
    nics: &'a [Nic],
) -> Vec<(&'a Nic, &'a InterfaceEntry, &'a InterfaceEntry)> {
    let mut out = Vec::new();
    for x in &a.entries {
        for n in matching(&x.matcher, nics) {
            let theirs = b.entries.iter().filter(|y| matching(&y.matcher, nics).iter().any(|m| m.name() == n.name()));
            out.extend(theirs.map(|y| (n, x, y)));
        }
    }
    out
}

fn of_entries(a: &InterfaceEntry, b: &InterfaceEntry) -> Vec<Difference> {
    let mut out = of_wishes(&a.wishes, &b.wishes);
    if a.goal.is_some() && b.goal.is_some() && a.goal != b.goal {
        out.push(("goal".into(), a.by.clone(), b.by.clone()));
    }
    let placeless = |g: &GroupWish| GroupWish { by: ConfiguredBy::Unknown, ..g.clone() };
    for (x, y) in a.groups.iter().flat_map(|x| b.groups.iter().map(move |y| (x, y))) {
        if x.name == y.name && placeless(x) != placeless(y) {
            out.push((format!("group \"{}\"", x.name), x.by.clone(), y.by.clone()));
        }
    }
    out
}

fn of_wishes(a: &[Wish], b: &[Wish]) -> Vec<Difference> {
    let pairs = a.iter().flat_map(|x| b.iter().map(move |y| (x, y)));
    pairs
        .filter(|(x, y)| differ(x, y))
        .map(|(x, y)| (crate::export::name(&x.knob), x.by.clone(), y.by.clone()))
        .collect()
}

fn differ(a: &Wish, b: &Wish) -> bool {
    if let (Knob::Feature { name: x, on: one }, Knob::Feature { name: y, on: other }) = (&a.knob, &b.knob) {
        return overlap(x, y) && one != other;
    }
    merged(a, b) != merged(b, a)
}

/// The settings after `over` was merged into `base`, in an order of their own.
fn merged(base: &Wish, over: &Wish) -> Vec<String> {
    let mut all = vec![base.clone()];
    merge::wish(&mut all, over);
    let mut texts: Vec<String> = all.iter().map(|w| format!("{:?}", w.knob)).collect();
    texts.sort();
    texts
}

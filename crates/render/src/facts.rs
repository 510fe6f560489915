//! Features, and facts that are only shown: private flags, firmware, PCIe link, sysctls, power saving of CPUs.

use std::collections::BTreeMap;

use ringwise_knob::features::short_name;
use ringwise_model::order::Order;
use ringwise_model::{
    Cause, CpuSet, Fact, Feature, Host, Nic, Node, Pcie, PcieLink, QueueRange, Shaper, ShaperPlace, Snapshot,
    TrafficClasses, XdpMetadata,
};

use ringwise_text::Style;
use ringwise_text::{hang, numbers, pad, set, word};

/// Features that affect where packets go and how many interrupts they cause.
const ALWAYS: &[&str] =
    &["rx-gro", "rx-lro", "rx-ntuple-filter", "rx-hashing", "tx-tcp-segmentation", "tx-generic-segmentation"];
/// More such features, shown only if they are on.
const WHERE_ON: &[&str] = &["rx-gro-hw", "rx-gro-list", "rx-udp-gro-forwarding", "tx-nocache-copy"];

/// `tso` is the name of several features. The one that every driver with TSO has is shown.
fn label(name: &str) -> &str {
    if name == "tx-tcp-segmentation" { "tso" } else { short_name(name) }
}

/// Whether the value is not in this recording, or was not read on purpose: then it gets no line. Other unknown values
/// get one.
pub(crate) fn silent<T>(f: &Fact<T>) -> bool {
    matches!(f, Fact::Unknown(u) if matches!(u.cause, Cause::NotAsked | Cause::NotRecorded))
}

/// `gro gso tso rxhash on; lro ntuple off (fixed)`. `None`: the features are not known.
pub(crate) fn features(n: &Nic) -> Option<String> {
    let all = match &n.features {
        f if silent(f) => return None,
        Fact::Known(all) if !all.is_empty() => all,
        Fact::Known(_) | Fact::Absent => return Some("none".into()),
        Fact::Unknown(u) => return Some(format!("unknown ({})", u.why)),
    };
    let named = |names: &[&'static str], keep: fn(&Feature) -> bool| -> Vec<&'static str> {
        names.iter().filter(|k| all.get(**k).is_some_and(keep)).map(|k| label(k)).collect()
    };
    let mut on = named(ALWAYS, |f| f.on);
    on.extend(named(WHERE_ON, |f| f.on));
    let off = named(ALWAYS, |f| !f.on && !f.fixed);
    let never = named(ALWAYS, |f| !f.on && f.fixed);
    let waiting: Vec<&str> = all.iter().filter(|(_, f)| f.wanted && !f.on && !f.fixed).map(|(k, _)| label(k)).collect();
    let part = |what: &str, names: Vec<&str>| (!names.is_empty()).then(|| format!("{} {what}", names.join(" ")));
    let parts =
        [part("on", on), part("off", off), part("off (fixed)", never), part("requested, not available now", waiting)];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// A link to the bus that is slower than it could be. `None`: it is not.
pub(crate) fn slow_pcie(n: &Nic) -> Option<String> {
    n.pcie.known().filter(|p| p.now != p.max && p.now.mtps.is_some()).map(pcie)
}

fn pcie(p: &Pcie) -> String {
    let one = |l: PcieLink| {
        let speed = l.mtps.map_or("unknown speed".into(), |m| format!("{}.{} GT/s", m / 1000, m % 1000 / 100));
        format!("{speed} x{}", l.lanes)
    };
    if p.now == p.max { one(p.now) } else { format!("{} of {}", one(p.now), one(p.max)) }
}

/// What XDP programs get from the device: `hash, timestamp; no VLAN tag`.
fn xdp_metadata(m: &XdpMetadata) -> String {
    let all = [("hash", m.hash), ("timestamp", m.timestamp), ("VLAN tag", m.vlan_tag)];
    let named = |has: bool| all.iter().filter(|(_, h)| *h == has).map(|(name, _)| *name).collect::<Vec<_>>();
    let (yes, no) = (named(true), named(false));
    let parts =
        [(!yes.is_empty()).then(|| yes.join(", ")), (!no.is_empty()).then(|| format!("no {}", no.join(", no ")))];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Traffic classes: `0: tx 0-3 (priority 0-2); 1: tx 4-7 (priority 3)`.
fn classes(c: &TrafficClasses) -> String {
    let one = |(class, range): (usize, &QueueRange)| match c.priorities(class) {
        none if none.is_empty() => format!("{class}: {range}"),
        of => format!("{class}: {range} (priority {})", numbers(of)),
    };
    c.queues.iter().enumerate().map(one).collect::<Vec<_>>().join("; ")
}

/// Rate limits inside the NIC. Queues with the same limits are listed together. `None`: nothing is limited.
pub(crate) fn shapers(n: &Nic) -> Option<String> {
    let mut queues: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut parts: Vec<String> = Vec::new();
    for s in n.shapers.known()?.list() {
        let limits = limits(s);
        match s.place {
            ShaperPlace::Device => parts.push(format!("all queues together {limits}")),
            ShaperPlace::Queue(q) => queues.entry(limits).or_default().push(q),
            ShaperPlace::Group(g) => parts.push(format!("scheduling group {g} {limits}")),
        }
    }
    let mut queues: Vec<(Vec<u32>, String)> = queues.into_iter().map(|(limits, list)| (list, limits)).collect();
    queues.order_by(|a, b| a.cmp(b));
    parts.extend(queues.into_iter().map(|(list, limits)| format!("tx-{} {limits}", numbers(list))));
    (!parts.is_empty()).then(|| format!("net-shaper: {}", parts.join("; ")))
}

fn limits(s: &Shaper) -> String {
    let mut out = Vec::new();
    out.extend(s.max_rate.map(|r| format!("at most {}", s.unit.text(r))));
    out.extend(s.min_rate.map(|r| format!("at least {}", s.unit.text(r))));
    out.extend(s.priority.map(|p| format!("priority {p}")));
    out.extend(s.weight.map(|w| format!("weight {w}")));
    let text = if out.is_empty() { "without a rate".to_string() } else { out.join(", ") };
    match s.parent {
        Some(ShaperPlace::Group(g)) => format!("{text} (in scheduling group {g})"),
        _ => text,
    }
}

/// With `-v`: facts about the device that are only shown, and all of its features.
pub(crate) fn device(n: &Nic, style: &Style) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    if !silent(&n.firmware) {
        rows.push(("firmware", word(&n.firmware, String::clone)));
    }
    if !silent(&n.pcie) && slow_pcie(n).is_none() {
        rows.push(("PCIe", word(&n.pcie, pcie)));
    }
    if !silent(&n.classes) && !n.classes.is_absent() {
        rows.push(("classes", word(&n.classes, classes)));
    }
    if !silent(&n.xdp_metadata) {
        rows.push(("XDP gets", word(&n.xdp_metadata, xdp_metadata)));
    }
    if let Fact::Known(all) = &n.features {
        let of = |keep: fn(&Feature) -> bool| {
            let names: Vec<&str> = all.iter().filter(|(_, f)| keep(f)).map(|(k, _)| k.as_str()).collect();
            names.join(" ")
        };
        rows.push(("on", of(|f| f.on && !f.fixed)));
        rows.push(("off", of(|f| !f.on && !f.fixed)));
        rows.push(("fixed on", of(|f| f.on && f.fixed)));
        rows.push(("fixed off", of(|f| !f.on && f.fixed)));
    }
    if let Fact::Known(flags) = &n.private_flags {
        let text: Vec<String> = flags.iter().map(|(k, on)| format!("{k} {}", if *on { "on" } else { "off" })).collect();
        rows.push(("priv flags", text.join(", ")));
    }
    block(rows, style)
}

/// With `-v`: facts about the host.
pub(crate) fn host(s: &Snapshot, style: &Style) -> String {
    let h: &Host = &s.host;
    let mut rows: Vec<(&str, String)> = Vec::new();
    let sysctls = h.sysctls.iter().filter(|(_, f)| !f.is_absent());
    let values: Vec<String> =
        sysctls.map(|(k, f)| format!("{} {}", k.trim_start_matches("net.core."), word(f, String::clone))).collect();
    rows.push(("net.core", values.join(", ")));
    rows.push(("wake-up", latency(h)));
    let nodes = s.topology.nodes.known().into_iter().flatten();
    let nodes: Vec<(String, String)> = nodes.map(|(id, n)| (format!("node {id}"), node(n))).collect();
    rows.extend(nodes.iter().map(|(name, text)| (name.as_str(), text.clone())));
    if let Some(p) = &h.power {
        let sets = |f: &Fact<BTreeMap<String, CpuSet>>| {
            let each = |m: &BTreeMap<String, CpuSet>| {
                m.iter().map(|(k, c)| format!("{k} {}", set(c))).collect::<Vec<_>>().join(", ")
            };
            if f.is_absent() { String::new() } else { word(f, each) }
        };
        rows.push(("governor", sets(&p.governor)));
        rows.push(("preference", sets(&p.preference)));
        let on = |b: &bool| if *b { "on" } else { "off" }.to_string();
        rows.push(("turbo", if p.turbo.is_absent() { String::new() } else { word(&p.turbo, on) }));
        rows.push(("PCIe ASPM", if p.aspm.is_absent() { String::new() } else { word(&p.aspm, String::clone) }));
    }
    block(rows, style)
}

/// `CPUs 0-7; 16.0 GiB; distances 10 21`.
fn node(n: &Node) -> String {
    let mut parts = vec![match n.cpus.len() {
        0 => "no CPUs".to_string(),
        1 => format!("CPU {}", n.cpus),
        _ => format!("CPUs {}", n.cpus),
    }];
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    match &n.memory {
        Fact::Known(m) => parts.push(format!("{:.1} GiB", gib(m.total_bytes))),
        Fact::Unknown(u) if !silent(&n.memory) => parts.push(format!("memory unknown ({})", u.why)),
        _ => {}
    }
    if let Fact::Known(d) = &n.distances {
        parts.push(format!("distances {}", d.values().map(u32::to_string).collect::<Vec<_>>().join(" ")));
    }
    parts.join("; ")
}

/// `node 1: 2.1 times as far as local memory`. `None`: there is one node, or the node of the device or a distance is unknown.
pub(crate) fn numa(s: &Snapshot, n: &Nic) -> Option<String> {
    let home = *n.node.known()?;
    let distances = s.topology.node(home)?.distances.known()?;
    let local = f64::from(*distances.get(&home)?);
    let mut by_ratio: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (id, distance) in distances.iter().filter(|(id, _)| **id != home) {
        by_ratio.entry(*distance).or_default().push(id.0);
    }
    let one = |(distance, ids): (&u32, &Vec<u32>)| {
        let nodes = if ids.len() == 1 { "node" } else { "nodes" };
        format!("{nodes} {}: {:.1} times", numbers(ids.iter().copied()), f64::from(*distance) / local)
    };
    let parts: Vec<String> = by_ratio.iter().map(one).collect();
    (local > 0.0 && !parts.is_empty()).then(|| format!("{} as far as local memory", parts.join(", ")))
}

/// CPUs with a limit for their wake-up latency.
fn latency(h: &Host) -> String {
    let mut by: BTreeMap<&str, CpuSet> = BTreeMap::new();
    for (cpu, f) in &h.cpu_latency {
        if let Fact::Known(v) = f {
            by.entry(v).or_default().insert(*cpu);
        }
    }
    let one = |(v, c): (&str, &CpuSet)| match v {
        "0" => format!("no limit {}", set(c)),
        "n/a" => format!("no latency allowed {}", set(c)),
        us => format!("{us} us {}", set(c)),
    };
    by.iter().map(|(v, c)| one((v, c))).collect::<Vec<_>>().join(", ")
}

fn block(rows: Vec<(&str, String)>, style: &Style) -> String {
    let rows = rows.into_iter().filter(|(_, text)| !text.is_empty() && text != "-");
    rows.map(|(name, text)| hang(&pad(name, 13), &text, style.width)).collect()
}

#[cfg(test)]
mod tests {
    use ringwise_model::{Shapers, Unread};
    use ringwise_testkit::machines;
    use ringwise_testkit::topo::CpuSpec;

    use super::*;

    #[test]
    fn classes_with_their_queues_and_priorities() {
        let range = |first, count| QueueRange { first, count };
        let of_priority = vec![0, 0, 0, 1];
        let c = TrafficClasses { of_priority, queues: vec![range(0, 4), range(4, 1), range(5, 0)] };
        assert_eq!(classes(&c), "0: tx 0-3 (priority 0-2); 1: tx 4 (priority 3); 2: no queue");
    }

    #[test]
    fn limits_are_one_line_only_where_something_is_limited() {
        let nics = vec![machines::NicSpec::new("eth1", "igb", Some(0), 4, 4)];
        let mut nic = machines::host("h", CpuSpec::flat(4, 1), nics).snapshot().nics.remove(0);
        let of = |place, max_rate, min_rate| Shaper {
            parent: Some(ShaperPlace::Device),
            min_rate,
            max_rate,
            ..Shaper::unset(place)
        };
        let mbps = |n: u64| Some(n * 1_000_000);
        let grouped =
            Shaper { parent: Some(ShaperPlace::Group(7)), weight: Some(2), ..of(ShaperPlace::Queue(3), None, None) };
        nic.shapers = Fact::Known(Shapers::Set(vec![
            of(ShaperPlace::Device, mbps(5000), None),
            of(ShaperPlace::Queue(0), mbps(100), None),
            of(ShaperPlace::Queue(1), mbps(100), None),
            of(ShaperPlace::Queue(2), mbps(250), mbps(50)),
            grouped,
            of(ShaperPlace::Group(7), mbps(10), None),
        ]));
        assert_eq!(
            shapers(&nic).unwrap(),
            "net-shaper: all queues together at most 5000 Mb/s; scheduling group 7 at most 10 Mb/s; tx-0-1 at most 100 Mb/s; \
             tx-2 at most 250 Mb/s, at least 50 Mb/s; tx-3 weight 2 (in scheduling group 7)"
        );
        let unknown = Fact::Unknown(Unread::new("net-shaper-get eth1", Some(1), "needs root"));
        for nothing in [Fact::Known(Shapers::Set(Vec::new())), Fact::Known(Shapers::NotInKernel), Fact::Absent, unknown]
        {
            nic.shapers = nothing;
            assert_eq!(shapers(&nic), None);
        }
    }

    #[test]
    fn values_for_xdp_programs_are_named_and_so_are_missing_ones() {
        let text = |hash, timestamp, vlan_tag| xdp_metadata(&XdpMetadata { hash, timestamp, vlan_tag });
        assert_eq!(text(true, true, true), "hash, timestamp, VLAN tag");
        assert_eq!(text(true, false, false), "hash; no timestamp, no VLAN tag");
        assert_eq!(text(false, false, false), "no hash, no timestamp, no VLAN tag");
    }
}

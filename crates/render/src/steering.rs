//! Settings that distribute packets, other than interrupts, as text: RSS, RPS, RFS, XPS, moderation, rings.

use std::collections::BTreeMap;

use ringwise_knob::coalesce;
use ringwise_model::order::Order;
use ringwise_model::{Coalesce, Count, CpuSet, Fact, Host, Nic, RingKind, RingPart, Rss, RssContext};

use ringwise_text::Style;
use ringwise_text::{hang, len, mask, numbers, plural, sentence, set};

/// Groups of queues with the same value, in the order of their first queue.
fn groups<T: PartialEq + Clone>(of: impl Iterator<Item = (u32, T)>) -> Vec<(Vec<u32>, T)> {
    let mut out: Vec<(Vec<u32>, T)> = Vec::new();
    for (q, v) in of {
        match out.iter_mut().find(|(_, w)| *w == v) {
            Some((qs, _)) => qs.push(q),
            None => out.push((vec![q], v)),
        }
    }
    out
}

fn cpus(c: &CpuSet, style: &Style) -> String {
    if style.raw { format!("{} ({})", set(c), mask(c)) } else { set(c) }
}

pub(crate) fn rss(f: &Fact<Rss>) -> String {
    sentence(f, "none: the device has no table", |r| {
        if r.table.is_empty() && r.fields.values().all(String::is_empty) {
            return "none: the device has no table".into();
        }
        let mut parts = vec![table(&r.table)];
        parts.push(sentence(&r.function, "hash function not reported", String::clone));
        if let Fact::Known(x) = &r.symmetric
            && x != "none"
        {
            parts.push(x.clone());
        }
        let fields = fields(&r.fields);
        if !fields.is_empty() {
            parts.push(fields);
        }
        parts.extend(contexts(&r.contexts));
        parts.join("; ")
    })
}

/// `None` if the driver has no contexts, or the recording does not contain them.
fn contexts(all: &Fact<BTreeMap<u32, RssContext>>) -> Option<String> {
    let all = match all {
        Fact::Known(all) if all.is_empty() => return None,
        Fact::Known(all) => all,
        Fact::Unknown(u) if u.errno.is_some() => return Some(format!("contexts unknown: {}", u.why)),
        _ => return None,
    };
    let each: Vec<String> = all.iter().map(|(n, c)| format!("context {n}: {}", table(&c.table))).collect();
    Some(each.join("; "))
}

/// `128 entries, 16 a queue`, or the number of entries of each queue.
pub(crate) fn table(table: &[u32]) -> String {
    if table.is_empty() {
        return "no table".into();
    }
    let mut per: BTreeMap<u32, usize> = BTreeMap::new();
    for q in table {
        *per.entry(*q).or_default() += 1;
    }
    let (min, max) = (per.values().min().copied().unwrap_or(0), per.values().max().copied().unwrap_or(0));
    let head = plural(table.len(), "entry").replace("entrys", "entries");
    let queues = numbers(per.keys().copied());
    match () {
        () if per.len() == 1 => format!("{head}, all to queue {queues}"),
        () if min == max => format!("{head}, {min} a queue (queues {queues})"),
        () if max - min == 1 => format!("{head}, {min} or {max} a queue (queues {queues})"),
        () => {
            let parts: Vec<String> = groups(per.iter().map(|(q, n)| (*q, *n)))
                .into_iter()
                .map(|(qs, n)| format!("queue {}: {n}", numbers(qs)))
                .collect();
            format!("{head}, uneven: {}", parts.join(", "))
        }
    }
}

/// The hash fields as words instead of ethtool's letters. Flow types with the same fields share a text.
fn fields(f: &BTreeMap<String, String>) -> String {
    let mut by: Vec<(String, Vec<&str>)> = Vec::new();
    for (flow, letters) in f.iter().filter(|(_, l)| !l.is_empty()) {
        match by.iter_mut().find(|(l, _)| l == letters) {
            Some((_, flows)) => flows.push(flow),
            None => by.push((letters.clone(), vec![flow])),
        }
    }
    if by.is_empty() {
        return String::new();
    }
    if let [(l, flows)] = by.as_slice()
        && flows.len() > 4
    {
        return format!("all {} flow types: {}", flows.len(), letters(l));
    }
    // The longest list is last. If it has more than four flow types, it names TCP and UDP, and counts the others.
    by.order_by_key(|(_, flows)| (flows.len() > 4, flows.len()));
    let rest = by.len() - 1;
    let parts = by.iter().enumerate().map(|(i, (l, flows))| match flows.len() {
        n if i == rest && n > 4 => format!("{}: {}", named_and_counted(flows), letters(l)),
        _ => format!("{}: {}", flows.join(","), letters(l)),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// `udp4,udp6 and 10 other flow types`.
fn named_and_counted(flows: &[&str]) -> String {
    let named: Vec<&str> = flows.iter().copied().filter(|f| ["tcp4", "tcp6", "udp4", "udp6"].contains(f)).collect();
    let others = plural(flows.len() - named.len(), "other flow type");
    if named.is_empty() { others } else { format!("{} and {others}", named.join(",")) }
}

fn letters(l: &str) -> String {
    let has = |c| l.contains(c);
    let mut words = Vec::new();
    match (has('s'), has('d')) {
        (true, true) => words.push("addresses"),
        (true, false) => words.push("source address"),
        (false, true) => words.push("destination address"),
        _ => {}
    }
    match (has('f'), has('n')) {
        (true, true) => words.push("ports"),
        (true, false) => words.push("source port"),
        (false, true) => words.push("destination port"),
        _ => {}
    }
    for (c, w) in [
        ('v', "VLAN"),
        ('t', "protocol"),
        ('m', "destination MAC"),
        ('e', "tunnel id"),
        ('l', "flow label"),
        ('r', "discard"),
    ] {
        if has(c) {
            words.push(w);
        }
    }
    match words.as_slice() {
        [] => "nothing".into(),
        ["addresses"] => "addresses only".into(),
        w => w.join(" + "),
    }
}

/// The reason why no queue is shown.
fn no_queue(n: &Nic, dir: &str) -> String {
    match n.queues_unread() {
        Some(u) => format!("unknown ({})", u.why),
        None => format!("no {dir} queue"),
    }
}

pub(crate) fn rps(n: &Nic, style: &Style) -> String {
    let total = n.rx_queues.len();
    let gs = groups(n.rx_queues.iter().map(|q| (q.id, q.rps_cpus.clone())));
    let one = |f: &Fact<CpuSet>| match f {
        Fact::Known(c) if c.is_empty() => "off".to_string(),
        f => sentence(f, "not in this kernel", |c| format!("-> {}", cpus(c, style))),
    };
    match gs.as_slice() {
        [] => no_queue(n, "receive"),
        [(_, v)] if total > 1 => format!("{}{}", all(total), one(v)),
        gs => gs.iter().map(|(q, v)| format!("rx-{} {}", numbers(q.clone()), one(v))).collect::<Vec<_>>().join("; "),
    }
}

/// Like [`hang`], but a line breaks between the pairs of `tx-0 0-1; tx-1 2-3`, and within one only if it is longer than half
/// of a line.
pub(crate) fn hang_pairs(head: &str, text: &str, width: Option<usize>) -> String {
    const NO_BREAK: &str = "\u{a0}";
    let columns = width.unwrap_or(usize::MAX).saturating_sub(len(head)) / 2;
    let is_pair = |part: &str| (part.starts_with("rx-") || part.starts_with("tx-")) && len(part) <= columns;
    let keep = |part: &str| if is_pair(part) { part.replace(' ', NO_BREAK) } else { part.to_string() };
    let parts: Vec<String> = text.split("; ").map(keep).collect();
    hang(head, &parts.join("; "), width).replace(NO_BREAK, " ")
}

fn all(total: usize) -> String {
    format!("all {}: ", plural(total, "queue"))
}

pub(crate) fn rfs(n: &Nic, host: &Host) -> String {
    let global = match &host.rps_sock_flow_entries {
        Fact::Known(0) => "off (no RFS socket table)".to_string(),
        f => sentence(f, "not in this kernel", |e| format!("{e} socket flow entries")),
    };
    let gs = groups(n.rx_queues.iter().map(|q| (q.id, q.rps_flow_cnt.clone())));
    let one = |f: &Fact<u32>| {
        sentence(f, "none", |e| {
            if *e == 0 { "off".into() } else { format!("{e} {}", if *e == 1 { "entry" } else { "entries" }) }
        })
    };
    let queues = match gs.as_slice() {
        [] => String::new(),
        [(_, Fact::Known(0))] if host.rps_sock_flow_entries.known() == Some(&0) => String::new(),
        [(_, v)] => format!("; all queues: {}", one(v)),
        gs => {
            let parts: Vec<String> = gs.iter().map(|(q, v)| format!("rx-{} {}", numbers(q.clone()), one(v))).collect();
            format!("; {}", parts.join(", "))
        }
    };
    global + &queues
}

pub(crate) fn xps(n: &Nic, style: &Style) -> String {
    let total = n.tx_queues.len();
    let rxqs: Vec<(u32, Vec<u32>)> = n
        .tx_queues
        .iter()
        .filter_map(|q| q.xps_rxqs.known().filter(|r| !r.is_empty()).map(|r| (q.id, r.clone())))
        .collect();
    let gs = groups(n.tx_queues.iter().map(|q| (q.id, q.xps_cpus.clone())));
    let by_cpu = match gs.as_slice() {
        [] => no_queue(n, "transmit"),
        [(_, Fact::Known(c))] if c.is_empty() => format!("not set on any of {}", plural(total, "queue")),
        [(_, Fact::Absent)] => "not available with one transmit queue".into(),
        [(_, f @ Fact::Unknown(_))] => sentence(f, "", |_| String::new()),
        gs => {
            let one = |f: &Fact<CpuSet>| sentence(f, "-", |c| cpus(c, style));
            gs.iter().map(|(q, v)| format!("tx-{} {}", numbers(q.clone()), one(v))).collect::<Vec<_>>().join("; ")
        }
    };
    if rxqs.is_empty() {
        return by_cpu;
    }
    let parts: Vec<String> = rxqs.into_iter().map(|(q, r)| format!("tx-{q} for rx-{}", numbers(r))).collect();
    format!("{by_cpu}; by receive queue: {}", parts.join(", "))
}

/// `rx 3 us (igb adapts it), tx 0 us`
pub(crate) fn moderation(driver: &Fact<String>, f: &Fact<Coalesce>) -> String {
    let driver = driver.known().map(String::as_str);
    sentence(f, "none", |c| {
        let get = |k: &str| c.0.get(k).copied();
        let mut parts = Vec::new();
        for dir in ["rx", "tx"] {
            let mut words = Vec::new();
            if let Some(v) = get(&format!("{dir}-usecs")) {
                let adapts = driver.filter(|_| dir == "rx" && coalesce::own_mode(driver, v) == Some(v));
                words.push(format!("{v} us{}", adapts.map_or_else(String::new, |d| format!(" ({d} adapts it)"))));
            }
            if let Some(v) = get(&format!("{dir}-max-frames")).filter(|v| *v > 0) {
                words.push(plural(v as usize, "frame"));
            }
            if get(&format!("use-adaptive-{dir}")).is_some_and(|v| v > 0) {
                words.push("adaptive".into());
            }
            if !words.is_empty() {
                parts.push(format!("{dir} {}", words.join(" ")));
            }
        }
        if parts.is_empty() { "the driver reports no parameter".into() } else { parts.join(", ") }
    })
}

pub(crate) fn rings(n: &Nic) -> String {
    sentence(&n.rings, "not reported by the driver", |r| {
        let found = RingPart::ALL.iter().filter_map(|p| p.found(r).map(|c| (p, c)));
        let one = |(part, c): (&RingPart, Count)| match c.max {
            0 if part.kind != RingKind::Size => format!("{} {}", part.word, part.text(c.now)),
            max => format!("{} {} of {max}", part.word, c.now),
        };
        let parts: Vec<String> = found.map(one).collect();
        if parts.is_empty() { "not reported by the driver".into() } else { parts.join(", ") }
    })
}

pub(crate) fn pause(n: &Nic) -> String {
    sentence(&n.pause, "none", |p| {
        let one = |name: &str, v: Option<bool>| v.map(|v| format!("{name} {}", if v { "on" } else { "off" }));
        let parts: Vec<String> =
            [one("rx", p.rx), one("tx", p.tx), one("autoneg", p.autoneg)].into_iter().flatten().collect();
        parts.join(", ")
    })
}

/// The meaning of an empty set or a zero, for those settings of this device that have one.
pub(crate) fn empty_means(n: &Nic, host: &Host) -> Vec<&'static str> {
    let mut out = Vec::new();
    let empty = |f: &Fact<CpuSet>| f.known().is_some_and(CpuSet::is_empty);
    if n.rx_queues.iter().any(|q| empty(&q.rps_cpus)) {
        out.push("RPS off: packets stay on the CPU of the queue's interrupt");
    }
    if n.tx_queues.iter().any(|q| empty(&q.xps_cpus)) {
        out.push(
            "XPS not set: no CPU prefers that queue; a CPU in no mask chooses by flow hash, for forwarded packets by receive \
             queue",
        );
    }
    if host.rps_sock_flow_entries.known() == Some(&0) || n.rx_queues.iter().any(|q| q.rps_flow_cnt.known() == Some(&0))
    {
        out.push("RFS 0: off; it needs both the RFS socket table and per-queue entries");
    }
    if n.vectors.iter().any(|v| v.is_queue() && empty(&v.effective)) {
        out.push("no effective CPU: the interrupt is not started (link down) or has not fired yet");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the ports of TCP and UDP are hashed is what most readers look for.
    #[test]
    fn flow_types_of_tcp_and_udp_are_named() {
        let text = |of: &[(&str, &str)]| fields(&of.iter().map(|(f, l)| (f.to_string(), l.to_string())).collect());
        let tcp = [("tcp4", "sdfn"), ("tcp6", "sdfn")];
        let other = [("ah4", "sd"), ("ah6", "sd"), ("esp4", "sd"), ("esp6", "sd"), ("sctp4", "sd")];
        let udp = [("udp4", "sd"), ("udp6", "sd")];
        assert_eq!(
            text(&[&tcp[..], &udp, &other].concat()),
            "tcp4,tcp6: addresses + ports, udp4,udp6 and 5 other flow types: addresses only"
        );
        assert_eq!(
            text(&[&tcp[..], &other].concat()),
            "tcp4,tcp6: addresses + ports, 5 other flow types: addresses only"
        );
        assert_eq!(text(&[&udp[..], &other].concat()), "all 7 flow types: addresses only");
    }
}

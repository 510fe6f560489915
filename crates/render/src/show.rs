//! The page of `show`: one device in full, or one line for each device.

use std::collections::BTreeMap;

use ringwise_model::{
    Cause, Confidence, Dir, Fact, Goal, Immovable, MapSource, Movable, Nic, NicKind, NodeId, Role, Snapshot, Unread,
};

use super::steering;
use super::{facts, matrix, moderation, pending, rules, virtual_functions};
use ringwise_text::{self as text, unread};
use ringwise_text::{Style, Tint};
use ringwise_text::{
    hang, link, no_answer, numbers, pad, plural, sentence, set, source, thousands, user, vector_label, word,
};

/// Devices in full. Several devices are compared at the end.
pub fn devices(s: &Snapshot, nics: &[&Nic], better_goal: Option<Goal>, style: &Style) -> String {
    let mut out = String::new();
    for n in nics {
        out.push_str(&device(s, n, style));
        out.push('\n');
    }
    if nics.len() > 1 {
        out.push_str(&super::compare::render(s, nics, style));
        out.push('\n');
    }
    let of_host = if style.verbose > 0 { facts::host(s, style) } else { String::new() };
    if !of_host.is_empty() {
        out.push_str(&of_host);
        out.push('\n');
    }
    let names: Vec<&str> = nics.iter().map(|n| n.name()).collect();
    // An interface whose queues are unknown cannot be planned, and neither can one without queues of its own and of others below it.
    if nics.iter().all(|n| !n.has_own_queues() && s.members_of(n).is_empty() && n.queues_unread().is_none()) {
        return out;
    }
    if nics.iter().any(|n| n.queues_unread().is_none()) {
        let plan = match better_goal {
            // A packet enters a router at one port and leaves it at another, so all ports are planned together.
            Some(Goal::Forward) => format!("ringwise plan --goal {}", Goal::Forward),
            Some(goal) => format!("ringwise plan {} --goal {goal}", names.join(" ")),
            None => format!("ringwise plan {}", names.join(" ")),
        };
        out.push_str(&format!("Next: {}\n", style.recording.reads(plan)));
    } else if style.recording.is_one() {
        out.push_str("Next, on the host itself, for a recording that has the queues: ringwise capture FILE\n");
    }
    out
}

/// `eth1  igb 0000:03:00.0  node 0  1000 Mb/s full  8 combined queues (max 8)`
fn head(n: &Nic, style: &Style) -> String {
    // Spaces within a part must not break, so they are replaced by a character that occurs in no name.
    let parts: Vec<String> = head_parts(n).iter().map(|p| p.replace(' ', "\u{1}")).collect();
    let text = hang(&format!("{}  ", n.name()), &parts.join("\u{1} "), style.width);
    let text: String = text.replace('\u{1}', " ").lines().map(|l| format!("{}\n", l.trim_end())).collect();
    text.replacen(n.name(), &style.paint(Tint::Bold, n.name()), 1)
}

/// Driver and address, node, link, queues.
pub fn head_parts(n: &Nic) -> Vec<String> {
    let mut parts = Vec::new();
    let driver = match &n.kind {
        NicKind::Software { kind } => format!("{kind}, no queues of its own"),
        NicKind::Loopback => "loopback".into(),
        NicKind::Vf => format!("{} (virtual function)", word(&n.driver, String::clone)),
        _ => match &n.driver {
            Fact::Unknown(_) => "driver unknown".into(),
            f => word(f, String::clone),
        },
    };
    parts.push(match &n.dev.bus_address {
        Some(b) => format!("{driver} {b}"),
        None => driver,
    });
    parts.push(match &n.node {
        Fact::Known(NodeId(k)) => format!("node {k}"),
        Fact::Absent => "no NUMA node".into(),
        Fact::Unknown(_) => "node unknown".into(),
    });
    parts.push(match (&n.link.speed_mbps, text::is_down(n)) {
        (_, true) => "link down".into(),
        (Fact::Known(mbps), _) => format!("{mbps} Mb/s {}", word(&n.link.duplex, String::clone)).trim_end().to_string(),
        _ => match link(n).as_str() {
            "unknown" => "link unknown".into(),
            l => format!("link {l}"),
        },
    });
    parts.push(queues(n));
    parts
}

/// `8 combined queues (max 8)`
pub(crate) fn queues(n: &Nic) -> String {
    let plain = || match n.queues_unread() {
        Some(_) => "queues unknown".to_string(),
        None if n.lists_each_rx_queue_twice() => text::queues(n),
        None => format!("{} rx, {} tx queues", n.rx_queues.len(), n.tx_queues.len()),
    };
    match &n.channels {
        Fact::Known(c) => {
            let mut parts = Vec::new();
            for (name, count) in [("combined", c.combined), ("rx", c.rx), ("tx", c.tx)] {
                if let Some(c) = count.filter(|c| c.now > 0) {
                    parts.push(format!(
                        "{} {name} {} (max {})",
                        c.now,
                        if c.now == 1 { "queue" } else { "queues" },
                        c.max
                    ));
                }
            }
            if parts.is_empty() { plain() } else { parts.join(", ") }
        }
        Fact::Absent => format!("{} (the number is fixed)", plain()),
        Fact::Unknown(_) => format!("{} (channels unknown)", plain()),
    }
}

/// Everything about one device.
pub fn device(s: &Snapshot, n: &Nic, style: &Style) -> String {
    let mut out = head(n, style);
    if let Some(why) = no_answer(n) {
        let text = format!("{why}: values that only the device can report are unknown");
        out.push_str(&style.paint(Tint::Yellow, &hang("  ", &text, style.width)));
    }
    out.push('\n');
    let m = matrix::render(&s.topology, n, style);
    if !m.is_empty() {
        out.push_str(&m);
        out.push('\n');
    }
    let lines = lines(s, n, style);
    for (name, text) in lines {
        let line = if matches!(name, "RPS" | "XPS") { steering::hang_pairs } else { hang };
        out.push_str(&line(&pad(name, 13), &text, style.width));
    }
    if style.verbose > 0 && !n.vectors.is_empty() {
        out.push('\n');
        out.push_str(&vectors(n));
    }
    if style.verbose > 0 && n.has_own_queues() {
        let more = facts::device(n, style) + &rules::list(n, style);
        if !more.is_empty() {
            out.push_str(&format!("\n{more}"));
        }
    }
    let legend = steering::empty_means(n, &s.host);
    if !legend.is_empty() && n.has_own_queues() {
        out.push('\n');
        for (i, l) in legend.iter().enumerate() {
            out.push_str(&hang(if i == 0 { "empty or 0   " } else { "             " }, l, style.width));
        }
    }
    out
}

fn lines(s: &Snapshot, n: &Nic, style: &Style) -> Vec<(&'static str, String)> {
    let mut out: Vec<(&'static str, String)> = Vec::new();
    let lost = unmapped(n);
    if !lost.is_empty() {
        out.push(("unmapped", lost));
    }
    if n.lists_each_rx_queue_twice() {
        let second = n.tx_queues.len()..n.rx_queues.len();
        out.push(("not used", format!("rx-{}: the driver's queues for AF_XDP", numbers(second.map(|q| q as u32)))));
    }
    if n.has_own_queues() {
        out.push(("RSS", steering::rss(&n.rss)));
    }
    if !n.rx_queues.is_empty() {
        out.push(("RPS", steering::rps(n, style)));
        out.push(("RFS", steering::rfs(n, &s.host)));
    }
    if !n.tx_queues.is_empty() {
        out.push(("XPS", steering::xps(n, style)));
    }
    if n.has_own_queues() {
        out.push(("moderation", steering::moderation(&n.driver, &n.coalesce)));
        out.extend(moderation::of_queues(n).map(|q| ("  of queues", q)));
        out.extend(moderation::napi(n).map(|p| ("NAPI", p)));
        out.push(("rings", steering::rings(n)));
        out.push(("pause", steering::pause(n)));
        out.extend(facts::features(n).map(|f| ("features", f)));
        out.extend(rules::line(n).map(|r| ("flow rules", r)));
        out.extend(facts::shapers(n).map(|l| ("limits", l)));
        out.extend(facts::slow_pcie(n).map(|p| ("PCIe", p)));
        out.extend(virtual_functions::line(n).map(|l| ("VFs", l)));
        out.extend(facts::numa(s, n).map(|d| ("NUMA", d)));
    }
    out.push(("carries", carries(s, n)));
    match &n.users {
        Fact::Known(u) if !u.is_empty() => out.push(("in use by", u.iter().map(user).collect::<Vec<_>>().join(", "))),
        Fact::Unknown(u) => out.push(("in use by", format!("unknown ({})", u.why))),
        _ => {}
    }
    if n.has_own_queues() {
        let limit = if style.width.is_none() || style.verbose > 0 { usize::MAX } else { 4 };
        out.extend(pending::line(n, limit).map(|text| ("pending", text)));
        out.push(("IRQ map", map(n)));
        if let Some(fixed) = fixed(n) {
            out.push(("not movable", fixed));
        }
    }
    out.extend(not_read(n, style).map(|list| ("not read", list)));
    out
}

/// Queues without a known interrupt.
fn unmapped(n: &Nic) -> String {
    if !n.has_own_queues() {
        return String::new();
    }
    let of =
        |dir: Dir, ids: Vec<u32>| -> Vec<u32> { ids.into_iter().filter(|q| n.vector_of(dir, *q).is_none()).collect() };
    let for_af_xdp = |q: u32| n.lists_each_rx_queue_twice() && n.queues_in_use(Dir::Rx).is_some_and(|used| q >= used);
    let rx = of(Dir::Rx, n.rx_queues.iter().map(|q| q.id).filter(|q| !for_af_xdp(*q)).collect());
    let tx = of(Dir::Tx, n.tx_queues.iter().map(|q| q.id).collect());
    let mut parts = Vec::new();
    if !rx.is_empty() {
        parts.push(format!("rx-{}", numbers(rx)));
    }
    if !tx.is_empty() {
        parts.push(format!("tx-{}", numbers(tx)));
    }
    if parts.is_empty() {
        return String::new();
    }
    format!("{}: interrupt and CPU unknown", parts.join(" "))
}

fn carries(s: &Snapshot, n: &Nic) -> String {
    let mut parts = Vec::new();
    match &n.addresses {
        Fact::Known(a) if a.is_empty() => parts.push("no address".to_string()),
        Fact::Absent => parts.push("no address".to_string()),
        Fact::Known(a) => parts.push(format!("{} {}", a.len(), if a.len() == 1 { "address" } else { "addresses" })),
        Fact::Unknown(u) => parts.push(format!("addresses unknown ({})", u.why)),
    }
    if let Some(above) = n.dev.ifindex.and_then(|i| s.bystanders.above.get(&i)) {
        parts.extend(above.iter().map(|(kind, count)| {
            format!("{} {}", thousands(u64::from(*count)), text::kind_name(kind, u64::from(*count)))
        }));
    }
    if let Some(m) = n.master.and_then(|m| s.nic_by_index(m)) {
        parts.push(format!("member of {}", m.name()));
    }
    if n.lower.is_empty() {
        return parts.join(", ");
    }
    // A bridge may have thousands of ports, so members are looked up by index.
    let by_index = s.by_index();
    let lower: Vec<&str> = n.lower.iter().filter_map(|l| by_index.get(l)).map(|n| n.name()).collect();
    if !lower.is_empty() {
        parts.push(format!("on top of {}", lower.join(" ")));
    }
    parts.join(", ")
}

/// `8 of 8 sure: MSI vectors and names`
fn map(n: &Nic) -> String {
    let total = n.queue_vectors().count();
    if total == 0 {
        let why = if n.vectors.is_empty() {
            "the device shows no interrupt"
        } else {
            "no interrupt could be matched to a queue"
        };
        return format!("unknown: {why}");
    }
    let mut by: BTreeMap<(std::cmp::Reverse<Confidence>, u8), (usize, MapSource)> = BTreeMap::new();
    for v in n.queue_vectors() {
        by.entry((std::cmp::Reverse(v.confidence), v.source as u8)).or_insert((0, v.source)).0 += 1;
    }
    let parts: Vec<String> = by
        .into_iter()
        .map(|((c, _), (k, src))| format!("{k} of {total} {}: {}", text::confidence(c.0), source(src)))
        .collect();
    let mut out = parts.join("; ");
    let other = n.vectors.iter().filter(|v| v.role == Role::Control).count();
    if other > 0 {
        out.push_str(&format!("; {} without a queue", plural(other, "interrupt")));
    }
    let odd = n.vectors.iter().filter(|v| matches!(v.role, Role::Unknown)).count();
    if odd > 0 {
        out.push_str(&format!("; {} of unknown purpose", plural(odd, "interrupt")));
    }
    out
}

fn fixed(n: &Nic) -> Option<String> {
    let no: Vec<(String, &Immovable)> = n
        .queue_vectors()
        .filter_map(|v| match &v.movable {
            Movable::No(why) => Some((vector_label(v), why)),
            _ => None,
        })
        .collect();
    let why = no.first()?.1;
    let names: Vec<&str> = no.iter().map(|(n, _)| n.as_str()).collect();
    Some(format!("{}: {why}", names.join(" ")))
}

/// Values that could not be read, and values that the recording does not have and that get no line of their own. `None`:
/// there are none.
fn not_read(n: &Nic, style: &Style) -> Option<String> {
    let without_line = [
        ("NAPI", n.napi.unread()),
        ("features", n.features.unread()),
        ("flow rules", n.rules.unread()),
        ("rate limits", n.shapers.unread()),
    ];
    let unrecorded = without_line
        .into_iter()
        .filter(|_| n.has_own_queues())
        .filter_map(|(name, u)| Some((name, u.filter(|u| u.cause == Cause::NotRecorded)?)));
    let mut list = n.unread.clone();
    list.extend(unrecorded.map(|(name, u)| Unread::new(name, None, u.why.clone())));
    let limit = if style.width.is_none() || style.verbose > 0 { usize::MAX } else { 3 };
    (!list.is_empty()).then(|| unread::text(&list, limit))
}

/// With `-v`: every vector with its number.
fn vectors(n: &Nic) -> String {
    let head = ["IRQ", "SERVES", "AFFINITY", "EFFECTIVE", "COUNT", "MAP", "MOVABLE", "NAME"].map(String::from).to_vec();
    let mut rows = vec![head];
    for v in &n.vectors {
        let serves = match &v.role {
            Role::Queues { .. } => vector_label(v),
            Role::Control => "control".into(),
            Role::Idle => "idle".into(),
            Role::Unknown => "unknown".into(),
        };
        rows.push(vec![
            v.irq.to_string(),
            serves,
            word(&v.asked, set),
            word(&v.effective, set),
            word(&v.count, |c| thousands(*c)),
            text::confidence(v.confidence).into(),
            match &v.movable {
                Movable::Yes => "yes".into(),
                Movable::No(_) => "no".into(),
                Movable::UnknownUntilTried => "unknown".into(),
            },
            if v.names.is_empty() { "-".into() } else { v.names.join(" ") },
        ]);
    }
    super::table::plain(&rows, &[0, 4])
}

/// A line about a fact, for a host without interfaces or for a note about one value.
pub fn fact_line<T>(f: &Fact<T>, show: impl FnOnce(&T) -> String) -> String {
    sentence(f, "-", show)
}

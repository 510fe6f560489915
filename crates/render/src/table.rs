//! The table of interfaces, one line each, and the number of hidden ones.

use std::collections::BTreeMap;

pub use ringwise_model::words::plain;
use ringwise_model::{CpuSet, Dir, Fact, Nic, NicKind, Snapshot};

use ringwise_text::{self as text, hang, is_listed, len, link, no_answer, pad, set, thousands, user, word};
use ringwise_text::{Style, Tint};

use super::{misplaced, without_interface};

/// Queues at present and at most: `8/63`, or `4+4/8+8` for separate ones. If the driver does not report channels, the
/// existing queues: `1/1`.
fn queues(n: &Nic) -> String {
    let in_use = |dir| n.queues_in_use(dir).unwrap_or(0);
    let (rx, tx) = (in_use(Dir::Rx), in_use(Dir::Tx));
    let there = if n.queues_unread().is_some() {
        "?".into()
    } else if rx == tx {
        rx.to_string()
    } else {
        format!("{rx}+{tx}")
    };
    match &n.channels {
        Fact::Known(c) => match (c.combined.filter(|c| c.max > 0), c.rx, c.tx) {
            (Some(c), ..) => format!("{}/{}", c.now, c.max),
            (None, Some(r), Some(t)) if r == t => format!("{}/{}", r.now, r.max),
            (None, Some(r), Some(t)) => format!("{}+{}/{}+{}", r.now, t.now, r.max, t.max),
            _ => format!("{there}/?"),
        },
        Fact::Absent => format!("{there}/{there}"),
        Fact::Unknown(_) => format!("{there}/?"),
    }
}

/// CPUs that handle the device's queue interrupts.
fn irq_cpus(n: &Nic) -> String {
    let mut all = CpuSet::new();
    let mut unknown = false;
    let mut some = false;
    for v in n.queue_vectors() {
        some = true;
        match v.taken_by() {
            Some(cpus) if !cpus.is_empty() => all = all.union(cpus),
            _ => unknown = true,
        }
    }
    match (some, unknown, all.is_empty()) {
        (false, ..) => "unknown".into(),
        (_, true, true) => "unknown".into(),
        (_, true, false) => format!("{all} and unknown"),
        _ => set(&all),
    }
}

/// `master`: the bond or bridge of which the interface is a member.
fn remark(s: &Snapshot, n: &Nic, master: Option<&Nic>) -> String {
    let mut parts = Vec::new();
    if let Some(w) = no_answer(n) {
        parts.push(w.to_string());
    }
    if text::is_down(n) {
        parts.push("link is down".into());
    }
    if let Some(u) = n.users.known().filter(|u| !u.is_empty()) {
        parts.push(format!("in use by {}", u.iter().map(user).collect::<Vec<_>>().join(", ")));
    }
    if n.has_own_queues() {
        parts.extend(misplaced::of(s, n).iter().map(ToString::to_string));
        if matches!(n.kind, NicKind::Vf) {
            parts.push("virtual function".into());
        }
    }
    if let Some(m) = master {
        parts.push(format!("member of {}", m.name()));
    }
    parts.join(", ")
}

/// The table, and a line about hidden interfaces. `extra`: remarks by interface, placed before the others.
pub fn interfaces(s: &Snapshot, extra: &BTreeMap<String, String>, all: bool, style: &Style) -> String {
    let listed: Vec<&Nic> = s.nics.iter().filter(|n| all || is_listed(n)).collect();
    let mut rows = vec![["INTERFACE", "DRIVER", "NODE", "LINK", "QUEUES", "IRQ CPUS"].map(String::from).to_vec()];
    let mut remarks = vec!["REMARK".to_string()];
    let by_index = s.by_index();
    for n in &listed {
        let own = n.has_own_queues();
        rows.push(vec![
            n.name().to_string(),
            match &n.kind {
                NicKind::Software { kind } => kind.clone(),
                NicKind::Loopback => "loopback".into(),
                _ => word(&n.driver, String::clone),
            },
            word(&n.node, ToString::to_string),
            link(n),
            queues(n),
            if own { irq_cpus(n) } else { "-".into() },
        ]);
        let first = extra.get(n.name()).cloned();
        let master = n.master.and_then(|m| by_index.get(&m)).copied();
        let parts: Vec<String> = first.into_iter().chain([remark(s, n, master)]).filter(|r| !r.is_empty()).collect();
        remarks.push(parts.join(", "));
    }
    let mut out = String::new();
    if listed.is_empty() {
        out.push_str("no interface with a driver\n");
    } else {
        // Remarks are in the last column, because they are the longest and continue below themselves.
        for (line, r) in plain_padded(&rows).into_iter().zip(&remarks) {
            let room = style.width.filter(|w| *w >= len(&line) + 2 + 20);
            match (style.width, room) {
                (Some(_), None) if !r.is_empty() && r != "REMARK" => {
                    out.push_str(&format!("{}\n{}", line.trim_end(), hang("    ", r, style.width)));
                }
                (Some(_), None) => out.push_str(&format!("{}\n", line.trim_end())),
                _ => out.push_str(&hang(&format!("{line}  "), r, style.width)),
            }
        }
    }
    let hidden = hidden(s, &listed);
    if !hidden.is_empty() {
        // Software interfaces without members or lower interfaces, or too many of them, are read by name alone.
        let text = match all {
            true => hang(
                "counted only: ",
                &format!("{}; to read one: {}", hidden.join(", "), style.recording.reads("ringwise show NAME")),
                style.width,
            ),
            false => hang("not shown: ", &format!("{} (--all)", hidden.join(", ")), style.width),
        };
        out.push_str(&style.paint(Tint::Dim, text.trim_end()));
        out.push('\n');
    }
    out.push_str(&without_interface::lines(s, style));
    if !s.unread.is_empty() {
        let limit = if style.width.is_none() || style.verbose > 0 { usize::MAX } else { 3 };
        let text = ringwise_text::unread::text(&s.unread, limit);
        out.push_str(&hang("not read: ", &text, style.width));
    }
    out
}

fn plain_padded(rows: &[Vec<String>]) -> Vec<String> {
    let text = plain(rows, &[2, 3, 4]);
    let width = text.lines().map(len).max().unwrap_or(0);
    text.lines().map(|l| pad(l, width)).collect()
}

/// Software interfaces without a line: `2,114 vlan`, `1 bridge`.
pub fn hidden(s: &Snapshot, listed: &[&Nic]) -> Vec<String> {
    let mut count: BTreeMap<String, u64> = s.bystanders.count.iter().map(|(k, n)| (k.clone(), u64::from(*n))).collect();
    for n in s.nics.iter().filter(|n| !listed.iter().any(|l| l.name() == n.name())) {
        let kind = match &n.kind {
            NicKind::Software { kind } => kind.clone(),
            NicKind::Loopback => "loopback".into(),
            _ => "other".into(),
        };
        *count.entry(kind).or_default() += 1;
    }
    count
        .into_iter()
        .filter(|(_, n)| *n > 0)
        .map(|(k, n)| format!("{} {}", thousands(n), text::kind_name(&k, n)))
        .collect()
}

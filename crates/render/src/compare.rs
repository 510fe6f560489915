//! Compares several devices, or one device in two recordings: the CPU of each queue, and all differences.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{CpuSet, Nic, NodeId, Snapshot};
use serde_json::{Value, json};

use super::{moderation, rules, steering};
use ringwise_text::Style;
use ringwise_text::{hang, link, numbers, vector_label, word};

mod values;

use values::LineKind;

fn queues(n: &Nic) -> String {
    match n.queues_unread() {
        Some(_) => "unknown".into(),
        None => format!("{}/{}", n.rx_queues.len(), n.tx_queues.len()),
    }
}

/// One column of a comparison.
struct Column<'a> {
    name: &'a str,
    host: &'a Snapshot,
    nic: &'a Nic,
}

/// Devices of one host.
pub(crate) fn render(s: &Snapshot, nics: &[&Nic], style: &Style) -> String {
    let columns: Vec<Column> = nics.iter().map(|n| Column { name: n.name(), host: s, nic: n }).collect();
    let names: Vec<&str> = columns.iter().map(|c| c.name).collect();
    format!("Compared: {}\n\n{}", names.join(" "), table(&columns, true, style))
}

/// `all`: with the number of queues on each CPU of all devices together.
fn table(columns: &[Column], all: bool, style: &Style) -> String {
    let mut out = by_cpu(columns, all);
    out.push('\n');
    let found = facts(columns, style);
    for (what, names) in [("same     ", &found.same), ("unknown  ", &found.unknown)] {
        if !names.is_empty() {
            out.push_str(&hang(what, &names.join(", "), style.width));
        }
    }
    if found.differ.is_empty() {
        out.push_str("differs  nothing\n");
    }
    for line in found.differ {
        out.push_str(&format!("differs  {}\n", line.kind.name()));
        let w = columns.iter().map(|c| c.name.len()).max().unwrap_or(0);
        for (c, text) in columns.iter().zip(&line.texts) {
            let print = if matches!(line.kind, LineKind::Rps | LineKind::Xps) { steering::hang_pairs } else { hang };
            out.push_str(&print(&format!("         {:w$}  ", c.name), text, style.width));
        }
    }
    out
}

/// A line that `show` leaves out: the device has no such settings, or they are not in the recording.
const NOTHING: &str = "not shown";

/// One line of the comparison: the text that `show` prints for each column, and the value behind it.
struct Line {
    kind: LineKind,
    texts: Vec<String>,
    value: fn(&Column) -> Value,
}

/// How the columns compare, by line.
#[derive(Default)]
struct Agreement {
    /// Lines in which all columns agree.
    same: Vec<&'static str>,
    /// Lines that cannot be compared: unknown in all columns, or shown alike although a value is unknown.
    unknown: Vec<&'static str>,
    /// The other lines.
    differ: Vec<Line>,
}

fn facts(columns: &[Column], style: &Style) -> Agreement {
    let line = |kind, value: fn(&Column) -> Value, text: &dyn Fn(&Column) -> String| Line {
        kind,
        texts: columns.iter().map(text).collect(),
        value,
    };
    let shown = |text: Option<String>| text.unwrap_or_else(|| NOTHING.into());
    let lines = vec![
        line(LineKind::Plain("driver"), |c| json!(c.nic.driver), &|c| word(&c.nic.driver, String::clone)),
        line(LineKind::Plain("node"), |c| json!(c.nic.node), &|c| word(&c.nic.node, |k: &NodeId| k.to_string())),
        line(LineKind::Link, |c| values::link(c.nic), &|c| link(c.nic)),
        line(LineKind::Plain("MTU"), |c| json!(c.nic.link.mtu), &|c| word(&c.nic.link.mtu, u32::to_string)),
        line(LineKind::Plain("queues"), |c| values::queues(c.nic), &|c| queues(c.nic)),
        line(LineKind::QueueCpus, |c| values::layout(c.nic), &|c| layout(c.nic)),
        line(LineKind::Plain("RSS"), |c| json!(c.nic.rss), &|c| steering::rss(&c.nic.rss)),
        line(LineKind::Rps, |c| values::rps(c.nic), &|c| steering::rps(c.nic, style)),
        line(LineKind::Rfs, |c| values::rfs(c.nic, &c.host.host), &|c| steering::rfs(c.nic, &c.host.host)),
        line(LineKind::Xps, |c| values::xps(c.nic), &|c| steering::xps(c.nic, style)),
        line(LineKind::Plain("moderation"), |c| json!(c.nic.coalesce), &|c| {
            steering::moderation(&c.nic.driver, &c.nic.coalesce)
        }),
        line(LineKind::QueueModeration, |c| values::moderation(c.nic), &|c| shown(moderation::of_queues(c.nic))),
        line(LineKind::Plain("NAPI"), |c| json!(c.nic.napi), &|c| shown(moderation::napi(c.nic))),
        line(LineKind::Plain("rings"), |c| json!(c.nic.rings), &|c| steering::rings(c.nic)),
        line(LineKind::Plain("pause"), |c| json!(c.nic.pause), &|c| steering::pause(c.nic)),
        line(LineKind::Plain("features"), |c| json!(c.nic.features), &|c| shown(super::facts::features(c.nic))),
        line(LineKind::FlowRules, |c| values::flow_rules(c.nic), &|c| shown(rules::line(c.nic))),
    ];
    let mut out = Agreement::default();
    for l in lines {
        let wholly_unknown = |c: &Column| values::is_unknown(l.kind, &(l.value)(c), true);
        let partly_unknown = |c: &Column| values::is_unknown(l.kind, &(l.value)(c), false);
        let is_alike = l.texts.iter().all(|x| *x == l.texts[0]);
        // The number of queues is a line of its own.
        let is_off = |c: &Column| values::is_off(l.kind, c.nic);
        match () {
            () if columns.iter().all(wholly_unknown) => out.unknown.push(l.kind.name()),
            () if is_alike && columns.iter().any(partly_unknown) => out.unknown.push(l.kind.name()),
            () if is_alike || columns.iter().all(is_off) => out.same.push(l.kind.name()),
            () => out.differ.push(l),
        }
    }
    out
}

/// A host at one moment.
pub struct ComparedSide<'a> {
    /// What it was read from: a file, `this host`.
    pub source: &'a str,
    /// The host.
    pub host: &'a Snapshot,
}

impl ComparedSide<'_> {
    fn describe(&self) -> String {
        let h = &self.host.host;
        let kernel = h.kernel.known().map(|k| format!("Linux {k}"));
        let known: Vec<String> = kernel.into_iter().chain(h.name.known().cloned()).collect();
        match known.is_empty() {
            true => self.source.to_string(),
            false => format!("{} ({})", self.source, known.join(", ")),
        }
    }
}

/// Names of the two sides.
const SIDES: [&str; 2] = ["old", "new"];

/// Each of these interfaces before and after, as a page. `named`: the user named them; otherwise those that are equal are only listed.
pub fn sides(both: &[ComparedSide; 2], devs: &[String], named: bool, style: &Style) -> String {
    let mut out = String::new();
    for (name, side) in SIDES.iter().zip(both) {
        out.push_str(&hang(&format!("{name}  "), &side.describe(), style.width));
    }
    let mut equal: Vec<&str> = Vec::new();
    // Equal interfaces by the lines that are unknown on them.
    let mut unknown: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for dev in devs {
        let found = pair(both, dev);
        match &found[..] {
            [one] => out.push_str(&format!("\n{dev}: only in {}\n", one.name)),
            columns => {
                let found = facts(columns, style);
                if named || !found.differ.is_empty() {
                    out.push_str(&format!("\n{dev}\n\n{}", table(columns, false, style)));
                    continue;
                }
                equal.push(dev);
                match unknown.iter_mut().find(|(names, _)| *names == found.unknown) {
                    _ if found.unknown.is_empty() => {}
                    Some((_, devs)) => devs.push(dev),
                    None => unknown.push((found.unknown, vec![dev])),
                }
            }
        }
    }
    if !equal.is_empty() {
        out.push_str(&format!("\n{}", hang("nothing differs on  ", &equal.join(", "), style.width)));
    }
    for (names, devs) in unknown {
        let text = format!("{}: {}", devs.join(", "), names.join(", "));
        out.push_str(&hang("unknown on          ", &text, style.width));
    }
    out
}

/// The same for programs, with values in the form of the snapshot instead of texts.
pub fn sides_json(both: &[ComparedSide; 2], devs: &[String]) -> Value {
    let side = |s: &ComparedSide| json!({ "source": s.source, "kernel": s.host.host.kernel, "name": s.host.host.name });
    let one = |dev: &String| {
        let found = pair(both, dev);
        let both = if found.len() == 2 { facts(&found, &Style::plain(None)) } else { Agreement::default() };
        let entry =
            |l: &Line| json!({ "what": l.kind.name(), "old": (l.value)(&found[0]), "new": (l.value)(&found[1]) });
        json!({
            "name": dev,
            "in": found.iter().map(|c| c.name).collect::<Vec<_>>(),
            "same": both.same,
            "unknown": both.unknown,
            "differs": both.differ.iter().map(entry).collect::<Vec<_>>(),
        })
    };
    json!({
        "schema": "ringwise.comparison",
        "version": 1,
        "old": side(&both[0]),
        "new": side(&both[1]),
        "interfaces": devs.iter().map(one).collect::<Vec<_>>(),
    })
}

fn pair<'a>(both: &[ComparedSide<'a>; 2], dev: &str) -> Vec<Column<'a>> {
    let column = |(name, side): (&&'static str, &ComparedSide<'a>)| {
        Some(Column { name, host: side.host, nic: side.host.nic(dev)? })
    };
    SIDES.iter().zip(both).filter_map(column).collect()
}

/// The placement of queues as text, `queue on CPU` in queue order, to find devices with the same placement.
fn layout(n: &Nic) -> String {
    let parts: Vec<String> = n
        .queue_vectors()
        .map(|v| {
            format!(
                "{}:{}",
                vector_label(v),
                v.effective.known().filter(|e| !e.is_empty()).map_or("unknown".into(), CpuSet::to_string)
            )
        })
        .collect();
    if parts.is_empty() { "unknown".into() } else { parts.join(" ") }
}

fn by_cpu(columns: &[Column], all: bool) -> String {
    let mut cpus: BTreeSet<u32> = BTreeSet::new();
    let mut at: Vec<BTreeMap<u32, Vec<u32>>> = Vec::new();
    for Column { nic: n, .. } in columns {
        let mut m: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for v in n.queue_vectors() {
            let queues = if v.rx().is_empty() { v.tx() } else { v.rx() };
            for c in v.effective.known().into_iter().flat_map(CpuSet::iter) {
                m.entry(c.0).or_default().extend(queues);
                cpus.insert(c.0);
            }
        }
        at.push(m);
    }
    let sum = |text: String| all.then_some(text).into_iter().collect::<Vec<_>>();
    let names = columns.iter().map(|c| c.name.to_string()).collect();
    let mut rows = vec![[vec!["CPU".to_string()], names, sum("ALL".into())].concat()];
    for c in cpus {
        let cells: Vec<String> = at
            .iter()
            .map(|m| m.get(&c).map_or("-".into(), |q| format!("queue {}", numbers(q.iter().copied()))))
            .collect();
        let total: usize = at.iter().map(|m| m.get(&c).map_or(0, Vec::len)).sum();
        rows.push([vec![c.to_string()], cells, sum(total.to_string())].concat());
    }
    if rows.len() == 1 {
        return "The CPU of no queue is known.\n".into();
    }
    let numbers = [Some(0), all.then(|| rows[0].len() - 1)];
    super::table::plain(&rows, &numbers.into_iter().flatten().collect::<Vec<_>>())
}

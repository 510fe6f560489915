//! Many flows: a table of queues, how evenly they are loaded, and what would improve it.

use ringwise_flow::balance::Balanced;
use ringwise_flow::chain;
use ringwise_flow::population::{Evenness, FlowShare, HeavyFlow};
use ringwise_flow::{CountedFlow, Spread, Steering};
use ringwise_knob::restarts_for_ntuple;
use ringwise_model::{CpuId, CpuSet, Dir, Nic, Snapshot, Vector};
use serde_json::{Value, json};
use std::collections::BTreeSet;

use super::{hang, missing, wrap};
use ringwise_text::Style;
use ringwise_text::{RecordedBy, numbers, plural, right, thousands, visible};

/// A flow rule for each heavy flow, and an RSS table without the queues of these rules.
pub struct Isolated {
    /// Flow, rule in the syntax of `ethtool -N`, queue.
    pub rules: Vec<(CountedFlow, String, u32)>,
    /// The RSS table without the queues that get a rule.
    pub table: Vec<u32>,
    /// Load of the busiest other queue, divided by the mean of the other queues.
    pub others_to_mean: f64,
    /// How many entries of the table change.
    pub moves: usize,
    /// The device accepts rules only with its feature `ntuple` on.
    pub ntuple_off: bool,
}

/// The answer about many flows on one interface.
pub struct FlowSetReport<'a> {
    /// The host as read, without `--what-if`.
    pub host: &'a Snapshot,
    /// The interface, with the settings of `--what-if`.
    pub nic: &'a Nic,
    /// Where the flows come from: a capture, a file, sampled packets.
    pub from: &'a str,
    /// Limits of the answer, one text each.
    pub notes: &'a [String],
    /// The source does not count packets, so each flow counts as one.
    pub uncounted: bool,
    /// The flows by queue with the present settings.
    pub now: Spread,
    /// The flows by queue with the settings of `--what-if`; `None`: there are none.
    pub then: Option<Spread>,
    /// The RSS table of `--balance`; `None`: not requested.
    pub balanced: Option<Balanced>,
    /// `None`: changing the table is enough, or the device does not support rules.
    pub isolated: Option<Isolated>,
    /// What would help, one text each.
    pub advice: Vec<String>,
    /// The settings of `--what-if` as the user typed them; empty: none.
    pub what_if: &'a [String],
    /// Why the device may ignore its RSS table; `None`: there is no sign of that.
    pub doubt: Option<String>,
    /// The program that made the recording; `None`: the host is not a recording.
    pub recorded_by: Option<&'a RecordedBy>,
}

/// `FLOW QUEUE IRQ CPU NODE`. CPU is the one that processes the packets, RPS included.
pub fn plain(s: &Snapshot, nic: &Nic, steering: &Steering, flows: &[CountedFlow]) -> String {
    let mut out = String::from("#flow queue irq cpu node\n");
    let word = |n: Option<u32>| n.map_or_else(|| "unknown".into(), |n| n.to_string());
    for f in flows {
        let a = chain::arrival(s, nic, steering, &f.tuple);
        let queue = match a.steering.by {
            ringwise_flow::QueueDecision::Dropped => "dropped".into(),
            _ => word(a.steering.queue),
        };
        let l = a.landing.as_ref();
        let cpu = l.and_then(|l| l.works_on());
        let node = cpu.and_then(|c| s.topology.node_of(c)).map(|n| n.0);
        let irq = word(l.and_then(|l| l.irq).map(|i| i.0));
        out.push_str(&format!("{} {queue} {irq} {} {}\n", f.tuple, word(cpu.map(|c| c.0)), word(node)));
    }
    out
}

fn share(l: &FlowShare, total: &FlowShare) -> String {
    if total.packets == 0 { "-".into() } else { format!("{:.1}%", l.packets as f64 * 100.0 / total.packets as f64) }
}

fn evenness(e: &Evenness) -> String {
    format!("max/mean {:.2}, variation {:.2}", e.max_to_mean, e.variation)
}

fn heavy_line(h: &HeavyFlow, m: &FlowSetReport) -> String {
    let l = FlowShare { flows: 1, packets: h.flow.packets, bytes: h.flow.bytes };
    let named = |h: &HeavyFlow| h.queue.map_or_else(|| "queue not known".into(), |q| format!("queue {q}"));
    let then = m.then.iter().flat_map(|s| &s.heaviest).find(|t| t.flow.tuple == h.flow.tuple);
    let queue = match then.map(named) {
        Some(then) if then != named(h) => format!("{} now, {then} {ASSUMED}", named(h)),
        _ => named(h),
    };
    format!("{}  {}, {}, {queue}", h.flow.tuple, plural(h.flow.packets as usize, "packet"), share(&l, &m.now.total))
}

/// The best max/mean that a table can reach now, and with the settings of `--what-if`, which may be another number of queues.
fn floors(now: f64, then: Option<f64>) -> Vec<String> {
    let line = |floor: f64, state: &str| match floor > 1.0 {
        true => format!("{floor:.2}{state}, set by the heaviest flow: no table goes below"),
        false => format!("1.00{state}: no flow is heavier than a queue's share"),
    };
    match then {
        Some(then) if line(then, "") != line(now, "") => vec![line(now, " now"), line(then, &format!(" {ASSUMED}"))],
        _ => vec![line(now, "")],
    }
}

/// Marks what belongs to the assumed state, where a line has no label of its own for it.
const ASSUMED: &str = "with --what-if";

impl FlowSetReport<'_> {
    /// The interface without the settings of `--what-if`.
    fn present(&self) -> &Nic {
        self.host.nic(self.nic.name()).unwrap_or(self.nic)
    }
}

/// The CPU of a queue, if its interrupt is known to go to one.
fn cpu_of(nic: &Nic, queue: u32) -> Option<CpuId> {
    let cpus = nic.vector_of(Dir::Rx, queue).and_then(Vector::taken_by);
    cpus.filter(|c| c.len() == 1).and_then(CpuSet::first)
}

/// The answer for people.
pub fn text(m: &FlowSetReport, style: &Style) -> String {
    let w = style.width;
    let nic = m.present();
    let driver = nic.driver.known().map_or("driver unknown".into(), |d| visible(d));
    let entries = nic.rss.known().map_or(0, |r| r.table.len());
    let mut out = format!("{}  {driver}  {}, {entries} entries", nic.name(), plural(m.now.queues.len(), "queue"));
    out.push_str(&format!("      {}\n", m.from));
    if !m.what_if.is_empty() {
        out.push_str(&hang("as if   ", &m.what_if.join("  "), w));
    }
    out.push('\n');
    // If no flow could be assigned to a queue, columns of zeros would look like an answer.
    if [Some(&m.now), m.then.as_ref()].into_iter().flatten().any(|s| s.total.flows > s.undecided.flows) {
        table(&mut out, m);
        out.push('\n');
    }
    if let Some(e) = &m.now.evenness {
        out.push_str(&format!(
            "now     {}; {} of {} queues used\n",
            evenness(e),
            m.now.queues_used,
            m.now.queues.len()
        ));
        if let Some((s, e)) = m.then.as_ref().and_then(|s| Some((s, s.evenness.as_ref()?))) {
            out.push_str(&format!("as if   {}; {} of {} queues used\n", evenness(e), s.queues_used, s.queues.len()));
        }
        let then = m.then.as_ref().and_then(|s| s.evenness.as_ref());
        for (i, line) in floors(e.floor, then.map(|e| e.floor)).iter().enumerate() {
            out.push_str(&hang(if i == 0 { "floor   " } else { "        " }, line, w));
        }
    }
    if m.uncounted {
        out.push_str("Packets were not counted: each flow counts as one.\n");
    }
    if m.now.undecided.flows > 0 {
        let n = plural(m.now.undecided.flows as usize, "flow");
        let why = m.now.undecided_why.as_ref().map_or_else(String::new, |w| format!(": {w}"));
        out.push_str(&hang("unknown ", &format!("{n} whose queue cannot be determined{why}"), w));
    }
    let total = &m.now.total;
    // Among flows of the same rate, none is heavy.
    let any_heavy = m.now.heaviest.first().is_some_and(|h| h.flow.packets.saturating_mul(total.flows) > total.packets);
    if !m.uncounted && m.now.heaviest.len() > 1 && any_heavy {
        for h in m.now.heaviest.iter().take(if style.verbose > 0 { 10 } else { 3 }) {
            out.push_str(&hang("heavy   ", &heavy_line(h, m), w));
        }
    }
    if !m.now.collisions.is_empty() && !m.uncounted {
        let now = if m.then.is_some() { "now share" } else { "share" };
        out.push_str(&format!(
            "Heavy flows {now} {} {}.\n",
            if m.now.collisions.len() == 1 { "queue" } else { "the queues" },
            numbers(m.now.collisions.iter().copied())
        ));
    }
    for n in m.notes {
        out.push_str(&hang("note    ", n, w));
    }
    if let Some(d) = &m.doubt {
        out.push_str(&hang("doubt   ", d, w));
    }
    for a in &m.advice {
        let advice = if m.then.is_some() { format!("{ASSUMED}: {a}") } else { a.clone() };
        out.push_str(&hang("advice  ", &advice, w));
    }
    if let Some(b) = &m.balanced {
        balance(&mut out, b, m, style);
    }
    let why = m.then.as_ref().unwrap_or(&m.now).undecided_why.as_ref();
    if missing::is_not_recorded(why, None) {
        out.extend(m.recorded_by.map(|by| by.remark(w)));
    }
    if let Some(prints) = missing::prints_key(why, nic.name()) {
        let place = missing::place(style);
        let text = format!("add --what-if rss.key=KEY, with the KEY that {prints} prints {place}");
        out.push_str(&hang("Next: ", &text, w));
    }
    out
}

fn table(out: &mut String, m: &FlowSetReport) {
    let bytes = m.now.total.bytes > 0;
    out.push_str("QUEUE   CPU  NODE      FLOWS        PACKETS   SHARE");
    out.push_str(if bytes { "             BYTES" } else { "" });
    out.push_str(if m.then.is_some() { "          AS IF   SHARE" } else { "" });
    let then_queues = m.then.iter().flat_map(|t| t.queues.keys().copied());
    let ids: BTreeSet<u32> = m.now.queues.keys().copied().chain(then_queues).collect::<BTreeSet<_>>();
    // `--what-if` with a plan may move interrupts.
    let moved =
        m.then.is_some() && ids.iter().any(|q| cpu_of(m.nic, *q).is_some_and(|c| cpu_of(m.present(), *q) != Some(c)));
    out.push_str(if moved { "   CPU\n" } else { "\n" });
    for q in ids {
        let cpu = cpu_of(m.present(), q);
        let node = cpu.and_then(|c| m.host.topology.node_of(c));
        let word = |n: Option<String>| n.unwrap_or_else(|| "?".into());
        let now = m.now.queues.get(&q).copied().unwrap_or_default();
        let mut line = format!(
            "{}{}{}{}{}{}",
            right(&q.to_string(), 5),
            right(&word(cpu.map(|c| c.to_string())), 6),
            right(&word(node.map(|n| n.to_string())), 6),
            right(&thousands(now.flows), 11),
            right(&thousands(now.packets), 15),
            right(&share(&now, &m.now.total), 8)
        );
        if bytes {
            line.push_str(&right(&thousands(now.bytes), 18));
        }
        if let Some(t) = &m.then {
            let l = t.queues.get(&q).copied().unwrap_or_default();
            line.push_str(&right(&thousands(l.packets), 15));
            line.push_str(&right(&share(&l, &t.total), 8));
            if moved {
                line.push_str(&right(&word(cpu_of(m.nic, q).map(|c| c.to_string())), 6));
            }
        }
        out.push_str(&line);
        out.push('\n');
    }
    for (name, loads) in [("CPU", &m.now.cpus), ("node", &m.now.nodes)] {
        if loads.len() > 1 && loads.len() < m.now.queues.len() {
            let each = loads.iter().map(|(id, l)| format!("{id}: {}", share(l, &m.now.total)));
            out.push_str(&format!("by {name}  {}\n", each.collect::<Vec<_>>().join("  ")));
        }
    }
}

fn words(table: &[u32]) -> String {
    let q: Vec<String> = table.iter().map(u32::to_string).collect();
    format!("[{}]", q.join(","))
}

fn balance(out: &mut String, b: &Balanced, m: &FlowSetReport, style: &Style) {
    let w = style.width;
    let dev = m.nic.name();
    let head = format!(
        "{} of {} entries moved: max/mean {:.2} -> {:.2} (target {:.2}, best possible with these entries {:.2})",
        b.moves.len(),
        b.table.len(),
        b.before,
        b.after,
        b.target,
        b.floor
    );
    let head = if m.then.is_some() { format!("{ASSUMED}: {head}") } else { head };
    out.push_str(&hang("balance ", &head, w));
    for mv in b.moves.iter().take(8) {
        out.push_str(&format!(
            "        entry {}: queue {} -> {}  ({})\n",
            mv.entry,
            mv.from,
            mv.to,
            plural(mv.packets as usize, "packet")
        ));
    }
    if b.moves.len() > 8 {
        out.push_str(&format!("        and {} more\n", b.moves.len() - 8));
    }
    if let Some(i) = &m.isolated {
        let n = plural(i.rules.len(), "flow");
        let text = format!(
            "{n} heavier than a queue's share: a rule and a queue for each; the other queues are then at {:.2} ({} moved)",
            i.others_to_mean,
            plural(i.moves, "entry")
        );
        out.push_str(&hang("heavy   ", &text, w));
        for (f, _, q) in &i.rules {
            out.push_str(&format!("        {} -> queue {q}\n", f.tuple));
        }
        let restarts = m.host.nic(dev).is_some_and(restarts_for_ntuple);
        let permit = if restarts { " --allow-disruption" } else { "" };
        let on = i.ntuple_off.then(|| format!("--set {dev}.features.ntuple=true{permit}"));
        let rules = i.rules.iter().map(|(_, r, _)| format!("--set '{dev}.rule=\"{r}\"'"));
        let rules: Vec<String> = on.into_iter().chain(rules).collect();
        out.push_str(&next(m, &i.table, &format!(" {}", rules.join(" ")), style));
    } else if !b.moves.is_empty() {
        if !b.reached() {
            let no_table = if b.floor > b.target {
                "No table reaches the target: single entries are too heavy."
            } else {
                "No table was found that reaches the target; this is the best one that was found."
            };
            let no_rule = "No rule is proposed: either no single flow is more than a queue's share, or the device is \
                           not known to support rules.";
            out.push_str(&hang("        ", &format!("{no_table} {no_rule}"), w));
        }
        out.push_str(&next(m, &b.table, "", style));
    }
}

/// The next command. The proposed table assumes the settings of `--what-if`.
fn next(m: &FlowSetReport, table: &[u32], more: &str, style: &Style) -> String {
    let dev = m.nic.name();
    let (set, files): (Vec<&String>, Vec<&String>) = m.what_if.iter().partition(|w| w.contains('='));
    let set: String = set.iter().map(|w| format!("--set '{dev}.{w}' ")).collect();
    let after: String = files.iter().map(|f| format!(", when {f} is applied")).collect();
    // Without a goal, the rest of the host would be planned for the default goal or that of the file.
    let plan = format!("ringwise plan --goal GOAL {dev} {set}--set '{dev}.rss.table={}'{more}", words(table));
    format!("\nNext{after}: {}\n", style.recording.reads(plan))
}

fn loads(all: &std::collections::BTreeMap<u32, FlowShare>, name: &str) -> Vec<Value> {
    all.iter().map(|(id, l)| json!({name: id, "flows": l.flows, "packets": l.packets, "bytes": l.bytes})).collect()
}

fn spread(s: &Spread) -> Value {
    json!({
        "queues": loads(&s.queues, "queue"), "cpus": loads(&s.cpus, "cpu"), "nodes": loads(&s.nodes, "node"),
        "total": s.total, "undecided": s.undecided,
        "undecided_why": s.undecided_why.as_ref().map(ToString::to_string), "evenness": s.evenness, "queues_used": s.queues_used,
        "heaviest": s.heaviest, "collisions": s.collisions,
    })
}

/// The answer as `ringwise.explain`.
pub fn json(m: &FlowSetReport) -> Value {
    let isolated = m.isolated.as_ref().map(|i| {
        let rules: Vec<Value> =
            i.rules.iter().map(|(f, r, q)| json!({"flow": f.tuple, "rule": r, "queue": q})).collect();
        json!({"rules": rules, "table": i.table, "others_to_mean": i.others_to_mean, "moves": i.moves, "ntuple_off": i.ntuple_off})
    });
    wrap(json!({
        "kind": "population", "interface": m.nic.name(), "from": m.from, "notes": m.notes, "counted": !m.uncounted,
        "what_if": m.what_if, "now": spread(&m.now), "as_if": m.then.as_ref().map(spread), "balance": m.balanced,
        "isolate": isolated, "advice": m.advice, "doubt": m.doubt,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_floor_names_its_state() {
        let lightest = "no flow is heavier than a queue's share";
        assert_eq!(floors(1.0, None), [format!("1.00: {lightest}")]);
        assert_eq!(floors(1.0, Some(1.0)), [format!("1.00: {lightest}")], "the same in both states");
        let heavy = "set by the heaviest flow: no table goes below";
        let both = [format!("1.54 now, {heavy}"), format!("1.00 with --what-if: {lightest}")];
        assert_eq!(floors(1.54, Some(1.0)), both);
    }
}

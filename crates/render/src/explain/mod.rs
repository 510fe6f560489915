//! The pages of `explain`: the way of one flow as text, as a document and as a drawing; many flows are in [`many`].

mod draw;
pub mod many;
mod missing;
pub mod observed;

use ringwise_flow::chain::{Arrival, Departure, Direction, PathStage, Route, path_stages};
use ringwise_flow::rfs_paths::{RfsPath, rfs_paths};
use ringwise_flow::send::TransmitDecision;
use ringwise_flow::stack::{CpuPlacement, NodeDistance, ReceivePath, Rfs, Rps, rfs_words};
use ringwise_flow::steering::QueueDecision;
use ringwise_model::shell::quote;
use ringwise_model::{CpuId, CpuSet, Snapshot};
use serde_json::{Value, json};

use super::columns::Ranks;
use super::json::Document;
use ringwise_text::RecordedBy;
use ringwise_text::Style;
use ringwise_text::numbers;

pub use draw::svg;

/// Name of the document.
pub const SCHEMA: &str = "ringwise.explain";

/// Text that fits is not folded: folding would lose the spaces between its columns.
fn hang(head: &str, text: &str, width: Option<usize>) -> String {
    let fits = width.is_some_and(|w| head.chars().count() + text.chars().count() <= w);
    ringwise_text::hang(head, text, width.filter(|_| !fits))
}

/// The answer about one flow.
pub struct OneFlow<'a> {
    /// The host that the answer is about, with the settings of `--what-if`.
    pub host: &'a Snapshot,
    /// The direction of the question first, then the replies.
    pub directions: Vec<Direction>,
    /// Where a packet moves to a remote node or L3 cache, one text each.
    pub crossings: Vec<String>,
    /// How the two directions of a connection share CPUs; `None`: there is only one direction, or it is not known.
    pub meeting: Option<String>,
    /// What could not be determined, with the reason.
    pub unknown: Vec<String>,
    /// Whether the host forwards packets; `None`: unknown.
    pub forwarding: Option<bool>,
    /// The host forwards the flow, instead of being one of its ends.
    pub through: bool,
    /// The settings of `--what-if` as the user typed them; empty: none.
    pub what_if: &'a [String],
    /// The program that made the recording; `None`: the host is not a recording.
    pub recorded_by: Option<&'a RecordedBy>,
}

/// The answer for people.
pub fn text(o: &OneFlow, style: &Style) -> String {
    let w = style.width;
    let mut out = String::new();
    if !o.what_if.is_empty() {
        out.push_str(&format!("As if: {}\n\n", o.what_if.join("  ")));
    }
    let cores = Ranks::of(&o.host.topology);
    let mut step = 0;
    for d in &o.directions {
        out.push_str(&format!("{}    {}\n\n", d.flow, ends(d)));
        let mut number = || {
            step += 1;
            format!("{step:>3} ")
        };
        if let Some(a) = &d.arrival {
            arrival(&mut out, &number(), a, d, (o.host, &cores), style);
        }
        let head = format!("{}route    ", number());
        let route = if d.arrival.is_none() { format!("{} (according to the kernel)", d.route) } else { route(d) };
        out.push_str(&hang(&head, &route, w));
        if let Some(k) = &d.socket {
            let who = match (&k.program, k.pid) {
                (Some(p), Some(n)) => format!("{p} ({n})"),
                _ => "a process that cannot be inspected".into(),
            };
            let cpu = k
                .last_cpu
                .map_or_else(String::new, |c| format!(", whose main thread last ran on CPU {c}{}", node(o.host, c)));
            out.push_str(&hang("    socket   ", &format!("{} of {who}{cpu}", k.kind), w));
        }
        if let Some(x) = &d.departure {
            departure(&mut out, &number(), x, &cores, style);
        }
        out.push('\n');
    }
    for d in &o.directions {
        let line = drawing(o.host, d);
        if !line.is_empty() {
            out.push_str(&format!("    {line}\n"));
        }
        uses_of_rfs(o.host, d).iter().for_each(|line| out.push_str(&format!("    {line}\n")));
    }
    out.push_str("    (| another L3, || a remote node)\n\n");
    match &o.crossings[..] {
        [] => out.push_str("Crossings: none known.\n"),
        all => {
            for c in all {
                out.push_str(&hang("Crossing: ", c, w));
            }
        }
    }
    if let Some(m) = &o.meeting {
        out.push_str(&hang("", m, w));
    }
    if o.through && o.forwarding == Some(false) {
        out.push_str(
            "This host does not forward (net.ipv4.ip_forward and the IPv6 one are 0): it would drop the packets.\n",
        );
    }
    for u in &o.unknown {
        out.push_str(&hang("Not known: ", u, w));
    }
    let beyond =
        "hardware offload on the neighbour, and what programs on the way (XDP, tc, nftables) do with the packets";
    out.push_str(&hang("Cannot be known from here: ", beyond, w));
    out.push_str(&next(o, style));
    out
}

/// Why the recording lacks values, and what to do where the queue of the flow is unknown.
fn next(o: &OneFlow, style: &Style) -> String {
    let Some(first) = o.directions.first() else { return String::new() };
    let Some(a) = o.directions.iter().find_map(|d| d.arrival.as_ref()) else { return String::new() };
    let (st, why) = (&a.steering, a.steering.why_not.as_ref());
    let mut out = String::new();
    if missing::is_not_recorded(why, o.host.nic(&a.dev)) {
        out.extend(o.recorded_by.map(|by| by.remark(style.width)));
    }
    if st.by != QueueDecision::NotDecidable {
        return out;
    }
    let vlan = first.flow.vlan.map_or_else(String::new, |id| format!(" --vlan {id}"));
    let what_if: String = o.what_if.iter().map(|w| format!(" --what-if {}", quote(w))).collect();
    let command = |option: String| {
        style.recording.reads(format!("ringwise explain {} {}{vlan}{what_if} {option}", first.flow, a.dev))
    };
    if let Some(prints) = missing::prints_key(why, &a.dev) {
        let with = command("--what-if rss.key=KEY".into());
        let text = format!("with the KEY that {prints} prints {}:", missing::place(style));
        out.push_str(&(hang("Next, ", &text, style.width) + &format!("  {with}\n")));
    }
    if let Some(queue) = st.may_be.first() {
        let of = numbers(st.may_be.iter().copied());
        let with = command(format!("--if-queue {queue}"));
        let text = format!("for the path from one of the queues {of}, here {queue}:");
        out.push_str(&(hang("Next, ", &text, style.width) + &format!("  {with}\n")));
    }
    out
}

fn ends(d: &Direction) -> String {
    let from = d.arrival.as_ref().map(|a| format!("in on {}", a.dev));
    let to = d.departure.as_ref().map(|x| format!("out on {}", x.dev));
    [from, to].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn route(d: &Direction) -> String {
    match &d.route {
        Route::Unknown(_) => d.route.to_string(),
        Route::ToThisHost | Route::Dev(_) => format!("{} (according to the kernel)", d.route),
    }
}

fn node(s: &Snapshot, c: CpuId) -> String {
    s.topology.node_of(c).map_or_else(String::new, |n| format!(" of node {n}"))
}

fn head_of(node: Option<u32>) -> String {
    node.map_or_else(|| "node unknown".into(), |n| format!("node {n}"))
}

fn arrival(out: &mut String, number: &str, a: &Arrival, d: &Direction, host: (&Snapshot, &Ranks), style: &Style) {
    let w = style.width;
    let mut line = |head: &str, text: &str| out.push_str(&hang(head, text, w));
    let st = &a.steering;
    let rule = match (st.rule, st.by) {
        (Some(at), QueueDecision::Dropped) => format!("steering rule {at} drops or diverts it"),
        (Some(at), _) => format!("steering rule {at} matches"),
        (None, QueueDecision::Asked) => "as if it arrived on the requested queue".into(),
        (None, _) if st.rules_unread => "steering rules unknown".into(),
        (None, _) => "no steering rule matches".into(),
    };
    line(&format!("{number}in       "), &format!("{}     {}   {rule}", a.dev, head_of(a.node)));
    match (st.hash, &st.fields) {
        (Some(h), Some(f)) => {
            let key = st.key_from.map_or_else(String::new, |k| format!(", {k} key"));
            line("    hash     ", &format!("{h:#010x}  toeplitz over {f}{key}"));
        }
        _ if matches!(st.by, QueueDecision::OnlyOne | QueueDecision::Asked) => {}
        _ => {
            let why = st.why_not.as_ref().map(ToString::to_string);
            line("    hash     ", why.as_deref().unwrap_or("does not matter"));
        }
    }
    match (st.queue, st.entry) {
        (Some(q), Some(e)) => {
            let of = st.context.map_or_else(String::new, |c| format!(" of RSS context {c}"));
            line("    table    ", &format!("entry {e} of {}{of} -> queue {q}", st.entries));
        }
        (Some(q), None) if st.by == QueueDecision::OnlyOne => {
            line("    table    ", &format!("every entry names queue {q}"))
        }
        (Some(q), None) if st.by == QueueDecision::Asked => line("    queue    ", &format!("{q}, as requested")),
        (Some(q), None) => line("    rule     ", &format!("-> queue {q}")),
        (None, _) if st.by == QueueDecision::Dropped => {
            line("    rule     ", "the packet does not reach this interface's queues")
        }
        (None, _) => {
            let may = format!("cannot be determined: one of the queues {}", numbers(st.may_be.iter().copied()));
            // If there is no hash, the line of the hash shows the reason.
            let why = st.why_not.as_ref().filter(|_| st.hash.is_some() && st.fields.is_some());
            line("    queue    ", &format!("{may}{}", why.map_or_else(String::new, |w| format!(" ({w})"))));
        }
    }
    for n in &st.notes {
        line("             ", n);
    }
    if let Some(doubt) = &a.doubt {
        line("    !        ", doubt);
    }
    if let Some(l) = &a.landing {
        landing(&mut line, l, d, host);
    }
}

fn landing(line: &mut dyn FnMut(&str, &str), l: &ReceivePath, d: &Direction, (s, cores): (&Snapshot, &Ranks)) {
    let irq = l.irq.map_or_else(|| "no interrupt known".into(), |i| format!("interrupt {i}"));
    let to = match (&l.cpu, &l.why_not) {
        (Some(p), _) => place(p, l.pending_on.as_ref(), cores),
        (None, Some(why)) => format!("CPU not known: {why}"),
        (None, None) => "CPU not known".into(),
    };
    line(&format!("    queue {:<3}", l.queue), &format!("{irq} -> {to}"));
    let rps = match &l.rps {
        Rps::Off => "off".to_string(),
        Rps::On { cpus, chosen: Some(c), .. } => format!("to {cpus}: CPU {c}{}", node(s, *c)),
        Rps::On { cpus, why_not: Some(why), .. } => format!("to one of CPUs {cpus}, always the same ({why})"),
        Rps::On { cpus, .. } => format!("to one of CPUs {cpus}, always the same (which one is unknown)"),
        Rps::Unknown { why } => format!("not known ({why})"),
    };
    line("    RPS      ", &rps);
    let rfs = match &l.rfs {
        Rfs::Off { why } => format!("off ({why})"),
        Rfs::Unknown { why } => format!("not known ({why})"),
        Rfs::On { entries, queue_entries, accelerated } => {
            let where_to = match d.socket.as_ref().and_then(|k| k.last_cpu) {
                Some(c) => format!("would process it on CPU {c}, where its program last ran"),
                None if d.local => "processes it on the CPU of the reading program".into(),
                None => "has no effect on forwarded packets".into(),
            };
            let by = if *accelerated {
                "; accelerated: the kernel programs the device, so another queue may receive it"
            } else {
                ""
            };
            format!("{where_to}{by}. {}", rfs_words(*entries, *queue_entries))
        }
    };
    line("    RFS      ", &rfs);
}

/// The core has the number that `show` prints; the kernel's `core_id` repeats in each package.
fn place(p: &CpuPlacement, pending_on: Option<&CpuSet>, cores: &Ranks) -> String {
    let node = p.node.map_or_else(|| "unknown".into(), |n| n.to_string());
    let core = cores.core(p.cpu).map_or_else(String::new, |c| format!("  core {c}"));
    let reach = match p.reach {
        NodeDistance::Near => "near".to_string(),
        NodeDistance::OtherNode => {
            let far = p.distance.map_or_else(String::new, |d| format!(", distance {d}"));
            format!("! remote node{far}")
        }
        NodeDistance::Unknown => "distance unknown".into(),
    };
    let pending = pending_on.map_or_else(String::new, |now| format!(" (pending, now on CPU {now})"));
    format!("CPU {}{pending}   node {node}{core}   {reach}", p.cpu)
}

fn departure(out: &mut String, number: &str, x: &Departure, cores: &Ranks, style: &Style) {
    let mut line = |head: &str, text: &str| out.push_str(&hang(head, text, style.width));
    let to = match x.sending.queue {
        Some(q) => format!("tx-{q}"),
        None if x.sending.may_be.is_empty() => "unknown".into(),
        None => format!("one of tx {}", numbers(x.sending.may_be.iter().copied())),
    };
    line(&format!("{number}out      "), &format!("{}     {}   {} -> {to}", x.dev, head_of(x.node), x.sending.by));
    if let Some(why) = &x.sending.why_not {
        let what = if x.sending.decision == TransmitDecision::Unknown { "unknown" } else { "not predictable" };
        line("    queue    ", &format!("{what}: {why}"));
    }
    if let (Some(q), Some(irq)) = (x.sending.queue, x.sending.irq) {
        let cpu = x
            .sending
            .cpu
            .as_ref()
            .map_or_else(|| "CPU not known".into(), |p| place(p, x.sending.pending_on.as_ref(), cores));
        line(&format!("    tx-{q:<6}"), &format!("completion by interrupt {irq} -> {cpu}"));
    }
    if let Some(b) = &x.sending.bql {
        line("    BQL      ", b);
    }
    for n in &x.sending.notes {
        line("             ", n);
    }
}

/// The path with and without RFS, a line each.
fn uses_of_rfs(s: &Snapshot, d: &Direction) -> Vec<String> {
    let Some(a) = &d.arrival else { return Vec::new() };
    let line = |p: RfsPath| {
        let now = if p.present { "   (now)" } else { "" };
        let name = format!("{}:", p.rfs);
        format!("{name:<22}{}{now}", along(s, format!("{} q{}", a.dev, p.queue), &p.stations))
    };
    rfs_paths(s, d).into_iter().map(line).collect()
}

/// One line with the stations and the boundaries between them.
fn drawing(s: &Snapshot, d: &Direction) -> String {
    let mut out = String::new();
    if let Some(a) = &d.arrival {
        let q = a.steering.queue.map_or_else(|| "q?".into(), |q| format!("q{q}"));
        out = format!("{} {q}", a.dev);
    }
    let mut out = along(s, out, &path_stages(d));
    if let Some(x) = &d.departure {
        if out.is_empty() {
            out.push_str("CPU ?");
        }
        let q = x.sending.queue.map_or_else(|| "tx?".into(), |q| format!("tx{q}"));
        out.push_str(&format!(" --> {} {q}", x.dev));
    }
    out
}

/// The stations after what the line begins with.
fn along(s: &Snapshot, mut out: String, stations: &[PathStage]) -> String {
    let mut last: Option<CpuId> = None;
    for (cpu, what) in stations.iter().copied() {
        if last == Some(cpu) {
            out.push_str(&format!(" + {what}"));
            continue;
        }
        let sign = match last {
            Some(l) if s.topology.node_of(l) != s.topology.node_of(cpu) => " || ",
            Some(l) if !s.topology.l3_of(l).contains(cpu) => " | ",
            _ if out.is_empty() => "",
            _ => " --> ",
        };
        let node = s.topology.node_of(cpu).map_or_else(String::new, |n| format!(" (node {n})"));
        out.push_str(&format!("{sign}CPU {cpu}{node} {what}"));
        last = Some(cpu);
    }
    out
}

fn body(o: &OneFlow) -> Value {
    json!({
        "kind": "flow",
        "flow": o.directions.first().map(|d| d.flow.to_string()),
        "what_if": o.what_if,
        "directions": o.directions,
        "crossings": o.crossings,
        "meeting": o.meeting,
        "unknown": o.unknown,
    })
}

/// The answer as `ringwise.explain`.
pub fn json(o: &OneFlow) -> Value {
    wrap(body(o))
}

pub(crate) fn wrap(body: Value) -> Value {
    serde_json::to_value(Document { schema: SCHEMA, version: 1, body }).unwrap_or_default()
}

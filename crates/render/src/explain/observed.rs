//! Counts that were observed for a flow, shown beside the prediction.

use std::collections::BTreeMap;

use ringwise_flow::chain::{Arrival, Direction, Work};
use ringwise_flow::stack::ReceivePath;
use ringwise_model::CpuId;
use ringwise_model::order::Order;
use serde_json::{Value, json};

use super::{OneFlow, body, wrap};
use ringwise_text::Style;
use ringwise_text::{hang, plural, thousands};

/// The sampled packets of the flow.
#[derive(Debug, Default)]
pub struct OfFlow {
    /// Packets by receive queue; `None`: the driver does not report the queue.
    pub queues: BTreeMap<Option<u32>, u64>,
    /// On average one of this many packets was sampled.
    pub one_in: u32,
    /// Packets that were not sampled because the buffer was full.
    pub lost: u64,
}

/// The counts of `--observe`.
#[derive(Debug)]
pub struct Observed {
    /// Length of the observation.
    pub seconds: f64,
    /// How often the program and its socket were inspected.
    pub looks: u32,
    /// `Err`: why packets could not be sampled.
    pub flow: Result<OfFlow, String>,
    /// Interrupts of receive queues, by CPU.
    pub queues: BTreeMap<u32, BTreeMap<CpuId, u64>>,
    /// Packets that the softirq of each CPU processed, and how often RPS woke it.
    pub cpus: BTreeMap<CpuId, (u32, u32)>,
    /// CPUs on which the program of the flow was seen running, and how often.
    pub program: BTreeMap<CpuId, u32>,
    /// CPUs on which the packets of the flow's socket arrived, and how often this was seen.
    pub incoming: BTreeMap<CpuId, u32>,
    /// Why `incoming` could not be read; `None`: it was read, or there is no socket.
    pub incoming_unread: Option<String>,
}

impl Default for Observed {
    fn default() -> Self {
        Self {
            seconds: 0.0,
            looks: 0,
            flow: Ok(OfFlow::default()),
            queues: BTreeMap::new(),
            cpus: BTreeMap::new(),
            program: BTreeMap::new(),
            incoming: BTreeMap::new(),
            incoming_unread: None,
        }
    }
}

fn times(by: &BTreeMap<CpuId, u32>) -> Vec<Value> {
    by.iter().map(|(c, n)| json!({"cpu": c, "times_seen": n})).collect()
}

/// The answer as `ringwise.explain`, with the member `observed`.
pub fn json(one: &OneFlow, o: &Observed) -> Value {
    let mut b = body(one);
    let counts =
        |by: &BTreeMap<CpuId, u64>| -> Vec<Value> { by.iter().map(|(c, n)| json!({"cpu": c, "count": n})).collect() };
    let queues: Vec<Value> = o.queues.iter().map(|(q, by)| json!({"queue": q, "interrupts": counts(by)})).collect();
    let cpus: Vec<Value> =
        o.cpus.iter().map(|(c, (p, r))| json!({"cpu": c, "packets": p, "woken_by_rps": r})).collect();
    let flow = match &o.flow {
        Ok(f) => {
            let queues: Vec<Value> = f.queues.iter().map(|(q, n)| json!({"queue": q, "packets": n})).collect();
            json!({"queues": queues, "one_in": f.one_in, "lost": f.lost, "unread": null})
        }
        Err(why) => json!({"queues": [], "one_in": 1, "lost": 0, "unread": why}),
    };
    b["observed"] = json!({
        "seconds": o.seconds, "looks": o.looks, "flow": flow, "queues": queues, "cpus": cpus,
        "program": times(&o.program), "incoming": times(&o.incoming), "incoming_unread": o.incoming_unread,
    });
    wrap(b)
}

/// The answer for people, with the observed counts beside the prediction.
pub fn text(one: &OneFlow, o: &Observed, style: &Style) -> String {
    let mut out = super::text(one, style);
    let arrival = one.directions.iter().find_map(|d| d.arrival.as_ref());
    let predicted = arrival.and_then(|a| a.steering.queue);
    let expect = arrival.and_then(|a| a.landing.as_ref()).and_then(ReceivePath::works_on);
    let mark = |is: bool| if is { "   <- predicted" } else { "" };
    out.push_str(&format!("\nThis flow in {} s:\n", o.seconds));
    match &o.flow {
        Err(why) => out.push_str(&hang("    packets  ", &format!("not sampled: {why}"), style.width)),
        Ok(f) => {
            if f.queues.is_empty() {
                out.push_str("    packets  none seen\n");
            }
            let every = if f.one_in <= 1 { String::new() } else { format!(" (one in {} sampled)", f.one_in) };
            for (q, n) in &f.queues {
                let by = q.map_or_else(|| "a queue that the driver does not report".into(), |q| format!("queue {q}"));
                let mark = mark(q.is_some() && *q == predicted);
                out.push_str(&format!("    packets  {} on {by}{every}{mark}\n", thousands(*n)));
            }
            if f.lost > 0 {
                out.push_str(&format!("    packets  {} not sampled: the buffer was full\n", thousands(f.lost)));
            }
        }
    }
    let looks = o.looks;
    if o.program.is_empty() {
        out.push_str("    program  no socket of this flow was seen\n");
    }
    for (c, n) in &o.incoming {
        out.push_str(&format!(
            "    socket   packets last arrived on CPU {c}, {n} of {looks} times{}\n",
            mark(expect == Some(*c))
        ));
    }
    if let Some(why) = &o.incoming_unread {
        out.push_str(&hang("    socket   ", &format!("the CPU of its packets could not be read: {why}"), style.width));
    }
    for (c, n) in &o.program {
        out.push_str(&format!("    program  on CPU {c}, {n} of {looks} times that it was inspected\n"));
    }
    out.push_str("All packets during this time:\n");
    let each = |by: &BTreeMap<CpuId, u64>| -> String {
        by.iter().map(|(c, n)| format!("CPU {c}: {}", thousands(*n))).collect::<Vec<_>>().join("  ")
    };
    for (q, by) in &o.queues {
        if by.is_empty() && predicted != Some(*q) {
            continue;
        }
        let seen = if by.is_empty() { "no interrupt".into() } else { each(by) };
        out.push_str(&format!("    queue {q:<3} interrupts  {seen}{}\n", mark(predicted == Some(*q))));
    }
    for (c, (packets, woken)) in &o.cpus {
        let rps =
            if *woken > 0 { format!(", woken by RPS {}", plural(*woken as usize, "time")) } else { String::new() };
        let mark = mark(expect == Some(*c));
        out.push_str(&format!("    CPU {c:<4} processed {}{rps}{mark}\n", plural(*packets as usize, "packet")));
    }
    out
}

/// Most lines of one kind below a station of the drawing.
const LINES: usize = 3;

/// One count below a station of the drawing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The count, and of what.
    pub(super) text: String,
    /// It is of another queue or CPU than the predicted one.
    pub(super) elsewhere: bool,
}

/// The first counts; the others are only in the text of the answer.
fn shortened(mut all: Vec<Seen>, what: &str) -> Vec<Seen> {
    let more = all.len().saturating_sub(LINES);
    if more > 0 {
        all.truncate(LINES);
        all.push(Seen { text: format!("and {}", plural(more, what)), elsewhere: true });
    }
    all
}

/// Packets of the flow by receive queue, the predicted queue first.
pub(super) fn at_queue(o: &Observed, a: &Arrival) -> Vec<Seen> {
    let flow = match &o.flow {
        Ok(flow) => flow,
        Err(why) => return vec![Seen { text: format!("packets not sampled: {why}"), elsewhere: false }],
    };
    let lost = || format!("{} not sampled: the buffer was full", thousands(flow.lost));
    let lost = (flow.lost > 0).then(|| Seen { text: lost(), elsewhere: false });
    if flow.queues.is_empty() {
        return std::iter::once(Seen { text: "no packet seen".into(), elsewhere: false }).chain(lost).collect();
    }
    let predicted = a.steering.queue;
    let mut all: Vec<(Option<u32>, u64)> = flow.queues.iter().map(|(q, n)| (*q, *n)).collect();
    all.order_by_key(|(q, _)| (q.is_none(), *q != predicted, *q));
    let every = if flow.one_in <= 1 { String::new() } else { format!(", one in {} sampled", flow.one_in) };
    let seen = all.into_iter().map(|(q, n)| {
        let on = q.map_or_else(|| "an unknown queue".into(), |q| format!("queue {q}"));
        let elsewhere = q.is_some() && predicted.is_some() && q != predicted;
        Seen { text: format!("{} on {on}{every}", plural(n as usize, "packet")), elsewhere }
    });
    shortened(seen.collect(), "more queue").into_iter().chain(lost).collect()
}

/// What was counted on a CPU of the path: interrupts of the queue and processed packets; for the program, on which CPUs it and the packets of
/// its socket were seen.
pub(super) fn at_station(o: &Observed, d: &Direction, cpu: CpuId, work: Work) -> Vec<Seen> {
    let here = |text: String| Seen { text, elsewhere: false };
    let landing = d.arrival.as_ref().and_then(|a| a.landing.as_ref());
    let mut out = Vec::new();
    if work == Work::Interrupt
        && let Some(by) = landing.and_then(|l| o.queues.get(&l.queue))
    {
        let n = by.get(&cpu).copied().unwrap_or(0);
        out.push(here(format!("{} of the queue", plural(n as usize, "interrupt"))));
        let others: u64 = by.iter().filter(|(c, _)| **c != cpu).map(|(_, n)| n).sum();
        if others > 0 {
            out.push(Seen { text: format!("{} on other CPUs", thousands(others)), elsewhere: true });
        }
    }
    if matches!(work, Work::Interrupt | Work::Rps | Work::Stack) {
        let (packets, woken) = o.cpus.get(&cpu).copied().unwrap_or_default();
        out.push(here(format!("{} processed", plural(packets as usize, "packet"))));
        if work == Work::Rps {
            out.push(here(format!("woken by RPS {}", plural(woken as usize, "time"))));
        }
    }
    if work == Work::Program {
        if o.program.is_empty() {
            out.push(here("no socket of this flow was seen".into()));
        }
        out.extend(times_seen(&o.program, "program", Some(cpu), o.looks));
        if let Some(why) = &o.incoming_unread {
            out.push(here(format!("CPU of its packets not read: {why}")));
        }
        out.extend(times_seen(&o.incoming, "its packets", landing.and_then(ReceivePath::works_on), o.looks));
    }
    out
}

fn times_seen(by: &BTreeMap<CpuId, u32>, what: &str, predicted: Option<CpuId>, looks: u32) -> Vec<Seen> {
    let seen = by.iter().map(|(c, n)| {
        let elsewhere = predicted.is_some_and(|p| p != *c);
        Seen { text: format!("{what}: CPU {c}, {n} of {looks} times"), elsewhere }
    });
    shortened(seen.collect(), "more CPU")
}

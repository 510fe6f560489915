//! Many flows: the load of each queue, and a better distribution.

use ringwise_flow::balance::{Balanced, balance};
use ringwise_flow::population::{heaviest_first, split_connections, spread};
use ringwise_flow::steering::NTUPLE;
use ringwise_flow::{CountedFlow, Spread, Steering};
use ringwise_model::{Fact, Nic, Snapshot};

use super::population::Population;
use super::{ExplainContext, one, seen};
use crate::exit::{Fail, Result, Status};
use crate::out;
use ringwise_render::explain::many::{self, FlowSetReport, Isolated};

pub(super) fn run(cx: &mut ExplainContext, mut p: Population) -> Result<Status> {
    let dev = cx.interface()?;
    if cx.a.vlan.is_some() {
        p.flows.iter_mut().for_each(|f| f.tuple.vlan = f.tuple.vlan.or(cx.a.vlan));
    }
    cx.apply_what_if(&dev)?;
    let find = |s: &'_ Snapshot| s.nic(&dev).cloned().ok_or_else(|| Fail::error(format!("{dev}: no such interface")));
    let nic = find(&cx.now)?;
    let steering = Steering::new(&nic, &cx.key);
    if cx.a.plain {
        let (s, nic) = (cx.host(), find(cx.host())?);
        let steering = Steering::new(&nic, &cx.key).by_queue(one::requested_queue(cx, &nic)?);
        return out::answer(&many::plain(s, &nic, &steering, &p.flows)).map(|()| Status::Ok);
    }
    let now = spread(&cx.now, &nic, &steering, &p.flows);
    p.notes.extend(steering.assumed().iter().cloned());
    p.notes.extend(seen::agreement(&steering, &p.seen));
    let then = match &cx.then {
        Some(s) => {
            let nic = find(s)?;
            Some(spread(s, &nic, &Steering::new(&nic, &cx.key), &p.flows))
        }
        None => None,
    };
    // Proposals are based on the present state, including `--what-if`.
    let nic = find(cx.host())?;
    let steering = Steering::new(&nic, &cx.key);
    let better = cx.a.balance.map(|target| balanced(&nic, &steering, &p.flows, target, &mut p.notes)).transpose()?;
    let isolated = better.as_ref().and_then(|b| isolated(&nic, &steering, &p.flows, b));
    let m = FlowSetReport {
        host: &cx.now,
        nic: &nic,
        advice: advice(cx.host(), &nic, &cx.key, &steering, &p.flows, then.as_ref().unwrap_or(&now)),
        now,
        then,
        balanced: better,
        isolated,
        from: &p.from,
        notes: &p.notes,
        uncounted: p.uncounted,
        what_if: &cx.a.what_if,
        doubt: ringwise_flow::steering::ignored_table_warning(&nic),
        recorded_by: cx.source.recorded_by.as_ref(),
    };
    if cx.a.format.json(cx.common) {
        out::json(&many::json(&m))?;
    } else {
        out::answer(&many::text(&m, &crate::style::detect(cx.common).about(&cx.source.recording)))?;
    }
    Ok(Status::Ok)
}

/// How packets are distributed.
struct Loads {
    entries: Vec<u64>,
    /// By queue: packets that reach it without the indirection table.
    fixed: Vec<u64>,
    /// Packets of flows whose table entry or queue is unknown.
    unknown: u64,
}

fn loads(steering: &Steering, flows: &[CountedFlow]) -> Loads {
    let entries = vec![0; steering.table().len()];
    let mut l = Loads { entries, fixed: vec![0; steering.queues().unwrap_or(0) as usize], unknown: 0 };
    for f in flows {
        // A device that steers by itself does not use the table.
        let to = steering.queue(&f.tuple).and_then(|q| match steering.is_ruled(&f.tuple) {
            true => l.fixed.get_mut(q as usize),
            false => l.entries.get_mut(steering.bucket(&f.tuple)?),
        });
        *to.unwrap_or(&mut l.unknown) += f.packets;
    }
    l
}

fn balanced(
    nic: &Nic,
    steering: &Steering,
    flows: &[CountedFlow],
    target: f64,
    notes: &mut Vec<String>,
) -> Result<Balanced> {
    let name = nic.name();
    if steering.table().is_empty() {
        return Err(Fail::error(format!("{name} has no known indirection table: nothing can be moved")));
    }
    let Some(queues) = steering.queues() else {
        return Err(Fail::error(format!(
            "{name}: the number of its receive queues is unknown: nothing can be proposed"
        )));
    };
    let l = loads(steering, flows);
    let all: u64 = flows.iter().map(|f| f.packets).sum();
    let why = || {
        let why = flows.iter().find_map(|f| steering.answer(&f.tuple).why_not);
        why.map_or_else(|| "the reason is unknown".to_string(), |why| why.to_string())
    };
    if l.unknown == all && all > 0 {
        return Err(Fail::error(format!("{name}: no flow's entry is known ({}): nothing can be proposed", why())));
    }
    if l.unknown > 0 {
        let percent = l.unknown as f64 * 100.0 / all as f64;
        notes.push(format!(
            "{percent:.1} % of the packets are of flows whose entry is not known ({}): the proposal ignores them",
            why()
        ));
    }
    Ok(balance(steering.table(), &l.entries, &l.fixed, queues, |_| true, target))
}

/// Steering rules for flows that exceed a queue's share; the table then leaves out their queues.
fn isolated(nic: &Nic, steering: &Steering, flows: &[CountedFlow], b: &Balanced) -> Option<Isolated> {
    let queues = steering.queues()?;
    let ntuple = nic.features.known().and_then(|f| f.get(NTUPLE)).filter(|f| f.on || !f.fixed)?;
    if b.reached() || !matches!(nic.rules, Fact::Known(_)) || queues < 3 {
        return None;
    }
    let total: u64 = flows.iter().map(|f| f.packets).sum();
    let mean = total as f64 / f64::from(queues);
    let heavy =
        |f: &CountedFlow| f.packets as f64 > mean * b.target && !f.tuple.fragment && !steering.is_ruled(&f.tuple);
    let heavy = flows.iter().map(|f| f.packets).enumerate().filter(|(at, _)| heavy(&flows[*at]));
    let elephants: Vec<CountedFlow> =
        heaviest_first(heavy).into_iter().take(queues as usize / 2).map(|at| flows[at]).collect();
    if elephants.is_empty() {
        return None;
    }
    let left = queues - elephants.len() as u32;
    let others: Vec<CountedFlow> = flows.iter().filter(|f| !elephants.contains(f)).copied().collect();
    let Loads { entries: loads, fixed, .. } = loads(steering, &others);
    // Entries of the reserved queues are distributed first, each to the queue with the least load.
    let mut table = steering.table().to_vec();
    let mut sums = fixed.clone();
    sums.truncate(left as usize);
    for (e, q) in table.iter().enumerate().filter(|(_, q)| **q < left) {
        sums[*q as usize] += loads[e];
    }
    let without_queue = (0..table.len()).filter(|e| table[*e] >= left).map(|e| (e, loads[e]));
    for e in heaviest_first(without_queue) {
        let q = (0..sums.len()).min_by_key(|q| (sums[*q], *q))?;
        sums[q] += loads[e];
        table[e] = q as u32;
    }
    let rest = balance(&table, &loads, &fixed, left, |q| q < left, b.target);
    let rules = elephants.iter().zip(left..).map(|(f, q)| (*f, rule(f, q), q)).collect();
    let moves = steering.table().iter().zip(&rest.table).filter(|(a, b)| a != b).count();
    Some(Isolated { rules, table: rest.table, others_to_mean: rest.after, moves, ntuple_off: !ntuple.on })
}

fn rule(f: &CountedFlow, queue: u32) -> String {
    let t = &f.tuple;
    let ends = format!("src-ip {} dst-ip {}", t.src, t.dst);
    match t.ports {
        Some((s, d)) => format!("{} {ends} src-port {s} dst-port {d} action {queue}", t.flow_type()),
        None => format!("{} {ends} l4proto {} action {queue}", t.flow_type(), t.protocol),
    }
}

/// Advice that the population gives reason for.
fn advice(
    s: &Snapshot,
    nic: &Nic,
    key: &Fact<String>,
    steering: &Steering,
    flows: &[CountedFlow],
    now: &Spread,
) -> Vec<String> {
    let mut out = Vec::new();
    let total: u64 = flows.iter().map(|f| f.packets).sum();
    for kind in ["udp4", "udp6"] {
        let mine: u64 = flows.iter().filter(|f| f.tuple.flow_type() == kind).map(|f| f.packets).sum();
        let Some(r) = nic.rss.known().filter(|r| r.fields.get(kind).is_some_and(|l| l == "sd")) else { continue };
        // One fifth, as in the rule that checks counters for the same problem.
        if total == 0 || mine * 5 < total {
            continue;
        }
        let mut with = nic.clone();
        let mut rss = r.clone();
        rss.fields.insert(kind.into(), "sdfn".into());
        with.rss = Fact::Known(rss);
        let better = spread(s, &with, &Steering::new(&with, key), flows);
        if let (Some(a), Some(b)) = (&now.evenness, &better.evenness)
            && b.max_to_mean < a.max_to_mean * 0.95
        {
            out.push(format!(
                "{kind} is hashed by addresses only: with ports, max/mean would be {:.2} instead of {:.2} \
                 (--set {}.rss.fields.{kind}=sdfn; fragments then go to other queues than whole packets)",
                b.max_to_mean,
                a.max_to_mean,
                nic.name()
            ));
        }
    }
    if s.host.forwarding.known() == Some(&true) && !steering.is_symmetric() {
        let (apart, known) = split_connections(steering, flows);
        if apart > 0 {
            let can = nic.rss.known().is_some_and(|r| r.symmetric.is_known());
            let how = if can {
                format!("--set {}.rss.symmetric=symmetric-xor", nic.name())
            } else {
                "a key that repeats every 16 bits".into()
            };
            out.push(format!(
                "this host forwards, and the two directions of {apart} of {known} flows have different queue numbers: \
                 a symmetric hash ({how}) would bring them together"
            ));
        }
    }
    out
}

//! Counts that were observed for a flow, shown beside the prediction.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_flow::chain::{Arrival, CpuWork, Direction};
use ringwise_flow::stack::ReceivePath;
use ringwise_model::order::Order;
use ringwise_model::{CpuId, CpuSet, Napi, NodeId, Snapshot, Topology};
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
    /// NAPI instances that received the packets of the flow's socket, and how often this was seen.
    pub napis: BTreeMap<u32, u32>,
    /// CPUs that the program may use; `None`: unknown, or no program was seen.
    pub permitted: Option<CpuSet>,
    /// How often the nodes of both CPUs were known. Always 0 on hosts with one node.
    pub nodes_compared: u32,
    /// How often of these the packets arrived on another node than the one where the program ran.
    pub remote: u32,
    /// Nodes on which the packets of the flow's socket arrived. Empty on hosts with one node.
    pub arrival_nodes: BTreeSet<NodeId>,
}

impl Observed {
    /// Adds what was seen at the socket once: the CPU and the NAPI instance of its last packet, and the CPU of its program.
    pub fn add_socket_observation(
        &mut self,
        cpu: Option<CpuId>,
        napi: Option<u32>,
        program: Option<CpuId>,
        host: &Snapshot,
    ) {
        if let Some(cpu) = cpu {
            *self.incoming.entry(cpu).or_default() += 1;
        }
        if let Some(id) = napi {
            *self.napis.entry(id).or_default() += 1;
        }
        if !several_nodes(&host.topology) {
            return;
        }
        let node = |cpu: Option<CpuId>| cpu.and_then(|c| host.topology.node_of(c));
        // With RPS or RFS, `cpu` is the CPU that they chose.
        let arrived = napi.and_then(|id| node_of_napi(host, id)).or_else(|| node(cpu));
        self.arrival_nodes.extend(arrived);
        if let (Some(packets), Some(program)) = (arrived, node(program)) {
            self.nodes_compared += 1;
            self.remote += u32::from(packets != program);
        }
    }
}

/// Node of the CPUs that get the interrupt of the NAPI instance. `None`: it is not one known node, or a thread polls instead, which may
/// run elsewhere.
fn node_of_napi(host: &Snapshot, id: u32) -> Option<NodeId> {
    let mut vectors = host.nics.iter().flat_map(|n| n.vectors.iter().map(move |v| (n, v)));
    let (nic, vector) = vectors.find(|(_, v)| v.napi == Some(id))?;
    let polled = |n: &Napi| {
        n.device.threaded.is_some_and(|t| t > 0) || n.instances.iter().any(|i| i.id == id && i.thread.is_some())
    };
    if nic.napi.known().is_some_and(polled) {
        return None;
    }
    let nodes: BTreeSet<_> = vector.effective.known()?.iter().map(|c| host.topology.node_of(c)).collect();
    nodes.first().copied().flatten().filter(|_| nodes.len() == 1)
}

fn several_nodes(topology: &Topology) -> bool {
    topology.nodes.known().is_some_and(|nodes| nodes.len() > 1)
}

/// `CPU 3`; on hosts with several nodes `CPU 3 (node 0)`.
fn place(topology: &Topology, cpu: CpuId) -> String {
    match topology.node_of(cpu).filter(|_| several_nodes(topology)) {
        Some(node) => format!("CPU {cpu} (node {node})"),
        None => format!("CPU {cpu}"),
    }
}

/// Receive queues of the NAPI instance. Empty: the kernel does not report them.
fn queues_of(one: &OneFlow, napi: u32) -> Vec<u32> {
    let nic = one.directions.iter().find_map(|d| d.arrival.as_ref()).and_then(|a| one.host.nic(&a.dev));
    let vector = nic.and_then(|n| n.vectors.iter().find(|v| v.napi == Some(napi)));
    vector.map_or_else(Vec::new, |v| v.rx().to_vec())
}

/// `CPU 3`, `CPUs 2-3`
fn named(cpus: &CpuSet) -> String {
    format!("{} {cpus}", if cpus.len() == 1 { "CPU" } else { "CPUs" })
}

/// On hosts with several nodes, whether the packets arrive where the program runs, and whether it may run there.
fn about_nodes(one: &OneFlow, o: &Observed) -> Option<String> {
    if o.nodes_compared == 0 {
        return None;
    }
    let (remote, compared) = (o.remote, o.nodes_compared);
    if remote == 0 {
        return Some(format!("the program ran on the node where its packets arrived, {compared} of {compared} times"));
    }
    let topology = &one.host.topology;
    let there = |c| topology.node_of(c).is_some_and(|n| o.arrival_nodes.contains(&n));
    let may = o.permitted.as_ref().map(|cpus| cpus.iter().any(there));
    let how = match (may, &o.permitted) {
        (Some(false), Some(cpus)) => format!("; it may use {} only, not on the node of its packets", named(cpus)),
        (Some(true), Some(cpus)) => format!("; it may use {}, also on the node of its packets", named(cpus)),
        _ => String::new(),
    };
    Some(format!(
        "the program ran on another node than the one where its packets arrived, {remote} of {compared} times{how}"
    ))
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
            napis: BTreeMap::new(),
            permitted: None,
            nodes_compared: 0,
            remote: 0,
            arrival_nodes: BTreeSet::new(),
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
    let napi = |(id, n): (&u32, &u32)| json!({"napi": id, "queues": queues_of(one, *id), "times_seen": n});
    let napis: Vec<Value> = o.napis.iter().map(napi).collect();
    b["observed"] = json!({
        "seconds": o.seconds, "looks": o.looks, "flow": flow, "queues": queues, "cpus": cpus,
        "program": times(&o.program), "incoming": times(&o.incoming), "incoming_unread": o.incoming_unread,
        "incoming_napi": napis, "permitted_cpus": o.permitted, "nodes_compared": o.nodes_compared, "remote": o.remote,
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
    let topology = &one.host.topology;
    for (c, n) in &o.incoming {
        let at = place(topology, *c);
        out.push_str(&format!(
            "    socket   packets last arrived on {at}, {n} of {looks} times{}\n",
            mark(expect == Some(*c))
        ));
    }
    for (id, n) in &o.napis {
        let queues = queues_of(one, *id);
        let by = match queues.as_slice() {
            [] => format!("NAPI {id}, whose queue the kernel does not report"),
            [q] => format!("queue {q} (NAPI {id})"),
            all => format!("queues {} (NAPI {id})", all.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        };
        let mark = mark(predicted.is_some_and(|q| queues.contains(&q)));
        out.push_str(&format!("    socket   packets last came from {by}, {n} of {looks} times{mark}\n"));
    }
    if let Some(why) = &o.incoming_unread {
        out.push_str(&hang("    socket   ", &format!("the CPU of its packets could not be read: {why}"), style.width));
    }
    for (c, n) in &o.program {
        let at = place(topology, *c);
        out.push_str(&format!("    program  on {at}, {n} of {looks} times that it was inspected\n"));
    }
    if let Some(text) = about_nodes(one, o) {
        out.push_str(&hang("    nodes    ", &text, style.width));
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
pub(super) struct ObservedCount {
    /// The count, and of what.
    pub(super) text: String,
    /// It is of another queue or CPU than the predicted one.
    pub(super) elsewhere: bool,
}

/// The first counts; the others are only in the text of the answer.
fn shortened(mut all: Vec<ObservedCount>, what: &str) -> Vec<ObservedCount> {
    let more = all.len().saturating_sub(LINES);
    if more > 0 {
        all.truncate(LINES);
        all.push(ObservedCount { text: format!("and {}", plural(more, what)), elsewhere: true });
    }
    all
}

/// Packets of the flow by receive queue, the predicted queue first.
pub(super) fn at_queue(o: &Observed, a: &Arrival) -> Vec<ObservedCount> {
    let flow = match &o.flow {
        Ok(flow) => flow,
        Err(why) => return vec![ObservedCount { text: format!("packets not sampled: {why}"), elsewhere: false }],
    };
    let lost = || format!("{} not sampled: the buffer was full", thousands(flow.lost));
    let lost = (flow.lost > 0).then(|| ObservedCount { text: lost(), elsewhere: false });
    if flow.queues.is_empty() {
        return std::iter::once(ObservedCount { text: "no packet seen".into(), elsewhere: false })
            .chain(lost)
            .collect();
    }
    let predicted = a.steering.queue;
    let mut all: Vec<(Option<u32>, u64)> = flow.queues.iter().map(|(q, n)| (*q, *n)).collect();
    all.order_by_key(|(q, _)| (q.is_none(), *q != predicted, *q));
    let every = if flow.one_in <= 1 { String::new() } else { format!(", one in {} sampled", flow.one_in) };
    let seen = all.into_iter().map(|(q, n)| {
        let on = q.map_or_else(|| "an unknown queue".into(), |q| format!("queue {q}"));
        let elsewhere = q.is_some() && predicted.is_some() && q != predicted;
        ObservedCount { text: format!("{} on {on}{every}", plural(n as usize, "packet")), elsewhere }
    });
    shortened(seen.collect(), "more queue").into_iter().chain(lost).collect()
}

/// What was counted on a CPU of the path: interrupts of the queue and processed packets; for the program, on which CPUs it and the packets of
/// its socket were seen.
pub(super) fn at_station(o: &Observed, d: &Direction, cpu: CpuId, work: CpuWork) -> Vec<ObservedCount> {
    let here = |text: String| ObservedCount { text, elsewhere: false };
    let landing = d.arrival.as_ref().and_then(|a| a.landing.as_ref());
    let mut out = Vec::new();
    if work == CpuWork::Interrupt
        && let Some(by) = landing.and_then(|l| o.queues.get(&l.queue))
    {
        let n = by.get(&cpu).copied().unwrap_or(0);
        out.push(here(format!("{} of the queue", plural(n as usize, "interrupt"))));
        let others: u64 = by.iter().filter(|(c, _)| **c != cpu).map(|(_, n)| n).sum();
        if others > 0 {
            out.push(ObservedCount { text: format!("{} on other CPUs", thousands(others)), elsewhere: true });
        }
    }
    if matches!(work, CpuWork::Interrupt | CpuWork::Rps | CpuWork::Stack) {
        let (packets, woken) = o.cpus.get(&cpu).copied().unwrap_or_default();
        out.push(here(format!("{} processed", plural(packets as usize, "packet"))));
        if work == CpuWork::Rps {
            out.push(here(format!("woken by RPS {}", plural(woken as usize, "time"))));
        }
    }
    if work == CpuWork::Program {
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

fn times_seen(by: &BTreeMap<CpuId, u32>, what: &str, predicted: Option<CpuId>, looks: u32) -> Vec<ObservedCount> {
    let seen = by.iter().map(|(c, n)| {
        let elsewhere = predicted.is_some_and(|p| p != *c);
        ObservedCount { text: format!("{what}: CPU {c}, {n} of {looks} times"), elsewhere }
    });
    shortened(seen.collect(), "more CPU")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::draw::tests::arriving;
    use ringwise_flow::chain::{self, FlowRoute, Route};
    use ringwise_flow::{FlowSpec, Steering};
    use ringwise_model::{Fact, NapiValues};
    use ringwise_testkit::machines::{NicSpec, host};
    use ringwise_testkit::topo::CpuSpec;

    /// Lines below "This flow in", and the member `observed`. `packages`: each is a node with two CPUs.
    fn observed(packages: u32, seen: impl Fn(&mut Observed, &Snapshot)) -> (Vec<String>, Value) {
        let cpus = CpuSpec { packages, ..CpuSpec::flat(2, 1) };
        let mut s = host("h", cpus, vec![NicSpec::new("eth0", "ice", Some(0), 2, 2)]).snapshot();
        s.nics[0].vectors.iter_mut().filter(|v| v.rx() == [1]).for_each(|v| v.napi = Some(8194));
        let flow = "10.0.0.1:5-10.0.0.2:80/tcp".parse::<FlowSpec>().unwrap().exact().unwrap();
        let way = FlowRoute { route: Route::ToThisHost, local: true, out: None, socket: None };
        let steering = Steering::new(&s.nics[0], &Fact::Absent).by_queue(Some(1));
        let directions = vec![chain::incoming(&s, &s.nics[0], &steering, &flow, way)];
        let mut o = Observed { looks: 20, ..Observed::default() };
        seen(&mut o, &s);
        let one = arriving(&s, directions);
        let text = text(&one, &o, &Style::plain(None));
        let (_, after) = text.split_once("This flow in").unwrap();
        let lines = after.lines().filter(|l| ["socket ", "program ", "nodes "].iter().any(|w| l.trim().starts_with(w)));
        (lines.map(|l| l.trim().to_string()).collect(), json(&one, &o)["observed"].clone())
    }

    #[test]
    fn a_program_on_another_node_than_its_packets() {
        let remote = |permitted: &str| {
            observed(2, |o, s| {
                o.add_socket_observation(Some(CpuId(0)), Some(8194), Some(CpuId(2)), s);
                o.add_socket_observation(Some(CpuId(0)), Some(9000), Some(CpuId(1)), s);
                o.add_socket_observation(None, None, Some(CpuId(1)), s);
                o.program = [(CpuId(2), 1), (CpuId(1), 2)].into();
                o.permitted = Some(permitted.parse().unwrap());
            })
        };
        let (lines, json) = remote("2-3");
        assert!(lines[0].starts_with("socket   packets last arrived on CPU 0 (node 0), 2 of 20 times"), "{lines:?}");
        assert_eq!(
            lines[1..],
            [
                "socket   packets last came from queue 1 (NAPI 8194), 1 of 20 times   <- predicted",
                "socket   packets last came from NAPI 9000, whose queue the kernel does not report, 1 of 20 times",
                "program  on CPU 1 (node 0), 2 of 20 times that it was inspected",
                "program  on CPU 2 (node 1), 1 of 20 times that it was inspected",
                "nodes    the program ran on another node than the one where its packets arrived, 1 of 2 times; it may \
                 use CPUs 2-3 only, not on the node of its packets",
            ]
        );
        assert_eq!(
            (&json["nodes_compared"], &json["remote"], &json["permitted_cpus"]),
            (&json!(2), &json!(1), &json!("2-3"))
        );
        assert_eq!(json["incoming_napi"][0], json!({"napi": 8194, "queues": [1], "times_seen": 1}));
        let last = |permitted| remote(permitted).0.pop().unwrap();
        assert!(last("1-3").ends_with("; it may use CPUs 1-3, also on the node of its packets"), "{}", last("1-3"));
        assert!(last("3").ends_with("; it may use CPU 3 only, not on the node of its packets"), "{}", last("3"));
    }

    #[test]
    fn nodes_are_named_only_where_there_are_several() {
        let seen = |o: &mut Observed, s: &Snapshot| {
            o.add_socket_observation(Some(CpuId(0)), None, Some(CpuId(1)), s);
            o.program = [(CpuId(1), 1)].into();
        };
        let (lines, json) = observed(1, seen);
        assert!(lines.iter().all(|l| !l.contains("node")) && json["nodes_compared"] == 0, "{lines:?}");
        let (lines, _) = observed(2, seen);
        assert_eq!(
            lines.last().unwrap(),
            "nodes    the program ran on the node where its packets arrived, 1 of 1 times"
        );
    }

    #[test]
    fn the_node_of_the_interrupt_counts_and_not_that_of_the_cpu_that_rps_chose() {
        let cpus = CpuSpec { packages: 2, ..CpuSpec::flat(2, 1) };
        let mut s = host("h", cpus, vec![NicSpec::new("eth0", "ice", Some(0), 2, 2)]).snapshot();
        let remote = |s: &Snapshot, napi| {
            let mut o = Observed::default();
            o.add_socket_observation(Some(CpuId(0)), napi, Some(CpuId(1)), s);
            (o.nodes_compared, o.remote, o.arrival_nodes.into_iter().collect::<Vec<_>>())
        };
        let (here, there) = ((1, 0, vec![NodeId(0)]), (1, 1, vec![NodeId(1)]));
        let v = s.nics[0].vectors.iter().position(|v| v.rx() == [1]).unwrap();
        s.nics[0].vectors[v].napi = Some(8194);
        s.nics[0].vectors[v].effective = Fact::Known("3".parse().unwrap());
        assert_eq!(
            (remote(&s, Some(8194)), remote(&s, Some(9000)), remote(&s, None)),
            (there, here.clone(), here.clone())
        );
        s.nics[0].vectors[v].effective = Fact::Known("1,3".parse().unwrap());
        assert_eq!(remote(&s, Some(8194)), here, "CPUs of two nodes");
        s.nics[0].vectors[v].effective = Fact::Known("3".parse().unwrap());
        let device = NapiValues { threaded: Some(1), ..NapiValues::default() };
        s.nics[0].napi = Fact::Known(Napi { device, instances: Vec::new() });
        assert_eq!(remote(&s, Some(8194)), here, "a thread polls");
    }
}

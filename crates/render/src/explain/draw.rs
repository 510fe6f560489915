//! The path of a flow as SVG: a row of stations for each direction, coloured by node.

use ringwise_flow::chain::{Direction, stations};
use ringwise_flow::rfs_paths::{RfsPath, rfs_paths};
use ringwise_model::{CpuId, Snapshot};

use super::OneFlow;
use ringwise_draw::canvas::{Area, Canvas, FAINT, Font, INK, Ink, PAGE, at, wrap};
use ringwise_draw::{MONO, Size};

const BOX: (f64, f64) = (150.0, 46.0);
const GAP: f64 = 46.0;
const MARGIN: f64 = 20.0;
const NODES: [&str; 6] = ["#e3eefc", "#fdebd8", "#e2f4e4", "#f6e4f3", "#f3f1d6", "#e6e6ee"];
const CROSSED: &str = "#c2410c";

struct Stop {
    title: String,
    below: String,
    node: Option<u32>,
    cpu: Option<CpuId>,
}

fn row(s: &Snapshot, d: &Direction) -> Vec<Stop> {
    let mut out = Vec::new();
    if let Some(a) = &d.arrival {
        let below = match (a.steering.queue, a.steering.rule) {
            (Some(q), Some(r)) => format!("rule {r}: queue {q}"),
            (Some(q), None) => format!("queue {q}"),
            (None, _) => "queue not known".into(),
        };
        out.push(Stop { title: a.dev.clone(), below, node: a.node, cpu: None });
    }
    for (cpu, what) in stations(d) {
        // The transmit completion is drawn after its device.
        if what == "completion" {
            continue;
        }
        let node = s.topology.node_of(cpu).map(|n| n.0);
        out.push(Stop { title: format!("CPU {cpu}"), below: what.into(), node, cpu: Some(cpu) });
    }
    if let Some(x) = &d.departure {
        let below = x.sending.queue.map_or_else(|| "queue not known".into(), |q| format!("tx-{q}"));
        out.push(Stop { title: x.dev.clone(), below, node: x.node, cpu: None });
        if let Some(p) = &x.sending.cpu {
            let node = p.node.map(|n| n.0);
            out.push(Stop { title: format!("CPU {}", p.cpu), below: "completion".into(), node, cpu: Some(p.cpu) });
        }
    }
    out
}

/// The rows of a received flow without RFS, with it, and with accelerated RFS.
fn uses_of_rfs(s: &Snapshot, d: &Direction) -> Vec<(RfsPath, Vec<Stop>)> {
    let Some(a) = &d.arrival else { return Vec::new() };
    let rows = rfs_paths(s, d).into_iter().map(|p| {
        let mut out = vec![Stop { title: a.dev.clone(), below: format!("queue {}", p.queue), node: a.node, cpu: None }];
        for (cpu, what) in &p.stations {
            let node = s.topology.node_of(*cpu).map(|n| n.0);
            match out.last_mut().filter(|last| last.cpu == Some(*cpu)) {
                Some(last) => last.below = format!("{}, {what}", last.below),
                None => out.push(Stop { title: format!("CPU {cpu}"), below: (*what).into(), node, cpu: Some(*cpu) }),
            }
        }
        (p, out)
    });
    rows.collect()
}

/// The boundary between two stations, if any. `last`: the CPU of the last station that has one; devices have none.
fn between(s: &Snapshot, a: &Stop, b: &Stop, last: Option<CpuId>) -> Option<&'static str> {
    match (a.node, b.node) {
        (Some(x), Some(y)) if x != y => return Some("node"),
        _ => {}
    }
    let (x, y) = (last?, b.cpu?);
    (!s.topology.l3_of(x).contains(y)).then_some("L3")
}

/// The picture of one flow, as an SVG document.
pub fn svg(o: &OneFlow) -> String {
    let mut c = Canvas::default();
    let mut y = MARGIN;
    for d in &o.directions {
        c.text(at(MARGIN, y + 8.0), &d.flow.to_string(), &Font::left(14.0, INK).bold());
        y += 30.0;
        y = stops(&mut c, o.host, &row(o.host, d), y);
        for (p, stops_of) in uses_of_rfs(o.host, d) {
            let now = if p.present { " (now)" } else { "" };
            c.text(at(MARGIN, y), &format!("{}{now}", p.rfs), &Font::left(11.0, INK));
            y = stops(&mut c, o.host, &stops_of, y + 14.0);
        }
    }
    let notes = o.crossings.iter().cloned().chain(o.unknown.iter().map(|u| format!("Not known: {u}")));
    for note in notes {
        for line in wrap(&note, 11.0, 900.0) {
            c.text(at(MARGIN, y + 6.0), &line, &Font::left(11.0, INK));
            y += 17.0;
        }
    }
    let size = Size { w: (c.right + MARGIN).ceil(), h: (c.bottom.max(y) + MARGIN).ceil() };
    let title = o.directions.first().map_or_else(String::new, |d| d.flow.to_string());
    ringwise_draw::document(c, size, &format!("{title}: its path through the host"), MONO)
}

/// Draws a row, and returns where the next one begins.
fn stops(c: &mut Canvas, s: &Snapshot, all: &[Stop], y: f64) -> f64 {
    for (i, st) in all.iter().enumerate() {
        let x = MARGIN + i as f64 * (BOX.0 + GAP);
        let fill = st.node.map_or(PAGE, |n| NODES[n as usize % NODES.len()]);
        c.rect(Area { x, y, w: BOX.0, h: BOX.1 }, 6.0, &Ink::filled(fill, FAINT), &st.below);
        c.text(at(x + BOX.0 / 2.0, y + 14.0), &st.title, &Font::left(13.0, INK).bold().middle());
        let node = st.node.map_or_else(|| "node unknown".into(), |n| format!("node {n}"));
        c.text(at(x + BOX.0 / 2.0, y + 33.0), &format!("{}, {node}", st.below), &Font::left(9.5, FAINT).middle());
        if let Some(next) = all.get(i + 1) {
            let mid = y + BOX.1 / 2.0;
            let last = all[..=i].iter().rev().find_map(|s| s.cpu);
            let cross = between(s, st, next, last);
            let color = if cross.is_some() { CROSSED } else { FAINT };
            let (from, to) = (x + BOX.0, x + BOX.0 + GAP);
            let ink = Ink::line(color, if cross.is_some() { 2.5 } else { 1.5 }, "");
            c.line(&[at(from, mid), at(to - 2.0, mid)], &ink);
            c.line(&[at(to - 9.0, mid - 5.0), at(to - 2.0, mid), at(to - 9.0, mid + 5.0)], &ink);
            if let Some(what) = cross {
                c.text(at(from + GAP / 2.0, mid - 11.0), what, &Font::left(9.5, CROSSED).bold().middle());
            }
        }
    }
    y + BOX.1 + 18.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringwise_flow::chain::{self, FlowRoute, Route, Socket};
    use ringwise_flow::{FlowSpec, Steering};
    use ringwise_model::{CpuSet, Fact};
    use ringwise_testkit::machines::{NicSpec, host};
    use ringwise_testkit::topo::CpuSpec;

    /// One queue on CPU 1; the program runs on CPU 3.
    #[test]
    fn without_and_with_rfs_are_drawn_below_each_other() {
        let mut s = host("h", CpuSpec::flat(4, 1), vec![NicSpec::new("eth0", "ice", Some(0), 1, 1)]).snapshot();
        s.host.rps_sock_flow_entries = Fact::Known(0);
        s.nics[0].vectors.iter_mut().for_each(|v| v.effective = Fact::Known(CpuSet::one(CpuId(1))));
        let flow = "10.0.0.1:5-10.0.0.2:80/tcp".parse::<FlowSpec>().unwrap().exact().unwrap();
        let socket = Socket { kind: "connection", program: None, pid: None, last_cpu: Some(CpuId(3)) };
        let way = FlowRoute { route: Route::ToThisHost, local: true, out: None, socket: Some(socket) };
        let steering = Steering::new(&s.nics[0], &Fact::Absent);
        let directions = vec![chain::incoming(&s, &s.nics[0], &steering, &flow, way)];
        let one = OneFlow {
            host: &s,
            directions,
            crossings: Vec::new(),
            meeting: None,
            unknown: Vec::new(),
            forwarding: None,
            through: false,
            what_if: &[],
            recorded_by: None,
        };
        let svg = svg(&one);
        let after = |text: &str, part: &'static str| {
            let (_, rest) = text.split_once(part).unwrap_or_else(|| panic!("no {part} in {text}"));
            rest.to_string()
        };
        let without = after(&svg, "without RFS (now)");
        let (row, with) = without.split_once("with RFS").unwrap();
        assert!(row.contains("interrupt, stack, node 0") && row.contains("program, node 0"), "{row}");
        assert!(with.contains("interrupt, node 0") && with.contains("stack, program, node 0"), "{with}");
        assert!(!svg.contains("accelerated"), "there is one queue");
        let text = super::super::text(&one, &ringwise_text::Style::plain(None));
        assert!(
            text.contains(
                "without RFS:          eth0 q0 --> CPU 1 (node 0) interrupt + stack --> CPU 3 (node 0) program   (now)"
            ),
            "{text}"
        );
    }
}

//! The path of a flow as SVG: a row of stations for each direction, coloured by node.

use ringwise_flow::chain::{Direction, stations};
use ringwise_model::{CpuId, Snapshot};

use super::OneFlow;
use ringwise_draw::canvas::{Area, Canvas, FAINT, Font, INK, Ink, PAGE, at, wrap};
use ringwise_draw::{MONO, Size};

const BOX: (f64, f64) = (150.0, 46.0);
const GAP: f64 = 46.0;
const MARGIN: f64 = 20.0;
const NODES: [&str; 6] = ["#e3eefc", "#fdebd8", "#e2f4e4", "#f6e4f3", "#f3f1d6", "#e6e6ee"];
const CROSSED: &str = "#c2410c";

struct Station {
    title: String,
    below: String,
    node: Option<u32>,
    cpu: Option<CpuId>,
}

fn row(s: &Snapshot, d: &Direction) -> Vec<Station> {
    let mut out = Vec::new();
    if let Some(a) = &d.arrival {
        let below = match (a.steering.queue, a.steering.rule) {
            (Some(q), Some(r)) => format!("rule {r}: queue {q}"),
            (Some(q), None) => format!("queue {q}"),
            (None, _) => "queue not known".into(),
        };
        out.push(Station { title: a.dev.clone(), below, node: a.node, cpu: None });
    }
    for (cpu, what) in stations(d) {
        // The transmit completion is drawn after its device.
        if what == "completion" {
            continue;
        }
        let node = s.topology.node_of(cpu).map(|n| n.0);
        out.push(Station { title: format!("CPU {cpu}"), below: what.into(), node, cpu: Some(cpu) });
    }
    if let Some(x) = &d.departure {
        let below = x.sending.queue.map_or_else(|| "queue not known".into(), |q| format!("tx-{q}"));
        out.push(Station { title: x.dev.clone(), below, node: x.node, cpu: None });
        if let Some(p) = &x.sending.cpu {
            let node = p.node.map(|n| n.0);
            out.push(Station { title: format!("CPU {}", p.cpu), below: "completion".into(), node, cpu: Some(p.cpu) });
        }
    }
    out
}

/// The boundary between two stations, if any. `last`: the CPU of the last station that has one; devices have none.
fn between(s: &Snapshot, a: &Station, b: &Station, last: Option<CpuId>) -> Option<&'static str> {
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
        let all = row(o.host, d);
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
                let cross = between(o.host, st, next, last);
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
        y += BOX.1 + 18.0;
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

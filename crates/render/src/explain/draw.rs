//! The path of a flow as SVG: a row of stations for each direction, coloured by node.

use ringwise_flow::chain::{CpuWork, Direction, path_stages};
use ringwise_flow::rfs_paths::{RfsPath, rfs_paths};
use ringwise_model::{CpuId, Snapshot};

use super::OneFlow;
use super::observed::{Observed, ObservedCount, at_queue, at_station};
use ringwise_draw::canvas::{Area, Canvas, FAINT, Font, INK, Ink, PAGE, at, wrap};
use ringwise_draw::{MONO, Size};

const BOX: (f64, f64) = (150.0, 46.0);
const GAP: f64 = 46.0;
const MARGIN: f64 = 20.0;
const NODES: [&str; 6] = ["#e3eefc", "#fdebd8", "#e2f4e4", "#f6e4f3", "#f3f1d6", "#e6e6ee"];
const CROSSED: &str = "#c2410c";
/// Font size and line height of the counts below a station.
const COUNT: (f64, f64) = (9.5, 13.0);

struct Stop {
    title: String,
    below: String,
    node: Option<u32>,
    cpu: Option<CpuId>,
    /// What `--observe` counted here.
    counted: Vec<ObservedCount>,
}

fn row(s: &Snapshot, d: &Direction, observed: Option<&Observed>) -> Vec<Stop> {
    let mut out = Vec::new();
    if let Some(a) = &d.arrival {
        let below = match (a.steering.queue, a.steering.rule) {
            (Some(q), Some(r)) => format!("rule {r}: queue {q}"),
            (Some(q), None) => format!("queue {q}"),
            (None, _) => "queue not known".into(),
        };
        let counted = observed.map_or_else(Vec::new, |o| at_queue(o, a));
        out.push(Stop { title: a.dev.clone(), below, node: a.node, cpu: None, counted });
    }
    for (cpu, work) in path_stages(d) {
        // The transmit completion is drawn after its device.
        if work == CpuWork::Completion {
            continue;
        }
        let node = s.topology.node_of(cpu).map(|n| n.0);
        let counted = observed.map_or_else(Vec::new, |o| at_station(o, d, cpu, work));
        out.push(Stop { title: format!("CPU {cpu}"), below: work.to_string(), node, cpu: Some(cpu), counted });
    }
    if let Some(x) = &d.departure {
        let below = x.sending.queue.map_or_else(|| "queue not known".into(), |q| format!("tx-{q}"));
        out.push(Stop { title: x.dev.clone(), below, node: x.node, cpu: None, counted: Vec::new() });
        if let Some(p) = &x.sending.cpu {
            let node = p.node.map(|n| n.0);
            let (title, below) = (format!("CPU {}", p.cpu), CpuWork::Completion.to_string());
            out.push(Stop { title, below, node, cpu: Some(p.cpu), counted: Vec::new() });
        }
    }
    out
}

/// The rows of a received flow without RFS, with it, and with accelerated RFS.
fn uses_of_rfs(s: &Snapshot, d: &Direction) -> Vec<(RfsPath, Vec<Stop>)> {
    let Some(a) = &d.arrival else { return Vec::new() };
    let rows = rfs_paths(s, d).into_iter().map(|p| {
        let below = format!("queue {}", p.queue);
        let mut out = vec![Stop { title: a.dev.clone(), below, node: a.node, cpu: None, counted: Vec::new() }];
        for (cpu, work) in &p.stations {
            let node = s.topology.node_of(*cpu).map(|n| n.0);
            match out.last_mut().filter(|last| last.cpu == Some(*cpu)) {
                Some(last) => last.below = format!("{}, {work}", last.below),
                None => {
                    let (title, below) = (format!("CPU {cpu}"), work.to_string());
                    out.push(Stop { title, below, node, cpu: Some(*cpu), counted: Vec::new() });
                }
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

/// The picture of one flow, as an SVG document. With `observed` the counts are below the stations of the received
/// packets.
pub fn svg(o: &OneFlow, observed: Option<&Observed>) -> String {
    let mut c = Canvas::default();
    let mut y = MARGIN;
    let arriving = o.directions.iter().position(|d| d.arrival.is_some());
    for (i, d) in o.directions.iter().enumerate() {
        c.text(at(MARGIN, y + 8.0), &d.flow.to_string(), &Font::left(14.0, INK).bold());
        y += 30.0;
        let observed = observed.filter(|_| arriving == Some(i));
        y = stops(&mut c, o.host, &row(o.host, d, observed), y);
        if let Some(seen) = observed {
            let text = format!(
                "Below the stations: counted in {} s. Interrupts and processed packets are those of all flows.",
                seen.seconds
            );
            c.text(at(MARGIN, y), &text, &Font::left(11.0, INK));
            y += 20.0;
        }
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

/// Draws a row with the counts below it, and returns where the next one begins.
fn stops(c: &mut Canvas, s: &Snapshot, all: &[Stop], y: f64) -> f64 {
    let mut lowest = y + BOX.1;
    for (i, st) in all.iter().enumerate() {
        let x = MARGIN + i as f64 * (BOX.0 + GAP);
        let fill = st.node.map_or(PAGE, |n| NODES[n as usize % NODES.len()]);
        c.rect(Area { x, y, w: BOX.0, h: BOX.1 }, 6.0, &Ink::filled(fill, FAINT), &st.below);
        c.text(at(x + BOX.0 / 2.0, y + 14.0), &st.title, &Font::left(13.0, INK).bold().middle());
        let node = st.node.map_or_else(|| "node unknown".into(), |n| format!("node {n}"));
        c.text(at(x + BOX.0 / 2.0, y + 33.0), &format!("{}, {node}", st.below), &Font::left(9.5, FAINT).middle());
        let mut below = y + BOX.1 + 4.0;
        for seen in &st.counted {
            let color = if seen.elsewhere { CROSSED } else { INK };
            for line in wrap(&seen.text, COUNT.0, BOX.0 + GAP - 8.0) {
                c.text(at(x + BOX.0 / 2.0, below + COUNT.1 / 2.0), &line, &Font::left(COUNT.0, color).middle());
                below += COUNT.1;
            }
        }
        lowest = lowest.max(below);
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
    lowest + 18.0
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::explain::observed::OfFlow;
    use ringwise_draw::canvas::width;
    use ringwise_flow::chain::{self, FlowRoute, Route, Socket};
    use ringwise_flow::{FlowSpec, Steering};
    use ringwise_model::{CpuSet, Fact};
    use ringwise_testkit::machines::{NicSpec, host};
    use ringwise_testkit::topo::CpuSpec;

    pub(in crate::explain) fn arriving(host: &Snapshot, directions: Vec<Direction>) -> OneFlow<'_> {
        OneFlow {
            host,
            directions,
            crossings: Vec::new(),
            meeting: None,
            unknown: Vec::new(),
            forwarding: None,
            through: false,
            what_if: &[],
            recorded_by: None,
        }
    }

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
        let one = arriving(&s, directions);
        let svg = svg(&one, None);
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

    /// Left, right, top and bottom of each text of a picture.
    fn boxes(svg: &str) -> Vec<(String, [f64; 4])> {
        let one = |t: &str| {
            let (head, text) = t.split_once('>').unwrap();
            let number = |name: &str| -> f64 {
                let (_, rest) = head.split_once(&format!("{name}=\"")).unwrap();
                rest.split('"').next().unwrap().parse().unwrap()
            };
            let (x, base, size) = (number(" x"), number(" y"), number("font-size"));
            let w = width(text, size);
            let left = if head.contains("middle") { x - w / 2.0 } else { x };
            (text.to_string(), [left, left + w, base - size * 0.8, base + size * 0.2])
        };
        svg.split("<text").skip(1).map(|t| one(t.split("</text>").next().unwrap())).collect()
    }

    /// The flow arrives on queue 3, whose interrupt goes to CPU 1; RPS gives it to CPU 2, and the program runs on CPU 3.
    #[test]
    fn counts_are_below_their_stations_and_overlap_nothing() {
        let mut s = host("h", CpuSpec::flat(4, 1), vec![NicSpec::new("eth0", "ice", Some(0), 4, 4)]).snapshot();
        s.nics[0].vectors.iter_mut().for_each(|v| v.effective = Fact::Known(CpuSet::one(CpuId(1))));
        s.nics[0].rx_queues.iter_mut().for_each(|q| q.rps_cpus = Fact::Known(CpuSet::one(CpuId(2))));
        let flow = "10.0.0.1:5-10.0.0.2:80/tcp".parse::<FlowSpec>().unwrap().exact().unwrap();
        let socket = Socket { kind: "connection", program: None, pid: None, last_cpu: Some(CpuId(3)) };
        let way = FlowRoute { route: Route::ToThisHost, local: true, out: None, socket: Some(socket) };
        let steering = Steering::new(&s.nics[0], &Fact::Absent).by_queue(Some(3));
        let directions = vec![chain::incoming(&s, &s.nics[0], &steering, &flow, way)];
        let one = OneFlow { crossings: vec!["a note below".into()], ..arriving(&s, directions) };
        let flow = OfFlow { queues: [(Some(3), 1200), (Some(0), 7), (None, 2)].into(), one_in: 8, lost: 0 };
        let seen = Observed {
            seconds: 10.0,
            looks: 20,
            flow: Ok(flow),
            queues: [(3, [(CpuId(1), 900), (CpuId(0), 1)].into())].into(),
            cpus: [(CpuId(1), (2000, 0)), (CpuId(2), (1900, 850))].into(),
            program: [(CpuId(3), 19), (CpuId(0), 1)].into(),
            incoming: [(CpuId(2), 20)].into(),
            ..Observed::default()
        };
        let (plain, counted) = (svg(&one, None), svg(&one, Some(&seen)));
        assert!(!plain.contains("sampled") && !plain.contains("counted"), "{plain}");
        let all = boxes(&counted);
        let place =
            |text: &str| all.iter().find(|(t, _)| t == text).unwrap_or_else(|| panic!("no {text} in {counted}")).1;
        for (station, counts) in [
            ("eth0", &["1,200 packets on queue 3, one", "7 packets on queue 0, one in 8"][..]),
            ("CPU 1", &["900 interrupts of the queue", "1 on other CPUs", "2,000 packets processed"]),
            ("CPU 2", &["1,900 packets processed", "woken by RPS 850 times"]),
            ("CPU 3", &["program: CPU 3, 19 of 20 times", "its packets: CPU 2, 20 of 20"]),
        ] {
            let above = place(station);
            for count in counts {
                let below = place(count);
                let middle = |b: [f64; 4]| (b[0] + b[1]) / 2.0;
                assert!((middle(above) - middle(below)).abs() < 0.2 && below[2] > above[3], "{count}: {counted}");
            }
        }
        // What was not counted is named, too.
        let flow = OfFlow { lost: 5, one_in: 1, ..OfFlow::default() };
        let little =
            Observed { flow: Ok(flow), looks: 20, incoming_unread: Some("EPERM".into()), ..Observed::default() };
        let picture = svg(&one, Some(&little));
        let texts: Vec<String> = boxes(&picture).into_iter().map(|(text, _)| text).collect();
        let texts = texts.join(" ");
        for missing in [
            "no packet seen",
            "5 not sampled: the buffer was full",
            "no socket of this flow was seen",
            "not read: EPERM",
        ] {
            assert!(texts.contains(missing), "{missing}: {texts}");
        }
        // Counts on another queue or CPU than predicted have the colour of crossings.
        for (text, color) in [("7 packets on queue 0, one in 8", CROSSED), ("1,900 packets processed", INK)] {
            let (before, _) = counted.split_once(text).unwrap();
            assert!(before.rsplit("<text").next().unwrap().contains(color), "{text}: {counted}");
        }
        for (i, (a, [l, r, t, b])) in all.iter().enumerate() {
            assert!(*l >= 0.0, "{a} is cut off: {counted}");
            for (other, [l2, r2, t2, b2]) in &all[i + 1..] {
                assert!(l >= r2 || l2 >= r || t >= b2 || t2 >= b, "{a} overlaps {other}: {counted}");
            }
        }
    }
}

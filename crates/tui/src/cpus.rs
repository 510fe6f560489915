//! The heat map of CPUs with a line for each node, and the table of CPUs.

use std::collections::BTreeMap;

use ratatui_core::layout::Rect;
use ringwise_model::{Counter as _, CpuCounter, CpuId, CpuSet, NodeId};
use ringwise_observe::CpuRates;

use super::history::{Curve, curve};
use super::panel::{heading, window};
use super::table::{Cell, Column, Pen, left, right};
use super::view::{Panel, View};
use ringwise_text::Tint;
use ringwise_text::{plural, thousands};

const COLUMNS: [Column; 15] = [
    right("CPU", 3),
    right("nd", 2),
    right("soft", 4),
    right("irq", 4),
    right("stl", 4),
    right("idle", 4),
    right("ksoft", 5),
    right("irq/s", 6),
    right("pkt/s", 7),
    right("drop/s", 6),
    right("squ/s", 5),
    right("rps/s", 6),
    right("flim", 4),
    right("blog", 4),
    left("queues", 18),
];
const TREND: u16 = 14;
/// The largest number of lines of the heat map.
const HEAT: usize = 8;

/// The shade for this share of time in softirqs, interrupts and NAPI threads.
fn shade(busy: Option<f64>, ascii: bool) -> char {
    let shades = if ascii { ['.', '-', '=', '*', '#'] } else { ['·', '░', '▒', '▓', '█'] };
    match busy {
        None => '?',
        Some(n) if n < 10.0 => shades[0],
        Some(n) if n < 40.0 => shades[1],
        Some(n) if n < 60.0 => shades[2],
        Some(n) if n < 90.0 => shades[3],
        Some(_) => shades[4],
    }
}

fn tint(busy: Option<f64>) -> Option<Tint> {
    match busy {
        Some(n) if n >= 90.0 => Some(Tint::Red),
        Some(n) if n >= 60.0 => Some(Tint::Yellow),
        _ => None,
    }
}

fn label_width(v: &View) -> usize {
    let nodes = v.rates.iter().flat_map(|r| r.cpus.values()).filter_map(|c| c.node);
    " node  ".len() + nodes.map(|n| n.to_string().len()).max().unwrap_or(1)
}

/// One line of the heat map: its label, and a cell for each CPU.
type Line = (String, Vec<(String, Option<Tint>)>);

fn heat(v: &View, width: u16) -> Vec<Line> {
    let Some(r) = &v.rates else { return Vec::new() };
    let mut nodes: BTreeMap<Option<NodeId>, Vec<(CpuId, Option<f64>)>> = BTreeMap::new();
    for (id, c) in &r.cpus {
        nodes.entry(c.node).or_default().push((*id, c.busy_percent()));
    }
    let digits = r.cpus.keys().map(|c| c.to_string().len()).max().unwrap_or(1);
    let most = nodes.values().map(Vec::len).max().unwrap_or(0);
    // `12▓ 97 `, or only the shades if the whole cells do not fit.
    let cell = digits + 5;
    // ` node 0 `; the label is wider if node numbers have two digits.
    let label = label_width(v);
    let numbers = label + most * cell <= usize::from(width);
    let mut out = Vec::new();
    for (node, cpus) in nodes {
        let name = node.map_or_else(|| "CPUs".to_string(), |n| format!("node {n}"));
        let room = usize::from(width).saturating_sub(label + 16).max(16);
        for (i, part) in cpus.chunks(if numbers { most.max(1) } else { room }).enumerate() {
            let cells = part.iter().map(|(id, busy)| {
                let s = shade(*busy, v.style.ascii);
                let n = busy.map_or_else(|| "?".into(), |n| format!("{n:.0}"));
                let text = if numbers { format!("{id:>digits$}{s}{n:>3} ") } else { s.to_string() };
                (text, tint(*busy))
            });
            let mut cells: Vec<_> = cells.collect();
            if !numbers {
                let list: CpuSet = part.iter().map(|(id, _)| *id).collect();
                cells.push((format!(" {list}"), None));
            }
            let name = if i == 0 { name.clone() } else { String::new() };
            out.push((format!(" {name:<0$}", label - 1), cells));
        }
    }
    out
}

/// `eth1:0,1 eth2:3`: receive or transmit queues whose interrupts this CPU handles.
fn queues_of(v: &View, cpu: CpuId) -> String {
    let Some(r) = &v.rates else { return String::new() };
    let mut parts = Vec::new();
    for (name, l) in &r.links {
        let mut ids: Vec<u32> = l.queues.iter().filter(|q| q.cpu == Some(cpu)).map(|q| q.queue).collect();
        ids.sort();
        ids.dedup();
        if !ids.is_empty() {
            parts.push(format!("{name}:{}", ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")));
        }
    }
    if parts.is_empty() { "-".into() } else { parts.join(" ") }
}

fn row(v: &View, id: CpuId, c: &CpuRates, seconds: f64) -> Vec<Cell> {
    let percent = |n: Option<f64>| Cell::from(n.map_or_else(|| "?".to_string(), |n| format!("{n:.0}%")));
    let rate = |counter: CpuCounter, bad: Option<Tint>| match c.counts.get(counter) {
        None if c.reset.iter().any(|r| r == counter.name()) => Cell::from("reset"),
        None => "-".into(),
        Some(0) => "0".into(),
        Some(n) => Cell::new(thousands((n as f64 / seconds).ceil() as u64), bad),
    };
    let high = |n: Option<f64>, from: f64| n.filter(|n| *n >= from).map(|_| Tint::Yellow);
    let mut soft = percent(c.softirq_percent);
    soft.tint = tint(c.busy_percent());
    let mut steal = percent(c.steal_percent);
    steal.tint = high(c.steal_percent, 10.0);
    let mut thread = percent(c.ksoftirqd_percent);
    thread.tint = high(c.ksoftirqd_percent, 50.0);
    vec![
        id.to_string().into(),
        c.node.map_or_else(|| "-".to_string(), |n| n.to_string()).into(),
        soft,
        percent(c.irq_percent),
        steal,
        percent(c.idle_percent),
        thread,
        thousands((c.interrupts as f64 / seconds).round() as u64).into(),
        rate(CpuCounter::SoftnetProcessed, None),
        rate(CpuCounter::SoftnetDropped, Some(Tint::Red)),
        rate(CpuCounter::SoftnetSqueezed, Some(Tint::Yellow)),
        rate(CpuCounter::SoftnetRps, None),
        rate(CpuCounter::SoftnetFlowLimit, Some(Tint::Red)),
        c.backlog.map_or_else(|| "-".to_string(), |n| n.to_string()).into(),
        queues_of(v, id).into(),
    ]
}

pub(super) fn want(v: &View, width: u16) -> usize {
    2 + heat(v, width).len().min(HEAT) + v.rates.as_ref().map_or(0, |r| r.cpus.len())
}

pub(super) fn draw(v: &View, pen: &mut Pen<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let all = v.cpus_shown();
    let mut heat = heat(v, area.width);
    // The heat map gets at most half of the height, so that the table fits, too.
    let lines = heat.len().min(HEAT).min(usize::from(area.height.saturating_sub(1)).div_ceil(2).max(2));
    let left_out = heat.len() - lines;
    heat.truncate(lines);
    let room = usize::from(area.height).saturating_sub(2 + lines);
    let (from, n, words) = window(v.choice(Panel::Cpus).from, all.len(), room);
    let legend = if v.style.ascii { ".<10 -<40 =<60 *<90 #" } else { "·<10 ░<40 ▒<60 ▓<90 █" };
    let more =
        if left_out > 0 { format!("  {} of the heat map not shown", plural(left_out, "line")) } else { String::new() };
    let head = |legend: &str| heading(v, Panel::Cpus, &format!("CPUS softirq+irq+NAPI %{legend}{more}{words}"));
    let with_legend = head(&format!(": {legend}"));
    // A filter that is being typed must be visible, so the legend makes room for it.
    let fits = with_legend.text.chars().count() <= usize::from(area.width);
    let head = if fits { with_legend } else { head("") };
    pen.put(area, 0, 0, &head.text, head.tint);
    let Some(r) = &v.rates else { return };
    for (y, (label, cells)) in (1..area.height).zip(&heat) {
        pen.put(area, y, 0, label, None);
        let mut x = label.chars().count() as u16;
        for (text, tint) in cells {
            pen.put(area, y, x, text, *tint);
            x += text.chars().count() as u16;
        }
    }
    let top = 1 + lines as u16;
    // Do not draw a heading without rows.
    if top + 1 >= area.height {
        return;
    }
    let body = Rect { y: area.y + top, height: area.height - top, ..area };
    let shown: Vec<(CpuId, &CpuRates)> = all.into_iter().skip(from).take(n).collect();
    let rows: Vec<Vec<Cell>> = shown.iter().map(|(id, c)| row(v, *id, c, r.seconds)).collect();
    let widths = Pen::fit(&COLUMNS, &rows, body.width);
    pen.table(body, &COLUMNS, &widths, &rows);
    let used = widths.iter().sum::<usize>() + widths.len();
    if usize::from(body.width) >= used + usize::from(TREND) {
        pen.put(body, 0, body.width - TREND, "busy history", Some(Tint::Bold));
        for (y, (id, _)) in (1..body.height).zip(&shown) {
            let points = v.history.last(&Curve::Cpu(*id), usize::from(TREND));
            let text = curve(&points, 100.0, usize::from(TREND), 1, v.style.ascii);
            pen.put(body, y, body.width - TREND, &text[0], None);
        }
    }
}

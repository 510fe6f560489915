//! The table of interfaces.

use ratatui_core::layout::Rect;
use ringwise_observe::{DirectionRates, LinkRates};

use super::headline::lists_all_losses;
use super::history::{Curve, curve, top};
use super::lines::{missing, source};
use super::panel::heading;
use super::table::{Cell, Column, Pen, left, right};
use super::view::{Panel, View};
use ringwise_text::Tint;
use ringwise_text::thousands;

const COLUMNS: [Column; 19] = [
    left(" INTERFACE", 7),
    right("RX pps", 9),
    right("Mb/s", 7),
    right("line", 6),
    right("avg B", 5),
    right("drop/s", 7),
    right("TX pps", 9),
    right("Mb/s", 7),
    right("line", 6),
    // Columns for more than 80 characters. With fewer, losses above 0 get a line of their own.
    right("NIC", 6),
    right("stack", 6),
    right("TX drop", 7),
    right("qdisc", 6),
    right("no buf", 6),
    right("pause rx/tx", 11),
    right("resets", 6),
    right("TX avg B", 8),
    right("Mb/s link", 9),
    left("counted by", 10),
];
/// The number of columns up to the places of losses.
const PLACES: usize = 16;
const TREND: u16 = 24;

fn big(n: Option<f64>, word: &str) -> String {
    n.map_or_else(|| word.to_string(), |n| thousands(n.round() as u64))
}

/// Share of the line rate, by packets of 64 bytes and by bits.
fn line(f: &DirectionRates) -> Cell {
    let one = |n: Option<f64>| n.map_or_else(|| "-".into(), |n| format!("{n:.0}"));
    let most = f.line_percent.into_iter().chain(f.line_packets_percent).fold(0.0, f64::max);
    let tint = (most >= 95.0).then_some(Tint::Red);
    if f.line_percent.is_none() && f.line_packets_percent.is_none() {
        return "-".into();
    }
    Cell::new(format!("{}/{}%", one(f.line_packets_percent), one(f.line_percent)), tint)
}

fn rate(n: Option<u64>, seconds: f64, word: &str) -> Cell {
    match n {
        Some(0) => "0".into(),
        Some(n) => Cell::new(thousands((n as f64 / seconds).ceil() as u64), Some(Tint::Red)),
        None => word.into(),
    }
}

fn row(v: &View, name: &str, l: &LinkRates, seconds: f64) -> Vec<Cell> {
    let word = missing(l);
    let mbps = |n: Option<f64>| Cell::from(n.map_or_else(|| word.to_string(), |n| format!("{n:.1}")));
    let mark = if v.link() == Some(name) { '>' } else { ' ' };
    let total = l.drops.total().filter(|_| l.reset.is_empty());
    let whole = |n: Option<f64>| n.map_or_else(|| "-".to_string(), |n| format!("{n:.0}"));
    let pause = |n: &str| {
        let n = l.counts.get(n).map(|n| thousands((*n as f64 / seconds).ceil() as u64));
        n.unwrap_or_else(|| "-".into())
    };
    let d = &l.drops;
    let resets = v.resets.get(name).copied().unwrap_or(0);
    vec![
        Cell::new(format!("{mark}{name}"), (mark == '>').then_some(Tint::Bold)),
        big(l.rx.pps, word).into(),
        mbps(l.rx.mbps),
        line(&l.rx),
        whole(l.rx.avg_bytes).into(),
        rate(total, seconds, word),
        big(l.tx.pps, word).into(),
        mbps(l.tx.mbps),
        line(&l.tx),
        rate(d.nic, seconds, word),
        rate(d.stack, seconds, word),
        rate(d.tx, seconds, word),
        rate(d.qdisc, seconds, "-"),
        rate(d.no_buffer, seconds, "-"),
        format!("{}/{}", pause("rx_pause"), pause("tx_pause")).into(),
        Cell::new(resets.to_string(), (resets > 0).then_some(Tint::Yellow)),
        whole(l.tx.avg_bytes).into(),
        l.speed_mbps.map_or_else(|| "-".to_string(), |n| n.to_string()).into(),
        source(l).into(),
    ]
}

/// Pauses and resets, if they have no columns, and the places of losses, if the headline has no room for all of them.
fn places(v: &View, name: &str, l: &LinkRates, seconds: f64, width: u16) -> Option<String> {
    let d = &l.drops;
    let mut parts = Vec::new();
    let unsaid = |n: Option<u64>| n.filter(|_| !lists_all_losses(v, width));
    for (n, what) in [
        (unsaid(d.nic), "NIC, no free descriptor"),
        (unsaid(d.stack), "driver or stack"),
        (unsaid(d.tx), "transmission"),
        (unsaid(d.qdisc), "qdisc"),
        (unsaid(d.no_buffer), "no memory for a buffer"),
        (l.counts.get("rx_pause").copied(), "pause frames in"),
        (l.counts.get("tx_pause").copied(), "pause frames out"),
    ] {
        if let Some(n) = n.filter(|n| *n > 0) {
            parts.push(format!("{} {}/s", what, thousands((n as f64 / seconds).ceil() as u64)));
        }
    }
    if let Some(n) = v.resets.get(name) {
        parts.push(format!("resets so far {n}"));
    }
    (!parts.is_empty()).then(|| format!("   {name}: {}", parts.join("; ")))
}

struct LinkRows {
    rows: Vec<Vec<Cell>>,
    notes: Vec<Option<String>>,
    widths: Vec<usize>,
}

fn shown(v: &View, width: u16) -> LinkRows {
    let Some(r) = &v.rates else { return LinkRows { rows: Vec::new(), notes: Vec::new(), widths: Vec::new() } };
    let names = v.links_shown();
    let rows: Vec<Vec<Cell>> = names.iter().map(|n| row(v, n, &r.links[*n], r.seconds)).collect();
    let widths = Pen::fit(&COLUMNS, &rows, width);
    let note = |n: &&str| places(v, n, &r.links[*n], r.seconds, width).filter(|_| widths.len() < PLACES);
    LinkRows { notes: names.iter().map(note).collect(), rows, widths }
}

/// The number of lines for the whole table.
pub(super) fn want(v: &View, width: u16) -> usize {
    let s = shown(v, width);
    1 + s.rows.len() + s.notes.iter().flatten().count()
}

pub(super) fn draw(v: &View, pen: &mut Pen<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let s = shown(v, area.width);
    pen.table(Rect { height: 1, ..area }, &COLUMNS, &s.widths, &[]);
    let head = heading(v, Panel::Links, "INTERFACE");
    pen.put(area, 0, 0, &head.text, head.tint);
    // A filter may be longer than the first column.
    if head.text.len() > s.widths.first().copied().unwrap_or(0) && head.text.len() > 10 {
        let rest = " ".repeat(usize::from(area.width));
        pen.put(area, 0, head.text.len() as u16, &rest, None);
    }
    let used: usize = s.widths.iter().sum::<usize>() + s.widths.len();
    let names = v.links_shown();
    let height = |i: usize| 1 + u16::from(s.notes[i].is_some());
    let whole = (0..names.len()).map(height).sum::<u16>() < area.height;
    // The last line counts the rows that do not fit; the chosen interface is always visible.
    let room = if whole { area.height } else { area.height.saturating_sub(1) };
    let chosen = names.iter().position(|n| v.link() == Some(n)).unwrap_or(0);
    let mut from = 0;
    while !whole && from < chosen && 1 + (from..=chosen).map(height).sum::<u16>() > room {
        from += 1;
    }
    let (mut y, mut left) = (1, names.len());
    for (i, ((name, row), note)) in names.iter().zip(&s.rows).zip(&s.notes).enumerate().skip(from) {
        let lines = height(i);
        if y + lines > room {
            break;
        }
        let line = Rect { y: area.y + y, height: 1, ..area };
        let mut x = 0;
        for (i, (cell, width)) in row.iter().zip(&s.widths).enumerate() {
            let pad = if COLUMNS[i].left { 0 } else { width - cell.text.chars().count() };
            pen.put(line, 0, (x + pad) as u16, &cell.text, cell.tint);
            x += width + 1;
        }
        if usize::from(area.width) >= used + usize::from(TREND) {
            let points = v.history.last(&Curve::Rx(name.to_string()), usize::from(TREND));
            let text = curve(&points, top(&points), usize::from(TREND), 1, v.style.ascii);
            pen.put(line, 0, area.width - TREND, &text[0], None);
            pen.put(area, 0, area.width - TREND, "RX pps history", Some(Tint::Bold));
        }
        if let Some(text) = note {
            pen.put(area, y + 1, 0, text, Some(Tint::Yellow));
        }
        y += lines;
        left -= 1;
    }
    if left > 0 && y < area.height {
        pen.put(area, y, 0, &format!("   {left} more of {}: 1 to enlarge, / to filter", names.len()), None);
    }
}

//! The table of queues, of one interface or of all.

use ratatui_core::layout::Rect;

use super::history::{Curve, curve, top};
use super::lines::counted_by;
use super::panel::{heading, window};
use super::row_selection::{QueueRow, RowMark};
use super::table::{Cell, Column, Pen, left, right};
use super::view::{Panel, View};
use ringwise_model::Dir;
use ringwise_observe::{QueueMark, QueueRates};
use ringwise_text::Tint;
use ringwise_text::thousands;

const COLUMNS: [Column; 15] = [
    right("queue", 5),
    left("mark", 5),
    right("RX pps", 8),
    right("share", 6),
    right("Mb/s", 6),
    right("TX pps", 8),
    right("irq/s", 6),
    right("p/irq", 5),
    right("CPU", 3),
    right("node", 4),
    right("drop/s", 6),
    right("BQL now/limit", 13),
    right("TX Mb/s", 7),
    right("TX share", 8),
    right("qdisc drop", 10),
];
const TREND: u16 = 16;

fn row(v: &View, q: &QueueRow<'_>, seconds: f64) -> Vec<Cell> {
    let mark = q.mark();
    let big = |n: f64| thousands(n.round() as u64);
    let missing = match mark {
        Some(RowMark::Counted(QueueMark::Reset)) => "reset",
        Some(RowMark::Counted(QueueMark::Came | QueueMark::Gone)) => "-",
        _ => "unknown",
    };
    let pps = |q: Option<&QueueRates>| match q {
        Some(q) => q.packets.map_or_else(|| missing.to_string(), |n| big(n as f64 / seconds)),
        None => "-".into(),
    };
    let mbps = |q: Option<&QueueRates>| {
        q.and_then(|q| q.bytes).map_or_else(|| "-".into(), |n| format!("{:.1}", n as f64 * 8.0 / seconds / 1e6))
    };
    let share =
        |q: Option<&QueueRates>| q.and_then(|q| q.share_percent).map_or_else(|| "-".into(), |n| format!("{n:.1}%"));
    // There are two interrupts if each direction has its own vector.
    let mut vectors: Vec<&QueueRates> = q.both().filter(|q| q.irq.is_some()).collect();
    vectors.dedup_by_key(|q| q.irq);
    let irqs: Option<u64> = vectors.iter().map(|q| q.interrupts).sum();
    let mut cpus: Vec<String> = vectors.iter().filter_map(|q| q.cpu).map(|c| c.to_string()).collect();
    cpus.dedup();
    let per = q.both().find_map(|q| q.packets_per_interrupt);
    let node = q.both().find_map(|q| q.node);
    let bql = q.tx.and_then(|q| q.bql_inflight.zip(q.bql_limit));
    let drop = |n: Option<u64>| match n {
        None => Cell::from("-"),
        Some(0) => "0".into(),
        Some(n) => Cell::new(thousands((n as f64 / seconds).ceil() as u64), Some(Tint::Red)),
    };
    let name = if v.all { format!("{}:{}", q.name, q.id) } else { q.id.to_string() };
    let tint = mark.map(|m| match m {
        RowMark::Counted(QueueMark::Hot) | RowMark::Stuck => Tint::Red,
        _ => Tint::Yellow,
    });
    vec![
        name.into(),
        Cell::new(mark.map_or("", RowMark::word), tint),
        pps(q.rx).into(),
        share(q.rx).into(),
        mbps(q.rx).into(),
        pps(q.tx).into(),
        if vectors.is_empty() { "-".into() } else { irqs.map_or("unknown".into(), |n| big(n as f64 / seconds)).into() },
        per.map_or_else(|| "-".into(), |n| format!("{n:.1}")).into(),
        if cpus.is_empty() { "-".into() } else { cpus.join(",").into() },
        // The same mark as in the matrix: delivered to another node than the device's.
        match node {
            Some(n) if q.far() => Cell::new(format!("{n}!"), Some(Tint::Yellow)),
            Some(n) => n.to_string().into(),
            None => "-".into(),
        },
        drop(q.drops()),
        bql.map_or_else(|| "-".into(), |(n, limit)| format!("{n}/{limit}")).into(),
        mbps(q.tx).into(),
        share(q.tx).into(),
        drop(q.tx.and_then(|q| q.qdisc_drops)),
    ]
}

pub(super) fn want(v: &View) -> usize {
    2 + v.queues_shown().len()
}

pub(super) fn draw(v: &View, pen: &mut Pen<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let (Some(r), Some(name)) = (&v.rates, v.link()) else {
        return pen.put(area, 0, 0, &heading(v, Panel::Queues, "QUEUES").text, Some(Tint::Bold));
    };
    let all = v.queues_shown();
    let (from, n, words) = window(v.choice(Panel::Queues).from, all.len(), usize::from(area.height.saturating_sub(2)));
    let mut text = "QUEUES".to_string();
    if !v.all
        && let Some(l) = r.links.get(name)
    {
        let node = l.node.map_or_else(|| "node unknown".to_string(), |n| format!("node {n}"));
        text += &format!(" of {name} ({node}) {}", counted_by(l));
        for (dir, b) in [("RX", l.rx_balance), ("TX", l.tx_balance)] {
            if let Some(b) = b {
                text += &format!("; {dir} max/mean {:.2} CV {:.2}", b.max_over_mean, b.variation);
            }
        }
    }
    let head = heading(v, Panel::Queues, &format!("{text}{words}"));
    pen.put(area, 0, 0, &head.text, head.tint);
    if all.is_empty() {
        return pen.put(area, 1, 0, "   no queue, or no queue matches the filter", None);
    }
    let rows: Vec<Vec<Cell>> = all.iter().skip(from).take(n).map(|q| row(v, q, r.seconds)).collect();
    let body = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let widths = Pen::fit(&COLUMNS, &rows, body.width);
    pen.table(body, &COLUMNS, &widths, &rows);
    let used = widths.iter().sum::<usize>() + widths.len();
    if usize::from(body.width) >= used + usize::from(TREND) {
        pen.put(body, 0, body.width - TREND, "RX pps history", Some(Tint::Bold));
        for (line, q) in (1..body.height).zip(all.iter().skip(from).take(n)) {
            let points = v.history.last(&Curve::Queue(q.name.to_string(), Dir::Rx, q.id), usize::from(TREND));
            let text = curve(&points, top(&points), usize::from(TREND), 1, v.style.ascii);
            pen.put(body, line, body.width - TREND, &text[0], None);
        }
    }
}

//! Curves of the chosen interface and of the busiest CPU, and the events.

use ratatui_core::layout::Rect;

use super::history::{Curve, curve, top};
use super::panel::heading;
use super::table::Pen;
use super::view::{Panel, View};
use ringwise_text::Tint;
use ringwise_text::thousands;
use ringwise_text::when;

/// The largest useful number of lines.
pub(super) const WANT: usize = 13;
/// Width of the label before a curve.
const LABEL: u16 = 20;

pub(super) fn draw(v: &View, pen: &mut Pen<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let Some(name) = v.link() else { return };
    let busiest = v.bottleneck.busiest.as_ref().map(|b| b.cpu);
    let seconds = v.rates.as_ref().map_or(1.0, |r| r.seconds);
    let head = heading(
        v,
        Panel::Past,
        &format!("HISTORY of {name}, one column per interval ({seconds:.1} s), newest at the right"),
    );
    pen.put(area, 0, 0, &head.text, head.tint);
    let mut curves = vec![
        ("RX pps", Curve::Rx(name.into()), None, None),
        ("TX pps", Curve::Tx(name.into()), None, None),
        ("drops/s", Curve::Drops(name.into()), None, Some(Tint::Red)),
    ];
    let label = busiest.map(|c| format!("CPU {c} busy %"));
    if let (Some(cpu), Some(label)) = (busiest, &label) {
        curves.push((label.as_str(), Curve::Cpu(cpu), Some(100.0), None));
    }
    let room = usize::from(area.height - 1);
    let rows = (room / curves.len()).min(6);
    if area.width <= LABEL || rows == 0 {
        return;
    }
    let width = usize::from(area.width - LABEL);
    for (i, (label, key, full, tint)) in curves.into_iter().enumerate() {
        let y = 1 + (i * rows) as u16;
        let points = v.history.last(&key, width.min(super::history::LENGTH));
        let most = top(&points);
        pen.put(area, y, 1, label, None);
        let scale = format!("top {}", thousands(most.round() as u64));
        if rows > 1 {
            pen.put(area, y + 1, 1, &scale, Some(Tint::Dim));
        } else {
            pen.put(area, y, LABEL - 1 - (scale.len() as u16).min(LABEL - 1), &scale, Some(Tint::Dim));
        }
        for (line, text) in (y..).zip(curve(&points, full.unwrap_or(most), width, rows, v.style.ascii)) {
            pen.put(area, line, LABEL, &text, tint);
        }
    }
}

/// The events; the newest is at the bottom.
pub(super) fn remarks(v: &View, pen: &mut Pen<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let hidden = v.remarks.len().saturating_sub(usize::from(area.height - 1));
    let more = if hidden > 0 { format!("  {hidden} earlier") } else { String::new() };
    pen.put(area, 0, 0, &format!(" REMARKS{more}"), Some(Tint::Bold));
    for (y, e) in (1..area.height).zip(v.remarks.iter().skip(hidden)) {
        pen.put(area, y, 1, &format!("{} {}", when::clock(e.unix_time, v.style.utc), e.text), Some(Tint::Yellow));
    }
    let from = 1 + (v.remarks.len() - hidden) as u16;
    for (y, text) in (from..area.height).zip(&v.unread) {
        pen.put(area, y, 1, &format!("not read: {text}"), None);
    }
    if v.remarks.is_empty() && v.unread.is_empty() {
        pen.put(area, 1, 1, "no counter was reset or wrapped; no device appeared or vanished", None);
    }
}

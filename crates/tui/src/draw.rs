//! The whole screen: title, headlines, panels by size and choice, and keys.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::panel::wrapped;
use super::table::Pen;
use super::view::{Mode, View};
use super::{cpus, curves_panel, headline, help, links, queues};
use ringwise_text::Tint;
use ringwise_text::when;

/// From this width on, panels are side by side.
const WIDE: u16 = 150;
const TALL: u16 = 34;
/// The newest event is shown above the keys for this many seconds.
const FRESH: u64 = 30;

/// Draws the view into `area`, which must be blank.
pub fn draw(v: &View, area: Rect, buf: &mut Buffer) {
    let area = area.intersection(*buf.area());
    let mut pen = Pen { buf, color: v.style.color, ascii: v.style.ascii };
    if area.height == 0 || area.width == 0 {
        return;
    }
    title(v, &mut pen, area);
    let mut y = 1;
    // The help page needs the height of a small terminal.
    let head = if v.help { Vec::new() } else { headline::headline(v) };
    for cell in head {
        for text in wrapped(&cell.text, usize::from(area.width), headline::LINES) {
            pen.put(area, y, 0, &text, cell.tint);
            y += 1;
        }
    }
    let last = area.height - 1;
    if y < last {
        pen.put(area, last, 0, &keys(v, area.width), Some(Tint::Dim));
    }
    let wide = area.width >= WIDE && area.height >= TALL;
    let mut end = last;
    if !wide && let Some((text, tint)) = remark(v).filter(|_| end > y + 8) {
        end -= 1;
        pen.put(area, end, 0, &text, tint);
    }
    let body = Rect { y: area.y + y, height: end.saturating_sub(y), ..area };
    if v.help {
        help::draw(v, &mut pen, body);
    } else if wide {
        side_by_side(v, &mut pen, body);
    } else {
        stacked(v, &mut pen, body);
    }
}

fn title(v: &View, pen: &mut Pen<'_>, area: Rect) {
    let mut parts = vec![format!("ringwise watch  {}", v.host)];
    if let Some(r) = &v.rates {
        parts.push(format!("{}  over {:.2} s", when::clock(r.unix_time, v.style.utc), r.seconds));
    }
    if v.paused {
        let more = if v.held() > 0 { format!(", {} more", v.held()) } else { String::new() };
        parts.push(format!("PAUSED{more}"));
    }
    match &v.mode {
        Mode::Replay { at, of, speed } => parts.push(format!("replay {at}/{of} x{speed}")),
        Mode::Live { recorded_to: Some(file) } => parts.push(format!("recorded to {file}")),
        Mode::Live { recorded_to: None } => {}
    }
    parts.extend(v.cost.clone());
    while parts.len() > 1 && parts.join("   ").chars().count() > usize::from(area.width) {
        parts.pop();
    }
    pen.put(area, 0, 0, &parts.join("   "), Some(Tint::Bold));
    pen.bar(area, 0);
}

fn keys(v: &View, width: u16) -> String {
    if v.typing {
        let panel = ["interfaces", "queues", "CPUs", ""][v.listed() as usize];
        return format!("filter {panel}: {}_   Enter keeps it, Esc clears it", v.choice(v.listed()).filter);
    }
    let mut parts =
        vec!["q quit", "? help", "Tab panel", "s sort", "r reverse", "/ filter", "a all queues", "space pause"];
    if matches!(v.mode, Mode::Replay { .. }) {
        parts.splice(6.., ["space stop", "arrows step", "[ ] 10", "+ - speed"]);
    } else {
        parts.push("up/down choose");
    }
    while parts.join("  ").len() > usize::from(width) && parts.len() > 1 {
        parts.pop();
    }
    parts.join("  ")
}

/// The newest event, if it is recent.
fn remark(v: &View) -> Option<(String, Option<Tint>)> {
    let now = v.rates.as_ref()?.unix_time;
    if let Some(e) = v.remarks.back().filter(|e| now.saturating_sub(e.unix_time) <= FRESH) {
        let n = v.remarks.len();
        let more = if n > 1 { format!("  ({n} remarks: key 4)") } else { String::new() };
        return Some((format!("{} {}{more}", when::clock(e.unix_time, v.style.utc), e.text), Some(Tint::Yellow)));
    }
    Some((format!("not read: {}", v.unread.first()?), None))
}

/// Draws the panels below each other.
fn stacked(v: &View, pen: &mut Pen<'_>, body: Rect) {
    let want = [links::want(v, body.width), queues::want(v), cpus::want(v, body.width), curves_panel::WANT];
    let least = [want[0].min(6), want[1].min(6), want[2].min(5), 0];
    let mut room = usize::from(body.height);
    let mut got = [0; 4];
    let focus = v.focus as usize;
    let first = |order: [usize; 4]| std::iter::once(focus).chain(order.into_iter().filter(move |i| *i != focus));
    for i in first([0, 1, 2, 3]) {
        let least = if i == focus { want[i].min(10) } else { least[i] };
        got[i] = least.min(room);
        room -= got[i];
    }
    // Give whole panels their height first: there are few interfaces.
    for i in first([0, 1, 2, 3]) {
        let more = want[i].saturating_sub(got[i]).min(room);
        // A few lines of the curves are not useful.
        if i != 3 || got[i] + more >= 4 {
            got[i] += more;
            room -= more;
        }
    }
    let mut y = body.y;
    for (i, height) in got.into_iter().enumerate() {
        let area = Rect { y, height: height as u16, ..body };
        y += height as u16;
        match i {
            0 => links::draw(v, pen, area),
            1 => queues::draw(v, pen, area),
            2 => cpus::draw(v, pen, area),
            _ => curves_panel::draw(v, pen, area),
        }
    }
}

fn side_by_side(v: &View, pen: &mut Pen<'_>, body: Rect) {
    let all = body.height;
    let top = (links::want(v, body.width) as u16).min(all / 3);
    let links_area = Rect { height: top, ..body };
    links::draw(v, pen, links_area);
    let left = body.width / 2;
    let most = queues::want(v).max(cpus::want(v, body.width - left - 2)) as u16;
    let rest = all - top - 1;
    let middle = most.min(rest.saturating_sub(curves_panel::WANT as u16 + 1));
    let y = body.y + top + 1;
    queues::draw(v, pen, Rect { y, height: middle, width: left, ..body });
    cpus::draw(v, pen, Rect { x: body.x + left + 2, y, height: middle, width: body.width - left - 2 });
    let y = y + middle + 1;
    let height = (body.y + all).saturating_sub(y);
    curves_panel::draw(v, pen, Rect { y, height, width: left, ..body });
    curves_panel::remarks(v, pen, Rect { x: body.x + left + 2, y, height, width: body.width - left - 2 });
}

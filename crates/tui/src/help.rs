//! The help page: keys, marks, and the short names of columns.

use ratatui_core::layout::Rect;

use super::table::Pen;
use super::view::{Mode, View};
use ringwise_text::Tint;

const KEYS: &str = "\
KEYS
 q, Ctrl-C   quit                       Tab, 1-4     select the panel
 Ctrl-Z      suspend; fg resumes        up, down     choose interface, scroll
 space, p    pause; data is kept        s, r         sort by, reverse
 a           queues of all interfaces   /            filter: node0 cpu3 hot
 Esc         clear filter and choice    Ctrl-L       redraw
";
const REPLAY: &str = "\
RECORDING
 left, right one interval               [ ]          ten intervals
 g, G        first, last                + -          speed
";
const MARKS: &str = "\
MARKS
 hot    over 1.5 times the mean         far, !       on a remote node
 reset  a counter went backwards        new, gone    queue added, removed
 bql    at its byte queue limit         stuck        reported by the watchdog
 line   share of line rate, in 64-byte packets / in bits; see docs/watch.md
";
const COLUMNS: &str = "\
COLUMNS
 p/irq  packets per interrupt           BQL          bytes in flight / limit
 soft   time in softirqs                stl          time taken by the host
 ksoft  time of ksoftirqd               squ/s        NAPI polls cut short
 rps/s  wake-ups by RPS                 flim, blog   flow limit, backlog
";

pub(super) fn draw(v: &View, pen: &mut Pen<'_>, area: Rect) {
    let replay = if matches!(v.mode, Mode::Replay { .. }) { REPLAY } else { "" };
    let blocks = [KEYS, replay, MARKS, COLUMNS];
    for (y, line) in (0..area.height).zip(blocks.iter().flat_map(|b| b.lines())) {
        let tint = (!line.starts_with(' ')).then_some(Tint::Bold);
        pen.put(area, y, 0, line, tint);
    }
}

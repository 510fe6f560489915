//! The help page: keys, marks, and what the columns contain. It fits a terminal of 80 by 24.

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
 left, right one interval back, forward [ ]          ten intervals
 g, G        first, last interval       + -          faster, slower
";
const COLUMNS: &str = "\
COLUMNS
 pps         packets per second         line         % of the line rate, in
 avg B       mean size in bytes                      64-byte packets / in bits
 stack       lost in the network stack  no buf       lost: no receive buffer
 share       of the interface's packets p/irq        packets per interrupt
 BQL         bytes in flight / limit    max/mean     busiest queue / mean
 soft, irq   % in softirqs, interrupts  CV           std. deviation / mean
 CPUS %      both and NAPI threads      stl          % taken by hypervisor
 ksoft       % of time in ksoftirqd     squ/s        softirqs cut short
 rps/s       wake-ups by RPS            flim         drops by the flow limit
 nd          NUMA node                  blog         packets in the backlog
";
const MARKS: &str = "\
MARKS
 hot         over 1.5 times the mean    far, !       on a remote node
 reset       a counter went backwards   new, gone    queue added, removed
 bql         at its byte queue limit    stuck        reported by the watchdog
";

pub(super) fn draw(v: &View, pen: &mut Pen<'_>, area: Rect) {
    let replay = if matches!(v.mode, Mode::Replay { .. }) { REPLAY } else { "" };
    let blocks = [KEYS, replay, COLUMNS, MARKS];
    for (y, line) in (0..area.height).zip(blocks.iter().flat_map(|b| b.lines())) {
        let tint = (!line.starts_with(' ')).then_some(Tint::Bold);
        pen.put(area, y, 0, line, tint);
    }
}

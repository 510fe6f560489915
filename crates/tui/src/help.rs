//! The help page: keys, marks, and the sources of the numbers.

use ratatui_core::layout::Rect;

use super::table::Pen;
use super::view::{Mode, View};
use ringwise_text::Tint;

const KEYS: &str = "\
KEYS
 q, Ctrl-C   quit                       Tab, 1-4     panel that the keys go to
 Ctrl-Z      to the shell; fg: back     up, down     choose interface, scroll
 space, p    pause; nothing is missed   s, r         sort by, reverse
 a           queues of all interfaces   /            filter: node0 cpu3 hot
 Esc         filter off, choice back    Ctrl-L       draw anew
";
const REPLAY: &str = "\
RECORDING
 left, right one interval               [ ]          ten intervals
 g, G        first, last                + -          speed
";
const MARKS: &str = "\
MARKS
 hot    over 1.5 times the mean         far, !       not on the NIC's node
 reset  a counter went backwards        new, gone    the queue came, went
 bql    at its byte limit               stuck        found so by the watchdog
 line   share of 64-byte packets / of bits that fit; more in docs/watch.md
";

pub(super) fn draw(v: &View, pen: &mut Pen<'_>, area: Rect) {
    let replay = if matches!(v.mode, Mode::Replay { .. }) { REPLAY } else { "" };
    let blocks = [KEYS, replay, MARKS];
    for (y, line) in (0..area.height).zip(blocks.iter().flat_map(|b| b.lines())) {
        let tint = (!line.starts_with(' ')).then_some(Tint::Bold);
        pen.put(area, y, 0, line, tint);
    }
}

//! The picture of `show --svg`: the block diagram of an interface, with its queues, their interrupts, and the CPUs by
//! core and node, connected by lines. The same host always gives the same bytes.

mod bundle;
mod cpus;
mod draw;
mod groups;
mod legend;
mod links;
mod marks;
mod notes;
mod place;
mod rows;
mod verdict;

use ringwise_draw::canvas::Canvas;
use ringwise_draw::{MONO, Size};
use ringwise_model::{Nic, Snapshot};

const MARGIN: f64 = 20.0;

/// One picture; several devices are drawn below each other.
pub fn render(s: &Snapshot, nics: &[&Nic]) -> String {
    let mut all = Canvas::default();
    let mut title = format!("{}: queues, interrupts and CPUs", names(nics));
    for n in nics {
        let (c, verdict) = draw::device(s, n);
        if nics.len() == 1 {
            title = format!("{}: {verdict}", n.name());
        }
        let size = Size { w: c.right + MARGIN, h: c.bottom + MARGIN };
        all.below(c, size);
    }
    let size = Size { w: all.right.ceil(), h: all.bottom.ceil() };
    ringwise_draw::document(all, size, &title, MONO)
}

fn names(nics: &[&Nic]) -> String {
    nics.iter().map(|n| n.name()).collect::<Vec<_>>().join(" ")
}

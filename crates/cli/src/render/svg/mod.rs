//! `show --svg`: the block diagram of an interface. Queues, the interrupts that serve them, the CPUs these go to,
//! in cores and nodes, and the lines between. The same host gives the same bytes.

pub(crate) use ringwise_bench::figure::canvas;
mod cpus;
mod draw;
mod groups;
mod legend;
mod links;
mod marks;
mod notes;
mod place;
mod rows;

use ringwise_model::words::xml;
use ringwise_model::{Nic, Snapshot};

use canvas::{PAGE, num};

const MARGIN: f64 = 20.0;

/// One picture; several devices stand below each other.
pub fn render(s: &Snapshot, nics: &[&Nic]) -> String {
    let mut body = String::new();
    let (mut right, mut bottom) = (0.0f64, 0.0);
    for n in nics {
        let c = draw::device(s, n);
        right = right.max(c.right + MARGIN);
        let below = bottom + c.bottom + MARGIN;
        body.push_str(&format!("<g transform=\"translate(0 {})\">\n{}</g>\n", num(bottom), c.body()));
        bottom = below;
    }
    let (w, h) = (num(right.ceil()), num(bottom.ceil()));
    let names: Vec<&str> = nics.iter().map(|n| n.name()).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\">\n\
         <title>{}: queues, interrupts and CPUs</title>\n\
         <rect x=\"0\" y=\"0\" width=\"{w}\" height=\"{h}\" fill=\"{PAGE}\"/>\n{body}</svg>\n",
        xml(&names.join(" ")),
    )
}

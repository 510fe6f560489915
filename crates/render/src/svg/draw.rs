//! Draws the shapes from values and positions.

use ringwise_model::{CpuId, Dir, Nic, Snapshot};

use super::MARGIN;
use super::cpus::{NodeBox, nodes};
use super::groups::{Groups, colours, letter};
use super::legend::{self, Seen};
use super::links::Steering;
use super::marks::{FAR, FAR_DASH, NEAR, RPS, RPS_DASH, UNSURE, XPS, XPS_DASH, badge};
use super::notes::notes;
use super::place::{Columns, Labels, Places, Sizes, caches, core_label, irq_label, others, places};
use super::rows::{Block, Cell, Target, blocks, doubtful};
use crate::columns::Ranks;
use crate::show::head_parts;
use ringwise_draw::canvas::{Area, Canvas, FAINT, Font, INK, Ink, PAGE, at, width, wrap};
use ringwise_text::{set, vector_label, word};

const QUEUE: (&str, &str) = ("#e6ebf2", "#8592a6");

/// The parts of one device's picture.
struct Picture<'a> {
    s: &'a Snapshot,
    n: &'a Nic,
    blocks: Vec<Block<'a>>,
    links: Steering,
    nodes: Vec<NodeBox>,
    groups: Groups,
    labels: Labels,
    z: Sizes,
    x: Columns,
}

pub(super) fn device(s: &Snapshot, n: &Nic) -> Canvas {
    let t = &s.topology;
    let blocks = blocks(t, n);
    let links = Steering::of(t, n);
    let used = links.used(&blocks);
    let nodes = nodes(t, &used, n.node.known().copied());
    let groups = Groups::of(n);
    let labels = Labels::of(t, &used, &blocks);
    let z = Sizes::of(blocks.iter().map(|b| b.rows.len()).sum());
    let x = z.columns(&blocks, &nodes, &labels, !groups.is_empty());
    let p = Picture { s, n, blocks, links, nodes, groups, labels, z, x };
    let mut c = Canvas::default();
    let room = (p.x.right() - MARGIN).max(620.0);
    let top = p.title(&mut c, room);
    let at = places(&p.z, &p.x, &p.blocks, &p.nodes, top);
    p.frames(&mut c, &at);
    let seen = p.lines(&mut c, &at);
    p.queues(&mut c, &at);
    p.cpus(&mut c, &at);
    let y = legend::draw(&mut c, at.bottom + 26.0, room, &seen, &p.groups);
    p.notes(&mut c, y + 8.0, room);
    c
}

impl Picture<'_> {
    /// Draws the title, a description of the device, and the headings of the columns. Returns where the columns begin.
    fn title(&self, c: &mut Canvas, room: f64) -> f64 {
        let parts = head_parts(self.n);
        let mut y = MARGIN + 10.0;
        c.text(at(MARGIN, y), self.n.name(), &Font::left(18.0, INK).bold());
        y += 24.0;
        let mut line = String::new();
        let mut flush = |line: &str, y: &mut f64| {
            c.text(at(MARGIN, *y), line, &Font::left(12.0, INK));
            *y += 17.0;
        };
        for part in parts {
            let longer = if line.is_empty() { part.clone() } else { format!("{line} · {part}") };
            if line.is_empty() || width(&longer, 12.0) <= room {
                line = longer;
            } else {
                flush(&line, &mut y);
                line = part;
            }
        }
        flush(&line, &mut y);
        y += 16.0;
        let font = Font::left(self.z.font, FAINT);
        let x = &self.x;
        if x.rx_w > 0.0 {
            c.text(at(x.rx + x.rx_w / 2.0, y), "receive", &font.middle());
        }
        if x.tx_w > 0.0 {
            c.text(at(x.tx + x.tx_w / 2.0, y), "transmit", &font.middle());
        }
        c.text(at(x.irq + x.irq_w / 2.0, y), "interrupt", &font.middle());
        c.text(at(x.node, y), "CPUs by node and core", &font);
        y + 16.0
    }

    /// Draws nodes and cores, below the lines.
    fn frames(&self, c: &mut Canvas, p: &Places) {
        let (z, x) = (&self.z, &self.x);
        let numa = !self.s.topology.nodes.is_absent();
        let with_caches = caches(&self.nodes);
        for (n, np) in self.nodes.iter().zip(&p.nodes) {
            let (stroke, w) = if n.own { (NEAR, 2.0) } else { ("#b4bcc9", 1.0) };
            let ink = Ink { width: w, ..Ink::filled("#f6f8fb", stroke) };
            c.rect(Area { x: x.node, y: np.y, w: x.node_w, h: np.h }, 6.0, &ink, "");
            c.text(at(x.core, np.y + 13.0), &n.title(numa), &Font::left(z.font, INK).bold());
            for (core, y) in n.cores.iter().zip(&np.cores) {
                let h = z.core(core);
                let a = Area { x: x.core, y: *y, w: x.core_w, h };
                c.rect(a, 4.0, &Ink::filled(PAGE, "#c3cad6"), "");
                let text = core_label(core, with_caches);
                if !text.is_empty() {
                    c.text(at(x.core + x.core_w + 8.0, y + h / 2.0), &text, &Font::left(z.font - 1.0, FAINT));
                }
            }
            if let Some(text) = others(n) {
                c.text(at(x.core, np.y + np.h - 14.0), &text, &Font::left(z.font, FAINT));
            }
        }
    }

    /// Whether the CPU is on another node than the device; `None` if one of the nodes is unknown.
    fn far(&self, cpu: CpuId) -> Option<bool> {
        Some(self.s.topology.node_of(cpu)? != *self.n.node.known()?)
    }

    fn lines(&self, c: &mut Canvas, p: &Places) -> Seen {
        let mut seen = Seen::default();
        self.thin_lines(c, p, &mut seen);
        let x = &self.x;
        // Draw lines to remote nodes last, on top, because they are what the user looks for.
        for pass in [false, true] {
            for (b, ys) in self.blocks.iter().zip(&p.blocks) {
                let Target::Cpus(cpus) = &b.target else { continue };
                for cpu in cpus {
                    let far = self.far(*cpu);
                    let Some(to) = p.cpus.get(cpu).filter(|_| (far == Some(true)) == pass) else { continue };
                    let (colour, dash, w) = match far {
                        Some(true) => (FAR, FAR_DASH, 1.8),
                        Some(false) => (NEAR, "", 1.5),
                        None => (UNSURE, "", 1.5),
                    };
                    seen.line(far);
                    seen.one_of |= cpus.len() > 1;
                    c.curve(at(x.out(), ys[0]), *to, &Ink::line(colour, w, dash));
                    c.dot(*to, 3.0, colour);
                    if far == Some(true) {
                        badge(c, at(x.out() + 12.0, ys[0]));
                    }
                }
            }
        }
        let isolated = self.s.topology.isolated_all();
        let mut drawn = self.nodes.iter().flat_map(|n| &n.cores).flat_map(|c| c.used.iter().chain(&c.idle));
        seen.isolated = drawn.any(|c| isolated.contains(*c));
        seen.doubtful = self.blocks.iter().filter_map(|b| b.vector).any(doubtful);
        seen.repeated = self.labels.repeated;
        seen.threads = Ranks::of(&self.s.topology).smt() && self.nodes.iter().any(|n| !n.cores.is_empty());
        seen
    }

    /// Draws the lines of XPS and RPS, below the other lines.
    fn thin_lines(&self, c: &mut Canvas, p: &Places, seen: &mut Seen) {
        let x = &self.x;
        let aside = p.pitch / 2.0;
        let row = |dir: Dir, queue: u32| {
            let cell = |r: &super::rows::Row| match dir {
                Dir::Rx => r.rx.as_ref().and_then(|c| c.queue),
                Dir::Tx => r.tx.as_ref().and_then(|c| c.queue),
            };
            self.blocks.iter().zip(&p.blocks).find_map(|(b, ys)| {
                let i = b.rows.iter().position(|r| cell(r) == Some(queue))?;
                Some((b, ys[i]))
            })
        };
        for (queue, cpus) in &self.links.xps {
            let Some((_, y)) = row(Dir::Tx, *queue) else { continue };
            let ink = Ink::line(XPS, 1.0, XPS_DASH);
            seen.xps = true;
            // The line passes between the boxes of the interrupts to the right edge of the queue.
            let edge = at(x.tx + x.tx_w, y + self.z.cell / 2.0 - 4.0);
            c.curve(edge, at(x.irq, y + aside), &ink);
            c.line(&[at(x.irq, y + aside), at(x.out(), y + aside)], &ink);
            for to in cpus.iter().filter_map(|cpu| p.cpus.get(cpu)) {
                c.curve(at(x.out(), y + aside), at(to.x, to.y + self.z.cpu / 4.0), &ink);
            }
        }
        for (queue, cpus) in &self.links.rps {
            let Some((b, y)) = row(Dir::Rx, *queue) else { continue };
            let ink = Ink::line(RPS, 1.2, RPS_DASH);
            seen.rps = true;
            // The line begins at the interrupt, because its CPU passes the packets on; without an interrupt it begins
            // at the queue.
            let y = if b.vector.is_some() { b_top(b, p, &self.blocks).unwrap_or(y) } else { y } - self.z.cell / 4.0;
            if b.vector.is_none() {
                c.line(&[at(x.tx, y), at(x.out(), y)], &ink);
            }
            for to in cpus.iter().filter_map(|cpu| p.cpus.get(cpu)) {
                c.curve(at(x.out(), y), at(to.x, to.y - self.z.cpu / 4.0), &ink);
            }
        }
    }

    fn queues(&self, c: &mut Canvas, p: &Places) {
        let (z, x) = (&self.z, &self.x);
        let words = Font::left(z.font, INK);
        for (b, ys) in self.blocks.iter().zip(&p.blocks) {
            let first = ys[0];
            // Text is centred beside its rows; an interrupt is at the first row.
            let y = if b.vector.is_some() { first } else { (first + ys[ys.len() - 1]) / 2.0 };
            let y = y.min(first + 3.5 * p.pitch);
            let plain = Ink::line(UNSURE, 1.2, if b.vector.is_some() { "" } else { "2 2" });
            for (row, y) in b.rows.iter().zip(ys) {
                let from = if row.tx.is_some() { x.tx + x.tx_w } else { x.tx };
                c.line(&[at(from, *y), at(x.join, *y)], &plain);
                for (cell, cx, w) in [(&row.rx, x.rx, x.rx_w), (&row.tx, x.tx, x.tx_w)] {
                    if let Some(cell) = cell {
                        self.queue(c, cell, Area { x: cx, y: y - z.cell / 2.0, w, h: z.cell });
                    }
                }
                let of = |cell: &Option<Cell>| cell.as_ref().and_then(|c| c.queue).and_then(|q| self.groups.get(q));
                if let Some(k) = of(&row.rx).or(of(&row.tx)) {
                    c.text(at(x.letter + 8.0, *y), &letter(k), &Font::left(z.font, INK).bold().middle());
                }
            }
            if ys.len() > 1 {
                c.line(&[at(x.join, first), at(x.join, ys[ys.len() - 1])], &plain);
            }
            c.line(&[at(x.join, y), at(x.irq - if b.vector.is_some() { 0.0 } else { 6.0 }, y)], &plain);
            if let Some(v) = b.vector {
                let a = Area { x: x.irq, y: y - z.cell / 2.0, w: x.irq_w, h: z.cell };
                let about = format!(
                    "{}: irq {}, affinity {}, delivered to {}",
                    vector_label(v),
                    v.irq,
                    word(&v.asked, set),
                    word(&v.effective, set)
                );
                let ink = Ink { dash: if doubtful(v) { "4 2" } else { "" }, ..Ink::filled("#fbf6e4", "#9a8a4a") };
                c.rect(a, 8.0, &ink, &about);
                c.text(at(a.x + a.w / 2.0, y), &irq_label(v), &Font::left(z.font, INK).middle());
            }
            if let Target::Words(text) = &b.target {
                let tx = if b.vector.is_some() { x.out() + 8.0 } else { x.irq };
                let w = width(text, z.font);
                // Other lines pass here, so the text needs a background.
                let behind = Area { x: tx - 3.0, y: y - z.font * 0.65, w: w + 6.0, h: z.font * 1.3 };
                c.rect(behind, 0.0, &Ink::filled(PAGE, "none"), "");
                c.text(at(tx, y), text, &words);
            }
        }
    }

    fn queue(&self, c: &mut Canvas, cell: &Cell, a: Area) {
        let (fill, stroke) = cell.queue.and_then(|q| self.groups.get(q)).map_or(QUEUE, colours);
        c.rect(a, 2.0, &Ink::filled(fill, stroke), "");
        c.text(at(a.x + a.w / 2.0, a.y + a.h / 2.0), &cell.label, &Font::left(self.z.font, INK).middle());
    }

    fn cpus(&self, c: &mut Canvas, p: &Places) {
        let (z, x) = (&self.z, &self.x);
        let isolated = self.s.topology.isolated_all();
        let high = z.cpu - 3.0;
        for (core, y) in self.nodes.iter().zip(&p.nodes).flat_map(|(n, np)| n.cores.iter().zip(&np.cores)) {
            for cpu in &core.used {
                let (Some(l), Some(label)) = (p.cpus.get(cpu), self.labels.cpu.get(cpu)) else { continue };
                let (fill, stroke) = match self.far(*cpu) {
                    Some(true) => ("#fdeadb", FAR),
                    Some(false) => ("#dcebf7", NEAR),
                    None => ("#e9ecf0", UNSURE),
                };
                let fill = if self.labels.takes.contains(cpu) { fill } else { PAGE };
                let a = Area { x: x.cell, y: l.y - high / 2.0, w: x.cell_w, h: high };
                c.rect(a, 2.0, &Ink::filled(fill, stroke), "");
                c.text(at(a.x + 7.0, l.y), label, &Font::left(z.font, INK));
            }
            let from = x.cell + if core.used.is_empty() { 0.0 } else { x.cell_w };
            for (i, cpu) in core.idle.iter().enumerate() {
                let mid = y + super::place::CORE_PAD + z.cpu / 2.0;
                let a = Area { x: from + i as f64 * x.idle_w + 2.0, y: mid - high / 2.0, w: x.idle_w - 2.0, h: high };
                let dash = if isolated.contains(*cpu) { "2 2" } else { "" };
                c.rect(a, 2.0, &Ink { dash, ..Ink::filled("#f2f4f7", "#d0d5de") }, "");
                c.text(at(a.x + a.w / 2.0, mid), &cpu.to_string(), &Font::left(z.font - 1.0, FAINT).middle());
            }
        }
    }

    fn notes(&self, c: &mut Canvas, mut y: f64, room: f64) {
        let size = 11.5;
        let notes = notes(self.s, self.n, &self.links, &self.nodes, &self.groups);
        let indent = notes.iter().map(|(k, _)| width(k, size)).fold(0.0, f64::max) + 14.0;
        for (name, text) in notes {
            c.text(at(MARGIN, y), name, &Font::left(size, FAINT));
            for line in wrap(&text, size, room - indent) {
                c.text(at(MARGIN + indent, y), &line, &Font::left(size, INK));
                y += 16.0;
            }
        }
    }
}

fn b_top(b: &Block<'_>, p: &Places, all: &[Block<'_>]) -> Option<f64> {
    let i = all.iter().position(|o| std::ptr::eq(o, b))?;
    p.blocks[i].first().copied()
}

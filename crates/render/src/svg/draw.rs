//! Draws the shapes from values and positions.

use ringwise_model::{CpuId, CpuSet, Dir, Nic, NodeId, Snapshot};

use super::MARGIN;
use super::bundle::bundled;
use super::cpus::{NodeBox, folds, nodes};
use super::groups::{Groups, colours, letter};
use super::legend::{self, LegendItems};
use super::links::Steering;
use super::marks::{
    BUNDLE, CROWDED, CROWDED_FILL, FAR, FAR_DASH, FINE, NEAR, RPS, RPS_DASH, UNSURE, XPS, XPS_DASH, badge,
};
use super::notes::notes;
use super::place::{Columns, Labels, Places, Sizes, caches, core_label, irq_label, others, places};
use super::rows::{Block, Cell, Target, blocks};
use super::verdict::QueuePlacement;
use crate::columns::{CpuGroup, Ranks, columns};
use crate::show::head_parts;
use ringwise_draw::canvas::{Area, Canvas, FAINT, Font, INK, Ink, PAGE, Point, at, width, wrap};
use ringwise_text::{numbers, set, vector_label, word};

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
    verdict: QueuePlacement,
    isolated: CpuSet,
    z: Sizes,
    x: Columns,
}

/// The picture, and its verdict.
pub(super) fn device(s: &Snapshot, n: &Nic) -> (Canvas, String) {
    let t = &s.topology;
    let groups = Groups::of(n);
    let verdict = QueuePlacement::of(t, n);
    let wrong = |c: CpuId| far(s, n, c) == Some(true) || verdict.crowded(c);
    let blocks = bundled(blocks(t, n), &columns(t, &Ranks::of(t)), &groups, &wrong);
    let folds = folds(&blocks);
    let links = Steering::of(t, n, blocks.iter().any(|b| b.vectors.len() > 1));
    let used = links.used(&blocks);
    let nodes = nodes(t, &used, &folds, n.node.known().copied());
    let labels = Labels::of(t, &used, &blocks, folds.values());
    let z = Sizes::of(blocks.iter().map(|b| b.rows.len()).sum());
    let isolated = t.isolated_all();
    let x = z.columns(&blocks, &nodes, &labels, &isolated, !groups.is_empty());
    let p = Picture { s, n, blocks, links, nodes, groups, labels, verdict, isolated, z, x };
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
    (c, p.verdict.text())
}

/// Whether the CPU is on another node than the device; `None` if one of the nodes is unknown.
fn far(s: &Snapshot, n: &Nic, cpu: CpuId) -> Option<bool> {
    Some(s.topology.node_of(cpu)? != *n.node.known()?)
}

impl Picture<'_> {
    /// Draws the title with the verdict, a description of the device, and the headings of the columns. Returns where the columns begin.
    fn title(&self, c: &mut Canvas, room: f64) -> f64 {
        let parts = head_parts(self.n);
        let mut y = MARGIN + 10.0;
        c.text(at(MARGIN, y), self.n.name(), &Font::left(18.0, INK).bold());
        let beside = MARGIN + width(self.n.name(), 18.0) + 16.0;
        let colour = match self.verdict.fine() {
            Some(true) => FINE,
            Some(false) => CROWDED,
            None => UNSURE,
        };
        // A long name leaves no room beside it.
        let left = if beside > room / 2.0 { MARGIN } else { beside };
        y += if left == MARGIN { 22.0 } else { 0.0 };
        for (i, line) in wrap(&self.verdict.text(), 14.0, room + MARGIN - left).iter().enumerate() {
            y += if i > 0 { 18.0 } else { 0.0 };
            c.text(at(left, y), line, &Font::left(14.0, colour).bold());
        }
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
                let crowded = core.rank.is_some_and(|r| self.verdict.crowded_core(r));
                let ink = match crowded {
                    true => Ink { width: 2.0, ..Ink::filled(CROWDED_FILL, CROWDED) },
                    false => Ink::filled(PAGE, "#c3cad6"),
                };
                c.rect(a, 4.0, &ink, "");
                let text = core_label(core, with_caches);
                if !text.is_empty() {
                    c.text(at(x.core + x.core_w + 8.0, y + h / 2.0), &text, &Font::left(z.font - 1.0, FAINT));
                }
            }
            if let Some(text) = others(n, &self.isolated) {
                c.text(at(x.core, np.y + np.h - 14.0), &text, &Font::left(z.font, FAINT));
            }
        }
    }

    fn far(&self, cpu: CpuId) -> Option<bool> {
        far(self.s, self.n, cpu)
    }

    /// Where the lines of a block end, and whether that is on another node than the device.
    fn ends(&self, b: &Block<'_>, p: &Places) -> Vec<(Point, Option<bool>)> {
        match &b.target {
            Target::Cpus(cpus) => cpus.iter().filter_map(|c| Some((p.cpus.get(c).copied()?, self.far(*c)))).collect(),
            Target::Fold(place) => {
                let own = |node: &NodeId| self.n.node.known().map(|own| own != node);
                let far = if let CpuGroup::Node(node) = place { own(node) } else { None };
                p.folds.get(place).map(|to| (*to, far)).into_iter().collect()
            }
            Target::Words(_) => vec![],
        }
    }

    fn lines(&self, c: &mut Canvas, p: &Places) -> LegendItems {
        let mut seen = LegendItems::default();
        self.thin_lines(c, p, &mut seen);
        let x = &self.x;
        // Draw lines to remote nodes last, on top, because they are what the user looks for.
        for pass in [false, true] {
            for (b, ys) in self.blocks.iter().zip(&p.blocks) {
                let ends = self.ends(b, p);
                seen.one_of |= ends.len() > 1;
                for (to, far) in ends.into_iter().filter(|(_, far)| (*far == Some(true)) == pass) {
                    let (colour, dash, w) = match far {
                        Some(true) => (FAR, FAR_DASH, 1.8),
                        Some(false) => (NEAR, "", 1.5),
                        None => (UNSURE, "", 1.5),
                    };
                    let several = b.vectors.len() > 1;
                    let w = if several { BUNDLE } else { w };
                    seen.line(far);
                    seen.bundled |= several;
                    c.curve(at(x.out(), ys[0]), to, &Ink::line(colour, w, dash));
                    c.dot(to, 3.0, colour);
                    if far == Some(true) {
                        badge(c, at(x.out() + 12.0, ys[0]));
                    }
                }
            }
        }
        let mut drawn = self.nodes.iter().flat_map(|n| &n.cores).flat_map(|c| c.used.iter().chain(&c.idle));
        seen.isolated = drawn.any(|c| self.isolated.contains(*c));
        seen.doubtful = self.blocks.iter().any(Block::doubtful);
        seen.crowded = self.verdict.any_crowded();
        seen.repeated = self.labels.repeated;
        seen.threads =
            Ranks::of(&self.s.topology).smt() && self.nodes.iter().any(|n| n.cores.iter().any(|c| c.fold.is_empty()));
        seen
    }

    /// Draws the lines of XPS and RPS, below the other lines.
    fn thin_lines(&self, c: &mut Canvas, p: &Places, seen: &mut LegendItems) {
        let x = &self.x;
        let aside = p.pitch / 2.0;
        let row = |dir: Dir, queue: u32| {
            let cell = |r: &super::rows::Row| match dir {
                Dir::Rx => r.rx.as_ref().is_some_and(|c| c.queues.contains(&queue)),
                Dir::Tx => r.tx.as_ref().is_some_and(|c| c.queues.contains(&queue)),
            };
            self.blocks.iter().zip(&p.blocks).find_map(|(b, ys)| {
                let i = b.rows.iter().position(cell)?;
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
            let y = if !b.vectors.is_empty() { b_top(b, p, &self.blocks).unwrap_or(y) } else { y } - self.z.cell / 4.0;
            if b.vectors.is_empty() {
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
            let served = !b.vectors.is_empty();
            let y = if served { first } else { (first + ys[ys.len() - 1]) / 2.0 };
            let y = y.min(first + 3.5 * p.pitch);
            let plain = Ink::line(UNSURE, 1.2, if served { "" } else { "2 2" });
            for (row, y) in b.rows.iter().zip(ys) {
                let from = if row.tx.is_some() { x.tx + x.tx_w } else { x.tx };
                c.line(&[at(from, *y), at(x.join, *y)], &plain);
                for (cell, cx, w) in [(&row.rx, x.rx, x.rx_w), (&row.tx, x.tx, x.tx_w)] {
                    if let Some(cell) = cell {
                        self.queue(c, cell, Area { x: cx, y: y - z.cell / 2.0, w, h: z.cell });
                    }
                }
                let of = |cell: &Option<Cell>| cell.as_ref().and_then(|c| self.groups.common(c.queues.iter().copied()));
                if let Some(k) = of(&row.rx).or(of(&row.tx)) {
                    c.text(at(x.letter + 8.0, *y), &letter(k), &Font::left(z.font, INK).bold().middle());
                }
            }
            if ys.len() > 1 {
                c.line(&[at(x.join, first), at(x.join, ys[ys.len() - 1])], &plain);
            }
            c.line(&[at(x.join, y), at(x.irq - if served { 0.0 } else { 6.0 }, y)], &plain);
            if served {
                let a = Area { x: x.irq, y: y - z.cell / 2.0, w: x.irq_w, h: z.cell };
                let ink = Ink { dash: if b.doubtful() { "4 2" } else { "" }, ..Ink::filled("#fbf6e4", "#9a8a4a") };
                c.rect(a, 8.0, &ink, &about(b));
                c.text(at(a.x + a.w / 2.0, y), &irq_label(b), &Font::left(z.font, INK).middle());
            }
            if let Target::Words(text) = &b.target {
                let tx = if served { x.out() + 8.0 } else { x.irq };
                let w = width(text, z.font);
                // Other lines pass here, so the text needs a background.
                let behind = Area { x: tx - 3.0, y: y - z.font * 0.65, w: w + 6.0, h: z.font * 1.3 };
                c.rect(behind, 0.0, &Ink::filled(PAGE, "none"), "");
                c.text(at(tx, y), text, &words);
            }
        }
    }

    fn queue(&self, c: &mut Canvas, cell: &Cell, a: Area) {
        let (fill, stroke) = self.groups.common(cell.queues.iter().copied()).map_or(QUEUE, colours);
        let about = if cell.queues.len() > 1 {
            format!("queues {}", numbers(cell.queues.iter().copied()))
        } else {
            String::new()
        };
        c.rect(a, 2.0, &Ink::filled(fill, stroke), &about);
        c.text(at(a.x + a.w / 2.0, a.y + a.h / 2.0), &cell.label, &Font::left(self.z.font, INK).middle());
    }

    fn cpus(&self, c: &mut Canvas, p: &Places) {
        let (z, x) = (&self.z, &self.x);
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
                let ink = match self.verdict.crowded(*cpu) {
                    true => Ink { width: 2.0, ..Ink::filled(CROWDED_FILL, CROWDED) },
                    false => Ink::filled(fill, stroke),
                };
                c.rect(a, 2.0, &ink, "");
                c.text(at(a.x + 7.0, l.y), label, &Font::left(z.font, INK));
            }
            if let Some(label) = self.labels.fold.get(&core.fold) {
                let a =
                    Area { x: x.cell, y: y + super::place::CORE_PAD + 1.5, w: width(label, z.font) + 14.0, h: high };
                c.rect(a, 2.0, &Ink::filled("#dcebf7", NEAR), &format!("CPUs {}", core.fold));
                c.text(at(a.x + 7.0, a.y + high / 2.0), label, &Font::left(z.font, INK));
            }
            let from = x.cell + if core.used.is_empty() { 0.0 } else { x.cell_w };
            for (i, cpu) in core.idle.iter().enumerate() {
                let mid = y + super::place::CORE_PAD + z.cpu / 2.0;
                let a = Area { x: from + i as f64 * x.idle_w + 2.0, y: mid - high / 2.0, w: x.idle_w - 2.0, h: high };
                let dash = if self.isolated.contains(*cpu) { "2 2" } else { "" };
                c.rect(a, 2.0, &Ink { dash, ..Ink::filled("#f2f4f7", "#d0d5de") }, "");
                c.text(at(a.x + a.w / 2.0, mid), &cpu.to_string(), &Font::left(z.font - 1.0, FAINT).middle());
            }
        }
    }

    fn notes(&self, c: &mut Canvas, mut y: f64, room: f64) {
        let size = 11.5;
        let notes = notes(self.s, self.n, &self.links, &self.groups);
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

/// The text for the pointer on an interrupt.
fn about(b: &Block<'_>) -> String {
    match b.vectors.as_slice() {
        [v] => format!(
            "{}: irq {}, affinity {}, delivered to {}",
            vector_label(v),
            v.irq,
            word(&v.asked, set),
            word(&v.effective, set)
        ),
        all => {
            let to: CpuSet = all.iter().filter_map(|v| v.effective.known()).flat_map(CpuSet::iter).collect();
            format!("irqs {}, delivered to CPUs {}", numbers(all.iter().map(|v| v.irq.0)), set(&to))
        }
    }
}

fn b_top(b: &Block<'_>, p: &Places, all: &[Block<'_>]) -> Option<f64> {
    let i = all.iter().position(|o| std::ptr::eq(o, b))?;
    p.blocks[i].first().copied()
}

//! The legend, limited to the lines and colours in the picture.

use super::MARGIN;
use super::groups::Groups;
use super::marks::{BUNDLE, CROWDED, CROWDED_FILL, FAR, FAR_DASH, NEAR, RPS, RPS_DASH, UNSURE, XPS, XPS_DASH, badge};
use ringwise_draw::canvas::{Area, Canvas, Font, INK, Ink, PAGE, at, width};

const SIZE: f64 = 11.5;
const STEP: f64 = 18.0;
const SAMPLE: f64 = 38.0;

#[derive(Debug, Default)]
pub(super) struct LegendItems {
    pub near: bool,
    pub far: bool,
    pub unsure: bool,
    /// An interrupt has lines to several CPUs.
    pub one_of: bool,
    pub xps: bool,
    pub rps: bool,
    pub doubtful: bool,
    pub isolated: bool,
    pub repeated: bool,
    /// Cores with several threads are drawn.
    pub threads: bool,
    /// A CPU or core has more queues than others.
    pub crowded: bool,
    /// Several interrupts share a row.
    pub bundled: bool,
}

impl LegendItems {
    pub(super) fn line(&mut self, far: Option<bool>) {
        match far {
            Some(true) => self.far = true,
            Some(false) => self.near = true,
            None => self.unsure = true,
        }
    }
}

enum Sample<'a> {
    Frame,
    Crowded,
    Line(Ink<'a>),
    Far,
    Sign(&'a str),
}

/// Draws the legend. Returns its lower edge.
pub(super) fn draw(c: &mut Canvas, top: f64, room: f64, seen: &LegendItems, groups: &Groups) -> f64 {
    let mut items: Vec<(Sample, &str)> = Vec::new();
    let mut when = |on: bool, sample: Sample<'static>, text: &'static str| {
        if on {
            items.push((sample, text));
        }
    };
    when(seen.near, Sample::Line(Ink::line(NEAR, 1.5, "")), "interrupt is delivered here, local node");
    when(seen.far, Sample::Far, "delivered here, remote node");
    when(seen.unsure, Sample::Line(Ink::line(UNSURE, 1.5, "")), "delivered here, local or remote unknown");
    when(seen.one_of, Sample::Sign("<"), "several lines: delivered to one of these CPUs");
    when(seen.xps, Sample::Line(Ink::line(XPS, 1.0, XPS_DASH)), "XPS: CPU sends on this queue");
    when(seen.rps, Sample::Line(Ink::line(RPS, 1.2, RPS_DASH)), "RPS: packets are passed to this CPU");
    when(seen.threads, Sample::Frame, "a core with its threads");
    when(seen.bundled, Sample::Line(Ink::line(UNSURE, BUNDLE, "")), "several interrupts");
    when(seen.repeated, Sample::Sign("×n"), "handles this many of these interrupts");
    when(seen.crowded, Sample::Crowded, "CPU or core with at least 2 queues more than another");
    when(seen.doubtful, Sample::Sign("?"), "probably serves these queues (not certain)");
    when(seen.isolated, Sample::Sign("i"), "isolated CPU (dashed if no line ends there)");
    let (mut x, mut y) = (MARGIN, top);
    for (sample, text) in items {
        let w = SAMPLE + width(text, SIZE) + 22.0;
        if x > MARGIN && x + w > MARGIN + room {
            (x, y) = (MARGIN, y + STEP);
        }
        let (from, to) = (at(x, y), at(x + SAMPLE - 8.0, y));
        match sample {
            Sample::Line(ink) => c.line(&[from, to], &ink),
            Sample::Far => {
                c.line(&[from, to], &Ink::line(FAR, 1.8, FAR_DASH));
                badge(c, at(x + 15.0, y));
            }
            Sample::Crowded => {
                let a = Area { x: x + 2.0, y: y - 7.0, w: 26.0, h: 14.0 };
                c.rect(a, 3.0, &Ink { width: 2.0, ..Ink::filled(CROWDED_FILL, CROWDED) }, "");
            }
            Sample::Frame => {
                let a = Area { x: x + 2.0, y: y - 7.0, w: 26.0, h: 14.0 };
                c.rect(a, 3.0, &Ink::filled(PAGE, "#c3cad6"), "");
            }
            Sample::Sign(s) => c.text(at(x + 15.0, y), s, &Font::left(SIZE, INK).bold().middle()),
        }
        c.text(at(x + SAMPLE, y), text, &Font::left(SIZE, INK));
        x += w;
    }
    y += if x > MARGIN { STEP } else { 0.0 };
    for (letter, (fill, stroke), about) in groups.legend() {
        c.rect(Area { x: MARGIN, y: y - 8.0, w: 30.0, h: 16.0 }, 2.0, &Ink::filled(fill, stroke), "");
        c.text(at(MARGIN + 15.0, y), &letter, &Font::left(SIZE, INK).bold().middle());
        c.text(at(MARGIN + SAMPLE, y), &format!("group {letter}: {about}"), &Font::left(SIZE, INK));
        y += STEP + 1.0;
    }
    y
}

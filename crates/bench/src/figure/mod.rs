//! Figures as SVG: one drawing kit ([`canvas`], ticks, [`chart`], [`forest`]), and what a session shows with it
//! ([`of`]). Colours are Okabe and Ito's, which people with colour-blindness tell apart; markers say the same once more.

pub mod axis;
pub mod canvas;
pub mod chart;
pub mod forest;
mod of;

pub use of::figures;

use canvas::{Canvas, Font, INK, Ink, PAGE, Point, at, num, wrap};

/// One picture of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// For a file: `loss-by-size-2`.
    pub name: String,
    pub title: String,
    /// What is drawn, for below it.
    pub caption: String,
    /// A whole document.
    pub svg: String,
    /// Takes the room of two.
    pub wide: bool,
}

const FONT: &str = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";
/// The first state is what the others are compared with.
const COLOURS: [&str; 7] = ["#5b6472", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58400", "#56b4e9"];
/// The same as areas, light enough for lines above them.
const TINTS: [&str; 7] = ["#b9bec6", "#93c3e4", "#f3b995", "#94d3bf", "#ecd0df", "#dfcb8f", "#bfe1f6"];
const GRID: &str = "#e3e7ed";
const SMALL: f64 = 11.5;

fn colour(state: usize) -> &'static str {
    COLOURS[state % COLOURS.len()]
}

fn tint(state: usize) -> &'static str {
    TINTS[state % TINTS.len()]
}

/// Circle, square, triangle, diamond, triangle on its head: by state; filled or hollow.
fn marker(c: &mut Canvas, p: Point, state: usize, filled: bool) {
    let corners: &[(f64, f64)] = match state % 5 {
        1 => &[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)],
        2 => &[(0.0, -4.8), (4.6, 3.4), (-4.6, 3.4)],
        3 => &[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)],
        4 => &[(0.0, 4.8), (4.6, -3.4), (-4.6, -3.4)],
        _ => {
            c.dot(p, 4.4, colour(state));
            if !filled {
                c.dot(p, 2.6, PAGE);
            }
            return;
        }
    };
    let mut points: Vec<Point> = corners.iter().map(|(x, y)| at(p.x + x, p.y + y)).collect();
    points.push(points[0]);
    let ink = Ink { fill: if filled { colour(state) } else { PAGE }, stroke: colour(state), width: 1.6, dash: "" };
    c.line(&points, &ink);
}

/// Two values and caps, upright or level.
fn whisker(c: &mut Canvas, a: Point, b: Point, stroke: &str) {
    let ink = Ink::line(stroke, 1.2, "");
    let (x, y) = if a.x == b.x { (3.5, 0.0) } else { (0.0, 3.5) };
    c.line(&[a, b], &ink);
    for p in [a, b] {
        c.line(&[at(p.x - x, p.y - y), at(p.x + x, p.y + y)], &ink);
    }
}

/// The title in as many lines as it needs. Returns where it ends.
fn heading(c: &mut Canvas, title: &str, room: f64) -> f64 {
    let mut y = 18.0;
    for line in wrap(title, 14.0, room * 1.1) {
        c.text(at(12.0, y), &line, &Font::left(14.0, INK).bold());
        y += 18.0;
    }
    y
}

/// The canvas as a document of its own.
fn document(c: Canvas, title: &str, width: f64) -> String {
    let (w, h) = (num(width.max(c.right.ceil())), num((c.bottom + 10.0).ceil()));
    let body = c.body();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
         font-family=\"{FONT}\">\n<title>{}</title>\n\
         <rect x=\"0\" y=\"0\" width=\"{w}\" height=\"{h}\" fill=\"{PAGE}\"/>\n{body}</svg>\n",
        ringwise_model::words::xml(title),
    )
}

//! What figures share: colours, markers, whiskers and headings. The colours are those of Okabe and Ito, which people
//! with colour blindness can distinguish; markers repeat the distinction.

use crate::canvas::{Canvas, Font, INK, Ink, PAGE, Point, at, wrap};
use crate::{SANS, Size};

/// Colours of the states. The first state is the reference for the others.
const COLOURS: [&str; 7] = ["#5b6472", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58400", "#56b4e9"];
/// The same colours for areas, light enough for lines on top of them.
const TINTS: [&str; 7] = ["#b9bec6", "#93c3e4", "#f3b995", "#94d3bf", "#ecd0df", "#dfcb8f", "#bfe1f6"];
/// Colour of a change for the better. No state has it.
pub const BETTER: &str = "#117733";
/// Colour of a change for the worse. No state has it.
pub const WORSE: &str = "#b3122a";
/// Colour of grid lines.
pub const GRID: &str = "#e3e7ed";
/// Size of the labels of an axis.
pub const SMALL: f64 = 11.5;

/// Colour of the state with this number.
pub fn colour(state: usize) -> &'static str {
    COLOURS[state % COLOURS.len()]
}

/// The same for areas.
pub fn tint(state: usize) -> &'static str {
    TINTS[state % TINTS.len()]
}

/// Marker of a state, filled or hollow: circle, square, triangle, diamond, inverted triangle.
pub fn marker(c: &mut Canvas, p: Point, state: usize, filled: bool) {
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

/// A line between two values with caps, vertical or horizontal.
pub fn whisker(c: &mut Canvas, a: Point, b: Point, stroke: &str) {
    let ink = Ink::line(stroke, 1.2, "");
    let (x, y) = if a.x == b.x { (3.5, 0.0) } else { (0.0, 3.5) };
    c.line(&[a, b], &ink);
    for p in [a, b] {
        c.line(&[at(p.x - x, p.y - y), at(p.x + x, p.y + y)], &ink);
    }
}

/// Draws the title in as many lines as it needs. Returns its lower edge.
pub fn heading(c: &mut Canvas, title: &str, room: f64) -> f64 {
    let mut y = 18.0;
    for line in wrap(title, 14.0, room * 1.1) {
        c.text(at(12.0, y), &line, &Font::left(14.0, INK).bold());
        y += 18.0;
    }
    y
}

/// The figure as a complete document of at least this width.
pub fn document(c: Canvas, title: &str, width: f64) -> String {
    let size = Size { w: width.max(c.right.ceil()), h: (c.bottom + 10.0).ceil() };
    crate::document(c, size, title, SANS)
}

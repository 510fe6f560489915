//! What figures share: colours, markers, whiskers and headings. Colours are Okabe and Ito's, which people with colour-blindness
//! tell apart; markers say the same once more.

use crate::canvas::{Canvas, Font, INK, Ink, PAGE, Point, at, wrap};
use crate::{SANS, Size};

/// The first state is what the others are compared with.
const COLOURS: [&str; 7] = ["#5b6472", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58400", "#56b4e9"];
/// The same as areas, light enough for lines above them.
const TINTS: [&str; 7] = ["#b9bec6", "#93c3e4", "#f3b995", "#94d3bf", "#ecd0df", "#dfcb8f", "#bfe1f6"];
/// Lines behind the values.
pub const GRID: &str = "#e3e7ed";
/// Size of the words beside an axis.
pub const SMALL: f64 = 11.5;

/// Of the state with this number.
pub fn colour(state: usize) -> &'static str {
    COLOURS[state % COLOURS.len()]
}

/// The same, for areas.
pub fn tint(state: usize) -> &'static str {
    TINTS[state % TINTS.len()]
}

/// Circle, square, triangle, diamond, triangle on its head: by state; filled or hollow.
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

/// Two values and caps, upright or level.
pub fn whisker(c: &mut Canvas, a: Point, b: Point, stroke: &str) {
    let ink = Ink::line(stroke, 1.2, "");
    let (x, y) = if a.x == b.x { (3.5, 0.0) } else { (0.0, 3.5) };
    c.line(&[a, b], &ink);
    for p in [a, b] {
        c.line(&[at(p.x - x, p.y - y), at(p.x + x, p.y + y)], &ink);
    }
}

/// The title in as many lines as it needs. Returns where it ends.
pub fn heading(c: &mut Canvas, title: &str, room: f64) -> f64 {
    let mut y = 18.0;
    for line in wrap(title, 14.0, room * 1.1) {
        c.text(at(12.0, y), &line, &Font::left(14.0, INK).bold());
        y += 18.0;
    }
    y
}

/// The figure as a document of its own, at least so wide.
pub fn document(c: Canvas, title: &str, width: f64) -> String {
    let size = Size { w: width.max(c.right.ceil()), h: (c.bottom + 10.0).ceil() };
    crate::document(c, size, title, SANS)
}

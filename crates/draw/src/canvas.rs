//! SVG text: a few shapes, escaped text, and the extent of the drawing.

use std::fmt::Write as _;

use ringwise_model::words::xml;

/// Advance of a character in ems. Monospace fonts have 0.6; the rest is reserve.
const ADVANCE: f64 = 0.61;

/// Colour of text and lines.
pub const INK: &str = "#1d2433";
/// Colour of secondary text: scales, explanations.
pub const FAINT: &str = "#667085";
/// Colour of the background.
pub const PAGE: &str = "#ffffff";

/// Width of a text in a monospace font.
pub fn width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * ADVANCE
}

/// A coordinate with at most one decimal place: more is not visible, and equal values give equal text.
pub fn num(v: f64) -> String {
    let v = (v * 10.0).round() / 10.0;
    if v == v.trunc() { format!("{v:.0}") } else { format!("{v:.1}") }
}

/// A position, measured from the upper left corner of the page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Distance from the left.
    pub x: f64,
    /// Distance from the top.
    pub y: f64,
}

/// Short for a [`Point`].
pub fn at(x: f64, y: f64) -> Point {
    Point { x, y }
}

/// A rectangle on the page.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
}

/// How a shape is filled and outlined. Colours are written as in SVG, `none` included.
#[derive(Debug, Clone, Copy)]
pub struct Ink<'a> {
    /// Colour inside.
    pub fill: &'a str,
    /// Colour of the line.
    pub stroke: &'a str,
    /// Width of the line.
    pub width: f64,
    /// `stroke-dasharray`; empty: a solid line.
    pub dash: &'a str,
}

impl<'a> Ink<'a> {
    /// A filled shape with a solid line of width 1.
    pub fn filled(fill: &'a str, stroke: &'a str) -> Self {
        Self { fill, stroke, width: 1.0, dash: "" }
    }

    /// A line without filling.
    pub fn line(stroke: &'a str, width: f64, dash: &'a str) -> Self {
        Self { fill: "none", stroke, width, dash }
    }

    fn attributes(&self) -> String {
        let dash = if self.dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", self.dash) };
        format!(" fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{dash}", self.fill, self.stroke, num(self.width))
    }
}

/// Size, colour and alignment of a text.
#[derive(Debug, Clone, Copy)]
pub struct Font<'a> {
    /// Height of an em.
    pub size: f64,
    /// Colour.
    pub fill: &'a str,
    /// Bold instead of regular weight.
    pub bold: bool,
    /// The text is centred at its position. This takes precedence over `end`.
    pub middle: bool,
    /// The text ends at its position.
    pub end: bool,
}

impl<'a> Font<'a> {
    /// Regular text that begins at its position.
    pub fn left(size: f64, fill: &'a str) -> Self {
        Self { size, fill, bold: false, middle: false, end: false }
    }

    /// The same font in bold.
    pub fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// The same font, centred at its position.
    pub fn middle(self) -> Self {
        Self { middle: true, ..self }
    }

    /// The same font, ending at its position.
    pub fn end(self) -> Self {
        Self { end: true, ..self }
    }
}

/// Shapes and texts of a picture. Later ones cover earlier ones.
#[derive(Debug, Default)]
pub struct Canvas {
    body: String,
    /// The right edge of all shapes and texts so far.
    pub right: f64,
    /// The lower edge of all shapes and texts so far.
    pub bottom: f64,
}

impl Canvas {
    fn reach(&mut self, x: f64, y: f64) {
        self.right = self.right.max(x);
        self.bottom = self.bottom.max(y);
    }

    fn put(&mut self, args: std::fmt::Arguments<'_>) {
        let _ = self.body.write_fmt(args); // Writing to a String cannot fail.
        self.body.push('\n');
    }

    /// A box. Viewers show `about` when the pointer rests on it.
    pub fn rect(&mut self, a: Area, round: f64, ink: &Ink<'_>, about: &str) {
        self.reach(a.x + a.w + ink.width / 2.0, a.y + a.h + ink.width / 2.0);
        let shape = format!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"{}",
            num(a.x),
            num(a.y),
            num(a.w),
            num(a.h),
            num(round),
            ink.attributes()
        );
        if about.is_empty() {
            self.put(format_args!("{shape}/>"));
        } else {
            self.put(format_args!("{shape}><title>{}</title></rect>", xml(about)));
        }
    }

    /// A filled circle of radius `r` around `p`.
    pub fn dot(&mut self, p: Point, r: f64, fill: &str) {
        self.reach(p.x + r, p.y + r);
        self.put(format_args!("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{fill}\"/>", num(p.x), num(p.y), num(r)));
    }

    /// Text that is vertically centred at `p.y`.
    pub fn text(&mut self, p: Point, text: &str, font: &Font<'_>) {
        let w = width(text, font.size);
        let right = match (font.middle, font.end) {
            (true, _) => p.x + w / 2.0,
            (_, true) => p.x,
            _ => p.x + w,
        };
        self.reach(right, p.y + font.size * 0.6);
        let mut more = String::new();
        if font.bold {
            more.push_str(" font-weight=\"bold\"");
        }
        if font.middle {
            more.push_str(" text-anchor=\"middle\"");
        }
        if font.end {
            more.push_str(" text-anchor=\"end\"");
        }
        // Some viewers do not support dominant-baseline.
        self.put(format_args!(
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{more}>{}</text>",
            num(p.x),
            num(p.y + font.size * 0.35),
            num(font.size),
            font.fill,
            xml(text)
        ));
    }

    /// A straight line through all points.
    pub fn line(&mut self, points: &[Point], ink: &Ink<'_>) {
        let mut d = String::new();
        for (i, p) in points.iter().enumerate() {
            self.reach(p.x, p.y);
            let _ = write!(d, "{}{} {}", if i == 0 { "M" } else { " L" }, num(p.x), num(p.y));
        }
        self.put(format_args!("<path d=\"{d}\"{}/>", ink.attributes()));
    }

    /// A curve that is horizontal at both ends and stays between them.
    pub fn curve(&mut self, a: Point, b: Point, ink: &Ink<'_>) {
        self.reach(a.x.max(b.x), a.y.max(b.y));
        let mid = num((a.x + b.x) / 2.0);
        self.put(format_args!(
            "<path d=\"M{} {} C{mid} {} {mid} {} {} {}\"{}/>",
            num(a.x),
            num(a.y),
            num(a.y),
            num(b.y),
            num(b.x),
            num(b.y),
            ink.attributes()
        ));
    }

    /// Adds another picture of this size below everything drawn so far.
    pub fn below(&mut self, other: Canvas, size: crate::Size) {
        let top = num(self.bottom);
        self.reach(size.w, self.bottom + size.h);
        self.put(format_args!("<g transform=\"translate(0 {top})\">\n{}</g>", other.body));
    }

    pub(crate) fn body(self) -> String {
        self.body
    }
}

/// Breaks text into lines of at most this width.
pub fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        match out.last_mut() {
            Some(l) if width(l, size) + width(word, size) + size <= room => {
                l.push(' ');
                l.push_str(word);
            }
            _ => out.push(word.to_string()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(xml("a<b>&\"c'\u{1}"), "a&lt;b&gt;&amp;&quot;c&apos;\u{fffd}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            (num(12.0), num(12.04), num(-0.04), num(7.25)),
            ("12".into(), "12".into(), "-0".into(), "7.3".into())
        );
    }

    #[test]
    fn long_words_stay_whole() {
        assert_eq!(wrap("aa bb cccccccccccccccc d", 10.0, 50.0), ["aa bb", "cccccccccccccccc", "d"]);
    }
}

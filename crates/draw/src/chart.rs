//! Lines or grouped bars over one axis, with a right axis for series of another unit.

use crate::axis::{self, Ticks};
use crate::canvas::{Area, Canvas, FAINT, Font, INK, Ink, PAGE, Point, at, width};
use crate::outlier::{self, Candidate};
use crate::plot::{GRID, SMALL, colour, document, heading, marker, tint, whisker};

/// A value at a position; an unknown value is a gap.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spot {
    /// Value on the x axis; an index for [`X::Names`].
    pub x: f64,
    /// The measured value; `None`: unknown.
    pub y: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of the interval. It is drawn if both ends are known.
    pub high: Option<f64>,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesStyle {
    /// Number of the state (or thread count), which selects colour and marker.
    Of(usize),
    /// A limit that no value can exceed: dotted, without markers.
    Bound,
}

/// The values of one state, or a bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Colour and marker.
    pub look: SeriesStyle,
    /// Belongs to the right axis: dashed, with hollow markers.
    pub right: bool,
    /// In the order of ascending `x`.
    pub spots: Vec<Spot>,
}

/// The x axis.
#[derive(Debug, Clone, PartialEq)]
pub enum X {
    /// Bytes, on a logarithmic axis of base 2.
    Sizes {
        /// The largest size is at the left.
        falling: bool,
    },
    /// Counts above 0: base 2 if they span more than 16 times, otherwise linear.
    Counts(String),
    /// Names; `x` of a spot is an index.
    Names(String, Vec<String>),
}

/// An axis of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Y {
    /// `packets/s`, `%`, `us`.
    pub unit: String,
    /// Shows thousands and millions with a prefix (`k`, `M`).
    pub prefix: bool,
    /// Shows 0 even if all values are far from it.
    pub zero: bool,
    /// Logarithmic if the values span more than 20 times.
    pub log: bool,
    /// A horizontal line at this value with a label, for example `1.0` for the first state.
    pub mark: Option<(f64, String)>,
}

impl Y {
    /// A linear axis that shows 0, without a mark.
    pub fn from_zero(unit: &str, prefix: bool) -> Self {
        Self { unit: unit.into(), prefix, zero: true, log: false, mark: None }
    }
}

/// A figure: a title, axes and series.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Heading of the figure, and its `<title>` in SVG.
    pub title: String,
    /// The x axis.
    pub x: X,
    /// The left axis.
    pub left: Y,
    /// The right axis; without it, or without values for it, series with `right` are not drawn.
    pub right: Option<Y>,
    /// The series of the left axis are grouped bars; `x` must be [`X::Names`].
    pub bars: bool,
    /// In the order of the legend.
    pub series: Vec<Series>,
}

/// Width of a chart; the height follows from title and legend.
pub const WIDTH: f64 = 640.0;
const PLOT: Area = Area { x: 62.0, y: 0.0, w: 516.0, h: 250.0 };

/// The positions of values on the page.
struct Frame {
    area: Area,
    x: Ticks,
    /// The largest value is at the left.
    falling: bool,
    log_x: bool,
    left: Ticks,
    right: Option<Ticks>,
}

impl Frame {
    fn x(&self, v: f64) -> f64 {
        let share = self.x.share(if self.log_x { v.log2() } else { v });
        self.area.x + self.area.w * if self.falling { 1.0 - share } else { share }
    }

    fn y(&self, v: f64, right: bool) -> f64 {
        let ticks = if right { self.right.as_ref().unwrap_or(&self.left) } else { &self.left };
        self.area.y + self.area.h * (1.0 - ticks.share(v).clamp(0.0, 1.0))
    }
}

/// How far intervals may stretch an axis beyond the values, on a linear and on a logarithmic axis: a much wider
/// interval would compress the values.
const STRETCH: f64 = 2.5;
const LOG_STRETCH: f64 = 10.0;

/// Smallest and largest value of one side of the chart, and of the ends of their intervals.
struct Reach {
    values: (f64, f64),
    intervals: (f64, f64),
    /// The largest value without those that would compress all others.
    usual: Option<f64>,
}

fn reach(chart: &Chart, right: bool) -> Option<Reach> {
    let series: Vec<&Series> = chart.series.iter().filter(|s| s.right == right).collect();
    let spots: Vec<&Spot> = series.iter().flat_map(|s| &s.spots).filter(|s| s.y.is_some()).collect();
    let ends = |of: fn(&Spot) -> [Option<f64>; 3]| {
        let all = spots.iter().flat_map(|s| of(s)).flatten().filter(|v| v.is_finite());
        all.fold(None, |m: Option<(f64, f64)>, v| Some(m.map_or((v, v), |(a, b)| (a.min(v), b.max(v)))))
    };
    let usual = outlier::largest(candidates(&series));
    Some(Reach { values: ends(|s| [s.y, None, None])?, intervals: ends(|s| [s.y, s.low, s.high])?, usual })
}

/// The measured values of these series, with those they are compared with.
fn candidates(all: &[&Series]) -> Vec<Candidate> {
    let measured = || all.iter().filter(|s| s.look != SeriesStyle::Bound);
    let mut out = Vec::new();
    for (k, s) in measured().enumerate() {
        for (i, spot) in s.spots.iter().enumerate() {
            let Some(value) = spot.y else { continue };
            let others = measured().enumerate().filter(|(o, _)| *o != k).flat_map(|(_, o)| &o.spots);
            let same_place = others.filter(|p| p.x == spot.x).filter_map(|p| p.y).collect();
            let beside = |j: Option<usize>| s.spots.get(j?)?.y;
            let neighbours = beside(i.checked_sub(1)).zip(beside(Some(i + 1))).map(|(a, b)| [a, b]);
            out.push(Candidate { value, same_place, neighbours });
        }
    }
    out
}

impl Reach {
    /// Ends of a linear axis. Rates, latencies and shares are never negative, so their axis begins at 0 even where the
    /// interval of a mean reaches below it.
    fn linear(&self) -> (f64, f64) {
        let ((least, most), (low, high)) = (self.values, self.intervals);
        if let Some(usual) = self.usual.filter(|_| least >= 0.0) {
            // The outlier is drawn at the upper edge with its value.
            return (0.0, usual * 1.15);
        }
        let far = least.abs().max(most.abs()) * STRETCH;
        (low.max(if least >= 0.0 { 0.0 } else { -far }), high.min(far))
    }

    /// Ends of a logarithmic axis, if all values are above 0 and span more than 20 times.
    fn log(&self) -> Option<(f64, f64)> {
        let ((least, most), (low, high)) = (self.values, self.intervals);
        let (low, high) = (low.max(least / LOG_STRETCH), high.min(most * LOG_STRETCH));
        (least > 0.0 && most / least > 20.0).then_some((low, high))
    }
}

fn left_ticks(y: &Y, reach: &Reach, bars: bool) -> Ticks {
    if let Some((low, high)) = reach.log().filter(|_| y.log) {
        return axis::log(low, high);
    }
    let (mut low, mut high) = reach.linear();
    if let Some((m, _)) = y.mark {
        (low, high) = (low.min(m), high.max(m));
    }
    if y.zero || bars {
        (low, high) = (low.min(0.0), high.max(0.0));
    }
    axis::linear(low, high, 5)
}

/// The figure as an SVG document. `None`: the left axis has no values, so the figure would be empty.
pub fn draw(chart: &Chart) -> Option<String> {
    let left = left_ticks(&chart.left, &reach(chart, false)?, chart.bars);
    let right_y = chart.right.as_ref().zip(reach(chart, true));
    let right = right_y.as_ref().map(|(_, reach)| axis::steps(reach.linear().1, left.at.len() - 1));
    let mut c = Canvas::default();
    let top = heading(&mut c, &chart.title, WIDTH - 24.0);
    let area = Area { y: top + 22.0, ..PLOT };
    let (x, log_x) = x_ticks(chart);
    let falling = matches!(chart.x, X::Sizes { falling: true });
    let frame = Frame { area, x, falling, log_x, left, right };
    axes(&mut c, chart, &frame, right_y.map(|(y, _)| y));
    if chart.bars {
        bars(&mut c, chart, &frame);
    }
    for s in chart.series.iter().filter(|s| !chart.bars || s.right) {
        if !s.right || frame.right.is_some() {
            line(&mut c, s, if s.right { chart.right.as_ref() } else { Some(&chart.left) }, &frame);
        }
    }
    mark(&mut c, &chart.left, &frame);
    legend(&mut c, chart, area.y + area.h + 56.0, frame.right.is_some());
    Some(document(c, &chart.title, WIDTH))
}

/// The x axis, with some margin at both ends.
fn x_ticks(chart: &Chart) -> (Ticks, bool) {
    let mut at: Vec<f64> = chart.series.iter().flat_map(|s| s.spots.iter().map(|p| p.x)).collect();
    if let X::Names(_, names) = &chart.x {
        at = (0..names.len()).map(|i| i as f64).collect();
    }
    at.sort_by(f64::total_cmp);
    at.dedup();
    let (first, last) = (at.first().copied().unwrap_or(0.0), at.last().copied().unwrap_or(1.0));
    let log = match chart.x {
        X::Sizes { .. } => first > 0.0,
        X::Counts(_) => first > 0.0 && last / first > 16.0,
        X::Names(..) => false,
    };
    let (first, last) = if log { (first.log2(), last.log2()) } else { (first, last) };
    let room = match chart.x {
        X::Names(..) => 0.5,
        _ => ((last - first) * 0.04).max(if last == first { 1.0 } else { 0.0 }),
    };
    (Ticks { low: first - room, high: last + room, at, log: false }, log)
}

fn axes(c: &mut Canvas, chart: &Chart, f: &Frame, right: Option<&Y>) {
    let a = f.area;
    let end = a.x + a.w;
    let (words, prefix) = f.left.words(chart.left.prefix);
    for (v, word) in f.left.at.iter().zip(&words) {
        let y = f.y(*v, false);
        c.line(&[at(a.x, y), at(end, y)], &Ink::line(GRID, 1.0, ""));
        c.text(at(a.x - 8.0, y), word, &Font::left(SMALL, FAINT).end());
    }
    let unit = |y: &Y, prefix: &str| match y.unit.as_str() {
        u @ "bit/s" => format!("{prefix}{u}"),
        u if prefix.is_empty() => u.to_string(),
        u => format!("{prefix} {u}"),
    };
    c.text(at(12.0, a.y - 14.0), &unit(&chart.left, prefix), &Font::left(SMALL, INK));
    if let (Some(y), Some(ticks)) = (right, &f.right) {
        let (words, prefix) = ticks.words(y.prefix);
        for (v, word) in ticks.at.iter().zip(&words) {
            c.text(at(end + 8.0, f.y(*v, true)), word, &Font::left(SMALL, FAINT));
        }
        c.text(at(WIDTH - 12.0, a.y - 14.0), &unit(y, prefix), &Font::left(SMALL, INK).end());
    }
    let floor = a.y + a.h;
    c.line(&[at(a.x, floor), at(end, floor)], &Ink::line(FAINT, 1.0, ""));
    let (label, words): (&str, Vec<String>) = match &chart.x {
        X::Sizes { .. } => ("bytes", f.x.at.iter().map(|v| axis::size(*v)).collect()),
        X::Counts(label) => (label, f.x.at.iter().map(f64::to_string).collect()),
        X::Names(label, names) => (label, names.clone()),
    };
    // Skip a label that would touch the one before it; its tick stays.
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for (v, word) in f.x.at.iter().zip(&words) {
        let (x, half) = (f.x(*v), width(word, SMALL) / 2.0 + 2.0);
        c.line(&[at(x, floor), at(x, floor + 4.0)], &Ink::line(FAINT, 1.0, ""));
        if taken.iter().all(|(l, h)| x + half <= *l || x - half >= *h) {
            taken.push((x - half, x + half));
            c.text(at(x, floor + 14.0), word, &Font::left(SMALL, FAINT).middle());
        }
    }
    c.text(at(a.x + a.w / 2.0, floor + 32.0), label, &Font::left(SMALL, INK).middle());
}

/// Draws the mark over everything else. Its label is at the right of the plot, or on a white box if it does not fit
/// there.
fn mark(c: &mut Canvas, left: &Y, f: &Frame) {
    let Some((v, word)) = &left.mark else { return };
    let (end, y) = (f.area.x + f.area.w, f.y(*v, false));
    c.line(&[at(f.area.x, y), at(end, y)], &Ink::line(INK, 1.0, "5 3"));
    let wide = width(word, SMALL);
    if word.is_empty() {
        return;
    }
    if f.right.is_none() && end + 6.0 + wide < WIDTH {
        c.text(at(end + 6.0, y), word, &Font::left(SMALL, INK));
        return;
    }
    let middle = if y < f.area.y + 20.0 { y + 10.0 } else { y - 10.0 };
    let a = Area { x: end - wide - 6.0, y: middle - 7.0, w: wide + 4.0, h: 14.0 };
    c.rect(a, 0.0, &Ink { fill: PAGE, stroke: "none", width: 0.0, dash: "" }, "");
    c.text(at(end - 4.0, middle), word, &Font::left(SMALL, INK).end());
}

fn bars(c: &mut Canvas, chart: &Chart, f: &Frame) {
    let all: Vec<&Series> = chart.series.iter().filter(|s| !s.right && s.look != SeriesStyle::Bound).collect();
    let group = f.x(1.0) - f.x(0.0);
    let wide = (group * 0.74 / all.len() as f64).min(46.0);
    for (i, s) in all.iter().enumerate() {
        let SeriesStyle::Of(state) = s.look else { continue };
        for spot in &s.spots {
            let Some(v) = spot.y else { continue };
            let x = f.x(spot.x) + (i as f64 - all.len() as f64 / 2.0) * wide;
            let (y, zero) = (f.y(v, false), f.y(0.0, false));
            let a = Area { x: x + 1.0, y: y.min(zero), w: wide - 2.0, h: (zero - y).abs() };
            c.rect(a, 0.0, &Ink::filled(tint(state), colour(state)), "");
            if v > f.left.high {
                beyond(c, at(x + wide / 2.0, f.area.y), &f.left.word(v, chart.left.prefix), f);
            } else if let (Some(low), Some(high)) = (spot.low, spot.high) {
                let x = x + wide / 2.0;
                whisker(c, at(x, f.y(low, false)), at(x, f.y(high, false)), INK);
            }
        }
    }
}

/// An arrow at the upper edge and the value, for one that is beyond the axis.
fn beyond(c: &mut Canvas, p: Point, word: &str, f: &Frame) {
    let tip = at(p.x, p.y - 9.0);
    c.line(&[at(p.x, p.y + 4.0), tip], &Ink::line(INK, 1.4, ""));
    c.line(&[at(tip.x - 3.5, tip.y + 5.0), tip, at(tip.x + 3.5, tip.y + 5.0)], &Ink::line(INK, 1.4, ""));
    let font = Font::left(SMALL, INK).bold();
    let right = p.x + 8.0 + width(word, SMALL) > f.area.x + f.area.w;
    let (x, font) = if right { (p.x - 7.0, font.end()) } else { (p.x + 7.0, font) };
    c.text(at(x, p.y - 5.0), word, &font);
}

fn line(c: &mut Canvas, s: &Series, y: Option<&Y>, f: &Frame) {
    let (stroke, dash) = match (s.look, s.right) {
        (SeriesStyle::Bound, _) => (INK, "1.5 4"),
        (SeriesStyle::Of(state), true) => (colour(state), "5 3.5"),
        (SeriesStyle::Of(state), false) => (colour(state), ""),
    };
    let known = |spot: &Spot| spot.y.map(|y| at(f.x(spot.x), f.y(y, s.right)));
    for run in s.spots.split(|p| p.y.is_none()).filter(|r| r.len() > 1) {
        let points: Vec<Point> = run.iter().filter_map(known).collect();
        c.line(&points, &Ink::line(stroke, 1.8, dash));
    }
    let SeriesStyle::Of(state) = s.look else { return };
    for spot in &s.spots {
        let Some(p) = known(spot) else { continue };
        let ticks = if s.right { f.right.as_ref() } else { Some(&f.left) };
        if let Some((ticks, v)) = ticks.zip(spot.y).filter(|(t, v)| *v > t.high * (1.0 + 1e-9)) {
            beyond(c, p, &ticks.word(v, y.is_some_and(|y| y.prefix)), f);
        } else if let (Some(low), Some(high)) = (spot.low, spot.high) {
            whisker(c, at(p.x, f.y(low, s.right)), at(p.x, f.y(high, s.right)), stroke);
        }
        if s.right {
            c.dot(p, 6.0, PAGE);
        }
        marker(c, p, state, !s.right);
    }
}

fn legend(c: &mut Canvas, chart: &Chart, top: f64, right: bool) {
    let (mut x, mut y) = (PLOT.x, top);
    for s in chart.series.iter().filter(|s| (right || !s.right) && s.spots.iter().any(|p| p.y.is_some())) {
        let wide = 36.0 + width(&s.name, SMALL) * 0.95 + 18.0;
        if x > PLOT.x && x + wide > WIDTH - 12.0 {
            (x, y) = (PLOT.x, y + 18.0);
        }
        match s.look {
            SeriesStyle::Of(state) if chart.bars && !s.right => {
                let a = Area { x: x + 8.0, y: y - 5.0, w: 14.0, h: 10.0 };
                c.rect(a, 0.0, &Ink::filled(tint(state), colour(state)), "");
            }
            SeriesStyle::Of(state) => {
                let dash = if s.right { "5 3.5" } else { "" };
                c.line(&[at(x, y), at(x + 28.0, y)], &Ink::line(colour(state), 1.8, dash));
                marker(c, at(x + 14.0, y), state, !s.right);
            }
            SeriesStyle::Bound => c.line(&[at(x, y), at(x + 28.0, y)], &Ink::line(INK, 1.8, "1.5 4")),
        }
        c.text(at(x + 36.0, y), &s.name, &Font::left(SMALL, INK));
        x += wide;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spots(values: &[(f64, Option<f64>)]) -> Vec<Spot> {
        values.iter().map(|(x, y)| Spot { x: *x, y: *y, ..Spot::default() }).collect()
    }

    fn chart(x: X, series: Vec<Series>) -> Chart {
        let right = Some(Y::from_zero("loss, %", false));
        Chart { title: "t".into(), x, left: Y::from_zero("packets/s", true), right, bars: false, series }
    }

    fn series(state: usize, right: bool, values: &[(f64, Option<f64>)]) -> Series {
        Series { name: format!("s{state}"), look: SeriesStyle::Of(state), right, spots: spots(values) }
    }

    fn attributes(svg: &str, element: &str, names: [&str; 2]) -> Vec<(f64, f64)> {
        let of = |line: &str, n: &str| {
            let (_, rest) = line.split_once(&format!(" {n}=\"")).unwrap();
            rest.split_once('"').unwrap().0.parse::<f64>().unwrap()
        };
        let lines = svg.lines().filter(|l| l.starts_with(&format!("<{element} ")));
        lines.map(|l| (of(l, names[0]), of(l, names[1]))).collect()
    }

    /// The circles of the first state against calculated positions: the plot reaches from 62 to 578 and from 58 to 308.
    #[test]
    fn values_lie_where_the_axes_say() {
        let x = X::Sizes { falling: true };
        let c = chart(x, vec![series(0, false, &[(64.0, Some(1e6)), (256.0, Some(5e5)), (1024.0, Some(0.0))])]);
        let svg = draw(&c).unwrap();
        let at = attributes(&svg, "circle", ["cx", "cy"]);
        // Both ends have a margin of four per cent of the range; 1024 is at the left, and 256 halfway.
        let edge = 516.0 * 0.04 / 1.08;
        let near = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 0.1 && (a.1 - b.1).abs() < 0.1;
        assert_eq!(at.len(), 4, "three values and one in the legend");
        assert!(near(at[0], (578.0 - edge, 58.0)), "{at:?}");
        assert!(near(at[1], (320.0, 183.0)), "{at:?}");
        assert!(near(at[2], (62.0 + edge, 308.0)), "{at:?}");
        assert!(svg.contains(">M packets/s<") && !svg.contains("loss"), "no loss is known, so it has no axis");
    }

    /// One block of three had a latency of a second: the interval of that mean begins far below 0.
    #[test]
    fn an_outlier_does_not_move_the_axis_below_zero() {
        let x = X::Names("share".into(), ["50 %", "99 %", "max"].map(String::from).to_vec());
        let usual = series(0, false, &[(0.0, Some(20.0)), (1.0, Some(40.0)), (2.0, Some(90.0))]);
        let mut one = series(1, false, &[(0.0, Some(21.0)), (1.0, Some(43.0)), (2.0, Some(334_000.0))]);
        (one.spots[2].low, one.spots[2].high) = (Some(-1_100_000.0), Some(1_768_000.0));
        for log in [true, false] {
            let mut c = chart(x.clone(), vec![usual.clone(), one.clone()]);
            c.left = Y { log, ..Y::from_zero("us", false) };
            let svg = draw(&c).unwrap();
            assert!(!svg.contains(">-") && !svg.contains("NaN"), "{svg}");
            let at = attributes(&svg, "circle", ["cx", "cy"]);
            let apart = (at[0].1 - at[2].1).abs();
            assert!(!log || apart > 15.0, "20 and 90 us are {apart} apart: {at:?}");
        }
        // Intervals do not determine the axis: the values keep most of it.
        let mut c = chart(x, vec![series(0, false, &[(0.0, Some(20.0)), (1.0, Some(40.0)), (2.0, Some(50.0))])]);
        (c.series[0].spots[2].low, c.series[0].spots[2].high) = (Some(-5000.0), Some(5100.0));
        c.left = Y { log: true, ..Y::from_zero("us", false) };
        let svg = draw(&c).unwrap();
        assert!(!svg.contains(">-") && !svg.contains(">1000<"), "{svg}");
    }

    /// A single series that grows has no outlier, but a value far above that of another state is one.
    #[test]
    fn an_outlier_is_drawn_at_the_edge_with_its_value() {
        let x = X::Names("bytes".into(), ["64", "128", "256"].map(String::from).to_vec());
        let usual = series(0, false, &[(0.0, Some(20.0)), (1.0, Some(30.0)), (2.0, Some(40.0))]);
        let odd = series(1, false, &[(0.0, Some(21.0)), (1.0, Some(3000.0)), (2.0, Some(44.0))]);
        for bars in [false, true] {
            let mut c = chart(x.clone(), vec![usual.clone(), odd.clone()]);
            (c.bars, c.left.prefix) = (bars, false);
            let svg = draw(&c).unwrap();
            assert!(svg.contains(">3000<") && svg.contains(">60<") && !svg.contains(">1000<"), "{svg}");
        }
        let growing = series(0, false, &[(0.0, Some(20.0)), (1.0, Some(200.0)), (2.0, Some(2000.0))]);
        let mut c = chart(x, vec![growing]);
        c.left.prefix = false;
        assert!(draw(&c).unwrap().contains(">1500<"));
    }

    #[test]
    fn unknown_is_a_gap() {
        let values = [(1.0, Some(5.0)), (2.0, Some(6.0)), (3.0, None), (4.0, Some(7.0)), (5.0, Some(8.0))];
        let svg = draw(&chart(X::Counts("queues".into()), vec![series(0, false, &values)])).unwrap();
        let runs = svg.lines().filter(|l| l.starts_with("<path") && l.contains("stroke-width=\"1.8\"")).count();
        // Two runs of two bars, and the legend.
        assert_eq!(runs, 3);
        assert_eq!(attributes(&svg, "circle", ["cx", "cy"]).len(), 5);
        assert_eq!(draw(&chart(X::Counts("queues".into()), vec![series(0, false, &[(1.0, None)])])), None);
        let loss_alone = vec![series(0, true, &[(1.0, Some(5.0))])];
        assert_eq!(draw(&chart(X::Counts("queues".into()), loss_alone)), None);
    }

    #[test]
    fn bars_stand_on_zero_and_beside_each_other() {
        let x = X::Names("bytes".into(), vec!["64".into(), "1K".into()]);
        let both = |state, a, b| series(state, false, &[(0.0, Some(a)), (1.0, Some(b))]);
        let mut c = chart(x, vec![both(0, 1.0, 1.0), both(1, 0.5, 2.0)]);
        (c.bars, c.left.prefix) = (true, false);
        let svg = draw(&c).unwrap();
        let (at, size) = (attributes(&svg, "rect", ["x", "y"]), attributes(&svg, "rect", ["width", "height"]));
        // The background, two bars of each state, two boxes in the legend.
        assert_eq!(at.len(), 7, "{svg}");
        let foot = |i: usize| at[i].1 + size[i].1;
        assert!((1..5).all(|i| (foot(i) - 308.0).abs() < 0.11), "{at:?} {size:?}");
        assert!((size[1].1 / size[3].1 - 2.0).abs() < 0.01 && (size[4].1 / size[3].1 - 4.0).abs() < 0.01);
        assert!(at[3].0 >= at[1].0 + size[1].0, "the bars do not overlap");
    }
}

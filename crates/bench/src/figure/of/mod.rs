//! Selects the figures of a session: those that have data.

mod absolute;
mod relative;
mod several_results;
mod single;

pub use several_results::of_several_results;

use super::Figure;
use crate::file::Results;
use crate::result::{Point, Unit};
use crate::summary::{self, Get, Row};
use crate::words;
use ringwise_draw::chart::{self, Chart, Series, SeriesStyle, Spot};

/// A member of [`Point`] that can be an axis.
struct Axis {
    what: &'static str,
    label: &'static str,
    get: fn(&Point) -> Option<f64>,
    clear: fn(&mut Point),
}

/// Payload, or frames where the session names those.
const SIZE: Axis =
    Axis { what: "size", label: "bytes", get: |p| p.bytes().map(f64::from), clear: |p| *p = p.without_size() };

const OFFERED: &str = "offered rate";

const COUNTS: [Axis; 7] = [
    Axis { what: "queues", label: "queues", get: |p| p.queues.map(f64::from), clear: |p| p.queues = None },
    Axis {
        what: "threads",
        label: "threads of the load",
        get: |p| p.threads.map(f64::from),
        clear: |p| p.threads = None,
    },
    Axis {
        what: "interfaces",
        label: "interfaces",
        get: |p| p.interfaces.map(f64::from),
        clear: |p| p.interfaces = None,
    },
    Axis { what: "routes", label: "routes", get: |p| p.routes.map(f64::from), clear: |p| p.routes = None },
    Axis { what: "flows", label: "flows", get: |p| p.flows.map(f64::from), clear: |p| p.flows = None },
    Axis { what: "skew", label: "skew of the flows (Zipf)", get: |p| p.skew, clear: |p| p.skew = None },
    Axis { what: OFFERED, label: "offered, 1/s", get: |p| p.offered_per_s, clear: |p| p.offered_per_s = None },
];

struct Session<'a> {
    r: &'a Results,
    rows: Vec<Row<'a>>,
    unit: Unit,
    varies: Point,
    out: Vec<Figure>,
}

/// The figures in the order in which they are shown.
pub fn figures(r: &Results) -> Vec<Figure> {
    let mut s = Session::new(r);
    s.changes();
    s.by_size();
    s.searched();
    s.by_count();
    s.by_place();
    s.by_place_of_state();
    s.swept();
    s.normalised();
    s.scores();
    s.percentiles();
    s.queues();
    s.out
}

impl<'a> Session<'a> {
    fn new(r: &'a Results) -> Self {
        let varies = summary::varying(&summary::points(r));
        Self { r, rows: summary::rows(r), unit: summary::unit(r), varies, out: Vec::new() }
    }

    /// Adds a figure with its width.
    fn add(&mut self, name: &str, title: String, caption: String, svg: Option<(String, f64)>) {
        let Some(svg) = svg else { return };
        let n = 1 + self.out.iter().filter(|f| f.name.rsplit_once('-').is_some_and(|(k, _)| k == name)).count();
        let wide = svg.1 > chart::WIDTH + 60.0;
        self.out.push(Figure { name: format!("{name}-{n}"), title, caption, svg: svg.0, wide });
    }

    fn add_chart(&mut self, name: &str, caption: &str, chart: &Chart) {
        let svg = chart::draw(chart).map(|s| (s, chart::WIDTH));
        let intervals = chart.series.iter().flat_map(|s| &s.spots).any(|p| p.low.is_some());
        let whiskers = if intervals {
            let held = (1.0 - self.r.session.design.alpha) * 100.0;
            format!(" Whiskers: {} % interval.", (held * 10.0).round() / 10.0)
        } else {
            String::new()
        };
        self.add(name, chart.title.clone(), format!("{caption}{whiskers}"), svg);
    }

    /// The title `what: 8 queues, heavy`, with the members that vary in this session.
    fn title(&self, what: &str, rest: &Point) -> String {
        match words::point(rest, &self.varies) {
            p if p.is_empty() => what.into(),
            p => format!("{what}: {p}"),
        }
    }

    /// The points without these members, once each.
    fn rests(&self, clear: &[fn(&mut Point)]) -> Vec<Point> {
        let mut out: Vec<Point> = Vec::new();
        for r in &self.rows {
            let p = without(r.point, clear);
            if !out.contains(&p) {
                out.push(p);
            }
        }
        out
    }

    /// Mean over the blocks, with its interval.
    fn spot(&self, x: f64, row: &Row, get: Get) -> Spot {
        let all: Vec<f64> = row.trials.iter().filter_map(|t| get(t)).collect();
        let (low, high) = summary::interval(&all, &self.r.session.design).unzip();
        Spot { x, y: row.mean(get), low, high }
    }

    /// One line per state over `axis`, at all points that are `rest` otherwise.
    fn lines(&self, rest: &Point, axis: &Axis, right: bool, get: Get) -> Vec<Series> {
        let mut out = Vec::new();
        for (i, state) in self.r.session.states.iter().enumerate() {
            let here = self.rows.iter().filter(|r| r.index == i && without(r.point, &[axis.clear]) == *rest);
            let mut spots: Vec<Spot> = here.filter_map(|r| Some(self.spot((axis.get)(r.point)?, r, get))).collect();
            spots.sort_by(|a, b| a.x.total_cmp(&b.x));
            let name = if right { format!("loss, {}", state.name) } else { state.name.clone() };
            out.push(Series { name, look: SeriesStyle::Of(i), right, spots });
        }
        out
    }

    /// Line rate, if the time between two packets at line rate is known; it is left out if it is far above the measured
    /// values.
    fn line_rate(&self, drawn: &[Series], rest: &Point, axis: &Axis, get: Get) -> Option<Series> {
        let most = drawn.iter().flat_map(|s| &s.spots).filter_map(|p| p.y).fold(0.0, f64::max);
        let mut spots: Vec<Spot> = Vec::new();
        for r in self.rows.iter().filter(|r| without(r.point, &[axis.clear]) == *rest) {
            let Some(x) = (axis.get)(r.point) else { continue };
            if spots.iter().all(|s| s.x != x) {
                let y = r.mean(get).filter(|y| *y <= most * 2.5);
                spots.push(Spot { x, y, ..Spot::default() });
            }
        }
        spots.sort_by(|a, b| a.x.total_cmp(&b.x));
        spots.iter().any(|s| s.y.is_some()).then(|| Series {
            name: "line rate".into(),
            look: SeriesStyle::Bound,
            right: false,
            spots,
        })
    }
}

fn without(p: &Point, clear: &[fn(&mut Point)]) -> Point {
    let mut p = p.clone();
    clear.iter().for_each(|c| c(&mut p));
    p
}

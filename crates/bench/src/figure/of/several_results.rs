//! One figure from several result files: a line for each system.

use std::collections::BTreeSet;

use ringwise_draw::chart::{self, Chart, Series, SeriesStyle, Spot, X, Y};

use super::{COUNTS, SIZE, Session};
use crate::compare::{rate_unit, value};
use crate::figure::Figure;
use crate::file::Results;
use crate::result::{Metric, Point};

/// Sizes of payload and of frames do not share an axis.
const PAYLOAD: &str = "payload bytes";
const FRAME: &str = "frame bytes";

/// The values of one system.
struct SystemLine {
    /// What the values below mean: `queues`, `bytes`.
    axis: String,
    series: Series,
}

/// Rates of several systems over the axis that their sessions have in common. `names`: one for each.
///
/// Results with other units or without a common axis are not drawn.
pub fn of_several_results(all: &[(String, &Results)]) -> Vec<Figure> {
    let Some((_, first)) = all.first() else { return Vec::new() };
    let unit = crate::summary::unit(first);
    if all.len() < 2 || all.iter().any(|(_, r)| crate::summary::unit(r) != unit) {
        return Vec::new();
    }
    let lines: Vec<(usize, SystemLine)> =
        all.iter().enumerate().flat_map(|(i, (name, r))| of(name, r).into_iter().map(move |l| (i, l))).collect();
    let axes: BTreeSet<&String> = lines.iter().map(|(_, l)| &l.axis).collect();
    let mut out = Vec::new();
    for axis in axes {
        let here: Vec<&(usize, SystemLine)> = lines.iter().filter(|(_, l)| l.axis == *axis).collect();
        let systems: BTreeSet<usize> = here.iter().map(|(i, _)| *i).collect();
        if systems.len() < all.len() {
            continue;
        }
        let style =
            |(i, (_, l)): (usize, &&(usize, SystemLine))| Series { look: SeriesStyle::Of(i), ..l.series.clone() };
        let chart = Chart {
            title: format!("Rate of {} systems by {axis}", all.len()),
            x: if axis == PAYLOAD || axis == FRAME { X::Sizes { falling: false } } else { X::Counts(axis.clone()) },
            left: Y::from_zero(rate_unit(unit), true),
            right: None,
            bars: false,
            series: here.iter().enumerate().map(style).collect(),
        };
        let Some(svg) = chart::draw(&chart) else { continue };
        out.push(Figure {
            name: format!("systems-by-{}", axis.replace(|c: char| !c.is_ascii_alphanumeric(), "-")),
            title: chart.title,
            caption:
                "Means over the blocks of each session. Whiskers: its interval. The systems differ in more than one \
                      setting: see the environment of each."
                    .into(),
            svg,
            wide: false,
        });
    }
    out
}

/// The lines of one system: the values of a sweep, or the counts and sizes at which its states were measured.
fn of(name: &str, r: &Results) -> Vec<SystemLine> {
    let s = Session::new(r);
    let rate = |t: &crate::result::Trial| value(t, Metric::Rate);
    let mut out = Vec::new();
    let mut add = |axis: &str, state: Option<&str>, mut spots: Vec<Spot>| {
        spots.sort_by(|a, b| a.x.total_cmp(&b.x));
        let several = spots.windows(2).any(|w| w[0].x == w[1].x);
        if spots.iter().filter(|s| s.y.is_some()).count() < 2 || several {
            return;
        }
        let name = state.map_or(name.to_string(), |state| format!("{name}: {state}"));
        out.push(SystemLine {
            axis: axis.into(),
            series: Series { name, look: SeriesStyle::Of(0), right: false, spots },
        });
    };
    if let Some(key) = &r.session.swept {
        let short = key.rsplit('.').next().unwrap_or(key);
        let swept = s.rows.iter().filter_map(|row| {
            let x = r.session.states.get(row.index)?.value?;
            Some(s.spot(x, row, &rate))
        });
        add(short, None, swept.collect());
        return out;
    }
    let states = r.session.states.len();
    for axis in COUNTS.iter().chain([&SIZE]) {
        for (index, state) in r.session.states.iter().enumerate() {
            let here = s.rows.iter().filter(|row| row.index == index && *row.point != Point::default());
            let spots = here.clone().filter_map(|row| Some(s.spot((axis.get)(row.point)?, row, &rate)));
            let frames = here.clone().any(|row| row.point.frame_bytes.is_some());
            let label = match axis.what {
                "size" if frames => FRAME,
                "size" => PAYLOAD,
                _ => axis.label,
            };
            add(label, (states > 1).then_some(state.name.as_str()), spots.collect());
        }
    }
    out
}

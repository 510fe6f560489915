//! Figures relative to the first state: changes, bars, scores.

use super::{SIZE, Session, without};
use crate::compare::value;
use crate::figure::forest::{self, Forest};
use crate::result::{Metric, Point, Unit};
use crate::{summary, words};
use ringwise_draw::axis::size;
use ringwise_draw::chart::{Chart, Series, SeriesStyle, Spot, X, Y};

impl Session<'_> {
    pub(super) fn changes(&mut self) {
        let mut parts: Vec<(Metric, Vec<forest::Row>)> = Vec::new();
        let several = self.r.session.states.len() > 2;
        let mut all: Vec<_> = self.r.comparisons.iter().collect();
        all.sort_by(|a, b| summary::order(&a.point, &b.point));
        for c in all {
            let mut label = words::point(&c.point, &self.varies);
            if several || label.is_empty() {
                label = if label.is_empty() { c.with.clone() } else { format!("{label}, {}", c.with) };
            }
            let row = forest::Row {
                label,
                words: words::change(c),
                change: c.change_percent,
                low: c.low_percent,
                high: c.high_percent,
                equivalent: c.equivalent_percent,
                verdict: c.verdict,
            };
            match parts.iter_mut().find(|p| p.0 == c.metric) {
                Some(p) => p.1.push(row),
                None => parts.push((c.metric, vec![row])),
            }
        }
        parts.sort_by_key(|p| p.0);
        let base = self.r.session.states.first().map_or("", |s| s.name.as_str());
        let caption = "Per cent of the first state's mean, with its interval. Shaded: what counts as equivalent.";
        let head = |m: Metric, unit| {
            format!("{} ({} is better)", words::metric(m, unit), if m.higher_is_better() { "more" } else { "less" })
        };
        let unit = self.unit;
        if parts.iter().all(|p| p.1.len() <= 3) {
            let title = format!("Change against {base}");
            let parts = parts.into_iter().map(|(m, rows)| (head(m, unit), rows)).collect();
            let svg = forest::draw(&Forest { title: title.clone(), parts });
            self.add("changes", title, caption.into(), svg);
            return;
        }
        for (m, rows) in parts {
            let title = format!("Change of {} against {base}", head(m, unit));
            let svg = forest::draw(&Forest { title: title.clone(), parts: vec![(String::new(), rows)] });
            self.add("changes", title, caption.into(), svg);
        }
    }

    /// Bars against the first state, CPU as lines.
    pub(super) fn normalised(&mut self) {
        if self.unit != Unit::Transactions || self.r.session.states.len() < 2 {
            return;
        }
        let workload = self.r.session.workload.clone();
        let kinds = [(Metric::LatencyMean, "Latency performance"), (Metric::Rate, "Throughput")];
        for (m, what) in kinds {
            if (workload == "rr" && m == Metric::Rate) || (workload == "burst" && m == Metric::LatencyMean) {
                continue;
            }
            for rest in self.rests(&[SIZE.clear]) {
                let here = |p: &Point| without(p, &[SIZE.clear]) == rest;
                let mut sizes: Vec<u32> =
                    self.rows.iter().filter(|r| here(r.point)).filter_map(|r| r.point.size_bytes).collect();
                sizes.sort();
                sizes.dedup();
                let at = |p: &Point| sizes.iter().position(|s| Some(*s) == p.size_bytes).map(|i| i as f64);
                let mut series = Vec::new();
                for (i, state) in self.r.session.states.iter().enumerate() {
                    let compared = self.r.comparisons.iter().filter(|c| c.metric == m && here(&c.point));
                    let mut spots: Vec<Spot> = Vec::new();
                    for c in compared {
                        let Some(x) = at(&c.point) else { continue };
                        if i == 0 && spots.iter().all(|s| s.x != x) {
                            spots.push(Spot { x, y: Some(1.0), ..Spot::default() });
                        } else if c.with == state.name {
                            let part = |v: Option<f64>| v.and_then(|v| summary::performance(m, v));
                            let (a, b) = (part(c.low_percent), part(c.high_percent));
                            let (low, high) = if a > b { (b, a) } else { (a, b) };
                            spots.push(Spot { x, y: part(c.change_percent), low, high });
                        }
                    }
                    series.push(Series { name: state.name.clone(), look: SeriesStyle::Of(i), right: false, spots });
                }
                for (i, state) in self.r.session.states.iter().enumerate() {
                    let used = self.rows.iter().filter(|r| r.index == i && here(r.point));
                    let spots = used.filter_map(|r| {
                        let y = r.mean(&|t| value(t, Metric::Cpu));
                        Some(Spot { x: at(r.point)?, y, ..Spot::default() })
                    });
                    let name = format!("CPU, {}", state.name);
                    series.push(Series { name, look: SeriesStyle::Of(i), right: true, spots: spots.collect() });
                }
                let chart = Chart {
                    title: self.title(&format!("{what} by size, normalised"), &rest),
                    x: X::Names("bytes".into(), sizes.iter().map(|s| size(f64::from(*s))).collect()),
                    left: Y {
                        mark: Some((1.0, String::new())),
                        ..Y::from_zero(&format!("{} = 1.0, more is better", self.r.session.states[0].name), false)
                    },
                    right: Some(Y::from_zero("CPU, % of one", false)),
                    bars: true,
                    series,
                };
                let of = if m == Metric::Rate {
                    "Rate of a state by that of the first"
                } else {
                    "Mean latency of the first state by that of the state"
                };
                let name = if m == Metric::Rate { "throughput" } else { "latency" };
                self.add_chart(name, &format!("{of}. Dashed: busy time of all CPUs together, right axis."), &chart);
            }
        }
    }

    pub(super) fn scores(&mut self) {
        let all = summary::scores(self.r);
        // The level follows from the threads.
        let clear: [fn(&mut Point); 3] = [SIZE.clear, |p| p.threads = None, |p| p.level = None];
        let mut kinds: Vec<(Point, String)> = Vec::new();
        for s in &all {
            let kind = (without(&s.point, &clear), s.state.clone());
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        for (rest, with) in kinds {
            let mut lines: Vec<(Option<u32>, Option<String>)> = Vec::new();
            let mut series: Vec<Series> = Vec::new();
            for s in all.iter().filter(|s| s.state == with && without(&s.point, &clear) == rest) {
                let Some(x) = (SIZE.get)(&s.point) else { continue };
                let line = (s.point.threads, s.point.level.clone());
                let i = lines.iter().position(|l| *l == line).unwrap_or_else(|| {
                    let only = Point { threads: line.0, level: line.1.clone(), ..Point::default() };
                    let name = match words::point(&only, &only) {
                        n if n.is_empty() => with.clone(),
                        n => n,
                    };
                    lines.push(line);
                    series.push(Series { name, look: SeriesStyle::Of(series.len() + 1), right: false, spots: vec![] });
                    series.len() - 1
                });
                series[i].spots.push(Spot { x, y: Some(s.score), low: s.low, high: s.high });
            }
            series.iter_mut().for_each(|s| s.spots.sort_by(|a, b| a.x.total_cmp(&b.x)));
            let w = self.r.session.states.first().map_or("", |s| s.name.as_str());
            let chart = Chart {
                title: self.title(&format!("Score of {with} against {w} by size"), &rest),
                x: X::Sizes { falling: false },
                left: Y { zero: false, mark: Some((1.0, format!("1.0: as {w}"))), ..Y::from_zero("score", false) },
                right: None,
                bars: false,
                series,
            };
            let caption = format!("{} Its parts are in the table of scores.", summary::SCORE);
            self.add_chart("score", &caption, &chart);
        }
    }
}

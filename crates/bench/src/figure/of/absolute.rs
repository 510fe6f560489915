//! Measured values over an axis: sizes, counts, places.

use super::{COUNTS, OFFERED, SIZE, Session, without};
use crate::bound;
use crate::compare::{rate_unit, value};
use crate::forward::LOSS_PERCENT;
use crate::result::{Metric, PLACES, Point, State, Trial, Unit};
use crate::summary::{self, Get};
use crate::words;
use ringwise_draw::chart::{Chart, Series, SeriesStyle, Spot, X, Y};

impl Session<'_> {
    pub(super) fn by_size(&mut self) {
        if self.unit == Unit::Transactions {
            return;
        }
        for rest in self.rests(&[SIZE.clear]) {
            let loss = self.lines(&rest, &SIZE, true, &|t| value(t, Metric::Loss));
            let per_s = self.lines(&rest, &SIZE, false, &|t| value(t, Metric::Rate));
            if per_s.iter().all(|s| s.spots.len() < 2) {
                continue;
            }
            let bits: Get = &|t| summary::throughput(t).map(|l| l.bits_per_s);
            let mut kinds: Vec<(&str, Vec<Series>, Get)> = Vec::new();
            if self.unit == Unit::Packets {
                kinds.push(("packets/s", per_s, &line_packets));
            }
            kinds.push(("bit/s", self.lines(&rest, &SIZE, false, bits), &line_bits));
            for (unit, mut series, line) in kinds {
                series.extend(self.line_rate(&series, &rest, &SIZE, line));
                series.extend(loss.iter().cloned());
                let what = if unit == "bit/s" { "Throughput in bit/s" } else { "Packet rate" };
                let lost = if loss.iter().flat_map(|s| &s.spots).any(|p| p.y.is_some()) { " and loss" } else { "" };
                let bytes = self.rows.first().map_or("", |r| words::counted(r.counted()));
                let which = if unit == "bit/s" { format!(" Bytes that count: {bytes}.") } else { String::new() };
                let dashed = if lost.is_empty() { "" } else { " Dashed and hollow: loss, right axis." };
                let chart = Chart {
                    title: self.title(&format!("{what}{lost} by size"), &rest),
                    x: X::Sizes { falling: true },
                    left: Y::from_zero(unit, true),
                    right: Some(Y::from_zero("loss, %", false)),
                    bars: false,
                    series,
                };
                let name = if unit == "bit/s" { "bits-by-size" } else { "packets-by-size" };
                let limited = if unit == "bit/s" { String::new() } else { self.bounds(&rest) };
                self.add_chart(name, &format!("Means over the blocks.{dashed}{which}{limited}"), &chart);
            }
        }
    }

    /// ` Limited by: spread: packets per second (...).`
    fn bounds(&self, rest: &Point) -> String {
        let here = bound::bounds(self.r).into_iter().filter(|b| b.rest == *rest);
        let parts: Vec<String> = here.map(|b| format!("{}: {}", b.state, b.text())).collect();
        if parts.is_empty() { String::new() } else { format!(" Limited by: {}.", parts.join("; ")) }
    }

    /// Highest rates for each loss of the search.
    pub(super) fn searched(&mut self) {
        let found = summary::searches(self.r);
        let mut kinds: Vec<(f64, Point)> = Vec::new();
        for s in &found {
            let kind = (s.loss_percent, without(s.point, &[SIZE.clear]));
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        for (loss, rest) in kinds {
            let mut series = Vec::new();
            for (i, state) in self.r.session.states.iter().enumerate() {
                let here = found
                    .iter()
                    .filter(|s| s.index == i && s.loss_percent == loss && without(s.point, &[SIZE.clear]) == rest);
                let spots = here.filter_map(|s| {
                    let all = s.found();
                    let (low, high) = summary::interval(&all, &self.r.session.design).unzip();
                    let y = (all.len() == s.blocks.len()).then(|| summary::mean(&all)).flatten();
                    Some(Spot { x: (SIZE.get)(s.point)?, y, low, high })
                });
                let mut spots: Vec<Spot> = spots.collect();
                spots.sort_by(|a, b| a.x.total_cmp(&b.x));
                series.push(Series { name: state.name.clone(), look: SeriesStyle::Of(i), right: false, spots });
            }
            if series.iter().all(|s| s.spots.len() < 2) {
                continue;
            }
            let what = if loss == 0.0 { "without loss".into() } else { format!("with at most {loss} % loss") };
            let chart = Chart {
                title: self.title(&format!("Highest rate {what} by size"), &rest),
                x: X::Sizes { falling: true },
                left: Y::from_zero(rate_unit(self.unit), true),
                right: None,
                bars: false,
                series,
            };
            self.add_chart("rate-without-loss", "Means over the blocks; a gap where a search found no rate.", &chart);
        }
    }

    pub(super) fn by_count(&mut self) {
        for axis in &COUNTS {
            // By threads a mix shows its score.
            let unit = self.unit;
            for rest in self.rests(&[axis.clear]) {
                if axis.what == "threads" && rest.mix.is_some() {
                    continue;
                }
                let mut series = self.lines(&rest, axis, false, &|t| value(t, Metric::Rate));
                if series.iter().all(|s| s.spots.len() < 2) {
                    continue;
                }
                let line: Get = if unit == Unit::Bytes { &line_bits } else { &line_packets };
                series.extend(self.line_rate(&series, &rest, axis, line));
                let loss = match axis.what {
                    OFFERED => self.lines(&rest, axis, true, &|t| value(t, Metric::Loss)),
                    _ => Vec::new(),
                };
                let onset = onset(&loss, &self.r.session.states);
                let lost = loss.iter().flat_map(|s| &s.spots).any(|p| p.y.is_some());
                series.extend(loss);
                let (what, dashed) = match lost {
                    true => ("Rate and loss", " Dashed and hollow: loss, right axis."),
                    false => ("Rate", ""),
                };
                let chart = Chart {
                    title: self.title(&format!("{what} by {}", axis.what), &rest),
                    x: X::Counts(axis.label.into()),
                    left: Y::from_zero(rate_unit(unit), true),
                    right: lost.then(|| Y::from_zero("loss, %", false)),
                    bars: false,
                    series,
                };
                let name = format!("rate-by-{}", axis.what.replace(' ', "-"));
                self.add_chart(&name, &format!("Means over the blocks.{dashed}{onset}"), &chart);
            }
        }
    }

    /// Places of the receiver that are states.
    pub(super) fn by_place_of_state(&mut self) {
        let states = &self.r.session.states;
        let names: Vec<String> = states.iter().filter_map(|s| s.place.clone()).collect();
        if names.len() < 2 || names.len() != states.len() {
            return;
        }
        for rest in self.rests(&[]) {
            let here = self.rows.iter().filter(|r| *r.point == rest);
            let spots = here.map(|r| self.spot(r.index as f64, r, &|t| value(t, Metric::Rate))).collect();
            let series = vec![Series { name: "receiver".into(), look: SeriesStyle::Of(1), right: false, spots }];
            self.add_places(&rest, names.clone(), series);
        }
    }

    fn add_places(&mut self, rest: &Point, names: Vec<String>, series: Vec<Series>) {
        let chart = Chart {
            title: self.title("Rate by place of the receiver", rest),
            x: X::Names("where the receiver runs, seen from the interrupt".into(), names),
            left: Y::from_zero(rate_unit(self.unit), true),
            right: None,
            bars: true,
            series,
        };
        self.add_chart("rate-by-place", "Means over the blocks.", &chart);
    }

    pub(super) fn by_place(&mut self) {
        let clear: fn(&mut Point) = |p| p.place = None;
        for rest in self.rests(&[clear]) {
            let mut names: Vec<String> = Vec::new();
            for r in self.rows.iter().filter(|r| without(r.point, &[clear]) == rest) {
                names.extend(r.point.place.iter().filter(|p| !names.contains(p)).cloned().collect::<Vec<_>>());
            }
            if names.len() < 2 {
                continue;
            }
            names.sort_by_key(|n| PLACES.iter().position(|p| p == n).unwrap_or(PLACES.len()));
            let mut series = Vec::new();
            for (i, state) in self.r.session.states.iter().enumerate() {
                let here = self.rows.iter().filter(|r| r.index == i && without(r.point, &[clear]) == rest);
                let spots = here.filter_map(|r| {
                    let x = names.iter().position(|n| Some(n) == r.point.place.as_ref())? as f64;
                    Some(self.spot(x, r, &|t| value(t, Metric::Rate)))
                });
                series.push(Series {
                    name: state.name.clone(),
                    look: SeriesStyle::Of(i),
                    right: false,
                    spots: spots.collect(),
                });
            }
            self.add_places(&rest, names, series);
        }
    }

    /// States that are values of one key, connected by a line; a first state without a value is drawn as a level.
    pub(super) fn swept(&mut self) {
        let Some(key) = self.r.session.swept.clone() else { return };
        for rest in self.rests(&[]) {
            let (mut spots, mut bound, mut mark): (Vec<Spot>, Vec<Spot>, _) = (Vec::new(), Vec::new(), None);
            for r in self.rows.iter().filter(|r| *r.point == rest) {
                let state = &self.r.session.states[r.index];
                let spot = self.spot(state.value.unwrap_or(0.0), r, &|t| value(t, Metric::Rate));
                if state.value.is_some() {
                    spots.push(spot);
                    bound.push(Spot { x: spot.x, y: r.mean(&line_packets), ..Spot::default() });
                } else if r.index == 0 {
                    mark = spot.y.map(|y| (y, state.name.clone()));
                }
            }
            if spots.len() < 2 {
                continue;
            }
            spots.sort_by(|a, b| a.x.total_cmp(&b.x));
            bound.sort_by(|a, b| a.x.total_cmp(&b.x));
            let most = spots.iter().filter_map(|s| s.y).fold(0.0, f64::max);
            let mut series = vec![Series { name: key.clone(), look: SeriesStyle::Of(1), right: false, spots }];
            let near = bound.iter().all(|s| s.y.is_some_and(|y| y <= most * 2.5));
            if self.unit == Unit::Packets && near {
                series.push(Series { name: "line rate".into(), look: SeriesStyle::Bound, right: false, spots: bound });
            }
            let chart = Chart {
                title: self.title(&format!("Rate by {key}"), &rest),
                x: X::Counts(key.clone()),
                left: Y { mark, ..Y::from_zero(rate_unit(self.unit), true) },
                right: None,
                bars: false,
                series,
            };
            self.add_chart("rate-by-value", "Means over the blocks.", &chart);
            self.latency_by_value(&key, &rest);
        }
    }

    /// The trade-off of a swept value: latency against the time of all CPUs.
    fn latency_by_value(&mut self, key: &str, rest: &Point) {
        let line = |get: Get| -> Vec<Spot> {
            let here = self.rows.iter().filter(|r| *r.point == *rest);
            let mut spots: Vec<Spot> =
                here.filter_map(|r| Some(self.spot(self.r.session.states[r.index].value?, r, get))).collect();
            spots.sort_by(|a, b| a.x.total_cmp(&b.x));
            spots
        };
        let latency = line(&|t| value(t, Metric::LatencyMean));
        if latency.iter().filter(|s| s.y.is_some()).count() < 2 {
            return;
        }
        let first = self.rows.iter().find(|r| r.index == 0 && *r.point == *rest);
        let mark = first
            .filter(|_| self.r.session.states[0].value.is_none())
            .and_then(|r| Some((r.mean(&|t| value(t, Metric::LatencyMean))?, r.state.to_string())));
        let cpu = line(&|t| value(t, Metric::Cpu));
        let of = |name: &str, right, spots| Series { name: name.into(), look: SeriesStyle::Of(1), right, spots };
        let chart = Chart {
            title: self.title(&format!("Latency and CPU by {key}"), rest),
            x: X::Counts(key.into()),
            left: Y { mark, ..Y::from_zero("mean latency, us", false) },
            right: Some(Y::from_zero("CPU, % of one", false)),
            bars: false,
            series: vec![of("mean latency", false, latency), of("CPU", true, cpu)],
        };
        let caption = "Means over the blocks. Dashed and hollow: busy time of all CPUs together, right axis.";
        self.add_chart("latency-by-value", caption, &chart);
    }
}

/// Where loss begins: ` Loss begins: cpu0 between 2,000 and 4,000/s offered.`
fn onset(loss: &[Series], states: &[State]) -> String {
    let mut parts = Vec::new();
    for (series, state) in loss.iter().zip(states) {
        let known: Vec<(f64, f64)> = series.spots.iter().filter_map(|s| Some((s.x, s.y?))).collect();
        let Some(first) = known.iter().position(|(_, lost)| *lost > LOSS_PERCENT) else { continue };
        let above = words::count(known[first].0);
        parts.push(match first.checked_sub(1).map(|i| words::count(known[i].0)) {
            Some(below) => format!("{} between {below} and {above}/s offered", state.name),
            None => format!("{} at {above}/s offered or below", state.name),
        });
    }
    if parts.is_empty() { String::new() } else { format!(" Loss begins: {}.", parts.join("; ")) }
}

/// Packets a second at line rate.
fn line_packets(t: &Trial) -> Option<f64> {
    t.host.budget_ns_per_packet.filter(|b| *b > 0.0).map(|b| 1e9 / b)
}

/// Line rate in the bits that the load counts.
fn line_bits(t: &Trial) -> Option<f64> {
    let l = summary::throughput(t).filter(|l| l.done_per_s > 0.0)?;
    Some(line_packets(t)? * l.bits_per_s / l.done_per_s)
}

//! Measured values over an axis: sizes, counts, places.

use super::{COUNTS, SIZE, Session, without};
use crate::compare::{rate_unit, value};
use crate::result::{Metric, Point, Trial, Unit};
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
                self.add_chart(name, &format!("Means over the blocks.{dashed}{which}"), &chart);
            }
        }
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
                let chart = Chart {
                    title: self.title(&format!("Rate by {}", axis.what), &rest),
                    x: X::Counts(axis.label.into()),
                    left: Y::from_zero(rate_unit(unit), true),
                    right: None,
                    bars: false,
                    series,
                };
                self.add_chart(&format!("rate-by-{}", axis.what.replace(' ', "-")), "Means over the blocks.", &chart);
            }
        }
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
            let order = ["same-cpu", "sibling", "same-l3", "same-node", "other-node"];
            names.sort_by_key(|n| order.iter().position(|o| o == n).unwrap_or(order.len()));
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
            let chart = Chart {
                title: self.title("Rate by place of the receiver", &rest),
                x: X::Names("where the receiver runs, seen from the interrupt".into(), names),
                left: Y::from_zero(rate_unit(self.unit), true),
                right: None,
                bars: true,
                series,
            };
            self.add_chart("rate-by-place", "Means over the blocks.", &chart);
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
        }
    }
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

//! Figures of one point each.

use std::collections::BTreeMap;

use super::Session;
use crate::compare::value;
use crate::result::{Metric, Point};
use crate::summary::{self, Get, Row};
use ringwise_draw::chart::{Chart, Series, SeriesStyle, Spot, X, Y};

/// The most figures of single points (percentiles, queues), of each kind.
const SINGLE: usize = 8;

impl Session<'_> {
    /// Points that get their own figure, and a note if there are more.
    pub(super) fn single(&self) -> (Vec<Point>, String) {
        let mut all: Vec<Point> = self.rests(&[]);
        let more = all.len().saturating_sub(SINGLE);
        all.truncate(SINGLE);
        let said =
            if more > 0 { format!(" {more} more points are not drawn; the tables have them.") } else { String::new() };
        (all, said)
    }

    pub(super) fn percentiles(&mut self) {
        let names: [(&str, Get); 5] = [
            ("50 %", &|t| value(t, Metric::LatencyP50)),
            ("90 %", &|t| value(t, Metric::LatencyP90)),
            ("99 %", &|t| value(t, Metric::LatencyP99)),
            ("99.9 %", &|t| value(t, Metric::LatencyP999)),
            ("max", &|t| summary::latency(t).map(|l| l.max_us)),
        ];
        let (points, more) = self.single();
        for p in points {
            let mut series = Vec::new();
            for r in self.rows.iter().filter(|r| *r.point == p) {
                let spots = names.iter().enumerate().map(|(i, (_, get))| self.spot(i as f64, r, get)).collect();
                series.push(Series { name: r.state.into(), look: SeriesStyle::Of(r.index), right: false, spots });
            }
            let open = self.r.trials.iter().filter_map(summary::latency).all(|l| l.open_loop);
            let from = if open {
                "from the intended time of sending"
            } else {
                "from sending, one after the other (closed loop)"
            };
            let chart = Chart {
                title: self.title("Latency by percentile", &p),
                x: X::Names("share of transactions that were faster".into(), names.map(|n| n.0.into()).to_vec()),
                left: Y { log: true, ..Y::from_zero("us", false) },
                right: None,
                bars: false,
                series,
            };
            self.add_chart("percentiles", &format!("Means of the blocks' percentiles, measured {from}.{more}"), &chart);
        }
    }

    pub(super) fn queues(&mut self) {
        let (points, more) = self.single();
        for p in points {
            let here: Vec<&Row> = self.rows.iter().filter(|r| *r.point == p).collect();
            let used = here.iter().flat_map(|r| r.trials.iter()).flat_map(|t| &t.host.queues);
            let mut all: Vec<(&str, u32)> = used.map(|q| (q.dev.as_str(), q.queue)).collect();
            all.sort();
            all.dedup();
            if all.len() < 2 {
                continue;
            }
            let one_dev = all.iter().all(|q| q.0 == all[0].0);
            let names = all.iter().map(|(d, q)| if one_dev { q.to_string() } else { format!("{d}/{q}") }).collect();
            let mut series = Vec::new();
            for r in &here {
                let mut sums: BTreeMap<(&str, u32), u64> = BTreeMap::new();
                for q in r.trials.iter().flat_map(|t| &t.host.queues) {
                    *sums.entry((q.dev.as_str(), q.queue)).or_default() += q.packets;
                }
                let total: u64 = sums.values().sum();
                let spots = all.iter().enumerate().map(|(i, q)| Spot {
                    x: i as f64,
                    y: sums.get(q).filter(|_| total > 0).map(|n| *n as f64 * 100.0 / total as f64),
                    ..Spot::default()
                });
                series.push(Series {
                    name: r.state.into(),
                    look: SeriesStyle::Of(r.index),
                    right: false,
                    spots: spots.collect(),
                });
            }
            let even = 100.0 / all.len() as f64;
            let chart = Chart {
                title: self.title("Received packets by queue", &p),
                x: X::Names(if one_dev { format!("queue of {}", all[0].0) } else { "interface/queue".into() }, names),
                left: Y { mark: Some((even, "even".into())), ..Y::from_zero("% of the packets", false) },
                right: None,
                bars: true,
                series,
            };
            self.add_chart("queues", &format!("All blocks together.{more}"), &chart);
        }
    }
}

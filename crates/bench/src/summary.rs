//! Trials by point and state, from which tables and figures are made.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::compare::load;
use crate::file::Results;
use crate::result::{BitRateLayer, Design, Latency, Limit, LoadResult, Metric, Phase, Point, Rate, Trial, Unit};
use crate::score::{self, Score};
use crate::stats;

/// A value of a trial; `None`: unknown in this trial.
pub(crate) type Get<'a> = &'a dyn Fn(&Trial) -> Option<f64>;

/// All measured trials of one state at one point.
pub(crate) struct Row<'a> {
    pub point: &'a Point,
    pub state: &'a str,
    /// Index of the state in the session.
    pub index: usize,
    pub trials: Vec<&'a Trial>,
}

/// Ordered by point, then by the order of states in the session, without calibration.
pub(crate) fn rows(r: &Results) -> Vec<Row<'_>> {
    let mut out: Vec<Row> = Vec::new();
    for t in r.trials.iter().filter(|t| t.phase == Phase::Measure) {
        match out.iter_mut().find(|o| o.state == t.state && *o.point == t.point) {
            Some(o) => o.trials.push(t),
            None => {
                let index = r.session.states.iter().position(|s| s.name == t.state).unwrap_or(0);
                out.push(Row { point: &t.point, state: &t.state, index, trials: vec![t] });
            }
        }
    }
    out.sort_by(|a, b| order(a.point, b.point).then(a.index.cmp(&b.index)));
    out
}

/// Light before medium before heavy, then in the order of the members.
pub(crate) fn order(a: &Point, b: &Point) -> Ordering {
    let rank = |p: &Point| match p.level.as_deref() {
        None => 0,
        Some("light") => 1,
        Some("medium") => 2,
        Some("heavy") => 3,
        Some(_) => 4,
    };
    rank(a).cmp(&rank(b)).then(a.partial_cmp(b).unwrap_or(Ordering::Equal))
}

/// The group whose rate counts.
pub(crate) fn throughput(t: &Trial) -> Option<&LoadResult> {
    load(t, "throughput")
}

/// The latency of the group whose latency counts.
pub(crate) fn latency(t: &Trial) -> Option<&Latency> {
    load(t, "latency")?.latency.as_ref()
}

impl Row<'_> {
    /// The mean over the trials in which it is known; `None`: it is unknown in all trials.
    pub(crate) fn mean(&self, value: Get) -> Option<f64> {
        let all: Vec<f64> = self.trials.iter().filter_map(|t| value(t)).collect();
        mean(&all)
    }

    pub(crate) fn counted(&self) -> BitRateLayer {
        self.trials.iter().find_map(|t| throughput(t)).map_or(BitRateLayer::default(), |l| l.counted)
    }

    /// `CPU 0 (8 of 10)`, `link eth1`: what limited, with the number of trials where they differ.
    pub(crate) fn limits(&self) -> String {
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        for t in &self.trials {
            *count.entry(limit(&t.limit)).or_default() += 1;
        }
        let mut all: Vec<(String, usize)> = count.into_iter().collect();
        all.sort_by_key(|a| std::cmp::Reverse(a.1));
        match all.as_slice() {
            [(one, _)] => one.clone(),
            _ => {
                let n = self.trials.len();
                let parts: Vec<String> = all.iter().map(|(w, k)| format!("{w} ({k} of {n})")).collect();
                parts.join(", ")
            }
        }
    }

    /// Packets lost in all its trials, by place.
    pub(crate) fn lost(&self) -> BTreeMap<&str, u64> {
        let mut out: BTreeMap<&str, u64> = BTreeMap::new();
        for (place, n) in self.trials.iter().flat_map(|t| &t.host.lost) {
            *out.entry(place).or_default() += n;
        }
        out
    }
}

/// A point that has a value only in members that differ between the points.
pub fn varying(all: &[&Point]) -> Point {
    let Some(first) = all.first() else { return Point::default() };
    fn differs<T: Clone + PartialEq>(all: &[&Point], get: fn(&Point) -> &Option<T>, some: T) -> Option<T> {
        all.iter().any(|p| get(p) != get(all[0])).then_some(some)
    }
    let _ = first;
    Point {
        size_bytes: differs(all, |p| &p.size_bytes, 0),
        frame_bytes: differs(all, |p| &p.frame_bytes, 0),
        threads: differs(all, |p| &p.threads, 0),
        level: differs(all, |p| &p.level, String::new()),
        mix: differs(all, |p| &p.mix, String::new()),
        queues: differs(all, |p| &p.queues, 0),
        interfaces: differs(all, |p| &p.interfaces, 0),
        routes: differs(all, |p| &p.routes, 0),
        flows: differs(all, |p| &p.flows, 0),
        skew: differs(all, |p| &p.skew, 0.0),
        place: differs(all, |p| &p.place, String::new()),
        offered_per_s: differs(all, |p| &p.offered_per_s, 0.0),
    }
}

/// Every point of trials, comparisons and rates, once, in order.
pub fn points(r: &Results) -> Vec<&Point> {
    let all = r.trials.iter().filter(|t| t.phase == Phase::Measure).map(|t| &t.point);
    let all = all.chain(r.comparisons.iter().map(|c| &c.point)).chain(r.rates.iter().map(|x| &x.point));
    let mut out: Vec<&Point> = Vec::new();
    for p in all {
        if !out.contains(&p) {
            out.push(p);
        }
    }
    out.sort_by(|a, b| order(a, b));
    out
}

/// The unit of the session's rates.
pub(crate) fn unit(r: &Results) -> Unit {
    r.trials.iter().find_map(throughput).map_or(Unit::default(), |l| l.unit)
}

/// Searches for the same rate: all blocks of one state at one point for one loss.
pub(crate) struct Search<'a> {
    pub point: &'a Point,
    pub state: &'a str,
    pub index: usize,
    pub loss_percent: f64,
    pub blocks: Vec<&'a Rate>,
}

impl Search<'_> {
    /// The rates that were found.
    pub(crate) fn found(&self) -> Vec<f64> {
        self.blocks.iter().filter_map(|b| b.found_per_s).collect()
    }
}

pub(crate) fn searches(r: &Results) -> Vec<Search<'_>> {
    let mut out: Vec<Search> = Vec::new();
    for x in &r.rates {
        match out.iter_mut().find(|o| o.state == x.state && o.loss_percent == x.loss_percent && *o.point == x.point) {
            Some(o) => o.blocks.push(x),
            None => {
                let index = r.session.states.iter().position(|s| s.name == x.state).unwrap_or(0);
                out.push(Search {
                    point: &x.point,
                    state: &x.state,
                    index,
                    loss_percent: x.loss_percent,
                    blocks: vec![x],
                });
            }
        }
    }
    out.sort_by(|a, b| {
        order(a.point, b.point).then(a.loss_percent.total_cmp(&b.loss_percent)).then(a.index.cmp(&b.index))
    });
    out
}

/// The definition of a score.
pub(crate) const SCORE: &str =
    "W · latency part + (1 − W) · throughput part; above 1 the state is ahead of the first one.";

/// A change in per cent as a ratio for which more is better.
pub(crate) fn performance(m: Metric, change_percent: f64) -> Option<f64> {
    let ratio = 1.0 + change_percent / 100.0;
    match m.higher_is_better() {
        true => Some(ratio),
        false => (ratio > 0.0).then(|| 1.0 / ratio),
    }
}

/// The scores of every point that is a mix of both.
pub(crate) fn scores(r: &Results) -> Vec<Score> {
    let mut out = score::scores(&r.session, &r.trials, r.session.design.weight.unwrap_or(0.5));
    out.retain(|s| s.point.mix.is_some());
    out.sort_by(|a, b| order(&a.point, &b.point));
    out
}

/// `None`: there is no such load.
pub(crate) fn mean(all: &[f64]) -> Option<f64> {
    (!all.is_empty()).then(|| stats::mean(all))
}

/// The interval of the mean, by bootstrap; `None` for fewer than two values.
pub(crate) fn interval(all: &[f64], design: &Design) -> Option<(f64, f64)> {
    stats::Estimate::of_mean(all, design.seed)?.interval(design.alpha)
}

/// `link eth1`, `CPUs 0,2`, `generator: ...`, `none: full offered load`, `unknown`.
pub(crate) fn limit(l: &Limit) -> String {
    match l {
        Limit::Link(port) => format!("link {port}"),
        Limit::Cpu(cpus) => {
            let set: ringwise_model::CpuSet = cpus.iter().map(|c| ringwise_model::CpuId(*c)).collect();
            format!("{} {set}", if cpus.len() == 1 { "CPU" } else { "CPUs" })
        }
        Limit::Generator(what) => format!("generator: {what}"),
        Limit::Offered => "none: full offered load".into(),
        Limit::Unknown => "unknown".into(),
    }
}

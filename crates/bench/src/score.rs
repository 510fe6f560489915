//! One number for latency and throughput together. It is always shown with its parts.
//!
//! `W · latency of the first state / latency + (1 - W) · throughput / throughput of the first state`: above 1 favours
//! the state. This is the formula of Intel's article on per-queue interrupt moderation. The article does not name the
//! latency; here it is the mean.

use crate::compare::{blocks, load, points, value};
use crate::result::{Metric, Point, Session, Trial};
use crate::stats::{Estimate, mean};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Score {
    pub point: Point,
    pub state: String,
    /// The weight of latency; 1 or 0 if the point has only one kind of load.
    pub weight: f64,
    /// Mean latency of the first state by that of this one. None: no latency load.
    pub latency_part: Option<f64>,
    /// Rate of this state by that of the first one. None: no throughput load.
    pub throughput_part: Option<f64>,
    pub score: f64,
    /// Bootstrap, at the confidence of the design. None: too few pairs.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub pairs: u32,
}

/// Every state but the first, at every point where one part or both are known in some block. `weight`: 0 to 1.
pub(crate) fn scores(session: &Session, trials: &[Trial], weight: f64) -> Vec<Score> {
    let Some(base) = session.states.first() else { return Vec::new() };
    let mut out = Vec::new();
    for point in points(trials) {
        let here: Vec<&Trial> = trials.iter().filter(|t| t.point == *point).collect();
        for with in &session.states[1..] {
            let both = blocks(&here, &base.name, &with.name);
            let seed = session.design.seed.wrapping_add(out.len() as u64 + 1);
            let found = score(&both, weight.clamp(0.0, 1.0), session.design.alpha, seed);
            out.extend(found.map(|s| Score { point: point.clone(), state: with.name.clone(), ..s }));
        }
    }
    out
}

/// A ratio of means, and the residual of each block.
struct Part {
    ratio: f64,
    rest: Vec<f64>,
}

/// `None`: the divisor is 0 or unknown.
fn part(top: &[f64], bottom: &[f64]) -> Option<Part> {
    let (t, b) = (mean(top), mean(bottom));
    let ratio = t / b;
    let rest = top.iter().zip(bottom).map(|(t, b2)| (t - ratio * b2) / b).collect();
    (t > 0.0 && b > 0.0).then_some(Part { ratio, rest })
}

fn score(both: &[(&Trial, &Trial)], weight: f64, alpha: f64, seed: u64) -> Option<Score> {
    let kind = |group: &str| both.iter().all(|(a, b)| [a, b].iter().all(|t| only(t) != Some(group)));
    let (latency, rate) = (kind("throughput"), kind("latency"));
    // [latency base, latency, rate base, rate]; 0 if it is not used.
    let get = |asked: bool, t: &Trial, m| if asked { value(t, m) } else { Some(0.0) };
    let values = |(a, b): &(&Trial, &Trial)| {
        let (l, r) = (Metric::LatencyMean, Metric::Rate);
        Some([get(latency, a, l)?, get(latency, b, l)?, get(rate, a, r)?, get(rate, b, r)?])
    };
    let values: Vec<[f64; 4]> = both.iter().filter_map(values).collect();
    let column = |i: usize| values.iter().map(|v| v[i]).collect::<Vec<f64>>();
    let weight = match (latency, rate) {
        (true, true) => weight,
        (true, false) => 1.0,
        (false, true) => 0.0,
        (false, false) => return None,
    };
    let lp = if latency { Some(part(&column(0), &column(1))?) } else { None };
    let tp = if rate { Some(part(&column(3), &column(2))?) } else { None };
    let sum = |l: Option<f64>, t: Option<f64>| weight * l.unwrap_or(0.0) + (1.0 - weight) * t.unwrap_or(0.0);
    let ratio = |p: &Option<Part>| p.as_ref().map(|p| p.ratio);
    let rest = |p: &Option<Part>, i: usize| p.as_ref().map(|p| p.rest[i]);
    let score = sum(ratio(&lp), ratio(&tp));
    let left: Vec<f64> = (0..values.len()).map(|i| sum(rest(&lp, i), rest(&tp, i))).collect();
    let interval = Estimate::by(score, 1.0, &left, seed).and_then(|e| e.interval(alpha));
    Some(Score {
        point: Point::default(),
        state: String::new(),
        weight,
        latency_part: ratio(&lp),
        throughput_part: ratio(&tp),
        score,
        low: interval.map(|i| i.0),
        high: interval.map(|i| i.1),
        pairs: values.len() as u32,
    })
}

/// The group of the only load.
fn only(trial: &Trial) -> Option<&str> {
    load(trial, "").filter(|_| trial.loads.len() == 1).map(|l| l.group.as_str())
}

#[cfg(test)]
#[path = "score_tests.rs"]
mod tests;

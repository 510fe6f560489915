//! From trials to verdicts: pairs by block, each state against the first, all comparisons corrected together.

use std::collections::BTreeMap;

use crate::result::{
    self, Comparison, Environment, Latency, Limit, LoadResult, Metric, Phase, Point, Session, Trial, Unit, Verdict,
};
use crate::stats::{Paired, VerdictRule, holm, mean, paired, sorted};

use Metric::*;
use ringwise_model::words::plural;

impl Metric {
    /// The metrics of a trial. Rates of a search have their own records.
    pub const ALL: [Metric; 11] = [
        Rate,
        Loss,
        LatencyMean,
        LatencyP50,
        LatencyP90,
        LatencyP99,
        LatencyP999,
        Cpu,
        CpuNsPerPacket,
        InterruptsPerPacket,
        Delay,
    ];

    /// Fewer interrupts are better, because each costs CPU time; their effect on latency has its own metrics.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Rate | RateWithoutLoss | RateHalfPercent)
    }

    /// The name in tables and messages; JSON uses the variant's name in snake case instead.
    pub fn name(self) -> &'static str {
        match self {
            Rate => "rate",
            RateWithoutLoss => "rate without loss",
            RateHalfPercent => "rate at 0.5 % loss",
            Loss => "loss",
            LatencyMean => "latency mean",
            LatencyP50 => "latency p50",
            LatencyP90 => "latency p90",
            LatencyP99 => "latency p99",
            LatencyP999 => "latency p99.9",
            Cpu => "CPU",
            CpuNsPerPacket => "CPU per packet",
            InterruptsPerPacket => "interrupts per packet",
            Delay => "scheduling delay p99",
        }
    }

    /// The unit. That of [`Rate`] depends on the load: [`rate_unit`].
    pub fn unit(self) -> &'static str {
        match self {
            Rate | RateWithoutLoss | RateHalfPercent => "/s",
            Loss => "%",
            LatencyMean | LatencyP50 | LatencyP90 | LatencyP99 | LatencyP999 | Delay => "us",
            Cpu => "% of one CPU",
            CpuNsPerPacket => "ns",
            InterruptsPerPacket => "",
        }
    }
}

/// `transactions/s`, `packets/s`, `bit/s`.
pub fn rate_unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Transactions => "transactions/s",
        Unit::Packets => "packets/s",
        Unit::Bytes => "bit/s",
    }
}

/// The main metrics of a workload. They have half of alpha for themselves, so that the many other metrics do
/// not weaken them.
pub fn primary(workload: &str) -> &'static [Metric] {
    match workload {
        "rr" => &[LatencyMean, LatencyP99],
        "mixed" => &[Rate, LatencyMean, LatencyP99],
        "forward" | "receive" => &[Rate, Loss],
        _ => &[Rate],
    }
}

/// The load with this name, or the only load of the trial.
pub fn load<'a>(trial: &'a Trial, group: &str) -> Option<&'a LoadResult> {
    let named = trial.loads.iter().find(|l| l.group == group);
    named.or(if let [only] = trial.loads.as_slice() { Some(only) } else { None })
}

/// The value of a metric in a trial. `None`: it was not measured, or is not a number.
pub fn value(trial: &Trial, metric: Metric) -> Option<f64> {
    let latency = |of: fn(&Latency) -> Option<f64>| load(trial, "latency")?.latency.as_ref().and_then(of);
    let host = &trial.host;
    let value = match metric {
        Rate => load(trial, "throughput").map(|l| if l.unit == Unit::Bytes { l.bits_per_s } else { l.done_per_s }),
        RateWithoutLoss | RateHalfPercent => None,
        Loss => load(trial, "throughput")?.lost_percent,
        LatencyMean => latency(|l| Some(l.mean_us)),
        LatencyP50 => latency(|l| Some(l.p50_us)),
        LatencyP90 => latency(|l| Some(l.p90_us)),
        LatencyP99 => latency(|l| Some(l.p99_us)),
        LatencyP999 => latency(|l| l.p999_us),
        Cpu => (!host.cpus.is_empty()).then(|| host.cpus.iter().map(|c| c.busy_percent).sum()),
        CpuNsPerPacket => host.cpu_ns_per_packet,
        InterruptsPerPacket => host.interrupts_per_packet,
        Delay => host.cpus.iter().filter_map(|c| c.delay_p99_us).reduce(f64::max),
    };
    value.filter(|v| v.is_finite())
}

/// The points of the trials, in the order of their first occurrence.
pub fn points(trials: &[Trial]) -> Vec<&Point> {
    let mut out: Vec<&Point> = Vec::new();
    for t in trials {
        if !out.contains(&&t.point) {
            out.push(&t.point);
        }
    }
    out
}

/// Measured trials of two states at one point, by block. A block without a trial of both states is skipped; if a state
/// was measured twice in a block, the first trial counts.
pub fn blocks<'a>(trials: &[&'a Trial], base: &str, with: &str) -> Vec<(&'a Trial, &'a Trial)> {
    let mut by_block: BTreeMap<u32, [Option<&Trial>; 2]> = BTreeMap::new();
    for t in trials.iter().filter(|t| t.phase == Phase::Measure) {
        let both = by_block.entry(t.block).or_default();
        for (slot, name) in both.iter_mut().zip([base, with]) {
            if t.state == name && slot.is_none() {
                *slot = Some(t);
            }
        }
    }
    by_block.into_values().filter_map(|[a, b]| a.zip(b)).collect()
}

/// One comparison before correction.
struct Open {
    out: Comparison,
    pairs: Paired,
    primary: bool,
    /// In more than half of a state's trials the generator was the limit of the rate.
    generator: bool,
}

/// Compares every other state with the first one, at every point, in every metric that both have.
///
/// Holm's correction covers all states and points, separately for the [`primary`] metrics of the workload and for the
/// others, each at half of alpha: the chance of one or more false verdicts in the session stays below alpha.
pub fn compare(session: &Session, trials: &[Trial]) -> Vec<Comparison> {
    corrected(session, of_trials(session, trials))
}

/// Compares the rates that were found without loss and with half a per cent like [`compare`]: by block, every state
/// with the first. If a session has both rates and trials, [`compare_all`] keeps alpha for them together.
pub fn rates(session: &Session, list: &[result::Rate]) -> Vec<Comparison> {
    corrected(session, of_rates(session, list))
}

/// [`rates`] and [`compare`], corrected together; the rates that were found are primary.
pub fn compare_all(session: &Session, trials: &[Trial], found: &[result::Rate]) -> Vec<Comparison> {
    let mut open = of_rates(session, found);
    open.extend(of_trials(session, trials));
    corrected(session, open)
}

fn of_trials(session: &Session, trials: &[Trial]) -> Vec<Open> {
    let Some(base) = session.states.first() else { return Vec::new() };
    let first = primary(&session.workload);
    let mut open = Vec::new();
    for point in points(trials) {
        let here: Vec<&Trial> = trials.iter().filter(|t| t.point == *point).collect();
        for with in &session.states[1..] {
            let both = blocks(&here, &base.name, &with.name);
            for metric in Metric::ALL {
                let seed = session.design.seed.wrapping_add(open.len() as u64 + 1);
                let Some((out, pairs)) = one(session, metric, &both, seed) else { continue };
                let calibration_noise_percent = calibration_noise(&here, metric);
                let out = Comparison { calibration_noise_percent, ..out };
                let generator = metric == Rate && often(&both, |l| matches!(l, Limit::Generator(_)));
                open.push(Open { out, pairs, primary: first.contains(&metric), generator });
            }
        }
    }
    open
}

fn of_rates(session: &Session, list: &[result::Rate]) -> Vec<Open> {
    let Some(base) = session.states.first() else { return Vec::new() };
    let mut points: Vec<&Point> = Vec::new();
    for r in list {
        if !points.contains(&&r.point) {
            points.push(&r.point);
        }
    }
    let mut open = Vec::new();
    for point in points {
        for metric in [RateWithoutLoss, RateHalfPercent] {
            let loss = if metric == RateWithoutLoss { 0.0 } else { 0.5 };
            let of = |state: &str, block: u32| {
                let mut here = list.iter().filter(|r| r.point == *point && r.loss_percent == loss);
                here.find(|r| r.state == state && r.block == block)
            };
            for with in &session.states[1..] {
                let blocks = 0..session.design.blocks;
                let both: Vec<_> = blocks.filter_map(|b| Some((of(&base.name, b)?, of(&with.name, b)?))).collect();
                let known = both.iter().filter_map(|(a, b)| Some((a.found_per_s?, b.found_per_s?)));
                let (a, b): (Vec<f64>, Vec<f64>) = known.unzip();
                if a.is_empty() {
                    continue;
                }
                let seed = session.design.seed.wrapping_add(open.len() as u64 + 1);
                let pairs = paired(&a, &b, session.design.alpha, seed);
                let mut notes = Vec::new();
                if pairs.pairs < session.design.blocks {
                    notes.push(format!("{} of {} blocks have both values", pairs.pairs, session.design.blocks));
                }
                for (i, state) in [base, with].into_iter().enumerate() {
                    let none = both.iter().filter(|p| [p.0, p.1][i].found_per_s.is_none()).count();
                    if none > 0 {
                        notes.push(format!(
                            "{}: not even the lowest rate passed in {}, skipped",
                            state.name,
                            plural(none, "block")
                        ));
                    }
                }
                let is = |r: &result::Rate| matches!(r.limit, Limit::Generator(_));
                let count = |i: usize| both.iter().filter(|p| is([p.0, p.1][i])).count();
                let generator = 2 * count(0).max(count(1)) > both.len();
                if count(0) + count(1) > 0 {
                    let of = 2 * both.len();
                    notes.push(format!("{} of {of} searches: the generator was the limit", count(0) + count(1)));
                }
                let out = bare(session, point, metric, [&base.name, &with.name], &pairs, notes);
                open.push(Open { out, pairs, primary: true, generator });
            }
        }
    }
    open
}

fn corrected(session: &Session, open: Vec<Open>) -> Vec<Comparison> {
    let families = if open.iter().all(|o| o.primary == open[0].primary) { 1 } else { 2 };
    let mut out: Vec<Option<Comparison>> = vec![None; open.len()];
    for primary in [true, false] {
        let family: Vec<usize> = (0..open.len()).filter(|i| open[*i].primary == primary).collect();
        let p = holm(&family.iter().map(|i| open[*i].out.p.unwrap_or(1.0)).collect::<Vec<_>>());
        for (i, p) in family.iter().zip(&p) {
            let p = (p * families as f64).min(1.0);
            out[*i] = Some(close(session, &open[*i], p, families * family.len()));
        }
    }
    out.into_iter().flatten().collect()
}

fn one(session: &Session, metric: Metric, both: &[(&Trial, &Trial)], seed: u64) -> Option<(Comparison, Paired)> {
    let known: Vec<(&Trial, &Trial, f64, f64)> =
        both.iter().filter_map(|(a, b)| Some((*a, *b, value(a, metric)?, value(b, metric)?))).collect();
    let (a, b, ..) = known.first()?;
    let base: Vec<f64> = known.iter().map(|k| k.2).collect();
    let with: Vec<f64> = known.iter().map(|k| k.3).collect();
    let pairs = paired(&base, &with, session.design.alpha, seed);
    let mut notes = Vec::new();
    let planned = session.design.blocks.max(both.len() as u32);
    if pairs.pairs < planned {
        notes.push(format!("{} of {planned} blocks have both values", pairs.pairs));
    }
    let percents = |k: &(&Trial, &Trial, f64, f64)| (k.0.block, 100.0 * (k.3 - k.2) / pairs.base_mean);
    notes.extend(outliers(&known.iter().map(percents).collect::<Vec<_>>()));
    let used: Vec<&Trial> = known.iter().flat_map(|k| [k.0, k.1]).collect();
    if metric == Rate {
        notes.extend(limits(&used));
    }
    notes.extend(doubts(&used));
    let out = bare(session, &a.point, metric, [&a.state, &b.state], &pairs, notes);
    Some((out, pairs))
}

/// The comparison before its verdict.
fn bare(
    session: &Session,
    point: &Point,
    metric: Metric,
    [base, with]: [&str; 2],
    pairs: &Paired,
    notes: Vec<String>,
) -> Comparison {
    Comparison {
        point: point.clone(),
        metric,
        base: base.to_owned(),
        with: with.to_owned(),
        pairs: pairs.pairs,
        base_mean: pairs.base_mean,
        with_mean: pairs.with_mean,
        change_percent: pairs.change_percent,
        low_percent: pairs.low_percent,
        high_percent: pairs.high_percent,
        p: pairs.p,
        p_corrected: None,
        detectable_percent: None,
        noise_percent: pairs.noise_percent,
        calibration_noise_percent: None,
        equivalent_percent: session.design.equivalent_percent,
        verdict: Verdict::Inconclusive,
        notes,
    }
}

fn close(session: &Session, o: &Open, p_corrected: f64, comparisons: usize) -> Comparison {
    let mut out = o.out.clone();
    let alpha = session.design.alpha;
    let higher_is_better = out.metric.higher_is_better();
    let rule = VerdictRule { alpha, equivalent_percent: out.equivalent_percent, higher_is_better, comparisons };
    let (verdict, mut notes) = o.pairs.verdict(Some(p_corrected), &rule);
    out.p_corrected = out.p.map(|_| p_corrected);
    out.detectable_percent = out.noise_percent.and_then(|n| crate::stats::detectable(n, out.pairs, alpha, comparisons));
    out.verdict = verdict;
    if o.generator && verdict == Verdict::Equivalent {
        out.verdict = Verdict::Inconclusive;
        notes = vec!["the generator sent the same rate: the host's own limit was not reached".to_owned()];
    }
    notes.append(&mut out.notes);
    out.notes = notes;
    out
}

/// Standard deviation of the first state's differences from itself, around 0, in per cent. None: fewer than two pairs.
pub fn calibration_noise(here: &[&Trial], metric: Metric) -> Option<f64> {
    let mut by_block: BTreeMap<u32, Vec<(u32, f64)>> = BTreeMap::new();
    for t in here.iter().filter(|t| t.phase == Phase::Calibration) {
        by_block.entry(t.block).or_default().extend(value(t, metric).map(|v| (t.order, v)));
    }
    let pairs: Vec<(f64, f64)> = by_block
        .into_values()
        .filter_map(|v| if let [a, b] = v.as_slice() { Some((a.1, b.1)) } else { None })
        .collect();
    let level = mean(&pairs.iter().map(|(a, b)| (a + b) / 2.0).collect::<Vec<_>>());
    let squares = mean(&pairs.iter().map(|(a, b)| (b - a) * (b - a)).collect::<Vec<_>>());
    (pairs.len() > 1 && level > 0.0).then(|| 100.0 * squares.sqrt() / level)
}

/// Differences far from the others (four times the deviation estimated from the median). They are kept and reported.
fn outliers(percents: &[(u32, f64)]) -> Option<String> {
    if percents.len() < 8 || !percents.iter().all(|p| p.1.is_finite()) {
        return None;
    }
    let middle = |list: Vec<f64>| sorted(list)[percents.len() / 2];
    let center = middle(percents.iter().map(|p| p.1).collect());
    let spread = 1.4826 * middle(percents.iter().map(|p| (p.1 - center).abs()).collect());
    let far = percents.iter().filter(|p| spread > 0.0 && (p.1 - center).abs() > 4.0 * spread);
    let far: Vec<String> = far.map(|(block, p)| format!("{block} ({p:+.1} %)")).collect();
    (!far.is_empty()).then(|| format!("outlier, but counted: block {}", far.join(", ")))
}

fn often(both: &[(&Trial, &Trial)], is: fn(&Limit) -> bool) -> bool {
    let most = |n: usize| 2 * n > both.len();
    most(both.iter().filter(|b| is(&b.0.limit)).count()) || most(both.iter().filter(|b| is(&b.1.limit)).count())
}

/// Limits other than the host that determined the rate.
fn limits(used: &[&Trial]) -> Vec<String> {
    let told = used.iter().filter_map(|t| match &t.limit {
        Limit::Link(port) => Some(format!("the link {port} was the limit")),
        Limit::Generator(_) => Some("the generator was the limit".to_owned()),
        _ => None,
    });
    counted(told, used.len())
}

fn doubts(used: &[&Trial]) -> Vec<String> {
    counted(used.iter().flat_map(|t| t.doubts.iter().cloned()), used.len())
}

fn counted(told: impl Iterator<Item = String>, of: usize) -> Vec<String> {
    let mut by_text: BTreeMap<String, usize> = BTreeMap::new();
    told.for_each(|t| *by_text.entry(t).or_default() += 1);
    by_text.into_iter().map(|(text, n)| format!("{n} of {of} trials: {text}")).collect()
}

/// The facts in which two environments differ, with both values. Results are compared without a note only if there are
/// none.
pub fn comparable(a: &Environment, b: &Environment) -> Vec<String> {
    let mut out = differing("", &a.facts, &b.facts);
    out.extend(differing("peer ", &a.peer, &b.peer));
    if out.is_empty() && a.hash != b.hash {
        out.push("the captures differ in a fact that is not listed here".to_owned());
    }
    out
}

fn differing(whose: &str, a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Vec<String> {
    let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
    keys.sort();
    keys.dedup();
    let word = |map: &BTreeMap<String, String>, key: &str| map.get(key).map_or("unknown", String::as_str).to_owned();
    keys.into_iter()
        .filter(|k| a.get(*k) != b.get(*k))
        .map(|k| format!("{whose}{k}: {} and {}", word(a, k), word(b, k)))
        .collect()
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;

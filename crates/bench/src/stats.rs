//! Statistics of two states that were measured in pairs: interval, p-value, equivalence, and the change that could be
//! found.
//!
//! Only [`detectable`] and [`pairs_for`], which are estimates, assume a normal distribution.
use ringwise_model::words::plural;

use crate::result::Verdict;
use crate::rng::Rng;

/// Resamples for an interval.
const RESAMPLES: usize = 2000;
/// Up to this number of pairs all 2^n signs are counted (by halves); with more pairs [`RANDOM_SIGNS`] of them are
/// drawn.
const EXACT_SIGNS: usize = 30;
const RANDOM_SIGNS: u32 = 20_000;
/// With fewer pairs, resamples repeat too few values for an interval.
pub const MIN_PAIRS: usize = 5;
const POWER: f64 = 0.8;

/// Ascending by `f64::total_cmp`, so NaN does not panic.
pub fn sorted(mut list: Vec<f64>) -> Vec<f64> {
    list.sort_unstable_by(f64::total_cmp);
    list
}

/// NaN without values.
pub fn mean(list: &[f64]) -> f64 {
    list.iter().sum::<f64>() / list.len() as f64
}

/// Standard deviation by n - 1; 0 below two values.
pub fn deviation(list: &[f64]) -> f64 {
    if list.len() < 2 {
        return 0.0;
    }
    let m = mean(list);
    (list.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / (list.len() - 1) as f64).sqrt()
}

/// An estimate and the studentised bootstrap of its error (Efron and Tibshirani, "An Introduction to the Bootstrap",
/// 12.5).
#[derive(Debug, Clone)]
pub struct Estimate {
    /// The point estimate, in the unit of its values.
    pub value: f64,
    error: f64,
    /// Sorted; empty if the values do not differ.
    t: Vec<f64>,
}

impl Estimate {
    /// The estimate of the mean of `values`. `None`: fewer than [`MIN_PAIRS`].
    pub fn of_mean(values: &[f64], seed: u64) -> Option<Estimate> {
        let m = mean(values);
        Estimate::by(m, 1.0, &values.iter().map(|x| x - m).collect::<Vec<_>>(), seed)
    }

    /// `value` with the residuals that it leaves, in units of 1/`scale`.
    pub(crate) fn by(value: f64, scale: f64, residuals: &[f64], seed: u64) -> Option<Estimate> {
        let n = residuals.len();
        if n < MIN_PAIRS {
            return None;
        }
        let (root, spread) = ((n as f64).sqrt(), deviation(residuals));
        let error = spread / root / scale;
        // Rounding errors are not spread.
        if error <= value.abs() * 1e-12 {
            return Some(Estimate { value, error: 0.0, t: Vec::new() });
        }
        let mut rng = Rng::new(seed);
        let mut t = Vec::with_capacity(RESAMPLES);
        for _ in 0..RESAMPLES {
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..n {
                let x = residuals[rng.below(n)];
                sum += x;
                squares += x * x;
            }
            let m = sum / n as f64;
            let s = ((squares - sum * m).max(0.0) / (n - 1) as f64).sqrt();
            t.push(if s > spread * 1e-6 { m * root / s } else { f64::INFINITY.copysign(m) });
        }
        Some(Estimate { value, error, t: sorted(t) })
    }

    /// The bound below which the true value is with probability `q`. `None`: too many resamples are equal for a bound.
    pub fn below(&self, q: f64) -> Option<f64> {
        if self.t.is_empty() {
            return Some(self.value);
        }
        let at = ((1.0 - q) * (self.t.len() - 1) as f64).round() as usize;
        Some(self.value - self.t[at] * self.error).filter(|x| x.is_finite())
    }

    /// The interval that holds the true value with probability 1 - `alpha`.
    pub fn interval(&self, alpha: f64) -> Option<(f64, f64)> {
        Some((self.below(alpha / 2.0)?, self.below(1.0 - alpha / 2.0)?))
    }
}

/// Two-sided p-value of no difference: the share of all assignments of signs to the differences whose sum is at
/// least as far from 0. Never below 2 / 2^n. `None` without values.
pub fn sign_flip(differences: &[f64], seed: u64) -> Option<f64> {
    let n = differences.len();
    if n == 0 {
        return None;
    }
    let total: f64 = differences.iter().map(|d| d.abs()).sum();
    // Sums in another order differ by rounding errors; such sums count as equal.
    let bound = differences.iter().sum::<f64>().abs() - total * 1e-12;
    if bound <= 0.0 {
        return Some(1.0);
    }
    if n > EXACT_SIGNS {
        let mut rng = Rng::new(seed);
        let mut bits = 0;
        let mut far = 0;
        for _ in 0..RANDOM_SIGNS {
            let mut sum = 0.0;
            for (i, d) in differences.iter().enumerate() {
                if i % 64 == 0 {
                    bits = rng.next_u64();
                }
                sum += if bits & 1 == 0 { *d } else { -d };
                bits >>= 1;
            }
            far += u32::from(sum.abs() >= bound);
        }
        return Some(f64::from(far + 1) / f64::from(RANDOM_SIGNS + 1));
    }
    let (a, b) = differences.split_at(n / 2);
    let (a, b) = (signed_sums(a), sorted(signed_sums(b)));
    let far: usize = a.iter().map(|x| b.len() - b.partition_point(|y| x + y < bound)).sum();
    Some((2.0 * far as f64 / (a.len() as f64 * b.len() as f64)).min(1.0))
}

fn signed_sums(list: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for d in list {
        let with: Vec<f64> = sums.iter().map(|s| s + d).collect();
        sums.iter_mut().for_each(|s| *s -= d);
        sums.extend(with);
    }
    sums
}

/// Holm's step-down: with all of them below alpha, the chance of one or more false ones is below alpha.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut by_size: Vec<usize> = (0..p.len()).collect();
    by_size.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut out = vec![0.0; p.len()];
    let mut least = 0.0f64;
    for (rank, i) in by_size.into_iter().enumerate() {
        least = least.max(p[i] * (p.len() - rank) as f64).min(1.0);
        out[i] = least;
    }
    out
}

/// The number of pairs below which [`sign_flip`] cannot reach `alpha` with this number of comparisons.
pub fn least_pairs(alpha: f64, comparisons: usize) -> u32 {
    let mut n = 1;
    while 2.0 / 2f64.powi(n) * comparisons.max(1) as f64 >= alpha && n < 64 {
        n += 1;
    }
    n as u32
}

/// Quantile of the normal distribution (Abramowitz and Stegun 26.2.23: to 0.0005).
fn normal_quantile(q: f64) -> f64 {
    let tail = q.min(1.0 - q).max(1e-300);
    let t = (-2.0 * tail.ln()).sqrt();
    let top = 2.515517 + t * (0.802853 + t * 0.010328);
    let z = t - top / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    if q < 0.5 { -z } else { z }
}

/// Quantile of Student's distribution (Abramowitz and Stegun 26.7.5).
pub(crate) fn student_quantile(q: f64, freedom: f64) -> f64 {
    let (z, v) = (normal_quantile(q), freedom);
    let (z2, z3) = (z * z, z * z * z);
    let first = (z3 + z) / 4.0;
    let second = z * (5.0 * z2 * z2 + 16.0 * z2 + 3.0) / 96.0;
    let third = z * (3.0 * z2 * z3 * z + 19.0 * z2 * z2 + 17.0 * z2 - 15.0) / 384.0;
    z + first / v + second / (v * v) + third / (v * v * v)
}

/// The smallest true difference that this number of pairs with this deviation finds in 80 of 100 cases, in its unit.
/// `None`: they cannot find any.
pub fn detectable(deviation: f64, pairs: u32, alpha: f64, comparisons: usize) -> Option<f64> {
    let least = least_pairs(alpha, comparisons);
    if pairs < least {
        return None;
    }
    let (n, alpha) = (f64::from(pairs), alpha / comparisons.max(1) as f64);
    let t = student_quantile(1.0 - alpha / 2.0, n - 1.0) + student_quantile(POWER, n - 1.0);
    // With few pairs this finds less than the t-test: by simulation, the wider interval costs 12/n², and signs so
    // few that nearly all must agree cost 0.3, half of that with one more pair.
    let cost = (12.0 / (n * n)).max(0.3 * 0.5f64.powi((pairs - least) as i32));
    Some(t * (1.0 + cost) * deviation / n.sqrt())
}

/// About how many pairs find a true difference of this size in 80 of 100 cases.
pub fn pairs_for(difference: f64, deviation: f64, alpha: f64, comparisons: usize) -> u64 {
    let least = least_pairs(alpha, comparisons);
    let enough = |n: u32| detectable(deviation, n, alpha, comparisons).is_some_and(|d| d <= difference);
    let few = (least..least + 200).find(|n| enough(*n));
    let z = normal_quantile(1.0 - alpha / 2.0 / comparisons.max(1) as f64) + normal_quantile(POWER);
    few.map_or_else(|| (z * deviation / difference).powi(2).ceil() as u64, u64::from)
}

/// The statistics of the pairs of one comparison, before its verdict.
#[derive(Debug, Clone)]
pub struct Paired {
    /// Pairs that were given.
    pub pairs: u32,
    /// In the unit of the metric; NaN without pairs.
    pub base_mean: f64,
    /// In the unit of the metric; NaN without pairs.
    pub with_mean: f64,
    /// Mean difference in per cent of `base_mean`; none where that is not above 0.
    pub change_percent: Option<f64>,
    /// Lower end of the interval of `change_percent`; none: too few pairs, or too many that are equal.
    pub low_percent: Option<f64>,
    /// Upper end; none with `low_percent`.
    pub high_percent: Option<f64>,
    /// Standard deviation of the differences in per cent of `base_mean`; none: fewer than two pairs.
    pub noise_percent: Option<f64>,
    /// None: no pair.
    pub p: Option<f64>,
    /// The one-sided bounds of the two tests of equivalence.
    pub within: Option<(f64, f64)>,
    /// Of the differences in their unit, where the mean of the base is 0.
    absolute: Option<(f64, f64)>,
    /// Every difference is exactly 0.
    same: bool,
}

/// Pairs in the order of their blocks; both lists have the same length.
///
/// The change is a ratio of means. Its interval subtracts from each pair what the ratio explains: a change of both
/// values of a pair is not noise.
pub fn paired(base: &[f64], with: &[f64], alpha: f64, seed: u64) -> Paired {
    let d: Vec<f64> = base.iter().zip(with).map(|(b, w)| w - b).collect();
    let (base_mean, with_mean, middle) = (mean(base), mean(with), mean(&d));
    let known = base_mean > 0.0 && middle.is_finite();
    let ratio = middle / base_mean;
    let percent = known.then_some(100.0 * ratio);
    let estimate = percent.and_then(|change| {
        let rest: Vec<f64> = base.iter().zip(&d).map(|(b, d)| 100.0 * (d - ratio * b)).collect();
        Estimate::by(change, base_mean, &rest, seed)
    });
    let interval = estimate.as_ref().and_then(|e| e.interval(alpha));
    let absolute = (!known).then(|| Estimate::of_mean(&d, seed)).flatten();
    Paired {
        pairs: d.len() as u32,
        base_mean,
        with_mean,
        change_percent: percent,
        low_percent: interval.map(|i| i.0),
        high_percent: interval.map(|i| i.1),
        noise_percent: (known && d.len() > 1).then(|| 100.0 * deviation(&d) / base_mean),
        p: sign_flip(&d, seed),
        within: estimate.and_then(|e| e.interval(2.0 * alpha)),
        absolute: absolute.and_then(|e| e.interval(alpha)),
        same: d.iter().all(|d| *d == 0.0),
    }
}

/// The parameters of a verdict.
#[derive(Debug, Clone, Copy)]
pub struct VerdictRule {
    /// Level of each test: 0.05.
    pub alpha: f64,
    /// A change closer to 0 than this is equivalent.
    pub equivalent_percent: f64,
    /// True for rates, false for latency, loss and cost.
    pub higher_is_better: bool,
    /// Number of comparisons that were corrected together.
    pub comparisons: usize,
}

impl Paired {
    /// Equivalent: within the bounds by two one-sided tests, each at alpha; also if a difference exists that is
    /// smaller. Better or worse: corrected p below alpha and the interval without 0. Otherwise inconclusive, with what
    /// is missing.
    pub fn verdict(&self, p_corrected: Option<f64>, rule: &VerdictRule) -> (Verdict, Vec<String>) {
        let x = rule.equivalent_percent;
        if (self.pairs as usize) < MIN_PAIRS {
            let least = least_pairs(rule.alpha, rule.comparisons);
            let note = format!(
                "{} {} too few: a difference needs at least {least}",
                plural(self.pairs as usize, "pair"),
                if self.pairs == 1 { "is" } else { "are" }
            );
            return (Verdict::Inconclusive, vec![note]);
        }
        let interval = self.low_percent.zip(self.high_percent).or(self.absolute);
        let clear = interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
        let found = clear && p_corrected.is_some_and(|p| p < rule.alpha);
        let inside = self.within.is_some_and(|(low, high)| low > -x && high < x);
        if self.same {
            return (Verdict::Equivalent, vec!["every pair is exactly equal".to_owned()]);
        }
        if inside {
            let note = format!("a difference exists, but is smaller than {x} %");
            return (Verdict::Equivalent, if found { vec![note] } else { Vec::new() });
        }
        if found {
            let up = self.with_mean > self.base_mean;
            return (if up == rule.higher_is_better { Verdict::Better } else { Verdict::Worse }, Vec::new());
        }
        (Verdict::Inconclusive, self.missing(clear, rule))
    }

    fn missing(&self, clear: bool, rule: &VerdictRule) -> Vec<String> {
        let mut notes = Vec::new();
        let least = least_pairs(rule.alpha, rule.comparisons);
        if self.pairs < least {
            let of = if rule.comparisons > 1 { format!(" in {} comparisons", rule.comparisons) } else { String::new() };
            let pairs = plural(self.pairs as usize, "pair");
            notes.push(format!("{pairs} cannot show a difference{of} at {}: at least {least} are needed", rule.alpha));
        } else if clear && rule.comparisons > 1 {
            notes.push(format!("not significant after correction over {} comparisons", rule.comparisons));
        }
        if self.low_percent.is_none() && self.absolute.is_none() {
            notes.push("too many pairs are equal for an interval".to_owned());
        }
        let Some(noise) = self.noise_percent.filter(|n| *n > 0.0) else { return notes };
        let x = rule.equivalent_percent;
        let goal = if x > 0.0 { x } else { self.change_percent.unwrap_or(0.0).abs() };
        if goal > 0.0 {
            let n = pairs_for(goal, noise, rule.alpha, rule.comparisons);
            if n > u64::from(self.pairs) {
                notes.push(format!("would need about {n} pairs for {} %", Short(goal)));
            }
        }
        notes
    }
}

/// A number with only the significant digits.
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{:.2}", self.0);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
#[path = "stats_tests.rs"]
mod tests;

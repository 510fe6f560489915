//! Latencies in nanoseconds by buckets that grow with the value, as HdrHistogram does: 128 for each power of two, so a
//! quantile is within 0.4 % of the sample it stands for, up to 137 s. Count, mean, deviation, least and most are exact.

use crate::result::Latency;

/// log2 of the buckets for a power of two.
const SUB_BITS: u32 = 7;
const SUB: u64 = 1 << SUB_BITS;
/// From 2^37 ns on everything is in one last bucket.
const TOP_BITS: u32 = 37;
const BUCKETS: usize = ((TOP_BITS - SUB_BITS + 1) as usize) << SUB_BITS;

/// 39 hours: no trial is that long, and sums of squares stay exact for 2^33 samples.
const MOST: u64 = 1 << 47;

/// With fewer samples, a thousandth of them is less than one sample.
const MIN_FOR_P999: u64 = 1000;

#[derive(Debug, Clone)]
pub(crate) struct Hist {
    buckets: Box<[u64]>,
    count: u64,
    sum: u128,
    squares: u128,
    min: u64,
    max: u64,
}

impl Default for Hist {
    fn default() -> Hist {
        Hist::new()
    }
}

fn bucket(ns: u64) -> usize {
    let bits = u64::BITS - ns.leading_zeros();
    if bits > TOP_BITS {
        return BUCKETS;
    }
    let shift = bits.saturating_sub(SUB_BITS + 1);
    ((u64::from(shift) << SUB_BITS) + (ns >> shift)) as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let b = bucket as u64;
    if b < 2 * SUB {
        return b;
    }
    let shift = (b >> SUB_BITS) - 1;
    ((b - (shift << SUB_BITS)) << shift) + ((1 << shift) >> 1)
}

impl Hist {
    pub(crate) fn new() -> Hist {
        let buckets = vec![0; BUCKETS + 1].into_boxed_slice();
        Hist { buckets, count: 0, sum: 0, squares: 0, min: u64::MAX, max: 0 }
    }

    /// Adds a sample; samples above 2^47 ns (39 hours) count as this value.
    pub(crate) fn add(&mut self, ns: u64) {
        let ns = ns.min(MOST);
        self.buckets[bucket(ns)] += 1;
        self.count += 1;
        self.sum += u128::from(ns);
        self.squares += u128::from(ns) * u128::from(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    pub(crate) fn merge(&mut self, other: &Hist) {
        for (a, b) in self.buckets.iter_mut().zip(&other.buckets) {
            *a += b;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub(crate) fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Standard deviation of the samples (by count - 1); 0 for one sample.
    pub(crate) fn deviation_ns(&self) -> Option<f64> {
        let n = u128::from(self.count);
        if n < 2 {
            return self.mean_ns().map(|_| 0.0);
        }
        // Around the integer part of the mean, in integers: large sums of squares do not cancel.
        let m = self.sum / n;
        let around = self.squares + n * m * m - 2 * m * self.sum;
        let rest = self.sum as f64 / n as f64 - m as f64;
        Some(((around as f64 - n as f64 * rest * rest).max(0.0) / (n - 1) as f64).sqrt())
    }

    /// The `q` quantile (0 to 1) of the samples, accurate to 0.4 %.
    pub(crate) fn quantile_ns(&self, q: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        let at = self.buckets.iter().position(|n| {
            seen += n;
            seen >= rank
        });
        let at = at.filter(|b| *b < BUCKETS);
        Some(at.map_or(self.max, |b| middle(b).clamp(self.min, self.max)))
    }

    /// `None`: there is no sample.
    pub(crate) fn latency(&self, open_loop: bool) -> Option<Latency> {
        let us = |q| self.quantile_ns(q).map(|ns| ns as f64 / 1e3);
        Some(Latency {
            open_loop,
            count: self.count,
            mean_us: self.mean_ns()? / 1e3,
            deviation_us: self.deviation_ns()? / 1e3,
            p50_us: us(0.5)?,
            p90_us: us(0.9)?,
            p99_us: us(0.99)?,
            p999_us: us(0.999).filter(|_| self.count >= MIN_FOR_P999),
            max_us: self.max as f64 / 1e3,
        })
    }
}

#[cfg(test)]
#[path = "hist_tests.rs"]
mod tests;

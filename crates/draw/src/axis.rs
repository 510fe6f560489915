//! Ticks at round numbers, and their labels.

/// The ticks of an axis, and the values at its two ends.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticks {
    /// Value at the low end of the axis.
    pub low: f64,
    /// Value at the high end of the axis.
    pub high: f64,
    /// Values of the ticks, ascending. The first and last may lie within the ends.
    pub at: Vec<f64>,
    /// Positions are by the logarithm of the value; `low` is above 0 then.
    pub log: bool,
}

/// The next number that is 1, 2, 2.5 or 5 times a power of ten and not below `v`.
fn round_up(v: f64) -> f64 {
    let power = 10f64.powf(v.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    steps.iter().map(|s| s * power).find(|s| *s >= v * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

/// Ticks from a round number below `low` to one above `high`, with roughly `about` steps.
pub fn linear(low: f64, high: f64, about: usize) -> Ticks {
    let (low, high) = if high > low { (low, high) } else { (low, low + low.abs().max(1.0)) };
    let step = round_up((high - low) / about as f64);
    let first = (low / step + 1e-9).floor();
    let last = (high / step - 1e-9).ceil().max(first + 1.0);
    let at: Vec<f64> = (0..=(last - first) as usize).map(|i| (first + i as f64) * step).collect();
    Ticks { low: first * step, high: last * step, at, log: false }
}

/// Ticks from 0 with exactly this many steps, so that a right axis shares the grid lines of the left one.
pub fn steps(high: f64, steps: usize) -> Ticks {
    let step = round_up(if high > 0.0 { high / steps as f64 } else { 1.0 / steps as f64 });
    Ticks { low: 0.0, high: step * steps as f64, at: (0..=steps).map(|i| i as f64 * step).collect(), log: false }
}

/// Logarithmic ticks at 1, 2 and 5 times powers of ten. Both values must be above 0.
pub fn log(low: f64, high: f64) -> Ticks {
    let mut all = Vec::new();
    let (from, to) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    for e in from..=to {
        all.extend([1.0, 2.0, 5.0].map(|m| m * 10f64.powi(e)));
    }
    let first = all.iter().rposition(|t| *t <= low * (1.0 + 1e-9)).unwrap_or(0);
    let last = all.iter().position(|t| *t >= high * (1.0 - 1e-9)).unwrap_or(all.len() - 1).max(first + 1);
    let mut at = all[first..=last.min(all.len() - 1)].to_vec();
    if at.len() > 9 {
        let (low, high) = (at[0], at[at.len() - 1]);
        at.retain(|t| *t == low || *t == high || (t.log10() - t.log10().round()).abs() < 1e-9);
    }
    Ticks { low: at[0], high: at[at.len() - 1], at, log: true }
}

impl Ticks {
    /// The position of `v`: 0 at the low end, 1 at the high end, beyond them where `v` lies outside. On a logarithmic
    /// axis, values of 0 and below are at the low end.
    pub fn share(&self, v: f64) -> f64 {
        if self.log && v <= 0.0 {
            0.0
        } else if self.log {
            (v.ln() - self.low.ln()) / (self.high.ln() - self.low.ln())
        } else {
            (v - self.low) / (self.high - self.low)
        }
    }

    /// The label of one value, in the unit of the ticks, with few digits.
    pub fn word(&self, v: f64, prefix: bool) -> String {
        let scaled = v / self.divisor(prefix).0;
        if scaled.abs() < 10.0 { format!("{scaled:.1}") } else { format!("{scaled:.0}") }
    }

    fn divisor(&self, prefix: bool) -> (f64, &'static str) {
        match self.low.abs().max(self.high.abs()) {
            m if prefix && m >= 1e9 => (1e9, "G"),
            m if prefix && m >= 1e6 => (1e6, "M"),
            m if prefix && m >= 1e3 => (1e3, "k"),
            _ => (1.0, ""),
        }
    }

    /// The labels of the ticks, and the prefix of their unit: `G`, `M`, `k`, or empty.
    /// Without `prefix` (per cent, microseconds) values are not scaled.
    pub fn words(&self, prefix: bool) -> (Vec<String>, &'static str) {
        let (div, name) = self.divisor(prefix);
        let words = if self.log {
            self.at.iter().map(|v| short(v / div)).collect()
        } else {
            let step = self.at.get(1).map_or(1.0, |t| (t - self.at[0]) / div);
            let digits = (0..6).find(|d| is_whole(step * 10f64.powi(*d))).unwrap_or(6) as usize;
            self.at.iter().map(|v| format!("{:.digits$}", v / div)).map(positive_zero).collect()
        };
        (words, name)
    }
}

fn is_whole(v: f64) -> bool {
    (v - v.round()).abs() < 1e-6
}

fn positive_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(t) if t.chars().all(|c| c == '0' || c == '.') => t.into(),
        _ => text,
    }
}

/// The number with as few decimal places as it needs.
fn short(v: f64) -> String {
    let digits = (0..6).find(|d| is_whole(v * 10f64.powi(*d))).unwrap_or(6) as usize;
    format!("{v:.digits$}")
}

/// `64`, `1K`, `64K`: a size in bytes, in KiB where it is a whole number of them.
pub fn size(v: f64) -> String {
    if v >= 1024.0 && v % 1024.0 == 0.0 { format!("{}K", v / 1024.0) } else { format!("{v}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover() {
        let t = linear(0.0, 1_487_000.0, 5);
        assert_eq!((t.low, t.high, t.at.len()), (0.0, 1_500_000.0, 4));
        assert_eq!(t.words(true), (["0.0", "0.5", "1.0", "1.5"].map(String::from).to_vec(), "M"));
        let t = linear(-3.2, 12.1, 5);
        assert_eq!(t.at, [-5.0, 0.0, 5.0, 10.0, 15.0]);
        // A single value of 0 has an axis, too.
        assert_eq!(linear(0.0, 0.0, 4).at, [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(steps(41.0, 4).at, [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!(steps(0.0, 4).high, 1.0);
    }

    #[test]
    fn logarithmic_ticks() {
        let t = log(12.0, 480.0);
        assert_eq!(t.at, [10.0, 20.0, 50.0, 100.0, 200.0, 500.0]);
        assert!((t.share(10.0), t.share(500.0)) == (0.0, 1.0));
        assert_eq!(log(1.0, 1e6).at, [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
        assert_eq!(log(0.03, 0.04).words(false).0, ["0.02", "0.05"]);
    }

    #[test]
    fn sizes() {
        assert_eq!([size(20.0), size(1000.0), size(1024.0), size(65536.0)], ["20", "1000", "1K", "64K"]);
    }
}

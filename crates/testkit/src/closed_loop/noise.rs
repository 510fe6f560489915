//! Seeded chance: SplitMix64, and what the simulation draws from it.

/// Ticks of a second on kernels of distributions.
const TICKS: u32 = 250;

/// A generator. The same seed gives the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n.max(1)
    }

    /// The share of a second's ticks, in percent, that find the CPU busy if it is busy for this part of the time. Each tick
    /// is drawn by itself: this is the error of a kernel without `IRQ_TIME_ACCOUNTING`.
    pub fn ticks_percent(&mut self, busy: f64) -> f64 {
        if busy >= 1.0 {
            return 100.0;
        }
        let mut left = TICKS;
        let mut hits = 0;
        while left > 0 {
            let n = left.min(64);
            hits += (self.each(busy) & (u64::MAX >> (64 - n))).count_ones();
            left -= n;
        }
        f64::from(hits) * 100.0 / f64::from(TICKS)
    }

    /// 64 bits, each of them set with this probability (in steps of 1/1024).
    fn each(&mut self, probability: f64) -> u64 {
        let p = (probability.clamp(0.0, 1.0) * 1024.0).round() as u32;
        if p >= 1024 {
            return u64::MAX;
        }
        // From the lowest digit of the probability to the highest.
        (0..10).fold(0, |set, digit| if p >> digit & 1 == 1 { set | self.bits() } else { set & self.bits() })
    }

    /// A number of packets with this mean, which varies like independent arrivals.
    pub fn around(&mut self, mean: f64) -> u64 {
        (mean + self.normal() * mean.sqrt()).max(0.0).round() as u64
    }

    /// Mean 0, standard deviation 1.
    pub fn normal(&mut self) -> f64 {
        // The number of set bits of 64 has the variance 16. What follows the point is uniform.
        let n = f64::from(self.bits().count_ones()) - 32.0 + self.below(1 << 20) as f64 / f64::from(1 << 20) - 0.5;
        n / 4.01
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_ticks_err_as_a_kernel_does() {
        let mut chance = SeededRandom::new(1);
        for busy in [0.1, 0.5, 0.9] {
            let draws: Vec<f64> = (0..4000).map(|_| chance.ticks_percent(busy)).collect();
            let mean = draws.iter().sum::<f64>() / 4000.0;
            let error = (draws.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / 4000.0).sqrt();
            // The standard error of 250 independent ticks: 3.2 points at half load.
            let expected = 100.0 * (busy * (1.0 - busy) / 250.0f64).sqrt();
            assert!((mean - busy * 100.0).abs() < 0.3, "{busy}: {mean}");
            assert!((error - expected).abs() < 0.15, "{busy}: {error}, expected {expected}");
        }
        assert_eq!((chance.ticks_percent(0.0), chance.ticks_percent(1.3)), (0.0, 100.0));
    }

    #[test]
    fn arrivals_vary_with_the_square_root() {
        let mut chance = SeededRandom::new(2);
        let draws: Vec<f64> = (0..4000).map(|_| chance.around(10_000.0) as f64).collect();
        let mean = draws.iter().sum::<f64>() / 4000.0;
        let error = (draws.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / 4000.0).sqrt();
        assert!((mean - 10_000.0).abs() < 8.0 && (error - 100.0).abs() < 4.0, "{mean} {error}");
    }
}

//! The choice of the next flow.

use crate::rng::Rng;

/// The weight of flow number `rank` (from 0) by Zipf's law, not normalised.
pub(super) fn weight(rank: u32, skew: f64) -> f64 {
    (f64::from(rank) + 1.0).powf(-skew)
}

/// Flows in turn without a skew, at random with a skew.
pub(super) struct Choice {
    flows: usize,
    next: usize,
    cumulative: Vec<f64>,
    rng: Rng,
}

impl Choice {
    /// The choice among the flows of one thread, with their ranks among all flows.
    pub(super) fn new(ranks: &[u32], skew: f64, seed: u64) -> Self {
        let mut sum = 0.0;
        let cumulative = if skew > 0.0 {
            ranks
                .iter()
                .map(|r| {
                    sum += weight(*r, skew);
                    sum
                })
                .collect()
        } else {
            Vec::new()
        };
        Self { flows: ranks.len(), next: 0, cumulative, rng: Rng::new(seed) }
    }

    pub(super) fn is_skewed(&self) -> bool {
        !self.cumulative.is_empty()
    }

    pub(super) fn pick(&mut self) -> usize {
        if let Some(total) = self.cumulative.last() {
            let at = self.rng.unit() * total;
            return self.cumulative.partition_point(|c| *c <= at).min(self.flows - 1);
        }
        let now = self.next;
        self.next = if now + 1 == self.flows { 0 } else { now + 1 };
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_alike_go_round() {
        let mut c = Choice::new(&[0, 2, 4], 0.0, 1);
        assert_eq!([(); 7].map(|()| c.pick()), [0, 1, 2, 0, 1, 2, 0]);
    }

    /// Exponent 1 over three flows: 6/11, 3/11, 2/11.
    #[test]
    fn the_first_is_the_largest() {
        let mut c = Choice::new(&[0, 1, 2], 1.0, 1);
        let mut seen = [0u32; 3];
        for _ in 0..110_000 {
            seen[c.pick()] += 1;
        }
        // Deviations of about 165.
        assert!(seen.iter().zip([60_000, 30_000, 20_000]).all(|(n, want)| n.abs_diff(want) < 900), "{seen:?}");
    }
}

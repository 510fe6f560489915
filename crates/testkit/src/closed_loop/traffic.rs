//! Traffic: how much CPU time the packets of each table entry need, second by second.

use super::noise::SeededRandom;

/// A flow that comes and goes.
#[derive(Debug, Clone)]
struct OnOff {
    /// CPUs that it needs while it is on.
    share: f64,
    entry: usize,
    on: bool,
    /// When it changes.
    until: u64,
}

/// Traffic over a table. Shares are in CPUs: 1.0 is all of the time of one.
#[derive(Debug, Clone)]
pub struct SimulatedTraffic {
    base: Vec<f64>,
    now: Vec<f64>,
    chance: SeededRandom,
    /// Standard deviation of each entry from second to second, as a part of its share.
    jitter: f64,
    on_off: Vec<OnOff>,
    /// From this second on, the traffic grows to this multiple within two seconds.
    surge: Option<(u64, f64)>,
    /// The load follows the time of day, by this part of it.
    day: f64,
    /// Seconds after which every flow has another hash. 0: never.
    renewed: u64,
    flows: (u32, f64),
}

impl SimulatedTraffic {
    /// `count` flows that need `total` CPUs together; the share of flow k is proportional to 1 / k^`zipf`. Each flow has
    /// a random entry.
    pub fn zipf(entries: usize, count: u32, zipf: f64, total: f64, seed: u64) -> Self {
        let mut out = Self {
            base: vec![0.0; entries],
            now: vec![0.0; entries],
            chance: SeededRandom::new(seed),
            jitter: 0.02,
            on_off: Vec::new(),
            surge: None,
            day: 0.0,
            renewed: 0,
            flows: (count, zipf),
        };
        out.hash(total);
        out
    }

    fn hash(&mut self, total: f64) {
        let (count, zipf) = self.flows;
        let n = self.base.len() as u64;
        self.base.fill(0.0);
        let weights = (1..=count).map(|k| f64::from(k).powf(-zipf));
        let sum: f64 = weights.clone().sum();
        for w in weights {
            self.base[self.chance.below(n) as usize] += w / sum * total;
        }
    }

    /// Adds `count` flows of `share` CPUs each that are on and off for 5 to 300 s. Each time it is a new flow.
    pub fn with_on_off(mut self, count: usize, share: f64) -> Self {
        self.on_off = (0..count).map(|_| OnOff { share, entry: 0, on: false, until: 0 }).collect();
        self
    }

    /// Adds `count` flows of `share` CPUs each that stay.
    pub fn with_elephants(mut self, count: usize, share: f64) -> Self {
        for _ in 0..count {
            let entry = self.chance.below(self.base.len() as u64) as usize;
            self.base[entry] += share;
        }
        self
    }

    /// The traffic grows to `factor` times within two seconds, from this second on.
    pub fn with_surge(mut self, second: u64, factor: f64) -> Self {
        self.surge = Some((second, factor));
        self
    }

    /// The load rises and falls by this part with the time of day.
    pub fn with_day(mut self, part: f64) -> Self {
        self.day = part;
        self
    }

    /// After every `seconds`, other flows take the place of all flows.
    pub fn with_renewal(mut self, seconds: u64) -> Self {
        self.renewed = seconds;
        self
    }

    /// The CPUs that each entry needs, without the variation of each second.
    pub fn base(&self) -> &[f64] {
        &self.base
    }

    /// The CPUs that each entry needs in this second.
    pub fn second(&mut self, second: u64) -> &[f64] {
        if self.renewed > 0 && second.is_multiple_of(self.renewed) {
            let total = self.base.iter().sum();
            self.hash(total);
        }
        let grown = match self.surge {
            Some((at, factor)) => 1.0 + (factor - 1.0) * (second.saturating_sub(at) as f64 / 2.0).min(1.0),
            None => 1.0,
        };
        let day = 1.0 + self.day * (second as f64 / 86_400.0 * std::f64::consts::TAU).sin();
        for (now, base) in self.now.iter_mut().zip(&self.base) {
            *now = (base * grown * day * (1.0 + self.jitter * self.chance.normal())).max(0.0);
        }
        for flow in &mut self.on_off {
            if second >= flow.until {
                flow.on = !flow.on;
                flow.until = second + 5 + self.chance.below(296);
                flow.entry = self.chance.below(self.base.len() as u64) as usize;
            }
            if flow.on {
                self.now[flow.entry] += flow.share;
            }
        }
        &self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_traffic() {
        let draw = |seed| {
            let mut t = SimulatedTraffic::zipf(128, 1000, 0.9, 4.0, seed).with_on_off(2, 0.4);
            (1..50).map(|s| t.second(s).to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn totals_surges_and_flows_that_come_and_go() {
        let sum = |t: &mut SimulatedTraffic, second| t.second(second).iter().sum::<f64>();
        let mut t = SimulatedTraffic::zipf(128, 10_000, 0.9, 2.0, 3).with_surge(10, 5.0);
        assert!((sum(&mut t, 10) - 2.0).abs() < 0.05);
        assert!((sum(&mut t, 11) - 6.0).abs() < 0.15);
        assert!((sum(&mut t, 12) - 10.0).abs() < 0.2 && (sum(&mut t, 99) - 10.0).abs() < 0.2);
        let mut t = SimulatedTraffic::zipf(128, 10_000, 0.0, 0.0, 3).with_on_off(1, 0.4);
        let on: Vec<bool> = (1..=3000).map(|s| sum(&mut t, s) > 0.1).collect();
        let changes: Vec<usize> = (1..3000).filter(|s| on[*s] != on[s - 1]).collect();
        assert!((10..=200).contains(&changes.len()), "{}", changes.len());
        assert!(changes.windows(2).all(|w| (5..=300).contains(&(w[1] - w[0]))));
    }
}

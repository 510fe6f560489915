//! What a run is judged by.

use std::collections::BTreeMap;

use super::{Interface, PACKETS_PER_S, PolicyChange, RING};

/// A move back within this many seconds is a return (A-B-A).
const RETURN_S: u64 = 180;
const HOUR_S: u64 = 3600;
/// Steps of load for each CPU.
const STEPS: usize = 1000;
/// A CPU is hot above this load.
const HOT: f64 = 0.9;

/// What happened in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationReport {
    /// Entries and interrupts that were moved.
    pub moves: usize,
    /// The largest number of moves within an hour.
    pub most_moves_in_an_hour: usize,
    /// Moves to the place that the entry or interrupt had left within 180 s.
    pub returns: usize,
    /// The largest number of returns within an hour.
    pub most_returns_in_an_hour: usize,
    /// Packets that were dropped, in percent of all.
    pub lost_percent: f64,
    /// Packets that were dropped, in CPU seconds.
    pub lost: f64,
    /// Seconds in which a CPU had more than 90 % work, in percent of all.
    pub hot_seconds_percent: f64,
    /// 95 % of the packets waited at most this long for their CPU, in µs (`waits_longer`).
    pub p95_wait_us: f64,
    /// The second of the first move.
    pub first_move: Option<u64>,
    /// The busiest CPU over the mean in each second.
    pub max_to_mean: Vec<f32>,
}

pub(super) struct Meter {
    moves: Vec<u64>,
    returns: Vec<u64>,
    /// When each entry, or interrupt, left which place.
    left: BTreeMap<(bool, usize), (u32, u64)>,
    lost: f64,
    offered: f64,
    hot: u64,
    /// Work by the load of its CPU, in steps of 1/1000; the last one is overload.
    by_load: Vec<f64>,
    max_to_mean: Vec<f32>,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self {
            moves: Vec::new(),
            returns: Vec::new(),
            left: BTreeMap::new(),
            lost: 0.0,
            offered: 0.0,
            hot: 0,
            by_load: vec![0.0; STEPS + 1],
            max_to_mean: Vec::new(),
        }
    }

    pub(super) fn second(&mut self, offered: &[f64]) {
        let sum: f64 = offered.iter().sum();
        let most = offered.iter().copied().fold(0.0, f64::max);
        self.offered += sum;
        self.lost += offered.iter().map(|o| (o - 1.0).max(0.0)).sum::<f64>();
        self.hot += u64::from(most > HOT);
        self.max_to_mean.push((most * offered.len() as f64 / sum.max(f64::MIN_POSITIVE)) as f32);
        for o in offered {
            self.by_load[((o * STEPS as f64) as usize).min(STEPS)] += o.min(1.0);
        }
    }

    pub(super) fn change(&mut self, second: u64, interface: &Interface, change: &PolicyChange) {
        let entries = change.entries.iter().map(|(e, to)| ((false, *e), interface.table[*e], *to));
        let interrupts =
            change.interrupts.iter().map(|(q, to)| ((true, *q as usize), interface.cpus[*q as usize], *to));
        for (what, from, to) in entries.chain(interrupts).filter(|(_, from, to)| from != to) {
            self.moves.push(second);
            let earlier = self.left.insert(what, (from, second));
            if earlier.is_some_and(|(place, when)| place == to && second <= when + RETURN_S) {
                self.returns.push(second);
            }
        }
    }

    pub(super) fn report(self, seconds: u64) -> SimulationReport {
        SimulationReport {
            moves: self.moves.len(),
            most_moves_in_an_hour: most_in_an_hour(&self.moves),
            returns: self.returns.len(),
            most_returns_in_an_hour: most_in_an_hour(&self.returns),
            lost_percent: 100.0 * self.lost / self.offered.max(f64::MIN_POSITIVE),
            lost: self.lost,
            hot_seconds_percent: 100.0 * self.hot as f64 / seconds.max(1) as f64,
            p95_wait_us: quantile_us(&self.by_load, 0.95),
            first_move: self.moves.first().copied(),
            max_to_mean: self.max_to_mean,
        }
    }
}

/// The largest number of these times, in rising order, within an hour.
fn most_in_an_hour(times: &[u64]) -> usize {
    let within = |(i, t): (usize, &u64)| times[i..].iter().take_while(|u| **u < t + HOUR_S).count();
    times.iter().enumerate().map(within).max().unwrap_or(0)
}

/// The probability that a packet waits longer than `wait_us` for a CPU with this load. Packets arrive independently and take
/// the same time each (M/D/1); the tail is exponential with the mean of Pollaczek and Khinchine. A CPU without
/// time left has a full ring.
fn waits_longer(load: f64, wait_us: f64) -> f64 {
    let packet_us = 1e6 / PACKETS_PER_S;
    let full = RING * packet_us;
    match () {
        () if wait_us >= full => 0.0,
        () if load >= 1.0 => 1.0,
        () => load * (-2.0 * (1.0 - load) * wait_us / packet_us).exp(),
    }
}

/// The wait that this part of the work does not exceed.
fn quantile_us(by_load: &[f64], part: f64) -> f64 {
    let all: f64 = by_load.iter().sum();
    let longer = |wait_us: f64| {
        let weights = by_load.iter().enumerate().map(|(step, w)| w * waits_longer(step as f64 / STEPS as f64, wait_us));
        weights.sum::<f64>()
    };
    let (mut low, mut high) = (0.0, RING * 1e6 / PACKETS_PER_S);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if longer(middle) > all * (1.0 - part) { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_a_queue() {
        let at = |load: usize| {
            let mut by_load = vec![0.0; STEPS + 1];
            by_load[load] = 1.0;
            quantile_us(&by_load, 0.95)
        };
        // ln(20 × 0.5) / (2 × 0.5) and ln(20 × 0.9) / (2 × 0.1) times 1 µs.
        assert!((at(500) - 2.303).abs() < 0.01 && (at(900) - 14.45).abs() < 0.05, "{} {}", at(500), at(900));
        assert!((at(1000) - 1024.0).abs() < 0.1, "a full ring");
    }

    #[test]
    fn returns_within_three_minutes_are_counted() {
        let mut interface = Interface::even(4, 2, 2);
        let mut meter = Meter::new();
        for (second, entry, to, returns) in [(10, 0, 1, 0), (190, 0, 0, 1), (200, 1, 0, 1), (381, 1, 1, 1)] {
            let change = PolicyChange { entries: vec![(entry, to)], interrupts: Vec::new() };
            meter.change(second, &interface, &change);
            interface.table[entry] = to;
            assert_eq!(meter.returns.len(), returns, "{second}");
        }
        assert_eq!(most_in_an_hour(&[0, 10, 3599, 3600, 3605]), 4);
    }
}

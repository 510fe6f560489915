//! The order of trials. States alternate, because otherwise drift would count as a difference between states.

use crate::result::Phase;
use crate::rng::Rng;

/// One planned trial. `state` and `point` are indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Calibration blocks come first.
    pub phase: Phase,
    /// From 0 in each phase.
    pub block: u32,
    /// Place within the block, from 0.
    pub order: u32,
    /// Into [`Session::states`](crate::result::Session::states), from 0.
    pub state: usize,
    /// Into the points of the sweep, from 0.
    pub point: usize,
    /// In calibration: the later one of the pair.
    pub second: bool,
}

/// Calibration blocks (the first state, every point twice), then blocks in which every state is measured once at every
/// point.
///
/// Within a block the points of a state follow each other, because a state is expensive to switch; their order is
/// random, and the same for all states, so that pairs are equally far apart. Over as many blocks as there are states
/// (twice as many for an odd number) every state takes every place once and follows every other equally often
/// (Williams 1949); which state is which, and which block comes when, is random. Two states: `AB BA` or `BA AB`.
pub fn order(states: usize, points: usize, blocks: u32, calibration: u32, seed: u64) -> Vec<Slot> {
    let mut rng = Rng::new(seed);
    let mut out = Vec::new();
    let mut place: Vec<usize> = (0..points).collect();
    if states == 0 {
        return out;
    }
    for block in 0..calibration {
        rng.shuffle(&mut place);
        run(&mut out, Phase::Calibration, block, &[0, 0], &place);
    }
    let mut names: Vec<usize> = (0..states).collect();
    let mut rows: Vec<usize> = (0..states).collect();
    for block in 0..blocks {
        let (cycle, at) = (block as usize / states, block as usize % states);
        let mirror = states % 2 == 1 && cycle % 2 == 1;
        if at == 0 {
            rng.shuffle(&mut rows);
            if !mirror {
                rng.shuffle(&mut names);
            }
        }
        let mut turn: Vec<usize> = (0..states).map(|k| names[williams(states, rows[at], k)]).collect();
        if mirror {
            turn.reverse();
        }
        rng.shuffle(&mut place);
        run(&mut out, Phase::Measure, block, &turn, &place);
    }
    out
}

/// The state at place `k` of that row: 0, 1, n-1, 2, n-2, ... and each row shifted by one.
fn williams(n: usize, row: usize, k: usize) -> usize {
    let from_zero = if k % 2 == 1 { k.div_ceil(2) } else { n - k / 2 };
    (from_zero + row) % n
}

fn run(out: &mut Vec<Slot>, phase: Phase, block: u32, states: &[usize], points: &[usize]) {
    for (turn, state) in states.iter().enumerate() {
        for (i, point) in points.iter().enumerate() {
            let order = (turn * points.len() + i) as u32;
            let second = phase == Phase::Calibration && turn == 1;
            out.push(Slot { phase, block, order, state: *state, point: *point, second });
        }
    }
}

#[cfg(test)]
#[path = "design_tests.rs"]
mod tests;

//! Successive halving: many candidates are measured briefly, the better half is measured longer, and the last one is
//! proved against the start with its own pairs, because the trials that selected it would favour it.
//!
//! Scores: higher is better, compared only within a block.

use crate::result::Verdict;
use crate::rng::Rng;
use crate::stats::{Paired, VerdictRule, deviation, mean, paired, student_quantile};

/// Blocks of the last proof, as the budget allows.
const PROOF: std::ops::RangeInclusive<u32> = 6..=20;
/// The most blocks of one round; more would only use up the budget.
const MAX_BLOCKS: u32 = 10;
/// Candidates are not dropped before this many blocks.
const MIN_BLOCKS: usize = 4;
/// Level of the one-sided test; each candidate is tested after each block.
const DROP_ALPHA: f64 = 0.005;

/// A state that is measured next or was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchState {
    /// The state that the search began from.
    Start,
    /// Index of a candidate, from 0.
    Candidate(usize),
}

/// The reason for which a candidate was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// In the worse half of a round.
    WorseHalf,
    /// Its interval lies below that of the best.
    BelowBest,
    /// Its interval lies below the start.
    BelowStart,
    /// It could not be measured.
    Failed,
    /// The last candidate, which was not clearly better than the start.
    NotProved,
}

/// A candidate that is not measured any more.
#[derive(Debug, Clone, PartialEq)]
pub struct Dropped {
    /// Index, from 0.
    pub candidate: usize,
    /// The round, from 0; the proof follows the last round.
    pub round: u32,
    /// The first reason that applied.
    pub why: DropReason,
    /// Mean difference to the start so far, in per cent of it. None: never measured, or the start is 0.
    pub change_percent: Option<f64>,
    /// Number of blocks in which it was measured.
    pub blocks: u32,
}

/// The budget is too small to distinguish the candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct TooShort {
    /// The budget that was given.
    pub trials: u32,
    /// The smallest budget for this number of candidates.
    pub needed: u32,
}

impl std::fmt::Display for TooShort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let TooShort { trials, needed } = self;
        let trials = ringwise_model::words::plural(*trials as usize, "trial");
        let are = if self.trials == 1 { "is" } else { "are" };
        write!(f, "{trials} {are} too few for so many candidates: at least {needed} are needed, or fewer candidates")
    }
}

impl std::error::Error for TooShort {}

/// The state of a search: request the next block and report its scores until the search ends.
#[derive(Debug, Clone)]
pub struct Halving {
    rng: Rng,
    alpha: f64,
    equivalent_percent: f64,
    budget: u32,
    used: u32,
    round: u32,
    /// Blocks left in this round, or in the proof.
    left: u32,
    proof: bool,
    over: bool,
    alive: Vec<usize>,
    dropped: Vec<Dropped>,
    /// By block: the start's score, and those of all candidates.
    seen: Vec<(f64, Vec<Option<f64>>)>,
    /// Start and winner, of the proof.
    pairs: Vec<(f64, f64)>,
    asked: Vec<SearchState>,
    candidates: usize,
}

/// How it ended.
#[derive(Debug, Clone)]
pub struct HalvingOutcome {
    /// `None`: no candidate is better than the start.
    pub winner: Option<usize>,
    /// The comparison of the last candidate with the start, if it was measured.
    pub proof: Option<Paired>,
    /// What the user should know about the search, one text each.
    pub notes: Vec<String>,
    /// The dropped candidates, the worst first.
    pub dropped: Vec<Dropped>,
    /// Trials that were used, those of the proof included.
    pub trials: u32,
}

/// Number of rounds until one candidate is left.
fn rounds(mut alive: usize) -> u32 {
    let mut n = 0;
    while alive > 1 {
        alive = alive.div_ceil(2);
        n += 1;
    }
    n
}

impl Halving {
    /// `budget`: number of trials in all; a trial is one state in one block.
    ///
    /// Errors: the budget is not enough for one block per round and the proof.
    pub fn new(
        candidates: usize,
        budget: u32,
        alpha: f64,
        equivalent_percent: f64,
        seed: u64,
    ) -> Result<Halving, TooShort> {
        let mut needed = 2 * PROOF.start();
        let mut alive = candidates;
        while alive > 1 {
            needed += alive as u32 + 1;
            alive = alive.div_ceil(2);
        }
        if budget < needed {
            return Err(TooShort { trials: budget, needed });
        }
        let mut h = Halving {
            rng: Rng::new(seed),
            alpha,
            equivalent_percent,
            budget,
            used: 0,
            round: 0,
            left: 0,
            proof: false,
            over: false,
            alive: (0..candidates).collect(),
            dropped: Vec::new(),
            seen: Vec::new(),
            pairs: Vec::new(),
            asked: Vec::new(),
            candidates,
        };
        h.begin();
        Ok(h)
    }

    /// The states of the next block, in this order; empty: the search has ended. The same until [`Halving::record_result`].
    pub fn ask(&mut self) -> &[SearchState] {
        if self.asked.is_empty() && !self.over {
            let mut turn: Vec<usize> = (0..=self.alive.len()).collect();
            self.rng.shuffle(&mut turn);
            let who = |i: usize| i.checked_sub(1).map_or(SearchState::Start, |i| SearchState::Candidate(self.alive[i]));
            self.asked = turn.into_iter().map(who).collect();
        }
        &self.asked
    }

    /// Reports the scores in the requested order. `None`: the state could not be measured. A candidate is then
    /// dropped, and a block without the start is ignored.
    pub fn record_result(&mut self, scores: &[Option<f64>]) {
        let asked = std::mem::take(&mut self.asked);
        if asked.is_empty() {
            return;
        }
        self.used += asked.len() as u32;
        self.left = self.left.saturating_sub(1);
        let mut start = None;
        let mut all = vec![None; self.candidates];
        for (i, who) in asked.iter().enumerate() {
            let score = scores.get(i).copied().flatten().filter(|s| s.is_finite());
            match who {
                SearchState::Start => start = score,
                SearchState::Candidate(c) => all[*c] = score,
            }
        }
        let failed = self.alive.iter().copied().filter(|c| all[*c].is_none()).collect();
        if let Some(start) = start {
            if self.proof {
                self.pairs.extend(self.alive.first().and_then(|c| all[*c]).map(|s| (start, s)));
            } else {
                self.seen.push((start, all));
            }
        }
        self.drop(failed, DropReason::Failed);
        if !self.proof {
            self.drop_early();
        }
        if self.left == 0 || self.alive.is_empty() || (!self.proof && self.alive.len() == 1) {
            self.end_round();
        }
    }

    /// A candidate's differences to the start, or to another one, in the blocks that have both.
    fn differences(&self, candidate: usize, to: Option<usize>) -> Vec<f64> {
        let other = |(start, all): &(f64, Vec<Option<f64>>)| match to {
            Some(c) => all[c],
            None => Some(*start),
        };
        self.seen.iter().filter_map(|block| Some(block.1[candidate]? - other(block)?)).collect()
    }

    /// The candidates by their difference to the start; those that were never measured are last.
    fn merit(&self, candidate: usize) -> f64 {
        let d = self.differences(candidate, None);
        if d.is_empty() { f64::NEG_INFINITY } else { mean(&d) }
    }

    /// Best first.
    fn rank(&mut self) {
        let mut by: Vec<(f64, usize)> = self.alive.iter().map(|c| (self.merit(*c), *c)).collect();
        by.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.alive = by.into_iter().map(|(_, c)| c).collect();
    }

    fn drop_early(&mut self) {
        self.rank();
        let Some(best) = self.alive.first().copied() else { return };
        let below = |c: usize, to| below_zero(&self.differences(c, to));
        let start: Vec<usize> = self.alive.iter().copied().filter(|c| below(*c, None)).collect();
        let others = self.alive.iter().copied().filter(|c| *c != best && !start.contains(c));
        let worse = others.filter(|c| below(*c, Some(best))).collect();
        self.drop(start, DropReason::BelowStart);
        self.drop(worse, DropReason::BelowBest);
    }

    fn drop(&mut self, who: Vec<usize>, why: DropReason) {
        for candidate in who.into_iter().rev() {
            let d = self.differences(candidate, None);
            let base = mean(&self.seen.iter().map(|s| s.0).collect::<Vec<_>>());
            let change_percent = (!d.is_empty() && base > 0.0).then(|| 100.0 * mean(&d) / base);
            let blocks = d.len() as u32;
            self.dropped.push(Dropped { candidate, round: self.round, why, change_percent, blocks });
            self.alive.retain(|c| *c != candidate);
        }
    }

    fn end_round(&mut self) {
        if self.proof || self.alive.is_empty() {
            self.over = true;
            return;
        }
        self.rank();
        let worse = self.alive.split_off(self.alive.len().div_ceil(2));
        self.alive.extend(&worse);
        self.drop(worse, DropReason::WorseHalf);
        self.round += 1;
        self.begin();
    }

    /// The blocks of the round or the proof that begins.
    fn begin(&mut self) {
        let rest = self.budget - self.used;
        match self.alive.len() {
            0 => self.over = true,
            1 => {
                self.proof = true;
                self.left = (rest / 2).min(*PROOF.end());
            }
            n => {
                // An equal share for each remaining round. The minimum for them and the proof was reserved at the
                // start.
                let share = rest.saturating_sub(2 * PROOF.start()) / rounds(n);
                self.left = (share / (n as u32 + 1)).clamp(1, MAX_BLOCKS);
            }
        }
    }

    /// `None`: the search has not ended.
    pub fn outcome(&self) -> Option<HalvingOutcome> {
        if !self.over {
            return None;
        }
        let mut out = HalvingOutcome {
            winner: None,
            proof: None,
            notes: Vec::new(),
            dropped: self.dropped.clone(),
            trials: self.used,
        };
        if let Some(last) = self.alive.first() {
            let (base, with): (Vec<f64>, Vec<f64>) = self.pairs.iter().copied().unzip();
            let p = paired(&base, &with, self.alpha, self.rng.clone().next_u64());
            let rule = VerdictRule {
                alpha: self.alpha,
                equivalent_percent: self.equivalent_percent,
                higher_is_better: true,
                comparisons: 1,
            };
            let (verdict, notes) = p.verdict(p.p, &rule);
            out.notes = notes;
            if verdict == Verdict::Better {
                out.winner = Some(*last);
            } else {
                let (round, blocks) = (self.round, p.pairs);
                let change_percent = p.change_percent;
                out.dropped.push(Dropped {
                    candidate: *last,
                    round,
                    why: DropReason::NotProved,
                    change_percent,
                    blocks,
                });
            }
            out.proof = Some(p);
        }
        if out.winner.is_none() {
            out.notes.insert(0, "no candidate is better than the present settings".to_owned());
        }
        Some(out)
    }
}

/// Whether their mean is below 0 by Student's interval; a bootstrap would need more values.
fn below_zero(d: &[f64]) -> bool {
    let (n, m) = (d.len() as f64, mean(d));
    d.len() >= MIN_BLOCKS && m + student_quantile(1.0 - DROP_ALPHA, n - 1.0) * deviation(d) / n.sqrt() < 0.0
}

#[cfg(test)]
#[path = "halving_tests.rs"]
mod tests;

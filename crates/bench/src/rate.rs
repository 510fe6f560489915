//! The highest offered rate with no more than some loss, by halving the interval. Several losses share their trials.
//!
//! A rate fails when two trials there lost too much; one that did not is enough to pass. So what passes at zero loss
//! passes at 0.5 % as well, and the rate found at 0.5 % is never below the one at zero.

use crate::result::Limit;

/// What is tried at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tried {
    per_s: f64,
    /// The least of its trials, in per cent.
    lost_percent: f64,
    trials: u32,
}

/// The state of a search: [`RateSearch::ask`] for a rate, offer it, report it with [`RateSearch::saw`].
#[derive(Debug, Clone, PartialEq)]
pub struct RateSearch {
    lo: f64,
    hi: f64,
    losses_percent: Vec<f64>,
    tolerance: f64,
    max_trials: u32,
    trials: u32,
    /// By rate.
    tried: Vec<Tried>,
    /// The most that the generator sent when more was requested: sent, requested.
    ceiling: Option<(f64, f64)>,
    /// Trials in which the generator could not send the requested rate.
    short: u32,
    asked: Option<f64>,
}

/// The result of a search for one loss.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// None: not even the lowest rate that was tried.
    pub found_per_s: Option<f64>,
    /// The lowest rate that lost more; none: no such rate was met.
    pub above_per_s: Option<f64>,
    /// Of the whole search, for all its losses.
    pub trials: u32,
    /// The generator's where it could not send more, `Offered` where the highest rate passed; else the caller knows
    /// whether it was a CPU or the link.
    pub limit: Limit,
    /// The interval is as narrow as was asked for; else the trials were used up.
    pub complete: bool,
}

impl RateSearch {
    /// From `lo` to `hi` a second, for each of these losses, until the interval is within `tolerance` (0.01: 1 %) of the
    /// rate that failed, or for `max_trials` in all.
    pub fn new(lo: f64, hi: f64, losses_percent: &[f64], tolerance: f64, max_trials: u32) -> RateSearch {
        let losses_percent = losses_percent.to_vec();
        let (lo, tolerance) = (lo.min(hi), tolerance.max(1e-6));
        RateSearch {
            lo,
            hi,
            losses_percent,
            tolerance,
            max_trials,
            trials: 0,
            tried: Vec::new(),
            ceiling: None,
            short: 0,
            asked: None,
        }
    }

    /// The rate to offer now; none: it is over. The same until [`RateSearch::saw`].
    pub fn ask(&mut self) -> Option<f64> {
        if self.trials >= self.max_trials || !(self.lo > 0.0 && self.hi.is_finite()) {
            return None;
        }
        self.asked = self.losses_percent.iter().find_map(|loss| self.wish(*loss));
        self.asked
    }

    /// What came of the rate that was asked for: really sent, and lost of that. A loss that is no number counts as all.
    pub fn saw(&mut self, sent_per_s: f64, lost_percent: f64) {
        let Some(asked) = self.asked.take() else { return };
        self.trials += 1;
        let short = sent_per_s < asked * (1.0 - self.tolerance / 2.0);
        let per_s = if short { sent_per_s } else { asked };
        self.short += u32::from(short);
        if short && self.ceiling.is_none_or(|(most, _)| sent_per_s > most) {
            self.ceiling = Some((sent_per_s, asked));
        }
        let lost_percent = if lost_percent.is_nan() { f64::INFINITY } else { lost_percent };
        let at = self.tried.partition_point(|t| t.per_s < per_s);
        match self.tried.get_mut(at).filter(|t| t.per_s == per_s) {
            Some(t) => {
                t.trials += 1;
                t.lost_percent = t.lost_percent.min(lost_percent);
            }
            None => self.tried.insert(at, Tried { per_s, lost_percent, trials: 1 }),
        }
    }

    /// The lowest rate that failed, and the highest below it that passed.
    fn bracket(&self, loss: f64) -> (Option<f64>, Option<f64>) {
        let fail = self.tried.iter().find(|t| t.lost_percent > loss && t.trials > 1).map(|t| t.per_s);
        let below = |t: &&Tried| t.lost_percent <= loss && fail.is_none_or(|f| t.per_s < f);
        (self.tried.iter().rev().find(below).map(|t| t.per_s), fail)
    }

    /// What this loss wants to know next; none: nothing.
    fn wish(&self, loss: f64) -> Option<f64> {
        let (pass, fail) = self.bracket(loss);
        let once = |t: &&Tried| {
            t.lost_percent > loss
                && t.trials == 1
                && pass.is_none_or(|p| t.per_s > p)
                && fail.is_none_or(|f| t.per_s < f)
        };
        if let Some(t) = self.tried.iter().find(once) {
            return Some(t.per_s);
        }
        let Some(fail) = fail else {
            // Whatever was tried has passed: up, unless there is nothing above. The generator, too, may stumble once.
            let top = self.short < 2 && pass.is_none_or(|p| p < self.hi);
            return top.then_some(self.hi);
        };
        let low = pass.unwrap_or(self.lo);
        if fail - low > self.tolerance * fail {
            return Some(low + (fail - low) / 2.0);
        }
        (pass.is_none() && fail > self.lo).then_some(self.lo)
    }

    /// For one of the losses, whether it is over or not.
    pub fn result(&self, loss_percent: f64) -> Found {
        let (found, fail) = self.bracket(loss_percent);
        // Out of trials, one that failed once is all that is known.
        let above = |t: &&Tried| t.lost_percent > loss_percent && found.is_none_or(|f| t.per_s > f);
        let above = fail.or_else(|| self.tried.iter().find(above).map(|t| t.per_s));
        let limit = match (above, self.ceiling) {
            (None, _) if found >= Some(self.hi) => Limit::Offered,
            (None, Some((sent, asked))) if found.is_some() => {
                Limit::Generator(format!("sent {sent:.0}/s of the requested {asked:.0}/s"))
            }
            _ => Limit::Unknown,
        };
        let complete = self.trials > 0 && self.wish(loss_percent).is_none();
        Found { found_per_s: found, above_per_s: above, trials: self.trials, limit, complete }
    }
}

#[cfg(test)]
#[path = "rate_tests.rs"]
mod tests;

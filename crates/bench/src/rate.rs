//! Searches for the highest offered rate with at most a given loss, by halving the interval. Several losses share their
//! trials.
//!
//! A rate fails if two trials lost too much; one trial that did not is enough to pass. So a rate that passes at zero
//! loss passes at 0.5 % as well, and the rate found at 0.5 % is never below the one at zero.

use crate::result::Limit;

/// The trials at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tried {
    per_s: f64,
    /// The lowest loss of its trials, in per cent.
    lost_percent: f64,
    trials: u32,
}

/// The state of a search: [`RateSearch::ask`] returns a rate, and [`RateSearch::record_result`] reports its result.
#[derive(Debug, Clone, PartialEq)]
pub struct RateSearch {
    lo: f64,
    hi: f64,
    losses_percent: Vec<f64>,
    tolerance: f64,
    max_trials: u32,
    trials: u32,
    /// Trials by rate.
    tried: Vec<Tried>,
    /// The most that the generator sent when more was requested: sent, requested.
    ceiling: Option<(f64, f64)>,
    /// Trials in which the generator could not send the requested rate.
    short: u32,
    asked: Option<f64>,
}

/// The result of a search for one loss.
#[derive(Debug, Clone, PartialEq)]
pub struct RateFound {
    /// None: not even the lowest rate that was tried.
    pub found_per_s: Option<f64>,
    /// The lowest rate that lost more; `None`: no tried rate did.
    pub above_per_s: Option<f64>,
    /// Number of trials of the whole search, for all its losses.
    pub trials: u32,
    /// The generator if it could not send more, `Offered` if the highest rate passed; otherwise the caller determines
    /// whether it was a CPU or the link.
    pub limit: Limit,
    /// The interval is as narrow as requested; otherwise the trials were used up.
    pub complete: bool,
}

impl RateSearch {
    /// Searches from `lo` to `hi` per second, for each of these losses, until the interval is within `tolerance` (0.01:
    /// 1 %) of the rate that failed, or for `max_trials` in all.
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

    /// The next rate to offer; `None`: the search has ended. The same until [`RateSearch::record_result`].
    pub fn ask(&mut self) -> Option<f64> {
        if self.trials >= self.max_trials || !(self.lo > 0.0 && self.hi.is_finite()) {
            return None;
        }
        self.asked = self.losses_percent.iter().find_map(|loss| self.wish(*loss));
        self.asked
    }

    /// Reports the result of the requested rate: the rate that was sent, and the loss. A loss that is not a number
    /// counts as 100 %.
    pub fn record_result(&mut self, sent_per_s: f64, lost_percent: f64) {
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

    /// The next rate for this loss; `None`: the search for it has ended.
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
            // All tried rates have passed: try a higher one if there is one. The generator may also fail once by
            // chance.
            let top = self.short < 2 && pass.is_none_or(|p| p < self.hi);
            return top.then_some(self.hi);
        };
        let low = pass.unwrap_or(self.lo);
        if fail - low > self.tolerance * fail {
            return Some(low + (fail - low) / 2.0);
        }
        (pass.is_none() && fail > self.lo).then_some(self.lo)
    }

    /// The result for one of the losses, also before the search has ended.
    pub fn result(&self, loss_percent: f64) -> RateFound {
        let (found, fail) = self.bracket(loss_percent);
        // If the trials are used up, a rate may have failed only once.
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
        RateFound { found_per_s: found, above_per_s: above, trials: self.trials, limit, complete }
    }
}

#[cfg(test)]
#[path = "rate_tests.rs"]
mod tests;

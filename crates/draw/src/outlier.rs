//! Values that would compress all others on a linear axis.

/// A value that is this many times larger than all others, and than those it is compared with, does not determine the
/// axis.
const APART: f64 = 4.0;
/// One value in this many may be an outlier, at least one.
const FEW: usize = 8;

/// A value, and those that show whether it is unusual.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub value: f64,
    /// Values of other series at the same place.
    pub same_place: Vec<f64>,
    /// The neighbours in its own series, if it has two.
    pub neighbours: Option<[f64; 2]>,
}

impl Candidate {
    /// Another series, or both neighbours, are far below. A curve that only grows has no outlier.
    fn unusual(&self) -> bool {
        let far = |other: &f64| self.value > APART * other;
        self.same_place.iter().any(far) || self.neighbours.is_some_and(|n| n.iter().all(far))
    }
}

/// The largest value that determines a linear axis; `None`: all do.
pub(crate) fn largest(mut all: Vec<Candidate>) -> Option<f64> {
    all.retain(|c| c.value.is_finite());
    all.sort_by(|a, b| b.value.total_cmp(&a.value));
    let most = (all.len() / FEW).max(1).min(all.len().saturating_sub(1));
    (1..=most).rev().find_map(|k| {
        let next = all[k].value;
        let far = |c: &Candidate| c.value > APART * next && c.unusual();
        (next > 0.0 && all[..k].iter().all(far)).then_some(next)
    })
}

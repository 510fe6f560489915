//! Searches queue count, ring size, moderation and placement for one workload, by successive halving within a time
//! budget.

use std::time::{Duration, Instant};

use ringwise_bench::compare;
use ringwise_bench::design::Slot;
use ringwise_bench::halving::{Halving, HalvingOutcome, SearchState};
use ringwise_bench::result::{Metric, Phase, Point, Trial};
use ringwise_model::{Count, Goal, Snapshot};

use crate::context::{Event, Workload};
use crate::error::{Class, Error, Result};
use crate::session::{Experiment, Finished};

/// What a search varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchSpace {
    /// Placement for different goals.
    Placement,
    /// Microseconds between interrupts.
    Moderation,
    /// Number of queues.
    Queues,
    /// Size of receive rings.
    Rings,
}

/// A state that may be better than the host as found. It applies to every interface under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidate {
    /// Interrupts and queues placed for this goal.
    Goal(Goal),
    /// Microseconds between two receive interrupts.
    RxUsecs(u32),
    /// Number of combined queues.
    Queues(u32),
    /// Size of each receive ring in packets.
    RxRing(u32),
    /// Goal stream, with this receive ring size and moderation.
    Bulk {
        /// Size of each receive ring in packets.
        ring: u32,
        /// Microseconds between two receive interrupts.
        usecs: u32,
    },
}

/// Candidates for an interface: each change alone, and the most promising ones together. `among` empty: all kinds.
/// `disruption`: also changes that interrupt traffic (queues and rings).
pub fn candidates(s: &Snapshot, devs: &[String], among: &[SearchSpace], disruption: bool) -> Vec<Candidate> {
    let of = |kind: SearchSpace| among.is_empty() || among.contains(&kind);
    let mut out = Vec::new();
    if of(SearchSpace::Placement) {
        let goals = [Goal::Balanced, Goal::Forward, Goal::Rpc, Goal::Stream, Goal::Latency];
        out.extend(goals.map(Candidate::Goal));
    }
    if of(SearchSpace::Moderation) {
        out.extend([0, 20, 62, 125].map(Candidate::RxUsecs));
    }
    if !disruption {
        return out;
    }
    let nic = devs.first().and_then(|d| s.nic(d));
    let most = nic.and_then(|n| n.channels.known()).and_then(|c| c.combined.as_ref()).map_or(0, |c: &Count| c.max);
    let cores = u32::try_from(s.topology.online.iter().count()).unwrap_or(1);
    let mut n = 1;
    while n <= most.min(cores) && of(SearchSpace::Queues) {
        out.push(Candidate::Queues(n));
        n *= 2;
    }
    let ring = nic.and_then(|n| n.rings.known()).and_then(|r| r.rx.as_ref()).map(|c: &Count| (c.now, c.max));
    if let Some((now, max)) = ring.filter(|_| of(SearchSpace::Rings)) {
        let sizes = [now * 4, max, now / 2].into_iter().filter(|n| *n != now && (64..=max).contains(n));
        out.extend(sizes.map(Candidate::RxRing));
        out.push(Candidate::Bulk { ring: max, usecs: 62 });
    }
    out
}

/// The metric that compares candidates.
pub fn metric(load: &dyn Workload) -> Metric {
    if load.name() == "rr" { Metric::LatencyP99 } else { Metric::Rate }
}

/// The score of a trial; higher is better.
fn score(t: &Trial, metric: Metric) -> Option<f64> {
    let v = compare::value(t, metric).filter(|v| *v > 0.0)?;
    Some(if metric.higher_is_better() { v } else { 1e9 / v })
}

impl Experiment<'_> {
    /// Searches the best of the states after the first one, at `point`, within `budget`. None: the search was
    /// interrupted.
    ///
    /// Errors: as [`Experiment::run`].
    pub fn search(
        mut self,
        load: &mut dyn Workload,
        point: &Point,
        budget: Duration,
    ) -> Result<(Finished, Option<HalvingOutcome>)> {
        let mut trials = Vec::new();
        let mut proof = None;
        let searched = self.halve(load, point, budget, &mut trials, &mut proof);
        load.end();
        let (outcome, broken) = match searched {
            Ok(o) => (Some(o), None),
            Err(e) => (None, Some(e)),
        };
        // The trials that selected a candidate would favour it, so only the trials of the proof are compared.
        let comparisons = compare::compare(&self.session, &trials[proof.unwrap_or(trials.len())..]);
        Ok((self.finish(trials, Vec::new(), comparisons, broken)?, outcome))
    }

    fn halve(
        &mut self,
        load: &mut dyn Workload,
        p: &Point,
        budget: Duration,
        trials: &mut Vec<Trial>,
        proof: &mut Option<usize>,
    ) -> Result<HalvingOutcome> {
        let metric = metric(load);
        let begin = Instant::now();
        let candidates = self.session.states.len() - 1;
        if candidates == 0 {
            return Err(Error::NoCandidate);
        }
        // How long one trial takes on this host, with switching and restoring, is only known after measuring it.
        self.one_trial(load, p, (Phase::Calibration, 1, 0, 0), trials)?;
        let each = begin.elapsed().max(Duration::from_millis(1));
        trials.clear();
        let seconds = each.as_secs_f64();
        let most = (budget.saturating_sub(begin.elapsed()).as_secs_f64() / seconds) as u32;
        let d = &self.session.design;
        let mut h = Halving::new(candidates, most, d.alpha, d.equivalent_percent, d.seed)
            .map_err(|error| Error::TooShort { error, seconds })?;
        let mut block = 0;
        loop {
            let asked = h.ask().to_vec();
            if asked.is_empty() || begin.elapsed() > budget {
                break;
            }
            // The last candidate and the host as found: the proof.
            if asked.len() == 2 {
                proof.get_or_insert(trials.len());
            }
            let mut scores = Vec::new();
            for (order, who) in (0..).zip(&asked) {
                let state = match who {
                    SearchState::Start => 0,
                    SearchState::Candidate(c) => c + 1,
                };
                let n = trials.len();
                match self.one_trial(load, p, (Phase::Measure, state, block, order), trials) {
                    Ok(()) => scores.push(trials.get(n).and_then(|t| score(t, metric))),
                    // A candidate that cannot be applied drops out; the host was restored.
                    Err(e) if e.class() == Class::PutBack && state != 0 && self.cx.go_on().is_ok() => {
                        (self.tell)(&Event::CandidateFailed(&e));
                        scores.push(None);
                    }
                    Err(e) => return Err(e),
                }
            }
            h.record_result(&scores);
            block += 1;
        }
        h.outcome().ok_or(Error::TimeOver)
    }

    fn one_trial(
        &mut self,
        load: &mut dyn Workload,
        p: &Point,
        (phase, state, block, order): (Phase, usize, u32, u32),
        trials: &mut Vec<Trial>,
    ) -> Result<()> {
        self.cx.go_on()?;
        self.go(state, self.one())?;
        let slot = Slot { phase, block, order, state, point: 0, second: false };
        let at_s = self.begin.elapsed().as_secs_f64();
        let got = self.measured(load, p, &self.state(&slot))?;
        let trial = self.keep(p.clone(), &slot, at_s, got)?;
        (self.tell)(&Event::Candidate { trial: &trial });
        trials.push(trial);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringwise_model::{Channels, Fact, Rings};
    use ringwise_testkit::machines::{NicSpec, host};
    use ringwise_testkit::topo::CpuSpec;

    fn of(among: &[SearchSpace], disruption: bool) -> Vec<Candidate> {
        let mut s = host("h", CpuSpec::flat(8, 1), vec![NicSpec::new("eth0", "igb", Some(0), 4, 8)]).snapshot();
        let count = |now, max| Some(Count { now, max });
        s.nics[0].rings = Fact::Known(Rings { rx: count(512, 4096), tx: count(512, 4096), ..Rings::default() });
        s.nics[0].channels = Fact::Known(Channels { rx: None, tx: None, combined: count(4, 8), other: None });
        candidates(&s, &["eth0".to_string()], among, disruption)
    }

    #[test]
    fn rings_are_searched_in_both_directions() {
        let rings = [Candidate::RxRing(2048), Candidate::RxRing(4096), Candidate::RxRing(256)];
        assert_eq!(
            of(&[SearchSpace::Rings], true),
            [&rings[..], &[Candidate::Bulk { ring: 4096, usecs: 62 }]].concat()
        );
    }

    #[test]
    fn what_interrupts_traffic_is_a_candidate_only_on_request() {
        let interrupts = |c: &Candidate| !matches!(c, Candidate::Goal(_) | Candidate::RxUsecs(_));
        let (without, with) = (of(&[], false), of(&[], true));
        assert!(!without.is_empty() && !without.iter().any(interrupts));
        assert!(with.starts_with(&without));
        for n in [1, 2, 4, 8] {
            assert!(with.contains(&Candidate::Queues(n)), "{n}: {with:?}");
        }
        assert!(!with.contains(&Candidate::Queues(16)), "the device has 8");
    }
}

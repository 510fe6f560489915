//! Interrupts as the adapter's second actuator: when one is tried, and what is remembered about those that moved.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Adapter, LONGEST_RETRY, Permitted, Phase, RETRY, Signals};
use crate::action::{AdapterAction, Forbidden, OffReason, RestReason};
use crate::interrupts::{InterruptSituation, is_busy, propose};
use crate::judge::{MeasuredLoads, SAMPLES};
use crate::limits::{LimitReached, Limits};
use crate::load::{LoadSample, WINDOW};
use crate::moves::{InterruptMove, Moves, NoStep};
use crate::propose::Proposal;

/// The interrupts of one interface.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Interrupts {
    limits: Limits,
    /// By receive queue: those whose interrupt is not on its first CPU.
    places: BTreeMap<u32, Place>,
    /// A wait after a decision that led to no move.
    retry: Option<Retry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Place {
    /// The CPU from before the first move.
    base: u32,
    now: u32,
    /// The first queue of the interrupt.
    first: u32,
}

/// A wait after a decision that led to no step.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Retry {
    pub until: Duration,
    pause: Duration,
}

impl Retry {
    /// The first one, or one that is twice as long as the last.
    pub(super) fn after(last: Option<Self>, now: Duration) -> Self {
        let pause = last.map_or(RETRY, |r| (r.pause * 2).min(LONGEST_RETRY));
        Self { until: now + pause, pause }
    }
}

impl Interrupts {
    pub(super) fn limits(&mut self) -> &mut Limits {
        &mut self.limits
    }

    pub(super) fn is_apart(&self, now: Duration) -> Result<(), LimitReached> {
        self.limits.is_apart(now)
    }

    pub(super) fn moved(&self) -> impl Iterator<Item = u32> {
        self.places.iter().filter(|(queue, place)| **queue == place.first).map(|(queue, _)| *queue)
    }

    pub(super) fn written(&mut self, m: &InterruptMove) {
        let Some(first) = m.queues.first().copied() else { return };
        for queue in &m.queues {
            let base = self.places.get(queue).map_or(m.from, |p| p.base);
            match base == m.to {
                true => _ = self.places.remove(queue),
                false => _ = self.places.insert(*queue, Place { base, now: m.to, first }),
            }
        }
        self.retry = None;
    }

    pub(super) fn begin_again(&mut self) {
        self.places.clear();
    }

    pub(super) fn wait(&mut self, now: Duration) {
        self.retry = Some(Retry::after(self.retry, now));
    }
}

impl Adapter {
    /// A queue that another CPU serves than the one to which its interrupt moved: a manual change takes precedence.
    pub(super) fn compare_interrupts(&mut self, sample: &LoadSample) -> Option<AdapterAction> {
        let elsewhere = |(queue, place): (&u32, &Place)| {
            let cpu = sample.queues.get(*queue as usize).and_then(|q| q.cpu);
            cpu.is_some_and(|cpu| cpu != place.now)
        };
        if !self.interrupts.places.iter().any(elsewhere) {
            return None;
        }
        (self.phase, self.off) = (Phase::Watching, Some((None, OffReason::ChangedOutside)));
        Some(AdapterAction::Off { until: None, why: OffReason::ChangedOutside })
    }

    /// Whether the step that is judged changed no table.
    pub(super) fn judges_elsewhere(&self) -> bool {
        matches!(&self.phase, Phase::Judging { proposal, .. } if !matches!(proposal.moves, Moves::Table(_)))
    }

    /// The move of an interrupt, or another RPS mask, if one is worth it; otherwise what the table led to.
    pub(super) fn or_elsewhere(
        &mut self,
        now: Duration,
        signals: &Signals<'_>,
        otherwise: AdapterAction,
    ) -> AdapterAction {
        if !matches!(self.phase, Phase::Watching) {
            return otherwise;
        }
        let step = self.interrupt_step(now, signals).or_else(|why_not| {
            // What still has to be read comes first.
            let first = |why: &RestReason| match why {
                RestReason::CpusNotRead => 0,
                RestReason::TooFewTimes { .. } => 1,
                _ => 2,
            };
            self.rps_step(now, signals).map_err(|other| why_not.into_iter().chain(other).min_by_key(first))
        });
        match (step, &otherwise) {
            (Ok((proposal, before)), _) => {
                self.phase = Phase::Proposed { proposal: proposal.clone(), before };
                AdapterAction::Propose(proposal)
            }
            (Err(Some(reason)), AdapterAction::Rest(_)) => AdapterAction::Rest(reason),
            (Err(_), _) => otherwise,
        }
    }

    /// `Err(None)`: no CPU that serves queues is busy, or nothing is known about it.
    fn interrupt_step(
        &mut self,
        now: Duration,
        signals: &Signals<'_>,
    ) -> Result<(Proposal, MeasuredLoads), Option<RestReason>> {
        // It is unknown which queues others use.
        if signals.forbidden.contains(&Forbidden::Unknown) {
            return Err(None);
        }
        let samples = self.window.since(Duration::ZERO, WINDOW);
        if !is_busy(&samples) {
            self.interrupts.retry = None;
            return Err(None);
        }
        let waits = self.interrupts.retry.is_some_and(|r| now < r.until);
        let too_early = self.is_apart(now).is_err() || self.interrupts.limits.may_step(now).is_err();
        if waits || too_early {
            return Err(Some(RestReason::NoInterruptMoves));
        }
        let permitted = match signals.permitted {
            Permitted::NotRead => return Err(Some(RestReason::CpusNotRead)),
            Permitted::Unknown => {
                self.interrupts.wait(now);
                return Err(Some(RestReason::NoInterruptMoves));
            }
            Permitted::Cpus(cpus) => cpus,
        };
        let limits = &self.interrupts.limits;
        let rests = |queue: u32| limits.rests(queue as usize, now);
        let proposed = propose(&InterruptSituation { samples: &samples, permitted, rests: &rests });
        let newest = &samples[samples.len().saturating_sub(SAMPLES)..];
        let before = |p: &Proposal| MeasuredLoads::of_all_time(newest, &p.involved());
        measured(proposed, before).map_err(|reason| {
            if reason.is_none() {
                self.interrupts.wait(now);
            }
            reason.or(Some(RestReason::NoInterruptMoves))
        })
    }
}

/// A step with the loads before it. `Err(None)`: none is worth it now.
pub(super) fn measured(
    proposed: Result<Proposal, NoStep>,
    before: impl Fn(&Proposal) -> Option<MeasuredLoads>,
) -> Result<(Proposal, MeasuredLoads), Option<RestReason>> {
    match proposed {
        Ok(p) => before(&p).map(|before| (p, before)).ok_or(None),
        Err(NoStep::TooFewTimes { known }) => Err(Some(RestReason::TooFewTimes { known })),
        Err(NoStep::Even | NoStep::NotWorthIt) => Err(None),
    }
}

#[cfg(test)]
#[path = "interrupt_step_tests.rs"]
mod tests;

//! RPS masks as the adapter's third actuator: when one is tried, and what is remembered about one that changed.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::interrupt_step::{Retry, measured};
use super::{Adapter, Mask, Phase, Signals};
use crate::action::{AdapterAction, Forbidden, OffReason, RestReason};
use crate::judge::{MeasuredLoads, SAMPLES};
use crate::limits::{LimitReached, Limits};
use crate::load::WINDOW;
use crate::moves::RpsMove;
use crate::propose::Proposal;
use crate::rps::{RpsSituation, is_busy, propose};

/// The mask of one interface.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Masks {
    limits: Limits,
    /// `None`: the mask is as before the first step.
    changed: Option<Changed>,
    /// A wait after a decision that led to no step.
    retry: Option<Retry>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Changed {
    queue: u32,
    /// The mask from before the first step.
    base: BTreeSet<u32>,
    now: BTreeSet<u32>,
}

impl Masks {
    pub(super) fn limits(&mut self) -> &mut Limits {
        &mut self.limits
    }

    pub(super) fn is_apart(&self, now: Duration) -> Result<(), LimitReached> {
        self.limits.is_apart(now)
    }

    pub(super) fn changed(&self) -> Option<u32> {
        self.changed.as_ref().map(|c| c.queue)
    }

    pub(super) fn written(&mut self, m: &RpsMove) {
        let base = self.changed.take().map_or_else(|| m.from.clone(), |c| c.base);
        self.changed = (base != m.to).then(|| Changed { queue: m.queue, base, now: m.to.clone() });
        self.retry = None;
    }

    pub(super) fn begin_again(&mut self) {
        self.changed = None;
    }

    pub(super) fn wait(&mut self, now: Duration) {
        self.retry = Some(Retry::after(self.retry, now));
    }
}

impl Adapter {
    /// Another mask than the one of the last step: a manual change takes precedence.
    pub(super) fn compare_mask(&mut self, mask: &Mask<'_>) -> Option<AdapterAction> {
        let changed = self.masks.changed.as_ref().filter(|c| c.queue == mask.queue)?;
        if changed.now == *mask.cpus {
            return None;
        }
        (self.phase, self.off) = (Phase::Watching, Some((None, OffReason::ChangedOutside)));
        Some(AdapterAction::Off { until: None, why: OffReason::ChangedOutside })
    }

    /// `Err(None)`: no CPU that processes the packets of the queue is busy, or nothing is known about it.
    pub(super) fn rps_step(
        &mut self,
        now: Duration,
        signals: &Signals<'_>,
    ) -> Result<(Proposal, MeasuredLoads), Option<RestReason>> {
        let Some(mask) = signals.rps.filter(|_| !signals.forbidden.contains(&Forbidden::Unknown)) else {
            return Err(None);
        };
        let samples = self.window.since(Duration::ZERO, WINDOW);
        if !is_busy(&samples, mask.queue, mask.cpus) {
            self.masks.retry = None;
            return Err(None);
        }
        let waits = self.masks.retry.is_some_and(|r| now < r.until);
        let too_early = self.is_apart(now).is_err() || self.masks.limits.may_step(now).is_err();
        if waits || too_early || self.masks.limits.rests(mask.queue as usize, now) {
            return Err(Some(RestReason::MaskStays));
        }
        let helpers = mask.helpers.ok_or(Some(RestReason::CpusNotRead))?;
        let proposed = propose(&RpsSituation { samples: &samples, queue: mask.queue, mask: mask.cpus, helpers });
        let newest = &samples[samples.len().saturating_sub(SAMPLES)..];
        let before = |p: &Proposal| MeasuredLoads::of_steering(newest, &p.involved());
        measured(proposed, before).map_err(|reason| {
            if reason.is_none() {
                self.masks.wait(now);
            }
            reason.or(Some(RestReason::MaskStays))
        })
    }
}

#[cfg(test)]
#[path = "rps_step_tests.rs"]
mod tests;

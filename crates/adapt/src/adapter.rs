//! The control step of one interface: a state machine that is called once a second.
//!
//! ```text
//!   Watching ── suspect ──► Counting ── worth it ──► Proposed ── written ──► Judging ── kept ──► Watching
//!      ▲                        │ no                    │ refused               │ not kept
//!      └────────────────────────┴───────────────────────┴──────── Restoring ◄───┘
//! ```

mod interrupt_step;
mod rps_step;

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::action::{AdapterAction, Forbidden, OffReason, RestReason, Settled, StepWait};
use crate::buckets::{CountMethod, EntryEvidence, Unusable};
use crate::judge::{AFTER, ENOUGH, MeasuredLoads, RestoreReason, SAMPLES, judge};
use crate::limits::{LimitReached, Limits};
use crate::load::{LoadSample, LoadState, LoadWindow, SuspectReason, busiest};
use crate::moves::{Moves, TableMove};
use crate::propose::{Elephant, NoProposal, Proposal, TableSituation, propose};

use interrupt_step::Interrupts;
use rps_step::Masks;

/// How long entries are counted.
pub const COUNT: Duration = Duration::from_secs(3);
/// Calls after which counts, or samples for a judgement, are given up.
const PATIENCE: u32 = 10;
/// A second of which a write is a part counts as a second after it if less than this is from before.
const OVERLAP: Duration = Duration::from_millis(500);
/// The first wait after counts that led to no step; each further one is twice as long.
const RETRY: Duration = Duration::from_secs(30);
const LONGEST_RETRY: Duration = Duration::from_secs(300);
/// If another CPU is the busiest, the wait ends after this.
const OTHER_CPU_RETRY: Duration = Duration::from_secs(10);
/// Writes that fail one after the other before the interface is off.
const REFUSALS: u32 = 3;

/// What the caller read in this second.
#[derive(Debug, Clone, Copy, Default)]
pub struct Signals<'a> {
    /// Loads and counters. `None`: they could not be read.
    pub sample: Option<&'a LoadSample>,
    /// Receive queue of each entry of the indirection table. `None`: unknown.
    pub table: Option<&'a [u32]>,
    /// Facts that forbid to write the table.
    pub forbidden: &'a [Forbidden],
    /// CPUs that may serve the queues.
    pub permitted: Permitted<'a>,
    /// The RPS mask of its only receive queue. `None`: there are several queues, or the mask must not be changed.
    pub rps: Option<Mask<'a>>,
    /// The counts, once [`AdapterAction::CountEntries`] is done.
    pub counts: Option<&'a EntryEvidence>,
}

/// The RPS mask of an interface with one receive queue.
#[derive(Debug, Clone, Copy)]
pub struct Mask<'a> {
    /// The receive queue.
    pub queue: u32,
    /// The CPUs of the mask. Empty: RPS is off.
    pub cpus: &'a BTreeSet<u32>,
    /// The CPUs that the plan would put into it. `None`: their times, and facts about the device, were not read yet.
    pub helpers: Option<&'a BTreeSet<u32>>,
}

/// Which CPUs may serve the queues of an interface.
#[derive(Debug, Clone, Copy, Default)]
pub enum Permitted<'a> {
    /// They were not read yet.
    #[default]
    NotRead,
    /// They are unknown, so no interrupt moves.
    Unknown,
    /// These.
    Cpus(&'a BTreeSet<u32>),
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
enum Phase {
    #[default]
    Watching,
    Counting {
        method: CountMethod,
        until: Duration,
        calls: u32,
        /// Why the counts of the filter were not used.
        #[serde(default)]
        first: Option<Unusable>,
    },
    Proposed {
        proposal: Proposal,
        before: MeasuredLoads,
    },
    Judging {
        proposal: Proposal,
        before: MeasuredLoads,
        written: Duration,
        calls: u32,
    },
    Restoring {
        moves: Moves,
        why: RestoreReason,
        /// Whether the caller has the action, and has not reported yet.
        pending: bool,
    },
}

/// A wait before entries are counted again.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Retry {
    since: Duration,
    pause: Duration,
    /// The busiest CPU.
    cpu: Option<u32>,
    waiting: StepWait,
}

/// The state of one interface. It can be stored and continued by another process of the same boot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Adapter {
    window: LoadWindow,
    limits: Limits,
    phase: Phase,
    retry: Option<Retry>,
    named: Option<Elephant>,
    /// The table as it was last seen or written.
    table: Option<Vec<u32>>,
    /// Whether a step of this adapter is in the table.
    wrote: bool,
    /// The table from before the first of these steps.
    #[serde(default)]
    base: Option<Vec<u32>>,
    refusals: u32,
    off: Option<(Option<Duration>, OffReason)>,
    #[serde(default)]
    interrupts: Interrupts,
    #[serde(default)]
    masks: Masks,
}

impl Adapter {
    /// One second. `now` is the time since boot.
    pub fn step(&mut self, now: Duration, signals: &Signals<'_>) -> AdapterAction {
        let state = match signals.sample {
            Some(sample) => self.window.push(sample.clone()),
            None => LoadState::Unknown { known: 0 },
        };
        if let Some((until, why)) = self.off {
            if until.is_none_or(|u| now < u) {
                return AdapterAction::Off { until, why };
            }
            self.off = None;
        }
        match &mut self.phase {
            Phase::Restoring { moves, why, pending } if !*pending => {
                *pending = true;
                return AdapterAction::Restore { moves: moves.clone(), why: *why };
            }
            Phase::Proposed { .. } | Phase::Restoring { .. } => return AdapterAction::Rest(RestReason::WritePending),
            _ => {}
        }
        if let Some(off) = self.compare_table(signals.table) {
            return off;
        }
        if let Some(off) = signals.sample.and_then(|s| self.compare_interrupts(s)) {
            return off;
        }
        if let Some(off) = signals.rps.and_then(|m| self.compare_mask(&m)) {
            return off;
        }
        if let Some(forbidden) = signals.forbidden.first().filter(|_| !self.judges_elsewhere()) {
            self.phase = Phase::Watching;
            let action = match state {
                LoadState::Suspect(why) => AdapterAction::Suspect { why, waiting: StepWait::Forbidden(*forbidden) },
                LoadState::Even => AdapterAction::Rest(RestReason::Even),
                LoadState::Unknown { .. } => AdapterAction::Rest(RestReason::Forbidden(*forbidden)),
            };
            return self.or_elsewhere(now, signals, action);
        }
        match std::mem::take(&mut self.phase) {
            Phase::Judging { proposal, before, written, calls } => {
                self.judge_step(now, proposal, before, written, calls + 1)
            }
            phase => self.watch(now, signals, state, phase),
        }
    }

    /// Reports what became of the last [`AdapterAction::Propose`] or [`AdapterAction::Restore`].
    pub fn settled(&mut self, now: Duration, settled: Settled) {
        let phase = std::mem::take(&mut self.phase);
        match (phase, settled) {
            (Phase::Proposed { .. } | Phase::Restoring { .. }, Settled::ChangedOutside) => {
                self.off = Some((None, OffReason::ChangedOutside));
            }
            (Phase::Proposed { proposal, before }, Settled::Written) => {
                self.written(&proposal.moves);
                let off = self.limits_of(&proposal.moves).stepped(&proposal.moves.shifts(), now);
                self.off = off.map(|until| (Some(until), OffReason::ToAndFro));
                if self.off.is_none() {
                    self.phase = Phase::Judging { proposal, before, written: now, calls: 0 };
                }
            }
            (Phase::Restoring { moves, .. }, Settled::Written) => {
                self.written(&moves);
                let off = self.limits_of(&moves).restored(&moves.shifts(), now);
                self.off = off.map(|until| (Some(until), OffReason::Restored));
            }
            (Phase::Proposed { proposal, .. }, Settled::Refused) => {
                self.refusals += 1;
                self.limits_of(&proposal.moves).delay(now);
                if self.refusals >= REFUSALS {
                    self.off = Some((Some(self.limits.off(now)), OffReason::WriteRefused));
                }
            }
            // The step is still in the table, although it is not good: another try would most likely fail as well.
            (Phase::Restoring { .. }, Settled::Refused) => {
                self.off = Some((Some(self.limits.off(now)), OffReason::WriteRefused));
            }
            (Phase::Proposed { proposal, .. }, Settled::NotWritten) => match proposal.moves {
                Moves::Table(_) => _ = self.wait(now, |until| StepWait::NotWritten { until }),
                Moves::Interrupt(_) => self.interrupts.wait(now),
                Moves::Rps(_) => self.masks.wait(now),
            },
            // A restoration is requested again in the next second.
            (Phase::Restoring { moves, why, .. }, Settled::NotWritten) => {
                self.phase = Phase::Restoring { moves, why, pending: false };
            }
            (phase, _) => self.phase = phase,
        }
    }

    /// Continues a stored state in another process: what became of a write that was not reported is read from the table, from the CPU of
    /// a queue, or from its RPS mask. `None`: unknown.
    pub fn handed_over(
        &mut self,
        now: Duration,
        table: Option<&[u32]>,
        cpu_of: &dyn Fn(u32) -> Option<u32>,
        mask_of: &dyn Fn(u32) -> Option<BTreeSet<u32>>,
    ) {
        let moves = match &self.phase {
            Phase::Proposed { proposal, .. } => &proposal.moves,
            Phase::Restoring { moves, .. } => moves,
            _ => return,
        };
        // For each move, whether it was written; `None`: something else is there.
        let found = |from: u32, to: u32, now: Option<u32>| match now {
            Some(now) if now == to => Some(true),
            // If it was written nevertheless, the adapter does not count it as moved, so its base is restored.
            now => now.is_none_or(|now| now == from).then_some(false),
        };
        let all: Vec<Option<bool>> = match moves {
            Moves::Table(list) => {
                let queue = |m: &TableMove| table.and_then(|t| t.get(m.entry)).copied();
                list.iter().map(|m| found(m.from, m.to, queue(m))).collect()
            }
            Moves::Interrupt(m) => m.queues.iter().map(|q| found(m.from, m.to, cpu_of(*q))).collect(),
            Moves::Rps(m) => vec![match mask_of(m.queue) {
                Some(now) if now == m.to => Some(true),
                now => now.is_none_or(|now| now == m.from).then_some(false),
            }],
        };
        let settled = match () {
            () if all.iter().all(|a| *a == Some(true)) => Settled::Written,
            () if all.iter().all(|a| *a == Some(false)) => Settled::NotWritten,
            () => Settled::ChangedOutside,
        };
        self.settled(now, settled);
    }

    /// The table as it was last seen or written.
    pub fn table(&self) -> Option<&[u32]> {
        self.table.as_deref()
    }

    /// Whether a step of this adapter is in the table.
    pub fn has_moved_entries(&self) -> bool {
        self.wrote
    }

    /// First receive queues of the interrupts that this adapter has moved.
    pub fn moved_interrupts(&self) -> impl Iterator<Item = u32> {
        self.interrupts.moved()
    }

    /// The receive queue whose RPS mask this adapter has changed.
    pub fn changed_mask(&self) -> Option<u32> {
        self.masks.changed()
    }

    /// Ends [`AdapterAction::Off`], unless a write is suspected to reset the device. What is in effect now is the new base.
    pub fn resume(&mut self) {
        self.off = self.off.filter(|(_, why)| *why == OffReason::LinkInterrupted);
        self.refusals = 0;
        self.new_base();
    }

    /// What is in effect now is the new base. [`AdapterAction::Off`] stays.
    pub fn new_base(&mut self) {
        self.phase = Phase::Watching;
        (self.table, self.wrote) = (None, false);
        self.window.clear();
        self.interrupts.begin_again();
        self.masks.begin_again();
    }

    /// A write took the link down: nothing is moved for half an hour, and for twice as long each further time. The present table is the
    /// new base.
    pub fn link_went_down(&mut self, now: Duration) {
        self.resume();
        self.off = Some((Some(self.limits.off(now)), OffReason::LinkInterrupted));
    }

    fn limits_of(&mut self, moves: &Moves) -> &mut Limits {
        match moves {
            Moves::Table(_) => &mut self.limits,
            Moves::Interrupt(_) => self.interrupts.limits(),
            Moves::Rps(_) => self.masks.limits(),
        }
    }

    fn written(&mut self, moves: &Moves) {
        match moves {
            Moves::Table(list) => {
                if !self.wrote {
                    self.base.clone_from(&self.table);
                }
                for m in list {
                    if let Some(queue) = self.table.as_mut().and_then(|t| t.get_mut(m.entry)) {
                        *queue = m.to;
                    }
                }
                // A state of an earlier version has no base.
                self.wrote = self.table != self.base;
            }
            Moves::Interrupt(m) => self.interrupts.written(m),
            Moves::Rps(m) => self.masks.written(m),
        }
        (self.refusals, self.retry) = (0, None);
        self.window.clear();
    }

    /// A table that differs is a manual change. It takes precedence over the steps of this adapter.
    fn compare_table(&mut self, table: Option<&[u32]>) -> Option<AdapterAction> {
        let table = table.filter(|t| self.table.as_deref() != Some(*t))?;
        let first = self.table.replace(table.to_vec()).is_none();
        self.phase = Phase::Watching;
        if first || !self.wrote {
            return None;
        }
        self.off = Some((None, OffReason::ChangedOutside));
        Some(AdapterAction::Off { until: None, why: OffReason::ChangedOutside })
    }

    fn judge_step(
        &mut self,
        now: Duration,
        proposal: Proposal,
        before: MeasuredLoads,
        written: Duration,
        calls: u32,
    ) -> AdapterAction {
        let after = self.window.since(written + OVERLAP, SAMPLES);
        let after = match &proposal.moves {
            Moves::Table(_) => MeasuredLoads::new(&after),
            Moves::Interrupt(_) => MeasuredLoads::of_all_time(&after, &proposal.involved()),
            Moves::Rps(_) => MeasuredLoads::of_steering(&after, &proposal.involved()),
        };
        let verdict = match after {
            Some(after) if now >= written + AFTER => judge(&proposal, &before, &after),
            None if calls >= PATIENCE => Err(RestoreReason::NotMeasured),
            _ => {
                self.phase = Phase::Judging { proposal, before, written, calls };
                return AdapterAction::Rest(RestReason::Judging { until: written + AFTER });
            }
        };
        match verdict {
            Ok(why) => {
                self.limits_of(&proposal.moves).kept();
                AdapterAction::Rest(RestReason::Kept(why))
            }
            Err(why) => {
                let moves = proposal.moves.back();
                self.phase = Phase::Restoring { moves: moves.clone(), why, pending: true };
                AdapterAction::Restore { moves, why }
            }
        }
    }

    fn watch(&mut self, now: Duration, signals: &Signals<'_>, state: LoadState, phase: Phase) -> AdapterAction {
        let why = match state {
            LoadState::Suspect(why) => why,
            LoadState::Unknown { known } => {
                self.phase = phase;
                return self.or_elsewhere(now, signals, AdapterAction::Rest(RestReason::TooFewSamples { known }));
            }
            LoadState::Even => {
                (self.retry, self.named) = (None, None);
                return self.or_elsewhere(now, signals, AdapterAction::Rest(RestReason::Even));
            }
        };
        let Some(table) = signals.table else {
            return self.or_elsewhere(now, signals, AdapterAction::Rest(RestReason::TableUnknown));
        };
        match phase {
            Phase::Counting { method, until, calls, first } => {
                let checked = match signals.counts.filter(|c| c.method == method) {
                    Some(counts) => counts.check(table).map(|_| counts),
                    None if calls < PATIENCE => {
                        self.phase = Phase::Counting { method, until, calls: calls + 1, first };
                        return AdapterAction::CountEntries { method, why, until };
                    }
                    None => Err(Unusable::NotCounted),
                };
                match (checked, method) {
                    (Ok(counts), _) => self.decide(now, table, counts, why),
                    // The filter and the table disagree: the hash of sampled headers is another way.
                    (Err(unusable), CountMethod::Filter) => {
                        self.count(now, CountMethod::SampledHeaders, why, Some(unusable))
                    }
                    (Err(unusable), CountMethod::SampledHeaders) => {
                        // What the driver reports is a fact, what headers show is a computation.
                        let unusable = first.unwrap_or(unusable);
                        let waiting = self.wait(now, |until| StepWait::Unusable { why: unusable, until });
                        AdapterAction::Suspect { why, waiting }
                    }
                }
            }
            _ => match self.waiting(now) {
                Some(waiting @ (StepWait::NoStep { .. } | StepWait::Unusable { .. })) => {
                    self.or_elsewhere(now, signals, AdapterAction::Suspect { why, waiting })
                }
                Some(waiting) => AdapterAction::Suspect { why, waiting },
                None => self.count(now, CountMethod::Filter, why, None),
            },
        }
    }

    fn count(
        &mut self,
        now: Duration,
        method: CountMethod,
        why: SuspectReason,
        first: Option<Unusable>,
    ) -> AdapterAction {
        let until = now + COUNT;
        self.phase = Phase::Counting { method, until, calls: 0, first };
        AdapterAction::CountEntries { method, why, until }
    }

    /// What a suspect load waits for before entries are counted.
    fn waiting(&self, now: Duration) -> Option<StepWait> {
        if let Some(retry) = self.retry.filter(|r| now < r.since + r.pause) {
            let other = self.busiest_cpu().is_some_and(|cpu| Some(cpu) != retry.cpu);
            if !other || now < retry.since + OTHER_CPU_RETRY {
                return Some(retry.waiting);
            }
        }
        // The counts are ready when the limit ends.
        let limit = self.limits.may_step(now + COUNT).err();
        limit.or_else(|| self.is_apart(now + COUNT).err()).map(StepWait::Limit)
    }

    /// Whether the last step of each kind is long enough ago.
    fn is_apart(&self, now: Duration) -> Result<(), LimitReached> {
        self.limits.is_apart(now)?;
        self.interrupts.is_apart(now)?;
        self.masks.is_apart(now)
    }

    fn busiest_cpu(&self) -> Option<u32> {
        let loads = MeasuredLoads::new(&self.window.since(Duration::ZERO, SAMPLES))?.loads;
        busiest(&loads).map(|(cpu, ..)| cpu)
    }

    fn wait(&mut self, now: Duration, waiting: impl Fn(Duration) -> StepWait) -> StepWait {
        let pause = self.retry.map_or(RETRY, |r| (r.pause * 2).min(LONGEST_RETRY));
        let waiting = waiting(now + pause);
        self.retry = Some(Retry { since: now, pause, cpu: self.busiest_cpu(), waiting });
        waiting
    }

    fn decide(&mut self, now: Duration, table: &[u32], counts: &EntryEvidence, why: SuspectReason) -> AdapterAction {
        let most = match self.is_apart(now).and_then(|()| self.limits.may_step(now)) {
            Ok(most) => most,
            Err(limit) => return AdapterAction::Suspect { why, waiting: StepWait::Limit(limit) },
        };
        let before = MeasuredLoads::steady(&self.window.since(Duration::ZERO, 2 * SAMPLES));
        let proposed = match (&before, self.window.last(), counts.check(table)) {
            (Some(before), Some(sample), Ok(counts)) => propose(&TableSituation {
                table,
                counts,
                loads: &before.loads,
                sample,
                pinned: &|entry| self.limits.rests(entry, now),
                rests: &|entry| self.limits.rests(entry, now) && !self.limits.frozen(entry, now),
                most,
                named: self.named.map(|e| e.entry),
            }),
            _ => Err(NoProposal::Unknown),
        };
        match (proposed, before) {
            (Ok(proposal), Some(before)) => {
                self.phase = Phase::Proposed { proposal: proposal.clone(), before };
                AdapterAction::Propose(proposal)
            }
            (Err(no), _) => {
                let waiting = self.wait(now, |until| StepWait::NoStep { why: no, until });
                match no {
                    NoProposal::Elephant(elephant) => {
                        let earlier = self.named.replace(elephant);
                        if earlier.is_none_or(|e| e.entry != elephant.entry) {
                            return AdapterAction::Named { elephant };
                        }
                    }
                    _ => self.named = None,
                }
                AdapterAction::Suspect { why, waiting }
            }
            (Ok(_), None) => AdapterAction::Rest(RestReason::TooFewSamples { known: ENOUGH as u32 }),
        }
    }
}

#[cfg(test)]
#[path = "adapter_tests.rs"]
mod tests;

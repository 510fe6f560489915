//! The third actuator: the RPS mask of a device with one receive queue. It is tried when no interrupt can move.
//!
//! Loads are all time of a CPU that is not idle, programs included. A mask changes for two reasons: RPS is off and the CPU of the queue is
//! busy with packets, or a CPU of the mask is busy. RPS spreads flows evenly over the CPUs of the mask, and a single flow cannot
//! be split: then the step does not keep its promise, and is restored.

use std::collections::{BTreeMap, BTreeSet};

use crate::interrupts::LEAST_POINTS;
use crate::judge::SAMPLES;
use crate::load::{
    DROP_PERCENT, DROP_SAMPLES, EVEN_POINTS, HOT_PERCENT, HOT_POINTS, HOT_SAMPLES, LoadSample, QueueSample,
};
use crate::moves::{BusyFor, Moves, NoStep, RpsMove};
use crate::propose::{Gain, MAXIMUM_FALL_POINTS, Predicted, Proposal};
use crate::receiver::{beside, has_room, limit};

/// The part of the work of a queue's CPU that RPS moves to others, as predicted: the driver's part stays. Where receivers need room, all of
/// it is assumed.
const MOVED_PART: f64 = 0.5;

/// What a mask is computed from.
pub struct RpsSituation<'a> {
    /// The samples of the window, oldest first.
    pub samples: &'a [&'a LoadSample],
    /// The receive queue.
    pub queue: u32,
    /// The CPUs of its mask.
    pub mask: &'a BTreeSet<u32>,
    /// The CPUs that the plan would put into its mask.
    pub helpers: &'a BTreeSet<u32>,
}

/// Whether a CPU of the queue or of its mask may be too busy, before it is known which other CPUs may help.
pub fn is_busy(samples: &[&LoadSample], queue: u32, mask: &BTreeSet<u32>) -> bool {
    let Some(cpu) = samples.last().and_then(|s| cpu_of(s, queue)) else { return false };
    let often = |least: usize, is: &dyn Fn(&LoadSample) -> bool| samples.iter().filter(|s| is(s)).count() >= least;
    let hot = |s: &LoadSample, cpu: &u32| s.cpus.get(cpu).is_some_and(crate::interrupts::may_be_crowded);
    match mask.is_empty() {
        true => {
            let busy = |s: &LoadSample| s.cpus.get(&cpu).and_then(|c| c.busy_percent);
            let drops = |s: &LoadSample| is_dropping(s, queue) && busy(s).is_some_and(|b| b >= DROP_PERCENT);
            often(HOT_SAMPLES, &|s| busy(s).is_some_and(|b| b >= HOT_PERCENT)) || often(DROP_SAMPLES, &drops)
        }
        false => mask.iter().any(|cpu| often(HOT_SAMPLES, &|s| hot(s, cpu))),
    }
}

fn of(s: &LoadSample, queue: u32) -> Option<&QueueSample> {
    s.queues.get(queue as usize).filter(|q| q.excluded.is_none())
}

fn cpu_of(s: &LoadSample, queue: u32) -> Option<u32> {
    of(s, queue)?.cpu
}

fn is_dropping(s: &LoadSample, queue: u32) -> bool {
    of(s, queue).and_then(|q| q.drops).is_some_and(|n| n > 0)
}

/// Loads that are known in the same samples.
struct Known<'a> {
    samples: Vec<(&'a LoadSample, BTreeMap<u32, f64>)>,
    /// Means of all time of the newest samples, in percent.
    total: BTreeMap<u32, f64>,
    cpu: u32,
    queue: u32,
}

impl Known<'_> {
    /// In how many samples the CPU is so far above the mean.
    fn times(&self, cpu: u32, points: f64, is: impl Fn(&LoadSample, f64) -> bool) -> usize {
        let far = |(s, loads): &&(&LoadSample, BTreeMap<u32, f64>)| {
            let mean = loads.values().sum::<f64>() / loads.len().max(1) as f64;
            loads.get(&cpu).is_some_and(|l| l - mean >= points && is(s, *l))
        };
        self.samples.iter().filter(far).count()
    }

    fn queue_is_hot(&self) -> bool {
        let busy = |s: &LoadSample| s.cpus.get(&self.cpu).and_then(|c| c.busy_percent).unwrap_or(0.0);
        self.times(self.cpu, HOT_POINTS, |s, _| busy(s) >= HOT_PERCENT) >= HOT_SAMPLES
            || self.times(self.cpu, EVEN_POINTS, |s, _| busy(s) >= DROP_PERCENT && is_dropping(s, self.queue))
                >= DROP_SAMPLES
    }

    fn is_hot(&self, cpu: u32) -> bool {
        self.times(cpu, HOT_POINTS, |_, load| load >= HOT_PERCENT) >= HOT_SAMPLES
    }

    /// Mean time with packets of the newest samples, in percent.
    fn with_packets(&self, cpu: u32) -> Option<f64> {
        let all: Vec<f64> = self.newest().iter().map(|(s, _)| s.cpus.get(&cpu)?.busy_percent).collect::<Option<_>>()?;
        Some(all.iter().sum::<f64>() / all.len().max(1) as f64)
    }

    fn has_room(&self, cpu: u32, donor: u32, most: f64) -> bool {
        let newest: Vec<&LoadSample> = self.newest().iter().map(|(s, _)| *s).collect();
        newest.last().is_some_and(|last| has_room(&last.cpus, cpu, donor, beside(&newest, cpu), most))
    }

    fn newest(&self) -> &[(&LoadSample, BTreeMap<u32, f64>)] {
        &self.samples[self.samples.len().saturating_sub(SAMPLES)..]
    }

    fn mean(&self) -> f64 {
        self.total.values().sum::<f64>() / self.total.len().max(1) as f64
    }
}

/// Finds the mask that relieves the busiest CPU.
pub fn propose(s: &RpsSituation<'_>) -> Result<Proposal, NoStep> {
    let Some(last) = s.samples.last() else { return Err(NoStep::TooFewTimes { known: 0 }) };
    let cpu = cpu_of(last, s.queue).ok_or(NoStep::NotWorthIt)?;
    let online = |c: &u32| last.cpus.get(c).is_some_and(|x| x.total_percent.is_some());
    let used: BTreeSet<u32> = s.mask.iter().copied().chain([cpu]).collect();
    let cpus: BTreeSet<u32> = used.union(s.helpers).copied().filter(online).collect();
    if !used.is_subset(&cpus) {
        return Err(NoStep::NotWorthIt);
    }
    let totals = |x: &LoadSample| -> Option<BTreeMap<u32, f64>> {
        let same = cpu_of(x, s.queue) == Some(cpu);
        same.then(|| cpus.iter().map(|c| Some((*c, x.cpus.get(c)?.total_percent?))).collect())?
    };
    let samples: Vec<_> = s.samples.iter().filter_map(|x| Some((*x, totals(x)?))).collect();
    if samples.len() < HOT_SAMPLES {
        return Err(NoStep::TooFewTimes { known: samples.len() as u32 });
    }
    let newest = &samples[samples.len() - SAMPLES..];
    let mean = |c: &u32| newest.iter().filter_map(|(_, loads)| loads.get(c)).sum::<f64>() / newest.len() as f64;
    let total = cpus.iter().map(|c| (*c, mean(c))).collect();
    let known = Known { samples, total, cpu, queue: s.queue };
    match s.mask.is_empty() {
        true if known.queue_is_hot() => switch_on(s, &known),
        false => relieve(s, &known),
        true => Err(NoStep::Even),
    }
}

/// RPS is off, and the CPU of the queue is too busy.
fn switch_on(s: &RpsSituation<'_>, known: &Known<'_>) -> Result<Proposal, NoStep> {
    let not = NoStep::NotWorthIt;
    let load = *known.total.get(&known.cpu).ok_or(not)?;
    let work = known.with_packets(known.cpu).ok_or(not)?;
    let most = limit(known.mean(), load);
    let own = |c: &u32| Some((*c, *known.total.get(c)?)).filter(|(c, _)| known.has_room(*c, known.cpu, most));
    let to = fill(s.helpers.iter().filter(|c| **c != known.cpu).filter_map(own).collect(), work, most);
    let moved = work * MOVED_PART;
    let share = moved / to.len().max(1) as f64;
    let loads = |stays: f64, share: f64| -> BTreeMap<u32, f64> {
        to.iter().map(|(c, own)| (*c, own + share)).chain([(known.cpu, stays)]).collect()
    };
    let (before, after) = (loads(load, 0.0), loads(load - moved, share));
    worth(s, to, (known.cpu, BusyFor::Queue), before, after)
}

/// A CPU of the mask is too busy.
fn relieve(s: &RpsSituation<'_>, known: &Known<'_>) -> Result<Proposal, NoStep> {
    let not = NoStep::NotWorthIt;
    let load = |c: &u32| known.total.get(c).copied().unwrap_or(0.0);
    let hot = s.mask.iter().filter(|c| known.is_hot(**c)).max_by(|a, b| load(a).total_cmp(&load(b)));
    let hot = *hot.ok_or(NoStep::Even)?;
    // Flows are spread evenly, so each CPU gets about as much as the one with the least.
    let shares: Vec<f64> = s.mask.iter().map(|c| known.with_packets(*c)).collect::<Option<_>>().ok_or(not)?;
    let share = shares.iter().copied().fold(f64::INFINITY, f64::min);
    if share < LEAST_POINTS {
        return Err(not);
    }
    let work = share * s.mask.len() as f64;
    let most = limit(known.mean(), load(&hot));
    let own = |c: &u32| {
        let own = if s.mask.contains(c) { load(c) - share } else { load(c) };
        // A CPU of the mask has its place already.
        let room = s.mask.contains(c) || known.has_room(*c, hot, most);
        (known.total.contains_key(c) && room).then_some((*c, own))
    };
    let mut to = fill(s.mask.iter().filter_map(own).collect(), work, most);
    if to.is_empty() {
        to = fill(s.mask.union(s.helpers).filter_map(own).collect(), work, most);
    }
    let each = work / to.len().max(1) as f64;
    let before = s.mask.iter().map(|c| (*c, load(c))).collect();
    let after = to.iter().map(|(c, own)| (*c, own + each)).collect();
    worth(s, to, (hot, BusyFor::Mask), before, after)
}

/// As many of these CPUs as stay within the limit when they share the work evenly, the least loaded ones. Empty: none.
fn fill(own: Vec<(u32, f64)>, work: f64, most: f64) -> Vec<(u32, f64)> {
    let mut cpus = own;
    cpus.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    while cpus.last().is_some_and(|(_, load)| load + work / cpus.len() as f64 > most) {
        cpus.pop();
    }
    cpus
}

fn worth(
    s: &RpsSituation<'_>,
    to: Vec<(u32, f64)>,
    (cpu, why): (u32, BusyFor),
    before: BTreeMap<u32, f64>,
    after: BTreeMap<u32, f64>,
) -> Result<Proposal, NoStep> {
    let most = |loads: &BTreeMap<u32, f64>| loads.values().copied().fold(0.0, f64::max);
    let points = most(&before) - most(&after);
    let to: BTreeSet<u32> = to.into_iter().map(|(c, _)| c).collect();
    if to.is_empty() || to == *s.mask || points < MAXIMUM_FALL_POINTS {
        return Err(NoStep::NotWorthIt);
    }
    let of = |loads| Predicted { loads, ..Predicted::default() };
    let moves = Moves::Rps(RpsMove { queue: s.queue, from: s.mask.clone(), to, cpu, why });
    Ok(Proposal { moves, before: of(before), predicted: of(after), why: Gain::Maximum { points } })
}

#[cfg(test)]
#[path = "rps_tests.rs"]
mod tests;

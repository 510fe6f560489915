//! Stage 4: did a step keep its promise? Compares the seconds before it with those after it.
//!
//! The load of the host may change meanwhile. So the loads after a step are compared with those before it, scaled to the
//! present mean.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::load::{LoadSample, busiest, mean_loads};
use crate::moves::{BusyFor, Crowded, InterruptMove, RpsMove};
use crate::propose::{Gain, Proposal, variance};

/// A step is judged this long after it was written.
pub const AFTER: Duration = Duration::from_secs(5);
/// Samples before and after a step.
pub const SAMPLES: usize = 5;
/// Samples with known loads that a judgement needs.
pub const ENOUGH: usize = 3;
/// Part of the predicted gain that must be measured.
const KEPT: f64 = 0.5;
/// A CPU at this load, in percent, has more work than it can do: its load does not show what a step took from it.
const SATURATED_PERCENT: f64 = 95.0;
/// Drops vary by this part from second to second.
const DROPS_VARY: f64 = 1.1;
/// Times as many segments out of order as before are too many.
const OUT_OF_ORDER: f64 = 2.0;
/// Fewer segments out of order per second than this are ignored, because a step itself reorders what is in the ring.
const OUT_OF_ORDER_IGNORED: f64 = 200.0;

/// So many more drops of an interface per second are ignored: `rx_dropped` also counts frames that no protocol handles (LLDP, STP).
const UNHANDLED_PER_S: f64 = 100.0;

/// Drops raise the load of a saturated CPU to this multiple at most, because some drivers count other things as drops.
const MOST_DEMAND: f64 = 3.0;

/// A CPU whose load changes by more than this from five seconds to the next is not steady, in points.
const STEADY_POINTS: f64 = 5.0;

/// Means of some seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredLoads {
    /// The load of each CPU, in percent. That of a saturated CPU is what it would need to handle the packets that
    /// its queues dropped as well, so it may be above 100.
    pub loads: BTreeMap<u32, f64>,
    /// Dropped packets per second of the queues of each CPU. A CPU is missing if they are unknown.
    pub drops_per_s: BTreeMap<u32, f64>,
    /// Segments out of order per second. `None`: unknown.
    pub out_of_order_per_s: Option<f64>,
    /// Packets per second that the NIC dropped, of all queues. `None`: unknown.
    #[serde(default)]
    pub nic_drops_per_s: Option<f64>,
    /// Packets per second that the driver or the stack dropped. `None`: unknown.
    #[serde(default)]
    pub stack_drops_per_s: Option<f64>,
}

impl MeasuredLoads {
    /// Means of the samples. `None`: the loads are known in too few of them.
    pub fn new(samples: &[&LoadSample]) -> Option<Self> {
        let mut loads = mean_loads(samples.iter().copied(), ENOUGH)?;
        let drops_per_s = loads.keys().filter_map(|cpu| Some((*cpu, drops_per_s(samples, *cpu)?))).collect();
        for (cpu, load) in loads.iter_mut().filter(|(_, load)| **load >= SATURATED_PERCENT) {
            *load *= demand(samples, *cpu).unwrap_or(1.0);
        }
        Some(Self { loads, drops_per_s, ..Self::of_interface(samples) })
    }

    /// Rates of the whole interface and of the host.
    fn of_interface(samples: &[&LoadSample]) -> Self {
        Self {
            loads: BTreeMap::new(),
            drops_per_s: BTreeMap::new(),
            out_of_order_per_s: per_s(samples, |s| s.out_of_order),
            nic_drops_per_s: per_s(samples, |s| s.nic_drops),
            stack_drops_per_s: per_s(samples, |s| s.stack_drops),
        }
    }

    /// Means of the newest samples: all of them if the loads were steady, otherwise the newer half, because an earlier load
    /// predicts nothing.
    pub fn steady(samples: &[&LoadSample]) -> Option<Self> {
        let newer = &samples[samples.len().saturating_sub(SAMPLES)..];
        let older = &samples[..samples.len() - newer.len()];
        let moved = |a: &BTreeMap<u32, f64>, b: &BTreeMap<u32, f64>| {
            a.len() != b.len() || a.iter().any(|(cpu, l)| b.get(cpu).is_none_or(|m| (l - m).abs() > STEADY_POINTS))
        };
        match (mean_loads(older.iter().copied(), ENOUGH), mean_loads(newer.iter().copied(), ENOUGH)) {
            (Some(a), Some(b)) if moved(&a, &b) => Self::new(newer),
            _ => Self::new(samples),
        }
    }

    /// Means of all time of these CPUs, programs included. CPUs whose time is known in too few samples are missing; the caller knows which
    /// ones it needs. `None`: of all of them.
    pub fn of_all_time(samples: &[&LoadSample], cpus: &[u32]) -> Option<Self> {
        let mean = |cpu: &u32| {
            let known: Vec<f64> = samples.iter().filter_map(|s| s.cpus.get(cpu)?.total_percent).collect();
            let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
            // Programs drop no packets.
            let packets = || {
                let known: Vec<f64> = samples.iter().filter_map(|s| s.cpus.get(cpu)?.busy_percent).collect();
                known.iter().sum::<f64>() / known.len().max(1) as f64
            };
            let more = if mean >= SATURATED_PERCENT { demand(samples, *cpu).unwrap_or(1.0) - 1.0 } else { 0.0 };
            (known.len() >= ENOUGH).then(|| (*cpu, mean + packets() * more))
        };
        let loads: BTreeMap<u32, f64> = cpus.iter().filter_map(mean).collect();
        let drops_per_s = cpus.iter().filter_map(|cpu| Some((*cpu, drops_per_s(samples, *cpu)?))).collect();
        (!loads.is_empty()).then(|| Self { loads, drops_per_s, ..Self::of_interface(samples) })
    }

    /// The same with the packets that full backlogs lost: RPS passes packets on through these.
    pub fn of_steering(samples: &[&LoadSample], cpus: &[u32]) -> Option<Self> {
        let mut all = Self::of_all_time(samples, cpus)?;
        for cpu in cpus {
            let lost = per_s(samples, |s| s.cpus.get(cpu)?.backlog_drops);
            match (all.drops_per_s.get_mut(cpu), lost) {
                (Some(drops), Some(lost)) => *drops += lost,
                _ => _ = all.drops_per_s.remove(cpu),
            }
        }
        Some(all)
    }

    /// Drops per second of all these CPUs. `None`: those of one are unknown.
    fn drops_of(&self, cpus: &[u32]) -> Option<f64> {
        cpus.iter().map(|cpu| self.drops_per_s.get(cpu)).sum()
    }
}

/// Dropped packets per second of the CPU's queues. `None`: unknown in too many samples.
fn drops_per_s(samples: &[&LoadSample], cpu: u32) -> Option<f64> {
    per_s(samples, |s| s.queues.iter().filter(|q| q.cpu == Some(cpu)).map(|q| q.drops).sum())
}

/// The mean of what is known. `None`: unknown in too many samples.
fn per_s(samples: &[&LoadSample], of: impl Fn(&LoadSample) -> Option<u64>) -> Option<f64> {
    let known: Vec<u64> = samples.iter().filter_map(|s| of(s)).collect();
    (known.len() >= ENOUGH).then(|| known.iter().sum::<u64>() as f64 / known.len() as f64)
}

/// Received and dropped packets of the CPU's queues over the received ones. `None`: unknown.
fn demand(samples: &[&LoadSample], cpu: u32) -> Option<f64> {
    let queues = || samples.iter().flat_map(|s| &s.queues).filter(|q| q.cpu == Some(cpu));
    let packets: u64 = queues().map(|q| q.packets).sum::<Option<_>>()?;
    let drops: u64 = queues().map(|q| q.drops).sum::<Option<_>>()?;
    Some(((packets + drops) as f64 / packets.max(1) as f64).min(MOST_DEMAND))
}

/// Why a step stays.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepReason {
    /// It gained enough.
    Gained {
        /// The prediction.
        predicted: Gain,
        /// What was measured.
        measured: Gain,
    },
    /// A CPU has more work than it can do before and after the step, and drops are unknown: its load shows no gain.
    Saturated,
}

/// Why a step is restored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreReason {
    /// It gained less than half of the prediction.
    TooLittle {
        /// The prediction.
        predicted: Gain,
        /// What was measured.
        measured: Gain,
    },
    /// More packets are dropped.
    Drops {
        /// Per second, before.
        before: f64,
        /// Per second, after.
        after: f64,
    },
    /// Twice as many segments arrive out of order.
    OutOfOrder {
        /// Per second, before.
        before: f64,
        /// Per second, after.
        after: f64,
    },
    /// With policy `cpu` the bulk queues interrupt as often as before.
    AsManyInterrupts {
        /// Per packet, before.
        before: f64,
        /// Per packet, after.
        after: f64,
    },
    /// The loads after the step are unknown.
    NotMeasured,
}

/// Judges a step by the CPUs from which and to which something moved: what changes on others is not its effect. Where the drops of these CPUs
/// are unknown, because the driver counts none by queue, those of the whole interface take their place.
pub fn judge(proposal: &Proposal, before: &MeasuredLoads, after: &MeasuredLoads) -> Result<KeepReason, RestoreReason> {
    let involved = proposal.involved();
    let drops = (before.drops_of(&involved), after.drops_of(&involved));
    let out_of_order = || more_out_of_order(before.out_of_order_per_s, after.out_of_order_per_s);
    let more = match drops {
        (Some(before), Some(after)) => more_drops(Some(before), Some(after)),
        _ => more_drops_of_interface(before, after),
    };
    if let Some(why) = more.or_else(out_of_order) {
        return Err(why);
    }
    if let Some((m, Crowded::Programs { .. })) = proposal.moves.interrupt().map(|m| (m, m.why)) {
        return judge_beside_programs(proposal, m, before, after);
    }
    if let Some(m) = proposal.moves.rps() {
        return judge_mask(proposal, m, before, after, drops.0.is_some() && drops.1.is_some());
    }
    let of = |loads: &BTreeMap<u32, f64>| -> Option<BTreeMap<u32, f64>> {
        involved.iter().map(|cpu| Some((*cpu, *loads.get(cpu)?))).collect()
    };
    let (Some(was), Some(is)) = (of(&before.loads), of(&after.loads)) else {
        return Err(RestoreReason::NotMeasured);
    };
    let (Some((_, was_most, was_mean)), Some((_, is_most, is_mean))) = (busiest(&was), busiest(&is)) else {
        return Err(RestoreReason::NotMeasured);
    };
    // With drops, the load of a saturated CPU is known.
    let drops_known = drops.0.is_some() && drops.1.is_some();
    if !drops_known && was_most >= SATURATED_PERCENT && is_most >= SATURATED_PERCENT {
        return Ok(KeepReason::Saturated);
    }
    let scale = if was_mean > 0.0 { is_mean / was_mean } else { 1.0 };
    let predicted = proposal.gain_of(&involved);
    let most = if drops_known { f64::INFINITY } else { 100.0 };
    let expected: BTreeMap<u32, f64> = was.iter().map(|(cpu, l)| (*cpu, (l * scale).min(most))).collect();
    let expected = proposal.before.avoidable(&expected, scale);
    let is = proposal.predicted.avoidable(&is, scale);
    let (measured, enough) = match predicted {
        Gain::Maximum { points } => {
            let maximum = |loads: &BTreeMap<u32, f64>| busiest(loads).map_or(0.0, |(_, load, _)| load);
            let gained = maximum(&expected) - maximum(&is);
            (Gain::Maximum { points: gained }, gained >= KEPT * points * scale)
        }
        Gain::Variance { percent } => {
            let gained = match variance(&expected) {
                0.0 => 0.0,
                v => 100.0 * (1.0 - variance(&is) / v),
            };
            (Gain::Variance { percent: gained }, gained >= KEPT * percent)
        }
    };
    if enough {
        Ok(KeepReason::Gained { predicted, measured })
    } else {
        Err(RestoreReason::TooLittle { predicted, measured })
    }
}

/// Whether more packets per second are dropped than before.
pub(crate) fn more_drops(before: Option<f64>, after: Option<f64>) -> Option<RestoreReason> {
    let (before, after) = (before?, after?);
    // Three standard errors of a count over the samples.
    let most = before * DROPS_VARY + 3.0 * (before.max(1.0) / SAMPLES as f64).sqrt();
    (after > most).then_some(RestoreReason::Drops { before, after })
}

/// The same of the whole interface: the sum of both places, because RPS moves drops from the ring to the backlog. If one place is
/// unknown, the other one counts.
fn more_drops_of_interface(before: &MeasuredLoads, after: &MeasuredLoads) -> Option<RestoreReason> {
    let both = |m: &MeasuredLoads| Some(m.nic_drops_per_s? + m.stack_drops_per_s?);
    let (before, after) = both(before)
        .zip(both(after))
        .or_else(|| before.nic_drops_per_s.zip(after.nic_drops_per_s))
        .or_else(|| before.stack_drops_per_s.zip(after.stack_drops_per_s))?;
    more_drops(Some(before), Some(after)).filter(|_| after - before > UNHANDLED_PER_S)
}

/// Whether twice as many segments per second arrive out of order as before.
pub(crate) fn more_out_of_order(before: Option<f64>, after: Option<f64>) -> Option<RestoreReason> {
    let (before, after) = (before?, after?);
    (after >= before * OUT_OF_ORDER && after > OUT_OF_ORDER_IGNORED)
        .then_some(RestoreReason::OutOfOrder { before, after })
}

/// A program takes whatever time is left, so the old CPU is as busy as before. What counts is how busy the CPU is that now serves the
/// queue: it is not less busy if the program followed.
fn judge_beside_programs(
    proposal: &Proposal,
    m: &InterruptMove,
    before: &MeasuredLoads,
    after: &MeasuredLoads,
) -> Result<KeepReason, RestoreReason> {
    let (Some(was), Some(is), Gain::Maximum { points }) =
        (before.loads.get(&m.from), after.loads.get(&m.to), proposal.why)
    else {
        return Err(RestoreReason::NotMeasured);
    };
    let (predicted, measured) = (proposal.why, Gain::Maximum { points: was - is });
    match was - is >= KEPT * points {
        true => Ok(KeepReason::Gained { predicted, measured }),
        false => Err(RestoreReason::TooLittle { predicted, measured }),
    }
}

/// The busiest CPU that processes packets, before and after: RPS itself costs time, so the sum of the loads changes, too.
fn judge_mask(
    proposal: &Proposal,
    m: &RpsMove,
    before: &MeasuredLoads,
    after: &MeasuredLoads,
    drops_known: bool,
) -> Result<KeepReason, RestoreReason> {
    let most = |loads: &BTreeMap<u32, f64>, of: bool| -> Option<f64> {
        let all: Option<Vec<f64>> = m.processing(of).iter().map(|cpu| loads.get(cpu).copied()).collect();
        Some(all?.into_iter().fold(0.0, f64::max))
    };
    let (Some(was), Some(is), Gain::Maximum { points }) =
        (most(&before.loads, true), most(&after.loads, false), proposal.why)
    else {
        return Err(RestoreReason::NotMeasured);
    };
    if !drops_known && m.why == BusyFor::Queue && was >= SATURATED_PERCENT && is >= SATURATED_PERCENT {
        return Ok(KeepReason::Saturated);
    }
    let (predicted, measured) = (proposal.why, Gain::Maximum { points: was - is });
    match was - is >= KEPT * points {
        true => Ok(KeepReason::Gained { predicted, measured }),
        false => Err(RestoreReason::TooLittle { predicted, measured }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moves::Moves;
    use crate::propose::Predicted;

    fn loads(list: &[f64]) -> BTreeMap<u32, f64> {
        (0..).zip(list.iter().copied()).collect()
    }

    fn measured(list: &[f64]) -> MeasuredLoads {
        MeasuredLoads {
            loads: loads(list),
            drops_per_s: drops(0.0, list.len()),
            out_of_order_per_s: Some(10.0),
            nic_drops_per_s: None,
            stack_drops_per_s: None,
        }
    }

    fn drops(per_cpu: f64, cpus: usize) -> BTreeMap<u32, f64> {
        (0..cpus as u32).map(|cpu| (cpu, per_cpu)).collect()
    }

    fn proposal(before: &[f64], predicted: &[f64]) -> Proposal {
        let of = |list| Predicted { loads: loads(list), unavoidable: BTreeMap::new() };
        Proposal { moves: Moves::Table(Vec::new()), before: of(before), predicted: of(predicted), why: MAXIMUM }
    }

    /// From CPU 0 to the others.
    fn twenty() -> (Proposal, MeasuredLoads) {
        (proposal(&[90.0, 50.0, 40.0], &[70.0, 55.0, 55.0]), measured(&[90.0, 50.0, 40.0]))
    }

    const MAXIMUM: Gain = Gain::Maximum { points: 20.0 };

    #[test]
    fn half_of_the_predicted_gain_is_enough() {
        let (p, before) = twenty();
        let gained = |after: &[f64]| judge(&p, &before, &measured(after));
        assert_eq!(
            gained(&[79.0, 51.0, 50.0]),
            Ok(KeepReason::Gained { predicted: MAXIMUM, measured: Gain::Maximum { points: 11.0 } })
        );
        assert!(matches!(gained(&[81.0, 49.0, 50.0]), Err(RestoreReason::TooLittle { .. })));
        // A small step is judged by the variance.
        let (p, before) = (proposal(&[70.0, 50.0, 45.0], &[64.0, 52.0, 49.0]), measured(&[70.0, 50.0, 45.0]));
        assert!(judge(&p, &before, &measured(&[66.0, 51.0, 48.0])).is_ok());
        assert!(judge(&p, &before, &measured(&[69.0, 50.0, 46.0])).is_err());
    }

    #[test]
    fn what_changes_on_other_cpus_is_not_the_effect_of_the_step() {
        let p = proposal(&[90.0, 50.0, 40.0, 45.0], &[70.0, 55.0, 55.0, 45.0]);
        let before = measured(&[90.0, 50.0, 40.0, 45.0]);
        let mut after = measured(&[70.0, 55.0, 55.0, 100.0]);
        after.drops_per_s.insert(3, 5000.0);
        assert!(judge(&p, &before, &after).is_ok());
        after.drops_per_s.insert(2, 5000.0);
        assert!(matches!(judge(&p, &before, &after), Err(RestoreReason::Drops { .. })), "CPU 2 got entries");
    }

    #[test]
    fn a_load_that_changes_everywhere_is_no_gain_and_no_loss() {
        let (p, before) = twenty();
        // Half of the traffic has ended, and nothing became more even.
        assert!(judge(&p, &before, &measured(&[45.0, 25.0, 20.0])).is_err());
        // Traffic has grown by a ninth, and the step works.
        assert!(judge(&p, &before, &measured(&[78.0, 61.0, 61.0])).is_ok());
    }

    #[test]
    fn drops_and_reordering_restore() {
        let (p, before) = twenty();
        let good = measured(&[70.0, 55.0, 55.0]);
        let after = MeasuredLoads { drops_per_s: drops(20.0, 3), ..good.clone() };
        assert_eq!(judge(&p, &before, &after), Err(RestoreReason::Drops { before: 0.0, after: 60.0 }));
        let unknown = MeasuredLoads { drops_per_s: BTreeMap::new(), ..before.clone() };
        assert!(judge(&p, &unknown, &after).is_ok(), "nothing to compare with");
        let after = MeasuredLoads { out_of_order_per_s: Some(150.0), ..good.clone() };
        assert!(judge(&p, &before, &after).is_ok(), "few");
        let after = MeasuredLoads { out_of_order_per_s: Some(1000.0), ..good };
        assert_eq!(judge(&p, &before, &after), Err(RestoreReason::OutOfOrder { before: 10.0, after: 1000.0 }));
    }

    #[test]
    fn drops_of_the_interface_count_where_those_of_the_queues_are_unknown() {
        let (p, known) = twenty();
        let of = |m: &MeasuredLoads, nic: Option<f64>, stack: Option<f64>| MeasuredLoads {
            drops_per_s: BTreeMap::new(),
            nic_drops_per_s: nic,
            stack_drops_per_s: stack,
            ..m.clone()
        };
        let good = measured(&[70.0, 55.0, 55.0]);
        let judged = |before: [Option<f64>; 2], after: [Option<f64>; 2]| {
            judge(&p, &of(&known, before[0], before[1]), &of(&good, after[0], after[1]))
        };
        let more = Err(RestoreReason::Drops { before: 5.0, after: 600.0 });
        assert_eq!(judged([Some(5.0), Some(0.0)], [Some(600.0), Some(0.0)]), more);
        assert_eq!(judged([Some(0.0), Some(5.0)], [Some(0.0), Some(600.0)]), more);
        assert_eq!(judged([None, Some(5.0)], [None, Some(600.0)]), more, "the other place is unknown");
        assert!(judged([Some(600.0), Some(600.0)], [Some(600.0), Some(600.0)]).is_ok(), "as many");
        for unknown in [[None, None], [None, Some(0.0)]] {
            assert!(judged(unknown, [Some(600.0), Some(0.0)]).is_ok(), "nothing to compare with");
            assert!(judged([Some(600.0), Some(0.0)], unknown).is_ok(), "nothing to compare with");
        }
        assert!(
            judged([Some(10_000.0), Some(0.0)], [Some(0.0), Some(500.0)]).is_ok(),
            "RPS drops at another place, and fewer"
        );
        assert!(judged([Some(0.0), Some(0.0)], [Some(0.0), Some(99.0)]).is_ok(), "frames that no protocol handles");
        // Other queues drop.
        let after = MeasuredLoads { nic_drops_per_s: Some(600.0), ..good };
        let before = MeasuredLoads { nic_drops_per_s: Some(0.0), ..known.clone() };
        assert!(judge(&p, &before, &after).is_ok(), "the drops of the queues are known");
    }

    #[test]
    fn drops_of_the_interface_are_known_from_enough_samples_only() {
        let sample = |nic_drops, stack_drops| LoadSample {
            cpus: [(0, 10.0), (1, 20.0)]
                .map(|(cpu, busy)| (cpu, crate::load::CpuLoadSample { busy_percent: Some(busy), ..Default::default() }))
                .into(),
            queues: [0, 1].map(|cpu| crate::load::QueueSample { cpu: Some(cpu), ..Default::default() }).into(),
            nic_drops,
            stack_drops,
            ..LoadSample::default()
        };
        let samples = [
            sample(Some(10), Some(2)),
            sample(None, None),
            sample(Some(20), None),
            sample(Some(30), Some(2)),
            sample(None, None),
        ];
        let m = MeasuredLoads::new(&samples.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!((m.nic_drops_per_s, m.stack_drops_per_s), (Some(20.0), None), "the mean of three, and two of five");
        assert!(m.drops_per_s.is_empty());
    }

    #[test]
    fn a_saturated_cpu_needs_the_time_for_its_drops_too() {
        use crate::load::{CpuLoadSample, QueueSample};
        let sample = |drops: Option<u64>| LoadSample {
            queues: [(0, 1000, drops), (1, 400, Some(100))]
                .map(|(cpu, packets, drops)| QueueSample {
                    cpu: Some(cpu),
                    packets: Some(packets),
                    drops,
                    ..QueueSample::default()
                })
                .to_vec(),
            cpus: [(0, 100.0), (1, 40.0)]
                .map(|(cpu, busy)| (cpu, CpuLoadSample { busy_percent: Some(busy), ..CpuLoadSample::default() }))
                .into(),
            ..LoadSample::default()
        };
        let measure = |drops| {
            let samples = vec![sample(drops); 5];
            MeasuredLoads::new(&samples.iter().collect::<Vec<_>>()).unwrap()
        };
        // Queue 1 drops because its ring is short: its CPU has time left.
        assert_eq!(measure(Some(500)).loads, loads(&[150.0, 40.0]));
        assert_eq!(measure(Some(1_000_000)).loads, loads(&[300.0, 40.0]));
        let unknown = measure(None);
        assert_eq!((unknown.loads, unknown.drops_per_s), (loads(&[100.0, 40.0]), [(1, 100.0)].into()));
    }

    #[test]
    fn overload_is_judged_by_demand_or_not_at_all() {
        let p = proposal(&[140.0, 50.0, 40.0], &[110.0, 65.0, 55.0]);
        let before = MeasuredLoads { drops_per_s: drops(9000.0, 3), ..measured(&[140.0, 50.0, 40.0]) };
        let after = MeasuredLoads { drops_per_s: drops(5000.0, 3), ..measured(&[120.0, 55.0, 55.0]) };
        assert!(matches!(judge(&p, &before, &after), Ok(KeepReason::Gained { .. })));
        let more = MeasuredLoads { drops_per_s: drops(12_000.0, 3), ..after.clone() };
        assert!(matches!(judge(&p, &before, &more), Err(RestoreReason::Drops { .. })));
        let unknown = |list| MeasuredLoads { drops_per_s: BTreeMap::new(), ..measured(list) };
        let verdict = judge(&p, &unknown(&[100.0, 50.0, 40.0]), &unknown(&[100.0, 60.0, 60.0]));
        assert_eq!(verdict, Ok(KeepReason::Saturated));
    }

    #[test]
    fn what_no_table_can_avoid_is_not_judged() {
        let mut p = proposal(&[100.0, 55.0, 55.0], &[91.0, 59.0, 60.0]);
        let (before, after) = (measured(&[100.0, 55.0, 55.0]), measured(&[94.0, 58.0, 58.0]));
        // Of 45 points above the others, 15 could be moved, and 9 were to be.
        p.before.unavoidable.insert(0, 30.0);
        p.predicted.unavoidable.insert(0, 30.0);
        let Ok(KeepReason::Gained { measured: Gain::Variance { percent }, .. }) = judge(&p, &before, &after) else {
            panic!("{:?}", judge(&p, &before, &after))
        };
        assert!((percent - 84.0).abs() < 0.1, "the square of 6 over 15: {percent}");
    }

    #[test]
    fn a_cpu_that_vanished_is_not_zero() {
        let (p, before) = twenty();
        assert_eq!(judge(&p, &before, &measured(&[70.0, 55.0])), Err(RestoreReason::NotMeasured));
    }
}

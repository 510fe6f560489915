//! Which CPU may get more packets: the second thread of a core does less than a core of its own.

use std::collections::BTreeMap;

use crate::load::{CpuLoadSample, LoadSample};

/// A receiver may get up to this load, in percent.
const RECEIVER_PERCENT: f64 = 60.0;
/// A receiver may get up to this much above the mean, in points, if that is more.
const RECEIVER_POINTS: f64 = 10.0;
/// A receiver stays this much below the load that the donor had, in points, so that a step at overload is possible too.
const BELOW_DONOR_POINTS: f64 = 10.0;
/// What packets cost more while the other thread of the core is busy all the time, as a part.
const SHARED_CORE: f64 = 0.5;

/// The load up to which a CPU may receive from a donor with this load, in percent.
pub(crate) fn limit(mean: f64, donor: f64) -> f64 {
    RECEIVER_PERCENT.max(mean + RECEIVER_POINTS).min(donor - BELOW_DONOR_POINTS)
}

/// Whether the other threads of this CPU's core leave it room: they are neither the donor nor, with the load `beside`, busier than a
/// receiver may be.
pub(crate) fn has_room(cpus: &BTreeMap<u32, CpuLoadSample>, cpu: u32, donor: u32, beside: f64, most: f64) -> bool {
    let core = |cpu: u32| cpus.get(&cpu).and_then(|c| c.core);
    let shares = core(cpu).is_some() && core(cpu) == core(donor);
    !shares && beside <= most
}

/// Mean time of the busiest other thread of a CPU's core, in percent; 0 for a core with one thread, or if it is unknown.
pub(crate) fn beside(samples: &[&LoadSample], cpu: u32) -> f64 {
    let known: Vec<f64> = samples.iter().filter_map(|s| s.cpus.get(&cpu)?.sibling_percent).collect();
    known.iter().sum::<f64>() / known.len().max(1) as f64
}

/// What `points` of another core cost on a CPU whose core has another thread with this load, in points.
pub(crate) fn points_beside(points: f64, sibling_percent: f64) -> f64 {
    points * (1.0 + SHARED_CORE * (sibling_percent / 100.0).clamp(0.0, 1.0))
}

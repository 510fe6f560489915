//! Interrupts that are set to another CPU and have not moved there yet.

use std::collections::BTreeMap;

use ringwise_knob::{Address, Match, Setting, VectorName, irq};
use ringwise_model::{CpuSet, Nic, Snapshot, Vector};
use ringwise_plan::Plan;
use ringwise_text::{hang, plural, vector_label};

use super::plan_index::PlanIndex;

/// The interrupts of queues that are pending: the configured CPUs, and those to which the interrupt still goes.
fn of(nic: &Nic) -> impl Iterator<Item = (&Vector, &CpuSet, &CpuSet)> {
    nic.queue_vectors().filter_map(|v| {
        let (configured, effective) = (v.asked.known()?, v.effective.known()?);
        (irq::compare_vector(v, configured) == Match::Pending).then_some((v, configured, effective))
    })
}

/// For `show`: `rx-0 (set to CPU 0, now on CPU 1): moves when it is next raised`. `None`: no interrupt is
/// pending. `limit`: how many interrupts are listed.
pub(super) fn line(nic: &Nic, limit: usize) -> Option<String> {
    let all: Vec<String> = of(nic)
        .map(|(v, configured, now)| format!("{} (set to CPU {configured}, now on CPU {now})", vector_label(v)))
        .collect();
    if all.is_empty() {
        return None;
    }
    let more = all.len().saturating_sub(limit);
    let mut list = all[..all.len() - more].join(", ");
    if more > 0 {
        list.push_str(&format!(" and {more} more"));
    }
    let moves = if all.len() == 1 { "moves when it is" } else { "each moves when it is" };
    Some(format!("{list}: {moves} next raised (ringwise help pending)"))
}

/// For `plan`: interrupts that are set as planned already, although `show` marks another CPU. None of an interface whose channels the
/// plan changes: the driver may request its interrupts again for that, or remove them.
pub(super) fn of_plan(plan: &Plan, index: &PlanIndex, s: &Snapshot, w: Option<usize>) -> String {
    let mut out = String::new();
    for dev in &plan.considered {
        let (Some(nic), Some(part)) = (s.nic(dev), index.device(dev)) else { continue };
        if part.steps.contains_key(&Address::Channels { dev: dev.clone() }) {
            continue;
        }
        let planned: BTreeMap<VectorName, &CpuSet> = part.target.iter().filter_map(|(t, _)| planned_cpus(t)).collect();
        let as_planned = |(v, configured, _): &(&Vector, &CpuSet, &CpuSet)| {
            irq::canonical(v).and_then(|of| planned.get(&of)).is_some_and(|cpus| cpus == configured)
        };
        let n = of(nic).filter(as_planned).count();
        if n > 0 {
            let verb = if n == 1 { "is" } else { "are" };
            let text = format!(
                "{dev}: {} {verb} set as planned, and will move to the planned CPU when next raised (ringwise help pending)",
                plural(n, "interrupt")
            );
            out.push_str(&hang("Pending: ", &text, w));
        }
    }
    out
}

fn planned_cpus(t: &Setting) -> Option<(VectorName, &CpuSet)> {
    match t {
        Setting::IrqCpus { of, cpus, .. } => Some((*of, cpus)),
        _ => None,
    }
}

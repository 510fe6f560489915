//! Interrupts that are set to another CPU and have not moved there yet.

use ringwise_knob::{Address, Match, irq};
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

/// For `plan`: interrupts whose setting the plan does not change because it is as planned, although `show` marks another CPU.
pub(super) fn of_plan(plan: &Plan, index: &PlanIndex, s: &Snapshot, w: Option<usize>) -> String {
    let changes = |dev: &str, v: &Vector| {
        let Some(of) = irq::canonical(v) else { return false };
        let address = Address::IrqCpus { dev: dev.to_string(), of };
        index.device(dev).is_some_and(|part| part.steps.contains_key(&address))
    };
    let mut out = String::new();
    for dev in &plan.considered {
        let Some(nic) = s.nic(dev) else { continue };
        let n = of(nic).filter(|(v, ..)| !changes(dev, v)).count();
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

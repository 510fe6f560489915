//! The policy of the bulk group of `mixed` by the load of its CPUs in a sample. Where the sample does not tell, the policy
//! stays as without a sample.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::{CpuId, Goal, Intent, Sample, SampledInterface, TrafficSample};

use super::QueueGroup;
use super::sampled_sizes::traffic;
use crate::dev::Dev;
use crate::machine::Machine;
use crate::policies::{self, BULK, CPU};
use crate::sampled_groups::{BUSY_PERCENT, BulkPolicy, GroupSizes, GroupsUndecided, SampledGroups};
use crate::target::PlanBuilder;

/// Chooses the policies of bulk groups that the goal made, now that their queues have CPUs. `teams`: groups by device.
pub(crate) fn choose(
    m: &Machine,
    devs: &[Dev],
    teams: &mut [Vec<QueueGroup>],
    intent: &Intent,
    out: &mut PlanBuilder,
) -> Vec<SampledGroups> {
    let Some(sample) = &intent.sample else { return Vec::new() };
    let duration_ms = match sample {
        Sample::Taken(t) => Some(t.duration_ms),
        Sample::NotTaken(_) => None,
    };
    let mut all = Vec::new();
    for (d, teams) in devs.iter().zip(teams).filter(|(d, _)| d.goal == Goal::Mixed) {
        let policy = match by_load(m, d, teams, sample) {
            Ok((at, busy_percent)) => {
                let name = if busy_percent < BUSY_PERCENT { BULK } else { CPU };
                let team = &mut teams[at];
                team.policy = policies::find(name, &intent.policies).unwrap_or_else(|| team.policy.clone());
                team.busy_percent = Some(busy_percent);
                BulkPolicy::Load { policy: team.policy.name.clone(), busy_percent, threshold_percent: BUSY_PERCENT }
            }
            Err(why) => BulkPolicy::Kept { why },
        };
        let undivided = || GroupSizes::Kept { why: GroupsUndecided::NotDivided };
        let sizes = out.sizes.get(d.name()).cloned().unwrap_or_else(undivided);
        all.push(SampledGroups { dev: d.name().to_string(), duration_ms, sizes, policy });
    }
    all
}

/// The bulk group that the goal made, by its place in `teams`, and the mean busy share of its CPUs.
fn by_load(m: &Machine, d: &Dev, teams: &[QueueGroup], sample: &Sample) -> Result<(usize, u32), GroupsUndecided> {
    if teams.is_empty() {
        return Err(GroupsUndecided::NotDivided);
    }
    let at = teams.iter().position(|t| t.by.is_none() && t.name == BULK).ok_or(GroupsUndecided::Configured)?;
    let (taken, interface, _) = traffic(sample, d.name())?;
    let busy = busy_permille(m, d, &teams[at].queues, taken, interface).ok_or(GroupsUndecided::LoadUnknown)?;
    Ok((at, (busy / 10.0).round() as u32))
}

/// The mean busy time of the CPUs that these queues get. The interrupts and softirqs of the CPU that served a queue move
/// with the queue; queues that shared a CPU have equal parts of them. What else a CPU did stays there.
fn busy_permille(
    m: &Machine,
    d: &Dev,
    queues: &[u32],
    taken: &TrafficSample,
    interface: &SampledInterface,
) -> Option<f64> {
    let mut served: BTreeMap<CpuId, u32> = BTreeMap::new();
    for cpu in interface.queues.iter().filter_map(|q| q.cpu) {
        *served.entry(cpu).or_default() += 1;
    }
    let interrupts = |cpu: CpuId| Some(f64::from(taken.cpu(cpu)?.interrupt_permille?));
    let mut cpus: BTreeSet<CpuId> = BTreeSet::new();
    let mut sum = 0.0;
    for queue in queues {
        cpus.insert(m.cpus[d.cpu.get(*queue as usize).copied().flatten()?]);
        let counted = interface.queues.iter().find(|q| q.queue == *queue)?;
        sum += match counted.cpu {
            Some(cpu) => interrupts(cpu)? / f64::from(served[&cpu]),
            None if counted.interrupts == Some(0) => 0.0,
            None => return None,
        };
    }
    for cpu in &cpus {
        let moved = if served.contains_key(cpu) { interrupts(*cpu)? } else { 0.0 };
        sum += f64::from(taken.cpu(*cpu)?.busy_permille?) - moved;
    }
    (!cpus.is_empty()).then(|| (sum / cpus.len() as f64).clamp(0.0, 1000.0))
}

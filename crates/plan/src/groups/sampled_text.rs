//! The texts about a sample in a plan.

use ringwise_model::NotSampled;
use ringwise_model::words::thousands;

use crate::sampled_groups::{
    BulkPolicy, FEWEST_FRAMES_PER_S, GroupSizes, GroupsUndecided, PlacementChoice, SampledGroups, SampledPlacement,
};
use crate::target::PlanBuilder;

/// Adds what the sample decided as advice, and what it could not decide as warnings.
pub(super) fn add(s: &SampledGroups, out: &mut PlanBuilder) {
    let seconds = seconds(s.duration_ms);
    match &s.policy {
        BulkPolicy::Load { policy, busy_percent, threshold_percent } => {
            let (side, load) = match busy_percent < threshold_percent {
                true => ("less than", "lightly"),
                false => ("at least", "heavily"),
            };
            out.advice.about(
                &s.dev,
                format!(
                    "the CPUs of the bulk queues were {busy_percent} % busy in the sample{seconds}. This is {side} \
                     {threshold_percent} % (a rule of thumb), so the queues get policy {policy}, for {load} loaded CPUs. A boot \
                     does not sample; configure the policy to keep it."
                ),
            );
        }
        BulkPolicy::Kept { why } if !same(s, *why) => {
            out.warnings
                .about(&s.dev, format!("--sample does not decide about the policy of the bulk queues: {}", text(*why)));
        }
        BulkPolicy::Kept { .. } => {}
    }
    match &s.sizes {
        GroupSizes::Traffic { frames, mean_frame_bytes, small_percent, latency_queues, of_queues } => {
            out.advice.about(
                &s.dev,
                format!(
                    "{} frames with a mean of {mean_frame_bytes} bytes passed in the sample{seconds}. About {small_percent} % of \
                     them were small, so {latency_queues} of {of_queues} queues are for latency. A boot does not sample: \
                     configure latency_queues = {latency_queues} to keep the number.",
                    thousands(*frames)
                ),
            );
        }
        GroupSizes::Steered { packets, latency_percent, latency_queues, of_queues } => {
            out.advice.about(
                &s.dev,
                format!(
                    "of {} packets received in the sample{seconds}, {latency_percent} % were for the latency group by the flow \
                     rules, so it has {latency_queues} of {of_queues} queues. A boot does not sample: configure \
                     latency_queues = {latency_queues} to keep the number.",
                    thousands(*packets)
                ),
            );
        }
        GroupSizes::Kept { why } => {
            let what = if same(s, *why) { "sizes and policies" } else { "sizes" };
            out.warnings
                .about(&s.dev, format!("--sample does not decide about the {what} of the groups: {}", text(*why)));
        }
    }
}

/// A smaller gain in traffic is not named.
const LEAST_GAIN: f64 = 1.05;

/// Adds what the sample decided about queues outside groups. `None`: there are no such queues.
pub(crate) fn add_placement(s: Option<&SampledPlacement>, out: &mut PlanBuilder) {
    let Some(s) = s else { return };
    let seconds = seconds(s.duration_ms);
    match &s.choice {
        PlacementChoice::Load { packets, times, .. } => {
            let gain = match *times {
                t if t >= LEAST_GAIN => format!("the layout carries {t:.1} times as much of this traffic before a core is full"),
                _ => "the busiest core stays as busy, because one queue fills it, and the load of the others is more even".into(),
            };
            out.advice.push(format!(
                "the queues received {} packets in the sample{seconds}, and get their CPUs by these numbers: {gain} (modelled). \
                 It does not change with the traffic: sample again, or let the service follow the load (ringwise help daemon). A \
                 boot does not sample.",
                thousands(*packets)
            ));
        }
        PlacementChoice::AsGood { packets } => out.advice.push(format!(
            "the queues received {} packets in the sample{seconds}. No queue gets another CPU because of them: the load of the \
             busiest core would not fall by a tenth.",
            thousands(*packets)
        )),
        PlacementChoice::Kept { why } => {
            out.warnings.push(format!("--sample does not decide about the CPUs of the queues: {}", text(*why)));
        }
    }
}

fn seconds(duration_ms: Option<u64>) -> String {
    duration_ms.map_or_else(String::new, |ms| format!(" of {} s", (ms as f64 / 100.0).round() / 10.0))
}

/// Whether policy and sizes are kept for the same reason.
fn same(s: &SampledGroups, why: GroupsUndecided) -> bool {
    let kept = |a: GroupsUndecided| a == why;
    matches!(&s.policy, BulkPolicy::Kept { why } if kept(*why))
        && matches!(&s.sizes, GroupSizes::Kept { why } if kept(*why))
}

fn text(why: GroupsUndecided) -> String {
    match why {
        GroupsUndecided::NotSampled { why: NotSampled::NotRecorded } => {
            "the recording contains no counters of two moments, and cannot be sampled".into()
        }
        GroupsUndecided::NotSampled { why: NotSampled::Passive } => "--passive does not read counters of interfaces".into(),
        GroupsUndecided::NotSampled { why: NotSampled::NoInterface } => "no interface has queues of its own".into(),
        GroupsUndecided::NotSampled { why: NotSampled::NoTimePassed } => {
            "the clock did not advance between the two readings".into()
        }
        GroupsUndecided::NotCounted => "its counters are unknown, or were reset during the sample".into(),
        GroupsUndecided::NoTraffic { frames } => format!(
            "{} frames passed during the sample, and it needs at least {FEWEST_FRAMES_PER_S} per second",
            thousands(frames)
        ),
        GroupsUndecided::MtuUnknown => "the MTU is unknown, and so is the size of full frames".into(),
        GroupsUndecided::Configured => "the configuration does".into(),
        GroupsUndecided::FlowsNotSteered => {
            "flows are configured, and no rules steer these flows alone to queues of their own yet. Apply the groups, then \
             sample again"
                .into()
        }
        GroupsUndecided::LoadUnknown => "the busy time of their CPUs, or which CPUs served them, is unknown".into(),
        GroupsUndecided::NotDivided => "its queues are not divided into latency and bulk".into(),
        GroupsUndecided::QueuesChange => {
            "the plan changes the number of queues, or a table is configured, so the counters do not tell the later load".into()
        }
        GroupsUndecided::NotSampled { why: NotSampled::Unknown } | GroupsUndecided::Unknown => {
            "for a reason that a later version of ringwise recorded".into()
        }
    }
}

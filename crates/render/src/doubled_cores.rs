//! The line of a plan about cores with several queues of an interface.

use ringwise_knob::Setting;
use ringwise_model::{CpuSet, Goal, Knob, Wish};
use ringwise_plan::{DevLayout, DoubledCore, Plan};
use ringwise_text::{self as text, Style, hang, plural};

use super::plan_index::PlanPart;

/// Cores on a terminal before the rest is counted.
const MANY: usize = 8;

/// `4 cores with more than one queue, as the goal intends: CPUs 0-1 (queues 4-5), …`. Empty: there are none.
pub(super) fn text(plan: &Plan, dev: &str, part: &PlanPart, style: &Style) -> String {
    let doubled: Vec<String> = part
        .doubled_cores
        .iter()
        .map(|d| {
            let cpus = cpus_of(part.layout, d);
            let name = if cpus.len() == 1 { "CPU" } else { "CPUs" };
            format!("{name} {cpus} (queues {})", text::numbers(d.queues.iter().copied()))
        })
        .collect();
    if doubled.is_empty() {
        return String::new();
    }
    let limit = if style.width.is_some() { MANY } else { usize::MAX };
    let mut list = doubled.iter().take(limit).cloned().collect::<Vec<_>>().join(", ");
    if doubled.len() > limit {
        list.push_str(&format!(" and {} more", doubled.len() - limit));
    }
    let intended = if uses_second_threads(plan, dev, part) { ", as the goal intends" } else { "" };
    hang("  ", &format!("{} with more than one queue{intended}: {list}", plural(doubled.len(), "core")), style.width)
}

/// Whether the goal alone placed the queues, each on a thread of its own: the interface has more queues than its node has cores.
/// In the groups of goal mixed, queues on one core compete, which is a warning.
fn uses_second_threads(plan: &Plan, dev: &str, part: &PlanPart) -> bool {
    let configured = |w: &Wish| matches!(w.knob, Knob::IrqCpus { .. }) && w.dev.as_deref() == Some(dev);
    let kept = |s: &Setting| matches!(s, Setting::IrqCpus { .. }) && s.dev() == Some(dev);
    let goal_alone = !plan.intent.wishes.iter().any(configured) && !plan.kept.iter().any(|k| kept(&k.wanted));
    let one_each = |d: &&DoubledCore| cpus_of(part.layout, d).len() == d.queues.len();
    matches!(plan.intent.goal_of(dev), Goal::Balanced | Goal::Forward)
        && goal_alone
        && part.doubled_cores.iter().all(one_each)
}

/// The CPUs of a core that have queues. A CPU that is reserved, or has none for another reason, is not one of them.
fn cpus_of(layout: Option<&DevLayout>, d: &DoubledCore) -> CpuSet {
    let placed = layout.iter().flat_map(|l| &l.queues).filter(|p| d.queues.contains(&p.queue));
    let cpus: CpuSet = placed.filter_map(|p| p.cpu).collect();
    if cpus.is_empty() { d.core.clone() } else { cpus }
}

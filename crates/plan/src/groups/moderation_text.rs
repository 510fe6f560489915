//! Describes the moderation of a group, from all settings in the plan regardless of their source.

use std::collections::BTreeMap;

use ringwise_knob::{Address, Setting, VectorName, coalesce, napi as knob_napi};
use ringwise_model::{CpuId, CpuSet};

use super::{GroupPlanner, QueueGroup};

/// Moderation of one queue.
#[derive(PartialEq)]
struct ModerationText {
    text: String,
    by_instance: bool,
    /// Whether the user configured it, not the group.
    laid: bool,
}

/// `rx-usecs 5 tx-usecs 10 on each queue`; `rx-usecs 99 on queue 0 as configured, rx-usecs 5 tx-usecs 10 on queues 1-3`
pub(super) fn by_queue(cx: &GroupPlanner, team: &QueueGroup) -> Option<String> {
    let mut parts: Vec<(Option<ModerationText>, CpuSet)> = Vec::new();
    for q in &team.queues {
        let told = of_queue(cx, *q);
        match parts.iter_mut().find(|(t, _)| *t == told) {
            Some((_, queues)) => queues.insert(CpuId(*q)),
            None => parts.push((told, std::iter::once(CpuId(*q)).collect())),
        }
    }
    if parts.iter().all(|(t, _)| t.is_none()) {
        return None;
    }
    let one = parts.len() == 1;
    let part = |(told, queues): &(Option<ModerationText>, CpuSet)| {
        let (text, by_instance, laid) =
            told.as_ref().map_or(("unchanged", false, false), |t| (t.text.as_str(), t.by_instance, t.laid));
        let place = match (by_instance, one) {
            (true, true) => "by NAPI instance".to_string(),
            (false, true) => "on each queue".to_string(),
            (true, false) => format!("by NAPI instance on {}", queues_text(queues)),
            (false, false) => format!("on {}", queues_text(queues)),
        };
        format!("{text} {place}{}", if laid { " as configured" } else { "" })
    };
    Some(parts.iter().map(part).collect::<Vec<_>>().join(", "))
}

/// `queue 0`, `queues 1-3,5`
pub(super) fn queues_text(queues: &CpuSet) -> String {
    format!("queue{} {queues}", if queues.len() == 1 { "" } else { "s" })
}

/// `rx-usecs 62 tx-usecs 122 for the whole device`
pub(super) fn of_device(cx: &GroupPlanner) -> Option<String> {
    let address = Address::Coalesce { dev: cx.d.name().to_string() };
    let Some(Setting::Coalesce { params, .. }) = planned(cx, &address) else { return None };
    let laid = if cx.out.laid.contains(&address) { " as configured" } else { "" };
    Some(format!("{} for the whole device{laid}", short(params)))
}

fn of_queue(cx: &GroupPlanner, queue: u32) -> Option<ModerationText> {
    let dev = cx.d.name().to_string();
    let address = Address::QueueCoalesce { dev: dev.clone(), queue };
    if let Some(Setting::QueueCoalesce { params, .. }) = planned(cx, &address) {
        return Some(ModerationText { text: short(params), by_instance: false, laid: cx.out.laid.contains(&address) });
    }
    let first = knob_napi::instance(cx.d.nic, VectorName::Rx(queue))?.rx.first().copied().unwrap_or(queue);
    let address = Address::Napi { dev, of: VectorName::Rx(first) };
    let text = planned(cx, &address)?.value_text();
    Some(ModerationText { text, by_instance: true, laid: cx.out.laid.contains(&address) })
}

fn planned<'a>(cx: &'a GroupPlanner, address: &Address) -> Option<&'a Setting> {
    cx.out.entries.get(address).map(|(_, s, _)| s)
}

/// The parameters without the switches.
fn short(params: &BTreeMap<String, u32>) -> String {
    let plain: BTreeMap<String, u32> =
        params.iter().filter(|(k, _)| !k.starts_with("use-")).map(|(k, v)| (k.clone(), *v)).collect();
    coalesce::text(if plain.is_empty() { params } else { &plain })
}

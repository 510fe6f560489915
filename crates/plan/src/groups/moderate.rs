//! Interrupt moderation of each group: by queue, else by NAPI instance, else one policy for the device.

use std::collections::BTreeMap;

use ringwise_knob::{Address, Reason, Setting, VectorName, coalesce, napi as knob_napi};
use ringwise_model::{CpuId, CpuSet, Fact, NapiValues};

use super::{GroupPlanner, GroupSetting, QueueGroup, moderation_text, why};
use crate::moderation::{self, Fixed, rx_alone};
use crate::{Obstacle, policies};

const SWITCHES: [&str; 2] = ["use-adaptive-rx", "use-adaptive-tx"];

/// Plans the moderation of each group, and returns its description.
pub(super) fn plan(cx: &mut GroupPlanner, teams: &[QueueGroup]) -> Vec<Option<String>> {
    match &cx.d.nic.queue_coalesce {
        Fact::Known(all) if !all.is_empty() => by_queue(cx, teams),
        Fact::Unknown(u) => {
            let why = Obstacle::QueueModerationUnread { unread: u.clone() };
            refuse(cx, "moderation of single queues", why, true);
            vec![None; teams.len()]
        }
        _ => by_napi(cx, teams),
    }
}

fn refuse(cx: &mut GroupPlanner, what: &str, why: Obstacle, needed: bool) {
    cx.out.cannot(cx.d.name(), what, why, needed);
}

/// The largest group; among equals the last, which is not the latency group.
fn largest(teams: &[QueueGroup]) -> Option<&QueueGroup> {
    teams.iter().max_by_key(|t| t.queues.len())
}

/// The part of these values that the NAPI instance of a queue supports.
fn deferral(cx: &GroupPlanner, queue: u32, values: &NapiValues) -> Option<Setting> {
    let i = knob_napi::instance(cx.d.nic, VectorName::Rx(queue))?;
    let has = i.values.known()?;
    let values = NapiValues {
        defer_hard_irqs: values.defer_hard_irqs.filter(|_| has.defer_hard_irqs.is_some()),
        gro_flush_timeout_ns: values.gro_flush_timeout_ns.filter(|_| has.gro_flush_timeout_ns.is_some()),
        irq_suspend_timeout_ns: values.irq_suspend_timeout_ns.filter(|_| has.irq_suspend_timeout_ns.is_some()),
        threaded: values.threaded.filter(|_| has.threaded.is_some()),
    };
    let first = i.rx.first().copied().unwrap_or(queue);
    (values != NapiValues::default()).then(|| Setting::Napi {
        dev: cx.d.name().to_string(),
        of: VectorName::Rx(first),
        values,
    })
}

/// The policy of one group for the whole device; `None` where the device has none of its parameters.
fn whole(cx: &GroupPlanner, team: &QueueGroup) -> Option<(Setting, Fixed)> {
    let fit = moderation::fixed(cx.d, &team.policy, &cx.d.nic.coalesce.known()?.0);
    let setting = Setting::Coalesce { dev: cx.d.name().to_string(), params: fit.params.clone() };
    (!fit.params.is_empty()).then_some((setting, fit))
}

/// Requests the policy of one group for the whole device, and reports the parameters that are not possible.
fn want_whole(cx: &mut GroupPlanner, team: &QueueGroup, setting: &Setting, fit: &Fixed, deferred: bool) {
    let instead = rx_alone(cx.d.name(), &fit.params);
    if !fit.missing.is_empty() {
        let why = Obstacle::NoParameter { policy: team.policy.name.clone() };
        refuse(cx, &fit.missing.join(" "), why, false);
    }
    if fit.one_interval {
        refuse(cx, "tx-usecs", Obstacle::OneInterval, false);
    }
    let refused = cx.learned.why(cx.d.nic, setting);
    if let (Some(why), Some(other)) = (refused, instead.iter().find(|s| cx.learned.why(cx.d.nic, s).is_none())) {
        let what = format!("moderation {}", coalesce::text(&fit.params));
        refuse(cx, &what, why.instead(other), false);
    }
    let (policy, moved, busy_percent) = (team.policy.name.clone(), fit.moved.clone(), team.busy_percent);
    let (rule, reason, source) = why(team, Reason::GroupPolicyForAll { policy, deferred, moved, busy_percent });
    cx.want(GroupSetting { setting: setting.clone(), instead, rule, reason, source, needed: true });
}

fn by_queue(cx: &mut GroupPlanner, teams: &[QueueGroup]) -> Vec<Option<String>> {
    let Some(all) = cx.d.nic.queue_coalesce.known() else { return Vec::new() };
    let dev = cx.d.name().to_string();
    adaptive_off(cx, teams, all.values().next().map(|c| &c.0));
    let most = largest(teams).map(|t| t.name.clone());
    for t in teams {
        let mut missing: Vec<String> = Vec::new();
        let mut laid = CpuSet::new();
        for q in &t.queues {
            if cx.out.laid.contains(&Address::QueueCoalesce { dev: dev.clone(), queue: *q }) {
                laid.insert(CpuId(*q));
                continue;
            }
            let Some(has) = all.get(q).or_else(|| all.values().next()) else { continue };
            let fit = policies::fit(&t.policy, &has.0);
            missing.extend(fit.missing);
            if fit.params.is_empty() {
                continue;
            }
            let mut instead: Vec<Setting> = deferral(cx, *q, &t.policy.napi).into_iter().collect();
            if most.as_ref() == Some(&t.name) {
                instead.extend(whole(cx, t).map(|w| w.0));
            }
            let setting = Setting::QueueCoalesce { dev: dev.clone(), queue: *q, params: fit.params };
            let (policy, group, when) = (t.policy.name.clone(), t.name.clone(), first(&t.policy.when));
            let busy_percent = t.busy_percent;
            let (rule, reason, source) = why(t, Reason::GroupPolicy { policy, group, when, busy_percent });
            cx.want(GroupSetting { setting, instead, rule, reason, source, needed: true });
        }
        missing.sort();
        missing.dedup();
        if !missing.is_empty() {
            let why = Obstacle::NoParameterOfQueue { policy: t.policy.name.clone() };
            refuse(cx, &format!("{} of group {}", missing.join(" "), t.name), why, false);
        }
        if !laid.is_empty() {
            let text = format!(
                "the user configured the moderation of {}, so policy {} of group {} is not applied there",
                moderation_text::queues_text(&laid),
                t.policy.name,
                t.name
            );
            cx.out.warnings.about(&dev, text);
        }
    }
    teams.iter().map(|t| moderation_text::by_queue(cx, t)).collect()
}

/// If only the device has the switch, it is switched off for all queues, before any fixed value is written.
fn adaptive_off(cx: &mut GroupPlanner, teams: &[QueueGroup], of_queue: Option<&BTreeMap<String, u32>>) {
    let Some(now) = cx.d.nic.coalesce.known() else { return };
    let on = |k: &&str| {
        now.0.get(*k).is_some_and(|v| *v != 0)
            && !of_queue.is_some_and(|q| q.contains_key(*k))
            && teams.iter().any(|t| t.policy.params.get(*k) == Some(&0))
    };
    let held = |k: &&str| now.0.contains_key(*k) && !of_queue.is_some_and(|q| q.contains_key(*k));
    // Requested even if it is off already, so that it stays off.
    let params: BTreeMap<String, u32> =
        SWITCHES.iter().filter(|k| on(k) || held(k)).map(|k| (k.to_string(), 0)).collect();
    if params.is_empty() {
        return;
    }
    let setting = Setting::Coalesce { dev: cx.d.name().to_string(), params };
    let reason = Reason::AdaptiveOffFirst;
    cx.want(GroupSetting {
        setting,
        instead: Vec::new(),
        rule: "R4.02",
        reason,
        source: super::ARTICLE.into(),
        needed: true,
    });
}

fn by_napi(cx: &mut GroupPlanner, teams: &[QueueGroup]) -> Vec<Option<String>> {
    let deferred: Vec<Vec<Setting>> = teams
        .iter()
        .map(|t| t.queues.iter().filter_map(|q| deferral(cx, *q, &t.policy.napi)).collect::<Vec<_>>())
        .collect();
    let every = deferred.iter().zip(teams).all(|(v, t)| !v.is_empty() && v.len() == t.queues.len());
    let of_device = if every { teams.iter().find(|t| t.urgent).or_else(|| largest(teams)) } else { largest(teams) };
    let laid = cx.out.laid.contains(&Address::Coalesce { dev: cx.d.name().to_string() });
    let device = of_device.and_then(|t| whole(cx, t).map(|(s, fit)| (t, s, fit)));
    if let Some((t, setting, fit)) = device.as_ref().filter(|_| !laid) {
        want_whole(cx, t, setting, fit, every);
    }
    if !every {
        let why = match &device {
            _ if laid => Obstacle::ModerationConfigured,
            Some((t, ..)) => Obstacle::OnePolicyForAll { policy: t.policy.name.clone() },
            None => Obstacle::NoModerationNoDeferral,
        };
        refuse(cx, "moderation of single queues", why, true);
        return vec![moderation_text::of_device(cx); teams.len()];
    }
    for (t, settings) in teams.iter().zip(deferred) {
        for setting in settings {
            let (policy, group) = (t.policy.name.clone(), t.name.clone());
            let busy_percent = t.busy_percent;
            let (rule, reason, source) = why(t, Reason::GroupPolicyByNapi { policy, group, busy_percent });
            let source = if t.by.is_none() { policies::NAPI_SOURCE.to_string() } else { source };
            cx.want(GroupSetting { setting, instead: Vec::new(), rule, reason, source, needed: true });
        }
    }
    teams.iter().map(|t| moderation_text::by_queue(cx, t)).collect()
}

/// The first clause, in a form that fits into a sentence.
pub(crate) fn first(when: &str) -> String {
    let clause = when.split([';', ':', '.']).next().unwrap_or(when);
    let mut c = clause.chars();
    c.next().map_or_else(String::new, |f| f.to_lowercase().chain(c).collect())
}

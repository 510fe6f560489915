//! Removes objects that earlier plans created for groups and that no group needs any more: rules before the contexts that
//! they steer to. Objects that were created or changed outside ringwise stay and are reported.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::{Address, CreatedObject, Reason, Setting, rss as knob_rss, rules as knob_rules};
use ringwise_model::{Fact, Rule, Rules, Snapshot};

use super::{ARTICLE, GroupPlanner, GroupSetting};
use crate::dev::{Dev, LearnedIndex};
use crate::target::PlanBuilder;

const RULE: &str = ringwise_knob::FOR_GROUPS[1];

/// Runs after all requested settings of the device are planned.
pub(crate) fn away(s: &Snapshot, d: &Dev, learned: &LearnedIndex, out: &mut PlanBuilder) {
    let idle = |m: &&CreatedObject| m.address().is_some_and(|a| !out.entries.contains(&a) && !out.laid.contains(&a));
    let idle: Vec<CreatedObject> = out.made.of(d.name()).iter().filter(idle).cloned().collect();
    if idle.is_empty() {
        return;
    }
    let mut cx = GroupPlanner { s, d, learned, out };
    let gone: BTreeSet<u32> = idle
        .iter()
        .filter_map(|m| match (&m.setting, &m.before) {
            (Setting::RssContext { context, .. }, Setting::RssContext { table: None, .. }) => Some(*context),
            _ => None,
        })
        .collect();
    let steered = |m: &&CreatedObject| !matches!(m.setting, Setting::RssTable { .. });
    for m in idle.iter().filter(steered).filter(|m| !m.as_left) {
        let what = m.address().map_or_else(String::new, |a| a.to_string());
        cx.out.warnings.push(format!(
            "{what}: no group needs it any more, but it was changed outside ringwise since transaction {} created it: it stays",
            m.transaction
        ));
    }
    let mut any = false;
    for m in idle.iter().filter(|m| m.as_left) {
        if let Setting::FlowRule { dev, location, .. } = &m.setting {
            let rule = earlier(&mut cx, m, &gone);
            let setting = Setting::FlowRule { dev: dev.clone(), location: *location, rule };
            let reason = Reason::FlowNotLed { transaction: m.transaction };
            configure(&mut cx, setting, reason);
            any = true;
        }
    }
    for m in idle.iter().filter(|m| m.as_left) {
        let Setting::RssContext { context, .. } = &m.setting else { continue };
        any = true;
        if let Some(why) = still_needed(&cx, *context) {
            cx.out.warnings.push(format!(
                "{} RSS context {context}: no group needs it any more (transaction {} created it), but {why}: it stays",
                d.name(),
                m.transaction
            ));
            continue;
        }
        let fits = |t: &Vec<u32>| t.iter().all(|q| *q < d.rx);
        if matches!(&m.before, Setting::RssContext { table: Some(t), .. } if !fits(t)) {
            continue;
        }
        let reason = Reason::NotNeededByGroup { transaction: m.transaction };
        configure(&mut cx, m.before.clone(), reason);
    }
    for m in idle.iter().filter(|m| m.as_left) {
        if let (Setting::RssTable { dev, table: now }, Setting::RssTable { table, .. }) = (&m.setting, &m.before) {
            let fits = table.len() == now.len() && table.iter().all(|q| *q < d.rx);
            let table = if fits { table.clone() } else { knob_rss::default(now.len(), d.rx) };
            let reason = Reason::TableBeforeShares { transaction: m.transaction };
            configure(&mut cx, Setting::RssTable { dev: dev.clone(), table }, reason);
        }
    }
    if any {
        others(&mut cx);
    }
}

fn configure(cx: &mut GroupPlanner, setting: Setting, reason: Reason) {
    cx.want(GroupSetting { setting, instead: Vec::new(), rule: RULE, reason, source: ARTICLE.into(), needed: true });
}

/// The rule that a rule of a group had replaced, if its queue or context will exist.
fn earlier(cx: &mut GroupPlanner, m: &CreatedObject, gone: &BTreeSet<u32>) -> Option<Rule> {
    let Setting::FlowRule { rule: Some(was), location, .. } = &m.before else { return None };
    let contexts = cx.d.nic.rss.known().and_then(|r| r.contexts.known());
    let there = match was.context {
        Some(c) => contexts.is_some_and(|all| all.contains_key(&c)) && !gone.contains(&c),
        None => knob_rules::queue(was).is_none_or(|q| q < cx.d.rx),
    };
    if !there {
        cx.out.warnings.push(format!(
            "{} flow rule {}: the rule from before transaction {} ({}) cannot be restored: its queue or context does not exist",
            cx.d.name(),
            knob_rules::location_text(*location),
            m.transaction,
            knob_rules::text(was)
        ));
    }
    Some(was.clone()).filter(|_| there)
}

fn place(rules: &Rules, at: u32, rule: &Rule) -> u32 {
    if rules.chooses_location { knob_rules::by_content(rule) } else { at }
}

/// Why a context cannot be deleted: a rule still steers to it after the plan.
fn still_needed(cx: &GroupPlanner, context: u32) -> Option<String> {
    let rules = match &cx.d.nic.rules {
        Fact::Known(r) => r,
        Fact::Absent => return None,
        Fact::Unknown(u) => return Some(format!("ringwise could not read whether a rule steers to it ({u})")),
    };
    let mut then: BTreeMap<u32, Option<&Rule>> =
        rules.rules.iter().map(|(at, r)| (place(rules, *at, r), Some(r))).collect();
    for (_, setting, _) in cx.out.entries.alike(&Address::FlowRule { dev: cx.d.name().to_string(), location: 0 }) {
        if let Setting::FlowRule { location, rule, .. } = setting {
            then.insert(*location, rule.as_ref());
        }
    }
    let (at, _) = then.into_iter().find(|(_, r)| r.is_some_and(|r| r.context == Some(context)))?;
    Some(format!("flow rule {}, which belongs to no group, steers to it", knob_rules::location_text(at)))
}

/// Reports objects that were not created for a group, by name.
fn others(cx: &mut GroupPlanner) {
    let nic = cx.d.nic;
    let dev = || nic.dev.name.clone();
    let made = cx.out.made.of(nic.name());
    let ours = |a: &Address| cx.out.entries.contains(a) || made.iter().any(|m| m.address().as_ref() == Some(a));
    let rules = nic.rules.known().into_iter().flat_map(|all| all.rules.iter().map(move |(at, r)| place(all, *at, r)));
    let rules = rules.map(|location| Address::FlowRule { dev: dev(), location });
    let contexts = nic.rss.known().and_then(|r| r.contexts.known()).into_iter().flat_map(|all| all.keys());
    let contexts = contexts.map(|c| Address::RssContext { dev: dev(), context: *c });
    let list: Vec<String> = rules.chain(contexts).filter(|a| !ours(a)).map(|a| a.to_string()).collect();
    if !list.is_empty() {
        cx.out.warnings.push(format!(
            "flow rules and RSS contexts that were not created for a group stay unchanged: {}",
            list.join(", ")
        ));
    }
}

/// Contexts that the plan does not mention, with queues that would be removed.
pub(crate) fn contexts_on_fewer_queues(d: &Dev, out: &mut PlanBuilder) {
    let contexts = d.nic.rss.known().and_then(|r| r.contexts.known());
    let Some(contexts) = contexts.filter(|_| d.channels.is_some()) else { return };
    for (n, c) in contexts {
        let address = Address::RssContext { dev: d.name().to_string(), context: *n };
        let lost = c.table.iter().filter(|q| **q >= d.rx).count();
        if lost > 0 && !out.entries.contains(&address) {
            out.warnings.push(format!(
                "{address}: {lost} of its {} entries point to queues that are removed; they are redistributed among queues {}",
                c.table.len(),
                crate::words::span(d.rx)
            ));
        }
    }
}

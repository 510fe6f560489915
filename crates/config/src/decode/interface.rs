//! `[[interface]]`: its match, its knobs, and what contradicts itself in it.

use std::ops::Range;

use ringwise_model::{Action, Goal, GroupQueues, GroupWish, Knob, Table, Wish};

use super::{Ctx, Keys, group, knobs};
use crate::spec;
use crate::value::{Config, Entry, Matcher};

pub(crate) fn entry(k: Keys<'_, '_>, at: Range<usize>, config: &Config, cx: &mut Ctx<'_>) -> Entry {
    let matcher = match (k.table("match", &spec::MATCH), k.at("match")) {
        (Some(m), Some(at)) => matcher(m, at, cx),
        _ => Matcher::default(),
    };
    let mut wishes = knobs::wishes(k, cx);
    knobs::rules(k, &mut wishes, cx);
    let groups = group::groups(k, config, cx);
    let e = Entry {
        matcher,
        goal: k.text("goal").and_then(|g| g.parse::<Goal>().ok()),
        wishes,
        groups,
        said: cx.said(&k.at("match").unwrap_or(at)),
    };
    contradictions(&e, config, k, cx);
    if let Some(at) = k.at("match")
        && config.entries.iter().any(|o| o.matcher == e.matcher && o.matcher != Matcher::default())
    {
        cx.fault(at, format!("two entries for {}", e.matcher), "one entry with both contents");
    }
    e
}

fn matcher(k: Keys<'_, '_>, at: Range<usize>, cx: &mut Ctx<'_>) -> Matcher {
    let m = Matcher {
        name: k.text("name"),
        driver: k.text("driver"),
        bus: k.text("bus").map(|b| b.to_lowercase()),
        mac: k.text("mac").map(|m| m.to_lowercase()),
        label: k.text("label"),
    };
    let parts = [&m.name, &m.driver, &m.bus, &m.mac, &m.label];
    if parts.iter().all(|p| p.is_none()) {
        cx.fault(at, "match says nothing, so it would be every interface", "name = \"*\" if that is meant");
    } else if parts.iter().any(|p| p.as_ref().is_some_and(String::is_empty)) {
        cx.fault(at, "an empty text in match matches nothing", "the name, driver, address or label");
    }
    let long = m.name.as_ref().is_some_and(|n| !crate::words::is_glob(n) && n.len() > 15);
    if let (true, Some(at)) = (long, k.at("name")) {
        cx.fault(at, "no name of an interface has more than 15 characters", "label, for an alternative name");
    }
    let short = m.bus.as_ref().is_some_and(|b| b.len() == 7 && b.matches(':').count() == 1 && b.contains('.'));
    if let (true, Some(at), Some(bus)) = (short, k.at("bus"), &m.bus) {
        cx.fault(at, format!("\"{bus}\" has no domain"), format!("as the kernel names it: \"0000:{bus}\""));
    }
    m
}

/// Receive and transmit queues after `channels`, where it says that.
fn queues_left(wishes: &[Wish]) -> Option<(u32, u32)> {
    wishes.iter().find_map(|w| match w.knob {
        Knob::Channels { rx: None, combined: Some(n), tx: None } => Some((n, n)),
        // What is not said of one kind stays as it is there.
        Knob::Channels { rx, combined: Some(n), tx } => {
            let sum = |own: Option<u32>| own.map_or(u32::MAX, |own| own + n);
            Some((sum(rx), sum(tx)))
        }
        _ => None,
    })
}

/// A queue that is spoken of and not there with so many.
fn beyond(knob: &Knob, (rx, tx): (u32, u32)) -> Option<(u32, &'static str, u32)> {
    let last = |q: &Option<Vec<u32>>| q.as_ref()?.iter().max().copied();
    let (q, what, n) = match knob {
        Knob::RssTable { table, .. } => (highest(table)?, "the table", rx),
        Knob::FlowRule { rule, .. } => match rule.action {
            Action::Queue(q) => (q, "the rule", rx),
            _ => return None,
        },
        Knob::Coalesce { queues, .. } => (last(queues)?, "coalesce", rx.max(tx)),
        Knob::Napi { queues, .. } => (last(queues)?, "napi", rx),
        Knob::IrqCpus { queues, .. } => (last(queues)?, "irq_cpus", rx.max(tx)),
        Knob::RpsCpus { queues, .. } => (last(queues)?, "rps_cpus", rx),
        Knob::RpsFlowCnt { queues, .. } => (last(queues)?, "rps_flow_cnt", rx),
        Knob::XpsCpus { queues, .. } => (last(queues)?, "xps_cpus", tx),
        Knob::XpsRxqs { queues, .. } => (last(queues)?, "xps_rxqs", tx),
        _ => return None,
    };
    (q >= n).then_some((q, what, n))
}

fn contradictions(e: &Entry, config: &Config, k: Keys<'_, '_>, cx: &mut Ctx<'_>) {
    let at = |name: &str| k.at(name).unwrap_or(0..0);
    if let Some(left) = queues_left(&e.wishes) {
        let right = |n: u32| format!("queues 0 to {}, or more channels", n.saturating_sub(1));
        for w in &e.wishes {
            if let Some((q, what, n)) = beyond(&w.knob, left) {
                let place = cx.line(&w.said).unwrap_or_else(|| at("channels"));
                cx.fault(place, format!("{what} names queue {q}, but channels leaves {n}"), right(n));
            }
        }
        let n = left.0;
        for g in &e.groups {
            if let GroupQueues::These(q) = &g.queues
                && let Some(q) = q.iter().find(|q| **q >= n)
            {
                let place = cx.line(&g.said).unwrap_or_else(|| at("group"));
                cx.fault(place, format!("group \"{}\" names queue {q}, but channels leaves {n}", g.name), right(n));
            }
        }
        let counted: u32 = e.groups.iter().map(|g| if let GroupQueues::Count(n) = g.queues { n } else { 0 }).sum();
        if counted > n {
            cx.fault(
                at("group"),
                format!("the groups want {counted} queues, but channels leaves {n}"),
                format!("{n} in all"),
            );
        }
    }
    let own_table = e.wishes.iter().any(|w| matches!(w.knob, Knob::RssTable { context: None, .. }));
    if own_table && e.groups.iter().any(|g| g.weight.is_some()) {
        cx.fault(at("rss"), "the table is fixed here, but groups with a weight divide it", "the table, or the weights");
    }
    by_group(&e.groups, config, &at("group"), cx);
    let goal = e.goal.or(config.host.goal);
    let lro = e
        .wishes
        .iter()
        .any(|w| matches!(&w.knob, Knob::Feature { name, on: true } if matches!(name.as_str(), "lro" | "rx-lro")));
    if goal == Some(Goal::Forward) && lro {
        cx.fault(
            at("features"),
            "LRO is on, but what was merged cannot be forwarded as it came",
            "lro = false, or another goal",
        );
    }
}

fn by_group(groups: &[GroupWish], config: &Config, at: &Range<usize>, cx: &mut Ctx<'_>) {
    let kept = [("reserve", &config.host.reserve), ("exclude_cpus", &config.host.exclude_cpus)];
    for g in groups {
        for (name, set) in kept {
            let Some((cpus, set)) = g.cpus.as_ref().zip(set.as_ref()) else { continue };
            let both = cpus.intersection(set);
            if !both.is_empty() {
                let found = format!("group \"{}\" is on CPUs {both}, which {name} keeps free", g.name);
                let place = cx.line(&g.said).unwrap_or_else(|| at.clone());
                cx.fault(place, found, format!("other CPUs, or not in {name}"));
            }
        }
    }
}

/// The highest queue that a table names.
fn highest(table: &Table) -> Option<u32> {
    match table {
        Table::Default => None,
        Table::Equal { queues, start } => Some(start.saturating_add(queues - 1)),
        Table::Weight { weights, start } => {
            let last = weights.iter().rposition(|w| *w > 0)?;
            Some(start.saturating_add(last as u32))
        }
        Table::Explicit(entries) => entries.iter().max().copied(),
    }
}

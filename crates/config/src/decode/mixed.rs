//! Checks `[host]` and the groups of interfaces against each other: latency and bulk groups.

use ringwise_model::words::plural;
use ringwise_model::{ConfiguredBy, Goal, GroupQueues};

use super::{DecodeContext, TableKeys, bytes};
use crate::value::Config;

/// `hosts`: the tables that `config.host` was merged from, the one that overrides the others first.
pub(crate) fn check(hosts: &[TableKeys<'_, '_>], config: &Config, cx: &mut DecodeContext<'_>) {
    let key_at = |key: &str| hosts.iter().find_map(|h| h.at(key));
    let at = |by: &ConfiguredBy, key: &str| bytes(by).or_else(|| key_at(key)).unwrap_or_default();
    for g in config.entries.iter().flat_map(|e| &e.groups) {
        if config.host.pair_as_article == Some(true) {
            let found = format!("pair_as_article creates its own groups, so group \"{}\" conflicts", g.name);
            cx.fault(at(&g.by, "pair_as_article"), found, "either the group or pair_as_article");
        }
    }
    let Some(n) = config.host.latency_queues else { return };
    let goal = config.host.goal;
    let mixed = |own: Option<Goal>| own.or(goal).is_none_or(|g| g == Goal::Mixed);
    let article = config.host.pair_as_article == Some(true);
    if let (Some(goal), Some(at)) = (goal.filter(|_| !article), key_at("latency_queues"))
        && !mixed(None)
        && !config.entries.iter().any(|e| mixed(e.goal))
    {
        cx.fault(
            at,
            format!("latency_queues needs goal mixed, but the goal is {goal}"),
            "goal = \"mixed\", or no latency_queues",
        );
    }
    for g in config.entries.iter().filter(|e| mixed(e.goal)).flat_map(|e| &e.groups) {
        let has = match &g.queues {
            GroupQueues::Count(n) => *n,
            GroupQueues::These(list) => list.len() as u32,
            GroupQueues::Auto => n,
        };
        if g.name.eq_ignore_ascii_case("latency") && has != n {
            let found =
                format!("group \"{}\" has {}, but latency_queues is {n}", g.name, plural(has as usize, "queue"));
            cx.fault(at(&g.by, "latency_queues"), found, "the same number, or only one of them");
        }
    }
}

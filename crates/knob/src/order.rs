//! Changes that must be written in another order than that of their addresses.
//!
//! ```text
//!   rules that are deleted or    ─► contexts that are ─► other settings by ─► contexts that changed rules no longer use
//!   moved off removed queues        deleted              address           ─► interrupts that irqbalance may move again
//! ```

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::Fact;
use ringwise_model::order::Order;

use crate::{Setting, irqbalance, rss, rules};

/// Number of receive queues of each device after these changes; contains only devices whose channels change.
fn queues<'a>(all: impl Iterator<Item = (&'a Fact<Setting>, &'a Setting)>) -> BTreeMap<&'a str, u32> {
    let mut out = BTreeMap::new();
    for (from, to) in all {
        let Setting::Channels { dev, rx, combined, .. } = to else { continue };
        let (rx_now, combined_now) = match from.known() {
            Some(Setting::Channels { rx, combined, .. }) => (*rx, *combined),
            _ => (None, None),
        };
        let left = |to: Option<u32>, now: Option<u32>| to.or(now).unwrap_or(0);
        out.insert(dev.as_str(), left(*rx, rx_now) + left(*combined, combined_now));
    }
    out
}

/// Contexts that a changed rule no longer uses. Such a context can be deleted only after the rule has changed.
fn left<'a>(all: impl Iterator<Item = (&'a Fact<Setting>, &'a Setting)>) -> BTreeSet<(&'a str, u32)> {
    let each = all.filter_map(|(from, to)| match (from.known(), to) {
        (Some(Setting::FlowRule { rule: Some(from), .. }), Setting::FlowRule { dev, rule: Some(to), .. }) => {
            from.context.filter(|c| to.context != Some(*c)).map(|c| (dev.as_str(), c))
        }
        _ => None,
    });
    each.collect::<BTreeSet<_>>()
}

/// Sorts changes, which are already in the order of their addresses, into an order in which the kernel accepts them. The
/// kernel refuses to remove queues while a rule names them.
pub fn order<T>(changes: &mut [T], parts: impl Fn(&T) -> (&Fact<Setting>, &Setting)) {
    let ranks: Vec<u8> = {
        let queues = queues(changes.iter().map(&parts));
        let contexts = left(changes.iter().map(&parts));
        let rank = |t: &T| {
            let (from, to) = parts(t);
            let left = to.address().and_then(|a| queues.get(a.dev()?).copied());
            match () {
                () if rules::makes_way(from, to, left) => 0,
                () if rss::goes(from, to).is_some_and(|c| contexts.contains(&c)) => 3,
                () if rss::goes(from, to).is_some() => 1,
                () if irqbalance::lifts_ban(from, to) => 4,
                () => 2,
            }
        };
        changes.iter().map(rank).collect()
    };
    let mut places: Vec<usize> = (0..changes.len()).collect();
    places.order_by_key(|i| ranks[*i]);
    permute(changes, places);
}

/// `to[i]` is the old index of the item that moves to index `i`.
fn permute<T>(list: &mut [T], mut to: Vec<usize>) {
    for i in 0..to.len() {
        while to[i] < i {
            to[i] = to[to[i]];
        }
        list.swap(i, to[i]);
    }
}

#[cfg(test)]
mod tests {
    use ringwise_model::{Action, Rule};

    use super::*;

    fn rule(queue: u32) -> Option<Rule> {
        Some(Rule { flow: "tcp4".into(), fields: BTreeMap::new(), action: Action::Queue(queue), context: None })
    }

    fn at(location: u32, rule: Option<Rule>) -> Setting {
        Setting::FlowRule { dev: "eth0".into(), location, rule }
    }

    fn channels(n: u32) -> Setting {
        Setting::Channels { dev: "eth0".into(), rx: None, tx: None, combined: Some(n) }
    }

    fn ntuple(on: bool) -> Setting {
        Setting::Ntuple { dev: "eth0".into(), on }
    }

    fn sorted(mut list: Vec<(Setting, Setting)>) -> Vec<Setting> {
        let mut list: Vec<(Fact<Setting>, Setting)> = list.drain(..).map(|(a, b)| (Fact::Known(a), b)).collect();
        order(&mut list, |(from, to)| (from, to));
        list.into_iter().map(|x| x.1).collect()
    }

    #[test]
    fn rules_make_way_for_fewer_queues() {
        let asked = vec![
            (channels(8), channels(4)),
            (ntuple(true), ntuple(false)),
            (at(1, rule(7)), at(1, rule(2))),
            (at(2, rule(1)), at(2, rule(3))),
            (at(3, rule(6)), at(3, None)),
            (at(4, None), at(4, rule(1))),
        ];
        let wanted = vec![at(1, rule(2)), at(3, None), channels(4), ntuple(false), at(2, rule(3)), at(4, rule(1))];
        assert_eq!(sorted(asked), wanted);
    }

    fn context(context: u32, table: Option<Vec<u32>>) -> Setting {
        Setting::RssContext { dev: "eth0".into(), context, table, key: None }
    }

    #[test]
    fn contexts_go_after_the_rules_that_name_them() {
        let to = |c: Option<u32>| rule(0).map(|r| Rule { context: c, ..r });
        let asked = vec![
            (channels(8), channels(4)),
            (context(1, Some(vec![7])), context(1, None)),
            (context(2, None), context(2, Some(vec![1]))),
            (context(3, Some(vec![0])), context(3, None)),
            (at(1, to(Some(1))), at(1, None)),
            (at(2, to(Some(3))), at(2, to(Some(2)))),
        ];
        let wanted = vec![
            at(1, None),
            context(1, None),
            channels(4),
            context(2, Some(vec![1])),
            at(2, to(Some(2))),
            context(3, None),
        ];
        assert_eq!(sorted(asked), wanted);
    }

    #[test]
    fn rules_wait_for_more_queues() {
        let asked = vec![(channels(4), channels(8)), (at(1, rule(2)), at(1, rule(7))), (at(2, None), at(2, rule(6)))];
        assert_eq!(sorted(asked), [channels(8), at(1, rule(7)), at(2, rule(6))]);
    }
}

//! Merges configurations: for the same knob, later values override earlier ones.

use std::collections::BTreeMap;

use ringwise_model::{Knob, NapiValues, Wish};

use crate::contradict::covers;
use crate::value::{Config, HostPart, InterfaceEntry};

impl Config {
    /// `[host]` with these host groups, by name, merged into it.
    pub fn host_with(&self, groups: &[String]) -> HostPart {
        let named = self.host_groups.iter().filter(|g| groups.contains(&g.name));
        named.fold(self.host.clone(), |all, g| host(all, &g.host))
    }

    /// Merges `over` into this configuration. Two entries are the same if their matches are equal.
    pub fn lay(&mut self, over: &Config) {
        self.host = host(std::mem::take(&mut self.host), &over.host);
        for p in &over.policies {
            self.policies.retain(|have| have.name != p.name);
            self.policies.push(p.clone());
        }
        for e in &over.entries {
            match self.entries.iter_mut().find(|have| have.matcher == e.matcher) {
                Some(have) => entry(have, e),
                None => self.entries.push(e.clone()),
            }
        }
    }
}

pub(crate) fn host(mut base: HostPart, over: &HostPart) -> HostPart {
    fn lay<T: Clone>(base: &mut Option<T>, over: &Option<T>) {
        if over.is_some() {
            base.clone_from(over);
        }
    }
    lay(&mut base.goal, &over.goal);
    lay(&mut base.cpus, &over.cpus);
    lay(&mut base.reserve, &over.reserve);
    lay(&mut base.exclude_cpus, &over.exclude_cpus);
    lay(&mut base.queues, &over.queues);
    lay(&mut base.smt, &over.smt);
    lay(&mut base.far_node, &over.far_node);
    lay(&mut base.allow_disruption, &over.allow_disruption);
    lay(&mut base.pair_as_article, &over.pair_as_article);
    lay(&mut base.latency_queues, &over.latency_queues);
    lay(&mut base.strict, &over.strict);
    if !over.interfaces.is_empty() {
        base.interfaces.clone_from(&over.interfaces);
    }
    if !over.act_on_load.is_empty() {
        base.act_on_load.clone_from(&over.act_on_load);
    }
    over.wishes.iter().for_each(|w| wish(&mut base.wishes, w));
    base
}

/// Merges the content only: the match of `base` stays.
pub(crate) fn entry(base: &mut InterfaceEntry, over: &InterfaceEntry) {
    base.goal = over.goal.or(base.goal);
    over.wishes.iter().for_each(|w| wish(&mut base.wishes, w));
    for g in &over.groups {
        match base.groups.iter_mut().find(|b| b.name == g.name) {
            Some(b) => b.clone_from(g),
            None => base.groups.push(g.clone()),
        }
    }
}

pub(crate) fn wish(all: &mut Vec<Wish>, over: &Wish) {
    // An ethtool name overrides all kernel features that it covers.
    if let Knob::Feature { name: wide, .. } = &over.knob {
        all.retain(|b| !matches!(&b.knob, Knob::Feature { name, .. } if name != wide && covers(wide, name)));
    }
    match &over.knob {
        Knob::Rings { values } => no_longer_longest(all, values.rx.is_some(), values.tx.is_some()),
        Knob::LongestRings { rx, tx } => without_sizes(all, *rx, *tx),
        _ => {}
    }
    let over = &match split_shared(all, over) {
        Some(rest) => rest,
        None => return,
    };
    let Some(base) = all.iter_mut().find(|b| same_place(&b.knob, &over.knob)) else { return all.push(over.clone()) };
    *base = both_wishes(base, over);
}

/// A size overrides `"max"` of the same ring.
fn no_longer_longest(all: &mut Vec<Wish>, rx_sized: bool, tx_sized: bool) {
    all.retain_mut(|w| match &mut w.knob {
        Knob::LongestRings { rx, tx } => {
            (*rx, *tx) = (*rx && !rx_sized, *tx && !tx_sized);
            *rx || *tx
        }
        _ => true,
    });
}

/// `"max"` overrides the size of the same ring.
fn without_sizes(all: &mut Vec<Wish>, rx: bool, tx: bool) {
    all.retain_mut(|w| match &mut w.knob {
        Knob::Rings { values } => {
            values.rx = values.rx.filter(|_| !rx);
            values.tx = values.tx.filter(|_| !tx);
            let left = *values;
            w.params_by.retain(|name, _| left.iter().any(|(part, _)| part.key == name));
            !values.is_empty()
        }
        _ => true,
    });
}

/// Each parameter of moderation or rings that only `base` names keeps the place where it was configured.
fn both_wishes(base: &Wish, over: &Wish) -> Wish {
    let knob = both(&base.knob, &over.knob);
    let mut params_by = over.params_by.clone();
    let (old, new) = (params(&base.knob), params(&over.knob));
    for (name, value) in params(&knob) {
        let by = base.by_of(&name);
        if !new.contains_key(&name) && old.get(&name) == Some(&value) && *by != over.by {
            params_by.insert(name, by.clone());
        }
    }
    Wish { dev: base.dev.clone(), knob, by: over.by.clone(), params_by }
}

/// Parameters of moderation or rings and their values.
fn params(knob: &Knob) -> BTreeMap<String, u32> {
    match knob {
        Knob::Coalesce { params, .. } => params.clone(),
        Knob::Rings { values } => values.iter().map(|(part, value)| (part.key.to_string(), value)).collect(),
        _ => BTreeMap::new(),
    }
}

/// Queues (or CPUs) that both settings name, if they do not name the same ones, become a setting of their own. Returns
/// what is left of `over`.
fn split_shared(all: &mut Vec<Wish>, over: &Wish) -> Option<Wish> {
    let mut rest = over.clone();
    let mut shared = Vec::new();
    for b in all.iter_mut().filter(|b| std::mem::discriminant(&b.knob) == std::mem::discriminant(&over.knob)) {
        let (Some(has), Some(left)) = (named(&b.knob), named(&rest.knob)) else { continue };
        let common = |q| has.contains(&q) && left.contains(&q);
        if has == left || !has.iter().any(|q| common(*q)) {
            continue;
        }
        let (Some(theirs), Some(ours)) = (only(&b.knob, common), only(&rest.knob, common)) else { continue };
        let (theirs, ours) = (Wish { knob: theirs, ..b.clone() }, Wish { knob: ours, ..over.clone() });
        shared.push(both_wishes(&theirs, &ours));
        b.knob = only(&b.knob, |q| !common(q))?;
        rest.knob = only(&rest.knob, |q| !common(q))?;
    }
    let empty = |w: &Wish| named(&w.knob).is_some_and(|q| q.is_empty());
    all.retain(|w| !empty(w));
    all.extend(shared);
    (!empty(&rest)).then_some(rest)
}

/// The queues that a knob names individually; the CPUs, if the knob is for CPUs.
fn named(knob: &Knob) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    only(knob, |q| {
        all.push(q);
        true
    })?;
    Some(all)
}

/// The knob for these queues or CPUs only.
fn only(knob: &Knob, mut keep: impl FnMut(u32) -> bool) -> Option<Knob> {
    use Knob as K;
    let mut out = knob.clone();
    match &mut out {
        K::Coalesce { queues, .. }
        | K::Napi { queues, .. }
        | K::IrqCpus { queues, .. }
        | K::XpsCpus { queues, .. }
        | K::XpsRxqs { queues, .. }
        | K::RpsCpus { queues, .. }
        | K::RpsFlowCnt { queues, .. } => queues.as_mut()?.retain(|q| keep(*q)),
        K::CpuLatency { cpus, .. } => cpus.retain(|c| keep(c.0)),
        _ => return None,
    }
    Some(out)
}

/// Whether both knobs configure the same setting. Values for all queues and for some queues are kept side by side.
fn same_place(a: &Knob, b: &Knob) -> bool {
    use Knob as K;
    match (a, b) {
        (K::Feature { name: a, .. }, K::Feature { name: b, .. }) => a == b,
        (K::Pause { .. }, K::Pause { .. })
        | (K::Channels { .. }, K::Channels { .. })
        | (K::Rings { .. }, K::Rings { .. })
        | (K::LongestRings { .. }, K::LongestRings { .. })
        | (K::RssHash { .. }, K::RssHash { .. })
        | (K::RfsEntries { .. }, K::RfsEntries { .. }) => true,
        (K::Coalesce { queues: a, .. }, K::Coalesce { queues: b, .. })
        | (K::Napi { queues: a, .. }, K::Napi { queues: b, .. })
        | (K::IrqCpus { queues: a, .. }, K::IrqCpus { queues: b, .. })
        | (K::XpsCpus { queues: a, .. }, K::XpsCpus { queues: b, .. })
        | (K::XpsRxqs { queues: a, .. }, K::XpsRxqs { queues: b, .. })
        | (K::RpsCpus { queues: a, .. }, K::RpsCpus { queues: b, .. })
        | (K::RpsFlowCnt { queues: a, .. }, K::RpsFlowCnt { queues: b, .. }) => a == b,
        (K::RssTable { context: a, .. }, K::RssTable { context: b, .. }) => a == b,
        (K::RssFields { flow: a, .. }, K::RssFields { flow: b, .. }) => a == b,
        (K::FlowRule { location: a, rule: x }, K::FlowRule { location: b, rule: y }) => {
            (a.is_some() && a == b) || (a.is_none() && b.is_none() && x.flow == y.flow && x.fields == y.fields)
        }
        (K::Sysctl { name: a, .. }, K::Sysctl { name: b, .. }) => a.replace('/', ".") == b.replace('/', "."),
        (K::CpuLatency { cpus: a, .. }, K::CpuLatency { cpus: b, .. }) => a == b,
        _ => false,
    }
}

fn both(a: &Knob, b: &Knob) -> Knob {
    use Knob as K;
    match (a, b) {
        (K::Pause { autoneg, rx, tx }, K::Pause { autoneg: a2, rx: r2, tx: t2 }) => {
            K::Pause { autoneg: a2.or(*autoneg), rx: r2.or(*rx), tx: t2.or(*tx) }
        }
        // Most drivers accept either a number of combined queues or numbers by kind, so the later setting replaces the
        // earlier one completely.
        (K::Rings { values }, K::Rings { values: later }) => K::Rings { values: later.or(values) },
        (K::LongestRings { rx, tx }, K::LongestRings { rx: r2, tx: t2 }) => {
            K::LongestRings { rx: *rx || *r2, tx: *tx || *t2 }
        }
        (K::Coalesce { queues, params }, K::Coalesce { params: p2, .. }) => {
            let mut params: BTreeMap<String, u32> = params.clone();
            for (name, value) in p2 {
                params.insert(name.clone(), *value);
            }
            settle_adaptive(&mut params, p2);
            K::Coalesce { queues: queues.clone(), params }
        }
        (K::RssHash { function, key, symmetric }, K::RssHash { function: f2, key: k2, symmetric: s2 }) => K::RssHash {
            function: f2.clone().or_else(|| function.clone()),
            key: k2.clone().or_else(|| key.clone()),
            symmetric: s2.clone().or_else(|| symmetric.clone()),
        },
        (K::Napi { queues, values }, K::Napi { values: v2, .. }) => K::Napi {
            queues: queues.clone(),
            values: NapiValues {
                defer_hard_irqs: v2.defer_hard_irqs.or(values.defer_hard_irqs),
                gro_flush_timeout_ns: v2.gro_flush_timeout_ns.or(values.gro_flush_timeout_ns),
                irq_suspend_timeout_ns: v2.irq_suspend_timeout_ns.or(values.irq_suspend_timeout_ns),
                threaded: v2.threaded.or(values.threaded),
            },
        },
        (_, b) => b.clone(),
    }
}

/// Fixed values that override adaptive moderation switch it off, and vice versa.
fn settle_adaptive(params: &mut BTreeMap<String, u32>, over: &BTreeMap<String, u32>) {
    for (adaptive, fixed) in
        [("use-adaptive-rx", ["rx-usecs", "rx-max-frames"]), ("use-adaptive-tx", ["tx-usecs", "tx-max-frames"])]
    {
        if over.get(adaptive) == Some(&1) {
            params.retain(|name, _| !fixed.contains(&name.as_str()));
        } else if fixed.iter().any(|f| over.contains_key(*f)) && params.get(adaptive) == Some(&1) {
            params.insert(adaptive.to_string(), 0);
        }
    }
}

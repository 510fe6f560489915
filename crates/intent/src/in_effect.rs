//! The settings in effect as a configuration: `persist` writes it when no flag requests anything else.

use ringwise_apply::{Ending, Entry, Verify};
use ringwise_config::Config;
use ringwise_knob::{Setting, VectorName};
use ringwise_model::{ConfiguredBy, CpuId, CpuSet, Intent, Knob, Wish};

/// The configuration from the journals of this boot, oldest first. `None`: nothing is in effect; an empty file would
/// request the default goal.
pub fn in_effect(v: &Verify, history: &[Entry]) -> Option<Config> {
    if v.settings.is_empty() {
        return None;
    }
    let kept = || history.iter().rev().filter(|e| e.this_boot && e.ending == Ending::Kept);
    let requested = || kept().filter_map(|e| Some(&e.requested.as_ref()?.intent));
    // Without it, the next boot would skip settings that were applied with it.
    let allow_disruption = requested().any(|i| i.allow_disruption);
    // The goal is planned again at each boot; the other configured settings keep the values that are in effect.
    let goal = requested().map(|i| i.goal).next();
    let wishes = wishes(v.settings.iter().map(|s| &s.want));
    let mut c =
        Config::of_intent(&Intent { goal: goal.unwrap_or_default(), wishes, allow_disruption, ..Intent::default() });
    c.host.goal = goal;
    Some(c)
}

/// Settings as a user would configure them. Queues with the same value are grouped.
fn wishes<'a>(settings: impl Iterator<Item = &'a Setting>) -> Vec<Wish> {
    let mut out: Vec<Wish> = Vec::new();
    for s in settings {
        let Some((dev, knob)) = knob(s) else { continue };
        let same = out.iter_mut().filter(|w| w.dev == dev).find_map(|w| join(&w.knob, &knob).map(|k| (w, k)));
        match same {
            Some((w, k)) => w.knob = k,
            None => out.push(Wish { dev, knob, by: ConfiguredBy::InEffect, params_by: Default::default() }),
        }
    }
    out
}

/// `None`: the configuration file has no key for it (irqbalance, vectors that serve no queue, threads).
fn knob(s: &Setting) -> Option<(Option<String>, Knob)> {
    let queue = |q: &u32| Some(vec![*q]);
    let of = |of: &VectorName| match of {
        VectorName::Rx(q) => Some(vec![*q]),
        VectorName::Tx(_) | VectorName::Control(_) => None,
    };
    Some(match s.clone() {
        Setting::Channels { dev, rx, tx, combined } => (Some(dev), Knob::Channels { rx, tx, combined }),
        Setting::Rings { dev, values } => (Some(dev), Knob::Rings { values }),
        Setting::Coalesce { dev, params } => (Some(dev), Knob::Coalesce { queues: None, params }),
        Setting::QueueCoalesce { dev, queue: q, params } => (Some(dev), Knob::Coalesce { queues: queue(&q), params }),
        Setting::Feature { dev, name, on } => (Some(dev), Knob::Feature { name, on }),
        Setting::Ntuple { dev, on } => (Some(dev), Knob::Feature { name: "rx-ntuple-filter".into(), on }),
        Setting::Pause { dev, autoneg, rx, tx } => (Some(dev), Knob::Pause { autoneg, rx, tx }),
        Setting::RssTable { dev, table } => {
            (Some(dev), Knob::RssTable { context: None, table: ringwise_model::Table::Explicit(table) })
        }
        Setting::RssContext { dev, context, table: Some(table), .. } => {
            let table = ringwise_model::Table::Explicit(table);
            (Some(dev), Knob::RssTable { context: Some(context), table })
        }
        Setting::RssHash { dev, function, key, symmetric } => (Some(dev), Knob::RssHash { function, key, symmetric }),
        Setting::RssFields { dev, flow, fields } => (Some(dev), Knob::RssFields { flow, fields }),
        Setting::FlowRule { dev, location, rule: Some(rule) } => {
            (Some(dev), Knob::FlowRule { location: Some(location), rule })
        }
        Setting::NapiDevice { dev, values } => (Some(dev), Knob::Napi { queues: None, values }),
        Setting::Napi { dev, of: o, values } => (Some(dev), Knob::Napi { queues: Some(of(&o)?), values }),
        Setting::IrqCpus { dev, of: o, cpus, .. } => (Some(dev), Knob::IrqCpus { queues: Some(of(&o)?), cpus }),
        Setting::XpsCpus { dev, queue: q, cpus } if !cpus.is_empty() => {
            (Some(dev), Knob::XpsCpus { queues: queue(&q), cpus })
        }
        Setting::XpsRxqs { dev, queue: q, rxqs } if !rxqs.is_empty() => {
            (Some(dev), Knob::XpsRxqs { queues: queue(&q), rxqs })
        }
        Setting::RpsCpus { dev, queue: q, cpus } if !cpus.is_empty() => {
            (Some(dev), Knob::RpsCpus { queues: queue(&q), cpus })
        }
        Setting::RpsFlowCnt { dev, queue: q, entries } => (Some(dev), Knob::RpsFlowCnt { queues: queue(&q), entries }),
        Setting::Sysctl { name, value } => (None, Knob::Sysctl { name, value }),
        Setting::CpuLatency { cpu, value } => (None, Knob::CpuLatency { cpus: vec![cpu], value }),
        Setting::RfsEntries { entries } => (None, Knob::RfsEntries { entries }),
        _ => return None,
    })
}

/// Merges two knobs that differ only in their queues.
fn join(a: &Knob, b: &Knob) -> Option<Knob> {
    use Knob as K;
    let queues = |a: &Option<Vec<u32>>, b: &Option<Vec<u32>>| -> Option<Option<Vec<u32>>> {
        let all: CpuSet = a.as_ref()?.iter().chain(b.as_ref()?).map(|q| CpuId(*q)).collect();
        Some(Some(all.iter().map(|c| c.0).collect()))
    };
    Some(match (a, b) {
        (K::Coalesce { queues: a, params: x }, K::Coalesce { queues: b, params: y }) if x == y => {
            K::Coalesce { queues: queues(a, b)?, params: x.clone() }
        }
        (K::Napi { queues: a, values: x }, K::Napi { queues: b, values: y }) if x == y => {
            K::Napi { queues: queues(a, b)?, values: *x }
        }
        (K::IrqCpus { queues: a, cpus: x }, K::IrqCpus { queues: b, cpus: y }) if x == y => {
            K::IrqCpus { queues: queues(a, b)?, cpus: x.clone() }
        }
        (K::XpsCpus { queues: a, cpus: x }, K::XpsCpus { queues: b, cpus: y }) if x == y => {
            K::XpsCpus { queues: queues(a, b)?, cpus: x.clone() }
        }
        (K::XpsRxqs { queues: a, rxqs: x }, K::XpsRxqs { queues: b, rxqs: y }) if x == y => {
            K::XpsRxqs { queues: queues(a, b)?, rxqs: x.clone() }
        }
        (K::RpsCpus { queues: a, cpus: x }, K::RpsCpus { queues: b, cpus: y }) if x == y => {
            K::RpsCpus { queues: queues(a, b)?, cpus: x.clone() }
        }
        (K::RpsFlowCnt { queues: a, entries: x }, K::RpsFlowCnt { queues: b, entries: y }) if x == y => {
            K::RpsFlowCnt { queues: queues(a, b)?, entries: *x }
        }
        (K::CpuLatency { cpus: a, value: x }, K::CpuLatency { cpus: b, value: y }) if x == y => {
            let all: CpuSet = a.iter().chain(b).copied().collect();
            K::CpuLatency { cpus: all.iter().collect(), value: x.clone() }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_with_one_value_stand_together() {
        let irq = |q, c: &str| Setting::IrqCpus {
            dev: "eth1".into(),
            of: VectorName::Rx(q),
            cpus: c.parse().unwrap(),
            on: None,
        };
        let all = [irq(0, "2"), irq(1, "3"), irq(2, "2"), Setting::RfsEntries { entries: 0 }];
        let c = Config::of_intent(&Intent { wishes: wishes(all.iter()), ..Intent::default() });
        let text = ringwise_config::print(&c);
        assert!(text.contains("irq_cpus = { \"0,2\" = \"2\", \"1\" = \"3\" }"), "{text}");
        assert!(text.contains("rfs_entries = 0"), "{text}");
        assert_eq!(ringwise_config::parse("x", &text).unwrap().without_places(), c.without_places());
    }
}

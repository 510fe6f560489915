//! The settings of a device that only hold a value each.

use ringwise_knob::{Address, Setting, features, napi};
use ringwise_model::{Coalesce, Fact, NapiValues, Nic, RssContext};

fn known<'a, T>(f: &'a mut Fact<T>, address: &Address) -> &'a mut T {
    match f {
        Fact::Known(v) => v,
        _ => panic!("{address}: the device has none"),
    }
}

fn put(values: &NapiValues, into: &mut NapiValues) {
    into.defer_hard_irqs = values.defer_hard_irqs.or(into.defer_hard_irqs);
    into.gro_flush_timeout_ns = values.gro_flush_timeout_ns.or(into.gro_flush_timeout_ns);
    into.irq_suspend_timeout_ns = values.irq_suspend_timeout_ns.or(into.irq_suspend_timeout_ns);
    into.threaded = values.threaded.or(into.threaded);
}

/// Whether it was one of these.
pub(super) fn write(nic: &mut Nic, setting: &Setting, address: &Address) -> bool {
    match setting {
        Setting::Coalesce { params, .. } => {
            known(&mut nic.coalesce, address).0.extend(params.clone());
            let now = nic.coalesce.known().cloned().unwrap_or_default();
            // The device's values are those of all queues then.
            if let Fact::Known(all) = &mut nic.queue_coalesce {
                all.values_mut().for_each(|c| *c = now.clone());
            }
        }
        Setting::QueueCoalesce { queue, params, .. } => {
            let all = known(&mut nic.queue_coalesce, address);
            all.entry(*queue).or_insert_with(|| Coalesce(Default::default())).0.extend(params.clone());
        }
        Setting::Feature { name, on, .. } => {
            let f = known(&mut nic.features, address).get_mut(name);
            let f = f.filter(|f| !f.fixed).unwrap_or_else(|| panic!("{address}: nobody can change it"));
            (f.on, f.wanted) = (*on, *on);
        }
        Setting::Pause { autoneg, rx, tx, .. } => {
            let p = known(&mut nic.pause, address);
            (p.autoneg, p.rx, p.tx) = (autoneg.or(p.autoneg), rx.or(p.rx), tx.or(p.tx));
        }
        Setting::RssTable { table, .. } => known(&mut nic.rss, address).table = table.clone(),
        Setting::RssContext { context, table, key, .. } => {
            let all = known(&mut known(&mut nic.rss, address).contexts, address);
            match table {
                Some(t) => drop(all.insert(*context, RssContext { table: t.clone(), key: key.clone() })),
                None => drop(all.remove(context)),
            }
        }
        Setting::Ntuple { on, .. } => {
            let f = known(&mut nic.features, address).get_mut(features::NTUPLE);
            let f = f.unwrap_or_else(|| panic!("{address}: no such feature"));
            (f.on, f.wanted) = (*on, *on);
        }
        Setting::FlowRule { location, rule, .. } => {
            let all = &mut known(&mut nic.rules, address).rules;
            match rule {
                Some(r) => drop(all.insert(*location, r.clone())),
                None => drop(all.remove(location)),
            }
        }
        Setting::Napi { of, values, .. } => {
            let id = napi::instance(nic, *of).map(|i| i.id);
            let all = &mut known(&mut nic.napi, address).instances;
            let i = all.iter_mut().find(|i| Some(i.id) == id).unwrap_or_else(|| panic!("{address}: no such instance"));
            put(values, known(&mut i.values, address));
        }
        Setting::NapiDevice { values, .. } => put(values, &mut known(&mut nic.napi, address).device),
        _ => return false,
    }
    true
}

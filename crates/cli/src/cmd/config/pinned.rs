//! Interrupts that a script has pinned, and XPS masks, where the goal of the file would change them.

use ringwise_config::import::{self, Imported, ImportedValue};
use ringwise_knob::Setting;
use ringwise_model::{ConfiguredBy, CpuId, CpuSet, Movable, Nic, Snapshot, Vector};
use ringwise_plan::Plan;

use super::plannable;

/// Interfaces for which the plan has such a step.
fn changed(s: &Snapshot, imported: &Imported, is: fn(&Setting) -> bool) -> Vec<String> {
    let planned = plannable::plan(&mut import::choose(imported.clone(), s), s);
    let steps = |p: Plan| p.steps.into_iter().filter(|t| is(&t.setting)).collect::<Vec<_>>();
    let mut devs: Vec<String> =
        planned.map_or_else(|_| Vec::new(), steps).iter().filter_map(|t| t.setting.dev().map(str::to_string)).collect();
    devs.sort();
    devs.dedup();
    devs
}

/// Adds the CPUs of the interrupts of interfaces that the goal would pin to other CPUs. If it would leave all of
/// them, the goal alone keeps the layout, also with another number of queues.
pub(super) fn interrupts(s: &Snapshot, out: &mut Imported) {
    for dev in changed(s, out, |t| matches!(t, Setting::IrqCpus { .. })) {
        let Some(n) = s.nic(&dev) else { continue };
        let masks = || n.queue_vectors().filter_map(|v| Some((v, mask(s, v)?)));
        let found: Vec<(&Vector, CpuSet)> = masks().filter(|(_, c)| c.len() == 1).collect();
        several(s, &dev, masks().map(|(_, c)| c), out);
        // A mask that equals the hint was set by the driver.
        if found.iter().all(|(v, c)| v.hint.known() == Some(c)) {
            continue;
        }
        if let Some(b) = s.host.irqbalance.known() {
            let banned = b.banned.known();
            let moves = |v: &Vector| banned.is_none_or(|b| !b.contains(&v.irq.0));
            let all_banned = n.dev.bus_address.as_deref().is_some_and(|a| b.bans_device(a));
            if !all_banned && found.iter().any(|(v, _)| moves(v)) {
                let what = format!("CPUs of the interrupts of {dev}");
                out.leave(&ConfiguredBy::InEffect, what, "irqbalance chooses them while it runs");
                continue;
            }
        }
        for (v, cpus) in found {
            let mut queues: Vec<u32> = v.rx().iter().chain(v.tx()).copied().collect();
            queues.sort_unstable();
            queues.dedup();
            for q in queues {
                queue(n, q, &cpus, v, out);
            }
        }
    }
}

/// A number stands for the receive and the transmit queue, which may have interrupts of their own.
fn queue(n: &Nic, q: u32, cpus: &CpuSet, v: &Vector, out: &mut Imported) {
    let part = ImportedValue::IrqCpus(q, cpus.clone());
    let same = |f: &&import::FoundSetting| f.dev.as_deref() == Some(n.name()) && f.part.key() == part.key();
    match out.found.iter().find(same) {
        Some(f) if f.part == part => {}
        Some(f) => {
            let what = format!("{} {} of interrupt {}", n.name(), part.key(), v.irq.0);
            let why = format!("CPUs {cpus}, but the other interrupt of the queue is on {}", f.part.value());
            out.leave(&ConfiguredBy::InEffect, what, why);
        }
        None => out.add(Some(n.name()), part, &ConfiguredBy::InEffect),
    }
}

/// The CPUs that the interrupt may use, offline ones included: of a mask of several, one may be left online. `None`:
/// unknown, or the interrupt cannot be moved.
fn mask(s: &Snapshot, v: &Vector) -> Option<CpuSet> {
    let cpus = v.asked.known()?;
    (cpus.intersects(&s.topology.online) && !matches!(v.movable, Movable::No(_))).then(|| cpus.clone())
}

/// Lists masks of several CPUs, unless the kernel chooses such masks itself: all CPUs, or those of a node. A goal pins
/// each interrupt to one CPU.
fn several(s: &Snapshot, dev: &str, masks: impl Iterator<Item = CpuSet>, out: &mut Imported) {
    let online = &s.topology.online;
    let nodes = s.topology.nodes.known();
    let of_node = |c: &CpuSet| nodes.is_some_and(|all| all.values().any(|n| n.cpus.intersection(online) == *c));
    let masks = masks.filter(|c| c.len() > 1).map(|c| c.intersection(online));
    let mut found: Vec<String> = masks.filter(|c| c != online && !of_node(c)).map(|c| c.to_string()).collect();
    found.dedup();
    if !found.is_empty() {
        let what = format!("interrupts of {dev} may move among CPUs {}", found.join(" or "));
        out.leave(&ConfiguredBy::InEffect, what, "a goal pins each interrupt to one CPU; `cpus` of [host] limits them");
    }
}

/// Each queue has one CPU of the interface's node, in the order of their numbers. Since Linux 6.15, ice initializes XPS with
/// `napi_config.affinity_mask` (`ice_cfg_xps_tx_ring`), which `netif_set_affinity_auto` of net/core/dev.c fills by
/// `cpumask_local_spread`.
fn locally_spread(s: &Snapshot, n: &Nic, masks: &[(u32, &CpuSet)]) -> bool {
    let node = n.node.known().and_then(|id| s.topology.node(*id));
    let local: Vec<CpuId> = node.map_or_else(Vec::new, |n| n.cpus.intersection(&s.topology.online).iter().collect());
    masks.iter().all(|(q, c)| c.len() == 1 && c.first().is_some_and(|c| local.get(*q as usize) == Some(&c)))
}

/// virtio_net: the online CPUs in as many groups as there are queues, in order, and the first groups one CPU larger if they do not
/// divide evenly; with fewer CPUs than queues one CPU each, from the first again (`virtnet_set_affinity` of drivers/net/virtio_net.c).
fn in_groups(s: &Snapshot, n: &Nic, masks: &[(u32, &CpuSet)]) -> bool {
    if n.driver.known().is_none_or(|d| d != "virtio_net") || masks.len() != n.tx_queues.len() || masks.is_empty() {
        return false;
    }
    let (cpus, queues) = (s.topology.online.len(), masks.len());
    let (each, larger) = ((cpus / queues).max(1), if cpus >= queues { cpus % queues } else { 0 });
    let mut online: Vec<CpuId> = s.topology.online.iter().collect();
    let mut sorted = masks.to_vec();
    sorted.sort_by_key(|(q, _)| *q);
    sorted.iter().enumerate().all(|(i, (_, mask))| {
        let size = (each + usize::from(i < larger)).min(online.len());
        let group: CpuSet = online.iter().take(size).copied().collect();
        online.rotate_left(size);
        !group.is_empty() && group == **mask
    })
}

/// Adds the XPS masks of interfaces for which the plan would change them, unless the driver has chosen them.
pub(super) fn senders(s: &Snapshot, out: &mut Imported) {
    for dev in changed(s, out, |t| matches!(t, Setting::XpsCpus { .. })) {
        let Some(n) = s.nic(&dev) else { continue };
        let masks: Vec<(u32, &CpuSet)> = n.tx_queues.iter().filter_map(|q| Some((q.id, q.xps_cpus.known()?))).collect();
        if masks.iter().all(|(_, c)| c.is_empty()) {
            continue;
        }
        // Drivers call netif_set_xps_queue with the affinity hint of the vector, with the CPU of the queue's number, with a
        // CPU of the node, or with a group of CPUs.
        let by_number = masks.iter().all(|(q, c)| c.len() == 1 && c.first().is_some_and(|c| c.0 == *q));
        let hint = |q: u32| n.vector_of(ringwise_model::Dir::Tx, q).and_then(|v| v.hint.known());
        if by_number
            || locally_spread(s, n, &masks)
            || in_groups(s, n, &masks)
            || masks.iter().all(|(q, c)| hint(*q) == Some(*c))
        {
            let what = format!("XPS of {dev}");
            out.leave(&ConfiguredBy::InEffect, what, "the masks are as a driver sets them, so the goal decides");
            continue;
        }
        for (q, cpus) in masks.into_iter().filter(|(_, c)| !c.is_empty()) {
            out.add(Some(&dev), ImportedValue::XpsCpus(q, cpus.clone()), &ConfiguredBy::InEffect);
        }
    }
}

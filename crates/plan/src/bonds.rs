//! Members of one bond get the same layout: the same number of queues, and either all of them get a new layout or none
//! does.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::{Address, Reason};
use ringwise_model::{Goal, IfIndex, Intent, Nic, Snapshot};

use crate::dev::Dev;
use crate::goal::Share;
use crate::proposals::CommandScope;
use crate::target::PlanBuilder;
use crate::{NotPossible, Obstacle, ProposedChange, channels};

/// Devices of the plan by bond; devices without a bond are omitted.
fn members(devs: &[Dev]) -> BTreeMap<IfIndex, Vec<usize>> {
    let mut out: BTreeMap<IfIndex, Vec<usize>> = BTreeMap::new();
    for (i, d) in devs.iter().enumerate() {
        if let (Some(_), Some(index)) = (d.bond(), d.nic.master) {
            out.entry(index).or_default().push(i);
        }
    }
    out
}

/// `near`: physical cores and threads near a device.
pub(crate) fn shares(devs: &[Dev], near: impl Fn(&Dev) -> (u32, u32)) -> Vec<Share> {
    let max = |d: &Dev| d.nic.channels.known().and_then(channels::most).unwrap_or(u32::MAX);
    let of = |d: &Dev| {
        let (cores, cpus) = near(d);
        Share { cores, cpus, now: d.pairs_now(), max: max(d) }
    };
    let mut out: Vec<Share> = devs.iter().map(of).collect();
    for list in members(devs).values() {
        let least = |f: &dyn Fn(&Share) -> u32| list.iter().map(|i| f(&out[*i])).min().unwrap_or(0);
        let share = Share {
            cores: least(&|s| s.cores),
            cpus: least(&|s| s.cpus),
            now: least(&|s| s.now),
            max: least(&|s| s.max),
        };
        list.iter().for_each(|i| out[*i] = share);
    }
    out
}

/// Runs after each device was decided separately. A change that is not possible for one member is dropped for all
/// members; so is a change that would interrupt the whole bond.
pub(crate) fn level(s: &Snapshot, devs: &mut [Dev], intent: &Intent, out: &mut PlanBuilder) {
    let hardware = hardware_by_master(s, intent);
    for (index, list) in members(devs) {
        let Some(bond) = devs[list[0]].bond() else { continue };
        let name = bond.name();
        let all = hardware.get(&index).map_or(&[][..], Vec::as_slice);
        warn_about_rest(bond, all, devs, &list, intent, out);
        if list.iter().all(|i| devs[*i].channels.is_none()) {
            continue;
        }
        let stays = list.iter().find(|i| devs[**i].rx != devs[list[0]].rx).map(|_| {
            let unlike = list.iter().find(|i| devs[**i].channels.is_none()).unwrap_or(&list[0]);
            let d = &devs[*unlike];
            Obstacle::BondKeepsLayout { bond: name.to_string(), dev: d.name().to_string(), queues: d.rx_now }
        });
        let cut = list.iter().map(|i| devs[*i].name()).find(|n| bond.bond.as_ref().is_some_and(|b| b.depends_on(n)));
        let cut = cut.map(|dev| Reason::OnlyMember { dev: dev.to_string(), bond: name.to_string() });
        if stays.is_none() && cut.is_none() {
            continue;
        }
        for i in list {
            let d = &mut devs[i];
            let Some(setting) = d.channels.take() else { continue };
            let want = d.rx;
            (d.rx, d.tx) = (d.rx_now, d.tx_now);
            match (&stays, &cut) {
                (Some(why), _) => out.refused.push(NotPossible {
                    address: Some(Address::Channels { dev: d.name().to_string() }),
                    what: format!("{} channels", d.name()),
                    why: why.clone(),
                    needed: intent.queues.is_some(),
                    blocked_by: None,
                    settings: 1,
                }),
                (None, Some(reason)) => {
                    let change = ProposedChange {
                        from: ringwise_knob::channels::live(d.nic),
                        setting,
                        rule: "bond".into(),
                        reason: reason.clone(),
                        command: channels::command(intent, &[d.name()], Some(want)),
                        outage: format!("{name} would be cut off"),
                    };
                    out.left_out.push(change, CommandScope::ThisChange);
                }
                (None, None) => {}
            }
        }
    }
}

/// Interfaces with their own queues, by the bond or bridge above them. Empty if the user named no interface: then every
/// member is planned, and nothing has to be looked up.
fn hardware_by_master<'a>(s: &'a Snapshot, intent: &Intent) -> BTreeMap<IfIndex, Vec<&'a str>> {
    let mut out: BTreeMap<IfIndex, Vec<&str>> = BTreeMap::new();
    for n in s.nics.iter().filter(|n| !intent.devs.is_empty() && n.has_own_queues()) {
        if let Some(m) = n.master {
            out.entry(m).or_default().push(n.name());
        }
    }
    out
}

/// Warns about members that are not in the plan, or whose number of queues differs and was not requested to change.
fn warn_about_rest(bond: &Nic, all: &[&str], devs: &[Dev], list: &[usize], intent: &Intent, out: &mut PlanBuilder) {
    let name = bond.name();
    let planned: Vec<&str> = list.iter().map(|i| devs[*i].name()).collect();
    let in_plan = planned.iter().copied().collect::<BTreeSet<_>>();
    let rest: Vec<&str> = all.iter().copied().filter(|n| !in_plan.contains(n)).collect();
    if !rest.is_empty() {
        out.warnings.push(format!(
            "{name}: {} {} not in this plan, so the members may get different layouts",
            rest.join(" "),
            if rest.len() == 1 { "is" } else { "are" }
        ));
    }
    let counts: Vec<u32> = list.iter().map(|i| devs[*i].rx).collect();
    if counts.windows(2).any(|w| w[0] != w[1]) && intent.goal == Goal::Balanced && intent.queues.is_none() {
        let each = planned.iter().zip(&counts).map(|(n, c)| format!("{n} has {c}")).collect::<Vec<_>>().join(", ");
        let least = counts.iter().min().copied().unwrap_or(1);
        out.warnings.push(format!(
            "{name}: its members have different numbers of queues ({each}); the same layout needs equal numbers (--queues \
             {least} --allow-disruption)"
        ));
    }
}

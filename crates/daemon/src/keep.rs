//! What has to be written so that the host is as applied again. Pure: it takes the host as read and what was heard.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_apply::{BalancedSetting, SettingInEffect, Verify};
use ringwise_knob::{
    Address, FOR_GROUPS, FOR_SHARES, IfRefused, ManualChange, Match, Reason, Setting, SettingMap, Step, VectorName,
    diff, irq,
};
use ringwise_model::{CpuSet, Nic, Snapshot};

use crate::evidence::NotificationEvidence;
use crate::losses::{LossContext, SettingLoss, judge};

/// What the service knows when it looks.
#[derive(Debug, Clone, Copy)]
pub struct KeepInput<'a> {
    /// The host as it is now.
    pub now: &'a Snapshot,
    /// What is in effect, with what the service itself has written.
    pub in_effect: &'a Verify,
    /// What people and the configuration have applied, without the transactions of the service.
    pub base: &'a Verify,
    /// Settings in effect that the service has moved because of the load.
    pub balanced: &'a [BalancedSetting],
    /// Interfaces with a group that names a program or unit.
    pub programs: &'a BTreeSet<String>,
    /// What was heard since the last look.
    pub evidence: &'a NotificationEvidence,
    /// Interfaces that were set up again since they were written to.
    pub anew: &'a BTreeSet<String>,
    /// Interfaces that the service leaves alone.
    pub resting: &'a BTreeSet<String>,
    /// CPUs that were isolated while the service ran, so after the layout was applied.
    pub newly_isolated: &'a CpuSet,
    /// Values that were seen as manual changes before. They stay manual changes until the device is set up again.
    pub known: &'a SettingMap,
}

/// What follows from it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeepDecision {
    /// Steps that write again what was applied, in writing order.
    pub steps: Vec<Step>,
    /// Present values of settings that only the service had changed, for a layout that is not needed any more. Something else has
    /// undone the change; nothing has to be written, but these values have to be recorded as those in effect.
    pub undone: Vec<Setting>,
    /// Interrupts that hold on interfaces whose ban was lost: irqbalance may move them until the ban is in effect.
    pub held: Vec<Setting>,
    /// Interfaces that need a new plan, because what was applied does not fit them any more.
    pub plan: BTreeSet<String>,
    /// Interfaces whose flows need a new plan, because a program has started, or listens on another port.
    pub flows: BTreeSet<String>,
    /// Manual changes. They stay.
    pub manual: Vec<ManualChange>,
    /// Interfaces of which something was lost, and why.
    pub lost: BTreeMap<String, SettingLoss>,
}

/// Decides interface by interface.
pub fn decide(look: KeepInput) -> KeepDecision {
    let mut out = KeepDecision::default();
    let mut target = SettingMap::new();
    let base = by_device(look.base);
    for (dev, settings) in by_device(look.in_effect) {
        // While it is paused, what was heard is forgotten: what differs is judged when the pause ends.
        let Some(nic) = look.now.nic(dev).filter(|_| !look.resting.contains(dev)) else { continue };
        let mut found = losses(look, nic, &settings);
        // What steers flows to a program may differ from what was applied; with other CPUs it is planned again.
        let other_plan = look.programs.contains(dev) && look.evidence.cpus;
        let fits = !other_plan && base.get(dev).is_some_and(|b| fits(b, nic, look));
        let undone = if fits { take_undone(&mut found, look) } else { Vec::new() };
        let manual: Vec<ManualChange> =
            found.iter().filter(|(_, l)| *l == SettingLoss::Manual).filter_map(|(s, _)| s.manual_change()).collect();
        // What cannot be read now may be as applied.
        let unread = found.iter().filter(|(_, l)| *l == SettingLoss::Unread).filter_map(|(s, _)| s.want.address());
        let stays: BTreeSet<Address> = manual.iter().filter_map(ManualChange::address).chain(unread).collect();
        out.manual.extend(manual);
        out.undone.extend(undone);
        // Without its ban, irqbalance moves everything else again.
        let losses = found.iter().map(|(_, l)| *l).filter(|l| l.is_lost());
        let first = losses.reduce(|a, b| if b == SettingLoss::Ban { b } else { a });
        out.lost.extend(first.map(|l| (dev.to_string(), l)));
        let lost = first.is_some();
        let other_queues = other_channels(&settings) && found.iter().any(|(_, l)| *l == SettingLoss::Absent);
        let heard = look.evidence.of(&nic.dev);
        let unheard = look.evidence.is_incomplete() && look.programs.contains(dev);
        if unheard || look.evidence.programs.contains(dev) {
            out.flows.insert(dev.to_string());
        }
        if fits {
            // Also brings queues home that had to leave while a CPU was offline.
            let own = base.get(dev).into_iter().flatten().filter(|s| !s.how.holds());
            let wanted = own.filter_map(|s| Some((s.want.address()?, s.want.clone())));
            let moved = |a: &Address| balanced(look, a).is_some_and(|t| t.is_in_effect(look.now));
            let kept =
                |a: &Address| !stays.contains(a) && !moved(a) && !follows_program(look, a) && may_write(a, look, dev);
            target.extend(wanted.filter(|(a, _)| kept(a)));
            // A program may listen elsewhere than when its rules were applied: what is in effect counts.
            let steering =
                settings.iter().filter(|s| !s.how.holds()).filter_map(|s| Some((s.want.address()?, s.want.clone())));
            target.extend(
                steering.filter(|(a, _)| !stays.contains(a) && follows_program(look, a) && may_write(a, look, dev)),
            );
            target.extend(
                only_by_the_service(look, dev)
                    .filter(|(a, _)| !stays.contains(a) && !follows_program(look, a) && may_write(a, look, dev)),
            );
            if first == Some(SettingLoss::Ban) {
                let holds = base.get(dev).into_iter().flatten().filter(|s| s.how.holds());
                out.held.extend(holds.map(|s| &s.want).filter(|s| matches!(s, Setting::IrqCpus { .. })).cloned());
            }
        } else if lost || other_queues || heard.channels || look.evidence.cpus {
            out.plan.insert(dev.to_string());
        }
    }
    let applied: BTreeMap<Address, u64> =
        look.base.settings.iter().filter_map(|s| Some((s.want.address()?, s.transaction))).collect();
    let changes = diff(look.now, &target).into_iter();
    out.steps = changes
        .map(|c| Step {
            rule: rule(look, &c.address).into(),
            reason: Reason::AppliedBefore { transaction: applied.get(&c.address).copied().unwrap_or_default() },
            source: ringwise_apply::SERVICE.into(),
            interrupts_traffic: c.address.interrupts_traffic_on(look.now),
            if_refused: IfRefused::Skip,
            instead: Vec::new(),
            setting: c.to,
            from: c.from,
        })
        .collect();
    out
}

/// What the service made for a layout that is not needed any more, with the value before: the weights of a table while a CPU was
/// offline.
fn only_by_the_service<'a>(look: KeepInput<'a>, dev: &'a str) -> impl Iterator<Item = (Address, Setting)> + 'a {
    let own = look.in_effect.made.iter().filter(|m| m.as_left).filter_map(|m| Some((m.address()?, m)));
    own.filter(move |(a, _)| a.dev() == Some(dev) && !in_base(look, a)).map(|(a, m)| (a, m.before.clone()))
}

/// Takes out changes of the service that are not needed any more and that something else has undone: a driver that was loaded
/// again while the table had weights, before the CPU came back. Returns the present values.
fn take_undone(found: &mut Vec<(&SettingInEffect, SettingLoss)>, look: KeepInput) -> Vec<Setting> {
    let made = |a: &Address| look.in_effect.made.iter().find(|m| m.address().as_ref() == Some(a)).map(|m| &m.before);
    let before = |a: &Address| balanced(look, a).map(|t| &t.base).or_else(|| made(a));
    let is_undone = |(s, loss): &(&SettingInEffect, SettingLoss)| {
        let (Some(address), Some(now)) = (s.want.address(), s.now.known()) else { return false };
        let made = before(&address).filter(|_| !in_base(look, &address) && !follows_program(look, &address));
        made.is_some_and(|before| now == before || *loss == SettingLoss::Reset)
    };
    found.extract_if(.., |l| is_undone(l)).filter_map(|(s, _)| s.now.known().cloned()).collect()
}

/// The setting, if the service has moved it because of the load.
fn balanced<'a>(look: KeepInput<'a>, address: &Address) -> Option<&'a BalancedSetting> {
    look.balanced.iter().find(|t| t.address == *address)
}

/// What decides which queue a flow gets.
pub(crate) fn steers_flows(address: &Address) -> bool {
    matches!(
        address,
        Address::FlowRule { .. } | Address::RssContext { .. } | Address::RssTable { .. } | Address::Ntuple { .. }
    )
}

/// Whether the service may have written another value than the one that was applied, because a program listens elsewhere.
fn follows_program(look: KeepInput, address: &Address) -> bool {
    steers_flows(address) && address.dev().is_some_and(|d| look.programs.contains(d))
}

/// Whether people or the configuration have applied this setting.
fn in_base(look: KeepInput, address: &Address) -> bool {
    look.base.settings.iter().any(|s| s.want.address().as_ref() == Some(address))
}

/// What belongs to a layout stays marked as such, so that the plan for another layout removes it.
fn rule(look: KeepInput, address: &Address) -> &'static str {
    let mut made = look.base.made.iter().chain(look.in_effect.made.iter().filter(|_| follows_program(look, address)));
    match made.any(|m| m.address().as_ref() == Some(address)) {
        true if matches!(address, Address::RssTable { .. }) => FOR_SHARES,
        true => FOR_GROUPS[0],
        false => "keep",
    }
}

/// Settings in effect by interface. Those of the host itself are not kept: nothing resets them.
fn by_device(v: &Verify) -> BTreeMap<&str, Vec<&SettingInEffect>> {
    let mut out: BTreeMap<&str, Vec<&SettingInEffect>> = BTreeMap::new();
    for s in &v.settings {
        if let Some(dev) = s.want.dev() {
            out.entry(dev).or_default().push(s);
        }
    }
    out
}

fn losses<'a>(look: KeepInput, nic: &Nic, settings: &[&'a SettingInEffect]) -> Vec<(&'a SettingInEffect, SettingLoss)> {
    let ban = |how: fn(&Match) -> bool| {
        settings.iter().any(|s| matches!(s.want, Setting::IrqbalanceBan { .. }) && how(&s.how))
    };
    let about = LossContext {
        now: look.now,
        heard: look.evidence.of(&nic.dev),
        anew: look.anew.contains(nic.name()),
        other_channels: other_channels(settings),
        cpus: look.evidence.cpus,
        incomplete: look.evidence.is_incomplete(),
        ban_lost: ban(|how| *how == Match::Differs),
        ban_unread: ban(|how| matches!(how, Match::Unknown(_))),
    };
    let known = |s: &SettingInEffect| {
        let before = s.want.address().and_then(|a| look.known.get(&a));
        !about.anew && before.is_some_and(|b| s.now.known() == Some(b))
    };
    let judged = |s: &'a SettingInEffect| match judge(s, about)? {
        SettingLoss::Reset if known(s) => Some((s, SettingLoss::Manual)),
        SettingLoss::CpuGone if known(s) && !about.cpus => Some((s, SettingLoss::Manual)),
        loss => Some((s, loss)),
    };
    settings.iter().filter_map(|s| judged(s)).collect()
}

/// Channel counts that were applied are not the present ones, or queues that were applied to are gone.
fn other_channels(settings: &[&SettingInEffect]) -> bool {
    settings.iter().any(|s| match &s.want {
        Setting::Channels { .. } => !s.how.holds(),
        _ => s.how == Match::Gone,
    })
}

/// Whether what was applied can be written to this interface as it is now: each of its queues exists, no queue is without a
/// setting, and every CPU is online.
fn fits(base: &[&SettingInEffect], nic: &Nic, look: KeepInput) -> bool {
    let now = look.now;
    let exist = base.iter().all(|s| s.how != Match::Gone);
    let cpus = |s: &Setting| match s {
        Setting::IrqCpus { cpus, .. } => Some(cpus.clone()),
        _ => None,
    };
    let isolated = now.topology.isolated_all();
    let online = base.iter().filter_map(|s| cpus(&s.want)).all(|c| c.iter().all(|c| now.topology.online.contains(c)));
    // A setting that holds on an isolated CPU may be meant so, unless the CPU was isolated later.
    let newly_isolated = base.iter().any(|s| {
        let since = if s.how == Match::Differs { &isolated } else { look.newly_isolated };
        cpus(&s.want).is_some_and(|c| !c.intersection(since).is_empty())
    });
    let own = |s: &&SettingInEffect| match s.want.address() {
        Some(Address::IrqCpus { of, .. }) => irq::vector(nic, of).and_then(irq::canonical),
        _ => None,
    };
    let interrupts: BTreeSet<VectorName> = base.iter().filter_map(own).collect();
    let covered =
        interrupts.is_empty() || nic.queue_vectors().filter_map(irq::canonical).all(|of| interrupts.contains(&of));
    !base.is_empty() && exist && online && !newly_isolated && covered
}

/// Traffic is interrupted only for an interface that was just set up again, whose traffic has been interrupted anyway.
fn may_write(address: &Address, look: KeepInput, dev: &str) -> bool {
    !address.interrupts_traffic_on(look.now) || look.anew.contains(dev)
}

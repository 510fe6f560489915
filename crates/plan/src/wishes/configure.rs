//! Rules that span several configured settings, and adding the settings to the plan.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::{
    Address, Family, Reason, ResetBy, Setting, SideEffect, VectorName, alike, coalesce as knob_coalesce, compare,
    configured_in, features, live,
};
use ringwise_model::{ConfiguredBy, Fact, Intent, Snapshot};

use super::{ConfiguredSetting, ConfiguredSettings, RULE};
use crate::dev::{Dev, LearnedIndex, named};
use crate::machine::Machine;
use crate::target::{PlanBuilder, StepOrigin};
use crate::wanted::RequestedSetting;
use crate::words::places;
use crate::{InvalidSetting, Mistake, NotPossible, ProposedChange, channels, control, moderation};

/// Each switch of adaptive moderation with the fixed values that it would overwrite.
const ADAPTIVE: [(&str, [&str; 2]); 2] =
    [("use-adaptive-rx", ["rx-usecs", "rx-max-frames"]), ("use-adaptive-tx", ["tx-usecs", "tx-max-frames"])];

/// Applies rules between settings at different addresses, once all settings are known.
pub(super) fn together(s: &Snapshot, devs: &[Dev], intent: &Intent, laid: &mut ConfiguredSettings) {
    let addresses: Vec<Address> = laid.by.keys().cloned().collect();
    for a in &addresses {
        adaptive_off_first(s, laid, a);
    }
    for d in devs {
        per_queue_all(d, laid);
        not_taken(s, d, intent, laid);
        ntuple_for_rules(s, d, laid);
    }
}

/// Fixed values are ignored, or refused, while the driver adapts.
fn adaptive_off_first(s: &Snapshot, laid: &mut ConfiguredSettings, address: &Address) {
    let Some(one) = laid.by.get_mut(address) else { return };
    let now = match live(s, address) {
        Fact::Known(Setting::Coalesce { params, .. } | Setting::QueueCoalesce { params, .. }) => params,
        _ => Default::default(),
    };
    let (Setting::Coalesce { params, .. } | Setting::QueueCoalesce { params, .. }) = &mut one.setting else { return };
    for (switch, fixed) in ADAPTIVE {
        let Some(name) = fixed.into_iter().find(|f| params.contains_key(*f)) else { continue };
        match params.get(switch) {
            Some(0) => {}
            Some(_) => laid.wrong.push(InvalidSetting {
                said: places(&one.by),
                what: format!("{address} {name} {}", params[name]),
                mistake: Mistake::AdaptiveOverwrites { switch: switch.to_string() },
            }),
            None if now.get(switch).is_some_and(|v| *v != 0) => {
                params.insert(switch.to_string(), 0);
                one.with = Some(SideEffect::AdaptiveOff);
            }
            None => {}
        }
    }
}

/// Moderation that the driver is known to refuse or to round is still requested as configured: the kernel decides. Other
/// parameters of the same request must not be lost.
fn not_taken(s: &Snapshot, d: &Dev, intent: &Intent, laid: &mut ConfiguredSettings) {
    let address = Address::Coalesce { dev: d.name().to_string() };
    let Some(one) = laid.by.get_mut(&address).filter(|o| !compare(&o.setting, s).holds()) else { return };
    let Setting::Coalesce { params, .. } = &one.setting else { return };
    let (refused, rest) = moderation::not_taken(d, params);
    one.instead = rest;
    let (by, driver) = (one.by.clone(), moderation::driver(d.nic));
    for n in refused {
        let what = format!("{address} {}", n.what);
        if intent.strict {
            laid.wrong.push(InvalidSetting { said: places(&by), what, mistake: n.mistake });
        } else {
            let (found, right) = (n.mistake.found(), n.mistake.right());
            laid.warnings.push(format!("{what}: {found}; {right} ({})", configured_in(&by)));
        }
    }
    for (k, v) in params {
        if let Some(kept) = knob_coalesce::always_rounded(driver, k, *v).filter(|kept| kept != v) {
            let driver = driver.unwrap_or_default();
            laid.warnings.push(format!("{address} {k} {v}: {driver} rounds it to {kept} ({})", configured_in(&by)));
        }
    }
}

/// If single queues have their own values, the device's values are written to every other queue explicitly: many drivers
/// report the values of one queue as the device's, and a write to the device overwrites the queues.
fn per_queue_all(d: &Dev, laid: &mut ConfiguredSettings) {
    let dev = d.name().to_string();
    let Some(all) = d.nic.queue_coalesce.known().filter(|all| !all.is_empty()) else { return };
    let single = laid.alike(&Address::QueueCoalesce { dev: dev.clone(), queue: 0 }).next().is_some();
    let whole = Address::Coalesce { dev: dev.clone() };
    let Some(ConfiguredSetting { setting: Setting::Coalesce { params, .. }, by, with, .. }) =
        laid.by.get_mut(&whole).filter(|_| single && d.groups.is_empty())
    else {
        return;
    };
    let of_queue = |k: &String| !k.starts_with("use-") && all.values().all(|c| c.0.contains_key(k));
    let mine: BTreeMap<String, u32> =
        params.iter().filter(|(k, _)| of_queue(k)).map(|(k, v)| (k.clone(), *v)).collect();
    params.retain(|k, _| !of_queue(k));
    let (by, with, empty) = (by.clone(), *with, params.is_empty());
    if empty {
        laid.by.remove(&whole);
    }
    for queue in 0..d.pairs() as u32 {
        let address = Address::QueueCoalesce { dev: dev.clone(), queue };
        match laid.by.get_mut(&address) {
            Some(ConfiguredSetting { setting: Setting::QueueCoalesce { params, .. }, .. }) => {
                for (k, v) in &mine {
                    params.entry(k.clone()).or_insert(*v);
                }
            }
            _ if mine.is_empty() => {}
            _ => {
                let setting = Setting::QueueCoalesce { dev: dev.clone(), queue, params: mine.clone() };
                laid.by.insert(
                    address,
                    ConfiguredSetting { setting, by: by.clone(), with, instead: Vec::new(), queues: BTreeSet::new() },
                );
            }
        }
    }
}

/// A device accepts rules only while the feature is on.
fn ntuple_for_rules(s: &Snapshot, d: &Dev, laid: &mut ConfiguredSettings) {
    let dev = d.name().to_string();
    let there = d.nic.rules.known().is_some_and(|r| !r.rules.is_empty());
    if let Some(one) = laid.by.get_mut(&Address::Ntuple { dev: dev.clone() }).filter(|_| there)
        && let Setting::Ntuple { on: false, .. } = one.setting
    {
        one.with = Some(SideEffect::RulesMayGo);
    }
    let first = laid.alike(&Address::FlowRule { dev: dev.clone(), location: 0 }).next();
    let Some(by) = first.map(|(_, one)| one.by.clone()) else { return };
    let address = Address::Ntuple { dev: dev.clone() };
    if let Some(ConfiguredSetting { setting: Setting::Ntuple { on: false, .. }, by: off, .. }) = laid.by.get(&address) {
        laid.wrong.push(InvalidSetting {
            said: places(off),
            what: format!("{dev} {} off", features::NTUPLE),
            mistake: Mistake::RulesNeedFeature { by },
        });
        return;
    }
    let off = matches!(live(s, &address), Fact::Known(Setting::Ntuple { on: false, .. }));
    let fixed = d.nic.features.known().and_then(|f| f.get(features::NTUPLE)).is_some_and(|f| f.fixed);
    if off && !fixed && !laid.by.contains_key(&address) {
        let setting = Setting::Ntuple { dev, on: true };
        let with = Some(SideEffect::RulesNeedIt);
        laid.by.insert(address, ConfiguredSetting { setting, by, with, instead: Vec::new(), queues: BTreeSet::new() });
    }
}

impl ConfiguredSettings {
    /// Settings of the same kind and device from this address on.
    fn alike(&self, first: &Address) -> impl Iterator<Item = (&Address, &ConfiguredSetting)> {
        alike(self.by.range(first..), first)
    }

    /// The CPU of each queue whose interrupt is configured, so that other queues are placed around it. For a set of
    /// several CPUs: the current CPU if the set contains it.
    pub(crate) fn pins(&self, m: &Machine, d: &Dev) -> Vec<(usize, Option<usize>)> {
        let mut out = Vec::new();
        for (_, one) in self.alike(&Address::IrqCpus { dev: d.name().to_string(), of: VectorName::Rx(0) }) {
            let Setting::IrqCpus { cpus, .. } = &one.setting else { continue };
            for q in &one.queues {
                let at = match cpus.len() {
                    1 => cpus.first().and_then(|c| m.at(c)),
                    _ => d.pair_now(m, *q).filter(|c| cpus.contains(m.cpus[*c])),
                };
                out.push((*q as usize, at));
            }
        }
        out
    }

    /// All addresses of all configured settings.
    pub(crate) fn names(&self, s: &Snapshot) -> BTreeSet<Address> {
        let mut out = BTreeSet::new();
        for one in self.by.values() {
            out.extend(crate::manual_changes::names(s, &one.setting));
        }
        out
    }
}

/// The file or the command line.
pub(crate) fn source(by: &[ConfiguredBy]) -> String {
    by.last().unwrap_or(&ConfiguredBy::Unknown).source().to_string()
}

/// Adds the configured settings to the plan; settings that interrupt traffic only with the user's permission.
pub(crate) fn configure(
    s: &Snapshot,
    devs: &[Dev],
    laid: ConfiguredSettings,
    intent: &Intent,
    learned: &LearnedIndex,
    out: &mut PlanBuilder,
) {
    out.refused.extend(laid.refused);
    out.warnings.extend(laid.warnings);
    // Writing moderation or rings of the whole device resets the values of its queues.
    let mut again: BTreeMap<String, Vec<(&'static [Family], ResetBy)>> = BTreeMap::new();
    for (address, one) in laid.by {
        let dev = address.dev().and_then(|n| named(devs, n));
        let (mut setting, mut instead, live) = (one.setting, one.instead, live(s, &address));
        // Refused before: the part that was kept then stays, and the rest is reported.
        let known = dev.and_then(|d| learned.why(d.nic, &setting).map(|why| (d, why)));
        if let Some((d, why)) = known.filter(|_| !compare(&setting, s).holds())
            && let Some(i) = instead.iter().position(|other| learned.why(d.nic, other).is_none())
        {
            let other = instead.remove(i);
            let why = why.instead(&other).configured(&one.by);
            let what = format!("{address} {}", setting.value_text());
            out.refused.push(NotPossible { address: None, what, why, needed: true, blocked_by: None, settings: 1 });
            setting = other;
        }
        let matched = compare(&setting, s);
        let channels = dev.is_some_and(|d| d.channels.is_some());
        let before = address.dev().and_then(|n| again.get(n)).into_iter().flatten();
        let before = before.copied().find(|(families, _)| families.contains(&address.family()));
        let resets = channels && Address::Channels { dev: String::new() }.invalidates().contains(&address.family());
        let after = if resets { ResetBy::Channels } else { before.map_or(ResetBy::Channels, |b| b.1) };
        let anew = resets || before.is_some();
        let holds = matched.holds() && !anew;
        if address.interrupts_traffic_of(dev.map(|d| d.nic))
            && !holds
            && !intent.allow_disruption
            && !matches!(live, Fact::Unknown(_))
        {
            propose(intent, &setting, live, &one.by, dev.map(|d| d.nic), out);
            continue;
        }
        if !holds && let Some(n) = address.dev() {
            match address {
                Address::Rings { .. } => {
                    again.entry(n.to_string()).or_default().push((address.invalidates(), ResetBy::Rings));
                }
                Address::Coalesce { .. } => {
                    again.entry(n.to_string()).or_default().push((&[Family::Coalesce], ResetBy::Coalesce));
                }
                _ => {}
            }
        }
        let w = RequestedSetting { setting, live, matched, anew, needed: true };
        out.enter(dev.map(|d| d.nic), learned, w, || StepOrigin {
            rule: RULE,
            source: source(&one.by),
            reason: Reason::Configured { by: one.by, with: one.with },
            instead,
            after,
            named: true,
        });
    }
}

/// Proposes a configured setting that interrupts traffic, without the user's permission for that.
pub(crate) fn propose(
    intent: &Intent,
    setting: &Setting,
    from: Fact<Setting>,
    by: &[ConfiguredBy],
    nic: Option<&ringwise_model::Nic>,
    out: &mut PlanBuilder,
) {
    let driver = nic.and_then(|n| n.driver.known()).map(String::as_str);
    let (command, scope) = channels::with_word(intent, by);
    let change = ProposedChange {
        setting: setting.clone(),
        from,
        rule: RULE.into(),
        reason: Reason::Configured { by: by.to_vec(), with: None },
        command,
        outage: control::outage(driver).to_string(),
    };
    out.left_out.push(change, scope);
}

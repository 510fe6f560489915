//! New plans for interfaces whose applied settings do not fit any more, and for interfaces that appeared.

use std::collections::BTreeSet;
use std::sync::Arc;

use ringwise_apply::{Store, Verify};
use ringwise_discover::Options;
use ringwise_intent::{AppliedPart, AppliedRecord, ManualChangePolicy, Planning, PlanningHost, Wanted};
use ringwise_knob::{IfRefused, ManualChange, Origin, Setting, Step};
use ringwise_model::{Intent, Nic, Snapshot};
use ringwise_plan::Plan;
use ringwise_sys::Host;

/// What a new plan needs besides the host.
pub(crate) struct Basis<'a> {
    pub host: &'a Arc<dyn Host>,
    pub store: &'a Store,
    /// The configuration as it was last read.
    pub wanted: Option<&'a Wanted>,
    pub in_effect: &'a Verify,
    /// Manual changes, which stay.
    pub manual: &'a [ManualChange],
    /// Interfaces that were set up again: their traffic has been interrupted anyway.
    pub anew: &'a BTreeSet<String>,
}

/// Steps of new plans.
#[derive(Debug, Default)]
pub(crate) struct Replanned {
    pub steps: Vec<Step>,
    pub already: Vec<Setting>,
    /// Why some interfaces have no new plan.
    pub why_not: Vec<String>,
}

/// The intents in effect.
pub(crate) fn standing(s: &Snapshot, basis: &Basis) -> AppliedRecord {
    AppliedRecord::live(s, Some(basis.in_effect), basis.store, basis.store.learned().unwrap_or_default())
}

/// What the configuration requests of the host as it is now: a pattern may match more interfaces than when it was applied.
/// `None`: there is no configuration, or it does not fit this host.
pub(crate) fn configured(s: &Snapshot, basis: &Basis) -> Option<Intent> {
    basis.wanted.filter(|w| w.file().is_some()).and_then(|w| w.intent(s).ok()).map(|(intent, _)| intent)
}

/// The part that decides an interface. `None`: nothing was requested for it.
pub(crate) fn part<'a>(parts: &'a [AppliedPart], dev: &str, configured: Option<&Intent>) -> Option<&'a AppliedPart> {
    let named = parts.iter().find(|p| !p.whole && p.devs.iter().any(|d| d == dev));
    let covers = |devs: &[String]| devs.is_empty() || devs.iter().any(|d| d == dev);
    let now = |p: &&AppliedPart| p.from_config && configured.is_some_and(|i| covers(&i.devs));
    named.or_else(|| parts.iter().find(|p| p.whole && (covers(&p.devs) || now(p))))
}

/// The whole host, as a plan needs it.
fn read(basis: &Basis) -> Result<(Options, Snapshot), String> {
    let options = Options { follow: basis.wanted.map(Wanted::named).unwrap_or_default(), ..Options::all() };
    let s = ringwise_discover::snapshot(basis.host, &options).map_err(|e| e.to_string())?;
    Ok((options, s))
}

/// Plans each part of the intent again, with manual changes kept, and takes the steps of these interfaces.
pub(crate) fn plan_again(devs: &BTreeSet<String>, basis: &Basis) -> Result<Replanned, String> {
    let (options, s) = read(basis)?;
    let standing = standing(&s, basis);
    let parts = standing.parts(&s);
    let wanted = configured(&s, basis);
    let mut out = Replanned::default();
    if parts.unknown.is_some() && parts.list.is_empty() {
        out.why_not.push("what was requested was recorded by an earlier version: run ringwise apply once".into());
    }
    for p in &parts.list {
        let own = |dev: &&String| part(&parts.list, dev, wanted.as_ref()).is_some_and(|x| std::ptr::eq(x, p));
        let own: BTreeSet<String> = devs.iter().filter(own).cloned().collect();
        if own.is_empty() {
            continue;
        }
        match plan_part(p, &own, &s, &standing, &options, basis) {
            Ok(found) => {
                out.steps.extend(found.steps);
                out.already.extend(found.already);
            }
            Err(why) => out.why_not.push(why),
        }
    }
    Ok(out)
}

/// Plans the part that decides an interface, with its intent adjusted and manual changes kept. `None`: nothing was requested for it, or it
/// has no link.
pub(crate) fn plan_adjusted(dev: &str, basis: &Basis, adjust: &dyn Fn(&mut Intent)) -> Result<Option<Plan>, String> {
    let (options, s) = read(basis)?;
    let standing = standing(&s, basis);
    let parts = standing.parts(&s);
    let Some(p) = part(&parts.list, dev, configured(&s, basis).as_ref()) else { return Ok(None) };
    let mut intent = intent(p, &s, basis)?;
    adjust(&mut intent);
    plan_intent(intent, &BTreeSet::from([dev.to_string()]), &s, &standing, &options, basis)
}

fn plan_part(
    p: &AppliedPart,
    own: &BTreeSet<String>,
    s: &Snapshot,
    standing: &AppliedRecord,
    options: &Options,
    basis: &Basis,
) -> Result<Replanned, String> {
    let anew = own.iter().any(|d| basis.anew.contains(d));
    let mut intent = intent(p, s, basis)?;
    intent.allow_disruption = anew && p.allowed_disruption;
    let Some(plan) = plan_intent(intent, own, s, standing, options, basis)? else { return Ok(Replanned::default()) };
    let of = |s: &Setting| s.dev().is_some_and(|d| own.contains(d));
    let mut steps = permitted(&plan.steps, own, basis.anew);
    // A setting that is refused now must not undo the rest.
    steps.iter_mut().for_each(|s| s.if_refused = IfRefused::Skip);
    let already = ringwise_intent::unchanged_settings(&plan).into_iter().filter(|s| of(s)).collect();
    Ok(Replanned { steps, already, why_not: Vec::new() })
}

/// The steps of the interfaces `own` that may be written without asking: traffic is interrupted only on those that were set up
/// again.
fn permitted(steps: &[Step], own: &BTreeSet<String>, anew: &BTreeSet<String>) -> Vec<Step> {
    let within = |s: &Setting, devs: &BTreeSet<String>| s.dev().is_some_and(|d| devs.contains(d));
    let may_write = |s: &Step| !s.interrupts_traffic || within(&s.setting, anew);
    // Rules of a device whose feature stays off would be refused, and a table would leave out queues that only they reach.
    let is_ntuple = |s: &&Step| matches!(s.setting, Setting::Ntuple { .. });
    let without_rules: BTreeSet<&str> =
        steps.iter().filter(is_ntuple).filter(|s| !may_write(s)).filter_map(|s| s.setting.dev()).collect();
    let waits = |s: &Setting| {
        matches!(s, Setting::FlowRule { .. } | Setting::RssTable { .. } | Setting::RssContext { .. })
            && s.dev().is_some_and(|d| without_rules.contains(d))
    };
    steps.iter().filter(|s| within(&s.setting, own) && may_write(s) && !waits(&s.setting)).cloned().collect()
}

/// `own`: the interfaces whose steps are used. `None`: none of the interfaces has a link.
fn plan_intent(
    mut intent: Intent,
    own: &BTreeSet<String>,
    s: &Snapshot,
    standing: &AppliedRecord,
    options: &Options,
    basis: &Basis,
) -> Result<Option<Plan>, String> {
    if !intent.devs.is_empty() {
        // One that is gone, or has no link, must not keep the others from their plan.
        let has_interrupts = |n: &Nic| n.link_is_up() || n.queue_vectors().next().is_some();
        intent.devs.retain(|d| s.tunable().any(|n| n.name() == d && has_interrupts(n)));
        if intent.devs.is_empty() {
            return Ok(None);
        }
    }
    let adopted = standing.hands.iter().filter(|h| h.origin == Origin::Adopted);
    let host = PlanningHost {
        options: options.clone(),
        snapshot: s.clone(),
        learned: standing.learned.clone(),
        hands: basis.manual.iter().chain(adopted).cloned().collect(),
        made: standing.made.clone(),
        late: own.clone(),
    };
    let planning = Planning::new(basis.host.as_ref(), host, intent, true, true).map_err(|e| e.to_string())?;
    planning.plan(ManualChangePolicy::Keep).map(Some).map_err(|e| e.to_string())
}

/// The intent of a part. An interface that appeared may match an entry of the configuration that matched nothing before.
fn intent(p: &AppliedPart, s: &Snapshot, basis: &Basis) -> Result<Intent, String> {
    match basis.wanted.filter(|w| p.whole && p.from_config && w.file().is_some()) {
        Some(w) => w.intent(s).map(|(intent, _)| intent).map_err(|e| e.to_string()),
        None => Ok(p.intent.clone()),
    }
}

#[cfg(test)]
mod tests {
    use ringwise_knob::Reason;
    use ringwise_model::Fact;

    use super::*;

    fn step(setting: Setting, interrupts_traffic: bool) -> Step {
        Step {
            setting,
            from: Fact::Absent,
            rule: "W01".into(),
            reason: Reason::NearestQueue,
            source: String::new(),
            interrupts_traffic,
            if_refused: IfRefused::PutBack,
            instead: Vec::new(),
        }
    }

    #[test]
    fn what_needs_rules_waits_with_them() {
        let dev = |d: &str| d.to_string();
        let table = |d: &str| Setting::RssTable { dev: dev(d), table: vec![0, 1] };
        let steps = [
            step(Setting::Ntuple { dev: dev("eth0"), on: true }, true),
            step(table("eth0"), false),
            step(Setting::XpsCpus { dev: dev("eth0"), queue: 0, cpus: "0".parse().unwrap() }, false),
            step(Setting::Ntuple { dev: dev("eth1"), on: true }, false),
            step(table("eth1"), false),
            step(table("eth2"), false),
        ];
        let own = BTreeSet::from([dev("eth0"), dev("eth1")]);
        let written = |anew: &[&str]| {
            let anew = anew.iter().map(|d| dev(d)).collect();
            permitted(&steps, &own, &anew).iter().map(|s| s.setting.address().unwrap().to_string()).collect::<Vec<_>>()
        };
        let all: Vec<String> = steps[..5].iter().map(|s| s.setting.address().unwrap().to_string()).collect();
        assert_eq!(written(&[]), all[2..], "eth0 waits for the permission");
        assert_eq!(written(&["eth0"]), all, "its traffic was interrupted anyway");
        assert_eq!(written(&["eth2"]), all[2..], "another interface does not count");
    }
}

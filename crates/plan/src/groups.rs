//! Groups of queues, each with a policy: their queues and CPUs, their moderation, and the flows steered to them.
//!
//! ```text
//!   goal mixed, configured groups ─► teams ─► CPUs (deal) ─► moderation ─► contexts, rules, table ─► advice
//!                                          objects of earlier plans that no group needs any more ─► away
//! ```
//! A queue belongs to one group. By default a third of `n` queues is for latency and the rest for bulk, because streams
//! take more CPU time; a number or a configuration file overrides this, and so does a sample of the traffic.

mod group_cleanup;
mod moderate;
mod moderation_text;
mod sampled_policy;
mod sampled_sizes;
mod sampled_text;
mod steer;
mod steered;
mod teams;

use std::collections::BTreeMap;

use ringwise_knob::{Address, Reason, ResetBy, Setting, compare, live};
use ringwise_model::{Fact, Intent, Snapshot};

use crate::dev::{Dev, LearnedIndex, named};
use crate::machine::Machine;
use crate::sampled_groups::{BulkPolicy, GroupSizes, SampledGroups};
use crate::target::{PlanBuilder, StepOrigin};
use crate::wanted::RequestedSetting;
use crate::{Group, InvalidSetting, Mistake, policies, wishes};

pub(crate) use group_cleanup::{away, contexts_on_fewer_queues};
pub(crate) use moderate::first as first_clause;
pub(crate) use sampled_policy::choose;
pub(crate) use sampled_sizes::of_halves;
pub(crate) use sampled_text::add_placement;
pub use teams::implied;
pub(crate) use teams::{QueueGroup, of_article, pins, sized_by_number, teams};

pub(crate) const ARTICLE: &str = crate::policies::SOURCE;

/// Number of latency queues of `n` if latency and bulk matter equally: a third, at least one.
pub(crate) fn latency_share(n: u32) -> u32 {
    (n / 3).max(1).min(n.saturating_sub(1))
}

/// Assigns the chosen CPUs (nearest first) to queues in their order; `urgent` marks the latency queues, `far` the CPUs on
/// a remote node.
///
/// An urgent queue gets one thread of a core that would otherwise carry two other queues, nearest core first: this
/// minimizes the number of cores that carry two streams. If there is no such core, it gets the nearest CPU whose core has
/// no urgent queue yet. It gets a CPU on a remote node only when no local CPU is left.
pub(crate) fn deal(m: &Machine, cpus: &[usize], urgent: &[bool], far: &dyn Fn(usize) -> bool) -> Vec<usize> {
    let mut bulk: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, c) in cpus.iter().enumerate() {
        bulk.entry(m.core[*c]).or_default().push(at);
    }
    let mut taken = vec![false; cpus.len()];
    let mut has_urgent = vec![false; m.cores.len()];
    for _ in 0..urgent.iter().filter(|u| **u).count() {
        let any_near = bulk.values().flatten().any(|at| !far(cpus[*at]));
        let near = || bulk.values().filter(|v| v.first().is_some_and(|at| !any_near || !far(cpus[*at])));
        let crowded = near().map(Vec::len).max().filter(|n| *n > 1);
        let at = match crowded {
            Some(n) => near().filter(|v| v.len() == n).filter_map(|v| v.first()).min().copied(),
            None => {
                let free = || near().filter_map(|v| v.first()).copied();
                free().filter(|at| !has_urgent[m.core[cpus[*at]]]).min().or_else(|| free().min())
            }
        };
        let Some(at) = at else { break };
        let core = m.core[cpus[at]];
        taken[at] = true;
        has_urgent[core] = true;
        if let Some(v) = bulk.get_mut(&core) {
            v.retain(|x| *x != at);
        }
    }
    let of = |want: bool| cpus.iter().zip(&taken).filter(move |(_, t)| **t == want).map(|(c, _)| *c);
    let (mut fast, mut rest) = (of(true), of(false));
    urgent.iter().filter_map(|u| if *u { fast.next() } else { rest.next() }).collect()
}

/// A setting of a group, with its alternatives.
pub(crate) struct GroupSetting {
    pub setting: Setting,
    pub instead: Vec<Setting>,
    pub rule: &'static str,
    pub reason: Reason,
    pub source: String,
    pub needed: bool,
}

/// Reports groups of interfaces that do not exist.
pub(crate) fn unknown(s: &Snapshot, devs: &[Dev], intent: &Intent, laid: &mut wishes::ConfiguredSettings) {
    for g in intent.groups.iter().filter(|g| s.nic(&g.dev).is_none()) {
        let have = devs.iter().map(|d| d.name().to_string()).collect();
        laid.wrong.push(InvalidSetting {
            said: g.by.to_string(),
            what: format!("{} group {}", g.dev, g.name),
            mistake: Mistake::NoInterface { have },
        });
    }
}

/// Warns about a configured number of latency queues that has no effect.
pub(crate) fn number_without_group(devs: &[Dev], intent: &Intent, out: &mut PlanBuilder) {
    let Some(n) = intent.latency_queues.filter(|_| !devs.iter().any(|d| sized_by_number(d, intent))) else { return };
    out.warnings.push(format!(
        "{n} latency queues (--latency-queues, or latency_queues) have no effect: they set the size of group latency of \
         goal mixed, and no interface here has this group"
    ));
}

/// The article's layout creates groups of all queues itself, so that no other group is possible.
pub(crate) fn beside_article(devs: &[Dev], intent: &Intent, laid: &mut wishes::ConfiguredSettings) {
    for g in intent.groups.iter().filter(|g| named(devs, &g.dev).is_some()) {
        laid.wrong.push(InvalidSetting {
            said: g.by.to_string(),
            what: format!("{} group {}", g.dev, g.name),
            mistake: Mistake::BesideArticle,
        });
    }
}

/// The context that all groups of one device share.
pub(crate) struct GroupPlanner<'a, 'n> {
    pub s: &'a Snapshot,
    pub d: &'a Dev<'n>,
    pub learned: &'a LearnedIndex<'a>,
    pub out: &'a mut PlanBuilder,
}

impl GroupPlanner<'_, '_> {
    /// The earlier step that creates or resets the setting.
    fn anew(&self, address: &Address) -> Option<ResetBy> {
        let dev = self.d.name().to_string();
        let written = |a: &Address| self.out.entries.get(a).is_some_and(|(_, _, step)| step.is_some());
        if self.d.channels.is_some()
            && (Address::Channels { dev: dev.clone() }).invalidates().contains(&address.family())
        {
            return Some(ResetBy::Channels);
        }
        let rings = Address::Rings { dev: dev.clone() };
        if written(&rings) && rings.invalidates().contains(&address.family()) {
            return Some(ResetBy::Rings);
        }
        let whole = matches!(address, Address::QueueCoalesce { .. }) && written(&Address::Coalesce { dev });
        whole.then_some(ResetBy::Coalesce)
    }

    pub(crate) fn want(&mut self, w: GroupSetting) {
        let Some(address) = w.setting.address() else { return };
        if self.out.laid.contains(&address) {
            return;
        }
        // A setting that was refused before is not tried again, nor a queue without its own moderation; one of the
        // alternatives may work.
        let there = |s: &Setting| {
            s.address().is_some_and(|a| !matches!(live(self.s, &a), Fact::Absent) || self.anew(&a).is_some())
        };
        let mut choice = std::iter::once(w.setting.clone()).chain(w.instead.iter().cloned());
        let nic = self.d.nic;
        let good = choice.find(|s| self.learned.why(nic, s).is_none() && there(s));
        let rest: Vec<Setting> = choice.collect();
        let setting = good.unwrap_or(w.setting);
        let Some(address) = setting.address() else { return };
        if self.out.laid.contains(&address) || self.out.entries.contains(&address) {
            return;
        }
        let after = self.anew(&address);
        let matched = compare(&setting, self.s);
        let live = live(self.s, &address);
        let wanted = RequestedSetting { setting, live, matched, anew: after.is_some(), needed: w.needed };
        let by = StepOrigin {
            rule: w.rule,
            reason: w.reason,
            source: w.source,
            instead: rest,
            after: after.unwrap_or(ResetBy::Channels),
            named: false,
        };
        self.out.enter(Some(nic), self.learned, wanted, || by);
    }
}

/// Plans moderation and steering of all groups of one device, with warnings and advice.
pub(crate) fn plan(
    s: &Snapshot,
    m: &Machine,
    d: &Dev,
    teams: &[QueueGroup],
    sampled: &[SampledGroups],
    learned: &LearnedIndex,
    out: &mut PlanBuilder,
) -> Vec<Group> {
    let sampled = sampled.iter().find(|x| x.dev == d.name());
    if let Some(sampled) = sampled {
        sampled_text::add(sampled, out);
    }
    if teams.is_empty() {
        return Vec::new();
    }
    let mut cx = GroupPlanner { s, d, learned, out };
    let moderation = moderate::plan(&mut cx, teams);
    let reached = steer::plan(&mut cx, teams);
    say(d, teams, sampled, out);
    let groups = teams.iter().zip(moderation).zip(reached);
    groups
        .map(|((t, moderation), r)| Group {
            dev: d.name().to_string(),
            name: t.name.clone(),
            cpus: m.set(t.queues.iter().filter_map(|q| d.cpu.get(*q as usize).copied().flatten())),
            queues: t.queues.clone(),
            policy: Some(t.policy.name.clone()),
            moderation,
            entries: r.entries,
            context: r.context,
            rules: r.rules,
        })
        .collect()
}

/// Adds advice: facts that the plan cannot know, and how to change the result.
fn say(d: &Dev, teams: &[QueueGroup], sampled: Option<&SampledGroups>, out: &mut PlanBuilder) {
    let dev = d.name();
    let mixed = d.goal == ringwise_model::Goal::Mixed;
    let by_load = sampled.is_some_and(|s| matches!(s.policy, BulkPolicy::Load { .. }));
    if mixed && !by_load && teams.iter().any(|t| t.policy.name == "bulk" && t.by.is_none()) {
        out.advice.push(
            "The load of the CPUs is unknown, so bulk queues get policy bulk, which suits lightly loaded CPUs; on busy CPUs, \
             give the group policy cpu, or let --sample choose.",
        );
    }
    if mixed {
        out.advice.push(
            "Workload unknown? Keep adaptive moderation: ringwise plan without --goal mixed. Fixed values are better only \
             if you know what traffic the queues carry.",
        );
        let latency = teams.iter().find(|t| t.name.eq_ignore_ascii_case(policies::LATENCY) && !t.listed);
        let (now, how) = latency.map_or_else(
            || {
                let now: Vec<String> = teams.iter().map(|t| format!("{} {}", t.name, t.queues.len())).collect();
                (format!("now {} of {} queues", now.join(", "), d.rx), "in the configuration file")
            },
            |t| {
                let now = format!("now {} of {} queues for latency", t.queues.len(), d.rx);
                (now, "with --latency-queues N, or in the configuration file")
            },
        );
        let text = match sampled.map(|s| &s.sizes) {
            Some(GroupSizes::Traffic { .. } | GroupSizes::Steered { .. }) => format!(
                "the sizes of the groups are those for the traffic of the sample, and stay when the traffic changes. Sample \
                 again, or resize them {how}."
            ),
            _ => format!(
                "the groups have fixed sizes: if there is only one kind of traffic, it cannot use the queues of the other \
                 group. Resize them {how}."
            ),
        };
        out.advice.detailed(dev, now, text);
    }
}

/// Source of the reason: the place in a file for configured groups, else the article's rule.
pub(super) fn why(team: &QueueGroup, reason: Reason) -> (&'static str, Reason, String) {
    match &team.by {
        Some(by) => {
            let source = wishes::source(std::slice::from_ref(by));
            (wishes::RULE, Reason::OfConfiguredGroup { reason: Box::new(reason), by: by.clone() }, source)
        }
        None => ("R4.04", reason, ARTICLE.to_string()),
    }
}

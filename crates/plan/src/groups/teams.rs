//! Assigns queues to groups.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::words::plural;
use ringwise_model::{ConfiguredBy, CpuSet, Dir, Flow, Goal, GroupQueues, GroupWish, Intent, Policy, Snapshot};

use super::latency_share;
use super::sampled_sizes;
use crate::dev::Dev;
use crate::machine::Machine;
use crate::policies::{BULK, LATENCY};
use crate::target::PlanBuilder;
use crate::wishes::ConfiguredSettings;
use crate::{Group, InvalidSetting, Mistake, policies};

/// A group with its queues.
#[derive(Debug, Clone)]
pub(crate) struct QueueGroup {
    pub name: String,
    pub policy: Policy,
    /// A latency group: its queues get the least disturbed CPUs.
    pub urgent: bool,
    /// Ascending.
    pub queues: Vec<u32>,
    pub cpus: Option<CpuSet>,
    pub weight: Option<u32>,
    pub context: bool,
    pub flows: Vec<Flow>,
    /// Whether the configuration lists its queues.
    pub listed: bool,
    /// How busy its CPUs were in the sample from which its policy was chosen.
    pub busy_percent: Option<u32>,
    /// Where the user configured it; `None`: from the goal.
    pub by: Option<ConfiguredBy>,
}

/// The groups of goal `mixed`.
pub fn implied(intent: &Intent) -> [GroupWish; 2] {
    let of = |name: &str, policy: &str, queues| GroupWish {
        name: name.into(),
        dev: String::new(),
        policy: policy.into(),
        queues,
        cpus: None,
        weight: None,
        context: false,
        flows: Vec::new(),
        by: ConfiguredBy::Unknown,
    };
    let latency = intent.latency_queues.map_or(GroupQueues::Auto, GroupQueues::Count);
    [of(LATENCY, LATENCY, latency), of(BULK, bulk_policy(intent), GroupQueues::Auto)]
}

/// Name of the policy of the bulk group that the goal makes.
fn bulk_policy(intent: &Intent) -> &str {
    intent.bulk_policy.as_deref().unwrap_or(BULK)
}

/// The groups of the device: the configured ones; for `mixed` latency and bulk, either of which may be configured.
fn meant(d: &Dev, intent: &Intent) -> Vec<GroupWish> {
    let mine: Vec<GroupWish> = d.groups.iter().copied().cloned().collect();
    let named = |n: &str, g: &GroupWish| g.name.eq_ignore_ascii_case(n);
    if d.goal != Goal::Mixed || !mine.iter().all(|g| named(LATENCY, g) || named(BULK, g)) {
        return mine;
    }
    let pick = |w: GroupWish| match mine.iter().find(|g| named(&w.name, g)).cloned() {
        // The number of latency queues applies if the group does not set one.
        Some(g) if g.queues == GroupQueues::Auto => GroupWish { queues: w.queues, ..g },
        Some(g) => g,
        None => w,
    };
    implied(intent).into_iter().map(pick).collect()
}

/// Whether a configured number of latency queues applies to this device.
pub(crate) fn sized_by_number(d: &Dev, intent: &Intent) -> bool {
    let latency = |g: &GroupWish| g.name.eq_ignore_ascii_case(LATENCY);
    intent.pair_as_article || d.goal == Goal::Mixed && meant(d, intent).iter().any(latency)
}

/// Collects the errors in the groups of one device.
struct Mistakes<'a> {
    dev: &'a str,
    laid: &'a mut ConfiguredSettings,
}

impl Mistakes<'_> {
    fn add(&mut self, w: &GroupWish, what: impl std::fmt::Display, mistake: Mistake) {
        let said = if w.by.is_unknown() { "--latency-queues".to_string() } else { w.by.to_string() };
        self.laid.wrong.push(InvalidSetting { said, what: format!("{} group {}{what}", self.dev, w.name), mistake });
    }
}

/// Checks the groups and divides the queues. Errors are added to `laid`; it then refuses the plan, whatever is returned.
pub(crate) fn teams(
    s: &Snapshot,
    d: &Dev,
    intent: &Intent,
    laid: &mut ConfiguredSettings,
    out: &mut PlanBuilder,
) -> Vec<QueueGroup> {
    let mut meant = meant(d, intent);
    if meant.is_empty() {
        return Vec::new();
    }
    let dev = d.name();
    let n = d.rx;
    let units = d.units.iter().filter(|u| u.queues.iter().any(|q| (*q as u32) < n)).count();
    if d.groups.is_empty() && units < 2 {
        let why = if n < 2 { "it has one queue" } else { "all its queues share one interrupt" };
        out.warnings.about(dev, format!("{why}, so its queues cannot be divided into groups"));
        return Vec::new();
    }
    let mut wrong = Mistakes { dev, laid };
    let mut claims: BTreeMap<u32, String> = BTreeMap::new();
    let Some(mut teams) = checked(s, d, intent, &meant, &mut claims, &mut wrong) else { return Vec::new() };
    let free = free_units(d, &meant, &claims, &mut wrong);
    if d.goal == Goal::Mixed
        && let Some(sample) = &intent.sample
    {
        let sizes = sampled_sizes::sizes(d, &meant, &free, sample);
        let latency = meant.iter_mut().find(|w| w.name.eq_ignore_ascii_case(LATENCY));
        if let (Some(n), Some(latency)) = (sizes.latency_queues(), latency) {
            latency.queues = GroupQueues::Count(n);
        }
        out.sizes.insert(dev.to_string(), sizes);
    }
    divide(n, &meant, free, &mut teams, &mut wrong);
    if teams.iter().any(|t| t.queues.is_empty()) {
        return Vec::new();
    }
    teams.iter_mut().for_each(|t| t.queues.sort());
    several_classes(d, &teams, out);
    teams
}

/// Warns if a configured group has transmit queues of several traffic classes (mqprio, taprio): groups do not follow classes.
fn several_classes(d: &Dev, teams: &[QueueGroup], out: &mut PlanBuilder) {
    let Some(classes) = d.nic.classes.known() else { return };
    for t in teams.iter().filter(|t| t.by.is_some()) {
        let of: BTreeSet<usize> = t.queues.iter().filter_map(|q| classes.of_queue(*q)).collect();
        if of.len() > 1 {
            let list: Vec<String> = of.iter().map(ToString::to_string).collect();
            let (name, list) = (&t.name, list.join(", "));
            let text =
                format!("group {name} has queues of traffic classes {list}: the masks of XPS stay within each class");
            out.warnings.about(d.name(), text);
        }
    }
}

/// The groups with the queues that they list, which are recorded in `claims`. `None`: the queues cannot be divided.
fn checked(
    s: &Snapshot,
    d: &Dev,
    intent: &Intent,
    meant: &[GroupWish],
    claims: &mut BTreeMap<u32, String>,
    wrong: &mut Mistakes,
) -> Option<Vec<QueueGroup>> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut teams: Vec<QueueGroup> = Vec::new();
    let mut good = true;
    for w in meant {
        if !names.insert(w.name.to_ascii_lowercase()) {
            wrong.add(w, "", Mistake::SameName);
            good = false;
        }
        good &= one_number(d, intent, w, wrong);
        let policy = policies::find(&w.policy, &intent.policies);
        if policy.is_none() {
            let have = policies::names(&intent.policies).into_iter().map(|n| n.to_string()).collect();
            wrong.add(w, format_args!(" policy {}", w.policy), Mistake::NoPolicy { have });
            good = false;
        }
        // An offline CPU is an error, but the queues can still be divided.
        online(s, w, wrong);
        let queues = claimed(d.rx, w, claims, wrong);
        good &= queues.is_some();
        let policy = policy.unwrap_or_else(|| policies::built_in().remove(0));
        teams.push(QueueGroup {
            name: w.name.clone(),
            urgent: policy.name.eq_ignore_ascii_case(LATENCY),
            policy,
            queues: queues.unwrap_or_default(),
            cpus: w.cpus.clone(),
            weight: w.weight,
            context: w.context,
            flows: w.flows.clone(),
            listed: matches!(w.queues, GroupQueues::These(_)),
            busy_percent: None,
            by: (!w.by.is_unknown()).then(|| w.by.clone()),
        });
    }
    good.then_some(teams)
}

/// Whether the group and the configured number of latency queues agree.
fn one_number(d: &Dev, intent: &Intent, w: &GroupWish, wrong: &mut Mistakes) -> bool {
    let has = match &w.queues {
        GroupQueues::Count(n) => *n,
        GroupQueues::These(list) => list.len() as u32,
        GroupQueues::Auto => return true,
    };
    let latency = d.goal == Goal::Mixed && w.name.eq_ignore_ascii_case(LATENCY);
    match intent.latency_queues {
        Some(number) if latency && number != has => {
            wrong.add(w, format_args!(" of {}", plural(has as usize, "queue")), Mistake::OtherNumber { number });
            false
        }
        _ => true,
    }
}

fn online(s: &Snapshot, w: &GroupWish, wrong: &mut Mistakes) {
    let Some(cpus) = &w.cpus else { return };
    let online = s.topology.online.clone();
    let offline = cpus.difference(&online);
    if cpus.is_empty() {
        wrong.add(w, " cpus", Mistake::NoCpusOfGroup { online });
    } else if !offline.is_empty() {
        wrong.add(w, " cpus", Mistake::OfflineCpus { offline, of: None, online });
    }
}

/// The queues that the group lists. `None`: some of them do not exist or belong to another group.
fn claimed(there: u32, w: &GroupWish, claims: &mut BTreeMap<u32, String>, wrong: &mut Mistakes) -> Option<Vec<u32>> {
    let GroupQueues::These(list) = &w.queues else { return Some(Vec::new()) };
    let mut queues = Vec::new();
    for q in list {
        if *q >= there {
            let mistake = Mistake::NoSuchQueue { direction: Dir::Rx, queues: there };
            wrong.add(w, format_args!(" queue {q}"), mistake);
        } else if let Some(group) = claims.get(q).cloned() {
            wrong.add(w, format_args!(" queue {q}"), Mistake::InOtherGroup { group });
        } else {
            claims.insert(*q, w.name.clone());
            queues.push(*q);
        }
    }
    (queues.len() == list.len()).then_some(queues)
}

/// Queues that no group lists, by interrupt: queues that share an interrupt also share its moderation and its CPU, so they
/// cannot belong to several groups.
fn free_units(d: &Dev, meant: &[GroupWish], claims: &BTreeMap<u32, String>, wrong: &mut Mistakes) -> Vec<Vec<u32>> {
    let mut free: Vec<Vec<u32>> = Vec::new();
    for u in &d.units {
        let all: Vec<u32> = u.queues.iter().map(|q| *q as u32).filter(|q| *q < d.rx).collect();
        let owners: BTreeSet<Option<&String>> = all.iter().map(|q| claims.get(q)).collect();
        if owners.len() > 1 {
            let owner = owners.into_iter().flatten().next().cloned().unwrap_or_default();
            if let Some(w) = meant.iter().find(|w| w.name == owner) {
                wrong.add(w, "", Mistake::InterruptOfSeveralGroups { queues: all });
            }
        } else if owners.contains(&None) && !all.is_empty() {
            free.push(all);
        }
    }
    free.sort();
    free
}

/// Assigns the free queues to groups that do not list theirs, up to a group that cannot have the requested number.
fn divide(n: u32, meant: &[GroupWish], mut free: Vec<Vec<u32>>, teams: &mut [QueueGroup], wrong: &mut Mistakes) {
    let autos: Vec<usize> = (0..meant.len()).filter(|i| meant[*i].queues == GroupQueues::Auto).collect();
    let left = |free: &Vec<Vec<u32>>| free.iter().map(|u| u.len() as u32).sum::<u32>();
    // Latency queues have the lowest numbers, in the order of the groups.
    for (i, w) in meant.iter().enumerate() {
        let want = match w.queues {
            GroupQueues::These(_) => continue,
            GroupQueues::Count(want) => want,
            GroupQueues::Auto => share(teams, &autos, i, left(&free)),
        };
        let room = left(&free).saturating_sub(autos.iter().filter(|a| **a > i).count() as u32);
        if want == 0 || want > room {
            let mistake = Mistake::GroupSize { queues: n, room };
            wrong.add(w, format_args!(" of {}", plural(want as usize, "queue")), mistake);
            return;
        }
        while (teams[i].queues.len() as u32) < want && !free.is_empty() {
            let unit = free.remove(0);
            teams[i].queues.extend(unit);
        }
    }
}

/// Number of queues of group `i`, of those left for it and the open groups after it: one part for latency, two parts for
/// others.
fn share(teams: &[QueueGroup], autos: &[usize], i: usize, left: u32) -> u32 {
    let parts = |t: usize| if teams[t].urgent { 1 } else { 2 };
    let rest: Vec<usize> = autos.iter().copied().filter(|a| *a >= i).collect();
    match rest.as_slice() {
        [_] => left,
        [a, b] if teams[*a].urgent != teams[*b].urgent => {
            let fast = latency_share(left);
            if teams[i].urgent { fast } else { left - fast }
        }
        all => {
            let sum: u32 = all.iter().map(|a| parts(*a)).sum();
            (left * parts(i) / sum.max(1)).max(1)
        }
    }
}

/// The groups of the article's layout on one device.
pub(crate) fn of_article(groups: &[&Group], intent: &Intent) -> Vec<QueueGroup> {
    let of = |g: &Group| {
        Some(QueueGroup {
            name: g.name.clone(),
            policy: policies::find(if g.name == BULK { bulk_policy(intent) } else { &g.name }, &intent.policies)?,
            urgent: g.name == LATENCY,
            queues: g.queues.clone(),
            cpus: None,
            weight: None,
            context: false,
            flows: Vec::new(),
            listed: false,
            busy_percent: None,
            by: None,
        })
    };
    groups.iter().copied().filter_map(of).collect()
}

/// Pins queues of groups with configured CPUs to these CPUs, round robin.
pub(crate) fn pins(m: &Machine, teams: &[QueueGroup]) -> Vec<(usize, Option<usize>)> {
    let mut out = Vec::new();
    for t in teams {
        let Some(cpus) = &t.cpus else { continue };
        let list: Vec<usize> = cpus.iter().filter_map(|c| m.at(c)).collect();
        out.extend(t.queues.iter().zip(list.iter().cycle()).map(|(q, c)| (*q as usize, Some(*c))));
    }
    out
}

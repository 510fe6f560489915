//! Which queues belong to which group.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::words::plural;
use ringwise_model::{ConfiguredBy, CpuSet, Flow, Goal, GroupQueues, GroupWish, Intent, Policy, Snapshot};

use super::latency_share;
use crate::dev::Dev;
use crate::machine::Machine;
use crate::target::Out;
use crate::wishes::{Laid, span};
use crate::{Group, WrongWish, policies};

/// A group with its queues.
#[derive(Debug, Clone)]
pub(crate) struct Team {
    pub name: String,
    pub policy: Policy,
    /// Somebody waits for the answers: its queues get the least disturbed CPUs.
    pub urgent: bool,
    /// Ascending.
    pub queues: Vec<u32>,
    pub cpus: Option<CpuSet>,
    pub weight: Option<u32>,
    pub context: bool,
    pub flows: Vec<Flow>,
    /// Its queues were named one by one.
    pub listed: bool,
    /// Where the user laid it down; `None`: the goal's.
    pub by: Option<ConfiguredBy>,
}

pub(super) const LATENCY: &str = "latency";
const BULK: &str = "bulk";

/// Those of goal `mixed`.
pub fn implied(intent: &Intent) -> [GroupWish; 2] {
    let of = |name: &str, queues| GroupWish {
        name: name.into(),
        dev: String::new(),
        policy: name.into(),
        queues,
        cpus: None,
        weight: None,
        context: false,
        flows: Vec::new(),
        by: ConfiguredBy::Unknown,
    };
    let latency = intent.latency_queues.map_or(GroupQueues::Auto, GroupQueues::Count);
    [of(LATENCY, latency), of(BULK, GroupQueues::Auto)]
}

/// The groups that are meant: those laid down; for `mixed` latency and bulk, of which either may be laid down.
fn meant(d: &Dev, intent: &Intent) -> Vec<GroupWish> {
    let mine: Vec<GroupWish> = d.groups.iter().copied().cloned().collect();
    let named = |n: &str, g: &GroupWish| g.name.eq_ignore_ascii_case(n);
    if d.goal != Goal::Mixed || !mine.iter().all(|g| named(LATENCY, g) || named(BULK, g)) {
        return mine;
    }
    let pick = |w: GroupWish| match mine.iter().find(|g| named(&w.name, g)).cloned() {
        // How many is the number's to say, where the group leaves it open.
        Some(g) if g.queues == GroupQueues::Auto => GroupWish { queues: w.queues, ..g },
        Some(g) => g,
        None => w,
    };
    implied(intent).into_iter().map(pick).collect()
}

/// Whether a number of latency queues has a say on this device.
pub(crate) fn sized_by_number(d: &Dev, intent: &Intent) -> bool {
    let latency = |g: &GroupWish| g.name.eq_ignore_ascii_case(LATENCY);
    intent.pair_as_article || d.goal == Goal::Mixed && meant(d, intent).iter().any(latency)
}

/// Checks and divides. What is wrong goes to `laid` with all else that is.
pub(crate) fn teams(s: &Snapshot, d: &Dev, intent: &Intent, laid: &mut Laid, out: &mut Out) -> Vec<Team> {
    let meant = meant(d, intent);
    if meant.is_empty() {
        return Vec::new();
    }
    let dev = d.name();
    let n = d.rx;
    let units = d.units.iter().filter(|u| u.queues.iter().any(|q| (*q as u32) < n)).count();
    if d.groups.is_empty() && units < 2 {
        let why = if n < 2 { "it has one queue" } else { "all its queues share one interrupt" };
        out.warnings.push(format!("{dev}: {why}, so there is nothing to divide into groups"));
        return Vec::new();
    }
    let mut wrong = |w: &GroupWish, what: String, found: String, right: String| {
        let said = if w.by.is_unknown() { "--latency-queues".to_string() } else { w.by.to_string() };
        laid.wrong.push(WrongWish { said, what: format!("{dev} group {}{what}", w.name), found, right });
    };
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut claims: BTreeMap<u32, String> = BTreeMap::new();
    let mut out_teams: Vec<Team> = Vec::new();
    let mut bad = false;
    for w in &meant {
        if !names.insert(w.name.to_ascii_lowercase()) {
            wrong(w, String::new(), "there are two of that name".into(), "one group of each name".into());
            bad = true;
        }
        let has = match &w.queues {
            GroupQueues::Count(n) => Some(*n),
            GroupQueues::These(list) => Some(list.len() as u32),
            GroupQueues::Auto => None,
        };
        if let (Some(has), Some(asked)) = (has, intent.latency_queues)
            && d.goal == Goal::Mixed
            && w.name.eq_ignore_ascii_case(LATENCY)
            && has != asked
        {
            let right = "the same number, or one of them alone".to_string();
            wrong(
                w,
                format!(" of {}", plural(has as usize, "queue")),
                format!("--latency-queues, or latency_queues, says {asked}"),
                right,
            );
            bad = true;
        }
        let policy = policies::find(&w.policy, &intent.policies);
        if policy.is_none() {
            let right = format!("one of {}", policies::names(&intent.policies).join(" "));
            wrong(w, format!(" policy {}", w.policy), "there is no such policy".into(), right);
        }
        if let Some(cpus) = &w.cpus {
            let off = cpus.difference(&s.topology.online);
            if cpus.is_empty() || !off.is_empty() {
                let found = if cpus.is_empty() { "an empty list".into() } else { format!("CPUs {off} are not online") };
                wrong(w, " cpus".into(), found, format!("online are {}", s.topology.online));
            }
        }
        let mut queues = Vec::new();
        if let GroupQueues::These(list) = &w.queues {
            for q in list {
                if *q >= n {
                    wrong(w, format!(" queue {q}"), format!("there are {n} rx queues"), format!("queues {}", span(n)));
                    bad = true;
                } else if let Some(other) = claims.get(q) {
                    let found = format!("group {other} has it already");
                    wrong(w, format!(" queue {q}"), found, "each queue in one group".into());
                    bad = true;
                } else {
                    claims.insert(*q, w.name.clone());
                    queues.push(*q);
                }
            }
        }
        bad |= policy.is_none();
        let policy = policy.unwrap_or_else(|| policies::built_in().remove(0));
        out_teams.push(Team {
            name: w.name.clone(),
            urgent: policy.name.eq_ignore_ascii_case(LATENCY),
            policy,
            queues,
            cpus: w.cpus.clone(),
            weight: w.weight,
            context: w.context,
            flows: w.flows.clone(),
            listed: matches!(w.queues, GroupQueues::These(_)),
            by: (!w.by.is_unknown()).then(|| w.by.clone()),
        });
    }
    if bad {
        return Vec::new();
    }
    // Whole interrupts: queues that share one share its moderation and its CPU.
    let mut free: Vec<Vec<u32>> = Vec::new();
    for u in &d.units {
        let all: Vec<u32> = u.queues.iter().map(|q| *q as u32).filter(|q| *q < n).collect();
        let owners: BTreeSet<Option<&String>> = all.iter().map(|q| claims.get(q)).collect();
        if owners.len() > 1 {
            let list: Vec<String> = all.iter().map(u32::to_string).collect();
            let found = format!("queues {} share one interrupt", list.join(" "));
            let owner = owners.into_iter().flatten().next().cloned().unwrap_or_default();
            if let Some(w) = meant.iter().find(|w| w.name == owner) {
                wrong(w, String::new(), found, "queues of one interrupt in one group".into());
                bad = true;
            }
        } else if owners.contains(&None) && !all.is_empty() {
            free.push(all);
        }
    }
    free.sort();
    let autos: Vec<usize> = (0..meant.len()).filter(|i| meant[*i].queues == GroupQueues::Auto).collect();
    let left = |free: &Vec<Vec<u32>>| free.iter().map(|u| u.len() as u32).sum::<u32>();
    // Latency queues have the lowest numbers, in the order of the groups.
    for (i, w) in meant.iter().enumerate() {
        let want = match w.queues {
            GroupQueues::These(_) => continue,
            GroupQueues::Count(want) => want,
            GroupQueues::Auto => share(&out_teams, &autos, i, left(&free)),
        };
        let room = left(&free).saturating_sub(autos.iter().filter(|a| **a > i).count() as u32);
        if want == 0 || want > room {
            let found = format!(
                "there {} {}, and {room} of them can be its own",
                if n == 1 { "is" } else { "are" },
                plural(n as usize, "queue")
            );
            wrong(w, format!(" of {}", plural(want as usize, "queue")), found, format!("1 to {room} queues"));
            return Vec::new();
        }
        while (out_teams[i].queues.len() as u32) < want && !free.is_empty() {
            let unit = free.remove(0);
            out_teams[i].queues.extend(unit);
        }
    }
    if bad || out_teams.iter().any(|t| t.queues.is_empty()) {
        return Vec::new();
    }
    out_teams.iter_mut().for_each(|t| t.queues.sort());
    out_teams
}

/// Queues of group `i`, of those that the open groups from it on divide: one part for latency, two for others.
fn share(teams: &[Team], autos: &[usize], i: usize, left: u32) -> u32 {
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
pub(crate) fn of_article(groups: &[&Group], intent: &Intent) -> Vec<Team> {
    let of = |g: &Group| {
        Some(Team {
            name: g.name.clone(),
            policy: policies::find(&g.name, &intent.policies)?,
            urgent: g.name == LATENCY,
            queues: g.queues.clone(),
            cpus: None,
            weight: None,
            context: false,
            flows: Vec::new(),
            listed: false,
            by: None,
        })
    };
    groups.iter().copied().filter_map(of).collect()
}

/// Queues of groups with CPUs of their own go there, by turns.
pub(crate) fn pins(m: &Machine, teams: &[Team]) -> Vec<(usize, Option<usize>)> {
    let mut out = Vec::new();
    for t in teams {
        let Some(cpus) = &t.cpus else { continue };
        let list: Vec<usize> = cpus.iter().filter_map(|c| m.at(c)).collect();
        out.extend(t.queues.iter().zip(list.iter().cycle()).map(|(q, c)| (*q as usize, Some(*c))));
    }
    out
}

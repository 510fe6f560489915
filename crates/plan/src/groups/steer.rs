//! Steers flows to groups: contexts and rules for named flows, the device's table for all others.

use ringwise_knob::{Address, Reason, Setting, features, restarts_for_ntuple, rss as knob_rss};
use ringwise_model::{Action, Fact, Flow, Rss, Rule, Rules, Table};

use super::{GroupPlanner, GroupSetting, QueueGroup, why};
use crate::Obstacle;

/// Plan rules by which a later plan recognizes objects that were created only for groups.
const SHARED: &str = ringwise_knob::FOR_GROUPS[0];
const LED: &str = ringwise_knob::FOR_GROUPS[1];

/// How flows reach a group.
#[derive(Default, Clone)]
pub(super) struct GroupSteering {
    pub entries: Option<u32>,
    pub context: Option<u32>,
    pub rules: Option<u32>,
}

/// Objects that an earlier plan created for groups and that no current flow needs. They are reused before new ones are
/// created.
#[derive(Default)]
struct Spare {
    rules: Vec<u32>,
    contexts: Vec<u32>,
}

fn spare(cx: &GroupPlanner, teams: &[QueueGroup], rules: &Rules) -> Spare {
    let wanted = |r: &Rule| teams.iter().flat_map(matches).any(|(f, m)| r.flow == *f && r.fields == *m);
    let mine = cx.out.made.of(cx.d.name()).iter().filter(|m| m.as_left);
    let mut out = Spare::default();
    for m in mine.clone() {
        if let Setting::FlowRule { location, rule: Some(r), .. } = &m.setting
            && matches!(m.before, Setting::FlowRule { rule: None, .. })
            && !wanted(r)
        {
            out.rules.push(*location);
        }
    }
    let idle = |at: u32, r: &Rule| out.rules.contains(&at) || out.rules.contains(&ringwise_knob::rules::by_content(r));
    for m in mine {
        if let (Setting::RssContext { context, .. }, Setting::RssContext { table: None, .. }) = (&m.setting, &m.before)
            && rules.rules.iter().all(|(at, r)| r.context != Some(*context) || idle(*at, r))
        {
            out.contexts.push(*context);
        }
    }
    out
}

type Match<'a> = (&'a String, &'a std::collections::BTreeMap<String, String>);

fn matches(t: &QueueGroup) -> Vec<Match<'_>> {
    t.flows.iter().filter_map(named).collect()
}

/// `None` for flows that are looked up before the plan is made.
fn named(f: &Flow) -> Option<Match<'_>> {
    match f {
        Flow::Match { flow, fields } => Some((flow, fields)),
        Flow::Program(_) | Flow::Unit(_) => None,
    }
}

pub(super) fn plan(cx: &mut GroupPlanner, teams: &[QueueGroup]) -> Vec<GroupSteering> {
    let mut out = vec![GroupSteering::default(); teams.len()];
    let named = teams.iter().any(|t| !matches(t).is_empty());
    let rss = match &cx.d.nic.rss {
        Fact::Known(r) if !r.table.is_empty() => Some(r),
        _ => None,
    };
    let mut directed = false;
    if named {
        match &cx.d.nic.rules {
            Fact::Known(_) if cx.out.ntuple_waits(cx.d.nic) => {
                refuse(cx, "flow rules", Obstacle::RulesNeedRestart);
                ntuple(cx);
            }
            Fact::Known(rules) => {
                let spare = spare(cx, teams, rules);
                for (t, r) in teams.iter().zip(&mut out) {
                    rules_of(cx, t, rules, rss, &spare, r);
                }
                // A rule that is known to be refused steers no flow.
                directed = out.iter().any(|r| r.rules.is_some());
                ntuple(cx);
            }
            Fact::Absent => refuse(cx, "flow rules", Obstacle::NoFlowRulesForGroup),
            Fact::Unknown(u) => refuse(cx, "flow rules", Obstacle::FlowRulesUnread { unread: u.clone() }),
        }
    }
    // The service adds the rules of a program when it starts, and may not restart the device for them then.
    if !named && teams.iter().any(|t| !t.flows.is_empty()) && cx.d.nic.rules.is_known() && restarts_for_ntuple(cx.d.nic)
    {
        ntuple(cx);
    }
    let weighted = teams.iter().any(|t| t.weight.is_some());
    match (rss, &cx.d.nic.rss) {
        (Some(r), _) => {
            let led: Vec<bool> = out.iter().map(|r| r.rules.is_some()).collect();
            table(cx, teams, r, &led, weighted, &mut out);
        }
        (None, Fact::Unknown(u)) if directed || weighted => {
            refuse(cx, "RSS table", Obstacle::TableUnread { unread: u.clone() });
        }
        (None, _) if directed || weighted => {
            refuse(cx, "RSS table", Obstacle::NoTableForGroups);
        }
        _ => {}
    }
    if !directed && !weighted {
        undirected(cx, teams);
    }
    out
}

fn refuse(cx: &mut GroupPlanner, what: &str, why: Obstacle) {
    cx.out.cannot(cx.d.name(), what, why, true);
}

/// Warns that neither rules nor shares steer flows to the groups: a group has no effect on flows of other queues.
fn undirected(cx: &mut GroupPlanner, teams: &[QueueGroup]) {
    let dev = cx.d.name();
    let Some(t) = teams.iter().find(|t| t.urgent).or_else(|| teams.first()) else { return };
    let takes = cx.d.nic.rules.is_known();
    let unread = cx.d.nic.rules.unread().map(|u| u.why.clone());
    let names = |f: &Flow| match f {
        Flow::Program(n) | Flow::Unit(n) => Some(n.clone()),
        Flow::Match { .. } => None,
    };
    let names: Vec<String> = teams.iter().flat_map(|t| &t.flows).filter_map(names).collect();
    let head = "no flows are steered to groups yet: the RSS table spreads all flows over all queues.";
    if !takes {
        let why = unread.map_or_else(
            || "This driver does not support flow rules".to_string(),
            |u| format!("Its flow rules could not be read ({u})"),
        );
        let how = "only a share of the RSS table (weight in the configuration file) divides the traffic.";
        cx.out.advice.about(dev, format!("{head} {why}: {how}"));
    } else if !names.is_empty() {
        cx.out.advice.about(dev, format!("{head} This plan does not know where {} listens.", names.join(" ")));
    } else {
        let text = format!(
            "{head} Name the flows of group {} in the configuration file (flows, e.g. tcp4 dst-port 443, a program or a \
             unit), or add a rule, for example:",
            t.name
        );
        let queue = t.queues.first().copied().unwrap_or_default();
        let rule = format!("ethtool -N {dev} flow-type tcp4 dst-port 443 action {queue}");
        cx.out.advice.with_example(dev, text, rule);
    }
}

fn rules_of(
    cx: &mut GroupPlanner,
    t: &QueueGroup,
    rules: &Rules,
    rss: Option<&Rss>,
    spare: &Spare,
    r: &mut GroupSteering,
) {
    let all = matches(t);
    if all.is_empty() {
        return;
    }
    let dev = cx.d.name().to_string();
    let contexts = rss.and_then(|r| r.contexts.known());
    if t.context && contexts.is_none() {
        refuse(cx, &format!("RSS context of group {}", t.name), Obstacle::NoContextForGroup);
    }
    if let (Some(rss), Some(live)) = (rss, contexts)
        && (t.context || t.queues.len() > 1)
    {
        let table = over(&t.queues, rss.table.len());
        // Prefer the context that rules for these flows already name, then one with this table, then a spare one, then
        // the next number. A context that also gets flows of foreign rules is not changed.
        let ours = |x: &Rule| all.iter().any(|(f, m)| x.flow == **f && x.fields == **m);
        let named = rules.rules.values().find(|x| ours(x));
        let address = |context| Address::RssContext { dev: dev.clone(), context };
        let made = |n: u32| cx.out.made.of(&dev).iter().any(|m| m.address().as_ref() == Some(&address(n)));
        let shared = |n: u32| rules.rules.values().any(|x| x.context == Some(n) && !ours(x));
        let good = |n: &u32| live.get(n).is_some_and(|c| c.table == table || made(*n) || !shared(*n));
        let free = |n: &u32| !cx.out.entries.contains(&address(*n));
        let same = live.iter().find(|(n, c)| c.table == table && free(n)).map(|(n, _)| *n);
        let context = named
            .and_then(|x| x.context)
            .filter(|n| good(n) && free(n))
            .or(same)
            .or_else(|| spare.contexts.iter().copied().find(|n| live.contains_key(n) && free(n)))
            .or_else(|| (1u32..).find(|n| !live.contains_key(n) && free(n)));
        r.context = context;
        if let Some(context) = context {
            let setting = Setting::RssContext { dev: dev.clone(), context, table: Some(table), key: None };
            let (_, reason, source) = why(t, Reason::TableOfGroup { group: t.name.clone() });
            cx.want(GroupSetting { setting, instead: Vec::new(), rule: LED, reason, source, needed: true });
        }
    } else if all.len() < t.queues.len() {
        let text = format!(
            "a rule steers to one queue, so {} of the {} queues of group {} {} no flows from its {} rule{}",
            t.queues.len() - all.len(),
            t.queues.len(),
            t.name,
            if t.queues.len() - all.len() == 1 { "gets" } else { "get" },
            all.len(),
            if all.len() == 1 { "" } else { "s" }
        );
        cx.out.warnings.about(&dev, text);
    }
    for (i, (flow, fields)) in all.iter().enumerate() {
        let queue = if r.context.is_some() { 0 } else { t.queues[i % t.queues.len()] };
        let rule =
            Rule { flow: (*flow).clone(), fields: (*fields).clone(), action: Action::Queue(queue), context: r.context };
        let Some(location) = place(cx, rules, &rule, spare) else {
            refuse(cx, &format!("flow rule {}", ringwise_knob::rules::text(&rule)), Obstacle::FlowRulesFull);
            continue;
        };
        // If the driver chooses the location, a rule cannot be replaced: the other rule is deleted first.
        let other = |x: &&Rule| x.flow == rule.flow && x.fields == rule.fields && **x != rule;
        for old in rules.rules.values().filter(|_| rules.chooses_location).filter(other) {
            let location = ringwise_knob::rules::by_content(old);
            let setting = Setting::FlowRule { dev: dev.clone(), location, rule: None };
            let (_, reason, source) = why(t, Reason::OtherRuleForFlow);
            cx.want(GroupSetting { setting, instead: Vec::new(), rule: LED, reason, source, needed: true });
        }
        let setting = Setting::FlowRule { dev: dev.clone(), location, rule: Some(rule) };
        let (_, reason, source) = why(t, Reason::FlowOfGroup { group: t.name.clone() });
        cx.want(GroupSetting { setting, instead: Vec::new(), rule: LED, reason, source, needed: true });
        let address = Address::FlowRule { dev: dev.clone(), location };
        if cx.out.laid.contains(&address) || cx.out.entries.contains(&address) {
            *r.rules.get_or_insert(0) += 1;
        }
    }
}

/// The location of a rule for the same flow, which is replaced; else the lowest free location; else that of a spare rule.
fn place(cx: &GroupPlanner, rules: &Rules, rule: &Rule, spare: &Spare) -> Option<u32> {
    let dev = cx.d.name().to_string();
    let mine = |n: &u32| {
        let a = Address::FlowRule { dev: dev.clone(), location: *n };
        cx.out.laid.contains(&a) || cx.out.entries.contains(&a)
    };
    let same = |r: &Rule| r.flow == rule.flow && r.fields == rule.fields;
    let there = rules.rules.iter().find(|(n, r)| same(r) && !rules.chooses_location && !mine(n));
    let new = || ringwise_knob::rules::place(rules, rule, |n| mine(&n));
    there.map(|(n, _)| *n).or_else(new).or_else(|| spare.rules.iter().copied().find(|n| !mine(n)))
}

fn ntuple(cx: &mut GroupPlanner) {
    let dev = cx.d.name().to_string();
    let Some(f) = cx.d.nic.features.known().and_then(|f| f.get(features::NTUPLE)) else { return };
    if f.fixed {
        return;
    }
    let setting = Setting::Ntuple { dev, on: true };
    let (reason, source) = (Reason::RulesNeedFeature, "ethtool(8)".to_string());
    cx.want(GroupSetting { setting, instead: Vec::new(), rule: "R1.10", reason, source, needed: true });
}

/// Distributes the entries over these queues, round robin.
fn over(queues: &[u32], size: usize) -> Vec<u32> {
    queues.iter().copied().cycle().take(size).collect()
}

/// Weight of each queue in the device's table. If flows are named, groups without a weight get their flows by rules only;
/// otherwise every queue takes part.
fn weights(teams: &[QueueGroup], rx: u32, led: &[bool]) -> Vec<u64> {
    let default = |t: &QueueGroup, led: bool| if led { 0 } else { t.queues.len() as u64 };
    // A share applies to a group; multiply it by the common multiple of all group sizes to get whole numbers for queues.
    let common = teams.iter().map(|t| t.queues.len() as u64).fold(1, lcm);
    let mut per = vec![common; rx as usize];
    for (t, led) in teams.iter().zip(led) {
        let n = t.queues.len() as u64;
        let share = t.weight.map_or_else(|| default(t, *led), u64::from);
        for q in &t.queues {
            per[*q as usize] = share * (common / n);
        }
    }
    if per.iter().all(|w| *w == 0) {
        // Some group must receive the flows that match no rule.
        let some = |t: &&QueueGroup| !t.urgent || teams.iter().all(|t| t.urgent);
        for q in teams.iter().filter(some).flat_map(|t| &t.queues) {
            per[*q as usize] = 1;
        }
    }
    per
}

fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x.max(1) * b
}

fn table(
    cx: &mut GroupPlanner,
    teams: &[QueueGroup],
    r: &Rss,
    led: &[bool],
    weighted: bool,
    out: &mut [GroupSteering],
) {
    let directed = led.contains(&true);
    let (dev, rx, size) = (cx.d.name().to_string(), cx.d.rx, r.table.len());
    let per = weights(teams, rx, led);
    let used: Vec<u32> = (0..rx).filter(|q| per[*q as usize] > 0).collect();
    let even = used.windows(2).all(|w| per[w[0] as usize] == per[w[1] as usize]);
    let mut want = if even {
        over(&used, size)
    } else {
        let least = per.iter().copied().filter(|w| *w > 0).fold(0, gcd).max(1);
        let small: Vec<u32> = per.iter().map(|w| u32::try_from(w / least).unwrap_or(u32::MAX)).collect();
        knob_rss::by_weight(&small, size)
    };
    if even
        && let (Some(first), Some(last)) = (used.first(), used.last())
        && last - first + 1 == used.len() as u32
        && let Ok(t) = knob_rss::simulate(&Table::Equal { queues: used.len() as u32, start: *first }, size, rx)
    {
        want = t;
    }
    let address = Address::RssTable { dev: dev.clone() };
    let covers = |table: &[u32]| used.iter().all(|q| table.contains(q)) && table.iter().all(|q| used.contains(q));
    // The table from before the groups is restored.
    let comes_back = cx.out.made.of(&dev).iter().any(|m| match &m.before {
        Setting::RssTable { table, .. } => m.as_left && m.before.address().as_ref() == Some(&address) && covers(table),
        _ => false,
    });
    // Keep the table: it uses every queue that should take part, and no flow or share is configured.
    let keep = !directed && !weighted && (comes_back || covers(&r.table)) && cx.d.channels.is_none();
    if !keep && !cx.out.laid.contains(&address) {
        let reason = match (directed, weighted) {
            (_, true) => Reason::SharesOfGroups,
            (true, false) => Reason::RuleQueuesKeptFree,
            _ => Reason::NoFlowsNamed,
        };
        let setting = Setting::RssTable { dev: dev.clone(), table: want.clone() };
        let by = teams.iter().find_map(|t| t.by.clone()).filter(|_| weighted);
        let source = by.map_or_else(|| super::ARTICLE.to_string(), |by| crate::wishes::source(&[by]));
        let needed = directed || weighted;
        cx.want(GroupSetting { setting, instead: Vec::new(), rule: SHARED, reason, source, needed });
    }
    let starved: Vec<u32> = used.iter().copied().filter(|q| !want.contains(q)).collect();
    if !keep && !starved.is_empty() {
        let list: Vec<String> = starved.iter().map(u32::to_string).collect();
        cx.out
            .warnings
            .push(format!("{dev}: the RSS table has only {size} entries, so queues {} get none", list.join(" ")));
    }
    let then = match cx.out.entries.get(&address) {
        Some((_, Setting::RssTable { table, .. }, _)) => Some(table.clone()),
        _ => None,
    };
    let then = then.unwrap_or_else(|| r.table.clone());
    for (t, o) in teams.iter().zip(out) {
        o.entries = Some(then.iter().filter(|q| t.queues.contains(q)).count() as u32);
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

//! The number of queues: requested by the user, else chosen by the goal. It changes only with the user's permission,
//! because the change interrupts traffic.

use ringwise_knob::{Address, CreatedObject, Reason, Setting, rules as knob_rules};
use ringwise_model::{
    Channels, ConfiguredBy, Count, CpuSet, DEFAULT_CONFIG, Fact, Flow, Goal, GoalChoice, GroupWish, Intent,
    IntentFlags, Rule, Snapshot, shell,
};

use crate::dev::{Dev, LearnedIndex};
use crate::goal::Share;
use crate::proposals::CommandScope;
use crate::select::channel_users;
use crate::target::PlanBuilder;
use crate::wishes::{self, ConfiguredSettings};
use crate::{NotPossible, Obstacle, ProposedChange, Refusal, SkippedInterface, control, goal, rdma};

/// The setting for `n` queues and the largest possible `n`; `None` for a driver without channel counts that can be set.
fn for_count(dev: &str, c: &Channels, n: u32) -> Option<(Setting, u32)> {
    let dev = dev.to_string();
    match (c.combined, c.rx, c.tx) {
        (Some(both), _, _) if both.max > 0 => {
            Some((Setting::Channels { dev, rx: None, tx: None, combined: Some(n) }, both.max))
        }
        (_, Some(r), Some(t)) if r.max > 0 && t.max > 0 => {
            Some((Setting::Channels { dev, rx: Some(n), tx: Some(n), combined: None }, r.max.min(t.max)))
        }
        _ => None,
    }
}

/// The command that includes a change: the same request with permission to interrupt traffic, and with a number of queues unless
/// the goal decides it. It names devices only if the command would otherwise change other devices too.
pub(crate) fn command(intent: &Intent, devs: &[&str], queues: Option<u32>) -> String {
    plan_with(IntentFlags { queues, ..request(intent, devs) })
}

/// The command that includes the settings configured in `by`, with permission to interrupt traffic.
pub(crate) fn with_word(intent: &Intent, by: &[ConfiguredBy]) -> (String, CommandScope) {
    let devs: Vec<&str> = intent.devs.iter().map(String::as_str).collect();
    let mut flags = IntentFlags { queues: queues_of_flags(intent), ..request(intent, &devs) };
    let more: Vec<String> = by.iter().filter_map(argument).filter(|a| !flags.set.contains(a)).collect();
    let scope = if more.is_empty() { CommandScope::Request } else { CommandScope::ThisChange };
    flags.set.extend(more);
    (plan_with(flags), scope)
}

/// The argument of `--set`; `None`: it was configured otherwise.
fn argument(by: &ConfiguredBy) -> Option<String> {
    match by {
        ConfiguredBy::Argument { argument } => Some(argument.clone()),
        _ => None,
    }
}

fn plan_with(flags: IntentFlags) -> String {
    let flags = IntentFlags { allow_disruption: true, ..flags };
    shell::join(["ringwise".to_string(), "plan".to_string()].into_iter().chain(flags.words()))
}

/// The flags that state the intent. If they are not known, those that the goal does not imply.
fn request(intent: &Intent, devs: &[&str]) -> IntentFlags {
    let devs = devs.iter().map(|d| d.to_string()).collect();
    let config = intent.config.clone().filter(|f| f != DEFAULT_CONFIG);
    if let Some(given) = intent.given.as_deref() {
        let none = given.config.clone().filter(|_| intent.config.is_none());
        return IntentFlags { devs, config: config.or(none), queues: None, ..given.clone() };
    }
    let plain = goal::resolve(&Intent { goal: intent.goal, ..Intent::default() });
    let some = |cpus: &CpuSet| Some(cpus.clone()).filter(|c| !c.is_empty());
    let mut set: Vec<String> = Vec::new();
    for argument in intent.wishes.iter().filter_map(|w| argument(&w.by)) {
        if !set.contains(&argument) {
            set.push(argument);
        }
    }
    IntentFlags {
        set,
        devs,
        goal: Some(intent.goal).filter(|g| *g != Goal::Balanced).map(GoalChoice::Of),
        config,
        cpus: intent.cpus.clone(),
        reserve: some(&intent.reserve),
        exclude_cpus: some(&intent.exclude_cpus),
        smt: intent.smt.filter(|_| intent.smt != plain.smt),
        far_node: intent.far_node.filter(|_| intent.far_node != plain.far_node),
        latency_queues: intent.latency_queues,
        ..IntentFlags::default()
    }
}

/// The number of queues that was requested, unless the configuration file states it.
pub(crate) fn queues_of_flags(intent: &Intent) -> Option<u32> {
    intent.given.as_ref().map_or(intent.queues, |given| given.queues)
}

/// Why the number of queues cannot be changed. The reason that the plan gives for skipping the channels comes first.
pub(crate) fn why_fixed(d: &Dev) -> Option<String> {
    match (channel_users(d), &d.nic.channels) {
        (Some(by), _) => {
            let without_rdma = rdma::module(d.nic)
                .map_or_else(String::new, |m| format!(" (if you do not use RDMA, unload its module first: {m})"));
            Some(format!("{}{without_rdma}", Obstacle::InUse { by }))
        }
        (None, Fact::Unknown(u)) => Some(format!("the channel counts could not be read ({})", u.why)),
        (None, Fact::Known(c)) if most(c).is_some() => None,
        (None, _) => Some(Obstacle::NoChannelCount.to_string()),
    }
}

/// The largest count that can be set. `None` if no count can be set.
pub(crate) fn most(c: &Channels) -> Option<u32> {
    for_count("", c, 1).map(|(_, max)| max)
}

/// Decides the number of queues of one device. Sets `rx`, `tx` and `channels`.
pub(crate) fn decide(
    s: &Snapshot,
    d: &mut Dev,
    intent: &Intent,
    share: Share,
    laid: &mut ConfiguredSettings,
    learned: &LearnedIndex,
    out: &mut PlanBuilder,
) -> Result<(), Refusal> {
    if let Some((setting, by)) = laid.channels_of(d.name()).cloned() {
        configured_counts(s, d, intent, setting, by, laid, learned, out);
        return Ok(());
    }
    let name = d.name().to_string();
    let now = d.pairs_now();
    let asked = intent.queues;
    let article = intent.pair_as_article;
    let by = intent
        .given
        .as_ref()
        .and_then(|given| given.queues)
        .map(|n| ConfiguredBy::Flag { name: format!("--queues {n}") });
    let cannot_for = |out: &mut PlanBuilder, why: Obstacle, blocked_by: Option<Address>| {
        let address = Some(Address::Channels { dev: name.clone() });
        let why = by.as_ref().map_or_else(|| why.clone(), |by| why.clone().configured(std::slice::from_ref(by)));
        let (what, needed) = (format!("{name} channels"), asked.is_some());
        out.refused.push(NotPossible { address, what, why, needed, blocked_by, settings: 1 });
    };
    let cannot = |out: &mut PlanBuilder, why: Obstacle| cannot_for(out, why, None);
    if let Some(by) = channel_users(d) {
        if asked.is_some_and(|n| n != now) {
            cannot(out, Obstacle::InUse { by });
            return Ok(());
        }
        out.left_alone.push(SkippedInterface { dev: name, why: Obstacle::ChannelsInUse { by } });
        return Ok(());
    }
    let limit = d.nic.channels.known().and_then(|c| for_count(&name, c, 1));
    let Some((_, max)) = limit else {
        if asked.is_some_and(|n| n != now) {
            let why = match &d.nic.channels {
                Fact::Unknown(u) => Obstacle::ChannelCountsUnread { unread: u.clone() },
                _ => Obstacle::NoChannelCountHas { queues: now },
            };
            cannot(out, why);
        } else if asked.is_none()
            && !article
            && goal::queues(intent.goal, share) != now
            && let Fact::Unknown(u) = &d.nic.channels
        {
            d.unread_count = Some(u.clone());
        }
        return Ok(());
    };
    let max = max.max(now);
    if let Some(n) = asked
        && (n == 0 || n > max)
    {
        return Err(Refusal::TooManyQueues { dev: name, asked: n, max });
    }
    let want = match asked {
        Some(n) => n,
        None if article => now,
        None if matches!(intent.goal, Goal::Balanced | Goal::Mixed) => now,
        None => goal::queues(intent.goal, share).min(share.max.max(share.now)),
    };
    if want == now && d.tx_now.is_none_or(|tx| tx == d.rx_now) {
        return Ok(());
    }
    if want == now && asked.is_none() {
        return Ok(());
    }
    let Some((setting, _)) = d.nic.channels.known().and_then(|c| for_count(&name, c, want)) else {
        return Ok(());
    };
    if let Some(why) = learned.why(d.nic, &setting) {
        cannot(out, why);
        return Ok(());
    }
    if let Some((rule, why)) = in_the_way(d, want, out.made.of(d.name())) {
        cannot_for(out, why, Some(rule));
        return Ok(());
    }
    // `balanced` never interrupts traffic by itself; a number on the command line is the user's permission.
    let allowed = intent.allow_disruption && (asked.is_some() || intent.goal != Goal::Balanced);
    if allowed && out.keep.channels(d.name(), &setting) {
        // The rest is planned for the current queues.
        return Ok(());
    }
    if allowed {
        if let Fact::Unknown(u) = &d.nic.users {
            out.warnings.about(&name, format!("could not read whether another program uses its queues ({u})"));
        }
        (d.rx, d.tx) = (want, Some(want));
        d.channels = Some(setting);
        return Ok(());
    }
    let (rule, reason) = reason(intent, now, share);
    out.skipped_counts += 1;
    let change = ProposedChange {
        from: ringwise_knob::channels::live(d.nic),
        setting,
        rule: rule.to_string(),
        reason,
        command: command(intent, &[&name], asked),
        outage: control::outage(d.nic.driver.known().map(String::as_str)).to_string(),
    };
    out.left_out.push(change, CommandScope::ThisChange);
    Ok(())
}

/// Counts that the user configured. They override the goal.
#[allow(clippy::too_many_arguments, reason = "inputs from different parts of the planner")]
fn configured_counts(
    s: &Snapshot,
    d: &mut Dev,
    intent: &Intent,
    setting: Setting,
    by: Vec<ConfiguredBy>,
    laid: &mut ConfiguredSettings,
    learned: &LearnedIndex,
    out: &mut PlanBuilder,
) {
    let name = d.name().to_string();
    let cannot_for = |out: &mut PlanBuilder, why: Obstacle, blocked_by: Option<Address>| {
        let address = Address::Channels { dev: name.clone() };
        let what = address.to_string();
        out.refused.push(NotPossible { address: Some(address), what, why, needed: true, blocked_by, settings: 1 });
    };
    let cannot = |out: &mut PlanBuilder, why: Obstacle| cannot_for(out, why, None);
    let (Some(c), Setting::Channels { rx, tx, combined, .. }) = (d.nic.channels.known(), &setting) else { return };
    if ringwise_knob::compare(&setting, s).holds() {
        return;
    }
    if let Some(users) = channel_users(d) {
        cannot(out, Obstacle::InUse { by: users }.configured(&by));
        return;
    }
    if let Some(why) = learned.why(d.nic, &setting) {
        cannot(out, why);
        return;
    }
    let counts = (then(*combined, c.combined, *rx, c.rx), then(*combined, c.combined, *tx, c.tx));
    // If the driver has no count of this direction, the change leaves it unchanged.
    let counts = (counts.0.unwrap_or(d.rx_now), counts.1.or(d.tx_now));
    if let Some((rule, why)) = in_the_way(d, counts.0, out.made.of(d.name())) {
        cannot_for(out, why.configured(&by), Some(rule));
        return;
    }
    let live = ringwise_knob::channels::live(d.nic);
    if !intent.allow_disruption {
        laid.will_have(&name, counts.0, counts.1.unwrap_or(0));
        wishes::propose(intent, &setting, live, &by, Some(d.nic), out);
        return;
    }
    if out.keep.channels(d.name(), &setting) {
        return;
    }
    (d.rx, d.tx) = counts;
    d.configured_by = Some(by);
    d.channels = Some(setting);
}

/// Number of queues of one direction with these counts; counts that are not requested stay unchanged. `None`: the driver
/// has no count for this direction.
pub(crate) fn then(combined: Option<u32>, both: Option<Count>, own: Option<u32>, has: Option<Count>) -> Option<u32> {
    let both = combined.or(both.map(|c| c.now));
    let own = own.or(has.map(|c| c.now));
    both.or(own).map(|_| both.unwrap_or(0) + own.unwrap_or(0))
}

/// A flow rule that steers to a queue which would be removed, and that is not configured. ringwise does not delete it for
/// the change. Rules of a queue group are planned again with the group.
fn in_the_way(d: &Dev, left: u32, made: &[CreatedObject]) -> Option<(Address, Obstacle)> {
    let mentioned = |at: u32, rule: &Rule| {
        let of_group = |m: &CreatedObject| {
            m.as_left
                && matches!(&m.setting, Setting::FlowRule { dev, rule: Some(r), .. } if dev == d.name() && r == rule)
                && matches!(m.before, Setting::FlowRule { rule: None, .. })
        };
        let flow = |f: &Flow| matches!(f, Flow::Match { flow, fields } if *flow == rule.flow && *fields == rule.fields);
        let group = |g: &&GroupWish| g.flows.iter().any(flow);
        d.rules.contains(&at) || d.groups.iter().any(group) || made.iter().any(of_group)
    };
    let all: Vec<_> = knob_rules::beyond(d.nic, left).into_iter().filter(|(at, r)| !mentioned(*at, r)).collect();
    let (at, rule) = all.first()?;
    let (dev, more) = (d.name().to_string(), all.len() as u32 - 1);
    let why = Obstacle::RuleNeedsQueue { dev: dev.clone(), location: *at, rule: (*rule).clone(), queues: left, more };
    Some((Address::FlowRule { dev, location: *at }, why))
}

/// The plan rule for a number of queues that the user requested.
pub(crate) const NAMED: &str = "R0.11";

/// The plan rule and the reason for another number of queues than `now`.
pub(crate) fn reason(intent: &Intent, now: u32, near: Share) -> (&'static str, Reason) {
    if let Some(queues) = intent.queues {
        return (NAMED, Reason::QueuesRequested { queues, now });
    }
    let Share { cores, cpus, .. } = near;
    match intent.goal {
        Goal::Latency => ("R3.16", Reason::FewestQueues { cores }),
        Goal::Forward => (if now > cpus { "Q03" } else { "Q01" }, Reason::OneQueueACpu { now, cpus }),
        _ if goal::counts_permitted(intent) => ("Q02", Reason::OneQueueAPermittedCpu { now, cpus: cores }),
        _ => (if now > cores { "Q02" } else { "Q01" }, Reason::OneQueueACore { now, cores }),
    }
}

//! Runs all stages of planning, from the intent to the finished document.

use std::collections::BTreeMap;

use ringwise_knob::{Learned, Match, Reason, ResetBy, Setting, Step};
use ringwise_model::order::Order;
use ringwise_model::words::plural;
use ringwise_model::{CpuSet, Fact, FarNode, Goal, Intent, IntentFlags, Snapshot};

use crate::by_load;
use crate::dev::{Dev, LearnedIndex};
use crate::goal::Resolved;
use crate::groups::{self, QueueGroup};
use crate::machine::{Class, Machine, Near};
use crate::manual_changes::{KeptSettings, MadeByDevice, ManualChanges};
use crate::place::{self, Placement};
use crate::target::{PlanBuilder, StepOrigin, StepReason};
use crate::wanted::RequestedSetting;
use crate::wishes::{self, ConfiguredSettings};
use crate::{Group, Plan, PlanHost, Refusal, SCHEMA, VERSION};
use crate::{
    arfs, article, bonds, channels, control, effect, goal, goal_knobs, interrupt_wait, irq, irqbalance, napi, programs,
    rfs, rps, select, shares, stacks, xps,
};

/// Plans the host for the intent; `learned` lists writes that devices refused or ignored.
///
/// The plan is complete, and planning changes nothing on the host. A refusal names what was found and what is expected.
pub fn plan(s: &Snapshot, intent: &Intent, learned: &[Learned]) -> Result<Plan, Refusal> {
    plan_around(s, intent, learned, &ManualChanges::default())
}

/// Like [`plan`], on a host with manual changes: some of them stay, steps that undo others are marked.
pub fn plan_around(s: &Snapshot, intent: &Intent, learned: &[Learned], hands: &ManualChanges) -> Result<Plan, Refusal> {
    let user = intent;
    let intent = goal::resolve(user);
    check_cpus(s, &intent)?;
    let (nics, left_alone) = select::devices(s, &intent)?;
    let mut m = Machine::new(&s.topology);
    m.kept_free = intent.reserve.union(&intent.exclude_cpus);
    m.loaded_elsewhere = s.without_interface.iter().flat_map(|f| f.loaded_cpus()).filter_map(|c| m.at(c)).collect();
    let mut out = PlanBuilder {
        left_alone,
        keep: KeptSettings::new(s, &hands.keep),
        by_hand: hands.addresses(s),
        made: MadeByDevice::new(&hands.made),
        ..PlanBuilder::default()
    };
    let mut devs = Dev::all(s, &m, &nics, user);
    devs.iter_mut().for_each(|d| d.late = hands.late.contains(d.name()));
    let article = intent.pair_as_article;
    let mut laid = ConfiguredSettings::channels(s, &devs, &intent);
    let learned = LearnedIndex::new(learned, &s.host.kernel);
    if m.cpus.len() < 2 {
        return on_one_cpu(s, intent, &m, devs, laid, &learned, hands, out);
    }
    let use_of = goal::usable(&s.topology, &intent);
    if use_of.cpus.is_empty() {
        return Err(Refusal::NoCandidates {
            online: s.topology.online.clone(),
            isolated: use_of.isolated,
            reserved: use_of.kept_free,
            cpus: intent.cpus.clone(),
        });
    }
    let usable: Vec<bool> = m.cpus.iter().map(|c| use_of.cpus.contains(*c)).collect();
    let resolved = Resolved::new(user, devs.iter().map(|d| d.goal));
    let places = place::places(&m, &devs, &usable, &resolved, user.smt.is_some())?;
    let intents: Vec<&Intent> = devs.iter().map(|d| resolved.of(d.goal)).collect();
    warn_about_host(s, &intent, &use_of, &mut out);
    let shares = bonds::shares(&devs, |d| {
        let place = &places[&d.zone()];
        let permitted = goal::counts_permitted(resolved.of(d.goal));
        (if permitted { place.permitted } else { place.home_cores }, place.home_cpus)
    });
    for ((d, share), intent) in devs.iter_mut().zip(&shares).zip(&intents) {
        channels::decide(s, d, intent, *share, &mut laid, &learned, &mut out)?;
    }
    bonds::level(s, &mut devs, &intent, &mut out);
    devs.iter_mut().for_each(|d| d.split(&m, &learned, &mut out.refused));
    laid.settings(s, &devs, &out.left_alone, &intent);
    let mut teams = teams(s, &mut devs, &intents, article, &mut laid, &mut out);
    groups::unknown(s, &devs, &intent, &mut laid);
    groups::number_without_group(&devs, &intent, &mut out);
    if article {
        groups::beside_article(&devs, &intent, &mut laid);
    }
    laid.refuse()?;
    out.laid = laid.names(s);
    out.permission = (!intent.allow_disruption).then(|| channels::with_word(&intent, &[]));
    let pins = pins(&m, &devs, &teams, &laid);
    name_no_more_than_needed(&intent, devs.len(), &mut out);
    let mut sampled_placement = None;
    let mut groups = if article {
        let groups = article::place(&m, &mut devs, &usable, &intent, &places, &mut out.sizes)?;
        devs.iter_mut().zip(&pins).for_each(|(d, pins)| move_to(d, pins));
        groups
    } else {
        devs.iter_mut().zip(&pins).for_each(|(d, pins)| d.pin(pins));
        place::place(&m, &mut devs, &places);
        let configured = laid.by.keys().cloned().collect();
        sampled_placement = intent.sample.as_ref().and_then(|s| by_load::place(&m, &mut devs, &places, s, &configured));
        Vec::new()
    };
    let now = irq::CurrentLoads::new(&m, &devs);
    wishes::configure(s, &devs, laid, &intent, &learned, &mut out);
    if article {
        // The article's layout, with or without its policies.
        let by_device = by_device(&groups);
        let of = |d: &Dev| by_device.get(d.name()).filter(|_| d.goal == Goal::Mixed);
        teams = devs.iter().map(|d| of(d).map_or_else(Vec::new, |g| groups::of_article(g, user))).collect();
    }
    for ((d, share), intent) in devs.iter().zip(&shares).zip(&intents) {
        let place = &places[&d.zone()];
        warn_about_device(&m, d, place, &mut out);
        want_channels(d, intent, *share, &learned, &mut out);
        irq::plan(&m, d, place, &now, &usable, &learned, &mut out)?;
        xps::plan(&m, d, &learned, &mut out);
        rps::plan(s, &m, d, place, &usable, intent, &learned, &mut out);
    }
    groups::add_placement(sampled_placement.as_ref(), &mut out);
    let sampled = groups::choose(&m, &devs, &mut teams, user, &mut out);
    if intent.sample.is_some() && sampled_placement.is_none() && sampled.is_empty() {
        out.warnings.push("--sample has no effect: no interface has queues that it places, or divides into groups");
    }
    let mut planned: Vec<Group> = Vec::new();
    for (d, teams) in devs.iter().zip(&teams) {
        planned.extend(groups::plan(s, &m, d, teams, &sampled, &learned, &mut out));
    }
    let with_policies = by_device(&planned);
    groups.retain(|g| !with_policies.contains_key(g.dev.as_str()));
    groups.extend(planned);
    shares::plan(s, &m, &mut devs, &teams, &learned, &mut out);
    for d in &devs {
        groups::away(s, d, &learned, &mut out);
        groups::contexts_on_fewer_queues(d, &mut out);
    }
    goal_knobs::plan(s, &m, &devs, &teams, &learned, &intent, &mut out);
    name_proposed_devices(&intent, &mut out);
    rfs::plan(s, &devs, &intent, &learned, &mut out);
    rfs::warn_half(s, &devs, &intent, &mut out);
    arfs::plan(&devs, &intent, &learned, &mut out);
    irqbalance::plan(s, &devs, &learned, &mut out);
    devs.iter_mut().for_each(|d| out.keep.lay_out(&m, d));
    napi::plan(&m, &devs, &learned, &mut out);
    if let Some(text) = programs::half_reserved(&m, &devs, &intent) {
        out.warnings.push(text);
    }
    let programs = programs::plan(s, &m, &devs, &teams, &usable, &intent, &mut out.advice);
    let mut plan = document(s, intent, &m, &devs, out, groups);
    plan.programs = programs;
    plan.sampled = sampled;
    plan.sampled_placement = sampled_placement;
    plan.by_hand = hands.marked(s, &plan.steps);
    Ok(plan)
}

/// The plan of a host with one CPU: nothing is placed; everything else is planned as usual.
#[allow(clippy::too_many_arguments, reason = "what was read and decided before the number of CPUs matters")]
fn on_one_cpu(
    s: &Snapshot,
    intent: Intent,
    m: &Machine,
    mut devs: Vec<Dev>,
    mut laid: ConfiguredSettings,
    learned: &LearnedIndex,
    hands: &ManualChanges,
    mut out: PlanBuilder,
) -> Result<Plan, Refusal> {
    out.warnings.push("the host has one CPU, so queues are not placed");
    if intent.sample.is_some() {
        out.warnings
            .push("--sample has no effect: on a host with one CPU, queues are neither placed nor divided into groups");
    }
    let one = goal::Share { cores: 1, cpus: 1, now: 1, max: 1 };
    let as_it_is = Intent { queues: None, goal: Goal::Balanced, ..intent.clone() };
    for d in &mut devs {
        let none = goal::Share { now: d.rx_now, max: d.rx_now, ..one };
        channels::decide(s, d, &as_it_is, none, &mut laid, learned, &mut out)?;
    }
    laid.settings(s, &devs, &out.left_alone, &intent);
    laid.refuse()?;
    out.laid = laid.names(s);
    out.permission = (!intent.allow_disruption).then(|| channels::with_word(&intent, &[]));
    for d in &devs {
        want_channels(d, &intent, one, learned, &mut out);
    }
    wishes::configure(s, &devs, laid, &intent, learned, &mut out);
    rfs::warn_half(s, &devs, &intent, &mut out);
    goal_knobs::plan(s, m, &devs, &[], learned, &intent, &mut out);
    name_proposed_devices(&intent, &mut out);
    let mut plan = document(s, intent, m, &devs, out, Vec::new());
    plan.by_hand = hands.marked(s, &plan.steps);
    Ok(plan)
}

/// The groups of each device with their queues; empty with the layout of the article, which creates its own groups.
fn teams(
    s: &Snapshot,
    devs: &mut [Dev],
    intents: &[&Intent],
    article: bool,
    laid: &mut ConfiguredSettings,
    out: &mut PlanBuilder,
) -> Vec<Vec<QueueGroup>> {
    let mut teams: Vec<Vec<QueueGroup>> = Vec::new();
    for (d, intent) in devs.iter_mut().zip(intents).filter(|_| !article) {
        let mine = groups::teams(s, d, intent, laid, out);
        if d.goal == Goal::Mixed {
            let urgent = |q: &u32| mine.iter().any(|t| t.urgent && t.queues.contains(q));
            d.urgent = (0..d.pairs() as u32).map(|q| urgent(&q)).collect();
        }
        teams.push(mine);
    }
    teams
}

/// The configured CPUs of queues, by device. `None` instead of a CPU: not exactly one CPU.
type Pins = Vec<(usize, Option<usize>)>;

fn pins(m: &Machine, devs: &[Dev], teams: &[Vec<QueueGroup>], laid: &ConfiguredSettings) -> Vec<Pins> {
    let mut pins: Vec<Pins> = devs.iter().map(|d| laid.pins(m, d)).collect();
    // The CPUs of an interrupt take precedence over those of its group.
    for (p, t) in pins.iter_mut().zip(teams) {
        p.splice(0..0, groups::pins(m, t));
    }
    pins
}

/// Moves queues that were placed already to their configured CPUs.
fn move_to(d: &mut Dev, pins: &Pins) {
    for (q, at) in pins {
        d.cpu.get_mut(*q).into_iter().for_each(|c| *c = *at);
    }
}

fn check_cpus(s: &Snapshot, intent: &Intent) -> Result<(), Refusal> {
    let online = &s.topology.online;
    // Keeping an offline CPU free is harmless; placing a queue on one is not.
    let there = s.topology.possible.known().map_or_else(|| online.clone(), |p| p.union(online));
    let given = intent.given.as_deref();
    let flag = |of: fn(&IntentFlags) -> &Option<CpuSet>| given.is_some_and(|g| of(g).is_some());
    let named = intent.cpus.iter().map(|c| ("--cpus", flag(|g| &g.cpus), c, online));
    let kept = [
        ("--reserve", flag(|g| &g.reserve), &intent.reserve, &there),
        ("--exclude-cpus", flag(|g| &g.exclude_cpus), &intent.exclude_cpus, &there),
    ];
    for (option, by_flag, cpus, allowed) in named.chain(kept) {
        let beyond = cpus.difference(allowed);
        if !beyond.is_empty() {
            let file = intent.config.clone().filter(|_| !by_flag);
            return Err(Refusal::CpuBeyondMachine {
                option: option.into(),
                file,
                cpus: beyond,
                online: online.clone(),
            });
        }
    }
    Ok(())
}

fn warn_about_host(s: &Snapshot, intent: &Intent, u: &goal::Usable, out: &mut PlanBuilder) {
    let t = &s.topology;
    let named_isolated = intent.cpus.as_ref().map_or_else(CpuSet::new, |c| c.intersection(&u.isolated));
    if !named_isolated.is_empty() {
        out.warnings.push(format!("CPUs {named_isolated} are isolated, but were requested: queues are placed there"));
    }
    if let Fact::Unknown(why) = &t.isolated {
        out.warnings.push(format!("could not read which CPUs are isolated ({why})"));
    }
    if let Fact::Known(h) = &t.hypervisor {
        out.warnings.push(format!(
            "this is a virtual machine ({h}): the cores, caches and nodes that it sees may differ from the hardware"
        ));
    }
}

/// No placement lets a queue send more than its limit inside the NIC.
fn warn_about_limits(d: &Dev, out: &mut PlanBuilder) {
    let Some(shapers) = d.nic.shapers.known() else { return };
    for q in &d.nic.tx_queues {
        if let Some((rate, unit)) = shapers.max_of_queue(q.id)
            && d.nic.link.speed_mbps.known().is_none_or(|mbps| unit.is_below(rate, *mbps) != Some(false))
        {
            let text = format!("net-shaper limits each of these transmit queues to {}", unit.text(rate));
            out.warnings.detailed(d.name(), format!("tx-{}", q.id), text);
        }
    }
}

fn warn_about_device(m: &Machine, d: &Dev, place: &Placement, out: &mut PlanBuilder) {
    let dev = d.name();
    match &d.near {
        Near::All if m.has_nodes() => {
            let text = "its node is unknown, so all CPUs count as equally near (name better ones: --cpus for all interfaces, \
                        irq_cpus by queue in a file)";
            out.warnings.about(dev, text);
        }
        Near::Cpus(c) => {
            out.warnings.about(dev, format!("its node is unknown; the device reports CPUs {c} as local"));
        }
        _ => {}
    }
    if place.far_instead {
        out.warnings.about(dev, "no nearby CPU is left, so its queues are placed on remote nodes");
    } else if goal::far_when_full(d.goal) {
        let far = d.cpu.iter().flatten().filter(|c| place.zone.class[**c] == Class::Far).count();
        if far > 0 {
            let text =
                "every nearby CPU has a queue, so these are placed on remote nodes (to prevent it: --far-node never)";
            out.warnings.detailed(dev, plural(far, "queue"), text);
        }
    }
    if !d.nic.link_is_up() {
        let text = "its link is not known to be up; the CPUs of its interrupts are known only when there is traffic";
        out.warnings.about(dev, text);
    }
    warn_about_limits(d, out);
    let lost = d.unknown_vectors();
    if lost > 0 {
        let text = match lost {
            1 => "the queue of 1 interrupt is unknown; it stays unchanged".to_string(),
            n => format!("the queues of {n} interrupts are unknown; they stay unchanged"),
        };
        out.warnings.about(dev, text);
    }
    for v in d.nic.vectors.iter().filter(|v| !v.is_queue()) {
        if let Some(c) = Dev::now(m, v).map(|c| m.cpus[c])
            && m.isolated.contains(c)
            && v.role == ringwise_model::Role::Control
        {
            let name = v.names.first().map_or_else(|| format!("interrupt {}", v.irq), Clone::clone);
            out.warnings.about(dev, format!("{name} (serves no queue) is on isolated CPU {c}; it stays unchanged"));
        }
    }
}

/// Settings that the goal proposes share one command. It names their devices if it would otherwise change others too.
fn name_proposed_devices(intent: &Intent, out: &mut PlanBuilder) {
    let queues = channels::queues_of_flags(intent);
    out.left_out.name_devices(intent, |devs| channels::command(intent, devs, queues));
}

/// Uses one command for all devices if it would change nothing else.
fn name_no_more_than_needed(intent: &Intent, devices: usize, out: &mut PlanBuilder) {
    if out.left_out.as_slice().len() == devices && out.skipped_counts == devices {
        out.left_out.share_one_command(&channels::with_word(intent, &[]).0);
    }
}

fn by_device(groups: &[Group]) -> BTreeMap<&str, Vec<&Group>> {
    let mut out: BTreeMap<&str, Vec<&Group>> = BTreeMap::new();
    for g in groups {
        out.entry(&g.dev).or_default().push(g);
    }
    out
}

fn want_channels(d: &Dev, intent: &Intent, share: goal::Share, learned: &LearnedIndex, out: &mut PlanBuilder) {
    let Some(setting) = d.channels.clone() else { return };
    let live = ringwise_knob::channels::live(d.nic);
    // `decide` found a count that differs from the current one.
    let w = RequestedSetting { setting, live, matched: Match::Differs, anew: false, needed: true };
    if let Some(by) = d.configured_by.clone() {
        let source = wishes::source(&by);
        let reason = Reason::Configured { by, with: None };
        let by = StepOrigin {
            rule: wishes::RULE,
            reason,
            source,
            instead: Vec::new(),
            after: ResetBy::Channels,
            named: true,
        };
        return out.enter(Some(d.nic), learned, w, || by);
    }
    let (rule, reason) = channels::reason(intent, d.pairs_now(), share);
    if out.laid.contains(&ringwise_knob::Address::Channels { dev: d.name().to_string() }) {
        return;
    }
    let named = intent.queues.is_some();
    out.enter(Some(d.nic), learned, w, || StepOrigin { named, ..StepReason { rule, reason }.into() });
}

fn document(s: &Snapshot, intent: Intent, m: &Machine, devs: &[Dev], mut out: PlanBuilder, groups: Vec<Group>) -> Plan {
    let refused = out.take_refused();
    let mut entries = out.entries.into_list();
    entries.order_by(|a, b| a.0.cmp(&b.0));
    ringwise_knob::order(&mut entries, |(_, to, step)| (step.as_ref().map_or(&Fact::Absent, |s| &s.from), to));
    let mut expected = if entries.is_empty() { Vec::new() } else { effect::expected(m, devs, &intent, &entries) };
    expected.extend(effect::free_to_move(devs, &entries));
    expected.extend(interrupt_wait::expected(devs, &entries));
    let mut doubled: Vec<_> = devs.iter().flat_map(|d| effect::doubled(m, d)).collect();
    let by_device = by_device(&groups);
    for d in &mut doubled {
        let mine = by_device.get(d.dev.as_str()).into_iter().flatten();
        let alike = mine.filter(|g| d.queues.iter().all(|q| g.queues.binary_search(q).is_ok()));
        d.group = alike.map(|g| g.name.clone()).next();
    }
    stacks::warn_about_pairs(&doubled, &mut out.warnings);
    // If manual changes put several queues on one CPU, the plan does not recommend fewer queues.
    let remote = intent.far_node == Some(FarNode::Ok);
    let stacks = devs
        .iter()
        .filter(|d| !out.keep.moves(d.name()))
        .filter_map(|d| stacks::Stack::of(d, out.left_out.as_slice(), intent.queues.is_some(), remote));
    stacks::warn(&stacks.collect::<Vec<_>>(), devs.len(), &mut out.warnings);
    let mut target: Vec<Setting> = Vec::with_capacity(entries.len());
    let mut steps = Vec::new();
    for (_, setting, step) in entries {
        target.push(setting);
        steps.extend(step);
    }
    let shared_for_locality = effect::modelled_load(m, devs).and_then(|load| shared_for_locality(&steps, load));
    let cuts = control::cuts(s, &steps);
    let outages = control::outages(s, &steps);
    out.left_alone.order_by(|a, b| ringwise_model::natural::compare(&a.dev, &b.dev));
    let mut plan = Plan {
        schema: SCHEMA.to_string(),
        version: VERSION,
        host: PlanHost::of(s),
        intent,
        devices: devs.iter().filter(|_| !target.is_empty()).map(|d| d.nic.dev.clone()).collect(),
        considered: devs.iter().map(|d| d.name().to_string()).collect(),
        left_alone: out.left_alone,
        bystanders: s.bystanders.count.clone(),
        already: target.len() - steps.len(),
        steps,
        layout: devs.iter().map(|d| effect::layout(m, d)).collect(),
        target,
        left_out: out.left_out.into_changes(),
        refused,
        warnings: out.warnings.into_texts(),
        expected,
        shared_for_locality,
        groups,
        sampled: Vec::new(),
        sampled_placement: None,
        programs: Vec::new(),
        advice: out.advice.into_texts(),
        control: control::ways(s),
        cuts,
        outages,
        doubled_cores: doubled,
        by_hand: Vec::new(),
        kept: out.keep.done,
    };
    if let Some(part) = plan.shared_for_locality {
        plan.warnings.push(format!(
            "by its model this plan carries {part:.1} times as much traffic as now, because queues leave remote CPUs and share \
             local ones. The model does not count what remote memory costs: only a measurement shows which layout is faster \
             here (ringwise bench forward --state 'local=--goal forward'; ringwise bench forward --help). Until you have \
             measured, prefer --far-node ok, which uses remote CPUs too."
        ));
    }
    plan
}

/// See [`Plan::shared_for_locality`]. `load`: that of the busiest CPU, now and planned.
fn shared_for_locality(steps: &[Step], (was, is): (f64, f64)) -> Option<f64> {
    let from_remote = |s: &Step| matches!(s.reason, Reason::FarNode { .. });
    // Where isolated CPUs become free of queues, the traffic is the price of that.
    let isolated = |s: &Step| matches!(s.reason, Reason::IsolatedCpu { .. });
    let shared = steps.iter().any(from_remote) && !steps.iter().any(isolated);
    (is > was && shared).then(|| was / is)
}

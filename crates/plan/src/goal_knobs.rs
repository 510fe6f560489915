//! The settings that a goal proposes beside queues and their CPUs: moderation, offloads, pause frames, wake-up latency of
//! CPUs.
//!
//! ```text
//!   goal ─► requested settings (data) ─► features of the device ─► steps, proposals (if traffic is interrupted),
//!                                                                  and notes on settings that are not possible
//! ```
//! A configured knob overrides the goal completely: if a file sets one parameter of moderation, the goal changes no
//! parameter of moderation.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::{Address, Reason, Setting, alike, coalesce, compare, features as knob_features, live};
use ringwise_model::{CpuId, Fact, Goal, Intent, Knob, Policy, Snapshot, Unread, User};

use crate::dev::{Dev, LearnedIndex};
use crate::goal::{self, Rfs};
use crate::groups::{GroupPlanner, GroupSetting, QueueGroup, first_clause};
use crate::machine::Machine;
use crate::moderation::{self, driver, one_interval, rx_alone};
use crate::target::{PlanBuilder, StepReason};
use crate::wanted::RequestedSetting;
use crate::{NotPossible, Obstacle, ProposedChange, channels, control, policies};

const SWITCHES: [&str; 2] = ["use-adaptive-rx", "use-adaptive-tx"];
const LRO: &str = "rx-lro";
const GRO: &str = "rx-gro";
const TSO: [&str; 2] = ["tx-tcp-segmentation", "tx-tcp6-segmentation"];

const DIM: &str = "kernel documentation, networking/net_dim";
const OWN_MODE: &str = "kernel documentation, driver e1000e: InterruptThrottleRate";
const NO_LRO: &str = "kernel source, net/core/dev.c: dev_disable_lro";
const OFFLOADS: &str = "kernel documentation, networking/segmentation-offloads";
const LIMITS: &str = "Pushing the Limits of Kernel Networking (Duyck, 2015)";

/// Moderation of a whole device.
#[derive(Clone, Copy, PartialEq)]
enum Moderation {
    Keep,
    Adaptive,
    /// A policy by its name.
    Fixed(&'static str),
}

fn moderation_of(goal: Goal) -> Moderation {
    match goal {
        Goal::Balanced | Goal::Forward | Goal::Mixed => Moderation::Keep,
        Goal::Rpc => Moderation::Adaptive,
        Goal::Stream => Moderation::Fixed("bulk"),
        Goal::Latency => Moderation::Fixed("latency"),
    }
}

/// Maximum wake-up latency of a queue's CPU: the time that the policy lets a packet wait. Never 0, which means no limit.
fn wake_usecs(own: &[Policy]) -> u32 {
    let wait = policies::find("latency", own).and_then(|p| p.params.get("rx-usecs").copied());
    wait.unwrap_or(1).max(1)
}

/// The settings that a goal proposes for the host and for an interface with all features, for people. Queues and CPUs
/// depend on the host and are not included.
pub struct GoalSettings {
    /// For each interface, without channels, interrupts and XPS. Empty: the goal changes nothing else there.
    pub device: Vec<Knob>,
    /// `net.core.rps_sock_flow_entries`; 0: RFS is turned off; `None`: the goal leaves it unchanged.
    pub rfs_entries: Option<u32>,
    /// Microseconds, on the CPUs of the queues.
    pub cpu_latency: Option<u32>,
}

/// The settings of the goal, independent of a host; `own` are policies of the configuration, which override the built-in
/// ones.
pub fn goal_settings(goal: Goal, own: &[Policy]) -> GoalSettings {
    let mut device = Vec::new();
    let feature = |name: &str, on| Knob::Feature { name: name.into(), on };
    match moderation_of(goal) {
        Moderation::Keep => {}
        Moderation::Adaptive => {
            device.push(Knob::Coalesce { queues: None, params: SWITCHES.map(|k| (k.to_string(), 1)).into() });
        }
        Moderation::Fixed(name) => {
            let params = policies::find(name, own).map(|p| p.params).unwrap_or_default();
            device.push(Knob::Coalesce { queues: None, params });
        }
    }
    match goal {
        Goal::Forward => {
            device.push(feature("lro", false));
            device.push(Knob::Pause { autoneg: Some(false), rx: Some(false), tx: Some(false) });
        }
        Goal::Stream => device.extend([GRO, TSO[0], TSO[1]].map(|n| feature(n, true))),
        _ => {}
    }
    GoalSettings {
        device,
        rfs_entries: match goal::rfs(goal) {
            Rfs::Keep => None,
            Rfs::Off => Some(0),
            Rfs::On { entries, .. } => Some(entries),
        },
        cpu_latency: (goal == Goal::Latency).then(|| wake_usecs(own)),
    }
}

/// Collects settings that are not possible, so that devices with the same problem share one line: setting, reason, and
/// whether the goal needs it, each with its devices.
#[derive(Default)]
struct ImpossibleSettings {
    list: Vec<(Note, Vec<String>)>,
    /// Index by the setting, the text of the reason, and whether the goal needs it.
    places: BTreeMap<(String, String, bool), usize>,
}

struct Note {
    what: String,
    why: Obstacle,
    needed: bool,
}

impl ImpossibleSettings {
    fn add(&mut self, dev: &str, what: &str, why: Obstacle, needed: bool) {
        let at = *self.places.entry((what.to_string(), why.to_string(), needed)).or_insert(self.list.len());
        match self.list.get_mut(at) {
            Some((_, devs)) => devs.push(dev.to_string()),
            None => self.list.push((Note { what: what.to_string(), why, needed }, vec![dev.to_string()])),
        }
    }

    fn unread(&mut self, dev: &str, what: &str, u: &Unread, needed: bool) {
        self.add(dev, what, Obstacle::NotReadableStays { unread: u.clone() }, needed);
    }

    fn say(self, out: &mut PlanBuilder) {
        // The same reason on the same devices gives one line.
        let mut lines: Vec<(Vec<String>, Obstacle, bool, Vec<String>)> = Vec::new();
        let mut places: BTreeMap<(Vec<String>, String, bool), usize> = BTreeMap::new();
        for (Note { what, why, needed }, devs) in self.list {
            let at = *places.entry((devs.clone(), why.to_string(), needed)).or_insert(lines.len());
            match lines.get_mut(at) {
                Some((.., all)) => all.push(what),
                None => lines.push((devs, why, needed, vec![what])),
            }
        }
        for (devs, why, needed, what) in lines {
            let settings = devs.len() * what.len();
            let what = what.join(", ");
            let what = if devs.iter().all(String::is_empty) { what } else { format!("{} {what}", devs.join(" ")) };
            out.refused.push(NotPossible { address: None, what, why, needed, blocked_by: None, settings });
        }
    }
}

/// `teams`: queue groups by device, which have their own policy.
pub(crate) fn plan(
    s: &Snapshot,
    m: &Machine,
    devs: &[Dev],
    teams: &[Vec<QueueGroup>],
    learned: &LearnedIndex,
    intent: &Intent,
    out: &mut PlanBuilder,
) {
    let mut notes = ImpossibleSettings::default();
    for (i, d) in devs.iter().enumerate() {
        if let Some(u) = &d.unread_count
            && !configured(intent, d.name(), |k| matches!(k, Knob::Channels { .. }))
        {
            notes.unread(d.name(), "channels", u, false);
        }
        let mut cx = GroupPlanner { s, d, learned, out };
        if teams.get(i).is_none_or(Vec::is_empty) {
            moderation(&mut cx, intent, &mut notes);
        }
        match d.goal {
            Goal::Forward => {
                let why = ("M11", Reason::LroBreaksForwarding, NO_LRO);
                features(&mut cx, intent, &mut notes, "LRO", &[LRO], false, why);
                pause(&mut cx, intent, &mut notes);
            }
            Goal::Stream => {
                features(&mut cx, intent, &mut notes, "GRO", &[GRO], true, ("M10", Reason::GroJoins, OFFLOADS));
                features(&mut cx, intent, &mut notes, "TSO", &TSO, true, ("M14", Reason::TsoCuts, OFFLOADS));
            }
            _ => {}
        }
    }
    wake(s, m, devs, learned, intent, &mut notes, out);
    notes.say(out);
    advice(devs, out);
}

/// Whether the user configured such a setting of the device. If the device does not report its value, the configured setting
/// is the one that is reported as not possible.
pub(crate) fn configured(intent: &Intent, dev: &str, which: impl Fn(&Knob) -> bool) -> bool {
    intent.wishes.iter().any(|w| w.dev.as_deref() == Some(dev) && which(&w.knob))
}

/// Whether `word` of the configuration names the feature: by the kernel's name or one of ethtool.
pub(crate) fn fits(word: &str, feature: &str) -> bool {
    !knob_features::named(word, [&feature.to_string()]).is_empty()
}

/// Adds a step if the user permits it; otherwise adds the setting to the skipped ones.
fn propose(cx: &mut GroupPlanner, intent: &Intent, w: GroupSetting) {
    let Some(address) = w.setting.address() else { return };
    if cx.out.laid.contains(&address) || cx.out.entries.contains(&address) {
        return;
    }
    let untried = std::iter::once(&w.setting).chain(&w.instead).find(|s| cx.learned.why(cx.d.nic, s).is_none());
    let harms = address.interrupts_traffic_of(Some(cx.d.nic)) && !compare(&w.setting, cx.s).holds();
    let Some(setting) = untried.filter(|_| harms && !intent.allow_disruption).cloned() else { return cx.want(w) };
    let (command, scope) = channels::with_word(intent, &[]);
    let change = ProposedChange {
        setting,
        from: live(cx.s, &address),
        rule: w.rule.into(),
        reason: w.reason,
        command,
        outage: control::outage(driver(cx.d.nic)).to_string(),
    };
    cx.out.left_out.push(change, scope);
}

fn moderation(cx: &mut GroupPlanner, intent: &Intent, notes: &mut ImpossibleSettings) {
    let wanted = moderation_of(cx.d.goal);
    let dev = cx.d.name().to_string();
    let queue = Address::QueueCoalesce { dev: dev.clone(), queue: 0 };
    let laid = &cx.out.laid;
    let mine = || {
        let queues = laid.range(&queue..).map(|a| (a, ()));
        laid.contains(&Address::Coalesce { dev: dev.clone() }) || alike(queues, &queue).next().is_some()
    };
    if wanted == Moderation::Keep || mine() {
        return;
    }
    let fixed = wanted != Moderation::Adaptive;
    let has = match &cx.d.nic.coalesce {
        Fact::Known(c) => c.0.clone(),
        _ if configured(intent, &dev, |k| matches!(k, Knob::Coalesce { .. })) => return,
        Fact::Absent => return notes.add(&dev, "moderation", Obstacle::NoModerationSet, fixed),
        Fact::Unknown(u) => return notes.unread(&dev, "moderation", u, fixed),
    };
    let made = match wanted {
        Moderation::Fixed(name) => policies::find(name, &intent.policies).and_then(|p| by_policy(cx, &p, &has, notes)),
        _ => adaptive(cx, &has, notes),
    };
    let Some((params, reason, source)) = made else { return };
    let setting = Setting::Coalesce { dev: dev.clone(), params: params.clone() };
    let instead = rx_alone(&dev, &params);
    let refused = cx.learned.why(cx.d.nic, &setting);
    if let (Some(why), Some(other)) = (refused, instead.iter().find(|s| cx.learned.why(cx.d.nic, s).is_none())) {
        let what = format!("moderation {}", coalesce::text(&params));
        notes.add(&dev, &what, why.instead(other), false);
    }
    let holds = compare(&setting, cx.s).holds();
    cx.want(GroupSetting {
        setting,
        instead,
        rule: "M01",
        reason: reason.clone(),
        source: source.to_string(),
        needed: fixed,
    });
    // Some drivers report their first queue as the device: other queues may still have values of groups.
    let Some(all) = cx.d.nic.queue_coalesce.known().filter(|_| holds) else { return };
    for (queue, now) in all.iter().filter(|(q, _)| (**q as usize) < cx.d.pairs()) {
        let params: BTreeMap<String, u32> =
            params.iter().filter(|(k, _)| now.0.contains_key(*k)).map(|(k, v)| (k.clone(), *v)).collect();
        if !coalesce::compare(driver(cx.d.nic), &params, &now.0).holds() {
            let setting = Setting::QueueCoalesce { dev: dev.clone(), queue: *queue, params };
            let (reason, source) = (reason.clone(), source.to_string());
            cx.want(GroupSetting { setting, instead: Vec::new(), rule: "M01", reason, source, needed: fixed });
        }
    }
}

type Made = Option<(BTreeMap<String, u32>, Reason, &'static str)>;

fn by_policy(cx: &GroupPlanner, policy: &Policy, has: &BTreeMap<String, u32>, notes: &mut ImpossibleSettings) -> Made {
    let dev = cx.d.name();
    let fit = moderation::fixed(cx.d, policy, has);
    if !fit.missing.is_empty() {
        let why = Obstacle::NoParameter { policy: policy.name.clone() };
        notes.add(dev, &fit.missing.join(" "), why, false);
    }
    if fit.one_interval {
        notes.add(dev, "tx-usecs", Obstacle::OneInterval, false);
    }
    let adaptive_off = SWITCHES.iter().any(|k| has.get(*k).is_some_and(|v| *v != 0) && fit.params.get(*k) == Some(&0));
    let (policy, when) = (policy.name.clone(), first_clause(&policy.when));
    let reason = Reason::Policy { policy, when, moved: fit.moved, adaptive_off };
    (!fit.params.is_empty()).then_some((fit.params, reason, policies::SOURCE))
}

fn adaptive(cx: &GroupPlanner, has: &BTreeMap<String, u32>, notes: &mut ImpossibleSettings) -> Made {
    let params: BTreeMap<String, u32> =
        SWITCHES.iter().filter(|k| has.contains_key(**k)).map(|k| (k.to_string(), 1)).collect();
    if !params.is_empty() {
        return Some((params, Reason::Adaptive { own_mode: BTreeMap::new() }, DIM));
    }
    let one = one_interval(cx.d);
    let usecs = ["rx-usecs", "tx-usecs"].into_iter().filter(|k| !one || *k != "tx-usecs");
    let modes = usecs.filter_map(|k| Some((k.to_string(), coalesce::own_mode(driver(cx.d.nic), *has.get(k)?)?)));
    let params: BTreeMap<String, u32> = modes.collect();
    if params.is_empty() {
        notes.add(cx.d.name(), "adaptive moderation", Obstacle::NoAdaptive, false);
        return None;
    }
    let reason = Reason::Adaptive { own_mode: params.clone() };
    Some((params, reason, OWN_MODE))
}

/// Features that are switched on or off together; `short` is the usual name.
fn features(
    cx: &mut GroupPlanner,
    intent: &Intent,
    notes: &mut ImpossibleSettings,
    short: &str,
    names: &[&str],
    on: bool,
    (rule, reason, source): (&'static str, Reason, &str),
) {
    let dev = cx.d.name().to_string();
    let named = |k: &Knob| matches!(k, Knob::Feature { name, .. } if names.iter().any(|n| fits(name, n)));
    let all = match &cx.d.nic.features {
        Fact::Known(all) => all,
        _ if configured(intent, &dev, named) => return,
        Fact::Unknown(u) => return notes.unread(&dev, short, u, !on),
        // A device that reports no features has none to switch off.
        Fact::Absent if !on => return,
        Fact::Absent => return notes.add(&dev, short, Obstacle::NoFeatures, false),
    };
    let there: Vec<_> = names.iter().filter_map(|n| Some((*n, all.get(*n)?))).collect();
    if on && there.iter().all(|(_, f)| f.fixed && !f.on) {
        return notes.add(&dev, short, Obstacle::NoSuchFeature, false);
    }
    for (name, f) in there {
        let address = Address::Feature { dev: dev.clone(), name: name.into() };
        if cx.out.laid.contains(&address) {
            continue;
        }
        if f.fixed {
            if f.on != on {
                notes.add(&dev, name, Obstacle::FeatureFixed { on: f.on }, !on);
            }
            continue;
        }
        if on && !f.on && f.wanted {
            notes.add(&dev, name, Obstacle::FeatureDepends, false);
            continue;
        }
        let setting = Setting::Feature { dev: dev.clone(), name: name.into(), on };
        let (reason, source) = (reason.clone(), source.to_string());
        propose(cx, intent, GroupSetting { setting, instead: Vec::new(), rule, reason, source, needed: !on });
    }
}

/// Switches pause frames off, without negotiating with the link partner.
fn pause(cx: &mut GroupPlanner, intent: &Intent, notes: &mut ImpossibleSettings) {
    let dev = cx.d.name().to_string();
    let rdma = cx.d.nic.users.known().into_iter().flatten().find_map(|u| match u {
        User::Rdma { device } => Some(device.clone()),
        _ => None,
    });
    // Where RDMA may depend on them the goal changes nothing, whether they can be read or not.
    let for_rdma = |device| Obstacle::PauseFramesForRdma { device };
    let p = match (&cx.d.nic.pause, rdma.clone()) {
        (Fact::Known(p), _) => *p,
        _ if configured(intent, &dev, |k| matches!(k, Knob::Pause { .. })) => return,
        // A device without pause frames sends none.
        (Fact::Absent, _) => return,
        (Fact::Unknown(_), Some(device)) => return notes.add(&dev, "pause frames", for_rdma(device), false),
        (Fact::Unknown(u), None) => return notes.unread(&dev, "pause frames", u, true),
    };
    let is_on = p.rx == Some(true) || p.tx == Some(true);
    if let Some(device) = rdma.filter(|_| is_on) {
        return notes.add(&dev, "pause frames", for_rdma(device), false);
    }
    let off = |autoneg| Setting::Pause { dev: dev.clone(), autoneg, rx: p.rx.map(|_| false), tx: p.tx.map(|_| false) };
    let negotiated = is_on && p.autoneg == Some(true);
    if p.rx.is_none() && p.tx.is_none() {
        return;
    }
    let reason = Reason::PauseStopsLink;
    // Drivers that tie it to the link's autonegotiation may accept rx and tx alone.
    let instead = if negotiated { vec![off(None)] } else { Vec::new() };
    let setting = off(negotiated.then_some(false));
    propose(cx, intent, GroupSetting { setting, instead, rule: "R1.07", reason, source: LIMITS.into(), needed: false });
}

/// Limits the wake-up latency of the CPUs of `latency` queues to the time that the policy waits.
fn wake(
    s: &Snapshot,
    m: &Machine,
    devs: &[Dev],
    learned: &LearnedIndex,
    intent: &Intent,
    notes: &mut ImpossibleSettings,
    out: &mut PlanBuilder,
) {
    let mut cpus: BTreeSet<CpuId> = BTreeSet::new();
    for d in devs.iter().filter(|d| d.goal == Goal::Latency) {
        cpus.extend(d.cpu.iter().flatten().map(|c| m.cpus[*c]));
        if let [only] = m.cpus.as_slice() {
            cpus.insert(*only);
        }
    }
    let most = wake_usecs(&intent.policies);
    let what = "resume latency of the queues' CPUs";
    let mut said = false;
    for cpu in cpus {
        let setting = Setting::CpuLatency { cpu, value: most.to_string() };
        let live = live(s, &Address::CpuLatency { cpu });
        let now = match &live {
            Fact::Known(Setting::CpuLatency { value, .. }) => value.clone(),
            Fact::Known(_) => continue,
            // Either all CPUs of a host have the file or none.
            _ if std::mem::replace(&mut said, true) => continue,
            Fact::Unknown(u) => {
                notes.unread("", what, u, true);
                continue;
            }
            Fact::Absent => {
                notes.add("", what, Obstacle::NoResumeLatency, false);
                continue;
            }
        };
        // The current limit is stricter; another program set it.
        if now == "n/a" || now.parse::<u32>().is_ok_and(|n| n > 0 && n < most) {
            continue;
        }
        let w = RequestedSetting { matched: compare(&setting, s), setting, live, anew: false, needed: true };
        out.want(None, learned, w, || StepReason { rule: "H07", reason: Reason::DeepSleep { usecs: most } });
    }
}

fn advice(devs: &[Dev], out: &mut PlanBuilder) {
    if devs.iter().any(|d| d.goal == Goal::Latency) {
        out.advice.push(
            "A program waits even less if it polls its queue: SO_BUSY_POLL with SO_PREFER_BUSY_POLL (Linux 5.11), or epoll \
             with irq-suspend-timeout (6.13). Polling keeps a CPU busy, and the program must request it; ringwise sets none \
             of this.",
        );
    }
    let grows = |d: &Dev| d.nic.rings.known().and_then(|r| r.rx).is_some_and(|r| r.now < r.max);
    if let Some(d) = devs.iter().find(|d| d.goal == Goal::Stream && grows(d)) {
        out.advice.push(format!(
            "Receive rings stay unchanged, because a plan does not see packet losses. If the driver's counters of missed \
             packets grow (ethtool -S {0}), use a larger ring: --set {0}.rings.rx=N.",
            d.name()
        ));
    }
}

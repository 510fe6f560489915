//! The planned layout, and its effect in numbers.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::{Address, Setting, irq as knob_irq};
use ringwise_model::{Confidence, CpuSet, FarNode, Goal, Intent, Smt};

use crate::dev::Dev;
use crate::entries::PlannedSetting;
use crate::machine::{Class, Machine, Near, Zone};
use crate::{DevLayout, DoubledCore, Expected, Placed, goal, shares};

/// The unit of the effect on the traffic that the host carries.
pub const MODELLED_LOAD: &str = "load of the busiest CPU as a multiple of one interface's load (modelled)";

/// Whether the CPU is on a remote node. `None` if the node of the device or of the CPU is unknown. A CPU on another node
/// counts as remote even if the plan treats that node as near, so that the user sees all interrupts that cross nodes.
pub(crate) fn far(m: &Machine, d: &Dev, cpu: usize) -> Option<bool> {
    let at = m.node[cpu]?;
    match &d.near {
        Near::Node(n) => Some(*n != at),
        _ => None,
    }
}

/// CPUs of the queue pairs of a device, unknown ones among them.
type Cpus = Vec<Option<usize>>;

fn after(d: &Dev) -> Cpus {
    d.cpu.clone()
}

pub(crate) fn before(m: &Machine, d: &Dev) -> Cpus {
    (0..d.pairs_now()).map(|q| d.pair_now(m, q)).collect()
}

pub(crate) fn per_core(m: &Machine, cpus: &Cpus) -> BTreeMap<usize, Vec<u32>> {
    let mut out: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (q, c) in cpus.iter().enumerate() {
        if let Some(c) = c {
            out.entry(m.core[*c]).or_default().push(q as u32);
        }
    }
    out
}

pub(crate) fn layout(m: &Machine, d: &Dev) -> DevLayout {
    let node = d.nic.node.known().copied();
    let cores = per_core(m, &d.cpu);
    let queues = d.cpu.iter().enumerate().map(|(q, c)| Placed {
        queue: q as u32,
        cpu: c.map(|c| m.cpus[c]),
        far: c.and_then(|c| far(m, d, c)),
        shares_core: c.is_some_and(|c| cores[&m.core[c]].len() > 1),
    });
    DevLayout { dev: d.name().to_string(), node, queues: queues.collect() }
}

pub(crate) fn doubled(m: &Machine, d: &Dev) -> Vec<DoubledCore> {
    let cores = per_core(m, &d.cpu);
    let more = cores.into_iter().filter(|(_, q)| q.len() > 1);
    more.map(|(core, queues)| DoubledCore {
        dev: d.name().to_string(),
        core: m.set(m.cores[core].iter().copied()),
        queues,
        group: None,
    })
    .collect()
}

/// Queues by CPU, without those whose CPU is unknown.
fn per_cpu(cpus: impl IntoIterator<Item = Option<usize>>) -> BTreeMap<usize, u32> {
    let mut per: BTreeMap<usize, u32> = BTreeMap::new();
    cpus.into_iter().flatten().for_each(|c| *per.entry(c).or_default() += 1);
    per
}

/// `None` if the CPU of a queue is unknown.
fn busiest_percent(cpus: &Cpus) -> Option<f64> {
    if cpus.iter().any(Option::is_none) {
        return None;
    }
    Some(f64::from(busiest(cpus)?) * 100.0 / cpus.len() as f64)
}

/// Largest number of queues on one CPU.
fn busiest(cpus: &Cpus) -> Option<u32> {
    per_cpu(cpus.iter().copied()).into_values().max()
}

/// Largest number of queues on one core.
fn fullest_core(m: &Machine, cpus: &Cpus) -> Option<f64> {
    if cpus.iter().any(Option::is_none) {
        return None;
    }
    per_core(m, cpus).values().map(Vec::len).max().map(|n| n as f64)
}

/// Like [`busiest_percent`], by entries of the RSS table, for queues with different shares.
fn percent_of_table(cpus: &Cpus, table: &[u32]) -> Option<f64> {
    shares::parts(cpus, table)?.into_values().max_by(f64::total_cmp).map(|part| part * 100.0)
}

/// The load of the busiest CPU, now and planned, as a multiple of one interface's load. `None`: not all interfaces have goal
/// `forward`, the loads are unknown, or differ by less than 1 %.
pub(crate) fn modelled_load(m: &Machine, devs: &[Dev]) -> Option<(f64, f64)> {
    if devs.is_empty() || devs.iter().any(|d| d.goal != Goal::Forward) {
        return None;
    }
    let (was, is) = (fullest(m, devs, false)?, fullest(m, devs, true)?);
    ((was - is).abs() * 100.0 > was).then_some((was, is))
}

/// Load of the busiest CPU over all interfaces, relative to its capacity; each interface has a load of 1. `None` if a CPU
/// is unknown, or if RPS spreads the packets of a queue now, or those of an interface with one queue.
fn fullest(m: &Machine, devs: &[Dev], then: bool) -> Option<f64> {
    let mut load: BTreeMap<usize, f64> = BTreeMap::new();
    for d in devs {
        let (cpus, rx) = if then { (after(d), d.rx) } else { (before(m, d), d.rx_now) };
        let rps = || d.nic.rx_queues.iter().any(|q| q.rps_cpus.known().is_some_and(|c| !c.is_empty()));
        if rx < 2 || !then && rps() {
            return None;
        }
        let live = || d.nic.rss.known().map(|r| &r.table).filter(|t| !t.is_empty() && (!then || d.channels.is_none()));
        // A driver spreads the entries in turn over another number of queues.
        let entries = d.nic.rss.known().map_or(0, |r| r.table.len() as u32).max(rx);
        let by_turns: Vec<u32> = (0..entries).map(|entry| entry % rx).collect();
        let table = d.table.as_ref().filter(|_| then).or_else(live).unwrap_or(&by_turns);
        for (cpu, part) in shares::parts(&cpus, table)? {
            *load.entry(cpu).or_default() += part;
        }
    }
    shares::fullest(&load, &shares::capacity(m, load.keys().copied()))
}

/// Number of queue numbers whose CPU differs between interfaces that are near the same CPUs: a forwarded packet changes its
/// CPU there. `None`: a CPU is unknown, or no two interfaces are near the same CPUs.
fn unlike(m: &Machine, devs: &[Dev], then: bool) -> Option<f64> {
    let mut zones: BTreeMap<_, Vec<Cpus>> = BTreeMap::new();
    for d in devs {
        zones.entry(d.zone()).or_default().push(if then { after(d) } else { before(m, d) });
    }
    zones.retain(|_, all| all.len() > 1);
    if zones.is_empty() || zones.values().flatten().flatten().any(Option::is_none) {
        return None;
    }
    let differs = |all: &Vec<Cpus>| {
        let longest = all.iter().map(Vec::len).max().unwrap_or(0);
        (0..longest).filter(|q| all.iter().filter_map(|c| c.get(*q)).collect::<BTreeSet<_>>().len() > 1).count()
    };
    Some(zones.values().map(differs).sum::<usize>() as f64)
}

/// Number of queue vectors on remote nodes, and of all queue vectors; `None` if one is unknown.
fn off_node(m: &Machine, d: &Dev, then: bool) -> Option<(u32, u32)> {
    let cpus: Cpus = if then && d.channels.is_some() {
        d.cpu.clone()
    } else {
        let all = d.nic.vectors.iter().enumerate();
        let vectors = all.filter(|(_, v)| v.is_queue() && v.confidence != Confidence::None);
        let place = |(i, v): (usize, &ringwise_model::Vector)| {
            let q = v.rx().first().or(v.tx().first()).copied()?;
            // An interrupt that cannot be moved stays on its CPU.
            if then && !d.stuck[i] { d.cpu.get(q as usize).copied().flatten() } else { Dev::now(m, v) }
        };
        vectors.map(place).collect()
    };
    let mut off = 0;
    for c in &cpus {
        off += u32::from(far(m, d, (*c)?)?);
    }
    Some((off, cpus.len() as u32))
}

/// The benefit of more queues on one CPU or core, or of queues away from the device's node. `of_table`: of a larger share of the
/// RSS table.
fn gain(m: &Machine, d: &Dev, devs: &[Dev], intent: &Intent, all: &Option<String>, unit: &str) -> Option<String> {
    let said = |what: &str| Some(what.to_string());
    let of_table = unit == OF_TABLE;
    let has_threads = m.cores.iter().any(|cpus| cpus.len() > 1);
    let fewer = d.channels.is_some() && d.rx < d.rx_now;
    let spread = || per_cpu(after(d)).into_values().all(|n| n == 1);
    let ends_far = || off_node(m, d, true).zip(off_node(m, d, false)).is_some_and(|(a, b)| a.0 < b.0);
    match d.goal {
        _ if intent.pair_as_article => said("--pair-as-article requests this layout"),
        _ if d.by_load.contains(&true) => said(BY_LOAD),
        _ if withheld(m, d, intent).is_some() && !(fewer && spread()) => {
            let withheld = withheld(m, d, intent);
            let of_core = of_table && some_have_own_core(m, devs);
            if of_core { withheld.map(|why| format!("{why}; {OWN_CORE}")) } else { withheld }
        }
        _ if fewer => {
            let why = match d.goal {
                _ if intent.queues.is_some() || d.configured_by.is_some() => "as requested",
                Goal::Latency => "on half of the physical cores",
                Goal::Forward => "one per usable CPU",
                _ if goal::counts_permitted(intent) => "one per permitted CPU",
                _ => "one per physical core",
            };
            let weighted = if of_table && d.table.is_some() && some_have_own_core(m, devs) {
                format!("; {OWN_CORE}")
            } else {
                String::new()
            };
            Some(format!("there are fewer queues, {why}{weighted}"))
        }
        _ if d.channels.is_some() && d.rx > d.rx_now => said("there are more queues"),
        _ if d.table.is_some() && some_have_own_core(m, devs) => said(OWN_CORE),
        _ if leaves_isolated(m, d) => said("isolated CPUs are free of its queues"),
        // Its queues would fit on cores of their own, so its node is not what makes them share one.
        Goal::Forward if d.apart => said(APART),
        Goal::Forward if devs.len() > 1 && fits_local_cores(m, d) => said(ALIKE),
        // Second threads would halve the share of the busiest CPU, but not the number of queues on a core.
        _ if ends_far()
            && (of_table || unit == OF_QUEUES)
            && d.goal != Goal::Latency
            && goal::takes_one_thread(intent, d.goal)
            && has_threads =>
        {
            Some(format!("{NEARER}; {ONE_THREAD}"))
        }
        _ if ends_far() => said(NEARER),
        Goal::Latency => said("the other cores are left to programs"),
        Goal::Rpc | Goal::Stream if intent.smt.is_none() && has_threads => said(ONE_THREAD),
        _ if intent.smt == Some(Smt::OnePerCore) && has_threads => said(ONE_THREAD),
        Goal::Forward => said(ALIKE),
        Goal::Mixed => said("queues with different policies share no CPU"),
        _ => all.clone(),
    }
}

/// The CPUs that the options keep free of queues, although queues of the device could use them otherwise.
fn withheld(m: &Machine, d: &Dev, intent: &Intent) -> Option<String> {
    let zone = m.zone(&d.near, false);
    let kept = intent.reserve.union(&intent.exclude_cpus);
    let isolated = |cpu: usize| m.isolated.contains(m.cpus[cpu]);
    let by_option = |cpu: usize| {
        let id = m.cpus[cpu];
        kept.contains(id) || intent.cpus.as_ref().is_some_and(|named| !named.contains(id))
    };
    // Otherwise another thread of the core takes the queue instead.
    let whole_core = |cpu: usize| m.cores[m.core[cpu]].iter().all(|c| by_option(*c) || isolated(*c));
    let one_thread = goal::takes_one_thread(intent, d.goal);
    let lost = |c: &usize| zone.home[*c] && by_option(*c) && !isolated(*c) && (!one_thread || whole_core(*c));
    let lost = m.set((0..m.cpus.len()).filter(lost));
    let name = |cpus: &CpuSet| format!("{} {cpus}", if cpus.len() == 1 { "CPU" } else { "CPUs" });
    match &intent.cpus {
        _ if lost.is_empty() => None,
        Some(named) => Some(format!("queues may use only {}, as requested", name(&named.difference(&kept)))),
        None => {
            let are = if lost.len() == 1 { "is" } else { "are" };
            Some(format!("{} {are} kept free of queues, as requested", name(&lost)))
        }
    }
}

const OF_TABLE: &str = "percent of the RSS table";
const OF_QUEUES: &str = "percent of queues";

/// The benefit of an RSS table with different shares.
const OWN_CORE: &str = "a CPU with a core of its own carries more than a CPU that shares its core";

/// The benefit of interrupts that leave remote nodes.
const NEARER: &str = "in exchange, more of its interrupts are on its own node";

/// The benefit of cores that take queues on one thread only.
const ONE_THREAD: &str = "one thread of each core takes queues: two on one core slow each other down";

/// The benefit of layouts of their own.
const APART: &str = "interfaces have different layouts, so that all of them together use more CPUs";

/// The benefit of CPUs assigned by the packets of a sample.
const BY_LOAD: &str = "by the packets of the sample, the load of the cores is more even";

/// Whether the CPUs of the planned queues differ in capacity.
fn some_have_own_core(m: &Machine, devs: &[Dev]) -> bool {
    let mut all = shares::capacity(m, devs.iter().flat_map(|d| d.cpu.iter().flatten().copied())).into_values();
    all.next().is_some_and(|first| all.any(|other| (other - first).abs() > 1.0))
}

/// The benefit of one layout for all interfaces of a router.
const ALIKE: &str = "interfaces have the same layout, so that one CPU receives and sends a flow";

/// Whether the device's node has a physical core for each of its queues.
fn fits_local_cores(m: &Machine, d: &Dev) -> bool {
    let zone = m.zone(&d.near, false);
    let local = m.cores.iter().filter(|cpus| cpus.iter().any(|c| zone.home[*c]));
    d.cpu.len() <= local.count()
}

/// Whether queues of the device are on isolated CPUs, and none is with the plan.
fn leaves_isolated(m: &Machine, d: &Dev) -> bool {
    let isolated = |cpus: &Cpus| cpus.iter().flatten().any(|c| m.isolated.contains(m.cpus[*c]));
    isolated(&before(m, d)) && !isolated(&after(d))
}

/// The benefit for all interfaces together, which may cost a single interface something.
fn gain_of_all(m: &Machine, devs: &[Dev]) -> Option<String> {
    if devs.iter().any(|d| leaves_isolated(m, d)) {
        return Some("isolated CPUs are free of queues".into());
    }
    let off = |then: bool| devs.iter().filter_map(|d| off_node(m, d, then)).map(|(off, _)| off).sum::<u32>();
    if off(true) < off(false) {
        return Some("more interrupts of all interfaces are on their own node".into());
    }
    // Sums of squares of the queues on each CPU, and on each core.
    let squares = |of: &dyn Fn(&Dev) -> Cpus, place: &dyn Fn(usize) -> usize| -> u64 {
        let mut per: BTreeMap<usize, u64> = BTreeMap::new();
        devs.iter().flat_map(of).flatten().for_each(|cpu| *per.entry(place(cpu)).or_default() += 1);
        per.into_values().map(|n| n * n).sum()
    };
    let falls = |place: &dyn Fn(usize) -> usize| squares(&after, place) < squares(&|d| before(m, d), place);
    // Some current CPUs are unknown: with several interfaces, the queues are spread together.
    let known = |cpus: Cpus| cpus.iter().flatten().count();
    let unknown = devs.len() > 1 && devs.iter().any(|d| known(before(m, d)) < known(after(d)));
    let evener = unknown || falls(&|cpu| cpu) || falls(&|cpu| m.core[cpu]);
    let most = |of: &dyn Fn(&Dev) -> Cpus| per_cpu(devs.iter().flat_map(of)).values().max().copied();
    let at_most = match (most(&|d| before(m, d)), most(&after)) {
        (Some(now), Some(then)) if devs.len() > 1 && !unknown && then < now => {
            format!(", at most {then} on a CPU instead of {now}")
        }
        (_, Some(then)) if devs.len() > 1 => format!(", at most {then} on a CPU"),
        _ => String::new(),
    };
    evener.then(|| format!("queues of all interfaces together are spread evenly{at_most}"))
}

/// Planned XPS masks, by interface and queue.
type Masks<'a> = BTreeMap<(&'a str, u32), &'a CpuSet>;

fn planned_masks(entries: &[PlannedSetting]) -> Masks<'_> {
    let masks = entries.iter().filter_map(|(_, setting, _)| match setting {
        Setting::XpsCpus { dev, queue, cpus } => Some(((dev.as_str(), *queue), cpus)),
        _ => None,
    });
    masks.collect()
}

/// Online CPUs that are in no XPS mask of these transmit queues. `planned`: these masks instead of the present ones. `None`: a mask is
/// unknown.
fn unmasked(m: &Machine, d: &Dev, queues: u32, planned: Option<&Masks>) -> Option<f64> {
    let mut all = CpuSet::new();
    for queue in 0..queues {
        let of_plan = planned.and_then(|masks| masks.get(&(d.name(), queue)).copied());
        // Another number of queues resets the masks.
        let stays = planned.is_none() || d.channels.is_none();
        let present = || d.tx_queue(queue).filter(|_| stays)?.xps_cpus.known();
        all = all.union(of_plan.or_else(present)?);
    }
    Some(m.topo.online.difference(&all).len() as f64)
}

pub(crate) fn expected(m: &Machine, devs: &[Dev], intent: &Intent, entries: &[PlannedSetting]) -> Vec<Expected> {
    let mut out = Vec::new();
    let (all, masks) = (gain_of_all(m, devs), planned_masks(entries));
    for d in devs {
        let dev = d.name();
        let first = out.len();
        let (b, a) = (before(m, d), after(d));
        if a.len() > 1 || b.len() > 1 {
            let (what, unit, then) = match &d.table {
                Some(table) => ("RSS table", OF_TABLE, percent_of_table(&a, table)),
                None => ("queues", OF_QUEUES, busiest_percent(&a)),
            };
            let now = busiest_percent(&b);
            let counts = (d.table.is_none() && a.len() == b.len()).then(|| (busiest(&a), busiest(&b), a.len()));
            let alike = now.zip(then).is_some_and(|(b, a)| format!("{b:.1}") == format!("{a:.1}"));
            push(&mut out, Some(dev), now, then.filter(|_| !alike), unit, |b, a| match b {
                Some(b) => match counts.filter(|_| a.max(b) < 10.0) {
                    // Whole percents would hide the difference of one queue among many.
                    Some((Some(is), Some(was), all)) => {
                        format!("busiest CPU takes {is} of {all} queues of {dev} instead of {was}")
                    }
                    _ => {
                        // Shares that differ by less than one percent.
                        let digits = usize::from(a.round() == b.round());
                        let (a, b) = (percent(a, digits), percent(b, digits));
                        format!("busiest CPU takes {a} % of {dev}'s {what} instead of {b} %")
                    }
                },
                None => {
                    format!("busiest CPU takes {} % of {dev}'s {what}; its current share is unknown", percent(a, 0))
                }
            });
            push(&mut out, Some(dev), fullest_core(m, &b), fullest_core(m, &a), "queues", |b, a| match b {
                Some(b) => format!("queues of {dev} on one physical core: at most {a:.0} instead of {b:.0}"),
                None => format!("queues of {dev} on one physical core: at most {a:.0}; now unknown"),
            });
        }
        if d.tx.is_some_and(|tx| tx > 1) {
            let b = unmasked(m, d, d.nic.tx_queues.len() as u32, None);
            let a = unmasked(m, d, d.tx.unwrap_or_default(), Some(&masks));
            push(&mut out, Some(dev), b, a, "CPUs", |b, a| match b {
                Some(b) => format!("CPUs in no XPS mask of {dev}: {a:.0} instead of {b:.0}"),
                None => format!("CPUs in no XPS mask of {dev}: {a:.0}; now unknown"),
            });
        }
        let worse = out[first..].iter_mut().filter(|e| e.after > e.before && e.before.is_some());
        worse.for_each(|e| {
            let unit = e.unit.clone();
            add_benefit(e, gain(m, d, devs, intent, &all, &unit));
        });
    }
    if !devs.is_empty() && devs.iter().all(|d| d.goal == Goal::Forward) {
        let (unlike, unit) = (|then: bool| unlike(m, devs, then), "queue numbers");
        let of_node = if m.has_nodes() { " of one node" } else { "" };
        // If interrupts serve several queues or cannot be moved, the layouts differ anyway.
        let apart = devs.iter().any(|d| d.apart);
        push(&mut out, None, unlike(false), unlike(true).filter(|n| *n == 0.0 || apart), unit, |b, a| {
            let text = format!("queue numbers whose CPU differs between the interfaces{of_node}: {a:.0}");
            b.map_or_else(|| format!("{text}; now unknown"), |b| format!("{text} instead of {b:.0}"))
        });
        if let Some(e) = out.last_mut().filter(|e| apart && e.unit == unit && e.after > e.before) {
            add_benefit(e, Some(APART.into()));
        }
        if let Some((was, is)) = modelled_load(m, devs) {
            push(&mut out, None, Some(was), Some(is), MODELLED_LOAD, |_, _| {
                format!(
                    "{:.1} times as much traffic before a CPU is full (modelled: even flows, the same load on each interface)",
                    was / is
                )
            });
            if let Some(e) = out.last_mut().filter(|_| is > was) {
                add_benefit(e, devs.iter().find_map(|d| gain(m, d, devs, intent, &all, MODELLED_LOAD)));
            }
        }
    }
    if !m.isolated.is_empty() {
        let on = |cpus: Cpus| cpus.iter().flatten().filter(|c| m.isolated.contains(m.cpus[**c])).count() as f64;
        let (b, a) = (devs.iter().map(|d| on(before(m, d))).sum::<f64>(), devs.iter().map(|d| on(after(d))).sum());
        push(&mut out, None, Some(b), Some(a), "queues", |b, a| {
            format!("queues on isolated CPUs: {a:.0} instead of {:.0}", b.unwrap_or_default())
        });
    }
    // One line for all devices whose node is known: an interrupt on another node crosses the link between sockets.
    if m.has_nodes() {
        let sum = |then: bool| -> Option<(u32, u32)> {
            let with_node =
                devs.iter().filter(|d| matches!(d.near, Near::Node(_)) && d.nic.queue_vectors().next().is_some());
            with_node.map(|d| off_node(m, d, then)).try_fold((0, 0), |s, one| one.map(|o| (s.0 + o.0, s.1 + o.1)))
        };
        if let Some((a, of)) = sum(true)
            && of > 0
        {
            let b = sum(false).map(|b| f64::from(b.0));
            push(&mut out, None, b, Some(f64::from(a)), "interrupts", |b, a| match b {
                Some(b) => format!("interrupts on a remote node: {a:.0} of {of} instead of {b:.0}"),
                None => format!("interrupts on a remote node: {a:.0} of {of}; now unknown"),
            });
            if let Some(e) = out.last_mut().filter(|_| b.is_some_and(|b| b < f64::from(a))) {
                let leaves = |d: &&Dev| off_node(m, d, true).zip(off_node(m, d, false)).is_some_and(|(a, b)| a.0 > b.0);
                add_benefit(e, devs.iter().find(leaves).and_then(|d| gain_far(m, d, intent)));
            }
        }
    }
    out
}

/// A half is rounded up: formatting alone rounds 12.5 to 12, and 37.5 to 38.
fn percent(value: f64, digits: usize) -> String {
    let scale = [1.0, 10.0][digits.min(1)];
    format!("{:.digits$}", (value * scale).round() / scale)
}

/// Interrupts of queues that may move among several CPUs. `None`: the number stays the same, or an affinity is unknown.
pub(crate) fn free_to_move(devs: &[Dev], entries: &[PlannedSetting]) -> Option<Expected> {
    let planned: BTreeMap<&Address, &CpuSet> = entries
        .iter()
        .filter_map(|(address, setting, step)| match setting {
            Setting::IrqCpus { cpus, .. } if step.is_some() => Some((address, cpus)),
            _ => None,
        })
        .collect();
    let (mut before, mut after) = (0, 0);
    for d in devs {
        for v in d.nic.queue_vectors().filter(|v| v.confidence != Confidence::None) {
            let now = v.asked.known()?.len() > 1;
            let of = knob_irq::canonical(v)?;
            let then = planned.get(&Address::IrqCpus { dev: d.name().to_string(), of }).map(|cpus| cpus.len() > 1);
            // A change of channels also removes interrupts.
            let then = then.unwrap_or(now && d.channels.is_none());
            before += u32::from(now);
            after += u32::from(then);
        }
    }
    let mut out = Vec::new();
    push(&mut out, None, Some(f64::from(before)), Some(f64::from(after)), "interrupts", |_, _| {
        format!("interrupts that may move among several CPUs: {after} instead of {before}")
    });
    let mut e = out.pop()?;
    if after > before {
        add_benefit(&mut e, Some("as requested".into()));
    }
    Some(e)
}

/// The benefit of interrupts away from the device's node.
fn gain_far(m: &Machine, d: &Dev, intent: &Intent) -> Option<String> {
    let said = |what: &str| Some(what.to_string());
    match d.goal {
        _ if intent.pair_as_article => said("--pair-as-article requests this layout"),
        _ if intent.cpus.is_some() || intent.far_node == Some(FarNode::Ok) => said("as requested"),
        Goal::Mixed => said("every CPU of the node has a queue, and queues with different policies share no CPU"),
        Goal::Forward if m.cores.iter().any(|cpus| cpus.len() > 1) => said(
            "an idle core of a nearby node is preferred to the second thread of a busy core (to prevent it: --far-node never)",
        ),
        Goal::Forward => said(
            "an idle core of a nearby node is preferred to a core that has a queue (to prevent it: --far-node never)",
        ),
        _ if withheld(m, d, intent).is_some() => withheld(m, d, intent),
        _ => {
            let zone = m.zone(&d.near, false);
            let cpus = || d.cpu.iter().flatten();
            match () {
                () if !cpus().any(|c| zone.home[*c]) => said("no CPU of the node may handle queues"),
                () if cpus().any(|c| zone.class[*c] == Class::Socket) => Some(nearby_instead(m, d, &zone, intent)),
                () => None,
            }
        }
    }
}

/// Why queues are on a nearby node although local CPUs could take them, and which options prevent it.
fn nearby_instead(m: &Machine, d: &Dev, zone: &Zone, intent: &Intent) -> String {
    let mut local = (0..m.cpus.len()).filter(|c| zone.home[*c]);
    let second_thread = |c: usize| m.cores[m.core[c]].first() != Some(&c);
    if goal::takes_one_thread(intent, d.goal) && local.any(second_thread) {
        return "a core without a queue on a nearby node is preferred to a local core with a queue (to prevent it: \
                --far-node never; to use the second threads of local cores first: --smt all)"
            .into();
    }
    "a CPU without a queue on a nearby node is preferred to a local one with a queue (to prevent it: --far-node never)"
        .into()
}

/// Adds the benefit to a number that grows.
fn add_benefit(e: &mut Expected, gain: Option<String>) {
    if let Some(gain) = gain {
        e.text.push_str(&format!(": {gain}"));
        e.worth = Some(gain);
    }
}

/// Omits numbers that stay the same or are unknown.
fn push(
    out: &mut Vec<Expected>,
    dev: Option<&str>,
    before: Option<f64>,
    after: Option<f64>,
    unit: &str,
    text: impl FnOnce(Option<f64>, f64) -> String,
) {
    let Some(a) = after else { return };
    if before != after {
        out.push(Expected {
            dev: dev.map(str::to_string),
            text: text(before, a),
            before,
            after,
            unit: unit.to_string(),
            worth: None,
        });
    }
}

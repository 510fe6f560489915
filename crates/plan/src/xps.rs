//! Transmit packet steering: every online CPU sends through one queue, its own queue if it has one. With goals `forward` and
//! `balanced`, a CPU that handles the interrupts of several queues sends through all of them. A CPU in configured masks sends only through
//! the queues of these masks.
//!
//! A mask only selects the queue that a CPU sends through; it puts no work on that CPU. So isolated and reserved CPUs are
//! included: a CPU in no mask falls back to a hash over all queues (rule Q16).
//!
//! With traffic classes (mqprio, taprio) the kernel has a map of CPUs for each class: a packet leaves through a queue of the class of
//! its priority (`__get_xps_queue_idx` in net/core/dev.c), and a mask applies to the class of its queue (`__netif_set_xps_queue`). So every
//! CPU gets its queues in each class. A queue that belongs to no class accepts no mask (EINVAL).

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::{Address, Match, Reason, Setting, xps as knob_xps};
use ringwise_model::{Cause, CpuId, CpuSet, Fact, Goal, Intent, Knob, Nic, QueueRange, Topology};

use crate::dev::{Dev, LearnedIndex};
use crate::machine::Machine;
use crate::target::{PlanBuilder, StepReason};
use crate::wanted::RequestedSetting;
use crate::{NotPossible, Obstacle, goal, irq};

/// Queues by the number of CPUs that send through them.
struct Share<'a> {
    cpu: &'a [Option<usize>],
    count: Vec<usize>,
    of: Vec<Option<usize>>,
}

impl Share<'_> {
    fn least(&self, queues: &[usize]) -> Option<usize> {
        queues.iter().copied().min_by_key(|q| (self.count[*q], *q))
    }

    fn give(&mut self, cpus: impl IntoIterator<Item = usize>, queue: usize) {
        for c in cpus {
            if self.of[c].is_none() {
                self.of[c] = Some(queue);
                self.count[queue] += 1;
            }
        }
    }
}

/// The transmit queue of every online CPU. `cpu`: the interrupt's CPU of each queue; `own`: it sends through the queue in any case. A
/// queue with a configured mask sends for the CPUs of this mask, and for no others.
fn spread(m: &Machine, own: bool, cpu: &[Option<usize>], configured: &Configured) -> Vec<Option<usize>> {
    let n = m.cpus.len();
    let mut on_cpu: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut on_core: Vec<Vec<usize>> = vec![Vec::new(); m.cores.len()];
    let mut on_l3: Vec<Vec<usize>> = vec![Vec::new(); m.l3s.len()];
    for (q, c) in cpu.iter().enumerate() {
        if let Some(c) = c.filter(|_| !configured.contains_key(&q)) {
            on_cpu[c].push(q);
            on_core[m.core[c]].push(q);
            on_l3[m.l3[c]].push(q);
        }
    }
    let mut s = Share { cpu, count: vec![0; cpu.len()], of: vec![None; n] };
    for (queue, mask) in configured {
        s.give(mask.iter().filter_map(|c| m.at(c)), *queue);
    }
    // First choice is the queue of the CPU's own interrupt, then that of its core, then for each core one of the same L3.
    for (c, queues) in on_cpu.iter().enumerate() {
        if let Some(q) = s.least(queues) {
            s.give([c], q);
        }
    }
    for c in 0..n {
        if s.of[c].is_none()
            && let Some(q) = s.least(&on_core[m.core[c]])
        {
            s.give([c], q);
        }
    }
    for c in 0..n {
        if s.of[c].is_none()
            && let Some(q) = s.least(&on_l3[m.l3[c]])
        {
            s.give(m.cores[m.core[c]].iter().copied(), q);
        }
    }
    // An L3 domain without a queue sends through the queues of one interrupt CPU of its node.
    let mut bases: Vec<&Vec<usize>> = Vec::new();
    let mut others: Vec<&Vec<usize>> = Vec::new();
    for cpus in m.by_node.values() {
        let mut queues: Vec<usize> = cpus.iter().flat_map(|c| on_cpu[*c].iter().copied()).collect();
        if queues.is_empty() {
            others.push(cpus);
            continue;
        }
        bases.push(cpus);
        queues.sort();
        for c in cpus {
            if s.of[*c].is_none()
                && let Some(first) = s.least(&queues)
            {
                let same = s.cpu[first].map_or_else(|| vec![first], |t| on_cpu[t].clone());
                for other in m.l3s[m.l3[*c]].iter().copied() {
                    if let Some(q) = s.least(&same).filter(|_| s.of[other].is_none()) {
                        s.give(m.cores[m.core[other]].iter().copied(), q);
                    }
                }
            }
        }
    }
    // Cores of other nodes use the queue of the core with the same position on a node with queues, else any of that node; these
    // nodes take turns.
    for (cpus, base) in others.iter().zip(bases.iter().cycle()) {
        for (at, c) in cpus.iter().enumerate() {
            let twin = base[at % base.len()];
            let near = s.of[twin].and_then(|q| s.cpu[q]).and_then(|t| s.least(&on_cpu[t]));
            let of_node = || base.iter().flat_map(|c| on_cpu[*c].iter().copied()).collect::<Vec<usize>>();
            if s.of[*c].is_none()
                && let Some(q) = near.or_else(|| s.least(&of_node()))
            {
                s.give([*c], q);
            }
        }
    }
    let sends = |q: &usize| configured.contains_key(q) || (own && s.cpu[*q].is_some());
    let empty: Vec<usize> = (0..s.count.len()).filter(|q| s.count[*q] == 0 && !sends(q)).collect();
    fill(m, &mut s, &on_cpu, &empty, configured);
    s.of
}

/// As long as there are enough CPUs, no queue stays without one: it takes over a CPU from the queue with the most CPUs.
fn fill(m: &Machine, s: &mut Share, on_cpu: &[Vec<usize>], empty: &[usize], configured: &Configured) {
    if empty.is_empty() {
        return;
    }
    let mut spare: Vec<Vec<usize>> = vec![Vec::new(); s.count.len()];
    for (c, q) in s.of.iter().enumerate() {
        if let Some(q) = *q
            && on_cpu[c].is_empty()
            && !configured.contains_key(&q)
        {
            spare[q].push(c);
        }
    }
    let mut donors: BTreeSet<(usize, usize)> = (0..s.count.len())
        .filter(|q| s.count[*q] > 1 && !spare[*q].is_empty())
        .map(|q| (s.count[q], q))
        .collect::<BTreeSet<_>>();
    for &q in empty {
        let Some((k, donor)) = donors.pop_last() else { return };
        // The CPU nearest to the queue's own interrupt, else the last one.
        let want = s.cpu[q].map(|c| m.l3[c]);
        let at = spare[donor].iter().rposition(|c| Some(m.l3[*c]) == want).unwrap_or(spare[donor].len() - 1);
        let c = spare[donor].remove(at);
        s.of[c] = Some(q);
        s.count[donor] -= 1;
        s.count[q] += 1;
        if k - 1 > 1 && !spare[donor].is_empty() {
            donors.insert((k - 1, donor));
        }
    }
}

/// Configured masks by queue.
type Configured = BTreeMap<usize, CpuSet>;

fn is_configured(cpu: CpuId, configured: &Configured) -> bool {
    configured.values().any(|mask| mask.contains(cpu))
}

/// The mask that the user configured for this queue.
fn configured(dev: &str, queue: u32, out: &PlanBuilder) -> Option<CpuSet> {
    let address = Address::XpsCpus { dev: dev.into(), queue };
    match out.entries.get(&address).filter(|_| out.laid.contains(&address))? {
        (_, Setting::XpsCpus { cpus, .. }, _) => Some(cpus.clone()),
        _ => None,
    }
}

/// The CPUs of each transmit queue; `cpu` is the interrupt's CPU of each queue.
fn masks(m: &Machine, goal: Goal, cpu: &[Option<usize>], configured: &Configured) -> Vec<CpuSet> {
    let own = goal::sends_through_own_queues(goal);
    let first = |at: &Option<usize>| at.map(|c| m.cpus[c]).filter(|c| own && !is_configured(*c, configured));
    let mut masks: Vec<CpuSet> = cpu.iter().map(|at| CpuSet::from_iter(first(at))).collect();
    for (c, q) in spread(m, own, cpu, configured).iter().enumerate() {
        if let Some(q) = q {
            masks[*q].insert(m.cpus[c]);
        }
    }
    masks
}

/// The ranges of transmit queues in each of which all CPUs are assigned: the traffic classes, or all queues.
fn ranges(nic: &Nic, queues: u32) -> Result<Vec<QueueRange>, Obstacle> {
    let all = vec![QueueRange { first: 0, count: queues }];
    match &nic.classes {
        Fact::Known(c) => {
            // A mask of a queue in several classes applies to the first one (`netdev_txq_to_tc`).
            let mut used: Vec<QueueRange> = Vec::new();
            for r in c.queues.iter().copied().filter(|r| r.count > 0) {
                if used.iter().all(|u| u.end() <= r.first || r.end() <= u.first) {
                    used.push(r);
                }
            }
            match used.iter().map(|r| r.end()).max() {
                None => Ok(all),
                Some(need) if need > queues => Err(Obstacle::ClassesNeedQueues { need, queues }),
                Some(_) => Ok(used),
            }
        }
        Fact::Absent => Ok(all),
        // A recording of an earlier version.
        Fact::Unknown(u) if u.cause == Cause::NotAsked => Ok(all),
        Fact::Unknown(unread) => Err(Obstacle::ClassesUnread { unread: unread.clone() }),
    }
}

/// The XPS masks that a plan lays out for transmit queues whose interrupts have these CPUs, for the service that moves interrupts.
/// `None`: the plan lays none out.
pub fn xps_masks(nic: &Nic, topology: &Topology, goal: Goal, cpus: &[CpuId]) -> Option<Vec<CpuSet>> {
    let m = Machine::new(topology);
    let cpus: Vec<Option<usize>> = cpus.iter().map(|c| m.at(*c)).collect();
    let mut out = vec![CpuSet::new(); cpus.len()];
    for r in ranges(nic, cpus.len() as u32).ok()? {
        let range = r.first as usize..r.end() as usize;
        for (mask, of_queue) in out[range.clone()].iter_mut().zip(masks(&m, goal, &cpus[range], &Configured::new())) {
            *mask = of_queue;
        }
    }
    Some(out)
}

/// Whether the plan chooses the XPS masks of this interface: no group of queues and no configured value decides them.
pub fn chooses_xps_masks(nic: &Nic, intent: &Intent) -> bool {
    let own = |dev: &Option<String>| dev.as_ref().is_none_or(|d| d == nic.name());
    let named = |k: &Knob| matches!(k, Knob::XpsCpus { .. } | Knob::XpsRxqs { .. });
    let configured = intent.wishes.iter().any(|w| own(&w.dev) && named(&w.knob));
    !configured && !intent.pair_as_article && !intent.groups.iter().any(|g| g.dev == nic.name())
}

pub(crate) fn plan(m: &Machine, d: &Dev, learned: &LearnedIndex, out: &mut PlanBuilder) {
    let name = d.name();
    let cannot = |out: &mut PlanBuilder, why: Obstacle| {
        let what = format!("{name} XPS CPUs");
        out.refused.push(NotPossible { address: None, what, why, needed: false, blocked_by: None, settings: 1 });
    };
    let Some(n) = d.tx else { return cannot(out, Obstacle::QueueCountUnknown { direction: "transmit".into() }) };
    if n < 2 {
        return;
    }
    let tx = n as usize;
    if d.cpu.iter().take(tx).all(Option::is_none) {
        return cannot(out, Obstacle::InterruptCpusUnknown);
    }
    let ranges = match ranges(d.nic, n) {
        Ok(ranges) => ranges,
        Err(why) => return cannot(out, why),
    };
    let anew = d.channels.is_some();
    let found: usize =
        (0..n).filter(|q| d.tx_queue(*q).is_some_and(|t| t.xps_cpus.known().is_some_and(|c| !c.is_empty()))).count();
    let absent = |q: u32| d.tx_queue(q).is_none_or(|t| t.xps_cpus.is_absent());
    if !anew && (0..n).all(absent) {
        return cannot(out, Obstacle::NoXpsFile);
    }
    if (0..n).any(|q| d.tx_queue(q).is_some_and(|t| t.xps_rxqs.known().is_some_and(|r| !r.is_empty()))) {
        out.warnings
            .push(format!("{name}: xps_rxqs is set and takes precedence over the XPS CPUs; it stays unchanged"));
    }
    let requested_by = irq::requested_by(name, out);
    for r in ranges {
        let cpu = &d.cpu[r.first as usize..r.end() as usize];
        if cpu.iter().all(Option::is_none) {
            let class = d.nic.classes.known().and_then(|c| c.of_queue(r.first)).unwrap_or(0) as u32;
            cannot(out, Obstacle::ClassInterruptCpusUnknown { class });
            continue;
        }
        let configured = (0..r.count).filter_map(|q| Some((q as usize, configured(name, r.first + q, out)?))).collect();
        for (q, cpus) in (r.first..).zip(masks(m, d.goal, cpu, &configured)) {
            let taken = d.cpu[q as usize].is_some_and(|c| is_configured(m.cpus[c], &configured));
            want(m, d, learned, out, Planned { queue: q, cpus, found, taken, range: r, requested_by, anew });
        }
    }
}

/// The mask of one queue, and what its reason needs.
struct Planned {
    queue: u32,
    cpus: CpuSet,
    /// Number of transmit queues with a mask now.
    found: usize,
    /// Whether the CPU of its interrupt is in a configured mask.
    taken: bool,
    /// The queues among which the CPUs are distributed.
    range: QueueRange,
    /// The rule that moves the interrupts.
    requested_by: Option<&'static str>,
    anew: bool,
}

fn want(m: &Machine, d: &Dev, learned: &LearnedIndex, out: &mut PlanBuilder, p: Planned) {
    let dev = d.name().to_string();
    let live = d.tx_queue(p.queue).map_or(Fact::Absent, |t| {
        t.xps_cpus.as_ref().map(|c: &CpuSet| Setting::XpsCpus { dev: dev.clone(), queue: p.queue, cpus: c.clone() })
    });
    let matched = match &live {
        Fact::Known(Setting::XpsCpus { cpus: got, .. }) => knob_xps::compare(&p.cpus, got),
        _ => Match::Gone,
    };
    let at = d.cpu[p.queue as usize].map(|c| m.cpus[c]);
    let why = || {
        let why = why(&p, at, m.cpus.len());
        match (&why.reason, p.requested_by) {
            (Reason::NearestQueue | Reason::QueueWithoutCpu { .. } | Reason::ConfiguredForItsCpu, Some(rule)) => {
                StepReason { rule, ..why }
            }
            _ => why,
        }
    };
    let setting = Setting::XpsCpus { dev, queue: p.queue, cpus: p.cpus.clone() };
    out.want(Some(d.nic), learned, RequestedSetting { setting, live, matched, anew: p.anew, needed: false }, why);
}

fn why(p: &Planned, at: Option<CpuId>, online: usize) -> StepReason {
    let with = |rule, reason| StepReason { rule, reason };
    let (queues, found) = (p.range.count, p.found);
    if p.cpus.is_empty() && p.taken {
        return with("Q16", Reason::ConfiguredForItsCpu);
    }
    if p.cpus.is_empty() {
        return with("Q16", Reason::QueueWithoutCpu { queues, cpus: online as u32 });
    }
    match found {
        0 => with("Q14", Reason::NoXps { queues }),
        _ if at.is_some() => with("Q15", Reason::NearestQueue),
        _ => with("Q16", Reason::NearestKnownQueue),
    }
}

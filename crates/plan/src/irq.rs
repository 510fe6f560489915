//! Interrupt affinity: one CPU per queue vector.

use std::collections::BTreeSet;

use ringwise_knob::{Address, MoveCause, Reason, Setting, VectorName, irq as knob_irq};
use ringwise_model::{Dir, Fact, FarNode, Goal, Vector};

use crate::dev::{Dev, LearnedIndex, Unit};
use crate::machine::{Class, Machine, Near, Zone};
use crate::place::Placement;
use crate::target::{PlanBuilder, StepReason};
use crate::wanted::RequestedSetting;
use crate::{Refusal, explain_rule, goal, wishes};

/// Current CPUs of the interrupts of all devices.
pub(crate) struct CurrentLoads<'a> {
    /// Queues of all considered devices by CPU.
    all: Vec<u32>,
    /// The same, as planned.
    planned: Vec<u32>,
    /// Names of the devices that the plan gives a queue on the CPU, by CPU.
    planned_for: Vec<Vec<&'a str>>,
    /// Zone of each device.
    zones: Vec<(Near, Goal)>,
}

impl<'a> CurrentLoads<'a> {
    pub(crate) fn new(m: &Machine, devs: &[Dev<'a>]) -> Self {
        let mut all = vec![0; m.cpus.len()];
        let mut planned = all.clone();
        let mut planned_for: Vec<Vec<&str>> = vec![Vec::new(); m.cpus.len()];
        for d in devs {
            for c in d.cpu.iter().flatten() {
                planned[*c] += 1;
                if planned_for[*c].last() != Some(&d.nic.name()) {
                    planned_for[*c].push(d.nic.name());
                }
            }
            for (_, cpu) in pairs(m, d) {
                if let Some(c) = cpu {
                    all[c] += 1;
                }
            }
        }
        Self { all, planned, planned_for, zones: devs.iter().map(Dev::zone).collect() }
    }

    /// Whether another device has the same candidate CPUs, so that queues with the same number can share one.
    fn has_ports_alike(&self, d: &Dev) -> bool {
        let zone = d.zone();
        goal::ports_alike(d.goal)
            && !d.apart
            && d.by_load.is_empty()
            && self.zones.iter().filter(|z| **z == zone).count() > 1
    }

    /// The first other device that the plan gives a queue on this CPU.
    fn other_on(&self, cpu: usize, dev: &str) -> Option<&'a str> {
        self.planned_for[cpu].iter().copied().find(|d| *d != dev)
    }
}

/// Queues of the device with the CPU that handles them now; two vectors of a pair on one CPU count once.
fn pairs(m: &Machine, d: &Dev) -> BTreeSet<(u32, Option<usize>)> {
    d.nic.queue_vectors().filter_map(|v| Some((queue(v)?, Dev::now(m, v)))).collect::<BTreeSet<_>>()
}

/// The queue by whose number an interrupt counts.
fn queue(v: &Vector) -> Option<u32> {
    v.rx().first().or(v.tx().first()).copied()
}

/// Queues of the device whose interrupts are set to a CPU and have not moved there yet, with this CPU.
fn pending(m: &Machine, d: &Dev) -> BTreeSet<(u32, usize)> {
    let waits = |v: &Vector| {
        let (asked, now) = (v.asked.known()?, v.effective.known()?);
        Some(asked.len() == 1 && !now.is_empty() && !now.intersects(asked))
    };
    let with_cpu = |v: &Vector| Some((queue(v)?, Dev::now(m, v)?));
    let (late, there): (Vec<_>, Vec<_>) = d.nic.queue_vectors().partition(|v| waits(v) == Some(true));
    // A pair whose other interrupt is delivered there is handled there already.
    let there: BTreeSet<(u32, usize)> = there.into_iter().filter_map(with_cpu).collect();
    late.into_iter().filter_map(with_cpu).filter(|pair| !there.contains(pair)).collect()
}

/// Problems of the current layout of one device.
struct Diagnosis<'a> {
    m: &'a Machine<'a>,
    zone: &'a Zone,
    place: &'a Placement,
    now: &'a CurrentLoads<'a>,
    usable: &'a [bool],
    per_cpu: Vec<u32>,
    per_core: Vec<u32>,
    /// Queues of `per_cpu` whose interrupts are set to the CPU and have not moved there yet.
    pending: Vec<u32>,
    vectors: u32,
    near_core_free: bool,
    /// Most queues per CPU that are acceptable, of the device and of all devices: 1 while a near CPU has no queue, else
    /// the maximum of the plan.
    best: u32,
    best_of_all: u32,
    /// The same for the device's queues on one core.
    best_of_core: u32,
    /// The number of queues, if the plan changes it.
    recount: Option<Recount>,
}

/// Another number of queues that the plan sets, and the rule of that step.
#[derive(Clone, Copy)]
struct Recount {
    rule: &'static str,
    queues: u32,
    fewer: bool,
}

impl<'a> Diagnosis<'a> {
    fn new(
        m: &'a Machine,
        place: &'a Placement,
        d: &Dev,
        now: &'a CurrentLoads<'a>,
        usable: &'a [bool],
        recount: Option<Recount>,
    ) -> Self {
        let zone = &place.zone;
        let mut x = Self {
            m,
            zone,
            place,
            now,
            usable,
            per_cpu: vec![0; m.cpus.len()],
            per_core: vec![0; m.cores.len()],
            pending: vec![0; m.cpus.len()],
            vectors: 0,
            near_core_free: false,
            best: 1,
            best_of_all: 1,
            best_of_core: 1,
            recount,
        };
        let pairs = pairs(m, d);
        for (_, cpu) in &pairs {
            x.vectors += 1;
            if let Some(c) = *cpu {
                x.per_cpu[c] += 1;
                x.per_core[m.core[c]] += 1;
            }
        }
        for (_, cpu) in pending(m, d) {
            x.pending[cpu] += 1;
        }
        // `never` excludes other nodes of the same socket, too.
        let permitted = |c: usize| usable[c] && (zone.home[c] || place.far_node != FarNode::Never);
        let near = || (0..m.cpus.len()).filter(|c| permitted(*c) && zone.class[*c] == Class::Near);
        x.near_core_free = near().any(|c| x.per_core[m.core[c]] == 0);
        if near().all(|c| x.per_cpu[c] > 0) {
            let mut planned = vec![0; m.cpus.len()];
            d.cpu.iter().flatten().for_each(|c| planned[*c] += 1);
            x.best = planned.into_iter().max().unwrap_or(1);
        }
        if near().all(|c| now.all[c] > 0) {
            x.best_of_all = near().map(|c| now.planned[c]).max().unwrap_or(1);
        }
        if place.far_node == FarNode::Ok || recount.is_some_and(|r| r.fewer) {
            // Remote CPUs and fewer queues make room that the local CPUs do not have now. It is no fault of the present
            // layout, and `check` does not report it, as long as the local CPUs share the present queues evenly.
            let all = place.cands.iter().flat_map(|c| &c.threads);
            let of_local: Vec<usize> = all.copied().filter(|c| zone.class[*c] != Class::Far).collect();
            let cores = of_local.iter().map(|c| m.core[*c]).collect::<BTreeSet<_>>().len() as u32;
            let local = of_local.len() as u32;
            let queues = pairs.iter().map(|(queue, _)| queue).collect::<BTreeSet<_>>().len() as u32;
            x.best = x.best.max(queues.div_ceil(local.max(1)));
            x.best_of_core = queues.div_ceil(cores.max(1)).max(1);
            let of_all: u32 = near().map(|c| now.all[c]).sum();
            x.best_of_all = x.best_of_all.max(of_all.div_ceil(local.max(1)));
        }
        x
    }

    fn pending(&self, cpu: usize) -> Option<u32> {
        Some(self.pending[cpu]).filter(|n| *n > 0)
    }

    fn why(&self, d: &Dev, v: Option<&Vector>, to: usize) -> StepReason {
        let (m, dev) = (self.m, || d.name().to_string());
        let with = |rule, reason| StepReason { rule, reason };
        let Some(v) = v else {
            return with("R0.12", Reason::NewQueue);
        };
        let Some(now) = Dev::now(m, v) else {
            return with("A02", Reason::CpuUnknown);
        };
        let at = m.cpus[now];
        let pinned = matches!(&v.asked, Fact::Known(asked) if asked.len() == 1);
        if let Some(Recount { rule, queues, .. }) = self.recount.filter(|_| pinned && now == to) {
            return with(rule, Reason::PlacedForCount { queues });
        }
        if m.isolated.contains(at) && !self.usable[now] {
            return with("A08", Reason::IsolatedCpu { cpu: at });
        }
        if let Fact::Known(asked) = &v.asked
            && asked.len() > 1
            && now == to
        {
            return with("A02", Reason::FreeToMove { among: asked.clone(), arrived: true, moved: None });
        }
        if self.zone.class[now] > self.zone.class[to] {
            return with("A03", Reason::FarNode { dev: dev(), node: m.node[now] });
        }
        let crowded = self.per_cpu[now] > self.best;
        if crowded && self.vectors > 1 && self.per_cpu[now] * 10 >= self.vectors * 9 {
            return with(
                "A01",
                Reason::MostOnOneCpu {
                    dev: dev(),
                    cpu: at,
                    queues: self.per_cpu[now],
                    of: self.vectors,
                    pending: self.pending(now),
                },
            );
        }
        if now != to && crowded {
            return with(
                "A01",
                Reason::QueuesShareCpu { dev: dev(), cpu: at, queues: self.per_cpu[now], pending: self.pending(now) },
            );
        }
        if self.per_core[m.core[now]] > self.best_of_core && self.near_core_free {
            return with("A04", Reason::QueuesShareCore);
        }
        let wide = matches!(&v.asked, Fact::Known(asked) if asked.len() > 1);
        let more = self.now.all[now] > self.now.all[to] && self.now.all[now] > self.best_of_all;
        if !wide && more {
            return with("A15", Reason::CrowdedCpu);
        }
        match &v.asked {
            Fact::Known(asked) if asked.len() > 1 => {
                let among = asked.clone();
                let reason = match self.why_at_all(d, v, now, to) {
                    Reason::SameNumberOneCpu => Reason::PinAsOnOtherPorts { among },
                    reason => {
                        Reason::FreeToMove { among, arrived: false, moved: Some(self.move_cause(v, to, &reason)) }
                    }
                };
                with("A02", reason)
            }
            _ => match self.why_at_all(d, v, now, to) {
                Reason::SameNumberOneCpu
                | Reason::CpuOfOtherInterface { .. }
                | Reason::CrowdedCache { .. }
                | Reason::QueuesOfOneNumber
                | Reason::LessLoaded { .. }
                    if self.only_as_requested(to) =>
                {
                    with(wishes::RULE, Reason::RemoteRequested)
                }
                reason @ (Reason::SameNumberOneCpu
                | Reason::CpuOfOtherInterface { .. }
                | Reason::CrowdedCache { .. }
                | Reason::QueuesOfOneNumber
                | Reason::LessLoaded { .. }) => match self.recount {
                    Some(Recount { rule, queues, .. }) => with(rule, Reason::PlacedForCount { queues }),
                    None => with("R0.09", reason),
                },
                reason => with("R0.09", reason),
            },
        }
    }

    /// `reason`: why the interrupt would move if it were pinned.
    fn move_cause(&self, v: &Vector, to: usize, reason: &Reason) -> MoveCause {
        match reason {
            Reason::ExcludedCpu { .. } => MoveCause::ExcludedCpu,
            Reason::CoreNotUsed { .. } => MoveCause::CoreNotUsed,
            Reason::SecondThread { .. } => MoveCause::SecondThread,
            Reason::PartOfCore { .. } => MoveCause::PartOfCore,
            Reason::SlowerCore { .. } => MoveCause::SlowerCore,
            Reason::DistantNode { .. } => MoveCause::DistantNode,
            Reason::CpuOfOtherGroup { .. } => MoveCause::CpuOfOtherGroup,
            _ if v.rx().is_empty() => MoveCause::BothDirections,
            _ if self.only_as_requested(to) => MoveCause::RemoteRequested,
            Reason::BusyInSample { .. } => MoveCause::BusyInSample,
            Reason::CpuOfOtherInterface { .. } => MoveCause::CpuOfOtherInterface,
            Reason::CrowdedCache { .. } => MoveCause::CrowdedCache,
            Reason::QueuesOfOneNumber => MoveCause::QueuesOfOneNumber,
            _ => MoveCause::SpreadEvenly,
        }
    }

    /// Whether the CPU gets a queue only because the user permits remote CPUs.
    fn only_as_requested(&self, to: usize) -> bool {
        self.place.far_node == FarNode::Ok && self.zone.class[to] == Class::Far
    }

    /// Queues of the device that are handled now by CPUs with the same L3 cache as `cpu`.
    fn per_l3(&self, cpu: usize) -> usize {
        self.m.l3s[self.m.l3[cpu]].iter().map(|c| self.per_cpu[*c] as usize).sum()
    }

    /// Who gets the current CPU of a queue with goal `mixed`. `None`: no other queue.
    fn given_away(&self, d: &Dev, v: &Vector, now: usize) -> Option<Reason> {
        let cpu = self.m.cpus[now];
        let own = v.rx().first().or(v.tx().first()).map(|q| *q as usize)?;
        let others = || (0..d.cpu.len()).filter(|q| *q != own && d.cpu[*q] == Some(now));
        if others().any(|q| d.urgent.get(q) != d.urgent.get(own)) {
            return Some(Reason::CpuOfOtherGroup { cpu });
        }
        match others().next() {
            Some(queue) => Some(Reason::CpuOfOtherQueue { cpu, queue: queue as u32 }),
            None => {
                self.now.other_on(now, d.name()).map(|other| Reason::CpuForInterface { cpu, other: other.to_string() })
            }
        }
    }

    /// The reason for a move if nothing is wrong with the current CPU itself.
    fn why_at_all(&self, d: &Dev, v: &Vector, now: usize, to: usize) -> Reason {
        let (m, goal, cpu, planned) = (self.m, d.goal, self.m.cpus[now], self.m.cpus[to]);
        if !self.usable[now] {
            return Reason::ExcludedCpu { cpu };
        }
        let core = |cpu: usize| self.place.cands.iter().find(|c| c.core == m.core[cpu]);
        let Some(core_now) = core(now) else {
            return Reason::CoreNotUsed { goal, cpu };
        };
        if !core_now.threads.contains(&now) {
            return Reason::SecondThread { goal, cpu };
        }
        if let Some(core_then) = core(to) {
            // Where the plan puts queues on this core, what is excluded of it is no reason to leave it.
            let is_used = core_now.threads.iter().any(|c| self.now.planned[*c] > 0);
            if core_now.partial && !core_then.partial && !is_used {
                return Reason::PartOfCore { cpu };
            }
            if core_now.weakness > core_then.weakness {
                return Reason::SlowerCore { cpu, planned };
            }
        }
        if self.zone.distance[now] > self.zone.distance[to] {
            return Reason::DistantNode { cpu, planned };
        }
        if !d.urgent.is_empty()
            && let Some(reason) = self.given_away(d, v, now)
        {
            return reason;
        }
        if d.by_load.get(v.rx().first().or(v.tx().first()).copied().unwrap_or(0) as usize) == Some(&true) {
            return Reason::BusyInSample { planned };
        }
        if self.now.has_ports_alike(d) {
            return Reason::SameNumberOneCpu;
        }
        if self.zone.distance[now] < self.zone.distance[to]
            && let Some(other) = self.now.other_on(now, d.name())
        {
            return Reason::CpuOfOtherInterface { other: other.to_string(), node: m.node[to] };
        }
        // Queues that share an interrupt count once, as in `per_l3`.
        let planned = |u: &Unit| u.queues.first().and_then(|q| d.cpu.get(*q).copied().flatten());
        let on_l3 = |cpu: usize| d.units.iter().filter_map(planned).filter(|c| m.l3[*c] == m.l3[cpu]).count();
        let is_shared = self.m.l3s[m.l3[now]].len() > 1;
        if is_shared && m.l3[now] != m.l3[to] && self.per_l3(now) > on_l3(to) {
            return Reason::CrowdedCache { dev: d.name().to_string() };
        }
        if d.is_exchanged(v) {
            return Reason::QueuesOfOneNumber;
        }
        Reason::LessLoaded { planned: m.cpus[to] }
    }
}

/// The rule behind the moves of a device's interrupts, if all of them follow from what the user requested or from the new
/// number of queues. Settings that follow the interrupts cite it too.
pub(crate) fn requested_by(dev: &str, out: &PlanBuilder) -> Option<&'static str> {
    let mut rule = None;
    let first = Address::IrqCpus { dev: dev.to_string(), of: VectorName::Rx(0) };
    for step in out.entries.alike(&first).into_iter().filter_map(|(_, _, step)| step.as_ref()) {
        match &step.reason {
            Reason::RemoteRequested | Reason::PlacedForCount { .. } | Reason::Reset { .. } => {
                rule = rule.or(explain_rule(&step.rule).map(|r| r.id));
            }
            _ => return None,
        }
    }
    rule
}

pub(crate) fn plan(
    m: &Machine,
    d: &Dev,
    place: &Placement,
    now: &CurrentLoads,
    usable: &[bool],
    learned: &LearnedIndex,
    out: &mut PlanBuilder,
) -> Result<(), Refusal> {
    let rule = out.rule_at(&Address::Channels { dev: d.name().to_string() });
    let (queues, fewer) = (d.pairs() as u32, d.pairs() < d.pairs_now() as usize);
    let recount = rule.map(|rule| Recount { rule, queues, fewer });
    let x = Diagnosis::new(m, place, d, now, usable, recount);
    let mut push = |of: VectorName, v: Option<&Vector>, cpu: usize, anew: bool| {
        let cpus = m.set([cpu]);
        let dev = d.name().to_string();
        let live = v.map_or(Fact::Absent, |v| {
            v.asked.as_ref().map(|c| Setting::IrqCpus { dev: dev.clone(), of, cpus: c.clone(), on: None })
        });
        let matched = v.map_or(ringwise_knob::Match::Gone, |v| knob_irq::compare_vector(v, &cpus));
        let setting = Setting::IrqCpus { dev, of, cpus, on: None };
        out.want(None, learned, RequestedSetting { setting, live, matched, anew, needed: true }, || x.why(d, v, cpu));
    };
    if d.channels.is_some() {
        // The driver chooses which queues share a vector after the change: the plan sets both directions to one CPU.
        for (q, cpu) in d.cpu.iter().enumerate() {
            let Some(cpu) = *cpu else { continue };
            let q = q as u32;
            for (of, dir, n) in [(VectorName::Rx(q), Dir::Rx, Some(d.rx)), (VectorName::Tx(q), Dir::Tx, d.tx)] {
                let stuck = d.vector_index(of).is_some_and(|i| d.stuck[i]);
                if n.is_some_and(|n| q < n) && !stuck {
                    push(of, d.vector(dir, q), cpu, true);
                }
            }
        }
        return Ok(());
    }
    for (i, v) in d.nic.vectors.iter().enumerate() {
        let Some(of) = knob_irq::canonical(v) else { continue };
        if d.stuck[i] || v.confidence == ringwise_model::Confidence::None {
            continue;
        }
        let queues = v.rx().iter().map(|q| VectorName::Rx(*q)).chain(v.tx().iter().map(|q| VectorName::Tx(*q)));
        let mut first: Option<(VectorName, usize)> = None;
        for one in queues {
            let q = match one {
                VectorName::Rx(q) | VectorName::Tx(q) | VectorName::Control(q) => q,
            };
            let Some(cpu) = d.cpu.get(q as usize).copied().flatten() else { continue };
            match first {
                None => first = Some((one, cpu)),
                Some((other, at)) if at != cpu => {
                    return Err(Refusal::Conflict {
                        dev: d.name().to_string(),
                        first: other.to_string(),
                        first_cpu: m.cpus[at],
                        second: one.to_string(),
                        second_cpu: m.cpus[cpu],
                    });
                }
                Some(_) => {}
            }
        }
        if let Some((_, cpu)) = first {
            push(of, Some(v), cpu, false);
        }
    }
    Ok(())
}

//! Moves queues to other CPUs of the layout by the packets that a sample counted.
//!
//! A layout with equally many queues on each core is even if the queues have equal loads. Few flows keep few queues busy: then one
//! core may have two busy queues and another none. Only CPUs are exchanged: none has more queues of an interface
//! than the most that one of them has without the sample.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_knob::Address;
use ringwise_model::{Goal, Sample, TrafficSample};

use crate::dev::Dev;
use crate::machine::{Class, Machine};
use crate::place::Placements;
use crate::sampled_groups::{FEWEST_FRAMES_PER_S, GroupsUndecided, PlacementChoice, SampledPlacement};
use crate::shares;

/// What a busy second thread adds to the time that a core needs, in parts of its own time.
const SECOND_THREAD: f64 = shares::BESIDE_BUSY_THREAD - 1.0;

/// Queues move if the load of the busiest core falls by this part, or the sum of the squares of the other loads: where one flow fills a
/// core, the others may still share theirs.
const WORTH: f64 = 0.1;

/// The layout now is kept if its busiest core has at most this much more than that of the best layout found.
const AS_GOOD: f64 = 1.05;

/// Layouts are compared by the sum of this power of the loads. With squares, two busy queues on the threads of one core stayed there,
/// because they need less time in total than on two cores: 20 + 20 / 2 and 10 instead of 20 + 10 / 2 and 20.
const POWER: i32 = 4;

/// Queues of one interrupt, and the packets that they received.
#[derive(Clone)]
struct BusyUnit {
    dev: usize,
    queues: Vec<usize>,
    packets: f64,
    cpu: usize,
    /// CPU of the interrupt now.
    now: Option<usize>,
    movable: bool,
}

/// What distinguishes the CPUs of a zone for a queue. A queue moves only between equal ones.
type Kind = (Class, u32, u32, bool, bool);

/// Which CPUs the queues of each device may use.
struct Permitted {
    by_dev: Vec<BTreeMap<usize, Kind>>,
}

impl Permitted {
    fn new(devs: &[Dev], places: &Placements) -> Self {
        let of = |d: &Dev| {
            let cands = &places[&d.zone()].cands;
            let each = cands.iter().flat_map(|c| {
                let kind = (c.class, c.distance, c.weakness, c.home, c.partial);
                c.threads.iter().map(move |t| (*t, kind))
            });
            each.collect::<BTreeMap<_, _>>()
        };
        Self { by_dev: devs.iter().map(of).collect() }
    }

    /// Whether a queue of this device may be on either CPU, and both are equally near and fast.
    fn alike(&self, dev: usize, one: usize, other: usize) -> bool {
        let of = &self.by_dev[dev];
        of.get(&one).is_some_and(|kind| of.get(&other) == Some(kind))
    }
}

/// Packets by CPU, and units by device and CPU.
#[derive(Clone)]
struct Layout<'a, 'm> {
    m: &'a Machine<'m>,
    units: Vec<BusyUnit>,
    packets: Vec<f64>,
    own: BTreeMap<(usize, usize), u32>,
    /// By device: how many of its units a CPU may have, as without the sample.
    most: BTreeMap<usize, u32>,
    on: Vec<BTreeSet<usize>>,
}

impl<'a, 'm> Layout<'a, 'm> {
    fn new(m: &'a Machine<'m>, units: Vec<BusyUnit>) -> Self {
        let n = m.cpus.len();
        let mut out = Self {
            m,
            units: Vec::new(),
            packets: vec![0.0; n],
            own: BTreeMap::new(),
            most: BTreeMap::new(),
            on: vec![BTreeSet::new(); n],
        };
        for (i, u) in units.iter().enumerate() {
            out.packets[u.cpu] += u.packets;
            *out.own.entry((u.dev, u.cpu)).or_default() += 1;
            out.on[u.cpu].insert(i);
        }
        for ((dev, _), n) in &out.own {
            let most = out.most.entry(*dev).or_default();
            *most = (*most).max(*n);
        }
        out.units = units;
        out
    }

    /// The time that a core needs, in packets of a thread whose core does nothing else.
    fn load(&self, core: usize, packets: &dyn Fn(usize) -> f64) -> f64 {
        let (mut most, mut sum) = (0.0, 0.0);
        for t in &self.m.cores[core] {
            let n = packets(*t);
            sum += n;
            most = f64::max(most, n);
        }
        most + SECOND_THREAD * (sum - most)
    }

    fn loads(&self) -> Vec<f64> {
        (0..self.m.cores.len()).map(|core| self.load(core, &|t| self.packets[t])).collect()
    }

    fn busiest(&self) -> f64 {
        self.loads().into_iter().fold(0.0, f64::max)
    }

    /// The sum of [`POWER`]s of the loads, without that of the busiest core: it may be high because of one flow.
    fn powers(&self) -> f64 {
        let mut loads = self.loads();
        loads.sort_by(f64::total_cmp);
        loads.pop();
        loads.into_iter().map(|l| l.powi(POWER)).sum()
    }

    /// Whether no CPU has more units of a device than it may have.
    fn is_spread(&self) -> bool {
        self.own.iter().all(|((dev, _), n)| *n <= self.most[dev])
    }

    /// By how much the sum of [`POWER`]s changes if so many packets move between these CPUs.
    fn change(&self, from: usize, to: usize, moved: f64) -> f64 {
        let after = |t: usize| match t {
            t if t == from => self.packets[t] - moved,
            t if t == to => self.packets[t] + moved,
            t => self.packets[t],
        };
        let cores: BTreeSet<usize> = [self.m.core[from], self.m.core[to]].into();
        let each = cores.into_iter().map(|core| {
            let (was, is) = (self.load(core, &|t| self.packets[t]), self.load(core, &after));
            is.powi(POWER) - was.powi(POWER)
        });
        each.sum()
    }

    /// Whether a queue on `from` would come to a core that handles interrupts of NICs in other network namespaces, whose packets the
    /// sample does not count.
    fn disturbs(&self, from: usize, to: usize) -> bool {
        let is_loaded = |cpu: usize| self.m.loaded_elsewhere.iter().any(|c| self.m.core[*c] == self.m.core[cpu]);
        is_loaded(to) && !is_loaded(from)
    }

    fn own(&self, dev: usize, cpu: usize) -> u32 {
        self.own.get(&(dev, cpu)).copied().unwrap_or(0)
    }

    fn put(&mut self, unit: usize, to: usize) {
        let u = &mut self.units[unit];
        let from = std::mem::replace(&mut u.cpu, to);
        self.packets[from] -= u.packets;
        self.packets[to] += u.packets;
        if let Some(n) = self.own.get_mut(&(u.dev, from)) {
            *n -= 1;
        }
        *self.own.entry((u.dev, to)).or_default() += 1;
        self.on[from].remove(&unit);
        self.on[to].insert(unit);
    }

    /// The unit that `unit` changes places with on this CPU: the least busy one that may be on the other's CPU. `None`: the CPU
    /// has queues, and none may leave; `Some(None)`: the CPU has no queue.
    fn partner(&self, unit: usize, to: usize, permitted: &Permitted) -> Option<Option<usize>> {
        let u = &self.units[unit];
        if self.on[to].is_empty() {
            return Some(None);
        }
        let room = |dev: usize, to: usize| self.own(dev, to) < self.most[&dev];
        let fits = |other: &&usize| {
            let v = &self.units[**other];
            let apart = v.dev != u.dev;
            v.movable
                && v.packets < u.packets
                && permitted.alike(v.dev, v.cpu, u.cpu)
                && (!apart || (room(u.dev, to) && room(v.dev, u.cpu)))
        };
        let least = |a: &&usize, b: &&usize| self.units[**a].packets.total_cmp(&self.units[**b].packets);
        self.on[to].iter().filter(fits).min_by(least).map(|other| Some(*other))
    }

    /// The best exchange for a queue of this core: by how much it changes the sum of [`POWER`]s, the unit, its CPU, its partner.
    fn best_of(&self, core: usize, permitted: &Permitted) -> Option<(f64, usize, usize, Option<usize>)> {
        let mut best: Option<(f64, usize, usize, Option<usize>)> = None;
        let units = self.m.cores[core].iter().flat_map(|t| &self.on[*t]).copied();
        for unit in units.filter(|i| self.units[*i].movable && self.units[*i].packets > 0.0) {
            let u = &self.units[unit];
            for to in permitted.by_dev[u.dev].keys().copied() {
                if to == u.cpu || !permitted.alike(u.dev, u.cpu, to) || self.disturbs(u.cpu, to) {
                    continue;
                }
                let Some(partner) = self.partner(unit, to, permitted) else { continue };
                let moved = u.packets - partner.map_or(0.0, |p| self.units[p].packets);
                let change = self.change(u.cpu, to, moved);
                if best.is_none_or(|b| change < b.0) {
                    best = Some((change, unit, to, partner));
                }
            }
        }
        best
    }

    /// Exchanges CPUs as long as it makes the loads more even, the busiest cores first.
    fn improve(&mut self, permitted: &Permitted) {
        for _ in 0..2 * self.units.len() {
            let least = -self.powers() * 1e-3;
            let mut cores: Vec<(usize, f64)> = self.loads().into_iter().enumerate().filter(|(_, l)| *l > 0.0).collect();
            cores.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            let best = cores.iter().filter_map(|(core, _)| self.best_of(*core, permitted)).find(|b| b.0 < least);
            let Some((_, unit, to, partner)) = best else { return };
            let from = self.units[unit].cpu;
            self.put(unit, to);
            if let Some(other) = partner {
                self.put(other, from);
            }
        }
    }

    /// The layout now, if all of its CPUs are permitted and none is worse than in this layout.
    fn now(&self, permitted: &Permitted) -> Option<Self> {
        let mut units = self.units.clone();
        for u in units.iter_mut().filter(|u| u.movable) {
            let now = u.now?;
            if !permitted.alike(u.dev, now, u.cpu) || self.disturbs(u.cpu, now) {
                return None;
            }
            u.cpu = now;
        }
        let now = Self { most: self.most.clone(), ..Self::new(self.m, units) };
        now.is_spread().then_some(now)
    }
}

/// Whether the present table and the present queues are those after the plan: only then the counters of queues tell their load.
fn keeps_queues(d: &Dev, configured: &BTreeSet<Address>) -> bool {
    let table = Address::RssTable { dev: d.name().to_string() };
    d.channels.is_none()
        && d.goal != Goal::Mixed
        && d.urgent.is_empty()
        && d.groups.is_empty()
        && !configured.contains(&table)
}

/// The load of all queues with a CPU. Where the plan changes the queues, they get equal parts of what the interface received.
fn units(
    m: &Machine,
    devs: &[Dev],
    sample: &TrafficSample,
    configured: &BTreeSet<Address>,
) -> Result<Vec<BusyUnit>, GroupsUndecided> {
    let mut out = Vec::new();
    for (dev, d) in devs.iter().enumerate() {
        let interface = sample.interface(d.name()).ok_or(GroupsUndecided::NotCounted)?;
        let packets_of = |queue: u32| interface.queues.iter().find(|q| q.queue == queue).and_then(|q| q.packets);
        let each: Vec<u64> = (0..d.rx_now).map(packets_of).collect::<Option<_>>().ok_or(GroupsUndecided::NotCounted)?;
        let all = each.iter().fold(0u64, |sum, n| sum.saturating_add(*n)) as f64;
        let movable = keeps_queues(d, configured) && d.rx > 1;
        let part = |q: usize| match d.channels {
            None => each.get(q).map_or(0.0, |n| *n as f64),
            Some(_) if q < d.rx as usize => all / f64::from(d.rx),
            Some(_) => 0.0,
        };
        for u in &d.units {
            let Some(cpu) = u.queues.first().and_then(|q| d.cpu[*q]) else { continue };
            out.push(BusyUnit {
                dev,
                queues: u.queues.clone(),
                packets: u.queues.iter().map(|q| part(*q)).sum(),
                cpu,
                now: u.queues.first().and_then(|q| d.pair_now(m, *q as u32)),
                movable: movable && u.fixed.is_none(),
            });
        }
    }
    Ok(out)
}

/// Moves queues by the load that the sample counted. `configured`: addresses of settings that the user configured.
pub(crate) fn place(
    m: &Machine,
    devs: &mut [Dev],
    places: &Placements,
    sample: &Sample,
    configured: &BTreeSet<Address>,
) -> Option<SampledPlacement> {
    let outside_groups = |d: &Dev| d.goal != Goal::Mixed && d.groups.is_empty();
    if !devs.iter().any(outside_groups) {
        return None;
    }
    let taken = match sample {
        Sample::Taken(taken) => taken,
        Sample::NotTaken(why) => {
            let choice = PlacementChoice::Kept { why: GroupsUndecided::NotSampled { why: *why } };
            return Some(SampledPlacement { duration_ms: None, choice });
        }
    };
    let choice = choose(m, devs, places, taken, configured).unwrap_or_else(|why| PlacementChoice::Kept { why });
    Some(SampledPlacement { duration_ms: Some(taken.duration_ms), choice })
}

fn choose(
    m: &Machine,
    devs: &mut [Dev],
    places: &Placements,
    sample: &TrafficSample,
    configured: &BTreeSet<Address>,
) -> Result<PlacementChoice, GroupsUndecided> {
    if !devs.iter().any(|d| keeps_queues(d, configured)) {
        return Err(GroupsUndecided::QueuesChange);
    }
    let units = units(m, devs, sample, configured)?;
    let packets = units.iter().map(|u| u.packets).sum::<f64>() as u64;
    if packets == 0 || packets.saturating_mul(1000) < FEWEST_FRAMES_PER_S.saturating_mul(sample.duration_ms) {
        return Err(GroupsUndecided::NoTraffic { frames: packets });
    }
    let permitted = Permitted::new(devs, places);
    let without = Layout::new(m, units);
    let mut best = without.clone();
    best.improve(&permitted);
    let falls = |was: f64, is: f64, worth: f64| was > 0.0 && is <= was * worth;
    // Another table would change which queues are busy.
    for d in devs.iter_mut().filter(|d| keeps_queues(d, configured)) {
        d.table_sampled = true;
    }
    let (was, is) = (without.powers(), best.powers());
    if !falls(without.busiest(), best.busiest(), 1.0 - WORTH) && !falls(was, is, (1.0 - WORTH).powi(POWER / 2)) {
        return Ok(PlacementChoice::AsGood { packets });
    }
    // A layout that an earlier sample chose stays while it is as good.
    let within =
        |now: &Layout| now.busiest() <= best.busiest() * AS_GOOD && now.powers() <= best.powers() * AS_GOOD.powi(POWER);
    let chosen = best.now(&permitted).filter(within).unwrap_or_else(|| best.clone());
    let mut moved = 0;
    for (u, was) in chosen.units.iter().zip(&without.units).filter(|(u, was)| u.cpu != was.cpu) {
        let d = &mut devs[u.dev];
        d.by_load.resize(d.cpu.len(), false);
        for q in &was.queues {
            (d.cpu[*q], d.by_load[*q]) = (Some(u.cpu), true);
            moved += 1;
        }
    }
    Ok(PlacementChoice::Load { packets, queues: moved, times: without.busiest() / chosen.busiest() })
}

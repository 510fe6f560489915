//! Assigns a CPU to every queue, for all devices together, so that they share the near cores.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ringwise_model::natural::compare as natural;
use ringwise_model::order::Order;
use ringwise_model::{Dir, FarNode, Goal, IfIndex, NicKind, Smt};

use crate::dev::{Dev, Unit};
use crate::goal::{self, Resolved};
use crate::keep_layout::{self, StayCandidate};
use crate::machine::{Class, Machine, Near, Zone};
use crate::pick::{CoreCandidate, CpuPicker, Loads, candidates};
use crate::same_number::{self, Change, Numbered, NumberedPlace};
use crate::{Refusal, groups, shares};

/// The candidates that devices with the same idea of near have in common.
pub(crate) struct Placement {
    pub zone: Zone,
    /// Cores that may handle queues, nearest class first.
    pub cands: Vec<CoreCandidate>,
    /// Physical cores of the device's own node that may handle queues, only whole cores if there are any. If the node has
    /// none, those of the nearest node.
    pub home_cores: u32,
    /// Threads of the node that may handle queues, also on cores that are partly excluded: each of them adds capacity.
    pub home_cpus: u32,
    /// CPUs that the options permit for queues: one per core unless `--smt all`, local ones unless `--far-node ok`.
    pub permitted: u32,
    /// Whether remote CPUs are used because no near CPU is available.
    pub far_instead: bool,
    /// Whether remote CPUs are left that only `--far-node ok` would use.
    pub remote_left: bool,
    /// Whether second threads are left that only `--smt all` would use.
    pub threads_left: bool,
    /// Which CPUs of other nodes the user permits.
    pub far_node: FarNode,
}

impl Placement {
    /// Whether a core counts as one of the device's own node: also a remote one if the user permits them all.
    fn is_own(&self, c: &CoreCandidate) -> bool {
        c.home || self.far_node == FarNode::Ok
    }
}

pub(crate) type Placements = BTreeMap<(Near, Goal), Placement>;

/// The places by idea of near and goal; a refusal if no CPU is left and remote CPUs are excluded. `smt_named`: the user
/// configured which threads handle queues.
pub(crate) fn places(
    m: &Machine,
    devs: &[Dev],
    usable: &[bool],
    intents: &Resolved,
    smt_named: bool,
) -> Result<Placements, Refusal> {
    let mut out = BTreeMap::new();
    for (d, at) in devs.iter().flat_map(|d| d.possible_zones().map(move |at| (d, at))) {
        if out.contains_key(&at) {
            continue;
        }
        let intent = intents.of(d.goal);
        let (smt, far) = (intent.smt.unwrap_or(Smt::All), intent.far_node.unwrap_or(FarNode::Last));
        let zone = m.zone(&d.near, goal::near_is_wide(intent.goal));
        let on = |smt| candidates(m, &zone, usable, smt, far == FarNode::Ok);
        let mut cands = on(smt);
        // One queue per core is only a preference of the goal: it must not put all queues on one CPU.
        let one_core = cands.len() == 1 && smt == Smt::OnePerCore && !smt_named;
        if one_core {
            cands = on(Smt::All);
        }
        let (mut far_instead, mut remote_left) = (false, false);
        if far != FarNode::Ok {
            let is_near = |c: &CoreCandidate| if far == FarNode::Never { c.home } else { c.class != Class::Far };
            let any_near = cands.iter().any(is_near);
            if any_near && far == FarNode::Last && goal::far_when_full(at.1) {
                // Sorted nearest first, so remote CPUs are used only if no near one is left.
            } else if any_near {
                let all = cands.len();
                cands.retain(is_near);
                // Goal latency takes half of the local cores, however many remote ones there are.
                remote_left = cands.len() < all && intent.goal != Goal::Latency && far != FarNode::Never;
            } else if far == FarNode::Never {
                let pick = |f: &dyn Fn(usize) -> bool| m.set((0..m.cpus.len()).filter(|i| f(*i)));
                return Err(Refusal::NoNearCandidates {
                    dev: d.name().to_string(),
                    near: pick(&|i| zone.home[i]),
                    candidates: pick(&|i| usable[i]),
                });
            } else {
                far_instead = true;
            }
        }
        let nearest = cands.iter().map(|c| (c.class, c.distance)).min();
        let count = |f: &dyn Fn(&CoreCandidate) -> bool| {
            let all = cands.iter().filter(|c| f(c)).map(|c| c.threads.len());
            let (cores, cpus) = all.fold((0, 0), |(cores, cpus), n| (cores + 1, cpus + n as u32));
            (cores > 0).then_some((cores, cpus))
        };
        let whole = count(&|c| c.home && !c.partial);
        let home = count(&|c| c.home).or_else(|| count(&|c| Some((c.class, c.distance)) == nearest)).unwrap_or((0, 0));
        let (home_cores, home_cpus) = (whole.unwrap_or(home).0, home.1);
        let home_cores = if one_core { home_cpus } else { home_cores };
        let permitted = if far == FarNode::Ok { count(&|_| true).map_or(home_cpus, |all| all.1) } else { home_cpus };
        if intent.goal == Goal::Latency && !intent.pair_as_article {
            reserve_half(m, &mut cands, home_cores);
        }
        // Goal latency leaves local cores to programs, not only threads.
        let threads_left = smt == Smt::OnePerCore
            && !smt_named
            && intent.goal != Goal::Latency
            && cands.iter().any(|c| m.cores[c.core].iter().filter(|t| usable[**t]).count() > c.threads.len());
        let far_node = far;
        out.insert(
            at,
            Placement {
                zone,
                cands,
                home_cores,
                home_cpus,
                permitted,
                far_instead,
                remote_left,
                threads_left,
                far_node,
            },
        );
    }
    Ok(out)
}

/// Keeps the number of cores that goal latency uses for queues, spread as queues would be.
fn reserve_half(m: &Machine, cands: &mut Vec<CoreCandidate>, home_cores: u32) {
    let mut loads = Loads::new(m);
    let mut p = CpuPicker::new(m, cands, &[]);
    p.take(&mut loads, goal::for_queues(home_cores) as usize, false);
    let cores: Vec<usize> = p.picks.iter().map(|p| m.core[p.cpu]).collect();
    cands.retain(|c| cores.contains(&c.core));
}

fn counted(all: impl Iterator<Item = usize>) -> BTreeMap<usize, u32> {
    let mut out = BTreeMap::new();
    all.for_each(|x| *out.entry(x).or_default() += 1);
    out
}

/// Devices that get the same layout.
struct Alike {
    devs: Vec<usize>,
    zone: (Near, Goal),
    /// Number of places needed.
    n: usize,
    /// A port of a router with a layout of its own, on CPUs of its node.
    apart: bool,
}

impl Alike {
    /// A single device is placed around its units that cannot move; ports with equal layouts have a place for each queue.
    fn places<'d>(&self, d: &'d Dev) -> impl Iterator<Item = &'d Unit> {
        let alone = self.devs.len() == 1;
        d.units.iter().filter(move |u| !alone || u.fixed.is_none())
    }

    /// The current CPU of each place, from the device whose queues are spread best; from a late one only if the others do not
    /// say it. Devices with a channel change are skipped, because the change creates new interrupts.
    fn now(&self, m: &Machine, devs: &[Dev]) -> Vec<Option<usize>> {
        let of = |d: &Dev| -> Vec<Option<usize>> {
            let cpu = |u: &Unit| u.queues.first().filter(|_| u.fixed.is_none()).and_then(|q| d.pair_now(m, *q as u32));
            self.places(d).map(cpu).collect()
        };
        let stay = self.devs.iter().map(|i| &devs[*i]).filter(|d| d.channels.is_none());
        let mut all: Vec<(bool, Vec<Option<usize>>)> = stay.map(|d| (d.late, of(d))).collect();
        all.order_by_key(|(late, places)| (*late, Reverse(counted(places.iter().flatten().copied()).len())));
        (0..self.n).map(|place| all.iter().find_map(|(_, of)| of.get(place).copied().flatten())).collect()
    }
}

impl Alike {
    /// The queues by number, with what happens to them if this layout is planned.
    fn numbered<'z>(
        &self,
        m: &Machine,
        devs: &[Dev],
        zone: &'z Zone,
        ordered: bool,
        cpus: &[Option<usize>],
    ) -> Numbered<'z> {
        let first = &devs[self.devs[0]];
        let change = |d: &Dev, u: &Unit, cpu: Option<usize>| {
            if d.channels.is_some() {
                return Change::Moves;
            }
            let of = |q: &usize| [Dir::Rx, Dir::Tx].map(|dir| d.vector(dir, *q as u32));
            let vectors = || u.queues.iter().flat_map(of).flatten();
            if vectors().any(|v| Dev::now(m, v) != cpu) {
                Change::Moves
            } else if vectors().any(|v| v.asked.known().is_none_or(|asked| asked.len() != 1)) {
                Change::Pinned
            } else {
                Change::Stays
            }
        };
        // By device: its units at these places.
        let units: Vec<(&Dev, Vec<&Unit>)> =
            self.devs.iter().map(|i| (&devs[*i], self.places(&devs[*i]).collect())).collect();
        let of = |place: usize| -> Option<NumberedPlace> {
            let cpu = cpus.get(place).copied().flatten();
            let here: Vec<(&Dev, &Unit)> = units.iter().filter_map(|(d, all)| Some((*d, *all.get(place)?))).collect();
            let receives = here.iter().filter(|(d, u)| u.queues.iter().any(|q| *q < d.rx as usize)).count();
            Some(NumberedPlace {
                queues: here.first()?.1.queues.clone(),
                change: here.iter().map(|(d, u)| change(d, u, cpu)).max()?,
                kind: (here.len(), receives),
            })
        };
        let fixed = first.units.iter().filter(|u| self.devs.len() == 1 && u.fixed.is_some());
        let fixed = fixed.filter_map(|u| Some((u.queues.clone(), u.fixed??))).collect();
        Numbered { zone, places: (0..self.n).map_while(of).collect(), fixed, ordered }
    }
}

fn sets(m: &Machine, devs: &[Dev], places: &Placements) -> Vec<Alike> {
    let bond = |d: &Dev| -> Option<IfIndex> {
        let master = d.nic.master?;
        // This also applies if the state of the members is unknown.
        let kind = &d.master?.kind;
        matches!(kind, NicKind::Software { kind } if kind == "bond" || kind == "team").then_some(master)
    };
    // Sorted by identity, so that neither the order nor the names of the devices change the layout.
    let mut order: Vec<usize> = (0..devs.len()).collect();
    order.order_by(|a, b| {
        let id = |i: &usize| {
            let d = &devs[*i].nic.dev;
            (d.bus_address.is_none(), d.bus_address.clone(), d.permanent_mac.clone())
        };
        id(a).cmp(&id(b)).then_with(|| natural(devs[*a].name(), devs[*b].name()))
    });
    let mut out: Vec<Alike> = Vec::new();
    let mut known: BTreeMap<((Near, Goal), Option<IfIndex>), usize> = BTreeMap::new();
    for i in order {
        let d = &devs[i];
        let together = if goal::ports_alike(d.goal) { Some(None) } else { bond(d).map(Some) };
        let zone = d.zone();
        match together {
            Some(key) => {
                let g = *known.entry((zone.clone(), key)).or_insert_with(|| {
                    out.push(Alike { devs: Vec::new(), zone, n: 0, apart: false });
                    out.len() - 1
                });
                out[g].devs.push(i);
            }
            None => out.push(Alike { devs: vec![i], zone, n: 0, apart: false }),
        }
    }
    let count = |g: &mut Alike| g.n = g.devs.iter().map(|i| g.places(&devs[*i]).count()).max().unwrap_or(0);
    out.iter_mut().for_each(count);
    let mut out: Vec<Alike> = out.into_iter().flat_map(|g| apart(m, devs, places, g)).collect();
    out.iter_mut().for_each(count);
    // The device with the fewest candidate cores chooses first.
    out.order_by_key(|g| places.get(&g.zone).map_or(0, |p| p.cands.len()));
    out
}

/// By how much the modelled capacity has to grow for ports to get layouts of their own.
const APART_WORTH: f64 = 1.05;

/// The ports of a router one by one, if one layout for all of them would leave capacity of their node unused: eight queues
/// use eight of twelve CPUs, and the CPUs that only one port uses add capacity.
fn apart(m: &Machine, devs: &[Dev], places: &Placements, g: Alike) -> Vec<Alike> {
    let place = &places[&g.zone];
    let home: Vec<&CoreCandidate> = place.cands.iter().filter(|c| place.is_own(c)).collect();
    if g.devs.len() < 2 || !goal::ports_alike(g.zone.1) || home.is_empty() {
        return vec![g];
    }
    let most = home.iter().map(|c| c.threads.len()).max().unwrap_or(0);
    // One thread of each core first, as they are chosen.
    let by_turns = (0..most).flat_map(|t| home.iter().filter_map(move |c| c.threads.get(t).copied()));
    let cpus: Vec<usize> = by_turns.collect();
    let queues: usize = g.devs.iter().map(|i| g.places(&devs[*i]).count()).sum();
    let capacity = |cpus: &mut dyn Iterator<Item = usize>| -> f64 { shares::capacity(m, cpus).values().sum() };
    // One layout may also use idle cores of nearby nodes.
    let mut common = CpuPicker::new(m, &place.cands, &[]);
    common.take(&mut Loads::new(m), g.n, false);
    let common = capacity(&mut common.picks.iter().map(|p| p.cpu));
    if capacity(&mut cpus.into_iter().take(queues)) < common * APART_WORTH {
        return vec![g];
    }
    let one = |i: usize| Alike { devs: vec![i], zone: g.zone.clone(), n: 0, apart: true };
    g.devs.iter().map(|i| one(*i)).collect()
}

/// Sets `cpu` of every device.
pub(crate) fn place(m: &Machine, devs: &mut [Dev], places: &Placements) {
    let mut loads = Loads::new(m);
    m.loaded_elsewhere.iter().for_each(|cpu| loads.add(m, *cpu));
    let mut fixed: Vec<Vec<usize>> = vec![Vec::new(); devs.len()];
    for (i, d) in devs.iter_mut().enumerate() {
        (d.remote_left, d.threads_left) = (places[&d.zone()].remote_left, places[&d.zone()].threads_left);
        for u in &d.units {
            if let Some(at) = u.fixed {
                u.queues.iter().for_each(|q| d.cpu[*q] = at);
                if let Some(cpu) = at {
                    loads.add(m, cpu);
                    fixed[i].push(cpu);
                }
            }
        }
    }
    let sets = sets(m, devs, places);
    let mut sharers: BTreeMap<&Near, usize> = BTreeMap::new();
    for g in &sets {
        *sharers.entry(&g.zone.0).or_default() += 1;
    }
    let mut idle: BTreeMap<&(Near, Goal), usize> = BTreeMap::new();
    for g in &sets {
        let count = || places[&g.zone].cands.iter().filter(|c| c.home && loads.core[c.core] == 0).count();
        idle.entry(&g.zone).or_insert_with(count);
    }
    // First each device takes its share of the idle cores of its node, then the rest in the order of rank: so no device
    // loses its own node to an earlier device.
    let at_home = |g: &Alike| -> Vec<CoreCandidate> {
        places[&g.zone].cands.iter().filter(|c| !g.apart || places[&g.zone].is_own(c)).cloned().collect()
    };
    let cands: Vec<Vec<CoreCandidate>> = sets.iter().map(at_home).collect();
    let mut pickers: Vec<CpuPicker> = Vec::new();
    for (g, cands) in sets.iter().zip(&cands) {
        let own: &[usize] = if g.devs.len() == 1 { &fixed[g.devs[0]] } else { &[] };
        let mut p = CpuPicker::new(m, cands, own);
        p.take(&mut loads, g.n.min(idle[&g.zone] / sharers[&g.zone.0]), true);
        pickers.push(p);
    }
    for (g, p) in sets.iter().zip(&mut pickers) {
        let rest = g.n - p.picks.len();
        p.take(&mut loads, rest, false);
    }
    let zones: BTreeMap<&(Near, Goal), usize> = places.keys().zip(0..).collect();
    let stayers: Vec<StayCandidate> = sets
        .iter()
        .zip(pickers)
        .map(|(g, p)| {
            let first = &devs[g.devs[0]];
            let (cpus, now) = (p.in_order(), g.now(m, devs));
            let ordered = !first.urgent.is_empty();
            let assigned = if ordered {
                let urgent: Vec<bool> = g.places(first).map(|u| u.queues.iter().any(|q| first.urgent[*q])).collect();
                let far = |cpu: usize| places[&g.zone].zone.class[cpu] == Class::Far;
                groups::deal(m, &cpus, &urgent, &far).into_iter().map(Some).collect()
            } else {
                keep(&now, &cpus)
            };
            let fixed: &[usize] = if g.devs.len() == 1 { &fixed[g.devs[0]] } else { &[] };
            StayCandidate { now, assigned, zone: zones[&g.zone], fixed, ordered }
        })
        .chain(elsewhere(m))
        .collect();
    let cands: Vec<&[CoreCandidate]> = places.values().map(|p| p.cands.as_slice()).collect();
    let mut layouts = keep_layout::stay(m, &cands, &stayers);
    let numbered: Vec<Numbered> = sets
        .iter()
        .zip(&stayers)
        .zip(&layouts)
        .map(|((g, stayer), cpus)| g.numbered(m, devs, &places[&g.zone].zone, stayer.ordered, cpus))
        .collect();
    let before = layouts.clone();
    same_number::spread(m, &numbered, &mut layouts);
    for ((g, cpus), before) in sets.iter().zip(layouts).zip(before) {
        let alone = g.devs.len() == 1;
        for i in &g.devs {
            let d = &mut devs[*i];
            d.apart = g.apart;
            d.exchanged = if cpus == before { Vec::new() } else { vec![false; d.cpu.len()] };
            let mut at = 0;
            for u in &d.units {
                if u.fixed.is_none() {
                    let cpu = cpus.get(at).copied().flatten();
                    u.queues.iter().for_each(|q| d.cpu[*q] = cpu);
                    if cpu != before.get(at).copied().flatten() {
                        u.queues.iter().for_each(|q| d.exchanged[*q] = true);
                    }
                }
                if !alone || u.fixed.is_none() {
                    at += 1;
                }
            }
        }
    }
    mark_crowded(devs, places);
}

/// Interrupts of network functions without an interface here: they count, but do not move.
fn elsewhere<'m>(m: &'m Machine<'_>) -> Option<StayCandidate<'m>> {
    let fixed = m.loaded_elsewhere.as_slice();
    (!fixed.is_empty()).then_some(StayCandidate {
        now: Vec::new(),
        assigned: Vec::new(),
        zone: 0,
        fixed,
        ordered: true,
    })
}

fn mark_crowded(devs: &mut [Dev], places: &Placements) {
    let taken = counted(devs.iter().flat_map(|d| d.cpu.iter().flatten().copied()));
    for d in devs {
        let own = counted(d.cpu.iter().flatten().copied());
        let local: Vec<usize> =
            places[&d.zone()].cands.iter().filter(|c| c.home).flat_map(|c| c.threads.iter().copied()).collect();
        let others = local.iter().all(|cpu| taken.contains_key(cpu));
        d.crowded = others && own.len() < d.units.len() && d.units.len() <= local.len();
    }
}

/// Distributes the chosen CPUs so that places on one of them stay there; the others get theirs in order.
fn keep(now: &[Option<usize>], cpus: &[usize]) -> Vec<Option<usize>> {
    let mut left = counted(cpus.iter().copied());
    let mut take = |cpu: usize| left.get_mut(&cpu).filter(|n| **n > 0).map(|n| *n -= 1).is_some();
    // If several places are on one CPU, those stay that would get this CPU anyway.
    let there = now.iter().zip(cpus).map(|(now, cpu)| now.filter(|now| now == cpu && take(*now)));
    let mut out: Vec<Option<usize>> = there.collect();
    for (place, now) in out.iter_mut().zip(now).filter(|(p, _)| p.is_none()) {
        *place = now.filter(|cpu| take(*cpu));
    }
    let mut rest = cpus.iter().copied().filter(|cpu| take(*cpu));
    for place in out.iter_mut().filter(|p| p.is_none()) {
        *place = rest.next();
    }
    out
}

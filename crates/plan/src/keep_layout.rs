//! Keeps queues on their current CPUs if the resulting layout is as good as the chosen one.
//!
//! "As good" compares one sum for each reason to move a queue ([`Cost`]): none may be worse than in the layout that was
//! chosen without regard to the current one. So planning again accepts the layout of the earlier plan.

use std::collections::{BTreeMap, VecDeque};

use crate::machine::{Class, Machine};
use crate::pick::CoreCandidate;

/// Input for one set of devices, by place.
pub(crate) struct StayCandidate<'a> {
    /// The CPU that this place has now on most of the devices.
    pub now: Vec<Option<usize>>,
    pub assigned: Vec<Option<usize>>,
    /// Index of the list of cores that it may use.
    pub zone: usize,
    /// CPUs of its own queues that cannot be moved.
    pub fixed: &'a [usize],
    /// Whether the order of the CPUs matters.
    pub ordered: bool,
}

/// Lower is better, for each member.
#[derive(Clone, Copy, Default)]
struct Cost {
    far: u64,
    other_nodes: u64,
    partial: u64,
    weakness: u64,
    distance: u64,
    /// Sums of squares: of the queues on each CPU, core and L3 cache.
    cpus: u64,
    cores: u64,
    l3s: u64,
}

impl Cost {
    fn within(&self, bound: &Self) -> bool {
        let all = |c: &Self| [c.far, c.other_nodes, c.partial, c.weakness, c.distance, c.cpus, c.cores, c.l3s];
        all(self).iter().zip(all(bound)).all(|(a, b)| *a <= b)
    }
}

/// Queues by CPU, core and L3 cache.
#[derive(Clone, Default)]
struct Queues {
    cpus: BTreeMap<usize, u64>,
    cores: BTreeMap<usize, u64>,
    l3s: BTreeMap<usize, u64>,
    squares: [u64; 3],
}

impl Queues {
    fn add(&mut self, m: &Machine, cpu: usize) {
        let more = |n: &mut u64| {
            *n += 1;
            2 * *n - 1
        };
        self.squares[0] += more(self.cpus.entry(cpu).or_default());
        self.squares[1] += more(self.cores.entry(m.core[cpu]).or_default());
        self.squares[2] += more(self.l3s.entry(m.l3[cpu]).or_default());
    }

    fn remove(&mut self, m: &Machine, cpu: usize) {
        let less = |n: Option<&mut u64>| {
            n.filter(|n| **n > 0).map_or(0, |n| {
                *n -= 1;
                2 * *n + 1
            })
        };
        self.squares[0] -= less(self.cpus.get_mut(&cpu));
        self.squares[1] -= less(self.cores.get_mut(&m.core[cpu]));
        self.squares[2] -= less(self.l3s.get_mut(&m.l3[cpu]));
    }

    fn most(&self) -> (u64, u64) {
        let most = |of: &BTreeMap<usize, u64>| of.values().max().copied().unwrap_or(0);
        (most(&self.cpus), most(&self.cores))
    }
}

#[derive(Clone)]
struct State {
    /// CPU by set and place.
    at: Vec<Vec<Option<usize>>>,
    own: Vec<Queues>,
    all: Queues,
    /// Costs of each set, without the sums of squares.
    costs: Vec<Cost>,
}

struct Search<'a> {
    m: &'a Machine<'a>,
    sets: &'a [StayCandidate<'a>],
    /// By zone: the core of each usable CPU.
    allowed: Vec<BTreeMap<usize, &'a CoreCandidate>>,
}

/// Places that have no reason to be on their CPU and may exchange it with another place.
#[derive(Default)]
struct Exchangeable {
    /// By CPU and zone, sets and places in their order.
    by: BTreeMap<(usize, usize), VecDeque<(usize, usize)>>,
    /// How many places were looked at.
    #[cfg(test)]
    looked_at: usize,
}

impl Exchangeable {
    fn new(x: &Search, at: &State, sets: &[usize]) -> Self {
        let mut out = Self::default();
        for &set in sets {
            for (place, cpu) in at.at[set].iter().enumerate() {
                if let Some(cpu) = cpu.filter(|c| x.stays(set, place) != Some(*c)) {
                    out.by.entry((cpu, x.sets[set].zone)).or_default().push_back((set, place));
                }
            }
        }
        out
    }

    /// The first place on this CPU that may move to `to`. A place that left its CPU does not return in the same round, so
    /// each place is checked once.
    fn first(&mut self, x: &Search, at: &State, cpu: usize, to: usize) -> Option<(usize, usize)> {
        let mut first: Option<(usize, usize)> = None;
        for ((_, zone), places) in self.by.range_mut((cpu, 0)..=(cpu, usize::MAX)) {
            if !x.allowed[*zone].contains_key(&to) {
                continue;
            }
            while let Some(&(set, place)) = places.front() {
                #[cfg(test)]
                {
                    self.looked_at += 1;
                }
                if at.at[set][place] == Some(cpu) {
                    first = Some(first.map_or((set, place), |f| f.min((set, place))));
                    break;
                }
                places.pop_front();
            }
        }
        first
    }
}

impl Search<'_> {
    fn begin(&self, at: &[Vec<Option<usize>>]) -> State {
        let mut s = State {
            at: at.iter().map(|set| vec![None; set.len()]).collect(),
            own: vec![Queues::default(); at.len()],
            all: Queues::default(),
            costs: vec![Cost::default(); at.len()],
        };
        for (i, set) in self.sets.iter().enumerate() {
            for cpu in set.fixed {
                s.own[i].add(self.m, *cpu);
                s.all.add(self.m, *cpu);
            }
            for (place, cpu) in at[i].iter().enumerate() {
                self.put(&mut s, i, place, *cpu);
            }
        }
        s
    }

    fn put(&self, s: &mut State, set: usize, place: usize, to: Option<usize>) {
        let from = std::mem::replace(&mut s.at[set][place], to);
        for (cpu, comes) in [(from, false), (to, true)] {
            let Some(cpu) = cpu else { continue };
            for queues in [&mut s.own[set], &mut s.all] {
                if comes { queues.add(self.m, cpu) } else { queues.remove(self.m, cpu) }
            }
            let Some(c) = self.allowed(set).get(&cpu) else { continue };
            let cost = &mut s.costs[set];
            for (sum, n) in [
                (&mut cost.far, u64::from(c.class == Class::Far)),
                (&mut cost.other_nodes, u64::from(c.class != Class::Near)),
                (&mut cost.partial, u64::from(c.partial)),
                (&mut cost.weakness, c.weakness.into()),
                (&mut cost.distance, c.distance.into()),
            ] {
                *sum = if comes { *sum + n } else { *sum - n };
            }
        }
    }

    fn cost(&self, s: &State, set: usize) -> Cost {
        let [cpus, cores, l3s] = s.own[set].squares;
        Cost { cpus, cores, l3s, ..s.costs[set] }
    }

    /// Whether this set, and all sets together, are as good as in `bound`.
    fn as_good(&self, s: &State, bound: &State, set: usize) -> bool {
        // Caches do not count over all devices: each device has its own near caches.
        let all = (0..2).all(|i| s.all.squares[i] <= bound.all.squares[i]);
        all && self.cost(s, set).within(&self.cost(bound, set))
    }

    /// Whether all sets are as good as in `bound`, and the busiest CPU and core have no more queues.
    fn all_as_good(&self, s: &State, bound: &State) -> bool {
        (0..self.sets.len()).all(|set| {
            let (a, b) = (s.own[set].most(), bound.own[set].most());
            self.as_good(s, bound, set) && a.0 <= b.0 && a.1 <= b.1
        })
    }

    /// The CPU on which a place could stay.
    fn stays(&self, set: usize, place: usize) -> Option<usize> {
        self.sets[set].now[place].filter(|cpu| self.allowed(set).contains_key(cpu))
    }

    fn allowed(&self, set: usize) -> &BTreeMap<usize, &CoreCandidate> {
        &self.allowed[self.sets[set].zone]
    }

    /// Restores the current layout of a set; false if a part of it cannot stay.
    fn put_back(&self, s: &mut State, set: usize) -> bool {
        (0..s.at[set].len()).all(|place| {
            let to = self.stays(set, place);
            if to.is_some() {
                self.put(s, set, place, to);
            }
            to.is_some()
        })
    }
}

fn by_cpu(cands: &[CoreCandidate]) -> BTreeMap<usize, &CoreCandidate> {
    cands.iter().flat_map(|c| c.threads.iter().map(move |t| (*t, c))).collect::<BTreeMap<_, _>>()
}

/// Number of passes over all places: a CPU may become free only after another place has moved back.
const ROUNDS: usize = 4;

/// The CPU of each place, by set. `zones`: the lists of cores that sets may use.
pub(crate) fn stay(m: &Machine, zones: &[&[CoreCandidate]], sets: &[StayCandidate]) -> Vec<Vec<Option<usize>>> {
    let x = Search { m, sets, allowed: zones.iter().map(|z| by_cpu(z)).collect() };
    let chosen: Vec<Vec<Option<usize>>> = sets.iter().map(|s| s.assigned.clone()).collect();
    let bound = x.begin(&chosen);
    let movable: Vec<usize> = (0..sets.len()).filter(|i| !sets[*i].ordered).collect();

    let mut whole = bound.clone();
    if movable.iter().all(|set| x.put_back(&mut whole, *set)) && x.all_as_good(&whole, &bound) {
        return whole.at;
    }
    let mut best = bound.clone();
    for &set in &movable {
        let before = best.at[set].clone();
        if !x.put_back(&mut best, set) || !x.as_good(&best, &bound, set) {
            before.into_iter().enumerate().for_each(|(place, cpu)| x.put(&mut best, set, place, cpu));
        }
    }
    for _ in 0..ROUNDS {
        let mut changed = false;
        let mut others = Exchangeable::new(&x, &best, &movable);
        for &set in &movable {
            for place in 0..best.at[set].len() {
                let (from, to) = (best.at[set][place], x.stays(set, place));
                let Some(there) = to.filter(|_| to != from) else { continue };
                x.put(&mut best, set, place, to);
                let good = x.as_good(&best, &bound, set);
                if good {
                    changed = true;
                    continue;
                }
                // A place that has no reason to be there may take the CPU that becomes free.
                let other = from.and_then(|f| others.first(&x, &best, there, f));
                let good = other.is_some_and(|(s, p)| {
                    x.put(&mut best, s, p, from);
                    let good = x.as_good(&best, &bound, set) && x.as_good(&best, &bound, s);
                    if !good {
                        x.put(&mut best, s, p, to);
                    }
                    good
                });
                if !good {
                    x.put(&mut best, set, place, from);
                }
                changed |= good;
            }
        }
        if !changed {
            break;
        }
    }
    if x.all_as_good(&best, &bound) { best.at } else { chosen }
}

#[cfg(test)]
mod tests {
    use ringwise_testkit::topo::CpuSpec;

    use super::*;

    fn core(core: usize) -> CoreCandidate {
        CoreCandidate {
            core,
            l3: 0,
            class: Class::Near,
            weakness: 0,
            distance: 10,
            home: true,
            partial: false,
            threads: vec![core],
        }
    }

    /// Sets of two places each on CPUs 0 and 1 that would like to stay on the other one, or on a third: every place looks
    /// for another one to exchange with.
    fn looked_at(sets: usize) -> usize {
        let topo = CpuSpec::flat(4, 1).topology();
        let m = Machine::new(&topo);
        let zones: Vec<Vec<CoreCandidate>> = vec![(0..4).map(core).collect(), (0..2).map(core).collect()];
        let zones: Vec<&[CoreCandidate]> = zones.iter().map(Vec::as_slice).collect();
        let stayer = |i: usize| StayCandidate {
            now: if i.is_multiple_of(2) { vec![Some(1), Some(1)] } else { vec![Some(0), None] },
            assigned: vec![Some(0), Some(1)],
            zone: usize::from(i.is_multiple_of(3)),
            fixed: &[],
            ordered: false,
        };
        let stayers: Vec<StayCandidate> = (0..sets).map(stayer).collect();
        let x = Search { m: &m, sets: &stayers, allowed: zones.iter().map(|z| by_cpu(z)).collect() };
        let chosen: Vec<Vec<Option<usize>>> = stayers.iter().map(|s| s.assigned.clone()).collect();
        let state = x.begin(&chosen);
        let movable: Vec<usize> = (0..sets).collect();
        let mut others = Exchangeable::new(&x, &state, &movable);
        let mut gone = state.clone();
        for set in 0..sets {
            let found = others.first(&x, &gone, 0, 1);
            // The result of searching all places: the first that has no reason to be there.
            let all = (0..sets).flat_map(|s| (0..2).map(move |p| (s, p)));
            let mut expected = all.filter(|(s, p)| gone.at[*s][*p] == Some(0) && x.stays(*s, *p) != Some(0));
            assert_eq!(found, expected.next(), "after {set}");
            let Some((s, p)) = found else { break };
            x.put(&mut gone, s, p, Some(1));
        }
        let at = stay(&m, &zones, &stayers);
        assert_eq!(at.iter().flatten().flatten().count(), 2 * sets);
        others.looked_at
    }

    /// Queues of one device whose order does not matter.
    fn stayer(now: &[Option<usize>], assigned: &[usize]) -> StayCandidate<'static> {
        let assigned = assigned.iter().map(|c| Some(*c)).collect();
        StayCandidate { now: now.to_vec(), assigned, zone: 0, fixed: &[], ordered: false }
    }

    /// The layout of these devices on a machine of eight CPUs.
    fn kept(cores: &[CoreCandidate], sets: &[StayCandidate]) -> Vec<Vec<usize>> {
        let topo = CpuSpec::flat(8, 1).topology();
        let at = stay(&Machine::new(&topo), &[cores], sets);
        at.into_iter().map(|set| set.into_iter().flatten().collect()).collect()
    }

    /// Two queues on each of three CPUs have the same sum of squares as three queues on one CPU and one on each of three.
    #[test]
    fn a_layout_with_a_busier_cpu_is_not_kept() {
        let cores: Vec<CoreCandidate> = (0..8).map(core).collect();
        let (now, chosen) = ([0, 0, 0, 1, 2, 3].map(Some), [0, 0, 1, 1, 2, 2]);
        assert_eq!(kept(&cores, &[stayer(&now, &chosen)]), [chosen]);
        // The other way round, it is.
        let (now, chosen) = ([0, 0, 1, 1, 2, 2].map(Some), [0, 0, 0, 1, 2, 3]);
        assert_eq!(kept(&cores, &[stayer(&now, &chosen)]), [[0, 0, 1, 1, 2, 2]]);
    }

    /// CPUs 0 and 3 share their core with programs and are nearer than 1 and 2: moving one queue alone makes one sum worse,
    /// moving both makes none worse.
    #[test]
    fn a_device_stays_whole_beside_one_that_cannot() {
        let mut cores: Vec<CoreCandidate> = (0..8).map(core).collect();
        for near in [0, 3] {
            (cores[near].distance, cores[near].partial) = (9, true);
        }
        let stays = stayer(&[Some(2), Some(3)], &[0, 1]);
        let moves = stayer(&[None], &[4]);
        assert_eq!(kept(&cores, &[stays, moves]), [vec![2, 3], vec![4]]);
        // The farther CPU 5 makes the whole worse: the device keeps the chosen layout.
        cores[5].distance = 11;
        let stays = stayer(&[Some(2), Some(5)], &[0, 1]);
        let moves = stayer(&[None], &[4]);
        assert_eq!(kept(&cores, &[stays, moves]), [vec![0, 1], vec![4]]);
    }

    #[test]
    fn the_search_for_an_exchange_looks_at_each_place_once() {
        let (few, many) = (looked_at(50), looked_at(400));
        assert!(few > 25, "{few}");
        assert!(many <= few * 10, "{few} for 50 devices, {many} for 400");
    }
}

//! Queues of the same number on different cores.
//!
//! Packets without a hash (PPPoE, MPLS, ARP) arrive on queue 0 of every interface. Many drivers take the kernel's key for their hash
//! (`netdev_rss_key_fill`), which is the same for all interfaces, so flows between the same addresses arrive on queues of the
//! same number. If these queues share a CPU, it handles the load of several interfaces while others are idle.
//!
//! Threads of one core count, too, as long as there are at least twice as many cores as interfaces; otherwise they cannot be avoided, and
//! queues would move for little.
//!
//! Queues of one interface exchange their CPUs, so the number of queues on each CPU stays the same. A queue that is pinned to its
//! planned CPU already does not move for this.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::{Machine, Zone};

/// What the plan does with the queue of a place without this exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// Its interrupt moves to another CPU.
    Moves,
    /// Its interrupt is on the planned CPU, but may run on others.
    Pinned,
    /// Nothing.
    Stays,
}

/// A place in the layout of a device, or of several with one layout.
pub(crate) struct NumberedPlace {
    /// Queues with one interrupt.
    pub queues: Vec<usize>,
    pub change: Change,
    /// How many devices have this place, and how many of them a receive queue there. Only equal places are exchanged, because the
    /// order of the places spreads the receive queues of each device over the cores.
    pub kind: (usize, usize),
}

/// A device, or devices with the same layout.
pub(crate) struct Numbered<'a> {
    pub zone: &'a Zone,
    pub places: Vec<NumberedPlace>,
    /// Queues that cannot be moved, and their CPU.
    pub fixed: Vec<(Vec<usize>, usize)>,
    /// Whether the order of the CPUs matters.
    pub ordered: bool,
}

impl Numbered<'_> {
    fn stays(&self, place: &NumberedPlace) -> bool {
        self.ordered || place.change == Change::Stays
    }
}

/// How many queues of a number a CPU and a core have.
#[derive(Default)]
struct Taken {
    cpu: BTreeMap<(usize, usize), usize>,
    core: BTreeMap<(usize, usize), usize>,
}

impl Taken {
    fn add(&mut self, m: &Machine, queues: &[usize], cpu: usize) {
        for queue in queues {
            *self.cpu.entry((*queue, cpu)).or_default() += 1;
            *self.core.entry((*queue, m.core[cpu])).or_default() += 1;
        }
    }

    /// How many queues of these numbers the CPU has; with `cores` those of the core count half of that.
    fn at(&self, m: &Machine, queues: &[usize], cpu: usize, cores: bool) -> usize {
        let of = |by: &BTreeMap<(usize, usize), usize>, at: usize| -> usize {
            queues.iter().filter_map(|queue| by.get(&(*queue, at))).sum()
        };
        of(&self.cpu, cpu) + if cores { of(&self.core, m.core[cpu]) } else { of(&self.cpu, cpu) }
    }
}

/// Exchanges CPUs in `layouts`, which has the CPUs by device and place.
pub(crate) fn spread(m: &Machine, devs: &[Numbered], layouts: &mut [Vec<Option<usize>>]) {
    let mut taken = Taken::default();
    // What stays comes first: the others go around it.
    for (d, cpus) in devs.iter().zip(layouts.iter()) {
        let stay = d.places.iter().zip(cpus).filter(|(p, _)| d.stays(p));
        stay.filter_map(|(p, cpu)| Some((&p.queues, (*cpu)?))).for_each(|(queues, cpu)| taken.add(m, queues, cpu));
        d.fixed.iter().for_each(|(queues, cpu)| taken.add(m, queues, *cpu));
    }
    for (d, cpus) in devs.iter().zip(layouts) {
        if d.places.len() > 1 && !d.ordered {
            let used: BTreeSet<usize> = cpus.iter().flatten().map(|cpu| m.core[*cpu]).collect();
            let cores = used.len() >= 2 * devs.len();
            shift(m, &taken, d, cpus, cores);
            for least in [Change::Moves, Change::Pinned] {
                exchange(m, &taken, d, cpus, cores, least);
            }
        }
        let moved = d.places.iter().zip(cpus.iter()).filter(|(p, _)| !d.stays(p));
        moved.filter_map(|(p, cpu)| Some((&p.queues, (*cpu)?))).for_each(|(queues, cpu)| taken.add(m, queues, cpu));
    }
}

/// Whether CPUs differ in nothing that the order of the CPUs expresses.
fn equal(m: &Machine, d: &Numbered, a: usize, b: usize) -> bool {
    let rank = |cpu: usize| (d.zone.class[cpu], d.zone.distance[cpu], m.weakness[cpu]);
    rank(a) == rank(b)
}

/// If all queues move anyway: shifts the whole layout, which reads better than single exchanges.
fn shift(m: &Machine, taken: &Taken, d: &Numbered, cpus: &mut [Option<usize>], cores: bool) {
    let Some(known) = cpus.iter().copied().collect::<Option<Vec<usize>>>() else { return };
    let alike = |p: &NumberedPlace| p.change == Change::Moves && p.kind == d.places[0].kind;
    if known.len() != d.places.len() || !d.places.iter().all(alike) {
        return;
    }
    if known.iter().any(|cpu| !equal(m, d, *cpu, known[0])) {
        return;
    }
    let shared = |by: &usize| -> usize {
        let at = known.iter().cycle().skip(*by);
        d.places.iter().zip(at).map(|(p, cpu)| taken.at(m, &p.queues, *cpu, cores)).sum()
    };
    if let Some(by) = (0..known.len()).min_by_key(shared) {
        cpus.rotate_left(by);
    }
}

/// Exchanges among the places of one device that change at least as much as `least`.
fn exchange(m: &Machine, taken: &Taken, d: &Numbered, cpus: &mut [Option<usize>], cores: bool, least: Change) {
    let places: Vec<usize> = (0..cpus.len()).filter(|p| d.places.get(*p).is_some_and(|p| p.change <= least)).collect();
    let shared = |place: usize, cpu: usize| taken.at(m, &d.places[place].queues, cpu, cores);
    for &place in &places {
        let Some(cpu) = cpus[place] else { continue };
        let mine = shared(place, cpu);
        if mine == 0 {
            continue;
        }
        let better = |&other: &usize| {
            let alike = |there: &usize| {
                *there != cpu && equal(m, d, *there, cpu) && d.places[other].kind == d.places[place].kind
            };
            let there = cpus[other].filter(alike)?;
            let now = mine + shared(other, there);
            let then = shared(place, there) + shared(other, cpu);
            (then < now).then_some((then, other))
        };
        if let Some((_, other)) = places.iter().filter_map(better).min() {
            cpus.swap(place, other);
        }
    }
}

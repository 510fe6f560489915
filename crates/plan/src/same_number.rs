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

/// A device, or devices with the same layout.
pub(crate) struct Numbered<'a> {
    pub zone: &'a Zone,
    /// By place: the number of its queue and what happens to it.
    pub places: Vec<(usize, Change)>,
    /// Queues that cannot be moved.
    pub fixed: Vec<(usize, usize)>,
    /// Whether the order of the CPUs matters.
    pub ordered: bool,
}

/// CPUs of the queues of other devices, by the number of the queue.
#[derive(Default)]
struct Taken(BTreeMap<usize, Vec<usize>>);

impl Taken {
    fn add(&mut self, queue: usize, cpu: usize) {
        self.0.entry(queue).or_default().push(cpu);
    }

    /// How many queues of this number the CPU has; with `cores` those of the core count half of that.
    fn at(&self, m: &Machine, queue: usize, cpu: usize, cores: bool) -> usize {
        let there = self.0.get(&queue).into_iter().flatten();
        there
            .map(|c| usize::from(*c == cpu) + usize::from(if cores { m.core[*c] == m.core[cpu] } else { *c == cpu }))
            .sum()
    }
}

/// Exchanges CPUs in `layouts`, which has the CPUs by device and place.
pub(crate) fn spread(m: &Machine, devs: &[Numbered], layouts: &mut [Vec<Option<usize>>]) {
    let mut taken = Taken::default();
    // Those that stay as they are come first: the others go around them.
    let (rigid, free): (Vec<_>, Vec<_>) =
        devs.iter().zip(layouts).partition(|(d, _)| d.ordered || d.places.iter().all(|(_, c)| *c == Change::Stays));
    for (rigid, (d, cpus)) in rigid.into_iter().map(|d| (true, d)).chain(free.into_iter().map(|d| (false, d))) {
        if !rigid {
            let used: BTreeSet<usize> = cpus.iter().flatten().map(|cpu| m.core[*cpu]).collect();
            let cores = used.len() >= 2 * devs.len();
            shift(m, &taken, d, cpus, cores);
            for least in [Change::Moves, Change::Pinned] {
                exchange(m, &taken, d, cpus, cores, least);
            }
        }
        let own = d.places.iter().zip(cpus.iter()).filter_map(|((queue, _), cpu)| Some((*queue, (*cpu)?)));
        own.chain(d.fixed.iter().copied()).for_each(|(queue, cpu)| taken.add(queue, cpu));
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
    let moves = known.len() == d.places.len() && d.places.iter().all(|(_, c)| *c == Change::Moves);
    if !moves || known.iter().any(|cpu| !equal(m, d, *cpu, known[0])) {
        return;
    }
    let shared = |by: &usize| -> usize {
        let at = known.iter().cycle().skip(*by);
        d.places.iter().zip(at).map(|((queue, _), cpu)| taken.at(m, *queue, *cpu, cores)).sum()
    };
    if let Some(by) = (0..known.len()).min_by_key(shared) {
        cpus.rotate_left(by);
    }
}

/// Exchanges among the places of one device that change at least as much as `least`.
fn exchange(m: &Machine, taken: &Taken, d: &Numbered, cpus: &mut [Option<usize>], cores: bool, least: Change) {
    let places: Vec<usize> = (0..cpus.len()).filter(|p| d.places.get(*p).is_some_and(|(_, c)| *c <= least)).collect();
    let shared = |place: usize, cpu: usize| taken.at(m, d.places[place].0, cpu, cores);
    for &place in &places {
        let Some(cpu) = cpus[place] else { continue };
        let mine = shared(place, cpu);
        if mine == 0 {
            continue;
        }
        let better = |&other: &usize| {
            let there = cpus[other].filter(|there| *there != cpu && equal(m, d, *there, cpu))?;
            let now = mine + shared(other, there);
            let then = shared(place, there) + shared(other, cpu);
            (then < now).then_some((then, other))
        };
        if let Some((_, other)) = places.iter().filter_map(better).min() {
            cpus.swap(place, other);
        }
    }
}

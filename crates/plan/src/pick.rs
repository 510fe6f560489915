//! Chooses the CPUs that handle queues: the least loaded physical core first, spread over the L3 domains of the near
//! nodes, second hardware threads last.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_model::Smt;
use ringwise_model::order::Order;

use crate::machine::{Class, Machine, Zone};

/// Queues on each CPU, core and L3 domain, over all devices planned so far.
pub(crate) struct Loads {
    pub cpu: Vec<u32>,
    pub core: Vec<u32>,
    pub l3: Vec<u32>,
}

impl Loads {
    pub(crate) fn new(m: &Machine) -> Self {
        Self { cpu: vec![0; m.cpus.len()], core: vec![0; m.cores.len()], l3: vec![0; m.l3s.len()] }
    }

    pub(crate) fn add(&mut self, m: &Machine, cpu: usize) {
        self.cpu[cpu] += 1;
        self.core[m.core[cpu]] += 1;
        self.l3[m.l3[cpu]] += 1;
    }
}

/// A core with threads that may handle queues.
#[derive(Clone)]
pub(crate) struct CoreCandidate {
    pub core: usize,
    pub l3: usize,
    pub class: Class,
    pub weakness: u32,
    pub distance: u32,
    pub home: bool,
    /// Whether another thread of the core is kept free for other work, which a queue here would slow down.
    pub partial: bool,
    /// Usable threads, ascending; only the first if each core gets one queue.
    pub threads: Vec<usize>,
}

/// The cores that devices of this zone may use, nearest first.
///
/// `far_as_near`: cores of other sockets count as near ones (the distance still breaks ties).
pub(crate) fn candidates(m: &Machine, z: &Zone, usable: &[bool], smt: Smt, far_as_near: bool) -> Vec<CoreCandidate> {
    let mut out = Vec::new();
    for (core, threads) in m.cores.iter().enumerate() {
        let all = threads.len();
        let mut threads: Vec<usize> = threads.iter().copied().filter(|t| usable[*t]).collect();
        let partial = threads.len() < all;
        let Some(&lead) = threads.first() else { continue };
        if smt == Smt::OnePerCore {
            threads.truncate(1);
        }
        out.push(CoreCandidate {
            core,
            l3: m.l3[lead],
            class: if far_as_near { Class::Near } else { z.class[lead] },
            weakness: m.weakness[lead],
            distance: z.distance[lead],
            home: z.home[lead],
            partial,
            threads,
        });
    }
    out
}

/// Rank of the next free thread of a core; lower is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CoreRank {
    /// How many queues every thread of the core has already.
    round: u32,
    class: Class,
    /// 0: the core is idle; 1: its second thread; …
    tier: u32,
    /// Queues of this device on the core.
    own: u32,
    partial: bool,
    weakness: u32,
    distance: u32,
}

/// A CPU chosen for a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuChoice {
    pub cpu: usize,
    class: Class,
    partial: bool,
    weakness: u32,
    distance: u32,
}

/// Chooses CPUs for the queues of one device (or of ports that share one layout).
pub(crate) struct CpuPicker<'a> {
    m: &'a Machine<'a>,
    cands: &'a [CoreCandidate],
    own_cpu: BTreeMap<usize, u32>,
    own_core: BTreeMap<usize, u32>,
    own_l3: BTreeMap<usize, u32>,
    pub picks: Vec<CpuChoice>,
}

impl<'a> CpuPicker<'a> {
    /// `fixed`: CPUs of the device's own queues that cannot be moved (they are counted in the loads already).
    pub(crate) fn new(m: &'a Machine<'a>, cands: &'a [CoreCandidate], fixed: &[usize]) -> Self {
        let mut p = Self {
            m,
            cands,
            own_cpu: BTreeMap::new(),
            own_core: BTreeMap::new(),
            own_l3: BTreeMap::new(),
            picks: Vec::new(),
        };
        for cpu in fixed {
            *p.own_cpu.entry(*cpu).or_default() += 1;
            *p.own_core.entry(m.core[*cpu]).or_default() += 1;
            *p.own_l3.entry(m.l3[*cpu]).or_default() += 1;
        }
        p
    }

    fn worth(&self, c: &CoreCandidate, loads: &Loads) -> CoreRank {
        let threads = c.threads.len() as u32;
        CoreRank {
            round: loads.core[c.core] / threads,
            class: c.class,
            tier: loads.core[c.core] % threads,
            own: self.own_core.get(&c.core).copied().unwrap_or(0),
            partial: c.partial,
            weakness: c.weakness,
            distance: c.distance,
        }
    }

    /// Chooses `n` more CPUs. `home_idle`: only idle cores of the device's own node, fewer than `n` if there are not
    /// enough.
    pub(crate) fn take(&mut self, loads: &mut Loads, n: usize, home_idle: bool) {
        // Keeps the cores of each L3 sorted by worth, and the L3s sorted by their best core, then by their load.
        let mut units: BTreeMap<usize, BTreeSet<(CoreRank, usize)>> = BTreeMap::new();
        for (i, c) in self.cands.iter().enumerate() {
            if !home_idle || (c.home && loads.core[c.core] == 0) {
                units.entry(c.l3).or_default().insert((self.worth(c, loads), i));
            }
        }
        let own = |p: &Self, l3: usize| p.own_l3.get(&l3).copied().unwrap_or(0);
        let mut order: BTreeSet<(CoreRank, u32, u32, usize)> = units
            .iter()
            .filter_map(|(l3, u)| u.first().map(|(w, _)| (*w, own(self, *l3), loads.l3[*l3], *l3)))
            .collect();
        for _ in 0..n {
            let Some((worth, _, _, l3)) = order.pop_first() else { return };
            let Some(unit) = units.get_mut(&l3) else { return };
            let Some((_, i)) = unit.pop_first() else { return };
            let c = &self.cands[i];
            let Some(&cpu) =
                c.threads.iter().min_by_key(|t| (loads.cpu[**t], self.own_cpu.get(t).copied().unwrap_or(0), **t))
            else {
                return;
            };
            loads.add(self.m, cpu);
            *self.own_cpu.entry(cpu).or_default() += 1;
            *self.own_core.entry(c.core).or_default() += 1;
            *self.own_l3.entry(l3).or_default() += 1;
            self.picks.push(CpuChoice {
                cpu,
                class: worth.class,
                partial: worth.partial,
                weakness: worth.weakness,
                distance: worth.distance,
            });
            if !home_idle {
                unit.insert((self.worth(c, loads), i));
            }
            if let Some((w, _)) = unit.first() {
                order.insert((*w, own(self, l3), loads.l3[l3], l3));
            }
        }
    }

    /// The chosen CPUs in the order in which queues get them: one thread of each core by number, then second threads, and
    /// so on. The order depends only on the CPUs chosen for the device, not on the load by others. So ports get equal
    /// layouts, and planning again after other devices moved keeps the order.
    pub(crate) fn in_order(self) -> Vec<usize> {
        let mut times: BTreeMap<usize, u32> = BTreeMap::new();
        let mut picks: Vec<(u32, CpuChoice)> = Vec::with_capacity(self.picks.len());
        for p in &self.picks {
            let n = times.entry(p.cpu).or_default();
            picks.push((*n, *p));
            *n += 1;
        }
        picks.order_by_key(|(n, p)| (*n, p.cpu));
        let mut on_core: BTreeMap<usize, u32> = BTreeMap::new();
        let mut ranked: Vec<_> = picks
            .into_iter()
            .map(|(_, p)| {
                let tier = on_core.entry(self.m.core[p.cpu]).or_default();
                *tier += 1;
                ((p.class, *tier, p.partial, p.weakness, p.distance, p.cpu), p.cpu)
            })
            .collect();
        ranked.sort();
        ranked.into_iter().map(|(_, cpu)| cpu).collect()
    }
}

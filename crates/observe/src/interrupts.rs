//! Interrupts between two samples, by vector and CPU. Pure.

use std::collections::BTreeMap;

use ringwise_model::{CpuId, CpuSet, IrqId};

use crate::counters::{Counters, INTERRUPTS, increase};

/// The interrupts of one vector. A CPU that is not listed handled none, or was not online at both moments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interrupts(pub BTreeMap<CpuId, u64>);

impl Interrupts {
    /// The sum of all CPUs.
    pub fn total(&self) -> u64 {
        self.0.values().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// The CPUs that handled at least one.
    pub fn cpus(&self) -> CpuSet {
        self.0.iter().filter(|(_, n)| **n > 0).map(|(c, _)| *c).collect()
    }

    /// The CPU that handled most of them; among equals the first.
    pub fn most(&self) -> Option<CpuId> {
        let took = self.0.iter().filter(|(_, n)| **n > 0);
        took.max_by_key(|(c, n)| (**n, std::cmp::Reverse(**c))).map(|(c, _)| *c)
    }
}

/// By vector. `None`: the increase is not known, because the vector is new or its number was freed and reused. A vector
/// that is gone is left out.
pub(crate) fn between(first: &Counters, second: &Counters) -> BTreeMap<IrqId, Option<Interrupts>> {
    let mut out = BTreeMap::new();
    for (irq, after) in &second.irqs {
        let of = first.irqs.get(irq).and_then(|before| vector(first, second, before, after));
        out.insert(*irq, of);
    }
    out
}

/// If the counter of one CPU went backwards, the whole vector is unknown.
fn vector(
    first: &Counters,
    second: &Counters,
    before: &BTreeMap<CpuId, u64>,
    after: &BTreeMap<CpuId, u64>,
) -> Option<Interrupts> {
    let mut out = BTreeMap::new();
    // A CPU without interrupts is not listed. Neither is an offline CPU, whose earlier count is back when it comes
    // online.
    let was_there = |c: &CpuId| first.cpus.is_empty() || first.cpus.contains_key(c);
    for (cpu, n) in after {
        match before.get(cpu) {
            Some(b) => drop(out.insert(*cpu, increase(INTERRUPTS, *b, *n)?)),
            None if was_there(cpu) => drop(out.insert(*cpu, *n)),
            None => {}
        }
    }
    for (cpu, b) in before {
        if !after.contains_key(cpu) && second.cpus.contains_key(cpu) {
            out.insert(*cpu, increase(INTERRUPTS, *b, 0)?);
        }
    }
    Some(Interrupts(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::CpuSample;

    /// Counters with these CPUs online.
    fn at(cpus: &[u32], irqs: &[(u32, &[(u32, u64)])]) -> Counters {
        let row = |list: &[(u32, u64)]| list.iter().map(|(c, n)| (CpuId(*c), *n)).collect();
        Counters {
            irqs: irqs.iter().map(|(i, list)| (IrqId(*i), row(list))).collect(),
            cpus: cpus.iter().map(|c| (CpuId(*c), CpuSample::default())).collect(),
            ..Counters::default()
        }
    }

    fn of(first: &Counters, second: &Counters) -> Option<Interrupts> {
        between(first, second).remove(&IrqId(36)).flatten()
    }

    #[test]
    fn by_cpu_also_when_cpus_leave() {
        let a = at(&[0, 1, 3], &[(36, &[(0, 5), (1, 9), (3, 1)])]);
        let b = at(&[0, 3], &[(36, &[(0, 5), (3, 213)])]);
        let took = of(&a, &b).unwrap();
        assert_eq!(took.0, BTreeMap::from([(CpuId(0), 0), (CpuId(3), 212)]));
        assert_eq!((took.total(), took.cpus(), took.most()), (212, "3".parse().unwrap(), Some(CpuId(3))));
    }

    #[test]
    fn a_cpu_that_comes_online_brings_no_spike() {
        let a = at(&[0], &[(36, &[(0, 5)])]);
        let b = at(&[0, 1], &[(36, &[(0, 6), (1, 9_000_000)])]);
        assert_eq!(of(&a, &b).unwrap().0, BTreeMap::from([(CpuId(0), 1)]));
        // The CPU is listed while it is offline, so the increase is known.
        let a = at(&[0], &[(36, &[(0, 5), (1, 8_999_990)])]);
        assert_eq!(of(&a, &b).unwrap().total(), 11);
    }

    #[test]
    fn backwards_is_a_reset_and_never_a_spike() {
        let a = at(&[0, 1], &[(36, &[(0, 1_000_000)])]);
        let b = at(&[0, 1], &[(36, &[(0, 3), (1, 50)])]);
        assert_eq!(of(&a, &b), None);
        let b = at(&[0, 1], &[(36, &[(1, 50)])]);
        assert_eq!(of(&a, &b), None, "the CPU is online and has counted none");
    }

    #[test]
    fn coming_and_going() {
        let (a, b) = (at(&[0], &[(30, &[(0, 1)])]), at(&[0], &[(31, &[(0, 7)])]));
        assert_eq!(between(&a, &b), BTreeMap::from([(IrqId(31), None)]));
    }
}

//! What happened between two samples. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use ringwise_model::{CpuId, CpuSet, IrqId};
use serde::{Deserialize, Serialize};

use crate::{Sample, Softnet};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// From the first to the second sample.
    pub elapsed: Duration,
    pub irqs: BTreeMap<IrqId, IrqDelta>,
    /// CPUs that are in both samples. Empty where either sample knows none.
    pub softnet: BTreeMap<CpuId, SoftnetDelta>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IrqDelta {
    /// In both samples.
    Counted(BTreeMap<CpuId, Counted>),
    /// Only in the second: the counts since it appeared are all its own, but nobody knows when that was.
    Appeared(BTreeMap<CpuId, u64>),
    /// Only in the first: freed in between (channels changed, device gone).
    Vanished,
}

/// One counter of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Interrupts in between.
    More(u64),
    /// Went backwards: the number was freed and given out again. What was counted is not known.
    Reset,
    /// The CPU has a column in one of the samples only (it came or went in between).
    CpuChanged,
}

/// Increase of each counter in between, over the 32-bit wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftnetDelta {
    pub processed: u32,
    pub dropped: u32,
    pub time_squeeze: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_rps: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_limit: Option<u32>,
}

impl Delta {
    pub fn between(first: &Sample, second: &Sample) -> Self {
        let mut irqs = BTreeMap::new();
        for (irq, before) in &first.irq_counts {
            let delta = match second.irq_counts.get(irq) {
                Some(after) => IrqDelta::Counted(counted(before, after)),
                None => IrqDelta::Vanished,
            };
            irqs.insert(*irq, delta);
        }
        for (irq, after) in &second.irq_counts {
            irqs.entry(*irq).or_insert_with(|| IrqDelta::Appeared(after.clone()));
        }
        let mut softnet = BTreeMap::new();
        if let (Some(before), Some(after)) = (first.softnet.known(), second.softnet.known()) {
            for (cpu, b) in before {
                if let Some(a) = after.get(cpu) {
                    softnet.insert(*cpu, since(b, a));
                }
            }
        }
        Self { elapsed: second.at.saturating_sub(first.at), irqs, softnet }
    }
}

impl IrqDelta {
    /// Interrupts in between over all CPUs; `None` where that cannot be told (appeared, vanished, reset).
    pub fn total(&self) -> Option<u64> {
        let Self::Counted(map) = self else { return None };
        let mut sum = 0u64;
        for c in map.values() {
            match c {
                Counted::More(n) => sum = sum.checked_add(*n)?,
                Counted::Reset => return None,
                Counted::CpuChanged => {}
            }
        }
        Some(sum)
    }

    /// CPUs that took interrupts in between; `None` where that cannot be told.
    pub fn cpus(&self) -> Option<CpuSet> {
        self.total()?;
        let Self::Counted(map) = self else { return None };
        Some(map.iter().filter(|(_, c)| matches!(c, Counted::More(1..))).map(|(cpu, _)| *cpu).collect())
    }
}

/// A reset of one CPU's column is one of the whole row: the number belongs to another interrupt now.
fn counted(before: &BTreeMap<CpuId, u64>, after: &BTreeMap<CpuId, u64>) -> BTreeMap<CpuId, Counted> {
    let reset = before.iter().any(|(cpu, b)| after.get(cpu).is_some_and(|a| a < b));
    let cpus: std::collections::BTreeSet<CpuId> = before.keys().chain(after.keys()).copied().collect::<BTreeSet<_>>();
    cpus.into_iter()
        .map(|cpu| {
            let c = match (before.get(&cpu), after.get(&cpu)) {
                (Some(_), Some(_)) if reset => Counted::Reset,
                (Some(b), Some(a)) => Counted::More(a - b),
                _ => Counted::CpuChanged,
            };
            (cpu, c)
        })
        .collect::<BTreeMap<_, _>>()
}

fn since(b: &Softnet, a: &Softnet) -> SoftnetDelta {
    let both = |b: Option<u32>, a: Option<u32>| Some(a?.wrapping_sub(b?));
    SoftnetDelta {
        processed: a.processed.wrapping_sub(b.processed),
        dropped: a.dropped.wrapping_sub(b.dropped),
        time_squeeze: a.time_squeeze.wrapping_sub(b.time_squeeze),
        received_rps: both(b.received_rps, a.received_rps),
        flow_limit: both(b.flow_limit, a.flow_limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringwise_model::Fact;

    fn sample(at: u64, irqs: &[(u32, &[(u32, u64)])]) -> Sample {
        Sample {
            at: Duration::from_secs(at),
            irq_counts: irqs
                .iter()
                .map(|(i, c)| (IrqId(*i), c.iter().map(|(cpu, n)| (CpuId(*cpu), *n)).collect()))
                .collect(),
            softnet: Fact::Absent,
        }
    }

    #[test]
    fn counts_by_cpu_also_when_columns_shift() {
        let a = sample(10, &[(36, &[(0, 5), (1, 9), (3, 1)])]);
        let b = sample(15, &[(36, &[(0, 5), (3, 213)])]);
        let d = Delta::between(&a, &b);
        assert_eq!(d.elapsed, Duration::from_secs(5));
        let irq = &d.irqs[&IrqId(36)];
        let IrqDelta::Counted(map) = irq else { panic!("{irq:?}") };
        assert_eq!(map[&CpuId(0)], Counted::More(0));
        assert_eq!(map[&CpuId(1)], Counted::CpuChanged);
        assert_eq!(map[&CpuId(3)], Counted::More(212));
        assert_eq!(irq.total(), Some(212));
        assert_eq!(irq.cpus(), Some("3".parse().unwrap()));
    }

    #[test]
    fn backwards_is_a_reset_and_never_a_spike() {
        let a = sample(0, &[(36, &[(0, 1_000_000), (1, 0)])]);
        let b = sample(1, &[(36, &[(0, 3), (1, 50)])]);
        let d = Delta::between(&a, &b);
        let IrqDelta::Counted(map) = &d.irqs[&IrqId(36)] else { panic!() };
        assert!(map.values().all(|c| *c == Counted::Reset), "{map:?}");
        assert_eq!((d.irqs[&IrqId(36)].total(), d.irqs[&IrqId(36)].cpus()), (None, None));
    }

    #[test]
    fn coming_and_going() {
        let a = sample(0, &[(30, &[(0, 1)])]);
        let b = sample(1, &[(31, &[(0, 7)])]);
        let d = Delta::between(&a, &b);
        assert_eq!(d.irqs[&IrqId(30)], IrqDelta::Vanished);
        assert_eq!(d.irqs[&IrqId(31)], IrqDelta::Appeared(BTreeMap::from([(CpuId(0), 7)])));
        assert_eq!(d.irqs[&IrqId(31)].total(), None);
    }

    #[test]
    fn softnet_wraps_at_32_bits() {
        let row =
            |n: u32| Softnet { processed: n, dropped: 0, time_squeeze: 1, received_rps: None, flow_limit: Some(2) };
        let with = |n| Sample { softnet: Fact::Known(BTreeMap::from([(CpuId(4), row(n))])), ..sample(0, &[]) };
        let d = Delta::between(&with(u32::MAX - 1), &with(3));
        assert_eq!(d.softnet[&CpuId(4)].processed, 5);
        assert_eq!((d.softnet[&CpuId(4)].received_rps, d.softnet[&CpuId(4)].flow_limit), (None, Some(0)));
        assert!(Delta::between(&with(1), &sample(1, &[])).softnet.is_empty());
    }
}

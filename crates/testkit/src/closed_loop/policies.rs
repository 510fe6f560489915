//! Rules of other programs, simplified to the decision. They move interrupts only.

use super::{BalancePolicy, Interface, PolicyChange, PolicyInput};

/// Moves nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct StandStill;

impl BalancePolicy for StandStill {
    fn second(&mut self, _: &PolicyInput, _: &Interface) -> PolicyChange {
        PolicyChange::default()
    }
}

/// Sums over some seconds.
#[derive(Debug, Clone, Default)]
struct Sums {
    seconds: u64,
    busy_percent: Vec<f64>,
    packets: Vec<f64>,
}

impl Sums {
    fn add(&mut self, seen: &PolicyInput) {
        self.seconds += 1;
        self.busy_percent.resize(seen.busy_percent.len(), 0.0);
        self.packets.resize(seen.packets.len(), 0.0);
        self.busy_percent.iter_mut().zip(&seen.busy_percent).for_each(|(sum, b)| *sum += b);
        self.packets.iter_mut().zip(&seen.packets).for_each(|(sum, n)| *sum += *n as f64);
    }

    /// Mean loads of the CPUs, in percent.
    fn loads(&self) -> Vec<f64> {
        self.busy_percent.iter().map(|b| b / self.seconds as f64).collect()
    }
}

fn queues_of(interface: &Interface, cpu: usize) -> Vec<usize> {
    (0..interface.cpus.len()).filter(|q| interface.cpus[*q] as usize == cpu).collect()
}

fn emptiest(loads: &[f64]) -> usize {
    (0..loads.len()).min_by(|a, b| loads[*a].total_cmp(&loads[*b])).unwrap_or(0)
}

/// irqbalance: every 10 s, softirq time of each CPU shared out to its interrupts by their counts. From each CPU above the
/// mean the smallest interrupts move to the emptiest CPU, as long as this does not reverse the imbalance. The only interrupt
/// of a CPU never moves.
#[derive(Debug, Clone, Default)]
pub struct IrqbalancePolicy {
    sums: Sums,
}

/// Interrupts per second of a queue whose interrupts are moderated.
const MODERATED: f64 = 8000.0;

impl BalancePolicy for IrqbalancePolicy {
    fn second(&mut self, seen: &PolicyInput, interface: &Interface) -> PolicyChange {
        self.sums.add(seen);
        let mut change = PolicyChange::default();
        if self.sums.seconds < 10 {
            return change;
        }
        let sums = std::mem::take(&mut self.sums);
        let mut loads = sums.loads();
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        let count = |q: usize| (sums.packets[q] / sums.seconds as f64).min(MODERATED);
        for cpu in 0..loads.len() {
            let queues = queues_of(interface, cpu);
            if loads[cpu] <= mean || queues.len() < 2 {
                continue;
            }
            let counts: f64 = queues.iter().map(|q| count(*q)).sum();
            let mut shares: Vec<(f64, usize)> =
                queues.iter().map(|q| (loads[cpu] * count(*q) / counts.max(1.0), *q)).collect();
            shares.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (share, queue) in shares.iter().take(queues.len() - 1) {
                let to = emptiest(&loads);
                if loads[cpu] - share > loads[to] + share {
                    (loads[cpu], loads[to]) = (loads[cpu] - share, loads[to] + share);
                    change.interrupts.push((*queue as u32, to as u32));
                }
            }
        }
        change
    }
}

/// Katalyst's irqtuner: every 5 s, if the busiest CPU has at least 65 % and is at least 20 points above the emptiest, up to
/// two of its interrupts move there, at least 10 s apart. An interrupt that would return within 180 s stays. The only interrupt of a CPU
/// stays, because the next round would move it on.
#[derive(Debug, Clone, Default)]
pub struct Katalyst {
    sums: Sums,
    moved: Option<u64>,
    left: Vec<(u64, usize, usize)>,
}

impl BalancePolicy for Katalyst {
    fn second(&mut self, seen: &PolicyInput, interface: &Interface) -> PolicyChange {
        self.sums.add(seen);
        let mut change = PolicyChange::default();
        if self.sums.seconds < 5 {
            return change;
        }
        let sums = std::mem::take(&mut self.sums);
        let loads = sums.loads();
        let from = (0..loads.len()).max_by(|a, b| loads[*a].total_cmp(&loads[*b])).unwrap_or(0);
        let to = emptiest(&loads);
        let rests = self.moved.is_some_and(|m| seen.second < m + 10);
        if rests || loads[from] < 65.0 || loads[from] - loads[to] < 20.0 {
            return change;
        }
        let mut queues = queues_of(interface, from);
        let all: f64 = queues.iter().map(|q| sums.packets[*q]).sum();
        let share = |q: usize| loads[from] * sums.packets[q] / all.max(1.0);
        queues.sort_by(|a, b| share(*a).total_cmp(&share(*b)));
        let most = queues.len().saturating_sub(1).min(2);
        self.left.retain(|(when, ..)| seen.second < when + 180);
        let (mut high, mut low) = (loads[from], loads[to]);
        for queue in queues {
            let returns = self.left.iter().any(|(_, q, place)| (*q, *place) == (queue, to));
            let share = share(queue);
            if change.interrupts.len() < most && !returns && low + share < high {
                (high, low) = (high - share, low + share);
                change.interrupts.push((queue as u32, to as u32));
                self.left.push((seen.second, queue, from));
                self.moved = Some(seen.second);
            }
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SimulatedTraffic, run};
    use super::*;

    fn loaded(queues: u32, policy: &mut dyn BalancePolicy) -> (Interface, super::super::SimulationReport) {
        let mut interface = Interface::even(128, queues, 8);
        let mut traffic = SimulatedTraffic::zipf(128, 10_000, 1.0, 4.8, 5);
        let report = run(&mut interface, &mut traffic, policy, 600, 1);
        (interface, report)
    }

    #[test]
    fn lone_interrupts_never_move() {
        for policy in [&mut IrqbalancePolicy::default() as &mut dyn BalancePolicy, &mut Katalyst::default()] {
            assert_eq!(loaded(8, policy).1.moves, 0);
        }
    }

    #[test]
    fn with_four_queues_on_a_cpu_some_of_them_move() {
        for policy in [&mut IrqbalancePolicy::default() as &mut dyn BalancePolicy, &mut Katalyst::default()] {
            let (interface, report) = loaded(32, policy);
            assert!(report.moves > 0);
            let entries = SimulatedTraffic::zipf(128, 10_000, 1.0, 4.8, 5);
            let even = Interface::even(128, 32, 8).max_to_mean(entries.base());
            assert!(interface.max_to_mean(entries.base()) < even, "the busiest CPU has less");
        }
        let still = loaded(32, &mut StandStill).1;
        assert_eq!((still.moves, still.returns, still.first_move), (0, 0, None));
    }
}

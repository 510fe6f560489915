//! Compares rules that spread receive load, in the simulated interface of the testkit: standing still, the adapter, greedy
//! rebalancing (simplified RSS++), irqbalance's rule and Katalyst's. Prints the tables of BENCHMARKS.md:
//! `cargo run -p ringwise-adapt --example closed_loop`.
//!
//! Everything is modelled: there are no packets. The same seeds give the same numbers.
#![forbid(unsafe_code)]

use ringwise_testkit::closed_loop::{
    BalancePolicy, Interface, IrqbalancePolicy, Katalyst, SimulatedTraffic, SimulationReport, StandStill, run,
};

#[path = "../tests/closed_loop/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "the tests use the rest")]
mod closed_loop;

use closed_loop::{Adaptive, Greedy};

const SEEDS: std::ops::Range<u64> = 2001..2013;
const HOURS: u64 = 2;

struct Rule {
    name: &'static str,
    new: fn() -> Box<dyn BalancePolicy>,
}

const RULES: [Rule; 5] = [
    Rule { name: "even table, standing still", new: || Box::new(StandStill) },
    Rule { name: "ringwise", new: || Box::<Adaptive>::default() },
    Rule { name: "greedy at 2 %, each second", new: || Box::<Greedy>::default() },
    Rule { name: "irqbalance's rule", new: || Box::<IrqbalancePolicy>::default() },
    Rule { name: "Katalyst's rule", new: || Box::<Katalyst>::default() },
];

struct Load {
    name: &'static str,
    new: fn(u64) -> SimulatedTraffic,
}

const LOADS: [Load; 4] = [
    Load {
        name: "two flows of 45 % of a CPU that are on and off for 5 to 300 s, over Zipf 0.9 with a mean of 45 %",
        new: |seed| SimulatedTraffic::zipf(128, 10_000, 0.9, 8.0 * 0.45, seed).with_on_off(2, 0.45),
    },
    Load { name: "Zipf 0.9, mean 65 %", new: |seed| SimulatedTraffic::zipf(128, 10_000, 0.9, 8.0 * 0.65, seed) },
    Load { name: "Zipf 1.1, mean 55 %", new: |seed| SimulatedTraffic::zipf(128, 10_000, 1.1, 8.0 * 0.55, seed) },
    Load {
        name: "flows of equal weight, mean 65 %",
        new: |seed| SimulatedTraffic::zipf(128, 10_000, 0.0, 8.0 * 0.65, seed),
    },
];

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn reports(rule: &Rule, load: &Load, queues: u32) -> Vec<SimulationReport> {
    let go = |seed| {
        let mut interface = Interface::even(128, queues, 8);
        run(&mut interface, &mut (load.new)(seed), (rule.new)().as_mut(), HOURS * 3600, seed)
    };
    SEEDS.map(go).collect()
}

fn main() {
    for queues in [8, 32] {
        for load in &LOADS {
            println!("{} ({queues} queues)\n", load.name);
            println!(
                "| rule | moves an hour | A-B-A an hour | work above 100 % | seconds with a CPU above 90 % | p95 wait | \
                 times lower: middle, lowest, highest |"
            );
            println!("|---|---|---|---|---|---|---|");
            let still = reports(&RULES[0], load, queues);
            for rule in &RULES {
                let all = if rule.name == RULES[0].name { still.clone() } else { reports(rule, load, queues) };
                let mean = |f: fn(&SimulationReport) -> f64| all.iter().map(f).sum::<f64>() / all.len() as f64;
                let times: Vec<f64> = all.iter().zip(&still).map(|(a, s)| s.p95_wait_us / a.p95_wait_us).collect();
                println!(
                    "| {} | {:.1} | {:.1} | {:.2} % | {:.1} % | {:.1} µs | {:.1}, {:.1}, {:.1} |",
                    rule.name,
                    mean(|r| r.moves as f64) / HOURS as f64,
                    mean(|r| r.returns as f64) / HOURS as f64,
                    mean(|r| r.lost_percent),
                    mean(|r| r.hot_seconds_percent),
                    middle(all.iter().map(|r| r.p95_wait_us).collect()),
                    middle(times.clone()),
                    times.iter().copied().fold(f64::INFINITY, f64::min),
                    times.iter().copied().fold(0.0, f64::max),
                );
            }
            println!();
        }
    }
}

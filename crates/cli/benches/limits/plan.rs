//! Planning the large machine, and how the time grows.

use std::path::Path;
use std::time::Duration;

use ringwise_model::{Goal, Intent, Snapshot};
use ringwise_plan::plan;

use crate::table::Table;
use crate::{Result, machine, median, shortest};

/// Measured times scatter; a curve that grows as n² exceeds this many times over.
const SLACK: f64 = 1.25;

pub(crate) fn measure(table: &mut Table, dir: &Path) -> Result<()> {
    let machine = |cpus: u32, queues: u32| -> Result<Snapshot> {
        let file = dir.join("grown.tar.gz");
        machine::captured(dir, &file, cpus, 16, queues / 16)?;
        Ok(machine::opened(&file, cpus as usize, 16, queues as usize / 16)?.1)
    };
    let large = machine(512, 2048)?;
    for goal in Goal::ALL {
        let intent = Intent { goal, allow_disruption: true, ..Intent::default() };
        let made = plan(&large, &intent, &[]).map_err(|r| r.to_string())?;
        if made.steps.is_empty() {
            return Err(format!("nothing to plan for {goal} on an untuned machine").into());
        }
        let what = format!("plan for 512 CPUs, 2,048 queue interrupts, goal {goal} ({} steps)", made.steps.len());
        table.time(&what, 20.0, median(15, || plan(&large, &intent, &[])));
    }
    for goal in [Goal::Balanced, Goal::Forward] {
        let by_cpus: Vec<(u32, Duration)> =
            [64, 128, 256, 512].into_iter().map(|n| Ok((n, time(&machine(n, 2048)?, goal)))).collect::<Result<_>>()?;
        growth(table, &format!("plan ({goal}), 64 to 512 CPUs, 2,048 queues"), &by_cpus);
        let by_queues: Vec<(u32, Duration)> =
            [128, 512, 2048].into_iter().map(|n| Ok((n, time(&machine(512, n)?, goal)))).collect::<Result<_>>()?;
        growth(table, &format!("plan ({goal}), 128 to 2,048 queues, 512 CPUs"), &by_queues);
    }
    Ok(())
}

fn time(s: &Snapshot, goal: Goal) -> Duration {
    let intent = Intent { goal, allow_disruption: true, ..Intent::default() };
    shortest(25, || plan(s, &intent, &[]))
}

/// Ends of the curve against n log n.
fn growth(table: &mut Table, what: &str, times: &[(u32, Duration)]) {
    let (Some((n, first)), Some((m, last))) = (times.first(), times.last()) else { return };
    let law = |n: u32| f64::from(n) * f64::from(n).log2();
    let all: Vec<String> = times.iter().map(|(n, t)| format!("{n}: {:.2} ms", t.as_secs_f64() * 1e3)).collect();
    table.below(
        &format!("{what} ({})", all.join(", ")),
        law(*m) / law(*n) * SLACK,
        last.as_secs_f64() / first.as_secs_f64(),
        "times",
    );
}

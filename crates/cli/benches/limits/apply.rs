//! A second apply with nothing to do, by the library on the simulated kernel.

use std::path::Path;
use std::sync::Arc;

use ringwise_apply::{Policy, Request, RunResult, Store, run};
use ringwise_discover::snapshot;
use ringwise_model::{Goal, Intent};
use ringwise_plan::plan;
use ringwise_sys::Host;
use ringwise_testkit::sim::{Sim, build};

use crate::table::Table;
use crate::{Result, machine, median};

pub(crate) fn measure(table: &mut Table, dir: &Path) -> Result<()> {
    let sim = Arc::new(Sim::new(&build::host(16, 2).igb("eth0", 0, 8).igb("eth1", 1, 8).mqnic("mq0", 0, 8).done()));
    let host: Arc<dyn Host> = sim.clone();
    let intent = Intent { goal: Goal::Forward, ..Intent::default() };
    let store = Store::open(Some(&dir.join("state")));
    let policy = Policy { deadline: machine::PATIENCE, ..Policy::default() };

    let before = snapshot(&host, &machine::patient())?;
    let first = plan(&before, &intent, &[]).map_err(|r| r.to_string())?;
    let request = Request {
        devices: before.nics.iter().map(|n| n.dev.clone()).collect(),
        steps: first.steps.clone(),
        title: ringwise_model::Title::Text("benchmark".into()),
        who: "bench".into(),
        argv: vec!["bench".into()],
        ..Request::default()
    };
    let outcome = run(&host, &request, &store, &policy, &mut |_| {}).map_err(|e| e.to_string())?;
    if sim.writes() == 0 || outcome.verdict != RunResult::Applied {
        return Err(format!("the first apply ended as {:?} after {} writes", outcome.verdict, sim.writes()).into());
    }
    sim.forget_writes();
    let files = |d: &Path| std::fs::read_dir(d).map(Iterator::count).unwrap_or(0);
    let kept = files(&dir.join("state"));

    // What `show -j` does beside starting, and what `apply` does.
    let show = median(31, || snapshot(&host, &machine::patient()).map(|s| serde_json::to_string(&s)));
    let mut steps = 0;
    let again = median(31, || {
        let s = snapshot(&host, &machine::patient()).map_err(|e| e.to_string())?;
        let p = plan(&s, &intent, &[]).map_err(|r| r.to_string())?;
        steps += p.steps.len();
        Ok::<_, String>((s, p))
    });
    table.exactly("second apply: steps planned", 0, steps);
    table.below("second apply beside show, same host", 2.0, again.times(show), "times");
    // The same by a plan in a file, whose steps are all there and already so.
    let exact = median(31, || run(&host, &request, &store, &policy, &mut |_| {}));
    table.below("second apply of the plan in a file beside show", 2.0, exact.times(show), "times");
    table.exactly("second apply: kernel writes", 0, sim.writes());
    table.exactly("second apply: new files in the state directory", 0, files(&dir.join("state")) - kept);
    Ok(())
}

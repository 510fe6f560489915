//! What `ringwise` alone reads and compares, on the large machine.

use std::path::Path;
use std::sync::Arc;

use ringwise_apply::{Journals, Policy, Request, RunResult, Store, run, verify_in};
use ringwise_discover::{Options, Parts, passive, snapshot};
use ringwise_model::{Goal, Intent};
use ringwise_plan::plan;
use ringwise_sys::{Host, Real};

use crate::table::Table;
use crate::{Result, machine, median};

const LIMIT_MS: f64 = 50.0;
const PROCESSES: u32 = 5000;

pub(crate) fn measure(table: &mut Table, dir: &Path) -> Result<()> {
    let hurry =
        |parts| Options { parts, rivals_within: Some(std::time::Duration::from_millis(20)), ..machine::patient() };

    // Files on a disk, read by system calls as those of proc and sys are. The kernel is not asked: it is another.
    let tree = dir.join("tree");
    machine::on_disk(&tree, 512, 16, 128, PROCESSES)?;
    let host: Arc<dyn Host> = passive(Arc::new(Real::with_root(&tree).map_err(|e| e.to_string())?));
    let s = snapshot(&host, &hurry(Parts::LEAST))?;
    let vectors: usize = s.nics.iter().map(|n| n.queue_vectors().count()).sum();
    if vectors != 2048 {
        return Err(format!("the tree on disk has {vectors} queue interrupts").into());
    }
    let all = median(7, || snapshot(&host, &machine::patient()));
    let least = median(15, || snapshot(&host, &hurry(Parts::LEAST)));
    let what = "least discovery, 512 CPUs, 2,048 queue interrupts, 5,000 processes (files on disk)";
    table.time(what, LIMIT_MS, least);
    table.note("  beside discovery of everything", format!("{:.2} times", least.times(all)));
    let asked = Parts { asked: true, ..Parts::LEAST };
    table.time(
        "  status: with the requested CPUs of interrupts",
        LIMIT_MS,
        median(15, || snapshot(&host, &hurry(asked))),
    );
    std::fs::remove_dir_all(&tree)?;

    // Journals: the settings in effect, compared with the host.
    let sim: Arc<dyn Host> = Arc::new(machine::simulated(dir, 512, 16, 128)?);
    let before = snapshot(&sim, &machine::patient())?;
    let intent = Intent { goal: Goal::Balanced, ..Intent::default() };
    let made = plan(&before, &intent, &[]).map_err(|r| r.to_string())?;
    let request = Request {
        devices: before.nics.iter().map(|n| n.dev.clone()).collect(),
        steps: made.steps.clone(),
        title: ringwise_model::Title::Text("benchmark".into()),
        who: "bench".into(),
        argv: vec!["bench".into()],
        ..Request::default()
    };
    let store = Store::open(Some(&dir.join("status-state")));
    let outcome =
        run(&sim, &request, &store, &Policy { deadline: machine::PATIENCE, ..Policy::default() }, &mut |_| {})
            .map_err(|e| e.to_string())?;
    if outcome.verdict != RunResult::Applied {
        return Err(format!("the apply on the large machine ended as {:?}", outcome.verdict).into());
    }
    let now = snapshot(&sim, &machine::patient())?;
    let v = verify_in(&now, &store).map_err(|e| e.to_string())?;
    if v.settings.len() != made.steps.len() || v.exit_status() != 0 {
        let first = v.drifted().next().map(|s| format!(", not {:?}: {:?}", s.want, s.how)).unwrap_or_default();
        return Err(format!("{} of {} settings are in effect{first}", v.holding(), made.steps.len()).into());
    }
    let compare = median(15, || {
        let j = Journals::read(&store).map_err(|e| e.to_string())?;
        let families = j.families();
        let j = j.fresh().map_err(|e| e.to_string())?;
        Ok::<_, String>((families, j.verify(&now), j.history(&now.host)))
    });
    table.time(&format!("status: {} settings in effect, compared", made.steps.len()), LIMIT_MS, compare);
    Ok(())
}

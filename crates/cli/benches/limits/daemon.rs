//! What the service costs while nothing changes: its comparison every 10 s, and the load every second.

use std::path::Path;
use std::sync::Arc;

use ringwise_apply::{SettingInEffect, Verify};
use ringwise_daemon::unchanged::WatchList;
use ringwise_discover::{Options, passive, snapshot};
use ringwise_knob::{Setting, compare, live};
use ringwise_model::{Goal, Intent, Snapshot};
use ringwise_observe::{Layout, Sampler, cpu_times};
use ringwise_plan::plan;
use ringwise_sys::{Host, Real};

use crate::table::Table;
use crate::{Result, irqbalance, machine, median};

/// CPUs, interfaces, queues of each, and the limit: 0.05 % and 0.5 % of a CPU, in milliseconds of 10 s.
const MACHINES: [(u32, u32, u32, f64); 2] = [(64, 1, 64, 5.0), (512, 16, 128, 50.0)];

pub(crate) fn measure(table: &mut Table, dir: &Path) -> Result<()> {
    for (cpus, nics, queues, limit_ms) in MACHINES {
        let tree = dir.join("daemon-tree");
        machine::on_disk(&tree, cpus, nics, queues, 0)?;
        let host: Arc<dyn Host> = passive(Arc::new(Real::with_root(&tree).map_err(|e| e.to_string())?));
        let now = snapshot(&host, &Options { skip_rivals: true, ..machine::patient() })?;
        let intent = Intent { goal: Goal::Balanced, ..Intent::default() };
        let made = plan(&now, &intent, &[]).map_err(|r| r.to_string())?;
        let in_effect = verify(&now, made.target);
        let mut to_read = WatchList::of(&in_effect, &now);
        if to_read.read(&host).is_none() {
            return Err("the files could not be read in time".into());
        }
        let what = format!(
            "service: comparison of {} settings every 10 s, {} queue interrupts (files on disk)",
            in_effect.settings.len(),
            nics * queues
        );
        let measured = median(15, || to_read.read(&host).ok_or("too late"));
        table.time(&what, limit_ms, measured);
        table.note("  of one CPU", format!("{:.3} %", measured.cpu.as_secs_f64() * 10.0));
        follow(table, &host, &now, limit_ms)?;
        let what = "  irqbalance beside it, a round every 10 s (files on disk)";
        match irqbalance::round(&tree) {
            Ok(cpu) => table.note(what, format!("{:.3} %", cpu.as_secs_f64() * 10.0)),
            Err(e) => table.note(what, format!("not measured: {e}")),
        }
        std::fs::remove_dir_all(&tree)?;
    }
    Ok(())
}

/// What a second costs that follows the load: while nothing is busy, and while a CPU is.
fn follow(table: &mut Table, host: &Arc<dyn Host>, now: &Snapshot, limit_ms: f64) -> Result<()> {
    let layout = Layout::of(now, &[]);
    let what = format!("service: times of {} CPUs every second (files on disk)", now.topology.online.len());
    // 0.2 % of a CPU with 64 queues, in proportion for the other machine.
    let quiet = median(15, || Ok::<_, &str>(cpu_times(host.as_ref(), &layout)));
    table.time(&what, limit_ms * 0.4, quiet);
    // Too short for the kernel's count of CPU time.
    table.note("  of one CPU", format!("{:.3} %", quiet.wall.as_secs_f64() * 100.0));
    let mut sampler = Sampler::new(host.as_ref(), &layout, false);
    let busy = median(15, || Ok::<_, &str>(sampler.read(host.as_ref())));
    table.note("  while a CPU is busy", format!("{:.3} %", busy.wall.as_secs_f64() * 100.0));
    Ok(())
}

/// As if these settings had been applied.
fn verify(now: &Snapshot, wants: Vec<Setting>) -> Verify {
    let standing = |want: Setting| {
        let address = want.address()?;
        let (how, now) = (compare(&want, now), live(now, &address));
        Some(SettingInEffect { transaction: 1, unix_time: 0, adopted: false, want, now, how, changed: None })
    };
    Verify {
        schema: "ringwise.verify".into(),
        version: 1,
        settings: wants.into_iter().filter_map(standing).collect(),
        unfinished: None,
        running: None,
        trial: None,
        newer: Vec::new(),
        made: Vec::new(),
    }
}

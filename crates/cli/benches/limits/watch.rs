//! A sample of `watch` on a large machine: reading of what it would say, without the kernel's own part.

use ringwise_model::{CpuId, IrqId, NodeId};
use ringwise_observe::{Layout, Rates, Sampler, Wiring};
use ringwise_testkit::counting::{Counting, FIRST_IRQ, MachineSize, QUEUE_INTERRUPTS, QUEUE_PACKETS};

use crate::table::Table;
use crate::{Result, median};

const CPUS: u32 = 512;
const NICS: u32 = 16;
const QUEUES: u32 = 128;

/// After `seconds` in which the first `busy` queue interrupts came.
fn machine(seconds: u64, busy: u32) -> Counting {
    Counting::after(seconds, MachineSize { cpus: CPUS, nics: NICS, queues: QUEUES, busy, qstats: true })
}

fn layout() -> Layout {
    let wiring = |nic: u32| {
        let queues = (0..QUEUES).map(|q| (q, Some(IrqId(FIRST_IRQ + nic * QUEUES + q))));
        Wiring { driver: Some("ice".into()), rx: queues.clone().collect(), tx: queues.collect(), ..Wiring::default() }
    };
    Layout {
        links: (0..NICS).map(|n| (format!("eth{n}"), wiring(n))).collect(),
        nodes: (0..CPUS).map(|c| (CpuId(c), NodeId(c / 128))).collect(),
    }
}

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let layout = layout();
    let of = |what: &str| format!("a sample of watch, 512 CPUs, 2,048 queue interrupts, {what}");
    for (what, busy, files) in [
        ("all of them busy", NICS * QUEUES, true),
        ("64 of them busy", 64, true),
        ("all of them busy, from /proc/interrupts", NICS * QUEUES, false),
    ] {
        let mut machines = [machine(0, busy), machine(1, busy)];
        if !files {
            machines.iter_mut().for_each(|m| m.files.retain(|path, _| !path.ends_with("per_cpu_count")));
        }
        let mut sampler = Sampler::new(&machines[0], &layout, false);
        let mut before = sampler.read(&machines[0]);
        let mut at = 0;
        let check = Rates::between(&layout, &before, &sampler.read(&machines[1])).ok_or("no rates")?;
        let (eth15, took) = (&check.links["eth15"], &check.links["eth0"].queues[5]);
        if (eth15.queues.len(), eth15.queues[9].packets, took.interrupts)
            != (256, Some(QUEUE_PACKETS), Some(QUEUE_INTERRUPTS))
        {
            return Err(format!("{what}: read wrongly: {took:?}").into());
        }
        let time = median(15, || {
            at = 1 - at;
            let now = sampler.read(&machines[at]);
            // There and back: what was read a moment ago would not be read again.
            let (first, second) = if at == 1 { (&before, &now) } else { (&now, &before) };
            let rates = Rates::between(&layout, first, second);
            before = now;
            rates
        });
        table.note_time(&of(what), time);
    }
    let text = machine(1, 2048).files.remove("/proc/interrupts").ok_or("no table")?;
    table.note("  /proc/interrupts of that machine", format!("{:.1} MB", text.len() as f64 / 1e6));
    table.note_time("  reading that alone", median(7, || ringwise_kfmt::interrupts::parse(&text)));
    Ok(())
}

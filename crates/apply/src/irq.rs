//! Interrupt affinity: `/proc/irq/N/smp_affinity_list`. A list, unlike a mask, does not depend on the group width.

use std::time::Duration;

use ringwise_kfmt::cpulist;
use ringwise_knob::{Setting, VectorName, irq, path};
use ringwise_model::{CpuId, CpuSet, Fact, IrqId, Snapshot};
use ringwise_sys::{Error, Result};

use crate::host_access::HostAccess;

/// An interrupt moves the next time it is raised: how long to wait for that, and how often to look.
const NEXT: Duration = Duration::from_millis(20);
/// The same for an interrupt that was raised since the host was read.
const NEXT_IN_USE: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(5);

/// The present interrupt number: an earlier change of channels may have assigned another.
fn number(now: &Snapshot, dev: &str, of: VectorName) -> Result<IrqId> {
    let vector = now.nic(dev).and_then(|n| irq::vector(n, of));
    vector.map(|v| v.irq).ok_or_else(|| {
        Error::other(format!("{dev} interrupt of {of}"), "no interrupt of the device serves this queue now")
    })
}

/// `on`: the CPU of the set that should serve the interrupt. An interrupt does not move if its present CPU is in the set
/// (arch/x86/kernel/apic/vector.c, `assign_vector_locked`), so this CPU is written alone before the set.
pub(crate) fn write(
    cx: &HostAccess,
    now: &Snapshot,
    dev: &str,
    of: VectorName,
    cpus: &CpuSet,
    on: Option<CpuId>,
) -> Result<()> {
    let n = number(now, dev, of)?;
    let path = path::affinity(n);
    if let Some(cpu) = on.filter(|c| cpus.contains(*c) && cpus.len() > 1) {
        let there = || effective(cx, n) == Some(cpu);
        // If the kernel refuses this CPU (because it is offline), the kernel chooses one of the set.
        if !there() && cx.write(&path, format!("{cpu}\n")).is_ok() {
            let next = if raised_since(cx, now, dev, of, n) { NEXT_IN_USE } else { NEXT };
            let until = cx.now() + next;
            while !there() && cx.now() < until {
                cx.host.sleep(LOOK);
            }
        }
    }
    cx.write(&path, format!("{}\n", cpulist::format(cpus)))
}

fn raised_since(cx: &HostAccess, now: &Snapshot, dev: &str, of: VectorName, n: IrqId) -> bool {
    let before = now.nic(dev).and_then(|x| irq::vector(x, of)).and_then(|v| v.count.known());
    let after = cx.reading(move |h| ringwise_discover::raised(h, n));
    matches!((before, after), (Some(before), Some(Fact::Known(after))) if after > *before)
}

fn effective(cx: &HostAccess, n: IrqId) -> Option<CpuId> {
    cx.reading(move |h| ringwise_discover::effective(h, n)).and_then(|cpus| cpus.known().and_then(one))
}

fn one(cpus: &CpuSet) -> Option<CpuId> {
    cpus.first().filter(|_| cpus.len() == 1)
}

/// Adds the CPU that serves the interrupt now to a value from before.
pub(crate) fn with_place(now: &Snapshot, mut setting: Setting) -> Setting {
    if let Setting::IrqCpus { dev, of, cpus, on } = &mut setting {
        let vector = now.nic(dev).and_then(|n| irq::vector(n, *of));
        let cpu = vector.and_then(|v| v.effective.known()).and_then(one);
        *on = cpu.filter(|c| cpus.len() > 1 && cpus.contains(*c));
    }
    setting
}

/// Interrupts whose mask was restored but that are served by another CPU than before: the kernel chose it, or the interrupt was
/// not raised since. One sentence about all of them.
pub(crate) fn elsewhere<'a>(now: &Snapshot, settings: impl IntoIterator<Item = &'a Setting>) -> Option<String> {
    const NAMED: usize = 4;
    let place = |s: &Setting| {
        let Setting::IrqCpus { dev, of, on: Some(was), .. } = s else { return None };
        let vector = now.nic(dev).and_then(|n| irq::vector(n, *of))?;
        let is = vector.effective.known().and_then(one).filter(|is| is != was)?;
        Some(format!("{dev} {of} (CPU {is}, was CPU {was})"))
    };
    let all: Vec<String> = settings.into_iter().filter_map(place).collect();
    let (named, more) =
        (all.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", "), all.len().saturating_sub(NAMED));
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let (subject, verb) = if all.len() == 1 { ("an interrupt got its", "is") } else { ("interrupts got their", "are") };
    (!all.is_empty()).then(|| {
        format!(
            "{subject} earlier mask back, but {verb} still served by another CPU of that mask, because the queue was \
             idle or the kernel chose so: {named}{more}"
        )
    })
}

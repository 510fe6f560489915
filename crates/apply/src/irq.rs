//! Interrupt affinity: `/proc/irq/N/smp_affinity_list`. The list form has no group widths to get wrong.

use ringwise_kfmt::cpulist;
use ringwise_knob::{Of, irq};
use ringwise_model::{CpuSet, IrqId, Snapshot};
use ringwise_sys::{Error, Result};

use crate::cx::Cx;

/// The number of now: a change of channels before this one may have given another.
fn number(now: &Snapshot, dev: &str, of: Of) -> Result<IrqId> {
    let vector = now.nic(dev).and_then(|n| irq::vector(n, of));
    vector.map(|v| v.irq).ok_or_else(|| {
        Error::other(format!("{dev} interrupt of {of}"), "no interrupt of the device serves this queue now")
    })
}

pub(crate) fn write(cx: &Cx, now: &Snapshot, dev: &str, of: Of, cpus: &CpuSet) -> Result<()> {
    let n = number(now, dev, of)?;
    cx.write(&format!("/proc/irq/{n}/smp_affinity_list"), format!("{}\n", cpulist::format(cpus)))
}

/// What was asked and where it goes, into the snapshot.
pub(crate) fn read(cx: &Cx, now: &mut Snapshot, dev: &str, of: Of) -> Result<()> {
    let n = number(now, dev, of)?;
    let asked = cx.fact(&format!("/proc/irq/{n}/smp_affinity_list"), cpulist::parse);
    let effective = cx.fact(&format!("/proc/irq/{n}/effective_affinity_list"), cpulist::parse);
    let vectors = now.nics.iter_mut().filter(|x| x.dev.name == dev).flat_map(|x| &mut x.vectors);
    for v in vectors.filter(|v| v.irq == n) {
        v.asked = asked.clone();
        v.effective = effective.clone();
    }
    Ok(())
}

//! Interrupt affinity (`/proc/irq/N/smp_affinity_list`), addressed by queue.

use ringwise_model::{CpuId, CpuSet, Dir, Fact, Nic, Role, Snapshot, Vector};

use crate::{Match, NotProjected, Of, Setting, path};

/// The vector that serves `of` now.
pub fn vector(nic: &Nic, of: Of) -> Option<&Vector> {
    match of {
        Of::Rx(q) => nic.vector_of(Dir::Rx, q),
        Of::Tx(q) => nic.vector_of(Dir::Tx, q),
        Of::Control(n) => nic.vectors.iter().filter(|v| v.role == Role::Control).nth(n as usize),
    }
}

/// One name per queue vector: its first receive queue, else its first transmit queue.
pub fn canonical(v: &Vector) -> Option<Of> {
    v.rx().first().map(|q| Of::Rx(*q)).or_else(|| v.tx().first().map(|q| Of::Tx(*q)))
}

/// Every vector of the device by its canonical name; vectors of unknown role have none.
pub fn addresses(nic: &Nic) -> Vec<Of> {
    let mut control = 0;
    let mut out = Vec::new();
    for v in &nic.vectors {
        if let Some(of) = canonical(v) {
            out.push(of);
        } else if v.role == Role::Control {
            out.push(Of::Control(control));
            control += 1;
        }
    }
    out
}

/// What was asked for, not where it goes. Absent: no vector serves that queue now.
pub fn live(nic: &Nic, of: Of) -> Fact<Setting> {
    let Some(v) = vector(nic, of) else {
        return Fact::Absent;
    };
    let dev = nic.dev.name.clone();
    v.asked.as_ref().map(|cpus: &CpuSet| Setting::IrqCpus { dev, of, cpus: cpus.clone(), on: None })
}

/// On x86 an interrupt moves at its next occurrence: a mask that reads back while the effective CPU
/// lies outside it is pending (kernel/irq/manage.c, `irq_setup_affinity`; lab.md section 2).
pub fn compare(nic: &Nic, of: Of, want: &CpuSet) -> Match {
    vector(nic, of).map_or(Match::Gone, |v| compare_vector(v, want))
}

/// The same for a vector that is at hand.
pub fn compare_vector(v: &Vector, want: &CpuSet) -> Match {
    match (&v.asked, &v.effective) {
        (Fact::Known(asked), Fact::Known(eff)) if asked == want && !eff.is_empty() && !eff.is_subset(want) => {
            Match::Pending
        }
        (Fact::Known(asked), _) if asked == want => Match::Same,
        (Fact::Known(_), _) => Match::Differs,
        (Fact::Absent, _) => Match::Gone,
        (Fact::Unknown(u), _) => Match::Unknown(u.clone()),
    }
}

/// An interrupt stays on its CPU where that is in the set (arch/x86/kernel/apic/vector.c, `assign_vector_locked`); else
/// the kernel chooses one of the set. `on`: the CPU that is written alone before the set.
pub(crate) fn project(nic: &mut Nic, of: Of, cpus: &CpuSet, on: Option<CpuId>) -> Result<(), NotProjected> {
    let number = vector(nic, of).map(|v| v.irq);
    let v = nic.vectors.iter_mut().find(|v| Some(v.irq) == number).ok_or(NotProjected("no such vector"))?;
    v.asked = Fact::Known(cpus.clone());
    let stays = v.effective.known().is_some_and(|e| !e.is_empty() && e.is_subset(cpus));
    v.effective = match on.filter(|c| cpus.contains(*c)) {
        Some(cpu) => Fact::Known(CpuSet::one(cpu)),
        None if stays => v.effective.clone(),
        None if cpus.len() == 1 => Fact::Known(cpus.clone()),
        None => Fact::unknown("effective CPU", format!("the kernel chooses one of {cpus}")),
    };
    Ok(())
}

pub fn command(now: &Snapshot, dev: &str, of: Of, cpus: &CpuSet) -> Option<String> {
    let irq = vector(now.nic(dev)?, of)?.irq;
    Some(format!("echo {cpus} > {}", path::affinity(irq)))
}

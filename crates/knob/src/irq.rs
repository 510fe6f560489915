//! Interrupt affinity (`/proc/irq/N/smp_affinity_list`), addressed by queue.

use ringwise_model::errno::{EINVAL, EIO, ENOENT, ENOSPC, EOVERFLOW, EPERM, ERANGE};
use ringwise_model::{CpuId, CpuSet, Dir, Fact, Nic, Role, Snapshot, Vector};

use crate::{Address, Descriptor, Match, NotProjected, Reaction, Setting, VectorName, nic, path, set_text};

pub(crate) struct IrqFamily;

impl Descriptor for IrqFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        addresses(nic).into_iter().map(|of| Address::IrqCpus { dev: nic.dev.name.clone(), of }).collect::<Vec<_>>()
    }

    fn label(&self, address: &Address) -> String {
        match address {
            Address::IrqCpus { dev, of } => format!("{dev} interrupt CPU {of}"),
            _ => String::new(),
        }
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        match address {
            Address::IrqCpus { dev, of } => s.nic(dev).map_or(Fact::Absent, |n| live(n, *of)),
            _ => Fact::Absent,
        }
    }

    fn compare(&self, s: &Snapshot, want: &Setting, _: &Fact<Setting>) -> Match {
        match want {
            Setting::IrqCpus { dev, of, cpus, .. } => s.nic(dev).map_or(Match::Gone, |n| compare(n, *of, cpus)),
            _ => Match::Gone,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        match setting {
            Setting::IrqCpus { dev, of, cpus, on } => project(nic(s, dev)?, *of, cpus, *on),
            _ => Err(NotProjected::OTHER_FAMILY),
        }
    }

    fn react(&self, _: &Address, errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        match errno? {
            EPERM | EIO => Some((
                Reaction::Refused,
                "the kernel manages the CPU of this interrupt itself, or the interrupt cannot be moved",
            )),
            ENOSPC => Some((
                Reaction::Fail,
                "no interrupt vector is left on that CPU: choose another CPU, or let devices request fewer vectors (ringwise check --explain A10)",
            )),
            EINVAL => Some((Reaction::Fail, "no CPU of the set is online")),
            EOVERFLOW | ERANGE => Some(crate::react::NO_SUCH_CPU),
            ENOENT => Some((Reaction::Fail, "the interrupt no longer exists: the device was restarted meanwhile")),
            _ => None,
        }
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::IrqCpus { cpus, .. } => set_text(cpus),
            _ => String::new(),
        }
    }

    fn command(&self, now: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::IrqCpus { dev, of, cpus, .. } => command(now, dev, *of, cpus),
            _ => None,
        }
    }
}

/// The vector that serves `of` now.
pub fn vector(nic: &Nic, of: VectorName) -> Option<&Vector> {
    match of {
        VectorName::Rx(q) => nic.vector_of(Dir::Rx, q),
        VectorName::Tx(q) => nic.vector_of(Dir::Tx, q),
        VectorName::Control(n) => nic.vectors.iter().filter(|v| v.role == Role::Control).nth(n as usize),
    }
}

/// One name per queue vector: its first receive queue, else its first transmit queue.
pub fn canonical(v: &Vector) -> Option<VectorName> {
    v.rx().first().map(|q| VectorName::Rx(*q)).or_else(|| v.tx().first().map(|q| VectorName::Tx(*q)))
}

/// The canonical names of all vectors of the device; vectors of unknown role have none.
pub fn addresses(nic: &Nic) -> Vec<VectorName> {
    let mut control = 0;
    let mut out = Vec::new();
    for v in &nic.vectors {
        if let Some(of) = canonical(v) {
            out.push(of);
        } else if v.role == Role::Control {
            out.push(VectorName::Control(control));
            control += 1;
        }
    }
    out
}

/// The requested affinity, not the effective one. Absent: no vector serves that queue now.
pub fn live(nic: &Nic, of: VectorName) -> Fact<Setting> {
    let Some(v) = vector(nic, of) else {
        return Fact::Absent;
    };
    let dev = nic.dev.name.clone();
    v.asked.as_ref().map(|cpus: &CpuSet| Setting::IrqCpus { dev, of, cpus: cpus.clone(), on: None })
}

/// On x86 without interrupt remapping an interrupt moves at its next occurrence: a mask that reads back while the effective CPU
/// lies outside it is pending (kernel/irq/manage.c, `irq_set_affinity_locked`).
pub fn compare(nic: &Nic, of: VectorName, want: &CpuSet) -> Match {
    vector(nic, of).map_or(Match::Gone, |v| compare_vector(v, want))
}

/// Like [`compare`], for a vector that is already known.
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

/// An interrupt stays on its CPU if the set contains that CPU (arch/x86/kernel/apic/vector.c, `assign_vector_locked`);
/// otherwise the kernel chooses a CPU of the set. `on`: the CPU that is written alone before the set.
pub(crate) fn project(nic: &mut Nic, of: VectorName, cpus: &CpuSet, on: Option<CpuId>) -> Result<(), NotProjected> {
    let number = vector(nic, of).map(|v| v.irq);
    let v =
        nic.vectors.iter_mut().find(|v| Some(v.irq) == number).ok_or(NotProjected("no interrupt serves this queue"))?;
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

/// The command that writes the affinity. `None`: no vector serves that queue.
pub fn command(now: &Snapshot, dev: &str, of: VectorName, cpus: &CpuSet) -> Option<String> {
    let irq = vector(now.nic(dev)?, of)?.irq;
    Some(format!("echo {cpus} > {}", path::affinity(irq)))
}

//! NAPI: files of the device, instances, their threads.

use ringwise_kfmt::netdev_nl::{self, NapiInfo};
use ringwise_model::errno::{EACCES, EINVAL, ENOENT, EOPNOTSUPP, ESRCH};
use ringwise_model::{CpuId, CpuSet, Fact, Napi, NapiInstance, NapiThread, NapiValues, Nic};
use ringwise_sys::{Error, Result};

use super::State;
use super::tree::Tree;

fn no(errno: i32) -> Error {
    Error::errno("", errno)
}

/// Nothing set; no instance linked to a queue.
pub(super) fn unset() -> Fact<Napi> {
    let device = NapiValues {
        defer_hard_irqs: Some(0),
        gro_flush_timeout_ns: Some(0),
        irq_suspend_timeout_ns: None,
        threaded: Some(0),
    };
    Fact::Known(Napi { device, instances: Vec::new() })
}

/// Instances as the driver links them, one for each vector of queues, from this id on.
pub(super) fn link(nic: &mut Nic, first: u32, version: (u32, u32)) {
    let Fact::Known(napi) = &mut nic.napi else { return };
    napi.instances.clear();
    for v in nic.vectors.iter_mut().filter(|v| v.is_queue()) {
        let id = first + napi.instances.len() as u32;
        v.napi = Some(id);
        v.source = ringwise_model::MapSource::NetdevGenl;
        let thread = (napi.device.threaded == Some(1)).then_some(NapiThread { pid: id, cpus: Fact::Absent });
        let (rx, tx) = (v.rx().to_vec(), v.tx().to_vec());
        napi.instances.push(NapiInstance { id, rx, tx, values: fresh(&napi.device, version), thread });
    }
}

/// The initial values of an instance: those of the device. lab: "each instance has the value of the device"
fn fresh(device: &NapiValues, version: (u32, u32)) -> Fact<NapiValues> {
    if version < (6, 13) {
        return Fact::Absent;
    }
    Fact::Known(NapiValues {
        irq_suspend_timeout_ns: Some(0),
        threaded: device.threaded.filter(|_| version >= (6, 17)),
        ..*device
    })
}

pub(super) fn replies(nic: &Nic) -> Vec<Vec<u8>> {
    let ifindex = nic.dev.ifindex.unwrap_or(ringwise_model::IfIndex(0));
    let of = |id: u32| nic.napi.known().and_then(|n| n.instances.iter().find(|i| i.id == id));
    let each = nic.vectors.iter().filter_map(|v| {
        let instance = of(v.napi?);
        let values = instance.and_then(|i| i.values.known().copied()).unwrap_or_default();
        Some(netdev_nl::napi_reply(&NapiInfo {
            ifindex,
            id: v.napi?,
            irq: Some(v.irq),
            pid: instance.and_then(|i| i.thread.as_ref()).map(|t| t.pid),
            defer_hard_irqs: values.defer_hard_irqs,
            gro_flush_timeout_ns: values.gro_flush_timeout_ns,
            irq_suspend_timeout_ns: values.irq_suspend_timeout_ns,
            threaded: values.threaded,
        }))
    });
    each.collect()
}

/// A new thread may run on any CPU. lab: "a new thread may run anywhere"
fn make_threads(s: &mut State, i: usize, of: impl Fn(&NapiInstance) -> Option<u32>) {
    let online = s.topology.online.clone();
    // lab: "threads: the kernel keeps them"
    let keeps = s.version() < (6, 17);
    if let Fact::Known(napi) = &mut s.nics[i].napi {
        for n in &mut napi.instances {
            match (of(n), &n.thread) {
                (Some(0), _) if keeps => {}
                (Some(0), _) => n.thread = None,
                (Some(_), None) => {
                    n.thread = Some(NapiThread { pid: n.id + 1000, cpus: Fact::Known(online.clone()) });
                }
                _ => {}
            }
        }
    }
}

/// lab: "napi-set: not before 6.13"
pub(super) fn set(s: &mut State, dev: &str, attrs: &[u8]) -> Result<()> {
    let version = s.version();
    if version < (6, 13) {
        return Err(no(EOPNOTSUPP));
    }
    let (id, want) = netdev_nl::napi_set_decode(attrs).map_err(|e| Error::other("", format!("simulated host: {e}")))?;
    if want.threaded.is_some_and(|t| t > 1 || version < (6, 17)) {
        return Err(no(EINVAL));
    }
    let i = s.index(dev).ok_or_else(|| no(ENOENT))?;
    let Fact::Known(napi) = &mut s.nics[i].napi else { return Err(no(ENOENT)) };
    let n = napi.instances.iter_mut().find(|n| n.id == id).ok_or_else(|| no(ENOENT))?;
    let Fact::Known(now) = &mut n.values else { return Err(no(EOPNOTSUPP)) };
    now.defer_hard_irqs = want.defer_hard_irqs.or(now.defer_hard_irqs);
    now.gro_flush_timeout_ns = want.gro_flush_timeout_ns.or(now.gro_flush_timeout_ns);
    now.irq_suspend_timeout_ns = want.irq_suspend_timeout_ns.or(now.irq_suspend_timeout_ns);
    now.threaded = want.threaded.or(now.threaded);
    make_threads(s, i, |n| if n.id == id { want.threaded } else { None });
    s.stale(i);
    Ok(())
}

/// A file of the device sets every instance. lab: "a file of the device sets every instance"
pub(super) fn write(s: &mut State, i: usize, file: &str, text: &str) -> Result<()> {
    let n: u64 = text.trim().parse().map_err(|_| no(EINVAL))?;
    let Fact::Known(napi) = &mut s.nics[i].napi else { return Err(no(ENOENT)) };
    let small = u32::try_from(n).map_err(|_| no(EINVAL));
    let each = napi.instances.iter_mut().filter_map(|i| match &mut i.values {
        Fact::Known(v) => Some(v),
        _ => None,
    });
    let all = std::iter::once(&mut napi.device).chain(each);
    match file {
        "napi_defer_hard_irqs" => {
            let n = small?;
            all.for_each(|v| v.defer_hard_irqs = Some(n));
        }
        "gro_flush_timeout" => all.for_each(|v| v.gro_flush_timeout_ns = Some(n)),
        "threaded" if n > 1 => return Err(no(95)),
        "threaded" => {
            let n = small?;
            all.for_each(|v| v.threaded = v.threaded.and(Some(n)));
            make_threads(s, i, |_| Some(n));
        }
        _ => return Err(no(13)),
    }
    Ok(())
}

pub(super) fn is_file(name: &str) -> bool {
    matches!(name, "napi_defer_hard_irqs" | "gro_flush_timeout" | "threaded")
}

pub(super) fn files(t: &mut Tree, nic: &Nic, dir: &str) {
    let Fact::Known(napi) = &nic.napi else {
        if let Fact::Unknown(u) = &nic.napi {
            t.error(format!("{dir}/napi_defer_hard_irqs"), u.errno.unwrap_or(EACCES));
        }
        return;
    };
    let d = &napi.device;
    let files = [
        ("napi_defer_hard_irqs", d.defer_hard_irqs.map(u64::from)),
        ("gro_flush_timeout", d.gro_flush_timeout_ns),
        ("threaded", d.threaded.map(u64::from)),
    ];
    for (name, n) in files {
        if let Some(n) = n {
            t.file(format!("{dir}/{name}"), n);
        }
    }
    for n in &napi.instances {
        let Some(thread) = &n.thread else { continue };
        let name: String = format!("napi/{}-{}", nic.dev.name, n.id).chars().take(15).collect();
        t.file(format!("/proc/{}/comm", thread.pid), &name);
        let cpus = thread.cpus.known().map(CpuSet::to_string).unwrap_or_default();
        t.file(format!("/proc/{}/status", thread.pid), format!("Name:\t{name}\nCpus_allowed_list:\t{cpus}"));
    }
}

/// kernel/sched/syscalls.c: online CPUs of the set; none is EINVAL.
pub(super) fn set_cpus(s: &mut State, pid: u32, cpus: &[u32]) -> Result<()> {
    let set: CpuSet = cpus.iter().copied().map(CpuId).collect();
    if !set.intersects(&s.topology.online) {
        return Err(no(EINVAL));
    }
    for (i, nic) in s.nics.iter_mut().enumerate() {
        let Fact::Known(napi) = &mut nic.napi else { continue };
        let found = napi.instances.iter_mut().filter_map(|n| n.thread.as_mut()).find(|t| t.pid == pid);
        if let Some(t) = found {
            t.cpus = Fact::Known(set);
            s.extra[i].tree = None;
            return Ok(());
        }
    }
    Err(no(ESRCH))
}

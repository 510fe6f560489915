//! NAPI settings: of the device (sysfs), of one queue (netdev netlink, 6.13 and later), and its threads.

use ringwise_model::errno::{EINVAL, ENOENT, EOPNOTSUPP, ERANGE, ESRCH};
use ringwise_model::{CpuSet, Fact, Napi, NapiInstance, NapiValues, Nic, Snapshot};

use crate::{
    Address, Descriptor, Family, Match, NotProjected, Reaction, Setting, VectorName, known, nic, path, set_text,
};

pub(crate) struct NapiFamily;

impl Descriptor for NapiFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        addresses(nic)
    }

    fn label(&self, address: &Address) -> String {
        match address {
            Address::Napi { dev, of } => format!("{dev} NAPI {of}"),
            Address::NapiThread { dev, of } => format!("{dev} NAPI thread CPU {of}"),
            other => format!("{} NAPI", other.dev().unwrap_or_default()),
        }
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        match (address.dev().and_then(|d| s.nic(d)), address) {
            (Some(n), Address::NapiDevice { .. }) => live_device(n),
            (Some(n), Address::Napi { of, .. }) => live(n, *of),
            (Some(n), Address::NapiThread { of, .. }) => live_thread(n, *of),
            _ => Fact::Absent,
        }
    }

    fn equivalent(&self, _: &Snapshot, want: &Setting, got: &Setting) -> Match {
        match (want, got) {
            (Setting::NapiDevice { values, .. }, Setting::NapiDevice { values: got, .. })
            | (Setting::Napi { values, .. }, Setting::Napi { values: got, .. }) => compare(values, got),
            _ if want == got => Match::Same,
            _ => Match::Differs,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        match setting {
            Setting::NapiDevice { dev, values } => project_device(known(&mut nic(s, dev)?.napi)?, values),
            Setting::Napi { dev, of, values } => project(nic(s, dev)?, *of, values),
            Setting::NapiThread { dev, of, cpus } => project_thread(nic(s, dev)?, *of, cpus),
            _ => Err(NotProjected::OTHER_FAMILY),
        }
    }

    fn react(&self, address: &Address, errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        let meaning = match (address, errno?) {
            (Address::NapiDevice { .. } | Address::Napi { .. }, EINVAL | ERANGE) => {
                (Reaction::Refused, "this kernel does not accept the value")
            }
            (Address::NapiDevice { .. } | Address::Napi { .. }, EOPNOTSUPP) => (
                Reaction::Refused,
                "this kernel has no such setting, or the driver does not support this kind of polling",
            ),
            (Address::NapiDevice { .. }, ENOENT) => (Reaction::Refused, "this kernel has no such setting for a device"),
            // Each attempt looks up the id again.
            (Address::Napi { .. }, ENOENT) => (Reaction::Retry, "the NAPI instance was replaced meanwhile"),
            (Address::NapiThread { .. }, ESRCH) => (Reaction::Retry, "the NAPI thread was replaced meanwhile"),
            (Address::NapiThread { .. }, EINVAL) => (Reaction::Fail, "no CPU of the set is online"),
            _ => return None,
        };
        Some(meaning)
    }

    /// A value for the device is written to each of its queues. A new thread may run on any CPU.
    fn invalidates(&self, address: &Address) -> &'static [Family] {
        match address {
            Address::NapiDevice { .. } | Address::Napi { .. } => &[Family::Napi],
            _ => &[],
        }
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::NapiDevice { values, .. } | Setting::Napi { values, .. } => text(values),
            Setting::NapiThread { cpus, .. } => set_text(cpus),
            _ => String::new(),
        }
    }

    fn command(&self, now: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::NapiDevice { dev, values } => Some(device_command(dev, values)),
            Setting::Napi { dev, of, values } => command(now, dev, *of, values),
            Setting::NapiThread { dev, of, cpus } => thread_command(now, dev, *of, cpus),
            _ => None,
        }
    }
}

/// NAPI values of the device in this snapshot.
pub fn live_device(nic: &Nic) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.napi.as_ref().map(|n: &Napi| Setting::NapiDevice { dev, values: n.device })
}

/// The NAPI instance that serves a queue.
pub fn instance(nic: &Nic, of: VectorName) -> Option<&NapiInstance> {
    let all = &nic.napi.known()?.instances;
    all.iter().find(|i| match of {
        VectorName::Rx(q) => i.rx.contains(&q),
        VectorName::Tx(q) => i.tx.contains(&q),
        VectorName::Control(_) => false,
    })
}

/// NAPI values of the instance that serves a queue.
pub fn live(nic: &Nic, of: VectorName) -> Fact<Setting> {
    nic.napi.as_ref().and_then(|_| match instance(nic, of) {
        Some(i) => i.values.as_ref().map(|v| Setting::Napi { dev: nic.dev.name.clone(), of, values: *v }),
        None => Fact::Absent,
    })
}

/// CPUs of the NAPI thread that polls a queue.
pub fn live_thread(nic: &Nic, of: VectorName) -> Fact<Setting> {
    nic.napi.as_ref().and_then(|_| match instance(nic, of).and_then(|i| i.thread.as_ref()) {
        Some(t) => t.cpus.as_ref().map(|c| Setting::NapiThread { dev: nic.dev.name.clone(), of, cpus: c.clone() }),
        None => Fact::Absent,
    })
}

/// Names an instance by its first receive queue, else its first transmit queue.
pub fn name(i: &NapiInstance) -> Option<VectorName> {
    i.rx.first().map(|q| VectorName::Rx(*q)).or_else(|| i.tx.first().map(|q| VectorName::Tx(*q)))
}

/// Addresses of all NAPI settings of the device.
pub fn addresses(nic: &Nic) -> Vec<Address> {
    let dev = || nic.dev.name.clone();
    let Some(napi) = nic.napi.known() else { return Vec::new() };
    let mut out = vec![Address::NapiDevice { dev: dev() }];
    for i in &napi.instances {
        let Some(of) = name(i) else { continue };
        if i.values.is_known() {
            out.push(Address::Napi { dev: dev(), of });
        }
        if i.thread.is_some() {
            out.push(Address::NapiThread { dev: dev(), of });
        }
    }
    out
}

fn put(want: &NapiValues, into: &mut NapiValues) {
    into.defer_hard_irqs = want.defer_hard_irqs.or(into.defer_hard_irqs);
    into.gro_flush_timeout_ns = want.gro_flush_timeout_ns.or(into.gro_flush_timeout_ns);
    into.irq_suspend_timeout_ns = want.irq_suspend_timeout_ns.or(into.irq_suspend_timeout_ns);
    into.threaded = want.threaded.or(into.threaded);
}

/// The files of a device set all its instances (net/core/dev.c, `netdev_set_defer_hard_irqs` and similar functions).
pub(crate) fn project_device(all: &mut Napi, want: &NapiValues) -> Result<(), NotProjected> {
    put(want, &mut all.device);
    for i in &mut all.instances {
        if let Fact::Known(v) = &mut i.values {
            put(want, v);
        }
    }
    Ok(())
}

fn instance_mut(nic: &mut Nic, of: VectorName) -> Result<&mut NapiInstance, NotProjected> {
    let id = instance(nic, of).map(|i| i.id);
    let all = &mut known(&mut nic.napi)?.instances;
    all.iter_mut().find(|i| Some(i.id) == id).ok_or(NotProjected("no NAPI instance serves this queue"))
}

pub(crate) fn project(nic: &mut Nic, of: VectorName, want: &NapiValues) -> Result<(), NotProjected> {
    put(want, known(&mut instance_mut(nic, of)?.values)?);
    Ok(())
}

pub(crate) fn project_thread(nic: &mut Nic, of: VectorName, cpus: &CpuSet) -> Result<(), NotProjected> {
    let thread = instance_mut(nic, of)?.thread.as_mut();
    thread.ok_or(NotProjected("the queue is not polled by a thread"))?.cpus = Fact::Known(cpus.clone());
    Ok(())
}

/// The values in `want` that differ from `have`. The kernel leaves omitted values unchanged.
pub fn differ(want: &NapiValues, have: Option<&NapiValues>) -> NapiValues {
    fn one<T: PartialEq>(w: Option<T>, h: Option<T>) -> Option<T> {
        if w == h { None } else { w }
    }
    let Some(h) = have else { return *want };
    NapiValues {
        defer_hard_irqs: one(want.defer_hard_irqs, h.defer_hard_irqs),
        gro_flush_timeout_ns: one(want.gro_flush_timeout_ns, h.gro_flush_timeout_ns),
        irq_suspend_timeout_ns: one(want.irq_suspend_timeout_ns, h.irq_suspend_timeout_ns),
        threaded: one(want.threaded, h.threaded),
    }
}

/// Compares only the values that were requested.
pub fn compare(want: &NapiValues, got: &NapiValues) -> Match {
    fn same<T: PartialEq>(w: Option<T>, g: Option<T>) -> bool {
        w.is_none() || w == g
    }
    let all = same(want.defer_hard_irqs, got.defer_hard_irqs)
        && same(want.gro_flush_timeout_ns, got.gro_flush_timeout_ns)
        && same(want.irq_suspend_timeout_ns, got.irq_suspend_timeout_ns)
        && same(want.threaded, got.threaded);
    if all { Match::Same } else { Match::Differs }
}

/// Text of the values for people.
pub fn text(v: &NapiValues) -> String {
    let parts = [
        ("defer-hard-irqs", v.defer_hard_irqs.map(u64::from)),
        ("gro-flush-timeout", v.gro_flush_timeout_ns),
        ("irq-suspend-timeout", v.irq_suspend_timeout_ns),
        ("threaded", v.threaded.map(u64::from)),
    ];
    let s: Vec<String> = parts.iter().filter_map(|(k, n)| n.map(|n| format!("{k} {n}"))).collect();
    s.join(" ")
}

/// The commands that write the values of the device.
pub fn device_command(dev: &str, v: &NapiValues) -> String {
    let each = device_files(dev, v).into_iter();
    let s: Vec<String> = each.filter_map(|(_, path, n)| n.map(|n| format!("echo {n} > {path}"))).collect();
    s.join("; ")
}

/// Name, path and value of each file of the device, in the order in which they are written.
pub fn device_files(dev: &str, v: &NapiValues) -> [(&'static str, String, Option<u64>); 3] {
    let values = [v.defer_hard_irqs.map(u64::from), v.gro_flush_timeout_ns, v.threaded.map(u64::from)];
    std::array::from_fn(|i| (path::NAPI[i], path::of_device(dev, path::NAPI[i]), values[i]))
}

/// Neither ethtool nor a file sets these values: the netdev netlink family sets them, by an id that can change.
pub fn command(now: &Snapshot, dev: &str, of: VectorName, v: &NapiValues) -> Option<String> {
    let id = instance(now.nic(dev)?, of)?.id;
    let parts = [
        ("defer-hard-irqs", v.defer_hard_irqs.map(u64::from)),
        ("gro-flush-timeout", v.gro_flush_timeout_ns),
        ("irq-suspend-timeout", v.irq_suspend_timeout_ns),
        ("threaded", v.threaded.map(u64::from)),
    ];
    let s: Vec<String> = parts.iter().filter_map(|(k, n)| n.map(|n| format!("\"{k}\": {n}"))).collect();
    Some(format!("ynl --family netdev --do napi-set --json '{{\"id\": {id}, {}}}'", s.join(", ")))
}

/// The command that sets the CPUs of the NAPI thread.
pub fn thread_command(now: &Snapshot, dev: &str, of: VectorName, cpus: &CpuSet) -> Option<String> {
    let pid = instance(now.nic(dev)?, of)?.thread.as_ref()?.pid;
    Some(format!("taskset -pc {cpus} {pid}"))
}

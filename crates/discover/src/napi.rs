//! NAPI settings: of the device from sysfs, of its instances from the netdev family, of their threads from procfs.

use ringwise_kfmt::{ParseError, sysfs, task};
use ringwise_knob::path;
use ringwise_model::order::Order;
use ringwise_model::{CpuSet, Dir, Fact, Napi, NapiInstance, NapiThread, NapiValues};
use ringwise_sys::{Error, Host};

use crate::irq::{self, Genl};
use crate::read::{Reader, failed};

/// Unknown if one of the parts cannot be read, because a missing value would mean that the kernel does not have the
/// setting.
pub(crate) fn napi(r: &mut Reader, dev: &str, genl: &Genl) -> Fact<Napi> {
    let found = device(r.host, dev).and_then(|device| match &genl.asked {
        Fact::Unknown(u) => Fact::Unknown(u.clone()),
        _ => Fact::Known(Napi { device, instances: instances(r.host, genl, device.threaded) }),
    });
    match &found {
        // A recording of an earlier version, or a value that is listed already.
        Fact::Unknown(u) if (u.errno.is_none() && r.host.is_recorded()) || r.unread.contains(u) => found,
        _ => r.note(found),
    }
}

fn device(host: &dyn Host, dev: &str) -> Fact<NapiValues> {
    let (defer, flush, threaded) = (
        file(host, dev, path::NAPI[0], sysfs::parse_u32),
        file(host, dev, path::NAPI[1], sysfs::parse_u64),
        file(host, dev, path::NAPI[2], sysfs::parse_u32),
    );
    match (defer, flush, threaded) {
        (Fact::Unknown(u), ..) | (_, Fact::Unknown(u), _) | (.., Fact::Unknown(u)) => Fact::Unknown(u),
        (defer, flush, threaded) => Fact::Known(NapiValues {
            defer_hard_irqs: defer.known().copied(),
            gro_flush_timeout_ns: flush.known().copied(),
            irq_suspend_timeout_ns: None,
            threaded: threaded.known().copied(),
        }),
    }
}

fn file<T>(host: &dyn Host, dev: &str, name: &str, parse: fn(&str) -> Result<T, ParseError>) -> Fact<T> {
    let path = path::of_device(dev, name);
    match host.read_text(&path) {
        Ok(text) => parse(&text).map_or_else(|e| Fact::unknown(path, e.to_string()), Fact::Known),
        Err(e) => failed(&path, &e),
    }
}

/// Instances that serve queues, in order of their first queue. A kernel that cannot set a single instance (before 6.17)
/// keeps threads that were switched off; they poll nothing and are omitted.
fn instances(host: &dyn Host, genl: &Genl, of_device: Option<u32>) -> Vec<NapiInstance> {
    let polls = |v: Option<NapiValues>| v.and_then(|v| v.threaded).or(of_device).is_none_or(|t| t > 0);
    let of = |dir: Dir, id: u32| -> Vec<u32> {
        genl.napi.iter().filter(|((d, _), n)| *d == dir && **n == id).map(|((_, q), _)| *q).collect()
    };
    let mut out: Vec<NapiInstance> = genl
        .instances
        .known()
        .into_iter()
        .flatten()
        .map(|i| NapiInstance {
            id: i.id,
            rx: of(Dir::Rx, i.id),
            tx: of(Dir::Tx, i.id),
            values: i.values().map_or(Fact::Absent, Fact::Known),
            thread: i.pid.filter(|_| polls(i.values())).map(|pid| NapiThread { pid, cpus: cpus(host, pid) }),
        })
        .filter(|i| !(i.rx.is_empty() && i.tx.is_empty()))
        .collect();
    out.order_by_key(|i| (i.rx.is_empty(), i.rx.first().copied(), i.tx.first().copied()));
    out
}

fn cpus(host: &dyn Host, pid: u32) -> Fact<CpuSet> {
    let path = path::of_task(pid, "status");
    match host.read_text(&path) {
        Ok(text) => task::cpus_allowed(&text).map_or_else(|e| Fact::unknown(path, e.to_string()), Fact::Known),
        Err(e) => failed(&path, &e),
    }
}

/// IDs and threads may have changed.
pub(crate) fn again(r: &mut Reader, dev: &str) -> Fact<Napi> {
    let genl = irq::genl(r, dev);
    napi(r, dev, &genl)
}

/// Whether a task is a thread that polls queues. Its PID may belong to another task by now.
///
/// Errors: its name cannot be read, or is that of another task.
pub fn is_thread(host: &dyn Host, pid: u32) -> Result<(), Error> {
    let path = path::of_task(pid, "comm");
    let name = host.read_text(&path)?;
    match task::is_napi_thread(&name) {
        true => Ok(()),
        false => Err(Error::other(path, format!("task {pid} is \"{}\", which is not a NAPI thread", name.trim()))),
    }
}

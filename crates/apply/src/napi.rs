//! NAPI settings: files of the device, `napi-set` of the netdev family, and the affinity of the threads.

use ringwise_kfmt::netdev_nl;
use ringwise_knob::{Address, VectorName, napi};
use ringwise_model::{CpuSet, Fact, NapiInstance, NapiValues, Snapshot, Unread};
use ringwise_sys::{Error, Request};

use crate::error::NotWritten;
use crate::host_access::HostAccess;

/// Each file sets all NAPI instances of the device. If the kernel refuses one, the earlier ones are restored.
pub(crate) fn write_device(
    cx: &HostAccess,
    now: &Snapshot,
    dev: &str,
    values: &NapiValues,
) -> ringwise_sys::Result<()> {
    if values.irq_suspend_timeout_ns.is_some() {
        return Err(Error::other(
            format!("{dev} NAPI"),
            "irq-suspend-timeout can only be set for single NAPI instances",
        ));
    }
    let was = now.nic(dev).and_then(|n| n.napi.known()).map(|n| n.device).unwrap_or_default();
    let before = napi::device_files(dev, &was);
    let write = |path: &str, n: u64| cx.write(path, format!("{n}\n"));
    let mut done: Vec<(&str, u64)> = Vec::new();
    // An equal value is written too: single instances may have other values.
    for ((_, path, want), (_, same, was)) in napi::device_files(dev, values).iter().zip(&before) {
        let Some(want) = want else { continue };
        if let Err(e) = write(path, *want) {
            for (path, was) in done.iter().rev() {
                // If restoring fails, the next discovery finds it.
                let _ = write(path, *was);
            }
            return Err(e);
        }
        done.extend(was.map(|was| (same.as_str(), was)));
    }
    Ok(())
}

/// The instance that serves the queue at this moment: NAPI IDs change when a device restarts.
fn instance(cx: &HostAccess, now: &Snapshot, dev: &str, of: VectorName) -> Result<NapiInstance, NotWritten> {
    let mut fresh = now.clone();
    if let Fact::Unknown(u) = cx.read(&mut fresh, &Address::NapiDevice { dev: dev.to_string() }) {
        return Err(NotWritten::Read(u));
    }
    let found = fresh.nic(dev).and_then(|n| napi::instance(n, of)).cloned();
    let none = || Unread::new(format!("{dev} NAPI {of}"), None, "no NAPI instance serves this queue now");
    found.ok_or_else(|| NotWritten::Read(none()))
}

pub(crate) fn write(
    cx: &HostAccess,
    now: &Snapshot,
    dev: &str,
    of: VectorName,
    values: &NapiValues,
) -> Result<(), NotWritten> {
    let i = instance(cx, now, dev, of)?;
    let attrs = netdev_nl::napi_set(i.id, &napi::differ(values, i.values.known()));
    let request = Request::NetdevSet { cmd: netdev_nl::cmd::NAPI_SET, name: "napi-set", dev: dev.to_string(), attrs };
    Ok(cx.order(request)?)
}

pub(crate) fn write_thread(
    cx: &HostAccess,
    now: &Snapshot,
    dev: &str,
    of: VectorName,
    cpus: &CpuSet,
) -> Result<(), NotWritten> {
    let what = || format!("{dev} NAPI thread {of}");
    let i = instance(cx, now, dev, of)?;
    let t = i.thread.ok_or_else(|| Error::other(what(), "the queue is not polled by a thread"))?;
    cx.trying(what, move |h| ringwise_discover::is_thread(h, t.pid))?;
    Ok(cx.order(Request::ThreadCpus { pid: t.pid, cpus: cpus.iter().map(|c| c.0).collect() })?)
}

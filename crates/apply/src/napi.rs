//! NAPI settings: files of the device, `napi-set` of the netdev family, affinity of the threads.

use ringwise_knob::Of;
use ringwise_model::{CpuSet, NapiValues, Snapshot};
use ringwise_sys::{Error, Result};

use crate::cx::Cx;

pub(crate) fn write_device(_cx: &Cx, _dev: &str, _values: &NapiValues) -> Result<()> {
    Err(Error::other("setting", "not written by this version"))
}

pub(crate) fn write(_cx: &Cx, _now: &Snapshot, _dev: &str, _of: Of, _values: &NapiValues) -> Result<()> {
    Err(Error::other("setting", "not written by this version"))
}

pub(crate) fn write_thread(_cx: &Cx, _now: &Snapshot, _dev: &str, _of: Of, _cpus: &CpuSet) -> Result<()> {
    Err(Error::other("setting", "not written by this version"))
}

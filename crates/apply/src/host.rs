//! sysctls of the network core, wake-up time of CPUs.

use ringwise_model::{CpuId, Snapshot};
use ringwise_sys::{Error, Result};

use crate::cx::Cx;

pub(crate) fn write_sysctl(_cx: &Cx, _name: &str, _value: &str) -> Result<()> {
    Err(Error::other("setting", "not written by this version"))
}

pub(crate) fn write_latency(_cx: &Cx, _cpu: CpuId, _value: &str) -> Result<()> {
    Err(Error::other("setting", "not written by this version"))
}

/// Reads the one file again.
pub(crate) fn read_sysctl(_cx: &Cx, _now: &mut Snapshot, _name: &str) {}

pub(crate) fn read_latency(_cx: &Cx, _now: &mut Snapshot, _cpu: CpuId) {}

//! Interrupt vectors that CPUs have left.

use std::collections::BTreeMap;

use ringwise_knob::path::FREE_VECTORS;
use ringwise_model::{CpuId, Fact};
use ringwise_sys::Host;

use crate::read::Reader;

/// The vectors that each online CPU has left. Absent: this kernel does not show them (another architecture than x86, no
/// CONFIG_GENERIC_IRQ_DEBUGFS, or debugfs is not mounted).
pub fn free_vectors(host: &dyn Host) -> Fact<BTreeMap<CpuId, u32>> {
    Reader::new(host).parse(FREE_VECTORS, ringwise_kfmt::free_vectors::parse)
}

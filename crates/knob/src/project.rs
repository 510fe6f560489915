//! Projects a setting onto a snapshot: the result is the snapshot that would be read after the kernel accepted the
//! setting.
//!
//! ```text
//!   Snapshot ── project(setting) ──► Snapshot ── live(address) ──► what the kernel keeps of it
//! ```
//!
//! The projection applies the documented changes that the kernel and drivers make to a value (rounding, dropped CPUs). It
//! omits values that a driver chooses itself (interrupts of new queues), because they cannot be known.

use std::fmt;

use ringwise_model::{Fact, Nic, RxQueue, Snapshot, TxQueue};

use crate::{Setting, offline};

/// The snapshot does not contain the object of the setting, or the kernel would refuse the setting there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotProjected(pub &'static str);

impl fmt::Display for NotProjected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for NotProjected {}

impl NotProjected {
    pub(crate) const OTHER_FAMILY: Self = Self("a setting of another family");
}

type Done = Result<(), NotProjected>;

const NO_QUEUE: NotProjected = NotProjected("no such queue");

/// Writes one setting into the snapshot, with the value that the kernel would keep.
///
/// Errors: the snapshot stays unchanged.
pub fn project(s: &mut Snapshot, setting: &Setting) -> Done {
    let online = &s.topology.online;
    let kept = match online.is_empty() {
        true => setting.clone(),
        false => offline::accepted(setting, online).ok_or(NotProjected("none of its CPUs is online"))?,
    };
    match kept.family() {
        Some(family) => family.descriptor().project(s, &kept),
        None => Err(NotProjected("written by a newer version of ringwise")),
    }
}

pub(crate) fn nic<'a>(s: &'a mut Snapshot, dev: &str) -> Result<&'a mut Nic, NotProjected> {
    s.nics.iter_mut().find(|n| n.dev.name == dev).ok_or(NotProjected("no such device"))
}

pub(crate) fn rx_queue<'a>(s: &'a mut Snapshot, dev: &str, queue: u32) -> Result<&'a mut RxQueue, NotProjected> {
    nic(s, dev)?.rx_queues.iter_mut().find(|q| q.id == queue).ok_or(NO_QUEUE)
}

pub(crate) fn tx_queue<'a>(s: &'a mut Snapshot, dev: &str, queue: u32) -> Result<&'a mut TxQueue, NotProjected> {
    nic(s, dev)?.tx_queues.iter_mut().find(|q| q.id == queue).ok_or(NO_QUEUE)
}

pub(crate) fn known<T>(f: &mut Fact<T>) -> Result<&mut T, NotProjected> {
    match f {
        Fact::Known(v) => Ok(v),
        Fact::Absent => Err(NotProjected("the device does not have this setting")),
        Fact::Unknown(_) => Err(NotProjected("the value of the device is unknown")),
    }
}

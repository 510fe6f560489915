//! What an errno means for a setting, classified once.

use crate::Address;
use crate::errno::{EACCES, EAGAIN, EBUSY, EINTR, EINVAL, ENODEV, ENOENT, ENOSPC, ENXIO, EOPNOTSUPP, EPERM, EROFS};

/// What to do about a write that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// May pass by itself: try again, a bounded number of times.
    Retry,
    /// A property of the device or kernel, for good: a fact to remember, not a fault of the host.
    Refused,
    /// Put everything back.
    Fail,
}

/// What EOVERFLOW and ERANGE mean for a mask of CPUs.
pub(crate) const NO_SUCH_CPU: (Reaction, &str) =
    (Reaction::Fail, "a CPU number beyond those that this kernel can have");

/// The reaction, and the errno's meaning for this setting in a sentence.
///
/// Sources: kernel/irq/proc.c (EIO before 6.12-ish, EPERM after, for vectors that cannot be moved),
/// arch/x86/kernel/apic/vector.c (ENOSPC), net/core/net-sysfs.c, net/ethtool/channels.c; lab.md section 2.
pub fn react(address: &Address, errno: Option<i32>) -> (Reaction, &'static str) {
    if let Some(meaning) = address.family().descriptor().react(address, errno) {
        return meaning;
    }
    let Some(e) = errno else {
        return (Reaction::Fail, "the kernel gave no answer");
    };
    match e {
        EINTR | EAGAIN => (Reaction::Retry, "interrupted, may pass"),
        EBUSY => (Reaction::Retry, "busy, may pass"),
        EACCES => (Reaction::Fail, "no permission: needs root"),
        EROFS => (Reaction::Fail, "mounted read-only, as in a container"),
        ENODEV | ENXIO => (Reaction::Fail, "the device went away"),
        EPERM => (Reaction::Fail, "not permitted: needs CAP_NET_ADMIN in the network namespace of the device"),
        ENOENT => (Reaction::Fail, "the queue is gone: the device was restarted with fewer queues"),
        EOPNOTSUPP => (Reaction::Refused, "the driver does not support it"),
        EINVAL => (Reaction::Fail, "the kernel or driver refuses the value"),
        ENOSPC => (Reaction::Fail, "a resource of the device or kernel is used up"),
        _ => (Reaction::Fail, "unexpected"),
    }
}

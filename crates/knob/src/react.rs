//! The meaning of an errno for each setting.

use crate::Address;
use ringwise_model::errno::{
    EACCES, EAGAIN, EBUSY, EINTR, EINVAL, ENODEV, ENOENT, ENOSPC, ENXIO, EOPNOTSUPP, EPERM, EROFS,
};

/// How to react to a failed write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// The cause may be temporary: try again, a limited number of times.
    Retry,
    /// The device or kernel does not support this: remember it; it is not a fault of the host.
    Refused,
    /// Roll everything back.
    Fail,
}

/// The meaning of EOVERFLOW and ERANGE for a mask of CPUs.
pub(crate) const NO_SUCH_CPU: (Reaction, &str) = (Reaction::Fail, "a CPU number is above the maximum of this kernel");

/// The reaction, and a sentence with the meaning of the errno for this setting.
///
/// Sources: kernel/irq/proc.c (EIO before 6.12-ish, EPERM after, for vectors that cannot be moved),
/// arch/x86/kernel/apic/vector.c (ENOSPC), net/core/net-sysfs.c, net/ethtool/channels.c; lab.md section 2.
pub fn react(address: &Address, errno: Option<i32>) -> (Reaction, &'static str) {
    if let Some(meaning) = address.family().descriptor().react(address, errno) {
        return meaning;
    }
    let Some(e) = errno else {
        return (Reaction::Fail, "the kernel did not answer");
    };
    match e {
        EINTR | EAGAIN => (Reaction::Retry, "interrupted, which may be temporary"),
        EBUSY => (Reaction::Retry, "busy, which may be temporary"),
        EACCES => (Reaction::Fail, "no permission: needs root"),
        EROFS => (Reaction::Fail, "the file system is mounted read-only, as in a container"),
        ENODEV | ENXIO => (Reaction::Fail, "the device went away"),
        EPERM => (Reaction::Fail, "not permitted: needs CAP_NET_ADMIN in the network namespace of the device"),
        ENOENT => (Reaction::Fail, "the queue no longer exists: the device was restarted with fewer queues"),
        EOPNOTSUPP => (Reaction::Refused, "the driver does not support it"),
        EINVAL => (Reaction::Fail, "the kernel or driver refuses the value"),
        ENOSPC => (Reaction::Fail, "a resource of the device or kernel is exhausted"),
        _ => (Reaction::Fail, "unexpected error"),
    }
}

//! What an errno means for a setting, classified once.

use crate::Address;

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

/// The reaction, and the errno's meaning for this setting in a sentence.
///
/// Sources: kernel/irq/proc.c (EIO before 6.12-ish, EPERM after, for vectors that cannot be moved),
/// arch/x86/kernel/apic/vector.c (ENOSPC), net/core/net-sysfs.c, net/ethtool/channels.c; lab.md section 2.
pub fn react(address: &Address, errno: Option<i32>) -> (Reaction, &'static str) {
    const EPERM: i32 = 1;
    const ENOENT: i32 = 2;
    const ESRCH: i32 = 3;
    const EINTR: i32 = 4;
    const EIO: i32 = 5;
    const ENXIO: i32 = 6;
    const EAGAIN: i32 = 11;
    const EACCES: i32 = 13;
    const EBUSY: i32 = 16;
    const EEXIST: i32 = 17;
    const ENODEV: i32 = 19;
    const EINVAL: i32 = 22;
    const ENOSPC: i32 = 28;
    const EROFS: i32 = 30;
    const ERANGE: i32 = 34;
    const EOVERFLOW: i32 = 75;
    const EOPNOTSUPP: i32 = 95;
    const ECONNREFUSED: i32 = 111;
    const EMSGSIZE: i32 = 90;
    if let Address::IrqbalanceRestart { .. } = address {
        return (Reaction::Refused, "when irqbalance is restarted, it will move these interrupts again");
    }
    let Some(e) = errno else {
        // Tables, keys and contexts that cannot be are not even sent: the words say why.
        let asked = address.family() != crate::Family::Rss;
        return (
            Reaction::Fail,
            if asked { "the kernel gave no answer" } else { "it was not written, or not answered" },
        );
    };
    match (address, e) {
        (Address::IrqbalanceBan { .. }, EMSGSIZE) => {
            (Reaction::Refused, "the list of bans is longer than irqbalance reads from its socket")
        }
        (Address::IrqbalanceBan { .. }, ENOENT | ECONNREFUSED) => {
            (Reaction::Retry, "irqbalance is being restarted, or went away")
        }
        (_, EINTR | EAGAIN) => (Reaction::Retry, "interrupted, may pass"),
        (a, EBUSY) if !matches!(a, Address::RssContext { .. }) => (Reaction::Retry, "busy, may pass"),
        (_, EACCES) => (Reaction::Fail, "no permission: needs root"),
        (_, EROFS) => (Reaction::Fail, "mounted read-only, as in a container"),
        (_, ENODEV | ENXIO) => (Reaction::Fail, "the device went away"),
        (Address::IrqCpus { .. }, EPERM | EIO) => {
            (Reaction::Refused, "the kernel manages this interrupt's CPU itself, or it cannot be moved")
        }
        (Address::IrqCpus { .. }, ENOSPC) => (Reaction::Fail, "no interrupt vector is left on that CPU"),
        (Address::IrqCpus { .. }, EINVAL) => (Reaction::Fail, "no CPU of the set is online"),
        (Address::IrqCpus { .. } | Address::XpsCpus { .. } | Address::RpsCpus { .. }, EOVERFLOW | ERANGE) => {
            (Reaction::Fail, "a CPU number beyond those that this kernel can have")
        }
        (Address::IrqCpus { .. }, ENOENT) => {
            (Reaction::Fail, "the interrupt is gone: the device was restarted meanwhile")
        }
        (Address::XpsCpus { .. } | Address::XpsRxqs { .. }, ENOENT | EOPNOTSUPP) => {
            (Reaction::Refused, "a device with one transmit queue has no XPS")
        }
        (Address::Feature { .. } | Address::Ntuple { .. }, EOPNOTSUPP) => {
            (Reaction::Refused, "this kernel knows no such feature, or the driver does not support it")
        }
        (Address::Pause { .. }, EINVAL) => (
            Reaction::Refused,
            "the driver refuses this combination: with autonegotiation the partner has a say, some want rx and tx alike",
        ),
        (Address::Sysctl { .. }, ENOENT) => {
            (Reaction::Refused, "this kernel has no such sysctl in this network namespace")
        }
        (Address::CpuLatency { .. }, ENOENT) => (Reaction::Refused, "this kernel has no wake-up time for CPUs"),
        (Address::CpuLatency { .. }, EINVAL) => {
            (Reaction::Fail, "microseconds, 0 (no limit) or n/a (no waiting at all) are taken")
        }
        (Address::FlowRule { .. }, EEXIST) => (Reaction::Fail, "the device has the same rule at another location"),
        (Address::FlowRule { .. }, ENOENT) => (Reaction::Fail, "there is no rule at this location any more"),
        (Address::FlowRule { .. }, ENOSPC) => {
            (Reaction::Fail, "the device has no room for the rule, or its location is beyond the table")
        }
        (Address::FlowRule { .. }, EINVAL) => (
            Reaction::Fail,
            "the driver refuses the rule: a queue or context that does not exist, or a field or mask that it cannot match",
        ),
        (Address::FlowRule { .. }, EOPNOTSUPP) => {
            (Reaction::Refused, "the driver has no rules for this flow type or field, or none while ntuple is off")
        }
        (Address::Coalesce { .. } | Address::QueueCoalesce { .. }, EINVAL | ERANGE) => {
            (Reaction::Refused, "the driver does not take this value, this parameter, or not together with the others")
        }
        (Address::QueueCoalesce { .. }, EOPNOTSUPP) => {
            (Reaction::Refused, "the driver moderates the device only, or this queue not by itself")
        }
        (Address::NapiDevice { .. } | Address::Napi { .. }, EINVAL | ERANGE) => {
            (Reaction::Refused, "this kernel does not take the value")
        }
        (Address::NapiDevice { .. } | Address::Napi { .. }, EOPNOTSUPP) => {
            (Reaction::Refused, "this kernel has no such setting, or the driver does not let its queues be polled so")
        }
        (Address::NapiDevice { .. }, ENOENT) => (Reaction::Refused, "this kernel has no such setting of a device"),
        // Its id is looked up again at each try.
        (Address::Napi { .. }, ENOENT) => (Reaction::Retry, "the instance was replaced meanwhile"),
        (Address::NapiThread { .. }, ESRCH) => (Reaction::Retry, "the thread was replaced meanwhile"),
        (Address::NapiThread { .. }, EINVAL) => (Reaction::Fail, "no CPU of the set is online"),
        (Address::RssTable { .. }, EINVAL) => {
            (Reaction::Fail, "a queue that does not exist, or a table of another size than the device's")
        }
        (Address::RssHash { .. }, EINVAL) => (
            Reaction::Fail,
            "the driver does not take this key or function, some flow type hashes fields that are not symmetric, or the \
             kernel has no transforms (Linux 6.8 and later)",
        ),
        (Address::RssHash { .. }, EOPNOTSUPP) => {
            (Reaction::Refused, "the driver has another hash function, key or transform only")
        }
        (Address::RssFields { .. }, EINVAL | EOPNOTSUPP) => {
            (Reaction::Refused, "the driver does not hash these fields for this flow type")
        }
        (Address::RssContext { .. }, EBUSY) => (Reaction::Fail, "a flow rule sends to this context"),
        (Address::RssContext { .. }, ENOENT) => (Reaction::Fail, "the context is gone: somebody has deleted it"),
        (Address::RssContext { .. }, ENOSPC | ERANGE) => (Reaction::Fail, "the device has no room for another context"),
        (Address::RssContext { .. }, EINVAL) => {
            (Reaction::Fail, "a queue that does not exist, or a table or key that the device does not take")
        }
        (_, EPERM) => (Reaction::Fail, "not permitted: needs CAP_NET_ADMIN in the network namespace of the device"),
        (_, ENOENT) => (Reaction::Fail, "the queue is gone: the device was restarted with fewer queues"),
        (_, EOPNOTSUPP) => (Reaction::Refused, "the driver does not support it"),
        (_, EINVAL) => (Reaction::Fail, "the kernel or driver refuses the value"),
        (_, ENOSPC) => (Reaction::Fail, "a resource of the device or kernel is used up"),
        _ => (Reaction::Fail, "unexpected"),
    }
}

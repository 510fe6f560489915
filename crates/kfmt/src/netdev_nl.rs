//! Messages of the netdev generic netlink family (Documentation/netlink/specs/netdev.yaml, 6.8 and later): which NAPI
//! instance polls a queue, and which interrupt wakes that instance.

mod device;
mod page_pool;
mod qstats;

use ringwise_model::{Dir, IfIndex, IrqId, NapiValues};

use crate::ParseError;
use crate::nl::{Attrs, Builder, TooLong, attrs};

pub use device::{xdp_metadata, xdp_metadata_reply};
pub use page_pool::{PagePool, PagePoolStats, page_pool, page_pool_reply, page_pool_stats, page_pool_stats_reply};
pub use qstats::{QueueStats, qstats, qstats_reply};

/// Commands of the family.
pub mod cmd {
    /// Reads the XDP and AF_XDP features of a device. Since 6.3.
    pub const DEV_GET: u8 = 1;
    /// Reads page pools: interface, NAPI instance, memory. Since 6.8.
    pub const PAGE_POOL_GET: u8 = 5;
    /// Reads counters of page pools. Since 6.8, with CONFIG_PAGE_POOL_STATS.
    pub const PAGE_POOL_STATS_GET: u8 = 9;
    /// Reads queues: type, NAPI instance, what is bound to them.
    pub const QUEUE_GET: u8 = 10;
    /// Reads NAPI instances: interrupt, thread, polling parameters.
    pub const NAPI_GET: u8 = 11;
    /// Reads packet and byte counters by queue. Since 6.10.
    pub const QSTATS_GET: u8 = 12;
    /// Since 6.13.
    pub const NAPI_SET: u8 = 14;
}

/// `NETDEV_A_QUEUE_*`.
pub(crate) mod queue_attr {
    pub(crate) const ID: u16 = 1;
    pub(crate) const IFINDEX: u16 = 2;
    pub(crate) const TYPE: u16 = 3;
    pub(crate) const NAPI_ID: u16 = 4;
    pub(crate) const DMABUF: u16 = 5;
    pub(crate) const IO_URING: u16 = 6;
    pub(crate) const XSK: u16 = 7;
    pub(crate) const LEASE: u16 = 8;
}

/// `NETDEV_A_LEASE_*`.
pub(crate) mod lease_attr {
    pub(crate) const IFINDEX: u16 = 1;
    pub(crate) const QUEUE: u16 = 2;
    pub(crate) const NETNS_ID: u16 = 3;
}

/// `NETDEV_A_NAPI_*`.
pub(crate) mod napi_attr {
    pub(crate) const IFINDEX: u16 = 1;
    pub(crate) const ID: u16 = 2;
    pub(crate) const IRQ: u16 = 3;
    pub(crate) const PID: u16 = 4;
    pub(crate) const DEFER_HARD_IRQS: u16 = 5;
    pub(crate) const GRO_FLUSH_TIMEOUT: u16 = 6;
    pub(crate) const IRQ_SUSPEND_TIMEOUT: u16 = 7;
    pub(crate) const THREADED: u16 = 8;
}

/// One queue in a `queue-get` reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueInfo {
    /// Interface of the queue.
    pub ifindex: IfIndex,
    /// `NETDEV_A_QUEUE_TYPE`: 0 receives, 1 transmits.
    pub dir: Dir,
    /// Number of the queue within its direction, from 0.
    pub id: u32,
    /// `None`: the driver does not link this queue to a NAPI instance, or the device is down.
    pub napi: Option<u32>,
    /// An AF_XDP socket is bound to the queue (attribute since 6.15).
    pub xsk: bool,
    /// Id of the DMA buffer that is bound to the queue (devmem TCP, since 6.12).
    pub dmabuf: Option<u32>,
    /// io_uring receives from the queue into memory of its program (since 6.15).
    pub io_uring: bool,
    /// The queue is leased to a virtual interface (since 7.1).
    pub lease: Option<Lease>,
}

impl QueueInfo {
    /// A queue without users and without a NAPI instance.
    pub fn unused(ifindex: IfIndex, dir: Dir, id: u32) -> Self {
        Self { ifindex, dir, id, napi: None, xsk: false, dmabuf: None, io_uring: false, lease: None }
    }
}

/// The queue of a virtual interface to which a queue of a device is leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Index of the virtual interface in its network namespace.
    pub ifindex: IfIndex,
    /// Number of the queue there.
    pub queue: u32,
    /// Id of the network namespace as seen from ours. `None`: the same one.
    pub netns: Option<i32>,
}

/// One NAPI instance in a `napi-get` reply. IDs change when the device restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NapiInfo {
    /// Interface of the instance.
    pub ifindex: IfIndex,
    /// NAPI id, unique on the host.
    pub id: u32,
    /// `None`: the driver does not report it.
    pub irq: Option<IrqId>,
    /// Kernel thread that polls, when NAPI is threaded.
    pub pid: Option<u32>,
    /// Empty polls before the interrupt is enabled again. `None`: the kernel does not report it.
    pub defer_hard_irqs: Option<u32>,
    /// Nanoseconds.
    pub gro_flush_timeout_ns: Option<u64>,
    /// Nanoseconds.
    pub irq_suspend_timeout_ns: Option<u64>,
    /// Since 6.17.
    pub threaded: Option<u32>,
}

impl NapiInfo {
    /// `None`: this kernel has these values only for the whole device (before 6.13).
    pub fn values(&self) -> Option<NapiValues> {
        self.defer_hard_irqs?;
        Some(NapiValues {
            defer_hard_irqs: self.defer_hard_irqs,
            gro_flush_timeout_ns: self.gro_flush_timeout_ns,
            irq_suspend_timeout_ns: self.irq_suspend_timeout_ns,
            threaded: self.threaded,
        })
    }
}

const QUEUE: &str = "queue-get reply";
const NAPI: &str = "napi-get reply";

/// Decodes one message of a `queue-get` dump.
pub fn queue(reply: &[u8]) -> Result<QueueInfo, ParseError> {
    let (mut ifindex, mut dir, mut id) = (None, None, None);
    let mut out = QueueInfo::unused(IfIndex(0), Dir::Rx, 0);
    for attr in attrs(reply) {
        let in_queue = |e| ParseError { what: QUEUE, ..e };
        let a = attr.map_err(in_queue)?;
        let number = || a.u32().map_err(in_queue);
        match a.kind {
            queue_attr::ID => id = Some(number()?),
            queue_attr::IFINDEX => ifindex = Some(IfIndex(number()?)),
            queue_attr::TYPE => {
                dir = Some(match number()? {
                    0 => Dir::Rx,
                    1 => Dir::Tx,
                    n => return Err(ParseError::new(QUEUE, format!("type {n}"), "type 0 (rx) or 1 (tx)")),
                });
            }
            queue_attr::NAPI_ID => out.napi = Some(number()?),
            queue_attr::XSK => out.xsk = true,
            queue_attr::DMABUF => out.dmabuf = Some(number()?),
            queue_attr::IO_URING => out.io_uring = true,
            queue_attr::LEASE => out.lease = Some(lease(a.nested()).map_err(in_queue)?),
            _ => {}
        }
    }
    match (ifindex, dir, id) {
        (Some(ifindex), Some(dir), Some(id)) => Ok(QueueInfo { ifindex, dir, id, ..out }),
        _ => Err(ParseError::new(QUEUE, "a message without them", "id, ifindex and type of the queue")),
    }
}

fn lease(nest: Attrs) -> Result<Lease, ParseError> {
    let (mut ifindex, mut queue, mut netns) = (None, None, None);
    for attr in nest {
        let a = attr?;
        match a.kind {
            lease_attr::IFINDEX => ifindex = Some(IfIndex(a.u32()?)),
            lease_attr::NETNS_ID => netns = Some(a.i32()?),
            lease_attr::QUEUE => {
                for attr in a.nested() {
                    let a = attr?;
                    if a.kind == queue_attr::ID {
                        queue = Some(a.u32()?);
                    }
                }
            }
            _ => {}
        }
    }
    match (ifindex, queue) {
        (Some(ifindex), Some(queue)) => Ok(Lease { ifindex, queue, netns }),
        _ => Err(ParseError::new(QUEUE, "a lease without them", "ifindex and queue of the virtual interface")),
    }
}

/// Decodes one message of a `napi-get` dump.
pub fn napi(reply: &[u8]) -> Result<NapiInfo, ParseError> {
    let (mut ifindex, mut id) = (None, None);
    let mut out = NapiInfo {
        ifindex: IfIndex(0),
        id: 0,
        irq: None,
        pid: None,
        defer_hard_irqs: None,
        gro_flush_timeout_ns: None,
        irq_suspend_timeout_ns: None,
        threaded: None,
    };
    for attr in attrs(reply) {
        let in_napi = |e| ParseError { what: NAPI, ..e };
        let a = attr.map_err(in_napi)?;
        let (number, uint) = (|| a.u32().map_err(in_napi), || a.uint().map_err(in_napi));
        match a.kind {
            napi_attr::IFINDEX => ifindex = Some(IfIndex(number()?)),
            napi_attr::ID => id = Some(number()?),
            napi_attr::IRQ => out.irq = Some(IrqId(number()?)),
            napi_attr::PID => out.pid = Some(number()?),
            napi_attr::DEFER_HARD_IRQS => out.defer_hard_irqs = Some(number()?),
            napi_attr::GRO_FLUSH_TIMEOUT => out.gro_flush_timeout_ns = Some(uint()?),
            napi_attr::IRQ_SUSPEND_TIMEOUT => out.irq_suspend_timeout_ns = Some(uint()?),
            napi_attr::THREADED => out.threaded = Some(number()?),
            _ => {}
        }
    }
    let (Some(ifindex), Some(id)) = (ifindex, id) else {
        return Err(ParseError::new(NAPI, "a message without them", "ifindex and id of the NAPI instance"));
    };
    Ok(NapiInfo { ifindex, id, ..out })
}

/// A `queue-get` message as the kernel would send it, for simulated hosts.
pub fn queue_reply(q: &QueueInfo) -> Result<Vec<u8>, TooLong> {
    let mut b = Builder::new();
    b.u32(queue_attr::ID, q.id);
    b.u32(queue_attr::TYPE, u32::from(q.dir == Dir::Tx));
    b.u32(queue_attr::IFINDEX, q.ifindex.0);
    if let Some(n) = q.napi {
        b.u32(queue_attr::NAPI_ID, n);
    }
    // Empty nests, as the kernel sends them.
    if q.xsk {
        b.flag(queue_attr::XSK);
    }
    if let Some(id) = q.dmabuf {
        b.u32(queue_attr::DMABUF, id);
    }
    if q.io_uring {
        b.flag(queue_attr::IO_URING);
    }
    if let Some(lease) = q.lease {
        let (mut nest, mut queue) = (Builder::new(), Builder::new());
        queue.u32(queue_attr::ID, lease.queue).u32(queue_attr::TYPE, u32::from(q.dir == Dir::Tx));
        nest.nested(lease_attr::QUEUE, &queue)?.u32(lease_attr::IFINDEX, lease.ifindex.0);
        if let Some(id) = lease.netns {
            nest.u32(lease_attr::NETNS_ID, id.cast_unsigned());
        }
        b.nested(queue_attr::LEASE, &nest)?;
    }
    Ok(b.finish())
}

/// A `napi-get` message as the kernel would send it, for simulated hosts.
pub fn napi_reply(n: &NapiInfo) -> Vec<u8> {
    let mut b = Builder::new();
    b.u32(napi_attr::ID, n.id).u32(napi_attr::IFINDEX, n.ifindex.0);
    if let Some(irq) = n.irq {
        b.u32(napi_attr::IRQ, irq.0);
    }
    if let Some(pid) = n.pid {
        b.u32(napi_attr::PID, pid);
    }
    if let Some(d) = n.defer_hard_irqs {
        b.u32(napi_attr::DEFER_HARD_IRQS, d);
    }
    for (kind, ns) in [
        (napi_attr::IRQ_SUSPEND_TIMEOUT, n.irq_suspend_timeout_ns),
        (napi_attr::GRO_FLUSH_TIMEOUT, n.gro_flush_timeout_ns),
    ] {
        if let Some(ns) = ns {
            match u32::try_from(ns) {
                Ok(ns) => b.u32(kind, ns),
                Err(_) => b.u64(kind, ns),
            };
        }
    }
    if let Some(t) = n.threaded {
        b.u32(napi_attr::THREADED, t);
    }
    b.finish()
}

/// Attributes of a `napi-set`: only values that change.
pub fn napi_set(id: u32, values: &NapiValues) -> Vec<u8> {
    let mut b = Builder::new();
    b.u32(napi_attr::ID, id);
    let numbers = [(napi_attr::DEFER_HARD_IRQS, values.defer_hard_irqs), (napi_attr::THREADED, values.threaded)];
    for (kind, n) in numbers {
        if let Some(n) = n {
            b.u32(kind, n);
        }
    }
    let times = [
        (napi_attr::GRO_FLUSH_TIMEOUT, values.gro_flush_timeout_ns),
        (napi_attr::IRQ_SUSPEND_TIMEOUT, values.irq_suspend_timeout_ns),
    ];
    for (kind, ns) in times {
        if let Some(ns) = ns {
            b.u64(kind, ns);
        }
    }
    b.finish()
}

/// Decodes what [`napi_set`] encoded, for simulated hosts.
pub fn napi_set_decode(attributes: &[u8]) -> Result<(u32, NapiValues), ParseError> {
    let (mut id, mut v) = (None, NapiValues::default());
    for attr in attrs(attributes) {
        let a = attr?;
        match a.kind {
            napi_attr::ID => id = Some(a.u32()?),
            napi_attr::DEFER_HARD_IRQS => v.defer_hard_irqs = Some(a.u32()?),
            napi_attr::THREADED => v.threaded = Some(a.u32()?),
            napi_attr::GRO_FLUSH_TIMEOUT => v.gro_flush_timeout_ns = Some(a.uint()?),
            napi_attr::IRQ_SUSPEND_TIMEOUT => v.irq_suspend_timeout_ns = Some(a.uint()?),
            _ => {}
        }
    }
    id.map(|id| (id, v)).ok_or_else(|| ParseError::new("napi-set", "a message without it", "id of the NAPI instance"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_go_round() {
        let unused = |dir| QueueInfo::unused(IfIndex(2), dir, 3);
        let lease = |netns| Some(Lease { ifindex: IfIndex(9), queue: 1, netns });
        for q in [
            QueueInfo { napi: Some(8195), xsk: true, ..unused(Dir::Rx) },
            QueueInfo { dmabuf: Some(1), lease: lease(None), ..unused(Dir::Rx) },
            QueueInfo { io_uring: true, lease: lease(Some(-1)), ..unused(Dir::Rx) },
            unused(Dir::Tx),
        ] {
            assert_eq!(queue(&queue_reply(&q).unwrap()).unwrap(), q);
        }
    }

    /// As net/core/netdev-genl.c writes it, `netdev_nl_queue_fill_lease` (7.1): the queue first, with its type.
    #[test]
    fn a_lease_names_a_queue_of_another_interface() {
        let (mut q, mut nest) = (Builder::new(), Builder::new());
        q.u32(queue_attr::ID, 1).u32(queue_attr::TYPE, 0);
        nest.nested(lease_attr::QUEUE, &q).unwrap().u32(lease_attr::IFINDEX, 7).u32(lease_attr::NETNS_ID, 3);
        let mut b = Builder::new();
        b.u32(queue_attr::ID, 5).u32(queue_attr::TYPE, 0).u32(queue_attr::IFINDEX, 2);
        b.nested(queue_attr::LEASE, &nest).unwrap();
        let found = queue(&b.finish()).unwrap();
        assert_eq!((found.id, found.lease), (5, Some(Lease { ifindex: IfIndex(7), queue: 1, netns: Some(3) })));
        // The number of the leased queue is inside the nest: it never replaces that of the queue itself.
        let mut b = Builder::new();
        b.u32(queue_attr::ID, 5).u32(queue_attr::TYPE, 0).u32(queue_attr::IFINDEX, 2);
        b.nested(queue_attr::LEASE, &Builder::new()).unwrap();
        assert_eq!(queue(&b.finish()).unwrap_err().found, "a lease without them");
    }

    fn info() -> NapiInfo {
        NapiInfo {
            ifindex: IfIndex(2),
            id: 8195,
            irq: Some(IrqId(36)),
            pid: Some(77),
            defer_hard_irqs: Some(2),
            gro_flush_timeout_ns: Some(200_000),
            irq_suspend_timeout_ns: Some(20_000_000_000),
            threaded: Some(1),
        }
    }

    #[test]
    fn napis_go_round() {
        let full = info();
        assert_eq!(napi(&napi_reply(&full)).unwrap(), full);
        let bare = NapiInfo { irq: None, pid: None, defer_hard_irqs: None, ..full };
        assert_eq!(napi(&napi_reply(&bare)).unwrap().irq, None);
    }

    #[test]
    fn orders_round_trip_with_the_requested_fields_only() {
        let all = NapiValues {
            defer_hard_irqs: Some(2),
            gro_flush_timeout_ns: Some(200_000),
            irq_suspend_timeout_ns: Some(u64::from(u32::MAX) + 1),
            threaded: Some(0),
        };
        for v in [all, NapiValues { gro_flush_timeout_ns: None, threaded: None, ..all }, NapiValues::default()] {
            assert_eq!(napi_set_decode(&napi_set(8195, &v)).unwrap(), (8195, v));
        }
        assert!(napi_set_decode(&[]).is_err());
        let old = NapiInfo { defer_hard_irqs: None, ..napi(&napi_reply(&info())).unwrap() };
        assert_eq!((old.values(), info().values().unwrap().threaded), (None, Some(1)));
    }

    #[test]
    fn what_is_missing_or_strange_is_an_error() {
        assert!(queue(&[]).is_err() && napi(&[]).is_err());
        let mut b = Builder::new();
        b.u32(queue_attr::ID, 0).u32(queue_attr::IFINDEX, 2).u32(queue_attr::TYPE, 9);
        assert_eq!(queue(&b.finish()).unwrap_err().found, "type 9");
        let mut b = Builder::new();
        b.u8(napi_attr::ID, 0);
        assert_eq!(napi(&b.finish()).unwrap_err().what, NAPI);
    }
}

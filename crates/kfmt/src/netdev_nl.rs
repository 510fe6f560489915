//! Messages of the netdev generic netlink family (Documentation/netlink/specs/netdev.yaml, 6.8 and
//! later): which queue is polled by which NAPI instance, and which interrupt wakes that one.

use ringwise_model::{Dir, IfIndex, IrqId};

use crate::ParseError;
use crate::nl::{Builder, attrs};

/// Commands of the family.
pub mod cmd {
    pub const DEV_GET: u8 = 1;
    pub const QUEUE_GET: u8 = 10;
    pub const NAPI_GET: u8 = 11;
    pub const QSTATS_GET: u8 = 12;
}

/// `NETDEV_A_QUEUE_*`.
pub mod queue_attr {
    pub const ID: u16 = 1;
    pub const IFINDEX: u16 = 2;
    pub const TYPE: u16 = 3;
    pub const NAPI_ID: u16 = 4;
    pub const DMABUF: u16 = 5;
    pub const IO_URING: u16 = 6;
    pub const XSK: u16 = 7;
}

/// `NETDEV_A_NAPI_*`.
pub mod napi_attr {
    pub const IFINDEX: u16 = 1;
    pub const ID: u16 = 2;
    pub const IRQ: u16 = 3;
    pub const PID: u16 = 4;
    pub const DEFER_HARD_IRQS: u16 = 5;
    pub const GRO_FLUSH_TIMEOUT: u16 = 6;
    pub const IRQ_SUSPEND_TIMEOUT: u16 = 7;
    pub const THREADED: u16 = 8;
}

/// One queue as `queue-get` tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueInfo {
    pub ifindex: IfIndex,
    pub dir: Dir,
    pub id: u32,
    /// `None`: the driver does not link this queue to a NAPI instance, or the device is down.
    pub napi: Option<u32>,
    /// An AF_XDP socket is bound to the queue (attribute since 6.14).
    pub xsk: bool,
    /// Memory of somebody else (devmem, io_uring zero copy) is bound to the queue.
    pub foreign_memory: bool,
}

/// One NAPI instance as `napi-get` tells it. Ids change when the device restarts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NapiInfo {
    pub ifindex: IfIndex,
    pub id: u32,
    /// `None`: the driver does not tell.
    pub irq: Option<IrqId>,
    /// Kernel thread that polls, when NAPI is threaded.
    pub pid: Option<u32>,
    pub defer_hard_irqs: Option<u32>,
    /// Nanoseconds.
    pub gro_flush_timeout_ns: Option<u64>,
    /// Nanoseconds.
    pub irq_suspend_timeout_ns: Option<u64>,
}

const QUEUE: &str = "queue-get reply";
const NAPI: &str = "napi-get reply";

/// Decodes one message of a `queue-get` dump.
pub fn queue(reply: &[u8]) -> Result<QueueInfo, ParseError> {
    let (mut ifindex, mut dir, mut id) = (None, None, None);
    let (mut napi, mut xsk, mut foreign_memory) = (None, false, false);
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
            queue_attr::NAPI_ID => napi = Some(number()?),
            queue_attr::XSK => xsk = true,
            queue_attr::DMABUF | queue_attr::IO_URING => foreign_memory = true,
            _ => {}
        }
    }
    match (ifindex, dir, id) {
        (Some(ifindex), Some(dir), Some(id)) => Ok(QueueInfo { ifindex, dir, id, napi, xsk, foreign_memory }),
        _ => Err(ParseError::new(QUEUE, "a message without them", "id, ifindex and type of the queue")),
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
            _ => {}
        }
    }
    let (Some(ifindex), Some(id)) = (ifindex, id) else {
        return Err(ParseError::new(NAPI, "a message without them", "ifindex and id of the NAPI instance"));
    };
    Ok(NapiInfo { ifindex, id, ..out })
}

/// A `queue-get` message as the kernel would send it, for simulated hosts.
pub fn queue_reply(q: &QueueInfo) -> Vec<u8> {
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
    if q.foreign_memory {
        b.flag(queue_attr::IO_URING);
    }
    b.finish()
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
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_go_round() {
        for (dir, napi, xsk) in [(Dir::Rx, Some(8195), true), (Dir::Tx, None, false)] {
            let q = QueueInfo { ifindex: IfIndex(2), dir, id: 3, napi, xsk, foreign_memory: xsk };
            assert_eq!(queue(&queue_reply(&q)).unwrap(), q);
        }
    }

    #[test]
    fn napis_go_round() {
        let full = NapiInfo {
            ifindex: IfIndex(2),
            id: 8195,
            irq: Some(IrqId(36)),
            pid: Some(77),
            defer_hard_irqs: Some(2),
            gro_flush_timeout_ns: Some(200_000),
            irq_suspend_timeout_ns: Some(20_000_000_000),
        };
        assert_eq!(napi(&napi_reply(&full)).unwrap(), full);
        let bare = NapiInfo { irq: None, pid: None, defer_hard_irqs: None, ..full };
        assert_eq!(napi(&napi_reply(&bare)).unwrap().irq, None);
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

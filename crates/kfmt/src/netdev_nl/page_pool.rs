//! `page-pool-get` and `page-pool-stats-get`: the pools from which drivers take receive buffers, and how often they had
//! to go to the page allocator (6.8 and later; counters with CONFIG_PAGE_POOL_STATS). net/core/page_pool_user.c.

use ringwise_model::{IfIndex, QueueCounter, QueueCounts};

use crate::ParseError;
use crate::nl::{Builder, TooLong, attrs};

/// `NETDEV_A_PAGE_POOL_*`.
const ID: u16 = 1;
const IFINDEX: u16 = 2;
const NAPI_ID: u16 = 3;
/// `NETDEV_A_PAGE_POOL_STATS_INFO`: a nest with id and interface of the pool.
const INFO: u16 = 1;

/// `NETDEV_A_PAGE_POOL_STATS_*`, by number (include/uapi/linux/netdev.h: ALLOC_FAST is 8, the others follow it).
const COUNTERS: [(u16, QueueCounter); 5] = [
    (8, QueueCounter::PoolFast),
    (9, QueueCounter::PoolSlow),
    (12, QueueCounter::PoolRefill),
    (17, QueueCounter::PoolRingFull),
    (18, QueueCounter::PoolRefcnt),
];

const WHAT: &str = "page-pool-get reply";
const STATS: &str = "page-pool-stats-get reply";

/// One pool in a `page-pool-get` reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagePool {
    /// Unique on the host, never used again.
    pub id: u64,
    /// Interface of the pool. `None`: its interface is gone.
    pub ifindex: Option<IfIndex>,
    /// The NAPI instance that takes pages from it. `None`: the driver does not name one.
    pub napi: Option<u32>,
}

/// The counters of one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagePoolStats {
    /// As in [`PagePool`].
    pub id: u64,
    /// `PoolFast`, `PoolSlow`, `PoolRefill`, `PoolRingFull`, `PoolRefcnt`.
    pub counts: QueueCounts,
}

/// Decodes one message of a `page-pool-get` dump.
pub fn page_pool(reply: &[u8]) -> Result<PagePool, ParseError> {
    let (mut id, mut ifindex, mut napi) = (None, None, None);
    for attr in attrs(reply) {
        let in_pool = |e| ParseError { what: WHAT, ..e };
        let a = attr.map_err(in_pool)?;
        match a.kind {
            ID => id = Some(a.uint().map_err(in_pool)?),
            IFINDEX => ifindex = Some(IfIndex(a.u32().map_err(in_pool)?)),
            NAPI_ID => napi = Some(u32::try_from(a.uint().map_err(in_pool)?).unwrap_or_default()),
            _ => {}
        }
    }
    let id = id.ok_or_else(|| ParseError::new(WHAT, "a message without it", "id of the pool"))?;
    Ok(PagePool { id, ifindex, napi: napi.filter(|n| *n > 0) })
}

/// Decodes one message of a `page-pool-stats-get` dump.
pub fn page_pool_stats(reply: &[u8]) -> Result<PagePoolStats, ParseError> {
    let (mut id, mut counts) = (None, QueueCounts::default());
    for attr in attrs(reply) {
        let in_stats = |e| ParseError { what: STATS, ..e };
        let a = attr.map_err(in_stats)?;
        if a.kind == INFO {
            for attr in a.nested() {
                let a = attr.map_err(in_stats)?;
                if a.kind == ID {
                    id = Some(a.uint().map_err(in_stats)?);
                }
            }
        } else if let Some((_, counter)) = COUNTERS.iter().find(|(kind, _)| *kind == a.kind) {
            counts.set(*counter, a.uint().map_err(in_stats)?);
        }
    }
    let id = id.ok_or_else(|| ParseError::new(STATS, "a message without it", "id of the pool"))?;
    Ok(PagePoolStats { id, counts })
}

/// A `page-pool-get` message as the kernel would send it, for tests.
pub fn page_pool_reply(p: &PagePool) -> Vec<u8> {
    let mut b = Builder::new();
    b.u64(ID, p.id);
    if let Some(i) = p.ifindex {
        b.u32(IFINDEX, i.0);
    }
    if let Some(n) = p.napi {
        b.u32(NAPI_ID, n);
    }
    b.finish()
}

/// A `page-pool-stats-get` message as the kernel would send it, for tests.
pub fn page_pool_stats_reply(s: &PagePoolStats) -> Result<Vec<u8>, TooLong> {
    let (mut b, mut info) = (Builder::new(), Builder::new());
    info.u64(ID, s.id);
    b.nested(INFO, &info)?;
    for (kind, counter) in COUNTERS {
        if let Some(n) = s.counts.get(counter) {
            b.u64(kind, n);
        }
    }
    Ok(b.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_and_their_counters_go_round() {
        for (ifindex, napi) in [(Some(IfIndex(2)), Some(8195)), (None, None)] {
            let p = PagePool { id: 7, ifindex, napi };
            assert_eq!(page_pool(&page_pool_reply(&p)).unwrap(), p);
        }
        let counts = [(QueueCounter::PoolFast, 9), (QueueCounter::PoolSlow, 3), (QueueCounter::PoolRefcnt, 1 << 40)];
        let s = PagePoolStats { id: 7, counts: counts.into() };
        assert_eq!(page_pool_stats(&page_pool_stats_reply(&s).unwrap()).unwrap(), s);
        assert!(page_pool(&[]).is_err() && page_pool_stats(&[]).is_err());
    }

    /// The kernel sends small numbers in 32 bits (`nla_put_uint`), and other counters between those that are used.
    #[test]
    fn numbers_of_both_widths_and_other_counters() {
        let (mut b, mut info) = (Builder::new(), Builder::new());
        info.u32(ID, 12).u32(IFINDEX, 2);
        b.nested(INFO, &info).unwrap();
        b.u32(8, 1000).u64(9, 1 << 33).u32(10, 5).u32(12, 4).u32(14, 6).u32(17, 7).u32(18, 8);
        let want = [
            (QueueCounter::PoolFast, 1000),
            (QueueCounter::PoolSlow, 1 << 33),
            (QueueCounter::PoolRefill, 4),
            (QueueCounter::PoolRingFull, 7),
            (QueueCounter::PoolRefcnt, 8),
        ];
        assert_eq!(page_pool_stats(&b.finish()).unwrap(), PagePoolStats { id: 12, counts: want.into() });
    }
}

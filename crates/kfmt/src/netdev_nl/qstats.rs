//! `qstats-get` with scope `queue`: the counters of each queue (6.9 and later).

use ringwise_model::{Dir, QueueCounter, QueueCounts};

use crate::ParseError;
use crate::nl::{Builder, attrs};

const WHAT: &str = "qstats-get reply";
const QUEUE_TYPE: u16 = 2;
const QUEUE_ID: u16 = 3;

/// `NETDEV_A_QSTATS_*` that are counters of a queue, by number; each is for one direction
/// (Documentation/netlink/specs/netdev.yaml).
fn counter(kind: u16) -> Option<QueueCounter> {
    Some(match kind {
        8 | 10 => QueueCounter::Packets,
        9 | 11 => QueueCounter::Bytes,
        12 => QueueCounter::AllocFail,
        13 | 24 => QueueCounter::HwDrops,
        14 => QueueCounter::HwDropOverruns,
        19 => QueueCounter::HwGroPackets,
        23 | 32 => QueueCounter::HwDropRatelimits,
        25 => QueueCounter::HwDropErrors,
        28 => QueueCounter::HwGsoPackets,
        33 => QueueCounter::Stop,
        34 => QueueCounter::Wake,
        _ => return None,
    })
}

/// One queue, and the counters of its driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStats {
    /// Direction of the queue.
    pub dir: Dir,
    /// Number of the queue within its direction, from 0.
    pub id: u32,
    /// A counter that the driver does not report is missing.
    pub counts: QueueCounts,
}

/// Decodes one message. `None`: it is not about a single queue.
pub fn qstats(reply: &[u8]) -> Result<Option<QueueStats>, ParseError> {
    let (mut dir, mut id, mut counts) = (None, None, QueueCounts::default());
    for attr in attrs(reply) {
        let in_reply = |e| ParseError { what: WHAT, ..e };
        let a = attr.map_err(in_reply)?;
        match a.kind {
            QUEUE_TYPE => dir = Some(if a.u32().map_err(in_reply)? == 0 { Dir::Rx } else { Dir::Tx }),
            QUEUE_ID => id = Some(a.u32().map_err(in_reply)?),
            kind => {
                if let Some(counter) = counter(kind) {
                    counts.set(counter, a.uint().map_err(in_reply)?);
                }
            }
        }
    }
    Ok(dir.zip(id).map(|(dir, id)| QueueStats { dir, id, counts }))
}

/// A message as the kernel would send it, for tests.
pub fn qstats_reply(q: &QueueStats) -> Vec<u8> {
    let tx = q.dir == Dir::Tx;
    let mut b = Builder::new();
    b.u32(1, 2).u32(QUEUE_TYPE, u32::from(tx)).u32(QUEUE_ID, q.id);
    for (c, n) in q.counts.iter() {
        // The first half of the numbers is for receiving.
        let of_dir = |k: &u16| matches!(k, 10 | 11 | 24..) == tx;
        if let Some(kind) = (8..=34).filter(of_dir).find(|k| counter(*k) == Some(c)) {
            match u32::try_from(n) {
                Ok(n) => b.u32(kind, n),
                Err(_) => b.u64(kind, n),
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
        for (dir, more) in [(Dir::Rx, QueueCounter::HwDropOverruns), (Dir::Tx, QueueCounter::HwDrops)] {
            let counts = [(QueueCounter::Packets, 1 << 40), (QueueCounter::Bytes, 60), (more, 3)];
            let q = QueueStats { dir, id: 3, counts: counts.into() };
            assert_eq!(qstats(&qstats_reply(&q)).unwrap(), Some(q));
        }
        let mut whole = Builder::new();
        whole.u32(1, 2).u64(8, 100);
        assert_eq!(qstats(&whole.finish()).unwrap(), None, "a device's sum");
        assert!(qstats(&[1, 2]).is_err());
    }
}

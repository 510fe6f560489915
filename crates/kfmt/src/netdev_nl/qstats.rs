//! `qstats-get` with scope `queue`: what each queue has counted (6.9 and later).

use ringwise_model::Dir;

use crate::ParseError;
use crate::nl::{Builder, attrs};

const WHAT: &str = "qstats-get reply";
const QUEUE_TYPE: u16 = 2;
const QUEUE_ID: u16 = 3;

/// `NETDEV_A_QSTATS_*` that are counters of a queue, by number; the names are those of
/// Documentation/netlink/specs/netdev.yaml with underscores.
const COUNTERS: &[(u16, &str)] = &[
    (8, "packets"),
    (9, "bytes"),
    (10, "packets"),
    (11, "bytes"),
    (12, "alloc_fail"),
    (13, "hw_drops"),
    (14, "hw_drop_overruns"),
    (19, "hw_gro_packets"),
    (23, "hw_drop_ratelimits"),
    (24, "hw_drops"),
    (25, "hw_drop_errors"),
    (28, "hw_gso_packets"),
    (32, "hw_drop_ratelimits"),
    (33, "stop"),
    (34, "wake"),
];

/// One queue, and what its driver counts: name without direction, value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStats {
    /// Direction of the queue.
    pub dir: Dir,
    /// Number of the queue within its direction, from 0.
    pub id: u32,
    /// In the order of the message; a counter that the driver does not report is missing.
    pub counts: Vec<(&'static str, u64)>,
}

/// Decodes one message. `None`: it is about no single queue.
pub fn qstats(reply: &[u8]) -> Result<Option<QueueStats>, ParseError> {
    let (mut dir, mut id, mut counts) = (None, None, Vec::new());
    for attr in attrs(reply) {
        let in_reply = |e| ParseError { what: WHAT, ..e };
        let a = attr.map_err(in_reply)?;
        match a.kind {
            QUEUE_TYPE => dir = Some(if a.u32().map_err(in_reply)? == 0 { Dir::Rx } else { Dir::Tx }),
            QUEUE_ID => id = Some(a.u32().map_err(in_reply)?),
            kind => {
                if let Some((_, name)) = COUNTERS.iter().find(|c| c.0 == kind) {
                    counts.push((*name, a.uint().map_err(in_reply)?));
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
    for (name, n) in &q.counts {
        // The first half of the numbers is about receiving.
        let of_dir = |k: u16| matches!(k, 10 | 11 | 24..) == tx;
        if let Some((kind, _)) = COUNTERS.iter().find(|c| c.1 == *name && of_dir(c.0)) {
            match u32::try_from(*n) {
                Ok(n) => b.u32(*kind, n),
                Err(_) => b.u64(*kind, *n),
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
        for (dir, more) in [(Dir::Rx, "hw_drop_overruns"), (Dir::Tx, "hw_drops")] {
            let counts = vec![("packets", 1 << 40), ("bytes", 60), (more, 3)];
            let q = QueueStats { dir, id: 3, counts };
            assert_eq!(qstats(&qstats_reply(&q)).unwrap(), Some(q));
        }
        let mut whole = Builder::new();
        whole.u32(1, 2).u64(8, 100);
        assert_eq!(qstats(&whole.finish()).unwrap(), None, "a device's sum");
        assert!(qstats(&[1, 2]).is_err());
    }
}

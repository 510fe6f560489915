//! RTM_NEWQDISC messages: `struct tcmsg` and attributes (linux/rtnetlink.h, linux/gen_stats.h).

use crate::ParseError;
use crate::nl::{Builder, attrs};

const WHAT: &str = "qdisc message";
/// `sizeof(struct tcmsg)`: family 0, index 4, handle 8, parent 12, info 16.
const TCMSG: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
/// `TC_H_ROOT`: the parent of the qdisc that packets of a device meet first.
pub const ROOT: u32 = 0xffff_ffff;

/// One qdisc of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Qdisc {
    /// `tcm_ifindex` of the message.
    pub ifindex: u32,
    /// Major number in the upper half.
    pub handle: u32,
    /// `tcm_parent`: handle of the qdisc or class above, or [`ROOT`].
    pub parent: u32,
    /// `TCA_KIND`: `mq`, `fq_codel`, `htb`.
    pub kind: String,
    /// Packets that it dropped; 32 bits wide in the kernel. mq and similar qdiscs report the sum of those below.
    pub drops: Option<u32>,
}

impl Qdisc {
    /// Whether packets of the device meet this qdisc first.
    pub fn is_root(&self) -> bool {
        self.parent == ROOT
    }

    /// Transmit queue that it feeds, if it hangs below this qdisc (mq numbers its classes from 1).
    pub fn queue_of(&self, mq: &Qdisc) -> Option<u32> {
        let below = self.parent >> 16 == mq.handle >> 16 && !self.is_root();
        (self.ifindex == mq.ifindex && below).then(|| (self.parent & 0xffff).checked_sub(1)).flatten()
    }
}

/// Decodes one message of a dump.
pub fn qdisc(msg: &[u8]) -> Result<Qdisc, ParseError> {
    let short = || ParseError::new(WHAT, format!("{} bytes", msg.len()), "20 bytes or more");
    let (head, rest) = msg.split_at_checked(TCMSG).ok_or_else(short)?;
    let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let mut q = Qdisc { ifindex: word(4), handle: word(8), parent: word(12), ..Qdisc::default() };
    for attr in attrs(rest) {
        let a = attr?;
        match a.kind {
            TCA_KIND => q.kind = a.str()?,
            TCA_STATS2 => {
                for inner in a.nested() {
                    let inner = inner?;
                    if inner.kind == TCA_STATS_QUEUE {
                        // gnet_stats_queue: length, backlog, drops, requeues, overlimits.
                        q.drops = inner.u32s()?.get(2).copied();
                    }
                }
            }
            _ => {}
        }
    }
    Ok(q)
}

/// A message as the kernel would send it, for tests.
pub fn qdisc_reply(q: &Qdisc) -> Result<Vec<u8>, ParseError> {
    let mut out = vec![0; TCMSG];
    for (at, word) in [(4, q.ifindex), (8, q.handle), (12, q.parent)] {
        out[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    let mut b = Builder::new();
    b.string(TCA_KIND, &q.kind)?;
    if let Some(n) = q.drops {
        let mut nest = Builder::new();
        nest.u32s(TCA_STATS_QUEUE, &[0, 0, n, 0, 0])?;
        b.nested(TCA_STATS2, &nest)?;
    }
    out.extend(b.finish());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_of_mq_by_queue() {
        let mq = Qdisc { ifindex: 2, handle: 0, parent: ROOT, kind: "mq".into(), drops: Some(9) };
        let leaf = Qdisc { ifindex: 2, handle: 0, parent: 4, kind: "fq_codel".into(), drops: Some(9) };
        for q in [&mq, &leaf] {
            assert_eq!(qdisc(&qdisc_reply(q).unwrap()).unwrap(), *q);
        }
        assert!(mq.is_root() && !leaf.is_root());
        assert_eq!((leaf.queue_of(&mq), mq.queue_of(&mq)), (Some(3), None));
        assert_eq!(Qdisc { ifindex: 3, ..leaf.clone() }.queue_of(&mq), None);
        assert_eq!(Qdisc { parent: 0x8001_0004, ..leaf }.queue_of(&mq), None);
        assert!(qdisc(&[0; 19]).is_err());
    }
}

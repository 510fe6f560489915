//! RTM_NEWQDISC messages: `struct tcmsg` and attributes (linux/rtnetlink.h, linux/gen_stats.h).

use ringwise_model::{QueueRange, TrafficClasses};

use crate::ParseError;
use crate::nl::{Attr, Builder, attrs};

const WHAT: &str = "qdisc message";
/// `sizeof(struct tcmsg)`: family 0, index 4, handle 8, parent 12, info 16.
const TCMSG: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
/// Within the options of taprio: a `struct tc_mqprio_qopt` (linux/pkt_sched.h).
const TCA_TAPRIO_ATTR_PRIOMAP: u16 = 1;
/// `struct tc_mqprio_qopt` (linux/pkt_sched.h): number of classes 0, class of each priority 1, offload 17, number of queues of
/// each class 18, first queue of each class 50.
const QOPT: usize = 82;
/// `TC_QOPT_MAX_QUEUE` classes, `TC_QOPT_BITMASK + 1` priorities.
const CLASSES: usize = 16;
/// Disciplines that assign transmit queues to traffic classes (`netdev_set_num_tc` in net/sched).
pub const WITH_CLASSES: [&str; 2] = [MQPRIO, TAPRIO];
/// `TCA_KIND` of the discipline with classes for whole queues.
pub const MQPRIO: &str = "mqprio";
const TAPRIO: &str = "taprio";
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
    /// The message has options (`TCA_OPTIONS`). A redacted recording may lack them.
    pub has_options: bool,
    /// Of mqprio and taprio. `None`: no class is set, or the message has no options.
    pub classes: Option<TrafficClasses>,
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
    let mut options = None;
    for attr in attrs(rest) {
        let a = attr?;
        match a.kind {
            TCA_KIND => q.kind = a.str()?,
            TCA_OPTIONS => options = Some(a),
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
    if let Some(options) = options {
        q.has_options = true;
        q.classes = classes(&q.kind, &options)?;
    }
    Ok(q)
}

/// `mqprio_dump` (net/sched/sch_mqprio.c) puts the structure before its attributes, `taprio_dump` (sch_taprio.c) into one.
fn classes(kind: &str, options: &Attr) -> Result<Option<TrafficClasses>, ParseError> {
    match kind {
        MQPRIO => qopt(options.data),
        TAPRIO => {
            for inner in options.nested() {
                let inner = inner?;
                if inner.kind == TCA_TAPRIO_ATTR_PRIOMAP {
                    return qopt(inner.data);
                }
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}

fn qopt(bytes: &[u8]) -> Result<Option<TrafficClasses>, ParseError> {
    let short = || ParseError::new(WHAT, format!("{} bytes of options", bytes.len()), "82 bytes or more");
    let b = bytes.get(..QOPT).ok_or_else(short)?;
    let number = usize::from(b[0]);
    if number > CLASSES {
        return Err(ParseError::new(WHAT, format!("{number} traffic classes"), "16 or fewer"));
    }
    let short = |at: usize| u32::from(u16::from_ne_bytes([b[at], b[at + 1]]));
    let queues = (0..number).map(|c| QueueRange { first: short(50 + 2 * c), count: short(18 + 2 * c) }).collect();
    let classes = TrafficClasses { of_priority: b[1..=CLASSES].to_vec(), queues };
    Ok((number > 0).then_some(classes))
}

/// A `struct tc_mqprio_qopt` of these classes.
fn qopt_bytes(c: &TrafficClasses) -> Vec<u8> {
    let mut out = vec![0; QOPT];
    out[0] = c.queues.len().min(CLASSES) as u8;
    for (at, class) in c.of_priority.iter().take(CLASSES).enumerate() {
        out[1 + at] = *class;
    }
    for (at, r) in c.queues.iter().take(CLASSES).enumerate() {
        out[18 + 2 * at..20 + 2 * at].copy_from_slice(&(r.count as u16).to_ne_bytes());
        out[50 + 2 * at..52 + 2 * at].copy_from_slice(&(r.first as u16).to_ne_bytes());
    }
    out
}

/// A message as the kernel would send it, for tests.
pub fn qdisc_reply(q: &Qdisc) -> Result<Vec<u8>, ParseError> {
    let mut out = vec![0; TCMSG];
    for (at, word) in [(4, q.ifindex), (8, q.handle), (12, q.parent)] {
        out[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    }
    let mut b = Builder::new();
    b.string(TCA_KIND, &q.kind)?;
    match (&q.classes, q.kind.as_str()) {
        (Some(c), TAPRIO) => {
            let mut nest = Builder::new();
            nest.binary(TCA_TAPRIO_ATTR_PRIOMAP, &qopt_bytes(c))?;
            b.nested(TCA_OPTIONS, &nest)?;
        }
        (Some(c), _) => {
            b.binary(TCA_OPTIONS, &qopt_bytes(c))?;
        }
        (None, _) => {}
    }
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
        let mq = Qdisc { ifindex: 2, parent: ROOT, kind: "mq".into(), drops: Some(9), ..Qdisc::default() };
        let leaf = Qdisc { ifindex: 2, parent: 4, kind: "fq_codel".into(), drops: Some(9), ..Qdisc::default() };
        for q in [&mq, &leaf] {
            assert_eq!(qdisc(&qdisc_reply(q).unwrap()).unwrap(), *q);
        }
        assert!(mq.is_root() && !leaf.is_root());
        assert_eq!((leaf.queue_of(&mq), mq.queue_of(&mq)), (Some(3), None));
        assert_eq!(Qdisc { ifindex: 3, ..leaf.clone() }.queue_of(&mq), None);
        assert_eq!(Qdisc { parent: 0x8001_0004, ..leaf }.queue_of(&mq), None);
        assert!(qdisc(&[0; 19]).is_err());
    }

    /// The options that tc (iproute2 6.1) sends for `num_tc 3 map 2 2 1 0 2 2 2 2 queues 2@0 2@2 4@4 hw 0`. The kernel answers with
    /// the same structure.
    fn options() -> Vec<u8> {
        let mut b = vec![3, 2, 2, 1, 0, 2, 2, 2, 2];
        b.resize(18, 0);
        b.extend([2, 0, 2, 0, 4, 0]);
        b.resize(50, 0);
        b.extend([0, 0, 2, 0, 4, 0]);
        b.resize(QOPT, 0);
        b
    }

    fn message(kind: &str, options: &[u8]) -> Vec<u8> {
        let mut b = Builder::new();
        b.string(TCA_KIND, kind).unwrap();
        b.binary(TCA_OPTIONS, options).unwrap();
        [vec![0; TCMSG], b.finish()].concat()
    }

    #[test]
    fn classes_of_mqprio_and_taprio() {
        let range = |first, count| QueueRange { first, count };
        let mut of_priority = vec![2, 2, 1, 0, 2, 2, 2, 2];
        of_priority.resize(16, 0);
        let want = TrafficClasses { of_priority, queues: vec![range(0, 2), range(2, 2), range(4, 4)] };
        // The kernel pads the structure and appends attributes, here TCA_MQPRIO_MODE.
        let with_mode = [options(), vec![0, 0], vec![6, 0, 1, 0, 1, 0, 0, 0]].concat();
        assert_eq!(qdisc(&message(MQPRIO, &with_mode)).unwrap().classes, Some(want.clone()));
        // Of taprio, tc sends the clock first: TCA_TAPRIO_ATTR_SCHED_CLOCKID 11, then the structure with two bytes to pad it.
        let nested = [vec![8, 0, 5, 0, 11, 0, 0, 0, 0x56, 0, 1, 0], options(), vec![0, 0]].concat();
        assert_eq!(qdisc(&message(TAPRIO, &nested)).unwrap().classes, Some(want.clone()));
        for kind in WITH_CLASSES {
            let classes = Some(want.clone());
            let q = Qdisc { ifindex: 2, kind: kind.into(), has_options: true, classes, ..Qdisc::default() };
            assert_eq!(qdisc(&qdisc_reply(&q).unwrap()).unwrap(), q);
        }
        // Other disciplines have other options.
        assert_eq!(qdisc(&message("fq", &options())).unwrap().classes, None);
        // The kernel resets the number of classes if it has too few queues for the first one (`netif_setup_tc`).
        assert_eq!(qdisc(&message(MQPRIO, &[0; QOPT])).unwrap().classes, None);
        assert!(qdisc(&message(MQPRIO, &[17; QOPT])).is_err());
        assert!(qdisc(&message(MQPRIO, &options()[..QOPT - 1])).is_err());
    }
}

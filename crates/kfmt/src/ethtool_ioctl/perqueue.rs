//! Moderation of single queues: `struct ethtool_per_queue_op` (cmd 0, sub_command 4, queue_mask 8 with 4,096 bits),
//! and at 520 one `struct ethtool_coalesce` for each queue of the mask, in the order of the queues.
//! net/ethtool/ioctl.c, `ethtool_get_per_queue_coalesce` and `ethtool_set_per_queue_coalesce`.

use std::collections::BTreeMap;

use ringwise_model::Coalesce;

use super::{set_word, short, word};
use crate::ParseError;
use crate::ethtool_nl::coalesce::PARAMETERS;

pub(crate) const PERQUEUE: u32 = 0x4b;
/// Sub-commands.
pub(crate) const GCOALESCE: u32 = 0x0e;
pub(crate) const SCOALESCE: u32 = 0x0f;

/// `MAX_NUM_QUEUE`.
pub const MAX_QUEUES: u32 = 4096;
const SUB: usize = 4;
const MASK: usize = 8;
const HEAD: usize = MASK + MAX_QUEUES as usize / 8;
/// `sizeof(struct ethtool_coalesce)`: its command and 22 parameters, 32 bits each.
pub const COALESCE_SIZE: usize = 23 * 4;
const WHAT: &str = "ethtool_per_queue_op";

/// The parameters of the struct are those of the netlink family from 2 to 23, in the same order.
fn parameters() -> impl Iterator<Item = (usize, &'static str)> {
    PARAMETERS.iter().filter(|p| (2..=23).contains(&p.0)).map(|p| (usize::from(p.0 - 1) * 4, p.1))
}

/// Whether a parameter can be set for a single queue.
pub fn is_parameter(name: &str) -> bool {
    parameters().any(|(_, n)| n == name)
}

fn head(sub: u32, queues: &[u32]) -> Vec<u8> {
    let mut b = vec![0; HEAD];
    set_word(&mut b, 0, PERQUEUE);
    set_word(&mut b, SUB, sub);
    for q in queues.iter().filter(|q| **q < MAX_QUEUES) {
        // An array of 32-bit words, whatever the host's byte order.
        let at = MASK + *q as usize / 32 * 4;
        let old = word(&b, at).unwrap_or(0);
        set_word(&mut b, at, old | 1 << (q % 32));
    }
    b
}

/// Requests these queues at once. If one of them refuses, the whole call fails.
pub fn get_request(queues: &[u32]) -> Vec<u8> {
    let mut b = head(GCOALESCE, queues);
    let n = queues_of(&b).len();
    b.resize(HEAD + n * COALESCE_SIZE, 0);
    b
}

/// Queues in the mask, in order.
pub fn queues_of(bytes: &[u8]) -> Vec<u32> {
    let words = (0..MAX_QUEUES / 32).map(|i| (i, word(bytes, MASK + i as usize * 4).unwrap_or(0)));
    words.flat_map(|(i, w)| (0..32).filter(move |b| w & (1 << b) != 0).map(move |b| i * 32 + b)).collect()
}

/// `GCOALESCE` or `SCOALESCE`.
pub fn sub_command(bytes: &[u8]) -> Option<u32> {
    word(bytes, SUB)
}

/// Every parameter of each queue in the answer. Parameters that the driver does not have are 0.
pub fn get(reply: &[u8]) -> Result<BTreeMap<u32, Coalesce>, ParseError> {
    if reply.len() < HEAD {
        return Err(short(WHAT, reply, "520 bytes or more"));
    }
    let mut out = BTreeMap::new();
    for (i, queue) in queues_of(reply).into_iter().enumerate() {
        let at = HEAD + i * COALESCE_SIZE;
        let one = reply.get(at..at + COALESCE_SIZE).ok_or_else(|| short(WHAT, reply, "92 bytes for each queue"))?;
        let values = parameters().filter_map(|(at, name)| Some((name.to_string(), word(one, at)?)));
        out.insert(queue, Coalesce(values.collect::<BTreeMap<_, _>>()));
    }
    Ok(out)
}

/// A parameter that cannot be set for a single queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotOfQueues(pub String);

impl std::fmt::Display for NotOfQueues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\" is not a parameter of a single queue", self.0)
    }
}

impl std::error::Error for NotOfQueues {}

/// Sets the same values for these queues. The struct holds all parameters, and omitted ones are set to 0, so `values`
/// are those of the queue with the changes applied.
pub fn set_request(queues: &[u32], values: &Coalesce) -> Result<Vec<u8>, NotOfQueues> {
    let mut one = vec![0; COALESCE_SIZE];
    set_word(&mut one, 0, SCOALESCE);
    for (name, value) in &values.0 {
        let (at, _) = parameters().find(|p| p.1 == name).ok_or_else(|| NotOfQueues(name.clone()))?;
        set_word(&mut one, at, *value);
    }
    let mut b = head(SCOALESCE, queues);
    for _ in queues_of(&b) {
        b.extend_from_slice(&one);
    }
    Ok(b)
}

/// The struct after a get, for simulated hosts: `of` gives the values of a queue.
pub fn get_reply<E>(request: &[u8], mut of: impl FnMut(u32) -> Result<Coalesce, E>) -> Result<Vec<u8>, E> {
    let mut b = request.to_vec();
    b.resize(HEAD.max(b.len()), 0);
    b.truncate(HEAD);
    for queue in queues_of(request) {
        let values = of(queue)?;
        let mut one = vec![0; COALESCE_SIZE];
        set_word(&mut one, 0, GCOALESCE);
        for (at, name) in parameters() {
            set_word(&mut one, at, values.0.get(name).copied().unwrap_or(0));
        }
        b.extend_from_slice(&one);
    }
    Ok(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(list: &[(&str, u32)]) -> Coalesce {
        Coalesce(list.iter().map(|(k, v)| (k.to_string(), *v)).collect())
    }

    #[test]
    fn the_struct_of_the_header() {
        let b = get_request(&[0, 33, 4095]);
        assert_eq!(b.len(), 520 + 3 * 92);
        assert_eq!((word(&b, 0), word(&b, 4)), (Some(0x4b), Some(0x0e)));
        assert_eq!((word(&b, 8), word(&b, 12), word(&b, 8 + 127 * 4)), (Some(1), Some(2), Some(1 << 31)));
        assert_eq!(queues_of(&b), [0, 33, 4095]);
        // rx_coalesce_usecs is the second field, use_adaptive_rx_coalesce the eleventh, rate_sample_interval the last.
        let b = set_request(&[7], &values(&[("rx-usecs", 5), ("use-adaptive-rx", 1), ("rate-sample-interval", 9)]))
            .unwrap();
        assert_eq!(
            (word(&b, 520), word(&b, 524), word(&b, 520 + 40), word(&b, 520 + 88)),
            (Some(0x0f), Some(5), Some(1), Some(9))
        );
    }

    #[test]
    fn values_go_round_in_queue_order() {
        let request = get_request(&[5, 2]);
        let reply =
            get_reply(&request, |q| Ok::<_, ()>(values(&[("rx-usecs", q * 10), ("tx-max-frames", q)]))).unwrap();
        let got = get(&reply).unwrap();
        assert_eq!(got.keys().copied().collect::<Vec<_>>(), [2, 5]);
        assert_eq!((got[&2].0["rx-usecs"], got[&5].0["rx-usecs"], got[&5].0["tx-max-frames"]), (20, 50, 5));
        assert_eq!(got[&2].0.len(), 22);
        // What was read is written back unchanged.
        let set = set_request(&[2, 5], &got[&2]).unwrap();
        assert_eq!(get(&set).unwrap()[&5], got[&2]);
    }

    #[test]
    fn what_is_cut_or_unknown_is_an_error() {
        let whole = get_request(&[0, 1]);
        for cut in [0, 8, 519, whole.len() - 1] {
            assert!(get(&whole[..cut]).is_err(), "{cut}");
        }
        assert_eq!(set_request(&[0], &values(&[("use-cqe-mode-rx", 1)])).unwrap_err().0, "use-cqe-mode-rx");
        assert!(is_parameter("tx-usecs") && !is_parameter("tx-aggr-max-bytes"));
        // Queues beyond the mask are not requested.
        assert_eq!(get_request(&[4096]).len(), 520);
    }
}

//! Counters of an interface in an RTM_NEWLINK message: `struct rtnl_link_stats64` and carrier changes
//! (linux/if_link.h).

use crate::ParseError;
use crate::nl::{Builder, attrs};

const WHAT: &str = "link message";
const IFINFOMSG: usize = 16;
const IFLA_IFNAME: u16 = 3;
const IFLA_STATS64: u16 = 23;
const IFLA_CARRIER_CHANGES: u16 = 35;

/// Fields of `rtnl_link_stats64` in their order. Kernels before 5.19 lack the last one, and kernels before 4.6 the last
/// two; later ones may add more.
pub const NAMES: [&str; 25] = [
    "rx_packets",
    "tx_packets",
    "rx_bytes",
    "tx_bytes",
    "rx_errors",
    "tx_errors",
    "rx_dropped",
    "tx_dropped",
    "multicast",
    "collisions",
    "rx_length_errors",
    "rx_over_errors",
    "rx_crc_errors",
    "rx_frame_errors",
    "rx_fifo_errors",
    "rx_missed_errors",
    "tx_aborted_errors",
    "tx_carrier_errors",
    "tx_fifo_errors",
    "tx_heartbeat_errors",
    "tx_window_errors",
    "rx_compressed",
    "tx_compressed",
    "rx_nohandler",
    "rx_otherhost_dropped",
];

/// The counters of one interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// `ifi_index` of the message.
    pub ifindex: u32,
    /// `IFLA_IFNAME`; empty if the message contains none.
    pub name: String,
    /// As many of [`NAMES`] as the kernel has, in their order. Empty: the message contains none.
    pub counts: Vec<u64>,
    /// 32 bits wide in the kernel.
    pub carrier_changes: Option<u32>,
}

/// Decodes an RTM_NEWLINK message (without `nlmsghdr`).
pub fn link_stats(msg: &[u8]) -> Result<LinkStats, ParseError> {
    let short = || ParseError::new(WHAT, format!("{} bytes", msg.len()), "16 bytes or more");
    let (head, rest) = msg.split_at_checked(IFINFOMSG).ok_or_else(short)?;
    let mut out = LinkStats { ifindex: u32::from_ne_bytes([head[4], head[5], head[6], head[7]]), ..Default::default() };
    for attr in attrs(rest) {
        let a = attr?;
        match a.kind {
            IFLA_IFNAME => out.name = a.str()?,
            IFLA_CARRIER_CHANGES => out.carrier_changes = Some(a.u32()?),
            IFLA_STATS64 => {
                let (words, left) = a.data.as_chunks::<8>();
                if !left.is_empty() {
                    return Err(ParseError::new(WHAT, format!("{} bytes", a.data.len()), "whole 64-bit counters"));
                }
                out.counts = words.iter().take(NAMES.len()).map(|w| u64::from_ne_bytes(*w)).collect();
            }
            _ => {}
        }
    }
    Ok(out)
}

/// A message as the kernel would send it, for tests.
pub fn link_stats_reply(s: &LinkStats) -> Result<Vec<u8>, ParseError> {
    let mut out = vec![0; IFINFOMSG];
    out[4..8].copy_from_slice(&s.ifindex.to_ne_bytes());
    let mut b = Builder::new();
    b.string(IFLA_IFNAME, &s.name)?;
    if let Some(n) = s.carrier_changes {
        b.u32(IFLA_CARRIER_CHANGES, n);
    }
    let bytes: Vec<u8> = s.counts.iter().flat_map(|n| n.to_ne_bytes()).collect();
    b.binary(IFLA_STATS64, &bytes)?;
    out.extend(b.finish());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_round() {
        let s = LinkStats {
            ifindex: 3,
            name: "eth1".into(),
            counts: (1..=25).map(|n| n << 33).collect(),
            carrier_changes: Some(7),
        };
        assert_eq!(link_stats(&link_stats_reply(&s).unwrap()).unwrap(), s);
        let missed = NAMES.iter().position(|n| *n == "rx_missed_errors").unwrap();
        assert_eq!(missed, 15, "offset 120 of the struct");
        // An older kernel, with 23 fields.
        let old = LinkStats { counts: s.counts[..23].to_vec(), ..s };
        assert_eq!(link_stats(&link_stats_reply(&old).unwrap()).unwrap().counts.len(), 23);
    }

    #[test]
    fn broken_ones_are_errors() {
        assert!(link_stats(&[0; 15]).is_err());
        let mut b = Builder::new();
        b.binary(IFLA_STATS64, &[0; 12]).unwrap();
        assert!(link_stats(&[vec![0; 16], b.finish()].concat()).is_err());
    }
}

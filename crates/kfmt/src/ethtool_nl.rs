//! Messages of the ethtool netlink family: attributes only, without `nlmsghdr` and `genlmsghdr`.
//! The sender adds the request header attribute; in replies it is skipped.
//! Numbers: linux/ethtool_netlink.h; which attributes a reply has: net/ethtool/*.c.

pub mod bitset;
pub mod coalesce;
pub mod features;
pub mod ids;
pub mod rings;
pub mod rss;

use ringwise_model::nic::Pause;
use ringwise_model::{Channels, Count};

pub use coalesce::{UnknownParameter, coalesce, coalesce_reply, coalesce_set};
pub use features::{features, features_reply, features_set, features_set_decode, private_flags, private_flags_reply};
pub use ids::msg;
pub use rings::{rings, rings_reply, rings_set, rings_set_decode};
pub use rss::{
    RssParts, RssSet, hfunc_mask, hfunc_name, rss, rss_reply, rss_set, rss_set_decode, xfrm_mask, xfrm_name,
};

use crate::ParseError;
use crate::nl::{Attr, Builder, TooLong, attrs};

/// Attributes by number. If a number occurs twice, the last one counts; `what` names the message in errors.
struct Table<'a> {
    what: &'static str,
    attrs: Vec<Attr<'a>>,
}

impl<'a> Table<'a> {
    fn read(what: &'static str, bytes: &'a [u8]) -> Result<Self, ParseError> {
        let attrs = attrs(bytes).collect::<Result<_, _>>().map_err(|e| ParseError { what, ..e })?;
        Ok(Self { what, attrs })
    }

    fn get<T>(&self, kind: u16, read: impl Fn(&Attr<'a>) -> Result<T, ParseError>) -> Result<Option<T>, ParseError> {
        let found = self.attrs.iter().rev().find(|a| a.kind == kind);
        found.map(read).transpose().map_err(|e| ParseError { what: self.what, ..e })
    }

    fn u32(&self, kind: u16) -> Result<Option<u32>, ParseError> {
        self.get(kind, Attr::u32)
    }

    fn bool(&self, kind: u16) -> Result<Option<bool>, ParseError> {
        Ok(self.get(kind, Attr::u8)?.map(|b| b != 0))
    }

    /// The kernel sends both numbers or neither.
    fn count(&self, now: u16, max: u16) -> Result<Option<Count>, ParseError> {
        match (self.u32(now)?, self.u32(max)?) {
            (Some(now), Some(max)) => Ok(Some(Count { now, max })),
            (None, None) => Ok(None),
            _ => Err(ParseError::new(
                self.what,
                format!("one of the attributes {now} and {max}"),
                "a current number together with its maximum",
            )),
        }
    }
}

/// Decodes a CHANNELS_GET reply. Kinds that the driver does not have are `None`.
pub fn channels(reply: &[u8]) -> Result<Channels, ParseError> {
    use ids::channels::*;
    let t = Table::read("channels reply", reply)?;
    Ok(Channels {
        rx: t.count(RX_COUNT, RX_MAX)?,
        tx: t.count(TX_COUNT, TX_MAX)?,
        combined: t.count(COMBINED_COUNT, COMBINED_MAX)?,
        other: t.count(OTHER_COUNT, OTHER_MAX)?,
    })
}

/// A CHANNELS_GET reply as the kernel would send it, for simulated hosts.
pub fn channels_reply(c: &Channels) -> Vec<u8> {
    use ids::channels::*;
    let mut b = Builder::new();
    for (count, max, now) in [
        (c.rx, RX_MAX, RX_COUNT),
        (c.tx, TX_MAX, TX_COUNT),
        (c.other, OTHER_MAX, OTHER_COUNT),
        (c.combined, COMBINED_MAX, COMBINED_COUNT),
    ] {
        if let Some(c) = count {
            b.u32(max, c.max).u32(now, c.now);
        }
    }
    b.finish()
}

/// New channel counts; `None` leaves a kind as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChannelCounts {
    /// Channels that only receive (`ETHTOOL_A_CHANNELS_RX_COUNT`).
    pub rx: Option<u32>,
    /// Channels that only transmit (`ETHTOOL_A_CHANNELS_TX_COUNT`).
    pub tx: Option<u32>,
    /// Channels that do both (`ETHTOOL_A_CHANNELS_COMBINED_COUNT`).
    pub combined: Option<u32>,
    /// Channels for link events and the like, which carry no traffic (`ETHTOOL_A_CHANNELS_OTHER_COUNT`).
    pub other: Option<u32>,
}

/// Attributes of a CHANNELS_SET after the header.
pub fn channels_set(c: &ChannelCounts) -> Vec<u8> {
    use ids::channels::*;
    let mut b = Builder::new();
    for (kind, n) in [(RX_COUNT, c.rx), (TX_COUNT, c.tx), (OTHER_COUNT, c.other), (COMBINED_COUNT, c.combined)] {
        if let Some(n) = n {
            b.u32(kind, n);
        }
    }
    b.finish()
}

/// Decodes what [`channels_set`] encoded (for simulated hosts).
pub fn channels_set_decode(attrs: &[u8]) -> Result<ChannelCounts, ParseError> {
    use ids::channels::*;
    let t = Table::read("channels set", attrs)?;
    Ok(ChannelCounts {
        rx: t.u32(RX_COUNT)?,
        tx: t.u32(TX_COUNT)?,
        combined: t.u32(COMBINED_COUNT)?,
        other: t.u32(OTHER_COUNT)?,
    })
}

/// Decodes a PAUSE_GET reply.
pub fn pause(reply: &[u8]) -> Result<Pause, ParseError> {
    use ids::pause::*;
    let t = Table::read("pause reply", reply)?;
    Ok(Pause { autoneg: t.bool(AUTONEG)?, rx: t.bool(RX)?, tx: t.bool(TX)? })
}

/// A PAUSE_GET reply as the kernel would send it, for simulated hosts.
pub fn pause_reply(p: &Pause) -> Vec<u8> {
    use ids::pause::*;
    let mut b = Builder::new();
    for (kind, on) in [(AUTONEG, p.autoneg), (RX, p.rx), (TX, p.tx)] {
        if let Some(on) = on {
            b.u8(kind, u8::from(on));
        }
    }
    b.finish()
}

/// Attributes of a PAUSE_SET after the header; `None` leaves a member as it is. Decoded by [`pause`].
pub fn pause_set(p: &Pause) -> Vec<u8> {
    pause_reply(p)
}

/// Counters of pause frames. `None`: the driver does not count them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PauseFrames {
    /// Pause frames received.
    pub rx: Option<u64>,
    /// Pause frames sent.
    pub tx: Option<u64>,
    /// How often the device sent pause frames for so long that it turned them off for a time (ethtool.yaml). Since
    /// Linux 7.1; fbnic and mlx5.
    pub storms: Option<u64>,
}

/// Counters of pause frames, from a PAUSE_GET reply for a request with statistics.
pub fn pause_frames(reply: &[u8]) -> Result<PauseFrames, ParseError> {
    use ids::pause::{STAT_RX_FRAMES, STAT_TX_FRAMES, STAT_TX_STORMS, STATS};
    let t = Table::read("pause reply", reply)?;
    let Some(nest) = t.attrs.iter().find(|a| a.kind == STATS) else { return Ok(PauseFrames::default()) };
    let inner = Table::read("pause reply", nest.data)?;
    let of = |kind| inner.get(kind, Attr::uint);
    Ok(PauseFrames { rx: of(STAT_RX_FRAMES)?, tx: of(STAT_TX_FRAMES)?, storms: of(STAT_TX_STORMS)? })
}

/// What a LINKMODES_GET reply contains about the link itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkModes {
    /// Autonegotiation is on (`ETHTOOL_A_LINKMODES_AUTONEG`). `None`: not reported.
    pub autoneg: Option<bool>,
    /// Mb/s. `None`: not reported, or unknown because the link is down.
    pub speed_mbps: Option<u32>,
    /// `None`: not reported, or `DUPLEX_UNKNOWN` because the link is down.
    pub duplex: Option<Duplex>,
}

/// `ETHTOOL_A_LINKMODES_DUPLEX`; displayed as in `/sys/class/net/DEV/duplex`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplex {
    /// `DUPLEX_HALF`: one end sends at a time.
    Half,
    /// `DUPLEX_FULL`: both ends send at the same time.
    Full,
}

impl std::fmt::Display for Duplex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Duplex::Half => "half",
            Duplex::Full => "full",
        })
    }
}

/// Decodes a LINKMODES_GET reply. `SPEED_UNKNOWN` and `DUPLEX_UNKNOWN` (all ones) become `None`.
pub fn linkmodes(reply: &[u8]) -> Result<LinkModes, ParseError> {
    use ids::linkmodes::*;
    let t = Table::read("linkmodes reply", reply)?;
    let duplex = match t.get(DUPLEX, Attr::u8)? {
        Some(0) => Some(Duplex::Half),
        Some(1) => Some(Duplex::Full),
        _ => None,
    };
    Ok(LinkModes { autoneg: t.bool(AUTONEG)?, speed_mbps: t.u32(SPEED)?.filter(|&s| s != u32::MAX), duplex })
}

/// A LINKMODES_GET reply as the kernel would send it, for simulated hosts.
pub fn linkmodes_reply(l: &LinkModes) -> Vec<u8> {
    use ids::linkmodes::*;
    let mut b = Builder::new();
    if let Some(a) = l.autoneg {
        b.u8(AUTONEG, u8::from(a));
    }
    b.u32(SPEED, l.speed_mbps.unwrap_or(u32::MAX));
    b.u8(DUPLEX, l.duplex.map_or(0xff, |d| u8::from(d == Duplex::Full)));
    b.finish()
}

/// The header attribute of a request: the device by its name. Compact bit sets are requested.
pub fn request_header(dev: &str) -> Result<Vec<u8>, TooLong> {
    const COMPACT_BITSETS: u32 = 1;
    let mut inner = Builder::new();
    inner.string(ids::header::DEV_NAME, dev)?.u32(ids::header::FLAGS, COMPACT_BITSETS);
    let mut b = Builder::new();
    b.nested(ids::HEADER, &inner)?;
    Ok(b.finish())
}

#[cfg(test)]
#[path = "ethtool_nl_tests.rs"]
mod tests;

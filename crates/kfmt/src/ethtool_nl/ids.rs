//! Numbers of the ethtool netlink family (linux/ethtool_netlink.h). A test compares them with the
//! installed header. The names of commands are those of the header in lower case with dashes.

/// Commands from user space.
pub mod msg {
    /// Reads string sets, e.g. the names of private flags.
    pub const STRSET_GET: u8 = 1;
    /// Reads port, PHY address and transceiver.
    pub const LINKINFO_GET: u8 = 2;
    /// Reads autonegotiation, speed and duplex.
    pub const LINKMODES_GET: u8 = 4;
    /// Reads whether the link is up.
    pub const LINKSTATE_GET: u8 = 6;
    /// Reads offload features.
    pub const FEATURES_GET: u8 = 11;
    /// Switches offload features.
    pub const FEATURES_SET: u8 = 12;
    /// Reads the private flags of the driver.
    pub const PRIVFLAGS_GET: u8 = 13;
    /// Reads ring sizes, in descriptors.
    pub const RINGS_GET: u8 = 15;
    /// Sets ring sizes, in descriptors.
    pub const RINGS_SET: u8 = 16;
    /// Reads channel counts.
    pub const CHANNELS_GET: u8 = 17;
    /// Sets channel counts.
    pub const CHANNELS_SET: u8 = 18;
    /// Reads interrupt moderation.
    pub const COALESCE_GET: u8 = 19;
    /// Sets interrupt moderation.
    pub const COALESCE_SET: u8 = 20;
    /// Reads pause frame settings.
    pub const PAUSE_GET: u8 = 21;
    /// Sets pause frame settings.
    pub const PAUSE_SET: u8 = 22;
    /// Reads hash function, key and table of an RSS context. Since 6.2.
    pub const RSS_GET: u8 = 38;
    /// Changes an RSS context. Since 6.17.
    pub const RSS_SET: u8 = 48;
    /// Creates an RSS context. Since 6.17.
    pub const RSS_CREATE_ACT: u8 = 49;
    /// Deletes an RSS context. Since 6.17.
    pub const RSS_DELETE_ACT: u8 = 50;
}

/// Name in the header without `ETHTOOL_MSG_`, and number.
pub const COMMANDS: &[(&str, u8)] = &[
    ("STRSET_GET", msg::STRSET_GET),
    ("LINKINFO_GET", msg::LINKINFO_GET),
    ("LINKMODES_GET", msg::LINKMODES_GET),
    ("LINKSTATE_GET", msg::LINKSTATE_GET),
    ("FEATURES_GET", msg::FEATURES_GET),
    ("FEATURES_SET", msg::FEATURES_SET),
    ("PRIVFLAGS_GET", msg::PRIVFLAGS_GET),
    ("RINGS_GET", msg::RINGS_GET),
    ("RINGS_SET", msg::RINGS_SET),
    ("CHANNELS_GET", msg::CHANNELS_GET),
    ("CHANNELS_SET", msg::CHANNELS_SET),
    ("COALESCE_GET", msg::COALESCE_GET),
    ("COALESCE_SET", msg::COALESCE_SET),
    ("PAUSE_GET", msg::PAUSE_GET),
    ("PAUSE_SET", msg::PAUSE_SET),
    ("RSS_GET", msg::RSS_GET),
    ("RSS_SET", msg::RSS_SET),
    ("RSS_CREATE_ACT", msg::RSS_CREATE_ACT),
    ("RSS_DELETE_ACT", msg::RSS_DELETE_ACT),
];

/// Notifications of the kernel, which are numbered apart from the commands: name in the header without prefix and suffix
/// (`ETHTOOL_MSG_*_NTF`), and number.
pub(crate) const NOTIFICATIONS: &[(&str, u8)] = &[
    ("FEATURES", 13),
    ("RINGS", 17),
    ("CHANNELS", 19),
    ("COALESCE", 21),
    ("PAUSE", 23),
    ("RSS", 50),
    ("RSS_CREATE", 52),
    ("RSS_DELETE", 53),
];

/// `ETHTOOL_A_*_HEADER`: the first attribute of every message of the family.
pub const HEADER: u16 = 1;

/// Attributes within the header.
pub(crate) mod header {
    pub(crate) const DEV_INDEX: u16 = 1;
    pub(crate) const DEV_NAME: u16 = 2;
    pub(crate) const FLAGS: u16 = 3;
}

/// Attributes of channel messages (`ETHTOOL_A_CHANNELS_*`), 32 bits each.
pub mod channels {
    pub(crate) const RX_MAX: u16 = 2;
    pub(crate) const TX_MAX: u16 = 3;
    pub(crate) const OTHER_MAX: u16 = 4;
    pub(crate) const COMBINED_MAX: u16 = 5;
    /// Channels that only receive, now.
    pub const RX_COUNT: u16 = 6;
    /// Channels that only transmit, now.
    pub const TX_COUNT: u16 = 7;
    /// Channels without traffic (link events and the like), now.
    pub const OTHER_COUNT: u16 = 8;
    /// Channels that receive and transmit, now.
    pub const COMBINED_COUNT: u16 = 9;
}

pub(crate) mod pause {
    pub(crate) const AUTONEG: u16 = 2;
    pub(crate) const RX: u16 = 3;
    pub(crate) const TX: u16 = 4;
    /// Since 5.10, where the header asks for statistics.
    pub(crate) const STATS: u16 = 5;
    /// Within `STATS`.
    pub(crate) const STAT_TX_FRAMES: u16 = 2;
    pub(crate) const STAT_RX_FRAMES: u16 = 3;
    pub(crate) const STAT_TX_STORMS: u16 = 4;
}

pub(crate) mod features {
    pub(crate) const HW: u16 = 2;
    pub(crate) const WANTED: u16 = 3;
    pub(crate) const ACTIVE: u16 = 4;
    pub(crate) const NOCHANGE: u16 = 5;
}

pub(crate) mod privflags {
    pub(crate) const FLAGS: u16 = 2;
}

/// Within every bit set.
pub(crate) mod bitset {
    /// A list without a mask.
    pub(crate) const NOMASK: u16 = 1;
    pub(crate) const SIZE: u16 = 2;
    pub(crate) const BITS: u16 = 3;
    pub(crate) const VALUE: u16 = 4;
    pub(crate) const MASK: u16 = 5;
    /// Within `BITS`.
    pub(crate) const BITS_BIT: u16 = 1;
    pub(crate) const BIT_INDEX: u16 = 1;
    pub(crate) const BIT_NAME: u16 = 2;
    pub(crate) const BIT_VALUE: u16 = 3;
}

pub(crate) mod linkmodes {
    pub(crate) const AUTONEG: u16 = 2;
    pub(crate) const SPEED: u16 = 5;
    pub(crate) const DUPLEX: u16 = 6;
}

pub(crate) mod rss {
    pub(crate) const CONTEXT: u16 = 2;
    pub(crate) const HFUNC: u16 = 3;
    pub(crate) const INDIR: u16 = 4;
    pub(crate) const HKEY: u16 = 5;
    /// Since 6.8.
    pub(crate) const INPUT_XFRM: u16 = 6;
    /// Since 6.17: a nest of flow types.
    pub(crate) const FLOW_HASH: u16 = 8;
}

/// Flow types within `rss::FLOW_HASH`, by number from 1 (`ETHTOOL_A_FLOW_*`, 6.17); GTP in ethtool's words.
pub const FLOWS: &[&str] = &[
    "ether", "ip4", "ip6", "tcp4", "tcp6", "udp4", "udp6", "sctp4", "sctp6", "ah4", "ah6", "esp4", "esp6", "ah-esp4",
    "ah-esp6", "gtpu4", "gtpu6", "gtpc4", "gtpc6", "gtpc4t", "gtpc6t", "gtpu4e", "gtpu6e", "gtpu4u", "gtpu6u",
    "gtpu4d", "gtpu6d",
];

/// Attributes in the header file's words with their numbers, for the comparison with the header.
#[cfg(test)]
pub(crate) const ATTRIBUTES: &[(&str, u16)] = &[
    ("HEADER_DEV_INDEX", header::DEV_INDEX),
    ("HEADER_DEV_NAME", header::DEV_NAME),
    ("HEADER_FLAGS", header::FLAGS),
    ("CHANNELS_HEADER", HEADER),
    ("CHANNELS_RX_MAX", channels::RX_MAX),
    ("CHANNELS_TX_MAX", channels::TX_MAX),
    ("CHANNELS_OTHER_MAX", channels::OTHER_MAX),
    ("CHANNELS_COMBINED_MAX", channels::COMBINED_MAX),
    ("CHANNELS_RX_COUNT", channels::RX_COUNT),
    ("CHANNELS_TX_COUNT", channels::TX_COUNT),
    ("CHANNELS_OTHER_COUNT", channels::OTHER_COUNT),
    ("CHANNELS_COMBINED_COUNT", channels::COMBINED_COUNT),
    ("RINGS_HEADER", HEADER),
    ("COALESCE_HEADER", HEADER),
    ("PAUSE_HEADER", HEADER),
    ("PAUSE_AUTONEG", pause::AUTONEG),
    ("PAUSE_RX", pause::RX),
    ("PAUSE_TX", pause::TX),
    ("PAUSE_STATS", pause::STATS),
    ("PAUSE_STAT_TX_FRAMES", pause::STAT_TX_FRAMES),
    ("PAUSE_STAT_RX_FRAMES", pause::STAT_RX_FRAMES),
    ("PAUSE_STAT_TX_PAUSE_STORM_EVENTS", pause::STAT_TX_STORMS),
    ("FEATURES_HEADER", HEADER),
    ("FEATURES_HW", features::HW),
    ("FEATURES_WANTED", features::WANTED),
    ("FEATURES_ACTIVE", features::ACTIVE),
    ("FEATURES_NOCHANGE", features::NOCHANGE),
    ("PRIVFLAGS_HEADER", HEADER),
    ("PRIVFLAGS_FLAGS", privflags::FLAGS),
    ("BITSET_NOMASK", bitset::NOMASK),
    ("BITSET_SIZE", bitset::SIZE),
    ("BITSET_BITS", bitset::BITS),
    ("BITSET_VALUE", bitset::VALUE),
    ("BITSET_MASK", bitset::MASK),
    ("BITSET_BITS_BIT", bitset::BITS_BIT),
    ("BITSET_BIT_INDEX", bitset::BIT_INDEX),
    ("BITSET_BIT_NAME", bitset::BIT_NAME),
    ("BITSET_BIT_VALUE", bitset::BIT_VALUE),
    ("LINKMODES_HEADER", HEADER),
    ("LINKMODES_AUTONEG", linkmodes::AUTONEG),
    ("LINKMODES_SPEED", linkmodes::SPEED),
    ("LINKMODES_DUPLEX", linkmodes::DUPLEX),
    ("RSS_HEADER", HEADER),
    ("RSS_CONTEXT", rss::CONTEXT),
    ("RSS_HFUNC", rss::HFUNC),
    ("RSS_INDIR", rss::INDIR),
    ("RSS_HKEY", rss::HKEY),
    ("RSS_INPUT_XFRM", rss::INPUT_XFRM),
    ("RSS_FLOW_HASH", rss::FLOW_HASH),
];

//! Flow steering rules (RX NFC, `ethtool -n`), normalised.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The rules of a device, and how many it can store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Locations for rules; 0: the driver does not report the number.
    pub capacity: u32,
    /// The driver chooses a location for rules without one (`RX_CLS_LOC_SPECIAL`).
    pub chooses_location: bool,
    /// By location.
    pub rules: BTreeMap<u32, Rule>,
}

/// One rule in the syntax of ethtool(8). Fields that match anything are omitted. A mask is written only if it is not the
/// full one, with ethtool's meaning: in `10.0.0.0 m 255.255.255.0`, set bits are ignored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rule {
    /// `tcp4`, `udp4`, `sctp4`, `ah4`, `esp4`, `ip4`, the same with 6, `ether`.
    pub flow: String,
    /// `dst-port` → `443`, in canonical form (addresses as the standard library prints them, numbers decimal).
    pub fields: BTreeMap<String, String>,
    /// What happens to packets that match.
    pub action: Action,
    /// RSS context that spreads the matching packets; the action's queue is then added to the table's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
}

/// What a flow steering rule does with a packet (`ring_cookie` of `struct ethtool_rx_flow_spec`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// To this receive queue; in a rule with a context, added to the table's entry.
    Queue(u32),
    /// ethtool's action -1.
    Drop,
    /// ethtool's action -2.
    Wake,
    /// A queue of a virtual function.
    Vf {
        /// Number of the virtual function, from 0.
        vf: u32,
        /// Receive queue of the virtual function.
        queue: u32,
    },
}

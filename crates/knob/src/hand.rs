//! A setting that somebody else changed after a transaction of ours had set it; and one that groups of queues needed.

use serde::{Deserialize, Serialize};

use crate::{Address, Setting};

/// When it changed, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// It was last known to be as applied then.
    pub after: u64,
    /// It was first seen otherwise then. None: nobody has looked before now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<u64>,
}

/// What became of a change that is not ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    ByHand,
    /// Made the intent with `adopt`.
    Adopted,
}

/// One setting that is the user's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hand {
    pub origin: Origin,
    /// As it is now.
    pub setting: Setting,
    /// By hand: what the transaction had set. Adopted: the same as `setting`.
    pub applied: Setting,
    /// The one that set it, or that adopted it.
    pub transaction: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Window>,
}

impl Hand {
    pub fn address(&self) -> Option<Address> {
        self.setting.address()
    }
}

/// Rules of plans behind what is there only to lead flows to groups of queues: a share of the table, contexts and flow
/// rules. Stands in journals: never to be changed.
pub const FOR_GROUPS: [&str; 2] = ["R4.05", "R4.06"];

/// Rule of plans behind an RSS table by what CPUs carry. Journals contain it, so it never changes.
pub const FOR_SHARES: &str = "Q33";

/// Whether what a step of this rule makes is there for one layout only, and goes with it.
pub fn goes_with_layout(rule: &str) -> bool {
    rule == FOR_SHARES || FOR_GROUPS.contains(&rule)
}

/// A context, flow rule or table that a transaction in force has made for a group or a layout, and that is still there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// As it was left.
    pub setting: Setting,
    /// The setting before that transaction: none, or one that was configured outside ringwise.
    pub before: Setting,
    pub transaction: u64,
    /// Nobody has changed it since.
    pub as_left: bool,
}

impl Made {
    pub fn address(&self) -> Option<Address> {
        self.setting.address()
    }
}

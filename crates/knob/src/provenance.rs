//! Settings that were changed outside ringwise after a transaction had set them, and objects that transactions created
//! for queue groups and layouts.

use serde::{Deserialize, Serialize};

use crate::{Address, Setting};

/// When the setting changed, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeWindow {
    /// The last time at which the setting was known to be as applied.
    pub after: u64,
    /// The first time at which the setting was seen changed. `None`: the setting was not checked before now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<u64>,
}

/// Where a value that differs from the plan comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Changed outside ringwise.
    ByHand,
    /// Accepted into the intent with `adopt`.
    Adopted,
}

/// One setting that was changed outside ringwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManualChange {
    /// Whether the change is manual or was adopted.
    pub origin: Origin,
    /// The current setting.
    pub setting: Setting,
    /// For a manual change, the setting that the transaction had applied. For an adopted one, the same as `setting`.
    pub applied: Setting,
    /// The transaction that applied or adopted the setting.
    pub transaction: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    /// When the setting changed. `None`: unknown.
    pub changed: Option<ChangeWindow>,
}

impl ManualChange {
    /// Address of the setting.
    pub fn address(&self) -> Option<Address> {
        self.setting.address()
    }
}

/// Plan rules of settings that only steer flows to queue groups: a share of the table, contexts and flow rules. Journals
/// contain these names, so they never change.
pub const FOR_GROUPS: [&str; 2] = ["R4.05", "R4.06"];

/// Plan rule of an RSS table that is weighted by the capacity of CPUs. Journals contain this name, so it never changes.
pub const FOR_SHARES: &str = "Q33";

/// Whether a step of this rule serves one layout only and is removed together with the layout.
pub fn goes_with_layout(rule: &str) -> bool {
    rule == FOR_SHARES || FOR_GROUPS.contains(&rule)
}

/// A context, flow rule or table that an active transaction created for a queue group or layout, and that still exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreatedObject {
    /// The setting as the transaction left it.
    pub setting: Setting,
    /// The setting before that transaction: none, or one that was configured outside ringwise.
    pub before: Setting,
    /// The transaction that created it.
    pub transaction: u64,
    /// Whether the setting is unchanged since the transaction.
    pub as_left: bool,
}

impl CreatedObject {
    /// Address of the setting.
    pub fn address(&self) -> Option<Address> {
        self.setting.address()
    }
}

//! Types of facts that reasons have.

use serde::{Deserialize, Serialize};

/// Why a restart of irqbalance forgets a ban.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BanLossCause {
    /// ringwise cannot extend its unit.
    UnitFixed,
    /// systemd did not start it.
    NotByUnit,
}

/// A policy value that the driver is known to refuse, and the nearest value that it accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacedValue {
    /// `rx-usecs`
    pub name: String,
    /// Value of the policy.
    pub wanted: u32,
    /// Nearest value that the driver accepts.
    pub takes: u32,
}

/// A side effect of a configured setting, or the reason why another configured setting implies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffect {
    /// Adaptive moderation is switched off.
    AdaptiveOff,
    /// Flow rules may be lost.
    RulesMayGo,
    /// Flow rules need the setting.
    RulesNeedIt,
}

/// The earlier step that may reset the setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetBy {
    /// Channel counts.
    Channels,
    /// Ring parameters.
    Rings,
    /// Moderation of the whole interface.
    Coalesce,
}

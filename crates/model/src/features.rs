//! Offloads and other features of a device (`ethtool -k`), and its private flags.

use serde::{Deserialize, Serialize};

/// One feature by the kernel's name (`rx-gro`, `tx-tcp-segmentation`, `rx-ntuple-filter`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    /// In effect.
    pub on: bool,
    /// Requested; in effect only if no feature that it depends on is off.
    pub wanted: bool,
    /// It cannot be changed on this device (`[fixed]`).
    pub fixed: bool,
}

//! Offloads and other features of a device (`ethtool -k`), and its private flags.

use serde::{Deserialize, Serialize};

/// One feature by the kernel's name (`rx-gro`, `tx-tcp-segmentation`, `rx-ntuple-filter`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    /// In force.
    pub on: bool,
    /// Asked for; in force only where nothing it depends on is off.
    pub wanted: bool,
    /// Neither the user nor anything else can change it (`[fixed]`).
    pub fixed: bool,
}

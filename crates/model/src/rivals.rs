//! Programs and configuration that would move what we set.

use serde::{Deserialize, Serialize};

use crate::Fact;

/// One of them, with what it would do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rival {
    /// `tuned`, `udev .link file`, `set_irq_affinity`, …
    pub name: String,
    /// In words: `channels, ring sizes`.
    pub sets: String,
    /// Interfaces; empty: any, or not to be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// The file or the process that shows it.
    pub evidence: String,
    /// How it is set up: `profile throughput-performance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// The program runs now and may act at any time. Otherwise it acts at boot, when a device appears, or when a user
    /// calls it.
    pub running: bool,
}

impl Rival {
    /// The name of a `.link` file of udev.
    pub const UDEV_LINK: &str = "udev .link file";

    /// What shows it, and how it is set up: `process 41, profile router`.
    pub fn shown(&self) -> String {
        std::iter::once(&self.evidence).chain(&self.setup).map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// The irqbalance that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Irqbalance {
    /// Process id.
    pub pid: u32,
    /// Its control socket, `/run/irqbalance/irqbalance812.sock`.
    pub socket: Fact<String>,
    /// Seconds between two rounds of balancing.
    pub interval_s: Fact<u32>,
    /// As in its command line, without the program itself.
    pub args: Fact<Vec<String>>,
    /// Interrupt numbers that it leaves alone because its command line or its socket says so; sorted.
    /// What a policy script answers is not among them: it does not tell.
    pub banned: Fact<Vec<u32>>,
    /// The service that started it (`irqbalance.service`). Absent: no service did.
    pub unit: Fact<String>,
    /// How that service starts it, as its files say, without what we add.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Bus addresses that our policy script answers `ban=true` for, once irqbalance is started with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// Our addition to the unit is there, so the next one is started with the script.
    #[serde(default)]
    pub addition: bool,
    /// The one that runs was started with our policy script.
    #[serde(default)]
    pub by_policy: bool,
    /// Interrupts that this run of irqbalance leaves alone by our doing, each behind the bus address of its device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ours: Vec<(String, u32)>,
}

pub(crate) fn not_asked() -> Fact<Irqbalance> {
    Fact::unknown("irqbalance", "not recorded by the version that wrote this")
}

impl Irqbalance {
    /// Whether all interrupts of the device at this bus address are left alone by our policy script.
    pub fn bans_device(&self, bus_address: &str) -> bool {
        self.by_policy && self.kept.iter().any(|k| k == bus_address)
    }
}

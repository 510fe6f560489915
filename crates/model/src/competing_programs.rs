//! Programs and configuration that would change the settings of ringwise.

use serde::{Deserialize, Serialize};

use crate::Fact;

/// One of them, and what it would change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CompetingProgram {
    /// `tuned`, `udev .link file`, `set_irq_affinity`, …
    pub name: String,
    /// As text: `channels, ring sizes`.
    pub sets: String,
    /// Interfaces. Empty: any, or unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// The file or process that shows it.
    pub evidence: String,
    /// How it is set up: `profile throughput-performance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// The program runs now and may act at any time. Otherwise it acts at boot, when a device appears, or when a user
    /// calls it.
    pub running: bool,
}

impl CompetingProgram {
    /// The name of a `.link` file of udev.
    pub const UDEV_LINK: &str = "udev .link file";

    /// What shows it, and how it is set up: `process 41, profile router`.
    pub fn shown(&self) -> String {
        std::iter::once(&self.evidence).chain(&self.setup).map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// The running irqbalance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Irqbalance {
    /// Process id.
    pub pid: u32,
    /// Its control socket, `/run/irqbalance/irqbalance812.sock`.
    pub socket: Fact<String>,
    /// Seconds between two rounds of balancing.
    pub interval_s: Fact<u32>,
    /// The arguments of its command line, without the program.
    pub args: Fact<Vec<String>>,
    /// Interrupt numbers that it skips because of its command line or its socket; sorted. Those that a policy script
    /// bans are missing, because irqbalance does not report them.
    pub banned: Fact<Vec<u32>>,
    /// The service that started it (`irqbalance.service`). Absent: no service did.
    pub unit: Fact<String>,
    /// How that service starts it, according to its files, without ringwise's addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Bus addresses for which ringwise's policy script answers `ban=true` once irqbalance is started with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// ringwise's addition to the unit exists, so the next irqbalance is started with the script.
    #[serde(default)]
    pub addition: bool,
    /// The running irqbalance was started with ringwise's policy script.
    #[serde(default)]
    pub by_policy: bool,
    /// Interrupts that the running irqbalance skips because of ringwise, each after the bus address of its device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ours: Vec<(String, u32)>,
}

pub(crate) fn not_recorded() -> Fact<Irqbalance> {
    Fact::unknown("irqbalance", "not recorded by the version that wrote this")
}

impl Irqbalance {
    /// Whether ringwise's policy script makes irqbalance skip all interrupts of the device at this bus address.
    pub fn bans_device(&self, bus_address: &str) -> bool {
        self.by_policy && self.kept.iter().any(|k| k == bus_address)
    }
}

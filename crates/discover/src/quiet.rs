//! A host without requests that may hang: for devices that did not answer, for those that wait behind them, and for
//! `--passive`.

use std::sync::Arc;

use ringwise_model::{Cause, Snapshot, Unread};
use ringwise_sys::{Error, Host, HostWrapper, Request, Result};

/// Files whose reading takes the network lock (net/core/net-sysfs.c). If an unresponsive device holds the lock, reading
/// them waits like any request.
const LOCKED: &[&str] = &["speed", "duplex", "carrier", "xps_cpus", "xps_rxqs", "rps_default_mask"];

/// The same for whole directories of the bonding driver, and for its list of bonds.
fn takes_the_network_lock(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    LOCKED.contains(&name) || name == "bonding_masters" || path.contains("/bonding/")
}

/// Files whose reading interrupts other CPUs on some kernels: each CPU is interrupted to determine its clock rate
/// (older x86 kernels, arch/x86/kernel/cpu/aperfmperf.c; since 5.11 not if it is idle).
const INTERRUPTING: &[&str] = &["/proc/cpuinfo"];

/// A register of the CPU itself (drivers/cpufreq/intel_pstate.c).
fn interrupts_cpus(path: &str) -> bool {
    INTERRUPTING.contains(&path) || path.ends_with("/energy_performance_preference")
}

/// The host by its files alone, without those that take the network lock or interrupt other CPUs.
pub fn passive(host: Arc<dyn Host>) -> Arc<dyn Host> {
    Arc::new(PassiveHost { host, why: Unread::new("", None, "not read (--passive)").because(Cause::Passive) })
}

/// What [`passive`] skipped, by name.
pub fn left_out(s: &Snapshot) -> impl Iterator<Item = &Unread> {
    s.unread.iter().chain(s.nics.iter().flat_map(|n| &n.unread)).filter(|u| u.cause == Cause::Passive)
}

/// The host without kernel requests and without the files that need the network lock: those fail with `why`.
pub(crate) struct PassiveHost {
    pub host: Arc<dyn Host>,
    /// Without its `what`.
    pub why: Unread,
}

impl PassiveHost {
    fn refuses(&self, what: &str) -> Error {
        Error { cause: self.why.cause, ..Error::other(what, self.why.why.clone()) }
    }
}

impl HostWrapper for PassiveHost {
    fn inside(&self) -> &dyn Host {
        self.host.as_ref()
    }
}

impl Host for PassiveHost {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        if takes_the_network_lock(path) || interrupts_cpus(path) {
            return Err(self.refuses(path));
        }
        self.host.read(path)
    }
    fn write(&self, path: &str, data: &[u8]) -> Result<()> {
        self.host.write(path, data)
    }
    fn list(&self, path: &str) -> Result<Vec<String>> {
        self.host.list(path)
    }
    fn readlink(&self, path: &str) -> Result<String> {
        self.host.readlink(path)
    }
    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        Err(self.refuses(&request.to_string()))
    }
    fn is_recorded(&self) -> bool {
        self.host.is_recorded()
    }
}

//! A host that is not asked what may hang: for devices that gave no answer, and for those that wait behind them.

use std::sync::Arc;
use std::time::Duration;

use ringwise_sys::{Clock, Error, Host, Request, Result};

/// Files whose reading takes the network lock (net/core/net-sysfs.c): a sick device may hold it, and then
/// these wait like any request.
const LOCKED: &[&str] = &["speed", "duplex", "carrier", "xps_cpus", "xps_rxqs"];

/// The host without kernel requests and without the files that need the network lock: those fail with `why`.
pub struct Quiet {
    pub host: Arc<dyn Host>,
    /// `no answer within 2 s`
    pub why: String,
}

impl Clock for Quiet {
    fn since_boot(&self) -> Duration {
        self.host.since_boot()
    }
    fn unix_time(&self) -> u64 {
        self.host.unix_time()
    }
    fn sleep(&self, time: Duration) {
        self.host.sleep(time);
    }
}

impl Host for Quiet {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if LOCKED.contains(&name) {
            return Err(Error::other(path, self.why.clone()));
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
        Err(Error::other(request.to_string(), self.why.clone()))
    }
    fn is_recorded(&self) -> bool {
        self.host.is_recorded()
    }
}

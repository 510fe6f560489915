//! The cheap comparison: whether the files and answers that hold the settings in effect are what they were. Parsing and comparing
//! a host with thousands of queues takes much longer than reading these files alone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ringwise_apply::Verify;
use ringwise_discover::read_address;
use ringwise_knob::{Address, Family, Setting, irq, live, path};
use ringwise_model::{Fact, Snapshot};
use ringwise_sys::{Host, read_with_deadline};

/// For all files together. If a file hangs, the service compares everything, and names the file.
const DEADLINE: Duration = Duration::from_secs(5);
/// Which CPUs are online, and which are isolated; neither a cpuset nor a kubelet or container runtime sends a notification.
const CPUS: [&str; 5] = [
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/isolated",
    "/sys/fs/cgroup/cpuset.cpus.isolated",
    ringwise_discover::KUBELET_STATE,
    ringwise_discover::IRQ_DEFAULT,
];

/// What has to be read.
#[derive(Debug, Clone)]
pub struct WatchList {
    files: Vec<String>,
    /// Settings that are read by a request.
    others: Vec<Address>,
    /// Their interfaces, as last read. `None`: every setting is a file.
    around: Option<Box<Snapshot>>,
}

/// What was read.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedValues {
    files: Vec<Option<String>>,
    others: Vec<Fact<Setting>>,
}

impl WatchList {
    /// The settings in effect on this host.
    pub fn of(in_effect: &Verify, now: &Snapshot) -> Self {
        let (mut files, mut others): (Vec<String>, Vec<Address>) = (CPUS.map(String::from).into(), Vec::new());
        for address in in_effect.settings.iter().filter_map(|s| s.want.address()) {
            match file(&address, now) {
                Some(path) => files.push(path),
                // A vector that does not exist changes with a notification.
                None if address.family() == Family::Irq => {}
                None => others.push(address),
            }
        }
        let around = (!others.is_empty()).then(|| {
            let named: BTreeSet<&str> = others.iter().filter_map(Address::dev).collect();
            let mut around = now.clone();
            around.nics.retain(|n| named.contains(n.name()));
            Box::new(around)
        });
        Self { files, others, around }
    }

    /// Whether both read the same files and settings.
    pub fn reads_the_same(&self, other: &Self) -> bool {
        self.files == other.files && self.others == other.others
    }

    /// `None`: it took too long.
    pub fn read(&mut self, host: &Arc<dyn Host>) -> Option<WatchedValues> {
        let (files, source) = (self.files.clone(), Arc::clone(host));
        let text = move |path: &String| source.read_text(path).ok().map(|t| t.to_string());
        let files = read_with_deadline(DEADLINE, move || files.iter().map(text).collect())?;
        let mut others = Vec::new();
        if let Some(around) = &mut self.around {
            let mut done = BTreeSet::new();
            for address in &self.others {
                // One answer has all values of the family, except where each queue or rule needs a request of its own.
                let alone = matches!(address, Address::QueueCoalesce { .. } | Address::FlowRule { .. });
                // irqbalance's answer is the same for all interfaces.
                let dev = address.dev().filter(|_| address.family() != Family::Rivals);
                if alone || done.insert((dev.map(str::to_string), address.family())) {
                    read_address(host, around, address, DEADLINE);
                }
                others.push(live(around, address));
            }
        }
        Some(WatchedValues { files, others })
    }
}

/// The file of a setting, if it has exactly one.
fn file(address: &Address, now: &Snapshot) -> Option<String> {
    match address {
        Address::IrqCpus { dev, of } => irq::vector(now.nic(dev)?, *of).map(|v| path::affinity(v.irq)),
        other => other.file(),
    }
}

//! Which CPUs may serve the queues of each interface when its interrupts follow the load.

use std::collections::BTreeSet;

use crate::compared::Compared;
use crate::replan::{configured, part, standing};
use crate::service::Service;

impl Service<'_> {
    /// Reads it from what was requested for each interface.
    pub(crate) fn note_permitted(&mut self, seen: &Compared) {
        if self.follow.is_none() {
            return;
        }
        let basis = self.basis(seen, &[]);
        let standing = standing(&seen.now, &basis);
        let parts = standing.parts(&seen.now);
        let wanted = configured(&seen.now, &basis);
        let of = |dev: &str| {
            let nic = seen.now.nic(dev).filter(|_| !seen.undone.contains(dev))?;
            let cpus = part(&parts.list, dev, wanted.as_ref())?.permitted_cpus(&seen.now.topology, nic)?;
            Some(cpus.iter().map(|c| c.0).collect::<BTreeSet<u32>>())
        };
        let names = seen.now.tunable().map(|n| n.name().to_string());
        self.permitted = names.filter_map(|dev| of(&dev).map(|cpus| (dev, cpus))).collect();
    }
}

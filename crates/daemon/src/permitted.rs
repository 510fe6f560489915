//! What may change on each interface when it follows the load: the CPUs that may serve its queues, its RPS mask, and its XPS masks.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use ringwise_apply::Standing;
use ringwise_knob::{Address, Setting};
use ringwise_model::{CpuId, CpuSet, Dir};

use crate::compared::{Compared, LoadLayout, MaskRule};
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
        let t = &seen.now.topology;
        let decided = |dev: &str| {
            let nic = seen.now.nic(dev).filter(|_| !seen.undone.contains(dev))?;
            Some((nic, part(&parts.list, dev, wanted.as_ref())?))
        };
        let of = |dev: &str| {
            let (nic, part) = decided(dev)?;
            Some(numbers(&part.permitted_cpus(t, nic)?))
        };
        // A look reads no caches. The plan chose the CPUs of a mask by these.
        let whole = OnceCell::new();
        let mask = |dev: &str| {
            let (nic, part) = decided(dev)?;
            let [only] = nic.rx_queues.as_slice() else { return None };
            let queue = only.id;
            let t = whole.get_or_init(|| ringwise_discover::topology(self.host.as_ref()).0);
            let cpu = nic.vector_of(Dir::Rx, queue)?.taken_by().filter(|c| c.len() == 1)?.first()?;
            let helpers = numbers(&part.rps_helpers(t, nic, cpu)?);
            let address = Address::RpsCpus { dev: dev.into(), queue };
            let applied = match seen.in_effect.settings.iter().find(|s| s.want.address().as_ref() == Some(&address)) {
                Some(Standing { want: Setting::RpsCpus { cpus, .. }, .. }) => numbers(cpus),
                _ => BTreeSet::new(),
            };
            Some(MaskRule { queue, cpu: cpu.0, helpers, applied })
        };
        let xps = |dev: &str| {
            let (nic, part) = decided(dev)?;
            let own = |s: &&Standing| s.want.dev() == Some(dev) && matches!(s.want, Setting::XpsCpus { .. });
            let own: Vec<&Standing> = seen.in_effect.settings.iter().filter(own).collect();
            let all = own.len() == nic.tx_queues.len() && own.iter().all(|s| s.how.holds());
            (all && own.len() > 1 && part.lays_xps_out(nic)).then_some(())
        };
        let core = |cpu: CpuId| Some((cpu.0, t.cpu(cpu)?.siblings.known()?.first()?.0));
        let names: Vec<String> = seen.now.tunable().map(|n| n.name().to_string()).collect();
        let machine = LoadLayout {
            core: t.online.iter().filter_map(core).collect(),
            masks: names.iter().filter_map(|dev| Some((dev.clone(), mask(dev)?))).collect(),
            xps: names.iter().filter(|dev| xps(dev).is_some()).cloned().collect(),
        };
        let permitted = names.into_iter().filter_map(|dev| of(&dev).map(|cpus| (dev, cpus))).collect();
        (self.permitted, self.machine) = (permitted, machine);
    }
}

fn numbers(cpus: &CpuSet) -> BTreeSet<u32> {
    cpus.iter().map(|c| c.0).collect()
}

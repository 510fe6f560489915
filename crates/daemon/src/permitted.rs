//! What may change on each interface when it follows the load: the CPUs that may serve its queues, its RPS mask, and its XPS masks.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use ringwise_apply::SettingInEffect;
use ringwise_knob::{Address, Setting};
use ringwise_model::{CpuId, CpuSet, Dir, Goal, Topology};

use crate::compared::{Compared, LoadLayout, MaskRule, PermittedCpus};
use crate::requests::Requests;
use crate::service::Service;

impl Service<'_> {
    pub(crate) fn may_follow(&self, requests: &Requests, seen: &Compared) -> (PermittedCpus, LoadLayout) {
        let t = &seen.now.topology;
        let permitted = |dev: &str| {
            let (nic, part) = requests.of(dev)?;
            Some(numbers(&part.permitted_cpus(t, nic)?))
        };
        // A look reads no caches. The plan chose the CPUs of a mask by these.
        let whole = OnceCell::new();
        let topology = || whole.get_or_init(|| ringwise_discover::topology(self.host.as_ref()).0);
        let core = |cpu: CpuId| Some((cpu.0, t.cpu(cpu)?.siblings.known()?.first()?.0));
        let names: Vec<String> = seen.now.tunable().map(|n| n.name().to_string()).collect();
        let machine = LoadLayout {
            core: t.online.iter().filter_map(core).collect(),
            masks: names.iter().filter_map(|d| Some((d.clone(), mask(d, requests, seen, &topology)?))).collect(),
            xps: names.iter().filter_map(|dev| Some((dev.clone(), xps_goal(dev, requests, seen)?))).collect(),
        };
        (names.into_iter().filter_map(|dev| permitted(&dev).map(|cpus| (dev, cpus))).collect(), machine)
    }
}

/// The RPS mask of an interface with one receive queue. `None`: it has others, or what the plan would put into the mask is unknown.
fn mask<'t>(dev: &str, requests: &Requests, seen: &Compared, topology: &dyn Fn() -> &'t Topology) -> Option<MaskRule> {
    let (nic, part) = requests.of(dev)?;
    let [only] = nic.rx_queues.as_slice() else { return None };
    let queue = only.id;
    let cpu = nic.vector_of(Dir::Rx, queue)?.taken_by().filter(|c| c.len() == 1)?.first()?;
    let helpers = numbers(&part.rps_helpers(topology(), nic, cpu)?);
    let address = Address::RpsCpus { dev: dev.into(), queue };
    let applied = match seen.in_effect.settings.iter().find(|s| s.want.address().as_ref() == Some(&address)) {
        Some(SettingInEffect { want: Setting::RpsCpus { cpus, .. }, .. }) => numbers(cpus),
        _ => BTreeSet::new(),
    };
    Some(MaskRule { queue, cpu: cpu.0, helpers, applied })
}

/// The goal by which the plan chose the XPS masks of the interface. `None`: it did not, or one of them is not as applied.
fn xps_goal(dev: &str, requests: &Requests, seen: &Compared) -> Option<Goal> {
    let (nic, part) = requests.of(dev)?;
    let own = |s: &&SettingInEffect| s.want.dev() == Some(dev) && matches!(s.want, Setting::XpsCpus { .. });
    let own: Vec<&SettingInEffect> = seen.in_effect.settings.iter().filter(own).collect();
    let all = own.len() == nic.tx_queues.len() && own.iter().all(|s| s.how.holds());
    (all && own.len() > 1 && part.chooses_xps_masks(nic)).then(|| part.intent.goal_of(dev))
}

fn numbers(cpus: &CpuSet) -> BTreeSet<u32> {
    cpus.iter().map(|c| c.0).collect()
}

//! Receive packet steering (`queues/rx-N/rps_cpus`). An empty set is off.

use ringwise_model::{CpuSet, Fact, Nic, Topology};

use crate::mask::mask;
use crate::{Match, Setting, path};

pub fn live(nic: &Nic, queue: u32) -> Fact<Setting> {
    let Some(q) = nic.rx_queues.iter().find(|q| q.id == queue) else {
        return Fact::Absent;
    };
    let dev = nic.dev.name.clone();
    q.rps_cpus.as_ref().map(|cpus: &CpuSet| Setting::RpsCpus { dev, queue, cpus: cpus.clone() })
}

/// The kernel silently keeps only housekeeping CPUs of what was asked (net/core/net-sysfs.c,
/// `rps_cpumask_housekeeping`): a smaller set that is not empty was adjusted.
pub fn compare(want: &CpuSet, got: &CpuSet) -> Match {
    if want == got {
        Match::Same
    } else if !got.is_empty() && got.is_subset(want) {
        Match::Adjusted
    } else {
        Match::Differs
    }
}

/// The same on a host of which it is known which CPUs the kernel drops: isolated ones and those that are offline.
pub fn compare_on(t: &Topology, want: &CpuSet, got: &CpuSet) -> Match {
    let of = |f: &Fact<CpuSet>| match f {
        Fact::Known(c) => Some(c.clone()),
        Fact::Absent => Some(CpuSet::new()),
        Fact::Unknown(_) => None,
    };
    let found = compare(want, got);
    let isolated: Option<Vec<CpuSet>> = [&t.isolated, &t.nohz_full, &t.cgroup_isolated].map(of).into_iter().collect();
    let Some(isolated) = isolated.filter(|_| found == Match::Adjusted) else { return found };
    let isolated = isolated.iter().fold(CpuSet::new(), |all, c| all.union(c));
    let dropped = want.difference(got).intersection(&t.online);
    if dropped.is_subset(&isolated) { found } else { Match::Differs }
}

/// What the kernel keeps of it where it is known which CPUs are isolated. `None`: nothing, and it refuses (EINVAL).
pub(crate) fn kept(t: &Topology, want: &CpuSet) -> Option<CpuSet> {
    let isolated = [&t.isolated, &t.nohz_full].into_iter().filter_map(Fact::known);
    let kept = isolated.fold(want.clone(), |left, i| left.difference(i));
    (want.is_empty() || !kept.is_empty()).then_some(kept)
}

pub fn command(dev: &str, queue: u32, cpus: &CpuSet) -> String {
    format!("echo {} > {}", mask(cpus), path::of_rx(dev, queue, "rps_cpus"))
}

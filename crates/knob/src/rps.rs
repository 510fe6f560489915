//! Receive packet steering (`queues/rx-N/rps_cpus`). An empty set means off.

use ringwise_model::errno::{EOVERFLOW, ERANGE};
use ringwise_model::{CpuSet, Fact, Nic, Snapshot, Topology};

use crate::mask::mask;
use crate::{Address, Descriptor, Match, NotProjected, Reaction, Setting, path, rx_queue, set_text};

pub(crate) struct RpsFamily;

impl Descriptor for RpsFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        let of_queue = |queue| Address::RpsCpus { dev: nic.dev.name.clone(), queue };
        nic.rx_queues.iter().map(|q| of_queue(q.id)).collect::<Vec<_>>()
    }

    fn label(&self, address: &Address) -> String {
        match address {
            Address::RpsCpus { dev, queue } => format!("{dev} rx-{queue} rps_cpus"),
            _ => String::new(),
        }
    }

    fn file(&self, address: &Address) -> Option<String> {
        match address {
            Address::RpsCpus { dev, queue } => Some(path::of_rx(dev, *queue, "rps_cpus")),
            _ => None,
        }
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        match address {
            Address::RpsCpus { dev, queue } => s.nic(dev).map_or(Fact::Absent, |n| live(n, *queue)),
            _ => Fact::Absent,
        }
    }

    fn equivalent(&self, s: &Snapshot, want: &Setting, got: &Setting) -> Match {
        match (want, got) {
            (Setting::RpsCpus { cpus, .. }, Setting::RpsCpus { cpus: got, .. }) => compare_on(&s.topology, cpus, got),
            _ => Match::Differs,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        let Setting::RpsCpus { dev, queue, cpus } = setting else { return Err(NotProjected::OTHER_FAMILY) };
        let cpus = kept(&s.topology, cpus).ok_or(NotProjected("all its CPUs are isolated"))?;
        rx_queue(s, dev, *queue)?.rps_cpus = Fact::Known(cpus);
        Ok(())
    }

    fn react(&self, _: &Address, errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        matches!(errno, Some(EOVERFLOW | ERANGE)).then_some(crate::react::NO_SUCH_CPU)
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::RpsCpus { cpus, .. } => set_text(cpus),
            _ => String::new(),
        }
    }

    fn command(&self, _: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::RpsCpus { dev, queue, cpus } => Some(command(dev, *queue, cpus)),
            _ => None,
        }
    }
}

/// RPS CPUs of a queue in this snapshot.
pub fn live(nic: &Nic, queue: u32) -> Fact<Setting> {
    let Some(q) = nic.rx_queues.iter().find(|q| q.id == queue) else {
        return Fact::Absent;
    };
    let dev = nic.dev.name.clone();
    q.rps_cpus.as_ref().map(|cpus: &CpuSet| Setting::RpsCpus { dev, queue, cpus: cpus.clone() })
}

/// The kernel silently keeps only the housekeeping CPUs of the requested set (net/core/net-sysfs.c,
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

/// Like [`compare`], for a host whose isolated and offline CPUs are known. The kernel drops both.
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

/// The part of the set that the kernel keeps, given the isolated CPUs. `None`: the kernel keeps nothing and refuses with
/// EINVAL.
pub(crate) fn kept(t: &Topology, want: &CpuSet) -> Option<CpuSet> {
    let isolated = [&t.isolated, &t.nohz_full].into_iter().filter_map(Fact::known);
    let kept = isolated.fold(want.clone(), |left, i| left.difference(i));
    (want.is_empty() || !kept.is_empty()).then_some(kept)
}

/// The command that writes the mask.
pub fn command(dev: &str, queue: u32, cpus: &CpuSet) -> String {
    format!("echo {} > {}", mask(cpus), path::of_rx(dev, queue, "rps_cpus"))
}

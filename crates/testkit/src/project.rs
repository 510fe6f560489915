//! A snapshot with settings written into it, including the side effects of the simulated drivers.

use ringwise_knob::{Setting, coalesce};
use ringwise_model::{CpuSet, Dir, Fact, Nic, Role, Snapshot};

use crate::machines::{self, Vectors};

/// The host after `settings` were written in their order: [`ringwise_knob::project`], and the queues and interrupts of a
/// device whose channels change.
///
/// # Panics
/// When a setting names a device, queue or vector that does not exist then.
pub fn project(s: &Snapshot, settings: &[Setting]) -> Snapshot {
    let mut out = s.clone();
    for setting in settings {
        ringwise_knob::project(&mut out, setting).unwrap_or_else(|e| panic!("{setting:?}: {e}"));
        if let Setting::Channels { dev, .. } = setting {
            let before = s.nics.iter().find(|n| n.dev.name == *dev);
            let now = out.nics.iter_mut().find(|n| n.dev.name == *dev);
            before.zip(now).into_iter().for_each(|(before, now)| redrawn(before, now, &s.topology.online));
        }
    }
    out
}

fn redrawn(before: &Nic, nic: &mut Nic, online: &CpuSet) {
    let counts = nic.channels.known();
    let n = counts.map_or(1, |c| c.rx_queues());
    assert_eq!(counts.map_or(1, |c| c.tx_queues()), n, "as many transmit as receive queues");
    let max = counts.and_then(|c| c.combined).map_or(0, |c| c.max);
    let split = match coalesce::pairs_with(nic.driver.known().map(String::as_str), n, max) {
        Some(pairs) => !pairs,
        None => before.vector_of(Dir::Tx, 0).is_some_and(|v| v.rx().is_empty()),
    };
    let style = if split { Vectors::Split } else { Vectors::Paired };
    let control = nic.vectors.iter().filter(|v| v.role == Role::Control).cloned().collect::<Vec<_>>();
    let first = 500 + before.vectors.first().map_or(0, |v| v.irq.0 / 1000 * 1000);
    nic.vectors = machines::vectors(&nic.dev.name.clone(), style, n, first, online);
    nic.vectors.extend(control);
    for q in &mut nic.tx_queues {
        if !q.bql.is_known() {
            *q = machines::tx_queue(q.id, n);
        }
        // The change resets it; a device with one transmit queue has none.
        q.xps_cpus = if n > 1 { Fact::Known(CpuSet::new()) } else { Fact::Absent };
    }
}

#[cfg(test)]
mod tests {
    use ringwise_knob::{Match, NotProjected, Setting, VectorName, compare, project};
    use ringwise_model::{CpuId, CpuSet, Dir, Fact};

    use crate::machines::{self, NicSpec};
    use crate::topo::CpuSpec;

    fn machine() -> ringwise_model::Snapshot {
        machines::host("one", CpuSpec::flat(4, 1), vec![NicSpec::new("eth0", "ice", Some(0), 4, 4)]).snapshot()
    }

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    fn dev() -> String {
        "eth0".into()
    }

    /// net/core/net-sysfs.c, `store_rps_dev_flow_table_cnt`; net/core/sysctl_net_core.c, `rps_sock_flow_sysctl`.
    #[test]
    fn tables_of_rfs_are_rounded_up() {
        let mut s = machine();
        project(&mut s, &Setting::RfsEntries { entries: 1000 }).unwrap();
        project(&mut s, &Setting::RpsFlowCnt { dev: dev(), queue: 1, entries: 500 }).unwrap();
        assert_eq!(s.host.rps_sock_flow_entries, Fact::Known(1024));
        assert_eq!(s.nics[0].rx_queues[1].rps_flow_cnt, Fact::Known(512));
        project(&mut s, &Setting::RfsEntries { entries: 0 }).unwrap();
        assert_eq!(s.host.rps_sock_flow_entries, Fact::Known(0));
    }

    #[test]
    fn an_interrupt_stays_where_it_may() {
        let irq = |cpus: &str, on| Setting::IrqCpus { dev: dev(), of: VectorName::Rx(2), cpus: set(cpus), on };
        let at = |s: &ringwise_model::Snapshot| s.nics[0].vector_of(Dir::Rx, 2).unwrap().effective.clone();
        let mut s = machine();
        project(&mut s, &irq("3", None)).unwrap();
        assert_eq!(at(&s), Fact::Known(set("3")));
        project(&mut s, &irq("1-3", None)).unwrap();
        assert_eq!(at(&s), Fact::Known(set("3")), "its CPU is in the new set");
        project(&mut s, &irq("1-2", Some(CpuId(2)))).unwrap();
        assert_eq!(at(&s), Fact::Known(set("2")), "written alone before the set");
        project(&mut s, &irq("0-1", None)).unwrap();
        assert!(!at(&s).is_known(), "the kernel chooses");
        assert_eq!(compare(&irq("0-1", None), &s), Match::Same);
    }

    #[test]
    fn the_kernel_drops_cpus_that_are_offline_or_isolated() {
        let mut s = machine();
        s.topology.online = set("0-2");
        s.topology.isolated = Fact::Known(set("2"));
        project(&mut s, &Setting::XpsCpus { dev: dev(), queue: 0, cpus: set("1-3") }).unwrap();
        project(&mut s, &Setting::RpsCpus { dev: dev(), queue: 0, cpus: set("1-3") }).unwrap();
        assert_eq!(s.nics[0].tx_queues[0].xps_cpus, Fact::Known(set("1-2")));
        assert_eq!(s.nics[0].rx_queues[0].rps_cpus, Fact::Known(set("1")));
        let before = s.clone();
        project(&mut s, &Setting::RpsCpus { dev: dev(), queue: 0, cpus: set("2") }).unwrap_err();
        project(&mut s, &Setting::IrqCpus { dev: dev(), of: VectorName::Rx(0), cpus: set("3"), on: None }).unwrap_err();
        assert_eq!(s, before, "what is refused changes nothing");
    }

    #[test]
    fn what_is_not_known_does_not_become_so() {
        let mut s = machine();
        s.nics[0].rings = Fact::unknown("rings-get eth0", "needs root");
        let rings = Setting::Rings { dev: dev(), values: ringwise_model::RingValues::sizes(Some(512), None) };
        assert_eq!(project(&mut s, &rings), Err(NotProjected("the value of the device is unknown")));
        let channels = Setting::Channels { dev: dev(), rx: None, tx: None, combined: Some(2) };
        project(&mut s, &channels).unwrap();
        assert_eq!((s.nics[0].rx_queues.len(), s.nics[0].vectors.iter().filter(|v| v.is_queue()).count()), (2, 2));
        let channels = Setting::Channels { dev: dev(), rx: None, tx: None, combined: Some(4) };
        project(&mut s, &channels).unwrap();
        assert!(s.nics[0].vector_of(Dir::Rx, 3).is_none(), "its interrupt is requested later");
        assert!(!s.nics[0].tx_queues[3].xps_cpus.is_known(), "some drivers fill it");
    }
}

//! The receive queues of a device: the indirection table, what forbids writing it, and queues that programs use.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_adapt::Forbidden;
use ringwise_adapt::load::Exclusion;
use ringwise_flow::Steering;
use ringwise_flow::stack::RXHASH;
use ringwise_flow::steering::NTUPLE;
use ringwise_knob::restarts_for_rss;
use ringwise_model::{Fact, IrqId, Movable, Nic, User};

/// `threaded` of a NAPI instance whose kernel thread polls without a pause.
const BUSY_POLL: u32 = 2;

/// Facts about one interface that rarely change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// Receive queue of each entry. `None`: unknown, or the device has no table.
    pub table: Option<Vec<u32>>,
    pub forbidden: Vec<Forbidden>,
    pub excluded: BTreeMap<u32, Exclusion>,
    /// The RPS mask of its only receive queue. `None`: unknown, or there are several.
    pub mask: Option<BTreeSet<u32>>,
    /// Interrupts that cannot be moved.
    pub immovable: BTreeSet<IrqId>,
    /// Computes the entry of a packet from its header.
    pub steering: Option<Steering>,
}

/// The facts of a device of which every part was read. `host_key`: the hash key that the kernel provides for drivers. `no_table`: why
/// its table must not be written, from what was found when it was written before.
pub(crate) fn facts(nic: &Nic, host_key: &Fact<String>, no_table: Option<Forbidden>) -> Facts {
    let table = nic.rss.known().map(|r| r.table.clone()).filter(|t| !t.is_empty());
    let fixed = nic.vectors.iter().filter(|v| matches!(v.movable, Movable::No(_)));
    Facts {
        table,
        forbidden: forbidden(nic, no_table),
        excluded: excluded(nic),
        mask: match nic.rx_queues.as_slice() {
            [only] => only.rps_cpus.known().map(|cpus| cpus.iter().map(|c| c.0).collect()),
            _ => None,
        },
        immovable: fixed.map(|v| v.irq).collect(),
        steering: Some(Steering::new(nic, host_key)),
    }
}

fn forbidden(nic: &Nic, no_table: Option<Forbidden>) -> Vec<Forbidden> {
    let mut out: Vec<Forbidden> = no_table.into_iter().collect();
    if nic.driver.known().is_none() {
        out.push(Forbidden::Unknown);
    }
    if restarts_for_rss(nic) {
        out.push(Forbidden::WriteResetsDevice);
    }
    let feature = |name: &str| nic.features.known().map(|f| f.get(name).map(|f| f.on));
    match feature(RXHASH) {
        Some(Some(false)) => out.push(Forbidden::HashOff),
        // Some drivers always hash and have no such feature. Packets without a hash are noticed when they are counted.
        Some(_) => {}
        None => out.push(Forbidden::Unknown),
    }
    let mut flow_tables = false;
    for q in &nic.rx_queues {
        match &q.rps_cpus {
            Fact::Known(cpus) if !cpus.is_empty() => out.push(Forbidden::Rps),
            Fact::Unknown(_) => out.push(Forbidden::Unknown),
            _ => {}
        }
        flow_tables |= q.rps_flow_cnt.known().is_some_and(|n| *n > 0);
        if matches!(q.rps_flow_cnt, Fact::Unknown(_)) {
            out.push(Forbidden::Unknown);
        }
    }
    // It is unknown which queues others use.
    if matches!(nic.users, Fact::Unknown(_)) || matches!(nic.napi, Fact::Unknown(_)) {
        out.push(Forbidden::Unknown);
    }
    match &nic.rules {
        Fact::Known(r) if !r.rules.is_empty() => out.push(Forbidden::Rules),
        Fact::Unknown(_) => out.push(Forbidden::Unknown),
        _ => {}
    }
    if flow_tables && feature(NTUPLE) == Some(Some(true)) {
        out.push(Forbidden::Rfs);
    }
    out.sort_unstable();
    out.dedup();
    out
}

fn excluded(nic: &Nic) -> BTreeMap<u32, Exclusion> {
    let held = nic.queue_users().filter_map(|u| {
        let why = match u {
            User::Dmabuf { .. } | User::IoUring { .. } => Exclusion::Memory,
            User::Lease { .. } => Exclusion::Leased,
            _ => Exclusion::AfXdp,
        };
        Some((u.queue()?, why))
    });
    let instances = nic.napi.known().into_iter().flat_map(|n| &n.instances);
    let polled = instances.filter(|i| {
        i.values
            .known()
            .is_some_and(|v| v.threaded == Some(BUSY_POLL) || v.irq_suspend_timeout_ns.is_some_and(|n| n > 0))
    });
    polled.flat_map(|i| i.rx.iter().map(|q| (*q, Exclusion::BusyPolled))).chain(held).collect()
}

#[cfg(test)]
mod tests {
    use ringwise_model::{Action, CpuId, CpuSet, Feature, IfIndex, Immovable, NapiValues, Rule};
    use ringwise_testkit::sim::build;

    use super::*;

    /// Four queues, each with a NAPI instance. The device hashes, and nothing forbids to write its table.
    fn nic() -> Nic {
        build::host(8, 1).mqnic("eth0", 0, 4).linked().done().nics.remove(0)
    }

    fn of(nic: &Nic) -> Facts {
        facts(nic, &Fact::Absent, None)
    }

    fn unknown<T>() -> Fact<T> {
        Fact::unknown("/a/file", "EACCES")
    }

    #[test]
    fn queues_that_others_use_are_excluded() {
        let mut nic = nic();
        assert!(of(&nic).excluded.is_empty());
        nic.users = Fact::Known(vec![
            User::AfXdp { queue: 0 },
            User::Lease { queue: 1, ifindex: IfIndex(9), leased_as: 0, netns: None },
            User::IoUring { queue: 2 },
            User::Dmabuf { queue: 3, id: 1 },
            User::Rdma { device: "mlx5_0".into() },
        ]);
        let expected = [(0, Exclusion::AfXdp), (1, Exclusion::Leased), (2, Exclusion::Memory), (3, Exclusion::Memory)];
        assert_eq!(of(&nic).excluded, expected.into());
        assert_eq!(of(&nic).forbidden, [], "the other queues may be balanced");
    }

    #[test]
    fn queues_that_are_polled_busily_are_excluded() {
        let mut nic = nic();
        let values = [
            NapiValues { threaded: Some(2), ..NapiValues::default() },
            NapiValues { irq_suspend_timeout_ns: Some(20_000_000), ..NapiValues::default() },
            // A thread that sleeps without packets is load like a softirq.
            NapiValues { threaded: Some(1), ..NapiValues::default() },
            // Moderation uses these without a program that polls, too.
            NapiValues {
                defer_hard_irqs: Some(200),
                gro_flush_timeout_ns: Some(200_000),
                irq_suspend_timeout_ns: Some(0),
                threaded: Some(0),
            },
        ];
        let Fact::Known(napi) = &mut nic.napi else { panic!("{:?}", nic.napi) };
        assert_eq!(napi.instances.iter().map(|i| i.rx.clone()).collect::<Vec<_>>(), [[0], [1], [2], [3]]);
        napi.instances.iter_mut().zip(values).for_each(|(i, v)| i.values = Fact::Known(v));
        assert_eq!(of(&nic).excluded, [(0, Exclusion::BusyPolled), (1, Exclusion::BusyPolled)].into());
        nic.users = Fact::Known(vec![User::AfXdp { queue: 1 }]);
        assert_eq!(of(&nic).excluded, [(0, Exclusion::BusyPolled), (1, Exclusion::AfXdp)].into());
    }

    #[test]
    fn what_forbids_to_write_the_table() {
        let forbidden = |change: &dyn Fn(&mut Nic)| {
            let mut nic = nic();
            change(&mut nic);
            of(&nic).forbidden
        };
        let switch = |nic: &mut Nic, name: &str, on: bool| {
            let Fact::Known(features) = &mut nic.features else { panic!("{:?}", nic.features) };
            features.insert(name.into(), Feature { on, wanted: on, fixed: false });
        };
        assert_eq!(forbidden(&|_| {}), []);
        assert_eq!(forbidden(&|n| n.driver = Fact::Known("bnxt_en".into())), [Forbidden::WriteResetsDevice]);
        for why in [Forbidden::WriteResetsDevice, Forbidden::ResetUnknown] {
            assert_eq!(facts(&nic(), &Fact::Absent, Some(why)).forbidden, [why], "as it was found");
        }
        assert_eq!(forbidden(&|n| switch(n, RXHASH, false)), [Forbidden::HashOff]);
        let one = || Fact::Known(CpuSet::one(CpuId(3)));
        assert_eq!(forbidden(&|n| n.rx_queues[2].rps_cpus = one()), [Forbidden::Rps]);
        let rule = Rule { flow: "udp4".into(), fields: BTreeMap::new(), action: Action::Queue(2), context: None };
        let add = |n: &mut Nic| {
            let Fact::Known(rules) = &mut n.rules else { panic!("{:?}", n.rules) };
            rules.rules.insert(0, rule.clone());
        };
        assert_eq!(forbidden(&add), [Forbidden::Rules]);
        assert_eq!(
            forbidden(&|n| {
                add(n);
                switch(n, RXHASH, false);
            }),
            [Forbidden::HashOff, Forbidden::Rules]
        );
    }

    /// RFS asks the driver for a queue only with ntuple (net/core/dev.c, `set_rps_cpu`).
    #[test]
    fn rfs_forbids_it_only_with_ntuple() {
        for (flows, ntuple, expected) in
            [(0, false, vec![]), (0, true, vec![]), (4096, false, vec![]), (4096, true, vec![Forbidden::Rfs])]
        {
            let mut nic = nic();
            nic.rx_queues[1].rps_flow_cnt = Fact::Known(flows);
            let Fact::Known(features) = &mut nic.features else { panic!("{:?}", nic.features) };
            features.insert(NTUPLE.into(), Feature { on: ntuple, wanted: ntuple, fixed: false });
            assert_eq!(of(&nic).forbidden, expected, "{flows} flows, ntuple {ntuple}");
        }
    }

    #[test]
    fn what_is_unknown_forbids_it_too() {
        let changes: [fn(&mut Nic); 7] = [
            |n| n.driver = unknown(),
            |n| n.features = unknown(),
            |n| n.rx_queues[0].rps_cpus = unknown(),
            |n| n.rx_queues[0].rps_flow_cnt = unknown(),
            |n| n.rules = unknown(),
            |n| n.users = unknown(),
            |n| n.napi = unknown(),
        ];
        for (i, change) in changes.iter().enumerate() {
            let mut nic = nic();
            change(&mut nic);
            assert_eq!(of(&nic).forbidden, [Forbidden::Unknown], "change {i}");
        }
    }

    #[test]
    fn a_mask_is_known_only_of_a_single_queue() {
        let mut several = nic();
        let table = several.rss.known().map(|r| r.table.clone());
        assert!(table.as_ref().is_some_and(|t| !t.is_empty()));
        assert_eq!((of(&several).mask, of(&several).table), (None, table));
        several.vectors[1].movable = Movable::No(Immovable::Managed);
        assert_eq!(of(&several).immovable, [several.vectors[1].irq].into());
        let mut single = nic();
        single.rx_queues.truncate(1);
        single.rx_queues[0].rps_cpus = Fact::Known(CpuSet::range(2, 3));
        assert_eq!(of(&single).mask, Some([2, 3].into()));
        single.rx_queues[0].rps_cpus = unknown();
        assert_eq!(of(&single).mask, None);
    }
}

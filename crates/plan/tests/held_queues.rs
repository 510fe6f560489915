//! Queues that a program holds: AF_XDP sockets, DMA buffers, io_uring zero copy, leases.

use std::collections::BTreeSet;

use ringwise_knob::{Address, Setting, Step, VectorName};
use ringwise_model::{ConfiguredBy, Fact, IfIndex, Intent, Knob, RingValues, Snapshot, Table, User, Wish};
use ringwise_plan::{Obstacle, Plan, plan};
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::sim::build;
use ringwise_testkit::topo::CpuSpec;

/// Two nodes of four cores with two threads.
fn host(nics: Vec<NicSpec>) -> Snapshot {
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) };
    machines::host("held1", cpu, nics).snapshot()
}

fn igb(name: &str, node: u32, queues: u32) -> NicSpec {
    NicSpec::new(name, "igb", Some(node), queues, 8)
}

fn ok(s: &Snapshot, intent: &Intent) -> Plan {
    plan(s, intent, &[]).expect("can be planned")
}

/// Every kind of user that holds one queue.
pub(crate) fn holders(queue: u32) -> [User; 4] {
    let lease = User::Lease { queue, ifindex: IfIndex(9), leased_as: 1, netns: Some(0) };
    [User::AfXdp { queue }, User::Dmabuf { queue, id: 1 }, User::IoUring { queue }, lease]
}

/// A program that holds a queue chose it with the CPU that serves it.
#[test]
fn the_interrupt_of_a_held_queue_is_not_moved() {
    let moved = |p: &Plan| -> BTreeSet<u32> {
        let of = |s: &Step| match s.setting {
            Setting::IrqCpus { of: VectorName::Rx(q), .. } => Some(q),
            _ => None,
        };
        p.steps.iter().filter_map(of).collect()
    };
    let free = ok(&host(vec![igb("eth1", 0, 8)]), &Intent::default());
    assert!(moved(&free).contains(&3), "without a user the plan moves it: {:?}", moved(&free));
    for user in holders(3) {
        let s = host(vec![NicSpec { users: vec![user.clone()], ..igb("eth1", 0, 8) }]);
        let p = ok(&s, &Intent::default());
        assert!(!moved(&p).contains(&3) && moved(&p).len() >= 6, "{user:?}: {:?}", moved(&p));
        let address = Address::IrqCpus { dev: "eth1".into(), of: VectorName::Rx(3) };
        let no = p.refused.iter().find(|r| r.address.as_ref() == Some(&address)).expect("the plan names the reason");
        assert_eq!((no.needed, &no.why), (false, &Obstacle::InUse { by: vec![user] }));
    }
    // A user of the whole device, and a user of another queue, do not hold it.
    for user in [User::Rdma { device: "mlx5_0".into() }, User::IoUring { queue: 4 }] {
        let s = host(vec![NicSpec { users: vec![user], ..igb("eth1", 0, 8) }]);
        assert!(moved(&ok(&s, &Intent::default())).contains(&3));
    }
}

#[test]
fn rings_and_table_keep_off_held_queues() {
    let wish =
        |knob: Knob| Wish { dev: Some("eth1".into()), knob, by: ConfiguredBy::InEffect, params_by: Default::default() };
    let rings = |rx| wish(Knob::Rings { values: RingValues::sizes(Some(rx), None) });
    let table = |queues| wish(Knob::RssTable { context: None, table: Table::Equal { queues, start: 0 } });
    for user in holders(7) {
        let mut s = build::host(8, 1).igb("eth1", 0, 8).done();
        s.nics[0].users = Fact::Known(vec![user.clone()]);
        let Fact::Known(rss) = &mut s.nics[0].rss else { panic!("igb has a table") };
        rss.table.iter_mut().for_each(|q| *q %= 7);
        let plan = |wish: Wish| ok(&s, &Intent { wishes: vec![wish], allow_disruption: true, ..Intent::default() });
        let now = s.nics[0].rings.known().unwrap().rx.unwrap().now;
        let no = plan(rings(now * 2));
        let why = |p: &Plan, address: Address| {
            p.refused.iter().find(|r| r.address == Some(address.clone())).map(|r| r.why.clone())
        };
        let dev = || "eth1".to_string();
        let found = why(&no, Address::Rings { dev: dev() });
        let by = vec![user];
        let obstacle = Box::new(Obstacle::InUse { by: by.clone() });
        assert_eq!(found, Some(Obstacle::Configured { obstacle, by: vec![ConfiguredBy::InEffect] }));
        assert_eq!(why(&plan(rings(now)), Address::Rings { dev: dev() }), None, "nothing is written");
        let found = why(&plan(table(8)), Address::RssTable { dev: dev() });
        assert_eq!(found, Some(Obstacle::TableReachesUser { by }));
        let p = plan(table(6));
        assert_eq!(why(&p, Address::RssTable { dev: dev() }), None);
        assert!(p.steps.iter().any(|s| matches!(s.setting, Setting::RssTable { .. })), "{:?}", p.steps);
    }
}

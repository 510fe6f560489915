//! Discovery finds in the simulated host exactly the data from which it was built.

use std::sync::Arc;

use crate::common::*;
use ringwise_knob::{VectorName, irq as irq_of};
use ringwise_model::{Fact, IfIndex, User};
use ringwise_testkit::sim::{Sim, build};

#[test]
fn discovery_finds_what_it_was_built_from() {
    let built = build::host(8, 2)
        .igb("eth0", 0, 8)
        .igb("eth1", 1, 4)
        .virtio("eth2", 0, 4)
        .vmxnet3("eth3", 1, 4)
        .mqnic("eth4", 0, 4)
        .e1000e("eth5", 1)
        .done();
    let sim = Arc::new(Sim::new(&built));
    let found = look(&sim);
    assert_eq!(found.topology, built.topology);
    assert_eq!(settings(&found), settings(&built));
    for (a, b) in built.nics.iter().zip(&found.nics) {
        assert_eq!(a.dev, b.dev);
        assert_eq!(a.driver, b.driver);
        assert_eq!(a.kind, b.kind, "{}", a.dev.name);
        assert_eq!(a.node, b.node);
        assert_eq!(a.link, b.link, "{}", a.dev.name);
        let roles = |n: &ringwise_model::Nic| {
            let each = n.vectors.iter().map(|v| (v.irq, v.role.clone(), v.asked.clone(), v.effective.clone()));
            let mut all: Vec<_> = each.collect();
            all.sort_by_key(|v| v.0);
            all
        };
        assert_eq!(roles(a), roles(b), "{}", a.dev.name);
    }
    // A host that is simulated from the discovered data gives the same data again.
    let again = Arc::new(Sim::new(&found));
    assert_eq!(look(&again), found);
}

#[test]
fn igb_has_pairs_above_four_queues_only() {
    let sim = Arc::new(Sim::new(&build::host(8, 1).igb("eth0", 0, 8).done()));
    let before = look(&sim);
    let number = |s: &ringwise_model::Snapshot, of| irq_of::vector(s.nic("eth0").unwrap(), of).unwrap().irq;
    assert_eq!(number(&before, VectorName::Rx(1)), number(&before, VectorName::Tx(1)));
    sim.ethtool_l("eth0", 4).unwrap();
    let after = look(&sim);
    assert_ne!(number(&after, VectorName::Rx(1)), number(&after, VectorName::Tx(1)));
    assert_ne!(number(&before, VectorName::Rx(1)), number(&after, VectorName::Rx(1)));
    assert_eq!(after.nic("eth0").unwrap().link.carrier, Fact::Known(false));
}

#[test]
fn the_effective_cpu_moves_with_the_next_interrupt() {
    let sim = Arc::new(Sim::new(&build::host(4, 1).igb("eth0", 0, 4).done()));
    let of = |s: &ringwise_model::Snapshot| {
        let v = irq_of::vector(s.nic("eth0").unwrap(), VectorName::Rx(0)).unwrap().clone();
        (v.irq.0, v.asked, v.effective)
    };
    let (irq, _, was) = of(&look(&sim));
    sim.outside(|h| h.write(&format!("/proc/irq/{irq}/smp_affinity_list"), b"3\n")).unwrap();
    let (_, asked, effective) = of(&look(&sim));
    assert_eq!((asked, effective), (Fact::Known(cpus("3")), was));
    sim.interrupt(irq);
    assert_eq!(of(&look(&sim)).2, Fact::Known(cpus("3")));
}

#[test]
fn the_kernels_refusals() {
    let sim =
        Arc::new(Sim::new(&build::host(4, 1).isolated("3").mqnic("eth0", 0, 4).managed().e1000e("eth1", 0).done()));
    let irq = |dev: &str, of| irq_of::vector(look(&sim).nic(dev).unwrap(), of).unwrap().irq.0;
    let write = |path: &str, text: &str| sim.outside(|h| h.write(path, text.as_bytes())).map_err(|e| e.errno);
    let list = |n| format!("/proc/irq/{n}/smp_affinity_list");
    let mask = |n| format!("/proc/irq/{n}/smp_affinity");
    let (managed, free) = (irq("eth0", VectorName::Rx(0)), irq("eth1", VectorName::Rx(0)));
    let rps = "/sys/class/net/eth1/queues/rx-0/rps_cpus";
    for (path, text, errno) in [
        (list(managed), "0", 1),
        (list(free), "99", 34),
        (list(free), "", 22),
        (list(free), "zz", 22),
        (mask(free), "f00", 75),
        (mask(free), "0", 22),
        (rps.to_string(), "f0", 75),
        (rps.to_string(), "8", 22),
        (rps.to_string(), "xyz", 22),
        ("/sys/class/net/eth1/queues/tx-0/xps_cpus".into(), "1", 2),
        ("/sys/class/net/eth1/queues/tx-7/xps_cpus".into(), "1", 2),
    ] {
        assert_eq!(write(&path, text), Err(Some(errno)), "{path} <- {text}");
    }
    write("/sys/class/net/eth1/queues/rx-0/rps_flow_cnt", "1000").unwrap();
    write("/proc/sys/net/core/rps_sock_flow_entries", "1000").unwrap();
    write(rps, "c").unwrap();
    let now = look(&sim);
    let q = &now.nic("eth1").unwrap().rx_queues[0];
    assert_eq!((q.rps_flow_cnt.known(), now.host.rps_sock_flow_entries.known()), (Some(&1024), Some(&1024)));
    assert_eq!(q.rps_cpus.known(), Some(&cpus("2")));
}

#[test]
fn channels_and_a_users_table() {
    let sim = Arc::new(Sim::new(&build::host(8, 1).mqnic("eth0", 0, 8).igb("eth1", 0, 4).done()));
    let words = |r: ringwise_sys::Result<()>| r.unwrap_err().words.unwrap();
    assert_eq!(words(sim.ethtool_l("eth1", 9)), "requested channel count exceeds maximum");
    let by_hand: Vec<u32> = (0..128).map(|i| if i < 100 { 0 } else { 5 }).collect();
    sim.ethtool_x("eth0", &by_hand).unwrap();
    assert_eq!(
        words(sim.ethtool_l("eth0", 4)),
        "requested channel counts are too low for existing indirection table (5)"
    );
    sim.ethtool_l("eth0", 6).unwrap();
    assert_eq!(sim.nic("eth0").unwrap().rss.known().unwrap().table, by_hand);
}

/// net/ethtool/channels.c, `ethnl_set_channels`, with `netdev_queue_busy` (7.1), and net/ethtool/common.c,
/// `ethtool_check_max_channel`.
#[test]
fn queues_that_a_program_holds_are_found_and_stay() {
    let lease = User::Lease { queue: 5, ifindex: IfIndex(9), leased_as: 1, netns: Some(0) };
    let memory = "requested channel counts are too low for existing memory provider setting (6)";
    let socket = "requested channel counts are too low for existing zerocopy AF_XDP sockets";
    for (kernel, user, text) in [
        ("6.18.0", User::AfXdp { queue: 5 }, socket),
        ("7.3.4", User::AfXdp { queue: 5 }, "Device queue in use by AF_XDP"),
        ("6.18.0", User::IoUring { queue: 5 }, memory),
        ("7.3.4", User::Dmabuf { queue: 5, id: 2 }, memory),
        ("7.3.4", lease, "Device queue in use due to queue leasing"),
    ] {
        let mut built = build::host(8, 1).kernel(kernel).mqnic("eth0", 0, 8).done();
        built.nics[0].users = Fact::Known(vec![user]);
        let sim = Arc::new(Sim::new(&built));
        assert_eq!(look(&sim).nic("eth0").unwrap().users, built.nics[0].users);
        assert_eq!(sim.ethtool_l("eth0", 4).unwrap_err().words.as_deref(), Some(text));
        // Memory of a program needs one queue more than the others do.
        assert_eq!(sim.ethtool_l("eth0", 6).is_err(), text == memory);
        sim.ethtool_l("eth0", 7).unwrap();
    }
}

#[test]
fn older_kernels_say_eio_for_managed_interrupts() {
    let sim = Arc::new(Sim::new(&build::host(4, 1).kernel("6.1.0-56-amd64").mqnic("eth0", 0, 4).managed().done()));
    let irq = irq_of::vector(look(&sim).nic("eth0").unwrap(), VectorName::Rx(0)).unwrap().irq;
    let e = sim.outside(|h| h.write(&format!("/proc/irq/{irq}/smp_affinity_list"), b"0")).unwrap_err();
    assert_eq!(e.errno, Some(5));
}

#[test]
fn an_offline_cpu_and_a_full_one() {
    let sim = Arc::new(Sim::new(&build::host(4, 1).mqnic("eth0", 0, 4).done()));
    let irq = irq_of::vector(look(&sim).nic("eth0").unwrap(), VectorName::Rx(0)).unwrap().irq.0;
    let write = |list: &str| {
        sim.outside(|h| h.write(&format!("/proc/irq/{irq}/smp_affinity_list"), list.as_bytes())).map_err(|e| e.errno)
    };
    sim.fill_cpus(cpus("2"));
    assert_eq!(write("2"), Err(Some(28)));
    write("2-3").unwrap();
    write("3").unwrap();
    sim.interrupt(irq);
    sim.cpu_offline(ringwise_model::CpuId(3));
    let now = look(&sim);
    let v = irq_of::vector(now.nic("eth0").unwrap(), VectorName::Rx(0)).unwrap();
    assert_eq!((v.asked.known(), v.effective.known()), (Some(&cpus("0-2")), Some(&cpus("0"))));
    assert_eq!(write("3"), Err(Some(22)));
}

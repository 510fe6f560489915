//! The snapshot as a whole: choice of interfaces, errors, topology, facts of the host.

use crate::common;
use std::time::{Duration, Instant};

use crate::common::Tree;
use crate::common::machine::{Machine, NicPlan, igb, named, soft};
use ringwise_discover::{Error, Options, device, host, snapshot, topology};
use ringwise_model::{CpuId, Fact, IfIndex, NicKind, NodeId, Snapshot, User};
use ringwise_sys::Request;

fn router() -> Machine {
    let mut m = Machine::new(16, 2);
    for (i, name) in ["eth10", "eth2", "eth1"].into_iter().enumerate() {
        let bus = format!("0000:0{}:00.0", i + 3);
        m.nic(&NicPlan {
            name,
            driver: "igb",
            bus: &bus,
            node: i as i32 % 2,
            queues: 8,
            vectors: igb(name, 8),
            up: true,
            genl_first: None,
        });
    }
    m
}

fn names(s: &Snapshot) -> Vec<&str> {
    s.nics.iter().map(|n| n.name()).collect()
}

fn read(tree: &Tree) -> Snapshot {
    snapshot(&tree.shared(), &Options::all()).unwrap()
}

#[test]
fn a_router_is_read_whole() {
    let mut m = router();
    m.address(2, "192.0.2.1/24");
    m.address(2, "2001:db8::1/64");
    let s = read(&m.finish());
    assert_eq!(names(&s), ["eth1", "eth2", "eth10", "lo"]);
    let n = s.nic("eth10").unwrap();
    assert_eq!(n.driver, Fact::Known("igb".into()));
    assert_eq!(n.dev.bus_address.as_deref(), Some("0000:03:00.0"));
    assert_eq!(n.dev.permanent_mac.as_deref(), Some("52:54:00:00:00:01"));
    assert_eq!(n.node, Fact::Known(NodeId(0)));
    assert_eq!(n.addresses, Fact::Known(vec!["192.0.2.1/24".into(), "2001:db8::1/64".into()]));
    assert_eq!(n.channels.known().unwrap().combined.unwrap().now, 8);
    assert_eq!(n.rings.known().unwrap().rx.unwrap().max, 4096);
    assert_eq!(n.coalesce.known().unwrap().0["rx-usecs"], 3);
    assert_eq!((n.pause.is_absent(), n.users.is_absent()), (true, true));
    assert_eq!(n.rss.known().unwrap().table.len(), 128);
    assert_eq!(n.tx_queues[3].xps_cpus, Fact::Known("0".parse().unwrap()));
    assert_eq!(n.tx_queues[3].bql.known().unwrap().limit_max_bytes, 1_879_048_192);
    assert_eq!(n.rx_queues[0].rps_cpus, Fact::Known("".parse().unwrap()));
    assert_eq!(s.host.rivals, Fact::Known(vec!["irqbalance".into()]));
    assert_eq!((s.host.forwarding, s.host.read_only), (Fact::Known(true), Fact::Known(false)));
    assert!(s.topology.hypervisor.is_absent());
    assert_eq!(s.unread, []);
}

#[test]
fn software_is_counted_and_bonds_are_followed() {
    let mut m = router();
    let bond = m.link(soft("bond0", "bond", None));
    m.relink(2, |l| l.master = Some(bond));
    m.relink(3, |l| l.master = Some(bond));
    for i in 0..100 {
        m.link(soft(&format!("bond0.{i}"), "vlan", Some(bond)));
    }
    // The link of a veth is its other end and nothing below it.
    m.link(soft("veth0", "veth", Some(4)));
    m.link(soft("ifb0", "ifb", None));
    let ovs = m.link(soft("ovs-system", "openvswitch", None));
    m.relink(4, |l| l.master = Some(ovs));
    let tree = m.finish();
    let s = read(&tree);
    assert_eq!(names(&s), ["bond0", "eth1", "eth2", "eth10", "lo", "ovs-system"]);
    let b = s.nic("bond0").unwrap();
    assert_eq!(b.kind, NicKind::Software { kind: "bond".into() });
    assert_eq!(b.lower, [IfIndex(2), IfIndex(3)]);
    assert_eq!(s.nic("eth2").unwrap().master, Some(IfIndex(bond)));
    assert_eq!(s.nic("eth1").unwrap().users, Fact::Known(vec![User::Ovs]));
    assert_eq!(
        s.bystanders.count.clone().into_iter().collect::<Vec<_>>(),
        [("ifb".to_string(), 1), ("veth".to_string(), 1), ("vlan".to_string(), 100)]
    );
    assert_eq!(s.bystanders.above[&IfIndex(bond)]["vlan"], 100);
    assert!(!s.bystanders.above.contains_key(&IfIndex(4)));

    // Named ones come with what lies below.
    let one = Options::only(&["bond0.7".to_string()]);
    assert_eq!(names(&snapshot(&tree.shared(), &one).unwrap()), ["bond0", "bond0.7", "eth2", "eth10"]);
    let follow = Options { follow: vec!["bond0.7".into(), "gone".into()], ..Options::all() };
    assert!(names(&snapshot(&tree.shared(), &follow).unwrap()).contains(&"bond0.7"));
}

#[test]
fn thousands_of_software_interfaces_cost_little() {
    let base = router().finish();
    let mut m = router();
    for i in 0..5000 {
        m.link(soft(&format!("eth1.{i}"), "vlan", Some(4)));
    }
    for i in 0..500 {
        m.link(soft(&format!("veth{i}"), "veth", Some(i)));
    }
    let tree = m.finish();
    // No file of theirs is touched.
    let counting = tree.host();
    let reads = |h: &common::MapHost| h.reads.load(std::sync::atomic::Ordering::Relaxed);
    let few = base.host();
    let (a, b) = (std::sync::Arc::new(counting), std::sync::Arc::new(few));
    for host in [&a, &b] {
        let s = snapshot(&(host.clone() as _), &Options::all()).unwrap();
        assert_eq!(s.nics.len(), 4);
    }
    assert_eq!(reads(&a), reads(&b));
}

#[test]
fn an_unknown_device_lists_the_others() {
    let e = snapshot(&router().finish().shared(), &Options::only(&["eth3".to_string()])).unwrap_err();
    let Error::NoSuchDevice { name, existing, near } = &e else { panic!("{e}") };
    assert_eq!((name.as_str(), near.as_deref()), ("eth3", Some("eth1")));
    assert_eq!(existing, &["eth1", "eth2", "eth10"]);
    assert!(device(&router().finish().shared(), "eth3", Duration::from_secs(1)).is_err());
}

#[test]
fn nothing_to_read_is_the_one_failure() {
    let e = snapshot(&Tree::default().shared(), &Options::all()).unwrap_err();
    assert!(matches!(e, Error::NothingReadable { .. }), "{e}");
    let mut t = Tree { foreign: true, ..Tree::default() };
    assert!(snapshot(&t.shared(), &Options::all()).unwrap_err().to_string().contains("not in this capture"));
    t.file("/proc/interrupts", "           CPU0       CPU1\n  30:   1   2  PCI-MSI 3-edge      eth0-TxRx-0\n");
    let s = snapshot(&t.shared(), &Options::all()).unwrap();
    assert_eq!(s.topology.online.to_string(), "0-1");
    assert!(s.unread.iter().any(|u| u.what.ends_with("/online")));
}

#[test]
fn a_device_that_hangs_is_late_and_the_others_are_complete() {
    let mut tree = router().finish();
    tree.hangs = Some("eth2".into());
    let begin = Instant::now();
    let options = Options { deadline: Duration::from_millis(400), ..Options::all() };
    let s = snapshot(&tree.shared(), &options).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(3));
    let late = s.nic("eth2").unwrap();
    assert_eq!(late.unread[0].why, "no answer within 0.4 s");
    assert!(late.channels.unread().unwrap().why.contains("no answer"));
    assert_eq!(late.link.operstate, Fact::Known("up".into()));
    // What its files tell without a question to the device is there all the same.
    let whole = read(&router().finish());
    let other = whole.nic("eth2").unwrap();
    assert_eq!((&late.driver, &late.node, &late.dev), (&other.driver, &other.node, &other.dev));
    assert!(other.queue_vectors().count() > 0);
    assert_eq!(late.queue_vectors().count(), other.queue_vectors().count());
    assert_eq!(late.rx_queues, other.rx_queues);
    assert_eq!(late.unread.len(), 1);
    assert_eq!(s.nic("eth1").unwrap().queue_vectors().count(), 8);
    assert_eq!(s.nic("eth10").unwrap().queue_vectors().count(), 8);
    let n = device(&tree.shared(), "eth2", Duration::from_millis(100)).unwrap();
    assert_eq!(n.unread[0].why, "no answer within 0.1 s");
}

/// An exporter looks at the host for months: a device that never answers costs it two threads (one for `check`), and
/// the deadline once for each.
#[test]
fn a_device_that_hangs_for_good_is_read_once() {
    let mut tree = router().finish();
    tree.hangs = Some("eth2".into());
    let counted = std::sync::Arc::new(tree.host());
    let host: std::sync::Arc<dyn ringwise_sys::Host> = counted.clone();
    let deadline = Duration::from_millis(400);
    let options = Options { deadline, ..Options::all() };
    for _ in 0..40 {
        let s = snapshot(&host, &options).unwrap();
        let late = s.nic("eth2").unwrap();
        assert_eq!((late.unread[0].why.as_str(), late.queue_vectors().count()), ("no answer within 0.4 s", 8));
        assert_eq!(s.nic("eth1").unwrap().queue_vectors().count(), 8);
        let more = ringwise_discover::extra(&host, &s, deadline);
        let unknown = more.devs["eth2"].eee.as_ref().and_then(Fact::unread).map(|u| u.why.as_str());
        assert_eq!(unknown, Some("no answer within 0.4 s"));
        assert!(more.devs["eth1"].eee.as_ref().is_some_and(|e| e.unread().is_none() || *e == Fact::Absent));
    }
    assert_eq!(counted.hanging.load(std::sync::atomic::Ordering::SeqCst), 2);
}

#[test]
fn parts_that_need_root_are_reported() {
    let mut tree = router().finish();
    for path in tree.files.keys().filter(|p| p.ends_with("smp_affinity_list")).cloned().collect::<Vec<_>>() {
        tree.error(path, 13);
    }
    let s = read(&tree);
    let n = s.nic("eth1").unwrap();
    assert_eq!(n.unread.len(), 9);
    assert!(n.unread.iter().all(|u| u.why == "needs root" && u.errno == Some(13)), "{:?}", n.unread);
    assert!(n.vectors.iter().all(|v| v.asked.unread().is_some()));
}

#[test]
fn without_the_dump_the_directories_tell() {
    let mut m = router();
    m.tree.file("/sys/class/net/br0/uevent", "DEVTYPE=bridge\nINTERFACE=br0\nIFINDEX=9\n");
    m.tree.file("/sys/class/net/br0/bridge/x", "");
    m.tree.file("/sys/class/net/br0/lower_eth1/x", "");
    m.tree.file("/sys/class/net/bonding_masters", "");
    m.tree.file("/sys/class/net/lo/type", "772\n");
    let mut tree = m.finish();
    tree.kernel.clear();
    tree.foreign = true;
    for (i, name) in ["eth10", "eth2", "eth1"].into_iter().enumerate() {
        tree.file(format!("/sys/devices/pci0000:00/0000:0{}:00.0/net/{name}/ifindex", i + 3), format!("{}\n", i + 2));
    }
    tree.file("/sys/devices/pci0000:00/0000:05:00.0/net/eth1/addr_assign_type", "0\n");
    tree.file("/sys/devices/pci0000:00/0000:05:00.0/net/eth1/address", "52:54:00:AA:00:01\n");
    let s = read(&tree);
    assert_eq!(names(&s), ["br0", "eth1", "eth2", "eth10", "lo"]);
    assert_eq!(s.nic("br0").unwrap().lower, [IfIndex(4)]);
    assert_eq!(s.nic("lo").unwrap().kind, NicKind::Loopback);
    let n = s.nic("eth1").unwrap();
    assert_eq!((n.kind.clone(), n.dev.ifindex), (NicKind::Physical, Some(IfIndex(4))));
    assert_eq!(n.dev.permanent_mac.as_deref(), Some("52:54:00:aa:00:01"));
    assert_eq!(n.queue_vectors().count(), 8);
    assert_eq!(n.channels.unread().unwrap().why, "not in this capture");
    assert!(n.users.unread().is_some() && n.addresses.unread().is_some());
    assert!(s.unread.iter().any(|u| u.what == Request::Links.to_string()));
}

#[test]
fn what_the_default_affinity_leaves_out_counts_beside_a_kubelet() {
    let mut tree = Machine::new(16, 2).finish();
    tree.file("/proc/irq/default_smp_affinity", "0fff\n");
    let isolated = |tree: &Tree| topology(&tree.host()).0.isolated_all().to_string();
    assert_eq!(isolated(&tree), "");
    for (policy, cpus) in [("none", ""), ("static", "8,12-15")] {
        let state = format!(r#"{{"policyName":"{policy}","entries":{{"5f0e":{{"app":"8"}}}},"checksum":1}}"#);
        tree.file("/var/lib/kubelet/cpu_manager_state", state);
        assert_eq!(isolated(&tree), cpus, "{policy}");
    }
}

#[test]
fn sparse_and_offline_cpus_nodes_and_caches() {
    let mut m = Machine::new(16, 2);
    m.tree.file("/sys/devices/system/cpu/online", "0-2,5,8-15\n");
    // Offline CPUs have no topology and no cache directory.
    m.tree.files.retain(|p, _| ![3, 4, 6, 7].iter().any(|c| p.contains(&format!("/cpu{c}/"))));
    m.tree.file("/sys/devices/system/cpu/nohz_full", "(null)\n");
    m.tree.file("/sys/devices/system/cpu/isolated", "14-15\n");
    let (t, unread) = topology(&m.finish().host());
    assert_eq!(unread, []);
    assert_eq!(t.cpus.keys().map(|c| c.0).collect::<Vec<_>>(), [0, 1, 2, 5, 8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(t.l3_of(CpuId(5)).to_string(), "0-7");
    assert_eq!(t.siblings_of(CpuId(9)).to_string(), "8-9");
    assert_eq!(t.node_of(CpuId(12)), Some(NodeId(1)));
    assert_eq!(t.distance(NodeId(0), NodeId(1)), Some(21));
    assert_eq!(t.nohz_full, Fact::Known("".parse().unwrap()));
    assert_eq!(t.isolated_all().to_string(), "14-15");
    assert!(t.cpus.values().all(|c| c.capacity.is_absent() && c.package.is_known()));

    // No NUMA, no L3, a package of -1.
    let mut tree = Machine::new(4, 1).finish();
    tree.files.retain(|p, _| !p.contains("/node/") && !p.contains("index3"));
    tree.file("/sys/devices/system/cpu/cpu0/topology/physical_package_id", "-1\n");
    let (t, _) = topology(&tree.host());
    assert!(t.nodes.is_absent() && t.cpus.values().all(|c| c.l3.is_absent() && c.node.is_absent()));
    assert!(t.cpus[&CpuId(0)].package.unread().is_some());
}

#[test]
fn guests_and_containers() {
    let mut tree = Machine::new(4, 1).finish();
    tree.file("/sys/class/dmi/id/sys_vendor", "QEMU\n");
    tree.file("/proc/self/mounts", "proc /proc proc rw 0 0\nproc /proc/sys proc ro 0 0\nsysfs /sys sysfs ro 0 0\n");
    assert_eq!(topology(&tree.host()).0.hypervisor, Fact::Known("qemu".into()));
    assert_eq!(host(&tree.host()).0.read_only, Fact::Known(true));
    tree.files.retain(|p, _| !p.contains("/dmi/"));
    tree.file("/proc/cpuinfo", "processor : 0\nflags\t\t: fpu hypervisor lahf_lm\n");
    assert_eq!(topology(&tree.host()).0.hypervisor, Fact::Known("unnamed".into()));
    // A process that ended is no matter; one that may not be looked at (hidepid) might be a competing program.
    tree.error("/proc/4711/comm", 3);
    assert!(host(&tree.host()).0.rivals.known().is_some());
    tree.files.retain(|p, _| !p.ends_with("/comm"));
    tree.error("/proc/4711/comm", 13);
    assert_eq!(host(&tree.host()).0.rivals.unread().map(|u| u.errno), Some(Some(13)));
    tree.files.retain(|p, _| !p.ends_with("/comm"));
    assert!(host(&tree.host()).0.rivals.unread().is_some());
}

#[test]
fn virtual_functions_rdma_and_interfaces_without_a_device() {
    let mut m = router();
    m.tree.link("/sys/devices/pci0000:00/0000:03:00.0/physfn", "../0000:02:00.0");
    m.tree.file("/sys/devices/pci0000:00/0000:04:00.0/infiniband/mlx5_0/node_type", "1");
    m.tree.file("/sys/class/net/weird0/mtu", "1500\n");
    m.link(named("weird0"));
    let s = read(&m.finish());
    assert_eq!(s.nic("eth10").unwrap().kind, NicKind::Vf);
    assert_eq!(s.nic("eth2").unwrap().users, Fact::Known(vec![User::Rdma { device: "mlx5_0".into() }]));
    assert_eq!(s.nic("weird0").unwrap().kind, NicKind::Software { kind: "other".into() });
    assert!(s.nic("weird0").unwrap().driver.is_absent());
}

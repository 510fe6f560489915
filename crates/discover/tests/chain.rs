//! Queue → NAPI → interrupt → CPU, with the drivers of the lab.

use std::time::Duration;

use crate::common::machine::{Machine, NicPlan, igb};
use ringwise_discover::{Options, Parts, device, snapshot};
use ringwise_kfmt::net_shaper_nl::shaper_reply;
use ringwise_kfmt::netdev_nl::xdp_metadata_reply;
use ringwise_kfmt::qdisc::{Qdisc, ROOT, qdisc_reply};
use ringwise_kfmt::rtnl::{self, LinkInfo};
use ringwise_model::{
    Confidence, Dir, Fact, IfIndex, Immovable, MapSource, Movable, Nic, NicKind, QueueRange, Role, Shaper, ShaperPlace,
    Shapers, TrafficClasses, User, XdpMetadata,
};
use ringwise_sys::Request;

fn plan<'a>(name: &'a str, driver: &'a str, queues: u32, vectors: Vec<String>) -> NicPlan<'a> {
    NicPlan { name, driver, bus: "0000:03:00.0", node: 0, queues, vectors, up: true, genl_first: None }
}

fn only(plan: NicPlan) -> Nic {
    let mut m = Machine::new(16, 2);
    m.nic(&plan);
    let s = snapshot(&m.finish().shared(), &Options::all()).unwrap();
    s.nic(plan.name).unwrap().clone()
}

fn queues(n: &Nic) -> Vec<(Vec<u32>, Vec<u32>, String)> {
    n.queue_vectors().map(|v| (v.rx().to_vec(), v.tx().to_vec(), v.names.join(","))).collect()
}

fn pair(q: u32, name: &str) -> (Vec<u32>, Vec<u32>, String) {
    (vec![q], vec![q], name.to_string())
}

#[test]
fn igb_with_eight_queues_has_pairs_and_a_control_vector() {
    let n = only(plan("eth1", "igb", 8, igb("eth1", 8)));
    assert_eq!(queues(&n), (0..8).map(|q| pair(q, &format!("eth1-TxRx-{q}"))).collect::<Vec<_>>());
    assert!(n.queue_vectors().all(|v| v.confidence == Confidence::Sure && v.source == MapSource::MsiAndName));
    let last = n.vectors.last().unwrap();
    assert_eq!((last.role.clone(), last.names.clone()), (Role::Control, vec!["eth1".to_string()]));
    let v = n.vector_of(Dir::Tx, 5).unwrap();
    assert_eq!(v.asked, Fact::Known("0-15".parse().unwrap()));
    assert_eq!(v.effective, Fact::Known("6".parse().unwrap()));
    assert_eq!(v.count, Fact::Known(1036));
    assert_eq!(v.movable, Movable::UnknownUntilTried);
    assert_eq!(n.unread, []);
}

#[test]
fn what_linux_allows_no_interface_to_be_called_is_none() {
    let mut m = Machine::new(4, 1);
    m.nic(&plan("eth1", "igb", 4, igb("eth1", 4)));
    let mut tree = m.finish();
    let name = "x\nOK: all is well";
    // As in a tree without the dump.
    tree.kernel.remove(&Request::Links);
    tree.file(format!("/sys/class/net/{name}/ifindex"), "9\n").file(format!("/sys/class/net/{name}/type"), "1\n");
    let s = snapshot(&tree.shared(), &Options::all()).unwrap();
    assert_eq!(s.nics.iter().map(Nic::name).collect::<Vec<_>>(), ["eth1"]);
    let said = s.unread.iter().find(|u| u.what == name).unwrap();
    assert_eq!(said.to_string(), "x\\x0aOK: all is well: not a name that Linux allows for an interface");
}

#[test]
fn igb_with_four_queues_has_a_vector_for_each_direction() {
    let n = only(plan("eth1", "igb", 4, igb("eth1", 4)));
    let q = queues(&n);
    assert_eq!(q.len(), 8);
    assert_eq!(q[0], (vec![0], vec![], "eth1-rx-0".into()));
    assert_eq!(q[1], (vec![], vec![0], "eth1-tx-0".into()));
    assert_eq!(q[7], (vec![], vec![3], "eth1-tx-3".into()));
}

#[test]
fn queue_numbers_are_counted_not_spelled() {
    let n = only(plan("eth1", "ixgbe", 12, igb("eth1", 12)));
    assert_eq!(n.rx_queues.iter().map(|q| q.id).collect::<Vec<_>>(), (0..12).collect::<Vec<_>>());
    assert_eq!(n.queue_vectors().map(|v| v.rx()[0]).collect::<Vec<_>>(), (0..12).collect::<Vec<_>>());
}

#[test]
fn eth1_is_not_eth10() {
    let mut m = Machine::new(8, 1);
    m.nic(&plan("eth1", "igb", 8, igb("eth1", 8)));
    m.nic(&NicPlan { bus: "0000:04:00.0", ..plan("eth10", "igb", 8, igb("eth10", 8)) });
    let mut tree = m.finish();
    // Also if only the names show it.
    tree.files.retain(|p, _| !p.contains("msi_irqs"));
    let s = snapshot(&tree.shared(), &Options::all()).unwrap();
    assert_eq!(s.nics.iter().map(|n| n.name()).collect::<Vec<_>>(), ["eth1", "eth10", "lo"]);
    for n in &s.nics[..2] {
        assert_eq!(queues(n), (0..8).map(|q| pair(q, &format!("{}-TxRx-{q}", n.name()))).collect::<Vec<_>>());
        assert!(n.queue_vectors().all(|v| v.confidence == Confidence::Likely && v.source == MapSource::Name));
    }
}

#[test]
fn vmxnet3_e1000e_and_the_lab_device() {
    let mut names: Vec<String> = (0..8).map(|q| format!("eth3-rxtx-{q}")).collect();
    names.push("eth3-event-8".into());
    let n = only(plan("eth3", "vmxnet3", 8, names));
    assert_eq!((queues(&n).len(), n.vectors[8].role.clone()), (8, Role::Control));

    let n = only(plan("eth2", "e1000e", 1, vec!["eth2-rx-0".into(), "eth2-tx-0".into(), "eth2".into()]));
    assert_eq!(queues(&n), [(vec![0], vec![], "eth2-rx-0".into()), (vec![], vec![0], "eth2-tx-0".into())]);
    assert_eq!(n.vectors[2].role, Role::Control);
    assert_eq!(n.tx_queues[0].xps_cpus, Fact::Absent);
    // Newer kernels link both queues to the one NAPI instance, which holds the receive interrupt only.
    let names = vec!["eth2-rx-0".into(), "eth2-tx-0".into(), "eth2".into()];
    let n = only(NicPlan { genl_first: Some(0), ..plan("eth2", "e1000e", 1, names) });
    assert_eq!(queues(&n), [(vec![0], vec![], "eth2-rx-0".into()), (vec![], vec![0], "eth2-tx-0".into())]);
    assert_eq!([0, 1].map(|v| n.vectors[v].source), [MapSource::NetdevGenl, MapSource::MsiAndName]);
    // With one interrupt for everything the link is right.
    let n = only(NicPlan { genl_first: Some(0), ..plan("eth2", "e1000e", 1, vec!["eth2".into()]) });
    assert_eq!(queues(&n), [(vec![0], vec![0], "eth2".into())]);

    let mut names = vec!["eth0-event".to_string()];
    names.extend((0..8).map(|q| format!("eth0-TxRx-{q}")));
    let n = only(NicPlan { genl_first: Some(1), ..plan("eth0", "mqnic", 8, names) });
    assert!(n.queue_vectors().all(|v| v.confidence == Confidence::Sure && v.source == MapSource::NetdevGenl));
    assert_eq!(queues(&n), (0..8).map(|q| pair(q, &format!("eth0-TxRx-{q}"))).collect::<Vec<_>>());
    assert_eq!(n.vector_of(Dir::Rx, 3).unwrap().napi, Some(8003));
    assert_eq!(n.vectors[8].role, Role::Control);
}

#[test]
fn virtio_vectors_lie_on_the_function_above_and_carry_no_interface_name() {
    let mut names = vec!["virtio3-config".to_string()];
    for q in 0..4 {
        names.extend([format!("virtio3-input.{q}"), format!("virtio3-output.{q}")]);
    }
    let mut m = Machine::new(4, 1);
    let (index, _) = m.nic(&NicPlan { node: -1, ..plan("eth4", "virtio_net", 4, names) });
    m.napi_without_irq("eth4", index, 4);
    let s = snapshot(&m.finish().shared(), &Options::all()).unwrap();
    let n = s.nic("eth4").unwrap();
    assert_eq!(n.kind, NicKind::Virtio);
    assert_eq!(n.dev.bus_address.as_deref(), Some("0000:03:00.0"));
    assert_eq!(n.queue_vectors().count(), 8);
    assert!(n.queue_vectors().all(|v| v.confidence == Confidence::Sure && v.source == MapSource::MsiAndName));
    // NAPI ids from the kernel, interrupts from the names.
    assert_eq!(n.vector_of(Dir::Rx, 2).unwrap().napi, Some(9002));
    assert_eq!(n.vector_of(Dir::Tx, 2).unwrap().napi, None);
    let users = vec![
        User::AfXdp { queue: 1 },
        User::Dmabuf { queue: 2, id: 4 },
        User::IoUring { queue: 3 },
        User::Lease { queue: 3, ifindex: IfIndex(7), leased_as: 1, netns: Some(0) },
    ];
    assert_eq!(n.users, Fact::Known(users));
    // -1 is not node 0. It is an answer, so nothing is listed as unread.
    assert_eq!(n.node.unread().unwrap().why, "the firmware reports no node (-1)");
    assert_eq!(n.unread, []);
}

#[test]
fn a_link_that_is_down_hides_the_names() {
    let n = only(NicPlan { up: false, ..plan("eth1", "igb", 8, vec![String::new(); 9]) });
    assert_eq!(n.link.carrier, Fact::Absent);
    assert_eq!(n.link.speed_mbps, Fact::Absent);
    assert_eq!(n.queue_vectors().count(), 0);
    assert!(n.vectors.iter().all(|v| v.role == Role::Idle && v.asked.is_known()), "{:?}", n.vectors);
    assert_eq!(n.unread.len(), 1, "{:?}", n.unread);
    assert!(n.unread[0].why.contains("only while the interface is up"), "{}", n.unread[0]);
}

#[test]
fn spare_vectors_and_those_of_the_other_port() {
    // mlx5 has a vector for each CPU, also with fewer channels.
    let names = (0..8).map(|q| format!("mlx5_comp{q}@pci:0000:03:00.0")).collect();
    let n = only(plan("eth1", "mlx5_core", 4, names));
    assert_eq!(n.queue_vectors().count(), 4);
    assert_eq!(n.vectors.iter().filter(|v| v.role == Role::Idle).count(), 4);

    let names = ["eth1-0", "eth1-1", "eth2-0", "eth2-1"].map(str::to_string).to_vec();
    let n = only(plan("eth1", "mlx4_en", 2, names));
    assert_eq!(queues(&n), [pair(0, "eth1-0"), pair(1, "eth1-1")]);
    assert_eq!(n.vectors.len(), 2);

    // Renamed while it was up: the vectors are kept as unknown, and that is reported.
    let n = only(plan("lan0", "igb", 8, igb("eth1", 8)));
    assert_eq!(n.vectors.len(), 9);
    assert_eq!(n.queue_vectors().count(), 0);
    assert!(n.unread.iter().any(|u| u.why.contains("renamed")), "{:?}", n.unread);
}

#[test]
fn gve_needs_the_number_of_its_blocks() {
    let mut names: Vec<String> = (0..8).map(|b| format!("gve-ntfy-blk{b}@pci:0000:03:00.0")).collect();
    names.push("gve-mgmnt@pci:0000:03:00.0".into());
    let n = only(plan("ens4", "gve", 4, names));
    assert_eq!(n.vector_of(Dir::Tx, 1).unwrap().names, ["gve-ntfy-blk1@pci:0000:03:00.0"]);
    assert_eq!(n.vector_of(Dir::Rx, 1).unwrap().names, ["gve-ntfy-blk5@pci:0000:03:00.0"]);
}

#[test]
fn idpf_vectors_are_ranked_and_not_sure() {
    // Queues 0 to 3 on kernels whose names carry the number of the vector.
    let names = ["Mailbox-0", "eth1-TxRx-1", "eth1-TxRx-3", "eth1-TxRx-4", "eth1-TxRx-5"];
    let n = only(plan("eth1", "idpf", 4, names.iter().map(|n| format!("idpf-{n}")).collect()));
    assert_eq!(queues(&n), (0..4).map(|q| pair(q, &format!("idpf-{}", names[q as usize + 1]))).collect::<Vec<_>>());
    assert!(n.queue_vectors().all(|v| v.confidence == Confidence::Likely && v.source == MapSource::MsiAndName));
    // If a name is missing, nothing is known.
    let n = only(plan("eth1", "idpf", 4, names[..4].iter().map(|n| format!("idpf-{n}")).collect()));
    assert_eq!(n.queue_vectors().count(), 0);
}

#[test]
fn chip_names_with_spaces_hide_no_vector() {
    let names = (0..4).map(|q| format!("mlx5_comp{q}@pci:4ea0:00:02.0"));
    let names: Vec<_> = std::iter::once("mlx5_async0@pci:4ea0:00:02.0".to_string()).chain(names).collect();
    let mut m = Machine::new(4, 1);
    m.nic(&NicPlan { bus: "4ea0:00:02.0", ..plan("enP20128s1", "mlx5_core", 4, names) });
    let mut tree = m.finish();
    let text = String::from_utf8(tree.files["/proc/interrupts"].clone().unwrap()).unwrap();
    let text = text.replace("PCI-MSIX-0000:03:00.0", "Hyper-V PCIe MSI");
    tree.file("/proc/interrupts", text);
    let s = snapshot(&tree.shared(), &Options::all()).unwrap();
    let n = s.nic("enP20128s1").unwrap();
    assert_eq!(queues(n), (0..4).map(|q| pair(q, &format!("mlx5_comp{q}@pci:4ea0:00:02.0"))).collect::<Vec<_>>());
    assert_eq!(n.vectors[4].role, Role::Control);
}

#[test]
fn xen_vectors_are_found_by_their_device() {
    let names = ["vif0-q0-tx", "vif0-q0-rx", "vif0-q1-tx", "vif0-q1-rx"];
    let mut m = Machine::new(4, 1);
    m.nic(&NicPlan { bus: "vif-0", ..plan("eth0", "vif", 2, names.map(str::to_string).to_vec()) });
    let mut tree = m.finish();
    tree.files.retain(|p, _| !p.contains("msi_irqs"));
    let s = snapshot(&tree.shared(), &Options::all()).unwrap();
    let n = s.nic("eth0").unwrap();
    assert_eq!(n.vector_of(Dir::Rx, 1).unwrap().names, ["vif0-q1-rx"]);
    assert_eq!(n.vector_of(Dir::Tx, 0).unwrap().names, ["vif0-q0-tx"]);
    assert!(n.queue_vectors().all(|v| v.confidence == Confidence::Likely && v.source == MapSource::Name));
}

#[test]
fn one_shared_vector_serves_everything() {
    let n = only(plan("eth0", "e1000e", 1, vec!["eth0".into()]));
    assert_eq!(queues(&n), [pair(0, "eth0")]);
    // An interrupt line shared with another driver.
    let n = only(plan("eth0", "e1000e", 1, vec!["ehci_hcd:usb1, eth0".into()]));
    assert_eq!(n.queue_vectors().count(), 1);
}

#[test]
fn managed_vectors_are_known_where_debugfs_is() {
    let mut m = Machine::new(4, 1);
    let (_, first) = m.nic(&plan("eth1", "igb", 2, igb("eth1", 2)));
    let mut tree = m.finish();
    tree.file("/sys/kernel/debug/irq/irqs/0", "handler: x\n");
    tree.file(format!("/sys/kernel/debug/irq/irqs/{}", first + 1), "dstate: 0x1\n  IRQD_AFFINITY_MANAGED\n");
    let n = device(&tree.shared(), "eth1", Duration::from_secs(2)).unwrap();
    assert_eq!(n.vector_of(Dir::Rx, 0).unwrap().movable, Movable::No(Immovable::Managed));
    assert_eq!(n.vector_of(Dir::Rx, 1).unwrap().movable, Movable::UnknownUntilTried);
}

#[test]
fn foreign_trees_with_names_only() {
    let mut m = Machine::new(4, 1);
    m.nic(&plan("eth0", "e1000", 1, vec!["eth0".into()]));
    let mut tree = m.finish();
    tree.foreign = true;
    tree.kernel.clear();
    tree.files.retain(|p, _| !p.contains("msi_irqs") && !p.starts_with("/proc/irq"));
    let s = snapshot(&tree.shared(), &Options::all()).unwrap();
    let n = s.nic("eth0").unwrap();
    assert_eq!(queues(n), [pair(0, "eth0")]);
    let v = n.queue_vectors().next().unwrap();
    assert_eq!((v.confidence, v.source), (Confidence::Likely, MapSource::Name));
    assert_eq!((v.asked.is_known(), v.movable.clone()), (false, Movable::UnknownUntilTried));
}

#[test]
fn a_device_that_is_gone_is_not_a_device_without_anything() {
    let mut m = Machine::new(4, 1);
    m.nic(&plan("eth1", "igb", 2, igb("eth1", 2)));
    let mut tree = m.finish();
    tree.files.retain(|p, _| !p.contains("0000:03:00.0"));
    tree.links.clear();
    let s = snapshot(&tree.shared(), &Options::all()).unwrap();
    let n = s.nic("eth1").unwrap();
    assert_eq!(n.kind, NicKind::Unknown);
    assert!(n.unread.iter().any(|u| u.why.contains("vanished")), "{:?}", n.unread);
}

/// Limits that are set, a kernel without the family, a driver without limits, and a refusal are four different answers.
#[test]
fn limits_inside_the_nic_are_read_and_each_refusal_keeps_its_meaning() {
    let limit = |place, mbps: u64| Shaper { max_rate: Some(mbps * 1_000_000), ..Shaper::unset(place) };
    let read = |answer: Result<Vec<Vec<u8>>, i32>| {
        let mut m = Machine::new(4, 1);
        m.nic(&plan("eth1", "igb", 4, igb("eth1", 4)));
        let mut tree = m.finish();
        let request = Request::NetShaperDump { dev: "eth1".into() };
        tree.kernel.insert(request, answer);
        let n = snapshot(&tree.shared(), &Options::all()).unwrap().nic("eth1").unwrap().clone();
        (n.shapers, n.unread)
    };
    let (queue, device) = (limit(ShaperPlace::Queue(3), 100), limit(ShaperPlace::Device, 900));
    let bytes = [queue, device].map(|s| shaper_reply(IfIndex(2), &s).unwrap());
    assert_eq!(read(Ok(bytes.to_vec())), (Fact::Known(Shapers::Set(vec![device, queue])), Vec::new()));
    assert_eq!(read(Ok(Vec::new())), (Fact::Known(Shapers::Set(Vec::new())), Vec::new()));
    // ENOENT, EOPNOTSUPP, EPERM
    assert_eq!(read(Err(2)), (Fact::Known(Shapers::NotInKernel), Vec::new()));
    assert_eq!(read(Err(95)), (Fact::Absent, Vec::new()));
    let (fact, unread) = read(Err(1));
    let why = fact.unread().unwrap();
    assert_eq!((why.to_string(), why.errno), ("net-shaper-get eth1: needs root".to_string(), Some(1)));
    assert_eq!(unread, std::slice::from_ref(why));
    let (fact, _) = read(Ok(vec![vec![8, 0, 2, 0, 9, 0, 0, 0]]));
    assert!(fact.unread().unwrap().why.contains("metric 9"), "{fact:?}");
}

/// The queueing disciplines are read only if the link dump names one that has traffic classes.
#[test]
fn traffic_classes_are_read_where_the_discipline_has_them() {
    let read = |discipline: Option<&str>, answer: Result<Vec<Vec<u8>>, i32>| {
        let mut m = Machine::new(4, 1);
        m.nic(&plan("eth1", "igb", 4, igb("eth1", 4)));
        let mut tree = m.finish();
        let named = |l: &Vec<u8>| {
            let info = rtnl::link(l).unwrap();
            rtnl::link_reply(&LinkInfo { qdisc: discipline.map(str::to_string), ..info }).unwrap()
        };
        let links = tree.kernel[&Request::Links].as_ref().unwrap().iter().map(named).collect();
        tree.reply(Request::Links, links);
        tree.kernel.insert(Request::Qdiscs, answer);
        snapshot(&tree.shared(), &Options::all()).unwrap().nic("eth1").unwrap().classes.clone()
    };
    let queues = vec![QueueRange { first: 0, count: 1 }, QueueRange { first: 1, count: 3 }];
    let classes = TrafficClasses { of_priority: [vec![1; 4], vec![0; 12]].concat(), queues };
    let root = |kind: &str, classes| Qdisc { ifindex: 2, parent: ROOT, kind: kind.into(), classes, ..Qdisc::default() };
    let leaf = Qdisc { ifindex: 2, parent: 1, kind: "fq_codel".into(), ..Qdisc::default() };
    for kind in ["mqprio", "taprio"] {
        let answer = [root(kind, Some(classes.clone())), leaf.clone()].map(|q| qdisc_reply(&q).unwrap());
        assert_eq!(read(Some(kind), Ok(answer.to_vec())), Fact::Known(classes.clone()));
    }
    // Other disciplines are not asked about, and a recording of an earlier version does not name the discipline.
    assert_eq!(read(Some("mq"), Err(1)), Fact::Absent);
    assert_eq!(read(None, Err(1)), ringwise_model::not_requested());
    assert_eq!(read(Some("mqprio"), Err(1)).unread().unwrap().errno, Some(1));
    // Options that were redacted by an earlier version are unknown.
    let bare = qdisc_reply(&root("mqprio", None)).unwrap();
    assert!(read(Some("mqprio"), Ok(vec![bare])).unread().is_some());
    assert!(read(Some("mqprio"), Ok(Vec::new())).unread().is_some());
}

/// Before 6.7 the kernel has the request and not the answer; before 6.3 it has neither, and no XDP program gets a hash.
#[test]
fn what_the_driver_passes_to_xdp_is_read() {
    let read = |answer: Result<Vec<Vec<u8>>, i32>| {
        let mut m = Machine::new(4, 1);
        m.nic(&plan("eth1", "igb", 4, igb("eth1", 4)));
        let mut tree = m.finish();
        tree.kernel.insert(Request::NetdevDump { cmd: 1, name: "dev-get", dev: "eth1".into() }, answer);
        let options = Options { parts: Parts::ALL, ..Options::all() };
        let n = snapshot(&tree.shared(), &options).unwrap().nic("eth1").unwrap().clone();
        (n.xdp_metadata, n.unread.iter().any(|u| u.what == "dev-get eth1"))
    };
    let hash = XdpMetadata { hash: true, timestamp: false, vlan_tag: false };
    assert_eq!(read(Ok(vec![xdp_metadata_reply(Some(&hash))])), (Fact::Known(hash), false));
    assert_eq!(read(Err(2)), (Fact::Absent, false));
    let (older, noted) = read(Ok(vec![xdp_metadata_reply(None)]));
    assert_eq!((older.unread().unwrap().errno, noted), (None, false));
    let (refused, noted) = read(Err(1));
    assert_eq!((refused.unread().unwrap().errno, noted), (Some(1), true));
}

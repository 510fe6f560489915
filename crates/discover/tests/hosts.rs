//! Every folder of `fixtures/hosts` is discovered and compared with its `snapshot.json`.

use std::time::Duration;

use ringwise_discover::{Options, snapshot};
use ringwise_model::Snapshot;
use ringwise_testkit::{golden, hosts, tree};

fn discover(name: &str) -> Snapshot {
    // A busy machine must not turn a device into a late one.
    let options = Options { deadline: Duration::from_secs(60), ..Options::all() };
    snapshot(&hosts::open(name), &options).expect("discovery")
}

fn golden(name: &str) {
    let found = discover(name);
    let value = serde_json::to_value(&found).expect("serialises");
    golden::compare(&hosts::dir().join(name).join("snapshot.json"), &golden::json(&value));
    let back: Snapshot = serde_json::from_value(value).expect("reads back");
    assert_eq!(back, found, "a snapshot survives JSON");
}

ringwise_testkit::each_host! { golden }

#[test]
fn archives_are_what_their_descriptions_say() {
    for name in golden::folders(&hosts::dir()) {
        let dir = hosts::dir().join(&name);
        let Ok(text) = std::fs::read_to_string(dir.join("host.toml")) else {
            assert!(dir.join("capture.tar.gz").is_file(), "{name}: neither host.toml nor a capture");
            continue;
        };
        let host = tree::Host::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let made = tree::Tree::build(&host).unwrap_or_else(|e| panic!("{name}: {e}")).tar_gz().expect("packs");
        let kept = std::fs::read(dir.join("tree.tar.gz")).expect("an archive");
        assert!(made == kept, "{name}: tree.tar.gz does not match host.toml; cargo xtask fixtures writes it");
        assert!(kept.len() < 150 * 1024, "{name}: {} bytes", kept.len());
    }
}

/// Facts that the description of a host requires, in addition to the golden text.
mod facts {
    use ringwise_model::{Confidence, Dir, NicKind, Role};

    use super::discover;

    fn queue_of(s: &ringwise_model::Snapshot, dev: &str, dir: Dir, q: u32) -> String {
        let nic = s.nic(dev).expect("the NIC");
        nic.vector_of(dir, q).map_or_else(|| "none".to_string(), |v| v.names.join(","))
    }

    #[test]
    fn a_vector_with_several_rings_serves_them_all() {
        let s = discover("epyc-nps4");
        let v = s.nic("eth1").unwrap().vector_of(Dir::Rx, 6).expect("a vector");
        assert_eq!(v.names, ["ice-eth1-TxRx-4-7"]);
        assert_eq!((v.rx(), v.tx()), (&[4, 5, 6, 7][..], &[4, 5, 6, 7][..]));
    }

    #[test]
    fn names_that_only_look_like_queues() {
        let s = discover("article48");
        let nic = s.nic("eth0").unwrap();
        assert_eq!(nic.queue_vectors().count(), 48);
        let fdir = nic.vectors.iter().find(|v| v.names[0].contains("fdir")).expect("the vector");
        assert_eq!(fdir.role, Role::Control);
        assert!(nic.queue_vectors().all(|v| v.confidence == Confidence::Sure));
        let s = discover("interleaved");
        assert_eq!(s.nic("eno1").unwrap().queue_vectors().count(), 24);
        assert_eq!(queue_of(&s, "eno1", Dir::Rx, 3), "eno1-TxRx-3");
        assert_eq!(queue_of(&s, "eno10", Dir::Rx, 3), "eno10-TxRx-3");
        let s = discover("virtio-iavf");
        assert_eq!(queue_of(&s, "eth0", Dir::Tx, 2), "virtio0-output.2");
        assert_eq!(queue_of(&s, "eth1", Dir::Rx, 0), "virtio1-virtqueues");
        let s = discover("epyc-nps1");
        let nic = s.nic("eth0").unwrap();
        assert_eq!(nic.queue_vectors().count(), 64, "RDMA vectors are no queues");
    }

    #[test]
    fn halves_of_gve() {
        let s = discover("gve-guest");
        for q in 0..8 {
            assert_eq!(queue_of(&s, "eth0", Dir::Tx, q), format!("gve-ntfy-blk{q}@pci:0000:00:04.0"));
            assert_eq!(queue_of(&s, "eth0", Dir::Rx, q), format!("gve-ntfy-blk{}@pci:0000:00:04.0", q + 16));
        }
        assert_eq!(s.nic("eth0").unwrap().queue_vectors().count(), 16, "sixteen blocks serve no queue now");
    }

    #[test]
    fn rings_that_sysfs_shows_twice() {
        let s = discover("mlx5");
        let nic = s.nic("enp65s0f0np0").unwrap();
        assert_eq!(nic.queue_vectors().count(), 63);
        assert_eq!(queue_of(&s, "enp65s0f0np0", Dir::Rx, 62), "mlx5_comp62@pci:0000:41:00.0");
        assert_eq!(queue_of(&s, "enp65s0f0np0", Dir::Rx, 63), "none");
    }

    #[test]
    fn no_interrupts_no_link_no_node() {
        let s = discover("netvsc");
        let nic = s.nic("eth0").unwrap();
        assert_eq!((nic.kind.clone(), nic.vectors.len()), (NicKind::Paravirtual, 0));
        assert_eq!(s.nic("enP30832s1").unwrap().queue_vectors().count(), 8);
        assert_eq!(s.nic("enP30832s1").unwrap().master, nic.dev.ifindex);
        let s = discover("article48");
        let down = s.nic("eth1").unwrap();
        assert_eq!(down.vectors.len(), 9);
        assert!(down.vectors.iter().all(|v| v.role == Role::Idle && v.names.is_empty()));
        for (host, dev) in [("ena-guest", "ens5"), ("interleaved", "ens5np0"), ("virtio-iavf", "eth0")] {
            assert!(discover(host).nic(dev).unwrap().node.unread().is_some(), "{host} {dev}: -1 is not node 0");
        }
    }

    /// mlx5 of Linux 5.10 lists a second receive queue for each, for AF_XDP, and the tree has no channel counts.
    #[test]
    fn receive_queues_for_af_xdp_are_not_in_use() {
        let s = discover("mlx5");
        let counts = |dev: &str| {
            let n = s.nic(dev).unwrap();
            (n.rx_queues.len(), n.queues_in_use(Dir::Rx), n.queues_in_use(Dir::Tx))
        };
        assert_eq!(counts("enp65s0f0np0"), (126, Some(63), Some(63)));
        assert_eq!(counts("enp65s0f1np1"), (16, Some(8), Some(8)));
        assert!(!discover("epyc-nps4").nic("eth0").unwrap().lists_each_rx_queue_twice());
    }

    #[test]
    fn sub_numa_nodes() {
        let s = discover("epyc-nps4");
        let t = &s.topology;
        assert_eq!(t.nodes.known().unwrap().len(), 8);
        let d = |a: u32, b: u32| t.distance(a.into(), b.into()).unwrap();
        assert_eq!((d(5, 5), d(5, 4), d(5, 0)), (10, 12, 32));
        assert_eq!(t.l3_of(80.into()).to_string(), "80-87,208-215");
        assert_eq!(t.siblings_of(80.into()).to_string(), "80,208");
        assert_eq!(s.nic("eth0v0").unwrap().kind, NicKind::Vf);
        let s = discover("arm64-hns3");
        assert_eq!((s.topology.cpus.len(), s.topology.possible.known().unwrap().len()), (95, 96));
        assert_eq!(s.nic("enp189s0f0").unwrap().queue_vectors().count(), 16);
    }

    #[test]
    fn what_was_not_packed_is_unknown() {
        let s = discover("packed-by-others");
        let nic = s.nic("eth0").expect("listed though its device link is missing");
        assert_eq!(nic.queue_vectors().count(), 4);
        assert!(nic.queue_vectors().all(|v| v.asked.unread().is_some() && v.confidence < Confidence::Sure));
        assert!(s.topology.nodes.unread().is_some());
        assert!(!s.nic("eth1").unwrap().unread.is_empty());
    }
}

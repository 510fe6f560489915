//! Realistic inputs of each family: seeds of the mutation test and of the fuzz corpus.

use ringwise_kfmt::ethtool_ioctl::{Drvinfo, RssOrder, Rxfh, RxfhSizes, TableOrder};
use ringwise_kfmt::nl::Builder;
use ringwise_kfmt::packet::{Flow, frame_of};
use ringwise_kfmt::{ethtool_ioctl, ethtool_nl, net_shaper_nl, netdev_nl, rtnl};
use ringwise_model::nic::Pause;
use ringwise_model::{Channels, Coalesce, Count, Dir, IfIndex, IrqId, RateUnit, Rings, Shaper, ShaperPlace};

pub(crate) fn of(family: &str) -> Vec<Vec<u8>> {
    let texts = |list: &[&str]| list.iter().map(|t| t.as_bytes().to_vec()).collect();
    match family {
        "cpus" => texts(&[
            "0-3,8\n",
            "0-127,256-383\n",
            "0-63:2/4",
            "ff\n",
            "00000000,00000002\n",
            "ffff,ffffffff,ffffffff\n",
            "0xffff,,0xffff",
            "",
        ]),
        "interrupts" => texts(&[
            "           CPU0       CPU2       \n 36:       1200         34  IR-PCI-MSI 524288-edge      eth0-TxRx-0\n 37:          1          2  PCI-MSIX-0000:81:00.0    1-edge      eth0 CQ 0, i801\nNMI:          1          2   Non-maskable interrupts\nERR:          0\n",
            "           CPU0       CPU1       \n 11:        100        200     GICv3  30 Level     arch_timer\n 52:          7          8   ITS-MSI 524288 Edge      eth0\nIPI0:        11         22       Rescheduling interrupts\n",
            "           CPU0       CPU1       \n 34:        154       9690  Hyper-V PCIe MSI 2701534461953-edge      mlx5_comp0@pci:4ea0:00:02.0\n 63:          6        173     PCH PCI MSI 1572865  enp3s0f0-rx-0\n",
        ]),
        "text" => texts(&[
            "flow-type tcp4 src-ip 10.0.0.0 m 0.0.0.255 dst-port 443 action 2 loc 7",
            "ether src 02:00:00:00:00:01 proto 0x0800 m 0x00ff vf 1 queue 3",
            "udp6 dscp 46 dst-ip 2001:db8::/32 context 1",
            "0000000a 00000002 00000003 0 0 0 0 0 0 0000001f 00000004 00000007 00000005 00000006 00000001\n",
            "BOOT_IMAGE=/vmlinuz quiet isolcpus=managed_irq,domain,2-5 nohz_full=4-N a=\"b c\"\n",
            "2: eth0@if7: <UP,LOWER_UP> mtu 1500 xdp/id:3 qdisc mq master br0 state UP qlen 1000\n    link/ether 52:54:00:00:00:01 permaddr 52:54:00:00:00:02\n    veth addrgenmode eui64 numtxqueues 8 numrxqueues 8 parentbus pci parentdev 0000:01:00.0\n    altname enp1s0\n3: br0: <UP> mtu 1500 state UP\n",
            "Coalesce parameters for eth0:\nAdaptive RX: off  TX: n/a\nrx-usecs:\t3\nrx-frames:\tn/a\ntx-frame-low: 4\ntx-frame-high:\tn/a\nCQE mode RX: n/a  TX: on\n",
            "Channel parameters for eth0:\nPre-set maximums:\nRX:\t\tn/a\nCombined:\t8\nCurrent hardware settings:\nRX:\t\tn/a\nCombined:\t4\n",
            "Features for eth0:\nrx-checksumming: on\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\nrx-gro-hw: off [requested on]\n",
            "qdisc mq 0: dev eth0 root\n Sent 9 bytes 1 pkt (dropped 5, overlimits 0)\nqdisc fq_codel 0: dev eth0 parent :2\n",
            "Settings for eth0:\n\tSpeed: 1000Mb/s\n\tDuplex: Full\n\tLink detected: yes\n",
            "[net]\ntype=net\nring = rx 1024 \\\n  tx 512\n# note\n",
            "DRIVER=igb\nPCI_SLOT_NAME=0000:03:00.0\n",
            "-1\n",
            "4294967295\n",
            "10 21 \n",
            "sdfn+0x200",
            "6d:5a:56:da",
            "SLEEP 10 IRQ 34 LOAD 0 DIFF 0 CLASS 0 IRQ 8 LOAD 0 DIFF 0 CLASS 0 BANNED 00000000,00000003",
            "settings ban irqs 34 35 8",
        ]),
        "pcap" => {
            let packet = [
                &[0u8; 12][..],
                &[8, 0, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 80, 1, 0],
            ]
            .concat();
            let w = |n: u32| n.to_le_bytes();
            let record = [&w(1)[..], &w(2), &w(packet.len() as u32), &w(1500), &packet].concat();
            let plain =
                [&w(0xa1b2_c3d4)[..], &w(0x0004_0002), &w(0), &w(0), &w(65_535), &w(1), &record, &record].concat();
            let interface = [&w(1)[..], &w(20), &w(1), &w(0), &w(20)].concat();
            let size = 32 + packet.len().next_multiple_of(4) as u32;
            let mut block =
                [&w(6)[..], &w(size), &w(0), &w(0), &w(0), &w(packet.len() as u32), &w(1500), &packet].concat();
            block.resize(size as usize - 4, 0);
            block.extend(w(size));
            let head = [&w(0x0a0d_0d0a)[..], &w(28), &w(0x1a2b_3c4d), &[1, 0, 0, 0], &[0xff; 8], &w(28)].concat();
            vec![plain, [head, interface, block].concat(), packet]
        }
        "irq_names" => [
            "\0eth1-TxRx-10",
            "\u{1}ice-eth1-TxRx-0-3",
            "\u{2}i40e-0000:81:00.0:fdir-TxRx-0",
            "\u{3}mlx5_comp3@pci:0000:81:00.0",
            "\u{4}virtio1-input.0",
            "\u{5}gve-ntfy-blk5@pci:0000:81:00.0",
            "\nenp3s0 CQ 0",
            "\u{c}idpf-eth1-TxRx-3\nidpf-eth1-TxRx-1\nidpf-Mailbox-0\nidpf-eth1-Tx-5\nidpf-eth1-TxRx-4",
            "\reth1-rx-4\neth1-tx-0\neth1-rx-5",
        ]
        .iter()
        .map(|t| t.as_bytes().to_vec())
        .collect(),
        "netlink" => netlink(),
        "ioctl" => ioctl(),
        "packet" => packet(),
        other => panic!("no samples for {other}"),
    }
}

fn packet() -> Vec<Vec<u8>> {
    let of = |protocol, from: &str, to: &str, ports| {
        let (from, to) = (from.parse().expect("an address"), to.parse().expect("an address"));
        frame_of(&Flow::Ip { protocol, from, to, ports })
    };
    let udp = of(17, "10.0.0.1", "192.0.2.7", Some((1024, 53)));
    let tagged = [&udp[..12], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7], &udp[12..]].concat();
    let six = of(6, "2001:db8::1", "fe80::2", Some((443, 40_000)));
    let mut long = [&six[..54], &[44, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 1, 9, 9, 9, 9], &six[54..]].concat();
    long[20] = 0;
    vec![udp, tagged, six, long, of(1, "10.0.0.1", "10.0.0.2", None), frame_of(&Flow::Other(0x0806))]
}

fn netlink() -> Vec<Vec<u8>> {
    let c = Some(Count { now: 4, max: 8 });
    let mut header = ethtool_nl::request_header("eth0").unwrap();
    header.extend(ethtool_nl::channels_reply(&Channels { rx: c, tx: c, combined: c, other: c }));
    let rss = ethtool_nl::RssParts {
        indir: (0..16).map(|i| i % 4).collect(),
        hkey: (0..40).collect(),
        hfunc: Some(1),
        fields: Some([("tcp4".to_string(), "sdfn".to_string())].into()),
        ..Default::default()
    };
    let link = rtnl::LinkInfo {
        ifindex: 2,
        name: "eth0".into(),
        kind: Some("vlan".into()),
        mac: Some("52:54:00:12:34:56".into()),
        perm_mac: Some("52:54:00:12:34:56".into()),
        operstate: Some("up"),
        altnames: vec!["enp3s0".into()],
        xdp: vec![rtnl::XdpAttached { mode: "driver", program_id: Some(7) }],
        ..Default::default()
    };
    let queue = netdev_nl::QueueInfo {
        napi: Some(8194),
        xsk: true,
        dmabuf: Some(1),
        io_uring: true,
        lease: Some(netdev_nl::Lease { ifindex: IfIndex(7), queue: 1, netns: Some(0) }),
        ..netdev_nl::QueueInfo::unused(IfIndex(2), Dir::Rx, 1)
    };
    let napi = netdev_nl::NapiInfo {
        ifindex: IfIndex(2),
        id: 8194,
        irq: Some(IrqId(36)),
        pid: Some(9),
        defer_hard_irqs: Some(0),
        gro_flush_timeout_ns: Some(0),
        irq_suspend_timeout_ns: Some(u64::MAX),
        threaded: Some(1),
    };
    let limit = Shaper {
        place: ShaperPlace::Queue(3),
        parent: Some(ShaperPlace::Device),
        unit: RateUnit::PacketsPerSecond,
        min_rate: Some(1),
        max_rate: Some(100_000_000_000),
        burst: Some(64_000),
        priority: Some(2),
        weight: Some(7),
    };
    let profiles = Coalesce([("rx-profile.0.usec".into(), 1), ("rx-profile.1.pkts".into(), 256)].into());
    let mut nest = Builder::new();
    nest.nested(29, &Builder::new()).unwrap().u32(2, 50).u8(11, 1);
    vec![
        header,
        ethtool_nl::rings_reply(&Rings::sizes(c, c)),
        ethtool_nl::pause_reply(&Pause { autoneg: Some(true), rx: Some(true), tx: Some(false) }),
        ethtool_nl::linkmodes_reply(&ethtool_nl::LinkModes { speed_mbps: Some(1000), ..Default::default() }),
        ethtool_nl::rss_reply(&rss).unwrap(),
        nest.finish(),
        netdev_nl::queue_reply(&queue).unwrap(),
        netdev_nl::napi_reply(&napi),
        netdev_nl::napi_set(8194, &napi.values().unwrap()),
        net_shaper_nl::shaper_reply(IfIndex(2), &limit).unwrap(),
        ethtool_nl::coalesce_reply(&profiles).unwrap(),
        b"\x20\0\0\0\x15\0\0\0\0\0\0\0\0\0\0\0\x13\x01\0\0\x0c\0\x01\x80\x08\0\x01\0\x04\0\0\0".to_vec(),
        b"online@/devices/system/cpu/cpu3\0ACTION=online\0SUBSYSTEM=cpu\0".to_vec(),
        rtnl::link_reply(&link).unwrap(),
        rtnl::addr_reply(2, "192.0.2.1/24").unwrap(),
        rtnl::addr_reply(2, "2001:db8::1/64").unwrap(),
    ]
}

fn rule(words: &str) -> Vec<u8> {
    let (rule, _) = ringwise_kfmt::rule::parse_rule(words).unwrap();
    ethtool_ioctl::rxnfc::insert(&ringwise_kfmt::rule::FlowSpec::of(&rule, 7).unwrap())
}

fn ioctl() -> Vec<Vec<u8>> {
    let state = Rxfh { context: 0, indir: (0..16).collect(), key: (0..40).collect(), hfunc: 1, input_xfrm: 0 };
    let ask = ethtool_ioctl::grssh_request(0, RxfhSizes { indir: 16, key: 40 });
    let order =
        |table| ethtool_ioctl::srssh(&RssOrder { context: 0, table, key: vec![1, 2, 3], hfunc: 1, input_xfrm: 0 });
    let flow = ethtool_ioctl::grxfh_request("udp4").unwrap();
    vec![
        ethtool_ioctl::drvinfo_reply(&Drvinfo { driver: "igb".into(), ..Default::default() }),
        ethtool_ioctl::grssh_reply(&ask, &state).unwrap(),
        order(TableOrder::Keep),
        order(TableOrder::Default),
        order(TableOrder::Set(vec![0, 1, 2, 3])),
        ethtool_ioctl::grxfh_reply(&flow, "sdfn").unwrap(),
        ethtool_ioctl::rxnfc::count_request(),
        ethtool_ioctl::rxnfc::all_reply(&ethtool_ioctl::rxnfc::all_request(3), 64, &[0, 7, 63]),
        rule("tcp4 src-ip 10.0.0.0/8 dst-port 443 vlan 7 action 2"),
        rule("ip6 l4proto 17 dst-port 53 dst-mac 2:0:0:0:0:1 context 1"),
        rule("ether proto 0x88f7 vf 1 queue 2"),
        ethtool_ioctl::perqueue::get_request(&[0, 3]),
        ethtool_ioctl::perqueue::set_request(&[1], &Coalesce([("rx-usecs".into(), 5)].into())).unwrap(),
        ethtool_ioctl::srxfh_request("gtpc4t", "sde").unwrap(),
    ]
}

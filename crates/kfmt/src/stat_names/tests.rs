//! One sample of names for each row of the table.

use ringwise_model::{Counter, QueueCounts};

use super::*;

/// `rx 3 packets` by position.
fn found(driver: &str, names: &[&str]) -> Vec<String> {
    let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
    let mut all: Vec<Place> = places(driver, &names);
    all.sort_by_key(|p| p.at);
    all.iter().map(|p| format!("{} {} {} {}", p.at, p.dir, p.queue, p.counter.name())).collect()
}

#[test]
fn by_direction() {
    let igb = [
        "rx_packets",
        "tx_queue_0_packets",
        "tx_queue_0_bytes",
        "tx_queue_0_restart",
        "rx_queue_10_packets",
        "rx_queue_10_bytes",
        "rx_queue_10_drops",
        "rx_queue_10_csum_err",
        "rx_queue_10_alloc_failed",
    ];
    let want =
        ["1 tx 0 packets", "2 tx 0 bytes", "4 rx 10 packets", "5 rx 10 bytes", "6 rx 10 drops", "8 rx 10 alloc_fail"];
    for driver in ["igb", "igc", "mqnic", "virtio_net"] {
        assert_eq!(found(driver, &igb), want, "{driver}");
    }
    // The counters of queues in these three lists.
    let less =
        ["tx_queue_3_packets", "tx_queue_3_bytes", "rx_queue_3_packets", "rx_queue_3_bytes", "rx_queue_3_xdp_drop"];
    for driver in ["ixgbe", "ixgbevf", "ice", "fm10k", "hv_netvsc", "ngbe", "txgbe"] {
        assert_eq!(
            found(driver, &less),
            ["0 tx 3 packets", "1 tx 3 bytes", "2 rx 3 packets", "3 rx 3 bytes"],
            "{driver}"
        );
    }
    assert_eq!(found("hv_netvsc", &["cpu0_rx_packets", "vf_rx_packets"]), [""; 0]);
}

#[test]
fn virtio_of_later_kernels() {
    let names = ["rx0_packets", "rx0_bytes", "rx0_drops", "rx0_xdp_packets", "tx1_packets", "tx1_bytes", "tx1_kicks"];
    let want = ["0 rx 0 packets", "1 rx 0 bytes", "2 rx 0 drops", "4 tx 1 packets", "5 tx 1 bytes"];
    assert_eq!(found("virtio_net", &names), want);
}

#[test]
fn i40e_and_iavf() {
    for driver in ["i40e", "iavf"] {
        let names = ["tx-0.packets", "tx-0.bytes", "rx-15.packets", "rx-15.bytes", "veb.tc_0_rx_packets"];
        let want = ["0 tx 0 packets", "1 tx 0 bytes", "2 rx 15 packets", "3 rx 15 bytes"];
        assert_eq!(found(driver, &names), want);
    }
}

#[test]
fn mellanox() {
    let names =
        ["rx7_packets", "rx7_bytes", "rx7_buff_alloc_err", "tx7_packets", "tx7_bytes", "rx7_xdp_tx_xmit", "ch7_events"];
    let want = ["0 rx 7 packets", "1 rx 7 bytes", "2 rx 7 alloc_fail", "3 tx 7 packets", "4 tx 7 bytes"];
    assert_eq!(found("mlx5_core", &names), want);
    let names = ["tx0_packets", "tx0_bytes", "rx2_packets", "rx2_bytes", "rx2_dropped", "rx2_xdp_drop"];
    let want = ["0 tx 0 packets", "1 tx 0 bytes", "2 rx 2 packets", "3 rx 2 bytes", "4 rx 2 drops"];
    assert_eq!(found("mlx4_en", &names), want);
}

#[test]
fn ena() {
    let names = [
        "queue_1_tx_cnt",
        "queue_1_tx_bytes",
        "queue_1_tx_tx_poll",
        "queue_1_rx_cnt",
        "queue_1_rx_bytes",
        "queue_2_xdp_tx_cnt",
    ];
    let want = ["0 tx 1 packets", "1 tx 1 bytes", "3 rx 1 packets", "4 rx 1 bytes"];
    assert_eq!(found("ena", &names), want);
}

#[test]
fn gve_has_no_packets() {
    let names = [
        "rx_posted_desc[0]",
        "rx_completed_desc[0]",
        "rx_bytes[0]",
        "rx_dropped_pkt[0]",
        "rx_queue_drop_cnt[0]",
        "tx_bytes[12]",
    ];
    let want = ["2 rx 0 bytes", "3 rx 0 drops", "4 rx 0 drops", "5 tx 12 bytes"];
    assert_eq!(found("gve", &names), want);
}

#[test]
fn bnxt() {
    let names = [
        "[0]: rx_ucast_packets",
        "[0]: rx_bcast_packets",
        "[0]: rx_discards",
        "[0]: rx_ucast_bytes",
        "[11]: tx_mcast_packets",
        "[0]: tpa_packets",
    ];
    let want = ["0 rx 0 packets", "1 rx 0 packets", "2 rx 0 drops", "3 rx 0 bytes", "4 tx 11 packets"];
    assert_eq!(found("bnxt_en", &names), want);
}

#[test]
fn veth() {
    let names =
        ["peer_ifindex", "rx_queue_1_xdp_packets", "rx_queue_1_xdp_bytes", "rx_queue_1_drops", "tx_queue_1_xdp_xmit"];
    assert_eq!(found("veth", &names), ["1 rx 1 packets", "2 rx 1 bytes", "3 rx 1 drops"]);
}

#[test]
fn power_systems() {
    for driver in ["ibmveth", "ibmvnic"] {
        let names = ["tx0_packets", "tx0_bytes", "rx1_packets", "rx1_bytes", "rx1_interrupts"];
        let want = ["0 tx 0 packets", "1 tx 0 bytes", "2 rx 1 packets", "3 rx 1 bytes"];
        assert_eq!(found(driver, &names), want, "{driver}");
    }
}

/// Names as the driver's source prints them, and what they count. Names that belong to no queue are not in the second list.
#[test]
fn names_of_other_drivers() {
    let rows: &[(&[&str], &[&str], &[&str])] = &[
        (
            &["idpf"],
            &["rx-csum_errors", "tx_q-0_pkts", "tx_q-0_bytes", "tx_q-0_lso_pkts", "rx_q-15_pkts", "rx_q-15_bytes"],
            &["1 tx 0 packets", "2 tx 0 bytes", "4 rx 15 packets", "5 rx 15 bytes"],
        ),
        (
            &["bnx2x"],
            &[
                "[0]: rx_bytes",
                "[0]: rx_ucast_packets",
                "[0]: rx_bcast_packets",
                "[0]: rx_discards",
                "[0]: rx_phy_ip_err_discards",
                "[0]: rx_skb_alloc_discard",
                "[3]: tx_bytes",
                "[3]: tx_mcast_packets",
                "[fcoe]: tx_bytes",
                "rx_ucast_packets",
            ],
            &[
                "0 rx 0 bytes",
                "1 rx 0 packets",
                "2 rx 0 packets",
                "3 rx 0 drops",
                "5 rx 0 alloc_fail",
                "6 tx 3 bytes",
                "7 tx 3 packets",
            ],
        ),
        (
            &["qede"],
            &[
                "1: rcv_pkts",
                "1: rx_hw_errors",
                "1: rx_alloc_errors",
                "1 [XDP]: xmit_pkts",
                "1_0: xmit_pkts",
                "1_1: xmit_pkts",
            ],
            &["0 rx 1 packets", "2 rx 1 alloc_fail", "4 tx 1 packets"],
        ),
        (
            &["sfc", "sfc_ef100", "sfc_falcon", "sfc_siena"],
            &["tx-0.tx_packets", "rx-12.rx_packets", "tx-xdp-cpu-0.tx_packets", "port_rx_packets"],
            &["0 tx 0 packets", "1 rx 12 packets"],
        ),
        (
            &["hns3"],
            &[
                "txq0_dropped",
                "txq0_packets",
                "txq0_bytes",
                "rxq9_seg_pkt_cnt",
                "rxq9_packets",
                "rxq9_bytes",
                "rxq9_errors",
            ],
            &["1 tx 0 packets", "2 tx 0 bytes", "4 rx 9 packets", "5 rx 9 bytes"],
        ),
        (
            &["amd-xgbe"],
            &["rx_packets", "txq_2_packets", "txq_2_bytes", "rxq_2_packets", "rxq_2_bytes"],
            &["1 tx 2 packets", "2 tx 2 bytes", "3 rx 2 packets", "4 rx 2 bytes"],
        ),
        (
            &["hinic"],
            &["txq1_pkts", "txq1_bytes", "txq1_big_frags_pkts", "rxq1_pkts", "rxq1_bytes", "rxq1_csum_errors"],
            &["0 tx 1 packets", "1 tx 1 bytes", "3 rx 1 packets", "4 rx 1 bytes"],
        ),
        (
            &["be2net"],
            &[
                "rxq0: rx_bytes",
                "rxq0: rx_pkts",
                "rxq0: rx_mcast_pkts",
                "rxq0: rx_post_fail",
                "rxq0: rx_drops_no_skbs",
                "rxq0: rx_drops_no_frags",
                "txq0: tx_bytes",
                "txq0: tx_pkts",
            ],
            &["0 rx 0 bytes", "1 rx 0 packets", "3 rx 0 alloc_fail", "5 rx 0 drops", "6 tx 0 bytes", "7 tx 0 packets"],
        ),
        (
            &["rvu_nicpf", "rvu_nicvf", "nicvf"],
            &["rx_ucast_frames", "rxq7: bytes", "rxq7: frames", "txq7: bytes", "txq7: frames", "txq_qos8: frames"],
            &["1 rx 7 bytes", "2 rx 7 packets", "3 tx 7 bytes", "4 tx 7 packets"],
        ),
        (
            &["octeon_ep", "octeon_ep_vf"],
            &[
                "tx_packets_posted[Q-0]",
                "tx_packets_completed[Q-0]",
                "tx_bytes[Q-0]",
                "rx_packets[Q-1]",
                "rx_bytes[Q-1]",
                "rx_alloc_errors[Q-1]",
            ],
            &["1 tx 0 packets", "2 tx 0 bytes", "3 rx 1 packets", "4 rx 1 bytes", "5 rx 1 alloc_fail"],
        ),
        (
            &["nfp", "nfp_netvf"],
            &["rvec_4_rx_pkts", "rvec_4_tx_pkts", "rvec_4_tx_busy", "hw_rx_csum_ok"],
            &["0 rx 4 packets", "1 tx 4 packets"],
        ),
        (
            &["ionic"],
            &["tx_packets", "tx_0_pkts", "tx_0_bytes", "tx_0_clean", "rx_0_pkts", "rx_0_bytes", "rx_0_alloc_err"],
            &["1 tx 0 packets", "2 tx 0 bytes", "4 rx 0 packets", "5 rx 0 bytes", "6 rx 0 alloc_fail"],
        ),
        (
            &["mana", "tsnep"],
            &["rx_0_packets", "rx_0_bytes", "rx_0_xdp_drop", "rx_0_alloc_failed", "tx_5_packets", "tx_5_bytes"],
            &["0 rx 0 packets", "1 rx 0 bytes", "3 rx 0 alloc_fail", "4 tx 5 packets", "5 tx 5 bytes"],
        ),
        (
            &["funeth"],
            &["tx_pkts[0]", "tx_bytes[0]", "tx_pkts", "tx_xdp_pkts[0]", "rx_pkts[31]", "rx_bytes[31]"],
            &["0 tx 0 packets", "1 tx 0 bytes", "4 rx 31 packets", "5 rx 31 bytes"],
        ),
        (
            &["intel-eth-pci", "rk_gmac-dwmac", "qcom-ethqos", "st_gmac"],
            &["q0_tx_pkt_n", "q0_tx_irq_n", "q3_rx_pkt_n", "q3_rx_irq_n", "rx_pkt_n"],
            &["0 tx 0 packets", "2 rx 3 packets"],
        ),
        (
            &["atlantic"],
            &[
                "InPackets",
                "Queue[2] InPackets",
                "Queue[2] AllocFails",
                "Queue[2] InErrors",
                "Queue[2] OutPackets",
                "TC1 Queue[4] InPackets",
            ],
            &["1 rx 2 packets", "2 rx 2 alloc_fail", "4 tx 2 packets"],
        ),
        (
            &["fsl_enetc", "fsl_enetc_vf"],
            &[
                "Rx ring  0 frames",
                "Rx ring  0 alloc errors",
                "Rx ring 10 frames",
                "Tx ring  1 frames",
                "Tx ring 11 frames",
                "Tx window drop  1 frames",
            ],
            &["0 rx 0 packets", "1 rx 0 alloc_fail", "2 rx 10 packets", "3 tx 1 packets", "4 tx 11 packets"],
        ),
    ];
    for (drivers, names, want) in rows {
        for driver in *drivers {
            assert_eq!(found(driver, names), *want, "{driver}");
        }
    }
}

/// Their lists name only the whole device, or leave packets to qstats: another driver's form is not applied to them.
#[test]
fn drivers_without_counters_of_queues() {
    for (driver, names) in [
        ("tg3", ["rx_octets", "rx_ucast_packets", "tx_comp_queue_full"]),
        ("cxgb4", ["tx_frames_ok           ", "rx_bg0_frames_dropped  ", "gro_packets            "]),
        ("enic", ["rq[0]_l4_rss_hash", "rq[0]_no_skb", "wq[0]_cq_bytes"]),
    ] {
        assert!(!counts_queues(driver));
        assert_eq!(found(driver, &names), [""; 0], "{driver}");
    }
}

#[test]
fn vmxnet3_in_blocks() {
    let names = [
        "Tx Queue#",
        "  TSO pkts tx",
        "  ucast pkts tx",
        "  ucast bytes tx",
        "Tx Queue#",
        "  mcast pkts tx",
        "Rx Queue#",
        "  LRO pkts rx",
        "  ucast pkts rx",
        "  bcast bytes rx",
        "  pkts rx OOB",
        "  drv dropped rx total",
        "Rx Queue#",
        "  ucast pkts rx",
        "tx timeout count",
    ];
    let want = [
        "2 tx 0 packets",
        "3 tx 0 bytes",
        "5 tx 1 packets",
        "8 rx 0 packets",
        "9 rx 0 bytes",
        "10 rx 0 drops",
        "13 rx 1 packets",
    ];
    assert_eq!(found("vmxnet3", &names), want);
    assert_eq!(found("vmxnet3", &["  ucast pkts rx"]), [""; 0], "no headline, no queue");
}

#[test]
fn what_is_not_in_the_table_is_not_guessed() {
    assert_eq!(found("e1000e", &["rx_queue_0_packets"]), [""; 0]);
    for strange in [
        "rx_queue__packets",
        "rx_queue_x_packets",
        "rx_queue_+1_packets",
        "rx_queue_999999_packets",
        "rx_queue_1_packetsx",
    ] {
        assert_eq!(found("igb", &[strange]), [""; 0], "{strange}");
    }
}

#[test]
fn every_driver_is_in_one_row_and_has_packets() {
    for form in FORMS {
        assert!(!form.drivers.is_empty());
        for d in form.drivers {
            let rows = FORMS.iter().filter(|f| f.drivers.contains(d)).count();
            assert!(rows == 1 || *d == "virtio_net", "{d}");
        }
        let (Names::Each(list) | Names::Blocks(list)) = form.names;
        assert!(list.iter().any(|l| l.2 == QueueCounter::Packets) || form.drivers.contains(&"gve"));
    }
}

#[test]
fn names_end_at_the_nul() {
    let mut bytes = vec![0; 64];
    bytes[..4].copy_from_slice(b"rx0\0");
    bytes[4] = b'x';
    bytes[32..].copy_from_slice(&[b'y'; 32]);
    assert_eq!(names(&bytes), ["rx0".to_string(), "y".repeat(32)]);
    assert_eq!(names(&bytes[..40]).len(), 1);
}

fn bytes_of(names: &[&str]) -> Vec<u8> {
    names.iter().flat_map(|n| [n.as_bytes(), &vec![0; NAME - n.len()]].concat()).collect()
}

fn values_of(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|n| n.to_ne_bytes()).collect()
}

#[test]
fn values_by_the_places_that_were_learned() {
    let names = bytes_of(&["[1]: rx_ucast_packets", "[0]: rx_ucast_bytes", "tx_errors", "[1]: rx_mcast_packets"]);
    let layout = StatLayout::learn("bnxt_en", &names);
    assert!(layout.counts_queues() && layout.fits(&values_of(&[0; 4])) && !layout.fits(&values_of(&[0; 5])));
    let all: Vec<_> = layout.queues(&values_of(&[40, 7, 9, 2])).collect();
    let want = [
        (Dir::Rx, 0, QueueCounts::from([(QueueCounter::Bytes, 7)])),
        (Dir::Rx, 1, QueueCounts::from([(QueueCounter::Packets, 42)])),
    ];
    assert_eq!(all, want);
    // Truncated: missing counters are not reported.
    assert_eq!(layout.queues(&values_of(&[40])).next().unwrap().2, QueueCounts::default());
    assert!(!StatLayout::learn("e1000e", &names).counts_queues());
}

#[test]
fn allowances_by_name() {
    let names = bytes_of(&["tx_timeout", "bw_in_allowance_exceeded", "queue_0_rx_cnt", "pps_allowance_exceeded"]);
    let values = values_of(&[1, 2, 3, 4]);
    let layout = StatLayout::learn("ena", &names);
    let all: Vec<_> = layout.allowances(&values).collect();
    assert_eq!(all, [("bw_in_allowance_exceeded", 2), ("pps_allowance_exceeded", 4)]);
    assert_eq!(layout.queues(&values).count(), 1);
    assert_eq!(StatLayout::learn("igb", &names).allowances(&values).count(), 0);
    assert!(counts_allowances("ena") && counts_queues("ena") && !counts_allowances("igb") && !counts_queues("e1000e"));
}

use super::*;

const BDF: &str = "0000:81:00.0";

fn ctx(driver: &str) -> NameContext<'_> {
    NameContext {
        ifname: "eth1",
        driver: (!driver.is_empty()).then_some(driver),
        bus_address: Some(BDF),
        virtio_name: Some("virtio1"),
        rx_queues: Some(2),
        tx_queues: Some(2),
        vectors: Some(9),
        ntfy_blocks: Some(8),
        ..NameContext::default()
    }
}

fn q(rx: &[u32], tx: &[u32], exact_driver: bool) -> NameMatch {
    NameMatch::Queues { rx: rx.to_vec(), tx: tx.to_vec(), exact_driver }
}

/// Driver, name, expected meaning.
fn check(rows: &[(&str, &str, NameMatch)]) {
    for (driver, name, want) in rows {
        assert_eq!(classify(name, &ctx(driver)), *want, "{driver}: {name}");
    }
}

use NameMatch::{Control, NotOurs, Unknown, Unused};

#[test]
fn intel() {
    let pair = |n| q(&[n], &[n], true);
    check(&[
        ("igb", "eth1-TxRx-0", pair(0)),
        ("igb", "eth1-rx-10", q(&[10], &[], true)),
        ("igb", "eth1-tx-2", q(&[], &[2], true)),
        ("igb", "eth1-unused", Unused),
        ("igb", "eth1", Control),
        ("ixgbe", "eth1-TxRx-63", pair(63)),
        ("ixgbe", "eth1", Control),
        ("igc", "eth1-TxRx-3", pair(3)),
        ("igc", "eth1-unused", Unused),
        ("ixgbevf", "eth1-TxRx-3", pair(3)),
        ("ixgbevf", "eth1-tx-3", q(&[], &[3], true)),
        ("ixgbevf", "eth1", Control),
        ("igc", "eth1", Control),
        ("igbvf", "eth1-rx-0", q(&[0], &[], true)),
        ("fm10k", "eth1-TxRx-1", pair(1)),
        ("fm10k", "eth1", Control),
        ("fm10k", "fm10k-mbx", Unknown),
        ("fbnic", "eth1-TxRx-1", Unknown),
        ("fbnic", "fbnic-fw", Unknown),
        ("i40e", "i40e-eth1-TxRx-5", pair(5)),
        ("i40e", "i40e-eth1-rx-5", q(&[5], &[], true)),
        ("i40e", "i40e-eth1-tx-5", q(&[], &[5], true)),
        ("i40e", "i40e-0000:81:00.0:misc", Control),
        ("i40e", "i40e-0000:81:00.0:fdir-TxRx-0", Control),
        ("ice", "ice-eth1-TxRx-7", pair(7)),
        ("ice", "ice-eth1-TxRx-0-3", q(&[0, 1, 2, 3], &[0, 1, 2, 3], true)),
        ("ice", "ice-eth1-TxRx-3-0", Unknown),
        ("ice", "ice-eth1-tx-9", q(&[], &[9], true)),
        ("ice", "ice-0000:81:00.0:misc", Control),
        ("ice", "ice-0000:81:00.0:ll_ts", Control),
        ("ice", "ice-0000:81:00.0:ctrl-TxRx-0", Control),
        ("iavf", "iavf-eth1-TxRx-2", pair(2)),
        ("iavf", "iavf-0000:81:00.0:mbx", Control),
        ("i40evf", "i40evf-eth1-TxRx-2", pair(2)),
        ("i40evf", "i40evf-eth1-rx-1", q(&[1], &[], true)),
        ("i40evf", "i40evf-eth1-tx-1", q(&[], &[1], true)),
        ("i40evf", "i40evf-eth10-TxRx-2", NotOurs),
        ("i40evf", "i40evf-0000:81:00.0:mbx", Control),
        ("i40evf", "iavf-eth1-TxRx-2", Unknown),
        ("ice", "irdma-0000:81:00.0-AEQCEQ-0", Control),
        ("idpf", "idpf-eth1-TxRx-2", Unknown),
        ("idpf", "idpf-Mailbox-0", Control),
        ("e1000e", "eth1-rx-0", q(&[0], &[], true)),
        ("e1000e", "eth1-tx-0", q(&[], &[0], true)),
        ("e1000e", "eth1", Control),
    ]);
}

#[test]
fn mellanox_broadcom_and_the_like() {
    let pair = |n| q(&[n], &[n], true);
    check(&[
        ("mlx5_core", "mlx5_comp0@pci:0000:81:00.0", pair(0)),
        ("mlx5_core", "mlx5_comp12@pci:0000:81:00.0", pair(12)),
        ("mlx5_core", "mlx5_comp0@pci:0000:81:00.1", NotOurs),
        ("mlx5_core", "mlx5_async0@pci:0000:81:00.0", Control),
        ("mlx5_core", "mlx5_async@pci:0000:81:00.0", Control),
        ("mlx5_core", "mlx5_async@pci:0000:81:00.1", NotOurs),
        ("mlx5_core", "mlx5_async_eq@pci:0000:81:00.0", Control),
        ("mlx5_core", "mlx5_cmd_eq@pci:0000:81:00.0", Control),
        ("mlx5_core", "mlx5_pages_eq@pci:0000:81:00.0", Control),
        // Truncated to 31 bytes.
        ("mlx5_core", "mlx5_page_fault_eq@pci:0000:81:", Control),
        ("mlx5_core", "mlx5_comp10000@pci:0000:81:00.0", pair(10000)),
        ("mlx5_core", "mlx5_comp10000@pci:0000:81:00.", NotOurs),
        ("mlx5_core", "mlx5_combined0", q(&[0, 1], &[0, 1], true)),
        ("mlx5_core", "mlx5_sf_comp3@pci:0000:81:00.0", Unknown),
        ("mlx5_core", "mlx5_sf_ctrl0@pci:0000:81:00.0", Control),
        ("mlx5_core", "eth1-4", pair(4)),
        ("mlx4_core", "mlx4-6@0000:81:00.0", Unknown),
        ("mlx4_core", "mlx4-6@pci:0000:81:00.0", Unknown),
        ("mlx4_core", "mlx4-comp-6@pci:0000:81:00.0", Unknown),
        ("mlx4_core", "mlx4-async@pci:0000:81:00.0", Control),
        ("mlx4_core", "eth1-0", pair(0)),
        ("bnxt_en", "eth1-TxRx-0", pair(0)),
        ("bnxt_en", "eth1-rx-1", q(&[1], &[], true)),
        ("bnxt_en", "eth1-tx-1", q(&[], &[1], true)),
        ("bnxt_en", "bnxt_re-nq-0@pci:0000:81:00.0", Control),
        ("bnxt_en", "bnxt_re-nq-0@pci:0000:82:00.0", NotOurs),
        ("bnxt_en", "bnxt_re-creq@pci:0000:81:00.0", Control),
        ("bnxt_en", "bnxt_qplib_nq-1", Control),
        ("bnxt_en", "bnxt_qplib_creq", Control),
        ("bnxt_en", "bnxt_qplib_creq2", Unknown),
        ("bnx2", "eth1-3", pair(3)),
        ("bnx2", "eth1", Unknown),
        ("bnx2x", "eth1-fp-3", pair(3)),
        ("qede", "eth1-fp-3", pair(3)),
        ("qede", "sp-0-81:00.00", Control),
        ("qede", "sp-x-81:00.00", Unknown),
        ("bnx2x", "eth1", Control),
        ("bna", "eth1 CQ 1", q(&[1], &[], true)),
        ("bna", "eth1 TXQ 1", q(&[], &[1], true)),
        ("sfc", "eth1-0", pair(0)),
        ("sfc", "eth1-rx-1", q(&[1], &[], true)),
        ("sfc", "eth1-tx-1", q(&[], &[1], true)),
        ("sfc", "eth1-ptp", Control),
        ("sfc", "eth1-other-0", Unknown),
        ("sfc", "eth10-0", NotOurs),
        ("sfc", "eth1-xdp-0", Control),
        ("cxgb4", "eth1-Rx3", q(&[3], &[], true)),
        ("cxgb4", "eth1-FWeventq", Control),
        ("cxgb4", "eth1", Control),
        ("nfp", "eth1-rxtx-3", pair(3)),
        ("nfp", "eth1-lsc", Control),
        ("nfp", "eth1-exn", Control),
        ("rvu_nicpf", "eth1-rxtx-3", pair(3)),
        ("nicvf", "eth1-rxtx-3", pair(3)),
        ("nicvf", "eth1-rbdr-0", Control),
        ("nicvf", "eth1-qset-err-0", Control),
        ("nicvf", "eth1-sq-0", Unknown),
        ("nfp", "eth1-rx-3", Unknown),
        ("hns3", "hns3-0000:81:00.0-TxRx-2", Unknown),
        ("hns3", "hns3-0000:81:00.0-Rx-2", Unknown),
        ("hns3", "hclge-misc-0000:81:00.0", Control),
        ("hns3", "hclgevf-misc-0000:81:00.0", Control),
        ("hinic", "eth1_rxq3", q(&[3], &[], true)),
        ("hinic", "eth1_txq3", q(&[], &[3], true)),
        ("ionic", "ionic-eth1-L0-rx1", q(&[1], &[], true)),
        ("ionic", "ionic-eth1-L0-tx1", q(&[], &[1], true)),
        ("ionic", "ionic-eth1-L0-admin0", Control),
        ("ionic", "ionic-0000:81:00.0-L0-admin0", Control),
        ("ionic", "ionic-eth1-rx0", Unknown),
        ("be2net", "eth1-q0", pair(0)),
        ("enic", "eth1-rx-0", q(&[0], &[], true)),
        ("enic", "eth1-err", Control),
        ("enic", "eth1-notify", Control),
        ("stmmac", "eth1:rx-0", q(&[0], &[], true)),
        ("stmmac", "eth1:tx-0", q(&[], &[0], true)),
        ("stmmac", "eth1:mac", Control),
        ("stmmac", "eth1:wol", Control),
        ("rk_gmac-dwmac", "eth1:rx-1", q(&[1], &[], true)),
        ("rk_gmac-dwmac", "eth1:safety", Control),
        ("atlantic", "eth1-5", Unknown),
        ("atlantic", "eth1", Unknown),
        ("r8125", "eth1-0", Unknown),
        ("r8125", "eth1", Unknown),
        ("fsl_enetc", "eth1-rxtx1", q(&[1], &[], true)),
        ("fsl_enetc", "eth1-rxtx-1", Unknown),
        ("alx", "eth1-TxRx-1", pair(1)),
        ("alx", "eth1-tx-1", q(&[], &[1], true)),
        ("alx", "eth1", Control),
        ("sky2", "sky2@pci:0000:81:00.0", q(&[0, 1], &[0, 1], true)),
        ("sky2", "sky2@pci:0000:82:00.0", NotOurs),
        ("sky2", "eth1", Unknown),
        ("xsc", "xsc_comp52@pci:0000:81:00.0", pair(52)),
        ("mqnic", "eth1-TxRx-7", pair(7)),
        ("mqnic", "eth1-event", Control),
    ]);
    let am65 = NameContext { bus_address: Some("8000000.ethernet"), ..ctx("am65-cpsw-nuss") };
    assert_eq!(classify("8000000.ethernet-rx0", &am65), q(&[0], &[], true));
}

#[test]
fn guests() {
    check(&[
        ("ena", "eth1-Tx-Rx-3", q(&[3], &[3], true)),
        ("ena", "ena-mgmnt@pci:0000:81:00.0", Control),
        ("virtio_net", "virtio1-input.0", q(&[0], &[], true)),
        ("virtio_net", "virtio1-output.11", q(&[], &[11], true)),
        ("virtio_net", "virtio1-config", Control),
        ("virtio_net", "virtio1-control", Control),
        ("virtio_net", "virtio1", q(&[0, 1], &[0, 1], true)),
        ("virtio_net", "virtio1-virtqueues", q(&[0, 1], &[0, 1], true)),
        ("virtio_net", "virtio10-input.0", NotOurs),
        ("virtio_net", "virtio-net-p0-input", Unknown),
        ("vmxnet3", "eth1-rxtx-0", q(&[0], &[0], true)),
        ("vmxnet3", "eth1-rx-0", Unknown),
        ("vmxnet3", "eth1-tx-0", Unknown),
        ("vmxnet3", "eth1-event-8", Control),
        ("gve", "gve-ntfy-blk0@pci:0000:81:00.0", q(&[], &[0], true)),
        ("gve", "gve-ntfy-blk3@pci:0000:81:00.0", Unused),
        ("gve", "gve-ntfy-blk5@pci:0000:81:00.0", q(&[1], &[], true)),
        ("gve", "gve-ntfy-blk7@pci:0000:81:00.0", Unused),
        ("gve", "gve-ntfy-blk8@pci:0000:81:00.0", Unknown),
        ("gve", "eth1-ntfy-block.4", q(&[0], &[], true)),
        ("gve", "eth%d-ntfy-block.0", q(&[], &[0], true)),
        ("gve", "eth%d-ntfy-block.4", q(&[0], &[], true)),
        ("gve", "eth%d-ntfy-block.8", Unknown),
        ("gve", "eth%d-mgmnt", Control),
        ("gve", "gve-mgmnt@pci:0000:81:00.0", Control),
        ("mana", "mana_q0@pci:0000:81:00.0", q(&[0], &[0], true)),
        ("mana", "mana_q@pci:0000:81:00.0", Unknown),
        ("mana", "mana_hwc@pci:0000:81:00.0", Control),
        ("hv_netvsc", "eth1", Unknown),
        ("vif", "eth1-q0-tx", Unknown),
        ("vif", "eth1-q0-rx", Unknown),
        ("vif", "eth1", Unknown),
    ]);
    let xen = NameContext { bus_address: Some("vif-1"), ..ctx("vif") };
    assert_eq!(classify("vif1-q0-tx", &xen), q(&[], &[0], true));
    assert_eq!(classify("vif1-q1-rx", &xen), q(&[1], &[], true));
    assert_eq!(classify("vif10-q1-rx", &xen), NotOurs);
    assert_eq!(classify("vif1-q1", &xen), Unknown);
    // Another interface may have this name if the device's own name is unknown.
    let nameless = NameContext { bus_address: None, ..xen };
    assert!(!matches!(classify("vif1-q1-rx", &nameless), NameMatch::Queues { .. }));
}

/// The meaning of each of `names` on a device with all of them and this many queues.
fn ranked(driver: &str, names: &[&str], rx: u32, tx: u32) -> Vec<NameMatch> {
    let c = NameContext { rx_queues: Some(rx), tx_queues: Some(tx), ..ctx(driver) };
    let numbers = RankedNumbers::of(names.iter().copied(), &c);
    names.iter().map(|n| classify(n, &NameContext { ranked: Some(&numbers), ..c })).collect()
}

#[test]
fn idpf_counts_vectors() {
    let pair = |n| q(&[n], &[n], false);
    // The commit message of the change: ethtool -L eth1 tx 1 combined 3, before and after.
    let want = [Control, pair(0), pair(1), pair(2), q(&[], &[3], false)];
    let before = ["idpf-Mailbox-0", "idpf-eth1-TxRx-1", "idpf-eth1-TxRx-3", "idpf-eth1-TxRx-4", "idpf-eth1-Tx-5"];
    assert_eq!(ranked("idpf", &before, 3, 4), want);
    let after = ["idpf-Mailbox-0", "idpf-eth1-TxRx-0", "idpf-eth1-TxRx-1", "idpf-eth1-TxRx-2", "idpf-eth1-Tx-3"];
    assert_eq!(ranked("idpf", &after, 3, 4), want);
    // Numbers compare as numbers, in whatever order the vectors are listed.
    assert_eq!(ranked("idpf", &["idpf-eth1-TxRx-10", "idpf-eth1-TxRx-9"], 2, 2), [pair(1), pair(0)]);
    // The vectors of another port of the same function are not counted.
    let ports = ["idpf-eth2-TxRx-1", "idpf-eth2-TxRx-2", "idpf-eth1-TxRx-3", "idpf-eth1-TxRx-4"];
    assert_eq!(ranked("idpf", &ports, 2, 2), [NotOurs, NotOurs, pair(0), pair(1)]);
    // A name is missing, or a vector serves several queues.
    assert_eq!(ranked("idpf", &["idpf-eth1-TxRx-1", "idpf-eth1-TxRx-2"], 4, 4), [Unknown, Unknown]);
    assert_eq!(ranked("idpf", &["idpf-eth1-TxRx-1", "idpf-eth1-Tx-1", "idpf-eth1-TxRx-2"], 2, 2)[0], Unknown);
    let c = NameContext { rx_queues: None, ..ctx("idpf") };
    let numbers = RankedNumbers::of(["idpf-eth1-TxRx-1"], &c);
    assert_eq!(classify("idpf-eth1-TxRx-1", &NameContext { ranked: Some(&numbers), ..c }), Unknown);
}

#[test]
fn hns3_counts_in_twos() {
    let pair = |n| q(&[n], &[n], false);
    let names = ["hclge-misc-0000:81:00.0", "hns3-0000:81:00.0-TxRx-0", "hns3-0000:81:00.0-TxRx-2"];
    assert_eq!(ranked("hns3", &names, 2, 2), [Control, pair(0), pair(1)]);
    assert_eq!(ranked("hns3", &["eth1-TxRx-0", "eth1-TxRx-2", "eth1-TxRx-4"], 3, 3), [pair(0), pair(1), pair(2)]);
    assert_eq!(ranked("hns3", &["eth1-TxRx-0", "eth1-TxRx-2"], 3, 3), [Unknown, Unknown]);
    assert_eq!(ranked("hns3", &["eth1-Rx-0", "eth1-Tx-0"], 1, 1), [Unknown, Unknown]);
}

#[test]
fn vmxnet3_counts_vectors_where_queues_share_none() {
    let names = ["eth1-tx-0", "eth1-tx-1", "eth1-rx-2", "eth1-rx-3", "eth1-event-4"];
    let want = [q(&[], &[0], false), q(&[], &[1], false), q(&[0], &[], false), q(&[1], &[], false), Control];
    assert_eq!(ranked("vmxnet3", &names, 2, 2), want);
    // One vector for all transmit queues.
    let names = ["eth1-tx-0", "eth1-rx-1", "eth1-rx-2"];
    assert_eq!(ranked("vmxnet3", &names, 2, 2), [Unknown, q(&[0], &[], false), q(&[1], &[], false)]);
    // Each direction is counted by its own number of queues.
    let names = ["eth1-tx-0", "eth1-tx-1", "eth1-rx-2"];
    assert_eq!(ranked("vmxnet3", &names, 1, 2), [q(&[], &[0], false), q(&[], &[1], false), q(&[0], &[], false)]);
    let names = ["eth1-tx-0", "eth1-rx-1", "eth1-rx-2"];
    assert_eq!(ranked("vmxnet3", &names, 2, 1), [q(&[], &[0], false), q(&[0], &[], false), q(&[1], &[], false)]);
}

#[test]
fn one_vector_for_everything() {
    for driver in [
        "r8169",
        "tg3",
        "e1000e",
        "igb",
        "stmmac",
        "vmxnet3",
        "atlantic",
        "alx",
        "vif",
        "bnx2",
        "enic",
        "rk_gmac-dwmac",
    ] {
        let one = NameContext { vectors: Some(1), rx_queues: Some(1), tx_queues: Some(1), ..ctx(driver) };
        let NameMatch::Queues { rx, tx, .. } = classify("eth1", &one) else { panic!("{driver}") };
        assert_eq!((rx, tx), (vec![0], vec![0]), "{driver}");
        let unknown = NameContext { vectors: None, ..one };
        assert_eq!(classify("eth1", &unknown), Unknown, "{driver}");
    }
}

#[test]
fn tg3_counts_from_the_vector_for_link_events() {
    check(&[
        ("tg3", "eth1-txrx-1", q(&[0], &[0], true)),
        ("tg3", "eth1-txrx-4", q(&[3], &[3], true)),
        ("tg3", "eth1-rx-1", q(&[0], &[], true)),
        // Without TSS the vector for link events serves the only transmit queue.
        ("tg3", "eth1-tx-0", q(&[], &[0], true)),
        ("tg3", "eth1-tx-2", q(&[], &[1], true)),
        ("tg3", "eth1-0", Unknown),
        ("tg3", "eth1-1", Unknown),
        ("tg3", "eth1-rx-0", Unknown),
        ("tg3", "eth1-txrx-0", Unknown),
        ("tg3", "eth1", Unknown),
        // Forms of other drivers are not used for a driver that is in the table.
        ("tg3", "eth1-TxRx-1", Unknown),
    ]);
}

#[test]
fn qede_fastpaths_are_pairs_only_where_queues_are() {
    let more_rx = NameContext { rx_queues: Some(4), ..ctx("qede") };
    assert_eq!(classify("eth1-fp-1", &more_rx), Unknown);
    assert_eq!(classify("eth1-fp-1", &NameContext { rx_queues: None, tx_queues: None, ..more_rx }), Unknown);
}

#[test]
fn names_are_anchored() {
    check(&[
        ("igb", "eth10-TxRx-0", NotOurs),
        ("igb", "eth-TxRx-0", NotOurs),
        ("igb", "xeth1-TxRx-0", NotOurs),
        ("igb", "eth1-TxRx-0x", Unknown),
        ("igb", "eth1-TxRx-", Unknown),
        ("igb", "eth1-TxRx-01", Unknown),
        ("igb", "eth1-TxRx--1", Unknown),
        ("igb", "eth1-TxRx-4294967296", Unknown),
        ("igb", "eth1-TxRx-99999", Unknown),
        ("igb", "eth10", Unknown),
        ("igb", "i8042", Unknown),
        ("igb", "", Unknown),
        ("igb", " eth1-TxRx-0 ", q(&[0], &[0], true)),
        ("e1000e", "eth1-rx-", Unknown),
    ]);
    let cut = NameContext { ifname: "enp129s0f0np00", ..ctx("e1000e") };
    assert_eq!(classify("enp129s0f0np00-rx-0", &cut), q(&[0], &[], true));
    let cut = NameContext { ifname: "enp129s0f0np001", ..ctx("e1000e") };
    assert_eq!(classify("enp129s0f0np00-rx-0", &cut), q(&[0], &[], true));
    let cut = NameContext { ifname: "enp129s0f0np0", ..ctx("enic") };
    assert_eq!(classify("enp129s0f0n-rx-0", &cut), q(&[0], &[], true));
    assert_eq!(classify("enp129s0f0n-notify", &cut), Control);
    assert_eq!(classify("enp129s0f0np0-rx-0", &cut), Unknown);
    assert_eq!(classify("enp130s0f0n-rx-0", &cut), NotOurs);
}

#[test]
fn earlier_names_and_unknown_drivers() {
    let renamed = NameContext { ifname: "lan0", other_names: &["eth0", "eth1"], ..ctx("igb") };
    assert_eq!(classify("eth1-TxRx-3", &renamed), q(&[3], &[3], true));
    assert_eq!(classify("eth2-TxRx-3", &renamed), NotOurs);
    check(&[
        ("", "eth1-TxRx-3", q(&[3], &[3], false)),
        ("brandnew", "eth1-rx-3", q(&[3], &[], false)),
        ("brandnew", "eth1-3", Unknown),
        ("brandnew", "eth1", Unknown),
        ("", "virtio1-input.2", q(&[2], &[], false)),
        ("", "eth10-TxRx-3", NotOurs),
    ]);
    let bare = NameContext { ifname: "eth1", driver: Some("mlx5_core"), ..NameContext::default() };
    assert_eq!(classify("mlx5_comp3@pci:0000:01:00.0", &bare), q(&[3], &[3], true));
}

#[test]
fn drivers_of_chelsio_huawei_marvell_and_wangxun() {
    let pair = |n| q(&[n], &[n], true);
    check(&[
        ("cxgb4vf", "eth1-3", q(&[3], &[], true)),
        ("cxgb4vf", "eth1-FWeventq", Control),
        ("hinic3", "eth1_qp5", pair(5)),
        ("hinic3", "eth1_rxq5", Unknown),
        ("octeon_ep", "eth1-q1", pair(1)),
        ("octeon_ep", "eth1-epf_misc_rint", Control),
        ("octeon_ep", "eth2-q1", NotOurs),
        // Only with the names of all vectors.
        ("txgbe", "eth1-TxRx-1", Unknown),
        ("txgbe", "eth1", Control),
    ]);
    let ranks = |n| q(&[n], &[n], false);
    for driver in ["ngbe", "txgbe"] {
        // The vector for other events is the first one, or the last one.
        for names in [["eth1", "eth1-TxRx-1", "eth1-TxRx-2"], ["eth1", "eth1-TxRx-0", "eth1-TxRx-1"]] {
            assert_eq!(ranked(driver, &names, 2, 2), [Control, ranks(0), ranks(1)], "{driver} {names:?}");
        }
        assert_eq!(ranked(driver, &["eth1-TxRx-1", "eth1-TxRx-2"], 4, 4), [Unknown, Unknown], "{driver}");
    }
}

#[test]
fn blocks_are_counted() {
    let c = ctx("gve");
    let names =
        ["gve-ntfy-blk0@pci:0000:81:00.0", "gve-ntfy-blk1@pci:0000:81:00.0", "gve-ntfy-blk0@pci:0000:82:00.0", "x"];
    assert_eq!(count_ntfy_blocks(names, &c), 2);
    let odd = NameContext { ntfy_blocks: Some(7), ..c };
    assert_eq!(classify("gve-ntfy-blk0@pci:0000:81:00.0", &odd), Unknown);
}

/// Every row can be matched by its own form, so no row is hidden by an earlier one.
#[test]
fn every_row_is_reachable() {
    for p in PATTERNS {
        let name = p
            .shape
            .replace("{if}", "eth1")
            .replace("{if14}", "eth1")
            .replace("{if11}", "eth1")
            .replace("{vif}", "vif1")
            .replace("{bdf}", BDF)
            .replace("{virtio}", "virtio1")
            .replace("{n}", if matches!(p.serves, Serves::NumberedFromOne(_)) { "1" } else { "0" })
            .replace("{m}", "1")
            .replace("{*}", "x");
        for driver in p.drivers {
            let bus_address = Some(if p.shape.contains("{vif}") { "vif-1" } else { BDF });
            let vectors = Some(if p.serves == Serves::AllIfSole { 1 } else { 9 });
            let c = NameContext { rx_queues: Some(1), tx_queues: Some(1), bus_address, vectors, ..ctx(driver) };
            let numbers = RankedNumbers::of([name.as_str()], &c);
            let got = classify(&name, &NameContext { ranked: Some(&numbers), ..c });
            let right = match p.serves {
                Serves::Control => got == Control,
                Serves::Unused => got == Unused,
                Serves::SomeQueue => got == Unknown,
                Serves::AllIfOnly => got == Control,
                Serves::Ranked(..) => matches!(got, NameMatch::Queues { exact_driver: false, .. }),
                _ => matches!(got, NameMatch::Queues { exact_driver: true, .. }),
            };
            assert!(right, "{driver} {name}: {got:?}");
        }
        assert!(p.shape.matches('{').count() == p.shape.matches('}').count());
        // Every part names a file, a repository or the lab; a capture names where it is.
        let sourced = [".c ", ".py", "/", "lab"].iter().any(|mark| p.source.contains(mark));
        let nameless = p.source.split(", ").any(|part| matches!(part, "capture" | "captures" | "excerpt"));
        assert!(sourced && !nameless, "{}: {}", p.shape, p.source);
    }
}

#[test]
fn a_number_of_a_vector_that_serves_several_queues_is_no_queue() {
    for (driver, name) in [("ixgbe", "eth1-TxRx-3"), ("ixgbevf", "eth1-rx-3"), ("iavf", "iavf-eth1-TxRx-3")] {
        let with = |vectors, rx, tx| {
            let c = NameContext { vectors, rx_queues: Some(rx), tx_queues: Some(tx), ..ctx(driver) };
            classify(name, &c)
        };
        assert!(matches!(with(Some(9), 8, 8), NameMatch::Queues { .. }), "{driver}: eight and one for the link");
        assert_eq!(with(Some(9), 16, 16), Unknown, "{driver}");
        assert_eq!(with(Some(9), 8, 16), Unknown, "{driver}");
        assert!(matches!(with(None, 16, 16), NameMatch::Queues { .. }), "{driver}: how many there are is not known");
    }
    // igb names the queue itself.
    let c = NameContext { vectors: Some(3), rx_queues: Some(4), tx_queues: Some(4), ..ctx("igb") };
    assert!(matches!(classify("eth1-TxRx-2", &c), NameMatch::Queues { .. }));
}

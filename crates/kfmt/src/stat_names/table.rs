//! The forms, as data. `{n}` is the number of the queue. Each row is taken from the source code of its driver.

use QueueCounter::{AllocFail, Bytes, Drops, Packets};
use ringwise_model::Dir::{self, Rx, Tx};
use ringwise_model::QueueCounter;

pub(super) type List = &'static [(&'static str, Dir, QueueCounter)];

/// How a driver names the counters of its queues.
#[derive(Debug, Clone, Copy)]
pub(super) enum Names {
    /// Each name contains the number.
    Each(List),
    /// A headline contains the number for the names below it.
    Blocks(List),
}

/// The forms of one or several drivers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// As `device/driver` names them.
    pub drivers: &'static [&'static str],
    /// The names it uses.
    pub names: Names,
}

/// Queues by direction and number, the form of most Intel drivers and some others.
const BY_DIRECTION: List = &[
    ("rx_queue_{n}_packets", Rx, Packets),
    ("rx_queue_{n}_bytes", Rx, Bytes),
    ("rx_queue_{n}_drops", Rx, Drops),
    ("rx_queue_{n}_alloc_failed", Rx, AllocFail),
    ("tx_queue_{n}_packets", Tx, Packets),
    ("tx_queue_{n}_bytes", Tx, Bytes),
];

/// ena_ethtool.c: what the provider held back for the whole device, by names with these endings.
pub(super) const ALLOWANCES: (&[&str], &str) = (&["ena"], "_allowance_exceeded");

/// Frames and bytes, the form of Cavium's and Marvell's RVU drivers.
const FRAMES: List = &[
    ("rxq{n}: frames", Rx, Packets),
    ("rxq{n}: bytes", Rx, Bytes),
    ("txq{n}: frames", Tx, Packets),
    ("txq{n}: bytes", Tx, Bytes),
];

/// Drivers of stmmac: the platform or PCI driver of the chip is the device's, `st_gmac` is what ethtool calls all of them.
const STMMAC: &[&str] = &[
    "st_gmac",
    "stmmaceth",
    "intel-eth-pci",
    "dwmac-loongson-pci",
    "dwmac-sun8i",
    "imx-dwmac",
    "qcom-ethqos",
    "rk_gmac-dwmac",
    "socfpga-dwmac",
    "starfive-dwmac",
];

/// The table. `rx_queue_N_drops` of igb and igc counts packets that the NIC dropped because it had no descriptors.
///
/// These drivers are not in it, because no name in their list belongs to one queue: tg3 (tg3.c, `ethtool_stats_keys`),
/// cxgb4 (cxgb4_ethtool.c, `get_strings`: `collect_sge_port_stats` adds the queues up). The names of enic
/// (enic_ethtool.c, `enic_per_rq_stats`) do not include packets or bytes, which it reports in qstats.
pub(super) const FORMS: &[Form] = &[
    // igb_ethtool.c, igc_ethtool.c, lab/mqnic/ethtool.c; without drops: ixgbe_ethtool.c, ixgbevf/ethtool.c,
    // ice_ethtool.c, fm10k_ethtool.c (fm10k_gstrings_queue_stats), netvsc_drv.c (hv_netvsc), libwx/wx_ethtool.c
    // (wx_get_strings: ngbe, txgbe)
    Form {
        drivers: &["igb", "igc", "ixgbe", "ixgbevf", "ice", "fm10k", "hv_netvsc", "ngbe", "txgbe", "mqnic"],
        names: Names::Each(BY_DIRECTION),
    },
    // virtio_net.c: the first form until 6.8; the second since then, without the counters that qstats has.
    Form { drivers: &["virtio_net"], names: Names::Each(BY_DIRECTION) },
    Form {
        drivers: &["virtio_net"],
        names: Names::Each(&[
            ("rx{n}_packets", Rx, Packets),
            ("rx{n}_bytes", Rx, Bytes),
            ("rx{n}_drops", Rx, Drops),
            ("tx{n}_packets", Tx, Packets),
            ("tx{n}_bytes", Tx, Bytes),
        ]),
    },
    // i40e_ethtool.c, iavf_ethtool.c: "%s-%u.packets"
    Form {
        drivers: &["i40e", "iavf"],
        names: Names::Each(&[
            ("rx-{n}.packets", Rx, Packets),
            ("rx-{n}.bytes", Rx, Bytes),
            ("tx-{n}.packets", Tx, Packets),
            ("tx-{n}.bytes", Tx, Bytes),
        ]),
    },
    // mlx5 en_stats.c: dropped packets of a queue are counted only for the whole device (rx_out_of_buffer).
    Form {
        drivers: &["mlx5_core"],
        names: Names::Each(&[
            ("rx{n}_packets", Rx, Packets),
            ("rx{n}_bytes", Rx, Bytes),
            ("rx{n}_buff_alloc_err", Rx, AllocFail),
            ("tx{n}_packets", Tx, Packets),
            ("tx{n}_bytes", Tx, Bytes),
        ]),
    },
    // mlx4 en_ethtool.c
    Form {
        drivers: &["mlx4_en", "mlx4_core"],
        names: Names::Each(&[
            ("rx{n}_packets", Rx, Packets),
            ("rx{n}_bytes", Rx, Bytes),
            ("rx{n}_dropped", Rx, Drops),
            ("tx{n}_packets", Tx, Packets),
            ("tx{n}_bytes", Tx, Bytes),
        ]),
    },
    // ena_ethtool.c: queue_N_{tx,rx}_NAME with cnt, bytes; xdp_tx queues do not belong to the network stack.
    Form {
        drivers: &["ena"],
        names: Names::Each(&[
            ("queue_{n}_rx_cnt", Rx, Packets),
            ("queue_{n}_rx_bytes", Rx, Bytes),
            ("queue_{n}_tx_cnt", Tx, Packets),
            ("queue_{n}_tx_bytes", Tx, Bytes),
        ]),
    },
    // gve_ethtool.c counts descriptors of a queue instead of packets.
    Form {
        drivers: &["gve", "gvnic"],
        names: Names::Each(&[
            ("rx_bytes[{n}]", Rx, Bytes),
            ("rx_queue_drop_cnt[{n}]", Rx, Drops),
            ("rx_dropped_pkt[{n}]", Rx, Drops),
            ("tx_bytes[{n}]", Tx, Bytes),
        ]),
    },
    // bnxt_ethtool.c: "[%d]: %s"; rx_drops before 5.5, rx_errors since.
    Form {
        drivers: &["bnxt_en"],
        names: Names::Each(&[
            ("[{n}]: rx_ucast_packets", Rx, Packets),
            ("[{n}]: rx_mcast_packets", Rx, Packets),
            ("[{n}]: rx_bcast_packets", Rx, Packets),
            ("[{n}]: rx_ucast_bytes", Rx, Bytes),
            ("[{n}]: rx_mcast_bytes", Rx, Bytes),
            ("[{n}]: rx_bcast_bytes", Rx, Bytes),
            ("[{n}]: rx_discards", Rx, Drops),
            ("[{n}]: tx_ucast_packets", Tx, Packets),
            ("[{n}]: tx_mcast_packets", Tx, Packets),
            ("[{n}]: tx_bcast_packets", Tx, Packets),
            ("[{n}]: tx_ucast_bytes", Tx, Bytes),
            ("[{n}]: tx_mcast_bytes", Tx, Bytes),
            ("[{n}]: tx_bcast_bytes", Tx, Bytes),
        ]),
    },
    // veth.c: receive queues count only what goes through NAPI (XDP, or generic receive offload switched on).
    Form {
        drivers: &["veth"],
        names: Names::Each(&[
            ("rx_queue_{n}_xdp_packets", Rx, Packets),
            ("rx_queue_{n}_xdp_bytes", Rx, Bytes),
            ("rx_queue_{n}_drops", Rx, Drops),
        ]),
    },
    // ibmveth.c, ibmvnic.c
    Form {
        drivers: &["ibmveth", "ibmvnic"],
        names: Names::Each(&[
            ("rx{n}_packets", Rx, Packets),
            ("rx{n}_bytes", Rx, Bytes),
            ("tx{n}_packets", Tx, Packets),
            ("tx{n}_bytes", Tx, Bytes),
        ]),
    },
    // idpf_ethtool.c, __idpf_add_qstat_strings: also for queues up to the maximum
    Form {
        drivers: &["idpf"],
        names: Names::Each(&[
            ("rx_q-{n}_pkts", Rx, Packets),
            ("rx_q-{n}_bytes", Rx, Bytes),
            ("tx_q-{n}_pkts", Tx, Packets),
            ("tx_q-{n}_bytes", Tx, Bytes),
        ]),
    },
    // bnx2x_ethtool.c, bnx2x_q_stats_arr: instead of a number, the storage queue has the name "fcoe".
    Form {
        drivers: &["bnx2x"],
        names: Names::Each(&[
            ("[{n}]: rx_ucast_packets", Rx, Packets),
            ("[{n}]: rx_mcast_packets", Rx, Packets),
            ("[{n}]: rx_bcast_packets", Rx, Packets),
            ("[{n}]: rx_bytes", Rx, Bytes),
            ("[{n}]: rx_discards", Rx, Drops),
            ("[{n}]: rx_skb_alloc_discard", Rx, AllocFail),
            ("[{n}]: tx_ucast_packets", Tx, Packets),
            ("[{n}]: tx_mcast_packets", Tx, Packets),
            ("[{n}]: tx_bcast_packets", Tx, Packets),
            ("[{n}]: tx_bytes", Tx, Bytes),
        ]),
    },
    // qede_ethtool.c, qede_get_strings_stats_rxq and _txq: "%d_%d" is the queue and its class of service. Queues of
    // further classes have other numbers in the kernel (QEDE_TXQ_TO_NDEV_TXQ_ID in qede.h).
    Form {
        drivers: &["qede"],
        names: Names::Each(&[
            ("{n}: rcv_pkts", Rx, Packets),
            ("{n}: rx_alloc_errors", Rx, AllocFail),
            ("{n}_0: xmit_pkts", Tx, Packets),
        ]),
    },
    // sfc/ethtool_common.c, efx_describe_per_queue_stats, and the same in sfc/falcon and sfc/siena: no bytes;
    // tx-xdp-cpu queues do not belong to the network stack.
    Form {
        drivers: &["sfc", "sfc_ef100", "sfc_falcon", "sfc_siena"],
        names: Names::Each(&[("rx-{n}.rx_packets", Rx, Packets), ("tx-{n}.tx_packets", Tx, Packets)]),
    },
    // hns3_ethtool.c, hns3_get_strings_tqps: rxqN_dropped counts errors of the driver, not of the NIC.
    // amd-xgbe differs by an underscore (xgbe-ethtool.c, xgbe_get_strings).
    Form {
        drivers: &["hns3"],
        names: Names::Each(&[
            ("rxq{n}_packets", Rx, Packets),
            ("rxq{n}_bytes", Rx, Bytes),
            ("txq{n}_packets", Tx, Packets),
            ("txq{n}_bytes", Tx, Bytes),
        ]),
    },
    Form {
        drivers: &["amd-xgbe"],
        names: Names::Each(&[
            ("rxq_{n}_packets", Rx, Packets),
            ("rxq_{n}_bytes", Rx, Bytes),
            ("txq_{n}_packets", Tx, Packets),
            ("txq_{n}_bytes", Tx, Bytes),
        ]),
    },
    // hinic_ethtool.c, hinic_rx_queue_stats and hinic_tx_queue_stats
    Form {
        drivers: &["hinic"],
        names: Names::Each(&[
            ("rxq{n}_pkts", Rx, Packets),
            ("rxq{n}_bytes", Rx, Bytes),
            ("txq{n}_pkts", Tx, Packets),
            ("txq{n}_bytes", Tx, Bytes),
        ]),
    },
    // be_ethtool.c, be_get_stat_strings: rx_drops_no_frags are packets without a posted buffer, rx_post_fail are pages
    // that could not be allocated.
    Form {
        drivers: &["be2net"],
        names: Names::Each(&[
            ("rxq{n}: rx_pkts", Rx, Packets),
            ("rxq{n}: rx_bytes", Rx, Bytes),
            ("rxq{n}: rx_drops_no_frags", Rx, Drops),
            ("rxq{n}: rx_post_fail", Rx, AllocFail),
            ("txq{n}: tx_pkts", Tx, Packets),
            ("txq{n}: tx_bytes", Tx, Bytes),
        ]),
    },
    // otx2_ethtool.c, otx2_get_qset_strings (octeontx2; txq_qosN queues belong to HTB classes); nicvf_ethtool.c,
    // nicvf_get_qset_strings (ThunderX)
    Form { drivers: &["rvu_nicpf", "rvu_nicvf", "rvu-nicpf", "rvu-nicvf", "nicvf"], names: Names::Each(FRAMES) },
    // octep_ethtool.c, octep_vf_ethtool.c
    Form {
        drivers: &["octeon_ep", "octeon_ep_vf"],
        names: Names::Each(&[
            ("rx_packets[Q-{n}]", Rx, Packets),
            ("rx_bytes[Q-{n}]", Rx, Bytes),
            ("rx_alloc_errors[Q-{n}]", Rx, AllocFail),
            ("tx_packets_completed[Q-{n}]", Tx, Packets),
            ("tx_bytes[Q-{n}]", Tx, Bytes),
        ]),
    },
    // nfp_net_ethtool.c, nfp_vnic_get_sw_stats_strings: by vector, whose number is that of its queues; no bytes
    Form {
        drivers: &["nfp", "nfp_netvf"],
        names: Names::Each(&[("rvec_{n}_rx_pkts", Rx, Packets), ("rvec_{n}_tx_pkts", Tx, Packets)]),
    },
    // ionic_stats.c, ionic_sw_stats_get_rx_strings and _tx_strings
    Form {
        drivers: &["ionic"],
        names: Names::Each(&[
            ("rx_{n}_pkts", Rx, Packets),
            ("rx_{n}_bytes", Rx, Bytes),
            ("rx_{n}_alloc_err", Rx, AllocFail),
            ("tx_{n}_pkts", Tx, Packets),
            ("tx_{n}_bytes", Tx, Bytes),
        ]),
    },
    // mana_ethtool.c, mana_get_strings; tsnep_ethtool.c, tsnep_rx_queue_stats_strings
    Form {
        drivers: &["mana", "tsnep"],
        names: Names::Each(&[
            ("rx_{n}_packets", Rx, Packets),
            ("rx_{n}_bytes", Rx, Bytes),
            ("rx_{n}_alloc_failed", Rx, AllocFail),
            ("tx_{n}_packets", Tx, Packets),
            ("tx_{n}_bytes", Tx, Bytes),
        ]),
    },
    // funeth_ethtool.c, fun_get_strings: names without a number are sums of all queues.
    Form {
        drivers: &["funeth"],
        names: Names::Each(&[
            ("rx_pkts[{n}]", Rx, Packets),
            ("rx_bytes[{n}]", Rx, Bytes),
            ("tx_pkts[{n}]", Tx, Packets),
            ("tx_bytes[{n}]", Tx, Bytes),
        ]),
    },
    // stmmac_ethtool.c, stmmac_get_qstats_string: no bytes
    Form { drivers: STMMAC, names: Names::Each(&[("q{n}_rx_pkt_n", Rx, Packets), ("q{n}_tx_pkt_n", Tx, Packets)]) },
    // atlantic/aq_ethtool.c, aq_ethtool_queue_rx_stat_names: no bytes. With several traffic classes each name starts with
    // "TC%u ", and is not matched.
    Form {
        drivers: &["atlantic"],
        names: Names::Each(&[
            ("Queue[{n}] InPackets", Rx, Packets),
            ("Queue[{n}] AllocFails", Rx, AllocFail),
            ("Queue[{n}] OutPackets", Tx, Packets),
        ]),
    },
    // enetc_ethtool.c, rx_ring_stats and tx_ring_stats: "%2d" puts a space before a number below 10. No bytes.
    Form {
        drivers: &["fsl_enetc", "fsl_enetc_vf"],
        names: Names::Each(&[
            ("Rx ring  {n} frames", Rx, Packets),
            ("Rx ring {n} frames", Rx, Packets),
            ("Rx ring  {n} alloc errors", Rx, AllocFail),
            ("Rx ring {n} alloc errors", Rx, AllocFail),
            ("Tx ring  {n} frames", Tx, Packets),
            ("Tx ring {n} frames", Tx, Packets),
        ]),
    },
    // vmxnet3_ethtool.c: counters of the device; LRO packets are included in the unicast ones.
    Form {
        drivers: &["vmxnet3"],
        names: Names::Blocks(&[
            ("ucast pkts rx", Rx, Packets),
            ("mcast pkts rx", Rx, Packets),
            ("bcast pkts rx", Rx, Packets),
            ("ucast bytes rx", Rx, Bytes),
            ("mcast bytes rx", Rx, Bytes),
            ("bcast bytes rx", Rx, Bytes),
            ("pkts rx OOB", Rx, Drops),
            ("ucast pkts tx", Tx, Packets),
            ("mcast pkts tx", Tx, Packets),
            ("bcast pkts tx", Tx, Packets),
            ("ucast bytes tx", Tx, Bytes),
            ("mcast bytes tx", Tx, Bytes),
            ("bcast bytes tx", Tx, Bytes),
        ]),
    },
];

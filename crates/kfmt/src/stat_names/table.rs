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

/// The table. `rx_queue_N_drops` of igb and igc counts packets that the NIC dropped because it had no descriptors.
pub(super) const FORMS: &[Form] = &[
    // igb_ethtool.c, igc_ethtool.c, ixgbe_ethtool.c (no drops), ice_ethtool.c (no drops), netvsc_drv.c (hv_netvsc,
    // no drops), lab/mqnic/ethtool.c
    Form { drivers: &["igb", "igc", "ixgbe", "ice", "hv_netvsc", "mqnic"], names: Names::Each(BY_DIRECTION) },
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

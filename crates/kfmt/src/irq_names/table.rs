//! The forms, as data. `{if}` interface name, `{if14}` its first 14 bytes, `{bdf}` bus address,
//! `{virtio}` the virtio device's name, `{vif}` Xen's name of the virtual interface, `{n}` a number,
//! `{m}` another one (the last of a range, or of no interest), `{*}` any rest.
//!
//! Each row has a source: the file in Linux (below `drivers/net/ethernet/` unless it begins with `drivers/`) with the
//! function that makes the name, another tool, or a public capture and where it is. A form without a source is not in
//! the table, and its vectors stay unknown. r8125 is missing intentionally: the vendor's driver names its vectors `eth0-0`, `eth0-1`, and
//! so on, and not all of them serve queues.

use Serves::{
    All, AllIfOnly, AllIfSole, Control, GveBlock, NumberedFromOne, Pair, PairIfEqual, Range, Ranked, Rx, SomeQueue, Tx,
    Unused,
};

/// One form of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// As `device/driver` names them.
    pub drivers: &'static [&'static str],
    /// The name with placeholders: `{if}-rx-{n}`.
    pub shape: &'static str,
    /// What a vector with such a name serves.
    pub serves: Serves,
    /// The source of the form.
    pub source: &'static str,
    /// The form has the same meaning in every driver that uses it, so it is good for drivers that are not in the table.
    pub shared: bool,
}

/// What a vector of a form serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// Receive and transmit queue `n`.
    Pair,
    /// The same if the device has as many receive as transmit queues; otherwise unknown.
    PairIfEqual,
    /// Receive queue `n`.
    Rx,
    /// Transmit queue `n`.
    Tx,
    /// Receive and transmit queues `n` to `m`, both included.
    Range,
    /// Every queue of the device.
    All,
    /// Every queue if it is the device's only vector, otherwise control.
    AllIfOnly,
    /// Every queue if it is the device's only vector, otherwise unknown: the driver gives several vectors this name.
    AllIfSole,
    /// Notification block of gve.
    GveBlock,
    /// Queue `n` - 1, because vector 0 is for link events; it may serve transmit queue 0 as well.
    NumberedFromOne(QueueDirection),
    /// The number is not that of the queue, but grows with it.
    Ranked(QueueDirection, RankScope),
    /// A queue, but the number is not that of the queue.
    SomeQueue,
    /// Link events, mailbox, commands: not a queue.
    Control,
    /// A vector that the driver requested and does not use for traffic.
    Unused,
}

/// Whether a vector serves a receive queue, a transmit queue or the pair of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueDirection {
    /// Both queues of the same number.
    Both,
    /// Receive only.
    Rx,
    /// Transmit only.
    Tx,
}

/// Which names are ranked together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankScope {
    /// Those of all ranked forms of the driver, which share one counter.
    Driver,
    /// Those of the same form.
    Form,
}

type Drivers = &'static [&'static str];

const fn own(drivers: Drivers, shape: &'static str, serves: Serves, source: &'static str) -> Pattern {
    Pattern { drivers, shape, serves, source, shared: false }
}

const fn shared(drivers: Drivers, shape: &'static str, serves: Serves, source: &'static str) -> Pattern {
    Pattern { drivers, shape, serves, source, shared: true }
}

/// The number in the name of a queue vector counts vectors, not queues (the functions of `INTEL_1G_SOURCE` for ixgbe,
/// `IXGBEVF`, `FM10K`, `IAVF` and `I40EVF`).
pub(super) const NUMBER_VECTORS: Drivers = &["ixgbe", "ixgbevf", "fm10k", "iavf", "i40evf"];

const INTEL_1G: Drivers = &["igb", "ixgbe"];
const INTEL_1G_SOURCE: &str = "intel/igb/igb_main.c igb_request_msix, intel/ixgbe/ixgbe_main.c ixgbe_request_msix_irqs";
const IGBVF: &str = "intel/igbvf/netdev.c igbvf_request_msix";
const IGC: &str = "intel/igc/igc_main.c igc_request_msix";
const IXGBEVF: &str = "intel/ixgbevf/ixgbevf_main.c ixgbevf_request_msix_irqs";
const FM10K: &str = "intel/fm10k/fm10k_pci.c fm10k_qv_request_irq";
const I40E: &str = "intel/i40e/i40e_main.c i40e_vsi_request_irq_msix";
const ICE: &str = "intel/ice/ice_main.c ice_vsi_req_irq_msix";
const IAVF: &str = "intel/iavf/iavf_main.c iavf_request_traffic_irqs";
const I40EVF: &str = "intel/i40evf/i40evf_main.c i40evf_request_traffic_irqs";
const IDPF: &str = "intel/idpf/idpf_txrx.c idpf_vport_intr_req_irq";
const E1000E: &str = "intel/e1000e/netdev.c e1000_request_msix";
const MLX5: Drivers = &["mlx5_core"];
const MLX5_IRQ: &str = "mellanox/mlx5/core/pci_irq.c irq_set_name";
const MLX5_EQ: &str = "mellanox/mlx5/core/eq.c mlx5_start_eqs, create_async_eqs in older kernels";
const MLX4: Drivers = &["mlx4_core", "mlx4_en"];
const MLX4_EQ: &str = "mellanox/mlx4/eq.c mlx4_init_eq_table";
const BNXT: Drivers = &["bnxt_en"];
const BNXT_NET: &str = "broadcom/bnxt/bnxt.c bnxt_setup_msix";
const BNXT_RE: &str =
    "drivers/infiniband/hw/bnxt_re/qplib_fp.c bnxt_qplib_nq_start_irq, qplib_rcfw.c bnxt_qplib_rcfw_start_irq";
const BNX2X: &str = "broadcom/bnx2x/bnx2x_cmn.c bnx2x_req_msix_irqs, bnx2x_req_irq";
const QEDE: &str = "qlogic/qede/qede_main.c qede_init_fp, qede_alloc_fp_array";
const TG3: Drivers = &["tg3"];
const TG3_SOURCE: &str = "broadcom/tg3.c tg3_request_irq, tg3_enable_msix";
const BNA: &str = "brocade/bna/bnad.c bnad_tx_msix_register, bnad_rx_msix_register";
const VIRTIO: &str = "drivers/virtio/virtio_pci_common.c vp_request_msix_vectors, vp_find_vqs_msix";
const VMXNET3: &str = "drivers/net/vmxnet3/vmxnet3_drv.c vmxnet3_request_irqs";
const GVE: &str = "google/gve/gve_main.c gve_alloc_notify_blocks";
const GVE_OLD: &str =
    "gve_alloc_notify_blocks until 2023, capture: GoogleCloudPlatform/compute-virtual-ethernet-linux issue 30";
const MANA: &str = "microsoft/mana/gdma_main.c mana_gd_setup_irqs, capture: netdev list, March 2024";
const XEN: Drivers = &["xen-netfront", "vif"];
const XEN_SOURCE: &str = "drivers/net/xen-netfront.c xennet_init_queue, setup_netfront_split, setup_netfront_single";
const SFC: &str = "sfc/efx_channels.c efx_get_channel_name";
const CXGB4: &str = "chelsio/cxgb4/cxgb4_main.c name_msix_vecs";
const NFP: &str = "netronome/nfp/nfp_net_common.c nfp_net_prepare_vector, nfp_net_open_alloc_all";
const OTX2: &str = "marvell/octeontx2/nic/otx2_pf.c otx2_open";
const NICVF: &str = "cavium/thunder/nicvf_main.c nicvf_register_interrupts";
const HNS3: &str = "hisilicon/hns3/hns3_enet.c hns3_nic_init_irq";
const HCLGE: &str = "hisilicon/hns3/hns3pf/hclge_main.c hclge_misc_irq_init, hns3vf/hclgevf_main.c";
const HINIC: &str = "huawei/hinic/hinic_rx.c hinic_init_rxq, hinic_tx.c hinic_init_txq";
const IONIC: &str = "pensando/ionic/ionic_lif.c ionic_request_irq, ionic_dev.c ionic_q_init";
const BE2NET: &str = "emulex/benet/be_main.c be_msix_register";
const ENIC: &str = "cisco/enic/enic_main.c enic_request_intr";
const STMMAC: Drivers = &[
    "stmmac",
    "stmmaceth",
    "st_gmac",
    "dwmac-intel",
    "intel-eth-pci",
    "dwmac-loongson-pci",
    "dwmac-sun8i",
    "imx-dwmac",
    "meson8b-dwmac",
    "qcom-ethqos",
    "rk_gmac-dwmac",
    "socfpga-dwmac",
    "sophgo-dwmac",
    "spacemit-dwmac",
    "starfive-dwmac",
    "stm32-dwmac",
    "tegra-mgbe",
];
const STMMAC_SOURCE: &str = "stmicro/stmmac/stmmac_main.c stmmac_request_irq_multi_msi, stmmac_request_irq_single";
const ALX: &str = "atheros/alx/main.c alx_request_msix, alx_request_irq";
const BNX2: &str = "broadcom/bnx2.c bnx2_enable_msix, bnx2_setup_int_mode";
const CXGB4VF: &str = "chelsio/cxgb4vf/cxgb4vf_main.c name_msix_vecs";
const HINIC3: &str = "huawei/hinic3/hinic3_irq.c hinic3_qps_irq_init";
const OCTEP: &str = "marvell/octeon_ep/octep_main.c octep_request_irqs";
const WANGXUN: &str = "wangxun/ngbe/ngbe_main.c ngbe_request_msix_irqs, txgbe/txgbe_irq.c txgbe_request_queue_irqs";
const AM65: &str = "ti/am65-cpsw-nuss.c am65_cpsw_nuss_init_tx_chns, am65_cpsw_nuss_init_rx_chns";
const LAB: &str = "lab: the test device's own driver";

/// The table. If two forms match, the first counts.
pub const PATTERNS: &[Pattern] = &[
    // The vector named like the device is for link events, unless it is the only one.
    shared(INTEL_1G, "{if}-TxRx-{n}", Pair, INTEL_1G_SOURCE),
    shared(INTEL_1G, "{if}-rx-{n}", Rx, INTEL_1G_SOURCE),
    shared(INTEL_1G, "{if}-tx-{n}", Tx, INTEL_1G_SOURCE),
    shared(INTEL_1G, "{if}-unused", Unused, INTEL_1G_SOURCE),
    own(INTEL_1G, "{if}", AllIfOnly, INTEL_1G_SOURCE),
    own(&["igbvf"], "{if}-rx-{n}", Rx, IGBVF),
    own(&["igbvf"], "{if}-tx-{n}", Tx, IGBVF),
    own(&["igbvf"], "{if}", AllIfOnly, IGBVF),
    own(&["igc"], "{if}-TxRx-{n}", Pair, IGC),
    own(&["igc"], "{if}-rx-{n}", Rx, IGC),
    own(&["igc"], "{if}-tx-{n}", Tx, IGC),
    own(&["igc"], "{if}-unused", Unused, IGC),
    own(&["igc"], "{if}", AllIfOnly, IGC),
    own(&["ixgbevf"], "{if}-TxRx-{n}", Pair, IXGBEVF),
    own(&["ixgbevf"], "{if}-rx-{n}", Rx, IXGBEVF),
    own(&["ixgbevf"], "{if}-tx-{n}", Tx, IXGBEVF),
    own(&["ixgbevf"], "{if}", AllIfOnly, IXGBEVF),
    own(&["fm10k"], "{if}-TxRx-{n}", Pair, FM10K),
    own(&["fm10k"], "{if}-rx-{n}", Rx, FM10K),
    own(&["fm10k"], "{if}-tx-{n}", Tx, FM10K),
    own(&["fm10k"], "{if}", AllIfOnly, "intel/fm10k/fm10k_pci.c fm10k_mbx_request_irq"),
    // The number is the NAPI instance's. With as many instances as queues of both directions, those of
    // the transmit queues come first (fbnic_alloc_napi_vectors).
    own(&["fbnic"], "{if}-TxRx-{n}", SomeQueue, "meta/fbnic/fbnic_irq.c fbnic_napi_name_irqs"),
    // The vector of the flow director also ends in TxRx-0, with the bus address before it.
    own(&["i40e"], "i40e-{if}-TxRx-{n}", Pair, I40E),
    own(&["i40e"], "i40e-{if}-rx-{n}", Rx, I40E),
    own(&["i40e"], "i40e-{if}-tx-{n}", Tx, I40E),
    own(&["i40e"], "i40e-{bdf}:{*}", Control, I40E),
    // N-M are the first and last receive ring of a vector that serves several; its transmit rings are
    // as many, counted from the same number.
    own(&["ice"], "ice-{if}-TxRx-{n}-{m}", Range, ICE),
    own(&["ice"], "ice-{if}-TxRx-{n}", Pair, ICE),
    own(&["ice"], "ice-{if}-rx-{n}", Rx, ICE),
    own(&["ice"], "ice-{if}-tx-{n}", Tx, ICE),
    own(&["ice"], "ice-{bdf}:{*}", Control, ICE),
    own(&["ice"], "ice-{bdf}-clk{*}", Control, ICE),
    own(
        &["i40e", "ice"],
        "irdma-{*}",
        Control,
        "drivers/infiniband/hw/irdma/hw.c irdma_cfg_ceq_vector, irdma_cfg_aeq_vector",
    ),
    own(&["iavf"], "iavf-{if}-TxRx-{n}", Pair, IAVF),
    own(&["iavf"], "iavf-{if}-rx-{n}", Rx, IAVF),
    own(&["iavf"], "iavf-{if}-tx-{n}", Tx, IAVF),
    own(&["iavf"], "iavf-{bdf}:mbx", Control, "intel/iavf/iavf_main.c iavf_request_misc_irq"),
    // The name of iavf until 2018.
    own(&["i40evf"], "i40evf-{if}-TxRx-{n}", Pair, I40EVF),
    own(&["i40evf"], "i40evf-{if}-rx-{n}", Rx, I40EVF),
    own(&["i40evf"], "i40evf-{if}-tx-{n}", Tx, I40EVF),
    own(&["i40evf"], "i40evf-{bdf}:mbx", Control, "intel/i40evf/i40evf_main.c i40evf_request_misc_irq"),
    // The index in the device's MSI-X table, where the mailbox is 0 and other users leave gaps (TxRx-1,
    // TxRx-3, TxRx-4, Tx-5 for queues 0 to 3). Since "idpf: change IRQ naming to match netdev and ethtool
    // queue numbering" (2026, in 6.12.y from March on) it is the number of the queue. The rank is right for both.
    own(&["idpf"], "idpf-{if}-TxRx-{n}", Ranked(QueueDirection::Both, RankScope::Driver), IDPF),
    own(&["idpf"], "idpf-{if}-Rx-{n}", Ranked(QueueDirection::Rx, RankScope::Driver), IDPF),
    own(&["idpf"], "idpf-{if}-Tx-{n}", Ranked(QueueDirection::Tx, RankScope::Driver), IDPF),
    own(&["idpf"], "idpf-Mailbox-{n}", Control, "intel/idpf/idpf_lib.c idpf_mb_intr_req_irq"),
    // e1000e cuts the name so that the ending fits.
    own(&["e1000e"], "{if14}-rx-{n}", Rx, E1000E),
    own(&["e1000e"], "{if14}-tx-{n}", Tx, E1000E),
    own(&["e1000e"], "{if}", AllIfOnly, E1000E),
    // Vectors of sub-functions come from a pool that several functions share. Names are truncated to 31 bytes.
    own(MLX5, "mlx5_comp{n}@pci:{bdf}", Pair, MLX5_IRQ),
    own(MLX5, "mlx5_combined{n}@pci:{bdf}", All, MLX5_IRQ),
    own(MLX5, "mlx5_combined{n}", All, MLX5_IRQ),
    own(MLX5, "mlx5_sf_comp{n}@pci:{bdf}", SomeQueue, MLX5_IRQ),
    own(MLX5, "mlx5_async{n}@pci:{bdf}", Control, MLX5_IRQ),
    own(MLX5, "mlx5_async@pci:{bdf}", Control, "mellanox/mlx5/core/pci_irq.c irq_set_name until 2021"),
    own(MLX5, "mlx5_sf_ctrl{n}@pci:{bdf}", Control, MLX5_IRQ),
    own(MLX5, "mlx5_async_eq@pci:{bdf}", Control, MLX5_EQ),
    own(MLX5, "mlx5_cmd_eq@pci:{bdf}", Control, MLX5_EQ),
    own(MLX5, "mlx5_pages_eq@pci:{bdf}", Control, MLX5_EQ),
    own(MLX5, "mlx5_page_fault_eq@{*}", Control, MLX5_EQ),
    own(MLX5, "{if}-{n}", Pair, "vendor's driver (MLNX_OFED): mellanox/mlx5/core/main.c mlx5_rename_comp_eq"),
    own(MLX4, "{if}-{n}", Pair, "kubewharf/katalyst-core, strizhechenko/netutils-linux issue 217"),
    // The number counts event queues, from which each port takes some: not a queue number.
    own(MLX4, "mlx4-{n}@pci:{bdf}", SomeQueue, MLX4_EQ),
    own(MLX4, "mlx4-comp-{n}@pci:{bdf}", SomeQueue, MLX4_EQ),
    own(MLX4, "mlx4-{n}@{bdf}", SomeQueue, "scylladb/seastar scripts/perftune.py"),
    own(MLX4, "mlx4-async@{*}", Control, MLX4_EQ),
    own(BNXT, "{if}-TxRx-{n}", Pair, BNXT_NET),
    own(BNXT, "{if}-rx-{n}", Rx, BNXT_NET),
    own(BNXT, "{if}-tx-{n}", Tx, BNXT_NET),
    own(BNXT, "bnxt_re-nq-{n}@pci:{bdf}", Control, BNXT_RE),
    own(BNXT, "bnxt_re-creq@pci:{bdf}", Control, BNXT_RE),
    own(BNXT, "bnxt_qplib_nq-{n}", Control, BNXT_RE),
    own(BNXT, "bnxt_qplib_creq", Control, BNXT_RE),
    own(&["bnx2x"], "{if}-fp-{n}", Pair, BNX2X),
    own(&["bnx2x"], "{if}", AllIfOnly, BNX2X),
    // The number is the fastpath's: those that only receive come first, then pairs, then those that only transmit.
    own(&["qede"], "{if}-fp-{n}", PairIfEqual, QEDE),
    own(&["qede"], "sp-{n}-{*}", Control, "qlogic/qed/qed_main.c qed_slowpath_irq_req"),
    // With several vectors the first is for link events; without TSS it also serves transmit queue 0.
    own(TG3, "{if}-txrx-{n}", NumberedFromOne(QueueDirection::Both), TG3_SOURCE),
    own(TG3, "{if}-rx-{n}", NumberedFromOne(QueueDirection::Rx), TG3_SOURCE),
    own(TG3, "{if}-tx-{n}", NumberedFromOne(QueueDirection::Tx), TG3_SOURCE),
    // Vector 0 with TSS is for link events; older kernels named every vector so.
    own(TG3, "{if}-{n}", SomeQueue, TG3_SOURCE),
    own(TG3, "{if}", AllIfSole, TG3_SOURCE),
    own(&["bnx2"], "{if}-{n}", Pair, BNX2),
    own(&["bnx2"], "{if}", AllIfSole, BNX2),
    own(&["bna"], "{if} CQ {n}", Rx, BNA),
    own(&["bna"], "{if} TXQ {n}", Tx, BNA),
    shared(&["ena"], "{if}-Tx-Rx-{n}", Pair, "amazon/ena/ena_netdev.c ena_setup_io_intr"),
    own(&["ena"], "ena-mgmnt@pci:{bdf}", Control, "amazon/ena/ena_netdev.c ena_setup_mgmnt_intr"),
    // No interface name. One vector for all queues if there are too few.
    shared(&["virtio_net"], "{virtio}-input.{n}", Rx, VIRTIO),
    shared(&["virtio_net"], "{virtio}-output.{n}", Tx, VIRTIO),
    shared(&["virtio_net"], "{virtio}-config", Control, VIRTIO),
    shared(&["virtio_net"], "{virtio}-control", Control, VIRTIO),
    shared(&["virtio_net"], "{virtio}-virtqueues", All, VIRTIO),
    shared(&["virtio_net"], "{virtio}", All, "drivers/virtio/virtio_pci_common.c vp_find_vqs_intx"),
    shared(&["vmxnet3"], "{if}-rxtx-{n}", Pair, VMXNET3),
    // Without shared vectors the number is the vector's, and the receive queues' vectors follow those of
    // the transmit queues. One vector may serve all of the latter.
    own(&["vmxnet3"], "{if}-rx-{n}", Ranked(QueueDirection::Rx, RankScope::Form), VMXNET3),
    own(&["vmxnet3"], "{if}-tx-{n}", Ranked(QueueDirection::Tx, RankScope::Form), VMXNET3),
    own(&["vmxnet3"], "{if}-event-{n}", Control, VMXNET3),
    own(&["vmxnet3"], "{if}", AllIfOnly, VMXNET3),
    own(&["gve"], "gve-ntfy-blk{n}@pci:{bdf}", GveBlock, GVE),
    own(&["gve"], "{if}-ntfy-block.{n}", GveBlock, GVE),
    // Before the interface had its name, the driver printed the template.
    own(&["gve"], "eth%d-ntfy-block.{n}", GveBlock, GVE_OLD),
    own(&["gve"], "gve-mgmnt@pci:{bdf}", Control, GVE),
    own(&["gve"], "{if}-mgmnt", Control, GVE_OLD),
    own(&["gve"], "eth%d-mgmnt", Control, GVE_OLD),
    own(&["mana"], "mana_q{n}@pci:{bdf}", Pair, MANA),
    own(&["mana"], "mana_hwc@pci:{bdf}", Control, MANA),
    own(&["mana"], "mana_q@pci:{bdf}", SomeQueue, "microsoft/mana/gdma_main.c mana_gd_setup_irqs until 2023"),
    own(XEN, "{vif}-q{n}-rx", Rx, XEN_SOURCE),
    own(XEN, "{vif}-q{n}-tx", Tx, XEN_SOURCE),
    // In the host's back end, whose driver has the same name, tx is the guest's direction.
    own(XEN, "{if}-q{n}-rx", SomeQueue, "drivers/net/xen-netback/interface.c xenvif_connect_data"),
    own(XEN, "{if}-q{n}-tx", SomeQueue, "drivers/net/xen-netback/interface.c xenvif_connect_data"),
    // Every queue has such a vector when the back end does not split them by direction.
    own(XEN, "{if}", AllIfSole, XEN_SOURCE),
    own(&["sfc"], "{if}-{n}", Pair, SFC),
    own(&["sfc"], "{if}-rx-{n}", Rx, SFC),
    own(&["sfc"], "{if}-tx-{n}", Tx, SFC),
    own(&["sfc"], "{if}-xdp-{n}", Control, SFC),
    own(&["sfc"], "{if}-ptp", Control, "sfc/ptp.c efx_ptp_get_channel_name"),
    own(&["cxgb4"], "{if}-Rx{n}", Rx, CXGB4),
    own(&["cxgb4"], "{if}-FWeventq", Control, CXGB4),
    own(&["cxgb4"], "{if}", AllIfOnly, CXGB4),
    // Transmit queues have no vector: their buffers are freed when packets are sent. The device of the other vectors
    // is the adapter's first port.
    own(&["cxgb4vf"], "{if}-{n}", Rx, CXGB4VF),
    own(&["cxgb4vf"], "{if}-FWeventq", Control, CXGB4VF),
    own(&["nfp"], "{if}-rxtx-{n}", Pair, NFP),
    own(&["nfp"], "{if}-lsc", Control, NFP),
    own(&["nfp"], "{if}-exn", Control, NFP),
    // The ending of the other vectors names their purpose: epf_ire_rint, epf_misc_rint.
    own(&["octeon_ep"], "{if}-q{n}", Pair, OCTEP),
    own(&["octeon_ep"], "{if}-{*}", Control, OCTEP),
    own(&["rvu_nicpf", "rvu_nicvf"], "{if}-rxtx-{n}", Pair, OTX2),
    own(&["nicvf"], "{if}-rxtx-{n}", Pair, NICVF),
    own(&["nicvf"], "{if}-rbdr-{n}", Control, NICVF),
    own(&["nicvf"], "{if}-qset-err-{n}", Control, NICVF),
    // The counter of TxRx grows by two for each vector, so that the names are TxRx-0, TxRx-2, TxRx-4;
    // until 2020 they had the interface's name.
    own(&["hns3"], "hns3-{bdf}-TxRx-{n}", Ranked(QueueDirection::Both, RankScope::Form), HNS3),
    own(&["hns3"], "{if}-TxRx-{n}", Ranked(QueueDirection::Both, RankScope::Form), HNS3),
    own(&["hns3"], "hns3-{bdf}-Rx-{n}", SomeQueue, HNS3),
    own(&["hns3"], "hns3-{bdf}-Tx-{n}", SomeQueue, HNS3),
    own(&["hns3"], "{if}-Rx-{n}", SomeQueue, HNS3),
    own(&["hns3"], "{if}-Tx-{n}", SomeQueue, HNS3),
    own(&["hns3"], "hclge-misc-{bdf}", Control, HCLGE),
    own(&["hns3"], "hclgevf-misc-{bdf}", Control, HCLGE),
    own(&["hinic"], "{if}_rxq{n}", Rx, HINIC),
    own(&["hinic"], "{if}_txq{n}", Tx, HINIC),
    own(&["hinic3"], "{if}_qp{n}", Pair, HINIC3),
    // A receive vector usually serves its transmit queue too, which the name does not show.
    own(&["ionic"], "ionic-{if}-L{m}-rx{n}", Rx, IONIC),
    own(&["ionic"], "ionic-{if}-L{m}-tx{n}", Tx, IONIC),
    own(&["ionic"], "ionic-{if}-L{m}-admin{n}", Control, IONIC),
    own(&["ionic"], "ionic-{bdf}-L{m}-admin{n}", Control, IONIC),
    own(&["be2net"], "{if}-q{n}", Pair, BE2NET),
    // enic cuts the name so that the ending fits.
    own(&["enic"], "{if11}-rx-{n}", Rx, ENIC),
    own(&["enic"], "{if11}-tx-{n}", Tx, ENIC),
    own(&["enic"], "{if11}-err", Control, ENIC),
    own(&["enic"], "{if11}-notify", Control, ENIC),
    own(&["enic"], "{if}", AllIfSole, ENIC),
    own(STMMAC, "{if}:rx-{n}", Rx, STMMAC_SOURCE),
    own(STMMAC, "{if}:tx-{n}", Tx, STMMAC_SOURCE),
    own(STMMAC, "{if}:{*}", Control, STMMAC_SOURCE),
    // The vectors for wake-up and safety may have this name as well.
    own(STMMAC, "{if}", AllIfSole, STMMAC_SOURCE),
    // Several transmit queues to a vector, assigned in two ways (enetc_alloc_msix).
    own(&["fsl_enetc", "fsl_enetc_vf"], "{if}-rxtx{n}", Rx, "freescale/enetc/enetc.c enetc_setup_irqs"),
    // The number is the index in the device's MSI-X table, where the vector for other events is the first or the last.
    own(&["ngbe", "txgbe"], "{if}-TxRx-{n}", Ranked(QueueDirection::Both, RankScope::Form), WANGXUN),
    own(&["ngbe", "txgbe"], "{if}", AllIfOnly, WANGXUN),
    own(&["alx"], "{if}-TxRx-{n}", Pair, ALX),
    own(&["alx"], "{if}-rx-{n}", Rx, ALX),
    own(&["alx"], "{if}-tx-{n}", Tx, ALX),
    own(&["alx"], "{if}-unused", Unused, ALX),
    own(&["alx"], "{if}", AllIfOnly, ALX),
    // Every vector has the interface's name; forms of the vendor's driver are not known.
    own(&["atlantic"], "{if}", AllIfSole, "aquantia/atlantic/aq_nic.c aq_nic_start"),
    // One vector for everything; sky2's for both of its ports.
    own(&["sky2"], "sky2@pci:{bdf}", All, "marvell/sky2.c sky2_probe"),
    own(&["r8169"], "{if}", AllIfOnly, "realtek/r8169_main.c rtl_open"),
    own(&["e1000"], "{if}", AllIfOnly, "intel/e1000/e1000_main.c e1000_request_irq"),
    own(&["8139cp"], "{if}", AllIfOnly, "realtek/8139cp.c cp_open"),
    own(&["am65-cpsw-nuss"], "{bdf}-rx{n}", Rx, AM65),
    own(&["am65-cpsw-nuss"], "{bdf}-tx{n}", Tx, AM65),
    own(&["xsc_pci", "xsc"], "xsc_comp{n}@pci:{bdf}", Pair, "yunsilicon/xsc/pci/eq.c, kubewharf/katalyst-core"),
    own(&["mqnic"], "{if}-TxRx-{n}", Pair, LAB),
    own(&["mqnic"], "{if}-event", Control, LAB),
];

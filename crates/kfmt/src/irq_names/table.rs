//! The forms, as data. `{if}` interface name, `{if14}` its first 14 bytes, `{bdf}` bus address,
//! `{virtio}` the virtio device's name, `{n}` a number, `{m}` the last one of a range, `{*}` any rest.

use Evidence::{Excerpt, Memory, Source};
use Serves::{All, AllIfOnly, Control, GveBlock, Pair, Range, Ranked, Rx, SomeQueue, Tx, Unused};

/// One form of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// As `device/driver` names them.
    pub drivers: &'static [&'static str],
    pub shape: &'static str,
    pub serves: Serves,
    pub evidence: Evidence,
    /// Means the same in every driver that uses it: good for drivers that are not in the table.
    pub shared: bool,
}

/// What a vector of a form serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// Receive and transmit queue `n`.
    Pair,
    Rx,
    Tx,
    /// Receive and transmit queues `n` to `m`, both included.
    Range,
    /// Every queue of the device.
    All,
    /// Every queue if it is the device's only vector, else control.
    AllIfOnly,
    /// Notification block of gve.
    GveBlock,
    /// The number is not the queue's, but grows with it.
    Ranked(Direction, Among),
    /// A queue, but the number is not the queue's.
    SomeQueue,
    Control,
    Unused,
}

/// Whether a vector serves a receive queue, a transmit queue or the pair of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Both,
    Rx,
    Tx,
}

/// Which names are ranked together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    /// Those of all ranked forms of the driver, which count on one counter.
    Driver,
    /// Those of the same form.
    Form,
}

/// Where a form is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The driver's source, or seen on a running kernel.
    Source,
    /// A piece of the driver's source, or another tool that relies on it.
    Excerpt,
    /// Not verified: lower confidence.
    Memory,
}

const fn own(drivers: &'static [&'static str], shape: &'static str, serves: Serves, evidence: Evidence) -> Pattern {
    Pattern { drivers, shape, serves, evidence, shared: false }
}

const fn shared(drivers: &'static [&'static str], shape: &'static str, serves: Serves, evidence: Evidence) -> Pattern {
    Pattern { drivers, shape, serves, evidence, shared: true }
}

const INTEL_1G: &[&str] = &["igb", "ixgbe"];
/// Same forms as igb and ixgbe.
const INTEL_MEM: &[&str] = &["igc", "fm10k", "ixgbevf"];
const BNXT: &[&str] = &["bnxt_en"];
const MLX5: &[&str] = &["mlx5_core"];

/// The table. Where two forms match, the first counts.
pub const PATTERNS: &[Pattern] = &[
    // igb_main.c, ixgbe_main.c: the vector named like the device is for link events, unless it is the only one.
    shared(INTEL_1G, "{if}-TxRx-{n}", Pair, Source),
    shared(INTEL_1G, "{if}-rx-{n}", Rx, Source),
    shared(INTEL_1G, "{if}-tx-{n}", Tx, Source),
    shared(INTEL_1G, "{if}-unused", Unused, Source),
    own(INTEL_1G, "{if}", AllIfOnly, Source),
    own(&["igbvf"], "{if}-rx-{n}", Rx, Source),
    own(&["igbvf"], "{if}-tx-{n}", Tx, Source),
    own(&["igbvf"], "{if}", AllIfOnly, Source),
    own(INTEL_MEM, "{if}-TxRx-{n}", Pair, Memory),
    own(INTEL_MEM, "{if}-rx-{n}", Rx, Memory),
    own(INTEL_MEM, "{if}-tx-{n}", Tx, Memory),
    own(INTEL_MEM, "{if}-unused", Unused, Memory),
    own(INTEL_MEM, "{if}", AllIfOnly, Memory),
    own(&["fm10k"], "fm10k-mbx{*}", Control, Memory),
    own(&["fbnic"], "{if}-TxRx-{n}", Pair, Memory),
    own(&["fbnic"], "fbnic{*}", Control, Memory),
    // i40e_main.c: the flow director's own vector ends in TxRx-0 as well, with the bus address before it.
    own(&["i40e"], "i40e-{if}-TxRx-{n}", Pair, Source),
    own(&["i40e"], "i40e-{if}-rx-{n}", Rx, Source),
    own(&["i40e"], "i40e-{if}-tx-{n}", Tx, Source),
    own(&["i40e"], "i40e-{bdf}:{*}", Control, Source),
    // ice_main.c: N-M are the first and last receive ring of a vector that serves several; its
    // transmit rings are as many, counted from the same number.
    own(&["ice"], "ice-{if}-TxRx-{n}-{m}", Range, Source),
    own(&["ice"], "ice-{if}-TxRx-{n}", Pair, Source),
    own(&["ice"], "ice-{if}-rx-{n}", Rx, Source),
    own(&["ice"], "ice-{if}-tx-{n}", Tx, Source),
    own(&["ice"], "ice-{bdf}:{*}", Control, Source),
    own(&["ice"], "ice-{bdf}-clk{*}", Control, Source),
    own(&["i40e", "ice"], "irdma-{*}", Control, Memory),
    own(&["iavf"], "iavf-{if}-TxRx-{n}", Pair, Memory),
    own(&["iavf"], "iavf-{if}-rx-{n}", Rx, Memory),
    own(&["iavf"], "iavf-{if}-tx-{n}", Tx, Memory),
    own(&["iavf"], "iavf-{bdf}:mbx", Control, Memory),
    // idpf_txrx.c, idpf_vport_intr_req_irq: the index in the device's MSI-X table, where the mailbox is 0
    // and other users leave gaps (TxRx-1, TxRx-3, TxRx-4, Tx-5 for queues 0 to 3). Since "idpf: change IRQ
    // naming to match netdev and ethtool queue numbering" (2026, in 6.12.y from March on) it is the number
    // of the queue. The rank is right for both.
    own(&["idpf"], "idpf-{if}-TxRx-{n}", Ranked(Direction::Both, Among::Driver), Source),
    own(&["idpf"], "idpf-{if}-Rx-{n}", Ranked(Direction::Rx, Among::Driver), Source),
    own(&["idpf"], "idpf-{if}-Tx-{n}", Ranked(Direction::Tx, Among::Driver), Source),
    own(&["idpf"], "idpf-Mailbox-{n}", Control, Excerpt),
    // e1000e cuts the name so that the ending fits.
    own(&["e1000e"], "{if14}-rx-{n}", Rx, Source),
    own(&["e1000e"], "{if14}-tx-{n}", Tx, Source),
    own(&["e1000e"], "{if}", AllIfOnly, Source),
    // mlx5 pci_irq.c. Vectors of sub-functions come from a pool that several functions share.
    own(MLX5, "mlx5_comp{n}@pci:{bdf}", Pair, Source),
    own(MLX5, "mlx5_combined{n}@pci:{bdf}", All, Source),
    own(MLX5, "mlx5_combined{n}", All, Source),
    own(MLX5, "mlx5_sf_comp{n}@pci:{bdf}", SomeQueue, Source),
    own(MLX5, "mlx5_async{n}@pci:{bdf}", Control, Source),
    own(MLX5, "mlx5_sf_ctrl{n}@pci:{bdf}", Control, Source),
    own(MLX5, "mlx5_async_eq@pci:{bdf}", Control, Memory),
    own(MLX5, "mlx5_cmd_eq@pci:{bdf}", Control, Memory),
    own(MLX5, "mlx5_pages_eq@pci:{bdf}", Control, Memory),
    own(&["mlx5_core", "mlx4_core", "mlx4_en"], "{if}-{n}", Pair, Excerpt),
    // The number counts event queues, from which each port takes some: not a queue number.
    own(&["mlx4_core", "mlx4_en"], "mlx4-{n}@pci:{bdf}", SomeQueue, Excerpt),
    own(&["mlx4_core", "mlx4_en"], "mlx4-{n}@{bdf}", SomeQueue, Excerpt),
    own(&["mlx4_core", "mlx4_en"], "mlx4-async@{*}", Control, Excerpt),
    own(BNXT, "{if}-TxRx-{n}", Pair, Excerpt),
    own(BNXT, "{if}-rx-{n}", Rx, Excerpt),
    own(BNXT, "{if}-tx-{n}", Tx, Excerpt),
    own(&["bnx2x", "qede"], "{if}-fp-{n}", Pair, Excerpt),
    own(&["bnx2x", "qede"], "{if}", AllIfOnly, Excerpt),
    own(&["bna"], "{if} CQ {n}", Rx, Excerpt),
    own(&["bna"], "{if} TXQ {n}", Tx, Memory),
    // ena_netdev.c
    shared(&["ena"], "{if}-Tx-Rx-{n}", Pair, Source),
    own(&["ena"], "ena-mgmnt@pci:{bdf}", Control, Source),
    // virtio_pci_common.c: no interface name. One vector for all queues when there are too few.
    shared(&["virtio_net"], "{virtio}-input.{n}", Rx, Source),
    shared(&["virtio_net"], "{virtio}-output.{n}", Tx, Source),
    shared(&["virtio_net"], "{virtio}-config", Control, Source),
    shared(&["virtio_net"], "{virtio}-control", Control, Source),
    shared(&["virtio_net"], "{virtio}-virtqueues", All, Memory),
    shared(&["virtio_net"], "{virtio}", All, Excerpt),
    shared(&["vmxnet3"], "{if}-rxtx-{n}", Pair, Source),
    // vmxnet3_drv.c, vmxnet3_request_irqs: without shared vectors the number is the vector's, and the
    // receive queues' vectors follow those of the transmit queues. One vector may serve all of the latter.
    own(&["vmxnet3"], "{if}-rx-{n}", Ranked(Direction::Rx, Among::Form), Source),
    own(&["vmxnet3"], "{if}-tx-{n}", Ranked(Direction::Tx, Among::Form), Source),
    own(&["vmxnet3"], "{if}-event-{n}", Control, Source),
    own(&["vmxnet3"], "{if}", AllIfOnly, Memory),
    // gve_main.c
    own(&["gve"], "gve-ntfy-blk{n}@pci:{bdf}", GveBlock, Source),
    own(&["gve"], "{if}-ntfy-block.{n}", GveBlock, Source),
    own(&["gve"], "gve-mgmnt@pci:{bdf}", Control, Source),
    own(&["gve"], "{if}-mgmnt", Control, Memory),
    own(&["mana"], "mana_q{n}@pci:{bdf}", Pair, Source),
    own(&["mana"], "mana_hwc@pci:{bdf}", Control, Source),
    own(&["mana"], "mana_q@pci:{bdf}", SomeQueue, Source),
    own(&["xen-netfront", "vif"], "{if}-q{n}-rx", Rx, Memory),
    own(&["xen-netfront", "vif"], "{if}-q{n}-tx", Tx, Memory),
    own(&["xen-netfront", "vif"], "{if}", All, Excerpt),
    own(&["sfc"], "{if}-{n}", Pair, Memory),
    own(&["sfc"], "{if}-rx-{n}", Rx, Memory),
    own(&["sfc"], "{if}-tx-{n}", Tx, Memory),
    own(&["sfc"], "{if}-xdp-{n}", Control, Memory),
    own(&["cxgb4"], "{if}-Rx{n}", Rx, Excerpt),
    own(&["cxgb4"], "{if}-FWeventq", Control, Memory),
    own(&["nfp", "rvu_nicpf", "rvu_nicvf", "nicvf"], "{if}-rxtx-{n}", Pair, Excerpt),
    own(&["nfp"], "{if}-rx-{n}", Rx, Memory),
    own(&["nfp"], "{if}-tx-{n}", Tx, Memory),
    own(&["nfp"], "{if}-lsc", Control, Excerpt),
    own(&["nfp"], "{if}-exn", Control, Excerpt),
    // hns3_enet.c, hns3_nic_init_irq: the counter of TxRx grows by two for each vector, so that the names
    // are TxRx-0, TxRx-2, TxRx-4; until 2020 they had the interface's name.
    own(&["hns3"], "hns3-{bdf}-TxRx-{n}", Ranked(Direction::Both, Among::Form), Source),
    own(&["hns3"], "{if}-TxRx-{n}", Ranked(Direction::Both, Among::Form), Source),
    own(&["hns3"], "hns3-{bdf}-Rx-{n}", SomeQueue, Source),
    own(&["hns3"], "hns3-{bdf}-Tx-{n}", SomeQueue, Source),
    own(&["hns3"], "{if}-Rx-{n}", SomeQueue, Source),
    own(&["hns3"], "{if}-Tx-{n}", SomeQueue, Source),
    // hclge_main.c, hclge_misc_irq_init; hclgevf_main.c, hclgevf_misc_irq_init.
    own(&["hns3"], "hclge-misc-{bdf}", Control, Source),
    own(&["hns3"], "hclgevf-misc-{bdf}", Control, Source),
    own(&["hinic"], "{if}_rxq{n}", Rx, Memory),
    own(&["hinic"], "{if}_txq{n}", Tx, Memory),
    // ionic: a receive vector usually serves its transmit queue too, which the name does not say.
    own(&["ionic"], "ionic-{if}-rx{n}", Rx, Memory),
    own(&["ionic"], "ionic-{if}-tx{n}", Tx, Memory),
    own(&["ionic"], "ionic-{if}-adminq{*}", Control, Memory),
    own(&["ionic"], "ionic-{bdf}-adminq{*}", Control, Memory),
    own(&["be2net"], "{if}-q{n}", Pair, Excerpt),
    own(&["enic"], "{if}-rx-{n}", Rx, Memory),
    own(&["enic"], "{if}-tx-{n}", Tx, Memory),
    own(&["enic"], "{if}-err", Control, Memory),
    own(&["enic"], "{if}-notify", Control, Memory),
    own(&["stmmac", "st_gmac", "dwmac-intel", "intel-eth-pci"], "{if}:rx-{n}", Rx, Excerpt),
    own(&["stmmac", "st_gmac", "dwmac-intel", "intel-eth-pci"], "{if}:tx-{n}", Tx, Excerpt),
    own(&["stmmac", "st_gmac", "dwmac-intel", "intel-eth-pci"], "{if}:{*}", Control, Excerpt),
    own(&["stmmac", "st_gmac", "dwmac-intel", "intel-eth-pci"], "{if}", AllIfOnly, Excerpt),
    own(&["atlantic"], "{if}-{n}", Pair, Memory),
    // One vector for everything.
    own(&["r8169", "tg3", "e1000", "8139cp", "sky2", "alx"], "{if}", AllIfOnly, Memory),
    own(&["am65-cpsw-nuss"], "{bdf}-rx{n}", Rx, Excerpt),
    own(&["am65-cpsw-nuss"], "{bdf}-tx{n}", Tx, Memory),
    own(&["xsc_pci", "xsc"], "xsc_comp{n}@pci:{bdf}", Pair, Excerpt),
    // The lab's test device.
    own(&["mqnic"], "{if}-TxRx-{n}", Pair, Source),
    own(&["mqnic"], "{if}-event", Control, Source),
];

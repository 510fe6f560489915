//! Modules that create the RDMA device of an interface.

use ringwise_model::{Nic, User};

/// Driver of the interface, and the module of its RDMA device: `obj-$(CONFIG_…)` in the Makefile of each directory of
/// drivers/infiniband/hw. `irdma` replaced `i40iw` in Linux 5.14 (`CONFIG_INFINIBAND_I40IW`), so i40e has either.
const MODULES: [(&str, &str); 10] = [
    ("bnxt_en", "bnxt_re"),
    ("cxgb4", "iw_cxgb4"),
    ("hns3", "hns_roce_hw_v2"),
    ("i40e", "irdma or i40iw"),
    ("ice", "irdma"),
    ("mana", "mana_ib"),
    ("mlx4_core", "mlx4_ib"),
    ("mlx4_en", "mlx4_ib"),
    ("mlx5_core", "mlx5_ib"),
    ("qede", "qedr"),
];

/// The module to unload if RDMA is not used. `None`: RDMA does not use the interface, or the module of its driver is unknown.
pub(crate) fn module(nic: &Nic) -> Option<&'static str> {
    nic.users.known()?.iter().find(|u| matches!(u, User::Rdma { .. }))?;
    let driver = nic.driver.known()?;
    MODULES.iter().find(|(d, _)| d == driver).map(|(_, module)| *module)
}

//! Network functions that a user-space driver (DPDK, a guest) holds, and which therefore have no interface.

use ringwise_model::UserspaceFunction;
use ringwise_model::order::Order;
use ringwise_sys::Host;

const DRIVERS: &[&str] =
    &["vfio-pci", "mlx5_vfio_pci", "pds_vfio_pci", "virtio_vfio_pci", "igb_uio", "uio_pci_generic"];
/// PCI class code of network controllers (linux/pci_ids.h).
pub(crate) const NETWORK: &str = "0x02";

/// Whether a driver gives the function to a program or a guest, or only reserves it.
pub(crate) fn is_user_space(driver: &str) -> bool {
    DRIVERS.contains(&driver) || ["pci-stub", "pciback", "xen-pciback"].contains(&driver)
}

pub(crate) fn held(host: &dyn Host) -> Vec<UserspaceFunction> {
    let mut out = Vec::new();
    for driver in DRIVERS {
        let Ok(names) = host.list(&format!("/sys/bus/pci/drivers/{driver}")) else { continue };
        for bus_address in names.into_iter().filter(|n| n.contains(':')) {
            let class = host.read_text(&format!("/sys/bus/pci/devices/{bus_address}/class"));
            if class.is_ok_and(|c| c.starts_with(NETWORK)) {
                out.push(UserspaceFunction { bus_address, driver: (*driver).to_string() });
            }
        }
    }
    out.order_by(|a, b| a.bus_address.cmp(&b.bus_address));
    out
}

//! What is behind an interface: driver, bus, node, and whether it is hardware at all.

use ringwise_kfmt::{cpulist, ethtool_ioctl, sysfs};
use ringwise_model::order::Order;
use ringwise_model::{CpuSet, Fact, NicKind, NodeId};
use ringwise_sys::IoctlCmd;

use crate::ethtool;
use crate::links::{NET, var};
use crate::read::Reader;

/// Drivers of paravirtual devices without vectors of their own on a PCI function.
const PARAVIRTUAL: &[&str] = &["hv_netvsc", "vif", "xen_netfront", "xen-netfront", "ibmveth", "ibmvnic"];

/// Drivers that are used only for virtual functions: a guest has no `physfn`. (mlx5, bnxt and others serve both.)
const VIRTUAL_FUNCTION: &[&str] = &["iavf", "i40evf", "ixgbevf", "igbvf", "cxgb4vf", "nicvf", "rvu_nicvf"];

pub(crate) struct Device {
    pub kind: NicKind,
    pub driver: Fact<String>,
    /// `0000:03:00.0`; for virtio the PCI function (or other device) above it. If no link shows it, the `bus-info` of
    /// the driver.
    pub bus_address: Option<String>,
    pub node: Fact<NodeId>,
    pub local_cpus: Fact<CpuSet>,
    /// `virtio1`: the beginning of interrupt names of virtio devices.
    pub virtio: Option<String>,
    /// Directories that may hold `msi_irqs` and `irq`, the device's own first.
    pub dirs: Vec<String>,
    pub rdma: Vec<String>,
}

/// `name` is the interface. `dev_path` may be incomplete, so each part is read separately.
pub(crate) fn device(r: &mut Reader, name: &str) -> Device {
    let dev = format!("{NET}/{name}/device");
    let entries = r.host.list(&dev);
    let vars = r.host.read_text(&format!("{dev}/uevent")).unwrap_or_default();
    let has = |e: &str| entries.as_ref().is_ok_and(|l| l.iter().any(|x| x == e));
    let path = canonical(r, name);
    let own = path.as_deref().and_then(last);
    let none = entries.as_ref().is_err_and(ringwise_sys::Error::is_absent) && vars.is_empty();

    let driver = driver(r, &dev, &vars, none, name);
    let known = driver.known().map(String::as_str);
    let virtio = match own {
        Some(o) if o.starts_with("virtio") => Some(o.to_string()),
        _ if known == Some("virtio_net") => {
            r.host.readlink(&dev).ok().and_then(|t| last(&t).map(str::to_string)).filter(|n| n.starts_with("virtio"))
        }
        _ => None,
    };
    let is_virtio = virtio.is_some() || known == Some("virtio_net");
    let kind = match known {
        _ if is_virtio => NicKind::Virtio,
        _ if none => NicKind::Software { kind: "other".to_string() },
        Some(d) if PARAVIRTUAL.contains(&d) => NicKind::Paravirtual,
        _ if has("physfn") => NicKind::Vf,
        Some(d) if VIRTUAL_FUNCTION.contains(&d) => NicKind::Vf,
        Some(_) => NicKind::Physical,
        None if entries.is_ok() => NicKind::Physical,
        None => NicKind::Unknown,
    };

    // The PCI function: the device itself, for virtio the directory above.
    let mut dirs = vec![dev.clone()];
    if is_virtio {
        if let Some((above, _)) = path.as_deref().and_then(|p| p.rsplit_once('/')) {
            dirs.push(above.to_string());
        }
        dirs.push(format!("{dev}/.."));
    }
    let mut bus_address = bus_address(r, &dirs, path.as_deref(), &vars, is_virtio);
    if bus_address.is_none() && !none {
        bus_address = drvinfo(r, name).map(|d| d.bus_info).filter(|a| !a.is_empty() && a != "N/A");
        dirs.extend(bus_address.iter().map(|a| format!("/sys/bus/pci/devices/{a}")));
    }
    let (mut node, mut local_cpus) = (Fact::Absent, Fact::Absent);
    for dir in &dirs {
        if !node.is_known() {
            node = newer(node, node_of(r, dir));
        }
        if !local_cpus.is_known() {
            local_cpus = newer(local_cpus, cpus_of(r, dir));
        }
    }
    r.note(node.clone().and_then(|n| match n {
        Ok(n) => Fact::Known(n),
        Err(_) => Fact::Absent, // the kernel reports it, so it is not listed as unread
    }));
    r.note(local_cpus.clone());
    let node = node.and_then(|n| match n {
        Ok(n) => Fact::Known(n),
        Err(path) => Fact::unknown(path, "the firmware reports no node (-1)"),
    });
    let rdma = if has("infiniband") { r.list(&format!("{dev}/infiniband")) } else { Fact::Absent };
    let mut rdma = rdma.known().cloned().unwrap_or_default();
    rdma.order_by(|a, b| crate::natural::compare(a, b));
    Device { kind, driver, bus_address, node, local_cpus, virtio, dirs, rdma }
}

/// A later answer replaces "absent"; a reason is kept if the later answer is "absent".
fn newer<T>(old: Fact<T>, new: Fact<T>) -> Fact<T> {
    if new.is_absent() { old } else { new }
}

/// The node, or the file that contains -1.
fn node_of(r: &Reader, dir: &str) -> Fact<Result<NodeId, String>> {
    let path = format!("{dir}/numa_node");
    match r.host.read_text(&path) {
        Ok(t) => match sysfs::parse_numa_node(&t) {
            Ok(Some(n)) => Fact::Known(Ok(n)),
            Ok(None) => Fact::Known(Err(path)),
            Err(e) => Fact::unknown(path, e.to_string()),
        },
        Err(e) => crate::read::failed(&path, &e),
    }
}

fn cpus_of(r: &Reader, dir: &str) -> Fact<CpuSet> {
    let path = format!("{dir}/local_cpulist");
    match r.host.read_text(&path) {
        Ok(t) => match cpulist::parse(&t) {
            Ok(s) => Fact::Known(s),
            Err(e) => Fact::unknown(path, e.to_string()),
        },
        Err(e) => crate::read::failed(&path, &e),
    }
}

/// The driver's link, else its name in `uevent`.
fn driver(r: &mut Reader, dev: &str, vars: &str, none: bool, name: &str) -> Fact<String> {
    if none {
        return Fact::Absent;
    }
    let link = format!("{dev}/driver");
    let found = match r.host.readlink(&link) {
        Ok(t) => last(&t).map(str::to_string),
        Err(_) => None,
    };
    if let Some(d) = found.or_else(|| var(vars, "DRIVER").map(str::to_string)) {
        return Fact::Known(d);
    }
    // The ioctl reports it without sysfs. It comes last because it takes the network lock.
    if let Some(info) = drvinfo(r, name).filter(|d| !d.driver.is_empty()) {
        return Fact::Known(info.driver);
    }
    r.link_name(&link)
}

/// What the driver reports about itself (`ethtool -i`), without sysfs.
fn drvinfo(r: &Reader, name: &str) -> Option<ethtool_ioctl::Drvinfo> {
    let ask = ethtool::ioctl(name, IoctlCmd::DrvinfoGet, ethtool_ioctl::drvinfo_request());
    let reply = r.host.kernel(&ask).ok()?;
    ethtool::first(&reply).and_then(ethtool_ioctl::drvinfo).ok()
}

/// `/sys/devices/…/0000:03:00.0` of the interface, from the target of its class link, without following further links.
fn canonical(r: &Reader, name: &str) -> Option<String> {
    let target = r.host.readlink(&format!("{NET}/{name}")).ok()?;
    let parts: Vec<&str> = target.split('/').filter(|p| !p.is_empty() && *p != "..").collect();
    let start = parts.iter().position(|p| *p == "devices")?;
    let end = parts.iter().rposition(|p| *p == "net")?;
    // Virtual interfaces have no device in between.
    if end <= start + 1 || parts.get(start + 1) == Some(&"virtual") {
        return None;
    }
    Some(format!("/sys/{}", parts[start..end].join("/")))
}

fn last(path: &str) -> Option<&str> {
    path.rsplit('/').find(|p| !p.is_empty())
}

fn bus_address(r: &Reader, dirs: &[String], path: Option<&str>, vars: &str, is_virtio: bool) -> Option<String> {
    if !is_virtio && let Some(slot) = var(vars, "PCI_SLOT_NAME") {
        return Some(slot.to_string());
    }
    let of_path = match (path, is_virtio) {
        (Some(p), false) => last(p),
        (Some(p), true) => p.rsplit_once('/').and_then(|(above, _)| last(above)),
        (None, _) => None,
    };
    if let Some(a) = of_path {
        return Some(a.to_string());
    }
    for dir in &dirs[usize::from(is_virtio)..] {
        let text = r.host.read_text(&format!("{dir}/uevent")).unwrap_or_default();
        if let Some(slot) = var(&text, "PCI_SLOT_NAME") {
            return Some(slot.to_string());
        }
    }
    // Only the device link: `../../../0000:03:00.0`.
    let target = r.host.readlink(&dirs[0]).ok()?;
    if is_virtio { None } else { last(&target).map(str::to_string) }
}

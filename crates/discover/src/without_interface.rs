//! Network functions of the PCI bus that a driver of the kernel serves, but that have no interface in this network namespace.
//!
//! The directory `net` of a device is one of the class, and shows only the interfaces of the namespace for which sysfs was
//! mounted (`class_dir_child_ns_type` in drivers/base/core.c). It exists as long as the device has an interface anywhere
//! (`cleanup_glue_dir`), so an empty one belongs to an interface in another namespace.

use std::collections::{BTreeSet, HashSet};

use ringwise_kfmt::irq_names::{NameContext, NameMatch, classify};
use ringwise_model::order::Order;
use ringwise_model::{Fact, FunctionVector, FunctionWithoutInterface, IrqId, Nic, Role};
use ringwise_sys::Host;

use crate::irq::{self, InterruptTable};
use crate::links::Port;
use crate::read::{self, Reader};
use crate::userspace_drivers::{NETWORK, is_user_space};

const DEVICES: &str = "/sys/bus/pci/devices";

/// Absent: the host has no PCI bus. `ports`, `nics`: functions of these interfaces are skipped, even if sysfs was mounted for another namespace.
pub(crate) fn functions(
    host: &dyn Host,
    table: &InterruptTable,
    ports: &[Port],
    nics: &[Nic],
) -> Fact<Vec<FunctionWithoutInterface>> {
    let addresses = match host.list(DEVICES) {
        Ok(addresses) => addresses,
        Err(e) => return read::failed(DEVICES, &e),
    };
    let parents = ports.iter().filter_map(|p| p.info.as_ref()?.parent_dev.as_deref());
    let here: HashSet<&str> = nics.iter().filter_map(|n| n.dev.bus_address.as_deref()).chain(parents).collect();
    let mut out: Vec<FunctionWithoutInterface> =
        addresses.into_iter().filter_map(|a| function(host, table, a, &here)).collect();
    out.order_by(|a, b| a.bus_address.cmp(&b.bus_address));
    Fact::Known(out)
}

fn function(
    host: &dyn Host,
    table: &InterruptTable,
    bus_address: String,
    here: &HashSet<&str>,
) -> Option<FunctionWithoutInterface> {
    let dir = format!("{DEVICES}/{bus_address}");
    let is_network = host.read_text(&format!("{dir}/class")).is_ok_and(|c| c.starts_with(NETWORK));
    if !is_network || here.contains(bus_address.as_str()) {
        return None;
    }
    let place = interface_place(host, &dir)?;
    let in_other_namespace = match &place.interfaces {
        Some(names) if !names.is_empty() => return None,
        names => names.is_some(),
    };
    if place.child.as_deref().is_some_and(|c| here.contains(c)) {
        return None;
    }
    let driver = place.driver(host, &dir).known().filter(|d| !is_user_space(d))?.clone();
    let vectors = vectors(host, table, &dir, &bus_address, &driver, place.child.as_deref());
    let named = vectors.known().is_some_and(|all| all.iter().any(|v| !v.names.is_empty()));
    // A driver without an interface and without interrupts does nothing that matters here.
    (in_other_namespace || named).then_some(FunctionWithoutInterface {
        bus_address,
        driver,
        in_other_namespace,
        vectors,
    })
}

/// Where the interfaces of a function are.
pub(crate) struct InterfacePlace {
    /// The device below the function that has the interface (`virtio1`), or would have it.
    child: Option<String>,
    /// Interfaces of the namespace that sysfs shows. Empty: they are in another one. `None`: the driver registered none.
    pub interfaces: Option<Vec<String>>,
}

impl InterfacePlace {
    /// The driver of the device that has the interface. Absent: none is bound to it.
    pub(crate) fn driver(&self, host: &dyn Host, dir: &str) -> Fact<String> {
        let link = match &self.child {
            Some(child) => format!("{dir}/{child}/driver"),
            None => format!("{dir}/driver"),
        };
        match host.readlink(&link) {
            Ok(target) => match target.rsplit('/').next().filter(|d| !d.is_empty()) {
                Some(driver) => Fact::Known(driver.to_string()),
                None => Fact::unknown(link, "the link has no target"),
            },
            Err(e) => crate::read::failed(&link, &e),
        }
    }
}

/// `None`: it cannot be read.
pub(crate) fn interface_place(host: &dyn Host, dir: &str) -> Option<InterfacePlace> {
    let absent = match host.list(&format!("{dir}/net")) {
        Ok(names) => return Some(InterfacePlace { child: None, interfaces: Some(names) }),
        Err(e) => e.is_absent(),
    };
    let entries = host.list(dir).ok()?;
    if !absent && entries.iter().any(|e| e == "net") {
        return None;
    }
    // Links to other functions.
    let own = |e: &&String| *e != "physfn" && !e.starts_with("virtfn");
    let (virtio, others): (Vec<&String>, Vec<&String>) =
        entries.iter().filter(own).partition(|e| e.starts_with("virtio"));
    // Some drivers have a device of their own below the function: virtio, ssb, auxiliary and platform devices.
    for child in virtio.iter().chain(&others) {
        if let Ok(names) = host.list(&format!("{dir}/{child}/net")) {
            return Some(InterfacePlace { child: Some((*child).clone()), interfaces: Some(names) });
        }
    }
    // A copy of /sys that lacks the directory does not show that the driver registered no interface.
    absent.then(|| InterfacePlace { child: virtio.first().map(|v| (*v).clone()), interfaces: None })
}

fn vectors(
    host: &dyn Host,
    table: &InterruptTable,
    dir: &str,
    bus_address: &str,
    driver: &str,
    child: Option<&str>,
) -> Fact<Vec<FunctionVector>> {
    let mut r = Reader::new(host);
    let dirs = [dir.to_string()];
    let irqs = match irq::msi_irqs(&mut r, &dirs) {
        Some(irqs) => irqs,
        None => match (irq::line_irq(&r, &dirs), r.unread.pop()) {
            (Some(irq), _) => vec![irq],
            (None, Some(u)) => return Fact::Unknown(u),
            (None, None) => Vec::new(),
        },
    };
    let named: Vec<(u32, Vec<String>)> =
        irqs.into_iter().map(|irq| (irq, table.names(host, irq).unwrap_or_default())).collect();
    let all: Vec<&str> = named.iter().flat_map(|(_, names)| names).map(String::as_str).collect();
    let ctx = NameContext {
        driver: Some(driver),
        bus_address: Some(bus_address),
        virtio_name: child.filter(|c| c.starts_with("virtio")),
        vectors: Some(named.len() as u32),
        ..NameContext::default()
    };
    let ctx = NameContext { ifname: interface_name(&all, &ctx), ..ctx };
    let found = named.iter().map(|(irq, names)| {
        let (asked, effective) = irq::one(&mut r, IrqId(*irq));
        // As for interfaces here: a pinned interrupt arrives on its CPU the next time that it is raised.
        let cpus = match (&asked, &effective) {
            (Fact::Known(a), Fact::Known(e)) if a.len() == 1 && !e.intersects(a) => asked,
            _ => effective,
        };
        FunctionVector { irq: IrqId(*irq), names: names.clone(), role: role(names, &ctx), cpus }
    });
    Fact::Known(found.collect())
}

fn role(names: &[String], ctx: &NameContext) -> Role {
    let (mut rx, mut tx) = (BTreeSet::new(), BTreeSet::new());
    let mut without_queue = if names.is_empty() { Role::Idle } else { Role::Unknown };
    for name in names {
        match classify(name, ctx) {
            NameMatch::Queues { rx: r, tx: t, .. } => {
                rx.extend(r);
                tx.extend(t);
            }
            NameMatch::Control => without_queue = Role::Control,
            NameMatch::Unused if without_queue == Role::Unknown => without_queue = Role::Idle,
            NameMatch::Unused | NameMatch::NotOurs | NameMatch::Unknown => {}
        }
    }
    if rx.is_empty() && tx.is_empty() {
        return without_queue;
    }
    Role::Queues { rx: rx.into_iter().collect(), tx: tx.into_iter().collect() }
}

/// Names that are examined to find the interface's name, and their length.
const EXAMINED: usize = 16;
const LONGEST_EXAMINED: usize = 64;
/// IFNAMSIZ without the terminating zero.
const LONGEST_INTERFACE: usize = 15;

/// The name of the interface, which most drivers put into the names of its interrupts: the part of them with which most names
/// are those of queues. Empty if no part helps.
fn interface_name<'a>(names: &[&'a str], ctx: &NameContext) -> &'a str {
    let examined: Vec<&'a str> = names.iter().copied().filter(|n| n.len() <= LONGEST_EXAMINED).take(EXAMINED).collect();
    let mut parts: BTreeSet<&'a str> = BTreeSet::new();
    for name in &examined {
        let cuts: Vec<usize> = name.match_indices(['-', ' ']).map(|(at, _)| at).collect();
        let starts = std::iter::once(0).chain(cuts.iter().map(|c| c + 1));
        for start in starts {
            let ends = cuts.iter().copied().filter(|e| *e > start).chain([name.len()]);
            parts.extend(ends.filter_map(|end| name.get(start..end)).filter(|p| p.len() <= LONGEST_INTERFACE));
        }
    }
    let queues = |part: &str| {
        let ctx = NameContext { ifname: part, ..*ctx };
        examined.iter().filter(|n| matches!(classify(n, &ctx), NameMatch::Queues { .. })).count()
    };
    let without = queues("");
    let best = parts.into_iter().map(|p| (queues(p), p)).max_by_key(|(n, _)| *n);
    best.filter(|(n, _)| *n > without).map_or("", |(_, p)| p)
}

//! PCI, virtio and VMBus devices with their interfaces, queues and vectors.

use super::desc::{Bus, Host, Nic, RequestedAffinity, Vectors, Xps};
use super::{Cpus, Tree, text};

/// One vector that was written, for the interrupt files.
#[derive(Debug, Clone)]
pub(super) struct Vector {
    pub irq: u32,
    /// Index among the vectors of the PCI function.
    pub index: u32,
    pub address: String,
    pub name: String,
    pub node: i32,
    pub asked: Vec<u32>,
    pub effective: u32,
    pub hint: bool,
    pub count: u64,
}

/// Directory of the device that the interface hangs on, and of the PCI function above or the same.
fn places(nic: &Nic, index: usize) -> Result<(String, Option<String>), String> {
    let pci = || -> Result<String, String> {
        let (bus, _) = nic.address.rsplit_once(':').ok_or_else(|| format!("{}: address {}", nic.name, nic.address))?;
        Ok(match &nic.bridge {
            Some(b) => {
                let (root, _) = b.rsplit_once(':').ok_or_else(|| format!("{}: bridge {b}", nic.name))?;
                format!("/sys/devices/pci{root}/{b}/{}", nic.address)
            }
            None => format!("/sys/devices/pci{bus}/{}", nic.address),
        })
    };
    Ok(match nic.bus {
        Bus::Pci => (pci()?, Some(pci()?)),
        Bus::Virtio => (format!("{}/virtio{index}", pci()?), Some(pci()?)),
        Bus::Vmbus => (format!("/sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0004:00/MSFT1000:00/{}", nic.address), None),
    })
}

/// Directory of a NIC's interface.
pub(super) fn interface_dir(host: &Host, name: &str) -> Result<String, String> {
    let mut virtio = 0;
    for nic in &host.nic {
        if nic.name == name {
            return Ok(format!("{}/net/{name}", places(nic, virtio)?.0));
        }
        virtio += usize::from(nic.bus == Bus::Virtio);
    }
    Err(format!("no NIC {name}"))
}

/// Everything of all NICs; the vectors for the interrupt files.
pub(super) fn write(tree: &mut Tree, host: &Host, cpus: &Cpus) -> Result<Vec<Vector>, String> {
    let mut vectors = Vec::new();
    let mut virtio = 0;
    for nic in &host.nic {
        let (device, function) = places(nic, virtio)?;
        virtio += usize::from(nic.bus == Bus::Virtio);
        if let Some(f) = &function {
            pci(tree, host, cpus, nic, f);
            let own = numbered(nic, cpus)?;
            for v in &own {
                tree.line(format!("{f}/msi_irqs/{}", v.irq), "msix");
            }
            vectors.extend(own);
        }
        bus_links(tree, nic, &device);
        interface(tree, host, cpus, nic, &device)?;
        if let Some(pf) = &nic.physfn {
            let pf = host
                .nic
                .iter()
                .find(|n| n.bus == Bus::Pci && n.address == *pf)
                .ok_or_else(|| format!("{}: no NIC at {pf}", nic.name))?;
            let (pf, _) = places(pf, 0)?;
            tree.link(format!("{device}/physfn"), &pf);
            tree.link(format!("{pf}/virtfn0"), &device);
            tree.line(format!("{pf}/sriov_numvfs"), 1);
        }
    }
    Ok(vectors)
}

fn pci(tree: &mut Tree, host: &Host, cpus: &Cpus, nic: &Nic, f: &str) {
    let (vendor, device) = nic.id.unwrap_or((0x1af4, 0x1000));
    let near = cpus.of_node(nic.node);
    tree.line(format!("{f}/vendor"), format!("0x{vendor:04x}"));
    tree.line(format!("{f}/device"), format!("0x{device:04x}"));
    tree.line(format!("{f}/class"), "0x020000");
    tree.line(format!("{f}/numa_node"), nic.node);
    tree.line(format!("{f}/local_cpulist"), text::list(&near));
    tree.line(format!("{f}/local_cpus"), text::mask(&near, cpus.bits));
    tree.line(format!("{f}/irq"), if host.guest { 11 } else { 0 });
    tree.line(format!("{f}/msi_bus"), 1);
    tree.line(format!("{f}/enable"), 1);
    tree.link(format!("/sys/bus/pci/devices/{}", nic.address), f);
    tree.link(format!("{f}/subsystem"), "/sys/bus/pci");
    let driver = if nic.bus == Bus::Virtio { "virtio-pci" } else { nic.driver.as_str() };
    tree.link(format!("{f}/driver"), &format!("/sys/bus/pci/drivers/{driver}"));
    tree.link(format!("/sys/bus/pci/drivers/{driver}/{}", nic.address), f);
    let (v, d) = (vendor, device);
    tree.file(
        format!("{f}/uevent"),
        format!("DRIVER={driver}\nPCI_CLASS=20000\nPCI_ID={v:04X}:{d:04X}\nPCI_SLOT_NAME={}\n", nic.address),
    );
    if let Some(rdma) = &nic.rdma {
        tree.line(format!("{f}/infiniband/{rdma}/node_type"), "1: CA");
        tree.link(format!("{f}/infiniband/{rdma}/device"), f);
        tree.link(format!("/sys/class/infiniband/{rdma}"), &format!("{f}/infiniband/{rdma}"));
    }
}

/// Links of the device below the PCI function, and of VMBus.
fn bus_links(tree: &mut Tree, nic: &Nic, device: &str) {
    let bus = match nic.bus {
        Bus::Pci => return,
        Bus::Virtio => "virtio",
        Bus::Vmbus => "vmbus",
    };
    let name = device.rsplit('/').next().unwrap_or_default();
    tree.link(format!("{device}/driver"), &format!("/sys/bus/{bus}/drivers/{}", nic.driver));
    tree.link(format!("{device}/subsystem"), &format!("/sys/bus/{bus}"));
    tree.link(format!("/sys/bus/{bus}/devices/{name}"), device);
    tree.link(format!("/sys/bus/{bus}/drivers/{}/{name}", nic.driver), device);
    match nic.bus {
        Bus::Virtio => {
            tree.line(format!("{device}/device"), "0x0001");
            tree.line(format!("{device}/vendor"), "0x1af4");
            tree.line(format!("{device}/modalias"), "virtio:d00000001v00001AF4");
        }
        _ => {
            // One channel per queue; the CPU that the host signals (since 5.8 it can be written).
            tree.line(format!("{device}/class_id"), "{f8615163-df3e-46c5-913f-f2d2f965ed0e}");
            for q in 0..nic.rx {
                tree.line(format!("{device}/channels/{}/cpu", 15 + q), q);
            }
        }
    }
}

fn numbered(nic: &Nic, cpus: &Cpus) -> Result<Vec<Vector>, String> {
    let mut out = Vec::new();
    let near_first = cpus.near_first(nic.node);
    for group in &nic.vectors {
        let lands = text::numbers(&group.lands)?;
        for i in 0..group.count {
            let index = out.len() as u32;
            let asked = match &group.asked {
                RequestedAffinity::All => cpus.online.clone(),
                RequestedAffinity::Node => cpus.of_node(nic.node),
                RequestedAffinity::Each => vec![near_first[i as usize % near_first.len()]],
                RequestedAffinity::Cpus(list) => text::numbers(list)?,
            };
            let effective = match lands.len() {
                0 => asked[0],
                n => lands[i as usize % n],
            };
            if !asked.contains(&effective) {
                return Err(format!(
                    "{}: {} is delivered to {effective}, which is not in the requested affinity",
                    nic.name, group.name
                ));
            }
            let irq = nic.first_irq + index;
            out.push(Vector {
                irq,
                index,
                address: nic.address.clone(),
                name: name(group, i),
                node: nic.node,
                asked,
                effective,
                hint: group.hint,
                count: group.count_each * u64::from(90 + irq % 21) / 100,
            });
        }
    }
    Ok(out)
}

fn name(group: &Vectors, i: u32) -> String {
    let n = group.from + i;
    let (first, last) = (n * group.rings, (n + 1) * group.rings - 1);
    group
        .name
        .replace("{n}", &n.to_string())
        .replace("{first}", &first.to_string())
        .replace("{last}", &last.to_string())
}

fn interface(tree: &mut Tree, host: &Host, cpus: &Cpus, nic: &Nic, device: &str) -> Result<(), String> {
    if nic.other_namespace {
        tree.dir(format!("{device}/net"));
        return Ok(());
    }
    let dir = format!("{device}/net/{}", nic.name);
    let index = host.ifindex(&nic.name).unwrap_or(0);
    tree.link(format!("/sys/class/net/{}", nic.name), &dir);
    tree.link(format!("{dir}/device"), device);
    tree.link(format!("{dir}/subsystem"), "/sys/class/net");
    common(tree, &dir, &nic.name, index, index, &nic.mac, nic.up, nic.mtu, "");
    if let (Some(speed), true) = (nic.speed, nic.up) {
        tree.line(format!("{dir}/speed"), speed);
        tree.line(format!("{dir}/duplex"), if speed > 0 { "full" } else { "unknown" });
    }
    if let Some(m) = &nic.master {
        let above = if host.nic.iter().any(|n| n.name == *m) {
            interface_dir(host, m)?
        } else {
            format!("/sys/devices/virtual/net/{m}")
        };
        tree.link(format!("{dir}/master"), &above);
        tree.link(format!("{dir}/upper_{m}"), &above);
        tree.link(format!("{above}/lower_{}", nic.name), &dir);
    }
    queues(tree, cpus, nic, &dir);
    Ok(())
}

/// Attributes that every interface has (net/core/net-sysfs.c).
#[allow(clippy::too_many_arguments, reason = "one line per attribute of the kernel")]
pub(super) fn common(
    tree: &mut Tree,
    dir: &str,
    name: &str,
    index: u32,
    below: u32,
    mac: &str,
    up: bool,
    mtu: u32,
    devtype: &str,
) {
    let kind = if devtype.is_empty() { String::new() } else { format!("DEVTYPE={devtype}\n") };
    tree.file(format!("{dir}/uevent"), format!("{kind}INTERFACE={name}\nIFINDEX={index}\n"));
    tree.line(format!("{dir}/ifindex"), index);
    tree.line(format!("{dir}/iflink"), below);
    tree.line(format!("{dir}/address"), mac);
    tree.line(format!("{dir}/addr_len"), 6);
    // 0: permanent. A bond uses that of its first member (2: stolen), software devices use a random one (1: random).
    let assigned = match devtype {
        "" if !dir.starts_with("/sys/devices/virtual") || name == "lo" => 0,
        "bond" | "vlan" => 2,
        _ => 1,
    };
    tree.line(format!("{dir}/addr_assign_type"), assigned);
    tree.line(format!("{dir}/mtu"), mtu);
    tree.line(format!("{dir}/type"), if name == "lo" { 772 } else { 1 });
    tree.line(
        format!("{dir}/flags"),
        if name == "lo" {
            "0x9"
        } else if up {
            "0x1003"
        } else {
            "0x1002"
        },
    );
    tree.line(
        format!("{dir}/operstate"),
        if name == "lo" {
            "unknown"
        } else if up {
            "up"
        } else {
            "down"
        },
    );
    // Reading carrier of an interface that was not opened fails (EINVAL): such a file is not in the archive.
    if up {
        tree.line(format!("{dir}/carrier"), 1);
    }
    tree.line(format!("{dir}/tx_queue_len"), 1000);
    tree.line(format!("{dir}/gro_flush_timeout"), 0);
    tree.line(format!("{dir}/napi_defer_hard_irqs"), 0);
}

fn queues(tree: &mut Tree, cpus: &Cpus, nic: &Nic, dir: &str) {
    let rps = text::numbers(&nic.rps).unwrap_or_default();
    for q in 0..nic.rx {
        let at = format!("{dir}/queues/rx-{q}");
        tree.line(format!("{at}/rps_cpus"), text::mask(&rps, cpus.bits));
        tree.line(format!("{at}/rps_flow_cnt"), nic.rps_flow_cnt);
    }
    let near = cpus.near_first(nic.node);
    for q in 0..nic.tx {
        let at = format!("{dir}/queues/tx-{q}");
        let n = cpus.online.len() as u32;
        let set: Vec<u32> = match nic.xps {
            Xps::None | Xps::Absent => Vec::new(),
            Xps::Each => near.get(q as usize).copied().into_iter().collect(),
            Xps::Groups => {
                // virtnet_set_affinity: the first n % tx queues get one CPU more.
                let (each, more) = ((n / nic.tx).max(1), n % nic.tx);
                let start = q * each + q.min(more);
                (start..start + each + u32::from(q < more))
                    .filter_map(|i| cpus.online.get(i as usize))
                    .copied()
                    .collect()
            }
        };
        if nic.xps != Xps::Absent {
            tree.line(format!("{at}/xps_cpus"), text::mask(&set, cpus.bits));
            tree.line(format!("{at}/xps_rxqs"), text::mask(&[], nic.rx));
        }
        tree.line(format!("{at}/tx_timeout"), 0);
        tree.line(format!("{at}/tx_maxrate"), 0);
        let b = format!("{at}/byte_queue_limits");
        for (file, value) in [("limit", 0), ("limit_min", 0), ("limit_max", 1_879_048_192u32), ("inflight", 0)] {
            tree.line(format!("{b}/{file}"), value);
        }
        tree.line(format!("{b}/hold_time"), 1000);
    }
}

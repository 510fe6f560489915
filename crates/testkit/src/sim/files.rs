//! The files that discovery reads, from the model.

use ringwise_model::errno::{EACCES, EINVAL, EISDIR, ELOOP, ENOENT};
use ringwise_model::{Bql, CpuId, CpuSet, Dir, Fact, Nic, NicKind, Topology};
use ringwise_sys::{Error, Result};

use super::State;
use super::tree::{Tree, children, resolve};

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// The kernel's mask in comma groups, as wide as the number of possible CPUs (lib/vsprintf.c, `%*pb`).
pub(super) fn mask(cpus: &CpuSet, possible: &CpuSet) -> String {
    let bits = possible.last().map_or(1, |c| c.0 + 1);
    let groups = bits.div_ceil(32);
    let mut out = String::new();
    for g in (0..groups).rev() {
        let word = (0..32u32).filter(|b| cpus.contains(CpuId(g * 32 + b))).fold(0u32, |w, b| w | 1 << b);
        let digits = if g == groups - 1 { ((bits - 1) % 32 / 4 + 1) as usize } else { 8 };
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(&format!("{word:0digits$x}"));
    }
    out
}

/// A fact as a file: an absent one has no file, an unknown one fails with the errno with which it was read.
fn put<T>(t: &mut Tree, path: String, fact: &Fact<T>, text: impl Fn(&T) -> String) {
    match fact {
        Fact::Known(v) => t.file(path, text(v)),
        Fact::Absent => {}
        Fact::Unknown(u) => t.error(path, u.errno.unwrap_or(EACCES)),
    }
}

/// CPUs, caches and nodes.
pub(super) fn fixed(topology: &Topology) -> Tree {
    let mut t = Tree::default();
    t.file(format!("{CPU}/online"), &topology.online);
    put(&mut t, format!("{CPU}/possible"), &topology.possible, CpuSet::to_string);
    put(&mut t, format!("{CPU}/present"), &topology.present, CpuSet::to_string);
    put(&mut t, format!("{CPU}/isolated"), &topology.isolated, CpuSet::to_string);
    put(&mut t, format!("{CPU}/nohz_full"), &topology.nohz_full, CpuSet::to_string);
    put(&mut t, "/sys/fs/cgroup/cpuset.cpus.isolated".into(), &topology.cgroup_isolated, CpuSet::to_string);
    put(&mut t, format!("{CPU}/smt/active"), &topology.smt_active, |b| u8::from(*b).to_string());
    for cpu in topology.cpus.values() {
        let dir = format!("{CPU}/cpu{}", cpu.id);
        put(&mut t, format!("{dir}/topology/physical_package_id"), &cpu.package, u32::to_string);
        put(&mut t, format!("{dir}/topology/die_id"), &cpu.die, u32::to_string);
        put(&mut t, format!("{dir}/topology/core_id"), &cpu.core, u32::to_string);
        put(&mut t, format!("{dir}/topology/thread_siblings_list"), &cpu.siblings, CpuSet::to_string);
        put(&mut t, format!("{dir}/topology/core_cpus_list"), &cpu.siblings, CpuSet::to_string);
        put(&mut t, format!("{dir}/cpu_capacity"), &cpu.capacity, u32::to_string);
        for (index, level, kind) in [(0, 1, "Data"), (1, 1, "Instruction"), (2, 2, "Unified")] {
            let c = format!("{dir}/cache/index{index}");
            t.file(format!("{c}/level"), level);
            t.file(format!("{c}/type"), kind);
            put(&mut t, format!("{c}/shared_cpu_list"), &cpu.siblings, CpuSet::to_string);
        }
        if let Fact::Known(l3) = &cpu.l3 {
            let c = format!("{dir}/cache/index3");
            t.file(format!("{c}/level"), 3);
            t.file(format!("{c}/type"), "Unified");
            t.file(format!("{c}/shared_cpu_list"), l3);
        }
    }
    if let Fact::Known(nodes) = &topology.nodes {
        for n in nodes.values() {
            t.file(format!("{NODE}/node{}/cpulist", n.id), &n.cpus);
            put(&mut t, format!("{NODE}/node{}/distance", n.id), &n.distances, |d| {
                d.values().map(u32::to_string).collect::<Vec<_>>().join(" ")
            });
        }
    }
    let flags = if topology.hypervisor.is_known() { "fpu apic msr hypervisor" } else { "fpu apic msr" };
    let each =
        topology.online.iter().map(|c| format!("processor\t: {c}\nvendor_id\t: GenuineIntel\nflags\t\t: {flags}\n"));
    t.file("/proc/cpuinfo", each.collect::<Vec<_>>().join("\n"));
    if let Fact::Known(h) = &topology.hypervisor {
        let vendor = match h.as_str() {
            "kvm" | "qemu" => "QEMU",
            "vmware" => "VMware, Inc.",
            "microsoft" | "hyperv" => "Microsoft Corporation",
            "xen" => "Xen",
            other => other,
        };
        t.file("/sys/class/dmi/id/sys_vendor", vendor);
    } else {
        t.file("/sys/class/dmi/id/sys_vendor", "Maker of machines");
    }
    t.file("/sys/class/dmi/id/product_name", "Machine");
    let stat = topology.online.iter().map(|c| format!("cpu{c} 1 0 1 100 0 0 0 0 0 0"));
    t.file("/proc/stat", format!("cpu 1 0 1 100 0 0 0 0 0 0\n{}", stat.collect::<Vec<_>>().join("\n")));
    t
}

/// Files of the host that may change.
fn small(s: &State) -> Tree {
    let mut t = Tree::default();
    let h = &s.host;
    put(&mut t, "/proc/sys/kernel/hostname".into(), &h.name, String::clone);
    put(&mut t, "/proc/sys/kernel/osrelease".into(), &h.kernel, String::clone);
    put(&mut t, "/proc/sys/kernel/random/boot_id".into(), &h.boot_id, String::clone);
    put(&mut t, "/etc/machine-id".into(), &h.machine_id, String::clone);
    put(&mut t, "/proc/sys/net/core/rps_sock_flow_entries".into(), &h.rps_sock_flow_entries, u32::to_string);
    let possible = s.possible();
    for (name, value) in h.sysctls.iter().filter(|(n, _)| *n != "net.core.rps_default_mask") {
        put(&mut t, super::features::sysctl_path(name), value, String::clone);
    }
    for (cpu, value) in &h.cpu_latency {
        put(&mut t, super::features::latency_path(*cpu), value, String::clone);
    }
    put(&mut t, "/proc/sys/net/core/rps_default_mask".into(), &h.rps_default_mask, |m| mask(m, &possible));
    put(&mut t, "/proc/sys/net/ipv4/ip_forward".into(), &h.forwarding, |b| u8::from(*b).to_string());
    put(&mut t, "/proc/sys/net/ipv6/conf/all/forwarding".into(), &h.forwarding, |_| "0".into());
    put(&mut t, "/proc/self/mounts".into(), &h.read_only, |ro| {
        let how = if *ro { "ro" } else { "rw" };
        format!("proc /proc proc {how},nosuid 0 0\nsysfs /sys sysfs {how},nosuid 0 0")
    });
    for (i, name) in h.rivals.known().into_iter().flatten().enumerate() {
        t.file(format!("/proc/{}/comm", 700 + i), name);
        t.file(format!("/proc/{}/cmdline", 700 + i), format!("/usr/sbin/{name}\0"));
    }
    t.file("/proc/1/comm", "init");
    if !s.full_cpus.is_empty() {
        t.file("/sys/kernel/debug/irq/domains/VECTOR", free_vectors(s));
    }
    super::others::files(s, &mut t);
    t
}

/// kernel/irq/matrix.c, `irq_matrix_debug_show`. Where a CPU is not full, it has an arbitrary number of free vectors.
fn free_vectors(s: &State) -> String {
    let row = |c: CpuId| {
        let (free, used) = if s.full_cpus.contains(c) { (0, 202) } else { (180, 22) };
        format!(" {c:>4}  {free:>4}  {:>4}  {:>4} {used:>4}  32-49", 0, 0)
    };
    let rows: Vec<String> = s.topology.online.iter().map(row).collect();
    format!("name:   VECTOR\n size:   0\n | CPU | avl | man | mac | act | vectors\n{}", rows.join("\n"))
}

/// Directory of the function on its bus, and of the device the interface hangs on.
fn places(nic: &Nic, i: usize) -> (Option<String>, String) {
    let Some(bus) = &nic.dev.bus_address else {
        return (None, format!("/sys/devices/virtual/net/{}", nic.dev.name));
    };
    let function = format!("/sys/devices/pci0000:00/{bus}");
    let parent =
        if nic.kind == NicKind::Virtio { format!("{function}/{}", virtio_name(nic, i)) } else { function.clone() };
    (Some(function), format!("{parent}/net/{}", nic.dev.name))
}

/// `virtio1`: interrupts of virtio carry it, not the name of the interface. lab: the names that irq_of finds
pub(super) fn virtio_name(nic: &Nic, i: usize) -> String {
    let named = nic.vectors.iter().flat_map(|v| &v.names).find_map(|n| n.split_once('-').map(|(a, _)| a.to_string()));
    named.filter(|n| n.starts_with("virtio")).unwrap_or_else(|| format!("virtio{i}"))
}

fn device(s: &State, i: usize) -> Tree {
    let mut t = Tree::default();
    let nic = &s.nics[i];
    let (function, dir) = places(nic, i);
    let name = &nic.dev.name;
    let possible = s.possible();
    t.link(format!("/sys/class/net/{name}"), format!("../../{}", &dir["/sys/".len()..]));
    if let Some(index) = nic.dev.ifindex {
        t.file(format!("{dir}/ifindex"), index);
        t.file(format!("{dir}/iflink"), nic.lower.first().copied().unwrap_or(index));
    }
    let mac = nic.dev.permanent_mac.clone().unwrap_or_else(|| "00:00:00:00:00:00".into());
    t.file(format!("{dir}/address"), mac);
    t.file(format!("{dir}/type"), if nic.kind == NicKind::Loopback { 772 } else { 1 });
    t.file(format!("{dir}/flags"), "0x1003");
    let kind = match &nic.kind {
        NicKind::Software { kind } => format!("DEVTYPE={kind}\n"),
        _ => String::new(),
    };
    t.file(format!("{dir}/uevent"), format!("{kind}INTERFACE={name}\nIFINDEX={}", nic.dev.ifindex.map_or(0, |x| x.0)));
    put(&mut t, format!("{dir}/mtu"), &nic.link.mtu, u32::to_string);
    t.file(format!("{dir}/carrier_down_count"), s.extra[i].carrier_downs);
    if s.link_is_back(i) {
        put(&mut t, format!("{dir}/operstate"), &nic.link.operstate, String::clone);
        put(&mut t, format!("{dir}/carrier"), &nic.link.carrier, |b| u8::from(*b).to_string());
        put(&mut t, format!("{dir}/speed"), &nic.link.speed_mbps, u32::to_string);
        put(&mut t, format!("{dir}/duplex"), &nic.link.duplex, String::clone);
    } else {
        t.file(format!("{dir}/operstate"), "down");
        t.file(format!("{dir}/carrier"), 0);
        t.error(format!("{dir}/speed"), 22);
        t.error(format!("{dir}/duplex"), 22);
    }
    for l in &nic.lower {
        if let Some(lower) = s.nics.iter().find(|n| n.dev.ifindex == Some(*l)) {
            t.link(format!("{dir}/lower_{}", lower.dev.name), format!("/sys/class/net/{}", lower.dev.name));
        }
    }
    if let Some(m) = nic.master.and_then(|m| s.nics.iter().find(|n| n.dev.ifindex == Some(m))) {
        t.link(format!("{dir}/master"), format!("/sys/class/net/{}", m.dev.name));
    }
    super::bonding::put(&mut t, s, i, &dir);
    for q in &nic.rx_queues {
        put(&mut t, format!("{dir}/queues/rx-{}/rps_cpus", q.id), &q.rps_cpus, |c| mask(c, &possible));
        put(&mut t, format!("{dir}/queues/rx-{}/rps_flow_cnt", q.id), &q.rps_flow_cnt, u32::to_string);
    }
    super::napi::files(&mut t, nic, &dir);
    let rx: CpuSet = nic.rx_queues.iter().map(|q| CpuId(q.id)).collect();
    for q in &nic.tx_queues {
        let d = format!("{dir}/queues/tx-{}", q.id);
        t.file(format!("{d}/tx_timeout"), 0);
        // lab: "e1000e: one queue has no xps_cpus to read"
        match &q.xps_cpus {
            Fact::Absent => t.error(format!("{d}/xps_cpus"), 2),
            other => put(&mut t, format!("{d}/xps_cpus"), other, |c| mask(c, &possible)),
        }
        put(&mut t, format!("{d}/xps_rxqs"), &q.xps_rxqs, |r| mask(&r.iter().map(|q| CpuId(*q)).collect(), &rx));
        let asked = nic.vector_of(Dir::Tx, q.id).and_then(|v| v.asked.known());
        let stalls = asked.is_some_and(|c| !c.is_empty() && c.is_subset(&s.stalled));
        let stalled = Bql { limit_bytes: 9084, limit_min_bytes: 0, limit_max_bytes: 1 << 30, inflight_bytes: 3028 };
        if let Some(b) = if stalls { Some(&stalled) } else { q.bql.known() } {
            let d = format!("{d}/byte_queue_limits");
            t.file(format!("{d}/limit"), b.limit_bytes);
            t.file(format!("{d}/limit_min"), b.limit_min_bytes);
            t.file(format!("{d}/limit_max"), b.limit_max_bytes);
            t.file(format!("{d}/inflight"), b.inflight_bytes);
        }
    }
    let Some(function) = function else { return t };
    t.link(format!("{dir}/device"), "../..");
    let bus = nic.dev.bus_address.clone().unwrap_or_default();
    let parent = dir.rsplit_once("/net/").map_or(dir.as_str(), |(p, _)| p).to_string();
    if let Fact::Known(driver) = &nic.driver {
        let on = if nic.kind == NicKind::Virtio { "virtio" } else { "pci" };
        t.link(format!("{parent}/driver"), format!("/sys/bus/{on}/drivers/{driver}"));
        t.link(format!("{parent}/subsystem"), format!("/sys/bus/{on}"));
        if nic.kind == NicKind::Virtio {
            t.link(format!("{function}/driver"), "/sys/bus/pci/drivers/virtio-pci");
            t.link(format!("{function}/subsystem"), "/sys/bus/pci");
        }
        t.file(format!("{function}/uevent"), format!("DRIVER={driver}\nPCI_SLOT_NAME={bus}"));
    }
    if nic.kind == NicKind::Vf {
        t.link(format!("{function}/physfn"), "../0000:00:00.0");
    }
    // The kernel reports -1 if the firmware reports no node.
    let node = match &nic.node {
        Fact::Known(n) => n.to_string(),
        _ => "-1".into(),
    };
    t.file(format!("{function}/numa_node"), node);
    put(&mut t, format!("{function}/local_cpulist"), &nic.local_cpus, CpuSet::to_string);
    for v in &nic.vectors {
        t.file(format!("{function}/msi_irqs/{}", v.irq), "msix");
        let irq = format!("/proc/irq/{}", v.irq);
        put(&mut t, format!("{irq}/smp_affinity_list"), &v.asked, CpuSet::to_string);
        put(&mut t, format!("{irq}/smp_affinity"), &v.asked, |c| mask(c, &possible));
        put(&mut t, format!("{irq}/effective_affinity_list"), &v.effective, CpuSet::to_string);
        put(&mut t, format!("{irq}/effective_affinity"), &v.effective, |c| mask(c, &possible));
        put(&mut t, format!("{irq}/affinity_hint"), &v.hint, |c| mask(c, &possible));
        let node = match &v.node {
            Fact::Known(n) => n.to_string(),
            _ => "-1".into(),
        };
        t.file(format!("{irq}/node"), node);
        for n in &v.names {
            t.file(format!("{irq}/{n}/.keep"), "");
        }
        t.file(format!("/sys/kernel/irq/{}/actions", v.irq), v.names.join(","));
        t.file(format!("/sys/kernel/irq/{}/chip_name", v.irq), format!("PCI-MSIX-{bus}"));
    }
    t
}

/// One row for each interrupt that a driver has requested (kernel/irq/proc.c, `show_interrupts`).
fn interrupts(s: &State) -> String {
    let cpus: Vec<CpuId> = s.topology.online.iter().collect();
    let mut out = String::from("           ");
    cpus.iter().for_each(|c| out.push_str(&format!("{:<11}", format!("CPU{c}"))));
    out.push('\n');
    let mut rows: Vec<_> =
        s.nics.iter().flat_map(|n| n.vectors.iter().enumerate().map(move |(k, v)| (v, k, n))).collect();
    rows.sort_by_key(|(v, _, _)| v.irq);
    for (v, k, nic) in rows.into_iter().filter(|(v, _, _)| !v.names.is_empty()) {
        let at = v.effective.known().and_then(CpuSet::first).or(cpus.first().copied());
        let count = v.count.known().copied().unwrap_or(0);
        out.push_str(&format!("{:>4}:", v.irq));
        cpus.iter().for_each(|c| out.push_str(&format!(" {:>10}", if Some(*c) == at { count } else { 0 })));
        let bus = nic.dev.bus_address.as_deref().unwrap_or("");
        out.push_str(&format!("  PCI-MSIX-{bus}  {k}-edge      {}\n", v.names.join(", ")));
    }
    out.push_str(" NMI:");
    cpus.iter().for_each(|_| out.push_str("          0"));
    out.push_str("   Non-maskable interrupts\n LOC:");
    let ticks = |c: &CpuId| if s.late_cpus.get(c) == Some(&false) { 0 } else { s.ticks };
    cpus.iter().for_each(|c| out.push_str(&format!(" {:>10}", ticks(c))));
    out.push_str("   Local timer interrupts\n");
    out
}

fn with_trees<T>(s: &mut State, f: impl FnOnce(&[&Tree]) -> T) -> T {
    for i in 0..s.nics.len() {
        if s.extra[i].tree.is_none() {
            let tree = device(s, i);
            s.extra[i].tree = Some(tree);
        }
    }
    let small = small(s);
    let mut trees: Vec<&Tree> = vec![&small, &s.fixed];
    trees.extend(s.extra.iter().filter_map(|e| e.tree.as_ref()));
    f(&trees)
}

/// The path without links, as a write sees it. None: it does not exist as a file.
pub(super) fn real_path(s: &mut State, path: &str) -> Option<String> {
    with_trees(s, |t| resolve(t, path, true).filter(|p| t.iter().any(|t| t.files.contains_key(p))))
}

pub(super) fn read(s: &mut State, path: &str) -> Result<Vec<u8>> {
    if path == "/proc/interrupts" {
        s.ticks += 1;
        return Ok(interrupts(s).into_bytes());
    }
    let what = format!("read {path}");
    with_trees(s, |trees| {
        let real = resolve(trees, path, true).ok_or_else(|| Error::errno(&what, ELOOP))?;
        match trees.iter().find_map(|t| t.files.get(&real)) {
            Some(Ok(text)) => Ok(text.clone().into_bytes()),
            Some(Err(errno)) => Err(Error::errno(what, *errno)),
            None if !children(trees, &real).is_empty() => Err(Error::errno(what, EISDIR)),
            None => Err(Error::errno(what, ENOENT)),
        }
    })
}

pub(super) fn list(s: &mut State, path: &str) -> Result<Vec<String>> {
    let what = format!("list {path}");
    with_trees(s, |trees| {
        let real = resolve(trees, path, true).ok_or_else(|| Error::errno(&what, ELOOP))?;
        let names = children(trees, &real);
        if names.is_empty() { Err(Error::errno(what, ENOENT)) } else { Ok(names) }
    })
}

pub(super) fn readlink(s: &mut State, path: &str) -> Result<String> {
    let what = format!("readlink {path}");
    with_trees(s, |trees| {
        let real = resolve(trees, path, false).ok_or_else(|| Error::errno(&what, ELOOP))?;
        match trees.iter().find_map(|t| t.links.get(&real)) {
            Some(target) => Ok(target.clone()),
            None if trees.iter().any(|t| t.files.contains_key(&real)) || !children(trees, &real).is_empty() => {
                Err(Error::errno(what, EINVAL))
            }
            None => Err(Error::errno(what, ENOENT)),
        }
    })
}

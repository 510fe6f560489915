//! `/sys/devices/system/cpu` and `/sys/devices/system/node`.

use super::desc::{Arch, Cpu, Host, Numbering};
use super::{Tree, text};

/// Where every CPU of a described machine is.
#[derive(Debug, Clone)]
pub(crate) struct Cpus {
    all: Vec<CpuPosition>,
    pub online: Vec<u32>,
    /// Width of masks in bits.
    pub bits: u32,
    pub nodes: u32,
}

#[derive(Debug, Clone)]
struct CpuPosition {
    cpu: u32,
    package: u32,
    core: u32,
    thread: u32,
    node: u32,
    l3: u32,
}

impl Cpus {
    pub(crate) fn new(d: &Cpu) -> Result<Self, String> {
        let per_package = d.nodes_per_package.max(1);
        if !d.cores.is_multiple_of(per_package) || d.l3_cores.is_some_and(|n| n == 0 || !d.cores.is_multiple_of(n)) {
            return Err("cpu: cores is not a multiple of nodes_per_package or l3_cores".into());
        }
        let (p, c, t) = (d.packages, d.cores, d.threads);
        let mut all = Vec::new();
        for package in 0..p {
            for core in 0..c {
                for thread in 0..t {
                    let cpu = match d.numbering {
                        Numbering::SiblingsLast => thread * p * c + package * c + core,
                        Numbering::SiblingsAdjacent => (package * c + core) * t + thread,
                        Numbering::PackagesInTurns => thread * p * c + core * p + package,
                    };
                    let node = package * per_package + core / (c / per_package);
                    let l3 = d.l3_cores.map_or(package, |n| package * (c / n) + core / n);
                    all.push(CpuPosition { cpu, package, core, thread, node, l3 });
                }
            }
        }
        all.sort_by_key(|x| x.cpu);
        let offline = text::numbers(&d.offline)?;
        let online = all.iter().map(|x| x.cpu).filter(|c| !offline.contains(c)).collect();
        let bits = d.possible.unwrap_or(0).max(p * c * t);
        Ok(Self { all, online, bits, nodes: if d.nodes_per_package == 0 { 0 } else { p * per_package } })
    }

    fn those(&self, f: impl Fn(&CpuPosition) -> bool) -> Vec<u32> {
        self.all.iter().filter(|x| f(x) && self.is_online(x.cpu)).map(|x| x.cpu).collect()
    }

    fn is_online(&self, cpu: u32) -> bool {
        self.online.binary_search(&cpu).is_ok()
    }

    /// Online CPUs of a node; of a negative one, all.
    pub(crate) fn of_node(&self, node: i32) -> Vec<u32> {
        match u32::try_from(node) {
            Ok(n) if self.nodes > 0 => self.those(|x| x.node == n),
            _ => self.online.clone(),
        }
    }

    /// Near CPUs first, each group with first threads before second ones.
    pub(crate) fn near_first(&self, node: i32) -> Vec<u32> {
        let near = self.of_node(node);
        let mut places: Vec<&CpuPosition> = self.all.iter().filter(|x| self.is_online(x.cpu)).collect();
        places.sort_by_key(|x| (!near.contains(&x.cpu), x.thread, x.cpu));
        places.iter().map(|x| x.cpu).collect()
    }

    /// Package of a CPU.
    pub(crate) fn package(&self, cpu: u32) -> u32 {
        self.all.iter().find(|x| x.cpu == cpu).map_or(0, |x| x.package)
    }
}

pub(super) fn write(tree: &mut Tree, host: &Host, cpus: &Cpus) {
    const DIR: &str = "/sys/devices/system/cpu";
    let d = &host.cpu;
    let range = |n: u32| if n == 1 { "0".to_string() } else { format!("0-{}", n - 1) };
    let there: Vec<u32> = cpus.all.iter().map(|x| x.cpu).collect();
    let offline: Vec<u32> = (0..cpus.bits).filter(|c| !cpus.is_online(*c)).collect();
    tree.line(format!("{DIR}/online"), text::list(&cpus.online));
    tree.line(format!("{DIR}/offline"), text::list(&offline));
    tree.line(format!("{DIR}/possible"), range(cpus.bits));
    tree.line(format!("{DIR}/present"), text::list(&there));
    tree.line(format!("{DIR}/isolated"), &d.isolated);
    tree.line(format!("{DIR}/nohz_full"), if d.nohz_full.is_empty() { "(null)" } else { &d.nohz_full });
    tree.line(format!("{DIR}/kernel_max"), 8191);
    tree.line(format!("{DIR}/smt/active"), u32::from(d.threads > 1));
    tree.line(format!("{DIR}/smt/control"), if d.threads > 1 { "on" } else { "notsupported" });
    for x in &cpus.all {
        one(tree, host, cpus, &format!("{DIR}/cpu{}", x.cpu), x);
    }
    nodes(tree, d, cpus);
}

fn one(tree: &mut Tree, host: &Host, cpus: &Cpus, dir: &str, x: &CpuPosition) {
    if x.cpu != 0 || host.arch == Arch::Aarch64 {
        tree.line(format!("{dir}/online"), u32::from(cpus.is_online(x.cpu)));
    }
    if !cpus.is_online(x.cpu) {
        return;
    }
    let t = format!("{dir}/topology");
    let siblings = text::list(&cpus.those(|y| (y.package, y.core) == (x.package, x.core)));
    tree.line(format!("{t}/physical_package_id"), x.package);
    tree.line(format!("{t}/core_id"), x.core);
    tree.line(format!("{t}/thread_siblings_list"), &siblings);
    tree.line(format!("{t}/core_siblings_list"), text::list(&cpus.those(|y| y.package == x.package)));
    if host.since(5, 3) {
        tree.line(format!("{t}/core_cpus_list"), &siblings);
    }
    if host.arch == Arch::X86_64 && host.since(5, 3) {
        tree.line(format!("{t}/die_id"), 0);
    } else if host.arch == Arch::Aarch64 {
        tree.line(format!("{t}/cluster_id"), x.l3);
        tree.line(format!("{dir}/cpu_capacity"), 1024);
    }
    if host.cpu.l3_cores.is_none() {
        return;
    }
    for (index, level, kind) in [(0, 1, "Data"), (1, 1, "Instruction"), (2, 2, "Unified"), (3, 3, "Unified")] {
        let c = format!("{dir}/cache/index{index}");
        let shared = if level == 3 { text::list(&cpus.those(|y| y.l3 == x.l3)) } else { siblings.clone() };
        tree.line(format!("{c}/level"), level);
        tree.line(format!("{c}/type"), kind);
        tree.line(format!("{c}/shared_cpu_list"), shared);
    }
}

fn nodes(tree: &mut Tree, d: &Cpu, cpus: &Cpus) {
    const DIR: &str = "/sys/devices/system/node";
    if cpus.nodes == 0 {
        return;
    }
    let ids: Vec<u32> = (0..cpus.nodes).collect();
    for file in ["online", "possible", "has_cpu", "has_memory"] {
        tree.line(format!("{DIR}/{file}"), text::list(&ids));
    }
    let package = |n: u32| n / d.nodes_per_package;
    for n in &ids {
        let here = cpus.of_node(*n as i32);
        let distances: Vec<String> = ids
            .iter()
            .map(|m| match (n == m, package(*n) == package(*m)) {
                (true, _) => "10".to_string(),
                (_, true) => d.near_distance.to_string(),
                _ => d.far_distance.to_string(),
            })
            .collect();
        tree.line(format!("{DIR}/node{n}/cpulist"), text::list(&here));
        tree.line(format!("{DIR}/node{n}/cpumap"), text::mask(&here, cpus.bits));
        tree.line(format!("{DIR}/node{n}/distance"), distances.join(" "));
        for c in here {
            tree.link(format!("{DIR}/node{n}/cpu{c}"), &format!("/sys/devices/system/cpu/cpu{c}"));
        }
    }
}

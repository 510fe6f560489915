//! CPUs, cores and caches from `/sys/devices/system/cpu` (Documentation/ABI/stable/sysfs-devices-system-cpu).

use std::collections::BTreeMap;

use ringwise_kfmt::{ParseError, cpulist, cpumask, sysfs};
use ringwise_model::cpuset::MAX_CPU;
use ringwise_model::{Cpu, CpuId, CpuSet, Fact, Node, NodeId, Topology, Unread};
use ringwise_sys::Host;

use crate::parts::part;
use crate::read::{Reader, failed};
use crate::{kubelet, natural, numa, virt};

const CPU: &str = "/sys/devices/system/cpu";

/// The topology, and what of it could not be read.
pub fn topology(host: &dyn Host) -> (Topology, Vec<Unread>) {
    parts_of(host, true)
}

/// Without `cores`, only nodes and siblings.
pub(crate) fn parts_of(host: &dyn Host, cores: bool) -> (Topology, Vec<Unread>) {
    let mut r = Reader::new(host);
    let online = online(&mut r);
    let nodes = numa::nodes(&mut r, cores);
    let cpus = cpus(&mut r, &online, &nodes, cores);
    let topology = Topology {
        possible: r.parse(&format!("{CPU}/possible"), cpulist::parse),
        present: r.parse(&format!("{CPU}/present"), cpulist::parse),
        isolated: r.parse(&format!("{CPU}/isolated"), cpulist::parse),
        nohz_full: r.parse(&format!("{CPU}/nohz_full"), nohz_full),
        cgroup_isolated: r.parse("/sys/fs/cgroup/cpuset.cpus.isolated", cpulist::parse),
        pods_exclusive: kubelet::read(&mut r, &online),
        smt_active: r.parse(&format!("{CPU}/smt/active"), sysfs::parse_bool),
        hypervisor: virt::hypervisor(&mut r, cores),
        online,
        cpus,
        nodes,
    };
    (topology, r.unread)
}

/// A kernel that supports `nohz_full=` but was booted without it prints a null pointer.
fn nohz_full(text: &str) -> Result<CpuSet, ParseError> {
    if text.trim() == "(null)" { Ok(CpuSet::new()) } else { cpulist::parse(text) }
}

/// CPUs that are online at this moment.
pub fn online_now(host: &dyn Host) -> Fact<CpuSet> {
    Reader::new(host).parse(&format!("{CPU}/online"), cpulist::parse)
}

/// The kernel's list. In trees without it, the CPUs that `/proc` lists, otherwise the directories.
fn online(r: &mut Reader) -> CpuSet {
    let path = format!("{CPU}/online");
    let listed = r.parse(&path, cpulist::parse);
    if let Fact::Known(set) = listed {
        return set;
    }
    if listed.is_absent() {
        r.unread.push(Unread::new(path, Some(2), "does not exist; the online CPUs were taken from other files"));
    }
    let set =
        |numbers: &mut dyn Iterator<Item = u32>| -> CpuSet { numbers.filter(|n| *n <= MAX_CPU).map(CpuId).collect() };
    // /proc/stat has a line for each online CPU, the head line of /proc/interrupts a column.
    if let Ok(text) = r.host.read_text("/proc/stat") {
        let cpus = set(&mut text.lines().filter_map(|l| natural::number(l.split_whitespace().next()?, "cpu")));
        if !cpus.is_empty() {
            return cpus;
        }
    }
    if let Ok(text) = r.host.read_text("/proc/interrupts") {
        let head = text.lines().next().unwrap_or_default();
        let cpus = set(&mut head.split_whitespace().filter_map(|w| natural::number(w, "CPU")));
        if !cpus.is_empty() {
            return cpus;
        }
    }
    if let Ok(text) = r.host.read_text("/proc/cpuinfo") {
        let cpus = set(&mut text.lines().filter_map(processor));
        if !cpus.is_empty() {
            return cpus;
        }
    }
    match r.host.list(CPU) {
        // Offline CPUs have no topology directory. Kernels that keep the directory show in another file that the CPU is
        // offline.
        Ok(names) => natural::numbers(&names, "cpu")
            .into_iter()
            .filter(|n| *n <= MAX_CPU && r.host.list(&format!("{CPU}/cpu{n}/topology")).is_ok())
            .filter(|n| r.host.read_text(&format!("{CPU}/cpu{n}/online")).map_or(true, |t| t != "0"))
            .map(CpuId)
            .collect(),
        Err(_) => CpuSet::new(),
    }
}

/// `processor\t: 3`, on s390 `processor 3: version = …`.
fn processor(line: &str) -> Option<u32> {
    let (key, value) = line.split_once(':')?;
    let number = key.trim_end().strip_prefix("processor")?.trim_start();
    natural::number(if number.is_empty() { value.trim() } else { number }, "")
}

fn cpus(r: &mut Reader, online: &CpuSet, nodes: &Fact<BTreeMap<NodeId, Node>>, cores: bool) -> BTreeMap<CpuId, Cpu> {
    let mut siblings = Shared::default();
    let mut caches = L3::default();
    let mut capacity_absent = false;
    let mut out = BTreeMap::new();
    for id in online.iter() {
        let dir = format!("{CPU}/cpu{id}/topology");
        let capacity = if capacity_absent || !cores {
            Fact::Absent
        } else {
            r.parse(&format!("{CPU}/cpu{id}/cpu_capacity"), sysfs::parse_u32)
        };
        // The architecture provides the file for all CPUs or for none.
        capacity_absent |= capacity.is_absent();
        out.insert(
            id,
            Cpu {
                id,
                package: part(cores, &dir, || {
                    r.parse(&format!("{dir}/physical_package_id"), unsigned).flat("no package is known")
                }),
                die: part(cores, &dir, || r.parse(&format!("{dir}/die_id"), unsigned).flat("no die is known")),
                core: part(cores, &dir, || r.parse(&format!("{dir}/core_id"), unsigned).flat("no core is known")),
                siblings: siblings.get(id, || own_set(r, id, &dir, &SIBLINGS)),
                l3: part(cores, &dir, || caches.get(r, id)),
                node: node_of(id, nodes),
                capacity,
            },
        );
    }
    out
}

/// -1 (which the kernel prints if the firmware reports nothing) gives `None`.
fn unsigned(text: &str) -> Result<Option<u32>, ParseError> {
    sysfs::parse_i32(text).map(|n| u32::try_from(n).ok())
}

trait Flat {
    fn flat(self, why: &str) -> Fact<u32>;
}

impl Flat for Fact<Option<u32>> {
    fn flat(self, why: &str) -> Fact<u32> {
        self.and_then(|n| match n {
            Some(n) => Fact::Known(n),
            None => Fact::unknown("topology", format!("the kernel reports -1: {why}")),
        })
    }
}

/// Every kernel has the old name; since 5.3 the new name has the same content. Copies of `/sys` may contain only masks.
const SIBLINGS: [&str; 4] = ["thread_siblings_list", "core_cpus_list", "thread_siblings", "core_cpus"];
const SHARED: [&str; 2] = ["shared_cpu_list", "shared_cpu_map"];

/// The set in the first of `files` that contains the CPU itself. A set without the CPU contradicts its meaning, and is
/// unknown.
fn own_set(r: &mut Reader, cpu: CpuId, dir: &str, files: &[&str]) -> Fact<CpuSet> {
    let mut why: Fact<CpuSet> = Fact::Absent;
    for file in files {
        let path = format!("{dir}/{file}");
        let fact = match r.host.read_text(&path) {
            Ok(text) => {
                let set = if file.ends_with("_list") { cpulist::parse(&text) } else { cpumask::parse(&text) };
                match set {
                    Ok(set) if set.contains(cpu) => return Fact::Known(set),
                    Ok(set) => {
                        Fact::unknown(path, format!("found \"{set}\", expected a set that holds CPU {cpu} itself"))
                    }
                    Err(e) => Fact::unknown(path, e.to_string()),
                }
            }
            Err(e) => failed(&path, &e),
        };
        if why.is_absent() {
            why = fact;
        }
    }
    r.note(why)
}

fn node_of(cpu: CpuId, nodes: &Fact<BTreeMap<NodeId, Node>>) -> Fact<NodeId> {
    nodes.as_ref().and_then(|map| {
        let mut lists = map.values().filter(|n| n.cpus.contains(cpu));
        let unknown = |why: String| Fact::unknown(format!("{CPU}/cpu{cpu}"), why);
        match (lists.next(), lists.next()) {
            (Some(n), None) => Fact::Known(n.id),
            (Some(a), Some(b)) => unknown(format!("nodes {} and {} both list this CPU", a.id, b.id)),
            (None, _) => unknown("no node lists this CPU".into()),
        }
    })
}

/// Sets that are equal for all their members, each read only once.
#[derive(Default)]
struct Shared(BTreeMap<CpuId, CpuSet>);

impl Shared {
    fn get(&mut self, cpu: CpuId, read: impl FnOnce() -> Fact<CpuSet>) -> Fact<CpuSet> {
        if let Some(set) = self.0.get(&cpu) {
            return Fact::Known(set.clone());
        }
        let fact = read();
        if let Fact::Known(set) = &fact
            && set.contains(cpu)
        {
            for c in set.iter() {
                self.0.insert(c, set.clone());
            }
        }
        fact
    }
}

/// Level-3 caches. The directory number of level 3 is searched once and confirmed for each domain. Other CPUs
/// may have a level-3 cache even if one has none, because clusters of one machine may differ.
#[derive(Default)]
struct L3 {
    index: Option<u32>,
    domains: Shared,
}

impl L3 {
    fn get(&mut self, r: &mut Reader, cpu: CpuId) -> Fact<CpuSet> {
        let Self { index, domains } = self;
        domains.get(cpu, || {
            let dir = format!("{CPU}/cpu{cpu}/cache");
            let level = |r: &mut Reader, i: u32| {
                let path = format!("{dir}/index{i}/level");
                r.host.read_text(&path).map_err(|e| failed(&path, &e))
            };
            if let Some(i) = *index
                && level(r, i).is_ok_and(|l| l == "3")
            {
                return own_set(r, cpu, &format!("{dir}/index{i}"), &SHARED);
            }
            let names = match r.list(&dir) {
                Fact::Known(names) => names,
                Fact::Absent => return Fact::Absent,
                Fact::Unknown(u) => return Fact::Unknown(u),
            };
            let mut unread = Fact::Absent;
            for i in natural::numbers(&names, "index").into_iter().rev() {
                match level(r, i) {
                    Ok(l) if l == "3" => {
                        *index = Some(i);
                        return own_set(r, cpu, &format!("{dir}/index{i}"), &SHARED);
                    }
                    Ok(_) => {}
                    Err(why) => unread = why,
                }
            }
            r.note(unread)
        })
    }
}

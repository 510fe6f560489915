//! Machines whose topology util-linux or hwloc publishes (`fixtures/topologies`): read from the files of `/sys`, they have the
//! cores, sockets, nodes and caches that `lscpu` and `lstopo` print.

use std::collections::{BTreeMap, BTreeSet};

use ringwise_discover::topology;
use ringwise_model::{CpuId, CpuSet, Fact, NodeId, Topology};

use crate::common::Tree;

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// One CPU. `None`: the tool shows none.
struct Row {
    cpu: u32,
    core: u32,
    /// Which core it is: equal for its threads, and different for all others.
    object: (Option<u32>, u32),
    socket: Option<u32>,
    node: Option<u32>,
    l3: Option<u32>,
}

/// A machine as a tool prints it.
#[derive(Default)]
struct Machine {
    rows: Vec<Row>,
    /// CPUs of each node. Empty: no NUMA.
    nodes: BTreeMap<u32, String>,
    distances: Vec<Vec<u32>>,
    /// The tool's own sums.
    cpus: usize,
    cores: usize,
    /// `None`: the kernel shows no package, and the tool guesses.
    packages: Option<usize>,
    l3s: Option<usize>,
    /// Threads of the cores that have most.
    threads: Option<usize>,
}

fn text(name: &str) -> String {
    let path = format!("{}/../../fixtures/topologies/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// `lscpu`, then `lscpu -p`.
fn lscpu(name: &str) -> Machine {
    let mut m = Machine::default();
    let (mut per_socket, mut sockets) = (Vec::new(), Vec::new());
    for line in text(name).lines().filter(|l| !l.starts_with('#')) {
        if let Some((key, value)) = line.split_once(':') {
            let number = || value.trim().parse::<usize>().unwrap();
            match key {
                "CPU(s)" => m.cpus = number(),
                "Thread(s) per core" => m.threads = m.threads.max(Some(number())),
                "Core(s) per socket" => per_socket.push(number()),
                "Socket(s)" => sockets.push(number()),
                "NUMA node(s)" => {}
                _ => {
                    let node = key.strip_prefix("NUMA node").unwrap().strip_suffix(" CPU(s)").unwrap();
                    m.nodes.insert(node.parse().unwrap(), value.trim().to_string());
                }
            }
        } else {
            let columns: Vec<&str> = line.split(',').collect();
            let at = |i: usize| columns.get(i).and_then(|c| c.parse().ok());
            let number = |i: usize| at(i).unwrap_or_else(|| panic!("{name}: {line}"));
            let (core, socket) = (number(1), at(2));
            m.rows.push(Row { cpu: number(0), core, object: (socket, core), socket, node: at(3), l3: at(8) });
        }
    }
    // One line for each kind of core.
    m.cores = per_socket.iter().zip(&sockets).map(|(c, s)| c * s).sum();
    let shown = m.rows.iter().all(|r| r.socket.is_some());
    m.packages = (shown && sockets.len() == 1).then(|| sockets[0]);
    m
}

/// `lstopo -v`: an outline, and the number of objects of each kind.
fn lstopo(name: &str) -> Machine {
    let mut m = Machine::default();
    let (mut package, mut node, mut l3, mut core, mut object) = (None, None, None, 0, (None, 0));
    let mut cpus: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for line in text(name).lines().filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: &str| line.split_once(at).and_then(|(_, r)| r.split([' ', ')']).next()?.parse::<u32>().ok());
        match words[0] {
            "Package" => package = number("P#"),
            "NUMANode" => node = number("P#"),
            "L3Cache" => l3 = number("L#"),
            // Numbers of cores may repeat in a package with several dies; logical numbers do not.
            "Core" => (core, object) = (number("P#").unwrap(), (None, number("L#").unwrap())),
            "PU" => {
                let cpu = number("P#").unwrap();
                m.rows.push(Row { cpu, core, object, socket: package, node, l3 });
                cpus.entry(node.unwrap()).or_default().insert(CpuId(cpu));
            }
            "depth" => {
                let count = words[2].parse().unwrap();
                match words[3] {
                    "PU" => m.cpus = count,
                    "Core" => m.cores = count,
                    "Package" => m.packages = Some(count),
                    "L3Cache" => m.l3s = Some(count),
                    "NUMANode" => assert_eq!(cpus.len(), count, "{name}"),
                    other => panic!("{name}: {other}"),
                }
            }
            // hwloc divides by the smallest distance, which is 10.
            w if w.parse::<f64>().is_ok() => {
                m.distances.push(words.iter().map(|w| (w.parse::<f64>().unwrap() * 10.0).round() as u32).collect());
            }
            _ => {}
        }
    }
    m.nodes = cpus.into_iter().map(|(n, c)| (n, c.to_string())).collect();
    m
}

/// CPUs that `key` puts together, by CPU.
fn together<K: Ord>(m: &Machine, key: impl Fn(&Row) -> Option<K>) -> BTreeMap<u32, CpuSet> {
    let mut groups: BTreeMap<K, CpuSet> = BTreeMap::new();
    for r in &m.rows {
        if let Some(k) = key(r) {
            groups.entry(k).or_default().insert(CpuId(r.cpu));
        }
    }
    m.rows.iter().filter_map(|r| Some((r.cpu, groups[&key(r)?].clone()))).collect()
}

/// The files of `/sys` of this machine.
fn tree(m: &Machine) -> Tree {
    let mut t = Tree::default();
    let all: CpuSet = m.rows.iter().map(|r| CpuId(r.cpu)).collect();
    for file in ["online", "possible", "present"] {
        t.file(format!("{CPU}/{file}"), format!("{all}\n"));
    }
    let (siblings, l3s) = (together(m, |r| Some(r.object)), together(m, |r| r.l3));
    for r in &m.rows {
        let dir = format!("{CPU}/cpu{}", r.cpu);
        t.file(format!("{dir}/topology/core_id"), format!("{}\n", r.core));
        let package = r.socket.map_or("-1".to_string(), |s| s.to_string());
        t.file(format!("{dir}/topology/physical_package_id"), package + "\n");
        t.file(format!("{dir}/topology/thread_siblings_list"), format!("{}\n", siblings[&r.cpu]));
        // Every machine has an L1; the L3 follows where there is one.
        t.file(format!("{dir}/cache/index0/level"), "1\n");
        t.file(format!("{dir}/cache/index0/shared_cpu_list"), format!("{}\n", siblings[&r.cpu]));
        if let Some(cpus) = l3s.get(&r.cpu) {
            t.file(format!("{dir}/cache/index3/level"), "3\n");
            t.file(format!("{dir}/cache/index3/shared_cpu_list"), format!("{cpus}\n"));
        }
    }
    for (i, (id, cpus)) in m.nodes.iter().enumerate() {
        t.file(format!("{NODE}/node{id}/cpulist"), format!("{cpus}\n"));
        if let Some(row) = m.distances.get(i) {
            let row: Vec<String> = row.iter().map(u32::to_string).collect();
            t.file(format!("{NODE}/node{id}/distance"), row.join(" ") + "\n");
        }
    }
    t
}

fn distinct<T: Ord>(items: impl Iterator<Item = T>) -> usize {
    items.collect::<BTreeSet<T>>().len()
}

/// Compares with the tool's table and with its sums.
fn agrees(name: &str, m: &Machine) -> Topology {
    let (t, _) = topology(&tree(m).host());
    assert_eq!((t.online.len(), t.cpus.len()), (m.cpus, m.cpus), "{name}");
    let siblings = || t.cpus.values().map(|c| c.siblings.known().unwrap());
    assert_eq!(distinct(siblings().map(|s| s.to_string())), m.cores, "{name}: cores");
    assert_eq!(siblings().map(CpuSet::len).max(), m.threads.or(Some(m.cpus / m.cores)), "{name}: threads");
    if let Some(packages) = m.packages {
        assert_eq!(distinct(t.cpus.values().map(|c| *c.package.known().unwrap())), packages, "{name}: packages");
    }
    let l3 = together(m, |r| r.l3);
    for r in &m.rows {
        let cpu = &t.cpus[&CpuId(r.cpu)];
        let found = (cpu.core.known(), cpu.package.known());
        assert_eq!(found, (Some(&r.core), r.socket.as_ref()), "{name}: CPU {}", r.cpu);
        assert_eq!(cpu.l3.known(), l3.get(&r.cpu), "{name}: L3 of CPU {}", r.cpu);
        assert_eq!(cpu.l3.is_absent(), r.l3.is_none(), "{name}: L3 of CPU {}", r.cpu);
        assert_eq!(cpu.node.known(), r.node.map(NodeId).as_ref(), "{name}: node of CPU {}", r.cpu);
        assert_eq!(cpu.node.is_absent(), m.nodes.is_empty(), "{name}: node of CPU {}", r.cpu);
    }
    let nodes = t.nodes.known().into_iter().flatten().map(|(id, n)| (id.0, n.cpus.to_string()));
    let printed = m.nodes.iter().map(|(id, cpus)| (*id, cpus.parse::<CpuSet>().unwrap().to_string()));
    assert_eq!(nodes.collect::<Vec<_>>(), printed.collect::<Vec<_>>(), "{name}: nodes");
    if let Some(l3s) = m.l3s {
        let known = t.cpus.values().filter_map(|c| c.l3.known());
        assert_eq!(distinct(known.map(|s| s.to_string())), l3s, "{name}: L3 caches");
    }
    t
}

#[test]
fn servers_as_lscpu_prints_them() {
    let epyc = agrees("epyc-7451", &lscpu("epyc-7451"));
    assert_eq!(epyc.siblings_of(CpuId(3)).to_string(), "3,51");
    assert_eq!(epyc.l3_of(CpuId(3)).to_string(), "3-5,51-53");
    // Half of the CPUs belong to no node: unknown, because a node that exists does not list them.
    let xeon = agrees("xeon-x7550", &lscpu("xeon-x7550"));
    assert!(matches!(xeon.cpus[&CpuId(1)].node, Fact::Unknown(_)));
    assert_eq!(xeon.l3_of(CpuId(1)).len(), 16);
}

#[test]
fn smt4_without_packages_and_with_a_node_of_memory_only() {
    let t = agrees("power7", &lscpu("power7"));
    assert!(matches!(t.cpus[&CpuId(0)].package, Fact::Unknown(_)), "the kernel prints -1");
    assert!(t.node(NodeId(1)).unwrap().cpus.is_empty());
}

#[test]
fn cores_of_several_kinds() {
    let t = agrees("meteor-lake", &lscpu("meteor-lake"));
    assert_eq!(t.siblings_of(CpuId(0)).to_string(), "0,5", "threads of a core need not be neighbours");
    assert_eq!(t.siblings_of(CpuId(12)).to_string(), "12");
    assert!(t.cpus[&CpuId(21)].l3.is_absent());
    let t = agrees("arm-a510-a710-a715-x3", &lscpu("arm-a510-a710-a715-x3"));
    assert_eq!(distinct(t.cpus.values().map(|c| *c.package.known().unwrap())), 3);
    assert!(t.nodes.is_absent());
}

#[test]
fn machines_as_hwloc_prints_them() {
    let t = agrees("dgx-gb10", &lstopo("dgx-gb10.lstopo"));
    assert_eq!(t.l3_of(CpuId(12)).to_string(), "10-19");
    let m = lstopo("opteron-48-sparse-nodes.lstopo");
    let t = agrees("opteron-48-sparse-nodes", &m);
    let ids: Vec<u32> = m.nodes.keys().copied().collect();
    assert_eq!(ids, [0, 1, 2, 33, 34, 45, 72, 73]);
    for (from, row) in ids.iter().zip(&m.distances) {
        for (to, distance) in ids.iter().zip(row) {
            assert_eq!(t.distance(NodeId(*from), NodeId(*to)), Some(*distance), "{from} to {to}");
        }
    }
}

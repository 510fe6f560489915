//! Hand-made hosts for golden tests, and the comparison with golden files.
#![allow(dead_code, reason = "each test program uses a part")]

pub(crate) mod lay;
pub(crate) mod plans;
pub(crate) mod schema;

use std::collections::BTreeMap;
use std::path::PathBuf;

use ringwise_model::nic::Pause;
use ringwise_model::*;
use ringwise_testkit::machines::plain_nic;

/// Compares with `tests/golden/NAME`; `RINGWISE_BLESS=1` rewrites it.
pub(crate) fn golden(name: &str, got: &str) {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    ringwise_testkit::golden::compare(&dir.join(name), got);
}

pub(crate) fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

/// `nodes` × `cores` × `threads`, siblings adjacent, one L3 for `l3_cores` cores.
pub(crate) fn topology(nodes: u32, cores: u32, threads: u32, l3_cores: u32) -> Topology {
    let per_node = cores * threads;
    let n = nodes * per_node;
    let cpu = |i: u32| {
        let core = i / threads;
        let node = i / per_node;
        let group = core / l3_cores;
        Cpu {
            id: CpuId(i),
            package: Fact::Known(node),
            die: Fact::Known(0),
            core: Fact::Known(core % cores),
            siblings: Fact::Known(CpuSet::range(core * threads, core * threads + threads - 1)),
            l3: Fact::Known(CpuSet::range(group * l3_cores * threads, (group + 1) * l3_cores * threads - 1)),
            node: Fact::Known(NodeId(node)),
            capacity: Fact::Absent,
        }
    };
    let node = |k: u32| Node {
        id: NodeId(k),
        cpus: CpuSet::range(k * per_node, (k + 1) * per_node - 1),
        distances: Fact::Known((0..nodes).map(|o| (NodeId(o), if o == k { 10 } else { 20 })).collect()),
        memory: Fact::Absent,
    };
    Topology {
        online: CpuSet::range(0, n - 1),
        possible: Fact::Known(CpuSet::range(0, n - 1)),
        present: Fact::Known(CpuSet::range(0, n - 1)),
        isolated: Fact::Known(CpuSet::new()),
        nohz_full: Fact::Known(CpuSet::new()),
        cgroup_isolated: Fact::Known(CpuSet::new()),
        pods_exclusive: Fact::Absent,
        smt_active: Fact::Known(threads > 1),
        cpus: (0..n).map(|i| (CpuId(i), cpu(i))).collect(),
        nodes: Fact::Known((0..nodes).map(|k| (NodeId(k), node(k))).collect()),
        hypervisor: Fact::Absent,
    }
}

/// A combined-queue device whose queue `q` goes to `cpus[q]`.
pub(crate) fn nic(name: &str, index: u32, driver: &str, node: u32, cpus: &[u32], all: &CpuSet) -> Nic {
    let count = cpus.len() as u32;
    let vector = |q: u32| Vector {
        irq: IrqId(30 + index * 100 + q),
        names: vec![format!("{name}-TxRx-{q}")],
        role: Role::Queues { rx: vec![q], tx: vec![q] },
        confidence: Confidence::Sure,
        source: MapSource::MsiAndName,
        napi: None,
        asked: Fact::Known(all.clone()),
        effective: Fact::Known(CpuSet::one(CpuId(cpus[q as usize]))),
        hint: Fact::Absent,
        node: Fact::Known(NodeId(node)),
        movable: Movable::UnknownUntilTried,
        count: Fact::Known(1000 + u64::from(q)),
    };
    let mut vectors: Vec<Vector> = (0..count).map(vector).collect();
    vectors.push(Vector {
        irq: IrqId(29 + index * 100),
        names: vec![name.to_string()],
        role: Role::Control,
        ..vectors[0].clone()
    });
    let plain = plain_nic(name, index);
    Nic {
        dev: DevId {
            bus_address: Some(format!("0000:{:02x}:00.0", index + 1)),
            permanent_mac: Some(format!("52:54:00:00:00:{index:02x}")),
            ..plain.dev
        },
        driver: Fact::Known(driver.into()),
        node: Fact::Known(NodeId(node)),
        local_cpus: Fact::unknown("local_cpulist", "not in this capture"),
        channels: Fact::Known(Channels {
            rx: None,
            tx: None,
            combined: Some(Count { now: count, max: 8.max(count) }),
            other: Some(Count { now: 1, max: 1 }),
        }),
        rx_queues: (0..count)
            .map(|id| RxQueue { id, rps_cpus: Fact::Known(all.clone()), rps_flow_cnt: Fact::Known(0) })
            .collect(),
        tx_queues: (0..count)
            .map(|id| TxQueue {
                id,
                xps_cpus: Fact::Known(CpuSet::new()),
                xps_rxqs: Fact::Known(vec![]),
                bql: Fact::Absent,
            })
            .collect(),
        vectors,
        rss: Fact::Known(Rss {
            symmetric: ringwise_model::not_requested(),
            contexts: ringwise_model::not_requested(),
            table: (0..128).map(|i| i * count / 128).collect(),
            function: Fact::Known("toeplitz".into()),
            key: Fact::Known("6d5a".into()),
            fields: [("tcp4", "sdfn"), ("tcp6", "sdfn"), ("udp4", "sd"), ("udp6", "sd")]
                .map(|(a, b)| (a.to_string(), b.to_string()))
                .into(),
        }),
        rings: Fact::Known(Rings::sizes(Some(Count { now: 256, max: 4096 }), Some(Count { now: 256, max: 4096 }))),
        coalesce: Fact::Known(Coalesce(BTreeMap::from([("rx-usecs".into(), 3), ("tx-usecs".into(), 3)]))),
        pause: Fact::Known(Pause { autoneg: Some(true), rx: Some(true), tx: Some(true) }),
        rules: ringwise_model::not_requested(),
        addresses: Fact::Known(vec!["192.0.2.1/24".into(), "2001:db8::1/64".into()]),
        ..plain
    }
}

pub(crate) fn host(topology: Topology, nics: Vec<Nic>) -> Snapshot {
    Snapshot {
        host: Host {
            name: Fact::Known("edge3".into()),
            kernel: Fact::Known("6.12.48".into()),
            boot_id: Fact::Known("b0071d".into()),
            machine_id: Fact::Known("3ac41e".into()),
            rps_sock_flow_entries: Fact::Known(0),
            rps_default_mask: Fact::Absent,
            rivals: Fact::Known(vec!["irqbalance".into()]),
            rival_details: Vec::new(),
            irqbalance: Fact::unknown("irqbalance", "not read"),
            sysctls: Default::default(),
            cpu_latency: Default::default(),
            power: None,
            forwarding: Fact::Known(true),
            read_only: Fact::Known(false),
        },
        topology,
        nics,
        control: Fact::Known(Vec::new()),
        held: Vec::new(),
        without_interface: Vec::new(),
        bystanders: QueuelessInterfaces {
            count: BTreeMap::from([("vlan".into(), 2114), ("veth".into(), 37), ("bridge".into(), 1)]),
            above: BTreeMap::from([(IfIndex(3), BTreeMap::from([("vlan".into(), 2114)]))]),
        },
        unread: vec![],
    }
}

/// The host of the mock-ups, as a kernel leaves it.
pub(crate) fn edge3() -> Snapshot {
    let all = set("0-15");
    let mut eth0 = nic("eth0", 1, "e1000e", 0, &[0], &all);
    eth0.rss = Fact::Absent;
    eth0.channels = Fact::Absent;
    let eth1 = nic("eth1", 2, "igb", 0, &[0, 0, 0, 0, 9, 9, 2, 3], &all);
    let eth2 = nic("eth2", 3, "igb", 1, &[8, 8, 8, 8, 1, 1, 10, 11], &all);
    let mut eth3 = nic("eth3", 4, "vmxnet3", 0, &[0, 0, 0, 0], &all);
    eth3.node = Fact::unknown("/sys/class/net/eth3/device/numa_node", "the firmware reports -1");
    eth3.link.carrier = Fact::Known(false);
    eth3.link.operstate = Fact::Known("down".into());
    eth3.link.speed_mbps = Fact::Absent;
    for v in &mut eth3.vectors {
        v.effective = Fact::Known(CpuSet::new());
    }
    host(topology(2, 4, 2, 4), vec![eth0, eth1, eth2, eth3])
}

/// Four nodes of 16 CPUs, 8 queues near.
pub(crate) fn big64() -> Snapshot {
    let all = set("0-63");
    host(topology(4, 8, 2, 8), vec![nic("eth0", 1, "ice", 1, &[16, 18, 20, 22, 24, 26, 28, 30], &all)])
}

/// Two nodes of 128 CPUs, 8 L3 domains a node, 16 queues of which one is far.
pub(crate) fn epyc256() -> Snapshot {
    let all = set("0-255");
    let cpus: Vec<u32> = (0..16).map(|q| if q == 15 { 130 } else { q * 8 }).collect();
    host(topology(2, 64, 2, 8), vec![nic("ens1f0", 1, "mlx5_core", 0, &cpus, &all)])
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Captured and hand-written hosts of the repository: name and file.
pub(crate) fn fixtures() -> Vec<(String, PathBuf)> {
    let dir = root().join("fixtures/hosts");
    let mut out: Vec<(String, PathBuf)> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter_map(|p| {
            let file =
                ["tree.tar.gz", "host.tar.gz", "capture.tar.gz"].iter().map(|f| p.join(f)).find(|f| f.exists())?;
            Some((p.file_name()?.to_string_lossy().into_owned(), file))
        })
        .collect();
    out.sort();
    assert!(!out.is_empty(), "no host in {}", dir.display());
    out
}

/// The schema of a document in its newest version.
pub(crate) fn newest_schema(name: &str) -> serde_json::Value {
    let dir = root().join("schemas");
    let version = |v: &u32| dir.join(format!("{name}.v{v}.json"));
    let path = (1..).map(|v| version(&v)).take_while(|p| p.exists()).last();
    serde_json::from_slice(&std::fs::read(path.unwrap_or_else(|| panic!("no schema of {name}"))).unwrap()).unwrap()
}

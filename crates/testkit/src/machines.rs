//! Whole hosts from a short description: processors, interfaces, and their present settings.

use std::collections::BTreeMap;

use ringwise_model::{
    Bond, BondMember, Bql, Channels, Confidence, ControlPath, Count, CpuId, CpuSet, DevId, Fact, Host, IfIndex,
    Immovable, IrqId, Link, MapSource, Movable, Nic, NicKind, NodeId, QueuelessInterfaces, ReasonFields, Role, RxQueue,
    Snapshot, TxQueue, User, UserspaceFunction, Vector,
};
use serde::{Deserialize, Serialize};

use crate::topo::{CpuSpec, Numbering};

/// Which queues share a vector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vectors {
    /// `TxRx-N`: one vector per pair.
    #[default]
    Paired,
    /// `rx-N` and `tx-N`.
    Split,
    /// All queues on one.
    Shared,
    /// Two pairs on each.
    Twos,
    /// Interrupts cannot be matched to queues.
    None,
}

/// Where the interrupts run before anything is planned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Irqs {
    /// The affinity is all CPUs; they run on the first.
    #[default]
    AllOnFirst,
    /// The affinity is all CPUs; they are spread over the CPUs in turn.
    Round,
    /// The affinity is all CPUs; no interrupt occurred yet.
    NoneYet,
}

/// One interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NicSpec {
    /// Interface name, `eth0`.
    pub name: String,
    /// Name of the kernel module, `igb`; `virtio_net` makes a virtio device.
    pub driver: String,
    /// `None`: the firmware reports -1.
    pub node: Option<u32>,
    /// As `local_cpulist` in sysfs. `None`: the CPUs of `node`, or all online CPUs without a node.
    pub local_cpus: Option<CpuSet>,
    /// Receive queues, and as many transmit queues.
    pub queues: u32,
    /// 0: the driver has no channel counts.
    pub max_queues: u32,
    /// The assignment of queues to vectors; it also determines the names of the interrupts.
    pub vectors: Vectors,
    /// Requested and effective affinity, and the counts of interrupts.
    pub irqs: Irqs,
    /// The link is administratively down.
    pub down: bool,
    /// Interrupts that the kernel manages.
    pub managed: bool,
    /// `rps_cpus` of every receive queue; empty: RPS is off.
    pub rps: CpuSet,
    /// Entries of the RFS table of every receive queue; 0: RFS is off.
    pub rps_flow_cnt: u32,
    /// Users of the device besides the kernel's stack, such as an XDP program.
    pub users: Vec<User>,
    /// Interface index of the bond that it is a member of.
    pub master: Option<u32>,
}

/// One host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Host name.
    pub name: String,
    /// Processors, caches and NUMA nodes.
    pub cpu: CpuSpec,
    /// The first one has interface index 2.
    pub nics: Vec<NicSpec>,
    /// Bonds by interface index, for `master`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bonds: Vec<u32>,
    /// `net.core.rps_sock_flow_entries`; 0: RFS is off.
    #[serde(default)]
    pub rps_sock_flow_entries: u32,
    /// Connections that must not be cut; empty: the host has none, and that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control: Vec<ControlPath>,
    /// Devices that a user-space driver has taken from the kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<UserspaceFunction>,
}

impl NicSpec {
    /// All other members are as [`Default`] has them: the link is up and no CPU is named anywhere.
    pub fn new(name: &str, driver: &str, node: Option<u32>, queues: u32, max_queues: u32) -> Self {
        Self { name: name.into(), driver: driver.into(), node, queues, max_queues, ..Self::default() }
    }
}

fn vector(irq: u32, name: String, rx: Vec<u32>, tx: Vec<u32>, online: &CpuSet) -> Vector {
    Vector {
        irq: IrqId(irq),
        names: vec![name],
        role: Role::Queues { rx, tx },
        confidence: Confidence::Sure,
        source: MapSource::MsiAndName,
        napi: None,
        asked: Fact::Known(online.clone()),
        effective: Fact::Known(CpuSet::from_iter(online.first())),
        hint: Fact::Absent,
        node: Fact::Absent,
        movable: Movable::UnknownUntilTried,
        count: Fact::Known(0),
    }
}

/// Vectors for `n` queue pairs.
pub(crate) fn vectors(dev: &str, style: Vectors, n: u32, first_irq: u32, online: &CpuSet) -> Vec<Vector> {
    let all = || (0..n).collect::<Vec<u32>>();
    match style {
        Vectors::Paired => {
            (0..n).map(|q| vector(first_irq + q, format!("{dev}-TxRx-{q}"), vec![q], vec![q], online)).collect()
        }
        Vectors::Split => {
            let rx = (0..n).map(|q| vector(first_irq + q, format!("{dev}-rx-{q}"), vec![q], vec![], online));
            let tx = (0..n).map(|q| vector(first_irq + n + q, format!("{dev}-tx-{q}"), vec![], vec![q], online));
            rx.chain(tx).collect()
        }
        Vectors::Shared => vec![vector(first_irq, dev.to_string(), all(), all(), online)],
        Vectors::Twos => (0..n.div_ceil(2))
            .map(|v| {
                let two: Vec<u32> = (2 * v..(2 * v + 2).min(n)).collect();
                vector(first_irq + v, format!("{dev}-{v}"), two.clone(), two, online)
            })
            .collect(),
        Vectors::None => Vec::new(),
    }
}

pub(crate) fn rx_queue(id: u32, spec_rps: &CpuSet, flow_cnt: u32) -> RxQueue {
    RxQueue { id, rps_cpus: Fact::Known(spec_rps.clone()), rps_flow_cnt: Fact::Known(flow_cnt) }
}

pub(crate) fn tx_queue(id: u32, of: u32) -> TxQueue {
    TxQueue {
        id,
        xps_cpus: if of > 1 { Fact::Known(CpuSet::new()) } else { Fact::Absent },
        xps_rxqs: Fact::Known(Vec::new()),
        bql: Fact::Known(Bql { limit_bytes: 0, limit_min_bytes: 0, limit_max_bytes: 1 << 30, inflight_bytes: 0 }),
    }
}

/// An interface that is up at 1 Gbit/s, without a driver, queues or settings. Values that discovery reads only on request were
/// not requested.
pub fn plain_nic(name: &str, index: u32) -> Nic {
    Nic {
        dev: DevId { name: name.into(), ifindex: Some(IfIndex(index)), bus_address: None, permanent_mac: None },
        kind: NicKind::Physical,
        driver: Fact::Absent,
        node: Fact::Absent,
        local_cpus: Fact::Absent,
        link: Link {
            operstate: Fact::Known("up".into()),
            carrier: Fact::Known(true),
            speed_mbps: Fact::Known(1000),
            duplex: Fact::Known("full".into()),
            mtu: Fact::Known(1500),
        },
        labels: Vec::new(),
        lower: Vec::new(),
        master: None,
        bond: None,
        channels: Fact::Absent,
        rx_queues: Vec::new(),
        tx_queues: Vec::new(),
        vectors: Vec::new(),
        rss: Fact::Absent,
        rings: Fact::Absent,
        coalesce: Fact::Absent,
        pause: Fact::Absent,
        features: ringwise_model::not_requested(),
        private_flags: ringwise_model::not_requested(),
        firmware: ringwise_model::not_requested(),
        pcie: ringwise_model::not_requested(),
        virtual_functions: ringwise_model::not_requested(),
        queue_coalesce: ringwise_model::not_requested(),
        rules: Fact::Absent,
        napi: ringwise_model::not_requested(),
        shapers: ringwise_model::not_requested(),
        classes: ringwise_model::not_requested(),
        xdp_metadata: ringwise_model::not_requested(),
        users: Fact::Absent,
        addresses: Fact::Known(Vec::new()),
        unread: Vec::new(),
    }
}

fn nic(at: u32, s: &NicSpec, online: &CpuSet, local: &CpuSet) -> Nic {
    let mut vs = vectors(&s.name, s.vectors, s.queues, 30 + 1000 * at, online);
    let cpus: Vec<CpuId> = online.iter().collect();
    for (i, v) in vs.iter_mut().enumerate() {
        v.effective = match s.irqs {
            Irqs::AllOnFirst => Fact::Known(CpuSet::from_iter(online.first())),
            Irqs::Round => Fact::Known(CpuSet::one(cpus[i % cpus.len()])),
            Irqs::NoneYet => Fact::Known(CpuSet::new()),
        };
        if s.managed {
            // As an earlier version wrote it, without a code.
            let why = ReasonFields { why: "the kernel manages it".into(), code: None, facts: None };
            v.movable = Movable::No(Immovable::Other(why));
            v.asked = v.effective.clone();
        }
    }
    if s.vectors != Vectors::None {
        let mut own = vector(30 + 1000 * at + 999, s.name.clone(), vec![], vec![], online);
        own.role = Role::Control;
        vs.push(own);
    }
    let count = |now| Some(Count { now, max: s.max_queues });
    let split = s.vectors == Vectors::Split && s.driver != "igb" && s.driver != "virtio_net";
    let channels = match (s.max_queues, split) {
        (0, _) => Fact::Absent,
        (_, true) => Fact::Known(Channels { rx: count(s.queues), tx: count(s.queues), combined: None, other: None }),
        (_, false) => Fact::Known(Channels { rx: None, tx: None, combined: count(s.queues), other: count(1) }),
    };
    let plain = plain_nic(&s.name, at + 2);
    Nic {
        dev: DevId {
            bus_address: Some(format!("0000:{:02x}:00.0", at + 3)),
            permanent_mac: Some(format!("02:00:00:00:00:{at:02x}")),
            ..plain.dev
        },
        kind: if s.driver == "virtio_net" { NicKind::Virtio } else { NicKind::Physical },
        driver: Fact::Known(s.driver.clone()),
        node: match s.node {
            Some(n) => Fact::Known(NodeId(n)),
            None => Fact::unknown(format!("/sys/class/net/{}/device/numa_node", s.name), "-1: unknown to the firmware"),
        },
        local_cpus: Fact::Known(local.clone()),
        link: Link {
            operstate: Fact::Known(if s.down { "down" } else { "up" }.into()),
            carrier: Fact::Known(!s.down),
            speed_mbps: if s.down { Fact::Absent } else { plain.link.speed_mbps },
            ..plain.link
        },
        master: s.master.map(IfIndex),
        channels,
        rx_queues: (0..s.queues).map(|q| rx_queue(q, &s.rps, s.rps_flow_cnt)).collect(),
        tx_queues: (0..s.queues).map(|q| tx_queue(q, s.queues)).collect(),
        vectors: vs,
        users: if s.users.is_empty() { Fact::Absent } else { Fact::Known(s.users.clone()) },
        ..plain
    }
}

fn bond(index: u32, members: &[&Nic], online: &CpuSet) -> Nic {
    let name = format!("bond{index}");
    let mut n = nic(index, &NicSpec { vectors: Vectors::None, ..NicSpec::new(&name, "", None, 1, 0) }, online, online);
    n.dev = DevId { name, ifindex: Some(IfIndex(index)), bus_address: None, permanent_mac: None };
    n.kind = NicKind::Software { kind: "bond".into() };
    n.driver = Fact::Absent;
    n.bond = Some(Bond {
        mode: Fact::Known("active-backup".into()),
        active: members.first().map_or(Fact::Absent, |m| Fact::Known(m.name().to_string())),
        aggregator: Fact::Absent,
        members: members.iter().map(|m| member(m)).collect(),
    });
    n.lower = members.iter().filter_map(|m| m.dev.ifindex).collect();
    n
}

fn member(nic: &Nic) -> BondMember {
    let up = if nic.link.carrier == Fact::Known(true) { "up" } else { "down" };
    BondMember {
        name: nic.name().to_string(),
        state: Fact::Known("backup".into()),
        mii_status: Fact::Known(up.into()),
        aggregator: Fact::Absent,
        actor: Fact::Absent,
        partner: Fact::Absent,
    }
}

impl HostSpec {
    /// What discovery would return for such a host.
    pub fn snapshot(&self) -> Snapshot {
        let topology = self.cpu.topology();
        let nics = self.nics.iter().enumerate().map(|(i, n)| {
            let of_node = n.node.and_then(|n| topology.node(NodeId(n))).map(|n| n.cpus.clone());
            let local = n.local_cpus.clone().or(of_node).unwrap_or_else(|| topology.online.clone());
            nic(i as u32, n, &topology.online, &local)
        });
        let mut nics: Vec<Nic> = nics.collect();
        for i in &self.bonds {
            let of: Vec<&Nic> = nics.iter().filter(|n| n.master == Some(IfIndex(*i))).collect();
            let bond = bond(*i, &of, &topology.online);
            nics.push(bond);
        }
        Snapshot {
            nics,
            host: Host {
                name: Fact::Known(self.name.clone()),
                kernel: Fact::Known("6.12.48".into()),
                boot_id: Fact::Known("00000000-0000-4000-8000-000000000001".into()),
                machine_id: Fact::Known("00000000000000000000000000000001".into()),
                rps_sock_flow_entries: Fact::Known(self.rps_sock_flow_entries),
                rps_default_mask: Fact::Known(CpuSet::new()),
                rivals: Fact::Known(Vec::new()),
                rival_details: Vec::new(),
                irqbalance: Fact::Absent,
                sysctls: Default::default(),
                cpu_latency: Default::default(),
                power: None,
                forwarding: Fact::Known(false),
                read_only: Fact::Known(false),
            },
            topology,
            bystanders: QueuelessInterfaces { count: BTreeMap::new(), above: BTreeMap::new() },
            control: Fact::Known(self.control.clone()),
            held: self.held.clone(),
            without_interface: Vec::new(),
            unread: Vec::new(),
        }
    }
}

/// A host with default settings and no bonds.
pub fn host(name: &str, cpu: CpuSpec, nics: Vec<NicSpec>) -> HostSpec {
    HostSpec {
        name: name.into(),
        cpu,
        nics,
        bonds: Vec::new(),
        rps_sock_flow_entries: 0,
        control: Vec::new(),
        held: Vec::new(),
    }
}

/// Ten machines for which layouts are tested.
pub fn ten() -> Vec<HostSpec> {
    let igb = |name: &str, node, queues| NicSpec::new(name, "igb", node, queues, 8);
    let two_nodes = CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) };
    let socket = CpuSpec { nodes: 2, l3s: 8, ..CpuSpec::flat(4, 1) };
    vec![
        host("router16", two_nodes.clone(), vec![igb("eth1", Some(0), 8), igb("eth2", Some(1), 8)]),
        host("router3", CpuSpec::flat(6, 1), ["eth1", "eth2", "eth3"].map(|n| igb(n, Some(0), 6)).to_vec()),
        host(
            "epyc2x64",
            CpuSpec { packages: 2, ..socket },
            vec![NicSpec::new("ens1", "ice", Some(1), 64, 128), NicSpec::new("ens2", "mlx5_core", Some(2), 63, 63)],
        ),
        host(
            "interleaved",
            CpuSpec { packages: 8, alternate_nodes: Some(2), ..CpuSpec::flat(1, 1) },
            vec![NicSpec { local_cpus: Some("0,2,4,6".parse().unwrap_or_default()), ..igb("eth0", None, 4) }],
        ),
        host(
            "article48",
            CpuSpec { packages: 2, numbering: Numbering::ThreadsLast, ..CpuSpec::flat(12, 2) },
            vec![NicSpec::new("ens1f0", "i40e", Some(0), 48, 48)],
        ),
        host(
            "guest",
            CpuSpec { packages: 2, hypervisor: Some("kvm".into()), ..CpuSpec::flat(4, 1) },
            vec![NicSpec { vectors: Vectors::Split, ..NicSpec::new("eth0", "virtio_net", None, 4, 8) }],
        ),
        host("one", CpuSpec::flat(1, 1), vec![NicSpec::new("eth0", "e1000e", None, 1, 0)]),
        host(
            "big64",
            CpuSpec { packages: 4, ..CpuSpec::flat(8, 2) },
            vec![NicSpec::new("eth0", "ice", Some(3), 16, 64), NicSpec::new("eth1", "ice", Some(3), 16, 64)],
        ),
        host(
            "isolated",
            CpuSpec {
                isolated: "4-7".parse().unwrap_or_default(),
                nohz_full: "4-7".parse().unwrap_or_default(),
                offline: "3".parse().unwrap_or_default(),
                ..two_nodes
            },
            vec![igb("eth0", Some(0), 4), NicSpec { node: Some(1), ..NicSpec::new("eth1", "e1000e", None, 1, 0) }],
        ),
        host(
            "hybrid",
            CpuSpec { nodes: 0, small_cores: 8, ..CpuSpec::flat(16, 1) },
            vec![NicSpec::new("enp1s0", "igc", None, 4, 4), NicSpec::new("enp2s0", "r8169", None, 1, 0)],
        ),
    ]
}

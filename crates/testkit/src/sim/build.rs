//! Describes a small host: CPUs, nodes and the lab's interfaces.

use std::collections::BTreeMap;

use ringwise_model::nic::Pause;
use ringwise_model::{
    Bond, Channels, Coalesce, Count, Cpu, CpuId, CpuSet, DevId, Fact, Host, IfIndex, Nic, NicKind, Node, NodeId, Power,
    QueuelessInterfaces, Rings, Role, Rss, Rules, RxQueue, Snapshot, Topology, TxQueue, XdpMetadata,
};

use super::driver;
use super::driver_kind::SimulatedDriver;
use crate::machines::plain_nic;

/// A host under construction; see [`host`].
pub struct Build {
    snapshot: Snapshot,
    next_irq: u32,
}

/// `cpus` CPUs on `nodes` nodes, two threads per core (thread t of core c is CPU c + t * cores), one L3 per node.
pub fn host(cpus: u32, nodes: u32) -> Build {
    let cores = (cpus / 2).max(1);
    let node_of = |c: u32| NodeId((c % cores) * nodes / cores);
    let in_node = |n: NodeId| -> CpuSet { (0..cpus).filter(|c| node_of(*c) == n).map(CpuId).collect() };
    let each = (0..cpus).map(CpuId).map(|id| {
        let node = node_of(id.0);
        let siblings: CpuSet = (0..cpus).filter(|c| c % cores == id.0 % cores).map(CpuId).collect();
        let cpu = Cpu {
            id,
            package: Fact::Known(node.0),
            die: Fact::Known(0),
            core: Fact::Known(id.0 % cores),
            siblings: Fact::Known(siblings),
            l3: Fact::Known(in_node(node)),
            node: Fact::Known(node),
            capacity: Fact::Absent,
        };
        (id, cpu)
    });
    let all = CpuSet::range(0, cpus - 1);
    let topology = Topology {
        online: all.clone(),
        possible: Fact::Known(all.clone()),
        present: Fact::Known(all),
        isolated: Fact::Known(CpuSet::new()),
        nohz_full: Fact::Known(CpuSet::new()),
        cgroup_isolated: Fact::Absent,
        pods_exclusive: Fact::Absent,
        smt_active: Fact::Known(cpus > 1),
        cpus: each.collect(),
        nodes: Fact::Known(
            (0..nodes)
                .map(NodeId)
                .map(|id| {
                    let distances = (0..nodes).map(|o| (NodeId(o), if o == id.0 { 10 } else { 21 })).collect();
                    (id, Node { id, cpus: in_node(id), distances: Fact::Known(distances), memory: Fact::Absent })
                })
                .collect(),
        ),
        hypervisor: Fact::Absent,
    };
    let host = Host {
        name: Fact::Known("sim".into()),
        kernel: Fact::Known("6.12.48".into()),
        boot_id: Fact::Known("11111111-2222-3333-4444-555555555555".into()),
        machine_id: Fact::Known("0123456789abcdef0123456789abcdef".into()),
        rps_sock_flow_entries: Fact::Known(0),
        rps_default_mask: Fact::Known(CpuSet::new()),
        rivals: Fact::Known(Vec::new()),
        rival_details: Vec::new(),
        irqbalance: Fact::Absent,
        sysctls: super::features::sysctls(&topology.online),
        cpu_latency: topology.online.iter().map(|c| (c, Fact::Known("0".into()))).collect(),
        power: Some(Power {
            governor: Fact::Absent,
            preference: Fact::Absent,
            turbo: Fact::Absent,
            aspm: Fact::Absent,
        }),
        forwarding: Fact::Known(false),
        read_only: Fact::Known(false),
    };
    let snapshot = Snapshot {
        host,
        topology,
        nics: Vec::new(),
        bystanders: QueuelessInterfaces::default(),
        control: Fact::Known(Vec::new()),
        held: Vec::new(),
        without_interface: Vec::new(),
        unread: Vec::new(),
    };
    Build { snapshot, next_irq: 30 }
}

impl Build {
    /// Sets the release, as `uname -r` prints it; the default is 6.12.48.
    pub fn kernel(mut self, version: &str) -> Self {
        self.snapshot.host.kernel = Fact::Known(version.into());
        self
    }

    /// Sets `/sys/devices/system/cpu/isolated` to a list such as `2-3`. Panics: it is no CPU list.
    pub fn isolated(mut self, cpus: &str) -> Self {
        self.snapshot.topology.isolated = Fact::Known(cpus.parse().expect("a CPU list"));
        self
    }

    /// An igb as QEMU has it: at most 8 queues, table of 128. `queues` now.
    pub fn igb(self, name: &str, node: u32, queues: u32) -> Self {
        self.nic(name, SimulatedDriver::Igb, node, queues, 8)
    }

    /// A virtio_net with `queues` queue pairs, all of them in use.
    pub fn virtio(self, name: &str, node: u32, queues: u32) -> Self {
        self.nic(name, SimulatedDriver::Virtio, node, queues, queues)
    }

    /// A vmxnet3 with `queues` queue pairs; the driver has no channel counts that can be set.
    pub fn vmxnet3(self, name: &str, node: u32, queues: u32) -> Self {
        self.nic(name, SimulatedDriver::Vmxnet3, node, queues, queues)
    }

    /// The lab's own test NIC.
    pub fn mqnic(self, name: &str, node: u32, queues: u32) -> Self {
        self.nic(name, SimulatedDriver::Mqnic, node, queues, queues)
    }

    /// One queue, no channels.
    pub fn e1000e(self, name: &str, node: u32) -> Self {
        self.nic(name, SimulatedDriver::E1000e, node, 1, 1)
    }

    fn nic(mut self, name: &str, driver: SimulatedDriver, node: u32, queues: u32, max: u32) -> Self {
        let index = self.snapshot.nics.len() as u32 + 2;
        let near = self.snapshot.topology.node(NodeId(node)).map(|n| n.cpus.clone()).unwrap_or_default();
        let at = Fact::Known(NodeId(node));
        let first = self.next_irq;
        let pair = |q: u32| Role::Queues { rx: vec![q], tx: vec![q] };
        let vector = |irq, name: String, role, place| driver::new_vector(irq, name, role, &near, place, at.clone());
        let mut vectors = Vec::new();
        match driver {
            SimulatedDriver::Igb => vectors = driver::igb_vectors(name, queues, first, &near, &at),
            SimulatedDriver::Virtio => {
                // MSI order: config, then input and output alternately.
                let v = format!("virtio{}", index - 2);
                for q in 0..queues {
                    let irq = first + 1 + 2 * q;
                    vectors.push(vector(
                        irq,
                        format!("{v}-input.{q}"),
                        Role::Queues { rx: vec![q], tx: vec![] },
                        q as usize,
                    ));
                    vectors.push(vector(
                        irq + 1,
                        format!("{v}-output.{q}"),
                        Role::Queues { rx: vec![], tx: vec![q] },
                        q as usize,
                    ));
                }
                // Receive queues first, as discovery orders them.
                vectors.sort_by_key(|v| (v.rx().is_empty(), v.irq));
                vectors.push(vector(first, format!("{v}-config"), Role::Control, 0));
            }
            SimulatedDriver::Vmxnet3 => {
                (0..queues)
                    .for_each(|q| vectors.push(vector(first + q, format!("{name}-rxtx-{q}"), pair(q), q as usize)));
                vectors.push(vector(first + queues, format!("{name}-event-{queues}"), Role::Control, 0));
            }
            SimulatedDriver::E1000e => {
                vectors.push(vector(first, format!("{name}-rx-0"), Role::Queues { rx: vec![0], tx: vec![] }, 0));
                vectors.push(vector(first + 1, format!("{name}-tx-0"), Role::Queues { rx: vec![], tx: vec![0] }, 1));
                vectors.push(vector(first + 2, name.to_string(), Role::Control, 2));
            }
            SimulatedDriver::Mqnic | SimulatedDriver::Other => {
                (0..queues)
                    .for_each(|q| vectors.push(vector(first + 1 + q, format!("{name}-TxRx-{q}"), pair(q), q as usize)));
                vectors.push(vector(first, format!("{name}-event"), Role::Control, 0));
            }
        }
        self.next_irq = first + vectors.len() as u32;
        let count = |now, max| Some(Count { now, max });
        let combined = Channels { rx: None, tx: None, combined: count(queues, max), other: count(1, 1) };
        let table = match driver {
            SimulatedDriver::Igb => driver::blocks(128, queues),
            _ => driver::round_robin(128, queues),
        };
        let (kind, driver_name) = match driver {
            SimulatedDriver::Virtio => (NicKind::Virtio, "virtio_net"),
            SimulatedDriver::Igb => (NicKind::Physical, "igb"),
            SimulatedDriver::Vmxnet3 => (NicKind::Physical, "vmxnet3"),
            SimulatedDriver::Mqnic => (NicKind::Physical, "mqnic"),
            SimulatedDriver::E1000e => (NicKind::Physical, "e1000e"),
            SimulatedDriver::Other => (NicKind::Physical, "other"),
        };
        let params =
            |list: &[(&str, u32)]| Fact::Known(Coalesce(list.iter().map(|(k, v)| (k.to_string(), *v)).collect()));
        let one = queues == 1;
        let plain = plain_nic(name, index);
        self.snapshot.nics.push(Nic {
            dev: DevId {
                bus_address: Some(format!("0000:0{index}:00.0")),
                permanent_mac: Some(format!("52:54:00:00:00:0{index}")),
                ..plain.dev
            },
            kind,
            driver: Fact::Known(driver_name.into()),
            node: at.clone(),
            local_cpus: Fact::Known(near.clone()),
            channels: if driver == SimulatedDriver::E1000e { Fact::Absent } else { Fact::Known(combined) },
            rx_queues: (0..queues)
                .map(|id| RxQueue { id, rps_cpus: Fact::Known(CpuSet::new()), rps_flow_cnt: Fact::Known(0) })
                .collect(),
            tx_queues: (0..queues)
                .map(|id| TxQueue {
                    id,
                    xps_cpus: if one { Fact::Absent } else { Fact::Known(CpuSet::new()) },
                    xps_rxqs: Fact::Known(Vec::new()),
                    bql: Fact::Absent,
                })
                .collect(),
            vectors,
            rss: if driver == SimulatedDriver::E1000e {
                Fact::Absent
            } else {
                Fact::Known(Rss {
                    symmetric: Fact::Known("none".into()),
                    contexts: if driver == SimulatedDriver::Mqnic {
                        Fact::Known(BTreeMap::new())
                    } else {
                        Fact::Absent
                    },
                    table,
                    function: Fact::Known("toeplitz".into()),
                    // lab: "RSS: igb has no key", "RSS: the test NIC has one of 40 bytes"
                    key: match driver {
                        SimulatedDriver::Mqnic | SimulatedDriver::Virtio => Fact::Known("6d5a56da".repeat(10)),
                        _ => Fact::Absent,
                    },
                    fields: fields(driver),
                })
            },
            rings: Fact::Known(Rings::sizes(count(256, 4096), count(256, 4096))),
            coalesce: match driver {
                SimulatedDriver::Vmxnet3 => Fact::Absent,
                SimulatedDriver::Virtio => params(&[("rx-usecs", 0), ("tx-usecs", 0)]),
                SimulatedDriver::Mqnic => params(&[
                    ("rx-usecs", 50),
                    ("rx-max-frames", 64),
                    ("tx-usecs", 50),
                    ("tx-max-frames", 64),
                    ("use-adaptive-rx", 0),
                ]),
                _ => params(&[("rx-usecs", 3), ("tx-usecs", 3)]),
            },
            // lab: "pause frames as ethtool -a shows them"
            pause: match driver {
                SimulatedDriver::Virtio | SimulatedDriver::Vmxnet3 => Fact::Absent,
                _ => Fact::Known(Pause { autoneg: Some(false), rx: Some(false), tx: Some(false) }),
            },
            features: Fact::Known(super::features::of_driver(driver)),
            private_flags: Fact::Absent,
            firmware: Fact::Absent,
            pcie: Fact::Absent,
            virtual_functions: Fact::Absent,
            queue_coalesce: Fact::Absent,
            // lab: "rules: eth0 counts none", "rules: mq1 has 64 places", "rules: virtio has none"
            rules: match driver {
                SimulatedDriver::Igb => Fact::Known(Rules::default()),
                SimulatedDriver::Mqnic => Fact::Known(Rules { capacity: 64, ..Rules::default() }),
                _ => Fact::Absent,
            },
            napi: super::napi::unset(),
            shapers: Fact::Absent,
            classes: Fact::Absent,
            // igb and vmxnet3 set no `xdp_metadata_ops`; virtio_net does with VIRTIO_NET_F_HASH_REPORT only
            // (drivers/net/virtio_net.c, `virtnet_probe`).
            xdp_metadata: Fact::Known(XdpMetadata { hash: false, timestamp: false, vlan_tag: false }),
            ..plain
        });
        if let Some(nic) = self.snapshot.nics.last_mut() {
            nic.queue_coalesce = super::moderation::of_queues(driver, &nic.coalesce, queues);
            if driver == SimulatedDriver::Igb {
                super::moderation::of_pairs(nic);
            }
        }
        self
    }

    /// The driver of this device reports the length of its receive buffers and of completions, splits headers from data,
    /// and pushes descriptors.
    pub fn splits_headers(mut self, name: &str) -> Self {
        for nic in self.snapshot.nics.iter_mut().filter(|n| n.dev.name == name) {
            if let Fact::Known(rings) = &mut nic.rings {
                rings.rx_buf_len = Some(2048);
                rings.tcp_data_split = Some(false);
                rings.hds_thresh = Some(Count { now: 0, max: 1023 });
                rings.cqe_size = Some(64);
                rings.tx_push = Some(true);
                rings.tx_push_buf_len = Some(Count { now: 96, max: 224 });
            }
        }
        self
    }

    /// The driver of the last interface links its queues to NAPI instances.
    pub fn linked(mut self) -> Self {
        let kernel = self.snapshot.host.kernel.known().cloned().unwrap_or_default();
        let version = super::kernel::version_of(&kernel);
        if let Some(nic) = self.snapshot.nics.last_mut() {
            let first = 8193 + 100 * nic.dev.ifindex.map_or(0, |i| i.0);
            super::napi::link(nic, first, version);
        }
        self
    }

    /// A bond of these interfaces; `mode`: `802.3ad` or `active-backup`.
    pub fn bond(mut self, name: &str, mode: &str, members: &[&str]) -> Self {
        let index = IfIndex(self.snapshot.nics.len() as u32 + 2);
        let Some(like) = self.snapshot.nics.first().cloned() else { return self };
        let mut lower = Vec::new();
        for n in self.snapshot.nics.iter_mut().filter(|n| members.contains(&n.dev.name.as_str())) {
            n.master = Some(index);
            lower.extend(n.dev.ifindex);
        }
        self.snapshot.nics.push(Nic {
            kind: NicKind::Software { kind: "bond".into() },
            node: like.node,
            local_cpus: like.local_cpus,
            link: like.link,
            labels: like.labels,
            lower,
            master: like.master,
            bond: Some(Bond {
                mode: Fact::Known(mode.into()),
                active: Fact::Absent,
                aggregator: Fact::Absent,
                members: Vec::new(),
            }),
            users: like.users,
            addresses: like.addresses,
            unread: like.unread,
            ..plain_nic(name, index.0)
        });
        self
    }

    /// The kernel manages the queue interrupts of the last interface.
    pub fn managed(mut self) -> Self {
        if let Some(nic) = self.snapshot.nics.last_mut() {
            for v in nic.vectors.iter_mut().filter(|v| v.is_queue()) {
                v.movable = ringwise_model::Movable::No(ringwise_model::Immovable::Managed);
            }
        }
        self
    }

    /// The described host, for [`Sim::new`](super::Sim::new).
    pub fn done(self) -> Snapshot {
        self.snapshot
    }
}

/// lab: "fields: igb hashes UDP without ports at first"
fn fields(driver: SimulatedDriver) -> BTreeMap<String, String> {
    let udp = if driver == SimulatedDriver::Virtio { "sdfn" } else { "sd" };
    match driver {
        SimulatedDriver::Vmxnet3 => BTreeMap::new(),
        _ => [("tcp4", "sdfn"), ("udp4", udp), ("tcp6", "sdfn"), ("udp6", udp)]
            .map(|(flow, letters)| (flow.to_string(), letters.to_string()))
            .into(),
    }
}

//! A tuned host without findings, which each test case edits.
#![allow(dead_code, reason = "each case uses a part")]

use std::collections::BTreeMap;

use ringwise_check::{AuditInput, CpuTraffic, GoalOrigin, HostTraffic, LinkTraffic, QueueTraffic, Report, judge};
use ringwise_model::*;
use ringwise_testkit::machines::{self, NicSpec};
use ringwise_testkit::project::project;
use ringwise_testkit::topo::CpuSpec;

#[derive(Clone)]
pub(crate) struct World {
    pub s: Snapshot,
    pub x: CheckOnlyFacts,
    pub t: Option<HostTraffic>,
    pub intent: Intent,
    pub from: GoalOrigin,
    pub drift: Option<Vec<(Option<String>, String)>>,
}

pub(crate) fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

pub(crate) fn feature(on: bool) -> Feature {
    Feature { on, wanted: on, fixed: false }
}

fn whole(n: &mut Nic) {
    let q = n.rx_queues.len() as u32;
    n.rss = Fact::Known(Rss {
        table: (0..128).map(|i| i % q).collect(),
        function: Fact::Known("toeplitz".into()),
        key: Fact::Known("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef".into()),
        fields: [("tcp4", "sdfn"), ("tcp6", "sdfn"), ("udp4", "sdfn"), ("udp6", "sdfn")]
            .map(|(a, b)| (a.into(), b.into()))
            .into(),
        symmetric: Fact::Absent,
        contexts: Fact::Known(BTreeMap::new()),
    });
    n.rings = Fact::Known(Rings::sizes(Some(Count { now: 256, max: 4096 }), Some(Count { now: 256, max: 4096 })));
    n.coalesce = Fact::Known(Coalesce([("rx-usecs".into(), 3), ("tx-usecs".into(), 3)].into()));
    n.queue_coalesce = Fact::Absent;
    n.pause = Fact::Known(Pause { autoneg: Some(false), rx: Some(false), tx: Some(false) });
    let on = [
        "rx-gro",
        "tx-tcp-segmentation",
        "tx-tcp6-segmentation",
        "tx-generic-segmentation",
        "rx-checksum",
        "tx-scatter-gather",
        "rx-ntuple-filter",
        "rx-vlan-hw-parse",
        "tx-vlan-hw-insert",
    ];
    let off = ["tx-nocache-copy"];
    let all =
        on.iter().map(|f| (f.to_string(), feature(true))).chain(off.iter().map(|f| (f.to_string(), feature(false))));
    n.features = Fact::Known(all.collect());
    n.private_flags = Fact::Absent;
    n.shapers = Fact::Known(Shapers::Set(Vec::new()));
    n.firmware = Fact::Absent;
    n.pcie = Fact::Absent;
    n.rules = Fact::Known(Rules { capacity: 64, chooses_location: false, rules: BTreeMap::new() });
    n.napi = Fact::Known(Napi {
        device: NapiValues {
            defer_hard_irqs: Some(0),
            gro_flush_timeout_ns: Some(0),
            irq_suspend_timeout_ns: None,
            threaded: Some(0),
        },
        instances: Vec::new(),
    });
}

/// Two nodes of four cores with two threads; two igb with eight queues, one on each node. Untuned.
fn bare() -> Snapshot {
    let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(4, 2) };
    let igb = |name: &str, node| NicSpec::new(name, "igb", Some(node), 8, 8);
    let mut s = machines::host("edge3", cpu, vec![igb("eth1", 0), igb("eth2", 1)]).snapshot();
    s.nics.iter_mut().for_each(whole);
    let text = |v: &str| Fact::Known(v.to_string());
    s.host.sysctls = [
        ("net.core.busy_read", "0"),
        ("net.core.busy_poll", "0"),
        ("net.core.netdev_max_backlog", "1000"),
        ("net.core.flow_limit_cpu_bitmap", "0000"),
        ("net.core.rps_default_mask", "0"),
    ]
    .map(|(k, v)| (k.to_string(), text(v)))
    .into();
    s.host.cpu_latency = s.topology.online.iter().map(|c| (c, text("0"))).collect();
    s.host.power =
        Some(Power { governor: Fact::Absent, preference: Fact::Absent, turbo: Fact::Absent, aspm: Fact::Absent });
    s
}

fn extra(s: &Snapshot) -> CheckOnlyFacts {
    let mut x = CheckOnlyFacts::default();
    let files = [
        ("/proc/sys/kernel/numa_balancing", "0"),
        ("/proc/sys/kernel/nmi_watchdog", "0"),
        ("/proc/sys/vm/min_free_kbytes", "67584"),
        ("/proc/meminfo", "16000000"),
        ("/proc/sys/net/core/netdev_tstamp_prequeue", "1"),
        ("/proc/sys/net/ipv4/conf/all/rp_filter", "0"),
        ("/proc/net/ip_tables_names", ""),
        ("/proc/net/sockstat", "sockets: used 40\nTCP: inuse 5 orphan 0 tw 0 alloc 6 mem 1\n"),
        ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
        ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm"),
        ("/sys/kernel/debug/swiotlb/io_tlb_used", "0"),
        ("/proc/cpuinfo", "fpu sse2 rep_good erms"),
        ("/proc/modules", "igb nf_tables nf_conntrack"),
        ("/sys/devices/system/cpu/cpu0/cache/index3/size", "16384K"),
    ];
    for (path, v) in files {
        x.text.insert(path.into(), Fact::Known(v.into()));
    }
    for path in [
        "/proc/sys/net/bridge/bridge-nf-call-iptables",
        "/proc/sys/net/netfilter/nf_conntrack_count",
        "/proc/sys/net/netfilter/nf_conntrack_max",
    ] {
        x.text.insert(path.into(), Fact::Absent);
    }
    x.packet_sockets = Some(Fact::Known(Vec::new()));
    x.qdiscs = Some(Fact::Known(BTreeMap::new()));
    for n in &s.nics {
        dev(&mut x, n.name(), n.dev.ifindex.unwrap());
    }
    x.vulnerabilities.insert("mds".into(), "Not affected".into());
    x
}

pub(crate) fn dev(x: &mut CheckOnlyFacts, name: &str, index: IfIndex) {
    let net = format!("/sys/class/net/{name}");
    for (path, v) in [
        (format!("{net}/flags"), Fact::Known("0x1003".to_string())),
        (format!("{net}/tx_queue_len"), Fact::Known("1000".into())),
        (format!("{net}/device/iommu_group/type"), Fact::Known("identity".into())),
        (format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), Fact::Known("0".into())),
        ("/sys/module/igb/taint".into(), Fact::Known(String::new())),
    ] {
        x.text.insert(path, v);
    }
    if let Some(Fact::Known(all)) = &mut x.qdiscs {
        all.insert(index, Qdiscs { root: "mq".into(), leaves: [("fq_codel".to_string(), 8)].into() });
    }
    let pci = PciControl { max_payload: 256, max_payload_capable: 256, max_read_request: 512, aspm: false };
    let d = DevExtra {
        pci: Some(Fact::Known(pci)),
        eee: Some(Fact::Known(Eee { enabled: false, active: false })),
        tcp_data_split: Some(Fact::Known(false)),
    };
    x.devs.insert(name.into(), d);
}

fn traffic(s: &Snapshot) -> HostTraffic {
    let link = |n: &Nic| {
        let queue = |dir, q: u32| {
            let v = n.vector_of(dir, q);
            QueueTraffic {
                dir,
                queue: q,
                packets: Some(10_000),
                bytes: Some(10_000_000),
                irq: v.map(|v| v.irq),
                interrupts: Some(2_000),
                packets_per_interrupt: Some(5.0),
                cpu: v.and_then(|v| v.effective.known()).and_then(CpuSet::first),
                timeouts: (dir == Dir::Tx).then_some(0),
            }
        };
        let rx = (0..8).map(|q| queue(Dir::Rx, q));
        LinkTraffic {
            rx_packets: Some(80_000),
            tx_packets: Some(80_000),
            line_percent: Some(40.0),
            counts: [
                "rx_missed_errors",
                "rx_dropped",
                "tx_dropped",
                "rx_crc_errors",
                "rx_pause",
                "tx_pause",
                "qdisc_drops",
            ]
            .map(|k| (k.to_string(), 0))
            .into(),
            alloc_fail: Some(0),
            pools: (0..8).map(|q| (q, PoolUse { fast: 10_000, ..PoolUse::default() })).collect(),
            queues: rx.chain((0..8).map(|q| queue(Dir::Tx, q))).collect(),
            rx_max_over_mean: Some(1.1),
        }
    };
    let cpu = CpuTraffic {
        softirq: Some(20.0),
        irq: Some(1.0),
        steal: Some(0.0),
        ksoftirqd: Some(0.0),
        interrupts: 4_000,
        counts: Default::default(),
    };
    HostTraffic {
        seconds: 1.0,
        links: s.nics.iter().map(|n| (n.name().to_string(), link(n))).collect(),
        cpus: s.topology.online.iter().map(|c| (c, cpu.clone())).collect(),
        protocols: [
            ("Ip:InReceives", 100_000),
            ("Udp:InDatagrams", 1_000),
            ("Ip:ReasmReqds", 0),
            ("TcpExt:TCPOFOQueue", 0),
        ]
        .map(|(k, v)| (k.to_string(), v))
        .into(),
        threads: Fact::Known(Vec::new()),
        connections: Fact::Known(BTreeMap::new()),
    }
}

impl World {
    /// The host after `ringwise apply`.
    pub(crate) fn tuned() -> Self {
        let mut w = Self::untuned();
        w.apply();
        w.t = Some(traffic(&w.s));
        w
    }

    pub(crate) fn untuned() -> Self {
        Self::of(bare())
    }

    /// Two nodes of `cores` cores with two threads; two igb with this many queues, one on each node. Untuned.
    pub(crate) fn with_cores(cores: u32, queues: u32) -> Self {
        let cpu = CpuSpec { packages: 2, ..CpuSpec::flat(cores, 2) };
        let igb = |name: &str, node| NicSpec::new(name, "igb", Some(node), queues, queues);
        Self::of(machines::host("smt", cpu, vec![igb("eth1", 0), igb("eth2", 1)]).snapshot())
    }

    fn of(s: Snapshot) -> Self {
        let x = extra(&s);
        let t = traffic(&s);
        World { s, x, t: Some(t), intent: Intent::default(), from: GoalOrigin::Default, drift: Some(Vec::new()) }
    }

    pub(crate) fn plan(&self) -> ringwise_plan::Plan {
        ringwise_plan::plan(&self.s, &self.intent, &[]).unwrap()
    }

    /// Applies the plan. Returns whether it had a step.
    pub(crate) fn apply(&mut self) -> bool {
        let plan = self.plan();
        let settings: Vec<_> = plan.steps.iter().map(|s| s.setting.clone()).collect();
        self.s = project(&self.s, &settings);
        !settings.is_empty()
    }

    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.intent.goal = goal;
        self.from = GoalOrigin::ActiveTransaction;
        self.apply();
        self.t = Some(traffic(&self.s));
        self
    }

    pub(crate) fn judge(&self) -> Report {
        self.judge_of(&[])
    }

    /// Judges only these interfaces; if the list is empty, all of them.
    pub(crate) fn judge_of(&self, devs: &[String]) -> Report {
        let plan = ringwise_plan::plan(&self.s, &self.intent, &[]);
        judge(&AuditInput {
            snapshot: &self.s,
            extra: &self.x,
            plan: plan.as_ref().map_err(ToString::to_string),
            intent: &self.intent,
            goal_from: self.from,
            traffic: self.t.as_ref(),
            drift: self.drift.clone(),
            devs,
        })
    }

    pub(crate) fn nic(&mut self) -> &mut Nic {
        &mut self.s.nics[0]
    }

    pub(crate) fn link(&mut self) -> &mut LinkTraffic {
        self.t.as_mut().unwrap().links.get_mut("eth1").unwrap()
    }

    pub(crate) fn cpu(&mut self, n: u32) -> &mut CpuTraffic {
        self.t.as_mut().unwrap().cpus.get_mut(&CpuId(n)).unwrap()
    }

    /// A program on this CPU, while eth1 has two queues on CPUs 0 and 2 (cores 0-1 and 2-3).
    pub(crate) fn program(&mut self, cpu: u32, real_time: bool) {
        self.nic().vectors.retain(|v| v.rx().iter().all(|q| *q < 2));
        self.irq(0, 0);
        self.irq(1, 2);
        let (name, cpus) = ("nginx".to_string(), [CpuId(cpu); 2]);
        let nodes = self.s.topology.nodes.known().into_iter().flat_map(|n| n.keys().copied()).collect();
        let permitted = Fact::Known(PermittedPlaces { cpus: self.s.topology.online.clone(), memory_nodes: nodes });
        let thread = BusyThread { name, pid: 812, tid: 815, cpus, percent: 71.0, real_time, permitted };
        self.t = Some(HostTraffic { threads: Fact::Known(vec![thread]), ..traffic(&self.s) });
    }

    /// The program of [`Self::program`] on this CPU, with connections over these interfaces.
    pub(crate) fn talks(&mut self, cpu: u32, devs: &[&str]) {
        self.program(cpu, false);
        let mut addresses = std::collections::BTreeSet::new();
        for (i, n) in (1..).zip(&mut self.s.nics) {
            n.addresses = Fact::Known(vec![format!("192.0.2.{i}/24")]);
            if devs.contains(&n.name()) {
                addresses.insert(std::net::IpAddr::from([192, 0, 2, i]));
            }
        }
        self.t.as_mut().unwrap().connections = Fact::Known([(812, addresses)].into());
    }

    /// The program of [`Self::talks`] over this interface, which may use these CPUs and memory of these nodes. Every node has memory.
    pub(crate) fn memory(&mut self, cpu: u32, dev: &str, cpus: &str, memory_nodes: &[u32]) {
        self.talks(cpu, &[dev]);
        let Fact::Known(nodes) = &mut self.s.topology.nodes else { panic!() };
        nodes.values_mut().for_each(|n| n.memory = Fact::Known(NodeMemory { total_bytes: 64 << 30 }));
        let memory_nodes = memory_nodes.iter().map(|n| NodeId(*n)).collect();
        self.thread().permitted = Fact::Known(PermittedPlaces { cpus: set(cpus), memory_nodes });
    }

    /// A program with one busy thread on each of these CPUs.
    pub(crate) fn threads(&mut self, cpus: &CpuSet) {
        let thread = |(i, c): (u32, CpuId)| BusyThread {
            name: "postgres".to_string(),
            pid: 900,
            tid: 900 + i,
            cpus: [c; 2],
            percent: 90.0,
            real_time: false,
            permitted: Fact::Absent,
        };
        let threads = Fact::Known((0..).zip(cpus.iter()).map(thread).collect());
        self.t = Some(HostTraffic { threads, ..traffic(&self.s) });
    }

    /// The thread of `program`.
    pub(crate) fn thread(&mut self) -> &mut BusyThread {
        let Fact::Known(all) = &mut self.t.as_mut().unwrap().threads else { panic!() };
        &mut all[0]
    }

    pub(crate) fn count(&mut self, name: &str, n: u64) {
        self.link().counts.insert(name.into(), n);
    }

    pub(crate) fn protocol(&mut self, name: &str, n: u64) {
        self.t.as_mut().unwrap().protocols.insert(name.into(), n);
    }

    pub(crate) fn file(&mut self, path: &str, v: &str) {
        self.x.text.insert(path.into(), Fact::Known(v.into()));
    }

    pub(crate) fn feature(&mut self, name: &str, on: bool) {
        let Fact::Known(all) = &mut self.nic().features else { panic!() };
        all.insert(name.into(), feature(on));
    }

    pub(crate) fn rss(&mut self) -> &mut Rss {
        let Fact::Known(r) = &mut self.nic().rss else { panic!() };
        r
    }

    pub(crate) fn coalesce(&mut self, name: &str, v: u32) {
        let Fact::Known(c) = &mut self.nic().coalesce else { panic!() };
        c.0.insert(name.into(), v);
    }

    pub(crate) fn irq(&mut self, queue: u32, cpu: u32) {
        let v = self.nic().vectors.iter_mut().find(|v| v.rx().contains(&queue)).unwrap();
        v.asked = Fact::Known(CpuSet::one(CpuId(cpu)));
        v.effective = v.asked.clone();
    }

    pub(crate) fn rps(&mut self, cpus: &str) {
        let cpus: CpuSet = if cpus.is_empty() { CpuSet::new() } else { set(cpus) };
        self.nic().rx_queues.iter_mut().for_each(|q| q.rps_cpus = Fact::Known(cpus.clone()));
    }

    pub(crate) fn flows(&mut self, entries: u32, each: u32) {
        self.s.host.rps_sock_flow_entries = Fact::Known(entries);
        self.s.nics.iter_mut().flat_map(|n| &mut n.rx_queues).for_each(|q| q.rps_flow_cnt = Fact::Known(each));
    }

    pub(crate) fn qdisc(&mut self, root: &str, leaf: &str) {
        let i = self.nic().dev.ifindex.unwrap();
        let Some(Fact::Known(all)) = &mut self.x.qdiscs else { panic!() };
        let leaves = if leaf.is_empty() { BTreeMap::new() } else { [(leaf.to_string(), 8)].into() };
        all.insert(i, Qdiscs { root: root.into(), leaves });
        if root == "mqprio" {
            let one = TrafficClasses { of_priority: vec![0; 16], queues: vec![QueueRange { first: 0, count: 8 }] };
            self.nic().classes = Fact::Known(one);
        }
    }

    pub(crate) fn router(&mut self) {
        self.s.host.forwarding = Fact::Known(true);
    }

    pub(crate) fn guest(&mut self) {
        self.s.topology.hypervisor = Fact::Known("kvm".into());
    }

    pub(crate) fn tracks(&mut self, n: u64, max: u64) {
        self.file("/proc/sys/net/netfilter/nf_conntrack_count", &n.to_string());
        self.file("/proc/sys/net/netfilter/nf_conntrack_max", &max.to_string());
    }

    pub(crate) fn speed(&mut self, mbps: u32) {
        self.nic().link.speed_mbps = Fact::Known(mbps);
    }

    pub(crate) fn rule(&mut self, r: Rule) {
        let Fact::Known(all) = &mut self.nic().rules else { panic!() };
        all.rules.insert(0, r);
    }

    pub(crate) fn pcie(&mut self, now: (u32, u32), max: (u32, u32)) {
        let l = |(mtps, lanes)| PcieLink { mtps: Some(mtps), lanes };
        self.nic().pcie = Fact::Known(Pcie { now: l(now), max: l(max) });
    }

    pub(crate) fn pci(&mut self, f: impl Fn(&mut PciControl)) {
        let Some(Fact::Known(c)) = &mut self.x.devs.get_mut("eth1").unwrap().pci else { panic!() };
        f(c);
    }

    pub(crate) fn wish(&mut self, knob: Knob) {
        self.intent.wishes.push(Wish {
            dev: Some("eth1".into()),
            knob,
            by: ConfiguredBy::Flag { name: "--set".into() },
            params_by: Default::default(),
        });
    }

    /// A bond over both interfaces.
    pub(crate) fn bond(&mut self, mode: &str, policy: &str) {
        let members = ["eth1", "eth2"].map(|n| BondMember {
            name: n.into(),
            state: Fact::Known("active".into()),
            mii_status: Fact::Known("up".into()),
            aggregator: Fact::Known(1),
            actor: Fact::Known(61),
            partner: Fact::Known(61),
        });
        let mut b = self.s.nics[0].clone();
        b.dev = DevId { name: "bond0".into(), ifindex: Some(IfIndex(90)), bus_address: None, permanent_mac: None };
        b.kind = NicKind::Software { kind: "bond".into() };
        b.bond = Some(Bond {
            mode: Fact::Known(mode.into()),
            active: Fact::Absent,
            aggregator: Fact::Known(1),
            members: members.to_vec(),
        });
        b.lower = self.s.nics.iter().filter_map(|n| n.dev.ifindex).collect();
        (b.driver, b.rx_queues, b.tx_queues, b.vectors) = (Fact::Absent, vec![], vec![], vec![]);
        self.s.nics.iter_mut().for_each(|n| n.master = Some(IfIndex(90)));
        self.s.nics.push(b);
        self.file("/sys/class/net/bond0/bonding/xmit_hash_policy", policy);
        self.file("/sys/class/net/bond0/queues/rx-0/rps_cpus", "0000");
    }

    /// Makes eth1 a port of a bridge.
    pub(crate) fn bridge(&mut self) {
        let mut b = self.s.nics[0].clone();
        b.dev = DevId { name: "br0".into(), ifindex: Some(IfIndex(91)), bus_address: None, permanent_mac: None };
        b.kind = NicKind::Software { kind: "bridge".into() };
        b.lower = vec![self.s.nics[0].dev.ifindex.unwrap()];
        (b.driver, b.rx_queues, b.tx_queues, b.vectors) = (Fact::Absent, vec![], vec![], vec![]);
        self.nic().master = Some(IfIndex(91));
        self.s.nics.push(b);
        self.file("/sys/class/net/br0/queues/rx-0/rps_cpus", "0000");
    }
}

//! Machines of any size, with NICs of any driver.

use ringwise_kfmt::cpumask;
use ringwise_kfmt::ethtool_nl::{self, RssParts, msg};
use ringwise_kfmt::netdev_nl::{self, Lease, NapiInfo, QueueInfo};
use ringwise_kfmt::rtnl::{self, LinkInfo};
use ringwise_model::{Channels, Coalesce, Count, CpuSet, Dir, IfIndex, IrqId, Rings};
use ringwise_sys::Request;

use super::Tree;

/// A machine that is being built.
pub(crate) struct Machine {
    pub tree: Tree,
    pub cpus: u32,
    pub nodes: u32,
    links: Vec<LinkInfo>,
    addrs: Vec<Vec<u8>>,
    /// irq, chip, name, CPU that counts.
    rows: Vec<(u32, String, u32)>,
    next_irq: u32,
}

/// A NIC to be added.
pub(crate) struct NicPlan<'a> {
    pub name: &'a str,
    pub driver: &'a str,
    /// `0000:03:00.0`
    pub bus: &'a str,
    pub node: i32,
    pub queues: u32,
    /// Names of its vectors in order; empty ones are idle.
    pub vectors: Vec<String>,
    pub up: bool,
    /// Whether the kernel reports links from queue to NAPI to IRQ; queue N has vector number N+`first`.
    pub genl_first: Option<u32>,
}

impl Machine {
    /// Nodes alternate in blocks; two threads a core (numbered side by side), four cores an L3.
    pub(crate) fn new(cpus: u32, nodes: u32) -> Self {
        let mut t = Tree::default();
        let all = format!("0-{}\n", cpus - 1);
        let base = "/sys/devices/system/cpu";
        for f in ["online", "possible", "present"] {
            t.file(format!("{base}/{f}"), &all);
        }
        t.file(format!("{base}/isolated"), "\n");
        t.file(format!("{base}/smt/active"), "1\n");
        let per_node = cpus.div_ceil(nodes);
        for c in 0..cpus {
            let dir = format!("{base}/cpu{c}");
            let topo = format!("{dir}/topology");
            t.file(format!("{topo}/physical_package_id"), format!("{}\n", c / per_node));
            t.file(format!("{topo}/die_id"), "0\n");
            t.file(format!("{topo}/core_id"), format!("{}\n", c % per_node / 2));
            t.file(format!("{topo}/thread_siblings_list"), format!("{}-{}\n", c & !1, c | 1));
            for (i, level) in [1, 1, 2, 3].into_iter().enumerate() {
                t.file(format!("{dir}/cache/index{i}/level"), format!("{level}\n"));
                let width = if level == 3 { 8 } else { 2 };
                let first = c / width * width;
                let last = (first + width).min(cpus) - 1;
                t.file(format!("{dir}/cache/index{i}/shared_cpu_list"), format!("{first}-{last}\n"));
            }
        }
        for n in 0..nodes {
            let dir = format!("/sys/devices/system/node/node{n}");
            t.file(format!("{dir}/cpulist"), format!("{}-{}\n", n * per_node, ((n + 1) * per_node).min(cpus) - 1));
            let d: Vec<String> = (0..nodes).map(|m| if m == n { "10" } else { "21" }.to_string()).collect();
            t.file(format!("{dir}/distance"), d.join(" ") + "\n");
        }
        t.file("/proc/sys/kernel/hostname", "edge3\n");
        t.file("/proc/sys/kernel/osrelease", "6.12.48\n");
        t.file("/proc/sys/kernel/random/boot_id", "5b1f\n");
        t.file("/etc/machine-id", "abcd\n");
        t.file("/proc/sys/net/core/rps_sock_flow_entries", "0\n");
        t.file("/proc/sys/net/core/rps_default_mask", "\n");
        t.file("/proc/sys/net/ipv4/ip_forward", "1\n");
        t.file("/proc/sys/net/ipv6/conf/all/forwarding", "0\n");
        t.file("/proc/self/mounts", "proc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0\n");
        t.file("/proc/1/comm", "systemd\n");
        t.file("/proc/77/comm", "irqbalance\n");
        t.file("/sys/class/dmi/id/sys_vendor", "Supermicro\n");
        t.file("/sys/class/dmi/id/product_name", "X12\n");
        t.file("/sys/fs/cgroup/cpuset.cpus.isolated", "\n");
        let mut m = Self { tree: t, cpus, nodes, links: Vec::new(), addrs: Vec::new(), rows: Vec::new(), next_irq: 30 };
        m.link(LinkInfo { flags: rtnl::IFF_LOOPBACK | rtnl::IFF_UP, link_type: rtnl::ARPHRD_LOOPBACK, ..named("lo") });
        m
    }

    /// Adds a link to the dump and returns its index.
    pub(crate) fn link(&mut self, mut l: LinkInfo) -> u32 {
        l.ifindex = self.links.len() as u32 + 1;
        self.links.push(l);
        self.links.len() as u32
    }

    /// Changes a link of the dump.
    pub(crate) fn relink(&mut self, index: u32, change: impl FnOnce(&mut LinkInfo)) {
        change(&mut self.links[index as usize - 1]);
    }

    pub(crate) fn address(&mut self, index: u32, address: &str) {
        self.addrs.push(rtnl::addr_reply(index, address).unwrap());
    }

    fn mask(&self, text: &str) -> String {
        cpumask::format(&text.parse::<CpuSet>().unwrap(), Some(self.cpus)) + "\n"
    }

    /// Adds a NIC with its files and replies; returns its index and the number of its first vector.
    pub(crate) fn nic(&mut self, p: &NicPlan) -> (u32, u32) {
        let virtio = (p.driver == "virtio_net").then(|| format!("virtio{}", p.bus.as_bytes()[6] - b'0'));
        let function = format!("/sys/devices/pci0000:00/{}", p.bus);
        let device = virtio.as_ref().map_or(function.clone(), |v| format!("{function}/{v}"));
        let net = format!("{device}/net/{}", p.name);
        let class = format!("/sys/class/net/{}", p.name);
        let index = self.link(LinkInfo {
            flags: if p.up { rtnl::IFF_UP | rtnl::IFF_RUNNING } else { 0 },
            link_type: rtnl::ARPHRD_ETHER,
            mtu: Some(1500),
            operstate: Some(if p.up { "up" } else { "down" }),
            perm_mac: Some(format!("52:54:00:00:{:02x}:{:02x}", self.links.len() / 256, self.links.len() % 256)),
            ..named(p.name)
        });
        let (near, all) = (self.mask("0"), format!("0-{}\n", self.cpus - 1));
        let none = self.mask("");
        let t = &mut self.tree;
        t.link(&class, format!("../..{}", net.trim_start_matches("/sys")));
        t.link(format!("{net}/device"), format!("../../../{}", virtio.as_deref().unwrap_or(p.bus)));
        t.link(format!("{device}/driver"), format!("../../../bus/pci/drivers/{}", p.driver));
        t.file(format!("{function}/uevent"), format!("DRIVER=x\nPCI_SLOT_NAME={}\n", p.bus));
        t.file(format!("{function}/numa_node"), format!("{}\n", p.node));
        t.file(format!("{function}/local_cpulist"), &all);
        for (f, v) in [("operstate", if p.up { "up\n" } else { "down\n" }), ("mtu", "1500\n")] {
            t.file(format!("{net}/{f}"), v);
        }
        if p.up {
            t.file(format!("{net}/carrier"), "1\n").file(format!("{net}/speed"), "1000\n");
            t.file(format!("{net}/duplex"), "full\n");
        } else {
            for f in ["carrier", "speed", "duplex"] {
                t.error(format!("{net}/{f}"), 22);
            }
        }
        for q in 0..p.queues {
            t.file(format!("{net}/queues/rx-{q}/rps_cpus"), &none);
            t.file(format!("{net}/queues/rx-{q}/rps_flow_cnt"), "0\n");
            let tx = format!("{net}/queues/tx-{q}");
            if p.queues > 1 {
                t.file(format!("{tx}/xps_cpus"), &near);
            } else {
                t.error(format!("{tx}/xps_cpus"), 2);
            }
            t.file(format!("{tx}/xps_rxqs"), "0\n");
            for (f, v) in [("limit", "100"), ("limit_min", "0"), ("limit_max", "1879048192"), ("inflight", "0")] {
                t.file(format!("{tx}/byte_queue_limits/{f}"), format!("{v}\n"));
            }
        }
        let first = self.next_irq;
        for (i, name) in p.vectors.iter().enumerate() {
            let irq = first + i as u32;
            t.file(format!("{function}/msi_irqs/{irq}"), "msix\n");
            let proc = format!("/proc/irq/{irq}");
            t.file(format!("{proc}/smp_affinity_list"), &all);
            t.file(format!("{proc}/effective_affinity_list"), format!("{}\n", i as u32 % self.cpus));
            t.file(format!("{proc}/affinity_hint"), &none);
            t.file(format!("{proc}/node"), format!("{}\n", p.node));
            self.rows.push((irq, name.clone(), i as u32 % self.cpus));
        }
        self.next_irq += p.vectors.len() as u32;
        self.replies(p, index, first);
        (index, first)
    }

    fn replies(&mut self, p: &NicPlan, index: u32, first: u32) {
        let get = |cmd, name| Request::EthtoolGet { cmd, name, dev: p.name.to_string() };
        let n = Count { now: p.queues, max: p.queues };
        let one = Some(Count { now: 1, max: 1 });
        let t = &mut self.tree;
        let channels = Channels { rx: None, tx: None, combined: Some(n), other: one };
        t.reply(get(msg::CHANNELS_GET, "channels-get"), vec![ethtool_nl::channels_reply(&channels)]);
        let ring = Some(Count { now: 256, max: 4096 });
        t.reply(get(msg::RINGS_GET, "rings-get"), vec![ethtool_nl::rings_reply(&Rings::sizes(ring, ring))]);
        let c = Coalesce([("rx-usecs".to_string(), 3)].into());
        t.reply(get(msg::COALESCE_GET, "coalesce-get"), vec![ethtool_nl::coalesce_reply(&c).unwrap()]);
        let rss = RssParts { indir: (0..128).map(|i| i % p.queues).collect(), hfunc: Some(1), ..RssParts::default() };
        t.reply(get(msg::RSS_GET, "rss-get"), vec![ethtool_nl::rss_reply(&rss).unwrap()]);
        let Some(offset) = p.genl_first else { return };
        let dump = |cmd, name| Request::NetdevDump { cmd, name, dev: p.name.to_string() };
        let (mut queues, mut napis) = (Vec::new(), Vec::new());
        for q in 0..p.queues {
            for dir in [Dir::Rx, Dir::Tx] {
                let napi = Some(8000 + q);
                let q = QueueInfo { napi, ..QueueInfo::unused(IfIndex(index), dir, q) };
                queues.push(netdev_nl::queue_reply(&q).unwrap());
            }
            napis.push(netdev_nl::napi_reply(&NapiInfo {
                ifindex: IfIndex(index),
                id: 8000 + q,
                irq: Some(IrqId(first + offset + q)),
                pid: None,
                defer_hard_irqs: None,
                gro_flush_timeout_ns: None,
                irq_suspend_timeout_ns: None,
                threaded: None,
            }));
        }
        t.reply(dump(netdev_nl::cmd::QUEUE_GET, "queue-get"), queues);
        t.reply(dump(netdev_nl::cmd::NAPI_GET, "napi-get"), napis);
    }

    /// Queues that are linked to NAPI instances without a reported interrupt. Queues 1 to 3 have users.
    pub(crate) fn napi_without_irq(&mut self, name: &str, index: u32, queues: u32) {
        let dump = |cmd, n| Request::NetdevDump { cmd, name: n, dev: name.to_string() };
        let queue = |q| QueueInfo {
            napi: Some(9000 + q),
            xsk: q == 1,
            dmabuf: (q == 2).then_some(4),
            io_uring: q == 3,
            lease: (q == 3).then_some(Lease { ifindex: IfIndex(7), queue: 1, netns: Some(0) }),
            ..QueueInfo::unused(IfIndex(index), Dir::Rx, q)
        };
        let all = (0..queues).map(|q| netdev_nl::queue_reply(&queue(q)).unwrap());
        self.tree.reply(dump(10, "queue-get"), all.collect());
        self.tree.reply(dump(11, "napi-get"), Vec::new());
    }

    /// The finished tree: `/proc/interrupts` and the dumps are written now.
    pub(crate) fn finish(mut self) -> Tree {
        let mut text = String::from("    ");
        for c in 0..self.cpus {
            text.push_str(&format!("       CPU{c}"));
        }
        text.push('\n');
        for (irq, name, cpu) in &self.rows {
            // A line for idle vectors as well: some kernels print them.
            text.push_str(&format!("{irq:>4}:"));
            for c in 0..self.cpus {
                text.push_str(&format!(" {:>10}", if c == *cpu { 1000 + irq } else { 0 }));
            }
            text.push_str(&format!("  PCI-MSIX-0000:03:00.0   {irq}-edge      {name}\n"));
        }
        text.push_str(" NMI:          0   Non-maskable interrupts\n");
        self.tree.file("/proc/interrupts", text);
        let links = self.links.iter().map(|l| rtnl::link_reply(l).unwrap()).collect();
        self.tree.reply(Request::Links, links);
        self.tree.reply(Request::Addrs, self.addrs.clone());
        self.tree
    }
}

pub(crate) fn named(name: &str) -> LinkInfo {
    LinkInfo { name: name.to_string(), ..LinkInfo::default() }
}

/// A software link of a kind on top of another one.
pub(crate) fn soft(name: &str, kind: &str, below: Option<u32>) -> LinkInfo {
    LinkInfo { kind: Some(kind.to_string()), link: below, flags: rtnl::IFF_UP, ..named(name) }
}

/// Of eth1, with four queues, on node 0.
pub(crate) fn eth1_plan(driver: &str) -> NicPlan<'_> {
    NicPlan {
        name: "eth1",
        driver,
        bus: "0000:03:00.0",
        node: 0,
        queues: 4,
        vectors: igb("eth1", 4),
        up: true,
        genl_first: None,
    }
}

/// igb with more than four queues: the link vector, then one for each pair.
pub(crate) fn igb(name: &str, queues: u32) -> Vec<String> {
    let mut v = vec![name.to_string()];
    if queues > 4 {
        v.extend((0..queues).map(|q| format!("{name}-TxRx-{q}")));
    } else {
        v.extend((0..queues).map(|q| format!("{name}-rx-{q}")));
        v.extend((0..queues).map(|q| format!("{name}-tx-{q}")));
    }
    v
}

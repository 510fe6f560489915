//! Trees in which one value is unusual: each value is read as it is, and contradictions are unknown.

use std::sync::Arc;
use std::time::Duration;

use ringwise_discover::{Options, snapshot, topology};
use ringwise_kfmt::ethtool_ioctl::{self, Drvinfo};
use ringwise_kfmt::ethtool_nl::msg;
use ringwise_model::{CpuId, CpuSet, Fact, NodeId, Role, Snapshot, Topology, Unread};
use ringwise_sys::{Clock, Host, IoctlCmd, Request, Result};

use crate::common::Tree;
use crate::common::machine::{Machine, NicPlan, eth1_plan};

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

fn set(text: &str) -> CpuSet {
    text.parse().unwrap()
}

fn mask(list: &str) -> String {
    ringwise_kfmt::cpumask::format(&set(list), Some(8)) + "\n"
}

fn read(t: &Tree) -> (Topology, Vec<Unread>) {
    topology(&t.host())
}

fn has_unread(unread: &[Unread], words: &str) -> bool {
    unread.iter().any(|u| u.to_string().contains(words))
}

/// CPU 0 of some guests and hybrid machines has no level 3, but the others do.
#[test]
fn an_l3_that_cpu_0_does_not_have_is_still_that_of_the_others() {
    let mut t = Machine::new(8, 2).finish();
    t.files.retain(|p, _| !p.starts_with(&format!("{CPU}/cpu0/cache/index3")));
    for c in 1..8 {
        t.file(format!("{CPU}/cpu{c}/cache/index3/shared_cpu_list"), "1-7\n");
    }
    let (topology, unread) = read(&t);
    assert_eq!(topology.cpus[&CpuId(0)].l3, Fact::Absent);
    for c in 1..8 {
        assert_eq!(topology.cpus[&CpuId(c)].l3, Fact::Known(set("1-7")), "CPU {c}");
    }
    assert_eq!(unread, []);
}

#[test]
fn a_cache_level_that_cannot_be_read_is_not_an_absent_l3() {
    let mut t = Machine::new(4, 1).finish();
    t.error(format!("{CPU}/cpu0/cache/index3/level"), 13);
    let (topology, _) = read(&t);
    assert!(matches!(&topology.cpus[&CpuId(0)].l3, Fact::Unknown(u) if u.what.ends_with("index3/level")));
    assert_eq!(topology.cpus[&CpuId(1)].l3, Fact::Known(set("0-3")));
}

/// Copies of `/sys` often contain only the masks.
#[test]
fn siblings_and_caches_are_read_from_masks() {
    let whole = Machine::new(8, 2).finish();
    let mut t = whole.clone();
    for c in 0..8 {
        let lists = [
            (format!("{CPU}/cpu{c}/topology/thread_siblings_list"), format!("{CPU}/cpu{c}/topology/thread_siblings")),
            (format!("{CPU}/cpu{c}/cache/index3/shared_cpu_list"), format!("{CPU}/cpu{c}/cache/index3/shared_cpu_map")),
        ];
        for (list, map) in lists {
            let text = String::from_utf8(t.files.remove(&list).unwrap().unwrap()).unwrap();
            t.file(map, mask(text.trim()));
        }
    }
    for foreign in [false, true] {
        t.foreign = foreign;
        let sets = |t: &Tree| {
            let (topology, _) = read(t);
            topology.cpus.into_values().map(|c| (c.siblings, c.l3)).collect::<Vec<_>>()
        };
        assert_eq!(sets(&t), sets(&whole));
    }
}

#[test]
fn a_set_without_its_own_cpu_is_unknown() {
    let mut t = Machine::new(8, 2).finish();
    t.file(format!("{CPU}/cpu2/topology/thread_siblings_list"), "4-5\n");
    t.file(format!("{CPU}/cpu0/cache/index3/shared_cpu_list"), "4-7\n");
    t.file(format!("{CPU}/cpu1/cache/index3/shared_cpu_list"), "\n");
    let (topology, unread) = read(&t);
    let cpu = |c| &topology.cpus[&CpuId(c)];
    assert!(matches!(&cpu(2).siblings, Fact::Unknown(u) if u.why.contains("\"4-5\"") && u.why.contains("CPU 2")));
    assert!(cpu(0).l3.unread().is_some() && cpu(1).l3.unread().is_some());
    // The other members have their own files.
    assert_eq!(cpu(4).siblings, Fact::Known(set("4-5")));
    assert_eq!(cpu(3).l3, Fact::Known(set("0-7")));
    assert!(
        has_unread(&unread, "cpu2/topology/thread_siblings_list")
            && has_unread(&unread, "cpu0/cache/index3/shared_cpu_list")
    );
}

/// Some kernels with emulated nodes list a CPU in several.
#[test]
fn a_cpu_in_two_nodes_has_an_unknown_one() {
    let mut t = Machine::new(8, 2).finish();
    t.file(format!("{NODE}/node1/cpulist"), "2-7\n");
    let (topology, unread) = read(&t);
    let node = |c| topology.cpus[&CpuId(c)].node.clone();
    assert_eq!((node(1), node(4)), (Fact::Known(NodeId(0)), Fact::Known(NodeId(1))));
    for c in [2, 3] {
        assert!(matches!(node(c), Fact::Unknown(u) if u.why == "nodes 0 and 1 both list this CPU"), "CPU {c}");
    }
    assert!(has_unread(&unread, "CPUs 2-3 are listed by more than one node"), "{unread:?}");
}

#[test]
fn a_trailing_nul_of_a_list_is_passed_over() {
    let mut t = Machine::new(8, 2).finish();
    t.file(format!("{NODE}/node0/cpulist"), "0-3\n\0").file(format!("{NODE}/node1/cpulist"), "4-7\n\0");
    t.file(format!("{CPU}/cpu0/topology/thread_siblings_list"), "0-1\n\0");
    let (topology, unread) = read(&t);
    assert_eq!(topology.node_of(CpuId(5)), Some(NodeId(1)));
    assert_eq!(topology.cpus[&CpuId(0)].siblings, Fact::Known(set("0-1")));
    assert_eq!(unread, []);
}

/// Without `cpu/online`, `/proc/stat` and `/proc/interrupts`.
#[test]
fn online_cpus_come_from_what_is_there() {
    let mut t = Machine::new(8, 2).finish();
    for path in [format!("{CPU}/online"), "/proc/interrupts".into()] {
        t.files.remove(&path);
    }
    t.foreign = true;
    assert_eq!(read(&t).0.online, set("0-7"), "by the directories");
    // Kernels before 4.20 keep the directory of an offline CPU.
    t.file(format!("{CPU}/cpu5/online"), "0\n").file(format!("{CPU}/cpu6/online"), "1\n");
    assert_eq!(read(&t).0.online, set("0-4,6-7"), "but for those that say that they are offline");
    t.file("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: x\n\nprocessor\t: 2\nvendor_id\t: x\n");
    assert_eq!(read(&t).0.online, set("0,2"), "the kernel lists online CPUs there");
    // s390
    t.file(
        "/proc/cpuinfo",
        "vendor_id       : IBM/S390\n# processors    : 2\nprocessor 0: version = FF\nprocessor 1: version = FF\n",
    );
    assert_eq!(read(&t).0.online, set("0-1"));
}

#[test]
fn one_short_row_does_not_lose_the_table() {
    let mut m = Machine::new(8, 2);
    let (_, first) = m.nic(&eth1_plan("igb"));
    let mut t = m.finish();
    let text = String::from_utf8(t.files["/proc/interrupts"].clone().unwrap()).unwrap();
    let cut = format!("{:>4}:          7  PCI-MSIX-0000:03:00.0   9-edge      eth1-rx-0", first + 1);
    let rows: Vec<&str> =
        text.lines().map(|l| if l.starts_with(&format!("{:>4}:", first + 1)) { &*cut } else { l }).collect();
    t.file("/proc/interrupts", rows.join("\n"));
    let s = snapshot(&t.shared(), &Options::all()).unwrap();
    let n = s.nic("eth1").unwrap();
    assert_eq!(n.queue_vectors().count(), 8);
    let count = |irq| &n.vectors.iter().find(|v| v.irq.0 == irq).unwrap().count;
    assert!(matches!(count(first + 1), Fact::Unknown(u) if u.why.contains("fewer counts than CPUs")));
    assert_eq!(count(first + 2), &Fact::Known(u64::from(1000 + first + 2)));
}

/// Two ports of a sos report without `/sys/class/net`: only names of interrupts, `ethtool -i` and queues.
fn ports(addresses: &[&str], told: &[&str]) -> Snapshot {
    let mut m = Machine::new(8, 2);
    for (i, address) in addresses.iter().enumerate() {
        let mut vectors = vec![format!("mlx5_async0@pci:{address}")];
        vectors.extend((0..4).map(|q| format!("mlx5_comp{q}@pci:{address}")));
        let name = format!("eth{}", i + 1);
        m.nic(&NicPlan { name: &name, bus: address, vectors, ..eth1_plan("mlx5_core") });
    }
    let mut t = m.finish();
    t.foreign = true;
    let (net, devices) = ("/sys/class/net/", "/sys/devices/pci");
    t.links.retain(|p, _| !p.starts_with(net) && !p.starts_with(devices));
    t.files.retain(|p, _| !p.starts_with(net) && !p.starts_with(devices));
    let links = std::mem::take(t.kernel.get_mut(&Request::Links).unwrap().as_mut().unwrap());
    t.reply(Request::Links, links.into_iter().take(told.len() + 1).collect());
    for (i, address) in told.iter().enumerate() {
        let dev = format!("eth{}", i + 1);
        for q in 0..4 {
            t.file(format!("{net}{dev}/queues/rx-{q}/rps_cpus"), "0\n");
            t.file(format!("{net}{dev}/queues/tx-{q}/xps_cpus"), "0\n");
        }
        let info = Drvinfo { driver: "mlx5_core".into(), bus_info: address.to_string(), ..Drvinfo::default() };
        let ask = Request::Ioctl { cmd: IoctlCmd::DrvinfoGet, dev, payload: ethtool_ioctl::drvinfo_request() };
        t.reply(ask, vec![ethtool_ioctl::drvinfo_reply(&info)]);
    }
    snapshot(&t.shared(), &Options::all()).unwrap()
}

/// Addresses in the names of the interrupts of each port.
fn owners(s: &Snapshot) -> Vec<Vec<String>> {
    let names = |n: &ringwise_model::Nic| {
        let mut all: Vec<String> =
            n.queue_vectors().map(|v| v.names[0].rsplit_once("pci:").unwrap().1.to_string()).collect();
        all.dedup();
        assert!(all.is_empty() || n.queue_vectors().count() == 4);
        all
    };
    s.tunable().map(names).collect()
}

const A: &str = "0000:3b:00.0";
const B: &str = "0000:3b:00.1";

#[test]
fn bus_info_decides_whose_interrupts_they_are() {
    let s = ports(&[A, B], &[A, B]);
    assert_eq!(owners(&s), [[A], [B]]);
    assert_eq!(s.nic("eth2").unwrap().dev.bus_address.as_deref(), Some(B));
}

#[test]
fn an_unknown_address_never_matches_two_devices() {
    let no_owner: [&str; 0] = [];
    let s = ports(&[A, B], &["", ""]);
    assert_eq!(owners(&s), [no_owner, no_owner]);
    for n in s.tunable() {
        assert!(has_unread(&n.unread, "the bus address of the interface is unknown"), "{:?}", n.unread);
    }
    // One of two is known, so the rest is the other's; or there is one port and one address.
    assert_eq!(owners(&ports(&[A, B], &[A, ""])), [[A], [B]]);
    assert_eq!(owners(&ports(&[A], &[""])), [[A]]);
    // The interrupts of two devices for one port: either may be it.
    assert_eq!(owners(&ports(&[A, B], &[""])), [no_owner]);
}

#[test]
fn queues_that_could_not_be_read_are_not_none() {
    let mut m = Machine::new(8, 2);
    m.nic(&eth1_plan("igb"));
    let mut t = m.finish();
    t.files.retain(|p, _| !p.contains("/queues/"));
    t.foreign = true;
    let s = snapshot(&t.shared(), &Options::all()).unwrap();
    let n = s.nic("eth1").unwrap();
    assert_eq!(n.queues_unread().map(|u| u.what.as_str()), Some("/sys/class/net/eth1/queues"));
    // Which of the named queues exist is not known: the vectors are not spare ones.
    let serve = n.vectors.iter().filter(|v| v.names[0].contains("x-"));
    assert_eq!(serve.map(|v| v.role.clone()).collect::<Vec<_>>(), vec![Role::Unknown; 8]);
    t.foreign = false;
    assert!(snapshot(&t.shared(), &Options::all()).unwrap().nic("eth1").unwrap().queues_unread().is_none());
}

/// A recording whose reader needs longer than the deadline of a device.
struct Slow(crate::common::MapHost);

impl Clock for Slow {
    fn since_boot(&self) -> Duration {
        self.0.since_boot()
    }
    fn unix_time(&self) -> u64 {
        self.0.unix_time()
    }
    fn sleep(&self, _: Duration) {}
}

impl Host for Slow {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.0.read(path)
    }
    fn write(&self, path: &str, data: &[u8]) -> Result<()> {
        self.0.write(path, data)
    }
    fn list(&self, path: &str) -> Result<Vec<String>> {
        self.0.list(path)
    }
    fn readlink(&self, path: &str) -> Result<String> {
        self.0.readlink(path)
    }
    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        let slow = match request {
            Request::Links | Request::Addrs => true,
            Request::EthtoolGet { cmd, .. } => *cmd == msg::CHANNELS_GET,
            _ => false,
        };
        if slow {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.0.kernel(request)
    }
    fn is_recorded(&self) -> bool {
        true
    }
}

/// The deadline is for devices that hang; a recording with thousands of queues only takes its time.
#[test]
fn a_recording_has_no_deadline() {
    let mut m = Machine::new(8, 2);
    m.nic(&eth1_plan("igb"));
    let host: Arc<dyn Host> = Arc::new(Slow(m.finish().host()));
    let options = Options { deadline: Duration::from_millis(1), ..Options::all() };
    let s = snapshot(&host, &options).unwrap();
    let n = s.nic("eth1").unwrap();
    assert!(n.dev.ifindex.is_some() && n.channels.is_known() && n.rx_queues.len() == 4, "{:?}", n.unread);
    assert!(!has_unread(&s.unread, "no answer within") && !has_unread(&n.unread, "no answer within"));
    let n = ringwise_discover::device(&host, "eth1", options.deadline).unwrap();
    assert!(n.channels.is_known() && !has_unread(&n.unread, "no answer within"));
}

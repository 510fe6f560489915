use std::sync::Mutex;
use std::time::Duration;

use ringwise_kfmt::link_stats::{LinkStats, link_stats_reply};
use ringwise_kfmt::netdev_nl::{
    PagePool, PagePoolStats, QueueInfo, QueueStats, page_pool_reply, page_pool_stats_reply, qstats_reply, queue_reply,
};
use ringwise_kfmt::qdisc::{Qdisc, ROOT, qdisc_reply};
use ringwise_model::errno::{ENOENT, EOPNOTSUPP};
use ringwise_model::{Dir, IfIndex};
use ringwise_sys::{Clock, Error, Result};

use super::*;
use crate::counters::Source;
use crate::layout::Wiring;
use QueueCounter::{BqlLimit, Drops, Packets, PoolFast, PoolRefcnt, PoolRingFull, PoolSlow};

/// A host with files, and with replies to some requests.
#[derive(Default)]
struct Fake {
    files: BTreeMap<String, String>,
    replies: BTreeMap<String, Vec<Vec<u8>>>,
    asked: Mutex<Vec<String>>,
    /// A request that hangs while this mutex is locked.
    hangs: Option<(String, Arc<Mutex<()>>)>,
}

impl Clock for Fake {
    fn since_boot(&self) -> Duration {
        Duration::from_micros(1_500_000)
    }
    fn unix_time(&self) -> u64 {
        7
    }
    fn sleep(&self, _: Duration) {}
}

impl Host for Fake {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.asked.lock().unwrap().push(path.into());
        self.files.get(path).map(|t| t.clone().into_bytes()).ok_or_else(|| Error::errno(path, ENOENT))
    }
    fn write(&self, path: &str, _: &[u8]) -> Result<()> {
        panic!("{path} is written")
    }
    fn list(&self, _: &str) -> Result<Vec<String>> {
        Ok(vec!["7".into(), "19".into(), "self".into()])
    }
    fn readlink(&self, path: &str) -> Result<String> {
        Err(Error::errno(path, ENOENT))
    }
    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        assert!(!request.writes());
        self.asked.lock().unwrap().push(request.to_string());
        if let Some((_, lock)) = self.hangs.as_ref().filter(|h| h.0 == request.to_string()) {
            drop(lock.lock());
        }
        self.replies.get(&request.to_string()).cloned().ok_or_else(|| Error::errno(request.to_string(), EOPNOTSUPP))
    }
}

fn host() -> Fake {
    let files = [
        ("/proc/stat", "cpu  1 0 0 9 0 0 2 0 0 0\ncpu1 1 0 0 9 0 0 2 0 0 0\nintr 5\n"),
        ("/proc/net/softnet_stat", "0a 1 2 0 0 0 0 0 0 3 4 5 00000001 0 5\n"),
        ("/proc/19/comm", "ksoftirqd/1\n"),
        ("/proc/7/comm", "kworker/0:1\n"),
        ("/proc/19/schedstat", "5000 1 2\n"),
        ("/proc/net/snmp", "Udp: RcvbufErrors\nUdp: 7\n"),
        ("/sys/devices/system/cpu/possible", "1,3\n"),
        ("/sys/kernel/irq/30/per_cpu_count", "12,4\n"),
        ("/sys/class/net/eth1/queues/tx-0/byte_queue_limits/limit", "3000\n"),
    ];
    let stats = LinkStats { ifindex: 2, name: "eth1".into(), counts: (0..25).collect(), carrier_changes: Some(3) };
    let qdisc = |parent, drops| {
        let kind = if parent == ROOT { "mq" } else { "fq" }.into();
        let q = Qdisc { ifindex: 2, parent, kind, drops, ..Qdisc::default() };
        qdisc_reply(&q).unwrap()
    };
    Fake {
        files: files.map(|(k, v)| (k.to_string(), v.to_string())).into(),
        replies: [
            ("link-get eth1".to_string(), vec![link_stats_reply(&stats).unwrap()]),
            ("qdisc-get (dump)".to_string(), vec![qdisc(ROOT, Some(9)), qdisc(1, Some(9))]),
        ]
        .into(),
        ..Fake::default()
    }
}

fn layout(queues: u32) -> Layout {
    let all: BTreeMap<u32, Option<IrqId>> = (0..queues).map(|q| (q, Some(IrqId(30)))).collect();
    let wiring = Wiring { driver: Some("igb".into()), rx: all.clone(), tx: all, ..Wiring::default() };
    Layout { links: [("eth1".to_string(), wiring)].into(), ..Layout::default() }
}

#[test]
fn everything_by_its_name() {
    let host = host();
    let c = Sampler::new(&host, &layout(1), true).read(&host);
    assert_eq!(
        (c.at_us, c.unix_time, c.host["Udp:RcvbufErrors"], c.unread.len()),
        (1_500_000, 7, 7, 0),
        "{:?}",
        c.unread
    );
    let l = &c.links["eth1"];
    assert_eq!((l.ifindex, l.counts["rx_missed_errors"], l.counts["carrier_changes"]), (2, 15, 3));
    let tx = &l.tx[&0];
    assert_eq!((l.counts["qdisc_drops"], tx.get(QueueCounter::QdiscDrops), tx.get(BqlLimit)), (9, Some(9), Some(3000)));
    assert_eq!(
        (l.source, l.rx[&0].get(Packets), tx.get(Packets)),
        (Source::Device, Some(0), Some(1)),
        "one queue, no other source"
    );
    assert_eq!(
        c.irqs[&IrqId(30)],
        BTreeMap::from([(CpuId(1), 12), (CpuId(3), 4)]),
        "the numbers of possible CPUs have gaps"
    );
    let cpu = &c.cpus[&CpuId(1)].counts;
    let some = [CpuCounter::Softirq, CpuCounter::SoftnetProcessed, CpuCounter::SoftnetBacklog, CpuCounter::KsoftirqdNs];
    assert_eq!(some.map(|c| cpu.get(c)), [Some(2), Some(10), Some(5), Some(5000)]);
    assert_eq!(c.cpus.len(), 1);
}

fn strings(names: &[&str]) -> Vec<Vec<u8>> {
    let name = |n: &&str| [n.as_bytes(), &vec![0; 32 - n.len()]].concat();
    vec![names.iter().flat_map(name).collect()]
}

fn values(n: &[u64]) -> Vec<Vec<u8>> {
    vec![n.iter().flat_map(|n| n.to_ne_bytes()).collect()]
}

/// The link with this index and this many changes of its carrier.
fn link_of(ifindex: u32, carrier_changes: u32) -> Vec<Vec<u8>> {
    let carrier_changes = Some(carrier_changes);
    vec![link_stats_reply(&LinkStats { ifindex, name: "eth1".into(), counts: vec![0; 25], carrier_changes }).unwrap()]
}

/// A list for two receive and two transmit queues has as many counters as one for three and one.
#[test]
fn another_list_of_the_same_length_is_learned_when_the_link_went_away_meanwhile() {
    let mut host = host();
    let list = |names: [&str; 3]| strings(&names);
    host.replies.insert("link-get eth1".into(), link_of(2, 3));
    let before = list(["rx_queue_0_packets", "tx_queue_0_packets", "tx_queue_1_packets"]);
    let after = list(["rx_queue_0_packets", "rx_queue_1_packets", "tx_queue_0_packets"]);
    host.replies.insert("ETHTOOL_GSTRINGS eth1".into(), before);
    host.replies.insert("ETHTOOL_GSTATS eth1".into(), values(&[10, 20, 30]));
    let mut sampler = Sampler::new(&host, &layout(2), false);
    let mut look = |host: &Fake| {
        let l = sampler.read(host).links.remove("eth1").unwrap();
        [&l.rx, &l.tx].map(|all| all.values().map(|c| c.get(Packets)).collect::<Vec<_>>())
    };
    let (first, then) = ([vec![Some(10)], vec![Some(20), Some(30)]], [vec![Some(10), Some(20)], vec![Some(30)]]);
    assert_eq!(look(&host), first);
    host.replies.insert("ETHTOOL_GSTRINGS eth1".into(), after.clone());
    assert_eq!(look(&host), first, "nothing shows that the list has changed");
    host.replies.insert("link-get eth1".into(), link_of(2, 5));
    assert_eq!(look(&host), then);
    // The names are refused once because the device is busy: no queue is reported, and the next sample has them again.
    host.replies.remove("ETHTOOL_GSTRINGS eth1");
    host.replies.insert("link-get eth1".into(), link_of(9, 5));
    assert_eq!(look(&host), [vec![], vec![]]);
    host.replies.insert("ETHTOOL_GSTRINGS eth1".into(), after);
    assert_eq!(look(&host), then);
}

#[test]
fn allowances_stand_beside_the_queues_and_the_list_is_read_once() {
    let mut host = host();
    let names = ["bw_in_allowance_exceeded", "queue_0_rx_cnt", "queue_1_rx_cnt"];
    host.replies.insert("ETHTOOL_GSTRINGS eth1".into(), strings(&names));
    host.replies.insert("ETHTOOL_GSTATS eth1".into(), values(&[7, 8, 9]));
    let mut layout = layout(2);
    layout.links.get_mut("eth1").unwrap().driver = Some("ena".into());
    let mut sampler = Sampler::new(&host, &layout, false);
    let l = sampler.read(&host).links.remove("eth1").unwrap();
    assert_eq!((l.counts["bw_in_allowance_exceeded"], l.rx[&1].get(Packets)), (7, Some(9)));
    let values_asked = host.asked.lock().unwrap().iter().filter(|a| a.starts_with("ETHTOOL_GSTATS")).count();
    assert_eq!(values_asked, 1);
}

#[test]
fn vectors_of_no_queue_are_counted_where_they_are_wanted() {
    let mut host = host();
    host.files.insert("/sys/kernel/irq/99/per_cpu_count".into(), "0,6\n".into());
    let mut sampler = Sampler::new(&host, &layout(1), false).with_vectors(vec![IrqId(99), IrqId(30)]);
    let all =
        BTreeMap::from([(IrqId(30), [(CpuId(1), 12), (CpuId(3), 4)].into()), (IrqId(99), [(CpuId(3), 6)].into())]);
    assert_eq!(sampler.read(&host).irqs, all);
    sampler.follow(&layout(1));
    assert_eq!(sampler.read(&host).irqs, all);
}

#[test]
fn qstats_before_ethtool_and_nothing_is_guessed() {
    let mut host = host();
    let c = Sampler::new(&host, &layout(2), false).read(&host);
    assert_eq!((c.links["eth1"].source, c.links["eth1"].rx.len()), (Source::Nothing, 0));
    host.replies.insert(
        "ETHTOOL_GSTRINGS eth1".into(),
        strings(&["rx_packets", "rx_queue_0_packets", "rx_queue_1_packets", "rx_queue_1_drops"]),
    );
    host.replies.insert("ETHTOOL_GSTATS eth1".into(), values(&[9, 4, 5, 1]));
    let mut sampler = Sampler::new(&host, &layout(2), false);
    let l = sampler.read(&host).links.remove("eth1").unwrap();
    assert_eq!((l.source, l.rx[&0].get(Packets), l.rx[&1].get(Drops)), (Source::Ethtool, Some(4), Some(1)));
    // Neither names nor qstats are requested again.
    host.asked.lock().unwrap().clear();
    sampler.read(&host);
    let asked = host.asked.lock().unwrap().join(" ");
    assert!(asked.contains("ETHTOOL_GSTATS") && !asked.contains("GSTRINGS") && !asked.contains("qstats"), "{asked}");
    // The list changed: no counter is assigned to the wrong queue.
    host.replies.insert("ETHTOOL_GSTATS eth1".into(), values(&[9, 4, 5, 1, 3]));
    let l = sampler.read(&host).links.remove("eth1").unwrap();
    assert_eq!((l.source, l.rx.len()), (Source::Nothing, 0));
    let q = QueueStats { dir: Dir::Rx, id: 1, counts: [(Packets, 77)].into() };
    host.replies.insert("qstats-get eth1".into(), vec![qstats_reply(&q)]);
    let l = sampler.read(&host).links.remove("eth1").unwrap();
    assert_eq!((l.source, l.rx[&1].get(Packets)), (Source::Qstats, Some(77)));
}

/// ixgbe lists as many queues as it could have. A queue that the interface does not have is left out while it has never
/// counted anything; a queue that was added since the layout was read is counted.
#[test]
fn listed_queues_that_the_interface_does_not_have() {
    let mut host = host();
    let names: Vec<String> = (0..4).map(|q| format!("rx_queue_{q}_packets")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    host.replies.insert("ETHTOOL_GSTRINGS eth1".into(), strings(&names));
    host.replies.insert("ETHTOOL_GSTATS eth1".into(), values(&[4, 0, 0, 6]));
    let l = Sampler::new(&host, &layout(2), false).read(&host).links.remove("eth1").unwrap();
    let found: Vec<_> = l.rx.iter().map(|(q, counts)| (*q, counts.get(Packets))).collect();
    assert_eq!(found, [(0, Some(4)), (1, Some(0)), (3, Some(6))]);
}

/// Counters of a page pool belong to the receive queue whose NAPI instance takes pages from it. A second pool of the
/// queue is added, and pools of other interfaces are not.
#[test]
fn page_pools_are_counted_by_queue() {
    let mut host = host();
    let queue =
        |dir, id, napi| queue_reply(&QueueInfo { napi: Some(napi), ..QueueInfo::unused(IfIndex(2), dir, id) }).unwrap();
    let queues = vec![queue(Dir::Rx, 0, 80), queue(Dir::Rx, 1, 81), queue(Dir::Tx, 0, 80)];
    let pool = |id, ifindex, napi| page_pool_reply(&PagePool { id, ifindex: Some(IfIndex(ifindex)), napi });
    let pools = vec![pool(5, 2, Some(81)), pool(6, 2, Some(81)), pool(7, 9, Some(81)), pool(8, 2, None)];
    let stats = |id, slow| {
        let counts = [(PoolFast, 100), (PoolSlow, slow), (PoolRingFull, 7), (PoolRefcnt, 1)].into();
        page_pool_stats_reply(&PagePoolStats { id, counts }).unwrap()
    };
    host.replies.insert("queue-get eth1".into(), queues);
    host.replies.insert("page-pool-get eth1".into(), pools);
    host.replies.insert("page-pool-stats-get eth1".into(), vec![stats(5, 3), stats(6, 2), stats(7, 90), stats(8, 90)]);
    let l = Sampler::new(&host, &layout(2), true).read(&host).links.remove("eth1").unwrap();
    let of = |q: u32, c| l.rx.get(&q).and_then(|counts| counts.get(c));
    assert_eq!(
        (of(1, PoolFast), of(1, PoolSlow), of(1, PoolRingFull), of(1, PoolRefcnt)),
        (Some(200), Some(5), Some(14), Some(2))
    );
    assert_eq!(of(0, PoolSlow), None);
    // Without detail, and on a kernel that does not count pools, nothing more is requested.
    let asked = |host: &Fake| host.asked.lock().unwrap().drain(..).filter(|r| r.contains("page-pool")).count();
    asked(&host);
    Sampler::new(&host, &layout(2), false).read(&host);
    assert_eq!(asked(&host), 0);
    host.replies.remove("page-pool-stats-get eth1");
    let mut sampler = Sampler::new(&host, &layout(2), true);
    sampler.read(&host);
    sampler.read(&host);
    assert_eq!(asked(&host), 1);
}

/// A request that fails once does not change the source.
#[test]
fn a_refusal_is_for_one_time_only() {
    let mut host = host();
    let q = QueueStats { dir: Dir::Rx, id: 1, counts: [(Packets, 77)].into() };
    host.replies.insert("qstats-get eth1".into(), vec![qstats_reply(&q)]);
    let mut sampler = Sampler::new(&host, &layout(2), false);
    assert_eq!(sampler.read(&host).links["eth1"].rx.len(), 1);
    let told = host.replies.remove("qstats-get eth1").unwrap();
    let l = sampler.read(&host).links.remove("eth1").unwrap();
    assert_eq!((l.source, l.rx.len()), (Source::Qstats, 0));
    host.replies.insert("qstats-get eth1".into(), told);
    assert_eq!(sampler.read(&host).links["eth1"].rx[&1].get(Packets), Some(77));
}

#[test]
fn a_device_that_hangs_is_silent_and_the_others_are_reported() {
    let lock = Arc::new(Mutex::new(()));
    let mut fake = host();
    let other = LinkStats { ifindex: 3, name: "eth2".into(), counts: (0..25).collect(), carrier_changes: None };
    fake.replies.insert("link-get eth2".into(), vec![link_stats_reply(&other).unwrap()]);
    fake.hangs = Some(("link-get eth1".into(), lock.clone()));
    let mut layout = layout(1);
    layout.links.insert("eth2".into(), Wiring::default());
    let host: Arc<dyn Host> = Arc::new(fake);
    let long = Duration::from_secs(60);
    let mut sampler = Sampler::new(host.as_ref(), &layout, false).with_deadline(&host, long);
    let first = sampler.read(host.as_ref());
    assert_eq!((first.links.len(), first.silent.as_slice()), (2, &[][..]));
    let held = lock.lock().unwrap();
    sampler.deadline = Some((host.clone(), Duration::from_secs(2)));
    let second = sampler.read(host.as_ref());
    assert_eq!((second.silent.as_slice(), second.links.len()), (&["eth1".to_string()][..], 1));
    assert!(second.links.contains_key("eth2") && second.cpus.len() == 1);
    // The sampler does not wait for it again.
    sampler.deadline = Some((host.clone(), long));
    let begin = Instant::now();
    assert_eq!(sampler.read(host.as_ref()).silent, ["eth1"]);
    assert!(begin.elapsed() < long / 2);
    drop(held);
    let back = (0..3000).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        Some(sampler.read(host.as_ref())).filter(|c| c.silent.is_empty())
    });
    assert_eq!(back.unwrap().links.len(), 2);
}

#[test]
fn vectors_whose_sum_stays_are_not_read_again() {
    let mut host = host();
    let stat = host.files.get_mut("/proc/stat").unwrap();
    *stat = stat.replace("intr 5\n", &format!("intr 99{} 16\n", " 0".repeat(30)));
    let mut sampler = Sampler::new(&host, &layout(1), false);
    let first = sampler.read(&host).irqs;
    host.asked.lock().unwrap().clear();
    assert_eq!(sampler.read(&host).irqs, first);
    let read = |h: &Fake| h.asked.lock().unwrap().iter().any(|a| a.ends_with("per_cpu_count"));
    assert!(!read(&host));
    let stat = host.files.get_mut("/proc/stat").unwrap();
    *stat = stat.replace(" 16\n", " 17\n");
    host.files.insert("/sys/kernel/irq/30/per_cpu_count".into(), "12,5\n".into());
    assert_eq!(sampler.read(&host).irqs[&IrqId(30)][&CpuId(3)], 5);
    assert!(read(&host));
}

#[test]
fn idle_states_of_cpus_that_take_interrupts() {
    let mut host = host();
    for (file, text) in [("0/name", "POLL"), ("0/time", "7"), ("1/name", "haltpoll idle"), ("1/time", "900")] {
        host.files.insert(format!("/sys/devices/system/cpu/cpu1/cpuidle/state{file}"), format!("{text}\n"));
    }
    let c = Sampler::new(&host, &layout(1), true).read(&host);
    assert_eq!(c.cpus[&CpuId(1)].idle_us, [("0POLL".into(), 7), ("1haltpoll_idle".into(), 900)]);
    let less = Sampler::new(&host, &layout(1), false).read(&host);
    assert!(less.cpus[&CpuId(1)].idle_us.is_empty());
}

#[test]
fn without_files_of_single_interrupts_the_table_is_read() {
    let mut host = host();
    host.files.remove("/sys/kernel/irq/30/per_cpu_count");
    host.files.insert(
        "/proc/interrupts".into(),
        "     CPU1 CPU3\n 30:  8  0  PCI-MSI 1-edge eth1\n 31:  9  9  PCI-MSI 2-edge x\n".into(),
    );
    let c = Sampler::new(&host, &layout(1), false).read(&host);
    assert_eq!(c.irqs, BTreeMap::from([(IrqId(30), BTreeMap::from([(CpuId(1), 8)]))]));
}

#[test]
fn missing_values_are_skipped_and_refused_ones_reported() {
    let mut host = host();
    host.replies.remove("link-get eth1");
    host.files.insert("/proc/stat".into(), "nonsense\n".into());
    let c = Sampler::new(&host, &layout(1), false).read(&host);
    assert!(c.links.is_empty());
    assert_eq!(c.unread.len(), 1, "{:?}", c.unread);
    assert_eq!(c.unread[0].what, "/proc/stat");
}

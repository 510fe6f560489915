use std::sync::Mutex;
use std::time::Duration;

use ringwise_kfmt::link_stats::{LinkStats, link_stats_reply};
use ringwise_kfmt::netdev_nl::{QueueStats, qstats_reply};
use ringwise_kfmt::qdisc::{Qdisc, ROOT, qdisc_reply};
use ringwise_sys::{Clock, Result};

use super::*;

/// A host of files and of answers to some requests.
#[derive(Default)]
struct Fake {
    files: BTreeMap<String, String>,
    replies: BTreeMap<String, Vec<Vec<u8>>>,
    asked: Mutex<Vec<String>>,
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
        self.files.get(path).map(|t| t.clone().into_bytes()).ok_or_else(|| Error::errno(path, 2))
    }
    fn write(&self, path: &str, _: &[u8]) -> Result<()> {
        panic!("{path} is written")
    }
    fn list(&self, _: &str) -> Result<Vec<String>> {
        Ok(vec!["7".into(), "19".into(), "self".into()])
    }
    fn readlink(&self, path: &str) -> Result<String> {
        Err(Error::errno(path, 2))
    }
    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        assert!(!request.writes());
        self.asked.lock().unwrap().push(request.to_string());
        self.replies.get(&request.to_string()).cloned().ok_or_else(|| Error::errno(request.to_string(), 95))
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
        let q = Qdisc { ifindex: 2, handle: 0, parent, kind: if parent == ROOT { "mq" } else { "fq" }.into(), drops };
        qdisc_reply(&q).unwrap()
    };
    Fake {
        files: files.map(|(k, v)| (k.to_string(), v.to_string())).into(),
        replies: [
            ("link-get eth1".to_string(), vec![link_stats_reply(&stats).unwrap()]),
            ("qdisc-get (dump)".to_string(), vec![qdisc(ROOT, Some(9)), qdisc(1, Some(9))]),
        ]
        .into(),
        asked: Mutex::default(),
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
    assert_eq!((l.counts["qdisc_drops"], l.tx[&0]["qdisc_drops"], l.tx[&0]["bql_limit"]), (9, 9, 3000));
    assert_eq!(
        (l.source, l.rx[&0]["packets"], l.tx[&0]["packets"]),
        (Source::Device, 0, 1),
        "one queue, no other source"
    );
    assert_eq!(c.irqs[&IrqId(30)], BTreeMap::from([(CpuId(1), 12), (CpuId(3), 4)]), "possible CPUs have holes");
    let cpu = &c.cpus[&CpuId(1)];
    assert_eq!(
        (cpu["softirq"], cpu["softnet_processed"], cpu["softnet_backlog"], cpu["ksoftirqd_ns"]),
        (2, 10, 5, 5000)
    );
    assert_eq!(c.cpus.len(), 1);
}

#[test]
fn qstats_before_ethtool_and_nothing_is_guessed() {
    let mut host = host();
    let c = Sampler::new(&host, &layout(2), false).read(&host);
    assert_eq!((c.links["eth1"].source, c.links["eth1"].rx.len()), (Source::Nothing, 0));
    let name = |n: &str| [n.as_bytes(), &vec![0; 32 - n.len()]].concat();
    let names = ["rx_packets", "rx_queue_0_packets", "rx_queue_1_packets", "rx_queue_1_drops"].map(name).concat();
    host.replies.insert("ETHTOOL_GSTRINGS eth1".into(), vec![names]);
    let values = |n: &[u64]| vec![n.iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<u8>>()];
    host.replies.insert("ETHTOOL_GSTATS eth1".into(), values(&[9, 4, 5, 1]));
    let mut sampler = Sampler::new(&host, &layout(2), false);
    let l = sampler.read(&host).links.remove("eth1").unwrap();
    assert_eq!((l.source, l.rx[&0]["packets"], l.rx[&1]["drops"]), (Source::Ethtool, 4, 1));
    // The names are not asked again, nor is qstats.
    host.asked.lock().unwrap().clear();
    sampler.read(&host);
    let asked = host.asked.lock().unwrap().join(" ");
    assert!(asked.contains("ETHTOOL_GSTATS") && !asked.contains("GSTRINGS") && !asked.contains("qstats"), "{asked}");
    // Another list of counters: nothing is put to the wrong queue.
    host.replies.insert("ETHTOOL_GSTATS eth1".into(), values(&[9, 4, 5, 1, 3]));
    let l = sampler.read(&host).links.remove("eth1").unwrap();
    assert_eq!((l.source, l.rx.len()), (Source::Nothing, 0));
    let q = QueueStats { dir: Dir::Rx, id: 1, counts: vec![("packets", 77)] };
    host.replies.insert("qstats-get eth1".into(), vec![qstats_reply(&q)]);
    let l = sampler.read(&host).links.remove("eth1").unwrap();
    assert_eq!((l.source, l.rx[&1]["packets"]), (Source::Qstats, 77));
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
fn what_is_gone_is_left_out_and_what_is_refused_is_said() {
    let mut host = host();
    host.replies.remove("link-get eth1");
    host.files.insert("/proc/stat".into(), "nonsense\n".into());
    let c = Sampler::new(&host, &layout(1), false).read(&host);
    assert!(c.links.is_empty());
    assert_eq!(c.unread.len(), 1, "{:?}", c.unread);
    assert_eq!(c.unread[0].what, "/proc/stat");
}

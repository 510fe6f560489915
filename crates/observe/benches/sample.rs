//! CPU time of a sample with many queues, and of what happened since the one before: reading of what the kernel would
//! answer, without the kernel's own part. `cargo bench -p ringwise-observe`; prints microseconds of CPU time.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use ringwise_kfmt::link_stats::{LinkStats, link_stats_reply};
use ringwise_kfmt::netdev_nl::{QueueStats, qstats_reply};
use ringwise_model::{CpuId, Dir, IrqId, NodeId, QueueCounter};
use ringwise_observe::{Layout, Rates, Sampler, Wiring};
use ringwise_sys::{Clock, Error, Host, Request};

const FIRST_IRQ: u32 = 100;
/// Vectors that interrupt between two samples; the files of the others are not read again.
const BUSY: u32 = 64;

/// A host of this size.
#[derive(Clone, Copy)]
struct Size {
    cpus: u32,
    nics: u32,
    /// Of each NIC, in each direction.
    queues: u32,
    /// By `qstats-get`; else by `ethtool -S`.
    qstats: bool,
}

/// Answers out of memory.
#[derive(Default)]
struct Machine {
    files: HashMap<String, Vec<u8>>,
    replies: HashMap<String, Vec<Vec<u8>>>,
    pids: Vec<String>,
    us: u64,
}

impl Clock for Machine {
    fn since_boot(&self) -> Duration {
        Duration::from_micros(self.us)
    }
    fn unix_time(&self) -> u64 {
        self.us / 1_000_000
    }
    fn sleep(&self, _: Duration) {}
}

impl Host for Machine {
    fn read(&self, path: &str) -> ringwise_sys::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| Error::errno(path, 2))
    }
    fn write(&self, path: &str, _: &[u8]) -> ringwise_sys::Result<()> {
        Err(Error::errno(path, 30))
    }
    fn list(&self, _: &str) -> ringwise_sys::Result<Vec<String>> {
        Ok(self.pids.clone())
    }
    fn readlink(&self, path: &str) -> ringwise_sys::Result<String> {
        Err(Error::errno(path, 2))
    }
    fn kernel(&self, request: &Request) -> ringwise_sys::Result<Vec<Vec<u8>>> {
        self.replies.get(&request.to_string()).cloned().ok_or_else(|| Error::errno(request.to_string(), 95))
    }
}

/// After `n` seconds.
fn machine(size: Size, n: u64) -> Machine {
    let Size { cpus, nics, queues, qstats } = size;
    let mut m = Machine { us: 1_000_000_000 + n * 1_000_000, ..Machine::default() };
    let count = |i: u32| 1_000_000 + if i < BUSY { 9000 * n } else { 0 };
    let (mut stat, mut softnet) = (String::from("cpu  1 1 1 1 1 1 1 1 0 0\n"), String::new());
    for c in 0..cpus {
        let _ = writeln!(stat, "cpu{c} 100 0 {n} {} 0 0 {} 0 0 0", 1_000_000 + 90 * n, 7 * n);
        let row = format!("{:08x} {:08x} {:08x}", 1_000_000 + n * 9000, 0, n);
        let _ = writeln!(softnet, "{row} 0 0 0 0 0 0 00000000 00000000 00000000 {c:08x} 00000000 00000000");
        m.pids.push((1000 + c).to_string());
        m.files.insert(format!("/proc/{}/comm", 1000 + c), format!("ksoftirqd/{c}\n").into());
        m.files.insert(format!("/proc/{}/schedstat", 1000 + c), format!("{} 5 6\n", n * 1_000_000).into());
    }
    let mut sums = String::new();
    for i in 0..nics * queues {
        let _ = write!(sums, " {}", count(i));
        let cells: Vec<String> = (0..cpus).map(|c| if c == i % cpus { count(i) } else { 0 }.to_string()).collect();
        m.files.insert(format!("/sys/kernel/irq/{}/per_cpu_count", FIRST_IRQ + i), (cells.join(",") + "\n").into());
    }
    let _ = writeln!(stat, "intr 1{}{sums}", " 0".repeat(FIRST_IRQ as usize));
    for (path, text) in [
        ("/proc/stat", stat),
        ("/proc/net/softnet_stat", softnet),
        ("/sys/devices/system/cpu/possible", format!("0-{}\n", cpus - 1)),
        ("/proc/net/snmp", "Udp: RcvbufErrors\nUdp: 7\n".into()),
        ("/proc/net/netstat", "TcpExt: ListenDrops\nTcpExt: 0\n".into()),
        ("/proc/net/snmp6", "Udp6RcvbufErrors 0\n".into()),
    ] {
        m.files.insert(path.into(), text.into());
    }
    m.replies.insert("qdisc-get (dump)".into(), Vec::new());
    for nic in 0..nics {
        let name = format!("eth{nic}");
        let stats =
            LinkStats { ifindex: nic + 2, name: name.clone(), counts: vec![n * 771_000; 25], carrier_changes: Some(1) };
        m.replies.insert(format!("link-get {name}"), vec![link_stats_reply(&stats).expect("fits")]);
        if qstats {
            let bytes = (QueueCounter::Bytes, n * 360_000);
            let counts = [(QueueCounter::Packets, n * 6000), bytes, (QueueCounter::HwDrops, n)];
            let queue = |dir, id| qstats_reply(&QueueStats { dir, id, counts: counts.into() });
            let all = (0..queues).flat_map(|q| [queue(Dir::Rx, q), queue(Dir::Tx, q)]).collect();
            m.replies.insert(format!("qstats-get {name}"), all);
        } else {
            let (mut names, mut values) = (Vec::new(), Vec::new());
            let mut one = |text: String, value: u64| {
                let mut name = [0; 32];
                name[..text.len()].copy_from_slice(text.as_bytes());
                names.extend(name);
                values.extend(value.to_ne_bytes());
            };
            for word in ["rx_packets", "rx_bytes", "rx_long_length_errors", "tx_packets", "tx_hwtstamp_timeouts"] {
                one(word.into(), n);
            }
            for q in 0..queues {
                for (word, value) in [("packets", n * 6000), ("bytes", n * 360_000), ("restart", 0)] {
                    one(format!("tx_queue_{q}_{word}"), value);
                }
                let rx = [("packets", n * 6000), ("bytes", n * 360_000), ("drops", n), ("csum_err", 0)];
                for (word, value) in rx {
                    one(format!("rx_queue_{q}_{word}"), value);
                }
                one(format!("rx_queue_{q}_alloc_failed"), 0);
            }
            m.replies.insert(format!("ETHTOOL_GSTRINGS {name}"), vec![names]);
            m.replies.insert(format!("ETHTOOL_GSTATS {name}"), vec![values]);
        }
    }
    m
}

fn layout(size: Size) -> Layout {
    let wiring = |nic: u32| {
        let queues = (0..size.queues).map(|q| (q, Some(IrqId(FIRST_IRQ + nic * size.queues + q))));
        Wiring { driver: Some("igb".into()), rx: queues.clone().collect(), tx: queues.collect(), ..Wiring::default() }
    };
    Layout {
        links: (0..size.nics).map(|n| (format!("eth{n}"), wiring(n))).collect(),
        nodes: (0..size.cpus).map(|c| (CpuId(c), NodeId(c / 128))).collect(),
    }
}

/// Nanoseconds that this thread has run: the first number of its `schedstat`.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel counts it");
    text.split(' ').next().and_then(|w| w.parse().ok()).expect("a number")
}

fn main() {
    for (cpus, nics, queues, rounds) in [(64, 1, 64, 2000), (128, 4, 128, 200), (512, 16, 128, 60)] {
        for qstats in [true, false] {
            let size = Size { cpus, nics, queues, qstats };
            let machines = [machine(size, 0), machine(size, 1)];
            let layout = layout(size);
            let mut sampler = Sampler::new(&machines[0], &layout, false);
            let mut before = sampler.read(&machines[0]);
            let check = Rates::between(&layout, &before, &sampler.read(&machines[1])).expect("a second later");
            let q = &check.links["eth0"].queues[5];
            assert_eq!((q.packets, q.bytes, q.drops, q.interrupts), (Some(6000), Some(360_000), Some(1), Some(9000)));
            let (mut reading, mut comparing, mut at) = (0, 0, 1);
            sampler.read(&machines[0]);
            for _ in 0..rounds {
                let start = cpu_ns();
                let now = sampler.read(&machines[at]);
                let read = cpu_ns();
                // There and back: what was read a moment ago would not be read again.
                let (first, second) = if at == 1 { (&before, &now) } else { (&now, &before) };
                black_box(Rates::between(&layout, first, second));
                before = now;
                at = 1 - at;
                reading += read - start;
                comparing += cpu_ns() - read;
            }
            println!(
                "{cpus:>3} CPUs, {:>4} queues in each direction, {:<10}  reading {:>9.1} us  comparing {:>9.1} us",
                nics * queues,
                if qstats { "qstats" } else { "ethtool -S" },
                reading as f64 / f64::from(rounds) / 1000.0,
                comparing as f64 / f64::from(rounds) / 1000.0,
            );
        }
    }
}

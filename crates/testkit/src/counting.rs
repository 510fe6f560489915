//! A machine in memory whose counters have grown: what a sample reads, without the cost of the kernel.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use ringwise_kfmt::link_stats::{LinkStats, link_stats_reply};
use ringwise_kfmt::netdev_nl::{QueueStats, qstats_reply};
use ringwise_model::errno::{ENOENT, EOPNOTSUPP, EROFS};
use ringwise_model::{Dir, QueueCounter};
use ringwise_sys::{Clock, Error, Host, Request};

/// The interrupt of the first queue of `eth0`; each queue has the next one.
pub const FIRST_IRQ: u32 = 100;

/// Packets per second of each queue.
pub const QUEUE_PACKETS: u64 = 6000;
/// Bytes per second of each queue.
pub const QUEUE_BYTES: u64 = 360_000;
/// Interrupts per second of each busy queue.
pub const QUEUE_INTERRUPTS: u64 = 9000;

/// How large the machine is. Queue `q` of `ethN` is served by interrupt `FIRST_IRQ + N * queues + q`.
#[derive(Debug, Clone, Copy)]
pub struct MachineSize {
    /// Online CPUs, from 0.
    pub cpus: u32,
    /// Interfaces, `eth0` first.
    pub nics: u32,
    /// Queues of each interface, in each direction.
    pub queues: u32,
    /// The first interrupts, up to this number, occur; the others never do.
    pub busy: u32,
    /// Queue counters come from `qstats-get`; otherwise from `ethtool -S` with igb's names.
    pub qstats: bool,
}

/// Answers from memory.
#[derive(Debug, Default)]
pub struct Counting {
    /// Contents by path.
    pub files: HashMap<String, Vec<u8>>,
    replies: HashMap<String, Vec<Vec<u8>>>,
    /// What lies in `/proc`, and in any other directory.
    pids: Vec<String>,
    us: u64,
}

impl Clock for Counting {
    fn since_boot(&self) -> Duration {
        Duration::from_micros(self.us)
    }

    fn unix_time(&self) -> u64 {
        self.us / 1_000_000
    }

    fn sleep(&self, _: Duration) {}
}

impl Host for Counting {
    fn read(&self, path: &str) -> ringwise_sys::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| Error::errno(path, ENOENT))
    }

    fn write(&self, path: &str, _: &[u8]) -> ringwise_sys::Result<()> {
        Err(Error::errno(path, EROFS))
    }

    fn list(&self, _: &str) -> ringwise_sys::Result<Vec<String>> {
        Ok(self.pids.clone())
    }

    fn readlink(&self, path: &str) -> ringwise_sys::Result<String> {
        Err(Error::errno(path, ENOENT))
    }

    fn kernel(&self, request: &Request) -> ringwise_sys::Result<Vec<Vec<u8>>> {
        self.replies.get(&request.to_string()).cloned().ok_or_else(|| Error::errno(request.to_string(), EOPNOTSUPP))
    }
}

impl Counting {
    /// The machine `seconds` after its first sample.
    pub fn after(seconds: u64, size: MachineSize) -> Self {
        let mut m = Self { us: 1_000_000_000 + seconds * 1_000_000, ..Self::default() };
        m.host(seconds, size);
        for nic in 0..size.nics {
            m.nic(seconds, &format!("eth{nic}"), nic, size);
        }
        m
    }

    fn host(&mut self, n: u64, MachineSize { cpus, nics, queues, busy, .. }: MachineSize) {
        let count = |i: u32| 1_000_000 + if i < busy { QUEUE_INTERRUPTS * n } else { 0 };
        let (mut stat, mut softnet) = (String::from("cpu  1 1 1 1 1 1 1 1 0 0\n"), String::new());
        let mut table = String::from("           ");
        for c in 0..cpus {
            let _ = writeln!(stat, "cpu{c} 100 0 {n} {} 0 0 {} 0 0 0", 1_000_000 + 90 * n, 7 * n);
            let row = format!("{:08x} {:08x} {:08x}", 1_000_000 + n * QUEUE_INTERRUPTS, 0, n);
            let _ = writeln!(softnet, "{row} 0 0 0 0 0 0 00000000 00000000 00000000 {c:08x} 00000000 00000000");
            let _ = write!(table, "CPU{c:<8}");
            self.pids.push((1000 + c).to_string());
            self.files.insert(format!("/proc/{}/comm", 1000 + c), format!("ksoftirqd/{c}\n").into());
            self.files.insert(format!("/proc/{}/schedstat", 1000 + c), format!("{} 5 6\n", n * 1_000_000).into());
        }
        table.push('\n');
        let mut sums = String::new();
        for i in 0..nics * queues {
            let _ = write!(sums, " {}", count(i));
            let of = |c: u32| if c == i % cpus { count(i) } else { 0 };
            let cells: Vec<String> = (0..cpus).map(|c| of(c).to_string()).collect();
            let file = format!("/sys/kernel/irq/{}/per_cpu_count", FIRST_IRQ + i);
            self.files.insert(file, (cells.join(",") + "\n").into());
            let _ = write!(table, "{:>4}:", FIRST_IRQ + i);
            for c in 0..cpus {
                let _ = write!(table, " {:>10}", of(c));
            }
            let (nic, queue) = (i / queues, i % queues);
            let _ = writeln!(table, "  IR-PCI-MSI-0000:10:00.0  {i}-edge      ice-eth{nic}-TxRx-{queue}");
        }
        let _ = writeln!(stat, "intr 1{}{sums}", " 0".repeat(FIRST_IRQ as usize));
        for (path, text) in [
            ("/proc/stat", stat),
            ("/proc/net/softnet_stat", softnet),
            ("/proc/interrupts", table),
            ("/sys/devices/system/cpu/possible", format!("0-{}\n", cpus - 1)),
            ("/proc/net/snmp", "Udp: RcvbufErrors\nUdp: 7\n".into()),
            ("/proc/net/netstat", "TcpExt: ListenDrops\nTcpExt: 0\n".into()),
            ("/proc/net/snmp6", "Udp6RcvbufErrors 0\n".into()),
        ] {
            self.files.insert(path.into(), text.into());
        }
        self.replies.insert("qdisc-get (dump)".into(), Vec::new());
    }

    fn nic(&mut self, n: u64, name: &str, nic: u32, MachineSize { queues, qstats, .. }: MachineSize) {
        let stats =
            LinkStats { ifindex: nic + 2, name: name.into(), counts: vec![n * 771_000; 25], carrier_changes: Some(1) };
        self.replies.insert(format!("link-get {name}"), vec![link_stats_reply(&stats).expect("fits")]);
        let (packets, bytes) = (n * QUEUE_PACKETS, n * QUEUE_BYTES);
        if qstats {
            let counts = [(QueueCounter::Packets, packets), (QueueCounter::Bytes, bytes), (QueueCounter::HwDrops, n)];
            let queue = |dir, id| qstats_reply(&QueueStats { dir, id, counts: counts.into() });
            let all = (0..queues).flat_map(|q| [queue(Dir::Rx, q), queue(Dir::Tx, q)]).collect();
            self.replies.insert(format!("qstats-get {name}"), all);
            return;
        }
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
            for (word, value) in [("packets", packets), ("bytes", bytes), ("restart", 0)] {
                one(format!("tx_queue_{q}_{word}"), value);
            }
            for (word, value) in [("packets", packets), ("bytes", bytes), ("drops", n), ("csum_err", 0)] {
                one(format!("rx_queue_{q}_{word}"), value);
            }
            one(format!("rx_queue_{q}_alloc_failed"), 0);
        }
        self.replies.insert(format!("ETHTOOL_GSTRINGS {name}"), vec![names]);
        self.replies.insert(format!("ETHTOOL_GSTATS {name}"), vec![values]);
    }
}

//! A sample of `watch` on a large machine: reading of what it would say, without the kernel's own part.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use ringwise_kfmt::link_stats::{LinkStats, link_stats_reply};
use ringwise_kfmt::netdev_nl::{QueueStats, qstats_reply};
use ringwise_model::{CpuId, Dir, IrqId, NodeId, QueueCounter};
use ringwise_observe::{Layout, Rates, Sampler, Wiring};
use ringwise_sys::{Clock, Error, Host, Request};

use crate::table::Table;
use crate::{Result, median};

const CPUS: u32 = 512;
const NICS: u32 = 16;
const QUEUES: u32 = 128;
const FIRST_IRQ: u32 = 100;

/// Answers out of memory.
#[derive(Default)]
struct Machine {
    files: HashMap<String, Vec<u8>>,
    replies: HashMap<String, Vec<Vec<u8>>>,
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
        Ok((0..CPUS).map(|c| (1000 + c).to_string()).collect())
    }
    fn readlink(&self, path: &str) -> ringwise_sys::Result<String> {
        Err(Error::errno(path, 2))
    }
    fn kernel(&self, request: &Request) -> ringwise_sys::Result<Vec<Vec<u8>>> {
        self.replies.get(&request.to_string()).cloned().ok_or_else(|| Error::errno(request.to_string(), 95))
    }
}

/// After `n` seconds in which the first `busy` queue interrupts came.
fn machine(n: u64, busy: u32) -> Result<Machine> {
    let mut m = Machine { us: 1_000_000_000 + n * 1_000_000, ..Machine::default() };
    let irqs = NICS * QUEUES;
    let count = |i: u32| 1_000_000 + if i < busy { 9000 * n } else { 0 };
    let (mut stat, mut softnet, mut sums) = (String::from("cpu  1 1 1 1 1 1 1 1 0 0\n"), String::new(), String::new());
    let mut table = String::from("           ");
    for c in 0..CPUS {
        let _ = writeln!(stat, "cpu{c} 100 0 {n} {} 0 0 {} 0 0 0", 1_000_000 + 90 * n, 7 * n);
        let row = format!("{:08x} {:08x} {:08x}", 1_000_000 + n * 9000, 0, n);
        let _ = writeln!(softnet, "{row} 0 0 0 0 0 0 00000000 00000000 00000000 {c:08x} 00000000 00000000");
        let _ = write!(table, "CPU{c:<8}");
        m.files.insert(format!("/proc/{}/comm", 1000 + c), format!("ksoftirqd/{c}\n").into());
        m.files.insert(format!("/proc/{}/schedstat", 1000 + c), format!("{} 5 6\n", n * 1_000_000).into());
    }
    table.push('\n');
    for i in 0..irqs {
        let _ = write!(sums, " {}", count(i));
        let of = |c: u32| if c == i % CPUS { count(i) } else { 0 };
        let cells: Vec<String> = (0..CPUS).map(|c| of(c).to_string()).collect();
        m.files.insert(format!("/sys/kernel/irq/{}/per_cpu_count", FIRST_IRQ + i), (cells.join(",") + "\n").into());
        let _ = write!(table, "{:>4}:", FIRST_IRQ + i);
        for c in 0..CPUS {
            let _ = write!(table, " {:>10}", of(c));
        }
        let _ = writeln!(table, "  IR-PCI-MSI-0000:10:00.0  {i}-edge      ice-eth{}-TxRx-{}", i / QUEUES, i % QUEUES);
    }
    let _ = writeln!(stat, "intr 1{}{sums}", " 0".repeat(FIRST_IRQ as usize));
    for (path, text) in [
        ("/proc/stat", stat),
        ("/proc/net/softnet_stat", softnet),
        ("/proc/interrupts", table),
        ("/sys/devices/system/cpu/possible", format!("0-{}\n", CPUS - 1)),
        ("/proc/net/snmp", "Udp: RcvbufErrors\nUdp: 7\n".into()),
        ("/proc/net/netstat", "TcpExt: ListenDrops\nTcpExt: 0\n".into()),
        ("/proc/net/snmp6", "Udp6RcvbufErrors 0\n".into()),
    ] {
        m.files.insert(path.into(), text.into());
    }
    m.replies.insert("qdisc-get (dump)".into(), Vec::new());
    for nic in 0..NICS {
        let name = format!("eth{nic}");
        let stats =
            LinkStats { ifindex: nic + 2, name: name.clone(), counts: vec![n * 771_000; 25], carrier_changes: Some(1) };
        m.replies.insert(format!("link-get {name}"), vec![link_stats_reply(&stats)?]);
        let bytes = (QueueCounter::Bytes, n * 360_000);
        let counts = [(QueueCounter::Packets, n * 6000), bytes, (QueueCounter::HwDrops, n)];
        let queue = |dir, id| qstats_reply(&QueueStats { dir, id, counts: counts.into() });
        let all = (0..QUEUES).flat_map(|q| [queue(Dir::Rx, q), queue(Dir::Tx, q)]).collect();
        m.replies.insert(format!("qstats-get {name}"), all);
    }
    Ok(m)
}

fn layout() -> Layout {
    let wiring = |nic: u32| {
        let queues = (0..QUEUES).map(|q| (q, Some(IrqId(FIRST_IRQ + nic * QUEUES + q))));
        Wiring { driver: Some("ice".into()), rx: queues.clone().collect(), tx: queues.collect(), ..Wiring::default() }
    };
    Layout {
        links: (0..NICS).map(|n| (format!("eth{n}"), wiring(n))).collect(),
        nodes: (0..CPUS).map(|c| (CpuId(c), NodeId(c / 128))).collect(),
    }
}

pub(crate) fn measure(table: &mut Table) -> Result<()> {
    let layout = layout();
    let of = |what: &str| format!("a sample of watch, 512 CPUs, 2,048 queue interrupts, {what}");
    for (what, busy, files) in [
        ("all of them busy", NICS * QUEUES, true),
        ("64 of them busy", 64, true),
        ("all of them busy, from /proc/interrupts", NICS * QUEUES, false),
    ] {
        let mut machines = [machine(0, busy)?, machine(1, busy)?];
        if !files {
            machines.iter_mut().for_each(|m| m.files.retain(|path, _| !path.ends_with("per_cpu_count")));
        }
        let mut sampler = Sampler::new(&machines[0], &layout, false);
        let mut before = sampler.read(&machines[0]);
        let mut at = 0;
        let check = Rates::between(&layout, &before, &sampler.read(&machines[1])).ok_or("no rates")?;
        let (eth15, took) = (&check.links["eth15"], &check.links["eth0"].queues[5]);
        if (eth15.queues.len(), eth15.queues[9].packets, took.interrupts) != (256, Some(6000), Some(9000)) {
            return Err(format!("{what}: read wrongly: {took:?}").into());
        }
        let time = median(15, || {
            at = 1 - at;
            let now = sampler.read(&machines[at]);
            // There and back: what was read a moment ago would not be read again.
            let (first, second) = if at == 1 { (&before, &now) } else { (&now, &before) };
            let rates = Rates::between(&layout, first, second);
            before = now;
            rates
        });
        table.note_time(&of(what), time);
    }
    let text = machine(1, 2048)?.files.remove("/proc/interrupts").ok_or("no table")?;
    table.note("  /proc/interrupts of that machine", format!("{:.1} MB", text.len() as f64 / 1e6));
    table.note_time("  reading that alone", median(7, || ringwise_kfmt::interrupts::parse(&text)));
    Ok(())
}

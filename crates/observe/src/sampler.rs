//! Reads [`Counters`] along a [`Layout`]. What a device does not have is asked once.

use std::collections::BTreeMap;

use ringwise_kfmt::stat_names::{self, Place};
use ringwise_kfmt::{
    ParseError, cpulist, ethtool_nl, interrupts, link_stats, netdev_nl, procstat, qdisc, snmp, softnet,
};
use ringwise_model::{CpuId, Dir, IrqId, Unread};
use ringwise_sys::{Error, Host, Request};

use crate::counters::{Counters, Counts, Link, Source};
use crate::layout::{Layout, Wiring, gather};

/// Remembers what each device answers to, so that a sample costs little.
pub struct Sampler {
    devs: Vec<Dev>,
    vectors: Vec<IrqId>,
    /// `/sys/kernel/irq/N/per_cpu_count` cannot be had: the whole of `/proc/interrupts` is read.
    whole_table: bool,
    /// ksoftirqd of each CPU.
    threads: Vec<(CpuId, u32)>,
    /// In the order of the numbers in `per_cpu_count`.
    possible: Vec<CpuId>,
    /// Byte limits and timeouts of each transmit queue too: two or three small files each.
    detail: bool,
}

struct Dev {
    name: String,
    wiring: Wiring,
    asks: Asks,
    pause: bool,
    limits: bool,
}

/// Who is asked for the counters of queues.
enum Asks {
    Qstats,
    /// Places in the list, and how many counters it had.
    Ethtool(Vec<Place>, usize),
    Device,
    Nothing,
}

/// What could not be read goes here, once each.
struct Notes(Vec<Unread>);

impl Notes {
    fn error(&mut self, e: &Error) {
        if !e.is_absent() {
            self.0.push(Unread::new(&e.what, e.errno, e.reason()));
        }
    }

    fn take<T>(&mut self, r: Result<T, Error>) -> Option<T> {
        r.map_err(|e| self.error(&e)).ok()
    }

    fn parsed<T>(&mut self, r: Result<T, ParseError>) -> Option<T> {
        r.map_err(|e| self.0.push(Unread::new(e.what, None, e.to_string()))).ok()
    }
}

impl Sampler {
    /// Threads are looked for here, which reads a file of every process.
    pub fn new(host: &dyn Host, layout: &Layout, detail: bool) -> Self {
        // Mostly without holes; where the file cannot be had they are taken to be so.
        let possible = host.read_text("/sys/devices/system/cpu/possible").ok().and_then(|t| cpulist::parse(&t).ok());
        let possible = possible.map_or_else(|| (0..8192).map(CpuId).collect(), |p| p.iter().collect());
        Self { threads: ksoftirqds(host), possible, ..Self::along(layout, detail) }
    }

    /// For a changed layout of the same host.
    pub fn again(self, layout: &Layout) -> Self {
        Self { threads: self.threads, possible: self.possible, ..Self::along(layout, self.detail) }
    }

    fn along(layout: &Layout, detail: bool) -> Self {
        let dev = |(name, w): (&String, &Wiring)| Dev {
            name: name.clone(),
            wiring: w.clone(),
            asks: Asks::Qstats,
            pause: true,
            limits: detail,
        };
        let devs = layout.links.iter().map(dev).collect();
        let vectors = layout.vectors();
        Self { devs, vectors, whole_table: false, threads: Vec::new(), possible: Vec::new(), detail }
    }

    /// Everything, now. An interface that is gone is left out.
    pub fn read(&mut self, host: &dyn Host) -> Counters {
        let mut notes = Notes(Vec::new());
        let at = host.since_boot();
        let mut out = Counters {
            at_us: u64::try_from(at.as_micros()).unwrap_or(u64::MAX),
            unix_time: host.unix_time(),
            ..Counters::default()
        };
        for dev in &mut self.devs {
            if let Some(link) = dev.read(host, &mut notes) {
                out.links.insert(dev.name.clone(), link);
            }
        }
        drops_of_qdiscs(host, &mut out.links, &mut notes);
        self.interrupts(host, &mut out, &mut notes);
        cpus(host, &mut out.cpus, &mut notes);
        for (cpu, pid) in &self.threads {
            // A CPU that is offline has its thread parked.
            let Some(counts) = out.cpus.get_mut(cpu) else { continue };
            if let Ok(ns) = host.read_text(&format!("/proc/{pid}/schedstat"))
                && let Some(ns) = notes.parsed(procstat::run_ns(&ns))
            {
                counts.insert("ksoftirqd_ns".into(), ns);
            }
        }
        for path in ["/proc/net/snmp", "/proc/net/netstat"] {
            if let Some(text) = notes.take(host.read_text(path))
                && let Some(list) = notes.parsed(snmp::pairs(&text))
            {
                insert(&mut out.host, list);
            }
        }
        if let Some(text) = notes.take(host.read_text("/proc/net/snmp6"))
            && let Some(list) = notes.parsed(snmp::six(&text))
        {
            insert(&mut out.host, list);
        }
        out.unread = notes.0;
        out
    }

    /// By file of each vector: `/proc/interrupts` has a cell for every interrupt of the host and every CPU.
    fn interrupts(&mut self, host: &dyn Host, out: &mut Counters, notes: &mut Notes) {
        if !self.whole_table {
            for irq in &self.vectors {
                match host.read_text(&format!("/sys/kernel/irq/{irq}/per_cpu_count")) {
                    Ok(text) => {
                        let numbers = text.split(',').map(|n| n.trim().parse().ok());
                        let counts = self.possible.iter().copied().zip(numbers).filter_map(|(c, n)| Some((c, n?)));
                        out.irqs.insert(*irq, gather(counts.filter(|(_, n)| *n > 0)));
                    }
                    // Freed in the meantime; if all of them are not there, the kernel has no such files.
                    Err(e) if e.is_absent() => {}
                    Err(_) => self.whole_table = true,
                }
            }
            if !self.vectors.is_empty() && out.irqs.is_empty() {
                self.whole_table = true;
            }
        }
        if self.whole_table
            && let Some(bytes) = notes.take(host.read("/proc/interrupts"))
            && let Some(table) = notes.parsed(interrupts::parse(&bytes))
        {
            for row in &table.rows {
                if let Some(irq) = row.head.irq.filter(|i| self.vectors.binary_search(i).is_ok()) {
                    let counts = table.cpus.iter().copied().zip(row.counts.iter().copied());
                    out.irqs.insert(irq, gather(counts.filter(|(_, n)| *n > 0)));
                }
            }
        }
    }
}

impl Dev {
    fn read(&mut self, host: &dyn Host, notes: &mut Notes) -> Option<Link> {
        let messages = match host.kernel(&Request::Link { dev: self.name.clone() }) {
            Ok(m) => m,
            Err(e) => {
                notes.error(&e);
                return None;
            }
        };
        let stats = notes.parsed(link_stats::link_stats(messages.first()?))?;
        let mut link = Link { ifindex: stats.ifindex, ..Link::default() };
        insert(&mut link.counts, link_stats::NAMES.iter().copied().zip(stats.counts));
        insert(&mut link.counts, stats.carrier_changes.map(|n| ("carrier_changes", u64::from(n))));
        if self.pause {
            let (cmd, name) = (ethtool_nl::msg::PAUSE_GET, "pause-get");
            let reply = host.kernel(&Request::EthtoolStats { cmd, name, dev: self.name.clone() });
            let frames = reply.ok().and_then(|m| ethtool_nl::pause_frames(m.first()?).ok());
            let (rx, tx) = frames.unwrap_or_default();
            insert(&mut link.counts, rx.map(|n| ("rx_pause", n)));
            insert(&mut link.counts, tx.map(|n| ("tx_pause", n)));
            self.pause = rx.or(tx).is_some();
        }
        self.queues(host, &mut link, notes);
        if self.limits {
            self.limits(host, &mut link);
        }
        Some(link)
    }

    fn queues(&mut self, host: &dyn Host, link: &mut Link, notes: &mut Notes) {
        if matches!(self.asks, Asks::Qstats) {
            if self.qstats(host, link, notes) {
                link.source = Source::Qstats;
                return;
            }
            self.asks = self.without_qstats(host, notes);
        }
        self.counted(host, link, notes, false);
    }

    /// By the driver's own list, or the counters of the interface.
    fn counted(&mut self, host: &dyn Host, link: &mut Link, notes: &mut Notes, again: bool) {
        match &self.asks {
            Asks::Ethtool(places, of) => {
                let request = Request::StatValues { dev: self.name.clone() };
                let Some(values) = notes.take(host.kernel(&request)).and_then(|m| m.into_iter().next()) else { return };
                let (values, _) = values.as_chunks::<8>();
                if values.len() != *of {
                    // The list is another one (other channels): looked at anew, once.
                    self.asks = if again { Asks::Qstats } else { self.without_qstats(host, notes) };
                    if !again {
                        self.counted(host, link, notes, true);
                    }
                    return;
                }
                for p in places {
                    let queues = if p.dir == Dir::Rx { &mut link.rx } else { &mut link.tx };
                    let counts = queues.entry(p.queue).or_default();
                    let sum = counts.entry(p.counter.name().into()).or_default();
                    *sum = sum.wrapping_add(u64::from_ne_bytes(values[p.at]));
                }
                link.source = Source::Ethtool;
            }
            Asks::Device => {
                for (queues, words) in [
                    (&mut link.rx, ["rx_packets", "rx_bytes", "rx_missed_errors"]),
                    (&mut link.tx, ["tx_packets", "tx_bytes", "tx_dropped"]),
                ] {
                    let names = ["packets", "bytes", "drops"];
                    let counts =
                        names.iter().zip(words).filter_map(|(n, w)| Some((n.to_string(), *link.counts.get(w)?)));
                    queues.insert(0, gather(counts));
                }
                link.source = Source::Device;
            }
            Asks::Qstats | Asks::Nothing => {}
        }
    }

    /// Whether any queue told its packets.
    fn qstats(&self, host: &dyn Host, link: &mut Link, notes: &mut Notes) -> bool {
        let (cmd, name) = (netdev_nl::cmd::QSTATS_GET, "qstats-get");
        // Kernels and drivers without it say so in many ways; the next source is asked then.
        let Ok(messages) = host.kernel(&Request::NetdevDump { cmd, name, dev: self.name.clone() }) else {
            return false;
        };
        let mut any = false;
        for m in &messages {
            let Some(Some(q)) = notes.parsed(netdev_nl::qstats(m)) else { continue };
            any |= q.counts.iter().any(|c| c.0 == "packets");
            let queues = if q.dir == Dir::Rx { &mut link.rx } else { &mut link.tx };
            insert(queues.entry(q.id).or_default(), q.counts);
        }
        if !any {
            link.rx.clear();
            link.tx.clear();
        }
        any
    }

    fn without_qstats(&self, host: &dyn Host, notes: &mut Notes) -> Asks {
        let driver = self.wiring.driver.as_deref().unwrap_or_default();
        let listed = stat_names::FORMS.iter().any(|f| f.drivers.contains(&driver));
        if listed && let Some(m) = notes.take(host.kernel(&Request::StatNames { dev: self.name.clone() })) {
            let names = m.first().map(|b| stat_names::names(b)).unwrap_or_default();
            let places = stat_names::places(driver, &names);
            if !places.is_empty() {
                return Asks::Ethtool(places, names.len());
            }
        }
        if self.wiring.rx.len() == 1 && self.wiring.tx.len() == 1 { Asks::Device } else { Asks::Nothing }
    }

    /// Byte queue limits, and how often the watchdog found the queue stuck.
    fn limits(&mut self, host: &dyn Host, link: &mut Link) {
        let mut any = false;
        for id in self.wiring.tx.keys() {
            let dir = format!("/sys/class/net/{}/queues/tx-{id}", self.name);
            for (file, name) in [
                ("byte_queue_limits/inflight", "bql_inflight"),
                ("byte_queue_limits/limit", "bql_limit"),
                ("tx_timeout", "timeouts"),
            ] {
                if let Ok(text) = host.read_text(&format!("{dir}/{file}"))
                    && let Ok(n) = text.parse()
                {
                    link.tx.entry(*id).or_default().insert(name.into(), n);
                    any = true;
                }
            }
        }
        self.limits = any;
    }
}

fn insert(to: &mut Counts, list: impl IntoIterator<Item = (&'static str, u64)>) {
    for (name, n) in list {
        to.insert(name.to_string(), n);
    }
}

/// One dump for all interfaces: asking for one alone tells every listener of the `tc` group before 6.8.
fn drops_of_qdiscs(host: &dyn Host, links: &mut BTreeMap<String, Link>, notes: &mut Notes) {
    let Some(messages) = notes.take(host.kernel(&Request::Qdiscs)) else { return };
    let all: Vec<qdisc::Qdisc> = messages.iter().filter_map(|m| notes.parsed(qdisc::qdisc(m))).collect();
    for link in links.values_mut() {
        let Some(root) = all.iter().find(|q| q.ifindex == link.ifindex && q.is_root()) else { continue };
        insert(&mut link.counts, root.drops.map(|n| ("qdisc_drops", u64::from(n))));
        if root.kind != "mq" {
            continue;
        }
        for leaf in &all {
            if let (Some(queue), Some(n)) = (leaf.queue_of(root), leaf.drops) {
                insert(link.tx.entry(queue).or_default(), [("qdisc_drops", u64::from(n))]);
            }
        }
    }
}

fn cpus(host: &dyn Host, out: &mut BTreeMap<CpuId, Counts>, notes: &mut Notes) {
    if let Some(text) = notes.take(host.read_text("/proc/stat"))
        && let Some(list) = notes.parsed(procstat::cpus(&text))
    {
        for (cpu, ticks) in list {
            insert(out.entry(cpu).or_default(), procstat::NAMES.iter().copied().zip(ticks));
        }
    }
    let Some(text) = notes.take(host.read_text("/proc/net/softnet_stat")) else { return };
    for row in notes.parsed(softnet::parse(&text)).unwrap_or_default() {
        // Rows of offline CPUs are missing: without its number a row belongs to nobody.
        let Some(cpu) = row.cpu else {
            notes.0.push(Unread::new("/proc/net/softnet_stat", None, "this kernel does not name the CPU of a row"));
            return;
        };
        let wide = |n: Option<u32>| n.map(u64::from);
        let counts = out.entry(cpu).or_default();
        for (name, n) in [
            ("softnet_processed", Some(u64::from(row.processed))),
            ("softnet_dropped", Some(u64::from(row.dropped))),
            ("softnet_squeezed", Some(u64::from(row.time_squeeze))),
            ("softnet_rps", wide(row.received_rps)),
            ("softnet_flow_limit", wide(row.flow_limit)),
            ("softnet_backlog", wide(row.backlog)),
        ] {
            insert(counts, n.map(|n| (name, n)));
        }
    }
}

fn ksoftirqds(host: &dyn Host) -> Vec<(CpuId, u32)> {
    let pids = host.list("/proc").unwrap_or_default();
    let pids = pids.iter().filter_map(|n| n.parse::<u32>().ok());
    pids.filter_map(|pid| Some((procstat::ksoftirqd(&host.read_text(&format!("/proc/{pid}/comm")).ok()?)?, pid)))
        .collect()
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;

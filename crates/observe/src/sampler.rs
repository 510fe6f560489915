//! Reads [`Counters`] along a [`Layout`]. Requests that a device does not support are made only once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringwise_kfmt::{cpulist, interrupts, procstat, qdisc, snmp, softnet};
use ringwise_model::errno::ESRCH;
use ringwise_model::{CpuCounter, CpuId, IrqId, QueueCounter, Unread};
use ringwise_sys::{Host, Request};

use crate::counters::{Counters, CpuSample, LinkCounters};
use crate::device::{Dev, Notes, Reading, insert};
use crate::idle::Idle;
use crate::layout::{Layout, gather};
use crate::shared_reader::{Left, SharedReader, UnansweredDevice};
use crate::worker::Worker;

/// Remembers which requests each device supports, so that a sample costs little.
pub struct Sampler {
    devs: Vec<(String, Reader)>,
    /// All devices, until one of them answers too late.
    together: Option<SharedReader>,
    /// Read in a thread like a device: the dump waits for a lock that an unresponsive device may hold.
    qdiscs: Option<Worker<(Vec<qdisc::Qdisc>, Vec<Unread>)>>,
    deadline: Option<(Arc<dyn Host>, Duration)>,
    vectors: Vec<IrqId>,
    /// Vectors that serve no queue of the layout and are counted as well.
    others: Vec<IrqId>,
    /// `/sys/kernel/irq/N/per_cpu_count` cannot be read, so the whole of `/proc/interrupts` is.
    whole_table: bool,
    /// By vector, from the sample before: its sum in `/proc/stat`, and the counts by CPU. The counts stay valid while
    /// the sum does not change.
    before: BTreeMap<IrqId, (u64, BTreeMap<CpuId, u64>)>,
    /// ksoftirqd of each CPU.
    threads: Vec<(CpuId, u32)>,
    /// NAPI threads of the layout.
    napi_threads: BTreeSet<u32>,
    /// Possible CPUs, in the order of the numbers in `per_cpu_count`.
    possible: Vec<CpuId>,
    idle: Idle,
    /// Also reads values that need several small files each: byte limits and timeouts of transmit queues, idle states.
    detail: bool,
}

/// Where a device is read.
enum Reader {
    Here(Box<Dev>),
    /// In one thread together with other devices.
    Together,
    Apart(Worker<(Reading, Vec<Unread>)>),
    /// It answered too late, and has not answered yet.
    Late(UnansweredDevice),
}

fn apart(mut dev: Box<Dev>, host: &Arc<dyn Host>) -> Worker<(Reading, Vec<Unread>)> {
    let host = host.clone();
    Worker::start(move || {
        let mut notes = Notes(Vec::new());
        (dev.read(host.as_ref(), &mut notes), notes.0)
    })
}

impl Sampler {
    /// Finds the ksoftirqd threads, which reads a file of every process.
    pub fn new(host: &dyn Host, layout: &Layout, detail: bool) -> Self {
        // The numbers mostly have no gaps. If the file cannot be read, ringwise assumes that there are none.
        let possible = host.read_text("/sys/devices/system/cpu/possible").ok().and_then(|t| cpulist::parse(&t).ok());
        let possible = possible.map_or_else(|| (0..8192).map(CpuId).collect(), |p| p.iter().collect());
        Self { threads: ksoftirqds(host), possible, ..Self::along(layout, detail) }
    }

    /// Reads devices in threads from now on: all in one thread as long as they answer, then each in its own. A device
    /// that does not answer in time is listed in [`Counters::silent`], and no later sample waits for it until it has
    /// answered.
    #[must_use]
    pub fn with_deadline(mut self, host: &Arc<dyn Host>, deadline: Duration) -> Self {
        self.deadline = Some((host.clone(), deadline));
        let mut all = Vec::new();
        for (_, reader) in &mut self.devs {
            if let Reader::Here(dev) = std::mem::replace(reader, Reader::Together) {
                all.push(dev);
            }
        }
        self.together = Some(SharedReader::start(all.into_iter(), host));
        let host = host.clone();
        self.qdiscs = Some(Worker::start(move || {
            let mut notes = Notes(Vec::new());
            (qdiscs(host.as_ref(), &mut notes), notes.0)
        }));
        self
    }

    /// Counts the interrupts of these vectors as well, which need not be those of queues.
    #[must_use]
    pub fn with_vectors(mut self, others: Vec<IrqId>) -> Self {
        self.vectors.extend_from_slice(&others);
        self.vectors.sort();
        self.vectors.dedup();
        self.others = others;
        self
    }

    /// Switches to a changed layout of the same host.
    pub fn follow(&mut self, layout: &Layout) {
        let threads = std::mem::take(&mut self.threads);
        let possible = std::mem::take(&mut self.possible);
        let deadline = self.deadline.take();
        let others = std::mem::take(&mut self.others);
        let next = Self { threads, possible, ..Self::along(layout, self.detail) }.with_vectors(others);
        *self = match deadline {
            Some((host, deadline)) => next.with_deadline(&host, deadline),
            None => next,
        };
    }

    fn along(layout: &Layout, detail: bool) -> Self {
        let dev = |(name, w)| (String::clone(name), Reader::Here(Box::new(Dev::new(name, w, detail))));
        Self {
            devs: layout.links.iter().map(dev).collect(),
            together: None,
            qdiscs: None,
            deadline: None,
            vectors: layout.vectors(),
            others: Vec::new(),
            whole_table: false,
            before: BTreeMap::new(),
            threads: Vec::new(),
            napi_threads: layout.napi_threads(),
            possible: Vec::new(),
            idle: Idle::default(),
            detail,
        }
    }

    /// Reads all counters. An interface that is gone is left out.
    pub fn read(&mut self, host: &dyn Host) -> Counters {
        let mut notes = Notes(Vec::new());
        let at = host.since_boot();
        let mut out = Counters {
            at_us: u64::try_from(at.as_micros()).unwrap_or(u64::MAX),
            unix_time: host.unix_time(),
            ..Counters::default()
        };
        self.devices(host, &mut out, &mut notes);
        let stat = notes.take(host.read_text("/proc/stat")).unwrap_or_default();
        self.interrupts(host, &stat, &mut out, &mut notes);
        cpus(host, &stat, &mut out.cpus, &mut notes);
        out.threads_ns = napi_threads(host, &self.napi_threads, &mut notes);
        for (cpu, pid) in &self.threads {
            // The thread of an offline CPU is parked.
            let Some(sample) = out.cpus.get_mut(cpu) else { continue };
            if let Ok(ns) = host.read_text(&format!("/proc/{pid}/schedstat"))
                && let Some(ns) = notes.parsed(procstat::run_ns(&ns))
            {
                sample.counts.set(CpuCounter::KsoftirqdNs, ns);
            }
        }
        if self.detail {
            let took = out.irqs.values().flat_map(BTreeMap::keys).copied().collect::<BTreeSet<_>>();
            self.idle.read(host, took, &mut out.cpus, &mut notes);
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

    fn devices(&mut self, host: &dyn Host, out: &mut Counters, notes: &mut Notes) {
        self.back();
        for (_, reader) in &mut self.devs {
            if let Reader::Apart(worker) = reader {
                worker.ask();
            }
        }
        if let Some(worker) = &mut self.qdiscs {
            worker.ask();
        }
        let mut until = Instant::now() + self.deadline.as_ref().map_or(Duration::ZERO, |d| d.1);
        let mut told = self.all_at_once(&mut until).into_iter();
        for (name, reader) in &mut self.devs {
            let answer = match reader {
                Reader::Here(dev) => Some((dev.read(host, notes), Vec::new())),
                Reader::Together => told.next().flatten(),
                Reader::Apart(worker) => told.next().flatten().or_else(|| worker.answer(until)),
                Reader::Late(_) => None,
            };
            let (reading, said) = answer.unwrap_or((Reading::Silent, Vec::new()));
            notes.0.extend(said);
            match reading {
                Reading::Link(link) => drop(out.links.insert(name.clone(), *link)),
                Reading::Silent => out.silent.push(name.clone()),
                Reading::Gone => {}
            }
        }
        let all = match &mut self.qdiscs {
            Some(worker) => worker.answer(until).map(|(all, said)| {
                notes.0.extend(said);
                all
            }),
            None => Some(qdiscs(host, notes)),
        };
        drops_of_qdiscs(&all.unwrap_or_default(), &mut out.links);
    }

    /// Gives each device that was late and has answered since a thread of its own.
    fn back(&mut self) {
        let Some((host, _)) = &self.deadline else { return };
        for (_, reader) in &mut self.devs {
            if let Reader::Late(late) = reader
                && let Some(dev) = late.back()
            {
                *reader = Reader::Apart(apart(dev, host));
            }
        }
    }

    /// The readings of all devices, in their order. When a device is late for the first time, those after it are read
    /// in threads of their own, from then on and with the full time limit again.
    fn all_at_once(&mut self, until: &mut Instant) -> Vec<Option<(Reading, Vec<Unread>)>> {
        let (Some(mut all), Some((host, deadline))) = (self.together.take(), &self.deadline) else { return Vec::new() };
        all.ask();
        if let Some(told) = all.answer(*until) {
            self.together = Some(all);
            return told.into_iter().map(Some).collect();
        }
        *until = Instant::now() + *deadline;
        let mut told = Vec::new();
        for ((_, reader), left) in self.devs.iter_mut().zip(all.part()) {
            let (next, answer) = match left {
                Left::Read(dev, reading, said) => (Reader::Apart(apart(dev, host)), Some((reading, said))),
                Left::NotRead(dev) => {
                    let mut worker = apart(dev, host);
                    worker.ask();
                    (Reader::Apart(worker), None)
                }
                Left::Unanswered(late) => (Reader::Late(late), None),
            };
            *reader = next;
            told.push(answer);
        }
        told
    }

    /// Reads the file of each vector, because `/proc/interrupts` has a number for every interrupt of the host and every
    /// CPU.
    fn interrupts(&mut self, host: &dyn Host, stat: &str, out: &mut Counters, notes: &mut Notes) {
        if !self.whole_table {
            // Read the sums before the files: the next sample then notices interrupts that arrive in between.
            let sums = procstat::interrupts(stat);
            for irq in &self.vectors {
                // The sum of a vector that was freed is 0, so read the file of a vector with 0.
                let sum = sums.get(irq.0 as usize).copied().filter(|n| *n > 0);
                if let Some((before, counts)) = self.before.get(irq)
                    && sum == Some(*before)
                {
                    out.irqs.insert(*irq, counts.clone());
                    continue;
                }
                self.before.remove(irq);
                match host.read_text(&format!("/sys/kernel/irq/{irq}/per_cpu_count")) {
                    Ok(text) => {
                        let counts = by_cpu(&text, &self.possible);
                        if let Some(sum) = sum {
                            self.before.insert(*irq, (sum, counts.clone()));
                        }
                        out.irqs.insert(*irq, counts);
                    }
                    // The vector was freed in the meantime. If no vector has the file, the kernel has no such files.
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
            for row in table.rows.iter().filter(|r| table.is_whole(r)) {
                if let Some(irq) = row.head.irq.filter(|i| self.vectors.binary_search(i).is_ok()) {
                    let counts = table.cpus.iter().copied().zip(row.counts.iter().copied());
                    out.irqs.insert(irq, gather(counts.filter(|(_, n)| *n > 0)));
                }
            }
        }
    }
}

/// `per_cpu_count`: a number for each possible CPU. Most are 0.
fn by_cpu(text: &str, possible: &[CpuId]) -> BTreeMap<CpuId, u64> {
    let cells = possible.iter().copied().zip(text.split(',')).filter(|(_, n)| *n != "0");
    gather(cells.filter_map(|(c, n)| Some((c, n.trim().parse().ok().filter(|n| *n > 0)?))))
}

/// One dump for all interfaces: before 6.8, a request for one interface notifies every listener of the `tc` group.
fn qdiscs(host: &dyn Host, notes: &mut Notes) -> Vec<qdisc::Qdisc> {
    let messages = notes.take(host.kernel(&Request::Qdiscs)).unwrap_or_default();
    messages.iter().filter_map(|m| notes.parsed(qdisc::qdisc(m))).collect()
}

fn drops_of_qdiscs(all: &[qdisc::Qdisc], links: &mut BTreeMap<String, LinkCounters>) {
    for link in links.values_mut() {
        let Some(root) = all.iter().find(|q| q.ifindex == link.ifindex && q.is_root()) else { continue };
        insert(&mut link.counts, root.drops.map(|n| ("qdisc_drops", u64::from(n))));
        if root.kind != "mq" {
            continue;
        }
        for leaf in all {
            if let (Some(queue), Some(n)) = (leaf.queue_of(root), leaf.drops) {
                link.tx.entry(queue).or_default().set(QueueCounter::QdiscDrops, n.into());
            }
        }
    }
}

/// A thread that has ended is left out.
fn napi_threads(host: &dyn Host, pids: &BTreeSet<u32>, notes: &mut Notes) -> BTreeMap<u32, u64> {
    let ns = |pid: &u32| {
        let text = match host.read_text(&format!("/proc/{pid}/schedstat")) {
            Err(e) if e.errno == Some(ESRCH) => return None,
            read => notes.take(read)?,
        };
        notes.parsed(procstat::run_ns(&text)).map(|ns| (*pid, ns))
    };
    gather(pids.iter().filter_map(ns))
}

/// Only the times of the CPUs, from `/proc/stat`, and of the NAPI threads: the cheapest sample.
pub fn cpu_times(host: &dyn Host, layout: &Layout) -> Counters {
    let mut notes = Notes(Vec::new());
    let at = host.since_boot();
    let mut out = Counters {
        at_us: u64::try_from(at.as_micros()).unwrap_or(u64::MAX),
        unix_time: host.unix_time(),
        ..Counters::default()
    };
    let stat = notes.take(host.read_text("/proc/stat")).unwrap_or_default();
    times(&stat, &mut out.cpus, &mut notes);
    out.threads_ns = napi_threads(host, &layout.napi_threads(), &mut notes);
    out.unread = notes.0;
    out
}

fn times(stat: &str, out: &mut BTreeMap<CpuId, CpuSample>, notes: &mut Notes) {
    for (cpu, ticks) in notes.parsed(procstat::cpus(stat)).unwrap_or_default() {
        let sample = CpuSample { counts: procstat::COLUMNS.into_iter().zip(ticks).collect(), ..CpuSample::default() };
        out.insert(cpu, sample);
    }
}

fn cpus(host: &dyn Host, stat: &str, out: &mut BTreeMap<CpuId, CpuSample>, notes: &mut Notes) {
    times(stat, out, notes);
    let Some(text) = notes.take(host.read_text("/proc/net/softnet_stat")) else { return };
    for row in notes.parsed(softnet::parse(&text)).unwrap_or_default() {
        // The kernel has no rows for offline CPUs, so a row without a CPU number cannot be assigned to a CPU.
        let Some(cpu) = row.cpu else {
            notes.0.push(Unread::new("/proc/net/softnet_stat", None, "this kernel does not report the CPU of a row"));
            return;
        };
        let wide = |n: Option<u32>| n.map(u64::from);
        let counts = &mut out.entry(cpu).or_default().counts;
        for (counter, n) in [
            (CpuCounter::SoftnetProcessed, Some(u64::from(row.processed))),
            (CpuCounter::SoftnetDropped, Some(u64::from(row.dropped))),
            (CpuCounter::SoftnetSqueezed, Some(u64::from(row.time_squeeze))),
            (CpuCounter::SoftnetRps, wide(row.received_rps)),
            (CpuCounter::SoftnetFlowLimit, wide(row.flow_limit)),
            (CpuCounter::SoftnetBacklog, wide(row.backlog)),
        ] {
            if let Some(n) = n {
                counts.set(counter, n);
            }
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

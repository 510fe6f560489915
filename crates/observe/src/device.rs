//! Reads the counters of one interface, and remembers which requests its device supports.

use std::collections::HashMap;

use ringwise_kfmt::stat_names::{self, StatLayout};
use ringwise_kfmt::{ParseError, ethtool_nl, link_stats, netdev_nl};
use ringwise_model::{Dir, IfIndex, QueueCounter, Unread};
use ringwise_sys::{Error, Host, Request};

use crate::counters::{Counts, LinkCounters, Source};
use crate::layout::Wiring;

/// An interface, and which requests its device supports.
pub(crate) struct Dev {
    name: String,
    wiring: Wiring,
    asks: Asks,
    /// qstats have returned counters before, so a refusal is only temporary.
    qstats: bool,
    pause: bool,
    limits: bool,
    /// The kernel counts page pools.
    pools: bool,
    /// The driver counts packets that the cloud provider held back (ena).
    allowances: bool,
    list: StatList,
}

/// The device's own list of counters (`ethtool -S`). Which names matter is learned once.
#[derive(Default)]
struct StatList {
    learned: Option<(Generation, StatLayout)>,
    /// Names were read before, so a refusal is only temporary.
    told: bool,
}

/// The names stay valid while this and the length of the list stay the same: a device that was created again has
/// another index, and a change of channels takes the carrier away for a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Generation {
    ifindex: u32,
    carrier_changes: Option<u32>,
}

/// Why there are no values.
enum Unlisted {
    /// The device has never returned names.
    NoNames,
    /// A temporary failure.
    NotNow,
    /// The number of values does not match the names.
    OtherLength,
}

impl StatList {
    /// The present values, 8 bytes each, and the layout that names them.
    fn read(
        &mut self,
        host: &dyn Host,
        (dev, driver): (&str, &str),
        now: Generation,
        notes: &mut Notes,
    ) -> Result<(&StatLayout, Vec<u8>), Unlisted> {
        self.learned.take_if(|(then, _)| *then != now);
        // If the list has another length, read the names again, once.
        for _ in 0..2 {
            if self.learned.is_none() {
                let names = notes.take(host.kernel(&Request::StatNames { dev: dev.into() }));
                let names = names.ok_or(if self.told { Unlisted::NotNow } else { Unlisted::NoNames })?;
                let strings = names.first().map_or(&[][..], Vec::as_slice);
                self.learned = Some((now, StatLayout::learn(driver, strings)));
                self.told = true;
            }
            let values = notes.take(host.kernel(&Request::StatValues { dev: dev.into() }));
            let values = values.and_then(|m| m.into_iter().next()).ok_or(Unlisted::NotNow)?;
            self.learned.take_if(|(_, layout)| !layout.fits(&values));
            if self.learned.is_some() {
                return self.learned.as_ref().map(|(_, layout)| (layout, values)).ok_or(Unlisted::NotNow);
            }
        }
        Err(Unlisted::OtherLength)
    }
}

/// The result of reading an interface.
pub(crate) enum Reading {
    Link(Box<LinkCounters>),
    Gone,
    /// It exists and does not answer; the notes have the reason.
    Silent,
}

/// The source of the counters of queues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    Qstats,
    Ethtool,
    Device,
    Nothing,
}

/// What could not be read, with the reason.
pub(crate) struct Notes(pub Vec<Unread>);

impl Notes {
    pub(crate) fn error(&mut self, e: &Error) {
        if !e.is_absent() {
            self.0.push(Unread::new(&e.what, e.errno, e.reason()).because(e.cause));
        }
    }

    pub(crate) fn take<T>(&mut self, r: Result<T, Error>) -> Option<T> {
        r.map_err(|e| self.error(&e)).ok()
    }

    pub(crate) fn parsed<T>(&mut self, r: Result<T, ParseError>) -> Option<T> {
        r.map_err(|e| self.0.push(Unread::new(e.what, None, e.to_string()))).ok()
    }
}

impl Dev {
    /// `detail`: also reads byte limits and timeouts of each transmit queue, two or three small files each.
    pub(crate) fn new(name: &str, wiring: &Wiring, detail: bool) -> Self {
        Self {
            name: name.into(),
            wiring: wiring.clone(),
            asks: Asks::Qstats,
            qstats: false,
            pause: true,
            limits: detail,
            pools: detail,
            allowances: stat_names::counts_allowances(wiring.driver.as_deref().unwrap_or_default()),
            list: StatList::default(),
        }
    }

    pub(crate) fn read(&mut self, host: &dyn Host, notes: &mut Notes) -> Reading {
        let messages = match host.kernel(&Request::Link { dev: self.name.clone() }) {
            Ok(m) => m,
            Err(e) if e.is_absent() => return Reading::Gone,
            Err(e) => {
                notes.error(&e);
                return Reading::Silent;
            }
        };
        let stats = link_stats::link_stats(messages.first().map_or(&[], Vec::as_slice));
        let Some(stats) = notes.parsed(stats) else { return Reading::Silent };
        let mut link = LinkCounters { ifindex: stats.ifindex, ..LinkCounters::default() };
        insert(&mut link.counts, link_stats::NAMES.iter().copied().zip(stats.counts));
        insert(&mut link.counts, stats.carrier_changes.map(|n| ("carrier_changes", u64::from(n))));
        if self.pause {
            let (cmd, name) = (ethtool_nl::msg::PAUSE_GET, "pause-get");
            let reply = host.kernel(&Request::EthtoolStats { cmd, name, dev: self.name.clone() });
            let frames = reply.ok().and_then(|m| ethtool_nl::pause_frames(m.first()?).ok()).unwrap_or_default();
            insert(&mut link.counts, frames.rx.map(|n| ("rx_pause", n)));
            insert(&mut link.counts, frames.tx.map(|n| ("tx_pause", n)));
            insert(&mut link.counts, frames.storms.map(|n| ("tx_pause_storms", n)));
            self.pause = frames.rx.or(frames.tx).or(frames.storms).is_some();
        }
        let generation = Generation { ifindex: stats.ifindex, carrier_changes: stats.carrier_changes };
        self.counted(host, generation, &mut link, notes);
        if self.pools {
            self.pools = self.pools(host, &mut link, notes);
        }
        if self.limits {
            self.limits(host, &mut link);
        }
        Reading::Link(Box::new(link))
    }

    /// Reads the counters of the queues, and other values of the device's own list.
    fn counted(&mut self, host: &dyn Host, now: Generation, link: &mut LinkCounters, notes: &mut Notes) {
        if self.asks == Asks::Qstats {
            self.qstats |= self.qstats(host, link, notes);
            // If qstats worked before, a refusal is temporary. Counters of another source would not be comparable.
            if self.qstats {
                link.source = Source::Qstats;
            } else {
                let listed = stat_names::counts_queues(self.driver());
                self.asks = if listed { Asks::Ethtool } else { self.without_list() };
            }
        }
        if self.asks == Asks::Ethtool || self.allowances {
            self.listed(host, now, link, notes);
        }
        if self.asks == Asks::Device {
            for (queues, words) in [
                (&mut link.rx, ["rx_packets", "rx_bytes", "rx_missed_errors"]),
                (&mut link.tx, ["tx_packets", "tx_bytes", "tx_dropped"]),
            ] {
                let counters = [QueueCounter::Packets, QueueCounter::Bytes, QueueCounter::Drops];
                let counts = counters.into_iter().zip(words).filter_map(|(c, w)| Some((c, *link.counts.get(w)?)));
                queues.insert(0, counts.collect());
            }
            link.source = Source::Device;
        }
    }

    /// Reads the device's own list.
    fn listed(&mut self, host: &dyn Host, now: Generation, link: &mut LinkCounters, notes: &mut Notes) {
        let driver = self.wiring.driver.as_deref().unwrap_or_default();
        match self.list.read(host, (&self.name, driver), now, notes) {
            Ok((layout, values)) => {
                self.allowances &= layout.counts_allowances();
                for (name, n) in layout.allowances(&values) {
                    link.counts.insert(name.into(), n);
                }
                if self.asks == Asks::Ethtool && layout.counts_queues() {
                    for (dir, id, counts) in layout.queues(&values) {
                        let rx = dir == Dir::Rx;
                        let wired = if rx { &self.wiring.rx } else { &self.wiring.tx };
                        // Many drivers list as many queues as the device could have (ixgbe, idpf, txgbe, fm10k, nfp).
                        let absent = !wired.is_empty() && !wired.contains_key(&id);
                        let unused = absent && counts.iter().all(|(_, n)| n == 0);
                        if !unused {
                            let queues = if rx { &mut link.rx } else { &mut link.tx };
                            queues.insert(id, counts);
                        }
                    }
                    link.source = Source::Ethtool;
                } else if self.asks == Asks::Ethtool {
                    self.asks = self.without_list();
                }
            }
            Err(Unlisted::NotNow) => {}
            Err(Unlisted::NoNames) => {
                self.allowances = false;
                if self.asks == Asks::Ethtool {
                    self.asks = self.without_list();
                }
            }
            Err(Unlisted::OtherLength) => {
                if self.asks == Asks::Ethtool {
                    self.asks = Asks::Qstats;
                }
            }
        }
    }

    fn driver(&self) -> &str {
        self.wiring.driver.as_deref().unwrap_or_default()
    }

    fn without_list(&self) -> Asks {
        if self.wiring.rx.len() == 1 && self.wiring.tx.len() == 1 { Asks::Device } else { Asks::Nothing }
    }

    /// Reads qstats. Returns whether a queue has a number of packets.
    fn qstats(&self, host: &dyn Host, link: &mut LinkCounters, notes: &mut Notes) -> bool {
        let (cmd, name) = (netdev_nl::cmd::QSTATS_GET, "qstats-get");
        // Kernels and drivers without qstats refuse in many ways; then the next source is tried.
        let Ok(messages) = host.kernel(&Request::NetdevDump { cmd, name, dev: self.name.clone() }) else {
            return false;
        };
        let mut any = false;
        for m in &messages {
            let Some(Some(q)) = notes.parsed(netdev_nl::qstats(m)) else { continue };
            any |= q.counts.get(QueueCounter::Packets).is_some();
            let queues = if q.dir == Dir::Rx { &mut link.rx } else { &mut link.tx };
            queues.insert(q.id, q.counts);
        }
        if !any {
            link.rx.clear();
            link.tx.clear();
        }
        any
    }

    /// Reads the counters of page pools into the receive queues whose NAPI instances take pages from them. Returns whether
    /// the kernel counts pools. A dump holds the pools of all interfaces; ids of pools and NAPI instances change when
    /// the rings are created again, so both are read each time.
    fn pools(&self, host: &dyn Host, link: &mut LinkCounters, notes: &mut Notes) -> bool {
        let dump = |cmd, name| host.kernel(&Request::NetdevDump { cmd, name, dev: self.name.clone() });
        let Ok(stats) = dump(netdev_nl::cmd::PAGE_POOL_STATS_GET, "page-pool-stats-get") else { return false };
        if stats.is_empty() {
            return true;
        }
        let (Ok(pools), Ok(queues)) =
            (dump(netdev_nl::cmd::PAGE_POOL_GET, "page-pool-get"), dump(netdev_nl::cmd::QUEUE_GET, "queue-get"))
        else {
            return false;
        };
        let mut by_napi: HashMap<u32, u32> = HashMap::new();
        for q in queues.iter().filter_map(|m| notes.parsed(netdev_nl::queue(m))) {
            by_napi.extend(q.napi.filter(|_| q.dir == Dir::Rx).map(|n| (n, q.id)));
        }
        let mut by_pool: HashMap<u64, u32> = HashMap::new();
        for p in pools.iter().filter_map(|m| notes.parsed(netdev_nl::page_pool(m))) {
            let queue = p.napi.and_then(|n| by_napi.get(&n)).filter(|_| p.ifindex == Some(IfIndex(link.ifindex)));
            by_pool.extend(queue.map(|q| (p.id, *q)));
        }
        for s in stats.iter().filter_map(|m| notes.parsed(netdev_nl::page_pool_stats(m))) {
            let Some(queue) = by_pool.get(&s.id) else { continue };
            // A queue may have a second pool, for headers.
            let counts = link.rx.entry(*queue).or_default();
            s.counts.iter().for_each(|(counter, n)| counts.add(counter, n));
        }
        true
    }

    /// Reads byte queue limits, and how often the watchdog found the queue stuck.
    fn limits(&mut self, host: &dyn Host, link: &mut LinkCounters) {
        let mut any = false;
        for id in self.wiring.tx.keys() {
            let dir = format!("/sys/class/net/{}/queues/tx-{id}", self.name);
            for (file, counter) in [
                ("byte_queue_limits/inflight", QueueCounter::BqlInflight),
                ("byte_queue_limits/limit", QueueCounter::BqlLimit),
                ("tx_timeout", QueueCounter::Timeouts),
            ] {
                if let Ok(text) = host.read_text(&format!("{dir}/{file}"))
                    && let Ok(n) = text.parse()
                {
                    link.tx.entry(*id).or_default().set(counter, n);
                    any = true;
                }
            }
        }
        self.limits = any;
    }
}

pub(crate) fn insert(to: &mut Counts, list: impl IntoIterator<Item = (&'static str, u64)>) {
    for (name, n) in list {
        to.insert(name.to_string(), n);
    }
}

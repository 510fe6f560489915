//! One interface: who is asked for its counters, and the asking. What a device does not have is asked once.

use ringwise_kfmt::{ParseError, ethtool_nl, link_stats, netdev_nl, stat_names, stat_names::Place};
use ringwise_model::{Dir, Unread};
use ringwise_sys::{Error, Host, Request};

use crate::counters::{Counts, Link, Source};
use crate::layout::{Wiring, gather};

/// What is remembered of a device.
pub(crate) struct Dev {
    name: String,
    wiring: Wiring,
    asks: Asks,
    /// They have told something before; a refusal is for this time only.
    qstats: bool,
    pause: bool,
    limits: bool,
    /// Counters of what the provider held back (driver ena): places in the list, and names. `None`: not asked yet.
    allowances: Option<Vec<(usize, String)>>,
}

/// What came of it.
pub(crate) enum Reading {
    Link(Box<Link>),
    Gone,
    /// It is there and does not tell; why stands in the notes.
    Silent,
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
    /// `detail`: byte limits and timeouts of each transmit queue too, two or three small files each.
    pub(crate) fn new(name: &str, wiring: &Wiring, detail: bool) -> Self {
        Self {
            name: name.into(),
            wiring: wiring.clone(),
            asks: Asks::Qstats,
            qstats: false,
            pause: true,
            limits: detail,
            allowances: (wiring.driver.as_deref() != Some("ena")).then(Vec::new),
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
        self.allowances(host, &mut link, notes);
        self.queues(host, &mut link, notes);
        if self.limits {
            self.limits(host, &mut link);
        }
        Reading::Link(Box::new(link))
    }

    fn allowances(&mut self, host: &dyn Host, link: &mut Link, notes: &mut Notes) {
        let list = self.allowances.get_or_insert_with(|| {
            let names = notes.take(host.kernel(&Request::StatNames { dev: self.name.clone() }));
            let names = names.and_then(|m| Some(stat_names::names(m.first()?))).unwrap_or_default();
            let all = names.into_iter().enumerate();
            all.filter(|(_, n)| n.ends_with("_allowance_exceeded")).map(|(i, n)| (i, n.to_string())).collect()
        });
        if list.is_empty() {
            return;
        }
        let Some(m) = notes.take(host.kernel(&Request::StatValues { dev: self.name.clone() })) else { return };
        let Some(values) = m.first().map(|v| v.as_chunks::<8>().0) else { return };
        for (at, name) in list {
            if let Some(v) = values.get(*at) {
                link.counts.insert(name.clone(), u64::from_ne_bytes(*v));
            }
        }
    }

    fn queues(&mut self, host: &dyn Host, link: &mut Link, notes: &mut Notes) {
        if matches!(self.asks, Asks::Qstats) {
            self.qstats |= self.qstats(host, link, notes);
            // Refused once, while the device was busy: nobody else's counters are put beside those from before.
            if self.qstats {
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

pub(crate) fn insert(to: &mut Counts, list: impl IntoIterator<Item = (&'static str, u64)>) {
    for (name, n) in list {
        to.insert(name.to_string(), n);
    }
}

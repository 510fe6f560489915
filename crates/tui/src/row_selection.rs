//! Selects and sorts the rows of the panels.

use std::cmp::Reverse;

use ringwise_model::order::Order;
use ringwise_model::{CpuCounter, CpuId, Dir};
use ringwise_observe::{CpuRates, LinkRates, QueueMark, QueueRates};

use super::lines::marked;
use super::view::{Panel, View};

/// The remark beside a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowMark {
    /// A mark from its counters.
    Counted(QueueMark),
    /// The kernel's watchdog found it stuck.
    Stuck,
    /// Its interrupts are delivered to another node than the device's.
    Far,
    /// It has reached its byte queue limit.
    AtLimit,
}

impl RowMark {
    pub fn word(self) -> &'static str {
        match self {
            Self::Counted(mark) => marked(mark),
            Self::Stuck => "stuck",
            Self::Far => "far",
            Self::AtLimit => "bql",
        }
    }
}

/// Both directions of a queue number.
pub struct QueueRow<'a> {
    pub name: &'a str,
    pub link: &'a LinkRates,
    pub id: u32,
    pub rx: Option<&'a QueueRates>,
    pub tx: Option<&'a QueueRates>,
}

impl<'a> QueueRow<'a> {
    pub fn both(&self) -> impl Iterator<Item = &'a QueueRates> {
        self.rx.into_iter().chain(self.tx)
    }

    /// The most important remark. A mark from counters takes precedence over an evaluation.
    pub fn mark(&self) -> Option<RowMark> {
        let full = |q: &QueueRates| q.bql_limit.zip(q.bql_inflight).is_some_and(|(l, n)| l > 0 && n >= l);
        let marks = || self.both().filter_map(|q| q.mark);
        if let Some(m) = marks().find(|m| *m != QueueMark::Hot).or_else(|| marks().next()) {
            return Some(RowMark::Counted(m));
        }
        match () {
            () if self.both().any(|q| q.timeouts.is_some_and(|n| n > 0)) => Some(RowMark::Stuck),
            () if self.far() => Some(RowMark::Far),
            () if self.tx.is_some_and(full) => Some(RowMark::AtLimit),
            () => None,
        }
    }

    /// Whether its interrupts are delivered to another node than the device's.
    pub fn far(&self) -> bool {
        self.both()
            .any(|q| q.interrupts.is_some_and(|n| n > 0) && self.link.node.zip(q.node).is_some_and(|(a, b)| a != b))
    }

    pub fn cpu(&self) -> Option<CpuId> {
        self.both().find_map(|q| q.cpu)
    }

    pub fn drops(&self) -> Option<u64> {
        let known: Vec<u64> = self.both().filter_map(|q| q.drops).collect();
        (!known.is_empty()).then(|| known.into_iter().fold(0, u64::saturating_add))
    }

    fn packets(&self) -> u64 {
        self.both().filter_map(|q| q.packets).fold(0, u64::saturating_add)
    }
}

/// Whether every word of the filter is the beginning of a word of the row. A filter word that ends with a digit must
/// match a whole word.
pub(super) fn matches(filter: &str, row: &str) -> bool {
    let row = row.to_ascii_lowercase();
    filter.to_ascii_lowercase().split_whitespace().all(|f| {
        let whole = f.ends_with(|c: char| c.is_ascii_digit());
        row.split_whitespace().any(|w| if whole { w == f } else { w.starts_with(f) })
    })
}

impl View {
    /// Names of the interfaces in the order of the screen, without those that the filter hides.
    pub fn links_shown(&self) -> Vec<&str> {
        let Some(r) = &self.rates else { return Vec::new() };
        let c = self.choice(Panel::Links);
        let words = |n: &str, l: &LinkRates| {
            let node = l.node.map(|n| format!("node{n}")).unwrap_or_default();
            format!("{n} {} {node}", l.driver.as_deref().unwrap_or_default())
        };
        let mut all: Vec<_> = r.links.iter().filter(|(n, l)| matches(&c.filter, &words(n, l))).collect();
        let packets = |l: &LinkRates| l.rx.packets.unwrap_or(0).saturating_add(l.tx.packets.unwrap_or(0));
        match c.sort {
            1 => all.order_by_key(|(_, l)| Reverse(packets(l))),
            2 => all.order_by_key(|(_, l)| Reverse(l.drops.total())),
            _ => {}
        }
        if c.backwards {
            all.reverse();
        }
        all.into_iter().map(|(n, _)| n.as_str()).collect()
    }

    /// Queues in the order of the screen: of all interfaces, or of [`View::link`].
    pub fn queues_shown(&self) -> Vec<QueueRow<'_>> {
        let Some(r) = &self.rates else { return Vec::new() };
        let c = self.choice(Panel::Queues);
        let one = self.link();
        let mut all = Vec::new();
        for (name, link) in r.links.iter().filter(|(n, _)| self.all || Some(n.as_str()) == one) {
            let mut ids: Vec<u32> = link.queues.iter().map(|q| q.queue).collect();
            ids.sort();
            ids.dedup();
            let find = |dir, id| link.queues.iter().find(|q| q.dir == dir && q.queue == id);
            all.extend(ids.into_iter().map(|id| QueueRow {
                name,
                link,
                id,
                rx: find(Dir::Rx, id),
                tx: find(Dir::Tx, id),
            }));
        }
        let words = |w: &QueueRow<'_>| {
            let cpu = w.cpu().map(|c| format!("cpu{c}")).unwrap_or_default();
            let node = w.both().find_map(|q| q.node).map(|n| format!("node{n}")).unwrap_or_default();
            let irq = w.both().find_map(|q| q.irq).map(|i| format!("irq{i}")).unwrap_or_default();
            format!("{} {} q{} {cpu} {node} {irq} {}", w.name, w.id, w.id, w.mark().map_or("", RowMark::word))
        };
        all.retain(|w| matches(&c.filter, &words(w)));
        match c.sort {
            1 => all.order_by_key(|w| Reverse(w.packets())),
            2 => all.order_by_key(|w| Reverse(w.drops())),
            3 => all.order_by_key(QueueRow::cpu),
            _ => {}
        }
        if c.backwards {
            all.reverse();
        }
        all
    }

    /// CPUs in the order of the screen, without those that the filter hides.
    pub fn cpus_shown(&self) -> Vec<(CpuId, &CpuRates)> {
        let Some(r) = &self.rates else { return Vec::new() };
        let c = self.choice(Panel::Cpus);
        let words = |id: &CpuId, c: &CpuRates| {
            let node = c.node.map(|n| format!("node{n}")).unwrap_or_default();
            format!("cpu{id} {id} {node} {}", if works(c) { "works" } else { "idle" })
        };
        let mut all: Vec<_> = r.cpus.iter().filter(|(id, n)| matches(&c.filter, &words(id, n))).collect();
        let count = |c: &CpuRates, counter| c.counts.get(counter).unwrap_or(0);
        let busy = |a: &CpuRates, b: &CpuRates| match (a.busy_percent(), b.busy_percent()) {
            (Some(a), Some(b)) => b.total_cmp(&a),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        match c.sort {
            0 => all.order_by(|a, b| busy(a.1, b.1)),
            1 => {}
            2 => all.order_by_key(|(_, c)| Reverse(count(c, CpuCounter::SoftnetProcessed))),
            _ => all.order_by_key(|(_, c)| Reverse(count(c, CpuCounter::SoftnetDropped))),
        }
        if c.backwards {
            all.reverse();
        }
        all.into_iter().map(|(id, c)| (*id, c)).collect()
    }
}

/// Whether the CPU processed packets or handled interrupts of the watched queues.
pub(super) fn works(c: &CpuRates) -> bool {
    let processed = c.counts.get(CpuCounter::SoftnetProcessed).is_some_and(|n| n > 0);
    c.interrupts > 0 || processed || c.busy_percent().is_some_and(|n| n >= 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_filter() {
        assert!(matches("", "eth1 igb node0"));
        assert!(matches("ETH node0", "eth1 igb node0"));
        assert!(!matches("cpu1", "cpu10 10 node0") && matches("cpu1", "cpu1 1 node0"));
        assert!(!matches("eth1 node1", "eth1 igb node0"));
    }
}

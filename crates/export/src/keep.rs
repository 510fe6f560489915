//! Totals that never decrease, computed from counters that may decrease. This module does no I/O.

use std::collections::BTreeMap;

use ringwise_model::CounterKind;
use ringwise_observe::increase;

/// One series as it was last written.
#[derive(Debug, Clone)]
struct Kept {
    /// The device or object that the counter belongs to. If it changes, the counter began at 0 in the meantime.
    owner: u64,
    /// The source of the counter. Sources count differently, so what was counted between two sources is unknown.
    teller: u8,
    raw: u64,
    total: u64,
    page: u64,
}

/// How a counter reading is added.
#[derive(Debug, Clone, Copy)]
pub struct Raw {
    pub kind: CounterKind,
    pub owner: u64,
    pub teller: u8,
    pub n: u64,
}

/// The first page contains counters as the kernel has them (since boot, or since the device appeared); later pages add
/// the increase. After a reset, a total continues with what was counted since the reset. What was counted between the
/// previous page and the reset is lost. So no total is lower than on the previous page, and the resets themselves are
/// counted.
#[derive(Debug, Clone, Default)]
pub struct Keeper {
    series: BTreeMap<String, Kept>,
    /// Number of pages in which counters decreased, by device (empty for counters without a device).
    resets: BTreeMap<String, (u64, u64)>,
    page: u64,
    room: usize,
}

impl Keeper {
    /// `room`: how many series are remembered, including those that are gone.
    pub fn new(room: usize) -> Self {
        Self { room, ..Self::default() }
    }

    /// Begins a new page.
    pub fn begin(&mut self) {
        self.page += 1;
        if self.series.len() > self.room {
            let last = self.page - 1;
            self.series.retain(|_, k| k.page == last);
        }
    }

    /// The total of this series. `of`: the device, or nothing.
    pub fn total(&mut self, series: &str, of: &str, raw: Raw) -> u64 {
        let page = self.page;
        let resets = self.resets.entry(of.to_string()).or_default();
        let Some(k) = self.series.get_mut(series) else {
            let kept = Kept { owner: raw.owner, teller: raw.teller, raw: raw.n, total: raw.n, page };
            self.series.insert(series.to_string(), kept);
            return raw.n;
        };
        k.page = page;
        let since = if k.teller != raw.teller {
            Some(0)
        } else if k.owner != raw.owner {
            Some(raw.n)
        } else if raw.kind == CounterKind::Estimate && raw.n < k.raw {
            // The counter counts again when it has reached the old value.
            return k.total;
        } else {
            increase(raw.kind, k.raw, raw.n)
        };
        if since.is_none() && resets.1 != page {
            *resets = (resets.0 + 1, page);
        }
        k.total = k.total.saturating_add(since.unwrap_or(raw.n));
        (k.owner, k.teller, k.raw) = (raw.owner, raw.teller, raw.n);
        k.total
    }

    /// On how many pages counters of each device had been reset.
    pub fn resets(&self) -> impl Iterator<Item = (&str, u64)> {
        self.resets.iter().map(|(d, n)| (d.as_str(), n.0))
    }
}

#[cfg(test)]
mod tests {
    use CounterKind::{Bits32, Bits64, Estimate};
    use ringwise_observe::INTERRUPTS;

    use super::*;

    fn raw(kind: CounterKind, owner: u64, n: u64) -> Raw {
        Raw { kind, owner, teller: 1, n }
    }

    #[test]
    fn never_backwards() {
        let mut k = Keeper::new(10);
        let mut step = |owner, n| {
            k.begin();
            (k.total("s", "eth1", raw(Bits64, owner, n)), k.resets().map(|r| r.1).sum::<u64>())
        };
        assert_eq!(step(2, 1000), (1000, 0));
        assert_eq!(step(2, 1500), (1500, 0));
        assert_eq!(step(2, 20), (1520, 1), "reset");
        assert_eq!(step(9, 7), (1527, 1), "another device of this name is no reset");
        assert_eq!(step(9, 8), (1528, 1));
    }

    #[test]
    fn wraps_estimates_and_other_tellers() {
        let mut k = Keeper::new(10);
        let top = u64::from(u32::MAX);
        k.begin();
        for (s, kind, n) in [("a", Bits32, top), ("b", INTERRUPTS, top - 1), ("c", Estimate, 50)] {
            k.total(s, "", raw(kind, 0, n));
        }
        k.begin();
        assert_eq!(k.total("a", "", raw(Bits32, 0, 4)), top + 5);
        assert_eq!(k.total("b", "", raw(INTERRUPTS, 0, 3)), top + 4);
        assert_eq!(k.total("c", "", raw(Estimate, 0, 48)), 50);
        k.begin();
        assert_eq!(k.total("c", "", raw(Estimate, 0, 53)), 53);
        assert_eq!(
            k.total("b", "", Raw { teller: 2, ..raw(INTERRUPTS, 0, 900) }),
            top + 4,
            "nothing is known in between"
        );
        assert_eq!(k.total("b", "", Raw { teller: 2, ..raw(INTERRUPTS, 0, 901) }), top + 5);
        assert_eq!(k.resets().collect::<Vec<_>>(), [("", 0)]);
    }

    #[test]
    fn what_is_gone_is_kept_while_there_is_room() {
        let mut k = Keeper::new(2);
        k.begin();
        k.total("a", "x", raw(Bits64, 1, 10));
        k.begin();
        k.begin();
        assert_eq!(k.total("a", "x", raw(Bits64, 2, 1)), 11);
        for s in ["b", "c", "d"] {
            k.total(s, "x", raw(Bits64, 1, 1));
        }
        k.begin();
        for s in ["b", "c"] {
            k.total(s, "x", raw(Bits64, 1, 2));
        }
        assert_eq!(k.series.len(), 4);
        k.begin();
        assert_eq!(k.series.len(), 2, "no room for those that are gone");
        assert_eq!(k.total("b", "x", raw(Bits64, 1, 3)), 3);
    }
}

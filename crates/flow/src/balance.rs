//! Balances an indirection table: moves few entries, so that no queue gets much more than its share.
//!
//! Entries move from the queue with the most packets to the queue with the fewest, the largest fitting entry first, as
//! in RSS++. A queue keeps its last entry even if that entry is too heavy, because no table can split an entry.
use serde::Serialize;

/// One entry of the table that gets another queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Move {
    /// Index into the table.
    pub entry: usize,
    /// Its present receive queue.
    pub from: u32,
    /// Its new receive queue.
    pub to: u32,
    /// Packets that hash to the entry, and move with it.
    pub packets: u64,
}

/// The outcome of [`balance`]. Ratios are packets of the fullest queue over the mean; 1.0 is even.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Balanced {
    /// Ratio with the present table.
    pub before: f64,
    /// Ratio with `table`.
    pub after: f64,
    /// The lowest ratio that a table with these entries can reach.
    pub floor: f64,
    /// Requested ratio.
    pub target: f64,
    /// Entries that change, in the order of the table.
    pub moves: Vec<Move>,
    /// Receive queue of each entry, after all moves.
    pub table: Vec<u32>,
}

impl Balanced {
    /// Whether `after` is at or below `target`.
    pub fn reached(&self) -> bool {
        self.after <= self.target
    }
}

/// What limits the moves of [`balance_within`]. [`MoveLimits::NONE`] limits nothing.
#[derive(Clone, Copy)]
pub struct MoveLimits<'a> {
    /// Number of entries that may change.
    pub entries: usize,
    /// Whether the entry with this index keeps its queue.
    pub pinned: &'a dyn Fn(usize) -> bool,
    /// `costs[i]` is the cost of moving entry i, for example its packets if `loads` are CPU time. An entry without a
    /// cost costs nothing.
    pub costs: &'a [u64],
    /// The costs of all entries that change sum up to at most this.
    pub cost: u64,
    /// Whether queue `to` may have this load after it got an entry of queue `from`: `accepts(from, to, load)`.
    pub accepts: &'a dyn Fn(u32, u32, u64) -> bool,
    /// Whether queue `to` may get entries of queue `from` at all: `may_pass(from, to)`. Another queue is tried instead.
    pub may_pass: &'a dyn Fn(u32, u32) -> bool,
    /// Whether two queues are near each other: a near queue is tried before the others.
    pub near: &'a dyn Fn(u32, u32) -> bool,
}

impl MoveLimits<'_> {
    /// No limits.
    pub const NONE: MoveLimits<'static> = MoveLimits {
        entries: usize::MAX,
        pinned: &|_| false,
        costs: &[],
        cost: u64::MAX,
        accepts: &|_, _, _| true,
        may_pass: &|_, _| true,
        near: &|_, _| true,
    };
}

/// Balances `table`. `loads[i]` is the packets of entry i. `fixed[q]` is the packets that reach queue q without the
/// table, for example by rules. Queues are numbered below `queues`; `may` returns whether a queue may get entries.
///
/// A single pass that fails may end far from the best table, because its early moves took the room that a heavy entry
/// needed. Then passes with higher targets are compared, and the table with the lowest ratio is returned.
pub fn balance(
    table: &[u32],
    loads: &[u64],
    fixed: &[u64],
    queues: u32,
    may: impl Fn(u32) -> bool,
    target: f64,
) -> Balanced {
    let pass = |target| balance_within(table, loads, fixed, queues, &may, target, &MoveLimits::NONE);
    let mut best = pass(target);
    if best.reached() || best.after <= best.floor {
        return best;
    }
    let (low, high) = (target.max(best.floor), best.before);
    for step in 1..=PASSES {
        let next = pass(low + (high - low) * f64::from(step) / f64::from(PASSES));
        if (next.after, next.moves.len()) < (best.after, best.moves.len()) {
            best = next;
        }
    }
    Balanced { target, ..best }
}

/// Passes with higher targets, spread evenly up to the present ratio.
const PASSES: u32 = 64;

/// Balances `table` as [`balance`] does, with limits on the moves. `loads` and `fixed` may be any weight instead of
/// packets, for example CPU time; [`Move::packets`] is this weight then.
pub fn balance_within(
    table: &[u32],
    loads: &[u64],
    fixed: &[u64],
    queues: u32,
    may: impl Fn(u32) -> bool,
    target: f64,
    limits: &MoveLimits<'_>,
) -> Balanced {
    let n = queues as usize;
    let mut load: Vec<u64> = (0..n).map(|q| fixed.get(q).copied().unwrap_or(0)).collect();
    let mut buckets: Vec<Vec<(u64, usize)>> = vec![Vec::new(); n];
    for (entry, (q, l)) in table.iter().zip(loads).enumerate() {
        if let Some(sum) = load.get_mut(*q as usize) {
            *sum += l;
            buckets[*q as usize].push((*l, entry));
        }
    }
    let total: u64 = load.iter().sum();
    let mean = total as f64 / n.max(1) as f64;
    let ratio = |load: &[u64]| if total == 0 { 1.0 } else { load.iter().copied().max().unwrap_or(0) as f64 / mean };
    let before = ratio(&load);
    let biggest = loads.iter().copied().max().unwrap_or(0).max(fixed.iter().copied().max().unwrap_or(0));
    let floor = if total == 0 { 1.0 } else { (biggest as f64 / mean).max(1.0) };
    for b in &mut buckets {
        b.sort();
    }
    let mut out = table.to_vec();
    let mut spent = Spent { entries: 0, cost: 0 };
    let limit = (mean * target.max(1.0)) as u64;
    let mut stuck = vec![false; n];
    // Each move makes the two queues more even, so the loop ends. The bound is for unreasonably large numbers.
    for _ in 0..table.len().saturating_mul(4).max(64) {
        let Some(from) = (0..n).filter(|q| !stuck[*q]).max_by_key(|q| (load[*q], *q)) else { break };
        let high = load[from];
        if high <= limit || total == 0 {
            break;
        }
        let emptiest = |near: bool| {
            let others = (0..n).filter(|q| may(*q as u32) && *q != from && (limits.may_pass)(from as u32, *q as u32));
            let others = others.filter(|q| !near || (limits.near)(from as u32, *q as u32));
            others.min_by_key(|q| (load[*q], *q))
        };
        let chosen = [true, false].into_iter().filter_map(emptiest).find_map(|to| {
            let fits = |(l, entry): (u64, usize)| {
                !(limits.pinned)(entry)
                    && spent.allows(limits, entry, out[entry] != table[entry])
                    && (limits.accepts)(from as u32, to as u32, load[to] + l)
            };
            Some((to, choose(&buckets[from], high, load[to], limit, fits)?))
        });
        let Some((to, at)) = chosen else {
            stuck[from] = true;
            continue;
        };
        let (l, entry) = buckets[from].remove(at);
        let into = &mut buckets[to];
        into.insert(into.partition_point(|x| *x < (l, entry)), (l, entry));
        (load[from], load[to]) = (high - l, load[to] + l);
        spent.moved(limits, entry, out[entry] != table[entry], table[entry] != to as u32);
        out[entry] = to as u32;
        stuck[to] = false;
    }
    let moves = table.iter().zip(&out).enumerate().filter(|(_, (a, b))| a != b);
    let moves =
        moves.map(|(entry, (a, b))| Move { entry, from: *a, to: *b, packets: loads.get(entry).copied().unwrap_or(0) });
    Balanced { before, after: ratio(&load), floor, target, moves: moves.collect(), table: out }
}

/// What the entries that differ from the given table use of the limits.
struct Spent {
    entries: usize,
    cost: u64,
}

impl Spent {
    fn cost(limits: &MoveLimits<'_>, entry: usize) -> u64 {
        limits.costs.get(entry).copied().unwrap_or(0)
    }

    /// Whether the limits allow to move `entry`. An entry that has moved already may move on.
    fn allows(&self, limits: &MoveLimits<'_>, entry: usize, moved: bool) -> bool {
        moved || (self.entries < limits.entries && self.cost.saturating_add(Self::cost(limits, entry)) <= limits.cost)
    }

    /// `before`, `after`: whether the entry differs from the given table.
    fn moved(&mut self, limits: &MoveLimits<'_>, entry: usize, before: bool, after: bool) {
        let cost = Self::cost(limits, entry);
        match (before, after) {
            (false, true) => (self.entries, self.cost) = (self.entries + 1, self.cost + cost),
            (true, false) => (self.entries, self.cost) = (self.entries - 1, self.cost - cost),
            _ => {}
        }
    }
}

/// The entry to move from a queue with the load `high` to one with the load `low`, as an index into `entries`, which are
/// sorted: one that removes the excess and fits below `limit`; otherwise the largest that fits; otherwise the smallest,
/// if it helps.
fn choose(
    entries: &[(u64, usize)],
    high: u64,
    low: u64,
    limit: u64,
    may: impl Fn((u64, usize)) -> bool,
) -> Option<usize> {
    let room = limit.saturating_sub(low);
    let fits = entries.partition_point(|(l, _)| *l <= room);
    let enough = entries.partition_point(|(l, _)| *l < high - limit);
    let at = (enough..fits).find(|i| may(entries[*i]));
    let at = at.or_else(|| (0..fits.min(enough)).rev().find(|i| entries[*i].0 > 0 && may(entries[*i])));
    let at = at.or_else(|| (0..entries.len()).find(|i| entries[*i].0 > 0 && may(entries[*i])));
    at.filter(|i| low + entries[*i].0 < high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_table_is_not_changed() {
        let b = balance(&[0, 1, 0, 1], &[5, 5, 5, 5], &[], 2, |_| true, 1.05);
        assert_eq!((b.moves.len(), b.before, b.after), (0, 1.0, 1.0));
        let idle = balance(&[0, 1], &[0, 0], &[], 2, |_| true, 1.05);
        assert_eq!((idle.moves.len(), idle.after), (0, 1.0));
    }

    #[test]
    fn one_move_is_enough() {
        let b = balance(&[0, 0, 0, 1], &[10, 10, 10, 10], &[], 2, |_| true, 1.05);
        assert_eq!((b.moves.len(), b.after), (1, 1.0));
        assert_eq!(b.table.iter().filter(|q| **q == 0).count(), 2);
    }

    #[test]
    fn a_pass_that_fails_does_not_hide_a_better_table() {
        // Zipf: the heaviest entry is below the mean, so a nearly even table exists.
        let loads: Vec<u64> = (0..128).map(|i| 10_000 / (1 + (i * 37) % 128)).collect();
        let table: Vec<u32> = (0..128).map(|i| i % 8).collect();
        for target in [1.0, 1.01, 1.03, 1.05, 1.08, 1.1, 1.3] {
            let b = balance(&table, &loads, &[], 8, |_| true, target);
            let once = balance_within(&table, &loads, &[], 8, |_| true, target, &MoveLimits::NONE);
            assert!(b.after <= once.after && b.target == target, "{target}: {} and {}", b.after, once.after);
        }
    }

    #[test]
    fn an_elephant_is_not_moved_and_is_the_floor() {
        let b = balance(&[0, 1, 0, 1], &[100, 5, 5, 5], &[], 2, |_| true, 1.05);
        assert_eq!(b.table, [0, 1, 1, 1]);
        assert_eq!(b.moves.len(), 1);
        assert!(!b.reached());
        assert!((b.after - b.floor).abs() < 1e-9, "{b:?}");
    }

    #[test]
    fn queues_that_may_not_get_entries_get_none() {
        let b = balance(&[0, 0, 1, 2], &[9, 9, 1, 1], &[], 3, |q| q != 2, 1.05);
        assert!(b.moves.iter().all(|m| m.to != 2), "{b:?}");
    }

    #[test]
    fn packets_of_rules_count() {
        let b = balance(&[0, 1, 0, 1], &[10, 10, 10, 10], &[0, 40], 2, |_| true, 1.0);
        assert!(b.table.iter().filter(|q| **q == 0).count() >= 3, "{b:?}");
    }

    #[test]
    fn at_most_as_many_entries_move_as_the_limit_allows() {
        let (table, loads) = ([0, 0, 0, 0, 0, 0, 1, 2], [10; 8]);
        let free = balance(&table, &loads, &[], 3, |_| true, 1.0);
        assert!(free.moves.len() > 2, "{free:?}");
        let b = balance_within(&table, &loads, &[], 3, |_| true, 1.0, &MoveLimits { entries: 2, ..MoveLimits::NONE });
        assert_eq!(b.moves.len(), 2);
        assert!(b.after < b.before, "{b:?}");
    }

    #[test]
    fn pinned_entries_keep_their_queue() {
        let pinned = |entry| entry != 1;
        let limits = MoveLimits { pinned: &pinned, ..MoveLimits::NONE };
        let b = balance_within(&[0, 0, 0, 0], &[40, 10, 20, 30], &[], 2, |_| true, 1.0, &limits);
        assert_eq!(b.table, [0, 1, 0, 0]);
    }

    #[test]
    fn the_moved_entries_cost_at_most_what_the_limit_allows() {
        let limits = MoveLimits { costs: &[5, 50, 5, 5], cost: 10, ..MoveLimits::NONE };
        let b = balance_within(&[0, 0, 0, 0], &[10; 4], &[], 4, |_| true, 1.0, &limits);
        assert_eq!(b.moves.len(), 2, "{b:?}");
        assert_eq!(b.table[1], 0, "too expensive");
    }

    #[test]
    fn a_near_queue_is_preferred_and_a_remote_one_is_better_than_none() {
        let near = |a: u32, b: u32| a / 2 == b / 2;
        let fixed = [0, 1, 0, 0];
        let limits = MoveLimits { near: &near, ..MoveLimits::NONE };
        let b = balance_within(&[0, 0], &[10, 10], &fixed, 4, |_| true, 2.2, &limits);
        assert_eq!((b.moves.len(), b.moves[0].to), (1, 1), "queue 1 has more than queue 2, but is near: {b:?}");
        let full = |_: u32, to: u32, _: u64| to != 1;
        let limits = MoveLimits { near: &near, accepts: &full, ..MoveLimits::NONE };
        let b = balance_within(&[0, 0], &[10, 10], &fixed, 4, |_| true, 2.2, &limits);
        assert!(!b.moves.is_empty() && b.moves.iter().all(|m| m.to >= 2), "{b:?}");
    }

    #[test]
    fn a_receiver_refuses_more_than_it_may_have() {
        let below = |_: u32, _: u32, load: u64| load <= 12;
        let limits = MoveLimits { accepts: &below, ..MoveLimits::NONE };
        let b = balance_within(&[0, 0, 0], &[30, 20, 9], &[], 2, |_| true, 1.0, &limits);
        assert_eq!(b.table, [0, 0, 1]);
    }
}

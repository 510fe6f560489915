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

/// Balances `table`. `loads[i]` is the packets of entry i. `fixed[q]` is the packets that reach queue q without the
/// table, for example by rules. Queues are numbered below `queues`; `may` returns whether a queue may get entries.
pub fn balance(
    table: &[u32],
    loads: &[u64],
    fixed: &[u64],
    queues: u32,
    may: impl Fn(u32) -> bool,
    target: f64,
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
    let limit = (mean * target.max(1.0)) as u64;
    let mut stuck = vec![false; n];
    // Each move makes the two queues more even, so the loop ends. The bound is for unreasonably large numbers.
    for _ in 0..table.len().saturating_mul(4).max(64) {
        let Some(from) = (0..n).filter(|q| !stuck[*q]).max_by_key(|q| (load[*q], *q)) else { break };
        let high = load[from];
        if high <= limit || total == 0 {
            break;
        }
        let others = (0..n).filter(|q| may(*q as u32) && *q != from);
        let Some(to) = others.min_by_key(|q| (load[*q], *q)) else { break };
        let low = load[to];
        let room = limit.saturating_sub(low);
        let excess = high - limit;
        let b = &buckets[from];
        // An entry that removes the excess and fits; otherwise the largest that fits; otherwise the smallest, if it
        // helps.
        let fits = b.partition_point(|(l, _)| *l <= room);
        let enough = b.partition_point(|(l, _)| *l < excess);
        let at = if enough < fits { Some(enough) } else { fits.checked_sub(1).filter(|i| b[*i].0 > 0) };
        let at = at.or_else(|| b.iter().position(|(l, _)| *l > 0)).filter(|i| low + b[*i].0 < high);
        let Some(at) = at else {
            stuck[from] = true;
            continue;
        };
        let (l, entry) = buckets[from].remove(at);
        let into = &mut buckets[to];
        into.insert(into.partition_point(|x| *x < (l, entry)), (l, entry));
        (load[from], load[to]) = (high - l, low + l);
        out[entry] = to as u32;
        stuck[to] = false;
    }
    let moves = table.iter().zip(&out).enumerate().filter(|(_, (a, b))| a != b);
    let moves =
        moves.map(|(entry, (a, b))| Move { entry, from: *a, to: *b, packets: loads.get(entry).copied().unwrap_or(0) });
    Balanced { before, after: ratio(&load), floor, target, moves: moves.collect(), table: out }
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
}

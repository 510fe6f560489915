//! The fewest entries of a table to move so that no queue has much more than its share.
//!
//! Buckets go from the fullest queue to the emptiest, the largest that fits first, as in RSS++; a queue whose last
//! bucket is still too heavy keeps it: no table can split it.
use serde::Serialize;

/// One entry of the table that gets another queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Move {
    /// Index into the table.
    pub entry: usize,
    /// Receive queue it has now.
    pub from: u32,
    /// Receive queue it gets.
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
    /// No table with these buckets goes below.
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

/// `loads[i]`: packets of entry i. `fixed[q]`: packets that reach queue q by other ways than the table. Queues are
/// those below `queues`; `may` says which of them may be given entries.
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
    // A move makes the pair more even each time, so it ends; the bound is for numbers beyond sense.
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
        // One that ends the excess and fits; else the largest that fits; else the smallest, if it helps at all.
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
    fn nothing_to_do_is_done_with_nothing() {
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
    fn an_elephant_is_left_alone_and_is_the_floor() {
        let b = balance(&[0, 1, 0, 1], &[100, 5, 5, 5], &[], 2, |_| true, 1.05);
        assert_eq!(b.table, [0, 1, 1, 1]);
        assert_eq!(b.moves.len(), 1);
        assert!(!b.reached());
        assert!((b.after - b.floor).abs() < 1e-9, "{b:?}");
    }

    #[test]
    fn queues_that_may_not_get_more_do_not() {
        let b = balance(&[0, 0, 1, 2], &[9, 9, 1, 1], &[], 3, |q| q != 2, 1.05);
        assert!(b.moves.iter().all(|m| m.to != 2), "{b:?}");
    }

    #[test]
    fn what_rules_bring_counts() {
        let b = balance(&[0, 1, 0, 1], &[10, 10, 10, 10], &[0, 40], 2, |_| true, 1.0);
        assert!(b.table.iter().filter(|q| **q == 0).count() >= 3, "{b:?}");
    }
}

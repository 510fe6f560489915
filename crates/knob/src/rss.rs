//! The RSS indirection table of context 0 (`ethtool -X`). Known here so that a channel change can be put back whole.

use ringwise_model::{Fact, Nic, Rss};

use crate::Setting;

pub fn live(nic: &Nic) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    match &nic.rss {
        Fact::Known(Rss { table, .. }) if table.is_empty() => Fact::Absent,
        other => other.as_ref().map(|r: &Rss| Setting::RssTable { dev, table: r.table.clone() }),
    }
}

/// Entries per queue: `128 entries: 0-7 16 each`, else `0:24 1:8`.
pub fn text(table: &[u32]) -> String {
    let mut per: std::collections::BTreeMap<u32, u32> = Default::default();
    for q in table {
        *per.entry(*q).or_default() += 1;
    }
    let counts: Vec<u32> = per.values().copied().collect();
    let queues: ringwise_model::CpuSet = per.keys().map(|q| ringwise_model::CpuId(*q)).collect();
    if counts.windows(2).all(|w| w[0] == w[1]) && !counts.is_empty() {
        format!("{} entries: queues {} {} each", table.len(), queues, counts[0])
    } else {
        let s: Vec<String> = per.iter().map(|(q, n)| format!("{q}:{n}")).collect();
        format!("{} entries: {}", table.len(), s.join(" "))
    }
}

/// `equal N` and weights reproduce a table only where ethtool's rule does so to the entry
/// (round robin; or cumulative weights, `domain.md` 0.1); else the table cannot be typed by hand.
pub fn command(dev: &str, table: &[u32]) -> String {
    let queues = table.iter().max().map_or(0, |m| m + 1);
    if table.iter().enumerate().all(|(i, q)| i as u32 % queues.max(1) == *q) {
        return format!("ethtool -X {dev} equal {queues}");
    }
    let mut weights = vec![0u32; queues as usize];
    for q in table {
        weights[*q as usize] += 1;
    }
    if by_weight(&weights, table.len()) == table {
        let w: Vec<String> = weights.iter().map(u32::to_string).collect();
        return format!("ethtool -X {dev} weight {}", w.join(" "));
    }
    format!("# {dev}: this RSS table has no ethtool command; ringwise recover restores it")
}

/// ethtool's weight rule: entry i goes to the first queue j with i < size * cumulative(j) / sum.
pub fn by_weight(weights: &[u32], size: usize) -> Vec<u32> {
    let sum: u64 = weights.iter().map(|w| u64::from(*w)).sum();
    if sum == 0 {
        return Vec::new();
    }
    let mut table = Vec::with_capacity(size);
    let (mut j, mut cumulative) = (0usize, u64::from(weights[0]));
    for i in 0..size as u64 {
        while i >= size as u64 * cumulative / sum && j + 1 < weights.len() {
            j += 1;
            cumulative += u64::from(weights[j]);
        }
        table.push(j as u32);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(table: &[u32], queue: u32) -> usize {
        table.iter().filter(|q| **q == queue).count()
    }

    #[test]
    fn weights_as_ethtool_does_them() {
        let t = by_weight(&[3, 1], 32);
        assert_eq!((count(&t, 0), count(&t, 1)), (24, 8));
        let t = by_weight(&[1, 2], 32);
        assert_eq!((count(&t, 0), count(&t, 1)), (10, 22));
        let t = by_weight(&[1; 6], 128);
        assert_eq!((0..6).map(|q| count(&t, q)).collect::<Vec<_>>(), [21, 21, 22, 21, 21, 22]);
    }

    #[test]
    fn command_only_where_it_gives_the_same_table() {
        assert_eq!(command("eth0", &[0, 1, 0, 1]), "ethtool -X eth0 equal 2");
        assert_eq!(command("eth0", &[0, 0, 1, 1]), "ethtool -X eth0 weight 2 2");
        assert!(command("eth0", &[1, 0, 0, 1]).starts_with("# eth0"));
    }
}

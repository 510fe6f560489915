//! Lists values that could not be read. Values of the same kind are combined, so that a thousand CPUs do not need a
//! thousand lines.

use std::collections::BTreeMap;

use ringwise_model::{CpuId, CpuSet, Unread};

/// A number after one of these counts objects of one kind.
const COUNTERS: [&str; 6] = ["/cpu", "/rx-", "/tx-", "/irq/", "/msi_irqs/", "/node"];

/// Splits the text at the last such number. `/cpu_capacity` has no number.
fn split(what: &str) -> Option<(&str, u32, &str)> {
    COUNTERS
        .iter()
        .flat_map(|c| what.rmatch_indices(c))
        .filter_map(|(at, c)| {
            let at = at + c.len();
            let len = what[at..].bytes().take_while(u8::is_ascii_digit).count();
            let number = what[at..at + len].parse().ok()?;
            Some((&what[..at], number, &what[at + len..]))
        })
        .max_by_key(|(head, ..)| head.len())
}

/// The values by reason, in the order in which they were noted: `/sys/devices/system/cpu/cpu0-95/topology/die_id`.
pub fn by_reason(list: &[Unread]) -> Vec<(String, Vec<String>)> {
    let mut out: Vec<(String, Vec<String>)> = Vec::new();
    let mut numbers: BTreeMap<(String, String, String), CpuSet> = BTreeMap::new();
    let key = |u: &Unread, h: &str, t: &str| (u.why.clone(), h.to_string(), t.to_string());
    for u in list {
        if let Some((h, n, t)) = split(&u.what) {
            numbers.entry(key(u, h, t)).or_default().insert(CpuId(n));
        }
    }
    for u in list {
        let text = match split(&u.what) {
            Some((h, _, t)) => format!("{h}{}{t}", numbers[&key(u, h, t)]),
            None => u.what.clone(),
        };
        match out.iter_mut().find(|(why, _)| *why == u.why) {
            Some((_, what)) if what.contains(&text) => {}
            Some((_, what)) => what.push(text),
            None => out.push((u.why.clone(), vec![text])),
        }
    }
    out
}

/// A sentence with at most `limit` values for each reason.
pub fn text(list: &[Unread], limit: usize) -> String {
    let parts: Vec<String> = by_reason(list)
        .into_iter()
        .map(|(why, what)| {
            let more = what.len().saturating_sub(limit);
            let shown = what[..what.len() - more].join(", ");
            if more > 0 { format!("{shown} and {more} more (-v): {why}") } else { format!("{shown}: {why}") }
        })
        .collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_cpus_are_one_word() {
        let mut list: Vec<Unread> = (0..1000)
            .map(|i| Unread::new(format!("/sys/devices/system/cpu/cpu{i}/topology/die_id"), None, "x"))
            .collect();
        list.push(Unread::new("channels-get eth1", Some(95), "x"));
        list.push(Unread::new("/sys/class/net/eth1/queues/rx-7/rps_cpus", None, "y"));
        assert_eq!(
            text(&list, 9),
            "/sys/devices/system/cpu/cpu0-999/topology/die_id, channels-get eth1: x; /sys/class/net/eth1/queues/rx-7/rps_cpus: y"
        );
        let capacity = |i| Unread::new(format!("/sys/devices/system/cpu/cpu{i}/cpu_capacity"), None, "x");
        let list2: Vec<Unread> = (0..256).map(capacity).collect();
        assert_eq!(text(&list2, 9), "/sys/devices/system/cpu/cpu0-255/cpu_capacity: x");
        assert!(text(&list, 1).starts_with("/sys/devices/system/cpu/cpu0-999/topology/die_id and 1 more (-v): x"));
    }
}

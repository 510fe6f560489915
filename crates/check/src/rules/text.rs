//! Numbers in words.

use ringwise_model::CpuId;

use crate::traffic::Traffic;

/// `41,180`
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Whole packets a second; below one with a decimal, as nothing that happened is 0.
pub(crate) fn per_second(t: &Traffic, n: u64) -> String {
    let rate = t.per_second(n);
    if n > 0 && rate < 1.0 { format!("{rate:.2}") } else { count(rate.round() as u64) }
}

/// CPUs where this counter grew, and by how much.
pub(crate) fn cpus_of(t: &Traffic, name: &str) -> Vec<(CpuId, u64)> {
    t.cpus.iter().filter_map(|(c, cpu)| Some((*c, *cpu.counts.get(name).filter(|n| **n > 0)?))).collect()
}

/// `queue 3`, `queues 3-5`
pub(crate) fn queues(list: &[u32]) -> String {
    let set: ringwise_model::CpuSet = list.iter().map(|q| CpuId(*q)).collect();
    if list.len() == 1 { format!("queue {set}") } else { format!("queues {set}") }
}

/// `0, 7 and 50`
pub(crate) fn list<T: std::fmt::Display>(all: &[T]) -> String {
    let all: Vec<String> = all.iter().map(T::to_string).collect();
    match all.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => all.join(""),
    }
}

/// `8 GT/s`, `2.5 GT/s`
pub(crate) fn gts(mtps: u32) -> String {
    if mtps.is_multiple_of(1000) {
        format!("{} GT/s", mtps / 1000)
    } else {
        format!("{}.{} GT/s", mtps / 1000, mtps % 1000 / 100)
    }
}

/// KB or MB of bytes.
pub(crate) fn bytes(n: u64) -> String {
    if n >= 10 << 20 { format!("{} MB", n >> 20) } else { format!("{} KB", n >> 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_words() {
        assert_eq!((count(0), count(1_234_567)), ("0".into(), "1,234,567".into()));
        assert_eq!(queues(&[3, 4, 5, 9]), "queues 3-5,9");
        assert_eq!((list(&[0, 7, 50]), list(&[5])), ("0, 7 and 50".into(), "5".into()));
        let t = Traffic { seconds: 4.0, ..Traffic::default() };
        assert_eq!((per_second(&t, 1), per_second(&t, 8)), ("0.25".into(), "2".into()));
    }
}

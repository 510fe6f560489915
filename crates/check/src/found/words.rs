//! Numbers as text.

use ringwise_model::{CpuId, CpuSet};

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

/// A rate in whole numbers. Below 1 it has decimals, so that an event is never shown as 0.
pub(crate) fn rate(per_second: f64) -> String {
    if per_second > 0.0 && per_second < 1.0 { format!("{per_second:.2}") } else { count(per_second.round() as u64) }
}

/// `queue 3`, `queues 3-5`
pub(crate) fn queues(list: &[u32]) -> String {
    let set: CpuSet = list.iter().map(|q| CpuId(*q)).collect();
    if list.len() == 1 { format!("queue {set}") } else { format!("queues {set}") }
}

/// `CPU 3`, `CPUs 3-5`
pub(crate) fn cpus(set: &CpuSet) -> String {
    if set.len() == 1 { format!("CPU {set}") } else { format!("CPUs {set}") }
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

/// A number of bytes in KB or MB.
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
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        assert_eq!((cpus(&set("3")), cpus(&set("3-5"))), ("CPU 3".into(), "CPUs 3-5".into()));
        assert_eq!((list(&[0, 7, 50]), list(&[5])), ("0, 7 and 50".into(), "5".into()));
        assert_eq!((rate(0.25), rate(2.0), rate(0.0)), ("0.25".into(), "2".into(), "0".into()));
    }
}

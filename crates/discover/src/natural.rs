//! Order of names as people count: `eth2` before `eth10`.

use ringwise_model::Order;
use std::cmp::Ordering;

/// Compares runs of digits by value and everything else by character; equal values with leading
/// zeros fall back to the text, so that the order is total.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a, b);
    loop {
        match (x.chars().next(), y.chars().next()) {
            (None, None) => return a.cmp(b),
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some(c), Some(d)) if c.is_ascii_digit() && d.is_ascii_digit() => {
                let (n, rest_x) = digits(x);
                let (m, rest_y) = digits(y);
                let order = n.len().cmp(&m.len()).then_with(|| n.cmp(m));
                if order != Ordering::Equal {
                    return order;
                }
                (x, y) = (rest_x, rest_y);
            }
            (Some(c), Some(d)) => {
                if c != d {
                    return c.cmp(&d);
                }
                (x, y) = (&x[c.len_utf8()..], &y[d.len_utf8()..]);
            }
        }
    }
}

/// The leading digits without their zeros, and what follows.
fn digits(s: &str) -> (&str, &str) {
    let end = s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
    (s[..end].trim_start_matches('0'), &s[end..])
}

/// The number after `prefix`, when the rest is only digits: `number("rx-10", "rx-")` = 10.
pub fn number(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Numbers of all names `prefixN`, sorted.
pub fn numbers(names: &[String], prefix: &str) -> Vec<u32> {
    let mut out: Vec<u32> = names.iter().filter_map(|n| number(n, prefix)).collect();
    out.order();
    out.dedup();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_as_people_do() {
        let mut names = vec!["eth10", "eth2", "enp3s0f1", "enp3s0f0", "eth02", "eth1.100", "eth1", "éth0"];
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(names, ["enp3s0f0", "enp3s0f1", "eth1", "eth1.100", "eth02", "eth2", "eth10", "éth0"]);
        assert_eq!(compare("a1", "a1"), Ordering::Equal);
    }

    #[test]
    fn only_digits_are_a_number() {
        assert_eq!(number("rx-10", "rx-"), Some(10));
        assert_eq!(number("rx-", "rx-"), None);
        assert_eq!(number("rx-+1", "rx-"), None);
        assert_eq!(number("node0x", "node"), None);
        assert_eq!(numbers(&["rx-10".into(), "tx-0".into(), "rx-2".into()], "rx-"), [2, 10]);
    }
}

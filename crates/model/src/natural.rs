//! Natural order of names: `eth2` before `eth10`.

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

/// The leading digits without leading zeros, and the rest.
fn digits(s: &str) -> (&str, &str) {
    let end = s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
    (s[..end].trim_start_matches('0'), &s[end..])
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
}

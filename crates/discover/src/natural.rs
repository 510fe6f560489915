//! Names with numbers in them.
pub use ringwise_model::natural::compare;

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
    out.sort();
    out.dedup();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_are_a_number() {
        assert_eq!(number("rx-10", "rx-"), Some(10));
        assert_eq!(number("rx-", "rx-"), None);
        assert_eq!(number("rx-+1", "rx-"), None);
        assert_eq!(number("node0x", "node"), None);
        assert_eq!(numbers(&["rx-10".into(), "tx-0".into(), "rx-2".into()], "rx-"), [2, 10]);
    }
}

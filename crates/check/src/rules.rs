//! All rules, and those that ringwise deliberately does not judge.

mod drops;
mod forward;
mod host;
mod irq;
mod irq_elsewhere;
mod left_out;
mod moderation;
mod pcie;
mod programs;
mod queue_count;
mod rss;
mod soft;
mod steer;

pub use left_out::{UNJUDGED_RULES, UnjudgedRule};
pub(crate) use rss::SYMMETRIC;

use crate::rule::Rule;

const ALL: [&[Rule]; 11] = [
    drops::RULES,
    irq::RULES,
    programs::RULES,
    queue_count::RULES,
    rss::RULES,
    steer::RULES,
    moderation::RULES,
    soft::RULES,
    pcie::RULES,
    host::RULES,
    forward::RULES,
];

/// Every rule, in the order in which they are judged.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    ALL.into_iter().flatten()
}

/// Finds a rule by its id or by another id of the same page; `a2` is A02.
pub fn find(id: &str) -> Option<&'static Rule> {
    rules().find(|r| same(r.id, id)).or_else(|| rules().find(|r| r.also.iter().any(|a| same(a, id))))
}

/// Whether both are the same id, ignoring case and leading zeros.
pub(crate) fn same(a: &str, b: &str) -> bool {
    key(a) == key(b)
}

fn key(id: &str) -> String {
    let mut out = String::new();
    let mut chars = id.trim().chars().peekable();
    while let Some(c) = chars.next() {
        let begins = !out.ends_with(|l: char| l.is_ascii_digit());
        if !(c == '0' && begins && chars.peek().is_some_and(char::is_ascii_digit)) {
            out.push(c.to_ascii_uppercase());
        }
    }
    out
}

/// Suggests a rule for an unknown id: one that differs only in punctuation (`R009` is R0.09), or in letters that look like digits.
/// Another number is no typing error.
pub fn nearest(id: &str) -> Option<&'static str> {
    let plain = |id: &str| id.replace(|c: char| !c.is_ascii_alphanumeric(), "").to_ascii_uppercase();
    let typed = plain(id);
    // Letters that look like digits: QO5, Ql4.
    let digits = typed.replace('O', "0").replace(['I', 'L'], "1");
    rules().find(|r| plain(r.id) == typed).or_else(|| find(&digits)).map(|r| r.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_look_like_digits() {
        for (typed, id) in [("QO5", "Q05"), ("Ql4", "Q14"), ("Al", "A01"), ("R009", "R0.09")] {
            assert_eq!(nearest(typed), Some(id), "{typed}");
        }
        assert_eq!((nearest("Q99"), nearest("irq")), (None, None), "another number is no typing error");
    }

    #[test]
    fn an_id_is_found_as_it_is_typed() {
        let found = |id| find(id).map(|r| r.id);
        for id in ["A02", "a02", "a2", "A2", " A002 "] {
            assert_eq!(found(id), Some("A02"), "{id}");
        }
        for id in ["A2x", "A", "2", "A20.1", ""] {
            assert_eq!(found(id), None, "{id}");
        }
        assert_eq!((found("a20"), found("A010")), (Some("A20"), Some("A10")));
        assert_eq!(crate::explain("r0.9", 80), crate::explain("R0.09", 80));
    }

    #[test]
    fn the_nearest_id() {
        assert_eq!((nearest("A-05"), nearest("A99"), nearest("Q100")), (Some("A05"), None, None));
        assert_eq!((nearest("Z1"), nearest("irq"), nearest("")), (None, None, None));
        for id in ["R009", "r009", "R0-09", "R.0.09"] {
            assert_eq!(nearest(id), Some("R0.09"), "{id}");
        }
    }
}
